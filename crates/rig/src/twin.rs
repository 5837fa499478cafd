//! What goes beside the books of every simulated session: naive books that get the same events, copies that
//! hear levels only, and a recount of trades.

use std::collections::BTreeMap;

use tickwire_book::naive::{NaiveApplied, NaiveBooks};
use tickwire_book::{Books, BooksConfig, Depth, InstrumentStates, Outcome, Relay};
use tickwire_market::{EventFlags, EventKind, InstrumentId, MarketEvent, TradingStatus, Venue};

/// Volume and number of trades.
type Traded = (u64, u64);

/// The companions of the books.
pub(crate) struct Twin {
    naive: NaiveBooks,
    /// By-price books that hear what is relayed.
    copy: Books,
    states: InstrumentStates,
    traded: BTreeMap<InstrumentId, Traded>,
    status: BTreeMap<InstrumentId, TradingStatus>,
    /// By instrument and match number.
    matches: BTreeMap<(InstrumentId, u64), Traded>,
    /// Breaks of trades that were not heard of.
    pub(crate) breaks_unknown: u64,
    relay: Relay,
    /// What was relayed, when it is to be kept.
    pub(crate) relayed: Option<Vec<MarketEvent>>,
}

impl Twin {
    pub(crate) fn new(of: &BooksConfig, keeps_relayed: bool) -> Twin {
        Twin {
            naive: NaiveBooks::new(of.venue, of.depth, of.instruments, of.initial),
            copy: Books::new(BooksConfig {
                depth: Depth::ByPrice,
                tracked: false,
                ..*of
            }),
            states: InstrumentStates::new(of.instruments, 1 << 16),
            traded: BTreeMap::new(),
            status: BTreeMap::new(),
            matches: BTreeMap::new(),
            breaks_unknown: 0,
            relay: match of.venue {
                Venue::Cqs | Venue::Uqdf => Relay::National,
                _ => Relay::Levels,
            },
            relayed: keeps_relayed.then(Vec::new),
        }
    }

    /// Gives an event to the books and to their companions; all must say the same.
    pub(crate) fn apply(&mut self, books: &mut Books, event: &MarketEvent) {
        let order = books.order(event.order_id);
        let expected = self.naive.apply(event);
        let got = books.apply(event);
        let is_same = match (&got, &expected) {
            (tickwire_book::Applied::Update(a), NaiveApplied::Update(b)) => **a == *b,
            (tickwire_book::Applied::Feed(a), NaiveApplied::Feed(b)) => a == b,
            (tickwire_book::Applied::None, NaiveApplied::None) => true,
            (tickwire_book::Applied::Rejected(a), NaiveApplied::Rejected(b)) => a == b,
            _ => false,
        };
        assert!(is_same, "{event:?}: {got:?}, naive {expected:?}");
        let outcome = got.outcome();
        let mut event = *event;
        let at = books.executed_at(&event);
        let is_own = event.kind == EventKind::Execute && !event.flags.has(EventFlags::AT_OTHER_PRICE);
        if is_own && matches!(outcome, Outcome::Update(..)) {
            assert_eq!(at, order.map(|order| order.price), "{event:?}");
        }
        self.states.apply(&mut event, at);
        self.count(&event);
        let (copy, relayed) = (&mut self.copy, &mut self.relayed);
        let mut said = |event: &MarketEvent| {
            let passed = copy.apply(event).outcome();
            assert!(!matches!(passed, Outcome::Rejected(_)), "{event:?}: {passed:?}");
            if let Some(relayed) = relayed {
                relayed.push(*event);
            }
        };
        books.relay(&event, outcome, self.relay, &mut said);
        if let Outcome::Update(instrument, _) = outcome {
            let digest = books.digest(instrument);
            assert_eq!(digest, self.naive.digest(instrument), "naive after {event:?}");
            assert_eq!(digest, self.copy.digest(instrument), "relayed after {event:?}");
        }
    }

    /// Compares everything.
    pub(crate) fn check(&self, books: &Books) {
        let hash = books.state_hash();
        assert_eq!(hash, self.naive.state_hash(), "naive");
        assert_eq!(hash, self.copy.state_hash(), "relayed");
        assert_eq!(books.feed_state(), self.copy.feed_state());
        for (&instrument, &(volume, trades)) in &self.traded {
            let state = self.states.get(instrument).expect("an instrument of the feed");
            assert_eq!((state.volume.0, state.trades), (volume, trades), "{instrument:?}");
        }
        for (&instrument, &status) in &self.status {
            let known = match instrument {
                InstrumentId::WHOLE_FEED => self.states.venue_status(),
                instrument => {
                    self.states
                        .get(instrument)
                        .expect("an instrument of the feed")
                        .status
                }
            };
            assert_eq!(known, status, "{instrument:?}");
        }
    }

    /// Trades as one would count them on paper.
    fn count(&mut self, event: &MarketEvent) {
        let key = (event.instrument, event.ref_id);
        match event.kind {
            EventKind::Status => {
                self.status.insert(event.instrument, event.status);
            }
            EventKind::Execute | EventKind::Trade
                if !event.flags.has(EventFlags::NOT_PRINTABLE) && !event.qty.is_zero() =>
            {
                for traded in [
                    self.traded.entry(event.instrument).or_default(),
                    self.matches.entry(key).or_default(),
                ] {
                    *traded = (traded.0 + event.qty.0, traded.1 + 1);
                }
            }
            EventKind::TradeBreak => {
                let known = self.matches.remove(&key);
                // PITCH does not say of which instrument; then nothing is taken off.
                let is_known = known.is_some()
                    || event.instrument == InstrumentId::WHOLE_FEED
                        && self.matches.keys().any(|(_, id)| *id == event.ref_id);
                self.breaks_unknown += u64::from(!is_known);
                let (volume, trades) = known.unwrap_or_default();
                let traded = self.traded.entry(event.instrument).or_default();
                *traded = (traded.0 - volume, traded.1 - trades);
            }
            _ => {}
        }
    }
}
