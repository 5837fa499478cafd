//! Identifiers: venues, instruments, symbols, orders, sequence numbers, sides.

use core::fmt;

/// The side of an order or of a book. Indexes two-element arrays: `levels[side as usize]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Side {
    /// Buyers.
    #[default]
    Bid = 0,
    /// Sellers.
    Ask = 1,
}

impl Side {
    /// Both sides, for loops.
    pub const BOTH: [Side; 2] = [Side::Bid, Side::Ask];

    /// Whether price `a` is better than `b` for an order on this side: higher for bids, lower for asks.
    #[inline(always)]
    pub fn better(self, a: crate::Price, b: crate::Price) -> bool {
        // Not of an integer turns the order of all around. Nobody can foresee the side: no branch.
        let turned = -(self as i64);
        a.raw() ^ turned > b.raw() ^ turned
    }

    /// The side that a letter stands for, if it is one of these two.
    #[inline(always)]
    pub const fn of_letter(letter: u8, [bid, ask]: [u8; 2]) -> Option<Side> {
        // That it is one of them can be foreseen, and which of them nobody can. Of two comparisons the
        // compiler makes a branch each; a product is 0 where one of its factors is.
        if (letter ^ bid) as u32 * (letter ^ ask) as u32 != 0 {
            return None;
        }
        Some(if letter == ask { Side::Ask } else { Side::Bid })
    }
}

impl core::ops::Not for Side {
    type Output = Side;
    #[inline]
    fn not(self) -> Side {
        match self {
            Side::Bid => Side::Ask,
            Side::Ask => Side::Bid,
        }
    }
}

/// A market data source: one venue's feed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Venue {
    /// The Nasdaq Stock Market (XNAS).
    #[default]
    Nasdaq = 1,
    /// Nasdaq Texas, formerly Nasdaq BX (XBOS).
    NasdaqTexas = 2,
    /// Nasdaq PSX (XPSX).
    Psx = 3,
    /// Cboe BZX, formerly BATS (BATS).
    Bzx = 4,
    /// Cboe BYX, formerly BATS Y (BATY).
    Byx = 5,
    /// Cboe EDGA, formerly Direct Edge A (EDGA).
    Edga = 6,
    /// Cboe EDGX, formerly Direct Edge X (EDGX).
    Edgx = 7,
    /// New York Stock Exchange (XNYS).
    Nyse = 8,
    /// NYSE Arca (ARCX).
    Arca = 9,
    /// NYSE American (XASE).
    American = 10,
    /// NYSE National (XCIS).
    National = 11,
    /// NYSE Texas, formerly NYSE Chicago (XCHI).
    NyseTexas = 12,
    /// Consolidated Quotation System of the Consolidated Tape Association (SIAC).
    Cqs = 13,
    /// UTP Quotation Data Feed.
    Uqdf = 14,
    /// CME Globex (XCME).
    Cme = 15,
    /// Moscow Exchange (MISX).
    Moex = 16,
}

impl Venue {
    /// Every venue, in the order of the discriminants (which start at 1).
    pub const ALL: [Venue; 16] = [
        Venue::Nasdaq,
        Venue::NasdaqTexas,
        Venue::Psx,
        Venue::Bzx,
        Venue::Byx,
        Venue::Edga,
        Venue::Edgx,
        Venue::Nyse,
        Venue::Arca,
        Venue::American,
        Venue::National,
        Venue::NyseTexas,
        Venue::Cqs,
        Venue::Uqdf,
        Venue::Cme,
        Venue::Moex,
    ];

    /// The name used in configuration files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Venue::Nasdaq => "nasdaq",
            Venue::NasdaqTexas => "nasdaq-texas",
            Venue::Psx => "psx",
            Venue::Bzx => "bzx",
            Venue::Byx => "byx",
            Venue::Edga => "edga",
            Venue::Edgx => "edgx",
            Venue::Nyse => "nyse",
            Venue::Arca => "arca",
            Venue::American => "american",
            Venue::National => "national",
            Venue::NyseTexas => "nyse-texas",
            Venue::Cqs => "cqs",
            Venue::Uqdf => "uqdf",
            Venue::Cme => "cme",
            Venue::Moex => "moex",
        }
    }

    /// The venue with this configuration name.
    pub fn from_name(name: &str) -> Option<Venue> {
        Venue::ALL.into_iter().find(|v| v.name() == name)
    }

    /// The venue with this discriminant (shared memory, files, FIX cause tags).
    pub const fn from_u8(v: u8) -> Option<Venue> {
        if v >= 1 && v <= Venue::ALL.len() as u8 {
            Some(Venue::ALL[v as usize - 1])
        } else {
            None
        }
    }
}

/// An instrument within one venue's feed: a small dense integer that indexes arrays. For ITCH it is the stock
/// locate; other feeds map security ids to it at start-up. 0 means the feed as a whole (gap, status of the
/// system).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct InstrumentId(pub u32);

impl InstrumentId {
    /// Not one instrument: the whole feed.
    pub const WHOLE_FEED: InstrumentId = InstrumentId(0);

    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A venue's order reference number, unique per venue and day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct OrderId(pub u64);

/// A message sequence number of one channel. There is no `Add`: use [`SeqNo::advance`] and
/// [`SeqNo::distance_from`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// The number `count` messages later. Saturates: no venue comes near 2^64 messages, a hostile packet
    /// might say so.
    #[inline]
    pub const fn advance(self, count: u64) -> SeqNo {
        SeqNo(self.0.saturating_add(count))
    }

    /// The following number.
    #[inline]
    pub const fn next(self) -> SeqNo {
        self.advance(1)
    }

    /// How many messages lie in `[earlier, self)`; 0 when `earlier` is not earlier.
    #[inline]
    pub const fn distance_from(self, earlier: SeqNo) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An instrument's name at its venue: up to 23 bytes of printable ASCII without padding (an OSI option symbol
/// has 21).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
// In words, so that it is moved in words: as 23 bytes and one it was read again by words that overlap.
#[repr(C, align(8))]
pub struct Symbol {
    /// The text, zeros, and its length as the last byte.
    bytes: [[u8; 8]; 3],
}

const _: () = assert!(
    size_of::<Symbol>() == 24 && align_of::<Symbol>() == 8,
    "whole words"
);

impl Symbol {
    /// The symbol of no instrument.
    pub const EMPTY: Symbol = Symbol { bytes: [[0; 8]; 3] };

    /// A symbol from wire or text bytes; trailing spaces and NULs are padding and are dropped. `None` if
    /// longer than 23 bytes or with a byte that is not printable ASCII.
    pub const fn new(text: &[u8]) -> Option<Symbol> {
        let mut len = text.len();
        while len > 0 && (text[len - 1] == b' ' || text[len - 1] == 0) {
            len -= 1;
        }
        match crate::ascii::printable(text.split_at(len).0) {
            Some(words) => Some(Symbol {
                bytes: crate::ascii::bytes_of(words),
            }),
            None => None,
        }
    }

    /// The bytes, without padding.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes.as_flattened()[..self.len()]
    }

    #[inline]
    const fn len(&self) -> usize {
        self.bytes[2][7] as usize
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("Symbol::new admits printable ASCII only")
    }

    /// Whether this is the empty symbol.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Left-justified and padded with spaces to `N` bytes, `None` if it does not fit (wire encoders).
    pub fn padded<const N: usize>(&self) -> Option<[u8; N]> {
        let bytes = self.as_bytes();
        let mut out = [b' '; N];
        out.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(out)
    }
}

impl core::hash::Hash for Symbol {
    #[inline]
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write(self.bytes.as_flattened());
    }
}

impl Default for Symbol {
    fn default() -> Symbol {
        Symbol::EMPTY
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Price;

    #[test]
    fn higher_is_better_for_bids_and_lower_for_offers() {
        let prices = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX].map(Price::from_raw);
        for (i, a) in prices.into_iter().enumerate() {
            for (k, b) in prices.into_iter().enumerate() {
                assert_eq!(Side::Bid.better(a, b), i > k, "{a:?} {b:?}");
                assert_eq!(Side::Ask.better(a, b), i < k, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_side_is_one_of_two_letters() {
        for letter in 0..=u8::MAX {
            let side = match letter {
                b'B' => Some(Side::Bid),
                b'S' => Some(Side::Ask),
                _ => None,
            };
            assert_eq!(Side::of_letter(letter, *b"BS"), side, "{letter}");
        }
    }

    #[test]
    fn symbols_drop_padding_and_refuse_what_is_not_text() {
        assert_eq!(Symbol::new(b"IVOO    ").unwrap().as_str(), "IVOO");
        assert_eq!(Symbol::new(b"IVOO").unwrap().padded::<8>(), Some(*b"IVOO    "));
        assert_eq!(Symbol::new(b"IVOO").unwrap().padded::<3>(), None);
        assert_eq!(Symbol::new(b"        "), Some(Symbol::EMPTY));
        assert_eq!(Symbol::new(b"A\x01B"), None);
        assert_eq!(Symbol::new(&[b'A'; 24]), None);
    }

    #[test]
    fn venues_come_back_from_names_and_numbers() {
        for v in Venue::ALL {
            assert_eq!(Venue::from_name(v.name()), Some(v));
            assert_eq!(Venue::from_u8(v as u8), Some(v));
        }
        assert_eq!(Venue::from_u8(0), None);
        assert_eq!(Venue::from_u8(17), None);
    }
}
