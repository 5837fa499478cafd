//! The quoter of a run: in memory, as one thread between two sockets, and as three threads with queues
//! between them, as the published one was.

use std::sync::atomic::{AtomicBool, Ordering};

use tickwire_book::{Applied, Books, Depth};
use tickwire_feed::{Channel, Line};
use tickwire_fix::{
    CompId, Event, MassQuoteHead, MassQuoteTemplate, QuoteAnswer, QuotePrices, read_quote_answer,
};
use tickwire_market::{
    BookUpdate, Cause, Counter, EventSink, InstrumentId, MarketEvent, MassQuoteEntry, Nanos, Port, Price,
    Side, Symbol, TradingStatus,
};
use tickwire_options::edge::points;
use tickwire_options::surface::Edit;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc::{self, Consumer, Producer};
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::udp::{DATAGRAM_BYTES_MAX, MulticastReceiver};
use tickwire_trading::{ENTRIES_MAX, Ladder, MassQuote, NO_ASK, NO_BID, QuoteSink, Quoter, QuoterConfig};

use super::Signals;
use super::tape::{Tape, number};
use super::venue::Venue;
use crate::lab::run::Places;
use tickwire_console::failure::Failure;
use tickwire_node::hot::OrderOut;
use tickwire_quoterd::{
    Chain, Expiries, Learn, NEAR_HALF_TICKS, Pricer, QuotePath, QuoteSession, QuoteSetup, Traded, Trades,
    decimals_of, flat_surface, session_of,
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
    now: Nanos,
) -> Result<(QuotePath<O, Nobody>, Pricer, Price), Failure> {
    let tick = made.chain.steps.tick;
    let setup = QuoteSetup {
        quoter: made.config,
        instruments: &made.ids,
        symbols: &made.symbols,
        deltas: &made.deltas,
        session: Made::session(),
        by_orders: false,
        first_order: 0,
    };
    let mut path =
        QuotePath::new(setup, made.learn.books, out, Nobody).map_err(|why| Failure::config(why.0))?;
    path.replace_ladder(now, made.ladder);
    path.begin(now, (channel.venue(), channel.next_seq()), TradingStatus::Trading);
    Ok((path, made.pricer, tick))
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
        let (mut path, mut pricer, tick) = path_of(made, &channel, out, now)?;
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
        done.messages = path.wire.sent[0];
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
                path.wire.sent[0],
                path.maker.quoter.counters().get(Counter::QuoteEntriesSent),
            ]
        };
        let [messages, entries] = counted(path);
        path.wire.out.to.sends = 0;
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
        let Stamped { first, last, .. } = path.wire.out.to;
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
    let before = path.wire.sent[0];
    path.wire.out.to.sends = 0;
    channel.on_datagram(now, Port::Live, Line::A, bytes, path);
    path.settle(now);
    let messages = (path.wire.sent[0] - before) as u32;
    let Stamped { first, last, .. } = path.wire.out.to;
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
    while !path.wire.out.to.out.0.is_empty() {
        let answers = venue.take(now, 0, &path.wire.out.to.out.0).to_vec();
        path.wire.out.to.out.0.clear();
        path.on_bytes(now, &answers);
    }
}

fn complaints<O: OrderOut>(path: &QuotePath<O, Nobody>) -> Option<String> {
    let state = path.maker.quoter.state();
    let is_well = state == tickwire_trading::QuotingState::Quoting && path.session.unread == 0;
    (!is_well).then(|| {
        format!(
            "the quoter ended {state:?}, {} answers unread",
            path.session.unread
        )
    })
}

/// The sockets of a quoter.
pub(super) struct Sockets {
    pub(super) feed: MulticastReceiver,
    pub(super) orders: TcpStream,
}

/// How a quoter is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Layout {
    /// Everything on one thread.
    One,
    /// Market data, quoting and FIX on a thread each, as published.
    Three,
}

impl Layout {
    pub(super) fn name(self) -> &'static str {
        match self {
            Layout::One => "one thread",
            Layout::Three => "three threads",
        }
    }
}

/// Quotes between sockets until `ends` is set; in one thread with a rehearsal every so many microseconds, 0
/// for none.
pub(super) fn between_sockets(
    tape: &Tape,
    (layout, rehearse_us): (Layout, u32),
    sockets: Sockets,
    clock: Clock,
    places: &Places,
    signals: &Signals,
) -> Result<Done, Failure> {
    let reception = Reception::new(&tape.config.receiver);
    let run = Live {
        tape,
        layout,
        rehearse_us,
        sockets,
        clock,
        places,
        signals,
    };
    wiring::with_channel(&tape.config.feed[0], 0, &reception, run)?
}

struct Live<'a> {
    tape: &'a Tape,
    layout: Layout,
    rehearse_us: u32,
    sockets: Sockets,
    clock: Clock,
    places: &'a Places,
    signals: &'a Signals,
}

impl WithChannel for Live<'_> {
    type Output = Result<Done, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Result<Done, Failure> {
        let made = Made::new(self.tape, &mut channel, depth, self.clock.now())?;
        match self.layout {
            Layout::One => self.one(channel, made),
            Layout::Three => self.three(channel, made),
        }
    }
}

fn lost(e: std::io::Error) -> Failure {
    Failure::peer_lost(format!("the quoter's sockets: {e}"))
}

impl Live<'_> {
    fn one<C: Channel>(self, mut channel: C, made: Made) -> Result<Done, Failure> {
        let Sockets { mut feed, orders } = self.sockets;
        let clock = self.clock;
        self.places.enter("quoter")?;
        let out = Stamped::new(orders);
        let (mut path, mut pricer, tick) = path_of(made, &channel, out, clock.now())?;
        path.connected(clock.now());
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut done = Done {
            took: Vec::with_capacity(self.tape.packets.len()),
            ..Done::default()
        };
        self.signals.ready.store(true, Ordering::Release);
        let mut rounds = 0_u32;
        let gap = clock.span_ticks(u64::from(self.rehearse_us) * 1_000);
        let mut rehearsal = (self.rehearse_us > 0).then(tsc);
        loop {
            if let Some(due) = &mut rehearsal
                && tsc() >= *due
            {
                let now = tsc();
                *due = now + gap;
                path.rehearse(clock.nanos_at(now));
            }
            if let Some(datagram) = feed.recv(&mut buffer).map_err(lost)? {
                let (from, now) = (datagram.tsc, clock.nanos_at(datagram.tsc));
                let took = quote_packet(&mut channel, &mut path, now, datagram.bytes, from);
                done.took.extend(took);
            }
            match path.wire.out.to.out.recv(&mut buffer).map_err(lost)? {
                Received::Bytes(bytes) => {
                    let bytes: &[u8] = bytes;
                    path.on_bytes(clock.now(), bytes);
                }
                Received::Nothing if path.wire.out.to.out.has_unsent() => {
                    path.wire.out.to.out.flush().map_err(lost)?;
                }
                Received::Nothing => {}
                Received::Closed => break,
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1_024) {
                let now = clock.now();
                if path.poll_timeout().is_some_and(|due| due <= now) {
                    path.handle_timeout(now);
                }
                if self.signals.ends.load(Ordering::Acquire) {
                    break;
                }
            }
            std::hint::spin_loop();
        }
        let last = self.tape.half_ticks.last().copied().unwrap_or(self.tape.begin);
        done.wanted = Made::wanted(&mut pricer, tick, last)?;
        done.messages = path.wire.sent[0];
        done.problems.extend(complaints(&path));
        Ok(done)
    }

    /// Market data here, the others on threads of their own.
    fn three<C: Channel>(self, mut channel: C, made: Made) -> Result<Done, Failure> {
        let Sockets { mut feed, orders } = self.sockets;
        let (clock, ends, places) = (self.clock, &self.signals.ends, self.places);
        let Made {
            chain,
            mut pricer,
            ladder,
            learn,
            config,
            symbols,
            ..
        } = made;
        let tick = chain.steps.tick;
        let prices = QuotePrices {
            tick,
            decimals: decimals_of(tick),
        };
        let session = Made::session();
        let template = session
            .mass_quote_template(&symbols, prices, config.entries_max)
            .ok_or_else(|| Failure::config("prices do not fit"))?;
        let (mut updates, updated) = spsc::ring::<BookUpdate>(1 << 12);
        let (wanted, wants) = spsc::ring::<Wanted>(1 << 10);
        let (said, says) = spsc::ring::<Said>(1 << 10);
        let first = learn.books.book(chain.underlying).map(|book| book.update());
        let done = std::thread::scope(|scope| -> Result<Done, Failure> {
            let quoting = scope.spawn(move || -> Result<Quoter, Failure> {
                places.enter("quoting")?;
                Ok(quote(
                    config,
                    ladder,
                    updated,
                    Rings {
                        wanted,
                        is_late: false,
                    },
                    says,
                    first,
                    ends,
                ))
            });
            let clock_of_fix = clock.clone();
            let fix = scope.spawn(move || -> Result<Fix, Failure> {
                places.enter("fix")?;
                let fix = Fix {
                    session,
                    template,
                    stream: Stamped::new(orders),
                    clock: clock_of_fix,
                    named: Vec::with_capacity(1 << 12),
                    took: Vec::with_capacity(1 << 16),
                    messages: 0,
                    problems: Vec::new(),
                };
                fix.run(wants, said, ends)
            });
            places.enter("quoter")?;
            let mut market = MarketData {
                books: learn.books,
                future: chain.underlying,
                update: None,
            };
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
            let mut from = Vec::with_capacity(self.tape.packets.len());
            self.signals.ready.store(true, Ordering::Release);
            while !ends.load(Ordering::Acquire) {
                let Some(datagram) = feed.recv(&mut buffer).map_err(lost)? else {
                    std::thread::yield_now();
                    continue;
                };
                let now = clock.nanos_at(datagram.tsc);
                from.push((number(datagram.bytes), datagram.tsc));
                channel.on_datagram(now, Port::Live, Line::A, datagram.bytes, &mut market);
                if let Some(update) = market.update.take() {
                    // Full: the quoting thread does not keep up, and the next price matters more.
                    let _ = updates.push(update);
                }
            }
            let quoter = quoting
                .join()
                .map_err(|_| Failure::system("the quoting thread failed"))??;
            let fix = fix
                .join()
                .map_err(|_| Failure::system("the FIX thread failed"))??;
            let mut done = Done {
                messages: fix.messages,
                problems: fix.problems,
                ..Done::default()
            };
            for mut took in fix.took {
                if let Ok(at) = from.binary_search_by_key(&took.seq, |(seq, _)| *seq) {
                    took.from = from[at].1;
                    done.took.push(took);
                }
            }
            if quoter.state() != tickwire_trading::QuotingState::Quoting {
                done.problems
                    .push(format!("the quoter ended {:?}", quoter.state()));
            }
            Ok(done)
        });
        let mut done = done?;
        let last = self.tape.half_ticks.last().copied().unwrap_or(self.tape.begin);
        done.wanted = Made::wanted(&mut pricer, tick, last)?;
        Ok(done)
    }
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

/// The FIX thread.
struct Fix {
    session: QuoteSession,
    template: MassQuoteTemplate,
    stream: Stamped<TcpStream>,
    clock: Clock,
    named: Vec<u16>,
    took: Vec<Took>,
    messages: u64,
    problems: Vec<String>,
}

impl Fix {
    fn transmit(&mut self) -> Result<(), Failure> {
        let mut chunk = [0; 4_096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.stream.out.send(bytes).map_err(lost)?;
        }
        Ok(())
    }

    fn run(
        mut self,
        mut wants: Consumer<Wanted>,
        mut said: Producer<Said>,
        ends: &AtomicBool,
    ) -> Result<Fix, Failure> {
        self.session.handle_connected(self.clock.now());
        self.transmit()?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut any = false;
            while let Some(wanted) = wants.pop() {
                any = true;
                self.send(&wanted)?;
            }
            match self.stream.out.recv(&mut buffer).map_err(lost)? {
                Received::Bytes(bytes) => {
                    any = true;
                    let bytes: &[u8] = bytes;
                    self.hear(bytes, &mut said)?;
                }
                Received::Nothing if self.stream.out.has_unsent() => {
                    self.stream.out.flush().map_err(lost)?;
                }
                Received::Nothing => {}
                Received::Closed => return Ok(self),
            }
            if !any {
                if ends.load(Ordering::Acquire) {
                    return Ok(self);
                }
                std::thread::yield_now();
            }
        }
    }

    #[inline]
    fn send(&mut self, wanted: &Wanted) -> Result<(), Failure> {
        let head = MassQuoteHead {
            id: wanted.id,
            cause: wanted.cause,
            reset: wanted.reset,
        };
        let entries = &wanted.entries[..usize::from(wanted.len)];
        let now = self.clock.now();
        let encoded = self
            .session
            .encode_mass_quote(now, &mut self.template, &head, entries);
        let bytes = encoded.map_err(|e| Failure::system(format!("a mass quote cannot be sent: {e:?}")))?;
        self.stream.stamp();
        self.stream.out.send(bytes).map_err(lost)?;
        self.messages += 1;
        if wanted.is_late {
            return Ok(());
        }
        let (seq, last) = (wanted.cause.seq.0, self.stream.last);
        match self.took.last_mut() {
            Some(took) if took.seq == seq => {
                took.last = last;
                took.messages += 1;
            }
            _ => self.took.push(Took {
                seq,
                from: 0,
                first: last,
                last,
                messages: 1,
                entries: None,
            }),
        }
        Ok(())
    }

    fn hear(&mut self, mut bytes: &[u8], said: &mut Producer<Said>) -> Result<(), Failure> {
        let now = self.clock.now();
        while !bytes.is_empty() {
            let taken = self.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            while let Some(event) = self.session.poll_event() {
                let answer = match event {
                    Event::LoggedOn { .. } => Some(Said::LoggedOn),
                    Event::Message { .. } => self.answer(),
                    Event::Disconnect { reason, .. } => {
                        self.problems.push(format!("the session ended: {reason}"));
                        None
                    }
                    _ => None,
                };
                if let Some(answer) = answer
                    && said.push(answer).is_err()
                {
                    self.problems
                        .push("the quoting thread does not take answers".into());
                }
            }
            if taken == 0 {
                break;
            }
        }
        self.transmit()
    }

    fn answer(&mut self) -> Option<Said> {
        let message = self.session.message()?;
        match read_quote_answer(&message, &mut self.named) {
            Ok(Some(QuoteAnswer::Answered { id, is_rejected })) => Some(match is_rejected {
                false => Said::Accepted(id),
                true => Said::Refused(id),
            }),
            other => {
                self.problems.push(format!("an answer that is none: {other:?}"));
                None
            }
        }
    }
}

/// Bid and offer of a side, for messages.
pub(super) fn side_name(side: usize) -> &'static str {
    if side == Side::Bid as usize {
        "bid"
    } else {
        "offer"
    }
}
