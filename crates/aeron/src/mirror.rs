//! The receiving side: frames become a region like the publisher's, which programs read as they read his.
//!
//! ```text
//! live frames ──► Listening ── a beat says what the region is ──► Mirror: joining ── pass complete, ──► ready, follows
//!                     ▲                                            │  snapshot        live frame reached      │
//!                     └── a frame is missing, another publisher, another region (Rejoin) ◄────────────────────┘
//! ```
//! A mirror joins late by a pass over everything (the snapshot stream) that began after its first live frame:
//! slots carry the number of their write, so that live frame and pass may come in any order. It is ready when
//! the pass is complete and the live stream is where the pass ended. Records of before are told as missed.
//!
//! **Invariant.** A ring's record is the one that has its number at the publisher, or is said to be missed. A
//! frame that is missing or damaged ends the mirror; what has been mirrored is said to be stale first.

use crate::frame::{Entry, FeedHealth, Frame, FrameError, FrameHeader, RecordReader, Stream, words_of};
use tickwire_shm::{
    MirrorWriter, Region, RegionConfig, RegionState, RingMirror, Section, SourceState, WriteWord,
};

/// Nothing heard for so long: every source is stale until something is. Nanoseconds; a beat comes every 100
/// ms.
pub const SILENT_AFTER_NS: u64 = 1_000_000_000;
/// Nothing heard for so long: the place in the stream is given up, and joined anew. Nanoseconds.
pub const LOST_AFTER_NS: u64 = 5_000_000_000;
/// A turn that comes later than this after the one before counts as this much of silence, not more.
/// Nanoseconds.
const TURN_MAX_NS: u64 = SILENT_AFTER_NS / 4;

/// Why a mirror has to begin anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejoin {
    /// Live frames are missing: this host was too slow, or the publisher had nobody to hear it.
    #[error(
        "{missing} frames before frame {found} are missing: this host has fallen behind further than the publisher keeps, or was cut off"
    )]
    Gap {
        /// How many.
        missing: u64,
        /// The one that came.
        found: u64,
    },
    /// The publisher was started again.
    #[error("another publisher has taken over")]
    Publisher,
    /// The feed handler was started again.
    #[error("the feed handler was started again")]
    Region,
    /// A frame cannot be read.
    #[error("{0}")]
    Damaged(#[from] FrameError),
    /// Records of a ring came twice or out of order.
    #[error("records of ring {ring} from number {found} on, where {expected} is next")]
    Records {
        /// The ring.
        ring: u16,
        /// The number that is next.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// Nothing was heard for [`LOST_AFTER_NS`].
    #[error("nothing was heard for 5 s: the publisher ended, or the network is cut")]
    Silence,
}

/// What was received so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mirrored {
    /// Live frames applied.
    pub frames: u64,
    /// Snapshot frames applied.
    pub snapshot_frames: u64,
    /// Records applied.
    pub records: u64,
    /// Records that the publisher had missed.
    pub missed: u64,
    /// Slots applied.
    pub slots: u64,
    /// Slots that were there already, or newer ones.
    pub old_slots: u64,
    /// Frames of an earlier publisher, of others, of another stream: passed over.
    pub ignored: u64,
    /// Entries of a later version: passed over.
    pub unknown: u64,
    /// Times that every source was said to be stale because nothing was heard.
    pub silences: u64,
}

/// What a beat said: enough to make a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// The frame that it was in.
    pub header: FrameHeader,
    /// What the region is.
    pub config: RegionConfig,
}

/// Looks for a beat in a live frame. Frames of publishers earlier than `since` (an epoch) have none.
///
/// # Errors
/// The frame cannot be read.
pub fn invitation(bytes: &[u8], since: u64) -> Result<Option<Invitation>, FrameError> {
    let frame = Frame::new(bytes)?;
    if frame.header.stream != Stream::Live || frame.header.epoch < since {
        return Ok(None);
    }
    for entry in frame.entries() {
        if let Entry::Beat { config, health, .. } = entry?
            && health != FeedHealth::Ended
        {
            let header = frame.header;
            return Ok(Some(Invitation { header, config }));
        }
    }
    Ok(None)
}

/// The state of a source as it is said.
#[derive(Clone, Copy, Debug)]
struct Said {
    state: SourceState,
    count: u64,
}

/// A pass that is being received.
#[derive(Clone, Copy, Debug)]
struct Pass {
    number: u64,
    next_frame: u64,
}

/// A region that is made of frames.
#[derive(Debug)]
pub struct Mirror<'a, W> {
    region: Region<'a, W>,
    writer: MirrorWriter<'a, W>,
    epoch: u64,
    generation: u64,
    /// The first live frame that was taken, and the next; `None`: none was.
    first_live: Option<u64>,
    next_live: Option<u64>,
    said: Vec<Said>,
    rings: Vec<Option<RingMirror<'a, W>>>,
    /// Where rings were at the end of the pass.
    places: Vec<u64>,
    words: Vec<u64>,
    pass: Option<Pass>,
    complete_at: Option<u64>,
    is_ready: bool,
    is_ended: bool,
    heard: u64,
    turned: u64,
    is_silent: bool,
    mirrored: Mirrored,
}

impl<'a, W: WriteWord> Mirror<'a, W> {
    /// Of a region that was formatted with the configuration of an invitation; `now` as for [`Mirror::look`].
    pub fn new(region: Region<'a, W>, invitation: &Invitation, now: u64) -> Mirror<'a, W> {
        let layout = *region.layout();
        let widest = Section::ALL.map(|section| section.place(&layout).stride);
        let unsaid = Said {
            state: SourceState::Building,
            count: 0,
        };
        Mirror {
            writer: region.mirror(),
            region,
            epoch: invitation.header.epoch,
            generation: invitation.header.generation,
            first_live: None,
            next_live: None,
            said: vec![unsaid; layout.config.sources as usize],
            rings: (0..layout.config.rings).map(|_| None).collect(),
            places: vec![0; layout.config.rings as usize],
            words: vec![0; widest.into_iter().max().unwrap_or(0)],
            pass: None,
            complete_at: None,
            is_ready: false,
            is_ended: false,
            heard: now,
            turned: now,
            is_silent: false,
            mirrored: Mirrored::default(),
        }
    }

    /// What was received.
    pub fn mirrored(&self) -> Mirrored {
        self.mirrored
    }

    /// Whether everything is there: the snapshot stream is not needed any more, and the region may be shown.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the feed handler has ended in an orderly way.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Takes a frame of either stream. Costs no memory.
    ///
    /// # Errors
    /// The mirror cannot go on: give it up, and listen anew. Every source is stale.
    pub fn frame(&mut self, bytes: &[u8], now: u64) -> Result<(), Rejoin> {
        let taken = self.take(bytes, now);
        if taken.is_err() {
            self.distrust();
        }
        taken
    }

    /// Once a turn, before frames are taken; `now` as for [`Mirror::look`]. While this thread did not turn,
    /// what receives for it may have stood still, too: of the time between two turns at most a quarter of
    /// [`SILENT_AFTER_NS`] counts as silence.
    pub fn turn(&mut self, now: u64) {
        let unheard = now.saturating_sub(self.turned).saturating_sub(TURN_MAX_NS);
        self.heard = self.heard.saturating_add(unheard);
        self.turned = now;
    }

    /// Once a turn, after frames were taken: notices that nothing is heard. `now` is nanoseconds of a clock
    /// that only goes forward, read before they were taken: what comes later is not silence yet.
    ///
    /// # Errors
    /// For too long: as [`Mirror::frame`].
    pub fn look(&mut self, now: u64) -> Result<(), Rejoin> {
        let quiet = now.saturating_sub(self.heard);
        if quiet > LOST_AFTER_NS {
            self.distrust();
            return Err(Rejoin::Silence);
        }
        if quiet > SILENT_AFTER_NS && !self.is_silent {
            self.is_silent = true;
            self.mirrored.silences += 1;
            self.distrust();
        }
        Ok(())
    }

    fn distrust(&mut self) {
        for source in 0..self.said.len() {
            self.writer.set_state(source as u16, SourceState::Stale);
        }
    }

    fn take(&mut self, bytes: &[u8], now: u64) -> Result<(), Rejoin> {
        let Ok(frame) = Frame::new(bytes) else {
            // Of another program: it has no place in our stream that could be missing.
            self.mirrored.ignored += 1;
            return Ok(());
        };
        let header = frame.header;
        if header.epoch < self.epoch {
            self.mirrored.ignored += 1;
            return Ok(());
        }
        if header.epoch > self.epoch {
            return Err(Rejoin::Publisher);
        }
        if header.generation != self.generation {
            return Err(Rejoin::Region);
        }
        match header.stream {
            Stream::Live => self.live(&frame, now),
            Stream::Snapshot => self.snapshot(&frame),
        }
    }

    fn live(&mut self, frame: &Frame<'_>, now: u64) -> Result<(), Rejoin> {
        let found = frame.header.number;
        self.first_live.get_or_insert(found);
        let next = *self.next_live.get_or_insert(found);
        if found < next {
            self.mirrored.ignored += 1;
            return Ok(());
        }
        if found > next {
            let missing = found - next;
            return Err(Rejoin::Gap { missing, found });
        }
        self.heard = now;
        if self.is_silent {
            self.is_silent = false;
            for source in 0..self.said.len() {
                self.writer.set_state(source as u16, self.said[source].state);
            }
        }
        for entry in frame.entries() {
            self.entry(entry?)?;
        }
        self.next_live = Some(next.saturating_add(1));
        self.mirrored.frames += 1;
        self.settle();
        Ok(())
    }

    fn entry(&mut self, entry: Entry<'_>) -> Result<(), Rejoin> {
        match entry {
            Entry::Records {
                ring,
                first,
                count,
                bytes,
            } => {
                let Some(mirror) = self.ring(ring, first)? else {
                    return Ok(());
                };
                for record in RecordReader::new(bytes, count) {
                    mirror.record(&record?);
                }
                self.mirrored.records += u64::from(count);
            }
            Entry::Hole { ring, first, count } => {
                let Some(mirror) = self.ring(ring, first)? else {
                    return Ok(());
                };
                mirror.lose(count.min(HOLE_MAX));
                self.mirrored.missed = self.mirrored.missed.saturating_add(count);
            }
            Entry::Slot {
                section,
                index,
                write,
                bytes,
            } => self.slot(section, index, write, bytes)?,
            Entry::State { source, state, said } => self.state(source, state, said),
            Entry::Beat {
                health,
                counters,
                claimed,
                ..
            } => {
                self.writer.counters_in_rows(counters);
                for (section, slots) in [Section::Histograms, Section::Books, Section::Supers]
                    .into_iter()
                    .zip(claimed)
                {
                    self.writer.claimed(section, slots);
                }
                if health == FeedHealth::Ended && !self.is_ended {
                    self.is_ended = true;
                    if self.is_ready {
                        self.region.set_state(RegionState::Ended);
                    }
                }
            }
            Entry::Unknown(_) => self.mirrored.unknown += 1,
            // Of the other stream.
            Entry::Begin { .. } | Entry::End { .. } | Entry::Place { .. } => self.mirrored.ignored += 1,
        }
        Ok(())
    }

    /// The ring at a record; `None` where this region has no such ring.
    fn ring(&mut self, ring: u16, first: u64) -> Result<Option<&mut RingMirror<'a, W>>, Rejoin> {
        let Some(place) = self.rings.get_mut(usize::from(ring)) else {
            self.mirrored.ignored += 1;
            return Ok(None);
        };
        if place.is_none() {
            *place = self.writer.ring_from(ring.into(), first.min(NUMBER_MAX));
        }
        match place {
            Some(mirror) if mirror.next_number() != first => Err(Rejoin::Records {
                ring,
                expected: mirror.next_number(),
                found: first,
            }),
            mirror => Ok(mirror.as_mut()),
        }
    }

    fn slot(&mut self, section: Section, index: u32, write: u64, bytes: &[u8]) -> Result<(), Rejoin> {
        let place = section.place(self.region.layout());
        if index >= place.count {
            self.mirrored.ignored += 1;
            return Ok(());
        }
        let words = &mut self.words[..place.stride];
        words_of(bytes, words)?;
        match self.writer.put_slot(section, index, write, words) {
            true => self.mirrored.slots += 1,
            false => self.mirrored.old_slots += 1,
        }
        Ok(())
    }

    fn state(&mut self, source: u16, state: SourceState, count: u64) {
        let Some(said) = self.said.get_mut(usize::from(source)) else {
            return;
        };
        if count > said.count {
            *said = Said { state, count };
            if !self.is_silent {
                self.writer.set_state(source, state);
            }
        }
    }

    fn snapshot(&mut self, frame: &Frame<'_>) -> Result<(), Rejoin> {
        if self.is_ready || self.complete_at.is_some() {
            return Ok(());
        }
        let number = frame.header.number;
        match &mut self.pass {
            Some(pass) if pass.next_frame == number => pass.next_frame += 1,
            // A part of it is missing: the next one will do.
            pass => *pass = None,
        }
        for entry in frame.entries() {
            match entry? {
                Entry::Begin { pass, live } => {
                    let is_whole = self.first_live.is_some_and(|first| live >= first);
                    self.pass = is_whole.then_some(Pass {
                        number: pass,
                        next_frame: number + 1,
                    });
                }
                Entry::End { pass, live } => {
                    if self.pass.is_some_and(|begun| begun.number == pass) {
                        self.complete_at = Some(live);
                    }
                }
                _ if self.pass.is_none() => break,
                Entry::Slot {
                    section,
                    index,
                    write,
                    bytes,
                } => {
                    // What has no number may be older than what the live stream said; it says it again soon.
                    self.slot(section, index, write, bytes)?;
                }
                Entry::State { source, state, said } => self.state(source, state, said),
                Entry::Place { ring, next } => {
                    // Live frames of before the end of the pass may still bring records of before.
                    if let Some(place) = self.places.get_mut(usize::from(ring)) {
                        *place = next.min(NUMBER_MAX);
                    }
                }
                Entry::Unknown(_) => self.mirrored.unknown += 1,
                _ => self.mirrored.ignored += 1,
            }
        }
        self.mirrored.snapshot_frames += 1;
        self.settle();
        Ok(())
    }

    /// Ready when the pass is complete and the live stream is where it ended.
    fn settle(&mut self) {
        let reached = self
            .complete_at
            .zip(self.next_live)
            .is_some_and(|(at, next)| next >= at);
        if !self.is_ready && reached {
            self.is_ready = true;
            for (ring, (place, next)) in self.rings.iter_mut().zip(&self.places).enumerate() {
                if place.is_none() {
                    *place = self.writer.ring_from(ring as u32, *next);
                }
            }
            self.region.set_state(match self.is_ended {
                true => RegionState::Ended,
                false => RegionState::Ready,
            });
        }
    }
}

/// Numbers of records are kept modulo 2^40, places of them below 2^62.
const NUMBER_MAX: u64 = 1 << 61;
/// The most records that are lost at once: a day's work of a fast ring.
const HOLE_MAX: u64 = 1 << 40;
