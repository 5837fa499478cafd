//! One session of a venue in memory, published in virtual time: what benchmarks and tests of every feed read.

use tickwire_book::{Books, Depth};
use tickwire_console::failure::Failure;
use tickwire_exchange::{DayPhase, Exchange};
use tickwire_feed::Channel;
use tickwire_market::{Level, Nanos, Port, Side, Symbol, Venue};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_config;
use tickwire_venues::values::{DurationS, Rate, Symbols};

use crate::settings::MarketConfig;
use crate::venue::{self, VIRTUAL_START};

/// How full packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Packing {
    /// As on recorded lines: four of five hold one message
    Recorded,
    /// As in a busy second: some 18 messages each
    Busy,
}

/// Messages a second: with [`STEP_NS`] between polls, packets hold about as many as in a busy second.
pub const RATE: u32 = 100_000;
/// Nanoseconds from one poll of the publisher to the next, of [`Packing::Busy`].
pub const STEP_NS: u64 = 200_000;
/// Messages a packet on recorded lines, with how many packets had so many: all different packets of ITCH 5.0
/// (10), PITCH (6), XDP (9), OpenBook (4), CQS (7) and UQDF (2) in `captures/packets`, together because each
/// alone is few. They were chosen by message type, not by size.
const RECORDED: &[(u64, u32)] = &[(1, 30), (2, 5), (3, 1), (21, 1), (38, 1)];
/// The same of the 9 packets of MDP 3.0.
const RECORDED_MDP3: &[(u64, u32)] = &[(1, 2), (2, 2), (3, 1), (5, 2), (6, 1), (7, 1)];

/// From one poll of the publisher to the next, nanoseconds: all that was said meanwhile is in one packet if
/// it fits.
struct Steps {
    packing: Packing,
    sizes: Vec<u64>,
    drawn: u64,
}

impl Steps {
    fn new(packing: Packing, protocol: Protocol) -> Steps {
        let recorded = match protocol {
            Protocol::Mdp3 => RECORDED_MDP3,
            _ => RECORDED,
        };
        let sizes = recorded
            .iter()
            .flat_map(|&(size, packets)| (0..packets).map(move |_| size));
        Steps {
            packing,
            sizes: sizes.collect(),
            drawn: 0,
        }
    }

    fn next_ns(&mut self) -> u64 {
        // Spread over the sizes evenly and in no order: the golden ratio's multiples.
        self.drawn = self.drawn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let at = (u128::from(self.drawn) * self.sizes.len() as u128) >> 64;
        match self.packing {
            Packing::Busy => STEP_NS,
            Packing::Recorded => self.sizes[at as usize] * (Nanos::SECOND / u64::from(RATE)),
        }
    }
}

/// A published session.
pub struct Session {
    /// What it was published with; see [`config_of`].
    pub config: MarketConfig,
    /// What came on other ports than the live one: definitions.
    pub before: Vec<(Port, Vec<u8>)>,
    /// Live datagrams, each behind its length.
    pub live: Vec<u8>,
    /// How many datagrams are in [`Session::live`].
    pub datagrams: u64,
    /// Messages that the venue has published.
    pub messages: u64,
    /// The exchange after its close, with the books that it says it has.
    pub exchange: Exchange,
}

/// The configuration of a session of about so many messages.
pub fn config_of(
    protocol: Protocol,
    seed: u64,
    symbols: u32,
    messages: u64,
) -> Result<MarketConfig, Failure> {
    let usage = |e: String| Failure::config(format!("--symbols: {e}"));
    let mut config = MarketConfig::of_protocol(protocol);
    config.exchange.seed = seed;
    config.exchange.symbols = Symbols::try_from(f64::from(symbols)).map_err(usage)?;
    config.exchange.rate = Rate(RATE);
    // It is stopped at the number of messages; this sizes what the publisher keeps.
    config.exchange.duration_s = DurationS(messages as f64 / f64::from(RATE) * 4.0 + 1.0);
    config.receiver.max_instruments = symbols + 2;
    Ok(config)
}

/// Orders, and levels, that books of a short session have room for.
pub const SHORT_ROOM: u32 = 1 << 16;

/// Whether a session is played to see that it is played right: too short to measure anything. Its books have
/// [`SHORT_ROOM`], as making those of the sizes that ship (140 MiB each) would take longer than playing it.
/// Who shows figures of such a session says so.
pub const fn is_short(messages: u64, symbols: u32) -> bool {
    messages < 20_000 && symbols <= 100
}

impl Session {
    /// Publishes a session in virtual time, to its end: about `messages` messages over `symbols` instruments.
    /// `seed` decides which; one seed is one session.
    ///
    /// # Errors
    /// A number of instruments that the protocol does not take, or a feed that it cannot publish.
    pub fn publish(
        protocol: Protocol,
        seed: u64,
        messages: u64,
        symbols: u32,
        packing: Packing,
    ) -> Result<Session, Failure> {
        let mut steps = Steps::new(packing, protocol);
        let mut config = config_of(protocol, seed, symbols, messages)?;
        if is_short(messages, symbols) {
            config.receiver.max_orders = SHORT_ROOM;
            config.receiver.max_levels = SHORT_ROOM;
        }
        let exchange = venue::exchange_of(&config)?;
        let mut session = Session {
            config,
            before: Vec::new(),
            live: Vec::new(),
            datagrams: 0,
            messages: 0,
            exchange,
        };
        let mut now = VIRTUAL_START;
        session.exchange.open(now);
        while session.exchange.phase() != DayPhase::Ending {
            now = now.after(steps.next_ns());
            while session.exchange.on_time(now) && session.exchange.phase() != DayPhase::Ending {
                session.drain(now);
            }
            session.drain(now);
            if session.exchange.total() >= messages && session.exchange.phase() == DayPhase::Open {
                session.exchange.stop(now);
            }
        }
        session.drain(now);
        session.messages = session.exchange.total();
        Ok(session)
    }

    fn drain(&mut self, now: Nanos) {
        // One turn of a loop (definitions, snapshots) is enough.
        const LOOP_MAX: usize = 1 << 16;
        while let Some(datagram) = self.exchange.poll_datagram(0, now) {
            if datagram.port == Port::Live {
                self.datagrams += 1;
                self.live
                    .extend_from_slice(&(datagram.bytes.len() as u16).to_be_bytes());
                self.live.extend_from_slice(datagram.bytes);
            } else if datagram.port == Port::Definitions && self.before.len() < LOOP_MAX {
                self.before.push((datagram.port, datagram.bytes.to_vec()));
            }
        }
    }

    /// Empty books of the sizes that ship, to be filled with this session (of a short one: [`is_short`]).
    /// `depth` is what the protocol's channel says.
    pub fn books(&self, depth: Depth) -> Books {
        Books::new(books_config(&self.config.receiver, Venue::Nasdaq, depth))
    }

    /// How many price levels of these books are not the venue's.
    pub fn differences<C: Channel>(&self, channel: &C, books: &Books) -> usize {
        let mut different = 0;
        for listing in self.exchange.listings() {
            for side in Side::BOTH {
                let published_channel = &self.exchange.published_channels()[0];
                let theirs = published_channel
                    .publisher
                    .levels(self.exchange.engine(), listing.id, side);
                let book = channel.find(&listing.symbol).and_then(|id| books.book(id));
                let ours: Vec<Level> = book.map(|book| book.levels(side).collect()).unwrap_or_default();
                different += usize::from(theirs != ours);
            }
        }
        different
    }

    /// The least active percent of the instruments.
    pub fn quiet_symbols(&self) -> Vec<Symbol> {
        let listings = self.exchange.listings();
        let quiet = &listings[listings.len() - listings.len().div_ceil(100)..];
        quiet.iter().map(|l| l.symbol).collect()
    }
}
