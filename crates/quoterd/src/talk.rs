//! The session with the venue before quoting begins.

use std::io;

use tickwire_fix::{DisconnectReason, Event};
use tickwire_market::{Nanos, SeqNo};
use tickwire_runtime::tcp::{Received, TcpStream};

use super::path::QuoteSession;
use tickwire_console::failure::Failure;

/// The session before quoting begins. Nobody can be told yet what was traded, so that from the first message
/// of the venue on nothing more is taken: it waits, with what came behind it, for
/// [`super::path::QuotePath::take_over`].
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
