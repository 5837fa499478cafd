//! What a session does and how long each step takes: stamps at bytes in, decoded, handed over, answered,
//! bytes out.
//!
//! The first message of every read is stamped: five readings of the processor's counter; they are counted in
//! histograms when the answer is out ([`crate::Report`], [`crate::Row`]).

use tickwire_fix::{SessionId, Status};
use tickwire_market::{Counter, Counters, Nanos, SeqNo};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_shm::Histogram;

use crate::engine::Table as Sessions;
use crate::observer::{Row, Standing};
use crate::report::SessionReport;

/// The steps between two stamps; the last is the whole way.
pub const STEPS: [&str; 5] = [
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
    Out,
}

#[derive(Default)]
struct OfSession {
    steps: [Histogram; STEPS.len()],
    row: Option<Box<dyn Row>>,
    has_been_on: bool,
}

/// The probes of a thread's sessions.
pub(crate) struct Probes {
    sessions: Vec<OfSession>,
    stage: Stage,
    session: SessionId,
    /// In the order of the stamps.
    stamps: [u64; 5],
}

impl Probes {
    pub(crate) fn new() -> Probes {
        Probes {
            sessions: Vec::new(),
            stage: Stage::Idle,
            session: SessionId(0),
            stamps: [0; 5],
        }
    }

    /// A session is there from now on; what its place did before is forgotten.
    pub(crate) fn add(&mut self, id: SessionId, row: Option<Box<dyn Row>>) {
        let fresh = OfSession {
            row,
            ..OfSession::default()
        };
        match self.sessions.get_mut(id.0) {
            Some(place) => *place = fresh,
            None => self.sessions.push(fresh),
        }
    }

    /// Shows a session in this row from now on, unless it has one.
    pub(crate) fn show_in(&mut self, id: SessionId, row: impl FnOnce() -> Option<Box<dyn Row>>) {
        let place = &mut self.sessions[id.0];
        if place.row.is_none() {
            place.row = row();
        }
    }

    /// Somebody looks at any of them.
    pub(crate) fn are_shown(&self) -> bool {
        self.sessions.iter().any(|session| session.row.is_some())
    }

    /// A session has logged on.
    pub(crate) fn logged_on(&mut self, id: SessionId) {
        self.sessions[id.0].has_been_on = true;
    }

    /// Bytes have come.
    #[inline]
    pub(crate) fn bytes_in(&mut self, id: SessionId) {
        self.stamps[0] = tsc();
        (self.session, self.stage) = (id, Stage::In);
    }

    /// The session has seen them.
    #[inline]
    pub(crate) fn decoded(&mut self) {
        if self.stage == Stage::In {
            self.stamps[1] = tsc();
            self.stage = Stage::Decoded;
        }
    }

    /// An application message is about to be handed over.
    #[inline]
    pub(crate) fn handed_over(&mut self) {
        if self.stage == Stage::Decoded {
            self.stamps[2] = tsc();
        }
    }

    /// The application is done with it.
    #[inline]
    pub(crate) fn answered(&mut self) {
        if self.stage == Stage::Decoded {
            self.stamps[3] = tsc();
            self.stage = Stage::Answered;
        }
    }

    /// Bytes have gone out.
    #[inline]
    pub(crate) fn bytes_out(&mut self, id: SessionId) {
        if self.stage == Stage::Answered && self.session == id {
            self.stamps[4] = tsc();
            self.stage = Stage::Out;
        }
    }

    /// Nothing more will come of the bytes: counts the steps that were stamped.
    #[inline]
    pub(crate) fn over(&mut self, clock: &Clock) {
        let steps = match self.stage {
            Stage::Idle | Stage::In | Stage::Decoded => 0,
            Stage::Answered => 3,
            Stage::Out => 4,
        };
        let stage = std::mem::take(&mut self.stage);
        let of_session = &mut self.sessions[self.session.0];
        let mut count = |step: usize, from: u64, to: u64| {
            let ns = clock.span_ns(to.wrapping_sub(from));
            of_session.steps[step].record(ns);
            if let Some(row) = &mut of_session.row {
                row.step(step, ns);
            }
        };
        for step in 0..steps {
            count(step, self.stamps[step], self.stamps[step + 1]);
        }
        if stage == Stage::Out {
            count(4, self.stamps[0], self.stamps[4]);
        }
    }

    /// Shows states and counters in the region, if there is one.
    pub(crate) fn show(&mut self, now: Nanos, sessions: &Sessions, log_dropped: u64) {
        for (at, probe) in self.sessions.iter_mut().enumerate() {
            let Some(row) = &mut probe.row else { continue };
            let session = sessions.session(SessionId(at));
            let state = match session.status() {
                Status::Active => Standing::Live,
                _ if !session.may_log_on(now) => Standing::Ended,
                _ if probe.has_been_on => Standing::Stale,
                _ => Standing::Building,
            };
            let next_in = SeqNo(tickwire_fix::Store::next_in(session.store()));
            let counters = Self::counters(session.counters(), log_dropped);
            row.show(now, state, next_in, &counters);
        }
    }

    fn counters(of_session: &Counters, log_dropped: u64) -> Counters {
        let mut counters = of_session.clone();
        counters.add(Counter::FixLogDropped, log_dropped);
        counters
    }

    /// Everything so far.
    pub(crate) fn report(&self, sessions: &Sessions, log_dropped: u64) -> Vec<SessionReport> {
        let one = |(at, probe): (usize, &OfSession)| {
            let session = sessions.session(SessionId(at));
            let c = session.config();
            SessionReport {
                id: SessionId(at),
                name: format!("{} {} -> {}", c.version.name(), c.sender, c.target),
                status: session.status(),
                next_out: tickwire_fix::Store::next_out(session.store()),
                next_in: tickwire_fix::Store::next_in(session.store()),
                counters: Self::counters(session.counters(), log_dropped),
                steps: probe.steps.to_vec(),
            }
        };
        self.sessions.iter().enumerate().map(one).collect()
    }
}
