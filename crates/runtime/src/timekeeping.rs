//! How well the kernel's clock is kept: what adjtimex(2) says of it, read only.

use std::io;

use crate::sys;

/// The state of the kernel's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timekeeping {
    /// How far the clock still has to be moved, in nanoseconds: what the last correction left.
    pub offset_ns: i64,
    /// The largest error that whoever disciplines the clock vouches for, in nanoseconds; it grows until the
    /// next correction.
    pub error_max_ns: u64,
    /// Whether anybody disciplines it at all (NTP, PTP): without, the error is unknown, whatever the number
    /// says.
    pub is_synchronized: bool,
}

impl Timekeeping {
    /// As it is now. A system call that changes nothing and needs no right.
    ///
    /// # Errors
    /// What the kernel says; a sandbox may forbid the call.
    pub fn now() -> io::Result<Timekeeping> {
        let (state, told) = sys::timekeeping()?;
        let in_ns = |value: i64| match told.status & libc::STA_NANO {
            0 => value.saturating_mul(1_000),
            _ => value,
        };
        Ok(Timekeeping {
            offset_ns: in_ns(told.offset),
            error_max_ns: u64::try_from(told.maxerror).unwrap_or(0).saturating_mul(1_000),
            is_synchronized: state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0,
        })
    }

    /// The largest distance from true time that can be vouched for, in nanoseconds; `None` where nobody does.
    pub fn distance_ns(&self) -> Option<u64> {
        self.is_synchronized
            .then(|| self.offset_ns.unsigned_abs().saturating_add(self.error_max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_its_clock_is_kept() {
        // A sandbox may forbid it, with a reason.
        let Ok(kept) = Timekeeping::now() else { return };
        assert_eq!(kept.distance_ns().is_some(), kept.is_synchronized);
        let kept = Timekeeping {
            offset_ns: -3_000,
            error_max_ns: 40_000,
            is_synchronized: true,
        };
        assert_eq!(kept.distance_ns(), Some(43_000));
    }
}
