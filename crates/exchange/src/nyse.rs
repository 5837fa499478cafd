//! What the channels of NYSE feeds have in common, whatever their bytes: numbered units kept for
//! retransmission, three multicast groups (live, retransmission, refresh) with their heartbeats, and one
//! request server over TCP.
//!
//! ```text
//!  writer ─► MessageStore ─┬─► live packets ────────────► Port::Live
//!                          └─► what was asked for again ─► Port::Retransmission
//!  snapshot of the engine ───► refresh packets ──────────► Port::Snapshot
//!  requests ─► RequestServer ─► responses                  Port::Replay
//! ```
//! A unit is what the feed numbers: a message of XDP, a packet of OpenBook Ultra. Responses tell only whether
//! a request is accepted; what was asked for goes to everybody who listens to the channel's group.

mod publisher;
mod server;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo, Venue};
use tickwire_persist::{Persist, persist};

use crate::mold::MessageStore;
use crate::tape::{Datagram, LineSet};

pub use publisher::NysePublisher;
pub(crate) use publisher::NyseWriter;
pub(crate) use server::{Ask, Refusal, Request, RequestFormat, RequestServer, append};

/// Everything about a channel of a NYSE feed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NysePublisherConfig {
    /// Whose feed it is: XDP of NYSE, Arca, American, National or Texas; OpenBook Ultra of NYSE or American.
    pub venue: Venue,
    /// The channel's number, which XDP requests name.
    pub channel: u8,
    /// The largest packet, at most the venue's 1,400 bytes.
    pub datagram_max: usize,
    /// Bytes kept for retransmission (2 more per unit); the oldest units are forgotten first.
    pub store_bytes: usize,
    /// Units kept for retransmission.
    pub store_units: usize,
    /// Silence of a group before a heartbeat. The venue's is a second.
    pub heartbeat_ns: u64,
    /// The least time between two packets of the retransmission or the refresh group: a refresh must not
    /// flood its readers.
    pub spacing_ns: u64,
    /// Request connections are numbered 0 to this, exclusive.
    pub connections: usize,
    /// What the request server allows.
    pub limits: RequestLimits,
}

impl Default for NysePublisherConfig {
    fn default() -> NysePublisherConfig {
        NysePublisherConfig {
            venue: Venue::Nyse,
            channel: 1,
            datagram_max: 1400,
            store_bytes: 256 << 20,
            store_units: 8 << 20,
            heartbeat_ns: Nanos::SECOND,
            spacing_ns: 10 * Nanos::MICRO,
            connections: 4,
            limits: RequestLimits::default(),
        }
    }
}

/// What a request server allows, and its times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestLimits {
    /// The most units of one request. The venue's limit is 1,000.
    pub range_max: u32,
    /// Retransmission requests a day, over all connections.
    pub retransmissions_max: u32,
    /// Refresh requests a day, over all connections.
    pub refreshes_max: u32,
    /// Silence of ours before a heartbeat. The venue's is 60 seconds.
    pub heartbeat_ns: u64,
    /// How long a client may take to answer a heartbeat. XDP says 5 seconds, OpenBook Ultra 120.
    pub answer_ns: u64,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            range_max: 1000,
            retransmissions_max: 10_000,
            refreshes_max: 5000,
            heartbeat_ns: 60 * Nanos::SECOND,
            answer_ns: 5 * Nanos::SECOND,
        }
    }
}

/// Packets of a feed's groups.
pub trait PacketFormat: RequestFormat {
    /// Writes a packet with units from `first` on, before `end`; its length and the unit after its last one.
    /// `again`: they are retransmitted. `buffer` is the largest packet.
    fn pack(
        &self,
        store: &MessageStore,
        first: u64,
        end: u64,
        again: bool,
        now: Nanos,
        buffer: &mut [u8],
    ) -> (usize, u64);

    /// Writes a heartbeat telling the next number.
    fn heartbeat(&self, next: u32, now: Nanos, buffer: &mut [u8]) -> usize;

    /// Writes a packet saying that units `first` to `last`, both included, cannot be retransmitted.
    fn unavailable(&self, first: u32, last: u32, now: Nanos, buffer: &mut [u8]) -> usize;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// Heartbeats until then.
    Ending {
        until: Nanos,
    },
    Over,
}

/// What waits for the retransmission group.
#[derive(Clone, Copy)]
enum Again {
    /// Units from, to exclusive.
    Units(u64, u64),
    /// These are not kept any more.
    Unavailable(u32, u32),
}

/// The three groups of a channel. See the module's description.
pub struct Groups<F> {
    format: F,
    store: MessageStore,
    heartbeat_ns: u64,
    spacing_ns: u64,
    /// The next unit to send.
    unsent: u64,
    /// When something was sent last: live, retransmission, refresh.
    sent_at: [Nanos; 3],
    again: VecDeque<Again>,
    /// Packets of refreshes: whole, but for the time of sending.
    refreshes: VecDeque<Vec<u8>>,
    /// The number of the refresh group's next message.
    refresh_next: u32,
    stage: Stage,
    scratch: Vec<u8>,
}

const GROUPS: [Port; 3] = [Port::Live, Port::Retransmission, Port::Snapshot];

impl<F: PacketFormat> Groups<F> {
    pub fn new(config: &NysePublisherConfig, format: F) -> Groups<F> {
        Groups {
            format,
            store: MessageStore::new(config.store_bytes, config.store_units),
            heartbeat_ns: config.heartbeat_ns,
            spacing_ns: config.spacing_ns,
            unsent: 1,
            sent_at: [Nanos::ZERO; 3],
            again: VecDeque::new(),
            refreshes: VecDeque::new(),
            refresh_next: 1,
            stage: Stage::Open,
            scratch: vec![0; config.datagram_max.clamp(256, 1400)],
        }
    }

    pub fn format(&self) -> &F {
        &self.format
    }

    pub fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    pub fn store(&self) -> &MessageStore {
        &self.store
    }

    /// Its messages.
    pub fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    /// The largest packet.
    pub fn packet_max(&self) -> usize {
        self.scratch.len()
    }

    /// Numbers a unit; it goes out with the next poll.
    pub fn push(&mut self, unit: &[u8]) {
        self.store.push(unit);
    }

    /// Sends units again that were sent once: all of `first` to `last`, both included, that are kept.
    pub fn send_again(&mut self, first: u32, last: u32) {
        let oldest = self.store.first().0;
        let (first, last) = (u64::from(first), u64::from(last));
        if first < oldest {
            let end = last.min(oldest - 1) as u32;
            self.again.push_back(Again::Unavailable(first as u32, end));
        }
        if last >= oldest {
            self.again.push_back(Again::Units(first.max(oldest), last + 1));
        }
    }

    /// The number of the next message of the refresh group; `messages` are about to be added.
    pub fn take_refresh_number(&mut self, messages: u32) -> u32 {
        let number = self.refresh_next;
        self.refresh_next = self.refresh_next.wrapping_add(messages);
        number
    }

    /// Sends a packet on the refresh group, in its turn.
    pub fn send_refresh(&mut self, packet: Vec<u8>) {
        self.refreshes.push_back(packet);
    }

    /// No unit follows: heartbeats tell the last number for `linger_ns`, then nothing goes out but what is
    /// asked for. Said again, they go out for so long from then on.
    pub fn end(&mut self, now: Nanos, linger_ns: u64) {
        if self.stage != Stage::Over {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
    }

    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over && self.unsent >= self.store.next().0
    }

    pub fn poll_timeout(&self) -> Option<Nanos> {
        let recovers = !self.again.is_empty() || !self.refreshes.is_empty();
        let sent = self.sent_at[1].max(self.sent_at[2]);
        let recovery = recovers.then(|| sent.after(self.spacing_ns));
        let live = match self.stage {
            _ if self.unsent < self.store.next().0 => Some(self.sent_at[0]),
            Stage::Open => self
                .sent_at
                .iter()
                .map(|sent| sent.after(self.heartbeat_ns))
                .min(),
            Stage::Ending { until } => Some(until.min(self.sent_at[0].after(self.silence_ns(0)))),
            Stage::Over => None,
        };
        [recovery, live].into_iter().flatten().min()
    }

    pub fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        if self.unsent < self.store.next().0 {
            return Some(self.send_live(now));
        }
        if let Stage::Ending { until } = self.stage
            && now >= until
        {
            self.stage = Stage::Over;
        }
        let (group, length) = self.recover(now).or_else(|| self.idle(now))?;
        self.sent_at[group] = now;
        let (first, next) = match group {
            0 => (SeqNo(self.unsent), SeqNo(self.unsent)),
            _ => (SeqNo(0), SeqNo(0)),
        };
        Some(Datagram {
            port: GROUPS[group],
            lines: LineSet::BOTH,
            first,
            next,
            bytes: &self.scratch[..length],
        })
    }

    fn send_live(&mut self, now: Nanos) -> Datagram<'_> {
        // The store is large enough for what one poll leaves behind; if not, receivers see a gap that nobody
        // can fill.
        let first = self.unsent.max(self.store.recent_from().0);
        let end = self.store.next().0;
        let (length, next) = self
            .format
            .pack(&self.store, first, end, false, now, &mut self.scratch);
        self.unsent = next;
        self.sent_at[0] = now;
        Datagram {
            port: Port::Live,
            lines: LineSet::BOTH,
            first: SeqNo(first),
            next: SeqNo(next),
            bytes: &self.scratch[..length],
        }
    }

    /// The next packet that was asked for, and its group.
    fn recover(&mut self, now: Nanos) -> Option<(usize, usize)> {
        if now.since(self.sent_at[1].max(self.sent_at[2])) < self.spacing_ns {
            return None;
        }
        match self.again.pop_front() {
            Some(Again::Unavailable(first, last)) => {
                return Some((1, self.format.unavailable(first, last, now, &mut self.scratch)));
            }
            Some(Again::Units(first, end)) => {
                // Forgotten meanwhile, or never written for want of room.
                let kept = self.store.kept_from(SeqNo(first)).0.min(end);
                if first < kept {
                    if kept < end {
                        self.again.push_front(Again::Units(kept, end));
                    }
                    let last = kept as u32 - 1;
                    return Some((
                        1,
                        self.format
                            .unavailable(first as u32, last, now, &mut self.scratch),
                    ));
                }
                if first < end {
                    let (length, next) =
                        self.format
                            .pack(&self.store, first, end, true, now, &mut self.scratch);
                    if next < end {
                        self.again.push_front(Again::Units(next, end));
                    }
                    return Some((1, length));
                }
            }
            None => {}
        }
        let packet = self.refreshes.pop_front()?;
        self.scratch[..packet.len()].copy_from_slice(&packet);
        Some((2, packet.len()))
    }

    fn idle(&mut self, now: Nanos) -> Option<(usize, usize)> {
        if self.stage == Stage::Over {
            return None;
        }
        let group = (0..3).find(|&group| now.since(self.sent_at[group]) >= self.silence_ns(group))?;
        let next = match group {
            0 => self.store.next().0 as u32,
            1 => 1,
            _ => self.refresh_next,
        };
        Some((group, self.format.heartbeat(next, now, &mut self.scratch)))
    }

    /// After the last message heartbeats repeat more often on the live group: a last packet that is lost must
    /// not cost a second.
    fn silence_ns(&self, group: usize) -> u64 {
        match (self.stage, group) {
            (Stage::Ending { .. }, 0) => self.heartbeat_ns.min(20 * Nanos::MILLI),
            _ => self.heartbeat_ns,
        }
    }
}

persist!(value enum Stage { 0 => Open, 1 => Ending { until }, 2 => Over });
persist!(value enum Again { 0 => Units(first, end), 1 => Unavailable(first, last) });
// A refresh that was being sent is asked for again.
persist!(struct Groups<F: Persist> {
    format, store, unsent, sent_at, again, refresh_next, stage,
} not { heartbeat_ns, spacing_ns, refreshes, scratch });
