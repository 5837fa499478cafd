//! Recovery from the loops: definitions of all instruments, and snapshots of all books, sent over and over.
//!
//! Live packets are held back by the handler from the moment it wants a snapshot. Every instrument's snapshot
//! says up to which packet it goes; it counts when the packets held reach back to it. Once all of a turn's
//! instruments are taken, the feed goes on behind the oldest of them, and the decoder drops what each
//! instrument's own snapshot contained. An instrument whose snapshot was lost, cut short or too old is taken
//! from the next turn, the others are kept.
//!
//! The loops repeat, so their packets need neither order nor arbitration: both lines may be fed in.

use super::Mdp3Feed;
use tickwire_market::{EventSink, Nanos, SeqNo};

/// How far a loop is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopState {
    /// Nobody wants it.
    Idle,
    /// Instruments taken, of how many once that is known.
    Taking(u32, Option<u32>),
    /// All were taken; the feed went on from this packet.
    Done(SeqNo),
}

/// The client of the loops of one channel.
#[derive(Clone, Debug)]
pub struct Mdp3Recovery {
    state: LoopState,
    patience_ns: u64,
    since: Nanos,
    overdue: bool,
}

impl Mdp3Recovery {
    /// A client that takes nothing yet. A loop that is not complete after `patience_ns` is
    /// [`Mdp3Recovery::is_overdue`]; it goes on being taken.
    pub fn new(patience_ns: u64) -> Mdp3Recovery {
        Mdp3Recovery {
            state: LoopState::Idle,
            patience_ns,
            since: Nanos::ZERO,
            overdue: false,
        }
    }

    /// A packet of the instrument definition feed.
    pub fn on_definitions(
        &mut self,
        now: Nanos,
        packet: &[u8],
        feed: &mut Mdp3Feed,
        sink: &mut dyn EventSink,
    ) {
        feed.on_snapshot_message(now, packet, sink);
    }

    /// A packet of the market recovery feed that fits the books: by price or by order. While the feed wants
    /// no snapshot it serves only instruments whose own books are not sound.
    pub fn on_snapshots(&mut self, now: Nanos, packet: &[u8], feed: &mut Mdp3Feed, sink: &mut dyn EventSink) {
        let ceiling = feed.snapshot_ceiling();
        feed.decoder_mut().set_ceiling(ceiling);
        if !feed.wants_snapshot() {
            feed.decoder_mut().end_turn();
            if feed.decoder().unsound() > 0 {
                feed.on_snapshot_message(now, packet, sink);
            }
            return;
        }
        let floor = feed.arbiter().snapshot_floor();
        let is_taking = matches!(self.state, LoopState::Taking(..));
        if !is_taking {
            self.since = now;
        }
        if !is_taking || feed.decoder_mut().raise_floor(floor) {
            feed.begin_snapshot(now, sink);
            feed.decoder_mut().begin_turn(now, floor, sink);
        }
        feed.on_snapshot_message(now, packet, sink);
        self.state = match feed.decoder().turn() {
            (_, _, Some(next)) => {
                feed.decoder_mut().end_turn();
                feed.end_snapshot(now, next, sink);
                self.overdue = false;
                LoopState::Done(next)
            }
            (taken, total, None) => LoopState::Taking(taken, total),
        };
    }

    /// Whether patience has run out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.overdue = self.poll_timeout().is_some_and(|due| due <= now);
    }

    /// When to call [`Mdp3Recovery::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let taking = matches!(self.state, LoopState::Taking(..));
        taking.then(|| self.since.after(self.patience_ns))
    }

    /// Whether the loop takes longer than it should: worth telling an operator.
    pub fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// How far the snapshots are.
    pub fn state(&self) -> LoopState {
        self.state
    }

    /// How far the definitions are.
    pub fn definitions(feed: &Mdp3Feed) -> LoopState {
        match feed.decoder().definitions() {
            (0, None) => LoopState::Idle,
            (known, Some(total)) if known >= total => LoopState::Done(feed.next_seq()),
            (known, total) => LoopState::Taking(known, total),
        }
    }
}
