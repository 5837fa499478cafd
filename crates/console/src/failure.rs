//! Why a command ended: one sentence and an exit code.

use std::fmt;

/// The exit codes, as `--help` lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Code {
    /// A check failed: books differ, an order is unaccounted for, a file was truncated.
    CheckFailed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The operating system refused something, or a file cannot be read.
    System = 3,
    /// The other side went away before the end.
    PeerLost = 4,
    /// Ended by SIGINT or SIGTERM.
    Interrupted = 130,
}

/// A command's failure.
#[derive(Debug)]
pub struct Failure {
    /// What the process ends with.
    pub code: Code,
    /// One sentence: what was wrong, where, and what to do.
    pub message: String,
}

impl Failure {
    /// A check failed: exit code 1.
    pub fn check(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::CheckFailed,
            message: message.into(),
        }
    }
    /// The command line or the configuration is wrong: exit code 2.
    pub fn config(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::Usage,
            message: message.into(),
        }
    }
    /// The operating system refused something, or a file cannot be read: exit code 3.
    pub fn system(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::System,
            message: message.into(),
        }
    }
    /// The other side went away before the end: exit code 4.
    pub fn peer_lost(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::PeerLost,
            message: message.into(),
        }
    }
    /// SIGINT or SIGTERM ended the command: exit code 130.
    pub fn interrupted(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::Interrupted,
            message: message.into(),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
