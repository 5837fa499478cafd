//! The one place where files and folders are made: each is for our own user alone (files 0600, folders 0700)
//! unless a group is named that may read, no link is followed, and what another user prepared is refused and
//! never written to.
//!
//! ```text
//!  Folder   regions, sockets, locks: opened once (O_DIRECTORY, O_NOFOLLOW), checked by that descriptor (ours, not writable by
//!           others), and everything in it made, renamed and removed relative to it: whoever moves the folder away changes nothing
//!  create, append, open_or_create, write, replace   any other file, wherever the user wants it: O_NOFOLLOW, and a file that is
//!           there must be a regular one of ours with one name before a byte of it is changed
//! ```
//! What a file is for decides who may read it: a region and its socket have the group of `[access]`;
//! everything else is ours alone.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::shared::is_same_file;
use crate::sys;
use crate::users::user_text;

/// The mode of a file that is ours alone.
pub const FILE_MODE: u32 = 0o600;
/// The mode of a folder that is ours alone.
pub const FOLDER_MODE: u32 = 0o700;
/// Bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// Who else may read what is made in a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sharing {
    group: Option<u32>,
}

impl Sharing {
    /// Nobody.
    pub fn nobody() -> Sharing {
        Sharing::default()
    }

    /// Members of a group, by its number: they may read files (0640), enter folders (0750) and connect to
    /// sockets (0660).
    pub fn group(gid: u32) -> Sharing {
        Sharing { group: Some(gid) }
    }

    /// The group, by its number.
    pub fn gid(self) -> Option<u32> {
        self.group
    }

    /// Gives an open file or folder to the group with these bits for it.
    fn apply(self, file: &File, mode: u32, group_bits: u32) -> io::Result<()> {
        let Some(gid) = self.group else { return Ok(()) };
        if file.metadata()?.gid() != gid {
            std::os::unix::fs::fchown(file, None, Some(gid))?;
        }
        file.set_permissions(Permissions::from_mode(mode | group_bits))
    }
}

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another user owns it.
    #[error(
        "{path} belongs to {owner}, who could replace everything in it: nothing is made there; give a folder of your own, or remove that one"
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: String,
    },
    /// Others may write there.
    #[error(
        "others may write to {path} (mode {mode:04o}) and could replace everything in it: nothing is made there; `chmod go-w {path}` if its \
         content is yours, or give another folder"
    )]
    OpenToOthers {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is a link.
    #[error("{path} is a symbolic link, which is not followed; give the folder itself")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The folder or the file in it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A folder that is ours and that nobody else can write to, held open.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    path: PathBuf,
    sharing: Sharing,
}

impl Folder {
    /// Opens a folder, made if it is not there with those on the way to it, and checks it: it is ours, and
    /// nobody else may write to it. With a group it is made readable for that.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn own(path: &Path, sharing: Sharing) -> Result<Folder, FolderError> {
        // A slash at the end would have a link followed.
        let path: PathBuf = path.components().collect();
        let path = if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path
        };
        let failed = |action| {
            let path = path.clone();
            move |source| FolderError::System { action, path, source }
        };
        make_folders(&path, sharing).map_err(failed("make the folder"))?;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(&path);
        let is_link = || fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink());
        let handle = match opened {
            Ok(handle) => handle,
            Err(_) if is_link() => return Err(FolderError::Link { path }),
            Err(e) => return Err(failed("open the folder")(e)),
        };
        let data = handle.metadata().map_err(failed("look at the folder"))?;
        if data.uid() != sys::effective_user() {
            let owner = user_text(data.uid());
            return Err(FolderError::Foreign { path, owner });
        }
        let mode = data.mode() & 0o7777;
        if mode & OTHERS_WRITE != 0 {
            return Err(FolderError::OpenToOthers { path, mode });
        }
        sharing
            .apply(&handle, mode, 0o050)
            .map_err(failed("give the group (access.group) the folder"))?;
        Ok(Folder {
            handle,
            path,
            sharing,
        })
    }

    /// The same folder, held open once more.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn again(&self) -> Result<Folder, FolderError> {
        let handle = self.handle.try_clone().map_err(|source| FolderError::System {
            action: "open the folder",
            path: self.path.clone(),
            source,
        })?;
        Ok(Folder {
            handle,
            path: self.path.clone(),
            sharing: self.sharing,
        })
    }

    /// Its path, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it, for people.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Who else may read what is in it.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// A path by which the system finds something in this very folder, whatever was done to its name since:
    /// for calls that take no descriptor, such as binding a socket.
    pub fn reach(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd())).join(name)
    }

    fn open_at(&self, name: &OsStr, flags: i32, mode: u32) -> io::Result<File> {
        let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        sys::open_at(self.handle.as_fd(), name, flags, mode)
            .map(File::from)
            .map_err(of_link)
    }

    /// Makes a file that is not there yet, ours alone (0600) until [`Folder::share`].
    ///
    /// # Errors
    /// It is there; what the system says.
    pub fn create_new(&self, name: &str) -> io::Result<File> {
        self.open_at(
            OsStr::new(name),
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            FILE_MODE,
        )
    }

    /// Opens a file to be read, `None` if there is none.
    ///
    /// # Errors
    /// It is a link; what the system says.
    pub fn open(&self, name: &str) -> io::Result<Option<File>> {
        match self.open_at(OsStr::new(name), libc::O_RDONLY, 0) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a file of ours to be read and written, made if it is not there (0600).
    ///
    /// # Errors
    /// It is not ours alone; what the system says.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        let file = self.open_at(OsStr::new(name), libc::O_RDWR | libc::O_CREAT, FILE_MODE)?;
        check_ours(&file)?;
        Ok(file)
    }

    /// Takes a lock by a file of that name until the file is closed, however that comes about; `Err` with
    /// what the holder wrote into it if another process has it. The file is ours alone (0600): nobody else
    /// can open it, and so nobody else can hold it. One of an earlier version, which others could read, is
    /// replaced.
    ///
    /// # Errors
    /// It is another's; what the system says.
    pub fn lock(&self, name: &str) -> io::Result<Result<File, String>> {
        loop {
            let mut file = self.open_at(OsStr::new(name), libc::O_RDWR | libc::O_CREAT, FILE_MODE)?;
            if file.metadata()?.mode() & 0o077 != 0 {
                self.remove(name)?;
                continue;
            }
            check_ours(&file)?;
            if !sys::lock(file.as_fd())? {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Ok(Err(holder.trim().to_owned()));
            }
            // Another may have replaced it between our look and our lock.
            if self.has(&file, name) {
                return Ok(Ok(file));
            }
        }
    }

    /// Lets the group of the folder read a file of it (0640).
    ///
    /// # Errors
    /// The group is none of ours; what the system says.
    pub fn share(&self, file: &File) -> io::Result<()> {
        self.sharing.apply(file, FILE_MODE, 0o040)
    }

    /// Lets the group of the folder connect to a socket in it (0660); without one it is ours alone (0600).
    ///
    /// # Errors
    /// As [`Folder::share`].
    pub fn share_socket(&self, name: &str) -> io::Result<()> {
        // The folder is ours alone to write, so that the name is still the socket's.
        let path = self.reach(name);
        if let Some(gid) = self.sharing.group {
            std::os::unix::fs::chown(&path, None, Some(gid))?;
        }
        let mode = if self.sharing.group.is_some() {
            0o660
        } else {
            FILE_MODE
        };
        fs::set_permissions(&path, Permissions::from_mode(mode))
    }

    /// Gives a file of it another name, in the place of what has that name.
    ///
    /// # Errors
    /// What the system says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        sys::rename_in(self.handle.as_fd(), OsStr::new(from), OsStr::new(to))
    }

    /// Removes a file of it, if it is there.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match sys::remove_in(self.handle.as_fd(), OsStr::new(name)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Whether an open file is the one that has a name in it.
    pub fn has(&self, file: &File, name: &str) -> bool {
        let named = self.open(name).ok().flatten();
        let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino())).ok();
        named.is_some_and(|named| id(&named).is_some() && id(&named) == id(file))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Makes a folder and those on the way to it that are not there, each ours alone (0700). What is there stays
/// as it is.
///
/// # Errors
/// What the system says.
pub fn create_folders(path: &Path) -> io::Result<()> {
    make_folders(path, Sharing::nobody())
}

/// Makes one folder that was not there, ours alone (0700).
///
/// # Errors
/// It is there; what the system says.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

fn make_folders(path: &Path, sharing: Sharing) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folders(parent, sharing)?;
    }
    match create_folder(path) {
        Ok(()) => match sharing.group {
            Some(_) => sharing.apply(&File::open(path)?, FOLDER_MODE, 0o050),
            None => Ok(()),
        },
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

/// A refusal of ours, as the system would say it.
fn refused(says: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, says)
}

/// A link that was not followed, in words.
fn of_link(e: io::Error) -> io::Error {
    match e.raw_os_error() {
        Some(libc::ELOOP) => {
            refused("it is a symbolic link, which is not followed; give the file itself".into())
        }
        _ => e,
    }
}

/// An open file is a regular one of ours, or a device; and from now on nobody else's to read.
fn check_ours(file: &File) -> io::Result<()> {
    let data = file.metadata()?;
    if data.file_type().is_char_device() {
        return Ok(());
    }
    if !data.is_file() {
        return Err(refused("it is no regular file; give another name".into()));
    }
    if data.uid() != sys::effective_user() {
        return Err(refused(format!(
            "it belongs to {}, and what another user prepared is not written to; remove it or give another name",
            user_text(data.uid())
        )));
    }
    if data.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(FILE_MODE | data.mode() & 0o100))?;
    }
    Ok(())
}

/// An open file has no second name, by which another of our files could have been put there to be written to.
fn check_single(file: &File) -> io::Result<()> {
    let data = file.metadata()?;
    match data.is_file() && data.nlink() > 1 {
        false => Ok(()),
        true => Err(refused(format!(
            "it has {} names (hard links), so that another file would be changed too; remove it or give another name",
            data.nlink()
        ))),
    }
}

/// Our own output, where the shell has put it: a link by nature.
fn is_own_output(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path == Path::new("/dev/stdout") || path == Path::new("/dev/stderr")
}

fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if is_own_output(path) {
        return OpenOptions::new().write(true).open(path);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = options
        .mode(FILE_MODE)
        .custom_flags(flags)
        .open(path)
        .map_err(of_link)?;
    check_ours(&file)?;
    check_single(&file)?;
    Ok(file)
}

/// Makes a file, or empties one of ours, to be written.
///
/// # Errors
/// It is a link, another user's, or no regular file; what the system says.
pub fn create(path: &Path) -> io::Result<File> {
    // Emptied only once it is known to be ours.
    let file = opened(path, OpenOptions::new().write(true).create(true).truncate(false))?;
    if file.metadata()?.is_file() && !is_own_output(path) {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Makes a file that is not there yet, to be read and written.
///
/// # Errors
/// It is there; what the system says.
pub fn create_new(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().read(true).write(true).create_new(true))
}

/// Makes a file, or opens one of ours, to be added to.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().append(true).create(true))
}

/// Makes a file, or opens one of ours with what it has, to be read and written.
///
/// # Errors
/// As [`create`].
pub fn open_or_create(path: &Path) -> io::Result<File> {
    opened(
        path,
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false),
    )
}

/// Opens a file of ours that is there, with what it has, to be read and written. It may have a second name: a
/// store that is being replaced has one for a moment.
///
/// # Errors
/// There is none; as [`create`].
pub fn open_own(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)
        .map_err(of_link)?;
    check_ours(&file)?;
    Ok(file)
}

/// Writes a file from its beginning: made, or emptied if it is ours.
///
/// # Errors
/// As [`create`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// The name of a file with something behind it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Writes a file beside its place (its name and `.new`) and moves it there at once: who reads meanwhile reads
/// the one before, whole. With `keeps_mode` it has the mode of the one before, because that is the user's
/// own.
///
/// # Errors
/// What the system says; nothing has changed then.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>, keeps_mode: bool) -> io::Result<()> {
    let new = beside(path, ".new");
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = create_new(&new)?;
    let made = (&file).write_all(bytes.as_ref()).and_then(|()| {
        if keeps_mode && let Ok(data) = fs::metadata(path) {
            file.set_permissions(data.permissions())?;
        }
        fs::rename(&new, path)
    });
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made
}

/// A file that has its name only when it is whole: it is written beside its place (a dot, its name, `.part`),
/// brought to the disk, and moved there at once. Whoever is killed in between leaves nothing under the name;
/// the next one of the name takes the remainder away.
#[derive(Debug)]
pub struct Pending {
    file: File,
    part: PathBuf,
    path: PathBuf,
    is_done: bool,
}

impl Pending {
    /// Begins one.
    ///
    /// # Errors
    /// As [`create_new`], or a remainder that cannot be removed.
    pub fn create(path: &Path) -> io::Result<Pending> {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".part");
        let part = path.with_file_name(name);
        match fs::remove_file(&part) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        Ok(Pending {
            file: create_new(&part)?,
            part,
            path: path.to_path_buf(),
            is_done: false,
        })
    }

    /// The open file, to be written to.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Everything is written: the file takes its name.
    ///
    /// # Errors
    /// What the system says, or another process has begun the same file since: nothing has the name then but
    /// what had it before.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if !is_same_file(&self.file, &self.part) {
            return Err(io::Error::other(format!(
                "another process has begun to write {} as well",
                self.path.display()
            )));
        }
        fs::rename(&self.part, &self.path)?;
        self.is_done = true;
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // One that another process has begun since is its own.
        if !self.is_done && is_same_file(&self.file, &self.part) {
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// A file without a name, for what is needed only until it is closed; made in this folder.
///
/// # Errors
/// As [`create_new`].
pub fn nameless(folder: &Path) -> io::Result<File> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".tickwire-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Whether others than the owner may read a file: its mode then.
pub fn is_readable_by_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    (mode & 0o044 != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("tickwire-files-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            create_folders(&path).unwrap();
            Place(path)
        }

        fn mode(&self, name: &str) -> u32 {
            fs::metadata(self.0.join(name)).unwrap().mode() & 0o777
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_pending_file_has_its_name_only_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("tickwire-pending-{}", std::process::id()));
        create_folder(&folder).expect("a folder");
        let path = folder.join("rows.csv");
        let names = || fs::read_dir(&folder).expect("the folder").count();
        let dropped = Pending::create(&path).expect("a file");
        assert!(!path.exists() && names() == 1);
        drop(dropped);
        assert_eq!(names(), 0);
        // A remainder of somebody who was killed is in nobody's way.
        fs::write(folder.join(".rows.csv.part"), "half").expect("a file");
        let pending = Pending::create(&path).expect("a file");
        pending
            .file()
            .expect("the file")
            .write_all(b"whole")
            .expect("written");
        pending.finish().expect("moved");
        assert_eq!(
            (fs::read(&path).expect("the file"), names()),
            (b"whole".to_vec(), 1)
        );
        nameless(&folder)
            .expect("a file")
            .write_all(b"x")
            .expect("written");
        assert_eq!(names(), 1);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn what_is_made_is_ours_alone_and_what_was_wider_is_made_so() {
        let place = Place::new("modes");
        let at = |name: &str| place.0.join(name);
        create_folders(&at("a/b")).unwrap();
        write(&at("a/b/written"), "one").unwrap();
        append(&at("added")).unwrap().write_all(b"two").unwrap();
        create_new(&at("new")).unwrap();
        assert!(create_new(&at("new")).is_err());
        fs::write(at("old"), "an old journal").unwrap();
        fs::set_permissions(at("old"), Permissions::from_mode(0o644)).unwrap();
        let mut text = String::new();
        open_or_create(&at("old"))
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "an old journal");
        replace(&at("whole"), "three", false).unwrap();
        for (name, mode) in [
            ("a", 0o700),
            ("a/b", 0o700),
            ("a/b/written", 0o600),
            ("added", 0o600),
            ("new", 0o600),
            ("old", 0o600),
            ("whole", 0o600),
        ] {
            assert_eq!(place.mode(name), mode, "{name}");
        }
        fs::set_permissions(at("whole"), Permissions::from_mode(0o640)).unwrap();
        replace(&at("whole"), "four", true).unwrap();
        assert_eq!(
            (place.mode("whole"), fs::read(at("whole")).unwrap()),
            (0o640, b"four".to_vec())
        );
        assert!(!at("whole.new").exists());
    }

    #[test]
    fn links_are_not_followed_and_second_names_not_written_through() {
        let place = Place::new("links");
        let at = |name: &str| place.0.join(name);
        fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        fs::hard_link(at("victim"), at("second")).unwrap();
        let symlink = "symbolic link";
        for (name, says) in [("link", symlink), ("second", "hard links")] {
            let path = at(name);
            for refused in [create(&path), append(&path), open_or_create(&path)] {
                let e = refused.expect_err(name);
                assert!(e.to_string().contains(says), "{e}");
            }
        }
        // What is moved into its place takes the name and leaves the file it led to.
        replace(&at("link"), "mine", false).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("link")).unwrap(), b"mine");
        std::os::unix::fs::symlink(&place.0, at("folder")).unwrap();
        for path in [at("folder"), at("folder/")] {
            let e = Folder::own(&path, Sharing::nobody()).expect_err("a link");
            assert!(matches!(e, FolderError::Link { .. }), "{e}");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused_and_one_of_ours_is_kept_by_its_descriptor() {
        let place = Place::new("folder");
        let path = place.0.join("run");
        let folder = Folder::own(&path, Sharing::nobody()).unwrap();
        assert_eq!(place.mode("run"), 0o700);
        folder.create_new("region").unwrap();
        assert!(folder.create_new("region").is_err(), "O_EXCL");
        // Moved away, and another in its place: what is made goes into the one that was checked.
        fs::rename(&path, place.0.join("moved")).unwrap();
        create_folder(&path).unwrap();
        folder.rename("region", "renamed").unwrap();
        assert!(place.0.join("moved/renamed").exists() && !path.join("renamed").exists());
        let file = folder.open("renamed").unwrap().unwrap();
        assert!(folder.has(&file, "renamed") && !folder.has(&file, "region"));
        folder.remove("renamed").unwrap();
        folder.remove("renamed").unwrap();
        for mode in [0o777, 0o1777, 0o770] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let e = Folder::own(&path, Sharing::nobody()).expect_err("others may write");
            assert!(e.to_string().contains("chmod go-w"), "{e}");
        }
    }

    #[test]
    fn a_group_may_read_what_is_shared_with_it() {
        let place = Place::new("group");
        let gid = fs::metadata(&place.0).unwrap().gid();
        let folder = Folder::own(&place.0.join("run"), Sharing::group(gid)).unwrap();
        let file = folder.create_new("region").unwrap();
        assert_eq!(place.mode("run/region"), 0o600);
        folder.share(&file).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.reach("control")).unwrap();
        folder.share_socket("control").unwrap();
        let modes = ["run", "run/region", "run/control"].map(|name| place.mode(name));
        assert_eq!(modes, [0o750, 0o640, 0o660]);
    }
}
