//! The simplest strategy that exercises the whole path: when the best offer changes, buy one lot at that
//! price.

use crate::NewOrder;
use tickwire_market::{BookState, BookUpdate, Cause, InstrumentId, Price, Qty, Side};

/// Buys one lot whenever the price of the best offer of its instrument changes, or an offer appears, while
/// the book is live. A change of the offered quantity alone triggers nothing.
#[derive(Clone, Debug)]
pub struct BestOfferTaker {
    instrument: InstrumentId,
    lot: Qty,
    /// The best offer when the book was last seen live.
    seen: Option<Price>,
}

impl BestOfferTaker {
    /// A taker of `lot` at a time. [`InstrumentId::WHOLE_FEED`] watches nothing: see
    /// [`BestOfferTaker::watch`].
    pub fn new(instrument: InstrumentId, lot: Qty) -> BestOfferTaker {
        BestOfferTaker {
            instrument,
            lot,
            seen: None,
        }
    }

    /// Turns to another instrument: its number is known only once the feed has defined it.
    pub fn watch(&mut self, instrument: InstrumentId) {
        (self.instrument, self.seen) = (instrument, None);
    }

    /// What is watched.
    #[inline]
    pub fn instrument(&self) -> InstrumentId {
        self.instrument
    }

    /// Whether an update concerns this strategy.
    #[inline]
    pub fn watches(&self, instrument: InstrumentId) -> bool {
        instrument == self.instrument && instrument != InstrumentId::WHOLE_FEED
    }

    /// The order to send, if the best offer changed. What is shown by a book that is not live is neither
    /// traded nor remembered: the first live view after a gap counts as a change if it differs from the last
    /// live one before.
    #[inline]
    pub fn on_update(&mut self, update: &BookUpdate) -> Option<NewOrder> {
        if !self.watches(update.instrument) || update.state != BookState::Live {
            return None;
        }
        let offer = update.best(Side::Ask).map(|(price, _)| price);
        if offer == self.seen {
            return None;
        }
        self.seen = offer;
        let cause = Cause {
            venue: update.venue,
            seq: update.seq,
            recv_ts: update.recv_ts,
        };
        offer.map(|price| NewOrder {
            instrument: self.instrument,
            side: Side::Bid,
            price,
            qty: self.lot,
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::{Nanos, SeqNo, Venue, Volume};

    const ID: InstrumentId = InstrumentId(5);

    fn offer(price_4dp: u32, qty: u64) -> BookUpdate {
        BookUpdate {
            seq: SeqNo(42),
            recv_ts: Nanos(7),
            instrument: ID,
            venue: Venue::Nasdaq,
            state: BookState::Live,
            price: [Price::ZERO, Price::from_4dp(price_4dp)],
            qty: [Volume(0), Volume(qty)],
            ..BookUpdate::default()
        }
    }

    fn bought(taker: &mut BestOfferTaker, update: &BookUpdate) -> Option<Price> {
        taker.on_update(update).map(|order| order.price)
    }

    #[test]
    fn a_new_price_or_a_new_offer_is_bought_once_with_its_cause() {
        let mut taker = BestOfferTaker::new(ID, Qty(100));
        let order = taker.on_update(&offer(10_0000, 300)).expect("an offer appeared");
        assert_eq!(
            (order.side, order.qty, order.price),
            (Side::Bid, Qty(100), Price::from_4dp(10_0000))
        );
        assert_eq!(
            order.cause,
            Cause {
                venue: Venue::Nasdaq,
                seq: SeqNo(42),
                recv_ts: Nanos(7)
            }
        );
        assert_eq!(
            bought(&mut taker, &offer(10_0000, 200)),
            None,
            "only the quantity changed"
        );
        assert_eq!(
            bought(&mut taker, &offer(10_0100, 200)),
            Some(Price::from_4dp(10_0100))
        );
        assert_eq!(bought(&mut taker, &offer(10_0100, 0)), None, "the offer is gone");
        assert_eq!(
            bought(&mut taker, &offer(10_0100, 1)),
            Some(Price::from_4dp(10_0100)),
            "it is back"
        );
    }

    #[test]
    fn a_stale_book_triggers_nothing_and_is_not_remembered() {
        let mut taker = BestOfferTaker::new(ID, Qty(1));
        taker.on_update(&offer(10_0000, 1));
        for state in [BookState::Stale, BookState::Building] {
            assert_eq!(
                bought(
                    &mut taker,
                    &BookUpdate {
                        state,
                        ..offer(11_0000, 1)
                    }
                ),
                None
            );
        }
        assert_eq!(
            bought(&mut taker, &offer(10_0000, 1)),
            None,
            "whole again, unchanged"
        );
        assert_eq!(
            bought(&mut taker, &offer(11_0000, 1)),
            Some(Price::from_4dp(11_0000))
        );
    }

    #[test]
    fn other_instruments_and_the_whole_feed_are_not_watched() {
        let mut taker = BestOfferTaker::new(InstrumentId::WHOLE_FEED, Qty(1));
        assert_eq!(bought(&mut taker, &offer(10_0000, 1)), None);
        assert_eq!(
            bought(
                &mut taker,
                &BookUpdate {
                    instrument: InstrumentId(0),
                    ..offer(10_0000, 1)
                }
            ),
            None
        );
        taker.watch(ID);
        assert!(bought(&mut taker, &offer(10_0000, 1)).is_some());
    }
}
