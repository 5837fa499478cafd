//! The example quotes, moves its quotes, and stays within its position.

use std::process::Command;

use serde_json::Value;

#[test]
fn it_makes_a_market_within_its_limits() {
    let folder = std::env::temp_dir().join(format!("tickwire-test-maker-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let capture = folder.join("sample.pcap");
    let run = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(env!("CARGO_BIN_EXE_market-maker"))
            .args(arguments)
            .output();
        let output = output.expect("the example runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    run(&[
        "sample".as_ref(),
        capture.as_os_str(),
        "--seconds".as_ref(),
        "5".as_ref(),
    ]);
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("strategy.toml");
    let found = run(&[
        "backtest".as_ref(),
        "--json".as_ref(),
        "-c".as_ref(),
        config.as_os_str(),
        capture.as_os_str(),
    ]);
    let _ = std::fs::remove_dir_all(&folder);
    let found: Value = serde_json::from_slice(&found).expect("JSON");
    assert!(found["fills_as_maker"].as_u64() > Some(0), "{found:#}");
    assert!(found["figures"]["quotes moved"].as_u64() > Some(20), "{found:#}");
    let position = found["instruments"][0]["position"].as_i64().expect("a position");
    assert!(position.abs() <= 500, "{found:#}");
    assert_eq!(
        found["counters"]["reports_unmatched"].as_u64().unwrap_or(0),
        0,
        "{found:#}"
    );
}
