//! What is learned before anything is quoted: the books, the underlying, its options, and a price to begin
//! with.

use tickwire_book::{Applied, Books};
use tickwire_feed::Channel;
use tickwire_market::{
    BookState, Counters, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Price, SeqNo, Side, Symbol,
    TradingStatus,
};
use tickwire_receive::receiver::Consumer;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::stamp::RxStamp;

use crate::chain::Chain;
use crate::quoting::Quoting;
use crate::talk::Talk;
use tickwire_console::failure::Failure;

/// Books before anything is quoted, and what the instruments' states are.
pub struct Learn {
    /// The books of the channel.
    pub books: Books,
    /// What the venue says of itself.
    pub venue: TradingStatus,
    /// By instrument.
    pub statuses: Vec<TradingStatus>,
}

impl EventSink for Learn {
    fn on_event(&mut self, event: &MarketEvent) {
        if let (Applied::None, EventKind::Status) = (self.books.apply(event), event.kind) {
            match self.statuses.get_mut(event.instrument.index()) {
                _ if event.instrument == InstrumentId::WHOLE_FEED => {
                    self.venue = event.status;
                    self.statuses.fill(event.status);
                }
                Some(status) => *status = event.status,
                None => {}
            }
        }
    }
}

impl Learn {
    pub(crate) fn status(&self, id: InstrumentId) -> TradingStatus {
        self.statuses.get(id.index()).copied().unwrap_or(self.venue)
    }

    /// Best bid and offer of an instrument whose book is live.
    pub(crate) fn market(&self, id: InstrumentId) -> [Option<Price>; 2] {
        let book = self.books.book(id).filter(|book| book.state() == BookState::Live);
        Side::BOTH.map(|side| Some(book.as_ref()?.best(side)?.price))
    }

    /// Bid plus ask of an instrument, in ticks, if its book is live and has both.
    pub fn half_tick(&self, id: InstrumentId, tick: tickwire_market::Price) -> Option<i64> {
        let book = self.books.book(id)?;
        let ticks = |side| book.best(side).map(|level| level.price.raw() / tick.raw().max(1));
        let sum = ticks(Side::Bid)? + ticks(Side::Ask)?;
        (book.state() == BookState::Live && self.status(id) == TradingStatus::Trading).then_some(sum)
    }
}

/// What has to be known before quoting begins.
pub(crate) struct Learned {
    pub(crate) chain: Chain,
    pub(crate) half_tick: i64,
    pub(crate) talk: Talk,
}

/// Who listens until the chain is known; [`Quoting`] takes the channel over.
pub(crate) struct Learning {
    pub(crate) clock: Clock,
    pub(crate) learn: Learn,
    /// What the options are on.
    pub(crate) underlying: Symbol,
    /// What the channel's directory said of them when it was looked at last.
    pub(crate) chain: Result<Option<Chain>, Failure>,
    /// The next message then.
    pub(crate) next_seq: SeqNo,
}

impl EventSink for Learning {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.learn.on_event(event);
    }
}

impl Consumer for Learning {
    type Successor = Quoting;

    const IS_HOT: bool = false;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// There is one.
    fn turn_to(&mut self, _: usize) {}

    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.clock.nanos_at(stamp.tsc)
    }

    fn looks<C: Channel>(&mut self, channel: &C, _: impl FnOnce(&mut Counters)) {
        self.chain = Chain::of(channel, &self.underlying);
        self.next_seq = channel.next_seq();
    }
}
