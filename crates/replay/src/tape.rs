//! Recordings played at their speed: what `replay` and the daemon's recorded input have in common.
//!
//! ```text
//! CaptureReader ─► Tape::frame ─► who it is for ─► Tape::advance (waits) ─► channel
//! ```
//! Time is the recording's. A frame without a time happens when the one before it did.

use std::time::{Duration, Instant};

use tickwire_market::Nanos;
use tickwire_runtime::capture::{
    CaptureError, CaptureReader, Carried, FrameCounts, Frames, NotUdp, UdpPacket,
};
use tickwire_runtime::signal::StopFlag;

use tickwire_console::failure::Failure;

/// How fast to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As fast as it can be read.
    Max,
    /// A multiple of the recording's own speed: 1 is that speed, 2 is twice it.
    Times(f64),
}

/// Reads `max`, or a multiple of the recording's own speed.
///
/// # Errors
/// A sentence with what there is.
pub fn parse_speed(text: &str) -> Result<Speed, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        _ if text == "max" => Ok(Speed::Max),
        Ok(x) if x > 0.0 && x.is_finite() => Ok(Speed::Times(x)),
        _ => Err("give `max` or a positive multiple such as 1, 3 or 0.5".into()),
    }
}

/// How long a wait takes before the caller may look at other things.
const NAP: Duration = Duration::from_millis(5);

/// Why a file was not read to its end.
pub enum End {
    /// The caller asked to stop.
    Interrupted,
    /// The file is damaged from here on; why. What was played stays as it is.
    Damaged(String),
    /// It cannot be read at all.
    Failed(Failure),
}

impl From<CaptureError> for End {
    fn from(e: CaptureError) -> End {
        match e.is_unreadable() {
            true => End::Failed(Failure::system(e.to_string())),
            false => End::Damaged(e.to_string()),
        }
    }
}

/// Whether somebody asks to stop.
pub trait Stopping {
    /// Whether to stop; asked between two frames, and it must be cheap.
    fn is_stopping(&self) -> bool;
}

impl Stopping for StopFlag {
    fn is_stopping(&self) -> bool {
        self.is_set()
    }
}

/// A captured frame.
pub struct Frame<'a> {
    /// The recording's time.
    pub now: Nanos,
    /// Its datagram, if it has one; what it is instead is counted.
    pub udp: Result<UdpPacket<'a>, NotUdp>,
}

/// See the module's description.
pub struct Tape {
    speed: Speed,
    /// When the first packet was played: by our clock and by the recording's.
    start: Option<(Instant, Nanos)>,
    last: Nanos,
    frames: Frames,
}

impl Tape {
    /// Nothing played yet.
    pub fn new(speed: Speed) -> Tape {
        Tape {
            speed,
            start: None,
            last: Nanos::ZERO,
            frames: Frames::default(),
        }
    }

    /// The next frame of a file; `None` at its end.
    pub fn frame<'r>(&mut self, reader: &'r mut CaptureReader) -> Result<Option<Frame<'r>>, End> {
        let Some(frame) = reader.next_frame(&mut self.frames)? else {
            return Ok(None);
        };
        let udp = match frame.carried {
            Ok(Carried::Udp(udp)) => Ok(udp),
            Ok(Carried::Tcp(_)) => Err(NotUdp::Protocol(6)),
            Err(reason) => Err(reason),
        };
        let now = frame.packet.time.unwrap_or(self.last);
        Ok(Some(Frame { now, udp }))
    }

    /// The recording goes on to `now`: waits a little when that is not due yet, and says whether it is due.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let (started, first) = *self.start.get_or_insert_with(|| (Instant::now(), now));
        let Speed::Times(times) = self.speed else {
            self.last = now;
            return true;
        };
        let due = Duration::from_nanos((now.since(first) as f64 / times) as u64);
        let until = started.elapsed() + NAP;
        loop {
            let left = due.saturating_sub(started.elapsed());
            if left.is_zero() {
                self.last = now;
                return true;
            }
            if started.elapsed() >= until {
                return false;
            }
            // Sleep while far away, spin the last stretch: the scheduler wakes up to 100 µs late.
            if left > Duration::from_micros(200) {
                std::thread::sleep((left - Duration::from_micros(150)).min(NAP));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The recording goes on to `now`: waits until it is due.
    pub fn advance(&mut self, now: Nanos, stop: &impl Stopping) -> Result<(), End> {
        while !self.is_due(now) {
            if stop.is_stopping() {
                return Err(End::Interrupted);
            }
        }
        Ok(())
    }

    /// Starts anew with the first packet that comes.
    pub fn rewind(&mut self) {
        self.frames.next_file();
        self.start = None;
    }

    /// The time of the last packet played.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// Frames read.
    pub fn frames(&self) -> u64 {
        self.frames.counts().frames
    }

    /// What became of every frame.
    pub fn skipped(&self) -> FrameCounts {
        self.frames.counts()
    }
}
