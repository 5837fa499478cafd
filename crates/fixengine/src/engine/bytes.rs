//! Bytes between sockets and sessions, and what happens in a session to its handler.

use super::lines::advice;
use super::*;

impl Engine {
    /// Takes what connections of sessions sent.
    pub(super) fn read<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        for at in 0..self.connections.links_end {
            let Some(link) = &self.connections.links[at] else {
                continue;
            };
            let id = ConnectionId(at);
            let Some(session) = self.table.session_of(id) else {
                continue;
            };
            if link.watch.is_none() {
                if self.table.session(session).is_reading() {
                    self.take_held(now, id, app);
                }
            } else if link.watch.is_some_and(|w| self.waking.waiter.is_ready(w)) || link.stream.has_input() {
                self.read_one(now, id, false, app);
            }
        }
    }

    /// Hands over what was held back; the socket is read again when all of it was taken.
    pub(super) fn take_held<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.connections.links[id.0] else {
            return;
        };
        let mut held = std::mem::take(&mut link.held);
        let taken = self.feed(now, id, &held, app);
        held.drain(..taken);
        let Some(link) = &mut self.connections.links[id.0] else {
            return;
        };
        if held.is_empty() {
            let watch = self.waking.waiter.watch(&link.stream);
            self.waking.waiter.want_output(watch, link.wants_output);
            link.watch = Some(watch);
        }
        link.held = held;
    }

    /// Reads what there is. A short read means that there was no more, unless `to_end`: then an end behind it
    /// is seen, too.
    pub(super) fn read_one<A: Handler>(&mut self, now: Nanos, id: ConnectionId, to_end: bool, app: &mut A) {
        for _ in 0..READS_PER_TURN {
            let Some(link) = &mut self.connections.links[id.0] else {
                return;
            };
            if link.is_closed {
                break;
            }
            if link.watch.is_none() {
                return;
            }
            let len = match link.stream.recv(&mut self.input) {
                Ok(Received::Bytes(bytes)) => bytes.len(),
                Ok(Received::Nothing) => return,
                Ok(Received::Closed) => {
                    link.is_closed = true;
                    break;
                }
                Err(e) => {
                    link.is_closed = true;
                    link.broken = Some(e.to_string());
                    break;
                }
            };
            // Its peer's clock may be ours, and it may have noticed before us.
            if self.clock.is_set() {
                self.follow_clock();
            }
            self.take_bytes(now, id, len, app);
            let Some(link) = &mut self.connections.links[id.0] else {
                return;
            };
            if len < self.input.len() && !to_end && !link.stream.has_input() {
                link.stream.acknowledge();
                return;
            }
        }
        if self.connections.links[id.0]
            .as_ref()
            .is_some_and(|link| link.is_closed)
        {
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close(now, id, app);
        }
    }

    pub(super) fn take_bytes<A: Handler>(&mut self, now: Nanos, id: ConnectionId, len: usize, app: &mut A) {
        match (self.table.session_of(id), &mut self.connections.links[id.0]) {
            (Some(session), _) => {
                self.probes.bytes_in(session);
                app.on_wire(now, session, Way::In, &self.input[..len]);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::In, &self.input[..len]);
                }
            }
            // Bounded by what the table takes.
            (None, Some(link)) if link.opening.len() < self.input.len() => {
                link.opening.extend_from_slice(&self.input[..len]);
            }
            _ => {}
        }
        let input = std::mem::take(&mut self.input);
        let taken = self.feed(now, id, &input[..len], app);
        if taken < len
            && let Some(link) = &mut self.connections.links[id.0]
        {
            match self.table.session_of(id) {
                // It waits for a word of its owner, or the peer is beyond its rate.
                Some(_) => {
                    link.held.extend_from_slice(&input[taken..len]);
                    if let Some(watch) = link.watch.take() {
                        self.waking.waiter.forget(watch);
                    }
                }
                // More than a Logon before its answer.
                None => link.is_closed = true,
            }
        }
        self.input = input;
    }

    /// Hands bytes to a session as far as it takes them; how many.
    pub(super) fn feed<A: Handler>(
        &mut self,
        now: Nanos,
        id: ConnectionId,
        bytes: &[u8],
        app: &mut A,
    ) -> usize {
        let (mut from, mut stuck) = (0, 0);
        let garbled = self.garbled(id);
        // Events that found no room come with the second look.
        while from < bytes.len() && stuck < 2 {
            let taken = self.table.handle_bytes(now, id, &bytes[from..]);
            from += taken;
            self.probes.decoded();
            self.events(now, id, app);
            self.transmit(now, id, app);
            stuck = if taken == 0 { stuck + 1 } else { 0 };
        }
        self.probes.over(&self.clock);
        if self.garbled(id) != garbled {
            self.tell_garbled(now, id, garbled.unwrap_or_default());
        }
        from
    }

    /// How many garbled messages the session of a connection has had.
    #[inline]
    pub(super) fn garbled(&self, id: ConnectionId) -> Option<u64> {
        let session = self.table.session_of(id)?;
        Some(self.table.session(session).counters().get(Counter::FixMalformed))
    }

    /// What happened in the session of a connection.
    pub(super) fn events<A: Handler>(&mut self, now: Nanos, connection: ConnectionId, app: &mut A) {
        let Some(id) = self.table.session_of(connection) else {
            return;
        };
        self.events_of(now, id, app);
    }

    pub(super) fn events_of<A: Handler>(&mut self, now: Nanos, id: SessionId, app: &mut A) {
        while let Some(event) = self.table.poll_event(id) {
            match &event {
                Event::LoggedOn { peer, .. } => {
                    let at = self.whereabouts(id);
                    self.tell_of(
                        now,
                        id,
                        Kind::LoggedOn,
                        format_args!("{peer} logged on from {at}"),
                    );
                    self.probes.logged_on(id);
                    if self.own[id.0].is_admitted {
                        self.settle_in(id);
                    }
                    if let Some(outgoing) = self.outgoing_mut(id) {
                        outgoing.attempts.logged_on(now);
                    }
                }
                Event::LogonRequested { peer } => self.decide(now, id, peer, app),
                Event::CancelOrders { peer } => {
                    self.tell(
                        now,
                        id,
                        format_args!("{peer} is gone: what it has open is to be cancelled"),
                    );
                }
                Event::NotKept { first, last, count } => {
                    let peer = self.table.session(id).peer();
                    self.tell(
                        now,
                        id,
                        format_args!(
                            "{peer} asked for messages that the store no longer has: {count} numbers, {first} to {last}, were sent as gap \
                             fills; a larger FileStoreMegabytes keeps more"
                        ),
                    );
                }
                Event::Disconnect { reason, text } => {
                    let (name, at) = (self.session_name(id), self.whereabouts(id));
                    let text = match text.as_str() {
                        "" => String::new(),
                        text => format!(": {text}"),
                    };
                    let advice = advice(*reason);
                    self.tell_of(
                        now,
                        id,
                        Kind::Ended,
                        format_args!("{name} with {at} ended ({reason:?}): {reason}{text}{advice}"),
                    );
                }
                _ => {}
            }
            let is_message = matches!(event, Event::Message { .. });
            if is_message {
                self.probes.handed_over();
                if let Some(message) = self.table.session(id).message() {
                    self.copies.received(id, &message, &*self.observer);
                }
            }
            app.on_event(now, id, &event, &mut self.table);
            if is_message {
                self.probes.answered();
                // An order caused by market data goes out on another session: not behind the rest of what was
                // read.
                if let Some(used) = self.table.take_last_used().filter(|used| *used != id)
                    && let Some(connection) = self.table.connection_of(used)
                {
                    self.transmit(now, connection, app);
                }
            }
        }
    }

    /// A session that a template admitted has logged on: it stays.
    #[cold]
    pub(super) fn settle_in(&mut self, id: SessionId) {
        self.own[id.0].fleeting = None;
        let config = self.table.session(id).config();
        self.probes.show_in(id, || self.observer.row(&row_name(config)));
    }

    /// Whether somebody may log on, by the name and password in the Logon.
    #[cold]
    pub(super) fn decide<A: Handler>(&mut self, now: Nanos, id: SessionId, peer: &CompId, app: &mut A) {
        let session = self.table.session(id);
        let Some(request) = session.logon_request() else {
            return;
        };
        let own = &self.own[id.0];
        let link = self
            .table
            .connection_of(id)
            .and_then(|at| self.connections.links[at.0].as_ref());
        let may_come = |link: &Link| own.allowed.contains(&link.stream.peer().ip().to_canonical());
        let verdict = match &own.users {
            _ if !own.allowed.is_empty() && !link.is_some_and(may_come) => Err("not from this address"),
            Some(users) => users.judge(&request),
            None => Ok(()),
        };
        let verdict = verdict.and_then(|()| self.prepare_logon(now, id, app));
        let session = self.table.session_mut(id);
        match verdict {
            Ok(()) => session.accept_logon(now),
            Err(why) => {
                session.refuse_logon(now, why);
                let at = self.whereabouts(id);
                self.tell_of(
                    now,
                    id,
                    Kind::Refused,
                    format_args!("{peer} from {at} refused: {why}"),
                );
            }
        }
    }

    /// Puts what the handler wants to say into the Logon that is written next.
    #[cold]
    pub(super) fn prepare_logon<A: Handler>(
        &mut self,
        now: Nanos,
        id: SessionId,
        app: &mut A,
    ) -> Result<(), &'static str> {
        let more = app.before_logon(now, id, &mut self.table)?;
        let all = self.own[id.0].logon_fields.iter().cloned().chain(more);
        self.table.session_mut(id).set_logon_fields(boxed(all.collect()));
        Ok(())
    }

    /// Sends what sessions have to say by their timers and applications, and closes what is over.
    pub(super) fn drain<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        for at in 0..self.connections.links_end {
            let id = ConnectionId(at);
            if self.connections.links[at].is_none() {
                continue;
            }
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close_if_over(now, id, app);
        }
    }

    pub(super) fn close_if_over<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.connections.links[id.0] else {
            return;
        };
        if !link.is_closed && !self.table.wants_close(id) {
            return;
        }
        let since = *link.closing.get_or_insert(now);
        if link.is_closed || !link.stream.has_unsent() || now.since(since) >= CLOSE_NS {
            self.close(now, id, app);
        }
    }

    pub(super) fn transmit<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let Some(link) = &mut self.connections.links[id.0] else {
            return;
        };
        let session = self.table.session_of(id);
        loop {
            if link.stream.has_unsent() {
                match link.stream.flush() {
                    Ok(true) => {}
                    Ok(false) => {
                        if let Some(watch) = link.watch.filter(|_| !link.wants_output) {
                            link.wants_output = true;
                            self.waking.waiter.want_output(watch, true);
                        }
                        return;
                    }
                    Err(e) => {
                        link.is_closed = true;
                        link.broken = Some(e.to_string());
                        return;
                    }
                }
            }
            let Some(bytes) = self.table.poll_transmit(id, &mut self.output) else {
                let asked = session.and_then(|session| Some((session, self.table.resend_asked(session)?)));
                let Some((session, (seq, message))) = asked else {
                    break;
                };
                let may = app.may_resend(session, message);
                self.table.session_mut(session).decide_resend(seq, may);
                continue;
            };
            if let Err(e) = link.stream.send(bytes) {
                link.is_closed = true;
                link.broken = Some(e.to_string());
                return;
            }
            if let Some(session) = session {
                self.probes.bytes_out(session);
                app.on_wire(now, session, Way::Out, bytes);
                app.on_sent(now, session, bytes, &mut self.table);
                self.copies.sent(session, bytes, &*self.observer);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::Out, bytes);
                }
            }
        }
        if link.wants_output {
            link.wants_output = false;
            if let Some(watch) = link.watch {
                self.waking.waiter.want_output(watch, false);
            }
        }
    }

    pub(super) fn close<A: Handler>(&mut self, now: Nanos, id: ConnectionId, app: &mut A) {
        let session = self.table.session_of(id);
        if let Some(mut link) = self.take_link(id) {
            if !self.table.wants_close(id) {
                self.tell_lost(now, session, &link);
            }
            if let Some(watch) = link.watch {
                self.waking.waiter.forget(watch);
            }
            link.stream.finish();
        }
        self.table.disconnect(now, id);
        if let Some(session) = session {
            app.on_closed(now, session, &mut self.table);
            self.copies.closed(session);
            self.events_of(now, session, app);
            self.forget_fleeting(session);
            if let Some(log) = &mut self.log {
                log.closed(now, session);
            }
            if let Some(outgoing) = self.outgoing_mut(session) {
                outgoing.ended(now);
            }
        }
    }
}
