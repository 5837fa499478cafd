//! A machine whose only interface is down: run in a network namespace of its own. Alone in its file because
//! the whole process moves there.

use std::process::Command;

use tickwire_runtime::interface::Interface;
use tickwire_runtime::udp::{MulticastConfig, MulticastReceiver, MulticastSender};

#[test]
fn no_multicast_route_is_one_sentence_with_what_to_do() {
    const INSIDE: &str = "TICKWIRE_TEST_INSIDE_NAMESPACE";
    if std::env::var_os(INSIDE).is_none() {
        let this = std::env::current_exe().expect("a test has a file");
        let inside = Command::new("unshare")
            .arg("-Urn")
            .arg(this)
            .env(INSIDE, "1")
            .output();
        match inside {
            Ok(output) if String::from_utf8_lossy(&output.stderr).contains("unshare") => {
                tickwire_testdata::not_tested("this system does not let users make network namespaces");
            }
            Ok(output) => assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            ),
            Err(error) => tickwire_testdata::not_tested(format!("unshare cannot be run ({error})")),
        }
        return;
    }
    let group = "239.255.77.77:26400".parse().expect("an address");
    let error = match Interface::find("lo") {
        Ok(lo) => match MulticastSender::open(group, &lo, 1) {
            Err(error) => error,
            Ok(_) => MulticastReceiver::join(MulticastConfig::new(group, lo)).expect_err("lo is down"),
        },
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(
        text.contains("ip link set lo up") || text.contains("ip addr add"),
        "{text}"
    );
}
