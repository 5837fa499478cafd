//! Every feed that there is: its venue and its receiver, for whatever wants to do the same with each.

use std::sync::Arc;

use tickwire_book::{Books, Depth};
use tickwire_exchange::{
    CqsPublisher, CqsPublisherConfig, DayPhase, Exchange, ItchPublisher, ItchPublisherConfig, Listing,
    Mdp3Publisher, Mdp3PublisherConfig, MoexPublisher, MoexPublisherConfig, NysePublisherConfig,
    OpenBookPublisher, PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig, UqdfPublisher,
    UqdfPublisherConfig, XdpPublisher,
};
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, ItchChannel, ItchConfig, ItchDecoder, ItchFeed,
    Mdp3Channel, Mdp3Config, Mdp3Decoder, MoexChannel, MoexChannelConfig, MoexConfig, OpenBookChannel,
    OpenBookConfig, OpenBookDecoder, OpenBookFeed, PitchChannel, PitchChannelConfig, PitchConfig,
    RecoveryLimits, RequestConfig, SipConfig, SoupConfig, UqdfChannel, UqdfDecoder, UqdfFeed, XdpChannel,
    XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Level, Nanos, Port, Side};
use tickwire_testdata::workspace;
use tickwire_wire::fast::Plan;

use crate::{RigConfig, START, compare, exchange_of};

/// The feeds, as `receiver.feed` of a configuration names them.
pub const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

/// What is done with a feed, whichever it is.
pub trait FeedVisitor {
    /// What comes of it.
    type Output;

    /// The venue's side of the feed, its receiver, which recovers in every way that the feed has, and the
    /// depth of the books that programs keep of it.
    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, channel: C, depth: Depth) -> Self::Output;
}

/// What a venue sent on its live lines, in memory, and the venue itself, to compare with.
pub struct LiveDay {
    datagrams: Vec<Vec<u8>>,
    exchange: Exchange,
}

impl LiveDay {
    /// The first datagrams of a day, as many as asked for, at 20,000 messages a second.
    ///
    /// # Panics
    /// The day is over before.
    pub fn generate(listed: &[Listing], publisher: Box<dyn Publisher>, datagrams: usize) -> LiveDay {
        let config = RigConfig {
            duration_ms: 3_600_000,
            ..RigConfig::default()
        };
        let mut day = LiveDay {
            datagrams: Vec::new(),
            exchange: exchange_of(&config, listed, publisher),
        };
        day.exchange.open(START);
        let mut now = START;
        while day.datagrams.len() < datagrams {
            now = now.after(20_000);
            assert_ne!(day.exchange.phase(), DayPhase::Over, "a day of an hour");
            day.exchange.on_time(now);
            while let Some(datagram) = day.exchange.poll_datagram(0, now) {
                if datagram.port == Port::Live {
                    day.datagrams.push(datagram.bytes.to_vec());
                }
            }
        }
        day
    }

    /// The datagrams from the first on.
    pub fn datagrams(&self) -> &[Vec<u8>] {
        &self.datagrams
    }

    /// The levels of a side of the venue's book, best first, after all of its datagrams.
    pub fn levels(&self, listing: &Listing, side: Side) -> Vec<Level> {
        let publisher = &self.exchange.published_channels()[0].publisher;
        publisher.levels(self.exchange.engine(), listing.id, side)
    }

    /// Panics unless every level of every book is the venue's, and every book live, as a receiver must have
    /// them that was given every datagram.
    pub fn compare<C: Channel>(&self, listed: &[Listing], channel: &C, books: &Books) {
        compare(RigConfig::default().seed, listed, &self.exchange, channel, books);
    }
}

/// Does it with one of [`FEEDS`], of so many instruments; panics at any other name.
pub fn visit<V: FeedVisitor>(name: &str, listed: &[Listing], visitor: &mut V) -> V::Output {
    let nyse = |recovery| ArbiterConfig {
        snapshot: true,
        recovery,
        request_messages: RecoveryLimits::NYSE_MESSAGES,
        ..ArbiterConfig::default()
    };
    let requests = |product| RequestConfig {
        source_id: b"RIG".into(),
        product,
        channel: 1,
        ..RequestConfig::default()
    };
    match name {
        "itch50" => {
            let arbiter = ArbiterConfig {
                snapshot: true,
                ..ArbiterConfig::default()
            };
            let feed = ItchFeed::new(arbiter, ItchDecoder::new(ItchConfig::default()));
            let channel = ItchChannel::new(feed, SoupConfig::default());
            let publisher = ItchPublisher::new(ItchPublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::Aggregated)
        }
        "pitch" => {
            let config = PitchChannelConfig {
                unit: 1,
                decoder: PitchConfig {
                    instruments_max: 64,
                    orders_max: 1 << 18,
                    ..PitchConfig::default()
                },
                ..PitchChannelConfig::default()
            };
            let publisher = PitchPublisherConfig {
                unit: UnitConfig {
                    unit: 1,
                    ..UnitConfig::default()
                },
                ..PitchPublisherConfig::default()
            };
            let publisher = PitchPublisher::new(publisher, listed);
            visitor.visit(Box::new(publisher), PitchChannel::new(config), Depth::Aggregated)
        }
        "xdp" => {
            let decoder = XdpDecoder::new(XdpConfig {
                instruments_max: 1000,
                ..XdpConfig::default()
            });
            let channel = XdpChannel::new(XdpFeed::new(nyse(RecoveryLimits::XDP), decoder), requests(11));
            let publisher = XdpPublisher::new(NysePublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::Aggregated)
        }
        "openbook" => {
            let decoder = OpenBookDecoder::new(OpenBookConfig {
                instruments_max: 1000,
                ..OpenBookConfig::default()
            });
            let feed = OpenBookFeed::new(nyse(RecoveryLimits::OPENBOOK), decoder);
            let channel = OpenBookChannel::new(feed, requests(12));
            let publisher = OpenBookPublisher::new(NysePublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::ByPrice)
        }
        "cqs" => {
            let decoder = CqsDecoder::new(&SipConfig::default());
            let channel = CqsChannel::new(CqsFeed::new(CqsChannel::arbiter_config(), decoder));
            let publisher = CqsPublisher::new(CqsPublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::ByPrice)
        }
        "uqdf" => {
            let decoder = UqdfDecoder::new(&SipConfig::default());
            let channel = UqdfChannel::new(UqdfFeed::new(ArbiterConfig::default(), decoder));
            let publisher = UqdfPublisher::new(UqdfPublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::ByPrice)
        }
        "mdp3" => {
            let decoder = Mdp3Decoder::new(Mdp3Config {
                instruments_max: 64,
                orders_max: 1,
                ..Mdp3Config::default()
            });
            let account = Mdp3Channel::replay_config(310, b"ME", b"PW");
            let channel = Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, account, Nanos::SECOND);
            let publisher = Mdp3Publisher::new(Mdp3PublisherConfig::default(), listed);
            visitor.visit(Box::new(publisher), channel, Depth::ByPrice)
        }
        "moex" => {
            let templates = std::fs::read_to_string(workspace().join("examples/moex-templates.xml"));
            let plan = Arc::new(Plan::parse(&templates.expect("it is ours")).expect("it is ours"));
            let channel = MoexChannel::new(MoexChannelConfig::new(MoexConfig::new(plan.clone())));
            let publisher = MoexPublisher::new(MoexPublisherConfig::default(), plan, listed);
            let (channel, publisher) = (channel.expect("our templates"), publisher.expect("our templates"));
            visitor.visit(Box::new(publisher), channel, Depth::Aggregated)
        }
        other => panic!("{other} is no feed"),
    }
}
