//! A channel of an archive, as every other channel is.

use std::collections::{BTreeMap, HashMap};

use tickwire_feed_core::{
    Channel, DayUse, FeedState, Line, Pattern, Prefiltered, Rule, Seen, SubscriptionsFull,
};
use tickwire_market::{
    Counter, Counters, DynSink, EventSink, Instrument, InstrumentId, MessageType, Nanos, PointValue, Port,
    SeqNo, Symbol, Venue,
};

use crate::codec::{Bytes, Context, Padded, decode};
use crate::file::{BEGINS, ChannelFacts, END, Known};

/// Events of an archive out of its packets ([`Channel::on_message`]); nothing else comes, and nothing is
/// asked for.
pub struct ArchiveChannel {
    facts: ChannelFacts,
    by_id: HashMap<InstrumentId, usize>,
    by_symbol: BTreeMap<Symbol, InstrumentId>,
    /// Which instruments are wanted; `None`: all.
    wanted: Option<Vec<bool>>,
    context: Context,
    padded: Padded,
    counters: Counters,
    last: Nanos,
    /// The packet of what the channel said when nothing came any more.
    end: Vec<u8>,
}

impl ArchiveChannel {
    /// With what its archive says of it; `symbols`: those that are wanted, all of them unless given.
    pub fn new(facts: ChannelFacts, symbols: Option<&[Symbol]>) -> ArchiveChannel {
        let by_id = facts
            .instruments
            .iter()
            .enumerate()
            .map(|(at, known)| (known.instrument.id, at));
        let by_symbol = facts
            .instruments
            .iter()
            .map(|known| (known.instrument.symbol, known.instrument.id));
        let by_symbol: BTreeMap<_, _> = by_symbol.collect();
        let wanted = symbols.map(|symbols| {
            let mut wanted = vec![false; facts.room[0].min(1 << 20) as usize];
            for id in symbols.iter().filter_map(|symbol| by_symbol.get(symbol)) {
                if let Some(place) = wanted.get_mut(id.index()) {
                    *place = true;
                }
            }
            wanted
        });
        ArchiveChannel {
            by_id: by_id.collect(),
            by_symbol,
            wanted,
            context: Context::new(facts.venue),
            padded: Padded::new(),
            counters: Counters::default(),
            last: Nanos::ZERO,
            end: Vec::new(),
            facts,
        }
    }

    #[inline]
    fn tell<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        let mut bytes = Bytes(message);
        let Some(head) = bytes.byte().filter(|head| *head <= BEGINS | END) else {
            return self.counters.bump(Counter::Malformed);
        };
        if head & BEGINS != 0 {
            self.context.reset();
        }
        let mut long = Bytes(self.padded.fill(bytes.rest()));
        loop {
            let event = match (self.padded.is_empty(), long.is_empty()) {
                (false, _) => self.padded.decode(&mut self.context, now),
                (true, false) => decode(&mut long, &mut self.context, now),
                (true, true) => return,
            };
            let Some(event) = event else {
                return self.counters.bump(Counter::Malformed);
            };
            if let Some(wanted) = &self.wanted
                && event.instrument != InstrumentId::WHOLE_FEED
                && wanted.get(event.instrument.index()) != Some(&true)
            {
                continue;
            }
            sink.on_event(event);
        }
    }

    fn known(&self, id: InstrumentId) -> Option<&Known> {
        self.facts.instruments.get(*self.by_id.get(&id)?)
    }
}

/// Nothing is in front of it.
impl Prefiltered for ArchiveChannel {}

impl Channel for ArchiveChannel {
    fn venue(&self) -> Venue {
        self.facts.venue
    }

    fn on_datagram<S: EventSink>(&mut self, _: Nanos, _: Port, _: Line, _: &[u8], _: &mut S) {
        self.counters.bump(Counter::Malformed);
    }

    fn seen_up_to(&mut self, _: Nanos, _: SeqNo) {}

    fn changes(&self) -> u64 {
        // Everybody in an archive is known from its first message on.
        0
    }

    fn prefiltered(&self) -> &dyn Prefiltered {
        self
    }

    fn prefiltered_mut(&mut self) -> &mut dyn Prefiltered {
        self
    }

    fn alive(&mut self, _: Nanos) {}

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.last = now;
        match message.first() {
            Some(head) if head & END != 0 => self.end = message.to_vec(),
            Some(head) => {
                if head & BEGINS != 0 {
                    // The next archive goes on.
                    self.end.clear();
                }
                self.tell(now, message, sink);
            }
            None => self.counters.bump(Counter::Malformed),
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        let end = std::mem::take(&mut self.end);
        if !end.is_empty() {
            self.tell(now, &end, &mut DynSink(sink));
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    fn server(&self, _: Port) -> usize {
        0
    }

    fn set_servers(&mut self, _: Port, _: u8) {}

    fn day_use(&self) -> DayUse {
        DayUse::default()
    }

    fn restore_day_use(&mut self, _: DayUse) {}

    fn is_given_up(&self) -> bool {
        false
    }

    fn state(&self) -> FeedState {
        self.facts.state
    }

    fn next_seq(&self) -> SeqNo {
        self.facts.next
    }

    fn last_packet(&self) -> Nanos {
        self.last
    }

    fn counters(&self) -> Counters {
        let mut all = self.facts.counters.clone();
        all.merge(&self.counters);
        all
    }

    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.known(id).map(|known| &known.instrument)
    }

    fn point_value(&self, id: InstrumentId) -> Option<PointValue> {
        self.known(id)?.point
    }

    fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.by_symbol.get(symbol).copied()
    }

    fn instruments(&self, each: &mut dyn FnMut(&Instrument)) {
        self.facts
            .instruments
            .iter()
            .for_each(|known| each(&known.instrument));
    }

    fn subscribe(&mut self, _: Nanos, _: &Pattern, _: &mut dyn EventSink) -> Result<u32, SubscriptionsFull> {
        Ok(0)
    }

    fn unsubscribe(
        &mut self,
        _: Nanos,
        _: &Pattern,
        _: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        Ok(0)
    }

    fn subscriptions(&self, _: &mut dyn FnMut(&Rule)) {}

    fn kinds(&self, _: &mut dyn FnMut(MessageType, Seen)) {}

    fn seen_of_instrument(&self, _: InstrumentId) -> Seen {
        Seen::default()
    }
}
