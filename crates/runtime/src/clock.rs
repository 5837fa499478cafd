//! Time: the processor's time stamp counter, calibrated against the kernel's clocks.
//!
//! Reading the counter costs 8 to 10 ns, `clock_gettime` about 20; stage stamps are taken as raw ticks
//! ([`tsc`]) and converted afterwards ([`Clock::nanos_at`]). The counter is used only where it is invariant
//! (constant rate, running in all sleep states) and the kernel trusts it as its own clock source; elsewhere
//! ticks are nanoseconds of `CLOCK_MONOTONIC` and [`Clock::warning`] says so.
//!
//! **Time that is never set.** [`Clock::now`] is UTC as it was when the clock was made, and goes on by
//! `CLOCK_MONOTONIC` from there: whatever is measured or waited for by it goes on when the system's clock is
//! set by an hour, forward or back. What is told to others by UTC (SendingTime, hours of sessions) adds
//! [`Clock::wall_offset_ns`], which [`Clock::resync`] keeps and by which it notices that the clock was set.
//! This is the only file that reads the system's clock.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use tickwire_market::Nanos;

use crate::sys;

/// Which clock ticks come from: 0 not yet decided, 1 the counter, 2 the kernel. Decided once per process, so
/// that all stamps are comparable; a lone byte that publishes nothing else, hence `Relaxed`.
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

/// Processor time this thread has used, in nanoseconds: what work costs on a machine that others use too. A
/// system call.
pub fn thread_cpu_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The same of all threads of this process, those that have ended included.
pub fn process_cpu_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// The kernel's clock that is never set, in nanoseconds since the machine was started: the clock of
/// heartbeats and of waits, the same for every process of a machine. `CLOCK_MONOTONIC` of clock_gettime(2);
/// about 20 ns.
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
    // SAFETY: RDTSC reads a register; every x86-64 processor has it and Linux leaves it enabled (CR4.TSD
    // clear) unless the process itself asked otherwise by prctl(PR_SET_TSC), which nothing here does.
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

/// UTC by the system's clock, nanoseconds since the epoch: it can be set, forward and back, so nothing is
/// measured or waited for by it.
pub fn wall() -> Nanos {
    Nanos(sys::clock_ns(libc::CLOCK_REALTIME))
}

/// A smaller change of UTC is taken as the clock being steered, not set.
pub const STEP_MIN_NS: u64 = 100 * Nanos::MILLI;

/// Ticks as nanoseconds of a time that is never set, which was UTC when the clock was made. A few words:
/// clone one for each thread.
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
    /// What `now` has on `CLOCK_MONOTONIC`.
    epoch_ns: u64,
    /// UTC less `now`, when last looked at, and when a step was last told.
    wall_offset_ns: i64,
    told_offset_ns: i64,
    source: ClockSource,
    warning: Option<String>,
}

impl Clock {
    /// Measures the counter's rate against `CLOCK_MONOTONIC` for 20 ms and its offset against
    /// `CLOCK_REALTIME`. The rate is then known to about 2 parts per million (2 µs per second);
    /// [`Clock::resync`] makes it better the longer it runs.
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
            epoch_ns: 0,
            wall_offset_ns: 0,
            told_offset_ns: 0,
            source,
            warning,
        };
        let (monotonic, wall) = (
            Pair::take(libc::CLOCK_MONOTONIC),
            Pair::take(libc::CLOCK_REALTIME),
        );
        let between = clock
            .rate_to(monotonic)
            .span_ns(wall.ticks.wrapping_sub(monotonic.ticks));
        clock.epoch_ns = wall.ns.saturating_sub(between).saturating_sub(monotonic.ns);
        clock.resync();
        (clock.told_offset_ns, clock.wall_offset_ns) = (0, 0);
        clock
    }

    /// Follows the kernel's clocks again: the rate, from all the time since calibration, and how far UTC is.
    /// Takes about 6 µs; call it once a second outside the hot path. Time may step back by as much as the old
    /// rate was wrong.
    ///
    /// When UTC has changed by more than [`STEP_MIN_NS`] against time that is never set, somebody set the
    /// system's clock: by how much, nanoseconds.
    pub fn resync(&mut self) -> Option<i64> {
        let monotonic = Pair::take(libc::CLOCK_MONOTONIC);
        self.rate_to(monotonic);
        (self.base_ticks, self.base_ns) = (monotonic.ticks, monotonic.ns.saturating_add(self.epoch_ns));
        let wall = Pair::take(libc::CLOCK_REALTIME);
        self.uncertainty_ns = self.span_ns(wall.uncertainty + monotonic.uncertainty);
        self.wall_offset_ns = wall.ns.wrapping_sub(self.nanos_at(wall.ticks).0) as i64;
        let step = self.wall_offset_ns - self.told_offset_ns;
        (step.unsigned_abs() > STEP_MIN_NS).then(|| {
            self.told_offset_ns = self.wall_offset_ns;
            step
        })
    }

    /// Whether the system's clock was set since [`Clock::resync`] last looked. About 30 ns, no system call:
    /// for where a moment's delay of the news does harm, as before a time is judged that a peer stamped.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.wall_at(self.now()).0.abs_diff(wall().0) > STEP_MIN_NS
    }

    fn rate_to(&mut self, now: Pair) -> &Clock {
        if self.source == ClockSource::Tsc {
            let (ticks, ns) = (
                now.ticks.wrapping_sub(self.rate_from.ticks),
                now.ns - self.rate_from.ns,
            );
            if ticks > 0 {
                self.ns_per_tick = ((u128::from(ns) << 32) / u128::from(ticks)) as u64;
            }
        }
        self
    }

    /// Begins at `time` where that is later than now: what goes on from a file must not go back in time
    /// because the system's clock did meanwhile. UTC stays what it is.
    pub fn not_before(&mut self, time: Nanos) {
        let ahead = time.since(self.now());
        self.epoch_ns = self.epoch_ns.saturating_add(ahead);
        self.base_ns = self.base_ns.saturating_add(ahead);
        self.wall_offset_ns -= ahead as i64;
        self.told_offset_ns = self.wall_offset_ns;
    }

    /// UTC less [`Clock::now`], nanoseconds, as [`Clock::resync`] saw it last: 0 until the system's clock is
    /// set.
    pub fn wall_offset_ns(&self) -> i64 {
        self.wall_offset_ns
    }

    /// UTC at a moment of this clock.
    pub fn wall_at(&self, now: Nanos) -> Nanos {
        Nanos(now.0.saturating_add_signed(self.wall_offset_ns))
    }

    /// The moment of this clock when it was `wall` UTC: for stamps of the kernel, which are UTC.
    #[inline]
    pub fn at_wall(&self, wall: Nanos) -> Nanos {
        Nanos(wall.0.saturating_add_signed(-self.wall_offset_ns))
    }

    /// The moment of this clock when `CLOCK_MONOTONIC` was `monotonic`: for stamps of programs in the kernel.
    #[inline]
    pub fn at_monotonic(&self, monotonic: Nanos) -> Nanos {
        Nanos(monotonic.0.saturating_add(self.epoch_ns))
    }

    /// What times of this clock have on `CLOCK_MONOTONIC`, nanoseconds: by it other processes understand
    /// stamps, whatever UTC is set to.
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// Now: UTC when the clock was made, and never set since.
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

    /// What the counter reads at `time`: the inverse of [`Clock::nanos_at`], for kernel timestamps beside
    /// tick stamps.
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
        // Between the two readings of the kernel, allowing for a step of calibration and being descheduled in
        // between.
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

    /// The system's clock is set by an hour on this thread: time goes on, the step is told once with its
    /// size, and UTC is followed.
    #[test]
    fn a_clock_that_is_set_is_told_once_and_time_goes_on() {
        let mut clock = Clock::calibrate();
        assert_eq!(clock.resync(), None);
        for step in [-3_600, 7_200, -3_600_i64] {
            let before = clock.now();
            crate::faults::step_wall(step * Nanos::SECOND as i64);
            assert!(clock.is_set());
            let told = clock.resync().expect("it was set");
            assert!(!clock.is_set());
            assert!(told.abs_diff(step * Nanos::SECOND as i64) < STEP_MIN_NS, "{told}");
            assert_eq!(clock.resync(), None, "once");
            let after = clock.now();
            assert!(
                after.0 + 100_000 > before.0 && after.since(before) < 60 * Nanos::SECOND,
                "{before:?} {after:?}"
            );
            let read = wall();
            assert!(clock.wall_at(clock.now()).0.abs_diff(read.0) < Nanos::SECOND);
            assert_eq!(clock.at_wall(clock.wall_at(after)), after);
        }
        assert!(clock.wall_offset_ns().unsigned_abs() < STEP_MIN_NS);
    }

    #[test]
    fn what_goes_on_from_a_file_does_not_go_back() {
        let mut clock = Clock::calibrate();
        let later = clock.now().after(3_600 * Nanos::SECOND);
        clock.not_before(later);
        assert!(clock.now() >= later);
        assert_eq!(clock.resync(), None, "nobody set anything");
        assert!(clock.wall_at(clock.now()).0.abs_diff(wall().0) < Nanos::SECOND);
        clock.not_before(Nanos(1));
        assert!(clock.now() >= later);
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
