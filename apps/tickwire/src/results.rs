//! What each side of a run leaves behind, and how the two are compared.
//!
//! `<side>.json` holds counters, orders and samples, `books-<side>.txt` one price level per line. Both are plain enough
//! to be checked without us.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickwire_lab::{Histogram, Series};
use tickwire_market::{Counters, Level, Side};

use crate::failure::Failure;

/// One order as one side knows it at the end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OrderOutcome {
    /// FIX OrdStatus (39) at the end: 0 new, 1 partially filled, 2 filled, 4 cancelled, 8 rejected, A pending new.
    pub(crate) status: char,
    /// Executed quantity.
    pub(crate) filled: u64,
}

/// A firm's quote of an instrument at the end.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct QuoteOutcome {
    pub(crate) firm: u32,
    pub(crate) symbol: String,
    /// Contracts that may still trade, bid and offer.
    pub(crate) open: [u64; 2],
    /// Contracts bought and sold.
    pub(crate) traded: [u64; 2],
    /// Received less paid, price times contracts.
    #[serde(default)]
    pub(crate) cash: f64,
}

/// What a firm's orders have traded in an instrument at the end; quotes are apart.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct OrdersTraded {
    pub(crate) firm: u32,
    pub(crate) symbol: String,
    /// Units bought and sold.
    pub(crate) traded: [u64; 2],
    /// Received less paid, price times units.
    #[serde(default)]
    pub(crate) cash: f64,
}

/// What the exchange leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct ExchangeResults {
    /// Messages published.
    pub(crate) messages: u64,
    /// Datagrams sent per line, after impairment.
    pub(crate) datagrams: [u64; 2],
    /// Datagrams the impairment dropped per line.
    pub(crate) dropped: [u64; 2],
    /// Retransmission requests answered.
    pub(crate) retransmissions: u64,
    /// Client orders by ClOrdID.
    pub(crate) orders: BTreeMap<String, OrderOutcome>,
    /// From a packet's first transmission to the arrival of the order it caused, nanoseconds, for every order that names
    /// its cause.
    pub(crate) packet_to_order: Histogram,
    /// The same over time.
    pub(crate) packet_to_order_series: Series,
    /// Orders whose cause is no packet of this session.
    pub(crate) unmatched_causes: u64,
    /// Of market makers.
    #[serde(default)]
    pub(crate) quotes: Vec<QuoteOutcome>,
    /// What clients' orders have traded, by firm and symbol.
    #[serde(default)]
    pub(crate) orders_traded: Vec<OrdersTraded>,
    /// Counter id → value, of its sockets and its clock.
    #[serde(default)]
    pub(crate) counters: BTreeMap<String, u64>,
}

/// What the trader leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct TraderResults {
    /// Counter id → value.
    pub(crate) counters: BTreeMap<String, u64>,
    /// Orders by ClOrdID.
    pub(crate) orders: BTreeMap<String, OrderOutcome>,
    /// Position at the end, shares.
    pub(crate) position: i64,
    /// Nanoseconds per stage, in the order of the path.
    pub(crate) stages: Vec<(String, Histogram)>,
    /// The whole way over time.
    pub(crate) total_series: Series,
    /// Samples not kept for lack of room.
    pub(crate) samples_dropped: u64,
    /// How the time was taken and the process ran.
    pub(crate) host: Vec<(String, String)>,
}

/// Every counter with a value, for a results file.
pub(crate) fn counters_by_id(counters: &Counters) -> BTreeMap<String, u64> {
    counters
        .iter()
        .map(|(c, v)| (c.spec().id.to_string(), v))
        .collect()
}

pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Failure> {
    let file = tickwire_runtime::files::create(path).map_err(|e| cannot("write", path, &e))?;
    let mut out = BufWriter::new(file);
    serde_json::to_writer(&mut out, value).map_err(|e| cannot("write", path, &e))?;
    out.flush().map_err(|e| cannot("write", path, &e))
}

pub(crate) fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Failure> {
    let file = File::open(path).map_err(|e| cannot("read", path, &e))?;
    serde_json::from_reader(BufReader::new(file)).map_err(|e| cannot("read", path, &e))
}

fn cannot(what: &str, path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::system(format!("cannot {what} {}: {e}", path.display()))
}

/// Writes every level of every book, best first: `symbol side rank price qty orders`.
pub(crate) struct LevelWriter {
    out: BufWriter<File>,
    path: std::path::PathBuf,
}

impl LevelWriter {
    pub(crate) fn create(path: &Path) -> Result<LevelWriter, Failure> {
        let file = tickwire_runtime::files::create(path).map_err(|e| cannot("write", path, &e))?;
        Ok(LevelWriter {
            out: BufWriter::new(file),
            path: path.to_path_buf(),
        })
    }

    pub(crate) fn book(
        &mut self,
        symbol: &str,
        side: Side,
        levels: impl Iterator<Item = Level>,
    ) -> Result<(), Failure> {
        let name = if side == Side::Bid { "bid" } else { "ask" };
        for (rank, l) in levels.enumerate() {
            writeln!(
                self.out,
                "{symbol} {name} {rank} {} {} {}",
                l.price, l.qty, l.orders
            )
            .map_err(|e| cannot("write", &self.path, &e))?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|e| cannot("write", &self.path, &e))
    }
}

/// The outcome of comparing two level files.
#[derive(Debug, Default)]
pub(crate) struct BookComparison {
    pub(crate) instruments: usize,
    pub(crate) levels: usize,
    pub(crate) differences: usize,
    /// The first few differences, readable.
    pub(crate) examples: Vec<String>,
}

/// Compares two level files line by line; both are written in order of instrument, side and rank.
pub(crate) fn compare_books(exchange: &Path, trader: &Path) -> Result<BookComparison, Failure> {
    let read = |path: &Path| -> Result<BTreeMap<String, String>, Failure> {
        let file = File::open(path).map_err(|e| cannot("read", path, &e))?;
        let mut levels = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|e| cannot("read", path, &e))?;
            let mut words = line.splitn(4, ' ');
            let key: Vec<&str> = words.by_ref().take(3).collect();
            levels.insert(key.join(" "), words.next().unwrap_or("").to_string());
        }
        Ok(levels)
    };
    let (theirs, ours) = (read(exchange)?, read(trader)?);
    let mut result = BookComparison {
        levels: theirs.len(),
        ..Default::default()
    };
    let mut symbols: Vec<&str> = theirs.keys().filter_map(|k| k.split(' ').next()).collect();
    symbols.dedup();
    result.instruments = symbols.len();
    let keys: std::collections::BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for key in keys {
        let (e, t) = (theirs.get(key), ours.get(key));
        if e != t {
            result.differences += 1;
            if result.examples.len() < 5 {
                let show = |v: Option<&String>| v.map_or("nothing".to_string(), |v| v.clone());
                result
                    .examples
                    .push(format!("{key}: exchange has {}, trader has {}", show(e), show(t)));
            }
        }
    }
    Ok(result)
}

/// The outcome of comparing the two sides' orders.
#[derive(Debug, Default)]
pub(crate) struct OrderComparison {
    pub(crate) orders: usize,
    pub(crate) by_status: BTreeMap<char, usize>,
    /// Orders one side does not know, or knows differently.
    pub(crate) unaccounted: Vec<String>,
}

/// Every order must be known to both sides with the same end.
pub(crate) fn compare_orders(
    exchange: &BTreeMap<String, OrderOutcome>,
    trader: &BTreeMap<String, OrderOutcome>,
) -> OrderComparison {
    let mut result = OrderComparison {
        orders: trader.len(),
        ..Default::default()
    };
    for o in trader.values() {
        *result.by_status.entry(o.status).or_default() += 1;
    }
    let keys: std::collections::BTreeSet<&String> = exchange.keys().chain(trader.keys()).collect();
    for key in keys {
        let (e, t) = (exchange.get(key), trader.get(key));
        if e != t {
            let show = |o: Option<&OrderOutcome>| {
                o.map_or("does not know it".to_string(), |o| {
                    format!("says status {} filled {}", o.status, o.filled)
                })
            };
            result.unaccounted.push(format!(
                "order {key}: the exchange {}, the trader {}",
                show(e),
                show(t)
            ));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: char, filled: u64) -> OrderOutcome {
        OrderOutcome { status, filled }
    }

    #[test]
    fn an_order_only_one_side_knows_is_unaccounted_for() {
        let exchange = BTreeMap::from([("1".to_string(), outcome('2', 100))]);
        let trader = BTreeMap::from([
            ("1".to_string(), outcome('2', 100)),
            ("2".to_string(), outcome('A', 0)),
        ]);
        assert!(compare_orders(&exchange, &exchange).unaccounted.is_empty());
        let c = compare_orders(&exchange, &trader);
        assert_eq!(
            c.unaccounted,
            ["order 2: the exchange does not know it, the trader says status A filled 0"]
        );
    }

    #[test]
    fn one_different_level_is_found_and_named() {
        let dir = std::env::temp_dir().join(format!("tickwire-compare-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (a, b) = (dir.join("a"), dir.join("b"));
        std::fs::write(&a, "X bid 0 1.00 5 1\nX ask 0 1.01 5 1\n").unwrap();
        std::fs::write(&b, "X bid 0 1.00 5 1\nX ask 0 1.01 6 1\nX ask 1 1.02 1 1\n").unwrap();
        assert_eq!(compare_books(&a, &a).unwrap().differences, 0);
        let c = compare_books(&a, &b).unwrap();
        assert_eq!((c.instruments, c.levels, c.differences), (1, 2, 2));
        assert_eq!(
            c.examples[0],
            "X ask 0: exchange has 1.01 5 1, trader has 1.01 6 1"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
