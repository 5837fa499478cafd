//! From a packet to mass quotes, and from the venue's answers back to what is believed live: everything
//! between sockets and the quoter.
//!
//! ```text
//! packet ─► Channel ─► QuotePath::on_event ─► Books ─► (end of the match event) Eye, Quoter::on_underlying ─► QuoteWire ─► out
//! bytes  ─► Session ─► QuotePath::answers ─► read_quote_answer · ExecutionReport ─► Quoter · Eye ─► QuoteWire ─► out
//! ```
//! The electronic eye looks first: after the quoter, quotes that move are under way, and it trades with none
//! that could be ours. Its orders go out by the same session; their numbers begin above those of the quotes,
//! and above those of every process before this one.
//!
//! One thread, calls in order. After it is made, nothing here allocates, locks or logs: `tests.rs` counts.

mod answers;
mod executions;
mod market;
mod operator;
mod session;
mod wire;

use tickwire_book::Books;
use tickwire_fix::{MassQuoteTemplate, OrderTemplate, QuotePrices, Session, Store};
use tickwire_market::{BookUpdate, Counters, InstrumentId, Nanos, Price, Symbol, TradingStatus};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{Controls, Eye, EyeConfig, MarketMaker, Quoter, QuoterConfig};

use crate::as_orders::AsOrders;
use crate::gather::Gathered;
use crate::reconciliation::Reconciliation;
pub use executions::{Executions, Source, Traded, Trades};
use market::Underlying;
pub(crate) use session::lasting_session;
pub use session::{VenueSession, decimals_of, session_of};
use tickwire_node::controls::Policy;
use wire::QuoteEntryForm;
pub use wire::QuoteWire;

/// An instrument that is not quoted.
const NONE: u16 = u16::MAX;
/// Identifiers below are those of quotes: their places.
const ORDERS_FROM: u64 = 1 << 16;

/// A market maker's session; its store may outlive the process.
pub type QuoteSession = Session<Box<dyn Store + Send>>;

/// What a quoting session is made with.
pub struct QuoteSetup<'s> {
    /// Limits and sizes of the quoter.
    pub quoter: QuoterConfig,
    /// Of the options, in the order of the quotes.
    pub instruments: &'s [InstrumentId],
    /// By quote, in the order of `instruments`.
    pub symbols: &'s [Symbol],
    /// Thousandths, in the same order.
    pub deltas: &'s [i32],
    /// The order entry session.
    pub session: QuoteSession,
    /// Quotes are orders, a bid and an offer each.
    pub by_orders: bool,
    /// Above every number that orders of this session have had.
    pub first_order: u64,
}

/// Why a setup cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotQuotable(pub &'static str);

/// The options, in the order of the quotes.
struct Options {
    /// By instrument: the place of its quote.
    by_instrument: Box<[u16]>,
    /// The same by symbol, sorted.
    by_symbol: Box<[(Symbol, u16)]>,
    deltas: Box<[i32]>,
    /// Which of them trade, as the venue last said: those that the eye looks at when it is turned on.
    is_open: Box<[bool]>,
    tick: Price,
}

/// Books, market maker and session of one quoting thread.
pub struct QuotePath<O, T> {
    /// The books of the channel.
    pub books: Books,
    /// What is quoted and what the eye does.
    pub maker: MarketMaker,
    /// Where quotes leave.
    pub wire: QuoteWire<O>,
    /// What was traded.
    pub executions: Executions<T>,
    /// What is known of the session with the venue.
    pub session: VenueSession,
    options: Options,
    underlying: Underlying,
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// Quotes nothing until it is logged on and has a ladder. The session knows its peer: an initiator's.
    ///
    /// # Errors
    /// What the message cannot carry.
    pub fn new(
        setup: QuoteSetup<'_>,
        books: Books,
        out: O,
        trades: T,
    ) -> Result<QuotePath<O, T>, NotQuotable> {
        let config = setup.quoter;
        let first_order = setup.first_order.max(ORDERS_FROM).next_multiple_of(2);
        let entry = if setup.by_orders {
            let entry = AsOrders::new(setup.symbols, config.option_tick, first_order);
            QuoteEntryForm::Orders(Box::new(entry))
        } else {
            let prices = QuotePrices {
                tick: config.option_tick,
                decimals: decimals_of(config.option_tick),
            };
            let template = MassQuoteTemplate::new(&setup.session, setup.symbols, prices, config.entries_max)
                .ok_or(NotQuotable(
                    "prices of the options do not fit into a mass quote of this session",
                ))?;
            QuoteEntryForm::MassQuotes(Box::new(template))
        };
        let last = setup.instruments.iter().map(|id| id.index()).max().unwrap_or(0);
        let mut quotes = vec![NONE; last.max(config.underlying.index()) + 1].into_boxed_slice();
        let mut symbols = Vec::with_capacity(setup.symbols.len());
        for ((quote, id), symbol) in (0_u16..).zip(setup.instruments).zip(setup.symbols) {
            quotes[id.index()] = quote;
            symbols.push((*symbol, quote));
        }
        symbols.sort_unstable();
        Ok(QuotePath {
            books,
            maker: MarketMaker::new(Quoter::new(config)),
            wire: QuoteWire {
                session: setup.session,
                entry,
                orders: Box::default(),
                first_order,
                out: Gathered::new(out),
                now: Nanos::ZERO,
                sent: [0; 2],
                orders_sent: 0,
                controls: None,
                stopped_by: None,
                option_tick: config.option_tick,
                counters: Counters::default(),
            },
            executions: Executions::new(trades),
            session: VenueSession {
                ended: None,
                refused: None,
                unread: 0,
                reconciliation: Reconciliation::default(),
                is_catching_up: false,
                venue_cancels: (Policy::Ignore, 0),
                answer_max_ns: config.answer_max_ns,
                named: Vec::with_capacity(usize::from(config.quotes).max(64)),
            },
            options: Options {
                by_instrument: quotes,
                by_symbol: symbols.into_boxed_slice(),
                deltas: setup.deltas.into(),
                is_open: vec![true; setup.instruments.len()].into_boxed_slice(),
                tick: config.option_tick,
            },
            underlying: Underlying {
                id: config.underlying,
                tick: config.underlying_tick,
                top: BookUpdate::default(),
                is_new: false,
                status: TradingStatus::Unknown,
            },
        })
    }

    /// Has every quote and order pass the controls from now on. Their slots: the quotes in their order, then
    /// the underlying.
    pub fn set_controls(&mut self, controls: Controls) {
        self.wire.controls = Some(Box::new(controls));
    }

    /// From now on a venue whose Logon does not confirm that it cancels when the connection is lost is not
    /// quoted at, or it is said.
    pub fn set_venue_cancels(&mut self, policy: Policy, tag: u32) {
        self.session.venue_cancels = (policy, tag);
    }

    /// The slot of the underlying among the controls: behind those of the quotes.
    fn quoter_slots(&self) -> usize {
        self.options.is_open.len()
    }

    /// Lets an electronic eye look at the same options, whose instruments and symbols are those of the setup;
    /// it is off.
    ///
    /// # Errors
    /// A symbol that an order cannot have.
    pub fn open_eye(
        &mut self,
        config: EyeConfig,
        instruments: &[InstrumentId],
        symbols: &[Symbol],
        underlying: Symbol,
    ) -> Result<(), NotQuotable> {
        let session = &self.wire.session;
        let templates: Option<Vec<_>> = symbols
            .iter()
            .chain([&underlying])
            .map(|symbol| OrderTemplate::new(session, *symbol))
            .collect();
        let templates = templates.ok_or(NotQuotable(
            "orders in the options cannot be written for this session",
        ))?;
        self.wire.orders = templates.into_boxed_slice();
        self.maker.set_eye(Eye::new(config, instruments));
        Ok(())
    }

    /// Everything counted by books, quoter, eye and session.
    pub fn counters(&self) -> Counters {
        let mut all = self.books.counters().clone();
        self.maker.count_into(&mut all);
        all.merge(self.wire.session.counters());
        all.merge(&self.wire.counters);
        all
    }
}
