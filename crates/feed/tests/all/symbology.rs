//! Symbols of the venues against Nasdaq's table of conventions.

use tickwire_feed::consolidated;
use tickwire_market::{Symbol, Venue};

/// Every row of the table: CQS, CMS, Nasdaq integrated. nasdaqtrader.com, "Ticker Symbol Convention".
const TABLE: [(&str, &str, &str); 32] = [
    ("p", "PR", "-"),
    ("pA", "PRA", "-A"),
    ("pB", "PRB", "-B"),
    ("/A", "A", ".A"),
    ("/B", "B", ".B"),
    ("p/WD", "PRWD", "-$"),
    ("/WD", "WD", "$"),
    ("/WS", "WS", "+"),
    ("/WS/A", "WSA", "+A"),
    ("/WS/B", "WSB", "+B"),
    ("/CL", "CL", "*"),
    ("/A/CL", "ACL", ".A*"),
    ("p/CL", "PRCL", "-*"),
    ("pA/CL", "PRACL", "-A*"),
    ("pAw", "PRAWI", "-A#"),
    ("/EC", "EC", "!"),
    ("/PP", "PP", "@"),
    ("/CV", "CV", "%"),
    ("/CV/CL", "CVCL", "%*"),
    ("/A/CV", "ACV", ".A%"),
    ("pA/CV", "PRACV", "-A%"),
    ("pA/WD", "PRAWD", "-A$"),
    ("r", "RT", "^"),
    ("/U", "U", "="),
    ("w", "WI", "#"),
    ("rw", "RTWI", "^#"),
    ("pw", "PRWI", "-#"),
    ("/Aw", "AWI", ".A#"),
    ("/WSw", "WSWI", "+#"),
    ("/TEST", "TEST", "~"),
    // The same for the letters that other suffixes begin with.
    ("pW", "PRW", "-W"),
    ("/WS/C", "WSC", "+C"),
];

fn of(venue: Venue, text: &str) -> Option<String> {
    let symbol = Symbol::new(text.as_bytes()).unwrap();
    consolidated(venue, &symbol).map(|symbol| symbol.as_str().to_owned())
}

#[test]
fn every_row_of_the_table_of_conventions_is_one_symbol_on_every_venue() {
    for (cqs, cms, integrated) in TABLE {
        let expected = Some(format!("BAC{integrated}"));
        assert_eq!(of(Venue::Nasdaq, &format!("BAC{integrated}")), expected);
        assert_eq!(of(Venue::Edgx, &format!("BAC{integrated}")), expected);
        assert_eq!(of(Venue::Uqdf, &format!("BAC{integrated}")), expected);
        assert_eq!(of(Venue::Nyse, &format!("BAC {cms}")), expected);
        assert_eq!(of(Venue::Arca, &format!("BAC {cms}")), expected);
        assert_eq!(of(Venue::Cqs, &format!("BAC{cqs}")), expected);
        assert_eq!(of(Venue::Cqs, &format!("BAC{}", cqs.replace('/', "."))), expected);
    }
}

#[test]
fn every_class_from_a_to_z_is_its_own_symbol() {
    for class in 'A'..='Z' {
        for (cqs, cms, integrated) in [
            (format!("p{class}"), format!("PR{class}"), format!("-{class}")),
            (format!("/WS/{class}"), format!("WS{class}"), format!("+{class}")),
        ] {
            let expected = Some(format!("X{integrated}"));
            assert_eq!(of(Venue::Psx, &format!("X{integrated}")), expected);
            assert_eq!(of(Venue::National, &format!("X {cms}")), expected);
            assert_eq!(of(Venue::Cqs, &format!("X{cqs}")), expected);
        }
        let expected = Some(if class == 'U' {
            "X=".into()
        } else {
            format!("X.{class}")
        });
        assert_eq!(
            of(Venue::Nyse, &format!("X {class}")),
            expected,
            "units, or the class"
        );
        assert_eq!(of(Venue::Cqs, &format!("X/{class}")), expected);
    }
}

#[test]
fn different_suffixes_never_become_one_symbol() {
    let mut seen = std::collections::BTreeMap::new();
    for venue in [Venue::Nyse, Venue::Cqs, Venue::Bzx] {
        let signs: &[&str] = match venue {
            Venue::Nyse => &[
                "", "PR", "WS", "RT", "U", "A", "W", "I", "WI", "WD", "CL", "C", "L", "CV", "V", "EC", "PP",
                "P", "TEST",
            ],
            Venue::Cqs => &[
                "", "p", "/WS", "r", "/U", "/A", "A", "w", "/WD", "/CL", "/CV", "/EC", "/PP", "/TEST",
            ],
            _ => &[
                "", "-", "+", "^", "=", ".A", "A", "#", "$", "*", "%", "!", "@", "~",
            ],
        };
        let of_venue = seen.entry(venue).or_insert_with(std::collections::BTreeMap::new);
        for one in signs {
            for two in signs {
                for three in signs {
                    let space = if venue == Venue::Nyse { " " } else { "" };
                    let text = format!("Q{space}{one}{two}{three}");
                    if let Some(symbol) = of(venue, &text) {
                        let known = of_venue.insert(symbol.clone(), text.trim().to_owned());
                        assert!(
                            known.is_none_or(|known| known == text.trim()),
                            "{venue:?} {text}: {symbol}"
                        );
                    }
                }
            }
        }
        assert!(of_venue.len() > 60, "{venue:?} {}", of_venue.len());
    }
}

#[test]
fn what_is_of_no_convention_has_no_consolidated_symbol() {
    for text in [
        "", "BRK A", "BRK/A", "BACpA", "BAC-AB", "BAC.", "BAC$#", "1A", "BAC#%", ".A",
    ] {
        assert_eq!(of(Venue::Nasdaq, text), None, "{text}");
    }
    for text in [
        "BRK.A", "BRK  A", "BRK XQZ", "BRK PRAB", "brk", "BRK-A", "BRK WIWI",
    ] {
        assert_eq!(of(Venue::Nyse, text), None, "{text}");
    }
    for text in ["BRK A", "BRK/AB", "BRK/", "BRKq", "BRK-A", "BRKpAB", "BRKww"] {
        assert_eq!(of(Venue::Cqs, text), None, "{text}");
    }
}

#[test]
fn other_markets_have_symbols_that_no_share_of_new_york_has() {
    assert_eq!(of(Venue::Cme, "ESH4"), Some("ESH4".into()));
    assert_eq!(of(Venue::Cme, "ESH4-ESM4"), Some("ESH4-ESM4".into()));
    assert_eq!(of(Venue::Cme, "ES"), None);
    assert_eq!(of(Venue::Moex, "T"), Some("moex:T".into()));
    assert_eq!(
        of(Venue::Moex, "A2345678901234567890"),
        None,
        "longer than a symbol can be"
    );
    assert_eq!(of(Venue::Nyse, "T"), Some("T".into()));
    assert_eq!(of(Venue::Nasdaq, "GOOGL"), Some("GOOGL".into()));
}
