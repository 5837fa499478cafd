//! Whole sessions without sockets or a clock, for benchmarks and files: messages of ITCH, datagrams of an
//! order log in FAST.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Nanos, OrderId, Price, Qty, Side, TradingStatus};
use tickwire_wire::fast::Plan;

use crate::engine::{Engine, EngineConfig};
use crate::flow::FlowConfig;
use crate::itch::ItchWriter;
use crate::listing::listings;
use crate::moex::{MoexLog, MoexPublisher, MoexPublisherConfig, MoexTemplates};
use crate::order::{Cross, CrossFill, Execution, Indication, Listener, Order};
use crate::pace::PaceConfig;
use crate::session::Session;
use crate::tape::{Listing, Milestone, Publisher, Tape, VenueTime};

/// 09:30 in New York, in nanoseconds since midnight.
const MARKET_OPEN: u64 = 34_200 * 1_000_000_000;

/// Publishes at least `messages` ITCH messages of a session with `symbols` instruments, then its close; `out`
/// gets each message without framing. Venue time runs at 100,000 messages a second from 09:30. One seed, one
/// stream.
///
/// Gives the engine as it stands in the end: the books that the messages must rebuild.
pub fn generate_itch(seed: u64, messages: u64, symbols: u16, out: &mut impl FnMut(&[u8])) -> Engine {
    let flow = FlowConfig {
        seed,
        max_live: 400_000.max(u32::from(symbols) * 200),
        ..FlowConfig::default()
    };
    let pace = PaceConfig {
        rate: 100_000,
        ..PaceConfig::default()
    };
    generate_itch_of(flow, pace, messages, symbols, out)
}

/// As [`generate_itch`], of any flow at any pace.
pub fn generate_itch_of(
    flow: FlowConfig,
    pace: PaceConfig,
    messages: u64,
    symbols: u16,
    out: &mut impl FnMut(&[u8]),
) -> Engine {
    let listings = listings(symbols);
    let mut engine = Engine::new(EngineConfig {
        instruments: symbols.into(),
        max_orders: flow.max_live + 1000,
        max_levels: 512,
    });
    let (auctions, breaks) = Default::default();
    let mut session = Session::new(flow, pace, auctions, breaks, &listings, MARKET_OPEN);
    let mut publisher = ItchWriter::new(&listings, |message: &[u8]| out(message));
    let mut published = 0;
    while let Some(due) = session.due() {
        published += session.step(due, &mut engine, &mut publisher, &mut ());
        if published >= messages {
            session.close();
        }
    }
    engine
}

/// What an entry of a generated order log says, from the engine itself: neither encoded nor decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// The order.
    pub order: OrderId,
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// What is left of it; zero: it is gone.
    pub qty: Qty,
}

/// Publishes at least `packets` datagrams of the order log of a Moscow market without a clock; `wanted` says
/// how many entries each is to have (1 to 128; the last of the seeding may have fewer, and those that do not
/// fit [`MoexPublisherConfig::datagram_max`] are halved), `out` gets what is in each, and its bytes. Venue
/// time runs at 20,000 entries a second from 10:00. One seed, one log.
///
/// Gives the engine as it stands in the end. An error: the templates lack something.
pub fn generate_moex(
    seed: u64,
    packets: u64,
    config: MoexPublisherConfig,
    templates: Arc<Plan>,
    listings: &[Listing],
    wanted: &mut impl FnMut() -> usize,
    out: &mut impl FnMut(&[LogEntry], &[u8]),
) -> Result<Engine, MoexTemplates> {
    /// 10:00 in Moscow (07:00 UTC), nanoseconds since midnight UTC.
    const OPEN: VenueTime = 7 * 3_600 * Nanos::SECOND;
    /// 2026-01-05, a Monday.
    const MIDNIGHT: Nanos = Nanos(1_767_571_200 * Nanos::SECOND);
    const MAX_LIVE: u32 = 20_000;
    let config = MoexPublisherConfig {
        log: MoexLog::Orders,
        ..config
    };
    let mut engine = Engine::new(EngineConfig {
        instruments: listings.len() as u32,
        max_orders: MAX_LIVE + 1_000,
        max_levels: 2_048,
    });
    // A currency pair's touch moves more often than a share's: up to a tick a step.
    let flow = FlowConfig {
        seed,
        max_live: MAX_LIVE,
        volatility: 256,
        ..FlowConfig::default()
    };
    let pace = PaceConfig {
        rate: 20_000,
        ..PaceConfig::default()
    };
    let (auctions, breaks) = Default::default();
    let mut session = Session::new(flow, pace, auctions, breaks, listings, OPEN);
    let mut log = Logged {
        publisher: MoexPublisher::new(config, templates, listings)?,
        entries: VecDeque::new(),
    };
    log.publisher.open(MIDNIGHT);
    let (mut published, mut count) = (0, wanted());
    let mut told: Vec<LogEntry> = Vec::with_capacity(128);
    while let Some(due) = session.due() {
        if published >= packets {
            break;
        }
        session.step(due, &mut engine, &mut log, &mut ());
        while log.publisher.pending() >= count.clamp(1, 128) {
            log.publisher.set_entries_max(count);
            let before = log.publisher.pending();
            let Some(datagram) = log.publisher.poll_datagram(MIDNIGHT.after(due)) else {
                break;
            };
            told.clear();
            // What a datagram holds is known only once it is written.
            let bytes: Vec<u8> = datagram.bytes.into();
            told.extend(log.entries.drain(..before - log.publisher.pending()));
            out(&told, &bytes);
            published += 1;
            count = wanted();
        }
    }
    Ok(engine)
}

/// A publisher, and what it was told, entry by entry.
struct Logged {
    publisher: MoexPublisher,
    entries: VecDeque<LogEntry>,
}

impl Logged {
    fn note(&mut self, order: &Order, qty: Qty) {
        if !order.hidden {
            self.entries.push_back(LogEntry {
                instrument: order.instrument,
                order: order.id,
                side: order.side,
                price: order.price,
                qty,
            });
        }
    }
}

impl Tape for Logged {
    fn set_time(&mut self, at: VenueTime) {
        self.publisher.set_time(at);
    }

    fn milestone(&mut self, milestone: Milestone) {
        self.publisher.milestone(milestone);
    }

    fn define(&mut self, listing: &Listing) {
        self.publisher.define(listing);
    }

    fn total(&self) -> u64 {
        self.publisher.total()
    }
}

impl Listener for Logged {
    fn rested(&mut self, order: &Order) {
        self.publisher.rested(order);
        self.note(order, order.qty);
    }

    fn executed(&mut self, execution: &Execution) {
        self.publisher.executed(execution);
        self.note(&execution.maker, execution.maker.qty);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        self.publisher.cross_filled(fill);
        if !fill.from_book.is_zero() {
            self.note(&fill.order, fill.order.qty);
        }
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        self.publisher.reduced(order, by);
        self.note(order, order.qty);
    }

    fn deleted(&mut self, order: &Order) {
        self.publisher.deleted(order);
        self.note(order, Qty::ZERO);
    }

    fn expired(&mut self, order: &Order) {
        self.publisher.expired(order);
    }

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.publisher.replaced(old, new, rests);
        self.note(old, Qty::ZERO);
        if rests {
            self.note(new, new.qty);
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        self.publisher.status(instrument, status);
    }

    fn crossed(&mut self, cross: &Cross) {
        self.publisher.crossed(cross);
    }

    fn indicated(&mut self, indication: &Indication) {
        self.publisher.indicated(indication);
    }
}
