//! Being asked to stop. Alone in its file: handlers belong to the whole process.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tickwire_runtime::child::ChildGuard;
use tickwire_runtime::signal::{StopFlag, StopReason, die_with_parent};

const ROLE: &str = "TICKWIRE_TEST_ROLE";

fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn runs(pid: u32) -> bool {
    // A process that ended but was not waited for is a zombie: state Z.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn this_test(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command
        .args(["--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// All in one test, which plays several roles in several processes.
#[test]
fn a_signal_sets_the_flag_once_and_children_die_with_their_parent() {
    match std::env::var(ROLE).ok().as_deref() {
        None => as_tester(),
        Some("listener") => as_listener(),
        Some("impatient") => as_impatient(),
        Some(pid_file) => as_parent(pid_file),
    }
}

fn as_tester() {
    let stop = StopFlag::install().expect("handlers can be set");
    assert_eq!((stop.is_set(), stop.reason()), (false, None));
    signal_hook::low_level::raise(signal_hook::consts::SIGTERM).expect("raised");
    assert!(wait_until(|| stop.is_set()));
    assert_eq!(stop.clone().reason(), Some(StopReason::Terminated));
    assert_eq!(StopReason::Terminated.exit_code(), 143);

    let ended = this_test("impatient").status().expect("started");
    assert_eq!(
        ended.code(),
        Some(130),
        "a second Ctrl-C ends at once, SIGTERM in between does not"
    );

    let pid_file = std::env::temp_dir().join(format!("tickwire-signals-{}", std::process::id()));
    let mut parent = this_test(pid_file.to_str().expect("text"))
        .spawn()
        .expect("started");
    let grandchild = || {
        std::fs::read_to_string(&pid_file)
            .ok()
            .and_then(|text| text.trim().parse::<u32>().ok())
    };
    assert!(wait_until(|| grandchild().is_some()));
    let grandchild = grandchild().expect("just seen");
    assert!(runs(grandchild));
    parent.kill().expect("killed");
    parent.wait().expect("waited for");
    assert!(
        wait_until(|| !runs(grandchild)),
        "the child of a killed parent still runs"
    );
    std::fs::remove_file(&pid_file).expect("removed");
}

/// Starts a listener, then waits to be killed without a chance to clean up.
fn as_parent(pid_file: &str) {
    let listener =
        ChildGuard::spawn(this_test("listener").env("TICKWIRE_TEST_PARENT", std::process::id().to_string()))
            .expect("started");
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(pid_file, listener.id().to_string()).expect("written");
    std::thread::sleep(Duration::from_secs(60));
}

fn as_listener() {
    let parent = std::env::var("TICKWIRE_TEST_PARENT")
        .expect("told")
        .parse()
        .expect("a number");
    die_with_parent(parent).expect("the parent lives");
    std::thread::sleep(Duration::from_secs(60));
}

fn as_impatient() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = StopFlag::install().expect("handlers can be set");
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::raise(signal).expect("raised");
        assert_eq!(stop.reason(), Some(StopReason::Interrupted));
    }
    signal_hook::low_level::raise(SIGINT).expect("raised");
    unreachable!("the second SIGINT ends the process");
}
