//! House rules a machine can hold: what a review had to say twice becomes a rule here, with the remedy in its
//! message.

use crate::purity;
use crate::run::{Context, Outcome, root};
use crate::source::{self, code_only, files, lines_with, read, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates outside the pure ones that may hold unsafe code (and must prove each use of it).
const UNSAFE_CRATES: &[&str] = &["crates/runtime/", "crates/bare/", "crates/capi/"];

/// Directories on machines of developers, which mean nothing elsewhere; pieced together so that this file
/// passes its own rule.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

/// Kinds of text file that are read by the rules on text.
const TEXT: &[&str] = &[
    "rs", "md", "toml", "txt", "yml", "yaml", "sh", "c", "h", "py", "pyi",
];

/// The whole step.
pub(crate) fn check(_: &Context) -> Outcome {
    let rules = [
        ("dead link", dead_links()),
        ("no opening", openings()),
        ("wire struct", wire_citations()),
        ("safety", safety_comments()),
        ("comment", crate::comments::too_wide()),
        ("nobody includes", orphan_modules()),
        ("orphan vector", orphan_vectors()),
        ("dead vector", dead_vectors()),
        ("ADR", adrs()),
        ("page", pages_without_a_place()),
        ("dead source", dead_sources()),
        ("machine path", machine_paths()),
        ("recorded data", recorded_data()),
        ("manifest", crate::packages::manifests()),
        ("package", crate::packages::files_outside()),
        ("unused dependency", crate::packages::unused()),
        ("program", crate::packages::programs_alike()),
        ("unstripped", crate::packages::programs_unstripped()),
        ("built each time", crate::packages::built_each_time()),
        ("profile", crate::packages::profiles()),
        ("crate's README", crate_readmes()),
        ("bench", benches()),
        ("fuzz target", fuzz_targets()),
        ("ci", ci()),
        ("counted cores", counted_cores()),
        ("idle atomic", idle_atomics()),
        ("unread key", crate::keys::unread()),
        ("file of its own", files_made_elsewhere()),
        ("clock that is set", wall_read_elsewhere()),
        ("import", crate::rooms::check()),
        ("receive loop", crate::receive_loop::others(&rust_files())),
        ("sink", crate::sinks::deaf(&rust_files())),
        ("unread line", crate::unread::others(&rust_files())),
        ("short wait", crate::patience::short(&rust_files())),
        ("inherited core", crate::spawned::inheriting(&rust_files())),
        ("silent skip", silent_skips()),
        ("lock file", crate::locks::stale()),
        ("size", crate::sizes::beyond(&rust_files())),
    ];
    Outcome::of_rules(&rules, "cargo xtask tidy")
}

/// Rust files of the members and of the Python package (not of the fuzz workspace).
fn rust_files() -> Vec<PathBuf> {
    ["crates", "apps", "examples", "xtask", "bindings"]
        .iter()
        .flat_map(|dir| files(dir, "rs"))
        .collect()
}

fn markdown() -> Vec<PathBuf> {
    files("", "md")
}

/// Relative links in Markdown lead to files that exist, fragments to headings that exist.
fn dead_links() -> Vec<String> {
    let mut findings = Vec::new();
    for page in markdown() {
        for (line, target) in links(&read(&page)) {
            if let Some(why) = dead(&page, &target) {
                findings.push(format!("{}:{line}: ({target}) {why}", shown(&page)));
            }
        }
    }
    findings
}

fn dead(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() {
        page.to_owned()
    } else {
        page.parent()?.join(path)
    };
    if !file.exists() {
        return Some("leads nowhere: correct the path or remove the link".into());
    }
    if fragment.is_empty()
        || file.extension().is_none_or(|e| e != "md")
        || headings(&read(&file)).iter().any(|h| h == fragment)
    {
        return None;
    }
    Some(format!(
        "has no heading of that name: {} has {:?}",
        shown(&file),
        headings(&read(&file))
    ))
}

/// `[text](target)` outside code, with line numbers.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in prose.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or("");
            found.push((at + 1, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    found
}

/// Headings as GitHub names their fragments.
fn headings(text: &str) -> Vec<String> {
    let titles = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let slug = |title: &str| -> String {
        let kept = title
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>();
        kept.replace(' ', "-")
    };
    titles.map(slug).collect()
}

/// A source file opens with what it is.
fn openings() -> Vec<String> {
    let sources = rust_files()
        .into_iter()
        .filter(|path| !read(path).starts_with("//!"));
    sources
        .map(|path| {
            format!(
                "{}: open with //! what this file is and the specification it follows",
                shown(&path)
            )
        })
        .collect()
}

/// Every wire struct names title and section of the specification its layout was read from.
fn wire_citations() -> Vec<String> {
    let mut findings = Vec::new();
    let wire = files("crates", "rs")
        .into_iter()
        .filter(|path| shown(path).starts_with("crates/wire-") && shown(path).contains("/src/"));
    for path in wire {
        let text = read(&path);
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).filter(|&at| opens_layout(lines[at])) {
            if !cites(&doc_above(&lines, at)) {
                findings.push(format!(
                    "{}:{}: the doc comment must cite the specification: title, revision, and its section in quotes or as §, or its schema",
                    shown(&path),
                    at + 1
                ));
            }
        }
    }
    findings
}

/// Whether a line opens a layout of the table macros: `pub struct Header = "DownstreamPacket", 20 {`.
fn opens_layout(line: &str) -> bool {
    let size = line
        .trim_end()
        .strip_suffix(" {")
        .and_then(|head| head.rsplit_once("\", "));
    !line.trim_start().starts_with("//")
        && line.contains(" = \"")
        && size.is_some_and(|(_, size)| !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit()))
}

/// The doc comment above a line.
fn doc_above(lines: &[&str], at: usize) -> String {
    let above = lines[..at].iter().rev().map(|line| line.trim_start());
    let doc: Vec<&str> = above
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .collect();
    doc.into_iter().rev().collect::<Vec<_>>().join(" ")
}

fn cites(doc: &str) -> bool {
    let names_revision = doc
        .split(' ')
        .any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    names_revision
        && ["§", "\"", "section ", "page ", "p. ", "schema "]
            .iter()
            .any(|word| doc.contains(word))
}

/// Unsafe code only where it is allowed. Clippy asks for the proof of blocks and impls; functions state
/// obligations here.
fn safety_comments() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let (text, place) = (read(&path), shown(&path));
        let lines: Vec<&str> = text.lines().collect();
        for at in lines_with(&code_only(&text), "unsafe").map(|line| line - 1) {
            let is_allowed =
                UNSAFE_CRATES.iter().any(|c| place.starts_with(c)) || purity::is_listed_unsafe(&path);
            let is_bench_or_test = place.contains("/benches/") || place.contains("/tests/");
            if !is_allowed && !is_bench_or_test {
                findings.push(format!(
                    "{place}:{}: unsafe code lives in {UNSAFE_CRATES:?} and listed files only",
                    at + 1
                ));
            } else if is_own_unsafe_fn(lines[at]) && !doc_above(&lines, at).contains("# Safety") {
                findings.push(format!(
                    "{place}:{}: list what the caller must hold: /// # Safety",
                    at + 1
                ));
            }
        }
    }
    findings
}

/// A function of ours, not one that a trait prescribes: those have their obligations there.
fn is_own_unsafe_fn(line: &str) -> bool {
    line.contains("unsafe fn") && (line.starts_with("unsafe") || line.trim_start().starts_with("pub"))
        || line.contains("unsafe extern \"C\" fn")
}

/// Every module file is named by a `mod` of its parent.
fn orphan_modules() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        let stem = path
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default();
        let is_root = ["lib", "main", "build"].contains(&stem.as_str()) || place.contains("/src/bin/");
        if !place.contains("/src/") || is_root {
            continue;
        }
        let (name, dir) = if stem == "mod" {
            (dir_name(&path), path.parent().and_then(Path::parent))
        } else {
            (stem, path.parent())
        };
        let Some(dir) = dir else { continue };
        let parents = ["lib.rs", "main.rs", "mod.rs"].map(|file| dir.join(file));
        let sibling = dir.with_extension("rs");
        let is_named = |text: &str| text.contains(&format!("mod {name};"));
        if !parents
            .iter()
            .chain([&sibling])
            .any(|parent| is_named(&read(parent)))
        {
            findings.push(format!(
                "{place}: name it with `mod {name};` in its parent, or remove it"
            ));
        }
    }
    findings
}

fn dir_name(path: &Path) -> String {
    path.parent()
        .and_then(Path::file_name)
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Whether a text names this folder itself, not only one below it.
fn names_folder(text: &str, folder: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "/_-".contains(c);
    text.match_indices(folder)
        .any(|(at, _)| !text[at + folder.len()..].starts_with(goes_on))
}

/// Every vector is read by a test: its path or its directory is named in Rust.
fn orphan_vectors() -> Vec<String> {
    let sources: Vec<String> = rust_files().iter().map(|path| read(path)).collect();
    let is_named = |name: &str| sources.iter().any(|text| text.contains(name));
    let folder_is_named = |dir: &str| {
        let folder = format!("vectors/{dir}");
        is_named(&format!("\"{dir}\"")) || sources.iter().any(|text| names_folder(text, &folder))
    };
    // Folders have hundreds of files, and there are a thousand sources.
    let mut folders: BTreeMap<String, bool> = BTreeMap::new();
    let mut findings = Vec::new();
    for path in files("vectors", "")
        .into_iter()
        .filter(|path| path.extension().is_none_or(|e| e != "md"))
    {
        let place = shown(&path);
        let relative = place.strip_prefix("vectors/").unwrap_or(&place);
        let dir = relative.rsplit_once('/').map_or("", |(dir, _)| dir);
        let is_read = *folders
            .entry(dir.to_owned())
            .or_insert_with(|| folder_is_named(dir));
        if !is_read && !is_named(&format!("\"{relative}\"")) {
            findings.push(format!(
                "{place}: no test reads it: name the file or its directory \"{dir}\" in one, or remove it"
            ));
        }
    }
    findings
}

/// Vectors named in comments and docs exist.
fn dead_vectors() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files().into_iter().chain(markdown()) {
        for (at, line) in read(&path).lines().enumerate() {
            for part in line.split("vectors/").skip(1) {
                let named = part
                    .split(|c: char| !(c.is_alphanumeric() || "/_-.".contains(c)))
                    .next()
                    .unwrap_or("");
                let named = named.trim_end_matches('.');
                let is_file = [".toml", ".txt"].iter().any(|ext| named.ends_with(ext));
                if is_file && !root().join("vectors").join(named).exists() {
                    findings.push(format!(
                        "{}:{}: vectors/{named} does not exist",
                        shown(&path),
                        at + 1
                    ));
                }
            }
        }
    }
    findings
}

/// Decisions are numbered without holes, carry a status and stand in the index.
fn adrs() -> Vec<String> {
    let index = read(&root().join("docs/adr/README.md"));
    let mut findings = Vec::new();
    let records = files("docs/adr", "md")
        .into_iter()
        .filter(|path| !path.ends_with("README.md"));
    for (at, path) in records.enumerate() {
        let name = path
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        if !name.starts_with(&format!("{:04}-", at + 1)) {
            findings.push(format!("{}: should be number {:04}", shown(&path), at + 1));
        }
        if !index.contains(&format!("({name})")) {
            findings.push(format!("{}: add it to docs/adr/README.md", shown(&path)));
        }
        if !read(&path).contains("Status:") {
            findings.push(format!(
                "{}: add a line 'Status: accepted <date>' (or superseded by …)",
                shown(&path)
            ));
        }
    }
    findings
}

/// Every page of the documentation stands in its index.
fn pages_without_a_place() -> Vec<String> {
    let index = read(&root().join("docs/README.md"));
    let linked: Vec<String> = links(&index)
        .into_iter()
        .map(|(_, target)| target.split('#').next().unwrap_or_default().to_owned())
        .collect();
    let pages = files("docs", "md").into_iter().map(|path| shown(&path));
    pages
        .filter_map(|page| page.strip_prefix("docs/").map(str::to_owned))
        .filter(|page| {
            let is_record = page.starts_with("adr/") && page != "adr/README.md";
            page != "README.md" && !is_record && !linked.contains(page)
        })
        .map(|page| format!("docs/{page}: no line of docs/README.md leads to it"))
        .collect()
}

/// Sources that pages name by a path are there: they move, and pages stay.
fn dead_sources() -> Vec<String> {
    let sources: Vec<String> = rust_files()
        .iter()
        .map(|path| format!("/{}", shown(path)))
        .collect();
    let mut findings = Vec::new();
    // What changed once may have moved since.
    let pages = markdown()
        .into_iter()
        .filter(|page| !page.ends_with("CHANGELOG.md"));
    for page in pages {
        for (at, line) in read(&page).lines().enumerate() {
            let spans = line.split('`').skip(1).step_by(2);
            let named = spans.filter(|span| {
                let is_plain = span
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-/.".contains(c));
                is_plain && span.contains('/') && span.ends_with(".rs")
            });
            for span in named {
                let ending = format!("/{}", span.trim_start_matches("../"));
                if !sources.iter().any(|source| source.ends_with(&ending)) {
                    findings.push(format!("{}:{}: there is no {span}", shown(&page), at + 1));
                }
            }
        }
    }
    findings
}

/// Nothing committed speaks of one machine's directories.
fn machine_paths() -> Vec<String> {
    let mut findings = Vec::new();
    for path in TEXT
        .iter()
        .flat_map(|ext| files("", ext))
        .chain([root().join(".ci/run")])
    {
        for (at, line) in read(&path).lines().enumerate() {
            if let Some(found) = MACHINE_PATHS.iter().find(|found| line.contains(*found)) {
                findings.push(format!(
                    "{}:{}: `{found}` exists on one machine only: std::env::temp_dir, or a variable",
                    shown(&path),
                    at + 1
                ));
            }
        }
    }
    findings
}

/// Recorded data is read through `crates/testdata`, which refuses what a test's mark does not name; so nobody
/// else knows where it lies.
fn recorded_data() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let (text, place) = (read(&path), shown(&path));
        let is_own = ["crates/testdata/", "crates/recorded/", "xtask/"]
            .iter()
            .any(|own| place.starts_with(own));
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.collect();
        let names_it = ["TICKWIRE_SHARED", concat!("../sha", "red")];
        if !is_own && names_it.iter().any(|name| code.contains(name)) {
            findings.push(format!(
                "{place}: ask tickwire_testdata for recorded data: a test with #[recorded_data(...)], a benchmark by if_recorded"
            ));
        }
    }
    findings
}

/// Crates that are no library: their README shows a command.
const PROGRAMS: &[&str] = &["bare"];

/// Every crate has a README, which is part of its documentation (`include_str!`) or repeats an example of it:
/// the tests compile that.
fn crate_readmes() -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, _) in source::manifests() {
        let place = shown(&dir);
        let Some(name) = place.strip_prefix("crates/") else {
            continue;
        };
        let readme = read(&dir.join("README.md"));
        if readme.is_empty() {
            findings.push(format!(
                "{place}/README.md: say in a sentence what the crate is and in one for whom, and show the example of src/lib.rs"
            ));
            continue;
        }
        let library = read(&dir.join("src/lib.rs"));
        let (shows, compiled) = (code_blocks(&readme, ""), code_blocks(&library, "//!"));
        let is_compiled = library.contains("include_str!(\"../README.md\")")
            || shows.iter().any(|block| compiled.contains(block));
        if !PROGRAMS.contains(&name) && !is_compiled {
            findings.push(format!(
                "{place}/README.md: its example is none of those at the head of src/lib.rs, word for word (lines that begin with # apart)"
            ));
        }
    }
    findings
}

/// The blocks of code in a text whose lines begin with a mark, without the lines that rustdoc hides.
fn code_blocks(text: &str, mark: &str) -> Vec<Vec<String>> {
    let (mut blocks, mut open) = (Vec::new(), None::<Vec<String>>);
    for line in text.lines().map_while(|line| line.strip_prefix(mark)) {
        let line = match mark.is_empty() {
            true => line,
            false => line.strip_prefix(' ').unwrap_or(line),
        };
        match (&mut open, line.starts_with("```")) {
            (None, true) => open = Some(Vec::new()),
            (Some(_), true) => blocks.extend(open.take()),
            (Some(block), false) if !line.starts_with("# ") => block.push(line.to_owned()),
            _ => {}
        }
    }
    blocks
}

/// Every benchmark file is declared without the unstable harness, says what a regression would mean, and
/// allocates as what ships does: books of four-kilobyte pages are not the ones that anybody runs.
fn benches() -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, manifest) in source::manifests() {
        let declared = manifest
            .get("bench")
            .and_then(toml::Value::as_array)
            .cloned()
            .unwrap_or_default();
        let is_program = |path: &PathBuf| {
            let is_file = path.parent().is_some_and(|folder| folder.ends_with("benches"));
            is_file || path.ends_with("main.rs")
        };
        let benches = files(&shown(&dir.join("benches")), "rs");
        for path in benches.into_iter().filter(is_program) {
            let is_file = !path.ends_with("main.rs");
            let named = if is_file {
                Some(path.as_path())
            } else {
                path.parent()
            };
            let stem = named
                .and_then(Path::file_stem)
                .unwrap_or_default()
                .to_string_lossy();
            let row = declared
                .iter()
                .find(|b| b.get("name").and_then(toml::Value::as_str) == Some(&stem));
            let has_no_harness =
                row.and_then(|b| b.get("harness")).and_then(toml::Value::as_bool) == Some(false);
            if !has_no_harness {
                findings.push(format!(
                    "{}: declare [[bench]] name = \"{stem}\", harness = false",
                    shown(&path)
                ));
            }
            let text = read(&path);
            if !text.to_lowercase().contains("regression") {
                findings.push(format!(
                    "{}: say in the opening what a regression would mean",
                    shown(&path)
                ));
            }
            if !text.contains("#[global_allocator]") {
                findings.push(format!(
                    "{}: measure what ships: #[global_allocator] static ALLOCATOR: tickwire_runtime::alloc::Allocator",
                    shown(&path)
                ));
            }
        }
    }
    findings
}

/// Every registered fuzz target has its wrapper for cargo-fuzz, and the other way round.
fn fuzz_targets() -> Vec<String> {
    let registry = read(&root().join("crates/fuzzing/src/lib.rs"));
    let manifest = read(&root().join("fuzz/Cargo.toml"));
    let wrappers = files("fuzz/fuzz_targets", "rs");
    let name = |path: &PathBuf| {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let wrapped: Vec<String> = wrappers.iter().map(name).collect();
    let rows = ["target(", "name:"]
        .iter()
        .flat_map(|row| registry.split(row).skip(1));
    let quoted = rows.filter_map(|row| row.trim_start().strip_prefix('"')?.split('"').next());
    let registered: Vec<&str> = quoted.collect();
    let mut findings = Vec::new();
    for target in registered.iter().filter(|t| !wrapped.iter().any(|w| w == *t)) {
        findings.push(format!(
            "{target}: add fuzz/fuzz_targets/{target}.rs and its [[bin]] in fuzz/Cargo.toml"
        ));
    }
    for target in wrapped.iter().filter(|w| !registered.contains(&w.as_str())) {
        findings.push(format!("{target}: register it in crates/fuzzing/src/lib.rs"));
    }
    for target in wrapped
        .iter()
        .filter(|w| !manifest.contains(&format!("name = \"{w}\"")))
    {
        findings.push(format!("{target}: add its [[bin]] to fuzz/Cargo.toml"));
    }
    findings
}

/// CI runs the test command of the README and nothing else.
fn ci() -> Vec<String> {
    let (script, readme) = (read(&root().join(".ci/run")), read(&root().join("README.md")));
    let mut findings = Vec::new();
    if !script.contains("cargo xtask check") {
        findings.push(".ci/run: run `cargo xtask check`".to_owned());
    }
    if !readme.contains("cargo xtask check") {
        findings.push("README.md: name the test command, `cargo xtask check`".to_owned());
    }
    findings
}

/// Where cores are counted and threads pinned, and the system calls below it.
const CORES: &[&str] = &["crates/runtime/src/affinity.rs", "crates/runtime/src/sys.rs"];

/// Whatever else tells how many cores there are: a pinned thread is told one.
const COUNTS: &[&str] = &[
    concat!("available_", "parallelism"),
    concat!("sched_", "getaffinity"),
    concat!("sched_", "setaffinity"),
    concat!("sys::", "affinity("),
    concat!("sys::", "set_affinity("),
    concat!("_SC_", "NPROCESSORS"),
];

/// Cores are counted in one place, before any thread is pinned: elsewhere a thread that is pinned would find
/// one.
fn counted_cores() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        if !CORES.contains(&place.as_str()) {
            findings.extend(counts_in(&read(&path)).into_iter().map(|line| {
                format!("{place}:{line}: ask tickwire_runtime::affinity::Cores::count(), which counts before any thread is pinned")
            }));
        }
    }
    findings
}

/// Where a test may say by itself that it did not run: benchmarks have a line of their own, and the helper is
/// the helper.
const MAY_SAY_SKIPPED: &[&str] = &["crates/testdata/", "xtask/"];

/// What a test prints is not shown when it passes: one that finds nothing to test here says so by the helper,
/// which is counted.
fn silent_skips() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        if !MAY_SAY_SKIPPED.iter().any(|known| place.starts_with(known)) {
            findings.extend(skips_in(&read(&path)).into_iter().map(|line| {
                format!("{place}:{line}: say it by tickwire_testdata::not_tested, or nobody hears of it")
            }));
        }
    }
    findings
}

/// Lines of calls that print a text which begins with "skipped" or "not tested".
fn skips_in(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("println!(") {
        let said = text[at..].split_once('"').map_or("", |(_, rest)| rest);
        let said: String = said
            .replace("\\n", " ")
            .trim_start_matches(|c: char| !c.is_alphanumeric())
            .chars()
            .take(10)
            .collect();
        let said = said.to_lowercase();
        if said.starts_with("skipped") || said == "not tested" {
            found.push(text[..at].lines().count());
        }
    }
    found
}

/// Calls that make files and folders, as everybody's umask would have them and through whatever link is
/// there.
const MAKES_FILES: &[&str] = &[
    "File::create",
    "File::create_new",
    "File::options",
    "OpenOptions::new",
    "fs::write",
    "create_dir",
    "create_dir_all",
    "DirBuilder::new",
];
/// Where such calls are right, and why.
const FILES_ARE_MADE_IN: &[(&str, &str)] = &[
    ("crates/runtime/src/files.rs", "is the helper"),
    ("crates/runtime/src/affinity.rs", "writes to a device"),
    ("crates/runtime/src/host/tune.rs", "writes to files of the kernel"),
    (
        "crates/runtime/src/shared.rs",
        "opens regions to read them, without following links",
    ),
    (
        "crates/runtime/src/xdp/delegate.rs",
        "opens /dev/net/tun and sets /proc/sys of the interface that it makes",
    ),
    ("crates/fixgen/", "writes sources while a program is built"),
    ("crates/fuzzing/", "is a tool of developers"),
    ("crates/testdata/", "is for tests"),
    ("xtask/", "is a tool of developers"),
];

/// Whatever the program writes goes through one helper: ours alone (0600, 0700), no link followed, nobody
/// else's file touched.
fn files_made_elsewhere() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        let is_test = ["/tests/", "/tests.rs", "/benches/", "/examples/", "/golden.rs"]
            .iter()
            .any(|part| place.contains(part));
        if is_test || FILES_ARE_MADE_IN.iter().any(|(own, _)| place.starts_with(own)) {
            continue;
        }
        findings.extend(makes_files_in(&read(&path)).into_iter().map(|line| {
            format!(
                "{place}:{line}: make files and folders through tickwire_runtime::files: 0600 and 0700, no link followed, another user's never \
                 written to"
            )
        }));
    }
    findings
}

/// Lines of the program, not of its tests, that make files themselves.
fn makes_files_in(text: &str) -> BTreeSet<usize> {
    lines_with_any(&source::production_only(text), MAKES_FILES)
}

/// Readings of the clock that can be set.
const READS_WALL: &[&str] = &[
    concat!("System", "Time"),
    concat!("CLOCK_", "REALTIME"),
    concat!("clock::", "wall"),
];
/// Where such a reading is right, and why.
const WALL_IS_READ_IN: &[(&str, &str)] = &[
    (
        "crates/runtime/src/clock.rs",
        "is the clock: it notices that UTC was set",
    ),
    ("crates/runtime/src/sys.rs", "lets tests set it"),
    (
        "crates/views/src/region.rs",
        "shows ages of a region whose writer does not say its clock",
    ),
    ("crates/fuzzing/", "is a tool of developers"),
    ("xtask/", "is a tool of developers"),
];

/// Nothing is waited for or measured by a clock that somebody can set: all time is of the one clock, which
/// stamps by UTC where that is wanted.
fn wall_read_elsewhere() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        let is_test = ["/tests/", "/tests.rs", "/benches/", "/examples/"]
            .iter()
            .any(|part| place.contains(part));
        if is_test || WALL_IS_READ_IN.iter().any(|(own, _)| place.starts_with(own)) {
            continue;
        }
        findings.extend(reads_wall_in(&read(&path)).into_iter().map(|line| {
            format!(
                "{place}:{line}: take time from tickwire_runtime::clock::Clock, which is never set; UTC for a stamp is Clock::wall_at of it"
            )
        }));
    }
    findings
}

/// Lines of the program, not of its tests, that read the clock that can be set.
fn reads_wall_in(text: &str) -> BTreeSet<usize> {
    lines_with_any(&source::production_only(text), READS_WALL)
}

/// Lines of code that count cores themselves.
fn counts_in(text: &str) -> BTreeSet<usize> {
    lines_with_any(&code_only(text), COUNTS)
}

/// Lines with any of these words.
fn lines_with_any(code: &str, words: &[&str]) -> BTreeSet<usize> {
    let lines = words.iter().flat_map(|word| lines_with(code, word));
    lines.collect()
}

/// Atomic operations that change nothing, whole or in two parts so that this line is none.
const IDLE: &[&str] = &[
    concat!("fetch_or", "(0,"),
    concat!("fetch_add", "(0,"),
    concat!("fetch_sub", "(0,"),
    concat!("fetch_xor", "(0,"),
];

/// Compilers know that such an operation changes nothing and leave it out, and with it what it was there for:
/// a page that was to be touched, a line that was to be owned.
fn idle_atomics() -> Vec<String> {
    let mut findings = Vec::new();
    for path in rust_files() {
        let place = shown(&path);
        findings.extend(lines_with_any(&code_only(&read(&path)), IDLE).into_iter().map(|line| {
            format!("{place}:{line}: compilers leave out an operation that changes nothing: exchange a value for itself (compare_exchange)")
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_the_clock_that_is_set_is_found_and_a_test_of_it_is_not() {
        let reading = concat!("std::time::System", "Time::now()");
        let text = format!(
            "// {reading}\nlet then = {reading};\nlet now = clock.now();\n#[cfg(test)]\nmod tests {{ fn a() {{ {reading}; }} }}\n"
        );
        assert_eq!(reads_wall_in(&text), [2].into());
    }

    #[test]
    fn who_counts_cores_is_found_and_who_asks_for_the_count_is_not() {
        let count = concat!("std::thread::available_", "parallelism()");
        let text =
            format!("// {count}\nlet spins = {count}.is_ok();\nlet n = Cores::count().parallelism();\n");
        assert_eq!(counts_in(&text), [2].into());
    }

    #[test]
    fn atomic_operations_that_change_nothing_are_found() {
        let text = format!("// a.{}\na.{}\na.fetch_or(1, Relaxed);\n", IDLE[0], IDLE[0]);
        assert_eq!(lines_with_any(&code_only(&text), IDLE), [2].into());
    }

    #[test]
    fn who_is_silent_about_what_was_not_tested_is_found() {
        let text = "fn a() {\n    eprintln!(\"NOT TESTED: no root\");\n    println!(\n        \"\\n*** skipped here\"\n    );\n    println!(\"2 skipped\");\n}\n";
        assert_eq!(skips_in(text), [2, 3]);
    }

    #[test]
    fn who_makes_files_himself_is_found_and_tests_may() {
        let text = "use std::fs;\nlet a = File::create(path)?;\nfs::write(path, b)?;\nfiles::create(path)?;\n// fs::write\n\
                    std::fs::create_dir_all(path)?;\nOpenOptions::new().append(true);\n#[cfg(test)]\nmod tests {\n fs::write(a, b);\n}\n";
        assert_eq!(makes_files_in(text), [2, 3, 6, 7].into());
    }

    #[test]
    fn an_example_is_the_same_in_a_readme_and_behind_marks() {
        let docs = "//! A crate.\n//!\n//! ```\n//! let a = 1;\n//!\n//! # Ok::<(), ()>(())\n//! ```\nmod a;\n//! ```\n";
        let readme = "# a\n\n```rust\nlet a = 1;\n\n```\n";
        assert_eq!(code_blocks(docs, "//!"), code_blocks(readme, ""));
        assert_eq!(code_blocks(docs, "//!"), [["let a = 1;", ""]]);
        assert_ne!(
            code_blocks(docs, "//!"),
            code_blocks("```\nlet a = 2;\n```\n", "")
        );
    }

    #[test]
    fn links_are_found_outside_code_only() {
        let text = "see [a](x.md#here) and `[b](no.md)`\n```\n[c](no.md)\n```\n[d](<y.md>)";
        assert_eq!(links(text), [(1, "x.md#here".to_owned()), (5, "y.md".to_owned())]);
    }

    #[test]
    fn headings_become_fragments_as_on_github() {
        assert_eq!(
            headings("# One `two` (three)\ntext\n## A & B"),
            ["one-two-three", "a--b"]
        );
    }

    #[test]
    fn a_citation_names_a_place_in_the_document() {
        let lines = [
            "/// Header. MoldUDP64 1.00, \"Downstream Packet\".",
            "pub struct Header = \"DownstreamPacket\", 20 {",
        ];
        assert!(opens_layout(lines[1]) && cites(&doc_above(&lines, 1)));
        assert!(cites("/// Add Order. TotalView-ITCH 5.0 §1.3.1") && !cites("/// Add Order, of 36 bytes."));
        assert!(!opens_layout("            pub struct $name = $spec, $size {"));
    }
}
