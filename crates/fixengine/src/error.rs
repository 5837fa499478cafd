//! Why an engine could not begin, or ended.

use std::fmt;

/// What went wrong, in a sentence that says what to do.
#[derive(Debug)]
pub enum Error {
    /// The configuration is wrong: files are named with line and key.
    Config(String),
    /// The operating system refused something, or a file cannot be read.
    System(String),
    /// An application ended its engine by this.
    Application(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// What an application ends its engine by.
    pub fn application(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Application(error.into())
    }

    pub(crate) fn config(message: impl Into<String>) -> Error {
        Error::Config(message.into())
    }

    pub(crate) fn system(message: impl Into<String>) -> Error {
        Error::System(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(message) | Error::System(message) => f.write_str(message),
            Error::Application(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Config(_) | Error::System(_) => None,
            Error::Application(error) => error.source(),
        }
    }
}
