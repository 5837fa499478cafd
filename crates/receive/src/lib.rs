//! The sockets of one received channel: [`intake::Intake`] joins both lines, hears recovery groups, asks request servers and keeps recovery
//! connections. It knows addresses, not protocols.
#![forbid(unsafe_code)]

pub mod intake;
