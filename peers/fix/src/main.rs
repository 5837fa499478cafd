//! The FIX codec beside others on the same messages in the same run: nanoseconds per message, and how many
//! times ours they take.
//!
//! ```text
//! cargo run --release --manifest-path peers/fix/Cargo.toml [rounds]
//! ```
//! builds QuickFIX C++ 1.16 by its package (needs a C++ compiler and cmake; ten minutes). hffix has no
//! package: `git clone https://github.com/jamesdbrock/hffix ../hffix`, then put `HFFIX_DIR=$PWD/../hffix`
//! before the command.
//!
//! Every contestant gets the same 1024 different messages, in turn within every round (QuickFIX in rounds of
//! its own); every answer is checked. A figure is of batches of 1024: best, median and tails over all rounds.
//! Ratios are of the bests, which other programs on the machine disturb least.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::{Frame, Index, Message, Precision, Stamp, frame};

#[cfg(hffix)]
mod hffix;
mod ironfix;
#[path = "../../../crates/fix/benches/messages/mod.rs"]
mod messages;
mod prepared;
mod quickfix_cpp;

/// Messages one behind the other, as they come from a connection.
pub(crate) struct Wire {
    bytes: Vec<u8>,
    lens: Vec<u64>,
    sums: Vec<u64>,
}

impl Wire {
    fn new(messages: Vec<(Vec<u8>, u64)>) -> Wire {
        Wire {
            lens: messages.iter().map(|m| m.0.len() as u64).collect(),
            sums: messages.iter().map(|m| m.1).collect(),
            bytes: messages.iter().flat_map(|m| m.0.iter().copied()).collect(),
        }
    }

    /// Each message.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lens.iter().map(move |&len| {
            let (message, behind) = rest.split_at(len as usize);
            rest = behind;
            message
        })
    }
}

/// One contestant at one task: a batch a call, the answers it gave.
pub(crate) type Run<'a> = Box<dyn FnMut() -> Vec<u64> + 'a>;

/// One task with its contestants, ours first.
struct Task<'a> {
    name: &'static str,
    bytes: usize,
    expected: Vec<u64>,
    runs: Vec<(&'static str, Run<'a>)>,
}

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .map_or(400, |n| n.parse().expect("rounds: a number"));
    let orders = messages::orders();
    let (reports, refreshes) = (Wire::new(messages::reports()), Wire::new(messages::refreshes()));
    let dictionary = dictionary_path();
    let prepared = prepared::orders(&orders);
    let tasks = [
        encode_task(&orders),
        prepared::task(&prepared, whole_orders(&orders)),
        report_task(&reports),
        refresh_task(&refreshes),
        validate_task(&reports, dictionary.as_deref()),
    ];
    for task in tasks {
        measure(task, rounds);
    }
}

fn measure(mut task: Task<'_>, rounds: usize) {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); task.runs.len()];
    let mut round = |task: &mut Task<'_>, which: &dyn Fn(usize) -> bool| {
        for (i, (name, run)) in task.runs.iter_mut().enumerate().filter(|(i, _)| which(*i)) {
            let start = Instant::now();
            let answers = run();
            times[i].push(start.elapsed().as_nanos() as f64 / messages::COUNT as f64);
            assert!(
                answers == task.expected,
                "{}: {name} gave wrong answers",
                task.name
            );
        }
    };
    round(&mut task, &|_| true);
    // QuickFIX takes twenty times as long as the others and leaves nothing of theirs in the caches: a few
    // rounds of it, by themselves.
    let is_slow: Vec<bool> = task
        .runs
        .iter()
        .map(|(name, _)| name.starts_with("QuickFIX"))
        .collect();
    for _ in 1..rounds {
        round(&mut task, &|i| !is_slow[i]);
    }
    for _ in 1..rounds.div_ceil(20) {
        round(&mut task, &|i| is_slow[i]);
    }
    println!("{} ({} bytes)", task.name, task.bytes);
    let best = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    let ours = best(&times[0]);
    for ((name, _), times) in task.runs.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let best = best(times);
        println!(
            "  {name:<44} best {best:7.1}  p50 {:7.1}  p90 {:7.1}  p99 {:7.1}   ours / it {:.3}",
            at(0.5),
            at(0.9),
            at(0.99),
            ours / best
        );
    }
}

fn encode_task(orders: &[messages::Order]) -> Task<'_> {
    let expected: Vec<Vec<u8>> = orders.iter().map(messages::plain_order).collect();
    let bytes: usize = expected.iter().map(Vec::len).sum();
    let header = messages::order_header();
    let (mut buf, mut stamp) = (vec![0; 512], Stamp::new(Precision::Millis));
    for (order, expected) in orders.iter().zip(&expected) {
        assert_eq!(
            messages::encode_order(&mut buf, &header, &mut stamp, order),
            expected
        );
    }
    let ours: Run<'_> = Box::new(move || {
        let mut bytes = 0;
        for order in black_box(orders) {
            bytes += black_box(messages::encode_order(&mut buf, &header, &mut stamp, order)).len();
        }
        vec![bytes as u64]
    });
    let mut runs = vec![("tickwire, any values", ours)];
    #[cfg(hffix)]
    runs.push(("hffix (BodyLength with six digits)", hffix::encode(orders, bytes)));
    runs.push(("ironfix-tagvalue 0.5", ironfix::encode(orders)));
    runs.push(("QuickFIX C++, a new message", quickfix_cpp::encode(orders)));
    Task {
        name: "NewOrderSingle out",
        bytes: bytes / orders.len(),
        expected: vec![bytes as u64],
        runs,
    }
}

/// What the fastest other codec takes for an order, all of it written anew.
fn whole_orders(orders: &[messages::Order]) -> Option<(&'static str, Run<'_>)> {
    #[cfg(hffix)]
    {
        let bytes = orders
            .iter()
            .map(|order| messages::plain_order(order).len())
            .sum();
        Some(("hffix, the whole message", hffix::encode(orders, bytes)))
    }
    #[cfg(not(hffix))]
    {
        let _ = orders;
        None
    }
}

/// Frames, checks and reads every message.
fn read<'a>(wire: &'a Wire, mut sum: impl FnMut(&Message<'_>) -> Option<u64> + 'a) -> Run<'a> {
    let mut index = Index::new(64);
    Box::new(move || {
        let mut rest = black_box(&wire.bytes[..]);
        let mut sums = Vec::with_capacity(messages::COUNT);
        while let Frame::Whole(len) = frame(rest, 4096) {
            let (message, behind) = rest.split_at(len);
            let message = index.decode(message).expect("a message");
            sums.push(sum(&message).expect("all fields are there"));
            rest = behind;
        }
        sums
    })
}

fn report_task(wire: &Wire) -> Task<'_> {
    let mut runs = vec![(
        "tickwire, checksum and 16 fields",
        read(wire, messages::sum_report),
    )];
    #[cfg(hffix)]
    runs.push(("hffix, the same", hffix::reports(wire)));
    runs.push(("ironfix-tagvalue 0.5, the same", ironfix::reports(wire)));
    runs.push((
        "QuickFIX C++ without dictionary, the same",
        quickfix_cpp::reports(wire, None),
    ));
    Task {
        name: "ExecutionReport in",
        bytes: wire.bytes.len() / messages::COUNT,
        expected: wire.sums.clone(),
        runs,
    }
}

fn refresh_task(wire: &Wire) -> Task<'_> {
    let mut runs = vec![("tickwire, checksum and group", read(wire, messages::sum_refresh))];
    #[cfg(hffix)]
    runs.push(("hffix, the same", hffix::refreshes(wire)));
    Task {
        name: "MarketDataIncrementalRefresh in, 4 entries",
        bytes: wire.bytes.len() / messages::COUNT,
        expected: wire.sums.clone(),
        runs,
    }
}

fn validate_task<'a>(wire: &'a Wire, dictionary: Option<&Path>) -> Task<'a> {
    let Some(path) = dictionary else {
        println!("no dictionary: set FIX44_XML to a copy of QuickFIX's FIX44.xml to compare validation");
        return Task {
            name: "ExecutionReport in, validated: left out",
            bytes: 0,
            expected: Vec::new(),
            runs: vec![("nothing", Box::new(Vec::new))],
        };
    };
    let text = std::fs::read_to_string(path).expect("the dictionary can be read");
    let dictionary = Dictionary::parse(&text).expect("a dictionary");
    let mut validator = Validator::new(&dictionary, &dictionary);
    let ours = read(wire, move |m| {
        let valid = validator.check(&dictionary, &dictionary, m, Validation::default());
        assert_eq!(valid, Ok(()));
        messages::sum_report(m)
    });
    let mut runs = vec![("tickwire, dictionary and 16 fields", ours)];
    #[cfg(hffix)]
    runs.push(("hffix, not validated", hffix::reports(wire)));
    runs.push((
        "QuickFIX C++ with dictionary, 16 fields",
        quickfix_cpp::reports(wire, Some(path)),
    ));
    Task {
        name: "ExecutionReport in, validated",
        bytes: wire.bytes.len() / messages::COUNT,
        expected: wire.sums.clone(),
        runs,
    }
}

/// QuickFIX's dictionary of FIX 4.4: that of the variable `FIX44_XML`, or the project's shared one.
fn dictionary_path() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fix/dictionaries/FIX44.xml");
    let path = std::env::var_os("FIX44_XML").map_or(shared, PathBuf::from);
    path.is_file().then_some(path)
}
