//! One command of this program over many files and values, as jobs that any engine can run: `tickwire jobs`.
//!
//! ```text
//! command, files, values ─► [`plan`] ─► jobs, JSON lines ─► a worker, anywhere ─► [`run`] ─► the job's file
//! ```
//! A job is a command line of this program with one file that it leaves behind. It is done when that file is
//! there, which it is only when it is whole: a job that was killed is run again, one that is done is not, and
//! of two workers with the same job one waits for the other. The file's name has the job's identity in it,
//! which follows from the command, the file's path, length and time: a capture that has changed is another
//! job.
//!
//! ```
//! use tickwire::jobs::{Job, Template, plan};
//!
//! let folder = std::env::temp_dir().join(format!("tickwire-jobs-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let days = ["monday.pcap", "tuesday.pcap"].map(|day| folder.join(day));
//! for day in &days {
//!     std::fs::write(day, "a capture")?;
//! }
//! let template = Template {
//!     words: ["export", "{file}", "--schema", "{schema}", "--out", "{out}.parquet"].map(String::from).to_vec(),
//!     sets: vec![("schema".into(), vec!["mbo".into(), "trades".into()])],
//!     folder: folder.join("tables"),
//! };
//! let jobs: Vec<Job> = plan(&template, &days)?;
//! assert_eq!(jobs.len(), 4);
//! assert!(jobs.iter().all(|job| !job.is_done() && job.out.extension() == Some("parquet".as_ref())));
//! // The same command over the same files is the same jobs.
//! assert_eq!(plan(&template, &days)?, jobs);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::{File, TryLockError};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tickwire_console::failure::Failure;
use tickwire_runtime::files::{self, Pending};
use tickwire_runtime::signal::StopFlag;

use crate::identity::{BEGIN, mixed};

/// Pause between two looks at a job that somebody else has under way.
const PAUSE: Duration = Duration::from_millis(50);
/// The folder of locks, in that of the results.
const LOCKS: &str = ".jobs";

/// `tickwire jobs`.
#[derive(clap::Subcommand, Debug)]
pub enum JobsCommand {
    /// Writes the jobs of a command over files, a JSON line each
    Plan(PlanArgs),
    /// Runs jobs, one after the other; those whose file is there are not run again
    Run(RunArgs),
}

/// The arguments of `tickwire jobs plan`.
#[derive(clap::Args, Debug)]
pub struct PlanArgs {
    /// The files: each is a job, or as many as there are combinations of values
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The folder of what the jobs leave behind
    #[arg(short, long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Values for {NAME} in the command: every combination is a job (repeatable)
    #[arg(long, value_name = "NAME=VALUE,…", value_parser = set)]
    pub set: Vec<(String, Vec<String>)>,
    /// The command, behind --: {file} is the file, {name} its name without endings, {out} what the job leaves
    /// behind, without its ending; where {out} does not stand, that is what the command prints
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The arguments of `tickwire jobs run`.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The jobs, a JSON line each; - is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    pub jobs: PathBuf,
}

fn set(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("give NAME=VALUE,… such as schema=mbo,trades")?;
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name(name) || ["file", "name", "out"].contains(&name) {
        return Err(format!("{name:?} cannot be a name of values here"));
    }
    Ok((name.to_owned(), values.split(',').map(str::to_owned).collect()))
}

/// What is to be done to every file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// The command's words, with `{file}`, `{name}`, `{out}` and names of `sets`.
    pub words: Vec<String>,
    /// Names with their values.
    pub sets: Vec<(String, Vec<String>)>,
    /// Where results go.
    pub folder: PathBuf,
}

/// One command line, and the file that it leaves behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The same for the same command over the same file as it is now.
    pub id: String,
    /// The words behind `tickwire`.
    pub argv: Vec<String>,
    /// What is there when the job is done.
    pub out: PathBuf,
    /// What is printed is the result, rather than a file that the command writes.
    pub prints: bool,
}

impl Job {
    /// Whether its file is there, which it is only when it is whole.
    pub fn is_done(&self) -> bool {
        self.out.exists()
    }
}

/// How a job went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was run now.
    Done,
    /// Its file was there.
    There,
    /// The command failed, or left no file.
    Failed,
}

/// What became of a job.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The job's identity.
    pub id: String,
    /// How it went.
    pub state: State,
    /// The command's exit code; `None` where it was not run, or died of a signal. 1 says of a recording that
    /// it has gaps or damage: the file is there, and says it as well.
    pub code: Option<i32>,
    /// How long it took, by the clock.
    pub seconds: f64,
    /// The file.
    pub out: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The last line that the command said.
    pub said: String,
}

/// Puts values in their places; a name that nothing is known of is an error.
fn filled(word: &str, values: &[(&str, &str)]) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, from)) = rest.split_once('{') {
        let Some((name, behind)) = from.split_once('}') else {
            break;
        };
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = values.iter().map(|(name, _)| format!("{{{name}}}")).collect();
            return Err(Failure::config(format!(
                "{{{name}}} stands for nothing here: {} do",
                known.join(", ")
            )));
        };
        out += before;
        out += value;
        rest = behind;
    }
    Ok(out + rest)
}

/// Every combination of values.
fn combinations(sets: &[(String, Vec<String>)]) -> Vec<Vec<(&str, &str)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in sets {
        let mut more = Vec::new();
        for one in &all {
            for value in values {
                let mut one: Vec<(&str, &str)> = one.clone();
                one.push((name, value));
                more.push(one);
            }
        }
        all = more;
    }
    all
}

/// The jobs of a command over files, in the order of the files.
///
/// # Errors
/// A file that cannot be looked at, or a command that no job can be made of.
pub fn plan(template: &Template, files: &[PathBuf]) -> Result<Vec<Job>, Failure> {
    if template.words.iter().any(|word| word == "--partition") {
        return Err(Failure::config(
            "a job leaves one file behind: leave --partition out, and let {file} and --set divide the work",
        ));
    }
    let named = |what: &str| template.words.iter().filter(|word| word.contains(what)).count();
    if named("{file}") == 0 {
        return Err(Failure::config(
            "the command has no {file}: it would be the same for every file",
        ));
    }
    if named("{out}") > 1 {
        return Err(Failure::config(
            "{out} can stand once: a job leaves one file behind",
        ));
    }
    let folder = std::path::absolute(&template.folder)
        .map_err(|e| Failure::system(format!("{}: {e}", template.folder.display())))?;
    let mut jobs = Vec::new();
    for file in files {
        let cannot = |e| Failure::system(format!("cannot read {}: {e}", file.display()));
        let path = std::path::absolute(file).map_err(cannot)?;
        let about = std::fs::metadata(&path).map_err(cannot)?;
        let changed = about
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let of_file = format!("{} {} {changed:?}", path.display(), about.len());
        let text = path.display().to_string();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
        let name = name
            .split('.')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("file");
        for values in combinations(&template.sets) {
            let mut id = mixed(BEGIN, of_file.as_bytes());
            for part in template
                .words
                .iter()
                .map(String::as_str)
                .chain(values.iter().flat_map(|v| [v.0, v.1]))
            {
                id = mixed(mixed(id, part.as_bytes()), &[0]);
            }
            let id = format!("{id:016x}");
            let base = folder.join(format!("{name}-{id}")).display().to_string();
            let mut known = vec![("file", text.as_str()), ("name", name), ("out", base.as_str())];
            known.extend(&values);
            let mut argv = Vec::new();
            let mut out = None;
            for word in &template.words {
                let word_filled = filled(word, &known)?;
                if word.contains("{out}") {
                    out = Some(PathBuf::from(&word_filled));
                }
                argv.push(word_filled);
            }
            let ending = if argv.iter().any(|word| word == "--json") {
                "json"
            } else {
                "txt"
            };
            jobs.push(Job {
                id,
                prints: out.is_none(),
                out: out.unwrap_or_else(|| PathBuf::from(format!("{base}.{ending}"))),
                argv,
            });
        }
    }
    Ok(jobs)
}

/// Holds a job for this process and the command that it runs, once nobody else has it; `None`: a signal came
/// first. The lock goes with the last of both, so that whoever runs the job again does not do so beside it.
fn hold(job: &Job, stop: &StopFlag) -> Result<Option<File>, Failure> {
    let folder = job.out.parent().unwrap_or(Path::new("."));
    let cannot = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| Failure::system(format!("{path}: {e}"))
    };
    files::create_folders(folder).map_err(cannot(folder))?;
    let locks = folder.join(LOCKS);
    files::create_folders(&locks).map_err(cannot(&locks))?;
    let path = locks.join(&job.id);
    let file = files::open_or_create(&path).map_err(cannot(&path))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if stop.is_set() => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(e)) => return Err(cannot(&path)(e)),
        }
    }
}

/// Runs a job with a program, unless its file is there. A job that somebody else has under way is waited for.
///
/// # Errors
/// The program cannot be started, a file cannot be made, or a signal came while the job was waited for. A
/// command that fails is an [`Outcome`].
pub fn run(job: &Job, program: &Path, stop: &StopFlag) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let Some(lock) = hold(job, stop)? else {
        return Err(Failure::interrupted(format!(
            "job {} is under way elsewhere",
            job.id
        )));
    };
    let outcome = |state: State, code: Option<i32>, said: String| Outcome {
        id: job.id.clone(),
        state,
        code,
        seconds: begun.elapsed().as_secs_f64(),
        bytes: std::fs::metadata(&job.out).map_or(0, |about| about.len()),
        out: job.out.clone(),
        said,
    };
    if job.is_done() {
        return Ok(outcome(State::There, None, String::new()));
    }
    let cannot = |e: std::io::Error| Failure::system(format!("{}: {e}", job.out.display()));
    let pending = match job.prints {
        true => Some(Pending::create(&job.out).map_err(cannot)?),
        false => None,
    };
    let stdout = match &pending {
        Some(pending) => Stdio::from(pending.file().map_err(cannot)?),
        None => Stdio::piped(),
    };
    let ran = Command::new(program)
        .args(&job.argv)
        // An empty file, whose lock the command holds as long as it runs.
        .stdin(Stdio::from(lock))
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| Failure::system(format!("{}: {e}", program.display())))?;
    let text = [ran.stderr, ran.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = text.iter().filter_map(|text| text.lines().next_back()).next();
    let said = said.unwrap_or_default().to_owned();
    let code = ran.status.code();
    let is_good = matches!(code, Some(0 | 1));
    if is_good && let Some(pending) = pending {
        pending.finish().map_err(cannot)?;
    }
    let state = match is_good && job.is_done() {
        true => State::Done,
        false => State::Failed,
    };
    Ok(outcome(state, code, said))
}

/// Runs `tickwire jobs`.
///
/// # Errors
/// A plan that cannot be made, jobs that cannot be read; behind the last job, that some failed.
pub fn command(command: &JobsCommand, stop: &StopFlag) -> Result<(), Failure> {
    match command {
        JobsCommand::Plan(args) => {
            let template = Template {
                words: args.command.clone(),
                sets: args.set.clone(),
                folder: args.out.clone(),
            };
            for job in plan(&template, &args.files)? {
                println!("{}", line(&job)?);
            }
            Ok(())
        }
        JobsCommand::Run(args) => run_all(&args.jobs, stop),
    }
}

fn line(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|e| Failure::system(e.to_string()))
}

fn run_all(jobs: &Path, stop: &StopFlag) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::system(format!("cannot read {}: {e}", jobs.display()));
    let text: Box<dyn BufRead> = match jobs.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::io::BufReader::new(File::open(jobs).map_err(cannot)?)),
    };
    let program = std::env::current_exe().map_err(cannot)?;
    let (mut all, mut failed) = (0_u64, 0_u64);
    for (number, text) in (1..).zip(text.lines()) {
        let text = text.map_err(cannot)?;
        if text.trim().is_empty() {
            continue;
        }
        let job: Job = serde_json::from_str(&text)
            .map_err(|e| Failure::config(format!("{}, line {number}: {e}", jobs.display())))?;
        if let Some(reason) = stop.reason() {
            return Err(Failure::interrupted(format!(
                "{reason}; the same command goes on with job {}",
                job.id
            )));
        }
        let outcome = run(&job, &program, stop)?;
        all += 1;
        failed += u64::from(outcome.state == State::Failed);
        println!("{}", line(&outcome)?);
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::check(format!(
            "{failed} of {all} jobs failed; what each said stands in its line"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_unknown_ones_are_named() {
        let known = [("file", "/a.pcap"), ("schema", "mbo")];
        let word = |text: &str| filled(text, &known).map_err(|failure| failure.message);
        assert_eq!(word("{file}.{schema}").as_deref(), Ok("/a.pcap.mbo"));
        assert_eq!(word("{file").as_deref(), Ok("{file"));
        assert!(word("{day}").is_err_and(|why| why.contains("{day}") && why.contains("{schema}")));
        let sets = [
            ("a".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ("b".to_owned(), vec!["3".to_owned()]),
        ];
        assert_eq!(
            combinations(&sets),
            [[("a", "1"), ("b", "3")], [("a", "2"), ("b", "3")]]
        );
        assert!(set("out=1").is_err() && set("edge").is_err() && set("edge=1,2").is_ok());
    }
}
