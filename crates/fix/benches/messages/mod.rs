//! The messages that codecs are compared on, 1024 different ones of each kind: NewOrderSingle of about 223
//! bytes, ExecutionReport of about 296, MarketDataIncrementalRefresh with four entries; and how they are
//! written and read here. Included by `benches/codec.rs` and by `peers/fix`, so that both measure the same.

use tickwire_fix::{Encoder, Message, Prepared, RepeatingGroup, Stamp, Version, naive};
use tickwire_market::{Nanos, Price};

/// Messages of each kind.
pub(crate) const COUNT: usize = 1024;
/// 2026-11-21 01:55:41.
const START_S: u64 = 1_795_226_141;

/// What changes from order to order; laid out for C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Order {
    /// MsgSeqNum.
    pub(crate) seq: u64,
    /// SendingTime and TransactTime, nanoseconds since 1970, whole milliseconds.
    pub(crate) time: u64,
    /// Price in hundredths.
    pub(crate) cents: i64,
    /// OrderQty.
    pub(crate) qty: u32,
    /// Bytes of `symbol` and `account` in use.
    pub(crate) symbol_len: u8,
    pub(crate) account_len: u8,
    /// Side: `1` or `2`.
    pub(crate) side: u8,
    /// TimeInForce: `0`, `3` or `4`.
    pub(crate) time_in_force: u8,
    /// ClOrdID.
    pub(crate) id: [u8; 16],
    /// Symbol.
    pub(crate) symbol: [u8; 8],
    /// Account.
    pub(crate) account: [u8; 16],
}

const SYMBOLS: [&str; 16] = [
    "F", "GM", "IBM", "WIRE", "MSFT", "GOOGL", "AAPL", "T", "BRK.B", "NVDA", "INTC", "GE", "KO", "AMZN",
    "META", "TSLA",
];

/// A small generator: the same messages in every run and program.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    out[..text.len()].copy_from_slice(text.as_bytes());
    out
}

pub(crate) fn orders() -> Vec<Order> {
    let mut n = Numbers(1);
    (0..COUNT as u64)
        .map(|i| {
            let symbol = SYMBOLS[n.below(16) as usize];
            let account = format!("ACCOUNT-{}", 100_000 + n.below(500_000));
            Order {
                seq: 900_000 + i * 211,
                time: (START_S * 1_000 + i * 3) * 1_000_000,
                cents: 100 + n.below(60_000) as i64,
                qty: 1 + n.below(20_000) as u32,
                symbol_len: symbol.len() as u8,
                account_len: account.len() as u8,
                side: b'1' + n.below(2) as u8,
                time_in_force: [b'0', b'3', b'4'][n.below(3) as usize],
                id: padded(&format!("ORD{:013}", 1_000_000 + i * 7)),
                symbol: padded(symbol),
                account: padded(&account),
            }
        })
        .collect()
}

/// MsgType, SenderCompID and TargetCompID, which no order of a session changes.
pub(crate) fn order_header() -> Prepared {
    Prepared::new(&[(35, b"D"), (49, b"TICKWIRE"), (56, b"EXCHANGE")]).expect("short")
}

/// Writes an order into `buf`; the message.
#[inline]
pub(crate) fn encode_order<'b>(
    buf: &'b mut [u8],
    header: &Prepared,
    stamp: &mut Stamp,
    o: &Order,
) -> &'b [u8] {
    let mut e = Encoder::new(buf, Version::Fix44);
    e.prepared(header);
    e.unsigned(34, o.seq);
    e.timestamp(52, stamp, Nanos(o.time));
    e.text(11, &o.id);
    e.text(1, &o.account[..o.account_len as usize]);
    e.text(100, b"XNAS");
    e.char(21, b'1');
    e.text(55, &o.symbol[..o.symbol_len as usize]);
    e.char(54, o.side);
    e.timestamp(60, stamp, Nanos(o.time));
    e.unsigned(38, u64::from(o.qty));
    e.char(40, b'2');
    e.price(44, Price::from_raw(o.cents * 10_000_000));
    e.char(59, o.time_in_force);
    e.text(15, b"USD");
    e.char(47, b'A');
    e.char(204, b'0');
    e.finish().expect("the buffer is large enough")
}

/// What [`encode_order`] should write.
pub(crate) fn plain_order(o: &Order) -> Vec<u8> {
    let mut stamp = Stamp::new(Default::default());
    let time = stamp.format(Nanos(o.time)).to_vec();
    let price = format!("{}.{:02}", o.cents / 100, o.cents % 100);
    let text = |text: &str| text.as_bytes().to_vec();
    naive::encode(&[
        (35, text("D")),
        (49, text("TICKWIRE")),
        (56, text("EXCHANGE")),
        (34, text(&o.seq.to_string())),
        (52, time.clone()),
        (11, o.id.to_vec()),
        (1, o.account[..o.account_len as usize].to_vec()),
        (100, text("XNAS")),
        (21, text("1")),
        (55, o.symbol[..o.symbol_len as usize].to_vec()),
        (54, vec![o.side]),
        (60, time),
        (38, text(&o.qty.to_string())),
        (40, text("2")),
        (44, text(&price)),
        (59, vec![o.time_in_force]),
        (15, text("USD")),
        (47, text("A")),
        (204, text("0")),
    ])
}

/// ExecutionReports with the sum of what their 16 fields say: see [`sum_report`].
pub(crate) fn reports() -> Vec<(Vec<u8>, u64)> {
    let mut n = Numbers(2);
    (0..COUNT as u64)
        .map(|i| {
            let (qty, cents, avg) = (
                100 + n.below(20_000),
                100 + n.below(60_000),
                100 + n.below(60_000),
            );
            let last = 1 + n.below(qty);
            let symbol = SYMBOLS[n.below(16) as usize];
            let (seq, millis, id) = (1_000_000 + i * 97, START_S * 1_000 + i * 3, 1_000_000 + i * 7);
            let time = Stamp::new(Default::default())
                .format(Nanos(millis * 1_000_000))
                .to_vec();
            let side = 1 + n.below(2);
            let text = |tag: u32, text: String| (tag, text.into_bytes());
            let price = |tag: u32, cents: u64| text(tag, format!("{}.{:02}", cents / 100, cents % 100));
            let fields = [
                text(35, "8".into()),
                text(49, "EXCHANGE".into()),
                text(56, "TICKWIRE".into()),
                text(34, seq.to_string()),
                (52, time.clone()),
                text(37, format!("{}", 5_000_000_000 + i)),
                text(11, format!("ORD{id:013}")),
                text(17, format!("E{}", 7_000_000_000 + i)),
                text(150, "F".into()),
                text(39, if last == qty { "2" } else { "1" }.into()),
                text(1, format!("ACCOUNT-{}", 100_000 + n.below(500_000))),
                text(55, symbol.into()),
                text(54, side.to_string()),
                text(38, qty.to_string()),
                text(40, "2".into()),
                price(44, cents),
                text(59, "0".into()),
                text(32, last.to_string()),
                price(31, cents),
                text(151, (qty - last).to_string()),
                text(14, last.to_string()),
                price(6, avg),
                (60, time),
                text(30, "XNAS".into()),
                text(15, "USD".into()),
                text(58, "fill".into()),
            ];
            let numbers = seq + qty + 2 * last + (qty - last);
            let prices = (2 * cents + avg) * 10_000_000;
            let chars =
                u64::from(b'F') + u64::from(b'0') + side + u64::from(if last == qty { b'2' } else { b'1' });
            let texts = 10 + 16 + 11 + symbol.len() as u64;
            let sum = numbers + prices + chars + texts;
            (naive::encode(&fields), sum.wrapping_add(millis * 1_000_000))
        })
        .collect()
}

/// Reads the 16 fields that a trader needs: five numbers, three prices, three characters, four texts, one
/// time.
#[inline]
pub(crate) fn sum_report(m: &Message<'_>) -> Option<u64> {
    let number = |tag| m.unsigned(m.find(tag)?).ok();
    let price = |tag| Some(m.price(m.find(tag)?).ok()?.raw() as u64);
    let char = |tag| Some(u64::from(m.char(m.find(tag)?).ok()?));
    let text = |tag| Some(m.value(m.find(tag)?).len() as u64);
    let numbers = number(34)? + number(38)? + number(32)? + number(151)? + number(14)?;
    let prices = price(44)? + price(31)? + price(6)?;
    let chars = char(150)? + char(39)? + char(54)?;
    let texts = text(37)? + text(11)? + text(17)? + text(55)?;
    let time = m.timestamp(m.find(60)?).ok()?.0;
    Some((numbers + prices + chars + texts).wrapping_add(time))
}

/// MarketDataIncrementalRefresh with the sum of what their entries say: see [`sum_refresh`].
pub(crate) fn refreshes() -> Vec<(Vec<u8>, u64)> {
    let mut n = Numbers(3);
    (0..COUNT as u64)
        .map(|i| {
            let millis = START_S * 1_000 + i * 3;
            let time = Stamp::new(Default::default())
                .format(Nanos(millis * 1_000_000))
                .to_vec();
            let text = |tag: u32, text: String| (tag, text.into_bytes());
            let mut fields = vec![
                text(35, "X".into()),
                text(49, "EXCHANGE".into()),
                text(56, "TICKWIRE".into()),
                text(34, (1_000_000 + i * 97).to_string()),
                (52, time),
                text(262, "REQ1".into()),
                text(268, "4".into()),
            ];
            let mut sum = 0;
            for entry in 0..4 {
                let (action, kind) = (n.below(3), n.below(2));
                let (cents, size) = (100 + n.below(60_000), 1 + n.below(20_000));
                let symbol = SYMBOLS[n.below(16) as usize];
                fields.extend([
                    text(279, action.to_string()),
                    text(269, kind.to_string()),
                    text(278, format!("{}", 10_000_000 + i * 4 + entry)),
                    text(55, symbol.into()),
                    text(270, format!("{}.{:02}", cents / 100, cents % 100)),
                    text(271, size.to_string()),
                ]);
                sum += action + kind + 96 + 8 + symbol.len() as u64 + cents * 10_000_000 + size;
            }
            (naive::encode(&fields), sum)
        })
        .collect()
}

/// The entries of a [`refreshes`] message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MdEntries;

impl RepeatingGroup for MdEntries {
    const COUNT: u32 = 268;

    #[inline]
    fn has(tag: u32) -> bool {
        matches!(tag, 55 | 269 | 270 | 271 | 278 | 279)
    }
}

/// Reads all entries: two characters, two texts, a price and a number of each.
#[inline]
pub(crate) fn sum_refresh(m: &Message<'_>) -> Option<u64> {
    let mut sum = 0u64;
    for entry in m.group::<MdEntries>()? {
        for &f in entry.fields() {
            sum += match f.tag {
                279 | 269 => u64::from(entry.char(f).ok()?),
                278 | 55 => entry.value(f).len() as u64,
                270 => entry.price(f).ok()?.raw() as u64,
                _ => entry.unsigned(f).ok()?,
            };
        }
    }
    Some(sum)
}
