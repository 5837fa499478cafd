//! Archives of events: no first reading, no arbitration, no decoding of packets; the same channels behind the
//! same calls.

use std::fs::File;
use std::path::{Path, PathBuf};

use tickwire_archive::{Archive, ArchiveError, ChannelFacts, packets};
use tickwire_book::BooksConfig;
use tickwire_market::BookState;

use tickwire_console::failure::Failure;
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

impl Replay<'_> {
    /// Plays archives one after the other; channels of one name go on.
    pub(super) fn archives(&mut self, files: &[PathBuf]) -> Result<(), End> {
        let mut names: Vec<String> = Vec::new();
        for path in files {
            let cannot = |e| End::Failed(Failure::system(format!("cannot open {}: {e}", path.display())));
            let archive = Archive::open(File::open(path).map_err(cannot)?).map_err(damaged(path))?;
            let mut places = Vec::new();
            for facts in archive.channels() {
                let known = names.iter().position(|name| *name == facts.name);
                places.push(match known {
                    Some(place) => place,
                    None => {
                        names.push(facts.name.clone());
                        self.add_archived(path, facts)?
                    }
                });
            }
            self.archive(path, &archive, &places)?;
            if archive.blocks().is_empty() {
                self.empty
                    .push(format!("{} is an archive without an event", path.display()));
            }
        }
        Ok(())
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

    fn archive(&mut self, path: &Path, archive: &Archive, places: &[usize]) -> Result<(), End> {
        let mut progress = Progress::new("playing");
        let wanted = self.wanted(archive);
        let (mut buffer, mut number) = (Vec::new(), 0_u64);
        for (at, facts) in archive.blocks().iter().enumerate() {
            if self.stop.is_set() {
                return Err(End::Interrupted);
            }
            progress.show(path, number, facts.place);
            let holds = |hold: &(u32, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(hold));
            if !facts.holds.iter().any(holds) {
                continue;
            }
            let block = archive.block(at, &mut buffer).map_err(damaged(path))?;
            let mut packets = packets(block, places.len());
            for packet in packets.by_ref() {
                number += 1;
                self.tape.advance(packet.now.max(self.tape.last()), self.stop)?;
                let channel = places[packet.channel];
                self.played[channel].on_message(packet.now, packet.bytes);
                if self.args.step {
                    self.step(channel, &format!("packet {number} of the archive"))?;
                }
            }
            if packets.is_damaged() {
                return Err(damaged(path)(ArchiveError::Block(at)));
            }
        }
        Ok(())
    }

    /// Channels and instruments of which blocks are read, where not all are: those wanted, and feeds as a
    /// whole.
    fn wanted(
        &self,
        archive: &Archive,
    ) -> Option<std::collections::HashSet<(u32, tickwire_market::InstrumentId)>> {
        let symbols = self.symbols.as_ref()?;
        let mut wanted = std::collections::HashSet::new();
        for (channel, facts) in archive.channels().iter().enumerate() {
            wanted.insert((channel as u32, tickwire_market::InstrumentId::WHOLE_FEED));
            let of = facts
                .instruments
                .iter()
                .filter(|known| symbols.contains(&known.instrument.symbol));
            wanted.extend(of.map(|known| (channel as u32, known.instrument.id)));
        }
        Some(wanted)
    }
}
