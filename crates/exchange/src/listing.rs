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

/// NYSE- and Arca-listed names, likewise.
#[rustfmt::skip]
const KNOWN_CTA: [(&str, u32); 24] = [
    ("SPY", 585), ("BAC", 44), ("F", 11), ("GE", 188), ("T", 22), ("IBM", 225), ("JPM", 240), ("XOM", 118), ("KO", 64), ("WFC", 75),
    ("PFE", 26), ("DIS", 112), ("C", 70), ("UBER", 71), ("ORCL", 185), ("CVX", 160), ("WMT", 92), ("V", 310), ("MA", 525), ("BA", 155),
    ("HD", 405), ("GS", 590), ("CAT", 390), ("MCD", 295),
];

/// `count` instruments of a whole market, the most active first within each plan, and how many of them, in
/// front, are the UTP plan's (tape C, a third); the others are the CTA's (tapes A and B). Made-up names of
/// the CTA begin with ZZ, ZY, ZX.
pub fn market_listings(count: u16) -> (Vec<Listing>, usize) {
    let utp = u32::from(count).div_ceil(3);
    let cta = (0..u32::from(count) - utp).map(|rank| {
        let made_up = made_up(rank);
        let (symbol, dollars) = match KNOWN_CTA.get(rank as usize) {
            Some((name, dollars)) => (Symbol::new(name.as_bytes()), *dollars),
            None => (
                Symbol::new(&[
                    b'Z',
                    b'Z' - (rank / 26_u32.pow(3)) as u8,
                    made_up[2],
                    made_up[3],
                    made_up[4],
                ]),
                5 + rank.wrapping_mul(2_246_822_519) % 295,
            ),
        };
        let id = InstrumentId(utp + rank + 1);
        Listing::equity(
            id,
            symbol.unwrap_or(Symbol::EMPTY),
            Price::from_4dp(dollars * 10_000),
        )
    });
    ((0..utp).map(listing).chain(cta).collect(), utp as usize)
}

fn listing(rank: u32) -> Listing {
    let (symbol, dollars) = match KNOWN.get(rank as usize) {
        Some((name, dollars)) => (Symbol::new(name.as_bytes()), *dollars),
        None => (
            Symbol::new(&made_up(rank)),
            5 + rank.wrapping_mul(2_654_435_761) % 295,
        ),
    };
    let id = InstrumentId(rank + 1);
    Listing::equity(
        id,
        symbol.unwrap_or(Symbol::EMPTY),
        Price::from_4dp(dollars * 10_000),
    )
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
    fn a_market_has_both_plans_and_unique_symbols() {
        let (all, utp) = market_listings(u16::MAX);
        assert_eq!((all.len(), utp), (65_535, 21_845));
        let symbols: std::collections::BTreeSet<_> = all.iter().map(|l| l.symbol).collect();
        assert_eq!(symbols.len(), all.len());
        assert!(
            all.iter()
                .zip(1..)
                .all(|(l, id)| l.id.0 == id && !l.symbol.is_empty())
        );
        assert_eq!(
            (all[0].symbol.as_str(), all[utp].symbol.as_str()),
            ("AAPL", "SPY")
        );
    }

    #[test]
    fn every_instrument_has_its_number_a_unique_symbol_and_a_price_on_the_tick() {
        let all = listings(u16::MAX);
        let mut symbols = std::collections::BTreeSet::new();
        for (i, l) in all.iter().enumerate() {
            assert_eq!(l.id.index(), i + 1);
            assert!(!l.symbol.is_empty() && symbols.insert(l.symbol), "{l:?}");
            assert!(l.start > Price::ZERO && l.start.raw() % l.tick().raw() == 0);
        }
    }
}
