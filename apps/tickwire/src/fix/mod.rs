//! `tickwire fix`: FIX sessions of any version, configured by QuickFIX's own files.
//!
//! [`engine`] is the one loop around sessions; [`echo`] and [`driver`] decide what they say; [`settings`] reads what QuickFIX's
//! files say.

mod bench;
mod cfg;
mod driver;
mod dropcopy;
mod echo;
mod engine;
pub(crate) mod executions;
mod hours;
mod log;
mod message;
mod msglog;
pub(crate) mod names;
mod probes;
mod quickfix;
pub(crate) mod rig;
mod script;
mod secure;
mod settings;
mod stats;
mod store;
mod told;
mod users;

use std::path::Path;
use std::sync::Arc;

use tickwire_fix::Role;
use tickwire_fix::dict::{standard_names, standard_xml};
use tickwire_runtime::signal::StopFlag;

use crate::cli::{FixArgs, FixCommand, FixSessionArgs};
use driver::Driver;
use echo::Echo;
use engine::{Application, Engine};
use settings::{Setup, Wanted};
use stats::Shown;
pub(crate) use store::lasting;
use tickwire_console::failure::Failure;

pub(crate) fn run(args: &FixArgs, stop: &StopFlag) -> Result<(), Failure> {
    match &args.command {
        FixCommand::Acceptor(args) => acceptor(args, stop),
        FixCommand::Initiator(args) => initiator(args, stop),
        FixCommand::Store(args) => store::run(args),
        FixCommand::Settings(args) => {
            quickfix::show(&args.names);
            Ok(())
        }
        FixCommand::Dictionary(args) => dictionary(args.version.as_deref()),
        FixCommand::Bench(args) => bench::run(args, stop),
        FixCommand::Log(args) => log::run(args, stop),
        FixCommand::Trader(args) => rig::trade(args, stop),
    }
}

/// Prints a dictionary that is built in, or their names.
fn dictionary(version: Option<&str>) -> Result<(), Failure> {
    let names: Vec<&str> = standard_names().collect();
    let Some(version) = version else {
        println!("{}", names.join("\n"));
        return Ok(());
    };
    let xml = standard_xml(&version.to_ascii_uppercase()).ok_or_else(|| {
        Failure::config(format!(
            "{version} is no version whose dictionary is built in; give one of {}",
            names.join(", ")
        ))
    })?;
    println!("{}", xml.trim_end());
    Ok(())
}

fn acceptor(args: &FixSessionArgs, stop: &StopFlag) -> Result<(), Failure> {
    let setups = settings::load_with(&args.config, Wanted::Only(Role::Acceptor), args.allow_unknown)?;
    let views = Views::new(args, &setups)?;
    match &args.script {
        Some(script) => play(setups, script, views, stop),
        None => {
            let echo = |engine: &Engine| Ok(Echo::new(engine.table.sessions()));
            on_threads(setups, echo, views, stop)
        }
    }
}

/// How a program's sessions are looked at.
#[derive(Clone)]
struct Views {
    /// Reports at the end.
    has_stats: bool,
    shown: Option<Arc<Shown>>,
}

impl Views {
    fn new(args: &FixSessionArgs, setups: &[Setup]) -> Result<Views, Failure> {
        let sessions: usize = setups.iter().map(|setup| setup.sessions_max()).sum();
        // And one a thread for who never came to belong to a session.
        let threads: std::collections::BTreeSet<u32> = setups.iter().map(|s| s.thread.number).collect();
        let rows = sessions + threads.len();
        let shown = args.folder.as_ref();
        let shown = shown.map(|folder| Shown::new(folder, rows, args.metrics).map(Arc::new));
        Ok(Views {
            has_stats: args.stats,
            shown: shown.transpose()?,
        })
    }

    fn engine(&self, setups: Vec<Setup>) -> Result<Engine, Failure> {
        Ok(Engine::new(setups, self.shown.clone())?.with_stats(self.has_stats))
    }
}

fn initiator(args: &FixSessionArgs, stop: &StopFlag) -> Result<(), Failure> {
    let setups = settings::load_with(&args.config, Wanted::Only(Role::Initiator), args.allow_unknown)?;
    let views = Views::new(args, &setups)?;
    match &args.script {
        Some(script) => play(setups, script, views, stop),
        None => {
            one_thread(&setups)?;
            let mut engine = views.engine(setups)?;
            let mut driver = Driver::prompt(engine.table.sessions(), engine.waker())?;
            engine.run(&mut driver, stop)
        }
    }
}

/// Plays a script; its failures are known before anything is opened.
fn play(setups: Vec<Setup>, script: &Path, views: Views, stop: &StopFlag) -> Result<(), Failure> {
    one_thread(&setups)?;
    let sessions = setups.iter().filter(|setup| setup.template.is_none()).count();
    let mut driver = Driver::script(script, sessions)?;
    views.engine(setups)?.run(&mut driver, stop)
}

fn one_thread(setups: &[Setup]) -> Result<(), Failure> {
    let number = |s: &Setup| s.thread.number;
    match setups.windows(2).any(|pair| number(&pair[0]) != number(&pair[1])) {
        true => Err(Failure::config(
            "steps are for sessions of one thread: give all of them the same Thread number",
        )),
        false => Ok(()),
    }
}

/// Runs sessions on the threads that they ask for, each thread with an application of its own. When one ends, all do.
fn on_threads<A: Application + Send>(
    setups: Vec<Setup>,
    application: impl Fn(&Engine) -> Result<A, Failure>,
    views: Views,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let mut groups: Vec<Vec<Setup>> = Vec::new();
    for setup in setups {
        match groups
            .iter_mut()
            .find(|g| g[0].thread.number == setup.thread.number)
        {
            Some(group) => group.push(setup),
            None => groups.push(vec![setup]),
        }
    }
    let mut engines = Vec::new();
    for group in groups {
        let engine = views.engine(group)?;
        let app = application(&engine)?;
        engines.push((engine, app));
    }
    let Some((mut first, mut app)) = engines.pop() else {
        return Ok(());
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = engines
            .into_iter()
            .map(|(mut engine, mut app)| scope.spawn(move || engine.run(&mut app, stop)))
            .collect();
        let own = first.run(&mut app, stop);
        let others = others.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::system("a thread of sessions has panicked")))
        });
        others.collect::<Result<Vec<()>, Failure>>().and(own)
    })
}
