//! Books by price without snapshots: after packets were lost, an instrument's own numbers tell whether its
//! book lacks entries; if so its rows are learned from those that come. "MDP 3.0 - Book Recovery Methods for
//! Concurrent Processing", instrument sequencing and natural refresh, CME Globex client systems wiki.
//!
//! The book begins as nothing but unknown rows. An entry makes its row known and moves those behind it; what
//! a deletion lets in from behind is no row until the venue sends one. Once no row is unknown the book is
//! what the venue's is. With ten deep rows of a busy instrument that is soon; of a quiet one it may be never.
//! Until then the book holds the rows that are known, and is stale: a recording that begins in mid-session
//! shows at least these.

use super::event::{Moment, Tail, about, level_event};
use super::rows::{DEPTH_MAX, IMPLIED_DEPTH_MAX, Row, Rows, Total};
use super::{Mdp3Decoder, Trust};
use tickwire_market::{EventKind, EventSink, InstrumentId, MarketEvent, Price, Side};
use tickwire_wire_cme::mdp3::UpdateAction;

/// What is known of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Cell {
    #[default]
    Unknown,
    /// There is none, nor any behind it.
    Empty,
    Known(Row),
}

/// Rows of one side and kind.
type Cells<const N: usize> = [Cell; N];

/// The rows of an instrument, as far as they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Refresh {
    real: [Cells<DEPTH_MAX>; 2],
    implied: [Cells<IMPLIED_DEPTH_MAX>; 2],
}

impl Refresh {
    /// Applies an entry at `level` (1 is the best). One that fits nowhere makes everything unknown.
    fn apply(
        &mut self,
        (side, is_implied): (Side, bool),
        depths: (usize, usize),
        action: UpdateAction,
        level: u8,
        row: Row,
    ) {
        let cells: &mut [Cell] = match is_implied {
            true => &mut self.implied[side as usize][..depths.1],
            false => &mut self.real[side as usize][..depths.0],
        };
        let at = usize::from(level).wrapping_sub(1);
        if action == UpdateAction::DeleteThru {
            return cells.fill(Cell::Empty);
        }
        if at >= cells.len() {
            return *self = Refresh::default();
        }
        match action {
            UpdateAction::New => {
                cells[at..].rotate_right(1);
                cells[at] = Cell::Known(row);
            }
            UpdateAction::Change | UpdateAction::Overlay => cells[at] = Cell::Known(row),
            UpdateAction::Delete => {
                cells[at..].rotate_left(1);
                cells[cells.len() - 1] = Cell::Empty;
            }
            UpdateAction::DeleteFrom => {
                cells.rotate_left(at + 1);
                let kept = cells.len() - at - 1;
                cells[kept..].fill(Cell::Empty);
            }
            UpdateAction::DeleteThru => {}
        }
        // A row that is known has rows before it.
        let last = cells.iter().rposition(|cell| matches!(cell, Cell::Known(_)));
        if last.is_some_and(|last| cells[..last].contains(&Cell::Empty)) {
            *self = Refresh::default();
        }
    }

    /// The levels of the rows that are known, real and implied together.
    fn known(&self, side: Side) -> impl Iterator<Item = (Price, Total)> + Clone {
        let (real, implied) = (self.real[side as usize], self.implied[side as usize]);
        let row = |cell: Cell| match cell {
            Cell::Known(row) => Some(row),
            Cell::Unknown | Cell::Empty => None,
        };
        let all = move || {
            let real = real.into_iter().filter_map(row).map(|row| (row, false));
            real.chain(implied.into_iter().filter_map(row).map(|row| (row, true)))
        };
        all().enumerate().filter_map(move |(at, (first, _))| {
            // A price that a row before has is told with it.
            if all().take(at).any(|(row, _)| row.price == first.price) {
                return None;
            }
            let same = all().filter(|(row, _)| row.price == first.price);
            let total = same.fold(Total::default(), |sum, (row, implied)| Total {
                qty: sum.qty + row.qty,
                orders: sum.orders.saturating_add(row.orders),
                implied: sum.implied | implied,
            });
            Some((first.price, total))
        })
    }

    /// Fills `rows`, if every row is known.
    fn complete(&self, depths: (usize, usize), rows: &mut Rows) -> bool {
        let sides = || Side::BOTH.into_iter().map(|side| side as usize);
        let is_known = sides().all(|side| {
            let (real, implied) = (&self.real[side][..depths.0], &self.implied[side][..depths.1]);
            !real.contains(&Cell::Unknown) && !implied.contains(&Cell::Unknown)
        });
        if !is_known {
            return false;
        }
        rows.clear();
        for side in Side::BOTH {
            let (real, implied) = (&self.real[side as usize][..], &self.implied[side as usize][..]);
            for (cells, is_implied) in [(real, false), (implied, true)] {
                for (cell, level) in cells.iter().zip(1..) {
                    if let Cell::Known(row) = *cell {
                        let added = rows.apply(side, is_implied, UpdateAction::New, level, row, |_, _| ());
                        debug_assert!(added.is_some(), "rows are added in order and are as many as fit");
                    }
                }
            }
        }
        true
    }
}

impl Mdp3Decoder {
    /// An instrument's book lacks entries.
    #[cold]
    pub(super) fn distrust<S: EventSink>(&mut self, at: &Moment, index: usize, out: &mut Tail<'_, S>) {
        let followed = &mut self.followed[index];
        self.unsound += u32::from(followed.trust == Trust::Sound);
        followed.trust = Trust::Stale;
        out.push(MarketEvent {
            ref_id: at.context.seq.0,
            ..about(at, EventKind::Gap, index)
        });
        if !self.refreshes.is_empty() {
            self.begin_refresh(index);
        }
    }

    /// An instrument's book is right again.
    pub(super) fn trust<S: EventSink>(&mut self, at: &Moment, index: usize, out: &mut Tail<'_, S>) {
        if core::mem::take(&mut self.followed[index].trust) != Trust::Sound {
            self.unsound -= 1;
            self.filter.joins.finish(InstrumentId(index as u32));
            out.push(about(at, EventKind::Recovered, index));
        }
    }

    /// Packets are lost for good and the feed goes on: every instrument's next entry tells whether they were
    /// about it.
    pub(super) fn doubt_all<S: EventSink>(&mut self, at: &Moment, out: &mut Tail<'_, S>) {
        for index in 1..=self.securities.len() {
            let trust = &mut self.followed[index].trust;
            if *trust == Trust::Sound {
                *trust = Trust::Doubtful;
                self.unsound += 1;
            }
            out.push(MarketEvent {
                ref_id: at.context.seq.0,
                ..about(at, EventKind::Gap, index)
            });
        }
    }

    pub(super) fn begin_refresh(&mut self, index: usize) {
        if let Some(refresh) = self.refreshes.get_mut(index) {
            *refresh = Refresh::default();
            self.followed[index].trust = Trust::Rebuilding;
        }
    }

    /// Learns a row; tells the book once all are known.
    #[cold]
    #[allow(clippy::too_many_arguments, reason = "the fields of one entry")]
    pub(super) fn refresh_level<S: EventSink>(
        &mut self,
        at: &Moment,
        index: usize,
        kind: (Side, bool),
        action: UpdateAction,
        level: u8,
        row: Row,
        out: &mut Tail<'_, S>,
    ) {
        let (refresh, rows) = (&mut self.refreshes[index], &mut self.rows[index]);
        let (real, implied) = rows.depths();
        let depths = (real, if self.implied { implied } else { 0 });
        let before = *refresh;
        refresh.apply(kind, depths, action, level, row);
        if !refresh.complete(depths, rows) {
            return self.tell_known(at, index, &before, out);
        }
        out.push(about(at, EventKind::Clear, index));
        for side in Side::BOTH {
            for (price, total) in self.rows[index].levels(side).filter(|(_, total)| total.qty > 0) {
                out.push(level_event(at, index, side, price, total));
            }
        }
        self.trust(at, index, out);
    }

    /// Tells what changed of the rows that are known. The first of them take the place of what the book was
    /// before.
    fn tell_known<S: EventSink>(&self, at: &Moment, index: usize, before: &Refresh, out: &mut Tail<'_, S>) {
        let now = &self.refreshes[index];
        if Side::BOTH
            .into_iter()
            .all(|side| before.known(side).next().is_none())
        {
            out.push(about(at, EventKind::Clear, index));
            out.push(MarketEvent {
                ref_id: at.context.seq.0,
                ..about(at, EventKind::Gap, index)
            });
        }
        for side in Side::BOTH {
            for (price, _) in before.known(side) {
                if now
                    .known(side)
                    .all(|(other, total)| other != price || total.qty == 0)
                {
                    out.push(level_event(at, index, side, price, Total::default()));
                }
            }
            for level in now.known(side).filter(|(_, total)| total.qty > 0) {
                if before.known(side).all(|other| other != level) {
                    out.push(level_event(at, index, side, level.0, level.1));
                }
            }
        }
    }
}
