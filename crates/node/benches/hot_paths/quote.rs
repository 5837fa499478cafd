//! What a mass quote of 15 options costs from an event of their underlying to its bytes in memory, without
//! decoding: of a strategy, by `Context::mass_quote`, and of controls and prepared message alone, for the
//! same prices. The answer is checked: a message for every event.

use std::hint::black_box;

use tickwire_book::{Books, BooksConfig};
use tickwire_fix::{MassQuoteHead, MassQuoteTemplate, QuoteDecimals, QuotePrices};
use tickwire_market::{
    BookState, Cause, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent,
    MassQuoteEntry, OrderId, Price, Qty, SeqNo, Side, Symbol, Venue, Volume,
};
use tickwire_node::hot::OrderOut;
use tickwire_node::memory;
use tickwire_runtime::clock::Clock;
use tickwire_trading::strategy::{BookChange, Context, Quote, Strategy, Subscription};
use tickwire_trading::{Controls, ControlsConfig};

/// Options of one message.
const OPTIONS: u32 = 15;
/// The underlying, behind the options.
const UNDERLYING: InstrumentId = InstrumentId(OPTIONS + 1);

fn symbol(n: u32) -> Symbol {
    Symbol::new(format!("ESZ6 C{}", 5_000 + 5 * n).as_bytes()).expect("a symbol")
}

/// Prices of an option by the how many-th message it is.
fn prices(message: u64, option: u32) -> [Price; 2] {
    let tick = Price::from_4dp(100).raw();
    let bid = 1_000 + u64::from(option) * 10 + message % 2;
    [bid, bid + 4].map(|ticks| Price::from_raw(tick * ticks as i64))
}

/// Quotes every option at each change of the underlying.
struct Quoting {
    messages: u64,
}

impl Strategy for Quoting {
    fn subscriptions(&self) -> Vec<Subscription> {
        (1..=OPTIONS + 1)
            .map(|n| Subscription::Symbol(symbol(n)))
            .collect()
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if change.instrument != UNDERLYING {
            return;
        }
        self.messages += 1;
        let mut quotes = [Quote::none(UNDERLYING); OPTIONS as usize];
        for (option, quote) in (1..).zip(&mut quotes) {
            let [bid, ask] = prices(self.messages, option);
            *quote = Quote::new(InstrumentId(option), 10, bid, ask);
        }
        // The first is stopped: there are no prices yet that its own could be compared with.
        let _ = ctx.mass_quote(&quotes);
    }
}

fn books() -> Books {
    Books::new(BooksConfig {
        instruments: OPTIONS + 2,
        orders: 1 << 10,
        levels: 1 << 10,
        initial: BookState::Live,
        ..BooksConfig::default()
    })
}

/// As many mass quotes of a strategy.
pub(crate) fn by_strategy(count: u64) -> u64 {
    let clock = Clock::calibrate();
    let event = |seq: u64, kind, instrument, order: u64, side, price| MarketEvent {
        seq: SeqNo(seq),
        kind,
        instrument,
        order_id: OrderId(order),
        side,
        price,
        qty: Volume(100),
        venue: Venue::Nasdaq,
        flags: EventFlags::LAST,
        recv_ts: clock.now(),
        ..MarketEvent::default()
    };
    let strategy = Quoting { messages: 0 };
    let mut hot =
        memory::strategy_path::<_, false>(strategy, books(), symbol(1), clock.clone()).expect("it logs on");
    for n in 2..=OPTIONS + 1 {
        let instrument = Instrument {
            id: InstrumentId(n),
            symbol: symbol(n),
            tick: Price::from_4dp(100),
            ..Instrument::default()
        };
        memory::define(&mut hot, &instrument);
    }
    // What the prices are compared with.
    for n in 1..=OPTIONS {
        for (side, price) in Side::BOTH.into_iter().zip(prices(0, n)) {
            let order = u64::from(2 * n + side as u32);
            hot.on_event(&event(1, EventKind::Add, InstrumentId(n), order, side, price));
        }
    }
    let before = hot.sessions[0].out.orders;
    for n in 0..count {
        let (kind, order) = match n % 2 {
            0 => (EventKind::Add, 500 + n),
            _ => (EventKind::Delete, 499 + n),
        };
        let price = Price::from_4dp(50_000_000);
        let event = event(2 + n, kind, UNDERLYING, order, Side::Bid, price);
        hot.on_event(black_box(&event));
        hot.let_go();
        memory::accept_quotes(&mut hot, event.recv_ts);
    }
    let sent = hot.sessions[0].out.orders - before;
    assert_eq!(sent, count, "a message for every event");
    sent
}

/// As many mass quotes of the same prices, by controls and prepared message alone.
pub(crate) fn by_template(count: u64) -> u64 {
    let clock = Clock::calibrate();
    let mut hot = memory::memory_path::<false>(books(), symbol(1), clock.clone()).expect("it logs on");
    let session = &mut hot.sessions[0];
    let symbols: Vec<Symbol> = (1..=OPTIONS).map(symbol).collect();
    let form = QuotePrices {
        tick: Price::from_4dp(100),
        decimals: QuoteDecimals::Two,
    };
    let template = MassQuoteTemplate::new(&session.fix, &symbols, form, OPTIONS as u8);
    let mut template = template.expect("the prices fit");
    // Those that the strategy's quotes pass.
    let limits = memory::limits_of_memory();
    let mut controls = Controls::new(
        ControlsConfig {
            qty_max: limits.max_order_qty,
            band_bp: Some(limits.price_band_bp),
            ..limits.controls
        },
        OPTIONS + 1,
    );
    for quote in 0..OPTIONS {
        let [bid, ask] = prices(0, quote + 1);
        let mid = Price::from_raw((bid.raw() + ask.raw()) / 2);
        controls.observe(clock.now(), quote as usize, mid);
    }
    let ticks = |price: Price| (price.raw() / form.tick.raw()) as u16;
    let mut id = 0;
    for n in 0..count {
        let now = clock.now();
        let mut entries = [MassQuoteEntry::default(); OPTIONS as usize];
        for (quote, entry) in (0..).zip(&mut entries) {
            let [bid, ask] = prices(n, u32::from(quote) + 1);
            *entry = MassQuoteEntry {
                quote,
                bid_ticks: ticks(bid),
                ask_ticks: ticks(ask),
                bid_qty: Qty(10),
                ask_qty: Qty(10),
            };
        }
        for entry in black_box(&entries) {
            let price = |ticks: u16| Price::from_raw(form.tick.raw() * i64::from(ticks));
            let sides = [
                (price(entry.bid_ticks), entry.bid_qty),
                (price(entry.ask_ticks), entry.ask_qty),
            ];
            controls
                .check_quote(now, entry.quote.into(), sides)
                .expect("nothing stops it");
        }
        for entry in &entries {
            controls.charge(now, entry.quote.into());
        }
        id += 1;
        let head = MassQuoteHead {
            id,
            cause: Cause {
                venue: Venue::Nasdaq,
                seq: SeqNo(n),
                recv_ts: now,
            },
            reset: false,
        };
        let encoded = template.send(&mut session.fix, now, &head, &entries);
        let written = encoded.expect("it is logged on");
        session.out.send(written).expect("memory takes it");
    }
    id
}
