//! `tickwire fix log`: messages of stores and message logs, for people or as JSON, filtered, followed.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tickwire_fix::dict::Dictionary;
use tickwire_fix::tag;
use tickwire_fixengine::message::{self, TagValue};
use tickwire_fixengine::{MessageFile, names};
use tickwire_runtime::signal::StopFlag;

use super::failure;
use crate::cli::FixLogArgs;
use tickwire_console::failure::Failure;

/// How often a followed file is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Which messages are wanted.
struct Filter {
    types: Vec<Vec<u8>>,
    fields: Vec<TagValue>,
    session: Option<Vec<u8>>,
    seqs: (u64, u64),
    since: Option<String>,
    until: Option<String>,
}

/// Names of tags, messages and values.
struct Names(Vec<Arc<Dictionary>>);

/// `tickwire fix log`.
pub(super) fn run(args: &FixLogArgs, stop: &StopFlag) -> Result<(), Failure> {
    let names = Names::load(&args.dictionary)?;
    let filter = Filter::of(args, &names)?;
    let sources = args.files.iter().map(|path| MessageFile::open(path));
    let mut sources = sources.collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut left = args.limit.unwrap_or(u64::MAX);
    let many = sources.len() > 1;
    loop {
        for source in &mut sources {
            let name = source.path().display().to_string();
            let mut written = Ok(());
            let read = source.read(&mut |time, bytes| {
                let fields = message::fields(bytes);
                if left == 0 || written.is_err() || !filter.admits(time, &fields) {
                    return;
                }
                left -= 1;
                let entry = Entry {
                    file: many.then_some(&name[..]),
                    time,
                    fields: &fields,
                    names: &names,
                };
                written = match (args.json, args.raw) {
                    (true, _) => entry.json(&mut out),
                    (_, true) => writeln!(out, "{}", message::shown(bytes)),
                    _ => entry.people(&mut out),
                };
            });
            read.map_err(failure)?;
            if written.and(out.flush()).is_err() {
                // Nobody reads on.
                return Ok(());
            }
        }
        if !args.follow || left == 0 || stop.is_set() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

fn cannot_read(path: &Path, e: &io::Error) -> Failure {
    Failure::system(format!("cannot read {}: {e}", path.display()))
}

impl Names {
    fn load(paths: &[PathBuf]) -> Result<Names, Failure> {
        let load = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).map_err(|e| cannot_read(path, &e))?;
            let dictionary = Dictionary::parse(&text);
            dictionary
                .map(Arc::new)
                .map_err(|e| Failure::config(format!("the dictionary {}: {e}", path.display())))
        };
        paths.iter().map(load).collect::<Result<_, _>>().map(Names)
    }

    fn tag(&self, tag: u32) -> Option<&str> {
        let own = self.0.iter().find_map(|d| d.field(tag));
        own.map(|f| &*f.name).or_else(|| names::tag(tag))
    }

    fn message(&self, msg_type: &[u8]) -> Option<&str> {
        let own = self.0.iter().find_map(|d| d.message(msg_type));
        own.map(|m| &*m.name).or_else(|| names::message(msg_type))
    }

    fn value(&self, tag: u32, value: &[u8]) -> Option<String> {
        if tag == tag::MSG_TYPE {
            return self.message(value).map(str::to_string);
        }
        let own = self.0.iter().find_map(|d| d.field(tag)?.describe(value));
        own.or_else(|| names::value(tag, value)).map(str::to_string)
    }

    /// A tag by its number or name.
    fn number(&self, text: &str) -> Option<u32> {
        let own = || self.0.iter().find_map(|d| d.field_named(text)).map(|f| f.tag);
        let known: HashMap<&str, u32> = names::all().map(|(tag, name)| (name, tag)).collect();
        text.parse()
            .ok()
            .or_else(own)
            .or_else(|| known.get(text).copied())
    }
}

impl Filter {
    fn of(args: &FixLogArgs, names: &Names) -> Result<Filter, Failure> {
        let field = |text: &String| {
            let (tag, value) = text.split_once('=')?;
            Some((names.number(tag)?, value.as_bytes().to_vec()))
        };
        let fields = args.field.iter().map(|text| {
            field(text).ok_or_else(|| {
                Failure::config(format!("{text:?} is not TAG=VALUE with a tag's number or name"))
            })
        });
        let seqs = match args.seq.as_deref() {
            None => Some((0, u64::MAX)),
            Some(text) => match text.split_once('-') {
                Some((from, "")) => from.parse().ok().map(|from| (from, u64::MAX)),
                Some((from, to)) => from.parse().ok().zip(to.parse().ok()),
                None => text.parse().ok().map(|seq| (seq, seq)),
            },
        };
        Ok(Filter {
            types: args.types.iter().map(|t| t.as_bytes().to_vec()).collect(),
            fields: fields.collect::<Result<_, _>>()?,
            session: args.session.as_ref().map(|s| s.as_bytes().to_vec()),
            seqs: seqs.ok_or_else(|| Failure::config("--seq is a number, 5-9 or 5-"))?,
            since: args.since.clone(),
            until: args.until.clone(),
        })
    }

    fn admits(&self, time: Option<&str>, fields: &[TagValue]) -> bool {
        let value = |tag| value(fields, tag);
        let seq = value(tag::MSG_SEQ_NUM).and_then(|s| std::str::from_utf8(s).ok()?.parse().ok());
        let seq = seq.unwrap_or(0);
        let of_session = self.session.as_deref().is_none_or(|id| {
            [tag::SENDER_COMP_ID, tag::TARGET_COMP_ID]
                .iter()
                .any(|tag| value(*tag) == Some(id))
        });
        let sent = value(tag::SENDING_TIME).map(|t| String::from_utf8_lossy(t).into_owned());
        let time = time.map(str::to_string).or(sent).unwrap_or_default();
        of_session
            && (self.seqs.0..=self.seqs.1).contains(&seq)
            && (self.types.is_empty() || self.types.iter().any(|t| value(tag::MSG_TYPE) == Some(&t[..])))
            && self
                .fields
                .iter()
                .all(|wanted| fields.iter().any(|f| f == wanted))
            && self
                .since
                .as_deref()
                .is_none_or(|since| clock(&time, since) >= since)
            && self
                .until
                .as_deref()
                .is_none_or(|until| clock(&time, until).get(..until.len()).is_none_or(|t| t <= until))
    }
}

/// The part of a time that another is compared with: all of it, or the time of day if the other is one.
fn clock<'t>(time: &'t str, other: &str) -> &'t str {
    let is_day_time = other.as_bytes().get(2) == Some(&b':');
    if is_day_time {
        time.get(9..).unwrap_or("")
    } else {
        time
    }
}

fn value(fields: &[TagValue], wanted: u32) -> Option<&[u8]> {
    let found = fields.iter().find(|(tag, _)| *tag == wanted);
    found.map(|(_, value)| &value[..])
}

/// A message to be shown.
struct Entry<'e> {
    file: Option<&'e str>,
    time: Option<&'e str>,
    fields: &'e [TagValue],
    names: &'e Names,
}

impl Entry<'_> {
    fn text(&self, tag: u32) -> String {
        value(self.fields, tag).map_or("?".into(), |v| message::shown_value(tag, v))
    }

    fn type_name(&self) -> String {
        let msg_type = value(self.fields, tag::MSG_TYPE).unwrap_or_default();
        let name = self.names.message(msg_type).map(str::to_string);
        name.unwrap_or_else(|| String::from_utf8_lossy(msg_type).into_owned())
    }

    fn when(&self) -> String {
        let time = self.time.map(str::to_string);
        time.unwrap_or_else(|| self.text(tag::SENDING_TIME))
    }

    fn people(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(file) = self.file {
            write!(out, "{file}: ")?;
        }
        let (from, to) = (self.text(tag::SENDER_COMP_ID), self.text(tag::TARGET_COMP_ID));
        let seq = self.text(tag::MSG_SEQ_NUM);
        let again = match value(self.fields, tag::POSS_DUP_FLAG) {
            Some(b"Y") => " (sent again)",
            _ => "",
        };
        writeln!(
            out,
            "{} {from} -> {to} #{seq} {}{again}",
            self.when(),
            self.type_name()
        )?;
        let is_told = |tag: u32| matches!(tag, 8 | 9 | 10 | 34 | 35 | 49 | 56);
        for (tag, value) in self.fields.iter().filter(|(tag, _)| !is_told(*tag)) {
            let name = self.names.tag(*tag).unwrap_or("?");
            let shown = message::shown_value(*tag, value);
            match self.names.value(*tag, value) {
                Some(meaning) => writeln!(out, "{tag:>8} {name:<22} {shown} ({meaning})")?,
                None => writeln!(out, "{tag:>8} {name:<22} {shown}")?,
            }
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let field = |(tag, value): &TagValue| {
            serde_json::json!({
                "tag": tag,
                "name": self.names.tag(*tag),
                "value": message::shown_value(*tag, value),
                "meaning": self.names.value(*tag, value),
            })
        };
        let line = serde_json::json!({
            "file": self.file,
            "time": self.when(),
            "sender": self.text(tag::SENDER_COMP_ID),
            "target": self.text(tag::TARGET_COMP_ID),
            "seq": self.text(tag::MSG_SEQ_NUM).parse::<u64>().ok(),
            "type": self.text(tag::MSG_TYPE),
            "name": self.type_name(),
            "fields": self.fields.iter().map(field).collect::<Vec<_>>(),
        });
        writeln!(out, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_whole_or_by_the_time_of_day() {
        let filter = |since: Option<&str>, until: Option<&str>| Filter {
            types: Vec::new(),
            fields: Vec::new(),
            session: None,
            seqs: (0, u64::MAX),
            since: since.map(str::to_string),
            until: until.map(str::to_string),
        };
        let at = Some("20261121-01:55:41.123");
        for (since, until, admitted) in [
            (Some("01:55"), Some("01:55"), true),
            (Some("01:56"), None, false),
            (None, Some("01:54"), false),
            (Some("20261121"), Some("20261121-01:55:41"), true),
            (Some("20261122"), None, false),
        ] {
            assert_eq!(
                filter(since, until).admits(at, &[]),
                admitted,
                "{since:?} {until:?}"
            );
        }
    }
}
