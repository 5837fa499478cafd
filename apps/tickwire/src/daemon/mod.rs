//! `tickwire feed`: the daemon that keeps books in shared memory for other programs.

mod config;
mod control;
mod notify;

pub(crate) use config::DaemonSection;
