//! A second decoder of the SIP protocols: reads the layout tables of a digest and looks fields up in them,
//! one after the other.

use std::collections::BTreeMap;
use tickwire_testdata as testdata;

/// Offset, length, type and name of every field of a layout.
pub(crate) type Rows = Vec<(usize, usize, String, String)>;

/// Layouts by the first cell of their line in the digest.
pub(crate) struct Digest(pub(crate) BTreeMap<String, Layout>);

pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) rows: Rows,
}

impl Digest {
    /// Reads every table whose lines are name, title, size and layout. `header` stands before layouts that
    /// begin where it ends. `refine` may give a field a type that the table leaves to the text.
    pub(crate) fn read(
        file: &str,
        header: &[&str],
        refine: fn(&str, &str) -> Option<&'static str>,
    ) -> Digest {
        let text = std::fs::read_to_string(testdata::specs(file)).unwrap();
        let header: Rows = header.iter().map(|cell| row(cell)).collect();
        let layouts = text
            .lines()
            .filter_map(|line| of_table_line(line, &header, refine));
        Digest(layouts.collect())
    }
}

/// From `| MK | Title | 51 | 26:8:i64 Level1 · ... |`.
pub(crate) fn of_table_line(
    line: &str,
    header: &[(usize, usize, String, String)],
    refine: fn(&str, &str) -> Option<&'static str>,
) -> Option<(String, Layout)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, name, _, size, layout, _] = cells[..] else {
        return None;
    };
    let size = size.parse().ok()?;
    let own = layout.split('·').map(str::trim).filter(|cell| cell.contains(':'));
    let own: Rows = own.map(row).collect();
    let mut rows = if own.first()?.0 == 0 {
        Rows::new()
    } else {
        header.to_vec()
    };
    rows.extend(own.into_iter().map(|(at, length, kind, name)| {
        let kind = refine(&kind, &name).map_or(kind, str::to_string);
        (at, length, kind, name)
    }));
    let contiguous = rows.iter().fold(0, |end, (at, length, ..)| {
        assert_eq!(*at, end, "{line}");
        end + length
    });
    assert_eq!(contiguous, size, "{line}");
    Some((name.to_string(), Layout { size, rows }))
}

impl Layout {
    /// The value of every field as a decoder shows it.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Vec<String> {
        let value =
            |(at, length, kind, _): &(usize, usize, String, String)| value(&bytes[*at..at + length], kind);
        self.rows.iter().map(value).collect()
    }
}

/// From `26:11:a11 Symbol`.
fn row(cell: &str) -> (usize, usize, String, String) {
    let (place, name) = cell.split_once(' ').unwrap_or((cell, ""));
    let parts: Vec<&str> = place.split(':').collect();
    let length = parts[1].parse().unwrap();
    let kind = parts.get(2).map_or("u64", |kind| kind);
    (
        parts[0].parse().unwrap(),
        length,
        kind.to_string(),
        name.to_string(),
    )
}

fn value(bytes: &[u8], kind: &str) -> String {
    let number = bytes.iter().fold(0_u128, |n, b| n << 8 | u128::from(*b));
    let decimal = |n: u128, decimals: u32| {
        let unit = 10_u128.pow(decimals);
        format!("{}.{:0width$}", n / unit, n % unit, width = decimals as usize)
    };
    let signed = (number as u64).cast_signed();
    match kind {
        "c" => bytes.escape_ascii().to_string(),
        "ps2" => decimal(number, 2),
        "pl8" | "leverage" => decimal(number, 6),
        "level" if signed < 0 => format!("-{}", decimal(signed.unsigned_abs().into(), 6)),
        "level" => decimal(number, 6),
        "time" => ((number >> 32) * 1_000_000_000 + (number & 0xFFFF_FFFF)).to_string(),
        "i64" => signed.to_string(),
        "u8" | "u16" | "u32" | "u64" => number.to_string(),
        text if text.starts_with('a') => {
            let end = bytes
                .iter()
                .rposition(|b| *b != b' ' && *b != 0)
                .map_or(0, |last| last + 1);
            bytes[..end].escape_ascii().to_string()
        }
        other => panic!("the digest has a type {other}"),
    }
}
