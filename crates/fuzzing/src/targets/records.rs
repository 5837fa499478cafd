//! Files of records and of lines: Databento's DBN, LOBSTER.

use tickwire_book::{Books, BooksConfig, Depth, OrderView};
use tickwire_market::{EventKind, Instrument, MarketEvent, OrderId, PointValue};
use tickwire_replay::played::Follow;
use tickwire_replay::replay::play_records;

/// Books of orders, as a backtest has them.
struct Held(Books, bool);

impl Follow for Held {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        // What a line of LOBSTER executes beyond its order, the books refuse and count.
        if event.kind == EventKind::Execute && self.1 {
            let order = self.0.order(event.order_id);
            assert!(
                order.is_some_and(|order| event.qty.0 <= order.qty.0.into()),
                "{event:?} of {order:?}"
            );
        }
        self.0.apply(event);
    }

    fn defined(&mut self, instrument: &Instrument, point: Option<PointValue>) {
        assert!(!instrument.symbol.as_bytes().is_empty());
        assert!(point.is_none_or(|point| point.raw() > 0));
    }

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.0.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.0);
    }
}

/// Reading ends, or says where the damage is; a fill told at once, and the record that takes it from the book
/// later, are one execution.
pub fn records(bytes: &[u8]) {
    let sizes = BooksConfig {
        depth: Depth::ByOrder,
        instruments: 16,
        orders: 256,
        levels: 512,
        ..BooksConfig::default()
    };
    let _ = play_records(
        bytes.to_vec(),
        sizes,
        Held(Books::new(sizes), bytes.starts_with(b"DBN")),
    );
}
