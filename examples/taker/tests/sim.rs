//! The example against the simulated exchange: two processes, multicast and FIX, books and orders compared at
//! the end.

use std::path::Path;
use std::process::Command;

#[test]
fn it_trades_with_the_simulated_exchange_and_both_sides_agree() {
    for (feed, loss) in [("itch50", "0.01"), ("mdp3", "0")] {
        let folder = std::env::temp_dir().join(format!("tickwire-test-sim-{}-{feed}", std::process::id()));
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("strategy.toml");
        let output = Command::new(env!("CARGO_BIN_EXE_taker"))
            .args([
                "sim",
                "--seconds",
                "2",
                "--feed",
                feed,
                "--loss",
                loss,
                "--set",
                "lot=10",
                "-c",
            ])
            .arg(&config)
            .arg("--dir")
            .arg(&folder)
            .output()
            .expect("the example runs");
        let told = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{feed}: {told}");
        assert!(told.contains("PASSED"), "{feed}: {told}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
