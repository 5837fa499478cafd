//! What another user of the machine can do to those who write shared memory, sockets, locks and files:
//! nothing.
//!
//! The other user is played by uid 65534 on a thread of its own, which root alone can do: elsewhere these
//! tests say SKIPPED.

use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use tickwire_market::Nanos;
use tickwire_runtime::files::{self, Folder, FolderError, Sharing};
use tickwire_runtime::shared::{Attachment, REGION_FILE, SharedError, SharedMemory, WriterHealth, monotonic};
use tickwire_runtime::users::{Owners, Peer, own_uid};
use tickwire_shm::{Identity, Region, RegionConfig, RegionState};

/// Nobody, in the users' database of every Linux.
const OTHER: u32 = 65_534;

/// Does something as another user, on a thread whose credentials are dropped; `None` where this process may
/// not.
fn as_other<T: Send>(what: impl FnOnce() -> T + Send) -> Option<T> {
    if own_uid() != 0 {
        tickwire_testdata::not_tested("root alone can play another user of the machine");
        return None;
    }
    let thread = move || {
        // SAFETY: no memory is involved. The system call itself, not the C library's function, which would
        // change every thread.
        let changed = unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>());
            libc::syscall(libc::SYS_setresgid, OTHER, OTHER, OTHER);
            libc::syscall(libc::SYS_setresuid, OTHER, OTHER, OTHER)
        };
        assert_eq!((changed, own_uid()), (0, OTHER));
        what()
    };
    Some(std::thread::scope(|scope| {
        scope.spawn(thread).join().expect("it ends")
    }))
}

/// A folder that everybody may write to, as the one of temporary files is.
struct Common(PathBuf);

impl Common {
    fn new(name: &str) -> Common {
        let path = std::env::temp_dir().join(format!("tickwire-users-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        fs::set_permissions(&path, Permissions::from_mode(0o1777)).expect("ours");
        Common(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Common {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
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

fn publish(folder: &Path) -> SharedMemory {
    let config = config();
    let bytes = config.layout().expect("a good configuration").bytes();
    let memory = SharedMemory::create(&folder.join(REGION_FILE), bytes).expect("created");
    let identity = Identity {
        generation: Nanos(1),
        pid: std::process::id(),
    };
    let region = Region::format(memory.words(), &config, identity).expect("formatted");
    region.heartbeat(monotonic());
    region.set_state(RegionState::Ready);
    memory.publish().expect("published");
    memory
}

#[test]
fn a_folder_that_another_user_prepared_is_refused_and_nothing_it_leads_to_is_touched() {
    let common = Common::new("prepared");
    let (folder, victim) = (common.join("tickwire"), common.join("victim"));
    fs::write(&victim, "precious").expect("written");
    let prepared = as_other(|| {
        fs::create_dir(&folder).expect("a folder");
        for name in ["region", "region.new", "lock", "control", "control.new"] {
            symlink(&victim, folder.join(name)).expect("a link");
        }
    });
    if prepared.is_none() {
        return;
    }
    let refused = SharedMemory::create(&folder.join(REGION_FILE), 4096).expect_err("another's folder");
    assert!(
        refused.to_string().contains(&format!("(uid {OTHER})")),
        "{refused}"
    );
    let refused = Folder::own(&folder, Sharing::nobody()).expect_err("another's folder");
    assert!(matches!(refused, FolderError::Foreign { .. }), "{refused}");
    // The folder that everybody may write to is no place for a region either.
    let refused = SharedMemory::create(&common.join(REGION_FILE), 4096).expect_err("open to others");
    assert!(refused.to_string().contains("others may write"), "{refused}");
    assert_eq!(fs::read(&victim).expect("read"), b"precious");
}

#[test]
fn a_file_that_another_user_prepared_is_never_written_to() {
    let common = Common::new("files");
    let (theirs, victim, link) = (common.join("theirs"), common.join("victim"), common.join("link"));
    fs::write(&victim, "precious").expect("written");
    let prepared = as_other(|| {
        fs::write(&theirs, "theirs").expect("written");
        fs::set_permissions(&theirs, Permissions::from_mode(0o666)).expect("theirs");
        symlink(&victim, &link).expect("a link");
    });
    if prepared.is_none() {
        return;
    }
    for path in [&theirs, &link] {
        for refused in [
            files::create(path),
            files::append(path),
            files::open_or_create(path),
        ] {
            refused.expect_err("another's");
        }
        files::write(path, "x").expect_err("another's");
    }
    assert_eq!(fs::read(&theirs).expect("read"), b"theirs");
    assert_eq!(fs::read(&victim).expect("read"), b"precious");
}

#[test]
fn a_region_of_another_user_is_read_only_by_who_says_so() {
    let common = Common::new("region");
    let folder = common.join("theirs");
    let written = as_other(|| {
        let memory = publish(&folder);
        fs::set_permissions(folder.join(REGION_FILE), Permissions::from_mode(0o644)).expect("theirs");
        memory
    });
    let Some(memory) = written else { return };
    let refused = Attachment::attach(&folder).expect_err("another's books");
    assert!(matches!(refused, SharedError::Foreign { .. }), "{refused}");
    assert!(refused.to_string().contains("--owner"), "{refused}");
    let told = Attachment::attach_of(&folder, Owners::and(OTHER)).expect("told so");
    assert!(told.health().is_running());
    drop(memory);
    // And theirs sees root's, when it may be read.
    let memory = publish(&common.join("ours"));
    fs::set_permissions(common.join("ours"), Permissions::from_mode(0o755)).expect("ours");
    fs::set_permissions(common.join("ours/region"), Permissions::from_mode(0o644)).expect("ours");
    let seen = as_other(|| Attachment::attach(&common.join("ours")).expect("root's").health());
    assert!(seen.is_some_and(WriterHealth::is_running), "{seen:?}");
    drop(memory);
}

/// A reader that takes every lock there is on what it may read: the writer starts again all the same, and a
/// dead one looks dead.
#[test]
fn a_reader_holds_nothing_that_a_writer_waits_for() {
    let common = Common::new("locks");
    let path = common.join("run");
    let folder = Folder::own(&path, Sharing::nobody()).expect("ours");
    let lock = folder.lock("lock").expect("a lock").expect("free");
    let memory = publish(&path);
    // As for a group: readable for others.
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("ours");
    fs::set_permissions(path.join(REGION_FILE), Permissions::from_mode(0o644)).expect("ours");
    let held = as_other(|| {
        let region = File::open(path.join(REGION_FILE)).expect("it may be read");
        // SAFETY: no memory but a local `flock` is involved.
        unsafe {
            assert_eq!(
                libc::flock(region.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB),
                -1,
                "the writer has it"
            );
            let mut reading: libc::flock = std::mem::zeroed();
            for kind in [libc::F_RDLCK, libc::F_WRLCK] {
                reading.l_type = kind as libc::c_short;
                assert_eq!(
                    libc::fcntl(region.as_raw_fd(), libc::F_OFD_SETLK, &raw const reading),
                    -1
                );
            }
        }
        File::open(path.join("lock")).expect_err("not for them");
        region
    });
    let Some(region) = held else { return };
    assert_eq!(
        fs::metadata(path.join("lock")).expect("it is there").mode() & 0o777,
        0o600
    );
    let reader = Attachment::attach(&path).expect("attached");
    drop((memory, lock));
    // The dead writer's locks are free, and the other user takes them.
    let taken = as_other(|| {
        // SAFETY: as above.
        unsafe {
            assert_eq!(libc::flock(region.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB), 0);
            let mut reading: libc::flock = std::mem::zeroed();
            reading.l_type = libc::F_RDLCK as libc::c_short;
            assert_eq!(
                libc::fcntl(region.as_raw_fd(), libc::F_OFD_SETLK, &raw const reading),
                0
            );
            reading.l_type = libc::F_WRLCK as libc::c_short;
            assert_eq!(
                libc::fcntl(region.as_raw_fd(), libc::F_OFD_SETLK, &raw const reading),
                -1,
                "EBADF"
            );
        }
    });
    assert!(taken.is_some());
    assert_eq!(reader.health(), WriterHealth::Dead, "whatever a reader holds");
    let lock = folder.lock("lock").expect("a lock").expect("free");
    let memory = publish(&path);
    assert!(Attachment::attach(&path).expect("attached").health().is_running());
    drop((memory, lock, region));
}

/// A lock file of an earlier version could be read by the group, and be held by it.
#[test]
fn a_lock_file_that_others_could_read_is_replaced() {
    let common = Common::new("old-lock");
    let folder = Folder::own(&common.join("run"), Sharing::nobody()).expect("ours");
    let old = common.join("run/lock");
    fs::write(&old, "1\n").expect("written");
    fs::set_permissions(&old, Permissions::from_mode(0o640)).expect("ours");
    let reader = File::open(&old).expect("readable");
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::flock(reader.as_raw_fd(), libc::LOCK_SH) }, 0);
    let lock = folder.lock("lock").expect("a lock").expect("free");
    assert_eq!(fs::metadata(&old).expect("it is there").mode() & 0o777, 0o600);
    folder.lock("lock").expect("a lock").expect_err("ours already");
    drop((lock, reader));
}

#[test]
fn both_ends_of_a_socket_know_who_the_other_is() {
    let common = Common::new("peers");
    let path = common.join("socket");
    let Some((theirs, stream)) = as_other(|| {
        let theirs = UnixListener::bind(&path).expect("bound");
        (theirs, ())
    }) else {
        return;
    };
    let () = stream;
    // A client of root at another's socket, and the other way round.
    let client = UnixStream::connect(&path).expect("connected");
    let server = Peer::of(&client).expect("known");
    assert_eq!(
        (server.uid, server.gid, server.pid),
        (OTHER, OTHER, std::process::id())
    );
    assert!(
        !server.is_ours() && !Owners::own().include(server.uid) && Owners::and(OTHER).include(server.uid)
    );
    drop(theirs);
    let ours = UnixListener::bind(common.join("ours")).expect("bound");
    fs::set_permissions(common.join("ours"), Permissions::from_mode(0o666)).expect("ours");
    let theirs = as_other(|| UnixStream::connect(common.join("ours")).expect("connected"));
    let (accepted, _) = ours.accept().expect("accepted");
    let client = Peer::of(&accepted).expect("known");
    assert_eq!(
        (client.uid, client.is_of_group(OTHER), client.is_of_group(0)),
        (OTHER, true, false)
    );
    drop(theirs);
}
