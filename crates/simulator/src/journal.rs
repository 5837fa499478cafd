//! The journal's file: written before anything leaves that follows from it, read back at the start, and
//! `tickwire journal`.
//!
//! One process has it: the file is locked. What was put in is written by [`Journal::flush`], with one system
//! call for everything since the last one. `process` durability leaves it to the page cache, which outlives
//! the process however it dies; `disk` waits for the device.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tickwire_exchange::{
    Applied, ClientOrder, Input, JOURNAL_MAGIC_BEFORE, JournalReader, JournalWriter, Market, Outcome, Route,
};
use tickwire_lab::Table;
use tickwire_market::Nanos;

use crate::entry::{Durability, JournalSection};
use crate::settings::{ExchangeSection, MarketConfig};
use crate::snapshot::{JournalPosition, Snapshot, tail_of};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::access::AccessSection;
use tickwire_control::process::open_alone;
use tickwire_venues::wait::Wait;

/// The arguments of `tickwire journal`.
#[derive(clap::Args, Debug)]
pub struct JournalArgs {
    /// The journal
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replay it and compare every state hash noted in it
    #[arg(long)]
    pub verify: bool,
    /// Replay it and print every client order
    #[arg(long, conflicts_with = "verify")]
    pub orders: bool,
    /// Print the configuration it was written with
    #[arg(long, conflicts_with_all = ["verify", "orders"])]
    pub config: bool,
}

/// Bytes of a journal before its configuration.
const HEAD_FIXED: u64 = 12;
/// Room of a transmission while a journal is replayed, and of one live.
pub const TRANSMIT_MAX: usize = 8192;

/// The file that everything which comes in is appended to before anything follows from it, and that brings
/// the market back after a crash.
pub struct Journal {
    path: PathBuf,
    file: File,
    writer: JournalWriter,
    durability: Durability,
    /// Bytes that the file has to have.
    length: u64,
    /// Inputs that were put in.
    inputs: u64,
}

/// What was found in a journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovered {
    /// Inputs that were played back.
    pub inputs: u64,
    /// Inputs before them, which a snapshot had.
    pub before: u64,
    /// The number of the newest snapshot that is there.
    pub snapshot: Option<u64>,
    /// Bytes of a record that was not whole.
    pub torn: u64,
    /// The time of the last input.
    pub last: Nanos,
    /// State hashes that were noted, and how many of them the replay did not have.
    pub marks: u64,
    /// Of those, how many the replay did not come to: the market is not the one that was.
    pub wrong_marks: u64,
}

/// Whether the journal at a path is of the form before, which has passwords, and is gone on with as it is.
pub fn has_passwords(path: &Path) -> bool {
    let mut magic = [0; JOURNAL_MAGIC_BEFORE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == JOURNAL_MAGIC_BEFORE
}

/// The configuration of a market as its journal has it: from wherever it is started, and whoever may speak to
/// it, it is the same market, and no password is in it.
pub fn kept_configuration(config: &MarketConfig) -> MarketConfig {
    let mut kept = config.without_passwords();
    kept.exchange.control = None;
    kept.exchange.wait = Wait::Auto;
    kept.access = AccessSection::default();
    kept.exchange.kept_messages = ExchangeSection::default().kept_messages;
    if let Some(journal) = &mut kept.exchange.journal {
        journal.file = journal.file.file_name().map(PathBuf::from).unwrap_or_default();
        // Where messages are kept does not change which there are.
        journal.history_bytes = JournalSection::HISTORY_BYTES;
        journal.snapshot_s = JournalSection::SNAPSHOT_S;
    }
    kept
}

/// The text of a configuration as a journal of today would have it.
fn kept(text: &str) -> Result<String, String> {
    Ok(kept_configuration(&MarketConfig::parse(text)?).to_toml())
}

impl Journal {
    /// Opens or makes the file, and brings `market` to where it stood: from the newest snapshot that serves
    /// and the records behind it, or from its beginning. `make` makes another market that has done nothing
    /// yet, for when a snapshot turns out not to serve.
    pub fn open(
        path: &Path,
        durability: Durability,
        configuration: &str,
        market: &mut Market,
        make: &dyn Fn() -> Result<Market, Failure>,
    ) -> Result<(Journal, Recovered), Failure> {
        let failed = |what: &str, e: std::io::Error| {
            Failure::system(format!("journal {}: {what} failed: {e}", path.display()))
        };
        let mut file = open_alone(path, "journal", "exchange")?;
        let head = read_head(&mut file).map_err(|e| failed("reading it", e))?;
        let (writer, recovered, length) = if is_new(&head) {
            market.histories_mut().for_each(|history| history.clear());
            // Snapshots of another day may lie here: those of this one are newer.
            let all = Snapshot::all(path, configuration);
            let recovered = Recovered {
                snapshot: all.first().map(Snapshot::number),
                ..Recovered::default()
            };
            (JournalWriter::new(configuration), recovered, 0)
        } else {
            let reader = reader_of(path, &head)?;
            // What the configuration of an earlier version did not say yet has its default.
            let is_same = reader.configuration() == configuration
                || kept(reader.configuration()).is_ok_and(|text| text == configuration);
            if !is_same {
                return Err(Failure::config(format!(
                    "journal {} was written with another configuration, and would not make the same market; move it \
                     away, or give back the configuration (`tickwire journal {} --config` prints it)",
                    path.display(),
                    path.display()
                )));
            }
            let all = Snapshot::all(path, configuration);
            let newest = all.first().map(Snapshot::number);
            let (mut recovered, length) = match from_snapshot(path, &mut file, all, market, make)? {
                Some(found) => found,
                None => from_beginning(path, market)?,
            };
            recovered.snapshot = newest;
            (JournalWriter::after(length), recovered, length)
        };
        // Behind the last whole record nothing counts.
        file.set_len(length).map_err(|e| failed("cutting it", e))?;
        file.seek(SeekFrom::Start(length))
            .map_err(|e| failed("going to its end", e))?;
        let mut journal = Journal {
            path: path.to_path_buf(),
            file,
            writer,
            durability,
            length,
            inputs: recovered.before + recovered.inputs,
        };
        journal.flush()?;
        if durability == Durability::Disk {
            // What was cut, and the name of a new file, have to outlive the machine too.
            journal
                .file
                .sync_all()
                .map_err(|e| failed("writing it to the disk", e))?;
            sync_folder(path).map_err(|e| failed("writing its folder to the disk", e))?;
        }
        Ok((journal, recovered))
    }

    /// Where it ends, and how many inputs are in it: what a snapshot taken now is of. Nothing may be pending.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn place(&self, last: Nanos) -> std::io::Result<JournalPosition> {
        debug_assert!(
            self.writer.pending().is_empty(),
            "a snapshot is of what was written"
        );
        Ok(JournalPosition {
            place: self.length,
            tail: tail_of(&self.file, self.length)?,
            last,
            inputs: self.inputs,
        })
    }

    /// Adds an input; [`Journal::flush`] writes it.
    pub fn put(&mut self, now: Nanos, input: &Input<'_>) {
        self.writer.put(now, input);
        self.inputs += 1;
    }

    /// Writes what was put in. When it fails, nothing more may be sent: the exchange has to end.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.writer.pending().is_empty() {
            return Ok(());
        }
        self.check_whole()?;
        let written = self.file.write_all(self.writer.pending());
        let written = written.and_then(|()| match self.durability {
            Durability::Process => Ok(()),
            Durability::Disk => self.file.sync_data(),
        });
        written.map_err(|e| {
            Failure::system(format!(
                "journal {} could not be written: {e}; the exchange stops, nothing was acknowledged that is not in it",
                self.path.display()
            ))
        })?;
        self.length += self.writer.pending().len() as u64;
        self.writer.written();
        Ok(())
    }

    /// What was written is still there: behind a cut the next record would stand in a hole, and everything
    /// after it be lost.
    fn check_whole(&self) -> Result<(), Failure> {
        match self.file.metadata() {
            Ok(data) if data.is_file() && data.len() != self.length => Err(Failure::system(format!(
                "journal {} has {} bytes and not the {} that were written: somebody changed it while it is in use; the exchange stops, nothing was \
                 acknowledged that is not in the {} bytes that were there",
                self.path.display(),
                data.len(),
                self.length,
                self.length
            ))),
            _ => Ok(()),
        }
    }
}

/// The beginning of a journal: as much of it as there is, up to the end of its configuration.
fn read_head(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(HEAD_FIXED).read_to_end(&mut head)?;
    let length = head.get(8..12).and_then(|length| length.first_chunk());
    if let Some(length) = length.map(|length| u32::from_le_bytes(*length)) {
        file.take(u64::from(length) + 4).read_to_end(&mut head)?;
    }
    Ok(head)
}

/// What a market came to, and the length that its journal has to have.
type FoundAt = (Recovered, u64);

/// The market from the newest snapshot that serves and the records behind it; `None` if none does.
fn from_snapshot(
    path: &Path,
    file: &mut File,
    all: Vec<Snapshot>,
    market: &mut Market,
    make: &dyn Fn() -> Result<Market, Failure>,
) -> Result<Option<FoundAt>, Failure> {
    let failed =
        |e: std::io::Error| Failure::system(format!("journal {}: reading it failed: {e}", path.display()));
    let length = file.metadata().map_err(failed)?.len();
    for snapshot in all {
        let unfit = if snapshot.place > length {
            "there is less of the journal than it is of"
        } else if tail_of(file, snapshot.place).map_err(failed)? != snapshot.tail {
            "it is of another journal"
        } else if !snapshot.load(market) {
            *market = make()?;
            "it does not make the state that it was taken of"
        } else {
            file.seek(SeekFrom::Start(snapshot.place)).map_err(failed)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            let mut reader = JournalReader::behind(snapshot.place, &bytes);
            let mut recovered = replay(&mut reader, market);
            if recovered.wrong_marks == 0 && reader.whole_behind().is_none() {
                recovered.before = snapshot.inputs;
                recovered.last = recovered.last.max(snapshot.last);
                return Ok(Some((recovered, reader.place())));
            }
            *market = make()?;
            "the journal behind it does not come to the states noted in it"
        };
        warn(format_args!(
            "snapshot {}: {unfit}; it is not used: an older one is, or the whole journal is replayed",
            snapshot.path().display()
        ));
    }
    Ok(None)
}

/// The market from the whole journal.
fn from_beginning(path: &Path, market: &mut Market) -> Result<FoundAt, Failure> {
    market.histories_mut().for_each(|history| history.clear());
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::system(format!("journal {}: reading it failed: {e}", path.display())))?;
    let mut reader = reader_of(path, &bytes)?;
    let recovered = replay(&mut reader, market);
    if recovered.wrong_marks > 0 {
        return Err(Failure::check(format!(
            "journal {}: {} of {} state hashes differ from those noted: another version wrote it; move it away",
            path.display(),
            recovered.wrong_marks,
            recovered.marks
        )));
    }
    if let Some(behind) = reader.whole_behind() {
        return Err(Failure::check(format!(
            "journal {place}: damaged at byte {at}, with whole records from byte {behind} on: what happened after it cannot be told, \
             and nothing was changed; give back a copy of the file, move it away to begin a new day, or go on without what followed: \
             `truncate -s {at} {place}`",
            place = path.display(),
            at = reader.place()
        )));
    }
    Ok((recovered, reader.place()))
}

/// Waits until the device has the folder of a file.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Nothing was ever written but perhaps a part of the head.
fn is_new(bytes: &[u8]) -> bool {
    bytes.is_empty()
        || matches!(
            JournalReader::new(bytes),
            Err(tickwire_exchange::NotAJournal::Head)
        )
}

fn reader_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<JournalReader<'a>, Failure> {
    JournalReader::new(bytes).map_err(|e| Failure::config(format!("{} {e}", path.display())))
}

/// Does everything again. Datagrams are made and dropped: they were sent.
fn replay(reader: &mut JournalReader<'_>, market: &mut Market) -> Recovered {
    replay_with(reader, market, &mut |_, _| {})
}

/// What is done again: an input, and what it sent.
type Seen<'f> = &'f mut dyn FnMut(&Input<'_>, &[u8]);

/// The same, with what every input sent.
fn replay_with(reader: &mut JournalReader<'_>, market: &mut Market, seen: Seen<'_>) -> Recovered {
    let mut found = Recovered::default();
    let mut out = vec![0; TRANSMIT_MAX];
    for (now, input) in reader.by_ref() {
        found.inputs += 1;
        found.last = now;
        if let Input::Mark(hash) = input {
            found.marks += 1;
            found.wrong_marks += u64::from(market.state_hash() != hash);
        }
        let applied = input.apply(now, market, &mut out);
        let sent = if let Applied::Sent(sent) = applied {
            sent
        } else {
            0
        };
        seen(&input, &out[..sent]);
        if input == Input::Time {
            drop_datagrams(now, market);
        }
    }
    found.torn = reader.torn();
    found
}

/// What the exchange sent on each order entry connection, in the order of the connections.
///
/// # Errors
/// Not a journal, or one whose configuration cannot be read.
pub fn sent(path: &Path, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut reader = reader_of(path, bytes)?;
    let mut market = market_of(path, &reader)?;
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut open = std::collections::BTreeMap::new();
    replay_with(&mut reader, &mut market, &mut |input, bytes| match input {
        Input::Connect(id) => {
            open.insert(*id, sent.len());
            sent.push(Vec::new());
        }
        Input::Transmit(id, _) => {
            if let Some(at) = open.get(id) {
                sent[*at].extend_from_slice(bytes);
            }
        }
        _ => {}
    });
    Ok(sent)
}

/// The market of a journal before its first input.
fn market_of(path: &Path, reader: &JournalReader<'_>) -> Result<Market, Failure> {
    let config = MarketConfig::parse(reader.configuration()).map_err(|e| {
        Failure::config(format!(
            "{}: its configuration cannot be read: {e}",
            path.display()
        ))
    })?;
    Ok(crate::venue::market_of(&config, None)?.0)
}

fn drop_datagrams(now: Nanos, market: &mut Market) {
    let venues = market
        .venues()
        .map(|(_, exchange)| exchange.published_channels().len());
    let published_channels: Vec<usize> = venues.collect();
    for (venue, published_channels) in published_channels.into_iter().enumerate() {
        let exchange = market.exchange_mut(venue);
        for published_channel in 0..published_channels {
            while exchange.poll_datagram(published_channel, now).is_some() {}
        }
    }
    market.histories_mut().for_each(|history| history.write());
}

/// `tickwire journal`: what is in one, and whether it makes the market that it says.
pub fn run(args: &JournalArgs) -> Result<(), Failure> {
    let path = &args.file;
    let bytes =
        std::fs::read(path).map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
    let mut reader = reader_of(path, &bytes)?;
    if args.config {
        print!("{}", reader.configuration());
        return Ok(());
    }
    if !args.verify && !args.orders {
        return summary(&mut reader);
    }
    let mut market = market_of(path, &reader)?;
    let found = replay(&mut reader, &mut market);
    if args.orders {
        println!("port,id,venue_id,symbol,side,qty,filled,price,outcome");
        for order in market.exchange(0).ledger() {
            println!("{}", row_of(order));
        }
        return Ok(());
    }
    println!(
        "{} inputs replayed, {} orders, state hash {:016x}, {} of {} noted hashes are the same, {} bytes torn",
        found.inputs,
        market.exchange(0).ledger().len(),
        market.state_hash(),
        found.marks - found.wrong_marks,
        found.marks,
        found.torn
    );
    match found.wrong_marks {
        0 => Ok(()),
        n => Err(Failure::check(format!(
            "{}: {n} noted state hashes differ: this version does not make the market that wrote it",
            path.display()
        ))),
    }
}

fn row_of(order: &ClientOrder) -> String {
    let port = match order.route {
        Route::Fix(n) => format!("fix{n}"),
        Route::Ouch(n) => format!("ouch{n}"),
    };
    let outcome = match order.outcome {
        Outcome::Rejected => "rejected",
        Outcome::Open => "open",
        Outcome::Filled => "filled",
        Outcome::Cancelled => "cancelled",
    };
    format!(
        "{port},{},{},{},{:?},{},{},{},{outcome}",
        order.cl_ord_id, order.venue_id.0, order.symbol, order.side, order.qty.0, order.filled.0, order.price
    )
}

fn summary(reader: &mut JournalReader<'_>) -> Result<(), Failure> {
    const KINDS: [&str; 13] = [
        "opened",
        "time passed",
        "stopped",
        "connected",
        "disconnected",
        "bytes came",
        "bytes left",
        "resumed",
        "state hash noted",
        "trade broken",
        "halted or resumed",
        "who asked",
        "clock set",
    ];
    let mut counts = [0_u64; KINDS.len()];
    let (mut first, mut last) = (None, Nanos::ZERO);
    for (now, input) in reader.by_ref() {
        first.get_or_insert(now);
        last = now;
        let kind = match input {
            Input::Open => 0,
            Input::Time => 1,
            Input::Stop => 2,
            Input::Connect(_) => 3,
            Input::Disconnect(_) => 4,
            Input::Bytes(..) => 5,
            Input::Transmit(..) => 6,
            Input::Resume => 7,
            Input::Mark(_) => 8,
            Input::Break(..) => 9,
            Input::Action(..) => 10,
            Input::AskedBy(..) => 11,
            Input::ClockSet(_) => 12,
        };
        counts[kind] += 1;
    }
    let mut table = Table::new("journal", &["input", "count"]);
    for (name, count) in KINDS.iter().zip(counts) {
        table = table.row([name.to_string(), count.to_string()]);
    }
    print!("{}", table.to_text(tickwire_console::terminal::width()));
    println!(
        "{:.3} s from first to last input, {} bytes, {} of them torn",
        last.since(first.unwrap_or(last)) as f64 / 1e9,
        reader.place() + reader.torn(),
        reader.torn()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;
    use tickwire_runtime::files;

    /// A pipe takes bytes and has no device behind it: the kernel refuses to say that they are there.
    #[test]
    fn disk_waits_for_the_device_at_every_flush_and_a_refusal_stops_the_exchange() {
        for durability in [Durability::Process, Durability::Disk] {
            let (mut reader, writer) = std::io::pipe().expect("a pipe");
            let mut journal = Journal {
                path: PathBuf::from("pipe.journal"),
                file: File::from(OwnedFd::from(writer)),
                writer: JournalWriter::new("a configuration"),
                durability,
                length: 0,
                inputs: 0,
            };
            let flushed = journal.flush();
            match durability {
                Durability::Process => {
                    flushed.expect("a write is enough");
                    journal.flush().expect("nothing to write");
                    journal.put(Nanos(1), &Input::Open);
                    journal.flush().expect("and again");
                }
                Durability::Disk => {
                    let failure = flushed.expect_err("not on a device");
                    assert!(
                        failure
                            .message
                            .contains("nothing was acknowledged that is not in it"),
                        "{}",
                        failure.message
                    );
                }
            }
            drop(journal);
            let mut written = Vec::new();
            reader.read_to_end(&mut written).expect("all of it");
            assert!(written.len() > 16, "written before it is synced");
        }
    }

    /// A journal of the form before, which has passwords, is read and gone on with as it is; one of another
    /// day's password is not its own.
    #[test]
    fn a_journal_of_the_form_before_is_gone_on_with() {
        let folder = std::env::temp_dir().join(format!("tickwire-journal-before-{}", std::process::id()));
        files::create_folders(&folder).unwrap();
        let path = folder.join("exchange.journal");
        let mut config = MarketConfig::default();
        config.order_entry.ouch = tickwire_console::settings::read(
            "address = \"127.0.0.1:0\"\n[[user]]\nusername = \"alice\"\npassword = \"secret\"\nfirm_name = \"F\"\nfirm = 1\n",
        )
        .unwrap();
        let mut writer = JournalWriter::new(&config.to_toml());
        writer.put(Nanos(1), &Input::Open);
        writer.put(Nanos(2), &Input::AskedBy(0, 7));
        let mut bytes = writer.pending().to_vec();
        bytes[..8].copy_from_slice(&JOURNAL_MAGIC_BEFORE);
        files::write(&path, &bytes).unwrap();
        assert!(has_passwords(&path) && !has_passwords(&folder.join("none")));
        let (mut market, _) = crate::venue::market_of(&config, None).unwrap();
        let text = kept_configuration(&config).to_toml();
        assert!(!text.contains("secret") && text.contains("*hidden*"), "{text}");
        let (journal, found) =
            Journal::open(&path, Durability::Process, &text, &mut market, &|| unreachable!()).unwrap();
        assert_eq!((found.inputs, found.torn), (2, 0));
        assert!(has_passwords(&path), "its form stays");
        // Cut while it is in use: nothing more is written to it.
        let mut journal = journal;
        journal.put(Nanos(3), &Input::Time);
        journal.flush().unwrap();
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(100)
            .unwrap();
        journal.put(Nanos(4), &Input::Time);
        let cut = journal.flush().unwrap_err();
        assert!(cut.message.contains("has 100 bytes"), "{cut}");
        drop(journal);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_folder_of_a_file_without_one_is_the_one_the_program_is_in() {
        sync_folder(Path::new("some.journal")).expect("the current folder");
        assert!(sync_folder(Path::new("no/such/folder/some.journal")).is_err());
    }
}
