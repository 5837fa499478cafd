//! `tickwire mirror publish` and `receive`: a thread each, beside the driver's.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tickwire_console::failure::Failure;
use tickwire_control::client::owners;
use tickwire_control::process::{FolderLock, pin};
use tickwire_market::Nanos;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::files::Sharing;
use tickwire_runtime::places;
use tickwire_runtime::shared::{Attachment, Followed, REGION_FILE, SharedMemory, WriterHealth, monotonic};
use tickwire_runtime::signal::StopFlag;
use tickwire_shm::{Identity, Region, RegionState};

use crate::args::{LinkArgs, PublishArgs, ReceiveArgs};
use crate::frame::FeedHealth;
use crate::links::{Inlet, Link, LinkError, Streams};
use crate::mirror::{Invitation, Mirror, Mirrored, Rejoin, invitation};
use crate::publish::{Pace, Published, Publisher};

/// Between two looks at the feed handler's health, and between two heartbeats.
const LOOK: Duration = Duration::from_millis(100);
/// How long a thread with nothing to do sleeps, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];
/// How long it says nothing about waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sleeps longer the longer there is nothing to do.
struct Idle {
    is_spinning: bool,
    pause: Duration,
}

impl Idle {
    fn new(args: &LinkArgs) -> Idle {
        Idle {
            is_spinning: args.spin,
            pause: PAUSES[0],
        }
    }

    fn after(&mut self, has_worked: bool) {
        if has_worked || self.is_spinning {
            self.pause = PAUSES[0];
            std::hint::spin_loop();
            return;
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }
}

/// Something every so often.
struct Every {
    period: Duration,
    next: Instant,
}

impl Every {
    fn new(period: Duration) -> Every {
        Every {
            period,
            next: Instant::now(),
        }
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.period;
        }
        is_due
    }
}

fn failed(error: LinkError) -> Failure {
    match error {
        LinkError::Channel { .. } | LinkError::Text(_) => Failure::config(error.to_string()),
        LinkError::Driver { .. } | LinkError::Gone(_) => Failure::system(error.to_string()),
    }
}

fn open(args: &LinkArgs, folder: &Path, name: &str) -> Result<Link, Failure> {
    pin(args.core)?;
    let dir = args.aeron_dir.clone().unwrap_or_else(|| folder.join(name));
    Link::open(&dir, args.external_driver).map_err(failed)
}

fn interrupted(stop: &StopFlag, what: &str) -> Option<Failure> {
    let reason = stop.reason()?;
    Some(Failure::interrupted(format!("{reason}; {what}")))
}

fn published_line(published: &Published) -> String {
    let Published {
        frames,
        bytes,
        records,
        missed,
        slots,
        full,
        unheard,
        passes,
    } = published;
    format!(
        "published {records} records, {missed} missed, {slots} books and rows, {passes} snapshots; {frames} frames, {bytes} bytes, \
         {unheard} unheard, {full} times no room"
    )
}

fn mirrored_line(mirrored: &Mirrored, rejoins: u64) -> String {
    let Mirrored {
        frames,
        snapshot_frames,
        records,
        missed,
        slots,
        old_slots,
        ignored,
        unknown,
        silences,
    } = mirrored;
    format!(
        "mirrored {records} records, {missed} missed, {slots} books and rows, {old_slots} older ones; {frames} frames, \
         {snapshot_frames} of snapshots, {ignored} ignored, {unknown} entries unknown; {silences} silences, {rejoins} rejoins"
    )
}

/// Waits for the feed handler's region.
fn attach(folder: &Path, stop: &StopFlag) -> Result<Attachment, Failure> {
    let begun = Instant::now();
    let mut is_said = false;
    loop {
        match Attachment::attach_of(folder, owners()) {
            Ok(held) => return Ok(held),
            Err(error) if error.may_come() => {}
            Err(other) => return Err(Failure::system(other.to_string())),
        }
        if !is_said && begun.elapsed() > PATIENCE {
            is_said = true;
            println!("waits for a feed handler in {}", folder.display());
        }
        if let Some(ended) = interrupted(stop, "there was no feed handler yet") {
            return Err(ended);
        }
        std::thread::sleep(LOOK);
    }
}

/// `tickwire mirror publish`.
pub(crate) fn publish(args: &PublishArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = places::reader_folder(args.folder.clone());
    let mut held = attach(&folder, stop)?;
    let link = open(&args.link, &folder, "aeron-publish")?;
    let mut streams = Streams::open(&link, &args.link.channel, args.link.stream).map_err(failed)?;
    let pace = Pace {
        books_ns: args.books_every * 1_000_000,
        ..Pace::default()
    };
    println!(
        "publishes {} on {}, stream {}",
        folder.display(),
        args.link.channel,
        args.link.stream
    );
    let clock = Clock::calibrate();
    let mut publisher = Publisher::new(&held.reader(), clock.now().0, pace);
    let mut health = FeedHealth::Alive;
    let mut idle = Idle::new(&args.link);
    let (mut look, mut stat) = (
        Every::new(LOOK),
        args.link.stat.map(|s| Every::new(Duration::from_secs(s))),
    );
    loop {
        let has_worked = publisher.turn(&held.reader(), health, monotonic().0, &mut streams);
        if look.is_due() {
            match held.follow() {
                Ok(Followed::Replaced) => {
                    println!("{}", published_line(&publisher.published()));
                    println!("the feed handler was started again");
                    publisher = Publisher::new(&held.reader(), clock.now().0, pace);
                }
                Ok(Followed::Same(found)) => {
                    health = match found {
                        WriterHealth::Alive => FeedHealth::Alive,
                        WriterHealth::Ended => FeedHealth::Ended,
                        WriterHealth::Silent { .. } | WriterHealth::Dead => FeedHealth::Lost,
                    };
                }
                // One that is being made: the next look finds it.
                Err(_) => health = FeedHealth::Lost,
            }
            if let Some(why) = streams.lost() {
                return Err(Failure::system(format!(
                    "Aeron takes nothing any more ({why}): start the driver again, and this program"
                )));
            }
        }
        if stat.as_mut().is_some_and(Every::is_due) {
            println!("{}", published_line(&publisher.published()));
        }
        if let Some(ended) = interrupted(stop, &published_line(&publisher.published())) {
            return Err(ended);
        }
        idle.after(has_worked);
    }
}

/// What is kept from mirror to mirror.
struct Receiving<'a> {
    args: &'a ReceiveArgs,
    stop: &'a StopFlag,
    link: &'a Link,
    lock: &'a FolderLock,
    live: Inlet,
    clock: Clock,
    /// The latest publisher that was heard.
    since: u64,
    rejoins: u64,
    idle: Idle,
    stat: Option<Every>,
}

/// `tickwire mirror receive`.
pub(crate) fn receive(args: &ReceiveArgs, stop: &StopFlag) -> Result<(), Failure> {
    let folder = places::writer_folder(args.folder.as_deref(), None);
    let lock = FolderLock::take(&folder, Sharing::nobody())?;
    let link = open(&args.link, &folder, "aeron")?;
    let channel = &args.link.channel;
    let mut receiving = Receiving {
        args,
        stop,
        live: link.subscription(channel, args.link.stream).map_err(failed)?,
        link: &link,
        lock: &lock,
        clock: Clock::calibrate(),
        since: 0,
        rejoins: 0,
        idle: Idle::new(&args.link),
        stat: args.link.stat.map(|s| Every::new(Duration::from_secs(s))),
    };
    println!("listens to {channel}, stream {}", args.link.stream);
    loop {
        let invitation = receiving.listen()?;
        receiving.since = invitation.header.epoch;
        let why = receiving.mirror(&invitation)?;
        println!("joins again: {why}");
        receiving.rejoins += 1;
        if matches!(why, Rejoin::Silence | Rejoin::Gap { .. }) {
            // The place in the stream may be beyond help: a new subscription has a new one.
            receiving.live = link.subscription(channel, args.link.stream).map_err(failed)?;
        }
    }
}

/// What a poll brings while there is no mirror.
struct Heard {
    since: u64,
    found: Option<Invitation>,
    wrong: Option<String>,
}

/// What a poll brings to a mirror.
struct Taking<'m, 'a> {
    mirror: &'m mut Mirror<'a, AtomicU64>,
    now: u64,
    over: Option<Rejoin>,
}

fn take(taking: &mut Taking<'_, '_>, frame: &[u8]) {
    if taking.over.is_none() {
        taking.over = taking.mirror.frame(frame, taking.now).err();
    }
}

impl Receiving<'_> {
    /// Waits for a beat.
    fn listen(&mut self) -> Result<Invitation, Failure> {
        let begun = Instant::now();
        let (mut is_said, mut is_wrong) = (false, false);
        let mut heard = Heard {
            since: self.since,
            found: None,
            wrong: None,
        };
        loop {
            let has_worked = self
                .live
                .poll(&mut heard, |heard, frame| match invitation(frame, heard.since) {
                    // The first beat: what comes behind it in the same poll is read by the mirror, which asks
                    // for it again by a pass that begins later.
                    Ok(found) => heard.found = found.or(heard.found),
                    Err(error) => heard.wrong = Some(error.to_string()),
                })
                .map_err(failed)?;
            if let Some(found) = heard.found {
                return Ok(found);
            }
            if let Some(wrong) = heard.wrong.take().filter(|_| !is_wrong) {
                is_wrong = true;
                println!(
                    "what comes on stream {} cannot be read: {wrong}",
                    self.args.link.stream
                );
            }
            if !is_said && begun.elapsed() > PATIENCE {
                is_said = true;
                println!("nobody publishes there yet");
            }
            if let Some(ended) = interrupted(self.stop, "nobody published") {
                return Err(ended);
            }
            self.idle.after(has_worked);
        }
    }

    /// Mirrors until it has to begin anew.
    fn mirror(&mut self, invitation: &Invitation) -> Result<Rejoin, Failure> {
        let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
        let layout = invitation.config.layout().map_err(|e| system(&e))?;
        if layout.bytes() as u64 > self.args.memory << 20 {
            return Err(Failure::config(format!(
                "the region of that feed handler has {} MiB, more than --memory {}; say more if this host has it",
                layout.bytes() >> 20,
                self.args.memory
            )));
        }
        let memory = SharedMemory::create_in(self.lock.folder()?, REGION_FILE, layout.bytes())
            .map_err(|e| system(&e))?;
        let identity = Identity {
            generation: self.clock.now(),
            pid: std::process::id(),
        };
        let region = Region::format(memory.words(), &invitation.config, identity).map_err(|e| system(&e))?;
        let mut mirror = Mirror::new(region, invitation, monotonic().0);
        let outcome = self.follow(&mut mirror, &region, &memory);
        region.set_state(RegionState::Ended);
        outcome
    }

    fn follow(
        &mut self,
        mirror: &mut Mirror<'_, AtomicU64>,
        region: &Region<'_, AtomicU64>,
        memory: &SharedMemory,
    ) -> Result<Rejoin, Failure> {
        let channel = &self.args.link.channel;
        let snapshot = self.link.subscription(channel, self.args.link.stream + 1);
        let mut snapshot = Some(snapshot.map_err(failed)?);
        let mut look = Every::new(LOOK);
        loop {
            let now = monotonic().0;
            mirror.turn(now);
            let mut taking = Taking {
                mirror,
                now,
                over: None,
            };
            let mut has_worked = self.live.poll(&mut taking, take).map_err(failed)?;
            if let Some(snapshot) = &mut snapshot {
                has_worked |= snapshot.poll(&mut taking, take).map_err(failed)?;
            }
            if let Some(why) = taking.over {
                return Ok(why);
            }
            if let Err(why) = mirror.look(now) {
                return Ok(why);
            }
            if mirror.is_ready() && snapshot.is_some() {
                snapshot = None;
                region.heartbeat(monotonic());
                memory.publish().map_err(|e| Failure::system(e.to_string()))?;
                println!("ready: {}", mirrored_line(&mirror.mirrored(), self.rejoins));
            }
            if look.is_due() {
                region.heartbeat(Nanos(monotonic().0));
                if memory.is_cut() {
                    return Err(Failure::system(format!(
                        "{} was made shorter while it is in use: start this program again",
                        memory.path().display()
                    )));
                }
            }
            if self.stat.as_mut().is_some_and(Every::is_due) {
                println!("{}", mirrored_line(&mirror.mirrored(), self.rejoins));
            }
            if let Some(ended) = interrupted(self.stop, &mirrored_line(&mirror.mirrored(), self.rejoins)) {
                return Err(ended);
            }
            self.idle.after(has_worked);
        }
    }
}
