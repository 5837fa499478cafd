//! A browser without a screen, for tests of pages that programs show.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Where Debian and Ubuntu put the browser.
const BROWSERS: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// A browser, installed if need be and permitted; without one, `what` counts as not tested.
pub fn browser(what: &str) -> Option<&'static str> {
    // Tests of one program ask at the same time; the second waits for what the first installs.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let there = || BROWSERS.into_iter().find(|path| Path::new(path).exists());
    if let Some(path) = there() {
        return Some(path);
    }
    // As docs/lab.md says; only root may, and not everywhere are there packages.
    let install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends chromium";
    let installed = Command::new("sh")
        .args(["-c", install])
        .stdin(Stdio::null())
        .output();
    if there().is_none() {
        let why = installed.map_or_else(
            |e| e.to_string(),
            |o| {
                let said = String::from_utf8_lossy(&o.stderr);
                said.lines().last().unwrap_or("").to_owned()
            },
        );
        crate::not_tested(format!(
            "{what}: there is no Chromium, and `{install}` did not bring one: {why}"
        ));
    }
    there()
}

/// A browser that opens an address without a screen; `scheme` is what `preferredColorScheme` of Blink is set
/// to (0 dark, 1 light), `profile` a folder of its own, `window` such as `1100,900`. What is wanted of the
/// page (`--dump-dom`, `--screenshot=FILE`) is added before it is run.
pub fn headless(browser: &str, profile: &Path, window: &str, scheme: &str, address: &str) -> Command {
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ])
        .arg(format!("--window-size={window}"))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(address)
        .stdin(Stdio::null());
    command
}
