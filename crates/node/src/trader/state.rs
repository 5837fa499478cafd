//! What outlives a trader (`trader.state`), where it begins: the sessions with their numbers, what was traded
//! before, and who writes what will be.

use std::sync::Arc;

use tickwire_fix::{Session, SessionConfig};
use tickwire_market::{Nanos, SeqNo};
use tickwire_trading::strategy::{ExecutionId, Once};

use super::stop::Shared;
use super::{Routes, Rule};
use crate::hot::{EntrySession, OrderSession, session_in_memory};
use crate::link::Entry;
use crate::record::{FillsOf, Kept, Recorder};
use crate::session::Returning;
use crate::settings::TraderSection;
use tickwire_console::failure::Failure;
use tickwire_console::{note, warn};
use tickwire_venues::order_entry::OrderEntrySection;

/// A session before it is connected.
pub(super) struct Prepared {
    fix: EntrySession,
    once: Once,
    /// It has a state: what the venue said while nobody was there is heard of before anything is traded.
    is_kept: bool,
    /// A process before this one may have left orders open.
    awaits_rest: bool,
}

/// Makes the sessions, with the state of processes before this one where that is kept, and has the rule hold
/// what they traded; also the files for what will be.
pub(super) fn prepare<R: Rule>(
    sections: &[OrderEntrySection],
    routes: &Routes,
    trader: &TraderSection,
    rule: &mut R,
    is_child: bool,
) -> Result<(Vec<Prepared>, Vec<FillsOf>), Failure> {
    let (mut all, mut files) = (Vec::with_capacity(sections.len()), Vec::new());
    for (session, (section, name)) in sections.iter().zip(&routes.sessions).enumerate() {
        let config = super::session_config(section);
        let Some(folder) = &trader.state else {
            all.push(Prepared {
                fix: session_in_memory(config),
                once: Once::default(),
                is_kept: false,
                awaits_rest: false,
            });
            continue;
        };
        let identity = format!("{} {} {}", config.version.name(), config.sender, config.target);
        let kept = Kept::open(folder, name, &identity)?;
        if !is_child {
            note(format_args!("{}", kept.describe(name)));
        }
        let config = SessionConfig {
            // A venue may still have numbers of a session that nothing is known of here.
            reset_on_logon: kept.is_new(),
            ..config
        };
        let awaits_rest = kept.is_torn_off();
        let (file, recovered, store) = kept.split();
        rule.restore(session, &recovered.fills)?;
        let mut once = Once::default();
        if recovered.is_in_doubt {
            rule.kill();
            warn(format_args!(
                "ALERT: what was traded over session {name} is in doubt since a process before this one, and nobody has resumed since: \
                 the kill switch is on: compare with the venue (`tickwire reconcile`), then `resume`"
            ));
        }
        for fill in recovered.since_numbers_began() {
            once.remember(ExecutionId::new(fill.exec.as_bytes()).unwrap_or(ExecutionId::NONE));
        }
        once.set_booked(SeqNo(recovered.last_fill()));
        all.push(Prepared {
            fix: Session::with_store(config, store),
            once,
            is_kept: true,
            awaits_rest,
        });
        files.push(file);
    }
    Ok((all, files))
}

impl Prepared {
    /// The session over a connection that was just made.
    pub(super) fn connected(self, now: Nanos, entry: Entry) -> OrderSession<Entry> {
        let mut session = OrderSession::new(self.fix, entry);
        session.once = self.once;
        session.returning = self.is_kept.then_some(Returning::CatchingUp);
        session.awaits_rest = self.awaits_rest;
        session.fix.handle_connected(now);
        session
    }
}

/// Begins to write what is traded over the sessions whose files these are, all of them or none.
pub(super) fn record<R: Rule>(
    files: Vec<FillsOf>,
    rule: &R,
    sessions: &mut [OrderSession<Entry>],
    shared: &Arc<Shared>,
) -> Result<Option<Recorder>, Failure> {
    if files.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = (0..rule.count()).map(|which| rule.own_name(which)).collect();
    let shared = shared.clone();
    let (recorder, records) = Recorder::start(files, &names, move || shared.kill())?;
    for (session, record) in sessions.iter_mut().zip(records) {
        session.record = Some(record);
    }
    Ok(Some(recorder))
}
