//! The shared region in a file, between threads and processes.

use std::path::PathBuf;
use tickwire_market::Nanos;
use tickwire_runtime::shared::{
    Attachment, Followed, REGION_FILE, SharedError, SharedMemory, WriterHealth, monotonic,
};
use tickwire_shm::{AttachError, Identity, Region, RegionConfig, RegionState};

/// A folder of its own for every test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tickwire-shared-{name}-{}", std::process::id()));
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join(REGION_FILE)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config() -> RegionConfig {
    RegionConfig {
        books: 4,
        supers: 4,
        ring_records: 64,
        ..RegionConfig::default()
    }
}

/// A region in a file, ready and alive.
fn publish(folder: &Folder, generation: u64) -> SharedMemory {
    let config = config();
    let bytes = config.layout().expect("a good configuration").bytes();
    let memory = SharedMemory::create(&folder.file(), bytes).expect("created");
    let identity = Identity {
        generation: Nanos(generation),
        pid: std::process::id(),
    };
    let region = Region::format(memory.words(), &config, identity).expect("formatted");
    region.heartbeat(monotonic());
    region.set_state(RegionState::Ready);
    memory.publish().expect("published");
    memory
}

#[test]
fn a_reader_follows_its_writer_through_death_and_restart() {
    let folder = Folder::new("follow");
    let none = Attachment::attach(&folder.0).expect_err("nobody wrote");
    assert!(matches!(none, SharedError::NoWriter { .. }), "{none}");
    let first = publish(&folder, 1);
    let mut reader = Attachment::attach(&folder.0).expect("attached");
    let followed = reader.follow().expect("follows");
    assert!(
        matches!(followed, Followed::Same(health) if health.is_running()),
        "{followed:?}"
    );
    assert_eq!(reader.reader().generation(), Nanos(1));
    let other = SharedMemory::create(&folder.file(), 4096).expect_err("in use");
    assert!(matches!(other, SharedError::InUse { .. }), "{other}");
    drop(first);
    assert_eq!(
        reader.follow().expect("follows"),
        Followed::Same(WriterHealth::Dead)
    );
    assert_eq!(
        reader.reader().generation(),
        Nanos(1),
        "the last it said can still be read"
    );
    let second = publish(&folder, 2);
    assert_eq!(reader.follow().expect("follows"), Followed::Replaced);
    assert_eq!(reader.reader().generation(), Nanos(2));
    assert!(reader.health().is_running());
    drop(second);
}

#[test]
fn a_region_in_the_making_is_not_seen_and_not_left_behind() {
    let folder = Folder::new("making");
    let memory = SharedMemory::create(&folder.file(), 1 << 16).expect("created");
    assert!(matches!(
        Attachment::attach(&folder.0),
        Err(SharedError::NoWriter { .. })
    ));
    let rival = SharedMemory::create(&folder.file(), 1 << 16).expect_err("in use");
    assert!(matches!(rival, SharedError::InUse { .. }), "{rival}");
    drop(memory);
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), 0);
}

#[test]
fn a_file_that_is_no_region_is_refused() {
    let folder = Folder::new("alien");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(folder.file(), [7; 8192]).expect("written");
    match Attachment::attach(&folder.0) {
        Err(SharedError::Attach { source, .. }) => assert_eq!(source, AttachError::NotARegion),
        other => panic!("{other:?}"),
    }
    std::fs::write(folder.file(), []).expect("written");
    let empty = Attachment::attach(&folder.0).expect_err("nothing to map");
    assert!(matches!(empty, SharedError::System { .. }), "{empty}");
}
