//! The example strategies: each is right, in its usual form, and does what the tests in it say, by the
//! interpreter.

use std::path::{Path, PathBuf};

use tickwire_language::{Interpreter, Program, compile, explain, format, run_test};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/strategies")
}

fn examples() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder())
        .expect("the examples are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tw"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a text"))
        })
        .collect();
    files.sort();
    files
}

fn load(name: &str) -> Result<String, String> {
    std::fs::read_to_string(folder().join(name)).map_err(|e| e.to_string())
}

fn compiled(name: &str, source: &str) -> Program {
    compile(source, &load).unwrap_or_else(|wrong| {
        let told: Vec<String> = wrong.iter().map(|d| d.render(name, source)).collect();
        panic!("{}", told.join("\n"));
    })
}

#[test]
fn every_example_does_what_its_tests_say() {
    let examples = examples();
    assert_eq!(examples.len(), 10);
    let (mut tests, mut wrong) = (0, Vec::new());
    for (name, source) in &examples {
        let program = match compile(source, &load) {
            Ok(program) => program,
            Err(found) => {
                wrong.extend(found.iter().map(|d| d.render(name, source)));
                continue;
            }
        };
        assert!(program.tests.len() >= 2, "{name} has too few tests");
        for test in &program.tests {
            tests += 1;
            if let Err(found) = run_test(&program, test, Interpreter::new) {
                wrong.push(format!("test {:?}\n{}", test.name, found.render(name, source)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tests >= 20, "{tests}");
}

#[test]
fn every_example_is_in_its_usual_form_and_can_be_explained() {
    for (name, source) in examples() {
        if std::env::var_os("UPDATE").is_some() {
            let text = format(&source).expect("it has tokens");
            std::fs::write(folder().join(&name), text).expect("written");
            continue;
        }
        let formatted = format(&source).expect("it has tokens");
        assert!(
            formatted == source,
            "{name}: `tickwire strategy fmt` changes it:\n{formatted}"
        );
        assert!(explain(&compiled(&name, &source)).contains("may "));
    }
}
