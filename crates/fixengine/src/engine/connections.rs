//! How connections come to be: accepted, given to a session or a template, made to hosts.

use super::*;

impl Engine {
    pub(super) fn accept<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        for at in 0..self.connections.listeners.len() {
            let listener = &mut self.connections.listeners[at];
            listener.health.settle(|line| self.observer.warn(line));
            if self.waking.waiter.is_ready(listener.watch) {
                self.accept_all(now, at, app);
            }
        }
    }

    pub(super) fn accept_all<A: Handler>(&mut self, now: Nanos, at: usize, app: &mut A) {
        loop {
            let listener = &mut self.connections.listeners[at];
            // Where it fails, the peer waits in the kernel's queue; those who are here go on.
            let Some(tcp) = listener
                .health
                .accept(&mut listener.socket, |line| self.observer.warn(line))
            else {
                return;
            };
            let address = tcp.peer();
            if !listener.allowed.is_empty() && !listener.allowed.contains(&address.ip().to_canonical()) {
                self.table.note_address_refused();
                self.tell_anybody(
                    now,
                    Kind::Address,
                    format_args!("connection from {address} closed: not one of AllowedRemoteAddresses; add it there if it is a counterparty's"),
                );
                continue;
            }
            let listener = &self.connections.listeners[at];
            let stream = match &listener.tls {
                Some(Tls::Server(server)) => match server.accept(tcp) {
                    Ok(stream) => stream,
                    Err(e) => {
                        // The connection is closed; others may do better.
                        self.connections.listeners[at]
                            .health
                            .failed(Trouble::PeerGone, &e, |line| self.observer.warn(line));
                        continue;
                    }
                },
                _ => Stream::Plain(tcp),
            };
            let id = self.table.connect(now).or_else(|| {
                self.make_room(now, app);
                self.table.connect(now)
            });
            match id {
                Some(id) => self.put(now, id, stream),
                // Without room all the same, the connection is dropped and so closed.
                None => self.tell_anybody(
                    now,
                    Kind::NoRoom,
                    format_args!("connection from {address} closed: every session has one, and every place beside them is taken"),
                ),
            }
        }
    }

    /// Makes room for a connection. Who has said nothing for longest gives way: slow peers must not keep
    /// others out. What peers have said may lie in their sockets still, after this thread stood still for
    /// instance: they are read first, each at most once in a turn.
    fn make_room<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        let is_read = |id: ConnectionId| {
            let link = self.connections.links[id.0].as_ref();
            link.is_some_and(|link| link.read == Some(now))
        };
        if self.oldest_opening().is_some_and(|oldest| !is_read(oldest)) {
            self.read_openings(now, app);
        }
        if self.connections.links.iter().all(Option::is_some) {
            self.drop_oldest_opening(now);
        }
    }

    /// Who has said nothing for longest; of those that came in the same turn, one that was read.
    fn oldest_opening(&self) -> Option<ConnectionId> {
        let age = |id: &ConnectionId| {
            let link = self.connections.links[id.0].as_ref();
            link.map(|link| (link.since, link.read.is_none()))
        };
        self.openings().min_by_key(age)
    }

    pub(super) fn drop_oldest_opening(&mut self, now: Nanos) {
        let Some(oldest) = self.oldest_opening() else {
            return;
        };
        self.table.give_way(oldest);
        self.tell_refused(now);
        if let Some(mut link) = self.take_link(oldest) {
            if let Some(watch) = link.watch {
                self.waking.waiter.forget(watch);
            }
            link.stream.finish();
        }
        self.table.disconnect(now, oldest);
    }

    pub(super) fn put(&mut self, now: Nanos, id: ConnectionId, stream: Stream) {
        let watch = self.waking.waiter.watch(&stream);
        self.connections.links_end = self.connections.links_end.max(id.0 + 1);
        self.connections.links[id.0] = Some(Link {
            stream,
            since: now,
            read: None,
            watch: Some(watch),
            is_closed: false,
            broken: None,
            wants_output: false,
            opening: Vec::new(),
            held: Vec::new(),
            closing: None,
        });
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.connections.links[..self.connections.links_end]
            .iter()
            .flatten()
    }

    /// Takes a link out.
    pub(super) fn take_link(&mut self, id: ConnectionId) -> Option<Link> {
        let link = self.connections.links[id.0].take();
        while self.connections.links_end > 0
            && self.connections.links[self.connections.links_end - 1].is_none()
        {
            self.connections.links_end -= 1;
        }
        link
    }

    /// Connections that have not said whose they are.
    pub(super) fn openings(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let ids = (0..self.connections.links_end).map(ConnectionId);
        ids.filter(|id| self.connections.links[id.0].is_some() && self.table.session_of(*id).is_none())
    }

    pub(super) fn read_openings<A: Handler>(&mut self, now: Nanos, app: &mut A) {
        let openings: Vec<ConnectionId> = self.openings().collect();
        for id in &openings {
            if let Some(link) = &mut self.connections.links[id.0] {
                link.read = Some(now);
            }
            self.read_one(now, *id, true, app);
        }
        // Who closed before a new connection of the same session came is gone before that one is looked at.
        for at in 0..self.connections.links_end {
            if self.table.session_of(ConnectionId(at)).is_some() {
                self.read_one(now, ConnectionId(at), true, app);
            }
        }
        self.table.settle(now);
        self.tell_refused(now);
        while let Some(newcomer) = self.table.poll_newcomer() {
            self.admit(now, &newcomer, app);
        }
        for id in openings {
            if let Some(session) = self.table.session_of(id)
                && let Some(link) = &mut self.connections.links[id.0]
            {
                let bytes = std::mem::take(&mut link.opening);
                app.on_wire(now, session, Way::In, &bytes);
                if let Some(log) = &mut self.log {
                    log.bytes(now, session, Way::In, &bytes);
                }
            }
            self.events(now, id, app);
            self.transmit(now, id, app);
            self.close_if_over(now, id, app);
        }
    }

    /// Gives a session to somebody whom a template admits.
    pub(super) fn admit<A: Handler>(&mut self, now: Nanos, newcomer: &Newcomer, app: &mut A) {
        let template = &self.templates[newcomer.template];
        let setup = template.of_newcomer(newcomer.config);
        let file = setup.store.as_ref().map(|store| store.path.clone());
        let fleeting = file.filter(|path| !path.exists());
        let admitted = crate::store::open(&setup, &self.observer)
            .map(|store| self.table.admit(now, newcomer, store, setup.rules.clone()));
        let id = match admitted {
            Ok(Some(id)) => id,
            Ok(None) => return,
            Err(why) => {
                self.observer
                    .warn(format_args!("{} is turned away: {why}", newcomer.config.target));
                return self.table.turn_away(newcomer.connection);
            }
        };
        self.timetables.retain(|timetable| timetable.session() != id);
        if let Some(calendar) = setup.calendar.clone() {
            let mut timetable = Timetable::new(id, calendar);
            timetable.tell(now, self.clock.wall_at(now), &mut self.table);
            self.timetables.push(timetable);
        }
        self.probes.add(id, None);
        let own = Own {
            users: setup.users.clone(),
            allowed: setup.allowed.clone(),
            logon_fields: setup.logon_fields.clone(),
            fleeting,
            is_admitted: true,
            told: Limiter::default(),
        };
        match self.own.get_mut(id.0) {
            Some(place) => *place = own,
            None => self.own.push(own),
        }
        if let Some(log) = &mut self.log
            && let Err(why) = log.add(id, &setup)
        {
            self.observer
                .warn(format_args!("{} is not logged: {why}", newcomer.config.target));
        }
        app.on_admitted(now, id, &mut self.table);
    }

    /// The session of a template that has never logged on leaves nothing behind.
    pub(super) fn forget_fleeting(&mut self, id: SessionId) {
        if let Some(path) = self.own[id.0].fleeting.take() {
            crate::store::remove(&path);
        }
    }

    /// Begins the connections that are due, each on a thread of its own: the loop must not wait for a host.
    pub(super) fn connect(&mut self, now: Nanos) {
        for (at, outgoing) in self.connections.outgoing.iter_mut().enumerate() {
            let is_idle = !outgoing.is_opening && self.table.connection_of(outgoing.session).is_none();
            let may_log_on = self.table.session(outgoing.session).may_log_on(now);
            if !is_idle || !outgoing.is_wanted || now < outgoing.due || !may_log_on {
                continue;
            }
            let host = outgoing.host().clone();
            let (sender, waker) = (self.connections.opened.0.clone(), self.waking.waker.clone());
            let (tls, timeout) = (outgoing.tls.clone(), outgoing.timeout);
            let open = move || {
                let result = open(&host, tls.as_ref(), timeout);
                let opened = Opened { outgoing: at, result };
                // The loop may have ended meanwhile.
                let _ = sender.send(opened);
                waker.wake();
            };
            match tickwire_runtime::affinity::beside("fix-connect", open) {
                Ok(_) => outgoing.is_opening = true,
                Err(e) => {
                    self.observer.warn(format_args!("no thread to connect by: {e}"));
                    outgoing.ended(now);
                }
            }
        }
    }

    pub(super) fn take_opened<A: Handler>(&mut self, now: Nanos, opened: Opened, app: &mut A) {
        let outgoing = &mut self.connections.outgoing[opened.outgoing];
        outgoing.is_opening = false;
        let stream = match opened.result {
            Ok(stream) if outgoing.is_wanted => stream,
            Ok(_) => return,
            Err(why) => {
                outgoing.ended(now);
                let wait_s = outgoing.due.since(now) as f64 / 1e9;
                let host = outgoing.host();
                return self
                    .observer
                    .warn(format_args!("{why}; trying {host} in {wait_s:.1} s"));
            }
        };
        let session = outgoing.session;
        // An initiator has nobody to refuse yet.
        let _ = self.prepare_logon(now, session, app);
        match self.table.connect_as(now, session) {
            Some(id) => self.put(now, id, stream),
            None => self.connections.outgoing[opened.outgoing].ended(now),
        }
    }

    pub(super) fn outgoing_mut(&mut self, id: SessionId) -> Option<&mut Outgoing> {
        self.connections.outgoing.iter_mut().find(|o| o.session == id)
    }

    /// Whether a session is to connect; at once, if it is.
    pub fn want(&mut self, now: Nanos, id: SessionId, wanted: bool) {
        if let Some(outgoing) = self.outgoing_mut(id) {
            outgoing.is_wanted = wanted;
            outgoing.due = now;
        }
    }

    /// Closes a session's connection without a word; one that connects does so again at once.
    pub fn drop_connection<A: Handler>(&mut self, now: Nanos, id: SessionId, app: &mut A) {
        if let Some(connection) = self.table.connection_of(id) {
            self.close(now, connection, app);
            if let Some(outgoing) = self.outgoing_mut(id) {
                outgoing.due = now;
            }
        }
    }
}

/// Connects to a host, by the first of its addresses that takes it; a thread of its own waits here.
fn open(host: &Host, tls: Option<&Tls>, timeout: Duration) -> Result<Stream, String> {
    let addresses = (host.name.as_str(), host.port)
        .to_socket_addrs()
        .map_err(|e| format!("{host} cannot be found: {e}"))?;
    let mut last = format!("{host} has no address");
    for address in addresses {
        let connected = TcpStream::connect(address, timeout).map_err(|e| e.to_string());
        let stream = connected.and_then(|tcp| match tls {
            Some(Tls::Client { client, name }) => {
                let name = name.as_ref().unwrap_or(&host.name);
                let mut stream = client.connect(tcp, name).map_err(|e| e.to_string())?;
                match stream.establish(timeout) {
                    Ok(()) => Ok(stream),
                    Err(e) => Err(format!("{host}: {e}")),
                }
            }
            _ => Ok(Stream::Plain(tcp)),
        });
        match stream {
            Ok(stream) => return Ok(stream),
            Err(why) => last = why,
        }
    }
    Err(last)
}
