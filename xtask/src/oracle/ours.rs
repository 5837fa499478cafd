//! What `tickwire decode` says: JSON lines, read with their order and with numbers as written.

use std::iter::Peekable;
use std::str::Chars;

/// A value as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// With every digit.
    Number(String),
    /// Bytes: a character above 127 stands for one.
    Text(Vec<u8>),
    Null,
}

/// One field; entries of groups follow one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    /// Its own name.
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Line {
    /// What stands before the message: where it comes from.
    pub(crate) origin: Vec<Field>,
    /// Its name; empty when it could not be decoded, and for the header of a packet.
    pub(crate) message: String,
    /// Whether this is the header of a packet.
    pub(crate) is_header: bool,
    pub(crate) fields: Vec<Field>,
    /// Why it could not be decoded.
    pub(crate) error: Option<String>,
}

impl Line {
    /// The number of the packet, from 1.
    pub(crate) fn packet(&self) -> usize {
        match self.origin("Packet") {
            Some(Value::Number(n)) => n.parse().unwrap_or(0),
            _ => 0,
        }
    }

    /// A member before the message.
    pub(crate) fn origin(&self, name: &str) -> Option<&Value> {
        self.origin.iter().find(|f| f.name == name).map(|f| &f.value)
    }
}

/// Reads one line; `None` when it is not one JSON object.
pub(crate) fn parse(line: &str) -> Option<Line> {
    let mut chars = line.trim().chars().peekable();
    let mut fields = Vec::new();
    value(&mut chars, "", &mut fields)?;
    if chars.next().is_some() {
        return None;
    }
    let mut parsed = Line::default();
    let mut is_origin = true;
    for field in fields {
        match (field.name.as_str(), &field.value) {
            ("Message", Value::Text(name)) if is_origin => {
                parsed.message = String::from_utf8_lossy(name).into_owned();
                is_origin = false;
            }
            ("Header", Value::Text(_)) if is_origin => {
                parsed.is_header = true;
                is_origin = false;
            }
            ("Error", Value::Text(why)) if is_origin => {
                parsed.error = Some(String::from_utf8_lossy(why).into_owned());
            }
            // A remark about the message, not a field of it.
            ("Ambiguous", Value::Text(_)) => {}
            _ if is_origin => parsed.origin.push(field),
            _ => parsed.fields.push(field),
        }
    }
    Some(parsed)
}

/// A value of any kind; scalars become fields of the name given.
fn value(chars: &mut Peekable<Chars<'_>>, name: &str, fields: &mut Vec<Field>) -> Option<()> {
    match chars.peek()? {
        '{' => list(chars, '}', |chars, _| {
            let key = string(chars)?;
            let key: String = key.iter().map(|b| char::from(*b)).collect();
            (chars.next()? == ':').then_some(())?;
            value(chars, &key, fields)
        }),
        '[' => list(chars, ']', |chars, _| value(chars, name, fields)),
        '"' => {
            let value = Value::Text(string(chars)?);
            fields.push(Field {
                name: name.to_owned(),
                value,
            });
            Some(())
        }
        _ => {
            let mut word = String::new();
            while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '}' | ']')) {
                word.push(c);
            }
            let value = match word.trim() {
                "null" => Value::Null,
                number => Value::Number(number.to_owned()),
            };
            fields.push(Field {
                name: name.to_owned(),
                value,
            });
            Some(())
        }
    }
}

fn list(
    chars: &mut Peekable<Chars<'_>>,
    end: char,
    mut member: impl FnMut(&mut Peekable<Chars<'_>>, usize) -> Option<()>,
) -> Option<()> {
    chars.next()?;
    if chars.next_if_eq(&end).is_some() {
        return Some(());
    }
    for index in 0.. {
        member(chars, index)?;
        match chars.next()? {
            ',' => {}
            c if c == end => break,
            _ => return None,
        }
    }
    Some(())
}

fn string(chars: &mut Peekable<Chars<'_>>) -> Option<Vec<u8>> {
    (chars.next()? == '"').then_some(())?;
    let mut bytes = Vec::new();
    loop {
        match chars.next()? {
            '"' => return Some(bytes),
            '\\' => match chars.next()? {
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    bytes.push(u8::try_from(u32::from_str_radix(&digits, 16).ok()?).ok()?);
                }
                'n' => bytes.push(b'\n'),
                't' => bytes.push(b'\t'),
                c => bytes.push(u8::try_from(c).ok()?),
            },
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_digits_and_bytes_of_a_line_are_kept() {
        let line = parse(
            r#"{"Packet":3,"Message":"Add","Price":80.5200,"Text":"A\"\u00ff","Group":[{"Size":1},{"Size":null}]}"#,
        );
        let line = line.unwrap();
        assert_eq!((line.packet(), line.message.as_str()), (3, "Add"));
        let shown: Vec<(String, Value)> = line.fields.into_iter().map(|f| (f.name, f.value)).collect();
        let number = |text: &str| Value::Number(text.to_owned());
        assert_eq!(
            shown,
            [
                ("Price".to_owned(), number("80.5200")),
                ("Text".to_owned(), Value::Text(b"A\"\xff".to_vec())),
                ("Size".to_owned(), number("1")),
                ("Size".to_owned(), Value::Null),
            ]
        );
        assert_eq!(parse("{\"a\":1"), None);
        assert_eq!(
            parse(r#"{"Packet":1,"Error":"cut"}"#).unwrap().error.unwrap(),
            "cut"
        );
    }
}
