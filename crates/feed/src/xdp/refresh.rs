//! A refresh of a channel: snapshots of its books, one after the other, by multicast.
//!
//! Each instrument's refresh takes one packet or more, which its headers number; it says up to which message of the channel
//! it goes (`LastSeqNum`: the channel's last message, of whatever instrument, when the refresh was made), and the decoder
//! drops what it contained. The feed goes on behind the oldest of them.

use super::XdpFeed;
use crate::RefreshState;
use crate::nyse::Collector;
use tickwire_market::{EventSink, InstrumentId, Nanos};
use tickwire_wire::xdp::{self, DeliveryFlag, Message};

/// The packets of one instrument.
#[derive(Clone, Copy)]
struct Section {
    packet: u16,
    packets: u16,
    id: Option<InstrumentId>,
}

/// The client of the refresh group of one channel. Both lines may be fed in.
pub struct XdpRefresh {
    collector: Collector,
    /// The refresh group's next number; 0: any.
    next: u32,
    section: Option<Section>,
    /// The last instrument that came whole.
    last: Option<InstrumentId>,
}

impl XdpRefresh {
    /// A client that takes nothing yet, for a decoder of so many instruments. What does not come within `patience_ns` is
    /// asked for again.
    pub fn new(patience_ns: u64, instruments_max: u32) -> XdpRefresh {
        XdpRefresh {
            collector: Collector::new(patience_ns, instruments_max as usize),
            next: 0,
            section: None,
            last: None,
        }
    }

    /// What to ask for a refresh of now: an instrument, or 0 for the whole channel. Drain it after every packet of the feed
    /// and of the refresh group, and at [`XdpRefresh::poll_timeout`]. When the request cannot be sent it is due again after
    /// the patience.
    pub fn poll_ask(&mut self, now: Nanos, feed: &XdpFeed) -> Option<u32> {
        let asked = self.collector.poll_ask(now, feed);
        if asked.is_some() {
            self.next = 0; // Silence, or a new beginning.
        }
        asked
    }

    /// A packet of the refresh group. Mappings are taken always, books only while the feed wants a snapshot.
    pub fn on_packet<S: EventSink>(&mut self, now: Nanos, datagram: &[u8], feed: &mut XdpFeed, sink: &mut S) {
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
        if !feed.wants_snapshot() {
            return;
        }
        self.collector.take(now, begins, feed, sink);
        for message in messages.by_ref() {
            match xdp::parse(message) {
                Ok(Message::RefreshHeader(m)) => {
                    self.close_section();
                    self.section = (m.current_refresh_pkt.get() == 1).then_some(Section {
                        packet: 1,
                        packets: m.total_refresh_pkts.get(),
                        id: None,
                    });
                }
                Ok(Message::RefreshContinuation(m)) => {
                    let next = (m.current_refresh_pkt.get(), m.total_refresh_pkts.get());
                    let follows = |s: &Section| (s.packet.wrapping_add(1), s.packets) == next;
                    self.section = self.section.filter(follows);
                    if let Some(section) = &mut self.section {
                        section.packet = next.0;
                    }
                }
                Ok(Message::SymbolIndexMapping(m)) => {
                    if let Some(section) = &mut self.section {
                        section.id = Some(InstrumentId(m.symbol_index.get()));
                    }
                }
                _ => {}
            }
            if self.section.is_some() {
                feed.on_snapshot_message(now, message, sink);
            }
        }
        self.close_section();
        let ends = matches!(flag, Some(DeliveryFlag::Refresh | DeliveryFlag::RefreshEnd));
        if ends && self.collector.ends(self.last, feed) {
            let next = feed.decoder().refreshed_up_to().next();
            self.collector.finish(next);
            feed.end_snapshot(now, next, sink);
        }
    }

    /// When to call [`XdpRefresh::poll_ask`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.collector.poll_timeout()
    }

    /// How far the refresh is.
    pub fn state(&self) -> RefreshState {
        self.collector.state
    }

    /// Counts the instrument whose last packet this was.
    fn close_section(&mut self) {
        if let Some(Section {
            packet,
            packets,
            id: Some(id),
        }) = self.section
            && packet == packets
        {
            self.section = None;
            self.last = Some(id);
            self.collector.loaded(id);
        }
    }
}
