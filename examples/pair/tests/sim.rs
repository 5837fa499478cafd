//! The example over two simulated exchanges: three processes, two feeds of different protocols, two FIX
//! sessions; books and orders of both venues are compared at the end.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn it_trades_over_two_sessions_and_every_side_agrees() {
    let folder = std::env::temp_dir().join(format!("tickwire-test-pair-sim-{}", std::process::id()));
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("strategy.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_pair"))
        .args(["sim", "--seconds", "3", "--feed", "itch50", "--feed", "pitch"])
        .args(["--loss", "0.01", "--symbols", "20", "--set", "lot=10", "-c"])
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
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("PASSED").count(), 2, "one for each venue: {told}");
    for file in ["trader.json", "trader-2.json"] {
        let results = std::fs::read_to_string(folder.join(file)).expect("results of a session");
        let results: Value = serde_json::from_str(&results).expect("JSON");
        let orders = results["orders"].as_object().expect("orders");
        let filled = orders.values().filter(|order| order["filled"].as_u64() > Some(0));
        assert!(filled.count() > 0, "{file}: {results:#}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
