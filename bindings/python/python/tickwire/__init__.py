"""Recordings as books and tables, backtests, a simulated exchange for tests, and the books of a running feed handler.

>>> import tickwire
>>> day = tickwire.open("day.pcap", symbols=["AAPL"])    # doctest: +SKIP
>>> for book in day.books(levels=5):                     # doctest: +SKIP
...     print(book.recv_ts, book.best_bid, book.best_ask)
>>> trades = day.to_polars("trades")                     # doctest: +SKIP

Of a running feed handler, ``Feed`` reads what it keeps in shared memory:

>>> with tickwire.Feed() as feed:                        # doctest: +SKIP
...     book = feed.book("AAPL", "bzx")
...     print(book.state, tickwire.to_decimal(book.bids["price"][0]))
...     for event in feed.events(timeout=1.0):
...         print(event)

Nothing here can disturb the feed handler: the memory is mapped read-only. Prices are integers in units of 1e-9 of the
currency (:func:`to_float`, :func:`to_decimal`), times nanoseconds since the epoch.
"""

from ._native import (
    Book,
    CounterInfo,
    Event,
    Events,
    Feed,
    Histogram,
    Kind,
    National,
    Source,
    SuperBook,
    Update,
    __version__,
    counter_table,
)
from ._recording import (
    NO_PRICE,
    SCHEMAS,
    STRATEGIES,
    BacktestResult,
    Frame,
    Recording,
    backtest,
    open,
)
from ._types import (
    BUCKET,
    EVENT,
    LEVEL,
    PRICE_SCALE,
    SHARE,
    UPDATE,
    BookState,
    Busy,
    ConfigError,
    Damaged,
    EventKind,
    Health,
    Missed,
    NotFound,
    NotRunning,
    RecordingError,
    RecordingWarning,
    Records,
    Restarted,
    Side,
    Stale,
    TickwireError,
    Touch,
    TradingStatus,
    WriterDead,
    from_decimal,
    to_decimal,
    to_float,
)

__all__ = [
    "BUCKET",
    "EVENT",
    "LEVEL",
    "NO_PRICE",
    "PRICE_SCALE",
    "SCHEMAS",
    "SHARE",
    "STRATEGIES",
    "UPDATE",
    "BacktestResult",
    "Book",
    "BookState",
    "Busy",
    "ConfigError",
    "CounterInfo",
    "Damaged",
    "Event",
    "EventKind",
    "Events",
    "Feed",
    "Frame",
    "Health",
    "Histogram",
    "Kind",
    "Missed",
    "National",
    "NotFound",
    "NotRunning",
    "Recording",
    "RecordingError",
    "RecordingWarning",
    "Records",
    "Restarted",
    "Side",
    "Source",
    "Stale",
    "SuperBook",
    "TickwireError",
    "Touch",
    "TradingStatus",
    "Update",
    "WriterDead",
    "__version__",
    "backtest",
    "counter_table",
    "from_decimal",
    "open",
    "to_decimal",
    "to_float",
]
