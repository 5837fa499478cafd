//! TCP replay: what the client says. It speaks FIX in ASCII, the server answers in FAST, each message behind
//! its length in four bytes, little-endian ([`super::split_replay`]): a logon, the messages asked for as they
//! were sent, a logout with a reason. One request a connection.

use super::PREAMBLE_LEN;
use super::times::civil_date;
use tickwire_market::Nanos;
use tickwire_wire_core::fix_text::{Number, write};

/// The most messages one request may ask for. What a live client keeps to; the exchange bans those who
/// connect too often.
pub const MESSAGES_MAX: u32 = 500;
/// The longest request written here, in bytes, with names of up to 32 bytes.
pub const REQUEST_SIZE_MAX: usize = 320;

const BEGIN_STRING: Option<&[u8]> = Some(b"FIXT.1.1");
/// `ApplVerID` and `DefaultApplVerID`: FIX 5.0 SP2.
const VERSION: &[u8] = b"9";
const TARGET: &[u8] = b"MOEX";

/// Writes `Logon`, the first message of a connection; its length, `None` if `buffer` is too small.
pub fn logon(
    buffer: &mut [u8],
    now: Nanos,
    sender: &[u8],
    username: &[u8],
    password: &[u8],
) -> Option<usize> {
    let sent = timestamp(now);
    let fields: [(&[u8], &[u8]); 9] = [
        (b"35", b"A"),
        (b"1128", VERSION),
        (b"49", sender),
        (b"56", TARGET),
        (b"34", b"1"),
        (b"52", &sent),
        (b"553", username),
        (b"554", password),
        (b"1137", VERSION),
    ];
    write(buffer, BEGIN_STRING, &fields)
}

/// Writes the `MarketDataRequest` for messages `first` to `last` of a feed (`OLR`, `TLR`, `MSR`); its length,
/// `None` if `buffer` is too small.
pub fn market_data_request(
    buffer: &mut [u8],
    now: Nanos,
    sender: &[u8],
    feed: &[u8],
    first: u32,
    last: u32,
) -> Option<usize> {
    let sent = timestamp(now);
    let (first, last) = (Number::new(first.into()), Number::new(last.into()));
    let fields: [(&[u8], &[u8]); 9] = [
        (b"35", b"V"),
        (b"1128", VERSION),
        (b"49", sender),
        (b"56", TARGET),
        (b"34", b"2"),
        (b"52", &sent),
        (b"1180", feed),
        (b"1182", first.text()),
        (b"1183", last.text()),
    ];
    write(buffer, BEGIN_STRING, &fields)
}

/// Writes `Logout`, the last message of a connection; its length, `None` if `buffer` is too small.
pub fn logout(buffer: &mut [u8], now: Nanos, sender: &[u8]) -> Option<usize> {
    let sent = timestamp(now);
    let fields: [(&[u8], &[u8]); 6] = [
        (b"35", b"5"),
        (b"1128", VERSION),
        (b"49", sender),
        (b"56", TARGET),
        (b"34", b"3"),
        (b"52", &sent),
    ];
    write(buffer, BEGIN_STRING, &fields)
}

/// Turns a datagram into what the replay server sends: the length takes the preamble's place.
pub fn put_length(datagram: &mut [u8]) {
    if let Some((head, message)) = datagram.split_first_chunk_mut::<PREAMBLE_LEN>() {
        *head = (message.len() as u32).to_le_bytes();
    }
}

/// `YYYYMMDD-hh:mm:ss.sss`, UTC.
fn timestamp(at: Nanos) -> [u8; 21] {
    let (year, month, day) = civil_date(at.0 / Nanos::DAY);
    let millis = at.0 % Nanos::DAY / Nanos::MILLI;
    let (seconds, minutes) = (millis / 1_000, millis / 60_000);
    let mut text = *b"00000000-00:00:00.000";
    let mut put = |from: usize, to: usize, mut value: u64| {
        for place in text[from..to].iter_mut().rev() {
            *place = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    put(0, 4, year);
    put(4, 6, month);
    put(6, 8, day);
    put(9, 11, minutes / 60);
    put(12, 14, minutes % 60);
    put(15, 17, seconds % 60);
    put(18, 21, millis % 1_000);
    text
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;

    fn shown(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\x01', "|")
    }

    #[test]
    fn requests_are_fix_text_with_length_and_checksum() {
        // 2021-01-04 18:31:45.538 UTC.
        let now = Nanos(1_609_785_105_538_346_000);
        let mut buffer = [0; REQUEST_SIZE_MAX];
        let len = logon(&mut buffer, now, b"ME", b"user0", b"pass0").unwrap();
        assert_eq!(
            shown(&buffer[..len]),
            "8=FIXT.1.1|9=83|35=A|1128=9|49=ME|56=MOEX|34=1|52=20210104-18:31:45.538|553=user0|554=pass0|1137=9|10=020|"
        );
        let len = market_data_request(&mut buffer, now, b"ME", b"OLR", 7, 506).unwrap();
        assert!(shown(&buffer[..len]).contains("|1180=OLR|1182=7|1183=506|10="));
        assert_eq!(logout(&mut buffer[..20], now, b"ME"), None);
        assert_eq!(logon(&mut buffer, now, b"M\x01E", b"", b""), None);
    }

    #[test]
    fn the_length_takes_the_preambles_place() {
        let mut datagram = [9, 9, 9, 9, 1, 2, 3];
        put_length(&mut datagram);
        assert_eq!(datagram, [3, 0, 0, 0, 1, 2, 3]);
    }
}
