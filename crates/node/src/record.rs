//! What a trader's strategies have traded, kept beyond the process (`trader.state`): a thread of its own
//! writes every execution into the [`fills`] of its session, and the next process begins with
//! what they come to.
//!
//! ```text
//! trading thread   report ─► Record ─ ring of a session ─►┐
//!                  messages taken, an atomic ─────────────┴─► thread: STATE/SESSION/fills, one write for all that came
//! start            STATE/SESSION/fills ─► positions, by strategy and symbol · STATE/SESSION/session.store ─► numbers
//!                  ─► the venue is asked for everything behind the last line ─► trading
//! ```
//! The trading thread waits for nobody: where a ring is full, or a file cannot be written, the kill switch
//! goes on, since the next process would not know what is held.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_fix::{ExecType, ExecutionReport, Id, Store};
use tickwire_market::{ClientOrderId, Nanos, Price, Qty, SeqNo, Side, Symbol};
use tickwire_runtime::spsc::{Consumer, Producer, ring};
use tickwire_trading::strategy::{LateExecution, is_name_of_quote, whose};

use crate::entry_store::EntryStore;
use crate::fills::{self, Fill, FillsFile, Recovered};
use tickwire_console::failure::Failure;
use tickwire_console::warn;

/// Executions of a session on their way to its file. When there are more, the kill switch goes on.
const WAITING_MAX: usize = 1 << 14;
/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(20);
/// Looks between two lines that say how far the venue was heard.
const LOOKS_HEARD: u32 = 12;
/// Room for the session's messages. None is kept: orders are not sent again.
const STORE_BYTES: usize = 1 << 20;
/// The atomic has the number of a message below this, above it how often numbers began anew, and in its
/// highest bit whether the process has ended with nothing open.
const NUMBERS: u64 = 1 << 48;
const ENDED: u64 = 1 << 63;

/// What of a strategy traded, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The strategy.
    pub strategy: Symbol,
    /// A quote; an order if not.
    pub is_quote: bool,
}

impl fills::Source for Origin {
    fn put(&self, line: &mut String) -> std::fmt::Result {
        use std::fmt::Write as _;
        let of = if self.is_quote { "quote" } else { "order" };
        write!(line, "{of}:{}", self.strategy)
    }

    fn read(text: &str) -> Option<Origin> {
        let (of, strategy) = text.split_once(':')?;
        Some(Origin {
            strategy: Symbol::new(strategy.as_bytes())?,
            is_quote: match of {
                "quote" => true,
                "order" => false,
                _ => return None,
            },
        })
    }
}

/// An execution on its way to the thread.
#[derive(Clone, Copy, Debug)]
struct Traded {
    at: Nanos,
    /// How often the venue's numbers had begun anew.
    epoch: u64,
    /// Of the order, or the name of the quote.
    number: u64,
    symbol: Symbol,
    side: Side,
    is_broken: bool,
    qty: Qty,
    price: Price,
    seq: u64,
    exec: Id,
}

/// The trading thread's end, of one session.
pub struct Record {
    ring: Producer<Entry>,
    heard: Arc<AtomicU64>,
    epoch: u64,
    /// More may have been traded than was written, and nobody has looked yet.
    is_in_doubt: bool,
}

/// What the thread is handed.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Traded(Traded),
    Doubt(bool),
}

impl Record {
    /// Takes an execution, or a trade that the venue took back, of the order or the quote with this number;
    /// `qty` at `price`, as the report with the number `seq` says. Whether there was room for it: if not, the
    /// next process would not know what is held.
    pub(crate) fn put(
        &mut self,
        now: Nanos,
        (number, seq): (u64, SeqNo),
        report: &ExecutionReport,
        (qty, price): (Qty, Price),
    ) -> bool {
        let is_broken = report.exec_type == ExecType::TradeCancel;
        let traded = Traded {
            at: now,
            epoch: self.epoch,
            number,
            symbol: report.symbol,
            // Of one that is taken back the other way round, as it is booked.
            side: if is_broken { !report.side } else { report.side },
            is_broken,
            qty,
            price,
            seq: seq.0,
            exec: report.exec_id,
        };
        self.ring.push(Entry::Traded(traded)).is_ok()
    }

    /// Every message of the venue up to this number was taken, and what it said is in the ring.
    pub(crate) fn heard(&self, seq: u64) {
        self.heard.store(self.word(seq), Ordering::Release);
    }

    /// The same of a process that ends, and of which nothing is open.
    pub(crate) fn ended(&self, seq: u64) {
        self.heard.store(self.word(seq) | ENDED, Ordering::Release);
    }

    fn word(&self, seq: u64) -> u64 {
        ((self.epoch * NUMBERS) | seq.min(NUMBERS - 1)) & !ENDED
    }

    /// More may have been traded than was heard of; or a person has looked. Who has no room for it has no
    /// room for executions either.
    pub(crate) fn doubt(&mut self, is_in_doubt: bool) {
        if std::mem::replace(&mut self.is_in_doubt, is_in_doubt) != is_in_doubt {
            let _ = self.ring.push(Entry::Doubt(is_in_doubt));
        }
    }

    /// The venue's numbers begin anew.
    pub(crate) fn begin_anew(&mut self) {
        self.epoch += 1;
        self.heard(0);
    }
}

/// The state of a session as a process finds it.
pub struct Kept {
    /// What a process before this one has traded, and how far it had heard the venue.
    pub recovered: Recovered<Origin>,
    /// Where the session has its numbers: the venue is asked for everything behind the last line.
    pub store: EntryStore,
    file: FillsFile,
}

impl Kept {
    /// Opens the state of a session below a folder, or begins it. `identity` is what the session is: its
    /// version and both CompIDs.
    ///
    /// # Errors
    /// Another process has it, or it cannot be read; a name that is no name of a folder.
    pub fn open(folder: &Path, session: &str, identity: &str) -> Result<Kept, Failure> {
        if session.is_empty() || session.starts_with('.') || session.contains(['/', '\0']) {
            return Err(Failure::config(format!(
                "trader.state: session {session:?} has no name that a folder can have; name it otherwise in [[session]]"
            )));
        }
        let folder = folder.join(session);
        let (file, recovered) = FillsFile::open::<Origin>(&folder.join("fills"), "trader")?;
        let console = crate::voice::console();
        let store = tickwire_fixengine::store::lasting(
            &folder.join("session.store"),
            STORE_BYTES,
            identity,
            &console,
        )
        .map_err(crate::voice::failure)?;
        if recovered.heard > 0 && store.next_in() <= recovered.heard {
            return Err(Failure::check(format!(
                "state {}: fills has heard the venue up to message {}, session.store up to {}: the machine has stopped before both were on \
                 the disk, or the numbers had just begun anew; compare fills with the venue (`tickwire reconcile`), then move the folder away",
                folder.display(),
                recovered.heard,
                store.next_in() - 1
            )));
        }
        // What was taken and is in no line is asked for again.
        let store = EntryStore::lasting(store, recovered.heard);
        Ok(Kept {
            recovered,
            store,
            file,
        })
    }

    /// Whether a process before this one may have traded what is in no line, and had no end of its own.
    pub fn is_torn_off(&self) -> bool {
        !self.is_new() && !self.recovered.has_ended
    }

    /// Whether no process has had it before.
    pub fn is_new(&self) -> bool {
        self.store.next_out() == 1 && self.recovered.heard == 0 && self.recovered.fills.is_empty()
    }

    /// What it has, for the operator: a line, and one for every position.
    pub fn describe(&self, session: &str) -> String {
        let torn = match self.recovered.torn {
            0 => String::new(),
            torn => format!("; {torn} bytes of a line that was not whole were cut"),
        };
        let mut text = format!(
            "state of session {session}: {} executions, next out {}, next in {}{torn}",
            self.recovered.fills.len(),
            self.store.next_out(),
            self.store.next_in()
        );
        for (strategy, symbol, held) in positions(&self.recovered.fills) {
            text += &format!("\n  {strategy} holds {held} of {symbol}, traded before");
        }
        text
    }
}

/// What fills come to, by strategy and symbol, without what is even.
pub fn positions(fills: &[Fill<Origin>]) -> Vec<(Symbol, Symbol, i64)> {
    let mut held = std::collections::BTreeMap::<(Symbol, Symbol), i64>::new();
    for fill in fills {
        *held.entry((fill.source.strategy, fill.symbol)).or_default() += fill.signed();
    }
    let each = held.into_iter().filter(|(_, held)| *held != 0);
    each.map(|((strategy, symbol), held)| (strategy, symbol, held))
        .collect()
}

/// What a fill of a process before this one is to the strategy at a place of its own.
pub(crate) fn late(fill: &Fill<Origin>, (order, quote): (u64, u64)) -> LateExecution {
    LateExecution {
        symbol: fill.symbol,
        instrument: None,
        number: Some(if fill.source.is_quote { quote } else { order }),
        side: fill.side,
        qty: Qty(fill.qty),
        price: fill.price,
        // It is booked the other way round already.
        is_broken: false,
        is_again: true,
    }
}

/// The thread that writes.
pub struct Recorder {
    halt: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Begins to write, for the strategies with these names, by their places; the ends of the sessions for
    /// the trading thread. `on_failure` is called once when a file cannot be written: nothing more is, and
    /// nothing may be traded.
    ///
    /// # Errors
    /// A name that a line cannot have; a file cannot be written; the thread cannot be started.
    pub fn start(
        files: Vec<FillsOf>,
        names: &[&str],
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<(Recorder, Vec<Record>), Failure> {
        let names = names.iter().map(|name| origin(name));
        let names: Vec<Symbol> = names.collect::<Result<_, _>>()?;
        let halt = Arc::new(AtomicBool::new(false));
        let mut records = Vec::with_capacity(files.len());
        let mut kept = Vec::with_capacity(files.len());
        for of in files {
            let FillsOf {
                mut file,
                is_in_doubt,
                has_ended,
            } = of;
            if has_ended {
                file.begun();
                file.flush()?;
            }
            let (producer, consumer) = ring(WAITING_MAX);
            let heard = Arc::new(AtomicU64::new(0));
            records.push(Record {
                ring: producer,
                heard: heard.clone(),
                epoch: 0,
                is_in_doubt,
            });
            kept.push(OfSession {
                file,
                ring: consumer,
                heard,
                epoch: 0,
            });
        }
        let halted = halt.clone();
        let thread =
            tickwire_runtime::affinity::beside("fills", move || keep(kept, &names, &halted, on_failure))
                .map_err(|e| {
                    Failure::system(format!("the thread that writes fills cannot be started: {e}"))
                })?;
        let thread = Some(thread);
        Ok((Recorder { halt, thread }, records))
    }
}

/// Whoever ends in good order or not at all has everything written that was traded.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has said what was wrong.
            let _ = thread.join();
        }
    }
}

/// A session's file, for who writes it.
pub struct FillsOf {
    file: FillsFile,
    is_in_doubt: bool,
    has_ended: bool,
}

impl Kept {
    /// The file for [`Recorder::start`], and the rest.
    pub fn split(self) -> (FillsOf, Recovered<Origin>, EntryStore) {
        let of = FillsOf {
            file: self.file,
            is_in_doubt: self.recovered.is_in_doubt,
            has_ended: self.recovered.has_ended,
        };
        (of, self.recovered, self.store)
    }
}

/// A strategy's name as a line has it.
///
/// # Errors
/// It is too long, or has a comma.
pub(crate) fn origin(name: &str) -> Result<Symbol, Failure> {
    let fits = Symbol::new(name.as_bytes()).filter(|_| !name.contains([',', '\n']));
    fits.ok_or_else(|| {
        Failure::config(format!(
            "trader.state: strategy {name:?} needs a name of 1 to 23 characters of ASCII without a comma: its positions are kept by it"
        ))
    })
}

/// A session as the thread has it.
struct OfSession {
    file: FillsFile,
    ring: Consumer<Entry>,
    heard: Arc<AtomicU64>,
    /// How often numbers had begun anew before what was written last.
    epoch: u64,
}

impl OfSession {
    /// Writes everything that has come; `is_telling`, how far the venue was heard, too; `is_last`, that
    /// nothing comes behind it.
    fn write(&mut self, names: &[Symbol], (is_telling, is_last): (bool, bool)) -> Result<(), Failure> {
        // Before the executions: all of them up to there are in the ring.
        let heard = self.heard.load(Ordering::Acquire);
        while let Some(entry) = self.ring.pop() {
            let traded = match entry {
                Entry::Traded(traded) => traded,
                Entry::Doubt(is_in_doubt) => {
                    self.file.doubt(is_in_doubt);
                    continue;
                }
            };
            self.follow(traded.epoch);
            let place = whose(ClientOrderId(traded.number)).min(names.len().saturating_sub(1));
            self.file.put(&Fill {
                at: traded.at,
                symbol: traded.symbol,
                source: Origin {
                    strategy: names.get(place).copied().unwrap_or(Symbol::EMPTY),
                    is_quote: is_name_of_quote(traded.number),
                },
                side: traded.side,
                is_broken: traded.is_broken,
                qty: traded.qty.0,
                price: traded.price,
                theo: None,
                seq: traded.seq,
                exec: traded.exec,
            });
        }
        let (epoch, seq) = ((heard & !ENDED) / NUMBERS, heard % NUMBERS);
        if epoch >= self.epoch {
            self.follow(epoch);
            match heard & ENDED != 0 {
                true if is_last => self.file.ended(seq),
                _ if is_telling && seq > 0 => self.file.heard(seq),
                _ => {}
            }
        }
        self.file.flush()
    }

    fn follow(&mut self, epoch: u64) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.file.begin_anew();
        }
    }
}

fn keep(mut all: Vec<OfSession>, names: &[Symbol], halt: &AtomicBool, on_failure: impl FnOnce()) {
    let mut looks = 0_u32;
    loop {
        let is_last = halt.load(Ordering::Acquire);
        looks = looks.wrapping_add(1);
        let is_telling = is_last || looks.is_multiple_of(LOOKS_HEARD);
        for own in &mut all {
            if let Err(failure) = own.write(names, (is_telling, is_last)) {
                warn(format_args!(
                    "ALERT: {failure}: the kill switch goes on, and everything is cancelled"
                ));
                return on_failure();
            }
        }
        if is_last {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;
    use tickwire_fix::NewOrderSingle;
    use tickwire_market::{OrderType, TimeInForce};
    use tickwire_trading::strategy::NUMBERS as OF_A_STRATEGY;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tickwire-record-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn report(exec: u64, side: Side, is_broken: bool) -> ExecutionReport {
        let order = NewOrderSingle {
            cl_ord_id: Id::from_number(1),
            symbol: Symbol::new(b"AAPL").expect("short"),
            side,
            transact_time: Nanos(1),
            qty: Qty(100),
            order_type: OrderType::Limit,
            price: None,
            stop: None,
            time_in_force: TimeInForce::Day,
            cause: None,
        };
        ExecutionReport {
            exec_id: Id::from_number(exec),
            exec_type: if is_broken {
                ExecType::TradeCancel
            } else {
                ExecType::Trade
            },
            ..ExecutionReport::of(&order)
        }
    }

    /// A process: what it finds, and its record of a session.
    fn process(folder: &Path) -> (Recovered<Origin>, u64, Recorder, Record) {
        let mut kept = Kept::open(folder, "one", "FIX.4.4 A B").expect("it opens");
        let next_in = kept.store.next_in();
        // What the session does.
        kept.store.set_next_in(1_000);
        let (file, recovered, _) = kept.split();
        let (recorder, mut records) =
            Recorder::start(vec![file], &["first", "second"], || {}).expect("it starts");
        (recovered, next_in, recorder, records.remove(0))
    }

    fn put(record: &mut Record, number: u64, seq: u64, report: &ExecutionReport) {
        let traded = (Qty(10), Price::from_4dp(1_000_000));
        assert!(record.put(Nanos(5), (number, SeqNo(seq)), report, traded));
    }

    #[test]
    fn the_next_process_finds_what_was_traded_by_whom_and_how_far_the_venue_was_heard() {
        let folder = folder("next");
        let (found, _, recorder, mut record) = process(&folder);
        assert_eq!((found.fills.len(), found.has_ended), (0, false));
        put(&mut record, 1, 4, &report(71, Side::Bid, false));
        put(&mut record, OF_A_STRATEGY + 1, 6, &report(72, Side::Ask, false));
        put(&mut record, 1, 9, &report(73, Side::Bid, true));
        record.heard(12);
        drop(recorder);
        let (found, next_in, recorder, mut record) = process(&folder);
        assert_eq!((found.heard, found.last_fill(), next_in), (12, 9, 13));
        assert!(!found.has_ended, "it may have had something open");
        let lines = found.fills.iter().map(|fill| {
            (
                fill.source.strategy.to_string(),
                fill.side,
                fill.is_broken,
                fill.exec.to_number(),
            )
        });
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                ("first".to_string(), Side::Bid, false, Some(71)),
                ("second".to_string(), Side::Ask, false, Some(72)),
                ("first".to_string(), Side::Ask, true, Some(73)),
            ]
        );
        let held = positions(&found.fills);
        let held: Vec<_> = held
            .iter()
            .map(|(who, _, held)| (who.to_string(), *held))
            .collect();
        assert_eq!(held, [("second".to_string(), -10)], "what is even is no position");
        // The venue's numbers begin anew, and the process ends in good order.
        record.begin_anew();
        put(&mut record, 1, 2, &report(81, Side::Bid, false));
        record.ended(3);
        drop(recorder);
        let (found, next_in, recorder, _) = process(&folder);
        assert_eq!((found.heard, found.last_fill(), next_in), (3, 2, 4));
        assert!(found.has_ended && found.fills.len() == 4);
        // It is torn off before it has written anything.
        drop(recorder);
        let (found, next_in, ..) = process(&folder);
        assert_eq!((found.heard, found.last_fill(), next_in), (3, 2, 4));
        assert!(!found.has_ended && found.fills.len() == 4);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_doubt_about_what_was_traded_outlives_restarts_until_somebody_has_looked() {
        let folder = folder("doubt");
        // It is killed with an order that may be open.
        let (_, _, recorder, mut record) = process(&folder);
        put(&mut record, 1, 4, &report(71, Side::Bid, false));
        record.heard(5);
        drop(recorder);
        let kept = Kept::open(&folder, "one", "FIX.4.4 A B").expect("it opens");
        assert!(kept.is_torn_off(), "so a reset kills");
        drop(kept);
        // The venue begins its numbers anew; nobody resumes, and the process ends with nothing open.
        let (_, _, recorder, mut record) = process(&folder);
        record.begin_anew();
        record.doubt(true);
        record.ended(3);
        drop(recorder);
        for _ in 0..2 {
            let (found, _, recorder, record) = process(&folder);
            assert!(found.is_in_doubt, "as unknown as before");
            record.ended(3);
            drop(recorder);
        }
        let (_, _, recorder, mut record) = process(&folder);
        record.doubt(false);
        drop(recorder);
        let (found, ..) = process(&folder);
        assert!(!found.is_in_doubt, "somebody has looked");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn numbers_that_are_behind_what_was_heard_are_refused() {
        let folder = folder("behind");
        let (_, _, recorder, record) = process(&folder);
        record.heard(12);
        drop(recorder);
        let kept = Kept::open(&folder, "one", "FIX.4.4 A B").expect("it opens");
        assert!(
            Kept::open(&folder, "one", "FIX.4.4 A B").is_err(),
            "one process at a time"
        );
        drop(kept);
        let store = folder.join("one/session.store");
        let console = crate::voice::console();
        let mut store = tickwire_fixengine::store::lasting(&store, STORE_BYTES, "FIX.4.4 A B", &console)
            .expect("it opens");
        store.set_next_in(12);
        drop(store);
        let Err(refused) = Kept::open(&folder, "one", "FIX.4.4 A B") else {
            panic!("it was opened");
        };
        let refused = refused.to_string();
        assert!(
            refused.contains("up to message 12, session.store up to 11"),
            "{refused}"
        );
        for name in ["", "..", "a/b", ".hidden"] {
            assert!(Kept::open(&folder, name, "x").is_err(), "{name:?}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_once_and_a_full_ring_at_once() {
        let folder = folder("failing");
        let kept = Kept::open(&folder, "one", "FIX.4.4 A B").expect("it opens");
        let (file, ..) = kept.split();
        let failed = Arc::new(AtomicU64::new(0));
        let on_failure = failed.clone();
        let (recorder, mut records) = Recorder::start(vec![file], &["first"], move || {
            on_failure.fetch_add(1, Ordering::Relaxed);
        })
        .expect("it starts");
        // Somebody cuts the file.
        std::fs::write(folder.join("one/fills"), b"x").expect("it is a file");
        let record = &mut records[0];
        put(record, 1, 4, &report(71, Side::Bid, false));
        let begun = Instant::now();
        while failed.load(Ordering::Relaxed) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody was told");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Nobody empties the ring any more.
        let traded = (Qty(10), Price::from_4dp(1_000_000));
        let mut puts = (0..2 * WAITING_MAX as u64)
            .map(|seq| record.put(Nanos(5), (1, SeqNo(seq)), &report(seq, Side::Bid, false), traded));
        assert!(puts.any(|is_taken| !is_taken), "it never was full");
        drop(recorder);
        assert_eq!(failed.load(Ordering::Relaxed), 1);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
