//! What the package's Python half defines: exceptions, enumerations, record types. Looked up once.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use tickwire_runtime::shared::SharedError;

/// Something of `tickwire._types`.
fn of_package(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("tickwire._types")?.getattr(name)?.unbind())
}

/// Why a call failed, before it is a Python exception: made without the interpreter.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// An exception of the package, by name, and its text.
    Named(&'static str, String),
    /// Records were written over.
    Missed(u64),
    /// The feed was closed.
    Closed,
}

impl Trouble {
    pub(crate) fn not_running(why: impl ToString) -> Trouble {
        Trouble::Named("NotRunning", why.to_string())
    }

    pub(crate) fn not_found(why: String) -> Trouble {
        Trouble::Named("NotFound", why)
    }

    pub(crate) fn other(why: impl ToString) -> Trouble {
        Trouble::Named("TickwireError", why.to_string())
    }
}

impl From<SharedError> for Trouble {
    fn from(error: SharedError) -> Trouble {
        match error.may_come() {
            true => Trouble::not_running(error),
            false => Trouble::other(error),
        }
    }
}

impl From<Trouble> for PyErr {
    fn from(trouble: Trouble) -> PyErr {
        let made = |name: &str, argument: Result<u64, String>| {
            Python::attach(|py| {
                let class = of_package(py, name)?;
                let exception = match argument {
                    Ok(number) => class.call1(py, (number,)),
                    Err(text) => class.call1(py, (text,)),
                }?;
                Ok(PyErr::from_value(exception.into_bound(py)))
            })
            .unwrap_or_else(|error: PyErr| error)
        };
        match trouble {
            Trouble::Named(name, text) => made(name, Err(text)),
            Trouble::Missed(count) => made("Missed", Ok(count)),
            Trouble::Closed => PyValueError::new_err("the feed is closed"),
        }
    }
}

/// The object that stands for missed records in an iteration.
pub(crate) fn missed(py: Python<'_>, count: u64) -> PyResult<Py<PyAny>> {
    of_package(py, "Missed")?.call1(py, (count,))
}

/// An enumeration, its members by number.
pub(crate) struct Enumeration {
    name: &'static str,
    /// One more than the largest number.
    end: u8,
    members: PyOnceLock<Vec<Option<Py<PyAny>>>>,
}

impl Enumeration {
    const fn new(name: &'static str, end: u8) -> Enumeration {
        Enumeration {
            name,
            end,
            members: PyOnceLock::new(),
        }
    }

    /// The member of a number.
    pub(crate) fn member(&self, py: Python<'_>, number: u8) -> PyResult<Py<PyAny>> {
        let members = self.members.get_or_try_init(py, || {
            let class = of_package(py, self.name)?;
            Ok::<_, PyErr>(
                (0..self.end)
                    .map(|number| class.call1(py, (number,)).ok())
                    .collect(),
            )
        })?;
        let member = members.get(usize::from(number)).and_then(Option::as_ref);
        match member {
            Some(member) => Ok(member.clone_ref(py)),
            None => Err(PyValueError::new_err(format!(
                "{} has no member {number}",
                self.name
            ))),
        }
    }
}

pub(crate) static BOOK_STATE: Enumeration = Enumeration::new("BookState", 4);
pub(crate) static TRADING_STATUS: Enumeration = Enumeration::new("TradingStatus", 8);
pub(crate) static EVENT_KIND: Enumeration = Enumeration::new("EventKind", 18);
pub(crate) static SIDE: Enumeration = Enumeration::new("Side", 2);
pub(crate) static TOUCH: Enumeration = Enumeration::new("Touch", 3);

/// The member of `Health` of this value.
pub(crate) fn health(py: Python<'_>, value: &str) -> PyResult<Py<PyAny>> {
    of_package(py, "Health")?.call1(py, (value,))
}

/// A record type, and how to make arrays of it.
pub(crate) struct Records {
    name: &'static str,
    parts: PyOnceLock<(Py<PyAny>, Py<PyAny>)>,
}

impl Records {
    const fn new(name: &'static str) -> Records {
        Records {
            name,
            parts: PyOnceLock::new(),
        }
    }

    /// A read-only array over these bytes: a whole number of records.
    pub(crate) fn array(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        let (frombuffer, dtype) = self.parts.get_or_try_init(py, || {
            let frombuffer = py.import("numpy")?.getattr("frombuffer")?.unbind();
            Ok::<_, PyErr>((frombuffer, of_package(py, self.name)?))
        })?;
        frombuffer.call1(py, (PyBytes::new(py, bytes), dtype))
    }
}

pub(crate) static LEVEL: Records = Records::new("LEVEL");
pub(crate) static SHARE: Records = Records::new("SHARE");
pub(crate) static EVENT: Records = Records::new("EVENT");
pub(crate) static UPDATE: Records = Records::new("UPDATE");
pub(crate) static BUCKET: Records = Records::new("BUCKET");

/// The bytes of numbers, one after another.
pub(crate) fn bytes_of(words: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.size_hint().0 * 8);
    words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}
