//! How latency is measured and shown.
//!
//! A stage stamp is a raw tick count put into a preallocated ring ([`Probes`]); afterwards the ring becomes
//! one [`Histogram`] per [`Stage`], a [`Summary`] line each, and a [`Report`]: text for the terminal,
//! Markdown for documents, one HTML file with plots for the browser (nothing is loaded from anywhere).
//! [`Results`] is the same as data.
//!
//! A measurement of a kind that can be repeated is a [`Scenario`]: a file that says load, repetitions and
//! cores. What it measured is a [`RunRecord`], which becomes the files of a results folder ([`folder`]) and
//! its report ([`report_of`]), and is compared with another one ([`compare`]) or joined with others
//! ([`RunRecord::join`]).
//!
//! **Invariant.** Nothing here touches a clock, a socket or a file: ticks come in, text goes out.
//!
//! ```
//! use tickwire_lab::{Histogram, Table, format_ns};
//!
//! let mut latency = Histogram::new();
//! for ns in [840, 910, 905, 12_400] {
//!     latency.record(ns);
//! }
//! let summary = latency.summary();
//! assert_eq!((summary.min, summary.count), (840, 4));
//! println!("{}", Table::latencies("tick to trade", &[("total", &latency)]).to_text(80));
//! assert_eq!(format_ns(840), "840 ns");
//! ```
#![forbid(unsafe_code)]

mod chart;
mod compare;
pub mod folder;
mod format;
mod histogram;
mod join;
mod ledger;
mod plot;
mod probe;
mod record;
mod report;
mod results;
mod run_report;
pub mod scenario;
mod schedule;
mod series;
mod stalling;
mod svg;
mod table;

pub use chart::{Axis, Mark, Plotted, Scale, grouped};
pub use compare::{Comparison, PERCENTILES, Percentile, Row, Verdict, compare};
pub use format::{format_count, format_ns, format_ns_of};
pub use histogram::{Counted, Histogram, Packed, Summary, parse_hgrm};
pub use join::differences;
pub use ledger::{Ledger, Offer, Unexpected};
pub use probe::{Arrival, Departed, Probes, Sample, Stage, StageTimes};
pub use record::{Case, Check, MISSING, Measure, Probe, Published, Recorder, Repetition, RunRecord, Samples};
pub use report::Report;
pub use results::Results;
pub use run_report::{report_of, terminal_summary};
pub use scenario::Scenario;
pub use schedule::Schedule;
pub use series::Series;
pub use stalling::Stalling;
pub use table::{Table, WHOLE};
