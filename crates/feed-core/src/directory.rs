//! The instruments of a feed that numbers them itself: names by number, what is wanted of them, and which have closed.

use crate::joins::Joins;
use crate::{Rule, Subscriptions, SubscriptionsFull};
use alloc::{boxed::Box, vec};
use tickwire_market::{Instrument, InstrumentId, Price, Qty, Symbol, Venue};

/// See the module's description. All memory is taken at construction.
pub struct Directory {
    venue: Venue,
    subscriptions: Subscriptions,
    instruments: Box<[Instrument]>,
    /// How many have a name.
    known: u32,
    /// A bit for every one that has closed.
    closed: Box<[u64]>,
    closed_count: u32,
}

impl Directory {
    /// An empty directory of instruments numbered below `instruments_max`, of which these are wanted (`None`: all).
    pub fn new(venue: Venue, instruments_max: u32, symbols: Option<&[Symbol]>) -> Directory {
        let instruments = instruments_max.clamp(1, 1 << 22) as usize;
        Directory {
            venue,
            subscriptions: Subscriptions::new(instruments, symbols),
            instruments: vec![Instrument::default(); instruments].into(),
            known: 0,
            closed: vec![0; instruments.div_ceil(64)].into(),
            closed_count: 0,
        }
    }

    /// The venue whose instruments these are.
    pub fn venue(&self) -> Venue {
        self.venue
    }

    /// Numbers are below this.
    pub fn capacity(&self) -> usize {
        self.instruments.len()
    }

    /// What is known about an instrument.
    pub fn get(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(id.index()).filter(|i| !i.symbol.is_empty())
    }

    /// The instruments so far, by number.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments.iter().filter(|i| !i.symbol.is_empty())
    }

    /// The wanted ones of them.
    pub fn wanted(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments().filter(|i| self.subscriptions.has(i.id))
    }

    /// The number of a symbol, if it is known. A search: not for the hot path.
    pub fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.instruments().find(|i| i.symbol == *symbol).map(|i| i.id)
    }

    /// Adds a rule of what is wanted, and names the instruments of which it changes that.
    pub fn select(
        &mut self,
        rule: Rule,
        joins: &mut Joins,
        changed: &mut dyn FnMut(InstrumentId),
    ) -> Result<(), SubscriptionsFull> {
        let known = self.instruments.iter().filter(|i| !i.symbol.is_empty());
        joins.select(&mut self.subscriptions, |subscriptions| {
            subscriptions.apply(rule, known, changed)
        })
    }

    /// The rules that hold.
    pub fn rules(&self, each: &mut dyn FnMut(&Rule)) {
        self.subscriptions.rules(each);
    }

    /// Whether messages of this instrument pass.
    #[inline(always)]
    pub fn has(&self, id: InstrumentId) -> bool {
        self.subscriptions.has(id)
    }

    /// Lets an instrument's messages pass, or no more.
    pub fn set_open(&mut self, id: InstrumentId, is_open: bool) {
        self.subscriptions.set(id, is_open);
    }

    /// The venue says who this number is; `false` for one out of range.
    pub fn enter(&mut self, id: InstrumentId, symbol: Symbol, lot: Qty) -> bool {
        let Some(entry) = self.instruments.get_mut(id.index()) else {
            return false;
        };
        self.known += u32::from(entry.symbol.is_empty() && !symbol.is_empty());
        *entry = Instrument {
            id,
            venue: self.venue,
            symbol,
            tick: Price::default(),
            lot,
            is_test: false,
        };
        self.subscriptions.learn(id, &symbol);
        true
    }

    /// Numbers mean other instruments from now on.
    pub fn forget(&mut self) {
        self.instruments.fill(Instrument::default());
        self.subscriptions.forget_numbers();
        self.closed.fill(0);
        (self.known, self.closed_count) = (0, 0);
    }

    /// The venue says whether an instrument has closed for the day. Of a number out of range nothing is kept.
    pub fn set_closed(&mut self, id: InstrumentId, is_closed: bool) {
        let bit = 1 << (id.index() % 64);
        let Some(word) = self.closed.get_mut(id.index() / 64) else {
            return;
        };
        match (*word & bit != 0, is_closed) {
            (false, true) => (*word, self.closed_count) = (*word | bit, self.closed_count + 1),
            (true, false) => (*word, self.closed_count) = (*word & !bit, self.closed_count - 1),
            _ => {}
        }
    }

    /// Whether every instrument known, wanted or not, has closed.
    pub fn is_closed(&self) -> bool {
        self.known > 0 && self.closed_count >= self.known
    }
}
