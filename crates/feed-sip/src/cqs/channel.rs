//! A line of CQS with its recovery: blocks sent again on a multicast group of their own, and the snapshot
//! stream.
//!
//! How to ask for blocks to be sent again is in a user guide that is not public, so the channel asks nobody:
//! it takes what comes on [`Port::Retransmission`], which everybody hears whoever asked, and after
//! `request_timeout_ns` loads the next snapshot. Whoever has the guide finds what to ask for with
//! [`CqsFeed::poll_missing`].

use super::{CqsDecoder, CqsFeed, CqsSnapshot, control};
use crate::framing::Framing;
use crate::sip::twin_prices;
use crate::{Answers, ArbiterConfig, Channel, Cqs, Line, Offers, RecoveryLimits, Start, Twin};
use tickwire_market::{DynSink, EventSink, InstrumentId, Nanos, Port, Price, SeqNo};
use tickwire_wire_core::layout::{Alpha, Char, Pod};
use tickwire_wire_sip::cqs::{
    BLOCK_SIZE_MAX, BestLong, BlockBuilder, BlockHeader, ControlType, Feed, LongQuote, PriceLong, UnixTime,
};

/// See the module's description.
pub struct CqsChannel {
    feed: CqsFeed,
    snapshot: CqsSnapshot,
}

impl CqsChannel {
    /// A channel that has seen nothing.
    pub fn new(feed: CqsFeed) -> CqsChannel {
        CqsChannel {
            feed,
            snapshot: CqsSnapshot::new(),
        }
    }

    /// What suits a line: a snapshot makes good what both lines lost, and the start of whoever comes late.
    pub fn arbiter_config() -> ArbiterConfig {
        ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            packet_bytes: BLOCK_SIZE_MAX,
            request_attempts: 1,
            recovery: RecoveryLimits {
                answers: Answers::Everything,
                ..RecoveryLimits::MOLDUDP64
            },
            ..ArbiterConfig::default()
        }
    }

    /// The feed behind it.
    pub fn feed(&self) -> &CqsFeed {
        &self.feed
    }

    /// The feed behind it: subscriptions, what to ask for.
    pub fn feed_mut(&mut self) -> &mut CqsFeed {
        &mut self.feed
    }

    /// A block of the lines, or one sent again.
    #[inline(always)]
    fn on_block<S: EventSink>(&mut self, now: Nanos, line: Line, bytes: &[u8], sink: &mut S) {
        match control(bytes) {
            None => self.feed.on_packet(now, line, bytes, sink),
            Some((control, _)) => self.on_control(now, line, control, bytes, sink),
        }
    }

    #[cold]
    fn on_control(
        &mut self,
        now: Nanos,
        line: Line,
        control: ControlType,
        bytes: &[u8],
        sink: &mut dyn EventSink,
    ) {
        let before = self.feed.last_restart();
        self.feed.on_packet(now, line, bytes, &mut DynSink(sink));
        let has_restarted = self.feed.last_restart() != before;
        if has_restarted {
            self.snapshot.begin_anew();
        }
        match control {
            // The numbers went on elsewhere within the day. Quotes may have gone before it that never came.
            ControlType::ResetSequence if has_restarted => self.feed.begin_snapshot(now, sink),
            ControlType::EndOfDay => {
                let first = Cqs::parse(bytes).map_or(SeqNo(0), |frame| frame.first);
                self.feed.ends_at(now, line, first.next(), sink);
            }
            _ => {}
        }
    }
}

impl Channel for CqsChannel {
    #[inline]
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        match port {
            Port::Live => self.on_block(now, line, bytes, sink),
            Port::Snapshot => self.snapshot.on_block(now, bytes, &mut self.feed, sink),
            // Ahead of both lines there is nothing to send again: such numbers are from before a reset.
            Port::Retransmission
                if Cqs::parse(bytes).is_ok_and(|frame| frame.first < self.feed.arbiter().latest()) =>
            {
                self.on_block(now, Line::Retransmit, bytes, sink)
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.feed.handle_timeout(now, sink);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Nanos> {
        self.feed.poll_timeout()
    }

    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<CqsChannel>> {
        let config = self.feed.config_of_twin(instrument)?;
        let offers = CqsOffers(twin_prices(price, PriceLong::from_price)?);
        let decoder = CqsDecoder::of_twin(instrument);
        let feed = CqsFeed::new(config, decoder);
        Some(Twin::new(CqsChannel::new(feed), offers))
    }

    tickwire_feed_core::answers_from_feed!();
}

/// Of a session of its own: the one participant, which is the national best, offers less and more in turn
/// above a bid that stays; the one is said behind its quote, the other is its quote.
struct CqsOffers([PriceLong; 3]);

impl Offers for CqsOffers {
    fn write(&mut self, number: u32, buffer: &mut [u8]) -> usize {
        let enters = number % 2 == 1;
        let [bid_price, better, worse] = self.0;
        let price = if enters { better } else { worse };
        let quote = LongQuote {
            symbol: Alpha(*b"REHEARSED  "),
            instrument_type: Char(b'0'),
            condition: Char(b'R'),
            bid_price,
            bid_size: 100.into(),
            offer_price: price,
            offer_size: 100.into(),
            national_bbo: Char(if enters { b'U' } else { b'G' }),
            ..LongQuote::at(b'A', UnixTime::from_nanos(0))
        };
        let [bid, offer] = [bid_price, price].map(|price| BestLong {
            participant: Char(b'A'),
            condition: Char(b'R'),
            price,
            size: 100.into(),
            ..BestLong::BLANK
        });
        let header = BlockHeader::at(Feed::Quotes, number, UnixTime::from_nanos(0));
        let mut block = BlockBuilder::new(buffer, header);
        let parts = [quote.as_bytes(), bid.as_bytes(), offer.as_bytes()];
        // A block that has no room for its message is a heartbeat.
        let _ = block.push(&parts[..if enters { 3 } else { 1 }]);
        block.finish()
    }
}
