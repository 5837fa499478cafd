//! Many sessions in one table: a connection that was accepted belongs to the session that its first message
//! names, one that was opened to the session it was opened for.
//!
//! ```text
//!  connect ─► handle_bytes … ─► settle ─► the session's own verbs ─► disconnect
//!                                  └─► poll_newcomer ─► admit, or turn_away
//! ```
//! A connection whose first message is garbled, names nobody who is known here, or a session that has a
//! connection already, is to be closed without an answer. Because a peer may close and come again at once,
//! the owner reads every other connection once more between [`Acceptor::handle_bytes`] and
//! [`Acceptor::settle`].
//!
//! **Sessions nobody configured.** With an [`Acceptor::add_template`], who fits a template and no session
//! becomes a
//! [`Newcomer`]: the owner opens a store and admits it, or turns it away. There are at most as many such sessions as the
//! template says; the place of one that never logged on is given to the next newcomer.
//!
//! **Bounds.** So many connections at once, 4 KiB and the longest logon time-out (10 s) for each to say who
//! it is, and the memory of its configuration for each session.

use crate::buffer::Ring;
use crate::config::{Role, SessionConfig, SubIds};
use crate::header::{Identity, Opening, identify};
use crate::session::{Event, Rules, Session};
use crate::store::Store;
use crate::text::CompId;
use crate::version::Version;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{Counter, Counters, Nanos, SeqNo};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

/// A connection, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub usize);

/// A session, in the order they were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub usize);

/// How long a connection may take to say who it is, where no session says how long a Logon may take.
const OPENING_NS: u64 = 10 * Nanos::SECOND;
/// The longest first message: a Logon.
const OPENING_BYTES: usize = 4096;

/// A connection that fits a template and no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newcomer {
    /// Its connection.
    pub connection: ConnectionId,
    /// Which template it fits, in the order they were added.
    pub template: usize,
    /// The session it would have: the template's configuration with the identities filled in.
    pub config: SessionConfig,
}

/// Why a connection was closed before it came to belong to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No whole message came in time; so many bytes did.
    Silent(usize),
    /// What came is no FIX message.
    Garbage,
    /// No session has its CompIDs.
    Unknown,
    /// The session of its CompIDs speaks this version.
    OtherVersion(Version),
    /// The session of its CompIDs has a connection.
    Busy(SessionId),
    /// A template that it fits admits no more sessions.
    TemplateFull,
    /// Every place is taken.
    NoRoom,
    /// The owner said so.
    ByOwner,
}

impl Refusal {
    const fn counter(self) -> Option<Counter> {
        match self {
            Refusal::Silent(_) => Some(Counter::FixSilent),
            Refusal::Garbage => Some(Counter::FixGarbage),
            Refusal::Unknown => Some(Counter::FixUnknownPeers),
            Refusal::OtherVersion(_) => Some(Counter::FixWrongVersions),
            Refusal::Busy(_) => Some(Counter::FixSecondConnections),
            Refusal::TemplateFull | Refusal::NoRoom => Some(Counter::FixNoRoom),
            Refusal::ByOwner => None,
        }
    }
}

/// A connection that was closed before it came to belong to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which; [`Acceptor::wants_close`] says so, too.
    pub connection: ConnectionId,
    /// Why.
    pub why: Refusal,
    /// Who it said it was, if it did.
    pub identity: Option<Identity>,
}

/// Refused connections that are told of; of more between two looks the rest is counted only.
const REFUSED_MAX: usize = 64;

/// Sessions and connections. See the module's description.
#[derive(Debug)]
pub struct Acceptor<S: Store> {
    sessions: Vec<Hosted<S>>,
    connections: Vec<Connection>,
    templates: Vec<Template>,
    counters: Counters,
    refused: Ring<Refused>,
    /// UTC less the `now` of all calls.
    wall_offset_ns: i64,
    /// The longest that a session or template gives a Logon.
    opening_ns: Option<u64>,
    /// Something may have happened since [`Acceptor::take_touched`].
    is_touched: bool,
    /// The session that [`Acceptor::session_mut`] gave out last, until [`Acceptor::take_last_used`].
    last_used: Option<SessionId>,
}

#[derive(Debug)]
struct Template {
    config: SessionConfig,
    sessions_max: usize,
}

#[derive(Debug)]
struct Hosted<S: Store> {
    session: Session<S>,
    connection: Option<ConnectionId>,
    /// The template it was made from, if it was.
    template: Option<usize>,
    /// It was logged on once: its numbers are to be kept.
    has_been_on: bool,
}

#[expect(
    clippy::large_enum_variant,
    reason = "as many as connections are admitted, allocated once"
)]
#[derive(Debug)]
enum Connection {
    Free,
    /// Has not said who it is.
    Opening {
        since: Nanos,
        bytes: Box<[u8]>,
        len: usize,
        /// The template it fits, once it has said who it is; told by [`Acceptor::poll_newcomer`] or about to
        /// be.
        newcomer: Option<(usize, Identity)>,
        is_told: bool,
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
            templates: Vec::new(),
            counters: Counters::default(),
            refused: Ring::new(REFUSED_MAX),
            wall_offset_ns: 0,
            opening_ns: None,
            is_touched: true,
            last_used: None,
        }
    }

    /// Whether a session may have events, bytes to transmit or an end since this was asked last: somebody
    /// sent on one, or time did something. What [`Acceptor::handle_bytes`] did is for its caller to look
    /// after.
    #[inline]
    pub fn take_touched(&mut self) -> bool {
        core::mem::take(&mut self.is_touched)
    }

    /// The session that somebody was given to send on last, since this was asked last: what an application
    /// said on another session than the one it was called for can go out at once.
    #[inline]
    pub fn take_last_used(&mut self) -> Option<SessionId> {
        self.last_used.take()
    }

    /// Admits sessions that nobody configured, at most `sessions_max` at a time: those that speak the version
    /// of `config` and fit its identities. An empty SenderCompID, TargetCompID or sub id fits any. The
    /// template's number.
    pub fn add_template(&mut self, config: SessionConfig, sessions_max: usize) -> usize {
        self.opening_ns = self.opening_ns.max(Some(config.logon_timeout_ns));
        self.templates.push(Template { config, sessions_max });
        self.templates.len() - 1
    }

    /// Counts a connection that the owner did not even offer: its address may not connect.
    pub fn note_address_refused(&mut self) {
        self.counters.bump(Counter::FixAddressesRefused);
        self.counters.bump(Counter::FixLogonsRefused);
    }

    /// The next connection that was refused, and why.
    pub fn poll_refused(&mut self) -> Option<Refused> {
        self.refused.pop()
    }

    /// Of connections that never came to belong to a session: `fix_logons_refused`, and of which kind they
    /// were.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Adds a session. Its BeginString and identities tell it from the others.
    pub fn add(&mut self, config: SessionConfig, store: S, rules: Option<Rules>) -> SessionId {
        if config.role == Role::Acceptor {
            self.opening_ns = self.opening_ns.max(Some(config.logon_timeout_ns));
        }
        let mut session = Session::with_rules(config, store, rules);
        session.set_wall_offset(self.wall_offset_ns);
        self.sessions.push(Hosted {
            session,
            connection: None,
            template: None,
            has_been_on: false,
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
        self.is_touched = true;
        self.last_used = Some(id);
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
        let Some(at) = self.connections.iter().position(is_free) else {
            self.counters.bump(Counter::FixLogonsRefused);
            self.counters.bump(Counter::FixNoRoom);
            return None;
        };
        self.connections[at] = Connection::Opening {
            since: now,
            bytes: vec![0; OPENING_BYTES].into_boxed_slice(),
            len: 0,
            newcomer: None,
            is_told: false,
        };
        Some(ConnectionId(at))
    }

    /// A transport connection was opened for a session of ours that begins, which logs on; `None` when there
    /// is no room or it has a connection already: close it.
    pub fn connect_as(&mut self, now: Nanos, session: SessionId) -> Option<ConnectionId> {
        let is_free = |c: &Connection| matches!(c, Connection::Free);
        let at = self.connections.iter().position(is_free)?;
        let hosted = &mut self.sessions[session.0];
        if hosted.connection.is_some() {
            return None;
        }
        self.is_touched = true;
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
        let opening_ns = self.opening_ns.unwrap_or(OPENING_NS);
        for at in 0..self.connections.len() {
            let Connection::Opening {
                since,
                bytes,
                len,
                newcomer,
                ..
            } = &self.connections[at]
            else {
                continue;
            };
            let (is_late, is_full) = (now.since(*since) >= opening_ns, *len == bytes.len());
            let came = *len;
            if newcomer.is_some() {
                if is_late {
                    self.turn_away(ConnectionId(at));
                }
                continue;
            }
            let identity = match identify(&bytes[..*len], OPENING_BYTES) {
                Opening::Partial if !is_late && !is_full => continue,
                Opening::Partial if !is_full => {
                    self.refuse(ConnectionId(at), Refusal::Silent(came), None);
                    continue;
                }
                Opening::Partial | Opening::Garbled => {
                    self.refuse(ConnectionId(at), Refusal::Garbage, None);
                    continue;
                }
                Opening::From(identity) => identity,
            };
            match self.session_for(&identity) {
                Found::Idle(session) => self.hand_over(now, ConnectionId(at), session),
                Found::Busy(session) => {
                    // The session's own counter is where its counterparty is looked for.
                    self.refuse(ConnectionId(at), Refusal::Busy(session), Some(identity));
                }
                Found::Nobody => self.note_newcomer(at, identity),
            }
        }
    }

    /// The next connection that a template would admit: [`Acceptor::admit`] it or [`Acceptor::turn_away`],
    /// now or within 10 s of its coming.
    pub fn poll_newcomer(&mut self) -> Option<Newcomer> {
        for at in 0..self.connections.len() {
            if let Connection::Opening {
                newcomer: Some((template, identity)),
                is_told,
                ..
            } = &mut self.connections[at]
                && !core::mem::replace(is_told, true)
            {
                let template = *template;
                let config = filled(self.templates[template].config, identity);
                let connection = ConnectionId(at);
                return Some(Newcomer {
                    connection,
                    template,
                    config,
                });
            }
        }
        None
    }

    /// Gives a newcomer its session; `None` if its connection is gone meanwhile, or was given a session.
    pub fn admit(
        &mut self,
        now: Nanos,
        newcomer: &Newcomer,
        store: S,
        rules: Option<Rules>,
    ) -> Option<SessionId> {
        let is_waiting = matches!(
            &self.connections[newcomer.connection.0],
            Connection::Opening { newcomer: Some((template, identity)), .. }
                if *template == newcomer.template && fits(&newcomer.config, identity)
        );
        if !is_waiting {
            return None;
        }
        let mut session = Session::with_rules(newcomer.config, store, rules);
        session.set_wall_offset(self.wall_offset_ns);
        let hosted = Hosted {
            session,
            connection: None,
            template: Some(newcomer.template),
            has_been_on: false,
        };
        let id = match self.sessions.iter().position(Hosted::is_vacant) {
            Some(at) => {
                self.sessions[at] = hosted;
                SessionId(at)
            }
            None => {
                self.sessions.push(hosted);
                SessionId(self.sessions.len() - 1)
            }
        };
        self.hand_over(now, newcomer.connection, id);
        Some(id)
    }

    /// Closes a connection that belongs to no session, without a word.
    pub fn turn_away(&mut self, id: ConnectionId) {
        self.refuse(id, Refusal::ByOwner, None);
    }

    /// Closes the connection that has said nothing for longest, to make room for another.
    pub fn give_way(&mut self, id: ConnectionId) {
        self.refuse(id, Refusal::NoRoom, None);
    }

    fn refuse(&mut self, id: ConnectionId, why: Refusal, identity: Option<Identity>) {
        if let Some(connection @ Connection::Opening { .. }) = self.connections.get_mut(id.0) {
            *connection = Connection::Over;
            self.is_touched = true;
            self.counters.bump(Counter::FixLogonsRefused);
            if let Some(counter) = why.counter() {
                self.counters.bump(counter);
            }
            if self.refused.room() > 0 {
                self.refused.push(Refused {
                    connection: id,
                    why,
                    identity,
                });
            }
        }
    }

    /// A connection belongs to a session from now on.
    fn hand_over(&mut self, now: Nanos, id: ConnectionId, session: SessionId) {
        self.is_touched = true;
        let opening = core::mem::replace(&mut self.connections[id.0], Connection::Of(session));
        let hosted = &mut self.sessions[session.0];
        hosted.connection = Some(id);
        hosted.session.handle_connected(now);
        if let Connection::Opening { bytes, len, .. } = opening {
            // The receive buffer is at least as large as an opening, unless it was made smaller than that.
            let taken = hosted.session.handle_bytes(now, &bytes[..len]);
            debug_assert!(taken == len || hosted.session.config().receive_bytes < OPENING_BYTES);
        }
    }

    /// The first session of an identity that has no connection.
    fn session_for(&self, identity: &Identity) -> Found {
        let mut found = Found::Nobody;
        for (at, hosted) in self.sessions.iter().enumerate() {
            if hosted.is_vacant() || !fits(hosted.session.config(), identity) {
                continue;
            }
            if hosted.connection.is_none() {
                return Found::Idle(SessionId(at));
            }
            found = Found::Busy(SessionId(at));
        }
        found
    }

    /// A connection that no session is for: kept if a template has room for it.
    fn note_newcomer(&mut self, at: usize, identity: Identity) {
        let is_made_from = |hosted: &Hosted<S>, n| hosted.template == Some(n) && !hosted.is_vacant();
        let fitting = self.templates.iter().enumerate().find(|(n, template)| {
            let made = self
                .sessions
                .iter()
                .filter(|hosted| is_made_from(hosted, *n))
                .count();
            let waiting = self
                .connections
                .iter()
                .filter(|c| c.newcomer().is_some_and(|(t, _)| t == *n));
            fits(&template.config, &identity) && made + waiting.count() < template.sessions_max
        });
        let fitting = fitting.map(|(n, _)| n);
        let why = match self
            .templates
            .iter()
            .any(|template| fits(&template.config, &identity))
        {
            true => Refusal::TemplateFull,
            false => self.why_nobody(&identity),
        };
        // The same one twice: the second is turned away, as it would be from a session.
        let is_twice = self
            .connections
            .iter()
            .any(|c| c.newcomer().is_some_and(|(_, other)| *other == identity));
        match (fitting, &mut self.connections[at]) {
            (Some(template), Connection::Opening { newcomer, .. }) if !is_twice => {
                *newcomer = Some((template, identity));
            }
            _ => self.refuse(ConnectionId(at), why, Some(identity)),
        }
    }

    /// Whether a session has the ids and speaks another version, or none has them.
    fn why_nobody(&self, identity: &Identity) -> Refusal {
        let configs = self.sessions.iter().filter(|hosted| !hosted.is_vacant());
        let configs = configs.map(|hosted| hosted.session.config());
        let mut known = configs.chain(self.templates.iter().map(|template| &template.config));
        match known.find(|config| has_ids(config, identity)) {
            Some(config) => Refusal::OtherVersion(config.version),
            None => Refusal::Unknown,
        }
    }

    /// Bytes to transmit on a connection.
    pub fn poll_transmit<'b>(&mut self, id: ConnectionId, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let session = self.session_of(id)?;
        self.sessions[session.0].session.poll_transmit(buf)
    }

    /// What [`Session::resend_asked`] says of a session, which is no use of it in the sense of
    /// [`Acceptor::take_last_used`].
    #[inline]
    pub fn resend_asked(&mut self, id: SessionId) -> Option<(SeqNo, &[u8])> {
        self.sessions[id.0].session.resend_asked()
    }

    /// What happened in a session. After [`Event::Disconnect`] transmit what is left, then
    /// [`Acceptor::wants_close`].
    pub fn poll_event(&mut self, id: SessionId) -> Option<Event> {
        let hosted = &mut self.sessions[id.0];
        let event = hosted.session.poll_event();
        hosted.has_been_on |= matches!(event, Some(Event::LoggedOn { .. }));
        event
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
        if let Connection::Opening { .. } = connection {
            self.counters.bump(Counter::FixSilent);
        }
        if let Connection::Of(session) = connection {
            self.is_touched = true;
            let hosted = &mut self.sessions[session.0];
            hosted.connection = None;
            hosted.session.handle_disconnected(now);
        }
    }

    /// Says how far UTC is from `now`, to every session of now and later: [`Session::set_wall_offset`].
    pub fn set_wall_offset(&mut self, offset_ns: i64) {
        self.wall_offset_ns = offset_ns;
        for hosted in &mut self.sessions {
            hosted.session.set_wall_offset(offset_ns);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        for hosted in &mut self.sessions {
            if hosted.session.poll_timeout().is_some_and(|t| t <= now) {
                self.is_touched = true;
                hosted.session.handle_timeout(now);
            }
        }
    }

    /// When to call [`Acceptor::handle_timeout`] and [`Acceptor::settle`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let sessions = self.sessions.iter().filter_map(|h| h.session.poll_timeout());
        let opening_ns = self.opening_ns.unwrap_or(OPENING_NS);
        let openings = self.connections.iter().filter_map(|c| match c {
            Connection::Opening { since, .. } => Some(since.after(opening_ns)),
            _ => None,
        });
        sessions.chain(openings).min()
    }
}

/// What is found for an identity.
enum Found {
    Idle(SessionId),
    /// Every session of this identity has a connection; the last of them.
    Busy(SessionId),
    Nobody,
}

impl<S: Store> Hosted<S> {
    /// Its place may be given to another: it was made from a template and never came to anything.
    fn is_vacant(&self) -> bool {
        self.template.is_some() && !self.has_been_on && self.connection.is_none()
    }
}

impl Connection {
    fn newcomer(&self) -> Option<(usize, &Identity)> {
        match self {
            Connection::Opening {
                newcomer: Some((template, identity)),
                ..
            } => Some((*template, identity)),
            _ => None,
        }
    }
}

/// Whether an identity is the counterparty of a configuration; what that leaves empty fits any.
fn fits(config: &SessionConfig, identity: &Identity) -> bool {
    let version = config.version;
    let is_version = match version.appl_ver_id() {
        // A Logon without DefaultApplVerID is for the session to refuse.
        Some(id) => identity.appl_ver_id.is_empty() || identity.appl_ver_id.as_bytes() == [id],
        None => true,
    };
    is_version && identity.begin_string.as_bytes() == version.begin_string() && has_ids(config, identity)
}

/// The same, whatever version it speaks.
fn has_ids(config: &SessionConfig, identity: &Identity) -> bool {
    let subs = &config.subs;
    let ids = [
        (config.sender, identity.target),
        (config.target, identity.sender),
        (subs.sender_sub, identity.target_sub),
        (subs.sender_location, identity.target_location),
        (subs.target_sub, identity.sender_sub),
        (subs.target_location, identity.sender_location),
    ];
    let is_ours = |(ours, theirs): &(CompId, CompId)| ours.is_empty() || ours == theirs;
    config.role == Role::Acceptor && ids.iter().all(is_ours)
}

/// A template's configuration for one identity.
fn filled(config: SessionConfig, identity: &Identity) -> SessionConfig {
    let or = |ours: CompId, theirs: CompId| if ours.is_empty() { theirs } else { ours };
    SessionConfig {
        sender: or(config.sender, identity.target),
        target: or(config.target, identity.sender),
        subs: SubIds {
            sender_sub: or(config.subs.sender_sub, identity.target_sub),
            sender_location: or(config.subs.sender_location, identity.target_location),
            target_sub: or(config.subs.target_sub, identity.sender_sub),
            target_location: or(config.subs.target_location, identity.sender_location),
        },
        ..config
    }
}

/// The state of the table: every session and what is not one yet. Configured sessions are those that were
/// added, in the same order; those of a template are made again.
impl<S: Store + Persist> Acceptor<S> {
    /// Appends it.
    pub fn save(&self, out: &mut Bytes) {
        (self.sessions.len() as u64).save(out);
        for hosted in &self.sessions {
            hosted.template.save(out);
            if hosted.template.is_some() {
                let config = hosted.session.config();
                (config.sender, config.target).save(out);
                config.subs.save(out);
            }
            hosted.session.save(out);
            hosted.connection.map(|id| id.0).save(out);
            hosted.has_been_on.save(out);
        }
        (self.connections.len() as u64).save(out);
        for connection in &self.connections {
            match connection {
                Connection::Free => 0_u8.save(out),
                Connection::Opening {
                    since,
                    bytes,
                    len,
                    newcomer,
                    is_told,
                } => {
                    1_u8.save(out);
                    (*since, *is_told).save(out);
                    newcomer.save(out);
                    bytes[..*len].to_vec().save(out);
                }
                Connection::Of(id) => (2_u8, id.0).save(out),
                Connection::Over => 3_u8.save(out),
            }
        }
        self.wall_offset_ns.save(out);
    }

    /// Takes it. Sessions of templates have stores that `store_of` makes.
    ///
    /// # Errors
    /// The bytes are not those of such a table.
    pub fn load(
        &mut self,
        from: &mut StateReader<'_>,
        store_of: impl Fn(&SessionConfig) -> S,
    ) -> Result<(), Damaged> {
        for at in 0..u64::read(from)? as usize {
            if let Some(template) = Option::<usize>::read(from)? {
                let mut config = self.templates.get(template).ok_or(Damaged)?.config;
                (config.sender, config.target) = PersistValue::read(from)?;
                config.subs = PersistValue::read(from)?;
                let hosted = Hosted {
                    session: Session::with_rules(config, store_of(&config), None),
                    connection: None,
                    template: Some(template),
                    has_been_on: false,
                };
                match self.sessions.get_mut(at) {
                    Some(_) => return Err(Damaged),
                    None => self.sessions.push(hosted),
                }
            }
            let hosted = self.sessions.get_mut(at).ok_or(Damaged)?;
            hosted.session.load(from)?;
            hosted.connection = Option::<usize>::read(from)?.map(ConnectionId);
            hosted.has_been_on.load(from)?;
        }
        if u64::read(from)? != self.connections.len() as u64 {
            return Err(Damaged);
        }
        for connection in &mut self.connections {
            *connection = match u8::read(from)? {
                0 => Connection::Free,
                1 => {
                    let (since, is_told) = PersistValue::read(from)?;
                    let newcomer = PersistValue::read(from)?;
                    let said = Vec::<u8>::read(from)?;
                    let mut bytes = vec![0; OPENING_BYTES].into_boxed_slice();
                    bytes.get_mut(..said.len()).ok_or(Damaged)?.copy_from_slice(&said);
                    Connection::Opening {
                        since,
                        bytes,
                        len: said.len(),
                        newcomer,
                        is_told,
                    }
                }
                2 => Connection::Of(SessionId(usize::read(from)?)),
                3 => Connection::Over,
                _ => return Err(Damaged),
            };
        }
        self.wall_offset_ns.load(from)?;
        self.is_touched = true;
        Ok(())
    }
}
