//! The market data of the trade: a book of five levels a side that moves by chance, as
//! MarketDataSnapshotFullRefresh (W) once and MarketDataIncrementalRefresh (X) from then on. FIX 4.4, volume 3.

use tickwire_fix::typed::WriteError;
use tickwire_fix::{Encoder, Precision, Stamp};
use tickwire_fixmsg::fix44::values::{MDEntryType, MDUpdateAction};
use tickwire_fixmsg::fix44::{MarketDataIncrementalRefresh, MarketDataSnapshotFullRefresh};
use tickwire_market::{Price, Qty};

use super::SYMBOL;
use tickwire_console::random::Random;

/// Entries of a message at most.
pub(super) const ENTRIES_MAX: usize = 16;
/// Levels of a side.
const LEVELS: u64 = 5;
/// A cent.
const TICK: i64 = 10_000_000;
/// The best offer stays between these, in ticks.
const OFFERS: (i64, i64) = (18_000, 19_500);

/// An entry of a message.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: MDEntryType,
    price: Price,
    qty: Qty,
    position: i64,
}

/// The book, and the message made last.
pub(super) struct Market {
    random: Random,
    order_every: u64,
    /// Best offer, ticks. The other levels stand a tick apart, the bids two ticks below.
    offer: i64,
    entries: [Entry; ENTRIES_MAX],
    len: usize,
    stamp: Stamp,
}

impl Market {
    /// Messages of so many entries, of which one in `order_every` moves the best offer.
    pub(super) fn new(seed: u64, order_every: u64, entries: usize) -> Market {
        let none = Entry {
            kind: MDEntryType::Bid,
            price: Price::from_raw(0),
            qty: Qty(0),
            position: 1,
        };
        Market {
            random: Random(seed),
            order_every,
            offer: OFFERS.0 + 700,
            entries: [none; ENTRIES_MAX],
            len: entries.clamp(1, ENTRIES_MAX),
            stamp: Stamp::new(Precision::Millis),
        }
    }

    /// The best offer.
    pub(super) fn offer(&self) -> Price {
        Price::from_raw(self.offer * TICK)
    }

    /// Makes the next message; the new best offer if it moves it.
    #[inline]
    pub(super) fn step(&mut self) -> Option<Price> {
        let moves = self.random.below(self.order_every) == 0;
        if moves {
            let up = self.random.below(2) == 0;
            let way = if self.offer <= OFFERS.0 || up && self.offer < OFFERS.1 {
                1
            } else {
                -1
            };
            self.offer += way;
        }
        for at in 0..self.len {
            let random = self.random.below(1 << 20);
            let (level, qty) = ((random % LEVELS) as i64, Qty(1 + (random / 8 % 900) as u32 * 10));
            let is_offer = random >> 19 == 0;
            self.entries[at] = match is_offer {
                true => Entry {
                    kind: MDEntryType::Offer,
                    price: Price::from_raw((self.offer + level) * TICK),
                    qty,
                    position: level + 1,
                },
                false => Entry {
                    kind: MDEntryType::Bid,
                    price: Price::from_raw((self.offer - 2 - level) * TICK),
                    qty,
                    position: level + 1,
                },
            };
        }
        if !moves {
            return None;
        }
        // The move itself, anywhere in the message.
        let at = self.random.below(self.len as u64) as usize;
        self.entries[at] = Entry {
            kind: MDEntryType::Offer,
            price: self.offer(),
            qty: Qty(100),
            position: 1,
        };
        Some(self.offer())
    }

    /// The body of the message made last, of type X.
    #[inline]
    pub(super) fn write(&mut self, e: &mut Encoder<'_>) -> Result<(), WriteError> {
        let entries = &self.entries[..self.len];
        MarketDataIncrementalRefresh::write(e, &mut self.stamp, |m| {
            m.md_req_id(b"1").md_entries(entries, |entry, of| {
                entry
                    .md_update_action(MDUpdateAction::Change)
                    .md_entry_type(of.kind);
                entry.instrument().symbol(SYMBOL.as_bytes());
                entry.md_entry_px(of.price).md_entry_size(of.qty);
                entry.md_entry_position_no(of.position);
            });
        })
    }

    /// The body of the snapshot, of type W: the best offer.
    pub(super) fn write_snapshot(&mut self, e: &mut Encoder<'_>) -> Result<(), WriteError> {
        let offer = self.offer();
        MarketDataSnapshotFullRefresh::write(e, &mut self.stamp, |m| {
            m.md_req_id(b"1").instrument().symbol(SYMBOL.as_bytes());
            m.md_entries([offer], |entry, price| {
                entry.md_entry_type(MDEntryType::Offer).md_entry_px(price);
                entry.md_entry_size(Qty(100)).md_entry_position_no(1);
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_in_so_many_moves_the_best_offer_and_one_seed_is_one_market() {
        let (mut a, mut b) = (Market::new(7, 10, 4), Market::new(7, 10, 4));
        let mut moved = 0;
        let mut offer = a.offer();
        for _ in 0..10_000 {
            let step = a.step();
            assert_eq!(step, b.step());
            let best = a.entries[..a.len]
                .iter()
                .filter(|e| e.kind == MDEntryType::Offer && e.position == 1);
            if let Some(price) = step {
                moved += 1;
                assert_ne!(price, offer);
                assert!(best.clone().count() > 0);
                offer = price;
            }
            best.for_each(|e| assert_eq!(e.price, offer));
        }
        assert!((900..1_100).contains(&moved), "{moved}");
    }
}
