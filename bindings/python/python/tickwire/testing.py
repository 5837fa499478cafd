"""The simulated exchange in the process of a test.

>>> from tickwire.testing import Exchange
>>> with Exchange() as exchange:                         # doctest: +SKIP
...     connect("127.0.0.1", exchange.order_entry)

In a file of pytest, ``pytest_plugins = ["tickwire.testing"]``, or ``from tickwire.testing import exchange``, gives the fixture
``exchange``: one on ports that were free, on loopback, that ends with the test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from typing_extensions import Self

from . import _native


_OPENING_SECONDS = 60.0
"""How long its opening may take: on a machine that others use too it is most of a second."""


class Exchange:
    """A venue in a thread: market data by multicast on loopback, order entry by FIX, a matching engine with its own order flow.

    Everything is on ports that were free. Whoever logs on is let in. ``config``: a configuration (TOML) with addresses of its own.
    It is there once its market is open and takes orders, unless that is to wait for the first logon (``exchange.start_on_logon``).
    """

    def __init__(
        self,
        feed: str = "itch50",
        *,
        config: str | os.PathLike[str] | None = None,
        symbols: int = 4,
        rate: float = 1_000,
        seconds: float = 3_600,
        seed: int = 1,
    ) -> None:
        path = None if config is None else os.fspath(config)
        self._native = _native.Exchange(feed, path, symbols=symbols, rate=rate, seconds=seconds, seed=seed)
        try:
            self._native.wait_until_open(_OPENING_SECONDS)
        except BaseException:
            self._native.stop()
            raise
        self.results: dict[str, Any] | None = None
        """What came of it, once it was stopped: messages, every order with its end."""

    @property
    def host(self) -> str:
        """Where its servers are."""
        return "127.0.0.1"

    @property
    def order_entry(self) -> int:
        """The TCP port of order entry by FIX."""
        return self._native.order_entry

    @property
    def ouch(self) -> int | None:
        """The TCP port of OUCH, None without it."""
        return self._native.ouch

    @property
    def servers(self) -> dict[str, int]:
        """Port of every server of market data (retransmission requests, snapshots) by its name."""
        return self._native.servers

    @property
    def groups(self) -> dict[str, list[tuple[str, int]]]:
        """Group and port of every line of live data, by name of the feed."""
        return self._native.groups

    @property
    def comp_ids(self) -> tuple[str, str]:
        """FIX CompIDs: the exchange's, and the trader's."""
        return self._native.comp_ids

    @property
    def toml(self) -> str:
        """The configuration with the ports that it listens on: what `tickwire trade -c` and `tickwire feed -c` need."""
        return self._native.toml

    @property
    def is_running(self) -> bool:
        """Whether its session goes on."""
        return self._native.is_running

    def stop(self) -> dict[str, Any] | None:
        """Ends it; what came of it."""
        said = self._native.stop()
        if said is not None:
            self.results = json.loads(said)
        return self.results

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


try:
    import pytest
except ImportError:  # the class alone is of use without it
    pass
else:

    @pytest.fixture
    def exchange() -> Iterator[Exchange]:
        """The simulated exchange on free ports of loopback, until the test is over."""
        with Exchange() as running:
            yield running
