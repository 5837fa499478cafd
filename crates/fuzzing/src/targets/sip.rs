//! Consolidated feeds: a line of CQS and a channel of UQDF with their recovery.

use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, Line, SipConfig, UqdfChannel, UqdfDecoder,
    UqdfFeed,
};
use tickwire_market::{EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, Port, SeqNo};
use tickwire_wire::cqs::{
    BlockBuilder, BlockHeader, Delivery, Feed, Header, SnapshotHeader, Transmission, UnixTime,
};
use tickwire_wire::moldudp64::PacketBuilder;

/// Each operation is a length, what takes the bytes, a number near the next one, and the bytes: one message,
/// which gets a block or packet of its own.
pub fn sip_channels(bytes: &[u8]) {
    let arbiter = ArbiterConfig {
        buffer_packets: 4,
        packet_bytes: 1000,
        gaps: 4,
        confirm_packets: 4,
        ..ArbiterConfig::default()
    };
    let sip = SipConfig {
        instruments_max: 4,
        symbols: None,
    };
    let mut cqs = CqsChannel::new(CqsFeed::new(
        ArbiterConfig {
            snapshot: true,
            request_attempts: 1,
            ..arbiter.clone()
        },
        CqsDecoder::new(&sip),
    ));
    let mut uqdf = UqdfChannel::new(UqdfFeed::new(arbiter, UqdfDecoder::new(&sip)));
    let (mut rest, mut now) = (bytes, Nanos(1));
    let (mut cqs_order, mut uqdf_order) = (Order::default(), Order::default());
    while let [length, what, number, more @ ..] = rest {
        let (message, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        now = now.after(200_000);
        let line = if what & 8 == 0 { Line::A } else { Line::B };
        let mut buffer = [0; 1000];
        let near = |next: SeqNo| next.0.saturating_add(u64::from(number % 8)).saturating_sub(2);
        let mut hear_cqs = |event: &MarketEvent| cqs_order.hear(event);
        let mut hear_uqdf = |event: &MarketEvent| uqdf_order.hear(event);
        match what % 8 {
            0..=2 => {
                let mut header = block_header(near(cqs.next_seq()), now);
                let port = if what % 8 == 2 {
                    header.transmission = Transmission::Retransmitted.into();
                    Port::Retransmission
                } else {
                    Port::Live
                };
                let size = build(BlockBuilder::new(&mut buffer, header), message);
                cqs.on_datagram(now, port, line, &buffer[..size], &mut hear_cqs);
            }
            3 => {
                let delivery = Delivery::from_wire(1 + number / 64).unwrap_or(Delivery::Only);
                let (seq, covered) = (u32::from(number % 16), near(cqs.next_seq()) as u32);
                let header = SnapshotHeader::at(seq, delivery, covered, 0, UnixTime::from_nanos(now.0));
                let size = build(BlockBuilder::new(&mut buffer, header), message);
                cqs.on_datagram(now, Port::Snapshot, line, &buffer[..size], &mut hear_cqs);
            }
            4 | 5 => {
                let mut packet =
                    PacketBuilder::new(&mut buffer, *b"FUZZ      ", SeqNo(near(uqdf.next_seq())));
                let _fits = packet.push(message);
                let size = packet.finish();
                let port = if what % 8 == 4 { Port::Live } else { Port::Requests };
                uqdf.on_datagram(now, port, line, &buffer[..size], &mut hear_uqdf);
            }
            6 => {
                cqs.on_datagram(now, Port::Live, line, message, &mut hear_cqs);
                cqs.on_datagram(now, Port::Snapshot, line, message, &mut hear_cqs);
                uqdf.on_datagram(now, Port::Live, line, message, &mut hear_uqdf);
            }
            _ => {
                now = now.after(u64::from(*number) * 1_000_000);
                cqs.handle_timeout(now, &mut hear_cqs);
                uqdf.handle_timeout(now, &mut hear_uqdf);
            }
        }
        while uqdf.poll_request(&mut [0; 64]).is_some() {}
        assert!(
            cqs.poll_request(&mut [0; 64]).is_none(),
            "a request has no public form"
        );
    }
}

fn block_header(seq: u64, now: Nanos) -> BlockHeader {
    BlockHeader::at(Feed::Quotes, seq as u32, UnixTime::from_nanos(now.0))
}

fn build<H: Header>(mut block: BlockBuilder<'_, H>, message: &[u8]) -> usize {
    let _fits = block.push(&[message]);
    block.finish()
}

/// Numbers of messages ascend, until the stream begins anew or goes back to what a snapshot holds.
#[derive(Default)]
struct Order {
    highest: SeqNo,
}

impl Order {
    fn hear(&mut self, event: &MarketEvent) {
        if event.instrument == InstrumentId::WHOLE_FEED {
            if event.kind == EventKind::Clear {
                self.highest = SeqNo(0);
            }
        } else if !event.flags.has(EventFlags::SNAPSHOT) {
            assert!(event.seq >= self.highest, "{event:?} after {}", self.highest);
            self.highest = event.seq;
        }
    }
}
