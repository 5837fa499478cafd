//! Files without packets: ITCH messages, DBN records, lines of LOBSTER.

use std::path::Path;

use tickwire_book::{BooksConfig, Depth};
use tickwire_console::failure::Failure;
use tickwire_market::{BookState, Nanos, Venue};
use tickwire_runtime::itchfile::ItchFile;
use tickwire_runtime::recordfile::{LineFile, RecordFile};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_wire::{Malformed, dbn};

use super::ending::Ending;
use super::records::Check;
use super::room::Room;
use super::survey::Load;
use super::{About, LOOK, RecordsFile, Replay, Routes, lobster, records};
use crate::progress::Progress;
use crate::tape::End;

/// Messages of a file that are shown before they come: the books' lines are on their way by then.
const AHEAD: usize = 16;

impl Replay<'_> {
    pub(super) fn messages(&mut self, path: &Path, mut file: ItchFile) -> Result<(), End> {
        let Routes::Recognised(survey) = &self.routes else {
            return Err(End::Damaged(
                "a file of messages has no addresses: leave --config out".to_string(),
            ));
        };
        let channel = match self.of_files {
            Some(channel) => channel,
            None => {
                let mut feed = FeedConfig::on_loopback(self.args.protocol.unwrap_or(Protocol::Itch50));
                feed.name = Some(format!("{} file", feed.protocol()));
                let load = Load {
                    messages: survey.files.messages,
                    bytes: survey.files.messages * 40,
                    highest: None,
                };
                let name = feed.name().to_string();
                let channel = self.add(&feed, 0, name, load, Vec::new()).map_err(End::Failed)?;
                *self.of_files.insert(channel)
            }
        };
        let mut progress = Progress::new("playing");
        let mut number = 0_u64;
        loop {
            while let Some(message) = file.ahead(AHEAD) {
                self.played[channel].preview(self.tape.last(), message);
            }
            let Some(message) = file.next_message()? else {
                return Ok(());
            };
            number += 1;
            if number.is_multiple_of(LOOK) {
                if self.stop.is_set() {
                    return Err(End::Interrupted);
                }
                progress.show(path, number, message.offset);
            }
            // Bytes 5 to 10 of every message but one are its time of day.
            let time = message.bytes.get(5..11).map_or(self.tape.last(), |t| {
                Nanos(t.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)))
            });
            self.tape.advance(time.max(self.tape.last()), self.stop)?;
            self.played[channel].on_message(time, message.bytes);
            if self.args.step {
                self.step(channel, &format!("message {number} at byte {}", message.offset))?;
            }
        }
    }

    /// Makes a channel of a file of records.
    fn add_records(&mut self, name: &str, kind: &'static str, is_lobster: bool) -> Result<usize, End> {
        let Routes::Recognised(survey) = &self.routes else {
            return Err(End::Damaged(format!(
                "a {kind} file has no addresses: leave --config out"
            )));
        };
        let (files, args) = (survey.files, self.args);
        let depth = match (is_lobster, files.has_orders) {
            (true, _) => Depth::ByOrder,
            (false, true) => Depth::Aggregated,
            (false, false) => Depth::ByPrice,
        };
        let room = Room::of_records(files, is_lobster, args);
        let venue = match name.strip_prefix("dbn ").unwrap_or_default() {
            dataset if dataset.starts_with("GLBX") => Venue::Cme,
            _ => Venue::Nasdaq,
        };
        let file = RecordsFile {
            name: name.to_string(),
            is_by_order: depth != Depth::ByPrice,
            is_lobster,
            books: BooksConfig {
                depth,
                venue,
                instruments: room.instruments.saturating_add(2),
                orders: room.orders,
                levels: room.levels,
                initial: BookState::Live,
                ..BooksConfig::default()
            },
            check: match self.rows.as_ref().or(args.check.as_ref()) {
                Some(path) => records::check_of(path)?,
                None => Check::None,
            },
            symbols: self.symbols.clone().filter(|_| !is_lobster),
            clock: self.clock.clone(),
        };
        let played = self.make.records(file).map_err(End::Failed)?;
        self.played.push(played);
        self.about.push(About {
            protocol: kind,
            on: Vec::new(),
            room,
            end: Ending::default(),
        });
        Ok(self.played.len() - 1)
    }

    pub(super) fn records(&mut self, path: &Path, mut file: RecordFile) -> Result<(), End> {
        let damaged =
            |e: Malformed| End::Damaged(format!("{}: its metadata cannot be read: {e}", path.display()));
        let metadata = dbn::Metadata::parse(file.version(), file.metadata()).map_err(damaged)?;
        let channel = match self.of_records {
            Some(channel) => channel,
            None => {
                let name = format!("dbn {}", metadata.dataset.escape_ascii());
                let channel = self.add_records(&name, "dbn", false)?;
                *self.of_records.insert(channel)
            }
        };
        records::name_all(&metadata, &mut *self.played[channel]).map_err(damaged)?;
        let mut progress = Progress::new("playing");
        let mut number = 0_u64;
        while let Some(record) = file.next_record()? {
            number += 1;
            if number.is_multiple_of(LOOK) {
                if self.stop.is_set() {
                    return Err(End::Interrupted);
                }
                progress.show(path, number, record.offset);
            }
            let time = dbn::parse(record.bytes)
                .ok()
                .and_then(|r| r.header().ts_event.get());
            let time = time.unwrap_or(self.tape.last()).max(self.tape.last());
            self.tape.advance(time, self.stop)?;
            self.played[channel].on_message(time, record.bytes);
            if self.args.step {
                self.step(channel, &format!("record {number} at byte {}", record.offset))?;
            }
        }
        Ok(())
    }

    pub(super) fn lines(&mut self, path: &Path, mut file: LineFile) -> Result<(), End> {
        // LOBSTER names its files AAPL_2012-06-21_34200000_57600000_message_10.csv, and says the symbol
        // nowhere else.
        let name = path.file_name().and_then(|name| name.to_str());
        let symbol = name.and_then(|name| Some(name.split_once('_')?.0.to_owned()));
        if let (Some(wanted), Some(symbol)) = (&self.symbols, &symbol)
            && !wanted.iter().any(|wanted| wanted.as_str() == symbol)
        {
            return Err(End::Failed(Failure::config(format!(
                "{}: by its name it is of {symbol}, which is not among the symbols that were asked for",
                path.display()
            ))));
        }
        let channel = match self.of_lines {
            Some(channel) => channel,
            None => {
                let channel = self.add_records("lobster", "lobster", true)?;
                if let Some(symbol) = symbol.filter(|_| self.make.is_for_channels()) {
                    self.played[channel].name(lobster::ONE.0, symbol.as_bytes());
                }
                *self.of_lines.insert(channel)
            }
        };
        let mut progress = Progress::new("playing");
        while let Some((number, line)) = file.next_line()? {
            if number == 1 && line.starts_with(b"Time,") {
                continue;
            }
            if number.is_multiple_of(LOOK) {
                if self.stop.is_set() {
                    return Err(End::Interrupted);
                }
                progress.show(path, number, 0);
            }
            let field = line.split(|b| *b == b',').next().unwrap_or_default();
            let time = std::str::from_utf8(field).ok().and_then(lobster::time_of);
            let time = time.unwrap_or(self.tape.last()).max(self.tape.last());
            self.tape.advance(time, self.stop)?;
            self.played[channel].on_message(time, line);
            if self.args.step {
                self.step(channel, &format!("line {number}"))?;
            }
        }
        Ok(())
    }
}
