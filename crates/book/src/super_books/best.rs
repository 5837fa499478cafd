//! Which source is best at a level, and whether sources agree: what a consolidated book is for.

use tickwire_market::{BookState, MarketEvent, Nanos, Price, Side, TradingStatus};

use crate::books::worse;
use crate::price_of;

use super::{
    Member, Moment, SourceState, SuperBooks, SuperSink, Touched, ladder::Kept, update::Difference,
    update::FeedMask, update::Market, update::Mover, update::Presence, update::SourceId, update::SuperError,
    update::SuperFlags, update::SuperId, update::SuperLevel, update::SuperTotals, update::SuperUpdate, view,
    view::SuperRef,
};

impl SuperBooks {
    /// Brings a symbol's masks in line with what is known of a member, and the best with the masks.
    pub(super) fn settle<S: SuperSink>(
        &mut self,
        moment: &Moment,
        index: usize,
        touched: Touched,
        sink: &mut S,
    ) {
        let (member, mut touched) = (&self.members[index], touched);
        let (symbol, bit) = (member.symbol as usize, FeedMask::one(member.feed));
        let is_away = self.presence(member) != Presence::Live;
        let is_idle = !trades(self.status(member));
        let merged = &mut self.merged[symbol];
        let before = (merged.away, merged.idle);
        let put = |mask: FeedMask, is_in: bool| if is_in { mask.with(bit) } else { mask.without(bit) };
        (merged.away, merged.idle) = (put(merged.away, is_away), put(merged.idle, is_idle));
        if before != (merged.away, merged.idle) {
            touched.changed = touched.changed.with(SuperFlags::FEEDS);
            let has_come_or_gone = before.0 != merged.away;
            // Where its shares stand or stood: the ranks of those before them are the same with and without
            // it.
            let others_away = merged.away.without(bit);
            for side in Side::BOTH {
                let kept = self.shares.of(&self.merged[symbol].ladders[side as usize]);
                let Some(first) = first_of(kept, moment.feed, others_away) else {
                    continue;
                };
                if has_come_or_gone {
                    touched.shares(side, first, u32::MAX);
                    self.recount(symbol, side);
                }
                self.find_best(symbol, side, &mut touched);
            }
            if has_come_or_gone && self.nationals.has(moment.feed) {
                touched.changed = touched.changed.with(SuperFlags::NATIONAL);
            }
        }
        self.tell(symbol, moment, touched, sink);
    }

    /// Adds the shares of a side up anew.
    pub(super) fn recount(&mut self, symbol: usize, side: Side) {
        let merged = &mut self.merged[symbol];
        let (mut totals, mut last) = (SuperTotals::default(), None);
        for kept in self.shares.of(&merged.ladders[side as usize]) {
            if !merged.away.has(kept.feed) {
                totals.shares += 1;
                totals.levels += (last != Some(kept.key)) as u32;
                totals.qty.0 += kept.qty;
                last = Some(kept.key);
            }
        }
        merged.totals[side as usize] = totals;
    }

    /// Finds the best of a side anew.
    #[inline(always)]
    pub(super) fn find_best(&mut self, symbol: usize, side: Side, touched: &mut Touched) {
        let merged = &mut self.merged[symbol];
        let counting = merged.counting();
        let mut best = SuperLevel::default();
        let mut best_key = 0;
        for kept in self.shares.of(&merged.ladders[side as usize]).iter().rev() {
            if best.qty.0 != 0 && kept.key != best_key {
                break;
            }
            if counting.has(kept.feed) {
                best_key = kept.key;
                view::add(&mut best, kept);
            }
        }
        if best.qty.0 != 0 {
            best.price = price_of(side, best_key);
        }
        if best != merged.best[side as usize] {
            merged.best[side as usize] = best;
            touched.changed = touched
                .changed
                .with(SuperFlags(SuperFlags::BEST_BID.0 << side as u32));
        }
    }

    /// Compares what follows from the bests, and tells the sink if anything is different.
    #[inline(always)]
    pub(super) fn tell<S: SuperSink>(
        &mut self,
        symbol: usize,
        moment: &Moment,
        touched: Touched,
        sink: &mut S,
    ) {
        let mut changed = touched.changed;
        if changed.any(SuperFlags::BEST_BID.with(SuperFlags::BEST_ASK)) {
            let merged = &mut self.merged[symbol];
            let market = market_of(&merged.best);
            if market != merged.market {
                merged.market = market;
                changed = changed.with(SuperFlags::MARKET);
            }
        }
        let compared = SuperFlags::BEST_BID
            .with(SuperFlags::BEST_ASK)
            .with(SuperFlags::NATIONAL)
            .with(SuperFlags::FEEDS);
        if changed.any(compared) && self.merged[symbol].feeds.0 & self.nationals.0 != 0 {
            changed = changed.with(self.compare(symbol, moment.mover));
        }
        if changed == SuperFlags::NONE {
            return;
        }
        let update = SuperUpdate {
            venue_ts: moment.venue_ts,
            recv_ts: moment.recv_ts,
            id: SuperId(symbol as u32),
            source: moment.source,
            feed: moment.feed,
            reserved: 0,
            changed,
            first: touched.first,
            end: touched.end,
        };
        sink.on_super(&SuperRef::new(self, symbol), &update);
    }

    /// Compares the national best with ours.
    fn compare(&mut self, symbol: usize, mover: Mover) -> SuperFlags {
        let now = self.now;
        let merged = &mut self.merged[symbol];
        let is_direct = !merged.feeds.without(merged.away.with(self.nationals)).is_empty();
        let is_compared = is_direct && merged.has_national(self.nationals);
        let mut changed = SuperFlags::NONE;
        for side in Side::BOTH {
            let national = merged.national.sides[side as usize];
            let national = (!national.qty.is_zero()).then_some(national.price);
            let direct = merged.best[side as usize];
            let direct = (!direct.qty.is_zero()).then_some(direct.price);
            let before = merged.difference[side as usize];
            let after = if !is_compared {
                Difference {
                    price: Price::ZERO,
                    since: Nanos(0),
                    mover: Mover::Nobody,
                    ..before
                }
            } else {
                before.at(now, national, direct, mover)
            };
            if after != before {
                merged.difference[side as usize] = after;
                changed = SuperFlags::DIFFERENCE;
            }
        }
        changed
    }

    pub(super) fn presence(&self, member: &Member) -> Presence {
        if member.is_full {
            return Presence::Full;
        }
        of_source(&self.sources[member.source as usize], member.own)
    }

    /// The trading status of an instrument, or of its venue where that stands above it.
    pub(super) fn status(&self, member: &Member) -> TradingStatus {
        match self.sources[member.source as usize].status {
            venue @ (TradingStatus::Halted | TradingStatus::Paused | TradingStatus::Closed) => venue,
            _ => member.status,
        }
    }

    /// What an event says beside its kind; the clock goes on.
    #[inline(always)]
    pub(super) fn moment(&mut self, source: SourceId, event: &MarketEvent) -> Result<Moment, SuperError> {
        let Some(state) = self.sources.get(source.0 as usize) else {
            return Err(SuperError::Source);
        };
        self.now = self.now.max(event.recv_ts);
        Ok(Moment {
            source,
            feed: state.feed,
            mover: if state.is_national {
                Mover::National
            } else {
                Mover::Direct
            },
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
        })
    }
}

pub(super) fn of_source(source: &SourceState, own: BookState) -> Presence {
    if source.ended {
        return Presence::Ended;
    }
    let said = if source.spoilt {
        BookState::Stale
    } else {
        source.said
    };
    match worse(said, own) {
        BookState::Live => Presence::Live,
        BookState::Stale => Presence::Stale,
        BookState::Building => Presence::Building,
    }
}

/// Whether one can trade with what stands in a book.
pub(crate) fn trades(status: TradingStatus) -> bool {
    matches!(status, TradingStatus::Trading | TradingStatus::Unknown)
}

#[inline(always)]
pub(crate) fn market_of(best: &[SuperLevel; 2]) -> Market {
    let [bid, ask] = best;
    if bid.qty.is_zero() || ask.qty.is_zero() {
        return Market::OneSided;
    }
    match bid.price.cmp(&ask.price) {
        core::cmp::Ordering::Less => Market::Normal,
        core::cmp::Ordering::Equal => Market::Locked,
        core::cmp::Ordering::Greater => Market::Crossed,
    }
}

/// The rank of a share that `before` others precede, feeds that are away not counted.
#[inline(always)]
pub(super) fn rank(kept: &[Kept], before: usize, away: FeedMask) -> u32 {
    if away.is_empty() {
        return before as u32;
    }
    let precede = kept.iter().rev().take(before);
    precede.filter(|share| !away.has(share.feed)).count() as u32
}

/// The rank of a feed's first share, feeds that are away not counted.
pub(super) fn first_of(kept: &[Kept], feed: u8, away: FeedMask) -> Option<u32> {
    let mut rank = 0;
    for share in kept.iter().rev() {
        if share.feed == feed {
            return Some(rank);
        }
        rank += !away.has(share.feed) as u32;
    }
    None
}
