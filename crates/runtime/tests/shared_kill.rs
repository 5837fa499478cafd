//! Killing writers and readers at random moments, in processes of their own with a real mapping: readers
//! notice, come back, and never see a torn book; writers never notice.

#[path = "../../shm/tests/common/pattern.rs"]
mod pattern;

use pattern::{LEVELS, Patterned, check, mixed};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tickwire_market::Nanos;
use tickwire_runtime::shared::{
    Attachment, Followed, REGION_FILE, SharedError, SharedMemory, SharedView, WriterHealth, monotonic,
};
use tickwire_runtime::signal::die_with_parent;
use tickwire_runtime::users::Owners;
use tickwire_shm::{AttachError, BookCopy, Identity, Region, RegionConfig, RegionState};

const ROLE: &str = "TICKWIRE_TEST_ROLE";
const FOLDER: &str = "TICKWIRE_TEST_FOLDER";
const PARENT: &str = "TICKWIRE_TEST_PARENT";
const SLOTS: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the writer is killed, and in between readers.
const DEATHS: u64 = 12;

/// Started without a role this is the test; it starts itself again in the others.
#[test]
fn readers_survive_killed_writers_and_writers_killed_readers() {
    match std::env::var(ROLE).ok().as_deref() {
        None => as_tester(),
        Some("writer") => as_writer(),
        Some("reader") => as_reader(),
        Some(role) => panic!("no role {role}"),
    }
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("told").into()
}

fn follow_parent() {
    let parent = std::env::var(PARENT).expect("told").parse().expect("a number");
    die_with_parent(parent).expect("the parent lives");
}

fn config() -> RegionConfig {
    RegionConfig {
        books: SLOTS,
        book_levels: LEVELS as u32,
        supers: 0,
        rings: 0,
        histograms: 2,
        ..RegionConfig::default()
    }
}

/// Writes all books for ever, as fast as it can.
fn as_writer() {
    follow_parent();
    let config = config();
    let bytes = config.layout().expect("a good configuration").bytes();
    let memory = SharedMemory::create(&folder().join(REGION_FILE), bytes).expect("created");
    let identity = Identity {
        generation: monotonic(),
        pid: std::process::id(),
    };
    let region = Region::format(memory.words(), &config, identity).expect("formatted");
    let mut books = Patterned::new(&region, SLOTS);
    region.heartbeat(monotonic());
    region.set_state(RegionState::Ready);
    memory.publish().expect("published");
    for n in 0.. {
        books.update(mixed(n) as usize % SLOTS as usize);
        if n % 1024 == 0 {
            region.heartbeat(monotonic());
        }
    }
}

/// Reads all books for ever; ends with an error when one is torn.
fn as_reader() {
    follow_parent();
    let mut attachment = attach(&folder());
    let mut copy = BookCopy::default();
    for n in 0_u64.. {
        read_all(&attachment, &mut copy);
        if n % 256 == 0 {
            // In between there may be a region that is not ready yet.
            let _ = attachment.follow();
        }
    }
}

/// Checks every book; how many could be read, and the sum of their writes.
fn read_all(attachment: &Attachment, copy: &mut BookCopy) -> (u32, u64) {
    let (mut read, mut writes) = (0, 0);
    for slot in 0..SLOTS {
        // Else it is being written.
        if attachment.reader().read_book(slot, copy).is_ok() {
            writes += check(slot, copy);
            read += 1;
        }
    }
    (read, writes)
}

fn attach(folder: &Path) -> Attachment {
    let mut attached = None;
    wait_until("a writer", || {
        attached = match Attachment::attach(folder) {
            Ok(attachment) => Some(attachment),
            Err(SharedError::NoWriter { .. }) => None,
            Err(SharedError::Attach { source, .. }) => panic!("a published region is ready: {source}"),
            Err(other) => panic!("{other}"),
        };
        attached.is_some()
    });
    attached.expect("just attached")
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process in a role, killed without a chance to clean up when this is dropped.
struct Actor(Child);

impl Actor {
    fn start(role: &str, folder: &Path) -> Actor {
        let test = "readers_survive_killed_writers_and_writers_killed_readers";
        let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
        command.args(["--exact", test, "--nocapture"]);
        command
            .env(ROLE, role)
            .env(FOLDER, folder)
            .env(PARENT, std::process::id().to_string());
        Actor(command.stdout(Stdio::null()).spawn().expect("started"))
    }

    /// SIGKILL; panics when it had ended by itself, which a torn book makes it do.
    fn kill(mut self) {
        assert_eq!(self.0.try_wait().expect("asked"), None, "it should still run");
        self.0.kill().expect("killed");
        self.0.wait().expect("waited for");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn as_tester() {
    let folder = std::env::temp_dir().join(format!("tickwire-kill-{}", std::process::id()));
    let mut copy = BookCopy::default();
    let mut writer = Actor::start("writer", &folder);
    let mut attachment = attach(&folder);
    let mut reader = Actor::start("reader", &folder);
    for death in 0..DEATHS {
        assert!(attachment.health().is_running());
        let (mut read, until) = (0, Instant::now() + Duration::from_micros(mixed(death) % 40_000));
        while read < 2 * SLOTS || Instant::now() < until {
            read += read_all(&attachment, &mut copy).0;
        }
        // A reader dies, perhaps in the middle of a book: the writer goes on.
        reader.kill();
        let (_, before) = read_all(&attachment, &mut copy);
        wait_until("the writer to go on", || {
            let (read, writes) = read_all(&attachment, &mut copy);
            read == SLOTS && writes > before
        });
        reader = Actor::start("reader", &folder);
        // The writer dies, perhaps in the middle of a book or of its own start.
        writer.kill();
        assert_eq!(
            attachment.follow().expect("nobody else"),
            Followed::Same(WriterHealth::Dead)
        );
        let (whole, writes) = read_all(&attachment, &mut copy);
        assert!(
            whole + 1 >= SLOTS,
            "at most the one book it was writing is busy, not {}",
            SLOTS - whole
        );
        assert_eq!(
            read_all(&attachment, &mut copy),
            (whole, writes),
            "nothing changes any more"
        );
        let stillborn = Actor::start("writer", &folder);
        std::thread::sleep(Duration::from_micros(mixed(death ^ 77) % 8_000));
        stillborn.kill();
        writer = Actor::start("writer", &folder);
        wait_until("the new writer", || {
            let followed = attachment.follow().expect("a published region is ready");
            // The stillborn may have lived long enough to publish.
            followed == Followed::Same(WriterHealth::Alive) && attachment.reader().pid() == writer.0.id()
        });
        assert!(read_all(&attachment, &mut copy).0 > 0);
    }
    reader.kill();
    writer.kill();
    let _ = std::fs::remove_dir_all(&folder);
}

/// The mapping of a reader cannot be written, by anybody in its process.
#[test]
fn a_reader_maps_the_region_read_only() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("tickwire-read-only-{}", std::process::id()));
    let path = folder.join(REGION_FILE);
    let config = config();
    let bytes = config.layout().expect("a good configuration").bytes();
    let rights = |expected: &str| {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
        let name = path.to_str().expect("text");
        let lines: Vec<&str> = maps.lines().filter(|line| line.ends_with(name)).collect();
        assert_eq!(lines.len(), 1, "{maps}");
        assert_eq!(lines[0].split_whitespace().nth(1), Some(expected));
    };
    let memory = SharedMemory::create(&path, bytes).expect("created");
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    Region::format(memory.words(), &config, identity).expect("formatted");
    memory.publish().expect("published");
    rights("rw-s");
    drop(memory);
    let starting = Attachment::of_file(&path, Owners::own()).expect_err("never made ready");
    assert!(
        matches!(
            starting,
            SharedError::Attach {
                source: AttachError::NotReady,
                ..
            }
        ),
        "{starting}"
    );
    let view = SharedView::open(&path).expect("mapped");
    rights("r--s");
    assert_eq!(view.words().len(), bytes / 8);
    drop(view);
    let _ = std::fs::remove_dir_all(&folder);
}
