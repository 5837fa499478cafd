//! A market's order log (or trade log) with all its recovery: TCP replay for what both lines lost, the
//! snapshot loop when that does not help or the day has begun already, definitions and status beside them.
//!
//! Live packets are held back from the moment a snapshot is wanted. Every instrument's snapshot says up to
//! which live packet it goes; it counts when the packets held reach back to it. Once all of a turn is taken,
//! the feed goes on behind the oldest of them, and the decoder drops what each instrument's own snapshot
//! contained.
//!
//! The exchange has no end of session: the day is over when every instrument's status says so and the feed
//! has sent a heartbeat since.

use super::{MoexConfig, MoexDecoder, MoexFeed, MoexReplay, MoexReplayConfig, MoexReplayState, offers};
use crate::{ArbiterConfig, Channel, Line, RecoveryLimits, Start, Twin};
use tickwire_market::{EventSink, InstrumentId, Nanos, PointValue, Port, Price};
use tickwire_wire_moex::moex::MissingField;

/// Everything about a [`MoexChannel`].
#[derive(Clone, Debug)]
pub struct MoexChannelConfig {
    /// Templates, instruments.
    pub decoder: MoexConfig,
    /// Sequencing: see [`MoexChannelConfig::arbiter`].
    pub arbiter: ArbiterConfig,
    /// The replay service.
    pub replay: MoexReplayConfig,
}

impl MoexChannelConfig {
    /// The defaults, with this decoder.
    pub fn new(decoder: MoexConfig) -> MoexChannelConfig {
        MoexChannelConfig {
            decoder,
            arbiter: MoexChannelConfig::arbiter(),
            replay: MoexReplayConfig::default(),
        }
    }

    /// Sequencing as the exchange's recovery wants it: begins with a snapshot unless the day's first packet
    /// is seen; gaps are asked for in pieces of 500 at most, one connection a second at most, and given up
    /// for a snapshot after two tries.
    pub fn arbiter() -> ArbiterConfig {
        ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            line_wait_ns: 2 * Nanos::MILLI,
            request_messages: RecoveryLimits::MOEX_MESSAGES,
            request_gap_max: 2_000,
            request_timeout_ns: 3 * Nanos::SECOND,
            request_attempts: 2,
            recovery: RecoveryLimits::MOEX,
            ..ArbiterConfig::default()
        }
    }
}

// The feed's limit is that of the layouts' specification.
const _: () = assert!(
    RecoveryLimits::MOEX_MESSAGES as usize == tickwire_wire_moex::moex::replay::MESSAGES_MAX as usize
);

/// See the module's description.
pub struct MoexChannel {
    feed: MoexFeed,
    replay: MoexReplay,
    has_snapshots: bool,
    is_connected: bool,
}

impl MoexChannel {
    /// A channel that has seen nothing. All memory it will ever use is taken here. An error: the templates
    /// lack what is needed.
    pub fn new(config: MoexChannelConfig) -> Result<MoexChannel, MissingField> {
        let decoder = MoexDecoder::new(config.decoder)?;
        Ok(MoexChannel::around(decoder, config.arbiter, config.replay))
    }

    pub(super) fn around(
        decoder: MoexDecoder,
        arbiter: ArbiterConfig,
        replay: MoexReplayConfig,
    ) -> MoexChannel {
        MoexChannel {
            has_snapshots: arbiter.snapshot,
            feed: MoexFeed::new(arbiter, decoder),
            replay: MoexReplay::new(replay),
            is_connected: false,
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &MoexFeed {
        &self.feed
    }

    /// How far the replay is.
    pub fn replay_state(&self) -> MoexReplayState {
        self.replay.state()
    }

    /// A packet of the snapshot loop. While the feed wants none it serves instruments subscribed to in
    /// mid-session.
    fn on_snapshots(&mut self, now: Nanos, line: Line, packet: &[u8], sink: &mut dyn EventSink) {
        let ceiling = self.feed.snapshot_ceiling();
        self.feed.decoder_mut().set_ceiling(ceiling);
        if !self.feed.wants_snapshot() {
            if self.feed.decoder().joins() {
                self.feed.on_snapshot_message(now, packet, sink);
            }
            return;
        }
        let floor = self.feed.arbiter().snapshot_floor();
        if self.feed.decoder_mut().raise_floor(floor) {
            self.feed.begin_snapshot(now, sink);
            self.feed.decoder_mut().begin_turn(now, floor, sink);
        }
        self.feed.decoder_mut().set_line(line);
        self.feed.on_snapshot_message(now, packet, sink);
        if let Some(next) = self.feed.decoder_mut().end_turn() {
            self.feed.end_snapshot(now, next, sink);
        }
    }

    /// What any call may have left to do: a snapshot where a book is wrong, packets to ask for.
    #[inline]
    fn follow_up(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if self.feed.decoder_mut().take_torn() && self.has_snapshots && !self.feed.wants_snapshot() {
            self.feed.begin_snapshot(now, sink);
        }
        // Connections are dear: what is missing behind the first gap comes over the same one, with what lies
        // between.
        if self.replay.state() == MoexReplayState::Idle
            && let Some(range) = self.feed.poll_missing()
            && !self.replay.ask(range)
        {
            self.feed.take_back_missing(now, range);
        }
    }
}

impl Channel for MoexChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        match port {
            Port::Live => self.feed.on_packet(now, line, bytes, sink),
            Port::Snapshot => self.on_snapshots(now, line, bytes, sink),
            Port::Definitions => self.feed.on_snapshot_message(now, bytes, sink),
            _ => return,
        }
        self.follow_up(now, sink);
    }

    fn point_value(&self, id: InstrumentId) -> Option<PointValue> {
        self.feed.decoder().point_value(id)
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
        self.replay.handle_timeout(now);
        self.follow_up(now, sink);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        match (self.feed.poll_timeout(), self.is_connected) {
            (feed, false) => feed,
            (feed, true) => feed.into_iter().chain(self.replay.poll_timeout()).min(),
        }
    }

    fn wants_connection(&self, port: Port) -> bool {
        port == Port::Replay && self.replay.wants_connection()
    }

    fn connected(&mut self, now: Nanos, port: Port) {
        if port == Port::Replay {
            self.is_connected = true;
            self.replay.handle_connected(now);
        }
    }

    fn on_bytes(&mut self, now: Nanos, port: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        if port == Port::Replay {
            self.replay.handle_bytes(now, bytes, &mut self.feed, sink);
            self.follow_up(now, sink);
        }
    }

    fn poll_transmit<'b>(&mut self, port: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        if port != Port::Replay {
            return None;
        }
        self.replay.poll_transmit(buffer)
    }

    fn disconnected(&mut self, now: Nanos, port: Port, sink: &mut dyn EventSink) {
        if port == Port::Replay {
            if !self.is_connected {
                self.feed.planner_mut().unreachable();
            }
            self.is_connected = false;
            self.replay.handle_closed();
            self.follow_up(now, sink);
        }
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<MoexChannel>> {
        let arbiter = self.feed.config_of_twin(instrument)?;
        offers::twin(self.feed.decoder(), arbiter, instrument, price)
    }

    tickwire_feed_core::answers_from_feed!();
}
