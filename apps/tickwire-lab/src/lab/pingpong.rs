//! A word in shared memory there and back between two cores: the state of the machine beside every figure. On
//! a virtual machine it differs by a factor of four from one minute to the next, as the host moves cores
//! about.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tickwire_lab::Histogram;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};

/// By so much a reading of the counter may come early, nanoseconds: longer than any load of a word that
/// another core wrote.
const SLACK_NS: u64 = 1_000;
/// Round trips of a measurement, and of the warm-up before it.
const ROUNDS: u64 = 4_000;
const WARM_UP: u64 = 500;

/// What was found.
pub(super) struct SharedMemory {
    /// Half the round trip, median, nanoseconds.
    pub(super) half_ns: u64,
    /// How often a stamp taken on one core was earlier than one that it had been sent by the other before.
    pub(super) backwards: u64,
}

/// A word in a cache line of its own.
#[repr(align(128))]
struct Line(AtomicU64);

/// Sends a stamp there and back. Both sides spin; where they share a core that takes a time slice for each,
/// so it is not done.
pub(super) fn shared_memory(clock: &Clock, cores: Option<(usize, usize)>) -> Result<SharedMemory, String> {
    let available = Cores::count().usable();
    let (a, b) = match (cores, available) {
        (Some((a, b)), _) if a != b => (a, b),
        (_, [a, b, ..]) if Cores::count().parallelism() > 1 => (*a, *b),
        _ => return Err("The state of the machine is not shown: that takes two cores.".to_owned()),
    };
    let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let (stop, backwards) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut halves = Histogram::new();
    // The counter may be read before the load in front of it is done: only what is beyond that is a counter
    // that went back.
    let slack = clock.span_ticks(SLACK_NS);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Where pinning fails the figure is that of any two cores.
            let _ = Cores::count().pin(b);
            let mut last = 0;
            // A plain flag: nothing is read because of it.
            while !stop.load(Ordering::Relaxed) {
                // SYNC ping: pairs with the store below.
                let stamp = ping.0.load(Ordering::Acquire);
                if stamp == last {
                    std::hint::spin_loop();
                    continue;
                }
                last = stamp;
                let now = tsc();
                if now + slack < stamp {
                    backwards.fetch_add(1, Ordering::Relaxed);
                }
                // SYNC pong: pairs with the load below.
                pong.0.store(now.max(stamp + 1), Ordering::Release);
            }
        });
        let far = scope.spawn(|| {
            let _ = Cores::count().pin(a);
            let mut halves = Histogram::new();
            let mut answer = 0;
            // Bounded by time too: the other side may get no core for long.
            let deadline = tsc() + clock.span_ticks(Duration::from_millis(40).as_nanos() as u64);
            for round in 0..ROUNDS + WARM_UP {
                let sent = tsc();
                // SYNC ping: pairs with the load above.
                ping.0.store(sent, Ordering::Release);
                let mut now;
                loop {
                    // SYNC pong: pairs with the store above.
                    let stamp = pong.0.load(Ordering::Acquire);
                    now = tsc();
                    if stamp != answer {
                        if now + slack < stamp {
                            backwards.fetch_add(1, Ordering::Relaxed);
                        }
                        answer = stamp;
                        break;
                    }
                    if now > deadline {
                        return halves;
                    }
                    std::hint::spin_loop();
                }
                if round >= WARM_UP {
                    halves.record(clock.span_ns((now - sent) / 2));
                }
            }
            halves
        });
        halves = far.join().expect("it does not panic");
        stop.store(true, Ordering::Relaxed);
    });
    match halves.is_empty() {
        true => Err(
            "The state of the machine is not shown: the other core was not to be had for 40 ms.".to_owned(),
        ),
        false => Ok(SharedMemory {
            half_ns: halves.at_quantile(0.5),
            backwards: backwards.into_inner(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_goes_there_and_back_and_stamps_of_two_cores_agree() {
        let clock = Clock::calibrate();
        match shared_memory(&clock, None) {
            Ok(found) => assert!(found.half_ns > 0 && found.backwards == 0),
            Err(why) => tickwire_testdata::not_tested(why),
        }
        assert!(Cores::count().parallelism() > 1 || shared_memory(&clock, Some((0, 0))).is_err());
    }
}
