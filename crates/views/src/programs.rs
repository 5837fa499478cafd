//! Programs beside the daemon, for its page: traders, quoters, strategies and FIX engines of this machine.
//!
//! ```text
//! page asked for ─► thread of its own ─┬─► control socket of each folder (status) ─► one line of JSON ─► page
//!                                      └─► region of each folder (FIX sessions) ──►┘
//! ```
//! Who serves the page never waits for them. The thread asks at most once a second, and only while somebody
//! looks; a program that does not answer is waited for for [`PATIENCE`], and is said to be silent. What was
//! said longer ago, before anybody looked or while others hung, has its age.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwire_console::failure::Failure;
use tickwire_control::client;
use tickwire_runtime::places;
use tickwire_runtime::shared::REGION_FILE;

use super::region::{Detail, Watch};
use super::top;

/// How long a program may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(1);
/// From one round of questions to the next.
const ROUND: Duration = Duration::from_secs(1);

/// What is known of them. Dropped, the thread ends by itself.
#[derive(Debug)]
pub(crate) struct Programs {
    said: Arc<Mutex<Vec<Said>>>,
    /// Has the thread ask again; room for one word, since one round answers all who wait.
    looked_at: SyncSender<()>,
}

/// What a program said last, and when.
type Said = Option<(Instant, Value)>;

impl Programs {
    /// Those of these folders; `None` where there are none.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub(crate) fn of(folders: &[PathBuf]) -> Result<Option<Programs>, Failure> {
        if folders.is_empty() {
            return Ok(None);
        }
        let mut programs: Vec<Program> = folders.iter().map(|folder| Program::of(folder)).collect();
        let said = Arc::new(Mutex::new(vec![None; programs.len()]));
        let (looked_at, looks) = sync_channel(1);
        let shared = said.clone();
        tickwire_runtime::affinity::beside("page", move || ask(&mut programs, &looks, &shared))
            .map_err(|e| Failure::system(format!("no thread to ask other programs by: {e}")))?;
        Ok(Some(Programs { said, looked_at }))
    }

    /// What they said last, a list on one line, each with how long ago that was (`age_s`, seconds), and asks
    /// anew. Who has said nothing yet is not in it: the first who looks finds an empty list.
    pub(crate) fn json(&self) -> String {
        // There is room for one word: where one waits, it asks for this look, too.
        let _ = self.looked_at.try_send(());
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let aged = said.iter().flatten().map(|(at, said)| {
            let mut said = said.clone();
            said["age_s"] = at.elapsed().as_secs().into();
            said
        });
        Value::from_iter(aged).to_string()
    }
}

/// A round whenever somebody looks, until nobody can any more.
fn ask(programs: &mut [Program], looks: &Receiver<()>, said: &Mutex<Vec<Said>>) {
    while looks.recv().is_ok() {
        let begun = Instant::now();
        for (at, program) in programs.iter_mut().enumerate() {
            let status = program.status();
            said.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some((Instant::now(), status));
        }
        std::thread::sleep(ROUND.saturating_sub(begun.elapsed()));
    }
}

#[derive(Debug)]
struct Program {
    folder: PathBuf,
    region: Watch,
}

impl Program {
    fn of(folder: &Path) -> Program {
        let folder = places::expand(folder);
        let region = Watch::new(&folder);
        Program { folder, region }
    }

    /// `folder` and `status` of a control socket, or `sources` of a region, or why there is neither.
    fn status(&mut self) -> Value {
        let mut status = json!({ "folder": self.folder.display().to_string() });
        let has_region = self.folder.join(REGION_FILE).exists();
        if has_region {
            match self.region.look() {
                Ok(region) => {
                    let reading = region.reading(Detail::Kinds);
                    let whole = top::json(&reading, None, &Err(String::new()));
                    for part in ["daemon", "sources"] {
                        status[part] = whole[part].clone();
                    }
                }
                Err(absence) => status["error"] = absence.sentence().into(),
            }
        } else {
            match client::status(&self.folder, PATIENCE) {
                Ok(said) => status["status"] = said,
                Err(failure) => status["error"] = failure.message.into(),
            }
        }
        status
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::region::fixture::{Fixture, NOW};
    use super::*;
    use tickwire_control::access::AccessSection;
    use tickwire_control::socket::Answer;
    use tickwire_control::thread::ControlThread;
    use tickwire_runtime::users::Peer;

    /// One that says always the same.
    pub(crate) struct Trader;

    impl Answer for Trader {
        type Request = Value;
        const WHO: &'static str = "a trader";

        fn answer(&mut self, request: Value, _: &Peer) -> Result<Value, String> {
            assert_eq!(request, json!({ "do": "status" }));
            Ok(json!({ "state": "trading", "open": 3, "sending": { "no_room": 1_234 } }))
        }
    }

    /// What is said when every folder has been asked once.
    fn first_round(programs: &Programs, count: usize) -> Vec<Value> {
        loop {
            let said: Value = serde_json::from_str(&programs.json()).expect("one line of JSON");
            match said.as_array() {
                Some(list) if list.len() == count => return list.clone(),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    #[test]
    fn a_trader_a_region_and_nobody_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("tickwire-programs-{}", std::process::id()));
        let thread = ControlThread::open(&folder, &AccessSection::default(), Trader).expect("it listens");
        let mut fixture = Fixture::new("programs");
        fixture.write(NOW);
        fixture.beat();
        let nobody = folder.join("nobody");
        let folders = [folder.clone(), fixture.folder.clone(), nobody];
        assert!(Programs::of(&[]).expect("no thread").is_none());
        let programs = Programs::of(&folders).expect("a thread").expect("three");
        let said = first_round(&programs, folders.len());
        assert_eq!(said[0]["status"]["open"], 3);
        assert!(said.iter().all(|said| said["age_s"].is_u64()), "{said:?}");
        assert!(said[1]["daemon"]["pid"].is_number(), "{}", said[1]);
        assert_eq!(said[1]["sources"][0]["source"], "nasdaq 1");
        let error = said[2]["error"].as_str().expect("nobody is there");
        assert!(error.contains("nobody"), "{error}");
        thread.end();
        std::fs::remove_dir_all(folder).expect("it is ours");
    }

    /// A program that hangs is asked and not waited for longer than this, and the others are asked all the
    /// same.
    #[test]
    fn a_program_that_hangs_is_silent_and_holds_nobody_up() {
        let folder = std::env::temp_dir().join(format!("tickwire-hangs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let listener = std::os::unix::net::UnixListener::bind(folder.join("control")).expect("it listens");
        let mut fixture = Fixture::new("hangs");
        fixture.write(NOW);
        fixture.beat();
        let folders = [folder.clone(), fixture.folder.clone()];
        let programs = Programs::of(&folders).expect("a thread").expect("two");
        let said = first_round(&programs, folders.len());
        assert!(
            said[0]["error"]
                .as_str()
                .expect("it says nothing")
                .contains("did not answer within 1 s"),
            "{}",
            said[0]
        );
        assert_eq!(said[1]["sources"][0]["source"], "nasdaq 1");
        drop(listener);
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
