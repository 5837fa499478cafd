//! What each side of a run leaves behind, and how the two are compared.
//!
//! `<side>.json` holds counters, orders and samples, `books-<side>.txt` one price level per line. Both are
//! plain enough to be checked without us.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tickwire_lab::{Histogram, Series};
use tickwire_market::{Counters, Level, Side};

use tickwire_console::failure::Failure;

/// One order as one side knows it at the end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OrderOutcome {
    /// FIX OrdStatus (39) at the end: 0 new, 1 partially filled, 2 filled, 4 cancelled, 8 rejected, A pending
    /// new.
    pub status: char,
    /// Executed quantity.
    pub filled: u64,
}

/// A firm's quote of an instrument at the end.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct QuoteOutcome {
    /// The firm's number at the exchange.
    pub firm: u32,
    /// Of the instrument.
    pub symbol: String,
    /// Contracts that may still trade, bid and offer.
    pub open: [u64; 2],
    /// Contracts bought and sold.
    pub traded: [u64; 2],
    /// Received less paid, price times contracts.
    #[serde(default)]
    pub cash: f64,
}

/// What a firm's orders have traded in an instrument at the end; quotes are apart.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct OrdersTraded {
    /// The firm's number at the exchange.
    pub firm: u32,
    /// Of the instrument.
    pub symbol: String,
    /// Units bought and sold.
    pub traded: [u64; 2],
    /// Received less paid, price times units.
    #[serde(default)]
    pub cash: f64,
}

/// What the exchange leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct ExchangeResults {
    /// Messages published.
    pub messages: u64,
    /// Datagrams sent per line, after impairment.
    pub datagrams: [u64; 2],
    /// Datagrams the impairment dropped per line.
    pub dropped: [u64; 2],
    /// Retransmission requests answered.
    pub retransmissions: u64,
    /// Client orders by ClOrdID.
    pub orders: BTreeMap<String, OrderOutcome>,
    /// From a packet's first transmission to the arrival of the order it caused, nanoseconds, for every order
    /// that names its cause.
    pub packet_to_order: Histogram,
    /// The same over time.
    pub packet_to_order_series: Series,
    /// Orders whose cause is no packet of this session.
    pub unmatched_causes: u64,
    /// Of market makers.
    #[serde(default)]
    pub quotes: Vec<QuoteOutcome>,
    /// What clients' orders have traded, by firm and symbol.
    #[serde(default)]
    pub orders_traded: Vec<OrdersTraded>,
    /// Counter id → value, of its sockets and its clock.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

/// What the trader leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct TraderResults {
    /// Counter id → value.
    pub counters: BTreeMap<String, u64>,
    /// Orders by ClOrdID.
    pub orders: BTreeMap<String, OrderOutcome>,
    /// Position at the end, shares.
    pub position: i64,
    /// Nanoseconds per stage, in the order of the path.
    pub stages: Vec<(String, Histogram)>,
    /// The whole way over time.
    pub total_series: Series,
    /// Samples not kept for lack of room.
    pub samples_dropped: u64,
    /// How the time was taken and the process ran.
    pub host: Vec<(String, String)>,
}

/// Every counter with a value, for a results file.
pub fn counters_by_id(counters: &Counters) -> BTreeMap<String, u64> {
    counters
        .iter()
        .map(|(c, v)| (c.spec().id.to_string(), v))
        .collect()
}

/// Writes a value as JSON.
///
/// # Errors
/// The file cannot be written.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Failure> {
    let file = tickwire_runtime::files::create(path).map_err(|e| cannot("write", path, &e))?;
    let mut out = BufWriter::new(file);
    serde_json::to_writer(&mut out, value).map_err(|e| cannot("write", path, &e))?;
    out.flush().map_err(|e| cannot("write", path, &e))
}

/// Reads a value from a JSON file.
///
/// # Errors
/// The file cannot be read, or is not such a value.
pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Failure> {
    let file = File::open(path).map_err(|e| cannot("read", path, &e))?;
    serde_json::from_reader(BufReader::new(file)).map_err(|e| cannot("read", path, &e))
}

fn cannot(what: &str, path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::system(format!("cannot {what} {}: {e}", path.display()))
}

/// Writes every level of every book, best first: `symbol side rank price qty orders`.
pub struct LevelWriter {
    out: BufWriter<File>,
    path: std::path::PathBuf,
}

impl LevelWriter {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<LevelWriter, Failure> {
        let file = tickwire_runtime::files::create(path).map_err(|e| cannot("write", path, &e))?;
        Ok(LevelWriter {
            out: BufWriter::new(file),
            path: path.to_path_buf(),
        })
    }

    /// Writes the levels of one book.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn book(
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

    /// Writes what is left.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|e| cannot("write", &self.path, &e))
    }
}

/// The outcome of comparing two level files.
#[derive(Debug, Default)]
pub struct BookComparison {
    /// Instruments that were compared.
    pub instruments: usize,
    /// Levels that were compared.
    pub levels: usize,
    /// Levels that differ or that one side lacks.
    pub differences: usize,
    /// The first few differences, readable.
    pub examples: Vec<String>,
}

/// Compares two level files line by line; both are written in order of instrument, side and rank.
pub fn compare_books(exchange: &Path, trader: &Path) -> Result<BookComparison, Failure> {
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
pub struct OrderComparison {
    /// Orders that were compared.
    pub orders: usize,
    /// How many by FIX OrdStatus (39) at the end.
    pub by_status: BTreeMap<char, usize>,
    /// Orders one side does not know, or knows differently.
    pub unaccounted: Vec<String>,
}

/// Every order must be known to both sides with the same end.
pub fn compare_orders(
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
