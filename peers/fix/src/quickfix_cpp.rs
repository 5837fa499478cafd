//! QuickFIX C++ through its Rust package, whose strings from and to C come on top of what the engine itself
//! costs.

use crate::messages::Order;
use crate::{Run, Wire};
use quickfix::{DataDictionary, FieldMap, Message};
use std::hint::black_box;
use std::path::Path;
use tickwire_fix::{Precision, Stamp, parse_timestamp};
use tickwire_market::{Nanos, Price};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("ASCII")
}

/// It sorts the fields of header and body, which changes nothing in the length.
pub fn encode(orders: &[Order]) -> Run<'_> {
    let mut stamp = Stamp::new(Precision::Millis);
    Box::new(move || {
        let mut bytes = 0;
        for o in black_box(orders) {
            let mut m = Message::new();
            let time = text(stamp.format(Nanos(o.time))).to_owned();
            m.with_header_mut(|h| {
                let mut put = |tag, value: &str| h.set_field(tag, value).expect("a field");
                put(8, "FIX.4.4");
                put(35, "D");
                put(49, "TICKWIRE");
                put(56, "EXCHANGE");
                put(34, &o.seq.to_string());
                put(52, &time);
            });
            let mut put = |tag, value: &str| m.set_field(tag, value).expect("a field");
            put(11, text(&o.id));
            put(1, text(&o.account[..o.account_len as usize]));
            put(100, "XNAS");
            put(21, "1");
            put(55, text(&o.symbol[..o.symbol_len as usize]));
            put(54, text(&[o.side]));
            put(60, &time);
            put(38, &o.qty.to_string());
            put(40, "2");
            put(44, &format!("{}.{:02}", o.cents / 100, o.cents % 100));
            put(59, text(&[o.time_in_force]));
            put(15, "USD");
            put(47, "A");
            put(204, "0");
            let message = m.to_fix_raw_bytes().expect("a message");
            bytes += message.strip_suffix(&[0]).unwrap_or(&message).len() as u64;
        }
        vec![bytes]
    })
}

/// Parses and reads the same 16 fields; with a dictionary the message is validated as QuickFIX does when it
/// parses.
pub fn reports<'a>(wire: &'a Wire, dictionary: Option<&Path>) -> Run<'a> {
    let dictionary = dictionary.map(|path| DataDictionary::try_from_path(path).expect("a dictionary"));
    let texts: Vec<&str> = wire.each().map(text).collect();
    Box::new(move || {
        let sum = |message: &&str| {
            let parsed = match &dictionary {
                Some(dictionary) => dictionary.try_build_message(message),
                None => Message::try_from_text(message),
            };
            let m = parsed.expect("a message");
            let field = |tag| m.get_field(tag).expect("it is there");
            let number = |tag| field(tag).parse::<u64>().expect("a number");
            let price = |tag| Price::parse(field(tag).as_bytes()).expect("a price").raw() as u64;
            let char = |tag| u64::from(field(tag).as_bytes()[0]);
            let length = |tag| field(tag).len() as u64;
            let seq = m.with_header(|h| h.get_field(34)).expect("a number");
            let seq: u64 = seq.parse().expect("a number");
            let numbers = seq + number(38) + number(32) + number(151) + number(14);
            let prices = price(44) + price(31) + price(6);
            let chars = char(150) + char(39) + char(54);
            let texts = length(37) + length(11) + length(17) + length(55);
            let time = parse_timestamp(field(60).as_bytes()).expect("a time").0;
            (numbers + prices + chars + texts).wrapping_add(time)
        };
        texts.iter().map(sum).collect()
    })
}
