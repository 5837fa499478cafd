//! The table of the comparison, `oracle.toml`: which script reads which capture, what its fields are called,
//! its known faults.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The whole table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) protocol: BTreeMap<String, Protocol>,
    pub(crate) capture: Vec<Capture>,
    pub(crate) simulate: Vec<Simulate>,
    #[serde(default)]
    pub(crate) exception: Vec<Exception>,
}

/// One protocol as `tickwire decode` and the dissectors show it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Protocol {
    /// The value of `tickwire decode --protocol`.
    pub(crate) decode: String,
    /// The script for captures that are not in the table: our own.
    pub(crate) script: String,
    /// Whether integers begin with their highest byte.
    pub(crate) big_endian: bool,
    /// How the names of elements that hold one message end.
    pub(crate) message: Vec<String>,
    /// Whether those elements are frames, in which the message's own name stands further in.
    #[serde(default)]
    pub(crate) names_within: bool,
    /// How the dissectors show numbers.
    #[serde(default)]
    pub(crate) numbers: Numbers,
    /// Leaves that the dissector shows and we do not: lengths that only frame, padding.
    #[serde(default)]
    pub(crate) skip: Vec<String>,
    /// Our fields outside messages and theirs.
    #[serde(default)]
    pub(crate) header: BTreeMap<String, Names>,
    /// Fields that our messages have beside their own layout.
    #[serde(default)]
    pub(crate) ours_alone: Vec<String>,
    /// Our message names and theirs, where they differ by more than case and `message`.
    #[serde(default)]
    pub(crate) messages: BTreeMap<String, Names>,
    /// Our field names and theirs, where they differ by more than case.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, Names>,
}

/// How a dissector shows integers.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Numbers {
    /// As they are.
    #[default]
    Right,
    /// As if each had a sign.
    Signed,
    /// Wrong: only the bytes can be compared.
    Raw,
}

/// One name or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    pub(crate) fn has(&self, wanted: &str) -> bool {
        self.iter().any(|name| name == wanted)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        };
        names.iter().map(String::as_str)
    }
}

/// A folder or file of captures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capture {
    /// Where, below the folder of captures; the longest that fits counts.
    pub(crate) path: String,
    /// Which protocol it is, empty where there is nothing to compare.
    #[serde(default)]
    pub(crate) protocol: String,
    /// The script, without `_Dissector.lua`; by default the protocol's.
    #[serde(default)]
    pub(crate) script: String,
    /// More options for tshark.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// The value of `tickwire decode --protocol` where it is not the protocol's.
    #[serde(default)]
    pub(crate) decode: String,
    /// The value of `tickwire decode --xdp`.
    #[serde(default)]
    pub(crate) xdp: String,
    /// How the script shows numbers where it is not as in the protocol's.
    pub(crate) numbers: Option<Numbers>,
    /// Why nothing is compared.
    #[serde(default)]
    pub(crate) none: String,
}

/// A capture that the simulator writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulate {
    /// The value of `tickwire config --feed`, and as it is shown.
    pub(crate) feed: String,
    pub(crate) protocol: String,
    /// The port of a channel whose packets are compared, by its name in the configuration.
    #[serde(default = "live")]
    pub(crate) port: String,
    /// The script, without `_Dissector.lua`; by default the protocol's.
    #[serde(default)]
    pub(crate) script: String,
    /// Each message in a packet of its own: the script loses its place behind one that it does not read
    /// whole.
    #[serde(default)]
    pub(crate) alone: bool,
}

fn live() -> String {
    "live".to_owned()
}

/// A known fault of a dissector.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) protocol: String,
    /// The capture that shows the fault, by the end of its name; empty: all.
    #[serde(default)]
    pub(crate) capture: String,
    /// Our name of the message; empty: all.
    #[serde(default)]
    pub(crate) message: String,
    /// Values of our fields of the message, of which each must be one of these.
    #[serde(default, rename = "where")]
    pub(crate) when: BTreeMap<String, Vec<String>>,
    /// Our names of the fields, or theirs where we have none; `*`: all of the message.
    pub(crate) field: Names,
    pub(crate) reason: String,
    /// The digest and section that tells what is right.
    pub(crate) digest: String,
}

impl Table {
    /// The table as it is built in.
    pub(crate) fn read() -> Table {
        toml::from_str(include_str!("oracle.toml")).expect("xtask/src/oracle/oracle.toml is a valid table")
    }

    /// The row of a capture.
    pub(crate) fn capture(&self, path: &str) -> Option<&Capture> {
        let fits = |row: &&Capture| {
            path.strip_prefix(row.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.capture.iter().filter(fits).max_by_key(|row| row.path.len())
    }
}

impl Protocol {
    pub(crate) fn is_message(&self, element: &str) -> bool {
        self.message.iter().any(|end| element.ends_with(end.as_str()))
    }

    /// Whether a message name of ours is theirs.
    pub(crate) fn same_message(&self, ours: &str, theirs: &str) -> bool {
        let listed = self.messages.get(ours).is_some_and(|names| names.has(theirs));
        // Templates of SBE carry their number in our name.
        let ours = plain(ours);
        let ours = ours.trim_end_matches(|c: char| c.is_ascii_digit());
        listed || ours == theirs.strip_suffix("message").unwrap_or(theirs)
    }
}

/// A name without what the two sides spell differently.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_what_exists() {
        let table = Table::read();
        for row in &table.capture {
            let known = table.protocol.contains_key(&row.protocol);
            assert!(
                known == row.none.is_empty() && known != row.protocol.is_empty(),
                "{}: a protocol of the table, or a reason",
                row.path
            );
        }
        for row in &table.simulate {
            assert!(table.protocol.contains_key(&row.protocol), "{}", row.protocol);
        }
        for row in &table.exception {
            assert!(table.protocol.contains_key(&row.protocol), "{}", row.protocol);
            assert!(
                !row.reason.is_empty() && row.digest.contains(".md"),
                "{}",
                row.reason
            );
        }
    }

    #[test]
    fn the_longest_path_counts() {
        let mut table = Table::read();
        let row = |path: &str| Capture {
            path: path.to_owned(),
            protocol: String::new(),
            script: String::new(),
            options: Vec::new(),
            decode: String::new(),
            xdp: String::new(),
            numbers: None,
            none: "test".to_owned(),
        };
        table.capture = vec![row("a"), row("a/b"), row("a/bc")];
        assert_eq!(table.capture("a/b/x.pcap").unwrap().path, "a/b");
        assert_eq!(table.capture("a/x.pcap").unwrap().path, "a");
        assert!(table.capture("b").is_none());
    }
}
