//! What a file of feeds may say, and which line is blamed.

use super::*;

/// Two units of BZX and the two streams of the same of an MDP 3.0 channel.
const GOOD: &str = r#"
[[feed]]
venue = "bzx"
[[feed.channel]]
name = "1"
live = { a = "239.1.0.1:30001", b = "239.1.1.1:30001" }
retransmission = { a = "239.1.2.1:30001" }
replay = "127.0.0.1:30100"
snapshot_server = "127.0.0.1:30201"
symbols = { first = "A", last = "AAL" }
[[feed.channel]]
name = "2"
live = { a = "239.1.0.2:30002" }
retransmission = { a = "239.1.2.2:30002" }
replay = "127.0.0.1:30100"
snapshot_server = "127.0.0.1:30202"

[[feed]]
name = "futures"
venue = "cme"
protocol = "mdp3"
interface = "10.0.0.7"
[[feed.channel]]
name = "310"
live = { a = "239.2.0.1:14310", b = "239.2.1.1:14310" }
snapshot = { a = "239.2.2.1:14310", b = "239.2.3.1:14310" }
snapshot_by_order = { a = "239.2.4.1:14310" }
definitions = { a = "239.2.6.1:14310" }
symbols = ["ES", "MES"]

[exchange]
seed = 7
[trader]
[order_entry]
"#;

fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

#[test]
fn every_group_is_found_with_what_it_is_for() {
    let file = FeedFile::parse(GOOD).unwrap();
    assert_eq!(
        file.feeds.iter().map(FeedConfig::name).collect::<Vec<_>>(),
        ["bzx", "futures"]
    );
    assert_eq!(file.feeds[0].protocol(), Protocol::Pitch);
    assert_eq!(file.feeds[0].interface, InterfaceName::loopback());
    assert_eq!(file.feeds[1].interface.to_string(), "10.0.0.7");
    let found = |address| {
        let d = file.find(at(address))?;
        Some((d.feed, d.channel, d.port, d.line_name()))
    };
    assert_eq!(found("239.1.0.2:30002"), Some((0, 1, Port::Live, Some("a"))));
    assert_eq!(found("239.1.1.1:30001"), Some((0, 0, Port::Live, Some("b"))));
    assert_eq!(
        found("239.1.2.1:30001"),
        Some((0, 0, Port::Retransmission, Some("a")))
    );
    assert_eq!(
        found("239.2.4.1:14310"),
        Some((1, 0, Port::SnapshotByOrder, Some("a")))
    );
    assert_eq!(
        found("239.2.6.1:14310"),
        Some((1, 0, Port::Definitions, Some("a")))
    );
    // Another port of a known group, a TCP server, IPv6.
    assert_eq!(found("239.1.0.2:30001"), None);
    assert_eq!(found("127.0.0.1:30100"), None);
    assert_eq!(found("[ff02::1]:30002"), None);
}

#[test]
fn a_server_of_requests_is_found_because_it_speaks_in_datagrams() {
    let file = FeedFile::parse(
        "[[feed]]\nvenue = \"psx\"\n[[feed.channel]]\nname = \"1\"\nlive = { a = \"239.1.0.1:1\" }\nrequests = \"10.1.1.1:2\"",
    )
    .unwrap();
    let place = file.find(at("10.1.1.1:2")).unwrap();
    assert_eq!((place.port, place.line), (Port::Requests, None));
}

#[test]
fn a_file_is_written_as_it_was_read() {
    #[derive(Serialize)]
    struct Feeds {
        feed: Vec<FeedConfig>,
    }
    let feed = FeedFile::parse(GOOD).unwrap().feeds;
    let text = tickwire_console::settings::write(&Feeds { feed: feed.clone() }).unwrap();
    assert_eq!(FeedFile::parse(&text).unwrap().feeds, feed, "{text}");
}

#[test]
fn every_port_of_every_protocol_is_accepted_and_every_other_is_refused() {
    for venue in Venue::ALL {
        for &protocol in Protocol::of_venue(venue) {
            for port in Port::ALL {
                let group = port.transport() == Transport::Multicast;
                let value = if group {
                    "{ a = \"239.9.9.9:9\" }"
                } else {
                    "\"10.9.9.9:9\""
                };
                let live = if port == Port::Live {
                    ""
                } else {
                    "live = { a = \"239.1.1.1:1\" }\nsnapshot = { a = \"239.1.1.1:2\" }\nretransmission = { a = \"239.1.1.1:3\" }\n"
                };
                let live: String = live
                    .lines()
                    .filter(|l| {
                        let own = l.starts_with(&format!("{} ", port.name()));
                        !own && protocol
                            .ports()
                            .iter()
                            .any(|p| l.starts_with(&format!("{} ", p.name())))
                    })
                    .map(|l| format!("{l}\n"))
                    .collect();
                let templates = if protocol == Protocol::Moex {
                    "templates = [\"t.xml\"]\n"
                } else {
                    ""
                };
                let text = format!(
                    "[[feed]]\nvenue = \"{}\"\nprotocol = \"{protocol}\"\n{templates}[[feed.channel]]\nname = \"1\"\n{live}{} = {value}\n",
                    venue.name(),
                    port.name()
                );
                let result = FeedFile::parse(&text).map(|_| ());
                if protocol.ports().contains(&port) {
                    assert_eq!(result, Ok(()), "{text}");
                } else {
                    let said = result.unwrap_err();
                    assert!(
                        said.contains(&format!("{protocol} has no {}", port.name())),
                        "{said}"
                    );
                }
            }
        }
    }
}

/// The file with one line replaced, and what is said of it.
fn refused(line: &str, instead: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    FeedFile::parse(&GOOD.replacen(line, instead, 1)).unwrap_err()
}

/// The number of the last line that is this one.
fn line(of: &str, text: &str) -> usize {
    1 + text
        .lines()
        .collect::<Vec<_>>()
        .iter()
        .rposition(|l| l.contains(of))
        .unwrap()
}

#[test]
fn what_contradicts_something_is_refused_with_its_line() {
    let live_1 = "live = { a = \"239.1.0.1:30001\", b = \"239.1.1.1:30001\" }";
    let live_2 = "live = { a = \"239.1.0.2:30002\" }";
    for (was, instead, says) in [
        (
            live_1,
            "live = { a = \"10.0.0.1:30001\" }",
            "10.0.0.1:30001 is not a multicast group",
        ),
        (live_1, "live = { a = \"239.1.0.1:0\" }", "port 0"),
        (
            live_1,
            "live = { a = \"239.1.0.1:30001\", b = \"239.1.0.1:30001\" }",
            "is already live.a of feed bzx, channel \"1\"",
        ),
        (
            live_2,
            "live = { a = \"239.1.1.1:30001\" }",
            "239.1.1.1:30001 is already live.b of feed bzx, channel \"1\"",
        ),
        (live_2, "live = { a = \"239.1.0.1:30001\" }", "is already live.a"),
        (
            "retransmission = { a = \"239.1.2.2:30002\" }",
            "retransmission = { a = \"239.1.0.2:30002\" }",
            "is already live.a of feed bzx, channel \"2\"",
        ),
        (
            "retransmission = { a = \"239.1.2.2:30002\" }",
            "snapshot = { a = \"239.1.2.2:30002\" }",
            "pitch has no snapshot",
        ),
        (
            "snapshot_server = \"127.0.0.1:30202\"",
            "snapshot_server = \"127.0.0.1:30100\"",
            "is already replay of feed bzx",
        ),
        (
            "snapshot_server = \"127.0.0.1:30202\"",
            "snapshot_server = \"239.0.0.1:30100\"",
            "is a multicast group",
        ),
        ("name = \"2\"", "name = \"1\"", "a second channel of this name"),
        ("name = \"2\"", "name = \"\"", "no name"),
        (
            "name = \"futures\"",
            "name = \"bzx\"",
            "two feeds have the name \"bzx\"",
        ),
        ("name = \"futures\"", "name = \"\"", "must not be empty"),
        (
            "protocol = \"mdp3\"",
            "protocol = \"xdp\"",
            "venue cme does not speak xdp, but \"mdp3\"",
        ),
        (
            "protocol = \"mdp3\"",
            "templates = [\"x.xml\"]",
            "templates are for MOEX",
        ),
        (
            "venue = \"bzx\"",
            "venue = \"nyse\"",
            "venue nyse needs protocol = \"xdp\" or \"openbook\"",
        ),
        ("venue = \"bzx\"", "venue = \"moex\"", "MOEX needs templates"),
    ] {
        let said = refused(was, instead);
        let number = line(instead, &GOOD.replacen(was, instead, 1));
        assert!(
            said.starts_with(&format!("line {number}: ")) && said.contains(says),
            "{instead}: {said}"
        );
    }
}

#[test]
fn what_is_missing_is_blamed_on_its_table() {
    let said = refused("retransmission = { a = \"239.1.2.2:30002\" }\n", "");
    assert!(
        said.contains("what pitch replays comes on multicast") && said.contains("line 14"),
        "{said}"
    );
    let said = FeedFile::parse("[[feed]]\nvenue = \"cqs\"\n").unwrap_err();
    assert!(
        said.contains("line 2") && said.contains("no [[feed.channel]]"),
        "{said}"
    );
    assert_eq!(FeedFile::parse("").unwrap_err(), "there is no [[feed]] in it");
}

#[test]
fn what_is_not_well_formed_is_refused_with_its_line() {
    for (was, instead, says) in [
        ("venue = \"bzx\"", "venue = \"bats\"", "unknown venue \"bats\""),
        (
            "protocol = \"mdp3\"",
            "protocol = \"sbe\"",
            "unknown variant `sbe`",
        ),
        ("seed = 7", "seed = ", "expected"),
        ("[trader]", "[traders]", "unknown field `traders`"),
        ("name = \"2\"", "nam = \"2\"", "unknown field `nam`"),
        ("live = { a = \"239.1.0.2:30002\" }", "", "missing field `live`"),
        (
            "live = { a = \"239.1.0.2:30002\" }",
            "live = { a = \"239.1.0.2\" }",
            "invalid",
        ),
        (
            "live = { a = \"239.1.0.2:30002\" }",
            "live = { b = \"239.1.0.2:1\" }",
            "missing field `a`",
        ),
        (
            "symbols = [\"ES\", \"MES\"]",
            "symbols = \"ES\"",
            "symbols are a list",
        ),
    ] {
        let said = refused(was, instead);
        assert!(said.contains("line ") && said.contains(says), "{instead}: {said}");
    }
}

/// The demo's file, every venue's, and the one for a capture of several.
#[test]
fn every_example_is_right() {
    let folder = tickwire_testdata::workspace().join("examples");
    let mut venues = Vec::new();
    for path in tickwire_testdata::files(&folder, "toml") {
        let file = FeedFile::load(&path).unwrap_or_else(|e| panic!("{e}"));
        for feed in &file.feeds {
            println!(
                "{}: {}, {} channels",
                path.display(),
                feed.name(),
                feed.channels.len()
            );
            feed.templates
                .iter()
                .for_each(|t| assert!(folder.join(t).exists(), "{t:?}"));
            venues.push(feed.venue);
            let used: Vec<_> = Port::ALL
                .into_iter()
                .filter(|port| feed.channels.iter().any(|c| c.addresses(*port).next().is_some()))
                .collect();
            let has_every_port = !["whole-market.toml", "demo.toml", "equities.toml", "daemon.toml"]
                .iter()
                .any(|name| path.ends_with(name));
            if has_every_port {
                let known = feed.protocol().ports().to_vec();
                assert!(known.iter().all(|port| used.contains(port)), "{}", feed.name());
            }
        }
    }
    venues.sort_unstable();
    venues.dedup();
    assert_eq!(venues, Venue::ALL);
}

/// Each group may name the only sender that is heard there; `tickwire config` prints it.
#[test]
fn a_group_may_name_its_source() {
    let text = "[[feed]]\nvenue = \"bzx\"\nprotocol = \"pitch\"\n[[feed.channel]]\nname = \"1\"\n\
                live = { a = \"239.1.0.1:30001\", source_a = \"10.0.0.1\", b = \"239.1.0.2:30002\", source_b = \"10.0.1.1\" }\n\
                retransmission = { a = \"239.1.0.3:30003\", source_a = \"10.0.0.2\" }\n";
    let file = FeedFile::parse(text).expect("right");
    let ports = file.feeds[0].channels[0].ports(&file.feeds[0].interface);
    let at = |last: [u8; 2]| Some(std::net::Ipv4Addr::new(10, 0, last[0], last[1]));
    assert_eq!(ports.sources[Port::Live as usize], [at([0, 1]), at([1, 1])]);
    assert_eq!(ports.sources[Port::Retransmission as usize], [at([0, 2]), None]);
    assert_eq!(ports.sources[Port::Snapshot as usize], [None, None]);
    let printed = tickwire_console::settings::write(&file.feeds[0]).expect("printable");
    for source in [
        "source_a = \"10.0.0.1\"",
        "source_b = \"10.0.1.1\"",
        "source_a = \"10.0.0.2\"",
    ] {
        assert!(printed.contains(source), "{printed}");
    }
    for (was, instead, says) in [
        ("\"10.0.0.1\"", "\"239.1.0.1\"", "is no sender's address"),
        ("\"10.0.0.1\"", "\"0.0.0.0\"", "is no sender's address"),
        (
            "a = \"239.1.0.3:30003\", source_a",
            "a = \"239.1.0.3:30003\", source_b",
            "no line b",
        ),
    ] {
        let said = FeedFile::parse(&text.replace(was, instead)).expect_err(instead);
        assert!(said.starts_with("line 6") || said.starts_with("line 7"), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
