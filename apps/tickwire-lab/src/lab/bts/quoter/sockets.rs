//! The quoter between sockets, in one process or in three.

use std::sync::atomic::Ordering;

use tickwire_book::Depth;
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, Line};
use tickwire_fix::{MassQuoteTemplate, QuotePrices};
use tickwire_market::{BookUpdate, Port};
use tickwire_node::link::Entry;
use tickwire_quoterd::decimals_of;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc;
use tickwire_runtime::tcp::Received;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_trading::Quoter;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

use crate::lab::bts::Signals;
use crate::lab::bts::tape::{Tape, number};
use crate::lab::inlet::Inlet;
use crate::lab::run::Places;

use super::{
    Done, Made, MarketData, Rings, Said, Stamped, Wanted, complaints, fix::Fix, path_of, quote, quote_packet,
};

/// The sockets of a quoter.
pub(in crate::lab::bts) struct Sockets {
    pub(in crate::lab::bts) feed: Inlet,
    pub(in crate::lab::bts) orders: Entry,
}

/// How a quoter is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::lab::bts) enum Layout {
    /// Everything on one thread.
    One,
    /// Market data, quoting and FIX on a thread each, as published.
    Three,
}

impl Layout {
    pub(in crate::lab::bts) fn name(self) -> &'static str {
        match self {
            Layout::One => "one thread",
            Layout::Three => "three threads",
        }
    }
}

/// Quotes between sockets until `ends` is set; in one thread with a rehearsal every so many microseconds, 0
/// for none.
pub(in crate::lab::bts) fn between_sockets(
    tape: &Tape,
    (layout, rehearse_us): (Layout, u32),
    sockets: Sockets,
    clock: Clock,
    places: &Places,
    signals: &Signals,
) -> Result<Done, Failure> {
    let reception = Reception::new(&tape.config.receiver);
    let run = Live {
        tape,
        layout,
        rehearse_us,
        sockets,
        clock,
        places,
        signals,
    };
    wiring::with_channel(&tape.config.feed[0], 0, &reception, run)?
}

pub(super) struct Live<'a> {
    pub(super) tape: &'a Tape,
    pub(super) layout: Layout,
    pub(super) rehearse_us: u32,
    pub(super) sockets: Sockets,
    pub(super) clock: Clock,
    pub(super) places: &'a Places,
    pub(super) signals: &'a Signals,
}

impl WithChannel for Live<'_> {
    type Output = Result<Done, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Result<Done, Failure> {
        let made = Made::new(self.tape, &mut channel, depth, self.clock.now())?;
        match self.layout {
            Layout::One => self.one(channel, made),
            Layout::Three => self.three(channel, made),
        }
    }
}

pub(super) fn lost(e: std::io::Error) -> Failure {
    Failure::peer_lost(format!("the quoter's sockets: {e}"))
}

impl Live<'_> {
    fn one<C: Channel>(self, mut channel: C, made: Made) -> Result<Done, Failure> {
        let Sockets { mut feed, orders } = self.sockets;
        let clock = self.clock;
        self.places.enter("quoter")?;
        let out = Stamped::new(orders);
        let (mut path, mut pricer, tick) = path_of(made, &channel, out, (&clock, clock.now()));
        path.connected(clock.now());
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut done = Done {
            took: Vec::with_capacity(self.tape.packets.len()),
            ..Done::default()
        };
        self.signals.ready.store(true, Ordering::Release);
        let mut rounds = 0_u32;
        let gap = clock.span_ticks(u64::from(self.rehearse_us) * 1_000);
        let mut rehearsal = (self.rehearse_us > 0).then(tsc);
        let mut twin = path.twin_of(&channel);
        loop {
            if let Some(due) = &mut rehearsal
                && tsc() >= *due
            {
                let now = tsc();
                *due = now + gap;
                path.rehearse(clock.nanos_at(now), &channel, &mut twin);
            }
            if let Some((from, bytes)) = feed.recv(&mut buffer).map_err(lost)? {
                let now = clock.nanos_at(from);
                let took = quote_packet(&mut channel, &mut path, now, bytes, from);
                done.took.extend(took);
            }
            match path.out_mut().out.recv(&mut buffer).map_err(lost)? {
                Received::Bytes(bytes) => {
                    let bytes: &[u8] = bytes;
                    path.on_bytes(clock.now(), bytes);
                }
                Received::Nothing => {}
                Received::Closed => break,
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(1_024) {
                let now = clock.now();
                if path.poll_timeout().is_some_and(|due| due <= now) {
                    path.handle_timeout(now);
                }
                if self.signals.ends.load(Ordering::Acquire) {
                    break;
                }
            }
            std::hint::spin_loop();
        }
        let last = self.tape.half_ticks.last().copied().unwrap_or(self.tape.begin);
        done.wanted = Made::wanted(&mut pricer, tick, last)?;
        done.messages = path.sent()[0];
        done.problems.extend(complaints(&path));
        Ok(done)
    }

    /// Market data here, the others on threads of their own.
    fn three<C: Channel>(self, mut channel: C, made: Made) -> Result<Done, Failure> {
        let Sockets { mut feed, orders } = self.sockets;
        let (clock, ends, places) = (self.clock, &self.signals.ends, self.places);
        let Made {
            chain,
            mut pricer,
            ladder,
            learn,
            config,
            symbols,
            ..
        } = made;
        let tick = chain.steps.tick;
        let prices = QuotePrices {
            tick,
            decimals: decimals_of(tick),
        };
        let session = Made::session();
        let template = MassQuoteTemplate::new(&session, &symbols, prices, config.entries_max)
            .ok_or_else(|| Failure::config("prices do not fit"))?;
        let (mut updates, updated) = spsc::ring::<BookUpdate>(1 << 12);
        let (wanted, wants) = spsc::ring::<Wanted>(1 << 10);
        let (said, says) = spsc::ring::<Said>(1 << 10);
        let first = learn.books.book(chain.underlying).map(|book| book.update());
        let done = std::thread::scope(|scope| -> Result<Done, Failure> {
            let quoting = scope.spawn(move || -> Result<Quoter, Failure> {
                places.enter("quoting")?;
                Ok(quote(
                    config,
                    ladder,
                    updated,
                    Rings {
                        wanted,
                        is_late: false,
                    },
                    says,
                    first,
                    ends,
                ))
            });
            let clock_of_fix = clock.clone();
            let fix = scope.spawn(move || -> Result<Fix, Failure> {
                places.enter("fix")?;
                let fix = Fix {
                    session,
                    template,
                    stream: Stamped::new(orders),
                    clock: clock_of_fix,
                    named: Vec::with_capacity(1 << 12),
                    took: Vec::with_capacity(1 << 16),
                    messages: 0,
                    problems: Vec::new(),
                };
                fix.run(wants, said, ends)
            });
            places.enter("quoter")?;
            let mut market = MarketData {
                books: learn.books,
                future: chain.underlying,
                update: None,
            };
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
            let mut from = Vec::with_capacity(self.tape.packets.len());
            self.signals.ready.store(true, Ordering::Release);
            while !ends.load(Ordering::Acquire) {
                let Some((ticks, bytes)) = feed.recv(&mut buffer).map_err(lost)? else {
                    std::thread::yield_now();
                    continue;
                };
                let now = clock.nanos_at(ticks);
                from.push((number(bytes), ticks));
                channel.on_datagram(now, Port::Live, Line::A, bytes, &mut market);
                if let Some(update) = market.update.take() {
                    // Full: the quoting thread does not keep up, and the next price matters more.
                    let _ = updates.push(update);
                }
            }
            let quoter = quoting
                .join()
                .map_err(|_| Failure::system("the quoting thread failed"))??;
            let fix = fix
                .join()
                .map_err(|_| Failure::system("the FIX thread failed"))??;
            let mut done = Done {
                messages: fix.messages,
                problems: fix.problems,
                ..Done::default()
            };
            for mut took in fix.took {
                if let Ok(at) = from.binary_search_by_key(&took.seq, |(seq, _)| *seq) {
                    took.from = from[at].1;
                    done.took.push(took);
                }
            }
            if quoter.state() != tickwire_trading::QuotingState::Quoting {
                done.problems
                    .push(format!("the quoter ended {:?}", quoter.state()));
            }
            Ok(done)
        });
        let mut done = done?;
        let last = self.tape.half_ticks.last().copied().unwrap_or(self.tape.begin);
        done.wanted = Made::wanted(&mut pricer, tick, last)?;
        Ok(done)
    }
}
