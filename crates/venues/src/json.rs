//! JSON of wire messages: one object per line, fields in wire order, named as in the specification.

use std::fmt::Display;
use std::io::Write;

use tickwire_wire::fast::Value;
use tickwire_wire::layout::{FieldValue, Fields, trim};

/// Writes one object into a buffer: `begin`, any number of members, `end`.
pub struct JsonLine<'a> {
    out: &'a mut Vec<u8>,
    /// No member of the innermost object is there yet.
    first: bool,
    /// Of every array that is open: whether its current object is its last.
    open: Vec<bool>,
    /// Names that the outer object has used already, and what goes before a member of such a name.
    taken: (&'static [&'static str], String),
    /// Where only members of these names are written.
    only: Option<&'static [&'static str]>,
}

impl<'a> JsonLine<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>) -> JsonLine<'a> {
        out.push(b'{');
        JsonLine {
            out,
            first: true,
            open: Vec::new(),
            taken: (&[], String::new()),
            only: None,
        }
    }

    /// As [`JsonLine::begin`]; members of other names than these are passed over, which costs next to
    /// nothing. Objects of arrays are entered all the same.
    pub fn only(out: &'a mut Vec<u8>, names: &'static [&'static str]) -> JsonLine<'a> {
        let mut line = JsonLine::begin(out);
        line.only = Some(names);
        line
    }

    /// From here on a member of the outer object with one of these names is called `owner.name`.
    pub fn taken(&mut self, names: &'static [&'static str], owner: &str) {
        self.taken = (names, owner.into());
    }

    /// Writes a member with a number.
    pub fn number(&mut self, name: &str, value: u64) {
        if self.is_wanted(name) {
            self.member(name);
            self.print(value);
        }
    }

    /// Writes a member with text, escaped as JSON wants it.
    pub fn text(&mut self, name: &str, value: &str) {
        if self.is_wanted(name) {
            self.member(name);
            self.utf8(value);
        }
    }

    /// Bytes in hexadecimal.
    pub fn bytes(&mut self, name: &str, value: &[u8]) {
        self.field(name, FieldValue::Bytes(value));
    }

    /// A field of a message. Decimals are written as numbers in full precision, text without its padding,
    /// bytes in hexadecimal.
    pub fn field(&mut self, name: &str, value: FieldValue<'_>) {
        if !self.is_wanted(name) {
            return;
        }
        self.member(name);
        match value {
            FieldValue::Unsigned(_)
            | FieldValue::Signed(_)
            | FieldValue::Decimal { .. }
            | FieldValue::Null => self.print(value),
            FieldValue::Text(text) => self.ascii(trim(text)),
            FieldValue::Char(c) => self.ascii(&[c]),
            FieldValue::Bytes(_) => self.print(format_args!("\"{value}\"")),
        }
    }

    /// All fields of a layout.
    pub fn fields(&mut self, layout: &impl Fields) {
        layout.visit(&mut |name, value| self.field(name, value));
    }

    /// An array with one object for each layout.
    pub fn array<T: Fields>(&mut self, name: &str, layouts: &[T]) {
        if layouts.is_empty() {
            self.enter(name, 0, 0);
        }
        for (i, layout) in layouts.iter().enumerate() {
            self.enter(name, i, layouts.len());
            self.fields(layout);
            self.leave();
        }
    }

    /// A field of a FAST message.
    pub fn fast(&mut self, name: &str, value: Value<'_>) {
        if !self.is_wanted(name) {
            return;
        }
        self.member(name);
        match value {
            Value::Absent => self.print("null"),
            Value::Unsigned(v) => self.print(v),
            Value::Signed(v) => self.print(v),
            Value::Decimal(v) => self.print(v),
            Value::Ascii(text) => self.ascii(text),
            Value::Unicode(text) => self.utf8(&String::from_utf8_lossy(text)),
            Value::Bytes(bytes) => self.print(format_args!("\"{}\"", FieldValue::Bytes(bytes))),
            Value::Group => self.print(true),
            Value::Sequence(count) => self.print(count),
        }
    }

    /// Begins the object `index` of an array of `count`; of an empty array, writes it.
    pub fn enter(&mut self, name: &str, index: usize, count: usize) {
        if index == 0 {
            self.member(name);
            self.out.push(b'[');
        } else {
            self.out.push(b',');
        }
        if count == 0 {
            self.out.push(b']');
            return;
        }
        self.out.push(b'{');
        self.first = true;
        self.open.push(index + 1 == count);
    }

    /// Ends the object that [`JsonLine::enter`] began; after the last one, its array.
    pub fn leave(&mut self) {
        self.out.push(b'}');
        if self.open.pop() == Some(true) {
            self.out.push(b']');
        }
        self.first = false;
    }

    /// Ends the object and its line.
    pub fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.only.is_none_or(|names| names.contains(&name))
    }

    fn member(&mut self, name: &str) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
        let (names, owner) = &self.taken;
        if self.open.is_empty() && names.contains(&name) {
            let name = format!("{owner}.{name}");
            self.utf8(&name);
        } else {
            self.utf8(name);
        }
        self.out.push(b':');
    }

    fn print(&mut self, value: impl Display) {
        write!(self.out, "{value}").expect("memory takes all");
    }

    /// A string of wire text: bytes outside printable ASCII are escaped as `\u00XX`.
    fn ascii(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for &b in text {
            self.character(char::from(b), b.is_ascii());
        }
        self.out.push(b'"');
    }

    fn utf8(&mut self, text: &str) {
        self.out.push(b'"');
        for c in text.chars() {
            self.character(c, true);
        }
        self.out.push(b'"');
    }

    fn character(&mut self, c: char, plain: bool) {
        match c {
            '"' | '\\' => self.out.extend_from_slice(&[b'\\', c as u8]),
            '\0'..'\x20' | '\x7F' => self.print(format_args!("\\u{:04x}", u32::from(c))),
            _ if plain => self.print(c),
            _ => self.print(format_args!("\\u{:04x}", u32::from(c))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire::fast::Decimal;

    fn written(write: impl FnOnce(&mut JsonLine<'_>)) -> String {
        let mut out = Vec::new();
        let mut line = JsonLine::begin(&mut out);
        write(&mut line);
        line.end();
        let text = String::from_utf8(out).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
        text
    }

    #[test]
    fn every_kind_of_value_is_valid_json() {
        let text = written(|line| {
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
        });
        assert_eq!(
            text,
            "{\"Price\":-87.3900,\"Stock\":\"A\\\"B\\\\\\u0001\",\"Side\":\"\\u00ff\",\"Raw\":\"01AB\",\"None\":null,\"n\":18446744073709551615}\n"
        );
    }

    #[test]
    fn fast_values_keep_their_digits_and_their_letters() {
        let text = written(|line| {
            line.fast("Px", Value::Decimal(Decimal::new(59955, -3)));
            line.fast("Name", Value::Unicode("Газпром \"АО\"".as_bytes()));
            line.fast("Text", Value::Ascii(b"\x7F"));
            line.fast("Group", Value::Group);
            line.fast("Raw", Value::Bytes(&[0xFE]));
        });
        assert_eq!(
            text,
            "{\"Px\":59.955,\"Name\":\"Газпром \\\"АО\\\"\",\"Text\":\"\\u007f\",\"Group\":true,\"Raw\":\"FE\"}\n"
        );
    }

    #[test]
    fn a_name_that_is_taken_gets_its_owner_before_it() {
        let text = written(|line| {
            line.number("Unit", 1);
            line.taken(&["Unit"], "GapRequest");
            line.number("Unit", 2);
            line.number("Count", 3);
            line.enter("Units", 0, 1);
            line.number("Unit", 4);
            line.leave();
        });
        assert_eq!(
            text,
            "{\"Unit\":1,\"GapRequest.Unit\":2,\"Count\":3,\"Units\":[{\"Unit\":4}]}\n"
        );
    }

    #[test]
    fn only_members_that_are_wanted_are_written_wherever_they_stand() {
        let mut out = Vec::new();
        let mut line = JsonLine::only(&mut out, &["Symbol", "MessageType"]);
        line.number("Unit", 1);
        line.text("Symbol", "A");
        line.enter("Entries", 0, 1);
        line.field("Price", FieldValue::Unsigned(3));
        line.fast("MessageType", Value::Ascii(b"X"));
        line.leave();
        line.end();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"Symbol\":\"A\",\"Entries\":[{\"MessageType\":\"X\"}]}\n"
        );
    }

    #[test]
    fn arrays_nest_and_may_be_empty() {
        let text = written(|line| {
            line.enter("Empty", 0, 0);
            line.enter("Boards", 0, 2);
            line.number("a", 1);
            line.enter("Sessions", 0, 1);
            line.leave();
            line.leave();
            line.enter("Boards", 1, 2);
            line.number("a", 2);
            line.leave();
            line.number("last", 3);
        });
        assert_eq!(
            text,
            "{\"Empty\":[],\"Boards\":[{\"a\":1,\"Sessions\":[{}]},{\"a\":2}],\"last\":3}\n"
        );
    }
}
