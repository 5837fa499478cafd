//! Packet bytes to order bytes in memory: decoding, sequencing, book, rule, checks and FIX encoding, no
//! socket.

use std::path::Path;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{Channel, Line};
use tickwire_market::{BookState, Nanos, Port, Price};
use tickwire_runtime::clock::{Clock, tsc};

use super::{Checker, Log, Problems};
use tickwire_console::failure::Failure;
use tickwire_node::hot::{HotPath, OrderOut};
use tickwire_node::memory::{memory_path_to, watch};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// A packet that led to an order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Timed {
    /// Its place in the log, from 0.
    pub(crate) at: usize,
    /// From before the packet's bytes are looked at until the first order's bytes are in memory.
    pub(crate) order_ns: u64,
    /// Until the packet is done with.
    pub(crate) done_ns: u64,
}

/// What came of a pass through the log.
pub(crate) struct Pass {
    pub(crate) timed: Vec<Timed>,
    /// What packets took that led to no order, each with its place in the log.
    pub(crate) silent: Vec<(usize, u64)>,
    pub(crate) orders: u64,
    pub(crate) problems: Problems,
}

/// Where orders go: as much memory as a packet's orders take.
pub(crate) struct Taken {
    /// After the first order's bytes were copied; 0: none yet.
    first: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl OrderOut for Taken {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        if self.first == 0 {
            self.first = tsc();
        }
        Ok(())
    }
}

/// Passes the whole log through the path once. Packets before `warm_up` are checked, not timed.
pub(crate) fn pass(log: &Log, templates: &Path, warm_up: usize, clock: &Clock) -> Result<Pass, Failure> {
    let mut feed = FeedConfig::on_loopback(Protocol::Moex);
    feed.templates = vec![templates.to_owned()];
    let reception = Reception::new(&ReceiverSection {
        max_instruments: 64,
        max_orders: 1 << 16,
        max_levels: 1 << 14,
        ..ReceiverSection::default()
    });
    let run = Run { log, warm_up, clock };
    wiring::with_channel(&feed, 0, &reception, run)?
}

struct Run<'a> {
    log: &'a Log,
    warm_up: usize,
    clock: &'a Clock,
}

impl WithChannel for Run<'_> {
    type Output = Result<Pass, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Result<Pass, Failure> {
        let Run { log, warm_up, clock } = self;
        let books = Books::new(BooksConfig {
            depth,
            venue: channel.venue(),
            instruments: 65,
            orders: 1 << 16,
            levels: 1 << 14,
            initial: BookState::Building,
            ..BooksConfig::default()
        });
        let symbol = log.symbol();
        // A packet of 128 entries leads to 128 orders at most, each below 512 bytes.
        let out = Taken {
            first: 0,
            bytes: Vec::with_capacity(128 * 512),
            ends: Vec::with_capacity(128),
        };
        let mut hot: HotPath<Taken, false> = memory_path_to(out, books, symbol, clock.clone())?;
        let mut pass = Pass {
            timed: Vec::with_capacity(log.len()),
            silent: Vec::with_capacity(log.len()),
            orders: 0,
            problems: Problems::default(),
        };
        let (mut checker, mut expected, mut is_watching) = (Checker::default(), Vec::new(), false);
        // Ten thousand packets a second of the path's own time: below its limit of orders a second.
        let begin = clock.now();
        for at in 0..log.len() {
            let payload = log.payload(at);
            checker.expect(log.offers(at), &mut expected);
            hot.sessions[0].out.first = 0;
            hot.sessions[0].out.bytes.clear();
            hot.sessions[0].out.ends.clear();
            let now = begin.after(at as u64 * 100 * Nanos::MICRO);
            let before = tsc();
            channel.on_datagram(now, Port::Live, Line::A, payload, &mut hot);
            let after = tsc();
            if !is_watching {
                is_watching = watch(&mut hot, &channel, &symbol);
            }
            pass.orders += hot.sessions[0].out.ends.len() as u64;
            if !checker.follows() {
                if !hot.sessions[0].out.ends.is_empty() {
                    checker.begin(log.offer_after(at));
                }
                continue;
            }
            check(&hot.sessions[0].out, &expected, at, &mut pass.problems);
            if at < warm_up || log.is_interlude(at) {
                continue;
            }
            let span = |to: u64| clock.span_ns(to.saturating_sub(before));
            match hot.sessions[0].out.first {
                0 => pass.silent.push((at, span(after))),
                first => pass.timed.push(Timed {
                    at,
                    order_ns: span(first),
                    done_ns: span(after),
                }),
            }
        }
        if pass.timed.is_empty() {
            pass.problems.add(
                log.len() as u64,
                "no order after the warm-up: nothing was measured",
            );
        }
        Ok(pass)
    }
}

fn check(out: &Taken, expected: &[Price], at: usize, problems: &mut Problems) {
    let number = at as u64 + 1;
    let mut from = 0;
    let mut prices = Vec::with_capacity(out.ends.len());
    for &end in &out.ends {
        match price_of(&out.bytes[from..end]) {
            Some(price) => prices.push(price),
            None => problems.add(number, "an order without a price"),
        }
        from = end;
    }
    if prices != expected {
        problems.add(number, format!("ordered at {prices:?} instead of {expected:?}"));
    }
}

/// Price (44) of an order, the naive way.
fn price_of(order: &[u8]) -> Option<Price> {
    let mut fields = order.split(|byte| *byte == 1);
    let field = fields.find_map(|field| field.strip_prefix(b"44="))?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cep::LogConfig;
    use tickwire_venues::channels::BUILT_IN;

    #[test]
    fn every_order_in_memory_is_the_naive_rules_and_a_wrong_book_is_found() {
        let templates = Path::new(BUILT_IN);
        let clock = Clock::calibrate();
        let log = |seed| {
            let config = LogConfig {
                seed,
                packets: 3_000,
                templates,
                entries_max: crate::cep::ENTRIES_MAX,
            };
            Log::generate(&config).unwrap()
        };
        let passed = pass(&log(3), templates, 100, &clock).unwrap();
        assert_eq!(
            passed.problems.count,
            0,
            "{}",
            passed.problems.found(passed.orders)
        );
        assert!(passed.orders > 50 && passed.timed.len() > 50, "{}", passed.orders);
        assert!(passed.timed.iter().all(|t| t.order_ns <= t.done_ns));
        // A naive book that has lost an entry expects otherwise: the run fails.
        let mut wrong = log(3);
        let at = passed.timed[passed.timed.len() / 2].at;
        wrong.forget_offers(at);
        let failed = pass(&wrong, templates, 100, &clock).unwrap();
        assert!(failed.problems.count > 0);
        assert_eq!(failed.problems.first[0].packet, at as u64 + 1);
    }
}
