//! The instruments of a simulated venue.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Price, Symbol};

use crate::tape::Listing;

/// Well-known names first, so that a reader of reports finds them; prices in dollars, of no date.
#[rustfmt::skip]
const KNOWN: [(&str, u32); 40] = [
    ("AAPL", 187), ("MSFT", 415), ("NVDA", 128), ("AMZN", 182), ("TSLA", 214), ("META", 512), ("GOOGL", 168), ("AMD", 151),
    ("INTC", 31), ("CSCO", 48), ("NFLX", 655), ("ADBE", 540), ("AVGO", 166), ("QCOM", 171), ("TXN", 199), ("MU", 103),
    ("AMAT", 208), ("PYPL", 64), ("SBUX", 78), ("COST", 840), ("PEP", 171), ("TMUS", 186), ("CMCSA", 39), ("INTU", 640),
    ("AMGN", 320), ("HON", 206), ("BKNG", 3900), ("ISRG", 445), ("GILD", 72), ("MDLZ", 68), ("ADP", 246), ("LRCX", 900),
    ("REGN", 1060), ("VRTX", 480), ("PANW", 330), ("KLAC", 770), ("MRVL", 68), ("ORLY", 1080), ("CSX", 34), ("IVOO", 87),
];

/// `count` instruments (at most 65,535: stock locates have 16 bits), the most active first; ticks of 0.01.
pub fn listings(count: u16) -> Vec<Listing> {
    (0..u32::from(count)).map(listing).collect()
}

fn listing(rank: u32) -> Listing {
    let (symbol, dollars) = match KNOWN.get(rank as usize) {
        Some((name, dollars)) => (Symbol::new(name.as_bytes()), *dollars),
        None => (
            Symbol::new(&made_up(rank)),
            5 + rank.wrapping_mul(2_654_435_761) % 295,
        ),
    };
    Listing {
        id: InstrumentId(rank + 1),
        symbol: symbol.unwrap_or(Symbol::EMPTY),
        tick: Price::from_4dp(100),
        start: Price::from_4dp(dollars * 10_000),
    }
}

/// `ZAAAA`, `ZAAAB`, ...: no listed name has five letters beginning with Z, save test symbols.
fn made_up(rank: u32) -> [u8; 5] {
    let letter = |power: u32| b'A' + (rank / 26_u32.pow(power) % 26) as u8;
    [b'Z', letter(3), letter(2), letter(1), letter(0)]
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn every_instrument_has_its_number_a_unique_symbol_and_a_price_on_the_tick() {
        let all = listings(u16::MAX);
        let mut symbols = std::collections::BTreeSet::new();
        for (i, l) in all.iter().enumerate() {
            assert_eq!(l.id.index(), i + 1);
            assert!(!l.symbol.is_empty() && symbols.insert(l.symbol), "{l:?}");
            assert!(l.start > Price::ZERO && l.start.raw() % l.tick.raw() == 0);
        }
    }
}
