//! The client of a Spin server: a snapshot of one unit's orders, joined to the live stream. PITCH 2.41.29,
//! "Spin Server".
//!
//! Live messages are held back by the handler from the moment it wants a snapshot. Every second the server
//! says up to which number an image reaches; the first image that reaches to what is held back is asked for.
//! Its orders and statuses come without numbers, and when it is finished the held messages behind it follow.
//! When the connection fails the handler goes on wanting a snapshot: connect again.

use super::session::{self, PitchLogin, Said, UnitSession};
use crate::SoupFailure;
use crate::decoder::Decoder;
use crate::framing::Framing;
use crate::{FeedHandler, SnapshotState};
use tickwire_market::{EventSink, Nanos, SeqNo};
use tickwire_wire_cboe::pitch::{
    self, AddOrderExpanded, AddOrderLong, AddOrderShort, Message, SpinRequest, SpinStatus,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::Pod;

/// What is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// An image that reaches far enough.
    Waiting,
    /// The answer to a request.
    Asked,
    /// Orders: so many have come, of so many.
    Loading { orders: u32, of: u32 },
}

/// A Spin session: the four verbs, pushing what it loads into a handler and its sink.
pub struct Spin {
    session: UnitSession,
    state: SnapshotState,
    step: Step,
    request: Option<u32>,
}

impl Spin {
    /// A session that is not connected. All memory it will ever use is taken here.
    pub fn new(login: PitchLogin) -> Spin {
        Spin {
            session: UnitSession::new(login),
            state: SnapshotState::Idle,
            step: Step::Waiting,
            request: None,
        }
    }

    /// A connection is there: logs in over it.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.session.handle_connected(now);
        (self.state, self.step, self.request) = (SnapshotState::Connecting, Step::Waiting, None);
    }

    /// The next bytes of the connection, at most [`crate::STREAM_CHUNK_MAX`]. Pushes what they hold.
    pub fn handle_bytes<F: Framing, D: Decoder>(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        feed: &mut FeedHandler<F, D>,
        sink: &mut dyn EventSink,
    ) {
        self.session.handle_bytes(now, bytes);
        let mut over = false;
        while let Some(said) = self.session.poll() {
            match said {
                Said::LoggedIn => {}
                Said::Failed(failure) => self.state = SnapshotState::Failed(failure),
                Said::Message(message) => {
                    let taken = take(now, message, &mut self.step, &mut self.request, feed, sink);
                    self.state = taken.unwrap_or(self.state);
                    over = matches!(self.state, SnapshotState::Done(_) | SnapshotState::Failed(_));
                }
            }
            if over {
                return self.session.close();
            }
        }
    }

    /// The connection is gone.
    pub fn handle_closed(&mut self) {
        self.session.handle_closed();
        self.take_failure();
    }

    /// Heartbeats, and patience running out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.session.handle_timeout(now);
        self.take_failure();
    }

    /// The next bytes to send, written into `buffer` of at least 30 bytes.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = match self.session.transmit(buffer) {
            Some(length) => length,
            None => {
                let request = SpinRequest {
                    sequence: self.request.take()?.into(),
                    ..SpinRequest::BLANK_MESSAGE
                };
                session::block(buffer, 0, 0, request.as_bytes())?
            }
        };
        buffer.get(..length)
    }

    /// When to call [`Spin::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.session.poll_timeout()
    }

    /// How far the snapshot is. [`SnapshotState::Connecting`] until an image is on its way.
    pub fn state(&self) -> SnapshotState {
        self.state
    }

    fn take_failure(&mut self) {
        if let Some(Said::Failed(failure)) = self.session.poll() {
            self.state = SnapshotState::Failed(failure);
        }
    }
}

/// Takes one message of the server; the new state if there is one.
fn take<F: Framing, D: Decoder>(
    now: Nanos,
    message: &[u8],
    step: &mut Step,
    request: &mut Option<u32>,
    feed: &mut FeedHandler<F, D>,
    sink: &mut dyn EventSink,
) -> Option<SnapshotState> {
    match (pitch::parse(message), *step) {
        (Ok(Message::SpinImageAvailable(image)), Step::Waiting) => {
            let next = following::<F, D>(image.sequence.get(), feed);
            if feed.is_reached_by(next) && feed.is_snapshot_plausible(next) {
                (*step, *request) = (Step::Asked, Some(image.sequence.get()));
            }
            None
        }
        (Ok(Message::SpinResponse(response)), Step::Asked) => {
            if response.status.0 != SpinStatus::Accepted as u8 {
                *step = Step::Waiting;
                return None;
            }
            feed.begin_snapshot(now, sink);
            *step = Step::Loading {
                orders: 0,
                of: response.order_count.get(),
            };
            Some(SnapshotState::Loading)
        }
        (Ok(Message::SpinFinished(end)), Step::Loading { orders, of }) => {
            if orders != of {
                let short = Malformed::OutOfRange { offset: 6 };
                return Some(SnapshotState::Failed(SoupFailure::Malformed(short)));
            }
            let next = following::<F, D>(end.sequence.get(), feed);
            feed.end_snapshot(now, next, sink);
            Some(SnapshotState::Done(next))
        }
        (Ok(Message::SpinImageAvailable(_) | Message::SpinResponse(_) | Message::SpinFinished(_)), _) => None,
        (_, Step::Loading { orders, of }) => {
            let adds = matches!(
                message.get(1),
                Some(&(AddOrderLong::KIND | AddOrderShort::KIND | AddOrderExpanded::KIND))
            );
            *step = Step::Loading {
                orders: orders.saturating_add(adds.into()),
                of,
            };
            feed.on_snapshot_message(now, message, sink);
            None
        }
        _ => None,
    }
}

/// The first live message behind an image.
fn following<F: Framing, D: Decoder>(image: u32, feed: &FeedHandler<F, D>) -> SeqNo {
    F::full_number(SeqNo(image.into()), feed.next_seq()).next()
}
