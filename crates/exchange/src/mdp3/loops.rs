//! A feed that sends the same over and over: definitions, or books as they stand. Its packets are numbered
//! from 1 in every turn, and go out one at a time at a steady pace.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo};
use tickwire_wire::mdp3::PacketHeader;
use tickwire_wire::zerocopy::IntoBytes;

use crate::tape::{Datagram, LineSet};

/// See the module's description.
pub(super) struct Loop {
    port: Port,
    interval_ns: u64,
    packet_max: usize,
    /// The next thing of the turn to be written.
    next: usize,
    /// The number of the next packet.
    seq: u32,
    /// Room for a header, then messages.
    open: Vec<u8>,
    /// As many as one book takes; grows with the largest.
    complete: VecDeque<Vec<u8>>,
    sent: Vec<u8>,
    /// Memory of packets that were sent.
    spare: Vec<Vec<u8>>,
    due: Nanos,
    scratch: Vec<u8>,
}

impl Loop {
    /// A loop that sends a packet every `interval_ns`.
    pub(super) fn new(port: Port, interval_ns: u64, packet_max: usize) -> Loop {
        Loop {
            port,
            interval_ns,
            packet_max,
            next: 0,
            seq: 1,
            open: vec![0; PacketHeader::SIZE],
            complete: VecDeque::new(),
            sent: Vec::new(),
            spare: Vec::new(),
            due: Nanos::ZERO,
            scratch: vec![0; packet_max - PacketHeader::SIZE],
        }
    }

    /// Whether packets are to be made now: none waits and one is due.
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.complete.is_empty() && self.due <= now
    }

    pub(super) fn poll_timeout(&self) -> Nanos {
        self.due
    }

    /// The next of `count` things to write; `None` when a packet is complete or a turn is. Call it until
    /// then.
    pub(super) fn next(&mut self, now: Nanos, count: usize) -> Option<usize> {
        if !self.complete.is_empty() {
            return None;
        }
        if self.next >= count {
            self.close(now);
            (self.next, self.seq) = (0, 1);
            if self.complete.is_empty() {
                self.due = crate::pace::loop_due(self.due, now, self.interval_ns);
            }
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// Appends the message that `encode` writes. One that fits no packet is a bug of the publisher.
    pub(super) fn push(&mut self, now: Nanos, encode: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let length = encode(&mut self.scratch).expect("messages are cut to fit a packet");
        if self.open.len() + length > self.packet_max {
            self.close(now);
        }
        self.open.extend_from_slice(&self.scratch[..length]);
    }

    pub(super) fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        if self.due > now {
            return None;
        }
        let next = self.complete.pop_front()?;
        self.spare.push(core::mem::replace(&mut self.sent, next));
        self.due = crate::pace::loop_due(self.due, now, self.interval_ns);
        Some(Datagram {
            port: self.port,
            lines: LineSet::BOTH,
            first: SeqNo(0),
            next: SeqNo(0),
            bytes: &self.sent,
        })
    }

    fn close(&mut self, now: Nanos) {
        if self.open.len() == PacketHeader::SIZE {
            return;
        }
        let header = PacketHeader {
            seq: self.seq.into(),
            sending_time: now.0.into(),
        };
        self.open[..PacketHeader::SIZE].copy_from_slice(header.as_bytes());
        self.seq += 1;
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(&self.open);
        self.complete.push_back(packet);
        self.open.truncate(PacketHeader::SIZE);
    }
}
