//! What the simulated core did, as its bench writes it down.

use std::io::Read;

use tickwire_market::Side;

use crate::software::Told;

/// A change of a level as the core made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The message.
    pub seq: u64,
    /// Which side.
    pub side: Side,
    /// Outside the window of prices: nothing is known of the level.
    pub is_far: bool,
    /// In 1e-4.
    pub price: u32,
    /// All of it, after the change.
    pub qty: u64,
    /// How many orders.
    pub orders: u32,
}

/// A frame of the core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Of its first word.
    pub cycle: u64,
    /// As it left.
    pub bytes: Vec<u8>,
}

/// All of a run.
#[derive(Clone, Debug)]
pub struct Record {
    /// Each time the strategy was told of the book.
    pub told: Vec<Told>,
    /// Each change of a level.
    pub changes: Vec<Change>,
    /// Orders in turn.
    pub frames: Vec<Frame>,
    /// Orders that passed the gate: clock and message.
    pub passed: Vec<(u64, u64)>,
    /// Orders that it stopped.
    pub stopped: u64,
    /// Registers 0 to 63 at the end.
    pub registers: [u32; 64],
}

/// What comes of a bench, piece by piece.
struct Bytes<R>(R);

impl<R: Read> Bytes<R> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|b| b[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// What a bench was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// A register, which it has read.
    Register(u32),
    /// It has run as long as it was told to.
    Ran,
}

fn side(is_ask: u8) -> Side {
    match is_ask {
        0 => Side::Bid,
        _ => Side::Ask,
    }
}

impl Record {
    /// Nothing yet.
    pub(crate) fn empty() -> Record {
        Record {
            told: Vec::new(),
            changes: Vec::new(),
            frames: Vec::new(),
            passed: Vec::new(),
            stopped: 0,
            registers: [0; 64],
        }
    }

    /// Reads what a bench wrote; `None` if it breaks off.
    pub fn parse(bytes: &[u8]) -> Option<Record> {
        let mut record = Record::empty();
        let mut bytes = Bytes(bytes);
        while let Some(kind) = bytes.u8() {
            record.one(kind, &mut bytes)?;
        }
        Some(record)
    }

    /// Reads on until a bench answers; `None` if it breaks off.
    pub(crate) fn until_answer(&mut self, from: &mut impl Read) -> Option<Answer> {
        let mut bytes = Bytes(from);
        loop {
            let kind = bytes.u8()?;
            if let Some(answer) = self.one(kind, &mut bytes)? {
                return Some(answer);
            }
        }
    }

    fn one(&mut self, kind: u8, bytes: &mut Bytes<impl Read>) -> Option<Option<Answer>> {
        match kind {
            b'B' => {
                let (_, seq, is_live) = (bytes.u64()?, bytes.u64()?, bytes.u8()? != 0);
                let mut top = [(0, 0); 2];
                for level in &mut top {
                    let (is_there, price, qty) = (bytes.u8()? != 0, bytes.u32()?, bytes.u64()?);
                    if is_there {
                        *level = (price, qty);
                    }
                }
                self.told.push(Told { seq, is_live, top });
            }
            b'L' => {
                let seq = bytes.u64()?;
                let (side, is_far) = (side(bytes.u8()?), bytes.u8()? != 0);
                self.changes.push(Change {
                    seq,
                    side,
                    is_far,
                    price: bytes.u32()?,
                    qty: bytes.u64()?,
                    orders: bytes.u16()?.into(),
                });
            }
            b'P' => self.passed.push((bytes.u64()?, bytes.u64()?)),
            b'X' => {
                let _ = (bytes.u64()?, bytes.u64()?);
                self.stopped += 1;
            }
            b'T' => {
                let cycle = bytes.u64()?;
                let mut frame = vec![0; usize::from(bytes.u16()?)];
                bytes.0.read_exact(&mut frame).ok()?;
                self.frames.push(Frame { cycle, bytes: frame });
            }
            b'R' => {
                let (at, value) = (bytes.u8()?, bytes.u32()?);
                *self.registers.get_mut(usize::from(at))? = value;
                return Some(Some(Answer::Register(value)));
            }
            b'S' => {
                bytes.u64()?;
                return Some(Some(Answer::Ran));
            }
            _ => return None,
        }
        Some(None)
    }
}
