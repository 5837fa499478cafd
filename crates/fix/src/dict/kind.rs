//! Types of field values and their syntax. FIX 5.0 SP2, volume 1, "FIX Data Types"; older versions use a part
//! of them.

use crate::time::parse_timestamp;

/// The type of a field's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldKind {
    /// A whole number, with or without a sign.
    Int,
    /// A number of bytes, entries or messages, a tag: a whole number without a sign.
    Count,
    /// A decimal: price, quantity, amount, percentage.
    Decimal,
    /// One character.
    Char,
    /// `Y` or `N`.
    Boolean,
    /// Text.
    Text,
    /// Texts separated by single spaces.
    Texts,
    /// `YYYYMMDD-HH:MM:SS`, with or without a fraction of a second, UTC.
    Timestamp,
    /// `HH:MM:SS`, with or without a fraction of a second, UTC.
    TimeOfDay,
    /// `YYYYMMDD`.
    Date,
    /// `YYYYMM`, `YYYYMMDD` or `YYYYMMWn`.
    MonthYear,
    /// 1 to 31.
    DayOfMonth,
    /// Bytes, as many as the length field before says.
    Data,
}

impl FieldKind {
    /// By its name in a dictionary; names that are not known are texts, as QuickFIX takes them.
    pub(super) fn named(name: &str) -> FieldKind {
        match name {
            "INT" => FieldKind::Int,
            "LENGTH" | "NUMINGROUP" | "SEQNUM" | "TAGNUM" => FieldKind::Count,
            "FLOAT" | "PRICE" | "PRICEOFFSET" | "QTY" | "QUANTITY" | "AMT" | "PERCENTAGE" => {
                FieldKind::Decimal
            }
            "CHAR" => FieldKind::Char,
            "BOOLEAN" => FieldKind::Boolean,
            "MULTIPLEVALUESTRING" | "MULTIPLESTRINGVALUE" | "MULTIPLECHARVALUE" => FieldKind::Texts,
            "UTCTIMESTAMP" | "TIME" => FieldKind::Timestamp,
            "UTCTIMEONLY" => FieldKind::TimeOfDay,
            "UTCDATE" | "UTCDATEONLY" | "LOCALMKTDATE" | "DATE" => FieldKind::Date,
            "MONTHYEAR" => FieldKind::MonthYear,
            "DAYOFMONTH" => FieldKind::DayOfMonth,
            "DATA" | "XMLDATA" => FieldKind::Data,
            _ => FieldKind::Text,
        }
    }

    /// Whether one value holds several.
    pub const fn is_multiple(self) -> bool {
        matches!(self, FieldKind::Texts)
    }

    /// Whether a value, which is not empty, is written as the type demands.
    #[inline]
    pub fn admits(self, value: &[u8]) -> bool {
        match self {
            FieldKind::Text | FieldKind::Texts | FieldKind::Data => true,
            FieldKind::Count => is_digits(value),
            FieldKind::Int => is_digits(unsigned(value)),
            FieldKind::Decimal => is_decimal(unsigned(value)),
            FieldKind::Char => value.len() == 1,
            FieldKind::Boolean => matches!(value, b"Y" | b"N"),
            FieldKind::Timestamp => parse_timestamp(value).is_some(),
            FieldKind::TimeOfDay => is_time(value),
            FieldKind::Date => is_date(value),
            FieldKind::MonthYear => is_month_year(value),
            FieldKind::DayOfMonth => {
                is_digits(value) && value.len() <= 2 && (1..=31).contains(&number(value))
            }
        }
    }
}

fn unsigned(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"-").unwrap_or(value)
}

#[inline]
fn is_digits(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// Digits with at most one point among, before or behind them.
fn is_decimal(value: &[u8]) -> bool {
    let (mut digits, mut points) = (0, 0);
    for b in value {
        match b {
            b'0'..=b'9' => digits += 1,
            b'.' => points += 1,
            _ => return false,
        }
    }
    digits > 0 && points <= 1
}

/// The number that up to eight digits write.
fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n: u32, b| {
        n.wrapping_mul(10).wrapping_add(u32::from(b - b'0'))
    })
}

fn is_date(value: &[u8]) -> bool {
    value.len() == 8
        && is_digits(value)
        && (1..=12).contains(&number(&value[4..6]))
        && (1..=31).contains(&number(&value[6..]))
}

fn is_month_year(value: &[u8]) -> bool {
    match value {
        [month @ .., b'w' | b'W', week] => {
            month.len() == 6 && is_month(month) && (b'1'..=b'5').contains(week)
        }
        _ if value.len() == 6 => is_month(value),
        _ => is_date(value),
    }
}

fn is_month(value: &[u8]) -> bool {
    is_digits(value) && (1..=12).contains(&number(&value[4..]))
}

/// `HH:MM:SS`, seconds to 60, then perhaps a point and up to twelve digits.
fn is_time(value: &[u8]) -> bool {
    let Some((clock, fraction)) = value.split_at_checked(8) else {
        return false;
    };
    let fits = |at: usize, max: u32| is_digits(&clock[at..at + 2]) && number(&clock[at..at + 2]) <= max;
    let has_colons = clock[2] == b':' && clock[5] == b':';
    let fraction_fits = match fraction {
        [] => true,
        [b'.', digits @ ..] => is_digits(digits) && digits.len() <= 12,
        _ => false,
    };
    has_colons && fits(0, 23) && fits(3, 59) && fits(6, 60) && fraction_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_admits_its_syntax_and_nothing_else() {
        type Values = &'static [&'static [u8]];
        let cases: [(FieldKind, Values, Values); 11] = [
            (
                FieldKind::Int,
                &[b"0", b"-12", b"007"],
                &[b"+1", b"1.0", b"-", b"1a"],
            ),
            (FieldKind::Count, &[b"0", b"12"], &[b"-1", b"", b"1 "]),
            (
                FieldKind::Decimal,
                &[b"1", b"1.", b".5", b"-002000.00"],
                &[b"+200.00", b".", b"1.2.3", b"1e5"],
            ),
            (FieldKind::Char, &[b"1", b" "], &[b"12"]),
            (FieldKind::Boolean, &[b"Y", b"N"], &[b"y", b"YN"]),
            (
                FieldKind::Timestamp,
                &[b"20040415-17:56:01", b"20040415-17:56:01.123456789"],
                &[b"20040415", b"20041315-17:56:01"],
            ),
            (
                FieldKind::TimeOfDay,
                &[b"23:59:60", b"00:00:00.000"],
                &[b"24:00:00", b"1:2:3", b"00:00:00.", b"00-00-00"],
            ),
            (
                FieldKind::Date,
                &[b"20040415"],
                &[b"20041315", b"2004041", b"20040432"],
            ),
            (
                FieldKind::MonthYear,
                &[b"200404", b"20040415", b"200404w2"],
                &[b"200413", b"200404w6", b"2004"],
            ),
            (FieldKind::DayOfMonth, &[b"1", b"31"], &[b"0", b"32", b"001"]),
            (FieldKind::Text, &[b"anything"], &[]),
        ];
        for (kind, good, bad) in cases {
            good.iter()
                .for_each(|v| assert!(kind.admits(v), "{kind:?} {v:?}"));
            bad.iter()
                .for_each(|v| assert!(!kind.admits(v), "{kind:?} {v:?}"));
        }
    }
}
