//! Books and consolidated books as Python objects.

use crate::types::{BOOK_STATE, LEVEL, SHARE, SIDE, TOUCH, TRADING_STATUS, bytes_of};
use pyo3::prelude::*;
use std::fmt::Write;
use std::sync::Arc;
use tickwire_export::reader::RecordedBook;
use tickwire_market::{BookState, Level, Side, Symbol};
use tickwire_shm::{BookCopy, National as NationalCopy, Share, SuperCopy};

/// A pair of bids and asks as Python sees it.
fn pair<T: Copy>(both: [T; 2]) -> (T, T) {
    (both[0], both[1])
}

/// The book of one instrument of one source, whole as of one moment.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Book {
    /// The symbol.
    #[pyo3(get)]
    symbol: String,
    source: Arc<str>,
    /// The instrument's number within its source, as events carry it.
    #[pyo3(get)]
    instrument: u32,
    /// How often it was written.
    #[pyo3(get)]
    writes: u64,
    /// Sequence number of the last message that changed it.
    #[pyo3(get)]
    seq: u64,
    /// The venue's time of that message, nanoseconds.
    #[pyo3(get)]
    venue_ts: u64,
    /// When its packet was received, nanoseconds since the epoch.
    #[pyo3(get)]
    recv_ts: u64,
    /// When it was written, nanoseconds since the epoch; 0 where that was not looked at: another message of
    /// its packet followed.
    #[pyo3(get)]
    publish_ts: u64,
    /// Levels of the whole book: bids, asks. The arrays hold the best of them, as many as the feed handler
    /// shows.
    #[pyo3(get)]
    levels: (u32, u32),
    /// Quantity of the whole book: bids, asks.
    #[pyo3(get)]
    qty: (u64, u64),
    /// Orders of the whole book: bids, asks; 0 when the feed does not say.
    #[pyo3(get)]
    orders: (u32, u32),
    /// Price of the last trade; meaningless when `last_qty` is 0.
    #[pyo3(get)]
    last_price: i64,
    /// Quantity of the last trade, 0 when there was none.
    #[pyo3(get)]
    last_qty: u64,
    /// The venue's time of the last trade, nanoseconds.
    #[pyo3(get)]
    last_ts: u64,
    /// Quantity traded today.
    #[pyo3(get)]
    volume: u64,
    /// Trades today.
    #[pyo3(get)]
    trades: u64,
    /// The auction's reference price; prices of an auction mean something when `auction` is not None.
    #[pyo3(get)]
    reference: i64,
    /// The auction's near indicative price.
    #[pyo3(get)]
    near: i64,
    /// The auction's far indicative price.
    #[pyo3(get)]
    far: i64,
    /// The auction's paired quantity.
    #[pyo3(get)]
    paired: u64,
    /// The auction's unpaired quantity.
    #[pyo3(get)]
    imbalance: u64,
    auction: u8,
    imbalance_side: Option<Side>,
    state: BookState,
    status: u8,
    sides: [Vec<Level>; 2],
}

impl Book {
    pub(crate) fn new(symbol: Symbol, source: Arc<str>, copy: &BookCopy) -> Book {
        Book {
            symbol: symbol.as_str().to_owned(),
            source,
            instrument: copy.instrument.0,
            writes: copy.writes,
            seq: copy.seq.0,
            venue_ts: copy.venue_ts.0,
            recv_ts: copy.recv_ts.0,
            publish_ts: copy.publish_ts.0,
            levels: pair(copy.levels),
            qty: pair(copy.qty.map(|qty| qty.0)),
            orders: pair(copy.orders),
            last_price: copy.last.price.raw(),
            last_qty: copy.last.qty.0,
            last_ts: copy.last.venue_ts.0,
            volume: copy.volume.0,
            trades: copy.trades,
            reference: copy.auction.reference.raw(),
            near: copy.auction.near.raw(),
            far: copy.auction.far.raw(),
            paired: copy.auction.paired.0,
            imbalance: copy.auction.imbalance.0,
            auction: copy.auction.kind,
            imbalance_side: copy.auction.side,
            state: copy.state,
            status: copy.status as u8,
            sides: Side::BOTH.map(|side| copy.side(side).to_vec()),
        }
    }

    /// Of a recording: what the feed says of auctions is not kept.
    pub(crate) fn recorded(book: RecordedBook) -> Book {
        Book {
            symbol: book.symbol.as_ref().to_owned(),
            source: book.source,
            instrument: book.instrument.0,
            writes: book.count,
            seq: book.seq.0,
            venue_ts: book.venue_ts.0,
            recv_ts: book.recv_ts.0,
            publish_ts: book.recv_ts.0,
            levels: pair(book.levels),
            qty: pair(book.qty.map(|qty| qty.0)),
            orders: pair(
                book.orders
                    .map(|orders| u32::try_from(orders).unwrap_or(u32::MAX)),
            ),
            last_price: book.last_price.raw(),
            last_qty: book.last_qty.0,
            last_ts: book.last_ts.0,
            volume: book.volume.0,
            trades: book.trades,
            reference: 0,
            near: 0,
            far: 0,
            paired: 0,
            imbalance: 0,
            auction: 0,
            imbalance_side: None,
            state: book.state,
            status: book.status as u8,
            sides: book.sides,
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.state == BookState::Live
    }

    /// What to say of a book that cannot be trusted.
    pub(crate) fn complaint(&self) -> String {
        let state = match self.state {
            BookState::Building => "still being built",
            _ => "stale",
        };
        format!("the book of {} on {} is {state}", self.symbol, self.source)
    }

    fn array(&self, py: Python<'_>, side: Side) -> PyResult<Py<PyAny>> {
        let levels = self.sides[side as usize].iter();
        let words = levels.flat_map(|level| [level.price.raw() as u64, level.qty.0, level.orders.into()]);
        LEVEL.array(py, &bytes_of(words))
    }
}

#[pymethods]
impl Book {
    /// The source's name.
    #[getter]
    fn source(&self) -> &str {
        &self.source
    }

    /// Whether the book can be trusted: the worse of its own and its source's state.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        BOOK_STATE.member(py, self.state as u8)
    }

    /// Whether `state` is LIVE.
    #[getter]
    fn is_live(&self) -> bool {
        self.is_trusted()
    }

    /// Whether the instrument trades.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        TRADING_STATUS.member(py, self.status)
    }

    /// The best bids, best first: a read-only array of `LEVEL`.
    #[getter]
    fn bids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.array(py, Side::Bid)
    }

    /// The best asks, best first: a read-only array of `LEVEL`.
    #[getter]
    fn asks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.array(py, Side::Ask)
    }

    /// Price and quantity of the best bid, None when there is none.
    #[getter]
    fn best_bid(&self) -> Option<(i64, u64)> {
        self.sides[0]
            .first()
            .map(|level| (level.price.raw(), level.qty.0))
    }

    /// Price and quantity of the best ask, None when there is none.
    #[getter]
    fn best_ask(&self) -> Option<(i64, u64)> {
        self.sides[1]
            .first()
            .map(|level| (level.price.raw(), level.qty.0))
    }

    /// The venue's letter for the type of the auction announced, None when there is none.
    #[getter]
    fn auction(&self) -> Option<char> {
        (self.auction != 0).then_some(self.auction.into())
    }

    /// The side of the auction's unpaired quantity.
    #[getter]
    fn imbalance_side(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.imbalance_side
            .map(|side| SIDE.member(py, side as u8))
            .transpose()
    }

    fn __repr__(&self) -> String {
        let state = format!("{:?}", self.state).to_lowercase();
        let mut text = format!(
            "<Book {} on {}, {state}, message {}",
            self.symbol, self.source, self.seq
        );
        for (side, name) in self.sides.iter().zip(["bid", "ask"]) {
            if let Some(best) = side.first() {
                let _ = write!(text, ", {name} {} x {}", best.price, best.qty.0);
            }
        }
        text + ">"
    }
}

/// The consolidated feed's national best of a side, and how far ours is from it.
#[pyclass(frozen, get_all, module = "tickwire")]
pub(crate) struct National {
    /// Its price.
    price: i64,
    /// Its quantity.
    qty: u64,
    /// The participant it names, a letter.
    participant: Option<char>,
    /// Our best price less this one, in 1e-9; 0 when ours is missing.
    difference: i64,
    /// Since when they differ, nanoseconds since the epoch; None: they agree.
    different_since: Option<u64>,
}

/// The books of one symbol on all feeds, merged, whole as of one moment.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct SuperBook {
    /// The symbol.
    #[pyo3(get)]
    symbol: String,
    /// How often it was written.
    #[pyo3(get)]
    writes: u64,
    /// Feeds in it: names by number.
    #[pyo3(get)]
    feeds: Vec<String>,
    /// Feeds left out because their book is not live.
    #[pyo3(get)]
    stale_feeds: Vec<String>,
    /// Feeds in it, a bit each: bit n is the feed of number n.
    #[pyo3(get)]
    feed_mask: u32,
    /// Feeds left out, a bit each.
    #[pyo3(get)]
    stale_mask: u32,
    /// Feeds at the best price, a bit each: bids, asks.
    #[pyo3(get)]
    at_best: (u32, u32),
    /// Shares of the whole consolidated book: bids, asks. The arrays hold the best of them.
    #[pyo3(get)]
    shares: (u32, u32),
    /// Levels of the whole consolidated book: bids, asks.
    #[pyo3(get)]
    levels: (u32, u32),
    /// Quantity of the whole consolidated book: bids, asks.
    #[pyo3(get)]
    qty: (u64, u64),
    /// The consolidated feed's time of the national best, nanoseconds.
    #[pyo3(get)]
    national_venue_ts: u64,
    /// When its packet was received, nanoseconds since the epoch.
    #[pyo3(get)]
    national_recv_ts: u64,
    /// Price of the last trade on any feed; meaningless when `last_qty` is 0.
    #[pyo3(get)]
    last_price: i64,
    /// Quantity of the last trade, 0 when there was none.
    #[pyo3(get)]
    last_qty: u64,
    /// The venue's time of the last trade, nanoseconds.
    #[pyo3(get)]
    last_ts: u64,
    /// Quantity traded today over all feeds.
    #[pyo3(get)]
    volume: u64,
    /// Trades today over all feeds.
    #[pyo3(get)]
    trades: u64,
    /// When the packet that changed it last was received, nanoseconds since the epoch.
    #[pyo3(get)]
    recv_ts: u64,
    /// When it was written, nanoseconds since the epoch; 0 where that was not looked at: another message of
    /// its packet followed.
    #[pyo3(get)]
    publish_ts: u64,
    touch: u8,
    best: [(i64, u64); 2],
    national: [NationalCopy; 2],
    difference: [(i64, u64); 2],
    sides: [Vec<Share>; 2],
}

impl SuperBook {
    /// `names`: of feeds, by number.
    pub(crate) fn new(symbol: Symbol, names: &[String], copy: &SuperCopy) -> SuperBook {
        let named = |mask: u32| {
            let feeds = (0..u32::BITS).filter(|feed| mask >> feed & 1 == 1);
            let name = |feed: u32| names.get(feed as usize).filter(|name| !name.is_empty()).cloned();
            feeds
                .map(|feed| name(feed).unwrap_or_else(|| format!("feed {feed}")))
                .collect()
        };
        let ladders = copy.ladders;
        SuperBook {
            symbol: symbol.as_str().to_owned(),
            writes: copy.writes,
            feeds: named(copy.feeds),
            stale_feeds: named(copy.stale),
            feed_mask: copy.feeds,
            stale_mask: copy.stale,
            at_best: pair(ladders.map(|ladder| ladder.feeds)),
            shares: pair(ladders.map(|ladder| ladder.shares)),
            levels: pair(ladders.map(|ladder| ladder.levels)),
            qty: pair(ladders.map(|ladder| ladder.total_qty.0)),
            national_venue_ts: copy.national_venue_ts.0,
            national_recv_ts: copy.national_recv_ts.0,
            last_price: copy.last.price.raw(),
            last_qty: copy.last.qty.0,
            last_ts: copy.last.venue_ts.0,
            volume: copy.volume.0,
            trades: copy.trades,
            recv_ts: copy.recv_ts.0,
            publish_ts: copy.publish_ts.0,
            touch: copy.touch as u8,
            best: ladders.map(|ladder| (ladder.price.raw(), ladder.qty.0)),
            national: copy.national,
            difference: copy
                .difference
                .map(|difference| (difference.price, difference.since.0)),
            sides: Side::BOTH.map(|side| copy.side(side).to_vec()),
        }
    }

    fn array(&self, py: Python<'_>, side: Side) -> PyResult<Py<PyAny>> {
        let shares = self.sides[side as usize].iter();
        let words = shares.flat_map(|share| {
            let who = u64::from(share.feed) | u64::from(share.orders) << 32;
            [share.price.raw() as u64, share.qty.0, who]
        });
        SHARE.array(py, &bytes_of(words))
    }

    /// Shares of one price together. The last level may lack shares that the feed handler did not show.
    fn merged(&self, py: Python<'_>, side: Side) -> PyResult<Py<PyAny>> {
        let levels = self.sides[side as usize].chunk_by(|a, b| a.price == b.price);
        let words = levels.flat_map(|level| {
            let qty = level
                .iter()
                .fold(0, |sum: u64, share| sum.saturating_add(share.qty.0));
            let orders = level.iter().map(|share| u64::from(share.orders)).sum();
            [level[0].price.raw() as u64, qty, orders]
        });
        LEVEL.array(py, &bytes_of(words))
    }

    fn national(&self, side: Side) -> Option<National> {
        let (national, (difference, since)) = (self.national[side as usize], self.difference[side as usize]);
        (!national.qty.is_zero()).then(|| National {
            price: national.price.raw(),
            qty: national.qty.0,
            participant: (national.participant != 0).then_some(national.participant.into()),
            difference,
            different_since: (since != 0).then_some(since),
        })
    }
}

#[pymethods]
impl SuperBook {
    /// How the best bid meets the best ask.
    #[getter]
    fn touch(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        TOUCH.member(py, self.touch)
    }

    /// What each feed bids, best price first, at one price by feed: a read-only array of `SHARE`.
    #[getter]
    fn bids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.array(py, Side::Bid)
    }

    /// What each feed asks, best price first, at one price by feed: a read-only array of `SHARE`.
    #[getter]
    fn asks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.array(py, Side::Ask)
    }

    /// The bids with the feeds of one price together: a read-only array of `LEVEL`.
    #[getter]
    fn merged_bids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.merged(py, Side::Bid)
    }

    /// The asks with the feeds of one price together: a read-only array of `LEVEL`.
    #[getter]
    fn merged_asks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.merged(py, Side::Ask)
    }

    /// Best bid price and its quantity over all feeds, None when there is none.
    #[getter]
    fn best_bid(&self) -> Option<(i64, u64)> {
        (self.best[0].1 != 0).then_some(self.best[0])
    }

    /// Best ask price and its quantity over all feeds, None when there is none.
    #[getter]
    fn best_ask(&self) -> Option<(i64, u64)> {
        (self.best[1].1 != 0).then_some(self.best[1])
    }

    /// The consolidated feed's national best bid, None when there is none.
    #[getter]
    fn national_bid(&self) -> Option<National> {
        self.national(Side::Bid)
    }

    /// The consolidated feed's national best ask, None when there is none.
    #[getter]
    fn national_ask(&self) -> Option<National> {
        self.national(Side::Ask)
    }

    fn __repr__(&self) -> String {
        format!("<SuperBook {} of {}>", self.symbol, self.feeds.join(", "))
    }
}
