//! The request servers of NYSE feeds: messages again, or a snapshot, asked for over TCP and sent by
//! multicast.
//!
//! XDP and OpenBook Ultra have the same conversation in different bytes. The owner connects, moves bytes, and
//! draws requests from the feed ([`FeedHandler::poll_missing`](crate::FeedHandler::poll_missing)); what was
//! asked for comes on the channel's retransmission or refresh group. A request that is refused or whose data
//! never come is asked again, or given up, by the feed's own times.

mod channel;
mod refresh;

pub use channel::{NyseChannel, NyseProtocol};
pub(crate) use channel::{TWIN_SCALE, nyse_protocol};
pub(crate) use refresh::Collector;
pub use refresh::RefreshState;

use crate::{Decoder, MissingRange, OpenBook, Xdp};
use alloc::{collections::VecDeque, vec, vec::Vec};
use tickwire_market::Nanos;
use tickwire_wire_core::layout::Alpha;
use tickwire_wire_core::{Malformed, layout::Pod};
use tickwire_wire_nyse::openbook::{self, PacketHeader};
use tickwire_wire_nyse::xdp::{self, DeliveryFlag, nul_padded};

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// The name the exchange knows this client by: at most 10 bytes for XDP, 20 for OpenBook Ultra.
    pub source_id: Vec<u8>,
    /// The product's number: 11 NYSE, 59 American, 109 National, 157 Arca, 209 Texas; OpenBook Ultra 12 and 62.
    pub product: u8,
    /// The channel's number; OpenBook Ultra has a server for each channel instead.
    pub channel: u8,
    /// How many requests can wait for the connection; more are refused. Default 16.
    pub queue: usize,
    /// A server silent for longer is gone. It sends a heartbeat every 60 seconds. Default 130 seconds.
    pub silence_ns: u64,
    /// A refresh that does not come for so long is asked for again. Default 1 second.
    pub refresh_patience_ns: u64,
}

impl Default for RequestConfig {
    fn default() -> RequestConfig {
        RequestConfig {
            source_id: Vec::new(),
            product: 0,
            channel: 0,
            queue: 16,
            silence_ns: 130 * Nanos::SECOND,
            refresh_patience_ns: Nanos::SECOND,
        }
    }
}

/// Symbol indexes are below this, whatever is configured.
pub(crate) const INSTRUMENTS_MAX: u32 = 1 << 22;

/// A decoder whose books can be refreshed one by one.
pub trait NyseDecoder: Decoder {
    /// Refreshes are about to be taken; what earlier ones held does not count, every instrument waits for its
    /// own.
    fn begin_refresh(&mut self);
}

/// What a client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Say {
    /// These numbers again, both included.
    Again(u32, u32),
    /// A snapshot of this instrument, or with 0 of the whole channel.
    Refresh(u32),
    /// The mapping of this instrument, or with 0 of the whole channel.
    Mapping(u32),
    /// Still here: the answer to a heartbeat.
    Heartbeat,
}

/// What a server says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestEvent {
    /// The data will come by multicast.
    Accepted,
    /// They will not, for the venue's reason.
    Refused(u8),
    /// Are you there? Answered by the client itself.
    Heartbeat,
    /// The connection is of no use any more: the server is silent, or says what cannot be read. Close it.
    Broken,
}

/// The bytes of a conversation.
pub trait RequestProtocol {
    /// Cuts the first packet off what a server sent, with the bytes it takes. `None` in place of an event:
    /// says nothing.
    fn split(bytes: &[u8]) -> Result<Option<(Option<RequestEvent>, usize)>, Malformed>;

    /// Whether a refusal says that the day's retransmission requests are used up.
    fn is_quota_used_up(reason: u8) -> bool;

    /// Writes a packet with this number; its length, `None` if `buffer` is too small or the source id too
    /// long.
    fn write(config: &RequestConfig, number: u32, say: Say, buffer: &mut [u8]) -> Option<usize>;
}

impl RequestProtocol for Xdp {
    fn split(bytes: &[u8]) -> Result<Option<(Option<RequestEvent>, usize)>, Malformed> {
        let Some((packet, used)) = xdp::split(bytes)? else {
            return Ok(None);
        };
        if packet.flag() == Some(DeliveryFlag::Heartbeat) {
            return Ok(Some((Some(RequestEvent::Heartbeat), used)));
        }
        let message = packet.messages.clone().next().map(xdp::parse);
        let event = match message.transpose()? {
            Some(xdp::Message::RequestResponse(m)) if m.status.0 == b'0' => Some(RequestEvent::Accepted),
            Some(xdp::Message::RequestResponse(m)) => Some(RequestEvent::Refused(m.status.0)),
            _ => None,
        };
        Ok(Some((event, used)))
    }

    fn is_quota_used_up(reason: u8) -> bool {
        reason == xdp::ResponseStatus::RequestsExhausted as u8
    }

    fn write(config: &RequestConfig, number: u32, say: Say, buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < xdp::PacketHeader::SIZE {
            return None;
        }
        let source_id: Alpha<10> = nul_padded(&config.source_id)?;
        let (product_id, channel_id) = (config.product, config.channel);
        let mut packet = xdp::PacketBuilder::new(buffer, DeliveryFlag::Original, number, Nanos::ZERO);
        let fits = match say {
            Say::Again(first, last) => packet.push(
                xdp::RetransmissionRequest {
                    begin_seq_num: first.into(),
                    end_seq_num: last.into(),
                    source_id,
                    product_id,
                    channel_id,
                    ..xdp::RetransmissionRequest::NEW
                }
                .as_bytes(),
            ),
            Say::Refresh(instrument) => packet.push(
                xdp::RefreshRequest {
                    symbol_index: instrument.into(),
                    source_id,
                    product_id,
                    channel_id,
                    ..xdp::RefreshRequest::NEW
                }
                .as_bytes(),
            ),
            Say::Mapping(instrument) => packet.push(
                xdp::SymbolIndexMappingRequest {
                    symbol_index: instrument.into(),
                    source_id,
                    product_id,
                    channel_id,
                    ..xdp::SymbolIndexMappingRequest::NEW
                }
                .as_bytes(),
            ),
            Say::Heartbeat => packet.push(
                xdp::HeartbeatResponse {
                    source_id,
                    ..xdp::HeartbeatResponse::NEW
                }
                .as_bytes(),
            ),
        };
        fits.then(|| packet.finish())
    }
}

impl RequestProtocol for OpenBook {
    fn split(bytes: &[u8]) -> Result<Option<(Option<RequestEvent>, usize)>, Malformed> {
        let Some((packet, used)) = openbook::split(bytes)? else {
            return Ok(None);
        };
        if packet.kind() == openbook::HEARTBEAT {
            return Ok(Some((Some(RequestEvent::Heartbeat), used)));
        }
        let kind = packet.kind();
        let message = packet.messages.clone().next().map(|m| openbook::parse(kind, m));
        let event = match message.transpose()? {
            Some(openbook::Message::RequestResponse(m)) if m.status.0 == b'A' => Some(RequestEvent::Accepted),
            Some(openbook::Message::RequestResponse(m)) => Some(RequestEvent::Refused(m.reject_reason.0)),
            _ => None,
        };
        Ok(Some((event, used)))
    }

    fn is_quota_used_up(reason: u8) -> bool {
        reason == openbook::RejectReason::RequestsExhausted as u8
    }

    fn write(config: &RequestConfig, number: u32, say: Say, buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < PacketHeader::SIZE {
            return None;
        }
        let source_id: Alpha<20> = nul_padded(&config.source_id)?;
        let kind = match say {
            Say::Again(..) => openbook::RetransmissionRequest::KIND,
            Say::Refresh(_) => openbook::ExtendedRefreshRequest::KIND,
            Say::Mapping(_) => openbook::SymbolIndexMappingRequest::KIND,
            Say::Heartbeat => openbook::HeartbeatResponse::KIND,
        };
        let header = PacketHeader {
            msg_type: kind.into(),
            seq_num: number.into(),
            product_id: config.product,
            retrans_flag: openbook::RetransFlag::Original as u8,
            ..PacketHeader::BLANK
        };
        let mut packet = openbook::PacketBuilder::new(buffer, header);
        let fits = match say {
            Say::Again(first, last) => packet.push(
                openbook::RetransmissionRequest {
                    begin_seq_num: first.into(),
                    end_seq_num: last.into(),
                    source_id,
                }
                .as_bytes(),
            ),
            Say::Refresh(instrument) => packet.push(
                openbook::ExtendedRefreshRequest {
                    source_id,
                    symbol_index: instrument.into(),
                    unused: 0.into(),
                }
                .as_bytes(),
            ),
            Say::Mapping(instrument) => packet.push(
                openbook::SymbolIndexMappingRequest {
                    source_id,
                    symbol_index: instrument.into(),
                }
                .as_bytes(),
            ),
            Say::Heartbeat => packet.push(openbook::HeartbeatResponse { source_id }.as_bytes()),
        };
        fits.then(|| packet.finish())
    }
}

/// The longest request, packet header included.
pub const REQUEST_SIZE_MAX: usize = 64;
/// The longest packet of a server that is waited for.
const ANSWER_SIZE_MAX: usize = xdp::PACKET_SIZE_MAX;

/// The client of a request server: the four verbs. All memory is taken at construction.
pub struct NyseRequests<P> {
    config: RequestConfig,
    connected: bool,
    number: u32,
    heard: Nanos,
    says: VecDeque<Say>,
    events: VecDeque<RequestEvent>,
    stream: Vec<u8>,
    length: usize,
    /// The request being sent, and which bytes of it are left.
    request: [u8; REQUEST_SIZE_MAX],
    unsent: core::ops::Range<usize>,
    protocol: core::marker::PhantomData<P>,
}

impl<P: RequestProtocol> NyseRequests<P> {
    /// A client that is not connected.
    pub fn new(config: RequestConfig) -> NyseRequests<P> {
        NyseRequests {
            says: VecDeque::with_capacity(config.queue + 1),
            events: VecDeque::with_capacity(config.queue + 1),
            config,
            connected: false,
            number: 0,
            heard: Nanos::ZERO,
            stream: vec![0; ANSWER_SIZE_MAX],
            length: 0,
            request: [0; REQUEST_SIZE_MAX],
            unsent: 0..0,
            protocol: core::marker::PhantomData,
        }
    }

    /// A connection is there.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.handle_closed();
        (self.connected, self.heard) = (true, now);
    }

    /// The connection is gone, and with it what waited to be asked: the feed asks again.
    pub fn handle_closed(&mut self) {
        (self.connected, self.number, self.length) = (false, 0, 0);
        self.unsent = 0..0;
        self.says.clear();
    }

    /// Asks for what is missing; `false` if there is no connection or too much waits already.
    pub fn ask(&mut self, range: MissingRange) -> bool {
        let last = range.first.advance(u64::from(range.count.max(1)) - 1);
        match (u32::try_from(range.first.0), u32::try_from(last.0)) {
            (Ok(first), Ok(last)) => self.queue(Say::Again(first, last)),
            _ => false,
        }
    }

    /// Asks for a snapshot of an instrument, or with 0 of the channel; `false` as for [`NyseRequests::ask`].
    pub fn ask_refresh(&mut self, instrument: u32) -> bool {
        self.queue(Say::Refresh(instrument))
    }

    /// Asks for the mapping of an instrument, or with 0 of the channel; `false` as for [`NyseRequests::ask`].
    pub fn ask_mapping(&mut self, instrument: u32) -> bool {
        self.queue(Say::Mapping(instrument))
    }

    /// Whether a connection is there.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether a request would be taken now.
    pub fn takes(&self) -> bool {
        self.connected && self.says.len() < self.config.queue
    }

    fn queue(&mut self, say: Say) -> bool {
        let takes = self.takes();
        if takes {
            self.says.push_back(say);
        }
        takes
    }

    /// The next bytes of the connection.
    pub fn handle_bytes(&mut self, now: Nanos, mut bytes: &[u8]) {
        while self.connected && !bytes.is_empty() {
            self.heard = now;
            let room = bytes.len().min(self.stream.len() - self.length);
            let (taken, rest) = bytes.split_at(room);
            self.stream[self.length..self.length + room].copy_from_slice(taken);
            self.length += room;
            bytes = rest;
            self.read();
        }
    }

    /// Reads the packets that are complete.
    fn read(&mut self) {
        let mut start = 0;
        loop {
            match P::split(&self.stream[start..self.length]) {
                Ok(Some((event, used))) => {
                    start += used;
                    match event {
                        Some(RequestEvent::Heartbeat) => self.answer(),
                        Some(event) => self.tell(event),
                        None => {}
                    }
                }
                Ok(None) if start == 0 && self.length == self.stream.len() => return self.give_up(),
                Ok(None) => break,
                Err(_) => return self.give_up(),
            }
        }
        self.stream.copy_within(start..self.length, 0);
        self.length -= start;
    }

    /// Before anything else; one answer is enough for many heartbeats.
    fn answer(&mut self) {
        if self.says.front() != Some(&Say::Heartbeat) {
            self.says.push_front(Say::Heartbeat);
        }
    }

    /// When nobody asks what happened the oldest is forgotten.
    fn tell(&mut self, event: RequestEvent) {
        if self.events.len() > self.config.queue {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn give_up(&mut self) {
        self.handle_closed();
        self.tell(RequestEvent::Broken);
    }

    /// The server may have been silent too long.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.give_up();
        }
    }

    /// The next bytes to send, of one request at most, as many as fit.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        if self.unsent.is_empty() {
            let say = self.says.pop_front()?;
            self.number = self.number.wrapping_add(1);
            self.unsent = 0..P::write(&self.config, self.number, say, &mut self.request)?;
        }
        let length = self.unsent.len().min(buffer.len());
        let end = self.unsent.start + length;
        let bytes = buffer.get_mut(..length)?;
        bytes.copy_from_slice(&self.request[self.unsent.start..end]);
        self.unsent.start = end;
        (length > 0).then_some(bytes)
    }

    /// What the server said since.
    pub fn poll_event(&mut self) -> Option<RequestEvent> {
        self.events.pop_front()
    }

    /// When to call [`NyseRequests::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.connected.then(|| self.heard.after(self.config.silence_ns))
    }
}
