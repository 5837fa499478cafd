//! How a recording is read, which tables and archives ask alike.

use std::path::PathBuf;

use tickwire_replay::replay::ReplayArgs;
use tickwire_venues::protocol::Protocol;

/// What is said of a recording beside its files.
#[derive(clap::Args, Clone, Default, Debug)]
pub struct RecordingArgs {
    /// Feeds by group and port (TOML; `tickwire inspect --write-config` writes one); without it they are
    /// found out
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What the payloads are; without it, told by --config, else recognised
    #[arg(long, value_enum, value_name = "P", conflicts_with = "config")]
    pub protocol: Option<Protocol>,
    /// FAST template file of MOEX, or `builtin` (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub templates: Vec<PathBuf>,
    /// Live orders of one channel to make room for. By default what the recording can need, at most 4,194,304
    #[arg(long, value_name = "N")]
    pub max_orders: Option<u32>,
}

impl RecordingArgs {
    /// The arguments by which `replay` reads the files.
    pub(crate) fn replay(&self, files: &[PathBuf], symbols: &[String]) -> ReplayArgs {
        ReplayArgs {
            config: self.config.clone(),
            protocol: self.protocol,
            templates: self.templates.clone(),
            symbol: symbols.to_vec(),
            max_orders: self.max_orders,
            ..ReplayArgs::of(files.to_vec())
        }
    }
}
