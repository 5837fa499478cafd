"""Backtests against the program's own, and the simulated exchange as a fixture."""

from __future__ import annotations

import csv
import datetime
import json
import os
import socket
import subprocess
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import tickwire
from tickwire.testing import Exchange, exchange

__all__ = ["exchange"]

TICKWIRE, CAPTURE = (os.environ.get(f"TICKWIRE_{name}", "") for name in ("PROGRAM", "CAPTURE"))
CONFIG = Path(__file__).parents[3] / "examples/strategies/backtest.toml"
STRATEGY = Path(__file__).with_name("taker.tw")


def test_a_backtest_is_the_program_s(tmp_path: Path) -> None:
    fills = tmp_path / "fills.csv"
    words = [TICKWIRE, "strategy", "backtest", str(STRATEGY), "-c", str(CONFIG), CAPTURE, "--json", "--fills", str(fills)]
    said = json.loads(subprocess.run(words, check=False, capture_output=True, text=True).stdout)
    found = tickwire.backtest(CONFIG, CAPTURE, STRATEGY)
    assert found.events == said["events"] and f"{found.pnl:.2f}" == said["gain"]
    with fills.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found.fills) > 0
    assert [int(row["time_ns"]) for row in rows] == found.fills["time"].astype(np.int64).tolist()
    assert [Decimal(row["price"]) for row in rows] == [tickwire.to_decimal(price) for price in found.fills["price"].tolist()]
    assert [row["side"] for row in rows] == found.fills["side"].tolist()

    orders = found.orders.to_polars()
    assert len(orders) == said["orders"] + said["replacements"]
    # What orders say was filled is what fills say.
    assert sum(int(row["qty"]) for row in rows) == orders.filter(orders["state"] != "replaced")["filled"].sum()
    assert orders.filter(orders["state"] == "new")["ended"].null_count() == len(orders.filter(orders["state"] == "new"))
    held = found.positions.to_polars()
    assert held["bought"].sum() + held["sold"].sum() == sum(int(row["qty"]) for row in rows)
    assert len(found.equity) > 0 and found.equity.columns == ["time", "pnl"]
    assert "fills" in repr(found)


def test_built_in_strategies_and_parameters() -> None:
    assert "two_sided_quoter" in tickwire.STRATEGIES
    one = tickwire.backtest(CONFIG, CAPTURE, CONFIG.with_name("two_sided_quoter.tw"))
    two = tickwire.backtest(CONFIG, [CAPTURE], "two_sided_quoter")
    assert (one.hash, one.pnl) == (two.hash, two.pnl) and len(one.orders) > 0
    other = tickwire.backtest(CONFIG, CAPTURE, STRATEGY, parameters={"lot": 10})
    assert set(other.orders["qty"].tolist()) <= set(range(1, 11)) and other.hash != one.hash
    with pytest.raises(tickwire.TickwireError, match="built in are"):
        tickwire.backtest(CONFIG, CAPTURE, "no_such_strategy")
    with pytest.raises(tickwire.TickwireError, match="lots"):
        tickwire.backtest(CONFIG, CAPTURE, STRATEGY, parameters={"lots": 10})


class Fix:
    """As much of FIX 4.4 as an order needs."""

    def __init__(self, running: Exchange) -> None:
        self.there, self.here = running.comp_ids
        self.number = 0
        self.bytes = b""
        self.socket = socket.create_connection((running.host, running.order_entry), timeout=20)

    def send(self, kind: str, *fields: tuple[int, str]) -> None:
        self.number += 1
        now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H:%M:%S}"
        head = [(35, kind), (49, self.here), (56, self.there), (34, str(self.number)), (52, now)]
        body = "".join(f"{tag}={value}\x01" for tag, value in [*head, *fields])
        text = f"8=FIX.4.4\x019={len(body)}\x01{body}"
        self.socket.sendall(f"{text}10={sum(text.encode()) % 256:03}\x01".encode())

    def read(self, kind: str) -> dict[str, str]:
        """The next message of a type."""
        while True:
            while b"\x0110=" not in self.bytes or not self.bytes.endswith(b"\x01"):
                more = self.socket.recv(4096)
                assert more, f"the exchange hung up: {self.bytes!r}"
                self.bytes += more
            end = self.bytes.index(b"\x01", self.bytes.index(b"\x0110=") + 1) + 1
            message, self.bytes = self.bytes[:end], self.bytes[end:]
            fields = dict(field.split("=", 1) for field in message.decode().rstrip("\x01").split("\x01"))
            if fields["35"] == kind:
                return fields


def test_an_order_at_the_exchange_of_the_fixture(exchange: Exchange) -> None:
    assert exchange.is_running
    client = Fix(exchange)
    client.send("A", (98, "0"), (108, "10"))
    assert client.read("A")["49"] == client.there
    # The fixture's market is open: the first order is taken.
    order = [(11, "1"), (55, "AAPL"), (54, "1"), (60, "20260105-14:30:00.000"), (38, "1"), (40, "2"), (44, "0.01"), (59, "0")]
    client.send("D", *order)
    report = client.read("8")
    assert (report["11"], report["150"]) == ("1", "0"), report
    results = exchange.stop()
    assert results is not None and len(results["orders"]) == 1
    assert not exchange.is_running and exchange.stop() is results


def test_market_data_of_the_exchange_is_received() -> None:
    with Exchange(rate=5000) as running:
        ((group, port), *_) = next(iter(running.groups.values()))
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((group, port))
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton("127.0.0.1"))
        listener.settimeout(20)
        assert len(listener.recv(2048)) > 20
        assert "requests" in running.servers and f":{port}" in running.toml
    assert running.results is not None and running.results["messages"] > 0


def test_two_exchanges_at_once_and_what_is_wrong() -> None:
    with Exchange() as one, Exchange("pitch") as two:
        assert one.order_entry != two.order_entry and one.groups != two.groups
    with pytest.raises(ValueError, match="itch50"):
        Exchange("nonsense")
    with pytest.raises(tickwire.TickwireError, match="nowhere"):
        Exchange(config="nowhere.toml")
