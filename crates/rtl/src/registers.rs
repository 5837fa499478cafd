//! The core's registers: what software writes and reads, and what it means. `hardware/rtl/core.sv` is the
//! other end.

/// Written: one clock each in the lower bits.
pub mod control {
    /// Orders may leave, if feed and book are right.
    pub const ARM: u32 = 1;
    /// None may. Wins over [`ARM`].
    pub const DISARM: u32 = 2;
    /// The stream is whole again: what was missing has come by the third line.
    pub const RESUME: u32 = 4;
    /// The book is emptied.
    pub const CLEAR: u32 = 8;
    /// The faults that were seen are forgotten.
    pub const FORGET: u32 = 16;
}

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// Where.
    pub address: u8,
    /// Its name in `core.sv`, or what is read there.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn register(address: u8, name: &'static str, meaning: &'static str) -> Register {
    Register {
        address,
        name,
        meaning,
    }
}

/// Written by software. Nothing is allowed until it is.
pub const WRITTEN: [Register; 36] = [
    register(
        0,
        "CONTROL",
        "bit 0 arms, 1 disarms, 2 resumes, 3 clears the book, 4 forgets the faults",
    ),
    register(1, "ADDRESS_A", "IPv4 group of line A, 239.1.2.3 as ef010203"),
    register(2, "ADDRESS_B", "of line B"),
    register(
        3,
        "ADDRESS_HOST",
        "of the third line, into which software sends what is missing",
    ),
    register(4, "PORT_A", "UDP port of line A"),
    register(5, "PORT_B", "of line B"),
    register(6, "PORT_HOST", "of the third line"),
    register(
        7,
        "SESSION",
        "MoldUDP64 session, characters 1 to 4, the first in the upper byte",
    ),
    register(8, "SESSION_1", "characters 5 to 8"),
    register(9, "SESSION_2", "characters 9 and 10"),
    register(10, "LOCATE", "the instrument's stock locate of the day"),
    register(
        11,
        "MARKET",
        "bits 7:0 market of operational halts (Q, B, X); bit 8: a bad FCS on line A or B stops the core",
    ),
    register(12, "BASE", "price of the ladder's first step, in 1e-4"),
    register(
        13,
        "PATIENCE",
        "clocks that a packet ahead waits for the other line before there is a gap",
    ),
    register(
        14,
        "SEQ_HIGH",
        "the next message, bits 39:32, taken with the next write of",
    ),
    register(15, "SEQ_LOW", "the next message, bits 31:0"),
    register(
        16,
        "WATCHDOG",
        "clocks without a write of ALIVE after which the core disarms; 0: none",
    ),
    register(17, "LOW", "lowest price of an order, in 1e-4"),
    register(18, "HIGH", "highest price of an order"),
    register(19, "SIZE", "largest order, in shares"),
    register(20, "POSITION", "largest position either way, in shares"),
    register(21, "TOKENS", "orders at once at most"),
    register(
        22,
        "TOKEN_CLOCKS",
        "clocks until one more may leave; 0: none comes back until armed again",
    ),
    register(23, "LEFT", "orders that may leave at all"),
    register(24, "HELD", "the position, in two's complement"),
    register(
        25,
        "HELD_ADD",
        "is added to the position: an order that was cancelled gives back what it did not trade",
    ),
    register(
        26,
        "SUM",
        "one's complement sum of pseudo header and segment of the prepared frame",
    ),
    register(27, "SEQUENCE", "TCP sequence number of the next order"),
    register(
        28,
        "USER_REF",
        "OUCH UserRefNum of the next order; FIX: the number in its ClOrdID, four bits a digit",
    ),
    register(29, "ALIVE", "software lives: see WATCHDOG"),
    register(
        30,
        "TEXT_SUM",
        "FIX: the prepared message's bytes before its CheckSum, modulo 256",
    ),
    register(
        31,
        "MESSAGE",
        "FIX: MsgSeqNum of the next order, four bits a digit",
    ),
    register(
        32,
        "SECOND",
        "FIX: the time of day, HHMMSS, four bits a digit, taken with the next write of",
    ),
    register(33, "MILLISECOND", "FIX: its milliseconds, three digits"),
    register(
        34,
        "NUMBER",
        "MOEX: the instrument's next RptSeq, after a snapshot; 0: any",
    ),
    register(
        64,
        "FRAME",
        "64 to 191: the prepared frame, four bytes each, the first in bits 7:0",
    ),
];

/// Read by software.
pub const READ: [Register; 16] = [
    register(
        0,
        "STATUS",
        "bit 0 armed, 1 feed and book right, 2 venue and instrument trade, 3 the watchdog has disarmed",
    ),
    register(1, "FAULTS", "bits as in FAULTS below, kept until forgotten"),
    register(2, "EXPECTED_HIGH", "the next message, bits 39:32"),
    register(3, "EXPECTED_LOW", "bits 31:0"),
    register(4, "EVENTS", "changes of the book"),
    register(5, "PASSED", "orders that left"),
    register(6, "LEFT", "orders that may still leave"),
    register(7, "HELD", "the position, every order that left counted as traded"),
    register(8, "TOKENS", "orders that may leave now"),
    register(9, "SEQUENCE", "TCP sequence number of the next order"),
    register(
        10,
        "USER_REF",
        "UserRefNum of the next order, or the number in its ClOrdID",
    ),
    register(11, "DUPLICATES", "packets that the other line had delivered"),
    register(
        12,
        "MESSAGE",
        "FIX: MsgSeqNum of the next order, four bits a digit",
    ),
    register(
        16,
        "BLOCKED",
        "16 to 25: orders stopped, by reason as in BLOCKS below",
    ),
    register(
        32,
        "LINE_A",
        "32 to 36: packets taken, not right, with a bad FCS, of another session, without room",
    ),
    register(40, "LINE_B", "40 to 44: of line B; 48 to 52 of the third line"),
];

/// Why the book is not right, by bit.
pub const FAULTS: [(&str, &str); 10] = [
    ("gap", "a message is missing on both lines"),
    (
        "unknown order",
        "an execution, reduction, deletion or replacement of an order that is not there",
    ),
    ("duplicate order", "an added order is there already"),
    (
        "excess",
        "more was executed or cancelled than is there, or nothing",
    ),
    (
        "store full",
        "no room for an order: both its buckets and all spare places are taken",
    ),
    (
        "price",
        "a price off the tick, or better than the window of prices",
    ),
    ("blind", "the best of a side lies outside the window of prices"),
    (
        "bad FCS",
        "a damaged frame, where the core is told to stop at one",
    ),
    ("stray order", "an order found no room in its queue"),
    (
        "number",
        "MOEX: the instrument's own numbers, RptSeq, have a hole",
    ),
];

/// Why an order was stopped, in the order in which the gate looks.
pub const BLOCKS: [(&str, &str); 10] = [
    ("disarmed", "the core is not armed"),
    ("stopped", "feed or book is not right"),
    ("not trading", "venue or instrument does not trade"),
    ("size", "nothing, or more than SIZE"),
    (
        "no reference",
        "no book with two sides that do not touch was seen before",
    ),
    ("collar", "below LOW or above HIGH"),
    ("duplicate", "the same order of the same message"),
    ("position", "POSITION would be passed if everything traded"),
    ("tokens", "too many at once"),
    ("none left", "LEFT is used up"),
];

/// The addresses of [`WRITTEN`] by name.
pub mod address {
    /// See [`super::control`].
    pub const CONTROL: u8 = 0;
    /// Three, one a line.
    pub const ADDRESS: u8 = 1;
    /// Three, one a line.
    pub const PORT: u8 = 4;
    /// Three.
    pub const SESSION: u8 = 7;
    /// The instrument.
    pub const LOCATE: u8 = 10;
    /// The market of halts, and whether a bad FCS stops.
    pub const MARKET: u8 = 11;
    /// The window of prices.
    pub const BASE: u8 = 12;
    /// Clocks.
    pub const PATIENCE: u8 = 13;
    /// The next message.
    pub const SEQ_HIGH: u8 = 14;
    /// The next message.
    pub const SEQ_LOW: u8 = 15;
    /// Clocks.
    pub const WATCHDOG: u8 = 16;
    /// In 1e-4.
    pub const LOW: u8 = 17;
    /// In 1e-4.
    pub const HIGH: u8 = 18;
    /// Shares.
    pub const SIZE: u8 = 19;
    /// Shares.
    pub const POSITION: u8 = 20;
    /// Orders.
    pub const TOKENS: u8 = 21;
    /// Clocks.
    pub const TOKEN_CLOCKS: u8 = 22;
    /// Orders.
    pub const LEFT: u8 = 23;
    /// Shares.
    pub const HELD: u8 = 24;
    /// Shares.
    pub const HELD_ADD: u8 = 25;
    /// Of the prepared frame.
    pub const SUM: u8 = 26;
    /// TCP.
    pub const SEQUENCE: u8 = 27;
    /// OUCH.
    pub const USER_REF: u8 = 28;
    /// The watchdog's food.
    pub const ALIVE: u8 = 29;
    /// Of the prepared message.
    pub const TEXT_SUM: u8 = 30;
    /// MsgSeqNum.
    pub const MESSAGE: u8 = 31;
    /// The time of day.
    pub const SECOND: u8 = 32;
    /// Its milliseconds.
    pub const MILLISECOND: u8 = 33;
    /// RptSeq.
    pub const NUMBER: u8 = 34;
    /// 128 of them.
    pub const FRAME: u8 = 64;
}
