//! What software writes into a core before it may send: the feed and its lines, the limits of its orders, the
//! prepared order with its numbers. Each gives its writes in turn, address and value, to be made as they
//! stand: [`crate::registers`] says what each means.

use tickwire_market::Nanos;

use crate::frame::{Prepared, clock_digits, decimal_digits};
use crate::registers::address;

/// The feed, as software knows it each morning and after a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feed {
    /// IPv4 group and UDP port of the lines A, B and software's own.
    pub lines: [([u8; 4], u16); 3],
    /// MoldUDP64's session; of MOEX anything.
    pub session: [u8; 10],
    /// ITCH's stock locate of the instrument.
    pub locate: u32,
    /// The market whose operational halts count: `Q`, `B` or `X`.
    pub market: u8,
    /// Whether a damaged frame on line A or B stops the core.
    pub stops_at_damage: bool,
    /// Price of the first of the ladder's 4,096 steps, in 1e-4.
    pub base: u32,
    /// Clocks that a packet ahead waits for the other line.
    pub patience: u16,
    /// The next message, below 2^40.
    pub next: u64,
}

impl Feed {
    /// What is written.
    pub fn writes(&self) -> Vec<(u8, u32)> {
        let session = |from: usize, length: usize| {
            let characters = &self.session[from..from + length];
            characters
                .iter()
                .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
        };
        let mut writes = Vec::new();
        for (line, (group, port)) in (0..).zip(self.lines) {
            writes.push((address::ADDRESS + line, u32::from_be_bytes(group)));
            writes.push((address::PORT + line, port.into()));
        }
        writes.extend([
            (address::SESSION, session(0, 4)),
            (address::SESSION + 1, session(4, 4)),
            (address::SESSION + 2, session(8, 2)),
            (address::LOCATE, self.locate),
            (
                address::MARKET,
                u32::from(self.market) | u32::from(self.stops_at_damage) << 8,
            ),
            (address::BASE, self.base),
            (address::PATIENCE, self.patience.into()),
            (address::SEQ_HIGH, (self.next >> 32) as u32),
            (address::SEQ_LOW, self.next as u32),
        ]);
        writes
    }
}

/// What a core may send. All of it is 0 after a reset, with which nothing leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Lowest and highest price of an order, in 1e-4.
    pub collar: (u32, u32),
    /// Largest order, in shares or lots.
    pub size: u32,
    /// Largest position either way.
    pub position: u32,
    /// The position now.
    pub held: i32,
    /// Orders at once at most.
    pub tokens: u16,
    /// Clocks until one more may leave; 0: none comes back until the core is armed again.
    pub token_clocks: u32,
    /// Orders that may leave at all until this is written again.
    pub orders: u32,
    /// Clocks without a sign of software's life after which the core disarms; 0: none.
    pub watchdog: u32,
}

impl Limits {
    /// What is written.
    pub fn writes(&self) -> [(u8, u32); 9] {
        [
            (address::LOW, self.collar.0),
            (address::HIGH, self.collar.1),
            (address::SIZE, self.size),
            (address::POSITION, self.position),
            (address::TOKENS, self.tokens.into()),
            (address::TOKEN_CLOCKS, self.token_clocks),
            (address::LEFT, self.orders),
            (address::HELD, self.held.cast_unsigned()),
            (address::WATCHDOG, self.watchdog),
        ]
    }
}

/// The numbers of the next order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// TCP sequence number of its segment.
    pub sequence: u32,
    /// OUCH's UserRefNum; of FIX the number in ClOrdID, up to 99,999,999.
    pub user_ref: u32,
    /// FIX: MsgSeqNum, up to 99,999,999.
    pub message: u32,
    /// The orders are FIX, whose numbers are written as decimal digits.
    pub is_decimal: bool,
}

impl Numbers {
    /// What is written.
    pub fn writes(&self) -> [(u8, u32); 3] {
        let number = |n| if self.is_decimal { decimal_digits(n) } else { n };
        [
            (address::SEQUENCE, self.sequence),
            (address::USER_REF, number(self.user_ref)),
            (address::MESSAGE, decimal_digits(self.message)),
        ]
    }
}

/// The prepared order: what is written of it, one word after the other.
pub fn order_writes(order: &Prepared) -> impl Iterator<Item = (u8, u32)> + '_ {
    let words = (0..).zip(order.bytes.chunks(4)).map(|(n, word)| {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        (address::FRAME + n, u32::from_le_bytes(bytes))
    });
    let sums = [
        (address::SUM, order.sum.into()),
        (address::TEXT_SUM, order.text_sum.into()),
    ];
    sums.into_iter().chain(words)
}

/// The time of day: what is written of it as often as the venue wants it.
pub fn clock_writes(time: Nanos) -> [(u8, u32); 2] {
    let (second, milli) = clock_digits(time);
    [(address::SECOND, second), (address::MILLISECOND, milli)]
}

/// The number that a register of FIX has as decimal digits, four bits each.
pub fn from_digits(digits: u32) -> u32 {
    (0..8).fold(0, |number, at| {
        number + (digits >> (4 * at) & 0xf) * 10_u32.pow(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_has_a_register_each() {
        let feed = Feed {
            lines: [([239, 1, 2, 3], 5_000), ([239, 1, 2, 4], 5_001), ([0; 4], 0)],
            session: *b"TICKWIRE01",
            locate: 7,
            market: b'Q',
            stops_at_damage: true,
            base: 400_000,
            patience: 1_000,
            next: 0x12_3456_789a,
        };
        let writes = feed.writes();
        for written in [
            (1, 0xef01_0203),
            (5, 5_001),
            (7, u32::from_be_bytes(*b"TICK")),
            (9, u32::from(b'0') << 8 | u32::from(b'1')),
            (11, 0x151),
            (14, 0x12),
            (15, 0x3456_789a),
        ] {
            assert!(writes.contains(&written), "{written:x?}: {writes:x?}");
        }
        let limits = Limits {
            collar: (1, 2),
            size: 3,
            position: 4,
            held: -5,
            tokens: 6,
            token_clocks: 7,
            orders: 8,
            watchdog: 9,
        };
        assert!(limits.writes().contains(&(24, 0xffff_fffb)));
        let of_limits = limits.writes();
        let all = writes.iter().chain(&of_limits);
        for (address, _) in all {
            let is_known = crate::registers::WRITTEN
                .iter()
                .any(|register| register.address == *address);
            assert!(is_known, "{address}");
        }
    }

    #[test]
    fn digits_go_both_ways() {
        for number in [0, 7, 4_096, 99_999_999] {
            assert_eq!(from_digits(decimal_digits(number)), number);
        }
        let numbers = Numbers {
            sequence: 1,
            user_ref: 12,
            message: 34,
            is_decimal: true,
        };
        assert_eq!(numbers.writes(), [(27, 1), (28, 0x12), (31, 0x34)]);
    }
}
