//! `tickwire watchdog`: a process of its own, with a session of its own at every venue that the trading
//! process has one at, that cancels what a trading process has open when that process does not turn any more.
//!
//! ```text
//! trade · quote ── a count in shared memory, one store a turn ──► watchdog ── OrderMassCancelRequest (q), all of the firm's ──► venue
//! ```
//! It does not ask why: a process that was killed, stopped, swapped out or that hangs looks the same from
//! here. The venue takes orders and quotes of the whole firm at the word of this session (here:
//! `cancels_firm` of `[[order_entry.session]]`; elsewhere by agreement with the venue). The request is
//! repeated for as long as the count stands still: what the process had on its way may arrive after the
//! first.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tickwire_fix::{
    Again, CompId as FixId, Event, Precision, QuoteAnswer, Role, Session, SessionConfig, Status,
    put_cancel_all_orders, read_quote_answer,
};
use tickwire_market::{Nanos, Symbol};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::tcp::{Received, TcpStream};

use crate::controls::beat::BeatView;
use crate::settings::{FIRST_SESSION, NodeConfig};
use tickwire_console::failure::Failure;
use tickwire_console::{say, warn};
use tickwire_venues::order_entry::OrderEntrySection;
use tickwire_venues::values::CompId;

/// How long it sleeps between two looks.
const LOOK: Duration = Duration::from_millis(5);
/// How long a request may wait for its answer, and between two while the count stands still.
const AGAIN_NS: u64 = Nanos::SECOND;
/// Between two attempts to connect.
const RECONNECT_NS: u64 = 500 * Nanos::MILLI;
/// How long one may take.
const CONNECT: Duration = Duration::from_millis(500);

/// Who watches, and for how long nothing may turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchdogSection {
    /// CompID of its own session at the venue, which must be let cancel for the firm.
    pub comp_id: CompId,
    /// The trading thread has not turned for so long: everything is cancelled, milliseconds.
    pub stall_ms: u32,
    /// HeartBtInt of its session, seconds.
    pub heartbeat_s: u32,
}

impl Default for WatchdogSection {
    fn default() -> WatchdogSection {
        WatchdogSection {
            comp_id: CompId(Symbol::new(b"WATCHDOG").expect("a valid default")),
            stall_ms: 400,
            heartbeat_s: 5,
        }
    }
}

/// What is known of the watched process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// There is none yet, or it ended with nothing open.
    Nobody,
    /// It turns.
    Turning,
    /// It does not.
    Still,
}

/// When a count that stands still is one that has stopped: pure, so that it can be shown without processes.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    stall_ns: u64,
    turns: Option<u64>,
    changed: Nanos,
    looked: Nanos,
}

impl Judge {
    /// Nothing watched yet. A count that has not moved for `stall_ns` nanoseconds is one that has stopped.
    pub fn new(stall_ns: u64) -> Judge {
        Judge {
            stall_ns,
            turns: None,
            changed: Nanos::ZERO,
            looked: Nanos::ZERO,
        }
    }

    /// A look at the count; `None` where there is nobody to look at. The time between two looks counts for
    /// at most half of what is allowed: while this process did not look, the whole machine may have stood
    /// still, for however long, and the trading thread with it. So no single interval makes a stall; where
    /// looks are far apart, a thread that has stopped is found by the third.
    pub fn look(&mut self, now: Nanos, turns: Option<u64>) -> Watched {
        let unseen = now.since(self.looked).saturating_sub(self.stall_ns / 2);
        self.looked = now;
        let Some(turns) = turns else {
            self.turns = None;
            return Watched::Nobody;
        };
        self.changed = match self.turns == Some(turns) {
            true => self.changed.after(unseen),
            false => now,
        };
        self.turns = Some(turns);
        match now.since(self.changed) > self.stall_ns {
            true => Watched::Still,
            false => Watched::Turning,
        }
    }

    /// Since when the count stands still, as far as this process looked meanwhile.
    pub fn since(&self) -> Nanos {
        self.changed
    }
}

/// Runs `tickwire watchdog` until `stop`: watches the beat of a trading process, and cancels everything of
/// the firm when it stands still.
///
/// # Errors
/// A configuration without `controls.beat`; a signal. Nothing else ends it: a session that is lost is taken
/// up again.
pub fn run(config: &NodeConfig, stop: &StopFlag) -> Result<(), Failure> {
    let Some(path) = &config.controls.beat else {
        return Err(Failure::config(
            "controls.beat names no file: the trading process says there that it turns, and nothing can be watched without it",
        ));
    };
    let section = &config.watchdog;
    let clock = Clock::calibrate();
    let venues = venues_of(config)?;
    let names: Vec<&str> = venues.iter().map(|(name, _)| name.as_str()).collect();
    say(format_args!(
        "watching {}: what is open of the firm is cancelled when it has not turned for {} ms{}",
        path.display(),
        section.stall_ms,
        match names.len() {
            1 => String::new(),
            _ => format!(", over {}", names.join(", ")),
        }
    ));
    let is_one = venues.len() == 1;
    let dog = |(name, order_entry): (String, OrderEntrySection)| Dog {
        of: if is_one {
            String::new()
        } else {
            format!("{name}: ")
        },
        section,
        clock: clock.clone(),
        session: session_of(section, &order_entry),
        order_entry,
        stream: None,
        connect_at: Nanos::ZERO,
        asked: None,
        // Numbers above those of every run before.
        request: clock.now().0 / Nanos::MILLI,
        fired: None,
        was_up: false,
    };
    let mut dogs: Vec<Dog<'_>> = venues.into_iter().map(dog).collect();
    let mut judge = Judge::new(u64::from(section.stall_ms) * Nanos::MILLI);
    let mut view: Option<BeatView> = None;
    let mut watched = Watched::Nobody;
    let started = Instant::now();
    let mut looks = 0_u64;
    loop {
        if let Some(reason) = stop.reason() {
            dogs.iter_mut().for_each(Dog::leave);
            return Err(Failure::interrupted(format!(
                "{reason}; nobody watches {} any more",
                path.display()
            )));
        }
        // The monotonic clock: a clock that is set must not cancel anything.
        let now = Nanos(started.elapsed().as_nanos() as u64 + 1);
        looks += 1;
        if looks.is_multiple_of(20) && view.as_ref().is_none_or(BeatView::is_replaced) {
            view = BeatView::open(path).or(view);
        }
        let pulse = view.as_ref().map(BeatView::pulse);
        let turns = pulse.filter(|pulse| !pulse.has_ended).map(|pulse| pulse.turns);
        let is = judge.look(now, turns);
        if is != watched {
            let process = pulse.map_or(0, |pulse| pulse.process);
            match (watched, is) {
                (_, Watched::Still) => {
                    let is_there = view.as_ref().is_some_and(BeatView::is_alive);
                    warn(format_args!(
                        "ALERT: process {process} {} and has not turned for {} ms: everything of the firm is cancelled",
                        if is_there { "is there" } else { "is gone" },
                        now.since(judge.since()) / Nanos::MILLI
                    ));
                }
                (Watched::Still, Watched::Turning) => say(format_args!("process {process} turns again")),
                (_, Watched::Turning) => say(format_args!("process {process} turns")),
                (_, Watched::Nobody) => {
                    say(format_args!("nobody trades: the process has ended in good order"))
                }
            }
            watched = is;
        }
        for dog in &mut dogs {
            // What is due leaves before anything else is waited for: connecting to a venue that is gone takes
            // its time.
            if is == Watched::Still {
                dog.cancel(now);
            }
        }
        for dog in &mut dogs {
            dog.serve(now);
            match is {
                Watched::Still => dog.cancel(now),
                Watched::Turning | Watched::Nobody => (dog.fired, dog.asked) = (None, None),
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// The order entry sessions that any feed needs, by name: a process may have all of them.
fn venues_of(config: &NodeConfig) -> Result<Vec<(String, OrderEntrySection)>, Failure> {
    let feeds: Vec<&str> = config.feed.iter().map(|feed| feed.name()).collect();
    let (sections, routes) = config.sessions(&feeds)?;
    let all: Vec<(String, OrderEntrySection)> = routes.sessions.into_iter().zip(sections).collect();
    match all.is_empty() {
        true => Ok(vec![(FIRST_SESSION.to_string(), config.order_entry.clone())]),
        false => Ok(all),
    }
}

fn session_of(section: &WatchdogSection, order_entry: &OrderEntrySection) -> Session {
    let id = |s: CompId| FixId::new(s.0.as_bytes()).expect("a symbol fits a CompID");
    let version = order_entry.version_of(section.comp_id);
    Session::new(SessionConfig {
        heartbeat_s: section.heartbeat_s,
        reset_on_logon: true,
        precision: Precision::Millis,
        ..SessionConfig::new(
            Role::Initiator,
            id(section.comp_id),
            id(order_entry.exchange_comp_id),
        )
        .of_version(version)
    })
}

/// A session and what was asked for.
struct Dog<'c> {
    /// Which of several, in front of a sentence.
    of: String,
    section: &'c WatchdogSection,
    order_entry: OrderEntrySection,
    clock: Clock,
    session: Session,
    stream: Option<TcpStream>,
    connect_at: Nanos,
    /// The request that is not answered, and when it left.
    asked: Option<(u64, Nanos)>,
    request: u64,
    /// When the venue confirmed last, since the count stands still.
    fired: Option<Nanos>,
    was_up: bool,
}

impl Dog<'_> {
    /// Keeps the session: it must be there when it is needed.
    fn serve(&mut self, now: Nanos) {
        if self.stream.is_none() {
            if now >= self.connect_at {
                self.connect_at = now.after(RECONNECT_NS);
                let address = self.order_entry.address.into();
                if let Ok(stream) = TcpStream::connect(address, CONNECT) {
                    self.stream = Some(stream);
                    self.session = session_of(self.section, &self.order_entry);
                    self.session.handle_connected(self.clock.now());
                    self.transmit();
                }
            }
            return;
        }
        let at = self.clock.now();
        let mut buffer = [0_u8; 4096];
        loop {
            let Some(stream) = &mut self.stream else { return };
            let bytes = match stream.recv(&mut buffer) {
                Ok(Received::Nothing) => {
                    let is_stuck = stream.has_unsent() && stream.flush().is_err();
                    match is_stuck {
                        true => return self.lose("sending failed"),
                        false => break,
                    }
                }
                Ok(Received::Bytes(bytes)) => bytes.len(),
                Ok(Received::Closed) => return self.lose("the venue closed the connection"),
                Err(e) => return self.lose(&e.to_string()),
            };
            let mut bytes = &buffer[..bytes];
            while !bytes.is_empty() {
                let taken = self.session.handle_bytes(at, bytes);
                bytes = &bytes[taken..];
                let is_over = !self.events(now);
                self.transmit();
                if is_over || (taken == 0 && self.session.status() != Status::Active) {
                    return self.lose("the session ended");
                }
            }
        }
        if self.session.poll_timeout().is_some_and(|due| due <= at) {
            self.session.handle_timeout(at);
            if !self.events(now) {
                return self.lose("the venue was not heard");
            }
            self.transmit();
        }
    }

    /// Whether the session goes on.
    fn events(&mut self, now: Nanos) -> bool {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::LoggedOn { .. } => {
                    self.was_up = true;
                    say(format_args!("{}logged on: it can cancel", self.of));
                }
                Event::Message { .. } => self.answer(now),
                Event::Disconnect { reason, text } => {
                    warn(format_args!(
                        "{}the session ended: {reason} {}",
                        self.of,
                        text.as_str()
                    ));
                    return false;
                }
                _ => {}
            }
        }
        true
    }

    fn answer(&mut self, now: Nanos) {
        let mut named = Vec::<u16>::new();
        let Some(message) = self.session.message() else {
            return;
        };
        let Ok(Some(QuoteAnswer::Cancelled { id, is_done })) = read_quote_answer(&message, &mut named) else {
            return;
        };
        let Some((_, since)) = self.asked.take_if(|(asked, _)| *asked == id) else {
            return;
        };
        match is_done {
            true => {
                self.fired = Some(now);
                say(format_args!(
                    "{}the venue has cancelled everything of the firm, {:.1} ms after it was asked",
                    self.of,
                    now.since(since) as f64 / 1e6
                ));
            }
            false => warn(format_args!(
                "ALERT: {}the venue refused to cancel: is cancels_firm set for {}?",
                self.of, self.section.comp_id.0
            )),
        }
    }

    /// Asks for everything to be cancelled, again and again for as long as nothing turns.
    fn cancel(&mut self, now: Nanos) {
        let is_due = |at: Nanos| now.since(at) > AGAIN_NS;
        if self.session.status() != Status::Active || self.stream.is_none() {
            return;
        }
        if self.asked.is_some_and(|(_, at)| !is_due(at)) || self.fired.is_some_and(|at| !is_due(at)) {
            return;
        }
        self.request += 1;
        let (id, at) = (self.request, self.clock.now());
        let sent = self
            .session
            .send(at, b"q", Again::GapFill, |e, _| put_cancel_all_orders(e, id, at));
        if sent.is_ok() {
            self.asked = Some((id, now));
            self.transmit();
        }
    }

    fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let (Some(bytes), Some(stream)) = (self.session.poll_transmit(&mut chunk), &mut self.stream) {
            if stream.send(bytes).is_err() {
                break;
            }
        }
    }

    fn lose(&mut self, why: &str) {
        if std::mem::replace(&mut self.was_up, false) {
            warn(format_args!(
                "ALERT: {}the watchdog has no session with the venue ({why}): it cannot cancel until it has; it tries again",
                self.of
            ));
        }
        self.session.handle_disconnected(self.clock.now());
        self.stream = None;
        self.asked = None;
    }

    fn leave(&mut self) {
        if self.stream.is_some() {
            self.session.logout(self.clock.now(), "no longer watching");
            self.transmit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SessionSection;
    use tickwire_venues::channels::FeedConfig;

    const MS: u64 = Nanos::MILLI;

    #[test]
    fn a_count_that_stands_still_is_noticed_once_it_is_due_and_its_return_too() {
        let mut judge = Judge::new(400 * MS);
        let mut now = Nanos(1_000 * MS);
        let mut look = |after: u64, turns: Option<u64>| {
            now = now.after(after * MS);
            judge.look(now, turns)
        };
        assert_eq!(look(0, None), Watched::Nobody);
        for turns in 1..100 {
            assert_eq!(look(5, Some(turns)), Watched::Turning);
        }
        for _ in 0..80 {
            assert_eq!(look(5, Some(99)), Watched::Turning);
        }
        assert_eq!(look(5, Some(99)), Watched::Still);
        assert_eq!(look(5, Some(99)), Watched::Still);
        assert_eq!(look(5, Some(100)), Watched::Turning);
        assert_eq!(look(5, None), Watched::Nobody, "it has ended");
        assert_eq!(look(5, Some(100)), Watched::Turning, "another one");
    }

    #[test]
    fn every_session_that_a_feed_needs_is_covered() {
        let feed = |name: &str| -> FeedConfig {
            let text = format!(r#"{{"name": "{name}", "venue": "{name}", "channel": []}}"#);
            serde_json::from_str(&text).expect("a feed")
        };
        let mut config = NodeConfig {
            feed: Vec::new(),
            receiver: Default::default(),
            order_entry: OrderEntrySection::default(),
            session: Vec::new(),
            trader: Default::default(),
            controls: Default::default(),
            watchdog: WatchdogSection::default(),
            access: Default::default(),
        };
        let names = |config: &NodeConfig| -> Vec<String> {
            venues_of(config)
                .expect("they fit")
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(names(&config), [FIRST_SESSION], "a quoter's");
        config.feed = vec![feed("nasdaq"), feed("bzx")];
        config.session = vec![SessionSection {
            name: Some("BZX".to_string()),
            feeds: vec!["bzx".to_string()],
            send: None,
            order_entry: OrderEntrySection::default(),
        }];
        assert_eq!(names(&config), [FIRST_SESSION, "BZX"]);
        config.session[0].feeds.push("nasdaq".to_string());
        assert_eq!(names(&config), ["BZX"]);
        config.session[0].feeds.push("edgx".to_string());
        assert!(venues_of(&config).is_err(), "there is no such feed");
    }

    #[test]
    fn a_machine_that_stood_still_as_a_whole_is_no_stall_but_one_that_goes_on_is() {
        let mut judge = Judge::new(400 * MS);
        let now = Nanos(1_000 * MS);
        judge.look(now, Some(7));
        let woken = now.after(600 * MS);
        assert_eq!(judge.look(woken, Some(7)), Watched::Turning);
        let mut is = Watched::Turning;
        for step in 1..=81 {
            is = judge.look(woken.after(step * 5 * MS), Some(7));
        }
        assert_eq!(is, Watched::Still);
    }

    #[test]
    fn no_pause_of_the_whole_machine_is_a_stall_however_long_it_is() {
        for pause in [1_200, 40_000, 3_600_000] {
            let mut judge = Judge::new(400 * MS);
            let mut now = Nanos(1_000 * MS);
            let mut look = |after: u64, turns: u64| {
                now = now.after(after * MS);
                judge.look(now, Some(turns))
            };
            (0..100).for_each(|turns| assert_eq!(look(5, turns), Watched::Turning));
            // The watchdog is the first of both that runs again.
            assert_eq!(look(pause, 99), Watched::Turning, "{pause} ms");
            assert_eq!(look(5, 99), Watched::Turning, "{pause} ms");
            assert_eq!(look(5, 100), Watched::Turning, "{pause} ms");
            // The whole machine pauses once more, and the trading thread stops: what is counted is half of
            // the time allowed for the pause, and the other half in looks of 5 ms.
            assert_eq!(look(pause, 100), Watched::Turning, "{pause} ms");
            let looks = (1..).find(|_| look(5, 100) == Watched::Still);
            assert_eq!(looks, Some(41), "{pause} ms");
        }
    }

    /// A watchdog that connects to a venue that is gone looks twice a second.
    #[test]
    fn a_thread_that_stopped_is_found_by_slow_looks_too() {
        let mut judge = Judge::new(400 * MS);
        let now = Nanos(1_000 * MS);
        judge.look(now, Some(7));
        let is = [1, 2, 3].map(|step| judge.look(now.after(step * 500 * MS), Some(7)));
        assert_eq!(is, [Watched::Turning, Watched::Turning, Watched::Still]);
    }
}
