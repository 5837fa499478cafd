//! `tickwire fix`: FIX sessions of any version, configured by QuickFIX's own files.

mod acceptor;
mod echo;
mod settings;
mod store;

use tickwire_runtime::signal::StopFlag;

use crate::cli::{FixArgs, FixCommand};
use crate::failure::Failure;

pub(crate) fn run(args: &FixArgs, stop: &StopFlag) -> Result<(), Failure> {
    match &args.command {
        FixCommand::Acceptor(args) => acceptor::run(args, stop),
        FixCommand::Store(args) => store::run(args),
    }
}
