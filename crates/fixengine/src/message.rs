//! Messages as people write and read them: `35=D|11=1|55=AAPL`, `|` for the separator, `\|` for a bar, `\xHH`
//! for any byte.

use tickwire_fix::{Frame, frame, is_header, tag};

/// Separator of fields.
const SOH: u8 = 1;
/// Password, NewPassword, RawData (which carries passwords in a Logon): never shown or written.
const SECRETS: [u32; 3] = [554, 925, 96];
/// What a session writes itself.
const OWN: [u32; 7] = [8, 9, 10, 34, 49, 52, 56];

/// A tag and its value.
pub type TagValue = (u32, Vec<u8>);

/// Reads `tag=value|tag=value`; real separators do as well.
pub fn parse(text: &str) -> Result<Vec<TagValue>, String> {
    let mut fields = Vec::new();
    for piece in split(text)? {
        if piece.is_empty() {
            continue;
        }
        let equals = piece.iter().position(|b| *b == b'=');
        let number = |at: usize| std::str::from_utf8(&piece[..at]).ok()?.trim().parse::<u32>().ok();
        let Some((at, tag)) = equals.and_then(|at| Some((at, number(at)?))) else {
            let shown = String::from_utf8_lossy(&piece).into_owned();
            return Err(format!("{shown:?} is not tag=value"));
        };
        fields.push((tag, piece[at + 1..].to_vec()));
    }
    Ok(fields)
}

/// Cuts at separators that are not written with a backslash.
fn split(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'|' | SOH => pieces.push(std::mem::take(&mut piece)),
            b'\\' => match bytes.next() {
                Some(b'x') => {
                    let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                    let byte = std::str::from_utf8(&digits)
                        .ok()
                        .filter(|digits| digits.len() == 2)
                        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    piece.push(byte.ok_or("\\x needs two hexadecimal digits")?);
                }
                Some(other) => piece.push(other),
                None => return Err("a backslash at the end".into()),
            },
            other => piece.push(other),
        }
    }
    pieces.push(piece);
    Ok(pieces)
}

/// A message to send: its type, and the fields that the session does not write itself, those of the header
/// first.
pub fn to_send(fields: Vec<TagValue>) -> Result<(Vec<u8>, Vec<TagValue>), String> {
    let msg_type = fields.iter().find(|(tag, _)| *tag == tag::MSG_TYPE);
    let msg_type = msg_type
        .map(|(_, value)| value.clone())
        .filter(|value| !value.is_empty())
        .ok_or("it has no MsgType: begin with 35=")?;
    let rest = fields
        .into_iter()
        .filter(|(tag, _)| *tag != tag::MSG_TYPE && !OWN.contains(tag));
    let (header, body): (Vec<_>, Vec<_>) = rest.partition(|(tag, _)| is_header(*tag));
    Ok((msg_type, header.into_iter().chain(body).collect()))
}

/// The fields of a whole message in order. Values of data fields are cut by their counts.
pub fn fields(message: &[u8]) -> Vec<TagValue> {
    let mut index = tickwire_fix::Index::new(message.len() / 4 + 8);
    match index.decode(message) {
        Ok(m) => {
            let trailer = message.len().saturating_sub(7);
            let sum = message[trailer..].strip_prefix(b"10=").map(|sum| &sum[..3]);
            let own = m.fields().iter().map(|f| (f.tag, m.value(*f).to_vec()));
            own.chain(sum.map(|sum| (tag::CHECK_SUM, sum.to_vec()))).collect()
        }
        // Damaged or masked: cut at every separator.
        Err(_) => {
            let pieces = message.split(|b| *b == SOH);
            let field = |piece: &[u8]| {
                let at = piece.iter().position(|b| *b == b'=')?;
                let tag = std::str::from_utf8(&piece[..at]).ok()?.parse().ok()?;
                Some((tag, piece[at + 1..].to_vec()))
            };
            pieces.filter_map(field).collect()
        }
    }
}

/// A message for people: bars for separators, secrets masked.
pub fn shown(message: &[u8]) -> String {
    let pieces = fields(message)
        .into_iter()
        .map(|(tag, value)| format!("{tag}={}", shown_value(tag, &value)));
    pieces.collect::<Vec<_>>().join("|")
}

/// A value for people, masked if it is a secret.
pub fn shown_value(tag: u32, value: &[u8]) -> String {
    if SECRETS.contains(&tag) {
        return "***".into();
    }
    let escape = |c: char| match c {
        '|' => "\\|".to_string(),
        c if c.is_control() => format!("\\x{:02x}", c as u32),
        c => c.to_string(),
    };
    String::from_utf8_lossy(value).chars().map(escape).collect()
}

/// Whether a whole message is the application's, not the session's.
pub fn is_application(message: &[u8]) -> bool {
    let mut fields = message.split(|b| *b == SOH);
    let msg_type = fields.nth(2).and_then(|f| f.strip_prefix(b"35="));
    msg_type.is_some_and(|t| !matches!(t, b"0" | b"1" | b"2" | b"3" | b"4" | b"5" | b"A"))
}

/// Puts stars over secrets, in place: the length stays, the checksum no longer fits.
pub fn mask(message: &mut [u8]) {
    let mut index = tickwire_fix::Index::new(message.len() / 4 + 8);
    let ranges: Vec<_> = match index.decode(message) {
        Ok(m) => {
            let secret = m.fields().iter().filter(|f| SECRETS.contains(&f.tag));
            secret
                .map(|f| f.offset()..f.offset() + m.value(*f).len())
                .collect()
        }
        // What is damaged may hold secrets all the same: from the first one on, to be safe.
        Err(_) => {
            let begins = |at: &usize| {
                let is_secret = |tag: &u32| message[*at..].starts_with(format!("\x01{tag}=").as_bytes());
                SECRETS.iter().any(is_secret)
            };
            let first = (0..message.len()).find(begins);
            first.map(|at| at + 1..message.len()).into_iter().collect()
        }
    };
    ranges.into_iter().for_each(|range| message[range].fill(b'*'));
}

/// Puts whole messages together from bytes cut anywhere; what is none is passed over.
#[derive(Debug, Default)]
pub struct Framer {
    bytes: Vec<u8>,
}

/// The longest message put together.
const MESSAGE_MAX: usize = 1 << 20;

impl Framer {
    /// Takes bytes and hands out the messages that are whole now.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        self.bytes.extend_from_slice(bytes);
        let mut from = 0;
        loop {
            match frame(&self.bytes[from..], MESSAGE_MAX) {
                _ if from == self.bytes.len() => break,
                Frame::Whole(len) => {
                    each(&self.bytes[from..from + len]);
                    from += len;
                }
                Frame::Partial => break,
                Frame::Garbled { skip, .. } => from += skip,
            }
        }
        self.bytes.drain(..from);
    }

    /// What is not whole will never be.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_and_shown_as_it_was_written() {
        let text = r"35=D|11=a\|b|58=x\x01y|554=secret";
        let fields = parse(text).unwrap();
        assert_eq!(fields[1], (11, b"a|b".to_vec()));
        assert_eq!(fields[2], (58, b"x\x01y".to_vec()));
        let shown: Vec<String> = fields
            .iter()
            .map(|(tag, value)| format!("{tag}={}", shown_value(*tag, value)))
            .collect();
        assert_eq!(shown.join("|"), r"35=D|11=a\|b|58=x\x01y|554=***");
        assert!(parse("35=D|nonsense").unwrap_err().contains("nonsense"));
        assert!(parse(r"35=D|58=\x4").is_err());
    }

    #[test]
    fn what_the_session_writes_is_left_out_and_header_fields_come_first() {
        let fields = parse("8=FIX.4.4|9=12|35=D|34=7|49=A|11=1|50=desk|10=000").unwrap();
        let (msg_type, rest) = to_send(fields).unwrap();
        assert_eq!(msg_type, b"D");
        assert_eq!(rest, [(50, b"desk".to_vec()), (11, b"1".to_vec())]);
        assert!(to_send(parse("11=1").unwrap()).is_err());
    }

    #[test]
    fn messages_come_out_whole_whatever_the_cut_and_secrets_are_masked() {
        let fields = |n: u8| {
            vec![
                (35, b"A".to_vec()),
                (34, vec![b'0' + n]),
                (554, b"hidden".to_vec()),
            ]
        };
        let mut stream = b"noise".to_vec();
        (1..5).for_each(|n| stream.extend(tickwire_fix::naive::encode(&fields(n))));
        for cut in 1..40 {
            let (mut framer, mut seen) = (Framer::default(), Vec::new());
            for piece in stream.chunks(cut) {
                framer.take(piece, |m| seen.push(m.to_vec()));
            }
            assert_eq!(seen.len(), 4, "cut {cut}");
            mask(&mut seen[0]);
            assert!(!String::from_utf8_lossy(&seen[0]).contains("hidden"));
            seen[2][0] = b'9';
            mask(&mut seen[2]);
            assert!(!String::from_utf8_lossy(&seen[2]).contains("hidden"));
            assert!(shown(&seen[1]).contains("554=***"), "{}", shown(&seen[1]));
        }
    }
}
