//! The venue of a run: takes mass quotes by FIX, notes when each came and what caused it, and accepts
//! everything.

use std::collections::HashMap;
use std::num::NonZeroU64;

use tickwire_fix::{
    Again, CompId, Event, QuoteEntries, QuoteSets, Role, Session, SessionConfig, Status, tag,
};
use tickwire_market::Nanos;
use tickwire_trading::strategy::{is_name_of_quote, place_of};

/// When bytes came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    /// When the receive call had returned: a reading of the counter.
    pub(super) ticks: u64,
    /// When the last frame of that call entered the venue's stack, nanoseconds of `CLOCK_REALTIME`, where the
    /// kernel says it.
    pub(super) kernel_ns: Option<NonZeroU64>,
}

/// What a packet caused, as the venue saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) entries: u32,
    /// When each mass quote came.
    pub(super) came: Vec<Came>,
}

/// See the module's description.
pub(super) struct Venue {
    session: Session,
    /// By sequence number of the packet.
    seen: HashMap<u64, Seen>,
    /// By entry: bid and offer as text, and whether there is a quantity.
    live: HashMap<u16, [Option<String>; 2]>,
    ids: Vec<u64>,
    out: Vec<u8>,
    /// Counts nothing of one message: the run has to fail.
    forgets_one: bool,
    problems: Vec<String>,
}

fn comp(name: &str) -> CompId {
    CompId::new(name.as_bytes()).unwrap_or(CompId::EMPTY)
}

impl Venue {
    pub(super) fn new(forgets_one: bool) -> Venue {
        let config = SessionConfig {
            reset_on_logon: true,
            receive_bytes: 1 << 20,
            fields_max: 8_192,
            latency_max_ns: 0,
            ..SessionConfig::new(Role::Acceptor, comp("EXCHANGE"), comp("QUOTER"))
        };
        Venue {
            session: Session::new(config),
            seen: HashMap::with_capacity(1 << 16),
            live: HashMap::with_capacity(2_048),
            ids: Vec::with_capacity(1_024),
            out: Vec::with_capacity(1 << 16),
            forgets_one,
            problems: Vec::new(),
        }
    }

    pub(super) fn connected(&mut self, now: Nanos) {
        self.session.handle_connected(now);
    }

    pub(super) fn is_active(&self) -> bool {
        self.session.status() == Status::Active
    }

    /// Takes bytes that came then; the bytes to answer.
    pub(super) fn take(&mut self, now: Nanos, came: Came, mut bytes: &[u8]) -> &[u8] {
        self.out.clear();
        while !bytes.is_empty() {
            let taken = self.session.handle_bytes(now, bytes);
            bytes = &bytes[taken..];
            self.events(now, came);
            if taken == 0 {
                self.problems.push("the session takes no more".into());
                break;
            }
        }
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        self.flush();
        &self.out
    }

    fn flush(&mut self) {
        let mut chunk = [0; 4_096];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.out.extend_from_slice(bytes);
        }
    }

    fn events(&mut self, now: Nanos, came: Came) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Message { .. } => self.message(came),
                Event::Disconnect { reason, text } => {
                    self.problems
                        .push(format!("the session ended: {reason} {}", text.as_str()));
                }
                Event::Rejected { text, .. } => self.problems.push(format!("rejected: {}", text.as_str())),
                _ => {}
            }
            for id in std::mem::take(&mut self.ids) {
                let sent = self.session.send(now, b"b", Again::Resend, |e, _| {
                    e.unsigned(tag::QUOTE_ID, id);
                    e.unsigned(tag::QUOTE_STATUS, 0);
                    e.unsigned(tag::QUOTE_RESPONSE_LEVEL, 2);
                });
                if sent.is_err() {
                    self.problems
                        .push(format!("mass quote {id} could not be answered"));
                }
            }
            self.flush();
        }
    }

    fn message(&mut self, came: Came) {
        let Some(m) = self.session.message() else { return };
        let kind = m
            .find(tag::MSG_TYPE)
            .map(|f| m.value(f).to_vec())
            .unwrap_or_default();
        if kind != b"i" {
            let kind = String::from_utf8_lossy(&kind).into_owned();
            return self
                .problems
                .push(format!("a message of type {kind}, not a mass quote"));
        }
        let number = |tag| m.find(tag).and_then(|f| m.unsigned(f).ok());
        let (Some(id), Some(cause)) = (number(tag::QUOTE_ID), number(tag::CAUSE_SEQ)) else {
            return self.problems.push("a mass quote without QuoteID or cause".into());
        };
        let mut entries = 0;
        for set in m.group::<QuoteSets>().into_iter().flatten() {
            for entry in set.group::<QuoteEntries>().into_iter().flatten() {
                let text = |tag| {
                    entry
                        .find(tag)
                        .map(|f| String::from_utf8_lossy(entry.value(f)).into_owned())
                };
                let name = text(tag::QUOTE_ENTRY_ID).and_then(|name| name.parse::<u64>().ok());
                // Names of a host's quotes are numbers of their places, too, behind those of orders.
                let name = name.and_then(|name| match is_name_of_quote(name) {
                    true => Some(place_of(name)),
                    false => u16::try_from(name).ok(),
                });
                let Some(name) = name else {
                    return self.problems.push("an entry without a number".into());
                };
                let side = |price, size| {
                    let size = entry.find(size).and_then(|f| entry.qty(f).ok());
                    text(price).filter(|_| size.is_some_and(|qty| !qty.is_zero()))
                };
                let quote = [
                    side(tag::BID_PX, tag::BID_SIZE),
                    side(tag::OFFER_PX, tag::OFFER_SIZE),
                ];
                self.live.insert(name, quote);
                entries += 1;
            }
        }
        self.ids.push(id);
        if std::mem::take(&mut self.forgets_one) {
            return;
        }
        let seen = self.seen.entry(cause).or_default();
        seen.entries += entries;
        seen.came.push(came);
    }

    /// What a packet caused.
    pub(super) fn seen(&self, seq: u64) -> Option<&Seen> {
        self.seen.get(&seq)
    }

    /// Mass quotes taken.
    pub(super) fn messages(&self) -> u64 {
        self.seen.values().map(|seen| seen.came.len() as u64).sum()
    }

    /// What stands of an entry.
    pub(super) fn live(&self, entry: u16) -> [Option<&str>; 2] {
        match self.live.get(&entry) {
            Some(quote) => [quote[0].as_deref(), quote[1].as_deref()],
            None => [None; 2],
        }
    }

    /// What was wrong.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }
}
