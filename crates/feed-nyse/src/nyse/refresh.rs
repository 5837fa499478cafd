//! What refreshes of XDP and OpenBook Ultra have in common: which books have come, what to ask for next, when
//! it is enough.
//!
//! Live messages are held back by the handler from the moment it wants a snapshot. Everybody's refreshes come
//! on one group: of the whole channel, one book after the other, or of single instruments. Every book that
//! comes whole counts, whoever asked for it. It is enough when every instrument wanted has come and the
//! directory is known to be complete: because the feed had followed the session from its first message on, or
//! because a refresh of the whole channel came without a hole. One book alone is taken for a whole channel
//! only when nothing else comes twice: a refresh of a single instrument, which somebody else may have asked
//! for, looks the same. What is still missing after a refresh is asked for by instrument.
//!
//! While the feed is live, refreshes make instruments right that were subscribed to in mid-session: each is
//! asked for once, or the whole channel where they are many; whatever comes of them, whoever asked, is taken.
//! Those that have not come after the patience are asked for again, and the patience doubles, up to 64 times,
//! until one comes.

use super::NyseDecoder;
use crate::{FeedHandler, FeedState, Filter, Framing};
use alloc::{boxed::Box, vec};
use tickwire_market::{EventSink, InstrumentId, Nanos, SeqNo};

/// How far a refresh is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefreshState {
    /// Nobody wants it.
    Idle,
    /// It was asked for.
    Asked,
    /// Its packets come: instruments so far.
    Loading(u32),
    /// Complete; the feed went on from this message.
    Done(SeqNo),
    /// Packets were lost, or it was not the whole channel's: ask again.
    Failed,
}

/// At most so many instruments are asked for one by one.
const SINGLES_MAX: usize = 16;
/// How often the patience with instruments that join doubles.
const JOIN_DOUBLINGS_MAX: u32 = 6;

/// See the module's description. All memory is taken at construction.
pub(crate) struct Collector {
    pub(crate) state: RefreshState,
    patience_ns: u64,
    since: Nanos,
    /// The number after the latest message known to exist when the first refresh was asked for: every refresh
    /// holds what was before.
    pub(crate) asked_at: SeqNo,
    /// A bit for every book that has come.
    loaded: Box<[u64]>,
    count: u32,
    /// The directory holds every instrument of the channel.
    is_whole: bool,
    /// A refresh that was followed from its first packet on without a hole: books so far.
    pass: Option<u32>,
    /// The one book of the last such refresh.
    alone: Option<InstrumentId>,
    singles: [u32; SINGLES_MAX],
    singles_left: usize,
    /// Instruments were asked for one by one, and not all have come.
    asks_singles: bool,
    /// Instruments that join: when one was asked for or came last, and how often in vain since.
    joins_since: Nanos,
    joins_tries: u32,
}

impl Collector {
    /// Nothing yet, of instruments numbered below `instruments_max`.
    pub(crate) fn new(patience_ns: u64, instruments_max: usize) -> Collector {
        Collector {
            state: RefreshState::Idle,
            patience_ns,
            since: Nanos::ZERO,
            asked_at: SeqNo(1),
            loaded: vec![0; instruments_max.div_ceil(64)].into(),
            count: 0,
            is_whole: false,
            pass: None,
            alone: None,
            singles: [0; SINGLES_MAX],
            singles_left: 0,
            asks_singles: false,
            joins_since: Nanos::ZERO,
            joins_tries: 0,
        }
    }

    /// What to ask for now: an instrument, or 0 for the whole channel.
    pub(crate) fn poll_ask<F: Framing, D: NyseDecoder>(
        &mut self,
        now: Nanos,
        feed: &FeedHandler<F, D>,
    ) -> Option<u32> {
        if self.singles_left > 0 {
            self.singles_left -= 1;
            return Some(self.singles[self.singles_left]);
        }
        if self.poll_timeout().is_some_and(|due| due > now) {
            return None;
        }
        let is_too_soon = !feed.gate().is_open();
        let goes_on = !matches!(self.state, RefreshState::Idle | RefreshState::Done(_));
        if goes_on && self.is_whole && self.count > 0 {
            self.list_missing(feed);
        }
        if self.singles_left == 0 && is_too_soon {
            // The whole channel was asked for a moment ago.
            return None;
        }
        if self.count == 0 {
            self.asked_at = feed.arbiter().latest();
        }
        (self.state, self.since) = (RefreshState::Asked, now);
        self.asks_singles = self.singles_left > 0;
        match self.singles_left.checked_sub(1) {
            Some(left) => {
                self.singles_left = left;
                Some(self.singles[left])
            }
            None => Some(0),
        }
    }

    /// What to ask for now, for instruments that join while the feed wants no snapshot: an instrument, or 0
    /// for the whole channel; and whether nothing has come since the last time.
    pub(crate) fn poll_join<F: Framing, D: NyseDecoder>(
        &mut self,
        now: Nanos,
        feed: &mut FeedHandler<F, D>,
    ) -> Option<(u32, bool)> {
        if !matches!(self.state, RefreshState::Idle | RefreshState::Done(_)) {
            // The venue began anew meanwhile.
            self.clear();
            self.state = RefreshState::Idle;
        }
        let due = self.joins_due();
        let joins = &mut feed.decoder_mut().filter_mut().joins;
        if joins.is_empty() {
            self.joins_tries = 0;
            return None;
        }
        let is_silent = due <= now;
        if joins.counts().1 == 0 && is_silent {
            joins.tally.failed += u64::from(joins.counts().0);
            joins.set_asked(false);
            self.joins_tries = (self.joins_tries + 1).min(JOIN_DOUBLINGS_MAX);
        }
        let asked = match joins.counts().1 as usize {
            0 => return None,
            1..=SINGLES_MAX => joins.ask()?.0,
            _ => {
                joins.set_asked(true);
                0
            }
        };
        self.joins_since = now;
        Some((asked, is_silent))
    }

    /// An instrument that joined is right.
    pub(crate) fn joined(&mut self, now: Nanos) {
        (self.joins_since, self.joins_tries) = (now, 0);
    }

    /// When those that join are asked for again.
    fn joins_due(&self) -> Nanos {
        self.joins_since.after(self.patience_ns << self.joins_tries)
    }

    /// When to call [`Collector::poll_join`] again.
    pub(crate) fn poll_join_timeout(&self, filter: &Filter) -> Option<Nanos> {
        match filter.joins.counts() {
            (0, _) => None,
            (_, 0) => Some(self.joins_due()),
            _ => Some(Nanos::ZERO),
        }
    }

    /// When to call [`Collector::poll_ask`] again.
    pub(crate) fn poll_timeout(&self) -> Option<Nanos> {
        match self.state {
            RefreshState::Asked | RefreshState::Loading(_) => Some(self.since.after(self.patience_ns)),
            _ => None,
        }
    }

    /// A packet of a refresh has come in its turn and will be taken; `begins` a refresh. The books are
    /// emptied before the first one.
    pub(crate) fn take<F: Framing, D: NyseDecoder>(
        &mut self,
        now: Nanos,
        begins: bool,
        feed: &mut FeedHandler<F, D>,
        sink: &mut dyn EventSink,
    ) {
        if !matches!(self.state, RefreshState::Loading(_)) && self.count == 0 {
            self.is_whole = feed.state() == FeedState::Stale;
            (self.pass, self.alone) = (None, None);
            feed.begin_snapshot(now, sink);
            feed.decoder_mut().begin_refresh();
        }
        if begins {
            self.pass = Some(0);
        }
        self.since = now;
        self.state = RefreshState::Loading(self.count);
    }

    /// A packet of the refresh under way is lost.
    pub(crate) fn lose(&mut self) {
        self.pass = None;
    }

    /// A book has come whole.
    pub(crate) fn loaded(&mut self, id: InstrumentId) {
        let Some(word) = self.loaded.get_mut(id.index() / 64) else {
            return;
        };
        let bit = 1 << (id.index() % 64);
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
        self.state = RefreshState::Loading(self.count);
        if let Some(books) = &mut self.pass {
            *books += 1;
            if *books == 2 || self.alone.is_some_and(|alone| alone != id) {
                self.alone = None;
            }
        }
    }

    /// The last packet of a refresh was taken, whose last book was this one. Whether it is enough.
    pub(crate) fn ends<F: Framing, D: NyseDecoder>(
        &mut self,
        last: Option<InstrumentId>,
        feed: &FeedHandler<F, D>,
    ) -> bool {
        match self.pass.take() {
            Some(0) | None => {}
            Some(1) if self.alone.is_none() => self.alone = last,
            Some(1) => self.is_whole |= feed.filter().instruments().nth(1).is_none(),
            Some(_) => self.is_whole = true,
        }
        let mut wanted = feed.filter().wanted();
        if self.is_whole && wanted.all(|i| self.has(i.id)) {
            return true;
        }
        // More of what was asked for one by one may be on its way.
        if !self.asks_singles {
            self.state = RefreshState::Failed;
        }
        false
    }

    /// The feed goes on from `next`.
    pub(crate) fn finish(&mut self, next: SeqNo) {
        self.clear();
        self.state = RefreshState::Done(next);
    }

    fn clear(&mut self) {
        self.loaded.fill(0);
        (self.count, self.singles_left) = (0, 0);
        (self.pass, self.alone) = (None, None);
    }

    fn has(&self, id: InstrumentId) -> bool {
        let word = self.loaded.get(id.index() / 64);
        word.is_some_and(|word| word >> (id.index() % 64) & 1 != 0)
    }

    /// Lists the instruments that have not come, unless they are many.
    fn list_missing<F: Framing, D: NyseDecoder>(&mut self, feed: &FeedHandler<F, D>) {
        let mut listed = 0;
        for instrument in feed.filter().wanted() {
            if self.has(instrument.id) {
                continue;
            }
            match self.singles.get_mut(listed) {
                Some(single) => *single = instrument.id.0,
                None => return,
            }
            listed += 1;
        }
        self.singles_left = listed;
    }
}
