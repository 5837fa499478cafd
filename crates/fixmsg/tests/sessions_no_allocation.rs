//! Orders and mass quotes out, execution reports and market data in, checked against the dictionary of FIX
//! 4.4: nothing is allocated once the sessions exist. Alone in its file: it brings the allocator with the
//! trap.

use std::sync::Arc;
use tickwire_fix::dict::Dictionary;
use tickwire_fix::{
    Again, CompId, Event, ExecType, ExecutionReport, Id, MemoryStore, NewOrder, NewOrderSingle, OrdStatus,
    OrderTemplate, Precision, Role, Rules, Session, SessionConfig, Stamp,
};
use tickwire_fixmsg::fix44::values::{MDEntryType, MDUpdateAction, QuoteType};
use tickwire_fixmsg::fix44::{MarketDataIncrementalRefresh, MassQuote};
use tickwire_market::{
    Cause, ClientOrderId, Nanos, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue,
};
use tickwire_runtime::alloc::{AllocationCount, Allocator, count_allocations};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const NOW: Nanos = Nanos(1_795_226_141_123_000_000);
const MESSAGES: u64 = 500;

fn dictionary() -> Arc<Dictionary> {
    Arc::new(Dictionary::standard("FIX.4.4").expect("it is built in"))
}

/// A trader, whose messages are checked on both sides, and a venue, logged on to each other.
fn pair() -> (Session, Session) {
    let dictionary = dictionary();
    let session = |role, own: &[u8], peer: &[u8]| {
        let comp = |text| CompId::new(text).expect("short");
        let config = SessionConfig::new(role, comp(own), comp(peer));
        let store = MemoryStore::new(config.store_messages, config.store_bytes);
        Session::with_rules(config, store, Some(Rules::of(dictionary.clone())))
    };
    let mut trader = session(Role::Initiator, b"TICKWIRE", b"EXCHANGE");
    let mut venue = session(Role::Acceptor, b"EXCHANGE", b"TICKWIRE");
    trader.handle_connected(NOW);
    venue.handle_connected(NOW);
    for _ in 0..2 {
        carry(&mut trader, &mut venue);
        carry(&mut venue, &mut trader);
    }
    for session in [&mut trader, &mut venue] {
        assert!(matches!(session.poll_event(), Some(Event::LoggedOn { .. })));
    }
    (trader, venue)
}

/// What one side has to say goes to the other; how many bytes.
fn carry(from: &mut Session, to: &mut Session) -> usize {
    let (mut buf, mut carried) = ([0; 4096], 0);
    while let Some(bytes) = from.poll_transmit(&mut buf) {
        assert_eq!(to.handle_bytes(NOW, bytes), bytes.len());
        carried += bytes.len();
    }
    carried
}

fn order(id: u64) -> NewOrderSingle {
    NewOrderSingle {
        cl_ord_id: Id::from_number(id),
        symbol: Symbol::new(b"WIRE").expect("short"),
        side: Side::Bid,
        transact_time: NOW,
        qty: Qty(100 + id as u32),
        order_type: OrderType::Limit,
        price: Some(Price::from_4dp(1_872_500 + id as u32)),
        stop: None,
        time_in_force: TimeInForce::Day,
        cause: None,
    }
}

fn report(id: u64) -> ExecutionReport {
    let order = order(id);
    ExecutionReport {
        order_id: Id::from_number(5_000_000_000 + id),
        exec_id: Id::from_number(7_000_000_000 + id),
        exec_type: ExecType::Trade,
        ord_status: OrdStatus::Filled,
        last_qty: order.qty,
        last_px: order.price,
        leaves_qty: Qty(0),
        cum_qty: order.qty,
        avg_px: Price::from_4dp(1_872_500),
        transact_time: NOW,
        ..ExecutionReport::of(&order)
    }
}

/// Runs it once, for what the first message may need, then many times with the trap counting.
fn assert_allocates_nothing(what: &str, mut step: impl FnMut(u64)) {
    step(1);
    let ((), count) = count_allocations(|| (2..MESSAGES).for_each(&mut step));
    assert_eq!(count, AllocationCount::default(), "{what}");
}

#[test]
fn new_order_single_out_and_execution_report_in_allocate_nothing() {
    let (mut trader, mut venue) = pair();
    assert_allocates_nothing("an order out, its report in, both sides checking", |id| {
        let sent = order(id);
        trader
            .send(NOW, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                sent.encode(e, stamp)
            })
            .expect("sent");
        assert!(carry(&mut trader, &mut venue) > 100);
        assert!(matches!(venue.poll_event(), Some(Event::Message { .. })));
        let got = NewOrderSingle::decode(&venue.message().expect("an order"));
        assert_eq!(got, Ok(order(id)));
        let sent = report(id);
        venue
            .send(NOW, ExecutionReport::MSG_TYPE, Again::Resend, |e, stamp| {
                sent.encode(e, stamp)
            })
            .expect("sent");
        assert!(carry(&mut venue, &mut trader) > 200);
        assert!(matches!(trader.poll_event(), Some(Event::Message { .. })));
        let got = ExecutionReport::decode(&trader.message().expect("a report"));
        assert_eq!(got, Ok(report(id)));
    });
    let mut template = OrderTemplate::new(&trader, Symbol::new(b"WIRE").expect("short")).expect("a template");
    assert_allocates_nothing("an order out by its template", |id| {
        let order = NewOrder {
            id: ClientOrderId(id),
            side: Side::Ask,
            price: Price::from_4dp(1_872_500 + id as u32),
            qty: Qty(id as u32),
            time_in_force: TimeInForce::ImmediateOrCancel,
            cause: Cause {
                venue: Venue::Nasdaq,
                seq: SeqNo(id),
                recv_ts: NOW,
            },
        };
        let sent = template
            .send(&mut trader, NOW, &order, Again::Resend)
            .expect("sent");
        assert!(sent.len() > 200);
    });
}

#[test]
fn mass_quote_out_and_market_data_in_allocate_nothing() {
    let (mut trader, mut venue) = pair();
    let mut stamp = Stamp::new(Precision::Millis);
    assert_allocates_nothing("a mass quote out, market data in, both sides checking", |i| {
        let price = Price::from_4dp(1_872_500 + i as u32);
        let mut quote = |e: &mut tickwire_fix::Encoder<'_>| {
            let written = MassQuote::write(e, &mut stamp, |quote| {
                quote.quote_id(b"Q1").quote_type(QuoteType::Tradeable);
                quote.quote_sets([b"1"], |set, id| {
                    set.quote_set_id(id).tot_no_quote_entries(2);
                    set.quote_entries([b"1", b"2"], |entry, id| {
                        entry.quote_entry_id(id).instrument().symbol(b"WIRE");
                        entry
                            .bid_px(price)
                            .offer_px(price)
                            .bid_size(Qty(5))
                            .offer_size(Qty(4));
                    });
                });
            });
            written.expect("complete");
        };
        trader
            .send(NOW, MassQuote::MSG_TYPE, Again::Resend, |e, _| quote(e))
            .expect("sent");
        assert!(carry(&mut trader, &mut venue) > 100);
        assert!(matches!(venue.poll_event(), Some(Event::Message { .. })));
        let message = venue.message().expect("handed out");
        let quotes = MassQuote::read(&message).expect("a mass quote");
        let sets = quotes.quote_sets().expect("a true count");
        assert_eq!(
            sets.map(|set| set.quote_entries().expect("a true count").count())
                .sum::<usize>(),
            2
        );
        assert!(venue.poll_event().is_none());

        let mut refresh = |e: &mut tickwire_fix::Encoder<'_>| {
            let written = MarketDataIncrementalRefresh::write(e, &mut stamp, |m| {
                m.md_req_id(b"MDR-1").md_entries([1u32, 2, 3, 4], |entry, size| {
                    entry
                        .md_update_action(MDUpdateAction::New)
                        .md_entry_type(MDEntryType::Bid);
                    entry.instrument().symbol(b"WIRE");
                    entry.md_entry_px(price).md_entry_size(Qty(size));
                });
            });
            written.expect("complete");
        };
        venue
            .send(
                NOW,
                MarketDataIncrementalRefresh::MSG_TYPE,
                Again::Resend,
                |e, _| refresh(e),
            )
            .expect("sent");
        assert!(carry(&mut venue, &mut trader) > 100);
        assert!(matches!(trader.poll_event(), Some(Event::Message { .. })));
        let message = trader.message().expect("handed out");
        let refresh = MarketDataIncrementalRefresh::read(&message).expect("of its type");
        let entries = refresh.md_entries().expect("a true count");
        let sizes = entries.map(|entry| entry.md_entry_size().expect("a quantity").expect("it is there").0);
        assert_eq!(sizes.sum::<u32>(), 10);
        assert!(trader.poll_event().is_none());
    });
}
