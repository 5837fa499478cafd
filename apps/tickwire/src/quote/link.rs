//! The connection to the venue: made, lost, and made again with waits that grow.
//!
//! A lost connection is no end: the venue has cancelled every quote (cancel on disconnect), market data goes on, and the session is taken up
//! where it was. Connecting waits for the peer, so a thread of its own does that. After `limits.reconnects_max` attempts that failed
//! the run ends.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tickwire_fix::{DisconnectReason, Event};
use tickwire_market::{Nanos, SeqNo};
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::wait::{Waiter, Watch};

use super::path::QuoteSession;
use crate::failure::Failure;
use crate::hot::OrderOut;
use crate::notes::Notes;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait between two.
const WAIT_MAX_NS: u64 = 5 * Nanos::SECOND;
/// A connection that lasted so long was one: attempts are counted anew.
const LASTING_NS: u64 = 5 * Nanos::SECOND;

/// Where quotes leave; nowhere while there is no connection.
pub(super) struct Entry(pub(super) Option<TcpStream>);

impl OrderOut for Entry {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Some(stream) => stream.send(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// See the module's description.
pub(super) struct Link {
    address: SocketAddr,
    attempts_max: u32,
    wait_ns: u64,
    watch: Option<Watch>,
    /// Since the connection last lasted.
    attempts: u32,
    up_since: Nanos,
    down: Option<Down>,
    /// We have logged out: its end is no loss.
    is_leaving: bool,
    notes: Notes,
}

/// There is no connection.
struct Down {
    why: String,
    due: Nanos,
    dialing: Option<Receiver<Result<TcpStream, String>>>,
}

impl Link {
    /// With a connection, which is watched.
    pub(super) fn new(
        address: SocketAddr,
        attempts_max: u32,
        wait_ns: u64,
        watch: Watch,
        now: Nanos,
        notes: Notes,
    ) -> Link {
        Link {
            address,
            attempts_max,
            wait_ns,
            watch: Some(watch),
            attempts: 0,
            up_since: now,
            down: None,
            is_leaving: false,
            notes,
        }
    }

    /// Tells the terminal.
    pub(super) fn say(&self, line: String) {
        self.notes.say(line);
    }

    /// We have logged out: the venue closes the connection, as it should.
    pub(super) fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether there is a connection.
    pub(super) fn is_up(&self) -> bool {
        self.down.is_none()
    }

    /// It is lost. [`Link::mend`] is to be called from time to time.
    pub(super) fn lost(&mut self, now: Nanos, why: String, waiter: &mut Waiter) {
        if let Some(watch) = self.watch.take() {
            waiter.forget(watch);
        }
        if now.since(self.up_since) > LASTING_NS {
            self.attempts = 0;
        }
        if !self.is_leaving {
            self.say(format!("{why}; every quote went with it"));
        }
        self.fail(now, why);
    }

    fn fail(&mut self, now: Nanos, why: String) {
        let wait = self.wait_ns << self.attempts.min(16);
        self.down = Some(Down {
            why,
            due: now.after(wait.min(WAIT_MAX_NS)),
            dialing: None,
        });
    }

    /// Tries to make a connection when that is due; the connection once there is one.
    ///
    /// # Errors
    /// It was tried as often as it may be.
    pub(super) fn mend(&mut self, now: Nanos, waiter: &mut Waiter) -> Result<Option<TcpStream>, Failure> {
        let Some(down) = &mut self.down else {
            return Ok(None);
        };
        let Some(dialing) = &down.dialing else {
            if now >= down.due {
                if self.attempts >= self.attempts_max {
                    return Err(Failure::peer_lost(format!(
                        "{}; {} attempts to take the session up again failed; every quote went with it",
                        down.why, self.attempts
                    )));
                }
                self.attempts += 1;
                down.dialing = Some(dial(self.address)?);
            }
            return Ok(None);
        };
        let why = match dialing.try_recv() {
            Ok(Ok(stream)) => {
                self.say(format!("connected again, attempt {}", self.attempts));
                self.watch = Some(waiter.watch(&stream));
                (self.down, self.up_since) = (None, now);
                return Ok(Some(stream));
            }
            Ok(Err(why)) => why,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => "the thread that connects ended".to_string(),
        };
        self.fail(now, why);
        Ok(None)
    }
}

fn dial(address: SocketAddr) -> Result<Receiver<Result<TcpStream, String>>, Failure> {
    let (done, dialing) = channel();
    std::thread::Builder::new()
        .name("connect".into())
        .spawn(move || done.send(TcpStream::connect(address, PATIENCE).map_err(|e| e.to_string())))
        .map_err(|e| Failure::system(format!("cannot start a thread that connects: {e}")))?;
    Ok(dialing)
}

/// The session before quoting begins. Nobody can be told yet what was traded, so that from the first message of the venue on nothing more
/// is taken: it waits, with what came behind it, for [`super::path::QuotePath::take_over`].
pub(super) struct Talk {
    pub(super) stream: TcpStream,
    pub(super) session: QuoteSession,
    /// The message that waits, and whether it was sent before.
    pub(super) pending: Option<(SeqNo, bool)>,
    /// Bytes behind it.
    pub(super) rest: Vec<u8>,
}

impl Talk {
    /// What there is to hear and to say.
    pub(super) fn go_on(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<(), Failure> {
        self.transmit()?;
        if self.pending.is_some() {
            return Ok(());
        }
        match self.stream.recv(buffer) {
            Ok(Received::Nothing) => {}
            Ok(Received::Bytes(bytes)) => {
                let mut rest: &[u8] = bytes;
                while !rest.is_empty() && self.pending.is_none() {
                    let taken = self.session.handle_bytes(now, rest);
                    rest = &rest[taken..];
                    let before = self.pending;
                    while let Some(event) = next_event(&mut self.session, &mut self.pending) {
                        if let Event::Disconnect { reason, text } = event {
                            let remedy = match reason {
                                DisconnectReason::SequenceTooLow => {
                                    "; if it was the venue, remove session.store from the folder quoter.state"
                                }
                                _ => "",
                            };
                            return Err(Failure::peer_lost(format!(
                                "the session with the venue ended before quoting began: {reason} {}{remedy}",
                                text.as_str()
                            )));
                        }
                    }
                    if taken == 0 && before == self.pending {
                        break;
                    }
                }
                self.rest.extend_from_slice(rest);
            }
            Ok(Received::Closed) => {
                return Err(Failure::peer_lost(
                    "the venue closed the connection before quoting began",
                ));
            }
            Err(e) => return Err(failed(&e)),
        }
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        self.transmit()
    }

    fn transmit(&mut self) -> Result<(), Failure> {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.stream.send(bytes).map_err(|e| failed(&e))?;
        }
        Ok(())
    }
}

/// The next event, up to the first message: asking for the one behind it would say that it was taken.
fn next_event(session: &mut QuoteSession, pending: &mut Option<(SeqNo, bool)>) -> Option<Event> {
    if pending.is_some() {
        return None;
    }
    let event = session.poll_event()?;
    if let Event::Message { seq, poss_dup, .. } = event {
        *pending = Some((seq, poss_dup));
    }
    Some(event)
}

fn failed(e: &io::Error) -> Failure {
    Failure::peer_lost(format!(
        "the connection to the venue failed before quoting began: {e}"
    ))
}
