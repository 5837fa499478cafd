//! A recording from standard input, kept in a file of no name while it is read twice.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickwire_runtime::files;
use tickwire_runtime::signal::StopFlag;

use tickwire_console::failure::Failure;

/// What messages call it.
pub(crate) const NAME: &str = "standard input";
/// Between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(5);
/// Names that are tried: others may stand in the folder.
const NAMES: u32 = 16;

/// Whether a path means standard input.
pub(super) fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Calls `then` with files that can be read twice: standard input is kept before. What else it is given names
/// that in texts again.
pub(super) fn with_files<T>(
    files: &[PathBuf],
    stop: &StopFlag,
    then: impl FnOnce(&[PathBuf], &dyn Fn(String) -> String) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let spooled = match files.iter().filter(|path| is_input(path)).count() {
        0 => return then(files, &|text| text),
        1 => Spooled::take(stop)?,
        _ => {
            return Err(Failure::config(
                "standard input can be read once only: give `-` once",
            ));
        }
    };
    let opened = spooled.path();
    let kept = files.iter().map(|path| match is_input(path) {
        true => opened.clone(),
        false => path.clone(),
    });
    let kept: Vec<PathBuf> = kept.collect();
    let named = |text: String| text.replace(&*opened.to_string_lossy(), NAME);
    then(&kept, &named).map_err(|failure| Failure {
        message: named(failure.message),
        ..failure
    })
}

/// All of standard input. The file has lost its name before anything is in it: nobody else can open it, and
/// it is gone with the process, however that ends.
struct Spooled(File);

impl Spooled {
    /// Reads standard input to its end. It takes as much room in the folder for temporary files as the
    /// recording has bytes.
    fn take(stop: &StopFlag) -> Result<Spooled, Failure> {
        let folder = std::env::temp_dir();
        let failed = |e: io::Error| {
            Failure::system(format!(
                "cannot keep {NAME} in {}: {e}; TMPDIR names another folder",
                folder.display()
            ))
        };
        let named = |number: u32| folder.join(format!("tickwire-replay-{}-{number}", std::process::id()));
        let create = |number: u32| {
            let path = named(number);
            let file = files::create_new(&path)?;
            std::fs::remove_file(&path).map(|()| file)
        };
        let mut created = create(0);
        for number in 1..NAMES {
            match &created {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => created = create(number),
                _ => break,
            }
        }
        let file = created.map_err(failed)?;
        let mut copy = file.try_clone().map_err(failed)?;
        // On a thread of its own: a read that waits for a pipe does not look at the stop flag.
        let copying =
            tickwire_runtime::affinity::beside("spool", move || io::copy(&mut io::stdin().lock(), &mut copy))
                .map_err(failed)?;
        while !copying.is_finished() {
            if let Some(reason) = stop.reason() {
                return Err(Failure::interrupted(format!(
                    "{reason}; nothing has been replayed yet: {NAME} was being read"
                )));
            }
            std::thread::sleep(LOOK);
        }
        match copying.join() {
            Ok(copied) => copied.map(|_| Spooled(file)).map_err(failed),
            Err(_) => Err(failed(io::Error::other("the copying thread failed"))),
        }
    }

    /// A path that opens it anew, from its beginning.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}
