//! ironfix-tagvalue: a Rust codec of the registry. It reads no timestamps, so ours does for it.

use crate::messages::Order;
use crate::{Run, Wire};
use ironfix_tagvalue::{Decoder, Encoder, FieldIndex};
use std::hint::black_box;
use tickwire_fix::{Precision, Stamp, parse_timestamp};
use tickwire_market::Nanos;

pub fn encode(orders: &[Order]) -> Run<'_> {
    let mut e = Encoder::with_capacity("FIX.4.4", 512);
    let mut stamp = Stamp::new(Precision::Millis);
    Box::new(move || {
        let mut bytes = 0;
        for o in black_box(orders) {
            e.clear();
            e.put_str(35, "D");
            e.put_str(49, "TICKWIRE");
            e.put_str(56, "EXCHANGE");
            e.put_uint(34, o.seq);
            e.put_raw(52, stamp.format(Nanos(o.time)));
            e.put_raw(11, &o.id);
            e.put_raw(1, &o.account[..o.account_len as usize]);
            e.put_str(100, "XNAS");
            e.put_char(21, '1');
            e.put_raw(55, &o.symbol[..o.symbol_len as usize]);
            e.put_char(54, o.side as char);
            e.put_raw(60, stamp.format(Nanos(o.time)));
            e.put_uint(38, u64::from(o.qty));
            e.put_char(40, '2');
            e.put_raw(44, format!("{}.{:02}", o.cents / 100, o.cents % 100).as_bytes());
            e.put_char(59, o.time_in_force as char);
            e.put_str(15, "USD");
            e.put_char(47, 'A');
            e.put_char(204, '0');
            bytes += black_box(e.finish().expect("a message")).len() as u64;
        }
        vec![bytes]
    })
}

pub fn reports(wire: &Wire) -> Run<'_> {
    let mut index = FieldIndex::with_capacity(64);
    Box::new(move || {
        let sums = wire.each().map(|message| {
            let m = Decoder::new(message).decode_into(&mut index).expect("a message");
            let field = |tag| m.get_field(tag).expect("it is there");
            let number = |tag| field(tag).as_u64().expect("a number");
            let price = |tag| {
                let decimal = field(tag).as_decimal().expect("a price");
                decimal.mantissa() as u64 * 10u64.pow(9 - decimal.scale())
            };
            let char = |tag| field(tag).as_char().expect("a character") as u64;
            let text = |tag| field(tag).len() as u64;
            let numbers = number(34) + number(38) + number(32) + number(151) + number(14);
            let prices = price(44) + price(31) + price(6);
            let chars = char(150) + char(39) + char(54);
            let texts = text(37) + text(11) + text(17) + text(55);
            let time = parse_timestamp(field(60).as_bytes()).expect("a time").0;
            (numbers + prices + chars + texts).wrapping_add(time)
        });
        sums.collect()
    })
}
