//! The hot path with nothing but memory around it, for benchmarks and tests: a session that is logged on,
//! orders that go nowhere.

use std::collections::BTreeMap;
use std::hint::black_box;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, Twin};
use tickwire_fix::{CompId, Role, Session, SessionConfig, Store};
use tickwire_lab::Probes;
use tickwire_market::{Instrument, InstrumentId, Nanos, OrderId, Qty, Symbol, TimeInForce, Venue};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::strategy::{ConductorConfig, QuoteReport, Strategy};
use tickwire_trading::{Accounts, BestOffer, ControlsConfig, OrderReport, ReportKind, RiskConfig};
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::receiver::{ReceiverSection, books_config};

use crate::hot::{HotPath, OrderOut, OrderSession};
use crate::live::{self, Live};
use crate::trader::{self, Rule};

/// Order bytes go into memory, as a NIC's buffer would take them.
#[repr(align(64))]
pub struct MemoryOut {
    /// One has the last message; the other one is for the next, as a card sends out of one while another one
    /// is written.
    buffers: [[u8; 4096]; 2],
    /// Which one has the last.
    last: usize,
    len: usize,
    /// Messages sent.
    pub orders: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// When the last one was in memory, as [`tsc`] counts.
    pub left: u64,
}

impl Default for MemoryOut {
    fn default() -> MemoryOut {
        MemoryOut::new()
    }
}

impl MemoryOut {
    /// The last message.
    pub fn last(&self) -> &[u8] {
        &self.buffers[self.last][..self.len]
    }

    /// Nothing sent yet.
    pub fn new() -> MemoryOut {
        MemoryOut {
            buffers: [[0; 4096]; 2],
            last: 0,
            len: 0,
            orders: 0,
            bytes: 0,
            left: 0,
        }
    }

    /// What a packet took that came at `at` and was through at `end`, as [`tsc`] counts: where an order has
    /// left since there were `before`, until it was in memory.
    #[inline(always)]
    pub fn took(&self, before: u64, at: u64, end: u64) -> u64 {
        match self.orders > before {
            true => self.left - at,
            false => end - at,
        }
    }

    /// Writes a message into the buffer of the next one, and sends it if it is not rehearsed. One copy of the
    /// code, so that a rehearsal brings into the caches what a message needs.
    #[inline(never)]
    fn write(&mut self, bytes: &[u8], is_rehearsal: bool) {
        let next = &mut self.buffers[1 - self.last];
        next[..bytes.len()].copy_from_slice(bytes);
        black_box(next);
        let now = tsc();
        if is_rehearsal {
            return;
        }
        self.left = now;
        (self.last, self.len) = (1 - self.last, bytes.len());
        self.orders += 1;
        self.bytes += bytes.len() as u64;
    }
}

impl OrderOut for MemoryOut {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.write(bytes, false);
        Ok(())
    }

    #[inline(always)]
    fn rehearse(&mut self, bytes: &[u8]) {
        self.write(bytes, true);
    }
}

/// Books as `tickwire trade` and `tickwire feed` have them unless they are told otherwise, of so many
/// instruments.
pub fn books(symbols: u16) -> Books {
    let shipped = ReceiverSection::default();
    Books::new(BooksConfig {
        instruments: u32::from(symbols) + 1,
        ..books_config(&shipped, Venue::Nasdaq, Depth::Aggregated)
    })
}

/// A hot path around the built-in rule, which trades instrument 1 under this symbol: its order entry session
/// is logged on, and there is nothing but memory around it.
///
/// # Errors
/// The session does not log on.
pub fn memory_path<const STAMPED: bool>(
    books: Books,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<MemoryOut, STAMPED>, Failure> {
    strategy_path(rule(symbol), books, symbol, clock)
}

/// The same around any strategy, which is told of changed books as the built-in rule is.
///
/// # Errors
/// As [`memory_path`].
pub fn strategy_path<S: Strategy, const STAMPED: bool>(
    strategy: S,
    books: Books,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<MemoryOut, STAMPED, Live<S>>, Failure> {
    let mut hot = path_of(MemoryOut::new(), strategy, books, clock)?;
    let instrument = Instrument {
        id: InstrumentId(1),
        symbol,
        ..Instrument::default()
    };
    define(&mut hot, &instrument);
    Ok(hot)
}

/// Tells the strategy of an instrument.
pub fn define<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    instrument: &Instrument,
) {
    let now = hot.clock.now();
    live::define_one(hot, now, instrument, None);
}

/// The built-in rule with somewhere else for its orders to go. It trades nothing until [`watch`].
///
/// # Errors
/// As [`memory_path`].
pub fn memory_path_to<O: OrderOut, const STAMPED: bool>(
    out: O,
    books: Books,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<O, STAMPED>, Failure> {
    path_of(out, rule(symbol), books, clock)
}

/// Tells the strategy of an instrument of the channel; whether the channel knows it.
pub fn watch<O: OrderOut, S: Strategy, C: Channel, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    channel: &C,
    symbol: &Symbol,
) -> bool {
    let Some(instrument) = channel
        .find(symbol)
        .and_then(|id| channel.instrument(id))
        .copied()
    else {
        return false;
    };
    let point = channel.point_value(instrument.id).map(|point| point.raw());
    let now = hot.clock.now();
    live::define_one(hot, now, &instrument, point);
    true
}

fn rule(symbol: Symbol) -> BestOffer {
    BestOffer::new(symbol, Qty(100), TimeInForce::ImmediateOrCancel)
}

pub(crate) fn path_of<O: OrderOut, S: Strategy, const STAMPED: bool>(
    out: O,
    strategy: S,
    books: Books,
    clock: Clock,
) -> Result<HotPath<O, STAMPED, Live<S>>, Failure> {
    let instruments = books.config().instruments.max(2).next_power_of_two();
    let config = ConductorConfig {
        instrument_bits: instruments.trailing_zeros(),
        max_orders: 1 << 21,
        risk: limits_of_memory(),
        ..ConductorConfig::default()
    };
    let mut hot = memory_path_of(out, books, Live::alone(strategy, &config, true), clock)?;
    let now = hot.clock.now();
    live::start(&mut hot, now);
    Ok(hot)
}

/// The limits of a path in memory.
pub fn limits_of_memory() -> RiskConfig {
    RiskConfig {
        max_order_qty: Qty(1000),
        price_band_bp: 10_000,
        max_orders_per_window: 1 << 16,
        window_ns: Nanos::SECOND,
        max_open_orders: u32::MAX,
        max_position: u64::MAX,
        // As shipped, but for those that an hour of trading in a second would pass.
        controls: ControlsConfig {
            executions_max: 0,
            instrument_messages: 1 << 20,
            strategy_loss_max: u64::MAX >> 1,
            loss_max: u64::MAX >> 1,
            ..ControlsConfig::default()
        },
        accounts: Accounts::default(),
    }
}

/// A path in memory around any rule.
pub fn memory_path_of<O: OrderOut, R, const STAMPED: bool>(
    out: O,
    books: Books,
    rule: R,
    clock: Clock,
) -> Result<HotPath<O, STAMPED, R>, Failure> {
    let order_entry = OrderEntrySection::default();
    let now = clock.now();
    let mut initiator = trader::session_of(&order_entry);
    log_on(&mut initiator, &order_entry, now)?;
    Ok(HotPath {
        books: vec![books],
        consolidated: None,
        source: 0,
        rule,
        sessions: vec![OrderSession::new(initiator, out)],
        probes: Probes::new(1 << 16),
        samples: 0,
        received: Nanos::ZERO,
        by_event_time: false,
        clock,
        at_close: BTreeMap::new(),
    })
}

/// Logs a session on against an acceptor in memory.
fn log_on(
    initiator: &mut Session<impl Store>,
    order_entry: &OrderEntrySection,
    now: Nanos,
) -> Result<(), Failure> {
    let mut acceptor = acceptor_of(order_entry);
    initiator.handle_connected(now);
    acceptor.handle_connected(now);
    let mut buffer = [0; 4096];
    for _ in 0..4 {
        // A logon is far below what either side takes at once.
        while let Some(bytes) = initiator.poll_transmit(&mut buffer) {
            let _ = acceptor.handle_bytes(now, bytes);
        }
        while let Some(bytes) = acceptor.poll_transmit(&mut buffer) {
            let _ = initiator.handle_bytes(now, bytes);
        }
        while initiator.poll_event().is_some() {}
        while acceptor.poll_event().is_some() {}
    }
    match initiator.status() {
        tickwire_fix::Status::Active => Ok(()),
        status => Err(Failure::check(format!(
            "the FIX session in memory did not log on: {status:?}"
        ))),
    }
}

/// The acceptor's side of the order entry session, for a client in the same process.
fn acceptor_of(section: &OrderEntrySection) -> Session {
    let id = |s: Symbol| CompId::new(s.as_bytes()).expect("a symbol fits a CompID");
    let target = id(section.trader_comp_id.0);
    let mut config = SessionConfig::new(Role::Acceptor, id(section.exchange_comp_id.0), target);
    config.reset_on_logon = true;
    Session::new(config)
}

/// Takes every quote that was asked for and not answered yet.
pub fn accept_quotes<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    while let Some(id) = live::first_asked(hot) {
        let report = QuoteReport::Answered {
            id,
            is_rejected: false,
            refused: &[],
        };
        live::tell_quotes(hot, now, &report);
    }
}

/// The twin of a channel, for [`idle`], if there is one of its kind.
pub fn twin_of<O: OrderOut, S: Strategy, C: Channel, const STAMPED: bool>(
    hot: &HotPath<O, STAMPED, Live<S>>,
    channel: &C,
) -> Option<Twin<C>> {
    let (instrument, price) = Live::rehearsed(hot)?;
    channel.twin(instrument, price)
}

/// What the loop of a thread that waits does when it has time to spare ([`Host`](crate::host::Host)): the
/// path is rehearsed, from a packet of the channel's twin on if it has one, and the channel fetched.
pub fn idle<O: OrderOut, S: Strategy, C: Channel, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    channel: &C,
    twin: &mut Option<Twin<C>>,
    now: Nanos,
) {
    live::idle(hot, now, |hot| {
        twin.as_mut().is_some_and(|twin| twin.play(now, hot))
    });
    let rehearsed = Live::rehearsed(hot).map(|(instrument, _)| instrument);
    tickwire_receive::receiver::fetch(channel, rehearsed);
}

/// Fills the orders that are open, up to eight, so that they do not pile up.
pub fn answer<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    for _ in 0..8 {
        let Some(order) = live::first_open(hot) else {
            return;
        };
        let (id, kind) = match order.replaces {
            Some(old) if order.is_replacing() => (old, ReportKind::ReplaceRejected { by: order.id }),
            _ => {
                let filled = ReportKind::Filled {
                    qty: order.remaining(),
                    price: order.price,
                    cumulative: order.qty,
                };
                (order.id, filled)
            }
        };
        let report = OrderReport {
            id,
            venue_id: Some(OrderId(id.0)),
            kind,
        };
        // Cannot fail for an open order; if it did, the open-order count would show it.
        let _ = live::report(hot, now, &report);
    }
}
