//! What a filter is made from, and what is wrong with it.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::asm::{AsmError, MapId};
use crate::layout::{self, Sizes};
use crate::{guard, trigger, walk};

/// How a channel's packets are made up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Framing {
    /// Nasdaq TotalView-ITCH 5.0 over MoldUDP64. The session is its ten bytes; an instrument's bit is its
    /// stock locate.
    Itch,
    /// Cboe PITCH 2.41, a unit a channel. The session is the unit, in its first word; an instrument's key is
    /// [`layout::symbol_key`].
    Pitch,
    /// NYSE Integrated Feed (XDP on Pillar). An instrument's bit is its symbol index.
    Nyse,
    /// CME MDP 3.0 incremental feeds. An instrument's key is its security id.
    Mdp3,
    /// CQS of the CTA. What is wanted is said twice: a bit, [`layout::key_bit`] of [`layout::symbol_key`],
    /// and among those whose bit is set some symbols are refused.
    Cqs,
    /// UQDF of the UTP plan, over MoldUDP64. The session is as for ITCH, the rest as for CQS.
    Uqdf,
    /// NYSE OpenBook Ultra. An instrument's bit is its symbol index.
    OpenBook,
    /// Moscow Exchange ASTS. A bit stands for a template of FAST: what is in its messages only the decoder
    /// can tell.
    Moex,
    /// Whatever it is: every packet is delivered, none is looked into, and the channel is never armed.
    Any,
}

impl Framing {
    /// Those that are looked into: all but [`Framing::Any`].
    pub const ALL: [Framing; 8] = [
        Framing::Itch,
        Framing::Pitch,
        Framing::Nyse,
        Framing::Mdp3,
        Framing::Cqs,
        Framing::Uqdf,
        Framing::OpenBook,
        Framing::Moex,
    ];

    /// Whether messages name an instrument by a key and not by a small number. What is *not* wanted is told
    /// to the program then, key by key ([`layout::REFUSED`]): whoever is not known is delivered, so that
    /// nobody is taken for somebody else.
    pub const fn is_keyed(self) -> bool {
        matches!(
            self,
            Framing::Pitch | Framing::Mdp3 | Framing::Cqs | Framing::Uqdf
        )
    }

    /// Whether a bit says what is wanted, too, where messages name an instrument by a symbol: all bits are to
    /// be set unless everybody who is wanted is known by name.
    pub const fn has_symbol_bits(self) -> bool {
        matches!(self, Framing::Cqs | Framing::Uqdf)
    }

    /// Whether packets carry a MoldUDP64 session.
    pub const fn has_sessions(self) -> bool {
        matches!(self, Framing::Itch | Framing::Uqdf)
    }

    /// Whether packets say that numbers begin anew.
    pub const fn has_resets(self) -> bool {
        matches!(self, Framing::Nyse | Framing::Cqs | Framing::OpenBook)
    }

    /// Whether messages name their instrument by a small number.
    pub const fn has_numbers(self) -> bool {
        matches!(self, Framing::Itch | Framing::Nyse | Framing::OpenBook)
    }

    /// Whether what is dropped is counted by instrument, with [`FilterSpec::statistics`]: by the small number
    /// or by the key that messages name it by.
    pub const fn counts_instruments(self) -> bool {
        self.has_numbers() || self.is_keyed()
    }

    /// Whether orders of wanted instruments are followed by their numbers.
    pub const fn follows_orders(self) -> bool {
        matches!(self, Framing::Pitch)
    }

    /// The session as a channel is armed with, of a packet that has moved it on; `None` if the packet is too
    /// short to have one.
    pub fn session_of(self, payload: &[u8]) -> Option<[u64; 2]> {
        match self {
            Framing::Itch | Framing::Uqdf => {
                let (a, rest) = payload
                    .get(walk::itch::SESSION as usize..)?
                    .split_first_chunk::<8>()?;
                let b = rest.first_chunk::<2>()?;
                Some([u64::from_ne_bytes(*a), u16::from_ne_bytes(*b).into()])
            }
            Framing::Pitch => Some([u64::from(*payload.get(walk::pitch::UNIT as usize)?), 0]),
            _ => Some([0, 0]),
        }
    }

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Framing::Itch => "ITCH over MoldUDP64",
            Framing::Pitch => "PITCH",
            Framing::Nyse => "NYSE XDP",
            Framing::Mdp3 => "MDP 3.0",
            Framing::Cqs => "CQS",
            Framing::Uqdf => "UQDF over MoldUDP64",
            Framing::OpenBook => "OpenBook Ultra",
            Framing::Moex => "ASTS over FAST",
            Framing::Any => "any protocol",
        }
    }

    /// The tables of a set about message types: where the instrument is found, and the shortest size. See
    /// [`layout::TYPES`].
    pub fn tables(self) -> ([u8; 256], [u8; 256]) {
        match self {
            Framing::Itch | Framing::OpenBook | Framing::Moex | Framing::Any => ([0; 256], [0; 256]),
            Framing::Pitch => walk::pitch::tables(),
            Framing::Nyse => walk::nyse::tables(),
            Framing::Mdp3 => walk::mdp3::tables(),
            Framing::Cqs => walk::cqs::tables(),
            Framing::Uqdf => walk::uqdf::tables(),
        }
    }
}

/// A multicast group and port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Group {
    /// The group's address.
    pub address: [u8; 4],
    /// The UDP port.
    pub port: u16,
    /// The only sender that is heard (source-specific multicast); `None`: anybody. What others send goes to
    /// the kernel, whose sockets have the same rule.
    pub source: Option<[u8; 4]>,
}

impl Group {
    /// A group that anybody may send to.
    pub const fn new(address: [u8; 4], port: u16) -> Group {
        Group {
            address,
            port,
            source: None,
        }
    }

    /// Whether a packet may be of both.
    fn meets(&self, other: &Group) -> bool {
        let same = (self.address, self.port) == (other.address, other.port);
        same && (self.source.is_none() || other.source.is_none() || self.source == other.source)
    }
}

/// One stream of numbers, on one line or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelSpec {
    /// How its packets are made up.
    pub framing: Framing,
    /// Where they are sent: line A, line B.
    pub groups: Vec<Group>,
    /// Which set says what is wanted; channels of one framing whose instruments have the same numbers share
    /// one.
    pub set: u16,
}

/// What a filter is made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterSpec {
    /// The channels; a channel's number is its place.
    pub channels: Vec<ChannelSpec>,
    /// How many sets there are.
    pub sets: u16,
    /// For how many CPUs counters are kept apart: a power of two up to 128.
    pub cpus: u16,
    /// How many messages of a packet are looked at, 1 to 128; a packet with more is delivered. MDP 3.0:
    /// messages and entries together.
    pub messages_max: u16,
    /// How many orders of wanted instruments are followed. When full: the channel holds, and delivers
    /// everything.
    pub orders_max: u32,
    /// How many receive queues may have a socket.
    pub queues: u32,
    /// Whether TCP connections are guarded as well, see [`crate::guard`].
    pub guard: bool,
    /// Whether an order can be pre-armed, see [`crate::trigger`]: on ITCH and NYSE channels.
    pub trigger: bool,
    /// Whether the card is asked when it received what is delivered ([`layout::Meta::wire_ns`]). Such a
    /// program can be attached in the driver only, and to the one interface that it was loaded for.
    pub wire_time: bool,
    /// Whether more is counted: what was dropped of each instrument ([`Framing::counts_instruments`];
    /// [`layout::DROPPED`], a mebibyte a set), and the messages of each followed order (PITCH). Where
    /// messages have the instrument's number a dropped packet is walked twice then; where they have a key its
    /// place is noted on the way, by CPU: with more CPUs than [`FilterSpec::cpus`] two may mix up their
    /// notes.
    pub statistics: bool,
}

impl Default for FilterSpec {
    /// No channel, one set, counters for 16 CPUs, 64 messages, 2^18 orders, 64 queues, no guard, no
    /// pre-armed order, no question to the card, no statistics.
    fn default() -> FilterSpec {
        FilterSpec {
            channels: Vec::new(),
            sets: 1,
            cpus: 16,
            messages_max: 64,
            orders_max: 1 << 18,
            queues: 64,
            guard: false,
            trigger: false,
            wire_time: false,
            statistics: false,
        }
    }
}

/// Why no program can be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// There is no channel, or more than 256.
    Channels(usize),
    /// The channel has no group.
    NoGroup(usize),
    /// Two channels, or two lines, have this group.
    GroupTwice(Group),
    /// The channel names a set that is not there.
    NoSet(usize),
    /// Two channels of different framings share the set.
    SetShared(u16),
    /// A number is outside of its range; which one.
    OutOfRange(&'static str),
    /// The generator is at fault.
    Asm(AsmError),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Channels(count) => {
                write!(f, "a filter has 1 to {CHANNELS_MAX} channels, not {count}")
            }
            SpecError::NoGroup(channel) => write!(f, "channel {channel} has no multicast group"),
            SpecError::GroupTwice(Group { address, port, .. }) => {
                let [a, b, c, d] = address;
                write!(
                    f,
                    "the group {a}.{b}.{c}.{d}:{port} stands twice: a packet has one channel"
                )
            }
            SpecError::NoSet(channel) => {
                write!(
                    f,
                    "channel {channel} names a set of instruments that is not there"
                )
            }
            SpecError::SetShared(set) => write!(
                f,
                "set {set} is shared by channels of different protocols, whose instruments are numbered differently"
            ),
            SpecError::OutOfRange(what) => write!(f, "{what} is out of its range"),
            SpecError::Asm(error) => write!(f, "the generated program is wrong: {error}"),
        }
    }
}

impl core::error::Error for SpecError {}

impl From<AsmError> for SpecError {
    fn from(error: AsmError) -> SpecError {
        SpecError::Asm(error)
    }
}

/// The most channels of a filter.
pub const CHANNELS_MAX: usize = 256;
/// The most messages of a packet that are looked at.
pub const MESSAGES_MAX: u16 = 128;

/// What kind of kernel object a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapKind {
    /// An array with one value that a process can map into its memory.
    Value,
    /// A hash table.
    Hash,
    /// AF_XDP sockets by queue.
    Sockets,
}

/// A map to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapSpec {
    /// Its name in the program.
    pub id: MapId,
    /// Its kind.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Entries.
    pub entries: u32,
}

impl FilterSpec {
    /// Whether any channel follows orders.
    pub fn follows_orders(&self) -> bool {
        self.channels.iter().any(|c| c.framing.follows_orders())
    }

    /// Whether instruments of any channel are named by keys.
    pub fn has_keys(&self) -> bool {
        self.channels.iter().any(|c| c.framing.is_keyed())
    }

    /// Bytes of a value of [`layout::ORDERS`]: with statistics, how many messages named the order.
    pub const fn order_value(&self) -> u32 {
        if self.statistics { 8 } else { 1 }
    }

    /// The maps that the program uses.
    pub fn maps(&self) -> Vec<MapSpec> {
        let sizes = Sizes::of(self);
        let value = |id, bytes: usize| MapSpec {
            id,
            kind: MapKind::Value,
            key: 4,
            value: bytes as u32,
            entries: 1,
        };
        let mut maps = vec![
            value(layout::STATE, sizes.state()),
            value(layout::SETS, sizes.sets_size()),
            MapSpec {
                id: layout::SOCKETS,
                kind: MapKind::Sockets,
                key: 4,
                value: 4,
                entries: self.queues,
            },
        ];
        if self.guard {
            maps.push(value(guard::GUARD, guard::VALUE));
        }
        if self.trigger {
            maps.push(value(trigger::TRIGGER, trigger::VALUE));
        }
        if sizes.orders {
            maps.push(MapSpec {
                id: layout::ORDERS,
                kind: MapKind::Hash,
                key: layout::ORDER_KEY as u32,
                value: self.order_value(),
                entries: self.orders_max,
            });
        }
        if self.statistics {
            maps.push(value(layout::DROPPED, sizes.dropped_size()));
        }
        if sizes.keys {
            maps.push(value(layout::REFUSED, sizes.refused_size()));
        }
        maps
    }

    /// The first bytes of [`layout::REFUSED`]: no key is refused.
    pub fn initial_refused(&self) -> Vec<u8> {
        let sets = 0..Sizes::of(self).sets;
        let words = sets.flat_map(|_| 0..2 * layout::REFUSED_BUCKETS);
        words
            .flat_map(|word| layout::refused_empty(word / 2).to_ne_bytes())
            .collect()
    }

    /// The first bytes of [`layout::STATE`] and [`layout::SETS`]: numbers, sets and tables; all channels
    /// disarmed, nothing wanted but what is the whole feed's (bit 0).
    pub fn initial(&self) -> (Vec<u8>, Vec<u8>) {
        let sizes = Sizes::of(self);
        let (mut state, mut sets) = (vec![0; sizes.state()], vec![0; sizes.sets_size()]);
        for (number, spec) in self.channels.iter().enumerate() {
            let at = number * sizes.channel();
            let mut put = |offset: usize, value: u32| {
                state[at + offset..at + offset + 4].copy_from_slice(&value.to_ne_bytes());
            };
            put(layout::NUMBER, number as u32);
            put(layout::SET, spec.set.into());
            let set = sizes.sets_at() + usize::from(spec.set) * layout::SET_SIZE;
            let (types, least) = spec.framing.tables();
            if spec.framing.has_numbers() {
                sets[set] |= 1;
            }
            sets[set + layout::TYPES..set + layout::SIZES].copy_from_slice(&types);
            sets[set + layout::SIZES..set + layout::SET_SIZE].copy_from_slice(&least);
        }
        (state, sets)
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.channels.is_empty() || self.channels.len() > CHANNELS_MAX {
            return Err(SpecError::Channels(self.channels.len()));
        }
        if !self.cpus.is_power_of_two() || self.cpus > 128 {
            return Err(SpecError::OutOfRange(
                "the number of CPUs (a power of two up to 128)",
            ));
        }
        if self.messages_max == 0 || self.messages_max > MESSAGES_MAX {
            return Err(SpecError::OutOfRange(
                "the number of messages looked at (1 to 128)",
            ));
        }
        if self.sets == 0 || self.sets > CHANNELS_MAX as u16 {
            return Err(SpecError::OutOfRange("the number of sets (1 to 256)"));
        }
        if self.queues == 0 || self.orders_max == 0 {
            return Err(SpecError::OutOfRange(
                "the number of queues, or of orders (at least 1)",
            ));
        }
        let mut groups: Vec<Group> = Vec::new();
        for (number, channel) in self.channels.iter().enumerate() {
            if channel.groups.is_empty() {
                return Err(SpecError::NoGroup(number));
            }
            if channel.set >= self.sets {
                return Err(SpecError::NoSet(number));
            }
            let shares = |other: &&ChannelSpec| other.set == channel.set && other.framing != channel.framing;
            if self.channels.iter().find(shares).is_some() {
                return Err(SpecError::SetShared(channel.set));
            }
            groups.extend(&channel.groups);
        }
        // Those of one address and port stand side by side, and without a source first.
        groups.sort_unstable();
        match groups.windows(2).find(|pair| pair[0].meets(&pair[1])) {
            Some(pair) => Err(SpecError::GroupTwice(pair[0])),
            None => Ok(()),
        }
    }
}
