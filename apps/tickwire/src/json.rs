//! JSON of wire messages: one object per line, fields in wire order, named as in the specification.

use std::io::{self, Write};

use tickwire_wire::layout::FieldValue;

/// Writes one object: `begin`, any number of members, `end`.
pub(crate) struct JsonLine<'a, W: Write> {
    out: &'a mut W,
    error: io::Result<()>,
    first: bool,
}

impl<'a, W: Write> JsonLine<'a, W> {
    pub(crate) fn begin(out: &'a mut W) -> JsonLine<'a, W> {
        let error = out.write_all(b"{");
        JsonLine {
            out,
            error,
            first: true,
        }
    }

    pub(crate) fn number(&mut self, name: &str, value: u64) {
        self.member(name, |out| write!(out, "{value}"));
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.member(name, |out| write_string(out, value.as_bytes()));
    }

    /// A field of a message. Decimals are written as numbers in full precision, text without its padding, bytes in
    /// hexadecimal.
    pub(crate) fn field(&mut self, name: &str, value: FieldValue<'_>) {
        self.member(name, |out| match value {
            FieldValue::Unsigned(_)
            | FieldValue::Signed(_)
            | FieldValue::Decimal { .. }
            | FieldValue::Null => {
                write!(out, "{value}")
            }
            FieldValue::Text(text) => write_string(out, tickwire_wire::layout::trim(text)),
            FieldValue::Char(c) => write_string(out, &[c]),
            FieldValue::Bytes(_) => write!(out, "\"{value}\""),
        });
    }

    pub(crate) fn end(mut self) -> io::Result<()> {
        if self.error.is_ok() {
            self.error = self.out.write_all(b"}\n");
        }
        self.error
    }

    fn member(&mut self, name: &str, write: impl FnOnce(&mut W) -> io::Result<()>) {
        if self.error.is_err() {
            return;
        }
        let separator = if std::mem::replace(&mut self.first, false) {
            ""
        } else {
            ","
        };
        self.error = write!(self.out, "{separator}\"{name}\":").and_then(|()| write(self.out));
    }
}

/// A JSON string of wire text: bytes outside printable ASCII are escaped as `\u00XX`.
fn write_string<W: Write>(out: &mut W, text: &[u8]) -> io::Result<()> {
    out.write_all(b"\"")?;
    for &b in text {
        match b {
            b'"' | b'\\' => out.write_all(&[b'\\', b])?,
            b' '..=b'~' => out.write_all(&[b])?,
            _ => write!(out, "\\u{:04x}", b)?,
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_valid_json() {
        let mut out = Vec::new();
        let mut line = JsonLine::begin(&mut out);
        line.field(
            "Price",
            FieldValue::Decimal {
                mantissa: -873_900,
                decimals: 4,
            },
        );
        line.field("Stock", FieldValue::Text(b"A\"B\\\x01   "));
        line.field("Side", FieldValue::Char(0xFF));
        line.field("Raw", FieldValue::Bytes(&[1, 0xAB]));
        line.field("None", FieldValue::Null);
        line.number("n", u64::MAX);
        line.end().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\"Price\":-87.3900,\"Stock\":\"A\\\"B\\\\\\u0001\",\"Side\":\"\\u00ff\",\"Raw\":\"01AB\",\"None\":null,\"n\":18446744073709551615}\n"
        );
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}
