# %% [markdown]
# # Books and events of a running feed handler
#
# Run it cell by cell in an editor that knows `# %%` (or as a notebook, with jupytext), or whole: `python books.py`. It reads
# the feed handler of the folder that `TICKWIRE_FOLDER` names, by default XDG_RUNTIME_DIR/tickwire or /run/tickwire.

# %%
import numpy as np
import tickwire
from tickwire import Missed, to_decimal, to_float

feed = tickwire.Feed()
print(feed, feed.health.value)
for source in feed.sources():
    print(f"{source.name:>12} {source.state.name.lower():>9} {source.packets:>12,} packets {source.books:>6} books")

# %% [markdown]
# ## A book
# Prices are integers in units of 1e-9: exact, and fast to compare. `to_decimal` and `to_float` turn them into currency units.

# %%
symbol, source_name = feed.books()[-2 if len(feed.books()) > 1 else -1]
book = feed.book(symbol, source_name)
print(book.symbol, "on", book.source, book.state.name, "volume", book.volume)
for level in book.bids[:3]:
    print("bid", to_decimal(level["price"]), "x", level["qty"])
for level in book.asks[:3]:
    print("ask", to_decimal(level["price"]), "x", level["qty"])

# %% [markdown]
# Arrays are numpy's: the price at which a given quantity is had, in three lines.

# %%
wanted = 500
depth = np.cumsum(book.asks["qty"])
if len(depth) and depth[-1] >= wanted:
    print(wanted, "are had up to", to_float(int(book.asks["price"][np.searchsorted(depth, wanted)])))

# %% [markdown]
# ## The consolidated book: all feeds merged

# %%
for symbol in feed.super_symbols()[:1]:
    merged = feed.super_book(symbol)
    print(merged, merged.touch.name.lower())
    for share in merged.bids[:5]:
        print("bid", to_decimal(share["price"]), "x", share["qty"], "on feed", share["feed"])
    if merged.national_bid is not None:
        print("national best bid", to_decimal(merged.national_bid.price), "ours less that", to_decimal(merged.national_bid.difference))

# %% [markdown]
# ## Events as they come
# The loop ends when nothing comes for a tenth of a second, or after ten records. A reader that was too slow learns what it missed.

# %%
for number, record in enumerate(feed.events(start="oldest", timeout=0.1)):
    if isinstance(record, Missed):
        print("missed", record.count)
    else:
        print(record)
    if number == 9:
        break

# %% [markdown]
# ## Many events at once
# One call, one array: what is needed to keep up with a full feed, or to look at what happened.

# %%
events = feed.events_array(100_000)
print(len(events), "records,", len(np.unique(events["instrument"])), "instruments")
for kind, count in zip(*np.unique(events["kind"], return_counts=True)):
    print(f"{tickwire.EventKind(int(kind)).name:>12} {count}")

# %% [markdown]
# ## Latency and counters

# %%
latency = feed.latency()
print("packet in memory to book visible:", latency)
print({name: value for name, value in feed.counters().items() if value})

# %%
feed.close()
