//! The guard at an interface: its program, the connections that it knows, and how what it holds back reaches
//! the kernel.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tickwire_kernel::guard;
use tickwire_kernel::segment::{Checksum, Ends, checksum, complete};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::xdp::delegate::Injector;
use tickwire_runtime::xdp::{Attached, Program, SharedMap, XdpError, XdpMode};

use super::DelegateError;

/// The guard of one interface, for all connections of this process there.
#[derive(Debug)]
pub(crate) struct Guard {
    map: Arc<SharedMap>,
    injector: OnceLock<Injector>,
    /// Which places of the map are somebody's.
    taken: Mutex<[bool; guard::CONNECTIONS]>,
    /// The program is at the interface.
    is_attached: AtomicBool,
    /// Of one that guards and does nothing else.
    _own: Option<(Program, Attached)>,
}

/// An interface of a network namespace: the namespace's inode, the interface's index.
type Place = (u64, u32);

/// The guards of this process. A guard that nobody uses goes, and its program with it.
static GUARDS: Mutex<Vec<(Place, Weak<Guard>)>> = Mutex::new(Vec::new());

fn guards() -> MutexGuard<'static, Vec<(Place, Weak<Guard>)>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the calling thread sees an interface.
fn place(interface: &Interface) -> Place {
    let namespace = std::fs::metadata("/proc/thread-self/ns/net");
    (
        namespace.map_or(0, |namespace| namespace.ino()),
        interface.index(),
    )
}

impl Guard {
    /// The guard of a filter that is at an interface now, for connections that are delegated later.
    pub(crate) fn of_filter(map: Arc<SharedMap>, interface: &Interface) -> Arc<Guard> {
        let guard = Arc::new(Guard::new(map, None));
        enter(interface, &guard);
        guard
    }

    fn new(map: Arc<SharedMap>, own: Option<(Program, Attached)>) -> Guard {
        Guard {
            map,
            injector: OnceLock::new(),
            taken: Mutex::default(),
            is_attached: AtomicBool::new(true),
            _own: own,
        }
    }

    /// The program of the filter is at its interface no longer.
    pub(crate) fn detached(&self) {
        self.is_attached.store(false, Ordering::Release);
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached.load(Ordering::Acquire)
    }

    /// The guard of an interface: the one that this process has there already, beside a filter or for another
    /// connection, or a new one.
    pub(crate) fn at(interface: &Interface) -> Result<Arc<Guard>, DelegateError> {
        let at = place(interface);
        let known = guards().iter().find_map(|(place, guard)| {
            guard
                .upgrade()
                .filter(|guard| *place == at && guard.is_attached())
        });
        let guard = match known {
            Some(guard) => guard,
            None => {
                let guard = Arc::new(attach(interface)?);
                enter(interface, &guard);
                guard
            }
        };
        if guard.injector.get().is_none() {
            let injector = Injector::create().map_err(DelegateError::Injector)?;
            // Two connections at once have made two; one is as good as the other.
            let _ = guard.injector.set(injector);
        }
        Ok(guard)
    }

    fn word(&self, number: usize, offset: usize) -> &AtomicU64 {
        &self.map.words()[(number * guard::CONNECTION + offset) / 8]
    }
}

fn enter(interface: &Interface, guard: &Arc<Guard>) {
    let mut all = guards();
    all.retain(|(_, guard)| guard.strong_count() > 0);
    all.push((place(interface), Arc::downgrade(guard)));
}

fn attach(interface: &Interface) -> Result<Guard, DelegateError> {
    let code = guard::program().map_err(|error| DelegateError::Program(error.to_string()))?;
    let map = Arc::new(SharedMap::create("tw_guard", guard::VALUE as u32)?);
    let program = Program::load("tw_guard", &code.link(|_| map.number()))?;
    let at = (interface.name(), interface.index());
    let attached = match program.attach(at, XdpMode::Native) {
        Err(XdpError::Attach { .. }) => program.attach(at, XdpMode::Generic)?,
        other => other?,
    };
    Ok(Guard::new(map, Some((program, attached))))
}

/// A connection that the guard knows, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watched {
    guard: Arc<Guard>,
    number: usize,
    turn: u32,
    /// The slot that the program takes next, as far as we have looked.
    looked: u64,
    /// Packets that the kernel was given, and that it did not take.
    pub(crate) injected: u64,
    pub(crate) refused: u64,
    packet: Box<[u8; guard::SLOT]>,
}

impl Watched {
    /// `None` if the guard knows as many connections as it can.
    pub(crate) fn new(guard: Arc<Guard>, ends: &Ends) -> Option<Watched> {
        let mut taken = guard.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let number = taken.iter().position(|taken| !taken)?;
        taken[number] = true;
        drop(taken);
        for offset in (0..guard::SLOTS_AT).step_by(8) {
            guard.word(number, offset).store(0, Ordering::SeqCst);
        }
        for slot in 0..guard::SLOTS {
            let state = guard.word(number, guard::SLOTS_AT + slot * guard::SLOT);
            state.store(guard::FREE, Ordering::SeqCst);
        }
        let ours = u32::from_ne_bytes(ends.addresses[0]);
        guard
            .word(number, guard::LOCAL)
            .store(ours.into(), Ordering::SeqCst);
        // Last: from here on its segments are looked at.
        guard
            .word(number, guard::KEY)
            .store(guard::key(ends), Ordering::SeqCst);
        Some(Watched {
            guard,
            number,
            turn: 0,
            looked: 0,
            injected: 0,
            refused: 0,
            packet: Box::new([0; guard::SLOT]),
        })
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.guard.word(self.number, offset)
    }

    /// Whether the program is at its interface still.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.is_attached()
    }

    /// From here on, what acknowledges more than everything before `booked` is held back.
    #[inline]
    pub(crate) fn begin(&mut self, booked: u32) {
        self.turn = self.turn.wrapping_add(1);
        self.word(guard::WORD)
            .store(guard::word(self.turn, booked), Ordering::SeqCst);
    }

    /// Everything before `booked` is booked, and more may leave at any moment: what was held back goes to the
    /// kernel, and what acknowledges more than that is held back. What is held and acknowledges more already
    /// goes as well; the kernel drops it and the peer sends it again.
    #[inline]
    pub(crate) fn go_on(&mut self, booked: u32) {
        self.begin(booked);
        self.pass_on();
    }

    /// Everything is booked: nothing is held back any more, and what was goes to the kernel.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.word(guard::WORD).store(0, Ordering::SeqCst);
        self.pass_on();
    }

    #[inline]
    fn pass_on(&mut self) {
        let next = self.word(guard::NEXT).load(Ordering::SeqCst);
        if next != self.looked {
            self.inject(next);
        }
    }

    /// Gives the kernel what the slots hold. What the program is writing at this moment it lets go itself:
    /// see `tickwire_kernel::guard`.
    fn inject(&mut self, next: u64) {
        let count = (next - self.looked).min(guard::SLOTS as u64);
        for turn in next - count..next {
            let at = guard::SLOTS_AT + (turn as usize % guard::SLOTS) * guard::SLOT;
            let state = self.word(at).load(Ordering::SeqCst);
            let Some(length) = guard::held(state) else {
                continue;
            };
            let from = (self.number * guard::CONNECTION + at + guard::PACKET) / 8;
            let words = &self.guard.map.words()[from..from + length.div_ceil(8)];
            for (to, word) in self.packet.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            // The program may have taken it back meanwhile: then the kernel has it.
            let state_now =
                self.word(at)
                    .compare_exchange(state, guard::FREE, Ordering::SeqCst, Ordering::SeqCst);
            if state_now.is_err() {
                continue;
            }
            let packet = &mut self.packet[..length];
            // Between virtual interfaces a checksum is left to a card that there is not.
            if checksum(packet) == Some(Checksum::Partial) {
                complete(packet);
            }
            let injector = self.guard.injector.get();
            match injector.is_some_and(|injector| injector.inject(packet).unwrap_or(false)) {
                true => self.injected += 1,
                // The peer sends it again.
                false => self.refused += 1,
            }
        }
        self.looked = next;
    }

    /// The timestamp of the peer's last segment that the kernel has, 0 if none was seen.
    #[inline]
    pub(crate) fn stamp(&self) -> u32 {
        self.word(guard::STAMP).load(Ordering::Relaxed) as u32
    }

    /// Packets held back, those that found no room, and those that the program let go itself.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [guard::HELD, guard::NO_ROOM, guard::LET_GO].map(|what| self.word(what).load(Ordering::Relaxed))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.word(guard::KEY).store(0, Ordering::SeqCst);
        self.word(guard::WORD).store(0, Ordering::SeqCst);
        let mut taken = self.guard.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken[self.number] = false;
    }
}
