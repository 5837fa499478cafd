//! What exchange and trader say to each other. The product's own formats: an ITCH 5.0 order in a MoldUDP64
//! packet or a SoupBinTCP frame one way, a FIX 4.4 order that names the message it answers the other way; no
//! session around them, as the published one had none. Or, for the floor, bytes of the same lengths that hold
//! a number and nothing else.

use serde::{Deserialize, Serialize};
use tickwire_fix::{Encoder, Frame, Index, Precision, Stamp, Version, frame, tag};
use tickwire_market::{Nanos, Price, SeqNo};
use tickwire_wire::itch50::{self, AddOrder, Message};
use tickwire_wire::layout::{Alpha, Char, Price4};
use tickwire_wire::moldudp64::{self, PacketBuilder, Payload};
use tickwire_wire::soupbintcp::{Packet, split};
use tickwire_wire::zerocopy::IntoBytes;

/// How the feed travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// A connection to the exchange.
    Tcp,
    /// A multicast group.
    Multicast,
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Multicast => "multicast",
        }
    }
}

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Speech {
    /// Market data and orders.
    Product,
    /// Numbers in bytes of the same lengths.
    Bare,
}

/// Longest message of either side, and the most that waits to be made whole.
pub(super) const MESSAGE_MAX: usize = 512;
/// Where the number is in bare bytes.
const NUMBER: std::ops::Range<usize> = 8..16;
const SESSION: [u8; 10] = *b"QUADRA    ";
const SYMBOL: &[u8; 8] = b"QUADRA  ";

/// The price in the message of that number, in units of 1e-4.
fn price_of(number: u64) -> u32 {
    1_000_000 + (number % 512) as u32 * 100
}

/// Writes the feed message of a number; gives its length. Messages count from 0, the venue's numbers from 1.
pub(super) fn put_feed(
    speech: Speech,
    transport: Transport,
    number: u64,
    now: Nanos,
    out: &mut [u8],
) -> usize {
    let add = AddOrder {
        order_ref: (number + 1).into(),
        side: Char(b'S'),
        shares: 100.into(),
        stock: Alpha(*SYMBOL),
        price: Price4::new(price_of(number)),
        ..AddOrder::at(1, now.0 % 86_400_000_000_000)
    };
    let len = match transport {
        Transport::Multicast => {
            let mut packet = PacketBuilder::new(out, SESSION, SeqNo(number + 1));
            assert!(packet.push(add.as_bytes()), "the buffer holds a packet");
            packet.finish()
        }
        Transport::Tcp => Packet::Sequenced(add.as_bytes())
            .encode(out)
            .expect("the buffer holds a frame"),
    };
    if speech == Speech::Bare {
        out[..len].fill(0);
        out[NUMBER].copy_from_slice(&number.to_le_bytes());
    }
    len
}

/// How long a feed message and an order are.
pub(super) fn lengths(transport: Transport) -> (usize, usize) {
    let mut buffer = [0; MESSAGE_MAX];
    let feed = put_feed(Speech::Product, transport, 0, Nanos(0), &mut buffer);
    let order = OrderWriter::new()
        .write(1, Price::from_4dp(price_of(1)), Nanos(0))
        .len();
    (feed, order)
}

/// The trader's ear: whole messages out of what is received.
#[derive(Debug)]
pub(super) struct FeedReader {
    transport: Transport,
    /// The number of the next message of a stream, whose frames have none.
    next: u64,
}

/// What a feed message says: the venue's number and the price.
pub(super) type Tick = (u64, Price);

impl FeedReader {
    pub(super) fn new(transport: Transport) -> FeedReader {
        FeedReader { transport, next: 1 }
    }

    /// The first message in `bytes` and how many bytes it takes; `None` if it is not whole yet.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    #[inline]
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<(Tick, usize)>, &'static str> {
        let (number, message, len) = match self.transport {
            Transport::Multicast => {
                let packet = moldudp64::parse(bytes).map_err(|_| "a packet that is no MoldUDP64")?;
                let Payload::Messages(mut blocks) = packet.payload else {
                    return Ok(None);
                };
                let message = blocks.next().ok_or("a packet without a message")?;
                (packet.seq.0, message, bytes.len())
            }
            Transport::Tcp => match split(bytes).map_err(|_| "a frame that is no SoupBinTCP")? {
                Some((Packet::Sequenced(message), len)) => {
                    self.next += 1;
                    (self.next - 1, message, len)
                }
                Some(_) => return Err("a frame that is not sequenced data"),
                None => return Ok(None),
            },
        };
        match itch50::parse(message) {
            Ok(Message::AddOrder(add)) => Ok(Some(((number, Price::from_4dp(add.price.0.get())), len))),
            _ => Err("a message that is no AddOrder"),
        }
    }
}

/// The trader's voice: FIX 4.4 NewOrderSingle.
pub(super) struct OrderWriter {
    buffer: [u8; MESSAGE_MAX],
    stamp: Stamp,
}

impl OrderWriter {
    pub(super) fn new() -> OrderWriter {
        OrderWriter {
            buffer: [0; MESSAGE_MAX],
            stamp: Stamp::new(Precision::Nanos),
        }
    }

    /// An order that takes what message `cause` offered.
    #[inline]
    pub(super) fn write(&mut self, cause: u64, price: Price, now: Nanos) -> &[u8] {
        let mut e = Encoder::new(&mut self.buffer, Version::Fix44);
        e.text(tag::MSG_TYPE, b"D");
        e.text(tag::SENDER_COMP_ID, b"TRADER");
        e.text(tag::TARGET_COMP_ID, b"QUADRA");
        e.unsigned(tag::MSG_SEQ_NUM, 10_000_000 + cause);
        e.timestamp(tag::SENDING_TIME, &mut self.stamp, now);
        e.unsigned(tag::CL_ORD_ID, 10_000_000 + cause);
        e.text(tag::SYMBOL, b"QUADRA");
        e.char(tag::SIDE, b'1');
        e.unsigned(tag::ORDER_QTY, 100);
        e.char(tag::ORD_TYPE, b'2');
        e.price(tag::PRICE, price);
        e.char(tag::TIME_IN_FORCE, b'3');
        e.unsigned(tag::CAUSE_SEQ, 10_000_000 + cause);
        e.finish().expect("the buffer holds an order")
    }
}

/// The exchange's ear: orders out of a stream.
pub(super) struct OrderReader {
    speech: Speech,
    order_len: usize,
    index: Index,
    rest: Vec<u8>,
}

impl OrderReader {
    pub(super) fn new(speech: Speech, order_len: usize) -> OrderReader {
        OrderReader {
            speech,
            order_len,
            index: Index::new(32),
            rest: Vec::with_capacity(1 << 16),
        }
    }

    /// Hands the number of the message that each whole order answers to `each`; `None` for an order that is
    /// not what it should be. What is not whole waits for the next bytes, in memory that is there.
    pub(super) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Option<u64>)) {
        // More than this means that it is not orders what is sent.
        if self.rest.len() + bytes.len() > self.rest.capacity() {
            self.rest.clear();
            return each(None);
        }
        self.rest.extend_from_slice(bytes);
        let mut done = 0;
        loop {
            let rest = &self.rest[done..];
            let (number, len) = match self.speech {
                Speech::Bare if rest.len() >= self.order_len => {
                    let number = u64::from_le_bytes(rest[NUMBER].try_into().expect("eight bytes"));
                    (Some(number), self.order_len)
                }
                Speech::Bare => break,
                Speech::Product => match frame(rest, MESSAGE_MAX) {
                    Frame::Whole(len) => (answered(&mut self.index, &rest[..len]), len),
                    Frame::Garbled { skip, .. } => (None, skip.max(1)),
                    Frame::Partial => break,
                },
            };
            each(number);
            done += len;
        }
        self.rest.drain(..done);
    }
}

/// The number of the message that an order answers, from 0, if the order is right in every respect.
fn answered(index: &mut Index, bytes: &[u8]) -> Option<u64> {
    let message = index.decode(bytes).ok()?;
    let text = |tag| message.find(tag).map(|field| message.value(field));
    let cause: u64 = std::str::from_utf8(text(tag::CAUSE_SEQ)?).ok()?.parse().ok()?;
    let number = cause.checked_sub(10_000_001)?;
    let price = message.price(message.find(tag::PRICE)?).ok()?;
    let right = message.msg_type() == b"D"
        && text(tag::SYMBOL)? == b"QUADRA"
        && text(tag::SIDE)? == b"1"
        && price == Price::from_4dp(price_of(number));
    right.then_some(number)
}
