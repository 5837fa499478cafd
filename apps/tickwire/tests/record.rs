//! `tickwire record`: what is recorded is what was sent, whatever becomes of the process and of the disk.

mod common;
#[path = "common/namespaces.rs"]
mod namespaces;
#[path = "common/onload.rs"]
mod onload;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Guard, free_ports, lives, run, signal, text, tickwire};
use namespaces::{namespaces, within};
use serde_json::Value;
use tickwire_runtime::capture::{CaptureReader, udp};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::udp::MulticastSender;
use tickwire_testdata::{not_tested, workspace};

const PATIENCE: Duration = Duration::from_secs(60);

/// A group of this process and test.
fn group(test: u8) -> SocketAddrV4 {
    let [_, _, c, d] = std::process::id().to_be_bytes();
    let [port] = free_ports();
    SocketAddrV4::new(Ipv4Addr::new(239, 100 + test, c, d), port)
}

fn sender(group: SocketAddrV4) -> MulticastSender {
    MulticastSender::open(group, &Interface::loopback().expect("loopback"), 1).expect("a sender")
}

/// `tickwire record` that has begun. Killed when it goes.
struct Recorder {
    process: Guard,
    errors: std::thread::JoinHandle<String>,
}

impl Recorder {
    fn start(args: &[&str]) -> Recorder {
        let mut command = tickwire();
        command.arg("record").args(args);
        Recorder::of(command)
    }

    fn of(mut command: Command) -> Recorder {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child: Child = child.expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line.expect("text");
            said += &format!("{line}\n");
            if line.starts_with("recording ") {
                break;
            }
        }
        assert!(said.contains("recording "), "{said}");
        let errors = std::thread::spawn(move || {
            lines.for_each(|line| said += &format!("{}\n", line.expect("text")));
            said
        });
        Recorder {
            process: Guard(child),
            errors,
        }
    }

    /// Its exit code, what it printed and what it complained about.
    fn end(mut self) -> (Option<i32>, String, String) {
        let status = self.process.wait(PATIENCE).expect("it ends");
        let mut said = String::new();
        let mut out = self.process.0.stdout.take().expect("piped");
        std::io::Read::read_to_string(&mut out, &mut said).expect("text");
        (status.code(), said, self.errors.join().expect("read"))
    }
}

/// Files of a recording in their order, those that are compressed as well.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".pcapng"))
        .filter(|path| {
            !path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'))
        })
        .collect();
    all.sort();
    all
}

/// Payloads of files, as far as they can be read.
fn payloads(files: &[PathBuf]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for file in files {
        // The recorder has just made it.
        if std::fs::metadata(file).expect("there").len() == 0 {
            continue;
        }
        let mut reader = CaptureReader::open(file).expect("a capture");
        while let Ok(Some(packet)) = reader.next_packet() {
            all.push(
                udp(packet.link, packet.bytes)
                    .expect("a datagram")
                    .payload
                    .to_vec(),
            );
        }
    }
    all
}

/// Waits until something holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn index(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("capture.index.jsonl")).expect("an index");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn a_market_that_is_played_is_recorded_and_gives_the_same_books() {
    let folder = Folder::new("record-market");
    let at = |name: &str| folder.0.join(name).display().to_string();
    let config = workspace().join("examples/nasdaq.toml").display().to_string();
    let made = run(&[
        "exchange",
        "-c",
        &config,
        "--write-capture",
        &at("day.pcap"),
        "--packets",
        "1500",
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    // The same groups on ports of this test's own.
    let toml = std::fs::read_to_string(&config).expect("the example");
    let mut groups: Vec<SocketAddrV4> = Vec::new();
    let mut reader = CaptureReader::open(at("day.pcap")).expect("a capture");
    while let Some(packet) = reader.next_packet().expect("whole") {
        let to = udp(packet.link, packet.bytes).expect("a datagram").destination;
        let SocketAddr::V4(to) = to else {
            panic!("IPv6: {to}")
        };
        if !groups.contains(&to) {
            groups.push(to);
        }
    }
    let (mut own, mut maps, mut named) = (toml, Vec::new(), Vec::new());
    for (n, theirs) in groups.iter().enumerate() {
        let other = group(n as u8 + 1);
        own = own.replace(&theirs.to_string(), &other.to_string());
        maps.push(format!("{theirs}={other}"));
        named.push(other.to_string());
    }
    std::fs::write(at("own.toml"), own).expect("written");
    let out = at("out");
    let mut args: Vec<&str> = named.iter().map(String::as_str).collect();
    args.extend(["--out", &out, "--json", "--compress"]);
    let recorder = Recorder::start(&args);
    let day = at("day.pcap");
    let mut play = vec!["play", "--pps", "2000", &day];
    maps.iter().for_each(|map| play.extend(["--map", map]));
    let played = run(&play);
    assert!(played.status.success(), "{}", text(&played.stderr));
    signal("INT", recorder.process.0.id());
    let (code, said, errors) = recorder.end();
    assert_eq!(code, Some(130), "{said}{errors}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["lost"], 0, "{said}");
    let recorded = files(&folder.0.join("out"));
    assert_eq!(recorded.len(), 1);
    assert!(recorded[0].to_string_lossy().ends_with(".pcapng.zst"));
    // Which of two lines is heard first is up to the system, and a sender that changes its core may overtake
    // itself.
    let [heard, sent] = [&recorded[..], &[folder.0.join("day.pcap")]].map(|files| {
        let mut all = payloads(files);
        all.sort();
        all
    });
    assert_eq!(heard.len(), sent.len());
    assert!(heard == sent, "the packets recorded are not those that were sent");
    let books = |config: &str, capture: &str| {
        let replayed = run(&["replay", "-c", config, capture, "--json"]);
        let json: Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
        let feed = &json["feeds"][0];
        (
            feed["state_hash"].clone(),
            feed["state"].clone(),
            feed["counters"]["messages"].clone(),
        )
    };
    let recorded = recorded[0].display().to_string();
    assert_eq!(books(&at("own.toml"), &recorded), books(&config, &day));
    let inspected = run(&["inspect", &recorded, "--json"]);
    let inspected: Value = serde_json::from_slice(&inspected.stdout).expect("JSON");
    assert_eq!(inspected["channels"][0]["protocol"], "itch50");
}

/// A recorder wants stamps and drop counts of every socket; under Onload nobody has the second.
#[test]
fn a_recorder_whose_sockets_are_onloads_records_and_says_that_nobody_counts_drops() {
    let folder = Folder::new("record-onload");
    let stand_in = match onload::StandIn::new(&folder.0) {
        Ok(stand_in) => stand_in,
        Err(why) => return not_tested(&why),
    };
    let out = folder.0.join("out");
    let group = group(12);
    let mut command = tickwire();
    command.args(["record", &group.to_string(), "--out"]).arg(&out);
    command.args(["--packets", "100"]);
    stand_in.before(&mut command);
    let recorder = Recorder::of(command);
    let sender = sender(group);
    (0..100_u32).for_each(|n| sender.send(&n.to_le_bytes()).expect("sent"));
    let (code, said, errors) = recorder.end();
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(
        errors.contains("does not say how many datagrams it drops"),
        "{errors}"
    );
    assert_eq!(payloads(&files(&out)).len(), 100);
    let refused: Vec<String> = stand_in.refused().into_iter().collect();
    assert_eq!(refused, ["SO_MEMINFO", "SO_RXQ_OVFL"]);
}

#[test]
fn a_recorder_that_is_killed_leaves_a_file_whole_up_to_its_last_block_and_the_next_one_indexes_it() {
    let folder = Folder::new("record-kill");
    let out = folder.0.join("out");
    let group = group(10);
    let (address, path) = (group.to_string(), out.display().to_string());
    let recorder = Recorder::start(&[&address, "--out", &path]);
    let sender = sender(group);
    let numbers = |from: u32| (from..from + 200).for_each(|n| sender.send(&n.to_le_bytes()).expect("sent"));
    numbers(0);
    wait_for("it is on the disk", || payloads(&files(&out)).len() == 200);
    // In the middle of more.
    numbers(200);
    signal("KILL", recorder.process.0.id());
    drop(recorder);
    let left = files(&out);
    let there = payloads(&left);
    assert!(there.len() >= 200);
    assert!(
        there
            .iter()
            .zip(0_u32..)
            .all(|(payload, n)| *payload == n.to_le_bytes())
    );
    // Cut in the middle of a packet, as a power failure may do: the next one goes on beside it.
    let len = std::fs::metadata(&left[0]).expect("a file").len();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&left[0])
        .expect("ours");
    file.set_len(len - 3).expect("cut");
    let again = Recorder::start(&[&address, "--out", &path, "--compress", "--packets", "200"]);
    // Another one beside it is refused.
    let second = run(&["record", &address, "--out", &path, "--seconds", "1"]);
    assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("another recorder"));
    numbers(0);
    let (code, said, errors) = again.end();
    assert_eq!(code, Some(0), "{said}{errors}");
    let files = files(&out);
    let index = index(&out);
    let whole: Vec<_> = index.iter().map(|line| line["whole"].as_bool()).collect();
    assert_eq!(whole, [Some(false), Some(true)]);
    for (line, file) in index.iter().zip(&files) {
        assert_eq!(
            line["file"],
            file.file_name().expect("a name").to_string_lossy().as_ref()
        );
        assert_eq!(line["packets"], payloads(std::slice::from_ref(file)).len());
        assert_eq!(line["groups"][0]["group"], address.as_str());
        let data = std::fs::metadata(file).expect("there");
        assert_eq!(
            (line["stored_bytes"].as_u64(), data.permissions().mode() & 0o777),
            (Some(data.len()), 0o600)
        );
    }
    assert_eq!(index[0]["packets"], there.len() - 1);
}

#[test]
fn a_disk_that_is_full_is_waited_for() {
    let folder = Folder::new("record-full");
    let disk = folder.0.join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = format!("mount -t tmpfs -o size=4m,mode=700 tmpfs {}", disk.display());
    let may = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    if !may.is_ok_and(|done| done.status.success()) {
        return not_tested(
            "a mount namespace with a small tmpfs needs root (or CAP_SYS_ADMIN) and unshare(1)",
        );
    }
    let group = group(20);
    let program = tickwire();
    let filler = disk.join("filler");
    let script = format!(
        "{mount} && head -c 3m /dev/zero > {} && exec {} record {group} --out {} --json",
        filler.display(),
        program.get_program().to_string_lossy(),
        disk.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]);
    let recorder = Recorder::of(command);
    let pid = recorder.process.0.id();
    let sees = |path: &Path| {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        root.join(path.strip_prefix("/").expect("absolute"))
    };
    let (sender, mut sent) = (sender(group), 0_u32);
    let mut send = |count: u32| {
        for _ in 0..count {
            let mut payload = sent.to_le_bytes().to_vec();
            payload.resize(1_000, 0);
            sender.send(&payload).expect("sent");
            sent += 1;
        }
    };
    // More than 1 MiB, a few at a time: what the smallest receive buffer holds.
    for _ in 0..25 {
        send(80);
        std::thread::sleep(Duration::from_millis(30));
    }
    let before = payloads(&files(&sees(&disk)));
    assert!(before.len() < 1_500 && lives(pid), "{}", before.len());
    std::fs::remove_file(sees(&filler)).expect("removed");
    let kept = sees(&disk);
    wait_for("what waited is written", || {
        payloads(&files(&kept)).len() == 2_000
    });
    send(50);
    wait_for("it goes on", || payloads(&files(&kept)).len() == 2_050);
    let there = payloads(&files(&kept));
    assert!(
        there
            .iter()
            .zip(0_u32..)
            .all(|(payload, n)| payload[..4] == n.to_le_bytes())
    );
    signal("TERM", pid);
    let (code, said, errors) = recorder.end();
    assert_eq!(code, Some(130), "{said}{errors}");
    assert!(
        errors.contains("cannot write: No space left") && errors.contains("takes the recording again"),
        "{errors}"
    );
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&said["packets"], &said["lost"]),
        (&Value::from(2_050), &Value::from(0))
    );
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = Folder::new("record-refused");
    let out = folder.0.join("out").display().to_string();
    for (args, code, says) in [
        (&["record", "10.0.0.1:5000", "--out", &out][..], 3, "10.0.0.1"),
        (
            &["record", "239.1.1.1:5000", "--out", &out, "--interface", "eth99"],
            3,
            "eth99",
        ),
        (&["record", "--out", &out], 2, "GROUP:PORT"),
        (
            &["record", "239.1.1.1:5000", "--out", &out, "--name", "../x"],
            2,
            "letters",
        ),
        (&["record", "239.1.1.1:5000", "--out", "/proc/none"], 3, "/proc"),
        (
            &["record", "-c", "/nowhere.toml", "--out", &out],
            2,
            "/nowhere.toml",
        ),
    ] {
        let output = run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

/// What a recorder in one namespace hears of groups that are sent to in another.
struct FromAfar {
    recorder: Recorder,
    pair: VethPair,
    groups: [SocketAddrV4; 2],
}

impl FromAfar {
    /// By AF_XDP, with room for 512 frames in a ring.
    fn start(out: &Path) -> Option<FromAfar> {
        let pair = namespaces("twrec")?;
        let groups = [group(50), group(51)];
        let mut command = tickwire();
        command.args([
            "record",
            "--backend",
            "xdp",
            "--interface",
            "veth0",
            "--buffer",
            "1",
            "--json",
        ]);
        command
            .args(groups.map(|group| group.to_string()))
            .arg("--out")
            .arg(out);
        let recorder = Recorder::of(within(&pair, 1, &command));
        Some(FromAfar {
            recorder,
            pair,
            groups,
        })
    }

    /// Sends from the other end; the address it is sent from.
    fn send(&self, send: impl FnOnce([&MulticastSender; 2]) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.pair.enter(0).expect("a namespace");
                let veth = Interface::find("veth0").expect("an end of the pair");
                let open = |group| MulticastSender::open(group, &veth, 1).expect("a sender");
                let [one, two] = self.groups.map(open);
                send([&one, &two]);
            });
        });
    }
}

/// Payloads by group and the address that sent them.
fn by_group(files: &[PathBuf]) -> std::collections::BTreeMap<SocketAddr, Vec<(Vec<u8>, std::net::IpAddr)>> {
    let mut all = std::collections::BTreeMap::<_, Vec<_>>::new();
    for file in files {
        let mut reader = CaptureReader::open(file).expect("a capture");
        let mut last = 0;
        while let Ok(Some(packet)) = reader.next_packet() {
            let time = packet.time.expect("a time").0;
            // Within a second of each other, and of this day.
            assert!(
                last == 0 || time.abs_diff(last) < 600_000_000_000,
                "{time} {last}"
            );
            last = time;
            let datagram = udp(packet.link, packet.bytes).expect("a datagram");
            let of = (datagram.payload.to_vec(), datagram.source.ip());
            all.entry(datagram.destination).or_default().push(of);
        }
    }
    all
}

/// By AF_XDP as by sockets: every datagram, those that are too short or too long for a frame as well, with
/// who sent it.
#[test]
fn what_is_recorded_by_af_xdp_is_what_was_sent() {
    let folder = Folder::new("record-xdp");
    let out = folder.0.join("out");
    let Some(afar) = FromAfar::start(&out) else { return };
    let payload = |n: u32| {
        let len = [8, 20, 700, 1_400, 5, 3_000][n as usize % 6];
        let mut bytes = vec![n as u8; len];
        bytes[..4].copy_from_slice(&n.to_le_bytes());
        bytes
    };
    afar.send(|[one, two]| {
        for n in 0..240 {
            let to = if n % 4 == 0 { two } else { one };
            to.send(&payload(n)).expect("sent");
        }
    });
    wait_for("everything is on the disk", || {
        payloads(&files(&out)).len() == 240
    });
    signal("TERM", afar.recorder.process.0.id());
    let from = std::net::IpAddr::from(afar.pair.address(0));
    let (code, said, errors) = afar.recorder.end();
    assert_eq!(code, Some(130), "{said}{errors}");
    assert!(
        errors.contains("receiving 2 groups on veth0 by AF_XDP"),
        "{errors}"
    );
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&said["packets"], &said["lost"]),
        (&Value::from(240), &Value::from(0))
    );
    let recorded = by_group(&files(&out));
    for (at, group) in afar.groups.iter().enumerate() {
        let mut expected: Vec<_> = (0..240_u32)
            .filter(|n| usize::from(n % 4 == 0) == at)
            .map(|n| (payload(n), from))
            .collect();
        let mut have = recorded[&SocketAddr::V4(*group)].clone();
        // Frames and sockets are two ways, read one after the other.
        have.sort();
        expected.sort();
        assert!(have == expected, "{group}");
    }
    std::mem::drop(afar.pair);
}

/// A recorder that stands still loses what its rings have no room for, and says of every group how much.
#[test]
fn what_af_xdp_had_no_room_for_is_counted_by_group() {
    let folder = Folder::new("record-xdp-lost");
    let out = folder.0.join("out");
    let Some(afar) = FromAfar::start(&out) else { return };
    afar.send(|[one, two]| {
        one.send(&[0; 64]).expect("sent");
        two.send(&[0; 64]).expect("sent");
    });
    wait_for("it hears both", || payloads(&files(&out)).len() == 2);
    let pid = afar.recorder.process.0.id();
    signal("STOP", pid);
    afar.send(|[one, two]| {
        for n in 0..3_000_u32 {
            one.send(&[n.to_le_bytes(); 16].concat()).expect("sent");
            if n % 10 == 0 {
                two.send(&[n.to_le_bytes(); 16].concat()).expect("sent");
            }
        }
    });
    signal("CONT", pid);
    signal("TERM", pid);
    let (code, said, errors) = afar.recorder.end();
    assert_eq!(code, Some(1), "{said}{errors}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let of = |at: usize, what: &str| said["groups"][at][what].as_u64().expect("a count");
    for (at, sent) in [3_001, 301].into_iter().enumerate() {
        assert_eq!(of(at, "packets") + of(at, "lost"), sent, "{said}");
        assert!(of(at, "packets") > 1 && of(at, "lost") > 0, "{said}");
    }
    let index = index(&out);
    let lost: u64 = index
        .iter()
        .map(|line| line["groups"][0]["lost"].as_u64().expect("a count"))
        .sum();
    assert!(lost <= of(0, "lost"), "{index:?}");
    std::mem::drop(afar.pair);
}

/// What tshark reads of a recording is what was sent, where it is installed.
#[test]
fn tshark_reads_a_recording() {
    if !Command::new("tshark")
        .arg("-v")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return not_tested("tshark is not installed");
    }
    let folder = Folder::new("record-tshark");
    let out = folder.0.join("out");
    let group = group(30);
    let recorder = Recorder::start(&[
        &group.to_string(),
        "--out",
        &out.display().to_string(),
        "--packets",
        "20",
    ]);
    let sender = sender(group);
    (0..20_u8).for_each(|n| sender.send(&[n; 5]).expect("sent"));
    assert_eq!(recorder.end().0, Some(0));
    let file = files(&out)[0].display().to_string();
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "udp.dstport",
        "-e",
        "data.data",
    ];
    let read = Command::new("tshark")
        .args(["-r", &file])
        .args(fields)
        .output()
        .expect("it runs");
    let said = text(&read.stdout);
    let mut reader = CaptureReader::open(&file).expect("a capture");
    for (line, n) in said.lines().zip(0_u8..) {
        let fields: Vec<&str> = line.split('\t').collect();
        let time = reader
            .next_packet()
            .expect("whole")
            .expect("a packet")
            .time
            .expect("a time")
            .0;
        let expected = format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        assert_eq!(
            (fields[0], fields[1]),
            (expected.as_str(), group.port().to_string().as_str())
        );
        assert_eq!(fields[2].replace(':', ""), format!("{n:02x}").repeat(5));
    }
    assert_eq!(said.lines().count(), 20);
}
