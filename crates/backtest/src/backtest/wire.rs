//! Between the strategies and the venue: requests and reports that are under way.

use std::collections::{BTreeMap, VecDeque};

use tickwire_market::{ClientOrderId, Nanos, OrderIntent, Price, Qty, Side};
use tickwire_trading::strategy::{OrderPort, QuoteEntry, QuoteIntent, Rejected};
use tickwire_trading::{OrderReport, ReportKind};

use crate::latency::Draw;
use crate::venue::{Listener, Matched, of_quote};
use crate::{Fill, LatencyConfig};

/// What is under way in one direction, the soonest first. Requests, and reports, do not pass each other: what
/// was sent later arrives no sooner.
#[derive(Debug)]
pub(super) struct UnderWay<T> {
    queue: VecDeque<(Nanos, u64, T)>,
    /// When the last one arrives.
    last: Nanos,
}

impl<T: Copy> UnderWay<T> {
    fn new() -> UnderWay<T> {
        UnderWay {
            queue: VecDeque::new(),
            last: Nanos::ZERO,
        }
    }

    fn put(&mut self, at: Nanos, number: u64, item: T) {
        self.last = self.last.max(at);
        self.queue.push_back((self.last, number, item));
    }

    /// When the next one arrives, and the how many-th it is of all that were sent.
    #[inline]
    pub(super) fn due(&self) -> Option<(Nanos, u64)> {
        self.queue.front().map(|(at, number, _)| (*at, *number))
    }

    pub(super) fn take(&mut self) -> Option<(Nanos, T)> {
        self.queue.pop_front().map(|(at, _, item)| (at, item))
    }
}

/// What a strategy asks a venue for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Order(OrderIntent),
    /// A quote of a request, which is a cancellation or a mass quote; the last of it is answered.
    Quote {
        id: ClientOrderId,
        entry: QuoteEntry,
        is_cancel: bool,
        is_last: bool,
    },
}

/// What a venue tells a strategy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    Order(OrderReport),
    /// A quote of the mass quote that is answered next was refused.
    QuoteRefused(u64),
    Quoted(ClientOrderId),
    QuotesCancelled(ClientOrderId),
    QuoteRemoved(u64),
    QuoteFilled {
        name: u64,
        side: Side,
        traded: (Qty, Price),
        of: (Price, Qty),
    },
}

/// Between the strategy and the venue.
#[derive(Debug)]
pub(super) struct Wire {
    /// By the venue's clock.
    pub(super) requests: UnderWay<Asked>,
    /// By the strategy's clock.
    pub(super) reports: UnderWay<Told>,
    /// Price and quantity of each side of a quote as it was entered.
    pub(super) quoted: BTreeMap<(u64, Side), (Price, Qty)>,
    pub(super) count: u64,
    pub(super) draw: Draw,
    pub(super) latency: LatencyConfig,
    /// The strategy's clock.
    pub(super) heard: Nanos,
    /// Nothing is to be done before then, by either clock; except what is new, or a timer.
    pub(super) wake: Nanos,
    pub(super) has_news: bool,
    pub(super) told_before_feed: u64,
    pub(super) hash: u64,
    pub(super) fills: Vec<Fill>,
    pub(super) new_fills: usize,
}

impl Wire {
    pub(super) fn new(latency: LatencyConfig, seed: u64) -> Wire {
        Wire {
            requests: UnderWay::new(),
            reports: UnderWay::new(),
            quoted: BTreeMap::new(),
            count: 0,
            draw: Draw::new(seed),
            latency,
            heard: Nanos::ZERO,
            wake: Nanos::ZERO,
            has_news: true,
            told_before_feed: 0,
            hash: 0xCBF2_9CE4_8422_2325,
            fills: Vec::new(),
            new_fills: 0,
        }
    }

    fn mix(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word)
                .wrapping_mul(0x0000_0100_0000_01B3)
                .rotate_left(23);
        }
    }
}

impl OrderPort for Wire {
    fn send(&mut self, now: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        let latency = match request {
            OrderIntent::Cancel { .. } => &self.latency.cancel,
            _ => &self.latency.entry,
        };
        let at = now.after(self.draw.take(latency, now));
        let (id, what) = match *request {
            OrderIntent::New {
                id, price, qty, side, ..
            } => (id, [1, price.raw() as u64, qty.0.into(), side as u64]),
            OrderIntent::Replace {
                id,
                price,
                qty,
                target,
                ..
            } => (id, [2, price.raw() as u64, qty.0.into(), target.0]),
            OrderIntent::Cancel { id, target, .. } => (id, [3, target.0, 0, 0]),
        };
        self.mix(&[now.0, id.0]);
        self.mix(&what);
        if let Some(stop) = request.order().and_then(|order| order.stop) {
            self.mix(&[stop.raw() as u64]);
        }
        self.count += 1;
        self.has_news = true;
        self.requests.put(at, self.count, Asked::Order(*request));
        Ok(())
    }

    fn quote(&mut self, now: Nanos, request: &QuoteIntent<'_>) -> Result<(), Rejected> {
        let (latency, id, entries, is_cancel) = match *request {
            QuoteIntent::Mass { id, entries, .. } => (&self.latency.entry, id, entries, false),
            QuoteIntent::Cancel { id, entries, .. } => (&self.latency.cancel, id, entries, true),
            // Each is named; and a recording has nothing else of our quotes than we.
            QuoteIntent::CancelAll { .. } | QuoteIntent::Status { .. } => return Err(Rejected::Unsupported),
        };
        let at = now.after(self.draw.take(latency, now));
        for (place, entry) in entries.iter().enumerate() {
            self.mix(&[now.0, id.0, 4 + u64::from(is_cancel), entry.name]);
            for (price, qty) in entry.quote.sides {
                self.mix(&[price.raw() as u64, qty.0.into()]);
            }
            self.count += 1;
            let asked = Asked::Quote {
                id,
                entry,
                is_cancel,
                is_last: place + 1 == entries.len(),
            };
            self.requests.put(at, self.count, asked);
        }
        self.has_news = true;
        Ok(())
    }
}

impl Wire {
    /// Sends something to the strategy.
    pub(super) fn tell(&mut self, at: Nanos, told: Told) {
        let due = at.after(self.draw.take(&self.latency.response, at));
        self.told_before_feed += u64::from(due < self.heard);
        self.count += 1;
        self.has_news = true;
        self.reports.put(due.max(self.heard), self.count, told);
    }
}

impl Listener for Wire {
    fn report(&mut self, at: Nanos, report: OrderReport) {
        let what = match report.kind {
            ReportKind::Filled { qty, price, .. } => [1, qty.0.into(), price.raw() as u64],
            ReportKind::Broken { qty, price, .. } => [2, qty.0.into(), price.raw() as u64],
            ReportKind::Accepted => [3, 0, 0],
            ReportKind::Cancelled => [4, 0, 0],
            ReportKind::Rejected => [5, 0, 0],
            ReportKind::CancelRejected => [6, 0, 0],
            ReportKind::Replaced { by, .. } => [7, by.0, 0],
            ReportKind::ReplaceRejected { by } => [8, by.0, 0],
            ReportKind::Triggered => [9, 0, 0],
        };
        self.mix(&[at.0, report.id.0]);
        self.mix(&what);
        let told = match (of_quote(report.id), report.kind) {
            (None, _) => Told::Order(report),
            (Some((name, side)), ReportKind::Filled { qty, price, .. }) => Told::QuoteFilled {
                name,
                side,
                traded: (qty, price),
                of: self.quoted.get(&(name, side)).copied().unwrap_or_default(),
            },
            (Some((name, _)), _) => Told::QuoteRemoved(name),
        };
        self.tell(at, told);
    }

    fn matched(&mut self, at: Nanos, m: Matched) {
        self.fills.push(Fill {
            at,
            order: of_quote(m.id).map_or(m.id, |(name, _)| ClientOrderId(name)),
            instrument: m.instrument,
            side: m.side,
            qty: m.qty,
            price: m.price,
            is_maker: m.is_maker,
            queue_at_entry: m.queue_at_entry,
            mid: None,
            mark_outs: [None; 3],
        });
    }
}
