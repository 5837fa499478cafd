//! What a channel's books are when nothing comes any more: complete, partial or stale.

use tickwire_feed::FeedState;
use tickwire_market::{BookState, Counter, Side};

use crate::played::{Play, of_books};

/// What a look at every book of a channel says when nothing comes any more. Channels have room for many
/// books: it is looked once.
#[derive(Default)]
pub(super) struct Ending {
    pub(super) partial: Option<Partial>,
    /// The feed, or a book of it, is stale, and not because the recording begins late.
    pub(super) is_stale: bool,
}

impl Ending {
    pub(super) fn of(played: &dyn Play) -> Ending {
        let partial = Partial::of(played);
        let is_stale = || {
            played.state() == FeedState::Stale
                || of_books(played, |books| {
                    books.iter().any(|b| b.state() == BookState::Stale)
                }) == Some(true)
        };
        Ending {
            is_stale: partial.is_none() && is_stale(),
            partial,
        }
    }
}

/// How much is known of books whose beginning is not in the recording.
pub(super) struct Partial {
    /// Books that are not empty, or wait for more.
    pub(super) books: usize,
    /// Of these, the ones that are known to be complete: by a snapshot, or because every row came.
    pub(super) whole: usize,
    pub(super) levels: u64,
    pub(super) levels_whole: u64,
    pub(super) events: u64,
    /// Events on orders that were there before.
    pub(super) unknown: u64,
}

impl Partial {
    /// `None` when the channel is complete, or has lost messages: that is another reason.
    fn of(played: &dyn Play) -> Option<Partial> {
        let counters = played.counters();
        let mut partial = Partial {
            books: 0,
            whole: 0,
            levels: 0,
            levels_whole: 0,
            events: counters.get(Counter::Messages),
            unknown: counters.get(Counter::BookRejects) + played.unseen(),
        };
        let is_building = played.state() == FeedState::Building;
        played.look(&mut |books| {
            for book in books.iter() {
                let is_whole = book.state() == BookState::Live && !is_building;
                if book.is_empty() && (is_whole || book.own_state() == BookState::Building || is_building) {
                    continue;
                }
                let levels: u64 = Side::BOTH
                    .iter()
                    .map(|side| book.levels(*side).len() as u64)
                    .sum();
                partial.books += 1;
                partial.levels += levels;
                if is_whole {
                    partial.whole += 1;
                    partial.levels_whole += levels;
                }
            }
        });
        let begins_late = is_building || partial.whole < partial.books;
        let is_lossless = counters.get(Counter::MessagesLost) == 0 && played.state() != FeedState::Stale;
        (begins_late && is_lossless && partial.events > 0).then_some(partial)
    }

    /// From 0 to 1: of books by order the share of events that fitted what is known, of books by price the
    /// share of levels that stand in complete books.
    pub(super) fn sure(&self) -> f64 {
        let share = |part: u64, of: u64| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        match self.levels_whole {
            0 => share(self.events.saturating_sub(self.unknown), self.events),
            whole => share(whole, self.levels),
        }
    }
}

impl std::fmt::Display for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "partial, the recording begins in mid-session: {} of {} books are complete, with {} of {} levels",
            self.whole, self.books, self.levels_whole, self.levels
        )?;
        match self.unknown {
            0 => Ok(()),
            unknown => write!(
                f,
                "; {unknown} of {} events are about orders entered before it begins ({:.1} % fit)",
                self.events,
                100.0 * self.sure()
            ),
        }
    }
}
