//! The markets of a configuration: which venues, channels and instruments there are.

use std::path::Path;

use tickwire_console::failure::Failure;
use tickwire_exchange::{
    Exchange, ExchangeConfig, FlowConfig, ImpairConfig, Listing, Market, PaceConfig, PublishedChannel,
    Reference, listings, market_listings,
};
use tickwire_market::Nanos;
use tickwire_market::Venue as TradingVenue;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::Probability;

use crate::channel_sockets::{CONNECTIONS, LineTroubles};
use crate::history::HistoryFile;
use crate::settings::{Impairment, MarketConfig};
use crate::{entry, wiring};

use super::KEPT_MIN;

/// A published channel: whose it is, and where.
pub struct Published {
    /// Which venue of the market.
    pub venue: usize,
    /// Which published channel of that venue.
    pub published_channel: usize,
    /// Which feed of the configuration.
    pub feed: usize,
    /// The addresses that it publishes on and answers at.
    pub ports: Ports,
}

/// Packets of the venues in the day that the reference system was measured with, in hundredths of Nasdaq's;
/// of others none are known.
fn activity_percent(venue: TradingVenue) -> u32 {
    match venue {
        TradingVenue::Nyse => 64,
        TradingVenue::Bzx => 41,
        TradingVenue::Edga => 21,
        TradingVenue::Arca => 16,
        TradingVenue::Edgx => 13,
        _ => 100,
    }
}

/// What the first channel of a market in virtual time sends now, in order.
pub fn datagrams(market: &mut Market, now: Nanos, mut each: impl FnMut(tickwire_market::Port, &[u8])) {
    loop {
        let has_more = market.on_time(now);
        let mut any = false;
        while let Some(datagram) = market.exchange_mut(0).poll_datagram(0, now) {
            each(datagram.port, datagram.bytes);
            any = true;
        }
        if !(has_more && any) {
            return;
        }
    }
}

/// The exchange of a configuration of one feed.
pub fn exchange_of(c: &MarketConfig) -> Result<Exchange, Failure> {
    let (market, _) = market_of(c, None)?;
    Ok(market.into_first())
}

/// The market of the configuration and its channels, in the order of the feeds. One venue is one engine,
/// whatever its feeds; feeds of two venues or more are a market with an engine each, and CQS and UQDF publish
/// what these show. `kept` is how many messages a channel keeps in memory for retransmission; without it as
/// many as a session has, `exchange.kept_messages` at most.
pub fn market_of(c: &MarketConfig, kept: Option<usize>) -> Result<(Market, Vec<Published>), Failure> {
    let e = &c.exchange;
    let mut names: Vec<TradingVenue> = Vec::new();
    for feed in c.feed.iter().filter(|feed| !is_consolidated(feed.venue)) {
        if !names.contains(&feed.venue) {
            names.push(feed.venue);
        }
    }
    let is_market = names.len() > 1;
    if !is_market {
        names = c.feed.first().map(|feed| feed.venue).into_iter().collect();
    }
    let (listings, utp) = match (e.instrument.is_empty(), is_market) {
        (false, true) => {
            return Err(Failure::config(
                "exchange.instrument is for one venue; several venues share made-up instruments (exchange.symbols)",
            ));
        }
        (false, false) => (
            entry::listed(&e.instrument, c.price_max()).map_err(Failure::config)?,
            0,
        ),
        (true, true) => market_listings(e.symbols.0 as u16),
        (true, false) => (listings(e.symbols.0 as u16), 0),
    };
    let symbols = listings.len() as u32;
    // Directory, opening orders and bursts come on top of rate times duration.
    let flow = (f64::from(e.rate.0) * e.duration_s.0 * 1.5) as usize;
    let once = symbols as usize * 200 + (1 << 20);
    let most = e.kept_messages.max(KEPT_MIN) as usize;
    let mut published_channels: Vec<Vec<PublishedChannel>> = names.iter().map(|_| Vec::new()).collect();
    let mut published = Vec::new();
    for (index, feed) in c.feed.iter().enumerate() {
        let venue = names.iter().position(|name| *name == feed.venue).unwrap_or(0);
        let own = match feed.venue {
            TradingVenue::Cqs if is_market => &listings[utp..],
            TradingVenue::Uqdf if is_market => &listings[..utp],
            _ => &listings[..],
        };
        let channels = feed.channels.len();
        for (number, channel) in feed.channels.iter().enumerate() {
            let own = share_of(own, number, channels);
            let messages = match is_market {
                true => flow / channels + once / 4,
                false => flow + once,
            };
            published.push(Published {
                venue,
                published_channel: published_channels[venue].len(),
                feed: index,
                ports: channel.ports(&feed.interface),
            });
            published_channels[venue].push(PublishedChannel {
                instruments: own
                    .first()
                    .map_or(0..0, |first| first.id.0..first.id.0 + own.len() as u32),
                publisher: wiring::publisher(
                    feed,
                    number,
                    own,
                    kept.unwrap_or(messages.min(most)),
                    is_market,
                )?,
            });
        }
    }
    let max_live = 400_000.min(c.receiver.max_orders / 2).max(symbols * 100);
    // Its order log has no word for it: what is less there was executed.
    let reduces = c.feed.iter().all(|feed| feed.protocol() != Protocol::Moex);
    let venues = names.into_iter().zip(published_channels).zip(0_u64..);
    let venues = venues.map(|((name, published_channels), nth)| {
        let config = ExchangeConfig {
            listings: listings.clone(),
            max_orders: max_live + max_live / 2,
            flow: FlowConfig {
                seed: e.seed.wrapping_add(nth << 32),
                max_live,
                reference: is_market.then_some(Reference { seed: e.seed }),
                reduces,
                ..FlowConfig::default()
            },
            pace: PaceConfig {
                rate: match is_market {
                    true => (u64::from(e.rate.0) * u64::from(activity_percent(name)) / 100).max(1) as u32,
                    false => e.rate.0,
                },
                cluster_percent: (e.clusters.0 * 100.0).round() as u32,
                ..PaceConfig::default()
            },
            order_entry: entry::gateway(&c.order_entry, CONNECTIONS),
            auctions: entry::auctions(c.exchange.auctions.as_ref()),
            breaks: entry::breaks(c.exchange.breaks.as_ref()),
            protections: entry::protections(&c.order_entry),
            duration_ns: (e.duration_s.0 * 1e9) as u64,
            linger_ns: Nanos::SECOND,
            linger_max_ns: u64::from(c.exchange.linger_s) * Nanos::SECOND,
            orders_min: c.exchange.orders_min as usize,
            overtime_max_ns: u64::from(c.exchange.overtime_s) * Nanos::SECOND,
            ..ExchangeConfig::default()
        };
        (name, Exchange::new(config, published_channels))
    });
    Ok((Market::new(venues.collect()), published))
}

/// Gives every channel a file for the day's messages beside the journal.
pub(super) fn keep_histories(
    section: &entry::JournalSection,
    market: &mut Market,
    published: &[Published],
) -> Result<(), Failure> {
    if section.history_bytes == 0 {
        return Ok(());
    }
    for (number, channel) in published.iter().enumerate() {
        let mut path = section.file.clone().into_os_string();
        path.push(format!(".history-{number}"));
        let history = HistoryFile::create(Path::new(&path), section.history_bytes)?;
        if let Some(publisher) = market
            .exchange_mut(channel.venue)
            .publisher_mut(channel.published_channel)
        {
            publisher.store_mut().keep_history(Box::new(history));
        }
    }
    Ok(())
}

/// Whether a feed is made of other venues' quotes.
fn is_consolidated(venue: TradingVenue) -> bool {
    matches!(venue, TradingVenue::Cqs | TradingVenue::Uqdf)
}

/// The instruments of one of a feed's channels: equal parts, in order.
fn share_of(listings: &[Listing], channel: usize, channels: usize) -> &[Listing] {
    let bound = |channel: usize| listings.len() * channel / channels;
    &listings[bound(channel)..bound(channel + 1)]
}

fn impair_of(i: Impairment) -> ImpairConfig {
    let ppm = |share: f64| (share * 1e6) as u32;
    ImpairConfig {
        seed: 0,
        loss_ppm: ppm(i.loss.0),
        duplicate_ppm: ppm(i.duplicate.0),
        reorder_ppm: ppm(i.reorder.0),
        reorder_depth: 3,
    }
}

/// What happens to packets and requests of every channel, as the configuration says. Each line draws its own:
/// the seed is added later.
pub fn troubles_of(c: &MarketConfig) -> LineTroubles {
    LineTroubles {
        lines: [impair_of(c.exchange.line_a), impair_of(c.exchange.line_b)],
        requests: impair_of(Impairment {
            loss: Probability(1.0 - c.exchange.answer_requests.0),
            ..Impairment::default()
        }),
    }
}
