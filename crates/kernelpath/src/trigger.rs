//! The process's side of a pre-armed order ([`tickwire_kernel::trigger`]): its place in the program's map,
//! the kill switch, and the packet that the program kept. What is sent is [`crate::delegate`]'s.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickwire_kernel::layout::{META_SIZE, Meta};
use tickwire_kernel::trigger::{self, Condition, Setup, SetupError, Shot, State};
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::xdp::SharedMap;

use crate::delegate::Reason;

/// The map of a program, and whether the program is at its interface.
#[derive(Debug)]
pub(crate) struct Place {
    map: SharedMap,
    interface: u32,
    is_attached: AtomicBool,
    /// Somebody has it.
    is_taken: AtomicBool,
    /// How often something was armed.
    turns: AtomicU64,
}

impl Place {
    pub(crate) fn new(map: SharedMap, interface: u32) -> Place {
        Place {
            map,
            interface,
            is_attached: AtomicBool::new(true),
            is_taken: AtomicBool::new(false),
            turns: AtomicU64::new(0),
        }
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.map.words()[offset / 8]
    }

    /// The program is at its interface no longer; nothing is sent by it any more.
    pub(crate) fn detached(&self) {
        self.is_attached.store(false, Ordering::Release);
    }

    /// Channel and delivery number of the packet that the program keeps.
    #[inline]
    pub(crate) fn kept_delivery(&self) -> Option<(u16, u32)> {
        if !self.has_kept() {
            return None;
        }
        let head = self.word(trigger::KEPT_PACKET).load(Ordering::Relaxed);
        let [_, _, c0, c1, d0, d1, d2, d3] = head.to_ne_bytes();
        Some((u16::from_ne_bytes([c0, c1]), u32::from_ne_bytes([d0, d1, d2, d3])))
    }

    /// Whether the program keeps a packet.
    #[inline]
    pub(crate) fn has_kept(&self) -> bool {
        self.word(trigger::KEPT).load(Ordering::SeqCst) != 0
    }

    /// Takes the packet that the program kept: its metadata and length.
    #[cold]
    pub(crate) fn take_kept(&self, packet: &mut [u8; trigger::VALUE]) -> Option<([u8; META_SIZE], usize)> {
        let length = trigger::kept(self.word(trigger::KEPT).load(Ordering::SeqCst));
        let taken = length.map(|length| {
            let words = &self.map.words()[trigger::KEPT_PACKET / 8..];
            let bytes = META_SIZE + length;
            for (to, word) in packet[..bytes.next_multiple_of(8)]
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .zip(words)
            {
                *to = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            let mut meta = [0; META_SIZE];
            meta.copy_from_slice(&packet[..META_SIZE]);
            (meta, length)
        });
        self.word(trigger::KEPT).store(0, Ordering::SeqCst);
        taken
    }

    /// What the program has counted.
    pub(crate) fn count(&self, shot: Shot) -> u64 {
        self.word(shot.offset()).load(Ordering::Relaxed)
    }
}

/// What an order waits for, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waits {
    /// The message and its fields.
    pub condition: Condition,
    /// The channel of the filter.
    pub channel: u16,
    /// The channel's session, as for [`crate::LoadedFilter::arm`].
    pub session: [u64; 2],
    /// The number of the channel's next message. What has come and was not looked at yet is not waited for:
    /// with packets in the ring the order does not stay armed.
    pub next: u64,
    /// How long it stays armed, nanoseconds, without [`crate::delegate::Delegate::tend`]: a process that
    /// hangs, or was stopped, sends nothing after that.
    pub idle_ns: u64,
}

/// Why an order cannot be armed. Nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotArmed {
    /// There is no program that could send it: market data comes by sockets, or without the rights for more.
    NoProgram,
    /// Orders of this connection are sent by the kernel.
    ByKernel,
    /// The program is at its interface no longer.
    Detached,
    /// Another order is armed: a program has one.
    Taken,
    /// The packet that the last one was caused by has not been taken yet.
    Unread,
    /// The kill switch is on.
    Killed,
    /// It cannot leave past the kernel at this moment.
    Connection(Reason),
    /// It is longer than a segment, or than a program takes.
    Long(usize),
    /// The channel has no such messages.
    Framing,
}

impl fmt::Display for NotArmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotArmed::NoProgram => f.write_str(
                "no program of this process receives these market data: `backend = \"xdp\"` of [receiver] is needed, and the rights for it",
            ),
            NotArmed::ByKernel => {
                f.write_str("orders of this connection are sent by the kernel: `send = \"delegated\"` is needed")
            }
            NotArmed::Detached => f.write_str("the program is at its interface no longer"),
            NotArmed::Taken => f.write_str("another order is armed, and a program has one"),
            NotArmed::Unread => f.write_str("the packet that caused the last one was not read yet"),
            NotArmed::Killed => f.write_str("the kill switch is on"),
            NotArmed::Connection(reason) => {
                write!(f, "it cannot leave past the kernel now: {}", reason.name())
            }
            NotArmed::Long(bytes) => {
                write!(f, "a segment with an order of {bytes} bytes is too long to be pre-armed")
            }
            NotArmed::Framing => f.write_str("the channel has no such messages"),
        }
    }
}

impl std::error::Error for NotArmed {}

/// What became of an order that was armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shooting {
    /// It was taken back: it has not left, and will not.
    Back,
    /// It has left, and is booked.
    Fired {
        /// When the program sent it, nanoseconds of `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// The first message number of the packet that caused it.
        by: u64,
    },
    /// It has not left, and will not: packets of the channel are missing, or it has another session.
    Gap,
    /// It has not left, and will not: the packet's frame could not be made so long.
    NoRoom,
}

/// The pre-armed order of a program; one at a time has it. Dropping it takes back what is armed.
#[derive(Debug)]
pub struct Trigger {
    place: Arc<Place>,
    turn: u64,
}

/// The kill switch of a program's pre-armed order, for whoever watches: any thread.
#[derive(Clone, Debug)]
pub struct KillSwitch(Arc<Place>);

impl KillSwitch {
    /// Nothing is sent from now on, whatever is armed: one store.
    pub fn kill(&self) {
        self.0.word(trigger::KILL).store(1, Ordering::SeqCst);
    }

    /// Takes it back. What is still armed counts again.
    pub fn lift(&self) {
        self.0.word(trigger::KILL).store(0, Ordering::SeqCst);
    }
}

impl Trigger {
    /// `None` if somebody has it.
    pub(crate) fn of(place: &Arc<Place>) -> Option<Trigger> {
        let is_free = !place.is_taken.swap(true, Ordering::SeqCst);
        is_free.then(|| Trigger {
            place: Arc::clone(place),
            turn: 0,
        })
    }

    /// Its kill switch.
    pub fn kill_switch(&self) -> KillSwitch {
        KillSwitch(Arc::clone(&self.place))
    }

    /// What the program has counted.
    pub fn count(&self, shot: Shot) -> u64 {
        self.place.count(shot)
    }

    /// Whether an order may be armed now.
    pub(crate) fn check(&self) -> Result<(), NotArmed> {
        let place = &self.place;
        if !place.is_attached.load(Ordering::Acquire) {
            Err(NotArmed::Detached)
        } else if place.word(trigger::WORD).load(Ordering::SeqCst) != 0 {
            Err(NotArmed::Taken)
        } else if place.has_kept() {
            Err(NotArmed::Unread)
        } else if place.word(trigger::KILL).load(Ordering::SeqCst) != 0 {
            Err(NotArmed::Killed)
        } else {
            Ok(())
        }
    }

    /// Arms a frame; [`Trigger::check`] was asked.
    pub(crate) fn arm(
        &mut self,
        waits: &Waits,
        order: &[u8],
        stamp_offset: Option<u32>,
        out: u32,
    ) -> Result<(), NotArmed> {
        let setup = Setup {
            condition: &waits.condition,
            channel: waits.channel,
            session: waits.session,
            next: waits.next,
            order,
            stamp_offset,
            out: if out == self.place.interface { 0 } else { out },
            deadline_ns: monotonic().0.saturating_add(waits.idle_ns),
        };
        let put = setup.put(|at, word| self.place.word(at).store(word, Ordering::Relaxed));
        put.map_err(|refused| match refused {
            SetupError::Order(bytes) => NotArmed::Long(bytes),
            SetupError::Framing => NotArmed::Framing,
        })?;
        self.turn = self.place.turns.fetch_add(1, Ordering::SeqCst) + 1;
        // SYNC arm: pairs with the program's exchange of this word; everything above is seen by who sees it.
        let word = State::Armed.word(self.turn);
        self.place.word(trigger::WORD).store(word, Ordering::SeqCst);
        Ok(())
    }

    /// The process is alive: what is armed stays so for as long again.
    #[inline]
    pub(crate) fn is_alive(&self, idle_ns: u64) {
        let deadline = monotonic().0.saturating_add(idle_ns);
        self.place
            .word(trigger::DEADLINE)
            .store(deadline, Ordering::Relaxed);
    }

    /// What became of it, without doing anything; `None` while it waits.
    #[inline]
    pub(crate) fn look(&self) -> Option<Shooting> {
        let word = self.place.word(trigger::WORD).load(Ordering::SeqCst);
        match State::of(word) {
            Some(State::Armed | State::Claimed) => None,
            other => Some(self.told(other)),
        }
    }

    fn told(&self, state: Option<State>) -> Shooting {
        match state {
            Some(State::Fired) => Shooting::Fired {
                at_ns: self.place.word(trigger::FIRED_AT).load(Ordering::SeqCst),
                by: self.place.word(trigger::FIRED_BY).load(Ordering::SeqCst),
            },
            Some(State::Gap) => Shooting::Gap,
            Some(State::NoRoom) => Shooting::NoRoom,
            Some(State::Armed | State::Claimed) | None => Shooting::Back,
        }
    }

    /// Takes it back if it has not left, and says what became of it. Waits for a program that is sending it
    /// at this moment, which is a part of a microsecond.
    pub(crate) fn take_back(&mut self) -> Shooting {
        let word = self.place.word(trigger::WORD);
        let armed = State::Armed.word(self.turn);
        loop {
            // SYNC take back: either this exchange finds the word armed, or the program's did.
            match word.compare_exchange(armed, 0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Shooting::Back,
                Err(now) if State::of(now) == Some(State::Claimed) => std::hint::spin_loop(),
                Err(now) => {
                    let told = self.told(State::of(now));
                    word.store(0, Ordering::SeqCst);
                    return told;
                }
            }
        }
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        self.take_back();
        self.place.is_taken.store(false, Ordering::SeqCst);
    }
}

/// The frame that the program kept, behind its metadata.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) place: Arc<Place>,
    packet: Box<[u8; trigger::VALUE]>,
}

impl Kept {
    pub(crate) fn new(place: Arc<Place>) -> Kept {
        Kept {
            place,
            packet: Box::new([0; trigger::VALUE]),
        }
    }

    /// Takes it, if there is one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<([u8; META_SIZE], &[u8])> {
        if !self.place.has_kept() {
            return None;
        }
        let (meta, length) = self.place.take_kept(&mut self.packet)?;
        Meta::read(&meta)?;
        Some((meta, self.packet.get(META_SIZE..META_SIZE + length)?))
    }
}
