//! A Nasdaq channel: TotalView-ITCH 5.0 in MoldUDP64, retransmission requests by datagram, GLIMPSE and replay
//! over SoupBinTCP.

use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::itch50::MESSAGE_SIZE_MAX;
use tickwire_wire::moldudp64;

use crate::engine::Engine;
use crate::glimpse::{GlimpseLogin, GlimpseSession};
use crate::mold::MessageStore;
use crate::mold::{ChannelConfig, MoldChannel};
use crate::order::{Listener, Order};
use crate::soup::SoupServerConfig;

use crate::tape::{Datagram, Listing, Publisher, Tape};

mod writer;

pub use writer::{ItchWriter, MARKET_MAKERS};
use writer::{write_add, write_directory, write_status};

/// Everything about an [`ItchPublisher`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItchPublisherConfig {
    /// Whose feed it is.
    pub venue: Venue,
    /// The downstream channel.
    pub channel: ChannelConfig,
    /// The snapshot service.
    pub glimpse: SoupServerConfig,
    /// Snapshot connections are numbered 0 to this, exclusive.
    pub connections: usize,
}

impl Default for ItchPublisherConfig {
    fn default() -> ItchPublisherConfig {
        ItchPublisherConfig {
            venue: Venue::Nasdaq,
            channel: ChannelConfig::default(),
            glimpse: SoupServerConfig::default(),
            connections: 4,
        }
    }
}

/// See the module's description.
pub struct ItchPublisher {
    venue: Venue,
    publisher: ItchWriter<MoldChannel>,
    glimpse: Vec<GlimpseSession>,
    has_ended: bool,
}

impl ItchPublisher {
    /// A channel of these instruments. Everything is allocated here, except snapshots for clients.
    pub fn new(config: ItchPublisherConfig, listings: &[Listing]) -> ItchPublisher {
        ItchPublisher {
            venue: config.venue,
            publisher: ItchWriter::new(listings, MoldChannel::new(config.channel)),
            glimpse: (0..config.connections)
                .map(|_| GlimpseSession::new(config.glimpse))
                .collect(),
            has_ended: false,
        }
    }

    /// What was published, by type.
    pub fn publisher(&self) -> &ItchWriter<MoldChannel> {
        &self.publisher
    }
}

impl Publisher for ItchPublisher {
    fn venue(&self) -> Venue {
        self.venue
    }

    fn open(&mut self, _: Nanos) {}

    fn handle_timeout(&mut self, now: Nanos, _: &Engine) {
        self.glimpse
            .iter_mut()
            .for_each(|session| session.handle_timeout(now));
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let glimpse = self.glimpse.iter().filter_map(GlimpseSession::poll_timeout).min();
        [glimpse, self.publisher.sink().poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.publisher.sink_mut().poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let packet = moldudp64::parse(datagram).ok()?;
        (packet.next_seq() > packet.seq).then(|| (packet.seq, packet.next_seq()))
    }

    fn handle_request(&mut self, _: Nanos, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        self.publisher.sink().handle_request(bytes, reply)
    }

    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        let session = self.glimpse.get_mut(id).filter(|_| port == Port::SnapshotServer);
        session.map(|session| session.connect(now)).is_some()
    }

    fn handle_bytes(&mut self, _: Port, id: usize, now: Nanos, bytes: &[u8], engine: &Engine) {
        let Some(session) = self.glimpse.get_mut(id) else {
            return;
        };
        session.handle_bytes(now, bytes);
        let channel = self.publisher.sink();
        match session.take_login() {
            Some(GlimpseLogin::Snapshot) => {
                let publisher = &self.publisher;
                session.load_snapshot(channel.store().next(), |out| {
                    write_snapshot(engine, publisher, out)
                });
            }
            Some(login) => session.start_replay(login, channel.session(), channel.store()),
            None => {}
        }
    }

    fn poll_transmit<'b>(&mut self, _: Port, id: usize, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.glimpse.get_mut(id)?;
        let store = self.publisher.sink().store();
        session.pull(store, store.next(), self.has_ended);
        session.poll_transmit(now, buf)
    }

    fn wants_close(&self, _: Port, id: usize) -> bool {
        self.glimpse.get(id).is_some_and(GlimpseSession::wants_close)
    }

    fn disconnect(&mut self, _: Port, id: usize) {
        if let Some(session) = self.glimpse.get_mut(id) {
            session.disconnect();
        }
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.has_ended = true;
        self.publisher.sink_mut().end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.publisher.sink().is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.publisher.sink().store().next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.publisher.sink_mut().store_mut()
    }
}

impl Tape for ItchPublisher {
    crate::tape::tape_of_writer!(publisher);
}

impl Listener for ItchPublisher {
    crate::tape::listener_of_writer!(publisher);
}

/// The messages of a snapshot. GLIMPSE 5.0: directory first, then trading status, then orders.
fn write_snapshot(engine: &Engine, publisher: &ItchWriter<MoldChannel>, out: &mut dyn FnMut(&[u8])) {
    let at = publisher.time();
    let mut out = |message: &[u8]| {
        debug_assert!(message.len() <= MESSAGE_SIZE_MAX);
        out(message)
    };
    for listing in publisher.listings() {
        write_directory(listing, at, &mut out);
    }
    for listing in publisher.listings() {
        let status = engine
            .trading_status(listing.id)
            .unwrap_or(TradingStatus::Unknown);
        write_status(listing, status, at, &mut out);
    }
    engine.visit(&mut |order: &Order| {
        if !order.hidden {
            write_add(order, publisher.stock(order.instrument), at, &mut out);
        }
    });
}

// Connections of recovery servers are none of what is played back: whoever had one asks again.
persist!(struct ItchPublisher { publisher, has_ended } not { venue, glimpse });
