//! CSV: one line a row behind a line of names. Times are whole nanoseconds, prices decimals with nine places
//! (nothing where there is none), symbols quoted only where they have to be. RFC 4180 but for the line's end,
//! which is LF.

use std::io::{self, BufRead, Write};

use tickwire_market::Price;

use crate::batch::{Batch, Names, Value};
use crate::schema::{Column, Kind, NO_PRICE, NO_TIME};

/// Writes the line of names.
pub fn head(out: &mut impl Write, columns: &[Column]) -> io::Result<()> {
    let names: Vec<&str> = columns.iter().map(|c| c.name).collect();
    writeln!(out, "{}", names.join(","))
}

/// Writes every row of a batch.
pub fn rows(out: &mut impl Write, batch: &Batch, names: &Names) -> io::Result<()> {
    for row in 0..batch.rows() {
        for (at, (column, words)) in batch.columns.iter().zip(&batch.words).enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            let word = words[row];
            match column.kind {
                Kind::TimeOrNone if word == NO_TIME => {}
                Kind::Time | Kind::TimeOrNone | Kind::Unsigned(_) => write!(out, "{word}")?,
                Kind::Signed(_) => write!(out, "{}", word as i64)?,
                Kind::Price if word == NO_PRICE => {}
                Kind::Price => write!(out, "{:.9}", Price::from_raw(word as i64))?,
                Kind::Char => out.write_all(&[word as u8])?,
                Kind::Symbol => text(out, &names.text(word))?,
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    match text.contains([',', '"', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}

/// Reads a table back: its columns are those of a schema, its rows values.
///
/// # Errors
/// A sentence with the line: other names than the schema's, too few or too many fields, a field that is not
/// what its column has, a quote that is not closed.
pub fn read(input: impl BufRead, columns: &[Column]) -> Result<Vec<Vec<Value>>, String> {
    let mut rows = Vec::new();
    for (at, line) in input.split(b'\n').enumerate() {
        let wrong = |what: String| format!("line {}: {what}", at + 1);
        let line = line.map_err(|e| wrong(e.to_string()))?;
        let line = std::str::from_utf8(&line).map_err(|_| wrong("is no UTF-8".into()))?;
        let fields = fields(line).map_err(wrong)?;
        if at == 0 {
            if fields.len() != columns.len() || fields.iter().zip(columns).any(|(f, c)| f != c.name) {
                return Err(wrong("names other columns".into()));
            }
            continue;
        }
        if fields.len() != columns.len() {
            return Err(wrong(format!(
                "has {} fields, not {}",
                fields.len(),
                columns.len()
            )));
        }
        let row: Result<Vec<Value>, String> = fields.iter().zip(columns).map(|(f, c)| value(f, c)).collect();
        rows.push(row.map_err(wrong)?);
    }
    Ok(rows)
}

fn value(field: &str, column: &Column) -> Result<Value, String> {
    let wrong = || format!("{field:?} is no {}", column.name);
    let number = |from: i128, to: i128| {
        let number = field.parse::<i128>().ok().filter(|n| (from..=to).contains(n));
        number.map(Value::Number).ok_or_else(wrong)
    };
    match column.kind {
        Kind::TimeOrNone if field.is_empty() => Ok(Value::Text(String::new())),
        Kind::Time | Kind::TimeOrNone => number(0, u64::MAX.into()),
        Kind::Unsigned(bits) => number(0, (1 << bits) - 1),
        Kind::Signed(32) => number(i32::MIN.into(), i32::MAX.into()),
        Kind::Signed(_) => number(i64::MIN.into(), i64::MAX.into()),
        Kind::Price if field.is_empty() => Ok(Value::Price(None)),
        Kind::Price => Price::parse(field.as_bytes())
            .map(|price| Value::Price(Some(price.raw())))
            .map_err(|_| wrong()),
        Kind::Char if field.len() == 1 => Ok(Value::Text(field.into())),
        Kind::Char => Err(wrong()),
        Kind::Symbol => Ok(Value::Text(field.into())),
    }
}

/// The fields of a line. No field of ours has a line's end in it.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut rest = line;
    loop {
        let mut field = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.char_indices();
            let end = loop {
                match chars.next() {
                    Some((at, '"')) if quoted[at + 1..].starts_with('"') => {
                        field.push('"');
                        chars.next();
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, c)) => field.push(c),
                    None => return Err("a quote is not closed".into()),
                }
            };
            rest = &quoted[end..];
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            field.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        all.push(field);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(all),
            None => return Err("something stands behind a quote".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::value_of;
    use crate::schema::Schema;
    use proptest::prelude::*;
    use tickwire_market::{InstrumentId, Symbol};

    proptest! {
        #[test]
        fn what_is_written_reads_back(rows in proptest::collection::vec(any::<[u64; 15]>(), 0..20), symbol in "[ -~]{1,12}") {
            let columns = Schema::Mbo.columns();
            let mut names = Names::default();
            if let Some(symbol) = Symbol::new(symbol.as_bytes()) {
                names.insert(0, InstrumentId(1), symbol);
            }
            let mut batch = Batch::new(columns.clone());
            for mut row in rows {
                for (word, column) in row.iter_mut().zip(&columns) {
                    *word = match column.kind {
                        Kind::Unsigned(bits) if bits < 64 => *word & ((1 << bits) - 1),
                        Kind::Signed(_) => (*word as i32 as i64) as u64,
                        Kind::Char => 0x41 + *word % 26,
                        Kind::Symbol => *word % 2,
                        _ => *word,
                    };
                }
                batch.push(&row);
            }
            let mut text = Vec::new();
            head(&mut text, &columns).unwrap();
            super::rows(&mut text, &batch, &names).unwrap();
            let read = read(&text[..], &columns).unwrap();
            prop_assert_eq!(read.len(), batch.rows());
            for (at, row) in read.iter().enumerate() {
                for ((value, column), words) in row.iter().zip(&columns).zip(&batch.words) {
                    prop_assert_eq!(value, &value_of(column.kind, words[at], &names));
                }
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<Vec<u8>>(), tail in "[0-9,.\"A\n-]{0,80}") {
            let columns = Schema::Trades.columns();
            _ = read(&text[..], &columns);
            let mut whole = Vec::new();
            head(&mut whole, &columns).unwrap();
            whole.extend(tail.bytes());
            _ = read(&whole[..], &columns);
        }
    }
}
