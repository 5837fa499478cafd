//! The quoter of a run: in memory, as one thread between two sockets, and as three threads with queues
//! between them, as the published one was.

mod fix;
mod sockets;

use std::sync::atomic::{AtomicBool, Ordering};

use tickwire_book::{Applied, Books, Depth};
use tickwire_feed::{Channel, Line};
use tickwire_fix::CompId;
use tickwire_market::{
    BookUpdate, Cause, Counter, EventSink, InstrumentId, MarketEvent, MassQuoteEntry, Nanos, Port, Price,
    Symbol, TradingStatus,
};
use tickwire_options::edge::points;
use tickwire_options::surface::Edit;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc::{Consumer, Producer};
use tickwire_trading::{ENTRIES_MAX, Ladder, MassQuote, NO_ASK, NO_BID, QuoteSink, Quoter, QuoterConfig};

use super::tape::{Tape, number};
use super::venue::{Came, Venue};
pub(super) use fix::side_name;
pub(super) use sockets::{Layout, Sockets, between_sockets};
use tickwire_console::failure::Failure;
use tickwire_node::hot::OrderOut;
use tickwire_quoterd::{
    Chain, Expiries, Learn, NEAR_HALF_TICKS, Pricer, QuotePath, QuoteSession, QuoteSetup, Traded, Trades,
    flat_surface, session_of,
};
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_of;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// What a packet took, in readings of the counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    /// The packet's number.
    pub(super) seq: u64,
    /// When its bytes were there.
    pub(super) from: u64,
    /// When the first mass quote was handed to the connection, and the last.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) messages: u32,
    /// Entries of an edit's mass quotes; those of a packet are counted by the venue.
    pub(super) entries: Option<u32>,
}

/// What a quoter did.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Packets that caused mass quotes, in order.
    pub(super) took: Vec<Took>,
    /// Mass quotes sent, those that waited for an answer included.
    pub(super) messages: u64,
    /// The prices that should stand at the end, by quote: bid and offer, none where there is none.
    pub(super) wanted: Vec<[Option<Price>; 2]>,
    pub(super) problems: Vec<String>,
}

/// Nobody keeps positions here.
struct Nobody;

impl Trades for Nobody {
    fn traded(&mut self, _: &Traded) -> bool {
        false
    }
}

/// Where mass quotes go, and when.
struct Stamped<O> {
    out: O,
    first: u64,
    last: u64,
    sends: u32,
}

impl<O> Stamped<O> {
    fn new(out: O) -> Stamped<O> {
        Stamped {
            out,
            first: 0,
            last: 0,
            sends: 0,
        }
    }

    #[inline]
    fn stamp(&mut self) {
        self.last = tsc();
        if self.sends == 0 {
            self.first = self.last;
        }
        self.sends += 1;
    }
}

impl<O: OrderOut> OrderOut for Stamped<O> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stamp();
        self.out.send(bytes)
    }

    #[inline]
    fn rehearse(&mut self, bytes: &[u8]) {
        self.out.rehearse(bytes);
    }
}

/// Bytes in memory.
#[derive(Default)]
struct Kept(Vec<u8>);

impl OrderOut for Kept {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Everything that is made before quoting begins.
struct Made {
    chain: Chain,
    underlying: Symbol,
    pricer: Pricer,
    ladder: Box<Ladder>,
    learn: Learn,
    config: QuoterConfig,
    ids: Vec<InstrumentId>,
    symbols: Vec<Symbol>,
    deltas: Vec<i32>,
}

impl Made {
    fn new<C: Channel>(tape: &Tape, channel: &mut C, depth: Depth, now: Nanos) -> Result<Made, Failure> {
        let config = &tape.config;
        let section = config
            .quoter
            .as_ref()
            .ok_or_else(|| Failure::system("the market has no quoter"))?;
        let slots = config.receiver.max_instruments as usize + 1;
        let mut learn = Learn {
            books: books_of(&config.receiver, channel.venue(), depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; slots],
        };
        for early in &tape.early {
            channel.on_datagram(now, early.port, Line::A, &early.bytes, &mut learn);
        }
        let mut chain = Chain::of(channel, &section.underlying.0)?
            .ok_or_else(|| Failure::system("the market's definitions have no options"))?;
        let smiles: Vec<_> = chain.expiries().keys().copied().collect();
        let front = tape.begin as f64 * points(chain.underlying_tick) / 2.0;
        let surface = flat_surface(section, &smiles, VIRTUAL_START, front)?;
        let first = (VIRTUAL_START, tape.begin);
        let mut pricer = Pricer::new(section, &mut chain, surface, &smiles, &Expiries, first)?;
        let reach = tape.reach() + 8;
        let count = chain.options.len();
        let mut ladder = Box::new(Ladder::new(count, (2 * reach + 1) as usize));
        pricer.fill(&mut ladder, tape.begin, reach)?;
        let ticks = ([chain.underlying_tick, chain.steps.tick], chain.option_value);
        let base = section.quoter(chain.underlying, ticks, count as u16, Protocol::Mdp3);
        Ok(Made {
            // What is measured is not how a rate is kept.
            config: QuoterConfig {
                messages_max: 1_000_000,
                improvements_max: 1_000_000,
                quoted_max: u64::MAX / 4,
                long_max: u64::MAX / 4,
                short_max: u64::MAX / 4,
                in_flight_max: 1_024,
                jump_half_ticks: u32::MAX,
                spread_max_ticks: u32::MAX,
                answer_max_ns: 60 * Nanos::SECOND,
                fade_ns: 0,
                // The options of this tape have no market but ours: there is nothing to hold quotes to.
                market: None,
                ..base
            },
            ids: chain.options.iter().map(|o| o.id).collect(),
            symbols: chain.options.iter().map(|o| o.symbol).collect(),
            deltas: pricer.deltas().iter().map(|d| (d * 1000.0) as i32).collect(),
            underlying: section.underlying.0,
            chain,
            pricer,
            ladder,
            learn,
        })
    }

    /// The session of the quoter.
    fn session() -> QuoteSession {
        let comp = |name: &str| CompId::new(name.as_bytes()).unwrap_or(CompId::EMPTY);
        session_of([comp("QUOTER"), comp("EXCHANGE")], Default::default(), true, 30)
    }

    /// Prices that should stand at a price of the future.
    fn wanted(pricer: &mut Pricer, tick: Price, half_tick: i64) -> Result<Vec<[Option<Price>; 2]>, Failure> {
        let count = pricer.options().len();
        let mut one = Ladder::new(count, 1);
        pricer.fill(&mut one, half_tick, 0)?;
        let row = one
            .row(half_tick)
            .ok_or_else(|| Failure::system("a price without a row"))?;
        let price = |ticks: u16| Price::from_raw(i64::from(ticks) * tick.raw());
        let side = |ticks: u16, none: u16| (ticks != none).then(|| price(ticks));
        let quotes = row.bids.iter().zip(row.asks).take(count);
        Ok(quotes
            .map(|(bid, ask)| [side(*bid, NO_BID), side(*ask, NO_ASK)])
            .collect())
    }
}

/// The live path of a quoter whose channel has learned.
fn path_of<O: OrderOut, C: Channel>(
    made: Made,
    channel: &C,
    out: O,
    (clock, now): (&Clock, Nanos),
) -> (QuotePath<O, Nobody>, Pricer, Price) {
    let tick = made.chain.steps.tick;
    let setup = QuoteSetup {
        quoter: made.config,
        instruments: &made.ids,
        symbols: &made.symbols,
        deltas: &made.deltas,
        session: Made::session(),
        by_orders: false,
        started: now,
        underlying: made.underlying,
        eye: None,
        controls: None,
        values: None,
    };
    let mut path = QuotePath::new(setup, made.learn.books, out, Nobody, clock.clone());
    path.replace_ladder(now, made.ladder);
    path.begin(now, (channel.venue(), channel.next_seq()), TradingStatus::Trading);
    (path, made.pricer, tick)
}

/// Packet bytes to mass quote bytes, without sockets and threads; every quote is answered before the next
/// packet. `edits` the volatilities after each packet, and that is what is timed.
pub(super) fn in_memory(tape: &Tape, venue: &mut Venue, clock: &Clock, edits: bool) -> Result<Done, Failure> {
    let reception = Reception::new(&tape.config.receiver);
    let run = InMemory {
        tape,
        venue,
        clock,
        edits,
    };
    wiring::with_channel(&tape.config.feed[0], 0, &reception, run)?
}

struct InMemory<'a> {
    tape: &'a Tape,
    venue: &'a mut Venue,
    clock: &'a Clock,
    edits: bool,
}

impl WithChannel for InMemory<'_> {
    type Output = Result<Done, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Result<Done, Failure> {
        let InMemory {
            tape,
            venue,
            clock,
            edits,
        } = self;
        let now = clock.now();
        let made = Made::new(tape, &mut channel, depth, now)?;
        let mut editor = edits.then(|| Editor::new(tape, &made));
        let out = Stamped::new(Kept(Vec::with_capacity(1 << 17)));
        let (mut path, mut pricer, tick) = path_of(made, &channel, out, (clock, now));
        venue.connected(now);
        path.connected(now);
        let mut done = Done {
            took: Vec::with_capacity(tape.packets.len()),
            ..Done::default()
        };
        settle(&mut path, venue, clock.now());
        for bytes in &tape.packets {
            let now = clock.now();
            let took = quote_packet(&mut channel, &mut path, now, bytes, tsc());
            settle(&mut path, venue, now);
            let Some(editor) = &mut editor else {
                done.took.extend(took);
                continue;
            };
            done.took
                .extend(editor.edit(now, &mut path, &mut pricer, number(bytes))?);
            settle(&mut path, venue, now);
            editor.widen(now, &mut path, &mut pricer)?;
            settle(&mut path, venue, now);
        }
        let last = tape.half_ticks.last().copied().unwrap_or(tape.begin);
        done.wanted = Made::wanted(&mut pricer, tick, last)?;
        done.messages = path.sent()[0];
        done.problems.extend(complaints(&path));
        Ok(done)
    }
}

/// Edits the volatilities of every expiry up and down in turns, and makes ladders of them as the pricing
/// thread does.
struct Editor {
    /// Around the price, and whole; each is the one before while it is quoted by.
    near: Option<Box<Ladder>>,
    wide: Option<Box<Ladder>>,
    reach: i64,
    half_tick: i64,
    is_up: bool,
}

impl Editor {
    /// Points by which the straddle of the first expiry moves, and every other linked to it: a fiftieth of
    /// it, ticks of almost every option.
    const POINTS: f64 = 500.0;

    fn new(tape: &Tape, made: &Made) -> Editor {
        let count = made.chain.options.len();
        let ladder = |reach: i64| Some(Box::new(Ladder::new(count, (2 * reach + 1) as usize)));
        let reach = tape.reach() + 8;
        Editor {
            near: ladder(NEAR_HALF_TICKS),
            wide: ladder(reach),
            reach,
            half_tick: tape.begin,
            is_up: false,
        }
    }

    /// From an edit, behind the packet `seq`, to the mass quotes that follow it.
    fn edit(
        &mut self,
        now: Nanos,
        path: &mut QuotePath<Stamped<Kept>, Nobody>,
        pricer: &mut Pricer,
        seq: u64,
    ) -> Result<Option<Took>, Failure> {
        self.half_tick = path.half_tick().unwrap_or(self.half_tick);
        self.is_up = !self.is_up;
        let points = if self.is_up { Self::POINTS } else { -Self::POINTS };
        let counted = |path: &QuotePath<Stamped<Kept>, Nobody>| {
            [
                path.sent()[0],
                path.maker().quoter.counters().get(Counter::QuoteEntriesSent),
            ]
        };
        let [messages, entries] = counted(path);
        path.out_mut().sends = 0;
        let Some(mut near) = self.near.take() else {
            return Ok(None);
        };
        let from = tsc();
        pricer
            .surface_mut()
            .apply(now, 0, Edit::Straddle { expiry: 0, points })
            .map_err(|e| Failure::system(format!("the edit: {e}")))?;
        pricer.settle(self.half_tick)?;
        pricer.fill(&mut near, self.half_tick, NEAR_HALF_TICKS)?;
        self.wide = path.replace_ladder(now, near);
        let after = counted(path);
        let Stamped { first, last, .. } = *path.out();
        let own = (after[0] - messages) as u32;
        Ok((own > 0).then_some(Took {
            seq,
            from,
            first,
            last,
            messages: own,
            entries: Some((after[1] - entries) as u32),
        }))
    }

    /// The whole ladder, behind the rows that were urgent.
    fn widen(
        &mut self,
        now: Nanos,
        path: &mut QuotePath<Stamped<Kept>, Nobody>,
        pricer: &mut Pricer,
    ) -> Result<(), Failure> {
        if let Some(mut wide) = self.wide.take() {
            pricer.fill(&mut wide, self.half_tick, self.reach)?;
            self.near = path.replace_ladder(now, wide);
        }
        Ok(())
    }
}

/// One packet, which is there since `from`; what it took if it caused mass quotes.
#[inline]
fn quote_packet<C: Channel, O: OrderOut>(
    channel: &mut C,
    path: &mut QuotePath<Stamped<O>, Nobody>,
    now: Nanos,
    bytes: &[u8],
    from: u64,
) -> Option<Took> {
    let before = path.sent()[0];
    path.out_mut().sends = 0;
    channel.on_datagram(now, Port::Live, Line::A, bytes, path);
    path.settle(now);
    let messages = (path.sent()[0] - before) as u32;
    let Stamped { first, last, .. } = *path.out();
    (messages > 0).then_some(Took {
        seq: number(bytes),
        from,
        first,
        last,
        messages,
        entries: None,
    })
}

/// Answers everything.
fn settle(path: &mut QuotePath<Stamped<Kept>, Nobody>, venue: &mut Venue, now: Nanos) {
    while !path.out().out.0.is_empty() {
        let answers = venue.take(now, Came::default(), &path.out().out.0).to_vec();
        path.out_mut().out.0.clear();
        path.on_bytes(now, &answers);
    }
}

fn complaints<O: OrderOut>(path: &QuotePath<O, Nobody>) -> Option<String> {
    let state = path.maker().quoter.state();
    let is_well = state == tickwire_trading::QuotingState::Quoting && path.session.unread == 0;
    (!is_well).then(|| {
        format!(
            "the quoter ended {state:?}, {} answers unread",
            path.session.unread
        )
    })
}

/// The market data thread's part: the future's book.
struct MarketData {
    books: Books,
    future: InstrumentId,
    update: Option<BookUpdate>,
}

impl EventSink for MarketData {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if let Applied::Update(update) = self.books.apply(event)
            && event.instrument == self.future
        {
            self.update = Some(*update);
        }
    }
}

/// A mass quote between threads.
#[derive(Clone, Copy)]
struct Wanted {
    id: u64,
    cause: Cause,
    reset: bool,
    /// It follows an answer, not a packet.
    is_late: bool,
    len: u8,
    entries: [MassQuoteEntry; ENTRIES_MAX],
}

/// An answer between threads.
#[derive(Clone, Copy)]
enum Said {
    LoggedOn,
    Accepted(u64),
    Refused(u64),
}

struct Rings {
    wanted: Producer<Wanted>,
    is_late: bool,
}

impl QuoteSink for Rings {
    #[inline]
    fn mass_quote(&mut self, quote: &MassQuote<'_>) -> bool {
        let mut wanted = Wanted {
            id: quote.id,
            cause: quote.cause,
            reset: quote.reset,
            is_late: self.is_late,
            len: quote.entries.len() as u8,
            entries: [MassQuoteEntry::default(); ENTRIES_MAX],
        };
        wanted.entries[..quote.entries.len()].copy_from_slice(quote.entries);
        self.wanted.push(wanted).is_ok()
    }

    fn cancel_all(&mut self, _: u64, _: &Cause) -> bool {
        // A run that pulls has failed: it is seen by the state at its end.
        false
    }
}

/// The quoting thread.
fn quote(
    config: QuoterConfig,
    ladder: Box<Ladder>,
    mut updates: Consumer<BookUpdate>,
    mut sink: Rings,
    mut says: Consumer<Said>,
    first: Option<BookUpdate>,
    ends: &AtomicBool,
) -> Quoter {
    let mut quoter = Quoter::new(config);
    quoter.replace_ladder(Nanos::ZERO, ladder, &mut sink);
    let mut last = first;
    loop {
        let mut any = false;
        if let Some(update) = updates.pop() {
            any = true;
            sink.is_late = false;
            quoter.on_underlying(update.recv_ts, &update, &mut sink);
            last = Some(update);
        }
        while let Some(said) = says.pop() {
            any = true;
            sink.is_late = true;
            let now = last.map_or(Nanos::ZERO, |update| update.recv_ts);
            match said {
                Said::LoggedOn => {
                    if let Some(update) = &last {
                        quoter.on_underlying(now, update, &mut sink);
                    }
                    quoter.on_logon(now);
                }
                Said::Accepted(id) => quoter.on_answer(now, id, Some(&[]), &mut sink),
                Said::Refused(id) => quoter.on_answer(now, id, None, &mut sink),
            }
        }
        if !any {
            if ends.load(Ordering::Acquire) {
                return quoter;
            }
            std::thread::yield_now();
        }
    }
}
