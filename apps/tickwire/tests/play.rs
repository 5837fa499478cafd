//! `tickwire play`: what is sent is what was recorded, byte for byte, in order, once; and the ways it
//! refuses.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folder, Guard, run, signal, text, tickwire, waited};
use tickwire_market::Nanos;
use tickwire_runtime::capture::{LinkType, PcapWriter};
use tickwire_testdata::{captures, specs};

const PATIENCE: Duration = Duration::from_secs(20);

/// A group of this test's own, with a socket that has joined it on loopback.
struct Group {
    address: SocketAddrV4,
    socket: UdpSocket,
}

impl Group {
    fn join(last: u8) -> Group {
        let group = Ipv4Addr::new(239, 77, 5, last);
        let socket = UdpSocket::bind((group, 0)).expect("a UDP port");
        socket
            .join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)
            .expect("multicast on loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("a read timeout");
        let port = socket.local_addr().expect("bound").port();
        Group {
            address: SocketAddrV4::new(group, port),
            socket,
        }
    }

    fn take(&self, count: usize) -> Vec<Vec<u8>> {
        let mut buffer = [0; 65_536];
        let mut take = || {
            let len = self.socket.recv(&mut buffer).expect("a datagram in time");
            buffer[..len].to_vec()
        };
        (0..count).map(|_| take()).collect()
    }

    /// Nothing more comes.
    fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).expect("non-blocking");
        self.socket.recv(&mut [0; 16]).is_err()
    }
}

/// A capture of these datagrams: microseconds, destination, payload.
fn capture(folder: &Folder, name: &str, packets: &[(u64, SocketAddrV4, Vec<u8>)]) -> String {
    let path = folder.0.join(name);
    let mut writer = PcapWriter::create(&path, LinkType::ETHERNET).expect("a capture");
    let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    for (us, to, payload) in packets {
        let time = Nanos(1_700_000_000 * Nanos::SECOND + us * 1_000);
        writer.write_udp(time, from, *to, payload).expect("a frame");
    }
    writer.finish().expect("a whole file");
    path.display().to_string()
}

/// All of a test's datagrams together fit the smallest receive buffer that a system grants: nobody reads
/// while they are sent.
fn payload(number: u64) -> Vec<u8> {
    let len = match number % 20 {
        19 => 1_400,
        _ => 1 + number as usize * 7 % 90,
    };
    (0..len).map(|at| (at as u64 * 31 + number * 7) as u8).collect()
}

/// Two captures of 60 datagrams each, alternating in time, to two groups.
fn two_captures(folder: &Folder, groups: [SocketAddrV4; 2]) -> ([String; 2], Vec<(usize, Vec<u8>)>) {
    let of = |file: u64| {
        let packets = (0..60).map(|n| {
            let number = 2 * n + file;
            (
                number * 50,
                groups[usize::from(number.is_multiple_of(3))],
                payload(number),
            )
        });
        packets.collect::<Vec<_>>()
    };
    let names = [("a.pcap", of(0)), ("b.pcap", of(1))].map(|(name, packets)| capture(folder, name, &packets));
    let all = (0..120).map(|number: u64| (usize::from(number.is_multiple_of(3)), payload(number)));
    (names, all.collect())
}

fn of_group(all: &[(usize, Vec<u8>)], group: usize) -> Vec<Vec<u8>> {
    all.iter()
        .filter(|(g, _)| *g == group)
        .map(|(_, payload)| payload.clone())
        .collect()
}

#[test]
fn several_captures_are_sent_merged_by_time_byte_for_byte_at_every_kind_of_rate() {
    let folder = Folder::new("play-merge");
    for (nth, rate) in [
        &["--multiplier", "3"][..],
        &["--pps", "40000", "--preload"],
        &["--mbps", "400"],
    ]
    .into_iter()
    .enumerate()
    {
        let groups = [Group::join(10 + 2 * nth as u8), Group::join(11 + 2 * nth as u8)];
        let ([a, b], all) = two_captures(&folder, [groups[0].address, groups[1].address]);
        let mut args = vec!["play", &a, &b, "--json"];
        args.extend_from_slice(rate);
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        for (number, group) in groups.iter().enumerate() {
            let expected = of_group(&all, number);
            assert_eq!(group.take(expected.len()), expected, "{rate:?}");
            assert!(group.is_silent(), "{rate:?}: more than was recorded");
        }
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["packets"], 120);
        assert_eq!(json["lateness_ns"]["count"], 120);
        assert_eq!(json["not_played"], 0);
        // The last packet's time: nothing is sent before it is due.
        let shortest = match nth {
            0 => 119.0 * 50e-6 / 3.0,
            1 => 119.0 / 40_000.0,
            _ => 0.0,
        };
        assert!(json["seconds"].as_f64().expect("a number") >= shortest, "{json}");
    }
}

#[test]
fn a_limit_passes_and_a_map_are_kept() {
    let folder = Folder::new("play-map");
    let (mapped, other) = (Group::join(30), Group::join(31));
    let recorded: SocketAddrV4 = "239.1.2.3:3000".parse().expect("an address");
    let packets: Vec<_> = (0..10)
        .map(|n| (n, if n % 2 == 0 { recorded } else { other.address }, payload(n)))
        .collect();
    let file = capture(&folder, "map.pcap", &packets);
    let map = format!("{recorded}={}", mapped.address);
    let output = run(&[
        "play",
        &file,
        "--topspeed",
        "--loop",
        "0",
        "--limit",
        "25",
        "--map",
        &map,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains(&recorded.to_string()) && said.contains(&mapped.address.to_string()),
        "{said}"
    );
    let at = |n: usize| packets[n % 10].2.clone();
    let even: Vec<_> = (0..25).filter(|n| n % 2 == 0).map(at).collect();
    let odd: Vec<_> = (0..25).filter(|n| n % 2 == 1).map(at).collect();
    assert_eq!(mapped.take(even.len()), even);
    assert_eq!(other.take(odd.len()), odd);
    assert!(mapped.is_silent() && other.is_silent());
}

#[test]
fn one_at_a_time_waits_for_each_order_and_keeps_every_sample() {
    let folder = Folder::new("play-single");
    let group = Group::join(40);
    let packets: Vec<_> = (0..60).map(|n| (n, group.address, payload(n))).collect();
    let file = capture(&folder, "single.pcap", &packets);
    let samples = folder.0.join("samples.csv");
    let mut player = tickwire();
    player
        .args([
            "play",
            &file,
            "--one-at-a-time",
            "127.0.0.1:0",
            "--orders",
            "bytes",
        ])
        .args(["--timeout", "300000", "--samples"])
        .arg(&samples)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut player = Guard(player.spawn().expect("the program starts"));
    let port = listening(&mut player);
    let mut orders = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    // The system under test: an order for each packet but every third, which the player must wait out.
    for n in 0..60_u64 {
        let got = group.take(1);
        assert_eq!(got[0], payload(n), "strictly in order");
        if n % 3 != 2 {
            orders.write_all(&n.to_be_bytes()).expect("it reads");
        }
        // Nothing else is under way while an order is awaited.
    }
    let status = player.wait(PATIENCE).expect("it ends");
    let mut said = String::new();
    let stdout = player.0.stdout.as_mut().expect("piped");
    stdout.read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("20 packets led to no order"), "{said}");
    let csv = std::fs::read_to_string(&samples).expect("samples");
    let rows: Vec<Vec<&str>> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 60);
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row[0], (n + 1).to_string());
        assert_eq!(row[1], payload(n as u64).len().to_string());
        let frame: u64 = row[2].parse().expect("a number");
        assert_eq!(frame, payload(n as u64).len() as u64 + 42);
        assert_eq!(row[4].is_empty(), n % 3 == 2, "packet {n}: {row:?}");
        if let (Ok(n1), Ok(one_one)) = (row[4].parse::<f64>(), row[5].parse::<f64>()) {
            let wire = 6.4 * (frame as f64 / 8.0).ceil();
            assert!((one_one - n1 - wire).abs() < 0.06, "{row:?}");
        }
    }
}

/// The port that it says it listens on.
fn listening(player: &mut Guard) -> u16 {
    let stderr = player.0.stderr.as_mut().expect("piped");
    let (mut line, mut byte) = (Vec::new(), [0]);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && stderr.read(&mut byte).is_ok_and(|n| n == 1) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).expect("text");
    let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
    port.unwrap_or_else(|| panic!("no port in {line:?}"))
}

#[test]
fn what_cannot_be_played_is_said_with_its_exit_code() {
    let folder = Folder::new("play-errors");
    let group = Group::join(50);
    let code = |args: &[&str]| {
        let output = run(args);
        (output.status.code().unwrap_or(-1), text(&output.stderr))
    };

    let (status, said) = code(&["play", "/nowhere.pcap"]);
    assert!(status == 3 && said.contains("/nowhere.pcap"), "{status} {said}");

    let whole = capture(
        &folder,
        "whole.pcap",
        &[(0, group.address, payload(3)), (9, group.address, payload(4))],
    );
    let bytes = std::fs::read(&whole).expect("just written");
    let cut = folder.file("cut.pcap", &bytes[..bytes.len() - 3]);
    let (status, said) = code(&["play", path(&cut)]);
    assert!(status == 1 && said.contains("cut.pcap"), "{status} {said}");
    assert_eq!(group.take(1), [payload(3)], "what is whole is sent");

    let empty = capture(&folder, "empty.pcap", &[]);
    let (status, said) = code(&["play", &empty]);
    assert!(status == 1 && said.contains("nothing to play"), "{status} {said}");

    for (arguments, hint) in [
        (&["--pps", "0"][..], "above 0"),
        (&["--pps", "5", "--topspeed"], "cannot be used"),
        (&["--map", "239.1.1.1:1"], "FROM=TO"),
        (&["--samples", "x.csv"], "--one-at-a-time"),
    ] {
        let (status, said) = code(&[&["play", &whole], arguments].concat());
        assert!(
            status == 2 && said.contains(hint),
            "{arguments:?}: {status} {said}"
        );
    }
    let (status, said) = code(&["play", &whole, "--interface", "nosuch0"]);
    assert!(status == 3 && said.contains("nosuch0"), "{status} {said}");

    // Broadcast is never meant.
    let broadcast = SocketAddrV4::new(Ipv4Addr::BROADCAST, 67);
    let loud = capture(&folder, "loud.pcap", &[(0, broadcast, payload(1))]);
    let (status, said) = code(&["play", &loud]);
    assert!(status == 2 && said.contains("--map"), "{status} {said}");
}

#[test]
fn an_interrupted_player_says_what_it_sent() {
    let folder = Folder::new("play-stop");
    let group = Group::join(60);
    let file = capture(
        &folder,
        "long.pcap",
        &[
            (0, group.address, payload(1)),
            (3_600_000_000, group.address, payload(2)),
        ],
    );
    let mut player = tickwire();
    player
        .args(["play", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut player = Guard(player.spawn().expect("the program starts"));
    assert_eq!(group.take(1), [payload(1)]);
    // It has the whole of its hour's wait to hear it.
    signal("INT", player.0.id());
    let status = player.wait(PATIENCE).expect("it ends");
    let mut said = String::new();
    let stderr = player.0.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("1 packets were sent"), "{said}");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The scenario, tiny: every order over sockets and in memory is the naive rule's, and a wrong book fails the
/// run.
#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn the_cep_scenario_checks_every_order_and_fails_on_a_wrong_book() {
    let folder = Folder::new("lab-cep");
    let scenario = |set: &[&str], timeout_ms: u32| {
        let timeout = format!("load.timeout_ms={timeout_ms}");
        let out = folder.0.display().to_string();
        let mut args = vec![
            "lab",
            "run",
            "cep",
            "--quiet",
            "--out",
            &out,
            "--set",
            "run.samples=700",
            "--set",
            "run.warm_up=50",
            "--set",
            "run.repetitions=1",
            "--set",
            &timeout,
        ];
        args.extend(set.iter().flat_map(|set| ["--set", set]));
        let output = run(&args);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), said)
    };
    let (code, said) = scenario(&[], 4_000);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "Solarflare TCPDirect",
        "bare floor",
        "Latency against the entries",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = scenario(&["settings.fault=wrong-book"], 500);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("instead of"), "{said}");
    let recorded = captures("moex-asts/packets-2017.hex");
    let templates = specs("moex/templates-2017-03.xml");
    let capture = format!("settings.capture={}", recorded.display());
    let templates = format!("settings.templates={}", templates.display());
    let (code, said) = scenario(&[&capture, &templates, "run.samples=2000"], 4_000);
    assert_eq!(code, Some(0), "{said}");
    let title = "Every packet in memory until it is done with. Latency against the packet's frame, ns";
    assert!(said.contains(title), "{said}");
    let place = said.lines().find_map(|line| line.strip_prefix("results: "));
    let manifest = Path::new(place.expect("a folder")).join("manifest.json");
    let manifest = std::fs::read_to_string(&manifest).expect("it is there");
    let fact = "packets-2017.hex: 313 of 330 packets are of the order log, numbered anew and played 7 times";
    assert!(manifest.contains(fact), "{manifest}");
    let kept: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    for (name, roles) in [
        ("sockets, tickwire", ["driver", "trader"]),
        ("sockets, bare floor", ["driver", "floor"]),
    ] {
        let cases = kept["cases"].as_array().expect("cases");
        let case = cases
            .iter()
            .find(|case| case["name"] == name)
            .expect("it was run");
        waited(&case["repetitions"][0], &roles);
    }
}

/// The scenario, tiny: every feed is measured, the books end as the engines' own, and packets that never come
/// fail the run.
#[test]
fn the_gati_scenario_compares_the_books_of_every_feed() {
    let folder = Folder::new("lab-gati");
    // A machine of two cores whose governor can be changed: the steps are applied to it and taken back.
    let governors = ["0", "1"].map(|core| {
        let at = format!("host/sys/devices/system/cpu/cpu{core}/cpufreq");
        std::fs::create_dir_all(folder.0.join(&at)).expect("a folder");
        folder.file(&format!("{at}/scaling_governor"), "powersave\n")
    });
    folder.file("host/sys/devices/system/cpu/online", "0-1\n");
    let scenario = |fault: &str, tune: bool| {
        let fault = format!("settings.fault={fault}");
        let out = folder.0.display().to_string();
        let tune = format!("settings.tune={tune}");
        let legs = format!("settings.legs={}", fault == "settings.fault=none");
        let root = format!("settings.host_root={out}/host");
        let args = [
            "lab",
            "run",
            "gati",
            "--set",
            &tune,
            "--set",
            &root,
            "--quiet",
            "--out",
            &out,
            "--set",
            "run.samples=6000",
            "--set",
            "run.repetitions=1",
            "--set",
            "settings.rate=2000",
            "--set",
            "settings.symbols=45",
            "--set",
            &fault,
            "--set",
            &legs,
        ];
        let output = run(&args);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), said)
    };
    let (code, said) = scenario("none", true);
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "all feeds",
        "1,563,686",
        // Books and feeds of two set-ups and of the legs, which the kernel's stamps were in, and the settings
        // taken back.
        "Checks: all 8 held",
        "legs, 1 default: all feeds",
        "in: kernel to packet",
        "Set-up '3 turbo off'",
        "`tickwire host tune` for governor: exit status: 0",
        "all feeds, 4 governor performance",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for governor in &governors {
        let now = std::fs::read_to_string(governor).expect("it is there");
        assert_eq!(now.trim(), "powersave", "taken back");
    }
    let (code, said) = scenario("lose-packets", false);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("sides of books differ"), "{said}");
}
