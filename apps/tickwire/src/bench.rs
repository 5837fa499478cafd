//! `tickwire bench`: the way of a packet in memory, without sockets, on one core, with its answer checked.
//!
//! One generated session (what a real matching engine published) is decoded, put into books, and led to orders. The books
//! must equal the engine's level by level, else the figures are not shown. A regression here means more work per message:
//! compare ratios of one run, not nanoseconds of two machines.

use std::collections::BTreeMap;
use std::hint::black_box;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{Engine, generate_itch};
use tickwire_feed::{ArbiterConfig, ItchConfig, ItchDecoder, ItchFeed, Line};
use tickwire_fix::Session;
use tickwire_lab::{Histogram, Probes, Table, format_count, format_ns};
use tickwire_market::{
    ClientOrderId, Counter, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Qty, SeqNo, Side, Symbol,
    Venue,
};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::alloc;
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_trading::{ControlsConfig, RiskConfig, TickToTrade, TradingConfig};
use tickwire_wire::layout::{Alpha, Price4};
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{itch50, moldudp64};

use crate::cli::BenchArgs;
use crate::config::{Config, ReceiverSection};
use crate::hot::{HotPath, OrderOut};
use crate::strategy::live;
use crate::trader::books_config;
use crate::{report, trader};
use tickwire_console::failure::Failure;

/// A session in memory: messages behind their length, as in a file, and the engine's books at the end.
pub(crate) struct Recorded {
    bytes: Vec<u8>,
    pub(crate) messages: u64,
    engine: Engine,
    pub(crate) symbols: u16,
}

impl Recorded {
    pub(crate) fn generate(seed: u64, messages: u64, symbols: u16) -> Recorded {
        let mut bytes = Vec::with_capacity(messages as usize * 36);
        let mut count = 0;
        let engine = generate_itch(seed, messages, symbols, &mut |message: &[u8]| {
            bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
            bytes.extend_from_slice(message);
            count += 1;
        });
        Recorded {
            bytes,
            messages: count,
            engine,
            symbols,
        }
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (len, tail) = rest.split_first_chunk::<2>()?;
            let (message, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
            rest = tail;
            Some(message)
        })
    }

    /// As MoldUDP64 datagrams of up to `per_packet` messages and 1,400 bytes, one behind the other, each behind its length.
    pub(crate) fn packets(&self, per_packet: u16) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + self.bytes.len() / usize::from(per_packet));
        let mut buffer = [0_u8; 1400];
        let mut messages = self.each().peekable();
        let mut seq = SeqNo(1);
        while messages.peek().is_some() {
            let mut packet = moldudp64::PacketBuilder::new(&mut buffer, *SESSION, seq);
            while packet.count() < per_packet && messages.peek().is_some_and(|m| packet.push(m)) {
                messages.next();
            }
            seq = seq.advance(packet.count().into());
            let len = packet.finish();
            out.extend_from_slice(&(len as u16).to_be_bytes());
            out.extend_from_slice(&buffer[..len]);
        }
        out
    }

    /// How many price levels of these books are not the engine's.
    pub(crate) fn differences(&self, books: &Books) -> usize {
        let mut different = 0;
        for id in (1..=u32::from(self.symbols)).map(InstrumentId) {
            for side in Side::BOTH {
                let mut theirs = self.engine.levels(id, side);
                if let Some(book) = books.book(id) {
                    different += book
                        .levels(side)
                        .filter(|l| theirs.next().is_none_or(|t| t != *l))
                        .count();
                }
                different += theirs.count();
            }
        }
        different
    }
}

const SESSION: &[u8; 10] = b"BENCHMARK0";

/// Walks length-prefixed packets.
pub(crate) fn walk(packets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = packets;
    std::iter::from_fn(move || {
        let (len, tail) = rest.split_first_chunk::<2>()?;
        let (packet, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
        rest = tail;
        Some(packet)
    })
}

/// Events counted, and thrown away.
pub(crate) struct Discard(pub(crate) u64);

impl EventSink for Discard {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.0 += 1;
        black_box(event);
    }
}

/// Books alone.
pub(crate) struct BooksOnly(pub(crate) Books);

impl EventSink for BooksOnly {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        let _ = black_box(self.0.apply(event));
    }
    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.0.upcoming(instrument, order_id);
    }
}

/// Order bytes go into memory, as a NIC's buffer would take them.
pub(crate) struct MemoryOut {
    last: [u8; 512],
    pub(crate) orders: u64,
    pub(crate) bytes: u64,
}

impl MemoryOut {
    pub(crate) fn new() -> MemoryOut {
        MemoryOut {
            last: [0; 512],
            orders: 0,
            bytes: 0,
        }
    }
}

impl OrderOut for MemoryOut {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.last[..bytes.len()].copy_from_slice(bytes);
        black_box(&mut self.last);
        self.orders += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

pub(crate) fn feed(symbols: u16) -> ItchFeed {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: u32::from(symbols) + 1,
        ..ItchConfig::default()
    });
    ItchFeed::new(ArbiterConfig::default(), decoder)
}

pub(crate) fn books(session: &Recorded) -> Books {
    // What `tickwire trade` and `tickwire feed` have unless they are told otherwise.
    let shipped = ReceiverSection::default();
    Books::new(BooksConfig {
        instruments: u32::from(session.symbols) + 1,
        ..books_config(&shipped, Venue::Nasdaq, Depth::Aggregated)
    })
}

/// A hot path whose order entry session is logged on, with nothing but memory around it.
pub(crate) fn memory_path<const STAMPED: bool>(
    books: Books,
    symbols: u32,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<MemoryOut, STAMPED>, Failure> {
    memory_path_to(MemoryOut::new(), books, symbols, symbol, clock)
}

/// The same with somewhere else for its orders to go.
pub(crate) fn memory_path_to<O: OrderOut, const STAMPED: bool>(
    out: O,
    books: Books,
    symbols: u32,
    symbol: Symbol,
    clock: Clock,
) -> Result<HotPath<O, STAMPED>, Failure> {
    let rule = TickToTrade::new(&limits_of_memory(symbols));
    let mut hot = memory_path_of(out, books, rule, clock)?;
    hot.rule.set_session(true);
    hot.template = hot.session.order_template(symbol);
    Ok(hot)
}

/// The limits of a path in memory.
pub(crate) fn limits_of_memory(symbols: u32) -> TradingConfig {
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
pub(crate) fn memory_path_of<O: OrderOut, R, const STAMPED: bool>(
    out: O,
    books: Books,
    rule: R,
    clock: Clock,
) -> Result<HotPath<O, STAMPED, R>, Failure> {
    let config = Config::default();
    let now = clock.now();
    let mut initiator = trader::session_of(&config);
    log_on(&mut initiator, &config, now)?;
    Ok(HotPath {
        books,
        rule,
        session: initiator,
        template: None,
        out,
        probes: Probes::new(1 << 16),
        clock,
        failure: None,
        withdrawn: 0,
        at_close: BTreeMap::new(),
    })
}

/// Logs a session on against an acceptor in memory.
fn log_on(initiator: &mut Session, config: &Config, now: Nanos) -> Result<(), Failure> {
    let mut acceptor = crate::venue::acceptor_of(config);
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

/// One line of the throughput table.
struct Line1 {
    name: &'static str,
    ns_per_message: Vec<f64>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(core) = args.core {
        Cores::count()
            .pin(core)
            .map_err(|e| Failure::system(e.to_string()))?;
    }
    let symbols = u16::try_from(args.symbols)
        .ok()
        .filter(|s| *s > 0)
        .ok_or_else(|| Failure::config("--symbols must lie in 1..=65535".to_string()))?;
    alloc::populate_large_blocks();
    eprintln!(
        "generating {} messages, {symbols} instruments, seed {} ...",
        format_count(args.messages),
        args.seed
    );
    let session = Recorded::generate(args.seed, args.messages, symbols);
    if let Some(path) = &args.write_session {
        let written = tickwire_runtime::files::write(path, &session.bytes);
        return written.map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())));
    }
    let clock = Clock::calibrate();
    let (many, single) = (session.packets(30), session.packets(1));
    let mut lines: Vec<Line1> = Vec::new();
    let mut message_times = Histogram::new();
    let mut order_times = Histogram::new();
    let mut warm_times = Histogram::new();
    let mut stamped_times = Histogram::new();
    let mut own_times = Histogram::new();
    let mut orders = 0;
    for run in 0..args.runs.max(1) {
        eprintln!("run {} of {}", run + 1, args.runs.max(1));
        let mut add = |name, ns: u64| {
            let ns = ns as f64 / session.messages as f64;
            match lines.iter_mut().find(|l| l.name == name) {
                Some(line) => line.ns_per_message.push(ns),
                None => lines.push(Line1 {
                    name,
                    ns_per_message: vec![ns],
                }),
            }
        };
        add("decode", decode(&session)?);
        add("decode -> event", events(&session, &many)?);
        add("packets of 30 -> books", through_books(&session, &many)?);
        add("packets of 1 -> books", through_books(&session, &single)?);
        filtered(&session, &many, &mut add)?;
        warm_path::<true>(&clock, &mut stamped_times)?;
        warm_path::<false>(&clock, &mut warm_times)?;
        warm_path_of_strategy(&clock, &mut own_times)?;
        orders = path(&session, &single, &clock, &mut message_times, &mut order_times)?;
    }
    let mut table = Table::new(
        &format!(
            "processor time of one core: {} messages, {symbols} instruments, median of {} runs",
            format_count(session.messages),
            args.runs
        ),
        &["", "ns per message", "million messages/s"],
    );
    for mut line in lines {
        line.ns_per_message.sort_by(f64::total_cmp);
        let ns = line.ns_per_message[line.ns_per_message.len() / 2];
        table = table.row([
            line.name.to_string(),
            format!("{ns:.1}"),
            format!("{:.1}", 1e3 / ns),
        ]);
    }
    println!("{}", table.to_text(tickwire_console::terminal::width()));
    let times = [
        ("any packet of 1 message", &message_times),
        ("packet -> order, one in thousands of packets", &order_times),
        ("packet -> order, every packet (warm)", &warm_times),
        ("the same with every stage stamped", &stamped_times),
        ("the same (not stamped), the rule as a strategy", &own_times),
    ];
    println!(
        "{}",
        Table::latencies("time in the hot path, per packet", &times)
            .to_text(tickwire_console::terminal::width())
    );
    let timer = timer_cost(&clock);
    println!(
        "books equal the matching engine's at every level; {} orders per run; reading the counter twice costs {} (included)",
        format_count(orders),
        format_ns(timer)
    );
    for (name, value) in report::host(&clock, None) {
        println!("{name}: {value}");
    }
    Ok(())
}

/// What two readings of the counter in a row differ by, the median.
fn timer_cost(clock: &Clock) -> u64 {
    let mut cost = Histogram::new();
    for _ in 0..10_000 {
        let begin = tsc();
        cost.record(clock.span_ns(tsc() - begin));
    }
    cost.at_quantile(0.5)
}

/// Type and the fields a book needs.
fn decode(session: &Recorded) -> Result<u64, Failure> {
    let (mut sum, mut count) = (0_u64, 0);
    let begin = thread_cpu_ns();
    for message in session.each() {
        count += 1;
        sum = sum.wrapping_add(match itch50::parse(message) {
            Ok(itch50::Message::AddOrder(m)) => {
                m.order_ref.get() ^ u64::from(m.shares.get()) ^ m.price.price().raw() as u64
            }
            Ok(itch50::Message::OrderDelete(m)) => m.order_ref.get(),
            Ok(itch50::Message::OrderReplace(m)) => m.new_order_ref.get() ^ m.price.price().raw() as u64,
            Ok(itch50::Message::OrderExecuted(m)) => m.order_ref.get() ^ u64::from(m.executed_shares.get()),
            Ok(other) => u64::from(other.kind()),
            Err(e) => return Err(Failure::check(format!("message {count} does not decode: {e}"))),
        });
    }
    let ns = thread_cpu_ns() - begin;
    black_box(sum);
    check_count(session, count)?;
    Ok(ns)
}

fn events(session: &Recorded, packets: &[u8]) -> Result<u64, Failure> {
    let mut feed = feed(session.symbols);
    let mut sink = Discard(0);
    let begin = thread_cpu_ns();
    for packet in walk(packets) {
        feed.on_packet(Nanos(1), Line::A, packet, &mut sink);
    }
    let ns = thread_cpu_ns() - begin;
    check_count(session, feed.counters().get(Counter::Messages))?;
    Ok(ns)
}

fn through_books(session: &Recorded, packets: &[u8]) -> Result<u64, Failure> {
    let mut feed = feed(session.symbols);
    let mut sink = BooksOnly(books(session));
    let begin = thread_cpu_ns();
    for packet in walk(packets) {
        feed.on_packet(Nanos(1), Line::A, packet, &mut sink);
    }
    let ns = thread_cpu_ns() - begin;
    check_count(session, feed.counters().get(Counter::Messages))?;
    check_books(session, &sink.0)?;
    Ok(ns)
}

/// The least active percent of the instruments subscribed: what a message costs that nobody wants.
fn filtered(
    session: &Recorded,
    packets: &[u8],
    add: &mut impl FnMut(&'static str, u64),
) -> Result<(), Failure> {
    let listed = tickwire_exchange::listings(session.symbols);
    let wanted = listed[listed.len() - listed.len().div_ceil(100)..]
        .iter()
        .map(|l| l.symbol)
        .collect();
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: u32::from(session.symbols) + 1,
        symbols: Some(wanted),
        ..ItchConfig::default()
    });
    let mut feed = ItchFeed::new(ArbiterConfig::default(), decoder);
    let mut sink = BooksOnly(books(session));
    let begin = thread_cpu_ns();
    for packet in walk(packets) {
        feed.on_packet(Nanos(1), Line::A, packet, &mut sink);
    }
    add(
        "packets of 30, all but the least active 1 % filtered out",
        thread_cpu_ns() - begin,
    );
    check_count(session, feed.counters().get(Counter::Messages))
}

/// The whole path for packets of one message; the time of each packet, and of those that led to an order.
fn path(
    session: &Recorded,
    packets: &[u8],
    clock: &Clock,
    all: &mut Histogram,
    orders: &mut Histogram,
) -> Result<u64, Failure> {
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut feed = feed(session.symbols);
    let mut hot = memory_path::<true>(books(session), session.symbols.into(), symbol, clock.clone())?;
    for packet in walk(packets) {
        let before = hot.out.orders;
        let begin = tsc();
        feed.on_packet(clock.nanos_at(begin), Line::A, packet, &mut hot);
        let ns = clock.span_ns(tsc() - begin);
        all.record(ns);
        if hot.out.orders > before {
            orders.record(ns);
            answer(&mut hot);
        }
    }
    check_books(session, &hot.books)?;
    if hot.out.orders == 0 {
        return Err(Failure::check(
            "no order was sent, so nothing was measured".to_string(),
        ));
    }
    Ok(hot.out.orders)
}

/// Packets that each change the best offer of one instrument: an offer one cent better enters, then leaves again.
fn best_offer_packets(count: u64) -> Vec<u8> {
    let (locate, time) = (1, 1);
    let stock = Alpha::from_symbol(&tickwire_exchange::listings(1)[0].symbol)
        .expect("symbols of ITCH have 8 letters");
    let add = |order_ref: u64, side: Side, cents: u32| itch50::AddOrder {
        order_ref: order_ref.into(),
        side: itch50::side_char(side),
        shares: 100.into(),
        stock,
        price: Price4::new(cents * 100),
        ..itch50::AddOrder::at(locate, time)
    };
    let mut out = Vec::new();
    let mut push = |seq: u64, message: &[u8]| {
        let mut buffer = [0; 128];
        let mut packet = moldudp64::PacketBuilder::new(&mut buffer, *SESSION, SeqNo(seq));
        assert!(packet.push(message), "a message fits");
        let len = packet.finish();
        out.extend_from_slice(&(len as u16).to_be_bytes());
        out.extend_from_slice(&buffer[..len]);
    };
    push(1, add(1, Side::Bid, 10_000).as_bytes());
    push(2, add(2, Side::Ask, 10_010).as_bytes());
    for i in 0..count / 2 {
        push(3 + 2 * i, add(3 + i, Side::Ask, 10_009).as_bytes());
        let delete = itch50::OrderDelete {
            order_ref: (3 + i).into(),
            ..itch50::OrderDelete::at(locate, time)
        };
        push(4 + 2 * i, delete.as_bytes());
    }
    out
}

/// The whole path when every packet moves the best offer: code and data are warm. Answers how many orders left.
fn warm_path<const STAMPED: bool>(clock: &Clock, times: &mut Histogram) -> Result<u64, Failure> {
    let session = Recorded::generate(1, 1, 1);
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut hot = memory_path::<STAMPED>(books(&session), session.symbols.into(), symbol, clock.clone())?;
    warm(&mut hot, clock, times, |hot, _| answer(hot))
}

/// The same with the rule as a strategy of one's own.
fn warm_path_of_strategy(clock: &Clock, times: &mut Histogram) -> Result<u64, Failure> {
    let session = Recorded::generate(1, 1, 1);
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let taker = live::Taker::new(symbol);
    let mut hot = live::memory_path::<_, false>(taker, books(&session), symbol, clock.clone())?;
    warm(&mut hot, clock, times, live::answer)
}

fn warm<R, const STAMPED: bool>(
    hot: &mut HotPath<MemoryOut, STAMPED, R>,
    clock: &Clock,
    times: &mut Histogram,
    mut answer: impl FnMut(&mut HotPath<MemoryOut, STAMPED, R>, Nanos),
) -> Result<u64, Failure>
where
    HotPath<MemoryOut, STAMPED, R>: EventSink,
{
    const PACKETS: u64 = 40_000;
    let packets = best_offer_packets(PACKETS);
    let mut feed = feed(1);
    for (i, packet) in walk(&packets).enumerate() {
        let begin = tsc();
        let now = clock.nanos_at(begin);
        feed.on_packet(now, Line::A, packet, hot);
        let ns = clock.span_ns(tsc() - begin);
        if i > 1_000 {
            times.record(ns);
        }
        answer(hot, now);
    }
    match hot.out.orders {
        // Without a bid and a reference price first, the first offer is stopped by the price band.
        orders if orders + 2 >= PACKETS => Ok(orders),
        orders => Err(Failure::check(format!(
            "{orders} orders left for {PACKETS} changes of the best offer"
        ))),
    }
}

/// Fills the last order sent if it is still open, so that orders do not pile up.
pub(crate) fn answer<const STAMPED: bool>(hot: &mut HotPath<MemoryOut, STAMPED>) {
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

fn check_count(session: &Recorded, count: u64) -> Result<(), Failure> {
    match count == session.messages {
        true => Ok(()),
        false => Err(Failure::check(format!(
            "{count} messages arrived of {}",
            session.messages
        ))),
    }
}

fn check_books(session: &Recorded, books: &Books) -> Result<(), Failure> {
    match session.differences(books) {
        0 => Ok(()),
        n => Err(Failure::check(format!(
            "{n} price levels differ from the matching engine's: the figures would mean nothing"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_runtime::alloc::count_allocations;

    #[test]
    fn the_benchmark_checks_its_answer_on_a_small_session() {
        let session = Recorded::generate(3, 20_000, 20);
        let clock = Clock::calibrate();
        let (mut all, mut orders) = (Histogram::new(), Histogram::new());
        let sent = path(&session, &session.packets(1), &clock, &mut all, &mut orders).unwrap();
        assert!(sent > 0 && orders.count() == sent);
        through_books(&session, &session.packets(30)).unwrap();
        let mut warm = Histogram::new();
        assert!(warm_path::<false>(&clock, &mut warm).unwrap() > 39_000 && warm.count() > 38_000);
        let mut own = Histogram::new();
        assert!(warm_path_of_strategy(&clock, &mut own).unwrap() > 39_000 && own.count() > 38_000);
        decode(&session).unwrap();
        events(&session, &session.packets(30)).unwrap();
        filtered(&session, &session.packets(30), &mut |_, _| {}).unwrap();
    }

    #[test]
    fn a_wrong_book_fails_the_benchmark() {
        let session = Recorded::generate(3, 5_000, 20);
        let mut feed = feed(session.symbols);
        let mut sink = BooksOnly(books(&session));
        let packets = session.packets(30);
        let whole = walk(&packets).count();
        walk(&packets)
            .take(whole / 2)
            .for_each(|p| feed.on_packet(Nanos(1), Line::A, p, &mut sink));
        assert!(
            check_books(&session, &sink.0)
                .unwrap_err()
                .message
                .contains("differ")
        );
    }

    #[test]
    fn nothing_is_allocated_on_the_way_of_a_packet_after_start_up() {
        let session = Recorded::generate(7, 100_000, 50);
        let clock = Clock::calibrate();
        let (single, many) = (session.packets(1), session.packets(30));
        for packets in [&single, &many] {
            let mut feed = feed(session.symbols);
            let symbol = tickwire_exchange::listings(1)[0].symbol;
            let mut hot =
                memory_path::<true>(books(&session), session.symbols.into(), symbol, clock.clone()).unwrap();
            let ((), count) = count_allocations(|| {
                for packet in walk(packets) {
                    feed.on_packet(clock.now(), Line::A, packet, &mut hot);
                    feed.on_packet(clock.now(), Line::B, packet, &mut hot);
                    answer(&mut hot);
                }
            });
            assert!(hot.out.orders > 0);
            assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
        }
    }

    #[test]
    fn nothing_is_allocated_while_a_gap_is_open_and_when_it_closes() {
        let session = Recorded::generate(8, 50_000, 50);
        let clock = Clock::calibrate();
        let packets = session.packets(10);
        let packets: Vec<&[u8]> = walk(&packets).collect();
        let mut feed = feed(session.symbols);
        let symbol = tickwire_exchange::listings(1)[0].symbol;
        let mut hot =
            memory_path::<true>(books(&session), session.symbols.into(), symbol, clock.clone()).unwrap();
        let ((), count) = count_allocations(|| {
            for group in packets.chunks(50) {
                // The first of each group comes last: 49 packets wait for it.
                for packet in &group[1..] {
                    feed.on_packet(clock.now(), Line::A, packet, &mut hot);
                }
                feed.on_packet(clock.now(), Line::B, group[0], &mut hot);
                answer(&mut hot);
            }
        });
        assert_eq!(session.differences(&hot.books), 0);
        assert!(feed.counters().get(Counter::Gaps) > 10);
        assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
    }
}
