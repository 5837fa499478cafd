//! One packet's way through every crate, with the answers checked: a simulated venue publishes, a trader
//! reads, keeps books, decides and sends an order over a FIX session with an acceptor.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use tickwire_book::{Books, BooksConfig};
use tickwire_exchange::{generate_itch, listings};
use tickwire_feed::{ArbiterConfig, FeedHandler, ItchConfig, ItchDecoder, ItchFeed, Line};
use tickwire_fix::{Again, CompId, Event, Id, NewOrderSingle, Role, Session, SessionConfig};
use tickwire_kernel::asm::action;
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
use tickwire_kernel::interp::Machine;
use tickwire_market::{
    Counter, Instrument, InstrumentId, MarketEvent, Nanos, OrderIntent, OrderType, Price, Qty, SeqNo, Symbol,
    TimeInForce,
};
use tickwire_options::{Kind, Terms, black76, edge, implied};
use tickwire_shm::{Identity, Next, Reader, Record, Region, RegionConfig, RegionState};
use tickwire_trading::BestOffer;
use tickwire_trading::strategy::{Conductor, ConductorConfig, Markets, OrderPort, Outcome, Rejected};
use tickwire_wire::itch50;
use tickwire_wire::moldudp64::PacketBuilder;

const SYMBOLS: u16 = 10;
const MESSAGES: u64 = 20_000;
/// 2026-11-20, 14:30 UTC.
const NOW: Nanos = Nanos(1_795_185_000 * Nanos::SECOND);

/// Whether every crate answered as it should.
pub(crate) fn every_crate() -> bool {
    Price::parse(b"87.39") == Ok(Price::from_4dp(873_900))
        && market_data_becomes_orders()
        && a_record_is_shared()
        && an_order_arrives()
        && an_option_has_a_value()
        && a_filter_is_made()
}

/// Instruments are numbered below two to the power of this.
const BITS: u32 = 4;

fn markets(books: &Books) -> Markets<'_> {
    Markets::new(core::slice::from_ref(books), BITS)
}

/// Counts orders.
struct Sent(u32);

impl OrderPort for Sent {
    fn send(&mut self, _: Nanos, request: &OrderIntent) -> Result<(), Rejected> {
        self.0 += u32::from(matches!(request, OrderIntent::New { .. }));
        Ok(())
    }
}

fn market_data_becomes_orders() -> bool {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: u32::from(SYMBOLS) + 1,
        ..ItchConfig::default()
    });
    let mut feed: ItchFeed = FeedHandler::new(ArbiterConfig::default(), decoder);
    let mut books = Books::new(BooksConfig {
        instruments: u32::from(SYMBOLS) + 1,
        orders: 1 << 17,
        levels: 1 << 14,
        ..BooksConfig::default()
    });
    let Some(instrument) = listings(1).first().map(|listing| Instrument {
        id: InstrumentId(1),
        symbol: listing.symbol,
        ..Instrument::default()
    }) else {
        return false;
    };
    let rule = BestOffer::new(instrument.symbol, Qty(100), TimeInForce::ImmediateOrCancel);
    let config = ConductorConfig {
        instrument_bits: BITS,
        max_orders: 1 << 10,
        ..ConductorConfig::default()
    };
    let mut conductor = Conductor::new(rule, &config);
    let mut port = Sent(0);
    conductor.define(NOW, 0, &instrument, None, markets(&books), &mut port);
    let (mut seq, mut is_well) = (1, true);
    let mut packet = Box::new([0; 1500]);
    let engine = generate_itch(1, MESSAGES, SYMBOLS, &mut |message: &[u8]| {
        is_well &= itch50::parse(message).is_ok();
        let mut builder = PacketBuilder::new(&mut packet[..], *b"TOUR000001", SeqNo(seq));
        is_well &= builder.push(message);
        let len = builder.finish();
        seq += 1;
        feed.on_packet(NOW, Line::A, &packet[..len], &mut |event: &MarketEvent| {
            let applied = Outcome::of(&mut books, event);
            conductor.on_event(0, event, &applied, false, markets(&books), &mut port);
        });
    });
    drop(engine);
    let delivered = feed.counters().get(Counter::Messages);
    is_well
        && delivered == seq - 1
        && delivered >= MESSAGES
        && port.0 > 0
        && books.counters().get(Counter::BookRejects) == 0
}

/// One writer, one reader, and memory that nobody mapped.
fn a_record_is_shared() -> bool {
    let config = RegionConfig {
        ring_records: 2,
        ..RegionConfig::default()
    };
    let Ok(layout) = config.layout() else { return false };
    let words: Vec<AtomicU64> = (0..layout.words).map(|_| AtomicU64::new(0)).collect();
    let identity = Identity {
        generation: NOW,
        pid: 1,
    };
    let Ok(region) = Region::format(&words, &config, identity) else {
        return false;
    };
    region.set_state(RegionState::Ready);
    let (Ok(reader), mut ring) = (Reader::attach(&words), region.ring(0)) else {
        return false;
    };
    let event = MarketEvent {
        seq: SeqNo(7),
        ..MarketEvent::default()
    };
    let place = reader.ring(0);
    ring.event(3, &event);
    place.is_some_and(|mut place| place.next(&reader) == Next::Record(Record::Event(3, event)))
}

/// A program for the kernel, made where there is none, and run over a packet that is not its own.
fn a_filter_is_made() -> bool {
    let group = Group::new([233, 54, 12, 111], 26477);
    let spec = FilterSpec {
        channels: Vec::from([ChannelSpec {
            framing: Framing::Itch,
            groups: Vec::from([group]),
            set: 0,
        }]),
        ..FilterSpec::default()
    };
    let Ok(program) = spec.program() else { return false };
    let mut machine = Machine::new();
    let outcome = machine.run(&program, &[0; 60], 0);
    outcome.is_ok_and(|outcome| outcome.action == action::PASS)
}

/// A value, its volatility back, and its price on a tick.
fn an_option_has_a_value() -> bool {
    let terms = Terms {
        forward: 5000.0,
        strike: 5100.0,
        years: 0.25,
        vol: 0.15,
        rate: 0.045,
        kind: Kind::Call,
    };
    let Ok(value) = black76::price(&terms) else {
        return false;
    };
    let back = implied::black76(&terms, value).is_ok_and(|vol| (vol - 0.15).abs() < 1e-14);
    let tick = Price::from_decimal(25, 2);
    let bid = tick.and_then(|tick| edge::price(value, tick, edge::Rounding::Down));
    back && bid == Price::from_decimal(105, 0)
}

fn an_order_arrives() -> bool {
    let (Some(trader), Some(venue), Some(symbol)) = (
        CompId::new(b"TRADER"),
        CompId::new(b"VENUE"),
        Symbol::new(b"IVOO"),
    ) else {
        return false;
    };
    let mut client = Session::new(SessionConfig::new(Role::Initiator, trader, venue));
    let mut server = Session::new(SessionConfig::new(Role::Acceptor, venue, trader));
    client.handle_connected(NOW);
    server.handle_connected(NOW);
    exchange(&mut client, &mut server);
    let order = NewOrderSingle {
        cl_ord_id: Id::from_number(1),
        symbol,
        side: tickwire_market::Side::Bid,
        transact_time: NOW,
        qty: Qty(100),
        order_type: OrderType::Limit,
        price: Some(Price::from_4dp(873_900)),
        stop: None,
        time_in_force: tickwire_market::TimeInForce::Day,
        cause: None,
    };
    let sent = client.send(NOW, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
        order.encode(e, stamp)
    });
    sent.is_ok() && exchange(&mut client, &mut server) == Some(order)
}

/// Carries bytes between the two until neither has more to say; the last order that reached the server.
fn exchange(client: &mut Session, server: &mut Session) -> Option<NewOrderSingle> {
    let mut buffer = [0; 512];
    let mut order = None;
    loop {
        let mut is_quiet = true;
        for is_up in [true, false] {
            let (from, to) = if is_up {
                (&mut *client, &mut *server)
            } else {
                (&mut *server, &mut *client)
            };
            while let Some(bytes) = from.poll_transmit(&mut buffer) {
                is_quiet = false;
                if to.handle_bytes(NOW, bytes) != bytes.len() {
                    return None;
                }
            }
            while let Some(event) = to.poll_event() {
                if let Event::Message { .. } = event {
                    order = to.message().and_then(|m| NewOrderSingle::decode(&m).ok());
                }
            }
        }
        if is_quiet {
            return order;
        }
    }
}
