//! What became of messages, by subscription and by symbol: in this process, and before it at the driver's
//! hook.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tickwire_feed::{Rule, Seen};
use tickwire_market::Symbol;

use crate::command::InstrumentCount;

/// Sums of messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    instruments: u64,
    seen: Seen,
    /// `None`: of no instrument it was counted.
    at_hook: Option<u64>,
}

impl Sum {
    fn add(&mut self, count: &InstrumentCount) {
        self.instruments += 1;
        self.seen.seen += count.seen.seen;
        self.seen.filtered += count.seen.filtered;
        if let Some(at_hook) = count.at_hook {
            *self.at_hook.get_or_insert(0) += at_hook;
        }
    }

    fn to_json(self) -> Value {
        json!({
            "seen": self.seen.seen, "filtered": self.seen.filtered, "passed": self.seen.passed(), "at_hook": self.at_hook,
        })
    }
}

/// By subscription and by symbol. Of all rules that match a symbol the last one has its messages; where none
/// does, they are nobody's.
pub(crate) fn of<'a>(rules: &[Rule], counts: impl Iterator<Item = &'a InstrumentCount>) -> Value {
    // Symbols are said first and are matched by no pattern behind them, or they would not be kept.
    let listed: HashMap<Symbol, usize> = rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((rule.pattern.literal()?, at)))
        .collect();
    let patterns: Vec<(usize, &Rule)> = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.pattern.literal().is_none())
        .collect();
    let mut by_rule = vec![Sum::default(); rules.len()];
    let mut nobodys = Sum::default();
    let mut by_symbol: BTreeMap<Symbol, (bool, Sum)> = BTreeMap::new();
    for count in counts {
        let pattern = patterns
            .iter()
            .rev()
            .find(|(_, rule)| rule.pattern.matches(&count.symbol));
        let pattern = pattern.map(|(at, _)| *at);
        match listed.get(&count.symbol).copied().max(pattern) {
            Some(at) => by_rule[at].add(count),
            None => nobodys.add(count),
        }
        let (wanted, sum) = by_symbol.entry(count.symbol).or_default();
        *wanted |= count.wanted;
        sum.add(count);
    }
    let row = |name: Value, wanted: bool, sum: &Sum| {
        let mut row = sum.to_json();
        row["subscription"] = name;
        row["wanted"] = wanted.into();
        row["instruments"] = sum.instruments.into();
        row
    };
    let mut subscriptions: Vec<Value> = rules
        .iter()
        .zip(&by_rule)
        .map(|(rule, sum)| row(rule.pattern.to_string().into(), rule.wanted, sum))
        .collect();
    subscriptions.push(row(Value::Null, false, &nobodys));
    let symbols: Vec<Value> = by_symbol
        .iter()
        .map(|(symbol, (wanted, sum))| {
            let mut row = sum.to_json();
            row["symbol"] = symbol.as_str().into();
            row["wanted"] = (*wanted).into();
            row
        })
        .collect();
    json!({ "by_subscription": subscriptions, "by_symbol": symbols })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(symbol: &str, wanted: bool, seen: u64, filtered: u64, at_hook: Option<u64>) -> InstrumentCount {
        InstrumentCount {
            symbol: Symbol::new(symbol.as_bytes()).expect("a symbol"),
            wanted,
            seen: Seen { seen, filtered },
            at_hook,
        }
    }

    #[test]
    fn messages_are_the_last_rules_that_matches_and_nobodys_where_none_does() {
        let rule = |text: &str, wanted| Rule {
            pattern: text.parse().expect("a pattern"),
            wanted,
        };
        let rules = [rule("IBM", true), rule("Z*", true), rule("ZNGA", false)];
        let counts = [
            count("IBM", true, 10, 2, Some(5)),
            count("ZION", true, 7, 0, Some(0)),
            count("ZNGA", false, 4, 4, Some(90)),
            count("AAPL", false, 3, 3, None),
            // Of another channel.
            count("IBM", true, 1, 0, None),
        ];
        let found = of(&rules, counts.iter());
        let sums: Vec<[Value; 5]> = found["by_subscription"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|row| {
                ["subscription", "instruments", "seen", "passed", "at_hook"].map(|name| row[name].clone())
            })
            .collect();
        assert_eq!(
            json!(sums),
            json!([
                ["IBM", 2, 11, 9, 5],
                ["Z*", 1, 7, 7, 0],
                ["ZNGA", 1, 4, 0, 90],
                [null, 1, 3, 0, null],
            ])
        );
        let symbols = found["by_symbol"].as_array().expect("a list");
        assert_eq!(symbols.len(), 4);
        assert_eq!(
            symbols[1],
            json!({ "symbol": "IBM", "wanted": true, "seen": 11, "filtered": 2, "passed": 9, "at_hook": 5 })
        );
    }
}
