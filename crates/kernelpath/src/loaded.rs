//! A filter in the kernel: program and maps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use tickwire_kernel::asm::MapId;
use tickwire_kernel::filter::{FilterSpec, Framing, SpecError};
use tickwire_kernel::guard;
use tickwire_kernel::layout::{self, Count, Meta, RefusedPlaces, Sizes};
use tickwire_kernel::trigger;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::xdp::{HashMap, Program, SharedMap, SocketMap, XdpError, kernel_function};

/// Why a filter cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The system refuses.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The kernel has no such function for programs.
    #[error(
        "the kernel has no function {0} for programs; Linux 6.3 or later is needed, with CONFIG_DEBUG_INFO_BTF"
    )]
    NoFunction(&'static str),
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
    refused: Option<SharedMap>,
    guard: Option<Arc<SharedMap>>,
    trigger: Option<SharedMap>,
    dropped: Option<SharedMap>,
    program: Program,
    claims: Vec<Claims>,
    /// With statistics: whose the places of refused keys are.
    places: Option<RefusedPlaces>,
    /// A key that was refused found no place.
    is_short: bool,
}

/// What a channel's deliveries may say.
#[derive(Clone, Copy, Default, Debug)]
struct Claims {
    /// The epoch in which they count; 0 before it was first armed.
    epoch: u16,
    /// The channel was disarmed, and what it had dropped until then is not told yet.
    is_last_due: bool,
}

impl Claims {
    fn next_epoch(&mut self) -> u16 {
        self.epoch = match self.epoch {
            layout::EPOCH_MAX => 1,
            epoch => epoch + 1,
        };
        self.is_last_due = false;
        self.epoch
    }
}

impl LoadedFilter {
    /// Makes maps and program, and loads them. All channels are disarmed.
    ///
    /// # Errors
    /// What is wrong with the specification, or what the system lacks.
    pub fn load(spec: FilterSpec) -> Result<LoadedFilter, FilterError> {
        LoadedFilter::load_as(spec, None)
    }

    /// The same for one interface, where the program runs in the driver and asks the card when it received
    /// each packet: for [`FilterSpec::wire_time`].
    ///
    /// # Errors
    /// As [`LoadedFilter::load`]; a driver that does not let itself be asked.
    pub fn load_for(spec: FilterSpec, interface: &Interface) -> Result<LoadedFilter, FilterError> {
        LoadedFilter::load_as(spec, Some(interface))
    }

    fn load_as(spec: FilterSpec, interface: Option<&Interface>) -> Result<LoadedFilter, FilterError> {
        let program = spec.program()?;
        let sizes = Sizes::of(&spec);
        let (first_state, first_sets) = spec.initial();
        let state = SharedMap::create("tw_state", first_state.len() as u32)?;
        let sets = SharedMap::create("tw_sets", first_sets.len() as u32)?;
        let sockets = SocketMap::create("tw_sockets", spec.queues)?;
        let orders = match sizes.orders {
            true => {
                let key = layout::ORDER_KEY as u32;
                Some(HashMap::create(
                    "tw_orders",
                    key,
                    spec.order_value(),
                    spec.orders_max,
                )?)
            }
            false => None,
        };
        let refused = match sizes.keys {
            true => Some(SharedMap::create("tw_refused", sizes.refused_size() as u32)?),
            false => None,
        };
        if let Some(refused) = &refused {
            refused.fill(&spec.initial_refused())?;
        }
        let guard = match spec.guard {
            true => Some(Arc::new(SharedMap::create("tw_guard", guard::VALUE as u32)?)),
            false => None,
        };
        let trigger = match spec.trigger {
            true => Some(SharedMap::create("tw_trigger", trigger::VALUE as u32)?),
            false => None,
        };
        let places = (sizes.keys && spec.statistics).then(|| RefusedPlaces::new(sizes.sets));
        let dropped = match spec.statistics {
            true => Some(SharedMap::create("tw_dropped", sizes.dropped_size() as u32)?),
            false => None,
        };
        state.fill(&first_state)?;
        sets.fill(&first_sets)?;
        let number = |map: MapId| match map {
            layout::STATE => state.number(),
            layout::SETS => sets.number(),
            layout::SOCKETS => sockets.number(),
            guard::GUARD => guard.as_ref().map_or(-1, |map| map.number()),
            layout::REFUSED => refused.as_ref().map_or(-1, SharedMap::number),
            layout::DROPPED => dropped.as_ref().map_or(-1, SharedMap::number),
            trigger::TRIGGER => trigger.as_ref().map_or(-1, SharedMap::number),
            _ => orders.as_ref().map_or(-1, HashMap::number),
        };
        let mut missing = None;
        let code = program.link_with(number, |function| {
            let number = kernel_function(function.name());
            if number.is_none() {
                missing = Some(function.name());
            }
            number.unwrap_or(0)
        });
        if let Some(name) = missing {
            return Err(FilterError::NoFunction(name));
        }
        let program = match interface {
            Some(interface) => Program::load_for(interface.index(), "tw_filter", &code)?,
            None => Program::load("tw_filter", &code)?,
        };
        Ok(LoadedFilter {
            claims: vec![Claims::default(); spec.channels.len()],
            spec,
            sizes,
            state,
            sets,
            sockets,
            orders,
            refused,
            guard,
            trigger,
            dropped,
            places,
            is_short: false,
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

    /// How many IP packets were left to the kernel though a group's datagram may be in them: fragments, IP
    /// options, more than a frame has room for.
    #[inline]
    pub fn aside(&self) -> u64 {
        self.state.words()[self.sizes.aside() / 8].load(Ordering::Relaxed)
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

    /// Sets or clears all bits of a set, see [`LoadedFilter::want`]; bit 0, the whole feed, stays set.
    ///
    /// # Panics
    /// Beyond the sets.
    pub fn want_all(&mut self, set: u16, wanted: bool) {
        assert!(usize::from(set) < self.sizes.sets, "there is no set {set}");
        let at = (self.sizes.sets_at() + usize::from(set) * layout::SET_SIZE) / 8;
        for word in &self.sets.words()[at..at + layout::BITS / 64] {
            // `arm` comes behind it, whose fence has the program see all of them.
            word.store(if wanted { u64::MAX } else { 0 }, Ordering::Relaxed);
        }
        self.want(set, 0, true);
    }

    /// Nobody wants the instrument that messages name by this key ([`Framing::is_keyed`]): packets about it
    /// and others of its kind may be dropped. A bucket has room for two keys; of a third one, which is rare,
    /// packets are delivered. With statistics the room of a key stays its own, as what is counted there is.
    /// May be called while channels are armed. Nothing happens where there are no keys.
    ///
    /// # Panics
    /// Beyond the sets.
    pub fn refuse(&mut self, set: u16, key: u64) {
        let bucket = layout::refused_bucket(key);
        let Some(words) = self.bucket(set, bucket) else {
            return;
        };
        let have = [&words[0], &words[1]].map(|word| word.load(Ordering::SeqCst));
        let at = match &mut self.places {
            Some(places) => places.take(set.into(), key),
            None => layout::refused_place(bucket, have, key),
        };
        match at.zip(self.bucket(set, bucket)) {
            Some((at, words)) => words[at].store(key, Ordering::SeqCst),
            None => self.is_short |= !have.contains(&key),
        }
    }

    /// Whether a key is refused in a set: of those for which there was no room, `false`.
    ///
    /// # Panics
    /// Beyond the sets.
    pub fn refuses(&self, set: u16, key: u64) -> bool {
        let words = self.bucket(set, layout::refused_bucket(key));
        words.is_some_and(|words| words.iter().any(|word| word.load(Ordering::SeqCst) == key))
    }

    /// No key of a set is refused any more. As for [`LoadedFilter::want`]: who must miss nothing disarms
    /// first.
    ///
    /// # Panics
    /// Beyond the sets.
    pub fn refuse_none(&mut self, set: u16) {
        for bucket in 0..layout::REFUSED_BUCKETS {
            for word in self.bucket(set, bucket).unwrap_or_default() {
                // As in `want_all`: each of these many stores would be a bus lock of its own.
                word.store(layout::refused_empty(bucket), Ordering::Relaxed);
            }
        }
    }

    /// The words of a bucket. Panics beyond the sets.
    fn bucket(&self, set: u16, bucket: usize) -> Option<&[AtomicU64]> {
        assert!(usize::from(set) < self.sizes.sets, "there is no set {set}");
        let at = 2 * (usize::from(set) * layout::REFUSED_BUCKETS + bucket);
        self.refused.as_ref().map(|map| &map.words()[at..at + 2])
    }

    /// Follows an order that was added where the program did not see it: in a snapshot, in a retransmission.
    /// A system call.
    ///
    /// # Errors
    /// [`OrdersFull`].
    pub fn follow(&mut self, set: u16, order: u64) -> Result<(), OrdersFull> {
        let Some(orders) = &self.orders else { return Ok(()) };
        let key = order_key(set, order);
        // With statistics the value counts messages that the program has seen of it: none yet.
        let value = [u8::from(!self.spec.statistics), 0, 0, 0, 0, 0, 0, 0];
        let value = &value[..self.spec.order_value() as usize];
        // What was counted of it already stays.
        orders.insert_new(&key, value).map_err(|_| OrdersFull)?;
        let bit = layout::order_bit(order);
        self.sets.words()[bit / 64].fetch_or(1 << (bit % 64), Ordering::SeqCst);
        Ok(())
    }

    /// Follows no order of a set any more: before those that rest are followed anew, where the table has
    /// filled up with orders that have gone unseen. System calls, two for each order of the table. Channels
    /// of the set must be disarmed.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn follow_none(&mut self, set: u16) -> std::io::Result<usize> {
        match &self.orders {
            Some(orders) => orders.remove_each(|key| key[8..] == u64::from(set).to_ne_bytes()),
            None => Ok(0),
        }
    }

    /// Whether an order of a channel found no room since it was armed: those that rest are to be followed
    /// anew before it is armed again.
    pub fn is_full(&self, channel: u16) -> bool {
        self.word(channel, layout::HOLD).load(Ordering::SeqCst) >> 32 != 0
    }

    /// Delivers everything from now on. A packet that the program is in the middle of cannot be dropped any
    /// more. If the channel was armed, the first delivery after it says before which number everything was
    /// seen in sequence, or [`LoadedFilter::last_seen`] does.
    pub fn disarm(&mut self, channel: u16) {
        let word = self.word(channel, layout::WORD);
        let word = word.fetch_and(!layout::ARMED, Ordering::SeqCst);
        self.claims[usize::from(channel)].is_last_due |= word & layout::ARMED != 0;
    }

    /// Of a channel that was disarmed: the number before which everything was seen in sequence until then, if
    /// no delivery has said so since. For a reader that has taken every delivery made until then; it counts
    /// as said from here on.
    pub fn last_seen(&mut self, channel: u16) -> Option<u64> {
        let next = self.word(channel, layout::WORD).load(Ordering::SeqCst) & layout::NEXT_MASK;
        let claims = &mut self.claims[usize::from(channel)];
        std::mem::take(&mut claims.is_last_due).then_some(next)
    }

    /// Whether what a channel had dropped until it was disarmed is to be said still: it has to be before the
    /// channel is armed again, as what is not said by then is missing.
    pub fn is_last_due(&self, channel: u16) -> bool {
        self.claims[usize::from(channel)].is_last_due
    }

    /// Disarms, and no delivery that was made before says anything of what was seen: for a channel that has
    /// lost some, or of which something else is wanted from now on. What was dropped and not told yet is
    /// missing then, and asked for.
    pub fn forget(&mut self, channel: u16) {
        self.disarm(channel);
        self.claims[usize::from(channel)].next_epoch();
    }

    /// The number before which everything was seen in sequence, as a delivery says it before which none is
    /// missing; `None` if it does not count.
    #[inline]
    pub(crate) fn claim(&mut self, meta: &Meta) -> Option<u64> {
        let (epoch, next) = meta.claim()?;
        let claims = &mut self.claims[usize::from(meta.channel)];
        // A disarmed channel's word stands still, and may be of a session that is over: it counts once.
        let counts = epoch == claims.epoch && (meta.is_armed() || std::mem::take(&mut claims.is_last_due));
        counts.then_some(next)
    }

    /// Whether the program knows the orders of a delivery, where it follows orders. Elsewhere nothing of the
    /// channel's state is read, which the program writes on another core.
    #[inline]
    pub(crate) fn knows_orders(&self, meta: &Meta) -> bool {
        let channel = meta.channel;
        self.spec.channels[usize::from(channel)].framing.follows_orders()
            && meta.is_armed()
            && meta.claim().is_some_and(|(of, _)| of == self.epoch(channel))
            && self.is_armed(channel)
            && !self.holds(channel)
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
        let epoch = self.claims[usize::from(channel)].next_epoch();
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
        (word & layout::ARMED != 0 && made == deliveries).then_some(word & layout::NEXT_MASK)
    }

    /// The epoch in which a channel's claims count; 0 before it was first armed.
    pub fn epoch(&self, channel: u16) -> u16 {
        self.claims[usize::from(channel)].epoch
    }

    /// Whether a channel is armed.
    pub fn is_armed(&self, channel: u16) -> bool {
        self.word(channel, layout::WORD).load(Ordering::SeqCst) & layout::ARMED != 0
    }

    /// Whether the program has stopped dropping by itself: [`LoadedFilter::arm`] goes on.
    pub fn holds(&self, channel: u16) -> bool {
        self.word(channel, layout::HOLD).load(Ordering::SeqCst) as u32 != 0
    }

    /// How many messages of an instrument, by its bit, the program has dropped in packets that nobody wanted;
    /// `None` without [`FilterSpec::statistics`], and of framings whose messages do not name it.
    ///
    /// # Panics
    /// Beyond the channels or [`layout::BITS`].
    pub fn dropped(&self, channel: u16, bit: usize) -> Option<u64> {
        let spec = &self.spec.channels[usize::from(channel)];
        if !spec.framing.has_numbers() {
            return None;
        }
        assert!(bit < layout::BITS, "a set has no bit {bit}");
        let at = usize::from(spec.set) * layout::BITS + bit;
        Some(self.dropped.as_ref()?.words()[at].load(Ordering::Relaxed))
    }

    /// The same of an instrument that messages name by this key: messages, or entries of MDP 3.0, that name
    /// it. `None` without [`FilterSpec::statistics`], and of framings without keys; and of CQS and UQDF where
    /// a key that was refused found no place, as its messages may have been dropped for want of a bit.
    ///
    /// # Panics
    /// Beyond the channels.
    pub fn dropped_of_key(&self, channel: u16, key: u64) -> Option<u64> {
        let spec = &self.spec.channels[usize::from(channel)];
        if !spec.framing.is_keyed() {
            return None;
        }
        let (dropped, places) = (self.dropped.as_ref()?, self.places.as_ref()?);
        let Some(word) = places.find(spec.set.into(), key) else {
            // What has no place is delivered, and so was never dropped, but for want of a bit.
            let is_certain = !spec.framing.has_symbol_bits() || !self.is_short;
            return is_certain.then_some(0);
        };
        let place = layout::refused_count(layout::refused_bucket(key), word);
        let at = usize::from(spec.set) * layout::BITS + place;
        Some(dropped.words()[at].load(Ordering::Relaxed))
    }

    /// How many messages the program has seen of an order that it follows, with [`FilterSpec::statistics`];
    /// `None` if it does not follow it. A system call.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn order_messages(&self, set: u16, order: u64) -> std::io::Result<Option<u64>> {
        let (Some(orders), true) = (&self.orders, self.spec.statistics) else {
            return Ok(None);
        };
        let value = orders.get(&order_key(set, order))?;
        Ok(value
            .and_then(|value| value.first_chunk::<8>().copied())
            .map(u64::from_ne_bytes))
    }

    /// What was counted on a channel, over all CPUs.
    pub fn count(&self, channel: u16, what: Count) -> u64 {
        let cpus = 0..self.sizes.cpus;
        let at = |cpu| layout::COUNTERS + cpu * layout::COUNTERS_SIZE + what.offset();
        cpus.map(|cpu| self.word(channel, at(cpu)).load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

/// The key of [`layout::ORDERS`].
fn order_key(set: u16, order: u64) -> [u8; layout::ORDER_KEY] {
    let mut key = [0; layout::ORDER_KEY];
    key[..8].copy_from_slice(&order.to_ne_bytes());
    key[8..].copy_from_slice(&u64::from(set).to_ne_bytes());
    key
}
