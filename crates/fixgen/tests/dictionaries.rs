//! Every dictionary of the standard becomes a module; the modules compile. What no code can be made of is
//! refused with a sentence.
//!
//! Compiling all of them takes minutes and more than a gigabyte (FIX 5.0 SP2 alone has 6,000 fields), so that
//! the ordinary run compiles a subset:
//! `TICKWIRE_FIXGEN=full cargo test -p tickwire-fixgen --test dictionaries -- --nocapture` is everything.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tickwire_fix::dict::{standard_names, standard_xml};
use tickwire_fixgen::{Error, Generator, Quantities};
use tickwire_testdata::workspace;

const VERSIONS: [&str; 9] = [
    "FIX40", "FIX41", "FIX42", "FIX43", "FIX44", "FIX50", "FIX50SP1", "FIX50SP2", "FIXT11",
];

/// Compiled by the ordinary run: the oldest, the session's, and messages whose groups lie within groups.
const SUBSET: [(&str, &[&str]); 4] = [
    ("FIX40", &["NewOrderSingle", "ExecutionReport", "Email"]),
    (
        "FIX44",
        &[
            "NewOrderSingle",
            "ExecutionReport",
            "MassQuote",
            "X",
            "TradeCaptureReport",
        ],
    ),
    ("FIX50SP2", &["BusinessMessageReject", "UserRequest"]),
    ("FIXT11", &["Logon", "Reject"]),
];

fn generator(version: &str) -> Generator {
    let name = standard_names().find(|name| name.replace('.', "") == version);
    let xml = name.and_then(standard_xml).expect("it is built in");
    Generator::from_xml(&xml, format!("{version}.xml")).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_dictionary_becomes_a_module() {
    for version in VERSIONS {
        let text = generator(version).generate().unwrap_or_else(|e| panic!("{e}"));
        let count = |what: &str| text.matches(what).count();
        println!(
            "{version}: {} messages, {} groups, {} getters, {} setters, {} listed fields, {} KiB",
            count("pub const MSG_TYPE: &'static"),
            count("impl RepeatingGroup for"),
            count("(&self) -> Result<"),
            count("self.0.put("),
            count("field_values!"),
            text.len() / 1024
        );
        let name = version.to_lowercase();
        assert!(text.contains(&format!("pub mod {name} {{")), "{version}");
    }
}

#[test]
fn the_modules_compile() {
    let is_full = std::env::var("TICKWIRE_FIXGEN").is_ok_and(|v| v == "full");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixgen");
    project(&dir);
    if is_full {
        for version in VERSIONS {
            let started = std::time::Instant::now();
            compile(&dir, &[generator(version)], "");
            println!("{version} compiles: {:.1} s", started.elapsed().as_secs_f64());
        }
        return;
    }
    let mut generators: Vec<Generator> = SUBSET
        .iter()
        .map(|(version, messages)| generator(version).messages(messages.iter().copied()))
        .collect();
    let fractions = generator("FIX42").messages(["D"]).quantities(Quantities::Decimal);
    generators.push(fractions.module("fractions"));
    let uses = "
        use tickwire_fix::typed::{FieldError, Price};
        /// Quantities may be decimals.
        pub fn quantity(order: fractions::NewOrderSingle<'_>) -> Result<Option<Price>, FieldError> {
            order.order_qty()
        }
        /// Components of components, and groups of them.
        pub fn parties(report: fix44::ExecutionReport<'_>) -> Result<usize, FieldError> {
            let mut count = 0;
            for party in report.parties().party_ids()? {
                count += party.ptys_sub_grp().party_sub_ids()?.len();
            }
            Ok(count)
        }
    ";
    compile(&dir, &generators, uses);
}

/// A package in the target directory that depends on `tickwire-fix`.
fn project(dir: &Path) {
    std::fs::create_dir_all(dir.join("src")).unwrap();
    let manifest = format!(
        "[workspace]\n[package]\nname = \"generated\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n\
         tickwire-fix = {{ path = {:?} }}\n",
        workspace().join("crates/fix")
    );
    std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    // The same versions as the workspace, which are on this machine already.
    std::fs::copy(workspace().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
}

/// Every warning is an error, a missing line of documentation too.
fn compile(dir: &Path, generators: &[Generator], uses: &str) {
    let mut lib =
        "//! Generated messages.\n#![no_std]\n#![forbid(unsafe_code)]\n#![deny(warnings, missing_docs)]\n"
            .to_owned();
    for (n, generator) in generators.iter().enumerate() {
        let path = dir.join(format!("src/generated{n}.rs"));
        generator.write(&path).unwrap_or_else(|e| panic!("{e}"));
        let _ = writeln!(lib, "include!(\"generated{n}.rs\");");
    }
    std::fs::write(dir.join("src/lib.rs"), lib + uses).unwrap();
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let output = Command::new(cargo)
        .args(["check", "--offline", "--quiet", "--manifest-path"])
        .arg(dir.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(dir.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "in {}: {}",
        dir.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A dictionary of one message and one component.
fn dictionary(message: &str, component: &str) -> Result<String, Error> {
    let field = |tag: u32, kind: &str| format!("<field number='{tag}' name='F{tag}' type='{kind}'/>");
    let fields: String = (1..100)
        .map(|tag| field(tag, if tag % 10 == 0 { "NUMINGROUP" } else { "STRING" }))
        .collect();
    let xml = format!(
        "<fix major='4' minor='4'><header/><messages><message name='M' msgtype='M'>{message}</message></messages><trailer/>\
         <components><component name='C'>{component}</component></components><fields>{fields}</fields></fix>"
    );
    Generator::from_xml(&xml, "venue.xml")?.generate()
}

#[test]
fn what_no_code_can_be_made_of_is_refused() {
    let cases = [
        (
            dictionary(
                "<component name='C'/><group name='F10'><field name='F1'/></group>",
                "<field name='F1'/>",
            ),
            "venue.xml: M: F1 (1) of the component C is also in a repeating group of the same message",
        ),
        (
            dictionary(
                "<group name='F10'><field name='F1'/><group name='F20'><field name='F1'/></group></group>",
                "",
            ),
            "venue.xml: F1 (1) begins the entries of F10 and is also in a group within them",
        ),
        (
            dictionary("<field name='F0'/>", ""),
            "venue.xml: line 1: there is no field F0",
        ),
        (
            generator("FIX44").messages(["NewOrder"]).generate(),
            "there is no message \"NewOrder\" in it; it has Heartbeat, TestRequest",
        ),
    ];
    for (generated, text) in cases {
        let error = generated.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let missing = Generator::from_file("no/such.xml").unwrap_err().to_string();
    assert!(missing.starts_with("no/such.xml: "), "{missing}");
}

/// Read the difference when this fails: it is what users' code sees.
#[test]
fn names_and_signatures_stay_as_they_are() {
    let text = dictionary(
        "<field name='F1' required='Y'/><component name='C'/><group name='F10'><field name='F2'/><field name='F3'/></group>",
        "<field name='F4' required='Y'/><field name='F5'/>",
    )
    .unwrap();
    let functions: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub fn "))
        .map(|line| line.split(" {").next().unwrap_or(line))
        .collect();
    assert_eq!(
        functions,
        [
            "read(message: &Message<'m>) -> Option<Self>",
            "message(&self) -> Message<'m>",
            "write<'b>(encoder: &mut Encoder<'b>, stamp: &mut Stamp, fill: impl FnOnce(&mut MWriter<'_, '_, 'b>)) -> \
             Result<(), WriteError>",
            "f1(&self) -> Result<&'m [u8], FieldError>",
            "c(&self) -> Option<C<'m, Message<'m>>>",
            "f10(&self) -> Result<Entries<'m, MF10Entry<'m>>, FieldError>",
            "f1(&mut self, value: &[u8]) -> &mut Self",
            "c(&mut self) -> CWriter<'_, 'w, 'b>",
            "f10<I: IntoIterator<IntoIter: ExactSizeIterator>>(&mut self, items: I, mut fill: impl FnMut(&mut \
             MF10EntryWriter<'_, 'w, 'b>, I::Item)) -> &mut Self",
            "fields(&self) -> Fields<'m>",
            "f2(&self) -> Result<Option<&'m [u8]>, FieldError>",
            "f3(&self) -> Result<Option<&'m [u8]>, FieldError>",
            "f2(&mut self, value: &[u8]) -> &mut Self",
            "f3(&mut self, value: &[u8]) -> &mut Self",
            "read(message: &Message<'m>) -> Option<Self>",
            "f4(&self) -> Result<&'m [u8], FieldError>",
            "f5(&self) -> Result<Option<&'m [u8]>, FieldError>",
            "f4(&mut self, value: &[u8]) -> &mut Self",
            "f5(&mut self, value: &[u8]) -> &mut Self",
        ]
    );
}
