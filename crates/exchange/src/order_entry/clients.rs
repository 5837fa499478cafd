//! What an operator is told of the clients: who came and went, why, and what was cancelled with it; and how
//! each of them stands.

use alloc::collections::VecDeque;

use tickwire_fix::{DisconnectReason, Reason};
use tickwire_market::{Nanos, SeqNo};

use super::Route;
use crate::order::Firm;

/// Events that nobody took; with more, the oldest are lost.
const EVENTS_MAX: usize = 256;

/// What happened to a client's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// It logged on. Heartbeats every so many seconds; 0 is none.
    LoggedOn {
        /// HeartBtInt (108).
        heartbeat_s: u32,
    },
    /// It is over, for this reason, with the text that a logout had; the connection is closed once everything
    /// is transmitted.
    Ended {
        /// Why.
        reason: DisconnectReason,
        /// What was said, maybe nothing.
        text: Reason,
    },
    /// It asked for messages again that are not kept any more: they were sent as gap fills.
    NotKept {
        /// The first number of them,
        first: SeqNo,
        /// the last one,
        last: SeqNo,
        /// and how many.
        count: u64,
    },
    /// Its connection is gone.
    Disconnected,
    /// What was open of it was cancelled, because of its heartbeats or its connection.
    Cancelled {
        /// Orders.
        orders: u32,
        /// Instruments that it quoted.
        quotes: u32,
        /// Since it was last heard, in nanoseconds, where that is why.
        silent_ns: Option<u64>,
    },
    /// Its heartbeats or its connection are gone, and what is open of it stays, as it is configured.
    Left {
        /// Orders.
        orders: u32,
        /// Instruments that it quotes.
        quotes: u32,
    },
}

/// A [`ClientEvent`], of whom and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientNotice {
    /// When.
    pub at: Nanos,
    /// Whose.
    pub route: Route,
    /// What.
    pub event: ClientEvent,
}

/// How a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientState {
    /// Who.
    pub route: Route,
    /// Whose risk its orders are.
    pub firm: Firm,
    /// Whether its session is in force.
    pub is_logged_on: bool,
    /// Open orders.
    pub orders: u32,
    /// Sides of quotes in the book.
    pub quoted_sides: u32,
    /// Contracts or shares that its orders and quotes traded, trades that were broken included.
    pub traded: u64,
}

/// Notices on their way to the operator.
#[derive(Debug, Default)]
pub(super) struct Notices(VecDeque<ClientNotice>);

impl Notices {
    pub(super) fn push(&mut self, at: Nanos, route: Route, event: ClientEvent) {
        if self.0.len() >= EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(ClientNotice { at, route, event });
    }

    pub(super) fn pop(&mut self) -> Option<ClientNotice> {
        self.0.pop_front()
    }
}
