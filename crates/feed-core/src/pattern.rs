//! Patterns of symbols: what a subscription names.

use core::fmt;
use core::str::FromStr;
use tickwire_market::Symbol;

/// A symbol, or one with `*` (any characters, also none) and `?` (any one character) in it; upper and lower
/// case differ. A symbol that has one of the two itself can be named no closer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern {
    bytes: [u8; Pattern::LENGTH_MAX],
    len: u8,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadPattern {
    /// Nothing but blanks.
    Empty,
    /// More than [`Pattern::LENGTH_MAX`] bytes.
    TooLong,
    /// A byte that is not printable ASCII.
    NotText,
}

impl Pattern {
    /// The longest pattern, which is also the longest symbol.
    pub const LENGTH_MAX: usize = 23;

    /// Every symbol.
    pub const ALL: Pattern = {
        let mut bytes = [0; Pattern::LENGTH_MAX];
        bytes[0] = b'*';
        Pattern { bytes, len: 1 }
    };

    /// A pattern from text; blanks at its end are dropped, as of a symbol.
    pub fn new(text: &[u8]) -> Result<Pattern, BadPattern> {
        let end = text.iter().rposition(|&byte| byte != b' ' && byte != 0);
        let text = &text[..end.ok_or(BadPattern::Empty)? + 1];
        if text.iter().any(|byte| !(b' '..=b'~').contains(byte)) {
            return Err(BadPattern::NotText);
        }
        let mut bytes = [0; Pattern::LENGTH_MAX];
        let place = bytes.get_mut(..text.len()).ok_or(BadPattern::TooLong)?;
        place.copy_from_slice(text);
        Ok(Pattern {
            bytes,
            len: text.len() as u8,
        })
    }

    /// The pattern of one symbol; `None` for the empty one.
    pub fn of_symbol(symbol: &Symbol) -> Option<Pattern> {
        Pattern::new(symbol.as_bytes()).ok()
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The one symbol it names, if it has neither `*` nor `?`.
    pub fn literal(&self) -> Option<Symbol> {
        let is_wild = self.as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'));
        Symbol::new(self.as_bytes()).filter(|_| !is_wild)
    }

    /// Whether it names this symbol.
    pub fn matches(&self, symbol: &Symbol) -> bool {
        walk(self.as_bytes(), symbol.as_bytes(), |_| true)
    }

    /// Whether it is certain to name every symbol that `other` names.
    pub fn covers(&self, other: &Pattern) -> bool {
        // What `*` stands for is of any length: only `*` takes it in.
        walk(self.as_bytes(), other.as_bytes(), |byte| byte != b'*')
    }
}

/// Whether `text` is what the pattern says; `single` are the bytes that `?`, or the same byte, stands for.
/// Steps forward, and on a mismatch back to one byte behind where the last `*` ended: no more than length
/// times length steps.
fn walk(pattern: &[u8], text: &[u8], single: impl Fn(u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&have) if single(byte) && (have == b'?' || have == byte) => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Pattern, BadPattern> {
        Pattern::new(text.as_bytes())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(core::str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadPattern::Empty => "a pattern is empty: name a symbol, or * for all",
            BadPattern::TooLong => "a pattern is longer than 23 characters, as no symbol is",
            BadPattern::NotText => "a pattern has a character that is not printable ASCII, as no symbol has",
        })
    }
}

impl core::error::Error for BadPattern {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;
    use tickwire_testdata::Rng;

    /// By definition: `*` is nothing, or any one byte and `*` again.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) if naive(rest, text) => true,
            ([b'*', ..], [_, behind @ ..]) => naive(pattern, behind),
            ([b'?', rest @ ..], [_, behind @ ..]) => naive(rest, behind),
            ([p, rest @ ..], [t, behind @ ..]) if p == t => naive(rest, behind),
            _ => false,
        }
    }

    fn random(rng: &mut Rng, letters: &[u8], most: u64) -> Vec<u8> {
        (0..1 + rng.below(most))
            .map(|_| letters[rng.below(letters.len() as u64) as usize])
            .collect()
    }

    #[test]
    fn a_symbol_matches_as_the_naive_matcher_says() {
        let mut rng = Rng::new(7);
        let mut hits = 0;
        for _ in 0..200_000 {
            let (pattern, text) = (random(&mut rng, b"AB*?", 9), random(&mut rng, b"AB", 9));
            let expected = naive(&pattern, &text);
            hits += u32::from(expected);
            let (made, symbol) = (Pattern::new(&pattern).unwrap(), Symbol::new(&text).unwrap());
            assert_eq!(made.matches(&symbol), expected, "{made} {symbol}");
        }
        assert!((20_000..180_000).contains(&hits), "{hits}");
    }

    #[test]
    fn what_covers_a_pattern_names_all_its_symbols() {
        let mut rng = Rng::new(8);
        let mut covering = 0;
        for _ in 0..50_000 {
            let pattern = |rng: &mut Rng| Pattern::new(&random(rng, b"AB*?", 5)).unwrap();
            let (wide, narrow) = (pattern(&mut rng), pattern(&mut rng));
            if !wide.covers(&narrow) {
                continue;
            }
            covering += 1;
            for _ in 0..20 {
                let symbol = Symbol::new(&random(&mut rng, b"AB", 7)).unwrap();
                assert!(
                    !narrow.matches(&symbol) || wide.matches(&symbol),
                    "{wide} {narrow} {symbol}"
                );
            }
        }
        assert!(covering > 1_000, "{covering}");
        let made = |text: &str| text.parse::<Pattern>().unwrap();
        assert!(made("Z*").covers(&made("ZNGA")) && made("*").covers(&made("?*")));
        assert!(!made("Z?").covers(&made("Z*")) && made("Z?*").covers(&made("Z??")));
    }

    #[test]
    fn patterns_are_what_symbols_are_and_say_what_is_wrong() {
        assert_eq!(Pattern::new(b"AAPL   ").unwrap().literal(), Symbol::new(b"AAPL"));
        assert_eq!("Z*".parse::<Pattern>().unwrap().literal(), None);
        assert_eq!(Pattern::ALL.to_string(), "*");
        assert_eq!(Pattern::new(b"  "), Err(BadPattern::Empty));
        assert_eq!(Pattern::new(&[b'A'; 24]), Err(BadPattern::TooLong));
        assert_eq!(Pattern::new("\u{e9}".as_bytes()), Err(BadPattern::NotText));
        let worst = Pattern::new(b"*A*A*A*A*A*A*A*A*A*A*AB").unwrap();
        assert!(!worst.matches(&Symbol::new(&[b'A'; 23]).unwrap()));
    }
}
