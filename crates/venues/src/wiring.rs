//! Which parts the receiving side of each protocol is made of: the one place that knows.

use std::sync::Arc;

use tickwire_archive::{ArchiveChannel, ChannelFacts};
use tickwire_book::Depth;
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, ItchChannel, ItchConfig, ItchDecoder, ItchFeed,
    Mdp3Channel, Mdp3Config, Mdp3Decoder, MoexChannel, MoexChannelConfig, MoexConfig, OpenBookChannel,
    OpenBookConfig, OpenBookDecoder, OpenBookFeed, PitchChannel, PitchChannelConfig, PitchConfig, PitchUnit,
    RecoveryLimits, RequestConfig, SessionId, SipConfig, SoupConfig, Start, UqdfChannel, UqdfDecoder,
    UqdfFeed, XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_market::{Nanos, Port, Symbol, Venue};
use tickwire_wire::fast::Plan;

use crate::channels::{ChannelConfig, FeedConfig, limits_of};
use crate::protocol::{self, Protocol};
use crate::receiver::ReceiverSection;
use tickwire_console::failure::Failure;

/// The protocols that are published and received.
pub const PUBLISHED: [Protocol; 8] = [
    Protocol::Itch50,
    Protocol::Pitch,
    Protocol::Xdp,
    Protocol::Openbook,
    Protocol::Cqs,
    Protocol::Uqdf,
    Protocol::Mdp3,
    Protocol::Moex,
];

/// How long a turn of the snapshot loops of MDP 3.0 may take before it counts as overdue.
const LOOP_PATIENCE_NS: u64 = 10 * Nanos::SECOND;
/// The channel of an MDP 3.0 feed whose name is not its number.
pub const MDP3_CHANNEL: u16 = 310;

/// Something to do with a channel, whatever its protocol: static calls on the hot path.
pub trait WithChannel {
    /// What comes of it.
    type Output;
    /// Does it, with a channel of the protocol and how deep its books are.
    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output;
}

/// Puts a channel behind its table.
struct Boxing;

impl WithChannel for Boxing {
    type Output = (Box<dyn Channel>, Depth);

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output {
        (Box::new(channel), depth)
    }
}

/// What a receiving channel is made with.
#[derive(Clone, Debug)]
pub struct Reception {
    /// Live, with sizes and patience as configured; `None` for a recording: nobody answers, and it may begin
    /// anywhere.
    live: Option<ReceiverSection>,
    /// Instruments to make room for.
    instruments_max: u32,
    /// Orders to make room for.
    orders_max: u32,
    /// Which instruments are wanted; `None` is all.
    pub symbols: Option<Vec<Symbol>>,
    /// Of an archive: the channel that it has, whatever the protocol was.
    archived: Option<Arc<ChannelFacts>>,
}

impl Reception {
    /// Live, as configured.
    pub fn new(c: &ReceiverSection) -> Reception {
        Reception {
            instruments_max: c.max_instruments,
            orders_max: c.max_orders,
            live: Some(c.clone()),
            symbols: None,
            archived: None,
        }
    }

    /// From a recording.
    pub fn recorded(instruments_max: u32, orders_max: u32, symbols: Option<Vec<Symbol>>) -> Reception {
        Reception {
            live: None,
            instruments_max,
            orders_max,
            symbols,
            archived: None,
        }
    }

    /// From an archive of events, with the sizes that it says.
    pub fn archived(facts: ChannelFacts, symbols: Option<Vec<Symbol>>) -> Reception {
        Reception {
            archived: Some(Arc::new(facts.clone())),
            ..Reception::recorded(facts.room[0], facts.room[1], symbols)
        }
    }

    /// Whether it is of an archive of events.
    pub fn is_archived(&self) -> bool {
        self.archived.is_some()
    }

    /// Sequencing as configured, where the venue leaves times to the receiver.
    fn timed(&self, base: ArbiterConfig, channel: &ChannelConfig) -> ArbiterConfig {
        match &self.live {
            Some(c) => ArbiterConfig {
                line_wait_ns: u64::from(c.line_wait_us) * Nanos::MICRO,
                request_timeout_ns: u64::from(c.request_timeout_ms) * Nanos::MILLI,
                request_attempts: c.request_attempts.min(u8::MAX.into()) as u8,
                ..self.sized(base, channel)
            },
            None => self.sized(base, channel),
        }
    }

    /// Sequencing with the venue's own times.
    fn sized(&self, base: ArbiterConfig, channel: &ChannelConfig) -> ArbiterConfig {
        let Some(c) = &self.live else {
            // Snapshots that are in the recording help; nothing else does.
            let has_loop = channel.lines(Port::Snapshot).is_some();
            return ArbiterConfig {
                start: if has_loop { base.start } else { Start::Here },
                snapshot: base.snapshot && has_loop,
                request_attempts: 0,
                recovery: RecoveryLimits {
                    deadline_ns: 0,
                    ..base.recovery
                },
                ..base
            };
        };
        ArbiterConfig {
            buffer_packets: c.buffer_packets.min(u16::MAX.into()) as u16,
            ..base
        }
    }
}

/// MoldUDP64's name of the session.
pub fn session_of(feed: &FeedConfig) -> Option<[u8; 10]> {
    feed.session.as_ref()?.as_bytes().try_into().ok()
}

/// The venue's number of a channel or unit, if its name is one.
pub fn number_of<N: std::str::FromStr>(channel: &ChannelConfig, otherwise: N) -> N {
    channel.name.parse().unwrap_or(otherwise)
}

/// What a NYSE request server knows a channel by.
fn nyse_requests(feed: &FeedConfig, channel: &ChannelConfig) -> RequestConfig {
    let product = match (feed.protocol(), feed.venue) {
        (Protocol::Openbook, Venue::American) => 62,
        (Protocol::Openbook, _) => 12,
        (_, Venue::American) => 59,
        (_, Venue::National) => 109,
        (_, Venue::Arca) => 157,
        (_, Venue::NyseTexas) => 209,
        _ => 11,
    };
    RequestConfig {
        source_id: b"TICKWIRE".into(),
        product,
        channel: number_of(channel, 1),
        ..RequestConfig::default()
    }
}

/// The FAST templates of a feed: the last file's, as the newest stands last.
pub fn templates_of(feed: &FeedConfig) -> Result<Arc<Plan>, Failure> {
    let path = feed
        .templates
        .last()
        .ok_or_else(|| Failure::config(format!("feed {}: MOEX needs a FAST template file", feed.name())))?;
    protocol::templates(path).map_err(Failure::config)
}

/// Makes the receiving side of one of a feed's channels and hands it to `then`.
pub fn with_channel<W: WithChannel>(
    feed: &FeedConfig,
    number: usize,
    reception: &Reception,
    then: W,
) -> Result<W::Output, Failure> {
    if let Some(facts) = &reception.archived {
        let channel = ArchiveChannel::new((**facts).clone(), reception.symbols.as_deref());
        return Ok(then.run(channel, facts.depth));
    }
    let venue = feed.venue;
    let channel = &feed.channels[number];
    let symbols = reception.symbols.clone();
    let instruments_max = reception.instruments_max.saturating_add(1);
    let beginning = ArbiterConfig {
        start: Start::Beginning,
        session: session_of(feed).map(SessionId),
        snapshot: true,
        ..limits_of(feed.protocol())
    };
    let section = feed.recovery.unwrap_or_default();
    let timed = |base: ArbiterConfig| reception.timed(section.over(base), channel);
    let sized = |base: ArbiterConfig| reception.sized(section.over(base), channel);
    let depth = feed.protocol().depth();
    Ok(match feed.protocol() {
        Protocol::Itch50 => {
            let decoder = ItchDecoder::new(ItchConfig {
                venue,
                midnight: Nanos::ZERO,
                instruments_max: instruments_max.min(1 << 16),
                symbols,
            });
            let feed = ItchFeed::new(timed(beginning), decoder);
            then.run(ItchChannel::new(feed, SoupConfig::default()), depth)
        }
        Protocol::Pitch => {
            let unit = number_of(channel, 1);
            let config = PitchChannelConfig {
                unit,
                decoder: PitchConfig {
                    venue,
                    instruments_max,
                    orders_max: reception.orders_max,
                    symbols,
                    ..PitchConfig::default()
                },
                ..PitchChannelConfig::default()
            };
            let base = ArbiterConfig {
                start: Start::Snapshot,
                snapshot: true,
                ..PitchUnit::arbiter_config(unit)
            };
            let channel = PitchChannel::with_arbiter(sized(base), config);
            then.run(channel, depth)
        }
        Protocol::Xdp => {
            let decoder = XdpDecoder::new(XdpConfig {
                venue,
                instruments_max,
                symbols,
            });
            let handler = XdpFeed::new(timed(beginning), decoder);
            then.run(XdpChannel::new(handler, nyse_requests(feed, channel)), depth)
        }
        Protocol::Openbook => {
            let decoder = OpenBookDecoder::new(OpenBookConfig {
                venue,
                midnight: Nanos::ZERO,
                instruments_max,
                symbols,
            });
            let handler = OpenBookFeed::new(timed(beginning), decoder);
            then.run(OpenBookChannel::new(handler, nyse_requests(feed, channel)), depth)
        }
        Protocol::Cqs => {
            let decoder = CqsDecoder::new(&SipConfig {
                instruments_max,
                symbols,
            });
            let handler = CqsFeed::new(sized(CqsChannel::arbiter_config()), decoder);
            then.run(CqsChannel::new(handler), depth)
        }
        Protocol::Uqdf => {
            let decoder = UqdfDecoder::new(&SipConfig {
                instruments_max,
                symbols,
            });
            // There is no snapshot: what nobody sends again is made good by the quotes that come.
            let base = ArbiterConfig {
                snapshot: false,
                ..beginning
            };
            let handler = UqdfFeed::new(timed(base), decoder);
            then.run(UqdfChannel::new(handler), depth)
        }
        Protocol::Mdp3 => {
            let decoder = Mdp3Decoder::new(Mdp3Config {
                instruments_max,
                orders_max: 1,
                symbols,
                // A recording without snapshots shows what its entries tell.
                natural_refresh: reception.live.is_none() && channel.lines(Port::Snapshot).is_none(),
                ..Mdp3Config::default()
            });
            let account =
                Mdp3Channel::replay_config(number_of(channel, MDP3_CHANNEL), b"TICKWIRE", b"TICKWIRE");
            let arbiter = sized(Mdp3Channel::arbiter_config());
            let channel = Mdp3Channel::new(arbiter, decoder, account, LOOP_PATIENCE_NS);
            then.run(channel, depth)
        }
        Protocol::Moex => {
            let decoder = MoexConfig {
                instruments_max,
                symbols,
                ..MoexConfig::new(templates_of(feed)?)
            };
            let mut config = MoexChannelConfig::new(decoder);
            config.arbiter = sized(config.arbiter);
            let channel = MoexChannel::new(config)
                .map_err(|e| Failure::config(format!("feed {}: {e}", feed.name())))?;
            then.run(channel, depth)
        }
        other @ (Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures) => {
            return Err(unpublished(other));
        }
    })
}

/// The receiving side of one of a feed's channels behind its table, and how deep its books are: for who is
/// not on the hot path. A decoder is compiled once for all of these.
///
/// # Errors
/// As [`with_channel`].
pub fn channel(
    feed: &FeedConfig,
    number: usize,
    reception: &Reception,
) -> Result<(Box<dyn Channel>, Depth), Failure> {
    with_channel(feed, number, reception, Boxing)
}

/// Refuses a protocol that can only be decoded.
pub fn check_published(protocol: Protocol) -> Result<(), Failure> {
    match PUBLISHED.contains(&protocol) {
        true => Ok(()),
        false => Err(unpublished(protocol)),
    }
}

/// The error of a protocol that can only be decoded: it names the ones that can be published and received.
pub fn unpublished(protocol: Protocol) -> Failure {
    let names: Vec<_> = PUBLISHED.iter().map(|p| p.name()).collect();
    Failure::config(format!(
        "{protocol} can be decoded, not published or received; {} can",
        names.join(", ")
    ))
}
