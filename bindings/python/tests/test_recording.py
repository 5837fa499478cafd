"""Recordings without a feed handler, against what the program itself writes of the same files."""

from __future__ import annotations

import csv
import os
import subprocess
import threading
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import tickwire
from tickwire import BookState

TICKWIRE, CONFIG, CAPTURE = (os.environ.get(f"TICKWIRE_{name}", "") for name in ("PROGRAM", "CONFIG", "CAPTURE"))
SYMBOL = "AAPL"


def exported(folder: Path, schema: str, *more: str) -> list[dict[str, str]]:
    """The rows that the program writes."""
    out = folder / f"{schema}.csv"
    subprocess.run([TICKWIRE, "export", CAPTURE, "--schema", schema, "--out", str(out), *more], check=False, capture_output=True)
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def texts(table: dict[str, np.ndarray[Any, Any]]) -> list[dict[str, str]]:
    """Columns as rows of the texts that CSV has."""
    shown: dict[str, list[str]] = {}
    for name, values in table.items():
        if name.endswith("price") or name[4:6] == "px":
            none = tickwire.NO_PRICE
            shown[name] = ["" if value == none else f"{tickwire.to_decimal(int(value)):.9f}" for value in values]
        elif values.dtype.kind == "M":
            shown[name] = [str(value) for value in values.astype(np.int64)]
        elif values.dtype.kind == "S":
            shown[name] = [value.decode() for value in values]
        else:
            shown[name] = [str(value) for value in values]
    return [dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True)]


@pytest.fixture
def day() -> tickwire.Recording:
    return tickwire.open(CAPTURE)


@pytest.mark.parametrize("schema", ["mbo", "mbp-10", "trades", "bbo-1s"])
def test_every_value_is_the_export_s(tmp_path: Path, day: tickwire.Recording, schema: str) -> None:
    expected = exported(tmp_path, schema)
    assert texts(day.to_numpy(schema)) == expected
    assert len(expected) > 0


def test_tables_of_arrow_polars_and_pandas_are_exact(tmp_path: Path, day: tickwire.Recording) -> None:
    expected = exported(tmp_path, "trades")
    total = sum(Decimal(row["price"]) for row in expected)
    sizes = sum(int(row["size"]) for row in expected)
    symbols = Counter(row["symbol"] for row in expected)

    arrow = day.to_arrow("trades")
    assert arrow.schema.field("price").type == pyarrow.decimal128(18, 9)
    assert arrow.schema.field("ts_recv").type == pyarrow.timestamp("ns")
    assert sum(arrow["price"].to_pylist()) == total and sum(arrow["size"].to_pylist()) == sizes

    frame = day.to_polars("trades")
    assert isinstance(frame, polars.DataFrame)
    assert frame["price"].sum() == total and Counter(frame["symbol"].to_list()) == symbols

    table = day.to_pandas("trades")
    assert isinstance(table, pandas.DataFrame)
    assert sum(table["price"]) == total and int(table["size"].sum()) == sizes

    whole = day.to_polars("trades", prices="int")
    assert whole["price"].dtype == polars.Int64 and whole["price"].sum() == int(total * 10**9)
    # A stream goes to whatever takes one, once.
    stream = day.stream("trades")
    assert pyarrow.RecordBatchReader.from_stream(stream).read_all().num_rows == len(expected)
    assert stream.ending is not None and stream.ending["rows"] == len(expected)
    with pytest.raises(ValueError, match="taken already"):
        pyarrow.table(stream)


def test_a_price_that_is_none_is_null(day: tickwire.Recording) -> None:
    levels = day.to_arrow("mbp-10")
    none = int((day.to_numpy("mbp-10")["bid_px_09"] == tickwire.NO_PRICE).sum())
    assert none > 0 and levels["bid_px_09"].null_count == none


def test_books_are_those_of_the_rows(tmp_path: Path) -> None:
    day = tickwire.open(CAPTURE, symbols=[SYMBOL])
    books = list(day.books(levels=10))
    assert books and {book.symbol for book in books} == {SYMBOL}
    assert {book.state for book in books} <= {BookState.BUILDING, BookState.LIVE}
    rows = exported(tmp_path, "mbp-10", "--symbol", SYMBOL)
    for source in {book.source for book in books}:
        last = [book for book in books if book.source == source][-1]
        seen = [row for row in rows if row["instrument_id"] == str(last.instrument) and row["ts_recv"] <= str(last.recv_ts)]
        shown = [int(Decimal(row["bid_px_00"]) * 10**9) for row in seen if row["bid_px_00"]]
        assert last.best_bid is not None and last.best_bid[0] in shown
        assert list(last.bids["price"]) == sorted(last.bids["price"], reverse=True)
        assert last.levels[0] >= len(last.bids) and last.qty[0] >= int(last.bids["qty"].sum())
        assert [book.writes for book in books if book.source == source] == list(range(1, last.writes + 1))
    # Iterating over the recording is the same; leaving the loop ends the thread.
    for first in day:
        assert (first.recv_ts, first.best_bid) == (books[0].recv_ts, books[0].best_bid)
        break


def test_a_span_of_time_is_chosen(day: tickwire.Recording) -> None:
    times = day.to_numpy("mbo")["ts_recv"]
    middle = times[len(times) // 2]
    part = tickwire.open(CAPTURE, start=middle, end=int(middle.astype(np.int64)) + 1_000_000).to_numpy("mbo")["ts_recv"]
    assert len(part) == int(((times >= middle) & (times < middle + np.timedelta64(1_000_000, "ns"))).sum()) > 0
    with pytest.raises(ValueError, match="zone"):
        tickwire.open(CAPTURE, start="2026-01-05T14:30:00")


def test_batches_are_small_and_the_interpreter_runs_meanwhile() -> None:
    day = tickwire.open(CAPTURE, batch_rows=1000)
    turns, is_over = 0, threading.Event()

    def turn() -> None:
        nonlocal turns
        while not is_over.is_set():
            turns += 1

    thread = threading.Thread(target=turn)
    thread.start()
    while turns == 0:
        pass
    before = turns
    # A machine that is busy with others may give the thread no turn for as long as one reading takes.
    for _ in range(100):
        sizes = [len(batch) for batch in day.batches("mbo")]
        if turns > before:
            break
    is_over.set()
    thread.join()
    assert turns > before
    assert max(sizes) == 1000 and all(size == 1000 for size in sizes[:-1])


def test_a_damaged_file_says_where_and_keeps_what_was_before(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    whole = Path(CAPTURE).read_bytes()
    cut.write_bytes(whole[: len(whole) // 2 + 7])
    taken = 0
    with pytest.raises(tickwire.Damaged, match=r"cut\.pcap.*byte"):
        for batch in tickwire.open(cut, batch_rows=100).batches("mbo"):
            taken += len(batch)
    assert taken > 0
    for make in ("to_arrow", "to_polars", "to_pandas"):
        with pytest.raises(tickwire.Damaged, match="cut"):
            getattr(tickwire.open(cut), make)("mbo")
    with pytest.warns(tickwire.RecordingWarning, match="cut"):
        assert tickwire.open(cut, damaged="keep").to_arrow("mbo").num_rows == taken


def test_what_is_wrong_is_said(tmp_path: Path, day: tickwire.Recording) -> None:
    with pytest.raises(tickwire.RecordingError, match="nowhere"):
        tickwire.open(tmp_path / "nowhere.pcap")
    with pytest.raises(ValueError, match="mbp-10"):
        next(day.batches("mbp-11"))
    with pytest.raises(ValueError, match="itch50"):
        tickwire.open(CAPTURE, protocol="itch")
    with pytest.raises(tickwire.ConfigError, match="level"):
        next(day.books(levels=0))
    strange = tmp_path / "strange.bin"
    strange.write_bytes(b"no recording" * 100)
    with pytest.raises(tickwire.TickwireError, match="strange"):
        day = tickwire.open(strange)
        day.to_numpy("mbo")
    with pytest.warns(tickwire.RecordingWarning, match="ZZZZ"):
        assert tickwire.open(CAPTURE, symbols="ZZZZ").to_numpy("mbo") == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tickwire.open(CAPTURE).to_numpy("trades")
