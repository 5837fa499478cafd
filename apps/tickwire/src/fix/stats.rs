//! Sessions in a region, like channels of a feed: `tickwire stats`, `top`, `check` and Prometheus show them
//! without knowing what they are.
//!
//! ```text
//! session threads   Engine ─► Row: state, counters, a histogram a step ──► region ─► every view
//! this thread       heartbeat, metrics over HTTP ───────────────────────►┘
//! ```
//! A row is live while its session is logged on, stale when it is not but was, building before the first
//! logon, ended outside its hours. Steps of a message stand where a feed has its types of message. One row a
//! thread that listens counts the connections that never came to belong to a session.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_lab::{Table, format_ns};
use tickwire_market::{Counter, Counters, Nanos, SeqNo};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::files::Sharing;
use tickwire_runtime::shared::{REGION_FILE, SharedMemory, monotonic};
use tickwire_shm::{
    Histogram, Identity, Region, RegionConfig, RegionState, SourceIdentity, SourceState, SourceWriter,
};

use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::http::Served as _;
use tickwire_control::process::FolderLock;
use tickwire_fixengine::{Report, STEPS, Standing};
use tickwire_views::MetricsServer;
use tickwire_views::fix_steps::PROTOCOL;

/// Between two heartbeats.
const TICK: Duration = Duration::from_millis(50);
/// Histograms of a row: two of every source, and its steps.
const HISTOGRAMS: u32 = 2 + STEPS.len() as u32;

/// A session's row.
#[derive(Debug)]
pub(super) struct Row {
    source: SourceWriter<'static, AtomicU64>,
    steps: [u64; STEPS.len()],
    /// Bytes that had come when it was shown last.
    bytes_in: u64,
}

impl tickwire_fixengine::Row for Row {
    fn step(&mut self, step: usize, ns: u64) {
        self.steps[step] += 1;
        self.source.kind_latency(step as u16 + 1, ns);
    }

    fn show(&mut self, now: Nanos, standing: Standing, next_in: SeqNo, counters: &Counters) {
        self.source.set_state(match standing {
            Standing::Building => SourceState::Building,
            Standing::Live => SourceState::Live,
            Standing::Stale => SourceState::Stale,
            Standing::Ended => SourceState::Ended,
        });
        let bytes_in = counters.get(Counter::FixBytesIn);
        if std::mem::replace(&mut self.bytes_in, bytes_in) != bytes_in {
            self.source.packet(next_in, now);
        }
        self.source.counters(counters);
        for (step, seen) in self.steps.iter().enumerate().filter(|(_, seen)| **seen > 0) {
            self.source.kind(step as u16 + 1, *seen, 0);
        }
    }
}

/// The region of a process's sessions, for as long as this lives.
pub(super) struct Shown {
    region: Region<'static, AtomicU64>,
    rows: u16,
    next: AtomicU16,
    is_over: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
    _held: FolderLock,
}

impl Shown {
    /// Makes a region with room for so many sessions in a folder that no other program has, and serves
    /// metrics if they are wanted.
    pub(super) fn new(folder: &Path, rows: usize, metrics: Option<SocketAddr>) -> Result<Shown, Failure> {
        let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
        let rows = u16::try_from(rows)
            .map_err(|_| Failure::config(format!("{rows} sessions: a region shows at most {}", u16::MAX)))?;
        let held = FolderLock::take(folder, Sharing::nobody())?;
        let config = RegionConfig {
            feeds: 1,
            sources: rows.into(),
            histograms: HISTOGRAMS * u32::from(rows),
            books: 0,
            supers: 0,
            rings: 0,
            ..RegionConfig::default()
        };
        let layout = config.layout().map_err(|e| Failure::config(e.to_string()))?;
        let memory =
            SharedMemory::create_in(held.folder()?, REGION_FILE, layout.bytes()).map_err(|e| system(&e))?;
        // Rows on every thread point into it until the process ends.
        let memory: &'static SharedMemory = Box::leak(Box::new(memory));
        let identity = Identity {
            generation: Clock::calibrate().now(),
            pid: std::process::id(),
        };
        let region =
            Region::format(memory.words(), &config, identity).map_err(|e| Failure::config(e.to_string()))?;
        let mut metrics = metrics
            .map(|address| MetricsServer::bind(address, folder))
            .transpose()?;
        region.heartbeat(monotonic());
        region.set_state(RegionState::Ready);
        memory.publish().map_err(|e| system(&e))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let keeper = {
            let is_over = is_over.clone();
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    if memory.is_cut() {
                        return warn(format_args!(
                            "{} was made shorter while it is in use: nothing is shown there any more; start again to show sessions",
                            memory.path().display()
                        ));
                    }
                    region.heartbeat(monotonic());
                    if let Some(metrics) = &mut metrics {
                        metrics.poll();
                    }
                    std::thread::sleep(TICK);
                }
            }
        };
        let keeper = tickwire_runtime::affinity::beside("fix-region", keeper)
            .map_err(|e| system(&format!("no thread to keep the region by: {e}")))?;
        Ok(Shown {
            region,
            rows,
            next: AtomicU16::new(0),
            is_over,
            keeper: Some(keeper),
            _held: held,
        })
    }

    /// A row of this name, while there are any.
    pub(super) fn row(&self, name: &str) -> Option<Row> {
        let next = |n: u16| (n < self.rows).then_some(n + 1);
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let identity = SourceIdentity {
            name: name.into(),
            feed_name: PROTOCOL.into(),
            protocol: PROTOCOL.into(),
            feed: 0,
            venue: None,
            ring: None,
        };
        taken.ok().map(|number| Row {
            source: self.region.source(number, &identity),
            steps: [0; STEPS.len()],
            bytes_in: 0,
        })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.take() {
            // It only ends when it is told to.
            let _ = keeper.join();
        }
        self.region.set_state(RegionState::Ended);
    }
}

/// What sessions have done so far, for people.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for session in &report.sessions {
        let name = &session.name;
        text += &format!(
            "{name}: {:?}, next out {}, next in {}\n",
            session.status, session.next_out, session.next_in
        );
        text += &counted(&session.counters);
        if session.steps[0].count > 0 {
            text += &steps(name, &session.steps).to_text(tickwire_console::terminal::width());
        }
    }
    let others = counted(&report.others);
    if !others.is_empty() {
        text += "connections that belonged to no session:\n";
        text += &others;
    }
    text
}

fn counted(counters: &Counters) -> String {
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    let lines = counted.map(|(counter, n)| format!("  {}: {n}\n", counter.spec().label));
    lines.collect()
}

fn steps(name: &str, steps: &[Histogram]) -> Table {
    let columns = ["", "p50", "p90", "p99", "p99.9", "max", "count"];
    let rows = STEPS.iter().zip(steps);
    rows.fold(Table::new(name, &columns), |table, (step, h)| {
        let at = [500_000, 900_000, 990_000, 999_000].map(|quantile| format_ns(h.at(quantile)));
        let rest = [format_ns(h.max), h.count.to_string()];
        table.row([step.to_string()].into_iter().chain(at).chain(rest))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn views_call_the_steps_of_a_session_as_the_engine_does() {
        assert_eq!(tickwire_views::fix_steps::STEPS, tickwire_fixengine::STEPS);
    }
}
