//! The client of GLIMPSE 5.0: a snapshot of all books over SoupBinTCP, joined to the live stream.
//!
//! Live messages are held back by the handler from the moment it wants a snapshot. The server sends the
//! directory, every displayed order as an add, and at last the number of the first live message to apply;
//! from there the held messages follow. When the connection fails the handler goes on wanting a snapshot:
//! connect again.

use crate::FeedHandler;
use crate::decoder::Decoder;
use crate::framing::Framing;
use crate::soup::{SoupClient, SoupConfig, SoupEvent};
use crate::{SnapshotState, SoupFailure};
use tickwire_market::{EventSink, Nanos, SeqNo};
use tickwire_wire_core::Malformed;
use tickwire_wire_nasdaq::itch50::{self, EndOfSnapshot, Message};

/// A GLIMPSE session: the four verbs, pushing what it loads into a handler and its sink.
pub struct Glimpse {
    soup: SoupClient,
    state: SnapshotState,
}

impl Glimpse {
    /// A session that is not connected. GLIMPSE wants `sequence` 1 and a blank `session`, the defaults.
    pub fn new(config: SoupConfig) -> Glimpse {
        Glimpse {
            soup: SoupClient::new(config),
            state: SnapshotState::Idle,
        }
    }

    /// A connection is there: logs in over it.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.soup.handle_connected(now);
        self.state = SnapshotState::Connecting;
    }

    /// The next bytes of the connection, at most [`crate::STREAM_CHUNK_MAX`]. Pushes what they hold.
    pub fn handle_bytes<F: Framing, D: Decoder>(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        feed: &mut FeedHandler<F, D>,
        sink: &mut dyn EventSink,
    ) {
        self.soup.handle_bytes(now, bytes);
        while let Some(event) = self.soup.poll_event() {
            self.state = match event {
                SoupEvent::LoggedIn { .. } => {
                    feed.begin_snapshot(now, sink);
                    SnapshotState::Loading
                }
                SoupEvent::Message { bytes: message, .. }
                    if message.first() == Some(&EndOfSnapshot::KIND) =>
                {
                    let state = finish(now, message, feed, sink);
                    self.soup.log_out();
                    state
                }
                SoupEvent::Message { bytes: message, .. } => {
                    feed.on_snapshot_message(now, message, sink);
                    SnapshotState::Loading
                }
                SoupEvent::Unsequenced(_) => self.state,
                SoupEvent::EndOfSession => SnapshotState::Failed(SoupFailure::Closed),
                SoupEvent::Failed(failure) => SnapshotState::Failed(failure),
            };
        }
    }

    /// The connection is gone.
    pub fn handle_closed(&mut self) {
        self.soup.handle_closed();
        self.take_failure();
    }

    /// Heartbeats, and patience running out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.soup.handle_timeout(now);
        self.take_failure();
    }

    /// The next bytes to send, written into `buffer` of at least 49 bytes.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.soup.poll_transmit(buffer)
    }

    /// When to call [`Glimpse::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.soup.poll_timeout()
    }

    /// How far the snapshot is.
    pub fn state(&self) -> SnapshotState {
        self.state
    }

    fn take_failure(&mut self) {
        if let Some(SoupEvent::Failed(failure)) = self.soup.poll_event() {
            self.state = SnapshotState::Failed(failure);
        }
    }
}

/// Hands the live stream back to the feed.
fn finish<F: Framing, D: Decoder>(
    now: Nanos,
    message: &[u8],
    feed: &mut FeedHandler<F, D>,
    sink: &mut dyn EventSink,
) -> SnapshotState {
    let next = match itch50::parse(message) {
        Ok(Message::EndOfSnapshot(end)) => end
            .sequence
            .get()
            .filter(|&next| feed.is_snapshot_plausible(SeqNo(next))),
        _ => None,
    };
    match next {
        Some(next) => {
            feed.end_snapshot(now, SeqNo(next), sink);
            SnapshotState::Done(SeqNo(next))
        }
        None => SnapshotState::Failed(SoupFailure::Malformed(Malformed::OutOfRange { offset: 1 })),
    }
}
