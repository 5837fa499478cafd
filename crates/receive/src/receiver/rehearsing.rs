//! What a source does while its consumer waits: packets of a twin of its channel are played, and what the
//! next one will need of the channel itself is fetched.

use std::hint::black_box;

use tickwire_book::prefetch;
use tickwire_feed::{Channel, Twin};
use tickwire_market::{InstrumentId, Nanos};

use super::Consumer;

/// Of one source.
pub(super) struct Rehearsed<C> {
    /// The instrument of which packets are rehearsed.
    instrument: Option<InstrumentId>,
    twin: Option<Twin<C>>,
    /// It was to be played: where nobody has time to rehearse, none is made.
    is_missed: bool,
}

impl<C: Channel> Rehearsed<C> {
    /// Nothing yet.
    pub(super) fn nothing() -> Rehearsed<C> {
        Rehearsed {
            instrument: None,
            twin: None,
            is_missed: false,
        }
    }

    /// Off the way of a packet: asks the consumer what it wants rehearsed, and makes the twin if it was
    /// missed.
    pub(super) fn look<H: Consumer>(&mut self, channel: &C, hot: &H) {
        // Of a consumer whose events come through a table there is nothing to rehearse.
        let wanted = if H::IS_HOT { hot.rehearsed() } else { None };
        let instrument = wanted.map(|(instrument, _)| instrument);
        if instrument != self.instrument {
            (self.instrument, self.twin) = (instrument, None);
        }
        if self.twin.is_none()
            && self.is_missed
            && let Some((instrument, price)) = wanted
        {
            self.twin = channel.twin(instrument, price);
        }
    }

    /// Plays a packet by which an offer enters, and one by which it leaves; `false` if there is no twin.
    #[inline]
    pub(super) fn play<H: Consumer>(&mut self, now: Nanos, hot: &mut H) -> bool {
        // For nobody else are decoders compiled into one with what they are told to.
        match H::IS_HOT {
            true => {
                match &mut self.twin {
                    Some(twin) => twin.play(now, hot),
                    None => self.is_missed = true,
                }
                self.twin.is_some()
            }
            false => false,
        }
    }

    /// As [`fetch`], of what is rehearsed.
    pub(super) fn fetch(&self, channel: &C) {
        fetch(channel, self.instrument);
    }
}

/// Has in the caches what the next packet will need of a channel, and what the next message of an instrument
/// will.
#[inline]
pub fn fetch<C: Channel>(channel: &C, instrument: Option<InstrumentId>) {
    prefetch::fetch_value(channel);
    if let Some(it) = instrument {
        // Reading them is what fetches them.
        black_box((
            channel.wants(it),
            channel.seen_of_instrument(it),
            channel.instrument(it).map(|entry| entry.symbol),
        ));
    }
}
