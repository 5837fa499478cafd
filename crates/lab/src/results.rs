//! A run as data: what a later run is compared with, what one process tells another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Histogram, Series, Summary, Table};

/// Everything a run found out.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// What was run.
    pub title: String,
    /// Machine, command, configuration: name and value.
    pub facts: Vec<(String, String)>,
    /// One line per histogram, for reading without tools.
    pub summaries: BTreeMap<String, Summary>,
    /// Latencies in nanoseconds.
    pub histograms: BTreeMap<String, Histogram>,
    /// Latencies over time.
    pub series: BTreeMap<String, Series>,
    /// Counts and other numbers.
    pub counts: BTreeMap<String, u64>,
    /// Tables as shown.
    pub tables: Vec<Table>,
}

impl Results {
    /// Nothing yet.
    pub fn new(title: &str) -> Results {
        Results {
            title: title.to_owned(),
            ..Results::default()
        }
    }

    /// Adds a histogram and its summary.
    pub fn histogram(&mut self, name: &str, histogram: &Histogram) {
        self.summaries.insert(name.to_owned(), histogram.summary());
        self.histograms.insert(name.to_owned(), histogram.clone());
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names are strings and numbers are finite")
    }

    /// From JSON.
    ///
    /// # Errors
    /// Where and why the text is not a results file.
    pub fn from_json(json: &str) -> Result<Results, serde_json::Error> {
        serde_json::from_str(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_results_file_comes_back_as_it_was() {
        let mut results = Results::new("demo");
        let mut histogram = Histogram::new();
        [100, 200, 30_000].into_iter().for_each(|ns| histogram.record(ns));
        results.histogram("total", &histogram);
        results.facts.push(("cores".to_owned(), "2".to_owned()));
        results.counts.insert("orders".to_owned(), 3);
        results.tables.push(Table::new("t", &["", "x"]).row(["a", "1"]));
        let mut series = Series::default();
        series.push(5, 100);
        results.series.insert("total".to_owned(), series);
        assert_eq!(Results::from_json(&results.to_json()).expect("reads"), results);
        assert_eq!(results.summaries["total"].count, 3);
        assert!(Results::from_json("{").is_err());
    }
}
