//! Stores of sessions: opened for a session, brought to the disk by a thread of their own, looked at by `tickwire fix store`.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tickwire_fix::{LastingStore, MemoryStore, Store, Words};
use tickwire_lab::Table;
use tickwire_runtime::stored::{StoredWords, Syncer};

use super::engine::say;
use super::settings::{Setup, StoreSetup, Wanted};
use crate::cli::FixStoreArgs;
use crate::failure::Failure;

/// Messages of the newest that can be found for a resend.
const MESSAGES: usize = 1 << 16;

/// A file as the memory of a store.
#[derive(Debug)]
struct FileWords(StoredWords);

impl Words for FileWords {
    fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

/// What tells a store from another session's: version and both identities.
fn identity(setup: &Setup) -> String {
    let c = &setup.config;
    let name = format!("{} {} {}", c.version.name(), c.sender, c.target);
    match c.qualifier.is_empty() {
        true => name,
        false => format!("{name} {}", c.qualifier),
    }
}

/// The store of a session, as configured; what was found is said unless it is to be quiet.
pub(super) fn open(setup: &Setup, is_quiet: bool) -> Result<Box<dyn Store + Send>, Failure> {
    let c = &setup.config;
    let Some(file) = &setup.store else {
        return Ok(Box::new(MemoryStore::new(c.store_messages, c.store_bytes)));
    };
    let (store, syncer) = open_file(file, &identity(setup))?;
    let recovery = store.recovery();
    if !is_quiet {
        say(format_args!(
            "store {}: next out {}, next in {}, {} messages can be sent again{}",
            file.path.display(),
            store.next_out(),
            store.next_in(),
            recovery.messages,
            match recovery.cut_words {
                0 => String::new(),
                n => format!("; {} bytes behind a damaged record were cut", n * 8),
            }
        ));
    }
    if let (Some(every_ms), Some(syncer)) = (file.sync_every_ms, syncer) {
        let path = file.path.display().to_string();
        let run = move || {
            loop {
                std::thread::sleep(Duration::from_millis(every_ms));
                if let Err(e) = syncer.sync() {
                    eprintln!("warning: {path} could not be brought to the disk: {e}");
                }
            }
        };
        std::thread::Builder::new()
            .name("fix-store-sync".into())
            .spawn(run)
            .map_err(|e| Failure::system(format!("no thread to bring stores to the disk: {e}")))?;
    }
    Ok(Box::new(store))
}

/// The store of a session that no QuickFIX file speaks of: `bytes` large when it is new.
pub(crate) fn lasting(path: &Path, bytes: usize, identity: &str) -> Result<Box<dyn Store + Send>, Failure> {
    let file = StoreSetup {
        path: path.to_path_buf(),
        bytes,
        sync_every_ms: None,
    };
    let (store, _) = open_file(&file, identity)?;
    Ok(Box::new(store))
}

fn open_file(
    file: &StoreSetup,
    identity: &str,
) -> Result<(LastingStore<FileWords>, Option<Syncer>), Failure> {
    let words = StoredWords::open(&file.path, file.bytes).map_err(|e| Failure::system(e.to_string()))?;
    let syncer = words.syncer().ok();
    let store = LastingStore::open(FileWords(words), identity.as_bytes(), MESSAGES).map_err(|e| {
        Failure::config(format!(
            "{} {e}; move it away or name another one",
            file.path.display()
        ))
    })?;
    Ok((store, syncer))
}

/// `tickwire fix store`: what the stores of a configuration hold, and their numbers set anew.
pub(super) fn run(args: &FixStoreArgs) -> Result<(), Failure> {
    let setups = super::settings::load_with(&args.config, Wanted::All, args.allow_unknown)?;
    let is_wanted = |setup: &&Setup| {
        args.session
            .as_ref()
            .is_none_or(|s| setup.config.target.as_str() == s)
    };
    let chosen: Vec<&Setup> = setups.iter().filter(is_wanted).collect();
    let sets = args.next_out.is_some() || args.next_in.is_some();
    if chosen.is_empty() {
        return Err(Failure::config("no session of the file has this TargetCompID"));
    }
    if sets && chosen.len() > 1 {
        return Err(Failure::config(
            "numbers are set for one session: name it with --session TARGETCOMPID",
        ));
    }
    let mut table = Table::new(
        "stores",
        &["session", "file", "next out", "next in", "kept", "cut bytes"],
    );
    for setup in chosen {
        let Some(file) = setup.store.as_ref().filter(|file| Path::exists(&file.path)) else {
            let where_to = setup.store.as_ref().map_or("in memory only".into(), |f| {
                format!("{} is not there yet", f.path.display())
            });
            if sets {
                return Err(Failure::config(format!("{}: {where_to}", identity(setup))));
            }
            table = table.row([
                identity(setup),
                where_to,
                "-".into(),
                "-".into(),
                "-".into(),
                "-".into(),
            ]);
            continue;
        };
        let (mut store, _) = open_file(file, &identity(setup))?;
        if let Some(seq) = args.next_out {
            store.set_next_out(seq);
        }
        if let Some(seq) = args.next_in {
            store.set_next_in(seq);
        }
        table = table.row([
            identity(setup),
            file.path.display().to_string(),
            store.next_out().to_string(),
            store.next_in().to_string(),
            store.recovery().messages.to_string(),
            (store.recovery().cut_words * 8).to_string(),
        ]);
    }
    print!("{}", table.to_text());
    Ok(())
}
