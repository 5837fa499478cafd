//! A whole session's ITCH messages without sockets or a clock, for benchmarks and files.

use crate::engine::{Engine, EngineConfig};
use crate::flow::FlowConfig;
use crate::itch::ItchWriter;
use crate::listing::listings;
use crate::pace::PaceConfig;
use crate::session::Session;

/// 09:30 in New York, in nanoseconds since midnight.
const MARKET_OPEN: u64 = 34_200 * 1_000_000_000;

/// Publishes at least `messages` ITCH messages of a session with `symbols` instruments, then its close; `out` gets each
/// message without framing. Venue time runs at 100,000 messages a second from 09:30. One seed, one stream.
///
/// Gives the engine as it stands in the end: the books that the messages must rebuild.
pub fn generate_itch(seed: u64, messages: u64, symbols: u16, out: &mut impl FnMut(&[u8])) -> Engine {
    let listings = listings(symbols);
    let max_live = 400_000.max(u32::from(symbols) * 200);
    let mut engine = Engine::new(EngineConfig {
        instruments: symbols.into(),
        max_orders: max_live + 1000,
        max_levels: 512,
    });
    let flow = FlowConfig {
        seed,
        max_live,
        ..FlowConfig::default()
    };
    let pace = PaceConfig {
        rate: 100_000,
        ..PaceConfig::default()
    };
    let mut session = Session::new(flow, pace, &listings, MARKET_OPEN);
    let mut publisher = ItchWriter::new(&listings, |message: &[u8]| out(message));
    let mut published = 0;
    while let Some(due) = session.due() {
        published += session.step(due, &mut engine, &mut publisher, &mut ());
        if published >= messages {
            session.close();
        }
    }
    engine
}
