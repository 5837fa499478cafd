//! How what is missing is recovered: what to ask for, how much of it at once, from which server, when a
//! snapshot is sooner, and when to stop. Pure: time is an argument, and nothing is sent here.
//!
//! ```text
//!   missing ranges ─► Planner ─► requests, several under way     Quotas: any second, any minute, the venue's day
//!                       │ ▲  ◄── answers: round trip, how much fits, what is still missing
//!                       │ └───── refusals, silence, lies ─► the other server
//!                       └─► a snapshot, when it is sooner or the quota runs short ─► SnapshotGate: back-off, logins a minute
//! ```
//! The rules, for every feed alike:
//! - A request is sent only while every quota has room for it. What had to wait is counted
//!   ([`Counter::RequestsHeld`]).
//! - As many requests are under way as the venue allows; the number grows with every answer and is halved by
//!   silence.
//! - A request asks for as much as the venue gives. Where an answer is one datagram (MoldUDP64), how many
//!   messages fit is learned from the answers, and the next request begins a little before the point where
//!   the answer should end.
//! - After a time-out by the measured round trip only what is still missing is asked for again.
//! - A snapshot is taken instead when its time, measured or assumed, is shorter than that of the requests
//!   left, when live packets come faster than the gap shrinks, or when the requests would take more than half
//!   of what the day has left.
//! - A server that is silent, refuses or lies is left for the other one, where there is one.
//! - Without progress until the deadline the feed goes on, marked ([`Counter::RecoveriesFailed`]), and tries
//!   again slowly.
//!
//! [`Counter::RequestsHeld`]: tickwire_market::Counter::RequestsHeld
//! [`Counter::RecoveriesFailed`]: tickwire_market::Counter::RecoveriesFailed

mod estimate;
mod limits;
mod planner;
mod quota;
mod servers;
mod snapshots;

pub use limits::{Answers, RecoveryLimits};
pub(crate) use planner::Plan;
pub use planner::Planner;
pub use quota::DayUse;
pub use snapshots::SnapshotGate;

#[cfg(test)]
mod tests;
