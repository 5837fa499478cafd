//! The tables of `docs/shared-memory.md` say what the code says. `UPDATE=1` writes them.

use std::fmt::Write;
use std::path::Path;
use tickwire_shm::layout::SECTIONS;

const BEGIN: &str = "<!-- fields -->\n";
const END: &str = "<!-- end of fields -->\n";

fn tables() -> String {
    let mut out = String::new();
    for section in SECTIONS {
        let (name, words) = (section.name, section.words);
        write!(
            out,
            "\n### {name}\n{} {words} words.\n\n| word | field | |\n|---|---|---|\n",
            section.sentence
        )
        .expect("writing to a string");
        for field in section.fields {
            let last = field.offset + field.words - 1;
            let place = match field.words {
                1 => format!("{last}"),
                _ => format!("{}–{last}", field.offset),
            };
            writeln!(out, "| {place} | `{}` | {} |", field.name, field.sentence)
                .expect("writing to a string");
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_document_has_the_tables_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shared-memory.md");
    let text = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(BEGIN).expect("a place for the tables");
    let (found, after) = rest.split_once(END).expect("an end of the tables");
    let expected = tables();
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).expect("written");
    }
    assert_eq!(
        found, expected,
        "run: UPDATE=1 cargo test -p tickwire-shm --test document"
    );
}
