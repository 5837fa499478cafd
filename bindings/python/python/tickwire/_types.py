"""What the native half hands out: exceptions, enumerations and the record types of arrays."""

from __future__ import annotations

import enum
from decimal import Decimal
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

Records: TypeAlias = npt.NDArray[np.void]
"""A numpy array of records: fields by name, ``array["price"]``."""

PRICE_SCALE = 1_000_000_000
"""Prices are integers in units of 1e-9 of the currency: ``87_390_000_000`` is 87.39."""


class TickwireError(Exception):
    """Something that this package raises."""


class ConfigError(TickwireError):
    """A configuration, a parameter or an argument is wrong."""


class RecordingError(TickwireError):
    """A file cannot be read, or is no recording."""


class Damaged(RecordingError):
    """A file is damaged: what stands before the place that is named was handed over."""


class RecordingWarning(UserWarning):
    """Something of a recording is not to be relied on: gaps, a beginning in mid-session, symbols that are not in it."""


class NotRunning(TickwireError):
    """No feed handler runs in the folder: none was started, it is still starting, or it has ended."""


class WriterDead(NotRunning):
    """The feed handler was there and is gone without a word: what is in memory is its last state."""


class Restarted(NotRunning):
    """The feed handler was started again: instruments, sources and records are counted anew. Read on to get them."""


class Stale(TickwireError):
    """The book is not live, and a live one was asked for."""


class NotFound(TickwireError, KeyError):
    """No such symbol, source or ring; perhaps nobody subscribed to it yet."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Busy(TickwireError):
    """The book was half written at every look for 0.2 s: the feed handler does not run, or gets no turn. Read again."""


class Missed(TickwireError):
    """Records were written over before they were read: ``count`` of them. Yielded or raised, as asked for."""

    count: int

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} records were written over before they were read; read more often, or configure more ring_records")
        self.count = count


class Side(enum.IntEnum):
    """A side of a book."""

    BID = 0
    ASK = 1


class BookState(enum.IntEnum):
    """Whether a book can be trusted; of a source, also that it has ended."""

    BUILDING = 0
    LIVE = 1
    STALE = 2
    ENDED = 3


class TradingStatus(enum.IntEnum):
    """Whether an instrument trades."""

    UNKNOWN = 0
    PRE_OPEN = 1
    AUCTION = 2
    TRADING = 3
    QUOTE_ONLY = 4
    PAUSED = 5
    HALTED = 6
    CLOSED = 7


class EventKind(enum.IntEnum):
    """What happened; which fields of an event carry meaning depends on it."""

    ADD = 1
    MODIFY = 2
    REDUCE = 3
    EXECUTE = 4
    DELETE = 5
    REPLACE = 6
    TRADE = 7
    QUOTE = 8
    LEVEL = 9
    CLEAR = 10
    STATUS = 11
    IMBALANCE = 12
    DEFINITION = 13
    GAP = 14
    RECOVERED = 15
    TRADE_BREAK = 16
    END_OF_GROUP = 17


class Touch(enum.IntEnum):
    """How the best bid meets the best ask."""

    APART = 0
    LOCKED = 1
    CROSSED = 2


class Health(enum.Enum):
    """How the feed handler is."""

    ALIVE = "alive"
    SILENT = "silent"
    """It runs, and has not said so for more than a second."""
    ENDED = "ended"
    DEAD = "dead"


LEVEL: np.dtype[np.void] = np.dtype([("price", "<i8"), ("qty", "<u8"), ("orders", "<u8")])
"""A price level: price in 1e-9, quantity, orders (0 when the feed does not say)."""

SHARE: np.dtype[np.void] = np.dtype([("price", "<i8"), ("qty", "<u8"), ("feed", "<u4"), ("orders", "<u4")])
"""What one feed offers at one price; ``feed`` is its number, as in ``Source.feed_number``."""

EVENT: np.dtype[np.void] = np.dtype(
    {
        "names": [
            "seq", "venue_ts", "recv_ts", "instrument", "venue", "kind", "side", "status", "order_id", "price", "qty", "ref_id",
            "ask_price", "ask_qty", "near_price", "far_price", "imbalance_qty", "order_count", "flags", "code", "source",
        ],
        "formats": [
            "<u8", "<u8", "<u8", "<u4", "u1", "u1", "u1", "u1", "<u8", "<i8", "<u8", "<u8",
            "<i8", "<u8", "<i8", "<i8", "<u8", "<u4", "<u4", "S8", "<u2",
        ],
        "offsets": [0, 8, 16, 24, 28, 29, 30, 31, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 108, 112, 120],
        "itemsize": 128,
    }
)
"""A market event, 128 bytes."""

UPDATE: np.dtype[np.void] = np.dtype(
    {
        "names": [
            "seq", "venue_ts", "recv_ts", "instrument", "venue", "state", "changed", "bid_price", "ask_price", "bid_qty", "ask_qty",
            "source",
        ],
        "formats": ["<u8", "<u8", "<u8", "<u4", "u1", "u1", "u1", "<i8", "<i8", "<u8", "<u8", "<u2"],
        "offsets": [0, 8, 16, 24, 28, 29, 30, 32, 40, 48, 56, 64],
        "itemsize": 72,
    }
)
"""The top of a book after an event, 72 bytes."""

BUCKET: np.dtype[np.void] = np.dtype([("least", "<u8"), ("greatest", "<u8"), ("count", "<u8")])
"""A bucket of a histogram: the latencies it holds, in nanoseconds, and how many."""


@overload
def to_float(price: int) -> float: ...
@overload
def to_float(price: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]: ...
def to_float(price: Any) -> Any:
    """A price, or an array of prices, in currency units. For plots: not every price is exact as a float."""
    return price / PRICE_SCALE


def to_decimal(price: int) -> Decimal:
    """A price in currency units, exactly."""
    return Decimal(int(price)).scaleb(-9)


def from_decimal(price: Decimal | str | int) -> int:
    """A price in 1e-9 from currency units; ValueError when it has more than nine decimals."""
    raw = Decimal(price).scaleb(9)
    if raw != raw.to_integral_value():
        raise ValueError(f"{price} has more than nine decimals")
    return int(raw)
