//! The face of the engine for programs: QuickFIX's callbacks under their names.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_fix::typed::{FieldError, WriteError};
use tickwire_fix::{
    Again, DisconnectReason, Encoder, Event, Fault, Index, Message, Role, SendError, SessionConfig,
    SessionId, Stamp, Status,
};
use tickwire_market::{Nanos, SeqNo};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::wake::Waker;

use crate::engine::{Engine, Flow, Handler, Table};
use crate::error::Error;
use crate::message::{Framer, is_application};
use crate::observer::Observer;
use crate::settings::Setup;

/// What a program does with its sessions. Every callback runs on the thread of the sessions, which waits for
/// it; all but [`Application::from_app`] have an empty default. Names and order of the calls are QuickFIX's.
///
/// A typed message is read from a [`Message`] and written into an encoder by the modules that
/// `tickwire-fixgen` makes of a dictionary: `tickwire-fixmsg` has those of FIX 4.4 and 5.0 SP2.
#[expect(clippy::wrong_self_convention, reason = "the names are QuickFIX's")]
pub trait Application {
    /// A session is there: at the start, or when a template has admitted somebody. Its numbers are those of
    /// its store.
    fn on_create(&mut self, _ctx: &mut Context<'_>) {}

    /// Logged on: messages may be sent from now on.
    fn on_logon(&mut self, _ctx: &mut Context<'_>) {}

    /// A session that was logged on no longer is, for this reason; none where the connection was lost without
    /// a word. What is sent now is refused.
    fn on_logout(&mut self, _ctx: &mut Context<'_>, _why: Option<DisconnectReason>) {}

    /// A session message goes out. A Logon is about to be written and takes more fields ([`ToAdmin::put`]);
    /// any other has just gone, as it is.
    fn to_admin(&mut self, _ctx: &mut Context<'_>, _message: &mut ToAdmin<'_>) {}

    /// A session message came, in sequence and right. For a Logon this is the place to refuse it.
    ///
    /// # Errors
    /// The peer gets a Logout with this text. Only a Logon is refused; for other messages it is without
    /// effect.
    fn from_admin(&mut self, _ctx: &mut Context<'_>, _message: &Message<'_>) -> Result<(), RejectLogon> {
        Ok(())
    }

    /// An application message has gone out, again if `is_again` (43=Y).
    fn to_app(&mut self, _ctx: &mut Context<'_>, _message: &Message<'_>, _is_again: bool) {}

    /// The peer has missed this message and asks for it: whether it is sent again. A gap fill takes its place
    /// otherwise, so that an order of the past does not come to life. QuickFIX asks by a `DoNotSend` from
    /// `toApp`.
    fn may_resend(&mut self, _session: SessionId, _message: &Message<'_>) -> bool {
        true
    }

    /// An application message came, in sequence, once. It counts as received when this returns: a program
    /// that dies within gets it again.
    ///
    /// # Errors
    /// How the peer is answered: by a BusinessMessageReject or a Reject. A [`FieldError`] of a typed message
    /// becomes the latter by `?`.
    fn from_app(&mut self, ctx: &mut Context<'_>, message: &Message<'_>) -> Result<(), Refusal>;

    /// The time that [`Context::set_timer`] set has come.
    fn on_timer(&mut self, _ctx: &mut Context<'_>) {}
}

/// Text (58) of the Logout that a refused Logon is answered by. A `&'static str`: whoever is refused learns
/// no details of his attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RejectLogon(pub &'static str);

/// How an application message is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Its type is not supported here: BusinessMessageReject (35=j) with 380=3, up to 4.1 a Reject.
    UnsupportedMessageType,
    /// BusinessMessageReject with this BusinessRejectReason (380) and Text (58), up to 4.1 a Reject with the
    /// text.
    Business {
        /// BusinessRejectReason: 1 unknown id, 2 unknown security, 4 application not available, 5
        /// conditionally required field missing, 6 not authorised, 0 other.
        reason: u16,
        /// Text.
        text: &'static str,
    },
    /// A field is missing or wrong: Reject (35=3) with RefTagID (371) and SessionRejectReason (373).
    Field(Fault),
    /// Nothing is said.
    Silently,
}

impl From<FieldError> for Refusal {
    fn from(e: FieldError) -> Refusal {
        Refusal::Field(e.into())
    }
}

impl From<NotSent> for Refusal {
    /// The answer could not be sent, so neither can a reject: the session has ended or is about to.
    fn from(_: NotSent) -> Refusal {
        Refusal::Silently
    }
}

/// Why a message was not sent. No number was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSent {
    /// A field of it is missing, wrong or in the wrong place.
    Field(WriteError),
    /// The session does not take it.
    Session(SendError),
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSent::Field(e) => e.fmt(f),
            NotSent::Session(e) => f.write_str(match e {
                SendError::NotLoggedOn => "the session is not logged on",
                SendError::Backlog => "the peer does not read: there is no room for more",
                SendError::NotEncodable => "a text that must be there is empty, or the message is too long",
                SendError::TooLong => {
                    "the message is longer than the peer takes (MaxMessageSize of its Logon)"
                }
                SendError::Throttled { .. } => "the configured rate of messages is used up",
                SendError::StoreFailed => "the store did not take it",
            }),
        }
    }
}

impl std::error::Error for NotSent {}

/// A session message on its way out.
#[derive(Debug)]
pub struct ToAdmin<'m> {
    kind: Kind<'m>,
}

#[derive(Debug)]
enum Kind<'m> {
    Logon(&'m mut Vec<(u32, Vec<u8>)>),
    Gone(&'m Message<'m>),
}

impl<'m> ToAdmin<'m> {
    /// MsgType (35): `A` for a Logon.
    #[must_use]
    pub fn msg_type(&self) -> &[u8] {
        match &self.kind {
            Kind::Logon(_) => b"A",
            Kind::Gone(message) => message.msg_type(),
        }
    }

    /// The message as it went out; `None` for a Logon, which is not written yet.
    #[must_use]
    pub fn message(&self) -> Option<&'m Message<'m>> {
        match &self.kind {
            Kind::Logon(_) => None,
            Kind::Gone(message) => Some(message),
        }
    }

    /// Puts a field behind those of our Logon, in order of the calls: `Username` (553), a signature, what a
    /// venue wants. Whether it was: other messages have gone already.
    pub fn put(&mut self, tag: u32, value: &[u8]) -> bool {
        match &mut self.kind {
            Kind::Logon(fields) => {
                fields.push((tag, value.to_vec()));
                true
            }
            Kind::Gone(_) => false,
        }
    }
}

/// What a callback works with: its session, and the others of the thread.
pub struct Context<'c> {
    now: Nanos,
    id: SessionId,
    table: &'c mut Table,
    more: &'c mut More,
}

/// What outlives a callback.
#[derive(Debug)]
struct More {
    stamp: Stamp,
    timer: Option<Nanos>,
    is_over: bool,
}

impl Context<'_> {
    /// The session that the callback is about; in [`Application::on_timer`] and calls from other threads the
    /// first one.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.id
    }

    /// Every session of the thread.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.table.sessions()).map(SessionId)
    }

    /// Identities, version and limits of a session.
    #[must_use]
    pub fn config(&self, session: SessionId) -> &SessionConfig {
        self.table.session(session).config()
    }

    /// Whether messages may be sent on a session.
    #[must_use]
    pub fn is_logged_on(&self, session: SessionId) -> bool {
        self.table.session(session).status() == Status::Active
    }

    /// The time of the callback, nanoseconds since 1970, UTC.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Sends a message of this type on the callback's session: `body` writes what follows the header, a typed
    /// message by its `write`. It is kept for resends, and on the wire before more is read. Returns its
    /// number (34).
    ///
    /// # Errors
    /// What `body` returned, or why the session does not take it; nothing was sent then.
    pub fn send(
        &mut self,
        msg_type: &[u8],
        body: impl FnOnce(&mut Encoder<'_>, &mut Stamp) -> Result<(), WriteError>,
    ) -> Result<SeqNo, NotSent> {
        self.send_on(self.id, msg_type, body)
    }

    /// The same on another session.
    ///
    /// # Errors
    /// As of [`Context::send`].
    pub fn send_on(
        &mut self,
        session: SessionId,
        msg_type: &[u8],
        body: impl FnOnce(&mut Encoder<'_>, &mut Stamp) -> Result<(), WriteError>,
    ) -> Result<SeqNo, NotSent> {
        let precision = self.config(session).precision;
        if self.more.stamp.precision() != precision {
            self.more.stamp = Stamp::new(precision);
        }
        let stamp = &mut self.more.stamp;
        let mut written = Ok(());
        let sent = self
            .table
            .session_mut(session)
            .send(self.now, msg_type, Again::Resend, |encoder, _| {
                written = body(encoder, stamp)
            });
        written.map_err(NotSent::Field)?;
        sent.map_err(NotSent::Session)
    }

    /// Logs the callback's session out with this Text (58). An initiator connects again when its hours and
    /// intervals say so.
    pub fn logout(&mut self, text: &str) {
        self.table.session_mut(self.id).logout(self.now, text);
    }

    /// Calls [`Application::on_timer`] once after this time, instead of any earlier timer.
    pub fn set_timer(&mut self, after: Duration) {
        let ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        self.more.timer = Some(self.now.after(ns));
    }

    /// Logs every session out and ends the engine.
    pub fn end(&mut self) {
        self.more.is_over = true;
    }
}

/// What another thread wants done.
type Call<A> = Box<dyn FnOnce(&mut A, &mut Context<'_>) + Send>;

/// Runs an application on this thread: binds, connects and goes on until [`Context::end`] or `stop`, then
/// logs every session out. The sessions are of one thread ([`crate::settings::by_thread`]). Returns the
/// application.
///
/// # Errors
/// As of [`Engine::new`] and [`Engine::run`].
pub fn run<A: Application>(
    setups: Vec<Setup>,
    application: A,
    observer: Arc<dyn Observer>,
    stop: &StopFlag,
) -> Result<A, Error> {
    let mut engine = begin(setups, observer)?;
    let mut callbacks = Callbacks::new(application, &mut engine);
    engine.run(&mut callbacks, stop)?;
    Ok(callbacks.into_application())
}

/// The same on a thread of its own. It listens when this returns; whether it is logged on, the application
/// hears.
///
/// # Errors
/// As of [`Engine::new`]; the system may have no thread.
pub fn start<A: Application + Send + 'static>(
    setups: Vec<Setup>,
    application: A,
    observer: Arc<dyn Observer>,
) -> Result<Running<A>, Error> {
    let mut engine = begin(setups, observer)?;
    let mut callbacks = Callbacks::new(application, &mut engine);
    let (addresses, waker, stop) = (engine.addresses().to_vec(), engine.waker(), StopFlag::new());
    let caller = callbacks.caller(waker.clone());
    let own = stop.clone();
    let sessions = move || {
        engine.run(&mut callbacks, &own)?;
        Ok(callbacks.into_application())
    };
    let thread = tickwire_runtime::affinity::beside("fix-sessions", sessions)
        .map_err(|e| Error::system(format!("no thread for the sessions: {e}")))?;
    Ok(Running {
        thread: Some(thread),
        addresses,
        caller,
        stop,
        waker,
    })
}

/// Sessions of an application need to tell of more than those of a [`Handler`].
fn begin(mut setups: Vec<Setup>, observer: Arc<dyn Observer>) -> Result<Engine, Error> {
    for setup in &mut setups {
        let config = &mut setup.config;
        config.tells_session_messages = true;
        config.asks_about_resends = true;
        config.asks_about_logons = config.role == Role::Acceptor;
    }
    Engine::new(setups, observer)
}

/// An engine on a thread of its own. Dropped, it is stopped: sessions are logged out, which takes up to three
/// seconds where a peer does not answer.
pub struct Running<A> {
    thread: Option<JoinHandle<Result<A, Error>>>,
    addresses: Vec<SocketAddr>,
    caller: Caller<A>,
    stop: StopFlag,
    waker: Waker,
}

impl<A> Running<A> {
    /// Where it listens, ports that were 0 as the system chose them.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Hands work to the thread of the sessions; clones may go to other threads.
    #[must_use]
    pub fn caller(&self) -> Caller<A> {
        self.caller.clone()
    }

    /// Logs every session out, ends the thread and returns the application.
    ///
    /// # Errors
    /// What the thread ended with, or that it has panicked.
    pub fn stop(mut self) -> Result<A, Error> {
        self.stop.stop();
        self.waker.wake();
        self.join()
    }

    /// Waits until the application ends it ([`Context::end`]).
    ///
    /// # Errors
    /// As of [`Running::stop`].
    pub fn wait(mut self) -> Result<A, Error> {
        self.join()
    }

    fn join(&mut self) -> Result<A, Error> {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(outcome)) => outcome,
            _ => Err(Error::system("the thread of the sessions has panicked")),
        }
    }
}

impl<A> Drop for Running<A> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.stop();
            self.waker.wake();
            // Who wants to know how it ended calls `stop` or `wait`.
            let _ = thread.join();
        }
    }
}

/// Hands work to the thread of an application's sessions.
pub struct Caller<A> {
    calls: Sender<Call<A>>,
    waker: Waker,
}

impl<A> Clone for Caller<A> {
    fn clone(&self) -> Caller<A> {
        Caller {
            calls: self.calls.clone(),
            waker: self.waker.clone(),
        }
    }
}

impl<A> Caller<A> {
    /// Has this done on the thread of the sessions, soon; not where that has ended. Calls of one caller keep
    /// their order. They wait without bound: whoever produces faster than a session sends must count what
    /// [`Context::send`] refuses.
    pub fn call(&self, what: impl FnOnce(&mut A, &mut Context<'_>) + Send + 'static) {
        if self.calls.send(Box::new(what)).is_ok() {
            self.waker.wake();
        }
    }
}

/// An application as the handler of an engine.
struct Callbacks<A> {
    application: A,
    more: More,
    /// A copy of the message that a callback sees: the session behind it may send meanwhile.
    copy: Vec<u8>,
    index: Index,
    sessions: Vec<State>,
    calls: (Sender<Call<A>>, Receiver<Call<A>>),
}

/// A session of an application.
#[derive(Default)]
struct State {
    is_on: bool,
    /// Its Logon was told of when it asked.
    was_asked: bool,
    why: Option<DisconnectReason>,
    sent: Framer,
}

impl<A: Application> Callbacks<A> {
    fn new(application: A, engine: &mut Engine) -> Callbacks<A> {
        let fields_max = engine
            .sessions()
            .map(|id| engine.table.session(id).config().fields_max);
        let fields_max = fields_max.max().unwrap_or_default().max(1024);
        let mut callbacks = Callbacks {
            application,
            more: More {
                stamp: Stamp::new(tickwire_fix::Precision::Millis),
                timer: None,
                is_over: false,
            },
            copy: Vec::with_capacity(1 << 14),
            index: Index::new(fields_max),
            sessions: Vec::new(),
            calls: channel(),
        };
        let now = engine.clock.now();
        for id in engine.sessions() {
            callbacks.create(now, id, &mut engine.table);
        }
        callbacks
    }

    /// Calls from other threads.
    fn caller(&self, waker: Waker) -> Caller<A> {
        Caller {
            calls: self.calls.0.clone(),
            waker,
        }
    }

    fn into_application(self) -> A {
        self.application
    }

    fn create(&mut self, now: Nanos, id: SessionId, table: &mut Table) {
        if self.sessions.len() <= id.0 {
            self.sessions.resize_with(id.0 + 1, State::default);
        }
        self.sessions[id.0] = State::default();
        self.call(now, id, table, |application, ctx| application.on_create(ctx));
    }

    fn call<T>(
        &mut self,
        now: Nanos,
        id: SessionId,
        table: &mut Table,
        what: impl FnOnce(&mut A, &mut Context<'_>) -> T,
    ) -> T {
        let mut ctx = Context {
            now,
            id,
            table,
            more: &mut self.more,
        };
        what(&mut self.application, &mut ctx)
    }

    /// Calls with a copy of the message that the session hands out.
    fn with_message<T>(
        &mut self,
        now: Nanos,
        id: SessionId,
        table: &mut Table,
        what: impl FnOnce(&mut A, &mut Context<'_>, &Message<'_>) -> T,
    ) -> Option<T> {
        self.copy.clear();
        self.copy.extend_from_slice(table.session(id).message()?.bytes());
        let mut ctx = Context {
            now,
            id,
            table,
            more: &mut self.more,
        };
        let message = self.index.decode(&self.copy).ok()?;
        Some(what(&mut self.application, &mut ctx, &message))
    }

    fn on_admin(&mut self, now: Nanos, id: SessionId, table: &mut Table) {
        let is_logon = table.session(id).message().is_some_and(|m| m.msg_type() == b"A");
        if is_logon && std::mem::take(&mut self.sessions[id.0].was_asked) {
            return;
        }
        let verdict = self.with_message(now, id, table, |a, ctx, m| a.from_admin(ctx, m));
        if let (true, Some(Err(RejectLogon(text)))) = (is_logon, verdict) {
            table.session_mut(id).logout(now, text);
        }
    }

    fn on_message(&mut self, now: Nanos, id: SessionId, table: &mut Table) {
        let answer = self.with_message(now, id, table, |a, ctx, m| a.from_app(ctx, m));
        // The session is not used otherwise: what was sent on another one goes out first.
        let Some(Err(refusal)) = answer else { return };
        let session = table.session_mut(id);
        match refusal {
            Refusal::Silently => {}
            Refusal::UnsupportedMessageType => session.refuse(now),
            Refusal::Business { reason, text } => session.refuse_because(now, reason, text),
            Refusal::Field(fault) => session.reject(now, fault),
        }
    }

    fn gone(&mut self, now: Nanos, id: SessionId, bytes: &[u8], table: &mut Table) {
        let Callbacks {
            application,
            more,
            index,
            sessions,
            ..
        } = self;
        sessions[id.0].sent.take(bytes, |bytes| {
            let Ok(message) = index.decode(bytes) else {
                return;
            };
            let mut ctx = Context {
                now,
                id,
                table: &mut *table,
                more: &mut *more,
            };
            if is_application(bytes) {
                let is_again = message
                    .find(tickwire_fix::tag::POSS_DUP_FLAG)
                    .is_some_and(|f| message.value(f) == b"Y");
                application.to_app(&mut ctx, &message, is_again);
            } else if message.msg_type() != b"A" {
                let kind = Kind::Gone(&message);
                application.to_admin(&mut ctx, &mut ToAdmin { kind });
            }
        });
    }
}

impl<A: Application> Handler for Callbacks<A> {
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Table) {
        match event {
            Event::LoggedOn { .. } => {
                self.sessions[id.0].is_on = true;
                self.call(now, id, table, |a, ctx| a.on_logon(ctx));
            }
            Event::Admin { .. } => self.on_admin(now, id, table),
            Event::Message { .. } => self.on_message(now, id, table),
            Event::Disconnect { reason, .. } => self.sessions[id.0].why = Some(*reason),
            _ => {}
        }
    }

    fn on_sent(&mut self, now: Nanos, id: SessionId, bytes: &[u8], table: &mut Table) {
        self.gone(now, id, bytes, table);
    }

    fn before_logon(
        &mut self,
        now: Nanos,
        id: SessionId,
        table: &mut Table,
    ) -> Result<Vec<(u32, Vec<u8>)>, &'static str> {
        let is_request = table.session(id).logon_request().is_some();
        if is_request {
            self.sessions[id.0].was_asked = true;
            let verdict = self.with_message(now, id, table, |a, ctx, m| a.from_admin(ctx, m));
            if let Some(Err(RejectLogon(text))) = verdict {
                return Err(text);
            }
        }
        let mut fields = Vec::new();
        let kind = Kind::Logon(&mut fields);
        self.call(now, id, table, |a, ctx| a.to_admin(ctx, &mut ToAdmin { kind }));
        Ok(fields)
    }

    fn may_resend(&mut self, id: SessionId, message: &[u8]) -> bool {
        match self.index.decode(message) {
            Ok(message) => self.application.may_resend(id, &message),
            Err(_) => true,
        }
    }

    fn on_admitted(&mut self, now: Nanos, id: SessionId, table: &mut Table) {
        self.create(now, id, table);
    }

    fn on_closed(&mut self, now: Nanos, id: SessionId, table: &mut Table) {
        let state = &mut self.sessions[id.0];
        state.sent.clear();
        state.was_asked = false;
        let why = state.why.take();
        if std::mem::take(&mut state.is_on) {
            self.call(now, id, table, |a, ctx| a.on_logout(ctx, why));
        }
    }

    fn turn(&mut self, now: Nanos, engine: &mut Engine) -> Result<Flow, Error> {
        while let Ok(call) = self.calls.1.try_recv() {
            self.call(now, SessionId(0), &mut engine.table, |a, ctx| call(a, ctx));
        }
        if self.more.timer.is_some_and(|at| at <= now) {
            self.more.timer = None;
            self.call(now, SessionId(0), &mut engine.table, |a, ctx| a.on_timer(ctx));
        }
        Ok(match (self.more.is_over, self.more.timer) {
            (true, _) => Flow::End,
            (false, Some(at)) => Flow::At(at),
            (false, None) => Flow::Go,
        })
    }
}
