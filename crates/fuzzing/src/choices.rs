//! Bytes read as a sequence of decisions.

/// A cursor over fuzz input. Every reader returns `None` once the input is used up, which ends the sequence.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// All decisions still to make.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { rest: bytes }
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// A number in `0..bound`, from one byte up to 256, else from two; `bound` must be in `1..=65536`.
    pub fn below(&mut self, bound: u32) -> Option<u32> {
        let low = u32::from(self.byte()?);
        let wide = if bound > 256 {
            low | u32::from(self.byte()?) << 8
        } else {
            low
        };
        Some(wide % bound)
    }

    /// Eight bytes as a number.
    pub fn number(&mut self) -> Option<u64> {
        let (chunk, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*chunk))
    }

    /// The next `count` bytes, fewer at the end.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
