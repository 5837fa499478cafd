//! A refresh of a channel: full updates of its books, one after the other, by multicast.
//!
//! The link flag counts the packets of a refresh, the last one is flagged. An instrument's full update may
//! take several packets; nothing says how many, so it is whole when another instrument or the end of the
//! refresh follows it without a hole. The decoder drops every update that an instrument's refresh contained,
//! which its number tells, and marks an instrument stale whose numbers do not follow.

use super::OpenBookFeed;
use crate::RefreshState;
use crate::nyse::Collector;
use tickwire_market::{DynSink, EventSink, InstrumentId, Nanos};
use tickwire_wire_nyse::openbook::{self, FullHead, FullUpdate, Message, RetransFlag};

/// The client of the refresh group of one channel. Both lines may be fed in.
pub struct OpenBookRefresh {
    collector: Collector,
    /// Number and link flag of the last packet taken.
    taken: Option<(u32, u8)>,
    /// The instrument of the last full update, and whether all of it came so far.
    current: Option<(InstrumentId, bool)>,
    /// A packet is lost: the next full update may be the rest of one.
    is_torn: bool,
    /// The refresh is followed for instruments that join, while the feed goes on.
    joins: bool,
}

impl OpenBookRefresh {
    /// A client that takes nothing yet, for a decoder of so many instruments. What does not come within
    /// `patience_ns` is asked for again.
    pub fn new(patience_ns: u64, instruments_max: u32) -> OpenBookRefresh {
        OpenBookRefresh {
            collector: Collector::new(patience_ns, instruments_max as usize),
            taken: None,
            current: None,
            is_torn: false,
            joins: false,
        }
    }

    /// What to ask for a refresh of now: an instrument, or 0 for the whole channel. Drain it after every
    /// packet of the feed and of the refresh group, and at [`OpenBookRefresh::poll_timeout`]. When the
    /// request cannot be sent it is due again after the patience.
    pub fn poll_ask(&mut self, now: Nanos, feed: &mut OpenBookFeed) -> Option<u32> {
        if !feed.wants_snapshot() {
            let (asked, is_silent) = self.collector.poll_join(now, feed)?;
            if is_silent {
                self.taken = None;
            }
            return Some(asked);
        }
        let asked = self.collector.poll_ask(now, feed);
        if asked.is_some() {
            self.taken = None; // Silence, or a new beginning: the group's numbers are what comes next.
        }
        asked
    }

    /// A packet of the refresh group. Mappings are taken always, books only while the feed wants a snapshot.
    pub fn on_packet(
        &mut self,
        now: Nanos,
        datagram: &[u8],
        feed: &mut OpenBookFeed,
        sink: &mut dyn EventSink,
    ) {
        let Ok(packet) = openbook::parse_packet(datagram) else {
            return;
        };
        let is_last = match packet.flag() {
            Some(RetransFlag::Refresh) => false,
            Some(RetransFlag::LastRefresh) => true,
            _ => return,
        };
        if packet.kind() == openbook::SymbolIndexMapping::KIND {
            return feed.on_snapshot_message(now, datagram, sink);
        }
        let joins = !feed.wants_snapshot();
        if joins && feed.filter().joins.is_empty() || packet.kind() != FullHead::KIND {
            return;
        }
        if core::mem::replace(&mut self.joins, joins) != joins {
            (self.taken, self.current) = (None, None);
        }
        let (number, link) = (packet.header.seq_num.get(), packet.header.link_flag);
        let is_old = match self.taken {
            // The other line's copy, or a late one.
            Some(taken) => (number, link) <= taken,
            // Nothing is being followed: a refresh is followed from its first packet on.
            None => link > 1,
        };
        if is_old {
            return;
        }
        // The flag has 8 bits and goes on with 1 after 255.
        let last = self.taken.map_or(0, |(_, link)| link);
        let begins = link <= 1 && last != u8::MAX;
        if begins {
            (self.current, self.is_torn) = (None, false);
        } else if link != last.checked_add(1).unwrap_or(1) {
            self.is_torn = true;
            self.collector.lose();
        }
        self.taken = Some((number, link));
        if joins {
            if begins || self.is_torn {
                self.end_join(now, false, feed, sink);
            }
            for message in packet.messages.clone() {
                if let Ok(Message::FullUpdate(m)) = openbook::parse(FullHead::KIND, message) {
                    self.join(now, &m, feed, sink);
                }
            }
            if is_last {
                self.end_join(now, true, feed, sink);
            }
            return;
        }
        self.collector.take(now, begins, feed, sink);
        for message in packet.messages.clone() {
            let Ok(Message::FullUpdate(m)) = openbook::parse(FullHead::KIND, message) else {
                continue;
            };
            let id = InstrumentId(m.head.symbol_index.get());
            match self.current {
                _ if self.is_torn => self.current = Some((id, false)),
                Some((current, _)) if current == id => {}
                _ => {
                    self.close_current();
                    self.current = Some((id, true));
                }
            }
            self.is_torn = false;
        }
        feed.on_snapshot_message(now, datagram, sink);
        if !is_last {
            return;
        }
        let last = self.current.map(|(id, _)| id);
        self.close_current();
        if self.collector.ends(last, feed) {
            // Every refresh holds what was known of when it was asked for, and perhaps nothing behind it: the
            // feed goes on there at the latest, and asks for what was lost since. What was held back before
            // that is taken too, so that numbers of instruments follow, unless some of it is missing: the
            // feed would want what the refresh made needless.
            let asked = self.collector.asked_at;
            let held = feed.arbiter().first_held();
            let next = held
                .filter(|held| *held < asked && !feed.arbiter().misses(*held, asked))
                .unwrap_or(asked);
            self.collector.finish(next);
            feed.end_snapshot(now, next, sink);
        }
    }

    /// When to call [`OpenBookRefresh::poll_ask`].
    pub fn poll_timeout(&self, feed: &OpenBookFeed) -> Option<Nanos> {
        let join = match feed.wants_snapshot() {
            true => None,
            false => self.collector.poll_join_timeout(feed.filter()),
        };
        [self.collector.poll_timeout(), join].into_iter().flatten().min()
    }

    /// How far the refresh is.
    pub fn state(&self) -> RefreshState {
        self.collector.state
    }

    /// A full update, of any instrument, while the feed goes on.
    fn join(&mut self, now: Nanos, m: &FullUpdate<'_>, feed: &mut OpenBookFeed, sink: &mut dyn EventSink) {
        let id = InstrumentId(m.head.symbol_index.get());
        // The first one behind a hole may be the rest of one.
        let is_rest = core::mem::take(&mut self.is_torn);
        match self.current {
            Some((current, _)) if current == id => {}
            _ => {
                self.end_join(now, true, feed, sink);
                self.current = Some((id, !is_rest));
            }
        }
        if self.current.is_some_and(|(_, is_whole)| is_whole) {
            let (decoder, counters) = feed.decoder_and_counters();
            decoder.take(now, m, counters, &mut DynSink(sink));
        }
    }

    /// What was taken of an instrument that joins is all, or is not.
    fn end_join(&mut self, now: Nanos, is_whole: bool, feed: &mut OpenBookFeed, sink: &mut dyn EventSink) {
        let is_whole = is_whole && self.current.is_some_and(|(_, is_whole)| is_whole);
        self.current = None;
        let next = feed.next_seq();
        let (decoder, counters) = feed.decoder_and_counters();
        if decoder.taken(is_whole, now, next, counters, &mut DynSink(sink)) {
            self.collector.joined(now);
        }
    }

    /// Counts the instrument that is followed by another one or by nothing.
    fn close_current(&mut self) {
        if let Some((id, true)) = self.current.take() {
            self.collector.loaded(id);
        }
    }
}
