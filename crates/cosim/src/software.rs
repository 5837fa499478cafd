//! The strategy in software: decoder, books, conductor and machine as they are live, behind them the gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwire_book::{Books, BooksConfig};
use tickwire_feed_core::{ArbiterConfig, Line};
use tickwire_feed_moex::{MoexChannelConfig, MoexConfig, MoexDecoder, MoexFeed};
use tickwire_feed_nasdaq::{ItchConfig, ItchDecoder, ItchFeed};
use tickwire_language::{Engine, Machine, Program};
use tickwire_market::{
    BookState, ClientOrderId, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderIntent, Price, Qty, SeqNo, Side, Symbol,
};
use tickwire_rtl::frame::{Link, OrderText, PAYLOAD_AT, written};
use tickwire_rtl::{Moex, Venue};
use tickwire_trading::strategy::{
    BookChange, Conductor, ConductorConfig, Context, Markets, OrderEvent, OrderPort, Outcome, Rejected,
    Strategy, Subscription, TimerId, Trade,
};
use tickwire_trading::{ControlsConfig, OrderReport, ReportKind, RiskConfig};

use crate::day::Day;
use crate::gate::Gate;
use crate::stimulus::{Settings, Step};

/// The top of a book as a strategy is told of it, prices in 1e-4, 0 where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// The message.
    pub seq: u64,
    /// Whether the book can be trusted.
    pub is_live: bool,
    /// Bid, then ask: price and quantity.
    pub top: [(u32, u64); 2],
}

/// A level of the book after a message: quantity and orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rung {
    /// The message.
    pub seq: u64,
    /// Which side.
    pub side: Side,
    /// In 1e-4.
    pub price: u32,
    /// All of it.
    pub qty: u64,
    /// How many.
    pub orders: u32,
}

/// An order that left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The message that caused it.
    pub seq: u64,
    /// The frame.
    pub frame: Vec<u8>,
}

/// What the software did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Each time the strategy was told of the book.
    pub told: Vec<Told>,
    /// Each level that a message touched, as it was after it.
    pub rungs: Vec<Rung>,
    /// Orders in turn.
    pub sent: Vec<Sent>,
    /// Orders that were stopped, by conductor or gate.
    pub stopped: u64,
    /// Changes of the book.
    pub changes: u64,
    /// The position if everything traded.
    pub held: i64,
    /// Changes that the book refused, which make the core stop.
    pub refused: u64,
    /// The clock of the last word that brought each message's packet.
    pub arrived: BTreeMap<u64, u64>,
}

/// A strategy that also writes down what it is told.
struct Watched<S> {
    strategy: S,
    told: Vec<Told>,
}

fn price4(price: Price) -> u32 {
    u32::try_from(price.raw() / 100_000).unwrap_or(u32::MAX)
}

impl<S: Strategy> Strategy for Watched<S> {
    fn subscriptions(&self) -> Vec<Subscription> {
        self.strategy.subscriptions()
    }

    fn on_start(&mut self, ctx: &mut Context<'_>) {
        self.strategy.on_start(ctx);
    }

    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        self.strategy.on_instrument(ctx, instrument);
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let after = change.after;
        let side = |side: Side| {
            after
                .best(side)
                .map_or((0, 0), |(price, qty)| (price4(price), qty.0))
        };
        self.told.push(Told {
            seq: after.seq.0,
            is_live: after.state == BookState::Live,
            top: [side(Side::Bid), side(Side::Ask)],
        });
        self.strategy.on_book(ctx, change);
    }

    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        self.strategy.on_trade(ctx, trade);
    }

    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.strategy.on_stale(ctx, instrument);
    }

    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        self.strategy.on_live(ctx, instrument);
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        self.strategy.on_order(ctx, event);
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        self.strategy.on_timer(ctx, timer);
    }
}

/// Orders out: the gate, then the frame. Every one is answered as cancelled, as an `ioc` order that met
/// nobody.
struct Out<'a> {
    gate: Gate,
    link: &'a Link,
    text: &'a OrderText,
    /// Of TCP's payload.
    segment: u32,
    sent: Vec<Sent>,
    unanswered: Vec<ClientOrderId>,
}

impl OrderPort for Out<'_> {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let filled = self.gate.pass(request, self.segment).ok_or(Rejected::NoSession)?;
        let frame = written(self.link, self.text, &filled).ok_or(Rejected::Unsupported)?;
        if let OrderIntent::New { id, cause, .. } = request {
            self.unanswered.push(*id);
            self.sent.push(Sent {
                seq: cause.seq.0,
                frame,
            });
        }
        Ok(())
    }
}

/// Everything behind the decoder.
struct Host<'a, E> {
    books: Vec<Books>,
    conductor: Conductor<Watched<Machine<E>>>,
    out: Out<'a>,
    instrument: InstrumentId,
    done: Done,
    has_gap: bool,
}

/// Stock locates are below two to the power of this.
const BITS: u32 = 16;

impl<E: Engine> Host<'_, E> {
    fn apply(&mut self, event: &MarketEvent) {
        let is_ours = event.instrument == self.instrument;
        let before = self.touched(event);
        let outcome = Outcome::of(&mut self.books[0], event);
        let changes = matches!(
            event.kind,
            EventKind::Add
                | EventKind::Delete
                | EventKind::Replace
                | EventKind::Modify
                | EventKind::Execute
                | EventKind::Reduce
                | EventKind::Clear
        );
        if is_ours && changes {
            match outcome {
                Outcome::Update(..) => self.done.changes += 1,
                Outcome::Other => self.done.refused += 1,
            }
        }
        let markets = Markets::new(&self.books, BITS);
        self.conductor
            .on_event(0, event, &outcome, false, markets, &mut self.out);
        if is_ours && changes {
            self.write_rungs(event, before);
        }
        while let Some(id) = self.out.unanswered.pop() {
            let report = OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Cancelled,
            };
            let markets = Markets::new(&self.books, BITS);
            let _ = self
                .conductor
                .on_report(event.recv_ts, &report, markets, &mut self.out);
        }
    }

    /// Side and price of the order that an event is about.
    fn touched(&self, event: &MarketEvent) -> Option<(Side, Price)> {
        self.books[0]
            .order(event.order_id)
            .map(|order| (order.side, order.price))
    }

    /// The levels that an event has changed.
    fn write_rungs(&mut self, event: &MarketEvent, before: Option<(Side, Price)>) {
        let mut touched = Vec::new();
        touched.extend(before);
        match event.kind {
            EventKind::Add => touched = vec![(event.side, event.price)],
            EventKind::Replace | EventKind::Modify => {
                touched.extend(before.map(|(side, _)| (side, event.price)));
            }
            // No level is left.
            EventKind::Clear => touched.clear(),
            _ => {}
        }
        let Some(book) = self.books[0].book(self.instrument) else {
            return;
        };
        for (side, price) in touched {
            let level = book.levels(side).find(|level| level.price == price);
            self.done.rungs.push(Rung {
                seq: event.seq.0,
                side,
                price: price4(price),
                qty: level.map_or(0, |level| level.qty.0),
                orders: level.map_or(0, |level| level.orders),
            });
        }
    }

    fn whole(&mut self, kind: EventKind, seq: u64) {
        let event = MarketEvent {
            kind,
            seq: SeqNo(seq),
            instrument: InstrumentId::WHOLE_FEED,
            ..MarketEvent::default()
        };
        self.apply(&event);
    }
}

/// A feed that is followed from its first packet on.
fn from_here(config: ArbiterConfig) -> ArbiterConfig {
    ArbiterConfig {
        start: tickwire_feed_core::Start::Here,
        ..config
    }
}

/// The order log of an exchange's market, of which one instrument passes. `None` where the templates lack
/// something.
pub(crate) fn moex_feed(moex: &Moex, symbol: &Symbol) -> Option<MoexFeed> {
    let config = MoexConfig {
        main_board: moex.board.clone().into_bytes(),
        symbols: Some(vec![*symbol]),
        ..MoexConfig::new(Arc::clone(&moex.templates))
    };
    let arbiter = ArbiterConfig {
        snapshot: false,
        ..from_here(MoexChannelConfig::arbiter())
    };
    Some(MoexFeed::new(arbiter, MoexDecoder::new(config).ok()?))
}

impl<E: Engine> Host<'_, E> {
    /// Plays a day's steps into a feed.
    fn play(&mut self, day: &Day, steps: &[Step], mut feed: impl FnMut(Nanos, &[u8], &mut Self)) {
        let mut next = day.packets.first().map_or(1, |packet| packet.seq);
        for step in steps {
            match step {
                Step::Packet(n, cycle) => {
                    let packet = &day.packets[*n];
                    for seq in packet.seq..packet.seq + u64::from(packet.messages) {
                        self.done.arrived.insert(seq, *cycle);
                    }
                    feed(Nanos(*cycle), &packet.bytes, self);
                    next = packet.seq + u64::from(packet.messages);
                }
                Step::Gap => {
                    self.has_gap = true;
                    self.out.gate.is_armed = false;
                    self.whole(EventKind::Gap, next);
                }
                Step::Whole => {
                    self.has_gap = false;
                    self.whole(EventKind::Recovered, next);
                }
                Step::Armed(time) => {
                    self.out.gate.is_armed = self.out.gate.left > 0;
                    self.out.gate.time = *time;
                }
            }
        }
    }
}

impl<E: Engine> EventSink for Host<'_, E> {
    fn on_event(&mut self, event: &MarketEvent) {
        match event.kind {
            // The stimulus says where there is a gap; a first packet that is taken as it comes is none.
            EventKind::Gap | EventKind::Recovered | EventKind::Clear
                if event.instrument == InstrumentId::WHOLE_FEED => {}
            _ => self.apply(event),
        }
    }
}

/// What is compared beside the strategy: the connection, the text of orders, the settings.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The connection.
    pub link: &'a Link,
    /// What stands in every order.
    pub text: &'a OrderText,
    /// Bytes of an order's frame.
    pub frame_size: usize,
    /// What the core is told.
    pub settings: &'a Settings,
    /// The price step.
    pub tick: Price,
    /// Whose feed it is.
    pub venue: &'a Venue,
}

/// Runs a day through the software.
pub fn run<E: Engine>(
    day: &Day,
    steps: &[Step],
    program: &Arc<Program>,
    engine: E,
    around: &Surroundings<'_>,
) -> Done {
    let symbol: Symbol = program.instruments[0].symbol;
    let instrument = around.settings.instrument;
    let (venue, segment) = (
        match around.venue {
            Venue::Nasdaq => tickwire_market::Venue::Nasdaq,
            Venue::Moex(_) => tickwire_market::Venue::Moex,
        },
        around.frame_size - PAYLOAD_AT,
    );
    let watched = Watched {
        strategy: Machine::new(Arc::clone(program), engine),
        told: Vec::new(),
    };
    let config = ConductorConfig {
        instrument_bits: BITS,
        max_orders: 64,
        risk: RiskConfig {
            max_order_qty: Qty(u32::MAX),
            price_band_bp: u32::MAX,
            max_orders_per_window: 1 << 12,
            window_ns: 1,
            max_open_orders: u32::MAX,
            max_position: u64::MAX,
            controls: ControlsConfig::NONE,
            ..RiskConfig::default()
        },
        ..ConductorConfig::default()
    };
    let books = BooksConfig {
        venue,
        instruments: 1 << BITS,
        orders: 1 << 18,
        levels: 1 << 18,
        initial: BookState::Live,
        ..BooksConfig::default()
    };
    let mut host = Host {
        books: vec![Books::new(books)],
        conductor: Conductor::new(watched, &config),
        out: Out {
            gate: Gate::new(around.settings, around.venue.order_most()),
            link: around.link,
            text: around.text,
            segment: segment as u32,
            sent: Vec::new(),
            unanswered: Vec::new(),
        },
        instrument,
        done: Done::default(),
        has_gap: false,
    };
    let named = Instrument {
        id: instrument,
        venue,
        symbol,
        tick: around.tick,
        ..Instrument::default()
    };
    let markets = Markets::new(&host.books, BITS);
    host.conductor.start(Nanos::ZERO, markets, &mut host.out);
    host.conductor
        .define(Nanos::ZERO, 0, &named, None, markets, &mut host.out);
    match around.venue {
        Venue::Nasdaq => {
            let decoder = ItchDecoder::new(ItchConfig {
                symbols: None,
                ..ItchConfig::default()
            });
            let mut feed = ItchFeed::new(from_here(ArbiterConfig::default()), decoder);
            host.play(day, steps, |now, packet, host| {
                feed.on_packet(now, Line::A, packet, host)
            });
        }
        Venue::Moex(moex) => {
            if let Some(mut feed) = moex_feed(moex, &symbol) {
                host.play(day, steps, |now, packet, host| {
                    feed.on_packet(now, Line::A, packet, host)
                });
            }
        }
    }
    let mut done = host.done;
    done.told = std::mem::take(&mut host.conductor.strategy_mut().told);
    done.sent = host.out.sent;
    done.stopped = host.conductor.strategy().strategy.outcomes().not_sent;
    done.held = host.out.gate.held;
    done
}
