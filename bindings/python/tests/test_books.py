"""Books, consolidated books and statistics, as the Rust reader sees them, whole under a fast writer."""

from __future__ import annotations

import dump
import numpy as np
import pytest
import tickwire
from conftest import Writer, Writers
from tickwire import Book, BookState, Feed, Side, SuperBook, TradingStatus

TICK = 10_000_000


def levels_of(k: int, n: int, side: int, shown: int) -> int:
    return (n + k + side) % (shown + 3)


def check_book(b: Book, k: int, shown: int) -> None:
    """Everything follows from the book's number and the write's, as in region.rs."""
    n = b.seq
    base = (k + 1) * 100_000_000_000 + n % 1000 * 1_000_000
    assert (b.writes, b.venue_ts, b.recv_ts, b.publish_ts) == (n + 1, n * 1000 + k, n * 1000 + k + 1, n * 1000 + k + 500)
    assert b.state == (BookState.STALE if n % 64 == 0 else BookState.LIVE) and b.status is TradingStatus.TRADING
    assert (b.last_price, b.last_qty, b.last_ts, b.volume, b.trades) == (base, n + 1, n * 1000, n * 3, n)
    assert (b.reference, b.near, b.far, b.paired, b.imbalance) == (base, base - n, base + n, n * 11, n * 13)
    assert b.auction == ("O" if n % 2 == 0 else None)
    assert b.imbalance_side == (Side.BID, Side.ASK, None)[n % 3]
    for side, array in enumerate((b.bids, b.asks)):
        count = levels_of(k, n, side, shown)
        assert (b.levels[side], b.qty[side], b.orders[side]) == (count, count * 7 + n, count + n % 7)
        assert array.shape == (min(count, shown),) and array.dtype == tickwire.LEVEL and not array.flags.writeable
        rank = np.arange(len(array))
        assert (array["price"] == base + (rank + 1) * (TICK if side else -TICK)).all()
        assert (array["qty"] == n * 100 + rank * 2 + side + 1).all() and (array["orders"] == (n + rank) % 50 + 1).all()


def check_super(b: SuperBook, shown: int) -> None:
    n = b.trades
    base = 10 * 100_000_000_000 + n % 1000 * 1_000_000
    assert (b.writes, b.volume, b.last_price, b.recv_ts) == (n + 1, n * 3, base, n * 1000 + 1)
    assert b.feeds == ["nasdaq", "bzx"] and b.stale_feeds == (["bzx"] if n % 8 == 0 else [])
    for side, array in enumerate((b.bids, b.asks)):
        count = levels_of(9, n, side, shown)
        assert (b.shares[side], b.qty[side]) == (count, count * 7 + n) and array.shape == (min(count, shown),)
        rank = np.arange(len(array))
        assert (array["qty"] == n * 100 + rank * 2 + side + 1).all() and (array["feed"] == rank % 2).all()
        assert (array["price"] == base + (rank + 1) * (TICK if side else -TICK)).all()
    assert b.national_bid is not None and b.national_bid.participant == "Q" and b.national_bid.different_since == n


@pytest.mark.parametrize("levels", [1, 10, 64])
def test_values_are_those_of_the_rust_reader(writers: Writers, levels: int) -> None:
    writer = writers.start(levels)
    with Feed(writer.folder) as feed:
        assert (feed.book_levels, feed.super_shares, feed.rings, feed.ring_records) == (levels, levels, 1, 64)
        for _ in range(4):
            writer.order("step 21")
            books, records = dump.comparable(writer.dump())
            assert list(dump.books(feed)) == books
            assert list(dump.records(feed)) == records
            check_book(feed.book("MSFT"), 1, levels)
            check_super(feed.super_book("AAPL"), levels)


def test_statistics_are_those_of_the_writer(writer: Writer) -> None:
    writer.order("step 97")
    with Feed(writer.folder) as feed:
        nasdaq, bzx1, bzx2 = feed.sources()
        assert (nasdaq.name, nasdaq.feed, nasdaq.protocol, nasdaq.venue) == ("nasdaq", "nasdaq", "known", "nasdaq")
        assert (bzx1.feed_number, bzx2.feed_number, bzx2.number, bzx2.ring) == (1, 1, 2, 0)
        assert (nasdaq.packets, nasdaq.updates, nasdaq.books, nasdaq.next_seq) == (100, 200, 2, 101)
        assert nasdaq.state is BookState.LIVE and nasdaq.last_packet == 100_000
        assert feed.counters("bzx")["messages"] == 500 and feed.counters()["messages"] == 600
        assert feed.counters("bzx 1")["gaps"] == 10 and set(feed.counters()) == {info.id for info in tickwire.counter_table()}
        other, add = feed.kinds("nasdaq")
        assert (other.type, other.seen, add.type, add.seen, add.filtered) == (0x2E, 100, ord("A"), 300, 100)
        assert add.latency is not None and (add.latency.count, add.latency.min, add.latency.max) == (100, 200, 299)
        whole = feed.latency()
        assert (whole.count, whole.min, whole.max, whole.mean) == (400, 101, 200, 150.5)
        assert abs(whole.quantile(0.5) - 150) <= 5 and whole.quantile(1.0) == 200
        assert whole.buckets()["count"].sum() == 400
        assert feed.latency("nasdaq").count == 200 and feed.latency(super_book=True).count == 0
        # The same through the Rust reader, all quantiles included.
        lines = list(dump.sources(feed))
        theirs = [line.split(" ", 2)[2] for line in writer.dump().splitlines() if line.startswith("histogram ")]
        ours = [line for line in lines if line.startswith(("latency", "kind", "super latency"))]
        assert sorted(theirs) == sorted(" ".join(line.split(" ")[-7:]) for line in ours)


def test_no_read_is_torn_under_a_fast_writer(writers: Writers) -> None:
    writer = writers.start(10, 1024)
    with Feed(writer.folder) as feed:
        places = [("AAPL", "nasdaq"), ("MSFT", None), ("AAPL", "bzx"), ("ZVZZT", None)]
        written, reads, busy = 3, 0, 0
        seen: set[int] = set()
        # A machine that is busy with others may give the reader no turn for as long as one round takes.
        while reads <= 10 or len(seen) <= 5:
            writer.order("fast 20000")
            written += 20_000
            n = 0
            while n < written:
                try:
                    n = feed.super_book("AAPL").trades
                    for k, (symbol, source) in enumerate(places):
                        check_book(feed.book(symbol, source), k, 10)
                    check_super(feed.super_book("AAPL"), 10)
                    seen.add(n)
                    reads += 1
                except tickwire.Busy:
                    # And the writer none while it is in the middle of a book.
                    busy += 1
                    assert busy < 100
            writer.expect("ok")


def test_a_book_that_cannot_be_trusted_says_so(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        assert feed.book("AAPL", "bzx", live=True).is_live
        for number, state in enumerate((BookState.BUILDING, BookState.LIVE, BookState.STALE, BookState.STALE)):
            writer.order(f"state 0 {number}")
            assert feed.book("MSFT").state is state
            assert feed.sources()[0].state == number
        with pytest.raises(tickwire.Stale, match="MSFT on nasdaq is stale"):
            feed.book("MSFT", live=True)
        assert feed.book("AAPL", "bzx 1").is_live


def test_what_is_not_there_is_named(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        with pytest.raises(tickwire.NotFound, match="AAPL is on nasdaq, bzx 1: say which"):
            feed.book("AAPL")
        with pytest.raises(KeyError):
            feed.book("AAPL", "bzx 2")
        with pytest.raises(tickwire.NotFound, match="NONE"):
            feed.super_book("NONE")
        with pytest.raises(tickwire.NotFound, match="edgx"):
            feed.latency("edgx")
        assert feed.books() == [("AAPL", "nasdaq"), ("MSFT", "nasdaq"), ("AAPL", "bzx 1"), ("ZVZZT", "bzx 2")]
        assert feed.super_symbols() == ["AAPL"]


def test_enumerations_are_those_of_the_feed_handler() -> None:
    with pytest.raises(ValueError):
        BookState(4)
    # Names as the header has them: bindings/c/tickwire.h is made from the same tables.
    assert [state.name for state in TradingStatus][:3] == ["UNKNOWN", "PRE_OPEN", "AUCTION"]
    assert len(tickwire.EventKind) == 17 and len(TradingStatus) == 8


def test_prices_convert_exactly() -> None:
    assert str(tickwire.to_decimal(87_390_000_001)) == "87.390000001"
    assert tickwire.from_decimal("87.39") == 87_390_000_000
    assert tickwire.from_decimal("-0.000000001") == -1
    with pytest.raises(ValueError):
        tickwire.from_decimal("0.0000000001")
    assert tickwire.to_float(87_390_000_000) == 87.39
    assert (tickwire.to_float(np.array([1_500_000_000, -500_000_000])) == [1.5, -0.5]).all()
