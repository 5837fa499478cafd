"""All that the package can read, as text: what `region dump` prints of the same region."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import tickwire
from tickwire import Book, Feed, Histogram, Missed, SuperBook


def index(number: int | None) -> int:
    return -1 if number is None else number


def histogram(h: Histogram) -> str:
    return f"{h.count} {h.sum} {h.min} {h.max} {h.quantile(0.5)} {h.quantile(0.99)} {h.quantile(0.999)}"


def sources(feed: Feed) -> Iterator[str]:
    """Without the numbers of histograms, which are no business of a program in Python."""
    for s in feed.sources():
        yield f"source {s.number} [{s.name}] [{s.feed}] [{s.protocol}] {s.feed_number} {s.venue} {index(s.ring)} {s.state.value}"
        yield f"{s.next_seq} {s.last_packet} {s.packets} {s.updates} {s.books} {s.refused}"
        yield from (f"counter {name} {value}" for name, value in feed.counters(s.name).items() if value > 0)
        for kind in feed.kinds(s.name):
            yield f"kind {kind.type} {kind.seen} {kind.filtered} {histogram(kind.latency) if kind.latency else 'none'}"
        yield f"latency {histogram(feed.latency(s.name))}"
        yield f"super latency {histogram(feed.latency(s.name, super_book=True))}"


def book(slot: int, source: int, b: Book) -> Iterator[str]:
    auction = ord(b.auction) if b.auction else 0
    side_of = 2 if b.imbalance_side is None else b.imbalance_side.value
    yield (
        f"book {slot} {b.symbol} {source} {b.instrument} {b.state.value} {b.status.value} {b.writes} {b.seq} "
        f"{b.venue_ts} {b.recv_ts} {b.publish_ts} {b.last_price} {b.last_qty} {b.last_ts} {b.volume} {b.trades} "
        f"{auction} {b.reference} {b.near} {b.far} {b.paired} {b.imbalance} {side_of}"
    )
    for side, levels in enumerate((b.bids, b.asks)):
        yield f"side {side} {b.levels[side]} {b.qty[side]} {b.orders[side]}"
        yield from (f"level {price} {qty} {orders}" for price, qty, orders in levels.tolist())


def super_book(slot: int, b: SuperBook) -> Iterator[str]:
    yield (
        f"super {slot} {b.symbol} {b.writes} {b.feed_mask} {b.stale_mask} {b.touch.value} {b.publish_ts} {b.recv_ts} "
        f"{b.national_venue_ts} {b.national_recv_ts} {b.last_price} {b.last_qty} {b.last_ts} {b.volume} {b.trades}"
    )
    best = (b.best_bid or (0, 0), b.best_ask or (0, 0))
    for side, (shares, national) in enumerate(((b.bids, b.national_bid), (b.asks, b.national_ask))):
        line = f"side {side} {best[side][0]} {best[side][1]} {b.at_best[side]} {b.shares[side]} {b.levels[side]} {b.qty[side]}"
        if national is None:
            yield f"{line} 0 0 0 0 0"
        else:
            participant = ord(national.participant) if national.participant else 0
            since = national.different_since or 0
            yield f"{line} {national.price} {national.qty} {participant} {national.difference} {since}"
        yield from (f"share {price} {qty} {by} {orders}" for price, qty, by, orders in shares.tolist())


def books(feed: Feed) -> Iterator[str]:
    numbers = {source.name: source.number for source in feed.sources()}
    for slot, (symbol, source) in enumerate(feed.books()):
        yield from book(slot, numbers[source], feed.book(symbol, source))
    for slot, symbol in enumerate(feed.super_symbols()):
        yield from super_book(slot, feed.super_book(symbol))


def records(feed: Feed) -> Iterator[str]:
    """One ring after another, from the oldest record on, without the numbers of records."""
    venues = {name: number for number, name in enumerate(VENUES, 1)}
    for ring in range(feed.rings):
        for r in feed.events(ring, start="oldest", timeout=0):
            if isinstance(r, Missed):
                yield f"missed {r.count}"
            elif isinstance(r, tickwire.Event):
                code = int.from_bytes(r.code, "little")
                yield (
                    f"event {ring} {r.source} {r.seq} {r.venue_ts} {r.recv_ts} {r.instrument} {venues[r.venue]} {r.kind.value} "
                    f"{r.side.value} {r.status.value} {r.order_id} {r.price} {r.qty} {r.ref_id} {r.ask_price} {r.ask_qty} "
                    f"{r.near_price} {r.far_price} {r.imbalance_qty} {r.order_count} {r.flags} {code}"
                )
            else:
                bid, ask = r.bid or (0, 0), r.ask or (0, 0)
                yield (
                    f"update {ring} {r.source} {r.seq} {r.venue_ts} {r.recv_ts} {r.instrument} {venues[r.venue]} {r.state.value} "
                    f"{r.changed} {bid[0]} {ask[0]} {bid[1]} {ask[1]}"
                )


VENUES = (
    "nasdaq", "nasdaq-texas", "psx", "bzx", "byx", "edga", "edgx", "nyse", "arca", "american", "national", "nyse-texas",
    "cqs", "uqdf", "cme", "moex",
)


def comparable(dump: str) -> tuple[list[str], list[str]]:
    """What `region dump` wrote of books and of records, without what this dump does not know."""
    lines = dump.splitlines()
    kinds = ("book", "side", "level", "super", "share")
    of_books = [line for line in lines if line.split(" ", 1)[0] in kinds]
    of_records = []
    for line in lines:
        words = line.split(" ")
        if words[0] in ("event", "update"):
            of_records.append(" ".join(words[:2] + words[3:]))
        elif words[0] == "missed":
            of_records.append(line)
    return of_books, of_records


if __name__ == "__main__":
    with Feed(sys.argv[1], post_mortem=True) as opened:
        for line in [*sources(opened), *books(opened), *records(opened)]:
            print(line)
