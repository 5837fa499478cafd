//! `tickwire feed`: the daemon that keeps books in shared memory for other programs.

mod config;

pub(crate) use config::DaemonSection;
