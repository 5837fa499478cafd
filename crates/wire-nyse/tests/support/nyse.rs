//! A second decoder of the NYSE feeds: follows the digest's layout tables cell by cell.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::support::Shown;
use std::collections::BTreeMap;
use tickwire_testdata as testdata;

/// A row of a table: offset, length, type, name.
pub(crate) type Cell = (usize, usize, String, String);

pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) cells: Vec<Cell>,
}

/// The tables of a digest by the number in their first column (`230p` for price points), up to this heading.
pub(crate) fn layouts(digest: &str, end: &str) -> BTreeMap<String, Layout> {
    let text = std::fs::read_to_string(testdata::specs(digest)).unwrap();
    let text = text.split(end).next().unwrap();
    text.lines().filter_map(layout).collect()
}

/// From `| 112 | Trade Cancel | 20 | 4:4:u32 SourceTimeNS · ... |`.
fn layout(line: &str) -> Option<(String, Layout)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, kind, _, size, cells, _] = cells[..] else {
        return None;
    };
    let size = size.parse().ok()?;
    let cells: Vec<Cell> = cells.split('·').map(|text| cell(text.trim())).collect();
    let end = cells.iter().fold(cells[0].0, |end, (offset, length, ..)| {
        assert_eq!(*offset, end, "{line}");
        end + length
    });
    assert_eq!(end, size, "{line}");
    Some((kind.to_string(), Layout { size, cells }))
}

pub(crate) fn cell(text: &str) -> Cell {
    let (layout, name) = text.split_once(' ').unwrap();
    let parts: Vec<&str> = layout.split(':').collect();
    let number = |at: usize| parts[at].parse().unwrap();
    (number(0), number(1), parts[2].to_string(), name.to_string())
}

pub(crate) fn decode(cells: &[Cell], bytes: &[u8], little_endian: bool) -> Vec<(String, String)> {
    let value = |(offset, length, kind, name): &Cell| {
        let bytes = &bytes[*offset..offset + length];
        (name.clone(), naive_value(bytes, kind, little_endian))
    };
    cells.iter().map(value).collect()
}

fn naive_value(bytes: &[u8], kind: &str, little_endian: bool) -> String {
    let append = |n: i128, b: &u8| n << 8 | i128::from(*b);
    let number = if little_endian {
        bytes.iter().rev().fold(0, append)
    } else {
        bytes.iter().fold(0, append)
    };
    match kind.as_bytes()[0] {
        b'u' => number.to_string(),
        b'i' if number >> (8 * bytes.len() - 1) == 1 => (number - (1 << (8 * bytes.len()))).to_string(),
        b'i' => number.to_string(),
        b'c' => bytes.escape_ascii().to_string(),
        b'a' => {
            let end = bytes.iter().rposition(|b| *b != b' ' && *b != 0);
            bytes[..end.map_or(0, |last| last + 1)].escape_ascii().to_string()
        }
        _ => panic!("the digest has a type {kind}"),
    }
}

pub(crate) fn same(fields: &Shown, naive: &[(String, String)]) {
    let fields: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect();
    assert_eq!(fields, naive);
}
