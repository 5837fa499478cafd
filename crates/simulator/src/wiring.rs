//! Which parts the publishing side of each protocol is made of.

use tickwire_console::failure::Failure;
use tickwire_exchange::{
    ChannelConfig as MoldConfig, CqsLineConfig, CqsPublisher, CqsPublisherConfig, ItchPublisher,
    ItchPublisherConfig, Listing, Mdp3Publisher, Mdp3PublisherConfig, MoexPublisher, MoexPublisherConfig,
    NysePublisherConfig, OpenBookPublisher, PitchPublisher, PitchPublisherConfig, Publisher, SipModel,
    UnitConfig, UqdfPublisher, UqdfPublisherConfig, XdpPublisher,
};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::{MDP3_CHANNEL, number_of, session_of, templates_of, unpublished};

use crate::channel_sockets::CONNECTIONS;

/// Makes the publishing side of one of a feed's channels; `messages` sizes what is kept for retransmission.
/// `is_told`: a consolidated feed's participants are the venues of a market.
pub fn publisher(
    feed: &FeedConfig,
    number: usize,
    listings: &[Listing],
    messages: usize,
    is_told: bool,
) -> Result<Box<dyn Publisher>, Failure> {
    let model = SipModel {
        is_told,
        ..SipModel::default()
    };
    let venue = feed.venue;
    let channel = &feed.channels[number];
    let mold = MoldConfig {
        session: session_of(feed).unwrap_or(*b"TICKWIRE01"),
        store_messages: messages,
        ..MoldConfig::default()
    };
    let nyse = || NysePublisherConfig {
        venue,
        channel: number_of(channel, 1),
        store_bytes: messages * 48,
        store_units: messages,
        connections: CONNECTIONS,
        ..NysePublisherConfig::default()
    };
    Ok(match feed.protocol() {
        Protocol::Itch50 => {
            let config = ItchPublisherConfig {
                venue,
                channel: MoldConfig {
                    store_bytes: messages * 40,
                    ..mold
                },
                connections: CONNECTIONS,
                ..ItchPublisherConfig::default()
            };
            Box::new(ItchPublisher::new(config, listings))
        }
        Protocol::Pitch => {
            let config = PitchPublisherConfig {
                venue,
                unit: UnitConfig {
                    unit: number_of(channel, 1),
                    store_bytes: messages * 40,
                    store_messages: messages,
                    ..UnitConfig::default()
                },
                connections: CONNECTIONS,
                ..PitchPublisherConfig::default()
            };
            Box::new(PitchPublisher::new(config, listings))
        }
        Protocol::Xdp => Box::new(XdpPublisher::new(nyse(), listings)),
        Protocol::Openbook => Box::new(OpenBookPublisher::new(nyse(), listings)),
        Protocol::Cqs => {
            let config = CqsPublisherConfig {
                model,
                line: CqsLineConfig {
                    store_bytes: messages * 160,
                    store_messages: messages,
                    ..CqsLineConfig::default()
                },
                ..CqsPublisherConfig::default()
            };
            Box::new(CqsPublisher::new(config, listings))
        }
        Protocol::Uqdf => {
            let config = UqdfPublisherConfig {
                model,
                channel: MoldConfig {
                    store_bytes: messages * 120,
                    ..mold
                },
                ..UqdfPublisherConfig::default()
            };
            Box::new(UqdfPublisher::new(config, listings))
        }
        Protocol::Mdp3 => {
            let config = Mdp3PublisherConfig {
                channel: number_of(channel, MDP3_CHANNEL),
                store_bytes: messages * 160,
                store_packets: messages,
                ..Mdp3PublisherConfig::default()
            };
            Box::new(Mdp3Publisher::new(config, listings))
        }
        Protocol::Moex => {
            let config = MoexPublisherConfig {
                store_bytes: messages * 100,
                store_messages: messages,
                connections: CONNECTIONS,
                ..MoexPublisherConfig::default()
            };
            let publisher = MoexPublisher::new(config, templates_of(feed)?, listings)
                .map_err(|e| Failure::config(format!("feed {}: {e}", feed.name())))?;
            Box::new(publisher)
        }
        other @ (Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures) => {
            return Err(unpublished(other));
        }
    })
}
