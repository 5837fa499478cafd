//! Why a command ended: one sentence and an exit code.

use std::fmt;

/// The exit codes, as `--help` lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Code {
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
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn check(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::CheckFailed,
            message: message.into(),
        }
    }
    pub(crate) fn config(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::Usage,
            message: message.into(),
        }
    }
    pub(crate) fn system(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::System,
            message: message.into(),
        }
    }
    pub(crate) fn peer_lost(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::PeerLost,
            message: message.into(),
        }
    }
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure {
            code: Code::Interrupted,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
