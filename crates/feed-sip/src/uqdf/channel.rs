//! A channel of UQDF: MoldUDP64, requests by datagram. There is no snapshot: what nobody sends again is lost,
//! and each book is stale until a message says both sides of its national best.

use super::{UqdfDecoder, UqdfFeed};
use crate::framing::Framing;
use crate::sip::twin_prices;
use crate::{Channel, Line, Offers, SessionId, Twin};
use tickwire_feed_nasdaq::MoldUdp64;
use tickwire_market::{EventSink, InstrumentId, Nanos, Port, Price, SeqNo};
use tickwire_wire_core::layout::{Alpha, Char, Pod};
use tickwire_wire_sip::uqdf::{
    BoloIndicator, CombinedShort, NbboCondition, NbboIndicator, NbboShort, OddLotType, PriceShort, QuoteShort,
};

/// See the module's description.
pub struct UqdfChannel {
    feed: UqdfFeed,
}

impl UqdfChannel {
    /// A channel that has seen nothing. Its arbiter is to be told of no snapshot.
    pub fn new(feed: UqdfFeed) -> UqdfChannel {
        UqdfChannel { feed }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &UqdfFeed {
        &self.feed
    }

    /// The feed behind it: subscriptions.
    pub fn feed_mut(&mut self) -> &mut UqdfFeed {
        &mut self.feed
    }

    /// Whoever has given up messages goes on without them, instrument by instrument.
    #[cold]
    fn go_on(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        let next = self.feed.next_seq();
        self.feed.decoder_mut().lose(next, now, sink);
        self.feed.accept_loss(now, sink);
    }
}

impl Channel for UqdfChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let line = if port == Port::Live {
            line
        } else {
            Line::Retransmit
        };
        self.feed.on_packet(now, line, bytes, sink);
        if self.feed.arbiter().has_lost() {
            self.go_on(now, sink);
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
        if self.feed.arbiter().has_lost() {
            self.go_on(now, sink);
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        self.feed.poll_timeout()
    }

    #[inline]
    fn poll_request<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.feed.poll_transmit(buffer)
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<UqdfChannel>> {
        let config = self.feed.config_of_twin(instrument)?;
        let offers = UqdfOffers(twin_prices(price, PriceShort::from_price)?);
        let decoder = UqdfDecoder::of_twin(instrument);
        let feed = UqdfFeed::new(config, decoder);
        Some(Twin::new(UqdfChannel::new(feed), offers))
    }

    tickwire_feed_core::answers_from_feed!();
}

/// Of a session of its own: the one participant, which is the national best, offers less and more in turn
/// above a bid that stays; the one is said behind its quote and its odd lots, the other is its quote.
struct UqdfOffers([PriceShort; 3]);

impl Offers for UqdfOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let [bid_price, price, worse] = self.0;
        let (participant, symbol, condition) = (b'A', Alpha(*b"REHRS"), Char(b'R'));
        let enters = CombinedShort {
            symbol,
            bid_price,
            bid_size: 100.into(),
            ask_price: price,
            ask_size: 100.into(),
            condition,
            nbbo: NbboIndicator::Short.into(),
            bolo: BoloIndicator::Unchanged.into(),
            odd_lot_type: OddLotType::None.into(),
            ..CombinedShort::at(participant, 0)
        };
        let best = NbboShort {
            condition: NbboCondition::TwoSided.into(),
            bid_market_center: Char(participant),
            bid_price,
            bid_size: 100.into(),
            ask_market_center: Char(participant),
            ask_price: price,
            ask_size: 100.into(),
        };
        let leaves = QuoteShort {
            symbol,
            bid_price,
            bid_size: 100.into(),
            ask_price: worse,
            ask_size: 100.into(),
            condition,
            nbbo: NbboIndicator::Quote.into(),
            ..QuoteShort::at(participant, 0)
        };
        let mut both = [0; CombinedShort::SIZE + NbboShort::SIZE];
        let (quote, behind) = both.split_at_mut(CombinedShort::SIZE);
        quote.copy_from_slice(enters.as_bytes());
        behind.copy_from_slice(best.as_bytes());
        let message = match number % 2 {
            1 => &both[..],
            _ => leaves.as_bytes(),
        };
        let session = SessionId(*b"REHEARSED ");
        MoldUdp64::wrap(session, SeqNo(number.into()), message, buffer).unwrap_or(0)
    }
}
