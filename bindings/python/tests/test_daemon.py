"""`tickwire feed` itself, that plays a recording: read while it writes, killed, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import dump
import numpy as np
import pytest
import tickwire
from conftest import PROGRAM
from tickwire import Book, Feed, Health, Missed

TICKWIRE, CONFIG, CAPTURE = (os.environ.get(f"TICKWIRE_{name}", "") for name in ("PROGRAM", "CONFIG", "CAPTURE"))
PATIENCE_S = 60.0
TERMINATED = 130
"""How the program ends when a signal asked it to."""


class Daemons:
    """Starts feed handlers in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, speed: str) -> subprocess.Popen[bytes]:
        words = [TICKWIRE, "feed", "-c", CONFIG, "--folder", str(self.folder), "--replay", CAPTURE, "--speed", speed]
        self.started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        return self.started[-1]

    def attach(self) -> Feed:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return Feed(self.folder)
            except tickwire.NotRunning:
                assert time.monotonic() < end and self.started[-1].poll() is None
                time.sleep(0.01)


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    assert TICKWIRE, "run by `cargo xtask bindings`, which names the program in TICKWIRE_PROGRAM"
    daemons = Daemons(tmp_path)
    yield daemons
    for daemon in daemons.started:
        daemon.kill()
        daemon.wait(10)


def check(book: Book) -> None:
    """What holds of any book, whatever the market does."""
    for side, levels in enumerate((book.bids, book.asks)):
        assert (levels["qty"] > 0).all() and (levels["orders"] > 0).all() and len(levels) == min(book.levels[side], 8)
        steps = np.diff(levels["price"])
        assert (steps > 0).all() if side else (steps < 0).all()
        shown = int(levels["qty"].sum())
        assert shown <= book.qty[side] if len(levels) < book.levels[side] else shown == book.qty[side]


def packets() -> int:
    """Packets of the recording: pcap with 16 bytes before each."""
    data = memoryview(Path(CAPTURE).read_bytes())
    at, count = 24, 0
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        count += 1
    return count


def read_along(feed: Feed, wanted: int) -> tuple[int, int]:
    """Reads everything while it is written, until the recording is over: books and records read."""
    end = time.monotonic() + PATIENCE_S
    events = feed.events(start="oldest", timeout=0.01)
    read = records = 0
    while True:
        seen = sum(source.packets for source in feed.sources())
        for symbol, source in feed.books():
            check(feed.book(symbol, source))
            read += 1
        for symbol in feed.super_symbols():
            merged = feed.super_book(symbol)
            assert int(merged.merged_bids["qty"].sum()) == int(merged.bids["qty"].sum())
        for _ in range(2000):
            record = next(events, None)
            if record is None:
                break
            records += 1
            assert isinstance(record, Missed) or record.recv_ts > 0
        if seen == wanted:
            return read, records
        assert seen < wanted and time.monotonic() < end


def soon_equal_to_the_rust_reader(feed: Feed, folder: Path) -> None:
    """The last packet is counted before its books are written: as soon as both see the same."""
    end = time.monotonic() + PATIENCE_S
    while True:
        theirs = dump.comparable(subprocess.run([PROGRAM, "dump", str(folder)], capture_output=True, text=True, check=True).stdout)
        ours = list(dump.books(feed)), list(dump.records(feed))
        if ours == theirs:
            return
        assert time.monotonic() < end
        time.sleep(0.1)


def levels_of(feed: Feed) -> list[tuple[str, str, list[object], list[object]]]:
    books = ((symbol, source, feed.book(symbol, source)) for symbol, source in feed.books())
    return [(symbol, source, book.bids.tolist(), book.asks.tolist()) for symbol, source, book in books]


def test_a_running_feed_handler_is_read(daemons: Daemons) -> None:
    wanted = packets()
    daemon = daemons.start("1")
    with daemons.attach() as feed:
        assert feed.health is Health.ALIVE and feed.pid == daemon.pid and feed.book_levels == 8
        books, records = read_along(feed, wanted)
        assert books > 0 and records > 0
        soon_equal_to_the_rust_reader(feed, daemons.folder)
        merged = feed.super_book("AAPL")
        assert set(merged.feeds) | set(merged.stale_feeds) == {"bzx", "nasdaq"} and merged.trades > 0
        assert feed.counters("nasdaq")["messages"] > 1000 and feed.latency("bzx").count > 1000
        assert sum(kind.seen for kind in feed.kinds("nasdaq")) > 1000
        array = feed.events_array(1000)
        assert len(array) > 0 and set(np.unique(array["source"])) <= {0, 1}
        first, generation = levels_of(feed), feed.generation

        daemon.send_signal(signal.SIGKILL)
        daemon.wait(10)
        with pytest.raises(tickwire.WriterDead):
            feed.refresh()
        daemon = daemons.start("max")
        end = time.monotonic() + PATIENCE_S
        while feed.generation == generation:
            assert time.monotonic() < end
            try:
                feed.refresh()
            except tickwire.NotRunning:
                time.sleep(0.01)
        assert feed.pid == daemon.pid
        read_along(feed, wanted)
        soon_equal_to_the_rust_reader(feed, daemons.folder)
        assert levels_of(feed) == first and sum(len(bids) for _, _, bids, _ in first) > 100

        daemon.terminate()
        assert daemon.wait(30) == TERMINATED
        with pytest.raises(tickwire.NotRunning, match="has ended"):
            feed.refresh()
