//! Fuzz targets, one registry for both ways to run them: `cargo xtask fuzz` mutates the vectors from a seed on a stable
//! toolchain, `fuzz/` wraps the same functions for cargo-fuzz, which follows coverage and needs a nightly one.
//!
//! A target is a function of bytes that panics when something that must hold does not. Parsers get the bytes as they are;
//! state machines read them as a sequence of operations through [`Choices`].
#![forbid(unsafe_code)]

mod choices;
mod corpus;
mod mutate;
mod runner;
pub mod targets;

pub use choices::Choices;
pub use corpus::corpus;
pub use mutate::Mutator;
pub use runner::{Budget, Crash, Report, crash, run};

/// One function that must hold for all bytes.
pub struct Target {
    /// As on the command line, and the name of its wrapper in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// What must hold.
    pub about: &'static str,
    /// Directories below `vectors/` whose packets the mutations start from.
    pub corpus: &'static [&'static str],
    /// Panics when it does not hold.
    pub run: fn(&[u8]),
    /// A target that is wrong on purpose: a run that finds nothing wrong with it has proved nothing about the others.
    pub must_fail: bool,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "price_text",
        about: "a text that is a price prints as the same price",
        corpus: &[],
        run: targets::price_text,
        must_fail: false,
    },
    Target {
        name: "canary",
        about: "fails on a short rare input: shows that failures are found",
        corpus: &[],
        run: targets::canary,
        must_fail: true,
    },
];

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
