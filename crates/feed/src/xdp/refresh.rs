//! A refresh of a channel: snapshots of all its books, one after the other, by multicast.
//!
//! Live messages are held back by the handler from the moment it wants a snapshot. Each instrument's refresh says up to which
//! message of the channel it goes; the feed goes on behind the oldest of them, and the decoder drops what an instrument's own
//! refresh contained. The refresh counts when it came whole, from its first packet to its last, and held every instrument of
//! the directory and more than one: what others asked for, a single instrument, comes the same way. Otherwise it is asked for
//! again.

use super::XdpFeed;
use tickwire_market::{EventSink, Nanos, SeqNo};
use tickwire_wire::xdp::{self, DeliveryFlag, Message, Packet};

/// How far a refresh is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefreshState {
    /// Nobody wants it.
    Idle,
    /// It was asked for.
    Asked,
    /// Its packets come: instruments so far.
    Loading(u32),
    /// Complete; the feed went on from this message.
    Done(SeqNo),
    /// Packets were lost, or it was not the whole channel's: ask again.
    Failed,
}

/// The client of the refresh group of one channel. Both lines may be fed in.
#[derive(Clone, Debug)]
pub struct XdpRefresh {
    state: RefreshState,
    patience_ns: u64,
    since: Nanos,
    /// The refresh group's next number.
    next: u32,
    /// The oldest of the instruments' last messages.
    oldest: u32,
}

impl XdpRefresh {
    /// A client that takes nothing yet. A refresh that is not complete `patience_ns` after it was asked for is asked for
    /// again.
    pub fn new(patience_ns: u64) -> XdpRefresh {
        XdpRefresh {
            state: RefreshState::Idle,
            patience_ns,
            since: Nanos::ZERO,
            next: 0,
            oldest: u32::MAX,
        }
    }

    /// Whether to ask for a refresh of the whole channel now. After every packet of the feed and of the refresh group, and at
    /// [`XdpRefresh::poll_timeout`]. When the request cannot be sent it is due again after the patience.
    pub fn poll_ask(&mut self, now: Nanos, feed: &XdpFeed) -> bool {
        let asks = feed.wants_snapshot() && self.poll_timeout().is_none_or(|due| due <= now);
        if asks {
            (self.state, self.since) = (RefreshState::Asked, now);
        }
        asks
    }

    /// A packet of the refresh group. Does nothing while the feed wants no snapshot.
    pub fn on_packet<S: EventSink>(&mut self, now: Nanos, datagram: &[u8], feed: &mut XdpFeed, sink: &mut S) {
        if !feed.wants_snapshot() {
            return;
        }
        let Ok(packet) = xdp::parse_packet(datagram) else {
            return;
        };
        let number = packet.header.seq_num.get();
        let is_loading = matches!(self.state, RefreshState::Loading(_));
        match packet.flag() {
            Some(DeliveryFlag::RefreshStart) if !is_loading || number >= self.next => {
                feed.begin_snapshot(now, sink);
                feed.decoder_mut().begin_refresh();
                (self.next, self.oldest) = (number, u32::MAX);
                if self.state == RefreshState::Idle {
                    self.since = now;
                }
                self.load(now, 0, &packet, feed, sink);
            }
            Some(DeliveryFlag::Refresh | DeliveryFlag::RefreshPart | DeliveryFlag::RefreshEnd) => {
                let RefreshState::Loading(taken) = self.state else {
                    return;
                };
                if number == self.next {
                    self.load(now, taken, &packet, feed, sink);
                } else if number > self.next {
                    self.state = RefreshState::Failed;
                }
            }
            _ => {}
        }
    }

    /// When to call [`XdpRefresh::poll_ask`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.state {
            RefreshState::Asked | RefreshState::Loading(_) => Some(self.since.after(self.patience_ns)),
            _ => None,
        }
    }

    /// How far the refresh is.
    pub fn state(&self) -> RefreshState {
        self.state
    }

    /// Takes the messages of a packet that is next.
    fn load<S: EventSink>(
        &mut self,
        now: Nanos,
        taken: u32,
        packet: &Packet<'_>,
        feed: &mut XdpFeed,
        sink: &mut S,
    ) {
        self.next = self.next.wrapping_add(packet.header.number_msgs.into());
        let mut taken = taken;
        for message in packet.messages.clone() {
            if let Ok(Message::RefreshHeader(m)) = xdp::parse(message) {
                self.oldest = self.oldest.min(m.last_seq_num.get());
                taken += 1;
            }
            feed.on_snapshot_message(now, message, sink);
        }
        self.state = RefreshState::Loading(taken);
        if packet.flag() == Some(DeliveryFlag::RefreshEnd) {
            self.finish(now, taken, feed, sink);
        }
    }

    fn finish<S: EventSink>(&mut self, now: Nanos, taken: u32, feed: &mut XdpFeed, sink: &mut S) {
        let known = feed.decoder().instruments().count();
        if taken < 2 || (taken as usize) < known {
            self.state = RefreshState::Failed;
            return;
        }
        let next = SeqNo(u64::from(self.oldest) + 1);
        feed.end_snapshot(now, next, sink);
        self.state = RefreshState::Done(next);
    }
}
