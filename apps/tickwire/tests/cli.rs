//! Wrong input: one clear sentence, the right exit code.

#[allow(dead_code, reason = "the build script's own entry")]
#[path = "../build.rs"]
mod build;
mod common;

use common::{Folder, free_ports, run, text, tickwire};
use std::process::Output;
use tickwire_market::Nanos;
use tickwire_runtime::capture::{LinkType, PcapWriter};

/// Exit code and the sentence.
fn failed(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

#[test]
fn a_bad_configuration_names_file_line_and_what_is_allowed() {
    let folder = Folder::new("config");
    let cases = [
        ("[exchange]\nrate = 0\n", "line 2", "outside 1..=5000000"),
        ("[trader]\nwait = \"sleep\"\n", "line 2", "unknown variant"),
        ("[trader]\nlott = 5\n", "line 2", "unknown field"),
        ("[feed\n", "line 1", "expected"),
        ("[trader]\nlot = 2000\n", "both.toml", "max_order_qty"),
    ];
    for (content, place, what) in cases {
        let file = folder.file("both.toml", content);
        for command in [vec!["config"], vec!["trade", "-c"], vec!["exchange", "-c"]] {
            let mut args = command.clone();
            args.push(file.to_str().unwrap());
            let (code, said) = failed(&run(&args));
            assert_eq!(code, 2, "{said}");
            assert!(
                said.contains(place) && said.contains(what) && said.contains("both.toml"),
                "{said}"
            );
        }
    }
    let (code, said) = failed(&run(&["config", "/nowhere/at/all.toml"]));
    assert!(
        code == 2 && said.contains("cannot read /nowhere/at/all.toml"),
        "{said}"
    );
}

#[test]
fn a_number_of_cores_that_is_none_is_refused_before_anything_begins() {
    for wrong in ["0", "-1", "all", ""] {
        let output = tickwire().arg("config").env("TICKWIRE_CORES", wrong).output();
        let (code, said) = failed(&output.expect("the program starts"));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(&format!("TICKWIRE_CORES is {wrong}: ")), "{said}");
    }
}

#[test]
fn memory_comes_at_once_or_at_the_first_touch_and_nothing_else_is_understood() {
    for wrong in ["2", "no", ""] {
        let output = tickwire().arg("config").env("TICKWIRE_PREFAULT", wrong).output();
        let (code, said) = failed(&output.expect("the program starts"));
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains(&format!("TICKWIRE_PREFAULT is {wrong}: ")),
            "{said}"
        );
    }
    for right in ["0", "1"] {
        let output = tickwire().arg("config").env("TICKWIRE_PREFAULT", right).output();
        assert!(output.expect("the program starts").status.success());
    }
}

#[test]
fn the_printed_configuration_reads_back() {
    let folder = Folder::new("roundtrip");
    let printed = run(&["config"]);
    assert!(printed.status.success());
    let file = folder.file("printed.toml", &printed.stdout);
    assert_eq!(run(&["config", file.to_str().unwrap()]).stdout, printed.stdout);
    let example = tickwire_testdata::workspace().join("examples/demo.toml");
    assert!(run(&["config", example.to_str().unwrap()]).status.success());
}

#[test]
fn recordings_that_cannot_be_read_say_why() {
    let folder = Folder::new("recordings");
    let day = folder.0.join("day.pcap");
    let mut pcap = PcapWriter::create(&day, LinkType::ETHERNET).unwrap();
    let address = |text: &str| text.parse().unwrap();
    for vector in tickwire_testdata::vectors("moldudp64") {
        pcap.write_udp(
            Nanos(1),
            address("10.0.0.1:1"),
            address("239.0.0.1:2"),
            &vector.bytes,
        )
        .unwrap();
    }
    pcap.finish().unwrap();
    let whole = std::fs::read(day).unwrap();
    let cut = folder.file("cut.pcap", &whole[..whole.len() - 7]);
    let noise = folder.file("noise.bin", [0x55; 300]);
    let empty = folder.file("empty.pcap", b"");
    for command in ["replay", "decode"] {
        let (code, said) = failed(&run(&[command, cut.to_str().unwrap()]));
        assert!(
            code == 1 && said.contains("cut.pcap") && said.contains("byte"),
            "{code} {said}"
        );
        let (code, said) = failed(&run(&[command, noise.to_str().unwrap()]));
        assert!(code == 1 && said.contains("noise.bin"), "{code} {said}");
        let (code, said) = failed(&run(&[command, empty.to_str().unwrap()]));
        assert!(code != 0 && said.contains("empty.pcap"), "{code} {said}");
        let (code, said) = failed(&run(&[command, "/nowhere/x.pcap"]));
        assert!(code == 3 && said.contains("/nowhere/x.pcap"), "{code} {said}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let folder = Folder::new("port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let [a, b, r, s] = free_ports();
    let file = folder.file(
        "port.toml",
        format!(
            "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\n\
             live = {{ a = \"239.192.77.1:{a}\", b = \"239.192.77.2:{b}\" }}\n\
             requests = \"127.0.0.1:{r}\"\nsnapshot_server = \"127.0.0.1:{s}\"\n[order_entry]\naddress = \"127.0.0.1:{port}\"\n"
        ),
    );
    let (code, said) = failed(&run(&["exchange", "-c", file.to_str().unwrap()]));
    assert!(
        code == 3 && said.contains(&format!("port {port}")) && said.contains("in use"),
        "{code} {said}"
    );
}

#[test]
fn an_exchange_that_is_not_there_and_an_interface_that_is_not_there_are_named() {
    let folder = Folder::new("absent");
    let [orders] = free_ports();
    let file = folder.file(
        "absent.toml",
        format!("[order_entry]\naddress = \"127.0.0.1:{orders}\"\n"),
    );
    let (code, said) = failed(&run(&["trade", "-c", file.to_str().unwrap()]));
    assert!(
        code == 3 && said.contains(&orders.to_string()) && said.contains("refused"),
        "{code} {said}"
    );
    // By name as by address; who has neither is told what there is.
    let named = |name: &str| {
        let channel = "[[feed.channel]]\nname = \"1\"\nlive = { a = \"239.192.77.1:26400\" }\n";
        let text = format!("[[feed]]\nvenue = \"nasdaq\"\ninterface = \"{name}\"\n{channel}");
        folder.file(
            "named.toml",
            format!("{text}[order_entry]\naddress = \"127.0.0.1:{orders}\"\n"),
        )
    };
    let (code, said) = failed(&run(&["trade", "-c", named("lo").to_str().unwrap()]));
    assert!(
        code == 3 && said.contains("refused"),
        "the groups are joined: {code} {said}"
    );
    let printed = text(&run(&["config", named("lo").to_str().unwrap()]).stdout);
    assert!(printed.contains("interface = \"lo\""), "{printed}");
    for command in ["trade", "exchange", "feed"] {
        let (code, said) = failed(&run(&[command, "-c", named("eth99").to_str().unwrap()]));
        assert!(
            code == 3 && said.contains("eth99") && said.contains("lo (127.0.0.1)"),
            "{code} {said}"
        );
    }
    let (code, said) = failed(&run(&["config", named("127.0.0.300").to_str().unwrap()]));
    assert!(
        code == 2 && said.contains("line 3") && said.contains("neither the name"),
        "{code} {said}"
    );
    let file = folder.file("interface.toml", "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"203.0.113.9\"\n[[feed.channel]]\nname = \"1\"\nlive = { a = \"239.192.77.1:26400\" }\n");
    for command in ["trade", "exchange"] {
        let (code, said) = failed(&run(&[command, "-c", file.to_str().unwrap()]));
        assert!(
            code == 3 && said.contains("203.0.113.9") && said.contains("interface"),
            "{code} {said}"
        );
    }
}

#[test]
fn risk_tells_wrong_files_apart_by_exit_code_and_names_the_line() {
    let folder = Folder::new("risk");
    let example = |name: &str| tickwire_testdata::workspace().join("examples/risk").join(name);
    let portfolio = example("portfolio.toml");
    let risk = |config: &std::path::Path, fills: &std::path::Path| {
        let (config, fills) = (config.to_str().unwrap(), fills.to_str().unwrap());
        run(&["risk", "-c", config, "--fills", fills])
    };
    let shown = risk(&portfolio, &example("fills.csv"));
    assert!(shown.status.success() && text(&shown.stdout).contains("Limits in use"));
    let wrong = folder.file(
        "fills.csv",
        "time,symbol,side,quantity,price\n2026-11-20T15:00:00Z,ESZ6,buy,0,1\n",
    );
    let (code, said) = failed(&risk(&portfolio, &wrong));
    assert!(
        code == 1 && said.contains("fills.csv: line 2, quantity"),
        "{code} {said}"
    );
    let wrong = folder.file("portfolio.toml", "title = \"x\"\nrate = true\n");
    let (code, said) = failed(&risk(&wrong, &example("fills.csv")));
    assert!(
        code == 2 && said.contains("portfolio.toml") && said.contains("line 2"),
        "{code} {said}"
    );
    let (code, said) = failed(&risk(&portfolio, "/nowhere/fills.csv".as_ref()));
    assert!(
        code == 3 && said.contains("cannot read /nowhere/fills.csv"),
        "{code} {said}"
    );
}

#[test]
fn help_is_complete() {
    let help = text(&run(&["--help"]).stdout);
    for command in [
        "demo",
        "exchange",
        "trade",
        "replay",
        "decode",
        "risk",
        "config",
        "counters",
        "bench",
        "book",
        "top",
        "stats",
        "latency",
        "check",
        "subscribe",
        "unsubscribe",
        "subscriptions",
        "Exit codes",
    ] {
        assert!(help.contains(command), "{command} is not in the help");
    }
}

#[test]
fn a_slip_of_the_finger_is_answered_with_the_name_that_was_meant() {
    let (code, said) = failed(&run(&["lab", "run", "quadr"]));
    assert!(code == 2 && said.contains("did you mean quadra"), "{code} {said}");
    let (code, said) = failed(&run(&["lab", "run", "zzzzzzzz"]));
    assert!(code == 2 && !said.contains("did you mean"), "{code} {said}");
}

#[test]
fn the_commit_is_read_from_whatever_form_a_repository_has_and_is_missed_without_harm() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let of = |name: &str, files: &[(&str, String)]| {
        let folder = Folder::new(&format!("commit-{name}"));
        for (path, text) in files {
            let path = folder.0.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        let mut read = Vec::new();
        let found = build::commit_of(&folder.0, &mut read);
        assert!(read.iter().all(|path| path.exists()), "{name}: {read:?}");
        found
    };
    let short = Some("0123456789ab".to_owned());
    let branch = || (".git/HEAD", "ref: refs/heads/main\n".to_owned());
    assert_eq!(
        of(
            "loose",
            &[branch(), (".git/refs/heads/main", format!("{hash}\n"))]
        ),
        short
    );
    let packed = format!(
        "# pack-refs with: peeled\n{} refs/heads/other\n{hash} refs/heads/main\n",
        "f".repeat(40)
    );
    assert_eq!(of("packed", &[branch(), (".git/packed-refs", packed)]), short);
    assert_eq!(of("detached", &[(".git/HEAD", format!("{hash}\n"))]), short);
    let work_tree = [
        (".git", "gitdir: own/worktrees/w\n".to_owned()),
        ("own/worktrees/w/HEAD", "ref: refs/heads/w\n".to_owned()),
        ("own/worktrees/w/commondir", "../..\n".to_owned()),
        ("own/refs/heads/w", hash.to_owned()),
    ];
    assert_eq!(of("work-tree", &work_tree), short);
    assert_eq!(of("archive", &[("README.md", String::new())]), None);
    assert_eq!(of("new", &[branch()]), None);
    assert_eq!(of("damaged", &[(".git/HEAD", "é and no hash".to_owned())]), None);
    let said = text(&run(&["--version"]).stdout);
    assert!(
        said.starts_with(&format!("tickwire {}", env!("CARGO_PKG_VERSION"))),
        "{said}"
    );
}

/// Without descriptors the list of interfaces cannot be read: that is said, and not that there is no
/// interface.
#[test]
fn a_limit_of_open_files_is_named() {
    let program = env!("CARGO_BIN_EXE_tickwire");
    let mut named = 0;
    for limit in 5..=12 {
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!(
                "ulimit -n {limit}; exec {program} trade -c examples/demo.toml"
            ))
            .current_dir(tickwire_testdata::workspace())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("sh runs");
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{limit}: {said}");
        assert!(
            !said.contains("no network interface") && !said.contains("panicked"),
            "{limit}: {said}"
        );
        // With enough of them there is only nobody who listens.
        let is_named = said.contains("os error 24");
        assert!(is_named || said.contains("connection refused"), "{limit}: {said}");
        named += usize::from(is_named);
    }
    assert!(named > 0, "every limit was enough");
}
