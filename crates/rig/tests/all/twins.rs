//! What the twin of a channel says, of every feed.

use tickwire_book::{Applied, Books, BooksConfig, Depth};
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::{Channel, FeedState, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth, Twin};
use tickwire_market::{
    BookState, Counter, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Price, Side,
};
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor};
use tickwire_runtime::alloc::count_allocations;

const IT: InstrumentId = InstrumentId(7);
const OFFER: Price = Price::from_4dp(99_9800);
/// Of a twin that quotes: a cent below.
const BID: Price = Price::from_4dp(99_9700);
const ROUNDS: u64 = 20_000;

/// Books, and what their best offer was behind each event.
struct Watched {
    books: Books,
    events: usize,
    offers: [Option<Price>; 8],
    unexpected: Option<MarketEvent>,
}

impl EventSink for Watched {
    fn on_event(&mut self, event: &MarketEvent) {
        let is_of_book = matches!(
            event.kind,
            EventKind::Add | EventKind::Delete | EventKind::Level | EventKind::Quote
        );
        // As most quotes, a rehearsed one has both sides, and its bid stays.
        let is_whole = event.kind != EventKind::Quote || event.price == BID;
        let is_applied = !matches!(self.books.apply(event), Applied::Rejected(_));
        if !(is_of_book
            && is_whole
            && is_applied
            && event.instrument == IT
            && self.events < self.offers.len())
        {
            self.unexpected = Some(*event);
            return;
        }
        let book = self.books.book(IT).expect("there is such a book");
        self.offers[self.events] = book.best(Side::Ask).map(|level| level.price);
        self.events += 1;
    }
}

struct Plays(&'static str);

impl FeedVisitor for Plays {
    type Output = ();

    fn visit<C: Channel>(&mut self, _: Box<dyn Publisher>, channel: C, depth: Depth) {
        play(self.0, &channel, depth);
    }
}

/// Plays a twin of the channel again and again.
fn play<C: Channel>(feed: &str, channel: &C, depth: Depth) {
    let mut twin = channel.twin(IT, OFFER).expect(feed);
    let mut watched = Watched {
        books: Books::new(BooksConfig {
            venue: channel.venue(),
            depth,
            instruments: 8,
            orders: 8,
            levels: 8,
            initial: BookState::Live,
            tracked: true,
        }),
        events: 0,
        offers: [None; 8],
        unexpected: None,
    };
    let ((), count) = count_allocations(|| {
        for round in 0..ROUNDS {
            (watched.events, watched.unexpected) = (0, None);
            let is_played = twin.play(Nanos(1 + round * 10_000), &mut watched);
            assert!(
                is_played && watched.unexpected.is_none(),
                "{feed}: {:?}",
                watched.unexpected
            );
            let offers = &watched.offers[..watched.events];
            // The best there is behind one packet, and another one, or none, behind the next.
            assert_ne!(offers.last(), Some(&Some(OFFER)), "{feed}, {round}");
            assert!(offers.contains(&Some(OFFER)), "{feed}, {round}: {offers:?}");
        }
    });
    assert_eq!((count.allocations, count.releases), (0, 0), "{feed}: {count:?}");
    let counters = twin.channel().counters();
    assert_eq!(counters.get(Counter::PacketsA), 2 + 2 * ROUNDS, "{feed}");
    for nothing in [
        Counter::PacketsDuplicate,
        Counter::Malformed,
        Counter::Gaps,
        Counter::MessagesFiltered,
        Counter::MessagesLost,
        Counter::MessagesUnknown,
        Counter::MessagesDuplicate,
    ] {
        assert_eq!(counters.get(nothing), 0, "{feed}: {nothing:?}");
    }
    assert_eq!(twin.channel().state(), FeedState::Live, "{feed}");
    assert_eq!(
        channel.counters().get(Counter::PacketsA),
        0,
        "the other one's are its own"
    );

    let mut short = channel.twin(IT, OFFER).expect(feed).ending_after(7);
    let played = (0..4).map(|_| short.play(Nanos(1), &mut watched));
    assert_eq!(played.collect::<Vec<_>>(), [true, true, false, false], "{feed}");
    assert!(short.is_over() && !twin.is_over());
    for none in [
        InstrumentId::WHOLE_FEED,
        InstrumentId(1 << 24),
        InstrumentId(u32::MAX),
    ] {
        assert!(
            channel.twin(none, OFFER).is_none(),
            "{feed}: there is no {none:?}"
        );
    }
    // Nothing of another twin is left in a new one.
    let again = channel
        .twin(IT, OFFER)
        .map(|twin| Twin::channel(&twin).counters().get(Counter::PacketsA));
    assert_eq!(again, Some(2), "{feed}");
}

/// For a long time an offer enters and leaves, and no more is said, not even that its feed has begun; nothing
/// is allocated.
#[test]
fn of_every_feed_a_twin_tells_of_its_offers_and_of_nothing_else() {
    for feed in FEEDS {
        feeds::visit(feed, &listings(12), &mut Plays(feed));
    }
}

/// MDP 3.0 has books of two kinds, and its decoder is set up in several ways.
#[test]
fn so_it_is_by_order_and_however_the_decoder_is_set_up() {
    for (depth, executions) in [
        (Mdp3Depth::ByOrder, false),
        (Mdp3Depth::ByOrder, true),
        (Mdp3Depth::ByPrice, false),
    ] {
        let decoder = Mdp3Decoder::new(Mdp3Config {
            depth,
            executions,
            implied: false,
            natural_refresh: depth == Mdp3Depth::ByPrice,
            instruments_max: 64,
            orders_max: 64,
            ..Mdp3Config::default()
        });
        let account = Mdp3Channel::replay_config(310, b"ME", b"PW");
        let channel = Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, account, Nanos::SECOND);
        let books = match depth {
            Mdp3Depth::ByOrder => Depth::ByOrder,
            Mdp3Depth::ByPrice => Depth::ByPrice,
        };
        play("mdp3", &channel, books);
    }
}
