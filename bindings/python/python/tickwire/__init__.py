"""Reads the books, consolidated books and events that the Tickwire feed handler keeps in shared memory.

>>> import tickwire
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
from ._types import (
    BUCKET,
    EVENT,
    LEVEL,
    PRICE_SCALE,
    SHARE,
    UPDATE,
    BookState,
    EventKind,
    Health,
    Missed,
    NotFound,
    NotRunning,
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
    "PRICE_SCALE",
    "SHARE",
    "UPDATE",
    "Book",
    "BookState",
    "CounterInfo",
    "Event",
    "EventKind",
    "Events",
    "Feed",
    "Health",
    "Histogram",
    "Kind",
    "Missed",
    "National",
    "NotFound",
    "NotRunning",
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
    "counter_table",
    "from_decimal",
    "to_decimal",
    "to_float",
]
