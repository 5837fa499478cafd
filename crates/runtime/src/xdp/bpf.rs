//! Maps and programs of the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use super::sys::{self, MapFd, MapType, Words};
use super::{XdpError, XdpMode};

/// An array with one value, which programs and this process share as memory. The last word may be cut off by
/// the value's size.
#[derive(Debug)]
pub struct SharedMap {
    map: MapFd,
    words: Words,
}

impl SharedMap {
    /// A value of `bytes` zeros.
    ///
    /// # Errors
    /// [`XdpError::Map`]; without the capabilities, [`XdpError::NotPermitted`].
    pub fn create(name: &str, bytes: u32) -> Result<SharedMap, XdpError> {
        let wrong = |source| XdpError::map(name, source);
        let map = MapFd::create(MapType::Array, name, (4, bytes, 1)).map_err(wrong)?;
        let words = map.words().map_err(wrong)?;
        Ok(SharedMap { map, words })
    }

    /// The value, as words that programs change at any time.
    pub fn words(&self) -> &[AtomicU64] {
        self.words.get()
    }

    /// Writes the whole value; for the time before a program runs.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// The length is not that of the value.
    pub fn fill(&self, value: &[u8]) -> io::Result<()> {
        self.map.update(&0_u32.to_ne_bytes(), value, 0)
    }

    /// The descriptor's number, for linking programs.
    pub fn number(&self) -> i32 {
        self.map.number()
    }
}

/// A hash table of the kernel.
#[derive(Debug)]
pub struct HashMap {
    map: MapFd,
    entries: u32,
}

impl HashMap {
    /// A table with room for `entries`, keys and values of so many bytes.
    ///
    /// # Errors
    /// As [`SharedMap::create`].
    pub fn create(name: &str, key: u32, value: u32, entries: u32) -> Result<HashMap, XdpError> {
        let map = MapFd::create(MapType::Hash, name, (key, value, entries));
        map.map(|map| HashMap { map, entries })
            .map_err(|source| XdpError::map(name, source))
    }

    /// Enters a key. A system call.
    ///
    /// # Errors
    /// `E2BIG`: the table is full.
    ///
    /// # Panics
    /// Key or value are of another length than the table's.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.map.update(key, value, 0)
    }

    /// Enters a key unless it is there, with whatever value. A system call.
    ///
    /// # Errors
    /// `E2BIG`: the table is full.
    ///
    /// # Panics
    /// Key or value are of another length than the table's.
    pub fn insert_new(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match self.map.update(key, value, sys::NO_EXIST) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            other => other,
        }
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// The key is of another length than the table's.
    pub fn remove(&self, key: &[u8]) -> io::Result<bool> {
        match self.map.delete(key) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes every key that is meant by `which`, and says how many those were. System calls, two for each
    /// key: for the slow part of a loop. What programs enter meanwhile may be met or not.
    ///
    /// # Errors
    /// What the kernel says; some are removed then.
    pub fn remove_each(&self, which: impl Fn(&[u8]) -> bool) -> io::Result<usize> {
        let mut removed = 0;
        let mut key = self.map.next_key(None)?;
        // A key that a program removes meanwhile makes the walk begin anew: not for ever.
        for _ in 0..2 * u64::from(self.entries) {
            let Some(this) = key else { break };
            key = self.map.next_key(Some(&this))?;
            if which(&this) {
                removed += usize::from(self.remove(&this)?);
            }
        }
        Ok(removed)
    }

    /// Whether a key is there.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// The key is of another length than the table's.
    pub fn has(&self, key: &[u8]) -> io::Result<bool> {
        self.map.value(key).map(|value| value.is_some())
    }

    /// The value of a key, as it is at the moment; `None` if the key is not there.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// The key is of another length than the table's.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.map.value(key)
    }

    /// The descriptor's number, for linking programs.
    pub fn number(&self) -> i32 {
        self.map.number()
    }
}

/// The AF_XDP sockets that a program may redirect to, by receive queue.
#[derive(Debug)]
pub struct SocketMap {
    map: MapFd,
}

impl SocketMap {
    /// Room for queues 0 to `queues` - 1.
    ///
    /// # Errors
    /// As [`SharedMap::create`].
    pub fn create(name: &str, queues: u32) -> Result<SocketMap, XdpError> {
        let map = MapFd::create(MapType::Sockets, name, (4, 4, queues));
        map.map(|map| SocketMap { map })
            .map_err(|source| XdpError::map(name, source))
    }

    pub(super) fn put(&self, queue: u32, socket: i32) -> io::Result<()> {
        self.map.update(&queue.to_ne_bytes(), &socket.to_ne_bytes(), 0)
    }

    /// The descriptor's number, for linking programs.
    pub fn number(&self) -> i32 {
        self.map.number()
    }
}

/// A program that the kernel's verifier has accepted.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
    processed: u32,
}

/// What a test run made of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tested {
    /// What the program returned.
    pub action: u32,
    /// The packet, with what was put in front of it.
    pub bytes: Vec<u8>,
    /// Nanoseconds a run, rounded down, over all repetitions.
    pub nanoseconds: u32,
}

impl Program {
    /// Loads a program, instructions of eight bytes each.
    ///
    /// # Errors
    /// [`XdpError::Refused`] with the end of the verifier's log; without the capabilities,
    /// [`XdpError::NotPermitted`].
    pub fn load(name: &str, code: &[u64]) -> Result<Program, XdpError> {
        Program::load_as(name, code, None)
    }

    /// The same for one interface, by index: it runs there only, in the driver ([`XdpMode::Native`]), and may
    /// call functions of the kernel about what the card says of a packet ([`super::kernel_function`]).
    ///
    /// # Errors
    /// As [`Program::load`]; a driver that no program can be bound to is [`XdpError::Refused`] too.
    pub fn load_for(interface: u32, name: &str, code: &[u64]) -> Result<Program, XdpError> {
        Program::load_as(name, code, Some(interface))
    }

    fn load_as(name: &str, code: &[u64], device: Option<u32>) -> Result<Program, XdpError> {
        // Level 4: statistics alone. Why a program is refused needs level 1, which is slow and long.
        let mut log = vec![0; 1 << 12];
        match sys::load(code, name, device, (4, &mut log)) {
            Ok(fd) => Ok(Program {
                fd,
                processed: processed(&log),
            }),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(XdpError::permission(source)),
            Err(first) => {
                let mut log = vec![0; 1 << 22];
                let source = sys::load(code, name, device, (1, &mut log))
                    .err()
                    .unwrap_or(first);
                Err(XdpError::Refused {
                    name: name.to_owned(),
                    log: tail(&log),
                    source,
                })
            }
        }
    }

    /// How many instructions the verifier followed; 0 if it does not say. The kernel's limit is a million.
    pub fn processed(&self) -> u32 {
        self.processed
    }

    /// Runs it over a frame `repeat` times, without a network. What it does to maps stays done.
    ///
    /// # Errors
    /// What the kernel says; a frame shorter than an Ethernet header is `EINVAL`.
    pub fn test(&self, frame: &[u8], repeat: u32) -> io::Result<Tested> {
        // A program may make it longer.
        let mut bytes = vec![0; frame.len() + 1024];
        let run = sys::test_run(self.fd.as_fd(), frame, &mut bytes, repeat)?;
        bytes.truncate(run.length);
        Ok(Tested {
            action: run.action,
            bytes,
            nanoseconds: run.nanoseconds,
        })
    }

    /// Attaches it to an interface, by index, for as long as the result lives: it goes with the process,
    /// however that ends.
    ///
    /// # Errors
    /// [`XdpError::Busy`] if the interface has another program; [`XdpError::Attach`].
    pub fn attach(&self, interface: (&str, u32), mode: XdpMode) -> Result<Attached, XdpError> {
        let (name, index) = interface;
        match sys::link_xdp(self.fd.as_fd(), index, mode.flags()) {
            Ok(link) => Ok(Attached { _link: link, mode }),
            Err(source) => Err(XdpError::attach(name, mode, source)),
        }
    }
}

/// A program at an interface; detached when dropped.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
    mode: XdpMode,
}

impl Attached {
    /// How it is attached.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }
}

/// The text of a log.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

/// `processed N insns (limit …)`.
fn processed(log: &[u8]) -> u32 {
    let text = text(log);
    let number = text
        .split("processed ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The last lines of a log.
fn tail(log: &[u8]) -> String {
    let text = text(log);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_verifier_says_is_read() {
        let log =
            b"verification time 42 usec\nprocessed 2571 insns (limit 1000000) max_states_per_insn 4\n\0\0";
        assert_eq!(processed(log), 2571);
        assert_eq!(processed(b"\0"), 0);
        let long: String = (0..30).map(|n| format!("line {n}\n")).collect();
        assert!(tail(long.as_bytes()).starts_with("line 18\n"));
    }
}
