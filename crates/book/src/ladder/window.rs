//! Where the windows are laid.

use super::{Book, BookSide, LOW, LevelPool, NO_QUEUE, Queue, Rung, WINDOW, nothing};
use crate::books::BookError;
use crate::tick::{Tick, gcd};

/// The place of the best level in a window that was just laid: there is room for better ones.
const BEST_AT: u64 = 47;

/// The levels of a window while it is laid anew, best first.
struct Held {
    levels: [(Rung, Queue); WINDOW],
    count: usize,
}

impl Held {
    fn push(&mut self, level: (Rung, Queue)) {
        self.levels[self.count] = level;
        self.count += 1;
    }
}

/// The places of these bits, best first.
pub(super) fn places(mut bits: u64) -> impl Iterator<Item = u64> {
    core::iter::from_fn(move || {
        let best = bits.checked_ilog2()?;
        bits ^= 1 << best;
        Some(best as u64)
    })
}

impl LevelPool {
    /// The best level after a change in the window.
    #[inline(always)]
    pub(super) fn renew_best(&mut self, at: &mut Book, on: BookSide) {
        let bits = at.bits[on.side as usize];
        if bits >> LOW == 0 {
            return match at.len(on.side) {
                0 => at.set_top(on.side, nothing(on.side)),
                _ => self.follow_down(at, on),
            };
        }
        let best = bits.ilog2() as u64;
        let (key, sums) = (at.key_of(on.side, best), *self.sums(on, best));
        at.set_top(on.side, Rung { key, sums });
    }

    /// The best level is low in the window, or there is none in it: the window is laid around what is the
    /// best level now.
    #[cold]
    #[inline(never)]
    fn follow_down(&mut self, at: &mut Book, on: BookSide) {
        let side = on.side;
        let mut tick = at.tick(side);
        let best = match (
            places(at.bits[side as usize]).next(),
            &self.rungs[self.range(at, on)],
        ) {
            (Some(best), _) => at.key_of(side, best),
            (None, []) => return,
            (None, [.., next, best]) if tick == Tick::UNKNOWN => {
                tick = Tick::new(best.key.abs_diff(next.key));
                best.key
            }
            (None, [.., best]) => best.key,
        };
        let laid = self.lay(at, on, tick, best);
        debug_assert!(laid.is_ok(), "no level falls out of a window that goes down");
    }

    /// Makes a place in the window for a level of this key, which has none: the place, or `None` where the
    /// level belongs behind the window. The side has such a level afterwards.
    #[inline(never)]
    pub(super) fn make_place(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
    ) -> Result<Option<u64>, BookError> {
        let (side, s) = (on.side, on.side as usize);
        let tick = at.tick(side);
        if at.bits[s] == 0 {
            // The side is empty, as those of thin books often are.
            let tick = tick.near(key);
            at.set_tick(side, tick);
            at.base[s] = tick.lowest(key, BEST_AT);
        } else if tick != Tick::UNKNOWN && key < at.base[s] {
            return Ok(None);
        } else {
            let tick = match tick {
                Tick::UNKNOWN => {
                    let away = |nth| key.abs_diff(at.key_of(side, nth));
                    let step = places(at.bits[s]).fold(0, |step, nth| gcd(step, away(nth)));
                    self.latest.part_of(step).unwrap_or(Tick::new(step))
                }
                tick => Tick::new(gcd(tick.size, key.abs_diff(at.base[s]))),
            };
            self.latest = tick;
            self.lay(at, on, tick, key.max(at.key[s]))?;
        }
        let nth = at.nth(side, key);
        Ok((nth < WINDOW as u64).then_some(nth))
    }

    /// Lays the window anew, around this best key and in these ticks. Every level that is in the window is
    /// some ticks away from that key. Nothing is changed when there is no room for levels that fall out.
    #[cold]
    #[inline(never)]
    fn lay(&mut self, at: &mut Book, on: BookSide, tick: Tick, best: i64) -> Result<(), BookError> {
        let s = on.side as usize;
        let step = tick.near(best);
        let mut base = step.lowest(best, BEST_AT);
        let falls_out = |nth: &u64| at.key_of(on.side, *nth) < base;
        let out = places(at.bits[s]).filter(falls_out).count();
        self.reserve_behind(at, on, out)?;
        let mut held = self.take_window(at, on);
        let stay = held.count - out;
        for (rung, queue) in held.levels[stay..held.count].iter().rev() {
            self.push_behind(at, on, *rung, *queue);
        }
        held.count = stay;
        while let Some(rung) = self.rungs[self.range(at, on)].last()
            && rung.key >= base
        {
            let below = best.abs_diff(rung.key);
            if step.count(below) >= WINDOW as u64 {
                // Between two ticks: it stays behind the window, and so do all behind it.
                base = best.wrapping_sub(((below - 1) / step.size * step.size) as i64);
                break;
            }
            let Some(level) = self.pop_behind(at, on) else {
                break;
            };
            held.push(level);
        }
        self.shrink_behind(at, on);
        at.base[s] = base;
        at.set_tick(on.side, step);
        for (rung, queue) in &held.levels[..held.count] {
            let nth = at.nth(on.side, rung.key);
            debug_assert!(nth < WINDOW as u64, "a level of the window has a place in it");
            at.bits[s] |= 1 << (nth % WINDOW as u64);
            *self.sums(on, nth) = rung.sums;
            self.set_queue(on.place(nth % WINDOW as u64), *queue);
        }
        if let Some(best) = places(at.bits[s]).next() {
            let (key, sums) = (at.key_of(on.side, best), *self.sums(on, best));
            at.set_top(on.side, Rung { key, sums });
        }
        Ok(())
    }

    /// Takes all levels out of the window.
    fn take_window(&mut self, at: &mut Book, on: BookSide) -> Held {
        let mut held = Held {
            levels: [(Rung::default(), NO_QUEUE); WINDOW],
            count: 0,
        };
        for nth in places(core::mem::take(&mut at.bits[on.side as usize])) {
            let key = at.key_of(on.side, nth);
            let (sums, queue) = self.take_place(on, nth);
            held.push((Rung { key, sums }, queue));
        }
        at.set_top(on.side, nothing(on.side));
        held
    }

    /// Takes a level's sums and queue out of its place.
    pub(super) fn take_place(&mut self, on: BookSide, nth: u64) -> (u64, Queue) {
        let queue = self.queue(on.place(nth));
        self.set_queue(on.place(nth), NO_QUEUE);
        (core::mem::take(self.sums(on, nth)), queue)
    }
}
