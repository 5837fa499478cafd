//! The codec as one would write it on paper: the oracle the fast one is compared with. Allocates, never
//! optimised.

use alloc::format;
use alloc::vec::Vec;

/// All fields of a whole message up to the CheckSum, `None` if its framing or checksum is wrong or a field is
/// not `tag=value`.
pub fn decode(message: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    let (body, trailer) = message.split_at_checked(message.len().checked_sub(7)?)?;
    let sum = body.iter().map(|&b| b as u32).sum::<u32>() % 256;
    if trailer != format!("10={sum:03}\x01").as_bytes() {
        return None;
    }
    let fields = fields(body)?;
    let body_start = body.iter().enumerate().filter(|&(_, &b)| b == 1).nth(1)?.0 + 1;
    let right = fields[0].0 == 8
        && fields[0].1.starts_with(b"FIX")
        && number(&fields, 1, 9)? == (body.len() - body_start) as u64
        && fields.get(2)?.0 == 35;
    right.then_some(fields)
}

fn fields(body: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    let mut fields = Vec::new();
    // A length field: its tag, and what it says.
    let (mut rest, mut length): (_, Option<(u32, Option<usize>)>) = (body, None);
    while !rest.is_empty() {
        let equals = rest.iter().position(|&b| b == b'=')?;
        let (digits, after) = (&rest[..equals], &rest[equals + 1..]);
        if digits.first().is_none_or(|&b| b == b'0')
            || digits.len() > 7
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return None;
        }
        let tag: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
        let len = match length.take() {
            Some((counting, count)) if crate::tag::data_of(counting) == tag => {
                // A separator within the counted bytes of a data field is data; the one behind them is none.
                let count = count?;
                if after.get(count) != Some(&1) {
                    return None;
                }
                count
            }
            // Data that is counted must be there, unless the tags are a counterparty's own.
            Some((counting, count)) if counting < 5_000 && count != Some(0) => return None,
            _ => after.iter().position(|&b| b == 1)?,
        };
        if len == 0 {
            return None;
        }
        if crate::tag::is_data_length(tag) {
            let text = core::str::from_utf8(&after[..len]).ok();
            let digits = text.filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            length = Some((tag, digits.and_then(|text| text.parse().ok())));
        }
        fields.push((tag, after[..len].to_vec()));
        rest = &after[len + 1..];
    }
    if length.is_some_and(|(counting, count)| counting < 5_000 && count != Some(0)) {
        return None;
    }
    (!fields.is_empty()).then_some(fields)
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
    encode_as("FIX.4.4", fields)
}

/// The same with another BeginString.
pub fn encode_as(begin_string: &str, fields: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (tag, value) in fields {
        body.extend_from_slice(format!("{tag}=").as_bytes());
        body.extend_from_slice(value);
        body.push(1);
    }
    let mut message = format!("8={begin_string}\x019={}\x01", body.len()).into_bytes();
    message.append(&mut body);
    let sum = message.iter().map(|&b| b as u32).sum::<u32>() % 256;
    message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    message
}
