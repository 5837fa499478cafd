//! Which protocol a packet is of.

use std::collections::VecDeque;
use std::sync::Arc;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use tickwire_console::failure::Failure;
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::protocol;
use tickwire_venues::protocol::{Detector, Protocol, Reader};
use tickwire_wire::fast::Plan;

use crate::cli::DecodeArgs;

use super::{HeldPacket, feed_reader, tcp::Leg};

/// What `--protocol` may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payloads {
    /// Market data: datagrams, and the streams of its servers.
    Feed(Protocol),
    /// What is of TCP alone.
    Stream(Leg),
}

impl Payloads {
    const STREAMS: [Leg; 3] = [Leg::Ilink3, Leg::Fix, Leg::Soup];
}

impl ValueEnum for Payloads {
    fn value_variants<'a>() -> &'a [Payloads] {
        const ALL: [Payloads; Protocol::ALL.len() + Payloads::STREAMS.len()] = {
            let mut all = [Payloads::Stream(Leg::Ilink3); Protocol::ALL.len() + Payloads::STREAMS.len()];
            let mut at = 0;
            while at < Protocol::ALL.len() {
                all[at] = Payloads::Feed(Protocol::ALL[at]);
                at += 1;
            }
            while at < all.len() {
                all[at] = Payloads::Stream(Payloads::STREAMS[at - Protocol::ALL.len()]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (leg, help) = match self {
            Payloads::Feed(protocol) => return protocol.to_possible_value(),
            Payloads::Stream(leg @ Leg::Fix) => (leg, "FIX of every version, over TCP"),
            Payloads::Stream(leg @ Leg::Soup) => (
                leg,
                "SoupBinTCP with ITCH 5.0 (GLIMPSE) or OUCH 5.0 in it, over TCP",
            ),
            Payloads::Stream(leg) => (leg, "CME iLink 3: orders and quotes, over TCP"),
        };
        Some(PossibleValue::new(leg.name()).help(help))
    }
}

/// How the protocol of a datagram is known.
pub(super) enum Routes {
    /// The user said it.
    One(Reader),
    /// From a configuration: a reader for every feed.
    Feeds(FeedFile, Vec<Reader>),
    /// From the packets, of which some may have to wait for others.
    Detect(Box<Detector>, VecDeque<HeldPacket>),
    /// The user asked for streams of TCP alone.
    Streams(Leg),
}

impl Routes {
    pub(super) fn new(args: &DecodeArgs) -> Result<Routes, Failure> {
        let config = |message: String| Failure::config(message);
        let templates: Vec<Arc<Plan>> = args
            .templates
            .iter()
            .map(|path| protocol::templates(path))
            .collect::<Result<_, _>>()
            .map_err(config)?;
        if let Some(path) = &args.config {
            let file = FeedFile::load(path)?;
            let readers = file
                .feeds
                .iter()
                .map(|feed| feed_reader(path, feed))
                .collect::<Result<_, _>>()
                .map_err(config)?;
            return Ok(Routes::Feeds(file, readers));
        }
        match args.protocol {
            Some(Payloads::Feed(Protocol::Moex)) if templates.is_empty() => Err(Failure::config(
                "--protocol moex needs --templates FILE: the exchange's FAST template file",
            )),
            Some(Payloads::Stream(leg)) => Ok(Routes::Streams(leg)),
            Some(Payloads::Feed(protocol)) => {
                let reader = Reader::new(protocol, &templates).map_err(config)?;
                Ok(Routes::One(reader.with_xdp(args.xdp)))
            }
            None => Detector::new(&templates)
                .map(|detector| Routes::Detect(Box::new(detector.with_xdp(args.xdp)), VecDeque::new()))
                .map_err(config),
        }
    }

    /// What it takes packets for, in a sentence.
    pub(super) fn name(&self) -> String {
        match self {
            Routes::One(reader) => reader.protocol().to_string(),
            Routes::Streams(leg) => leg.name().to_string(),
            Routes::Feeds(file, _) => {
                let feeds: Vec<_> = file.feeds.iter().map(FeedConfig::name).collect();
                format!("of the configured feeds ({})", feeds.join(", "))
            }
            Routes::Detect(..) => {
                let protocols = Protocol::ALL.map(Protocol::name).join(", ");
                format!(
                    "of a protocol that `decode` reads ({protocols}; over TCP also fix, ilink3, soupbintcp with itch50 or ouch50)"
                )
            }
        }
    }

    /// The protocols it may find.
    pub(super) fn protocols(&self) -> Vec<Protocol> {
        match self {
            Routes::One(reader) => vec![reader.protocol()],
            Routes::Feeds(_, readers) => readers.iter().map(Reader::protocol).collect(),
            Routes::Detect(..) => Protocol::ALL.to_vec(),
            Routes::Streams(_) => Vec::new(),
        }
    }
}
