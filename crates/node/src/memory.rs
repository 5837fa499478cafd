//! The hot path with nothing but memory around it, for benchmarks and tests: a session that is logged on,
//! orders that go nowhere.

use std::collections::BTreeMap;
use std::hint::black_box;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_console::failure::Failure;
use tickwire_fix::{CompId, OrderTemplate, Role, Session, SessionConfig};
use tickwire_lab::Probes;
use tickwire_market::{ClientOrderId, Counter, InstrumentId, Nanos, OrderId, Qty, Symbol, Venue};
use tickwire_runtime::clock::Clock;
use tickwire_trading::{ControlsConfig, RiskConfig, TickToTrade, TradingConfig};
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::receiver::{ReceiverSection, books_config};

use crate::hot::{HotPath, OrderOut, OrderSession};
use crate::trader;

/// Order bytes go into memory, as a NIC's buffer would take them.
pub struct MemoryOut {
    last: [u8; 4096],
    len: usize,
    /// Messages sent.
    pub orders: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Default for MemoryOut {
    fn default() -> MemoryOut {
        MemoryOut::new()
    }
}

impl MemoryOut {
    /// The last message.
    pub fn last(&self) -> &[u8] {
        &self.last[..self.len]
    }

    /// Nothing sent yet.
    pub fn new() -> MemoryOut {
        MemoryOut {
            last: [0; 4096],
            len: 0,
            orders: 0,
            bytes: 0,
        }
    }
}

impl OrderOut for MemoryOut {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.last[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
        black_box(&mut self.last);
        self.orders += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
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

/// A hot path whose order entry session is logged on, with nothing but memory around it.
pub fn memory_path<const STAMPED: bool>(
    books: Books,
    symbols: u32,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<MemoryOut, STAMPED>, Failure> {
    memory_path_to(MemoryOut::new(), books, symbols, symbol, clock)
}

/// The same with somewhere else for its orders to go.
pub fn memory_path_to<O: OrderOut, const STAMPED: bool>(
    out: O,
    books: Books,
    symbols: u32,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<O, STAMPED>, Failure> {
    let rule = TickToTrade::new(&limits_of_memory(symbols));
    let mut hot = memory_path_of(out, books, rule, clock)?;
    hot.rule.set_session(true);
    hot.template = OrderTemplate::new(&hot.sessions[0].fix, symbol);
    Ok(hot)
}

/// The limits of a path in memory.
pub fn limits_of_memory(symbols: u32) -> TradingConfig {
    TradingConfig {
        instrument: InstrumentId(1),
        lot: Qty(100),
        max_instruments: symbols + 1,
        max_orders: 1 << 21,
        risk: RiskConfig {
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
        },
        ..TradingConfig::default()
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
        symbol: Symbol::EMPTY,
        sessions: vec![OrderSession::new(initiator, out)],
        template: None,
        probes: Probes::new(1 << 16),
        samples: 0,
        clock,
        withdrawn: 0,
        at_close: BTreeMap::new(),
    })
}

/// Logs a session on against an acceptor in memory.
fn log_on(initiator: &mut Session, order_entry: &OrderEntrySection, now: Nanos) -> Result<(), Failure> {
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

/// Fills the last order sent if it is still open, so that orders do not pile up.
pub fn answer<const STAMPED: bool>(hot: &mut HotPath<MemoryOut, STAMPED>) {
    use tickwire_trading::{OrderReport, ReportKind};
    let last = ClientOrderId(hot.rule.counters().get(Counter::OrdersSent));
    if let Some(order) = hot.rule.orders().get(last).copied().filter(|o| o.state.is_open()) {
        let kind = ReportKind::Filled {
            qty: order.qty,
            price: order.price,
            cumulative: order.qty,
        };
        let report = OrderReport {
            id: last,
            venue_id: Some(OrderId(last.0)),
            kind,
        };
        // Cannot fail for an open order; if it did, the open-order count would show it.
        let _ = hot.rule.on_report(&report);
    }
}
