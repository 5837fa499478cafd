//! The pre-armed order of a delegated connection: the next segment, prepared, in the hands of the program
//! that receives market data. Until it has left or is taken back, nothing else is sent.

use std::io;

use tickwire_kernel::segment::{HEADERS_MAX, Numbers};
use tickwire_runtime::tcp::TcpStream;

use super::{Delegate, Reason};
use crate::trigger::{NotArmed, Shooting, Trigger, Waits};

/// What was pre-armed so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ArmedCounts {
    /// Orders armed.
    pub armed: u64,
    /// Of them, those that were taken back, by whoever armed them or as something else had to be sent.
    pub taken_back: u64,
    /// Those that the program sent.
    pub fired: u64,
    /// Those whose arming was ended by missing packets or another session.
    pub gap: u64,
    /// Those for which the causing packet's frame had no room.
    pub no_room: u64,
    /// Orders that could not be armed, whatever the reason.
    pub refused: u64,
}

impl ArmedCounts {
    pub(super) fn merge(&mut self, other: &ArmedCounts) {
        for (to, from) in [
            (&mut self.armed, other.armed),
            (&mut self.taken_back, other.taken_back),
            (&mut self.fired, other.fired),
            (&mut self.gap, other.gap),
            (&mut self.no_room, other.no_room),
            (&mut self.refused, other.refused),
        ] {
            *to += from;
        }
    }
}

/// The program's place for an order, and the order.
#[derive(Debug)]
pub(super) struct Arming {
    trigger: Trigger,
    /// What is armed; empty: nothing.
    order: Vec<u8>,
    /// The next hop that it is addressed to.
    hop: [u8; 6],
    /// How long it stays armed without a look.
    idle_ns: u64,
    /// What became of the last one, until somebody asks.
    told: Option<Shooting>,
    counts: ArmedCounts,
}

impl Arming {
    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        !self.order.is_empty()
    }

    /// The program has sent what is armed, or will not; if not, it may for longer, as somebody looks.
    #[inline]
    pub(super) fn has_happened(&self) -> bool {
        if !self.is_armed() {
            return false;
        }
        let has_happened = self.trigger.look().is_some();
        if !has_happened {
            self.trigger.is_alive(self.idle_ns);
        }
        has_happened
    }
}

impl Delegate {
    /// Lets a program send orders of this connection; [`crate::KernelReceiver::trigger`] has it.
    pub fn use_trigger(&mut self, trigger: Trigger) {
        self.arming = Some(Box::new(Arming {
            trigger,
            order: Vec::with_capacity(tickwire_kernel::trigger::ORDER_MAX),
            hop: [0; 6],
            idle_ns: 0,
            told: None,
            counts: ArmedCounts::default(),
        }));
    }

    /// The program's place, for another connection; what is armed is taken back.
    ///
    /// # Errors
    /// As [`Delegate::settle`], if it has left.
    pub fn give_trigger(&mut self, stream: &mut TcpStream) -> io::Result<Option<Trigger>> {
        self.disarm(stream)?;
        Ok(self.arming.take().map(|arming| arming.trigger))
    }

    /// Arms an order, a whole message: the program sends it when what it waits for is said, as the next bytes
    /// of the connection. Every check of the order is made before this. What is sent otherwise takes it back
    /// first.
    ///
    /// The bytes leave as they are: the sending time in them is that of arming.
    ///
    /// # Errors
    /// Why it cannot be; nothing has changed.
    pub fn arm(&mut self, stream: &TcpStream, waits: &Waits, order: &[u8]) -> Result<(), NotArmed> {
        let armed = self.try_arm(stream, waits, order);
        if let Some(arming) = &mut self.arming {
            match armed {
                Ok(()) => arming.counts.armed += 1,
                Err(_) => arming.counts.refused += 1,
            }
        }
        armed
    }

    /// Whether an order could be armed now, before it is made: everything but its length. Asks the kernel.
    ///
    /// # Errors
    /// Why not.
    pub fn may_arm(&mut self, stream: &TcpStream) -> Result<(), NotArmed> {
        self.check_room(stream, 1)
    }

    fn check_room(&mut self, stream: &TcpStream, bytes: usize) -> Result<(), NotArmed> {
        let arming = self.arming.as_ref().ok_or(NotArmed::NoProgram)?;
        if arming.is_armed() {
            return Err(NotArmed::Taken);
        }
        arming.trigger.check()?;
        if !self.unbooked.is_empty() {
            return Err(NotArmed::Connection(Reason::Unsent));
        }
        // The room is asked for now: until it is used up by others nothing else is sent.
        self.look(stream);
        match self.refusal(stream, bytes) {
            Some(reason) => Err(NotArmed::Connection(reason)),
            None => Ok(()),
        }
    }

    fn try_arm(&mut self, stream: &TcpStream, waits: &Waits, order: &[u8]) -> Result<(), NotArmed> {
        self.check_room(stream, order.len())?;
        if order.is_empty() || order.len() > self.room.segment_bytes {
            return Err(NotArmed::Long(order.len() + HEADERS_MAX));
        }
        let seq = self.next_seq(stream);
        let numbers = self.numbers(stream, seq);
        let numbers = Numbers {
            // The program's, at the moment.
            stamps: (0, numbers.stamps.1),
            ..numbers
        };
        let length = self.template.write(&mut self.frame[..], &numbers, order);
        let frame = length.and_then(|length| self.frame.get(..length));
        let frame = frame.ok_or(NotArmed::Long(order.len() + HEADERS_MAX))?;
        let Some(arming) = &mut self.arming else {
            return Err(NotArmed::NoProgram);
        };
        let out = self.way.interface_index();
        // Before it can leave: an answer may come before we look.
        self.watched.begin(seq);
        let stamp = self.stamps.as_ref().map(super::Stamps::offset);
        if let Err(why) = arming.trigger.arm(waits, frame, stamp, out) {
            self.watched.end();
            return Err(why);
        }
        arming.order.extend_from_slice(order);
        arming.hop = self.ends.hardware[1];
        arming.idle_ns = waits.idle_ns;
        arming.told = None;
        Ok(())
    }

    /// The kill switch of what is armed, now and later, for any thread.
    pub fn kill_switch(&self) -> Option<crate::KillSwitch> {
        self.arming.as_ref().map(|arming| arming.trigger.kill_switch())
    }

    /// Whether an order waits to be sent by the program, as far as is known here.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.arming.as_ref().is_some_and(|arming| arming.is_armed())
    }

    /// What became of the last order that was armed, told once; what has left is booked. To be asked whenever
    /// there is nothing else to do: one load while nothing has happened.
    ///
    /// # Errors
    /// As [`Delegate::settle`].
    #[inline]
    pub fn shooting(&mut self, stream: &mut TcpStream) -> io::Result<Option<Shooting>> {
        let Some(arming) = &self.arming else {
            return Ok(None);
        };
        if arming.has_happened() {
            self.end_arming(stream)?;
        }
        Ok(self.arming.as_mut().and_then(|arming| arming.told.take()))
    }

    /// Takes the armed order back, if it has not left; what became of it is told, here and not again. `None`
    /// if nothing was armed.
    ///
    /// # Errors
    /// As [`Delegate::settle`].
    pub fn disarm(&mut self, stream: &mut TcpStream) -> io::Result<Option<Shooting>> {
        if self.is_armed() {
            self.end_arming(stream)?;
        }
        Ok(self.arming.as_mut().and_then(|arming| arming.told.take()))
    }

    /// What is armed is taken back, or booked where it has left.
    #[cold]
    pub(super) fn end_arming(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let Some(arming) = &mut self.arming else {
            return Ok(());
        };
        let told = arming.trigger.take_back();
        arming.told = Some(told);
        match told {
            Shooting::Back => arming.counts.taken_back += 1,
            Shooting::Fired { .. } => arming.counts.fired += 1,
            Shooting::Gap => arming.counts.gap += 1,
            Shooting::NoRoom => arming.counts.no_room += 1,
        }
        if matches!(told, Shooting::Fired { .. }) {
            self.unbooked.extend_from_slice(&arming.order);
            self.unbooked_segments += 1;
            self.counts.delegated += 1;
            self.counts.segments += 1;
            arming.order.clear();
            return self.settle(stream);
        }
        arming.order.clear();
        self.watched.end();
        Ok(())
    }

    /// The kernel has said what may leave, and where to: an order stays armed only while it may, and goes
    /// there.
    pub(super) fn keep_arming(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let is_elsewhere = |arming: &Arming| arming.hop != self.ends.hardware[1];
        let is_void = self.room.refused.is_some() || self.arming.as_deref().is_some_and(is_elsewhere);
        match is_void && self.is_armed() {
            true => self.end_arming(stream),
            false => Ok(()),
        }
    }

    pub(super) fn armed_counts(&self) -> ArmedCounts {
        self.arming
            .as_ref()
            .map_or_else(ArmedCounts::default, |arming| arming.counts)
    }
}
