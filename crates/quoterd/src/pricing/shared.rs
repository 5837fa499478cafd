//! What the quoting thread, the pricing thread and the operator see of each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use serde_json::{Value, json};
use tickwire_market::Nanos;
use tickwire_node::hot::OrderOut;
use tickwire_trading::{EyeOff, EyeState, OffMarket, PullReason, QuotingState};

use crate::news::{Board, word};
use crate::path::{QuotePath, Trades};

/// What both threads and the operator see. Words, no locks.
pub(crate) struct Shared {
    /// Bid plus ask of the underlying, in its ticks, as last seen by the thread that quotes.
    pub half_tick: AtomicI64,
    /// MsgSeqNum up to which the venue's messages were taken, and their fills handed over, by the thread that
    /// quotes.
    pub heard: AtomicU64,
    /// The kill switch: how often everything was to be pulled, and quoting resumed. The thread that quotes
    /// compares them with what it has done.
    pulls: AtomicU64,
    resumes: AtomicU64,
    /// How often the operator was heard.
    heartbeats: AtomicU64,
    /// How often more was lost than may be.
    losses: AtomicU64,
    /// How often the eye was to be turned on, and off.
    eye_on: AtomicU64,
    eye_off: AtomicU64,
    /// What of these was obeyed; written by the thread that quotes.
    obeyed: [AtomicU64; 6],
    pub(super) ends: AtomicBool,
    /// For the operator: whether quotes go out (0), are being taken away (1) or not there (2), then the
    /// reason by its place in [`PullReason::ALL`]; the same of the last pull, from 1 on; mass quotes sent;
    /// contracts held.
    state: [AtomicU64; 3],
    /// How often quoting stopped, by reason.
    pulled: [AtomicU64; PullReason::ALL.len()],
    messages: AtomicU64,
    net: AtomicI64,
    /// The eye's: 0 there is none, 1 it trades, from 2 on [`EYE_OFF`]; orders sent, contracts traded and
    /// those of the underlying still to be traded against them, in thousandths.
    eye: [AtomicU64; 3],
    unhedged: AtomicI64,
    /// Options that are not quoted because of their market, in the order of [`OffMarket::ALL`].
    off_market: [AtomicU64; 4],
    /// What the pricing thread says to whoever asks; the thread that quotes does not touch it.
    pub board: Board,
}

/// Why the eye is off, in a fixed order.
const EYE_OFF: [EyeOff; 5] = [
    EyeOff::Disarmed,
    EyeOff::Heartbeat,
    EyeOff::LateAnswer,
    EyeOff::Unmatched,
    EyeOff::Killed,
];

impl Shared {
    pub(crate) fn new(half_tick: i64) -> Shared {
        Shared {
            half_tick: AtomicI64::new(half_tick),
            heard: AtomicU64::new(0),
            pulls: AtomicU64::new(0),
            resumes: AtomicU64::new(0),
            heartbeats: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            eye_on: AtomicU64::new(0),
            eye_off: AtomicU64::new(0),
            obeyed: [const { AtomicU64::new(0) }; 6],
            ends: AtomicBool::new(false),
            state: [const { AtomicU64::new(0) }; 3],
            pulled: [const { AtomicU64::new(0) }; PullReason::ALL.len()],
            messages: AtomicU64::new(0),
            net: AtomicI64::new(0),
            eye: [const { AtomicU64::new(0) }; 3],
            unhedged: AtomicI64::new(0),
            off_market: [const { AtomicU64::new(0) }; 4],
            board: Board::default(),
        }
    }

    /// Says how things are; on the thread that quotes, some times a second.
    pub(crate) fn note<O: OrderOut, T: Trades>(&self, path: &QuotePath<O, T>) {
        let (state, reason) = match path.maker().quoter.state() {
            QuotingState::Quoting => (0, None),
            QuotingState::Pulling(reason) => (1, Some(reason)),
            QuotingState::Halted(reason) => (2, Some(reason)),
        };
        self.state[0].store(state, Ordering::Relaxed);
        let place = reason.map_or(0, |reason| reason as u64);
        self.state[1].store(place, Ordering::Relaxed);
        let last = path
            .maker()
            .quoter
            .last_pull()
            .map_or(0, |reason| 1 + reason as u64);
        self.state[2].store(last, Ordering::Relaxed);
        for (word, count) in self.pulled.iter().zip(path.maker().quoter.pulls()) {
            word.store(*count, Ordering::Relaxed);
        }
        self.messages.store(path.sent()[0], Ordering::Relaxed);
        self.net.store(path.maker().quoter.net(), Ordering::Relaxed);
        for (word, options) in self.off_market.iter().zip(path.maker().quoter.off_markets()) {
            word.store(options.into(), Ordering::Relaxed);
        }
        let Some(eye) = path.maker().eye() else { return };
        let state = match eye.state() {
            EyeState::Armed(_) => 1,
            EyeState::Off(why) => 2 + EYE_OFF.iter().position(|off| *off == why).unwrap_or(0),
        };
        let words = [state as u64, path.orders_sent(), path.maker().eye_contracts()];
        for (word, value) in self.eye.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.unhedged.store(eye.unhedged_milli(), Ordering::Relaxed);
    }

    /// The eye as it was last noted.
    fn eye_status(&self) -> Value {
        let [state, orders, contracts] = [0, 1, 2].map(|at| self.eye[at].load(Ordering::Relaxed));
        let state = match state {
            0 => return Value::Null,
            1 => "on".to_string(),
            off => format!("off: {:?}", EYE_OFF[(off as usize - 2).min(EYE_OFF.len() - 1)]),
        };
        json!({
            "state": state,
            "orders": orders,
            "contracts": contracts,
            "unhedged": (self.unhedged.load(Ordering::Relaxed) as f64 / 1e3),
        })
    }

    /// What was last noted, for the operator.
    pub(crate) fn status(&self) -> Value {
        let word = |at: usize| self.state[at].load(Ordering::Relaxed) as usize;
        let named = |place: usize| PullReason::ALL.get(place).map(|reason| format!("{reason:?}"));
        let reason = named(word(1));
        let counts = PullReason::ALL.iter().zip(&self.pulled);
        let pulls: BTreeMap<String, u64> = counts
            .map(|(reason, count)| (format!("{reason:?}"), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        json!({
            "state": (["quoting", "pulling", "halted"][word(0).min(2)]),
            "reason": (if word(0) == 0 { None } else { reason }),
            "last_pull": (word(2).checked_sub(1).and_then(named)),
            "pulls": (pulls),
            "half_tick": (self.half_tick.load(Ordering::Relaxed)),
            "mass_quotes": (self.messages.load(Ordering::Relaxed)),
            "net": (self.net.load(Ordering::Relaxed)),
            "eye": (self.eye_status()),
            "off_market": (self.off_market_status()),
            "account": (self.board.get()),
        })
    }

    /// How many options are not quoted because of their market, by reason.
    fn off_market_status(&self) -> Value {
        let options = self.off_market.iter().map(|word| word.load(Ordering::Relaxed));
        let by_reason = OffMarket::ALL.iter().zip(options);
        Value::Object(
            by_reason
                .map(|(why, n)| (word(*why).to_string(), n.into()))
                .collect(),
        )
    }

    /// Takes every quote away.
    pub(crate) fn pull(&self) {
        self.pulls.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes every quote away, because of what was lost.
    pub(super) fn lose(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// Quotes again.
    pub(crate) fn resume(&self) {
        self.resumes.fetch_add(1, Ordering::Relaxed);
    }

    /// Turns the eye on or off.
    pub(crate) fn set_eye(&self, is_on: bool) {
        let word = if is_on { &self.eye_on } else { &self.eye_off };
        word.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is an eye.
    pub(crate) fn has_eye(&self) -> bool {
        self.eye[0].load(Ordering::Relaxed) != 0
    }

    /// The operator is there.
    pub(crate) fn heartbeat(&self) {
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
    }

    /// Does what was asked for since it was last called; on the thread that quotes.
    #[inline]
    pub(crate) fn obey<O: OrderOut, T: Trades>(&self, now: Nanos, path: &mut QuotePath<O, T>) {
        let is_news = |word: &AtomicU64, at: usize| {
            let asked = word.load(Ordering::Relaxed);
            let is_news = self.obeyed[at].load(Ordering::Relaxed) != asked;
            if is_news {
                self.obeyed[at].store(asked, Ordering::Relaxed);
            }
            is_news
        };
        if is_news(&self.heartbeats, 0) {
            path.maker_mut().on_heartbeat(now);
        }
        if is_news(&self.resumes, 1) {
            path.resume(now);
        }
        if is_news(&self.eye_on, 3) {
            path.arm_eye(now);
        }
        if is_news(&self.eye_off, 4) {
            path.maker_mut().disarm_eye();
        }
        if is_news(&self.losses, 5) {
            path.pull_on_loss(now);
        }
        // Last: a pull that was asked for at the same time wins.
        if is_news(&self.pulls, 2) {
            path.pull(now);
        }
    }
}
