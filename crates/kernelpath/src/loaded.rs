//! A filter in the kernel: program and maps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use tickwire_kernel::asm::MapId;
use tickwire_kernel::filter::{FilterSpec, Framing, SpecError};
use tickwire_kernel::guard;
use tickwire_kernel::layout::{self, Count, Sizes};
use tickwire_kernel::trigger;
use tickwire_runtime::xdp::{HashMap, Program, SharedMap, SocketMap, XdpError};

/// Why a filter cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The system refuses.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// A map cannot be written.
    #[error("cannot write the filter's maps: {0}")]
    Map(#[from] std::io::Error),
}

/// There is no room for an order in the filter's table: the channel must not be armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrdersFull;

impl std::fmt::Display for OrdersFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the filter has no room for another order: raise the number of orders, or want fewer instruments",
        )
    }
}

impl std::error::Error for OrdersFull {}

/// A filter that the kernel has accepted; not at an interface yet.
#[derive(Debug)]
pub struct LoadedFilter {
    spec: FilterSpec,
    sizes: Sizes,
    state: SharedMap,
    sets: SharedMap,
    sockets: SocketMap,
    orders: Option<HashMap>,
    guard: Option<Arc<SharedMap>>,
    trigger: Option<SharedMap>,
    program: Program,
    epochs: Vec<u16>,
}

impl LoadedFilter {
    /// Makes maps and program, and loads them. All channels are disarmed.
    ///
    /// # Errors
    /// What is wrong with the specification, or what the system lacks.
    pub fn load(spec: FilterSpec) -> Result<LoadedFilter, FilterError> {
        let program = spec.program()?;
        let sizes = Sizes::of(&spec);
        let (first_state, first_sets) = spec.initial();
        let state = SharedMap::create("tw_state", first_state.len() as u32)?;
        let sets = SharedMap::create("tw_sets", first_sets.len() as u32)?;
        let sockets = SocketMap::create("tw_sockets", spec.queues)?;
        let orders = match sizes.orders {
            true => {
                let key = layout::ORDER_KEY as u32;
                Some(HashMap::create("tw_orders", key, 1, spec.orders_max)?)
            }
            false => None,
        };
        let guard = match spec.guard {
            true => Some(Arc::new(SharedMap::create("tw_guard", guard::VALUE as u32)?)),
            false => None,
        };
        let trigger = match spec.trigger {
            true => Some(SharedMap::create("tw_trigger", trigger::VALUE as u32)?),
            false => None,
        };
        state.fill(&first_state)?;
        sets.fill(&first_sets)?;
        let number = |map: MapId| match map {
            layout::STATE => state.number(),
            layout::SETS => sets.number(),
            layout::SOCKETS => sockets.number(),
            guard::GUARD => guard.as_ref().map_or(-1, |map| map.number()),
            trigger::TRIGGER => trigger.as_ref().map_or(-1, SharedMap::number),
            _ => orders.as_ref().map_or(-1, HashMap::number),
        };
        let program = Program::load("tw_filter", &program.link(number))?;
        Ok(LoadedFilter {
            epochs: vec![0; spec.channels.len()],
            spec,
            sizes,
            state,
            sets,
            sockets,
            orders,
            guard,
            trigger,
            program,
        })
    }

    /// What it was made from.
    pub fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The sockets that it delivers to.
    pub fn sockets(&self) -> &SocketMap {
        &self.sockets
    }

    /// The state of guarded connections, if the program guards some.
    pub(crate) fn guard(&self) -> Option<Arc<SharedMap>> {
        self.guard.clone()
    }

    /// The place of a pre-armed order, if the program has one.
    pub(crate) fn take_trigger(&mut self) -> Option<SharedMap> {
        self.trigger.take()
    }

    /// A word of a channel's state. Panics beyond the channels.
    fn word(&self, channel: u16, offset: usize) -> &AtomicU64 {
        assert!(
            usize::from(channel) < self.sizes.channels,
            "there is no channel {channel}"
        );
        &self.state.words()[(usize::from(channel) * self.sizes.channel() + offset) / 8]
    }

    /// Sets or clears the bit of an instrument in a set. What a bit stands for: [`Framing`].
    ///
    /// A bit that is set while a channel is armed counts for packets that the program has not begun with.
    /// Whoever must miss nothing disarms first, as for a join in mid-session.
    ///
    /// # Panics
    /// Beyond the sets or [`layout::BITS`].
    pub fn want(&mut self, set: u16, bit: usize, wanted: bool) {
        assert!(
            usize::from(set) < self.sizes.sets && bit < layout::BITS,
            "set {set} has no bit {bit}"
        );
        let at = (self.sizes.sets_at() + usize::from(set) * layout::SET_SIZE) / 8 + bit / 64;
        let (word, mask) = (&self.sets.words()[at], 1_u64 << (bit % 64));
        match wanted {
            true => word.fetch_or(mask, Ordering::SeqCst),
            false => word.fetch_and(!mask, Ordering::SeqCst),
        };
    }

    /// Follows an order that was added where the program did not see it: in a snapshot, in a retransmission.
    /// A system call.
    ///
    /// # Errors
    /// [`OrdersFull`].
    pub fn follow(&mut self, set: u16, order: u64) -> Result<(), OrdersFull> {
        let Some(orders) = &self.orders else { return Ok(()) };
        let mut key = [0; layout::ORDER_KEY];
        key[..8].copy_from_slice(&order.to_ne_bytes());
        key[8..].copy_from_slice(&u64::from(set).to_ne_bytes());
        orders.insert(&key, &[1]).map_err(|_| OrdersFull)?;
        let bit = layout::order_bit(order);
        self.sets.words()[bit / 64].fetch_or(1 << (bit % 64), Ordering::SeqCst);
        Ok(())
    }

    /// Delivers everything from now on. A packet that the program is in the middle of cannot be dropped any
    /// more. Gives the number before which everything was seen in sequence, if the channel was armed.
    pub fn disarm(&mut self, channel: u16) -> Option<u64> {
        let word = self.word(channel, layout::WORD).swap(0, Ordering::SeqCst);
        (word != 0).then_some(word & layout::NEXT_MASK)
    }

    /// How many deliveries of a channel were made, modulo 2^32.
    pub fn made(&self, channel: u16) -> u32 {
        self.word(channel, layout::DELIVERIES).load(Ordering::SeqCst) as u32
    }

    /// Drops from now on what nobody wants. `session` is that of [`Framing`], `next` the number that the
    /// channel's reader expects; nothing may be missing before it. Gives the epoch in which the filter's
    /// claims count.
    pub fn arm(&mut self, channel: u16, session: [u64; 2], next: u64) -> u16 {
        self.disarm(channel);
        self.set_session(channel, session);
        let epoch = &mut self.epochs[usize::from(channel)];
        *epoch = if *epoch == u16::MAX { 1 } else { *epoch + 1 };
        let epoch = *epoch;
        self.word(channel, layout::HOLD).store(0, Ordering::SeqCst);
        let open = match self.spec.channels[usize::from(channel)].framing {
            // A match event may be under way.
            Framing::Mdp3 => layout::OPEN,
            _ => 0,
        };
        fence(Ordering::SeqCst);
        let word = layout::word(epoch, next) | open;
        self.word(channel, layout::WORD).store(word, Ordering::SeqCst);
        epoch
    }

    /// [`LoadedFilter::arm`] for a MoldUDP64 session.
    pub fn arm_itch(&mut self, channel: u16, session: [u8; 10], next: u64) -> u16 {
        let [a, b, c, d, e, f, g, h, i, j] = session;
        let words = [
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            u64::from(u16::from_ne_bytes([i, j])),
        ];
        self.arm(channel, words, next)
    }

    /// Says which session a channel belongs to, without arming it: PITCH units are to be known from the
    /// start, as orders are followed before.
    pub fn set_session(&mut self, channel: u16, session: [u64; 2]) {
        for (at, word) in session.into_iter().enumerate() {
            self.word(channel, layout::SESSION + 8 * at)
                .store(word, Ordering::SeqCst);
        }
    }

    /// The number before which everything was seen in sequence, for a reader that has taken `deliveries` of
    /// the channel so far: what was not among them nobody wants. `None` if the channel is disarmed, or there
    /// are deliveries that he has not taken. No packet has to come for it.
    pub fn seen_up_to(&self, channel: u16, deliveries: u32) -> Option<u64> {
        // In this order: a delivery takes its place before it moves the word.
        let word = self.word(channel, layout::WORD).load(Ordering::SeqCst);
        let made = self.word(channel, layout::DELIVERIES).load(Ordering::SeqCst) as u32;
        let epoch = (word >> 48) as u16;
        (epoch != 0 && made == deliveries).then_some(word & layout::NEXT_MASK)
    }

    /// The epoch in which a channel's claims count; 0 before it was first armed.
    pub fn epoch(&self, channel: u16) -> u16 {
        self.epochs[usize::from(channel)]
    }

    /// Whether a channel is armed.
    pub fn is_armed(&self, channel: u16) -> bool {
        self.word(channel, layout::WORD).load(Ordering::SeqCst) != 0
    }

    /// Whether the program has stopped dropping by itself: [`LoadedFilter::arm`] goes on.
    pub fn holds(&self, channel: u16) -> bool {
        self.word(channel, layout::HOLD).load(Ordering::SeqCst) as u32 != 0
    }

    /// What was counted on a channel, over all CPUs.
    pub fn count(&self, channel: u16, what: Count) -> u64 {
        let cpus = 0..self.sizes.cpus;
        let at = |cpu| layout::COUNTERS + cpu * layout::COUNTERS_SIZE + what.offset();
        cpus.map(|cpu| self.word(channel, at(cpu)).load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}
