//! Channels: which streams are one, and which line and port each of its addresses is.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use tickwire_feed::{Line, SessionId};
use tickwire_market::Port;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::PUBLISHED;

use super::streams::{Stream, Surveyor};
use super::{Addressee, At, Found, Load, Survey};

impl Surveyor {
    /// Which streams are one channel: the index of a stream that stands for it, by stream.
    pub(super) fn grouped(&self) -> Vec<usize> {
        let mut of: Vec<usize> = (0..self.streams.len()).collect();
        fn root(of: &[usize], mut stream: usize) -> usize {
            while of[stream] != stream {
                stream = of[stream];
            }
            stream
        }
        let join = |of: &mut Vec<usize>, one: usize, other: usize| {
            let (one, other) = (root(of, one), root(of, other));
            of[one.max(other)] = one.min(other);
        };
        for (index, stream) in self.streams.iter().enumerate() {
            let is_live = matches!(stream.port(), Port::Live | Port::Retransmission);
            for (other, agreement) in self.lines.partners(index) {
                let theirs = self.streams[other].port();
                let is_one = if is_live {
                    matches!(theirs, Port::Live | Port::Retransmission) && agreement.is_one_channel(false)
                } else {
                    theirs == stream.port() && agreement.is_one_channel(true)
                };
                if is_one {
                    join(&mut of, index, other);
                }
            }
        }
        // Sessions of one destination that follow each other are days of one channel.
        for destination in &self.destinations {
            let sessions = &destination.streams;
            let is_mold = matches!(destination.protocol, Some(Protocol::Itch50 | Protocol::Uqdf));
            if is_mold && destination.changes <= 4 * sessions.len() as u64 {
                sessions.iter().for_each(|s| join(&mut of, sessions[0], *s));
            }
        }
        let mut of: Vec<usize> = (0..of.len()).map(|stream| root(&of, stream)).collect();
        self.split(&mut of);
        // What is sent again or in a loop belongs to the live stream that is about the same instruments.
        let live: Vec<usize> = (0..of.len())
            .filter(|s| of[*s] == *s && self.has_live(&of, *s))
            .collect();
        let others: Vec<usize> = (0..of.len())
            .filter(|s| of[*s] == *s && !live.contains(s))
            .collect();
        for other in others {
            if let Some(best) = self.nearest(&live, other) {
                of[other] = best;
            }
        }
        (0..of.len()).map(|stream| root(&of, stream)).collect()
    }

    /// A channel has two lines: more copies of the whole are more channels that say the same (nothing but a
    /// beginning of the day, or one market published twice). Lines of one channel mostly have one port
    /// number.
    fn split(&self, of: &mut [usize]) {
        let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
        for (stream, group) in of.iter().enumerate() {
            groups.entry(*group).or_default().push(stream);
        }
        for members in groups.into_values() {
            let most = members
                .iter()
                .map(|s| self.streams[*s].packets)
                .max()
                .unwrap_or(0);
            let (mut whole, part): (Vec<usize>, Vec<usize>) = members
                .into_iter()
                .partition(|s| self.streams[*s].packets * 2 >= most);
            self.part_with(of, &whole, part);
            let addresses: HashSet<SocketAddr> =
                whole.iter().map(|s| self.address(&self.streams[*s])).collect();
            if addresses.len() <= 2 || addresses.len() < whole.len() {
                continue;
            }
            whole.sort_by_key(|s| {
                let address = self.address(&self.streams[*s]);
                (address.port(), octets(address))
            });
            let port = |s: &usize| self.address(&self.streams[*s]).port();
            let all_alone = whole
                .chunk_by(|a, b| port(a) == port(b))
                .all(|of_port| of_port.len() == 1);
            let pairs: Vec<&[usize]> = match all_alone {
                true => whole.chunks(2).collect(),
                false => whole
                    .chunk_by(|a, b| port(a) == port(b))
                    .flat_map(|of_port| of_port.chunks(2))
                    .collect(),
            };
            let first = of[whole[0]];
            for (number, pair) in pairs.into_iter().enumerate() {
                // Copies that are not whole stay with the first.
                let root = if pair.contains(&first) || number == 0 && !whole.contains(&first) {
                    first
                } else {
                    pair[0]
                };
                pair.iter().for_each(|s| of[*s] = root);
            }
        }
    }

    /// Where nothing is sent again by multicast, groups that hardly began and have port numbers of their own
    /// are channels that begin with the same messages (the session's status), and no copies of the `whole`
    /// ones.
    fn part_with(&self, of: &mut [usize], whole: &[usize], mut part: Vec<usize>) {
        let port = |s: &usize| self.address(&self.streams[*s]).port();
        let ports: HashSet<u16> = whole.iter().map(port).collect();
        part.retain(|s| {
            let stream = &self.streams[*s];
            let is_sent_again = stream.protocol.ports().contains(&Port::Retransmission);
            !is_sent_again && self.address(stream).ip().is_multicast() && !ports.contains(&port(s))
        });
        let root = of[whole[0]];
        if part.contains(&root) {
            for group in of.iter_mut().filter(|group| **group == root) {
                *group = whole[0];
            }
        }
        part.sort_by_key(|s| (port(s), octets(self.address(&self.streams[*s]))));
        for pair in part
            .chunk_by(|a, b| port(a) == port(b))
            .flat_map(|of_port| of_port.chunks(2))
        {
            pair.iter().for_each(|s| of[*s] = pair[0]);
        }
    }

    fn has_live(&self, of: &[usize], group: usize) -> bool {
        self.streams
            .iter()
            .zip(of)
            .any(|(stream, of)| *of == group && stream.port() == Port::Live)
    }

    /// The live stream with most instruments of another one; among equals the one with the nearest address.
    fn nearest(&self, live: &[usize], other: usize) -> Option<usize> {
        let stream = &self.streams[other];
        let distance = |one: &Stream| {
            let (a, b) = (self.address(one), self.address(stream));
            (
                u32::from(a.port().abs_diff(b.port())),
                octets(a).abs_diff(octets(b)),
            )
        };
        live.iter()
            .copied()
            .filter(|l| self.streams[*l].protocol == stream.protocol)
            .map(|l| {
                let common = self.streams[l].keys.intersection(&stream.keys).count();
                (common, l)
            })
            .filter(|(common, _)| *common > 0)
            .max_by_key(|(common, l)| (*common, std::cmp::Reverse(distance(&self.streams[*l]))))
            .map(|(_, l)| l)
    }

    fn address(&self, stream: &Stream) -> SocketAddr {
        self.destinations[stream.destination].address
    }

    /// Gives every channel its lines, and every destination its channels.
    pub(super) fn enter(&self, group_of: &[usize], survey: &mut Survey) {
        let mut groups: Vec<usize> = group_of.to_vec();
        groups.sort_unstable();
        groups.dedup();
        let mut addressees: Vec<Vec<(SessionId, At)>> = vec![Vec::new(); self.destinations.len()];
        for group in groups {
            let protocol = self.streams[group].protocol;
            if !PUBLISHED.contains(&protocol) {
                continue;
            }
            let mut members: Vec<usize> = (0..group_of.len()).filter(|s| group_of[*s] == group).collect();
            members.sort_by_key(|s| self.address(&self.streams[*s]));
            let channel = survey.channels.len();
            let mut on: Vec<(SocketAddr, Port, Line)> = Vec::new();
            let mut load = Load::default();
            let is_alone = !self.has_live(group_of, group);
            for port in [
                Port::Live,
                Port::Retransmission,
                Port::Snapshot,
                Port::SnapshotByOrder,
                Port::Definitions,
            ] {
                let of_port = members.iter().map(|s| (*s, &self.streams[*s]));
                let of_port: Vec<_> = of_port.filter(|(_, s)| s.port() == port).collect();
                let most = of_port.iter().map(|(_, s)| s.packets).max().unwrap_or(0);
                let fullest = of_port.iter().map(|(_, s)| s.load).max_by_key(|load| load.bytes);
                load = load.and(fullest.unwrap_or_default());
                load.highest = of_port
                    .iter()
                    .fold(load.highest, |most, (_, s)| most.max(s.load.highest));
                let mut lines: Vec<SocketAddr> = Vec::new();
                for (_, stream) in &of_port {
                    let address = self.address(stream);
                    let known = lines.iter().position(|a| *a == address);
                    // A copy that is not whole is what was sent again.
                    let is_whole = stream.packets * 2 >= most || known.is_some();
                    let number = known.unwrap_or_else(|| {
                        if is_whole {
                            lines.push(address);
                        }
                        lines.len() - usize::from(is_whole)
                    });
                    let (port, line) = match (port, number) {
                        (Port::Live, 0) if is_whole => (Port::Live, Line::A),
                        (Port::Live, 1) if is_whole => (Port::Live, Line::B),
                        (Port::Live, _) => (Port::Retransmission, Line::Retransmit),
                        // Sent again of what is not in the recording: it is all there is.
                        (Port::Retransmission, 0) if is_alone => (Port::Live, Line::A),
                        (Port::Retransmission, _) => (port, Line::Retransmit),
                        (_, number) => (port, if number == 0 { Line::A } else { Line::B }),
                    };
                    let port = if protocol.ports().contains(&port) {
                        port
                    } else {
                        Port::Live
                    };
                    if known.is_none() {
                        on.push((address, port, line));
                    }
                    addressees[stream.destination].push((stream.session, At { channel, port, line }));
                }
            }
            let session = self.streams[group].session;
            survey.channels.push(Found {
                protocol,
                unit: (protocol == Protocol::Pitch).then_some(session.0[0]),
                session: None,
                on,
                load,
            });
        }
        for (destination, of) in self.destinations.iter().zip(addressees) {
            let Some(protocol) = destination.protocol else {
                continue;
            };
            let addressee = match &of[..] {
                [] => continue,
                // Heartbeats of the other days too.
                [(_, at), rest @ ..] if rest.iter().all(|(_, other)| other == at) => Addressee::One(*at),
                several => {
                    let is_mold = matches!(protocol, Protocol::Itch50 | Protocol::Uqdf);
                    for (session, at) in several.iter().filter(|_| is_mold) {
                        survey.channels[at.channel].session = Some(session.0);
                    }
                    Addressee::Several(protocol, of)
                }
            };
            survey.places.insert(destination.address, addressee);
        }
    }
}

/// An address as a number.
fn octets(address: SocketAddr) -> u128 {
    match address {
        SocketAddr::V4(v4) => u128::from(v4.ip().to_bits()),
        SocketAddr::V6(v6) => v6.ip().to_bits(),
    }
}
