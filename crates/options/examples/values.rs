//! Values of options from lines of text, for comparison with other programs (`cargo xtask quantlib`).
//!
//! A line is `model,F,K,T,vol,r,call`, `call` being 1 or 0; the answer is a line of numbers with all their
//! digits: `black` price, delta, gamma, vega, theta, vanna, volga; `bachelier` price, delta, gamma, vega;
//! `american` price; `implied` the volatility of a price, which stands in the place of `vol`.

use std::io::{BufRead, Write};
use tickwire_options::american::{self, Effort};
use tickwire_options::{Kind, Terms, bachelier, black76, implied};

fn values(line: &str) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let (model, rest) = line.split_once(',').ok_or("a line is model,F,K,T,vol,r,call")?;
    let numbers: Vec<f64> = rest
        .split(',')
        .map(|cell| cell.trim().parse())
        .collect::<Result<_, _>>()?;
    let [forward, strike, years, vol, rate, call] = numbers[..] else {
        return Err("six numbers follow the model".into());
    };
    let kind = if call == 1.0 { Kind::Call } else { Kind::Put };
    let terms = Terms {
        forward,
        strike,
        years,
        vol,
        rate,
        kind,
    };
    Ok(match model {
        "black" => {
            let g = black76::greeks(&terms)?;
            vec![g.price, g.delta, g.gamma, g.vega, g.theta, g.vanna, g.volga]
        }
        "bachelier" => {
            let g = bachelier::greeks(&terms)?;
            vec![g.price, g.delta, g.gamma, g.vega]
        }
        "american" => vec![american::price(&terms, Effort::REFERENCE)?],
        "implied" => vec![implied::black76(&terms, vol)?],
        _ => return Err("models are black, bachelier, american, implied".into()),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let row = values(&line?).map_err(|e| format!("line {}: {e}", at + 1))?;
        let cells: Vec<String> = row.iter().map(|x| format!("{x:e}")).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}
