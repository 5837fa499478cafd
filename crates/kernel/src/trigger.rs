//! The pre-armed order: an order that the program at the hook sends by itself, when a market data message
//! says what was waited for. The process prepares the whole frame, makes every check while it arms, and is
//! told afterwards; nothing of it runs between the message and the order.
//!
//! ```text
//!  TRIGGER  0 WORD u64      8 KILL u64     16 NEXT u64     24 session u64  32 session u64
//!          40 mask u64     48 mask u64     56 channel u64  64 first u64    72 swap u64
//!          80 size u64     88 kind u64     96 mask u64    104 out u64     112 length u64
//!         120 sum u64     128 stamp u64   136 has stamp u64               144 DEADLINE u64
//!         152 tail u64
//!         192 four tests: end, shift, mask, bias, low, span u64 each
//!         384 counters    448 fired at u64               456 by number u64
//!         512 the order's frame, 512 bytes
//!        1024 KEPT u64   1032 metadata, then the packet from Ethernet on
//! ```
//! **One shot.** `WORD` is 0, or a turn in its upper bits and a [`State`] in the lower eight. The program
//! fires only if the exchange of *armed* for *claimed* succeeds, so once for each turn, whatever other CPUs
//! and the process do meanwhile. The process takes the order back by exchanging *armed* for 0. `KILL` is for
//! a kill switch: one store, and nothing is sent until it is 0 again, armed or not. `DEADLINE` is for a
//! process that hangs or was stopped: it moves on what it is alive by, and behind it nothing is sent.
//!
//! **Only what is new, and nothing behind a gap.** The program looks at packets in sequence from `NEXT` on.
//! Copies of the other line and late packets are not looked at. A packet ahead of a gap, or of another
//! session, ends the arming ([`State::Gap`]): a book that misses something is no ground for an order. Behind
//! an armed filter the channel's own word says what is in sequence.
//!
//! **The packet is not lost.** The order is written over the frame that caused it, which then leaves. Before
//! that the packet is copied to `KEPT`, with the metadata that it would have had; the reader takes it from
//! there in its place in the order of deliveries.
//!
//! **Where the frame grows.** At its front, by up to 192 bytes; beyond that at its end, in a driver only:
//! behind the driver (generic) Linux 6.18 sets the end of a packet that was made longer or shorter there 14
//! bytes too far, and between virtual interfaces the receiver's TCP puts the next segment's bytes behind
//! that.
//!
//! **The segment** is the one that the process has prepared, byte for byte. Of TCP's numbers the program
//! writes the timestamp alone (RFC 7323), which a peer wants to grow, and mends the checksum. The
//! acknowledgement is the one of arming: an old one is valid.
//!
//! ```
//! use tickwire_kernel::trigger::{Condition, itch};
//! // Somebody offers instrument 17 at 25.00 or less, 100 or more of it; prices are ITCH's, in 1/10,000.
//! let condition = Condition::new(itch::ADD_ORDER, 17)
//!     .and(itch::ADD_ORDER_SIDE, u64::from(b'S')..=u64::from(b'S'))?
//!     .and(itch::ADD_ORDER_PRICE, 0..=250_000)?
//!     .and(itch::ADD_ORDER_SHARES, 100..=u64::MAX)?;
//! # assert!(!condition.holds(b""));
//! # Ok::<(), tickwire_kernel::trigger::ConditionError>(())
//! ```

use crate::asm::{Atomic, Cond, Label, MapId, Op, Reg, Size, action, helper};
use crate::filter::{Framing, Generator, PAYLOAD, stack};
use crate::frame::{HEADERS, PAYLOAD_MAX};
use crate::layout;
use crate::segment::{ETHERNET, IP_TCP, STAMPS};
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use core::fmt;
use core::mem::{offset_of, size_of};
use core::ops::RangeInclusive;

/// The pre-armed order of a program: an array with one value.
pub const TRIGGER: MapId = MapId(5);

/// Offset of turn and [`State`].
pub const WORD: usize = 0;
/// Offset of the kill switch: nothing is sent while it is not 0.
pub const KILL: usize = 8;
/// Offset of the first message number that is looked at; moved on by the program where the channel is not
/// armed.
pub const NEXT: usize = 16;
const SESSION: usize = 24;
const SESSION_MASK: usize = 40;
const CHANNEL: usize = 56;
/// Where a packet's first message begins.
const FIRST: usize = 64;
/// All ones where numbers are big-endian.
const SWAP: usize = 72;
/// The shortest message, with its length.
const SIZE: usize = 80;
const KIND: usize = 88;
const KIND_MASK: usize = 96;
/// Interface to leave by, 0: the one that the packet came by.
const OUT: usize = 104;
const LENGTH: usize = 112;
const SUM: usize = 120;
const STAMP: usize = 128;
const HAS_STAMP: usize = 136;
/// Offset of the time behind which nothing is sent, nanoseconds of `CLOCK_MONOTONIC`: moved on by a process
/// that is alive.
pub const DEADLINE: usize = 144;
/// By how many bytes the frame may be made longer at its end.
const TAIL: usize = 152;
const TESTS_AT: usize = 192;
const TEST: usize = 48;
/// Offset of the counters, see [`Shot`].
pub const COUNTERS: usize = 384;
/// Offset of when it fired, nanoseconds of `CLOCK_MONOTONIC`.
pub const FIRED_AT: usize = 448;
/// Offset of the first message number of the packet that it fired by.
pub const FIRED_BY: usize = 456;
/// Offset of the order's frame.
pub const ORDER: usize = 512;
/// Bytes of the longest frame.
pub const ORDER_MAX: usize = 512;
/// Offset of the state of the packet that was kept: 0, or its length with [`KEPT_FULL`].
pub const KEPT: usize = 1024;
/// Offset of the kept packet: its metadata ([`layout::META_SIZE`] bytes), then the frame without VLAN tags.
pub const KEPT_PACKET: usize = KEPT + 8;
/// The bit of [`KEPT`] that says that there is a packet; its length, metadata not counted, stands above bit
/// 8.
pub const KEPT_FULL: u64 = 1;
/// Bytes of the value of [`TRIGGER`].
pub const VALUE: usize = KEPT + 2048;

const FRAME_AT: usize = KEPT_PACKET + layout::META_SIZE;
const _: () = assert!(TESTS_AT + TESTS * TEST <= COUNTERS);
const _: () = assert!(FRAME_AT + HEADERS + PAYLOAD_MAX <= VALUE);

/// Tests of a condition, the instrument's among them.
pub const TESTS: usize = 4;

/// By how many bytes a frame is made longer at its front, at most: what drivers leave there is 256 bytes, of
/// which the kernel takes up to 64 for itself.
const HEAD_MAX: i32 = 192;

/// What became of what was armed: the lower eight bits of [`WORD`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// It waits.
    Armed = 1,
    /// The program is sending it at this moment.
    Claimed = 2,
    /// It was sent.
    Fired = 3,
    /// It was not sent and will not be: packets are missing, or it is another session.
    Gap = 4,
    /// It was not sent and will not be: the frame that should have carried it could not be made so long.
    NoRoom = 5,
}

impl State {
    /// What the word says; `None`: nothing is armed.
    pub const fn of(word: u64) -> Option<State> {
        match word as u8 {
            1 => Some(State::Armed),
            2 => Some(State::Claimed),
            3 => Some(State::Fired),
            4 => Some(State::Gap),
            5 => Some(State::NoRoom),
            _ => None,
        }
    }

    /// The word of a turn in this state. Turns are below 2^56, each another one than before.
    pub const fn word(self, turn: u64) -> u64 {
        turn << 8 | self as u64
    }
}

/// What the program counts about pre-armed orders, in the order of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Shot {
    /// Packets that were looked at while armed.
    Looked,
    /// Orders sent.
    Fired,
    /// Armings ended by missing packets or another session.
    Gap,
    /// Packets not looked at, as they have more messages than are looked at.
    Long,
    /// Conditions that held while the kill switch was on.
    Killed,
    /// Orders not sent because the frame could not be made so long.
    NoRoom,
    /// Conditions that held behind the deadline.
    Late,
}

impl Shot {
    /// All of them, in the order of the map.
    pub const ALL: [Shot; 7] = [
        Shot::Looked,
        Shot::Fired,
        Shot::Gap,
        Shot::Long,
        Shot::Killed,
        Shot::NoRoom,
        Shot::Late,
    ];

    /// What it is called in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Shot::Looked => "looked",
            Shot::Fired => "fired",
            Shot::Gap => "gap",
            Shot::Long => "long",
            Shot::Killed => "killed",
            Shot::NoRoom => "no_room",
            Shot::Late => "late",
        }
    }

    /// Offset in the map.
    pub const fn offset(self) -> usize {
        COUNTERS + self as usize * 8
    }
}

/// A message type that a condition can be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    framing: Framing,
    kind: u16,
    /// Bytes of the message.
    size: u16,
    index_at: u8,
    index_bytes: u8,
}

impl Message {
    /// How its packets are made up.
    pub const fn framing(&self) -> Framing {
        self.framing
    }
}

/// A number at a fixed place of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    message: Message,
    at: u8,
    bytes: u8,
    is_signed: bool,
}

impl Field {
    /// The message that it is of.
    pub const fn message(&self) -> Message {
        self.message
    }

    /// The largest value, as a condition has it.
    const fn mask(bytes: u8) -> u64 {
        u64::MAX >> (64 - 8 * bytes as u32)
    }

    /// What is added to it so that it compares like an unsigned one.
    const fn bias(&self) -> u64 {
        if self.is_signed {
            1 << (8 * self.bytes as u32 - 1)
        } else {
            0
        }
    }
}

macro_rules! messages {
    ($framing:ident, $wire:ident, $index:ident: $bytes:literal;
     $($message:ident = $kind:ident { $($field:ident = $name:ident: $width:literal $sign:literal,)* })*) => {
        $(
            #[doc = concat!("`", stringify!($kind), "`.")]
            pub const $message: Message = Message {
                framing: Framing::$framing,
                kind: $wire::$kind::KIND as u16,
                size: size_of::<$wire::$kind>() as u16,
                index_at: offset_of!($wire::$kind, $index) as u8,
                index_bytes: $bytes,
            };
            $(
                #[doc = concat!("`", stringify!($name), "` of `", stringify!($kind), "`.")]
                pub const $field: Field = Field {
                    message: $message,
                    at: offset_of!($wire::$kind, $name) as u8,
                    bytes: $width,
                    is_signed: $sign,
                };
            )*
        )*
    };
}

/// Messages of ITCH 5.0. Prices are in 1/10,000, instruments are stock locates.
pub mod itch {
    use super::{Field, Framing, Message, offset_of, size_of};
    use tickwire_wire::itch50;

    messages! { Itch, itch50, locate: 2;
        ADD_ORDER = AddOrder {
            ADD_ORDER_SIDE = side: 1 false, ADD_ORDER_SHARES = shares: 4 false, ADD_ORDER_PRICE = price: 4 false,
        }
        ADD_ORDER_MPID = AddOrderMpid {
            ADD_ORDER_MPID_SIDE = side: 1 false, ADD_ORDER_MPID_SHARES = shares: 4 false,
            ADD_ORDER_MPID_PRICE = price: 4 false,
        }
        ORDER_EXECUTED = OrderExecuted {
            ORDER_EXECUTED_SHARES = executed_shares: 4 false,
        }
        ORDER_EXECUTED_WITH_PRICE = OrderExecutedWithPrice {
            ORDER_EXECUTED_WITH_PRICE_SHARES = executed_shares: 4 false,
            ORDER_EXECUTED_WITH_PRICE_PRICE = execution_price: 4 false,
        }
        TRADE = Trade {
            TRADE_SHARES = shares: 4 false, TRADE_PRICE = price: 4 false,
        }
    }
}

/// Messages of the NYSE Integrated Feed (XDP). Prices are scaled as the symbol's mapping says, instruments
/// are symbol indices.
pub mod nyse {
    use super::{Field, Framing, Message, offset_of, size_of};
    use tickwire_wire::xdp;

    messages! { Nyse, xdp, symbol_index: 4;
        ADD_ORDER = AddOrder {
            ADD_ORDER_SIDE = side: 1 false, ADD_ORDER_VOLUME = volume: 4 false, ADD_ORDER_PRICE = price: 4 true,
        }
        MODIFY_ORDER = ModifyOrder {
            MODIFY_ORDER_VOLUME = volume: 4 false, MODIFY_ORDER_PRICE = price: 4 true,
        }
        ORDER_EXECUTION = OrderExecution {
            ORDER_EXECUTION_VOLUME = volume: 4 false, ORDER_EXECUTION_PRICE = price: 4 true,
        }
        NON_DISPLAYED_TRADE = NonDisplayedTrade {
            NON_DISPLAYED_TRADE_VOLUME = volume: 4 false, NON_DISPLAYED_TRADE_PRICE = price: 4 true,
        }
    }
}

/// Why a condition cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConditionError {
    /// The field is another message's.
    OtherMessage,
    /// There are [`TESTS`] tests already.
    TooMany,
    /// No value of the field lies between these, or the instrument's number is longer than its field.
    Never,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionError::OtherMessage => {
                f.write_str("the field is of another message than the condition is about")
            }
            ConditionError::TooMany => {
                write!(f, "a condition has {} tests beside the instrument's", TESTS - 1)
            }
            ConditionError::Never => f.write_str("the field never has such a value"),
        }
    }
}

impl core::error::Error for ConditionError {}

/// One field within bounds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Test {
    /// Behind the field's last byte.
    end: u8,
    bytes: u8,
    bias: u64,
    low: u64,
    span: u64,
}

/// What a message has to say: its type, its instrument, and up to three of its numbers within bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    message: Message,
    tests: [Test; TESTS],
    count: usize,
}

impl Condition {
    /// Any message of this type about the instrument, by its number in the feed.
    pub const fn new(message: Message, instrument: u32) -> Condition {
        let none = Test {
            end: 0,
            bytes: 0,
            bias: 0,
            low: 0,
            span: 0,
        };
        let of_instrument = Test {
            end: message.index_at + message.index_bytes,
            bytes: message.index_bytes,
            low: instrument as u64,
            ..none
        };
        Condition {
            message,
            tests: [of_instrument, none, none, none],
            count: 1,
        }
    }

    /// And the field lies within these bounds, both included, in the units of the wire.
    ///
    /// # Errors
    /// [`ConditionError`].
    pub fn and(self, field: Field, bounds: RangeInclusive<u64>) -> Result<Condition, ConditionError> {
        let mask = Field::mask(field.bytes);
        let most = if field.is_signed { mask >> 1 } else { mask };
        let (low, high) = (*bounds.start(), (*bounds.end()).min(most));
        if low > high {
            return Err(ConditionError::Never);
        }
        // Negative values lie below all of these.
        self.with(field, low + field.bias(), high + field.bias())
    }

    /// The same for bounds that may be negative.
    ///
    /// # Errors
    /// [`ConditionError`].
    pub fn and_signed(self, field: Field, bounds: RangeInclusive<i64>) -> Result<Condition, ConditionError> {
        let mask = Field::mask(field.bytes);
        let (least, most) = match field.is_signed {
            true => (-((mask >> 1) as i64) - 1, (mask >> 1) as i64),
            false => (0, i64::try_from(mask).unwrap_or(i64::MAX)),
        };
        let (low, high) = ((*bounds.start()).max(least), (*bounds.end()).min(most));
        if low > high {
            return Err(ConditionError::Never);
        }
        let biased = |value: i64| value.cast_unsigned().wrapping_add(field.bias()) & mask;
        self.with(field, biased(low), biased(high))
    }

    fn with(mut self, field: Field, low: u64, high: u64) -> Result<Condition, ConditionError> {
        if field.message != self.message {
            return Err(ConditionError::OtherMessage);
        }
        let test = self.tests.get_mut(self.count).ok_or(ConditionError::TooMany)?;
        *test = Test {
            end: field.at + field.bytes,
            bytes: field.bytes,
            bias: field.bias(),
            low,
            span: high - low,
        };
        self.count += 1;
        Ok(self)
    }

    /// The message that it is about.
    pub const fn message(&self) -> Message {
        self.message
    }

    fn is_big_endian(&self) -> bool {
        self.message.framing == Framing::Itch
    }

    /// Whether a message, from its first byte on, says so: what the program decides, in plain words.
    pub fn holds(&self, message: &[u8]) -> bool {
        // The numbers of NYSE messages count from their length on, ITCH's from their type on.
        let is_kind = match self.message.framing {
            Framing::Itch => message
                .first()
                .is_some_and(|kind| u16::from(*kind) == self.message.kind),
            _ => message
                .get(2..4)
                .is_some_and(|kind| kind == self.message.kind.to_le_bytes()),
        };
        is_kind
            && message.len() >= usize::from(self.message.size)
            && self.tests[..self.count].iter().all(|test| {
                let end = usize::from(test.end);
                let Some(bytes) = message.get(end - usize::from(test.bytes)..end) else {
                    return false;
                };
                let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
                let value = match self.is_big_endian() {
                    true => bytes.iter().fold(0, append),
                    false => bytes.iter().rev().fold(0, append),
                };
                let value = value ^ test.bias;
                (test.low..=test.low + test.span).contains(&value)
            })
    }
}

/// Why an order cannot be prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// Its frame is longer than [`ORDER_MAX`], or no TCP segment with a payload.
    Order(usize),
    /// The instrument's number, or the condition's message, cannot be on a channel of this kind.
    Framing,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Order(length) => {
                write!(
                    f,
                    "a frame of {length} bytes cannot be pre-armed: {ORDER_MAX} is the most"
                )
            }
            SetupError::Framing => f.write_str("the channel has no such messages"),
        }
    }
}

impl core::error::Error for SetupError {}

/// An order and what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup<'a> {
    /// What it waits for.
    pub condition: &'a Condition,
    /// On which channel of the filter.
    pub channel: u16,
    /// The session of [`Framing`]; without meaning for NYSE.
    pub session: [u64; 2],
    /// The first message number that is looked at: the one that the channel's reader expects.
    pub next: u64,
    /// The whole frame, as [`crate::segment::Template::write`] makes it; with timestamps, its own is 0.
    pub order: &'a [u8],
    /// What a timestamp is ahead of the milliseconds of the monotonic clock, where the connection has
    /// timestamps.
    pub stamp_offset: Option<u32>,
    /// The interface by which it leaves, 0: the one by which market data comes.
    pub out: u32,
    /// Behind this time nothing is sent, nanoseconds of `CLOCK_MONOTONIC`.
    pub deadline_ns: u64,
    /// By how many bytes the frame may be made longer at its end: in the driver as many as it has room for,
    /// behind it none, see [`crate::trigger`].
    pub tail_max: u32,
}

impl Setup<'_> {
    /// Writes everything but [`WORD`], which is 0 meanwhile and arms when it is stored afterwards, as words
    /// by their offsets.
    ///
    /// # Errors
    /// [`SetupError`]; nothing was written.
    pub fn put(&self, mut store: impl FnMut(usize, u64)) -> Result<(), SetupError> {
        let headers = ETHERNET + IP_TCP + if self.stamp_offset.is_some() { STAMPS } else { 0 };
        let length = self.order.len();
        if length <= headers || length > ORDER_MAX {
            return Err(SetupError::Order(length));
        }
        let message = &self.condition.message;
        // What stands in front of a message's first byte, its length, is counted as part of it.
        let (first, before, session_mask) = match message.framing {
            Framing::Itch => (crate::walk::itch::HEADER, 2, [u64::MAX, 0xFFFF]),
            Framing::Nyse => (crate::walk::nyse::HEADER, 0, [0, 0]),
            _ => return Err(SetupError::Framing),
        };
        store(NEXT, self.next);
        for (at, mask) in session_mask.into_iter().enumerate() {
            store(SESSION + 8 * at, self.session[at] & mask);
            store(SESSION_MASK + 8 * at, mask);
        }
        store(CHANNEL, self.channel.into());
        store(FIRST, first as u64);
        store(
            SWAP,
            if self.condition.is_big_endian() {
                u64::MAX
            } else {
                0
            },
        );
        store(SIZE, u64::from(message.size) + before);
        // As the two bytes behind the length are loaded.
        let (kind, mask) = match message.framing {
            Framing::Itch => ([message.kind as u8, 0], [0xFF, 0]),
            _ => (message.kind.to_le_bytes(), [0xFF, 0xFF]),
        };
        store(KIND, u16::from_ne_bytes(kind).into());
        store(KIND_MASK, u16::from_ne_bytes(mask).into());
        store(OUT, self.out.into());
        store(DEADLINE, self.deadline_ns);
        store(TAIL, self.tail_max.into());
        store(LENGTH, length as u64);
        // The frame's sum is the complement of its checksum; its own timestamp is 0 in it.
        let checksum = u16::from_ne_bytes([self.order[50], self.order[51]]);
        store(SUM, u64::from(!checksum));
        store(STAMP, self.stamp_offset.unwrap_or(0).into());
        store(HAS_STAMP, self.stamp_offset.is_some().into());
        for (at, test) in self.condition.tests.iter().enumerate() {
            let is_used = at < self.condition.count;
            let unused_bits = if is_used {
                64 - 8 * u64::from(test.bytes)
            } else {
                0
            };
            // The eight bytes up to the field's end: of a little-endian number they are shifted, of a
            // big-endian one the upper ones are masked.
            let (shift, mask) = match (is_used, self.condition.is_big_endian()) {
                (false, _) => (0, 0),
                (true, true) => (0, u64::MAX >> unused_bits),
                (true, false) => (unused_bits, u64::MAX),
            };
            let end = if is_used { u64::from(test.end) + before } else { 0 };
            let words = [end, shift, mask, test.bias, test.low, test.span];
            for (word, value) in words.into_iter().enumerate() {
                store(TESTS_AT + at * TEST + word * 8, value);
            }
        }
        for (at, chunk) in self.order.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            store(ORDER + at * 8, u64::from_ne_bytes(word));
        }
        Ok(())
    }
}

/// The length of the packet that is kept, if there is one.
pub const fn kept(state: u64) -> Option<usize> {
    let length = (state >> 8) as usize;
    match state & 0xFF == KEPT_FULL && length >= HEADERS && length <= HEADERS + PAYLOAD_MAX {
        true => Some(length),
        false => None,
    }
}

/// Places on the stack that the walks need no longer.
const ARMED_WORD: i16 = stack::INDEX;
const NOW: i16 = stack::OFFSET;
const REST: i16 = stack::CODE;

impl Generator<'_> {
    /// Whether an order can be pre-armed on some channel.
    pub(crate) fn arms(&self) -> bool {
        self.spec.trigger && self.uses(|framing| matches!(framing, Framing::Itch | Framing::Nyse))
    }

    /// Whether a packet that has taken its place among the deliveries is what a pre-armed order waits for;
    /// `deliver` if not.
    pub(crate) fn shoot(&mut self, deliver: Label) {
        let (look, own, gap, next, step, fire) = (
            self.a.label(),
            self.a.label(),
            self.a.label(),
            self.a.label(),
            self.a.label(),
            self.a.label(),
        );
        let a = &mut self.a;
        a.map_value(R6, TRIGGER, 0);
        a.load(Size::D, R5, R6, WORD as i16);
        a.copy(R1, R5);
        a.alu_value(Op::And, R1, 0xFF);
        a.jump_if_value(Cond::Ne, R1, State::Armed as i32, deliver);
        a.store(Size::D, R10, ARMED_WORD, R5);
        a.load(Size::D, R1, R6, CHANNEL as i16);
        a.load(Size::W, R2, R9, layout::NUMBER as i16);
        a.jump_if(Cond::Ne, R1, R2, deliver);
        // Both framings' headers are as long at least.
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD) + 16);
        a.jump_if(Cond::Gt, R1, R8, deliver);
        for (at, size) in [(0, Size::D), (8, Size::H)] {
            a.load(size, R1, R7, PAYLOAD + at);
            a.load(Size::D, R2, R6, SESSION_MASK as i16 + at);
            a.alu(Op::And, R1, R2);
            a.load(Size::D, R2, R6, SESSION as i16 + at);
            a.jump_if(Cond::Ne, R1, R2, gap);
        }
        a.load(Size::D, R1, R10, stack::SEQ);
        a.load(Size::D, R2, R6, NEXT as i16);
        a.load(Size::D, R3, R10, stack::WORD);
        a.jump_if_value(Cond::SignedGe, R3, 0, own);
        // Behind an armed filter, which leaves out what nobody wants: its word says what is in sequence.
        a.jump_if(Cond::Lt, R1, R2, deliver);
        a.set_wide(R4, layout::NEXT_MASK);
        a.alu(Op::And, R3, R4);
        a.jump_if(Cond::Lt, R1, R3, deliver);
        a.jump_if(Cond::Gt, R1, R3, gap);
        a.jump(look);

        a.bind(own);
        a.jump_if(Cond::Gt, R1, R2, gap);
        a.load(Size::D, R3, R10, stack::END);
        a.jump_if(Cond::Le, R3, R2, deliver);
        // Other packets of the same messages.
        a.jump_if(Cond::Ne, R1, R2, gap);
        a.copy(R0, R2);
        a.atomic(Atomic::CompareExchange, R6, NEXT as i16, R3);
        a.jump_if(Cond::Ne, R0, R2, deliver);

        a.bind(look);
        self.count_shot(Shot::Looked);
        let long = self.a.label();
        let messages_max = self.spec.messages_max;
        let a = &mut self.a;
        // Not from its place on the stack: of that the verifier knows a bound for every turn of the filter's
        // walk, and would follow each of them from here on.
        a.load(Size::D, R2, R10, stack::END);
        a.load(Size::D, R1, R10, stack::SEQ);
        a.alu(Op::Sub, R2, R1);
        a.jump_if_value(Cond::Gt, R2, messages_max.into(), long);
        a.load(Size::D, R1, R6, FIRST as i16);
        a.alu_value(Op::And, R1, 0xFF);
        a.set(R3, 0);

        a.bind(next);
        a.jump_if(Cond::Ge, R3, R2, deliver);
        a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, deliver);
        a.copy(R4, R7);
        a.alu(Op::Add, R4, R1);
        self.within(4, deliver);
        let a = &mut self.a;
        a.load(Size::H, R0, R4, PAYLOAD);
        // In the other order, and then without the two bytes of the length itself; no jump, which the
        // verifier would follow both ways for every message.
        a.copy(R5, R0);
        a.from_big_endian(R5, 16);
        a.alu_value(Op::Add, R5, 2);
        self.swapped();
        let a = &mut self.a;
        a.alu_value(Op::And, R0, 0x1_FFFF);
        a.jump_if_value(Cond::Lt, R0, 4, deliver);
        a.alu(Op::Add, R1, R0);
        a.load(Size::D, R5, R6, SIZE as i16);
        a.jump_if(Cond::Lt, R0, R5, step);
        a.load(Size::H, R0, R4, PAYLOAD + 2);
        a.load(Size::D, R5, R6, KIND_MASK as i16);
        a.alu(Op::And, R0, R5);
        a.load(Size::D, R5, R6, KIND as i16);
        a.jump_if(Cond::Ne, R0, R5, step);
        for test in 0..TESTS {
            self.test(TESTS_AT + test * TEST, step);
        }
        self.a.jump(fire);

        self.a.bind(step);
        self.a.alu_value(Op::Add, R3, 1);
        self.a.jump(next);

        self.a.bind(long);
        self.count_shot(Shot::Long);
        self.a.jump(deliver);

        self.a.bind(gap);
        self.end_arming(State::Gap, Shot::Gap, deliver);

        self.a.bind(fire);
        self.fire(deliver);
    }

    /// R0 = R5 where numbers are big-endian; changes R5 and the stack.
    fn swapped(&mut self) {
        let a = &mut self.a;
        a.alu(Op::Xor, R5, R0);
        a.store(Size::D, R10, NOW, R2);
        a.load(Size::D, R2, R6, SWAP as i16);
        a.alu(Op::And, R5, R2);
        a.alu(Op::Xor, R0, R5);
        a.load(Size::D, R2, R10, NOW);
    }

    /// One test of the message at R4, `step` if it fails; changes R0 and R5.
    fn test(&mut self, at: usize, step: Label) {
        let at = |word: usize| (at + word * 8) as i16;
        let a = &mut self.a;
        a.load(Size::D, R5, R6, at(0));
        a.alu_value(Op::And, R5, 0xFF);
        a.alu(Op::Add, R5, R4);
        a.copy(R0, R5);
        a.alu_value(Op::Add, R0, PAYLOAD.into());
        a.jump_if(Cond::Gt, R0, R8, step);
        a.load(Size::D, R0, R5, PAYLOAD - 8);
        a.copy(R5, R0);
        a.from_big_endian(R5, 64);
        self.swapped();
        let a = &mut self.a;
        a.load(Size::D, R5, R6, at(1));
        a.alu_value(Op::And, R5, 63);
        a.alu(Op::Rsh, R0, R5);
        for (word, op) in [(2, Op::And), (3, Op::Xor), (4, Op::Sub)] {
            a.load(Size::D, R5, R6, at(word));
            a.alu(op, R0, R5);
        }
        a.load(Size::D, R5, R6, at(5));
        a.jump_if(Cond::Gt, R0, R5, step);
    }

    /// One more of a kind; changes R1.
    fn count_shot(&mut self, what: Shot) {
        self.a.set(R1, 1);
        self.a.atomic(Atomic::Add, R6, what.offset() as i16, R1);
    }

    /// What is armed will not be sent; changes R0 to R2.
    fn end_arming(&mut self, state: State, shot: Shot, target: Label) {
        let a = &mut self.a;
        a.load(Size::D, R0, R10, ARMED_WORD);
        a.copy(R2, R0);
        a.copy(R1, R0);
        a.alu_value(Op::Xor, R1, State::Armed as i32 ^ state as i32);
        a.atomic(Atomic::CompareExchange, R6, WORD as i16, R1);
        a.jump_if(Cond::Ne, R0, R2, target);
        self.count_shot(shot);
        self.a.jump(target);
    }

    /// The condition holds.
    fn fire(&mut self, deliver: Label) {
        let (killed, failed, bare) = (self.a.label(), self.a.label(), self.a.label());
        let late = self.a.label();
        let a = &mut self.a;
        a.load(Size::D, R1, R6, KILL as i16);
        a.jump_if_value(Cond::Ne, R1, 0, killed);
        a.call(helper::KTIME);
        a.store(Size::D, R10, NOW, R0);
        a.load(Size::D, R1, R6, DEADLINE as i16);
        a.jump_if(Cond::Gt, R0, R1, late);
        a.load(Size::D, R0, R10, ARMED_WORD);
        a.copy(R2, R0);
        a.copy(R1, R0);
        a.alu_value(Op::Xor, R1, State::Armed as i32 ^ State::Claimed as i32);
        a.atomic(Atomic::CompareExchange, R6, WORD as i16, R1);
        a.jump_if(Cond::Ne, R0, R2, deliver);
        self.keep(failed);
        self.stamp(bare);
        self.a.bind(bare);
        self.resize(failed);
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::CONTEXT);
        a.set(R2, 0);
        a.copy(R3, R6);
        a.alu_value(Op::Add, R3, ORDER as i32);
        a.load(Size::D, R4, R6, LENGTH as i16);
        a.jump_if_value(Cond::Eq, R4, 0, failed);
        a.jump_if_value(Cond::Gt, R4, ORDER_MAX as i32, failed);
        a.call(helper::STORE_BYTES);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.load(Size::D, R1, R10, NOW);
        a.store(Size::D, R6, FIRED_AT as i16, R1);
        a.load(Size::D, R1, R10, stack::SEQ);
        a.store(Size::D, R6, FIRED_BY as i16, R1);
        self.count_shot(Shot::Fired);
        self.claimed_becomes(State::Fired);
        let back = self.a.label();
        let a = &mut self.a;
        a.load(Size::D, R1, R6, OUT as i16);
        a.jump_if_value(Cond::Eq, R1, 0, back);
        a.set(R2, 0);
        a.call(helper::REDIRECT);
        a.exit();
        a.bind(back);
        a.set(R0, action::TX);
        a.exit();

        self.a.bind(killed);
        self.count_shot(Shot::Killed);
        self.a.jump(deliver);

        self.a.bind(late);
        self.count_shot(Shot::Late);
        self.a.jump(deliver);

        // The reader has the packet from where it is kept.
        self.a.bind(failed);
        self.count_shot(Shot::NoRoom);
        self.claimed_becomes(State::NoRoom);
        self.a.set(R0, action::DROP);
        self.a.exit();
    }

    /// The word is ours alone: from claimed to what became of it; changes R1.
    fn claimed_becomes(&mut self, state: State) {
        let a = &mut self.a;
        a.load(Size::D, R1, R10, ARMED_WORD);
        a.alu_value(Op::Xor, R1, State::Armed as i32 ^ state as i32);
        a.atomic(Atomic::Exchange, R6, WORD as i16, R1);
    }

    /// The packet and its metadata to where the reader finds them.
    fn keep(&mut self, failed: Label) {
        let a = &mut self.a;
        let meta = |offset: usize| (KEPT_PACKET + offset) as i16;
        a.store_value(Size::H, R6, meta(0), layout::META_MAGIC.into());
        a.load(Size::W, R1, R9, layout::NUMBER as i16);
        a.store(Size::H, R6, meta(2), R1);
        a.load(Size::D, R1, R10, stack::DELIVERY);
        a.store(Size::W, R6, meta(4), R1);
        a.load(Size::D, R1, R10, NOW);
        a.store(Size::D, R6, meta(8), R1);
        a.load(Size::D, R1, R10, stack::WORD);
        a.store(Size::D, R6, meta(16), R1);
        a.store_value(Size::D, R6, meta(24), 0);
        a.load(Size::D, R1, R10, stack::CONTEXT);
        a.load(Size::W, R4, R1, 0);
        a.copy(R2, R7);
        a.alu(Op::Sub, R2, R4);
        a.copy(R3, R6);
        a.alu_value(Op::Add, R3, FRAME_AT as i32);
        // The datagram's length as its header has it: a framing may have made the limit smaller.
        a.load(Size::H, R4, R7, 38);
        a.from_big_endian(R4, 16);
        a.jump_if_value(Cond::Lt, R4, 8, failed);
        a.jump_if_value(Cond::Gt, R4, 8 + PAYLOAD_MAX as i32, failed);
        a.alu_value(Op::Add, R4, HEADERS as i32 - 8);
        a.store(Size::D, R10, REST, R4);
        a.call(helper::LOAD_BYTES);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.load(Size::D, R1, R10, REST);
        a.alu_value(Op::Lsh, R1, 8);
        a.alu_value(Op::Or, R1, KEPT_FULL as i32);
        a.atomic(Atomic::Exchange, R6, KEPT as i16, R1);
    }

    /// The order's timestamp and checksum, if the connection has timestamps; `bare` if not.
    fn stamp(&mut self, bare: Label) {
        let a = &mut self.a;
        a.load(Size::D, R1, R6, HAS_STAMP as i16);
        a.jump_if_value(Cond::Eq, R1, 0, bare);
        a.load(Size::D, R1, R10, NOW);
        a.alu_value(Op::Div, R1, 1_000_000);
        a.load(Size::D, R2, R6, STAMP as i16);
        a.alu(Op::Add, R1, R2);
        // Now as the frame has it; the sum is one of numbers in that order, too (RFC 1071).
        a.from_big_endian(R1, 32);
        a.store(Size::W, R6, ORDER as i16 + 58, R1);
        a.load(Size::D, R2, R6, SUM as i16);
        a.alu(Op::Add, R1, R2);
        for _ in 0..3 {
            a.copy(R2, R1);
            a.alu_value(Op::Rsh, R2, 16);
            a.alu_value(Op::And, R1, 0xFFFF);
            a.alu(Op::Add, R1, R2);
        }
        a.alu_value(Op::Xor, R1, 0xFFFF);
        a.store(Size::H, R6, ORDER as i16 + 50, R1);
    }

    /// The frame becomes as long as the order, at its front; what there is no room for there, at its end,
    /// where it may.
    fn resize(&mut self, failed: Label) {
        let (shorter, front, done) = (self.a.label(), self.a.label(), self.a.label());
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::CONTEXT);
        a.load(Size::W, R3, R1, 0);
        a.load(Size::W, R2, R1, 4);
        a.alu(Op::Sub, R2, R3);
        a.load(Size::D, R4, R6, LENGTH as i16);
        a.jump_if(Cond::Ge, R2, R4, shorter);
        a.alu(Op::Sub, R4, R2);
        a.store_value(Size::D, R10, REST, 0);
        a.jump_if_value(Cond::Le, R4, HEAD_MAX, front);
        a.copy(R2, R4);
        a.alu_value(Op::Sub, R2, HEAD_MAX);
        a.load(Size::D, R3, R6, TAIL as i16);
        a.jump_if(Cond::Gt, R2, R3, failed);
        a.store(Size::D, R10, REST, R2);
        a.set(R4, HEAD_MAX);
        a.bind(front);
        a.set(R2, 0);
        a.alu(Op::Sub, R2, R4);
        a.call(helper::ADJUST_HEAD);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.load(Size::D, R2, R10, REST);
        a.jump_if_value(Cond::Eq, R2, 0, done);
        a.load(Size::D, R1, R10, stack::CONTEXT);
        a.call(helper::ADJUST_TAIL);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.jump(done);

        a.bind(shorter);
        a.alu(Op::Sub, R2, R4);
        a.call(helper::ADJUST_HEAD);
        a.jump_if_value(Cond::Ne, R0, 0, failed);
        a.bind(done);
    }
}
