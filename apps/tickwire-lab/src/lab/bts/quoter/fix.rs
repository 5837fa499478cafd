//! The FIX side of what is measured: mass quotes out, acknowledgements in.

use std::sync::atomic::{AtomicBool, Ordering};

use tickwire_console::failure::Failure;
use tickwire_fix::{Event, MassQuoteHead, MassQuoteTemplate, QuoteAnswer, read_quote_answer};
use tickwire_market::Side;
use tickwire_node::hot::OrderOut;
use tickwire_node::link::Entry;
use tickwire_quoterd::QuoteSession;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::spsc::{Consumer, Producer};
use tickwire_runtime::tcp::Received;

use super::sockets::lost;
use super::{Said, Stamped, Took, Wanted};

/// The FIX thread.
pub(super) struct Fix {
    pub(super) session: QuoteSession,
    pub(super) template: MassQuoteTemplate,
    pub(super) stream: Stamped<Entry>,
    pub(super) clock: Clock,
    pub(super) named: Vec<u16>,
    pub(super) took: Vec<Took>,
    pub(super) messages: u64,
    pub(super) problems: Vec<String>,
}

impl Fix {
    fn transmit(&mut self) -> Result<(), Failure> {
        let mut chunk = [0; 4_096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.stream.out.send(bytes).map_err(lost)?;
        }
        Ok(())
    }

    pub(super) fn run(
        mut self,
        mut wants: Consumer<Wanted>,
        mut said: Producer<Said>,
        ends: &AtomicBool,
    ) -> Result<Fix, Failure> {
        self.session.handle_connected(self.clock.now());
        self.transmit()?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut any = false;
            while let Some(wanted) = wants.pop() {
                any = true;
                self.send(&wanted)?;
            }
            match self.stream.out.recv(&mut buffer).map_err(lost)? {
                Received::Bytes(bytes) => {
                    any = true;
                    let bytes: &[u8] = bytes;
                    self.hear(bytes, &mut said)?;
                }
                Received::Nothing => {}
                Received::Closed => return Ok(self),
            }
            if !any {
                if ends.load(Ordering::Acquire) {
                    return Ok(self);
                }
                std::thread::yield_now();
            }
        }
    }

    #[inline]
    fn send(&mut self, wanted: &Wanted) -> Result<(), Failure> {
        let head = MassQuoteHead {
            id: wanted.id,
            cause: wanted.cause,
            reset: wanted.reset,
        };
        let entries = &wanted.entries[..usize::from(wanted.len)];
        let now = self.clock.now();
        let encoded = self.template.send(&mut self.session, now, &head, entries);
        let bytes = encoded.map_err(|e| Failure::system(format!("a mass quote cannot be sent: {e:?}")))?;
        self.stream.stamp();
        self.stream.out.send(bytes).map_err(lost)?;
        self.messages += 1;
        if wanted.is_late {
            return Ok(());
        }
        let (seq, last) = (wanted.cause.seq.0, self.stream.last);
        match self.took.last_mut() {
            Some(took) if took.seq == seq => {
                took.last = last;
                took.messages += 1;
            }
            _ => self.took.push(Took {
                seq,
                from: 0,
                first: last,
                last,
                messages: 1,
                entries: None,
            }),
        }
        Ok(())
    }

    fn hear(&mut self, mut bytes: &[u8], said: &mut Producer<Said>) -> Result<(), Failure> {
        let now = self.clock.now();
        while !bytes.is_empty() {
            let taken = self.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            while let Some(event) = self.session.poll_event() {
                let answer = match event {
                    Event::LoggedOn { .. } => Some(Said::LoggedOn),
                    Event::Message { .. } => self.answer(),
                    Event::Disconnect { reason, .. } => {
                        self.problems.push(format!("the session ended: {reason}"));
                        None
                    }
                    _ => None,
                };
                if let Some(answer) = answer
                    && said.push(answer).is_err()
                {
                    self.problems
                        .push("the quoting thread does not take answers".into());
                }
            }
            if taken == 0 {
                break;
            }
        }
        self.transmit()
    }

    fn answer(&mut self) -> Option<Said> {
        let message = self.session.message()?;
        match read_quote_answer(&message, &mut self.named) {
            Ok(Some(QuoteAnswer::Answered { id, is_rejected })) => Some(match is_rejected {
                false => Said::Accepted(id),
                true => Said::Refused(id),
            }),
            other => {
                self.problems.push(format!("an answer that is none: {other:?}"));
                None
            }
        }
    }
}

/// Bid and offer of a side, for messages.
pub(in crate::lab::bts) fn side_name(side: usize) -> &'static str {
    if side == Side::Bid as usize {
        "bid"
    } else {
        "offer"
    }
}
