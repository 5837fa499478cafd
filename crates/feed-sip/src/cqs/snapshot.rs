//! The snapshot stream of a line: all quotes, over and over, in blocks of version 11.
//!
//! Live blocks are held back by the handler from the moment it wants a snapshot. A turn begins with a block
//! flagged first and ends with one flagged last; the messages between replace all that was known. Every block
//! names the last live message whose effect it holds: the feed goes on behind the earliest of them, for a
//! quote told twice is the same quote. Both lines may be fed in: blocks are put in order by their numbers; a
//! turn that lacks one is given up for the next. A snapshot does not say whether the day is over: whoever
//! lost the end of day on both lines hears it when it is sent again.

use super::CqsFeed;
use crate::Line;
use crate::reorder::ReorderBuffer;
use tickwire_market::{DynSink, EventSink, Nanos, SeqNo};
use tickwire_wire_sip::cqs::{self, Block, Delivery, SnapshotHeader, SnapshotLineIntegrity};

/// How many blocks of a turn can wait for one before them. One too many: the turn is given up.
const HELD_MAX: u16 = 16;

/// A turn that is being taken.
#[derive(Clone, Copy)]
struct Turn {
    /// The number of its next block.
    next: u64,
    /// The last live message whose effect every block so far holds.
    covered: u64,
}

/// The client of a snapshot stream.
pub struct CqsSnapshot {
    turn: Option<Turn>,
    /// A turn that is heard for instruments subscribed to in mid-session: its next block, and what its first
    /// one held.
    heard: Option<(u64, u64)>,
    held: ReorderBuffer,
}

impl Default for CqsSnapshot {
    fn default() -> CqsSnapshot {
        CqsSnapshot::new()
    }
}

impl CqsSnapshot {
    /// A client that takes nothing yet. All memory it will ever use is taken here.
    pub fn new() -> CqsSnapshot {
        CqsSnapshot {
            turn: None,
            heard: None,
            held: ReorderBuffer::new(HELD_MAX, cqs::BLOCK_SIZE_MAX),
        }
    }

    /// Whether a turn is being taken.
    pub fn is_taking(&self) -> bool {
        self.turn.is_some()
    }

    /// A block of the stream, of any line. Does nothing while the feed wants no snapshot.
    pub fn on_block(&mut self, now: Nanos, bytes: &[u8], feed: &mut CqsFeed, sink: &mut dyn EventSink) {
        if !feed.wants_snapshot() {
            self.give_up();
            if feed.decoder().has_joins() {
                self.on_join_block(now, bytes, feed, sink);
            }
            return;
        }
        self.heard = None;
        let Ok(block) = cqs::parse_snapshot_block(bytes) else {
            return feed.count_malformed();
        };
        if is_line_integrity(&block) {
            return;
        }
        let seq = u64::from(block.header.seq.get());
        if begins(block.header) && self.turn.is_none_or(|turn| turn.next < seq) {
            self.give_up();
            if reaches(block.header, feed) {
                self.turn = Some(Turn {
                    next: seq,
                    covered: block.header.last_seq.get().into(),
                });
                feed.begin_snapshot(now, sink);
            }
        }
        match self.turn {
            Some(turn) if seq == turn.next => self.take(now, turn, &block, feed, sink),
            Some(turn) if seq > turn.next => {
                let end = seq + block.messages.len() as u64;
                if !self.held.insert(seq, end, Line::A, now, bytes) {
                    self.give_up();
                }
            }
            _ => {}
        }
        while let Some(turn) = self.turn {
            match self.held.front() {
                Some((seq, _)) if seq <= turn.next => {}
                _ => return,
            }
            let Some(held) = self.held.pop_front() else { return };
            if held.first < turn.next {
                continue;
            }
            // It was checked when it was held.
            let mut copy = [0; cqs::BLOCK_SIZE_MAX];
            let copy = &mut copy[..held.bytes.len()];
            copy.copy_from_slice(held.bytes);
            if let Ok(block) = cqs::parse_snapshot_block(copy) {
                self.take(now, turn, &block, feed, sink);
            }
        }
    }

    /// A block while the line goes on: each says what it says, and only whether a turn was whole asks for
    /// their order.
    fn on_join_block(&mut self, now: Nanos, bytes: &[u8], feed: &mut CqsFeed, sink: &mut dyn EventSink) {
        let Ok(block) = cqs::parse_snapshot_block(bytes) else {
            return feed.count_malformed();
        };
        let is_old = feed
            .last_restart()
            .is_some_and(|restart| block.header.time.as_nanos() < restart.sent);
        if is_line_integrity(&block) || is_old {
            return;
        }
        let (seq, last) = (
            u64::from(block.header.seq.get()),
            block.header.last_seq.get().into(),
        );
        let (decoder, counters) = feed.decoder_and_counters();
        for message in block.messages.clone() {
            decoder.tell_joining(now, last, message, counters, &mut DynSink(sink));
        }
        let next = seq + block.messages.len() as u64;
        self.heard = match self.heard {
            Some((due, _)) if seq < due => return,
            Some((due, first)) if seq == due && !begins(block.header) => Some((next, first)),
            _ if begins(block.header) => Some((next, last)),
            _ => None,
        };
        if let Some((_, first)) = self.heard.filter(|_| ends(block.header)) {
            decoder.end_turn(now, first, &mut DynSink(sink));
            self.heard = None;
        }
    }

    /// The stream's numbers begin anew.
    pub(super) fn begin_anew(&mut self) {
        self.give_up();
        self.heard = None;
    }

    /// The turn is of no use.
    fn give_up(&mut self) {
        self.turn = None;
        self.held.clear();
    }

    fn take(
        &mut self,
        now: Nanos,
        turn: Turn,
        block: &Block<'_, SnapshotHeader>,
        feed: &mut CqsFeed,
        sink: &mut dyn EventSink,
    ) {
        let turn = Turn {
            next: turn.next + block.messages.len() as u64,
            covered: turn.covered.min(block.header.last_seq.get().into()),
        };
        for message in block.messages.clone() {
            match message.get(2) {
                Some(&cqs::SNAPSHOT_CATEGORY) => feed.on_snapshot_message(now, message, sink),
                _ => feed.count_malformed(),
            }
        }
        self.turn = Some(turn);
        if ends(block.header) {
            self.give_up();
            let next = SeqNo(turn.covered).next();
            feed.end_snapshot(now, next, sink);
        }
    }
}

/// Whether a block says nothing but that the stream is alive.
fn is_line_integrity(block: &Block<'_, SnapshotHeader>) -> bool {
    let mut kinds = block.messages.clone().map(|message| message.get(2..4));
    kinds.len() > 0 && kinds.all(|kind| kind == Some(&SnapshotLineIntegrity::KIND))
}

fn begins(header: &SnapshotHeader) -> bool {
    [Delivery::First as u8, Delivery::Only as u8].contains(&header.delivery)
}

fn ends(header: &SnapshotHeader) -> bool {
    [Delivery::Last as u8, Delivery::Only as u8].contains(&header.delivery)
}

/// Whether the feed can go on behind a turn: it is not older than the numbers, nor than what has been
/// delivered, and what has been held back since joins it.
fn reaches(header: &SnapshotHeader, feed: &CqsFeed) -> bool {
    let after = u64::from(header.last_seq.get()) + 1;
    let is_old = feed
        .last_restart()
        .is_some_and(|restart| header.time.as_nanos() < restart.sent);
    let needed = feed.arbiter().snapshot_floor();
    !is_old && feed.is_snapshot_plausible(SeqNo(after)) && after >= needed.0.max(feed.next_seq().0)
}
