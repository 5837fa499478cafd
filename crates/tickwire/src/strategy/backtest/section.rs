//! The section `[backtest]` of a configuration, and the latencies that it names.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickwire_backtest::{FillModel, Latency, LatencyConfig, TimedLatency};
use tickwire_console::failure::Failure;
use tickwire_lab::parse_hgrm;
use tickwire_market::{Nanos, Price};

use crate::strategy::BacktestArgs;

/// How a strategy is backtested.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct BacktestSection {
    /// How orders are filled: `queue` (a place in the recorded queue), `matching` (recorded orders and ours
    /// in one engine) or `touch` (whole, as soon as the price is touched).
    pub fill: Model,
    /// From the place where the recording was made to the strategy, nanoseconds.
    pub feed_ns: u64,
    /// From a decision to the matching engine, nanoseconds.
    pub entry_ns: u64,
    /// The same of a cancellation.
    pub cancel_ns: u64,
    /// From the matching engine back, nanoseconds.
    pub response_ns: u64,
    /// What the venue takes for a share or contract of an order that rested, in its currency; below 0 it
    /// pays.
    pub maker_fee: Fee,
    /// The same of an order that took.
    pub taker_fee: Fee,
    /// What one unit of price is worth for one unit of quantity, where the feed does not say: 50 for a future
    /// on an index with 50 a point.
    pub point_value: Fee,
    /// Times drawn in the place of `feed_ns`: as `entry_histogram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_histogram: Option<PathBuf>,
    /// Times drawn in the place of `entry_ns`, and of `cancel_ns` where that has none of its own: a `.hgrm`
    /// file, HdrHistogram's text format in microseconds; from where this file lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_histogram: Option<PathBuf>,
    /// The same in the place of `cancel_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_histogram: Option<PathBuf>,
    /// The same in the place of `response_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_histogram: Option<PathBuf>,
    /// Times as they were measured, order by order: CSV with `time_ns` and one or more of `feed_ns`,
    /// `entry_ns`, `cancel_ns`, `response_ns`. Each holds until the next one's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_latencies: Option<PathBuf>,
    /// Of what is drawn.
    pub seed: u64,
}

impl Default for BacktestSection {
    fn default() -> Self {
        BacktestSection {
            fill: Model::Queue,
            feed_ns: 0,
            entry_ns: 20_000,
            cancel_ns: 20_000,
            response_ns: 20_000,
            maker_fee: Fee(Price::ZERO),
            taker_fee: Fee(Price::ZERO),
            point_value: Fee(Price::from_raw(Price::ONE_RAW)),
            feed_histogram: None,
            entry_histogram: None,
            cancel_histogram: None,
            response_histogram: None,
            recorded_latencies: None,
            seed: 1,
        }
    }
}

/// A fill model by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    Queue,
    Matching,
    Touch,
}

impl From<Model> for FillModel {
    fn from(model: Model) -> FillModel {
        match model {
            Model::Queue => FillModel::Queue,
            Model::Matching => FillModel::Matching,
            Model::Touch => FillModel::Touch,
        }
    }
}

/// Money for one unit, as a decimal number in quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fee(pub(super) Price);

impl TryFrom<String> for Fee {
    type Error = String;
    fn try_from(text: String) -> Result<Fee, String> {
        let parsed = Price::parse(text.as_bytes());
        parsed
            .map(Fee)
            .map_err(|e| format!("a fee is a decimal number in quotes such as \"0.003\" or \"-0.002\": {e}"))
    }
}

impl From<Fee> for String {
    fn from(fee: Fee) -> String {
        fee.0.to_string()
    }
}

/// How long everything takes.
pub(super) fn latencies(section: &BacktestSection, args: &BacktestArgs) -> Result<LatencyConfig, Failure> {
    let beside = |file: &Path| args.config.parent().unwrap_or(Path::new("")).join(file);
    let read = |file: &Path| {
        let path = beside(file);
        std::fs::read_to_string(&path)
            .map_err(|e| Failure::config(format!("cannot read {}: {e}", path.display())))
    };
    let of = |ns: u64, file: Option<&PathBuf>| -> Result<Latency, Failure> {
        let Some(file) = file else {
            return Ok(Latency::Constant(ns));
        };
        let values = parse_hgrm(&read(file)?);
        let values = values.map_err(|e| Failure::config(format!("{}: {e}", beside(file).display())))?;
        Ok(Latency::Drawn(values))
    };
    let cancel = section
        .cancel_histogram
        .as_ref()
        .or(section.entry_histogram.as_ref());
    let mut all = LatencyConfig {
        feed: of(section.feed_ns, section.feed_histogram.as_ref())?,
        entry: of(section.entry_ns, section.entry_histogram.as_ref())?,
        cancel: of(section.cancel_ns, cancel)?,
        response: of(section.response_ns, section.response_histogram.as_ref())?,
    };
    if let Some(file) = &section.recorded_latencies {
        recorded(&read(file)?, &mut all)
            .map_err(|e| Failure::config(format!("{}: {e}", beside(file).display())))?;
    }
    Ok(all)
}

/// Latencies as they were measured, in the place of others.
fn recorded(text: &str, all: &mut LatencyConfig) -> Result<(), String> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line);
    let names: Vec<&str> = head.split(',').map(str::trim).collect();
    let known = ["feed_ns", "entry_ns", "cancel_ns", "response_ns"];
    if let Some(odd) = names
        .iter()
        .find(|name| **name != "time_ns" && !known.contains(name))
    {
        return Err(format!(
            "line 1: {odd:?} is no column: time_ns, {}",
            known.join(", ")
        ));
    }
    let time = names.iter().position(|name| *name == "time_ns");
    let time = time.ok_or("line 1: the first line names the columns, of which time_ns is one")?;
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let row: Result<Vec<Option<u64>>, String> =
            line.split(',')
                .map(|field| match field.trim() {
                    "" => Ok(None),
                    field => field.parse().map(Some).map_err(|_| {
                        format!("line {}: {field:?} is no whole number of nanoseconds", number + 1)
                    }),
                })
                .collect();
        let row = row?;
        if row.len() != names.len() || row[time].is_none() {
            return Err(format!(
                "line {}: {} fields, where line 1 names {}, time_ns among them",
                number + 1,
                row.len(),
                names.len()
            ));
        }
        rows.push(row);
    }
    let places = [&mut all.feed, &mut all.entry, &mut all.cancel, &mut all.response];
    for (name, place) in known.into_iter().zip(places) {
        let Some(column) = names.iter().position(|have| *have == name) else {
            continue;
        };
        let measured = rows.iter().filter_map(|row| {
            Some(TimedLatency {
                at: Nanos(row[time]?),
                ns: row[column]?,
            })
        });
        *place = Latency::recorded(measured.collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fee_is_a_decimal_number_and_says_so() {
        let parse = |text: &str| toml::from_str::<BacktestSection>(text);
        assert_eq!(
            parse("maker_fee = \"-0.002\"").map(|s| s.maker_fee.0.raw()),
            Ok(-2_000_000)
        );
        let error = parse("maker_fee = \"much\"").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("a fee is a decimal number"), "{error}");
    }
}
