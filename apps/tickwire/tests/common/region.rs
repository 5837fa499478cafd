//! A daemon of the tests: writes a region with the daemon's own writers, lives, dies and starts again as
//! told.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tickwire_market::{
    BookState, Counter, Counters, Level, Nanos, Price, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_runtime::shared::{REGION_FILE, SharedMemory, SharedView, monotonic};
use tickwire_shm::layout::header;
use tickwire_shm::{
    Auction, BookIdentity, Difference, Identity, Ladder, LastTrade, National, Region, RegionConfig,
    RegionState, Share, SourceIdentity, SourceState, WriteWord,
};

/// 2026-11-21 14:30:00 UTC.
pub(crate) const NOW: u64 = 1_795_271_400_000_000_000;

const CONFIG: RegionConfig = RegionConfig {
    feeds: 2,
    sources: 2,
    histograms: 16,
    books: 8,
    book_levels: 4,
    supers: 4,
    super_shares: 8,
    rings: 1,
    ring_records: 16,
};

/// See the module's description. The folder goes when it goes.
pub(crate) struct Fixture {
    pub(crate) folder: PathBuf,
    memory: Option<SharedMemory>,
}

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

fn level(text: &str, qty: u64, orders: u32) -> Level {
    Level {
        price: price(text),
        qty: Volume(qty),
        orders,
    }
}

fn share(text: &str, qty: u64, orders: u32, feed: u8) -> Share {
    Share {
        price: price(text),
        qty: Volume(qty),
        feed,
        orders,
    }
}

impl Fixture {
    pub(crate) fn new(name: &str) -> Fixture {
        let folder = std::env::temp_dir().join(format!("tickwire-views-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Fixture { folder, memory: None }
    }

    /// A daemon that has published its region and is not ready yet.
    #[allow(dead_code, reason = "each test file uses its own part")]
    pub(crate) fn start(&mut self, generation: u64) {
        self.let_go();
        let layout = CONFIG.layout().expect("a valid configuration");
        let memory =
            SharedMemory::create(&self.folder.join(REGION_FILE), layout.bytes()).expect("shared memory");
        let identity = Identity {
            generation: Nanos(generation),
            pid: 4_242,
        };
        Region::format(memory.words(), &CONFIG, identity).expect("a valid configuration");
        memory.publish().expect("a folder to publish in");
        self.memory = Some(memory);
    }

    /// A daemon that is ready: two feeds, two symbols, a consolidated book of one.
    pub(crate) fn write(&mut self, generation: u64) {
        self.let_go();
        let layout = CONFIG.layout().expect("a valid configuration");
        let memory =
            SharedMemory::create(&self.folder.join(REGION_FILE), layout.bytes()).expect("shared memory");
        let identity = Identity {
            generation: Nanos(generation),
            pid: 4_242,
        };
        let region = Region::format(memory.words(), &CONFIG, identity).expect("a valid configuration");
        fill(&region);
        region.set_state(RegionState::Ready);
        region.heartbeat(monotonic());
        memory.publish().expect("a folder to publish in");
        self.memory = Some(memory);
    }

    /// A heartbeat.
    pub(crate) fn beat(&self) {
        self.beat_at(monotonic().0);
    }

    /// The last heartbeat was a while ago.
    #[allow(dead_code, reason = "each test file uses its own part")]
    pub(crate) fn beat_of_long_ago(&self) {
        self.beat_at(monotonic().0.saturating_sub(3 * Nanos::SECOND));
    }

    fn beat_at(&self, ns: u64) {
        let memory = self.memory.as_ref().expect("a daemon that lives");
        WriteWord::store(&memory.words()[header::HEARTBEAT], ns);
    }

    /// Ends as it should; its file stays.
    #[allow(dead_code, reason = "each test file uses its own part")]
    pub(crate) fn end(&mut self) {
        let memory = self.memory.as_ref().expect("a daemon that lives");
        WriteWord::store(&memory.words()[header::STATE], RegionState::Ended as u64);
        self.let_go();
    }

    /// Is gone without a word; its file stays.
    pub(crate) fn die(&mut self) {
        self.let_go();
    }

    /// Lets go of the memory, and waits until its lock is free: a child that another test just started has a
    /// copy of the descriptor for a moment, until its own program begins.
    fn let_go(&mut self) {
        if self.memory.take().is_none() {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let view = SharedView::open(&self.folder.join(REGION_FILE)).expect("a published region");
        while view.writer_is_alive() {
            assert!(Instant::now() < deadline, "somebody keeps the lock");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn fill<W: WriteWord>(region: &Region<'_, W>) {
    let symbol = |text: &str| Symbol::new(text.as_bytes()).expect("a symbol");
    let identities = [
        ("nasdaq 1", "nasdaq", "itch50", Venue::Nasdaq),
        ("bzx 1", "bzx", "pitch", Venue::Bzx),
    ];
    for (number, (name, feed_name, protocol, venue)) in identities.into_iter().enumerate() {
        let identity = SourceIdentity {
            name: name.into(),
            feed_name: feed_name.into(),
            protocol: protocol.into(),
            feed: number as u8,
            venue: Some(venue),
            ring: Some(0),
        };
        let mut source = region.source(number as u16, &identity);
        let mut counters = Counters::default();
        counters.add(Counter::Messages, 42);
        counters.add(Counter::PacketsA, 12);
        counters.add(Counter::MessagesFiltered, 7);
        source.counters(&counters);
        source.packet(SeqNo(43), Nanos(NOW - 20_000_000));
        source.update(150);
        source.update(1_500);
        let kind = if number == 0 { u16::from(b'A') } else { 0x21 };
        source.kind(kind, 30, 7);
        source.kind_latency(kind, 150);
        source.set_state(SourceState::Live);
    }
    let mut books = region.books();
    for (source, text, bids, asks) in [
        (
            0,
            "AAPL",
            vec![level("187.24", 900, 7), level("187.2305", 100, 1)],
            vec![level("187.26", 300, 3)],
        ),
        (
            1,
            "AAPL",
            vec![level("187.24", 300, 2)],
            vec![level("187.27", 700, 5), level("187.3", 50, 1)],
        ),
        (0, "MSFT", vec![], vec![level("410.5", 10, 1)]),
    ] {
        let identity = BookIdentity {
            source,
            instrument: tickwire_market::InstrumentId(7),
            symbol: symbol(text),
        };
        let mut slot = books.claim(&identity).expect("a slot");
        let mut edit = books.edit(&mut slot);
        edit.cause(SeqNo(42), Nanos(NOW - 13_000_000), Nanos(NOW - 12_000_000));
        edit.state(BookState::Live);
        edit.status(TradingStatus::Trading);
        for (side, levels) in [(Side::Bid, bids), (Side::Ask, asks)] {
            let qty = Volume(levels.iter().map(|level| level.qty.0).sum());
            let orders = levels.iter().map(|level| level.orders).sum();
            edit.totals(side, levels.len() as u32, qty, orders);
            edit.levels_from(side, 0, levels.into_iter());
        }
        let last = LastTrade {
            price: price("187.25"),
            qty: Volume(100),
            venue_ts: Nanos(NOW - 1_000_000_000),
        };
        edit.trade(&last, Volume(12_345), 67);
        if source == 1 {
            edit.auction(&Auction {
                kind: b'C',
                reference: price("187.25"),
                near: Price::ZERO,
                far: Price::ZERO,
                paired: Volume(1_000),
                imbalance: Volume(200),
                side: Some(Side::Bid),
            });
        }
        edit.publish(Nanos(NOW - 11_999_000));
    }
    let mut supers = region.supers();
    let mut slot = supers.claim(symbol("AAPL")).expect("a slot");
    let mut edit = supers.edit(&mut slot);
    edit.feeds(0b11, 0);
    let ladder = |text: &str, qty: u64, feeds: u32, shares: u32| Ladder {
        price: price(text),
        qty: Volume(qty),
        feeds,
        shares,
        levels: 2,
        total_qty: Volume(1_300),
    };
    edit.ladder(Side::Bid, &ladder("187.24", 1_200, 0b11, 3));
    edit.ladder(Side::Ask, &ladder("187.26", 300, 0b01, 3));
    let bids = [
        share("187.24", 900, 7, 0),
        share("187.24", 300, 2, 1),
        share("187.2305", 100, 1, 0),
    ];
    let asks = [
        share("187.26", 300, 3, 0),
        share("187.27", 700, 5, 1),
        share("187.3", 50, 1, 1),
    ];
    edit.shares_from(Side::Bid, 0, bids.into_iter());
    edit.shares_from(Side::Ask, 0, asks.into_iter());
    let national = |text: &str, qty: u64, participant: u8| National {
        price: price(text),
        qty: Volume(qty),
        participant,
    };
    let best = [national("187.24", 1_200, b'Q'), national("187.27", 700, b'Z')];
    edit.national(&best, Nanos(NOW - 15_000_000), Nanos(NOW - 14_000_000));
    let behind = Difference {
        price: -10_000_000,
        since: Nanos(NOW - 12_000_000),
    };
    edit.difference(&[Difference::default(), behind]);
    let last = LastTrade {
        price: price("187.25"),
        qty: Volume(100),
        venue_ts: Nanos(NOW - 1_000_000_000),
    };
    edit.trade(&last, Volume(24_690), 134);
    edit.publish(Nanos(NOW - 12_000_000), Nanos(NOW - 11_998_000));
}
