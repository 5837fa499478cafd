//! The incremental feed: messages packed into numbered packets, which are kept for replay.
//!
//! A packet stays open for more messages until [`Packets::close`]: before it is sent, and before anything
//! refers to its number. When nothing was sent for a while a heartbeat goes out, in a packet with a number of
//! its own.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo};
use tickwire_persist::persist;
use tickwire_wire::mdp3::block::NoFields;
use tickwire_wire::mdp3::{AdminHeartbeat, PacketHeader};
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::tape::{Datagram, LineSet};

enum Stage {
    Open,
    /// Heartbeats go out often until then.
    Ending {
        until: Nanos,
    },
    Over,
}

/// See the module's description.
pub(super) struct Packets {
    store: MessageStore,
    /// The packet being filled: room for its header, then messages.
    open: Vec<u8>,
    packet_max: usize,
    /// The time of its last message.
    time: Nanos,
    messages: u64,
    unsent: u64,
    /// When something was sent last; [`Nanos::ZERO`] before the first look.
    sent_at: Nanos,
    heartbeat_ns: u64,
    stage: Stage,
    scratch: Vec<u8>,
}

/// How many heartbeats at least go out after the end.
const LAST_HEARTBEATS: u64 = 8;
/// The longest time between two of them: one that is lost must not cost a second.
const LAST_HEARTBEAT_NS: u64 = 100 * Nanos::MILLI;

impl Packets {
    /// A feed without packets of at most `packet_max` bytes; a store of that many bytes and packets.
    pub(super) fn new(
        packet_max: usize,
        store_bytes: usize,
        store_packets: usize,
        heartbeat_ns: u64,
    ) -> Packets {
        let mut open = Vec::with_capacity(packet_max);
        open.resize(PacketHeader::SIZE, 0);
        Packets {
            store: MessageStore::new(store_bytes, store_packets),
            open,
            packet_max,
            time: Nanos::ZERO,
            messages: 0,
            unsent: 1,
            sent_at: Nanos::ZERO,
            heartbeat_ns,
            stage: Stage::Open,
            scratch: vec![0; packet_max - PacketHeader::SIZE],
        }
    }

    /// Appends the message that `encode` writes. One that fits no packet is a bug of the publisher.
    pub(super) fn push(&mut self, at: Nanos, encode: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let length = encode(&mut self.scratch).expect("messages are cut to fit a packet");
        if self.open.len() + length > self.packet_max {
            self.close();
        }
        self.open.extend_from_slice(&self.scratch[..length]);
        self.time = self.time.max(at);
        self.messages += 1;
    }

    /// Completes the packet being filled, if there is one. The number of the last packet, 0 if there is none.
    pub(super) fn close(&mut self) -> u32 {
        let seq = self.store.next().0 as u32; // a week's packets have 32 bits
        if self.open.len() == PacketHeader::SIZE {
            return seq - 1;
        }
        let header = PacketHeader {
            seq: seq.into(),
            sending_time: self.time.0.into(),
        };
        self.open[..PacketHeader::SIZE].copy_from_slice(header.as_bytes());
        self.store.push(&self.open);
        self.open.truncate(PacketHeader::SIZE);
        seq
    }

    pub(super) fn store(&self) -> &MessageStore {
        &self.store
    }

    /// Its packets.
    pub(super) fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// The number that the next packet gets, the one being filled counted.
    pub(super) fn next(&self) -> SeqNo {
        let filling = self.open.len() > PacketHeader::SIZE;
        SeqNo(self.store.next().0 + u64::from(filling))
    }

    /// Nothing follows but heartbeats for `linger_ns`; said again, for so long from then on.
    pub(super) fn end(&mut self, now: Nanos, linger_ns: u64) {
        if matches!(self.stage, Stage::Open) {
            let gap_ns = (linger_ns / LAST_HEARTBEATS).min(LAST_HEARTBEAT_NS);
            self.heartbeat_ns = self.heartbeat_ns.min(gap_ns);
        }
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
    }

    /// Whether everything was sent, the last heartbeats too.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over) && self.next().0 == self.unsent
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        match self.stage {
            _ if self.next().0 > self.unsent => Some(self.sent_at),
            Stage::Open => Some(self.sent_at.after(self.heartbeat_ns)),
            Stage::Ending { until } => Some(self.sent_at.after(self.heartbeat_ns).min(until)),
            Stage::Over => None,
        }
    }

    /// Whether there is a packet to send: one with messages, or a heartbeat whose time has come.
    pub(super) fn is_due(&mut self, now: Nanos) -> bool {
        if self.next().0 == self.unsent {
            self.idle(now);
        }
        self.next().0 > self.unsent
    }

    /// The next packet, after [`Packets::is_due`] has said that there is one.
    pub(super) fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.close();
        // A store too small for what is produced between two looks has lost packets: so has the receiver.
        self.unsent = self.unsent.max(self.store.recent_from().0);
        let seq = SeqNo(self.unsent);
        let bytes = self.store.recent(seq)?;
        self.unsent += 1;
        self.sent_at = now;
        Some(Datagram {
            port: Port::Live,
            lines: LineSet::BOTH,
            first: seq,
            next: seq.next(),
            bytes,
        })
    }

    fn idle(&mut self, now: Nanos) {
        if self.sent_at == Nanos::ZERO {
            self.sent_at = now;
        }
        match self.stage {
            Stage::Over => {}
            Stage::Ending { until } if until <= now => self.stage = Stage::Over,
            _ if now.since(self.sent_at) >= self.heartbeat_ns => {
                self.push(now, |buffer| AdminHeartbeat::encode(buffer, &NoFields::BLANK));
            }
            _ => {}
        }
    }
}

persist!(value enum Stage { 0 => Open, 1 => Ending { until }, 2 => Over });
persist!(struct Packets {
    store, open, time, messages, unsent, sent_at, heartbeat_ns, stage,
} not { packet_max, scratch });
