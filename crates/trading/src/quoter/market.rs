//! What the market of each option, without our own quotes in it, allows our quotes to be. A quote outside of
//! that is not sent, and its option is pulled until it has been within it for a while.
//!
//! Values are ours, the market is of everybody else: where both are far apart, ours are the wrong ones more
//! often than not. A volatility typed with a digit too many is the common case.

use super::ladder::{BLOCK, NO_ASK, NO_BID, Row};
use super::table::{array, bits};
use super::{MassQuoteEntry, places};
use alloc::boxed::Box;
use alloc::vec;
use tickwire_book::prefetch;
use tickwire_market::{Counter, Nanos, Price, Side, Volume};

/// Prices of one side of a quote that are remembered: the book shows a quote of ours for a while after it was
/// replaced.
const TOLD: usize = 4;
/// For how long a level at a price that we have quoted, and not larger than that quote, is taken for ours.
const OURS_NS: u64 = Nanos::SECOND;

/// How far a quote may be from the market of its option. Prices are in ticks of the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarketGuard {
    /// Ticks by which a side may be better than the market's best of that side.
    pub better_max: u16,
    /// Ticks by which the middle of a quote may be away from the middle of the market,
    pub mid_ticks: u16,
    /// or this part of the market's middle in basis points (1/10 000), whichever is more.
    pub mid_bp: u16,
    /// Which sides of the market have to be there.
    pub needs: MarketNeed,
    /// An option that was pulled is quoted again when its quote was within all of this for so long, in
    /// nanoseconds.
    pub calm_ns: u64,
}

impl Default for MarketGuard {
    fn default() -> MarketGuard {
        MarketGuard {
            better_max: 40,
            mid_ticks: 40,
            mid_bp: 500,
            needs: MarketNeed::BothSides,
            calm_ns: 250 * Nanos::MILLI,
        }
    }
}

impl MarketGuard {
    /// How far the middle of a quote may be from this middle of the market, in ticks.
    #[inline]
    fn away(&self, middle: u16) -> u16 {
        let part = u32::from(middle) * u32::from(self.mid_bp) / 10_000;
        part.max(self.mid_ticks.into()).min(u16::MAX.into()) as u16
    }

    /// Whether the middle between two of our prices is near enough to that of the market; [`NO_BID`] and
    /// [`NO_ASK`] are sides that are empty. Where one is, there is no middle, and [`MarketGuard::needs`] says
    /// whether that is enough.
    #[inline]
    pub fn is_near(&self, ours: (u16, u16), market: (u16, u16)) -> bool {
        let has = |(bid, ask): (u16, u16)| (bid != NO_BID, ask != NO_ASK);
        match (has(market), has(ours)) {
            ((true, true), (true, true)) => {
                let middle = market.0.midpoint(market.1);
                ours.0.midpoint(ours.1).abs_diff(middle) <= self.away(middle)
            }
            // Ours alone has no middle: what is there may not lie beyond.
            ((true, true), (has_bid, has_ask)) => {
                let middle = market.0.midpoint(market.1);
                let away = self.away(middle);
                (!has_bid || ours.0 <= middle.saturating_add(away))
                    && (!has_ask || ours.1 >= middle.saturating_sub(away))
            }
            ((false, false), _) => self.needs == MarketNeed::Nothing,
            _ => self.needs != MarketNeed::BothSides,
        }
    }
}

/// Which sides of an option's market have to be there for it to be quoted. Whatever is there is held to. A
/// book with a gap is no market, and is not quoted in whichever of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MarketNeed {
    /// A bid and an offer of others.
    #[default]
    BothSides,
    /// One of them.
    OneSide,
    /// Neither: our values stand alone.
    Nothing,
}

/// Why an option is not quoted: its quote and its market do not go together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OffMarket {
    /// The quote would trade with the market or lock it.
    Crosses,
    /// A side would be better than the market's by more than [`MarketGuard::better_max`].
    TooGood,
    /// Its middle is too far from the market's.
    OffMid,
    /// The market lacks a side that it needs to have, or is not known.
    NoMarket,
}

impl OffMarket {
    /// Every one, in order.
    pub const ALL: [OffMarket; 4] = [
        OffMarket::Crosses,
        OffMarket::TooGood,
        OffMarket::OffMid,
        OffMarket::NoMarket,
    ];

    /// What counts how often options were pulled for it.
    pub const fn counter(self) -> Counter {
        match self {
            OffMarket::Crosses => Counter::QuotesCrossing,
            OffMarket::TooGood => Counter::QuotesTooGood,
            OffMarket::OffMid => Counter::QuotesOffMid,
            OffMarket::NoMarket => Counter::QuotesNoMarket,
        }
    }
}

/// An option that is not quoted because of its market.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulled {
    /// Why.
    pub why: OffMarket,
    /// The bid and ask that were wanted and not sent, in ticks.
    pub wanted: (u16, u16),
    /// The best bid and ask of others then, in ticks.
    pub market: (u16, u16),
}

/// Something that we have quoted on a side.
#[derive(Clone, Copy, Debug, Default)]
struct ShownQuote {
    at: Nanos,
    ticks: u16,
    qty: u32,
}

/// The last of a side, and the place of the next.
type Lately = ([ShownQuote; TOLD], u8);

/// See the module's description. Bounds by the place of the quote, whole blocks; without a guard they allow
/// everything.
#[derive(Clone, Debug)]
pub(super) struct Markets {
    guard: Option<MarketGuard>,
    bids_most: Box<[u16]>,
    asks_least: Box<[u16]>,
    middles_least: Box<[u16]>,
    middles_most: Box<[u16]>,
    /// Best bid and ask of others.
    best: Box<[(u16, u16)]>,
    pulled: Box<[Pulled]>,
    /// Those pulled, and those that were seen outside of their bounds since the last look of the clock, by
    /// block.
    off: Box<[u64]>,
    seen: Box<[u64]>,
    /// How many are pulled, by reason.
    counts: [u32; 4],
    next: Option<Nanos>,
    told: Box<[[Lately; 2]]>,
}

impl Markets {
    pub(super) fn new(guard: Option<MarketGuard>, quotes: usize) -> Markets {
        let padded = quotes.next_multiple_of(BLOCK);
        let column = |value: u16| vec![value; padded].into_boxed_slice();
        let mut markets = Markets {
            guard,
            bids_most: column(NO_ASK),
            asks_least: column(NO_BID),
            middles_least: column(0),
            middles_most: column(u16::MAX),
            best: vec![(NO_BID, NO_ASK); padded].into_boxed_slice(),
            pulled: vec![
                Pulled {
                    why: OffMarket::NoMarket,
                    wanted: (NO_BID, NO_ASK),
                    market: (NO_BID, NO_ASK),
                };
                quotes
            ]
            .into_boxed_slice(),
            off: vec![0; padded / BLOCK].into_boxed_slice(),
            seen: vec![0; padded / BLOCK].into_boxed_slice(),
            counts: [0; 4],
            next: None,
            told: vec![[([ShownQuote::default(); TOLD], 0); 2]; if guard.is_some() { quotes } else { 0 }]
                .into_boxed_slice(),
        };
        if guard.is_some() {
            // Nothing is known of any market yet.
            (0..quotes).for_each(|at| markets.forget(at));
        }
        markets
    }

    pub(super) fn is_on(&self) -> bool {
        self.guard.is_some()
    }

    /// A market that is not known: nothing may be quoted in it.
    fn forget(&mut self, at: usize) {
        (self.bids_most[at], self.asks_least[at]) = (NO_BID, NO_ASK);
        (self.middles_least[at], self.middles_most[at]) = (0, u16::MAX);
        self.best[at] = (NO_BID, NO_ASK);
    }

    /// The market of an option without our quotes: best prices of others by side, of a book that is live.
    pub(super) fn learn(&mut self, at: usize, is_live: bool, best: [Option<Price>; 2], tick: Price) {
        let Some(guard) = self.guard else { return };
        self.forget(at);
        let tick = tick.raw().max(1);
        let highest = tick.saturating_mul(i64::from(NO_ASK - 1));
        // A price between two ticks counts as the one that leaves less room.
        let within = |price: &Price| (1..=highest).contains(&price.raw());
        let bid = best[0]
            .filter(within)
            .map(|price| ((price.raw() - 1) / tick + 1) as u16);
        let ask = best[1].filter(within).map(|price| (price.raw() / tick) as u16);
        let sides = usize::from(bid.is_some()) + usize::from(ask.is_some());
        let needed = match guard.needs {
            MarketNeed::BothSides => 2,
            MarketNeed::OneSide => 1,
            MarketNeed::Nothing => 0,
        };
        self.best[at] = (bid.unwrap_or(NO_BID), ask.unwrap_or(NO_ASK));
        if !is_live || sides < needed {
            return;
        }
        let (mut bid_most, mut ask_least) = (NO_ASK - 1, 1);
        if let Some(bid) = bid {
            bid_most = bid_most.min(bid.saturating_add(guard.better_max));
            ask_least = ask_least.max(bid.saturating_add(1));
        }
        if let Some(ask) = ask {
            bid_most = bid_most.min(ask.saturating_sub(1));
            ask_least = ask_least.max(ask.saturating_sub(guard.better_max));
        }
        if let (Some(bid), Some(ask)) = (bid, ask) {
            let middle = bid.midpoint(ask);
            let away = guard.away(middle);
            (self.middles_least[at], self.middles_most[at]) =
                (middle.saturating_sub(away), middle.saturating_add(away));
            // A quote of one side has no middle: neither side may lie beyond the bound.
            bid_most = bid_most.min(self.middles_most[at]);
            ask_least = ask_least.max(self.middles_least[at]);
        }
        (self.bids_most[at], self.asks_least[at]) = (bid_most, ask_least);
    }

    /// Which of a row's quotes in a block are outside of their bounds. Without branches, in arrays, so that
    /// the compiler makes vectors of it.
    #[inline]
    pub(super) fn outside(&self, row: &Row<'_>, block: usize) -> u64 {
        let at = block * BLOCK..(block + 1) * BLOCK;
        let bids = array(&row.bids[at.clone()]);
        let asks = array(&row.asks[at.clone()]);
        let bids_most = array(&self.bids_most[at.clone()]);
        let asks_least = array(&self.asks_least[at.clone()]);
        let least = array(&self.middles_least[at.clone()]);
        let most = array(&self.middles_most[at]);
        let mut outside = [0_u8; BLOCK];
        for i in 0..BLOCK {
            let (bid, ask) = (bids[i], asks[i]);
            let middle = (bid >> 1) + (ask >> 1) + (bid & ask & 1);
            let is_two_sided = u8::from(bid != NO_BID) & u8::from(ask != NO_ASK);
            let is_away = u8::from(middle < least[i]) | u8::from(middle > most[i]);
            outside[i] =
                u8::from(bid > bids_most[i]) | u8::from(ask < asks_least[i]) | (is_two_sided & is_away);
        }
        bits(&outside)
    }

    /// Looks at a block: those that are outside and not pulled yet.
    #[inline]
    pub(super) fn look(&mut self, row: &Row<'_>, block: usize) -> u64 {
        let outside = self.outside(row, block);
        self.seen[block] |= outside;
        outside & !self.off[block]
    }

    /// Fetches what a look at a block needs.
    pub(super) fn fetch(&self, block: usize) {
        if self.guard.is_none() {
            return;
        }
        // A block of a column is two lines.
        let at = block * BLOCK;
        for column in [
            &self.bids_most,
            &self.asks_least,
            &self.middles_least,
            &self.middles_most,
        ] {
            prefetch::fetch(column, at);
            prefetch::fetch(column, at + BLOCK / 2);
        }
        prefetch::fetch(&self.off, block);
        prefetch::fetch(&self.seen, block);
    }

    /// The same of one quote.
    #[inline]
    pub(super) fn is_outside(&self, at: usize, (bid, ask): (u16, u16)) -> bool {
        let middle = bid.midpoint(ask);
        let is_away = middle < self.middles_least[at] || middle > self.middles_most[at];
        bid > self.bids_most[at] || ask < self.asks_least[at] || (bid != NO_BID && ask != NO_ASK && is_away)
    }

    pub(super) fn is_off(&self, at: usize) -> bool {
        self.off[at / BLOCK] & 1 << (at % BLOCK) != 0
    }

    /// One is outside again, or still.
    #[inline]
    pub(super) fn see(&mut self, at: usize) {
        self.seen[at / BLOCK] |= 1 << (at % BLOCK);
    }

    /// Pulls an option whose quote is outside: why.
    #[cold]
    pub(super) fn pull(&mut self, now: Nanos, at: usize, wanted: (u16, u16)) -> OffMarket {
        let (market, (bid, ask)) = (self.best[at], wanted);
        let why = match () {
            () if self.bids_most[at] == NO_BID && self.asks_least[at] == NO_ASK => OffMarket::NoMarket,
            () if (market.1 != NO_ASK && bid >= market.1) || (bid_of(market) && ask <= market.0) => {
                OffMarket::Crosses
            }
            () if self.is_away(at, wanted) => OffMarket::OffMid,
            () => OffMarket::TooGood,
        };
        self.off[at / BLOCK] |= 1 << (at % BLOCK);
        self.counts[why as usize] += 1;
        self.pulled[at] = Pulled { why, wanted, market };
        let due = now.after(self.calm_ns());
        self.next = Some(self.next.map_or(due, |next| next.min(due)));
        why
    }

    fn is_away(&self, at: usize, (bid, ask): (u16, u16)) -> bool {
        let (least, most) = (self.middles_least[at], self.middles_most[at]);
        match (bid != NO_BID, ask != NO_ASK) {
            (true, true) => !(least..=most).contains(&bid.midpoint(ask)),
            _ => bid > most || ask < least,
        }
    }

    fn calm_ns(&self) -> u64 {
        self.guard.map_or(0, |guard| guard.calm_ns)
    }

    /// When [`Markets::release`] has something to do.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.next
    }

    /// Options of a block that were not seen outside of their bounds for long enough are pulled no more:
    /// which.
    pub(super) fn release(&mut self, block: usize) -> u64 {
        let calm = self.off[block] & !core::mem::take(&mut self.seen[block]);
        for at in places(block, calm) {
            let count = &mut self.counts[self.pulled[at].why as usize];
            *count = count.saturating_sub(1);
        }
        self.off[block] &= !calm;
        calm
    }

    /// The clock was looked at.
    pub(super) fn looked(&mut self, now: Nanos) {
        let any = self.off.iter().any(|off| *off != 0);
        self.next = any.then(|| now.after(self.calm_ns()));
    }

    /// An option that is pulled.
    pub(super) fn pulled(&self, at: usize) -> Option<Pulled> {
        (at < self.pulled.len() && self.is_off(at)).then(|| self.pulled[at])
    }

    /// How many are pulled, in the order of [`OffMarket::ALL`].
    pub(super) fn counts(&self) -> [u32; 4] {
        self.counts
    }

    /// A quote leaves: the book will show it.
    #[inline]
    pub(super) fn tell(&mut self, now: Nanos, entry: &MassQuoteEntry) {
        let Some(lately) = self.told.get_mut(usize::from(entry.quote)) else {
            return;
        };
        let sides = [(entry.bid_ticks, entry.bid_qty), (entry.ask_ticks, entry.ask_qty)];
        for ((told, next), (ticks, qty)) in lately.iter_mut().zip(sides) {
            if qty.is_zero() {
                continue;
            }
            told[usize::from(*next) % TOLD] = ShownQuote {
                at: now,
                ticks,
                qty: qty.0,
            };
            *next = next.wrapping_add(1) % TOLD as u8;
        }
    }

    /// Whether a level could be a quote of ours that was told of lately: of its price, and no larger.
    #[inline]
    pub(super) fn was_told(&self, now: Nanos, at: usize, side: Side, (ticks, qty): (u16, Volume)) -> bool {
        let Some(lately) = self.told.get(at) else {
            return false;
        };
        let (told, _) = &lately[side as usize];
        let is_it = |told: &ShownQuote| {
            told.ticks == ticks && qty.0 <= u64::from(told.qty) && now.since(told.at) <= OURS_NS
        };
        told.iter().any(is_it)
    }
}

fn bid_of((bid, _): (u16, u16)) -> bool {
    bid != NO_BID
}
