//! A Nasdaq channel: ITCH 5.0 in MoldUDP64, requests by datagram, GLIMPSE when requests do not help.

use crate::{
    Channel, Glimpse, ItchConfig, ItchDecoder, ItchFeed, Line, Offers, STREAM_CHUNK_MAX, SnapshotState,
    SoupConfig, Twin, offer_id,
};
use tickwire_market::{EventSink, InstrumentId, Nanos, Port, Price, SeqNo, Side};
use tickwire_wire_core::layout::{Alpha, Pod, Price4};
use tickwire_wire_nasdaq::itch50::{AddOrder, OrderDelete, side_char};
use tickwire_wire_nasdaq::moldudp64::PacketBuilder;

/// See the module's description.
pub struct ItchChannel {
    feed: ItchFeed,
    glimpse: Glimpse,
    is_connected: bool,
}

impl ItchChannel {
    /// A channel that has seen nothing; `login` is for GLIMPSE.
    pub fn new(feed: ItchFeed, login: SoupConfig) -> ItchChannel {
        ItchChannel {
            feed,
            glimpse: Glimpse::new(login),
            is_connected: false,
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &ItchFeed {
        &self.feed
    }

    /// The feed behind it: messages of a file, subscriptions.
    pub fn feed_mut(&mut self) -> &mut ItchFeed {
        &mut self.feed
    }
}

impl Channel for ItchChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let line = if port == Port::Live {
            line
        } else {
            Line::Retransmit
        };
        self.feed.on_packet(now, line, bytes, sink);
    }

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.feed.on_message(now, message, sink);
    }

    fn preview<S: EventSink>(&mut self, _: Nanos, message: &[u8], sink: &mut S) {
        self.feed.preview(message, sink);
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.planner_mut().snapshots.handle_timeout(now);
        self.feed.handle_timeout(now, sink);
        if self.glimpse.poll_timeout().is_some_and(|t| t <= now) {
            self.glimpse.handle_timeout(now);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        match (self.feed.poll_timeout(), self.is_connected) {
            (feed, false) => feed.into_iter().chain(self.feed.snapshot_opens_at()).min(),
            (feed, true) => feed.into_iter().chain(self.glimpse.poll_timeout()).min(),
        }
    }

    #[inline]
    fn poll_request<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.feed.poll_transmit(buffer)
    }

    fn wants_connection(&self, port: Port) -> bool {
        let is_over = matches!(
            self.glimpse.state(),
            SnapshotState::Done(_) | SnapshotState::Failed(_)
        );
        port == Port::SnapshotServer
            && match self.is_connected {
                true => !is_over && !self.feed.is_snapshot_void(),
                false => self.feed.may_load_snapshot(),
            }
    }

    fn connected(&mut self, now: Nanos, port: Port) {
        if port == Port::SnapshotServer {
            self.is_connected = true;
            self.feed.snapshot_connected(now);
            self.glimpse.handle_connected(now);
        }
    }

    fn on_bytes(&mut self, now: Nanos, _: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        for chunk in bytes.chunks(STREAM_CHUNK_MAX) {
            self.glimpse.handle_bytes(now, chunk, &mut self.feed, sink);
        }
    }

    fn poll_transmit<'b>(&mut self, _: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.glimpse.poll_transmit(buffer)
    }

    fn disconnected(&mut self, now: Nanos, port: Port, _: &mut dyn EventSink) {
        if port != Port::SnapshotServer {
            return;
        }
        let was_open = core::mem::replace(&mut self.is_connected, false);
        if was_open {
            self.glimpse.handle_closed();
        }
        let is_done = was_open && matches!(self.glimpse.state(), SnapshotState::Done(_));
        self.feed.snapshot_disconnected(now, is_done);
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<ItchChannel>> {
        let config = self.feed.config_of_twin(instrument)?;
        let offers = ItchOffers {
            locate: u16::try_from(instrument.0).ok()?,
            price: Price4::from_price(price)?,
        };
        let decoder = ItchDecoder::new(ItchConfig {
            venue: self.venue(),
            midnight: Nanos::ZERO,
            instruments_max: instrument.0 + 1,
            symbols: None,
        });
        let feed = ItchFeed::new(config, decoder);
        Some(Twin::new(ItchChannel::new(feed, SoupConfig::default()), offers))
    }

    tickwire_feed_core::answers_from_feed!();
}

/// Of a session of its own: an order is added, and deleted.
struct ItchOffers {
    locate: u16,
    price: Price4,
}

impl Offers for ItchOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let mut packet = PacketBuilder::new(buffer, *b"REHEARSED ", SeqNo(number.into()));
        let order_ref = offer_id(number).into();
        // A packet that has no room for its message is a heartbeat.
        let _ = match number % 2 {
            1 => packet.push(
                AddOrder {
                    order_ref,
                    side: side_char(Side::Ask),
                    shares: 100.into(),
                    stock: Alpha(*b"REHEARSE"),
                    price: self.price,
                    ..AddOrder::at(self.locate, 1)
                }
                .as_bytes(),
            ),
            _ => packet.push(
                OrderDelete {
                    order_ref,
                    ..OrderDelete::at(self.locate, 1)
                }
                .as_bytes(),
            ),
        };
        packet.finish()
    }
}
