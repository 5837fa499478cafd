//! What a source does while its consumer waits: packets of a twin of its channel are played, and what the
//! next one will need of the channel itself is fetched.

use tickwire_book::prefetch;
use tickwire_feed::{Channel, Twin};
use tickwire_market::{InstrumentId, Nanos};
use tickwire_runtime::wait::WaitStrategy;

use super::Consumer;

/// Time to spare, which only a thread that never sleeps has, in turns that found no packet.
pub struct SpareTime {
    every_ns: u64,
    due: Nanos,
    turn: usize,
}

impl SpareTime {
    /// Every so many nanoseconds; `None` if that is 0, or if the thread sleeps.
    pub fn new(waits: WaitStrategy, every_ns: u64) -> Option<SpareTime> {
        (waits == WaitStrategy::Spin && every_ns > 0).then_some(SpareTime {
            every_ns,
            due: Nanos::ZERO,
            turn: 0,
        })
    }

    /// The number of the next time if it is due, counted from 1.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<usize> {
        if now < self.due {
            return None;
        }
        self.due = now.after(self.every_ns);
        self.turn = self.turn.wrapping_add(1);
        Some(self.turn)
    }
}

/// Of one source.
pub(super) struct Rehearsed<C> {
    /// The instrument of which packets are rehearsed.
    instrument: Option<InstrumentId>,
    twin: Option<Twin<C>>,
    /// It was to be played: where nobody has time to rehearse, none is made.
    is_missed: bool,
    /// The channel has none of this instrument.
    has_none: bool,
}

impl<C: Channel> Rehearsed<C> {
    /// Nothing yet.
    pub(super) fn nothing() -> Rehearsed<C> {
        Rehearsed {
            instrument: None,
            twin: None,
            is_missed: false,
            has_none: false,
        }
    }

    /// Off the way of a packet: asks the consumer what it wants rehearsed, and makes the twin if it was
    /// missed.
    pub(super) fn look<H: Consumer>(&mut self, channel: &C, hot: &H) {
        // Of a consumer whose events come through a table there is nothing to rehearse.
        let wanted = if H::IS_HOT { hot.rehearsed() } else { None };
        let instrument = wanted.map(|(instrument, _)| instrument);
        if instrument != self.instrument {
            (self.instrument, self.twin, self.has_none) = (instrument, None, false);
        }
        if self.twin.as_ref().is_none_or(Twin::is_over)
            && self.is_missed
            && !self.has_none
            && let Some((instrument, price)) = wanted
        {
            self.twin = channel.twin(instrument, price);
            self.has_none = self.twin.is_none();
        }
    }

    /// Plays a packet by which an offer enters, and one by which it leaves; `false` if there is no twin, or
    /// its numbers are used up.
    #[inline]
    pub(super) fn play<H: Consumer>(&mut self, now: Nanos, hot: &mut H) -> bool {
        // For nobody else are decoders compiled into one with what they are told to.
        if !H::IS_HOT {
            return false;
        }
        let is_played = self.twin.as_mut().is_some_and(|twin| twin.play(now, hot));
        self.is_missed |= !is_played;
        is_played
    }

    /// As [`fetch`], of what is rehearsed.
    pub(super) fn fetch(&self, channel: &C) {
        fetch(channel, self.instrument);
    }
}

/// Bytes of the stack that a packet's way to an order takes below the receive loop.
const STACK: usize = 4_096;

/// Has in the caches what the next packet will need of a channel, and what the next message of an instrument
/// will.
#[inline]
pub fn fetch<C: Channel>(channel: &C, instrument: Option<InstrumentId>) {
    prefetch::fetch_stack(STACK);
    prefetch::fetch_value(channel);
    if let Some(it) = instrument {
        channel.fetch(it);
    }
}

#[cfg(test)]
mod tests;
