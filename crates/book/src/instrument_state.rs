//! What a feed says of its instruments beside their books: trading status, last trade, volume, auctions and
//! imbalances.

use crate::{prefetch, touched};
use alloc::vec::Vec;
use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Price, Side, TradingStatus, Volume,
};

/// The last trade of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Print {
    /// Its price.
    pub price: Price,
    /// Its quantity; 0 when there was no trade yet.
    pub qty: Volume,
    /// The venue's time.
    pub venue_ts: Nanos,
    /// When its packet was received here.
    pub recv_ts: Nanos,
    /// Its match number; 0 when the venue gives none.
    pub match_id: u64,
    /// The venue has broken it since.
    pub is_broken: bool,
}

/// The latest word on an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Auction {
    /// The venue's type of auction; 0 when nothing was said yet.
    pub kind: u8,
    /// The side of the imbalance, if there is one.
    pub side: Option<Side>,
    /// The reference price.
    pub reference: Price,
    /// The near indicative price.
    pub near: Price,
    /// The far indicative price.
    pub far: Price,
    /// The quantity that would trade.
    pub paired: Volume,
    /// The quantity that would be left over.
    pub imbalance: Volume,
    /// The venue's time.
    pub venue_ts: Nanos,
}

/// All of an instrument that is no level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InstrumentState {
    /// The instrument's trading status. That of the venue as a whole is [`InstrumentStates::venue_status`].
    pub status: TradingStatus,
    /// The venue's reason for it.
    pub reason: [u8; 8],
    /// The last trade.
    pub last: Print,
    /// Shares traded: printable executions and trades, less those that were broken.
    pub volume: Volume,
    /// How many trades that were.
    pub trades: u64,
    /// The latest word on an auction.
    pub auction: Auction,
    /// Trades that were broken after they had been forgotten: `volume` and `trades` may hold them still.
    pub breaks_unknown: u32,
}

/// A trade that may be broken yet.
#[derive(Clone, Copy, Default)]
struct Kept {
    instrument: InstrumentId,
    match_id: u64,
    /// One match number may be several executions.
    qty: u64,
    trades: u64,
    price: Price,
}

/// Places a match number may be kept in.
const WAYS: usize = 4;

/// All instruments of one feed.
pub struct InstrumentStates {
    rows: Vec<InstrumentState>,
    venue: TradingStatus,
    trades: Vec<[Kept; WAYS]>,
    /// By set, how many came: the next one's place.
    turns: Vec<u8>,
}

impl InstrumentStates {
    /// Nothing known yet; allocates all it will ever use.
    ///
    /// `trades` is how many trades are remembered, so that a break, which names the match number only, can be
    /// taken off the volume: 40 bytes each. They are kept by match number in sets of four; the oldest of a
    /// set is forgotten for a newer one. A break of a forgotten trade is counted in
    /// [`InstrumentState::breaks_unknown`].
    pub fn new(instruments: u32, trades: u32) -> InstrumentStates {
        let sets = (trades as usize).div_ceil(WAYS).next_power_of_two();
        InstrumentStates {
            rows: touched(InstrumentState::default(), instruments as usize),
            venue: TradingStatus::Unknown,
            trades: touched([Kept::default(); WAYS], sets),
            turns: touched(0, sets),
        }
    }

    /// Applies one event of the feed. `executed_at` is the price of an `Execute`, which the order knows and
    /// not the event: [`crate::Books::executed_at`], after the books had it.
    ///
    /// Trades: `Trade` and `Execute` that are not [`EventFlags::NOT_PRINTABLE`]. One of unknown price counts,
    /// and leaves the last price as it was. A `TradeBreak` gets the price and quantity of the trade it
    /// breaks, and in `order_count` how many executions that was; 0 if it is not remembered.
    #[inline]
    pub fn apply(&mut self, event: &mut MarketEvent, executed_at: Option<Price>) {
        match event.kind {
            EventKind::TradeBreak => self.undo(event),
            _ => self.note(event, executed_at),
        }
    }

    /// [`InstrumentStates::apply`] of an event that is no `TradeBreak`, which is ignored: nothing is put into
    /// the event, so that nobody needs a copy of it.
    #[inline]
    pub fn note(&mut self, event: &MarketEvent, executed_at: Option<Price>) {
        match event.kind {
            EventKind::Execute => self.trade(event, executed_at),
            EventKind::Trade => self.trade(event, Some(event.price)),
            EventKind::Status if event.instrument == InstrumentId::WHOLE_FEED => self.venue = event.status,
            EventKind::Status => {
                if let Some(row) = self.rows.get_mut(event.instrument.index()) {
                    (row.status, row.reason) = (event.status, event.code);
                }
            }
            EventKind::Imbalance => self.auction(event),
            EventKind::Clear if begins_session(event) => self.forget_statuses(),
            _ => {}
        }
    }

    /// A new session says every status that stands: others are not known any more.
    #[cold]
    fn forget_statuses(&mut self) {
        self.venue = TradingStatus::Unknown;
        for row in &mut self.rows {
            (row.status, row.reason) = (TradingStatus::Unknown, [0; 8]);
        }
    }

    /// A trade is being applied to the books, and comes here next: fetches the lines it will need. Ignoring
    /// it is always correct.
    #[inline]
    pub fn approach(&self, event: &MarketEvent) {
        if let Some(row) = self.rows.get(event.instrument.index()) {
            prefetch::fetch_value(row);
            prefetch::fetch_value(&self.trades[self.set(event)]);
        }
    }

    /// What is known of an instrument, `None` beyond the configured number.
    pub fn get(&self, instrument: InstrumentId) -> Option<&InstrumentState> {
        self.rows.get(instrument.index())
    }

    /// The trading status of the venue as a whole.
    pub fn venue_status(&self) -> TradingStatus {
        self.venue
    }

    fn trade(&mut self, event: &MarketEvent, price: Option<Price>) {
        let Some(row) = self.rows.get_mut(event.instrument.index()) else {
            return;
        };
        if event.flags.has(EventFlags::NOT_PRINTABLE) || event.qty.is_zero() {
            return;
        }
        row.volume.0 = row.volume.0.saturating_add(event.qty.0);
        row.trades += 1;
        row.last = Print {
            price: price.unwrap_or(row.last.price),
            qty: event.qty,
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
            match_id: event.ref_id,
            is_broken: false,
        };
        if event.ref_id != 0 {
            self.remember(event, price.unwrap_or_default());
        }
    }

    fn remember(&mut self, event: &MarketEvent, price: Price) {
        let set = self.set(event);
        let is_it = |kept: &Kept| (kept.instrument, kept.match_id) == (event.instrument, event.ref_id);
        let known = self.trades[set].iter().position(is_it);
        let place = known.unwrap_or_else(|| {
            let turn = &mut self.turns[set];
            *turn = turn.wrapping_add(1);
            *turn as usize % WAYS
        });
        let before = known.map_or(Kept::default(), |place| self.trades[set][place]);
        self.trades[set][place] = Kept {
            instrument: event.instrument,
            match_id: event.ref_id,
            qty: before.qty.saturating_add(event.qty.0),
            trades: before.trades + 1,
            price,
        };
    }

    /// Takes a broken trade off.
    #[cold]
    fn undo(&mut self, event: &mut MarketEvent) {
        let set = self.set(event);
        let Some(row) = self.rows.get_mut(event.instrument.index()) else {
            return;
        };
        event.qty = Volume::ZERO;
        for kept in &mut self.trades[set] {
            if (kept.instrument, kept.match_id) == (event.instrument, event.ref_id) && kept.qty > 0 {
                row.volume.0 = row.volume.0.saturating_sub(kept.qty);
                row.trades = row.trades.saturating_sub(kept.trades);
                (event.price, event.qty.0) = (kept.price, kept.qty);
                event.order_count = u32::try_from(kept.trades).unwrap_or(u32::MAX);
                *kept = Kept::default();
            }
        }
        if event.qty.is_zero() {
            row.breaks_unknown += 1;
        }
        if row.last.match_id == event.ref_id && event.ref_id != 0 {
            row.last.is_broken = true;
        }
    }

    fn auction(&mut self, event: &MarketEvent) {
        if let Some(row) = self.rows.get_mut(event.instrument.index()) {
            row.auction = Auction {
                kind: event.code[0],
                side: (!event.flags.has(EventFlags::NO_SIDE)).then_some(event.side),
                reference: event.price,
                near: event.near_price,
                far: event.far_price,
                paired: event.qty,
                imbalance: event.imbalance_qty,
                venue_ts: event.venue_ts,
            };
        }
    }

    fn set(&self, event: &MarketEvent) -> usize {
        let key = event.ref_id ^ (event.instrument.0 as u64) << 40;
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.trades.len() - 1)
    }
}

/// Whether an event makes void what was said in a session before. A snapshot says what stands, and some
/// venues' by leaving out who is halted: what was known holds until it says otherwise.
pub(crate) fn begins_session(event: &MarketEvent) -> bool {
    event.kind == EventKind::Clear
        && event.instrument == InstrumentId::WHOLE_FEED
        && !event.flags.has(EventFlags::SNAPSHOT)
}
