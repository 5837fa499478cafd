//! What it costs to value 1024 options after a tick of their underlying: every path of the batch, the
//! reference, and the textbook formula with the C library's `erfc`, `exp` and `log`, in one run. A regression
//! here means that theoretical values, ladders and scenario grids lag behind the market.
//!
//! `cargo bench -p tickwire-options`; under `cargo test` it runs tiny. Every variant's values are compared
//! with the reference's. Options after `--`: `--rounds N`, `--only TEXT`. The least of all rounds counts: the
//! machine is shared, and what disturbs only adds.

use std::f64::consts::FRAC_1_SQRT_2;
use std::hint::black_box;
use std::time::Instant;
use tickwire_options::batch::{Engine, Listed, Path, Strip, Values};
use tickwire_options::grid::{Grid, Position};
use tickwire_options::{Kind, Terms, black76, implied};
use tickwire_runtime::alloc::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

unsafe extern "C" {
    safe fn erfc(x: f64) -> f64;
}

const EXPIRIES: [f64; 16] = [
    1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 14.0, 21.0, 30.0, 45.0, 60.0, 91.0, 120.0, 182.0, 230.0, 270.0,
];
const STRIKES: usize = 64;
const OPTIONS: usize = EXPIRIES.len() * STRIKES;

/// 16 expiries of 64 strikes on an index future, −3.8 to 2.5 deviations from the money.
fn universe() -> Vec<Strip> {
    let expiry = |days: &f64| {
        let years = days / 365.0;
        let at = 0.14 + 0.03 * (days / 270.0).sqrt();
        let option = |i: usize| {
            let x = (i as f64 - 38.0) / 10.0;
            Listed {
                strike: (5000.0 * (x * at * years.sqrt()).exp() / 5.0).round() * 5.0,
                kind: if i.is_multiple_of(3) {
                    Kind::Put
                } else {
                    Kind::Call
                },
                vol: at * (1.0 - 0.12 * x + 0.03 * x * x).clamp(0.6, 2.5),
            }
        };
        let listed: Vec<Listed> = (0..STRIKES).map(option).collect();
        Strip::new(5000.0, years, 0.045, &listed).expect("the universe is valid")
    };
    EXPIRIES.iter().map(expiry).collect()
}

/// 1024 strikes of one expiry: what a strip costs when there is little of anything else.
fn one_expiry() -> Strip {
    let option = |i: usize| Listed {
        strike: 4000.0 + 2.0 * i as f64,
        kind: if i.is_multiple_of(3) {
            Kind::Put
        } else {
            Kind::Call
        },
        vol: 0.17 + 2e-5 * (i as f64 - 500.0).abs(),
    };
    let listed: Vec<Listed> = (0..OPTIONS).map(option).collect();
    Strip::new(5000.0, 60.0 / 365.0, 0.045, &listed).expect("the universe is valid")
}

/// Price and four Greeks as the textbooks write them, nothing kept between ticks.
fn textbook(terms: &Terms) -> [f64; 5] {
    let Terms {
        forward,
        strike,
        years,
        vol,
        rate,
        ..
    } = *terms;
    let sign = terms.kind.sign();
    let cdf = |x: f64| 0.5 * erfc(-x * FRAC_1_SQRT_2);
    let df = (-rate * years).exp();
    let s = vol * years.sqrt();
    let d1 = (forward / strike).ln() / s + 0.5 * s;
    let density = (-0.5 * d1 * d1).exp() * 0.398_942_280_401_432_7;
    let price = df * sign * (forward * cdf(sign * d1) - strike * cdf(sign * (d1 - s)));
    let vega = df * forward * density * years.sqrt();
    [
        price,
        df * sign * cdf(sign * d1),
        df * density / (forward * s),
        vega,
        rate * price - vega * vol / (2.0 * years),
    ]
}

/// One way of valuing all strips at a forward; the sum of some values, for comparison, or NaN where it has
/// compared itself.
struct Variant {
    name: String,
    run: Box<dyn FnMut(f64) -> f64>,
}

fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    let mut add = |name: String, run: Box<dyn FnMut(f64) -> f64>| all.push(Variant { name, run });
    for engine in Path::ALL.iter().filter_map(|&path| Engine::with(path)) {
        let strips = universe();
        let mut values: Vec<Values> = strips.iter().map(|s| Values::new(s.len())).collect();
        let run = move |forward: f64| {
            let mut sum = 0.0;
            for (strip, values) in strips.iter().zip(&mut values) {
                engine
                    .greeks(strip, forward, black_box(values))
                    .expect("a good forward");
                sum += values.price[7] + values.price[50];
            }
            sum
        };
        add(
            format!("{:?}, price and four Greeks", engine.path()),
            Box::new(run),
        );
    }
    for engine in Path::ALL.iter().filter_map(|&path| Engine::with(path)) {
        let strip = one_expiry();
        let mut values = Values::new(strip.len());
        let mut want = None;
        let run = move |forward: f64| {
            engine
                .greeks(&strip, forward, black_box(&mut values))
                .expect("a good forward");
            // Another universe than that of the other variants: compared with the reference here, and what
            // those have is answered.
            let reference = |i: usize| {
                let terms = strip.terms(i, forward).expect("listed");
                black76::price(&terms).expect("in the domain")
            };
            if want.replace(()).is_none() {
                assert!((0..strip.len()).all(|i| (values.price[i] / reference(i) - 1.0).abs() < 1e-11));
            }
            f64::NAN
        };
        add(
            format!("{:?}, price and four Greeks, one expiry of 1024", engine.path()),
            Box::new(run),
        );
    }
    for engine in Path::ALL.iter().filter_map(|&path| Engine::with(path)) {
        let strips = universe();
        let mut prices = vec![0.0; STRIKES];
        let run = move |forward: f64| {
            let mut sum = 0.0;
            for strip in &strips {
                engine
                    .price(strip, forward, black_box(&mut prices))
                    .expect("a good forward");
                sum += prices[7] + prices[50];
            }
            sum
        };
        add(format!("{:?}, price", engine.path()), Box::new(run));
    }
    let terms: Vec<Terms> = universe()
        .iter()
        .flat_map(|strip| {
            (0..strip.len())
                .filter_map(|i| strip.terms(i, 5000.0))
                .collect::<Vec<_>>()
        })
        .collect();
    let of_each = |name: &str, value: fn(&Terms) -> f64| {
        let mut terms = terms.clone();
        let run = move |forward: f64| {
            let mut sum = 0.0;
            for (i, terms) in terms.iter_mut().enumerate() {
                terms.forward = forward;
                let value = black_box(value(terms));
                if i % STRIKES == 7 || i % STRIKES == 50 {
                    sum += value;
                }
            }
            sum
        };
        Variant {
            name: name.to_owned(),
            run: Box::new(run),
        }
    };
    all.push(of_each(
        "textbook with the C library's erfc, price and four Greeks",
        |terms| black_box(textbook(terms))[0],
    ));
    all.push(of_each("reference, price and all Greeks", |terms| {
        black_box(black76::greeks(terms)).expect("in the domain").price
    }));
    all.push(of_each("reference, price", |terms| {
        black76::price(terms).expect("in the domain")
    }));
    all.push(of_each(
        "reference, price, then its implied volatility",
        |terms| {
            let price = black76::price(terms).expect("in the domain");
            let vol = implied::black76(terms, price).expect("a price of the model");
            assert!((vol / terms.vol - 1.0).abs() < 1e-6, "{vol} {terms:?}");
            price
        },
    ));
    all
}

/// The core's frequency in GHz as far as a chain of 4-cycle multiplications shows it: what the figures depend
/// on most.
fn gigahertz() -> f64 {
    const MULTIPLICATIONS: u32 = 1_000_000;
    let chain = || {
        let start = Instant::now();
        let mut x = black_box(1.0f64);
        let by = black_box(1.000_000_1f64);
        for _ in 0..MULTIPLICATIONS {
            x *= by;
        }
        black_box(x);
        4.0 * f64::from(MULTIPLICATIONS) / start.elapsed().as_nanos() as f64
    };
    (0..5).map(|_| chain()).fold(0.0, f64::max)
}

/// Every strip's options once or more, 21 moves of the underlying, 11 of volatility: milliseconds a grid,
/// least of all rounds, by each path.
fn grids(rounds: u32) {
    let strips = universe();
    let positions: Vec<Position> = (0..OPTIONS)
        .map(|i| Position {
            strip: i / STRIKES,
            option: i % STRIKES,
            quantity: (i * 31 % 17) as f64 * 50.0 - 400.0,
        })
        .collect();
    let spots: Vec<f64> = (-10..=10).map(|i| f64::from(i) * 0.01).collect();
    let vols: Vec<f64> = (-5..=5).map(|i| f64::from(i) * 0.01).collect();
    let forwards = [5000.0; EXPIRIES.len()];
    for engine in Path::ALL.iter().filter_map(|&path| Engine::with(path)) {
        let mut grid = Grid::new(&strips, &positions, &spots, &vols).expect("the portfolio is listed");
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            let start = Instant::now();
            let worst = grid.run(&engine, &forwards, 0.0).expect("good forwards");
            best = best.min(start.elapsed().as_nanos() as f64 * 1e-6);
            assert!(grid.cells().all(|cell| cell.gain >= worst.gain));
        }
        let gain = |spot: f64, shift: f64| -> f64 {
            let of = |p: &Position| {
                let strip = &strips[p.strip];
                let terms = strip.terms(p.option, 5000.0).expect("listed");
                let moved = Terms {
                    forward: 5000.0 * (1.0 + spot),
                    vol: (terms.vol + shift).max(0.0),
                    ..terms
                };
                let price = |terms: &Terms| black76::price(terms).expect("in the domain");
                p.quantity * (price(&moved) - price(&terms))
            };
            positions.iter().map(of).sum()
        };
        for cell in [grid.worst(), grid.cells().last().expect("231 cells")] {
            let want = gain(cell.spot, cell.vol);
            assert!(
                (cell.gain - want).abs() < 1e-7 * want.abs().max(1.0),
                "{cell:?} is not {want}"
            );
        }
        println!(
            "scenario grid 21 x 11, {OPTIONS} positions, {:?}: {best:.3} ms",
            engine.path()
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        args.iter()
            .position(|a| a == name)
            .and_then(|at| args.get(at + 1))
    };
    let is_full = args.iter().any(|a| a == "--bench");
    let rounds: u32 =
        value("--rounds").map_or(if is_full { 60 } else { 1 }, |v| v.parse().expect("a number"));
    let only = value("--only").cloned().unwrap_or_default();
    let passes = if is_full { 40 } else { 2 };
    let mut variants: Vec<Variant> = variants()
        .into_iter()
        .filter(|v| v.name.contains(&only))
        .collect();
    let forwards: Vec<f64> = (0..passes).map(|i| 4990.0 + 0.25 * f64::from(i)).collect();
    let want: f64 = {
        let strips = universe();
        let price = |forward: f64, strip: &Strip, i: usize| {
            black76::price(&strip.terms(i, forward).expect("listed")).expect("in the domain")
        };
        let both = |f: f64, s: &Strip| price(f, s, 7) + price(f, s, 50);
        forwards
            .iter()
            .map(|&f| strips.iter().map(|s| both(f, s)).sum::<f64>())
            .sum()
    };
    let mut best = vec![f64::INFINITY; variants.len()];
    for _ in 0..rounds {
        for (variant, best) in variants.iter_mut().zip(&mut best) {
            let start = Instant::now();
            let sum: f64 = forwards.iter().map(|&f| (variant.run)(f)).sum();
            let ns = start.elapsed().as_nanos() as f64 / (forwards.len() * OPTIONS) as f64;
            assert!(
                sum.is_nan() || (sum / want - 1.0).abs() < 1e-11,
                "{}: {sum} is not {want}",
                variant.name
            );
            *best = best.min(ns);
        }
    }
    if only.is_empty() || only == "grid" {
        grids(rounds);
    }
    println!(
        "{OPTIONS} options, {} ticks, {rounds} rounds, least; about {:.1} GHz",
        forwards.len(),
        gigahertz()
    );
    println!("{:<60} {:>9} {:>9}", "", "ns/option", "x first");
    for (variant, ns) in variants.iter().zip(&best) {
        println!("{:<60} {ns:>9.2} {:>9.1}", variant.name, ns / best[0]);
    }
}
