//! Channels of recordings that play into a backtest.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tickwire_backtest::{Backtest, BacktestConfig, Entrant, GhostConfig, Ghosts};
use tickwire_book::{Books, BooksConfig, Depth, OrderView};
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_market::{
    Counters, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, PointValue, Port,
    SeqNo, Symbol, Upcoming, Venue,
};
use tickwire_replay::played::{Cost, Follow, Play};
use tickwire_replay::replay::{MakePlay, RecordsFile};
use tickwire_trading::strategy::{ConductorConfig, Strategy, Subscription};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring;
use tickwire_venues::wiring::Reception;

/// A strategy that is to be played to: with its limits, and the venues that it hears, if not all.
pub(super) type Entering<S> = (S, ConductorConfig, Option<Vec<Venue>>);

/// What a backtest is made of once the feeds are known; last, whether it keeps every order.
pub(super) type Begun<S> = (Vec<Entering<S>>, BacktestConfig, Option<GhostConfig>, bool);

/// A feed: its books, whether it tells match events, and whether what becomes less was executed.
pub(super) type FeedOf = (BooksConfig, bool, bool);

/// Channels are made first, then the backtest over all of them.
#[expect(clippy::large_enum_variant, reason = "there is one of it in a run")]
pub(super) enum Shared<S> {
    Gathering(Box<Option<Begun<S>>>, Vec<FeedOf>),
    Running(Box<Backtest<S>>, Option<Ghosts>),
}

impl<S: Strategy> Shared<S> {
    pub(super) fn run(&mut self) -> (&mut Backtest<S>, &mut Option<Ghosts>) {
        if let Shared::Gathering(begun, feeds) = self
            && let Some((entering, mut config, ghosts, keeps_orders)) = begun.take()
        {
            let most = feeds
                .iter()
                .map(|(books, ..)| books.instruments)
                .max()
                .unwrap_or(2);
            config.conductor.instrument_bits = most.max(2).next_power_of_two().trailing_zeros();
            config.is_grouped = feeds.iter().map(|(_, is_grouped, _)| *is_grouped).collect();
            config.less_is_executed = feeds.iter().map(|(.., is_executed)| *is_executed).collect();
            let ghosts = ghosts.map(|ghosts| {
                Ghosts::new(GhostConfig {
                    less_is_executed: config.less_is_executed.clone(),
                    ..ghosts
                })
            });
            let wanted = entering
                .iter()
                .flat_map(|(strategy, ..)| strategy.subscriptions());
            let consolidates = wanted
                .into_iter()
                .any(|s| matches!(s, Subscription::Consolidated(_)));
            let entrants = entering.into_iter().map(|(strategy, conductor, venues)| Entrant {
                strategy,
                conductor,
                hears: feeds
                    .iter()
                    .map(|(books, ..)| venues.as_ref().is_none_or(|venues| venues.contains(&books.venue)))
                    .collect(),
            });
            let entrants = entrants.collect();
            let books = feeds.iter().map(|(books, ..)| {
                Books::new(BooksConfig {
                    tracked: consolidates,
                    ..*books
                })
            });
            let books = books.collect();
            let mut test = Backtest::of_several(entrants, books, config);
            if keeps_orders {
                test.keep_orders();
            }
            *self = Shared::Running(Box::new(test), ghosts);
        }
        match self {
            Shared::Running(test, ghosts) => (test, ghosts),
            Shared::Gathering(..) => unreachable!("it was made just now"),
        }
    }
}

/// Makes channels that play into the backtest.
pub(super) struct Make<S> {
    pub(super) shared: Rc<RefCell<Shared<S>>>,
    /// What a point is worth where nobody says it, in 1e-9.
    pub(super) point: i64,
}

/// A file of records.
struct Follower<S> {
    shared: Rc<RefCell<Shared<S>>>,
    feed: usize,
    point: i64,
}

impl<S: Strategy> Follow for Follower<S> {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        match self.shared.borrow_mut().run() {
            (test, Some(ghosts)) => ghosts.on_event(test, self.feed, event),
            (test, None) => test.on_event(self.feed, event),
        }
    }

    fn defined(&mut self, instrument: &Instrument, point: Option<PointValue>) {
        let point = point.map_or(self.point, |point| point.raw());
        let mut shared = self.shared.borrow_mut();
        shared.run().0.define(self.feed, instrument, Some(point));
    }

    fn order(&self, order: OrderId) -> Option<OrderView> {
        match &*self.shared.borrow() {
            Shared::Running(test, _) => test.books(self.feed).order(order),
            Shared::Gathering(..) => None,
        }
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Shared::Running(test, _) = &*self.shared.borrow() {
            at(test.books(self.feed));
        }
    }
}

impl<S: Strategy + 'static> MakePlay for Make<S> {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let (channel, depth) = wiring::channel(feed, number, reception)?;
        let books = BooksConfig {
            // The place of an order in its queue is known only where the queues are.
            depth: match depth {
                Depth::Aggregated => Depth::ByOrder,
                other => other,
            },
            venue: channel.venue(),
            ..books
        };
        let protocol = feed.protocol();
        let kind = (books, protocol.tells_match_events(), protocol == Protocol::Moex);
        let feed = add_feed(&self.shared, &name, kind)?;
        Ok(Box::new(Tested {
            channel,
            shared: self.shared.clone(),
            feed,
            point: self.point,
            known: vec![false; books.instruments as usize],
            news: Vec::new(),
            cost: Cost::new(name),
        }))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        if !file.is_by_order() {
            return Err(Failure::config(format!(
                "{}: of DBN, files of market by order (mbo) can be backtested on",
                file.name()
            )));
        }
        let sizes = BooksConfig {
            depth: Depth::ByOrder,
            ..file.books()
        };
        // Records say where a match event ends.
        let feed = add_feed(&self.shared, file.name(), (sizes, true, false))?;
        Ok(file.into_play(Follower {
            shared: self.shared.clone(),
            feed,
            point: self.point,
        }))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}

/// One more feed, before the first packet of any.
fn add_feed<S>(shared: &RefCell<Shared<S>>, name: &str, feed: FeedOf) -> Result<usize, Failure> {
    match &mut *shared.borrow_mut() {
        Shared::Gathering(_, feeds) => {
            feeds.push(feed);
            Ok(feeds.len() - 1)
        }
        Shared::Running(..) => Err(Failure::config(format!(
            "{name}: files of several kinds cannot be backtested on together"
        ))),
    }
}

/// One channel of a backtest.
struct Tested<S> {
    channel: Box<dyn Channel>,
    shared: Rc<RefCell<Shared<S>>>,
    feed: usize,
    point: i64,
    /// Which instruments the strategy's side was told of.
    known: Vec<bool>,
    /// Those that the packet under way has named for the first time, or defined.
    news: Vec<InstrumentId>,
    cost: Cost,
}

/// Where a channel's events go.
struct Sink<'a, S> {
    test: &'a mut Backtest<S>,
    ghosts: &'a mut Option<Ghosts>,
    feed: usize,
    known: &'a mut [bool],
    news: &'a mut Vec<InstrumentId>,
}

impl<S: Strategy> EventSink for Sink<'_, S> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if let Some(known) = self.known.get_mut(event.instrument.index())
            && (!*known || event.kind == EventKind::Definition)
        {
            *known = true;
            self.news.push(event.instrument);
        }
        match self.ghosts {
            None => self.test.on_event(self.feed, event),
            Some(ghosts) => ghosts.on_event(self.test, self.feed, event),
        }
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.test.upcoming(self.feed, next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.test.arriving(self.feed, next);
    }
}

impl<S: Strategy> Tested<S> {
    fn with_sink(&mut self, play: impl FnOnce(&mut dyn Channel, &mut Sink<'_, S>)) {
        let mut shared = self.shared.borrow_mut();
        let (test, ghosts) = shared.run();
        let mut sink = Sink {
            test,
            ghosts,
            feed: self.feed,
            known: &mut self.known,
            news: &mut self.news,
        };
        play(&mut *self.channel, &mut sink);
    }

    fn play(&mut self, bytes: usize, play: impl FnOnce(&mut dyn Channel, &mut Sink<'_, S>)) {
        self.with_sink(play);
        self.define_news();
        self.cost.note(0, bytes);
    }

    /// Tells the strategy's side who was named for the first time, or defined.
    fn define_news(&mut self) {
        if self.news.is_empty() {
            return;
        }
        let mut shared = self.shared.borrow_mut();
        let (test, _) = shared.run();
        for id in self.news.drain(..) {
            match self.channel.instrument(id) {
                Some(instrument) => {
                    let point = self
                        .channel
                        .point_value(id)
                        .map_or(self.point, |point| point.raw());
                    test.define(self.feed, instrument, Some(point));
                }
                None => self.known[id.index()] = false,
            }
        }
    }
}

impl<S: Strategy> Play for Tested<S> {
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8]) {
        self.play(bytes.len(), |channel, sink| {
            if channel.poll_timeout().is_some_and(|t| t <= now) {
                channel.handle_timeout(now, sink);
            }
            channel.on_datagram_dyn(now, port, line, bytes, sink);
        });
    }

    fn on_message(&mut self, now: Nanos, message: &[u8]) {
        self.play(message.len() + 2, |channel, sink| {
            channel.on_message_dyn(now, message, sink)
        });
    }

    fn preview(&mut self, now: Nanos, message: &[u8]) {
        self.with_sink(|channel, sink| channel.preview_dyn(now, message, sink));
    }

    fn finish(&mut self, _now: Nanos) {
        // A day of patience that runs out is no time of the recording: what waits for it is missing, and the
        // state says so.
    }

    fn take_shown(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn state(&self) -> FeedState {
        self.channel.state()
    }

    fn next_seq(&self) -> SeqNo {
        self.channel.next_seq()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        self.look(&mut |books| all.merge(books.counters()));
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Shared::Running(test, _) = &*self.shared.borrow() {
            at(test.books(self.feed));
        }
    }

    fn directory(&self) -> BTreeMap<Symbol, InstrumentId> {
        let mut known = BTreeMap::new();
        self.channel
            .instruments(&mut |i| _ = known.insert(i.symbol, i.id));
        known
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }
}
