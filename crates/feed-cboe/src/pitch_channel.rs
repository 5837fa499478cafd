//! One unit of a Cboe market: blocks on two lines, a Gap Request Proxy whose answers come on a multicast
//! group, Spin when requests do not help. PITCH 2.41.29.
//!
//! Every channel numbers its own instruments ([`PitchConfig::first_instrument`]) and says of itself as a
//! whole what it misses: each needs its own set of books.

use crate::{
    ArbiterConfig, Channel, GapEvent, GapProxy, Line, Offers, PitchConfig, PitchDecoder, PitchFeed,
    PitchLogin, PitchUnit, STREAM_CHUNK_MAX, SnapshotState, Spin, Start, Twin, offer_id,
};
use tickwire_market::{EventSink, InstrumentId, Nanos, Port, Price, Side};
use tickwire_wire_cboe::pitch::{
    AddOrderShort, DeleteOrder, GapStatus, PacketBuilder, ShortPrice, add_flags, gap_limits, side_char,
};
use tickwire_wire_core::layout::{Alpha, Pod};

/// What a [`PitchChannel`] has to know.
#[derive(Clone, Debug, Default)]
pub struct PitchChannelConfig {
    /// The unit, from 1.
    pub unit: u8,
    /// Venue, instruments and orders.
    pub decoder: PitchConfig,
    /// As whom to log in to the Gap Request Proxy.
    pub proxy: PitchLogin,
    /// As whom to log in to the unit's Spin server.
    pub spin: PitchLogin,
}

/// See the module's description.
pub struct PitchChannel {
    feed: PitchFeed,
    proxy: GapProxy,
    spin: Spin,
    asks: Link,
    loads: Link,
}

/// A connection as its owner has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Closed,
    Open,
    /// Of no further use; to be closed.
    Spent,
}

impl PitchChannel {
    /// A channel that has seen nothing. Requests as the proxy allows them, a snapshot when they do not help
    /// or the day's first messages were not seen.
    pub fn new(config: PitchChannelConfig) -> PitchChannel {
        let arbiter = ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            // The proxy's history.
            request_gap_max: gap_limits::HISTORY,
            ..PitchUnit::arbiter_config(config.unit)
        };
        PitchChannel::with_arbiter(arbiter, config)
    }

    /// The same with limits of one's own; their `session` must be that of the unit.
    pub fn with_arbiter(arbiter: ArbiterConfig, config: PitchChannelConfig) -> PitchChannel {
        PitchChannel {
            feed: PitchFeed::new(arbiter, PitchDecoder::new(config.decoder)),
            proxy: GapProxy::new(config.proxy),
            spin: Spin::new(config.spin),
            asks: Link::Closed,
            loads: Link::Closed,
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &PitchFeed {
        &self.feed
    }

    /// The feed behind it: subscriptions.
    pub fn feed_mut(&mut self) -> &mut PitchFeed {
        &mut self.feed
    }

    /// Hands over what is missing. What cannot be asked for now comes again after its timeout, at last as a
    /// snapshot.
    #[inline]
    fn ask(&mut self, now: Nanos) {
        while let Some(range) = self.feed.poll_missing() {
            if !self.proxy.ask(range) {
                self.feed.take_back_missing(now, range);
            }
        }
    }

    /// Takes note of what the proxy said. What was granted comes on its group, or is asked for again.
    fn listen(&mut self, now: Nanos) {
        while let Some(event) = self.proxy.poll_event() {
            match event {
                GapEvent::Failed(_) if self.asks == Link::Open => self.asks = Link::Spent,
                GapEvent::Answered(answer) if answer.status.0 != GapStatus::Accepted as u8 => {
                    let span_ns = match answer.status.0 {
                        s if s == GapStatus::SecondQuota as u8 => Nanos::SECOND,
                        s if s == GapStatus::MinuteQuota as u8 => 60 * Nanos::SECOND,
                        s if s == GapStatus::DailyQuota as u8 => Nanos::DAY,
                        _ => 0,
                    };
                    self.feed.planner_mut().refused(now, span_ns);
                }
                GapEvent::Failed(_) | GapEvent::Answered(_) | GapEvent::LoggedIn => {}
            }
        }
    }

    fn watch_spin(&mut self) {
        let is_over = matches!(
            self.spin.state(),
            SnapshotState::Done(_) | SnapshotState::Failed(_)
        );
        if is_over && self.loads == Link::Open {
            self.loads = Link::Spent;
        }
    }
}

impl Channel for PitchChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let line = if port == Port::Live {
            line
        } else {
            Line::Retransmit
        };
        self.feed.on_packet(now, line, bytes, sink);
        self.ask(now);
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.planner_mut().snapshots.handle_timeout(now);
        self.feed.handle_timeout(now, sink);
        self.ask(now);
        if self.asks == Link::Open {
            self.proxy.handle_timeout(now);
            self.listen(now);
        }
        if self.loads == Link::Open {
            self.spin.handle_timeout(now);
            self.watch_spin();
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        let proxy = (self.asks == Link::Open).then(|| self.proxy.poll_timeout());
        let spin = match self.loads {
            Link::Open => Some(self.spin.poll_timeout()),
            Link::Closed | Link::Spent => Some(self.feed.snapshot_opens_at()),
        };
        [self.feed.poll_timeout(), proxy.flatten(), spin.flatten()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The proxy all day long, as a login takes longer than a request may; Spin when a snapshot is wanted.
    fn wants_connection(&self, port: Port) -> bool {
        let (link, wanted) = match port {
            Port::Replay => (self.asks, !self.is_done()),
            Port::SnapshotServer if self.loads == Link::Closed => (self.loads, self.feed.may_load_snapshot()),
            Port::SnapshotServer => (self.loads, self.feed.wants_snapshot()),
            _ => return false,
        };
        match link {
            Link::Closed => wanted,
            Link::Open => wanted || port == Port::SnapshotServer && !self.feed.is_snapshot_void(),
            Link::Spent => false,
        }
    }

    fn connected(&mut self, now: Nanos, port: Port) {
        match port {
            Port::Replay => {
                self.asks = Link::Open;
                self.proxy.handle_connected(now);
            }
            Port::SnapshotServer => {
                self.loads = Link::Open;
                self.feed.snapshot_connected(now);
                self.spin.handle_connected(now);
            }
            _ => {}
        }
    }

    fn on_bytes(&mut self, now: Nanos, port: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        for chunk in bytes.chunks(STREAM_CHUNK_MAX) {
            match port {
                Port::Replay => {
                    self.proxy.handle_bytes(now, chunk);
                    self.listen(now);
                }
                Port::SnapshotServer => {
                    self.spin.handle_bytes(now, chunk, &mut self.feed, sink);
                    self.watch_spin();
                }
                _ => {}
            }
        }
        self.ask(now);
    }

    fn poll_transmit<'b>(&mut self, port: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match port {
            Port::Replay => self.proxy.poll_transmit(buffer),
            Port::SnapshotServer => self.spin.poll_transmit(buffer),
            _ => None,
        }
    }

    fn disconnected(&mut self, now: Nanos, port: Port, _: &mut dyn EventSink) {
        match port {
            Port::Replay if self.asks != Link::Closed => {
                self.asks = Link::Closed;
                self.proxy.handle_closed();
                self.listen(now);
            }
            Port::Replay => self.feed.planner_mut().unreachable(),
            Port::SnapshotServer => {
                let was_open = core::mem::replace(&mut self.loads, Link::Closed) != Link::Closed;
                if was_open {
                    self.spin.handle_closed();
                }
                let is_done = was_open && matches!(self.spin.state(), SnapshotState::Done(_));
                self.feed.snapshot_disconnected(now, is_done);
            }
            _ => {}
        }
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<PitchChannel>> {
        let arbiter = self.feed.config_of_twin(instrument)?;
        let offers = PitchOffers {
            price: ShortPrice::from_price(price)?,
        };
        let decoder = PitchConfig {
            venue: self.venue(),
            first_instrument: instrument.0,
            instruments_max: 1,
            orders_max: 16,
            ..PitchConfig::default()
        };
        let config = PitchChannelConfig {
            unit: UNIT_OF_TWIN,
            decoder,
            ..PitchChannelConfig::default()
        };
        Some(Twin::new(PitchChannel::with_arbiter(arbiter, config), offers))
    }

    tickwire_feed_core::answers_from_feed!();
}

/// What the unit of a twin is called.
const UNIT_OF_TWIN: u8 = 1;

/// Of a session of its own: an order is added, and deleted.
struct PitchOffers {
    price: ShortPrice,
}

impl Offers for PitchOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let mut packet = PacketBuilder::new(buffer, UNIT_OF_TWIN, number);
        let order_id = offer_id(number).into();
        // A packet that has no room for its message is a heartbeat.
        let _ = match number % 2 {
            1 => packet.push(
                AddOrderShort {
                    order_id,
                    side: side_char(Side::Ask),
                    qty: 100.into(),
                    symbol: Alpha(*b"REHRSE"),
                    price: self.price,
                    flags: add_flags::DISPLAYED,
                    ..AddOrderShort::BLANK_MESSAGE
                }
                .as_bytes(),
            ),
            _ => packet.push(
                DeleteOrder {
                    order_id,
                    ..DeleteOrder::BLANK_MESSAGE
                }
                .as_bytes(),
            ),
        };
        packet.finish()
    }
}
