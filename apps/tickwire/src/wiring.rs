//! Which protocol is made of which parts: the one place that knows all of them.

use tickwire_book::Depth;
use tickwire_exchange::{
    ChannelConfig as MoldConfig, ItchPublisher, ItchPublisherConfig, Listing, Publisher,
};
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SessionId, SoupConfig, Start,
};
use tickwire_market::{Nanos, Symbol};

use crate::channels::FeedConfig;
use crate::config::ReceiverSection;
use crate::failure::Failure;
use crate::ports::CONNECTIONS;
use crate::protocol::Protocol;

/// The protocols that are published and received.
pub(crate) const PUBLISHED: [Protocol; 1] = [Protocol::Itch50];

/// Something to do with a channel, whatever its protocol: static calls on the way of a packet.
pub(crate) trait WithChannel {
    type Output;
    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output;
}

/// What a receiving channel is made with.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    pub(crate) arbiter: ArbiterConfig,
    /// Instruments to make room for.
    pub(crate) instruments_max: u32,
    /// Which are wanted; `None` is all.
    pub(crate) symbols: Option<Vec<Symbol>>,
}

impl Reception {
    /// Live, as configured.
    pub(crate) fn new(feed: &FeedConfig, c: &ReceiverSection) -> Reception {
        Reception {
            arbiter: ArbiterConfig {
                start: Start::Beginning,
                session: session_of(feed).map(SessionId),
                snapshot: true,
                buffer_packets: c.buffer_packets.min(u16::MAX.into()) as u16,
                line_wait_ns: u64::from(c.line_wait_us) * Nanos::MICRO,
                request_timeout_ns: u64::from(c.request_timeout_ms) * Nanos::MILLI,
                request_attempts: c.request_attempts.min(u8::MAX.into()) as u8,
                ..ArbiterConfig::default()
            },
            instruments_max: c.max_instruments,
            symbols: None,
        }
    }

    /// From a recording: nobody answers, and it may begin anywhere.
    pub(crate) fn recorded(instruments_max: u32, symbols: Option<Vec<Symbol>>) -> Reception {
        Reception {
            arbiter: ArbiterConfig {
                start: Start::Here,
                snapshot: false,
                request_attempts: 0,
                ..ArbiterConfig::default()
            },
            instruments_max,
            symbols,
        }
    }
}

fn session_of(feed: &FeedConfig) -> Option<[u8; 10]> {
    feed.session.as_ref()?.as_bytes().try_into().ok()
}

/// Makes the receiving side of one of a feed's channels and hands it to `then`.
pub(crate) fn with_channel<W: WithChannel>(
    feed: &FeedConfig,
    reception: &Reception,
    then: W,
) -> Result<W::Output, Failure> {
    let arbiter = reception.arbiter.clone();
    match feed.protocol() {
        Protocol::Itch50 => {
            let decoder = ItchDecoder::new(ItchConfig {
                venue: feed.venue,
                midnight: Nanos::ZERO,
                instruments_max: reception.instruments_max.saturating_add(1).min(1 << 16),
                symbols: reception.symbols.clone(),
            });
            let feed = ItchFeed::new(arbiter, decoder);
            Ok(then.run(ItchChannel::new(feed, SoupConfig::default()), Depth::Aggregated))
        }
        other => Err(unpublished(other)),
    }
}

/// Makes the publishing side of one of a feed's channels; `messages` sizes what is kept for retransmission.
pub(crate) fn publisher(
    feed: &FeedConfig,
    _number: usize,
    listings: &[Listing],
    messages: usize,
) -> Result<Box<dyn Publisher>, Failure> {
    Ok(match feed.protocol() {
        Protocol::Itch50 => {
            let config = ItchPublisherConfig {
                venue: feed.venue,
                channel: MoldConfig {
                    session: session_of(feed).unwrap_or(*b"TICKWIRE01"),
                    store_messages: messages,
                    store_bytes: messages * 40,
                    ..MoldConfig::default()
                },
                connections: CONNECTIONS,
                ..ItchPublisherConfig::default()
            };
            Box::new(ItchPublisher::new(config, listings))
        }
        other => return Err(unpublished(other)),
    })
}

fn unpublished(protocol: Protocol) -> Failure {
    let names: Vec<_> = PUBLISHED.iter().map(|p| p.name()).collect();
    Failure::config(format!(
        "{protocol} can be decoded, not published or received; {} can",
        names.join(", ")
    ))
}
