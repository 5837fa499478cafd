//! Archives of events: no first reading, no arbitration, no decoding of packets; the same channels behind the
//! same calls.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use tickwire_archive::{Archive, ArchiveError, ChannelFacts, Cursor};
use tickwire_book::BooksConfig;
use tickwire_market::{BookState, InstrumentId, Nanos};

use tickwire_console::failure::Failure;
use tickwire_runtime::clock::tsc;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::Reception;

use super::survey::{Stopped, Survey};
use super::{About, Ending, INSTRUMENTS_MAX, ROOM_MAX, Replay, ReplayArgs, Room, Routes};
use crate::progress::Progress;
use crate::tape::End;

/// Whether files are archives: all of them, or none.
pub(super) fn are_archives(files: &[PathBuf]) -> Result<bool, Failure> {
    let is_one = |path: &PathBuf| File::open(path).is_ok_and(|file| Archive::recognises(&file));
    let count = files.iter().filter(|path| is_one(path)).count();
    match count {
        0 => Ok(false),
        all if all == files.len() => Ok(true),
        _ => Err(Failure::config(
            "archives of events and other recordings cannot be played together: make an archive of the others",
        )),
    }
}

/// An archive says itself what its channels are.
pub(super) fn routes(args: &ReplayArgs) -> Result<Routes, Stopped> {
    let refused = match (&args.config, args.protocol, &args.check) {
        (Some(_), ..) => "--config",
        (_, Some(_), _) => "--protocol",
        (.., Some(_)) => "--check",
        _ => return Ok(Routes::Recognised(Survey::default())),
    };
    Err(Stopped::Failed(Failure::config(format!(
        "an archive of events says itself what it is: leave {refused} out"
    ))))
}

fn damaged(path: &Path) -> impl FnOnce(ArchiveError) -> End + '_ {
    move |e| match e {
        ArchiveError::Io(e) => End::Failed(Failure::system(format!("cannot read {}: {e}", path.display()))),
        e => End::Damaged(format!("{}: {e}", path.display())),
    }
}

fn opened(path: &Path) -> Result<Archive, End> {
    let cannot = |e| End::Failed(Failure::system(format!("cannot open {}: {e}", path.display())));
    Archive::open(File::open(path).map_err(cannot)?).map_err(damaged(path))
}

/// An archive that is played.
struct Reel {
    path: PathBuf,
    cursor: Cursor,
    /// By channel of the archive: the channel that it is played into.
    places: Vec<usize>,
    /// Channels and instruments of which blocks are read, where not all are.
    wanted: Option<HashSet<(u32, InstrumentId)>>,
    /// When the packet that it came to was received, or a later time of a packet before it.
    now: Nanos,
}

impl Replay<'_> {
    /// Plays archives together, packet by packet in order of time; of one time, those of the file that was
    /// named first come first.
    pub(super) fn archives(&mut self, files: &[PathBuf]) -> Result<(), End> {
        let mut reels: Vec<Reel> = Vec::new();
        // By channel: which file has it.
        let mut names: HashMap<String, usize> = HashMap::new();
        for (nth, path) in files.iter().enumerate() {
            let archive = opened(path)?;
            let mut places = Vec::new();
            for facts in archive.channels() {
                let other = names.insert(facts.name.clone(), nth);
                if let Some(other) = other.filter(|other| *other != nth) {
                    // Numbers of instruments and orders are those of a session: books of one would be wrong
                    // for the other.
                    return Err(End::Failed(Failure::config(format!(
                        "{} and {} both have the channel {}, and an archive does not go on where another one ends: play each by itself, or make one archive of both recordings if they are of one day",
                        files[other].display(),
                        path.display(),
                        facts.name
                    ))));
                }
                places.push(self.add_archived(path, facts)?);
            }
            if archive.blocks().is_empty() {
                self.empty
                    .push(format!("{} is an archive without an event", path.display()));
            }
            reels.push(Reel {
                path: path.clone(),
                wanted: self.wanted(&archive),
                cursor: Cursor::new(archive),
                places,
                now: Nanos::ZERO,
            });
        }
        let (begin, mut reading) = (tsc(), 0);
        let played = self.reels(&mut reels, &mut reading);
        self.block_ticks = (tsc() - begin).saturating_sub(reading);
        played
    }

    /// Plays them to their end; `reading`: the processor's ticks that reading blocks took.
    fn reels(&mut self, reels: &mut Vec<Reel>, reading: &mut u64) -> Result<(), End> {
        let (mut progress, mut number) = (Progress::new("playing"), 0_u64);
        let mut at = 0;
        while at < reels.len() {
            match self.step_on(&mut reels[at], number, &mut progress, reading)? {
                true => at += 1,
                false => _ = reels.remove(at),
            }
        }
        loop {
            let soonest = match reels.len() {
                0 => return Ok(()),
                1 => 0,
                count => (0..count).min_by_key(|at| reels[*at].now).unwrap_or(0),
            };
            let reel = &mut reels[soonest];
            number += 1;
            let packet = reel.cursor.packet();
            self.tape.advance(reel.now.max(self.tape.last()), self.stop)?;
            let channel = reel.places[packet.channel];
            self.played[channel].on_message(packet.now, packet.bytes);
            if self.args.step {
                self.step(channel, &format!("packet {number} of {}", reel.path.display()))?;
            }
            while let Some(packet) = reel.cursor.ahead() {
                self.played[reel.places[packet.channel]].preview(packet.now, packet.bytes);
            }
            if !self.step_on(reel, number, &mut progress, reading)? {
                reels.remove(soonest);
            }
        }
    }

    /// Goes on to an archive's next packet; whether there is one. One that is damaged ends there, and is
    /// said.
    #[inline]
    fn step_on(
        &mut self,
        reel: &mut Reel,
        number: u64,
        progress: &mut Progress,
        reading: &mut u64,
    ) -> Result<bool, End> {
        loop {
            match reel.cursor.advance() {
                Ok(true) => {
                    reel.now = reel.cursor.packet().now.max(reel.now);
                    return Ok(true);
                }
                Ok(false) => {
                    if self.stop.is_set() {
                        return Err(End::Interrupted);
                    }
                    let begin = tsc();
                    let wanted = &reel.wanted;
                    let holds = |hold: &(u32, InstrumentId)| wanted.as_ref().is_none_or(|w| w.contains(hold));
                    let read = reel.cursor.read_block(|facts| facts.holds.iter().any(holds));
                    *reading += tsc() - begin;
                    match read {
                        Ok(true) => progress.show(&reel.path, number, reel.cursor.offset()),
                        Ok(false) => return Ok(false),
                        Err(e) => return self.ended(damaged(&reel.path)(e)),
                    }
                }
                Err(e) => return self.ended(damaged(&reel.path)(e)),
            }
        }
    }

    fn ended(&mut self, end: End) -> Result<bool, End> {
        self.spoilt(end).map(|()| false)
    }

    fn add_archived(&mut self, path: &Path, facts: &ChannelFacts) -> Result<usize, End> {
        let protocol = Protocol::ALL
            .into_iter()
            .find(|protocol| protocol.name() == facts.protocol);
        let Some(protocol) = protocol else {
            return Err(End::Damaged(format!(
                "{}: a channel of {:?}, which this program does not know",
                path.display(),
                facts.protocol
            )));
        };
        // Whatever a file says, no more than a recording gets.
        let most = |said: u32, own: Option<u32>| own.unwrap_or(said.min(ROOM_MAX as u32));
        let room = Room {
            instruments: self
                .args
                .max_instruments
                .unwrap_or(facts.room[0].min(INSTRUMENTS_MAX + 1)),
            orders: most(facts.room[1], self.args.max_orders),
            levels: most(facts.room[2], self.args.max_levels),
        };
        let feed = FeedConfig {
            name: Some(facts.name.clone()),
            venue: facts.venue,
            protocol: Some(protocol),
            ..FeedConfig::on_loopback(protocol)
        };
        let books = BooksConfig {
            venue: facts.venue,
            depth: facts.depth,
            instruments: room.instruments,
            orders: room.orders,
            levels: room.levels,
            initial: BookState::Building,
            ..BooksConfig::default()
        };
        let facts = ChannelFacts {
            room: [room.instruments, room.orders, room.levels],
            ..facts.clone()
        };
        let reception = Reception::archived(facts.clone(), self.symbols.clone());
        let played = self.make.channel(&feed, 0, &reception, facts.name, books);
        self.played.push(played.map_err(End::Failed)?);
        self.about.push(About {
            protocol: protocol.name(),
            on: Vec::new(),
            room,
            end: Ending::default(),
        });
        Ok(self.played.len() - 1)
    }

    /// Channels and instruments of which blocks are read, where not all are: those wanted, and feeds as a
    /// whole.
    fn wanted(&self, archive: &Archive) -> Option<HashSet<(u32, InstrumentId)>> {
        let symbols = self.symbols.as_ref()?;
        let mut wanted = HashSet::new();
        for (channel, facts) in archive.channels().iter().enumerate() {
            wanted.insert((channel as u32, InstrumentId::WHOLE_FEED));
            let of = facts
                .instruments
                .iter()
                .filter(|known| symbols.contains(&known.instrument.symbol));
            wanted.extend(of.map(|known| (channel as u32, known.instrument.id)));
        }
        Some(wanted)
    }
}
