//! Copies of all books that know only what the books say they changed: plain lists of levels, and by-price
//! books that hear it as events.

use std::collections::HashMap;
use tickwire_book::{Books, BooksConfig, ChangeKind, Depth, Outcome, Relay, Totals};
use tickwire_market::{EventKind, InstrumentId, Level, MarketEvent, Price, Side};

/// The copies.
pub(crate) struct Mirror {
    levels: HashMap<InstrumentId, [Vec<Level>; 2]>,
    relayed: Books,
    events: Vec<MarketEvent>,
    /// Of the last few events, by book and side: the least rank that changed, and the best price.
    touched: HashMap<(InstrumentId, Side), (usize, Price)>,
    turn: u32,
}

impl Mirror {
    pub(crate) fn new(of: &Books) -> Mirror {
        assert!(of.config().tracked);
        Mirror {
            levels: HashMap::new(),
            relayed: Books::new(BooksConfig {
                depth: Depth::ByPrice,
                tracked: false,
                ..*of.config()
            }),
            events: Vec::new(),
            touched: HashMap::new(),
            turn: 0,
        }
    }

    /// After the books applied an event.
    pub(crate) fn follow(&mut self, books: &Books, event: &MarketEvent, outcome: Outcome) {
        let events = &mut self.events;
        events.clear();
        books.relay(event, outcome, Relay::Levels, &mut |event: &MarketEvent| {
            events.push(*event)
        });
        for said in &self.events {
            let passed = self.relayed.apply(said).outcome();
            assert!(!matches!(passed, Outcome::Rejected(_)), "{said:?}: {passed:?}");
        }
        match outcome {
            Outcome::Update(instrument, _) => self.book(books, event, instrument),
            Outcome::Feed(_) if event.kind == EventKind::Clear => {
                self.levels.clear();
                self.touched.clear();
            }
            Outcome::Rejected(_) => assert!(books.changes().is_empty(), "{event:?}"),
            _ => {}
        }
    }

    fn book(&mut self, books: &Books, event: &MarketEvent, instrument: InstrumentId) {
        let book = books.book(instrument).unwrap();
        let copy = self.levels.entry(instrument).or_default();
        if books.is_rebuilt() {
            assert!(
                matches!(event.kind, EventKind::Clear | EventKind::Quote),
                "{event:?}"
            );
            *copy = Side::BOTH.map(|side| book.levels(side).collect());
            self.touched.retain(|(of, _), _| *of != instrument);
        }
        self.turn += 1;
        if self.turn.is_multiple_of(5) {
            self.touched.clear();
        }
        for change in books.changes() {
            let first = (change.rank as usize, change.price);
            let touched = self.touched.entry((instrument, change.side)).or_insert(first);
            touched.0 = touched.0.min(first.0);
            if change.side.better(first.1, touched.1) {
                touched.1 = first.1;
            }
            let (side, rank) = (&mut copy[change.side as usize], change.rank as usize);
            let level = Level {
                price: change.price,
                qty: change.qty,
                orders: change.orders,
            };
            match change.kind {
                ChangeKind::Inserted => side.insert(rank, level),
                ChangeKind::Changed => {
                    assert_eq!(side[rank].price, change.price, "{event:?}");
                    side[rank] = level;
                }
                ChangeKind::Removed => {
                    assert_eq!(side.remove(rank).price, change.price, "{event:?}");
                    assert_eq!((level.qty.0, level.orders), (0, 0), "{event:?}");
                }
            }
        }
        let totals = books.totals(instrument);
        for side in Side::BOTH {
            let copy = &copy[side as usize];
            assert!(
                book.levels(side).eq(copy.iter().copied()),
                "{side:?} after {event:?}"
            );
            // What a copy has to write anew after several events begins at the best price of them.
            if let Some(&(rank, price)) = self.touched.get(&(instrument, side)) {
                let from = book.levels_from(side, price);
                assert_eq!(from.len(), copy.len() - rank, "{side:?} after {event:?}");
                assert!(from.eq(copy[rank..].iter().copied()), "{side:?} after {event:?}");
            }
            let sum: Totals = copy.iter().copied().collect();
            assert_eq!(totals[side as usize], sum, "{side:?} after {event:?}");
        }
        assert_eq!(
            self.relayed.digest(instrument),
            books.digest(instrument),
            "{event:?}"
        );
        assert_eq!(
            self.relayed.book(instrument).unwrap().state(),
            book.state(),
            "{event:?}"
        );
    }

    /// Everything, at the end.
    pub(crate) fn check(&self, books: &Books) {
        assert_eq!(self.relayed.state_hash(), books.state_hash());
        assert_eq!(self.relayed.feed_state(), books.feed_state());
        // A listener that comes late.
        let mut late = Books::new(*self.relayed.config());
        books.relay_all(&MarketEvent::default(), &mut late);
        assert_eq!(late.state_hash(), books.state_hash());
        let states = |books: &Books| books.iter().map(|book| book.state()).collect::<Vec<_>>();
        assert_eq!(states(&late), states(books));
    }
}
