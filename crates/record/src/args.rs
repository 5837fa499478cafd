//! The arguments of `tickwire record`, and what it prints.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tickwire_console::failure::Failure;
use tickwire_market::{Nanos, Port};
use tickwire_runtime::signal::{StopFlag, StopReason};
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::channels::{FeedFile, InterfaceName};
use tickwire_venues::receiver::Backend;

use crate::{Folder, Group, Now, Plan, Recorded, record};

/// The arguments of `tickwire record`.
#[derive(clap::Args, Debug)]
pub struct RecordArgs {
    /// Groups to record, with their ports
    #[arg(value_name = "GROUP:PORT", required_unless_present = "config")]
    pub groups: Vec<SocketAddrV4>,
    /// Every group of this configuration (TOML): live lines, retransmissions, snapshots, definitions
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The folder to write to, made if it is not there
    #[arg(short, long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// What names of files begin with
    #[arg(long, default_value = "capture", value_name = "NAME", value_parser = name)]
    pub name: String,
    /// The network interface to join on, by name or address; loopback, or what the configuration says, unless
    /// given
    #[arg(short, long, value_name = "NAME", value_parser = interface)]
    pub interface: Option<InterfaceName>,
    /// Hear this sender only, of the groups named here
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<Ipv4Addr>,
    /// Begin a file before one has more than so many MiB; 0: never
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    pub rotate_size: u64,
    /// Begin a file at every multiple of so many seconds (UTC); 0: never
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub rotate_time: u64,
    /// Compress files (zstd) when they are done, on a thread of their own
    #[arg(long)]
    pub compress: bool,
    /// Memory for what the disk has not taken yet, MiB
    #[arg(long, default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub queue: u32,
    /// Receive buffer of each group, MiB
    #[arg(long, default_value_t = 16, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// How datagrams come: by sockets, by AF_XDP from the hook of the network driver, or by AF_XDP where that
    /// is possible
    #[arg(long, value_enum, default_value = "socket", value_name = "BACKEND")]
    pub backend: Backend,
    /// Receive queues of an interface that are read by AF_XDP, from the first on; 0: all
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub xdp_queues: u32,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Stop when so many packets were received; those that come meanwhile are recorded too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// Say every so many seconds how it goes
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub stat: Option<u64>,
    /// Look at the sockets without pause, with a core for it
    #[arg(long)]
    pub spin: bool,
    /// Core to pin the receive thread to
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
    /// Results as JSON
    #[arg(long)]
    pub json: bool,
}

fn name(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match !text.is_empty() && !text.starts_with('.') && text.len() <= 100 && text.chars().all(is_good) {
        true => Ok(text.to_owned()),
        false => Err("give letters, digits, dots, dashes and underscores, at most 100".to_owned()),
    }
}

fn interface(text: &str) -> Result<InterfaceName, String> {
    InterfaceName::try_from(text.to_owned())
}

/// The plan of a command line.
///
/// # Errors
/// A configuration that is wrong, or an interface that there is not.
pub fn plan(args: &RecordArgs) -> Result<Plan, Failure> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |group: Group| {
        let is_same = |known: &Group| {
            (known.address, &known.interface, known.source) == (group.address, &group.interface, group.source)
        };
        // A group that several channels share is recorded once.
        if !groups.iter().any(is_same) {
            groups.push(group);
        }
    };
    if !args.groups.is_empty() {
        let interface = args
            .interface
            .clone()
            .unwrap_or_else(InterfaceName::loopback)
            .find()?;
        for address in &args.groups {
            add(Group {
                source: args.source,
                ..Group::new(*address, interface.clone())
            });
        }
    }
    if let Some(path) = &args.config {
        for feed in &FeedFile::load(path)?.feeds {
            let name = args.interface.as_ref().unwrap_or(&feed.interface);
            let interface = name.find()?;
            for (number, channel) in feed.channels.iter().enumerate() {
                let ports = channel.ports(name);
                for port in Port::ALL {
                    for (line, letter) in ["a", "b"].iter().enumerate() {
                        let Some(address) = ports.groups[port as usize][line] else {
                            continue;
                        };
                        add(Group {
                            address,
                            interface: interface.clone(),
                            source: ports.sources[port as usize][line],
                            name: format!("{} {} {letter}", feed.channel_name(number), port.name()),
                        });
                    }
                }
            }
        }
    }
    if groups.is_empty() {
        return Err(Failure::config("the configuration has no groups to record"));
    }
    Ok(Plan {
        queue_bytes: (args.queue as usize) << 20,
        receive_buffer_bytes: args.buffer << 20,
        rotate_bytes: args.rotate_size.saturating_mul(1 << 20),
        rotate_ns: args.rotate_time.saturating_mul(Nanos::SECOND),
        wait: if args.spin {
            WaitStrategy::Spin
        } else {
            WaitStrategy::Poll
        },
        core: args.core,
        backend: args.backend,
        xdp_queues: args.xdp_queues,
        ..Plan::new(groups)
    })
}

/// Runs `tickwire record`.
///
/// # Errors
/// As [`record`] and [`Folder::open`]; at the end, packets that were lost, files that could not be finished,
/// or the signal that ended it.
pub fn run(args: &RecordArgs, stop: &StopFlag) -> Result<(), Failure> {
    let plan = plan(args)?;
    tickwire_console::start();
    let folder = Folder::open(&args.out, &args.name, args.compress, &plan)?;
    let groups = plan.groups.clone();
    let mut watcher = Watcher {
        args,
        stop: stop.clone(),
        begun: Instant::now(),
        is_said: false,
        told: (Instant::now(), Now::default()),
        groups: groups.len(),
    };
    let (recorded, folder) = record(plan, folder, stop, &mut |now| watcher.look(now))?;
    let seconds = watcher.begun.elapsed().as_secs_f64();
    let unfinished = folder.finish();
    match args.json {
        true => println!("{:#}", to_json(&groups, &recorded, seconds)),
        false => print!("{}", to_text(&groups, &recorded, seconds)),
    }
    if recorded.unwritten > 0 || !unfinished.is_empty() {
        return Err(Failure::system(format!(
            "the disk did not take everything: {} packets that were received are in no file{}",
            recorded.unwritten,
            unfinished.first().map_or(String::new(), |why| format!("; {why}")),
        )));
    }
    if recorded.lost() > 0 {
        return Err(Failure::check(format!(
            "{} packets were lost (by group above): give more --queue and --buffer, a faster disk, or a core (--spin --core N)",
            recorded.lost()
        )));
    }
    match stop.reason() {
        Some(reason @ (StopReason::Interrupted | StopReason::Terminated)) => Err(Failure::interrupted(
            format!("{reason}; everything received is recorded"),
        )),
        _ => Ok(()),
    }
}

/// Says how it goes, and stops when it is time.
struct Watcher<'a> {
    args: &'a RecordArgs,
    stop: StopFlag,
    begun: Instant,
    is_said: bool,
    told: (Instant, Now),
    groups: usize,
}

impl Watcher<'_> {
    fn look(&mut self, now: Now) {
        if !self.is_said {
            self.is_said = true;
            let (groups, out) = (self.groups, self.args.out.display());
            tickwire_console::note(format_args!("recording {groups} groups to {out}"));
        }
        if let Some(every) = self.args.stat {
            let (at, before) = self.told;
            if at.elapsed() >= Duration::from_secs(every) {
                let rate = (now.packets - before.packets) as f64 / at.elapsed().as_secs_f64();
                tickwire_console::note(format_args!(
                    "{} packets ({rate:.0} a second), {} lost, {} MB written{}",
                    now.packets,
                    now.lost,
                    now.written / 1_000_000,
                    if now.is_stuck {
                        "; the disk takes nothing"
                    } else {
                        ""
                    }
                ));
                self.told = (Instant::now(), now);
            }
        }
        let is_late = |seconds: u64| self.begun.elapsed() >= Duration::from_secs(seconds);
        if self.args.seconds.is_some_and(is_late) || self.args.packets.is_some_and(|n| now.packets >= n) {
            self.stop.stop();
        }
    }
}

fn to_text(groups: &[Group], recorded: &Recorded, seconds: f64) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{:>12} {:>16} {:>10}  group\n", "packets", "bytes", "lost");
    for (group, total) in groups.iter().zip(&recorded.groups) {
        _ = writeln!(
            text,
            "{:>12} {:>16} {:>10}  {}",
            total.packets,
            total.bytes,
            total.lost,
            group.label()
        );
    }
    _ = writeln!(
        text,
        "{} packets in {} files, {} bytes, {:.1} s; {} lost; the queue was full {} times",
        recorded.packets(),
        recorded.files,
        recorded.bytes,
        seconds,
        recorded.lost(),
        recorded.full
    );
    text
}

fn to_json(groups: &[Group], recorded: &Recorded, seconds: f64) -> serde_json::Value {
    let by_group = groups.iter().zip(&recorded.groups).map(|(group, total)| {
        json!({
            "group": group.address.to_string(),
            "interface": group.interface.name(),
            "name": group.name,
            "packets": total.packets,
            "bytes": total.bytes,
            "lost": total.lost,
        })
    });
    json!({
        "groups": by_group.collect::<Vec<_>>(),
        "packets": recorded.packets(),
        "lost": recorded.lost(),
        "unwritten": recorded.unwritten,
        "files": recorded.files,
        "bytes": recorded.bytes,
        "queue_full": recorded.full,
        "seconds": seconds,
    })
}
