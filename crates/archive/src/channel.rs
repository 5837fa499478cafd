//! A channel of an archive, as every other channel is.

use std::collections::{BTreeMap, HashMap};

use tickwire_feed_core::{
    Channel, DayUse, FeedState, Line, Pattern, Prefiltered, Rule, Seen, SubscriptionsFull,
};
use tickwire_market::{
    Counter, Counters, DynSink, EventSink, Instrument, InstrumentId, MarketEvent, MessageType, Nanos,
    PointValue, Port, SeqNo, Symbol, Upcoming, Venue,
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
    ahead: Ahead,
}

/// Packets that were read before they come: their events wait here, in a ring.
struct Ahead {
    events: Box<[MarketEvent; EVENTS_MAX]>,
    packets: [Previewed; PACKETS_MAX],
    /// Counts of what was taken out of the rings and put into them.
    events_out: usize,
    events_in: usize,
    packets_out: usize,
    packets_in: usize,
    /// Packets behind these that were shown and are read when they come.
    unread: usize,
}

#[derive(Clone, Copy)]
struct Previewed {
    events: usize,
    is_damaged: bool,
}

const EVENTS_MAX: usize = 64;
const PACKETS_MAX: usize = 32;
/// Bytes of a packet that is read ahead at most: with four bytes an event at least, half of the ring.
const PREVIEWED_MAX: usize = 4 * EVENTS_MAX / 2;

impl Ahead {
    fn new() -> Ahead {
        Ahead {
            events: Box::new([MarketEvent::default(); EVENTS_MAX]),
            packets: [Previewed {
                events: 0,
                is_damaged: false,
            }; PACKETS_MAX],
            events_out: 0,
            events_in: 0,
            packets_out: 0,
            packets_in: 0,
            unread: 0,
        }
    }

    /// Whether a packet can be read now; if not, none behind it can be before it comes.
    #[inline]
    fn has_room(&mut self, message: &[u8]) -> bool {
        let is_last_words = message.first().is_some_and(|head| head & END != 0);
        let has_room = self.unread == 0
            && !is_last_words
            && message.len() <= PREVIEWED_MAX
            && self.events_in - self.events_out <= EVENTS_MAX / 2
            && self.packets_in - self.packets_out < PACKETS_MAX;
        self.unread += usize::from(!has_room);
        has_room
    }

    #[inline]
    fn push(&mut self, event: &MarketEvent) {
        self.events[self.events_in % EVENTS_MAX] = *event;
        self.events_in += 1;
    }

    #[inline]
    fn end_packet(&mut self, packet: Previewed) {
        self.packets[self.packets_in % PACKETS_MAX] = packet;
        self.packets_in += 1;
    }

    /// The packet that comes, if it was read.
    #[inline]
    fn take(&mut self) -> Option<Previewed> {
        if self.packets_out == self.packets_in {
            self.unread = self.unread.saturating_sub(1);
            return None;
        }
        self.packets_out += 1;
        Some(self.packets[(self.packets_out - 1) % PACKETS_MAX])
    }
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
            ahead: Ahead::new(),
            facts,
        }
    }

    /// Hands the events of a packet to `each`; whether it was whole.
    #[inline]
    fn read(&mut self, now: Nanos, message: &[u8], mut each: impl FnMut(&mut Ahead, &MarketEvent)) -> bool {
        let mut bytes = Bytes(message);
        let Some(head) = bytes.byte().filter(|head| *head <= BEGINS | END) else {
            return false;
        };
        if head & BEGINS != 0 {
            self.context.reset();
        }
        let mut long = Bytes(self.padded.fill(bytes.rest()));
        loop {
            let event = match (self.padded.is_empty(), long.is_empty()) {
                (false, _) => self.padded.decode(&mut self.context, now),
                (true, false) => decode(&mut long, &mut self.context, now),
                (true, true) => return true,
            };
            let Some(event) = event else {
                return false;
            };
            if let Some(wanted) = &self.wanted
                && event.instrument != InstrumentId::WHOLE_FEED
                && wanted.get(event.instrument.index()) != Some(&true)
            {
                continue;
            }
            each(&mut self.ahead, event);
        }
    }

    #[inline]
    fn tell<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        if !self.read(now, message, |_, event| sink.on_event(event)) {
            self.counters.bump(Counter::Malformed);
        }
    }

    /// The packet that comes was read before.
    #[inline]
    fn tell_waiting<S: EventSink>(&mut self, packet: Previewed, sink: &mut S) {
        for _ in 0..packet.events {
            sink.on_event(&self.ahead.events[self.ahead.events_out % EVENTS_MAX]);
            self.ahead.events_out += 1;
        }
        if packet.is_damaged {
            self.counters.bump(Counter::Malformed);
        }
    }

    fn known(&self, id: InstrumentId) -> Option<&Known> {
        self.facts.instruments.get(*self.by_id.get(&id)?)
    }
}

/// Nothing is in front of it.
impl Prefiltered for ArchiveChannel {}

impl Channel for ArchiveChannel {
    tickwire_feed_core::through_tables!();

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

    fn preview<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        if !self.ahead.has_room(message) {
            return;
        }
        let before = self.ahead.events_in;
        let is_whole = self.read(now, message, |ahead, event| {
            sink.upcoming(Upcoming::of(event));
            ahead.push(event);
        });
        self.ahead.end_packet(Previewed {
            events: self.ahead.events_in - before,
            is_damaged: !is_whole,
        });
    }

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.last = now;
        let previewed = self.ahead.take();
        match message.first() {
            Some(head) if head & END != 0 => self.end = message.to_vec(),
            Some(_) => match previewed {
                Some(packet) => self.tell_waiting(packet, sink),
                None => self.tell(now, message, sink),
            },
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
