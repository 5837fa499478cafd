//! One unit of a Cboe equities market: Multicast PITCH 2.41.29 on the live group, a Gap Request Proxy that
//! answers on the gap response group, a Spin server.
//!
//! ```text
//!  Listener ─► PitchWriter ─► Unit ─► Live            blocks of numbered messages, heartbeats
//!                              │  └─► Retransmission  ◄─ Gap Request Proxy (Replay)
//!                              └────► Images ─────────► Spin (SnapshotServer)
//! ```

use alloc::vec::Vec;

use tickwire_market::{Nanos, Port, SeqNo, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::pitch::{self, LoginStatus};
use tickwire_wire::zerocopy::IntoBytes;

use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::order::{Listener, Order};
use crate::tape::{Datagram, Listing, Publisher, Tape};

mod numbers;
mod proxy;
mod session;
mod spin;
mod unit;
mod writer;

use proxy::Quotas;
use session::{Asked, ServerSession};
pub use session::{PitchAccount, PitchServiceConfig};
use spin::{ImageWriter, Images, Loading};
use unit::Unit;
pub use unit::UnitConfig;
use writer::PitchWriter;

/// Everything about a [`PitchPublisher`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PitchPublisherConfig {
    /// Whose feed it is: BZX (the default), BYX, EDGA or EDGX. Only BZX closes with an auction.
    pub venue: Venue,
    /// The unit.
    pub unit: UnitConfig,
    /// The TCP services.
    pub service: PitchServiceConfig,
    /// Connections of each service are numbered 0 to this, exclusive.
    pub connections: usize,
    /// What is added to the engine's order numbers. Default: numbers as Cboe has them, 12 digits in base 36.
    pub order_base: u64,
    /// Orders that were modified and are in the book at once, for which there is room from the start; more
    /// take memory then.
    pub modified_orders: usize,
}

impl Default for PitchPublisherConfig {
    fn default() -> PitchPublisherConfig {
        PitchPublisherConfig {
            venue: Venue::Bzx,
            unit: UnitConfig::default(),
            service: PitchServiceConfig::default(),
            connections: 4,
            // 631WC4000000
            order_base: 0x0B1D_568F_775B_4000,
            modified_orders: 1 << 16,
        }
    }
}

struct ProxySession {
    session: ServerSession,
    quotas: Quotas,
}

struct SpinSession {
    session: ServerSession,
    loading: Loading,
}

/// See the module's description.
pub struct PitchPublisher {
    writer: PitchWriter<Unit>,
    venue: Venue,
    has_account: bool,
    proxies: Vec<ProxySession>,
    spins: Vec<SpinSession>,
    images: Images,
}

impl PitchPublisher {
    /// A unit of these instruments. Everything is allocated here, except images for Spin clients.
    pub fn new(config: PitchPublisherConfig, listings: &[Listing]) -> PitchPublisher {
        let session = || ServerSession::new(config.service);
        let unit = Unit::new(config.unit);
        PitchPublisher {
            writer: PitchWriter::new(
                config.venue,
                config.order_base,
                config.modified_orders,
                listings,
                unit,
            ),
            venue: config.venue,
            has_account: config.service.account.is_some(),
            proxies: (0..config.connections)
                .map(|_| ProxySession {
                    session: session(),
                    quotas: Quotas::new(),
                })
                .collect(),
            spins: (0..config.connections)
                .map(|_| SpinSession {
                    session: session(),
                    loading: Loading::default(),
                })
                .collect(),
            images: Images::new(),
        }
    }

    /// How many messages of this type were published.
    pub fn published(&self, kind: u8) -> u64 {
        self.writer.published(kind)
    }

    fn session(&self, port: Port, id: usize) -> Option<&ServerSession> {
        match port {
            Port::Replay => self.proxies.get(id).map(|proxy| &proxy.session),
            Port::SnapshotServer => self.spins.get(id).map(|spin| &spin.session),
            _ => None,
        }
    }

    fn session_mut(&mut self, port: Port, id: usize) -> Option<&mut ServerSession> {
        match port {
            Port::Replay => self.proxies.get_mut(id).map(|proxy| &mut proxy.session),
            Port::SnapshotServer => self.spins.get_mut(id).map(|spin| &mut spin.session),
            _ => None,
        }
    }

    /// Whether another connection of the service uses the one account.
    fn is_in_use(&self, port: Port, id: usize) -> bool {
        let mut others = (0..self.proxies.len()).filter(|other| *other != id);
        self.has_account
            && others.any(|other| self.session(port, other).is_some_and(ServerSession::is_serving))
    }

    /// The number of the last message published; 0 before the first.
    fn last(&self) -> u32 {
        pitch::wire_sequence(self.writer.sink().next().0 - 1)
    }

    fn answer(&mut self, port: Port, id: usize, now: Nanos, asked: Asked) {
        match (asked, port) {
            (Asked::Login, _) => {
                let status = match self.is_in_use(port, id) {
                    true => LoginStatus::InUse,
                    false => LoginStatus::Accepted,
                };
                if let Some(session) = self.session_mut(port, id) {
                    session.admit(status);
                }
            }
            (Asked::Gap(request), Port::Replay) => {
                if let Some(ProxySession { session, quotas }) = self.proxies.get_mut(id) {
                    proxy::answer(now, &request, quotas, self.writer.sink_mut(), session);
                }
            }
            (Asked::Spin(request), Port::SnapshotServer) => {
                let last = self.last();
                if let Some(SpinSession { session, loading }) = self.spins.get_mut(id) {
                    loading.request(request.sequence.get(), last, &self.images, session);
                }
            }
            // A request of the other service: nothing is said to it.
            _ => {}
        }
    }

    /// Takes an image when one is due and somebody waits for it, and tells the clients.
    fn image(&mut self, now: Nanos, engine: &Engine) {
        let waits = |spin: &SpinSession| spin.session.is_serving() && spin.loading.wants_image();
        if !self.spins.iter().any(waits) {
            return;
        }
        let last = self.last();
        if last > 0 && self.images.due() <= now {
            let (writer, unit) = (&self.writer, self.writer.sink().number());
            self.images
                .take(now, last, unit, |out| write_image(engine, writer, out));
        }
        for SpinSession { session, loading } in self.spins.iter_mut().filter(|spin| spin.session.is_serving())
        {
            loading.announce(&self.images, session);
        }
    }
}

/// What a Spin holds: the time, the status of every instrument that is not suspended, every displayed order.
fn write_image(engine: &Engine, writer: &PitchWriter<Unit>, out: &mut ImageWriter) {
    out.message(writer.time().as_bytes());
    for listing in writer.listings() {
        let status = engine
            .trading_status(listing.id)
            .unwrap_or(TradingStatus::Unknown);
        let message = writer.status_message(listing, status);
        if message.status.0 != pitch::Status::Suspended as u8 {
            out.message(message.as_bytes());
        }
    }
    engine.visit(&mut |order: &Order| {
        if !order.hidden {
            writer.write_add(order, &mut |message: &[u8]| out.add(message));
        }
    });
}

impl Publisher for PitchPublisher {
    fn venue(&self) -> Venue {
        self.venue
    }

    fn open(&mut self, _: Nanos) {}

    fn handle_timeout(&mut self, now: Nanos, engine: &Engine) {
        self.image(now, engine);
        let proxies = self.proxies.iter_mut().map(|proxy| &mut proxy.session);
        let spins = self.spins.iter_mut().map(|spin| &mut spin.session);
        proxies
            .chain(spins)
            .for_each(|session| session.handle_timeout(now));
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let proxies = self.proxies.iter().map(|proxy| &proxy.session);
        let spins = self.spins.iter().map(|spin| &spin.session);
        let waits = |spin: &SpinSession| spin.session.is_serving() && spin.loading.wants_image();
        let image = self.spins.iter().any(waits).then(|| self.images.due());
        proxies
            .chain(spins)
            .filter_map(ServerSession::poll_timeout)
            .chain(image)
            .chain(self.writer.sink().poll_timeout())
            .min()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.writer.sink_mut().poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        unit::span(datagram)
    }

    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        if let (Port::Replay, Some(proxy)) = (port, self.proxies.get_mut(id)) {
            proxy.quotas = Quotas::new();
        }
        if let (Port::SnapshotServer, Some(spin)) = (port, self.spins.get_mut(id)) {
            spin.loading = Loading::default();
        }
        let session = self.session_mut(port, id);
        session.map(|session| session.connect(now)).is_some()
    }

    fn handle_bytes(&mut self, port: Port, id: usize, now: Nanos, bytes: &[u8], engine: &Engine) {
        let Some(session) = self.session_mut(port, id) else {
            return;
        };
        session.handle_bytes(now, bytes);
        while let Some(asked) = self.session_mut(port, id).and_then(ServerSession::take) {
            self.answer(port, id, now, asked);
        }
        self.image(now, engine);
    }

    fn poll_transmit<'b>(
        &mut self,
        port: Port,
        id: usize,
        now: Nanos,
        buf: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        if let (Port::SnapshotServer, Some(SpinSession { session, loading })) = (port, self.spins.get_mut(id))
        {
            loading.pull(session);
        }
        self.session_mut(port, id)?.poll_transmit(now, buf)
    }

    fn wants_close(&self, port: Port, id: usize) -> bool {
        self.session(port, id).is_some_and(ServerSession::wants_close)
    }

    fn disconnect(&mut self, port: Port, id: usize) {
        if let Some(session) = self.session_mut(port, id) {
            session.disconnect();
        }
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.writer.sink_mut().end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.writer.sink().is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.writer.sink().next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.writer.sink_mut().store_mut()
    }
}

impl Tape for PitchPublisher {
    crate::tape::tape_of_writer!(writer);
}

impl Listener for PitchPublisher {
    crate::tape::listener_of_writer!(writer);
}

// Connections of the gap request proxy and of the spin server are not played back.
persist!(struct PitchPublisher { writer } not { venue, has_account, proxies, spins, images });
