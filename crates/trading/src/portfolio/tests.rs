//! A portfolio against a recount of its whole history, and its risk against revaluation.

use super::*;
use crate::quoter::tests::Random;
use alloc::vec::Vec;
use tickwire_market::{Currency, Date, InstrumentId};
use tickwire_options::batch::Engine;

const POINT: i64 = Price::ONE_RAW;

/// Dollars a point.
fn fifty() -> PointValue {
    PointValue::new(50 * POINT, Currency::USD).expect("above 0")
}

fn option(expiry: u16, strike: i64, right: PutCall) -> Listing {
    Listing {
        contract: Contract::Option {
            expiry: Date::default(),
            multiplier: 50,
            strike: Price::from_raw(strike * POINT),
            right,
            underlying: InstrumentId(1),
        },
        value: fifty(),
        expiry,
        fee: Price::from_raw(450_000_000),
    }
}

/// A future, and calls and puts of two expiries.
fn listings() -> Vec<Listing> {
    let mut all = vec![Listing {
        contract: Contract::Future {
            expiry: Date::default(),
            multiplier: 50,
        },
        value: fifty(),
        expiry: 0,
        fee: Price::from_raw(250_000_000),
    }];
    for expiry in 0..2 {
        for strike in (4_800..=5_200).step_by(50) {
            let right = if strike < 5_000 {
                PutCall::Put
            } else {
                PutCall::Call
            };
            all.push(option(expiry, strike, right));
        }
    }
    all
}

fn market(front: f64, vol: f64, passed_days: f64) -> MarketState {
    let expiry = |days: f64, roll: f64| ExpiryState {
        forward: front + roll,
        years: (days - passed_days) / 365.0,
        days: days - passed_days,
        rate: 0.04,
        model: Model::Black76,
    };
    let all = listings();
    let levels = all
        .iter()
        .enumerate()
        .map(|(at, listing)| match listing.contract {
            Contract::Option { .. } => vol + 0.001 * at as f64,
            _ => front,
        });
    MarketState {
        expiries: vec![expiry(9.0, 0.0), expiry(37.0, 12.5)],
        levels: levels.collect(),
    }
}

#[test]
fn money_is_conserved_against_a_recount_of_every_fill() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut listings = listings();
        for (at, listing) in listings.iter_mut().enumerate().filter(|_| seed % 2 == 1) {
            // Points whose money is rounded.
            let odd = 694_567_123 + at as i64;
            listing.value = PointValue::new(odd, Currency::RUB).expect("above 0");
        }
        let mut portfolio = Portfolio::new(&listings);
        let (mut front, mut vol, mut days) = (5_000.0, 0.18, 0.0);
        // Signed contracts and price of everything that ever came in; fees.
        let mut history: Vec<(usize, i64, i64)> = Vec::new();
        let mut made: Vec<Trade> = Vec::new();
        let mut fees = 0_i128;
        for at in [1_usize, 5, 12] {
            let (qty, settle) = (
                random.below(40) as i64 - 20,
                Price::from_raw(random.below(90) as i64 * POINT),
            );
            portfolio.open(at as u32, qty, settle).expect("it is there");
            history.push((at, qty, settle.raw()));
        }
        for step in 0..400 {
            match random.below(3) {
                0 => {
                    front += random.below(41) as f64 / 4.0 - 5.0;
                    vol = (vol + random.below(21) as f64 / 10_000.0 - 0.001).clamp(0.05, 0.9);
                    days += 0.01;
                    portfolio.revalue(&market(front, vol, days)).expect("valued");
                }
                _ => {
                    let at = random.below(listings.len() as u64) as usize;
                    let side = Side::BOTH[random.below(2) as usize];
                    let qty = 1 + random.below(30) as u32;
                    let price = Price::from_raw(random.below(200) as i64 * POINT / 4);
                    let maybe = |random: &mut Random, price: i64| {
                        (!random.one_in(3)).then_some(Price::from_raw(price))
                    };
                    let theo = price.raw() + random.below(9) as i64 * POINT / 20;
                    let trade = Trade {
                        at: Nanos(step),
                        instrument: at as u32,
                        side,
                        qty: Qty(qty),
                        price,
                        theo: maybe(&mut random, theo),
                        forward: maybe(&mut random, (front * 1e9) as i64),
                    };
                    portfolio.trade(&trade).expect("it is there");
                    let signed = if side == Side::Bid {
                        i64::from(qty)
                    } else {
                        -i64::from(qty)
                    };
                    history.push((at, signed, price.raw()));
                    fees += i128::from(listings[at].fee.raw()) * i128::from(qty);
                    made.push(trade);
                    if random.one_in(8) {
                        let broken = made.swap_remove(random.below(made.len() as u64) as usize);
                        let (at, theo) = (broken.instrument as usize, maybe(&mut random, theo));
                        portfolio
                            .take_back(&Trade { theo, ..broken })
                            .expect("it is there");
                        let same = |(which, qty, price): &(usize, i64, i64)| {
                            (*which, *price) == (at, broken.price.raw())
                                && qty.unsigned_abs() == u64::from(broken.qty.0)
                                && (*qty > 0) == (broken.side == Side::Bid)
                        };
                        history.remove(history.iter().rposition(same).expect("it was made"));
                        fees -= i128::from(listings[at].fee.raw()) * i128::from(broken.qty.0);
                    }
                }
            }
            if random.one_in(4) {
                let at = random.below(listings.len() as u64) as u32;
                let by = MarkBy::ALL[random.below(3) as usize];
                portfolio
                    .mark(at, by, Price::from_raw(random.below(90) as i64 * POINT))
                    .expect("it is there");
            }
            for by in MarkBy::ALL {
                let (mut gross, mut unmarked) = (0_i128, 0);
                for (at, listing) in listings.iter().enumerate() {
                    let mine = || history.iter().filter(|(which, ..)| *which == at);
                    let held: i64 = mine().map(|(_, qty, _)| qty).sum();
                    assert_eq!(portfolio.position(at as u32).qty, held);
                    let mark = portfolio.marked(at as u32, by);
                    unmarked += u32::from(mark.is_none() && held != 0);
                    let worth = |price: i64, qty: i64| i128::from(price) * i128::from(qty);
                    let now: i128 = mark.map_or(0, |mark| worth(mark.raw(), held));
                    let paid: i128 = mine().map(|(_, qty, price)| worth(*price, *qty)).sum();
                    gross += listing.value.money(now - paid);
                }
                let gain = portfolio.gain(by);
                assert_eq!(
                    gain,
                    Gain {
                        gross,
                        fees,
                        unmarked
                    },
                    "seed {seed}, step {step}, {by:?}"
                );
            }
        }
        portfolio.revalue(&market(front, vol, days)).expect("valued");
        let explained = portfolio.explained();
        assert_eq!(
            explained.total(),
            portfolio.gain(MarkBy::Theo).net(),
            "seed {seed}: not to the last digit"
        );
    }
}

#[test]
fn greeks_explain_small_moves_and_edge_is_what_was_paid_less_than_the_value() {
    let mut portfolio = Portfolio::new(&listings());
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    for (at, side, qty) in [
        (0, Side::Ask, 4),
        (3, Side::Bid, 10),
        (6, Side::Ask, 7),
        (14, Side::Bid, 5),
    ] {
        let theo = portfolio.marked(at, MarkBy::Theo).expect("valued");
        let better = if side == Side::Bid {
            -POINT / 10
        } else {
            POINT / 10
        };
        portfolio
            .trade(&Trade {
                at: Nanos(0),
                instrument: at,
                side,
                qty: Qty(qty),
                price: Price::from_raw(theo.raw() + better),
                theo: None,
                forward: None,
            })
            .expect("it is there");
    }
    let explained = portfolio.explained();
    assert_eq!(explained.edge, 26 * 50 * i128::from(POINT / 10));
    assert_eq!(
        explained.fees,
        -i128::from(4 * 250_000_000_i64 + 22 * 450_000_000)
    );
    portfolio.revalue(&market(5_003.0, 0.181, 0.05)).expect("valued");
    let moved = portfolio.explained();
    let parts = [moved.delta, moved.gamma, moved.vega, moved.theta];
    let size: i128 = parts.iter().map(|part| part.abs()).sum();
    assert!(parts.iter().all(|part| *part != 0));
    assert!(moved.rest.abs() < size / 100, "{moved:?}");
    assert_eq!(moved.total(), portfolio.gain(MarkBy::Theo).net());
}

#[test]
fn a_trade_between_two_revaluations_earns_from_the_forward_it_was_made_at() {
    let mut portfolio = Portfolio::new(&listings());
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    // At 5004, half of the way: what the forward moves from there on is delta's, and its value then was that
    // of 5004.
    let mut then = portfolio.clone();
    then.revalue(&market(5_004.0, 0.18, 0.0)).expect("valued");
    let theo = then.marked(6, MarkBy::Theo).expect("valued");
    portfolio
        .trade(&Trade {
            at: Nanos(0),
            instrument: 6,
            side: Side::Bid,
            qty: Qty(10),
            price: theo,
            theo: Some(theo),
            forward: Some(Price::from_raw(5_004 * POINT)),
        })
        .expect("it is there");
    portfolio.revalue(&market(5_008.0, 0.18, 0.0)).expect("valued");
    let explained = portfolio.explained();
    let greeks = then.greeks(6);
    let delta = explained.delta as f64 / 1e9;
    // Greeks are those of the last revaluation, at 5000.
    assert!(
        (delta - 50.0 * 10.0 * 4.0 * greeks.delta).abs() < 0.1 * delta,
        "{delta}"
    );
    assert_eq!(explained.edge, 0);
    assert_eq!(explained.total(), portfolio.gain(MarkBy::Theo).net());
}

/// A portfolio with positions of all kinds.
fn mixed() -> Portfolio {
    let mut portfolio = Portfolio::new(&listings());
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    for at in 0..listings().len() as u32 {
        let theo = portfolio.marked(at, MarkBy::Theo).expect("valued");
        let qty = i64::from(at * 7 % 13) - 6;
        portfolio.open(at, qty, theo).expect("it is there");
    }
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    portfolio
}

#[test]
fn risk_is_what_revaluation_shows() {
    let portfolio = mixed();
    let risk = portfolio.quick_risk(fifty());
    let worth = |front: f64, vol: f64, passed: f64| {
        let mut moved = portfolio.clone();
        moved.revalue(&market(front, vol, passed)).expect("valued");
        moved.gain(MarkBy::Theo).net() as f64 / 1e9
    };
    let near = |what: &str, got: f64, wanted: f64| {
        assert!(
            (got - wanted).abs() < 2e-3 * wanted.abs() + 1e-3,
            "{what}: {got}, not {wanted}"
        );
    };
    let base = worth(5_000.0, 0.18, 0.0);
    let (up, down) = (worth(5_000.5, 0.18, 0.0), worth(4_999.5, 0.18, 0.0));
    near("delta", risk.total.delta, (up - down) / 50.0);
    near("gamma", risk.total.gamma, (up - 2.0 * base + down) / 0.25 / 50.0);
    near(
        "vega",
        risk.total.vega,
        (worth(5_000.0, 0.1801, 0.0) - worth(5_000.0, 0.1799, 0.0)) * 50.0,
    );
    near(
        "theta",
        risk.total.theta,
        (worth(5_000.0, 0.18, 0.01) - worth(5_000.0, 0.18, -0.01)) * 50.0,
    );
    let sums = risk.expiries.iter().map(|row| row.vega).sum::<f64>();
    near("vega of expiries", sums, risk.total.vega);
    let [near_row, far] = [risk.expiries[0], risk.expiries[1]];
    near(
        "weight",
        near_row.weighted_vega,
        near_row.vega * (30.0_f64 / 9.0).sqrt(),
    );
    near("weight", far.weighted_vega, far.vega * (30.0_f64 / 37.0).sqrt());
    assert_eq!(risk.underlying.position, -6);
    assert_eq!(risk.underlying.delta, -6.0);
    let ladder = portfolio.strike_ladder(fifty());
    let gamma: f64 = ladder
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| cell.gamma)
        .sum();
    near("gamma of strikes", gamma, risk.total.gamma);
    let contracts: i64 = ladder
        .iter()
        .flat_map(|row| &row.cells)
        .map(|cell| cell.position)
        .sum();
    assert_eq!(contracts, near_row.position + far.position);
    assert!(ladder.windows(2).all(|rows| rows[0].strike < rows[1].strike));
}

#[test]
fn the_slide_is_a_full_revaluation_and_limits_are_told() {
    let portfolio = mixed();
    let (spots, vols) = ([-0.1, -0.02, 0.0, 0.02, 0.1], [-0.05, 0.0, 0.05]);
    let slide = portfolio.slide(&Engine::detect(), &spots, &vols).expect("a grid");
    let state = market(5_000.0, 0.18, 0.0);
    let before = portfolio.gain(MarkBy::Theo).net();
    let mut worst = f64::INFINITY;
    for (n, gain) in slide.gains.iter().enumerate() {
        let (spot, vol) = (spots[n / 3], vols[n % 3]);
        let mut moved = state.clone();
        moved
            .expiries
            .iter_mut()
            .for_each(|expiry| expiry.forward *= 1.0 + spot);
        for (level, listing) in moved.levels.iter_mut().zip(listings()) {
            match listing.contract {
                Contract::Option { .. } => *level += vol,
                _ => *level *= 1.0 + spot,
            }
        }
        let mut other = portfolio.clone();
        other.revalue(&moved).expect("valued");
        let wanted = (other.gain(MarkBy::Theo).net() - before) as f64 / 1e9;
        assert!((gain - wanted).abs() < 1e-4, "{spot} {vol}: {gain}, not {wanted}");
        worst = worst.min(wanted);
    }
    assert!((slide.worst.gain - worst).abs() < 1e-4);
    let limits = Limits {
        futures: 12.0,
        ..Limits::default()
    };
    let uses = portfolio.limits_in_use(&limits, fifty(), Some(slide.worst.gain));
    let of = |name: &str| uses.iter().find(|row| row.name == name).expect("it is told");
    assert_eq!(
        (of("underlying").used, of("underlying").share()),
        (6.0, Some(0.5))
    );
    assert_eq!(
        (of("worst scenario").used, of("delta").share()),
        (-slide.worst.gain, None)
    );
}

#[test]
fn a_loss_is_judged_by_the_worse_of_value_and_market_and_what_has_no_mid_is_said() {
    let mut portfolio = Portfolio::new(&listings());
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    let trade = |portfolio: &mut Portfolio, at: u32, side: Side, price: i64| {
        let trade = Trade {
            at: Nanos(0),
            instrument: at,
            side,
            qty: Qty(10),
            price: Price::from_raw(price),
            theo: None,
            forward: None,
        };
        portfolio.trade(&trade).expect("it is there");
    };
    let value = |portfolio: &Portfolio, at: u32| portfolio.marked(at, MarkBy::Theo).expect("valued").raw();
    // Bought ten points below what we think that it is worth; the market pays ten points less than we did.
    let theo = value(&portfolio, 6);
    let paid = theo - 10 * POINT;
    trade(&mut portfolio, 6, Side::Bid, paid);
    let mid = |points: i64| Price::from_raw(paid + points * POINT);
    portfolio.mark(6, MarkBy::Mid, mid(-10)).expect("it is there");
    let fee = i128::from(listings()[6].fee.raw()) * 10;
    let of_points = |points: i64| i128::from(points) * 10 * 50 * i128::from(POINT) - fee;
    assert_eq!(portfolio.gain(MarkBy::Theo).net(), of_points(10));
    assert_eq!(portfolio.market_gain().gain.net(), of_points(-10));
    assert_eq!(
        (
            portfolio.market_gain().without_mid,
            portfolio.market_gain().contracts
        ),
        (0, 0)
    );
    let used = |portfolio: &Portfolio, loss_by: LossBy| {
        let limits = Limits {
            loss: 1_000.0,
            loss_by,
            ..Limits::default()
        };
        let uses = portfolio.limits_in_use(&limits, fifty(), None);
        uses.iter()
            .find(|row| row.name == "loss")
            .expect("it is told")
            .used
    };
    let lost = 5_000.0 + fee as f64 / 1e9;
    for (loss_by, wanted) in [(LossBy::Worse, lost), (LossBy::Theo, 0.0), (LossBy::Market, lost)] {
        assert!((used(&portfolio, loss_by) - wanted).abs() < 1e-6, "{loss_by:?}");
    }
    // The market has lost a side: long, what is worse of its last mid and our value counts; and it is said.
    portfolio.unmark(6, MarkBy::Mid).expect("it is there");
    let told = portfolio.market_gain();
    assert_eq!(
        (told.gain.net(), told.without_mid, told.contracts),
        (of_points(-10), 1, 10)
    );
    portfolio.mark(6, MarkBy::Mid, mid(40)).expect("it is there");
    portfolio.unmark(6, MarkBy::Mid).expect("it is there");
    assert_eq!(portfolio.market_gain().gain.net(), of_points(10));
    // Short, the higher one; one that never had a mid, our value.
    let mut short = Portfolio::new(&listings());
    short.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
    trade(&mut short, 6, Side::Ask, theo);
    assert_eq!(short.market_gain().gain.net(), -fee);
    short
        .mark(6, MarkBy::Mid, Price::from_raw(theo + 3 * POINT))
        .expect("it is there");
    short.unmark(6, MarkBy::Mid).expect("it is there");
    assert_eq!(short.market_gain().gain.net(), of_points(-3));
    // Without any price nothing is said.
    let mut blind = Portfolio::new(&listings());
    trade(&mut blind, 6, Side::Bid, theo);
    assert_eq!(blind.market_gain().gain.unmarked, 1);
}

#[test]
fn what_has_no_value_is_refused_and_changes_nothing() {
    let mut portfolio = mixed();
    let before = portfolio.explained();
    let mut state = market(5_000.0, 0.18, 0.0);
    state.levels[3] = f64::NAN;
    assert_eq!(
        portfolio.revalue(&state),
        Err(PortfolioError::Invalid(3, Invalid::Vol))
    );
    state.levels.pop();
    assert_eq!(portfolio.revalue(&state), Err(PortfolioError::State));
    let mut state = market(5_000.0, 0.18, 0.0);
    state.expiries.pop();
    assert_eq!(portfolio.revalue(&state), Err(PortfolioError::State));
    assert_eq!(
        portfolio.mark(99, MarkBy::Mid, Price::ZERO),
        Err(PortfolioError::Instrument(99))
    );
    assert_eq!(portfolio.explained(), before);
    portfolio.revalue(&market(5_000.0, 0.18, 0.0)).expect("valued");
}
