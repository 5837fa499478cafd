//! A channel of a NYSE feed: a writer of its messages, its groups, its request server.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Nanos, Port, SeqNo, Side, Venue};
use tickwire_persist::{Bytes, Damaged, Persist, StateReader};

use super::{Ask, Groups, NysePublisherConfig, PacketFormat, Refusal, Request, RequestServer};
use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::order::Listener;
use crate::tape::{Datagram, Listing, Publisher, Tape};

/// Turns what an engine did into units of its groups.
pub trait NyseWriter: Tape + Persist {
    type Format: PacketFormat;

    fn config(&self) -> &NysePublisherConfig;

    fn groups(&self) -> &Groups<Self::Format>;

    fn groups_mut(&mut self) -> &mut Groups<Self::Format>;

    /// The day begins.
    fn begin(&mut self, midnight: Nanos);

    /// Numbers what still waits to be packed.
    fn flush(&mut self);

    /// Whether the request names this product and channel.
    fn recognises(&self, request: &Request) -> Result<(), Refusal>;

    /// The number of the instrument with this name, padded with NULs.
    fn find(&self, name: &[u8]) -> Option<u32>;

    /// Sends snapshots of these instruments, by place in the listings.
    fn refresh(&mut self, which: core::ops::Range<usize>, now: Nanos, engine: &Engine);

    /// Sends the mappings of these instruments, by place in the listings.
    fn mappings(&mut self, which: core::ops::Range<usize>, now: Nanos);

    /// The channel's instruments.
    fn listings(&self) -> &[Listing];

    /// What a receiver has of a side.
    fn shown(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level>;

    fn span(datagram: &[u8]) -> Option<(SeqNo, SeqNo)>;
}

/// See the module's description. `XdpPublisher` and `OpenBookPublisher` are its two kinds.
pub struct NysePublisher<W, F> {
    pub(crate) writer: W,
    pub(crate) server: RequestServer<F>,
}

impl<W: NyseWriter> NysePublisher<W, W::Format> {
    pub(crate) fn serving(writer: W) -> NysePublisher<W, W::Format> {
        let config = writer.config();
        NysePublisher {
            server: RequestServer::new(config.limits, config.connections),
            writer,
        }
    }

    /// The listings that a request means; `None` for an instrument of another channel.
    fn meant(&self, ask: Ask) -> Option<core::ops::Range<usize>> {
        let listings = self.writer.listings();
        let index = match ask {
            Ask::Refresh(0) | Ask::Mapping(0) => return Some(0..listings.len()),
            Ask::Refresh(index) | Ask::Mapping(index) => index,
            Ask::RefreshByName(name) => self.writer.find(&name)?,
            Ask::Again(..) | Ask::Alive | Ask::Unknown => return None,
        };
        let at = listings.iter().position(|listing| listing.id.0 == index)?;
        Some(at..at + 1)
    }

    fn serve(&mut self, id: usize, now: Nanos, engine: &Engine, request: &Request) {
        let store = self.writer.groups().store();
        let (oldest, next) = (store.first().0, store.next().0);
        let meant = self.meant(request.ask);
        let mut verdict = match request.ask {
            Ask::Unknown => Err(Refusal::BadRequest),
            _ => self.writer.recognises(request),
        };
        if verdict.is_ok() {
            verdict = self.server.judge(request.ask, oldest, next);
        }
        if verdict.is_ok() && meant.is_none() && !matches!(request.ask, Ask::Again(..)) {
            verdict = Err(Refusal::BadRequest);
        }
        let format = self.writer.groups().format();
        self.server.respond(id, format, now, request, verdict);
        if verdict.is_err() {
            return;
        }
        match (request.ask, meant) {
            (Ask::Again(first, last), _) => self.writer.groups_mut().send_again(first, last),
            (Ask::Mapping(_), Some(which)) => self.writer.mappings(which, now),
            (_, Some(which)) => self.writer.refresh(which, now, engine),
            (_, None) => {}
        }
    }
}

impl<W: NyseWriter> Publisher for NysePublisher<W, W::Format> {
    fn venue(&self) -> Venue {
        self.writer.config().venue
    }

    fn open(&mut self, midnight: Nanos) {
        self.writer.begin(midnight);
    }

    fn handle_timeout(&mut self, now: Nanos, _: &Engine) {
        self.writer.flush();
        self.server.handle_timeout(self.writer.groups().format(), now);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let due = [self.writer.groups().poll_timeout(), self.server.poll_timeout()];
        due.into_iter().flatten().min()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.writer.flush();
        self.writer.groups_mut().poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        W::span(datagram)
    }

    fn connect(&mut self, port: Port, id: usize, now: Nanos) -> bool {
        port == Port::Replay && self.server.connect(id, now)
    }

    fn handle_bytes(&mut self, _: Port, id: usize, now: Nanos, bytes: &[u8], engine: &Engine) {
        self.writer.flush();
        for part in bytes.chunks(1024) {
            self.server.handle_bytes(id, part);
            while let Some(request) = self.server.take_request(id) {
                self.serve(id, now, engine, &request);
            }
        }
    }

    fn poll_transmit<'b>(&mut self, _: Port, id: usize, _: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        self.server.poll_transmit(id, buf)
    }

    fn wants_close(&self, _: Port, id: usize) -> bool {
        self.server.wants_close(id)
    }

    fn disconnect(&mut self, _: Port, id: usize) {
        self.server.disconnect(id);
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.writer.flush();
        self.writer.groups_mut().end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.writer.groups().is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.writer.groups().store().next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.writer.groups_mut().store_mut()
    }

    fn levels(&self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        self.writer.shown(engine, instrument, side)
    }
}

impl<W: NyseWriter> Tape for NysePublisher<W, W::Format> {
    crate::tape::tape_of_writer!(writer);
}

impl<W: NyseWriter> Listener for NysePublisher<W, W::Format> {
    crate::tape::listener_of_writer!(writer);
}

impl<W: Persist, F> Persist for NysePublisher<W, F> {
    fn save(&self, out: &mut Bytes) {
        self.writer.save(out);
    }

    /// Connections of the request server are not played back.
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.writer.load(from)
    }
}
