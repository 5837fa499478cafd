//! What is wanted: rules in the order in which they were said, and one bit for every instrument that they
//! amount to.

use crate::Pattern;
use alloc::{boxed::Box, vec, vec::Vec};
use core::fmt;
use core::hint::black_box;
use tickwire_market::{InstrumentId, MessageType, Symbol};

/// Of so many numbers the bits are kept in the caches of a thread that waits: 32 lines.
const FETCHED: usize = 1 << 14;
/// Words of a cache line.
const WORDS_OF_LINE: usize = 8;

/// One thing that was said about what is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The instruments it is about, those defined later too.
    pub pattern: Pattern,
    /// Whether they are wanted from then on, or not.
    pub wanted: bool,
}

impl Rule {
    /// Whether it is about every instrument there can be, those without a name too.
    pub fn is_about_all(&self) -> bool {
        self.pattern.covers(&Pattern::ALL)
    }
}

/// There is no room for another rule; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubscriptionsFull;

impl fmt::Display for SubscriptionsFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no room for another subscription: {} patterns or {} symbols are kept; say * anew, or patterns that take in those there are",
            Subscriptions::RULES_MAX,
            Subscriptions::SYMBOLS_MAX
        )
    }
}

impl core::error::Error for SubscriptionsFull {}

/// Which instruments are wanted, by rules for names and by a bit for each number.
///
/// Of all rules that match a symbol the last one decides; where none does, it is not wanted. `+*`, `-Z*`,
/// `+ZNGA` is everything but what begins with Z, and of that ZNGA. The rules hold for instruments that become
/// known later, and next day. A rule that no symbol can depend on any more is dropped, so that going back and
/// forth takes no room.
///
/// The filter is one bit per instrument (8 KiB for every number of ITCH), tested before a message is decoded.
#[derive(Clone, Debug)]
pub struct Subscriptions {
    bits: Box<[u64]>,
    /// Whether a number passes that has no name yet: of everything, or everything with exceptions, it does.
    unnamed: bool,
    /// Wanted beside the rules, none of which matches any of them. Sorted. Grows on subscription only, which
    /// is never on the hot path.
    symbols: Vec<Symbol>,
    /// At most [`Subscriptions::RULES_MAX`], the latest last.
    rules: Vec<Rule>,
}

impl Subscriptions {
    /// How many rules with `*` or `?`, or that contradict such a one, can be kept. One more is refused.
    pub const RULES_MAX: usize = 256;

    /// How many symbols can be wanted beside the rules. One more is refused.
    pub const SYMBOLS_MAX: usize = 1 << 16;

    /// Everything (`None`) or these symbols, for instruments numbered below `instruments_max`.
    pub fn new(instruments_max: usize, symbols: Option<&[Symbol]>) -> Subscriptions {
        let words = instruments_max.div_ceil(64).max(1);
        let mut wanted = symbols.map(<[Symbol]>::to_vec).unwrap_or_default();
        wanted.sort_unstable();
        wanted.dedup();
        let everything = Rule {
            pattern: Pattern::ALL,
            wanted: true,
        };
        let mut subscriptions = Subscriptions {
            bits: vec![0; words].into(),
            unnamed: symbols.is_none(),
            symbols: wanted,
            rules: match symbols {
                None => vec![everything],
                Some(_) => Vec::new(),
            },
        };
        subscriptions.forget_numbers();
        subscriptions
    }

    /// Whether messages of this instrument pass. Number 0, the feed as a whole, always does.
    #[inline(always)]
    pub fn has(&self, id: InstrumentId) -> bool {
        match self.bits.get(id.index() / 64) {
            Some(word) => word >> (id.index() % 64) & 1 != 0,
            None => false,
        }
    }

    /// Reads the bits of the first [`FETCHED`] numbers, so that they are in the caches: for a thread that
    /// waits.
    pub(crate) fn fetch(&self) {
        let words = self.bits.iter().take(FETCHED / 64).step_by(WORDS_OF_LINE);
        words.for_each(|word| {
            black_box(*word);
        });
    }

    /// Whether an instrument of this name is wanted.
    pub fn wants(&self, symbol: &Symbol) -> bool {
        match self.rules.iter().rev().find(|rule| rule.pattern.matches(symbol)) {
            Some(rule) => rule.wanted,
            None => self.symbols.binary_search(symbol).is_ok(),
        }
    }

    /// Whether some symbols are wanted that nobody has named in full.
    pub fn has_patterns(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.wanted && rule.pattern.literal().is_none())
    }

    /// Whether messages of a number without a name pass.
    pub fn takes_unnamed(&self) -> bool {
        self.unnamed
    }

    /// Adds a rule behind the others. No bit is set: those of the instruments that it matches are now to be
    /// `rule.wanted`, and [`Subscriptions::set_unnamed`] is to be called.
    pub fn add(&mut self, rule: Rule) -> Result<(), SubscriptionsFull> {
        let pattern = rule.pattern;
        if let Some(symbol) = pattern.literal() {
            return self.add_literal(symbol, rule);
        }
        let left = |rules: &[Rule]| rules.iter().filter(|rule| !pattern.covers(&rule.pattern)).count();
        if left(&self.rules) >= Subscriptions::RULES_MAX {
            return Err(SubscriptionsFull);
        }
        self.symbols.retain(|symbol| !pattern.matches(symbol));
        self.push(rule);
        Ok(())
    }

    /// A rule about everything is one about numbers without a name, too. Sets all bits as it says.
    pub fn set_unnamed(&mut self, rule: Rule) {
        if rule.is_about_all() {
            self.unnamed = rule.wanted;
            self.forget_numbers();
        }
    }

    /// A rule about one symbol: where no pattern speaks of it, a place in the list.
    fn add_literal(&mut self, symbol: Symbol, rule: Rule) -> Result<(), SubscriptionsFull> {
        if self.wants(&symbol) == rule.wanted {
            return Ok(());
        }
        if !self.rules.iter().any(|other| other.pattern.matches(&symbol)) {
            match self.symbols.binary_search(&symbol) {
                Ok(at) => _ = self.symbols.remove(at),
                Err(_) if self.symbols.len() >= Subscriptions::SYMBOLS_MAX => return Err(SubscriptionsFull),
                Err(at) => self.symbols.insert(at, symbol),
            }
            return Ok(());
        }
        let is_said = |other: &Rule| other.pattern == rule.pattern;
        if self.rules.len() >= Subscriptions::RULES_MAX && !self.rules.iter().any(is_said) {
            return Err(SubscriptionsFull);
        }
        self.rules.retain(|other| !is_said(other));
        // What it contradicted may have been all there was.
        if self.wants(&symbol) != rule.wanted {
            self.push(rule);
        }
        Ok(())
    }

    fn push(&mut self, rule: Rule) {
        self.rules.retain(|other| !rule.pattern.covers(&other.pattern));
        self.rules.push(rule);
        // With nothing wanted before it, a refusal says nothing.
        let first = self.rules.iter().position(|rule| rule.wanted);
        self.rules.drain(..first.unwrap_or(self.rules.len()));
    }

    /// Sets an instrument's bit: whether it was another one before.
    pub fn set(&mut self, id: InstrumentId, wanted: bool) -> bool {
        let before = self.has(id);
        let bit = 1 << (id.index() % 64);
        match self.bits.get_mut(id.index() / 64) {
            Some(word) if wanted => *word |= bit,
            Some(word) if id != InstrumentId::WHOLE_FEED => *word &= !bit,
            _ => {}
        }
        before != self.has(id)
    }

    /// The directory says that this number is this symbol.
    pub fn learn(&mut self, id: InstrumentId, symbol: &Symbol) {
        self.set(id, self.wants(symbol));
    }

    /// Numbers of a new day mean other instruments.
    pub fn forget_numbers(&mut self) {
        self.bits.fill(if self.unnamed { u64::MAX } else { 0 });
        self.bits[0] |= 1;
    }

    /// What was said and still counts: symbols first, then the rules that may contradict them, the latest
    /// last.
    pub fn rules(&self, each: &mut dyn FnMut(&Rule)) {
        let listed = self.symbols.iter().filter_map(Pattern::of_symbol);
        for pattern in listed {
            each(&Rule {
                pattern,
                wanted: true,
            });
        }
        self.rules.iter().for_each(each);
    }
}

/// How many messages of a kind were seen and how many the filter dropped; the rest passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Seen in sequence, wanted or not.
    pub seen: u64,
    /// Dropped undecoded because nobody subscribed.
    pub filtered: u64,
}

impl Seen {
    /// Decoded.
    pub fn passed(self) -> u64 {
        self.seen - self.filtered
    }

    /// Counts one that nobody wants.
    #[inline(always)]
    pub fn drop_one(&mut self) {
        (self.seen, self.filtered) = (self.seen + 1, self.filtered + 1);
    }
}

/// How many types can be told apart: types are numbers below this, or given places below it.
const TYPES: usize = 1024;

/// A table of [`Seen`] by message type.
pub struct Kinds {
    seen: Box<[Seen; TYPES]>,
    names: Box<[MessageType; TYPES]>,
}

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds::new()
    }
}

impl Kinds {
    /// Nothing seen yet, and a type's place is its number.
    pub fn new() -> Kinds {
        let mut kinds = Kinds {
            seen: Box::new([Seen::default(); TYPES]),
            names: Box::new([MessageType(0); TYPES]),
        };
        kinds.name_all(|place| MessageType(place as u16));
        kinds
    }

    /// The type at each place.
    pub fn name_all(&mut self, named: fn(usize) -> MessageType) {
        for (place, name) in self.names.iter_mut().enumerate() {
            *name = named(place);
        }
    }

    /// The type at one place.
    #[inline(always)]
    pub fn name(&mut self, place: usize, kind: MessageType) {
        self.names[place % TYPES] = kind;
    }

    /// A type's place; numbers beyond the table share it with lower ones.
    #[inline(always)]
    pub fn at(&mut self, kind: usize) -> &mut Seen {
        &mut self.seen[kind % TYPES]
    }

    /// The type at a place, and what was seen of it.
    pub(crate) fn both(&self, place: usize) -> (MessageType, Seen) {
        (self.names[place % TYPES], self.get(place))
    }

    /// What was seen of a type.
    pub fn get(&self, kind: usize) -> Seen {
        self.seen[kind % TYPES]
    }

    /// Tells every type that was seen.
    pub fn each(&self, each: &mut dyn FnMut(MessageType, Seen)) {
        let seen = self
            .names
            .iter()
            .zip(&self.seen[..])
            .filter(|(_, seen)| seen.seen > 0);
        seen.for_each(|(&name, &seen)| each(name, seen));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;
    use tickwire_testdata::Rng;

    fn rule(text: &str) -> Rule {
        Rule {
            pattern: text[1..].parse().unwrap(),
            wanted: text.starts_with('+'),
        }
    }

    fn symbol(text: &str) -> Symbol {
        Symbol::new(text.as_bytes()).unwrap()
    }

    fn said(subscriptions: &Subscriptions) -> std::string::String {
        let mut said = Vec::new();
        subscriptions.rules(&mut |rule| {
            said.push(std::format!(
                "{}{}",
                if rule.wanted { '+' } else { '-' },
                rule.pattern
            ));
        });
        said.join(" ")
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let mut rng = Rng::new(5);
        for round in 0..400 {
            let listed = [symbol("A"), symbol("BB")];
            let symbols = [None, Some(&listed[..]), Some(&[][..])][round % 3];
            let mut subscriptions = Subscriptions::new(64, symbols);
            let mut all: Vec<Rule> = match symbols {
                None => std::vec![rule("+*")],
                Some(listed) => listed
                    .iter()
                    .map(|symbol| rule(&std::format!("+{symbol}")))
                    .collect(),
            };
            for _ in 0..40 {
                let text: Vec<u8> = (0..1 + rng.below(3))
                    .map(|_| b"AB*?"[rng.below(4) as usize])
                    .collect();
                let rule = Rule {
                    pattern: Pattern::new(&text).unwrap(),
                    wanted: rng.below(2) == 0,
                };
                assert_eq!(subscriptions.add(rule), Ok(()));
                all.push(rule);
                for length in 1..=3 {
                    for letters in 0..1_u32 << length {
                        let text: Vec<u8> = (0..length)
                            .map(|at| b"AB"[(letters >> at & 1) as usize])
                            .collect();
                        let symbol = Symbol::new(&text).unwrap();
                        let last = all.iter().rev().find(|rule| rule.pattern.matches(&symbol));
                        assert_eq!(
                            subscriptions.wants(&symbol),
                            last.is_some_and(|rule| rule.wanted),
                            "{symbol} of {all:?}: {}",
                            said(&subscriptions)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn going_back_and_forth_takes_no_room() {
        let mut subscriptions = Subscriptions::new(64, None);
        for _ in 0..1000 {
            for text in ["-Z*", "+ZNGA", "-ZNGA", "-AAPL", "+Z*", "+AAPL"] {
                subscriptions.add(rule(text)).unwrap();
            }
        }
        assert_eq!(said(&subscriptions), "+* +Z*");
        subscriptions.add(rule("-*")).unwrap();
        assert_eq!(said(&subscriptions), "");
        subscriptions.add(rule("+IVOO")).unwrap();
        subscriptions.add(rule("+AAPL")).unwrap();
        assert_eq!(said(&subscriptions), "+AAPL +IVOO");
        subscriptions.add(rule("-A*")).unwrap();
        assert_eq!(said(&subscriptions), "+IVOO");
    }

    #[test]
    fn a_full_list_refuses_and_changes_nothing() {
        let mut subscriptions = Subscriptions::new(64, Some(&[]));
        for n in 0..Subscriptions::RULES_MAX {
            subscriptions
                .add(rule(&std::format!("+{n}*")))
                .unwrap_or_else(|full| panic!("{n}: {full}"));
        }
        assert_eq!(subscriptions.add(rule("+A*")), Err(SubscriptionsFull));
        assert_eq!(subscriptions.add(rule("-1X")), Err(SubscriptionsFull));
        assert!(!subscriptions.wants(&symbol("AAPL")) && subscriptions.wants(&symbol("1X")));
        assert_eq!(
            subscriptions.add(rule("+AAPL")),
            Ok(()),
            "no pattern speaks of it"
        );
        assert_eq!(subscriptions.add(rule("+*")), Ok(()), "it takes in all others");
        assert_eq!(said(&subscriptions), "+*");
        assert!(SubscriptionsFull.to_string().contains("256"));
    }

    #[test]
    fn an_exclusion_holds_for_instruments_defined_later_and_next_day() {
        let mut subscriptions = Subscriptions::new(64, None);
        subscriptions.add(rule("-ZNGA")).unwrap();
        for _ in 0..2 {
            assert!(subscriptions.has(InstrumentId(7)), "it has no name yet");
            subscriptions.learn(InstrumentId(7), &symbol("ZNGA"));
            subscriptions.learn(InstrumentId(8), &symbol("AAPL"));
            assert!(!subscriptions.has(InstrumentId(7)) && subscriptions.has(InstrumentId(8)));
            assert!(subscriptions.has(InstrumentId::WHOLE_FEED));
            subscriptions.forget_numbers();
        }
    }
}
