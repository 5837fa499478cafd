//! `tickwire exchange --write-capture`: what a session sends on its multicast ports as a capture, in virtual
//! time: no socket, no client, as fast as the machine can.
//!
//! The lines' troubles are those of the configuration, each line with its own: a lost datagram is not there,
//! a doubled one stands there twice, one out of order comes behind up to three later ones of its line,
//! `HELD_NS` later at most. A file has no server to be asked: what all lines of a live port have lost comes
//! late, after `ANSWER_NS`, on line A, as an answered request would bring it; the share that
//! `answer_requests` leaves out stays lost.
//!
//! Frames are written as they are made; nothing but what is late is kept.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use tickwire_exchange::{Impair, ImpairConfig, LineSet, Market};
use tickwire_market::{Nanos, Port, Side};
use tickwire_runtime::capture::{CaptureError, LinkType, PcapWriter};
use tickwire_runtime::signal::StopFlag;

use crate::channel_sockets::LineTroubles;
use crate::settings::MarketConfig;
use crate::venue::{self, Published, VIRTUAL_START};
use tickwire_console::failure::Failure;
use tickwire_control::results::LevelWriter;

/// Where the datagrams of a written capture come from.
const SOURCE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 20_000);
/// How long a datagram is held back at most.
const HELD_NS: u64 = 100 * Nanos::MICRO;
/// How long it takes until what all lines lost is there: less than a receiver waits before it would ask.
const ANSWER_NS: u64 = 250 * Nanos::MICRO;
/// Answers under way at once; further ones come at once.
const ANSWERS_MAX: usize = 4096;
/// Messages that a channel keeps: nobody asks for any.
const KEPT: usize = 1 << 12;
/// Between two looks at the venues: what a venue does meanwhile travels together.
const LOOK_NS: u64 = 5 * Nanos::MICRO;

/// A multicast group of a channel with its trouble.
struct Line {
    group: SocketAddrV4,
    impair: Impair,
}

/// The lines of a channel, by port and line.
type Lines = [[Option<Line>; 2]; Port::COUNT];

/// The file, and what is on its way to it.
struct Recording {
    out: PcapWriter,
    channels: Vec<Lines>,
    /// When lines let go of what they hold, by channel, port and line.
    held: VecDeque<(Nanos, [usize; 3])>,
    /// What all lines have lost, by channel.
    answers: VecDeque<(Nanos, usize, Vec<u8>)>,
    /// Used buffers of it.
    spare: Vec<Vec<u8>>,
    requests_lost: Impair,
    frames: u64,
    lost: u64,
    answered: u64,
}

fn failed(e: CaptureError) -> Failure {
    Failure::system(e.to_string())
}

impl Recording {
    fn create(
        path: &Path,
        published: &[Published],
        troubles: LineTroubles,
        seed: u64,
    ) -> Result<Recording, Failure> {
        let path = if path.as_os_str() == "-" {
            Path::new("/dev/stdout")
        } else {
            path
        };
        let mut number = seed.wrapping_mul(1024);
        let channels = published.iter().map(|published| {
            published.ports.groups.map(|groups| {
                [0, 1].map(|line| {
                    number = number.wrapping_add(1);
                    groups[line].map(|group| Line {
                        group,
                        impair: Impair::new(ImpairConfig {
                            seed: number,
                            ..troubles.lines[line]
                        }),
                    })
                })
            })
        });
        Ok(Recording {
            channels: channels.collect(),
            out: PcapWriter::create(path, LinkType::ETHERNET).map_err(failed)?,
            held: VecDeque::new(),
            answers: VecDeque::with_capacity(ANSWERS_MAX),
            spare: Vec::new(),
            requests_lost: Impair::new(ImpairConfig {
                seed: seed.wrapping_add(77),
                ..troubles.requests
            }),
            frames: 0,
            lost: 0,
            answered: 0,
        })
    }

    /// Puts a datagram on its lines.
    fn send(
        &mut self,
        now: Nanos,
        channel: usize,
        port: Port,
        lines: LineSet,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (mut tried, mut lost, mut result) = (0, 0, Ok(()));
        for (number, line) in self.channels[channel][port as usize].iter_mut().enumerate() {
            let Some(line) = line.as_mut().filter(|_| lines.has(LineSet(1 << number))) else {
                continue;
            };
            let before = line.impair.counts();
            let (out, frames, group) = (&mut self.out, &mut self.frames, line.group);
            line.impair.send(bytes, &mut |bytes: &[u8]| {
                *frames += 1;
                if result.is_ok() {
                    result = out.write_udp(now, SOURCE, group, bytes);
                }
            });
            let after = line.impair.counts();
            tried += 1;
            lost += after.lost - before.lost;
            if after.reordered > before.reordered {
                self.held
                    .push_back((now.after(HELD_NS), [channel, port as usize, number]));
            }
        }
        self.lost += lost;
        result.map_err(failed)?;
        if port == Port::Live && tried > 0 && lost == tried {
            let mut is_answered = false;
            self.requests_lost.send(&[], &mut |_: &[u8]| is_answered = true);
            if is_answered {
                self.answered += 1;
                let mut kept = self.spare.pop().unwrap_or_default();
                kept.clear();
                kept.extend_from_slice(bytes);
                self.answers.push_back((now.after(ANSWER_NS), channel, kept));
                if self.answers.len() > ANSWERS_MAX {
                    self.answer(now)?;
                }
            }
        }
        Ok(())
    }

    /// Writes what is due by now.
    fn settle(&mut self, now: Nanos) -> Result<(), Failure> {
        while let Some(&(due, [channel, port, number])) = self.held.front().filter(|held| held.0 <= now) {
            self.held.pop_front();
            let Some(line) = &mut self.channels[channel][port][number] else {
                continue;
            };
            let (out, frames, group) = (&mut self.out, &mut self.frames, line.group);
            let mut result = Ok(());
            line.impair.flush(&mut |bytes: &[u8]| {
                *frames += 1;
                if result.is_ok() {
                    result = out.write_udp(due.max(now), SOURCE, group, bytes);
                }
            });
            result.map_err(failed)?;
        }
        while self.answers.front().is_some_and(|answer| answer.0 <= now) {
            self.answer(now)?;
        }
        Ok(())
    }

    /// Writes the oldest answer.
    fn answer(&mut self, now: Nanos) -> Result<(), Failure> {
        let Some((_, channel, bytes)) = self.answers.pop_front() else {
            return Ok(());
        };
        if let Some(line) = self.channels[channel][Port::Live as usize]
            .iter()
            .flatten()
            .next()
        {
            self.frames += 1;
            self.out
                .write_udp(now, SOURCE, line.group, &bytes)
                .map_err(failed)?;
        }
        self.spare.push(bytes);
        Ok(())
    }

    /// When there is something to do next.
    fn due(&self) -> Option<Nanos> {
        let held = self.held.front().map(|held| held.0);
        let answer = self.answers.front().map(|answer| answer.0);
        held.into_iter().chain(answer).min()
    }
}

/// Writes the capture; `packets` cuts the session without a close. With `results`, what every receiver must
/// have in the end goes into that folder.
pub fn write(
    config: &MarketConfig,
    path: &Path,
    packets: Option<u64>,
    results: Option<&Path>,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let (mut market, published) = venue::market_of(config, Some(KEPT))?;
    let troubles = venue::troubles_of(config);
    let mut recording = Recording::create(path, &published, troubles, config.exchange.seed)?;
    let mut now = VIRTUAL_START;
    market.open(now);
    let mut looks = 0_u32;
    while !market.is_over() && packets.is_none_or(|n| recording.frames < n) {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1024)
            && let Some(reason) = stop.reason()
        {
            return Err(Failure::interrupted(format!(
                "{reason}; the capture is not complete"
            )));
        }
        let more = market.on_time(now);
        for (channel, published) in published.iter().enumerate() {
            let exchange = market.exchange_mut(published.venue);
            while let Some(datagram) = exchange.poll_datagram(published.published_channel, now) {
                recording.send(now, channel, datagram.port, datagram.lines, datagram.bytes)?;
            }
        }
        recording.settle(now)?;
        if !more {
            let due = market.poll_timeout().into_iter().chain(recording.due()).min();
            now = due
                .unwrap_or(now)
                .max(now.after(LOOK_NS))
                .min(now.after(Nanos::MILLI));
        }
    }
    recording.settle(now.after(Nanos::SECOND))?;
    if let Some(folder) = results {
        write_books(config, &market, &published, folder)?;
    }
    let Recording {
        out,
        frames,
        lost,
        answered,
        ..
    } = recording;
    out.finish().map_err(failed)?;
    eprintln!(
        "{}: {} messages in {frames} packets over both lines; lost {lost} packets, {answered} of them on all lines and sent late; {:.3} s of the day",
        path.display(),
        market.total(),
        now.since(VIRTUAL_START) as f64 / 1e9,
    );
    Ok(())
}

/// Every level that a feed's receivers must have, as `books-<feed>.txt`; of consolidated feeds the national
/// best, and every participant's quote as `quotes-<feed>.txt`: symbol, letter, then price and size of bid and
/// offer.
fn write_books(
    config: &MarketConfig,
    market: &Market,
    published: &[Published],
    folder: &Path,
) -> Result<(), Failure> {
    use std::fmt::Write as _;
    for (index, feed) in config.feed.iter().enumerate() {
        let mut levels = LevelWriter::create(&folder.join(format!("books-{}.txt", feed.name())))?;
        let mut quotes = String::new();
        let mut books = Vec::new();
        for published in published.iter().filter(|published| published.feed == index) {
            let exchange = market.exchange(published.venue);
            let published_channel = &exchange.published_channels()[published.published_channel];
            for listing in exchange.listings() {
                if !published_channel.instruments.contains(&listing.id.0) {
                    continue;
                }
                let sides = Side::BOTH.map(|side| {
                    published_channel
                        .publisher
                        .levels(exchange.engine(), listing.id, side)
                });
                books.push((listing.symbol, sides));
                for quote in published_channel.publisher.participant_quotes(listing.id) {
                    let [bid, ask] = quote.sides;
                    let letter = char::from(quote.participant);
                    let _ = writeln!(
                        quotes,
                        "{} {letter} {} {} {} {}",
                        listing.symbol, bid.price, bid.qty, ask.price, ask.qty
                    );
                }
            }
        }
        books.sort_unstable_by_key(|book| book.0);
        for (symbol, sides) in books {
            for side in Side::BOTH {
                levels.book(symbol.as_str(), side, sides[side as usize].iter().copied())?;
            }
        }
        levels.finish()?;
        if !quotes.is_empty() {
            let path = folder.join(format!("quotes-{}.txt", feed.name()));
            tickwire_runtime::files::write(&path, quotes)
                .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
        }
    }
    Ok(())
}
