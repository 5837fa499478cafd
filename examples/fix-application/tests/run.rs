//! The example runs as its files say, on ports and in folders of the test's own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends with the test, however that ends.
struct Venue(Child);

impl Drop for Venue {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file of the example, with another port, in a folder.
fn file(name: &str, port: &str, folder: &Path) -> std::path::PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = std::fs::read_to_string(own).unwrap().replace("9878", port);
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_trader_buys_from_a_venue_twice_and_numbers_go_on() {
    let folder = std::env::temp_dir().join(format!("tickwire-fix-application-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let venue = Command::new(env!("CARGO_BIN_EXE_venue"))
        .arg(file("venue.cfg", "0", &folder))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut venue = Venue(venue);
    let mut lines = BufReader::new(venue.0.stdout.take().unwrap()).lines();
    let port = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("Info: listening on 127.0.0.1:")?.to_string()))
        .expect("it says where it listens");
    for run in 1..=2 {
        let output = Command::new(env!("CARGO_BIN_EXE_trader"))
            .arg(file("trader.cfg", &port, &folder))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        assert!(text.contains("bought 100 at 87.39"), "run {run}: {text}");
    }
    // SIGTERM logs out and lets the venue say what it has done.
    let pid = venue.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line == "2 orders filled"), "{rest:?}");
    assert!(venue.0.wait().unwrap().success());
    std::fs::remove_dir_all(&folder).unwrap();
}
