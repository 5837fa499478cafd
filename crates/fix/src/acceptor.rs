//! Many sessions in one table: a connection that was accepted belongs to the session that its first message names, one that was
//! opened to the session it was opened for.
//!
//! ```text
//!  connect ─► handle_bytes … ─► settle ─► the session's own verbs ─► disconnect
//! ```
//! A connection whose first message is garbled, names nobody who is known here, or a session that has a connection
//! already, is to be closed without an answer. Because a peer may close and come again at once, the owner reads every other
//! connection once more between [`Acceptor::handle_bytes`] and [`Acceptor::settle`].

use crate::config::{Role, SessionConfig};
use crate::header::{Identity, Opening, identify};
use crate::session::{Event, Rules, Session};
use crate::store::Store;
use crate::text::{CompId, Text};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::Nanos;

/// A connection, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub usize);

/// A session, in the order they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub usize);

/// How long a connection may take to say who it is.
const OPENING_NS: u64 = 10 * Nanos::SECOND;
/// The longest first message: a Logon.
const OPENING_BYTES: usize = 4096;

/// Sessions and connections. See the module's description.
#[derive(Debug)]
pub struct Acceptor<S: Store> {
    sessions: Vec<Hosted<S>>,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Hosted<S: Store> {
    session: Session<S>,
    connection: Option<ConnectionId>,
}

#[derive(Debug)]
enum Connection {
    Free,
    /// Has not said who it is.
    Opening {
        since: Nanos,
        bytes: Box<[u8]>,
        len: usize,
    },
    Of(SessionId),
    /// To be closed.
    Over,
}

impl<S: Store> Acceptor<S> {
    /// No session yet; room for `connections` at once.
    pub fn new(connections: usize) -> Acceptor<S> {
        let free = || Connection::Free;
        Acceptor {
            sessions: Vec::new(),
            connections: core::iter::repeat_with(free).take(connections).collect(),
        }
    }

    /// Adds a session. Its BeginString and identities tell it from the others.
    pub fn add(&mut self, config: SessionConfig, store: S, rules: Option<Rules>) -> SessionId {
        self.sessions.push(Hosted {
            session: Session::with_rules(config, store, rules),
            connection: None,
        });
        SessionId(self.sessions.len() - 1)
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// A session.
    pub fn session(&self, id: SessionId) -> &Session<S> {
        &self.sessions[id.0].session
    }

    /// A session, to send on.
    pub fn session_mut(&mut self, id: SessionId) -> &mut Session<S> {
        &mut self.sessions[id.0].session
    }

    /// The connection of a session.
    pub fn connection_of(&self, id: SessionId) -> Option<ConnectionId> {
        self.sessions[id.0].connection
    }

    /// The session of a connection, once it is known.
    pub fn session_of(&self, id: ConnectionId) -> Option<SessionId> {
        match self.connections.get(id.0) {
            Some(Connection::Of(session)) => Some(*session),
            _ => None,
        }
    }

    /// A transport connection was accepted; `None` when there is no room: close it.
    pub fn connect(&mut self, now: Nanos) -> Option<ConnectionId> {
        let is_free = |c: &Connection| matches!(c, Connection::Free);
        let at = self.connections.iter().position(is_free)?;
        self.connections[at] = Connection::Opening {
            since: now,
            bytes: vec![0; OPENING_BYTES].into_boxed_slice(),
            len: 0,
        };
        Some(ConnectionId(at))
    }

    /// A transport connection was opened for a session of ours that begins, which logs on; `None` when there is no room or it has
    /// a connection already: close it.
    pub fn connect_as(&mut self, now: Nanos, session: SessionId) -> Option<ConnectionId> {
        let is_free = |c: &Connection| matches!(c, Connection::Free);
        let at = self.connections.iter().position(is_free)?;
        let hosted = &mut self.sessions[session.0];
        if hosted.connection.is_some() {
            return None;
        }
        hosted.connection = Some(ConnectionId(at));
        hosted.session.handle_connected(now);
        self.connections[at] = Connection::Of(session);
        Some(ConnectionId(at))
    }

    /// Bytes of a connection. How many were taken; the rest is handed over again after events were drained.
    #[must_use = "bytes not taken must be handed over again"]
    pub fn handle_bytes(&mut self, now: Nanos, id: ConnectionId, given: &[u8]) -> usize {
        match &mut self.connections[id.0] {
            Connection::Of(session) => {
                let session = &mut self.sessions[session.0].session;
                session.handle_bytes(now, given)
            }
            Connection::Opening { bytes, len, .. } => {
                let taken = given.len().min(bytes.len() - *len);
                bytes[*len..*len + taken].copy_from_slice(&given[..taken]);
                *len += taken;
                taken
            }
            Connection::Free | Connection::Over => given.len(),
        }
    }

    /// Finds the sessions of connections that have said who they are.
    pub fn settle(&mut self, now: Nanos) {
        for at in 0..self.connections.len() {
            let Connection::Opening { since, bytes, len } = &self.connections[at] else {
                continue;
            };
            let (is_late, is_full) = (now.since(*since) >= OPENING_NS, *len == bytes.len());
            let found = match identify(&bytes[..*len], OPENING_BYTES) {
                Opening::Partial if !is_late && !is_full => continue,
                Opening::Partial | Opening::Garbled => None,
                Opening::From(identity) => self.idle_session(&identity),
            };
            let Some(session) = found else {
                self.connections[at] = Connection::Over;
                continue;
            };
            let opening = core::mem::replace(&mut self.connections[at], Connection::Of(session));
            let hosted = &mut self.sessions[session.0];
            hosted.connection = Some(ConnectionId(at));
            hosted.session.handle_connected(now);
            if let Connection::Opening { bytes, len, .. } = opening {
                // The receive buffer is larger than an opening.
                let taken = hosted.session.handle_bytes(now, &bytes[..len]);
                debug_assert!(taken == len);
            }
        }
    }

    /// The session of an identity, if it has no connection.
    fn idle_session(&self, identity: &Identity) -> Option<SessionId> {
        let at = self.sessions.iter().position(|hosted| {
            let config = hosted.session.config();
            let begin_string = Text::new(config.version.begin_string());
            config.role == Role::Acceptor
                && begin_string == Some(identity.begin_string)
                && config.sender == identity.target
                && (config.target == identity.sender || config.target == CompId::EMPTY)
        })?;
        self.sessions[at].connection.is_none().then_some(SessionId(at))
    }

    /// Bytes to transmit on a connection.
    pub fn poll_transmit<'b>(&mut self, id: ConnectionId, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.session_of(id)?;
        self.sessions[session.0].session.poll_transmit(buf)
    }

    /// What happened in a session. After [`Event::Disconnect`] transmit what is left, then [`Acceptor::wants_close`].
    pub fn poll_event(&mut self, id: SessionId) -> Option<Event> {
        self.sessions[id.0].session.poll_event()
    }

    /// Whether a connection is to be closed now; its last bytes are transmitted first.
    pub fn wants_close(&self, id: ConnectionId) -> bool {
        match self.connections[id.0] {
            Connection::Over => true,
            Connection::Of(session) => {
                let session = &self.sessions[session.0].session;
                session.status() == crate::Status::Closing && session.backlog() == 0
            }
            Connection::Free | Connection::Opening { .. } => false,
        }
    }

    /// A connection is gone, whoever closed it.
    pub fn disconnect(&mut self, now: Nanos, id: ConnectionId) {
        let connection = core::mem::replace(&mut self.connections[id.0], Connection::Free);
        if let Connection::Of(session) = connection {
            let hosted = &mut self.sessions[session.0];
            hosted.connection = None;
            hosted.session.handle_disconnected(now);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        for hosted in self.sessions.iter_mut().filter(|h| h.connection.is_some()) {
            if hosted.session.poll_timeout().is_some_and(|t| t <= now) {
                hosted.session.handle_timeout(now);
            }
        }
    }

    /// When to call [`Acceptor::handle_timeout`] and [`Acceptor::settle`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let sessions = self.sessions.iter().filter_map(|h| h.session.poll_timeout());
        let openings = self.connections.iter().filter_map(|c| match c {
            Connection::Opening { since, .. } => Some(since.after(OPENING_NS)),
            _ => None,
        });
        sessions.chain(openings).min()
    }
}
