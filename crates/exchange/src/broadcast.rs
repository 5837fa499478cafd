//! Every channel that the venue publishes, as one [`Tape`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use tickwire_market::{InstrumentId, Qty, TradingStatus};
use tickwire_persist::{Bytes, Damaged, Persist, StateReader, persist};

use crate::order::{Broken, Cross, CrossFill, Execution, Indication, Listener, Order};
use crate::tape::{Listing, VenueTime};
use crate::tape::{Milestone, Publisher, Tape};

/// A channel and the instruments that it carries, by number.
pub struct PublishedChannel {
    /// The channel.
    pub publisher: Box<dyn Publisher>,
    /// What it hears of.
    pub instruments: Range<u32>,
}

/// Hears everything and passes it to whom it concerns.
pub struct Broadcast {
    published_channels: Vec<PublishedChannel>,
    now: VenueTime,
    /// Nobody asks for it: `None`.
    trail: Option<Trail>,
}

/// The instruments whose books have changed since they were asked for, each once.
struct Trail {
    /// By instrument number.
    is_listed: Vec<bool>,
    changed: Vec<InstrumentId>,
}

impl Trail {
    fn note(&mut self, instrument: InstrumentId) {
        if let Some(is_listed) = self.is_listed.get_mut(instrument.index())
            && !core::mem::replace(is_listed, true)
        {
            self.changed.push(instrument);
        }
    }
}

impl Broadcast {
    pub(crate) fn new(published_channels: Vec<PublishedChannel>) -> Broadcast {
        Broadcast {
            published_channels,
            now: 0,
            trail: None,
        }
    }

    /// Keeps from now on which of the instruments 1 to `count` change.
    pub(crate) fn follow_changes(&mut self, count: usize) {
        self.trail = Some(Trail {
            is_listed: alloc::vec![false; count + 1],
            changed: Vec::with_capacity(count),
        });
    }

    /// An instrument whose book has changed.
    pub(crate) fn poll_changed(&mut self) -> Option<InstrumentId> {
        let trail = self.trail.as_mut()?;
        let instrument = trail.changed.pop()?;
        trail.is_listed[instrument.index()] = false;
        Some(instrument)
    }

    pub(crate) fn published_channels(&self) -> &[PublishedChannel] {
        &self.published_channels
    }

    pub(crate) fn published_channels_mut(&mut self) -> &mut [PublishedChannel] {
        &mut self.published_channels
    }

    /// The channels that carry an instrument whose book changes; their clocks are set.
    fn carriers(&mut self, instrument: InstrumentId) -> impl Iterator<Item = &mut Box<dyn Publisher>> {
        if let Some(trail) = &mut self.trail {
            trail.note(instrument);
        }
        self.carriers_of_news(instrument)
    }

    /// Likewise, of news that is not about the book.
    fn carriers_of_news(
        &mut self,
        instrument: InstrumentId,
    ) -> impl Iterator<Item = &mut Box<dyn Publisher>> {
        let now = self.now;
        let carries = move |published_channel: &&mut PublishedChannel| {
            published_channel.instruments.contains(&instrument.0)
        };
        self.published_channels
            .iter_mut()
            .filter(carries)
            .map(move |published_channel| {
                published_channel.publisher.set_time(now);
                &mut published_channel.publisher
            })
    }
}

impl Tape for Broadcast {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(at);
    }

    fn milestone(&mut self, milestone: Milestone) {
        for published_channel in &mut self.published_channels {
            published_channel.publisher.set_time(self.now);
            published_channel.publisher.milestone(milestone);
        }
    }

    fn define(&mut self, listing: &Listing) {
        self.carriers(listing.id).for_each(|p| p.define(listing));
    }

    fn total(&self) -> u64 {
        self.published_channels
            .iter()
            .map(|published_channel| published_channel.publisher.total())
            .sum()
    }
}

impl Listener for Broadcast {
    fn accepted(&mut self, order: &Order) {
        self.carriers(order.instrument).for_each(|p| p.accepted(order));
    }
    fn rested(&mut self, order: &Order) {
        self.carriers(order.instrument).for_each(|p| p.rested(order));
    }
    fn executed(&mut self, execution: &Execution) {
        self.carriers(execution.maker.instrument)
            .for_each(|p| p.executed(execution));
    }
    fn cross_filled(&mut self, fill: &CrossFill) {
        self.carriers(fill.order.instrument)
            .for_each(|p| p.cross_filled(fill));
    }
    fn broken(&mut self, broken: &Broken) {
        self.carriers_of_news(broken.instrument)
            .for_each(|p| p.broken(broken));
    }
    fn reduced(&mut self, order: &Order, by: Qty) {
        self.carriers(order.instrument).for_each(|p| p.reduced(order, by));
    }
    fn deleted(&mut self, order: &Order) {
        self.carriers(order.instrument).for_each(|p| p.deleted(order));
    }
    fn expired(&mut self, order: &Order) {
        self.carriers(order.instrument).for_each(|p| p.expired(order));
    }
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.carriers(old.instrument)
            .for_each(|p| p.replaced(old, new, rests));
    }
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        self.carriers(instrument)
            .for_each(|p| p.status(instrument, status));
    }
    fn crossed(&mut self, cross: &Cross) {
        self.carriers(cross.instrument).for_each(|p| p.crossed(cross));
    }
    fn indicated(&mut self, indication: &Indication) {
        self.carriers(indication.instrument)
            .for_each(|p| p.indicated(indication));
    }
    fn completed(&mut self, instrument: InstrumentId) {
        self.carriers(instrument).for_each(|p| p.completed(instrument));
    }
}

persist!(struct Trail { is_listed, changed });

impl Persist for PublishedChannel {
    fn save(&self, out: &mut Bytes) {
        self.publisher.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.publisher.load(from)
    }
}

persist!(struct Broadcast { now } each { published_channels, trail });
