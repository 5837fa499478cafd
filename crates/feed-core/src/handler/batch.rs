//! Messages that are delivered one after another, each with the events of its end.

use tickwire_market::{
    Counter, Counters, EventFlags, EventSink, MarketEvent, MessageType, Nanos, SeqNo, Upcoming,
};

use crate::Line;
use crate::decoder::{Context, Decoder, Early, Out};

/// The messages of one packet that are to be delivered.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) first: SeqNo,
    pub(super) count: u32,
    pub(super) skip: u32,
    pub(super) received: Nanos,
    pub(super) flags: EventFlags,
}

impl Batch {
    #[inline(always)]
    pub(super) fn new(first: SeqNo, count: u32, skip: u32, line: Line, received: Nanos) -> Batch {
        let flags = match line {
            Line::A | Line::B => EventFlags::NONE,
            Line::Retransmit => EventFlags::RETRANSMITTED,
        };
        Batch {
            first,
            count,
            skip,
            received,
            flags,
        }
    }

    /// Delivers what is new in a packet. Whether it says that nothing follows.
    #[inline(always)]
    pub(super) fn deliver<'a, D: Decoder, S: EventSink>(
        self,
        mut messages: impl Iterator<Item = &'a [u8]> + Clone,
        decoder: &mut D,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        counters.add(Counter::Messages, u64::from(self.count - self.skip));
        if self.count != 1 {
            return self.deliver_many(messages, decoder, counters, sink);
        }
        let Some(message) = messages.next() else {
            return false;
        };
        decoder.announce(message, sink);
        let context = self.context(self.first, self.flags.with(EventFlags::LAST));
        decoder.decode(context, message, counters, sink);
        D::ends(message)
    }

    #[inline(always)]
    fn context(&self, seq: SeqNo, flags: EventFlags) -> Context {
        Context {
            seq,
            received: self.received,
            flags,
        }
    }

    /// A packet of several messages is walked twice: first messages that nobody wants are dropped, the sink
    /// learns which orders come (their cache misses then overlap) and the last message with an event is
    /// found; then what is left is decoded. Where only decoding tells whether there is an event, every event
    /// waits for the next one.
    #[inline(never)]
    fn deliver_many<'a, D: Decoder, S: EventSink>(
        self,
        mut messages: impl Iterator<Item = &'a [u8]> + Clone,
        decoder: &mut D,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        for _ in 0..self.skip {
            messages.next();
        }
        let first = self.first.advance(self.skip.into());
        if !D::PREVIEWS {
            let looks_ahead = decoder.looks_ahead();
            for message in messages.clone().take_while(|_| looks_ahead) {
                decoder.preview(message, sink);
            }
            return self.decode_behind(first, looks_ahead, messages, decoder, counters, sink);
        }
        let is_open = decoder.filter().drops_any() && !self.flags.has(EventFlags::SNAPSHOT);
        let (messages, leading, mut ends) = match is_open {
            true => drop_leading(messages, decoder),
            false => (messages, 0, false),
        };
        let (first, left) = (
            first.advance(leading),
            u64::from(self.count - self.skip) - leading,
        );
        if left == 0 {
            counters.add(Counter::MessagesFiltered, leading);
            return ends;
        }
        let mut early = Dropped {
            is_open,
            ..Dropped::default()
        };
        let mut last = 0;
        for (nth, message) in messages.clone().enumerate() {
            ends = D::ends(message);
            if !early.drops(nth, message, decoder) && decoder.preview(message, sink) {
                last = nth;
            }
        }
        let dropped = early.count();
        counters.add(Counter::MessagesFiltered, leading + dropped);
        if dropped < left {
            self.decode_up_to(first, last, &early, messages, decoder, counters, sink);
        }
        ends
    }

    /// Decodes all that were not dropped; the last message with an event is known.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "it is a part of its only caller")]
    fn decode_up_to<'a, D: Decoder, S: EventSink>(
        self,
        first: SeqNo,
        last: usize,
        early: &Dropped,
        messages: impl Iterator<Item = &'a [u8]>,
        decoder: &mut D,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        for (nth, message) in messages.enumerate() {
            if early.has(nth) {
                continue;
            }
            let flags = if nth == last {
                self.flags.with(EventFlags::LAST)
            } else {
                self.flags
            };
            let seq = first.advance(nth as u64);
            decoder.decode(self.context(seq, flags), message, counters, sink);
        }
    }

    /// Decodes everything, each event told when the next one has come.
    #[inline(always)]
    fn decode_behind<'a, D: Decoder, S: EventSink>(
        self,
        first: SeqNo,
        is_told: bool,
        messages: impl Iterator<Item = &'a [u8]>,
        decoder: &mut D,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let mut held = OneBehind {
            out: Out::new(sink),
            is_told,
        };
        let (mut seq, mut ends) = (first, false);
        for message in messages {
            decoder.decode(self.context(seq, self.flags), message, counters, &mut held);
            ends = D::ends(message);
            seq = seq.next();
        }
        held.out.finish(true);
        ends
    }
}

/// Drops the messages that nobody wants up to the first one that somebody may want: where only a few
/// instruments are wanted, nearly always all of a packet, in a loop that has nothing else to do. What is
/// left, how many they were, and whether the last of them says that nothing follows.
#[inline(always)]
fn drop_leading<'a, D: Decoder, M: Iterator<Item = &'a [u8]> + Clone>(
    messages: M,
    decoder: &mut D,
) -> (M, u64, bool) {
    let (mut left, mut ahead) = (messages.clone(), messages);
    let (mut dropped, mut ends) = (0, false);
    while let Some(message) = ahead.next()
        && decoder.early(message) == Early::Dropped
    {
        ends = D::ends(message);
        left = ahead.clone();
        dropped += 1;
    }
    (left, dropped, ends)
}

/// Which of the first messages of a packet were dropped when they were first looked at.
#[derive(Default)]
struct Dropped {
    /// A bit each, of the first 64 and of those behind them: two words that live in registers.
    low: u64,
    high: u64,
    /// What is wanted is known still.
    is_open: bool,
}

impl Dropped {
    #[inline(always)]
    fn drops<D: Decoder>(&mut self, nth: usize, message: &[u8], decoder: &mut D) -> bool {
        if !self.is_open || nth >= 128 {
            return false;
        }
        match decoder.early(message) {
            Early::Dropped => {
                if nth < 64 {
                    self.low |= 1 << nth;
                } else {
                    self.high |= 1 << (nth - 64);
                }
                return true;
            }
            Early::Kept => {}
            Early::Changes => self.is_open = false,
        }
        false
    }

    /// How many there are.
    #[inline(always)]
    fn count(&self) -> u64 {
        (self.low.count_ones() + self.high.count_ones()).into()
    }

    #[inline(always)]
    fn has(&self, nth: usize) -> bool {
        match nth {
            0..64 => self.low >> nth & 1 != 0,
            64..128 => self.high >> (nth - 64) & 1 != 0,
            _ => false,
        }
    }
}

/// Holds every event back until the next one, so that the last one is known; meanwhile its order's cache
/// lines come, unless they were asked for before.
struct OneBehind<'s, S> {
    out: Out<'s, S>,
    /// The sink has heard already which orders come.
    is_told: bool,
}

impl<S: EventSink> EventSink for OneBehind<'_, S> {
    #[inline(always)]
    fn on_event(&mut self, event: &MarketEvent) {
        if !self.is_told {
            self.out.sink.upcoming(Upcoming::of(event));
        }
        self.out.push(*event);
    }

    #[inline(always)]
    fn on_message(&mut self, kind: MessageType) {
        self.out.read(kind);
    }
}
