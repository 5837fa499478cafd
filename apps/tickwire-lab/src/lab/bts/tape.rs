//! What the market of a run sends: the simulator's packets of a future with options on it, all of those that
//! are about the future, with numbers in sequence. Generated in virtual time from a seed before anything is
//! measured.

use tickwire_book::Depth;
use tickwire_feed::{Channel, Line};
use tickwire_market::{EventSink, InstrumentId, MarketEvent, Nanos, Port, TradingStatus};
use tickwire_runtime::signal::StopFlag;

use tickwire::config::Config;
use tickwire_console::failure::Failure;
use tickwire_quoterd::{Chain, Learn};
use tickwire_simulator::venue::{VIRTUAL_START, market_of};
use tickwire_venues::receiver::books_of;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// Virtual time after which a market that does not move is given up.
const PATIENCE_NS: u64 = 24 * 3_600 * Nanos::SECOND;
/// Of the virtual market's steps.
const STEP_NS: u64 = Nanos::MILLI;

/// A datagram before quoting begins: definitions, snapshots, the first packets.
pub(super) struct Early {
    pub(super) port: Port,
    pub(super) bytes: Vec<u8>,
}

/// See the module's description.
pub(super) struct Tape {
    pub(super) config: Config,
    pub(super) early: Vec<Early>,
    /// Live packets, with numbers that go on from the early ones.
    pub(super) packets: Vec<Vec<u8>>,
    /// Bid plus ask of the future after each, in its ticks.
    pub(super) half_ticks: Vec<i64>,
    /// The same before the first.
    pub(super) begin: i64,
    /// The number of the first.
    pub(super) first: u64,
}

impl Tape {
    /// A market of so many options, until the future's bid or ask has changed `moves` times. `None` when it
    /// is stopped before.
    pub(super) fn generate(
        options: u32,
        moves: usize,
        seed: u64,
        stop: &StopFlag,
    ) -> Result<Option<Tape>, Failure> {
        let mut config =
            Config::parse(&tickwire_quoterd::demo_text(options, VIRTUAL_START)?).map_err(Failure::config)?;
        config.exchange.seed = seed;
        config.exchange.duration_s = 86_400.0.try_into().map_err(Failure::config)?;
        // Every option's orders come and go, whatever else does: the future has to have a share beyond that.
        let rate = f64::from(options) * 400.0;
        config.exchange.rate = rate.max(50_000.0).try_into().map_err(Failure::config)?;
        config.receiver.max_instruments = options + 16;
        config.receiver.max_orders = 1 << 17;
        config.receiver.max_levels = 1 << 16;
        let feed = config.feed[0].clone();
        let reception = Reception::new(&config.receiver);
        wiring::with_channel(&feed, 0, &reception, Generate { config, moves, stop })?
    }

    /// How far the future goes to either side of where it begins, in half ticks.
    pub(super) fn reach(&self) -> i64 {
        let far = self.half_ticks.iter().map(|at| (at - self.begin).abs()).max();
        far.unwrap_or(0)
    }
}

struct Generate<'a> {
    config: Config,
    moves: usize,
    stop: &'a StopFlag,
}

/// Sees whether a packet is about the future.
struct Probe<'l> {
    learn: &'l mut Learn,
    future: InstrumentId,
    touched: bool,
}

impl EventSink for Probe<'_> {
    fn on_event(&mut self, event: &MarketEvent) {
        self.learn.on_event(event);
        // Trades too: they count in the instrument's own sequence (RptSeq).
        self.touched |= event.instrument == self.future;
    }
}

impl WithChannel for Generate<'_> {
    type Output = Result<Option<Tape>, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Result<Option<Tape>, Failure> {
        let Generate { config, moves, stop } = self;
        let (mut market, _) = market_of(&config.market(), Some(1 << 12))?;
        let slots = config.receiver.max_instruments as usize + 1;
        let mut learn = Learn {
            books: books_of(&config.receiver, channel.venue(), depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; slots],
        };
        let underlying = config.quoter.as_ref().map(|q| q.underlying.0).unwrap_or_default();
        let wanted = config.exchange.instrument.len() - 1;
        let mut now = VIRTUAL_START;
        market.open(now);
        let mut early = Vec::new();
        let mut last = 0;
        let (future, tick, begin) = loop {
            if stop.is_set() {
                return Ok(None);
            }
            now = now.after(STEP_NS);
            if now.since(VIRTUAL_START) > 600 * Nanos::SECOND {
                return Err(Failure::system("the simulated market never opens"));
            }
            market.on_time(now);
            while let Some(datagram) = market.exchange_mut(0).poll_datagram(0, now) {
                channel.on_datagram(now, datagram.port, Line::A, datagram.bytes, &mut learn);
                if datagram.port == Port::Live {
                    last = number(datagram.bytes);
                }
                early.push(Early {
                    port: datagram.port,
                    bytes: datagram.bytes.to_vec(),
                });
            }
            if let Some(chain) = Chain::of(&channel, &underlying)?
                && chain.options.len() == wanted
                && let Some(begin) = learn.half_tick(chain.underlying, chain.underlying_tick)
            {
                break (chain.underlying, chain.underlying_tick, begin);
            }
        };
        let mut tape = Tape {
            config,
            early,
            packets: Vec::new(),
            half_ticks: Vec::new(),
            begin,
            first: last + 1,
        };
        let mut seen = 0;
        let mut before = begin;
        while seen < moves {
            if stop.is_set() {
                return Ok(None);
            }
            now = now.after(STEP_NS);
            if now.since(VIRTUAL_START) > PATIENCE_NS {
                return Err(Failure::system("the simulated market does not move"));
            }
            market.on_time(now);
            while let Some(datagram) = market.exchange_mut(0).poll_datagram(0, now) {
                let mut probe = Probe {
                    learn: &mut learn,
                    future,
                    touched: false,
                };
                channel.on_datagram(now, datagram.port, Line::A, datagram.bytes, &mut probe);
                if datagram.port != Port::Live || !probe.touched {
                    continue;
                }
                // One that leaves a side empty for a moment says nothing that can be quoted by.
                let half_tick = learn.half_tick(future, tick).unwrap_or(before);
                seen += usize::from(half_tick != before);
                before = half_tick;
                let mut bytes = datagram.bytes.to_vec();
                last += 1;
                bytes[..4].copy_from_slice(&(last as u32).to_le_bytes());
                tape.packets.push(bytes);
                tape.half_ticks.push(half_tick);
            }
        }
        Ok(Some(tape))
    }
}

/// MsgSeqNum of a packet: CME MDP 3.0, "Binary Packet Header".
pub(super) fn number(packet: &[u8]) -> u64 {
    packet
        .first_chunk::<4>()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
}
