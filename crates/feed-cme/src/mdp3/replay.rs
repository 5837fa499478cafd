//! TCP replay: missing packets asked for over a connection. One request a connection, as the exchange has it.
//!
//! When the feed misses packets ([`FeedHandler::poll_missing`](crate::FeedHandler::poll_missing)) the owner
//! tells [`Mdp3Replay::ask`], connects, and moves bytes. What comes is handed to the feed like any
//! retransmission; when a connection brings nothing, the feed asks again after its `request_timeout_ns`,
//! which should exceed the patience here.

use super::Mdp3Feed;
use crate::{Line, MissingRange};
use alloc::{vec, vec::Vec};
use tickwire_market::{DynSink, EventSink, Nanos, SeqNo};
use tickwire_wire_cme::mdp3::{self, AdminLogin, AdminLogout, tcp};

/// Where and as whom to ask.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    /// The channel's number (`ApplID`).
    pub channel: u16,
    /// The user, at most 32 bytes.
    pub username: Vec<u8>,
    /// The password, in clear text on the wire, at most 32 bytes.
    pub password: Vec<u8>,
    /// How long a connection may take, from being made to its logout.
    pub patience_ns: u64,
}

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayState {
    /// Nothing is asked for.
    Idle,
    /// A connection is wanted.
    Connect,
    /// The logon is answered next.
    LoggingOn,
    /// Packets come.
    Replaying,
    /// All packets came: close the connection.
    Complete,
    /// Close the connection: it was refused, broken or slow.
    Failed,
}

/// The longest packet with its length.
const FRAME_MAX: usize = 2 + u16::MAX as usize;

/// The client of the replay service of one channel.
pub struct Mdp3Replay {
    config: ReplayConfig,
    state: ReplayState,
    first: u64,
    last: u64,
    requests: u32,
    stream: Vec<u8>,
    length: usize,
    says_logon: bool,
    says_request: bool,
    says_logout: bool,
    deadline: Nanos,
}

impl Mdp3Replay {
    /// A client that asks for nothing. All memory it will ever use is taken here.
    pub fn new(config: ReplayConfig) -> Mdp3Replay {
        Mdp3Replay {
            config,
            state: ReplayState::Idle,
            first: 0,
            last: 0,
            requests: 0,
            stream: vec![0; FRAME_MAX],
            length: 0,
            says_logon: false,
            says_request: false,
            says_logout: false,
            deadline: Nanos::ZERO,
        }
    }

    /// Wants these packets, at most [`tcp::PACKETS_MAX`] of them; `false` if it is busy with others. Then
    /// connect.
    pub fn ask(&mut self, range: MissingRange) -> bool {
        if self.state != ReplayState::Idle {
            return false;
        }
        let count = u64::from(range.count).clamp(1, tcp::PACKETS_MAX.into());
        (self.first, self.last) = (range.first.0, range.first.0 + count - 1);
        self.state = ReplayState::Connect;
        true
    }

    /// A connection is there.
    pub fn handle_connected(&mut self, now: Nanos) {
        if self.state == ReplayState::Connect {
            self.state = ReplayState::LoggingOn;
            self.says_logon = true;
            self.deadline = now.after(self.config.patience_ns);
        }
    }

    /// The next bytes of the connection. Hands the packets they complete to the feed.
    pub fn handle_bytes(
        &mut self,
        now: Nanos,
        mut bytes: &[u8],
        feed: &mut Mdp3Feed,
        sink: &mut dyn EventSink,
    ) {
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
        self.state = ReplayState::Idle;
        self.length = 0;
        (self.says_logon, self.says_request, self.says_logout) = (false, false, false);
    }

    /// Patience may have run out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.finish(ReplayState::Failed);
        }
    }

    /// The next bytes to send, written into `buffer` of at least [`tcp::REQUEST_SIZE_MAX`] bytes.
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = if core::mem::take(&mut self.says_logon) {
            tcp::logon(buffer, &self.config.username, &self.config.password)
        } else if core::mem::take(&mut self.says_request) {
            self.requests += 1;
            let range = (u32::try_from(self.first).ok()?, u32::try_from(self.last).ok()?);
            tcp::market_data_request(buffer, self.config.channel, self.requests, range.0, range.1)
        } else if core::mem::take(&mut self.says_logout) {
            tcp::logout(buffer)
        } else {
            None
        }?;
        buffer.get(..length)
    }

    /// When to call [`Mdp3Replay::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.is_open().then_some(self.deadline)
    }

    /// How far the request is.
    pub fn state(&self) -> ReplayState {
        self.state
    }

    fn is_open(&self) -> bool {
        matches!(self.state, ReplayState::LoggingOn | ReplayState::Replaying)
    }

    /// Reads the packets that are complete.
    fn read(&mut self, now: Nanos, feed: &mut Mdp3Feed, sink: &mut dyn EventSink) {
        let stream = core::mem::take(&mut self.stream);
        let mut start = 0;
        while self.is_open() {
            match tcp::split(&stream[start..self.length]) {
                Ok(Some((packet, used))) => {
                    start += used;
                    self.take(now, packet, feed, sink);
                }
                Ok(None) => break,
                Err(_) => self.finish(ReplayState::Failed),
            }
        }
        self.stream = stream;
        self.stream.copy_within(start..self.length, 0);
        self.length -= start;
    }

    fn take(&mut self, now: Nanos, packet: &[u8], feed: &mut Mdp3Feed, sink: &mut dyn EventSink) {
        let Ok(parsed) = mdp3::parse_packet(packet) else {
            return self.finish(ReplayState::Failed);
        };
        let template = parsed.messages.clone().next().and_then(mdp3::template);
        match (self.state, template) {
            (ReplayState::LoggingOn, Some(AdminLogin::TEMPLATE)) => {
                self.state = ReplayState::Replaying;
                self.says_request = true;
            }
            (ReplayState::Replaying, Some(template)) if template != AdminLogout::TEMPLATE => {
                let seq = SeqNo(parsed.seq.into());
                if (self.first..=self.last).contains(&seq.0) {
                    feed.on_packet(now, Line::Retransmit, packet, &mut DynSink(sink));
                }
                if seq.0 == self.last {
                    self.finish(ReplayState::Complete);
                }
            }
            _ => self.finish(ReplayState::Failed),
        }
    }

    fn finish(&mut self, state: ReplayState) {
        self.state = state;
        (self.says_logon, self.says_request, self.says_logout) = (false, false, true);
    }
}
