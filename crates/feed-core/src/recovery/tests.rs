//! The planner alone, in simulated time: servers that lose, hang, refuse and lie, and quotas that are never
//! passed.

extern crate alloc;
use super::*;
use crate::ArbiterConfig;
use crate::missing::Missing;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use tickwire_market::{Nanos, Port};
use tickwire_testdata::Rng;

/// How a server behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Server {
    /// Answers after `ns`, loses so many of a thousand.
    Answers {
        ns: u64,
        loses: u64,
    },
    Silent,
    /// Answers with numbers that nobody asked for.
    Lies,
}

struct World {
    planner: Planner,
    missing: Missing,
    now: Nanos,
    rng: Rng,
    /// Answers on their way: by time and order.
    wire: BTreeMap<(Nanos, u64), (u64, u64)>,
    /// When each request was sent.
    sent: Vec<Nanos>,
    asked_of: [u64; 2],
    answers: Answers,
    /// How many messages fit one answer.
    fits: u64,
    lost: u64,
    wants_snapshot: bool,
    most_under_way: usize,
    servers: [Server; 2],
}

impl World {
    fn new(config: ArbiterConfig, servers: [Server; 2], seed: u64) -> World {
        let mut planner = Planner::new(&config);
        planner.set_servers(Port::Requests, 2);
        World {
            planner,
            missing: Missing::new(64),
            now: Nanos(20_000 * Nanos::DAY + 10 * 3600 * Nanos::SECOND),
            rng: Rng::new(seed),
            wire: BTreeMap::new(),
            sent: Vec::new(),
            asked_of: [0; 2],
            answers: config.recovery.answers,
            fits: 45,
            lost: 0,
            wants_snapshot: false,
            most_under_way: 0,
            servers,
        }
    }

    fn misses(&mut self, first: u64, end: u64) {
        self.missing.append(first, end, self.now);
    }

    fn plan(&mut self) {
        loop {
            match self.planner.plan(self.now, &self.missing, 4096, 4096) {
                Plan::Requests => break,
                Plan::GiveUp { first, end } => self.lost += self.missing.lose(first, end),
                Plan::Snapshot => {
                    self.wants_snapshot = true;
                    self.planner.forget();
                    return;
                }
            }
        }
        let mut under_way = 0;
        while let Some((first, count)) = self.planner.poll() {
            under_way += 1;
            assert!(count > 0);
            self.sent.push(self.now);
            let server = self.planner.server(Port::Requests);
            self.asked_of[server] += 1;
            self.serve(self.servers[server], first, first + u64::from(count));
        }
        self.most_under_way = self.most_under_way.max(under_way);
    }

    fn serve(&mut self, server: Server, first: u64, end: u64) {
        let nth = self.sent.len() as u64 * 1000;
        match server {
            Server::Silent => {}
            Server::Lies => {
                self.wire.insert(
                    (self.now.after(Nanos::MILLI), nth),
                    (first + 1_000_000, end + 1_000_000),
                );
            }
            Server::Answers { ns, loses } => {
                let whole = match self.answers {
                    Answers::OneDatagram => end.min(first + self.fits - self.rng.below(4)),
                    Answers::Everything => end,
                };
                let mut from = first;
                let mut part = 0;
                while from < whole {
                    let to = (from + self.fits).min(whole);
                    if self.rng.below(1000) >= loses {
                        let at = self.now.after(ns + self.rng.below(ns / 4 + 1) + part * 1000);
                        self.wire.insert((at, nth + part), (from, to));
                    }
                    (from, part) = (to, part + 1);
                }
            }
        }
    }

    /// Runs until nothing is missing that is not given up, a snapshot is wanted, or the time is over.
    fn run(&mut self, limit_ns: u64) -> bool {
        let end = self.now.after(limit_ns);
        self.plan();
        for _ in 0..1_000_000 {
            if self.wants_snapshot || !self.missing.has_any(0, u64::MAX) {
                return true;
            }
            let answer = self.wire.keys().next().copied();
            let timer = self.planner.timeout(&self.missing, 4096);
            let timer = timer.expect("something is missing: there is something to wait for");
            match answer {
                Some(key) if key.0 <= timer.max(self.now) => {
                    self.now = self.now.max(key.0);
                    let (first, last) = self.wire.remove(&key).expect("just seen");
                    self.planner.on_answer(self.now, first, last);
                    self.missing.fill(first, last, self.now, true);
                }
                _ if timer > end => {
                    self.now = end;
                    return false;
                }
                _ => self.now = self.now.max(timer),
            }
            self.plan();
        }
        panic!("it goes round and round: {:?}", self.now);
    }
}

const GOOD: Server = Server::Answers {
    ns: Nanos::MILLI,
    loses: 0,
};

fn config(recovery: RecoveryLimits, request_messages: u16) -> ArbiterConfig {
    ArbiterConfig {
        request_messages,
        recovery,
        ..ArbiterConfig::default()
    }
}

#[test]
fn a_long_gap_takes_few_requests_many_of_them_at_once() {
    let mut world = World::new(config(RecoveryLimits::MOLDUDP64, 1000), [GOOD; 2], 1);
    let start = world.now;
    world.misses(1, 20_001);
    assert!(world.run(Nanos::SECOND));
    // One after the other it would be 465 round trips.
    let took = world.now.since(start);
    assert!(took < 60 * Nanos::MILLI, "{took} ns");
    assert!(world.sent.len() < 600, "{} requests", world.sent.len());
    assert!(world.most_under_way > 1);
    let mut nyse = World::new(config(RecoveryLimits::XDP, 1000), [GOOD; 2], 1);
    nyse.misses(1, 20_001);
    assert!(nyse.run(Nanos::SECOND));
    assert_eq!(nyse.sent.len(), 20, "as large as the venue allows, each once");
}

#[test]
fn one_request_reaches_over_many_gaps_where_requests_are_dear() {
    let mut world = World::new(config(RecoveryLimits::XDP, 1000), [GOOD; 2], 1);
    for gap in 0..40 {
        world.misses(1 + gap * 20, 3 + gap * 20);
    }
    assert!(world.run(Nanos::SECOND));
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn only_what_is_missing_is_asked_for_again() {
    let lossy = Server::Answers {
        ns: Nanos::MILLI,
        loses: 30,
    };
    for seed in 0..20 {
        let limits = RecoveryLimits {
            requests_per_second: 0,
            ..RecoveryLimits::XDP
        };
        let patient = ArbiterConfig {
            request_attempts: 50,
            ..config(limits, 1000)
        };
        let mut world = World::new(patient, [lossy; 2], seed);
        world.misses(1, 20_001);
        assert!(world.run(20 * Nanos::SECOND), "seed {seed}");
        assert_eq!(world.lost, 0, "seed {seed}");
        assert!(
            world.sent.len() < 80,
            "seed {seed}: {} requests",
            world.sent.len()
        );
    }
}

#[test]
fn a_silent_server_and_one_that_lies_are_left_for_the_other() {
    for bad in [Server::Silent, Server::Lies] {
        let mut world = World::new(config(RecoveryLimits::MOLDUDP64, 1000), [bad, GOOD], 1);
        world.misses(1, 2001);
        assert!(world.run(2 * Nanos::SECOND), "{bad:?}");
        assert_eq!(world.lost, 0, "{bad:?}");
        assert!(
            world.asked_of[0] > 0 && world.asked_of[1] > world.asked_of[0],
            "{bad:?}"
        );
        assert!(world.planner.take_tally().changes > 0);
    }
    let mut world = World::new(config(RecoveryLimits::MOLDUDP64, 1000), [Server::Silent; 2], 1);
    world.misses(1, 2001);
    assert!(world.run(10 * Nanos::SECOND));
    assert_eq!(world.lost, 2000, "nobody answers: given up");
}

#[test]
fn a_snapshot_is_taken_when_it_is_sooner_or_the_day_runs_short() {
    let with_snapshot = |limits, messages| ArbiterConfig {
        snapshot: true,
        ..config(limits, messages)
    };
    let cases: [(RecoveryLimits, u16, u64, bool); 7] = [
        (RecoveryLimits::MOLDUDP64, 1000, 10_000, false),
        (RecoveryLimits::MOLDUDP64, 1000, 900_000, true),
        // 320 requests a second: 32,000 messages, while Spin takes a second and a fifth.
        (RecoveryLimits::PITCH, 100, 30_000, false),
        (RecoveryLimits::PITCH, 100, 90_000, true),
        (RecoveryLimits::XDP, 1000, 20_000, false),
        (RecoveryLimits::XDP, 1000, 500_000, true),
        (RecoveryLimits::MDP3, 2000, 1_500, false),
    ];
    for (limits, messages, missing, expected) in cases {
        let mut world = World::new(with_snapshot(limits, messages), [GOOD; 2], 1);
        world.misses(1, missing + 1);
        assert!(world.run(10 * Nanos::SECOND));
        assert_eq!(world.wants_snapshot, expected, "{missing} of {limits:?}");
        if expected {
            assert!(world.sent.len() <= 8, "{} requests for nothing", world.sent.len());
        }
    }
    // 40 of the day's requests are left: 30 of them are not for one gap.
    let mut world = World::new(with_snapshot(RecoveryLimits::XDP, 1000), [GOOD; 2], 1);
    world.planner.restore(DayUse {
        day: DayUse::day_of(world.now),
        requests: 9_960,
        snapshots: 0,
    });
    world.misses(1, 30_001);
    assert!(world.run(Nanos::SECOND) && world.wants_snapshot);
    // Live packets come as fast as answers do, and there is no room for them.
    let slow = Server::Answers {
        ns: 50 * Nanos::MILLI,
        loses: 0,
    };
    let mut world = World::new(with_snapshot(RecoveryLimits::MOLDUDP64, 1000), [slow; 2], 1);
    for step in 0..20 {
        world
            .planner
            .note_high(world.now.after(step * 20 * Nanos::MILLI), step * 20_000);
    }
    world.now = world.now.after(400 * Nanos::MILLI);
    world.misses(1, 20_001);
    assert!(world.run(10 * Nanos::SECOND) && world.wants_snapshot);
}

#[test]
fn quotas_are_never_passed_whatever_the_servers_do() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut server = || match rng.below(4) {
            0 => Server::Silent,
            1 => Server::Lies,
            _ => Server::Answers {
                ns: Nanos::MICRO * (1 + rng.below(20_000)),
                loses: rng.below(500),
            },
        };
        let servers = [server(), server()];
        let limits = RecoveryLimits {
            answers: [Answers::OneDatagram, Answers::Everything][(seed % 2) as usize],
            requests_under_way: 1 + rng.below(20) as u16,
            requests_per_second: 1 + rng.below(50) as u32,
            requests_per_minute: 1 + rng.below(400) as u32,
            requests_per_day: 1 + rng.below(900) as u32,
            spans_gaps: seed % 3 == 0,
            ..RecoveryLimits::MOLDUDP64
        };
        let mut world = World::new(config(limits, 1 + rng.below(200) as u16), servers, seed);
        world.planner.set_servers(Port::Requests, 1 + (seed % 2) as u8);
        let mut next = 1;
        for _ in 0..30 {
            for _ in 0..rng.below(8) {
                let first = next + 1 + rng.below(50);
                next = first + 1 + rng.below(500);
                world.misses(first, next);
            }
            // What is not done by then goes on beside what is missing next.
            world.run(rng.below(30 * Nanos::SECOND));
            world.now = world.now.after(rng.below(10 * Nanos::SECOND));
        }
        let sent = &world.sent;
        let within = |span_ns: u64, max: u32| {
            let mut pairs = sent.iter().zip(sent.iter().skip(max as usize));
            pairs.all(|(first, last)| last.since(*first) >= span_ns)
        };
        assert!(
            within(Nanos::SECOND, limits.requests_per_second),
            "seed {seed}: a second"
        );
        assert!(
            within(60 * Nanos::SECOND, limits.requests_per_minute),
            "seed {seed}: a minute"
        );
        assert!(
            sent.len() <= limits.requests_per_day as usize,
            "seed {seed}: {} in a day",
            sent.len()
        );
        assert!(
            world.most_under_way <= limits.requests_under_way.into(),
            "seed {seed}"
        );
    }
}

#[test]
fn a_request_that_could_not_be_sent_uses_no_quota() {
    let mut world = World::new(config(RecoveryLimits::XDP, 1000), [GOOD; 2], 1);
    world.misses(1, 100);
    let plan = world.planner.plan(world.now, &world.missing, 100, 100);
    assert_eq!(plan, Plan::Requests);
    let (first, _) = world.planner.poll().expect("one request");
    assert_eq!(world.planner.day_use().requests, 1);
    world.planner.unsent(world.now, first);
    assert_eq!(world.planner.day_use().requests, 0);
    let due = world
        .planner
        .timeout(&world.missing, 100)
        .expect("it is due again");
    assert!(due > world.now);
}

#[test]
fn snapshots_wait_longer_each_time_and_take_turns_with_servers() {
    let limits = RecoveryLimits::MOLDUDP64;
    let mut gate = SnapshotGate::new(&limits);
    gate.servers.set_count(2);
    let start = Nanos(1_000 * Nanos::SECOND);
    let (mut now, mut logins, mut servers) = (start, 0, Vec::new());
    while now.since(start) < 25 * Nanos::SECOND {
        gate.handle_timeout(now);
        if gate.is_open() {
            servers.push(gate.servers.at());
            gate.began(now);
            gate.failed(now.after(Nanos::MILLI));
            logins += 1;
        }
        now = now.after(10 * Nanos::MILLI);
    }
    assert!((5..=8).contains(&logins), "{logins} logins in 25 s");
    assert_eq!(servers[..3], [0, 1, 0]);
    // Soon after a pause it is as patient as at first.
    now = now.after(10 * 60 * Nanos::SECOND);
    gate.handle_timeout(now);
    assert!(gate.is_open());
    gate.began(now);
    assert_eq!(gate.opens_at(), Some(now.after(limits.backoff_ns)));
}

#[test]
fn no_more_logins_in_a_minute_or_a_day_than_are_allowed() {
    let limits = RecoveryLimits {
        snapshots_per_minute: 3,
        snapshots_per_day: 10,
        backoff_ns: 1,
        backoff_max_ns: 1,
        ..RecoveryLimits::MOLDUDP64
    };
    let mut gate = SnapshotGate::new(&limits);
    let (mut now, mut begun) = (Nanos(20_000 * Nanos::DAY + 8 * 3600 * Nanos::SECOND), Vec::new());
    for _ in 0..3_600 {
        gate.handle_timeout(now);
        if gate.is_open() {
            gate.began(now);
            begun.push(now);
        }
        now = now.after(Nanos::SECOND / 4);
    }
    assert_eq!(begun.len(), 10);
    assert!(begun.windows(4).all(|w| w[3].since(w[0]) >= 60 * Nanos::SECOND));
    assert_eq!(gate.time(now, 1), None, "the day has none left");
}
