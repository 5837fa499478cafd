//! How many contracts were taken within a window of time that slides.

use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::Nanos;

/// Most orders that are remembered; with more of them within the window none goes out until the oldest has
/// left it.
const ORDERS_MAX: usize = 4_096;

/// Contracts ordered within the last `window_ns`, by when they were ordered; what did not trade does not
/// count.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// `orders[number % len]`, of the numbers `first..next`.
    orders: Box<[(Nanos, u32)]>,
    first: u64,
    next: u64,
    sum: u64,
    limit: u64,
    window_ns: u64,
}

impl Taken {
    pub(super) fn new(limit: u32, window_ns: u64) -> Taken {
        Taken {
            orders: vec![(Nanos::ZERO, 0); ORDERS_MAX].into_boxed_slice(),
            first: 0,
            next: 0,
            sum: 0,
            limit: limit.into(),
            window_ns,
        }
    }

    fn at(&self, number: u64) -> usize {
        (number % self.orders.len() as u64) as usize
    }

    /// How many more may be ordered now.
    #[inline]
    pub(super) fn room(&mut self, now: Nanos) -> u64 {
        while self.first < self.next {
            let (when, contracts) = self.orders[self.at(self.first)];
            if now.since(when) < self.window_ns {
                break;
            }
            self.sum -= u64::from(contracts);
            self.first += 1;
        }
        if self.next - self.first == self.orders.len() as u64 {
            return 0;
        }
        self.limit.saturating_sub(self.sum)
    }

    /// So many are ordered, at most [`Taken::room`]; the order's number here.
    #[inline]
    pub(super) fn take(&mut self, now: Nanos, contracts: u32) -> u64 {
        let number = self.next;
        let at = self.at(number);
        self.orders[at] = (now, contracts);
        self.sum += u64::from(contracts);
        self.next += 1;
        number
    }

    /// So many of an order will not trade.
    #[inline]
    pub(super) fn release(&mut self, number: u64, contracts: u32) {
        if number < self.first {
            return;
        }
        let at = self.at(number);
        let less = self.orders[at].1.min(contracts);
        self.orders[at].1 -= less;
        self.sum -= u64::from(less);
    }
}
