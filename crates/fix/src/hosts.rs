//! Which host an initiator tries next, and when. A host has succeeded when it logged us on, not when it took
//! the connection.
//!
//! ```text
//!  attempt ─► (connect, log on) ─► logged_on ─► ended      the session was up: from the first host, or the next one
//!                             └──────────────► ended      refused: the next host at once; after all of them, a pause
//! ```

use tickwire_market::Nanos;

/// In which order hosts are tried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HostOrder {
    /// After a session was lost, from the first host again: the others are there for when it fails.
    #[default]
    Priority,
    /// After a session was lost, the next one: all hosts are equal.
    RoundRobin,
}

/// How hosts are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostsConfig {
    /// How many there are, from 1 on.
    pub hosts: usize,
    /// In which order.
    pub order: HostOrder,
    /// The pause after every host was tried once. Default 1 s.
    pub backoff_min_ns: u64,
    /// It doubles each time, up to this. Default 60 s.
    pub backoff_max_ns: u64,
    /// By how many percent the pause varies either way, 0 to 100, so that the clients of a venue that comes
    /// back do not all come at once. Default 20.
    pub jitter_percent: u8,
    /// A session that lasted less counts as refused: a host that logs on and drops us is no better than one
    /// that does not answer. Default 5 s.
    pub steady_ns: u64,
    /// Seed of the variation.
    pub seed: u64,
}

impl HostsConfig {
    /// The defaults for so many hosts.
    pub const fn new(hosts: usize) -> HostsConfig {
        HostsConfig {
            hosts,
            order: HostOrder::Priority,
            backoff_min_ns: Nanos::SECOND,
            backoff_max_ns: 60 * Nanos::SECOND,
            jitter_percent: 20,
            steady_ns: 5 * Nanos::SECOND,
            seed: 1,
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Which host, from 0.
    pub host: usize,
    /// Not before this.
    pub at: Nanos,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Hosts {
    config: HostsConfig,
    next: Attempt,
    /// Hosts that failed since one was steady.
    failed: usize,
    backoff_ns: u64,
    logged_on_at: Option<Nanos>,
    random: u64,
}

impl Hosts {
    /// The first host, at once.
    pub fn new(config: HostsConfig) -> Hosts {
        Hosts {
            config: HostsConfig {
                hosts: config.hosts.max(1),
                backoff_max_ns: config.backoff_max_ns.max(config.backoff_min_ns),
                ..config
            },
            next: Attempt {
                host: 0,
                at: Nanos::ZERO,
            },
            failed: 0,
            backoff_ns: config.backoff_min_ns,
            logged_on_at: None,
            random: config.seed,
        }
    }

    /// Which host to connect to, and from when on.
    pub fn attempt(&self) -> Attempt {
        self.next
    }

    /// The session reported [`crate::Event::LoggedOn`].
    pub fn logged_on(&mut self, now: Nanos) {
        self.logged_on_at = Some(now);
    }

    /// The attempt is over: no connection, a refused or unanswered logon, or a session that was lost. The
    /// next attempt.
    pub fn ended(&mut self, now: Nanos) -> Attempt {
        let was_steady = self
            .logged_on_at
            .take()
            .is_some_and(|at| now.since(at) >= self.config.steady_ns);
        let host = (self.next.host + 1) % self.config.hosts;
        if was_steady {
            (self.failed, self.backoff_ns) = (0, self.config.backoff_min_ns);
            let host = match self.config.order {
                HostOrder::Priority => 0,
                HostOrder::RoundRobin => host,
            };
            self.next = Attempt { host, at: now };
            return self.next;
        }
        self.failed += 1;
        let at = match self.failed.is_multiple_of(self.config.hosts) {
            true => now.after(self.pause()),
            false => now,
        };
        self.next = Attempt { host, at };
        self.next
    }

    /// The pause after a round in vain; the next one is longer.
    fn pause(&mut self) -> u64 {
        let pause = self.backoff_ns;
        self.backoff_ns = pause
            .saturating_mul(2)
            .clamp(1, self.config.backoff_max_ns.max(1));
        let spread = pause / 100 * u64::from(self.config.jitter_percent.min(100));
        if spread == 0 {
            return pause;
        }
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        pause - spread + (z ^ (z >> 31)) % (2 * spread + 1)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const START: Nanos = Nanos(1_000 * Nanos::SECOND);

    fn hosts(hosts: usize, order: HostOrder) -> Hosts {
        Hosts::new(HostsConfig {
            order,
            jitter_percent: 0,
            ..HostsConfig::new(hosts)
        })
    }

    #[test]
    fn who_takes_the_connection_and_refuses_the_logon_has_failed() {
        let mut hosts = hosts(3, HostOrder::Priority);
        assert_eq!(
            hosts.attempt(),
            Attempt {
                host: 0,
                at: Nanos::ZERO
            }
        );
        // TCP came about, the logon was refused: the next one at once.
        assert_eq!(hosts.ended(START), Attempt { host: 1, at: START });
        assert_eq!(hosts.ended(START), Attempt { host: 2, at: START });
        // All refused: a pause, and longer ones.
        let mut now = START;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            let Attempt { host, at } = hosts.ended(now);
            assert_eq!((host, at), (0, now.after(pause * Nanos::SECOND)));
            now = at;
            hosts.ended(now);
            hosts.ended(now);
        }
    }

    #[test]
    fn a_lost_session_goes_back_to_the_first_host_or_on_to_the_next() {
        for (order, after_loss) in [(HostOrder::Priority, 0), (HostOrder::RoundRobin, 2)] {
            let mut hosts = hosts(3, order);
            hosts.ended(START);
            assert_eq!(hosts.attempt().host, 1);
            hosts.logged_on(START);
            let lost = START.after(3_600 * Nanos::SECOND);
            assert_eq!(
                hosts.ended(lost),
                Attempt {
                    host: after_loss,
                    at: lost
                }
            );
        }
    }

    #[test]
    fn a_host_that_logs_on_and_drops_us_is_left() {
        let mut hosts = hosts(2, HostOrder::Priority);
        let mut now = START;
        let tried: Vec<usize> = (0..4)
            .map(|_| {
                let attempt = hosts.attempt();
                now = now.max(attempt.at);
                hosts.logged_on(now);
                now = now.after(Nanos::SECOND);
                hosts.ended(now);
                attempt.host
            })
            .collect();
        assert_eq!(tried, [0, 1, 0, 1]);
        assert!(hosts.attempt().at > now, "a round in vain is followed by a pause");
    }

    #[test]
    fn pauses_vary_within_their_bounds_and_by_the_seed_alone() {
        let pauses = |seed| {
            let mut hosts = Hosts::new(HostsConfig {
                backoff_min_ns: Nanos::SECOND,
                backoff_max_ns: Nanos::SECOND,
                seed,
                ..HostsConfig::new(1)
            });
            (0..200)
                .map(|_| hosts.ended(START).at.since(START))
                .collect::<Vec<_>>()
        };
        let first = pauses(7);
        assert_eq!(first, pauses(7));
        assert_ne!(first, pauses(8));
        let bounds = 800 * Nanos::MILLI..=1_200 * Nanos::MILLI;
        assert!(first.iter().all(|pause| bounds.contains(pause)));
        assert!(
            first.iter().any(|p| *p < 900 * Nanos::MILLI) && first.iter().any(|p| *p > 1_100 * Nanos::MILLI)
        );
    }
}
