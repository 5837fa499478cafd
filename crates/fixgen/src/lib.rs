//! Typed FIX messages from a dictionary: reads QuickFIX's XML and writes one Rust module, for use in a build
//! script.
//!
//! ```no_run
//! // build.rs, with tickwire-fixgen among the [build-dependencies]
//! tickwire_fixgen::Generator::from_file("dictionaries/venue.xml")
//!     .and_then(|generator| {
//!         generator
//!             .module("venue")
//!             .messages(["NewOrderSingle", "ExecutionReport", "MassQuote"])
//!             .build()
//!     })
//!     .unwrap_or_else(|e| panic!("{e}"));
//! ```
//!
//! ```text
//! // lib.rs, with tickwire-fix among the [dependencies]
//! include!(concat!(env!("OUT_DIR"), "/venue.rs"));
//! ```
//!
//! The module has a view and a writer for every message, for the entries of every repeating group and for
//! every component; an enumeration for every field with listed values (`values`), and the names of fields
//! (`fields`). What they do at run time is [`tickwire_fix::typed`]. `docs/fix-dictionaries.md` is the user's
//! guide.
//!
//! [`Dictionary`] reads the file, as it does for the validator; `names` turns names of FIX into names of
//! Rust; `emit` writes.
#![forbid(unsafe_code)]

mod emit;
mod names;

use std::fmt;
use std::path::{Path, PathBuf};
use tickwire_fix::dict::{Dictionary, DictionaryError, MessageDef};

/// The type that quantities have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quantities {
    /// `market::Qty`: whole, below 2^32. A message with another one is an error of that field.
    #[default]
    Whole,
    /// `market::Price`, exact to nine decimals: for markets that trade fractions, or more than 2^32.
    Decimal,
}

/// Why nothing was generated.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read or written.
    File(PathBuf, std::io::Error),
    /// The file is not a dictionary.
    Dictionary(PathBuf, DictionaryError),
    /// The dictionary has no message of this name. The names it has follow.
    NoMessage(PathBuf, String, Vec<String>),
    /// A definition that no code can be made of: where, and what to do.
    Definition(PathBuf, String),
    /// Not called from a build script.
    NoOutDir,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, e) => write!(f, "{}: {e}", path.display()),
            Error::Dictionary(path, e) => write!(f, "{}: {e}", path.display()),
            Error::NoMessage(path, name, known) => write!(
                f,
                "{}: there is no message {name:?} in it; it has {}",
                path.display(),
                known.join(", ")
            ),
            Error::Definition(path, what) => write!(f, "{}: {what}", path.display()),
            Error::NoOutDir => {
                write!(
                    f,
                    "OUT_DIR is not set: call build() from a build script, or write() anywhere"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// What is to be generated, and from what.
#[derive(Clone, Debug)]
pub struct Generator {
    dictionary: Dictionary,
    source: PathBuf,
    module: String,
    messages: Option<Vec<String>>,
    quantities: Quantities,
}

impl Generator {
    /// From a dictionary's file. The module is named after the file unless [`Generator::module`] says
    /// otherwise.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Generator, Error> {
        let path = path.as_ref();
        let xml = std::fs::read_to_string(path).map_err(|e| Error::File(path.into(), e))?;
        Generator::from_xml(&xml, path)
    }

    /// From a dictionary's text; `source` names it in errors and in the generated module.
    pub fn from_xml(xml: &str, source: impl AsRef<Path>) -> Result<Generator, Error> {
        let source = source.as_ref().to_owned();
        let dictionary = Dictionary::parse(xml).map_err(|e| Error::Dictionary(source.clone(), e))?;
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Generator {
            dictionary,
            module: names::snake(&stem),
            source,
            messages: None,
            quantities: Quantities::Whole,
        })
    }

    /// The module's name.
    pub fn module(mut self, name: &str) -> Generator {
        self.module = name.to_owned();
        self
    }

    /// Only these messages, by name (`MassQuote`) or type (`i`). Without this call: all of the dictionary.
    pub fn messages<T: Into<String>>(mut self, wanted: impl IntoIterator<Item = T>) -> Generator {
        self.messages = Some(wanted.into_iter().map(Into::into).collect());
        self
    }

    /// The type of quantities.
    pub fn quantities(mut self, quantities: Quantities) -> Generator {
        self.quantities = quantities;
        self
    }

    /// The module's text.
    pub fn generate(&self) -> Result<String, Error> {
        let messages = self.wanted()?;
        emit::module(
            &self.dictionary,
            &messages,
            &self.module,
            &self.source,
            self.quantities,
        )
        .map_err(|what| Error::Definition(self.source.clone(), what))
    }

    /// Writes the module to a file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        std::fs::write(path, self.generate()?).map_err(|e| Error::File(path.into(), e))
    }

    /// In a build script: writes `MODULE.rs` into `OUT_DIR`, and tells cargo to do so again when the
    /// dictionary changes.
    pub fn build(&self) -> Result<PathBuf, Error> {
        let dir = std::env::var_os("OUT_DIR").ok_or(Error::NoOutDir)?;
        println!("cargo::rerun-if-changed={}", self.source.display());
        let path = Path::new(&dir).join(format!("{}.rs", self.module));
        self.write(&path)?;
        Ok(path)
    }

    /// The messages wanted, in the order of their types.
    fn wanted(&self) -> Result<Vec<&MessageDef>, Error> {
        let all = self.dictionary.messages();
        let Some(wanted) = &self.messages else {
            return Ok(all.iter().collect());
        };
        let is = |m: &MessageDef, name: &str| *m.name == *name || *m.msg_type == *name.as_bytes();
        if let Some(unknown) = wanted.iter().find(|name| !all.iter().any(|m| is(m, name))) {
            let known = all.iter().map(|m| m.name.to_string()).collect();
            return Err(Error::NoMessage(self.source.clone(), unknown.clone(), known));
        }
        let chosen = all.iter().filter(|m| wanted.iter().any(|name| is(m, name)));
        Ok(chosen.collect())
    }
}
