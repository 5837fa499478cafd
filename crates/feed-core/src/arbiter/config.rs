//! How an arbiter is set up, and the words in which it says what to do.

#[cfg(doc)]
use super::Arbiter;
use crate::Line;
use crate::SessionId;
use crate::recovery::RecoveryLimits;
use tickwire_market::Nanos;
use tickwire_market::SeqNo;

/// Where to begin in a session whose first messages were not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// With message 1: what was sent before is a gap, requested like any other.
    #[default]
    Beginning,
    /// With a snapshot, unless the first packet seen is the session's first.
    Snapshot,
    /// With whatever comes first. Books never become live (a capture that starts in mid-session).
    Here,
}

/// Sizes and times of an [`Arbiter`].
#[derive(Clone, Debug)]
pub struct ArbiterConfig {
    /// Where to begin in a session. Default: its beginning.
    pub start: Start,
    /// Only this session is accepted. Default: any.
    pub session: Option<SessionId>,
    /// Whether there is a snapshot to load when messages are lost. Default: no; the feed then goes on,
    /// incomplete.
    pub snapshot: bool,
    /// How many packets can wait for a gap to close. When full: packets are dropped, counted and requested
    /// later.
    pub buffer_packets: u16,
    /// So long, in bytes, as packets that wait are for the most part: a longer one, up to any datagram, takes
    /// the room of several.
    pub packet_bytes: usize,
    /// Bytes of messages held back for instruments that are subscribed to in mid-session, default 16 MiB,
    /// taken with the first such subscription. When full: the join begins again, counted; 0 keeps those books
    /// stale for good.
    pub join_bytes: usize,
    /// How many separate gaps are kept. When full: the last one grows over what lies behind it.
    pub gaps: u16,
    /// How long the other line, or a late packet, may take to fill a gap before it is requested.
    pub line_wait_ns: u64,
    /// The most messages asked for in one request.
    pub request_messages: u16,
    /// How long an answer may take at most; less once answers were measured, see
    /// [`RecoveryLimits::timeout_min_ns`].
    pub request_timeout_ns: u64,
    /// How often the same messages are asked for before they are given up. 0: there is no retransmission
    /// server.
    pub request_attempts: u8,
    /// The least time between two requests (a venue's rate limit). Default 0.
    pub request_interval_ns: u64,
    /// With a snapshot at hand, more missing messages than this are not requested, whatever is sooner.
    pub request_gap_max: u64,
    /// What the venue allows, and when to give up. Default: MoldUDP64.
    pub recovery: RecoveryLimits,
    /// A packet further ahead of everything known is believed only when others confirm it. Added to it is
    /// what the session's mean rate, 16 times over, makes of the silence before the packet.
    pub jump_max: u64,
    /// With one line, or when the other one is silent: how many packets in a row confirm a jump, a restart of
    /// the sequence, or a session that appears while the current one still runs. While the other line is
    /// heard it has to say the same.
    pub confirm_packets: u32,
    /// Three packets in a row that span this time confirm a jump, whatever the other line says; a restart,
    /// when it is silent (an idle venue sends heartbeats only).
    pub confirm_ns: u64,
    /// A session that has been silent this long, or has ended, is left for another at once. Packets of the
    /// session just left are ignored for the same time (the slower line). A line that has been silent this
    /// long has no say.
    pub session_quiet_ns: u64,
    /// Of how many messages, the latest, the content of a packet is known (a hash), so that the other line's
    /// copy of it can be compared: rounded up to a power of two, 8 bytes each. 0: the lines are not compared.
    pub compare_messages: u32,
    /// What the hashes begin with: whoever does not know it cannot make two packets of one hash. Take it at
    /// random, once a process.
    pub compare_seed: u64,
}

impl Default for ArbiterConfig {
    fn default() -> ArbiterConfig {
        ArbiterConfig {
            start: Start::Beginning,
            session: None,
            snapshot: false,
            buffer_packets: 4096,
            packet_bytes: 1500,
            join_bytes: 16 << 20,
            gaps: 256,
            line_wait_ns: 500 * Nanos::MICRO,
            request_messages: 1000,
            request_timeout_ns: 20 * Nanos::MILLI,
            request_attempts: 5,
            request_interval_ns: 0,
            request_gap_max: 1_000_000,
            recovery: RecoveryLimits::MOLDUDP64,
            jump_max: 1 << 16,
            confirm_packets: 32,
            confirm_ns: 2 * Nanos::SECOND,
            session_quiet_ns: 3 * Nanos::SECOND,
            compare_messages: 1 << 14,
            compare_seed: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl ArbiterConfig {
    /// For a [`Twin`](crate::Twin): as this one, with room for what never comes as small as it can be.
    pub(super) fn of_twin(&self) -> ArbiterConfig {
        ArbiterConfig {
            start: Start::Beginning,
            session: None,
            buffer_packets: 1,
            join_bytes: 0,
            gaps: 1,
            compare_messages: self.compare_messages.min(64),
            ..self.clone()
        }
    }
}

/// What to do with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its messages from the `skip`-th on are next. Then drain [`Arbiter::next_buffered`].
    Deliver {
        /// How many leading messages were delivered before.
        skip: u32,
    },
    /// It holds nothing new.
    Duplicate,
    /// It came before its turn and is kept.
    Buffered,
    /// It came before its turn and there is no room; its messages stay missing.
    Overflow,
    /// Another session, or a number that cannot be right; nothing changed.
    Ignored,
}

/// Something that happened to the feed, in the order of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Situation {
    /// Another session began, or the numbers of this one anew: everything known before is void.
    Restarted,
    /// Messages `[first, end)` are missing.
    Gap {
        /// The first missing message.
        first: SeqNo,
        /// The one after the last missing message.
        end: SeqNo,
    },
    /// Nothing is missing before `next`.
    Recovered {
        /// The next message.
        next: SeqNo,
    },
}

/// How far a feed can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FeedState {
    /// Not complete since the session began: nothing came yet, or its first messages are missing.
    #[default]
    Building,
    /// Every message up to the last packet has been delivered.
    Live,
    /// Messages are missing.
    Stale,
    /// The session ended and every message of it has been delivered.
    Ended,
}

/// A retransmission request to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingRange {
    /// The session it is about.
    pub session: SessionId,
    /// The first message wanted.
    pub first: SeqNo,
    /// How many messages are wanted, at least 1.
    pub count: u16,
}

/// A packet that was held back and whose turn has come.
#[derive(Clone, Copy, Debug)]
pub struct Released<'a> {
    /// The number of the packet's first message.
    pub first: SeqNo,
    /// How many leading messages were delivered before.
    pub skip: u32,
    /// The line it came on.
    pub line: Line,
    /// When it came.
    pub received: Nanos,
    /// The packet.
    pub packet: &'a [u8],
}
