//! One generator a framing: the header, and the walk over a packet's messages. Offsets come from
//! `tickwire-wire`.
//!
//! A walk has R6 the channel's set, R7 the frame without tags, R8 its end, R9 the channel, and ends in one of
//! [`crate::filter::Exits`].

pub(crate) mod cqs;
pub(crate) mod itch;
pub(crate) mod mdp3;
pub(crate) mod moex;
pub(crate) mod nyse;
pub(crate) mod openbook;
pub(crate) mod pitch;
mod sip;
pub(crate) mod uqdf;
