//! Time: the processor's time stamp counter, calibrated against the kernel's clocks.
//!
//! Reading the counter costs 8 to 10 ns, `clock_gettime` about 20; stage stamps are taken as raw ticks ([`tsc`]) and
//! converted afterwards ([`Clock::nanos_at`]). The counter is used only where it is invariant (constant rate, running in
//! all sleep states) and the kernel trusts it as its own clock source; elsewhere ticks are nanoseconds of
//! `CLOCK_MONOTONIC` and [`Clock::warning`] says so.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tickwire_market::Nanos;

use crate::sys;

/// Which clock ticks come from: 0 not yet decided, 1 the counter, 2 the kernel. Decided once per process, so that all
/// stamps are comparable; a lone byte that publishes nothing else, hence `Relaxed`.
static SOURCE: AtomicU8 = AtomicU8::new(0);

/// Where ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockSource {
    /// The invariant time stamp counter.
    Tsc,
    /// `CLOCK_MONOTONIC`, 1 tick = 1 ns.
    Kernel,
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClockSource::Tsc => "tsc",
            ClockSource::Kernel => "clock_gettime",
        })
    }
}

/// The present in ticks. Comparable within one machine, also between processes.
#[inline]
pub fn tsc() -> u64 {
    match SOURCE.load(Ordering::Relaxed) {
        1 => counter(),
        2 => sys::clock_ns(libc::CLOCK_MONOTONIC),
        _ => undecided(),
    }
}

/// Processor time this thread has used, in nanoseconds: what work costs on a machine that others use too. A system call.
pub fn thread_cpu_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The kernel's clock that is never set, in nanoseconds since the machine was started: the clock of heartbeats and of waits, the same for every
/// process of a machine. `CLOCK_MONOTONIC` of clock_gettime(2); about 20 ns.
pub fn monotonic() -> Nanos {
    Nanos(sys::clock_ns(libc::CLOCK_MONOTONIC))
}

#[cold]
fn undecided() -> u64 {
    choose_source();
    tsc()
}

/// Decides where ticks come from; the reason when it is not the counter.
fn choose_source() -> (ClockSource, Option<String>) {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let clocksource = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let reason = why_not_tsc(
        cfg!(target_arch = "x86_64"),
        &cpuinfo,
        clocksource.as_deref().unwrap_or(""),
    );
    let source = if reason.is_none() {
        ClockSource::Tsc
    } else {
        ClockSource::Kernel
    };
    SOURCE.store(if source == ClockSource::Tsc { 1 } else { 2 }, Ordering::Relaxed);
    (source, reason)
}

/// Why the counter cannot be trusted, from the text of `/proc/cpuinfo` and the kernel's current clock source.
fn why_not_tsc(x86_64: bool, cpuinfo: &str, clocksource: &str) -> Option<String> {
    if !x86_64 {
        return Some("this processor has no time stamp counter".to_owned());
    }
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or("");
    let has = |flag: &str| flags.split_ascii_whitespace().any(|f| f == flag);
    if let Some(missing) = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .find(|flag| !has(flag))
    {
        return Some(format!("the processor does not report {missing}"));
    }
    // A guest of KVM may keep time by kvm-clock or Hyper-V pages over the same invariant counter.
    let trusted = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
    let current = clocksource.trim();
    if !trusted.contains(&current) {
        return Some(format!("the kernel's clock source is '{current}', not tsc"));
    }
    None
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: RDTSC reads a register; every x86-64 processor has it and Linux leaves it enabled (CR4.TSD clear) unless the
    // process itself asked otherwise by prctl(PR_SET_TSC), which nothing here does.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC)
}

/// The same moment on two clocks.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    ns: u64,
    /// The moment is known to within this many ticks.
    uncertainty: u64,
}

impl Pair {
    /// The tightest of several readings of `clock` between two readings of the counter.
    fn take(clock: libc::clockid_t) -> Pair {
        let read = || {
            let before = tsc();
            let ns = sys::clock_ns(clock);
            let after = tsc();
            let width = after.wrapping_sub(before);
            Pair {
                ticks: before.wrapping_add(width / 2),
                ns,
                uncertainty: width / 2,
            }
        };
        (0..32)
            .map(|_| read())
            .min_by_key(|pair| pair.uncertainty)
            .expect("32 readings")
    }
}

/// Ticks as nanoseconds since the Unix epoch. A few words: clone one for each thread.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Where `ticks` was `base_ns`.
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, 32 fractional bits.
    ns_per_tick: u64,
    /// The first reading of the monotonic clock: the farther it lies back, the better the rate is known.
    rate_from: Pair,
    uncertainty_ns: u64,
    source: ClockSource,
    warning: Option<String>,
}

impl Clock {
    /// Measures the counter's rate against `CLOCK_MONOTONIC` for 20 ms and its offset against `CLOCK_REALTIME`. The rate is
    /// then known to about 2 parts per million (2 µs per second); [`Clock::resync`] makes it better the longer it runs.
    pub fn calibrate() -> Clock {
        Clock::calibrate_for(Duration::from_millis(20))
    }

    /// As [`Clock::calibrate`], for as long as given.
    pub fn calibrate_for(span: Duration) -> Clock {
        let (source, reason) = choose_source();
        let warning = reason
            .map(|why| format!("{why}: times come from clock_gettime, which costs about 20 ns a reading"));
        let rate_from = Pair::take(libc::CLOCK_MONOTONIC);
        let started = Instant::now();
        while source == ClockSource::Tsc && started.elapsed() < span {
            std::thread::sleep(span.saturating_sub(started.elapsed()));
        }
        let mut clock = Clock {
            base_ticks: 0,
            base_ns: 0,
            ns_per_tick: 1 << 32,
            rate_from,
            uncertainty_ns: 0,
            source,
            warning,
        };
        clock.resync();
        clock
    }

    /// Follows the kernel's clocks again: rate from all the time since calibration, offset from `CLOCK_REALTIME` now. Takes
    /// about 3 µs; call it once a second outside the hot path. Time may step back by as much as the old rate was wrong.
    pub fn resync(&mut self) {
        if self.source == ClockSource::Tsc {
            let now = Pair::take(libc::CLOCK_MONOTONIC);
            let (ticks, ns) = (
                now.ticks.wrapping_sub(self.rate_from.ticks),
                now.ns - self.rate_from.ns,
            );
            if ticks > 0 {
                self.ns_per_tick = ((u128::from(ns) << 32) / u128::from(ticks)) as u64;
            }
        }
        let pair = Pair::take(libc::CLOCK_REALTIME);
        (self.base_ticks, self.base_ns) = (pair.ticks, pair.ns);
        self.uncertainty_ns = self.span_ns(pair.uncertainty);
    }

    /// Now, UTC.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.nanos_at(tsc())
    }

    /// Now, in ticks; the same as the free function [`tsc`].
    #[inline]
    pub fn tsc(&self) -> u64 {
        tsc()
    }

    /// When the counter read, or will read, `ticks`.
    #[inline]
    pub fn nanos_at(&self, ticks: u64) -> Nanos {
        let since = ticks.wrapping_sub(self.base_ticks) as i64;
        let offset = (i128::from(since) * i128::from(self.ns_per_tick)) >> 32;
        Nanos(self.base_ns.saturating_add_signed(offset as i64))
    }

    /// What the counter reads at `time`: the inverse of [`Clock::nanos_at`], for kernel timestamps beside tick stamps.
    #[inline]
    pub fn tsc_at(&self, time: Nanos) -> u64 {
        let offset = i128::from(time.0) - i128::from(self.base_ns);
        self.base_ticks
            .wrapping_add(((offset << 32) / i128::from(self.ns_per_tick)) as u64)
    }

    /// A span of ticks in nanoseconds.
    #[inline]
    pub fn span_ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> 32) as u64
    }

    /// A span of nanoseconds in ticks.
    #[inline]
    pub fn span_ticks(&self, ns: u64) -> u64 {
        ((u128::from(ns) << 32) / u128::from(self.ns_per_tick)) as u64
    }

    /// Ticks per second.
    pub fn frequency_hz(&self) -> u64 {
        self.span_ticks(Nanos::SECOND)
    }

    /// How far the offset to `CLOCK_REALTIME` may be off, in nanoseconds.
    pub fn uncertainty_ns(&self) -> u64 {
        self.uncertainty_ns
    }

    /// Where ticks come from.
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Why ticks do not come from the counter, a sentence for the log; `None` when they do.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "processor : 0\nflags\t\t: fpu tsc constant_tsc rep_good nonstop_tsc\n";

    #[test]
    fn the_counter_is_used_only_where_processor_and_kernel_trust_it() {
        assert_eq!(why_not_tsc(true, GOOD, "tsc\n"), None);
        assert!(
            why_not_tsc(true, "flags : tsc constant_tsc", "tsc")
                .expect("refused")
                .contains("nonstop_tsc")
        );
        assert!(
            why_not_tsc(true, GOOD, "hpet")
                .expect("refused")
                .contains("'hpet'")
        );
        assert!(why_not_tsc(false, GOOD, "tsc").is_some());
    }

    #[test]
    fn now_is_the_kernels_realtime() {
        let clock = Clock::calibrate();
        // Between the two readings of the kernel, allowing for a step of calibration and being descheduled in between.
        let before = sys::clock_ns(libc::CLOCK_REALTIME);
        let ours = clock.now().0;
        let after = sys::clock_ns(libc::CLOCK_REALTIME);
        assert!(
            ours + 20_000 >= before && ours <= after + 20_000,
            "{before} {ours} {after}"
        );
    }

    #[test]
    fn conversions_are_inverse_to_a_tick() {
        let mut clock = Clock::calibrate();
        clock.resync();
        for ahead in [0, 1, 1_000, 5_000_000_000] {
            let ticks = tsc().wrapping_add(ahead);
            let there_and_back = clock.tsc_at(clock.nanos_at(ticks));
            assert!(ticks.abs_diff(there_and_back) <= clock.frequency_hz() / Nanos::SECOND + 1);
            let past = ticks.wrapping_sub(10 * clock.frequency_hz());
            assert!(
                past.abs_diff(clock.tsc_at(clock.nanos_at(past))) <= clock.frequency_hz() / Nanos::SECOND + 1
            );
        }
        assert!(clock.span_ns(clock.span_ticks(1_000_000)).abs_diff(1_000_000) <= 1);
    }

    #[test]
    fn ticks_never_run_backwards_on_one_thread() {
        let mut last = tsc();
        for _ in 0..100_000 {
            let now = tsc();
            assert!(now >= last);
            last = now;
        }
    }
}
