//! Test support, a dev-dependency of the other crates and never part of a build: where recorded data is, the
//! hand-made vectors, a plain pcap reader, a seeded generator. Everything here panics with a sentence instead
//! of returning errors. A test that reads recorded data carries the mark [`recorded_data`], which has it
//! skipped where the data is not.
//!
//! ```
//! use tickwire_testdata::{Rng, hex, unhex};
//!
//! let mut random = Rng::new(7);
//! assert!(random.below(10) < 10);
//! assert_eq!(Rng::new(7).next_u64(), Rng::new(7).next_u64(), "one seed, one sequence");
//! assert_eq!(hex(&unhex("41 42")), hex(b"AB"));
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as tickwire_testdata;

pub mod browser;
pub mod pages;
mod pcap;
mod recorded;
mod rng;
mod untested;
mod vector;

pub use pcap::{pcap_payloads, pcap_tcp_payloads};
pub use recorded::{ROOT_VARIABLE, Reading, captures, fix, if_recorded, specs};
pub use rng::Rng;
pub use tickwire_recorded::recorded_data;
pub use untested::not_tested;
pub use vector::{Vector, hex, unhex, vectors};

use std::path::{Path, PathBuf};

/// The workspace's root folder.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate lives in crates/testdata of the workspace")
        .to_path_buf()
}

/// The whole file, decompressed when its name ends in `.gz`.
pub fn file_bytes(path: &Path) -> Vec<u8> {
    let raw = std::fs::read(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    if path.extension().is_none_or(|ext| ext != "gz") {
        return raw;
    }
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&raw[..]), &mut plain)
        .unwrap_or_else(|e| panic!("cannot decompress {}: {e}", path.display()));
    plain
}

/// Every file directly under `dir` whose name ends in `.<ext>`, sorted by name; at least one.
pub fn files(dir: &Path, ext: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("cannot list {}: {e}", dir.display()));
    let mut found: Vec<PathBuf> = entries
        .map(|entry| {
            entry
                .unwrap_or_else(|e| panic!("cannot list {}: {e}", dir.display()))
                .path()
        })
        .filter(|path| path.extension().is_some_and(|have| have == ext))
        .collect();
    assert!(!found.is_empty(), "no .{ext} file in {}", dir.display());
    found.sort();
    found
}

/// The messages of a file framed by 2-byte big-endian lengths (Nasdaq's offline ITCH files). Panics on a cut
/// file.
pub fn framed_messages(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length));
        assert!(
            length <= tail.len(),
            "message {} is cut: needs {length} bytes, has {}",
            messages.len(),
            tail.len()
        );
        let (message, tail) = tail.split_at(length);
        messages.push(message);
        rest = tail;
    }
    assert!(rest.is_empty(), "one stray byte at the end");
    messages
}
