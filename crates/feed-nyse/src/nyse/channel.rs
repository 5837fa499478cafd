//! A channel of a NYSE feed: messages again and refreshes are asked for over one connection, kept open for
//! the day, and come on groups of their own.

use super::{NyseDecoder, NyseRequests, RequestConfig, RequestEvent, RequestProtocol};
use crate::{Channel, FeedHandler, Framing, Line, Offers, Twin};
use tickwire_market::{EventSink, InstrumentId, Nanos, Port, Price, Venue};

/// Decimals of the prices that a [`Twin`] is sent.
pub(crate) const TWIN_SCALE: u8 = 4;

/// What XDP and OpenBook Ultra differ in.
pub trait NyseProtocol: Framing + RequestProtocol + Sized {
    /// Reads the messages.
    type Decoder: NyseDecoder;
    /// Takes refreshes.
    type Refresh;

    /// A refresh client for a feed; see [`RequestConfig::refresh_patience_ns`].
    fn refresh(patience_ns: u64, instruments_max: u32) -> Self::Refresh;

    /// See [`crate::XdpRefresh::poll_ask`].
    fn poll_ask(
        refresh: &mut Self::Refresh,
        now: Nanos,
        feed: &mut FeedHandler<Self, Self::Decoder>,
    ) -> Option<u32>;

    /// See [`crate::XdpRefresh::on_packet`].
    fn on_refresh(
        refresh: &mut Self::Refresh,
        now: Nanos,
        datagram: &[u8],
        feed: &mut FeedHandler<Self, Self::Decoder>,
        sink: &mut dyn EventSink,
    );

    /// See [`crate::XdpRefresh::poll_timeout`].
    fn refresh_timeout(refresh: &Self::Refresh, feed: &FeedHandler<Self, Self::Decoder>) -> Option<Nanos>;

    /// Whether a datagram of the retransmission group holds messages of the channel. Heartbeats tell the
    /// group's own numbers.
    fn is_retransmission(datagram: &[u8]) -> bool;

    /// The decoder of a [`Twin`]: for numbers below this.
    fn decoder_of_twin(venue: Venue, instruments_max: u32) -> Self::Decoder;

    /// What a [`Twin`] is sent; the price has four decimals.
    fn offers(instrument: InstrumentId, price: i32) -> impl Offers + 'static;
}

/// See the module's description. [`crate::XdpChannel`] and [`crate::OpenBookChannel`] are its two kinds.
pub struct NyseChannel<P: NyseProtocol> {
    feed: FeedHandler<P, P::Decoder>,
    refresh: P::Refresh,
    requests: NyseRequests<P>,
    /// The connection is of no use: to be closed.
    is_broken: bool,
    /// Requests that were refused.
    refusals: u64,
}

impl<P: NyseProtocol> NyseChannel<P> {
    /// A channel that has seen nothing.
    pub fn new(feed: FeedHandler<P, P::Decoder>, requests: RequestConfig) -> NyseChannel<P> {
        let instruments = feed.filter().numbers_end() as u32;
        NyseChannel {
            refresh: P::refresh(requests.refresh_patience_ns, instruments),
            feed,
            requests: NyseRequests::new(requests),
            is_broken: false,
            refusals: 0,
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &FeedHandler<P, P::Decoder> {
        &self.feed
    }

    /// The feed behind it: messages of a file, subscriptions.
    pub fn feed_mut(&mut self) -> &mut FeedHandler<P, P::Decoder> {
        &mut self.feed
    }

    /// Asks for the mapping of an instrument, or with 0 of the channel: it comes on the refresh group.
    /// `false` if there is no connection or too much waits already.
    pub fn ask_mapping(&mut self, instrument: u32) -> bool {
        self.requests.ask_mapping(instrument)
    }

    /// How many requests the server refused.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Hands what the feed needs to the connection. What does not fit is due again after its time.
    #[inline(never)]
    fn ask(&mut self, now: Nanos) {
        while let Some(range) = self.feed.poll_missing() {
            if !self.requests.ask(range) {
                self.feed.take_back_missing(now, range);
            }
        }
        self.feed.planner_mut().snapshots.handle_timeout(now);
        while self.requests.takes() && self.feed.planner_mut().snapshots.has_room(now) {
            match P::poll_ask(&mut self.refresh, now, &mut self.feed) {
                Some(instrument) => {
                    self.requests.ask_refresh(instrument);
                    match instrument {
                        0 if self.feed.arbiter().awaits_snapshot() => {
                            self.feed.planner_mut().snapshots.began(now)
                        }
                        _ => self.feed.planner_mut().snapshots.count(now),
                    }
                }
                None => break,
            }
        }
    }
}

impl<P: NyseProtocol> Channel for NyseChannel<P> {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        match port {
            Port::Live => self.feed.on_packet(now, line, bytes, sink),
            Port::Retransmission if P::is_retransmission(bytes) => {
                self.feed.on_packet(now, Line::Retransmit, bytes, sink)
            }
            Port::Snapshot => P::on_refresh(&mut self.refresh, now, bytes, &mut self.feed, sink),
            _ => {}
        }
        if !self.feed.arbiter().is_quiet() {
            self.ask(now);
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
        self.requests.handle_timeout(now);
        self.note(now);
        self.ask(now);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        let (refresh, opens) = match self.requests.takes() {
            true => (
                P::refresh_timeout(&self.refresh, &self.feed)
                    .map(|due| self.feed.gate().opens_at().unwrap_or(due).max(due)),
                self.feed.snapshot_opens_at(),
            ),
            false => (None, None),
        };
        let due = [
            self.feed.poll_timeout(),
            self.requests.poll_timeout(),
            refresh,
            opens,
        ];
        due.into_iter().flatten().min()
    }

    fn wants_connection(&self, port: Port) -> bool {
        port == Port::Replay && !self.is_broken
    }

    fn connected(&mut self, now: Nanos, port: Port) {
        if port == Port::Replay {
            self.requests.handle_connected(now);
            self.ask(now);
        }
    }

    fn on_bytes(&mut self, now: Nanos, _: Port, bytes: &[u8], _: &mut dyn EventSink) {
        self.requests.handle_bytes(now, bytes);
        self.note(now);
    }

    fn poll_transmit<'b>(&mut self, _: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.requests.poll_transmit(buffer)
    }

    fn disconnected(&mut self, _: Nanos, port: Port, _: &mut dyn EventSink) {
        if port == Port::Replay {
            if !self.requests.is_connected() {
                self.feed.planner_mut().unreachable();
            }
            self.requests.handle_closed();
            self.is_broken = false;
        }
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<NyseChannel<P>>> {
        let config = self.feed.config_of_twin(instrument)?;
        let price = i32::try_from(price.to_decimal(TWIN_SCALE)?).ok()?;
        let decoder = P::decoder_of_twin(self.venue(), instrument.0 + 1);
        let feed = FeedHandler::new(config, decoder);
        Some(Twin::new(
            NyseChannel::new(feed, RequestConfig::default()),
            P::offers(instrument, price),
        ))
    }

    tickwire_feed_core::answers_from_feed!();
}

impl<P: NyseProtocol> NyseChannel<P> {
    /// What the server said since.
    fn note(&mut self, now: Nanos) {
        while let Some(event) = self.requests.poll_event() {
            match event {
                RequestEvent::Refused(reason) => {
                    self.refusals += 1;
                    let span_ns = if P::is_quota_used_up(reason) {
                        Nanos::DAY
                    } else {
                        0
                    };
                    self.feed.planner_mut().refused(now, span_ns);
                }
                RequestEvent::Broken => {
                    self.is_broken = true;
                    self.feed.planner_mut().unreachable();
                }
                RequestEvent::Accepted | RequestEvent::Heartbeat => {}
            }
        }
    }
}

/// Implements [`NyseProtocol`] by a decoder and a refresh client.
macro_rules! nyse_protocol {
    ($protocol:ty, $config:ident, $decoder:ty, $refresh:ty) => {
        impl $crate::nyse::NyseProtocol for $protocol {
            type Decoder = $decoder;
            type Refresh = $refresh;

            fn refresh(patience_ns: u64, instruments_max: u32) -> $refresh {
                <$refresh>::new(patience_ns, instruments_max)
            }

            fn poll_ask(
                refresh: &mut $refresh,
                now: Nanos,
                feed: &mut FeedHandler<$protocol, $decoder>,
            ) -> Option<u32> {
                refresh.poll_ask(now, feed)
            }

            fn on_refresh(
                refresh: &mut $refresh,
                now: Nanos,
                datagram: &[u8],
                feed: &mut FeedHandler<$protocol, $decoder>,
                sink: &mut dyn EventSink,
            ) {
                refresh.on_packet(now, datagram, feed, sink)
            }

            fn refresh_timeout(refresh: &$refresh, feed: &FeedHandler<$protocol, $decoder>) -> Option<Nanos> {
                refresh.poll_timeout(feed)
            }

            fn is_retransmission(datagram: &[u8]) -> bool {
                is_retransmission(datagram)
            }

            fn decoder_of_twin(venue: Venue, instruments_max: u32) -> $decoder {
                <$decoder>::new($config {
                    venue,
                    instruments_max,
                    ..$config::default()
                })
            }

            fn offers(instrument: InstrumentId, price: i32) -> impl $crate::Offers + 'static {
                offers::offers(instrument, price)
            }
        }
    };
}
pub(crate) use nyse_protocol;
