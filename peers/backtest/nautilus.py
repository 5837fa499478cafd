"""nautilus_trader's backtest of DBN files of market by order: one line of JSON for `peers/backtest`.

    python nautilus.py [--quoting] --tick PRICE FILE...

Each file is of one instrument. Reading and converting them is not measured, only the run: processor time of this process.
"""

import argparse
import json
import time
from decimal import Decimal

import nautilus_trader
from nautilus_trader.adapters.databento.loaders import DatabentoDataLoader
from nautilus_trader.backtest.engine import BacktestEngine
from nautilus_trader.backtest.engine import BacktestEngineConfig
from nautilus_trader.config import LoggingConfig
from nautilus_trader.config import StrategyConfig
from nautilus_trader.model.currencies import USD
from nautilus_trader.model.enums import AccountType
from nautilus_trader.model.enums import AssetClass
from nautilus_trader.model.enums import BookType
from nautilus_trader.model.enums import OmsType
from nautilus_trader.model.enums import OrderSide
from nautilus_trader.model.identifiers import InstrumentId
from nautilus_trader.model.identifiers import Symbol
from nautilus_trader.model.identifiers import Venue
from nautilus_trader.model.instruments import FuturesContract
from nautilus_trader.model.objects import Money
from nautilus_trader.model.objects import Price
from nautilus_trader.model.objects import Quantity
from nautilus_trader.trading.strategy import Strategy

EVERY_NS = 100_000_000


def id_of(number):
    return InstrumentId.from_str(f"I{number}.GLBX")


class QuoterConfig(StrategyConfig, frozen=True):
    quotes: bool = False
    instruments: int = 1


class Quoter(Strategy):
    """Listens; quotes a bid and an offer of one of the first instrument every 100 ms if it is to."""

    def __init__(self, config):
        super().__init__(config)
        self.changes = 0
        self.requests = 0
        self.rejects = 0
        self.open = {OrderSide.BUY: None, OrderSide.SELL: None}

    def on_start(self):
        for number in range(1, self.config.instruments + 1):
            self.subscribe_order_book_deltas(id_of(number), book_type=BookType.L3_MBO)
        if self.config.quotes:
            start = self.clock.timestamp_ns()
            self.clock.set_timer_ns("quote", EVERY_NS, start + EVERY_NS, 0, self.quote)

    def on_order_book_deltas(self, deltas):
        self.changes += 1

    def quote(self, _):
        book = self.cache.order_book(id_of(1))
        bid, ask = book.best_bid_price(), book.best_ask_price()
        for side, price in ((OrderSide.BUY, bid), (OrderSide.SELL, ask)):
            if price is None:
                continue
            order = self.open[side]
            self.requests += 1
            if order is not None and order.is_open:
                if order.price != price and not order.is_pending_update:
                    self.modify_order(order, price=price)
                continue
            if order is not None and not order.is_closed:
                continue
            order = self.order_factory.limit(id_of(1), side, Quantity.from_int(1), price)
            self.open[side] = order
            self.submit_order(order)

    def on_order_rejected(self, _):
        self.rejects += 1


def instrument(number, tick):
    return FuturesContract(
        instrument_id=id_of(number),
        raw_symbol=Symbol(f"I{number}"),
        asset_class=AssetClass.INDEX,
        currency=USD,
        price_precision=2,
        price_increment=Price.from_str(tick),
        multiplier=Quantity.from_int(50),
        lot_size=Quantity.from_int(1),
        underlying="I",
        activation_ns=0,
        expiration_ns=4_000_000_000_000_000_000,
        ts_event=0,
        ts_init=0,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quoting", action="store_true")
    parser.add_argument("--tick", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    engine = BacktestEngine(
        config=BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True), run_analysis=False),
    )
    engine.add_venue(
        venue=Venue("GLBX"),
        oms_type=OmsType.NETTING,
        account_type=AccountType.MARGIN,
        base_currency=USD,
        starting_balances=[Money(1_000_000_000, USD)],
        book_type=BookType.L3_MBO,
        default_leverage=Decimal(1),
    )
    events = 0
    loader = DatabentoDataLoader()
    for number, path in enumerate(args.files, 1):
        engine.add_instrument(instrument(number, args.tick))
        data = loader.from_dbn_file(path, instrument_id=id_of(number), price_precision=2, as_legacy_cython=True)
        events += len(data)
        if data:
            engine.add_data(data, sort=False)
    engine.sort_data()
    strategy = Quoter(QuoterConfig(quotes=args.quoting, instruments=len(args.files)))
    engine.add_strategy(strategy)
    begun = time.process_time_ns()
    engine.run()
    spent = time.process_time_ns() - begun
    books = []
    for number in range(1, len(args.files) + 1):
        book = engine.cache.order_book(id_of(number))
        books.append(
            {
                name: [[str(level.price), int(level.size())] for level in side()]
                for name, side in (("bids", book.bids), ("asks", book.asks))
            }
        )
    print(
        json.dumps(
            {
                "version": nautilus_trader.__version__,
                "events": events,
                "cpu_ns": spent,
                "changes": strategy.changes,
                "requests": strategy.requests,
                "rejects": strategy.rejects,
                "books": books,
            },
        ),
    )


main()
