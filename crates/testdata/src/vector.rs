//! The hand-made and captured packets under `vectors/<protocol>/*.toml`, one format for every protocol:
//!
//! ```toml
//! [[vector]]
//! name = "buy"
//! source = "where the bytes are from"
//! bytes = "41 0007 0002 ..."            # hexadecimal, blanks anywhere
//! [vector.expect]
//! message = "AddOrder"
//! Price = "12.3456"
//! ```
//! `expect` holds text, integers and booleans; the reader turns all into text.

use std::collections::BTreeMap;

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// `file/name`, unique within its protocol.
    pub name: String,
    /// Where its bytes are from.
    pub source: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What a decoder must say about them, everything as text.
    pub expect: BTreeMap<String, String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    vector: Vec<Row>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    source: String,
    bytes: String,
    expect: BTreeMap<String, toml::Value>,
}

/// Every vector of a protocol: `vectors("itch50")`, in order of file name and position.
pub fn vectors(protocol: &str) -> Vec<Vector> {
    let mut all: Vec<Vector> = Vec::new();
    for path in crate::files(&crate::workspace().join("vectors").join(protocol), "toml") {
        let text = String::from_utf8(crate::file_bytes(&path)).expect("vector files are UTF-8");
        let file: File = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let stem = path
            .file_stem()
            .expect("listed files have names")
            .to_string_lossy();
        all.extend(file.vector.into_iter().map(|row| {
            Vector {
                name: format!("{stem}/{}", row.name),
                source: row.source,
                bytes: unhex(&row.bytes),
                expect: row
                    .expect
                    .into_iter()
                    .map(|(key, value)| (key, as_text(value)))
                    .collect(),
            }
        }));
    }
    let mut names: Vec<&str> = all.iter().map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    assert!(
        names.windows(2).all(|pair| pair[0] != pair[1]),
        "two vectors of {protocol} share a name"
    );
    all
}

fn as_text(value: toml::Value) -> String {
    match value {
        toml::Value::String(text) => text,
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        other => panic!("an expectation is text, an integer or a boolean, not {other}"),
    }
}

/// Bytes from hexadecimal digits; blanks and line ends anywhere.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| {
            c.to_digit(16)
                .unwrap_or_else(|| panic!("{c:?} is not a hexadecimal digit in {text:?}")) as u8
        })
        .collect();
    assert!(
        digits.len().is_multiple_of(2),
        "odd number of hexadecimal digits in {text:?}"
    );
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The bytes as hexadecimal digits, for messages of failed assertions.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_comes_back() {
        assert_eq!(unhex("00 fF\n1a2B"), [0x00, 0xFF, 0x1A, 0x2B]);
        assert_eq!(hex(&unhex("00FF1A2B")), "00FF1A2B");
    }
}
