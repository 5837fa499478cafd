//! `tickwire fix initiator` and `acceptor` as processes: scripts, the prompt, hosts, threads, exit codes.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

mod common;
#[path = "../../../crates/fix/examples/order.rs"]
mod order;
use common::{Acceptor, Folder, text, tickwire};

const PATIENCE: Duration = Duration::from_secs(60);

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/fix")
        .join(name);
    std::fs::read_to_string(path).expect("an example")
}

/// A configuration of the examples that listens at a free port.
fn acceptor_config(dir: &Folder, more: &str) -> PathBuf {
    let text = example("acceptor.cfg").replace("SocketAcceptPort=9878", "SocketAcceptPort=0");
    dir.file("acceptor.cfg", text + more)
}

fn initiator_config(dir: &Folder, port: u16, more: &str) -> PathBuf {
    let text = example("initiator.cfg").replace("9878", &port.to_string());
    dir.file("initiator.cfg", text + more)
}

fn initiate(config: &Path, script: &Path) -> Output {
    tickwire()
        .args(["fix", "initiator", "-c"])
        .arg(config)
        .arg("--script")
        .arg(script)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn both(output: &Output) -> String {
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_examples_work_out_of_the_box() {
    let dir = Folder::new("fix-examples");
    let fills = dir.file("fills.txt", example("fills.txt"));
    let config = acceptor_config(
        &dir,
        "FileStorePath=store\nFileLogPath=log\nDropCopyFile=copy.log\n",
    );
    let mut acceptor = Acceptor::with(
        &config,
        &["--stats", "--script", fills.to_str().expect("a plain path")],
    );
    let config = initiator_config(&dir, acceptor.port, "");
    let done = initiate(&config, &dir.file("orders.txt", example("orders.txt")));
    assert!(done.status.success(), "{}", both(&done));
    assert!(text(&done.stdout).contains("<- 8=FIX.4.4|9="), "{}", both(&done));
    let status = acceptor.process.wait(PATIENCE);
    assert!(
        status.is_some_and(|s| s.success()),
        "the acceptor's script failed"
    );
    logs_and_stores_are_shown(&dir);
}

fn logs_and_stores_are_shown(dir: &Folder) {
    let log = |file: &str, more: &[&str]| {
        let file = dir.0.join(file).display().to_string();
        let args: Vec<&str> = ["fix", "log", &file]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let done = common::run(&args);
        assert!(done.status.success(), "{}", both(&done));
        text(&done.stdout)
    };
    let messages = "log/FIX.4.4-VENUE-TRADER.messages.current.log";
    let all = log(messages, &[]);
    for part in [
        "TRADER -> VENUE #1 Logon",
        "VENUE -> TRADER #2 ExecutionReport",
        "39 OrdStatus              0 (new)",
    ] {
        assert!(all.contains(part), "{part:?} is not in {all}");
    }
    let orders = log(
        messages,
        &["--type", "D", "--raw", "--field", "Symbol=AAPL", "--seq", "2-3"],
    );
    assert_eq!(orders.lines().count(), 2, "{orders}");
    assert!(
        orders.contains("|11=first|") && orders.contains("|11=second|"),
        "{orders}"
    );
    let fills = log(
        "store/FIX.4.4-VENUE-TRADER.store",
        &["--json", "--field", "150=F"],
    );
    let fill: serde_json::Value = serde_json::from_str(&fills).expect("one JSON object");
    assert_eq!(
        (&fill["name"], &fill["seq"]),
        (&"ExecutionReport".into(), &3.into())
    );
    let copied = log("copy.log", &["--raw"]);
    assert!(copied.lines().count() >= 7, "3 orders and 4 reports: {copied}");
    assert!(
        !copied.contains("|35=A|") && !copied.contains("|35=0|"),
        "{copied}"
    );
    let events = std::fs::read_to_string(dir.0.join("log/FIX.4.4-VENUE-TRADER.event.current.log"));
    assert!(events.is_ok_and(|e| e.contains("TRADER logged on")));
    let missing = common::run(&["fix", "log", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn a_session_gets_copies_of_anothers_messages_once_it_is_there() {
    let dir = Folder::new("fix-drop-copy");
    let more =
        "DropCopySession=RISK\n\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=VENUE\nTargetCompID=RISK\n";
    let acceptor = Acceptor::start(&acceptor_config(&dir, more));
    let trader = initiator_config(&dir, acceptor.port, "");
    let order = "order buy 100 AAPL 187.25 A1\nexpect 35=D|11=A1\nlogout\nwait disconnect\n";
    let done = initiate(&trader, &dir.file("order.txt", order));
    assert!(done.status.success(), "{}", both(&done));

    // What was said before anybody listened: the order, and the same sent back.
    let text = std::fs::read_to_string(&trader).expect("a configuration");
    let risk = dir.file("risk.cfg", text.replace("=TRADER", "=RISK"));
    let copies = "expect 35=D|11=A1|55=AAPL|115=TRADER|49=VENUE\nexpect 35=D|11=A1|55=AAPL|115=VENUE|!43\n";
    let done = initiate(&risk, &dir.file("copies.txt", copies));
    assert!(done.status.success(), "{}", both(&done));
}

#[test]
fn a_drop_copy_to_nobody_is_a_mistake_of_the_file() {
    let dir = Folder::new("fix-drop-copy-wrong");
    let config = acceptor_config(&dir, "DropCopySession=NOBODY\n");
    let done = common::run(&["fix", "acceptor", "-c", &config.display().to_string()]);
    assert_eq!(done.status.code(), Some(2), "{}", both(&done));
    assert!(text(&done.stderr).contains("NOBODY"), "{}", both(&done));
}

#[test]
fn a_log_that_grows_is_followed() {
    let dir = Folder::new("fix-follow");
    let file = dir.file("log", "");
    let mut child = tickwire()
        .args(["fix", "log", "-f", "--raw", "--limit", "1"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let message = tickwire_fix::naive::encode(&[(35, b"A".to_vec()), (554, b"hidden".to_vec())]);
    std::thread::sleep(Duration::from_millis(50));
    let line = [&b"20261121-01:55:41 : "[..], &message[..], b"\n"].concat();
    std::fs::write(&file, line).expect("a file");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("piped"), &mut said).expect("text");
    assert!(common::Guard(child).wait(PATIENCE).is_some_and(|s| s.success()));
    assert!(said.contains("|554=***|"), "{said}");
}

/// Tiny: it checks its own answers; the figures of an unoptimised program say nothing.
#[test]
fn the_benchmark_has_every_order_answered_and_takes_no_memory() {
    let done = common::run(&[
        "fix", "bench", "--orders", "300", "--rounds", "2", "--wait", "block",
    ]);
    let said = both(&done);
    assert!(done.status.success(), "{said}");
    assert_eq!(said.matches(" 0 heap blocks after start-up").count(), 2, "{said}");
    assert!(said.contains("ns over no store"), "{said}");
}

#[test]
fn the_librarys_example_sends_an_order_and_shows_its_echo() {
    let dir = Folder::new("fix-library");
    let acceptor = Acceptor::start(&acceptor_config(&dir, ""));
    let seen = order::trade(&format!("127.0.0.1:{}", acceptor.port)).expect("a session");
    assert!(
        seen.len() == 1 && seen[0].contains("|35=D|") && seen[0].contains("|11=example|"),
        "{seen:?}"
    );
}

#[test]
fn a_host_that_takes_the_connection_but_no_logon_is_passed_over() {
    let dir = Folder::new("fix-hosts");
    let acceptor = Acceptor::start(&acceptor_config(&dir, ""));
    // It accepts and closes: connected is not logged on.
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let deaf_port = deaf.local_addr().expect("bound").port();
    std::thread::spawn(move || deaf.incoming().for_each(drop));
    let text = example("initiator.cfg").replacen("9878", &deaf_port.to_string(), 1);
    let text = text.replacen("9878", "1", 1); // nobody listens there
    let more = format!(
        "SocketConnectHost2=127.0.0.1\nSocketConnectPort2={}\n",
        acceptor.port
    );
    let config = dir.file("initiator.cfg", text + &more);
    let done = initiate(&config, &dir.file("script", "wait logon\n"));
    assert!(done.status.success(), "{}", both(&done));
    let warnings = common::text(&done.stderr);
    assert!(warnings.contains("trying 127.0.0.1:"), "{warnings}");
}

#[test]
fn a_script_that_meets_something_else_says_what_and_where() {
    let dir = Folder::new("fix-mismatch");
    let acceptor = Acceptor::start(&acceptor_config(&dir, ""));
    let config = initiator_config(&dir, acceptor.port, "");
    let script = dir.file(
        "script",
        "order buy 100 AAPL 1.5 x\nexpect 35=D|11=x|38=200|!44\n",
    );
    let done = initiate(&config, &script);
    let said = both(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    for part in [
        "script, line 2: expected !44|35=D|11=x|38=200",
        "38 is 100, not 200",
        "44 is there: 1.5",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let script = dir.file("script", "timeout 0.3\nwait logon\nexpect 35=8\n");
    let done = initiate(&config, &script);
    assert_eq!(done.status.code(), Some(1), "{}", both(&done));
    assert!(both(&done).contains("nothing came for 0.3 s"), "{}", both(&done));
}

#[test]
fn nobody_there_a_wrong_script_and_a_wrong_file_have_exit_codes_of_their_own() {
    let dir = Folder::new("fix-codes");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    let config = initiator_config(&dir, port, "");
    let done = initiate(&config, &dir.file("script", "timeout 0.3\nwait logon\n"));
    assert_eq!(done.status.code(), Some(4), "{}", both(&done));
    assert!(both(&done).contains("is not logged on"), "{}", both(&done));
    let done = initiate(&config, &dir.file("script", "wait\nfoo\n"));
    assert_eq!(done.status.code(), Some(2), "{}", both(&done));
    assert!(both(&done).contains("line 1"), "{}", both(&done));
    let wrong = initiator_config(&dir, port, "ReconnectIntervall=5\n");
    let done = initiate(&wrong, &dir.file("script", "wait 0\n"));
    assert_eq!(done.status.code(), Some(2), "{}", both(&done));
    assert!(both(&done).contains("ReconnectIntervall"), "{}", both(&done));
}

#[test]
fn a_prompt_sends_what_is_typed_and_shows_what_comes() {
    let dir = Folder::new("fix-prompt");
    let acceptor = Acceptor::start(&acceptor_config(&dir, ""));
    let config = initiator_config(&dir, acceptor.port, "");
    let mut child = tickwire()
        .args(["fix", "initiator", "-c"])
        .arg(&config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let typed = "timeout 1\nnonsense\n35=D|11=typed|55=AAPL|54=1|38=5|40=1|60=<TIME>\nexpect 35=D|11=other\nexpect 35=D|11=more\n\
                 timeout 0.1\nreceive\n";
    let mut input = child.stdin.take().expect("piped");
    input.write_all(typed.as_bytes()).expect("it reads");
    drop(input);
    let done = child.wait_with_output().expect("it ends");
    let said = text(&done.stdout);
    assert!(done.status.success(), "{said}");
    for part in [
        "? \"nonsense\" is no step",
        "11=typed|",
        "11 is typed, not other",
        "? nothing came for 0.1 s",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn sessions_run_on_threads_of_their_own_and_end_together() {
    let dir = Folder::new("fix-threads");
    let second = "Thread=1\n[SESSION]\nBeginString=FIX.4.2\nSenderCompID=VENUE2\nTargetCompID=TRADER\nResetOnLogon=Y\nThread=2\nWaitStrategy=spin\n\
                  SocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n";
    let config = acceptor_config(&dir, second);
    let mut child = tickwire()
        .args(["fix", "acceptor", "-c"])
        .arg(&config)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let mut ports = Vec::new();
    while ports.len() < 2 {
        let line = lines.next().expect("it goes on").expect("a line of text");
        if line.starts_with("listening on") {
            ports.push(line.rsplit(':').next().expect("a port").to_string());
        }
    }
    let mut child = common::Guard(child);
    std::thread::spawn(move || lines.for_each(drop));
    let text = example("initiator.cfg").replacen("9878", &ports[0], 2);
    let more = format!(
        "[SESSION]\nBeginString=FIX.4.2\nSenderCompID=TRADER\nTargetCompID=VENUE2\nResetOnLogon=Y\n\
         SocketConnectHost=127.0.0.1\nSocketConnectPort={}\n",
        ports[1]
    );
    let text = text.replace(
        "SocketConnectPort1=9878",
        &format!("SocketConnectPort1={}", ports[0]),
    );
    let config = dir.file("initiator.cfg", text + &more);
    let script =
        "order buy 1 A 1 a\nsession VENUE2\norder buy 2 B 2 b\nexpect 11=b\nsession VENUE\nexpect 11=a\n";
    let done = initiate(&config, &dir.file("script", script));
    assert!(done.status.success(), "{}", both(&done));
    common::signal("TERM", child.0.id());
    let status = child.wait(PATIENCE).expect("it ends");
    assert_eq!(status.code(), Some(130));
}

/// An authority's certificate, and one for a name that it signed, with its key, in files of the folder.
fn certificates(dir: &Folder, authority: &str, names: &[&str]) {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, authority);
    let own = params.self_signed(&key).expect("a certificate");
    dir.file(&format!("{authority}.pem"), own.pem());
    let issuer = Issuer::new(params, key);
    for name in names {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_string()]).expect("parameters");
        let signed = params.signed_by(&key, &issuer).expect("a certificate");
        dir.file(&format!("{name}.pem"), signed.pem());
        dir.file(&format!("{name}.key"), key.serialize_pem());
    }
}

#[test]
fn sessions_go_over_tls_and_strangers_do_not() {
    let dir = Folder::new("fix-tls");
    certificates(&dir, "ca", &["venue.test", "trader"]);
    certificates(&dir, "others", &["stranger"]);
    let server = "SSLEnable=Y\nServerCertificateFile=venue.test.pem\nServerCertificateKeyFile=venue.test.key\n\
                  CertificationAuthoritiesFile=ca.pem\nCertificateVerifyLevel=2\nWaitStrategy=block\n";
    let acceptor = Acceptor::start(&acceptor_config(&dir, server));
    let script = dir.file(
        "script",
        "timeout 5\norder buy 100 AAPL 1.5 x\nexpect 35=D|11=x\n",
    );
    let client = |own: &str, authority: &str, name: &str| {
        let keys = format!(
            "SSLEnable=Y\nSSLServerName={name}\nClientCertificateFile={own}.pem\nClientCertificateKeyFile={own}.key\n\
             CertificationAuthoritiesFile={authority}.pem\n"
        );
        initiate(&initiator_config(&dir, acceptor.port, &keys), &script)
    };
    let done = client("trader", "ca", "venue.test");
    assert!(done.status.success(), "{}", both(&done));
    let script = dir.file("script", "timeout 0.5\nwait logon\n");
    for (own, authority, name, reason) in [
        ("trader", "others", "venue.test", "UnknownIssuer"),
        ("trader", "ca", "elsewhere.test", "not valid for name"),
        ("stranger", "ca", "venue.test", ""),
    ] {
        let keys = format!(
            "SSLEnable=Y\nSSLServerName={name}\nClientCertificateFile={own}.pem\nClientCertificateKeyFile={own}.key\n\
             CertificationAuthoritiesFile={authority}.pem\n"
        );
        let done = initiate(&initiator_config(&dir, acceptor.port, &keys), &script);
        assert_eq!(done.status.code(), Some(4), "{}", both(&done));
        assert!(both(&done).contains(reason), "{}", both(&done));
    }
    // Without authorities the system's are trusted, which may be told another file; and nobody need be
    // verified.
    let own = "SSLEnable=Y\nSSLServerName=venue.test\nSSLCertificate=both.pem\n";
    let both_in_one = ["trader.pem", "trader.key"].map(|name| std::fs::read_to_string(dir.0.join(name)));
    dir.file("both.pem", both_in_one.map(|text| text.expect("a file")).concat());
    for (more, roots, works, said) in [
        ("", "ca.pem", true, "the system's trusted authorities"),
        ("", "others.pem", false, "UnknownIssuer"),
        (
            "SSLValidateCertificates=N\n",
            "others.pem",
            true,
            "is not verified",
        ),
        ("SSLProtocols=Tls12\nUseSNI=N\n", "ca.pem", true, ""),
    ] {
        let config = initiator_config(&dir, acceptor.port, &format!("{own}{more}"));
        let mut command = tickwire();
        command
            .args(["fix", "initiator", "-c"])
            .arg(config)
            .arg("--script")
            .arg(&script);
        let done = command
            .env("SSL_CERT_FILE", dir.0.join(roots))
            .env_remove("SSL_CERT_DIR")
            .output();
        let done = done.expect("the program starts");
        assert_eq!(done.status.success(), works, "{}", both(&done));
        assert!(both(&done).contains(said), "{}", both(&done));
    }
    // Who does not speak TLS at all is told in the log, and hears nothing of FIX.
    let done = initiate(&initiator_config(&dir, acceptor.port, ""), &script);
    assert_eq!(done.status.code(), Some(4), "{}", both(&done));
}

#[test]
fn settings_and_dictionaries_are_printed() {
    let done = common::run(&["fix", "settings", "heartbt", "ProxyHost"]);
    let out = text(&done.stdout);
    assert!(out.starts_with("HeartBtInt (C++, /J, /n): obeyed: "), "{out}");
    assert_eq!(out.lines().count(), 2, "{out}");
    let done = common::run(&["fix", "dictionary", "fix.4.4"]);
    assert!(text(&done.stdout).starts_with("<fix type=\"FIX\" major=\"4\" minor=\"4\""));
    // What is printed serves as a file.
    let dir = Folder::new("fix-dictionary");
    dir.file("venue.xml", text(&done.stdout));
    let config = acceptor_config(&dir, "").display().to_string();
    let file = std::fs::read_to_string(&config).expect("a configuration");
    dir.file(
        "acceptor.cfg",
        file.replace("UseDataDictionary=N", "DataDictionary=venue.xml"),
    );
    Acceptor::start(Path::new(&config)).kill();
    let done = common::run(&["fix", "dictionary", "FIX.9"]);
    assert_eq!(done.status.code(), Some(2), "{}", both(&done));
}

fn until(mut done: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_template_admits_who_has_a_password_and_views_show_who_came() {
    let dir = Folder::new("fix-template");
    dir.file("users", "# traders\nann:open sesame\n");
    let more = "\n[SESSION]\nBeginString=FIX.4.4\nSenderCompID=VENUE\nTargetCompID=*\nAcceptorTemplate=Y\nDynamicSessionsMax=1\n\
                PasswordFile=users\nCancelOnDisconnect=ALL\nFileStorePath=store\nFileLogPath=log\n";
    let region = dir.0.join("region").display().to_string();
    let acceptor = Acceptor::with(&acceptor_config(&dir, more), &["--folder", &region]);
    let stats = || {
        let done = common::run(&["stats", "--folder", &region, "--json"]);
        assert!(done.status.success(), "{}", both(&done));
        serde_json::from_slice::<serde_json::Value>(&done.stdout).expect("JSON")
    };
    let plain = initiator_config(&dir, acceptor.port, "");
    let plain = std::fs::read_to_string(&plain).expect("a configuration");
    let as_user = |name: &str, user: &str, password: &str| {
        let who = format!("Username={user}\nPassword={password}\n");
        dir.file(
            &format!("{name}.cfg"),
            plain.replace("=TRADER", &format!("={name}")) + &who,
        )
    };

    let steps = dir.file("refused.txt", "timeout 2\nwait logon\n");
    for (user, password) in [("ann", "open sesam"), ("bob", "open sesame"), ("", "")] {
        let done = initiate(&as_user("EVE", user, password), &steps);
        assert_eq!(done.status.code(), Some(4), "{}", both(&done));
        let said = both(&done);
        assert!(said.contains("Invalid username or password"), "{said}");
    }
    let store = |name: &str| dir.0.join(format!("store/FIX.4.4-VENUE-{name}.store"));
    assert!(
        !store("EVE").exists(),
        "who never logged on leaves nothing behind"
    );

    let steps = "order buy 100 AAPL 187.25 A1\nexpect 35=D|11=A1\nlogout\nwait disconnect\n";
    let done = initiate(
        &as_user("ANN", "ann", "open sesame"),
        &dir.file("order.txt", steps),
    );
    assert!(done.status.success(), "{}", both(&done));
    assert!(store("ANN").exists());
    let events = dir.0.join("log/FIX.4.4-VENUE-ANN.event.current.log");
    let cancelled = || std::fs::read_to_string(&events).is_ok_and(|text| text.contains("is to be cancelled"));
    until(cancelled);
    // The only place is taken for good: its numbers are kept.
    let done = initiate(
        &as_user("BEN", "ann", "open sesame"),
        &dir.file("late.txt", "timeout 2\nwait logon\n"),
    );
    assert_eq!(done.status.code(), Some(4), "{}", both(&done));

    let row = |name: &str| {
        let all = stats();
        let sources = all["sources"].as_array().cloned().unwrap_or_default();
        sources.into_iter().find(|row| row["source"] == name)
    };
    until(|| {
        row("VENUE -> ANN").is_some_and(|row| {
            row["state"] == "stale"
                && row["counters"]["fix_messages_in"] == 1
                && row["counters"]["fix_logons"] == 1
        })
    });
    assert_eq!(row("VENUE -> TRADER").expect("a row")["state"], "building");
    assert_eq!(row("VENUE -> EVE"), None);
    // Region, stores and logs: for nobody else, and without a password, right or wrong.
    let written = ["region", "store", "log"].map(|name| dir.0.join(name));
    let others: Vec<PathBuf> = std::fs::read_dir(&dir.0)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !written.contains(path) && path.is_file())
        .collect();
    let others: Vec<&Path> = others.iter().map(PathBuf::as_path).collect();
    assert!(dir.holds_no_secret(&["open sesam"], &others) >= 5);
}
