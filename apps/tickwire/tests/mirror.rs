//! `tickwire mirror` of a program that was built without Aeron: what it says. With Aeron:
//! `cargo xtask aeron`.

mod common;

use common::{run, text};

#[test]
fn a_program_without_aeron_says_how_to_have_one_with_it() {
    let output = run(&[
        "mirror",
        "receive",
        "--channel",
        "aeron:udp?endpoint=224.20.30.41:40456",
    ]);
    if cfg!(feature = "aeron") {
        return tickwire_testdata::not_tested("this program was built with Aeron");
    }
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--features aeron") && said.contains("docs/mirror.md"),
        "{said}"
    );
}

#[test]
fn an_external_driver_has_a_place() {
    let output = run(&["mirror", "publish", "--channel", "aeron:ipc", "--external-driver"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--aeron-dir"), "{said}");
}
