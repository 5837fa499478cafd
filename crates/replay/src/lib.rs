//! Recordings through the channels and books of every feed.
//!
//! - [`replay`]: `tickwire replay`: captures, raw ITCH files, DBN and LOBSTER, with a configuration or
//!   without one.
//! - [`played`]: one recorded channel with its books behind one call per packet ([`played::Play`]), for
//!   whoever reads recordings: a backtest, an export.
//! - [`progress`]: how far long work has come.
//! - [`tape`]: recordings at their own speed, a multiple of it, or as fast as they can be read.
//!
//! ```
//! use clap::Parser;
//! use tickwire_replay::replay::{ReplayArgs, run};
//! use tickwire_runtime::signal::StopFlag;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     replay: ReplayArgs,
//! }
//!
//! // Three lines of a LOBSTER message file: time of day, type, order, size, price in 0.0001, direction.
//! let folder = std::env::temp_dir();
//! let path = folder.join(format!("AAPL_2012-06-21_{}_message_10.csv", std::process::id()));
//! let lines = "34200.1,1,1,100,5853300,1\n34200.2,1,2,50,5859400,-1\n34200.3,4,2,20,5859400,-1\n";
//! std::fs::write(&path, lines)?;
//!
//! let file = path.display().to_string();
//! let cli = Cli::parse_from(["example", &file, "--book", "all"]);
//! // Prints counters and the book: 100 at 585.33, 30 at 585.94. LOBSTER begins in mid-session, and that is a failure with a sentence.
//! let failure = run(&cli.replay, &StopFlag::install()?).expect_err("the book may lack earlier orders");
//! assert!(failure.message.contains("mid-session"), "{failure}");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod played;
pub mod progress;
pub mod replay;
pub mod tape;
