//! Expected texts of the tests: files of `expected/`. `UPDATE=1 cargo test -p tickwire-views` rewrites them;
//! read the diff.

use std::path::Path;

/// Compares a text with the file of that name.
pub(crate) fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/expected")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("the folder of expected texts");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((at, (is, should))) = text
        .lines()
        .zip(expected.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b)
    {
        panic!(
            "{name}, line {}:\n is     {is:?}\n should {should:?}\nUPDATE=1 rewrites",
            at + 1
        );
    }
    assert_eq!(text, expected, "{name}; UPDATE=1 rewrites");
}
