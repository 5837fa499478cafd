//! The publishing side: reads a region as any reader does, and says what is in it in frames.
//!
//! ```text
//!            ┌─ states of sources (before)
//!  a turn    ├─ records of each ring, all of them, in order ────────► live frames
//!            ├─ books that were written since, each as it now is ───► live frames, behind "stale" where a state has changed
//!            ├─ states of sources (after), a beat ──────────────────► live frames
//!            └─ while somebody joins: some slots of the pass ───────► snapshot frames
//! ```
//! **Invariant.** In the order of the live stream a source is live only behind every book that was written
//! before it became live, and not live before any book that was written after it stopped being so: a book of
//! the mirror is trusted only when the one it was copied of could be.
//!
//! Nothing waits here. What the network does not take (`Offered::Full`) stays in one frame, and the turn goes
//! on there next time; meanwhile the ring fills, and what it writes over is counted and told (`Entry::Hole`).
//! Books are conflated: of several writes between two turns the last one goes out.

use crate::frame::{FRAME_MAX, FeedHealth, FrameWriter, RECORD_MAX, Stream};
use tickwire_shm::{NextWords, Reader, RingCursor, Section, SourceState, Word};

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// It is on its way.
    Taken,
    /// There is no room for it now.
    Full,
    /// Nobody listens.
    Unheard,
}

/// Where frames go.
pub trait Outlet {
    /// Hands over a frame.
    fn offer(&mut self, stream: Stream, frame: &[u8]) -> Offered;
    /// Whether somebody listens to a stream.
    fn is_heard(&self, stream: Stream) -> bool;
}

/// How often what is said, and how much at once. Times are nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Books and consolidated books are looked at again after.
    pub books_ns: u64,
    /// Rows of sources and histograms are said again after.
    pub statistics_ns: u64,
    /// A beat, at the latest, after.
    pub beat_ns: u64,
    /// The most bytes of a live frame; at most [`FRAME_MAX`].
    pub frame_bytes: usize,
    /// The most records of a ring in one turn.
    pub records: usize,
    /// The most frames of a pass in one turn.
    pub snapshot_frames: usize,
    /// From the end of a pass to the beginning of the next.
    pub pass_ns: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            books_ns: 5_000_000,
            statistics_ns: 1_000_000_000,
            beat_ns: 100_000_000,
            frame_bytes: 8 << 10,
            records: 4096,
            snapshot_frames: 2,
            pass_ns: 200_000_000,
        }
    }
}

/// What was published so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Published {
    /// Live frames.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Records in them.
    pub records: u64,
    /// Records that the ring had written over before they were read.
    pub missed: u64,
    /// Slots in live frames.
    pub slots: u64,
    /// Times that the network had no room.
    pub full: u64,
    /// Live frames that nobody listened to.
    pub unheard: u64,
    /// Passes over everything that were said to the end.
    pub passes: u64,
}

/// A source as it was said last.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// Changes and state of the region that this is for; `None`: nothing was said.
    of: Option<(u64, SourceState)>,
    /// What was said.
    state: Option<SourceState>,
    /// How many states were said.
    count: u64,
    /// As it was when the turn began.
    before: (u64, Option<SourceState>),
}

/// Where a turn is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Begin,
    Rings { ring: u32, read: usize },
    Slots { section: Section, index: u32 },
    Close,
}

/// Where a pass is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pass {
    Off,
    Slots {
        section: Section,
        index: u32,
    },
    /// Every slot is said; waits for so many whole turns in which no state changed.
    Settle(u8),
    /// A finished frame waits for room; then it goes on there.
    Last,
}

/// Publishes one region.
#[derive(Debug)]
pub struct Publisher {
    epoch: u64,
    generation: u64,
    pace: Pace,
    live: Out,
    states: Out,
    snapshot: Out,
    live_number: u64,
    snapshot_number: u64,
    cursors: Vec<RingCursor>,
    sent: [Vec<u64>; 2],
    counts: Vec<u64>,
    said: Vec<Said>,
    words: Vec<u64>,
    step: Step,
    due: Due,
    pass: (u64, Pass),
    /// Every source is said as it is.
    is_quiet: bool,
    /// Records wait in a ring that had its share.
    has_more: bool,
    published: Published,
}

/// When what is due next, and what of it this turn does.
#[derive(Debug, Default)]
struct Due {
    books: u64,
    statistics: u64,
    beat: u64,
    pass: u64,
    says_books: bool,
    says_statistics: bool,
}

/// A frame in the making, or one that waits for room.
#[derive(Debug)]
struct Out {
    frame: FrameWriter,
    is_finished: bool,
    has_slots: bool,
}

impl Out {
    fn new() -> Out {
        Out {
            frame: FrameWriter::new(),
            is_finished: false,
            has_slots: false,
        }
    }

    fn begin(&mut self, stream: Stream, epoch: u64, generation: u64) {
        self.frame.begin(stream, epoch, generation);
        (self.is_finished, self.has_slots) = (false, false);
    }
}

/// The network has no room: go on next time.
struct Wait;

impl Publisher {
    /// Of the region that `reader` reads; `epoch` is now, nanoseconds since 1970, later than that of any
    /// publisher before. Rings are read from their oldest record while they hold all of them, else from now
    /// on.
    pub fn new<W: Word>(reader: &Reader<'_, W>, epoch: u64, pace: Pace) -> Publisher {
        let layout = reader.layout();
        let cursor = |ring: u32| {
            let has_all = reader.ring_written(ring) < u64::from(layout.config.ring_records);
            match has_all {
                true => reader.ring_from_oldest(ring),
                false => reader.ring(ring),
            }
        };
        let widest = Section::ALL.map(|section| section.place(layout).stride);
        let mut publisher = Publisher {
            epoch,
            generation: reader.generation().0,
            pace: Pace {
                frame_bytes: pace.frame_bytes.min(FRAME_MAX),
                ..pace
            },
            live: Out::new(),
            states: Out::new(),
            snapshot: Out::new(),
            live_number: 0,
            snapshot_number: 0,
            cursors: (0..layout.config.rings).filter_map(cursor).collect(),
            sent: [Section::Books, Section::Supers].map(|s| vec![0; s.place(layout).count as usize]),
            counts: vec![u64::MAX; layout.config.histograms as usize],
            said: vec![Said::default(); layout.config.sources as usize],
            words: vec![0; widest.into_iter().max().unwrap_or(0)],
            step: Step::Begin,
            due: Due::default(),
            pass: (0, Pass::Off),
            is_quiet: true,
            has_more: false,
            published: Published::default(),
        };
        let (epoch, generation) = (publisher.epoch, publisher.generation);
        publisher.live.begin(Stream::Live, epoch, generation);
        publisher.states.begin(Stream::Live, epoch, generation);
        publisher.snapshot.begin(Stream::Snapshot, epoch, generation);
        publisher
    }

    /// What was published.
    pub fn published(&self) -> Published {
        self.published
    }

    /// One turn, or as much of it as the network takes; whether there was anything to say beside the beat.
    /// `health` is how the feed handler is, `now` nanoseconds of a clock that only goes forward.
    pub fn turn<W: Word>(
        &mut self,
        reader: &Reader<'_, W>,
        health: FeedHealth,
        now: u64,
        outlet: &mut impl Outlet,
    ) -> bool {
        let before = (self.published.records, self.published.slots, self.snapshot_number);
        if self.live_turn(reader, health, now, outlet).is_ok() {
            let _ = self.snapshot_turn(reader, now, outlet);
        }
        before != (self.published.records, self.published.slots, self.snapshot_number)
    }

    fn live_turn<W: Word>(
        &mut self,
        reader: &Reader<'_, W>,
        health: FeedHealth,
        now: u64,
        outlet: &mut impl Outlet,
    ) -> Result<(), Wait> {
        if self.live.is_finished || self.states.is_finished {
            self.flush(reader, outlet)?;
        }
        if self.step == Step::Begin {
            for source in 0..self.said.len() {
                let (changes, state) = changes_of(reader, source as u16, health);
                self.said[source].before = (changes, Some(state));
            }
            self.due.says_books = now >= self.due.books;
            self.due.says_statistics = now >= self.due.statistics;
            (self.is_quiet, self.has_more) = (true, false);
            self.step = Step::Rings { ring: 0, read: 0 };
        }
        while let Step::Rings { ring, read } = self.step {
            self.ring(reader, ring, read, outlet)?;
        }
        while let Step::Slots { section, index } = self.step {
            self.slot(reader, section, index, outlet)?;
        }
        self.flush(reader, outlet)?;
        self.settle(reader, health);
        // An end that was said while records still wait would be believed.
        let health = match health {
            FeedHealth::Ended if !self.is_quiet || self.has_more => FeedHealth::Alive,
            health => health,
        };
        if now >= self.due.beat || self.due.says_statistics {
            self.due.beat = now + self.pace.beat_ns;
            let claimed = [Section::Histograms, Section::Books, Section::Supers]
                .map(|section| u64::from(reader.slots_used(section)));
            let (config, counters) = (reader.layout().config, reader.counters_in_rows());
            self.live.frame.beat(health, &config, counters, claimed);
        }
        if self.due.says_books {
            self.due.books = now + self.pace.books_ns;
        }
        if self.due.says_statistics {
            self.due.statistics = now + self.pace.statistics_ns;
        }
        self.step = Step::Begin;
        self.flush(reader, outlet)
    }

    /// Says records of a ring until it is empty, or has had its share.
    fn ring<W: Word>(
        &mut self,
        reader: &Reader<'_, W>,
        ring: u32,
        mut read: usize,
        outlet: &mut impl Outlet,
    ) -> Result<(), Wait> {
        let Some(cursor) = self.cursors.get(ring as usize).copied() else {
            let section = Section::Sources;
            self.step = Step::Slots { section, index: 0 };
            return Ok(());
        };
        let mut cursor = cursor;
        loop {
            if read >= self.pace.records {
                self.has_more = true;
                break;
            }
            if self.live.frame.len() + RECORD_MAX + 64 > self.pace.frame_bytes {
                self.cursors[ring as usize] = cursor;
                self.step = Step::Rings { ring, read };
                self.flush(reader, outlet)?;
            }
            let number = cursor.position();
            match cursor.next_words(reader) {
                NextWords::Record(record) => {
                    self.live
                        .frame
                        .record(ring as u16, number, &record, self.pace.frame_bytes);
                    self.published.records += 1;
                }
                NextWords::Missed(count) => {
                    self.live.frame.hole(ring as u16, number, count);
                    self.published.missed += count;
                }
                NextWords::Empty => break,
            }
            read += 1;
        }
        self.cursors[ring as usize] = cursor;
        self.step = Step::Rings {
            ring: ring + 1,
            read: 0,
        };
        Ok(())
    }

    /// Says the slots of a section that have changed, from one on.
    fn slot<W: Word>(
        &mut self,
        reader: &Reader<'_, W>,
        section: Section,
        from: u32,
        outlet: &mut impl Outlet,
    ) -> Result<(), Wait> {
        let wanted = match section.is_numbered() {
            true => self.due.says_books,
            false => self.due.says_statistics,
        };
        let used = if wanted { reader.slots_used(section) } else { 0 };
        for index in from..used {
            if !self.has_changed(reader, section, index) {
                continue;
            }
            let words = &mut self.words[..section.place(reader.layout()).stride];
            // Being written: it is found again in the next turn.
            let Ok(write) = reader.copy_slot(section, index, words) else {
                continue;
            };
            if !self
                .live
                .frame
                .slot(section, index, write, words, self.pace.frame_bytes)
            {
                self.step = Step::Slots { section, index };
                self.flush(reader, outlet)?;
                // An empty frame takes any slot.
                self.live.frame.slot(
                    section,
                    index,
                    write,
                    &self.words[..section.place(reader.layout()).stride],
                    FRAME_MAX,
                );
            }
            self.live.has_slots = true;
            self.published.slots += 1;
            match section {
                Section::Books => self.sent[0][index as usize] = write,
                Section::Supers => self.sent[1][index as usize] = write,
                Section::Histograms => self.counts[index as usize] = self.words[0],
                Section::Sources => {}
            }
        }
        self.step = match section {
            Section::Sources => Step::Slots {
                section: Section::Histograms,
                index: 0,
            },
            Section::Histograms => Step::Slots {
                section: Section::Books,
                index: 0,
            },
            Section::Books => Step::Slots {
                section: Section::Supers,
                index: 0,
            },
            Section::Supers => Step::Close,
        };
        Ok(())
    }

    #[inline]
    fn has_changed<W: Word>(&self, reader: &Reader<'_, W>, section: Section, index: u32) -> bool {
        match section {
            Section::Sources => reader.source_is_used(index as u16),
            Section::Histograms => self.counts[index as usize] != reader.histogram_count(index),
            Section::Books => self.sent[0][index as usize] != reader.slot_write(section, index),
            Section::Supers => self.sent[1][index as usize] != reader.slot_write(section, index),
        }
    }

    /// Hands over what there is; before slots, that sources are not what they were said to be.
    fn flush<W: Word>(&mut self, reader: &Reader<'_, W>, outlet: &mut impl Outlet) -> Result<(), Wait> {
        loop {
            if self.states.is_finished {
                offer(&mut self.states, Stream::Live, outlet, &mut self.published)?;
                self.states.begin(Stream::Live, self.epoch, self.generation);
            }
            if self.live.is_finished || !self.live.has_slots {
                break;
            }
            for (source, said) in self.said.iter_mut().enumerate() {
                let is_trusted = said.state == Some(SourceState::Live);
                if is_trusted && said.of != Some(reader.source_changes(source as u16)) {
                    if self.states.frame.len() + 64 > FRAME_MAX {
                        break;
                    }
                    said.count += 1;
                    said.state = Some(SourceState::Stale);
                    self.states
                        .frame
                        .state(source as u16, SourceState::Stale, said.count);
                }
            }
            if self.states.frame.is_empty() {
                break;
            }
            self.states.frame.finish(self.live_number);
            self.live_number += 1;
            self.states.is_finished = true;
        }
        if !self.live.is_finished {
            if self.live.frame.is_empty() {
                return Ok(());
            }
            self.live.frame.finish(self.live_number);
            self.live_number += 1;
            self.live.is_finished = true;
        }
        offer(&mut self.live, Stream::Live, outlet, &mut self.published)?;
        self.live.begin(Stream::Live, self.epoch, self.generation);
        Ok(())
    }

    /// Says states that have not changed since the turn began.
    fn settle<W: Word>(&mut self, reader: &Reader<'_, W>, health: FeedHealth) {
        for (source, said) in self.said.iter_mut().enumerate() {
            if !reader.source_is_used(source as u16) {
                continue;
            }
            let (changes, state) = changes_of(reader, source as u16, health);
            // Books wait for their time: who became live meanwhile does so behind them.
            let waits = state == SourceState::Live && !self.due.says_books;
            if said.before != (changes, Some(state)) || waits {
                self.is_quiet &= said.of == Some((changes, state));
                continue;
            }
            if said.of == Some((changes, state)) && said.state == Some(state) {
                continue;
            }
            if self.live.frame.len() + 64 > FRAME_MAX {
                self.is_quiet = false;
                break;
            }
            said.of = Some((changes, state));
            said.state = Some(state);
            said.count += 1;
            self.live.frame.state(source as u16, state, said.count);
        }
    }

    fn snapshot_turn<W: Word>(
        &mut self,
        reader: &Reader<'_, W>,
        now: u64,
        outlet: &mut impl Outlet,
    ) -> Result<(), Wait> {
        if self.pass.1 == Pass::Off {
            if now < self.due.pass || !outlet.is_heard(Stream::Snapshot) {
                return Ok(());
            }
            self.pass.0 += 1;
            self.pass.1 = Pass::Slots {
                section: Section::Sources,
                index: 0,
            };
            self.snapshot.begin(Stream::Snapshot, self.epoch, self.generation);
            self.snapshot.frame.pass_begins(self.pass.0, self.live_number);
        }
        let mut frames = 0;
        while frames < self.pace.snapshot_frames {
            self.offer_snapshot(outlet)?;
            match self.pass.1 {
                Pass::Off => return Ok(()),
                Pass::Slots { section, index } => {
                    self.fill(reader, section, index);
                    self.finish_snapshot();
                    frames += 1;
                }
                Pass::Settle(turns) => {
                    if !self.is_quiet {
                        return Ok(());
                    }
                    if turns > 0 {
                        self.pass.1 = Pass::Settle(turns - 1);
                        return Ok(());
                    }
                    self.end_of_pass();
                    self.pass.1 = Pass::Last;
                }
                Pass::Last => {
                    self.published.passes += 1;
                    self.due.pass = now + self.pace.pass_ns;
                    self.pass.1 = Pass::Off;
                    return Ok(());
                }
            }
        }
        self.offer_snapshot(outlet)
    }

    /// Puts slots into the snapshot's frame until it is full, or there are no more.
    fn fill<W: Word>(&mut self, reader: &Reader<'_, W>, section: Section, from: u32) {
        let place = section.place(reader.layout());
        for index in from..reader.slots_used(section) {
            if section == Section::Sources && !reader.source_is_used(index as u16) {
                continue;
            }
            let words = &mut self.words[..place.stride];
            // One that is being written reaches the mirror as a live one.
            let Ok(write) = reader.copy_slot(section, index, words) else {
                continue;
            };
            if !self
                .snapshot
                .frame
                .slot(section, index, write, words, self.pace.frame_bytes)
            {
                self.pass.1 = Pass::Slots { section, index };
                return;
            }
        }
        let next = |section| Pass::Slots { section, index: 0 };
        self.pass.1 = match section {
            Section::Sources => next(Section::Histograms),
            Section::Histograms => next(Section::Books),
            Section::Books => next(Section::Supers),
            Section::Supers => Pass::Settle(2),
        };
        if let Pass::Slots { section, index } = self.pass.1 {
            self.fill(reader, section, index);
        }
    }

    /// States as they were said, places in rings, and that the pass is over.
    fn end_of_pass(&mut self) {
        let frame = &mut self.snapshot.frame;
        for (source, said) in self.said.iter().enumerate() {
            if let Some(state) = said.state
                && frame.len() + 64 + 24 * self.cursors.len() < FRAME_MAX
            {
                frame.state(source as u16, state, said.count);
            }
        }
        for cursor in &self.cursors {
            frame.place(cursor.ring() as u16, cursor.position());
        }
        frame.pass_ends(self.pass.0, self.live_number);
        self.finish_snapshot();
    }

    fn finish_snapshot(&mut self) {
        if !self.snapshot.frame.is_empty() {
            self.snapshot.frame.finish(self.snapshot_number);
            self.snapshot_number += 1;
            self.snapshot.is_finished = true;
        }
    }

    fn offer_snapshot(&mut self, outlet: &mut impl Outlet) -> Result<(), Wait> {
        if self.snapshot.is_finished {
            match outlet.offer(Stream::Snapshot, self.snapshot.frame.bytes()) {
                Offered::Taken => {}
                Offered::Full => return Err(Wait),
                // Whoever joins next begins a pass of his own.
                Offered::Unheard => self.pass.1 = Pass::Off,
            }
            self.snapshot.begin(Stream::Snapshot, self.epoch, self.generation);
        }
        Ok(())
    }
}

fn offer(
    out: &mut Out,
    stream: Stream,
    outlet: &mut impl Outlet,
    published: &mut Published,
) -> Result<(), Wait> {
    match outlet.offer(stream, out.frame.bytes()) {
        Offered::Taken => {}
        Offered::Full => {
            published.full += 1;
            return Err(Wait);
        }
        Offered::Unheard => published.unheard += 1,
    }
    published.frames += 1;
    published.bytes += out.frame.len() as u64;
    Ok(())
}

/// A source's state, stale when its feed handler is lost.
fn changes_of<W: Word>(reader: &Reader<'_, W>, source: u16, health: FeedHealth) -> (u64, SourceState) {
    let (changes, state) = reader.source_changes(source);
    match health {
        FeedHealth::Lost => (changes, SourceState::Stale),
        FeedHealth::Alive | FeedHealth::Ended => (changes, state),
    }
}
