# %% [markdown]
# # The book of a day
# A capture becomes books, trades and bars without a feed handler: `tickwire.open` decodes it in this process. The capture here is of
# the simulated exchange (`tickwire exchange -c examples/nasdaq.toml --write-capture day.pcap`); any other is opened the same way.

# %%
import os
from decimal import Decimal

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import tickwire

day = tickwire.open(os.environ.get("TICKWIRE_CAPTURE", "day.pcap"), symbols=["AAPL"])
trades = day.to_polars("trades")
trades.select("ts_event", "side", "price", "size", "sequence").head()

# %% [markdown]
# Prices are decimals: sums and differences are exact.

# %%
turnover = sum((price * size for price, size in zip(trades["price"], trades["size"])), Decimal(0))
print(f"{len(trades)} trades of {trades['size'].sum()} shares for {turnover:,}")
assert turnover == (trades["price"] * trades["size"].cast(pl.Decimal(18, 0))).sum()

# %% [markdown]
# Every state of the book, ten levels of a side, one after the other. Where they come from does not matter to what is done with them:
# `tickwire.Feed` gives the same objects of a feed handler that runs.

# %%
books = [book for book in day.books(levels=10) if book.is_live and book.best_bid and book.best_ask]
begin = books[0].recv_ts
seconds = np.array([book.recv_ts - begin for book in books]) / 1e9
bid, ask = (tickwire.to_float(np.array([side[0] for side in sides])) for sides in zip(*((b.best_bid, b.best_ask) for b in books)))
print(f"{len(books)} states in {seconds[-1]:.1f} s; spread between {np.min(ask - bid):.2f} and {np.max(ask - bid):.2f}")

# %%
figure, axis = plt.subplots(figsize=(9, 4))
axis.step(seconds, bid, where="post", label="best bid", color="#1f6f8b", linewidth=1)
axis.step(seconds, ask, where="post", label="best offer", color="#c0392b", linewidth=1)
times = (trades["ts_event"].to_numpy().astype(np.int64) - begin) / 1e9
axis.scatter(times, trades["price"].cast(pl.Float64).to_numpy(), s=6, color="#333333", label="trades", zorder=3)
axis.set(xlabel="seconds", ylabel="price", title="AAPL: best prices and trades")
axis.legend(loc="upper left", frameon=False)
plt.show()

# %% [markdown]
# The depth of the book over time: quantity at each price.

# %%
prices = np.unique(np.concatenate([np.concatenate([book.bids["price"], book.asks["price"]]) for book in books]))
tick = np.min(np.diff(prices))
rows = np.arange(prices[0], prices[-1] + tick, tick)
edges = np.linspace(0, seconds[-1], 241)
depth = np.zeros((len(rows), len(edges) - 1))
for column, at in enumerate(np.searchsorted(seconds, edges[1:], side="right") - 1):
    book = books[max(at, 0)]
    for side, sign in ((book.bids, 1), (book.asks, -1)):
        depth[np.searchsorted(rows, side["price"]), column] = sign * side["qty"].astype(float)
figure, axis = plt.subplots(figsize=(9, 4))
most = np.quantile(np.abs(depth[depth != 0]), 0.98)
heights = tickwire.to_float(np.append(rows, rows[-1] + tick) - tick / 2)
picture = axis.pcolormesh(edges, heights, depth, cmap="RdBu", vmin=-most, vmax=most)
figure.colorbar(picture, label="shares bid (blue), offered (red)")
axis.set(xlabel="seconds", ylabel="price", title="AAPL: ten levels of each side", ylim=(np.min(bid) - 0.1, np.max(ask) + 0.1))
plt.show()

# %% [markdown]
# Bars, and what the table says of itself.

# %%
bars = day.to_polars("ohlcv-1s")
bars.select("ts_event", "open", "high", "low", "close", "volume").head()
