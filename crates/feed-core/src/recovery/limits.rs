//! What a venue allows, with the section of its specification, and how patient we are.

use tickwire_market::Nanos;

/// How a request is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Answers {
    /// By one datagram with as many messages as fit: the rest is asked for again. MoldUDP64 1.00, "Request
    /// Packet".
    #[default]
    OneDatagram,
    /// By all that was asked for, in as many packets as that takes, on a group or a connection.
    Everything,
}

/// What may be asked for and how often. 0 for a number of requests or snapshots means: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryLimits {
    /// How a request is answered.
    pub answers: Answers,
    /// Requests that wait for their answers at once, at least 1.
    pub requests_under_way: u16,
    /// Requests in any span of one second.
    pub requests_per_second: u32,
    /// Requests in any span of one minute.
    pub requests_per_minute: u32,
    /// Requests in a day of the venue, which begins at 07:00 UTC: 02:00 or 03:00 in New York, when no US
    /// market is open.
    pub requests_per_day: u32,
    /// Whether one request may reach over several gaps, with what lies between: where requests are dear.
    pub spans_gaps: bool,
    /// Snapshots begun in any span of one minute: logins of GLIMPSE and Spin, refresh requests of NYSE.
    pub snapshots_per_minute: u32,
    /// Snapshots begun in a day of the venue.
    pub snapshots_per_day: u32,
    /// The shortest time-out of a request, nanoseconds, however fast answers were so far.
    pub timeout_min_ns: u64,
    /// How long a round trip is taken to be before one was measured, nanoseconds.
    pub round_trip_ns: u64,
    /// How long a snapshot is taken to need before one was measured, nanoseconds.
    pub snapshot_ns: u64,
    /// How long a snapshot waits after the one before it, nanoseconds; twice as long after each, up to
    /// `backoff_max_ns`.
    pub backoff_ns: u64,
    /// The longest such wait, nanoseconds. After twice this time without a snapshot the waits begin anew.
    pub backoff_max_ns: u64,
    /// Without progress for so long the feed goes on, marked, nanoseconds; ten times as long in all. 0: it
    /// waits for ever.
    pub deadline_ns: u64,
    /// How long the feed goes on marked before recovery is tried again, nanoseconds.
    pub retry_ns: u64,
}

impl Default for RecoveryLimits {
    fn default() -> RecoveryLimits {
        RecoveryLimits::MOLDUDP64
    }
}

impl RecoveryLimits {
    /// MoldUDP64 1.00 names no limit ("request rate limits ... are venue configuration"); 32 requests under
    /// way are ours.
    pub const MOLDUDP64: RecoveryLimits = RecoveryLimits {
        answers: Answers::OneDatagram,
        requests_under_way: 32,
        requests_per_second: 0,
        requests_per_minute: 0,
        requests_per_day: 0,
        spans_gaps: false,
        snapshots_per_minute: 60,
        snapshots_per_day: 0,
        timeout_min_ns: 5 * Nanos::MILLI,
        round_trip_ns: Nanos::MILLI,
        snapshot_ns: 250 * Nanos::MILLI,
        backoff_ns: 250 * Nanos::MILLI,
        backoff_max_ns: 30 * Nanos::SECOND,
        deadline_ns: 30 * Nanos::SECOND,
        retry_ns: 60 * Nanos::SECOND,
    };

    /// PITCH 2.41.29, "Gap Request Proxy": 100 messages a request, 320 requests a second, 1,500 a minute,
    /// 100,000 a day. Spin announces an image every second, so that a snapshot takes about that long.
    pub const PITCH: RecoveryLimits = RecoveryLimits {
        answers: Answers::Everything,
        requests_under_way: 16,
        requests_per_second: 320,
        requests_per_minute: 1_500,
        requests_per_day: 100_000,
        spans_gaps: true,
        snapshot_ns: 1_200 * Nanos::MILLI,
        ..RecoveryLimits::MOLDUDP64
    };

    /// NYSE XDP Common Client 2.4, "Request Server": 1,000 messages a request, 10,000 retransmission and
    /// 5,000 refresh requests a day. Requests a second and under way, and refreshes a minute, are ours: no
    /// limit is named.
    pub const XDP: RecoveryLimits = RecoveryLimits {
        answers: Answers::Everything,
        requests_under_way: 4,
        requests_per_second: 100,
        requests_per_day: 10_000,
        spans_gaps: true,
        snapshots_per_minute: 600,
        snapshots_per_day: 5_000,
        snapshot_ns: 500 * Nanos::MILLI,
        ..RecoveryLimits::MOLDUDP64
    };

    /// NYSE OpenBook Ultra 2.1, "Request Server": 1,000 packets a request, 5,000 requests a day: 4,000
    /// retransmissions and 1,000 refreshes of them.
    pub const OPENBOOK: RecoveryLimits = RecoveryLimits {
        requests_per_day: 4_000,
        snapshots_per_day: 1_000,
        ..RecoveryLimits::XDP
    };

    /// CME MDP 3.0, "TCP Replay": one request a connection, 2,000 packets a request. One connection at a time
    /// is ours.
    pub const MDP3: RecoveryLimits = RecoveryLimits {
        answers: Answers::Everything,
        requests_under_way: 1,
        spans_gaps: true,
        timeout_min_ns: 600 * Nanos::MILLI,
        round_trip_ns: 20 * Nanos::MILLI,
        snapshot_ns: 2 * Nanos::SECOND,
        ..RecoveryLimits::MOLDUDP64
    };

    /// MOEX FAST, "TCP replay (feed H)": one request a connection, 500 messages a request; excessive
    /// connections are banned, so one a second is ours.
    pub const MOEX: RecoveryLimits = RecoveryLimits {
        timeout_min_ns: 3 * Nanos::SECOND,
        requests_per_second: 1,
        ..RecoveryLimits::MDP3
    };

    /// The most messages that one request may ask for: MDP 3.0.
    pub const MDP3_MESSAGES: u16 = 2_000;
    /// The most messages that one request may ask for: MOEX.
    pub const MOEX_MESSAGES: u16 = 500;
    /// The most messages that one request may ask for: NYSE, both products.
    pub const NYSE_MESSAGES: u16 = 1_000;
}
