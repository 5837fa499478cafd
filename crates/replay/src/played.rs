//! One recorded channel with its books: what [`crate::replay`] plays packets into, whatever the protocol.

use std::collections::BTreeMap;

use tickwire_book::{Applied, Books, OrderView};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_lab::Histogram;
use tickwire_market::{
    Counters, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, PointValue, Port,
    SeqNo, Side, Symbol, Upcoming,
};
use tickwire_runtime::clock::{Clock, tsc};

/// A channel behind one call per packet.
pub trait Play {
    /// Takes a packet; timers that ran out before it go first.
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8]);
    /// Takes a message of a file without packets.
    fn on_message(&mut self, now: Nanos, message: &[u8]);
    /// A message that is to come soon, at `now`: what it will need of the books is fetched meanwhile. See
    /// [`Channel::preview`].
    fn preview(&mut self, now: Nanos, message: &[u8]) {
        let _ = (now, message);
    }
    /// No packet comes any more.
    fn finish(&mut self, now: Nanos);
    /// The lines of `--step` since the last call.
    fn take_shown(&mut self) -> Vec<String>;
    /// A file of records says an instrument's number and symbol.
    fn name(&mut self, number: u32, symbol: &[u8]) {
        let _ = (number, symbol);
    }
    /// What is known of the feed.
    fn state(&self) -> FeedState;
    /// Number of the message, or of the packet where the venue numbers packets, that is to come next.
    fn next_seq(&self) -> SeqNo;
    /// Counters of the channel and of its books.
    fn counters(&self) -> Counters;
    /// Shows the books to `at`, which may read them. [`of_books`] is the shorter way.
    fn look(&self, at: &mut dyn FnMut(&Books));
    /// Number by symbol, for every instrument that the channel knows.
    fn directory(&self) -> BTreeMap<Symbol, InstrumentId>;
    /// What it cost.
    fn cost(&self) -> &Cost;
    /// What comparing the books with the vendor's own found, where they are compared.
    fn checked(&self) -> Option<&Checked> {
        None
    }
    /// Events that are about orders entered before the recording begins, and changed nothing.
    fn unseen(&self) -> u64 {
        0
    }
}

/// What a file of records is played into: books alone, a backtest or an export with its own.
pub trait Follow {
    /// Whether it hears of an execution when it happens, and where match events end. Books alone change by
    /// the record that comes behind.
    const HEARS_EXECUTIONS: bool;
    /// A record, or a line, was read at its time; what it tells follows. `instrument`: whom it is about, if
    /// that is known.
    fn record(&mut self, now: Nanos, instrument: Option<InstrumentId>) {
        let _ = (now, instrument);
    }
    /// An event, in the order of the file.
    fn event(&mut self, event: &MarketEvent);
    /// An instrument's number and symbol; the step of its prices, and what a point of them is worth, where a
    /// definition said so.
    fn defined(&mut self, instrument: &Instrument, point: Option<PointValue>);
    /// An order that stands in the books.
    fn order(&self, order: OrderId) -> Option<OrderView>;
    /// Shows the books to `at`, which may read them.
    fn look(&self, at: &mut dyn FnMut(&Books));
    /// The lines of `--step` since the last call.
    fn take_shown(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Who keeps the books of a channel, and so sees them around every event: an export, an inspection.
pub trait Keep {
    /// An event, in the order of the channel. The books are as they were before it; it is for this one to
    /// apply it to them, or not.
    fn event(&mut self, event: &MarketEvent, books: &mut Books);
    /// What the venue says about an instrument that the last packet named for the first time, or defined.
    fn defined(&mut self, instrument: &Instrument) {
        let _ = instrument;
    }
    /// A packet of so many bytes (a message, of a file without packets), received at `now`, has told all its
    /// events. `counters` answers with the channel's as of now, which costs some 100 ns.
    fn packet(&mut self, now: Nanos, bytes: usize, counters: &dyn Fn() -> Counters) {
        let _ = (now, bytes, counters);
    }
}

/// Looks at the books of a channel.
pub fn of_books<T>(played: &dyn Play, look: impl FnOnce(&Books) -> T) -> Option<T> {
    let (mut look, mut found) = (Some(look), None);
    played.look(&mut |books| found = look.take().map(|look| look(books)));
    found
}

/// Books compared with the vendor's own.
#[derive(Clone, Default, Debug)]
pub struct Checked {
    /// Rows of the vendor's that were compared.
    pub rows: u64,
    /// Those that the books are equal to.
    pub equal: u64,
    /// Levels of rows that had to follow from the events, where rows show levels that events cannot tell.
    pub levels: u64,
    /// Levels taken from rows because no event told them.
    pub taken: u64,
    /// The first difference.
    pub first: Option<String>,
}

/// Packets of a channel and, where that is asked for, the time they took.
pub struct Cost {
    /// The channel's name, for tables.
    pub name: String,
    /// Packets or messages taken.
    pub packets: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// What they took, where each is timed: that costs as much as a message in the books does.
    pub times: Option<Box<Times>>,
}

/// What packets took.
pub struct Times {
    /// Nanoseconds a packet.
    pub per_packet: Histogram,
    /// Ticks of the processor spent on all.
    pub busy_ticks: u64,
    clock: Clock,
}

impl Times {
    /// Nanoseconds spent on all.
    pub fn busy_ns(&self) -> u64 {
        self.clock.span_ns(self.busy_ticks)
    }
}

impl Cost {
    /// Nothing taken yet, and nothing timed.
    pub fn new(name: String) -> Cost {
        Cost {
            name,
            packets: 0,
            bytes: 0,
            times: None,
        }
    }

    /// Nothing taken yet; every packet is timed by the processor's ticks.
    pub fn timed(name: String, clock: Clock) -> Cost {
        let times = Times {
            per_packet: Histogram::new(),
            busy_ticks: 0,
            clock,
        };
        Cost {
            times: Some(Box::new(times)),
            ..Cost::new(name)
        }
    }

    /// A packet begins: what [`Cost::note`] wants to know when it is done.
    #[inline]
    pub fn begin(&self) -> u64 {
        match self.times {
            Some(_) => tsc(),
            None => 0,
        }
    }

    /// A packet of so many bytes, which began at `begin`, is done.
    #[inline]
    pub fn note(&mut self, begin: u64, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
        if let Some(times) = &mut self.times {
            let ticks = tsc() - begin;
            times.busy_ticks += ticks;
            times.per_packet.record(times.clock.span_ns(ticks));
        }
    }
}

/// The books, and the events of one packet for `--step`.
struct Player {
    books: Books,
    shown: Option<Vec<String>>,
    kept: Option<Kept>,
}

/// Somebody who keeps the books.
struct Kept {
    keep: Box<dyn Keep>,
    /// Which instruments it was told of.
    known: Vec<bool>,
    /// Those that the packet under way has named for the first time, or defined.
    news: Vec<InstrumentId>,
}

impl Kept {
    fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        let at = event.instrument.index();
        if event.instrument != InstrumentId::WHOLE_FEED
            && (event.kind == EventKind::Definition || !self.known.get(at).copied().unwrap_or(true))
        {
            self.news.push(event.instrument);
            if let Some(known) = self.known.get_mut(at) {
                *known = true;
            }
        }
        self.keep.event(event, books);
    }
}

impl EventSink for Player {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if let Some(kept) = &mut self.kept {
            return kept.event(event, &mut self.books);
        }
        let applied = self.books.apply(event);
        if let Some(shown) = &mut self.shown {
            shown.push(describe(event, &applied));
        }
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.books.upcoming(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }
}

/// One event as a line of `--step`.
pub fn describe(e: &MarketEvent, applied: &Applied<'_>) -> String {
    let mut text = format!("  {:>9} {:?} instrument {}", e.seq.0, e.kind, e.instrument.0);
    if e.order_id != OrderId(0) {
        text += &format!(" order {} {:?} {} @ {}", e.order_id.0, e.side, e.qty, e.price);
    }
    match applied {
        Applied::Update(u) => {
            let side = |s: Side| u.best(s).map_or("-".into(), |(p, q)| format!("{q} @ {p}"));
            text += &format!("   => {} | {}  {:?}", side(Side::Bid), side(Side::Ask), u.state);
        }
        Applied::Feed(state) => text += &format!("   => all books {state:?}"),
        Applied::Rejected(reason) => text += &format!("   => rejected: {reason}"),
        Applied::None => {}
    }
    text
}

/// See [`Play`].
pub struct Played {
    channel: Box<dyn Channel>,
    player: Player,
    cost: Cost,
}

impl Played {
    /// Nothing played yet. `is_stepping`: the events of each packet are kept as text for `--step`.
    pub fn new(cost: Cost, channel: Box<dyn Channel>, books: Books, is_stepping: bool) -> Played {
        Played {
            channel,
            player: Player {
                books,
                shown: is_stepping.then(Vec::new),
                kept: None,
            },
            cost,
        }
    }

    /// Lets somebody keep the books from now on.
    pub(crate) fn keep(&mut self, keep: Box<dyn Keep>) {
        let instruments = self.player.books.config().instruments as usize;
        self.player.kept = Some(Kept {
            keep,
            known: vec![false; instruments],
            news: Vec::new(),
        });
    }

    /// A packet has told all its events.
    fn told(&mut self, now: Nanos, bytes: usize) {
        let Some(kept) = &mut self.player.kept else { return };
        for id in kept.news.drain(..) {
            match self.channel.instrument(id) {
                Some(instrument) => kept.keep.defined(instrument),
                None => {
                    if let Some(known) = kept.known.get_mut(id.index()) {
                        *known = false;
                    }
                }
            }
        }
        kept.keep.packet(now, bytes, &|| self.channel.counters());
    }
}

impl Play for Played {
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8]) {
        let begin = self.cost.begin();
        if self.channel.poll_timeout().is_some_and(|t| t <= now) {
            self.channel.handle_timeout(now, &mut self.player);
        }
        self.channel
            .on_datagram_dyn(now, port, line, bytes, &mut self.player);
        self.told(now, bytes.len());
        self.cost.note(begin, bytes.len());
    }

    fn on_message(&mut self, now: Nanos, message: &[u8]) {
        let begin = self.cost.begin();
        self.channel.on_message_dyn(now, message, &mut self.player);
        self.told(now, message.len() + 2);
        self.cost.note(begin, message.len() + 2);
    }

    fn preview(&mut self, now: Nanos, message: &[u8]) {
        self.channel.preview_dyn(now, message, &mut self.player);
    }

    fn finish(&mut self, now: Nanos) {
        self.channel.handle_timeout(now, &mut self.player);
    }

    fn take_shown(&mut self) -> Vec<String> {
        self.player.shown.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn state(&self) -> FeedState {
        self.channel.state()
    }

    fn next_seq(&self) -> SeqNo {
        self.channel.next_seq()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        all.merge(self.player.books.counters());
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.player.books);
    }

    fn directory(&self) -> BTreeMap<Symbol, InstrumentId> {
        let mut known = BTreeMap::new();
        self.channel.instruments(&mut |i| {
            known.insert(i.symbol, i.id);
        });
        known
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }
}
