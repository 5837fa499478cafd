//! Lines for whoever watches the program, said by threads that must not wait for him: sessions, hot loops.
//!
//! A terminal that is stopped, or a pipe that nobody reads, blocks whoever writes to it. So lines go into a
//! bounded queue, and a thread for each of the two streams writes them. A line that finds no room is dropped
//! and counted; when there is room again, it is said how many were. [`run`] waits for what is left, as long
//! as somebody reads.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Lines that wait for a reader.
const LINES: usize = 1 << 14;
/// How long [`run`] waits for a reader who does not read on.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(2);

static OUT: LazyLock<Stream> = LazyLock::new(|| Stream::new("stdout", std::io::stdout()));
static ERRORS: LazyLock<Stream> = LazyLock::new(|| Stream::new("stderr", std::io::stderr()));

/// Makes the threads that write now, which otherwise the first line of each stream does. For a program that
/// pins a thread later: a thread that is made by a pinned one is pinned with it.
pub fn start() {
    LazyLock::force(&OUT);
    LazyLock::force(&ERRORS);
}

/// A line on standard output.
pub fn say(text: Arguments<'_>) {
    OUT.put(format!("{text}\n"));
}

/// A warning on standard error.
pub fn warn(text: Arguments<'_>) {
    ERRORS.put(format!("warning: {text}\n"));
}

/// A line on standard error that is no warning: what somebody asked for, and who.
pub fn note(text: Arguments<'_>) {
    ERRORS.put(format!("{text}\n"));
}

/// Runs a program: whatever it has said is written, or nobody reads it, before this returns. Before it
/// unwinds too: what a program says last of all is often why.
pub fn run<T>(program: impl FnOnce() -> T) -> T {
    struct Finish;
    impl Drop for Finish {
        fn drop(&mut self) {
            finish();
        }
    }
    let _finish = Finish;
    program()
}

/// Returns when everything said so far is written, or nobody reads it.
fn finish() {
    for stream in [&OUT, &ERRORS] {
        // One that was never spoken to has nothing to write, and is not made for it.
        if let Some(stream) = LazyLock::get(stream) {
            stream.finish();
        }
    }
}

#[derive(Default)]
struct Counts {
    /// Lines that found room.
    put: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
}

struct Stream {
    queue: SyncSender<String>,
    counts: Arc<Counts>,
}

impl Stream {
    fn new(name: &'static str, to: impl Write + Send + 'static) -> Stream {
        let (queue, lines) = sync_channel(LINES);
        let counts = Arc::new(Counts::default());
        let of_writer = counts.clone();
        // Without a thread nothing is said: there is no other way that never waits.
        let _ = std::thread::Builder::new()
            .name(format!("console-{name}"))
            .spawn(move || write_lines(&lines, to, name == "stdout", &of_writer));
        Stream { queue, counts }
    }

    /// Never waits.
    fn put(&self, line: String) {
        let count = match self.queue.try_send(line) {
            Ok(()) => &self.counts.put,
            Err(_) => &self.counts.dropped,
        };
        count.fetch_add(1, Ordering::Release);
    }

    fn finish(&self) {
        let counts = &self.counts;
        let (mut written, mut waited) = (counts.written.load(Ordering::Acquire), Duration::ZERO);
        while written < counts.put.load(Ordering::Acquire) && waited < PATIENCE {
            std::thread::sleep(LOOK);
            let now = counts.written.load(Ordering::Acquire);
            waited = if now > written {
                Duration::ZERO
            } else {
                waited + LOOK
            };
            written = now;
        }
    }
}

/// The thread of a stream. Whoever read may be gone: what is for him is dropped, and why standard output
/// takes no more remembered.
fn write_lines(lines: &Receiver<String>, mut to: impl Write, is_output: bool, counts: &Counts) {
    let mut told = 0;
    while let Ok(line) = lines.recv() {
        if let Err(error) = to.write_all(line.as_bytes()).and_then(|()| to.flush())
            && is_output
        {
            crate::out::note(&error);
        }
        let dropped = counts.dropped.load(Ordering::Acquire);
        if dropped > told {
            let _ = writeln!(
                to,
                "warning: {} lines were not written here: nobody read what came before them",
                dropped - told
            );
            told = dropped;
        }
        counts.written.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::Sender;

    #[test]
    fn a_program_that_unwinds_has_its_last_words_written() {
        let before = || ERRORS.counts.written.load(Ordering::Acquire);
        let (had, until) = (before(), Arc::new(Mutex::new(0)));
        let put = until.clone();
        let ended = std::panic::catch_unwind(move || {
            run(|| {
                for _ in 0..1_000 {
                    warn(format_args!("the last words of a program"));
                }
                *put.lock().expect("no panic") = ERRORS.counts.put.load(Ordering::Acquire);
                std::panic::resume_unwind(Box::new(()))
            })
        });
        assert!(ended.is_err());
        assert!(before() >= *until.lock().expect("no panic") && before() >= had + 1_000);
    }

    /// A reader who reads nothing until he is told to.
    struct Stopped {
        until: Option<Receiver<()>>,
        read: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stopped {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Some(until) = self.until.take() {
                let _ = until.recv();
            }
            self.read.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Every file whose code runs in a thread of sessions, feeds or quotes speaks through here. What runs
    /// before such a thread begins, or after it, may write itself.
    #[test]
    fn threads_that_must_not_wait_print_nothing_themselves() {
        const FILES: [&str; 14] = [
            "apps/tickwire/src/fix/driver.rs",
            "apps/tickwire/src/fix/echo.rs",
            "crates/fixengine/src",
            "apps/tickwire/src/fix/stats.rs",
            "crates/quoterd/src/path.rs",
            "crates/node/src/link.rs",
            "crates/quoterd/src/pricing.rs",
            "crates/node/src/hot.rs",
            "crates/simulator/src/channel_sockets.rs",
            "crates/receive/src/intake.rs",
            "crates/venues/src/channels.rs",
            "crates/venues/src/wiring.rs",
            "crates/feedd/src/supers.rs",
            "crates/simulator/src/entry.rs",
        ];
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files: Vec<_> = FILES.iter().map(|name| root.join(name)).collect();
        let mut looked = 0;
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
                continue;
            }
            let is_test = path.ends_with("tests.rs");
            let Some(text) = std::fs::read_to_string(&path).ok().filter(|_| !is_test) else {
                continue;
            };
            looked += 1;
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            for word in ["print!(", "println!(", "io::stdout()", "io::stderr()"] {
                assert!(!code.contains(word), "{} prints itself: {word}", path.display());
            }
        }
        assert!(looked >= FILES.len(), "files have moved: {looked}");
    }

    #[test]
    fn nobody_waits_for_a_reader_who_stops_and_what_was_dropped_is_said() {
        let (go, until): (Sender<()>, _) = std::sync::mpsc::channel();
        let read = Arc::new(Mutex::new(Vec::new()));
        let stream = Stream::new(
            "test",
            Stopped {
                until: Some(until),
                read: read.clone(),
            },
        );
        // More than the queue has room for, to a reader who is stopped: this returns.
        for n in 0..3 * LINES {
            stream.put(format!("line {n}\n"));
        }
        let dropped = stream.counts.dropped.load(Ordering::Acquire);
        assert!((LINES as u64..=2 * LINES as u64).contains(&dropped), "{dropped}");
        go.send(()).unwrap();
        stream.finish();
        let text = String::from_utf8(read.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("line 0\n"), "{}", &text[..60]);
        assert!(
            text.contains(&format!("warning: {dropped} lines were not written here")),
            "no word of {dropped}"
        );
        assert_eq!(text.lines().count() as u64, 3 * LINES as u64 - dropped + 1);
    }
}
