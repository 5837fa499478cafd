//! A network card's own clock (PHC) beside the system's.
//!
//! A card stamps packets with a clock of its own, which may count from any time, may be steered by PTP and
//! may be set. Its stamps are worth something here only as times of `CLOCK_MONOTONIC`; so both clocks are
//! read now and then, the card's between two readings of the system's, and a stamp is converted by the last
//! two readings: where the clock was, and at what rate it goes. A stamp is not converted at all before the
//! second reading, after one that shows that the clock was set, or long after the last one.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::{sys, xdp};

/// Readings of a try, of which the tightest counts.
const READINGS: u32 = 5;
/// A clock whose rate differs more than this from the system's, parts in 2^32 (100 parts per million), was
/// set between two readings.
const RATE_MAX: i64 = 429_497;
/// Readings that lie closer together say too little about the rate, nanoseconds.
const APART_MIN_NS: u64 = 10_000_000;
/// A reading that is known less well than this, as this thread was interrupted in it, is not used,
/// nanoseconds.
const ERROR_MAX_NS: u64 = 50_000;
/// A stamp farther from the last reading than this is not converted, nanoseconds.
const REACH_NS: u64 = 10_000_000_000;
/// How often [`CardClock::follow_when_due`] reads, nanoseconds; until both can be compared, more often.
const FOLLOW_NS: u64 = 1_000_000_000;
const FOLLOW_FIRST_NS: u64 = 50_000_000;

/// One moment on both clocks, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The card's.
    pub card_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// The moment is known to within this.
    pub error_ns: u64,
}

/// How a card's clock stands to `CLOCK_MONOTONIC`, by its last readings. Pure: [`CardClock`] reads.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Comparison {
    last: Option<Reading>,
    /// Nanoseconds that the card's clock gains in a nanosecond of ours, 32 fractional bits; `None` until two
    /// readings agree.
    gain: Option<i64>,
    /// What conversions of the next second may be wrong by, nanoseconds.
    error_ns: u64,
    /// How often the clock was found to be set.
    steps: u64,
}

impl Comparison {
    /// Another reading.
    pub fn read(&mut self, now: Reading) {
        if now.error_ns > ERROR_MAX_NS {
            return;
        }
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        let ours = now.monotonic_ns.saturating_sub(last.monotonic_ns);
        if ours < APART_MIN_NS {
            return;
        }
        let theirs = i128::from(now.card_ns) - i128::from(last.card_ns);
        let gain = ((theirs - i128::from(ours)) << 32) / i128::from(ours);
        self.last = Some(now);
        // Where it was, and the rate, which both ends make wrong.
        self.error_ns = 2 * now.error_ns + last.error_ns;
        match i64::try_from(gain) {
            Ok(gain) if gain.abs() <= RATE_MAX => self.gain = Some(gain),
            _ => {
                self.steps += 1;
                self.gain = None;
            }
        }
    }

    /// When the card's clock showed `card_ns`, nanoseconds of `CLOCK_MONOTONIC`; `None` while that is not
    /// known.
    #[inline]
    pub fn monotonic(&self, card_ns: NonZeroU64) -> Option<NonZeroU64> {
        let (last, gain) = (self.last?, self.gain?);
        let since = card_ns.get().wrapping_sub(last.card_ns).cast_signed();
        if since.unsigned_abs() > REACH_NS {
            return None;
        }
        // since · 1 / (1 + gain), where gain is below 1e-4: the next term is below 1e-8 of 10 s, 100 ns, and
        // of a stamp of the last second below 10 ns.
        let gained = (i128::from(since) * i128::from(gain)) >> 32;
        let at = i128::from(last.monotonic_ns) + i128::from(since) - gained;
        u64::try_from(at).ok().and_then(NonZeroU64::new)
    }

    /// To within how many nanoseconds a stamp of now is converted; `None` while none is.
    pub fn error_ns(&self) -> Option<u64> {
        self.gain.map(|_| self.error_ns)
    }

    /// How often the clock was found to be set between two readings.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Which clock is read.
#[derive(Debug)]
enum Device {
    /// A PTP device, open as long as it is read.
    Ptp(File),
    /// A clock of the system, in tests.
    #[cfg(test)]
    System(libc::clockid_t),
}

/// The clock of a network card, and how it stands to ours.
#[derive(Debug)]
pub struct CardClock {
    device: Device,
    name: String,
    comparison: Comparison,
    /// When both clocks are to be read again, nanoseconds of `CLOCK_MONOTONIC`.
    due_ns: u64,
}

impl CardClock {
    /// The clock of an interface's card; `None` where it has none that this process may read, or the system
    /// does not say which. The driver is asked, in the network namespace of the calling thread, as linuxptp
    /// does; of one that cannot be asked, `/sys/class/net/NAME/device/ptp` is looked into.
    pub fn of_interface(name: &str) -> Option<CardClock> {
        let devices = Path::new("/dev");
        match xdp::card_clock(name) {
            Ok(number) => CardClock::open(devices, format!("ptp{}", number?)),
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                CardClock::below(Path::new("/sys/class/net"), devices, name)
            }
            Err(_) => None,
        }
    }

    fn below(classes: &Path, devices: &Path, name: &str) -> Option<CardClock> {
        let device = device_of(&classes.join(name).join("device/ptp"))?;
        CardClock::open(devices, device)
    }

    fn open(devices: &Path, device: String) -> Option<CardClock> {
        let file = File::open(devices.join(&device)).ok()?;
        Some(CardClock {
            device: Device::Ptp(file),
            name: device,
            comparison: Comparison::default(),
            due_ns: 0,
        })
    }

    /// Reads both clocks; to be called about once a second, off the way of a packet: a card's clock is behind
    /// the bus, some microseconds a reading.
    ///
    /// # Errors
    /// What the system says: the card is gone.
    pub fn follow(&mut self) -> io::Result<()> {
        let id = self.id();
        let mut best: Option<Reading> = None;
        for _ in 0..READINGS {
            let before = sys::clock_ns(libc::CLOCK_MONOTONIC);
            let card_ns = sys::try_clock_ns(id)?;
            let after = sys::clock_ns(libc::CLOCK_MONOTONIC);
            let error_ns = after.saturating_sub(before) / 2;
            if best.is_none_or(|best| error_ns < best.error_ns) {
                best = Some(Reading {
                    card_ns,
                    monotonic_ns: before + error_ns,
                    error_ns,
                });
            }
        }
        if let Some(reading) = best {
            self.comparison.read(reading);
        }
        Ok(())
    }

    /// The same when it is time, which is about once a second: for the slow part of a loop.
    ///
    /// # Errors
    /// As [`CardClock::follow`]: a card that is gone is not to be read again.
    pub fn follow_when_due(&mut self) -> io::Result<()> {
        let now = sys::clock_ns(libc::CLOCK_MONOTONIC);
        if now < self.due_ns {
            return Ok(());
        }
        self.follow()?;
        self.due_ns = now
            + match self.comparison.error_ns() {
                Some(_) => FOLLOW_NS,
                None => FOLLOW_FIRST_NS,
            };
        Ok(())
    }

    fn id(&self) -> libc::clockid_t {
        match &self.device {
            // FD_TO_CLOCKID of Linux `include/linux/posix-timers.h`.
            Device::Ptp(file) => (!file.as_raw_fd() << 3) | 3,
            #[cfg(test)]
            Device::System(id) => *id,
        }
    }

    /// How it stands to ours.
    #[inline]
    pub fn comparison(&self) -> &Comparison {
        &self.comparison
    }

    /// Its device's name, such as `ptp0`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The name of the PTP device in a folder of sysfs: the first by name.
fn device_of(folder: &Path) -> Option<String> {
    let names = fs::read_dir(folder).ok()?.flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("ptp")).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(card_ns: u64, monotonic_ns: u64) -> Reading {
        Reading {
            card_ns,
            monotonic_ns,
            error_ns: 400,
        }
    }

    fn monotonic(comparison: &Comparison, card_ns: u64) -> Option<u64> {
        comparison
            .monotonic(NonZeroU64::new(card_ns).expect("not 0"))
            .map(NonZeroU64::get)
    }

    #[test]
    fn a_stamp_is_converted_by_where_the_clock_was_and_at_what_rate_it_goes() {
        let mut comparison = Comparison::default();
        let start = 1_700_000_000_000_000_000;
        comparison.read(reading(start, 5_000_000_000));
        // One reading says nothing about the rate.
        assert_eq!(
            (monotonic(&comparison, start), comparison.error_ns()),
            (None, None)
        );
        // 50 parts per million fast.
        comparison.read(reading(start + 1_000_050_000, 6_000_000_000));
        assert_eq!(comparison.error_ns(), Some(1_200));
        for ns in [0_u64, 1, 1_000, 100_000_000, 1_000_000_000] {
            let card = start + 1_000_050_000 + ns + ns * 50 / 1_000_000;
            let found = monotonic(&comparison, card).expect("known");
            assert!(found.abs_diff(6_000_000_000 + ns) <= 5, "{ns}: {found}");
        }
        // Stamps from before the reading, too.
        let found = monotonic(&comparison, start + 500_025_000).expect("known");
        assert!(found.abs_diff(5_500_000_000) <= 5, "{found}");
    }

    #[test]
    fn a_clock_that_was_set_is_not_believed_until_two_readings_agree_again() {
        let mut comparison = Comparison::default();
        comparison.read(reading(1_000, 1_000_000_000));
        comparison.read(reading(1_000_001_000, 2_000_000_000));
        assert!(monotonic(&comparison, 1_000_001_500).is_some());
        // Forward by an hour, and back.
        for card in [3_600_000_000_000_u64, 2_000] {
            let now = comparison.last.expect("read").monotonic_ns + 1_000_000_000;
            comparison.read(reading(card, now));
            assert_eq!(monotonic(&comparison, card + 5), None);
            comparison.read(reading(card + 1_000_000_000, now + 1_000_000_000));
            assert_eq!(
                monotonic(&comparison, card + 1_000_000_005),
                Some(now + 1_000_000_005)
            );
        }
        assert_eq!(comparison.steps(), 2);
    }

    #[test]
    fn a_stamp_far_from_the_last_reading_is_not_converted() {
        let mut comparison = Comparison::default();
        comparison.read(reading(50_000_000_000, 1_000_000_000));
        comparison.read(reading(51_000_000_000, 2_000_000_000));
        assert!(monotonic(&comparison, 51_000_000_000 + REACH_NS).is_some());
        assert_eq!(monotonic(&comparison, 51_000_000_001 + REACH_NS), None);
        assert_eq!(monotonic(&comparison, 40_000_000_000), None);
        // Nor one that would lie before the system was started.
        assert_eq!(monotonic(&comparison, 48_000_000_000), None);
    }

    #[test]
    fn readings_too_close_together_do_not_spoil_the_rate() {
        let mut comparison = Comparison::default();
        comparison.read(reading(1_000_000_000, 1_000_000_000));
        comparison.read(reading(2_000_000_000, 2_000_000_000));
        let before = comparison;
        comparison.read(reading(2_000_900_000, 2_001_000_000));
        assert_eq!(comparison, before);
    }

    #[test]
    fn a_reading_in_which_the_thread_was_interrupted_is_not_used() {
        let mut comparison = Comparison::default();
        comparison.read(reading(1_000_000_000, 1_000_000_000));
        comparison.read(reading(2_000_000_000, 2_000_000_000));
        let before = comparison;
        comparison.read(Reading {
            error_ns: ERROR_MAX_NS + 1,
            ..reading(3_000_090_000, 3_000_000_000)
        });
        assert_eq!(comparison, before);
    }

    #[test]
    fn two_clocks_of_this_machine_are_compared() {
        let mut clock = CardClock {
            device: Device::System(libc::CLOCK_REALTIME),
            name: "realtime".to_owned(),
            comparison: Comparison::default(),
            due_ns: 0,
        };
        // Readings in which the thread is interrupted do not count.
        while clock.comparison().error_ns().is_none() {
            clock.follow().expect("a clock of the system");
            std::thread::sleep(std::time::Duration::from_millis(11));
        }
        // Both can be compared: the next reading is due in a second, and not before.
        clock.follow_when_due().expect("due at once");
        let read = clock.comparison().last;
        clock.due_ns = u64::MAX;
        clock.follow_when_due().expect("not due");
        assert_eq!(clock.comparison().last, read);
        let before = sys::clock_ns(libc::CLOCK_MONOTONIC);
        let found = monotonic(clock.comparison(), sys::clock_ns(libc::CLOCK_REALTIME)).expect("compared");
        // How long this thread stood still is not known; an hour is another clock.
        assert!(found.abs_diff(before) < 3_600_000_000_000, "{before} {found}");
    }

    #[test]
    fn the_device_is_the_cards_and_interfaces_without_one_have_none() {
        let folder = std::env::temp_dir().join(format!("tickwire-card-{}", std::process::id()));
        let (classes, devices) = (folder.join("net"), folder.join("dev"));
        std::fs::create_dir_all(classes.join("eth0/device/ptp/ptp3")).expect("a folder");
        std::fs::create_dir_all(classes.join("eth1/device")).expect("a folder");
        std::fs::create_dir_all(&devices).expect("a folder");
        assert!(
            CardClock::below(&classes, &devices, "eth0").is_none(),
            "no device"
        );
        std::fs::write(devices.join("ptp3"), b"").expect("a file");
        let mut clock = CardClock::below(&classes, &devices, "eth0").expect("both are there");
        assert_eq!(clock.name(), "ptp3");
        // It is no clock: an error, and nothing is believed.
        assert!(clock.follow().is_err());
        assert_eq!(clock.comparison().error_ns(), None);
        assert!(CardClock::below(&classes, &devices, "eth1").is_none());
        assert!(CardClock::of_interface("lo").is_none());
        std::fs::remove_dir_all(&folder).expect("was made");
    }
}
