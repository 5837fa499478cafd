//! `tickwire vol`: volatilities as a file, edited there or in a running quoter by the same lines.
//!
//! ```text
//! FILE (TOML) ─► load ─► VolFile + Surface ─► begin(line) ─► Surface edited ─► keep ─► FILE rewritten where it changed, FILE.log one line longer
//!                                                ▲               │
//! tickwire vol edit -f FILE LINE ────────────────┤               └─ in the quoter, ladders are made and handed over in between
//! tickwire vol edit -s SOCKET LINE ─► control ───┘
//! ```

mod file;
mod line;
mod log;
mod show;
mod step;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tickwire_lab::Table;
use tickwire_market::Nanos;
use tickwire_options::surface::{Curve, Edit, EditError, Surface};
use tickwire_runtime::users::Peer;

pub use file::{VolFile, WingSection, load};
use line::Line;
use log::Record;

use tickwire_console::failure::{Code, Failure};
use tickwire_control::client;

/// Edits that can be taken back within a process: as many as the surface keeps.
const UNDO_MAX: usize = 100;

/// The clock of files and logs: the system's.
fn now() -> Nanos {
    let now = jiff::Timestamp::now().as_nanosecond();
    Nanos(u64::try_from(now).unwrap_or(0))
}

/// An instant as the log writes it, UTC.
fn utc(at: Nanos) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(at.0))
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        .unwrap_or_default()
}

/// Does what a line says to a surface, to the file that it came from, and to the file's log: the new version
/// and what became of the volatility at the money; of lines that only ask, the answer. Slow path: it writes
/// files.
///
/// # Errors
/// Why not; then surface, file and log are as they were.
fn command(
    file: &mut VolFile,
    surface: &mut Surface,
    line: &str,
    by: impl Into<By>,
    now: Nanos,
) -> Result<String, String> {
    match begin(file, surface, line, &by.into(), now)? {
        Begun::Answer(says) => Ok(says),
        Begun::Edited(edited) => keep(file, surface, *edited),
    }
}

/// Who edits.
#[derive(Clone, Debug)]
pub struct By {
    /// For the log.
    pub who: String,
    /// What goes further than one edit may is meant.
    pub is_forced: bool,
}

impl From<&str> for By {
    fn from(who: &str) -> By {
        By {
            who: who.to_string(),
            is_forced: false,
        }
    }
}

/// What a line came to, before anything is written.
pub enum Begun {
    /// It only asked.
    Answer(String),
    /// The surface is edited: [`keep`] writes that, [`drop_edit`] takes it back.
    Edited(Box<Edited>),
}

/// An edit that a surface has, and its file has not yet.
pub struct Edited {
    change: Change,
    was: Surface,
    /// The expiry's name, and its volatility at the money before and after.
    atm: (String, f64, f64),
    line: String,
    who: String,
    at: Nanos,
}

enum Change {
    /// The file was read again; this is what was read before.
    Reloaded(Box<VolFile>),
    Made(Edit),
    /// The version that is taken back, and the text before it.
    Undone(u64, String),
}

/// Does what a line says to a surface; file and log are left to [`keep`], so that quotes need not wait for a
/// disk.
///
/// # Errors
/// Why not; then the surface is as it was.
pub fn begin(
    file: &mut VolFile,
    surface: &mut Surface,
    line: &str,
    by: &By,
    now: Nanos,
) -> Result<Begun, String> {
    let asked = line::parse(line, |name| file.place(name))?;
    let was = surface.clone();
    let author = file.author(&by.who);
    // The rule as it stood before the file is read again.
    let (steps, is_undo) = (file.steps(), asked == Line::Undo);
    let change = match asked {
        Line::File => return file.text_now(surface).map(Begun::Answer),
        Line::Version => return Ok(Begun::Answer(file.log.version.to_string())),
        Line::Edit(edit) => made(file, surface, edit, author, now),
        Line::StraddleAlone { expiry, points } => {
            let edit = alone(surface, expiry, points).map_err(|e| named(file, e))?;
            made(file, surface, edit, author, now)
        }
        Line::Fit { expiry, move_max } => {
            let edit = fitted(file, surface, expiry, move_max)?;
            made(file, surface, edit, author, now)
        }
        Line::Undo => undo(file, surface, author, now),
        Line::Reload => reload(file, surface, now),
    }?;
    let place = match &change {
        Change::Made(edit) => edit.expiry(),
        Change::Undone(..) | Change::Reloaded(_) => changed(&was, surface),
    };
    let strikes = |place: usize| file.expiries().get(place).map_or(vec![], |e| e.strikes.clone());
    let refusal = match by.is_forced || is_undo {
        true => None,
        false => steps.refusal((&was, surface), |place| name_of(file, place), strikes),
    };
    let edited = Edited {
        change,
        atm: (name_of(file, place), atm(&was, place), atm(surface, place)),
        was,
        line: line.trim().to_string(),
        who: by.who.clone(),
        at: now,
    };
    match refusal {
        None => Ok(Begun::Edited(Box::new(edited))),
        Some(why) => {
            let line = edited.line.clone();
            drop_edit(file, surface, edited);
            Err(format!(
                "`{line}` is refused: {why}. Nothing was changed; give --force if it is meant"
            ))
        }
    }
}

/// Makes an edit.
fn made(
    file: &VolFile,
    surface: &mut Surface,
    edit: Edit,
    author: u32,
    now: Nanos,
) -> Result<Change, String> {
    if let Edit::Years { expiry, .. } = edit
        && !file.has_years(expiry)
    {
        let name = name_of(file, expiry);
        return Err(format!(
            "the time of {name} goes by the clock: its file says no years"
        ));
    }
    surface.apply(now, author, edit).map_err(|e| named(file, e))?;
    Ok(Change::Made(edit))
}

/// The first expiry whose smile differs.
fn changed(before: &Surface, after: &Surface) -> usize {
    let differs = |place: &usize| before.smile(*place) != after.smile(*place);
    (0..after.len()).find(differs).unwrap_or(0)
}

/// Reads the file as it is by now: edits of others, and of `tickwire vol edit -f`. It must have the same
/// expiries.
fn reload(file: &mut VolFile, surface: &mut Surface, now: Nanos) -> Result<Change, String> {
    let path = file
        .path()
        .ok_or("these volatilities were not read from a file")?;
    let (read, mut made) = file::load_at(path, now).map_err(|failure| failure.message)?;
    let names = |file: &VolFile| -> Vec<String> { file.expiries().iter().map(|e| e.name.clone()).collect() };
    if names(&read) != names(file) {
        return Err(format!(
            "{} has the expiries {} by now, quoted are {}: other ones want another start",
            path.display(),
            names(&read).join(", "),
            names(file).join(", ")
        ));
    }
    made.set_front(surface.front());
    *surface = made;
    Ok(Change::Reloaded(Box::new(std::mem::replace(file, read))))
}

/// Takes the last edit of this process back.
fn undo(file: &VolFile, surface: &mut Surface, author: u32, now: Nanos) -> Result<Change, String> {
    let Some((undone, patch)) = file.done.last() else {
        return Err("nothing to undo: no edit since the volatilities were read".into());
    };
    let text = patch
        .undo(file.text())
        .ok_or("the text is not what the edit made of it")?;
    surface.undo(now, author).map_err(|e| named(file, e))?;
    Ok(Change::Undone(*undone, text))
}

/// Writes an edit to the file and its log: the new version and what became of the volatility at the money.
///
/// # Errors
/// Why not; then surface, file and log are as they were before the edit.
pub fn keep(file: &mut VolFile, surface: &mut Surface, edited: Edited) -> Result<String, String> {
    let (written, undoes) = match &edited.change {
        Change::Reloaded(_) => {
            return Ok(format!(
                "read again, {}",
                said(Ok(()), file.log.version, &edited.atm)
            ));
        }
        Change::Made(edit) => (file.rewritten(surface, Some(edit)), None),
        Change::Undone(version, text) => (Ok(text.clone()), Some(*version)),
    };
    let patch = match written.and_then(|text| file.replace(text)) {
        Ok(patch) => patch,
        Err(why) => {
            drop_edit(file, surface, edited);
            return Err(why);
        }
    };
    let version = file.log.version + 1;
    if undoes.is_some() {
        file.done.pop();
    } else {
        if file.done.len() >= UNDO_MAX {
            file.done.remove(0);
        }
        file.done.push((version, patch.clone()));
    }
    let record = Record {
        version,
        at: utc(edited.at),
        who: edited.who,
        edit: edited.line,
        atm: Some(edited.atm.clone()),
        undoes,
        patch,
    };
    Ok(said(file.log.append(&record), version, &edited.atm))
}

/// Gives a surface back what it was before an edit, and a file that was read again what was read before.
pub fn drop_edit(file: &mut VolFile, surface: &mut Surface, edited: Edited) {
    *surface = edited.was;
    if let Change::Reloaded(before) = edited.change {
        *file = *before;
    }
}

impl Edited {
    /// Whether times and rates may be others too.
    pub fn is_reload(&self) -> bool {
        matches!(self.change, Change::Reloaded(_))
    }
}

/// Takes back the last edit that stands in the log of a file that nobody has open.
fn undo_in_file(path: &Path, who: &str, now: Nanos) -> Result<String, Failure> {
    let refused = |says: String| Failure::check(format!("{}: {says}", path.display()));
    let (mut file, surface) = file::load_at(path, now)?;
    let standing = log::standing(&log::read(path)?);
    let (undone, patch) = standing.last().ok_or_else(|| refused("nothing to undo".into()))?;
    let text = patch.undo(file.text()).ok_or_else(|| {
        refused(format!(
            "was changed since version {undone}, which therefore cannot be taken back; what it did is in {}.log",
            path.display()
        ))
    })?;
    let (_, mut before) = VolFile::parse(text.clone(), now).map_err(refused)?;
    let place = changed(&surface, &before);
    let edited = Edited {
        change: Change::Undone(*undone, text),
        atm: (name_of(&file, place), atm(&surface, place), atm(&before, place)),
        was: surface,
        line: "undo".to_string(),
        who: who.to_string(),
        at: now,
    };
    keep(&mut file, &mut before, edited).map_err(refused)
}

fn said(logged: Result<(), String>, version: u64, (name, before, after): &(String, f64, f64)) -> String {
    let mut said = format!(
        "version {version}: {name} at the money {:.4} % -> {:.4} %",
        100.0 * before,
        100.0 * after
    );
    if let Err(why) = logged {
        said.push_str(&format!("; not in the log: {why}"));
    }
    said
}

/// An edit's refusal, expiries by their names.
fn named(file: &VolFile, error: EditError) -> String {
    match error {
        EditError::Straddle(place) => {
            format!("no volatility of {} gives that straddle", name_of(file, place))
        }
        other => other.to_string(),
    }
}

fn name_of(file: &VolFile, place: usize) -> String {
    let expiry = file.expiries().get(place);
    expiry.map_or_else(|| place.to_string(), |expiry| expiry.name.clone())
}

/// Volatility at the money.
fn atm(surface: &Surface, place: usize) -> f64 {
    match (surface.smile(place), surface.forward(place)) {
        (Some(smile), Some(forward)) => smile.atm(forward),
        _ => f64::NAN,
    }
}

/// The edit that moves one straddle and no other.
fn alone(surface: &Surface, expiry: usize, points: f64) -> Result<Edit, EditError> {
    if surface.link(expiry) == Some(0) {
        return Ok(Edit::Straddle { expiry, points });
    }
    let (Some(smile), Some(forward)) = (surface.smile(expiry), surface.forward(expiry)) else {
        return Err(EditError::Expiry(expiry));
    };
    let target = smile.straddle(forward) + points;
    let after = smile
        .atm_of_straddle(forward, target)
        .ok_or(EditError::Straddle(expiry))?;
    let by = after - smile.atm(forward);
    Ok(Edit::Atm { expiry, by })
}

/// The edit that fits an expiry's curve to its quotes.
fn fitted(file: &VolFile, surface: &Surface, expiry: usize, move_max: Option<f64>) -> Result<Edit, String> {
    let name = name_of(file, expiry);
    let quotes = file.expiries().get(expiry).map_or(&[][..], |e| &e.quotes);
    let (Some(smile), Some(forward)) = (surface.smile(expiry), surface.forward(expiry)) else {
        return Err(format!("the surface has no expiry {name}"));
    };
    if quotes.is_empty() {
        return Err(format!(
            "{name} has no quotes to fit to: write quotes = [[strike, volatility], ...]"
        ));
    }
    let guard = move_max.map(|most| (smile.atm(forward), most));
    let svi = file::fit(quotes, forward, smile.years(), guard).map_err(|e| format!("{name}: {e}"))?;
    Ok(Edit::Curve {
        expiry,
        curve: Curve::Svi(svi),
        reference: forward,
    })
}

/// Where the volatilities are.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct VolatilitySource {
    /// A file of volatilities (TOML, see examples/quoter/two-expiries.toml); its log is FILE.log
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The control socket of a running quoter, or its folder
    #[arg(short, long, value_name = "SOCKET")]
    socket: Option<PathBuf>,
}

/// The arguments of `tickwire vol`.
#[derive(Args, Debug)]
pub struct VolArgs {
    #[command(subcommand)]
    command: VolCommand,
}

/// How `tickwire vol show` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Tables for the terminal
    Text,
    /// One page for a browser, with a picture of the smiles
    Html,
    /// Tables for a document
    Markdown,
}

/// What `tickwire vol` can do.
#[derive(Subcommand, Debug)]
pub enum VolCommand {
    /// Tables of expiries and strikes, and the smiles as a picture
    #[command(after_help = "\
Examples:
  tickwire vol show -f examples/quoter/two-expiries.toml
  tickwire vol show -f examples/quoter/two-expiries.toml --expiry 2026-03 \\
      --strikes 21
  tickwire vol show -s $XDG_RUNTIME_DIR/tickwire-quoter --format html \\
      > smiles.html")]
    Show {
        /// Which volatilities.
        #[command(flatten)]
        place: VolatilitySource,
        /// This expiry alone, by its name or how it begins
        #[arg(long, value_name = "EXPIRY")]
        expiry: Option<String>,
        /// Strikes around the forward, where the file names none
        #[arg(long, default_value_t = 11, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=501))]
        strikes: u32,
        /// As tables, a page for a browser, or tables for a document
        #[arg(long, value_enum, default_value_t = Format::Text, value_name = "F")]
        format: Format,
    },
    /// Edits, one a line: the words given, or the lines of standard input; stops at the first that is refused
    #[command(after_help = edit_help())]
    Edit {
        /// Which volatilities.
        #[command(flatten)]
        place: VolatilitySource,
        /// Edits that go further than one edit may (`[edits]` of the file) are meant, and so is what is cut
        /// to the range of volatilities
        #[arg(long)]
        force: bool,
        /// Who edits, for the log; $USER by default
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// One edit
        #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Takes the last edit back; the file has the bytes that it had before
    Undo {
        /// Which volatilities.
        #[command(flatten)]
        place: VolatilitySource,
        /// Who edits, for the log; $USER by default
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
    },
    /// Fits the curve of an expiry to the quotes in its file
    Fit {
        /// Which volatilities.
        #[command(flatten)]
        place: VolatilitySource,
        /// Its name, or how it begins
        #[arg(value_name = "EXPIRY")]
        expiry: String,
        /// Refused when the volatility at the money would move further (0.01 is one percent)
        #[arg(long, value_name = "VOL")]
        max_move: Option<f64>,
        /// A fit that goes further than one edit may (`[edits]` of the file) is meant
        #[arg(long)]
        force: bool,
        /// Who edits, for the log; $USER by default
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
    },
    /// Who edited what and when
    Log {
        /// The file of volatilities; its log is FILE.log
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// The last lines only
        #[arg(short, value_name = "N")]
        number: Option<usize>,
    },
}

fn edit_help() -> String {
    format!(
        "Edits; EXPIRY is the name of one, or how it begins; ± is + or -, and the amount is added:\n{}
Examples:
  tickwire vol edit -f vol.toml atm 2026-03-20 +0.005
  tickwire vol edit -s $XDG_RUNTIME_DIR/tickwire-quoter straddle 2026-03-20 \\
      +1.5 linked
  tickwire vol edit -f vol.toml < morning.txt
  tickwire vol edit -f vol.toml --force atm 2026-03-20 +0.05

An edit that moves a volatility or a forward further than [edits] of the file allows (two percent, one percent), or is cut to the \
range of volatilities, is refused and says what it would have done; --force says that it is meant.

Exit codes: 0 done, 1 refused (everything is as it was), 2 wrong command line or file, 3 the system refused, 4 no quoter answers.",
        line::help()
    )
}

/// The whole command.
pub fn run(args: &VolArgs) -> Result<(), Failure> {
    match &args.command {
        VolCommand::Show {
            place,
            expiry,
            strikes,
            format,
        } => show_all(place, expiry.as_deref(), *strikes, *format)?,
        VolCommand::Edit {
            place,
            who,
            force,
            words,
        } => {
            // Behind the words it is one of them.
            let (words, is_last) = match words.split_last() {
                Some((last, words)) if last == "--force" => (words, true),
                _ => (&words[..], false),
            };
            let by = By {
                who: author(who.as_deref()),
                is_forced: *force || is_last,
            };
            if words.is_empty() {
                let lines = std::io::stdin().lock().lines();
                for (number, line) in lines.enumerate() {
                    let line = line.map_err(|e| Failure::system(format!("cannot read the edits: {e}")))?;
                    let text = line.split('#').next().unwrap_or_default();
                    if !text.trim().is_empty() {
                        let said = tell(place, text.trim(), &by);
                        println!("{}", said.map_err(|f| at_line(f, number + 1))?);
                    }
                }
            } else {
                println!("{}", tell(place, &words.join(" "), &by)?);
            }
        }
        VolCommand::Undo { place, who } => {
            println!(
                "{}",
                tell(place, "undo", &author(who.as_deref()).as_str().into())?
            );
        }
        VolCommand::Fit {
            place,
            expiry,
            max_move,
            force,
            who,
        } => {
            let most = max_move.map_or(String::new(), |most| format!(" max-move {most}"));
            let line = format!("fit {expiry}{most}");
            let by = By {
                who: author(who.as_deref()),
                is_forced: *force,
            };
            println!("{}", tell(place, &line, &by)?);
        }
        VolCommand::Log { file, number } => {
            print!(
                "{}",
                log_table(file, *number)?.to_text(tickwire_console::terminal::width())
            )
        }
    }
    Ok(())
}

fn at_line(failure: Failure, number: usize) -> Failure {
    Failure {
        message: format!("line {number}: {}", failure.message),
        ..failure
    }
}

fn author(who: Option<&str>) -> String {
    // What the system says: a variable of the environment may say anything.
    let user = || {
        let own = Peer::ourselves();
        own.name.unwrap_or_else(|| format!("uid {}", own.uid))
    };
    who.map_or_else(user, str::to_string)
}

/// Says a line to a file or to a quoter; the answer.
fn tell(place: &VolatilitySource, line: &str, by: &By) -> Result<String, Failure> {
    if let Some(path) = &place.file {
        let now = now();
        let is_undo = line.split_whitespace().eq(["undo"]);
        if is_undo {
            return undo_in_file(path, &by.who, now);
        }
        let (mut file, mut surface) = file::load_at(path, now)?;
        return command(&mut file, &mut surface, line, by.clone(), now)
            .map_err(|says| Failure::check(format!("{}: {says}", path.display())));
    }
    let socket = place.socket.as_deref().unwrap_or(Path::new(""));
    let mut request = json!({ "do": "vol", "line": line, "who": (by.who) });
    if by.is_forced {
        request["force"] = true.into();
    }
    let answer = client::ask_quoter(socket, &request).map_err(|failure| match failure.code {
        // The quoter's own sentence.
        Code::Usage => Failure::check(failure.message),
        _ => failure,
    })?;
    Ok(answer["says"].as_str().unwrap_or_default().to_string())
}

fn show_all(
    place: &VolatilitySource,
    expiry: Option<&str>,
    strikes: u32,
    format: Format,
) -> Result<(), Failure> {
    let now = now();
    let (file, surface) = match &place.file {
        Some(path) => load(path)?,
        None => {
            let text = tell(place, "file", &"".into())?;
            let (mut file, surface) = VolFile::parse(text, now)
                .map_err(|e| Failure::check(format!("the quoter's volatilities: {e}")))?;
            file.log.version = tell(place, "version", &"".into())?.parse().unwrap_or(0);
            (file, surface)
        }
    };
    let only = match expiry {
        None => None,
        Some(name) => Some(file.place(name).ok_or_else(|| {
            let names: Vec<&str> = file.expiries().iter().map(|e| &e.name[..]).collect();
            Failure::config(format!("no expiry {name:?}; there are {}", names.join(", ")))
        })?),
    };
    let report = show::report(&file, &surface, only, strikes, now);
    match format {
        Format::Text => print!("{}", report.to_text(tickwire_console::terminal::width())),
        Format::Html => print!("{}", report.to_html()),
        Format::Markdown => print!("{}", report.to_markdown()),
    }
    Ok(())
}

fn log_table(file: &Path, number: Option<usize>) -> Result<Table, Failure> {
    let records = log::read(file)?;
    let first = number.map_or(0, |n| records.len().saturating_sub(n));
    let mut table = Table::new("Edits", &["", "version", "at the money before", "after"]);
    for record in &records[first..] {
        let (before, after) = record
            .atm
            .as_ref()
            .map_or_else(Default::default, |(_, before, after)| {
                (
                    format!("{:.4} %", 100.0 * before),
                    format!("{:.4} %", 100.0 * after),
                )
            });
        let undoes = record
            .undoes
            .map_or(String::new(), |v| format!(" (of version {v})"));
        let what = format!("{}  {}  {}{undoes}", record.at, record.who, record.edit);
        table = table.row([what, record.version.to_string(), before, after]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
