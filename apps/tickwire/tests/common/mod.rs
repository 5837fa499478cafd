//! What the tests of the program share: running it, and not leaving anything behind.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwire_runtime::affinity::{CORES_VARIABLE, Cores};

/// The program that is tested: `tickwire`, or `tickwire-lab`, which takes the commands that the other passes
/// on to it by the same names.
pub(crate) fn tickwire() -> Command {
    let mut command = Command::new(program());
    if option_env!("CARGO_BIN_EXE_tickwire-lab").is_some() {
        // The laboratory measures the machine as it is.
        command.env_remove(CORES_VARIABLE);
    }
    command
}

/// How many cores a program counts on that nobody tells of another number.
pub(crate) fn cores() -> usize {
    let counted = Cores::count();
    match std::env::var_os(CORES_VARIABLE) {
        None => counted.parallelism(),
        Some(_) => counted.usable().len(),
    }
}

/// Its path.
fn program() -> &'static str {
    let lab = option_env!("CARGO_BIN_EXE_tickwire-lab");
    let program = option_env!("CARGO_BIN_EXE_tickwire").or(lab);
    program.expect("tests of a package have its program")
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tickwire()
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// What a running process says of itself through its control socket, as `--tell status` prints it; `None` as
/// long as nobody listens there. Asked again and again while something is waited for: a program for each
/// question takes 7 ms of a processor to start.
pub(crate) fn status(socket: &Path) -> Option<serde_json::Value> {
    // Exchanges, traders and quoters take one request and answer in their own words.
    tickwire_control::client::ask_exchange(socket, &serde_json::json!({ "do": "status" })).ok()
}

/// How often an attack is repeated: `ordinary` in the ordinary tests, so many times that by
/// `cargo xtask attack`, which sets the variable.
pub(crate) fn times(ordinary: u32) -> u32 {
    let times = std::env::var("TICKWIRE_ATTACK_TIMES").map_or(1, |n| n.parse().expect("a number"));
    ordinary * times
}

/// How long each of these threads had no core stands with a repetition, wherever the kernel counts it.
pub(crate) fn waited(repetition: &serde_json::Value, roles: &[&str]) {
    if !Path::new("/proc/thread-self/schedstat").exists() {
        return tickwire_testdata::not_tested("this kernel does not count run delays");
    }
    let rows = repetition["run_delays_ns"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names: Vec<&str> = rows.iter().filter_map(|row| row[0].as_str()).collect();
    for role in roles {
        assert!(names.contains(role), "{role} is not among {names:?}");
    }
    assert!(rows.iter().all(|row| row[1].is_u64()), "{rows:?}");
}

/// A folder of this test's own, removed when it goes.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwire-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a temporary file");
        path
    }
}

impl Folder {
    /// Everything that the program wrote below it, which is everything but `ours`, can be read by nobody else
    /// and has none of these secrets in it. How many files that were.
    pub(crate) fn holds_no_secret(&self, secrets: &[&str], ours: &[&Path]) -> usize {
        let mut files = 0;
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let data = std::fs::symlink_metadata(&path).expect("it is there");
                if ours.contains(&path.as_path()) {
                    continue;
                }
                let mode = data.permissions().mode() & 0o777;
                assert_eq!(mode & 0o077, 0, "{} has mode {mode:04o}", path.display());
                if data.is_dir() {
                    folders.push(path);
                } else if data.is_file() {
                    let bytes = std::fs::read(&path).expect("ours");
                    let has =
                        |secret: &&&str| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                    assert_eq!(secrets.iter().find(has), None, "in {}", path.display());
                    files += 1;
                }
            }
        }
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Kills the process when the test ends early.
pub(crate) struct Guard(pub(crate) Child);

impl Guard {
    /// Waits for its end, at most `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.0.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `tickwire fix acceptor` as a process of its own. Killed when it goes.
pub(crate) struct Acceptor {
    pub(crate) process: Guard,
    /// Where it listens on loopback.
    pub(crate) port: u16,
}

impl Acceptor {
    /// Starts it and waits until it listens.
    pub(crate) fn start(config: &Path) -> Acceptor {
        Acceptor::with(config, &[])
    }

    /// The same with further arguments.
    pub(crate) fn with(config: &Path, args: &[&str]) -> Acceptor {
        let mut command = tickwire();
        command.args(["fix", "acceptor", "-c"]).arg(config).args(args);
        Acceptor::of(command)
    }

    /// In a mount namespace with an empty file system of so many bytes at `folder`; `None`, said loudly,
    /// where that needs rights that we do not have.
    pub(crate) fn on_small_disk(config: &Path, folder: &Path, bytes: usize) -> Option<Acceptor> {
        let mount = format!("mount -t tmpfs -o size={bytes} tmpfs {}", folder.display());
        let may = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
        if !may.is_ok_and(|done| done.status.success()) {
            tickwire_testdata::not_tested(
                "a mount namespace with a small tmpfs needs root (or CAP_SYS_ADMIN) and unshare(1)",
            );
            return None;
        }
        let mut command = Command::new("unshare");
        let run = format!(
            "{mount} && exec {} fix acceptor -c {}",
            program(),
            config.display()
        );
        command.args(["-m", "sh", "-c", &run]);
        Some(Acceptor::of(command))
    }

    /// A path as the process sees it.
    pub(crate) fn sees(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.0.id()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn of(mut command: Command) -> Acceptor {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines
            .next()
            .expect("it says where it listens")
            .expect("a line of text");
        let port = first.rsplit(':').next().expect("a port");
        let port = port.parse().expect("a port");
        // Nobody must block it by not reading.
        std::thread::spawn(move || lines.for_each(drop));
        Acceptor {
            process: Guard(child),
            port,
        }
    }

    pub(crate) fn kill(mut self) {
        self.process.0.kill().expect("it can be killed");
        self.process.0.wait().expect("a child can be waited for");
    }
}

/// Sets the clock of all programs that have `plan`, `step=SECONDS`, at one moment: a machine has one clock.
/// The moment is far enough for a program that waits for a core to have read of it, and the file is replaced,
/// not written to: one that is read while it is empty would set the clock back at once.
pub(crate) fn set_clocks(plan: &Path, step: &str) {
    let at = tickwire_runtime::clock::monotonic().0 + 1_500_000_000;
    let whole = plan.with_extension("next");
    std::fs::write(&whole, format!("{step} at={at}")).expect("written");
    std::fs::rename(&whole, plan).expect("replaced");
}

/// How long a line is waited for.
const LINE_PATIENCE: Duration = Duration::from_secs(60);

/// What a program says on standard error from now on, by the line.
pub(crate) fn lines_of(program: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let said = BufReader::new(program.stderr.take().expect("piped")).lines();
    std::thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// The next line that holds this.
pub(crate) fn heard(lines: &Receiver<String>, what: &str) -> String {
    let mut before = Vec::new();
    loop {
        match lines.recv_timeout(LINE_PATIENCE) {
            Ok(line) if line.contains(what) => return line,
            Ok(line) => before.push(line),
            Err(e) => panic!("{what:?} was not said ({e}): {before:?}"),
        }
    }
}

/// Sends a signal by the system's own `kill`.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.expect("kill is there").success(), "cannot signal {pid}");
}

/// Whether a process lives (a zombie does not).
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|s| !s.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Ports that nobody has now, for datagrams and for connections, and that the kernel gives to no socket which
/// did not ask for them: a program that is killed finds them free when it is started again.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::array::from_fn(|_| {
        let ports = std::iter::repeat_with(|| tickwire::demo::free_udp_port().expect("a free port"));
        let free = ports.take(1_000).find(is_free);
        free.expect("a free port")
    })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A wire between a client and an exchange that can be cut: every connection of now, and of both sides.
pub(crate) struct Cable {
    pub(crate) port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    is_unplugged: Arc<AtomicBool>,
}

impl Cable {
    pub(crate) fn to(exchange: u16) -> Cable {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = streams.clone();
        let is_unplugged = Arc::new(AtomicBool::new(false));
        let is_off = is_unplugged.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if is_off.load(Ordering::SeqCst) {
                    continue;
                }
                // Before the exchange listens, a client finds nobody.
                let Ok(server) = TcpStream::connect(("127.0.0.1", exchange)) else {
                    continue;
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let mut from = from.try_clone().expect("a socket");
                    let mut to = to.try_clone().expect("a socket");
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
                kept.lock()
                    .expect("nobody panics with it")
                    .extend([client, server]);
            }
        });
        Cable {
            port,
            streams,
            is_unplugged,
        }
    }

    /// For good: whoever connects is hung up on.
    pub(crate) fn unplug(&self) {
        self.is_unplugged.store(true, Ordering::SeqCst);
        self.cut();
    }

    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().expect("nobody panics with it").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
