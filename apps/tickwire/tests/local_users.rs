//! Other users of the machine: what they prepare is refused, what they run is not believed, and what they ask
//! is answered to whom it is allowed alone.
//!
//! The other user is uid 65534, as whom root alone can run a program: elsewhere these tests say SKIPPED.

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::Receiver;

use common::{Folder, Guard, free_ports, heard, lines_of, text, tickwire};

/// Nobody, in the users' database of every Linux.
const OTHER: u32 = 65_534;

/// The program as another user; `None`, said loudly, where that cannot be.
fn as_other() -> Option<Command> {
    let ours = std::fs::metadata("/proc/self").expect("Linux").uid();
    let command = || {
        let mut command = tickwire();
        command.uid(OTHER).gid(OTHER).current_dir("/");
        command
    };
    if ours != 0 {
        tickwire_testdata::not_tested("root alone can run the program as another user");
        return None;
    }
    if !command()
        .arg("counters")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        tickwire_testdata::not_tested(format!("uid {OTHER} cannot run the program where it was built"));
        return None;
    }
    Some(command())
}

/// A folder of a test that others may enter, and one in it that belongs to the other user.
fn places(name: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let theirs = folder.0.join("theirs");
    std::fs::create_dir(&theirs).expect("a folder");
    chown(&theirs, Some(OTHER), Some(OTHER)).expect("root may");
    (folder, theirs)
}

/// An exchange with a control socket.
fn exchange(control: &Path, access: &str) -> String {
    let [a, b, c, d] = free_ports();
    format!(
        r#"
[[feed]]
venue = "nasdaq"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.83.1:{a}", b = "239.192.83.2:{b}" }}
requests = "127.0.0.1:{c}"
snapshot_server = "127.0.0.1:{d}"
[order_entry]
address = "127.0.0.1:0"
[exchange]
symbols = 5
rate = 100
duration_s = 3600.0
control = "{}"
{access}
"#,
        control.display()
    )
}

/// Starts it and waits until it listens; what it says after that comes by the line.
fn started(mut command: Command, config: &Path) -> (Guard, Receiver<String>) {
    let mut child = command
        .args(["exchange", "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = lines_of(&mut child);
    let guard = Guard(child);
    heard(&lines, "listening:");
    (guard, lines)
}

fn tell(mut command: Command, socket: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output: Output = command
        .args(["exchange", "--socket"])
        .arg(socket)
        .arg("--tell")
        .args(words)
        .output()
        .expect("the program starts");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The attacker's socket answers "done" to whatever it is asked, so nothing may be asked there.
#[test]
fn nothing_is_asked_of_a_socket_of_another_user_unless_it_is_named() {
    let (folder, theirs) = places("server");
    let Some(command) = as_other() else { return };
    let config = folder.file("exchange.toml", exchange(&theirs.join("desk"), ""));
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).expect("ours");
    let (_attacker, lines) = started(command, &config);
    let desk = theirs.join("desk");
    let (code, said) = tell(tickwire(), &desk, &["lose", "5"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains(&format!("uid {OTHER}")) && said.contains("nothing was asked"),
        "{said}"
    );
    // Whoever means that user says so, by the option or by the variable.
    let mut named = tickwire();
    named.args(["--owner", "65534"]);
    let (code, said) = tell(named, &desk, &["lose", "5"]);
    assert_eq!(code, Some(0), "{said}");
    let asked = heard(&lines, "control: ");
    assert!(
        asked.contains("(uid 0, process ") && asked.contains("\"lose\""),
        "{asked}"
    );
    let mut named = tickwire();
    named.env("TICKWIRE_OWNER", "65534");
    assert_eq!(tell(named, &desk, &["status"]).0, Some(0));
}

#[test]
fn a_client_of_another_user_may_do_what_it_is_named_for_and_who_asked_is_said() {
    let (folder, _) = places("client");
    let Some(other) = as_other() else { return };
    let access = format!(
        "[access]\ngroup = \"{OTHER}\"\n[access.allow]\nstatus = [\"@{OTHER}\"]\nlose = [\"{OTHER}\"]\n"
    );
    let desk = folder.0.join("desk");
    let config = folder.file("exchange.toml", exchange(&desk, &access));
    let (mut process, lines) = started(tickwire(), &config);
    let mode = |path: &Path| {
        let data = std::fs::metadata(path).expect("it is there");
        (data.mode() & 0o777, data.gid())
    };
    assert_eq!(
        (mode(&desk), mode(&desk.join("control"))),
        ((0o750, OTHER), (0o660, OTHER))
    );
    let (code, said) = tell(other, &desk, &["lose", "5"]);
    assert_eq!(code, Some(0), "{said}");
    let asked = heard(&lines, "control: ");
    assert!(
        asked.contains(&format!("uid {OTHER}")) && asked.contains("\"lose\""),
        "{asked}"
    );
    let (code, said) = tell(as_other().expect("as before"), &desk, &["disconnect"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("access.allow"), "{said}");
    let refused = heard(&lines, "refused to");
    assert!(
        refused.contains(&format!("uid {OTHER}")) && refused.contains("\"disconnect\""),
        "{refused}"
    );
    process.0.kill().expect("it can be killed");
    process.0.wait().expect("a child can be waited for");
    // Without the section nobody else gets there.
    let alone = folder.0.join("alone");
    let config = folder.file("alone.toml", exchange(&alone, ""));
    let (_process, _lines) = started(tickwire(), &config);
    assert_eq!((mode(&alone).0, mode(&alone.join("control")).0), (0o700, 0o600));
    let (code, said) = tell(as_other().expect("as before"), &alone, &["status"]);
    assert_eq!(code, Some(3), "{said}");
}

/// What the attack of the issue prepared: links where the daemon would make its files, in a folder that is
/// not its own.
#[test]
fn the_feed_handler_makes_nothing_in_a_folder_that_another_user_prepared() {
    let (folder, theirs) = places("feed");
    if as_other().is_none() {
        return;
    }
    let victim = folder.file("victim", "precious");
    for name in ["region", "region.new", "lock", "control", "control.new"] {
        symlink(&victim, theirs.join(name)).expect("a link");
    }
    let [a, b] = free_ports();
    let config = folder.file(
        "feeds.toml",
        format!(
            "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\nlive = {{ a = \"239.192.83.3:{a}\" }}\nrequests = \"127.0.0.1:{b}\"\n"
        ),
    );
    let feed = |place: &Path| {
        let mut command = tickwire();
        command
            .args(["feed", "-c"])
            .arg(&config)
            .arg("--folder")
            .arg(place);
        command.output().expect("the program starts")
    };
    let done = feed(&theirs);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("(uid {OTHER})")) || said.contains(&format!("uid {OTHER}")),
        "{said}"
    );
    // Open to everybody, as the folder for shared memory of the system is.
    let common = folder.0.join("common");
    std::fs::create_dir(&common).expect("a folder");
    std::fs::set_permissions(&common, std::fs::Permissions::from_mode(0o1777)).expect("ours");
    let done = feed(&common);
    let said = text(&done.stderr);
    assert!(
        done.status.code() == Some(3) && said.contains("others may write"),
        "{said}"
    );
    assert_eq!(std::fs::read(&victim).expect("read"), b"precious");
    assert_eq!(std::fs::read_dir(&common).expect("a folder").count(), 0);
}
