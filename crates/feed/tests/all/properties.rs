//! Random networks: whatever is lost, doubled or reordered on both lines and on the way to and from the
//! retransmission server, every message is delivered once and in order, or counted as lost. A failing run
//! prints its seed: `TICKWIRE_SEED=<seed> cargo test -p tickwire-feed --test properties` repeats it alone.

use crate::common;

use std::collections::BTreeMap;
use tickwire_feed::{ArbiterConfig, FeedState, ItchFeed, Line, fuzzing};
use tickwire_market::{Counter, EventKind, MarketEvent, Nanos};
use tickwire_testdata::Rng;

fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("TICKWIRE_SEED") {
        Ok(seed) => vec![seed.parse().expect("TICKWIRE_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

/// Datagrams on their way: by time of arrival, then by order of sending.
type Wire = BTreeMap<(u64, u64), (Line, Vec<u8>)>;

struct Network {
    rng: Rng,
    wire: Wire,
    sent: u64,
    loss_percent: u64,
}

impl Network {
    /// Loses, doubles and delays.
    fn send(&mut self, now: u64, line: Line, datagram: &[u8]) {
        for _ in 0..=u64::from(self.rng.chance(3, 100)) {
            if self.rng.chance(self.loss_percent, 100) {
                continue;
            }
            let mut delay = 10_000 + self.rng.below(2_000);
            if self.rng.chance(5, 100) {
                delay += self.rng.below(60_000);
            }
            self.sent += 1;
            self.wire
                .insert((now + delay, self.sent), (line, datagram.to_vec()));
        }
    }
}

/// Sends a session of `last` messages over both lines, packed differently, and answers requests.
fn run(
    seed: u64,
    config: ArbiterConfig,
    last: u64,
    loss_percent: u64,
    answers: bool,
) -> (Vec<MarketEvent>, ItchFeed) {
    let mut net = Network {
        rng: Rng::new(seed),
        wire: Wire::new(),
        sent: 0,
        loss_percent,
    };
    for line in [Line::A, Line::B] {
        let (mut now, mut next) = (0, 1);
        while next <= last {
            let to = (next + net.rng.below(6)).min(last);
            now = now.max(to * 3_000) + net.rng.below(500);
            net.send(now, line, &common::packet(common::SESSION, next, to));
            next = to + 1;
        }
        for i in 0..40 {
            net.send(
                now + (i + 1) * 50_000,
                line,
                &common::end_of_session(common::SESSION, last + 1),
            );
        }
    }
    let mut feed = common::feed(config);
    let mut events = Vec::new();
    let mut buffer = [0; 64];
    let mut now = 0;
    for _ in 0..200 * last + 10_000 {
        let arrival = net.wire.keys().next().copied();
        let timer = feed.poll_timeout().map(|t| t.0.max(now));
        let mut sink = |e: &MarketEvent| events.push(*e);
        match (arrival, timer) {
            (None, None) => break,
            (Some(key), timer) if timer.is_none_or(|t| t >= key.0) => {
                now = key.0;
                let (line, datagram) = net.wire.remove(&key).expect("just seen");
                feed.on_packet(Nanos(now), line, &datagram, &mut sink);
            }
            (_, timer) => {
                now = timer.expect("one of the two is there");
                feed.handle_timeout(Nanos(now), &mut sink);
            }
        }
        while let Some(bytes) = feed.poll_transmit(&mut buffer) {
            let request = tickwire_wire::moldudp64::Request::parse(bytes).expect("our own request");
            assert!(
                request.seq.0 + u64::from(request.count) <= last + 1,
                "asks for what does not exist"
            );
            if answers && !net.rng.chance(loss_percent, 100) {
                let fits = 1 + net.rng.below(8);
                let to = request.seq.0 + u64::from(request.count).min(fits) - 1;
                net.send(
                    now,
                    Line::Retransmit,
                    &common::packet(common::SESSION, request.seq.0, to),
                );
            }
        }
    }
    (events, feed)
}

/// Gap and recovery alternate properly, numbers ascend; returns them.
fn numbers(events: &[MarketEvent]) -> Vec<u64> {
    let mut stale = true;
    let mut numbers = Vec::new();
    for event in events {
        match event.kind {
            EventKind::Gap => stale = true,
            EventKind::Recovered => {
                assert!(stale, "recovered from nothing");
                stale = false;
            }
            _ => numbers.push(event.seq.0),
        }
    }
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "every message once and in order"
    );
    numbers
}

#[test]
fn every_message_is_delivered_once_and_in_order_over_lossy_lines() {
    for seed in seeds(60) {
        println!("TICKWIRE_SEED={seed}");
        let loss = [0, 1, 10, 30][(seed % 4) as usize];
        let small = seed % 3 == 0;
        let config = ArbiterConfig {
            buffer_packets: if small { 3 } else { 256 },
            gaps: if small { 3 } else { 64 },
            line_wait_ns: 30_000,
            request_timeout_ns: 100_000,
            request_attempts: 40,
            ..ArbiterConfig::default()
        };
        let (events, feed) = run(seed, config, 600, loss, true);
        assert_eq!(
            numbers(&events),
            (1..=600).collect::<Vec<_>>(),
            "TICKWIRE_SEED={seed}"
        );
        assert!(feed.is_done(), "TICKWIRE_SEED={seed}");
        let counters = feed.counters();
        assert_eq!(
            counters.get(Counter::MessagesMissed),
            counters.get(Counter::MessagesRecovered)
        );
        assert_eq!(counters.get(Counter::MessagesLost), 0);
        assert_eq!(counters.get(Counter::Messages), 600);
    }
}

#[test]
fn without_a_server_every_message_is_delivered_or_counted_as_lost() {
    for seed in seeds(40) {
        println!("TICKWIRE_SEED={seed}");
        let config = ArbiterConfig {
            line_wait_ns: 30_000,
            request_timeout_ns: 50_000,
            request_attempts: (seed % 3) as u8,
            ..ArbiterConfig::default()
        };
        let (events, feed) = run(seed, config, 600, 20, false);
        let (delivered, counters) = (numbers(&events).len() as u64, feed.counters());
        assert_eq!(
            delivered + counters.get(Counter::MessagesLost),
            600,
            "TICKWIRE_SEED={seed}"
        );
        let recovered = counters.get(Counter::MessagesRecovered);
        assert_eq!(
            counters.get(Counter::MessagesMissed),
            recovered + counters.get(Counter::MessagesLost)
        );
        assert_eq!(feed.state(), FeedState::Ended);
    }
}

#[test]
fn no_sequence_of_operations_breaks_the_arbiter_the_feed_or_the_soup_client() {
    for seed in seeds(3_000) {
        println!("TICKWIRE_SEED={seed}");
        let mut rng = Rng::new(seed);
        let mut data = vec![0; 1 + rng.below(1_500) as usize];
        rng.fill(&mut data);
        fuzzing::arbiter_operations(&data);
        fuzzing::feed_operations(&data);
        // Numbers near each other are what makes an arbiter work.
        for operation in data[1..].chunks_exact_mut(5) {
            operation[2] %= 40;
            operation[1] &= 0x3F;
            operation[0] &= 0xF7;
            operation[4] %= 16;
        }
        fuzzing::arbiter_operations(&data);
        if seed % 100 == 0 {
            fuzzing::soup_stream(&data);
        }
    }
}
