//! What was traded over a session, in a file that outlives the process: a line for every execution, added by
//! a thread that does not trade, read back at the start. Traders, strategies and the quoter have this one.
//!
//! ```text
//! fill|broken,TIME,SYMBOL,SOURCE,buy|sell,QUANTITY,PRICE,VALUE,MSGSEQNUM,EXECID,CHECK
//! heard|ended|doubt|sure,MSGSEQNUM,CHECK
//! ```
//! TIME is in nanoseconds since 1970, SOURCE what traded ([`Source`]), VALUE the theoretical one then where
//! somebody knew it, CHECK the FNV-1a hash (32 bits) of the line before it. `broken` is a trade that the
//! venue took back, booked the other way round: `buy` takes a sale back. `heard` says that every message of
//! the venue up to that number is accounted for; 0, that the venue's numbers begin anew behind it. `ended`
//! says the same of a process that has ended, and of which nothing was open any more. `doubt` says that more
//! may have been traded than the lines before it have, until a person has looked: `sure`.
//!
//! **Nothing is lost, nothing counts twice.** A line is written after its execution was taken, so the last
//! ones of a process that was killed may be missing. The next one asks the venue for everything behind the
//! last line ([`Recovered::heard`]), and FIX has it sent again (43=Y); of that, what a line is there for is
//! left out by its number ([`Recovered::last_fill`]). What reached the file survives the process, not the
//! machine. The file grows by about a hundred bytes for each fill. What a full disk does is said by who
//! writes it: the quoter's pricing thread ends, which pulls every quote, and a trader's kill switch goes on.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tickwire_fix::Id;
use tickwire_market::{Nanos, Price, Side, Symbol};

use tickwire_console::failure::Failure;
use tickwire_control::process::open_alone;

/// What traded, as a file has it: without a comma.
pub trait Source: Copy {
    /// Writes it.
    ///
    /// # Errors
    /// The writer's.
    fn put(&self, line: &mut String) -> std::fmt::Result;

    /// Reads what was written; `None` of anything else.
    fn read(text: &str) -> Option<Self>;
}

/// For who does not ask what traded.
impl Source for () {
    fn put(&self, _: &mut String) -> std::fmt::Result {
        Ok(())
    }

    fn read(_: &str) -> Option<()> {
        Some(())
    }
}

/// An execution as it is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fill<S> {
    /// When it was heard of, UTC.
    pub at: Nanos,
    /// Of the instrument.
    pub symbol: Symbol,
    /// What traded.
    pub source: S,
    /// Ours: a filled bid bought.
    pub side: Side,
    /// The venue took a trade of the other side back.
    pub is_broken: bool,
    /// Contracts or shares.
    pub qty: u32,
    /// Of one of them.
    pub price: Price,
    /// The option's theoretical value then, in points.
    pub theo: Option<f64>,
    /// MsgSeqNum (34) of the report.
    pub seq: u64,
    /// ExecID (17) of the venue's report.
    pub exec: Id,
}

impl<S> Fill<S> {
    /// Contracts or shares bought, below 0 sold.
    pub fn signed(&self) -> i64 {
        match self.side {
            Side::Bid => i64::from(self.qty),
            Side::Ask => -i64::from(self.qty),
        }
    }
}

/// What a file had.
#[derive(Clone, PartialEq, Debug)]
pub struct Recovered<S> {
    /// Those that were in the file.
    pub fills: Vec<Fill<S>>,
    /// Every message up to this number is accounted for; 0: none.
    pub heard: u64,
    /// Bytes of a line that was not whole, which were cut.
    pub torn: usize,
    /// The process before this one has ended in good order: nothing of it was open.
    pub has_ended: bool,
    /// More may have been traded, and nobody has looked since.
    pub is_in_doubt: bool,
    last_fill: u64,
    /// How many of the fills are from before the venue's numbers began anew last.
    earlier: usize,
}

impl<S> Default for Recovered<S> {
    fn default() -> Recovered<S> {
        Recovered {
            fills: Vec::new(),
            heard: 0,
            torn: 0,
            has_ended: false,
            is_in_doubt: false,
            last_fill: 0,
            earlier: 0,
        }
    }
}

impl<S> Recovered<S> {
    /// MsgSeqNum of the last fill since the venue's numbers began; 0: none.
    pub fn last_fill(&self) -> u64 {
        self.last_fill
    }

    /// Those since the venue's numbers began. Of others its names say nothing: they are those of a day.
    pub fn since_numbers_began(&self) -> &[Fill<S>] {
        self.fills.get(self.earlier..).unwrap_or(&[])
    }

    /// The venue's numbers begin anew, and so do its names.
    pub fn begin_anew(&mut self) {
        (self.heard, self.last_fill, self.earlier) = (0, 0, self.fills.len());
    }
}

/// The file, ours alone for as long as this lives.
pub struct FillsFile {
    path: PathBuf,
    file: File,
    /// Bytes that it has to have.
    length: u64,
    pending: String,
    heard: u64,
}

impl FillsFile {
    /// Opens or makes it, and reads what it has. `owner` is what a process that has it is called.
    ///
    /// # Errors
    /// Another process has it; it cannot be read; a line in its midst is damaged, by its number.
    pub fn open<S: Source>(path: &Path, owner: &str) -> Result<(FillsFile, Recovered<S>), Failure> {
        let failed = |what: &str, e: std::io::Error| {
            Failure::system(format!("fills {}: {what} failed: {e}", path.display()))
        };
        if let Some(folder) = path.parent() {
            tickwire_runtime::files::create_folders(folder).map_err(|e| failed("making its folder", e))?;
        }
        let mut file = open_alone(path, "fills", owner)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|e| failed("reading it", e))?;
        let (recovered, length) = read(&bytes).map_err(|line| {
            Failure::check(format!(
                "fills {}: line {line} is damaged, and others follow it: positions cannot be told from it; repair the line, or move the \
                 file away to begin with none",
                path.display()
            ))
        })?;
        file.set_len(length as u64).map_err(|e| failed("cutting it", e))?;
        file.seek(SeekFrom::Start(length as u64))
            .map_err(|e| failed("going to its end", e))?;
        let fills = FillsFile {
            path: path.to_path_buf(),
            file,
            length: length as u64,
            pending: String::new(),
            heard: recovered.heard,
        };
        Ok((fills, recovered))
    }

    /// Adds a fill; [`FillsFile::flush`] writes it.
    pub fn put<S: Source>(&mut self, fill: &Fill<S>) {
        put(&mut self.pending, |line| line_of(line, fill));
        self.heard = fill.seq;
    }

    /// Every message up to this number is accounted for: said if it was not yet.
    pub fn heard(&mut self, seq: u64) {
        if seq != self.heard {
            put(&mut self.pending, |line| write!(line, "heard,{seq}"));
            self.heard = seq;
        }
    }

    /// A process begins: that the one before it had ended holds no more. To be written before it trades.
    pub fn begun(&mut self) {
        put(&mut self.pending, |line| write!(line, "heard,{}", self.heard));
    }

    /// The process ends: every message up to this number is accounted for, and nothing is open.
    pub fn ended(&mut self, seq: u64) {
        put(&mut self.pending, |line| write!(line, "ended,{seq}"));
        self.heard = seq;
    }

    /// Whether more may have been traded than is in it.
    pub fn doubt(&mut self, is_in_doubt: bool) {
        let (kind, seq) = (if is_in_doubt { "doubt" } else { "sure" }, self.heard);
        put(&mut self.pending, |line| write!(line, "{kind},{seq}"));
    }

    /// The venue's numbers begin anew.
    pub fn begin_anew(&mut self) {
        put(&mut self.pending, |line| line.write_str("heard,0"));
        self.heard = 0;
    }

    /// Writes what was added, with one call of the system.
    ///
    /// # Errors
    /// It could not be written: positions would not outlive the process.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Ok(data) = self.file.metadata()
            && data.len() != self.length
        {
            return Err(Failure::system(format!(
                "fills {} has {} bytes and not the {} that were written: somebody changed it while it is in use; nothing is traded without them",
                self.path.display(),
                data.len(),
                self.length
            )));
        }
        self.file.write_all(self.pending.as_bytes()).map_err(|e| {
            Failure::system(format!(
                "fills {} could not be written: {e}; nothing is traded without them",
                self.path.display()
            ))
        })?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// Adds a line with its check.
fn put(text: &mut String, line: impl FnOnce(&mut String) -> std::fmt::Result) {
    let from = text.len();
    // A string takes whatever is written.
    let _ = line(text);
    let check = check(&text.as_bytes()[from..]);
    let _ = writeln!(text, ",{check:08x}");
}

/// FNV-1a, 32 bits.
fn check(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

fn line_of<S: Source>(line: &mut String, fill: &Fill<S>) -> std::fmt::Result {
    let kind = if fill.is_broken { "broken" } else { "fill" };
    let side = if fill.side == Side::Bid { "buy" } else { "sell" };
    let Fill {
        at,
        symbol,
        qty,
        price,
        seq,
        exec,
        ..
    } = fill;
    write!(line, "{kind},{},{symbol},", at.0)?;
    fill.source.put(line)?;
    write!(line, ",{side},{qty},{price},")?;
    if let Some(theo) = fill.theo {
        write!(line, "{theo:?}")?;
    }
    write!(line, ",{seq},{exec}")
}

/// What a file's bytes say, and how many of them are whole lines; else the number of a line that is damaged
/// with others behind it.
pub fn read<S: Source>(bytes: &[u8]) -> Result<(Recovered<S>, usize), usize> {
    let mut recovered = Recovered::default();
    let mut length = 0;
    let mut damaged = None;
    let mut place = 0;
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        place += line.len();
        match (parse(line), damaged) {
            (Some(_), Some(line)) => return Err(line),
            (Some(Line::Fill(fill)), None) => {
                recovered.has_ended = false;
                (recovered.heard, recovered.last_fill) = (fill.seq, fill.seq);
                recovered.fills.push(fill);
                length = place;
            }
            (Some(Line::Heard { seq, has_ended }), None) => {
                (recovered.heard, recovered.has_ended) = (seq, has_ended);
                if seq == 0 {
                    recovered.begin_anew();
                }
                length = place;
            }
            (Some(Line::Doubt(is_in_doubt)), None) => {
                recovered.is_in_doubt = is_in_doubt;
                length = place;
            }
            (None, _) => {
                damaged.get_or_insert(number + 1);
            }
        }
    }
    recovered.torn = bytes.len() - length;
    Ok((recovered, length))
}

enum Line<S> {
    Fill(Fill<S>),
    Heard { seq: u64, has_ended: bool },
    Doubt(bool),
}

/// A whole line; `None` if it is not one.
fn parse<S: Source>(line: &[u8]) -> Option<Line<S>> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (said, noted) = line.rsplit_once(',')?;
    if noted.len() != 8 || u32::from_str_radix(noted, 16).ok()? != check(said.as_bytes()) {
        return None;
    }
    let (kind, rest) = said.split_once(',')?;
    if matches!(kind, "doubt" | "sure") {
        return rest
            .parse::<u64>()
            .is_ok()
            .then_some(Line::Doubt(kind == "doubt"));
    }
    let has_ended = kind == "ended";
    if has_ended || kind == "heard" {
        let seq = rest.parse().ok()?;
        return Some(Line::Heard { seq, has_ended });
    }
    let is_broken = match kind {
        "fill" => false,
        "broken" => true,
        _ => return None,
    };
    // An ExecID may have commas.
    let mut fields = rest.splitn(9, ',');
    let mut next = || fields.next();
    let fill = Fill {
        at: Nanos(next()?.parse().ok()?),
        symbol: Symbol::new(next()?.as_bytes())?,
        source: S::read(next()?)?,
        side: match next()? {
            "buy" => Side::Bid,
            "sell" => Side::Ask,
            _ => return None,
        },
        is_broken,
        qty: next()?.parse().ok()?,
        price: next()?.parse().ok()?,
        theo: match next()? {
            "" => None,
            theo => Some(theo.parse().ok()?),
        },
        seq: next()?.parse().ok()?,
        exec: Id::new(next()?.as_bytes())?,
    };
    Some(Line::Fill(fill))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As short as a source may be.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Letter(char);

    impl Source for Letter {
        fn put(&self, line: &mut String) -> std::fmt::Result {
            line.write_char(self.0)
        }

        fn read(text: &str) -> Option<Letter> {
            text.chars().next().filter(|_| text.len() == 1).map(Letter)
        }
    }

    fn fill(seq: u64) -> Fill<Letter> {
        Fill {
            at: Nanos(1_795_392_000_123_456_789 + seq),
            symbol: Symbol::new(b"EX C690000").unwrap(),
            source: Letter(['q', 'e', 'h'][seq as usize % 3]),
            side: if seq.is_multiple_of(2) {
                Side::Bid
            } else {
                Side::Ask
            },
            is_broken: seq.is_multiple_of(5),
            qty: 1 + seq as u32,
            price: Price::from_raw(5_050_000_000 * seq as i64),
            theo: (!seq.is_multiple_of(3)).then_some(5.1 * seq as f64),
            seq,
            exec: Id::new(format!("X,{seq}").as_bytes()).unwrap(),
        }
    }

    fn text(seqs: std::ops::Range<u64>) -> String {
        let mut text = String::new();
        for seq in seqs {
            put(&mut text, |line| line_of(line, &fill(seq)));
            put(&mut text, |line| write!(line, "heard,{}", seq + 7));
        }
        text
    }

    #[test]
    fn a_file_cut_anywhere_has_every_whole_line_and_no_more() {
        let text = text(1..40);
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for cut in 0..=text.len() {
            let (recovered, length) = read::<Letter>(&text.as_bytes()[..cut]).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(length, if whole == 0 { 0 } else { ends[whole - 1] });
            assert_eq!(
                recovered.fills,
                (1..1 + whole.div_ceil(2) as u64).map(fill).collect::<Vec<_>>()
            );
            assert_eq!(recovered.torn, cut - length);
        }
    }

    #[test]
    fn a_damaged_byte_is_noticed_wherever_it_is() {
        let text = text(1..6);
        let lines = text.lines().count();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 0x04;
            let line = 1 + text.as_bytes()[..at]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            match read::<Letter>(&bytes) {
                Err(said) => assert_eq!(said, line, "byte {at}"),
                // Of the last line, or the end of the one before it.
                Ok((recovered, length)) => {
                    assert!(line + 1 >= lines && length < text.len(), "byte {at}");
                    assert!(recovered.torn > 0, "byte {at}");
                }
            }
        }
    }

    #[test]
    fn what_was_put_in_is_found_by_the_next_process_and_by_one_at_a_time() {
        let folder = std::env::temp_dir().join(format!("tickwire-fills-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("state/fills");
        let (mut file, recovered) = FillsFile::open::<Letter>(&path, "test").unwrap();
        assert_eq!(recovered, Recovered::default());
        file.put(&fill(4));
        file.heard(4);
        file.heard(9);
        file.flush().unwrap();
        assert!(FillsFile::open::<Letter>(&path, "test").is_err(), "two at once");
        drop(file);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"fill,17,E")
            .unwrap();
        let (mut file, recovered) = FillsFile::open::<Letter>(&path, "test").unwrap();
        assert_eq!(
            (recovered.fills.as_slice(), recovered.heard, recovered.torn),
            (&[fill(4)][..], 9, 9)
        );
        file.put(&fill(10));
        file.flush().unwrap();
        drop(file);
        let (mut file, recovered) = FillsFile::open::<Letter>(&path, "test").unwrap();
        assert_eq!(
            (recovered.fills.len(), recovered.heard, recovered.last_fill()),
            (2, 10, 10)
        );
        file.ended(11);
        file.flush().unwrap();
        drop(file);
        let (mut file, recovered) = FillsFile::open::<Letter>(&path, "test").unwrap();
        assert_eq!(
            (recovered.heard, recovered.last_fill(), recovered.has_ended),
            (11, 10, true)
        );
        file.begin_anew();
        file.flush().unwrap();
        file.heard(3);
        file.flush().unwrap();
        drop(file);
        let (_, recovered) = FillsFile::open::<Letter>(&path, "test").unwrap();
        assert_eq!(
            (recovered.fills.len(), recovered.heard, recovered.last_fill()),
            (2, 3, 0),
            "the venue's numbers began anew"
        );
        assert!(!recovered.has_ended && recovered.since_numbers_began().is_empty());
        let _ = std::fs::remove_dir_all(&folder);
    }
}
