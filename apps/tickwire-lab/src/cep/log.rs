//! The order log that is played, and what a naive book and rule make of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use tickwire_exchange::{Listing, LogEntry, MoexPublisherConfig, Rules, TickTable, generate_moex};
use tickwire_market::{Contract, InstrumentId, OrderId, Price, Qty, Side, Symbol};

use tickwire_console::failure::Failure;
use tickwire_console::random::Random;
use tickwire_venues::protocol;

/// The instrument traded, as the feed handler calls it: symbol and board.
pub(crate) const SYMBOL: &str = "USD000UTSTOM@CETS";

/// The board of all.
const BOARD: &str = "CETS";

/// Instruments of the log: symbol, currency, start and tick in ten-thousandths of a rouble. The first is the
/// one traded; each makes up about a quarter of the log.
const LISTED: [(&[u8], [u8; 3], u32, u32); 4] = [
    (b"USD000UTSTOM", *b"USD", 573_400, 25),
    (b"USD000000TOD", *b"USD", 573_200, 25),
    (b"EUR_RUB__TOM", *b"EUR", 675_900, 25),
    (b"CNYRUB_TOM", *b"CNY", 87_300, 5),
];

/// Entries of a packet: how often in 1,000, from, to; within a class each number as often as another. Most
/// packets hold one order, as in the 330 recorded packets of 2017; a few hold many, up to 128, as the
/// published description says was seen.
pub(crate) const SIZES: [(u64, usize, usize); 8] = [
    (600, 1, 1),
    (190, 2, 2),
    (100, 3, 4),
    (60, 5, 8),
    (30, 9, 16),
    (12, 17, 32),
    (5, 33, 64),
    (3, 65, 128),
];

/// What is generated.
#[derive(Clone, Debug)]
pub(crate) struct LogConfig<'a> {
    pub(crate) seed: u64,
    pub(crate) packets: u64,
    /// FAST template file, or `builtin`.
    pub(crate) templates: &'a Path,
    /// Entries of a packet at most: [`ENTRIES_MAX`].
    pub(crate) entries_max: usize,
}

/// As many entries as the largest packets have.
pub(crate) const ENTRIES_MAX: usize = 128;

struct Packet {
    from: usize,
    len: usize,
    entries: u32,
    offers: Range<usize>,
}

/// Packets, and after each entry of the instrument traded, the best offer of a naive book.
pub(crate) struct Log {
    symbol: Symbol,
    bytes: Vec<u8>,
    packets: Vec<Packet>,
    offers: Vec<Option<Price>>,
    /// Packets between two plays of a recording, ascending.
    interludes: Vec<usize>,
}

impl Log {
    /// One seed, one log.
    pub(crate) fn generate(config: &LogConfig<'_>) -> Result<Log, Failure> {
        let templates = protocol::templates(config.templates).map_err(Failure::config)?;
        let listings: Vec<Listing> = (1..)
            .zip(LISTED)
            .map(|(id, (symbol, base, start, tick))| Listing {
                id: InstrumentId(id),
                symbol: Symbol::new(symbol).expect("a valid symbol"),
                contract: Contract::Currency { base, quote: *b"RUB" },
                rules: Rules {
                    ticks: TickTable::uniform(Price::from_4dp(tick)),
                    ..Rules::default()
                },
                start: Price::from_4dp(start),
                display_factor: Price::from_raw(Price::ONE_RAW),
                delta_milli: 0,
            })
            .collect();
        let publisher = MoexPublisherConfig {
            market: "CURR",
            board: BOARD,
            datagram_max: 8_972,
            store_bytes: 1 << 16,
            store_messages: 64,
            connections: 0,
            ..MoexPublisherConfig::default()
        };
        let mut log = Log::of(Symbol::new(SYMBOL.as_bytes()).expect("a valid symbol"));
        let mut book = NaiveBook::default();
        let mut sizes = Sizes(Random(config.seed));
        let made = generate_moex(
            config.seed,
            config.packets,
            publisher,
            templates,
            &listings,
            &mut || sizes.next().min(config.entries_max),
            &mut |entries, bytes| {
                let own = entries.iter().filter(|entry| entry.instrument == InstrumentId(1));
                let offers = own.map(|entry| {
                    book.apply(entry);
                    book.best_offer()
                });
                log.add(entries.len(), offers, bytes);
            },
        );
        made.map_err(|e| Failure::config(format!("{}: {e}", config.templates.display())))?;
        log.cut(config.packets as usize);
        Ok(log)
    }

    /// Without packets.
    pub(super) fn of(symbol: Symbol) -> Log {
        Log {
            symbol,
            bytes: Vec::new(),
            packets: Vec::new(),
            offers: Vec::new(),
            interludes: Vec::new(),
        }
    }

    /// No more than so many packets.
    pub(super) fn cut(&mut self, packets: usize) {
        self.packets.truncate(packets);
    }

    /// The last packet is none of the recording's.
    pub(super) fn note_interlude(&mut self) {
        self.interludes.push(self.packets.len() - 1);
    }

    /// Whether a packet only stands between two plays of a recording.
    pub(crate) fn is_interlude(&self, at: usize) -> bool {
        self.interludes.binary_search(&at).is_ok()
    }

    /// A packet of so many entries, and the best offer after each that is about the instrument traded.
    pub(super) fn add(
        &mut self,
        entries: usize,
        offers_after: impl Iterator<Item = Option<Price>>,
        bytes: &[u8],
    ) {
        let offers = self.offers.len();
        self.offers.extend(offers_after);
        self.packets.push(Packet {
            from: self.bytes.len(),
            len: bytes.len(),
            entries: entries as u32,
            offers: offers..self.offers.len(),
        });
        self.bytes.extend_from_slice(bytes);
    }

    /// The instrument traded, as the feed handler calls it.
    pub(crate) fn symbol(&self) -> Symbol {
        self.symbol
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The payload of a packet, from 0. Its number in the stream is one more.
    pub(crate) fn payload(&self, at: usize) -> &[u8] {
        let packet = &self.packets[at];
        &self.bytes[packet.from..packet.from + packet.len]
    }

    pub(crate) fn entries(&self, at: usize) -> u32 {
        self.packets[at].entries
    }

    /// The best offer after a packet, whether or not it was about the instrument.
    pub(crate) fn offer_after(&self, at: usize) -> Option<Price> {
        let end = self.packets[at].offers.end;
        self.offers[..end].last().copied().flatten()
    }

    /// Makes the naive book wrong on purpose: it has not heard of this packet.
    pub(crate) fn forget_offers(&mut self, at: usize) {
        let packet = &mut self.packets[at];
        packet.offers = packet.offers.start..packet.offers.start;
    }

    /// The last packet that must lead to an order, by a rule that follows from the beginning.
    pub(crate) fn last_with_order(&self) -> Option<usize> {
        let (mut checker, mut prices, mut last) = (Checker { seen: Some(None) }, Vec::new(), None);
        for at in 0..self.len() {
            checker.expect(self.offers(at), &mut prices);
            if !prices.is_empty() {
                last = Some(at);
            }
        }
        last
    }

    /// The best offer after each of its entries about the instrument traded.
    pub(crate) fn offers(&self, at: usize) -> &[Option<Price>] {
        &self.offers[self.packets[at].offers.clone()]
    }
}

/// A seeded sequence of numbers of entries: see [`SIZES`].
struct Sizes(Random);

impl Sizes {
    fn next(&mut self) -> usize {
        let mut which = self.0.below(1_000);
        for (share, from, to) in SIZES {
            if which < share {
                return from + self.0.below((to - from + 1) as u64) as usize;
            }
            which -= share;
        }
        1
    }
}

/// The offers of one instrument, kept the obvious way.
#[derive(Default)]
pub(super) struct NaiveBook {
    orders: BTreeMap<OrderId, Price>,
    offers: BTreeMap<Price, u32>,
}

impl NaiveBook {
    fn apply(&mut self, entry: &LogEntry) {
        if entry.side != Side::Ask {
            return;
        }
        match entry.qty {
            Qty::ZERO => self.remove(entry.order),
            _ => self.put(entry.order, entry.price),
        }
    }

    pub(super) fn has(&self, order: OrderId) -> bool {
        self.orders.contains_key(&order)
    }

    /// An order to sell is in the book at this price, wherever it was before.
    pub(super) fn put(&mut self, order: OrderId, price: Price) {
        self.remove(order);
        self.orders.insert(order, price);
        *self.offers.entry(price).or_default() += 1;
    }

    pub(super) fn remove(&mut self, order: OrderId) {
        if let Some(price) = self.orders.remove(&order) {
            let count = self.offers.get_mut(&price).expect("its price was counted");
            *count -= 1;
            if *count == 0 {
                self.offers.remove(&price);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = NaiveBook::default();
    }

    pub(super) fn best_offer(&self) -> Option<Price> {
        self.offers.keys().next().copied()
    }
}

/// The naive rule: an order at the best offer's price whenever that has changed. When the system under test
/// began to watch is not known beforehand, so it follows from the first order on.
#[derive(Default)]
pub(crate) struct Checker {
    seen: Option<Option<Price>>,
}

impl Checker {
    /// Whether it knows what to expect.
    pub(crate) fn follows(&self) -> bool {
        self.seen.is_some()
    }

    /// The first order has come, and the best offer is this one now: from here on, everything is known.
    pub(crate) fn begin(&mut self, offer: Option<Price>) {
        self.seen = Some(offer);
    }

    /// Puts the prices of the orders that the next packet must lead to into `prices`, in order.
    pub(crate) fn expect(&mut self, offers: &[Option<Price>], prices: &mut Vec<Price>) {
        prices.clear();
        let Some(seen) = &mut self.seen else { return };
        for &offer in offers {
            if offer != *seen {
                *seen = offer;
                prices.extend(offer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::SeqNo;
    use tickwire_venues::channels::BUILT_IN;
    use tickwire_wire::fast::Limits;
    use tickwire_wire::moex::{Decoder, preamble};

    fn log(packets: u64) -> Log {
        let config = LogConfig {
            seed: 7,
            packets,
            templates: Path::new(BUILT_IN),
            entries_max: ENTRIES_MAX,
        };
        Log::generate(&config).expect("the built-in templates publish")
    }

    #[test]
    fn packets_hold_what_they_are_said_to_hold_from_1_to_128_entries() {
        let (one, again) = (log(4_000), log(4_000));
        assert_eq!(one.bytes, again.bytes, "one seed, one log");
        let plan = protocol::templates(Path::new(BUILT_IN)).unwrap();
        let mut decoder = Decoder::new(plan, Limits::default()).unwrap();
        let (mut most, mut ones, mut orders, mut checker, mut prices) = (0, 0, 0, Checker::default(), vec![]);
        for at in 0..one.len() {
            let payload = one.payload(at);
            assert_eq!(preamble(payload).map(u64::from), Some(SeqNo(at as u64 + 1).0));
            let message = decoder.packet(payload).expect("it decodes");
            assert_eq!(message.orders().count() as u32, one.entries(at));
            most = most.max(one.entries(at));
            ones += u32::from(one.entries(at) == 1);
            checker.expect(one.offers(at), &mut prices);
            orders += prices.len();
            if !one.offers(at).is_empty() && !checker.follows() {
                checker.begin(one.offer_after(at));
            }
        }
        assert_eq!(one.len(), 4_000);
        assert!((100..=128).contains(&most), "{most}");
        assert!((2_200..2_600).contains(&ones), "{ones}");
        assert!(orders > 100, "{orders} orders: the best offer hardly moves");
    }

    #[test]
    fn the_naive_rule_orders_at_every_change_of_price_once_it_follows() {
        let p = |n| Some(Price::from_4dp(n));
        let (mut checker, mut prices) = (Checker::default(), vec![]);
        checker.expect(&[p(1), p(2)], &mut prices);
        assert!(prices.is_empty(), "not before the first order");
        checker.begin(p(2));
        checker.expect(&[p(2), p(3), p(3), None, p(3)], &mut prices);
        assert_eq!(prices, [Price::from_4dp(3), Price::from_4dp(3)]);
    }
}
