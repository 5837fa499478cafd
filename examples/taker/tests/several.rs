//! Two of the example in one process, each with its parameters and limits, over one session.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn taker(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_taker")).args(arguments).output();
    let output = output.expect("the example runs");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output, told)
}

const TWO: &str = r#"
[[strategies]]
name = "apple"
[strategies.parameters]
symbol = "AAPL"
lot = 10
position_max = 100
edge = 100

[[strategies]]
name = "microsoft"
risk = { max_order_qty = 20 }
[strategies.parameters]
symbol = "MSFT"
lot = 20
position_max = 100
edge = 100
"#;

#[test]
fn two_strategies_trade_in_one_process_and_the_exchange_knows_both_by_their_numbers() {
    let folder = Folder(std::env::temp_dir().join(format!("tickwire-test-several-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let file = |name: &str| folder.0.join(name).to_string_lossy().into_owned();
    let config = file("two.toml");
    std::fs::write(&config, TWO).expect("written");
    let (checked, told) = taker(&["check", "-c", &config]);
    assert!(checked.status.success(), "{told}");
    assert!(
        told.contains("apple subscribes to AAPL") && told.contains("microsoft subscribes to MSFT"),
        "{told}"
    );
    let dir = file("sim");
    let (ran, told) = taker(&["sim", "--seconds", "2", "-c", &config, "--dir", &dir]);
    assert!(ran.status.success() && told.contains("PASSED"), "{told}");
    let results = std::fs::read_to_string(folder.0.join("sim/trader.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let orders = results["orders"].as_object().expect("orders").keys();
    let (first, second): (Vec<u64>, Vec<u64>) = orders
        .map(|number| number.parse::<u64>().expect("a number"))
        .partition(|number| *number < 1_000_000_000_000);
    assert!(first.len() > 2 && second.len() > 2, "{results:#}");
    // A backtest is of both together, or of one alone.
    let capture = file("sample.pcap");
    assert!(taker(&["sample", &capture, "--seconds", "1"]).0.status.success());
    let backtest = |options: &[&str]| -> Value {
        let (tested, told) = taker(&[&["backtest", "--json"], options, &["-c", &config, &capture]].concat());
        assert!(tested.status.success(), "{told}");
        serde_json::from_slice(&tested.stdout).expect("JSON")
    };
    let both = backtest(&[]);
    let alone = ["apple", "microsoft"].map(|name| backtest(&["--strategy", name]));
    for (place, alone) in alone.iter().enumerate() {
        let together = &both["strategies"][place];
        assert!(alone["fills"].as_u64() > Some(0), "{alone:#}");
        // They trade different symbols: neither takes anything from the other.
        assert_eq!(
            (&together["fills"], &together["gain"]),
            (&alone["fills"], &alone["gain"])
        );
    }
    assert_eq!(alone[1]["instruments"][0]["symbol"], "MSFT");
    let (refused, told) = taker(&["backtest", "--strategy", "google", "-c", &config, &capture]);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("apple, microsoft"), "{told}");
}

#[test]
fn what_is_wrong_with_strategies_and_sessions_is_named() {
    let folder = Folder(std::env::temp_dir().join(format!("tickwire-test-wrong-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let config = folder.0.join("wrong.toml").to_string_lossy().into_owned();
    let session = "[[session]]\nfeeds = [\"edgx\"]\n[session.order_entry]\nexchange_comp_id = \"X\"\n";
    for (text, words) in [
        (format!("{TWO}[strategy]\nlot = 1\n"), "are both there"),
        (TWO.replace("microsoft", "apple"), "apple is there twice"),
        (
            TWO.replace("lot = 20", "lots = 20"),
            "[[strategies]] microsoft: unknown field `lots`",
        ),
        (TWO.replace("name =", "title ="), "unknown field `title`"),
        (
            format!("{TWO}{session}"),
            "[[session]] X: there is no [[feed]] edgx",
        ),
    ] {
        std::fs::write(&config, text).expect("written");
        let (output, told) = taker(&["check", "-c", &config]);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words), "{words:?} in {told}");
    }
}
