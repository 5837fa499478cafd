//! A small model of a SIP: the displayed orders of one engine, shared out among several participants, or
//! those of several venues, and what a plan makes of that: a quote of each participant, the national best,
//! the best odd lots.
//!
//! - An order belongs to the participant `order number % participants`; in a [`Market`](crate::Market) a
//!   participant is a venue with a book of its own.
//! - A participant's quote is the best price at which its orders, better ones included, make up a round lot,
//!   rounded down to round lots. What stands before that price are its odd lots.
//! - The national best is the best quote by price, then size, then time. A side that the limit prices forbid
//!   (a bid above the upper, an offer below the lower one) does not count.
//! - The best odd lots are better than the national best, or there is none.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Price, Qty, Side, Volume};
use tickwire_persist::persist;

use crate::displayed::DisplayedLevels;
use crate::engine::Engine;
use crate::order::{CrossFill, Execution, Order};

/// A participant that fails for a while: its quotes are void.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Which one, from 0.
    pub participant: usize,
    /// How long after the opening of the market.
    pub after_ns: u64,
    /// For how long.
    pub lasts_ns: u64,
}

/// The model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SipModel {
    /// Among how many participants the orders are shared out, 1 to 12. Default 8.
    pub participants: usize,
    /// Shares of a round lot. Default 100.
    pub round_lot: u32,
    /// How far the limit prices are from the reference price, in 1/10,000 of it; 0: there are none. Default 500.
    pub band_bps: u32,
    /// Default: none.
    pub outage: Option<Outage>,
    /// The participants are venues of a [`Market`](crate::Market) with books of their own, which are looked
    /// at instead of sharing out the orders of one engine. Default: no.
    pub is_told: bool,
}

impl Default for SipModel {
    fn default() -> SipModel {
        SipModel {
            participants: 8,
            round_lot: 100,
            band_bps: 500,
            outage: None,
            is_told: false,
        }
    }
}

/// A price and a size; size 0: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Interest {
    pub(crate) price: Price,
    pub(crate) qty: u32,
}

/// Interest of a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Best {
    pub(crate) interest: Interest,
    /// Its index; meaningless without a size.
    pub(crate) participant: usize,
}

/// The most odd-lot levels that are shown of a side.
pub(crate) const ODD_LOTS_MAX: usize = 4;

/// A participant's quote of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Quote {
    /// By side.
    pub(crate) best: [Interest; 2],
    /// By side: some order improves its price for whoever takes it.
    pub(crate) retail: [bool; 2],
    /// By side: within the limit prices.
    pub(crate) executable: [bool; 2],
    /// By side, best first; sizes are below a round lot.
    pub(crate) odd_lots: [[Interest; ODD_LOTS_MAX]; 2],
}

impl Quote {
    const NONE: Quote = Quote {
        best: [Interest {
            price: Price::ZERO,
            qty: 0,
        }; 2],
        retail: [false; 2],
        executable: [true; 2],
        odd_lots: [[Interest {
            price: Price::ZERO,
            qty: 0,
        }; ODD_LOTS_MAX]; 2],
    };

    /// The quote without its odd lots.
    pub(crate) fn protected(&self) -> Quote {
        Quote {
            odd_lots: Quote::NONE.odd_lots,
            ..*self
        }
    }

    /// What counts for the national best.
    fn counted(&self, side: Side) -> Interest {
        match self.executable[side as usize] {
            true => self.best[side as usize],
            false => Interest::default(),
        }
    }
}

/// What is the best of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct National {
    /// By side.
    pub(crate) best: [Best; 2],
    /// By side.
    pub(crate) odd_lots: [Best; 2],
}

/// A participant's quote changed, and with it perhaps what is best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Update {
    pub(crate) instrument: InstrumentId,
    pub(crate) participant: usize,
    pub(crate) quote: Quote,
    /// What it was.
    pub(crate) before: Quote,
    pub(crate) national: National,
    /// What it was.
    pub(crate) national_before: National,
    /// Limit prices, lower first.
    pub(crate) band: Option<[Price; 2]>,
}

#[derive(Clone, Copy)]
struct Standing {
    quote: Quote,
    /// By side: number of the update since which it has counted as it does.
    since: [u64; 2],
    /// By side: how many resting orders improve their price.
    improvers: [u32; 2],
}

/// What a venue's book shows: its quote and its odd lots.
#[derive(Clone, Copy, Default)]
struct ShownQuote {
    best: [Interest; 2],
    odd_lots: [[Interest; ODD_LOTS_MAX]; 2],
}

struct Security {
    standing: Vec<Standing>,
    national: National,
    band: Option<[Price; 2]>,
    halted: bool,
}

/// See the module's description.
pub(crate) struct Consolidation {
    model: SipModel,
    first: u32,
    levels: Vec<DisplayedLevels>,
    securities: Vec<Security>,
    /// By participant: its quotes are void for now.
    down: Vec<bool>,
    /// By security and participant, of a model that is told.
    told: Vec<ShownQuote>,
    updates: u64,
}

impl Consolidation {
    /// Empty books of the instruments `first` to `first + count`, exclusive.
    pub(crate) fn new(model: SipModel, first: InstrumentId, count: usize) -> Consolidation {
        let participants = match model.is_told {
            true => super::PARTICIPANTS_MAX,
            false => model.participants.clamp(1, super::PARTICIPANTS_MAX),
        };
        let standing = Standing {
            quote: Quote::NONE,
            since: [0; 2],
            improvers: [0; 2],
        };
        Consolidation {
            model: SipModel {
                round_lot: model.round_lot.max(1),
                ..model
            },
            first: first.0,
            told: match model.is_told {
                true => vec![ShownQuote::default(); participants * count],
                false => Vec::new(),
            },
            levels: (0..if model.is_told { 0 } else { participants })
                .map(|_| DisplayedLevels::new(first, count))
                .collect(),
            securities: (0..count)
                .map(|_| Security {
                    standing: vec![standing; participants],
                    national: National::default(),
                    band: None,
                    halted: false,
                })
                .collect(),
            down: vec![false; participants],
            updates: 0,
        }
    }

    pub(crate) fn model(&self) -> SipModel {
        self.model
    }

    pub(crate) fn participants(&self) -> usize {
        self.down.len()
    }

    /// The instruments, in order of number.
    pub(crate) fn instruments(&self) -> impl Iterator<Item = InstrumentId> + use<> {
        (self.first..self.first + self.securities.len() as u32).map(InstrumentId)
    }

    fn at(&self, instrument: InstrumentId) -> Option<usize> {
        let at = instrument.0.checked_sub(self.first)? as usize;
        (at < self.securities.len()).then_some(at)
    }

    /// The participant that an order belongs to.
    fn owner(&self, order: &Order) -> usize {
        (order.id.0 % self.down.len() as u64) as usize
    }

    /// An order joined the book.
    pub(crate) fn rested(&mut self, order: &Order) -> Option<Update> {
        let owner = self.owner(order);
        self.levels[owner].rested(order);
        self.improve(order, owner, 1);
        self.refresh(order.instrument, owner)
    }

    /// An order traded.
    pub(crate) fn executed(&mut self, execution: &Execution) -> Option<Update> {
        let maker = &execution.maker;
        let owner = self.owner(maker);
        self.levels[owner].executed(execution);
        if maker.qty.0 == 0 {
            self.improve(maker, owner, -1);
        }
        self.refresh(maker.instrument, owner)
    }

    /// A displayed order traded in an auction.
    pub(crate) fn cross_filled(&mut self, fill: &CrossFill) -> Option<Update> {
        let owner = self.owner(&fill.order);
        self.levels[owner].cross_filled(fill);
        if fill.order.qty.is_zero() {
            self.improve(&fill.order, owner, -1);
        }
        self.refresh(fill.order.instrument, owner)
    }

    /// An order lost `by`.
    pub(crate) fn reduced(&mut self, order: &Order, by: Qty) -> Option<Update> {
        let owner = self.owner(order);
        self.levels[owner].reduced(order, by);
        self.refresh(order.instrument, owner)
    }

    /// An order left the book.
    pub(crate) fn deleted(&mut self, order: &Order) -> Option<Update> {
        let owner = self.owner(order);
        self.levels[owner].deleted(order);
        self.improve(order, owner, -1);
        self.refresh(order.instrument, owner)
    }

    fn improve(&mut self, order: &Order, owner: usize, by: i32) {
        if order.improvement > Price::ZERO
            && let Some(at) = self.at(order.instrument)
        {
            let improvers = &mut self.securities[at].standing[owner].improvers[order.side as usize];
            *improvers = improvers.saturating_add_signed(by);
        }
    }

    /// Looks at the book of a participant that is a venue; what is different.
    pub(crate) fn look(
        &mut self,
        instrument: InstrumentId,
        participant: usize,
        engine: &Engine,
    ) -> Option<Update> {
        let at = self.at(instrument)?;
        let (round_lot, participants) = (self.model.round_lot, self.participants());
        let told = self.told.get_mut(at * participants + participant)?;
        for side in Side::BOTH {
            let odd_lots = &mut told.odd_lots[side as usize];
            *odd_lots = Default::default();
            told.best[side as usize] = round_lots(engine.levels(instrument, side), round_lot, odd_lots);
        }
        self.refresh(instrument, participant)
    }

    /// Looks at a participant's orders again; what is different.
    pub(crate) fn refresh(&mut self, instrument: InstrumentId, participant: usize) -> Option<Update> {
        let at = self.at(instrument)?;
        let quote = self.quote(at, instrument, participant);
        let before = self.securities[at].standing[participant].quote;
        if quote == before {
            return None;
        }
        self.updates += 1;
        let updates = self.updates;
        let security = &mut self.securities[at];
        let standing = &mut security.standing[participant];
        for side in Side::BOTH {
            if quote.counted(side) != before.counted(side) {
                standing.since[side as usize] = updates;
            }
        }
        standing.quote = quote;
        let national_before = security.national;
        security.national = national(&security.standing);
        Some(Update {
            instrument,
            participant,
            quote,
            before,
            national: security.national,
            national_before,
            band: security.band,
        })
    }

    /// A participant's quote now.
    fn quote(&self, at: usize, instrument: InstrumentId, participant: usize) -> Quote {
        let security = &self.securities[at];
        let mut quote = Quote::NONE;
        if self.down[participant] || security.halted {
            return quote;
        }
        match self.told.get(at * self.participants() + participant) {
            Some(told) => (quote.best, quote.odd_lots) = (told.best, told.odd_lots),
            None => {
                for side in Side::BOTH {
                    let levels = self.levels[participant].levels(instrument, side);
                    let odd_lots = &mut quote.odd_lots[side as usize];
                    quote.best[side as usize] = round_lots(levels, self.model.round_lot, odd_lots);
                }
            }
        }
        quote.retail = security.standing[participant].improvers.map(|n| n > 0);
        if let Some([lower, upper]) = security.band {
            let [bid, ask] = quote.best;
            quote.executable = [
                bid.qty == 0 || bid.price <= upper,
                ask.qty == 0 || ask.price >= lower,
            ];
        }
        quote
    }

    /// A participant fails, or is back. [`Consolidation::refresh`] tells what that changes.
    pub(crate) fn set_down(&mut self, participant: usize, is_down: bool) {
        if let Some(down) = self.down.get_mut(participant) {
            *down = is_down;
        }
    }

    /// All quotes of a participant are void at once, and everybody calculates what is best without them.
    pub(crate) fn wipe_out(&mut self, participant: usize) {
        self.set_down(participant, true);
        for security in &mut self.securities {
            if let Some(standing) = security.standing.get_mut(participant) {
                (standing.quote, standing.since) = (Quote::NONE, [0; 2]);
                security.national = national(&security.standing);
            }
        }
    }

    /// Trading halts, or goes on. [`Consolidation::refresh`] tells what that changes.
    pub(crate) fn set_halted(&mut self, instrument: InstrumentId, halted: bool) -> bool {
        let Some(at) = self.at(instrument) else {
            return false;
        };
        core::mem::replace(&mut self.securities[at].halted, halted) != halted
    }

    /// New limit prices around a reference price, lower first; `None` if there are none, or the old ones are
    /// near enough (the reference has moved less than 1 %). [`Consolidation::refresh`] tells what that
    /// changes.
    pub(crate) fn set_reference(&mut self, instrument: InstrumentId, reference: Price) -> Option<[Price; 2]> {
        let at = self.at(instrument)?;
        let width = i64::from(self.model.band_bps);
        if width == 0 || reference <= Price::ZERO {
            return None;
        }
        let raw = reference.raw();
        let cent = Price::ONE_RAW / 100;
        let off = (raw / 10_000 * width).max(cent) / cent * cent;
        let middle = raw / cent * cent;
        let band = [
            Price::from_raw((middle - off).max(cent)),
            Price::from_raw(middle + off),
        ];
        if let Some([lower, upper]) = self.securities[at].band {
            let old = (lower.raw() + upper.raw()) / 2;
            if raw.abs_diff(old) * 100 < old.unsigned_abs() {
                return None;
            }
        }
        self.securities[at].band = Some(band);
        Some(band)
    }

    /// The limit prices.
    pub(crate) fn band(&self, instrument: InstrumentId) -> Option<[Price; 2]> {
        self.securities[self.at(instrument)?].band
    }

    /// What is best.
    pub(crate) fn national(&self, instrument: InstrumentId) -> National {
        self.at(instrument)
            .map_or(National::default(), |at| self.securities[at].national)
    }

    /// The quotes of those participants that have ever quoted.
    pub(crate) fn quotes(&self, instrument: InstrumentId) -> impl Iterator<Item = (usize, Quote)> + '_ {
        let standing = self.at(instrument).map(|at| &self.securities[at].standing);
        standing
            .into_iter()
            .flatten()
            .map(|s| s.quote)
            .enumerate()
            .filter(|(_, quote)| *quote != Quote::NONE)
    }

    /// The national best as a book has it.
    pub(crate) fn level(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        let best = self.national(instrument).best[side as usize].interest;
        (best.qty > 0).then_some(Level {
            price: best.price,
            qty: Volume(best.qty.into()),
            orders: 0,
        })
    }
}

/// The best price at which orders make up a round lot; what stands before it goes to `odd_lots`.
fn round_lots(
    levels: impl Iterator<Item = Level>,
    lot: u32,
    odd_lots: &mut [Interest; ODD_LOTS_MAX],
) -> Interest {
    let (mut sum, mut nth) = (0_u64, 0);
    for level in levels {
        sum += level.qty.0;
        let lots = u32::try_from(sum).unwrap_or(u32::MAX) / lot;
        if lots > 0 {
            return Interest {
                price: level.price,
                qty: lots * lot,
            };
        }
        if let Some(odd) = odd_lots.get_mut(nth) {
            *odd = Interest {
                price: level.price,
                qty: level.qty.0 as u32, // below a round lot
            };
        }
        nth += 1;
    }
    Interest::default()
}

/// Larger is better.
fn rank(side: Side, interest: Interest) -> (i64, u32) {
    let price = match side {
        Side::Bid => interest.price.raw(),
        Side::Ask => -interest.price.raw(),
    };
    (price, interest.qty)
}

fn national(standing: &[Standing]) -> National {
    let mut national = National::default();
    for side in Side::BOTH {
        let at = side as usize;
        let counted = standing
            .iter()
            .enumerate()
            .map(|(participant, s)| (participant, s.quote.counted(side), s.since[at]))
            .filter(|(_, interest, _)| interest.qty > 0);
        let best =
            counted.max_by_key(|(_, interest, since)| (rank(side, *interest), core::cmp::Reverse(*since)));
        if let Some((participant, interest, _)) = best {
            national.best[at] = Best {
                interest,
                participant,
            };
        }
        let odd_lots = standing
            .iter()
            .enumerate()
            .map(|(participant, s)| (participant, s.quote.odd_lots[at][0]))
            .filter(|(_, odd)| {
                let best = national.best[at].interest;
                odd.qty > 0 && (best.qty == 0 || rank(side, *odd).0 > rank(side, best).0)
            });
        let best = odd_lots.max_by_key(|(p, odd)| (rank(side, *odd), core::cmp::Reverse(*p)));
        if let Some((participant, interest)) = best {
            national.odd_lots[at] = Best {
                interest,
                participant,
            };
        }
    }
    national
}

persist!(value struct Interest { price, qty });
persist!(value struct Best { interest, participant });
persist!(value struct Quote { best, retail, executable, odd_lots });
persist!(value struct National { best, odd_lots });
persist!(value struct Standing { quote, since, improvers });
persist!(value struct ShownQuote { best, odd_lots });
persist!(value struct Security { standing, national, band, halted });
persist!(struct Consolidation { securities, down, told, updates } each { levels } not { model, first });

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::OrderId;

    fn order(id: u64, side: Side, cents: i64, qty: u32) -> Order {
        Order {
            id: OrderId(id),
            instrument: InstrumentId(1),
            side,
            price: Price::from_raw(cents * Price::ONE_RAW / 100),
            qty: Qty(qty),
            ..Order::default()
        }
    }

    fn shown(best: Best) -> (usize, i64, u32) {
        (
            best.participant,
            best.interest.price.raw() * 100 / Price::ONE_RAW,
            best.interest.qty,
        )
    }

    #[test]
    fn quotes_are_round_lots_and_the_best_goes_by_price_size_and_time() {
        let model = SipModel {
            participants: 3,
            ..SipModel::default()
        };
        let mut sip = Consolidation::new(model, InstrumentId(1), 1);
        let bid = |id, cents, qty| order(id, Side::Bid, cents, qty);
        let update = sip.rested(&bid(3, 1000, 250)).unwrap();
        assert_eq!(
            (update.participant, shown(update.national.best[0])),
            (0, (0, 1000, 200))
        );
        let update = sip.rested(&bid(1, 1000, 200)).unwrap();
        assert_eq!(shown(update.national.best[0]), (0, 1000, 200), "the earlier one");
        let update = sip.rested(&bid(2, 1000, 300)).unwrap();
        assert_eq!(shown(update.national.best[0]), (2, 1000, 300), "the larger one");
        let update = sip.rested(&bid(4, 1001, 60)).unwrap();
        assert_eq!(
            update.quote.best[0].price,
            bid(0, 1000, 0).price,
            "an odd lot is no quote"
        );
        assert_eq!(update.quote.best[0].qty, 200, "260 shares down to there");
        assert_eq!(shown(update.national.odd_lots[0]), (1, 1001, 60));
        let update = sip.rested(&bid(7, 1001, 40)).unwrap();
        assert_eq!(
            shown(update.national.best[0]),
            (1, 1001, 100),
            "two odd lots are a round one"
        );
        assert_eq!(update.national.odd_lots[0], Best::default());
        sip.wipe_out(1);
        assert_eq!(shown(sip.national(InstrumentId(1)).best[0]), (2, 1000, 300));
        assert_eq!(sip.deleted(&bid(4, 1001, 60)), None, "it is down");
        sip.set_down(1, false);
        let update = sip.refresh(InstrumentId(1), 1).unwrap();
        assert_eq!(shown(update.national.odd_lots[0]), (1, 1001, 40));
    }

    #[test]
    fn quotes_beyond_the_limit_prices_do_not_count() {
        let mut sip = Consolidation::new(SipModel::default(), InstrumentId(1), 1);
        let band = sip.set_reference(InstrumentId(1), Price::from_raw(10 * Price::ONE_RAW));
        let [lower, upper] = band.unwrap();
        assert_eq!((lower.raw(), upper.raw()), (9_500_000_000, 10_500_000_000));
        let near = Price::from_raw(10_050_000_000);
        assert_eq!(sip.set_reference(InstrumentId(1), near), None, "half a percent");
        let update = sip.rested(&order(1, Side::Bid, 1051, 100)).unwrap();
        assert_eq!(update.quote.executable, [false, true]);
        assert_eq!(update.national, National::default());
        let update = sip.rested(&order(2, Side::Bid, 1050, 100)).unwrap();
        assert_eq!(shown(update.national.best[0]), (2, 1050, 100));
        assert!(sip.set_halted(InstrumentId(1), true));
        let update = sip.refresh(InstrumentId(1), 2).unwrap();
        assert_eq!(update.national, National::default());
    }
}
