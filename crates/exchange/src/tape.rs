//! What everything that publishes has in common: a [`Tape`] is told of the day and of the book, a
//! [`Publisher`] turns that into datagrams of one channel and serves its recovery.

use alloc::vec::Vec;

use tickwire_market::{Contract, InstrumentId, Level, Nanos, Port, Price, SeqNo, Side, Symbol, Venue};

use tickwire_persist::Persist;

use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::order::Listener;
use crate::rules::Rules;

/// Takes one message of a feed.
pub trait MessageSink {
    /// The message's bytes, without framing.
    fn message(&mut self, bytes: &[u8]);
}

impl<F: FnMut(&[u8])> MessageSink for F {
    fn message(&mut self, bytes: &[u8]) {
        self(bytes)
    }
}

/// An instrument of the simulated venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Its number: 1 and up without holes. ITCH's stock locate.
    pub id: InstrumentId,
    /// Up to eight characters.
    pub symbol: Symbol,
    /// What it is.
    pub contract: Contract,
    /// How it trades; ticks are multiples of 0.0001.
    pub rules: Rules,
    /// Where its fair value starts, a multiple of the tick.
    pub start: Price,
    /// What people multiply its prices with to read them: above 0, one where prices are shown as they are
    /// sent. CME's DisplayFactor (9787); no other feed has one.
    pub display_factor: Price,
    /// Of an option: how far its fair value follows its underlying's, in thousandths; 0: it has one of its
    /// own.
    pub delta_milli: i16,
}

impl Listing {
    /// Shares with a tick of 0.01.
    pub fn equity(id: InstrumentId, symbol: Symbol, start: Price) -> Listing {
        Listing {
            id,
            symbol,
            contract: Contract::Equity,
            rules: Rules::default(),
            start,
            display_factor: Price::from_raw(Price::ONE_RAW),
            delta_milli: 0,
        }
    }

    /// The smallest price step where its price starts.
    pub fn tick(&self) -> Price {
        self.rules.ticks.at(self.start)
    }
}

/// The venue's clock reading of a message: nanoseconds since midnight where the venue is.
pub type VenueTime = u64;

/// A point of the trading day, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Milestone {
    /// The first message; definitions follow.
    StartOfMessages,
    /// Everything is defined; orders may come.
    StartOfSystemHours,
    /// Continuous trading begins.
    StartOfMarketHours,
    /// Continuous trading ends; closing messages follow.
    EndOfMarketHours,
    /// No more orders.
    EndOfSystemHours,
    /// The last message.
    EndOfMessages,
}

/// Hears of the day and of every change of the books.
pub trait Tape: Listener {
    /// Sets the time of what follows. Time does not go back: an earlier one is ignored.
    fn set_time(&mut self, at: VenueTime);

    /// A point of the day is reached.
    fn milestone(&mut self, milestone: Milestone);

    /// An instrument will trade.
    fn define(&mut self, listing: &Listing);

    /// How many messages were published.
    fn total(&self) -> u64;
}

/// On which lines a datagram goes out, a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineSet(pub u8);

impl LineSet {
    /// The first line.
    pub const A: LineSet = LineSet(1);
    /// The second line.
    pub const B: LineSet = LineSet(2);
    /// Both.
    pub const BOTH: LineSet = LineSet(3);

    /// Whether all lines of `other` are in it.
    pub const fn has(self, other: LineSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A datagram to send to a multicast port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Where.
    pub port: Port,
    /// On which of its lines.
    pub lines: LineSet,
    /// Number of its first message. Of live datagrams only; 0 otherwise.
    pub first: SeqNo,
    /// The number after its last message; equal to `first` for heartbeats and ends of session.
    pub next: SeqNo,
    /// The UDP payload.
    pub bytes: &'a [u8],
}

/// What a participant of a consolidated feed quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParticipantQuote {
    /// The plan's letter.
    pub participant: u8,
    /// By side; no quantity: nothing.
    pub sides: [Level; 2],
}

/// One channel of a venue's feed with everything that serves it, for whoever owns the sockets; the
/// counterpart of `tickwire_feed::Channel`. Bytes and time in, bytes out.
///
/// A channel is made for its own instruments and hears of no others. Snapshots are taken from the engine,
/// which is handed to the calls that may need one.
pub trait Publisher: Tape + Persist {
    /// Whose feed it is.
    fn venue(&self) -> Venue;

    /// The day begins: venue times count from `midnight` (nanoseconds since the epoch).
    fn open(&mut self, midnight: Nanos);

    /// Does what is due: loops, heartbeats. Call it when [`Publisher::poll_timeout`] says so.
    fn handle_timeout(&mut self, now: Nanos, engine: &Engine) {
        let _ = (now, engine);
    }

    /// A venue's book of an instrument has changed, another's perhaps: for consolidated feeds, which look at
    /// its engine.
    fn quoted(&mut self, venue: Venue, instrument: InstrumentId, engine: &Engine) {
        let _ = (venue, instrument, engine);
    }

    /// When [`Publisher::handle_timeout`] or [`Publisher::poll_datagram`] next has something to do.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// The next datagram to send, if any is due, before any trouble on the lines.
    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>>;

    /// The number of the first message of a live datagram and the one after its last; `None` if it holds
    /// none.
    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)>;

    /// Answers a datagram to [`Port::Requests`]: the length of the one written into `reply`.
    fn handle_request(&mut self, now: Nanos, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        let _ = (now, bytes, reply);
        None
    }

    /// A client connected to a stream port; `false` if the number is out of range or the port is none of
    /// ours.
    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        let _ = (port, id, now);
        false
    }

    /// Bytes of a client.
    fn handle_bytes(&mut self, port: Port, id: usize, now: Nanos, bytes: &[u8], engine: &Engine) {
        let _ = (port, id, now, bytes, engine);
    }

    /// Bytes to send to a client, as many as fit. Any client may have some after any call.
    fn poll_transmit<'b>(
        &mut self,
        port: Port,
        id: usize,
        now: Nanos,
        buf: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        let _ = (port, id, now, buf);
        None
    }

    /// Whether a client is to be hung up on, once everything is transmitted.
    fn wants_close(&self, port: Port, id: usize) -> bool {
        let _ = (port, id);
        false
    }

    /// A client is gone.
    fn disconnect(&mut self, port: Port, id: usize) {
        let _ = (port, id);
    }

    /// No message follows: the venue's end of session goes out, again and again, for `linger_ns`, then
    /// nothing. Recovery is still served. Said once more, it goes out for so long from then on: 0 ends it.
    fn end(&mut self, now: Nanos, linger_ns: u64);

    /// Whether everything was sent, ends of session included.
    fn is_over(&self) -> bool;

    /// The number that the next message gets.
    fn next_seq(&self) -> SeqNo;

    /// What it keeps of its messages, to send them again.
    fn store_mut(&mut self) -> &mut MessageStore;

    /// The levels of a side as this channel shows them, best first: what a receiver must have in the end. All
    /// displayed levels unless the feed shows fewer.
    fn levels(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        engine.levels(instrument, side).collect()
    }

    /// The quotes of an instrument's participants as a receiver must have heard them last; one without
    /// interest may be left out. Of consolidated feeds only.
    fn participant_quotes(&self, instrument: InstrumentId) -> Vec<ParticipantQuote> {
        let _ = instrument;
        Vec::new()
    }
}

/// The whole of [`Tape`] for a publisher that leaves it to the writer of its messages.
macro_rules! tape_of_writer {
    ($writer:ident) => {
        fn set_time(&mut self, at: $crate::VenueTime) {
            self.$writer.set_time(at);
        }
        fn milestone(&mut self, milestone: $crate::Milestone) {
            self.$writer.milestone(milestone);
        }
        fn define(&mut self, listing: &$crate::Listing) {
            self.$writer.define(listing);
        }
        fn total(&self) -> u64 {
            self.$writer.total()
        }
    };
}

/// The whole of [`Listener`], likewise.
macro_rules! listener_of_writer {
    ($writer:ident) => {
        fn rested(&mut self, order: &$crate::Order) {
            self.$writer.rested(order);
        }
        fn executed(&mut self, execution: &$crate::Execution) {
            self.$writer.executed(execution);
        }
        fn cross_filled(&mut self, fill: &$crate::CrossFill) {
            self.$writer.cross_filled(fill);
        }
        fn broken(&mut self, broken: &$crate::Broken) {
            self.$writer.broken(broken);
        }
        fn reduced(&mut self, order: &$crate::Order, by: tickwire_market::Qty) {
            self.$writer.reduced(order, by);
        }
        fn deleted(&mut self, order: &$crate::Order) {
            self.$writer.deleted(order);
        }
        fn expired(&mut self, order: &$crate::Order) {
            self.$writer.expired(order);
        }
        fn replaced(&mut self, old: &$crate::Order, new: &$crate::Order, rests: bool) {
            self.$writer.replaced(old, new, rests);
        }
        fn status(
            &mut self,
            instrument: tickwire_market::InstrumentId,
            status: tickwire_market::TradingStatus,
        ) {
            self.$writer.status(instrument, status);
        }
        fn crossed(&mut self, cross: &$crate::Cross) {
            self.$writer.crossed(cross);
        }
        fn indicated(&mut self, indication: &$crate::Indication) {
            self.$writer.indicated(indication);
        }
    };
}

pub(crate) use {listener_of_writer, tape_of_writer};
