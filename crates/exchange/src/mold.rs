//! The market data channel: numbered messages kept for retransmission and cut into MoldUDP64 datagrams.
//!
//! Messages enter by [`MessageSink::message`] and get consecutive numbers from 1. Datagrams leave by
//! [`MoldChannel::poll_datagram`]: what accumulated since the last call travels together, as many messages as fit.
//! When there is nothing to send for a while it makes heartbeats, after [`MoldChannel::end`] end-of-session
//! packets. Requests are answered by [`MoldChannel::handle_request`] with one datagram. MoldUDP64 1.00.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};
use tickwire_wire::moldudp64::{self, MESSAGES_MAX, PacketBuilder, Request};

use crate::history::History;
use crate::tape::MessageSink;
use crate::tape::{Datagram, LineSet};

/// Sizes and times of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelConfig {
    /// The session's name.
    pub session: [u8; 10],
    /// The largest UDP payload, 64 to 2,048 bytes.
    pub datagram_max: usize,
    /// The most messages of one datagram.
    pub messages_max: u16,
    /// Bytes of messages kept for retransmission (2 more per message); the oldest are forgotten first.
    pub store_bytes: usize,
    /// Messages kept for retransmission.
    pub store_messages: usize,
    /// Silence before a heartbeat, and between end-of-session packets at most.
    pub heartbeat_ns: u64,
}

impl Default for ChannelConfig {
    fn default() -> ChannelConfig {
        ChannelConfig {
            session: *b"TICKWIRE01",
            datagram_max: 1400,
            messages_max: 40,
            store_bytes: 256 << 20,
            store_messages: 8 << 20,
            heartbeat_ns: Nanos::SECOND,
        }
    }
}

/// Messages that a snapshot has of a store with a history, at most: what was just sent, and is asked for
/// most.
const SAVED_MESSAGES: u64 = 4096;

/// The last messages of a session, as MoldUDP64 blocks in one ring of bytes, and the earlier ones in its
/// [`History`], if it has one.
pub struct MessageStore {
    bytes: Vec<u8>,
    /// Where each kept message's block starts, by number modulo the length.
    offsets: Vec<u32>,
    /// The oldest message kept.
    first: u64,
    /// The number of the next message.
    next: u64,
    head: usize,
    history: Option<Box<dyn History>>,
}

impl MessageStore {
    /// A store of that many bytes (at most 4 GiB) and messages.
    pub fn new(bytes: usize, messages: usize) -> MessageStore {
        MessageStore {
            // A block has at most 2 + 65,535 bytes and must fit whole.
            bytes: vec![0; bytes.clamp(1 << 17, u32::MAX as usize)],
            offsets: vec![0; messages.max(16).next_power_of_two()],
            first: 1,
            next: 1,
            head: 0,
            history: None,
        }
    }

    /// Has every message from here on kept in `history` too.
    pub fn keep_history(&mut self, history: Box<dyn History>) {
        self.history = Some(history);
    }

    /// Its history.
    pub fn history(&self) -> Option<&(dyn History + 'static)> {
        self.history.as_deref()
    }

    /// Its history.
    pub fn history_mut(&mut self) -> Option<&mut (dyn History + 'static)> {
        self.history.as_deref_mut()
    }

    /// The oldest message kept, here or in the history; the next one if there is none.
    pub fn first(&self) -> SeqNo {
        self.kept_from(SeqNo(1))
    }

    /// The first message from `seq` on that is kept, here or in the history; the next one if there is none.
    /// What is missing in between could not be written.
    pub fn kept_from(&self, seq: SeqNo) -> SeqNo {
        let here = SeqNo(self.first.max(seq.0).min(self.next));
        let earlier = self.history.as_ref().filter(|_| seq.0 < self.first);
        earlier
            .and_then(|history| history.kept_from(seq))
            .map_or(here, |found| found.min(here))
    }

    /// The oldest message that is kept here, in memory.
    pub fn recent_from(&self) -> SeqNo {
        SeqNo(self.first)
    }

    /// The number the next message gets.
    pub fn next(&self) -> SeqNo {
        SeqNo(self.next)
    }

    /// Appends a message; the oldest ones make room. A message longer than 65,535 bytes is a bug of the
    /// publisher.
    #[inline]
    pub fn push(&mut self, message: &[u8]) {
        let length = u16::try_from(message.len())
            .expect("a block's length has 16 bits")
            .to_be_bytes();
        let need = 2 + message.len();
        self.make_room(need);
        let block = &mut self.bytes[self.head..self.head + need];
        block[..2].copy_from_slice(&length);
        block[2..].copy_from_slice(message);
        self.head += need;
        if let Some(history) = &mut self.history {
            history.keep(SeqNo(self.next), message);
        }
        self.next += 1;
    }

    /// Forgets the oldest messages until the next one has a number and `need` bytes from the head on.
    fn make_room(&mut self, need: usize) {
        if self.head + need > self.bytes.len() {
            self.forget(|offset, head| offset >= head);
            self.head = 0;
        }
        self.forget(|offset, head| offset >= head && offset < head + need);
        if self.next - self.first == self.offsets.len() as u64 {
            self.first += 1;
        }
        let at = self.place(self.next);
        self.offsets[at] = self.head as u32;
    }

    /// A message, from memory or from the history; `None` if neither has it, or it is not published yet.
    pub fn get(&self, seq: SeqNo) -> Option<Cow<'_, [u8]>> {
        match &self.history {
            Some(history) if seq.0 < self.first => history.get(seq).map(Cow::Owned),
            _ => self.recent(seq).map(Cow::Borrowed),
        }
    }

    /// A message that is kept here, in memory.
    pub fn recent(&self, seq: SeqNo) -> Option<&[u8]> {
        if seq.0 < self.first || seq.0 >= self.next {
            return None;
        }
        let at = self.offsets[self.place(seq.0)] as usize;
        let length = u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
        Some(&self.bytes[at + 2..at + 2 + usize::from(length)])
    }

    /// The blocks of the messages from `seq` on that are kept here and lie one behind the other: at most so
    /// many, in so many bytes. How many, and their bytes.
    fn blocks(&self, seq: SeqNo, count_max: u16, bytes_max: usize) -> (u16, &[u8]) {
        if seq.0 < self.first || seq.0 >= self.next {
            return (0, &[]);
        }
        let start = self.offsets[self.place(seq.0)] as usize;
        let (mut count, mut end) = (0, start);
        let kept = (self.next - seq.0).min(count_max.into()) as u16;
        while count < kept && self.offsets[self.place(seq.0 + u64::from(count))] as usize == end {
            let length = u16::from_be_bytes([self.bytes[end], self.bytes[end + 1]]);
            let next = end + 2 + usize::from(length);
            if next - start > bytes_max {
                break;
            }
            (count, end) = (count + 1, next);
        }
        (count, &self.bytes[start..end])
    }

    /// Drops the oldest messages while their offset is in the way of the head.
    fn forget(&mut self, in_the_way: impl Fn(usize, usize) -> bool) {
        while self.first < self.next && in_the_way(self.offsets[self.place(self.first)] as usize, self.head) {
            self.first += 1;
        }
    }

    fn place(&self, seq: u64) -> usize {
        seq as usize & (self.offsets.len() - 1)
    }
}

enum Stage {
    Open,
    /// End-of-session packets until then.
    Ending {
        until: Nanos,
    },
    Over,
}

/// See the module's description.
pub struct MoldChannel {
    config: ChannelConfig,
    store: MessageStore,
    /// The next message to send.
    unsent: u64,
    /// When something was sent last.
    sent_at: Nanos,
    stage: Stage,
    scratch: Vec<u8>,
}

impl MessageSink for MoldChannel {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.store.push(bytes);
    }
}

impl MoldChannel {
    /// A channel without messages.
    pub fn new(config: ChannelConfig) -> MoldChannel {
        MoldChannel {
            store: MessageStore::new(config.store_bytes, config.store_messages),
            unsent: 1,
            sent_at: Nanos::ZERO,
            stage: Stage::Open,
            scratch: vec![0; config.datagram_max.clamp(64, 2048)],
            config,
        }
    }

    /// Its messages.
    pub fn store(&self) -> &MessageStore {
        &self.store
    }

    /// Its messages, to have them kept elsewhere too.
    pub fn store_mut(&mut self) -> &mut MessageStore {
        &mut self.store
    }

    /// The session's name.
    pub fn session(&self) -> [u8; 10] {
        self.config.session
    }

    /// Messages published and not sent yet.
    pub fn backlog(&self) -> u64 {
        self.store.next - self.unsent
    }

    /// No message follows: end-of-session packets go out for `linger_ns`, then nothing. Said again, they go
    /// out for so long from then on.
    pub fn end(&mut self, now: Nanos, linger_ns: u64) {
        if matches!(self.stage, Stage::Open) {
            self.sent_at = Nanos::ZERO;
        }
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Ending {
                until: now.after(linger_ns),
            };
        }
    }

    /// Whether everything was sent, ends of session included. Requests are still answered.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over) && self.backlog() == 0
    }

    /// When [`MoldChannel::poll_datagram`] next has something to send if no message comes; `None` when over.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.stage {
            _ if self.backlog() > 0 => Some(self.sent_at),
            Stage::Open => Some(self.sent_at.after(self.config.heartbeat_ns)),
            Stage::Ending { until } => Some(self.sent_at.after(self.ending_gap()).min(until)),
            Stage::Over => None,
        }
    }

    /// The next datagram to send, if any is due.
    pub fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        let first = SeqNo(self.unsent);
        let length = if self.backlog() > 0 {
            self.pack(first)
        } else {
            self.idle(now)?
        };
        self.sent_at = now;
        Some(Datagram {
            port: Port::Live,
            lines: LineSet::BOTH,
            first,
            next: SeqNo(self.unsent),
            bytes: &self.scratch[..length],
        })
    }

    /// Answers a request for retransmission: writes one datagram into `reply` (at least as large as the
    /// largest datagram) and gives its length. `None`, as the protocol has no refusal: malformed, another
    /// session, nothing wanted, forgotten, or not published yet.
    pub fn handle_request(&self, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        let request = Request::parse(bytes).ok()?;
        if request.session != self.config.session || request.count == 0 {
            return None;
        }
        self.store.get(request.seq)?;
        let limit = reply.len().min(self.config.datagram_max);
        let reply = reply
            .get_mut(..limit)
            .filter(|reply| reply.len() >= Request::SIZE)?;
        // What was not sent yet is not given either: a request must not overtake the feed.
        let end = request.seq.advance(request.count.into()).0.min(self.unsent);
        let mut packet = PacketBuilder::new(reply, self.config.session, request.seq);
        for seq in request.seq.0..end {
            match self.store.get(SeqNo(seq)) {
                Some(message) if packet.push(&message) => {}
                _ => break,
            }
        }
        (packet.count() > 0).then(|| packet.finish())
    }

    fn pack(&mut self, first: SeqNo) -> usize {
        let mut packet = PacketBuilder::new(&mut self.scratch, self.config.session, first);
        loop {
            // One piece but where the ring begins anew.
            let left = self.config.messages_max.clamp(1, MESSAGES_MAX) - packet.count();
            let (count, blocks) = self.store.blocks(SeqNo(self.unsent), left, packet.room());
            if count == 0 || !packet.push_blocks(count, blocks) {
                break;
            }
            self.unsent += u64::from(count);
        }
        if packet.count() == 0 {
            // The store forgot what was not sent: it is configured smaller than what one poll leaves behind.
            // Receivers see a gap that nobody can fill.
            self.unsent = self.store.first.max(self.unsent + 1);
        }
        packet.finish()
    }

    fn idle(&mut self, now: Nanos) -> Option<usize> {
        let (session, next) = (self.config.session, self.store.next());
        match self.stage {
            Stage::Open if now.since(self.sent_at) >= self.config.heartbeat_ns => {
                Some(moldudp64::heartbeat(&mut self.scratch, session, next))
            }
            Stage::Ending { until } if now >= until => {
                self.stage = Stage::Over;
                None
            }
            Stage::Ending { .. } if now.since(self.sent_at) >= self.ending_gap() => {
                Some(moldudp64::end_of_session(&mut self.scratch, session, next))
            }
            _ => None,
        }
    }

    /// Ends of session repeat more often than heartbeats: one that is lost must not cost a second.
    fn ending_gap(&self) -> u64 {
        self.config.heartbeat_ns.min(20 * Nanos::MILLI)
    }
}

persist!(value enum Stage { 0 => Open, 1 => Ending { until }, 2 => Over });
persist!(struct MoldChannel { store, unsent, sent_at, stage } not { config, scratch });

/// The newest messages, and where the history stands, which has the earlier ones.
impl Persist for MessageStore {
    fn save(&self, out: &mut Bytes) {
        let first = match self.history {
            Some(_) => self.first.max(self.next.saturating_sub(SAVED_MESSAGES)),
            None => self.first,
        };
        // Laid out from the same place on, the ring forgets the same messages.
        let start = match first < self.next {
            true => self.offsets[self.place(first)] as usize,
            false => self.head,
        };
        (self.next, first, start).save(out);
        for seq in first..self.next {
            let message = self.recent(SeqNo(seq)).unwrap_or_default();
            (message.len() as u16).save(out);
            out.extend_from_slice(message);
        }
        let history = self.history.as_ref().map(|history| {
            let mut state = Vec::new();
            history.save(&mut state);
            state
        });
        history.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        let (next, first, start) = <(u64, u64, usize)>::read(from)?;
        if start > self.bytes.len() {
            return Err(Damaged);
        }
        let history = self.history.take();
        (self.first, self.next, self.head) = (first, first, start);
        while self.next < next {
            let length = u16::read(from)?;
            self.push(from.take(usize::from(length))?);
        }
        self.history = history;
        let state = Option::<Vec<u8>>::read(from)?;
        match (&mut self.history, state) {
            (Some(history), Some(state)) => history.load(&mut StateReader::new(&state)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_testdata::Rng;

    #[test]
    fn the_store_keeps_the_newest_messages_whatever_their_sizes() {
        let mut store = MessageStore::new(0, 1000);
        let mut rng = Rng::new(1);
        let mut all: Vec<Vec<u8>> = Vec::new();
        for i in 0..20_000_u64 {
            let mut message = vec![0; rng.below(2_000) as usize];
            rng.fill(&mut message);
            store.push(&message);
            all.push(message);
            assert_eq!(store.next(), SeqNo(i + 2));
            let oldest = store.first().0;
            assert!(
                i + 2 - oldest >= 60.min(i + 1),
                "131,072 bytes hold at least 60 messages of 2,002"
            );
            for seq in [oldest, i + 1, oldest + rng.below(i + 2 - oldest)] {
                assert_eq!(
                    store.recent(SeqNo(seq)),
                    Some(&all[seq as usize - 1][..]),
                    "message {seq}"
                );
            }
            assert_eq!(store.get(SeqNo(oldest - 1)), None);
            assert_eq!(store.get(SeqNo(i + 2)), None);
        }
    }

    fn channel(messages: u64) -> MoldChannel {
        let mut channel = MoldChannel::new(ChannelConfig {
            datagram_max: 100,
            messages_max: 3,
            store_bytes: 0,
            store_messages: 64,
            ..ChannelConfig::default()
        });
        (0..messages).for_each(|i| channel.message(&i.to_be_bytes()));
        channel
    }

    #[test]
    fn accumulated_messages_travel_together_then_heartbeats_then_ends_of_session_then_nothing() {
        let mut channel = channel(4);
        let second = Nanos::ZERO.after(Nanos::SECOND);
        let mut sent = Vec::new();
        let mut drain = |channel: &mut MoldChannel, now: Nanos| {
            sent.clear();
            while let Some(d) = channel.poll_datagram(now) {
                let packet = moldudp64::parse(d.bytes).unwrap();
                assert_eq!((packet.seq, packet.next_seq()), (d.first, d.next));
                sent.push((
                    d.first.0,
                    d.next.0,
                    u16::from_be_bytes([d.bytes[18], d.bytes[19]]),
                ));
            }
            sent.clone()
        };
        assert_eq!(drain(&mut channel, second), [(1, 4, 3), (4, 5, 1)]);
        assert_eq!(channel.poll_timeout(), Some(second.after(Nanos::SECOND)));
        assert_eq!(drain(&mut channel, second.after(1)), []);
        assert_eq!(drain(&mut channel, second.after(Nanos::SECOND)), [(5, 5, 0)]);
        let end = second.after(2 * Nanos::SECOND);
        channel.message(b"last");
        channel.end(end, 30 * Nanos::MILLI);
        assert_eq!(drain(&mut channel, end), [(5, 6, 1)]);
        assert_eq!(
            drain(&mut channel, end.after(20 * Nanos::MILLI)),
            [(6, 6, 0xFFFF)]
        );
        assert!(!channel.is_over());
        assert_eq!(drain(&mut channel, end.after(30 * Nanos::MILLI)), []);
        assert!(channel.is_over() && channel.poll_timeout().is_none());
    }

    /// Message by message into a packet: what the pieces that lie together must come to, at the ring's end,
    /// where it forgot what was not sent, and where a message is larger than any datagram.
    #[test]
    fn datagrams_hold_what_would_fit_message_by_message() {
        let mut rng = Rng::new(3);
        let mut channel = MoldChannel::new(ChannelConfig {
            datagram_max: 500,
            messages_max: 9,
            store_bytes: 0,
            store_messages: 4096,
            ..ChannelConfig::default()
        });
        let (mut wrapped, mut lost, mut full) = (0, 0, 0);
        for _ in 0..20_000 {
            let most = if rng.below(500) == 0 { 6_000 } else { 12 };
            for _ in 0..rng.below(most) {
                let size = if rng.below(200) == 0 { 600 } else { 130 };
                let mut message = vec![0; rng.below(size) as usize];
                rng.fill(&mut message);
                channel.message(&message);
            }
            let mut at = channel.unsent;
            let mut buffer = [0; 500];
            while at < channel.store.next {
                let mut packet = PacketBuilder::new(&mut buffer, channel.session(), SeqNo(at));
                let kept = |seq| channel.store.recent(SeqNo(seq));
                while packet.count() < 9 && kept(at).is_some_and(|message| packet.push(message)) {
                    at += 1;
                }
                if packet.count() == 0 {
                    at = channel.store.first.max(at + 1);
                    lost += 1;
                }
                full += u64::from(packet.count() == 9);
                let length = packet.finish();
                let offset = |seq| channel.store.offsets[channel.store.place(seq)];
                let first = channel.unsent.max(channel.store.first);
                wrapped += u64::from(at > first + 1 && offset(first) > offset(at - 1));
                let datagram = channel.poll_datagram(Nanos(1)).expect("something is unsent");
                assert_eq!(
                    (datagram.bytes, datagram.next.0),
                    (&buffer[..length], at),
                    "message by message"
                );
            }
            assert_eq!((channel.backlog(), channel.unsent), (0, at));
        }
        assert!(wrapped > 10 && lost > 10 && full > 100, "{wrapped} {lost} {full}");
    }

    #[test]
    fn a_request_is_answered_with_one_datagram_of_what_fits_and_was_sent() {
        let mut channel = channel(20);
        let session = channel.session();
        let mut reply = [0; 2048];
        let mut ask = |channel: &MoldChannel, seq, count, session| {
            let request = Request {
                session,
                seq: SeqNo(seq),
                count,
            }
            .encode();
            let length = channel.handle_request(&request, &mut reply)?;
            assert!(length <= 100);
            let packet = moldudp64::parse(&reply[..length]).unwrap();
            Some((packet.seq.0, packet.count()))
        };
        assert_eq!(ask(&channel, 1, 2, session), None, "not sent yet");
        while channel.poll_datagram(Nanos(1)).is_some() {}
        assert_eq!(ask(&channel, 1, 2, session), Some((1, 2)));
        assert_eq!(
            ask(&channel, 5, 60_000, session),
            Some((5, 8)),
            "80 bytes hold eight blocks of ten"
        );
        assert_eq!(ask(&channel, 19, 10, session), Some((19, 2)));
        assert_eq!(ask(&channel, 21, 1, session), None);
        assert_eq!(ask(&channel, 0, 1, session), None);
        assert_eq!(ask(&channel, 1, 0, session), None);
        assert_eq!(ask(&channel, 1, 1, *b"other     "), None);
        assert_eq!(channel.handle_request(b"short", &mut [0; 100]), None);
        (0..100_u64).for_each(|i| channel.message(&i.to_be_bytes()));
        assert_eq!(ask(&channel, 1, 1, session), None, "forgotten");
    }
}
