//! A refresh of a channel: full updates of all its books, one after the other, by multicast.
//!
//! Live packets are held back by the handler from the moment it wants a snapshot. After the refresh the feed goes on with
//! them; the decoder drops every update that an instrument's refresh contained, which its number tells, and marks an
//! instrument stale whose numbers do not follow. The refresh counts when no packet of it was lost (the link flags count) and
//! it held every instrument wanted, and more than one: what others asked for, a single instrument, comes the same way.

use super::OpenBookFeed;
use crate::RefreshState;
use tickwire_market::{EventSink, Nanos};
use tickwire_wire::openbook::{self, FullHead, Message, RetransFlag};

/// The client of the refresh group of one channel. Both lines may be fed in.
#[derive(Clone, Debug)]
pub struct OpenBookRefresh {
    state: RefreshState,
    patience_ns: u64,
    since: Nanos,
    /// The link flag of the last packet taken.
    link: u8,
    /// The instrument of the last full update.
    last: u32,
}

impl OpenBookRefresh {
    /// A client that takes nothing yet. A refresh that is not complete `patience_ns` after it was asked for is asked for
    /// again.
    pub fn new(patience_ns: u64) -> OpenBookRefresh {
        OpenBookRefresh {
            state: RefreshState::Idle,
            patience_ns,
            since: Nanos::ZERO,
            link: 0,
            last: 0,
        }
    }

    /// Whether to ask for a refresh of the whole channel now. After every packet of the feed and of the refresh group, and at
    /// [`OpenBookRefresh::poll_timeout`]. When the request cannot be sent it is due again after the patience.
    pub fn poll_ask(&mut self, now: Nanos, feed: &OpenBookFeed) -> bool {
        let asks = feed.wants_snapshot() && self.poll_timeout().is_none_or(|due| due <= now);
        if asks {
            (self.state, self.since) = (RefreshState::Asked, now);
        }
        asks
    }

    /// A packet of the refresh group. Does nothing while the feed wants no snapshot.
    pub fn on_packet<S: EventSink>(
        &mut self,
        now: Nanos,
        datagram: &[u8],
        feed: &mut OpenBookFeed,
        sink: &mut S,
    ) {
        let Ok(packet) = openbook::parse_packet(datagram) else {
            return;
        };
        let is_last = match packet.flag() {
            Some(RetransFlag::Refresh) => false,
            Some(RetransFlag::LastRefresh) => true,
            _ => return,
        };
        if !feed.wants_snapshot() || packet.kind() != FullHead::KIND {
            return;
        }
        let link = packet.header.link_flag;
        let mut taken = match self.state {
            RefreshState::Loading(taken) => match link.wrapping_sub(self.link) {
                1 => taken,
                2 if self.link == u8::MAX => taken,
                0 | 128.. => return,
                _ => return self.state = RefreshState::Failed,
            },
            _ if link > 1 => return,
            _ => {
                feed.begin_snapshot(now, sink);
                feed.decoder_mut().begin_refresh();
                self.last = 0;
                self.since = now;
                0
            }
        };
        for message in packet.messages.clone() {
            if let Ok(Message::FullUpdate(m)) = openbook::parse(FullHead::KIND, message) {
                let index = m.head.symbol_index.get();
                taken += u32::from(index != self.last);
                self.last = index;
            }
        }
        feed.on_snapshot_message(now, datagram, sink);
        (self.state, self.link) = (RefreshState::Loading(taken), link);
        if is_last {
            self.finish(now, taken, feed, sink);
        }
    }

    /// When to call [`OpenBookRefresh::poll_ask`].
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

    fn finish<S: EventSink>(&mut self, now: Nanos, taken: u32, feed: &mut OpenBookFeed, sink: &mut S) {
        if taken < 2 || !feed.decoder().is_refreshed() {
            self.state = RefreshState::Failed;
            return;
        }
        let next = feed.arbiter().first_held().unwrap_or(feed.next_seq());
        feed.end_snapshot(now, next, sink);
        self.state = RefreshState::Done(next);
    }
}
