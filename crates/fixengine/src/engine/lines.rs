//! What an engine tells of its sessions and of whoever knocks, bounded by kind.

use super::*;

/// Lines that were held back before this one.
pub(super) fn more(held: u64) -> String {
    match held {
        0 => String::new(),
        n => format!(" ({n} more like it before were not written)"),
    }
}

/// Who a first message is from.
pub(super) fn said(identity: &Identity) -> String {
    let (begin, sender, target) = (identity.begin_string, identity.sender, identity.target);
    format!("8={} 49={sender} 56={target}: ", begin.as_str())
}

/// What to do about an end of a session.
pub(super) fn advice(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::SequenceTooLow => {
            "; agree with the peer on the numbers: tickwire fix store sets ours, ResetOnLogon begins anew with each logon"
        }
        DisconnectReason::LogonTimeout => {
            "; look whether the peer takes us for another session, or is another program"
        }
        DisconnectReason::HeartbeatTimeout => "; look at the peer and the network",
        DisconnectReason::PeerTooSlow => "; look why the peer does not read",
        DisconnectReason::ProtocolViolation => {
            "; look at the message in the log and at the peer's configuration"
        }
        _ => "",
    }
}

impl Engine {
    /// Says what happened to a session, and logs it.
    pub(super) fn tell(&mut self, now: Nanos, id: SessionId, text: std::fmt::Arguments<'_>) {
        self.observer.say(text);
        if let Some(log) = &mut self.log {
            log.event(now, id, &text.to_string());
        }
    }

    /// The same, unless there were too many of the kind.
    pub(super) fn tell_of(&mut self, now: Nanos, id: SessionId, kind: Kind, text: std::fmt::Arguments<'_>) {
        match self.own[id.0].told.admits(kind, now) {
            Some(held) => self.tell(now, id, format_args!("{text}{}", more(held))),
            None => self.has_held = true,
        }
    }

    /// Says what became of a connection that belongs to no session.
    pub(super) fn tell_anybody(&mut self, now: Nanos, kind: Kind, text: std::fmt::Arguments<'_>) {
        match self.told.admits(kind, now) {
            Some(held) => self.observer.say(format_args!("{text}{}", more(held))),
            None => self.has_held = true,
        }
    }

    /// Tells of lines that were held back, as soon as there may be one more of their kind.
    #[cold]
    pub(super) fn settle_told(&mut self, now: Nanos) {
        let observer = &*self.observer;
        self.has_held = self.told.settle(now, |line| observer.say(line));
        for at in 0..self.own.len() {
            let mut lines = Vec::new();
            self.has_held |= self.own[at].told.settle(now, |line| lines.push(line.to_string()));
            let name = self.session_name(SessionId(at));
            for line in lines {
                self.tell(now, SessionId(at), format_args!("{name}: {line}"));
            }
        }
    }

    /// A session as it is called in lines.
    pub(super) fn session_name(&self, id: SessionId) -> String {
        let config = self.table.session(id).config();
        format!("{} {} -> {}", config.version.name(), config.sender, config.target)
    }

    /// Where a session's peer is.
    pub(super) fn whereabouts(&self, id: SessionId) -> String {
        let link = self
            .table
            .connection_of(id)
            .and_then(|at| self.connections.links[at.0].as_ref());
        link.map_or_else(|| "nowhere".into(), |link| link.stream.peer().to_string())
    }

    /// Tells of connections that were closed before they came to belong to a session.
    #[cold]
    pub(super) fn tell_refused(&mut self, now: Nanos) {
        while let Some(refused) = self.table.poll_refused() {
            let link = self.connections.links[refused.connection.0].as_ref();
            let Some(at) = link.map(|link| link.stream.peer()) else {
                continue;
            };
            let Some((kind, why)) = self.why(&refused) else {
                continue;
            };
            let who = refused
                .identity
                .map(|identity| said(&identity))
                .unwrap_or_default();
            let text = format!("connection from {at} closed: {who}{why}");
            match refused.why {
                Refusal::Busy(session) => self.tell_of(now, session, kind, format_args!("{text}")),
                _ => self.tell_anybody(now, kind, format_args!("{text}")),
            }
        }
    }

    /// Why a connection was refused, and what to do.
    pub(super) fn why(&self, refused: &Refused) -> Option<(Kind, String)> {
        let ids = refused
            .identity
            .map(|identity| (identity.target, identity.sender));
        let told = match refused.why {
            Refusal::Silent(0) => (
                Kind::Silent,
                "nothing came in time; a FIX initiator sends its Logon at once: look whether a probe or another protocol comes here".into(),
            ),
            Refusal::Silent(bytes) => (
                Kind::Silent,
                format!("{bytes} bytes came in time, but no whole message; look at the peer's Logon and at the network"),
            ),
            Refusal::Garbage => (
                Kind::Garbage,
                "what it sent first is no FIX message; look whether one side has TLS and the other not, or another protocol comes here".into(),
            ),
            Refusal::Unknown => {
                let (ours, theirs) = ids.unwrap_or_default();
                (
                    Kind::Unknown,
                    format!("unknown CompIDs; add a [SESSION] with SenderCompID={ours} and TargetCompID={theirs}, or correct the peer's"),
                )
            }
            Refusal::OtherVersion(version) => (
                Kind::Version,
                format!(
                    "wrong BeginString: the session of these CompIDs speaks {}; correct BeginString (over FIXT DefaultApplVerID) on one side",
                    version.name()
                ),
            ),
            Refusal::Busy(session) => (
                Kind::Second,
                format!(
                    "a second connection: the session is connected to {}; look whether the peer runs twice, or has left the first one open",
                    self.whereabouts(session)
                ),
            ),
            Refusal::TemplateFull => (
                Kind::NoRoom,
                "the template has as many sessions as it may; raise DynamicSessionsMax if they are all wanted".into(),
            ),
            Refusal::NoRoom => (
                Kind::NoRoom,
                "it had said nothing for longest, and its place was needed; look who connects and says nothing".into(),
            ),
            // Who turned it away has said why.
            Refusal::ByOwner => return None,
        };
        Some(told)
    }

    #[cold]
    pub(super) fn tell_garbled(&mut self, now: Nanos, id: ConnectionId, before: u64) {
        let Some(session) = self.table.session_of(id) else {
            return;
        };
        let state = self.table.session(session);
        // Before the logon the end of the session tells of it.
        if !matches!(state.status(), Status::Active | Status::LogoutSent) {
            return;
        }
        let count = state.counters().get(Counter::FixMalformed) - before;
        let why = state
            .last_garbled()
            .map(|why| why.to_string())
            .unwrap_or_default();
        let (name, at) = (self.session_name(session), self.whereabouts(session));
        self.tell_of(
            now,
            session,
            Kind::Garbled,
            format_args!("{name}: {count} garbled message(s) from {at} skipped: {why}; what was lost is asked for when the next message comes"),
        );
    }

    /// Tells of a connection that ended without a word of FIX.
    #[cold]
    pub(super) fn tell_lost(&mut self, now: Nanos, session: Option<SessionId>, link: &Link) {
        let at = link.stream.peer();
        let how = match &link.broken {
            Some(why) => why.clone(),
            None if link.stream.was_reset() => "reset by the peer".into(),
            None if link.is_closed => "closed by the peer".into(),
            // By ourselves, which is told where it was decided.
            None => return,
        };
        let Some(id) = session else {
            let what = "before a Logon came; look whether a probe or another protocol comes here";
            return self.tell_anybody(
                now,
                Kind::Silent,
                format_args!("connection from {at} ended {what}: {how}"),
            );
        };
        let state = self.table.session(id);
        let role = state.config().role;
        let what = match (state.status(), role) {
            (Status::Active | Status::LogoutSent, _) => "lost without a Logout",
            (Status::LogonSent | Status::LogonAwaited, _) => "ended before the logon was over",
            // The session's own end has been told of.
            _ => return,
        };
        let next = match (what, role) {
            (_, Role::Initiator) => "the next host is tried, and what was missed asked for",
            ("lost without a Logout", _) => {
                "it may log on again, and what was missed is sent then; look at the peer and the network"
            }
            _ => "look at the peer's log for the reason",
        };
        let name = self.session_name(id);
        self.tell_of(
            now,
            id,
            Kind::Lost,
            format_args!("{name}: connection with {at} {what}: {how}; {next}"),
        );
    }
}
