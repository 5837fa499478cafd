//! Quotes at the venue: a pair of resting orders for each instrument, which the next quote takes the place of
//! as a whole.

use tickwire_book::Books;
use tickwire_market::{ClientOrderId, InstrumentId, Nanos, Side, TimeInForce};
use tickwire_trading::strategy::QuoteEntry;

use super::own::Own;
use super::{Listener, SimVenue};

/// A bit that no order's number has.
const QUOTE: u64 = 1 << 63;

/// The number of the order that a side of a quote is.
fn number(name: u64, side: Side) -> ClientOrderId {
    ClientOrderId(QUOTE | name << 1 | side as u64)
}

/// The name of the quote and its side, if an order is one.
pub(crate) fn of_quote(id: ClientOrderId) -> Option<(u64, Side)> {
    let name = (id.0 & !QUOTE) >> 1;
    (id.0 & QUOTE != 0).then_some((name, Side::BOTH[(id.0 & 1) as usize]))
}

impl SimVenue {
    /// A quote reaches the matching engine. A side with the same price and no more quantity keeps its place;
    /// a side without quantity is taken away.
    pub(crate) fn quote(
        &mut self,
        at: Nanos,
        entry: &QuoteEntry,
        (books, local): (&Books, InstrumentId),
        tell: &mut impl Listener,
    ) {
        let instrument = entry.quote.instrument;
        let mut is_kept = [false; 2];
        for (side, (price, qty)) in Side::BOTH.into_iter().zip(entry.quote.sides) {
            let id = number(entry.name, side);
            let Some(of) = self.of(instrument) else { continue };
            let Some(place) = of.place_of(id) else { continue };
            let own = &mut of.orders[place];
            if !qty.is_zero() && price == own.price && qty.0 <= own.leaves() {
                (own.qty, own.filled) = (qty.0, 0);
                if let Some(world) = &mut of.world {
                    world.rename(id, id, qty.0.into());
                }
                self.requests[1] += 1;
                is_kept[side as usize] = true;
                continue;
            }
            if let Some(own) = self.take_out(instrument, id) {
                self.ended(&own);
            }
            self.requests[2] += u64::from(qty.is_zero());
        }
        for (side, (price, qty)) in Side::BOTH.into_iter().zip(entry.quote.sides) {
            if qty.is_zero() || is_kept[side as usize] {
                continue;
            }
            self.requests[0] += 1;
            let own = Own::new(number(entry.name, side), side, price, qty.0, TimeInForce::Day);
            self.enter(at, own, Some(price), instrument, (books, local), tell);
        }
        self.settle(instrument);
    }
}
