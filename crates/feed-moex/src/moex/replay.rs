//! The client of TCP replay: packets that were missed, over a connection, one request each.
//!
//! When the feed asks for packets the owner tells [`MoexReplay::ask`], connects, and moves bytes. What comes
//! is handed to the feed like any retransmission; when a connection brings nothing, the feed asks again.

use super::MoexFeed;
use crate::{MissingRange, SessionId};
use alloc::{vec, vec::Vec};
use core::ops::Range;
use tickwire_market::{EventSink, Nanos, SeqNo};
use tickwire_wire_moex::moex::{MessageKind, REPLAY_MESSAGE_MAX, replay, split_replay};

/// Where and as whom to ask.
#[derive(Clone, Debug)]
pub struct MoexReplayConfig {
    /// Which feed's packets: `OLR` (the default) for orders, `TLR` for trades.
    pub feed: Vec<u8>,
    /// Who asks (49), at most 32 bytes.
    pub sender: Vec<u8>,
    /// The user, at most 32 bytes. Default: the one that a public client uses.
    pub username: Vec<u8>,
    /// The password, in clear text on the wire, at most 32 bytes.
    pub password: Vec<u8>,
    /// How long a connection may take, from being made to its logout.
    pub patience_ns: u64,
}

impl Default for MoexReplayConfig {
    fn default() -> MoexReplayConfig {
        MoexReplayConfig {
            feed: b"OLR".into(),
            sender: b"TICKWIRE".into(),
            username: b"user0".into(),
            password: b"pass0".into(),
            patience_ns: 2 * Nanos::SECOND,
        }
    }
}

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoexReplayState {
    /// Nothing is asked for.
    Idle,
    /// A connection is wanted.
    Connect,
    /// The logon is answered next.
    LoggingOn,
    /// Packets come.
    Replaying,
    /// The server logged out after the last packet: close the connection once everything is sent.
    Complete,
    /// Close the connection: it was refused, broken or slow.
    Failed,
}

/// What is said next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Say {
    Nothing,
    Logon,
    Request,
    Logout,
}

/// See the module's description.
pub struct MoexReplay {
    config: MoexReplayConfig,
    state: MoexReplayState,
    first: u64,
    last: u64,
    stream: Vec<u8>,
    length: usize,
    say: Say,
    out: Vec<u8>,
    unsent: Range<usize>,
    /// When the server answered the logon: `SendingTime`.
    logon_stamp: u64,
    now: Nanos,
    deadline: Nanos,
}

impl MoexReplay {
    /// A client that asks for nothing. All memory it will ever use is taken here.
    pub fn new(config: MoexReplayConfig) -> MoexReplay {
        MoexReplay {
            config,
            state: MoexReplayState::Idle,
            first: 0,
            last: 0,
            stream: vec![0; REPLAY_MESSAGE_MAX + 4],
            length: 0,
            say: Say::Nothing,
            out: vec![0; replay::REQUEST_SIZE_MAX],
            unsent: 0..0,
            logon_stamp: 0,
            now: Nanos::ZERO,
            deadline: Nanos::ZERO,
        }
    }

    /// Wants these packets, at most [`replay::MESSAGES_MAX`] of them; `false` if it is busy with others, or
    /// if the numbers are none that the exchange has. Then connect.
    pub fn ask(&mut self, range: MissingRange) -> bool {
        let count = u64::from(range.count).clamp(1, replay::MESSAGES_MAX.into());
        let last = range.first.0.saturating_add(count - 1);
        if self.state != MoexReplayState::Idle || last > u32::MAX.into() {
            return false;
        }
        (self.first, self.last) = (range.first.0, last);
        self.state = MoexReplayState::Connect;
        true
    }

    /// A connection is there.
    pub fn handle_connected(&mut self, now: Nanos) {
        if self.state == MoexReplayState::Connect {
            self.state = MoexReplayState::LoggingOn;
            self.say = Say::Logon;
            self.now = now;
            self.deadline = now.after(self.config.patience_ns);
        }
    }

    /// The next bytes of the connection. Hands the packets they complete to the feed.
    pub fn handle_bytes(
        &mut self,
        now: Nanos,
        mut bytes: &[u8],
        feed: &mut MoexFeed,
        sink: &mut dyn EventSink,
    ) {
        self.now = now;
        while !bytes.is_empty() && self.is_open() {
            let room = bytes.len().min(self.stream.len() - self.length);
            let (taken, rest) = bytes.split_at(room);
            self.stream[self.length..self.length + room].copy_from_slice(taken);
            self.length += room;
            bytes = rest;
            self.read(now, feed, sink);
        }
    }

    /// The connection is gone, or could not be made.
    pub fn handle_closed(&mut self) {
        self.state = MoexReplayState::Idle;
        self.length = 0;
        self.say = Say::Nothing;
        self.unsent = 0..0;
    }

    /// Patience may have run out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.now = now;
            self.finish(MoexReplayState::Failed);
        }
    }

    /// The next bytes to send, as many as fit into `buffer`.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        if self.unsent.is_empty() {
            self.speak();
        }
        let count = self.unsent.len().min(buffer.len());
        if count == 0 {
            return None;
        }
        let bytes = &mut buffer[..count];
        bytes.copy_from_slice(&self.out[self.unsent.start..self.unsent.start + count]);
        self.unsent.start += count;
        Some(bytes)
    }

    /// When to call [`MoexReplay::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.is_open().then_some(self.deadline)
    }

    /// How far the request is.
    pub fn state(&self) -> MoexReplayState {
        self.state
    }

    /// Whether a connection should be open: something is wanted, or the logout is not sent yet.
    pub fn wants_connection(&self) -> bool {
        self.state == MoexReplayState::Connect
            || self.is_open()
            || self.say == Say::Logout
            || !self.unsent.is_empty()
    }

    fn is_open(&self) -> bool {
        matches!(
            self.state,
            MoexReplayState::LoggingOn | MoexReplayState::Replaying
        )
    }

    /// Writes what is to be said. Names too long for a message fail the request.
    fn speak(&mut self) {
        let MoexReplayConfig {
            feed,
            sender,
            username,
            password,
            ..
        } = &self.config;
        let out = &mut self.out[..];
        let length = match self.say {
            Say::Nothing => return,
            Say::Logon => replay::logon(out, self.now, sender, username, password),
            Say::Request => {
                let (first, last) = (self.first as u32, self.last as u32);
                replay::market_data_request(out, self.now, sender, feed, first, last)
            }
            Say::Logout => replay::logout(out, self.now, sender),
        };
        self.say = Say::Nothing;
        self.unsent = 0..length.unwrap_or(0);
        if length.is_none() {
            self.state = MoexReplayState::Failed;
        }
    }

    /// Reads the messages that are complete.
    fn read(&mut self, now: Nanos, feed: &mut MoexFeed, sink: &mut dyn EventSink) {
        let stream = core::mem::take(&mut self.stream);
        let mut start = 0;
        while self.is_open() {
            match split_replay(&stream[start..self.length]) {
                Ok(Some((message, used))) => {
                    start += used;
                    self.take(now, message, feed, sink);
                }
                Ok(None) => break,
                Err(_) => self.finish(MoexReplayState::Failed),
            }
        }
        self.stream = stream;
        self.stream.copy_within(start..self.length, 0);
        self.length -= start;
    }

    fn take(&mut self, now: Nanos, message: &[u8], feed: &mut MoexFeed, sink: &mut dyn EventSink) {
        let Some((kind, seq, stamp)) = feed.decoder_mut().identify(message) else {
            return self.finish(MoexReplayState::Failed);
        };
        let seq = u64::from(seq);
        match (self.state, kind) {
            (MoexReplayState::LoggingOn, MessageKind::Logon) => {
                self.state = MoexReplayState::Replaying;
                self.logon_stamp = stamp;
                self.say = Say::Request;
            }
            (MoexReplayState::Replaying, MessageKind::Logout) => self.finish(MoexReplayState::Complete),
            (MoexReplayState::Replaying, MessageKind::Logon)
            | (MoexReplayState::LoggingOn, MessageKind::Logout) => {
                self.finish(MoexReplayState::Failed);
            }
            // The feed's heartbeats are numbered and replayed like its other messages. The session has its
            // own, whose numbers mean nothing here: they were sent after the logon.
            (MoexReplayState::Replaying, _)
                if (self.first..=self.last).contains(&seq)
                    && (kind != MessageKind::Heartbeat || stamp < self.logon_stamp) =>
            {
                feed.on_recovered_message(now, SessionId::NONE, SeqNo(seq), message, sink);
            }
            _ => {}
        }
    }

    fn finish(&mut self, state: MoexReplayState) {
        self.state = state;
        self.say = Say::Logout;
    }
}
