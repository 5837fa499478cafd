//! The codec as one would write it on paper: the oracle the fast one is compared with. Allocates, never optimised.

use alloc::format;
use alloc::vec::Vec;

/// All fields of a whole message up to the CheckSum, `None` if its framing or checksum is wrong or a field is not
/// `tag=value`.
pub fn decode(message: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    let mut fields = Vec::new();
    let mut at = 0;
    let mut data_len = None;
    while at < message.len() {
        let equals = at + message[at..].iter().position(|&b| b == b'=')?;
        let digits = &message[at..equals];
        if digits.first().is_none_or(|&b| b == b'0')
            || digits.len() > 7
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        let tag: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
        let value_end = match data_len.take() {
            Some(len) => {
                // The separator of the data is the first one at or after its count.
                let from = equals.checked_add(1)?.checked_add(len)?;
                from + message.get(from..)?.iter().position(|&b| b == 1)?
            }
            None => equals + 1 + message[equals + 1..].iter().position(|&b| b == 1)?,
        };
        let value = &message[equals + 1..value_end];
        if value.is_empty() {
            return None;
        }
        if crate::tag::is_data_length(tag) {
            data_len = core::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok());
        }
        if tag == 10 && value_end + 1 == message.len() {
            let sum = message[..at].iter().map(|&b| b as u32).sum::<u32>() % 256;
            let body_start = message.iter().enumerate().filter(|&(_, &b)| b == 1).nth(1)?.0 + 1;
            let length_right = number(&fields, 1, 9)? == (at - body_start) as u64;
            let begins = fields.first().is_some_and(|(tag, _)| *tag == 8);
            let typed = fields.get(2).is_some_and(|(tag, _)| *tag == 35);
            let right = value == format!("{sum:03}").as_bytes() && length_right && begins && typed;
            return right.then_some(fields);
        }
        fields.push((tag, value.to_vec()));
        at = value_end + 1;
    }
    None
}

fn number(fields: &[(u32, Vec<u8>)], at: usize, tag: u32) -> Option<u64> {
    let (found, value) = fields.get(at)?;
    if *found != tag {
        return None;
    }
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// A message of these fields, the first of which is MsgType: BeginString, BodyLength and CheckSum are added.
pub fn encode(fields: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (tag, value) in fields {
        body.extend_from_slice(format!("{tag}=").as_bytes());
        body.extend_from_slice(value);
        body.push(1);
    }
    let mut message = format!("8=FIX.4.4\x019={}\x01", body.len()).into_bytes();
    message.append(&mut body);
    let sum = message.iter().map(|&b| b as u32).sum::<u32>() % 256;
    message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    message
}
