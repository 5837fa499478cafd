//! Transfer encoding: stop-bit integers, strings and presence maps (FAST 1.1, section 10, "Transfer
//! Encoding").

use super::error::Fault;
use super::value::{Kind, Text};

const STOPS: u64 = 0x8080_8080_8080_8080;

/// A position in a message.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    strict: bool,
}

/// The word of a message of fewer than eight bytes.
#[cold]
fn only_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Packs the seven low bits of each byte of a big-endian word into one number.
#[inline(always)]
fn pack(be: u64) -> u64 {
    let x = be & !STOPS;
    let x = (x & 0x7f00_7f00_7f00_7f00) >> 1 | (x & 0x007f_007f_007f_007f);
    let x = (x & 0x3fff_0000_3fff_0000) >> 2 | (x & 0x0000_3fff_0000_3fff);
    (x >> 32) << 28 | (x & 0x0fff_ffff)
}

/// Whether the first group of a signed entity only repeats the sign of the second.
#[inline(always)]
fn overlong(word: u64) -> bool {
    matches!(word & 0x40ff, 0x0000 | 0x407f)
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], strict: bool) -> Reader<'a> {
        Reader { bytes, at: 0, strict }
    }

    /// The next eight bytes, zeros where the message ends before.
    #[inline(always)]
    fn word(&self) -> u64 {
        match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(),
        }
    }

    /// The same near the end: the last eight bytes, of which those before the position go.
    #[inline(always)]
    fn last_word(&self) -> u64 {
        let left = self.bytes.len().saturating_sub(self.at) as u32;
        match self.bytes.last_chunk() {
            Some(word) => u64::from_le_bytes(*word).checked_shr(64 - 8 * left).unwrap_or(0),
            None => only_word(self.bytes, self.at),
        }
    }

    #[inline(always)]
    fn byte(&self, ahead: usize) -> Result<u8, Fault> {
        self.bytes.get(self.at + ahead).copied().ok_or(Fault::Truncated)
    }

    /// The seven-bit groups of an entity of up to eight bytes, packed, and how many they are. `word` is the
    /// input from here on; `None` when no stop bit is in it. A field's length hardly changes from entry to
    /// entry, so that branches for the short ones are foreseen, and then nothing behind the field waits for
    /// its bytes.
    #[inline(always)]
    fn groups(&mut self, word: u64) -> Option<(u64, u32)> {
        let (raw, len) = if word & 0x80 != 0 {
            (word & 0x7f, 1)
        } else if word & 0x8000 != 0 {
            ((word & 0x7f) << 7 | word >> 8 & 0x7f, 2)
        } else if word & 0x0080_0000 != 0 {
            ((word & 0x7f) << 14 | word >> 1 & 0x3f80 | word >> 16 & 0x7f, 3)
        } else if word & 0x8000_0000 != 0 {
            let upper = (word & 0x7f) << 21 | word << 6 & 0x1f_c000;
            (upper | word >> 9 & 0x3f80 | word >> 24 & 0x7f, 4)
        } else {
            let stops = word & STOPS;
            if stops == 0 {
                return None;
            }
            let bits = stops.trailing_zeros() + 1;
            (pack(word.swap_bytes() >> (64 - bits)), bits / 8)
        };
        self.at += len as usize;
        Some((raw, len))
    }

    /// An unsigned integer up to `max`; `None` is null.
    #[inline(always)]
    pub(crate) fn uint(&mut self, max: u64, nullable: bool) -> Result<Option<u64>, Fault> {
        let word = self.word();
        if word & 0xff == 0 {
            // By the letter, which tells overlong from cut off.
            return self.taking(self.uint_slow(max, nullable));
        }
        let Some((raw, _)) = self.groups(word) else {
            return self.taking(self.uint_long(word, max, nullable));
        };
        if nullable && raw == 0 {
            return Ok(None);
        }
        // Up to 56 bits here, so that one less is never too small and the sum of both never too large.
        let value = raw - u64::from(nullable);
        if value > max {
            Err(Fault::IntegerRange)
        } else {
            Ok(Some(value))
        }
    }

    /// The result of a slow path. Those take the reader by value and say where it is then, so that the reader
    /// of the hot loop lives in registers.
    #[inline(always)]
    pub(crate) fn taking<T>(&mut self, result: Result<(T, usize), Fault>) -> Result<T, Fault> {
        let (value, at) = result?;
        self.at = at;
        Ok(value)
    }

    /// Nine bytes, 63 bits: times of day with their date.
    #[inline(never)]
    fn uint_long(self, word: u64, max: u64, nullable: bool) -> Result<(Option<u64>, usize), Fault> {
        match self.byte(8) {
            Ok(last) if last & 0x80 != 0 && word & 0xff != 0 => {
                let value = (pack(word.swap_bytes()) << 7 | u64::from(last & 0x7f)) - u64::from(nullable);
                if value > max {
                    Err(Fault::IntegerRange)
                } else {
                    Ok((Some(value), self.at + 9))
                }
            }
            _ => self.uint_slow(max, nullable),
        }
    }

    /// Reads past a 64-bit unsigned integer. Up to nine bytes there is none that does not fit.
    #[inline(always)]
    pub(crate) fn skip_u64(&mut self, nullable: bool) -> Result<(), Fault> {
        let word = self.word();
        let stops = word & STOPS;
        let ninth = self.bytes.get(self.at + 8).is_some_and(|&byte| byte & 0x80 != 0);
        if word & 0xff == 0 || stops == 0 && !ninth {
            return self.taking(self.uint_slow(u64::MAX, nullable)).map(|_| ());
        }
        // Of no stop bit the zeros are 64.
        self.at += (stops.trailing_zeros() / 8 + 1) as usize;
        Ok(())
    }

    /// Byte by byte: at the end of the input, and for values up to the 2^64 that a nullable 64-bit integer
    /// needs.
    #[inline(never)]
    fn uint_slow(mut self, max: u64, nullable: bool) -> Result<(Option<u64>, usize), Fault> {
        if self.strict && self.byte(0)? == 0 {
            return Err(Fault::OverlongInteger);
        }
        let mut raw: u128 = 0;
        for ahead in 0.. {
            let byte = self.byte(ahead)?;
            raw = raw << 7 | u128::from(byte & 0x7f);
            if raw > 1 << 64 {
                return Err(Fault::IntegerRange);
            }
            if byte & 0x80 != 0 {
                self.at += ahead + 1;
                break;
            }
        }
        let value = match (nullable, raw) {
            (true, 0) => return Ok((None, self.at)),
            (true, _) => raw - 1,
            (false, _) => raw,
        };
        if value > u128::from(max) {
            Err(Fault::IntegerRange)
        } else {
            Ok((Some(value as u64), self.at))
        }
    }

    /// A signed integer within `min..=max`; `None` is null.
    #[inline(always)]
    pub(crate) fn int(&mut self, min: i64, max: i64, nullable: bool) -> Result<Option<i64>, Fault> {
        let word = self.word();
        if overlong(word) {
            return self.taking(self.int_slow(min, max, nullable));
        }
        let Some((raw, len)) = self.groups(word) else {
            return self.taking(self.int_slow(min, max, nullable));
        };
        let unused = 64 - 7 * len;
        let raw = (raw << unused) as i64 >> unused;
        if nullable && raw == 0 {
            return Ok(None);
        }
        let value = raw - i64::from(nullable && raw > 0);
        if value < min || value > max {
            Err(Fault::IntegerRange)
        } else {
            Ok(Some(value))
        }
    }

    /// A decimal's exponent: an int32 of one byte in all but hostile messages.
    #[inline(always)]
    pub(crate) fn exponent(&mut self, nullable: bool) -> Result<Option<i64>, Fault> {
        let first = self.byte(0)?;
        if first & 0x80 == 0 {
            return self.taking(self.int_slow(i32::MIN.into(), i32::MAX.into(), nullable));
        }
        self.at += 1;
        let raw = i64::from((first << 1) as i8 >> 1);
        if nullable && raw == 0 {
            return Ok(None);
        }
        Ok(Some(raw - i64::from(nullable && raw > 0)))
    }

    #[inline(never)]
    fn int_slow(mut self, min: i64, max: i64, nullable: bool) -> Result<(Option<i64>, usize), Fault> {
        let value = self.wide(i128::from(min), i128::from(max), nullable)?;
        Ok((value.map(|v| v as i64), self.at))
    }

    /// A signed integer within `min..=max` that may need more than 64 bits (deltas).
    pub(crate) fn wide(&mut self, min: i128, max: i128, nullable: bool) -> Result<Option<i128>, Fault> {
        let first = self.byte(0)?;
        let superfluous = (first == 0 || first == 0x7f) && (self.byte(1)? ^ first) & 0x40 == 0;
        if superfluous && self.strict {
            return Err(Fault::OverlongInteger);
        }
        let raw = self.signed_slow()?;
        let value = match (nullable, raw) {
            (true, 0) => return Ok(None),
            (true, 1..) => raw - 1,
            _ => raw,
        };
        if value < min || value > max {
            Err(Fault::IntegerRange)
        } else {
            Ok(Some(value))
        }
    }

    fn signed_slow(&mut self) -> Result<i128, Fault> {
        let mut value: i128 = if self.byte(0)? & 0x40 != 0 { -1 } else { 0 };
        for ahead in 0.. {
            let byte = self.byte(ahead)?;
            value = value << 7 | i128::from(byte & 0x7f);
            if value.unsigned_abs() > 1 << 65 {
                return Err(Fault::IntegerRange);
            }
            if byte & 0x80 != 0 {
                self.at += ahead + 1;
                break;
            }
        }
        Ok(value)
    }

    /// Appends an ASCII string to `text`, its stop bit removed; gives the cell's bits, `None` for null.
    #[inline(always)]
    pub(crate) fn ascii(&mut self, text: &mut Text, nullable: bool) -> Result<Option<u64>, Fault> {
        let word = self.word();
        if word & 0x80 != 0 {
            self.at += 1;
            return Ok(match word & 0x7f {
                0 if nullable => None,
                0 => Some(0),
                character => Some(Text::single(character)),
            });
        }
        let stops = word & STOPS;
        let Some(room) = text.word().filter(|_| stops != 0 && word & 0x7f != 0) else {
            return self.taking(self.ascii_long(text, nullable));
        };
        *room = (word & !STOPS).to_le_bytes();
        let len = (stops.trailing_zeros() / 8 + 1) as usize;
        self.at += len;
        Ok(Some(text.commit(len)))
    }

    /// Strings of 9 to 16 bytes, as most symbols are.
    #[inline(never)]
    fn ascii_long(self, text: &mut Text, nullable: bool) -> Result<(Option<u64>, usize), Fault> {
        let words = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<16>());
        if let (Some(&words), Some(room)) = (words, text.words()) {
            let both = u128::from_le_bytes(words);
            const STOPS_OF_BOTH: u128 = (STOPS as u128) << 64 | STOPS as u128;
            let stops = both & STOPS_OF_BOTH;
            if stops != 0 && both & 0x7f != 0 {
                *room = (both & !STOPS_OF_BOTH).to_le_bytes();
                let len = (stops.trailing_zeros() / 8 + 1) as usize;
                return Ok((Some(text.commit(len)), self.at + len));
            }
        }
        self.ascii_slow(text, nullable)
    }

    /// A text of up to sixteen characters, the first one in the lowest byte, and how many they are: none for
    /// null, which an empty text of a field that is always there is taken for, too. `None`, and nothing is
    /// read, for a longer one, one with a preamble, and one that is cut off.
    #[inline(always)]
    pub(crate) fn short_text(&mut self) -> Option<(u128, u32)> {
        let word = self.word();
        if word & 0x80 != 0 {
            self.at += 1;
            let character = word & 0x7f;
            return Some((character.into(), u32::from(character != 0)));
        }
        if word & 0x7f == 0 {
            return None;
        }
        let stops = word & STOPS;
        if stops != 0 {
            let bits = stops.trailing_zeros() + 1;
            self.at += (bits / 8) as usize;
            return Some(((word & !STOPS & u64::MAX >> (64 - bits)).into(), bits / 8));
        }
        let rest = Reader {
            at: self.at + 8,
            ..*self
        }
        .word();
        let stops = rest & STOPS;
        if stops == 0 {
            return None;
        }
        let bits = stops.trailing_zeros() + 1;
        self.at += 8 + (bits / 8) as usize;
        let rest = rest & !STOPS & u64::MAX >> (64 - bits);
        Some((u128::from(rest) << 64 | u128::from(word), 8 + bits / 8))
    }

    /// A decimal's mantissa and exponent; `None` is null.
    #[inline(always)]
    pub(crate) fn decimal(&mut self, nullable: bool) -> Result<Option<(i64, i8)>, Fault> {
        let Some(exponent) = self.exponent(nullable)? else {
            return Ok(None);
        };
        if !(-63..=63).contains(&exponent) {
            return Err(Fault::DecimalRange);
        }
        match self.int(i64::MIN, i64::MAX, false) {
            Ok(mantissa) => Ok(Some((mantissa.unwrap_or(0), exponent as i8))),
            Err(Fault::IntegerRange) => Err(Fault::DecimalRange),
            Err(fault) => Err(fault),
        }
    }

    /// Any string, byte by byte. One group of zero bits (two when nullable) is a preamble that tells an empty
    /// string and one beginning with NUL from null; before any other text it is superfluous.
    #[inline(never)]
    fn ascii_slow(self, text: &mut Text, nullable: bool) -> Result<(Option<u64>, usize), Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let last = rest.iter().position(|b| b & 0x80 != 0).ok_or(Fault::Truncated)?;
        let (groups, end) = (&rest[..last], self.at + last + 1);
        let value = rest[last] & 0x7f;
        let zeros = groups.iter().take_while(|&&b| b == 0).count();
        let all_zero = zeros == last && value == 0;
        let preamble = 1 + usize::from(nullable);
        let skip = match (all_zero, zeros) {
            (true, 0) if nullable => return Ok((None, end)),
            // Nothing is behind the preamble.
            (true, zeros) if zeros < preamble => return Ok((Some(text.push(&[], &[])?), end)),
            (true, _) => preamble,
            (false, 0) => 0,
            (false, zeros) if zeros > preamble => preamble,
            (false, _) if self.strict => return Err(Fault::OverlongString),
            (false, zeros) => zeros,
        };
        Ok((Some(text.push(&groups[skip..], &[value])?), end))
    }

    /// A string of bytes after its length; `None` is null.
    pub(crate) fn bytes(&mut self, nullable: bool) -> Result<Option<&'a [u8]>, Fault> {
        let Some(len) = self.uint(u64::from(u32::MAX), nullable)? else {
            return Ok(None);
        };
        let end = self.at.checked_add(len as usize).ok_or(Fault::Truncated)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Fault::Truncated)?;
        self.at = end;
        Ok(Some(bytes))
    }

    /// A presence map.
    #[inline(always)]
    pub(crate) fn presence_map(&mut self) -> Result<PresenceMap, Fault> {
        let start = self.at;
        match self.groups(self.word()) {
            Some((bits, len)) => {
                if bits & 0x7f == 0 && len > 1 && self.strict {
                    return Err(Fault::OverlongPresenceMap);
                }
                Ok(PresenceMap {
                    bits: bits << (64 - 7 * len),
                    left: u32::MAX,
                    at: self.at,
                    end: self.at,
                })
            }
            None => self.presence_map_slow(start),
        }
    }

    #[cold]
    fn presence_map_slow(&mut self, start: usize) -> Result<PresenceMap, Fault> {
        let rest = self.bytes.get(start..).unwrap_or(&[]);
        let last = rest.iter().position(|b| b & 0x80 != 0).ok_or(Fault::Truncated)?;
        if last > 0 && rest[last] & 0x7f == 0 && self.strict {
            return Err(Fault::OverlongPresenceMap);
        }
        self.at = start + last + 1;
        let map = PresenceMap {
            bits: 0,
            left: 0,
            at: start,
            end: self.at,
        };
        Ok(map.refilled(self.bytes))
    }

    /// The next bit of a presence map of this message.
    #[inline(always)]
    pub(crate) fn bit(&self, map: &mut PresenceMap) -> bool {
        let bit = map.bits >> 63 != 0;
        map.bits <<= 1;
        map.left -= 1;
        if map.left == 0 {
            *map = map.refilled(self.bytes);
        }
        bit
    }

    /// Checks that nothing is left in a presence map.
    #[inline(always)]
    pub(crate) fn finish(&self, map: &PresenceMap) -> Result<(), Fault> {
        let excess = map.bits != 0 || map.at < map.end;
        if excess && self.strict {
            Err(Fault::ExcessPresenceBits)
        } else {
            Ok(())
        }
    }
}

/// A presence map being consumed: the next 63 bits, and where the rest of a longer one lies.
#[derive(Clone, Copy)]
pub(crate) struct PresenceMap {
    /// Next bit topmost.
    bits: u64,
    /// Bits until a refill; the bits behind the end of a map are zeros.
    left: u32,
    at: usize,
    end: usize,
}

impl PresenceMap {
    /// One that is not longer than 63 bits, the next bit topmost.
    #[inline(always)]
    pub(crate) const fn short(bits: u64) -> PresenceMap {
        PresenceMap {
            bits,
            ..PresenceMap::EMPTY
        }
    }

    /// The rest of a map, next bit topmost, if that is all of it.
    #[inline(always)]
    pub(crate) fn as_short(&self) -> Option<u64> {
        (self.at == self.end).then_some(self.bits)
    }

    /// Of a segment that has none.
    pub(crate) const EMPTY: PresenceMap = PresenceMap {
        bits: 0,
        left: u32::MAX,
        at: 0,
        end: 0,
    };

    #[cold]
    #[inline(never)]
    fn refilled(self, bytes: &[u8]) -> PresenceMap {
        let n = (self.end - self.at).min(9);
        let chunk = bytes.get(self.at..self.at + n).unwrap_or(&[]);
        let packed = chunk.iter().fold(0, |bits, b| bits << 7 | u64::from(b & 0x7f));
        let at = self.at + n;
        PresenceMap {
            bits: if n == 0 { 0 } else { packed << (64 - 7 * n as u32) },
            left: if at == self.end { u32::MAX } else { 63 },
            at,
            end: self.end,
        }
    }
}

/// An output buffer being filled.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    pub(crate) at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Writer<'a> {
        Writer { out, at: 0 }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let room = self
            .out
            .get_mut(self.at..self.at + bytes.len())
            .ok_or(Fault::OutputFull)?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// Writes null: the same byte for every nullable type.
    pub(crate) fn null(&mut self) -> Result<(), Fault> {
        self.put(&[0x80])
    }

    /// An unsigned integer.
    pub(crate) fn uint(&mut self, value: u64, nullable: bool) -> Result<(), Fault> {
        let raw = u128::from(value) + u128::from(nullable);
        let groups = (128 - raw.leading_zeros()).div_ceil(7).max(1);
        self.groups(raw, groups)
    }

    /// A signed integer of up to 69 bits.
    pub(crate) fn int(&mut self, value: i128, nullable: bool) -> Result<(), Fault> {
        let raw = if nullable && value >= 0 { value + 1 } else { value };
        let magnitude = if raw < 0 { !raw } else { raw } as u128;
        let groups = (129 - magnitude.leading_zeros()).div_ceil(7);
        self.groups(raw as u128, groups)
    }

    fn groups(&mut self, raw: u128, groups: u32) -> Result<(), Fault> {
        let mut bytes = [0; 19];
        let len = groups as usize;
        for (i, byte) in bytes[..len].iter_mut().enumerate() {
            *byte = (raw >> (7 * (len - 1 - i))) as u8 & 0x7f;
        }
        bytes[len - 1] |= 0x80;
        self.put(&bytes[..len])
    }

    /// An ASCII string, with the preamble where it needs one.
    pub(crate) fn ascii(&mut self, text: &[u8], nullable: bool) -> Result<(), Fault> {
        let Some((last, rest)) = text.split_last() else {
            return self.put(if nullable { &[0, 0x80] } else { &[0x80] });
        };
        if text[0] == 0 {
            self.put(&[0, 0][..1 + usize::from(nullable)])?;
        }
        self.put(rest)?;
        self.put(&[last | 0x80])
    }

    /// A string of bytes after its length.
    pub(crate) fn bytes(&mut self, text: &[u8], nullable: bool) -> Result<(), Fault> {
        self.uint(text.len() as u64, nullable)?;
        self.put(text)
    }

    /// A text of the given kind.
    pub(crate) fn text(&mut self, kind: Kind, text: &[u8], nullable: bool) -> Result<(), Fault> {
        if kind == Kind::Ascii {
            self.ascii(text, nullable)
        } else {
            self.bytes(text, nullable)
        }
    }

    /// Reserves a presence map of up to `bits` bits.
    pub(crate) fn open_map(&mut self, bits: u32) -> Result<MapOut, Fault> {
        let len = (bits as usize).div_ceil(7).max(1);
        let start = self.at;
        let room = self.out.get_mut(start..start + len).ok_or(Fault::OutputFull)?;
        room.fill(0);
        self.at += len;
        Ok(MapOut { start, len, next: 0 })
    }

    /// Reserves the presence map of a group or entry, which has none when no field takes a bit.
    pub(crate) fn open_segment(&mut self, bits: u32) -> Result<MapOut, Fault> {
        if bits == 0 {
            Ok(MapOut {
                start: self.at,
                len: 0,
                next: 0,
            })
        } else {
            self.open_map(bits)
        }
    }

    /// Appends a bit to an open presence map.
    pub(crate) fn bit(&mut self, map: &mut MapOut, set: bool) {
        let place = self.out.get_mut(map.start + map.next / 7);
        if set && let Some(byte) = place {
            *byte |= 0x40 >> (map.next % 7);
        }
        map.next += 1;
    }

    /// Closes a presence map: trailing groups without a bit are taken out, what follows moves up.
    pub(crate) fn close_map(&mut self, map: MapOut) {
        let bytes = &mut self.out[map.start..map.start + map.len];
        let last = bytes.iter().rposition(|&b| b != 0).unwrap_or(0);
        bytes[last] |= 0x80;
        let slack = map.len - (last + 1);
        if slack > 0 {
            self.out
                .copy_within(map.start + map.len..self.at, map.start + last + 1);
            self.at -= slack;
        }
    }
}

/// A presence map being written.
pub(crate) struct MapOut {
    start: usize,
    len: usize,
    next: usize,
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn unsigned(bytes: &[u8], max: u64, nullable: bool) -> Result<Option<u64>, Fault> {
        // With and without bytes behind, so that both the word and the byte path are taken.
        let alone = Reader::new(bytes, true).uint(max, nullable);
        let padded: Vec<u8> = bytes.iter().copied().chain([0x11; 12]).collect();
        if alone != Err(Fault::Truncated) {
            assert_eq!(Reader::new(&padded, true).uint(max, nullable), alone);
        }
        alone
    }

    fn signed(bytes: &[u8], min: i64, max: i64, nullable: bool) -> Result<Option<i64>, Fault> {
        let alone = Reader::new(bytes, true).int(min, max, nullable);
        let padded: Vec<u8> = bytes.iter().copied().chain([0x11; 12]).collect();
        if alone != Err(Fault::Truncated) {
            assert_eq!(Reader::new(&padded, true).int(min, max, nullable), alone);
        }
        alone
    }

    const U32: u64 = u32::MAX as u64;
    const I32: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

    #[test]
    fn unsigned_integers_of_the_specification_and_at_their_bounds() {
        assert_eq!(unsigned(&[0x39, 0x45, 0xa3], U32, false), Ok(Some(942_755)));
        assert_eq!(unsigned(&[0x39, 0x45, 0xa4], U32, true), Ok(Some(942_755)));
        assert_eq!(unsigned(&[0x80], U32, true), Ok(None));
        assert_eq!(unsigned(&[0x80], U32, false), Ok(Some(0)));
        assert_eq!(unsigned(&[0x81], U32, true), Ok(Some(0)));
        assert_eq!(
            unsigned(&[0x0f, 0x7f, 0x7f, 0x7f, 0xff], U32, false),
            Ok(Some(U32))
        );
        assert_eq!(
            unsigned(&[0x10, 0, 0, 0, 0x80], U32, false),
            Err(Fault::IntegerRange)
        );
        assert_eq!(unsigned(&[0x10, 0, 0, 0, 0x80], U32, true), Ok(Some(U32)));
        assert_eq!(
            unsigned(&[0x10, 0, 0, 0, 0x81], U32, true),
            Err(Fault::IntegerRange)
        );
        let top = [0x01, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0xff];
        assert_eq!(unsigned(&top, u64::MAX, false), Ok(Some(u64::MAX)));
        let beyond = [0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(unsigned(&beyond, u64::MAX, true), Ok(Some(u64::MAX)));
        assert_eq!(unsigned(&beyond, u64::MAX, false), Err(Fault::IntegerRange));
        assert_eq!(unsigned(&[0x7f; 30], u64::MAX, false), Err(Fault::IntegerRange));
        assert_eq!(unsigned(&[0x00, 0x81], U32, false), Err(Fault::OverlongInteger));
        assert_eq!(unsigned(&[0x39, 0x45], U32, false), Err(Fault::Truncated));
        assert_eq!(unsigned(&[], U32, false), Err(Fault::Truncated));
        assert_eq!(Reader::new(&[0x00, 0x81], false).uint(U32, false), Ok(Some(1)));
    }

    #[test]
    fn signed_integers_of_the_specification_and_at_their_bounds() {
        assert_eq!(
            signed(&[0x39, 0x45, 0xa3], I32.0, I32.1, false),
            Ok(Some(942_755))
        );
        assert_eq!(
            signed(&[0x46, 0x3a, 0xdd], I32.0, I32.1, false),
            Ok(Some(-942_755))
        );
        assert_eq!(
            signed(&[0x7c, 0x1b, 0x1b, 0x9d], I32.0, I32.1, false),
            Ok(Some(-7_942_755))
        );
        assert_eq!(signed(&[0x00, 0xc0], I32.0, I32.1, false), Ok(Some(64)));
        assert_eq!(signed(&[0x00, 0xc0], I32.0, I32.1, true), Ok(Some(63)));
        assert_eq!(signed(&[0xff], I32.0, I32.1, true), Ok(Some(-1)));
        assert_eq!(signed(&[0x80], I32.0, I32.1, true), Ok(None));
        assert_eq!(
            signed(&[0x08, 0, 0, 0, 0x80], I32.0, I32.1, false),
            Err(Fault::IntegerRange)
        );
        assert_eq!(
            signed(&[0x08, 0, 0, 0, 0x80], I32.0, I32.1, true),
            Ok(Some(I32.1))
        );
        assert_eq!(
            signed(&[0x78, 0, 0, 0, 0x80], I32.0, I32.1, false),
            Ok(Some(I32.0))
        );
        assert_eq!(
            signed(&[0x77, 0x7f, 0x7f, 0x7f, 0xff], I32.0, I32.1, false),
            Err(Fault::IntegerRange)
        );
        assert_eq!(
            signed(&[0x00, 0x81], I32.0, I32.1, false),
            Err(Fault::OverlongInteger)
        );
        assert_eq!(
            signed(&[0x7f, 0xc1], I32.0, I32.1, false),
            Err(Fault::OverlongInteger)
        );
        assert_eq!(signed(&[0x7f, 0x81], I32.0, I32.1, false), Ok(Some(-127)));
        assert_eq!(signed(&[0x00], I32.0, I32.1, false), Err(Fault::Truncated));
    }

    #[test]
    fn integers_round_trip_at_every_length() {
        for shift in 0..64 {
            for near in [-2i128, -1, 0, 1, 2] {
                let value = (1i128 << shift) + near;
                for (nullable, sign) in [(false, 1), (true, 1), (false, -1), (true, -1)] {
                    let mut out = [0; 24];
                    let mut w = Writer::new(&mut out);
                    w.int(value * sign, nullable).unwrap();
                    let len = w.at;
                    let mut r = Reader::new(&out[..len], true);
                    assert_eq!(r.wide(i128::MIN, i128::MAX, nullable), Ok(Some(value * sign)));
                    assert_eq!(r.at, len);
                    if let (Ok(v), 1) = (u64::try_from(value), sign) {
                        let mut w = Writer::new(&mut out);
                        w.uint(v, nullable).unwrap();
                        let len = w.at;
                        assert_eq!(
                            Reader::new(&out[..len], true).uint(u64::MAX, nullable),
                            Ok(Some(v))
                        );
                        assert_eq!(Reader::new(&out, true).uint(u64::MAX, nullable), Ok(Some(v)));
                    }
                }
            }
        }
    }

    fn ascii(bytes: &[u8], nullable: bool) -> Result<Option<Vec<u8>>, Fault> {
        let read = |bytes: &[u8]| {
            let mut text = Text::new(&Text::SINGLES, 64);
            let bits = Reader::new(bytes, true).ascii(&mut text, nullable)?;
            Ok(bits.map(|bits| {
                text.get(super::super::value::Cell::new(Kind::Ascii, bits))
                    .to_vec()
            }))
        };
        let alone = read(bytes);
        if alone != Err(Fault::Truncated) {
            assert_eq!(read(&[bytes, &[0x11; 24]].concat()), alone);
        }
        alone
    }

    #[test]
    fn strings_null_empty_and_beginning_with_nul_are_told_apart() {
        assert_eq!(ascii(&[0x41, 0x42, 0xc3], false), Ok(Some(b"ABC".to_vec())));
        assert_eq!(
            ascii(b"USD000UTSTO\xcd", true),
            Ok(Some(b"USD000UTSTOM".to_vec()))
        );
        assert_eq!(
            ascii(b"12345678901234567\xb8", true),
            Ok(Some(b"123456789012345678".to_vec()))
        );
        assert_eq!(ascii(&[0x80], false), Ok(Some(vec![])));
        assert_eq!(ascii(&[0x80], true), Ok(None));
        assert_eq!(ascii(&[0, 0x80], true), Ok(Some(vec![])));
        assert_eq!(ascii(&[0, 0x80], false), Ok(Some(vec![0])));
        assert_eq!(ascii(&[0, 0, 0x80], true), Ok(Some(vec![0])));
        assert_eq!(ascii(&[0, 0, 0xc1], false), Ok(Some(vec![0, 0x41])));
        assert_eq!(ascii(&[0, 0xc1], false), Err(Fault::OverlongString));
        assert_eq!(ascii(&[0, 0xc1], true), Err(Fault::OverlongString));
        assert_eq!(ascii(&[0, 0, 0xc1], true), Err(Fault::OverlongString));
        assert_eq!(ascii(&[0x41], false), Err(Fault::Truncated));
        assert_eq!(ascii(&[0, 0], true), Err(Fault::Truncated));
    }

    #[test]
    fn presence_maps_of_any_length_give_their_bits_and_then_zeros() {
        for len in [1usize, 2, 8, 9, 10, 19, 40] {
            let bytes: Vec<u8> = (0..len)
                .map(|i| 0x55 ^ i as u8 & 0x2a | if i + 1 == len { 0x81 } else { 0 })
                .collect();
            let mut reader = Reader::new(&bytes, true);
            let mut map = reader.presence_map().unwrap();
            assert_eq!(reader.at, len);
            for (i, byte) in bytes.iter().enumerate() {
                for bit in 0..7 {
                    assert!(reader.finish(&map).is_err());
                    assert_eq!(
                        reader.bit(&mut map),
                        byte & 0x40 >> bit != 0,
                        "bit {bit} of byte {i} of {len}"
                    );
                }
            }
            assert_eq!(reader.finish(&map), Ok(()));
            assert!((0..200).all(|_| !reader.bit(&mut map)));
        }
    }

    #[test]
    fn a_presence_map_with_empty_trailing_groups_is_overlong() {
        assert!(matches!(
            Reader::new(&[0x40, 0x80], true).presence_map(),
            Err(Fault::OverlongPresenceMap)
        ));
        assert!(Reader::new(&[0x40, 0x80], false).presence_map().is_ok());
        assert!(Reader::new(&[0x80], true).presence_map().is_ok());
        assert!(matches!(
            Reader::new(&[0x40, 0x40], true).presence_map(),
            Err(Fault::Truncated)
        ));
    }
}
