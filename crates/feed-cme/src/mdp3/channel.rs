//! A channel of CME Globex with all its recovery: TCP replay, then the loops, or natural refresh where nobody
//! listens to them.

use super::event::{Moment, Tail};
use super::{Mdp3Decoder, Mdp3Depth, Mdp3Feed, Mdp3Recovery, Mdp3Replay, ReplayConfig, ReplayState, offers};
use crate::decoder::Context;
use crate::{ArbiterConfig, Channel, Line, RecoveryLimits, Start, Twin};
use tickwire_market::{
    Contract, DynSink, EventFlags, EventSink, InstrumentId, Nanos, PointValue, Port, Price, PriceSteps,
};

// The feed's limit is that of the layouts' specification.
const _: () =
    assert!(RecoveryLimits::MDP3_MESSAGES as usize == tickwire_wire_cme::mdp3::tcp::PACKETS_MAX as usize);

/// See the module's description.
pub struct Mdp3Channel {
    feed: Mdp3Feed,
    recovery: Mdp3Recovery,
    replay: Mdp3Replay,
}

/// How long a connection to the replay service may take.
const REPLAY_PATIENCE_NS: u64 = 500 * Nanos::MILLI;

impl Mdp3Channel {
    /// A channel that has seen nothing; `replay` says as whom to ask for packets, `loop_patience_ns` how long
    /// a turn of the loops may take before [`Mdp3Recovery::is_overdue`].
    pub fn new(
        config: ArbiterConfig,
        decoder: Mdp3Decoder,
        replay: ReplayConfig,
        loop_patience_ns: u64,
    ) -> Mdp3Channel {
        Mdp3Channel {
            feed: Mdp3Feed::new(config, decoder),
            recovery: Mdp3Recovery::new(loop_patience_ns),
            replay: Mdp3Replay::new(replay),
        }
    }

    /// What suits the exchange: joined with a snapshot, packets asked for up to 2000 at a time, one request a
    /// connection.
    pub fn arbiter_config() -> ArbiterConfig {
        ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            request_messages: RecoveryLimits::MDP3_MESSAGES,
            request_timeout_ns: REPLAY_PATIENCE_NS + 100 * Nanos::MILLI,
            request_attempts: 3,
            request_gap_max: RecoveryLimits::MDP3_MESSAGES.into(),
            recovery: RecoveryLimits::MDP3,
            ..ArbiterConfig::default()
        }
    }

    /// A replay account of that channel; connections may take half a second.
    pub fn replay_config(channel: u16, username: &[u8], password: &[u8]) -> ReplayConfig {
        ReplayConfig {
            channel,
            username: username.to_vec(),
            password: password.to_vec(),
            patience_ns: REPLAY_PATIENCE_NS,
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &Mdp3Feed {
        &self.feed
    }

    /// The feed behind it: packets of a file.
    pub fn feed_mut(&mut self) -> &mut Mdp3Feed {
        &mut self.feed
    }

    /// The client of the loops.
    pub fn recovery(&self) -> &Mdp3Recovery {
        &self.recovery
    }

    /// What follows whatever may have shown that packets are missing.
    #[inline]
    fn mend(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if self.feed.arbiter().is_whole() {
            return;
        }
        self.mend_now(now, sink);
    }

    #[cold]
    fn mend_now(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        if self.replay.state() == ReplayState::Idle {
            // One request reaches over several gaps, with what lies between: a connection serves only one.
            while let Some(range) = self.feed.poll_missing() {
                if !self.replay.ask(range) {
                    self.feed.take_back_missing(now, range);
                }
            }
        }
        if self.feed.decoder().refreshes_naturally() && self.feed.arbiter().has_lost() {
            let context = Context {
                seq: self.feed.next_seq(),
                received: now,
                flags: EventFlags::NONE,
            };
            let time = Nanos::ZERO;
            let mut sink = DynSink(sink);
            let mut out = Tail::new(&mut sink);
            self.feed
                .decoder_mut()
                .doubt_all(&Moment { context, time }, &mut out);
            out.end();
            self.feed.accept_loss(now, sink.0);
        }
    }
}

impl Channel for Mdp3Channel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let books = match self.feed.decoder().depth() {
            Mdp3Depth::ByPrice => Port::Snapshot,
            Mdp3Depth::ByOrder => Port::SnapshotByOrder,
        };
        match port {
            Port::Live => {
                self.feed.on_packet(now, line, bytes, sink);
                self.mend(now, sink);
            }
            Port::Definitions => self.recovery.on_definitions(now, bytes, &mut self.feed, sink),
            _ if port == books => self.recovery.on_snapshots(now, bytes, &mut self.feed, sink),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
        self.replay.handle_timeout(now);
        if self.recovery.poll_timeout().is_some_and(|due| due <= now) {
            self.recovery.handle_timeout(now);
        }
        self.mend(now, sink);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        if self.feed.arbiter().is_whole() {
            return self.replay.poll_timeout();
        }
        let loops = self
            .recovery
            .poll_timeout()
            .filter(|_| !self.recovery.is_overdue());
        [self.feed.poll_timeout(), self.replay.poll_timeout(), loops]
            .into_iter()
            .flatten()
            .min()
    }

    fn wants_connection(&self, port: Port) -> bool {
        let wants = matches!(
            self.replay.state(),
            ReplayState::Connect | ReplayState::LoggingOn | ReplayState::Replaying
        );
        port == Port::Replay && wants
    }

    fn connected(&mut self, now: Nanos, port: Port) {
        if port == Port::Replay {
            self.replay.handle_connected(now);
        }
    }

    fn on_bytes(&mut self, now: Nanos, _: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        self.replay.handle_bytes(now, bytes, &mut self.feed, sink);
        self.mend(now, sink);
    }

    fn poll_transmit<'b>(&mut self, _: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.replay.poll_transmit(buffer)
    }

    fn disconnected(&mut self, now: Nanos, port: Port, sink: &mut dyn EventSink) {
        if port == Port::Replay {
            if self.replay.state() == ReplayState::Connect {
                self.feed.planner_mut().unreachable();
            }
            self.replay.handle_closed();
            self.mend(now, sink);
        }
    }

    fn contract(&self, id: InstrumentId) -> Option<Contract> {
        self.feed.decoder().contract(id)
    }

    fn point_value(&self, id: InstrumentId) -> Option<PointValue> {
        self.feed.decoder().terms(id)?.point_value()
    }

    fn price_steps(&self, id: InstrumentId) -> Option<PriceSteps> {
        let terms = self.feed.decoder().terms(id)?;
        match terms.tick_rule {
            Some(rule) => Some(PriceSteps {
                tick: rule.inside,
                beyond: Some((rule.bound, rule.beyond)),
            }),
            None => terms.tick.map(|tick| PriceSteps { tick, beyond: None }),
        }
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<Mdp3Channel>> {
        let config = self.feed.config_of_twin(instrument)?;
        Some(offers::twin(self.feed.decoder(), config, instrument, price))
    }

    tickwire_feed_core::answers_from_feed!();
}
