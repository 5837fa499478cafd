//! The native half of the Python package `tickwire`: recordings, backtests, the simulated exchange, and the
//! shared memory's reader as Python objects.
//!
//! A call copies what it reads, whole, into an object of its own; arrays are made by numpy from bytes that
//! are handed over once. Waiting for events releases the interpreter. Nothing runs Python code while it holds
//! a lock of ours, so that two threads of a program cannot wait for each other.
#![forbid(unsafe_code)]

mod book;
mod events;
mod feed;
mod reading;
mod source;
mod trading;
mod types;

use pyo3::prelude::*;

/// Reads recordings and the shared memory of the Tickwire feed handler, backtests, and hosts an exchange.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<feed::Feed>()?;
    module.add_class::<book::Book>()?;
    module.add_class::<book::SuperBook>()?;
    module.add_class::<book::National>()?;
    module.add_class::<events::Events>()?;
    module.add_class::<events::Event>()?;
    module.add_class::<events::Update>()?;
    module.add_class::<source::Source>()?;
    module.add_class::<source::Kind>()?;
    module.add_class::<source::Histogram>()?;
    module.add_class::<source::CounterInfo>()?;
    module.add_class::<reading::Reader>()?;
    module.add_class::<reading::BookIterator>()?;
    module.add_class::<reading::Batches>()?;
    module.add_class::<reading::Batch>()?;
    module.add_class::<reading::ArrowStream>()?;
    module.add_class::<trading::Backtest>()?;
    module.add_class::<trading::Exchange>()?;
    module.add_function(wrap_pyfunction!(reading::schemas, module)?)?;
    module.add_function(wrap_pyfunction!(trading::backtest, module)?)?;
    module.add_function(wrap_pyfunction!(trading::strategies, module)?)?;
    module.add_function(wrap_pyfunction!(source::counter_table, module)?)
}

/// Python's allocator aligns objects to 16 bytes: a class that wants more would be read where it does not
/// lie.
const _: () = {
    assert!(align_of::<feed::Feed>() <= 16);
    assert!(align_of::<book::Book>() <= 16);
    assert!(align_of::<book::SuperBook>() <= 16);
    assert!(align_of::<book::National>() <= 16);
    assert!(align_of::<events::Events>() <= 16);
    assert!(align_of::<events::Event>() <= 16);
    assert!(align_of::<events::Update>() <= 16);
    assert!(align_of::<reading::Reader>() <= 16);
    assert!(align_of::<reading::BookIterator>() <= 16);
    assert!(align_of::<reading::Batches>() <= 16);
    assert!(align_of::<reading::Batch>() <= 16);
    assert!(align_of::<reading::ArrowStream>() <= 16);
    assert!(align_of::<trading::Backtest>() <= 16);
    assert!(align_of::<trading::Exchange>() <= 16);
    assert!(align_of::<source::Source>() <= 16);
    assert!(align_of::<source::Kind>() <= 16);
    assert!(align_of::<source::Histogram>() <= 16);
    assert!(align_of::<source::CounterInfo>() <= 16);
};
