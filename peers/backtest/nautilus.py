"""nautilus_trader's backtest of a DBN file of market by order: one line of JSON for `peers/backtest`.

    python nautilus.py FILE [--quoting] [--limit RECORDS]

Reading and converting the file is not measured, only the run: processor time of this process.
"""

import json
import sys
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

ID = InstrumentId.from_str("ESH4.GLBX")
EVERY_NS = 100_000_000


class QuoterConfig(StrategyConfig, frozen=True):
    quotes: bool = False


class Quoter(Strategy):
    """Listens; quotes a bid and an offer of one every 100 ms if it is to."""

    def __init__(self, config):
        super().__init__(config)
        self.changes = 0
        self.requests = 0
        self.rejects = 0
        self.open = {OrderSide.BUY: None, OrderSide.SELL: None}

    def on_start(self):
        self.subscribe_order_book_deltas(ID, book_type=BookType.L3_MBO)
        self.instrument = self.cache.instrument(ID)
        if self.config.quotes:
            start = self.clock.timestamp_ns()
            self.clock.set_timer_ns("quote", EVERY_NS, start + EVERY_NS, 0, self.quote)

    def on_order_book_deltas(self, deltas):
        self.changes += 1

    def quote(self, _):
        book = self.cache.order_book(ID)
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
            order = self.order_factory.limit(ID, side, Quantity.from_int(1), price)
            self.open[side] = order
            self.submit_order(order)

    def on_order_rejected(self, _):
        self.rejects += 1


def main():
    path = sys.argv[1]
    quotes = "--quoting" in sys.argv
    limit = int(sys.argv[sys.argv.index("--limit") + 1]) if "--limit" in sys.argv else None
    data = DatabentoDataLoader().from_dbn_file(path, instrument_id=ID, price_precision=2, as_legacy_cython=True)[:limit]
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
    engine.add_instrument(
        FuturesContract(
            instrument_id=ID,
            raw_symbol=Symbol("ESH4"),
            asset_class=AssetClass.INDEX,
            currency=USD,
            price_precision=2,
            price_increment=Price.from_str("0.25"),
            multiplier=Quantity.from_int(50),
            lot_size=Quantity.from_int(1),
            underlying="ES",
            activation_ns=0,
            expiration_ns=4_000_000_000_000_000_000,
            ts_event=0,
            ts_init=0,
        ),
    )
    strategy = Quoter(QuoterConfig(quotes=quotes))
    engine.add_strategy(strategy)
    engine.add_data(data)
    begun = time.process_time_ns()
    engine.run()
    spent = time.process_time_ns() - begun
    book = engine.cache.order_book(ID)
    levels = {
        name: [[str(level.price), int(level.size())] for level in side()]
        for name, side in (("bids", book.bids), ("asks", book.asks))
    }
    print(
        json.dumps(
            {
                "version": nautilus_trader.__version__,
                "events": len(data),
                "cpu_ns": spent,
                "changes": strategy.changes,
                "requests": strategy.requests,
                "rejects": strategy.rejects,
                **levels,
            },
        ),
    )


main()
