//! Streams: what came to one destination for one session or unit, counted packet by packet.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tickwire_feed::SessionId;
use tickwire_market::Port;
use tickwire_venues::protocol::{Detector, Protocol, Verdict};
use tickwire_venues::wiring::PUBLISHED;
use tickwire_wire::fast::Plan;

use super::framed::{Framed, frame, instrument, port_of};
use super::keys::Keys;
use super::{Load, Survey};
use crate::replay::lines::{Lines, hash, mix};

/// Packets of a stream of which every one is looked into for instruments and roles; of later ones every
/// [`KEYS_LATER`]th.
const KEYS_UNTIL: u64 = 64;
const KEYS_LATER: u64 = 256;
/// Instruments of a stream that are remembered.
const KEYS_MAX: usize = 8192;

/// The packet of this number in its stream, from 1, is looked into for instruments.
fn is_looked_into(packet: u64) -> bool {
    packet <= KEYS_UNTIL || packet.is_multiple_of(KEYS_LATER)
}

/// What is known of one stream.
pub(super) struct Stream {
    pub(super) destination: usize,
    pub(super) protocol: Protocol,
    pub(super) session: SessionId,
    pub(super) load: Load,
    pub(super) packets: u64,
    /// Packets that carry messages, by what they were sent for.
    ports: [u64; Port::COUNT],
    /// Instruments, hashed.
    pub(super) keys: HashSet<u64>,
}

impl Stream {
    /// What it is for. A live stream may carry definitions too, and the loop of orders carries headers of the
    /// other one.
    pub(super) fn port(&self) -> Port {
        const BY_RANK: [Port; 5] = [
            Port::Live,
            Port::SnapshotByOrder,
            Port::Snapshot,
            Port::Definitions,
            Port::Retransmission,
        ];
        let has = |port: &Port| self.ports[*port as usize] > 0;
        BY_RANK.into_iter().find(has).unwrap_or(Port::Live)
    }
}

/// What is known of a destination.
pub(super) struct Destination {
    pub(super) address: SocketAddr,
    pub(super) protocol: Option<Protocol>,
    packets: u64,
    /// There were heartbeats, which several protocols have in common.
    beats: bool,
    /// Packets that wait until the protocol is known.
    waiting: Vec<Vec<u8>>,
    /// Indices of its streams.
    pub(super) streams: Vec<usize>,
    /// The stream of the last packet, and how often that changed.
    latest: usize,
    pub(super) changes: u64,
}

/// See the module's description.
pub(super) struct Surveyor {
    forced: Option<Protocol>,
    detector: Detector,
    by_address: HashMap<SocketAddr, usize>,
    pub(super) destinations: Vec<Destination>,
    pub(super) streams: Vec<Stream>,
    pub(super) lines: Lines,
    keys: Keys,
    /// Packets of which every message was visited field by field.
    looked_into: u64,
}

impl Surveyor {
    pub(super) fn new(forced: Option<Protocol>, templates: &[Arc<Plan>]) -> Result<Surveyor, String> {
        Ok(Surveyor {
            forced,
            detector: Detector::new(templates)?,
            by_address: HashMap::new(),
            destinations: Vec::new(),
            streams: Vec::new(),
            lines: Lines::new(),
            keys: Keys::default(),
            looked_into: 0,
        })
    }

    pub(super) fn on_packet(&mut self, address: SocketAddr, payload: &[u8]) -> Result<(), String> {
        let index = *self.by_address.entry(address).or_insert_with(|| {
            self.destinations.push(Destination {
                address,
                protocol: self.forced,
                packets: 0,
                beats: false,
                waiting: Vec::new(),
                streams: Vec::new(),
                latest: 0,
                changes: 0,
            });
            self.destinations.len() - 1
        });
        let destination = &mut self.destinations[index];
        destination.packets += 1;
        if let Some(protocol) = destination.protocol {
            self.take(index, protocol, payload);
            return Ok(());
        }
        match self
            .detector
            .observe(address, payload)
            .map_err(|a| a.to_string())?
        {
            Verdict::Is(protocol) => self.is(index, protocol, Some(payload)),
            Verdict::Wait => destination.waiting.push(payload.to_vec()),
            Verdict::Idle(_) => destination.beats = true,
            Verdict::Unknown => destination.waiting.clear(),
        }
        Ok(())
    }

    /// The protocol of a destination is known now.
    fn is(&mut self, index: usize, protocol: Protocol, last: Option<&[u8]>) {
        self.destinations[index].protocol = Some(protocol);
        let waiting = std::mem::take(&mut self.destinations[index].waiting);
        for payload in waiting.iter().map(Vec::as_slice).chain(last) {
            self.take(index, protocol, payload);
        }
    }

    /// A packet of a known protocol.
    fn take(&mut self, index: usize, protocol: Protocol, payload: &[u8]) {
        let (mut of, mut highest) = (None, None);
        let framed = frame(protocol, payload, &mut |session, number, message| {
            let (stream, kind) = *of.get_or_insert_with(|| {
                let kind = mix(hash(&session.0) ^ protocol as u64);
                (self.stream(index, protocol, session), kind)
            });
            self.lines.note(stream, kind, number, message);
            if let Some(number) = instrument(protocol, message) {
                highest = highest.max(Some(number));
                let found = &mut self.streams[stream];
                if is_looked_into(found.packets + 1) && found.keys.len() < KEYS_MAX {
                    found.keys.insert(mix(number.into()));
                }
            }
        });
        let (Some(Framed { count, .. }), Some((stream, _))) = (framed, of) else {
            return;
        };
        let port = port_of(protocol, payload);
        let found = &mut self.streams[stream];
        found.packets += 1;
        found.load.note(count.into(), payload.len(), highest);
        let has_loops = matches!(protocol, Protocol::Mdp3 | Protocol::Moex);
        if !has_loops {
            found.ports[port as usize] += 1;
        }
        let is_looked_into = is_looked_into(found.packets);
        let has_snapshots = matches!(protocol, Protocol::Openbook | Protocol::Cqs);
        if has_loops || has_snapshots && is_looked_into {
            self.keys.port = None;
            self.keys.is_looked_into = is_looked_into;
            match protocol {
                // The template says what a packet is for.
                Protocol::Mdp3 if !is_looked_into => self.keys.note_templates(payload),
                _ => {
                    self.looked_into += 1;
                    _ = self.detector.reader(protocol).packet(payload, &mut self.keys);
                }
            }
            if has_loops && let Some(port) = self.keys.port {
                found.ports[port as usize] += 1;
            }
            for key in self.keys.keys.drain(..) {
                if found.keys.len() < KEYS_MAX {
                    found.keys.insert(key);
                }
            }
        }
    }

    /// The stream of a packet.
    fn stream(&mut self, index: usize, protocol: Protocol, session: SessionId) -> usize {
        let destination = &mut self.destinations[index];
        if destination.streams.is_empty() || self.streams[destination.latest].session != session {
            let known = destination.streams.iter().copied();
            let known = known.into_iter().find(|s| self.streams[*s].session == session);
            destination.latest = known.unwrap_or_else(|| {
                self.streams.push(Stream {
                    destination: index,
                    protocol,
                    session,
                    load: Load::default(),
                    packets: 0,
                    ports: [0; Port::COUNT],
                    keys: HashSet::new(),
                });
                self.lines.add();
                self.streams.len() - 1
            });
            match known {
                Some(_) => destination.changes += 1,
                None => destination.streams.push(destination.latest),
            }
        }
        destination.latest
    }

    /// Nothing comes any more.
    pub(super) fn settle(mut self) -> Result<Survey, String> {
        self.detector.settle_all().map_err(|a| a.to_string())?;
        for index in 0..self.destinations.len() {
            let Some(first) = self.destinations[index].waiting.first() else {
                continue;
            };
            let address = self.destinations[index].address;
            if let Verdict::Is(protocol) = self.detector.verdict(address, first) {
                self.is(index, protocol, None);
            }
        }
        let channel_of = self.grouped();
        let mut survey = Survey {
            streams: self.streams.len(),
            looked_into: self.looked_into,
            ..Survey::default()
        };
        self.enter(&channel_of, &mut survey);
        for destination in &self.destinations {
            let is_played = destination.protocol.is_none_or(|p| PUBLISHED.contains(&p));
            let beats = destination.beats || destination.protocol.is_some() && self.forced.is_none();
            match destination.streams.is_empty() {
                true if beats && destination.waiting.is_empty() => survey.idle += 1,
                false if is_played => {}
                _ => survey
                    .left_out
                    .push((destination.address, destination.packets, destination.protocol)),
            }
        }
        survey
            .left_out
            .sort_unstable_by_key(|left| (std::cmp::Reverse(left.1), left.0));
        Ok(survey)
    }
}
