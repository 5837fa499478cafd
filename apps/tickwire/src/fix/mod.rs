//! `tickwire fix`: FIX sessions of any version, configured by QuickFIX's own files.
//!
//! The engine is [`tickwire_fixengine`]; here are its command line, what is printed, and what its sessions
//! say: [`echo`] and [`driver`].

mod driver;
mod echo;
mod log;
mod observer;
mod script;
mod stats;
mod store;

use std::path::Path;
use std::sync::Arc;

use tickwire_console::failure::Failure;
use tickwire_console::say;
use tickwire_fix::Role;
use tickwire_fix::dict::{standard_names, standard_xml};
use tickwire_fixengine::settings::{self, Setup, Wanted};
use tickwire_fixengine::{Ended, Engine, Error, Handler, quickfix};
use tickwire_runtime::signal::{ReportFlag, StopFlag};

use crate::cli::{FixArgs, FixCommand, FixSessionArgs};
use driver::Driver;
use echo::Echo;
use observer::Watched;
use stats::Shown;
use tickwire_node::voice::{AtStart, failure};

/// How a loop ended: by a signal is a failure.
fn ended(outcome: Result<Ended, Error>) -> Result<(), Failure> {
    match outcome.map_err(failure)? {
        Ended::ByHandler => Ok(()),
        Ended::Stopped(reason) => Err(Failure::interrupted(format!(
            "{reason}; every session was logged out"
        ))),
    }
}

pub(crate) fn run(args: &FixArgs, stop: &StopFlag) -> Result<(), Failure> {
    match &args.command {
        FixCommand::Acceptor(args) => acceptor(args, stop),
        FixCommand::Initiator(args) => initiator(args, stop),
        FixCommand::Store(args) => store::run(args),
        FixCommand::Settings(args) => {
            show_settings(&args.names);
            Ok(())
        }
        FixCommand::Dictionary(args) => dictionary(args.version.as_deref()),
        FixCommand::Log(args) => log::run(args, stop),
        FixCommand::Bench(_) | FixCommand::Trader(_) => Err(crate::beside::lab()),
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

/// `tickwire fix settings`.
fn show_settings(wanted: &[String]) {
    let lower = |text: &str| text.to_ascii_lowercase();
    let is_wanted = |known: &&quickfix::Known| {
        wanted.is_empty() || wanted.iter().any(|part| lower(known.name).contains(&lower(part)))
    };
    for known in quickfix::KNOWN.iter().filter(is_wanted) {
        let (does, text) = known.does.said();
        say(format_args!(
            "{} ({}): {does}: {text}",
            known.name,
            quickfix::whose(known.engines)
        ));
    }
}

fn acceptor(args: &FixSessionArgs, stop: &StopFlag) -> Result<(), Failure> {
    let setups = of_file(args, Role::Acceptor)?;
    let views = Views::new(args, &setups)?;
    match &args.script {
        Some(script) => play(setups, script, views, stop),
        None => {
            let echo = |engine: &Engine| Ok(Echo::new(engine.table.sessions()));
            on_threads(setups, echo, views, stop)
        }
    }
}

fn of_file(args: &FixSessionArgs, role: Role) -> Result<Vec<Setup>, Failure> {
    settings::load_with(&args.config, Wanted::Only(role), args.allow_unknown, &AtStart).map_err(failure)
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
        let flag = ReportFlag::install().map_err(|e| Failure::system(e.to_string()))?;
        let observer = Watched {
            shown: self.shown.clone(),
        };
        let engine = Engine::new(setups, Arc::new(observer)).map_err(failure)?;
        Ok(engine.with_report(flag))
    }

    /// Runs sessions to their end, and reports what they have done if that is wanted.
    fn run<A: Handler>(&self, engine: &mut Engine, app: &mut A, stop: &StopFlag) -> Result<(), Failure> {
        let outcome = engine.run(app, stop);
        if self.has_stats && outcome.is_ok() {
            say(format_args!("{}", stats::text(&engine.report())));
        }
        ended(outcome)
    }
}

fn initiator(args: &FixSessionArgs, stop: &StopFlag) -> Result<(), Failure> {
    let setups = of_file(args, Role::Initiator)?;
    let views = Views::new(args, &setups)?;
    match &args.script {
        Some(script) => play(setups, script, views, stop),
        None => {
            one_thread(&setups)?;
            let mut engine = views.engine(setups)?;
            let mut driver = Driver::prompt(engine.table.sessions(), engine.waker())?;
            views.run(&mut engine, &mut driver, stop)
        }
    }
}

/// Plays a script; its failures are known before anything is opened.
fn play(setups: Vec<Setup>, script: &Path, views: Views, stop: &StopFlag) -> Result<(), Failure> {
    one_thread(&setups)?;
    let sessions = setups.iter().filter(|setup| setup.template.is_none()).count();
    let mut driver = Driver::script(script, sessions)?;
    views.run(&mut views.engine(setups)?, &mut driver, stop)
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

/// Runs sessions on the threads that they ask for, each thread with an application of its own. When one ends,
/// all do.
fn on_threads<A: Handler + Send>(
    setups: Vec<Setup>,
    application: impl Fn(&Engine) -> Result<A, Failure>,
    views: Views,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let mut engines = Vec::new();
    for group in settings::by_thread(setups) {
        let engine = views.engine(group)?;
        let app = application(&engine)?;
        engines.push((engine, app));
    }
    let Some((mut first, mut app)) = engines.pop() else {
        return Ok(());
    };
    let views = &views;
    std::thread::scope(|scope| {
        let others: Vec<_> = engines
            .into_iter()
            .map(|(mut engine, mut app)| scope.spawn(move || views.run(&mut engine, &mut app, stop)))
            .collect();
        let own = views.run(&mut first, &mut app, stop);
        let others = others.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::system("a thread of sessions has panicked")))
        });
        others.collect::<Result<Vec<()>, Failure>>().and(own)
    })
}
