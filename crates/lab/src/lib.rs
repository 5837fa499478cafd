//! How latency is measured and shown.
//!
//! A stage stamp is a raw tick count put into a preallocated ring ([`Probes`]); afterwards the ring becomes one [`Histogram`]
//! per [`Stage`], a [`Summary`] line each, and a [`Report`]: text for the terminal, Markdown for documents, one HTML file with
//! plots for the browser (nothing is loaded from anywhere). [`Results`] is the same as data.
//!
//! **Invariant.** Nothing here touches a clock, a socket or a file: ticks come in, text goes out.
#![forbid(unsafe_code)]

mod format;
mod histogram;
mod plot;
mod probe;
mod report;
mod results;
mod series;
mod svg;
mod table;

pub use format::{format_count, format_ns};
pub use histogram::{Histogram, Summary};
pub use probe::{Probes, Sample, Stage, StageTimes};
pub use report::Report;
pub use results::Results;
pub use series::Series;
pub use table::Table;
