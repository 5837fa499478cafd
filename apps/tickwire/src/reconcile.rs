//! `tickwire reconcile`: our record of a day's executions against the venue's, from files.
//!
//! Both sides are lists of executions: a side, a quantity and a price of a symbol, under the ExecID (17) that
//! the venue gave. They are compared by that identifier, so that neither order nor repetition matters; what
//! the venue took back counts no more. Read are the `fills` of quoter and traders, FIX message logs and
//! stores (ours, those of a drop copy, or anybody's with one message a line), and the journal of an exchange,
//! which is replayed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tickwire_exchange::JournalReader;
use tickwire_lab::Table;
use tickwire_market::{Price, Side};

use crate::cli::ReconcileArgs;
use tickwire_console::failure::Failure;
use tickwire_fixengine::executions::{self, Report};
use tickwire_node::fills;
use tickwire_simulator::journal;

/// Differences that are printed; those beyond are counted.
const SHOWN_MAX: usize = 50;

/// What was traded under an ExecID.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Execution {
    symbol: String,
    side: Side,
    qty: u64,
    price: Price,
}

impl Execution {
    fn shown(&self) -> String {
        let side = if self.side == Side::Bid { "buy" } else { "sell" };
        format!("{side} {} {} at {}", self.qty, self.symbol, self.price)
    }
}

/// One side's executions by ExecID.
#[derive(Default)]
struct Record {
    executions: BTreeMap<String, Execution>,
    /// What was taken back, by the ExecID of the execution.
    taken_back: BTreeMap<String, Option<Execution>>,
    repeated: u64,
    /// One identifier for two different executions: each said.
    conflicts: Vec<String>,
}

impl Record {
    fn put(&mut self, id: String, execution: Execution) {
        match self.executions.get(&id) {
            Some(known) if *known == execution => self.repeated += 1,
            Some(known) => self.conflicts.push(format!(
                "{id}: {} and {} under one ExecID",
                known.shown(),
                execution.shown()
            )),
            None => _ = self.executions.insert(id, execution),
        }
    }

    /// What stands: executions without those that were taken back.
    fn standing(&self) -> BTreeMap<&str, &Execution> {
        let stands = |(id, _): &(&String, &Execution)| !self.taken_back.contains_key(*id);
        let standing = self.executions.iter().filter(stands);
        standing.map(|(id, execution)| (id.as_str(), execution)).collect()
    }

    /// Reads a file of any kind; `session` is a CompID that one end of a FIX message must have.
    fn read(&mut self, path: &Path, session: Option<&str>) -> Result<(), Failure> {
        let bytes = std::fs::read(path)
            .map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
        let before = self.executions.len() as u64 + self.repeated;
        if JournalReader::new(&bytes).is_ok() {
            let sent = journal::sent(path, &bytes)?;
            executions::of_streams(&sent, session, |report| self.take(report));
        } else if is_fills(&bytes) {
            let (recovered, _) = fills::read::<()>(&bytes).map_err(|line| {
                Failure::config(format!(
                    "{}: line {line} is damaged, and others are behind it; take the file of a backup",
                    path.display()
                ))
            })?;
            for fill in &recovered.fills {
                // A broken trade is noted the other way round.
                let side = if fill.is_broken { !fill.side } else { fill.side };
                let execution = Execution {
                    symbol: fill.symbol.to_string(),
                    side,
                    qty: fill.qty.into(),
                    price: fill.price,
                };
                match fill.is_broken {
                    false => self.put(fill.exec.to_string(), execution),
                    true => self.take_back_like(&execution),
                }
            }
        } else {
            executions::of_file(path, session, |report| self.take(report))
                .map_err(tickwire_node::voice::failure)?;
        }
        if self.executions.len() as u64 + self.repeated == before
            && self.taken_back.is_empty()
            && !bytes.is_empty()
        {
            let whose = session.map_or(String::new(), |id| format!(" of {id}"));
            eprintln!(
                "{}: no executions{whose} in it: give fills of a quoter or a trader, a FIX log or store, or a journal",
                path.display()
            );
        }
        Ok(())
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Trade {
                id,
                symbol,
                side,
                qty,
                price,
            } => self.put(
                id,
                Execution {
                    symbol,
                    side,
                    qty,
                    price,
                },
            ),
            Report::TakenBack { of } => _ = self.taken_back.insert(of, None),
        }
    }

    /// The file of fills says what was taken back, not of which execution: the last that is like it.
    fn take_back_like(&mut self, execution: &Execution) {
        let found = self
            .executions
            .iter()
            .rev()
            .find(|(id, e)| *e == execution && !self.taken_back.contains_key(*id));
        match found.map(|(id, _)| id.clone()) {
            Some(id) => _ = self.taken_back.insert(id, Some(execution.clone())),
            None => self
                .conflicts
                .push(format!("{} was taken back and never traded", execution.shown())),
        }
    }
}

/// Whether these are lines of the quoter's file.
fn is_fills(bytes: &[u8]) -> bool {
    [&b"fill,"[..], b"broken,", b"heard,"]
        .iter()
        .any(|word| bytes.starts_with(word))
}

/// Bought, sold and money of one symbol.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Sum {
    bought: u64,
    sold: u64,
    /// Price times quantity, sales less purchases, in the price's units.
    paid: i128,
}

fn sums(standing: &BTreeMap<&str, &Execution>) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for execution in standing.values() {
        let sum = sums.entry(execution.symbol.clone()).or_default();
        let money = i128::from(execution.price.raw()) * i128::from(execution.qty);
        match execution.side {
            Side::Bid => (sum.bought, sum.paid) = (sum.bought + execution.qty, sum.paid - money),
            Side::Ask => (sum.sold, sum.paid) = (sum.sold + execution.qty, sum.paid + money),
        }
    }
    sums
}

/// `tickwire reconcile`.
pub(crate) fn run(args: &ReconcileArgs) -> Result<(), Failure> {
    let read = |files: &[PathBuf]| {
        let mut record = Record::default();
        for file in files {
            record.read(file, args.session.as_deref())?;
        }
        Ok::<_, Failure>(record)
    };
    let (own, venue) = (read(&args.own)?, read(&args.venue)?);
    let differences = differences(&own, &venue);
    let (ours, theirs) = (own.standing(), venue.standing());
    let (our_sums, their_sums) = (sums(&ours), sums(&theirs));
    let mut table = Table::new(
        "executions by symbol",
        &["symbol", "bought", "venue", "sold", "venue", "net", "venue", ""],
    );
    let symbols: std::collections::BTreeSet<&String> = our_sums.keys().chain(their_sums.keys()).collect();
    for symbol in symbols {
        let sum = |sums: &BTreeMap<String, Sum>| sums.get(symbol).copied().unwrap_or_default();
        let (own, venue) = (sum(&our_sums), sum(&their_sums));
        let net = |sum: Sum| i128::from(sum.bought) - i128::from(sum.sold);
        let verdict = if own == venue { "" } else { "DIFFERS" };
        table = table.row([
            symbol.clone(),
            own.bought.to_string(),
            venue.bought.to_string(),
            own.sold.to_string(),
            venue.sold.to_string(),
            net(own).to_string(),
            net(venue).to_string(),
            verdict.to_string(),
        ]);
    }
    print!("{}", table.to_text(tickwire_console::terminal::width()));
    println!(
        "{} executions of ours, {} of the venue; taken back: {} and {}; told more than once: {} and {}",
        ours.len(),
        theirs.len(),
        own.taken_back.len(),
        venue.taken_back.len(),
        own.repeated,
        venue.repeated
    );
    for difference in differences.iter().take(SHOWN_MAX) {
        println!("{difference}");
    }
    if differences.len() > SHOWN_MAX {
        println!("... and {} more", differences.len() - SHOWN_MAX);
    }
    match differences.len() {
        0 if ours.is_empty() && theirs.is_empty() => Err(Failure::check(
            "neither side has an execution: nothing was compared; are these the files of the day?",
        )),
        0 => {
            println!("they agree");
            Ok(())
        }
        n => Err(Failure::check(format!(
            "{n} differences between our record and the venue's; do not trade on positions before they are explained"
        ))),
    }
}

/// What is not the same, a line each.
fn differences(own: &Record, venue: &Record) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(own.conflicts.iter().map(|what| format!("ours: {what}")));
    found.extend(venue.conflicts.iter().map(|what| format!("venue: {what}")));
    let (ours, theirs) = (own.standing(), venue.standing());
    for (id, execution) in &ours {
        match theirs.get(id) {
            Some(other) if other == execution => {}
            Some(other) => found.push(format!(
                "{id}: ours {}, venue {}",
                execution.shown(),
                other.shown()
            )),
            None if venue.taken_back.contains_key(*id) => found.push(format!(
                "{id}: {}: the venue took it back, we count it",
                execution.shown()
            )),
            None => found.push(format!("{id}: {}: the venue does not have it", execution.shown())),
        }
    }
    for (id, execution) in &theirs {
        if !ours.contains_key(id) {
            found.push(format!("{id}: {}: we do not have it", execution.shown()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(record: &mut Record, id: &str, side: Side, qty: u64, price: &str) {
        record.put(
            id.into(),
            Execution {
                symbol: "ESH7".into(),
                side,
                qty,
                price: Price::parse(price.as_bytes()).expect("a price"),
            },
        );
    }

    #[test]
    fn order_and_repetition_do_not_matter_and_every_kind_of_difference_is_said() {
        let (mut own, mut venue) = (Record::default(), Record::default());
        for (id, qty) in [("1", 5), ("2", 7), ("3", 1)] {
            trade(&mut own, id, Side::Bid, qty, "4500.25");
        }
        for (id, qty) in [("3", 1), ("2", 7), ("1", 5), ("2", 7)] {
            trade(&mut venue, id, Side::Bid, qty, "4500.25");
        }
        assert_eq!(differences(&own, &venue), Vec::<String>::new());
        assert_eq!(venue.repeated, 1);
        venue.taken_back.insert("2".into(), None);
        trade(&mut venue, "4", Side::Ask, 2, "4501");
        trade(&mut own, "5", Side::Ask, 3, "4501");
        trade(&mut own, "1", Side::Bid, 6, "4500.25");
        let found = differences(&own, &venue);
        assert_eq!(found.len(), 4, "{found:?}");
        for what in [
            "under one ExecID",
            "2: buy 7 ESH7 at 4500.25: the venue took it back",
            "5: sell 3 ESH7 at 4501.00: the venue does not have it",
            "4: sell 2 ESH7 at 4501.00: we do not have it",
        ] {
            assert!(found.iter().any(|line| line.contains(what)), "{what}: {found:?}");
        }
    }

    #[test]
    fn a_price_that_differs_is_a_difference_although_positions_agree() {
        let (mut own, mut venue) = (Record::default(), Record::default());
        trade(&mut own, "1", Side::Bid, 5, "4500.25");
        trade(&mut venue, "1", Side::Bid, 5, "4500.50");
        assert_eq!(differences(&own, &venue).len(), 1);
        assert_ne!(sums(&own.standing()), sums(&venue.standing()));
    }

    #[test]
    fn what_the_fills_say_was_taken_back_counts_no_more() {
        let mut own = Record::default();
        trade(&mut own, "1", Side::Bid, 5, "4500.25");
        trade(&mut own, "2", Side::Bid, 5, "4500.25");
        let like = own.executions["1"].clone();
        own.take_back_like(&like);
        assert_eq!(own.standing().len(), 1);
        own.take_back_like(&like);
        own.take_back_like(&like);
        assert_eq!((own.standing().len(), own.conflicts.len()), (0, 1));
    }
}
