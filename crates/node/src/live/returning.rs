//! How a session is lost and taken up again of strategies whose orders and quotes end with it.

use tickwire_market::Nanos;
use tickwire_trading::strategy::Strategy;

use super::{Live, parts};
use crate::hot::{HotPath, OrderOut};
use crate::session::{Returning, TakenUp};
use crate::trader::Rule;

/// Whether orders of an earlier connection may rest: where quotes are orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cleanness {
    /// Nothing of ours rests that is not known.
    Clean,
    /// The venue was asked to cancel everything and has until then to say that it has.
    Asked(Nanos),
    /// It has not been asked, or has refused to.
    Unknown,
}

/// Tells every strategy that trades over a session.
pub(super) fn tell<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
) {
    for at in 0..hot.rule.hosted.len() {
        if hot.rule.hosted[at].uses(session) {
            parts(hot, at, 0, |conductor, markets, port| {
                conductor.on_session(now, markets, port)
            });
        }
    }
}

/// The session is lost, and with it everything that ends with it.
pub(super) fn lose<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
) {
    hot.rule.set_session(session, false);
    for hosted in &mut hot.rule.hosted {
        if hosted.ends_with_session && hosted.uses(session) {
            if let Some(sides) = hosted.wiring.sides(session) {
                sides.forget();
            }
            hosted.conductor.lose_session();
        }
    }
    tell(hot, session, now);
}

/// See [`HotPath::take_up`].
pub(super) fn take_up<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    session: usize,
    now: Nanos,
) -> TakenUp {
    let own = &hot.sessions[session];
    let is_here = match own.returning {
        Some(Returning::CatchingUp) => own.fix.is_caught_up(),
        Some(Returning::Cleaning) => true,
        _ => false,
    };
    if !is_here || !hot.rule.ends_with_session(session) {
        return TakenUp::Waits;
    }
    for at in 0..hot.rule.hosted.len() {
        match cleanness(hot, at, session) {
            Cleanness::Clean => {}
            Cleanness::Asked(until) if now < until => return TakenUp::Waits,
            // It has refused to, or has not answered.
            _ if hot.sessions[session].returning == Some(Returning::Cleaning) => {
                if let Some(sides) = hot.rule.hosted[at].wiring.sides(session) {
                    sides.drop_cancel();
                }
                hot.sessions[session].returning = Some(Returning::Refused);
                return TakenUp::Refused;
            }
            // None of them may be there when the first one goes out.
            _ => {
                let own = &mut hot.sessions[session];
                if let Some(sides) = hot.rule.hosted[at].wiring.sides(session)
                    && sides.cancel_all(own, now, None).is_ok()
                {
                    own.returning = Some(Returning::Cleaning);
                }
                return TakenUp::Waits;
            }
        }
    }
    hot.sessions[session].returning = None;
    hot.sessions[session].awaits_rest = false;
    for hosted in &mut hot.rule.hosted {
        if hosted.uses(session) {
            hosted.conductor.take_up_session(now);
        }
    }
    hot.rule.set_session(session, true);
    tell(hot, session, now);
    TakenUp::Whole
}

/// Of a strategy by its place.
fn cleanness<O, S, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    at: usize,
    session: usize,
) -> Cleanness {
    match hot.rule.hosted[at].wiring.sides(session) {
        Some(sides) if !sides.is_clean() => match sides.cleaning_until() {
            Some(until) => Cleanness::Asked(until),
            None => Cleanness::Unknown,
        },
        _ => Cleanness::Clean,
    }
}

impl<O: OrderOut, S: Strategy, const STAMPED: bool> HotPath<O, STAMPED, Live<S>> {
    /// When [`HotPath::take_up`] is to be called at the latest: the venue has until then to confirm that no
    /// order of an earlier connection rests.
    pub fn taking_up_due(&mut self, session: usize) -> Option<Nanos> {
        if self.sessions[session].returning != Some(Returning::Cleaning) {
            return None;
        }
        let count = self.rule.hosted.len();
        let of = |at: usize| match cleanness(self, at, session) {
            Cleanness::Asked(until) => Some(until),
            _ => None,
        };
        (0..count).filter_map(of).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryOut, strategy_path};
    use tickwire_book::{Books, BooksConfig};
    use tickwire_market::{BookState, Symbol};
    use tickwire_runtime::clock::Clock;
    use tickwire_trading::strategy::{Context, Subscription};

    /// Notes what it is told of.
    struct Notes {
        symbol: Symbol,
        told: Vec<String>,
        sees_to_it: bool,
    }

    impl Strategy for Notes {
        fn subscriptions(&self) -> Vec<Subscription> {
            vec![Subscription::Symbol(self.symbol)]
        }

        fn on_session(&mut self, ctx: &mut Context<'_>) {
            self.told.push(format!("session {}", ctx.has_session()));
        }

        fn on_distrust(&mut self, _: &mut Context<'_>) -> bool {
            self.told.push("distrust".into());
            self.sees_to_it
        }

        fn on_idle(&mut self, _: &mut Context<'_>) {
            self.told.push("idle".into());
        }

        fn on_command(&mut self, _: &mut Context<'_>, words: &str) {
            self.told.push(words.into());
        }
    }

    type Hot = HotPath<MemoryOut, false, Live<Notes>>;

    fn hot(ends_with_session: bool) -> Hot {
        let symbol = Symbol::new(b"AAPL").expect("a symbol");
        let notes = Notes {
            symbol,
            told: Vec::new(),
            sees_to_it: false,
        };
        let books = Books::new(BooksConfig {
            instruments: 2,
            orders: 64,
            levels: 64,
            initial: BookState::Live,
            ..BooksConfig::default()
        });
        let mut hot = strategy_path(notes, books, symbol, Clock::calibrate()).expect("it logs on");
        hot.rule.hosted[0].ends_with_session = ends_with_session;
        hot
    }

    fn told(hot: &mut Hot) -> Vec<String> {
        std::mem::take(&mut hot.rule.conductor_mut().strategy_mut().told)
    }

    #[test]
    fn a_strategy_hears_of_its_session_and_a_lost_one_is_no_session_before_it_is_taken_up() {
        for ends_with_session in [false, true] {
            let (mut hot, now) = (hot(ends_with_session), Nanos(1));
            hot.lose(0, now);
            assert_eq!(told(&mut hot), ["session false"]);
            assert_eq!(
                hot.take_up(0, now),
                if ends_with_session {
                    TakenUp::Whole
                } else {
                    TakenUp::Waits
                }
            );
            // The session in memory is logged on all the time, and nothing of it is missing.
            let expected: &[&str] = if ends_with_session { &["session true"] } else { &[] };
            assert_eq!(told(&mut hot), expected);
            assert_eq!(hot.sessions[0].is_whole(), ends_with_session);
            assert_eq!(hot.rule.conductor().risk().has_session(), ends_with_session);
        }
    }

    #[test]
    fn a_session_is_whole_with_its_logon_only_where_nothing_was_lost_and_nothing_ends_with_it() {
        let (mut first, now) = (hot(false), Nanos(1));
        assert!(first.log_on(0, now), "the first logon of a trader");
        first.lose(0, now);
        assert!(
            !first.log_on(0, now),
            "what was open is cancelled and asked for first"
        );
        let mut quoter = hot(true);
        assert!(
            !quoter.log_on(0, now),
            "what the venue had said before is heard first"
        );
        assert_eq!(quoter.take_up(0, now), TakenUp::Whole);
    }

    #[test]
    fn what_cannot_be_read_is_seen_to_by_every_strategy_or_by_nobody() {
        let (mut hot, now) = (hot(false), Nanos(1));
        assert!(!Live::on_distrust(&mut hot, 0, now));
        hot.rule.conductor_mut().strategy_mut().sees_to_it = true;
        assert!(Live::on_distrust(&mut hot, 0, now));
        Live::on_command(&mut hot, "lot 7", now);
        Live::on_idle(&mut hot, now);
        assert_eq!(told(&mut hot), ["distrust", "distrust", "lot 7", "idle"]);
    }
}
