"""The ring: as an iterator and as arrays, with what was missed."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import tickwire
from conftest import Writer, Writers
from tickwire import Event, EventKind, Feed, Missed, Update


def check(record: Event | Update) -> None:
    n = record.seq
    if isinstance(record, Event):
        assert (record.order_id, record.qty, record.ref_id, record.ask_qty) == (n * 3, n * 5, n * 7, n * 9)
        assert record.kind == 1 + n % 17 and record.ask_price == -record.price and record.code == b"KNOWN"
    else:
        assert record.bid is not None and record.ask is not None
        assert (record.bid[1], record.ask[1]) == (n * 2, n * 3) and record.ask[0] == record.bid[0] + 2


def test_records_come_in_order(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        records = list(feed.events(start="oldest", timeout=0))
        assert len(records) == 24 and list(feed.events(timeout=0)) == []
        for at, record in enumerate(records):
            assert isinstance(record, Update if at % 2 else Event) and record.seq == at // 8 + 1
            check(record)
        only = feed.events(start="oldest", updates=False, timeout=0)
        assert [event.kind for event in only if isinstance(event, Event)][-1] is EventKind.EXECUTE


def test_records_say_their_symbol(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        numbers = {source.name: source.number for source in feed.sources()}
        instruments = {(numbers[source], feed.book(symbol, source).instrument): symbol for symbol, source in feed.books()}
        assert feed.symbols() == instruments
        records = list(feed.events(start="oldest", timeout=0))
        assert len(records) == 24
        for record in records:
            assert not isinstance(record, Missed)
            assert record.symbol == instruments[record.source, record.instrument]
            assert f" of {record.symbol} on " in repr(record)
        array = feed.events_array(1000)
        assert {feed.symbols()[int(row["source"]), int(row["instrument"])] for row in array} <= set(instruments.values())


def test_missed_records_are_counted(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        events, raising = feed.events(0, timeout=0), feed.events(0, timeout=0, on_missed="raise")
        writer.order("step 50")
        first, *rest = events
        assert isinstance(first, Missed) and first.count + len(rest) == 400 and events.missed == first.count
        for record in rest:
            assert not isinstance(record, Missed)
            check(record)
        with pytest.raises(Missed) as raised:
            next(raising)
        assert raised.value.count == first.count and len(list(raising)) == len(rest)


def test_every_record_is_read_or_counted_under_a_fast_writer(writers: Writers) -> None:
    writer = writers.start(5, 64)
    with Feed(writer.folder) as feed:
        events = feed.events(timeout=5.0)
        writer.order("fast 5000")
        read = 0
        while read + events.missed < 40_000:
            record = next(events)
            if not isinstance(record, Missed):
                check(record)
                read += 1
        writer.expect("ok")
        assert read > 0 and events.missed > 0


def test_arrays_hold_what_the_iterator_gives(writer: Writer) -> None:
    writer.order("step 4")
    with Feed(writer.folder) as feed:
        records = list(feed.events(start="oldest", timeout=0))
        array = feed.events_array(1000)
        assert array.dtype == tickwire.EVENT and array.dtype.itemsize == 128
        events = [record for record in records if isinstance(record, Event)]
        assert len(array) == len(events) == 28
        for field in ("seq", "venue_ts", "recv_ts", "instrument", "order_id", "price", "qty", "ref_id", "ask_price", "ask_qty"):
            assert array[field].tolist() == [getattr(event, field) for event in events]
        for field in ("near_price", "far_price", "imbalance_qty", "order_count", "flags", "code", "source", "kind", "side", "status"):
            assert array[field].tolist() == [getattr(event, field) for event in events]
        assert len(feed.events_array(1000)) == 0 and feed.missed == 0
        writer.order("step 1")
        assert feed.events_array(3)["seq"].tolist() == [8, 8, 8] and len(feed.events_array(3)) == 1
        writer.order("step 50")
        lost = feed.events_array(1000)
        # Events and updates take turns, 400 in all.
        assert feed.missed > 0 and 400 - feed.missed - 2 * len(lost) in (0, 1)
        updates = feed.events(start="oldest").updates_array(5)
        assert updates.dtype == tickwire.UPDATE and (updates["ask_price"] - updates["bid_price"] == 2).all()
        assert (updates["bid_qty"] == updates["seq"] * 2).all() and np.issubdtype(updates["source"].dtype, np.unsignedinteger)


def test_waiting_releases_the_interpreter(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        got: list[object] = []
        waiting = threading.Thread(target=lambda: got.append(next(feed.events(timeout=20.0))))
        waiting.start()
        turns = 0
        start = time.monotonic()
        while time.monotonic() - start < 0.2 or turns < 1000:
            turns += 1
        assert waiting.is_alive() and feed.book("MSFT").seq == 3
        # The thread may not have begun to listen before: write until it heard something.
        while waiting.is_alive():
            writer.order("step 1")
            waiting.join(0.05)
        assert isinstance(got[0], Event)


def test_a_timeout_ends_the_iteration(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        start = time.monotonic()
        assert list(feed.events(timeout=0.1)) == []
        assert 0.1 <= time.monotonic() - start < 5.0


def test_wrong_arguments_are_named(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        with pytest.raises(tickwire.NotFound, match="no ring 7"):
            feed.events(7)
        with pytest.raises(ValueError, match="start"):
            feed.events(start="then")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="on_missed"):
            feed.events(on_missed="ignore")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="timeout"):
            feed.events(timeout=-1.0)
