//! The same order log through a core in hardware, simulated clock by clock, and compared order by order with
//! the software (`tickwire-cosim`).

use std::path::Path;
use std::sync::Arc;

use tickwire_console::failure::Failure;
use tickwire_cosim::{Comparison, Cosim, CosimError, Day, Packet, Troubles};
use tickwire_language::Interpreter;
use tickwire_market::Price;
use tickwire_rtl::{Moex, Target, Venue};
use tickwire_venues::protocol;
use tickwire_wire::fast::Limits;
use tickwire_wire::moex::{Decoder, preamble};

pub(crate) use tickwire_cosim::is_there;

use super::{Log, SYMBOL};

/// Clock rate at which a core of this kind was placed and routed, in MHz: docs/hardware.md.
pub(crate) const ROUTED_MHZ: f64 = 58.4;

/// Entries of a packet at most: as many as surely fit an Ethernet frame.
pub(crate) const ENTRIES_MAX: usize = 16;

/// The rule of this scenario: an order at the best offer's price whenever that has changed.
const RULE: &str = "strategy cep_core\n\
    param lot: qty = 1 in 1..10000\n\
    instrument a = \"SYMBOL\"\n\
    state last: price? = none\n\
    on book a when live(a) {\n\
    \x20 let ask = a.ask[0].price\n\
    \x20 if ask != last {\n\
    \x20   if ask != none { buy a lot @ ask ioc }\n\
    \x20   last = ask\n\
    \x20 }\n\
    }\n";

/// What the core did with the log, beside what the software did. `folder`: where it is made, which takes the
/// better part of a minute the first time.
pub(crate) fn simulate(log: &Log, templates: &Path, folder: &Path) -> Result<Comparison, Failure> {
    let templates = protocol::templates(templates).map_err(Failure::config)?;
    let failed = |e: CosimError| Failure::check(format!("the core: {e}"));
    let template = {
        let decoder = Decoder::new(Arc::clone(&templates), Limits::default());
        let mut decoder = decoder.map_err(|e| Failure::config(e.to_string()))?;
        let message = decoder.packet(log.payload(0));
        message.ok().map(|message| message.template_id())
    };
    let template = template
        .and_then(|id| templates.template(id))
        .map(|template| template.name().to_owned())
        .ok_or_else(|| Failure::check("the log's first packet is of no template"))?;
    let (symbol, board) = SYMBOL.split_once('@').unwrap_or((SYMBOL, ""));
    let target = Target {
        venue: Venue::Moex(Moex {
            board: board.to_owned(),
            ..Moex::of(templates, &template)
        }),
        tick: Price::from_4dp(25),
        ..Target::default()
    };
    let source = RULE.replace("SYMBOL", symbol);
    let no_file = |name: &str| Err(format!("{name} is not there"));
    let cosim = Cosim::new(&source, &no_file, &target, folder).map_err(failed)?;
    let packets = (0..log.len()).map(|at| Packet {
        seq: preamble(log.payload(at)).map_or(0, u64::from),
        messages: 1,
        bytes: log.payload(at).to_vec(),
    });
    let day = Day {
        packets: packets.collect(),
        ..Day::default()
    };
    let troubles = Troubles::default();
    cosim.compare(&day, &troubles, Interpreter::new).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cep::{Checker, LogConfig};
    use tickwire_venues::channels::BUILT_IN;

    #[test]
    fn the_core_orders_as_the_software_and_as_the_naive_rule() {
        if !is_there() {
            return tickwire_testdata::not_tested("no Verilator here, so that the core is not simulated");
        }
        let templates = Path::new(BUILT_IN);
        let config = LogConfig {
            seed: 3,
            packets: 1_500,
            templates,
            entries_max: ENTRIES_MAX,
        };
        let log = Log::generate(&config).expect("the built-in templates publish");
        let folder = std::env::temp_dir().join(format!("tickwire-core-{}", std::process::id()));
        let found = simulate(&log, templates, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        let found = found.unwrap_or_else(|f| panic!("{}", f.message));
        assert_eq!(found.differing, 0, "{:?}", found.differences);
        let (mut checker, mut prices, mut orders) = (Checker::default(), Vec::new(), 0);
        checker.begin(None);
        for at in 0..log.len() {
            checker.expect(log.offers(at), &mut prices);
            orders += prices.len() as u64;
        }
        assert!(found.orders > 30, "{}", found.orders);
        assert_eq!(found.orders + found.stopped, orders);
        assert!(found.average().is_some_and(|clocks| clocks > 10.0));
    }
}
