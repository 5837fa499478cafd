//! Tickwire's FIX programs against QuickFIX C++ and QuickFIX/J, each as initiator and as acceptor: logon,
//! orders, messages lost with their connection and sent again, sequence reset, logout, restart from the
//! stores, TLS with certificates on both sides. Started by `cargo xtask interop`.

mod certificates;
mod engine;
mod proxy;
mod roundtrip;
mod scenario;

use std::path::PathBuf;
use std::process::ExitCode;

use scenario::{DIALECTS, Kind, Pair, Places};

/// Acceptor and initiator.
const PAIRS: [(Kind, Kind); 4] = [
    (Kind::Tickwire, Kind::QuickFix),
    (Kind::QuickFix, Kind::Tickwire),
    (Kind::Tickwire, Kind::QuickFixJ),
    (Kind::QuickFixJ, Kind::Tickwire),
];
/// The peers among themselves: what fails there too is their fault, or this program's.
const CONTROL: [(Kind, Kind); 2] = [
    (Kind::QuickFix, Kind::QuickFixJ),
    (Kind::QuickFixJ, Kind::QuickFix),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [tickwire, quickfix, quickfixj, dictionaries, folder, only @ ..] = &args[..] else {
        eprintln!(
            "usage: interop TICKWIRE QUICKFIX-PEER QUICKFIXJ-CLASSPATH DICTIONARIES FOLDER [WORD...]; `cargo xtask interop` starts it"
        );
        return ExitCode::from(2);
    };
    let folder = PathBuf::from(folder);
    let places = Places {
        tickwire: tickwire.into(),
        quickfix: quickfix.into(),
        quickfixj: quickfixj.clone(),
        dictionaries: dictionaries.into(),
        certificates: folder.join("certificates"),
        folder,
    };
    if let Err(e) = certificates::make(&places.certificates) {
        eprintln!("error: {e}");
        return ExitCode::from(2);
    }
    let mut failed = 0;
    let mut count = 0;
    if let [option, count @ ..] = only
        && option == "--roundtrip"
    {
        let count = count.first().and_then(|n| n.parse().ok()).unwrap_or(20_000);
        return match roundtrip::run(&places, count) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("error: {e}");
                ExitCode::FAILURE
            }
        };
    }
    let (control, only): (Vec<&String>, Vec<&String>) = only.iter().partition(|word| *word == "--control");
    let pairs = if control.is_empty() {
        &PAIRS[..]
    } else {
        &CONTROL[..]
    };
    for &(acceptor, initiator) in pairs {
        for (dialect, tls) in DIALECTS
            .map(|d| (d, false))
            .into_iter()
            .chain([(DIALECTS[1], true)])
        {
            let pair = Pair {
                places: &places,
                acceptor,
                initiator,
                dialect,
                tls,
            };
            if !only.iter().all(|word| pair.name().contains(word.as_str())) {
                continue;
            }
            println!("{}", pair.name());
            count += 1;
            if let Err(e) = pair.run(|step| println!("  ok  {step}")) {
                println!("  FAILED  {e}");
                failed += 1;
            }
        }
    }
    println!("{} of {count} sessions passed", count - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
