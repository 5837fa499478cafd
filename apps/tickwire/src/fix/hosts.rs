//! Which host an initiator tries next, and when: judged by logon, not by connection.
//!
//! Hosts are tried from the first on. One that takes the connection but not the logon has failed like one that does not answer;
//! the next is tried at once. When all have failed, there is a wait, longer with each round. After a logon, everything begins
//! anew with the first host.

use std::fmt;

use tickwire_market::Nanos;

/// A name or address, and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// A logon that ends sooner than this counts as a failure when it comes to waiting.
const STABLE_NS: u64 = Nanos::SECOND;

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    /// Waits after one, two, ... rounds in vain; the last one for ever.
    waits_ns: Vec<u64>,
    at: usize,
    rounds: usize,
    logged_on: Option<Nanos>,
    /// Not before this time.
    pub(super) due: Nanos,
}

impl Hosts {
    pub(super) fn new(hosts: Vec<Host>, reconnect_s: &[u64]) -> Hosts {
        Hosts {
            hosts,
            waits_ns: reconnect_s.iter().map(|s| s * Nanos::SECOND).collect(),
            at: 0,
            rounds: 0,
            logged_on: None,
            due: Nanos::ZERO,
        }
    }

    /// The one to be tried.
    pub(super) fn current(&self) -> &Host {
        &self.hosts[self.at]
    }

    pub(super) fn logged_on(&mut self, now: Nanos) {
        self.logged_on = Some(now);
    }

    /// The connection is gone, or there was none.
    pub(super) fn lost(&mut self, now: Nanos) {
        if let Some(since) = self.logged_on.take() {
            (self.at, self.rounds) = (0, 0);
            self.due = match now.since(since) >= STABLE_NS {
                true => now,
                false => now.after(self.wait_ns(1)),
            };
            return;
        }
        self.at += 1;
        self.due = now;
        if self.at == self.hosts.len() {
            self.at = 0;
            self.rounds += 1;
            self.due = now.after(self.wait_ns(self.rounds));
        }
    }

    fn wait_ns(&self, round: usize) -> u64 {
        let at = round.min(self.waits_ns.len()).saturating_sub(1);
        self.waits_ns.get(at).copied().unwrap_or(30 * Nanos::SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        let host = |name: &&str| Host {
            name: name.to_string(),
            port: 1,
        };
        Hosts::new(names.iter().map(host).collect(), &[5, 10])
    }

    fn at(seconds: u64) -> Nanos {
        Nanos(seconds * Nanos::SECOND)
    }

    #[test]
    fn every_host_is_tried_before_there_is_a_wait_and_waits_grow() {
        let mut hosts = hosts(&["a", "b"]);
        let mut tried = Vec::new();
        let mut now = at(100);
        for _ in 0..6 {
            tried.push((hosts.current().name.clone(), now.since(at(100)) / Nanos::SECOND));
            hosts.lost(now);
            now = hosts.due;
        }
        let expected = [("a", 0), ("b", 0), ("a", 5), ("b", 5), ("a", 15), ("b", 15)];
        assert_eq!(tried, expected.map(|(name, at)| (name.to_string(), at)));
        assert_eq!(hosts.due, at(125));
    }

    #[test]
    fn a_logon_makes_the_first_host_the_next_and_a_short_one_waits() {
        let mut hosts = hosts(&["a", "b"]);
        hosts.lost(at(0));
        hosts.logged_on(at(1));
        hosts.lost(at(60));
        assert_eq!((hosts.current().name.as_str(), hosts.due), ("a", at(60)));
        hosts.logged_on(at(60));
        hosts.lost(at(60));
        assert_eq!((hosts.current().name.as_str(), hosts.due), ("a", at(65)));
    }
}
