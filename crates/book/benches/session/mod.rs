//! A Nasdaq-like session of ITCH 5.0 messages from a seed, framed by 2-byte lengths, and the books it must
//! end in.
//!
//! Its books are kept here with standard maps, so that they are evidence against every builder that is
//! measured. Shape: symbols weighted 1/(k + 20); adds 45.3 %, deletes 40 %, replaces 7.9 %, executions 3.8 %,
//! reductions 1.2 %, imbalances 1.2 %, trades 0.6 %; two thirds of all orders live under a second of a day of
//! 12,500 messages a second, a twentieth for longer than 143 seconds; prices cluster behind a wandering value
//! with a tail of deep levels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// 100 shares apart in 4-decimal prices: one cent.
const TICK: u32 = 100;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// At least `low`, below `high`, each factor of two as likely as the next.
    fn spread(&mut self, low: f64, high: f64) -> u64 {
        let u = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (low * (high / low).powf(u)) as u64
    }
}

#[derive(Clone, Copy)]
struct Order {
    symbol: u16,
    ask: bool,
    price: u32,
    /// 0: gone.
    qty: u32,
}

#[derive(Default)]
pub(crate) struct LevelOfOrders {
    pub(crate) qty: u64,
    pub(crate) orders: u32,
    queue: VecDeque<u32>,
}

/// One symbol: its value in ticks and its book.
pub(crate) struct Symbol {
    value: u32,
    /// Bids, asks.
    pub(crate) sides: [BTreeMap<u32, LevelOfOrders>; 2],
}

impl Symbol {
    pub(crate) fn best(&self, ask: bool) -> Option<(u32, &LevelOfOrders)> {
        let levels = &self.sides[ask as usize];
        let best = if ask {
            levels.first_key_value()
        } else {
            levels.last_key_value()
        };
        best.map(|(&price, level)| (price, level))
    }
}

/// The messages and what they must lead to.
pub(crate) struct Session {
    /// 2-byte big-endian length, message, and so on.
    pub(crate) bytes: Vec<u8>,
    pub(crate) messages: u64,
    /// By stock locate; 0 is unused.
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) live_peak: u64,
    pub(crate) order_ids: u64,
    pub(crate) by_type: [u64; 256],
}

/// How a venue numbers its orders.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ids {
    /// 1, 2, 3 and so on, as Nasdaq does.
    Upwards,
    /// In steps of 64: the lower bits never change.
    Strides,
    /// Anywhere in 64 bits.
    Scattered,
}

impl Ids {
    fn of(self, nth: u32) -> u64 {
        match self {
            Ids::Upwards => nth as u64,
            Ids::Strides => (nth as u64) << 6,
            // Times an odd number: no two are the same.
            Ids::Scattered => (nth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }
    }
}

/// Makes a session piece by piece.
pub(crate) struct Generator {
    random: Random,
    pub(crate) session: Session,
    ids: Ids,
    weights: Vec<f64>,
    orders: Vec<Order>,
    deaths: BinaryHeap<Reverse<(u64, u32)>>,
    live: u64,
    clock: u64,
    step: u64,
    matches: u64,
}

/// A whole session of so many messages in memory.
pub(crate) fn generate(seed: u64, messages: u64, symbols: u16, ids: Ids) -> Session {
    let mut this = Generator::new(seed, messages, messages, symbols, ids);
    this.fill(messages);
    this.session
}

impl Generator {
    /// Of a day of `messages`, of which `held` are in memory at once.
    pub(crate) fn new(seed: u64, messages: u64, held: u64, symbols: u16, ids: Ids) -> Generator {
        let mut random = Random(seed);
        let books = (0..=symbols).map(|_| Symbol {
            value: random.spread(500.0, 30_000.0) as u32,
            sides: Default::default(),
        });
        let books = books.collect();
        let mut sum = 0.0;
        let weights = (0..symbols).map(|k| {
            sum += 1.0 / (k as f64 + 20.0);
            sum
        });
        let mut this = Generator {
            weights: weights.collect(),
            random,
            session: Session {
                bytes: Vec::with_capacity(held as usize * 36),
                messages: 0,
                symbols: books,
                live_peak: 0,
                order_ids: 0,
                by_type: [0; 256],
            },
            ids,
            orders: vec![Order {
                symbol: 0,
                ask: false,
                price: 0,
                qty: 0,
            }],
            deaths: BinaryHeap::new(),
            live: 0,
            clock: 34_200_000_000_000,
            step: 23_400_000_000_000 / messages.max(1),
            matches: 0,
        };
        for locate in 1..=symbols {
            this.directory(locate);
        }
        this
    }

    /// Appends messages until there have been `messages` in all.
    pub(crate) fn fill(&mut self, messages: u64) {
        while self.session.messages < messages {
            self.one();
        }
        self.session.order_ids = self.orders.len() as u64;
    }

    fn one(&mut self) {
        self.clock += self.random.below(2 * self.step + 1);
        match self.random.below(1000) {
            0..=452 => self.add(),
            453..=852 => self.delete(),
            853..=931 => self.replace(),
            932..=969 => self.execute(),
            970..=981 => self.reduce(),
            982..=993 => self.noise(b'I', 50),
            _ => self.noise(b'P', 44),
        }
    }

    /// An order's number on the wire.
    fn number(&self, id: u32) -> [u8; 8] {
        self.ids.of(id).to_be_bytes()
    }

    /// The common head; the caller fills the rest.
    fn message(&mut self, kind: u8, locate: u16, len: usize) -> &mut [u8] {
        let session = &mut self.session;
        session.messages += 1;
        session.by_type[kind as usize] += 1;
        let at = session.bytes.len();
        session.bytes.extend_from_slice(&(len as u16).to_be_bytes());
        session.bytes.resize(at + 2 + len, 0);
        let message = &mut session.bytes[at + 2..];
        message[0] = kind;
        message[1..3].copy_from_slice(&locate.to_be_bytes());
        message[5..11].copy_from_slice(&self.clock.to_be_bytes()[2..]);
        message
    }

    fn directory(&mut self, locate: u16) {
        let message = self.message(b'R', locate, 39);
        let mut name = [b' '; 8];
        let mut n = locate;
        for byte in name.iter_mut().take(4).rev() {
            *byte = b'A' + (n % 26) as u8;
            n /= 26;
        }
        message[11..19].copy_from_slice(&name);
        message[19..21].copy_from_slice(b"QN");
        message[21..25].copy_from_slice(&100u32.to_be_bytes());
        message[25..29].copy_from_slice(b"NCZ ");
        message[29..32].copy_from_slice(b"PN1");
    }

    fn noise(&mut self, kind: u8, len: usize) {
        let symbol = self.symbol();
        let message = self.message(kind, symbol, len);
        message[11..].fill(b' ');
        if kind == b'I' {
            message[27] = b'N';
            message[48] = b'O';
        } else {
            message[19] = b'B';
        }
    }

    fn symbol(&mut self) -> u16 {
        let total = *self.weights.last().expect("at least one symbol");
        let at = (self.random.next() >> 11) as f64 / (1u64 << 53) as f64 * total;
        1 + self
            .weights
            .partition_point(|&w| w < at)
            .min(self.weights.len() - 1) as u16
    }

    /// A price for a new order: behind the symbol's value, most of them close, never crossing the other side.
    fn price(&mut self, symbol: u16, ask: bool) -> u32 {
        if self.random.below(50) == 0 {
            let up = self.random.below(2) as u32;
            let value = &mut self.session.symbols[symbol as usize].value;
            *value = (*value + up * 2 - 1).clamp(200, 60_000);
        }
        let behind = match self.random.below(100) {
            0..30 => self.random.below(2),
            30..70 => self.random.below(5),
            70..93 => self.random.below(16),
            93..99 => self.random.below(60),
            _ => self.random.below(190),
        } as u32;
        let book = &self.session.symbols[symbol as usize];
        let other = book.best(!ask).map(|(price, _)| price);
        let wanted = if ask {
            (book.value + 1 + behind) * TICK
        } else {
            (book.value - 1 - behind.min(150)) * TICK
        };
        match other {
            Some(bid) if ask => wanted.max(bid + TICK),
            Some(offer) if !ask => wanted.min(offer - TICK).max(TICK),
            _ => wanted,
        }
    }

    fn lifetime(&mut self) -> u64 {
        // In messages of a day of 12,500 a second.
        let seconds = 12_500.0;
        match self.random.below(100) {
            0..67 => self.random.spread(0.002 * seconds, seconds),
            67..90 => self.random.spread(seconds, 10.0 * seconds),
            90..95 => self.random.spread(10.0 * seconds, 143.0 * seconds),
            _ => self.random.spread(143.0 * seconds, 20_000.0 * seconds),
        }
    }

    fn rest(&mut self, symbol: u16, ask: bool, price: u32, qty: u32) -> u32 {
        let id = self.orders.len() as u32;
        self.orders.push(Order {
            symbol,
            ask,
            price,
            qty,
        });
        let level = self.session.symbols[symbol as usize].sides[ask as usize]
            .entry(price)
            .or_default();
        level.qty += qty as u64;
        level.orders += 1;
        level.queue.push_back(id);
        let dies = self.session.messages + self.lifetime();
        self.deaths.push(Reverse((dies, id)));
        self.live += 1;
        self.session.live_peak = self.session.live_peak.max(self.live);
        id
    }

    fn take(&mut self, id: u32, qty: u32) {
        let order = &mut self.orders[id as usize];
        order.qty -= qty;
        let (order, gone) = (*order, order.qty == 0);
        let levels = &mut self.session.symbols[order.symbol as usize].sides[order.ask as usize];
        let level = levels.get_mut(&order.price).expect("the order rests there");
        level.qty -= qty as u64;
        if gone {
            level.orders -= 1;
            self.live -= 1;
        }
        if level.orders == 0 {
            levels.remove(&order.price);
        }
    }

    fn next_to_die(&mut self) -> Option<u32> {
        loop {
            let Reverse((_, id)) = self.deaths.pop()?;
            if self.orders[id as usize].qty > 0 {
                return Some(id);
            }
        }
    }

    fn add(&mut self) {
        let symbol = self.symbol();
        let ask = self.random.below(2) == 1;
        let price = self.price(symbol, ask);
        let qty = if self.random.below(3) > 0 {
            100
        } else {
            1 + self.random.below(900) as u32
        };
        let id = self.rest(symbol, ask, price, qty);
        let attributed = self.random.below(100) == 0;
        let (kind, len) = if attributed { (b'F', 40) } else { (b'A', 36) };
        let number = self.number(id);
        let message = self.message(kind, symbol, len);
        message[11..19].copy_from_slice(&number);
        message[19] = if ask { b'S' } else { b'B' };
        message[20..24].copy_from_slice(&qty.to_be_bytes());
        message[24..32].copy_from_slice(b"STOCK   ");
        message[32..36].copy_from_slice(&price.to_be_bytes());
        if attributed {
            message[36..40].copy_from_slice(b"MAKR");
        }
    }

    fn delete(&mut self) {
        let Some(id) = self.next_to_die() else { return };
        let Order { symbol, qty, .. } = self.orders[id as usize];
        self.take(id, qty);
        let number = self.number(id);
        self.message(b'D', symbol, 19)[11..19].copy_from_slice(&number);
    }

    fn replace(&mut self) {
        let Some(old) = self.next_to_die() else { return };
        let Order { symbol, ask, qty, .. } = self.orders[old as usize];
        self.take(old, qty);
        let price = self.price(symbol, ask);
        let new = self.rest(symbol, ask, price, qty);
        let numbers = [old, new].map(|id| self.number(id));
        let message = self.message(b'U', symbol, 35);
        message[11..27].copy_from_slice(numbers.as_flattened());
        message[27..31].copy_from_slice(&qty.to_be_bytes());
        message[31..35].copy_from_slice(&price.to_be_bytes());
    }

    /// Executes against the first order of the best level.
    fn execute(&mut self) {
        let (symbol, ask) = (self.symbol(), self.random.below(2) == 1);
        let Some((price, _)) = self.session.symbols[symbol as usize].best(ask) else {
            return;
        };
        let levels = &mut self.session.symbols[symbol as usize].sides[ask as usize];
        let queue = &mut levels.get_mut(&price).expect("just seen").queue;
        while queue.front().is_some_and(|&id| self.orders[id as usize].qty == 0) {
            queue.pop_front();
        }
        let Some(&id) = queue.front() else { return };
        let left = self.orders[id as usize].qty;
        let qty = if self.random.below(2) == 0 {
            left
        } else {
            1 + self.random.below(left as u64) as u32
        };
        self.take(id, qty);
        let at_other_price = self.random.below(60) == 0;
        self.matches += 1;
        let matched = self.matches;
        let (kind, len) = if at_other_price { (b'C', 36) } else { (b'E', 31) };
        let number = self.number(id);
        let message = self.message(kind, symbol, len);
        message[11..19].copy_from_slice(&number);
        message[19..23].copy_from_slice(&qty.to_be_bytes());
        message[23..31].copy_from_slice(&matched.to_be_bytes());
        if at_other_price {
            message[31] = b'Y';
            message[32..36].copy_from_slice(&(price + TICK).to_be_bytes());
        }
    }

    /// Takes a part of a recent order, never all of it.
    fn reduce(&mut self) {
        let recent = 3_000.min(self.orders.len() as u64 - 1);
        for _ in 0..20 {
            let id = (self.orders.len() as u64 - 1 - self.random.below(recent.max(1))) as u32;
            let Order { symbol, qty, .. } = self.orders[id as usize];
            if qty > 1 {
                let taken = 1 + self.random.below(qty as u64 - 1) as u32;
                self.take(id, taken);
                let number = self.number(id);
                let message = self.message(b'X', symbol, 23);
                message[11..19].copy_from_slice(&number);
                message[19..23].copy_from_slice(&taken.to_be_bytes());
                return;
            }
        }
    }
}
