//! FIX messages as text, for the recovery connections of venues that are asked that way. Only to write:
//! fields in the order given, body length and checksum.

/// A number as decimal text.
#[derive(Debug)]
pub struct Number {
    digits: [u8; 20],
    start: usize,
}

impl Number {
    /// The text of `n`.
    pub fn new(mut n: u64) -> Number {
        let mut number = Number {
            digits: [0; 20],
            start: 20,
        };
        loop {
            number.start -= 1;
            number.digits[number.start] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                return number;
            }
        }
    }

    /// Its digits.
    pub fn text(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// Writes `BeginString` (where the venue wants one), body length, fields, checksum; the length, `None` if
/// `buffer` is too small or a value holds the separator.
pub fn write(buffer: &mut [u8], begin_string: Option<&[u8]>, fields: &[(&[u8], &[u8])]) -> Option<usize> {
    if fields.iter().any(|(_, value)| value.contains(&1)) {
        return None;
    }
    let body: usize = fields
        .iter()
        .map(|(tag, value)| tag.len() + value.len() + 2)
        .sum();
    let mut end = 0;
    let mut put = |tag: &[u8], value: &[u8]| {
        for part in [tag, b"=", value, b"\x01"] {
            buffer.get_mut(end..end + part.len())?.copy_from_slice(part);
            end += part.len();
        }
        Some(end)
    };
    if let Some(begin_string) = begin_string {
        put(b"8", begin_string)?;
    }
    let mut written = put(b"9", Number::new(body as u64).text())?;
    for (tag, value) in fields {
        written = put(tag, value)?;
    }
    let sum = buffer[..written]
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let digits = [b'0' + sum / 100, b'0' + sum / 10 % 10, b'0' + sum % 10];
    let trailer = [b'1', b'0', b'=', digits[0], digits[1], digits[2], 1];
    buffer
        .get_mut(written..written + trailer.len())?
        .copy_from_slice(&trailer);
    Some(written + trailer.len())
}
