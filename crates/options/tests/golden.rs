//! The recorded tables: values of 20 and more digits by multiple-precision arithmetic, which the models must meet row by row.

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
