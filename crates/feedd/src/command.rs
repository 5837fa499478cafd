//! What the control thread asks of feed threads between two packets, and what they answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tickwire_feed::{Pattern, Rule, Seen};
use tickwire_market::Symbol;

/// Commands that may wait for one thread; there is one at a time, for the control thread waits for its
/// answer.
const WAITING_MAX: usize = 2;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// The instruments that the patterns name are wanted from now on.
    Subscribe,
    /// They are not wanted any more: their books are emptied and marked stale.
    Unsubscribe,
    /// Nothing but to say what is subscribed to.
    List,
    /// The same, and what was seen, dropped and passed of each instrument.
    Statistics,
}

impl Deed {
    /// Whether nothing is changed by it.
    pub fn is_question(self) -> bool {
        matches!(self, Deed::List | Deed::Statistics)
    }
}

/// What became of an instrument's messages.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentCount {
    /// The instrument.
    pub symbol: Symbol,
    /// Whether it is wanted.
    pub wanted: bool,
    /// Seen in this process, and dropped here because nobody wants it.
    pub seen: Seen,
    /// Dropped at the driver's hook before this process saw them; `None` where that is not counted.
    pub at_hook: Option<u64>,
}

/// A command, and its answers as they are gathered on its way back.
#[derive(Clone, Debug)]
pub struct Command {
    /// What is to be done.
    pub deed: Deed,
    /// The instruments that it is about; empty for questions.
    pub patterns: Vec<Pattern>,
    /// The number of the only feed that it is about.
    pub feed: Option<u8>,
    /// What it did to each channel that it is about, in the order of the channels.
    pub answers: Vec<ChannelAnswer>,
}

/// What a command did to one channel.
#[derive(Clone, Debug, Default)]
pub struct ChannelAnswer {
    /// The number of its feed.
    pub feed: u8,
    /// Instruments known now that one of the patterns names.
    pub matched: u32,
    /// Of these, how many are wanted, or no longer wanted, by this command.
    pub changed: u32,
    /// Why not all of it was done.
    pub refused: Option<String>,
    /// What is wanted now, the last rule that matches decides.
    pub rules: Vec<Rule>,
    /// Instruments known.
    pub instruments: u32,
    /// Messages seen, and dropped because nobody wants them.
    pub seen: Seen,
    /// For [`Deed::Statistics`]: the instruments that any message was about.
    pub counts: Vec<InstrumentCount>,
}

/// The control thread's end of the line to one feed thread.
pub struct CommandLine {
    commands: SyncSender<Command>,
    answers: Receiver<Command>,
    /// Set while a command waits: all that the feed thread looks at for every packet.
    is_waiting: Arc<AtomicBool>,
}

/// The feed thread's end.
pub struct CommandQueue {
    commands: Receiver<Command>,
    answers: SyncSender<Command>,
    is_waiting: Arc<AtomicBool>,
}

/// Both ends of a line.
pub fn command_line() -> (CommandLine, CommandQueue) {
    let (command_sender, commands) = sync_channel(WAITING_MAX);
    let (answers, answer_receiver) = sync_channel(WAITING_MAX);
    let is_waiting = Arc::new(AtomicBool::new(false));
    let line = CommandLine {
        commands: command_sender,
        answers: answer_receiver,
        is_waiting: Arc::clone(&is_waiting),
    };
    let queue = CommandQueue {
        commands,
        answers,
        is_waiting,
    };
    (line, queue)
}

impl CommandLine {
    /// Has a command done; calls `meanwhile` now and then while it waits.
    pub fn ask(
        &self,
        command: Command,
        patience: Duration,
        mut meanwhile: impl FnMut(),
    ) -> Result<Command, String> {
        // The answer to an earlier command that nobody waited for is old.
        while self.answers.try_recv().is_ok() {}
        self.commands.try_send(command).map_err(|e| match e {
            TrySendError::Full(_) => "a feed thread has not done the last command yet; try again".to_string(),
            TrySendError::Disconnected(_) => "a feed thread has ended".to_string(),
        })?;
        self.is_waiting.store(true, Ordering::Release);
        let until = Instant::now() + patience;
        loop {
            match self.answers.recv_timeout(Duration::from_millis(50)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err("a feed thread has ended".into()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                    return Err("a feed thread did not answer in time; it may still do it".into());
                }
                Err(RecvTimeoutError::Timeout) => meanwhile(),
            }
        }
    }
}

impl CommandQueue {
    /// Whether a command waits: one load.
    #[inline]
    pub fn has_command(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Does the commands that wait.
    #[cold]
    pub fn serve(&self, mut does: impl FnMut(&mut Command)) {
        self.is_waiting.store(false, Ordering::Relaxed);
        loop {
            match self.commands.try_recv() {
                Ok(mut command) => {
                    does(&mut command);
                    // Nobody takes it: the control thread has given up or ended.
                    let _ = self.answers.try_send(command);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }
}
