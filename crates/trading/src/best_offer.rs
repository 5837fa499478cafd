//! The simplest rule that exercises the whole path: when the best offer changes, buy one lot at that price.

use crate::strategy::{BookChange, Context, Strategy, Subscription, Ticket};
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{Instrument, InstrumentId, Price, Qty, Side, Symbol, TimeInForce, UpdateFlags};

/// Buys one lot whenever the price of the best offer of its instrument changes, or an offer appears, while
/// the book is live. A change of the offered quantity alone triggers nothing.
///
/// What is shown by a book that is not live is neither traded nor remembered: the first message that changes
/// the book after a gap counts as a change if the offer differs from the last live one before it.
#[derive(Clone, Debug)]
pub struct BestOffer {
    symbol: Symbol,
    lot: Qty,
    time_in_force: TimeInForce,
    /// The first instrument of that symbol.
    instrument: InstrumentId,
    /// The best offer when the book was last seen live.
    seen: Option<Price>,
}

impl BestOffer {
    /// Buys `lot` at a time of the instrument with this symbol, on the first feed that names it.
    pub fn new(symbol: Symbol, lot: Qty, time_in_force: TimeInForce) -> BestOffer {
        BestOffer {
            symbol,
            lot,
            time_in_force,
            instrument: InstrumentId::WHOLE_FEED,
            seen: None,
        }
    }
}

impl Strategy for BestOffer {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::Symbol(self.symbol)]
    }

    fn on_instrument(&mut self, _: &mut Context<'_>, instrument: &Instrument) {
        if self.instrument == InstrumentId::WHOLE_FEED {
            self.instrument = instrument.id;
        }
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if !change.is_live() || change.instrument != self.instrument {
            return;
        }
        let offer = change.after.best(Side::Ask).map(|(price, _)| price);
        // The end of a gap is no message that an order could name as its cause: the next one is waited for.
        if offer == self.seen || change.changed == UpdateFlags::STATE {
            return;
        }
        self.seen = offer;
        if let Some(price) = offer {
            let ticket = Ticket::limit(Side::Bid, change.instrument, self.lot.0, price);
            // What a check stops is counted under its name.
            let _ = ctx.submit(ticket.lasting(self.time_in_force));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RiskConfig;
    use crate::strategy::{Conductor, ConductorConfig, Markets, OrderPort, Outcome, Rejected};
    use tickwire_book::{Books, BooksConfig};
    use tickwire_market::{
        BookState, BookUpdate, Cause, EventKind, MarketEvent, Nanos, OrderIntent, SeqNo, Venue, Volume,
    };

    const ID: InstrumentId = InstrumentId(5);

    struct Sent(Vec<OrderIntent>);

    impl OrderPort for Sent {
        fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
            self.0.push(*request);
            Ok(())
        }
    }

    struct Rig {
        conductor: Conductor<BestOffer>,
        books: Vec<Books>,
        port: Sent,
        seq: u64,
    }

    fn rig() -> Rig {
        let symbol = Symbol::new(b"AAPL").unwrap();
        let rule = BestOffer::new(symbol, Qty(100), TimeInForce::Day);
        let config = ConductorConfig {
            instrument_bits: 3,
            max_orders: 16,
            risk: RiskConfig {
                price_band_bp: 10_000,
                ..RiskConfig::default()
            },
            ..ConductorConfig::default()
        };
        let books = Books::new(BooksConfig {
            instruments: 8,
            orders: 8,
            levels: 8,
            initial: BookState::Live,
            ..BooksConfig::default()
        });
        let mut rig = Rig {
            conductor: Conductor::new(rule, &config),
            books: vec![books],
            port: Sent(Vec::new()),
            seq: 0,
        };
        let instrument = Instrument {
            id: ID,
            symbol,
            ..Instrument::default()
        };
        let markets = Markets::new(&rig.books, 3);
        let (conductor, port) = (&mut rig.conductor, &mut rig.port);
        conductor.define(Nanos(1), 0, &instrument, None, markets, port);
        conductor.risk_mut().set_reference(ID, Price::from_4dp(10_0000));
        rig
    }

    fn offer(price_4dp: u32, qty: u64) -> BookUpdate {
        BookUpdate {
            instrument: ID,
            venue: Venue::Nasdaq,
            state: BookState::Live,
            changed: UpdateFlags::BEST_ASK,
            price: [Price::ZERO, Price::from_4dp(price_4dp)],
            qty: [Volume(0), Volume(qty)],
            ..BookUpdate::default()
        }
    }

    impl Rig {
        fn bought(&mut self, update: BookUpdate) -> Option<Price> {
            self.seq += 1;
            let seq = SeqNo(self.seq);
            let event = MarketEvent {
                kind: EventKind::Level,
                instrument: ID,
                recv_ts: Nanos(7),
                seq,
                ..MarketEvent::default()
            };
            let applied = Outcome::Update(BookUpdate { seq, ..update }, None);
            let markets = Markets::new(&self.books, 3);
            let before = self.port.0.len();
            self.conductor
                .on_event(0, &event, &applied, false, markets, &mut self.port);
            assert!(self.port.0.len() <= before + 1, "one order for a change at most");
            match self.port.0.get(before) {
                Some(OrderIntent::New {
                    side,
                    qty,
                    price,
                    time_in_force,
                    cause,
                    ..
                }) => {
                    assert_eq!(
                        (*side, *qty, *time_in_force),
                        (Side::Bid, Qty(100), TimeInForce::Day)
                    );
                    let expected = Cause {
                        venue: Venue::Nasdaq,
                        seq,
                        recv_ts: Nanos(7),
                    };
                    assert_eq!(*cause, expected);
                    Some(*price)
                }
                _ => None,
            }
        }
    }

    #[test]
    fn a_new_price_or_a_new_offer_is_bought_once_with_its_cause() {
        let mut rig = rig();
        assert_eq!(rig.bought(offer(10_0000, 300)), Some(Price::from_4dp(10_0000)));
        assert_eq!(rig.bought(offer(10_0000, 200)), None, "only the quantity changed");
        assert_eq!(rig.bought(offer(10_0100, 200)), Some(Price::from_4dp(10_0100)));
        assert_eq!(rig.bought(offer(10_0100, 0)), None, "the offer is gone");
        assert_eq!(
            rig.bought(offer(10_0100, 1)),
            Some(Price::from_4dp(10_0100)),
            "it is back"
        );
    }

    #[test]
    fn a_stale_book_triggers_nothing_and_is_not_remembered() {
        let mut rig = rig();
        rig.bought(offer(10_0000, 1));
        for state in [BookState::Stale, BookState::Building] {
            let shown = BookUpdate {
                state,
                ..offer(11_0000, 1)
            };
            assert_eq!(rig.bought(shown), None);
        }
        assert_eq!(rig.bought(offer(10_0000, 1)), None, "whole again, unchanged");
        let recovered = BookUpdate {
            changed: UpdateFlags::STATE,
            ..offer(11_0000, 1)
        };
        assert_eq!(rig.bought(recovered), None, "no message of the book's");
        assert_eq!(rig.bought(offer(11_0000, 1)), Some(Price::from_4dp(11_0000)));
    }

    #[test]
    fn a_second_instrument_of_its_symbol_is_not_traded() {
        let mut rig = rig();
        let other = Instrument {
            id: InstrumentId(6),
            symbol: Symbol::new(b"AAPL").unwrap(),
            ..Instrument::default()
        };
        let markets = Markets::new(&rig.books, 3);
        let (conductor, port) = (&mut rig.conductor, &mut rig.port);
        conductor.define(Nanos(1), 0, &other, None, markets, port);
        assert_eq!(rig.conductor.strategy().instrument, ID);
    }
}
