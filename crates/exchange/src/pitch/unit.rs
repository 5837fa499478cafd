//! The messages of one unit: numbered, kept, cut into blocks for the live group, sent again on the gap
//! response group.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo};
use tickwire_persist::persist;
use tickwire_wire::pitch::{self, PacketBuilder, UnitHeader, gap_limits};

use crate::mold::MessageStore;
use crate::tape::{Datagram, LineSet, MessageSink};

/// Sizes and times of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitConfig {
    /// The unit's number, from 1.
    pub unit: u8,
    /// The largest UDP payload, 64 to 1,472 bytes.
    pub datagram_max: usize,
    /// The most messages of one datagram, 1 to 255.
    pub messages_max: u8,
    /// Bytes of messages kept for retransmission (2 more per message); the oldest are forgotten first.
    pub store_bytes: usize,
    /// Messages kept for retransmission.
    pub store_messages: usize,
    /// Silence before a heartbeat, on both groups.
    pub heartbeat_ns: u64,
    /// How long requests may wait to be answered together.
    pub merge_ns: u64,
}

impl Default for UnitConfig {
    fn default() -> UnitConfig {
        UnitConfig {
            unit: 1,
            datagram_max: 1400,
            messages_max: 40,
            store_bytes: 64 << 20,
            store_messages: 1 << 20,
            heartbeat_ns: Nanos::SECOND,
            merge_ns: gap_limits::MERGE_MS * Nanos::MILLI,
        }
    }
}

/// Why messages are not sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotKept;

enum Stage {
    Open,
    /// Heartbeats until then.
    Ending {
        until: Nanos,
    },
    Over,
}

/// See the module's description.
pub(super) struct Unit {
    config: UnitConfig,
    store: MessageStore,
    /// The next message to send.
    unsent: u64,
    sent_at: Nanos,
    /// The same of the gap response group.
    answered_at: Nanos,
    /// Ranges `[first, end)` to send again, by rising number and apart from each other.
    wanted: Vec<(u64, u64)>,
    /// When those are due.
    due: Option<Nanos>,
    stage: Stage,
    scratch: Vec<u8>,
}

impl MessageSink for Unit {
    fn message(&mut self, bytes: &[u8]) {
        self.store.push(bytes);
    }
}

impl Unit {
    pub(super) fn new(config: UnitConfig) -> Unit {
        Unit {
            store: MessageStore::new(config.store_bytes, config.store_messages),
            unsent: 1,
            sent_at: Nanos::ZERO,
            answered_at: Nanos::ZERO,
            wanted: Vec::new(),
            due: None,
            stage: Stage::Open,
            scratch: vec![0; config.datagram_max.clamp(64, 1472)],
            config,
        }
    }

    pub(super) fn number(&self) -> u8 {
        self.config.unit
    }

    /// Its messages.
    pub(super) fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    /// The number the next message gets.
    pub(super) fn next(&self) -> SeqNo {
        self.store.next()
    }

    /// No message follows: heartbeats go out for `linger_ns`, then nothing; said again, for so long from then
    /// on.
    pub(super) fn end(&mut self, now: Nanos, linger_ns: u64) {
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
    }

    /// Whether everything was sent, the last heartbeat included. Requests are still answered.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over) && self.backlog() == 0
    }

    fn backlog(&self) -> u64 {
        self.next().0 - self.unsent
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        let live = match self.stage {
            _ if self.backlog() > 0 => Some(self.sent_at),
            Stage::Open => Some(self.sent_at.min(self.answered_at).after(self.config.heartbeat_ns)),
            Stage::Ending { until } => Some(self.sent_at.after(self.ending_gap()).min(until)),
            Stage::Over => None,
        };
        live.into_iter().chain(self.due).min()
    }

    pub(super) fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        let first = self.unsent;
        if self.backlog() > 0 {
            let (length, next) = self.pack(first, self.next().0);
            // What the store forgot before it was sent is a gap that nobody can fill: it is configured too
            // small.
            self.unsent = next.max(self.store.recent_from().0).max(first + 1);
            self.sent_at = now;
            return Some(self.datagram(Port::Live, length, first));
        }
        if self.due.is_some_and(|due| due <= now) {
            if let Some(length) = self.answer() {
                self.answered_at = now;
                return Some(self.datagram(Port::Retransmission, length, first));
            }
            self.due = None;
        }
        self.idle(now)
    }

    /// Asks for messages to be sent again, soon, together with what others ask for.
    pub(super) fn repeat(&mut self, now: Nanos, sequence: u32, count: u16) -> Result<(), NotKept> {
        let first = pitch::full_sequence(sequence, self.unsent);
        let end = first + u64::from(count);
        let oldest = self
            .store
            .first()
            .0
            .max(self.unsent.saturating_sub(gap_limits::HISTORY));
        if count == 0 || first < oldest || first == 0 || end > self.unsent {
            return Err(NotKept);
        }
        let at = self.wanted.partition_point(|range| range.1 < first);
        let touching = self.wanted[at..]
            .iter()
            .take_while(|range| range.0 <= end)
            .count();
        let merged = self.wanted[at..at + touching]
            .iter()
            .fold((first, end), |all, range| {
                (all.0.min(range.0), all.1.max(range.1))
            });
        self.wanted.splice(at..at + touching, [merged]);
        self.due = self.due.or(Some(now.after(self.config.merge_ns)));
        Ok(())
    }

    fn datagram(&self, port: Port, length: usize, first: u64) -> Datagram<'_> {
        let is_live = port == Port::Live;
        Datagram {
            port,
            lines: LineSet::BOTH,
            first: SeqNo(if is_live { first } else { 0 }),
            next: SeqNo(if is_live { self.unsent } else { 0 }),
            bytes: &self.scratch[..length],
        }
    }

    /// Writes a block of the messages from `first`, before `end`, as many as fit. Its length, and the number
    /// after its last message.
    fn pack(&mut self, first: u64, end: u64) -> (usize, u64) {
        let sequence = pitch::wire_sequence(first);
        let mut packet = PacketBuilder::new(&mut self.scratch, self.config.unit, sequence);
        let mut next = first;
        while next < end && packet.count() < self.config.messages_max.max(1) {
            match self.store.get(SeqNo(next)) {
                Some(message) if packet.push(&message) => next += 1,
                _ => break,
            }
        }
        (packet.finish(), next)
    }

    /// Writes the next block that was asked for.
    fn answer(&mut self) -> Option<usize> {
        loop {
            let &(first, end) = self.wanted.first()?;
            let (length, next) = self.pack(first, end);
            // Nothing: forgotten since it was asked for.
            let rest = if next == first { end } else { next };
            match rest < end {
                true => self.wanted[0].0 = rest,
                false => _ = self.wanted.remove(0),
            }
            if next > first {
                return Some(length);
            }
        }
    }

    /// A heartbeat: with the next number on the live group, without on the other.
    fn idle(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        let (port, sequence) = match self.stage {
            Stage::Open if now.since(self.sent_at) >= self.config.heartbeat_ns => {
                (Port::Live, pitch::wire_sequence(self.unsent))
            }
            Stage::Open if now.since(self.answered_at) >= self.config.heartbeat_ns => {
                (Port::Retransmission, 0)
            }
            Stage::Ending { until } if now >= until => {
                self.stage = Stage::Over;
                return None;
            }
            Stage::Ending { .. } if now.since(self.sent_at) >= self.ending_gap() => {
                (Port::Live, pitch::wire_sequence(self.unsent))
            }
            _ => return None,
        };
        match port {
            Port::Live => self.sent_at = now,
            _ => self.answered_at = now,
        }
        let length = pitch::heartbeat(&mut self.scratch, self.config.unit, sequence);
        Some(self.datagram(port, length, self.unsent))
    }

    /// After the last message heartbeats come more often: if it is lost on both lines that must not cost a
    /// second.
    fn ending_gap(&self) -> u64 {
        self.config.heartbeat_ns.min(20 * Nanos::MILLI)
    }
}

/// The numbers of a live datagram's messages; `None` if it has none.
pub(super) fn span(datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
    let packet = pitch::packet(datagram).ok()?;
    let (first, count) = (u64::from(packet.sequence), packet.messages.len() as u64);
    (first > 0 && count > 0).then(|| (SeqNo(first), SeqNo(first + count)))
}

const _: () = assert!(UnitHeader::SIZE + pitch::MESSAGE_SIZE_MAX <= 64);

persist!(value enum Stage { 0 => Open, 1 => Ending { until }, 2 => Over });
// What was asked for and not sent yet is asked for again.
persist!(struct Unit { store, unsent, sent_at, answered_at, stage } not { config, wanted, due, scratch });

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire::pitch::DeleteOrder;
    use tickwire_wire::zerocopy::IntoBytes;

    fn unit(messages: u64) -> Unit {
        let mut unit = Unit::new(UnitConfig {
            datagram_max: 64,
            store_bytes: 0,
            store_messages: 64,
            ..UnitConfig::default()
        });
        (1..=messages).for_each(|n| push(&mut unit, n));
        unit
    }

    fn push(unit: &mut Unit, n: u64) {
        let message = DeleteOrder {
            order_id: n.into(),
            ..DeleteOrder::BLANK_MESSAGE
        };
        unit.message(message.as_bytes());
    }

    /// Port, first number and count of every datagram that is due.
    fn drain(unit: &mut Unit, now: Nanos) -> Vec<(Port, u32, usize)> {
        let mut sent = Vec::new();
        while let Some(datagram) = unit.poll_datagram(now) {
            let packet = pitch::packet(datagram.bytes).unwrap();
            assert_eq!((packet.unit, packet.trailing), (1, 0));
            if datagram.port == Port::Live && packet.messages.len() > 0 {
                assert_eq!(span(datagram.bytes), Some((datagram.first, datagram.next)));
            }
            sent.push((datagram.port, packet.sequence, packet.messages.len()));
        }
        sent
    }

    #[test]
    fn messages_travel_together_then_heartbeats_then_nothing() {
        let mut unit = unit(5);
        let second = |n| Nanos(n * Nanos::SECOND);
        let first = drain(&mut unit, second(1));
        assert_eq!(
            first,
            [
                (Port::Live, 1, 4),
                (Port::Live, 5, 1),
                (Port::Retransmission, 0, 0)
            ]
        );
        assert_eq!(unit.poll_timeout(), Some(second(2)));
        assert_eq!(drain(&mut unit, Nanos(second(2).0 - 1)), []);
        assert_eq!(
            drain(&mut unit, second(2)),
            [(Port::Live, 6, 0), (Port::Retransmission, 0, 0)]
        );
        push(&mut unit, 6);
        unit.end(second(2), 30 * Nanos::MILLI);
        assert_eq!(drain(&mut unit, second(2)), [(Port::Live, 6, 1)]);
        assert_eq!(
            drain(&mut unit, second(2).after(20 * Nanos::MILLI)),
            [(Port::Live, 7, 0)]
        );
        assert!(!unit.is_over());
        assert_eq!(drain(&mut unit, second(2).after(30 * Nanos::MILLI)), []);
        assert!(unit.is_over() && unit.poll_timeout().is_none());
    }

    #[test]
    fn requests_are_merged_and_answered_on_their_own_group() {
        let mut unit = unit(20);
        let now = Nanos(Nanos::SECOND);
        assert_eq!(unit.repeat(now, 1, 1), Err(NotKept), "not sent yet");
        drain(&mut unit, now);
        for (sequence, count) in [(5, 2), (1, 2), (6, 3), (3, 1), (20, 1)] {
            assert_eq!(unit.repeat(now, sequence, count), Ok(()));
        }
        for (sequence, count) in [(20, 2), (21, 1), (0, 1), (5, 0), (u32::MAX, 1)] {
            assert_eq!(unit.repeat(now, sequence, count), Err(NotKept), "{sequence}");
        }
        assert_eq!(drain(&mut unit, now.after(Nanos::MILLI)), []);
        assert_eq!(unit.poll_timeout(), Some(now.after(2 * Nanos::MILLI)));
        let answers = drain(&mut unit, now.after(2 * Nanos::MILLI));
        let group = Port::Retransmission;
        assert_eq!(answers, [(group, 1, 3), (group, 5, 4), (group, 20, 1)]);
        (21..=120).for_each(|n| push(&mut unit, n));
        drain(&mut unit, now.after(3 * Nanos::MILLI));
        assert_eq!(unit.repeat(now, 56, 1), Err(NotKept), "forgotten");
        assert_eq!(unit.repeat(now, 57, 1), Ok(()));
    }
}
