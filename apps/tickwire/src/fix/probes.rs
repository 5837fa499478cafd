//! What a session does and how long each step takes: stamps at bytes in, decoded, handed over, answered, bytes out.
//!
//! The first message of every read is stamped: five readings of the processor's counter and as many counts in histograms. Shown
//! on SIGUSR1 and, with `--stats`, at the end.

use std::fmt::Write;

use tickwire_fix::SessionId;
use tickwire_lab::{Table, format_ns};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_shm::Histogram;

use super::engine::Table as Sessions;

/// The steps between two stamps; the last is the whole way.
const STEPS: [&str; 5] = [
    "bytes in -> decoded",
    "decoded -> handed over",
    "handed over -> answered",
    "answered -> bytes out",
    "bytes in -> bytes out",
];

/// How far the message that is stamped has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    In,
    Decoded,
    Answered,
}

#[derive(Default)]
struct OfSession {
    steps: [Histogram; STEPS.len()],
    logons: u64,
    bytes_in: u64,
    bytes_out: u64,
    messages: u64,
}

/// The probes of a thread's sessions.
pub(super) struct Probes {
    sessions: Vec<OfSession>,
    stage: Stage,
    /// In the order of the stamps.
    stamps: [u64; 5],
}

impl Probes {
    pub(super) fn new(sessions: usize) -> Probes {
        Probes {
            sessions: (0..sessions).map(|_| OfSession::default()).collect(),
            stage: Stage::Idle,
            stamps: [0; 5],
        }
    }

    /// A session has logged on.
    pub(super) fn logged_on(&mut self, id: SessionId) {
        self.sessions[id.0].logons += 1;
    }

    /// Bytes have come.
    #[inline]
    pub(super) fn bytes_in(&mut self, id: SessionId, len: usize) {
        self.sessions[id.0].bytes_in += len as u64;
        self.stamps[0] = tsc();
        self.stage = Stage::In;
    }

    /// The session has seen them.
    #[inline]
    pub(super) fn decoded(&mut self) {
        if self.stage == Stage::In {
            self.stamps[1] = tsc();
            self.stage = Stage::Decoded;
        }
    }

    /// An application message is about to be handed over.
    #[inline]
    pub(super) fn handed_over(&mut self, id: SessionId) {
        self.sessions[id.0].messages += 1;
        if self.stage == Stage::Decoded {
            self.stamps[2] = tsc();
        }
    }

    /// The application is done with it.
    #[inline]
    pub(super) fn answered(&mut self, id: SessionId, clock: &Clock) {
        if self.stage != Stage::Decoded {
            return;
        }
        self.stamps[3] = tsc();
        self.stage = Stage::Answered;
        (0..3).for_each(|step| self.record(id, step, clock));
    }

    /// Bytes have gone out.
    #[inline]
    pub(super) fn bytes_out(&mut self, id: SessionId, len: usize, clock: &Clock) {
        self.sessions[id.0].bytes_out += len as u64;
        if self.stage != Stage::Answered {
            return;
        }
        self.stamps[4] = tsc();
        self.stage = Stage::Idle;
        self.record(id, 3, clock);
        let whole = clock.span_ns(self.stamps[4].wrapping_sub(self.stamps[0]));
        self.sessions[id.0].steps[4].record(whole);
    }

    /// Nothing more will come of the bytes.
    #[inline]
    pub(super) fn over(&mut self) {
        self.stage = Stage::Idle;
    }

    #[inline]
    fn record(&mut self, id: SessionId, step: usize, clock: &Clock) {
        let span = self.stamps[step + 1].wrapping_sub(self.stamps[step]);
        self.sessions[id.0].steps[step].record(clock.span_ns(span));
    }

    /// Everything as text.
    pub(super) fn report(&self, sessions: &Sessions) -> String {
        let mut text = String::new();
        for (at, probe) in self.sessions.iter().enumerate() {
            let session = sessions.session(SessionId(at));
            let c = session.config();
            let name = format!("{} {} -> {}", c.version.name(), c.sender, c.target);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name}: {:?}, next out {}, next in {}, {} logons, {} messages handed over, {} bytes in, {} bytes out",
                session.status(),
                tickwire_fix::Store::next_out(session.store()),
                tickwire_fix::Store::next_in(session.store()),
                probe.logons,
                probe.messages,
                probe.bytes_in,
                probe.bytes_out
            );
            let counters = session.counters().iter().filter(|(_, n)| *n > 0);
            for (counter, n) in counters {
                let _ = writeln!(text, "  {}: {n}", counter.spec().label);
            }
            if probe.steps[0].count > 0 {
                text += &Self::table(&name, &probe.steps).to_text();
            }
        }
        text
    }

    fn table(name: &str, steps: &[Histogram]) -> Table {
        let columns = ["", "p50", "p90", "p99", "p99.9", "max", "count"];
        let rows = STEPS.iter().zip(steps);
        rows.fold(Table::new(name, &columns), |table, (step, h)| {
            let at = [500_000, 900_000, 990_000, 999_000].map(|quantile| format_ns(h.at(quantile)));
            let rest = [format_ns(h.max), h.count.to_string()];
            table.row([step.to_string()].into_iter().chain(at).chain(rest))
        })
    }
}
