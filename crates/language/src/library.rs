//! What the code asks for that is no arithmetic: windows, tables, prices of several books. The same for every
//! way to run it.

use crate::ir::{TableUse, WindowUse};

const FIRST: usize = 0;
const COUNT: usize = 1;
const SUM: usize = 2;
const LOST: usize = 4;
const VALUES: usize = 5;

/// What a window says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct WindowView {
    pub(crate) count: i64,
    pub(crate) sum: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) newest: i64,
    pub(crate) oldest: i64,
}

fn sum_of(words: &[i64]) -> i128 {
    (i128::from(words[SUM + 1]) << 64) | i128::from(words[SUM] as u64)
}

fn set_sum(words: &mut [i64], sum: i128) {
    words[SUM] = sum as i64;
    words[SUM + 1] = (sum >> 64) as i64;
}

fn drop_oldest(words: &mut [i64], capacity: usize) {
    let first = words[FIRST] as usize;
    let sum = sum_of(words) - i128::from(words[VALUES + first]);
    set_sum(words, sum);
    words[FIRST] = ((first + 1) % capacity) as i64;
    words[COUNT] -= 1;
}

/// What is older than the window is long leaves it.
fn age(window: &WindowUse, words: &mut [i64], now: i64) {
    let capacity = window.capacity as usize;
    while window.over > 0 && words[COUNT] > 0 {
        let oldest = words[VALUES + capacity + words[FIRST] as usize];
        if now.saturating_sub(oldest) <= window.over {
            return;
        }
        drop_oldest(words, capacity);
    }
}

/// Puts a value in. A full window lets its oldest go; one over a time counts that as lost.
pub(crate) fn push(window: &WindowUse, memory: &mut [i64], value: i64, now: i64) {
    let words = &mut memory[window.at as usize..];
    let capacity = window.capacity as usize;
    age(window, words, now);
    if words[COUNT] as usize == capacity {
        drop_oldest(words, capacity);
        words[LOST] += i64::from(window.over > 0);
    }
    let place = (words[FIRST] as usize + words[COUNT] as usize) % capacity;
    words[VALUES + place] = value;
    if window.over > 0 {
        words[VALUES + capacity + place] = now;
    }
    let sum = sum_of(words) + i128::from(value);
    set_sum(words, sum);
    words[COUNT] += 1;
}

pub(crate) fn view(window: &WindowUse, memory: &mut [i64], now: i64) -> WindowView {
    let words = &mut memory[window.at as usize..];
    let capacity = window.capacity as usize;
    age(window, words, now);
    let (first, count) = (words[FIRST] as usize, words[COUNT] as usize);
    if count == 0 {
        return WindowView::default();
    }
    let at = |n: usize| words[VALUES + (first + n) % capacity];
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for n in 0..count {
        (min, max) = (min.min(at(n)), max.max(at(n)));
    }
    WindowView {
        count: count as i64,
        sum: sum_of(words).clamp(i64::MIN.into(), i64::MAX.into()) as i64,
        min,
        max,
        newest: at(count - 1),
        oldest: at(0),
    }
}

/// How many values a window over a time had to let go early.
pub(crate) fn lost(window: &WindowUse, memory: &[i64]) -> i64 {
    memory[window.at as usize + LOST]
}

/// The value of the greatest key that is not above `x`.
pub(crate) fn step(table: &TableUse, x: i64) -> Option<i64> {
    let behind = table.rows.partition_point(|(key, _)| *key <= x);
    Some(table.rows[behind.checked_sub(1)?].1)
}

/// By a straight line between two keys, towards 0; beyond the ends the value of the end.
pub(crate) fn linear(table: &TableUse, x: i64) -> i64 {
    let behind = table.rows.partition_point(|(key, _)| *key <= x);
    let (Some(before), Some(after)) = (
        behind.checked_sub(1).map(|at| table.rows[at]),
        table.rows.get(behind),
    ) else {
        let end = if behind == 0 {
            table.rows.first()
        } else {
            table.rows.last()
        };
        return end.map_or(0, |row| row.1);
    };
    let (run, rise) = (
        i128::from(after.0) - i128::from(before.0),
        i128::from(after.1) - i128::from(before.1),
    );
    // Both factors are below 2^64 and the line is divided before it leaves 127 bits: keys and values are
    // prices and quantities.
    let up = rise.saturating_mul(i128::from(x) - i128::from(before.0)) / run;
    (i128::from(before.1) + up).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A top of book: bid, its quantity, ask, its quantity.
pub(crate) type Top = [i64; 4];

/// The middle over several books, each weighted by what stands at its top; those without two sides that are
/// apart do not count.
pub(crate) fn fair(tops: impl Iterator<Item = Top>) -> Option<i64> {
    let (mut sum, mut weight) = (0_i128, 0_i128);
    for [bid, bid_qty, ask, ask_qty] in tops {
        if bid_qty > 0 && ask_qty > 0 && bid < ask {
            let stands = i128::from(bid_qty) + i128::from(ask_qty);
            // Twice the middle, so that nothing is lost before the end. |price| < 2^63, quantities < 2^44, 64
            // books: below 2^117.
            sum += (i128::from(bid) + i128::from(ask)) * stands;
            weight += stands;
        }
    }
    (weight > 0).then(|| (sum / (2 * weight)) as i64)
}

/// The middle of a book, each price weighted by the other side's quantity.
pub(crate) fn weighted([bid, bid_qty, ask, ask_qty]: Top) -> Option<i64> {
    if bid_qty <= 0 || ask_qty <= 0 || bid >= ask {
        return None;
    }
    let sum = i128::from(bid) * i128::from(ask_qty) + i128::from(ask) * i128::from(bid_qty);
    Some((sum / (i128::from(bid_qty) + i128::from(ask_qty))) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Type;
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    fn window(over: i64, capacity: u32) -> WindowUse {
        WindowUse {
            name: String::new(),
            ty: Type::Int,
            over,
            capacity,
            at: 2,
        }
    }

    #[test]
    fn windows_say_what_a_list_of_all_values_says() {
        let mut random = 7_u64;
        let mut draw = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % n
        };
        for (over, capacity) in [(0, 1), (0, 7), (50, 4), (50, 64), (1, 3)] {
            let window = window(over, capacity);
            let mut memory = vec![0; 2 + 5 + 2 * capacity as usize];
            let (mut all, mut now): (Vec<(i64, i64)>, i64) = (Vec::new(), 0);
            for _ in 0..2_000 {
                now += draw(20) as i64;
                let value = match draw(30) {
                    0 => i64::MAX,
                    1 => i64::MIN,
                    n => n as i64 - 15,
                };
                if draw(3) > 0 {
                    push(&window, &mut memory, value, now);
                    all.push((now, value));
                }
                all.retain(|(at, _)| over == 0 || now - at <= over);
                let excess = all.len().saturating_sub(capacity as usize);
                all.drain(..excess);
                let seen = view(&window, &mut memory, now);
                let values = || all.iter().map(|(_, value)| *value);
                let sum: i128 = values().map(i128::from).sum();
                assert_eq!(seen.count, all.len() as i64);
                assert_eq!(i128::from(seen.sum), sum.clamp(i64::MIN.into(), i64::MAX.into()));
                assert_eq!(seen.min, values().min().unwrap_or(0));
                assert_eq!(seen.max, values().max().unwrap_or(0));
                assert_eq!(seen.newest, values().next_back().unwrap_or(0));
                assert_eq!(seen.oldest, values().next().unwrap_or(0));
            }
        }
    }

    #[test]
    fn tables_are_read_below_between_and_beyond() {
        let table = TableUse {
            name: String::new(),
            rows: vec![(10, 100), (20, 200), (40, -100)],
        };
        assert_eq!(
            [9, 10, 19, 20, 99].map(|x| step(&table, x)),
            [None, Some(100), Some(100), Some(200), Some(-100)]
        );
        assert_eq!(
            [i64::MIN, 10, 15, 20, 30, 40, i64::MAX].map(|x| linear(&table, x)),
            [100, 100, 150, 200, 50, -100, -100]
        );
    }

    #[test]
    fn fair_and_weighted_lean_to_where_more_stands() {
        assert_eq!(fair([[100, 1, 102, 1], [200, 3, 204, 3]].into_iter()), Some(176));
        assert_eq!(
            fair([[100, 1, 102, 1], [200, 0, 204, 3], [5, 1, 5, 1]].into_iter()),
            Some(101)
        );
        assert_eq!(fair(core::iter::empty()), None);
        assert_eq!(weighted([100, 30, 110, 10]), Some(107));
        assert_eq!(weighted([100, 0, 110, 10]), None);
        let far = [i64::MAX - 1, 1 << 43, i64::MAX, 1 << 43];
        assert_eq!(fair([far; 64].into_iter()), Some(i64::MAX - 1));
    }
}
