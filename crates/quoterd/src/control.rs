//! The operator's side of a running quoter: the control socket takes edits of volatilities, pulls,
//! resumptions and heartbeats, and says how things are. A thread of its own, which shares words with the one
//! that quotes and a channel with the one that prices.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tickwire_runtime::users::Peer;

use super::pricing::{Ask, Shared, Wish};
use tickwire_console::failure::Failure;
use tickwire_control::access::AccessSection;
use tickwire_control::client;
use tickwire_control::socket::Answer;
use tickwire_control::thread::ControlThread;
use tickwire_desk::risk::Format;
use tickwire_desk::vol::By;
use tickwire_node::controls::ControlsSection;

/// How long an edit may take: a surface is checked and files are written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens in a folder, which is made if it is not there.
pub(super) fn open(
    folder: &Path,
    access: &AccessSection,
    shared: Arc<Shared>,
    asks: Sender<Ask>,
    controls: ControlsSection,
) -> Result<ControlThread, Failure> {
    ControlThread::open(
        folder,
        access,
        OperatorControl {
            shared,
            asks,
            controls,
        },
    )
}

/// What an operator tells a quoter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum QuoterWord {
    /// State and reason, the underlying's price, mass quotes sent, contracts held
    Status,
    /// Take every quote away, until `resume`: the kill switch
    Pull,
    /// Quote again
    Resume,
    /// The operator is there (limits.heartbeat_ms, eye.armed_ms)
    Heartbeat,
    /// Turn the electronic eye on, for as long as heartbeats are heard
    EyeOn,
    /// Turn it off
    EyeOff,
}

/// Says a word to a running quoter and prints the answer.
pub fn tell(socket: &Path, word: QuoterWord) -> Result<(), Failure> {
    let request = match word {
        QuoterWord::Status => "status",
        QuoterWord::Pull => "pull",
        QuoterWord::Resume => "resume",
        QuoterWord::Heartbeat => "heartbeat",
        QuoterWord::EyeOn | QuoterWord::EyeOff => "eye",
    };
    let mut request = json!({ "do": request });
    if matches!(word, QuoterWord::EyeOn | QuoterWord::EyeOff) {
        request["on"] = (word == QuoterWord::EyeOn).into();
    }
    client::print_answer(&client::ask_quoter(socket, &request)?);
    Ok(())
}

/// Who made an edit, for the log: what the kernel says, and the name that was given where it is another.
fn who_asks(claimed: &str, by: &Peer) -> String {
    match claimed.is_empty() || by.name.as_deref() == Some(claimed) {
        true => by.to_string(),
        false => format!("{claimed}, by {by}"),
    }
}

struct OperatorControl {
    shared: Arc<Shared>,
    asks: Sender<Ask>,
    controls: ControlsSection,
}

impl OperatorControl {
    /// What the pricing thread answers.
    fn ask(&self, wish: Wish) -> Result<Value, String> {
        let (answer, answered) = channel();
        let gone = |_| "pricing has ended: nobody answers".to_string();
        self.asks.send((wish, answer)).map_err(gone)?;
        let said = answered
            .recv_timeout(PATIENCE)
            .map_err(|_| format!("pricing did not answer within {} s", PATIENCE.as_secs()))?;
        said.map(|says| json!({ "says": says }))
    }
}

/// What a quoter may be asked for.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    /// An edit of the volatilities, as `tickwire vol edit` has them, and who makes it.
    Vol {
        line: String,
        #[serde(default)]
        who: String,
        /// What goes further than one edit may is meant.
        #[serde(default)]
        force: bool,
    },
    /// Takes every quote away, until it is resumed.
    Pull {},
    /// Quotes again.
    Resume {},
    /// The operator is there.
    Heartbeat {},
    /// Turns the electronic eye on or off.
    Eye { on: bool },
    /// A report of the account.
    Risk {
        #[serde(default)]
        format: Format,
    },
    /// How it is.
    Status {},
}

impl Answer for OperatorControl {
    type Request = Request;
    const WHO: &'static str = "a quoter";

    fn answer(&mut self, request: Request, by: &Peer) -> Result<Value, String> {
        match request {
            Request::Vol { line, who, force } => {
                let by = By {
                    who: who_asks(&who, by),
                    is_forced: force,
                };
                self.ask(Wish::Edit(line, by))
            }
            Request::Risk { format } => self.ask(Wish::Risk(format)),
            Request::Pull {} => {
                self.shared.pull();
                Ok(json!({ "says": "every quote is being cancelled" }))
            }
            Request::Resume {} => {
                self.controls.may_resume()?;
                self.shared.resume();
                Ok(json!({ "says": "quoting goes on as soon as nothing speaks against it" }))
            }
            Request::Heartbeat {} => {
                self.shared.heartbeat();
                Ok(json!({ "says": "heard" }))
            }
            Request::Eye { on } => {
                if !self.shared.has_eye() {
                    return Err("there is no eye: the configuration has no [quoter.eye]".into());
                }
                self.shared.set_eye(on);
                Ok(match on {
                    true => {
                        json!({ "says": "the eye is being turned on, until no heartbeat is heard; `status` says whether it is" })
                    }
                    false => json!({ "says": "the eye is being turned off" }),
                })
            }
            Request::Status {} => Ok(self.shared.status()),
        }
    }
}
