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
    /// Writes the datagram of this number, counted from 1: by those of odd numbers an offer enters, by those
    /// of even ones it leaves. Nobody hears the first two, which may say what the instrument is. How long it
    /// is; one that is longer than the buffer is empty.
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize;
}

/// The number of the order that enters and leaves by a datagram of this number and its neighbour: far above
/// those of the few orders that stand in a rehearsed book.
pub const fn offer_id(datagram: u32) -> u64 {
    (1 << 20) + datagram.div_ceil(2) as u64
}

/// A channel of the same kind as another one, with a session of its own in which one instrument is traded, of
/// the same number as there. It knows no line and no server: nothing of the other one's is touched.
pub struct Twin<C> {
    channel: C,
    offers: Box<dyn Offers>,
    /// How many datagrams it was sent, and after how many its session is over.
    sent: u32,
    last: u32,
    buffer: [u8; DATAGRAM_MAX],
}

/// Nobody hears what a channel says when it begins.
struct Nobody;

impl EventSink for Nobody {
    fn on_event(&mut self, _: &MarketEvent) {}
}

impl<C: Channel> Twin<C> {
    /// A channel that has seen nothing, and what it will be sent: 2^32 - 2 datagrams, as most venues' numbers
    /// have 32 bits.
    pub fn new(channel: C, offers: impl Offers + 'static) -> Twin<C> {
        let mut twin = Twin {
            channel,
            offers: Box::new(offers),
            sent: 0,
            last: u32::MAX - 1,
            buffer: [0; DATAGRAM_MAX],
        };
        for _ in 0..2 {
            let bytes = write_next(&mut *twin.offers, &mut twin.sent, &mut twin.buffer);
            twin.channel
                .on_datagram_dyn(Nanos::ZERO, Port::Live, Line::A, bytes, &mut Nobody);
        }
        twin
    }

    /// The same, sent no more datagrams than this.
    pub fn ending_after(self, datagrams: u32) -> Twin<C> {
        Twin {
            last: datagrams.min(self.last),
            ..self
        }
    }

    /// An offer enters and leaves again: what its channel says of that, and no more, goes to the sink.
    /// `false`, and nothing is said, once the numbers of its session are used up: another twin can be made.
    #[inline]
    pub fn play<S: EventSink>(&mut self, now: Nanos, sink: &mut S) -> bool {
        if self.is_over() {
            return false;
        }
        for _ in 0..2 {
            let bytes = write_next(&mut *self.offers, &mut self.sent, &mut self.buffer);
            self.channel.on_datagram(now, Port::Live, Line::A, bytes, sink);
        }
        true
    }

    /// Whether the numbers of its session are used up.
    pub fn is_over(&self) -> bool {
        self.last.saturating_sub(self.sent) < 2
    }

    /// The channel.
    pub fn channel(&self) -> &C {
        &self.channel
    }
}

#[inline]
fn write_next<'b>(offers: &mut dyn Offers, sent: &mut u32, buffer: &'b mut [u8]) -> &'b [u8] {
    *sent += 1;
    let length = offers.write(*sent, buffer);
    buffer.get(..length).unwrap_or_default()
}
