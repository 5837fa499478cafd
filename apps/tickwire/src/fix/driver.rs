//! Sessions driven by steps: of a script, or of lines typed at a prompt.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use tickwire_fix::{Again, Event, Precision, SessionId, Stamp, Status, tag};
use tickwire_market::Nanos;
use tickwire_runtime::wake::Waker;

use super::script::{self, Step, Want};
use tickwire_console::failure::Failure;
use tickwire_console::say;
use tickwire_fixengine::message::{self, Framer, TagValue};
use tickwire_fixengine::{Engine, Error, Flow, Handler, Table, Way};

/// Messages that wait to be taken by a step; the oldest are dropped at a prompt, a script has failed.
const WAITING_MAX: usize = 10_000;

/// Where steps come from.
enum Source {
    /// All there: a mismatch is the end. The file's name is for messages.
    Script(String),
    /// Line by line: a mismatch is said. Gone when the input has ended.
    Prompt(Option<Receiver<String>>),
}

/// What is known of one session.
#[derive(Default)]
struct Seen {
    framer: [Framer; 2],
    /// Messages that no step has taken.
    waiting: VecDeque<Vec<u8>>,
    has_logged_on: bool,
}

/// See the module's description.
pub(super) struct Driver {
    source: Source,
    steps: VecDeque<(usize, Step)>,
    /// The session that steps are of.
    current: SessionId,
    seen: Vec<Seen>,
    timeout_ns: u64,
    /// When the first of the steps began to wait.
    since: Option<Nanos>,
    /// The message taken last.
    taken: Vec<TagValue>,
    orders: u64,
}

/// A step's result so far.
enum Progress {
    Done,
    Waits,
}

/// Why a step cannot be done.
enum Trouble {
    Mismatch(String),
    /// The other side is not there.
    Absent(String),
}

impl Driver {
    /// Plays a file.
    pub(super) fn script(path: &Path, sessions: usize) -> Result<Driver, Failure> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::config(format!("cannot read the script {name}: {e}")))?;
        let steps = script::parse(&text).map_err(|why| Failure::config(format!("{name}, {why}")))?;
        Ok(Driver::new(Source::Script(name), steps, sessions))
    }

    /// Reads steps from standard input.
    pub(super) fn prompt(sessions: usize, waker: Waker) -> Result<Driver, Failure> {
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
                waker.wake();
            }
            drop(sender);
            waker.wake();
        };
        tickwire_runtime::affinity::beside("fix-prompt", read)
            .map_err(|e| Failure::system(format!("no thread to read the prompt by: {e}")))?;
        say(format_args!("type a message (35=D|11=1|...), a step or help"));
        let source = Source::Prompt(Some(receiver));
        Ok(Driver::new(source, Vec::new(), sessions))
    }

    fn new(source: Source, steps: Vec<(usize, Step)>, sessions: usize) -> Driver {
        Driver {
            source,
            steps: steps.into(),
            current: SessionId(0),
            seen: (0..sessions).map(|_| Seen::default()).collect(),
            timeout_ns: 10 * Nanos::SECOND,
            since: None,
            taken: Vec::new(),
            orders: 0,
        }
    }

    /// Takes what was typed; `false` when there will be no more.
    fn read_prompt(&mut self) -> bool {
        let Source::Prompt(lines) = &mut self.source else {
            return !self.steps.is_empty();
        };
        let Some(receiver) = lines else {
            return !self.steps.is_empty();
        };
        loop {
            match receiver.try_recv() {
                Ok(line) => match script::parse_line(&line) {
                    Ok(step) => self.steps.extend(step.map(|s| (0, s))),
                    Err(why) => say(format_args!("? {why}")),
                },
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    *lines = None;
                    return !self.steps.is_empty();
                }
            }
        }
    }

    /// When a step that waits has waited long enough.
    fn until(&self, step: &Step) -> Nanos {
        let longest = match step {
            Step::Wait(ns) => *ns,
            _ => self.timeout_ns,
        };
        self.since.unwrap_or_default().after(longest)
    }

    fn step(&mut self, now: Nanos, step: &Step, engine: &mut Engine) -> Result<Progress, Trouble> {
        let id = self.current;
        let waited = now.since(*self.since.get_or_insert(now));
        let is_late = waited >= self.timeout_ns;
        let status = engine.table.session(id).status();
        let needs_logon = matches!(
            step,
            Step::Send(_) | Step::Order { .. } | Step::Gap(_) | Step::WaitLogon
        );
        if needs_logon && status != Status::Active {
            return match is_late {
                true => Err(self.absent(engine)),
                false => Ok(Progress::Waits),
            };
        }
        match step {
            Step::Session(name) => self.choose(name, engine)?,
            Step::Timeout(ns) => self.timeout_ns = *ns,
            Step::WaitLogon => {}
            Step::Wait(ns) if waited < *ns => return Ok(Progress::Waits),
            Step::Wait(_) => {}
            Step::WaitDisconnect => match engine.table.connection_of(id) {
                Some(_) if is_late => {
                    return Err(Trouble::Mismatch("the connection is still there".into()));
                }
                Some(_) => return Ok(Progress::Waits),
                None => {}
            },
            Step::Send(fields) => self.send(now, fields, &mut engine.table)?,
            Step::Order { .. } => {
                let fields = self.order(step);
                self.send(now, &fields, &mut engine.table)?;
            }
            Step::Gap(n) => engine.table.session_mut(id).skip_numbers(*n),
            Step::Expect(wants) => return self.expect(now, wants, is_late, engine),
            Step::Receive => return self.receive(is_late, engine),
            Step::Logout => {
                engine.want(now, id, false);
                engine.table.session_mut(id).logout(now, "");
            }
            Step::Disconnect => engine.drop_connection(now, id, self),
            Step::Connect => engine.want(now, id, true),
            Step::Help => say(format_args!("{}", script::HELP)),
            Step::Quit => self.end(),
        }
        Ok(Progress::Done)
    }

    fn end(&mut self) {
        // The step itself is still in front.
        self.steps.truncate(1);
        if let Source::Prompt(lines) = &mut self.source {
            *lines = None;
        }
    }

    fn absent(&self, engine: &Engine) -> Trouble {
        let session = engine.table.session(self.current);
        let c = session.config();
        let seconds = self.timeout_ns as f64 / 1e9;
        let ever = match self.seen[self.current.0].has_logged_on {
            true => "no longer",
            false => "not",
        };
        Trouble::Absent(format!(
            "{} -> {} is {ever} logged on after {seconds} s",
            c.sender, c.target
        ))
    }

    fn choose(&mut self, name: &str, engine: &Engine) -> Result<(), Trouble> {
        let config = |id: SessionId| engine.table.session(id).config();
        let found = engine.sessions().find(|id| config(*id).target.as_str() == name);
        self.current = found.ok_or_else(|| {
            let known: Vec<String> = engine
                .sessions()
                .map(|id| config(id).target.to_string())
                .collect();
            Trouble::Mismatch(format!(
                "there is no session with TargetCompID {name}, only {}",
                known.join(", ")
            ))
        })?;
        Ok(())
    }

    fn order(&mut self, step: &Step) -> Vec<TagValue> {
        let Step::Order {
            is_buy,
            qty,
            symbol,
            price,
            id,
        } = step
        else {
            return Vec::new();
        };
        self.orders += 1;
        let id = id.clone().unwrap_or_else(|| self.orders.to_string());
        let field = |tag, value: &str| (tag, value.as_bytes().to_vec());
        vec![
            field(tag::MSG_TYPE, "D"),
            field(tag::CL_ORD_ID, &id),
            field(21, "1"),
            field(tag::ORDER_QTY, qty),
            field(tag::ORD_TYPE, "2"),
            field(tag::PRICE, price),
            field(tag::SIDE, if *is_buy { "1" } else { "2" }),
            field(tag::SYMBOL, symbol),
            field(tag::TIME_IN_FORCE, "0"),
            field(tag::TRANSACT_TIME, "<TIME>"),
        ]
    }

    fn send(&mut self, now: Nanos, fields: &[TagValue], table: &mut Table) -> Result<(), Trouble> {
        let precision = table.session(self.current).config().precision;
        let fields = fields
            .iter()
            .map(|(tag, value)| Ok((*tag, self.filled_in(now, precision, value)?)))
            .collect::<Result<Vec<_>, Trouble>>()?;
        let (msg_type, fields) = message::to_send(fields).map_err(Trouble::Mismatch)?;
        let session = table.session_mut(self.current);
        let sent = session.send(now, &msg_type, Again::Resend, |e, _| {
            fields.iter().for_each(|(tag, value)| e.copy(*tag, value));
        });
        sent.map(drop)
            .map_err(|e| Trouble::Mismatch(format!("it was not sent: {e:?}")))
    }

    /// `<TIME>` and `$11` as what they stand for.
    fn filled_in(&self, now: Nanos, precision: Precision, value: &[u8]) -> Result<Vec<u8>, Trouble> {
        if value == b"<TIME>" {
            return Ok(Stamp::new(precision).format(now).to_vec());
        }
        let number = value
            .strip_prefix(b"$")
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        let Some(wanted) = number else {
            return Ok(value.to_vec());
        };
        let found = self.taken.iter().find(|(tag, _)| *tag == wanted);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let taken = match self.taken.is_empty() {
                true => "no message has been taken yet".into(),
                false => format!("the message taken last has no {wanted}"),
            };
            Trouble::Mismatch(format!("${wanted} stands for nothing: {taken}"))
        })
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let message = self.seen[self.current.0].waiting.pop_front()?;
        self.taken = message::fields(&message);
        Some(message)
    }

    fn receive(&mut self, is_late: bool, engine: &Engine) -> Result<Progress, Trouble> {
        match self.take() {
            Some(_) => Ok(Progress::Done),
            None if is_late => Err(self.nothing_came(engine)),
            None => Ok(Progress::Waits),
        }
    }

    fn nothing_came(&self, engine: &Engine) -> Trouble {
        match engine.table.connection_of(self.current) {
            Some(_) => Trouble::Mismatch(format!("nothing came for {} s", self.timeout_ns as f64 / 1e9)),
            None => self.absent(engine),
        }
    }

    fn expect(
        &mut self,
        now: Nanos,
        wants: &[Want],
        is_late: bool,
        engine: &Engine,
    ) -> Result<Progress, Trouble> {
        let precision = engine.table.session(self.current).config().precision;
        let mut filled = wants.to_vec();
        for want in &mut filled {
            if let Want::Value(_, value) = want {
                *value = self.filled_in(now, precision, value)?;
            }
        }
        let wants_session = filled.iter().any(|want| match want {
            Want::Value(tag::MSG_TYPE, value) => is_quiet(value),
            _ => false,
        });
        let before = std::mem::take(&mut self.taken);
        while let Some(message) = self.take() {
            let msg_type = find(&self.taken, tag::MSG_TYPE).unwrap_or_default();
            if is_quiet(msg_type) && !wants_session {
                continue;
            }
            let wrong: Vec<String> = filled
                .iter()
                .filter_map(|want| mismatch(want, &self.taken))
                .collect();
            if wrong.is_empty() {
                return Ok(Progress::Done);
            }
            // Another session message than the one asked for.
            if is_quiet(msg_type) {
                continue;
            }
            return Err(Trouble::Mismatch(format!(
                "expected {}\n  received {}\n  {}",
                shown_wants(&filled),
                message::shown(&message),
                wrong.join("; ")
            )));
        }
        self.taken = before;
        match is_late {
            true => {
                let trouble = self.nothing_came(engine);
                let expected = shown_wants(&filled);
                Err(match trouble {
                    Trouble::Mismatch(why) => Trouble::Mismatch(format!("expected {expected}, but {why}")),
                    Trouble::Absent(why) => Trouble::Absent(format!("expected {expected}, but {why}")),
                })
            }
            false => Ok(Progress::Waits),
        }
    }

    fn failed(&self, line: usize, trouble: Trouble) -> Result<(), Failure> {
        match (&self.source, trouble) {
            (Source::Script(name), Trouble::Mismatch(why)) => {
                Err(Failure::check(format!("{name}, line {line}: {why}")))
            }
            (Source::Script(name), Trouble::Absent(why)) => {
                Err(Failure::peer_lost(format!("{name}, line {line}: {why}")))
            }
            (Source::Prompt(_), Trouble::Mismatch(why) | Trouble::Absent(why)) => {
                say(format_args!("? {why}"));
                Ok(())
            }
        }
    }
}

/// Messages that a session exchanges by itself: Heartbeat, TestRequest, ResendRequest, SequenceReset, Logon.
fn is_quiet(msg_type: &[u8]) -> bool {
    matches!(msg_type, b"0" | b"1" | b"2" | b"4" | b"A")
}

fn find(fields: &[TagValue], wanted: u32) -> Option<&[u8]> {
    let field = fields.iter().find(|(tag, _)| *tag == wanted);
    field.map(|(_, value)| &value[..])
}

/// What is wrong with a field, if anything. A tag that comes several times (in groups) may have the value in
/// any place.
fn mismatch(want: &Want, fields: &[TagValue]) -> Option<String> {
    let tag = want.tag();
    let values = || fields.iter().filter(|(t, _)| *t == tag).map(|(_, value)| value);
    let first = values().next().map(|value| message::shown_value(tag, value));
    match (want, first) {
        (Want::Value(_, wanted), Some(first)) => {
            let is_there = values().any(|value| value == wanted);
            let wanted = message::shown_value(tag, wanted);
            (!is_there).then(|| format!("{tag} is {first}, not {wanted}"))
        }
        (Want::Value(..) | Want::Any(_), None) => Some(format!("{tag} is missing")),
        (Want::None(_), Some(first)) => Some(format!("{tag} is there: {first}")),
        (Want::Any(_), Some(_)) | (Want::None(_), None) => None,
    }
}

fn shown_wants(wants: &[Want]) -> String {
    let shown = wants.iter().map(|want| match want {
        Want::Value(tag, value) => format!("{tag}={}", message::shown_value(*tag, value)),
        Want::Any(tag) => format!("{tag}=*"),
        Want::None(tag) => format!("!{tag}"),
    });
    shown.collect::<Vec<_>>().join("|")
}

impl Handler for Driver {
    fn on_event(&mut self, _: Nanos, id: SessionId, event: &Event, _: &mut Table) {
        if let Event::LoggedOn { .. } = event {
            self.seen[id.0].has_logged_on = true;
        }
    }

    fn on_wire(&mut self, _: Nanos, id: SessionId, way: Way, bytes: &[u8]) {
        let seen = &mut self.seen[id.0];
        let (framer, waiting) = (&mut seen.framer[way as usize], &mut seen.waiting);
        framer.take(bytes, |m| {
            let arrow = match way {
                Way::In => "<-",
                Way::Out => "->",
            };
            say(format_args!("{arrow} {}", message::shown(m)));
            if way == Way::In {
                waiting.push_back(m.to_vec());
            }
        });
        while waiting.len() > WAITING_MAX {
            waiting.pop_front();
        }
    }

    fn on_admitted(&mut self, _: Nanos, id: SessionId, _: &mut Table) {
        let sessions = self.seen.len().max(id.0 + 1);
        self.seen.resize_with(sessions, Seen::default);
        self.seen[id.0] = Seen::default();
    }

    fn on_closed(&mut self, _: Nanos, id: SessionId, _: &mut Table) {
        self.seen[id.0].framer.iter_mut().for_each(Framer::clear);
    }

    fn turn(&mut self, now: Nanos, engine: &mut Engine) -> Result<Flow, Error> {
        if !self.read_prompt() {
            return Ok(Flow::End);
        }
        let mut flow = Flow::Go;
        while let Some((line, step)) = self.steps.front().cloned() {
            match self.step(now, &step, engine) {
                Ok(Progress::Waits) => return Ok(Flow::At(self.until(&step))),
                Ok(Progress::Done) => {}
                Err(trouble) => self.failed(line, trouble).map_err(Error::application)?,
            }
            self.since = None;
            self.steps.pop_front();
            // What was sent goes out before the next step is looked at, which is then looked at without
            // waiting for anything.
            if matches!(step, Step::Send(_) | Step::Order { .. } | Step::Disconnect) {
                flow = Flow::Again;
                break;
            }
        }
        match self.read_prompt() {
            true => Ok(flow),
            false => Ok(Flow::End),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_fixengine::settings::{self, Setup, Wanted};
    use tickwire_node::voice::{AtStart, Quiet, failure};

    fn load(path: &std::path::Path, wanted: Wanted) -> Result<Vec<Setup>, Failure> {
        settings::load(path, wanted, &AtStart).map_err(failure)
    }

    /// An engine that says nothing but warnings.
    fn quiet(setups: Vec<Setup>) -> Result<Engine, Failure> {
        Engine::new(setups, std::sync::Arc::new(Quiet)).map_err(failure)
    }

    fn driver(script: &str, name: &str) -> (Driver, Engine) {
        let dir = std::env::temp_dir().join(format!("tickwire-driver-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let config = dir.join("acceptor.cfg");
        std::fs::write(
            &config,
            "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=A\nTargetCompID=B\nSocketAcceptPort=0\nUseDataDictionary=N\n",
        )
        .unwrap();
        let engine = quiet(load(&config, Wanted::All).unwrap()).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let steps = script::parse(script).unwrap();
        (Driver::new(Source::Script("script".into()), steps, 1), engine)
    }

    /// An acceptor's script sent a message every 100 ms: between two of them the loop slept until something
    /// came.
    #[test]
    fn a_step_that_sends_is_followed_by_the_next_one_at_once() {
        let (mut driver, mut engine) = driver("disconnect\ndisconnect\ndisconnect\nwait 3\n", "again");
        let now = Nanos(1_000_000_000_000);
        for _ in 0..3 {
            assert_eq!(driver.turn(now, &mut engine).unwrap(), Flow::Again);
        }
        // And one that waits is looked at again when its time has come, not up to 100 ms later.
        let end = now.after(3 * Nanos::SECOND);
        assert_eq!(driver.turn(now, &mut engine).unwrap(), Flow::At(end));
        assert_eq!(driver.turn(end, &mut engine).unwrap(), Flow::End);
    }
}
