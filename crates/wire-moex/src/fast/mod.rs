//! FAST 1.1: a decoder and an encoder that are driven by template files at run time.
//!
//! Source: FIX Adapted for Streaming, FAST Specification version 1.x.1 (2006-12-20). A template file is read
//! once into a [`Plan`], a flat list of instructions; [`Decoder`] and [`Encoder`] run it without allocating
//! and without looking up a name. A message comes out as a [`Message`] over a preallocated [`Record`]; its
//! fields are had by [`Slot`]s that were resolved at start from the numbers in the templates' `id` attributes
//! (FIX tags).
//!
//! All types, operators and presences of the specification are there: integers, decimals with one operator or
//! two, ASCII and Unicode strings, byte vectors, groups, sequences, static template references, the global,
//! template, type and named dictionaries, reset templates. Not there: template references by an identifier in
//! the stream, conversions between strings and numbers (D10, D11: a record's strings stay strings), blocked
//! transfer (D12).
//!
//! Bad input is an error with the specification's code, and then the dictionaries are as they were before the
//! message.
//!
//! ```
//! use std::sync::Arc;
//! use tickwire_wire_moex::fast::{Decoder, Encoder, Limits, Plan, Record, Value};
//!
//! let plan = Arc::new(Plan::parse(
//!     r#"<template name="Hello" id="1"><string name="Who" id="58"><copy/></string></template>"#,
//! )?);
//! let who = plan.template(1).unwrap().slot(58);
//! let mut record = Record::new(&plan, &Limits::default());
//! let message = record.begin(&plan, 1).unwrap();
//! record.set(message, who, Value::Ascii(b"world"));
//!
//! let mut bytes = [0; 16];
//! let len = Encoder::new(plan.clone(), Limits::default()).encode(&record, &mut bytes)?;
//! assert_eq!(bytes[..len], *b"\xe0\x81worl\xe4");
//!
//! let mut decoder = Decoder::new(plan, Limits::default());
//! let (message, taken) = decoder.decode(&bytes)?;
//! assert_eq!((message.fields().text(who), taken), (Some(&b"world"[..]), len));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod dictionary;
mod encode;
mod error;
mod plan;
mod stream;
mod transfer;
mod value;
mod xml;

pub use decode::Decoder;
pub use encode::Encoder;
pub use error::{FastError, Fault, TemplateError, TemplateFault};
pub(crate) use plan::{Body, Instr, NONE, Op};
pub use plan::{FieldSpec, Frame, Plan, SequenceRef, Slot, TemplateRef};
pub use stream::{StreamField, StreamOperator, StreamType};
pub(crate) use transfer::Reader;
pub(crate) use value::Kind;
pub use value::{Decimal, Entries, Fields, Limits, Message, Position, Record, Value, Visit};
