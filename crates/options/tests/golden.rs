//! The recorded tables: values of 20 and more digits by multiple-precision arithmetic, which the models must
//! meet row by row.

use tickwire_options::american::{self, Boundary, Effort, Sheet};
use tickwire_options::{Greeks, Kind, Terms, bachelier, black76};

/// The rows of a table under `captures/options`, as numbers.
fn rows(file: &str) -> Vec<Vec<f64>> {
    let bytes = tickwire_testdata::file_bytes(&tickwire_testdata::captures("options").join(file));
    let text = String::from_utf8(bytes).expect("the table is text");
    let number = |cell: &str| cell.trim().parse::<f64>().expect("a number");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(number).collect())
        .collect();
    assert!(rows.len() >= 250, "{file}: {} rows", rows.len());
    rows
}

/// The terms in the first six columns: F, K, T, vol, r, call.
fn terms(row: &[f64]) -> Terms {
    Terms {
        forward: row[0],
        strike: row[1],
        years: row[2],
        vol: row[3],
        rate: row[4],
        kind: if row[5] == 1.0 { Kind::Call } else { Kind::Put },
    }
}

/// The largest error of each column in relation to `scale` of it.
struct Worst<const N: usize>([(&'static str, f64); N]);

impl<const N: usize> Worst<N> {
    fn add(&mut self, row: &[f64], got: [(f64, f64); N]) {
        for (worst, (want, (got, scale))) in self.0.iter_mut().zip(row.iter().zip(got)) {
            let error = (got - want).abs() / want.abs().max(scale);
            assert!(error < 1e-10, "{}: {got} is not {want} ({error:e})", worst.0);
            worst.1 = worst.1.max(error);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/options")]
#[test]
fn black76_meets_every_row_of_the_golden_table() {
    let names = [
        "price", "delta", "gamma", "vega", "theta", "vanna", "volga", "rho",
    ];
    let mut worst = Worst(names.map(|name| (name, 0.0)));
    for row in rows("black76_golden.csv") {
        let terms = terms(&row);
        let g: Greeks = black76::greeks(&terms).expect("the row is in the domain");
        let d = (terms.forward / terms.strike).ln().abs() / terms.deviation();
        // Where theta, vanna and volga pass through zero they are compared with the size of their parts.
        let (vanna, volga) = (g.vega / terms.forward / terms.vol, g.vega / terms.vol);
        let theta = g.vega * terms.vol / terms.years;
        worst.add(
            &row[6..],
            [
                (g.price, 0.0),
                (g.delta, 0.0),
                (g.gamma, 0.0),
                (g.vega, 0.0),
                (g.theta, theta),
                (g.vanna, vanna * (1.0 + d)),
                (g.volga, volga * (1.0 + d * d)),
                (g.rho, 0.0),
            ],
        );
    }
    println!("black76_golden.csv: largest relative errors {:?}", worst.0);
}

#[tickwire_testdata::recorded_data("captures/options")]
#[test]
fn bachelier_meets_every_row_of_the_golden_table() {
    let mut worst = Worst(["price", "delta", "gamma", "vega"].map(|name| (name, 0.0)));
    for row in rows("bachelier_golden.csv") {
        let g = bachelier::greeks(&terms(&row)).expect("the row is in the domain");
        worst.add(
            &row[6..],
            [(g.price, 0.0), (g.delta, 0.0), (g.gamma, 0.0), (g.vega, 0.0)],
        );
    }
    println!("bachelier_golden.csv: largest relative errors {:?}", worst.0);
}

/// American options: the reference by a boundary of each option's own, the fast path by one sheet for each
/// expiry and rate.
#[tickwire_testdata::recorded_data("captures/options")]
#[test]
fn american_values_meet_every_row_of_the_golden_table() {
    let mut sheets: Vec<((f64, f64), Sheet)> = Vec::new();
    let (mut reference, mut quick, mut fast) = (0.0f64, 0.0f64, 0.0f64);
    let mut rounds = 0;
    for row in rows("golden_american_futures_qdfp_hp.csv") {
        let years = row[2] / 365.0;
        let terms = terms(&[row[0], row[1], years, row[3], row[4], row[5]]);
        let (european, want) = (row[6], row[7]);
        // The file's European value is one in doubles by another program.
        let ours = black76::price(&terms).expect("in the domain");
        assert!((ours - european).abs() < 1e-9, "{ours} is not {european}");
        let boundary = Boundary::new(years, terms.vol, terms.rate, Effort::REFERENCE).expect("in the domain");
        rounds = boundary.convergence().0.max(rounds);
        let value = boundary
            .price(terms.kind, terms.forward, terms.strike)
            .expect("in the domain");
        reference = reference.max((value - want).abs());
        assert!(
            (value - want).abs() <= 1e-6,
            "{value} is not {want}: {terms:?} {:?}",
            boundary.convergence()
        );
        quick = quick.max((american::price(&terms, Effort::QUICK).expect("in the domain") - want).abs());
        let key = (years, terms.rate);
        if !sheets.iter().any(|(of, _)| *of == key) {
            let sheet = Sheet::new(years, terms.rate, 0.06, 0.8, Effort::QUICK).expect("in the domain");
            sheets.push((key, sheet));
        }
        let (_, sheet) = sheets.iter().find(|(of, _)| *of == key).expect("just made");
        let value = sheet.price(&terms).expect("in the sheet's range");
        fast = fast.max((value - want).abs());
        assert!(
            (value - want).abs() <= 1e-3,
            "fast: {value} is not {want}: {terms:?}"
        );
    }
    println!(
        "golden_american_futures_qdfp_hp.csv: largest errors in points: reference {reference:.1e} ({rounds} rounds at most), quick {quick:.1e}, \
         {} sheets {fast:.1e}",
        sheets.len()
    );
}
