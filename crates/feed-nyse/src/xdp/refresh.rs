//! A refresh of a channel: snapshots of its books, one after the other, by multicast.
//!
//! Each instrument's refresh takes one packet or more, which its headers number; it says up to which message
//! of the channel it goes (`LastSeqNum`: the channel's last message, of whatever instrument, when the refresh
//! was made), and the decoder drops what it contained. The feed goes on behind the oldest of them.

use super::XdpFeed;
use crate::RefreshState;
use crate::nyse::Collector;
use tickwire_market::{DynSink, EventSink, InstrumentId, Nanos, SeqNo};
use tickwire_wire_nyse::xdp::{self, DeliveryFlag, Message};

/// The packets of one instrument.
#[derive(Clone, Copy)]
struct Section {
    packet: u16,
    packets: u16,
    id: Option<InstrumentId>,
    /// The last message of the channel that it holds.
    last: u32,
}

/// The client of the refresh group of one channel. Both lines may be fed in.
pub struct XdpRefresh {
    collector: Collector,
    /// The refresh group's next number; 0: any.
    next: u32,
    section: Option<Section>,
    /// The section is of a refresh for instruments that join, while the feed goes on.
    joins: bool,
    /// The last instrument that came whole.
    last: Option<InstrumentId>,
}

impl XdpRefresh {
    /// A client that takes nothing yet, for a decoder of so many instruments. What does not come within
    /// `patience_ns` is asked for again.
    pub fn new(patience_ns: u64, instruments_max: u32) -> XdpRefresh {
        XdpRefresh {
            collector: Collector::new(patience_ns, instruments_max as usize),
            next: 0,
            section: None,
            joins: false,
            last: None,
        }
    }

    /// What to ask for a refresh of now: an instrument, or 0 for the whole channel. Drain it after every
    /// packet of the feed and of the refresh group, and at [`XdpRefresh::poll_timeout`]. When the request
    /// cannot be sent it is due again after the patience.
    pub fn poll_ask(&mut self, now: Nanos, feed: &mut XdpFeed) -> Option<u32> {
        if !feed.wants_snapshot() {
            let (asked, is_silent) = self.collector.poll_join(now, feed)?;
            if is_silent {
                self.next = 0;
            }
            return Some(asked);
        }
        let asked = self.collector.poll_ask(now, feed);
        if asked.is_some() {
            self.next = 0; // Silence, or a new beginning.
        }
        asked
    }

    /// A packet of the refresh group. Mappings are taken always; books while the feed wants a snapshot, and
    /// of instruments that join.
    pub fn on_packet(&mut self, now: Nanos, datagram: &[u8], feed: &mut XdpFeed, sink: &mut dyn EventSink) {
        let Ok(packet) = xdp::parse_packet(datagram) else {
            return;
        };
        let flag = packet.flag();
        let is_data = matches!(
            flag,
            Some(
                DeliveryFlag::Refresh
                    | DeliveryFlag::RefreshStart
                    | DeliveryFlag::RefreshPart
                    | DeliveryFlag::RefreshEnd
            )
        );
        let number = packet.header.seq_num.get();
        let begins = matches!(flag, Some(DeliveryFlag::Refresh | DeliveryFlag::RefreshStart));
        let is_old = match self.next {
            // Nothing is being followed: a refresh is followed from its first packet on.
            0 => !begins,
            next => number < next,
        };
        if is_old || !is_data && flag != Some(DeliveryFlag::Heartbeat) {
            return;
        }
        if self.next != 0 && number > self.next {
            self.section = None;
            self.collector.lose();
            self.drop_join(now, feed, sink);
        }
        self.next = number.wrapping_add(packet.header.number_msgs.into());
        if !is_data {
            return;
        }
        let mut messages = packet.messages.clone();
        if messages
            .clone()
            .all(|m| xdp::message_type(m) == Some(xdp::SymbolIndexMapping::KIND))
        {
            // The answer to a request for mappings; nothing of a book.
            return messages.for_each(|m| feed.on_snapshot_message(now, m, sink));
        }
        let joins = !feed.wants_snapshot();
        if core::mem::replace(&mut self.joins, joins) != joins || joins && feed.filter().joins.is_empty() {
            self.section = None;
        }
        if !joins {
            self.collector.take(now, begins, feed, sink);
        }
        for message in messages.by_ref() {
            match xdp::parse(message) {
                Ok(Message::RefreshHeader(m)) => {
                    self.end_section(now, joins, feed, sink);
                    let ends_at = SeqNo(m.last_seq_num.get().into()).next();
                    let is_first = m.current_refresh_pkt.get() == 1;
                    self.section = (is_first && feed.is_snapshot_plausible(ends_at)).then_some(Section {
                        packet: 1,
                        packets: m.total_refresh_pkts.get(),
                        id: None,
                        last: m.last_seq_num.get(),
                    });
                }
                Ok(Message::RefreshContinuation(m)) => {
                    let next = (m.current_refresh_pkt.get(), m.total_refresh_pkts.get());
                    let follows = |s: &Section| (s.packet.wrapping_add(1), s.packets) == next;
                    self.section = self.section.filter(follows);
                    match &mut self.section {
                        Some(section) => section.packet = next.0,
                        None => self.drop_join(now, feed, sink),
                    }
                }
                Ok(Message::SymbolIndexMapping(m)) => {
                    let id = InstrumentId(m.symbol_index.get());
                    if joins
                        && let Some(section) = self.section
                        && !self.begin_join(now, id, section.last, feed, sink)
                    {
                        self.section = None;
                    }
                    if let Some(section) = &mut self.section {
                        section.id = Some(id);
                    }
                }
                _ => {}
            }
            // Before its mapping a section says nothing but how far it goes.
            let is_named = self.section.is_some_and(|section| section.id.is_some());
            if self.section.is_some() && (is_named || !joins) {
                feed.on_snapshot_message(now, message, sink);
            }
        }
        self.end_section(now, joins, feed, sink);
        if joins {
            return;
        }
        let ends = matches!(flag, Some(DeliveryFlag::Refresh | DeliveryFlag::RefreshEnd));
        if ends && self.collector.ends(self.last, feed) {
            let next = feed.decoder().refreshed_up_to().next();
            self.collector.finish(next);
            feed.end_snapshot(now, next, sink);
        }
    }

    /// When to call [`XdpRefresh::poll_ask`].
    pub fn poll_timeout(&self, feed: &XdpFeed) -> Option<Nanos> {
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

    /// The refresh of an instrument begins: whether it makes one that joins right.
    fn begin_join(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        last: u32,
        feed: &mut XdpFeed,
        sink: &mut dyn EventSink,
    ) -> bool {
        self.drop_join(now, feed, sink);
        feed.decoder_mut().take(id, last)
    }

    /// What was taken of an instrument that joins is not all.
    fn drop_join(&mut self, now: Nanos, feed: &mut XdpFeed, sink: &mut dyn EventSink) {
        let next = feed.next_seq();
        let (decoder, counters) = feed.decoder_and_counters();
        decoder.taken(false, now, next, counters, &mut DynSink(sink));
    }

    /// A packet of an instrument is over. If it was its last one, and it came whole, it counts.
    fn end_section(&mut self, now: Nanos, joins: bool, feed: &mut XdpFeed, sink: &mut dyn EventSink) {
        let Some(section) = self.section.filter(|section| section.packet == section.packets) else {
            return;
        };
        let Some(id) = section.id else { return };
        self.section = None;
        if joins {
            let next = feed.next_seq();
            let (decoder, counters) = feed.decoder_and_counters();
            decoder.taken(true, now, next, counters, &mut DynSink(sink));
            return self.collector.joined(now);
        }
        self.last = Some(id);
        self.collector.loaded(id);
    }
}
