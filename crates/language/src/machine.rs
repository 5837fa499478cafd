//! A checked file as a [`Strategy`].

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use tickwire_book::BookRef;
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, Instrument, InstrumentId, MarketEvent, Nanos, Price, Side, Symbol,
    TradingStatus,
};
use tickwire_trading::ReportKind;
use tickwire_trading::strategy::{
    BookChange, Context, NotSent, OrderEvent, Strategy, Subscription, Ticket, TimerId, Trade,
};

use crate::interpret::{Engine, Host, Interpreter, Trap};
use crate::ir::{Event, HostCall, InstrumentUse, Program, word};
use crate::library;

/// No handler.
const NONE: u32 = u32::MAX;

/// The handlers of an instrument, by event.
#[derive(Clone, Copy, Debug)]
struct Calls {
    book: u32,
    trade: u32,
    quote: u32,
    imbalance: u32,
    status: u32,
    stale: u32,
    live: u32,
    order: u32,
}

/// What a run has come to, beside orders and books.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcomes {
    /// Requests that were stopped before they left.
    pub not_sent: u64,
    /// Why the last of them was.
    pub last: Option<NotSent>,
    /// The handler that was left in the middle: everything is cancelled, and nothing runs any more.
    pub trap: Option<(u32, Trap)>,
}

/// A checked file as a strategy, run by the interpreter or another [`Engine`].
///
/// After a trap (a division by 0, an index outside its array) everything open is cancelled and no handler is
/// called any more.
#[derive(Debug)]
pub struct Machine<E = Interpreter> {
    program: Arc<Program>,
    engine: E,
    memory: Vec<i64>,
    /// The number of each instrument, [`InstrumentId::WHOLE_FEED`] until the feed has named it.
    ids: Vec<InstrumentId>,
    calls: Vec<Calls>,
    timers: Vec<u32>,
    start: u32,
    stop: u32,
    /// Texts for the host's log, which takes none that could go away.
    notes: Vec<&'static str>,
    outcomes: Outcomes,
}

impl Machine<Interpreter> {
    /// Run by the interpreter.
    pub fn interpreted(program: Arc<Program>) -> Machine<Interpreter> {
        let engine = Interpreter::new(&program);
        Machine::new(program, engine)
    }
}

impl<E: Engine> Machine<E> {
    /// Takes all memory. The texts of the file's notes stay in memory until the process ends, once for each
    /// machine that is made.
    pub fn new(program: Arc<Program>, engine: E) -> Machine<E> {
        let find = |event| program.handler(event).map_or(NONE, |at| at as u32);
        let calls = (0..program.instruments.len() as u16).map(|n| Calls {
            book: find(Event::Book(n)),
            trade: find(Event::Trade(n)),
            quote: find(Event::Quote(n)),
            imbalance: find(Event::Imbalance(n)),
            status: find(Event::Status(n)),
            stale: find(Event::Stale(n)),
            live: find(Event::Live(n)),
            order: find(Event::Order(n)),
        });
        let notes = program.notes.iter().map(|text| {
            let text: &'static str = Box::leak(text.clone().into_boxed_str());
            text
        });
        Machine {
            memory: program.memory.clone(),
            ids: vec![InstrumentId::WHOLE_FEED; program.instruments.len()],
            calls: calls.collect(),
            timers: (0..program.timers.len() as u8)
                .map(|n| find(Event::Timer(n)))
                .collect(),
            start: find(Event::Start),
            stop: find(Event::Stop),
            notes: notes.collect(),
            outcomes: Outcomes::default(),
            engine,
            program,
        }
    }

    /// The file.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What a run has come to.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Takes the place of a machine that runs: what the host has told that one of each instrument, this one
    /// knows then. State, windows and counters begin anew.
    ///
    /// # Errors
    /// The symbol of an instrument that the other does not use, so that no host tells of it. Nothing is
    /// taken.
    pub fn take_over<F>(&mut self, from: &Machine<F>) -> Result<(), Symbol> {
        let find = |used: &InstrumentUse| {
            let mut known = from.program.instruments.iter();
            let place = known.position(|known| (known.symbol, known.venue) == (used.symbol, used.venue));
            place.ok_or(used.symbol)
        };
        let places = self.program.instruments.iter().map(find);
        let places: Vec<usize> = places.collect::<Result<_, Symbol>>()?;
        for (place, theirs) in places.into_iter().enumerate() {
            self.ids[place] = from.ids[theirs];
            let own = self.program.instruments[place].at as usize;
            let theirs = from.program.instruments[theirs].at as usize;
            let length = word::INSTRUMENT_LEN as usize;
            self.memory[own..own + length].copy_from_slice(&from.memory[theirs..theirs + length]);
        }
        Ok(())
    }

    /// The words of memory: state by [`Program::states`], counters by [`Program::counters`].
    pub fn memory(&self) -> &[i64] {
        &self.memory
    }

    #[inline]
    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        self.ids
            .iter()
            .position(|id| *id == instrument)
            .filter(|_| instrument != InstrumentId::WHOLE_FEED)
    }

    #[inline]
    fn word(&mut self, place: usize, at: u32) -> &mut i64 {
        &mut self.memory[(self.program.instruments[place].at + at) as usize]
    }

    #[inline]
    fn call(&mut self, handler: u32, ctx: &mut Context<'_>) {
        if handler == NONE || self.outcomes.trap.is_some() {
            return;
        }
        self.memory[word::NOW as usize] = signed(ctx.now().0);
        let mut host = Hosted {
            program: &self.program,
            ids: &self.ids,
            notes: &self.notes,
            outcomes: &mut self.outcomes,
            ctx,
        };
        let done = self
            .engine
            .run(&self.program, handler as usize, &mut self.memory, &mut host);
        if let Err(trap) = done {
            self.trapped(handler, trap, ctx);
        }
    }

    #[cold]
    fn trapped(&mut self, handler: u32, trap: Trap, ctx: &mut Context<'_>) {
        self.outcomes.trap = Some((handler, trap));
        let line = self.trap_line().unwrap_or(0);
        ctx.note(trap.kind.text(), line as i64);
        ctx.cancel_all();
    }

    /// The line of the file in which a handler was left.
    pub fn trap_line(&self) -> Option<usize> {
        let (handler, trap) = self.outcomes.trap?;
        let span = self.program.handlers[handler as usize]
            .spans
            .get(trap.op as usize)?;
        Some(self.program.line(*span))
    }

    fn event(&mut self, words: &[i64]) {
        let from = word::EVENT as usize;
        self.memory[from..from + words.len()].copy_from_slice(words);
    }

    #[inline]
    fn show(&mut self, place: usize, update: &BookUpdate, now: Nanos) {
        let base = self.program.instruments[place].at as usize;
        let words = &mut self.memory[base..base + word::INSTRUMENT_LEN as usize];
        words[word::IS_LIVE as usize] = i64::from(update.state == BookState::Live);
        words[word::BID as usize] = update.price[0].raw();
        words[word::BID_QTY as usize] = signed(update.qty[0].0);
        words[word::ASK as usize] = update.price[1].raw();
        words[word::ASK_QTY as usize] = signed(update.qty[1].0);
        words[word::UPDATED as usize] = signed(now.0);
        words[word::HAS_UPDATED as usize] = 1;
    }
}

/// The words that have the host run a check of a test.
pub(crate) const CHECK: &str = "\u{0}check ";

impl<E: Engine> Strategy for Machine<E> {
    fn subscriptions(&self) -> Vec<Subscription> {
        let symbols = self
            .program
            .instruments
            .iter()
            .map(|used| Subscription::Symbol(used.symbol));
        symbols.collect()
    }

    fn on_start(&mut self, ctx: &mut Context<'_>) {
        self.call(self.start, ctx);
    }

    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        let _ = ctx;
        let of_venue = |venue: Option<_>| venue.is_none_or(|venue| venue == instrument.venue);
        let known = self.place(instrument.id);
        let found = known.or_else(|| {
            let used = self.program.instruments.iter().zip(&self.ids);
            let mut fits = used.map(|(used, id)| {
                used.symbol == instrument.symbol && of_venue(used.venue) && *id == InstrumentId::WHOLE_FEED
            });
            // One that names this venue rather than one that names none.
            let named = self
                .program
                .instruments
                .iter()
                .zip(&self.ids)
                .position(|(used, id)| {
                    used.symbol == instrument.symbol
                        && used.venue == Some(instrument.venue)
                        && *id == InstrumentId::WHOLE_FEED
                });
            named.or_else(|| fits.position(|fits| fits))
        });
        let Some(place) = found else { return };
        self.ids[place] = instrument.id;
        *self.word(place, word::TICK) = instrument.tick.raw().max(1);
        *self.word(place, word::LOT) = i64::from(instrument.lot.0);
        *self.word(place, word::IS_KNOWN) = 1;
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let Some(place) = self.place(change.instrument) else {
            return;
        };
        self.show(place, change.after, ctx.now());
        self.call(self.calls[place].book, ctx);
    }

    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        let Some(place) = self.place(trade.instrument) else {
            return;
        };
        let (price, qty) = (trade.price.raw(), signed(trade.qty.0));
        *self.word(place, word::LAST) = price;
        *self.word(place, word::HAS_LAST) = 1;
        *self.word(place, word::LAST_QTY) = qty;
        let side = trade.resting.map_or(0, |side| side as i64);
        self.event(&[price, qty, side, i64::from(trade.resting.is_some())]);
        self.call(self.calls[place].trade, ctx);
    }

    fn on_quote(&mut self, ctx: &mut Context<'_>, quote: &MarketEvent) {
        let Some(place) = self.place(quote.instrument) else {
            return;
        };
        self.event(&[
            quote.price.raw(),
            signed(quote.qty.0),
            quote.ask_price.raw(),
            signed(quote.ask_qty.0),
        ]);
        self.call(self.calls[place].quote, ctx);
    }

    fn on_imbalance(&mut self, ctx: &mut Context<'_>, e: &MarketEvent) {
        let Some(place) = self.place(e.instrument) else {
            return;
        };
        let has_side = !e.flags.has(tickwire_market::EventFlags::NO_SIDE);
        self.event(&[
            e.price.raw(),
            signed(e.qty.0),
            signed(e.imbalance_qty.0),
            e.side as i64,
            i64::from(has_side),
            e.near_price.raw(),
            e.far_price.raw(),
        ]);
        self.call(self.calls[place].imbalance, ctx);
    }

    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        for place in 0..self.ids.len() {
            let id = self.ids[place];
            let is_meant = id == instrument || ctx.is_whole_feed_of(instrument, id);
            if is_meant && id != InstrumentId::WHOLE_FEED {
                self.event(&[status as i64]);
                self.call(self.calls[place].status, ctx);
            }
        }
    }

    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        let Some(place) = self.place(instrument) else {
            return;
        };
        *self.word(place, word::IS_LIVE) = 0;
        self.call(self.calls[place].stale, ctx);
    }

    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        let Some(place) = self.place(instrument) else {
            return;
        };
        *self.word(place, word::IS_LIVE) = 1;
        self.call(self.calls[place].live, ctx);
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let order = &event.order;
        let Some(place) = self.place(order.instrument) else {
            return;
        };
        let (report, price) = match event.kind {
            ReportKind::Accepted => (0, None),
            ReportKind::Filled { price, .. } => (1, Some(price)),
            ReportKind::Cancelled => (2, None),
            ReportKind::Rejected => (3, None),
            ReportKind::Replaced { .. } => (4, None),
            ReportKind::CancelRejected => (5, None),
            ReportKind::ReplaceRejected { .. } => (6, None),
            ReportKind::Broken { price, .. } => (7, Some(price)),
            // The language has no stop orders.
            ReportKind::Triggered => return,
        };
        self.event(&[
            signed(order.id.0),
            report,
            i64::from(event.filled.0),
            price.map_or(0, Price::raw),
            i64::from(price.is_some()),
            order.side as i64,
            i64::from(order.state.is_open()),
            i64::from(order.qty.0),
            i64::from(order.filled.0),
            i64::from(order.remaining().0),
            order.price.raw(),
            event.replaced.map_or(0, |id| signed(id.0)),
            i64::from(event.replaced.is_some()),
        ]);
        self.call(self.calls[place].order, ctx);
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        if let Some(handler) = self.timers.get(usize::from(timer.0)) {
            self.call(*handler, ctx);
        }
    }

    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        if let Some(number) = words.strip_prefix(CHECK) {
            let number = number.parse().unwrap_or(u16::MAX);
            let trap = self.outcomes.trap.take();
            self.memory[word::CHECKED as usize] = 0;
            let handler = self
                .program
                .handler(Event::Check(number))
                .map_or(NONE, |at| at as u32);
            self.call(handler, ctx);
            self.outcomes.trap = trap.or(self.outcomes.trap);
            return;
        }
        let found = self
            .program
            .commands
            .iter()
            .position(|known| known == words.trim());
        if let Some(n) = found {
            let handler = self
                .program
                .handler(Event::Command(n as u16))
                .map_or(NONE, |at| at as u32);
            self.call(handler, ctx);
        }
    }

    fn on_stop(&mut self, ctx: &mut Context<'_>) {
        self.call(self.stop, ctx);
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        for counter in &self.program.counters {
            tell(&counter.name, self.memory[counter.at as usize]);
        }
        for window in self.program.windows.iter().filter(|window| window.over > 0) {
            let mut name = String::from("window_lost_");
            name.push_str(&window.name);
            tell(&name, library::lost(window, &self.memory));
        }
        tell("requests_not_sent", signed(self.outcomes.not_sent));
        tell("trap_in_line", self.trap_line().unwrap_or(0) as i64);
    }
}

#[inline]
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// What a handler may ask, by a context.
struct Hosted<'a, 'b, 'c> {
    program: &'a Program,
    ids: &'a [InstrumentId],
    notes: &'a [&'static str],
    outcomes: &'a mut Outcomes,
    ctx: &'b mut Context<'c>,
}

impl Hosted<'_, '_, '_> {
    fn book(&self, n: u16) -> Option<BookRef<'_>> {
        let id = self.ids[usize::from(n)];
        if id == InstrumentId::WHOLE_FEED {
            return None;
        }
        self.ctx.book(id)
    }

    fn left<T>(&mut self, done: Result<T, NotSent>) -> Option<T> {
        match done {
            Ok(done) => Some(done),
            Err(reason) => {
                self.outcomes.not_sent += 1;
                self.outcomes.last = Some(reason);
                None
            }
        }
    }
}

fn top(memory: &[i64], program: &Program, n: u16) -> library::Top {
    let base = program.instruments[usize::from(n)].at as usize;
    if memory[base + word::IS_LIVE as usize] == 0 {
        return [0; 4];
    }
    let from = base + word::BID as usize;
    [memory[from], memory[from + 1], memory[from + 2], memory[from + 3]]
}

/// A quantity that an order can have; 0 is stopped by the checks by its name.
fn quantity(qty: i64) -> u32 {
    match qty {
        ..=0 => 0,
        _ => u32::try_from(qty).unwrap_or(u32::MAX),
    }
}

impl Host for Hosted<'_, '_, '_> {
    fn call(&mut self, site: usize, memory: &mut [i64]) {
        const S: usize = word::SCRATCH as usize;
        let program = self.program;
        match &program.sites[site].call {
            HostCall::Level(n, side) => {
                let level = usize::try_from(memory[S]).ok();
                let level = level.and_then(|at| self.book(*n)?.levels(*side).nth(at));
                memory[S..S + 4].copy_from_slice(&match level {
                    Some(level) => [level.price.raw(), 1, signed(level.qty.0), i64::from(level.orders)],
                    None => [0; 4],
                });
            }
            HostCall::Position(n) => {
                let position = self.ctx.position(self.ids[usize::from(*n)]);
                let cost = position.cost.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                let working = |side: Side| signed(position.working[side as usize].0);
                memory[S..S + 4].copy_from_slice(&[
                    position.qty,
                    cost,
                    working(Side::Bid),
                    working(Side::Ask),
                ]);
            }
            HostCall::Trading(n) => {
                memory[S] = i64::from(self.ctx.is_trading(self.ids[usize::from(*n)]));
            }
            HostCall::Order => {
                let id = ClientOrderId(memory[S] as u64);
                let order = self.ctx.order(id);
                memory[S..S + 6].copy_from_slice(&match order {
                    Some(order) => [
                        i64::from(order.state.is_open()),
                        order.price.raw(),
                        i64::from(order.qty.0),
                        i64::from(order.filled.0),
                        i64::from(order.remaining().0),
                        order.side as i64,
                    ],
                    None => [0; 6],
                });
            }
            HostCall::OpenOrders(n) => {
                let id = self.ids[usize::from(*n)];
                let count = self
                    .ctx
                    .open_orders()
                    .filter(|order| order.instrument == id)
                    .count();
                memory[S] = count as i64;
            }
            HostCall::Submit {
                instrument,
                side,
                lasting,
                is_market,
                on_stale,
            } => {
                let (id, qty) = (self.ids[usize::from(*instrument)], quantity(memory[S]));
                let ticket = match is_market {
                    true => Ticket::market(*side, id, qty),
                    false => Ticket::limit(*side, id, qty, Price::from_raw(memory[S + 1])),
                };
                let ticket = ticket.lasting(*lasting);
                let ticket = if *on_stale { ticket.on_stale_book() } else { ticket };
                let done = self.ctx.submit(ticket);
                let id = self.left(done);
                (memory[S], memory[S + 1]) = (id.map_or(0, |id| signed(id.0)), i64::from(id.is_some()));
            }
            HostCall::Replace => {
                let id = ClientOrderId(memory[S] as u64);
                let price = Price::from_raw(memory[S + 2]);
                let done = self.ctx.replace(id, quantity(memory[S + 1]), price);
                let id = self.left(done);
                (memory[S], memory[S + 1]) = (id.map_or(0, |id| signed(id.0)), i64::from(id.is_some()));
            }
            HostCall::Cancel => {
                let done = self.ctx.cancel(ClientOrderId(memory[S] as u64));
                memory[S] = i64::from(self.left(done).is_some());
            }
            HostCall::CancelAll => memory[S] = i64::from(self.ctx.cancel_all()),
            HostCall::SetTimer(n) => self.ctx.set_timer(TimerId(*n), Nanos(memory[S].max(0) as u64)),
            HostCall::StopTimer(n) => self.ctx.stop_timer(TimerId(*n)),
            HostCall::Note(n) => self.ctx.note(self.notes[usize::from(*n)], memory[S]),
            HostCall::Push(n) => {
                let (value, now) = (memory[S], memory[S + 1]);
                library::push(&program.windows[usize::from(*n)], memory, value, now);
            }
            HostCall::Window(n) => {
                let now = memory[S];
                let seen = library::view(&program.windows[usize::from(*n)], memory, now);
                memory[S..S + 7].copy_from_slice(&[
                    seen.count,
                    seen.sum,
                    seen.min,
                    seen.max,
                    seen.newest,
                    seen.oldest,
                    i64::from(seen.count > 0),
                ]);
            }
            HostCall::Table(n, is_linear) => {
                let table = &program.tables[usize::from(*n)];
                let found = match is_linear {
                    true => Some(library::linear(table, memory[S])),
                    false => library::step(table, memory[S]),
                };
                (memory[S], memory[S + 1]) = (found.unwrap_or(0), i64::from(found.is_some()));
            }
            HostCall::Fair(of) => {
                let found = library::fair(of.iter().map(|n| top(memory, program, *n)));
                (memory[S], memory[S + 1]) = (found.unwrap_or(0), i64::from(found.is_some()));
            }
            HostCall::Weighted(n) => {
                let found = library::weighted(top(memory, program, *n));
                (memory[S], memory[S + 1]) = (found.unwrap_or(0), i64::from(found.is_some()));
            }
        }
    }
}
