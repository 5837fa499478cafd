//! CME MDP 3.0 (SBE schema 1, version 13) to [`MarketEvent`]s, with the exchange's recovery: snapshot and
//! definition loops ([`Mdp3Recovery`]), TCP replay ([`Mdp3Replay`]); all of it together is an
//! [`Mdp3Channel`].
//!
//! A packet has one number however many messages it holds, so a packet is what the
//! [`Arbiter`](crate::Arbiter) counts and what the [`Mdp3Decoder`] gets as one message. What comes out:
//!
//! | template | event |
//! |---|---|
//! | 46, 64, 32 (schema versions up to 8) | by price: a `Level` for every price whose total changed; by order: `Add` `Modify` `Delete` |
//! | 47 | by order: `Add` `Modify` `Delete` |
//! | 48, 65, 42 | `Trade`, `TradeBreak`; by order, if asked for, 48 is `Execute` of each resting order |
//! | 30, 60 | `Status`, of every instrument concerned |
//! | 4, entry `J` | `Clear` of all books |
//! | 52, 69; 53 | in a snapshot: `Clear` of the instrument, then its levels; its orders |
//! | 54 to 58, 63 | `Definition`, and the instrument directory |
//! | 12, 15, 16, 35, 37, 39, 49, 50, 51, 59, 61, 62, 66 to 68 | none: they change neither a book nor whether it trades; `RptSeq` is followed |
//!
//! Security numbers are 32 bits wide and sparse; instruments are numbered from 1 in order of appearance.

mod channel;
mod define;
mod event;
mod join;
mod live;
mod offers;
mod recovery;
mod refresh;
mod replay;
mod rows;
mod snapshot;
mod table;
mod terms;

pub use channel::Mdp3Channel;
pub use recovery::{LoopState, Mdp3Recovery};
pub use replay::{Mdp3Replay, ReplayConfig, ReplayState};
pub use terms::{Mdp3Kind, Mdp3Terms};

use crate::decoder::{Context, Decoder, Prefiltered, StreamEvent};
use crate::framing::{Content, Frame, Framing};
use crate::{FeedHandler, Filter, MissingRange, Rule, Seen, SessionId, SubscriptionsFull};
use alloc::{boxed::Box, vec, vec::Vec};
use core::hint::black_box;
use core::ops::Range;
use event::{Moment, Tail, about};
use refresh::Refresh;
use rows::Rows;
use snapshot::Turn;
use table::{Resting, Securities};
use tickwire_market::{
    Contract, Counter, Counters, EventFlags, EventKind, EventSink, InstrumentId, MessageType, Nanos, SeqNo,
    Symbol, Venue,
};
use tickwire_wire_cme::mdp3::{self, Book, Messages, OrderBook, TradeSummary, indicator};
use tickwire_wire_core::Malformed;

/// A channel of CME Globex.
pub type Mdp3Feed = FeedHandler<Mdp3, Mdp3Decoder>;

/// The framing: a packet is one message of the feed, numbered by itself.
#[derive(Clone, Copy, Debug)]
pub enum Mdp3 {}

impl Framing for Mdp3 {
    type Messages<'a> = core::iter::Once<&'a [u8]>;

    const HEADER: usize = mdp3::PacketHeader::SIZE;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<Self::Messages<'_>>, Malformed> {
        let packet = mdp3::parse_packet(datagram)?;
        Ok(Frame {
            session: SessionId::NONE,
            first: SeqNo(packet.seq.into()),
            content: Content::Messages {
                count: 1,
                messages: core::iter::once(datagram),
            },
            trailing: 0,
        })
    }

    /// Packets are replayed over a connection: [`FeedHandler::poll_missing`] and [`Mdp3Replay`].
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    /// A message is a packet already.
    fn wrap(_: SessionId, _: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        buffer.get_mut(..message.len())?.copy_from_slice(message);
        Some(message.len())
    }
}

/// Which books are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mdp3Depth {
    /// Price levels, ten deep at most, from the `MDEntries`.
    #[default]
    ByPrice,
    /// Orders, from the `OrderIDEntries` and template 47.
    ByOrder,
}

/// What an [`Mdp3Decoder`] has to know.
#[derive(Clone, Debug)]
pub struct Mdp3Config {
    /// Which books. Default: by price.
    pub depth: Mdp3Depth,
    /// Whether implied levels are added to the real ones at their price (by price only). Default: yes.
    pub implied: bool,
    /// Whether a book that lacks entries is learned anew from those that come (by price only, 700 bytes more
    /// for each instrument): for a feed without snapshots. What is known of it meanwhile is in the book,
    /// which is stale. Default: no; it stays stale until its next snapshot.
    pub natural_refresh: bool,
    /// By order only: whether what template 48 says of resting orders comes as `Execute` of each, and a
    /// `Trade` tells only what no resting order is known for; what the venue then says of the same orders is
    /// no change of theirs any more. For who has to know executions from cancellations. Default: no; trades
    /// are `Trade`, and orders become less without a reason.
    pub executions: bool,
    /// How many instruments a channel can have, default 16 384; 700 bytes each by price. An instrument too
    /// many is counted as [`Counter::BookFull`] and passed over.
    pub instruments_max: u32,
    /// How many orders can rest at once (by order only), default 2^20; 64 bytes each. When there are more, a
    /// change of one left out counts as losing its place in the queue.
    pub orders_max: u32,
    /// What to let through; `None` (the default) is everything. Instruments are known by name once their
    /// definition has come.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for Mdp3Config {
    fn default() -> Mdp3Config {
        Mdp3Config {
            depth: Mdp3Depth::ByPrice,
            implied: true,
            natural_refresh: false,
            executions: false,
            instruments_max: 1 << 14,
            orders_max: 1 << 20,
            symbols: None,
        }
    }
}

/// How far an instrument's book can be trusted beside the feed as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Trust {
    /// Fully.
    #[default]
    Sound,
    /// Entries are missing: until its next snapshot.
    Stale,
    /// Packets were lost, and its next entry will tell whether they were about it.
    Doubtful,
    /// Entries are missing: its rows are learned anew from those that come.
    Rebuilding,
}

/// What every entry of an instrument looks at.
#[derive(Clone, Copy, Default)]
struct Followed {
    /// The last entry's number; 0: not known.
    rpt_seq: u32,
    trust: Trust,
    /// The packet up to which its last snapshot holds its orders.
    covered: u64,
    /// The packet that last changed one of its orders.
    touched: u64,
    /// How many of its entries passed the filter.
    passed: u64,
}

/// What else is known of an instrument.
#[derive(Clone, Copy, Default)]
struct Known {
    security_group: [u8; 6],
    asset: [u8; 6],
    /// When its definition was last changed, as the venue says.
    defined_at: u64,
    /// The code of its trading status, 0 until it is said; and the packet up to which a snapshot holds it.
    status: u8,
    status_at: u64,
    /// The turn of the snapshot loop it was last taken in.
    taken: u32,
    /// Of a snapshot in chunks: the one wanted next, and the packet all must be of.
    chunk: u32,
    chunk_of: u32,
    /// The number of its last entry as the last snapshot has it that came without its orders, and the packet
    /// of that.
    rpt_seq: (u32, u32),
}

/// What is kept of instruments that nobody wants any more.
struct Left<'a> {
    followed: &'a mut [Followed],
    unsound: &'a mut u32,
    resting: &'a mut Resting,
}

impl Left<'_> {
    /// Nobody wants this one.
    fn take_note(&mut self, index: usize) {
        *self.unsound -= u32::from(self.followed[index].trust != Trust::Sound);
        self.followed[index].trust = Trust::Sound;
        self.resting.forget(index);
    }
}

/// How many instruments of one message can join: more entries than that no message has.
const MET_MAX: usize = 512;

/// What was met in the message being read.
struct InMessage {
    /// Instruments that join and are in the message being read.
    met: Vec<u32>,
    /// Of the message being read: an entry was of an instrument that is wanted, or not.
    passed: bool,
    dropped: bool,
}

/// How far the loop of definitions has been heard.
struct DefinitionLoop {
    definitions: u32,
    definitions_total: Option<u32>,
}

/// The decoder. All memory is taken at construction.
pub struct Mdp3Decoder {
    depth: Mdp3Depth,
    implied: bool,
    /// Numbers of joins are packets.
    filter: Filter,
    /// The security number of the last entry that did not pass because its instrument joins, or has been told
    /// already.
    shut: Option<i32>,
    in_message: InMessage,
    /// What was held is told, of this instrument alone.
    only: Option<u32>,
    /// The live packet decoded last; 0: none.
    last_packet: u64,
    securities: Securities,
    terms: Box<[Mdp3Terms]>,
    followed: Box<[Followed]>,
    known: Box<[Known]>,
    /// The security number looked up last, and its position if it is wanted.
    latest: Option<(i32, Option<u32>)>,
    rows: Box<[Rows]>,
    resting: Resting,
    turn: Turn,
    definition_loop: DefinitionLoop,
    /// How many instruments have closed for the day.
    closed: u32,
    /// How many books are not sound.
    unsound: u32,
    /// Rows being learned, where books are refreshed from live entries.
    refreshes: Box<[Refresh]>,
    /// The instrument of the last event, while its match event has not ended.
    unfinished: Option<InstrumentId>,
}

impl Mdp3Decoder {
    /// A decoder that knows no instrument.
    pub fn new(config: Mdp3Config) -> Mdp3Decoder {
        let instruments = config.instruments_max.clamp(1, 1 << 20) as usize + 1;
        let (ladders, orders) = match config.depth {
            Mdp3Depth::ByPrice => (instruments, 0),
            Mdp3Depth::ByOrder => (0, config.orders_max.min(1 << 28)),
        };
        Mdp3Decoder {
            depth: config.depth,
            implied: config.implied,
            filter: Filter::new(Venue::Cme, 0..instruments as u32, config.symbols.as_deref())
                .joining_singly(),
            shut: None,
            in_message: InMessage {
                met: Vec::with_capacity(MET_MAX),
                passed: false,
                dropped: false,
            },
            only: None,
            last_packet: 0,
            securities: Securities::new(instruments as u32 - 1),
            terms: vec![Mdp3Terms::default(); instruments].into(),
            followed: vec![Followed::default(); instruments].into(),
            known: vec![Known::default(); instruments].into(),
            latest: None,
            rows: vec![Rows::default(); ladders].into(),
            resting: Resting::new(orders, config.executions),
            turn: Turn::default(),
            definition_loop: DefinitionLoop {
                definitions: 0,
                definitions_total: None,
            },
            closed: 0,
            unsound: 0,
            refreshes: vec![Refresh::default(); if config.natural_refresh { ladders } else { 0 }].into(),
            unfinished: None,
        }
    }

    /// The match event is over. Where its events have gone already, one without content says so.
    #[inline(always)]
    fn end_event<S: EventSink>(&mut self, context: Context, out: &mut Tail<'_, S>) {
        if out.is_empty()
            && let Some(instrument) = self.unfinished
        {
            let at = &Moment {
                context,
                time: Nanos::ZERO,
            };
            out.push(about(at, EventKind::EndOfGroup, instrument.index()));
        }
        self.unfinished = None;
        out.end();
    }

    /// Which books are kept.
    #[inline(always)]
    pub fn depth(&self) -> Mdp3Depth {
        self.depth
    }

    /// Whether books that lack entries are learned from live ones.
    pub fn refreshes_naturally(&self) -> bool {
        !self.refreshes.is_empty()
    }

    /// How many books are stale for reasons of their own.
    pub fn unsound(&self) -> u32 {
        self.unsound
    }

    /// The terms of an instrument, if it is defined.
    pub fn terms(&self, id: InstrumentId) -> Option<&Mdp3Terms> {
        self.filter.instrument(id)?;
        self.terms.get(id.index())
    }

    /// The contract of an instrument, as far as its definition says it. The underlying of an option is
    /// [`InstrumentId::WHOLE_FEED`] when the channel has none of its number.
    pub fn contract(&self, id: InstrumentId) -> Option<Contract> {
        let terms = self.terms(id)?;
        let underlying = terms
            .underlying
            .and_then(|(number, _)| self.instrument_of(number));
        terms.contract(underlying.unwrap_or(InstrumentId::WHOLE_FEED))
    }

    /// The number given to an exchange's security number.
    pub fn instrument_of(&self, security_id: i32) -> Option<InstrumentId> {
        self.securities.find(security_id).map(InstrumentId)
    }

    /// How many definitions have come, and how many a loop of them has.
    pub fn definitions(&self) -> (u32, Option<u32>) {
        (
            self.definition_loop.definitions,
            self.definition_loop.definitions_total,
        )
    }
}

impl Prefiltered for Mdp3Decoder {
    fn venue_number(&self, id: InstrumentId) -> Option<u64> {
        let terms = self.terms(id)?;
        // As its bytes stand in a message.
        Some(u64::from(terms.security_id.cast_unsigned()))
    }
}

impl Decoder for Mdp3Decoder {
    const BUSY_TYPES: Range<usize> = Book::TEMPLATE as usize..TradeSummary::TEMPLATE as usize + 1;

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.filter
    }

    /// `message` is a packet.
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        // A packet of a live line has been checked when it came.
        let is_checked = !context.flags.has(EventFlags::SNAPSHOT);
        if !is_checked && mdp3::parse_packet(message).is_err() {
            return crate::decoder::count_bad_value(counters);
        }
        // The packet is marked as last of its kind by the handler; what is atomic here is the match event.
        let flags = EventFlags(context.flags.0 & !EventFlags::LAST.0);
        let context = Context { flags, ..context };
        if is_checked {
            self.last_packet = context.seq.0;
        }
        let mut out = Tail::new(sink);
        for bytes in Messages::of_checked(message) {
            let template = mdp3::template(bytes);
            let kind = template.unwrap_or_default();
            (self.in_message.passed, self.in_message.dropped) = (false, false);
            if kind < 256 {
                self.filter.of_type(kind.into()).seen += 1;
            }
            out.read(MessageType(kind));
            let indicator = match template {
                Some(Book::TEMPLATE) => {
                    Book::read(bytes).and_then(|m| self.book(context, &m, counters, &mut out))
                }
                Some(OrderBook::TEMPLATE) => {
                    OrderBook::read(bytes).and_then(|m| self.order_book(context, &m, counters, &mut out))
                }
                Some(TradeSummary::TEMPLATE) => {
                    TradeSummary::read(bytes).and_then(|m| self.trades(context, &m, counters, &mut out))
                }
                _ => match mdp3::parse(bytes) {
                    Ok(m) => self.message(context, &m, counters, &mut out),
                    Err(Malformed::UnknownTemplate(_)) => {
                        counters.bump(Counter::MessagesUnknown);
                        continue;
                    }
                    Err(_) => None,
                },
            };
            if !self.in_message.met.is_empty() {
                self.hold(context, bytes);
            } else if self.in_message.dropped && !self.in_message.passed && kind < 256 {
                self.filter.of_type(kind.into()).filtered += 1;
            }
            match indicator {
                Some(indicator) if indicator & indicator::END_OF_EVENT != 0 => {
                    self.end_event(context, &mut out);
                }
                Some(_) => {}
                None => crate::decoder::count_bad_value(counters),
            }
        }
        if let Some(instrument) = out.release() {
            self.unfinished = Some(instrument);
        }
    }

    /// Security numbers stay: definitions come on a feed of their own.
    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => {
                self.forget_books();
                self.unfinished = None;
                self.last_packet = 0;
                self.closed = 0;
                for index in 1..=self.securities.len() {
                    (self.known[index].status, self.known[index].status_at) = (0, 0);
                }
            }
            StreamEvent::SnapshotEnded(next) => self.filter.go_on_at(next),
            _ => {}
        }
    }

    /// Whether every instrument of the channel has closed for the day (status 4 or 18): the venue sends
    /// nothing that ends a feed, and packets go on until the week does.
    fn has_ended(&self) -> bool {
        let is_complete = self
            .definition_loop
            .definitions_total
            .is_none_or(|total| self.definition_loop.definitions >= total);
        self.definition_loop.definitions > 0 && is_complete && self.closed >= self.definition_loop.definitions
    }

    fn select(&mut self, rule: Rule, changed: &mut dyn FnMut(InstrumentId)) -> Result<(), SubscriptionsFull> {
        let mut left = Left {
            followed: &mut self.followed,
            unsound: &mut self.unsound,
            resting: &mut self.resting,
        };
        let done = self.filter.select(rule, &mut |instrument| {
            if !rule.wanted {
                left.take_note(instrument.id.index());
            }
            changed(instrument.id);
        });
        (self.latest, self.shut) = (None, None);
        done
    }

    fn is_followed(&self, id: InstrumentId) -> bool {
        let followed = self.followed.get(id.index());
        let is_sound = followed.is_some_and(|followed| followed.trust == Trust::Sound);
        is_sound && self.filter.is_followed(id)
    }

    fn join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        self.begin_join(id.index(), next.0);
        true
    }

    fn fetch(&self, id: InstrumentId) {
        if let Some(terms) = self.terms.get(id.index()) {
            black_box(self.securities.find(terms.security_id));
        }
        black_box(self.followed.get(id.index()).copied());
        if let Some(rows) = self.rows.get(id.index()) {
            rows.fetch();
        }
    }

    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        Seen {
            seen: self
                .followed
                .get(id.index())
                .map_or(0, |followed| followed.passed),
            filtered: 0,
        }
    }
}
