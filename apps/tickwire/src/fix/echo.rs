//! An application that sends orders back as they came: what the public acceptance suite talks to, and a first
//! peer for whoever tries a session.

use std::collections::HashSet;

use tickwire_fix::{Again, Event, Message, SessionId, is_header, tag};
use tickwire_market::Nanos;

use tickwire_fixengine::{Handler, Table};

/// Signature and SignatureLength, of the trailer: they sign the message that came, not its echo.
const SIGNATURE: [u32; 2] = [89, 93];

/// Answers NewOrderSingle, SecurityDefinition and Email with the same message, fields by rising tag. An order
/// with PossResend that was seen before is passed over.
pub(super) struct Echo {
    /// ClOrdIDs by session; forgotten when it ends.
    seen: Vec<HashSet<Vec<u8>>>,
}

impl Echo {
    pub(super) fn new(sessions: usize) -> Echo {
        Echo {
            seen: vec![HashSet::new(); sessions],
        }
    }
}

impl Handler for Echo {
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Table) {
        match event {
            Event::Message { poss_resend, .. } => {
                let session = table.session_mut(id);
                let Some(message) = session.message() else { return };
                let msg_type = message.msg_type().to_vec();
                if !matches!(&msg_type[..], b"D" | b"d" | b"C") {
                    return session.refuse(now);
                }
                let id_of = |m: &Message<'_>| m.find(tag::CL_ORD_ID).map(|f| m.value(f).to_vec());
                if msg_type == b"D"
                    && let Some(order) = id_of(&message)
                    && !self.seen[id.0].insert(order)
                    && *poss_resend
                {
                    return;
                }
                let mut fields: Vec<(u32, Vec<u8>)> = message
                    .fields()
                    .iter()
                    .filter(|f| !is_header(f.tag) && !SIGNATURE.contains(&f.tag))
                    .map(|f| (f.tag, message.value(*f).to_vec()))
                    .collect();
                fields.sort_by_key(|(tag, _)| *tag);
                let poss_resend = *poss_resend;
                // A peer that does not read loses the echo; its session goes on.
                let _ = session.send(now, &msg_type, Again::Resend, |e, _| {
                    if poss_resend {
                        e.char(tag::POSS_RESEND, b'Y');
                    }
                    // As they came: an empty value or data with separators in it is no reason to lose the
                    // echo.
                    fields.iter().for_each(|(tag, value)| e.copy(*tag, value));
                });
            }
            Event::Disconnect { .. } => self.seen[id.0].clear(),
            _ => {}
        }
    }

    fn on_admitted(&mut self, _: Nanos, id: SessionId, _: &mut Table) {
        self.seen.resize(self.seen.len().max(id.0 + 1), HashSet::new());
        self.seen[id.0].clear();
    }
}
