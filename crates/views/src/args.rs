//! What a user types for the views.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use tickwire_runtime::places;

use super::nagios::Threshold;

/// Which daemon.
#[derive(Args, Clone, Debug)]
pub struct DaemonFolder {
    /// Folder of the daemon; else $TICKWIRE_FOLDER, else $XDG_RUNTIME_DIR/tickwire or /run/tickwire,
    /// whichever has a region
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl DaemonFolder {
    pub fn folder(&self) -> PathBuf {
        places::reader_folder(self.folder.clone())
    }
}

/// The arguments of `tickwire book`.
#[derive(Args, Debug)]
pub struct BookArgs {
    /// The symbol, as the venues write it
    pub symbol: String,
    /// This feed's own ladder instead of the consolidated book (repeatable)
    #[arg(long, value_name = "NAME")]
    pub feed: Vec<String>,
    /// Price levels per side, 1 to 64; no more than the daemon publishes
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub levels: u8,
    /// Seconds from one picture to the next
    #[arg(long, default_value = "0.25", value_name = "S", value_parser = seconds)]
    pub interval: Duration,
    /// Once, as plain text (also when the output is no terminal)
    #[arg(long)]
    pub once: bool,
    /// Once, as JSON
    #[arg(long, conflicts_with = "once")]
    pub json: bool,
    /// Once, as a picture with its colours (SVG), for a document or a ticket
    #[arg(long, value_name = "FILE", conflicts_with_all = ["once", "json"])]
    pub svg: Option<PathBuf>,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// Seconds from one picture to the next: rates and latencies are those of this time
    #[arg(long, default_value = "1", value_name = "S", value_parser = seconds)]
    pub interval: Duration,
    /// Once, as plain text, after one interval (also when the output is no terminal)
    #[arg(long)]
    pub once: bool,
    /// Once, after one interval, as a picture with its colours (SVG)
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub svg: Option<PathBuf>,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire stats`.
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// Seconds to count for the rates; 0 leaves them out
    #[arg(long, default_value = "1", value_name = "S", value_parser = seconds_or_none)]
    pub interval: Duration,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire latency`.
#[derive(Args, Debug)]
pub struct LatencyArgs {
    /// Files that the daemon wrote (latency_FEED.txt); without any, the running daemon's own histograms
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// What `tickwire check` can do.
#[derive(Subcommand, Debug)]
pub enum CheckCommand {
    /// One line and an exit code for Nagios, Icinga and whatever else runs monitoring plugins
    #[command(after_help = "\
Examples:
  tickwire check nagios
  tickwire check nagios --warning gaps=10 --critical gaps=100 \\
      --critical p99=~:50 --warning age=5
  tickwire check nagios --feed bzx --interval 10

Metrics: heartbeat (s), stale, building (sources), age (s since the last packet of the quietest source), gaps, lost, \
kernel_drops (per minute), p99 (us, packet to book, within the interval), refused (books without room).
Ranges are those of the plugin guidelines: 10 is 0 to 10, 10: is 10 and more, ~:10 is 10 and less, @10:20 is outside.
Without thresholds of a metric: heartbeat 1 and 5, stale critical above 0, building, lost, kernel_drops and refused a \
warning above 0; age, gaps and p99 are shown only.
Exit codes: 0 OK, 1 WARNING, 2 CRITICAL (also: no daemon), 3 UNKNOWN (the check itself could not be made).")]
    Nagios(NagiosArgs),
    /// One line of name:value pairs for a Cacti data input method
    #[command(after_help = "\
Example:
  tickwire check cacti --feed bzx

Values are totals since the daemon's start (data source type COUNTER or DERIVE), but for sources, live, building, stale, \
ended, up and latency_… (GAUGE). Without a daemon everything is U, and up is 0.")]
    Cacti(CactiArgs),
}

/// The arguments of `tickwire check nagios`.
#[derive(Args, Debug)]
pub struct NagiosArgs {
    /// Metric and the range it must keep, e.g. gaps=10 (repeatable)
    #[arg(short, long, value_name = "METRIC=RANGE")]
    pub warning: Vec<Threshold>,
    /// Metric and the range it must keep, e.g. p99=~:50 (repeatable)
    #[arg(short, long, value_name = "METRIC=RANGE")]
    pub critical: Vec<Threshold>,
    /// Only this feed (repeatable)
    #[arg(long, value_name = "NAME")]
    pub feed: Vec<String>,
    /// Seconds to count for gaps, lost, kernel_drops and p99; 0 leaves them out
    #[arg(long, default_value = "2", value_name = "S", value_parser = seconds_or_none)]
    pub interval: Duration,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire check cacti`.
#[derive(Args, Debug)]
pub struct CactiArgs {
    /// Only this feed (repeatable); without it, all together
    #[arg(long, value_name = "NAME")]
    pub feed: Vec<String>,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire subscribe` and `tickwire unsubscribe`.
#[derive(Args, Debug)]
pub struct SubscribeArgs {
    /// Symbols or patterns: `*` stands for any characters, `?` for one
    #[arg(required = true, value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Only at this feed; without it, at every one
    #[arg(long, value_name = "NAME")]
    pub feed: Option<String>,
    /// The daemon's answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

/// The arguments of `tickwire subscriptions`.
#[derive(Args, Debug)]
pub struct SubscriptionsArgs {
    /// Only of this feed
    #[arg(long, value_name = "NAME")]
    pub feed: Option<String>,
    /// What was seen, dropped and passed, by subscription and by symbol, since the daemon's start; with
    /// receiver.filter_statistics what the filter at the driver's hook dropped, too
    #[arg(long)]
    pub statistics: bool,
    /// The daemon's answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which daemon.
    #[command(flatten)]
    pub place: DaemonFolder,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.05..=3_600.0).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err("give seconds from 0.05 to 3600".into()),
    }
}

fn seconds_or_none(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(Duration::ZERO),
        _ => seconds(text).map_err(|_| "give seconds from 0.05 to 3600, or 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_range() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        for wrong in ["0", "-1", "nan", "inf", "3601", "x", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(seconds_or_none("0.01").is_err());
    }
}
