//! When which frame enters the core: both lines with gaps down to one clock, what they lose and damage, and
//! what software does after a gap. One seed, one stimulus.

use tickwire_market::{InstrumentId, Nanos};
use tickwire_rtl::frame::Prepared;
use tickwire_rtl::registers::{address, control};
use tickwire_rtl::setup::{Feed, Limits, Numbers, clock_writes, order_writes};

use crate::day::Day;

/// Splitmix64.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// One below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n.max(1)
    }

    /// Yes, so many times of a million.
    pub fn chance(&mut self, millionths: u32) -> bool {
        self.below(1_000_000) < u64::from(millionths)
    }
}

/// How a stimulus is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Troubles {
    /// What all of it follows from.
    pub seed: u64,
    /// Frames that each line loses, in millionths.
    pub loss: u32,
    /// Frames that each line damages, in millionths.
    pub damage: u32,
    /// Clocks between frames of a line at most; often there is one.
    pub gap_max: u64,
    /// Clocks that line B is behind line A, or before it, at most.
    pub skew_max: u64,
    /// Of a hundred clocks, those in which the transmitter is not ready.
    pub busy_percent: u32,
}

impl Default for Troubles {
    fn default() -> Troubles {
        Troubles {
            seed: 1,
            loss: 0,
            damage: 0,
            gap_max: 60,
            skew_max: 200,
            busy_percent: 0,
        }
    }
}

/// What the core is told before the day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The instrument, as the software's decoder numbers it: of ITCH the stock locate.
    pub instrument: InstrumentId,
    /// Price of the ladder's first step, in 1e-4.
    pub base: u32,
    /// Lowest and highest price of an order, in 1e-4.
    pub collar: (u32, u32),
    /// Largest order.
    pub size: u32,
    /// Largest position.
    pub position: u32,
    /// Orders that may leave.
    pub orders: u32,
    /// TCP sequence number of the first order.
    pub sequence: u32,
    /// UserRefNum of the first order, or the number in its ClOrdID.
    pub user_ref: u32,
    /// FIX: MsgSeqNum of the first order.
    pub message: u32,
    /// FIX: the time that orders are sent at, UTC; a gap takes a second.
    pub time: Nanos,
    /// Numbers are written as decimal digits (FIX).
    pub is_decimal: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            instrument: InstrumentId(1),
            base: 0,
            collar: (1, u32::MAX - 1),
            size: 1_000_000,
            position: i32::MAX as u32,
            orders: u32::MAX,
            sequence: 0xffff_ff00,
            user_ref: 1,
            message: 1,
            time: Nanos::ZERO,
            is_decimal: false,
        }
    }
}

/// What the day comes to for the software: packets in the order in which the core takes them, gaps between
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A packet of the day, by its place; the clock of its last word on the first line that brought it.
    Packet(usize, u64),
    /// What comes next is missing; the core is disarmed.
    Gap,
    /// What was missing has come.
    Whole,
    /// The core is armed again; what its clock says.
    Armed(Nanos),
}

/// A stimulus with what it means.
#[derive(Clone, Debug, Default)]
pub struct Stimulus {
    /// As the bench reads it.
    pub bytes: Vec<u8>,
    /// As the software takes it.
    pub steps: Vec<Step>,
    /// Good frames of the lines A, B and software's own.
    pub frames: [u64; 3],
    /// Damaged frames.
    pub damaged: [u64; 3],
    /// Clocks.
    pub clocks: u64,
}

/// How long a packet ahead waits for the other line.
const PATIENCE: u16 = 4_000;
/// Clocks of the book for a change. A replacement that loses the best level takes 37; few changes are one.
const CHANGE_CLOCKS: u64 = 28;
/// Clocks by which a decoder of FAST may be behind: its queue has room for more.
const DECODE_BEHIND: u64 = 120;

/// A line of the stimulus: frames leave one behind the other.
struct Line {
    number: u8,
    free_at: u64,
}

struct Maker<'a> {
    settings: &'a Settings,
    random: Random,
    out: Stimulus,
}

impl Maker<'_> {
    fn write(&mut self, cycle: u64, address: u8, value: u32) {
        self.out.bytes.push(b'W');
        self.out.bytes.extend_from_slice(&cycle.to_le_bytes());
        self.out.bytes.push(address);
        self.out.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Puts a frame on a line at the soonest at a cycle; when its last word comes.
    fn frame(&mut self, line: &mut Line, at: u64, datagram: &[u8], is_damaged: bool) -> u64 {
        let mut frame = framed(line.number, datagram);
        if is_damaged {
            let place = 42 + self.random.below(datagram.len() as u64) as usize;
            frame[place] ^= 1 << self.random.below(8);
            self.out.damaged[usize::from(line.number)] += 1;
        } else {
            self.out.frames[usize::from(line.number)] += 1;
        }
        let start = at.max(line.free_at);
        self.out.bytes.push(b'F');
        self.out.bytes.extend_from_slice(&start.to_le_bytes());
        self.out
            .bytes
            .extend_from_slice(&[line.number, u8::from(is_damaged)]);
        self.out
            .bytes
            .extend_from_slice(&(frame.len() as u16).to_le_bytes());
        self.out.bytes.extend_from_slice(&frame);
        let end = start + frame.len().div_ceil(8) as u64 - 1;
        line.free_at = end + 2;
        end
    }

    fn set_up(&mut self, day: &Day, frame: &Prepared) -> u64 {
        let s = *self.settings;
        let first = day.packets.first().map_or(1, |packet| packet.seq);
        // A damaged frame does not stop the core: the other line is to bring what it held.
        let feed = feed(day, s.instrument, s.base, first);
        let limits = Limits {
            collar: s.collar,
            size: s.size,
            position: s.position,
            held: 0,
            tokens: 60_000,
            token_clocks: 1,
            orders: s.orders,
            watchdog: 0,
        };
        let numbers = Numbers {
            sequence: s.sequence,
            user_ref: s.user_ref,
            message: s.message,
            is_decimal: s.is_decimal,
        };
        let writes = feed.writes().into_iter().chain(limits.writes());
        let writes = writes.chain(numbers.writes()).chain(order_writes(frame));
        let writes = writes.chain(clock_writes(s.time));
        // The book is emptied after a reset, a set of orders a clock, before it takes the first event.
        let mut cycle = 20_000;
        for (at, value) in writes {
            self.write(cycle, at, value);
            cycle += 1;
        }
        self.write(cycle + 10, address::CONTROL, control::ARM);
        cycle + 40
    }
}

/// The feed of a day as a core is told of it, from a message on; a damaged frame does not stop it.
pub fn feed(day: &Day, instrument: InstrumentId, base: u32, next: u64) -> Feed {
    Feed {
        lines: [0, 1, 2].map(|line| (group(line), port(line))),
        session: day.session,
        locate: instrument.0,
        market: b'Q',
        stops_at_damage: false,
        base,
        patience: PATIENCE,
        next,
    }
}

/// Group of a line.
fn group(line: u8) -> [u8; 4] {
    [239, 192, 77, 1 + line]
}

fn port(line: u8) -> u16 {
    26_400 + u16::from(line)
}

/// A datagram as an Ethernet frame of a line of [`feed`], without FCS, at least 60 bytes long.
pub fn framed(line: u8, datagram: &[u8]) -> Vec<u8> {
    let group = group(line);
    let mut frame = vec![
        0x01,
        0x00,
        0x5e,
        group[1] & 0x7f,
        group[2],
        group[3],
        2,
        0,
        0,
        0,
        0,
        1,
        0x08,
        0x00,
    ];
    let total = (28 + datagram.len()) as u16;
    let mut header = vec![0x45, 0];
    header.extend_from_slice(&total.to_be_bytes());
    header.extend_from_slice(&[0x12, 0x34, 0x40, 0, 16, 17, 0, 0, 10, 0, 0, 9]);
    header.extend_from_slice(&group);
    let mut sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(&40_000_u16.to_be_bytes());
    frame.extend_from_slice(&port(line).to_be_bytes());
    frame.extend_from_slice(&((8 + datagram.len()) as u16).to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.extend_from_slice(datagram);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// What a packet asks of the core at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Changes of the book.
    pub changes: u64,
    /// Clocks of the line's decoder, where it does not keep up with the wire.
    pub decode: u64,
}

/// Makes a stimulus of a day. `work` says what a packet asks at most: frames are kept so far apart that the
/// core's queues never fill, which would be a loss that no seed explains.
pub fn make(
    day: &Day,
    settings: &Settings,
    frame: &Prepared,
    troubles: &Troubles,
    work: impl Fn(usize) -> Work,
) -> Stimulus {
    let mut maker = Maker {
        settings,
        random: Random(troubles.seed),
        out: Stimulus::default(),
    };
    let start = maker.set_up(day, frame);
    let mut lines = [0, 1, 2].map(|number| Line {
        number,
        free_at: start,
    });
    let changes = |n: usize| work(n).changes;
    let (mut at, mut busy_until, mut missing) = (start, start, Vec::new());
    let (mut decoded_at, mut time) = (start, settings.time);
    for (n, packet) in day.packets.iter().enumerate() {
        let mut gap = 1;
        if !maker.random.chance(300_000) {
            gap += maker.random.below(troubles.gap_max);
        }
        at += gap;
        // At most so many changes wait.
        at = at.max(busy_until.saturating_sub(40 * CHANGE_CLOCKS));
        at = at.max(decoded_at.saturating_sub(DECODE_BEHIND + troubles.skew_max));
        decoded_at = decoded_at.max(at + troubles.skew_max) + work(n).decode;
        let mut arrived: Option<u64> = None;
        let lag = maker.random.below(troubles.skew_max + 1);
        let starts = if maker.random.chance(200_000) {
            [at + lag, at]
        } else {
            [at, at + lag]
        };
        for (line, start) in lines[..2].iter_mut().zip(starts) {
            if maker.random.chance(troubles.loss) {
                continue;
            }
            let is_damaged = maker.random.chance(troubles.damage);
            let end = maker.frame(line, start, &packet.bytes, is_damaged);
            if !is_damaged {
                arrived = Some(arrived.map_or(end, |first| first.min(end)));
            }
        }
        let Some(end) = arrived else {
            missing.push(n);
            continue;
        };
        if !missing.is_empty() {
            // This packet shows the gap. Then the lines are quiet until software has mended it.
            maker.out.steps.push(Step::Gap);
            let mut cycle = end + u64::from(PATIENCE) + troubles.skew_max + 2_000;
            for late in missing.drain(..) {
                let end = maker.frame(&mut lines[2], cycle, &day.packets[late].bytes, false);
                maker.out.steps.push(Step::Packet(late, end));
                cycle = end + 40 + work(late).decode + CHANGE_CLOCKS * changes(late);
            }
            cycle += 500;
            maker.write(cycle, address::CONTROL, control::RESUME | control::FORGET);
            maker.out.steps.extend([Step::Whole, Step::Packet(n, end)]);
            cycle += 500 + CHANGE_CLOCKS * changes(n) + 2_000;
            time.0 += Nanos::SECOND + 1_000_000;
            for (n, (address, value)) in clock_writes(time).into_iter().enumerate() {
                maker.write(cycle + n as u64, address, value);
            }
            maker.write(cycle + 20, address::CONTROL, control::ARM);
            maker.out.steps.push(Step::Armed(time));
            at = cycle + 60;
            lines
                .iter_mut()
                .for_each(|line| line.free_at = line.free_at.max(at));
            busy_until = at;
            continue;
        }
        maker.out.steps.push(Step::Packet(n, end));
        busy_until = busy_until.max(end) + CHANGE_CLOCKS * changes(n);
        at = at.max(lines[0].free_at.min(lines[1].free_at));
        // Line B may not fall behind for good.
        at = at.max(lines[1].free_at.saturating_sub(troubles.skew_max));
    }
    let end = lines
        .iter()
        .map(|line| line.free_at)
        .max()
        .unwrap_or(at)
        .max(busy_until)
        + 20_000;
    maker.out.bytes.push(b'Q');
    maker.out.bytes.extend_from_slice(&end.to_le_bytes());
    maker.out.clocks = end;
    maker.out
}
