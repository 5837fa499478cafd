//! The core as a program, made by Verilator, and a run of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tickwire_rtl::Design;
use tickwire_runtime::files;

use crate::record::Record;
use crate::{CosimError, Live};

/// A core that was made into a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulator {
    program: PathBuf,
    folder: PathBuf,
}

/// Whether Verilator is to be had here.
pub fn is_there() -> bool {
    let version = Command::new("verilator")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// How Verilator has a model compiled: one file each of what runs every clock and of what runs once, which
/// needs no optimising. A quarter less work for the compiler than by default, and a program as quick.
pub const COMPILED: [&str; 4] = [
    "--output-split",
    "0",
    "-MAKEFLAGS",
    "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
];

/// The files that a simulation is made of, in order.
fn simulated(design: &Design) -> impl Iterator<Item = &tickwire_rtl::File> {
    design
        .files
        .iter()
        .filter(|file| (file.name.ends_with(".sv") && file.name != "wrap.sv") || file.name.ends_with(".cpp"))
}

impl Simulator {
    /// Writes a design into a folder and makes a program of it. What is there already of the same design is
    /// taken as it is: making it takes the better part of a minute.
    ///
    /// # Errors
    /// A folder that cannot be written; Verilator that is not there or says something.
    pub fn make(design: &Design, folder: &Path) -> Result<Simulator, CosimError> {
        let failed = |what: &Path, e: std::io::Error| CosimError::File(what.to_path_buf(), e.to_string());
        let simulator = Simulator {
            program: folder.join("obj/core_bench"),
            folder: folder.to_path_buf(),
        };
        files::create_folders(folder).map_err(|e| failed(folder, e))?;
        let is_same = simulated(design)
            .all(|file| fs::read_to_string(folder.join(&file.name)).is_ok_and(|text| text == file.text));
        if is_same && simulator.program.exists() {
            return Ok(simulator);
        }
        for file in &design.files {
            let path = folder.join(&file.name);
            files::write(&path, &file.text).map_err(|e| failed(&path, e))?;
        }
        let mut verilator = Command::new("verilator");
        verilator.current_dir(folder).args([
            "--cc",
            "--exe",
            "--build",
            "-j",
            "2",
            "-O3",
            "-Wall",
            "--assert",
            "--x-assign",
            "fast",
            "--x-initial",
            "fast",
            "--Mdir",
            "obj",
            "--top-module",
            "core",
            "-o",
            "core_bench",
        ]);
        verilator
            .args(COMPILED)
            .args(simulated(design).map(|file| file.name.as_str()));
        let output = verilator
            .output()
            .map_err(|e| CosimError::Verilator(e.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(CosimError::Verilator(said.chars().take(4_000).collect()));
        }
        Ok(simulator)
    }

    /// Plays a stimulus.
    ///
    /// # Errors
    /// A run that failed, with what it said: an assertion of the core, a file that cannot be written.
    pub fn run(&self, stimulus: &[u8], busy_percent: u32) -> Result<Record, CosimError> {
        let failed = |what: &Path, e: std::io::Error| CosimError::File(what.to_path_buf(), e.to_string());
        let (from, to) = (self.folder.join("stimulus.bin"), self.folder.join("record.bin"));
        files::write(&from, stimulus).map_err(|e| failed(&from, e))?;
        let program = std::path::absolute(&self.program).map_err(|e| failed(&self.program, e))?;
        let output = Command::new(program)
            .args([from.as_os_str(), to.as_os_str()])
            .arg(busy_percent.to_string())
            .output()
            .map_err(|e| CosimError::Verilator(e.to_string()))?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            return Err(CosimError::Run(String::from_utf8_lossy(&said).trim().to_string()));
        }
        let bytes = fs::read(&to).map_err(|e| failed(&to, e))?;
        Record::parse(&bytes).ok_or_else(|| CosimError::Run("its record breaks off".to_string()))
    }

    /// The core, which runs as long as somebody asks it to.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn live(&self) -> Result<Live, CosimError> {
        Live::start(&self.program).map_err(|e| CosimError::File(self.program.clone(), e.to_string()))
    }
}
