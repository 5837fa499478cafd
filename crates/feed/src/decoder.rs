//! What a venue's decoder gives to the handler, and the subscription filter all of them share.

use alloc::{boxed::Box, vec, vec::Vec};
use tickwire_market::{
    Counter, Counters, EventFlags, EventSink, Instrument, InstrumentId, Nanos, SeqNo, Symbol, Venue,
};
use tickwire_wire::Malformed;

/// Where a message stands.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Its sequence number; 0 in a snapshot.
    pub seq: SeqNo,
    /// When its packet came.
    pub received: Nanos,
    /// What its events carry: last of the packet, retransmitted, snapshot.
    pub flags: EventFlags,
}

/// Turns a venue's messages into events.
pub trait Decoder {
    /// The venue whose messages these are.
    fn venue(&self) -> Venue;

    /// Decodes one message and pushes what it says. A message that cannot be read is counted and dropped.
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    );

    /// Whether [`Decoder::preview`] is of use: it must be much cheaper than decoding. Otherwise packets are walked once, and
    /// the sink hears of an order one event before it.
    const PREVIEWS: bool = true;

    /// Looks at a message some steps before [`Decoder::decode`]: tells the sink which order it is about, and returns
    /// whether decoding it can yield an event. The filter's first bytes are all it may read besides the order's number.
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let _ = (message, sink);
        true
    }

    /// Whether a message says that nothing follows it in its session. Only the last message of a packet is asked about.
    #[inline(always)]
    fn ends(message: &[u8]) -> bool {
        let _ = message;
        false
    }

    /// The stream began anew: what was said about instruments no longer holds.
    fn restarted(&mut self);

    /// A snapshot follows: what was said about orders no longer holds.
    fn snapshot_begins(&mut self) {}

    /// Whether the venue's messages say that the day is over, where its framing cannot. Default: they do not.
    fn has_ended(&self) -> bool {
        false
    }

    /// What is known about an instrument.
    fn instrument(&self, id: InstrumentId) -> Option<&Instrument>;
}

/// Counts what cannot be read, as a whole and by kind.
#[cold]
pub(crate) fn count_malformed(counters: &mut Counters, malformed: &Malformed) {
    counters.bump(Counter::Malformed);
    counters.bump(match malformed {
        Malformed::Length { .. } | Malformed::Trailing { .. } => Counter::MalformedLength,
        Malformed::UnknownType(_) | Malformed::UnknownTemplate(_) => Counter::MalformedType,
        Malformed::Truncated { .. } => Counter::MalformedTruncated,
        Malformed::OutOfRange { .. } => Counter::MalformedRange,
        Malformed::Checksum { .. } => Counter::MalformedChecksum,
        _ => Counter::MalformedValue,
    });
}

/// Counts a message of which a value is impossible, or whose instrument nobody knows.
#[cold]
pub(crate) fn count_bad_value(counters: &mut Counters) {
    counters.bump(Counter::Malformed);
    counters.bump(Counter::MalformedValue);
}

/// Which instruments are wanted: by number for the filter, by name for those whose number is not known yet.
///
/// The filter is one bit per instrument (8 KiB for every number of ITCH), tested before a message is decoded.
#[derive(Clone, Debug)]
pub struct Subscriptions {
    bits: Box<[u64]>,
    all: bool,
    /// Sorted. Grows on subscription only, which is never on the way of a packet.
    symbols: Vec<Symbol>,
}

impl Subscriptions {
    /// Everything (`None`) or these symbols, for instruments numbered below `instruments_max`.
    pub fn new(instruments_max: usize, symbols: Option<&[Symbol]>) -> Subscriptions {
        let words = instruments_max.div_ceil(64).max(1);
        let mut wanted = symbols.map(<[Symbol]>::to_vec).unwrap_or_default();
        wanted.sort_unstable();
        wanted.dedup();
        let mut subscriptions = Subscriptions {
            bits: vec![0; words].into(),
            all: symbols.is_none(),
            symbols: wanted,
        };
        subscriptions.forget_numbers();
        subscriptions
    }

    /// Whether messages of this instrument pass. Number 0, the feed as a whole, always does.
    #[inline(always)]
    pub fn has(&self, id: InstrumentId) -> bool {
        match self.bits.get(id.index() / 64) {
            Some(word) => word >> (id.index() % 64) & 1 != 0,
            None => false,
        }
    }

    /// Whether an instrument of this name is wanted.
    pub fn wants(&self, symbol: &Symbol) -> bool {
        self.all || self.symbols.binary_search(symbol).is_ok()
    }

    /// Wants a symbol from now on; `id` if its number is known already.
    pub fn subscribe(&mut self, symbol: Symbol, id: Option<InstrumentId>) {
        if let Err(at) = self.symbols.binary_search(&symbol) {
            self.symbols.insert(at, symbol);
        }
        if let Some(id) = id {
            self.set(id, true);
        }
    }

    /// No longer wants a symbol. Out of "everything", it is only this number that is left out.
    pub fn unsubscribe(&mut self, symbol: &Symbol, id: Option<InstrumentId>) {
        if let Ok(at) = self.symbols.binary_search(symbol) {
            self.symbols.remove(at);
        }
        if let Some(id) = id {
            self.set(id, false);
        }
    }

    /// The directory says that this number is this symbol.
    pub fn learn(&mut self, id: InstrumentId, symbol: &Symbol) {
        if !self.all {
            self.set(id, self.wants(symbol));
        }
    }

    /// Numbers of a new day mean other instruments.
    pub fn forget_numbers(&mut self) {
        self.bits.fill(if self.all { u64::MAX } else { 0 });
        self.bits[0] |= 1;
    }

    fn set(&mut self, id: InstrumentId, wanted: bool) {
        let bit = 1 << (id.index() % 64);
        match self.bits.get_mut(id.index() / 64) {
            Some(word) if wanted => *word |= bit,
            Some(word) if id != InstrumentId::WHOLE_FEED => *word &= !bit,
            _ => {}
        }
    }
}

/// How many messages of a kind were seen and how many the filter dropped; the rest passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Seen in sequence, wanted or not.
    pub seen: u64,
    /// Dropped undecoded because nobody subscribed.
    pub filtered: u64,
}

impl Seen {
    /// Decoded.
    pub fn passed(self) -> u64 {
        self.seen - self.filtered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_counted_once_as_a_whole_and_once_by_kind() {
        let mut counters = Counters::default();
        let kinds = [
            (Malformed::truncated(8, 3), Counter::MalformedTruncated),
            (Malformed::length(0, 8, 9), Counter::MalformedLength),
            (Malformed::Trailing { extra: 1 }, Counter::MalformedLength),
            (Malformed::UnknownType(0), Counter::MalformedType),
            (Malformed::UnknownTemplate(0), Counter::MalformedType),
            (
                Malformed::BadValue { offset: 0, value: 0 },
                Counter::MalformedValue,
            ),
            (Malformed::OutOfRange { offset: 0 }, Counter::MalformedRange),
            (
                Malformed::Checksum { expected: 0, have: 1 },
                Counter::MalformedChecksum,
            ),
        ];
        for (at, (malformed, kind)) in kinds.iter().enumerate() {
            let before = counters.get(*kind);
            count_malformed(&mut counters, malformed);
            assert_eq!(counters.get(*kind), before + 1, "{malformed}");
            assert_eq!(counters.get(Counter::Malformed), at as u64 + 1);
        }
        count_bad_value(&mut counters);
        assert_eq!(counters.get(Counter::Malformed), kinds.len() as u64 + 1);
        assert_eq!(counters.get(Counter::MalformedValue), 2);
    }
}
