//! A channel of UQDF: MoldUDP64, requests by datagram. There is no snapshot: what nobody sends again is lost,
//! and each book is stale until a message says both sides of its national best.

use super::UqdfFeed;
use crate::{Channel, Line};
use tickwire_market::{EventSink, Nanos, Port};

/// See the module's description.
pub struct UqdfChannel {
    feed: UqdfFeed,
}

impl UqdfChannel {
    /// A channel that has seen nothing. Its arbiter is to be told of no snapshot.
    pub fn new(feed: UqdfFeed) -> UqdfChannel {
        UqdfChannel { feed }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &UqdfFeed {
        &self.feed
    }

    /// The feed behind it: subscriptions.
    pub fn feed_mut(&mut self) -> &mut UqdfFeed {
        &mut self.feed
    }

    /// Whoever has given up messages goes on without them, instrument by instrument.
    #[cold]
    fn go_on(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        let next = self.feed.next_seq();
        self.feed.decoder_mut().lose(next, now, sink);
        self.feed.accept_loss(now, sink);
    }
}

impl Channel for UqdfChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let line = if port == Port::Live {
            line
        } else {
            Line::Retransmit
        };
        self.feed.on_packet(now, line, bytes, sink);
        if self.feed.arbiter().has_lost() {
            self.go_on(now, sink);
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
        if self.feed.arbiter().has_lost() {
            self.go_on(now, sink);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        self.feed.poll_timeout()
    }

    #[inline]
    fn poll_request<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.feed.poll_transmit(buffer)
    }

    tickwire_feed_core::answers_from_feed!();
}
