//! Drop copy: the application messages of a session, both ways, sent on in another session of the same
//! thread.
//!
//! A copy has the body of its message, and in OnBehalfOfCompID (115) who sent it. What was received is copied
//! when the application gets it, so once; of what was sent, resends are no news. While the other session is
//! not logged on copies wait; once sent they are in its store, and it is up to its resends that they arrive.
//! A copy costs allocations on the path: a copy to a file does not.

use std::collections::VecDeque;

use tickwire_fix::{Again, Message, SendError, SessionId, Status, is_header, tag};
use tickwire_market::Nanos;

use crate::engine::Table;
use crate::error::Error;
use crate::message::{self, Framer, TagValue};
use crate::observer::Observer;
use crate::settings::Setup;

/// Copies that wait for a logon; the oldest give way, which is said.
const WAITING_MAX: usize = 1 << 16;
/// OnBehalfOfCompID.
const ON_BEHALF_OF: u32 = 115;

/// A message to be sent on.
struct Copy {
    msg_type: Vec<u8>,
    fields: Vec<TagValue>,
}

struct Route {
    from: SessionId,
    to: SessionId,
    /// SenderCompIDs of what is received and of what is sent.
    senders: [Vec<u8>; 2],
    sent: Framer,
    waiting: VecDeque<Copy>,
    dropped: u64,
}

/// Every session's that has one.
#[derive(Default)]
pub(crate) struct DropCopies {
    routes: Vec<Route>,
}

impl DropCopies {
    pub(crate) fn new(setups: &[Setup]) -> Result<DropCopies, Error> {
        let mut copies = DropCopies::default();
        for (at, setup) in setups.iter().enumerate() {
            let Some(name) = &setup.drop_copy_session else {
                continue;
            };
            let is_it = |(to, other): &(usize, &Setup)| *to != at && other.config.target.as_str() == name;
            let Some((to, other)) = setups.iter().enumerate().find(is_it) else {
                return Err(Error::config(format!(
                    "DropCopySession={name} of the [SESSION] in line {}: there is no other session with this TargetCompID on its thread",
                    setup.line
                )));
            };
            if other.drop_copy_session.is_some() {
                return Err(Error::config(format!(
                    "DropCopySession={name} of the [SESSION] in line {}: that session has a drop copy itself, and copies of copies have no end",
                    setup.line
                )));
            }
            let [ours, theirs] =
                [&setup.config.sender, &setup.config.target].map(|id| id.as_str().as_bytes().to_vec());
            copies.routes.push(Route {
                from: SessionId(at),
                to: SessionId(to),
                senders: [theirs, ours],
                sent: Framer::default(),
                waiting: VecDeque::new(),
                dropped: 0,
            });
        }
        Ok(copies)
    }

    /// The application has got a message.
    pub(crate) fn received(&mut self, id: SessionId, message: &Message<'_>, observer: &dyn Observer) {
        for route in self.routes.iter_mut().filter(|route| route.from == id) {
            let fields = message
                .fields()
                .iter()
                .map(|f| (f.tag, message.value(*f).to_vec()));
            route.put(0, message.msg_type(), fields.collect(), observer);
        }
    }

    /// Bytes of a session went out.
    pub(crate) fn sent(&mut self, id: SessionId, bytes: &[u8], observer: &dyn Observer) {
        for route in self.routes.iter_mut().filter(|route| route.from == id) {
            let mut whole = Vec::new();
            route.sent.take(bytes, |m| {
                if message::is_application(m) {
                    whole.push(message::fields(m));
                }
            });
            for fields in whole {
                let value = |wanted: u32| {
                    fields
                        .iter()
                        .find(|(tag, _)| *tag == wanted)
                        .map(|(_, value)| value.clone())
                };
                let (msg_type, is_resent) = (value(tag::MSG_TYPE), value(tag::POSS_DUP_FLAG));
                if let Some(msg_type) = msg_type
                    && is_resent.is_none_or(|flag| flag != b"Y")
                {
                    route.put(1, &msg_type, fields, observer);
                }
            }
        }
    }

    /// A session has lost its connection.
    pub(crate) fn closed(&mut self, id: SessionId) {
        let of_it = self.routes.iter_mut().filter(|route| route.from == id);
        of_it.for_each(|route| route.sent.clear());
    }

    /// Sends what waits, as far as its sessions take it.
    pub(crate) fn send(&mut self, now: Nanos, table: &mut Table, observer: &dyn Observer) {
        for route in &mut self.routes {
            while let Some(copy) = route.waiting.front()
                && table.session(route.to).status() == Status::Active
            {
                let sent = table
                    .session_mut(route.to)
                    .send(now, &copy.msg_type, Again::Resend, |e, _| {
                        copy.fields.iter().for_each(|(tag, value)| e.copy(*tag, value));
                    });
                match sent {
                    // It is taken up again when there is room.
                    Err(SendError::Backlog) => break,
                    Ok(_) => {}
                    Err(why) => observer.warn(format_args!("a drop copy was not sent: {why:?}")),
                }
                route.waiting.pop_front();
            }
        }
    }
}

impl Route {
    fn put(&mut self, sender: usize, msg_type: &[u8], fields: Vec<TagValue>, observer: &dyn Observer) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                observer.warn(format_args!(
                    "{} drop copies lost: their session is not logged on",
                    self.dropped
                ));
            }
        }
        let own = (ON_BEHALF_OF, self.senders[sender].clone());
        let body = fields
            .into_iter()
            .filter(|(t, _)| !is_header(*t) && *t != tag::CHECK_SUM);
        self.waiting.push_back(Copy {
            msg_type: msg_type.to_vec(),
            fields: std::iter::once(own).chain(body).collect(),
        });
    }
}
