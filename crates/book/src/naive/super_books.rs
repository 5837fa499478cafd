//! Consolidated books in the obvious way: what each instrument said is kept in maps, and everything else is
//! made anew when asked for.

use crate::super_books::{
    Difference, FeedMask, FeedView, LastTrade, Market, Mover, National, NationalSide, Presence, Share,
    Source, SourceId, SuperError, SuperId, SuperLevel, SuperRef, SuperTotals,
};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, Side, Symbol, TradingStatus,
    Volume,
};

/// All that can be read of a consolidated book.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct NaiveSuper {
    pub symbol: Symbol,
    pub feeds: FeedMask,
    pub away: FeedMask,
    pub idle: FeedMask,
    pub shares: [Vec<Share>; 2],
    pub levels: [Vec<SuperLevel>; 2],
    pub best: [Option<SuperLevel>; 2],
    pub market: Market,
    pub national: Option<National>,
    pub difference: [Difference; 2],
    pub trade: Option<(LastTrade, u8)>,
    pub volume: Volume,
    pub trades: u64,
    pub totals: [SuperTotals; 2],
    /// By feed.
    pub members: Vec<FeedView>,
}

impl From<SuperRef<'_>> for NaiveSuper {
    /// The same of a fast one, for comparison.
    fn from(book: SuperRef<'_>) -> NaiveSuper {
        let mut members: Vec<FeedView> = book.members().collect();
        members.sort_by_key(|member| member.feed);
        NaiveSuper {
            symbol: *book.symbol(),
            feeds: book.feeds(),
            away: book.away(),
            idle: book.idle(),
            shares: Side::BOTH.map(|side| book.shares(side).collect()),
            levels: Side::BOTH.map(|side| book.levels(side).collect()),
            best: Side::BOTH.map(|side| book.best(side)),
            market: book.market(),
            national: book.national(),
            difference: Side::BOTH.map(|side| book.difference(side)),
            trade: book.last_trade(),
            volume: book.volume(),
            trades: book.trades(),
            totals: Side::BOTH.map(|side| book.totals(side)),
            members,
        }
    }
}

struct NaiveSource {
    feed: u8,
    is_national: bool,
    said: BookState,
    spoilt: bool,
    ended: bool,
    status: TradingStatus,
}

struct NaiveMember {
    symbol: usize,
    own: BookState,
    status: TradingStatus,
    sides: [BTreeMap<Price, (u64, u32)>; 2],
    national: National,
    volume: u64,
    trades: u64,
}

struct NaiveSymbol {
    symbol: Symbol,
    difference: [Difference; 2],
    trade: Option<(LastTrade, u8)>,
}

/// All consolidated books, the obvious way. They have no capacities, so they never answer
/// [`SuperError::Full`].
pub struct NaiveSuperBooks {
    sources: Vec<NaiveSource>,
    /// The subscribed instruments.
    members: BTreeMap<(SourceId, InstrumentId), NaiveMember>,
    symbols: Vec<NaiveSymbol>,
    now: Nanos,
}

impl NaiveSuperBooks {
    /// Nothing known yet.
    pub fn new(sources: &[Source]) -> NaiveSuperBooks {
        let source = |source: &Source| NaiveSource {
            feed: source.feed,
            is_national: source.is_national,
            said: BookState::Building,
            spoilt: false,
            ended: false,
            status: TradingStatus::Unknown,
        };
        NaiveSuperBooks {
            sources: sources.iter().map(source).collect(),
            members: BTreeMap::new(),
            symbols: Vec::new(),
            now: Nanos(0),
        }
    }

    /// As [`crate::SuperBooks::define`].
    pub fn define(
        &mut self,
        source: SourceId,
        instrument: InstrumentId,
        symbol: &Symbol,
    ) -> Result<SuperId, SuperError> {
        let Some(NaiveSource {
            feed, is_national, ..
        }) = self.sources.get(source.0 as usize)
        else {
            return Err(SuperError::Source);
        };
        let (feed, is_national) = (*feed, *is_national);
        if instrument == InstrumentId::WHOLE_FEED || symbol.is_empty() {
            return Err(SuperError::Instrument);
        }
        if let Some(member) = self.members.get(&(source, instrument)) {
            if self.symbols[member.symbol].symbol == *symbol {
                return Ok(SuperId(member.symbol as u32));
            }
            self.undefine(source, instrument);
        }
        let known = self.symbols.iter().position(|known| known.symbol == *symbol);
        let id = known.unwrap_or_else(|| {
            self.symbols.push(NaiveSymbol {
                symbol: *symbol,
                difference: Default::default(),
                trade: None,
            });
            self.symbols.len() - 1
        });
        let is_taken = self.of(id).any(|((source, _), _)| {
            let other = &self.sources[source.0 as usize];
            other.feed == feed || other.is_national && is_national
        });
        if is_taken {
            return Err(SuperError::Taken);
        }
        let member = NaiveMember {
            symbol: id,
            own: BookState::Live,
            status: TradingStatus::Unknown,
            sides: Default::default(),
            national: National::default(),
            volume: 0,
            trades: 0,
        };
        self.members.insert((source, instrument), member);
        self.compare_all(source);
        Ok(SuperId(id as u32))
    }

    /// As [`crate::SuperBooks::undefine`].
    pub fn undefine(&mut self, source: SourceId, instrument: InstrumentId) {
        self.members.remove(&(source, instrument));
        self.compare_all(source);
    }

    /// As the end of the source is told by [`crate::super_books::end_event`].
    pub fn end(&mut self, source: SourceId) {
        self.sources[source.0 as usize].ended = true;
        self.compare_all(source);
    }

    /// As [`crate::SuperBooks::apply`], without its words for definitions and the end.
    pub fn apply(&mut self, source: SourceId, event: &MarketEvent) -> Result<(), SuperError> {
        if source.0 as usize >= self.sources.len() {
            return Err(SuperError::Source);
        }
        self.now = self.now.max(event.recv_ts);
        let done = self.change(source, event);
        self.compare_all(source);
        done
    }

    /// How many symbols became known.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether none did.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// All that can be read of a consolidated book.
    pub fn book(&self, id: SuperId) -> NaiveSuper {
        let index = id.0 as usize;
        let mask = |wanted: &dyn Fn(&FeedView) -> bool| {
            let members = self.views(index).into_iter().filter(|view| wanted(view));
            members.fold(FeedMask::NONE, |all, view| all.with(FeedMask::one(view.feed)))
        };
        let best = self.best(index);
        NaiveSuper {
            symbol: self.symbols[index].symbol,
            feeds: mask(&|_| true),
            away: mask(&|view| view.presence != Presence::Live),
            idle: mask(&|view| !may_trade(view.status)),
            shares: Side::BOTH.map(|side| self.shares(index, side)),
            levels: Side::BOTH.map(|side| merge(&self.shares(index, side))),
            best,
            market: match best {
                [Some(bid), Some(ask)] if bid.price < ask.price => Market::Normal,
                [Some(bid), Some(ask)] if bid.price == ask.price => Market::Locked,
                [Some(_), Some(_)] => Market::Crossed,
                _ => Market::OneSided,
            },
            national: self.national(index),
            difference: self.symbols[index].difference,
            trade: self.symbols[index].trade,
            volume: Volume(self.of(index).map(|(_, member)| member.volume).sum()),
            trades: self.of(index).map(|(_, member)| member.trades).sum(),
            totals: Side::BOTH.map(|side| {
                let shares = self.shares(index, side);
                SuperTotals {
                    shares: shares.len() as u32,
                    levels: merge(&shares).len() as u32,
                    qty: Volume(shares.iter().map(|share| share.qty.0).sum()),
                }
            }),
            members: self.views(index),
        }
    }

    fn change(&mut self, source: SourceId, event: &MarketEvent) -> Result<(), SuperError> {
        let is_national = self.sources[source.0 as usize].is_national;
        match event.kind {
            EventKind::Gap | EventKind::Recovered | EventKind::Clear | EventKind::Status
                if event.instrument == InstrumentId::WHOLE_FEED =>
            {
                self.change_source(source, event);
                return Ok(());
            }
            EventKind::Imbalance | EventKind::EndOfGroup | EventKind::Definition => return Ok(()),
            EventKind::Quote if event.code[0] != 0 => return Ok(()),
            EventKind::Add
            | EventKind::Modify
            | EventKind::Reduce
            | EventKind::Execute
            | EventKind::Delete
            | EventKind::Replace => return Err(SuperError::Depth),
            _ => {}
        }
        let member = self.members.get_mut(&(source, event.instrument));
        let member = member.ok_or(SuperError::Instrument)?;
        match event.kind {
            EventKind::Level if !is_national => {
                if event.qty.0 >= 1 << 44 {
                    return Err(SuperError::QtyRange);
                }
                let levels = &mut member.sides[event.side as usize];
                if event.qty.is_zero() {
                    levels.remove(&event.price).ok_or(SuperError::UnknownLevel)?;
                } else {
                    let level = (event.qty.0, event.order_count.min(1_048_575));
                    levels.insert(event.price, level);
                }
            }
            EventKind::Quote if is_national => {
                let side = |price, qty: Volume, participant| NationalSide {
                    price: if qty.is_zero() { Price::ZERO } else { price },
                    qty,
                    participant,
                };
                member.national = National {
                    sides: [
                        side(event.price, event.qty, event.code[1]),
                        side(event.ask_price, event.ask_qty, event.code[2]),
                    ],
                    venue_ts: event.venue_ts,
                    recv_ts: event.recv_ts,
                };
            }
            EventKind::Trade if !event.flags.has(EventFlags::NOT_PRINTABLE) && !event.qty.is_zero() => {
                member.volume += event.qty.0;
                member.trades += 1;
                let trade = LastTrade {
                    price: event.price,
                    qty: event.qty,
                    venue_ts: event.venue_ts,
                    recv_ts: event.recv_ts,
                };
                let feed = self.sources[source.0 as usize].feed;
                self.symbols[member.symbol].trade = Some((trade, feed));
            }
            EventKind::TradeBreak if !event.flags.has(EventFlags::NOT_PRINTABLE) && !event.qty.is_zero() => {
                member.volume -= event.qty.0.min(member.volume);
                member.trades = member.trades.saturating_sub(event.order_count.max(1).into());
            }
            EventKind::Gap => member.own = BookState::Stale,
            EventKind::Recovered => member.own = BookState::Live,
            EventKind::Status => member.status = event.status,
            EventKind::Clear => member.clear(),
            _ => {}
        }
        Ok(())
    }

    fn change_source(&mut self, source: SourceId, event: &MarketEvent) {
        let state = &mut self.sources[source.0 as usize];
        match event.kind {
            EventKind::Gap if event.flags.has(EventFlags::UNUSABLE) => state.spoilt = true,
            EventKind::Gap => state.said = BookState::Stale,
            EventKind::Recovered => (state.said, state.ended) = (BookState::Live, false),
            EventKind::Status => state.status = event.status,
            _ => {
                let is_new = !event.flags.has(EventFlags::SNAPSHOT);
                state.spoilt = false;
                if is_new {
                    state.status = TradingStatus::Unknown;
                }
                let members = self.members.iter_mut().filter(|((of, _), _)| *of == source);
                members.for_each(|(_, member)| {
                    member.clear();
                    if is_new {
                        member.status = TradingStatus::Unknown;
                    }
                });
            }
        }
    }

    /// What is subscribed of a symbol.
    fn of(&self, symbol: usize) -> impl Iterator<Item = (&(SourceId, InstrumentId), &NaiveMember)> {
        self.members
            .iter()
            .filter(move |(_, member)| member.symbol == symbol)
    }

    fn views(&self, symbol: usize) -> Vec<FeedView> {
        let view = |(&(source, instrument), member): (&(SourceId, InstrumentId), &NaiveMember)| FeedView {
            feed: self.sources[source.0 as usize].feed,
            source,
            instrument,
            presence: self.presence(source, member),
            status: match self.sources[source.0 as usize].status {
                TradingStatus::Halted => TradingStatus::Halted,
                TradingStatus::Paused => TradingStatus::Paused,
                TradingStatus::Closed => TradingStatus::Closed,
                _ => member.status,
            },
            volume: Volume(member.volume),
            trades: member.trades,
        };
        let mut views: Vec<FeedView> = self.of(symbol).map(view).collect();
        views.sort_by_key(|view| view.feed);
        views
    }

    fn presence(&self, source: SourceId, member: &NaiveMember) -> Presence {
        let source = &self.sources[source.0 as usize];
        if source.ended {
            Presence::Ended
        } else if source.spoilt || source.said == BookState::Stale || member.own == BookState::Stale {
            Presence::Stale
        } else if source.said == BookState::Building {
            Presence::Building
        } else {
            Presence::Live
        }
    }

    fn shares(&self, symbol: usize, side: Side) -> Vec<Share> {
        let mut shares = Vec::new();
        for ((source, _), member) in self.of(symbol) {
            if self.presence(*source, member) == Presence::Live {
                let feed = self.sources[source.0 as usize].feed;
                shares.extend(
                    member.sides[side as usize]
                        .iter()
                        .map(|(&price, &(qty, orders))| Share {
                            price,
                            qty: Volume(qty),
                            orders,
                            feed,
                        }),
                );
            }
        }
        shares.sort_by(|a, b| match side {
            Side::Bid => (b.price, a.feed).cmp(&(a.price, b.feed)),
            Side::Ask => (a.price, a.feed).cmp(&(b.price, b.feed)),
        });
        shares
    }

    fn best(&self, symbol: usize) -> [Option<SuperLevel>; 2] {
        let trading: Vec<u8> = self
            .views(symbol)
            .into_iter()
            .filter(|view| may_trade(view.status))
            .map(|view| view.feed)
            .collect();
        Side::BOTH.map(|side| {
            let mut shares = self.shares(symbol, side);
            shares.retain(|share| trading.contains(&share.feed));
            merge(&shares).first().copied()
        })
    }

    fn national(&self, symbol: usize) -> Option<National> {
        self.of(symbol)
            .find(|((source, _), member)| {
                self.sources[source.0 as usize].is_national
                    && self.presence(*source, member) == Presence::Live
            })
            .map(|(_, member)| member.national)
    }

    /// Compares the national bests with the others after an event of a source.
    fn compare_all(&mut self, source: SourceId) {
        let by = match self.sources[source.0 as usize].is_national {
            true => Mover::National,
            false => Mover::Direct,
        };
        for symbol in 0..self.symbols.len() {
            let mut differences = self.symbols[symbol].difference;
            let is_carried = self
                .of(symbol)
                .any(|((source, _), _)| self.sources[source.0 as usize].is_national);
            if !is_carried {
                differences = Default::default();
            }
            let has_direct = self.of(symbol).any(|((source, _), member)| {
                !self.sources[source.0 as usize].is_national
                    && self.presence(*source, member) == Presence::Live
            });
            let best = self.best(symbol);
            for side in Side::BOTH {
                let difference = &mut differences[side as usize];
                let Some(national) = self.national(symbol).filter(|_| has_direct) else {
                    (difference.price, difference.since) = (Price::ZERO, Nanos(0));
                    difference.mover = Mover::Nobody;
                    continue;
                };
                let national = national.sides[side as usize];
                let national = (!national.qty.is_zero()).then_some(national.price.raw());
                let direct = best[side as usize].map(|level| level.price.raw());
                if national != direct && difference.mover == Mover::Nobody {
                    (difference.since, difference.mover) = (self.now, by);
                }
                if national == direct && difference.mover != Mover::Nobody {
                    (difference.last_mover, difference.mover) = (difference.mover, Mover::Nobody);
                    difference.last_ns = self.now.0 - difference.since.0;
                    difference.since = Nanos(0);
                }
                let apart = national.zip(direct).map_or(0, |(a, b)| a.saturating_sub(b));
                difference.price = Price::from_raw(apart);
            }
            self.symbols[symbol].difference = differences;
        }
    }
}

impl NaiveMember {
    fn clear(&mut self) {
        self.sides = Default::default();
        self.national = National::default();
        self.own = BookState::Live;
    }
}

fn may_trade(status: TradingStatus) -> bool {
    status == TradingStatus::Trading || status == TradingStatus::Unknown
}

fn merge(shares: &[Share]) -> Vec<SuperLevel> {
    let mut levels: Vec<SuperLevel> = Vec::new();
    for share in shares {
        let known = levels.iter().position(|level| level.price == share.price);
        let at = known.unwrap_or(levels.len());
        if known.is_none() {
            levels.push(SuperLevel {
                price: share.price,
                ..SuperLevel::default()
            });
        }
        levels[at].qty.0 += share.qty.0;
        levels[at].orders += share.orders;
        levels[at].feeds = levels[at].feeds.with(FeedMask::one(share.feed));
    }
    levels
}
