//! The feeds of a configuration file: which venue speaks which protocol on which addresses, channel by
//! channel.
//!
//! ```toml
//! [[feed]]
//! name = "bzx"                                   # in reports; the venue's name unless given
//! venue = "bzx"
//! protocol = "pitch"                             # only needed where a venue has more than one
//! interface = "eth0"                             # or its address
//!
//! [[feed.channel]]
//! name = "1"                                     # unit, channel or line as the venue names it
//! live = { a = "239.192.1.1:30001", source_a = "10.0.0.1", b = "239.192.2.1:30001" }
//! retransmission = { a = "239.192.3.1:30001" }
//! replay = "127.0.0.1:30101"
//! symbols = { first = "A", last = "AAL" }        # or a list; for the reader of the file only
//! ```
//! A channel's addresses have the names of [`Port`]: groups of multicast have a line `a` and, where the venue
//! sends twice, a line `b`; servers have one address. `source_a` and `source_b` beside the groups name the
//! only sender that is heard there. [`FeedFile::load`] checks a file whole; errors name the line.

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tickwire_feed::Line;
use tickwire_market::{Port, Transport, Venue};
use toml::Spanned;

mod interface;
mod recovery;

pub use interface::InterfaceName;
pub use recovery::{RecoverySection, limits_of};

use crate::ports::Ports;
use crate::protocol::{Protocol, XdpRelease};
use tickwire_console::failure::Failure;

/// The word for the project's own small FAST template set in the place of a file.
pub const BUILT_IN: &str = "builtin";

/// One feed of one venue.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FeedConfig {
    /// In reports; the venue's name unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The venue, by its name: `nasdaq`, `bzx`, `cme`, …
    #[serde(with = "venue_name")]
    pub venue: Venue,
    /// Only needed where the venue has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The network interface for multicast by its name or its address, loopback unless told otherwise.
    #[serde(default = "InterfaceName::loopback")]
    pub interface: InterfaceName,
    /// FAST template files (MOEX), relative to the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<PathBuf>,
    /// Which release of XDP the packets are of, for `decode`: "2.1" or "2.5"; without it, told by the
    /// messages themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpRelease>,
    /// MoldUDP64 session, exactly 10 characters (ITCH, UQDF); without it the first session seen is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether its books are part of consolidated books: yes unless told otherwise, but for the consolidated
    /// feeds, whose national best stands beside. For the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<bool>,
    /// A channel without any packet for so long is stale, milliseconds; `daemon.silence_ms` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_ms: Option<u32>,
    /// What may be asked for to recover; the venue's own limits unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoverySection>,
    /// Its channels, as `[[feed.channel]]`.
    #[serde(rename = "channel", default)]
    pub channels: Vec<ChannelConfig>,
}

/// One channel: a stream of numbers of its own, with all its ways of recovery.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelConfig {
    /// As the venue names it.
    pub name: String,
    /// Multicast: the messages as they happen. The only address that every channel has.
    pub live: Lines,
    /// Multicast: messages sent again on request (PITCH gap response, NYSE retransmission).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<Lines>,
    /// Multicast: books as they stand, in a loop or on request (MDP 3.0 and MOEX snapshots, NYSE refresh).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Lines>,
    /// Multicast: the same by order, where a venue has both (MDP 3.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_by_order: Option<Lines>,
    /// Multicast: instrument definitions, in a loop (MDP 3.0 and MOEX instrument replay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<Lines>,
    /// UDP: a server that sends messages again (MoldUDP64).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<SocketAddrV4>,
    /// TCP: missing messages are asked for, and on some venues come here (PITCH Gap Request Proxy, NYSE
    /// request server, MDP 3.0 and MOEX TCP replay).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<SocketAddrV4>,
    /// TCP: a snapshot comes here (GLIMPSE, PITCH Spin).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_server: Option<SocketAddrV4>,
    /// The same servers a second time: asked when the first is silent, refuses or lies.
    #[serde(default, skip_serializing_if = "Backup::is_empty")]
    pub backup: Backup,
    /// Which instruments it carries, as the venue says. Says nothing to the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Symbols>,
}

/// The second server of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backup {
    /// As [`ChannelConfig::requests`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<SocketAddrV4>,
    /// As [`ChannelConfig::replay`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<SocketAddrV4>,
    /// As [`ChannelConfig::snapshot_server`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_server: Option<SocketAddrV4>,
}

impl Backup {
    fn is_empty(&self) -> bool {
        *self == Backup::default()
    }

    fn server(&self, port: Port) -> Option<SocketAddrV4> {
        match port {
            Port::Requests => self.requests,
            Port::Replay => self.replay,
            Port::SnapshotServer => self.snapshot_server,
            _ => None,
        }
    }
}

/// The groups of one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The group of line A.
    pub a: SocketAddrV4,
    /// Only this sender is heard on line A (source-specific multicast); anybody without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_a: Option<Ipv4Addr>,
    /// The group of line B; `None` where the venue sends once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<SocketAddrV4>,
    /// The same of line B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_b: Option<Ipv4Addr>,
}

impl Lines {
    /// The groups alone: anybody who sends to them is heard.
    pub fn new(a: SocketAddrV4, b: Option<SocketAddrV4>) -> Lines {
        Lines {
            a,
            source_a: None,
            b,
            source_b: None,
        }
    }
}

/// Instruments of a channel.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "symbols are a list such as [\"ES\", \"NQ\"], or a range such as { first = \"A\", last = \"BK\" }"
)]
pub enum Symbols {
    /// By name: symbols, first letters, products.
    List(Vec<String>),
    /// From the first to the last, in alphabetical order.
    Range(SymbolRange),
}

/// A range of symbols.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SymbolRange {
    /// The first symbol of the channel.
    pub first: String,
    /// The last symbol of the channel, itself included.
    pub last: String,
}

impl FeedConfig {
    /// Template files are meant relative to the configuration file's folder.
    pub fn resolve_templates(&mut self, folder: &Path) {
        for template in self.templates.iter_mut().filter(|t| t.as_os_str() != BUILT_IN) {
            *template = folder.join(&template);
        }
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.venue.name())
    }

    /// A feed of one channel on this machine alone, with every port that the protocol uses.
    pub fn on_loopback(protocol: Protocol) -> FeedConfig {
        let venue = Venue::ALL
            .into_iter()
            .find(|venue| Protocol::of_venue(*venue).contains(&protocol))
            .unwrap_or_default();
        let has = |port: Port| protocol.ports().contains(&port);
        let lines = |port: Port| {
            let line = |line: u8| {
                let number = port as u8 * 2 + line;
                let group = Ipv4Addr::new(239, 192, 77, number + 1);
                SocketAddrV4::new(group, 26_400 + u16::from(number))
            };
            has(port).then(|| Lines::new(line(0), Some(line(1))))
        };
        let server = |port: Port| {
            let number = 26_420 + u16::from(port as u8);
            has(port).then(|| SocketAddrV4::new(Ipv4Addr::LOCALHOST, number))
        };
        let channel = ChannelConfig {
            name: "1".into(),
            live: lines(Port::Live).unwrap_or_else(|| {
                Lines::new(SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 1), 26_400), None)
            }),
            retransmission: lines(Port::Retransmission),
            snapshot: lines(Port::Snapshot),
            snapshot_by_order: lines(Port::SnapshotByOrder),
            definitions: lines(Port::Definitions),
            requests: server(Port::Requests),
            replay: server(Port::Replay),
            snapshot_server: server(Port::SnapshotServer),
            backup: Backup::default(),
            symbols: None,
        };
        FeedConfig {
            name: None,
            venue,
            protocol: (Protocol::of_venue(venue).len() > 1).then_some(protocol),
            interface: InterfaceName::loopback(),
            templates: match protocol {
                Protocol::Moex => vec![PathBuf::from(BUILT_IN)],
                _ => Vec::new(),
            },
            xdp: None,
            session: None,
            consolidate: None,
            silence_ms: None,
            recovery: None,
            channels: vec![channel],
        }
    }

    /// Whether its books are part of consolidated books.
    pub fn is_consolidated(&self) -> bool {
        self.consolidate.unwrap_or(self.protocol().has_depth())
    }

    /// The name of one of its channels in reports: the feed's own where there is no other.
    pub fn channel_name(&self, channel: usize) -> String {
        match self.channels.len() {
            1 => self.name().to_string(),
            _ => format!("{} {}", self.name(), self.channels[channel].name),
        }
    }

    /// What its packets are.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(Protocol::of_venue(self.venue)[0])
    }
}

impl ChannelConfig {
    /// The groups of a multicast port.
    pub fn lines(&self, port: Port) -> Option<Lines> {
        match port {
            Port::Live => Some(self.live),
            Port::Retransmission => self.retransmission,
            Port::Snapshot => self.snapshot,
            Port::SnapshotByOrder => self.snapshot_by_order,
            Port::Definitions => self.definitions,
            Port::Requests | Port::Replay | Port::SnapshotServer => None,
        }
    }

    /// The address of a server.
    pub fn server(&self, port: Port) -> Option<SocketAddrV4> {
        match port {
            Port::Requests => self.requests,
            Port::Replay => self.replay,
            Port::SnapshotServer => self.snapshot_server,
            Port::Live
            | Port::Retransmission
            | Port::Snapshot
            | Port::SnapshotByOrder
            | Port::Definitions => None,
        }
    }

    /// The addresses of every port.
    pub fn ports(&self, interface: &InterfaceName) -> Ports {
        Ports {
            interface: interface.clone(),
            groups: Port::ALL.map(|port| {
                let lines = self.lines(port);
                [lines.map(|l| l.a), lines.and_then(|l| l.b)]
            }),
            sources: Port::ALL.map(|port| {
                let lines = self.lines(port);
                [lines.and_then(|l| l.source_a), lines.and_then(|l| l.source_b)]
            }),
            servers: Port::ALL.map(|port| self.server(port)),
            backups: Port::ALL.map(|port| self.backup.server(port)),
        }
    }

    /// Moves every group that it has to the port number that `number` gives.
    pub fn renumber_groups<E>(&mut self, mut number: impl FnMut() -> Result<u16, E>) -> Result<(), E> {
        let others = [
            &mut self.retransmission,
            &mut self.snapshot,
            &mut self.snapshot_by_order,
            &mut self.definitions,
        ];
        for lines in others.into_iter().flatten().chain([&mut self.live]) {
            lines.a.set_port(number()?);
            if let Some(b) = &mut lines.b {
                b.set_port(number()?);
            }
        }
        Ok(())
    }

    /// Moves every group and server to a port number that is so much higher.
    pub fn move_ports(&mut self, by: u16) {
        let groups = [
            &mut self.retransmission,
            &mut self.snapshot,
            &mut self.snapshot_by_order,
            &mut self.definitions,
        ];
        for lines in groups.into_iter().flatten().chain([&mut self.live]) {
            lines.a.set_port(lines.a.port().wrapping_add(by));
            if let Some(b) = &mut lines.b {
                b.set_port(b.port().wrapping_add(by));
            }
        }
        for port in Port::ALL {
            if let Some(server) = self.server_mut(port) {
                server.set_port(server.port().wrapping_add(by));
            }
        }
    }

    /// The address of a server, to change.
    pub fn server_mut(&mut self, port: Port) -> Option<&mut SocketAddrV4> {
        match port {
            Port::Requests => self.requests.as_mut(),
            Port::Replay => self.replay.as_mut(),
            Port::SnapshotServer => self.snapshot_server.as_mut(),
            _ => None,
        }
    }

    /// Every address of a port with its line; servers have none.
    fn addresses(&self, port: Port) -> impl Iterator<Item = (SocketAddrV4, Option<Line>)> + use<> {
        let lines = self.lines(port);
        let a = lines.map(|lines| (lines.a, Some(Line::A)));
        let b = lines.and_then(|lines| lines.b).map(|b| (b, Some(Line::B)));
        let server = self.server(port).map(|server| (server, None));
        a.into_iter().chain(b).chain(server)
    }
}

/// What an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Index of the feed.
    pub feed: usize,
    /// Index of the channel within the feed; the first of those that share the address.
    pub channel: usize,
    /// Which of the channel's ports it is.
    pub port: Port,
    /// `None`: a server.
    pub line: Option<Line>,
}

impl Destination {
    /// The line's name in a configuration.
    pub fn line_name(&self) -> Option<&'static str> {
        match self.line {
            Some(Line::A) => Some("a"),
            Some(Line::B) => Some("b"),
            Some(Line::Retransmit) | None => None,
        }
    }
}

/// The feeds of one file, checked.
#[derive(Clone, Debug)]
pub struct FeedFile {
    /// The feeds in the order of the file.
    pub feeds: Vec<FeedConfig>,
    /// Of datagrams: groups, and servers of requests.
    datagrams: HashMap<SocketAddrV4, Destination>,
}

/// What contradicts what, in a file whose values are all well formed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    feed: usize,
    channel: Option<usize>,
    key: &'static str,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Fault {
    /// Of a feed as a whole.
    pub fn of_feed(feed: usize, key: &'static str, message: String) -> Fault {
        Fault {
            feed,
            channel: None,
            key,
            message,
        }
    }

    /// As a sentence that begins with the line of the text.
    pub fn with_line(&self, text: &str) -> String {
        format!("line {}: {self}", line_of(text, self).unwrap_or(1))
    }
}

impl FeedFile {
    /// Reads and checks a file. Tables of other parts of the program may stand in it.
    pub fn load(path: &Path) -> Result<FeedFile, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Failure::config(format!(
                "cannot read {}: {e}; give the path of a TOML file (see examples/)",
                path.display()
            ))
        })?;
        FeedFile::parse(&text).map_err(|e| Failure::config(format!("{}: {e}", path.display())))
    }

    /// Reads and checks the text of a file.
    pub fn parse(text: &str) -> Result<FeedFile, String> {
        let file: File = tickwire_console::settings::read(text)?;
        if file.feed.is_empty() {
            return Err("there is no [[feed]] in it".into());
        }
        FeedFile::new(file.feed).map_err(|fault| fault.with_line(text))
    }

    /// Checks feeds that are well formed each.
    pub fn new(feeds: Vec<FeedConfig>) -> Result<FeedFile, Fault> {
        let mut used = HashMap::new();
        for (index, feed) in feeds.iter().enumerate() {
            let fault = |key, message: String| Fault::of_feed(index, key, message);
            check_feed(feed).map_err(|(key, message)| fault(key, message))?;
            if feeds[..index].iter().any(|other| other.name() == feed.name()) {
                let message = format!(
                    "two feeds have the name {:?}; give them different ones with `name`",
                    feed.name()
                );
                return Err(fault(if feed.name.is_some() { "name" } else { "venue" }, message));
            }
            for (at, channel) in feed.channels.iter().enumerate() {
                let fault = |(key, message): (&'static str, String)| Fault {
                    feed: index,
                    channel: Some(at),
                    key,
                    message: format!("feed {}, channel {:?}: {message}", feed.name(), channel.name),
                };
                let is_twice = feed.channels[..at].iter().any(|c| c.name == channel.name);
                if channel.name.is_empty() || is_twice {
                    let what = if is_twice {
                        "a second channel of this name"
                    } else {
                        "no name"
                    };
                    return Err(fault(("name", what.into())));
                }
                check_channel(feed.protocol(), channel).map_err(fault)?;
                for port in Port::ALL {
                    for (address, line) in channel.addresses(port) {
                        let place = Destination {
                            feed: index,
                            channel: at,
                            port,
                            line,
                        };
                        enter(&mut used, &feeds, address, place).map_err(|m| fault((port.name(), m)))?;
                    }
                }
            }
        }
        let datagrams = used
            .into_iter()
            .filter(|((transport, _), _)| *transport != Transport::Stream)
            .map(|((_, address), place)| (address, place))
            .collect();
        Ok(FeedFile { feeds, datagrams })
    }

    /// What a datagram to this address is.
    pub fn find(&self, address: SocketAddr) -> Option<Destination> {
        match address {
            SocketAddr::V4(address) => self.datagrams.get(&address).copied(),
            SocketAddr::V6(_) => None,
        }
    }
}

/// Every address with what it is for. Groups and servers of requests share the numbers of UDP.
type Used = HashMap<(Transport, SocketAddrV4), Destination>;

/// Notes an address. One that does one job for several channels of a feed is fine, but for live data.
fn enter(
    used: &mut Used,
    feeds: &[FeedConfig],
    address: SocketAddrV4,
    place: Destination,
) -> Result<(), String> {
    let transport = match place.port.transport() {
        Transport::Stream => Transport::Stream,
        Transport::Multicast | Transport::Datagram => Transport::Multicast,
    };
    let Some(before) = used.get(&(transport, address)) else {
        used.insert((transport, address), place);
        return Ok(());
    };
    let same_job = (before.feed, before.port, before.line) == (place.feed, place.port, place.line);
    if same_job && place.port != Port::Live || address.port() == 0 {
        return Ok(());
    }
    let feed = &feeds[before.feed];
    let line = before
        .line_name()
        .map_or(String::new(), |line| format!(".{line}"));
    Err(format!(
        "{address} is already {}{line} of feed {}, channel {:?}",
        before.port.name(),
        feed.name(),
        feed.channels[before.channel].name
    ))
}

/// What concerns a feed beside its channels; the key to blame and the sentence.
fn check_feed(feed: &FeedConfig) -> Result<(), (&'static str, String)> {
    let spoken = Protocol::of_venue(feed.venue);
    let names = |protocols: &[Protocol]| {
        let names: Vec<_> = protocols.iter().map(|p| format!("{:?}", p.name())).collect();
        names.join(" or ")
    };
    match feed.protocol {
        None if spoken.len() > 1 => {
            let message = format!("venue {} needs protocol = {}", feed.venue.name(), names(spoken));
            return Err(("venue", message));
        }
        Some(protocol) if !spoken.contains(&protocol) => {
            let message = format!(
                "venue {} does not speak {protocol}, but {}",
                feed.venue.name(),
                names(spoken)
            );
            return Err(("protocol", message));
        }
        _ => {}
    }
    match (feed.protocol(), &feed.templates[..]) {
        (Protocol::Moex, []) => {
            let message = format!(
                "feed {}: MOEX needs templates = [\"FILE\"], the exchange's FAST template file",
                feed.name()
            );
            return Err(("venue", message));
        }
        (Protocol::Moex, _) | (_, []) => {}
        (protocol, _) => {
            let message = format!(
                "feed {}: templates are for MOEX, {protocol} has none",
                feed.name()
            );
            return Err(("templates", message));
        }
    }
    if feed.xdp.is_some() && feed.protocol() != Protocol::Xdp {
        let message = format!(
            "feed {}: xdp is for NYSE's XDP, not for {}",
            feed.name(),
            feed.protocol()
        );
        return Err(("xdp", message));
    }
    if let Some(recovery) = &feed.recovery {
        recovery
            .check(feed.protocol())
            .map_err(|message| ("recovery", format!("feed {}: {message}", feed.name())))?;
    }
    if let Some(session) = &feed.session {
        if !matches!(feed.protocol(), Protocol::Itch50 | Protocol::Uqdf) {
            let message = format!("feed {}: {} has no session name", feed.name(), feed.protocol());
            return Err(("session", message));
        }
        if session.len() != 10 || !session.is_ascii() {
            let message = format!("session {session:?} must have exactly 10 ASCII characters");
            return Err(("session", message));
        }
    }
    if feed.name().is_empty() {
        return Err((
            "name",
            "a feed's name must not be empty; leave it out for the venue's".into(),
        ));
    }
    if feed.channels.is_empty() {
        let message = format!("feed {} has no [[feed.channel]]", feed.name());
        return Err(("venue", message));
    }
    Ok(())
}

/// What concerns one channel; the key to blame and the sentence.
fn check_channel(protocol: Protocol, channel: &ChannelConfig) -> Result<(), (&'static str, String)> {
    let allowed = protocol.ports();
    for port in Port::ALL {
        for (address, line) in channel.addresses(port) {
            let wrong = |message: String| Err((port.name(), message));
            if !allowed.contains(&port) {
                let names: Vec<_> = allowed.iter().map(|p| p.name()).collect();
                return wrong(format!(
                    "{protocol} has no {}; it has {}",
                    port.name(),
                    names.join(", ")
                ));
            }
            // A server may be given port 0: any that is free, which it then says.
            if address.port() == 0 && line.is_some() {
                return wrong(format!("{} = {address}: port 0 is none", port.name()));
            }
            match line {
                Some(_) if !address.ip().is_multicast() => {
                    return wrong(format!(
                        "{} = {address} is not a multicast group; use one in 239.0.0.0/8 for tests",
                        port.name()
                    ));
                }
                None if address.ip().is_multicast() => {
                    return wrong(format!(
                        "{} = {address} is a multicast group, but a server has an address of its own",
                        port.name()
                    ));
                }
                _ => {}
            }
        }
    }
    for port in Port::ALL {
        let Some(lines) = channel.lines(port) else {
            continue;
        };
        for source in [lines.source_a, lines.source_b].into_iter().flatten() {
            if source.is_multicast() || source.is_broadcast() || source.is_unspecified() {
                let message = format!(
                    "the source {source} of {} is no sender's address; give the one that the venue sends from",
                    port.name()
                );
                return Err((port.name(), message));
            }
        }
        if lines.b.is_none() && lines.source_b.is_some() {
            let message = format!("{} has source_b but no line b", port.name());
            return Err((port.name(), message));
        }
    }
    for port in Port::ALL {
        if let Some(address) = channel.backup.server(port)
            && (channel.server(port).is_none() || address.ip().is_multicast())
        {
            let message = match channel.server(port) {
                None => format!(
                    "backup.{} = {address}: there is no {} to stand in for",
                    port.name(),
                    port.name()
                ),
                Some(_) => format!("backup.{} = {address} is a multicast group", port.name()),
            };
            return Err(("backup", message));
        }
    }
    let answers: &[Port] = match protocol {
        Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
            &[Port::Retransmission]
        }
        Protocol::Xdp | Protocol::Openbook => &[Port::Retransmission, Port::Snapshot],
        _ => &[],
    };
    let has = |port: &Port| channel.lines(*port).is_some();
    if channel.replay.is_some() && !answers.is_empty() && !answers.iter().any(has) {
        let names: Vec<_> = answers.iter().map(|p| p.name()).collect();
        return Err((
            "replay",
            format!(
                "what {protocol} replays comes on multicast: {} is missing",
                names.join(" or ")
            ),
        ));
    }
    Ok(())
}

/// A venue by its configuration name.
mod venue_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use tickwire_market::Venue;

    pub(super) fn serialize<S: Serializer>(venue: &Venue, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(venue.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Venue, D::Error> {
        let name = String::deserialize(deserializer)?;
        Venue::from_name(&name).ok_or_else(|| {
            let names: Vec<_> = Venue::ALL.iter().map(|v| v.name()).collect();
            D::Error::custom(format!("unknown venue {name:?}; one of {}", names.join(", ")))
        })
    }
}

/// A file: feeds, and what other parts of the program read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    feed: Vec<FeedConfig>,
    #[serde(rename = "receiver")]
    _receiver: Option<IgnoredAny>,
    #[serde(rename = "exchange")]
    _exchange: Option<IgnoredAny>,
    #[serde(rename = "trader")]
    _trader: Option<IgnoredAny>,
    #[serde(rename = "order_entry")]
    _order_entry: Option<IgnoredAny>,
    #[serde(rename = "daemon")]
    _daemon: Option<IgnoredAny>,
    #[serde(rename = "access")]
    _access: Option<IgnoredAny>,
    #[serde(rename = "quoter")]
    _quoter: Option<IgnoredAny>,
    #[serde(rename = "controls")]
    _controls: Option<IgnoredAny>,
    #[serde(rename = "watchdog")]
    _watchdog: Option<IgnoredAny>,
    #[serde(rename = "strategy")]
    _strategy: Option<IgnoredAny>,
    #[serde(rename = "backtest")]
    _backtest: Option<IgnoredAny>,
    #[serde(rename = "session")]
    _session: Option<IgnoredAny>,
    #[serde(rename = "strategies")]
    _strategies: Option<IgnoredAny>,
}

/// Where in the text values stand.
type Keys = HashMap<String, Spanned<IgnoredAny>>;

#[derive(Deserialize)]
struct SpannedFile {
    feed: Vec<Spanned<SpannedFeed>>,
}

#[derive(Deserialize)]
struct SpannedFeed {
    name: Option<Spanned<IgnoredAny>>,
    venue: Option<Spanned<IgnoredAny>>,
    protocol: Option<Spanned<IgnoredAny>>,
    templates: Option<Spanned<IgnoredAny>>,
    xdp: Option<Spanned<IgnoredAny>>,
    session: Option<Spanned<IgnoredAny>>,
    consolidate: Option<Spanned<IgnoredAny>>,
    recovery: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    channel: Vec<Spanned<Keys>>,
}

/// The line of the value that a fault is about, or of the table that should have it; from 1.
fn line_of(text: &str, fault: &Fault) -> Option<usize> {
    let file: SpannedFile = tickwire_console::settings::read(text).ok()?;
    let feed = file.feed.get(fault.feed)?;
    let of_feed = |key: &str| {
        let value = match key {
            "name" => &feed.get_ref().name,
            "protocol" => &feed.get_ref().protocol,
            "templates" => &feed.get_ref().templates,
            "xdp" => &feed.get_ref().xdp,
            "session" => &feed.get_ref().session,
            "consolidate" => &feed.get_ref().consolidate,
            "recovery" => &feed.get_ref().recovery,
            _ => &feed.get_ref().venue,
        };
        value.as_ref().map_or(feed.span(), Spanned::span)
    };
    let span = match fault.channel {
        None => of_feed(fault.key),
        Some(channel) => {
            let channel = feed.get_ref().channel.get(channel)?;
            let value = channel.get_ref().get(fault.key);
            value.map_or(channel.span(), Spanned::span)
        }
    };
    Some(1 + text.get(..span.start)?.matches('\n').count())
}

#[cfg(test)]
mod tests;
