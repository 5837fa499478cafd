"""Recordings without a feed handler: books, batches of rows, tables; and backtests on them."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _native
from ._native import Book
from ._types import ConfigError, Damaged, RecordingError, RecordingWarning

PathLike: TypeAlias = str | os.PathLike[str]
Time: TypeAlias = int | str | datetime.datetime | np.datetime64
"""Nanoseconds since the epoch, a text with its zone such as ``2026-01-05T14:30:00Z``, a datetime with its zone, a datetime64 (UTC)."""
NO_PRICE = 2**63 - 1
"""What stands in arrays where there is no price. In Arrow tables it is null."""

SCHEMAS: tuple[str, ...] = tuple(_native.schemas())
"""What rows can tell, by DBN's names."""

STRATEGIES: tuple[str, ...] = tuple(_native.strategies())
"""The built-in strategies."""


def _nanoseconds(time: Time) -> int:
    if isinstance(time, int):
        return time
    if isinstance(time, np.datetime64):
        return int(time.astype("datetime64[ns]").astype(np.int64))
    if isinstance(time, str):
        time = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    if time.tzinfo is None:
        raise ValueError(f"{time}: give the time with its zone")
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _paths(files: PathLike | Iterable[PathLike]) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        return [os.fspath(files)]
    return [os.fspath(path) for path in files]


def _need(name: str, why: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise ImportError(f"{why} needs {name}: pip install {name}") from error


class Frame:
    """A table in memory. Anything that reads Arrow by its PyCapsule interface takes it as it is."""

    def __init__(self, batch: _native.Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return len(self._batch)

    def __repr__(self) -> str:
        return f"<Frame of {len(self)} rows: {', '.join(self.columns)}>"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._batch.columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column as an array: prices in 1e-9 (``NO_PRICE``: none), times as ``datetime64[ns]``."""
        column: npt.NDArray[Any] = self._batch[name]
        return column

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._batch.__arrow_c_stream__(requested_schema)

    def to_numpy(self) -> dict[str, npt.NDArray[Any]]:
        """Every column as an array."""
        return {name: self[name] for name in self.columns}

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``."""
        return _need("pyarrow", "to_arrow").table(self)

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        return _need("polars", "to_polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` whose columns are Arrow's, so that prices stay exact."""
        _need("pyarrow", "to_pandas")
        pandas = _need("pandas", "to_pandas")
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)


def _warn(ending: dict[str, Any] | None) -> None:
    if ending is None:
        return
    said = []
    if ending["fault"]:
        said.append(ending["fault"])
    if ending["left_out"]:
        said.append(f"{', '.join(ending['left_out'])}: tells levels, not orders, and has no mbo")
    if ending["unknown_symbols"]:
        said.append(f"not in the recording: {', '.join(ending['unknown_symbols'])}")
    for text in said:
        warnings.warn(text, RecordingWarning, stacklevel=3)


class Recording:
    """Files that make one recording. Nothing is read until books, batches or a table are asked for; each of these reads them anew.

    Iterating over it gives its books, with ten levels of a side.
    """

    def __init__(
        self,
        files: PathLike | Iterable[PathLike],
        *,
        symbols: str | Iterable[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        date: str | datetime.date | None = None,
        config: PathLike | None = None,
        protocol: str | None = None,
        templates: Iterable[PathLike] = (),
        max_orders: int | None = None,
        batch_rows: int = 32_768,
        damaged: Literal["raise", "keep"] = "raise",
    ) -> None:
        if damaged not in ("raise", "keep"):
            raise ValueError(f'damaged {damaged!r}: give "raise" or "keep"')
        wanted = [symbols] if isinstance(symbols, str) else list(symbols or ())
        self._keeps_damaged = damaged == "keep"
        self._reader = _native.Reader(
            _paths(files),
            symbols=wanted,
            span=(0 if start is None else _nanoseconds(start), 2**64 - 1 if end is None else _nanoseconds(end)),
            date=None if date is None else str(date),
            config=None if config is None else os.fspath(config),
            protocol=protocol,
            templates=[os.fspath(path) for path in templates],
            max_orders=max_orders,
            batch_rows=batch_rows,
            keep_damaged=self._keeps_damaged,
        )

    def __repr__(self) -> str:
        return f"<Recording {', '.join(str(path) for path in self.files)}>"

    @property
    def files(self) -> list[os.PathLike[str]]:
        """The files."""
        return self._reader.files

    def __iter__(self) -> Iterator[Book]:
        return self.books()

    def books(self, levels: int = 10) -> Iterator[Book]:
        """Every state of the books in which the best ``levels`` of a side, or the trust in the book, differ from the state before.

        They are decoded in a thread of their own, which waits when the caller is slower; leaving the loop ends it.
        """
        books = self._reader.books(levels)
        yield from books
        _warn(books.ending)

    def batches(self, schema: str = "mbo", *, prices: Literal["decimal", "int"] = "decimal") -> Iterator[Frame]:
        """The rows of a schema, some ten thousand at a time: memory does not grow with the recording."""
        batches = self._reader.batches(schema, prices)
        for batch in batches:
            yield Frame(batch)
        _warn(batches.ending)

    def stream(self, schema: str = "mbo", *, prices: Literal["decimal", "int"] = "decimal") -> _native.ArrowStream:
        """The rows as a stream of Arrow, for whatever takes one (DuckDB, Polars, pyarrow, DataFusion): it can be taken once."""
        return self._reader.arrow(schema, prices)

    def _table(self, schema: str, prices: Literal["decimal", "int"], make: Any) -> Any:
        stream = self.stream(schema, prices=prices)
        try:
            table = make(stream)
        except Exception as error:
            ending = stream.ending
            if ending is not None and ending["is_damaged"]:
                raise Damaged(ending["fault"]) from None
            if isinstance(error, (ImportError, MemoryError, TypeError)):
                raise
            raise RecordingError(str(error)) from error
        _warn(stream.ending)
        return table

    def to_arrow(self, schema: str = "mbo", *, prices: Literal["decimal", "int"] = "decimal") -> Any:
        """A ``pyarrow.Table`` of all rows of a schema."""
        return self._table(schema, prices, _need("pyarrow", "to_arrow").table)

    def to_polars(self, schema: str = "mbo", *, prices: Literal["decimal", "int"] = "decimal") -> Any:
        """A ``polars.DataFrame`` of all rows of a schema."""
        return self._table(schema, prices, _need("polars", "to_polars").DataFrame)

    def to_pandas(self, schema: str = "mbo", *, prices: Literal["decimal", "int"] = "decimal") -> Any:
        """A ``pandas.DataFrame`` of all rows of a schema, with Arrow's columns, so that prices stay exact."""
        _need("pyarrow", "to_pandas")
        pandas = _need("pandas", "to_pandas")
        return self.to_arrow(schema, prices=prices).to_pandas(types_mapper=pandas.ArrowDtype)

    def to_numpy(self, schema: str = "mbo") -> dict[str, npt.NDArray[Any]]:
        """Every column of all rows of a schema as an array: prices in 1e-9 (``NO_PRICE``: none)."""
        parts = list(self.batches(schema))
        if not parts:
            return {}
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}


def open(  # noqa: A001 - the name that the standard library has for it, too
    files: PathLike | Iterable[PathLike],
    *,
    symbols: str | Iterable[str] | None = None,
    start: Time | None = None,
    end: Time | None = None,
    date: str | datetime.date | None = None,
    config: PathLike | None = None,
    protocol: str | None = None,
    templates: Iterable[PathLike] = (),
    max_orders: int | None = None,
    batch_rows: int = 32_768,
    damaged: Literal["raise", "keep"] = "raise",
) -> Recording:
    """Opens captures (pcap, pcapng), ITCH 5.0 files, DBN files of mbo, LOBSTER message files or archives of events; gzip and zstd too.

    ``symbols``: only these. ``start``, ``end``: only what was received from then on, and before then. ``date``: the day, in the
    venue's time zone, of files whose times have none (ITCH, LOBSTER). ``config``: feeds by group and port (TOML); without it they are
    found out. ``damaged``: whether a damaged file raises ``Damaged`` behind what could be read, or ends there.
    """
    return Recording(
        files,
        symbols=symbols,
        start=start,
        end=end,
        date=date,
        config=config,
        protocol=protocol,
        templates=templates,
        max_orders=max_orders,
        batch_rows=batch_rows,
        damaged=damaged,
    )


class BacktestResult:
    """What came of a backtest."""

    def __init__(self, found: _native.Backtest) -> None:
        self._found = found
        self.fills = Frame(found.fills())
        """Every fill, with the queue ahead of it and the middle of the book later."""
        self.orders = Frame(found.orders())
        """Every order that reached the venue, with how it ended; ``replaces`` is 0 where it is a new one."""
        self.positions = Frame(found.positions())
        """What was held at the end, by instrument."""
        self.equity = Frame(found.equity())
        """The gain over time."""

    def __repr__(self) -> str:
        return repr(self._found)

    @property
    def pnl(self) -> Decimal:
        """Gain less fees, in units of the currency."""
        return Decimal(self._found.pnl).scaleb(-9)

    @property
    def drawdown(self) -> Decimal:
        """The largest loss from a high of the gain to a later low."""
        return Decimal(self._found.drawdown).scaleb(-9)

    @property
    def events(self) -> int:
        """Events of market data."""
        return self._found.events

    @property
    def hash(self) -> int:
        """Of every request and report: the same for the same inputs, configuration and seed."""
        return self._found.hash

    @property
    def fault(self) -> str | None:
        """Why the recording is not to be relied on, if it is not."""
        return self._found.fault

    @property
    def doubts(self) -> dict[str, int]:
        """What a backtest cannot know, in cases (docs/backtest.md)."""
        return self._found.doubts

    @property
    def figures(self) -> dict[str, int]:
        """The strategy's own numbers."""
        return self._found.figures

    @property
    def notes(self) -> list[str]:
        """The first notes of the strategy."""
        return self._found.notes


def backtest(
    config: PathLike,
    files: PathLike | Iterable[PathLike],
    strategy: PathLike,
    *,
    name: str | None = None,
    parameters: Mapping[str, object] | None = None,
    feeds: PathLike | None = None,
    protocol: str | None = None,
    templates: Iterable[PathLike] = (),
) -> BacktestResult:
    """Runs a strategy file (``strategy.tw``), or a built-in one (``STRATEGIES``), on recordings in virtual time.

    ``config``: parameters, limits, the venue of the backtest (TOML). ``parameters`` take the place of the file's. ``feeds``: feeds by
    group and port. ``name``: one alone, of a configuration with several strategies.
    """
    words = []
    for key, value in (parameters or {}).items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        words.append(f"{key}={text}")
    found = BacktestResult(
        _native.backtest(
            os.fspath(config),
            _paths(files),
            os.fspath(strategy),
            name=name,
            set=words,
            feeds=None if feeds is None else os.fspath(feeds),
            protocol=protocol,
            templates=[os.fspath(path) for path in templates],
        )
    )
    if found.fault:
        warnings.warn(found.fault, RecordingWarning, stacklevel=2)
    return found


__all__ = [
    "NO_PRICE",
    "SCHEMAS",
    "STRATEGIES",
    "BacktestResult",
    "ConfigError",
    "Frame",
    "Recording",
    "backtest",
    "open",
]
