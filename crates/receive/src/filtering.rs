//! What the owner of a channel has to do for a filter at the hook: say what is wanted, arm it while the
//! channel is whole, disarm it when it is not.
//!
//! ```text
//!              gap, session, joins              whole, nobody joins: what is wanted is said anew
//!  armed ──────────────────────────► disarmed ──────────────────────────────────────────────────► armed
//!    drops what nobody wants           delivers everything
//! ```
//! Where messages name an instrument by a number of its own, a bit says whether it is wanted. Where they name
//! it by a *key*, the keys of those are said that are known and not wanted; whoever is not known is
//! delivered. Where they name orders without their instrument (PITCH), the program follows the orders of
//! wanted instruments; those that came to the channel another way, or while the channel was open, are told
//! to it before it is armed.

use tickwire_feed::{Channel, FeedState, Rule};
use tickwire_kernel::filter::Framing;
use tickwire_kernel::layout;
use tickwire_kernelpath::LoadedFilter;
use tickwire_market::{InstrumentId, OrderId, SeqNo};
use tickwire_venues::protocol::Protocol;

/// How many orders are noted between two looks before those that rest are asked for instead.
const ORDERS_NOTED_MAX: usize = 1 << 14;
/// Looks between two attempts to follow all orders that rest: each takes a system call an order.
const LOOKS_BETWEEN_REBUILDS: u32 = 50;

/// There is no room for an order in the filter's table: the channel stays open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// What a filter does with one channel.
pub trait Gate {
    /// Whether it is armed, though it may hold by itself.
    fn is_armed(&mut self) -> bool;
    /// Whether it drops anything: armed, and not holding by itself.
    fn drops(&mut self) -> bool;
    /// Delivers everything from now on.
    fn disarm(&mut self);
    /// Sets or clears the bit of an instrument.
    fn want(&mut self, bit: usize, wanted: bool);
    /// Sets or clears all bits.
    fn want_all(&mut self, wanted: bool);
    /// Nobody wants the instrument of this key. May be called while it is armed.
    fn refuse(&mut self, key: u64);
    /// No key is refused any more.
    fn refuse_none(&mut self);
    /// Follows an order.
    ///
    /// # Errors
    /// There is no room for it.
    fn follow(&mut self, order: OrderId) -> Result<(), NoRoom>;
    /// Follows no order any more.
    fn follow_none(&mut self);
    /// Whether an order found no room since it was armed.
    fn is_full(&mut self) -> bool;
    /// Drops from now on what nobody wants: the session, and the next number.
    fn arm(&mut self, session: [u64; 2], next: u64);
}

/// A channel of a filter that the kernel has.
#[derive(Debug)]
pub struct FilterGate<'f> {
    filter: &'f mut LoadedFilter,
    channel: u16,
}

impl<'f> FilterGate<'f> {
    /// The channel of a number.
    pub fn new(filter: &'f mut LoadedFilter, channel: u16) -> FilterGate<'f> {
        FilterGate { filter, channel }
    }

    fn set(&self) -> u16 {
        self.filter.spec().channels[usize::from(self.channel)].set
    }
}

impl Gate for FilterGate<'_> {
    fn is_armed(&mut self) -> bool {
        self.filter.is_armed(self.channel)
    }

    fn drops(&mut self) -> bool {
        self.filter.is_armed(self.channel) && !self.filter.holds(self.channel)
    }

    fn disarm(&mut self) {
        self.filter.disarm(self.channel);
    }

    fn want(&mut self, bit: usize, wanted: bool) {
        self.filter.want(self.set(), bit, wanted);
    }

    fn want_all(&mut self, wanted: bool) {
        self.filter.want_all(self.set(), wanted);
    }

    fn refuse(&mut self, key: u64) {
        self.filter.refuse(self.set(), key);
    }

    fn refuse_none(&mut self) {
        self.filter.refuse_none(self.set());
    }

    fn follow(&mut self, order: OrderId) -> Result<(), NoRoom> {
        self.filter.follow(self.set(), order.0).map_err(|_| NoRoom)
    }

    fn follow_none(&mut self) {
        // What cannot be removed stays, and takes room.
        let _ = self.filter.follow_none(self.set());
    }

    fn is_full(&mut self) -> bool {
        self.filter.is_full(self.channel)
    }

    fn arm(&mut self, session: [u64; 2], next: u64) {
        self.filter.arm(self.channel, session, next);
    }
}

/// What the program can know of a protocol's packets: the protocols that are filtered, all others are
/// delivered whole.
pub fn framing_of(protocol: Protocol) -> Framing {
    match protocol {
        Protocol::Itch50 => Framing::Itch,
        Protocol::Xdp => Framing::Nyse,
        Protocol::Mdp3 => Framing::Mdp3,
        Protocol::Pitch => Framing::Pitch,
        Protocol::Cqs => Framing::Cqs,
        Protocol::Uqdf => Framing::Uqdf,
        Protocol::Openbook => Framing::OpenBook,
        Protocol::Moex => Framing::Moex,
        _ => Framing::Any,
    }
}

/// What messages name an instrument by, for a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterName {
    /// A small number: a bit of the set.
    Bit(usize),
    /// A symbol or a security id.
    Key(u64),
}

/// The owner's part for one channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filtering {
    framing: Framing,
    /// Of the last packet that moved the channel on, where packets have one.
    session: Option<[u64; 2]>,
    /// The number from which on it was armed last.
    armed_at: u64,
    /// Of what the program was told not to deliver when it was armed last.
    unwanted: u64,
    /// What the channel said of who is known, when that was looked through last.
    changes: u64,
    /// Orders may rest that the program does not follow, and nobody knows which.
    is_short: bool,
    /// Looks until those that rest may be told anew.
    patience: u32,
    /// The channel's numbers have begun anew since it was armed: what the filter says of numbers is of those
    /// before.
    is_void: bool,
}

impl Filtering {
    /// For a channel whose packets are made up so. Bits of instruments that nobody knows are to be set at the
    /// beginning: [`Filtering::begin`].
    pub fn new(framing: Framing) -> Filtering {
        Filtering {
            framing,
            // Where packets have no session, there is one.
            session: framing.session_of(&[]),
            armed_at: 0,
            unwanted: 0,
            changes: 0,
            // What rested before the program was there it has not seen.
            is_short: framing.follows_orders(),
            patience: 0,
            is_void: false,
        }
    }

    /// Everything is wanted until the channel knows who is who.
    pub fn begin(&self, gate: &mut dyn Gate) {
        gate.disarm();
        gate.want_all(true);
        if self.framing.is_keyed() {
            gate.refuse_none();
        }
    }

    /// The channel gets a filter: what it has to note for that.
    pub fn prepare(&self, channel: &mut dyn Channel) {
        if self.framing.follows_orders() {
            channel.prefiltered_mut().note_orders(ORDERS_NOTED_MAX);
        }
    }

    /// A live packet is about to be given to the channel: what [`Filtering::note`] wants to know.
    #[inline]
    pub fn noted<C: Channel>(&self, channel: &mut C) -> usize {
        match self.framing.follows_orders() {
            true => channel
                .prefiltered_mut()
                .noted_orders()
                .map_or(0, |noted| noted.len()),
            false => 0,
        }
    }

    /// What the filter says that it has seen, as far as it is about the channel's numbers of now.
    #[inline]
    pub fn claim(&self, seen_up_to: Option<u64>) -> Option<u64> {
        seen_up_to.filter(|_| !self.is_void)
    }

    /// A live packet was given to the channel, whose next number was `before`; so many orders were noted
    /// before. `is_followed`: the program drops what nobody wants, and did so when it saw the packet; it
    /// knows the orders of the packet then.
    #[inline]
    pub fn note<C: Channel>(
        &mut self,
        channel: &mut C,
        bytes: &[u8],
        before: SeqNo,
        (noted, is_followed): (usize, bool),
    ) {
        let next = channel.next_seq();
        if next != before {
            self.session = self.framing.session_of(bytes).or(self.session);
            self.is_void |= next < before;
        }
        if is_followed
            && self.framing.follows_orders()
            && let Some(orders) = channel.prefiltered_mut().noted_orders()
        {
            orders.truncate(noted);
        }
    }

    /// The session and the number of the channel's next message, while nothing is missing: what a pre-armed
    /// order is armed from.
    pub fn position(&self, channel: &dyn Channel) -> Option<([u64; 2], u64)> {
        let is_whole = channel.state() == FeedState::Live;
        Some((self.session.filter(|_| is_whole)?, channel.next_seq().0))
    }

    /// Disarms if something is missing; after every packet. Where orders are followed, a book that is made
    /// right anew gets orders that the program has not seen: it is disarmed at once, too.
    #[inline]
    pub fn guard<C: Channel>(&self, channel: &C, gate: &mut dyn Gate) {
        let is_whole = channel.state() == FeedState::Live
            && !self.is_void
            && !(self.framing.follows_orders() && channel.has_joins());
        if !is_whole && gate.drops() {
            gate.disarm();
        }
    }

    /// Whether it is armed and has to be opened: something is missing, it holds, or what it was told does not
    /// hold any more. In the slow part of a loop; whoever owns it opens it then: disarms it, gives the
    /// channel all deliveries until then, and tells it what was seen. Without that what was dropped last
    /// would be missing as soon as it is armed again.
    pub fn is_to_open(&mut self, channel: &dyn Channel, gate: &mut dyn Gate) -> bool {
        gate.is_armed() && (!gate.drops() || !is_whole(channel) || self.is_stale(channel))
    }

    /// Arms where it can be: in the slow part of a loop, what [`Filtering::is_to_open`] said having been
    /// done. All deliveries since it was opened have been given to the channel, or will be.
    pub fn settle(&mut self, channel: &mut dyn Channel, gate: &mut dyn Gate) {
        self.patience = self.patience.saturating_sub(1);
        let can_arm = is_whole(channel) && !gate.is_armed();
        let next = channel.next_seq().0;
        let Some(session) = self.session.filter(|_| can_arm) else {
            return;
        };
        let was_full = gate.is_full();
        self.tell(channel, gate);
        if self.framing.follows_orders() && !self.follow(channel, gate, was_full) {
            return;
        }
        (self.armed_at, self.is_void) = (next, false);
        gate.arm(session, next);
    }

    /// Whether what the program was told does not hold any more: numbers that have begun anew would all be
    /// late ones; somebody may have become known.
    fn is_stale(&mut self, channel: &dyn Channel) -> bool {
        if self.is_void || channel.next_seq().0 < self.armed_at {
            return true;
        }
        let changes = channel.changes();
        let is_looked_through = std::mem::replace(&mut self.changes, changes) == changes;
        !is_looked_through && self.unwanted != self.each_unwanted(channel, &mut |_| {})
    }

    /// What the filter knows an instrument by; `None` where it has no name there.
    pub fn name_of(&self, channel: &dyn Channel, id: InstrumentId) -> Option<FilterName> {
        match self.framing {
            Framing::Mdp3 => channel.prefiltered().venue_number(id).map(FilterName::Key),
            framing if framing.is_keyed() => {
                let symbol = channel.instrument(id)?.symbol;
                layout::symbol_key(symbol.as_bytes()).map(FilterName::Key)
            }
            framing if framing.has_numbers() => {
                let bit = usize::try_from(id.0).ok()?;
                (bit < layout::BITS).then_some(FilterName::Bit(bit))
            }
            _ => None,
        }
    }

    /// What the filter need not deliver: instruments that are known and that nobody wants, or templates;
    /// gives a sum that others do not have.
    fn each_unwanted(&self, channel: &dyn Channel, each: &mut dyn FnMut(FilterName)) -> u64 {
        let mut sum = 0_u64;
        let mut one = |name: FilterName| {
            let number = match name {
                FilterName::Bit(bit) => bit as u64,
                FilterName::Key(key) => key,
            };
            // A number 0 would add nothing to the sum.
            let number = number.wrapping_add(1);
            let mixed = (number ^ number >> 29).wrapping_mul(layout::HASH);
            sum = sum.wrapping_add(mixed ^ mixed >> 32);
            each(name);
        };
        match self.framing {
            Framing::Moex => each_unwanted_template(channel, &mut one),
            _ => channel.instruments(&mut |instrument| {
                // The feed as a whole is always wanted.
                if instrument.id != InstrumentId::WHOLE_FEED
                    && !channel.wants(instrument.id)
                    && let Some(name) = self.name_of(channel, instrument.id)
                {
                    one(name);
                }
            }),
        }
        sum
    }

    /// Tells the program who is wanted.
    fn tell(&mut self, channel: &dyn Channel, gate: &mut dyn Gate) {
        match self.framing.is_keyed() {
            true => gate.refuse_none(),
            false => gate.want_all(true),
        }
        if self.framing.has_symbol_bits() {
            self.want_named(channel, gate);
        }
        self.unwanted = self.each_unwanted(channel, &mut |name| match name {
            FilterName::Bit(bit) => gate.want(bit, false),
            FilterName::Key(key) => gate.refuse(key),
        });
        self.changes = channel.changes();
    }

    /// Says by bits who is wanted: everybody, or those who are wanted by name, if nobody else can be.
    fn want_named(&self, channel: &dyn Channel, gate: &mut dyn Gate) {
        let mut is_open = false;
        channel.subscriptions(&mut |rule: &Rule| is_open |= rule.wanted && rule.pattern.literal().is_none());
        gate.want_all(is_open);
        channel.subscriptions(&mut |rule: &Rule| {
            // What has no key is delivered.
            let symbol = rule.pattern.literal().filter(|_| rule.wanted);
            let key = symbol.and_then(|symbol| layout::symbol_key(symbol.as_bytes()));
            key.into_iter()
                .for_each(|key| gate.want(layout::key_bit(key), true));
        });
    }

    /// Tells the program of orders that it may not have seen; `false`: it may not be armed.
    fn follow(&mut self, channel: &mut dyn Channel, gate: &mut dyn Gate, was_full: bool) -> bool {
        let mut is_short = self.is_short || was_full;
        if let Some(noted) = channel.prefiltered_mut().noted_orders() {
            is_short |= noted.take_short();
            match is_short {
                // Those that still rest are told below.
                true => noted.truncate(0),
                false => is_short = noted.drain().any(|order| gate.follow(order).is_err()),
            }
        }
        self.is_short = is_short;
        if !is_short {
            return true;
        }
        if self.patience > 0 {
            return false;
        }
        self.patience = LOOKS_BETWEEN_REBUILDS;
        gate.follow_none();
        let mut has_room = true;
        channel
            .prefiltered()
            .resting(&mut |order| has_room = has_room && gate.follow(order).is_ok());
        self.is_short = !has_room;
        has_room
    }
}

/// Nothing is missing, and no book is being made right.
fn is_whole(channel: &dyn Channel) -> bool {
    channel.state() == FeedState::Live && !channel.has_joins()
}

/// Of a feed whose messages name no instrument at a fixed place: what is about any of them, while they are
/// known and nobody wants one.
fn each_unwanted_template(channel: &dyn Channel, each: &mut dyn FnMut(FilterName)) {
    let (mut is_known, mut is_wanted) = (false, false);
    channel.instruments(&mut |instrument| {
        is_known = true;
        is_wanted |= channel.wants(instrument.id);
    });
    channel.subscriptions(&mut |rule: &Rule| is_wanted |= rule.wanted);
    if is_known && !is_wanted {
        channel.prefiltered().templates_of_instruments(&mut |template| {
            // Templates beyond the bits are delivered.
            if (template as usize) < layout::BITS {
                each(FilterName::Bit(template as usize));
            }
        });
    }
}
