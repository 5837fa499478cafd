"""Writers that end, die and come back."""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tickwire
from conftest import Writer, Writers
from test_books import check_book
from tickwire import Event, Feed, Health

EXAMPLE = Path(__file__).parents[1] / "examples" / "books.py"


def test_no_feed_handler_is_said(tmp_path: Path) -> None:
    with pytest.raises(tickwire.NotRunning, match="start `tickwire feed`"):
        Feed(tmp_path)
    (tmp_path / "region").write_bytes(b"x" * 10_000)
    with pytest.raises(tickwire.TickwireError, match="not shared memory of Tickwire"):
        Feed(tmp_path)


def test_the_folder_comes_from_the_environment(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWIRE_FOLDER", str(writer.folder))
    with Feed() as feed:
        assert Path(feed.folder) == writer.folder and feed.health is Health.ALIVE and feed.pid == writer.process.pid
    with pytest.raises(ValueError, match="closed"):
        feed.book("MSFT")
    feed.close()


def test_a_dead_writer_is_noticed_and_its_successor_followed(writers: Writers) -> None:
    writer = writers.start(10)
    feed = Feed(writer.folder)
    events = feed.events(start="oldest")
    for levels in (20, 3, 10):
        generation = feed.generation
        writer.order("fast 1000000")
        writer.kill()
        assert feed.health is Health.DEAD
        with pytest.raises(tickwire.WriterDead):
            feed.refresh()
        with Feed(writer.folder, post_mortem=True) as left:
            # Whole, except the one book that it was writing when it died.
            for k, (symbol, source) in enumerate(left.books()):
                with contextlib.suppress(tickwire.Busy):
                    check_book(left.book(symbol, source), k, left.book_levels)
        with pytest.raises(tickwire.WriterDead):
            while True:
                next(events)
        writer = writers.start(levels)
        assert feed.refresh() and feed.generation > generation and feed.book_levels == levels
        check_book(feed.book("AAPL", "nasdaq"), 0, levels)
        with pytest.raises(tickwire.Restarted):
            next(events)
        record = next(events)
        assert isinstance(record, Event) and record.seq == 1
    feed.close()


def test_a_restart_is_followed_without_being_asked(writers: Writers) -> None:
    first = writers.start(10)
    with Feed(first.folder) as feed:
        first.order("step 10")
        assert feed.book("MSFT").seq == 13
        first.kill()
        second = writers.start(4)
        end = time.monotonic() + 10
        while feed.book("MSFT").seq != 3:
            assert time.monotonic() < end
        check_book(feed.book("MSFT"), 1, 4)
        second.close()


def test_an_orderly_end_is_told_from_a_death(writer: Writer) -> None:
    with Feed(writer.folder) as feed:
        writer.order("end")
        writer.process.wait(10)
        assert feed.health is Health.ENDED
        with pytest.raises(tickwire.NotRunning, match="has ended"):
            feed.refresh()
        assert not isinstance(feed, tickwire.WriterDead)
    with pytest.raises(tickwire.NotRunning):
        Feed(writer.folder)
    with Feed(writer.folder, post_mortem=True) as left:
        check_book(left.book("MSFT"), 1, 10)


def test_the_example_runs(writer: Writer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TICKWIRE_FOLDER", str(writer.folder))
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert "AAPL" in shown and "299.993" in shown and "records" in shown


def test_the_package_comes_with_its_types() -> None:
    package = Path(tickwire.__file__).parent
    assert (package / "py.typed").exists() and (package / "_native.pyi").exists()
    version = subprocess.run([sys.executable, "-c", "import tickwire; print(tickwire.__version__)"], capture_output=True, text=True)
    assert version.stdout.strip() == tickwire.__version__
