//! How threads wait for input, and what reports say of it.

use serde::{Deserialize, Serialize};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::wait::WaitStrategy;

/// How a thread waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Spins if every busy thread has a core of its own, else sleeps in poll.
    Auto,
    /// Looks without pause: the shortest latency, and a core that does nothing else.
    Spin,
    /// Sleeps in `poll`: microseconds longer, and the core is free meanwhile.
    Poll,
}

impl Wait {
    /// The same for a thread that shares the machine: `threads` is how many, itself included, should have a
    /// core each.
    pub fn strategy(self, threads: usize) -> WaitStrategy {
        match self {
            Wait::Spin => WaitStrategy::Spin,
            Wait::Poll => WaitStrategy::Poll,
            Wait::Auto => WaitStrategy::for_threads(threads),
        }
    }

    /// Likewise, with the reason.
    pub fn choose(self, threads: usize) -> Waiting {
        let cores = Cores::count().parallelism();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let strategy = self.strategy(threads);
        Waiting {
            strategy,
            why: match (self, strategy) {
                (Wait::Spin | Wait::Poll, _) => "as configured".to_owned(),
                (Wait::Auto, WaitStrategy::Spin) => format!(
                    "auto: there are {} for {}",
                    count(cores, "core"),
                    count(threads.max(2), "busy thread")
                ),
                (Wait::Auto, WaitStrategy::Poll) => format!(
                    "auto: there is no core for each of {}, only {}",
                    count(threads.max(2), "busy thread"),
                    count(cores, "core")
                ),
            },
        }
    }
}

/// How a thread waits, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How it waits.
    pub strategy: WaitStrategy,
    /// A clause for reports.
    why: String,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.strategy {
            WaitStrategy::Spin => "spins",
            WaitStrategy::Poll => "sleeps in poll",
        };
        write!(f, "{how} ({})", self.why)
    }
}
