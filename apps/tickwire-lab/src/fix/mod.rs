//! What is measured of FIX: an order's round trip ([`bench`]), and a trade from end to end ([`rig`]).

pub(crate) mod bench;
pub(crate) mod rig;

use std::path::Path;
use std::sync::Arc;

use tickwire_console::failure::Failure;
use tickwire_fixengine::settings::{self, Setup, Wanted};
use tickwire_fixengine::{Ended, Engine, Error};
use tickwire_node::voice::{AtStart, Quiet, console, failure};

/// How a loop ended: by a signal is a failure.
fn ended(outcome: Result<Ended, Error>) -> Result<(), Failure> {
    match outcome.map_err(failure)? {
        Ended::ByHandler => Ok(()),
        Ended::Stopped(reason) => Err(Failure::interrupted(format!(
            "{reason}; every session was logged out"
        ))),
    }
}

/// The sessions of a file.
fn load(path: &Path, wanted: Wanted) -> Result<Vec<Setup>, Failure> {
    settings::load(path, wanted, &AtStart).map_err(failure)
}

/// An engine that says nothing but warnings.
fn quiet(setups: Vec<Setup>) -> Result<Engine, Failure> {
    Engine::new(setups, Arc::new(Quiet)).map_err(failure)
}
