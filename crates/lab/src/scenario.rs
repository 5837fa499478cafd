//! A scenario: what is measured, how often, under which load, on which cores. One TOML file, checked whole,
//! with line numbers.
//!
//! Everything but `[settings]` is alike for every kind of scenario; the settings are the kind's own type.
//! `[full]` says what differs when the scenario is run at the length of the published measurement, in the
//! words of `--set`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A scenario whose kind has settings of type `S`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario<S> {
    /// What it is called: letters, digits, `-` and `_`. Names its results folder.
    pub name: Name,
    /// What kind of measurement it is.
    pub kind: String,
    /// One sentence for `tickwire lab list`.
    #[serde(default)]
    pub about: String,
    /// When work is offered.
    #[serde(default)]
    pub load: Load,
    /// How much is measured.
    #[serde(default)]
    pub run: RunSection,
    /// Core of each role (which roles there are is the kind's business); a role that is not named is left to
    /// the scheduler.
    #[serde(default)]
    pub cores: BTreeMap<String, usize>,
    /// What only this kind of scenario has.
    #[serde(default = "defaults")]
    #[serde(bound(deserialize = "S: Default + Deserialize<'de>"))]
    pub settings: S,
    /// What `--full` sets: dotted key and value, as `"run.samples" = 20000`.
    #[serde(default)]
    pub full: toml::Table,
}

fn defaults<S: Default>() -> S {
    S::default()
}

/// A name that can be part of a file name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match (1..=64).contains(&text.len()) && text.chars().all(fits) {
            true => Ok(Name(text)),
            false => Err(format!(
                "'{text}' names no folder: use 1 to 64 letters, digits, - and _"
            )),
        }
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When work is offered to the system under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// At times fixed beforehand, whatever the system does; latency counts from the time intended, so that a
    /// stall is charged to everything that should have happened during it (no coordinated omission).
    #[default]
    Open,
    /// The next an interval after the answer to the one before. A stall delays the load and is counted once:
    /// for systems that are measured so by what was published, and for showing the difference.
    Closed,
    /// The next as soon as the one before was answered, or its time-out has passed.
    OneAtATime,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Open => "open loop: latency counts from the time intended",
            Shape::Closed => "closed loop: an interval after each answer",
            Shape::OneAtATime => "one at a time: the next after the answer to the one before",
        })
    }
}

/// `[load]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// The shape.
    pub shape: Shape,
    /// Time from one message to the next, microseconds; each is measured. Empty where the shape or the kind
    /// gives the time.
    pub intervals_us: Vec<Micros>,
    /// How long an answer is waited for, milliseconds.
    pub timeout_ms: Millis,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            shape: Shape::Open,
            intervals_us: Vec::new(),
            timeout_ms: Millis(1_000),
        }
    }
}

/// `[run]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Samples of a case in a repetition.
    pub samples: Count,
    /// Samples before them that are thrown away.
    pub warm_up: u32,
    /// How often each case is measured; cases take turns, so that a change of the machine meets all of them.
    pub repetitions: Count,
    /// Samples kept one by one for each case and repetition; of more, every second, fourth ... is kept.
    /// Histograms have all.
    pub samples_kept: Count,
    /// Real-time priority (`SCHED_FIFO`, 1 to 99) of measured threads; 0 leaves the policy alone.
    pub realtime: Priority,
    /// Lock the process's memory.
    pub lock_memory: bool,
    /// Keep idle cores awake (`/dev/cpu_dma_latency`) while measuring.
    pub awake: bool,
    /// Where traffic goes.
    pub network: Network,
    /// Of a network that is given, where the exchange stands: `INTERFACE`, or `NAMESPACE/INTERFACE`.
    pub exchange: String,
    /// Of a network that is given, where the trader stands, likewise.
    pub trader: String,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for RunSection {
    fn default() -> RunSection {
        RunSection {
            samples: Count(1_000),
            warm_up: 100,
            repetitions: Count(3),
            samples_kept: Count(1 << 20),
            realtime: Priority(0),
            lock_memory: false,
            awake: false,
            network: Network::Auto,
            exchange: String::new(),
            trader: String::new(),
            seed: 1,
        }
    }
}

/// Where traffic goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Between two network namespaces where that is permitted, else loopback; the results say which.
    #[default]
    Auto,
    /// Loopback.
    Loopback,
    /// Two network namespaces joined by a pair of virtual Ethernet devices; refuses to run where that is not
    /// permitted.
    Veth,
    /// Between the interfaces that [`RunSection::exchange`] and [`RunSection::trader`] name.
    Given,
}

macro_rules! bounded {
    ($(#[$doc:meta] $name:ident($of:ty) in $range:expr, $what:literal;)*) => {$(
        #[$doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(try_from = "i64", into = "i64")]
        pub struct $name($of);

        impl $name {
            /// The value.
            pub fn get(self) -> $of {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = String;

            fn try_from(value: i64) -> Result<$name, String> {
                if $range.contains(&value) {
                    Ok($name(value as $of))
                } else {
                    Err(format!("{value} is no {}: give {} to {}", $what, $range.start(), $range.end()))
                }
            }
        }

        impl From<$name> for i64 {
            fn from(value: $name) -> i64 {
                value.0 as i64
            }
        }
    )*};
}

bounded! {
    /// A count that is not 0, up to 100 million.
    Count(u32) in 1..=100_000_000, "count";
    /// Microseconds, 1 to 10 seconds.
    Micros(u64) in 1..=10_000_000, "interval in microseconds";
    /// Milliseconds, 1 to an hour.
    Millis(u64) in 1..=3_600_000, "time in milliseconds";
    /// A real-time priority, 0 for none.
    Priority(i32) in 0..=99, "real-time priority";
}

/// What is known of a scenario before its kind is.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Heading {
    /// What it is called.
    pub name: Name,
    /// What kind it is.
    pub kind: String,
    /// One sentence.
    #[serde(default)]
    pub about: String,
}

impl Heading {
    /// Reads name, kind and the sentence, and nothing else.
    ///
    /// # Errors
    /// Line, column and reason.
    pub fn parse(text: &str) -> Result<Heading, String> {
        tickwire_console::settings::read(text)
    }
}

/// A value that is wrong beside others: which key, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Dotted, as `run.samples`.
    pub key: &'static str,
    /// Why, and what to write instead.
    pub reason: String,
}

impl Wrong {
    /// A key and why it is wrong.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Wrong {
        Wrong {
            key,
            reason: reason.into(),
        }
    }
}

impl<S: Serialize + DeserializeOwned + Default> Scenario<S> {
    /// Reads a file and checks it whole; then sets what `[full]` says if `full`, and each of `overrides`
    /// (dotted key, value in TOML or a bare word), in order.
    ///
    /// # Errors
    /// Line and column, or the override, and the reason.
    pub fn parse(text: &str, full: bool, overrides: &[(String, String)]) -> Result<Scenario<S>, String> {
        let plain: Scenario<S> = tickwire_console::settings::read(text)?;
        if overrides.is_empty() && (!full || plain.full.is_empty()) {
            return Ok(plain);
        }
        let mut table: toml::Table = tickwire_console::settings::read(text).expect("it was read above");
        let at_length = plain.full.iter().filter(|_| full);
        for (key, value) in at_length {
            apply::<S>(&mut table, key, value.clone()).map_err(|why| {
                format!(
                    "[full] \"{key}\" = {value} in line {}: {why}",
                    line_of_quoted(text, key)
                )
            })?;
        }
        for (key, value) in overrides {
            apply::<S>(&mut table, key, bare_value(value))
                .map_err(|why| format!("--set {key}={value}: {why}"))?;
        }
        Ok(table.try_into().expect("read after each change"))
    }

    /// As TOML with every default filled in.
    pub fn to_toml(&self) -> String {
        tickwire_console::settings::write(self).expect("every scenario has a TOML form")
    }
}

/// Sets one value and reads the whole again.
fn apply<S: DeserializeOwned + Default>(
    table: &mut toml::Table,
    key: &str,
    value: toml::Value,
) -> Result<(), String> {
    let mut at = &mut *table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.to_owned(), value);
            break;
        }
        let below = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = below
            .as_table_mut()
            .ok_or_else(|| format!("'{part}' holds a value, not a section"))?;
    }
    let read: Result<Scenario<S>, _> = table.clone().try_into();
    read.map(drop).map_err(|e| e.message().to_owned())
}

/// `5`, `true`, `[1, 2]` and `"x"` as TOML reads them, anything else as text.
fn bare_value(text: &str) -> toml::Value {
    let line = format!("v = {text}");
    let read: Result<toml::Table, _> = tickwire_console::settings::read(&line);
    read.ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// The line (from 1) where a dotted key is written; where it is not, that of its section; else 1.
pub fn line_of(text: &str, key: &str) -> usize {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let (mut within, mut found) = (String::new(), 1);
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            within = title.trim_matches('[').trim().to_owned();
            if within == section || within == key {
                found = i + 1;
            }
        } else if within == section && line.split('=').next().is_some_and(|left| left.trim() == name) {
            return i + 1;
        }
    }
    found
}

/// The line (from 1) of a key that is written in quotes, as those of `[full]` are.
fn line_of_quoted(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    let at = text
        .lines()
        .position(|line| line.trim_start().starts_with(&quoted));
    at.map_or(1, |i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Settings {
        depth: u32,
        ways: Vec<String>,
    }

    const TEXT: &str = "\
name = \"x\"
kind = \"test\"

[load]
intervals_us = [500, 1000]

[run]
samples = 2000

[cores]
exchange = 0

[settings]
depth = 3

[full]
\"run.samples\" = 20000
";

    fn parse(text: &str, full: bool, set: &[(&str, &str)]) -> Result<Scenario<Settings>, String> {
        let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Scenario::parse(text, full, &set)
    }

    #[test]
    fn what_is_left_out_has_its_default_and_the_whole_reads_back() {
        let scenario = parse(TEXT, false, &[]).expect("reads");
        assert_eq!(
            (scenario.run.samples.get(), scenario.run.repetitions.get()),
            (2_000, 3)
        );
        assert_eq!(scenario.load.shape, Shape::Open);
        assert_eq!(scenario.settings.depth, 3);
        let text = scenario.to_toml();
        assert_eq!(parse(&text, false, &[]).expect("reads"), scenario);
    }

    #[test]
    fn full_and_set_change_values_in_that_order() {
        assert_eq!(parse(TEXT, true, &[]).expect("reads").run.samples.get(), 20_000);
        let set = [
            ("run.samples", "10"),
            ("settings.ways", "[\"a\", \"b\"]"),
            ("load.shape", "one-at-a-time"),
            ("cores.trader", "1"),
        ];
        let scenario = parse(TEXT, true, &set).expect("reads");
        assert_eq!((scenario.run.samples.get(), scenario.cores["trader"]), (10, 1));
        assert_eq!(scenario.settings.ways, ["a", "b"]);
        assert_eq!(scenario.load.shape, Shape::OneAtATime);
    }

    #[test]
    fn errors_name_line_or_override_and_what_is_allowed() {
        for (from, to, line, what) in [
            ("samples = 2000", "samples = 0", "line 8", "give 1 to 100000000"),
            ("[500, 1000]", "[500, 0]", "line 5", "interval in microseconds"),
            ("depth = 3", "dept = 3", "line 14", "unknown field `dept`"),
            ("name = \"x\"", "name = \"a/b\"", "line 1", "names no folder"),
            ("[load]", "[load]\nshape = \"loop\"", "line 5", "one-at-a-time"),
        ] {
            let error = parse(&TEXT.replace(from, to), false, &[]).expect_err("refused");
            assert!(error.contains(line) && error.contains(what), "{error}");
        }
        let error = parse(TEXT, false, &[("run.samples", "-1")]).expect_err("refused");
        assert!(
            error.contains("--set run.samples=-1") && error.contains("give 1 to"),
            "{error}"
        );
        let error = parse(TEXT, false, &[("run.smaples", "1")]).expect_err("refused");
        assert!(error.contains("unknown field `smaples`"), "{error}");
        let error = parse(TEXT, false, &[("name.x", "1")]).expect_err("refused");
        assert!(error.contains("'name' holds a value"), "{error}");
        let error = parse(&TEXT.replace("20000", "0"), true, &[]).expect_err("refused");
        assert!(error.contains("[full]") && error.contains("line 17"), "{error}");
    }

    #[test]
    fn the_line_of_a_key_is_its_own_or_its_sections() {
        for (key, line) in [
            ("run.samples", 8),
            ("run.warm_up", 7),
            ("kind", 2),
            ("settings.depth", 14),
        ] {
            assert_eq!(line_of(TEXT, key), line, "{key}");
        }
    }
}
