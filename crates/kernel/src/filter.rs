//! The filter: one program for all channels of an interface, made from the list of them.
//!
//! For every packet: is it plain UDP, tagged or not, to one of our groups? Then header, *arbitration* between
//! the lines, *continuity*, and a walk over the messages. What comes out is one of three: the kernel's stack
//! (not ours), dropped (a duplicate, or in sequence with nothing wanted in it), or delivered to an AF_XDP
//! socket with [`layout::Meta`] in front.
//!
//! **Nothing wanted is lost.** A packet is dropped as unwanted only if its first number is the channel's next
//! one, every message of it was looked at, and the exchange that moves the next number on succeeded. Whatever
//! is in doubt is delivered: a gap, a late packet, a race with another CPU, another session, more messages
//! than are looked at, sizes that do not fit, unknown types, heartbeats, a full table of orders.
//!
//! **Continuity without seeing the packets.** Metadata carry the channel's [`layout::WORD`] as it was
//! *before* the packet. All below its number was seen in sequence or has been delivered before: who reads
//! deliveries in order may take what lies between the highest number he knows and that one as seen, with
//! nothing wanted in it. This holds over several CPUs, because a delivered packet takes its place in the
//! order of deliveries between reading the word and moving it on, and a dropped one was walked after the word
//! was read.
//!
//! **Arming.** A channel begins disarmed and delivers everything. Its owner says what is wanted
//! ([`layout::SETS`]), the session, and then the word: a new epoch and the next number. Disarming is one
//! store of 0.
//!
//! **Orders.** PITCH names the symbol of an order only when it is added. Orders of wanted symbols are entered
//! by the program itself, disarmed or not, and leave with their deletion; those that come another way (a
//! snapshot, a retransmission) are entered by the owner before he arms. After a gap, an unreadable packet or
//! a full table the channel *holds*: everything is delivered until the owner arms it again.

use crate::asm::{AsmError, Assembler, Atomic, Cond, Label, MapId, Op, Program, Reg, Size, action, helper};
use crate::guard;
use crate::layout::{self, Count, Sizes};
use crate::trigger;
use crate::walk;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// How a channel's packets are made up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Framing {
    /// Nasdaq TotalView-ITCH 5.0 over MoldUDP64. The session is its ten bytes; an instrument's bit is its
    /// stock locate.
    Itch,
    /// Cboe PITCH 2.41, a unit a channel. The session is the unit, in its first word; an instrument's bit is
    /// [`layout::key_bit`] of [`layout::symbol_key`].
    Pitch,
    /// NYSE Integrated Feed (XDP on Pillar). An instrument's bit is its symbol index.
    Nyse,
    /// CME MDP 3.0 incremental feeds. An instrument's bit is [`layout::key_bit`] of its security id.
    Mdp3,
    /// Whatever it is: every packet is delivered, none is looked into, and the channel is never armed.
    Any,
}

impl Framing {
    /// Those that are looked into: all but [`Framing::Any`].
    pub const ALL: [Framing; 4] = [Framing::Itch, Framing::Pitch, Framing::Nyse, Framing::Mdp3];

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Framing::Itch => "ITCH over MoldUDP64",
            Framing::Pitch => "PITCH",
            Framing::Nyse => "NYSE XDP",
            Framing::Mdp3 => "MDP 3.0",
            Framing::Any => "any protocol",
        }
    }

    /// The tables of a set about message types: where the instrument is found, and the shortest size. See
    /// [`layout::TYPES`].
    pub fn tables(self) -> ([u8; 256], [u8; 256]) {
        match self {
            Framing::Itch | Framing::Any => ([0; 256], [0; 256]),
            Framing::Pitch => walk::pitch::tables(),
            Framing::Nyse => walk::nyse::tables(),
            Framing::Mdp3 => walk::mdp3::tables(),
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
}

impl Default for FilterSpec {
    /// No channel, one set, counters for 16 CPUs, 64 messages, 2^18 orders, 64 queues, no guard, no
    /// pre-armed order.
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
        self.channels.iter().any(|c| c.framing == Framing::Pitch)
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
                value: 1,
                entries: self.orders_max,
            });
        }
        maps
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
            if matches!(spec.framing, Framing::Itch | Framing::Nyse) {
                sets[set] |= 1;
            }
            sets[set + layout::TYPES..set + layout::SIZES].copy_from_slice(&types);
            sets[set + layout::SIZES..set + layout::SET_SIZE].copy_from_slice(&least);
        }
        (state, sets)
    }

    fn check(&self) -> Result<(), SpecError> {
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

    /// Makes the program.
    ///
    /// # Errors
    /// What is wrong with the specification.
    pub fn program(&self) -> Result<Program, SpecError> {
        self.check()?;
        let mut g = Generator::new(self);
        let labels = g.entry();
        for (framing, label) in labels {
            g.a.bind(label);
            g.framing(framing);
        }
        if self.guard {
            g.guard();
        }
        g.exits();
        Ok(g.a.finish()?)
    }
}

/// Places on the stack, from R10.
pub(crate) mod stack {
    pub(crate) const CONTEXT: i16 = -8;
    pub(crate) const SEQ: i16 = -16;
    pub(crate) const COUNT: i16 = -24;
    pub(crate) const END: i16 = -32;
    pub(crate) const WORD: i16 = -40;
    /// Bytes of the payload, or of the block in it.
    pub(crate) const LIMIT: i16 = -48;
    /// Not 0: the packet is delivered whatever is in it.
    pub(crate) const WANT: i16 = -56;
    /// Address of this CPU's counters.
    pub(crate) const COUNTERS: i16 = -64;
    pub(crate) const DELIVERY: i16 = -72;
    /// Key of the table of orders: order, set.
    pub(crate) const KEY: i16 = -88;
    pub(crate) const SET: i16 = -80;
    /// A walk's own: how many messages, where it is, the message's place, what kind it is, in sequence.
    pub(crate) const INDEX: i16 = -96;
    pub(crate) const OFFSET: i16 = -104;
    pub(crate) const MESSAGE: i16 = -112;
    pub(crate) const CODE: i16 = -120;
    pub(crate) const IN_SEQUENCE: i16 = -128;
    /// A value for the table of orders.
    pub(crate) const ONE: i16 = -136;
    /// 1: the match event goes on behind this packet.
    pub(crate) const OPEN: i16 = -144;
}

/// Offset of the payload from R7.
pub(crate) const PAYLOAD: i16 = crate::frame::HEADERS as i16;

/// Where a packet's way ends.
#[derive(Clone, Copy)]
pub(crate) struct Exits {
    /// To the kernel's stack.
    pub(crate) pass: Label,
    /// Delivered, and counts as received.
    pub(crate) wanted: Label,
    /// Nothing wanted in it: dropped if it is in sequence.
    pub(crate) unwanted: Label,
    /// Not understood after arbitration: delivered, and the other line's copy is looked at again.
    pub(crate) doubt: Label,
    /// Not understood before arbitration: delivered.
    pub(crate) early_doubt: Label,
    /// Delivered without a number of its own.
    pub(crate) plain: Label,
    /// The other line was first.
    duplicate: Label,
    disarmed: Label,
    session: Label,
    /// A TCP segment, where connections are guarded.
    pub(crate) tcp: Label,
}

/// The assembler with what all parts of the program share. R7 is the frame without its tags, R8 its end, R9
/// the channel.
pub(crate) struct Generator<'s> {
    pub(crate) a: Assembler,
    pub(crate) spec: &'s FilterSpec,
    pub(crate) exits: Exits,
    sizes: Sizes,
}

use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};

impl<'s> Generator<'s> {
    pub(crate) fn new(spec: &'s FilterSpec) -> Generator<'s> {
        let mut a = Assembler::new();
        let exits = Exits {
            pass: a.label(),
            wanted: a.label(),
            unwanted: a.label(),
            doubt: a.label(),
            early_doubt: a.label(),
            plain: a.label(),
            duplicate: a.label(),
            disarmed: a.label(),
            session: a.label(),
            tcp: a.label(),
        };
        Generator {
            a,
            spec,
            exits,
            sizes: Sizes::of(spec),
        }
    }

    pub(crate) fn uses(&self, which: impl Fn(Framing) -> bool) -> bool {
        self.spec.channels.iter().any(|channel| which(channel.framing))
    }

    /// One more of a kind; changes R0 and R1.
    pub(crate) fn count(&mut self, what: Count) {
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::COUNTERS);
        a.load(Size::D, R0, R1, what.offset() as i16);
        a.alu_value(Op::Add, R0, 1);
        a.store(Size::D, R1, what.offset() as i16, R0);
    }

    /// Adds R2; changes R0 and R1.
    fn add(&mut self, what: Count) {
        let a = &mut self.a;
        a.load(Size::D, R1, R10, stack::COUNTERS);
        a.load(Size::D, R0, R1, what.offset() as i16);
        a.alu(Op::Add, R0, R2);
        a.store(Size::D, R1, what.offset() as i16, R0);
    }

    /// `target` if the `bytes` from payload offset R4 - R7 on are not all in the frame; changes R5.
    pub(crate) fn within(&mut self, bytes: i16, target: Label) {
        self.a.copy(R5, R4);
        self.a.alu_value(Op::Add, R5, i32::from(PAYLOAD + bytes));
        self.a.jump_if(Cond::Gt, R5, R8, target);
    }

    /// `target` if bit R0 (below [`layout::BITS`]) of the set at R6 is set; changes R0 and R4.
    pub(crate) fn if_wanted(&mut self, target: Label) {
        self.wanted_bit();
        self.a.jump_if_value(Cond::Ne, R4, 0, target);
    }

    /// R4 = bit R0 (below [`layout::BITS`]) of the set at R6; changes R0.
    pub(crate) fn wanted_bit(&mut self) {
        let a = &mut self.a;
        a.copy(R4, R0);
        a.alu_value(Op::Rsh, R4, 3);
        a.alu_value(Op::And, R4, (layout::BITS / 8 - 8) as i32);
        a.alu(Op::Add, R4, R6);
        a.load(Size::D, R4, R4, 0);
        a.alu_value(Op::And, R0, 63);
        a.alu(Op::Rsh, R4, R0);
        a.alu_value(Op::And, R4, 1);
    }

    /// R0 = the upper bits of R0's hash; changes R4.
    pub(crate) fn hash(&mut self, bits: i32) {
        self.a.set_wide(R4, layout::HASH);
        self.a.alu(Op::Mul, R0, R4);
        self.a.alu_value(Op::Rsh, R0, 64 - bits);
    }

    /// R0 = 1 if the halfword in R1, as loaded, names a VLAN tag, else 0; changes R1, R2.
    fn is_tag(&mut self) {
        let a = &mut self.a;
        // No jumps: the verifier would follow each variant through the whole program. x ^ tag - 1 is negative
        // only for equals.
        let [customer, service] = [0x8100_u16, 0x88A8].map(|tag| i32::from(tag.to_be()));
        a.copy(R2, R1);
        a.alu_value(Op::Xor, R1, customer);
        a.alu_value(Op::Sub, R1, 1);
        a.alu_value(Op::Rsh, R1, 63);
        a.alu_value(Op::Xor, R2, service);
        a.alu_value(Op::Sub, R2, 1);
        a.alu_value(Op::Rsh, R2, 63);
        a.alu(Op::Or, R1, R2);
        a.copy(R0, R1);
    }

    /// From the frame to the channel: gives the framings in use with their labels.
    pub(crate) fn entry(&mut self) -> Vec<(Framing, Label)> {
        let Exits { pass, tcp, .. } = self.exits;
        let is_guarding = self.spec.guard;
        let a = &mut self.a;
        a.store(Size::D, R10, stack::CONTEXT, R1);
        a.load(Size::W, R7, R1, 0);
        a.load(Size::W, R8, R1, 4);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, 18);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        self.is_tag();
        let a = &mut self.a;
        a.copy(R6, R0);
        a.alu_value(Op::Lsh, R0, 2);
        a.alu(Op::Add, R7, R0);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, 14);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        self.is_tag();
        let a = &mut self.a;
        // A second tag stands behind a first one only.
        a.alu(Op::And, R0, R6);
        a.alu_value(Op::Lsh, R0, 2);
        a.alu(Op::Add, R7, R0);
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD) + crate::frame::PAYLOAD_MIN as i32);
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.load(Size::H, R1, R7, 12);
        a.jump_if_value(Cond::Ne, R1, i32::from(0x0800_u16.to_be()), pass);
        a.load(Size::B, R1, R7, 14);
        a.jump_if_value(Cond::Ne, R1, 0x45, pass);
        a.load(Size::B, R1, R7, 23);
        if is_guarding {
            a.jump_if_value(Cond::Eq, R1, 6, tcp);
        }
        a.jump_if_value(Cond::Ne, R1, 17, pass);
        a.load(Size::H, R1, R7, 20);
        a.alu_value(Op::And, R1, i32::from(0x3FFF_u16.to_be()));
        a.jump_if_value(Cond::Ne, R1, 0, pass);
        a.load(Size::W, R1, R7, 30);
        a.load(Size::H, R2, R7, 36);
        let mut labels: Vec<(Framing, Label)> = Vec::new();
        for (number, channel) in self.spec.channels.iter().enumerate() {
            let label = match labels.iter().find(|(framing, _)| *framing == channel.framing) {
                Some((_, label)) => *label,
                None => {
                    let label = a.label();
                    labels.push((channel.framing, label));
                    label
                }
            };
            for group in &channel.groups {
                let next = a.label();
                a.jump_if_value(Cond::Ne, R2, i32::from(group.port.to_be()), next);
                a.jump_if_value32(Cond::Ne, R1, u32::from_ne_bytes(group.address), next);
                if let Some(source) = group.source {
                    a.load(Size::W, R3, R7, 26);
                    a.jump_if_value32(Cond::Ne, R3, u32::from_ne_bytes(source), next);
                }
                a.map_value(R1, layout::STATE, (number * self.sizes.channel()) as u32);
                a.jump(label);
                a.bind(next);
            }
        }
        a.jump(pass);
        labels
    }

    /// What every channel of a framing does, with R1 its state.
    fn framing(&mut self, framing: Framing) {
        let Exits {
            pass, early_doubt, ..
        } = self.exits;
        let channel = self.sizes.channel() as i32;
        let a = &mut self.a;
        // The channel's number comes out of memory, so that the verifier follows one unknown channel and not
        // each of them.
        a.load(Size::W, R0, R1, layout::NUMBER as i16);
        a.jump_if_value(Cond::Ge, R0, self.sizes.channels as i32, pass);
        a.alu_value(Op::Mul, R0, channel);
        a.map_value(R9, layout::STATE, 0);
        a.alu(Op::Add, R9, R0);
        a.call(helper::CPU);
        a.alu_value(Op::And, R0, self.sizes.cpus as i32 - 1);
        a.alu_value(Op::Lsh, R0, layout::COUNTERS_SIZE.trailing_zeros() as i32);
        a.alu(Op::Add, R0, R9);
        a.alu_value(Op::Add, R0, layout::COUNTERS as i32);
        a.store(Size::D, R10, stack::COUNTERS, R0);
        // Lengths: UDP's within IP's within the frame; Ethernet pads.
        a.load(Size::H, R2, R7, 38);
        a.from_big_endian(R2, 16);
        a.jump_if_value(Cond::Lt, R2, 8 + crate::frame::PAYLOAD_MIN as i32, pass);
        a.jump_if_value(Cond::Gt, R2, 8 + crate::frame::PAYLOAD_MAX as i32, pass);
        a.load(Size::H, R1, R7, 16);
        a.from_big_endian(R1, 16);
        a.copy(R3, R2);
        a.alu_value(Op::Add, R3, 20);
        a.jump_if(Cond::Lt, R1, R3, pass);
        a.alu_value(Op::Sub, R2, 8);
        a.copy(R1, R7);
        a.alu(Op::Add, R1, R2);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD));
        a.jump_if(Cond::Gt, R1, R8, pass);
        a.store(Size::D, R10, stack::LIMIT, R2);
        self.add(Count::Bytes);
        self.count(Count::Packets);
        let header = match framing {
            Framing::Any => {
                let plain = self.exits.plain;
                return self.a.jump(plain);
            }
            Framing::Itch => walk::itch::HEADER,
            Framing::Pitch => walk::pitch::HEADER,
            Framing::Nyse => walk::nyse::HEADER,
            Framing::Mdp3 => walk::mdp3::HEADER,
        };
        let a = &mut self.a;
        a.copy(R1, R7);
        a.alu_value(Op::Add, R1, i32::from(PAYLOAD + header));
        a.jump_if(Cond::Gt, R1, R8, early_doubt);
        a.load(Size::D, R2, R10, stack::LIMIT);
        a.jump_if_value(Cond::Lt, R2, header.into(), early_doubt);
        // R1 the first number, R2 how many.
        match framing {
            Framing::Itch => walk::itch::header(self),
            Framing::Pitch => walk::pitch::header(self),
            Framing::Nyse => walk::nyse::header(self),
            Framing::Mdp3 => walk::mdp3::header(self),
            Framing::Any => {}
        }
        let a = &mut self.a;
        a.set_wide(R3, layout::SEQUENCE_MAX);
        a.jump_if(Cond::Ge, R1, R3, early_doubt);
        a.store(Size::D, R10, stack::SEQ, R1);
        a.store(Size::D, R10, stack::COUNT, R2);
        a.copy(R3, R1);
        a.alu(Op::Add, R3, R2);
        a.store(Size::D, R10, stack::END, R3);
        a.store_value(Size::D, R10, stack::WANT, 0);
        a.store_value(Size::D, R10, stack::OPEN, 0);
        self.arbitrate(framing);
    }

    /// Session, word, arbitration and continuity; then the walk. R1 is the first number.
    fn arbitrate(&mut self, framing: Framing) {
        let Exits {
            disarmed,
            duplicate,
            session,
            wanted,
            ..
        } = self.exits;
        let learns = framing == Framing::Pitch;
        let (walk, learn, held) = (self.a.label(), self.a.label(), self.a.label());
        if learns {
            // The unit, which holds for a disarmed channel too.
            let a = &mut self.a;
            a.load(Size::B, R3, R7, PAYLOAD + walk::pitch::UNIT);
            a.load(Size::D, R4, R9, layout::SESSION as i16);
            a.jump_if(Cond::Ne, R3, R4, session);
            a.store_value(Size::D, R10, stack::IN_SEQUENCE, 0);
        }
        let unarmed = if learns { learn } else { disarmed };
        let a = &mut self.a;
        a.load(Size::D, R5, R9, layout::WORD as i16);
        a.store(Size::D, R10, stack::WORD, R5);
        a.jump_if_value(Cond::Eq, R5, 0, unarmed);
        a.load(Size::W, R3, R9, layout::HOLD as i16);
        a.jump_if_value(Cond::Ne, R3, 0, held);
        if framing == Framing::Itch {
            a.load(Size::D, R3, R7, PAYLOAD + walk::itch::SESSION);
            a.load(Size::D, R4, R9, layout::SESSION as i16);
            a.jump_if(Cond::Ne, R3, R4, session);
            a.load(Size::H, R3, R7, PAYLOAD + walk::itch::SESSION + 8);
            a.load(Size::D, R4, R9, layout::SESSION as i16 + 8);
            a.jump_if(Cond::Ne, R3, R4, session);
        }
        // The first copy of a packet that begins here wins. The whole key is exchanged, so nothing is ever
        // cleared, and a collision delivers once too often at worst. The epoch is in the key: numbers that
        // begin anew find nothing from before.
        a.copy(R3, R1);
        a.alu_value(Op::And, R3, layout::SLOTS as i32 - 1);
        a.alu_value(Op::Lsh, R3, 3);
        a.alu(Op::Add, R3, R9);
        a.copy(R2, R5);
        a.alu_value(Op::Rsh, R2, 48);
        a.alu_value(Op::Lsh, R2, 48);
        a.alu(Op::Or, R2, R1);
        a.copy(R4, R2);
        a.atomic(Atomic::Exchange, R3, self.sizes.slots() as i16, R4);
        a.jump_if(Cond::Eq, R4, R2, duplicate);
        a.set_wide(R3, layout::NEXT_MASK);
        a.alu(Op::And, R5, R3);
        let (ahead, behind) = (a.label(), a.label());
        a.copy(R6, R1);
        a.jump_if(Cond::Gt, R6, R5, ahead);
        a.jump_if(Cond::Lt, R6, R5, behind);
        if learns {
            a.store_value(Size::D, R10, stack::IN_SEQUENCE, 1);
        }
        a.load(Size::D, R2, R10, stack::COUNT);
        self.add(Count::Messages);
        self.a.jump(walk);

        self.a.bind(ahead);
        self.count(Count::Ahead);
        if learns {
            // What is missing may add orders: nothing can be dropped until the owner has them.
            self.hold();
        }
        let out = self.a.label();
        self.a.jump(out);
        self.a.bind(behind);
        self.count(Count::Behind);
        self.a.bind(out);
        match framing {
            Framing::Pitch => self.a.store_value(Size::D, R10, stack::WANT, 1),
            Framing::Mdp3 => {
                // Whether the match event goes on is not known.
                self.a.store_value(Size::D, R10, stack::OPEN, 1);
            }
            Framing::Itch | Framing::Nyse | Framing::Any => {}
        }
        self.a.load(Size::D, R2, R10, stack::COUNT);
        self.add(Count::Messages);
        self.a.jump(if learns { walk } else { wanted });

        self.a.bind(held);
        self.a.store_value(Size::D, R10, stack::WORD, 0);
        if learns {
            self.a.bind(learn);
            self.count(Count::Disarmed);
            self.a.store_value(Size::D, R10, stack::WANT, 1);
        } else {
            self.a.jump(disarmed);
        }
        self.a.bind(walk);
        self.set_address();
        match framing {
            Framing::Itch => walk::itch::walk(self),
            Framing::Pitch => walk::pitch::walk(self),
            Framing::Nyse => walk::nyse::walk(self),
            Framing::Mdp3 => walk::mdp3::walk(self),
            Framing::Any => {}
        }
    }

    /// The program stops dropping by itself; changes R0 and R1.
    pub(crate) fn hold(&mut self) {
        self.a.store_value(Size::W, R9, layout::HOLD as i16, 1);
        self.count(Count::Hold);
    }

    /// R6 = the channel's set; changes R0.
    fn set_address(&mut self) {
        let doubt = self.exits.doubt;
        let sets = self.sizes;
        let a = &mut self.a;
        a.load(Size::W, R0, R9, layout::SET as i16);
        a.jump_if_value(Cond::Ge, R0, sets.sets as i32, doubt);
        a.store(Size::D, R10, stack::SET, R0);
        a.alu_value(Op::Mul, R0, layout::SET_SIZE as i32);
        a.map_value(R6, layout::SETS, sets.sets_at() as u32);
        a.alu(Op::Add, R6, R0);
    }

    /// R3 = the word of R2's epoch with the packet's end as next number; changes R4. R2 is the word before.
    fn moved_on(&mut self) {
        let a = &mut self.a;
        a.copy(R4, R2);
        a.alu_value(Op::Rsh, R4, 48);
        a.alu_value(Op::Lsh, R4, 48);
        a.load(Size::D, R3, R10, stack::END);
        a.alu(Op::Or, R3, R4);
        if self.uses(|framing| framing == Framing::Mdp3) {
            let a = &mut self.a;
            a.load(Size::D, R4, R10, stack::OPEN);
            a.alu_value(Op::Lsh, R4, layout::OPEN.trailing_zeros() as i32);
            a.alu(Op::Or, R3, R4);
        }
    }

    /// The ends of a packet that was looked into; `place` takes its place among the deliveries, `deliver` has
    /// one.
    fn verdicts(&mut self, (deliver, place, seen): (Label, Label, Label)) {
        let Exits {
            wanted,
            unwanted,
            doubt,
            duplicate,
            ..
        } = self.exits;
        let raced = self.a.label();
        self.a.bind(unwanted);
        self.a.load(Size::D, R2, R10, stack::WORD);
        self.moved_on();
        self.a.copy(R0, R2);
        self.a
            .atomic(Atomic::CompareExchange, R9, layout::WORD as i16, R3);
        self.a.jump_if(Cond::Ne, R0, R2, raced);
        self.count(Count::Filtered);
        self.a.set(R0, action::DROP);
        self.a.exit();

        self.a.bind(duplicate);
        self.count(Count::Duplicate);
        self.a.set(R0, action::DROP);
        self.a.exit();

        // The place in the order of deliveries is taken before the word moves: see the module's description.
        self.a.bind(wanted);
        self.count(Count::Wanted);
        self.take_place();
        let a = &mut self.a;
        a.load(Size::D, R2, R10, stack::WORD);
        a.jump_if_value(Cond::Eq, R2, 0, seen);
        a.set_wide(R5, layout::NEXT_MASK);
        a.copy(R4, R2);
        a.alu(Op::And, R4, R5);
        a.load(Size::D, R3, R10, stack::END);
        a.jump_if(Cond::Le, R3, R4, seen);
        self.moved_on();
        self.a.copy(R0, R2);
        self.a
            .atomic(Atomic::CompareExchange, R9, layout::WORD as i16, R3);
        self.a.jump_if(Cond::Eq, R0, R2, seen);
        self.count(Count::Race);
        self.a.jump(deliver);

        self.a.bind(doubt);
        self.a.load(Size::D, R1, R10, stack::SEQ);
        self.a.alu_value(Op::And, R1, layout::SLOTS as i32 - 1);
        self.a.alu_value(Op::Lsh, R1, 3);
        self.a.alu(Op::Add, R1, R9);
        self.a.store_value(Size::D, R1, self.sizes.slots() as i16, 0);
        self.count(Count::Doubt);
        self.a.jump(place);

        self.a.bind(raced);
        self.count(Count::Race);
        self.a.jump(place);
    }

    fn exits(&mut self) {
        let Exits {
            pass,
            early_doubt,
            plain,
            disarmed,
            session,
            ..
        } = self.exits;
        let (deliver, redirect, bare) = (self.a.label(), self.a.label(), self.a.label());
        // Where a packet goes whose number is known, for a pre-armed order.
        let seen = if self.arms() { self.a.label() } else { deliver };

        let place = self.a.label();
        // The verifier refuses instructions that nothing reaches.
        let looks = self.uses(|framing| framing != Framing::Any);
        if looks {
            self.verdicts((deliver, place, seen));
        }
        let arms = self.arms();
        for (label, what) in [
            (early_doubt, Count::Doubt),
            (disarmed, Count::Disarmed),
            (session, Count::Session),
            (plain, Count::Plain),
        ] {
            let is_used = match what {
                Count::Doubt => looks,
                Count::Disarmed => self.uses(|framing| !matches!(framing, Framing::Pitch | Framing::Any)),
                Count::Session => self.uses(|framing| matches!(framing, Framing::Itch | Framing::Pitch)),
                _ => true,
            };
            if !is_used {
                continue;
            }
            self.a.bind(label);
            match what {
                // A heartbeat tells what was seen before it.
                Count::Plain => {
                    self.a.load(Size::D, R1, R9, layout::WORD as i16);
                    self.a.store(Size::D, R10, stack::WORD, R1);
                }
                _ => self.a.store_value(Size::D, R10, stack::WORD, 0),
            }
            self.count(what);
            if what == Count::Disarmed && arms {
                self.take_place();
                self.a.jump(seen);
            } else if what != Count::Plain {
                self.a.jump(place);
            }
        }
        self.a.bind(place);
        self.take_place();
        if arms {
            self.a.jump(deliver);
            self.a.bind(seen);
            self.shoot(deliver);
        }
        self.a.bind(deliver);
        self.metadata(redirect, bare);

        self.a.bind(bare);
        self.count(Count::NoMetadata);
        self.a.bind(redirect);
        let a = &mut self.a;
        a.load(Size::D, R6, R10, stack::CONTEXT);
        a.load(Size::W, R2, R6, 16);
        a.map(R1, layout::SOCKETS);
        a.set(R3, action::PASS);
        a.call(helper::REDIRECT_MAP);
        a.exit();

        a.bind(pass);
        a.set(R0, action::PASS);
        a.exit();
    }

    /// Takes the next place in the order of deliveries; changes R1.
    fn take_place(&mut self) {
        let a = &mut self.a;
        a.set(R1, 1);
        a.atomic32(Atomic::FetchAdd, R9, layout::DELIVERIES as i16, R1);
        a.store(Size::D, R10, stack::DELIVERY, R1);
    }

    fn metadata(&mut self, redirect: Label, bare: Label) {
        let a = &mut self.a;
        a.load(Size::D, R6, R10, stack::CONTEXT);
        a.copy(R1, R6);
        a.set(R2, -(layout::META_SIZE as i32));
        a.call(helper::ADJUST_META);
        a.jump_if_value(Cond::Ne, R0, 0, bare);
        a.load(Size::W, R7, R6, 8);
        a.load(Size::W, R2, R6, 0);
        a.copy(R3, R7);
        a.alu_value(Op::Add, R3, layout::META_SIZE as i32);
        a.jump_if(Cond::Gt, R3, R2, bare);
        a.call(helper::KTIME);
        a.store(Size::D, R7, 8, R0);
        a.store_value(Size::H, R7, 0, layout::META_MAGIC.into());
        a.load(Size::W, R1, R9, layout::NUMBER as i16);
        a.store(Size::H, R7, 2, R1);
        a.load(Size::D, R1, R10, stack::DELIVERY);
        a.store(Size::W, R7, 4, R1);
        a.load(Size::D, R1, R10, stack::WORD);
        a.store(Size::D, R7, 16, R1);
        a.store_value(Size::D, R7, 24, 0);
        a.jump(redirect);
    }
}
