//! What a venue's decoder gives to the handler.

use crate::{Filter, NotedOrders, Rule, Seen, SubscriptionsFull};
use core::ops::Range;
use tickwire_market::{
    Counter, Counters, EventFlags, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, OrderId, Price,
    SeqNo,
};
use tickwire_wire_core::Malformed;

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

/// What happens to the stream whose messages are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// It began anew: what was said about instruments no longer holds.
    Restarted,
    /// A snapshot of the whole feed follows: what was said about orders no longer holds.
    SnapshotBegins,
    /// It was complete: the next message is this one, and of those before it that were not delivered nothing
    /// comes any more.
    SnapshotEnded(SeqNo),
    /// Something has been subscribed to in mid-session: what is first seen from this message on may have had
    /// a past.
    Subscribed(SeqNo),
    /// A message follows that was held back for joining instruments, when the decoder's clock (see
    /// [`Filter::hold`]) said this.
    Releases(u64),
    /// All held messages have been given.
    Released,
}

/// What is known of a message of a packet before any message of that packet is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Early {
    /// Nobody wants it, whatever those before it say: it is counted, and must not be decoded.
    Dropped,
    /// It is to be decoded, and says nothing of what is wanted.
    Kept,
    /// Nothing is known of those behind it until it is decoded: it may say who an instrument is.
    Changes,
}

/// What a filter in front of a channel has to know of a venue's messages beyond what every decoder says. Most
/// venues have nothing to add.
pub trait Prefiltered {
    /// The number by which messages name an instrument, where that is not the instrument's own number or
    /// symbol (MDP 3.0).
    fn venue_number(&self, id: InstrumentId) -> Option<u64> {
        let _ = id;
        None
    }

    /// Orders of wanted instruments that are added from now on are noted, up to `room`. Only where messages
    /// name orders without their instrument (PITCH).
    fn note_orders(&mut self, room: usize) {
        let _ = room;
    }

    /// What was noted.
    fn noted_orders(&mut self) -> Option<&mut NotedOrders> {
        None
    }

    /// The orders of wanted instruments that rest, where orders are noted. Not for the hot path.
    fn resting(&self, each: &mut dyn FnMut(OrderId)) {
        let _ = each;
    }

    /// The FAST templates of messages about orders, trades and statistics of instruments alone: what nobody
    /// needs while no instrument is wanted (MOEX).
    fn templates_of_instruments(&self, each: &mut dyn FnMut(u32)) {
        let _ = each;
    }
}

/// Turns a venue's messages into events. What is wanted, joins and was seen is kept by its [`Filter`]; of the
/// methods below a venue writes the first three, and those in which it differs from others.
pub trait Decoder: Prefiltered {
    /// What is wanted of the feed.
    fn filter(&self) -> &Filter;

    /// The same, to change it.
    fn filter_mut(&mut self) -> &mut Filter;

    /// Decodes one message and pushes what it says. A message that cannot be read is counted and dropped.
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    );

    /// A message of a snapshot that is loaded for joining instruments alone ([`Filter::joining_by_round`]):
    /// reads what is about them and nothing else.
    fn decode_joining<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let _ = (context, message, counters, sink);
    }

    /// Whether [`Decoder::preview`] can say which messages yield events: it must be much cheaper than
    /// decoding. Otherwise it only says which orders come, and every event waits for the next one.
    const PREVIEWS: bool = true;

    /// Whether packets are looked at by [`Decoder::preview`] before they are decoded. Where it only says
    /// which orders come it costs more than it brings while most messages are dropped.
    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        true
    }

    /// Looks at a live message of a packet of several before any of them is decoded: one that nobody wants is
    /// counted by type and instrument, and done with. [`Counter::MessagesFiltered`] is the caller's. Only
    /// where [`Decoder::PREVIEWS`]. Default: every message is decoded, and dropped then.
    #[inline(always)]
    fn early(&mut self, message: &[u8]) -> Early {
        let _ = message;
        Early::Kept
    }

    /// Looks at a message some steps before [`Decoder::decode`]: tells the sink which order it is about, and
    /// returns whether decoding it can yield an event, where [`Decoder::PREVIEWS`]. What it looks up is
    /// looked up again when it is decoded: lookups of one packet wait for memory together, decoding would
    /// wait for each.
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let _ = (message, sink);
        true
    }

    /// Where the types of most messages are counted, see [`Filter::of_type`]. Default: nowhere that is known.
    const BUSY_TYPES: Range<usize> = 0..0;

    /// Looks at the only message of a packet right before [`Decoder::decode`]: tells the sink
    /// ([`EventSink::arriving`]) which order it is about, if its bytes say so without anything being looked
    /// up. Default: nothing.
    #[inline(always)]
    fn announce<S: EventSink>(&self, message: &[u8], sink: &mut S) {
        let _ = (message, sink);
    }

    /// Whether a message says that nothing follows it in its session. Only the last message of a packet is
    /// asked about.
    #[inline(always)]
    fn ends(message: &[u8]) -> bool {
        let _ = message;
        false
    }

    /// Whether the venue's messages say that the day is over, where its framing cannot. Default: they do not.
    fn has_ended(&self) -> bool {
        false
    }

    /// Something happened to the stream. Default: numbers mean other instruments after a restart, and every
    /// book begins anew with a snapshot.
    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => self.filter_mut().forget(),
            StreamEvent::SnapshotBegins => self.filter_mut().open_all(),
            StreamEvent::SnapshotEnded(next) => self.filter_mut().go_on_at(next),
            StreamEvent::Subscribed(_) | StreamEvent::Releases(_) | StreamEvent::Released => {}
        }
    }

    /// Adds a rule of what is wanted, and names the instruments known so far of which it changes that.
    fn select(&mut self, rule: Rule, changed: &mut dyn FnMut(InstrumentId)) -> Result<(), SubscriptionsFull> {
        self.filter_mut()
            .select(rule, &mut |instrument| changed(instrument.id))
    }

    /// An instrument has become wanted in mid-session, when `next` is the channel's next message: it has
    /// missed the past, and its book is right again only when the venue's snapshot has come. `false`: it is
    /// right already, or there is none.
    fn join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        self.filter_mut().join(id, next);
        true
    }

    /// Whether an instrument's messages are wanted and its book is kept right by them: it does not join, and
    /// there is a snapshot of it to make it right by [`Decoder::join`] when it is not.
    fn is_followed(&self, id: InstrumentId) -> bool {
        self.filter().is_followed(id)
    }

    /// What 1 in the price fields of an instrument's messages stands for, where every instrument has a scale
    /// of its own and it is known.
    fn price_unit(&self, id: InstrumentId) -> Option<Price> {
        let _ = id;
        None
    }

    /// Reads what the next message of an instrument will need of tables of the decoder's own, so that it is
    /// in the caches: for a thread that waits. Default: nothing.
    fn fetch(&self, id: InstrumentId) {
        let _ = id;
    }

    /// How many messages of an instrument were seen and dropped. Messages dropped before their instrument was
    /// looked up are missing.
    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.filter().seen_of_instrument(id)
    }
}

/// Counts what cannot be read, as a whole and by kind.
#[cold]
pub fn count_malformed(counters: &mut Counters, malformed: &Malformed) {
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

/// Counts a message of which a value is impossible, or whose instrument is not known.
#[cold]
pub fn count_bad_value(counters: &mut Counters) {
    counters.bump(Counter::Malformed);
    counters.bump(Counter::MalformedValue);
}

/// Which message an event belongs to that waits for the next one.
///
/// A sink that comes behind such a wait must hear of a message right before its first event, not when it is
/// read.
#[derive(Default)]
pub struct Announced {
    /// That of the waiting event, if it is the first of its message. A flag and no `Option`, which is moved
    /// as a whole and waits until both of its parts, written a moment before, are in the cache.
    waiting: MessageType,
    is_waiting: bool,
    /// The message being read, until it has an event.
    read: MessageType,
    is_read: bool,
}

impl Announced {
    /// Another message is being read. One without events goes unannounced.
    #[inline(always)]
    pub fn read(&mut self, kind: MessageType) {
        (self.read, self.is_read) = (kind, true);
    }

    /// An event of the message being read takes the place of the waiting one, which has gone.
    #[inline(always)]
    pub fn wait(&mut self) {
        (self.waiting, self.is_waiting) = (self.read, self.is_read);
        self.is_read = false;
    }

    /// The waiting event goes.
    #[inline(always)]
    pub fn tell<S: EventSink>(&mut self, sink: &mut S) {
        if core::mem::take(&mut self.is_waiting) {
            sink.on_message(self.waiting);
        }
    }
}

/// Where events of a packet go. The last one is held back until it is known whether the match event ends
/// behind it.
pub struct Out<'a, S> {
    /// Where events go.
    pub sink: &'a mut S,
    /// The last event so far, if there is any.
    held: MarketEvent,
    is_there: bool,
    announced: Announced,
}

impl<'a, S: EventSink> Out<'a, S> {
    /// Nothing is held back yet.
    pub fn new(sink: &'a mut S) -> Out<'a, S> {
        Out {
            sink,
            held: MarketEvent::default(),
            is_there: false,
            announced: Announced::default(),
        }
    }

    /// Another message is being read.
    #[inline(always)]
    pub fn read(&mut self, kind: MessageType) {
        self.announced.read(kind);
    }

    /// Another event: the one before it goes.
    #[inline(always)]
    pub fn push(&mut self, event: MarketEvent) {
        if self.is_there {
            self.announced.tell(self.sink);
            self.sink.on_event(&self.held);
        }
        (self.held, self.is_there) = (event, true);
        self.announced.wait();
    }

    /// The last one goes, marked as such where the match event ends with it.
    #[inline(always)]
    pub fn finish(mut self, ended: bool) {
        if self.is_there {
            self.announced.tell(self.sink);
            if ended {
                self.held.flags = self.held.flags.with(EventFlags::LAST);
            }
            self.sink.on_event(&self.held);
        }
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
