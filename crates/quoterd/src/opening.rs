//! Before the first quote: sockets, what has to be learned, the pricing thread, and the state of a process
//! before this one.

use std::sync::Arc;

use tickwire_fix::{Status, Version};
use tickwire_market::{Nanos, Qty, SeqNo, Symbol, TradingStatus};
use tickwire_receive::receiver::Receiver;
use tickwire_runtime::spsc;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;

use crate::chain::Chain;
use crate::learn::{Learn, Learned, Learning};
use crate::path::{QuotePath, QuoteSession, QuoteSetup, Source, Traded};
use crate::pricing::{Begins, Pricing, Shared};
use crate::pulls::PullNews;
use crate::quoting::{End, Quoting, QuotingThread, Ring};
use crate::report::QuoterResults;
use crate::talk::Talk;
use crate::{QuoteEntry, Run, control};
use tickwire_console::failure::Failure;
use tickwire_node::controls::beat::Beat;
use tickwire_node::controls::{Guards, check_venue_cancels};
use tickwire_node::fills::{FillsFile, Recovered};
use tickwire_node::host::{self, Host, Line};
use tickwire_node::link::Link;
use tickwire_node::panics::KeptPanics;
use tickwire_node::settings::{FIRST_SESSION, SendWay};
use tickwire_node::trader::SILENCE_NS;
use tickwire_venues::receiver::books_of;
use tickwire_venues::wait::Waiting;

/// The chain is taken when it has not grown for so long.
const CHAIN_QUIET_NS: u64 = Nanos::SECOND;
/// Fills on their way to the pricing thread.
const TRADES_MAX: usize = 1 << 16;

/// What outlives the process.
pub(crate) struct State {
    pub(crate) file: FillsFile,
    pub(crate) recovered: Recovered<Source>,
}

/// How a run ended, with what it left behind.
pub(crate) struct Outcome {
    pub(crate) results: QuoterResults,
    pub(crate) ended: Result<(), Failure>,
}

/// The sockets of the quoting thread, and who learns.
pub(crate) struct Opening<'a> {
    run: &'a Run<'a>,
    receiver: Receiver<Learning>,
    hot: Learning,
    waiting: Waiting,
    buffer: Vec<u8>,
    started: Nanos,
}

impl<'a> Opening<'a> {
    /// Takes the memory of the channel and of its books.
    pub(crate) fn new(run: &'a Run<'a>) -> Result<Opening<'a>, Failure> {
        let section = &run.config.receiver;
        let waiting = run.section.wait.choose(3);
        let receiver = Receiver::new(&run.config.feed, &[(0, 0)], section, waiting.strategy)?;
        let facts = &receiver.facts()[0];
        let learn = Learn {
            books: books_of(section, facts.venue, facts.depth),
            venue: TradingStatus::Unknown,
            statuses: vec![TradingStatus::Unknown; section.max_instruments as usize + 1],
        };
        let clock = run.clock.clone();
        Ok(Opening {
            run,
            receiver,
            waiting,
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            started: clock.now(),
            hot: Learning {
                clock,
                learn,
                underlying: run.section.underlying.0,
                chain: Ok(None),
                next_seq: SeqNo(0),
            },
        })
    }

    /// Joins the groups, then connects to the venue.
    pub(crate) fn connect(&mut self, session: QuoteSession) -> Result<(Talk, Link), Failure> {
        let run = self.run;
        if run.section.send == SendWay::Delegated {
            self.receiver.guard_orders();
        }
        self.receiver.join(&run.config.feed, &run.config.receiver)?;
        let address = run.config.order_entry.address.into();
        let limits = &run.section.limits;
        let attempts = (
            limits.reconnects_max,
            u64::from(limits.reconnect_ms) * Nanos::MILLI,
        );
        let (send, meaning) = (run.section.send, "every quote went with it");
        let waiter = &mut self.receiver.waiter;
        let (link, stream) = Link::connect(address, send, meaning, attempts, waiter, run.clock.now())?;
        self.started = run.clock.now();
        let talk = Talk {
            stream,
            session,
            pending: None,
            rest: Vec::new(),
        };
        Ok((talk, link))
    }

    /// Logs on, and listens until the underlying, its options and a price to begin with are known.
    pub(crate) fn learn(&mut self, mut talk: Talk) -> Result<Learned, Failure> {
        let (run, started, buffer) = (self.run, self.started, &mut self.buffer);
        let now = self.hot.clock.now();
        talk.session.handle_connected(now);
        let mut growth = Growth { known: 0, at: now };
        let found = self
            .receiver
            .run_until(&mut self.hot, |receiver, hot, now, is_slow| {
                let heard = talk.go_on(now, buffer);
                let found = heard.and_then(|()| match is_slow {
                    true => growth.look(run, (receiver, started), hot, &talk),
                    false => Ok(None),
                });
                found.transpose()
            });
        let (chain, half_tick) = found?;
        Ok(Learned {
            chain,
            half_tick,
            talk,
        })
    }

    /// Quotes until the feed has ended, the session is over, or the run is stopped.
    pub(crate) fn quote(
        self,
        learned: Learned,
        state: Option<State>,
        mut link: Link,
    ) -> Result<Outcome, Failure> {
        // Let go of behind the connection, with which the venue cancels: a panic is said when that is done.
        let _panics = KeptPanics::begin();
        let Opening {
            run,
            receiver,
            hot:
                Learning {
                    clock,
                    learn,
                    next_seq,
                    ..
                },
            waiting,
            started,
            ..
        } = self;
        let Learned {
            mut chain,
            half_tick,
            talk,
        } = learned;
        let (file, recovered) = state.map(|state| (state.file, state.recovered)).unzip();
        let recovered = recovered.unwrap_or_default();
        let shared = Arc::new(Shared::new(half_tick));
        let (trades, traded) = spsc::ring::<Traded>(TRADES_MAX);
        let begins = Begins {
            half_tick,
            market: &|id| learn.market(id),
            is_forced: run.is_forced,
        };
        let (pricing, end, mut ladders) = Pricing::start(
            run.section,
            &mut chain,
            clock.clone(),
            shared.clone(),
            traded,
            file.map(|file| (file, &recovered)),
            &begins,
        )?;
        let ids: Vec<_> = chain.options.iter().map(|option| option.id).collect();
        let symbols: Vec<_> = chain.options.iter().map(|option| option.symbol).collect();
        let ticks = [chain.underlying_tick, chain.steps.tick];
        let setup = QuoteSetup {
            quoter: run.section.quoter(
                chain.underlying,
                (ticks, chain.option_value),
                ids.len() as u16,
                run.config.feed[0].protocol(),
            ),
            instruments: &ids,
            symbols: &symbols,
            deltas: end.deltas(),
            session: talk.session,
            by_orders: run.section.entry == QuoteEntry::Orders,
            started: clock.now(),
            underlying: run.section.underlying.0,
            eye: run.section.eye.as_ref().map(|eye| {
                eye.eye(
                    chain.underlying,
                    (ticks, chain.option_value),
                    &run.section.trigger,
                    &run.section.market,
                )
            }),
            controls: Some(run.config.controls.of_quotes(chain.steps.tick)),
            values: Some([chain.option_value, chain.underlying_value]),
        };
        let statuses: Vec<_> = ids.iter().map(|id| learn.status(*id)).collect();
        let status = learn.status(chain.underlying);
        let entry = link.entry(talk.stream)?;
        // Taken with the first turn of the loop.
        ladders.wait();
        let ring = Ring { trades, ladders };
        let mut path = QuotePath::new(setup, learn.books, entry, ring, clock.clone());
        let now = clock.now();
        for (quote, size) in end.sizes().iter().enumerate() {
            path.maker_mut().quoter.set_size(quote as u16, Qty(*size));
        }
        path.maker_mut().set_eye_sizes(end.eye_sizes());
        if run.section.entry == QuoteEntry::MassQuotes && path.fix().config().version >= Version::Fix44 {
            path.reconcile(clock.now(), run.config.controls.reconcile_s);
        }
        path.set_venue_cancels(
            run.config.controls.venue_cancels,
            run.config.order_entry.cancel_on_disconnect_tag,
        );
        let elsewhere = path.restore(&recovered);
        if elsewhere > 0 {
            tickwire_console::warn(format_args!(
                "{elsewhere} contracts were traded before in options that are not quoted any more; they are in no position"
            ));
        }
        path.begin(now, (receiver.facts()[0].venue, next_seq), status);
        path.logged_on(now);
        for (quote, status) in statuses.iter().enumerate() {
            if *status != TradingStatus::Trading {
                path.close(now, quote as u16);
            }
        }
        path.take_over(now, talk.pending, &talk.rest);
        if !run.is_child {
            tickwire_console::note(format_args!(
                "quoting {} options of {} expiries on {}",
                ids.len(),
                chain.expiries().len(),
                run.section.underlying.0
            ));
        }
        let control = match &run.section.control {
            Some(folder) => {
                let (shared, controls) = (shared.clone(), run.config.controls.clone());
                Some(control::open(
                    folder,
                    &run.config.access,
                    shared,
                    pricing.asks(),
                    controls,
                )?)
            }
            None => None,
        };
        let killed = shared.clone();
        let _guards = Guards::start(&run.config.controls, run.is_child, move || killed.pull())?;
        let tag = run.config.order_entry.cancel_on_disconnect_tag;
        let line = Line::new(FIRST_SESSION, link, tag);
        let mut host = Host::new(Quoting::new(path), receiver.succeed(), waiting, vec![line]);
        host.beat = Beat::open(&run.config.controls)?;
        host.name_up_to(ids.len());
        host.offer_time(run.section.rehearse_us);
        let mut thread = QuotingThread {
            run,
            host,
            pricing: end,
            shared,
            started,
            end: End::Quoting,
            news: PullNews::default(),
            is_priced: true,
            done: None,
        };
        let ended = host::run(&mut thread);
        let ended = ended.and_then(|()| thread.done.take().unwrap_or(Ok(())));
        if let (Some(beat), Ok(())) = (&thread.host.beat, &ended) {
            beat.end();
        }
        if let Some(control) = control {
            control.end();
        }
        let priced = pricing.end();
        thread.host.path.path.out_mut().finish();
        if run.section.send == SendWay::Delegated && !run.is_child {
            let counts = thread.host.lines[0].link.counts(thread.host.path.path.out());
            println!("order entry: {counts}");
        }
        let results = thread.results(&chain, priced);
        Ok(Outcome { results, ended })
    }
}

/// How many options were known, and since when no more.
struct Growth {
    known: usize,
    at: Nanos,
}

impl Growth {
    /// What is to be quoted and a price to begin with, bid plus ask in ticks, once the directory has not
    /// grown for a while and the venue has let us in; `None` until then.
    fn look(
        &mut self,
        run: &Run<'_>,
        (receiver, started): (&Receiver<Learning>, Nanos),
        hot: &mut Learning,
        talk: &Talk,
    ) -> Result<Option<(Chain, i64)>, Failure> {
        let (now, underlying) = (hot.clock.now(), hot.underlying);
        if let Some(reason) = run.stop.reason() {
            return Err(Failure::interrupted(format!("{reason}; nothing was quoted yet")));
        }
        check_heard(receiver, (now, started), underlying)?;
        if let Some(chain) = std::mem::replace(&mut hot.chain, Ok(None))? {
            if chain.options.len() != self.known {
                (self.known, self.at) = (chain.options.len(), now);
            }
            let half_tick = hot.learn.half_tick(chain.underlying, chain.underlying_tick);
            if let (Some(half_tick), Status::Active) = (half_tick, talk.session.status())
                && receiver.read_up_to(now).since(self.at) >= CHAIN_QUIET_NS
            {
                let tag = run.config.order_entry.cancel_on_disconnect_tag;
                let said = talk.session.peer_cancels();
                check_venue_cancels(run.config.controls.venue_cancels, tag, said)?;
                return Ok(Some((chain, half_tick)));
            }
        }
        match receiver.is_done() {
            true => Err(Failure::peer_lost(format!(
                "the session ended before {underlying} and options on it were known; {} options were",
                self.known
            ))),
            false => Ok(None),
        }
    }
}

/// That packets come, or that it is not long since waiting for the underlying began. This thread may have
/// stood still: what lies in its sockets counts.
fn check_heard(
    receiver: &Receiver<Learning>,
    (now, started): (Nanos, Nanos),
    underlying: Symbol,
) -> Result<(), Failure> {
    let source = receiver.source(0);
    let last = source.last_packet().max(started);
    if receiver.read_up_to(now).since(last) > 4 * SILENCE_NS {
        return Err(Failure::peer_lost(format!(
            "no packet on {} for {} s while waiting for {underlying} and its options",
            source.groups(),
            4 * SILENCE_NS / Nanos::SECOND
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_runtime::clock::Clock;
    use tickwire_runtime::wait::WaitStrategy;
    use tickwire_venues::channels::FeedFile;
    use tickwire_venues::receiver::ReceiverSection;

    #[test]
    fn a_thread_that_stood_still_says_nothing_of_who_was_silent_meanwhile() {
        let text = "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\n\
                    live = { a = \"239.192.9.44:26991\" }\n";
        let feeds = FeedFile::parse(text).expect("a feed").feeds;
        let section = ReceiverSection {
            max_instruments: 64,
            max_orders: 1 << 10,
            max_levels: 1 << 10,
            ..ReceiverSection::default()
        };
        let mut receiver = Receiver::new(&feeds, &[(0, 0)], &section, WaitStrategy::Spin).expect("a channel");
        let facts = &receiver.facts()[0];
        let learn = Learn {
            books: books_of(&section, facts.venue, facts.depth),
            venue: TradingStatus::Unknown,
            statuses: Vec::new(),
        };
        let underlying = Symbol::new(b"ESH6").expect("short");
        let mut hot = Learning {
            clock: Clock::calibrate(),
            learn,
            underlying,
            chain: Ok(None),
            next_seq: SeqNo(0),
        };
        receiver.join(&feeds, &section).expect("joined");
        let started = hot.clock.now();
        receiver.receive(&mut hot);
        let late = started.after(Nanos::DAY);
        assert!(check_heard(&receiver, (late, started), underlying).is_ok());
        let long_ago = Nanos(started.0 - Nanos::DAY);
        assert!(check_heard(&receiver, (late, long_ago), underlying).is_err());
    }
}
