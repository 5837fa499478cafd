//! A line of CQS (CQS Pillar Multicast Output Binary 2.10a): quotes with the national best appended, blocks
//! sent again on a group of their own, the snapshot stream.
//!
//! Of the national best, only the indicators that SIAC says it sends are used: `A` `G` `O` `U`, and with
//! short forms `T`. How to ask for blocks to be sent again is not public: [`CqsPublisher::send_again`] does
//! what an answered request does, and [`CqsPublisherConfig::asked_again_ppm`] stands for the requests of
//! other clients, whose answers everybody hears.

mod line;

pub use line::{CqsLineConfig, CqsReset};

use tickwire_market::{InstrumentId, Nanos, Price, SeqNo, Symbol, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::cqs::{
    BestLong, BestShort, ConsolidatedSnapshot, Control, ControlType, LongQuote, MwcbDeclineLevels,
    ParticipantSnapshot, PriceLong, PriceShort, ShortQuote, SnapshotReferenceData, SymbolReferenceData,
    UnixTime, parse_block,
};
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::sip::{
    Best, Consolidation, Interest, PARTICIPANTS_MAX, Plan, Quote, SipModel, SipPublisher, Update, luld_code,
    national_luld_code, sides_code,
};
use crate::tape::{Datagram, Listing, Milestone};
use line::CqsLine;

/// The letters of the CTA plan: NYSE, Arca, BZX, EDGX, Nasdaq, BYX, IEX, MEMX, NYSE Texas, National, BX, PSX,
/// EDGA.
const LETTERS: [u8; PARTICIPANTS_MAX] = *b"NPZKTYVUMCBXJ";
/// The SIP itself.
const SIP: u8 = b'S';

/// Everything about a [`CqsPublisher`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CqsPublisherConfig {
    /// The market behind it.
    pub model: SipModel,
    /// The line.
    pub line: CqsLineConfig,
    /// Short quotes and appendages where they suffice. Default: no, as Pillar does not seem to send any.
    pub short_forms: bool,
}

/// A line of CQS. See the module's description.
pub type CqsPublisher = SipPublisher<Cqs>;

impl CqsPublisher {
    /// A line of these instruments. Everything is allocated here, except snapshots.
    pub fn new(config: CqsPublisherConfig, listings: &[Listing]) -> CqsPublisher {
        let plan = Cqs {
            line: CqsLine::new(config.line),
            short_forms: config.short_forms,
            round_lot: config.model.round_lot,
            total: 0,
        };
        SipPublisher::with_plan(plan, config.model, listings)
    }

    /// Sends `count` messages from `first` on again, on the group for that: what an answered request does.
    /// Those that were not sent yet or are forgotten are left out.
    pub fn send_again(&mut self, now: Nanos, first: SeqNo, count: u32) {
        self.plan.line.send_again(now, first, count);
    }
}

/// The plan.
pub struct Cqs {
    line: CqsLine,
    short_forms: bool,
    round_lot: u32,
    total: u64,
}

impl Cqs {
    fn send(&mut self, at: u64, parts: &[&[u8]]) {
        self.total += 1;
        self.line.message(at, parts);
    }

    fn control(&mut self, control: ControlType, at: u64) {
        self.send(at, &[Control::new(control, UnixTime::from_nanos(at)).as_bytes()]);
    }
}

impl Plan for Cqs {
    fn venue(&self) -> Venue {
        Venue::Cqs
    }

    fn letters(&self) -> &'static [u8; PARTICIPANTS_MAX] {
        &LETTERS
    }

    fn nasdaq(&self) -> u8 {
        b'T'
    }

    fn milestone(&mut self, milestone: Milestone, at: u64, _: &Consolidation) {
        let level = |points: i64| Scaled((points * 1_000_000).into());
        match milestone {
            Milestone::StartOfMessages => self.line.start(),
            Milestone::StartOfSystemHours => {
                // 7, 13 and 20 % below a close of 6,000 points.
                let levels = MwcbDeclineLevels {
                    level1: level(5_580),
                    level2: level(5_220),
                    level3: level(4_800),
                    ..MwcbDeclineLevels::at(SIP, UnixTime::from_nanos(at))
                };
                self.send(at, &[levels.as_bytes()]);
            }
            Milestone::StartOfMarketHours => self.control(ControlType::FinraOpen, at),
            Milestone::EndOfMarketHours => self.control(ControlType::FinraClose, at),
            Milestone::EndOfSystemHours => {}
            Milestone::EndOfMessages => self.control(ControlType::EndOfDay, at),
        }
    }

    fn define(&mut self, listing: &Listing, at: u64) {
        let reference = reference_data(listing, self.round_lot, UnixTime::from_nanos(at));
        self.send(at, &[reference.as_bytes()]);
    }

    fn quote(&mut self, symbol: &Symbol, update: &Update, at: u64) {
        let time = UnixTime::from_nanos(at);
        let Update { quote, national, .. } = update;
        let changes = national.best != update.national_before.best;
        if quote.protected() == update.before.protected() && !changes {
            return; // odd lots alone: this revision of CQS does not tell them
        }
        let own = quote.best.map(|interest| Best {
            interest,
            participant: update.participant,
        });
        let follows = match national.best {
            _ if !changes => b'A',
            [bid, ask] if (bid.interest.qty, ask.interest.qty) == (0, 0) => b'O',
            best if best == own => b'G',
            _ => b'U',
        };
        let national_luld = national_luld_code(national, update.band);
        let short = match self.short_forms && national_luld == b' ' {
            true => short_quote(symbol, update.participant, quote, time),
            false => None,
        };
        match (short, follows, national.best.map(short_appendage)) {
            (Some(m), b'U', [Some(bid), Some(ask)]) => {
                let m = ShortQuote {
                    national_bbo: Char(b'T'),
                    ..m
                };
                return self.send(at, &[m.as_bytes(), bid.as_bytes(), ask.as_bytes()]);
            }
            (Some(m), b'A' | b'G' | b'O', _) => {
                let m = ShortQuote {
                    national_bbo: Char(follows),
                    ..m
                };
                return self.send(at, &[m.as_bytes()]);
            }
            _ => {}
        }
        let m = LongQuote {
            national_luld: Char(national_luld),
            national_bbo: Char(follows),
            ..long_quote(symbol, LETTERS[update.participant], quote, time)
        };
        match follows {
            b'U' => {
                let [bid, ask] = national.best.map(long_appendage);
                self.send(at, &[m.as_bytes(), bid.as_bytes(), ask.as_bytes()]);
            }
            _ => self.send(at, &[m.as_bytes()]),
        }
    }

    fn band(&mut self, symbol: &Symbol, band: [Price; 2], _: bool, at: u64) {
        self.send(
            at,
            &[limits(symbol, band, b'0', UnixTime::from_nanos(at)).as_bytes()],
        );
    }

    /// A quote of the primary market without prices says it.
    fn status(&mut self, symbol: &Symbol, status: TradingStatus, at: u64) {
        let code = match status {
            TradingStatus::Halted => b'P',
            TradingStatus::Paused => b'M',
            _ => return,
        };
        let m = LongQuote {
            condition: Char(b' '),
            security_status: Char(code),
            ..long_quote(symbol, LETTERS[0], &Quote::default(), UnixTime::from_nanos(at))
        };
        self.send(at, &[m.as_bytes()]);
    }

    fn closed(&mut self, _: &Symbol, _: InstrumentId, _: &Consolidation, _: u64) {}

    /// Zero quotes follow instead.
    fn wipes_out(&mut self, _: usize, _: u64) -> bool {
        false
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn handle_timeout(&mut self, now: Nanos, listings: &[Listing], sip: &Consolidation) {
        if self.line.wants_snapshot(now) {
            let lot = self.round_lot;
            self.line.load_snapshot(now, |out| {
                for listing in listings {
                    write_snapshot(listing, lot, sip, out);
                }
            });
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.line.poll_timeout()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.line.poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let block = parse_block(datagram).ok()?;
        let first = SeqNo(block.header.seq.get().into());
        let is_integrity = datagram.get(22..24) == Some(b"CT");
        let next = first.advance(block.messages.len() as u64);
        (first.0 > 0 && next > first && !is_integrity).then_some((first, next))
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.line.end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.line.is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.line.next_seq()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.line.store_mut()
    }
}

/// All about an instrument: definition, limit prices and national best, every participant's quote.
fn write_snapshot(listing: &Listing, round_lot: u32, sip: &Consolidation, out: &mut dyn FnMut(&[&[u8]])) {
    let reference = SnapshotReferenceData {
        symbol: alpha(&listing.symbol),
        primary_listing: Char(LETTERS[0]),
        listing_close: price(listing.start),
        consolidated_close: price(listing.start),
        round_lot_size: (round_lot as u16).into(),
        luld_tier: Char(b'1'),
        financial_status: Char(b'0'),
        instrument_type: Char(b'0'),
        ..SnapshotReferenceData::at(SIP)
    };
    out(&[reference.as_bytes()]);
    let (national, band) = (sip.national(listing.id), sip.band(listing.id));
    let [lower, upper] = band.unwrap_or_default();
    let [bid, offer] = national.best.map(long_appendage);
    let consolidated = ConsolidatedSnapshot {
        symbol: alpha(&listing.symbol),
        instrument_type: Char(b'0'),
        lower_limit: price(lower),
        upper_limit: price(upper),
        best_bid_participant: bid.participant,
        best_bid_condition: bid.condition,
        best_bid_price: bid.price,
        best_bid_size: bid.size,
        best_offer_participant: offer.participant,
        best_offer_condition: offer.condition,
        best_offer_price: offer.price,
        best_offer_size: offer.size,
        national_luld: Char(national_luld_code(&national, band)),
        primary_listing: Char(LETTERS[0]),
        financial_status: Char(b'0'),
        ..ConsolidatedSnapshot::at(SIP)
    };
    out(&[consolidated.as_bytes()]);
    for (participant, quote) in sip.quotes(listing.id) {
        let [bid, offer] = quote.best;
        let own = ParticipantSnapshot {
            symbol: alpha(&listing.symbol),
            condition: Char(b'R'),
            bid_price: price(bid.price),
            bid_size: bid.qty.into(),
            offer_price: price(offer.price),
            offer_size: offer.qty.into(),
            retail_interest: Char(sides_code(quote.retail)),
            luld: Char(luld_code(&quote)),
            ..ParticipantSnapshot::at(LETTERS[participant])
        };
        out(&[own.as_bytes()]);
    }
}

fn alpha<const N: usize>(symbol: &Symbol) -> Alpha<N> {
    Alpha::from_symbol(symbol).unwrap_or(Alpha([b' '; N]))
}

/// Exact: prices of the engine are multiples of 0.0001.
fn price(price: Price) -> PriceLong {
    PriceLong::from_price(price).unwrap_or(Scaled(0.into()))
}

fn reference_data(listing: &Listing, round_lot: u32, time: UnixTime) -> SymbolReferenceData {
    SymbolReferenceData {
        symbol: alpha(&listing.symbol),
        primary_listing: Char(LETTERS[0]),
        listing_close: price(listing.start),
        consolidated_close: price(listing.start),
        round_lot_size: (round_lot as u16).into(),
        luld_tier: Char(b'1'),
        financial_status: Char(b'0'),
        instrument_type: Char(b'0'),
        ..SymbolReferenceData::at(SIP, time)
    }
}

fn long_quote(symbol: &Symbol, participant: u8, quote: &Quote, time: UnixTime) -> LongQuote {
    let [bid, ask] = quote.best;
    LongQuote {
        symbol: alpha(symbol),
        instrument_type: Char(b'0'),
        condition: Char(b'R'),
        bid_price: price(bid.price),
        bid_size: bid.qty.into(),
        offer_price: price(ask.price),
        offer_size: ask.qty.into(),
        retail_interest: Char(sides_code(quote.retail)),
        primary_listing: Char(LETTERS[0]),
        financial_status: Char(b'0'),
        luld: Char(luld_code(quote)),
        national_bbo: Char(b'A'),
        ..LongQuote::at(participant, time)
    }
}

/// Limit prices: a quote of the SIP. They are no part of the national best.
fn limits(symbol: &Symbol, [lower, upper]: [Price; 2], status: u8, time: UnixTime) -> LongQuote {
    let sides = [lower, upper].map(|price| Interest { price, qty: 0 });
    LongQuote {
        condition: Char(b' '),
        security_status: Char(status),
        national_bbo: Char(b' '),
        ..long_quote(
            symbol,
            SIP,
            &Quote {
                best: sides,
                executable: [true; 2],
                ..Quote::default()
            },
            time,
        )
    }
}

/// Price and size of a short form, if they fit.
fn short_side(interest: Interest) -> Option<(PriceShort, u16)> {
    Some((
        PriceShort::from_price(interest.price)?,
        u16::try_from(interest.qty).ok()?,
    ))
}

/// A regular quote that says nothing but its prices, if they fit.
fn short_quote(symbol: &Symbol, participant: usize, quote: &Quote, time: UnixTime) -> Option<ShortQuote> {
    let plain = quote.retail == [false; 2] && quote.executable == [true; 2];
    let ([bid, ask], symbol) = (quote.best, Alpha::from_symbol(symbol)?);
    let ((bid_price, bid_size), (offer_price, offer_size)) = (short_side(bid)?, short_side(ask)?);
    plain.then_some(ShortQuote {
        symbol,
        bid_price,
        bid_size: bid_size.into(),
        offer_price,
        offer_size: offer_size.into(),
        primary_listing: Char(LETTERS[0]),
        ..ShortQuote::at(LETTERS[participant], time)
    })
}

fn long_appendage(best: Best) -> BestLong {
    if best.interest.qty == 0 {
        return BestLong::BLANK;
    }
    BestLong {
        participant: Char(LETTERS[best.participant]),
        condition: Char(b'R'),
        price: price(best.interest.price),
        size: best.interest.qty.into(),
        ..BestLong::BLANK
    }
}

fn short_appendage(best: Best) -> Option<BestShort> {
    if best.interest.qty == 0 {
        return Some(BestShort::BLANK);
    }
    let (price, size) = short_side(best.interest)?;
    Some(BestShort {
        participant: Char(LETTERS[best.participant]),
        price,
        size: size.into(),
    })
}

persist!(struct Cqs { line, total } not { short_forms, round_lot });
