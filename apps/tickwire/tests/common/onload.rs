//! A stand-in for Onload, which needs a card and modules of the kernel that are not here: a library that is
//! preloaded as Onload's is, and refuses what Onload's sockets refuse.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that Onload does not know and we ask for, by level and number: each stands by its name in
/// docs/onload.md.
const REFUSED: &[(&str, &str)] = &[("option 1 40", "SO_RXQ_OVFL"), ("option 1 55", "SO_MEMINFO")];

/// The library, compiled.
pub(crate) struct StandIn {
    library: PathBuf,
    refused: PathBuf,
}

impl StandIn {
    /// Compiles it; why not, where there is no C compiler.
    pub(crate) fn new(folder: &Path) -> Result<StandIn, String> {
        let library = folder.join("onload.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/onload.c");
        let compiled = Command::new("cc")
            .args([
                "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
            ])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .output()
            .map_err(|e| format!("no C compiler: {e}"))?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{said}");
        Ok(StandIn {
            library,
            refused: folder.join("refused"),
        })
    }

    /// Has a program, and what it starts, begin with the library.
    pub(crate) fn before<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("LD_PRELOAD", &self.library)
            .env("TICKWIRE_REFUSED", &self.refused)
    }

    /// What was refused: all of it is on the page of Onload, or the test fails.
    pub(crate) fn refused(&self) -> BTreeSet<String> {
        let page = tickwire_testdata::workspace().join("docs/onload.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let lines = std::fs::read_to_string(&self.refused).unwrap_or_default();
        let names = lines.lines().map(|line| {
            let known = REFUSED.iter().find(|(number, _)| *number == line);
            let (_, name) =
                known.unwrap_or_else(|| panic!("'{line}': Onload does not know it, nor does this test"));
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not in docs/onload.md"
            );
            (*name).to_owned()
        });
        names.collect()
    }
}
