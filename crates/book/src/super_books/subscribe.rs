//! Instruments come to consolidated books and leave them.

use super::ladder::Ladder;
use super::{
    Difference, FeedMask, LastTrade, Market, Member, Merged, Moment, National, SuperBooks, SuperError,
    SuperFlags, SuperId, SuperLevel, SuperSink, SuperTotals, Touched, hash,
};
use crate::order_index::NONE;
use tickwire_market::{BookState, InstrumentId, Symbol, TradingStatus};

impl SuperBooks {
    /// Puts an instrument into the consolidated book of its symbol.
    pub(super) fn take_in<S: SuperSink>(
        &mut self,
        moment: &Moment,
        instrument: InstrumentId,
        symbol: &Symbol,
        sink: &mut S,
    ) -> Result<SuperId, SuperError> {
        if instrument == InstrumentId::WHOLE_FEED || symbol.is_empty() {
            return Err(SuperError::Instrument);
        }
        let known = self.member_index(moment.source, instrument);
        if let Some(index) = known
            && self.members[index].is_on
        {
            let id = self.members[index].symbol;
            if self.merged[id as usize].symbol == *symbol {
                return Ok(SuperId(id));
            }
            self.leave(moment, index, sink);
        }
        let id = self.find_or_make(symbol)?;
        let merged = &mut self.merged[id as usize];
        let bit = FeedMask::one(moment.feed);
        let exclusive = if self.nationals.has(moment.feed) {
            self.nationals
        } else {
            bit
        };
        if merged.feeds.0 & exclusive.0 != 0 {
            return Err(SuperError::Taken);
        }
        let index = match known {
            Some(index) => index,
            None => self.new_member(moment, instrument)?,
        };
        let merged = &mut self.merged[id as usize];
        let member = &mut self.members[index];
        (member.symbol, member.is_on) = (id, true);
        (member.own, member.is_full) = (BookState::Live, false);
        (member.status, member.volume, member.trades) = (TradingStatus::Unknown, 0, 0);
        member.next_of_symbol = core::mem::replace(&mut merged.first_member, index as u32);
        merged.feeds = merged.feeds.with(bit);
        self.settle(
            moment,
            index,
            Touched::only(self.of_subscription(moment.feed)),
            sink,
        );
        Ok(SuperId(id))
    }

    fn find_or_make(&mut self, symbol: &Symbol) -> Result<u32, SuperError> {
        if let Some(id) = self.find(symbol) {
            return Ok(id.0);
        }
        let id = self.merged.len() as u32;
        if id == self.config.symbols {
            return Err(SuperError::Full);
        }
        self.merged.push(Merged {
            ladders: [Ladder::default(); 2],
            best: [SuperLevel::default(); 2],
            totals: [SuperTotals::default(); 2],
            feeds: FeedMask::NONE,
            away: FeedMask::NONE,
            idle: FeedMask::NONE,
            market: Market::OneSided,
            trade_feed: 0,
            first_member: NONE,
            national: National::default(),
            difference: [Difference::default(); 2],
            trade: LastTrade::default(),
            volume: 0,
            trades: 0,
            symbol: *symbol,
        });
        self.by_symbol.insert(hash(symbol), id);
        Ok(id)
    }

    fn new_member(&mut self, moment: &Moment, instrument: InstrumentId) -> Result<usize, SuperError> {
        let index = self.members.len();
        if index as u32 == self.config.members {
            return Err(SuperError::Full);
        }
        let source = &mut self.sources[moment.source.0 as usize];
        self.members.push(Member {
            symbol: 0,
            instrument,
            source: moment.source.0,
            feed: source.feed,
            own: BookState::Live,
            is_full: false,
            is_on: false,
            status: TradingStatus::Unknown,
            next_of_source: core::mem::replace(&mut source.first, index as u32),
            next_of_symbol: NONE,
            volume: 0,
            trades: 0,
        });
        self.by_instrument
            .insert(super::member_key(moment.source, instrument), index as u32);
        Ok(index)
    }

    /// Takes an instrument out of its consolidated book.
    pub(super) fn leave<S: SuperSink>(&mut self, moment: &Moment, index: usize, sink: &mut S) {
        if !self.members[index].is_on {
            return;
        }
        let symbol = self.members[index].symbol as usize;
        let mut touched = Touched::only(self.of_subscription(moment.feed));
        if self.nationals.has(moment.feed) {
            self.forget_national(symbol, moment.feed, &mut touched);
        } else {
            self.withdraw(symbol, moment.feed, &mut touched);
        }
        self.unlink(symbol, index as u32);
        let member = &mut self.members[index];
        member.is_on = false;
        let merged = &mut self.merged[symbol];
        let bit = FeedMask::one(member.feed);
        merged.feeds = merged.feeds.without(bit);
        merged.away = merged.away.without(bit);
        merged.idle = merged.idle.without(bit);
        if member.trades > 0 || member.volume > 0 {
            merged.volume -= member.volume;
            merged.trades -= member.trades;
            touched.changed = touched.changed.with(SuperFlags::TRADE);
        }
        // The consolidated feed that leaves takes the comparison with it.
        if self.nationals.has(moment.feed) && merged.difference != [Difference::default(); 2] {
            merged.difference = [Difference::default(); 2];
            touched.changed = touched.changed.with(SuperFlags::DIFFERENCE);
        }
        self.tell(symbol, moment, touched, sink);
    }

    /// What is different in a consolidated book when a feed comes or goes with its instrument.
    fn of_subscription(&self, feed: u8) -> SuperFlags {
        if self.nationals.has(feed) {
            SuperFlags::FEEDS.with(SuperFlags::NATIONAL)
        } else {
            SuperFlags::FEEDS
        }
    }

    /// Takes a member out of its symbol's list.
    fn unlink(&mut self, symbol: usize, index: u32) {
        let next = self.members[index as usize].next_of_symbol;
        let mut at = self.merged[symbol].first_member;
        if at == index {
            self.merged[symbol].first_member = next;
            return;
        }
        while let Some(member) = self.members.get_mut(at as usize) {
            if member.next_of_symbol == index {
                member.next_of_symbol = next;
                return;
            }
            at = member.next_of_symbol;
        }
    }

    /// The subscribed members of a symbol.
    pub(super) fn members_of(&self, symbol: usize) -> impl Iterator<Item = &Member> {
        let first = self.members.get(self.merged[symbol].first_member as usize);
        core::iter::successors(first, |member| self.members.get(member.next_of_symbol as usize))
    }
}
