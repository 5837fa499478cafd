//! A day without an end in one pass, and a restart with many orders.

use std::time::Instant;

use tickwire_book::{Books, Depth};
use tickwire_console::failure::Failure;
use tickwire_exchange::{DayPhase, Engine, EngineConfig, NewOrder};
use tickwire_feed::{Channel, Line};
use tickwire_lab::{Table, format_count};
use tickwire_market::{InstrumentId, Port, Price, Qty, Side, TradingStatus, Venue};
use tickwire_persist::{Persist, StateReader};
use tickwire_rig::recorded::BooksOnly;
use tickwire_runtime::clock::thread_cpu_ns;
use tickwire_simulator::session::config_of;
use tickwire_simulator::venue::{self, VIRTUAL_START};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_config;
use tickwire_venues::wiring::{self, Reception, WithChannel};

use super::{Draws, bytes, decades, resident};
use crate::cli::BenchArgs;
use crate::feedbench::symbols_of;

/// From one poll of the publisher to the next: a packet or two of a message.
const STEP_NS: u64 = 12_000;

/// A point of the pass.
struct Point {
    packets: u64,
    messages: u64,
    /// Processor time of the channel and its books since the point before, nanoseconds a packet.
    packet_ns: f64,
    resident: u64,
}

struct Pass<'a> {
    args: &'a BenchArgs,
    up_to: u64,
}

impl WithChannel for Pass<'_> {
    type Output = Result<Vec<Point>, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Self::Output {
        let config = pass_config(self.args, self.up_to)?;
        let mut exchange = venue::exchange_of(&config)?;
        let mut sink = BooksOnly(Books::new(books_config(&config.receiver, Venue::Nasdaq, depth)));
        let (mut points, mut packets, mut took, mut now) = (Vec::new(), 0_u64, 0, VIRTUAL_START);
        let every = (self.up_to / 10).max(1);
        exchange.open(now);
        // What is published between two polls is taken together: asking for the time costs as much as a
        // packet.
        let mut taken: Vec<Vec<u8>> = Vec::new();
        let (mut done, mut timed) = (0, 0);
        while packets < self.up_to && exchange.phase() != DayPhase::Ending {
            now = now.after(STEP_NS);
            exchange.on_time(now);
            while let Some(datagram) = exchange.poll_datagram(0, now) {
                if datagram.port == Port::Live {
                    match taken.get_mut(done) {
                        Some(kept) => {
                            kept.clear();
                            kept.extend_from_slice(datagram.bytes);
                        }
                        None => taken.push(datagram.bytes.to_vec()),
                    }
                    done += 1;
                }
            }
            if done < 256 {
                continue;
            }
            let begin = thread_cpu_ns();
            for datagram in &taken[..done] {
                channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink);
            }
            took += thread_cpu_ns() - begin;
            let before = packets;
            packets += done as u64;
            timed += done;
            done = 0;
            if packets / every > before / every {
                points.push(Point {
                    packets,
                    messages: exchange.total(),
                    packet_ns: took as f64 / timed as f64,
                    resident: resident(),
                });
                (took, timed) = (0, 0);
                eprintln!("  {} packets", format_count(packets));
            }
        }
        for datagram in &taken[..done] {
            channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink);
        }
        for listing in exchange.listings() {
            for side in Side::BOTH {
                let publisher = &exchange.published_channels()[0].publisher;
                let theirs = publisher.levels(exchange.engine(), listing.id, side);
                let book = channel
                    .find(&listing.symbol)
                    .and_then(|id| sink.0.book(id))
                    .map(|book| book.levels(side).collect::<Vec<_>>());
                if book.unwrap_or_default() != theirs {
                    return Err(Failure::check(format!(
                        "the book of {} is not the venue's at the end of the pass",
                        listing.symbol
                    )));
                }
            }
        }
        Ok(points)
    }
}

fn pass_config(
    args: &BenchArgs,
    packets: u64,
) -> Result<tickwire_simulator::settings::MarketConfig, Failure> {
    config_of(
        Protocol::Itch50,
        args.seed,
        symbols_of(args),
        packets.saturating_mul(4),
    )
}

pub(super) fn pass(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let config = pass_config(args, up_to)?;
    let reception = Reception::new(&config.receiver);
    let points = wiring::with_channel(&config.feed[0], 0, &reception, Pass { args, up_to })??;
    let mut table = Table::new(
        &format!(
            "one pass of ITCH in packets of one message or two, {} instruments, no end of the day: processor time of channel and books, memory of the process with the exchange that publishes it",
            symbols_of(args)
        ),
        &["packets", "messages", "ns a packet", "resident"],
    );
    for point in points {
        table = table.row([
            format_count(point.packets),
            format_count(point.messages),
            format!("{:.1}", point.packet_ns),
            bytes(point.resident),
        ]);
    }
    Ok(table)
}

/// Instruments of the engine that is restarted.
const ENGINE_INSTRUMENTS: u32 = 1_000;

fn engine(config: EngineConfig) -> Result<Engine, Failure> {
    let mut engine = Engine::new(config);
    for id in (1..=config.instruments).map(InstrumentId) {
        engine
            .set_status(id, TradingStatus::Trading, &mut ())
            .map_err(|e| Failure::check(format!("instrument {}: {e:?}", id.0)))?;
    }
    Ok(engine)
}

pub(super) fn restart(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let table = Table::new(
        &format!(
            "the matching engine's state with so many orders in {} instruments: milliseconds to write it into memory, to write that into a file and have it on the disk, to read the file, and to take the state up",
            format_count(ENGINE_INSTRUMENTS.into())
        ),
        &[
            "orders",
            "state",
            "bytes an order",
            "written",
            "on the disk",
            "read",
            "taken up",
        ],
    );
    let folder = std::env::temp_dir().join(format!("tickwire-scale-{}", std::process::id()));
    tickwire_runtime::files::create_folders(&folder)
        .map_err(|e| Failure::system(format!("{}: {e}", folder.display())))?;
    let file = folder.join("state");
    let rows = decades(10_000, up_to).into_iter().map(|count| {
        eprintln!("  {} orders", format_count(count));
        restart_with(args, count, &file)
    });
    let rows: Result<Vec<_>, Failure> = rows.collect();
    let _ = std::fs::remove_dir_all(&folder);
    Ok(rows?.into_iter().fold(table, Table::row))
}

fn restart_with(args: &BenchArgs, count: u64, file: &std::path::Path) -> Result<[String; 7], Failure> {
    let config = EngineConfig {
        instruments: ENGINE_INSTRUMENTS,
        max_orders: u32::try_from(count + count / 8).unwrap_or(u32::MAX),
        max_levels: 256,
    };
    let mut before = engine(config)?;
    let mut draws = Draws(args.seed);
    while u64::from(before.live_orders()) < count {
        let side = if draws.next() & 1 == 0 {
            Side::Bid
        } else {
            Side::Ask
        };
        let away = draws.below(100) as i64 * 10_000_000;
        let price = match side {
            Side::Bid => 99_000_000_000 - away,
            Side::Ask => 100_000_000_000 + away,
        };
        let id = InstrumentId(1 + draws.below(ENGINE_INSTRUMENTS.into()) as u32);
        let order = NewOrder::limit(id, side, Price::from_raw(price), Qty(100));
        before
            .submit(&order, &mut ())
            .map_err(|e| Failure::check(format!("order {}: {e:?}", before.live_orders())))?;
    }
    let failed = |e: std::io::Error| Failure::system(format!("{}: {e}", file.display()));
    let mut state = Vec::new();
    let begin = Instant::now();
    before.save(&mut state);
    let written = begin.elapsed();
    let begin = Instant::now();
    tickwire_runtime::files::write(file, &state).map_err(failed)?;
    std::fs::File::open(file)
        .and_then(|file| file.sync_all())
        .map_err(failed)?;
    let kept = begin.elapsed();
    drop(state);
    let begin = Instant::now();
    let state = std::fs::read(file).map_err(failed)?;
    let read = begin.elapsed();
    let mut after = engine(config)?;
    let begin = Instant::now();
    let mut reader = StateReader::new(&state);
    let is_whole = after.load(&mut reader).is_ok() && reader.is_empty();
    let loaded = begin.elapsed();
    if !is_whole || after.state_hash() != before.state_hash() || u64::from(after.live_orders()) != count {
        return Err(Failure::check(
            "the engine that took the state up is not the one that wrote it",
        ));
    }
    let ms = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    Ok([
        format_count(count),
        bytes(state.len() as u64),
        format!("{:.0}", state.len() as f64 / count as f64),
        ms(written),
        ms(kept),
        ms(read),
        ms(loaded),
    ])
}
