//! How the maps of a filter are laid out: shared by the program that the kernel runs, the process that reads
//! them and the interpreter. Offsets are bytes, numbers are in host order.
//!
//! ```text
//!  STATE  a channel:  0 its number u32      4 its set u32       8 session u64   16 session u64    32 WORD u64
//!                    40 deliveries u32     48 hold u32    52 full u32
//!                    64 counters, 256 bytes a CPU              then 1,024 slots u64 for arbitration
//!         behind the channels: packets left to the kernel that may be a group's u64
//!  SETS   2^20 bits of order numbers, then a set: 2^17 bits of what is wanted, 256 + 256 bytes about message types
//! ```
//! `WORD` is the heart: [`ARMED`] on top, which is not set while the channel is *disarmed* (everything is
//! delivered), below it an epoch of 15 bits, [`OPEN`], and the next sequence number in the lower 47. Every
//! change of it is one atomic exchange, so that a program on another CPU that still believes in an earlier
//! epoch, or that the channel is armed, cannot drop anything. Disarming clears that one bit: what is
//! delivered then says still what had been seen in sequence, and what was dropped before is not taken for
//! missing.

use crate::asm::MapId;
use crate::filter::FilterSpec;

/// State of channels: an array with one value.
pub const STATE: MapId = MapId(0);
/// What is wanted: an array with one value.
pub const SETS: MapId = MapId(1);
/// AF_XDP sockets, by receive queue.
pub const SOCKETS: MapId = MapId(2);
/// Numbers of wanted orders: a hash table, keys of [`ORDER_KEY`] bytes.
pub const ORDERS: MapId = MapId(3);

/// With [`FilterSpec::statistics`]: a word for each bit of each set, messages of the instrument in packets
/// that were dropped as unwanted; where instruments have keys, for each place of the table of [`REFUSED`].
/// Behind them [`NOTES_SIZE`] bytes for each CPU. An array with one value.
pub const DROPPED: MapId = MapId(6);
/// Where messages name an instrument by a key ([`crate::filter::Framing::is_keyed`]): for each set a table of
/// keys that nobody wants, [`REFUSED_BUCKETS`] buckets of two. An array with one value.
pub const REFUSED: MapId = MapId(7);
/// Buckets of a set's table of refused keys.
pub const REFUSED_BUCKETS: usize = 1 << 14;
/// Places of refused keys that are noted of a packet: more than it has messages that are looked at.
pub const NOTES: usize = 256;
/// Bytes of a CPU's notes: how many there are, and their places.
pub const NOTES_SIZE: usize = 4096;
const _: () = assert!(NOTES_SIZE.is_power_of_two() && 8 + NOTES * 8 <= NOTES_SIZE);
/// Bytes of a set's table of refused keys.
pub const REFUSED_SIZE: usize = REFUSED_BUCKETS * 16;

/// Offset of a channel's own number, `u32`.
pub const NUMBER: usize = 0;
/// Offset of the number of a channel's set, `u32`.
pub const SET: usize = 4;
/// Offset of the session: two words, see [`crate::filter::Framing`].
pub const SESSION: usize = 8;
/// Offset of the word that arms a channel: epoch and next number.
pub const WORD: usize = 32;
/// Offset of how many packets were delivered, `u32`, modulo 2^32.
pub const DELIVERIES: usize = 40;
/// Offset of `u32`, not 0 when the program itself has stopped dropping.
pub const HOLD: usize = 48;
/// Offset of `u32`, not 0 when an order found no room in [`ORDERS`]; the channel holds then, too.
pub const FULL: usize = 52;
/// Offset of the counters of CPU 0.
pub const COUNTERS: usize = 64;
/// Bytes of the counters of a CPU.
pub const COUNTERS_SIZE: usize = 256;
/// Slots for arbitration.
pub const SLOTS: usize = 1024;

/// Bits of the set of wanted instruments; indices from here on are delivered.
pub const BITS: usize = 1 << 17;
/// Bits of the set of wanted orders, by a hash of their numbers.
pub const ORDER_BITS: usize = 1 << 20;
/// Offset in a set of one byte for each message type: where the instrument is found, 0: deliver.
pub const TYPES: usize = BITS / 8;
/// Offset in a set of one byte for each message type: its shortest size.
pub const SIZES: usize = TYPES + 256;
/// Bytes of a set.
pub const SET_SIZE: usize = SIZES + 256;
/// Bytes of a key of [`ORDERS`]: the order's number, the number of the set.
pub const ORDER_KEY: usize = 16;

/// The first sequence number that is not filtered any more: no venue has a day of so many messages.
pub const SEQUENCE_MAX: u64 = 1 << 40;
/// The bit of [`WORD`] that says that a match event in which something is wanted goes on (MDP 3.0): packets
/// are delivered until it ends.
pub const OPEN: u64 = 1 << 47;
/// The bits of [`WORD`] that are the next number.
pub const NEXT_MASK: u64 = OPEN - 1;
/// The bit of [`WORD`] that says that packets nobody wants are dropped. It is the sign, which one instruction
/// looks at.
pub const ARMED: u64 = 1 << 63;
/// The largest epoch.
pub const EPOCH_MAX: u16 = (1 << 15) - 1;

/// Multiplier of the hashes (2^64 divided by the golden ratio): the upper bits of the product are the hash.
pub const HASH: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bit of a set that stands for a key, where a set has bits for keys.
pub const fn key_bit(key: u64) -> usize {
    (key.wrapping_mul(HASH) >> 47) as usize
}

/// The bucket of a key in the table of refused ones: two words from twice this on.
pub const fn refused_bucket(key: u64) -> usize {
    (key.wrapping_mul(HASH) >> (64 - REFUSED_BUCKETS.trailing_zeros())) as usize
}

/// What stands in an empty place of a bucket: a key that is never looked for there, so that nobody has to ask
/// whether a place is empty.
pub const fn refused_empty(bucket: usize) -> u64 {
    (bucket == 0) as u64
}

/// Puts a key into a bucket with these two words: which of them is to be written, if it is not there already
/// and there is room. Without room its messages are delivered.
pub fn refused_place(bucket: usize, words: [u64; 2], key: u64) -> Option<usize> {
    match words.contains(&key) {
        true => None,
        false => words.iter().position(|word| *word == refused_empty(bucket)),
    }
}

/// Where keys have stood in the tables of refused ones, for who reads what was counted of them: a key keeps
/// its place once it had one, refused or not, so that a count is always of one key.
#[derive(Clone, Debug)]
pub struct RefusedPlaces(alloc::vec::Vec<u64>);

impl RefusedPlaces {
    /// None has stood anywhere yet, in so many sets.
    pub fn new(sets: usize) -> RefusedPlaces {
        let words = (0..sets).flat_map(|_| 0..2 * REFUSED_BUCKETS);
        RefusedPlaces(words.map(|word| refused_empty(word / 2)).collect())
    }

    /// The bucket's word that is a key's from now on; `None` where both are others'. Its messages are
    /// delivered then.
    pub fn take(&mut self, set: usize, key: u64) -> Option<usize> {
        let bucket = refused_bucket(key);
        let words = self
            .0
            .get_mut(2 * (set * REFUSED_BUCKETS + bucket)..)?
            .first_chunk_mut::<2>()?;
        let place = words.iter().position(|word| *word == key);
        let place = place.or_else(|| words.iter().position(|word| *word == refused_empty(bucket)))?;
        words[place] = key;
        Some(place)
    }

    /// The bucket's word that is a key's, if it ever had one.
    pub fn find(&self, set: usize, key: u64) -> Option<usize> {
        let words = self.0.get(2 * (set * REFUSED_BUCKETS + refused_bucket(key))..)?;
        words.iter().take(2).position(|word| *word == key)
    }
}

/// The place of a key's count among those of [`DROPPED`]: of the bucket's first word or its second one.
pub const fn refused_count(bucket: usize, word: usize) -> usize {
    2 * bucket + word
}

/// The bit that stands for an order's number.
pub const fn order_bit(order: u64) -> usize {
    (order.wrapping_mul(HASH) >> 44) as usize
}

/// A symbol as a key: padded with spaces to eight bytes.
pub fn symbol_key(symbol: &[u8]) -> Option<u64> {
    let mut padded = [b' '; 8];
    padded.get_mut(..symbol.len())?.copy_from_slice(symbol);
    Some(u64::from_le_bytes(padded))
}

/// The word that arms a channel. `epoch` is 1 to [`EPOCH_MAX`] and another one than before. Where match
/// events may be under way, [`OPEN`] is to be added.
pub const fn word(epoch: u16, next: u64) -> u64 {
    ARMED | ((epoch & EPOCH_MAX) as u64) << 48 | next & NEXT_MASK
}

/// What is counted for each channel, by CPU. The order is that of the map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Count {
    /// Packets of the channel's groups.
    Packets,
    /// Bytes of their payload.
    Bytes,
    /// Messages of packets that came first, while armed.
    Messages,
    /// Delivered because something wanted was in it, or something that is always wanted.
    Wanted,
    /// Dropped: nothing wanted in it.
    Filtered,
    /// Dropped: the other line was first.
    Duplicate,
    /// Delivered: packets before it are missing.
    Ahead,
    /// Delivered: it came after packets behind it.
    Behind,
    /// Delivered: another CPU moved the channel on at the same moment.
    Race,
    /// Delivered: it could not be understood, or has more messages than are looked at.
    Doubt,
    /// Delivered: the channel is not armed, or holds.
    Disarmed,
    /// Delivered: a packet without messages, or of a kind that is never filtered.
    Plain,
    /// Delivered: another session or unit.
    Session,
    /// The program stopped dropping by itself: no room for an order, or a gap where orders are followed.
    Hold,
    /// Delivered without metadata: the driver has no room for it.
    NoMetadata,
    /// With statistics: messages of packets that were dropped as unwanted.
    MessagesFiltered,
    /// With statistics: orders of wanted symbols that the program began to follow.
    OrdersEntered,
    /// With statistics: of them, those that were deleted.
    OrdersLeft,
    /// With statistics: messages that name a followed order and no symbol: found by the order's number.
    OrderMessages,
}

impl Count {
    /// All of them, in the order of the map.
    pub const ALL: [Count; 19] = [
        Count::Packets,
        Count::Bytes,
        Count::Messages,
        Count::Wanted,
        Count::Filtered,
        Count::Duplicate,
        Count::Ahead,
        Count::Behind,
        Count::Race,
        Count::Doubt,
        Count::Disarmed,
        Count::Plain,
        Count::Session,
        Count::Hold,
        Count::NoMetadata,
        Count::MessagesFiltered,
        Count::OrdersEntered,
        Count::OrdersLeft,
        Count::OrderMessages,
    ];

    /// Why a packet was dropped or delivered: each packet that the program counts has one of these, but that
    /// a packet delivered for another one while a second CPU moved the channel on has [`Count::Race`] as
    /// well.
    pub const REASONS: [Count; 10] = [
        Count::Wanted,
        Count::Filtered,
        Count::Duplicate,
        Count::Ahead,
        Count::Behind,
        Count::Race,
        Count::Doubt,
        Count::Disarmed,
        Count::Plain,
        Count::Session,
    ];

    /// What it is called in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Count::Packets => "packets",
            Count::Bytes => "bytes",
            Count::Messages => "messages",
            Count::Wanted => "wanted",
            Count::Filtered => "filtered",
            Count::Duplicate => "duplicate",
            Count::Ahead => "ahead",
            Count::Behind => "behind",
            Count::Race => "race",
            Count::Doubt => "doubt",
            Count::Disarmed => "disarmed",
            Count::Plain => "plain",
            Count::Session => "session",
            Count::Hold => "hold",
            Count::NoMetadata => "no_metadata",
            Count::MessagesFiltered => "messages_filtered",
            Count::OrdersEntered => "orders_entered",
            Count::OrdersLeft => "orders_left",
            Count::OrderMessages => "order_messages",
        }
    }

    /// Offset from the counters of a CPU.
    pub const fn offset(self) -> usize {
        self as usize * 8
    }
}

/// How large things are, which follows from the specification of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// How many channels there are.
    pub channels: usize,
    /// How many sets there are.
    pub sets: usize,
    /// For how many CPUs counters are kept apart, a power of two. Beyond it two CPUs share and may lose a
    /// count.
    pub cpus: usize,
    /// Whether order numbers are followed.
    pub orders: bool,
    /// Whether some channel's instruments are named by keys.
    pub keys: bool,
}

impl Sizes {
    /// Those of a filter.
    pub fn of(spec: &FilterSpec) -> Sizes {
        Sizes {
            channels: spec.channels.len(),
            sets: usize::from(spec.sets),
            cpus: usize::from(spec.cpus),
            orders: spec.follows_orders(),
            keys: spec.has_keys(),
        }
    }

    /// Offset of a channel's slots from its start.
    pub const fn slots(&self) -> usize {
        COUNTERS + self.cpus * COUNTERS_SIZE
    }

    /// Bytes of a channel.
    pub const fn channel(&self) -> usize {
        self.slots() + SLOTS * 8
    }

    /// Offset of the count of IP packets that were left to the kernel though a group's datagram may be in
    /// them (u64): fragments, IP options, datagrams of a length that frames have no room for.
    pub const fn aside(&self) -> usize {
        self.channels * self.channel()
    }

    /// Bytes of the value of [`STATE`].
    pub const fn state(&self) -> usize {
        self.aside() + 64
    }

    /// Offset of the first set in the value of [`SETS`].
    pub const fn sets_at(&self) -> usize {
        if self.orders { ORDER_BITS / 8 } else { 0 }
    }

    /// Bytes of the value of [`SETS`].
    pub const fn sets_size(&self) -> usize {
        self.sets_at() + self.sets * SET_SIZE
    }

    /// Bytes of the value of [`REFUSED`].
    pub const fn refused_size(&self) -> usize {
        self.sets * REFUSED_SIZE
    }

    /// Offset of the first CPU's notes in the value of [`DROPPED`].
    pub const fn notes_at(&self) -> usize {
        self.sets * BITS * 8
    }

    /// Bytes of the value of [`DROPPED`].
    pub const fn dropped_size(&self) -> usize {
        self.notes_at() + if self.keys { self.cpus * NOTES_SIZE } else { 0 }
    }
}

/// Bytes of the metadata in front of a delivered frame.
pub const META_SIZE: usize = 32;
/// The first two bytes of metadata of this layout.
pub const META_MAGIC: u16 = 0x7457;

/// What the program says about a delivered packet, in the 32 bytes in front of its frame.
///
/// ```text
///  0 magic u16   2 channel u16   4 delivery u32   8 hook time u64   16 WORD u64   24 wire time u64
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The channel's number in the filter's specification.
    pub channel: u16,
    /// Counts the channel's deliveries, modulo 2^32: a jump means that packets were lost between program and
    /// reader.
    pub delivery: u32,
    /// When the program saw the packet, nanoseconds of `CLOCK_MONOTONIC`.
    pub hook_ns: u64,
    /// The channel's [`WORD`] before this packet, 0 if it was disarmed.
    pub word: u64,
    /// When the network card received it, nanoseconds of its clock; 0: it does not say.
    pub wire_ns: u64,
}

impl Meta {
    /// Reads what stands in front of a frame; `None` if it is not ours.
    pub fn read(bytes: &[u8; META_SIZE]) -> Option<Meta> {
        let (head, words) = bytes.split_first_chunk::<8>()?;
        let [m0, m1, c0, c1, d0, d1, d2, d3] = *head;
        if u16::from_ne_bytes([m0, m1]) != META_MAGIC {
            return None;
        }
        let (hook, rest) = words.split_first_chunk::<8>()?;
        let (word, rest) = rest.split_first_chunk::<8>()?;
        Some(Meta {
            channel: u16::from_ne_bytes([c0, c1]),
            delivery: u32::from_ne_bytes([d0, d1, d2, d3]),
            hook_ns: u64::from_ne_bytes(*hook),
            word: u64::from_ne_bytes(*word),
            wire_ns: u64::from_ne_bytes(*rest.first_chunk::<8>()?),
        })
    }

    /// The number before which the filter has seen everything in sequence, and the epoch in which; `None` if
    /// it says nothing of that. A channel that is disarmed goes on to say where it was then:
    /// [`Meta::is_armed`].
    pub const fn claim(&self) -> Option<(u16, u64)> {
        match (self.word >> 48) as u16 & EPOCH_MAX {
            0 => None,
            epoch => Some((epoch, self.word & NEXT_MASK)),
        }
    }

    /// Whether the channel was armed when the program began with the packet.
    pub const fn is_armed(&self) -> bool {
        self.word & ARMED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stand_where_their_place_in_the_list_says() {
        for (at, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count.offset(), at * 8, "{}", count.name());
        }
        const { assert!(Count::ALL.len() * 8 <= COUNTERS_SIZE) };
    }

    #[test]
    fn metadata_is_read_only_where_it_is_ours() {
        let mut bytes = [0; META_SIZE];
        assert_eq!(Meta::read(&bytes), None);
        bytes[..2].copy_from_slice(&META_MAGIC.to_ne_bytes());
        bytes[2..4].copy_from_slice(&3_u16.to_ne_bytes());
        bytes[16..24].copy_from_slice(&word(7, 99).to_ne_bytes());
        let meta = Meta::read(&bytes).expect("ours");
        assert_eq!((meta.channel, meta.claim()), (3, Some((7, 99))));
    }

    #[test]
    fn hashes_stay_in_their_sets() {
        for key in [0, 1, u64::MAX, 0x2020_2020_4141_4141] {
            assert!(key_bit(key) < BITS && order_bit(key) < ORDER_BITS);
        }
        assert_eq!(symbol_key(b"AAPL"), Some(u64::from_le_bytes(*b"AAPL    ")));
        assert_eq!(symbol_key(b"TOOLONGNAME"), None);
    }

    #[test]
    fn a_key_keeps_its_place_once_it_had_one() {
        let mut places = RefusedPlaces::new(2);
        let mut of_bucket = (1..).filter(|key| refused_bucket(*key) == 5);
        let [a, b, c] = [(); 3].map(|()| of_bucket.next().expect("a key"));
        assert_eq!(places.find(1, a), None);
        assert_eq!([a, b, c].map(|key| places.take(1, key)), [Some(0), Some(1), None]);
        assert_eq!([b, a, c].map(|key| places.find(1, key)), [Some(1), Some(0), None]);
        assert_eq!(places.take(1, a), Some(0), "its own");
        assert_eq!(places.take(0, c), Some(0), "another set");
    }

    #[test]
    fn an_empty_place_is_no_key_of_its_bucket() {
        for bucket in 0..REFUSED_BUCKETS {
            assert_ne!(refused_bucket(refused_empty(bucket)), bucket);
        }
        let (empty, key) = (refused_empty(5), 77);
        assert_eq!(refused_place(5, [empty; 2], key), Some(0));
        assert_eq!(refused_place(5, [key, empty], key), None);
        assert_eq!(refused_place(5, [78, empty], key), Some(1));
        assert_eq!(refused_place(5, [78, 79], key), None, "no room");
    }
}
