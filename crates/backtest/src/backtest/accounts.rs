//! What was traded, what it is worth, and what came of it over time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tickwire_market::{BookState, InstrumentId, Nanos, Price, Side};
use tickwire_trading::strategy::{Markets, Strategy};

use super::Backtest;
use crate::{Fees, Fill, HORIZONS, InstrumentResult, StrategyResult};

/// The gain over time in a bounded number of points: when there are too many, every other one goes.
#[derive(Debug, Default)]
pub(super) struct Curve {
    pub(super) points: Vec<(Nanos, i128)>,
    step: u64,
    next: Nanos,
}

impl Curve {
    const MAX: usize = 4_096;

    fn put(&mut self, at: Nanos, gain: i128) {
        if at < self.next {
            // A span's last value is the one to be seen.
            if let Some(last) = self.points.last_mut() {
                *last = (at, gain);
            }
            return;
        }
        if self.points.len() == Curve::MAX {
            let mut nth = 0_u32;
            self.points.retain(|_| {
                nth += 1;
                nth.is_multiple_of(2)
            });
            self.step = self.step.max(Nanos::MILLI) * 2;
        }
        self.points.push((at, gain));
        self.next = at.after(self.step);
    }
}

/// What was traded of an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    position: i64,
    /// Paid minus received: price in 1e-9 times quantity.
    cost: i128,
    traded: [u64; 2],
    last_price: Price,
    last_mid: Option<Price>,
    fees: i128,
}

impl Account {
    /// Something was traded.
    fn take(&mut self, fill: &Fill, fee: i64) {
        let notional = fill.price.notional(u64::from(fill.qty.0));
        let (signed, sign) = match fill.side {
            Side::Bid => (i64::from(fill.qty.0), 1),
            Side::Ask => (-i64::from(fill.qty.0), -1),
        };
        self.position += signed;
        self.cost += sign * notional;
        self.traded[fill.side as usize] += u64::from(fill.qty.0);
        self.last_price = fill.price;
        self.fees += i128::from(fee) * i128::from(fill.qty.0);
    }

    fn mark(&self) -> Price {
        self.last_mid.unwrap_or(self.last_price)
    }

    /// In 1e-9 units of the currency; `point` is what one unit of the price is worth, in 1e-9.
    fn gain(&self, point: i64) -> i128 {
        let points = i128::from(self.mark().raw()) * i128::from(self.position) - self.cost;
        points * i128::from(point) / i128::from(Price::ONE_RAW)
    }
}

/// What was traded and what came of it.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) fees: Fees,
    /// Middles to be looked at: when, fill, horizon.
    pub(super) looks: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    /// What a unit of price is worth, in 1e-9 units of the currency.
    pub(super) points: BTreeMap<InstrumentId, i64>,
    pub(super) accounts: BTreeMap<InstrumentId, Account>,
    /// When what is held is valued next.
    pub(super) next_second: Nanos,
    high: i128,
    pub(super) drawdown: i128,
    pub(super) curve: Curve,
}

impl Ledger {
    pub(super) fn new(fees: Fees) -> Ledger {
        Ledger {
            fees,
            looks: BinaryHeap::new(),
            points: BTreeMap::new(),
            accounts: BTreeMap::new(),
            next_second: Nanos::ZERO,
            high: 0,
            drawdown: 0,
            curve: Curve::default(),
        }
    }
}

/// The middle of a book that can be trusted and does not cross.
fn middle_of(markets: Markets<'_>, instrument: InstrumentId) -> Option<Price> {
    let book = markets.book(instrument)?;
    if book.state() != BookState::Live {
        return None;
    }
    let (bid, ask) = (book.best(Side::Bid)?.price, book.best(Side::Ask)?.price);
    (bid < ask).then(|| Price::from_raw(((i128::from(bid.raw()) + i128::from(ask.raw())) >> 1) as i64))
}

impl<S: Strategy> Backtest<S> {
    /// Takes the fills that are new into the accounts.
    pub(super) fn account(&mut self) {
        while let Some(fill) = self.wire.fills.get(self.wire.new_fills).copied() {
            let place = self.wire.new_fills;
            self.wire.new_fills += 1;
            self.wire.has_news = true;
            if self.ledger.accounts.is_empty() {
                self.ledger.next_second = self.now.after(Nanos::SECOND);
            }
            let mid = self.mid(fill.instrument);
            self.wire.fills[place].mid = mid;
            for (horizon, ns) in HORIZONS.into_iter().enumerate() {
                self.ledger
                    .looks
                    .push(Reverse((fill.at.after(ns), place, horizon)));
            }
            let fee = match fill.is_maker {
                true => self.ledger.fees.maker,
                false => self.ledger.fees.taker,
            };
            let who = self.who(fill.order);
            let own = &mut self.entered[who];
            own.fills[0] += 1;
            own.fills[1] += u64::from(fill.is_maker);
            own.accounts.entry(fill.instrument).or_default().take(&fill, fee);
            self.ledger
                .accounts
                .entry(fill.instrument)
                .or_default()
                .take(&fill, fee);
            self.value();
        }
    }

    pub(super) fn look(&mut self) {
        if let Some(Reverse((_, fill, horizon))) = self.ledger.looks.pop() {
            let instrument = self.wire.fills[fill].instrument;
            self.wire.fills[fill].mark_outs[horizon] = self.mid(instrument);
        }
    }

    pub(super) fn mid(&self, instrument: InstrumentId) -> Option<Price> {
        middle_of(Markets::new(&self.books.0, self.bits), instrument)
    }

    /// Values what is held, and keeps the largest loss from a high.
    pub(super) fn value(&mut self) {
        let markets = Markets::new(&self.books.0, self.bits);
        let ledger = &mut self.ledger;
        let mut total = 0;
        for (id, account) in &mut ledger.accounts {
            let point = ledger.points.get(id).copied().unwrap_or(Price::ONE_RAW);
            account.last_mid = middle_of(markets, *id).or(account.last_mid);
            total += account.gain(point) - account.fees;
        }
        ledger.high = ledger.high.max(total);
        ledger.drawdown = ledger.drawdown.max(ledger.high - total);
        ledger.curve.put(self.now, total);
    }

    /// What became of each instrument; what is held of it is worth what the middle of its book says, whoever
    /// holds it.
    pub(super) fn results(&self, accounts: &BTreeMap<InstrumentId, Account>) -> Vec<InstrumentResult> {
        let results = accounts.iter().map(|(id, account)| {
            let point = self.ledger.points.get(id).copied().unwrap_or(Price::ONE_RAW);
            let of_all = self.ledger.accounts.get(id).copied().unwrap_or_default();
            let account = Account {
                last_mid: of_all.last_mid,
                last_price: of_all.last_price,
                ..*account
            };
            let mut known = self.entered.iter().flat_map(|one| one.conductor.instruments());
            let symbol = known.find(|(known, ..)| known == id).map(|(_, symbol, _)| symbol);
            InstrumentResult {
                instrument: *id,
                symbol: symbol.unwrap_or_default(),
                position: account.position,
                traded: account.traded,
                mark: account.mark(),
                gain: account.gain(point),
                fees: account.fees,
            }
        });
        results.collect()
    }

    /// What became of each strategy, in their order; after [`Backtest::finish`].
    pub fn results_of_each(&self) -> Vec<StrategyResult> {
        let results = self.entered.iter().map(|one| {
            let instruments = self.results(&one.accounts);
            StrategyResult {
                fills: one.fills,
                gain: instruments.iter().map(|i| i.gain - i.fees).sum(),
                instruments,
            }
        });
        results.collect()
    }
}
