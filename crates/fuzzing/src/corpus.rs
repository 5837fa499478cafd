//! What mutations start from: the packets under `vectors/`, and the empty input.

use crate::Target;
use tickwire_testdata::{vectors, workspace};

/// The starting inputs of a target: the bytes of every vector in its directories; text files as they are.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = vec![Vec::new()];
    for dir in target.corpus {
        let path = workspace().join("vectors").join(dir);
        let has_files = |ext: &str| {
            let mut entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            entries.any(|entry| entry.path().extension().is_some_and(|e| e == ext))
        };
        if has_files("toml") {
            inputs.extend(vectors(dir).into_iter().map(|vector| vector.bytes));
        }
        if has_files("txt") {
            inputs.extend(
                tickwire_testdata::files(&path, "txt")
                    .iter()
                    .map(|file| tickwire_testdata::file_bytes(file)),
            );
        }
    }
    inputs
}
