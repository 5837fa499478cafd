//! Where recorded data is, and who may read it: a test that carries the mark
//! [`recorded_data`](crate::recorded_data), and a benchmark that does without when it is missing.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The environment variable naming the folder with `captures`, `specs` and `fix`; `../shared` beside the
/// repository without it.
pub const ROOT_VARIABLE: &str = "TICKWIRE_SHARED";

/// What to do about data that is missing.
const REMEDY: &str = "`cargo xtask fetch-data` brings what is public (CONTRIBUTING.md, \"Recorded data\")";

thread_local! {
    /// What the mark of the test on this thread names.
    static READABLE: RefCell<Option<&'static [&'static str]>> = const { RefCell::new(None) };
}

/// A marked test is running on this thread; the mark puts it into the test's first line.
#[must_use]
pub struct Reading(());

impl Reading {
    /// From here to the end of the test these paths may be read.
    pub fn of(paths: &'static [&'static str]) -> Reading {
        READABLE.with_borrow_mut(|readable| *readable = Some(paths));
        Reading(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READABLE.with_borrow_mut(|readable| *readable = None);
    }
}

/// Recorded market data: `captures("packets/Nasdaq")`. Panics where it is missing, and in a test whose mark
/// does not name it.
pub fn captures(rel: &str) -> PathBuf {
    marked("captures", rel)
}

/// Specification digests and template files, as [`captures`].
pub fn specs(rel: &str) -> PathBuf {
    marked("specs", rel)
}

/// FIX acceptance tests and dictionaries, as [`captures`].
pub fn fix(rel: &str) -> PathBuf {
    marked("fix", rel)
}

/// The same for benchmarks, which have no mark: `None` where it is missing, with the line on standard output
/// that `cargo xtask check` counts. Panics instead where `CI` is set.
pub fn if_recorded(path: &str) -> Option<PathBuf> {
    let place = root().join(path);
    if place.exists() {
        return Some(place);
    }
    let is_required = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_required, "{}", missing(&place));
    println!("skipped: needs recorded data: {path}");
    None
}

fn marked(kind: &str, rel: &str) -> PathBuf {
    let path = Path::new(kind).join(rel);
    READABLE.with_borrow(|readable| {
        let is_named = readable.is_some_and(|paths| paths.iter().any(|named| path.starts_with(named)));
        assert!(
            is_named,
            "the mark of this test does not name what it reads: #[recorded_data({path:?})]"
        );
    });
    let place = root().join(&path);
    assert!(place.exists(), "{}", missing(&place));
    place
}

fn missing(place: &Path) -> String {
    format!(
        "recorded data is missing: {} does not exist; {REMEDY}, or {ROOT_VARIABLE} names the folder that holds captures, specs and fix",
        place.display()
    )
}

fn root() -> PathBuf {
    let workspace = crate::workspace();
    match std::env::var_os(ROOT_VARIABLE) {
        Some(root) => workspace.join(root),
        None => workspace.join("../shared"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn refused(read: fn() -> PathBuf) -> bool {
        let why = catch_unwind(read).expect_err("it is not marked");
        why.downcast_ref::<String>()
            .is_some_and(|why| why.contains("the mark of this test"))
    }

    #[test]
    fn a_test_without_the_mark_may_read_nothing_even_where_the_data_is() {
        assert!(
            refused(|| captures("packets")) && refused(|| specs("cme")) && refused(|| fix("dictionaries"))
        );
    }

    #[crate::recorded_data("captures/packets")]
    #[test]
    fn a_marked_test_may_read_what_it_names_and_nothing_else() {
        assert!(captures("packets").is_dir() && captures("packets/Siac").is_dir());
        assert!(refused(|| captures("books")) && refused(|| fix("dictionaries")));
    }

    /// The folder has come or gone since the marks were expanded: tests would be skipped, or fail, for no
    /// reason.
    #[test]
    fn the_marks_were_expanded_with_the_folder_as_it_is() {
        assert_eq!(
            tickwire_recorded::recorded_data_was_there!(),
            root().join("captures").exists(),
            "run `touch crates/recorded/build.rs` and the tests again (`cargo xtask test` does)"
        );
    }
}
