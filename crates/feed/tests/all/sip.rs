//! Consolidated quotes to events: CQS and UQDF, participants and national best, filters, refusals, lines and
//! gaps.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{
    ArbiterConfig, Context, CqsDecoder, CqsFeed, Decoder, FeedState, Line, Rule, SipConfig, UqdfDecoder,
    UqdfFeed,
};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, MessageType, Nanos,
    Price, Qty, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_testdata as testdata;
use tickwire_wire::cqs::{
    self, BestLong, BestShort, BlockBuilder, BlockHeader, Control, ControlType, LongQuote, ShortQuote,
    UnixTime,
};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::uqdf::{self, BoloLong, NbboLong, QuoteLong};

const TIME: u64 = 1_775_535_399_000_000_001;

#[derive(Default)]
struct Heard(Vec<MarketEvent>);

impl EventSink for Heard {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0.push(*event);
    }
}

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

fn config(symbols: Option<&[&str]>) -> SipConfig {
    SipConfig {
        instruments_max: 4,
        symbols: symbols.map(|s| s.iter().map(|s| Symbol::new(s.as_bytes()).unwrap()).collect()),
    }
}

fn decode(decoder: &mut impl Decoder, message: &[u8]) -> (Vec<MarketEvent>, Counters) {
    let (mut heard, mut counters) = (Heard::default(), Counters::default());
    let context = Context {
        seq: SeqNo(7),
        received: Nanos(99),
        flags: EventFlags::LAST,
    };
    decoder.decode(context, message, &mut counters, &mut heard);
    let may = decoder.preview(message, &mut Heard::default());
    let heard_of_feed = heard.0.iter().any(|e| e.kind != EventKind::Gap);
    assert!(may || !heard_of_feed, "preview denies what decode tells");
    assert!(heard.0.is_empty() || heard.0.last().unwrap().flags.has(EventFlags::LAST));
    (heard.0, counters)
}

fn short(event: &MarketEvent) -> (EventKind, u32, String, String, u64, String, u64) {
    let code = event.code.map(|c| if c == 0 { '.' } else { c.into() });
    let code = code.iter().collect::<String>();
    let (bid, ask) = (event.price.to_string(), event.ask_price.to_string());
    (
        event.kind,
        event.instrument.0,
        code,
        bid,
        event.qty.0,
        ask,
        event.ask_qty.0,
    )
}

fn quote(
    id: u32,
    code: &str,
    bid: (&str, u64),
    ask: (&str, u64),
) -> (EventKind, u32, String, String, u64, String, u64) {
    (
        EventKind::Quote,
        id,
        code.to_string(),
        bid.0.to_string(),
        bid.1,
        ask.0.to_string(),
        ask.1,
    )
}

fn cqs_quote(participant: u8, symbol: &str, national: u8) -> LongQuote {
    LongQuote {
        symbol: Alpha::new(symbol.as_bytes()).unwrap(),
        condition: Char(b'R'),
        bid_price: Scaled(29_450_000.into()),
        bid_size: 100.into(),
        offer_price: Scaled(29_470_000.into()),
        offer_size: 300.into(),
        national_bbo: Char(national),
        ..LongQuote::at(participant, UnixTime::from_nanos(TIME))
    }
}

/// As a block would carry it.
fn cqs_message(parts: &[&[u8]]) -> Vec<u8> {
    let mut buffer = [0; 1000];
    let mut block = BlockBuilder::new(
        &mut buffer,
        BlockHeader::at(cqs::Feed::Quotes, 1, UnixTime::from_nanos(0)),
    );
    assert!(block.push(parts));
    let size = block.finish();
    cqs::parse_block(&buffer[..size])
        .unwrap()
        .messages
        .next()
        .unwrap()
        .to_vec()
}

fn best_long(participant: u8, price: u64, size: u32) -> BestLong {
    BestLong {
        participant: Char(participant),
        condition: Char(b'R'),
        price: Scaled(price.into()),
        size: size.into(),
        ..BestLong::BLANK
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Siac/Cqs.Cta.v1.91")]
#[test]
fn a_recorded_cqs_quote_tells_participant_and_national_best() {
    let file = testdata::captures("packets/Siac/Cqs.Cta.v1.91/LongQuoteMessage.pcap");
    let packet = testdata::pcap_payloads(&file).remove(0);
    let message = cqs::parse_block(&packet).unwrap().messages.next().unwrap();
    let (events, counters) = decode(&mut CqsDecoder::new(&config(None)), message);
    assert_eq!(counters, Counters::default());
    let expected = [
        quote(1, "KR......", ("29.45", 1), ("29.47", 1)),
        quote(1, ".ZZA....", ("29.46", 3), ("29.47", 2)),
    ];
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), expected);
    let [own, national] = events[..] else { panic!() };
    assert_eq!(
        (own.venue, own.venue_ts, own.seq),
        (Venue::Cqs, Nanos(1_540_480_512_526_286_000), SeqNo(7))
    );
    assert_eq!((own.flags, national.flags), (EventFlags::NONE, EventFlags::LAST));
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Uqdf.Output.Utp.v1.5")]
#[test]
fn a_recorded_uqdf_quote_tells_participant_and_national_best() {
    let file = testdata::captures("packets/Nasdaq/Uqdf.Output.Utp.v1.5/QuoteLongFormMessage.pcap");
    let packet = testdata::pcap_payloads(&file).remove(0);
    let mut feed = UqdfFeed::new(
        ArbiterConfig {
            start: tickwire_feed::Start::Here,
            ..ArbiterConfig::default()
        },
        UqdfDecoder::new(&config(None)),
    );
    let mut heard = Heard::default();
    feed.on_packet(Nanos(1), Line::A, &packet, &mut heard);
    let expected = [
        quote(1, "KR......", ("767.25", 3), ("767.31", 2)),
        quote(1, ".KZA....", ("767.25", 3), ("767.26", 1)),
    ];
    assert_eq!(heard.0.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(
        feed.filter().instruments().next().unwrap().symbol.as_str(),
        "AMZN"
    );
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Uqdf.Output.Utp.v1.5")]
#[test]
fn a_recorded_price_band_is_told_apart_from_quotes() {
    let file =
        testdata::captures("packets/Nasdaq/Uqdf.Output.Utp.v1.5/LimitUpLimitDownPriceBandMessage.pcap");
    let packet = testdata::pcap_payloads(&file).remove(0);
    let (events, _) = decode(&mut UqdfDecoder::new(&config(None)), &packet[22..]);
    assert_eq!(
        events.iter().map(short).collect::<Vec<_>>(),
        [quote(1, "lC......", ("8.87", 0), ("10.84", 0))]
    );
}

#[test]
fn every_effect_on_the_national_best_leaves_the_other_side_as_it_was() {
    let mut decoder = CqsDecoder::new(&config(None));
    let mut say = |national: u8, appendages: &[&[u8]]| {
        let message = cqs_quote(b'N', "WIRE", national);
        let parts: Vec<&[u8]> = [message.as_bytes()]
            .into_iter()
            .chain(appendages.iter().copied())
            .collect();
        let (events, counters) = decode(&mut decoder, &cqs_message(&parts));
        assert_eq!(counters, Counters::default());
        assert_eq!(
            short(&events[0]),
            quote(1, "NR......", ("29.45", 100), ("29.47", 300))
        );
        events.get(1).map(short)
    };
    let short_best = BestShort {
        participant: Char(b'Z'),
        price: Scaled(2946.into()),
        size: 7.into(),
    };
    let long_best = best_long(b'K', 29_465_000, 8);
    assert_eq!(say(b' ', &[]), None);
    assert_eq!(say(b'A', &[]), None);
    assert_eq!(
        say(b'G', &[]),
        Some(quote(1, ".NN.....", ("29.45", 100), ("29.47", 300)))
    );
    assert_eq!(
        say(b'D', &[long_best.as_bytes()]),
        Some(quote(1, ".NK.....", ("29.45", 100), ("29.465", 8)))
    );
    assert_eq!(
        say(b'P', &[short_best.as_bytes()]),
        Some(quote(1, ".ZK.....", ("29.46", 7), ("29.465", 8)))
    );
    assert_eq!(
        say(b'K', &[]),
        Some(quote(1, "..K.....", ("0.00", 0), ("29.465", 8)))
    );
    assert_eq!(
        say(b'B', &[]),
        Some(quote(1, "..N.....", ("0.00", 0), ("29.47", 300)))
    );
    assert_eq!(
        say(b'O', &[]),
        Some(quote(1, "........", ("0.00", 0), ("0.00", 0)))
    );
}

#[test]
fn conditions_retail_interest_and_limit_states_stand_in_the_code() {
    let mut decoder = CqsDecoder::new(&config(None));
    let told = LongQuote {
        condition: Char(b'C'),
        retail_interest: Char(b'C'),
        luld: Char(b'A'),
        market_condition: Char(b'B'),
        short_sale_restriction: Char(b'A'),
        sip_generated: Char(b'S'),
        ..cqs_quote(b'T', "WIRE", b' ')
    };
    let (events, _) = decode(&mut decoder, told.as_bytes());
    assert_eq!(short(&events[0]).2, "TCCABAS.");
    assert!(events[0].flags.has(EventFlags::NOT_FIRM.with(EventFlags::LAST)));
}

#[test]
fn halts_resumptions_and_bands_of_cqs() {
    let mut decoder = CqsDecoder::new(&config(None));
    let mut say = |status: u8, participant: u8| {
        let message = LongQuote {
            security_status: Char(status),
            condition: Char(b' '),
            ..cqs_quote(participant, "WIRE", b' ')
        };
        let (events, _) = decode(&mut decoder, message.as_bytes());
        events
            .iter()
            .map(|e| (e.kind, e.status, short(e).2))
            .collect::<Vec<_>>()
    };
    let own = |code: &str| (EventKind::Quote, TradingStatus::Unknown, code.to_string());
    let status = |status, code: &str| (EventKind::Status, status, code.to_string());
    assert_eq!(
        say(b'P', b'N'),
        [status(TradingStatus::Halted, "PN......"), own("NP......")]
    );
    assert_eq!(
        say(b'G', b'N'),
        [status(TradingStatus::QuoteOnly, "GN......"), own("NG......")]
    );
    assert_eq!(
        say(b'T', b'N'),
        [status(TradingStatus::Trading, "TN......"), own("NT......")]
    );
    assert_eq!(say(b'I', b'N'), [own("NI......")]);
    assert_eq!(say(b'0', b'S'), [own("l0......")]);
}

#[test]
fn a_book_of_consolidated_quotes_is_the_national_best() {
    let mut books = Books::new(BooksConfig {
        venue: Venue::Cqs,
        depth: Depth::ByPrice,
        instruments: 8,
        orders: 0,
        levels: 1024,
        ..BooksConfig::default()
    });
    let mut decoder = CqsDecoder::new(&config(None));
    let (best_bid, best_offer) = (best_long(b'Z', 29_460_000, 3), best_long(b'K', 29_465_000, 8));
    let first = cqs_quote(b'N', "WIRE", b'U');
    let messages = [
        cqs_message(&[first.as_bytes(), best_bid.as_bytes(), best_offer.as_bytes()]),
        cqs_message(&[cqs_quote(b'P', "WIRE", b'A').as_bytes()]),
    ];
    for message in messages {
        decode(&mut decoder, &message).0.iter().for_each(|event| {
            books.apply(event);
        });
    }
    let book = books.book(InstrumentId(1)).unwrap();
    let top = |side| book.best(side).map(|level| (level.price, level.qty));
    assert_eq!(top(Side::Bid), Some((price("29.46"), Volume(3))));
    assert_eq!(top(Side::Ask), Some((price("29.465"), Volume(8))));
}

#[test]
fn unwanted_symbols_are_counted_and_short_and_long_forms_name_the_same_one() {
    let mut decoder = CqsDecoder::new(&config(Some(&["WIRE", "OTHER"])));
    let quote = ShortQuote {
        symbol: Alpha::new(b"WIRE").unwrap(),
        ..ShortQuote::at(b'N', UnixTime::from_nanos(TIME))
    };
    let (events, _) = decode(&mut decoder, quote.as_bytes());
    assert_eq!(
        (events[0].instrument, events[0].venue_ts),
        (InstrumentId(1), Nanos(TIME))
    );
    let (events, _) = decode(&mut decoder, cqs_quote(b'N', "WIRE", b' ').as_bytes());
    assert_eq!(events[0].instrument, InstrumentId(1));
    let (events, counters) = decode(&mut decoder, cqs_quote(b'N', "NOBODY", b' ').as_bytes());
    assert_eq!((events, counters.get(Counter::MessagesFiltered)), (vec![], 1));
}

#[test]
fn an_instrument_beyond_the_capacity_is_passed_over_and_counted() {
    let mut decoder = CqsDecoder::new(&config(None));
    for (n, symbol) in ["A", "B", "C", "D", "E", "A"].into_iter().enumerate() {
        let (events, counters) = decode(&mut decoder, cqs_quote(b'N', symbol, b' ').as_bytes());
        assert_eq!(events.len(), usize::from(n != 4));
        assert_eq!(counters.get(Counter::BookFull), u64::from(n == 4));
    }
    let (events, counters) = decode(&mut decoder, cqs_quote(b'N', "", b' ').as_bytes());
    assert_eq!(
        (
            events.len(),
            counters.get(Counter::Malformed) + counters.get(Counter::BookFull)
        ),
        (0, 1)
    );
}

#[test]
fn the_directory_knows_lots_and_test_instruments() {
    let mut decoder = CqsDecoder::new(&config(None));
    let reference = cqs::SymbolReferenceData {
        symbol: Alpha::new(b"WIRE").unwrap(),
        round_lot_size: 40.into(),
        test: Char(b'Y'),
        ..cqs::SymbolReferenceData::at(b'S', UnixTime::from_nanos(TIME))
    };
    let (events, _) = decode(&mut decoder, reference.as_bytes());
    assert_eq!(
        (events[0].kind, events[0].instrument),
        (EventKind::Definition, InstrumentId(1))
    );
    let instrument = decoder.filter().instrument(InstrumentId(1)).unwrap();
    assert_eq!(
        (instrument.symbol.as_str(), instrument.lot, instrument.is_test),
        ("WIRE", Qty(40), true)
    );
    assert_eq!(decoder.filter().instrument(InstrumentId(0)), None);
}

#[test]
fn a_quote_that_cannot_be_read_is_a_gap_of_its_instrument() {
    let mut decoder = CqsDecoder::new(&config(None));
    let beyond = LongQuote {
        bid_price: Scaled(u64::MAX.into()),
        ..cqs_quote(b'N', "WIRE", b'G')
    };
    let cut = cqs_quote(b'N', "WIRE", b'U');
    let indicator = cqs_quote(b'N', "WIRE", b'#');
    for message in [beyond.as_bytes(), cut.as_bytes(), indicator.as_bytes()] {
        let (events, counters) = decode(&mut decoder, message);
        assert_eq!(counters.get(Counter::Malformed), 1);
        assert_eq!(
            (events[0].kind, events[0].instrument, events[0].ref_id),
            (EventKind::Gap, InstrumentId(1), 8)
        );
    }
    let (events, _) = decode(&mut decoder, cqs_quote(b'N', "WIRE", b'F').as_bytes());
    assert_eq!(
        short(&events[1]),
        quote(1, ".N......", ("29.45", 100), ("0.00", 0)),
        "nothing of a refused one was kept"
    );
    let mut unknown = cqs_quote(b'N', "WIRE", b' ');
    unknown.header.kind = Char(b'?');
    let (events, counters) = decode(&mut decoder, unknown.as_bytes());
    assert_eq!((events.len(), counters.get(Counter::MessagesUnknown)), (0, 1));
}

fn uqdf_quote(originator: u8, symbol: &str, nbbo: u8) -> QuoteLong {
    QuoteLong {
        symbol: Alpha::new(symbol.as_bytes()).unwrap(),
        condition: Char(b'R'),
        bid_price: Scaled(29_450_000.into()),
        bid_size: 100.into(),
        ask_price: Scaled(29_470_000.into()),
        ask_size: 300.into(),
        nbbo: Char(nbbo),
        ..QuoteLong::at(originator, TIME)
    }
}

#[test]
fn a_wipe_out_voids_every_quote_of_its_originator_and_the_national_best_it_was() {
    let mut decoder = UqdfDecoder::new(&config(None));
    let nbbo = NbboLong {
        bid_market_center: Char(b'K'),
        bid_price: Scaled(29_460_000.into()),
        bid_size: 5.into(),
        ask_market_center: Char(b'Q'),
        ask_price: Scaled(29_470_000.into()),
        ask_size: 300.into(),
        ..NbboLong::BLANK
    };
    decode(
        &mut decoder,
        &[uqdf_quote(b'Q', "WIRE", b'3').as_bytes(), nbbo.as_bytes()].concat(),
    );
    decode(&mut decoder, uqdf_quote(b'K', "OTHER", b'0').as_bytes());
    // Of the others' asks the larger one is the best, though it came later.
    for (originator, size) in [(b'N', 100), (b'P', 200), (b'Z', 100)] {
        let other = QuoteLong {
            ask_price: Scaled(29_480_000.into()),
            ask_size: size.into(),
            ..uqdf_quote(originator, "WIRE", b'0')
        };
        decode(&mut decoder, other.as_bytes());
    }
    let slow = QuoteLong {
        condition: Char(b'F'),
        ..uqdf_quote(b'Y', "WIRE", b'0')
    };
    decode(&mut decoder, slow.as_bytes());
    let wipe = uqdf::Control::new(uqdf::ControlType::QuoteWipeOut, b'Q', TIME);
    let (events, _) = decode(&mut decoder, wipe.as_bytes());
    let expected = [
        quote(1, "Q.......", ("0.00", 0), ("0.00", 0)),
        quote(1, ".KP.....", ("29.46", 5), ("29.48", 200)),
    ];
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(decode(&mut decoder, wipe.as_bytes()).0, []);
}

#[test]
fn statuses_and_odd_lots_of_uqdf() {
    let mut decoder = UqdfDecoder::new(&config(None));
    let halt = uqdf::TradingAction {
        symbol: Alpha::new(b"WIRE").unwrap(),
        action: Char(b'P'),
        reason: Alpha::new(b"LUDP").unwrap(),
        ..uqdf::TradingAction::at(b'E', TIME)
    };
    let (events, _) = decode(&mut decoder, halt.as_bytes());
    assert_eq!(
        (events[0].status, short(&events[0]).2.as_str()),
        (TradingStatus::Paused, "LUDP....")
    );
    assert_eq!((events[0].venue_ts, events[0].venue), (Nanos(TIME), Venue::Uqdf));
    let open = uqdf::Control::new(uqdf::ControlType::SessionOpen, b'E', TIME);
    let (events, _) = decode(&mut decoder, open.as_bytes());
    assert_eq!(
        (events[0].instrument, events[0].status),
        (InstrumentId::WHOLE_FEED, TradingStatus::Trading)
    );
    let odd = uqdf::OddLotQuoteLong {
        symbol: Alpha::new(b"WIRE").unwrap(),
        bolo: Char(b'3'),
        odd_lot_type: Char(b'0'),
        ..uqdf::OddLotQuoteLong::at(b'Q', TIME)
    };
    let best = BoloLong {
        bid_market_center: Char(b'P'),
        bid_price: Scaled(29_461_000.into()),
        bid_size: 7.into(),
        ..BoloLong::BLANK
    };
    let (events, _) = decode(&mut decoder, &[odd.as_bytes(), best.as_bytes()].concat());
    assert_eq!(
        events
            .iter()
            .map(|e| (short(e).2, e.price, e.qty.0))
            .collect::<Vec<_>>(),
        [("oP .....".to_string(), price("29.461"), 7)]
    );
    let quiet = uqdf::OddLotQuoteLong {
        bolo: Char(b'0'),
        ..odd
    };
    assert_eq!(decode(&mut decoder, quiet.as_bytes()).0, []);
}

#[test]
fn what_is_lost_for_good_makes_each_book_stale_until_both_sides_of_its_national_best_are_said() {
    let mut decoder = UqdfDecoder::new(&config(None));
    decode(&mut decoder, uqdf_quote(b'Q', "WIRE", b'4').as_bytes());
    let mut heard = Heard::default();
    decoder.lose(SeqNo(9), Nanos(1), &mut heard);
    let kinds = |events: &[MarketEvent]| {
        events
            .iter()
            .map(|e| (e.kind, e.instrument.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&heard.0), [(EventKind::Gap, 1)]);
    let quoted = |n| (EventKind::Quote, n);
    let (events, _) = decode(&mut decoder, uqdf_quote(b'K', "WIRE", b'0').as_bytes());
    assert_eq!(kinds(&events), [quoted(1)], "nothing said of the national best");
    let (events, _) = decode(&mut decoder, uqdf_quote(b'K', "WIRE", b'4').as_bytes());
    assert_eq!(kinds(&events), [quoted(1), quoted(1), (EventKind::Recovered, 1)]);
    let (events, _) = decode(&mut decoder, uqdf_quote(b'K', "LATER", b'0').as_bytes());
    assert_eq!(
        kinds(&events),
        [(EventKind::Gap, 2), quoted(2)],
        "its directory and first quotes may have been among the lost"
    );
    let recap = uqdf::CloseRecap {
        symbol: Alpha::new(b"LATER").unwrap(),
        bid_market_center: Char(b'P'),
        bid_price: Scaled(29_440_000.into()),
        bid_size: 700.into(),
        attachments: 1.into(),
        ..uqdf::CloseRecap::at(b'E', TIME)
    };
    let close = uqdf::MarketCenterClose {
        market_center: Char(b'P'),
        bid_price: Scaled(29_440_000.into()),
        bid_size: 700.into(),
        ..uqdf::MarketCenterClose::BLANK
    };
    let (events, _) = decode(&mut decoder, &[recap.as_bytes(), close.as_bytes()].concat());
    assert_eq!(
        events[..2].iter().map(short).collect::<Vec<_>>(),
        [
            quote(2, "P.......", ("29.44", 700), ("0.00", 0)),
            quote(2, ".P......", ("29.44", 700), ("0.00", 0)),
        ]
    );
    assert_eq!(events[2].kind, EventKind::Recovered);
}

/// The numbers of the instruments of which a rule such as `+A*` changes whether they are wanted.
fn select(decoder: &mut CqsDecoder, rule: &str) -> Vec<u32> {
    let mut changed = Vec::new();
    let rule = Rule {
        pattern: rule[1..].parse().unwrap(),
        wanted: rule.starts_with('+'),
    };
    decoder.select(rule, &mut |id| changed.push(id.0)).unwrap();
    changed
}

#[test]
fn subscriptions_change_while_messages_come() {
    let mut decoder = CqsDecoder::new(&config(Some(&["WIRE"])));
    let symbol = |text: &str| Symbol::new(text.as_bytes()).unwrap();
    let count =
        |decoder: &mut CqsDecoder, text| decode(decoder, cqs_quote(b'N', text, b' ').as_bytes()).0.len();
    assert_eq!((count(&mut decoder, "WIRE"), count(&mut decoder, "MORE")), (1, 0));
    assert_eq!(select(&mut decoder, "+MORE"), [2]);
    assert_eq!(select(&mut decoder, "-WIRE"), [1]);
    assert_eq!((count(&mut decoder, "WIRE"), count(&mut decoder, "MORE")), (0, 1));
    assert_eq!(select(&mut decoder, "+W*"), [1]);
    assert_eq!(select(&mut decoder, "+WIRE"), [0; 0]);
    assert_eq!((count(&mut decoder, "WIRE"), count(&mut decoder, "WE")), (1, 1));
    assert_eq!(count(&mut decoder, "OTHER"), 0);
    assert_eq!(select(&mut decoder, "-WIR?"), [1]);
    assert_eq!((count(&mut decoder, "WIRE"), count(&mut decoder, "WE")), (0, 1));
    assert_eq!(
        decoder.filter().find(&symbol("OTHER")),
        Some(InstrumentId(4)),
        "known, not wanted"
    );
    assert_eq!(select(&mut decoder, "+E"), [0; 0], "four at most");
    let mut all = CqsDecoder::new(&config(None));
    assert_eq!(select(&mut all, "-WIRE"), [0; 0], "not known yet");
    assert_eq!((count(&mut all, "WIRE"), count(&mut all, "MORE")), (0, 1));
    assert_eq!(select(&mut all, "+*"), [1]);
    assert_eq!(count(&mut all, "WIRE"), 1);
    let mut kinds = Vec::new();
    all.filter()
        .kinds(&mut |kind, seen| kinds.push((kind, seen.seen, seen.filtered)));
    assert_eq!(kinds, [(MessageType::of_letters(b'Q', b'L'), 3, 1)]);
    assert_eq!(all.seen_of_instrument(InstrumentId(1)).passed(), 1);
}

/// A block of regular quotes, one message a number; the bid's size is the number.
fn block(first: u32, last: u32, retransmitted: bool) -> Vec<u8> {
    let mut buffer = vec![0; 1000];
    let mut header = BlockHeader::at(cqs::Feed::Quotes, first, UnixTime::from_nanos(TIME));
    if retransmitted {
        header.transmission = cqs::Transmission::Retransmitted.into();
    }
    let mut builder = BlockBuilder::new(&mut buffer, header);
    for n in first..=last {
        let quote = LongQuote {
            bid_size: n.into(),
            ..cqs_quote(b'N', "WIRE", b'A')
        };
        assert!(builder.push(&[quote.as_bytes()]));
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

fn control(control: ControlType, seq: u32) -> Vec<u8> {
    let mut buffer = vec![0; 46];
    let time = UnixTime::from_nanos(TIME);
    let mut builder = BlockBuilder::new(&mut buffer, BlockHeader::at(cqs::Feed::Quotes, seq, time));
    assert!(builder.push(&[Control::new(control, time).as_bytes()]));
    assert_eq!(builder.finish(), 46);
    buffer
}

struct Lines {
    feed: CqsFeed,
    now: Nanos,
}

impl Lines {
    fn new() -> Lines {
        let config = ArbiterConfig {
            line_wait_ns: 1000,
            ..ArbiterConfig::default()
        };
        Lines {
            feed: CqsFeed::new(config, CqsDecoder::new(&self::config(None))),
            now: Nanos(1),
        }
    }

    /// Numbers of the quotes told, `-n` for a gap that begins at n, 0 for anything else.
    fn take(&mut self, line: Line, packet: &[u8]) -> Vec<i64> {
        let mut heard = Heard::default();
        self.feed.on_packet(self.now, line, packet, &mut heard);
        let number = |e: &MarketEvent| match e.kind {
            EventKind::Quote => {
                assert_eq!(e.seq.0, e.qty.0);
                e.seq.0 as i64
            }
            EventKind::Gap => -(e.seq.0 as i64),
            _ => 0,
        };
        heard.0.iter().map(number).collect()
    }
}

#[test]
fn two_lines_are_one_and_line_integrity_reveals_what_both_lost() {
    let mut lines = Lines::new();
    assert_eq!(lines.take(Line::A, &control(ControlType::LineIntegrity, 0)), [0]);
    let begins = lines.take(Line::A, &control(ControlType::StartOfDay, 0));
    assert_eq!(begins, [0, 0], "cleared, and whole again");
    assert_eq!(lines.take(Line::B, &control(ControlType::StartOfDay, 0)), []);
    assert_eq!(lines.take(Line::A, &block(1, 2, false)), [1, 2]);
    assert_eq!(lines.take(Line::B, &block(1, 2, false)), []);
    assert_eq!(lines.take(Line::B, &block(3, 3, false)), [3]);
    assert_eq!(lines.take(Line::A, &control(ControlType::LineIntegrity, 3)), []);
    assert_eq!(lines.feed.state(), FeedState::Live);
    assert_eq!(lines.take(Line::A, &control(ControlType::LineIntegrity, 5)), [-4]);
    lines.now = Nanos(5000);
    lines.feed.handle_timeout(lines.now, &mut Heard::default());
    assert_eq!(
        lines.feed.poll_missing().map(|r| (r.first.0, r.count)),
        Some((4, 2))
    );
    assert_eq!(lines.feed.poll_transmit(&mut [0; 64]), None);
    assert_eq!(lines.take(Line::Retransmit, &block(4, 5, true)), [4, 5, 0]);
    assert_eq!(lines.feed.state(), FeedState::Live);
    assert_eq!(lines.take(Line::A, &control(ControlType::EndOfDay, 6)), [0]);
}

#[test]
fn line_integrity_of_a_new_day_makes_the_numbers_begin_anew() {
    let mut lines = Lines::new();
    assert_eq!(lines.take(Line::A, &block(1, 3, false)), [0, 1, 2, 3]);
    let mut told = Vec::new();
    for second in [10, 20, 30] {
        lines.now = Nanos(second * Nanos::SECOND);
        told.extend(lines.take(Line::A, &control(ControlType::LineIntegrity, 0)));
    }
    assert_eq!(told, [0, 0], "cleared, and whole again");
    assert_eq!(lines.take(Line::A, &block(1, 2, false)), [1, 2]);
}

#[test]
fn a_block_with_a_wrong_checksum_is_lost_on_its_line_only() {
    let mut lines = Lines::new();
    assert_eq!(lines.take(Line::A, &block(1, 1, false)), [0, 1]);
    let mut wrong = block(2, 2, false);
    wrong[70] ^= 1;
    assert_eq!(lines.take(Line::A, &wrong), []);
    assert_eq!(lines.feed.counters().get(Counter::Malformed), 1);
    assert_eq!(lines.take(Line::B, &block(2, 2, false)), [2]);
}

#[test]
fn a_message_that_came_over_a_connection_fills_a_gap() {
    let mut lines = Lines::new();
    assert_eq!(lines.take(Line::A, &block(1, 1, false)), [0, 1]);
    assert_eq!(lines.take(Line::A, &block(3, 3, false)), [-2]);
    let missing = LongQuote {
        bid_size: 2.into(),
        ..cqs_quote(b'N', "WIRE", b'A')
    };
    let mut heard = Heard::default();
    lines.feed.on_recovered_message(
        Nanos(2),
        tickwire_feed::SessionId::NONE,
        SeqNo(2),
        missing.as_bytes(),
        &mut heard,
    );
    let told: Vec<(EventKind, u64)> = heard.0.iter().map(|e| (e.kind, e.seq.0)).collect();
    assert_eq!(
        told,
        [
            (EventKind::Quote, 2),
            (EventKind::Quote, 3),
            (EventKind::Recovered, 4)
        ]
    );
}

#[test]
fn uqdf_requests_what_both_lines_lost_as_moldudp64_does() {
    let mut feed = UqdfFeed::new(ArbiterConfig::default(), UqdfDecoder::new(&config(None)));
    let packet = |seq| {
        let mut buffer = vec![0; 200];
        let mut builder = PacketBuilder::new(&mut buffer, *b"000007527Q", SeqNo(seq));
        assert!(builder.push(uqdf_quote(b'Q', "WIRE", b'0').as_bytes()));
        let size = builder.finish();
        buffer.truncate(size);
        buffer
    };
    let mut heard = Heard::default();
    feed.on_packet(Nanos(1), Line::A, &packet(1), &mut heard);
    feed.on_packet(Nanos(2), Line::A, &packet(3), &mut heard);
    feed.handle_timeout(Nanos(Nanos::SECOND), &mut heard);
    let mut buffer = [0; 64];
    let request = feed
        .poll_transmit(&mut buffer)
        .map(|b| tickwire_wire::moldudp64::Request::parse(b).unwrap());
    assert_eq!(request.map(|r| (r.seq.0, r.count)), Some((2, 1)));
}

/// The obvious way to follow the national best: a map by name.
#[test]
fn a_naive_follower_sees_the_same_national_best_of_many_instruments() {
    use std::collections::BTreeMap;
    let seed = 1789;
    println!("seed {seed}");
    let mut rng = testdata::Rng::new(seed);
    let mut decoder = CqsDecoder::new(&SipConfig {
        instruments_max: 700,
        symbols: None,
    });
    let mut naive: BTreeMap<String, [(Price, u64); 2]> = BTreeMap::new();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..20_000 {
        let mut random = [0; 8];
        rng.fill(&mut random);
        let [a, b, bid, ask, indicator, short_price, size, _] = random;
        let symbol = format!("{}{}", char::from(b'A' + a % 26), b % 26);
        let indicator = b" ABCDEFGHIJKLMNOPQRSTUVW"[usize::from(indicator) % 24];
        let quote = LongQuote {
            bid_price: Scaled(u64::from(bid).into()),
            offer_price: Scaled(u64::from(ask).into()),
            ..cqs_quote(b'N', &symbol, indicator)
        };
        let short_best = BestShort {
            participant: Char(b'Z'),
            price: Scaled(u16::from(short_price).into()),
            size: u16::from(size).into(),
        };
        let long_best = best_long(b'K', u64::from(short_price), size.into());
        let (bid_effect, ask_effect) = cqs::effects(indicator).unwrap();
        let own =
            [(bid, 100), (ask, 300)].map(|(p, qty)| (Price::from_decimal(i64::from(p), 6).unwrap(), qty));
        let sides = naive.entry(symbol.clone()).or_default();
        let mut parts = vec![quote.as_bytes()];
        for ((side, own), effect) in sides.iter_mut().zip(own).zip([bid_effect, ask_effect]) {
            match effect {
                cqs::Effect::Unchanged => {}
                cqs::Effect::Quote => *side = own,
                cqs::Effect::Gone => *side = Default::default(),
                cqs::Effect::Short => {
                    *side = (Price::from_decimal(short_price.into(), 2).unwrap(), size.into());
                    parts.push(short_best.as_bytes());
                }
                cqs::Effect::Long => {
                    *side = (Price::from_decimal(short_price.into(), 6).unwrap(), size.into());
                    parts.push(long_best.as_bytes());
                }
            }
        }
        let (events, counters) = decode(&mut decoder, &cqs_message(&parts));
        assert_eq!(counters, Counters::default());
        let next = numbers.len() as u32 + 1;
        let number = *numbers.entry(symbol.clone()).or_insert(next);
        assert!(
            events.iter().all(|e| e.instrument == InstrumentId(number)),
            "{symbol}"
        );
        assert_eq!((events[0].price, events[0].ask_price), (own[0].0, own[1].0));
        if let [_, national] = events[..] {
            let told = [
                (national.price, national.qty.0),
                (national.ask_price, national.ask_qty.0),
            ];
            assert_eq!(told, *sides, "{symbol} {}", char::from(indicator));
        }
        let changes = (bid_effect, ask_effect) != (cqs::Effect::Unchanged, cqs::Effect::Unchanged);
        assert_eq!(events.len(), 1 + usize::from(changes));
    }
    assert_eq!(numbers.len(), 676, "every symbol was seen");
}
