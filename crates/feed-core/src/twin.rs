//! A channel beside one that is received, for rehearsals: a thread that waits for a packet takes one of its
//! own along the way that the next one will go, so that the code of the way, and what it has learned of
//! branches, lies in the caches.

use crate::{Channel, Line};
use alloc::boxed::Box;
use tickwire_market::{EventSink, MarketEvent, Nanos, Port};

/// The longest datagram of a twin.
const DATAGRAM_MAX: usize = 256;

/// What an exchange would send of one instrument, one datagram after the other: an offer enters, and leaves.
pub trait Offers: Send {
    /// Writes the next datagram; how long it is.
    fn next(&mut self, buffer: &mut [u8]) -> usize;
}

/// A channel of the same kind as another one, with a session of its own in which one instrument is traded, of
/// the same number as there. It knows no line and no server: nothing of the other one's is touched.
pub struct Twin<C> {
    channel: C,
    offers: Box<dyn Offers>,
    buffer: [u8; DATAGRAM_MAX],
}

/// Nobody hears what a channel says when it begins.
struct Nobody;

impl EventSink for Nobody {
    fn on_event(&mut self, _: &MarketEvent) {}
}

impl<C: Channel> Twin<C> {
    /// A channel that has seen nothing, and what it will be sent.
    pub fn new(channel: C, offers: impl Offers + 'static) -> Twin<C> {
        let mut twin = Twin {
            channel,
            offers: Box::new(offers),
            buffer: [0; DATAGRAM_MAX],
        };
        for _ in 0..2 {
            let length = twin.offers.next(&mut twin.buffer);
            let (bytes, to) = (&twin.buffer[..length], &mut Nobody);
            twin.channel
                .on_datagram_dyn(Nanos::ZERO, Port::Live, Line::A, bytes, to);
        }
        twin
    }

    /// An offer enters and leaves again: what its channel says of that, and no more, goes to the sink.
    #[inline]
    pub fn play<S: EventSink>(&mut self, now: Nanos, sink: &mut S) {
        for _ in 0..2 {
            let length = self.offers.next(&mut self.buffer);
            self.channel
                .on_datagram(now, Port::Live, Line::A, &self.buffer[..length], sink);
        }
    }

    /// The channel.
    pub fn channel(&self) -> &C {
        &self.channel
    }
}
