//! Seeded mutations: the same seed gives the same inputs on every machine.

use tickwire_testdata::Rng;

/// No input grows beyond this: the largest UDP payload is shorter.
const MAX_LEN: usize = 4096;

/// Numbers at which lengths and counters break.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    u64::MAX,
];

/// Makes inputs from a corpus.
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    rng: Rng,
}

impl Mutator {
    /// Mutations of `corpus`, which must not be empty.
    pub fn new(corpus: Vec<Vec<u8>>, seed: u64) -> Mutator {
        assert!(!corpus.is_empty(), "there is always the empty input");
        Mutator {
            corpus,
            rng: Rng::new(seed),
        }
    }

    /// The next input: a member of the corpus changed in one to sixteen places, now and then pure noise.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.member();
        if input.is_empty() || self.rng.chance(1, 16) {
            input = self.noise(256);
        }
        let steps = 1 << self.rng.below(5);
        for _ in 0..steps {
            self.change(&mut input);
        }
        input.truncate(MAX_LEN);
        input
    }

    fn member(&mut self) -> Vec<u8> {
        let at = self.rng.below(self.corpus.len() as u64) as usize;
        self.corpus[at].clone()
    }

    fn noise(&mut self, max: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.rng.below(max) as usize];
        self.rng.fill(&mut bytes);
        bytes
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.rng.below(input.len() as u64 + 1) as usize;
        match self.rng.below(10) {
            0 | 1 => self.on_byte(input, at, |byte, random| *byte ^= 1 << (random % 8)),
            2 => self.on_byte(input, at, |byte, random| *byte = random as u8),
            3 => self.on_byte(input, at, |byte, random| {
                *byte = byte.wrapping_add((random % 9) as u8).wrapping_sub(4)
            }),
            4 => self.edge(input, at),
            5 => input.truncate(at),
            6 => {
                let noise = self.noise(16);
                input.splice(at..at, noise);
            }
            7 => {
                let end = (at + 1 + self.rng.below(16) as usize).min(input.len());
                input.drain(at.min(end)..end);
            }
            8 => self.repeat(input, at),
            _ => self.splice(input, at),
        }
    }

    fn on_byte(&mut self, input: &mut [u8], at: usize, change: fn(&mut u8, u64)) {
        let random = self.rng.next_u64();
        if let Some(byte) = input.get_mut(at) {
            change(byte, random);
        }
    }

    /// Writes an edge number of 1, 2, 4 or 8 bytes in either byte order.
    fn edge(&mut self, input: &mut [u8], at: usize) {
        let width = 1usize << self.rng.below(4);
        let mut bytes = EDGES[self.rng.below(EDGES.len() as u64) as usize].to_le_bytes();
        if self.rng.chance(1, 2) {
            bytes[..width].reverse();
        }
        for (to, from) in input.iter_mut().skip(at).zip(&bytes[..width]) {
            *to = *from;
        }
    }

    /// Repeats a stretch of the input right behind itself: lists become longer, messages come twice.
    fn repeat(&mut self, input: &mut Vec<u8>, at: usize) {
        let end = (at + 1 + self.rng.below(64) as usize).min(input.len());
        let stretch = input[at.min(end)..end].to_vec();
        if input.len() + stretch.len() <= MAX_LEN {
            input.splice(end..end, stretch);
        }
    }

    /// Goes on with another member of the corpus from here.
    fn splice(&mut self, input: &mut Vec<u8>, at: usize) {
        let other = self.member();
        let from = self.rng.below(other.len() as u64 + 1) as usize;
        input.truncate(at);
        input.extend_from_slice(&other[from..]);
        input.truncate(MAX_LEN);
    }
}
