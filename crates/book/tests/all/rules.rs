//! What the books promise, one behaviour a test.

use tickwire_book::{Applied, BookError, Books, BooksConfig, Depth, QueuePosition, Relay};
use tickwire_market::{
    BookState, Counter, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, OrderId, Price, Side,
    Upcoming, UpdateFlags, Volume,
};

const STOCK: InstrumentId = InstrumentId(1);

fn books(depth: Depth) -> Books {
    Books::new(BooksConfig {
        depth,
        instruments: 3,
        orders: 100,
        levels: 4_096,
        ..Default::default()
    })
}

fn order(id: u64, side: Side, price: u32, qty: u64) -> MarketEvent {
    MarketEvent {
        instrument: STOCK,
        order_id: OrderId(id),
        side,
        price: Price::from_4dp(price),
        qty: Volume(qty),
        ..MarketEvent::default()
    }
}

fn event(kind: EventKind, id: u64, qty: u64) -> MarketEvent {
    MarketEvent {
        kind,
        instrument: STOCK,
        order_id: OrderId(id),
        qty: Volume(qty),
        ..MarketEvent::default()
    }
}

fn feed(kind: EventKind) -> MarketEvent {
    MarketEvent {
        kind,
        ..MarketEvent::default()
    }
}

fn changed(books: &mut Books, event: MarketEvent) -> UpdateFlags {
    match books.apply(&event) {
        Applied::Update(update) => update.changed,
        other => panic!("{other:?}"),
    }
}

fn rejected(books: &mut Books, event: MarketEvent) -> BookError {
    match books.apply(&event) {
        Applied::Rejected(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_update_says_which_part_of_the_book_changed() {
    let mut books = books(Depth::Aggregated);
    let bid_price = UpdateFlags::BEST_BID.with(UpdateFlags::BEST_BID_PRICE);
    assert_eq!(changed(&mut books, order(1, Side::Bid, 100, 10)), bid_price);
    assert_eq!(
        changed(&mut books, order(2, Side::Bid, 100, 10)),
        UpdateFlags::BEST_BID
    );
    assert_eq!(
        changed(&mut books, order(3, Side::Bid, 90, 10)),
        UpdateFlags::DEPTH
    );
    assert_eq!(changed(&mut books, order(4, Side::Bid, 110, 10)), bid_price);
    assert_eq!(
        changed(&mut books, event(EventKind::Execute, 4, 3)),
        UpdateFlags::BEST_BID
    );
    assert_eq!(changed(&mut books, event(EventKind::Delete, 4, 0)), bid_price);
    let ask_price = UpdateFlags::BEST_ASK.with(UpdateFlags::BEST_ASK_PRICE);
    assert_eq!(changed(&mut books, order(5, Side::Ask, 120, 10)), ask_price);
    assert_eq!(changed(&mut books, event(EventKind::Delete, 5, 0)), ask_price);
    let update = books.book(STOCK).unwrap().update();
    assert_eq!(update.best(Side::Bid), Some((Price::from_4dp(100), Volume(20))));
    assert_eq!(update.best(Side::Ask), None);
}

#[test]
fn a_gap_makes_every_book_stale_until_the_feed_is_whole_again() {
    let mut books = books(Depth::Aggregated);
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Live);
    assert_eq!(
        books.apply(&feed(EventKind::Gap)),
        Applied::Feed(BookState::Stale)
    );
    assert!(books.iter().all(|book| book.state() == BookState::Stale));
    assert!(changed(&mut books, order(1, Side::Bid, 100, 10)).has(UpdateFlags::STATE));
    assert_eq!(books.book(STOCK).unwrap().update().state, BookState::Stale);
    assert_eq!(
        books.apply(&feed(EventKind::Recovered)),
        Applied::Feed(BookState::Live)
    );
    assert_eq!(books.book(STOCK).unwrap().update().state, BookState::Live);
}

#[test]
fn a_gap_of_one_instrument_leaves_the_others_live() {
    let mut books = books(Depth::Aggregated);
    books.apply(&MarketEvent {
        instrument: STOCK,
        ..feed(EventKind::Gap)
    });
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Stale);
    assert_eq!(books.book(InstrumentId(2)).unwrap().state(), BookState::Live);
}

#[test]
fn a_gap_of_one_instrument_outlives_the_gaps_of_the_feed_and_ends_with_a_clear() {
    let of_stock = |kind| MarketEvent {
        instrument: STOCK,
        ..feed(kind)
    };
    for ends in [feed(EventKind::Clear), of_stock(EventKind::Clear)] {
        for depth in [Depth::Aggregated, Depth::ByOrder, Depth::ByPrice] {
            let mut books = books(depth);
            let state = |books: &Books| books.book(STOCK).unwrap().state();
            books.apply(&of_stock(EventKind::Gap));
            books.apply(&feed(EventKind::Gap));
            books.apply(&feed(EventKind::Recovered));
            assert_eq!(state(&books), BookState::Stale);
            assert_eq!(books.book(InstrumentId(2)).unwrap().state(), BookState::Live);
            if depth != Depth::ByPrice {
                books.apply(&order(1, Side::Bid, 100, 10));
                assert_eq!(books.book(STOCK).unwrap().update().state, BookState::Stale);
            }
            books.apply(&ends);
            assert_eq!(state(&books), BookState::Live);
        }
    }
}

/// With queues a clear takes the orders out, without it leaves their slots to those who come.
#[test]
fn the_orders_of_a_cleared_book_are_gone_and_in_nobodys_way() {
    for depth in [Depth::Aggregated, Depth::ByOrder] {
        let mut books = Books::new(BooksConfig {
            depth,
            instruments: 3,
            orders: 4,
            levels: 64,
            ..Default::default()
        });
        let other = |id| MarketEvent {
            instrument: InstrumentId(2),
            ..order(id, Side::Ask, 120, 7)
        };
        let clear = MarketEvent {
            instrument: STOCK,
            ..feed(EventKind::Clear)
        };
        // Others' ids every second time, the same again in between.
        for first in [0, 0, 100, 100, 200, 1_000_000] {
            // Half of them in the window, half in the table.
            let ids = first + 1..=first + 7;
            for id in ids.clone() {
                changed(&mut books, order(id, Side::Bid, 100, 10));
            }
            changed(&mut books, other(first + 8));
            assert_eq!(books.book(STOCK).unwrap().levels(Side::Bid).len(), 1);
            let again = rejected(&mut books, order(first + 3, Side::Bid, 100, 1));
            assert_eq!(again, BookError::DuplicateOrder);
            // That order was not taken; it made the book stale.
            changed(&mut books, clear);
            assert!(books.book(STOCK).unwrap().is_empty());
            for id in ids {
                assert!(books.order(OrderId(id)).is_none(), "{id}");
                for gone in [event(EventKind::Delete, id, 0), event(EventKind::Execute, id, 1)] {
                    assert_eq!(rejected(&mut books, gone), BookError::UnknownOrder);
                }
            }
            let replaced = MarketEvent {
                instrument: InstrumentId(2),
                ref_id: first + 3,
                price: Price::from_4dp(121),
                ..event(EventKind::Replace, first + 8, 5)
            };
            changed(&mut books, replaced);
            let found = books.order(OrderId(first + 3)).map(|order| order.instrument);
            assert_eq!(found, Some(InstrumentId(2)));
            let last = MarketEvent {
                instrument: InstrumentId(2),
                ..event(EventKind::Delete, first + 3, 0)
            };
            changed(&mut books, last);
            assert!(books.iter().all(|book| book.is_empty()));
        }
        assert_eq!(books.counters().get(Counter::BookFull), 0);
    }
}

/// An order that is gone leaves the table when its id comes again: else it would take the new one's entry
/// with it later.
#[test]
fn an_id_that_comes_again_is_found_wherever_it_moves() {
    let mut books = Books::new(BooksConfig {
        instruments: 3,
        orders: 4,
        levels: 64,
        ..Default::default()
    });
    // All of one slot of the window: each moves the one before it to the table.
    let slot = [1, 5, 9, 13, 17];
    for id in &slot[..2] {
        changed(&mut books, order(*id, Side::Bid, 100, 10));
    }
    let clear = MarketEvent {
        instrument: STOCK,
        ..feed(EventKind::Clear)
    };
    changed(&mut books, clear);
    for id in slot {
        changed(&mut books, order(id, Side::Bid, 100, 10));
    }
    for id in slot {
        assert!(books.order(OrderId(id)).is_some(), "{id}");
        changed(&mut books, event(EventKind::Delete, id, 0));
    }
    assert!(books.book(STOCK).unwrap().is_empty());
}

#[test]
fn a_message_of_nobody_knows_which_book_makes_all_stale_until_everything_is_cleared() {
    let mut books = books(Depth::ByOrder);
    let unusable = MarketEvent {
        flags: EventFlags::UNUSABLE,
        ..feed(EventKind::Gap)
    };
    let stale = Applied::Feed(BookState::Stale);
    assert_eq!(books.apply(&unusable), stale);
    assert_eq!(books.apply(&feed(EventKind::Gap)), stale);
    assert_eq!(books.apply(&feed(EventKind::Recovered)), stale);
    changed(&mut books, order(1, Side::Bid, 100, 10));
    assert!(books.iter().all(|book| book.state() == BookState::Stale));
    assert_eq!(
        books.apply(&feed(EventKind::Clear)),
        Applied::Feed(BookState::Live)
    );
    // A snapshot loaded into a feed that misses messages: live when these have come.
    books.apply(&feed(EventKind::Gap));
    assert_eq!(books.apply(&unusable), stale);
    assert_eq!(books.apply(&feed(EventKind::Clear)), stale);
    assert_eq!(
        books.apply(&feed(EventKind::Recovered)),
        Applied::Feed(BookState::Live)
    );
}

#[test]
fn books_that_wait_for_a_snapshot_are_building_until_the_feed_is_whole() {
    let mut books = Books::new(BooksConfig {
        initial: BookState::Building,
        instruments: 2,
        ..BooksConfig::default()
    });
    assert!(!changed(&mut books, order(1, Side::Bid, 100, 10)).has(UpdateFlags::STATE));
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Building);
    books.apply(&feed(EventKind::Recovered));
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Live);
}

#[test]
fn bad_events_are_counted_and_change_nothing() {
    let mut books = books(Depth::ByOrder);
    changed(&mut books, order(1, Side::Bid, 100, 10));
    let hash = books.state_hash();
    assert_eq!(
        rejected(&mut books, order(1, Side::Ask, 100, 10)),
        BookError::DuplicateOrder
    );
    assert_eq!(
        rejected(&mut books, order(2, Side::Bid, 100, 0)),
        BookError::QtyRange
    );
    assert_eq!(
        rejected(&mut books, order(2, Side::Bid, 100, 1 << 32)),
        BookError::QtyRange
    );
    assert_eq!(
        rejected(&mut books, event(EventKind::Delete, 9, 0)),
        BookError::UnknownOrder
    );
    assert_eq!(
        rejected(&mut books, event(EventKind::Execute, 1, 11)),
        BookError::Excess
    );
    assert_eq!(
        rejected(&mut books, event(EventKind::Reduce, 1, 0)),
        BookError::QtyRange
    );
    let elsewhere = MarketEvent {
        instrument: InstrumentId(2),
        ..event(EventKind::Delete, 1, 0)
    };
    assert_eq!(rejected(&mut books, elsewhere), BookError::Instrument);
    let beyond = MarketEvent {
        instrument: InstrumentId(3),
        ..order(2, Side::Bid, 100, 1)
    };
    assert_eq!(rejected(&mut books, beyond), BookError::Instrument);
    assert_eq!(
        rejected(&mut books, event(EventKind::Level, 0, 5)),
        BookError::Depth
    );
    assert_eq!(books.counters().get(Counter::BookRejects), 9);
    assert_eq!(books.counters().get(Counter::BookFull), 0);
    assert_eq!(books.state_hash(), hash);
    // They change nothing but that the books are not what the venue's are.
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Stale);
}

#[test]
fn a_removal_of_a_level_that_is_not_there_is_rejected() {
    let mut books = books(Depth::ByPrice);
    let level = MarketEvent {
        kind: EventKind::Level,
        ..order(0, Side::Ask, 100, 5)
    };
    assert!(changed(&mut books, level).has(UpdateFlags::BEST_ASK));
    assert_eq!(
        rejected(
            &mut books,
            MarketEvent {
                price: Price::ZERO,
                qty: Volume(0),
                ..level
            }
        ),
        BookError::UnknownLevel
    );
    assert!(
        changed(
            &mut books,
            MarketEvent {
                qty: Volume(0),
                ..level
            }
        )
        .has(UpdateFlags::BEST_ASK_PRICE)
    );
}

#[test]
fn an_order_without_room_makes_its_book_stale_until_it_is_cleared() {
    let mut books = Books::new(BooksConfig {
        orders: 2,
        instruments: 3,
        ..Default::default()
    });
    // Two in the window, and two that they moved to the table.
    for id in 1..=4 {
        changed(&mut books, order(id, Side::Bid, 100, 10));
    }
    assert_eq!(
        rejected(&mut books, order(5, Side::Bid, 100, 10)),
        BookError::Full
    );
    assert_eq!(books.counters().get(Counter::BookFull), 1);
    let another = order(6, Side::Bid, 100, 10);
    let outcome = books.apply(&another).outcome();
    let mut last = None;
    let mut sink = |event: &MarketEvent| last = Some((event.kind, event.instrument));
    books.relay(&another, outcome, Relay::Levels, &mut sink);
    assert_eq!(last, Some((EventKind::Gap, STOCK)));
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Stale);
    assert_eq!(books.book(InstrumentId(2)).unwrap().state(), BookState::Live);
    books.apply(&feed(EventKind::Recovered));
    assert_eq!(
        books.book(STOCK).unwrap().state(),
        BookState::Stale,
        "a snapshot is needed, not the end of a gap"
    );
    for kind in [EventKind::Recovered, EventKind::Gap, EventKind::Recovered] {
        let event = MarketEvent {
            instrument: STOCK,
            ..feed(kind)
        };
        let outcome = books.apply(&event).outcome();
        assert_eq!(
            books.book(STOCK).unwrap().state(),
            BookState::Stale,
            "what had no room is missing still, also when the instrument's own gap is over"
        );
        let mut told = Vec::new();
        let mut sink = |event: &MarketEvent| told.push(event.kind);
        books.relay(&event, outcome, Relay::Levels, &mut sink);
        assert!(!told.contains(&EventKind::Recovered), "{told:?}");
    }
    books.apply(&feed(EventKind::Clear));
    assert_eq!(books.book(STOCK).unwrap().state(), BookState::Live);
    assert!(books.book(STOCK).unwrap().is_empty());
    changed(&mut books, order(3, Side::Bid, 100, 10));
}

#[test]
fn a_level_without_room_rejects_the_order_and_frees_its_slot() {
    let mut books = Books::new(BooksConfig {
        levels: 8,
        instruments: 3,
        ..BooksConfig::default()
    });
    for id in 1..=8 {
        changed(&mut books, order(id, Side::Bid, 100 + id as u32, 10));
    }
    // By these, those before come behind the window: to where the room is for levels.
    changed(&mut books, order(101, Side::Bid, 200, 10));
    assert_eq!(
        rejected(&mut books, order(9, Side::Bid, 120, 10)),
        BookError::Full
    );
    assert_eq!(books.order(OrderId(9)), None);
    assert_eq!(books.book(STOCK).unwrap().levels(Side::Bid).len(), 9);
    let replace = MarketEvent {
        ref_id: 9,
        price: Price::from_4dp(120),
        ..event(EventKind::Replace, 1, 5)
    };
    changed(&mut books, replace);
    assert_eq!(books.order(OrderId(9)).unwrap().qty.0, 5);
}

#[test]
fn a_best_price_without_room_for_those_that_it_moves_out_of_the_window_is_rejected() {
    let mut books = Books::new(BooksConfig {
        levels: 8,
        instruments: 3,
        ..BooksConfig::default()
    });
    for id in 1..=9 {
        changed(&mut books, order(id, Side::Ask, 1_000 - id as u32, 10));
    }
    let before: Vec<_> = books.book(STOCK).unwrap().levels(Side::Ask).collect();
    assert_eq!(
        rejected(&mut books, order(10, Side::Ask, 100, 10)),
        BookError::Full
    );
    let book = books.book(STOCK).unwrap();
    assert!(book.levels(Side::Ask).eq(before));
    assert_eq!(book.own_state(), BookState::Stale, "until it is cleared");
}

#[test]
fn queues_keep_time_priority_and_say_what_stands_ahead() {
    let mut books = books(Depth::ByOrder);
    for id in 1..=4 {
        changed(&mut books, order(id, Side::Ask, 100, 10 * id));
    }
    changed(&mut books, event(EventKind::Execute, 1, 4));
    changed(&mut books, event(EventKind::Delete, 2, 0));
    changed(
        &mut books,
        MarketEvent {
            ref_id: 5,
            price: Price::from_4dp(100),
            ..event(EventKind::Replace, 3, 7)
        },
    );
    let ids = |books: &Books| -> Vec<u64> {
        books
            .book(STOCK)
            .unwrap()
            .orders(Side::Ask, Price::from_4dp(100))
            .map(|o| o.id.0)
            .collect()
    };
    assert_eq!(ids(&books), [1, 4, 5]);
    let ahead = QueuePosition {
        orders_ahead: 2,
        qty_ahead: Volume(46),
    };
    assert_eq!(books.queue_position(OrderId(5)), Some(ahead));
    let keeps = MarketEvent {
        flags: EventFlags::KEEPS_PRIORITY,
        kind: EventKind::Modify,
        ..order(1, Side::Ask, 100, 2)
    };
    changed(&mut books, keeps);
    assert_eq!(ids(&books), [1, 4, 5]);
    changed(
        &mut books,
        MarketEvent {
            flags: EventFlags::NONE,
            ..keeps
        },
    );
    assert_eq!(ids(&books), [4, 5, 1]);
    assert_eq!(books.queue_position(OrderId(2)), None);
}

#[test]
fn whatever_is_announced_changes_nothing() {
    for depth in [Depth::Aggregated, Depth::ByOrder, Depth::ByPrice] {
        for (instruments, orders, levels) in [(0, 0, 0), (3, 0, 8), (3, 2, 4_096)] {
            let mut books = Books::new(BooksConfig {
                depth,
                instruments,
                orders,
                levels,
                ..Default::default()
            });
            let before = books.state_hash();
            for id in [0, 1, 2, u64::MAX, 1 << 33].repeat(4) {
                for instrument in [0, 1, 4, u32::MAX] {
                    let next = Upcoming::resting(InstrumentId(instrument), OrderId(id));
                    books.upcoming(next);
                    books.arriving(next);
                    books.approach(next.instrument);
                }
            }
            assert_eq!(books.state_hash(), before);
            // The second and the third order go where the first one stands.
            let rested = (0..3).filter(|n| {
                books.upcoming(Upcoming::resting(STOCK, OrderId(n * 4)));
                matches!(books.apply(&order(n * 4, Side::Bid, 100, 5)), Applied::Update(_))
            });
            let has_room = depth != Depth::ByPrice && orders > 0;
            assert_eq!(rested.count(), if has_room { 3 } else { 0 });
            for id in [0, 4, 8, 12].repeat(4) {
                books.upcoming(Upcoming::resting(STOCK, OrderId(id)));
            }
            let total: u64 = books.totals(STOCK)[0].orders;
            assert_eq!(total, if has_room { 3 } else { 0 });
        }
    }
}

#[test]
fn an_aggregated_book_has_no_queues() {
    let mut books = books(Depth::Aggregated);
    changed(&mut books, order(1, Side::Ask, 100, 10));
    assert_eq!(books.queue_position(OrderId(1)), None);
    assert_eq!(
        books
            .book(STOCK)
            .unwrap()
            .orders(Side::Ask, Price::from_4dp(100))
            .count(),
        0
    );
    assert_eq!(books.book(STOCK).unwrap().best(Side::Ask).unwrap().orders, 1);
}

#[test]
fn clearing_one_book_forgets_its_orders_only() {
    for depth in [Depth::Aggregated, Depth::ByOrder] {
        let mut books = books(depth);
        changed(&mut books, order(1, Side::Ask, 100, 10));
        changed(&mut books, order(u64::MAX, Side::Bid, 90, 10));
        changed(
            &mut books,
            MarketEvent {
                instrument: InstrumentId(2),
                ..order(2, Side::Ask, 100, 10)
            },
        );
        changed(
            &mut books,
            MarketEvent {
                instrument: STOCK,
                ..feed(EventKind::Clear)
            },
        );
        assert!(books.book(STOCK).unwrap().is_empty());
        assert_eq!(books.order(OrderId(1)), None);
        assert_eq!(books.order(OrderId(u64::MAX)), None);
        assert!(books.order(OrderId(2)).is_some());
    }
}

#[test]
fn deletes_without_an_instrument_find_the_book_of_their_order() {
    let mut books = books(Depth::Aggregated);
    changed(&mut books, order(1, Side::Ask, 100, 10));
    changed(
        &mut books,
        MarketEvent {
            instrument: InstrumentId::WHOLE_FEED,
            ..event(EventKind::Delete, 1, 0)
        },
    );
    assert!(books.book(STOCK).unwrap().is_empty());
}

#[test]
fn the_extremes_of_price_sort_right_on_both_sides() {
    let mut books = books(Depth::Aggregated);
    for (id, price) in [Price::MAX, Price::MIN, Price::ZERO].into_iter().enumerate() {
        changed(
            &mut books,
            MarketEvent {
                price,
                ..order(id as u64, Side::Bid, 0, 1)
            },
        );
        changed(
            &mut books,
            MarketEvent {
                price,
                ..order(id as u64 + 10, Side::Ask, 0, 1)
            },
        );
    }
    let prices = |side| {
        books
            .book(STOCK)
            .unwrap()
            .levels(side)
            .map(|l| l.price)
            .collect::<Vec<_>>()
    };
    assert_eq!(prices(Side::Bid), [Price::MAX, Price::ZERO, Price::MIN]);
    assert_eq!(prices(Side::Ask), [Price::MIN, Price::ZERO, Price::MAX]);
}

#[test]
fn a_book_that_became_stale_by_itself_is_named_once() {
    let mut books = books(Depth::Aggregated);
    assert_eq!(books.next_distrusted(), None);
    changed(&mut books, order(1, Side::Bid, 100, 10));
    assert_eq!(
        rejected(&mut books, event(EventKind::Execute, 1, 11)),
        BookError::Excess
    );
    let unusable = MarketEvent {
        instrument: InstrumentId(2),
        flags: EventFlags::UNUSABLE,
        ..feed(EventKind::Gap)
    };
    books.apply(&unusable);
    let mut named: Vec<_> = std::iter::from_fn(|| books.next_distrusted()).collect();
    named.sort();
    assert_eq!(named, [STOCK, InstrumentId(2)]);
    // It is stale already: whoever makes it right knows.
    books.apply(&unusable);
    assert_eq!(books.next_distrusted(), None);
}

#[test]
fn of_many_books_that_became_stale_each_is_named_once() {
    const BOOKS: u32 = 100;
    for (first, step) in [(0, 1), (0, 3), (40, 2)] {
        let mut books = Books::new(BooksConfig {
            instruments: BOOKS,
            orders: 100,
            levels: 4_096,
            ..Default::default()
        });
        let stale: Vec<InstrumentId> = (first..BOOKS).step_by(step).map(InstrumentId).collect();
        for instrument in stale.iter().filter(|id| **id != InstrumentId::WHOLE_FEED) {
            books.apply(&MarketEvent {
                instrument: *instrument,
                flags: EventFlags::UNUSABLE,
                ..feed(EventKind::Gap)
            });
        }
        let sink: &mut dyn EventSink = &mut books;
        let named = std::iter::from_fn(|| sink.next_distrusted()).take(2 * BOOKS as usize);
        let mut named: Vec<InstrumentId> = named.collect();
        named.sort();
        let wanted: Vec<_> = stale
            .into_iter()
            .filter(|id| *id != InstrumentId::WHOLE_FEED)
            .collect();
        assert_eq!(named, wanted);
        assert_eq!(books.next_distrusted(), None);
    }
}

#[test]
fn books_made_with_the_levels_that_were_needed_have_room_and_with_half_of_them_have_none() {
    let with = |levels: usize| {
        let mut books = Books::new(BooksConfig {
            depth: Depth::ByPrice,
            instruments: 3,
            levels: levels as u32,
            ..Default::default()
        });
        let mut refused = 0;
        for (nth, side) in (0..300).zip(Side::BOTH.into_iter().cycle()) {
            let level = MarketEvent {
                kind: EventKind::Level,
                ..order(0, side, 10_000 + nth, 5)
            };
            refused += u32::from(matches!(books.apply(&level), Applied::Rejected(BookError::Full)));
        }
        (refused, books.levels_needed())
    };
    let (refused, needed) = with(32_768);
    assert_eq!(refused, 0);
    assert!((300..3_000).contains(&needed), "{needed}");
    assert_eq!(with(needed), (0, needed));
    assert!(with(needed / 2).0 > 0, "half of {needed}");
}

#[test]
fn a_book_that_has_become_small_gives_its_levels_to_others() {
    let mut books = Books::new(BooksConfig {
        depth: Depth::ByPrice,
        instruments: 3,
        levels: 1_024,
        ..Default::default()
    });
    let level = |instrument: u32, price: u32, qty: u64| MarketEvent {
        kind: EventKind::Level,
        instrument: InstrumentId(instrument),
        ..order(0, Side::Bid, price, qty)
    };
    for turn in 0..4 {
        let instrument = 1 + turn % 2;
        for price in 1..=512 {
            changed(&mut books, level(instrument, price, 5));
        }
        // One stays.
        for price in 2..=512 {
            changed(&mut books, level(instrument, price, 0));
        }
    }
}

#[test]
fn a_side_has_room_for_32_768_levels_behind_its_window_and_no_more() {
    let mut books = Books::new(BooksConfig {
        depth: Depth::ByPrice,
        instruments: 2,
        levels: 131_072,
        ..Default::default()
    });
    let level = |price: u32| MarketEvent {
        kind: EventKind::Level,
        ..order(0, Side::Bid, price, 5)
    };
    // The best of them are in the window, which has room of its own.
    for price in [100_000, 99_999] {
        changed(&mut books, level(price));
    }
    for price in 1..=32_768 {
        changed(&mut books, level(price));
    }
    assert_eq!(rejected(&mut books, level(32_769)), BookError::Full);
}

#[test]
fn a_cleared_table_has_room_for_as_many_orders_as_before() {
    let mut books = Books::new(BooksConfig {
        instruments: 2,
        orders: 4,
        levels: 64,
        ..Default::default()
    });
    // All of one place: one stands there, and four beside.
    for _ in 0..3 {
        for nth in 1..=5 {
            changed(&mut books, order(nth * 4, Side::Bid, 100, 1));
        }
        let one_more = order(24, Side::Bid, 100, 1);
        assert_eq!(rejected(&mut books, one_more), BookError::Full);
        books.apply(&feed(EventKind::Clear));
    }
}

#[test]
fn a_level_has_room_for_1_048_575_orders_and_no_more() {
    let mut books = Books::new(BooksConfig {
        instruments: 2,
        orders: 1 << 20,
        levels: 64,
        ..Default::default()
    });
    for id in 1..1 << 20 {
        changed(&mut books, order(id, Side::Bid, 100, 1));
    }
    let one_more = order(1 << 20, Side::Bid, 100, 1);
    assert_eq!(rejected(&mut books, one_more), BookError::Full);
    let level = books.book(STOCK).and_then(|book| book.levels(Side::Bid).next());
    assert_eq!(
        level.map(|level| (level.qty.0, level.orders)),
        Some(((1 << 20) - 1, (1 << 20) - 1))
    );
}

#[test]
fn the_quote_of_one_participant_is_no_top_of_the_book() {
    let mut books = books(Depth::ByPrice);
    let quote = MarketEvent {
        kind: EventKind::Quote,
        ask_price: Price::from_4dp(200),
        ask_qty: Volume(3),
        ..order(0, Side::Bid, 100, 2)
    };
    let of_one = MarketEvent {
        code: *b"XNAS    ",
        ..quote
    };
    assert!(matches!(books.apply(&of_one), Applied::None));
    assert!(
        books
            .book(STOCK)
            .is_none_or(|book| book.levels(Side::Bid).next().is_none())
    );
    changed(&mut books, quote);
}

#[test]
fn a_quote_may_be_as_large_as_a_level() {
    let mut books = books(Depth::ByPrice);
    let largest = (1 << 44) - 1;
    for (qty, ask_qty, fits) in [
        (largest, 1, true),
        (1, largest, true),
        (largest + 1, 1, false),
        (1, largest + 1, false),
    ] {
        let quote = MarketEvent {
            kind: EventKind::Quote,
            ask_price: Price::from_4dp(200),
            ask_qty: Volume(ask_qty),
            ..order(0, Side::Bid, 100, qty)
        };
        match books.apply(&quote) {
            Applied::Update(update) => {
                assert!(fits, "{qty} and {ask_qty}");
                assert_eq!(update.qty, [Volume(qty), Volume(ask_qty)]);
            }
            Applied::Rejected(error) => assert_eq!((error, fits), (BookError::QtyRange, false)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_error_has_words_of_its_own() {
    use BookError::*;
    let all = [
        UnknownOrder,
        DuplicateOrder,
        Excess,
        QtyRange,
        Instrument,
        UnknownLevel,
        Depth,
        Full,
    ];
    let words: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), all.len());
    assert!(words.iter().all(|word| word.len() > 5), "{words:?}");
}
