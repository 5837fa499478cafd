//! `tickwire lab` by every way through the machine: sockets, the driver's hook, past the kernel, and orders
//! that the program at the hook sends. What is ordered is the same whichever way it takes.
//!
//! Needs root; without it the tests say so, and with `TICKWIRE_ROOT_TESTS=1` they fail.

#[path = "../../tickwire/tests/common/mod.rs"]
mod common;
#[path = "../../tickwire/tests/common/namespaces.rs"]
mod namespaces;
#[path = "common/runs.rs"]
mod runs;

use common::{Folder, text};
use namespaces::namespaces;
use runs::{FEW, case, cases, count, lab, measured};
use serde_json::Value;

/// The orders of `cep`, between two namespaces of the run's own.
fn ordered(folder: &Folder, set: &[&str]) -> Value {
    let small = [
        "run.samples=500",
        "run.warm_up=20",
        "run.repetitions=1",
        "run.network=\"veth\"",
    ];
    measured(folder, "cep", &[&small, set].concat()).0
}

/// Runs a scenario that must end with this code: what it says of it.
fn refused(folder: &Folder, scenario: &str, set: &[&str], code: i32) -> String {
    let (output, _) = lab(folder, scenario, set);
    let said = text(&output.stderr).to_string();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// One log, as many orders by each way, each of them right (which the scenario checks), and WIRE of each.
#[test]
fn cep_orders_the_same_by_every_way_through_the_machine() {
    let Some(_pair) = namespaces("twways") else { return };
    let folder = Folder::new("ways-cep");
    let kept = ordered(
        &folder,
        &[
            "settings.market=\"itch\"",
            "settings.backends=[\"socket\", \"xdp\", \"xdp+delegated\", \"pre-armed\"]",
            "settings.block=50",
            // Time for an order to be armed between two packets, on a busy machine.
            "settings.quiet_us=2000",
        ],
    );
    let ways =
        ["sockets", "xdp", "xdp+delegated", "pre-armed"].map(|way| case(&kept, &format!("{way}, tickwire")));
    for way in ways {
        let counts = &way["repetitions"][0]["counts"];
        assert_eq!(count(way, 0), count(ways[0], 0), "{}", way["name"]);
        assert_eq!(count(way, 1), count(way, 0), "WIRE of each: {}", way["name"]);
        let by_program = counts["sent by the program"].as_u64().expect("a number");
        assert_eq!(
            by_program > 0,
            way["name"] == "pre-armed, tickwire",
            "{by_program}"
        );
    }
    assert!(count(ways[0], 0) > 40, "{}", ways[0]);

    let kept = ordered(
        &folder,
        &[
            "settings.backends=[\"xdp+delegated\", \"socket\", \"xdp\"]",
            "settings.block=50",
        ],
    );
    for way in ["sockets", "xdp", "xdp+delegated"] {
        let way = case(&kept, &format!("{way}, tickwire"));
        assert!(count(way, 0) > 5 && count(way, 0) == count(way, 1), "{way}");
    }
}

/// The same between interfaces that there are.
#[test]
fn sides_stand_where_they_are_told_to() {
    let Some(pair) = namespaces("twways") else { return };
    let folder = Folder::new("ways-given");
    let exchange = format!("run.exchange=\"{}/veth0\"", pair.name(0));
    let trader = format!("run.trader=\"{}/veth0\"", pair.name(1));
    let given = ["run.network=\"given\"", exchange.as_str(), trader.as_str()];
    let itch = [
        "settings.market=\"itch\"",
        "settings.backends=[\"socket\", \"xdp\"]",
    ];
    let kept = ordered(&folder, &[&given[..], &itch].concat());
    for way in ["sockets", "xdp"] {
        let way = case(&kept, &format!("{way}, tickwire"));
        assert!(count(way, 0) > 40 && count(way, 0) == count(way, 1), "{way}");
    }
    let facts = kept["facts"].to_string();
    assert!(facts.contains("exchange at twways"), "{facts}");

    let alone = [
        "settings.transports=[\"multicast\"]",
        "settings.backends=[\"poll\"]",
        "settings.legs=[]",
    ];
    let (kept, _) = measured(&folder, "quadra", &[&FEW, &given[..], &alone].concat());
    let all = cases(&kept);
    assert!(all.iter().all(|case| count(case, 0) == 20), "{all:?}");

    let wrong = ["run.network=\"given\"", "run.exchange=\"no-such/veth0\"", &trader];
    let said = refused(&folder, "cep", &wrong, 3);
    assert!(
        said.contains("run.exchange = \"no-such/veth0\"") && said.contains("ip netns"),
        "{said}"
    );
}

/// The handler's books are the engines' whichever way packets come, which the scenario checks; each part of
/// the way is measured.
#[test]
fn gati_has_the_engines_books_by_every_way_of_receiving() {
    let Some(_pair) = namespaces("twways") else { return };
    let folder = Folder::new("ways-gati");
    let (kept, _) = measured(
        &folder,
        "gati",
        &[
            "run.network=\"veth\"",
            "run.samples=6000",
            "run.repetitions=2",
            "settings.rate=2000",
            "settings.symbols=45",
            "settings.backends=[\"socket\", \"xdp\"]",
        ],
    );
    for way in ["socket", "xdp"] {
        let all = case(&kept, &format!("all feeds, {way}"));
        assert_eq!(all["repetitions"].as_array().map(Vec::len), Some(2), "{all}");
        assert!(count(all, 0) > 0 && count(all, 1) > 0, "{all}");
    }
    let checks = kept["checks"].as_array().expect("checks");
    let books = checks
        .iter()
        .filter(|check| check["name"].to_string().contains("is the engine's"));
    assert_eq!(books.count(), 4, "{checks:?}");
}

/// Every mass quote of every way is seen, with what caused it, and what stands at the end is what direct
/// pricing wants, which the scenario checks: the quotes are the same.
#[test]
fn bts_quotes_the_same_by_every_way_through_the_machine() {
    let Some(_pair) = namespaces("twways") else { return };
    let folder = Folder::new("ways-bts");
    let (kept, _) = measured(
        &folder,
        "bts",
        &[
            "run.network=\"veth\"",
            "run.samples=40",
            "run.warm_up=5",
            "run.repetitions=1",
            "settings.quotes=[64]",
            "settings.layouts=[\"one\", \"three\"]",
            "settings.backends=[\"socket\", \"xdp\", \"xdp+delegated\"]",
            "settings.memory=false",
            "settings.edits=false",
        ],
    );
    assert_eq!(cases(&kept).len(), 6);
    for layout in ["one thread", "three threads"] {
        for way in ["", ", xdp", ", xdp+delegated"] {
            let case = case(&kept, &format!("64 options, {layout}{way}"));
            // On a slow machine few packets have quotes of their own; the messages are there all the same.
            let messages = case["repetitions"][0]["counts"]["mass quotes"].as_u64();
            assert!(messages > Some(0) && count(case, 4) == count(case, 1), "{case}");
        }
    }
}

/// Each message has its order by every way, which the scenario checks.
#[test]
fn quadra_is_answered_by_every_way_through_the_machine() {
    let Some(_pair) = namespaces("twways") else { return };
    let folder = Folder::new("ways-quadra");
    let small = [
        "run.network=\"veth\"",
        "settings.transports=[\"tcp\", \"multicast\"]",
        "settings.backends=[\"socket\", \"xdp\", \"xdp+delegated\"]",
        "settings.legs=[]",
    ];
    let small = [&FEW[..], &small].concat();
    let (kept, _) = measured(&folder, "quadra", &small);
    for way in ["spin", "xdp", "xdp+delegated"] {
        let case = case(&kept, &format!("multicast, 500 µs, {way}"));
        assert_eq!((count(case, 0), count(case, 2)), (20, 20), "{case}");
    }
    let names: Vec<String> = cases(&kept).iter().map(|case| case["name"].to_string()).collect();
    assert_eq!(
        names.iter().filter(|name| name.contains("xdp")).count(),
        2,
        "{names:?}"
    );
    let wrong = [
        "settings.fault=wrong-order",
        "run.samples=200",
        "load.timeout_ms=500",
    ];
    refused(&folder, "quadra", &[&small[..], &wrong].concat(), 1);
}
