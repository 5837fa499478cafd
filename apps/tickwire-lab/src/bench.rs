//! `tickwire bench`: the hot path in memory, without sockets, on one core, with its answer checked.
//!
//! One generated session (what a real matching engine published) is decoded, put into books, and led to
//! orders. The books must equal the engine's level by level, else the figures are not shown. A regression
//! here means more work per message: compare ratios of one run, not nanoseconds of two machines.

use std::hint::black_box;

use tickwire_book::Books;
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, Line, SoupConfig,
};
use tickwire_lab::{Histogram, Table, format_count, format_ns};
use tickwire_market::{Counter, Nanos, Port, SeqNo, Side, Symbol};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_runtime::memory_reads::MemoryReads;
use tickwire_runtime::neighbours::{Arrived, Neighbours, PAUSES};
use tickwire_trading::strategy::{BookChange, Context, Strategy, Subscription};
use tickwire_wire::layout::{Alpha, Price4};
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{itch50, moldudp64};

use crate::cli::BenchArgs;
use tickwire_console::failure::Failure;
use tickwire_node::hot::HotPath;
use tickwire_node::live::Live;
use tickwire_node::memory::{self, MemoryOut, answer, idle, memory_path, strategy_path, twin_of};
use tickwire_node::settings::TraderSection;
use tickwire_rig::recorded::{BooksOnly, Discard, Recorded, SESSION, feed, walk};

/// One line of the throughput table.
struct Line1 {
    name: &'static str,
    ns_per_message: Vec<f64>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let symbols = u16::try_from(args.symbols.unwrap_or(2_000))
        .ok()
        .filter(|s| *s > 0)
        .ok_or_else(|| Failure::config("--symbols must lie in 1..=65535".to_string()))?;
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
    let mut unrehearsed_times = Histogram::new();
    // Behind each pause, rehearsed and not.
    let mut paused_times: [[Histogram; 2]; 2] = Default::default();
    let mut neighbours = Neighbours::new();
    let mut reads = MemoryReads::new();
    let mut warm_times = Histogram::new();
    let mut stamped_times = Histogram::new();
    let mut own_times = Histogram::new();
    let mut orders = 0;
    for run in 0..args.runs.max(1) {
        eprintln!("run {} of {}", run + 1, args.runs.max(1));
        reads.look(&clock);
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
        let times = [&mut message_times, &mut order_times];
        orders = path(&session, &single, &clock, rehearsed_ns(), times)?;
        let times = [&mut Histogram::new(), &mut unrehearsed_times];
        path(&session, &single, &clock, 0, times)?;
        for ((pause, _), times) in PAUSES.iter().zip(&mut paused_times) {
            for (times, rehearsed) in times.iter_mut().zip([rehearsed_ns(), 0]) {
                let packets = packets_of(args.messages, *pause);
                paused_path(&clock, &mut neighbours, (*pause, rehearsed), packets, times)?;
            }
        }
    }
    reads.look(&clock);
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
    let paused = PAUSES.map(|(_, pause)| format!("packet -> order, {pause}"));
    let unrehearsed = "the same, not rehearsed";
    let [soon, late] = &paused_times;
    let times = [
        ("any packet of 1 message", &message_times),
        ("packet -> order, one in thousands of packets", &order_times),
        (unrehearsed, &unrehearsed_times),
        (&paused[0], &soon[0]),
        (unrehearsed, &soon[1]),
        (&paused[1], &late[0]),
        (unrehearsed, &late[1]),
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
        "On average, as the clock may have coarse steps: {:.1} ns warm, {:.1} stamped, {:.1} as a strategy.",
        warm_times.mean(),
        stamped_times.mean(),
        own_times.mean()
    );
    println!(
        "A packet -> order ends where the order's bytes lie, before the call that sends; any packet, where the thread could take the next one. Orders are rehearsed every {} in between, as by a thread that never sleeps (trader.idle_us). In a pause others have the caches: the thread walks through memory. A packet behind one is copied before it is timed, as a socket does; of packets one behind the other the next one's lines are asked for, as by the receive loop behind AF_XDP.",
        format_ns(rehearsed_ns())
    );
    println!(
        "books equal the matching engine's at every level; {} orders per run; reading the counter twice costs {} (included)",
        format_count(orders),
        format_ns(timer)
    );
    tell_host(&clock, Some(&reads));
    Ok(())
}

/// What a figure needs beside it: the machine, the command, and what memory took meanwhile where that was
/// looked at.
pub(crate) fn tell_host(clock: &Clock, reads: Option<&MemoryReads>) {
    for (name, value) in tickwire_control::summary::host(clock, None) {
        println!("{name}: {value}");
    }
    let said = reads
        .and_then(MemoryReads::said)
        .map(|said| ("memory reads", said));
    let warned = reads
        .and_then(MemoryReads::warning)
        .map(|warning| ("note", warning));
    for (name, value) in said.into_iter().chain(warned) {
        println!("{name}: {value}");
    }
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
    let mut sink = BooksOnly(memory::books(session.symbols));
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
    let mut sink = BooksOnly(memory::books(session.symbols));
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

/// How often a thread that never sleeps rehearses an order, as shipped.
pub(crate) fn rehearsed_ns() -> u64 {
    u64::from(TraderSection::default().idle_us) * Nanos::MICRO
}

/// How many packets are sent behind a pause: a second of them in a run of the default length.
pub(crate) fn packets_of(messages: u64, pause: u64) -> u64 {
    (messages / 2_000).clamp(20, 1_000) * Nanos::MILLI / pause
}

/// The whole path for packets of one message, an order rehearsed every `rehearsed_ns` between them (0: none);
/// the time of each packet, and of those that led to an order.
fn path(
    session: &Recorded,
    packets: &[u8],
    clock: &Clock,
    rehearsed_ns: u64,
    [all, orders]: [&mut Histogram; 2],
) -> Result<u64, Failure> {
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut channel = ItchChannel::new(feed(session.symbols), SoupConfig::default());
    let mut hot = memory_path::<true>(memory::books(session.symbols), symbol, clock.clone())?;
    let mut twin = twin_of(&hot, &channel);
    let (every, mut due) = (clock.span_ticks(rehearsed_ns), tsc());
    for packet in walk(packets) {
        let before = hot.sessions[0].out.orders;
        if every > 0 && tsc() >= due {
            due = tsc() + every;
            idle(&mut hot, &channel, &mut twin, clock.now());
        }
        let arrived = Arrived::at_once(clock, packet);
        channel.on_datagram(arrived.now, Port::Live, Line::A, arrived.bytes, &mut hot);
        let end = tsc();
        all.record(clock.span_ns(end - arrived.at));
        let out = &hot.sessions[0].out;
        if out.orders > before {
            orders.record(clock.span_ns(out.took(before, arrived.at, end)));
            answer(&mut hot, clock.now());
        }
    }
    check_books(session, &hot.books[0])?;
    if hot.sessions[0].out.orders == 0 {
        return Err(Failure::check(
            "no order was sent, so nothing was measured".to_string(),
        ));
    }
    Ok(hot.sessions[0].out.orders)
}

/// Packets that each change the best offer of one instrument: an offer one cent better enters, then leaves
/// again.
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

/// The whole path when every packet moves the best offer: code and data are warm. Answers how many orders
/// left.
fn warm_path<const STAMPED: bool>(clock: &Clock, times: &mut Histogram) -> Result<u64, Failure> {
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut hot = memory_path::<STAMPED>(memory::books(1), symbol, clock.clone())?;
    warm(&mut hot, clock, times)
}

/// The same with the rule as a strategy of one's own.
fn warm_path_of_strategy(clock: &Clock, times: &mut Histogram) -> Result<u64, Failure> {
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut hot = strategy_path::<_, false>(Taker(symbol), memory::books(1), symbol, clock.clone())?;
    warm(&mut hot, clock, times)
}

/// The built-in rule, written as anybody would.
struct Taker(Symbol);

impl Strategy for Taker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(self.0)]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if change.is_live()
            && let Some(offer) = change.new_best_price(Side::Ask)
        {
            let _ = ctx.buy_now(change.instrument, 100, offer);
        }
    }
}

/// One packet behind the other; the first ones, which find nothing in the caches, are not counted.
fn warm<S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<MemoryOut, STAMPED, Live<S>>,
    clock: &Clock,
    times: &mut Histogram,
) -> Result<u64, Failure> {
    every_packet(hot, clock, (40_000, 1_000), times, None)
}

/// The whole path when every packet moves the best offer and comes so long after the one before, in which an
/// order is rehearsed every so often (0: never); meanwhile others have the caches.
fn paused_path(
    clock: &Clock,
    neighbours: &mut Neighbours,
    (pause, rehearsed): (u64, u64),
    count: u64,
    times: &mut Histogram,
) -> Result<u64, Failure> {
    let symbol = tickwire_exchange::listings(1)[0].symbol;
    let mut hot = memory_path::<false>(memory::books(1), symbol, clock.clone())?;
    // Before them come the book's first bid and offer.
    let behind = Pause {
        neighbours,
        ns: pause,
        rehearsed_ns: rehearsed,
    };
    every_packet(&mut hot, clock, (count, 2), times, Some(behind))
}

/// What lies before a packet: so many nanoseconds in which others have the caches, and an order is rehearsed
/// every so often (0: never).
struct Pause<'n> {
    neighbours: &'n mut Neighbours,
    ns: u64,
    rehearsed_ns: u64,
}

/// Times of so many packets that each move the best offer, but for the first ones, each behind a pause or
/// right behind the one before. Answers how many orders left.
fn every_packet<S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<MemoryOut, STAMPED, Live<S>>,
    clock: &Clock,
    (count, first): (u64, usize),
    times: &mut Histogram,
    mut behind: Option<Pause<'_>>,
) -> Result<u64, Failure> {
    let packets = best_offer_packets(count);
    let mut channel = ItchChannel::new(feed(1), SoupConfig::default());
    let mut twin = twin_of(hot, &channel);
    for (i, packet) in walk(&packets).enumerate() {
        let arrived = match &mut behind {
            None => Arrived::at_once(clock, packet),
            Some(Pause {
                neighbours,
                ns,
                rehearsed_ns,
            }) => {
                let rehearse = |now| idle(hot, &channel, &mut twin, now);
                neighbours.work(clock, *ns, *rehearsed_ns, rehearse);
                neighbours.receive(clock, packet)
            }
        };
        let before = hot.sessions[0].out.orders;
        channel.on_datagram(arrived.now, Port::Live, Line::A, arrived.bytes, hot);
        let end = tsc();
        if i >= first {
            times.record(clock.span_ns(hot.sessions[0].out.took(before, arrived.at, end)));
        }
        answer(hot, arrived.now);
    }
    match hot.sessions[0].out.orders {
        // Without a bid and a reference price first, the first offer is stopped by the price band.
        orders if orders + 2 >= count => Ok(orders),
        orders => Err(Failure::check(format!(
            "{orders} orders left for {count} changes of the best offer"
        ))),
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
        let sent = path(&session, &session.packets(1), &clock, 0, [&mut all, &mut orders]).unwrap();
        assert!(sent > 0 && orders.count() == sent);
        let mut rehearsed = Histogram::new();
        let times = [&mut all, &mut rehearsed];
        assert_eq!(
            path(&session, &session.packets(1), &clock, 1_000, times).unwrap(),
            sent
        );
        assert_eq!(rehearsed.count(), sent);
        let (mut neighbours, mut behind) = (Neighbours::new(), Histogram::new());
        for pause in [(100_000, 10_000), (100_000, 0)] {
            paused_path(&clock, &mut neighbours, pause, 20, &mut behind).unwrap();
        }
        assert_eq!(behind.count(), 40);
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
        let mut sink = BooksOnly(memory::books(session.symbols));
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
            let mut hot = memory_path::<true>(memory::books(session.symbols), symbol, clock.clone()).unwrap();
            let ((), count) = count_allocations(|| {
                for packet in walk(packets) {
                    feed.on_packet(clock.now(), Line::A, packet, &mut hot);
                    feed.on_packet(clock.now(), Line::B, packet, &mut hot);
                    answer(&mut hot, clock.now());
                }
            });
            assert!(hot.sessions[0].out.orders > 0);
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
        let mut hot = memory_path::<true>(memory::books(session.symbols), symbol, clock.clone()).unwrap();
        let ((), count) = count_allocations(|| {
            for group in packets.chunks(50) {
                // The first of each group comes last: 49 packets wait for it.
                for packet in &group[1..] {
                    feed.on_packet(clock.now(), Line::A, packet, &mut hot);
                }
                feed.on_packet(clock.now(), Line::B, group[0], &mut hot);
                answer(&mut hot, clock.now());
            }
        });
        assert_eq!(session.differences(&hot.books[0]), 0);
        assert!(feed.counters().get(Counter::Gaps) > 10);
        assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
    }
}
