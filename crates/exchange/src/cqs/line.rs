//! Delivery of a line of CQS: blocks, their numbers, line integrity, blocks sent again, the snapshot stream.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo};
use tickwire_persist::persist;
use tickwire_wire::cqs::{
    BLOCK_SIZE_MAX, BlockBuilder, BlockHeader, Control, ControlType, Delivery, Feed, SnapshotHeader,
    Transmission, UnixTime,
};
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::random::Random;
use crate::tape::{Datagram, LineSet};

/// After so many messages the line's counter goes on elsewhere (`CL`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CqsReset {
    /// How many numbers are used before.
    pub after: u64,
    /// Where it goes on: higher, or at 1.
    pub to: u32,
}

/// Sizes and times of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CqsLineConfig {
    /// The most messages of one block, at most 255.
    pub messages_max: u8,
    /// Bytes of messages kept to be sent again (2 more per message); the oldest are forgotten first.
    pub store_bytes: usize,
    /// Messages kept to be sent again.
    pub store_messages: usize,
    /// Silence before a line integrity message. The specification's most is 10 s.
    pub integrity_ns: u64,
    /// From one turn of the snapshot stream to the next, begin to begin; 0: there is no snapshot stream.
    pub snapshot_ns: u64,
    /// The least time between two blocks of the snapshot stream.
    pub snapshot_gap_ns: u64,
    /// Share of blocks that some other client asks for again, parts per million.
    pub asked_again_ppm: u32,
    /// How long after the block.
    pub asked_again_ns: u64,
    /// Of who asks.
    pub seed: u64,
    /// A reset within the day. Default: none but when the counter is exhausted.
    pub reset: Option<CqsReset>,
}

impl Default for CqsLineConfig {
    fn default() -> CqsLineConfig {
        CqsLineConfig {
            messages_max: 20,
            store_bytes: 64 << 20,
            store_messages: 1 << 20,
            integrity_ns: Nanos::SECOND,
            snapshot_ns: 250 * Nanos::MILLI,
            snapshot_gap_ns: 50 * Nanos::MICRO,
            asked_again_ppm: 0,
            asked_again_ns: 2 * Nanos::MILLI,
            seed: 1,
            reset: None,
        }
    }
}

enum Stage {
    /// Before start of day: line integrity with number 0.
    Waiting,
    /// Start of day is to be sent.
    Starting,
    Open,
    /// Line integrity until then.
    Ending {
        until: Nanos,
    },
    Over,
}

/// A turn of the snapshot stream, in blocks that lack only their times.
#[derive(Default)]
struct Turn {
    /// Messages, each with its length in two bytes before it.
    bytes: Vec<u8>,
    /// How far it was sent.
    sent: usize,
    has_begun: bool,
    last_seq: u32,
    rollover: u8,
}

pub(super) struct CqsLine {
    config: CqsLineConfig,
    store: MessageStore,
    /// The next message to send, by the store's number.
    unsent: u64,
    /// The store's number of the message that has the number `epoch.1` on the line: the last reset, or 1 and 1.
    epoch: (u64, u32),
    /// The same of the reset before.
    before: (u64, u32),
    /// How often the counter went back to 1.
    rollovers: u8,
    stage: Stage,
    sent_at: Nanos,
    /// What is to be sent again and when, by the store's numbers.
    again: VecDeque<(Nanos, u64, u64)>,
    others: Random,
    turn: Turn,
    /// The next number of the snapshot stream.
    snapshot_seq: u32,
    snapshot_due: Nanos,
    block_due: Nanos,
    message: Vec<u8>,
    scratch: Vec<u8>,
}

impl CqsLine {
    pub(super) fn new(config: CqsLineConfig) -> CqsLine {
        CqsLine {
            store: MessageStore::new(config.store_bytes, config.store_messages),
            unsent: 1,
            epoch: (1, 1),
            before: (1, 1),
            rollovers: 0,
            stage: Stage::Waiting,
            sent_at: Nanos::ZERO,
            again: VecDeque::new(),
            others: Random::new(config.seed),
            turn: Turn::default(),
            snapshot_seq: 1,
            snapshot_due: Nanos::ZERO,
            block_due: Nanos::ZERO,
            message: Vec::with_capacity(BLOCK_SIZE_MAX),
            scratch: vec![0; BLOCK_SIZE_MAX],
            config,
        }
    }

    /// The day begins: start of day goes out before the first message.
    pub(super) fn start(&mut self) {
        if matches!(self.stage, Stage::Waiting) {
            self.stage = Stage::Starting;
        }
    }

    /// Numbers a message, given as its parts; `at` in nanoseconds since the epoch.
    pub(super) fn message(&mut self, at: u64, parts: &[&[u8]]) {
        let (since, number) = (
            self.store.next().0 - self.epoch.0,
            self.number(self.store.next().0),
        );
        let wanted = self
            .config
            .reset
            .filter(|reset| self.epoch == (1, 1) && since >= reset.after);
        if let Some(to) = wanted.map(|reset| reset.to).or((number == u32::MAX).then_some(1)) {
            self.rollovers = self.rollovers.wrapping_add(u8::from(to == 1));
            (self.before, self.epoch) = (self.epoch, (self.store.next().0, to));
            let reset = Control::new(ControlType::ResetSequence, UnixTime::from_nanos(at));
            self.store.push(reset.as_bytes());
        }
        self.message.clear();
        parts.iter().for_each(|part| self.message.extend_from_slice(part));
        self.store.push(&self.message);
    }

    /// The number on the line of a message of this epoch.
    fn number(&self, of_store: u64) -> u32 {
        self.epoch.1 + (of_store - self.epoch.0) as u32
    }

    /// Its messages.
    pub(super) fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    pub(super) fn next_seq(&self) -> SeqNo {
        SeqNo(self.number(self.store.next().0).into())
    }

    pub(super) fn end(&mut self, now: Nanos, linger_ns: u64) {
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// See [`super::CqsPublisher::send_again`].
    pub(super) fn send_again(&mut self, now: Nanos, first: SeqNo, count: u32) {
        let Some(first) = first.0.checked_sub(self.epoch.1.into()) else {
            return;
        };
        let first = (first + self.epoch.0).max(self.store.first().0);
        let end = first.saturating_add(count.into()).min(self.unsent);
        if first < end {
            self.again.push_front((now, first, end));
        }
    }

    /// Whether a turn of the snapshot stream is due. One that is being sent is finished before; the lines go
    /// first.
    pub(super) fn wants_snapshot(&self, now: Nanos) -> bool {
        let is_on = matches!(self.stage, Stage::Open | Stage::Ending { .. }) && self.config.snapshot_ns > 0;
        is_on && self.turn.sent == self.turn.bytes.len() && self.snapshot_due <= now
    }

    /// Takes what `write` says as the next turn.
    pub(super) fn load_snapshot(&mut self, now: Nanos, write: impl FnOnce(&mut dyn FnMut(&[&[u8]]))) {
        self.snapshot_due = now.after(self.config.snapshot_ns);
        let last = self.store.next().0 - 1;
        let turn = &mut self.turn;
        (turn.sent, turn.has_begun, turn.rollover) = (0, false, self.rollovers);
        turn.bytes.clear();
        let bytes = &mut turn.bytes;
        let mut out = |parts: &[&[u8]]| {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
        };
        write(&mut out);
        self.turn.last_seq = match last >= self.epoch.0 {
            true => self.number(last),
            false => 0,
        };
    }

    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        if matches!(self.stage, Stage::Over) {
            return None;
        }
        if matches!(self.stage, Stage::Starting) || self.unsent < self.store.next().0 {
            return Some(self.sent_at);
        }
        let snapshot = match (
            self.turn.sent < self.turn.bytes.len(),
            self.config.snapshot_ns > 0,
        ) {
            (true, _) => Some(self.block_due),
            (false, true) if !matches!(self.stage, Stage::Waiting) => Some(self.snapshot_due),
            _ => None,
        };
        let until = match self.stage {
            Stage::Ending { until } => Some(until),
            _ => None,
        };
        let idle = Some(self.sent_at.after(self.integrity_gap()));
        let again = self.again.front().map(|(due, ..)| *due);
        [snapshot, until, idle, again].into_iter().flatten().min()
    }

    /// The next block, if any is due: live ones first.
    pub(super) fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        if let Stage::Ending { until } = self.stage
            && now >= until
            && self.unsent == self.store.next().0
        {
            self.stage = Stage::Over;
        }
        if matches!(self.stage, Stage::Over) {
            return None;
        }
        let first = SeqNo(self.number(self.unsent.max(self.epoch.0)).into());
        if matches!(self.stage, Stage::Starting) {
            self.stage = Stage::Open;
            return Some(self.control(now, ControlType::StartOfDay, 0, first));
        }
        if self.unsent < self.store.next().0 {
            return Some(self.live(now));
        }
        if self.again.front().is_some_and(|(due, ..)| *due <= now)
            && let Some(length) = self.pack_again(now)
        {
            return Some(datagram(Port::Retransmission, &self.scratch[..length]));
        }
        if self.turn.sent < self.turn.bytes.len() && self.block_due <= now {
            let length = self.pack_snapshot(now);
            return Some(datagram(Port::Snapshot, &self.scratch[..length]));
        }
        (now.since(self.sent_at) >= self.integrity_gap()).then(|| {
            let last = match self.stage {
                Stage::Waiting => 0,
                _ => first.0 as u32 - 1,
            };
            self.control(now, ControlType::LineIntegrity, last, first)
        })
    }

    /// Line integrity comes more often in the end: what it reveals must not cost a second.
    fn integrity_gap(&self) -> u64 {
        match self.stage {
            Stage::Ending { .. } => self.config.integrity_ns.min(20 * Nanos::MILLI),
            _ => self.config.integrity_ns,
        }
    }

    /// A control message without a number of its own.
    fn control(&mut self, now: Nanos, control: ControlType, seq: u32, next: SeqNo) -> Datagram<'_> {
        let time = UnixTime::from_nanos(now.0);
        let header = BlockHeader::at(Feed::Quotes, seq, time);
        let mut block = BlockBuilder::new(&mut self.scratch, header);
        let _fits = block.push(&[Control::new(control, time).as_bytes()]);
        let length = block.finish();
        self.sent_at = now;
        Datagram {
            first: next,
            next,
            ..datagram(Port::Live, &self.scratch[..length])
        }
    }

    fn live(&mut self, now: Nanos) -> Datagram<'_> {
        let from = self.unsent;
        // Before a reset the numbers are the old ones.
        let (seq, end) = match from < self.epoch.0 {
            true => (self.before.1 + (from - self.before.0) as u32, self.epoch.0),
            false => (self.number(from), u64::MAX),
        };
        let header = BlockHeader::at(Feed::Quotes, seq, UnixTime::from_nanos(now.0));
        let (length, packed) = pack(
            &self.store,
            &mut self.scratch,
            header,
            from,
            end,
            self.config.messages_max,
        );
        self.unsent = match packed {
            // The store forgot what was not sent: receivers see a gap that nobody can fill.
            0 => self.store.recent_from().0.max(from + 1),
            _ => from + packed,
        };
        self.sent_at = now;
        // Somebody always misses the end of the day, which no snapshot tells.
        let is_end = self.store.recent(SeqNo(from)).and_then(|m| m.get(2..4)) == Some(b"CZ");
        if packed > 0 && from >= self.epoch.0 && (is_end || self.others.ppm(self.config.asked_again_ppm)) {
            let due = now.after(self.config.asked_again_ns);
            self.again.push_back((due, from, self.unsent));
        }
        Datagram {
            first: SeqNo(seq.into()),
            next: SeqNo(u64::from(seq) + packed),
            ..datagram(Port::Live, &self.scratch[..length])
        }
    }

    fn pack_again(&mut self, now: Nanos) -> Option<usize> {
        let (due, first, end) = self.again.pop_front()?;
        if first < self.epoch.0 || self.store.get(SeqNo(first)).is_none() {
            return None;
        }
        let header = BlockHeader {
            transmission: Transmission::Retransmitted.into(),
            ..BlockHeader::at(Feed::Quotes, self.number(first), UnixTime::from_nanos(now.0))
        };
        let (length, packed) = pack(
            &self.store,
            &mut self.scratch,
            header,
            first,
            end,
            self.config.messages_max,
        );
        if first + packed < end {
            self.again.push_front((due, first + packed, end));
        }
        Some(length)
    }

    fn pack_snapshot(&mut self, now: Nanos) -> usize {
        self.block_due = now.after(self.config.snapshot_gap_ns);
        let turn = &mut self.turn;
        // How many fit is known only in the end, and so whether this block is the last.
        let (mut size, mut end, mut count) = (SnapshotHeader::SIZE, turn.sent, 0);
        while let Some(message) = message_at(&turn.bytes, end) {
            let padded = (size + message.len()).next_multiple_of(2);
            if padded > BLOCK_SIZE_MAX || count == self.config.messages_max.max(1) {
                break;
            }
            (size, end, count) = (size + message.len(), end + 2 + message.len(), count + 1);
        }
        let delivery = match (turn.has_begun, end == turn.bytes.len()) {
            (false, true) => Delivery::Only,
            (false, false) => Delivery::First,
            (true, false) => Delivery::Middle,
            (true, true) => Delivery::Last,
        };
        let time = UnixTime::from_nanos(now.0);
        let header = SnapshotHeader::at(self.snapshot_seq, delivery, turn.last_seq, turn.rollover, time);
        let mut block = BlockBuilder::new(&mut self.scratch, header);
        while turn.sent < end
            && let Some(message) = message_at(&turn.bytes, turn.sent)
            && block.push(&[message])
        {
            turn.sent += 2 + message.len();
        }
        turn.has_begun = true;
        self.snapshot_seq = self.snapshot_seq.wrapping_add(u32::from(count));
        block.finish()
    }
}

fn datagram(port: Port, bytes: &[u8]) -> Datagram<'_> {
    Datagram {
        port,
        lines: LineSet::BOTH,
        first: SeqNo(0),
        next: SeqNo(0),
        bytes,
    }
}

/// The message at an offset of a turn.
fn message_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let (length, rest) = bytes.get(at..)?.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// Packs messages `[first, end)` of the store into a block, as many as fit; its length, and how many they
/// are. A control message is alone.
fn pack(
    store: &MessageStore,
    buffer: &mut [u8],
    header: BlockHeader,
    first: u64,
    end: u64,
    most: u8,
) -> (usize, u64) {
    let mut block = BlockBuilder::new(buffer, header);
    let mut seq = first;
    while let Some(message) = store.get(SeqNo(seq)).filter(|_| seq < end) {
        let is_control = message.get(2) == Some(&b'C');
        let goes_on = block.count() < most.max(1) && !(is_control && block.count() > 0);
        if !goes_on || !block.push(&[&message[..]]) {
            break;
        }
        seq += 1;
        if is_control {
            break;
        }
    }
    (block.finish(), seq - first)
}

persist!(value enum Stage { 0 => Waiting, 1 => Starting, 2 => Open, 3 => Ending { until }, 4 => Over });
persist!(struct Turn { bytes, sent, has_begun, last_seq, rollover });
persist!(struct CqsLine {
    store, unsent, epoch, before, rollovers, stage, sent_at, again, others, turn, snapshot_seq, snapshot_due, block_due,
} not { config, message, scratch });

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire::cqs::{parse_block, parse_snapshot_block};

    const AT: Nanos = Nanos(1_775_535_399_000_000_000);

    fn line(config: CqsLineConfig) -> CqsLine {
        CqsLine::new(CqsLineConfig {
            store_bytes: 0,
            store_messages: 64,
            messages_max: 3,
            snapshot_ns: 0,
            ..config
        })
    }

    fn control(kind: ControlType) -> Control {
        Control::new(kind, UnixTime::from_nanos(AT.0))
    }

    /// A message of `n` bytes beyond its header.
    fn message(n: u8) -> Vec<u8> {
        let mut message = control(ControlType::EndOfDay).as_bytes().to_vec();
        message[2..4].copy_from_slice(b"QL");
        message.extend(vec![n; n.into()]);
        message
    }

    /// Port, number, indicator, and the kinds of messages of every block that is due.
    fn drain(line: &mut CqsLine, now: Nanos) -> Vec<(Port, u32, char, Vec<String>)> {
        use alloc::string::String as Text;
        let mut all = Vec::new();
        while let Some(sent) = line.poll_datagram(now) {
            assert!(sent.bytes.len() <= BLOCK_SIZE_MAX && sent.lines == LineSet::BOTH);
            let kinds = |message: &[u8]| Text::from_utf8_lossy(&message[2..4]).into_owned();
            all.push(match sent.port {
                Port::Snapshot => {
                    let block = parse_snapshot_block(sent.bytes).unwrap();
                    let delivery = char::from(b'0' + block.header.delivery);
                    (
                        sent.port,
                        block.header.seq.get(),
                        delivery,
                        block.messages.map(kinds).collect(),
                    )
                }
                port => {
                    let block = parse_block(sent.bytes).unwrap();
                    let indicator = char::from(block.header.transmission.0);
                    (
                        port,
                        block.header.seq.get(),
                        indicator,
                        block.messages.map(kinds).collect(),
                    )
                }
            });
        }
        all
    }

    fn live(seq: u32, kinds: &[&str]) -> (Port, u32, char, Vec<String>) {
        (
            Port::Live,
            seq,
            'O',
            kinds.iter().map(|kind| (*kind).into()).collect(),
        )
    }

    use alloc::string::String;

    #[test]
    fn a_day_is_integrity_start_messages_end_integrity_and_nothing() {
        let mut line = line(CqsLineConfig::default());
        assert_eq!(drain(&mut line, AT), [live(0, &["CT"])]);
        line.start();
        (0..5).for_each(|n| line.message(AT.0, &[&message(n)]));
        line.message(AT.0, &[control(ControlType::EndOfDay).as_bytes()]);
        let quotes = ["QL", "QL", "QL"];
        let day = [
            live(0, &["CA"]),
            live(1, &quotes),
            live(4, &quotes[..2]),
            live(6, &["CZ"]),
        ];
        assert_eq!(drain(&mut line, AT), day);
        let end_again = (Port::Retransmission, 6, 'V', vec!["CZ".into()]);
        assert_eq!(
            drain(&mut line, AT.after(Nanos::SECOND)),
            [end_again, live(6, &["CT"])]
        );
        line.end(AT.after(Nanos::SECOND), 30 * Nanos::MILLI);
        assert_eq!(
            drain(&mut line, AT.after(1_020 * Nanos::MILLI)),
            [live(6, &["CT"])]
        );
        assert_eq!(drain(&mut line, AT.after(1_040 * Nanos::MILLI)), []);
        assert!(line.is_over() && line.poll_timeout().is_none());
    }

    #[test]
    fn what_was_sent_and_is_not_forgotten_is_sent_again_with_its_numbers() {
        let mut line = line(CqsLineConfig::default());
        line.start();
        (0..5).for_each(|n| line.message(AT.0, &[&message(n)]));
        line.send_again(AT, SeqNo(1), 5);
        drain(&mut line, AT);
        let mut again = |first, count| {
            line.send_again(AT, SeqNo(first), count);
            let blocks = drain(&mut line, AT).into_iter();
            blocks
                .map(|(port, seq, indicator, kinds)| {
                    assert_eq!((port, indicator), (Port::Retransmission, 'V'));
                    (seq, kinds.len())
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(again(2, 2), [(2, 2)]);
        assert_eq!(again(1, u32::MAX), [(1, 3), (4, 2)]);
        assert_eq!(again(0, 1), [], "start of day is never sent again");
        assert_eq!(again(6, 1), [], "not sent yet");
    }

    #[test]
    fn the_counter_goes_on_where_a_reset_says() {
        let reset = Some(CqsReset { after: 4, to: 1 });
        let mut line = line(CqsLineConfig {
            reset,
            ..CqsLineConfig::default()
        });
        line.start();
        (0..6).for_each(|n| line.message(AT.0, &[&message(n)]));
        let blocks = [
            live(0, &["CA"]),
            live(1, &["QL", "QL", "QL"]),
            live(4, &["QL"]),
            live(1, &["CL"]),
            live(2, &["QL", "QL"]),
        ];
        assert_eq!(drain(&mut line, AT), blocks);
        assert_eq!(line.next_seq(), SeqNo(4));
    }

    #[test]
    fn a_turn_of_the_snapshot_stream_says_where_it_begins_and_ends_and_what_it_holds() {
        let mut line = CqsLine::new(CqsLineConfig {
            store_bytes: 0,
            messages_max: 2,
            snapshot_gap_ns: 0,
            ..CqsLineConfig::default()
        });
        assert!(!line.wants_snapshot(AT), "before the day");
        line.start();
        line.message(AT.0, &[&message(1)]);
        drain(&mut line, AT);
        let turn = |line: &mut CqsLine, now: Nanos, count: u8| {
            assert!(line.wants_snapshot(now));
            line.load_snapshot(now, |out| (0..count).for_each(|n| out(&[&message(n)])));
            assert!(!line.wants_snapshot(now));
            let blocks = drain(line, now)
                .into_iter()
                .filter(|block| block.0 == Port::Snapshot);
            blocks
                .map(|block| (block.1, block.2, block.3.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(turn(&mut line, AT, 5), [(1, '1', 2), (3, '2', 2), (5, '3', 1)]);
        let later = AT.after(Nanos::SECOND);
        assert_eq!(turn(&mut line, later, 1), [(6, '4', 1)]);
        line.message(AT.0, &[control(ControlType::EndOfDay).as_bytes()]);
        let latest = later.after(Nanos::SECOND);
        assert_eq!(
            turn(&mut line, latest, 1),
            [(7, '4', 1)],
            "not the end of the day"
        );
    }
}
