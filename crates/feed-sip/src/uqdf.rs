//! UTP Plan quotes (UTP Data Feed Services 3.0c, UQDF) over MoldUDP64 to [`MarketEvent`]s.
//!
//! What comes out (who a quote's `code` names: see [`SipConfig`]):
//!
//! | message | event |
//! |---|---|
//! | `QE` `QF` `QC` `QD` | `Quote` of the participant, then of the national best if it changed |
//! | `QC` `QD` `QA` `QB` whose best odd lots changed | `Quote` with `code[0]` = `o`; it comes before the participant's |
//! | `AR` | `Quote` of every market, then of the national best |
//! | `AP` | `Quote` with `code[0]` = `l`: limit down and limit up |
//! | `CP` | empty `Quote`s of the originator; where it was the national best, `Quote` of the best of the others |
//! | `AH` | `Status`, `code` = reason |
//! | `AB` | `Definition`, and the instrument directory |
//! | `AD` | `Status` of the whole feed, `code` = `MWC`, level |
//! | `CI` `CO` `CJ` `CZ` | `Status` of the whole feed |
//! | any about an instrument that is malformed | `Gap` of the instrument: a quote may be missing |
//! | `QM` `AA` `AK` `AV` `AC` `AE` `CC`, odd-lot levels, trade reports | none: they change neither a national best nor whether all markets trade |

mod channel;

pub use channel::UqdfChannel;

use crate::decoder::{Context, Decoder, Early, Prefiltered, StreamEvent};
use crate::sip::{Best, QUOTES, Quoted, Sip, before_others};
use crate::{FeedHandler, Filter, Rule, Seen, SipConfig, SubscriptionsFull};
use core::ops::Range;
use tickwire_feed_nasdaq::MoldUdp64;
use tickwire_market::{
    Counters, DynSink, EventKind, EventSink, InstrumentId, MarketEvent, MessageType, Nanos, SeqNo,
    TradingStatus, Venue,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::{Char, Scaled, WireInt};
use tickwire_wire_sip::PaddedSymbol;
use tickwire_wire_sip::uqdf::{
    self, Action, Body, Bolo, CombinedLong, CombinedShort, ControlType, Message, MessageHeader, Nbbo,
    OddLotQuoteLong, OddLotQuoteShort, WithOddLots, may_be_best,
};

/// The table of these fields: the layouts name them alike.
macro_rules! fields {
    ($m:ident) => {
        QuoteFields {
            header: &$m.header,
            bid_price: $m.bid_price,
            bid_size: $m.bid_size,
            ask_price: $m.ask_price,
            ask_size: $m.ask_size,
            condition: $m.condition,
            sip_generated: $m.sip_generated,
            luld: $m.luld,
            retail_interest: $m.retail_interest,
            national_luld: $m.national_luld,
        }
    };
}

/// A channel of UQDF.
pub type UqdfFeed = FeedHandler<MoldUdp64, UqdfDecoder>;

/// The decoder. All memory is taken at construction.
pub struct UqdfDecoder {
    sip: Sip,
}

impl UqdfDecoder {
    /// A decoder that has seen nothing.
    pub fn new(config: &SipConfig) -> UqdfDecoder {
        UqdfDecoder {
            sip: Sip::new(Venue::Uqdf, config, true),
        }
    }

    /// Of a [`Twin`](crate::Twin), whose one instrument has this number.
    fn of_twin(instrument: InstrumentId) -> UqdfDecoder {
        UqdfDecoder {
            sip: Sip::of_twin(Venue::Uqdf, instrument, true),
        }
    }

    /// Messages before `next` are lost for good: tells it of every instrument. A book is right again once a
    /// message says both sides of its national best, at the latest the recap of the close.
    pub fn lose(&mut self, next: SeqNo, now: Nanos, sink: &mut dyn EventSink) {
        self.sip.lose(next, now, &mut DynSink(sink));
    }

    /// Everything but quotes without odd lots.
    #[inline(never)]
    fn decode_rare<S: EventSink>(
        &mut self,
        context: Context,
        (category, kind): (u8, u8),
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let id = match uqdf::symbol(message) {
            None => InstrumentId::WHOLE_FEED,
            Some(symbol) => match self.sip.wanted((category, kind), symbol, counters) {
                Some(id) => id,
                None => return,
            },
        };
        if message.is_empty() {
            return; // an empty block uses a number and says nothing
        }
        sink.on_message(MessageType::of_letters(category, kind));
        if let Err(malformed) = self.read(context, id, message, sink) {
            self.sip.refuse(context, id, malformed, counters, sink);
        }
    }

    /// Messages with odd lots are read by layout: one that can be any of them, with all that can follow it,
    /// would be written to memory first.
    #[inline(always)]
    fn read<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        message: &[u8],
        sink: &mut S,
    ) -> Result<(), Malformed> {
        if let Some((m, rest)) = uqdf::with_odd_lots::<CombinedShort>(message) {
            let more = m.appendages(message, rest)?;
            self.odd_lots(before_others(context), id, time_of(&m.header), more.bolo, sink)?;
            return self.quote(context, id, more.nbbo, &fields!(m), sink);
        }
        if let Some((m, rest)) = uqdf::with_odd_lots::<CombinedLong>(message) {
            let more = m.appendages(message, rest)?;
            self.odd_lots(before_others(context), id, time_of(&m.header), more.bolo, sink)?;
            return self.quote(context, id, more.nbbo, &fields!(m), sink);
        }
        if let Some((m, rest)) = uqdf::with_odd_lots::<OddLotQuoteShort>(message) {
            let more = m.appendages(message, rest)?;
            return self.odd_lots(context, id, time_of(&m.header), more.bolo, sink);
        }
        if let Some((m, rest)) = uqdf::with_odd_lots::<OddLotQuoteLong>(message) {
            let more = m.appendages(message, rest)?;
            return self.odd_lots(context, id, time_of(&m.header), more.bolo, sink);
        }
        // Read where it was written: moved in whole vectors, it would wait until all of it is in the cache.
        match &uqdf::parse(message) {
            Ok(message) => self.tell(context, id, message, sink),
            Err(malformed) => Err(*malformed),
        }
    }

    fn tell<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        message: &Message<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let more = &message.appendages;
        let event = self.sip.event(context, id, time_of(message.body.header()));
        match message.body {
            Body::QuoteShort(m) => self.quote(context, id, more.nbbo, &fields!(m), sink)?,
            Body::QuoteLong(m) => self.quote(context, id, more.nbbo, &fields!(m), sink)?,
            Body::CloseRecap(m) => self.close(context, &event, m, more.closes, sink)?,
            // Those with odd lots have been read by now.
            _ => self.tell_rare(&event, message.body, sink)?,
        }
        Ok(())
    }

    /// Tells the best odd lots, if they changed.
    #[inline(always)]
    fn odd_lots<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        venue_ts: Nanos,
        bolo: Bolo<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        if let Some(best) = odd_lots(bolo)? {
            self.sip.tell_odd_lots(context, id, venue_ts, best, sink);
        }
        Ok(())
    }

    /// The recap of the close says every market's quote and the national best, whatever was known.
    fn close<S: EventSink>(
        &mut self,
        context: Context,
        event: &MarketEvent,
        m: &uqdf::CloseRecap,
        closes: &[uqdf::MarketCenterClose],
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let best = [
            Best::new(m.bid_market_center, m.bid_price, m.bid_size)?,
            Best::new(m.ask_market_center, m.ask_price, m.ask_size)?,
        ];
        let inner = before_others(context);
        for close in closes {
            let own = [
                Best::new(close.market_center, close.bid_price, close.bid_size)?,
                Best::new(close.market_center, close.ask_price, close.ask_size)?,
            ];
            let quoted = Quoted {
                own,
                conditions: [Char::SPACE; 6],
                firm: true,
                national: [None; 2],
                national_luld: Char::SPACE,
            };
            self.sip
                .tell_quote(inner, event.instrument, event.venue_ts, &quoted, sink);
        }
        self.sip.tell_national(event, best, Char::SPACE, sink);
        Ok(())
    }

    #[inline(always)]
    fn quote<S: EventSink, T: WireInt, const D: u8, Q: Into<u64> + Copy>(
        &mut self,
        context: Context,
        id: InstrumentId,
        nbbo: Nbbo<'_>,
        m: &QuoteFields<'_, T, D, Q>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let originator = m.header.originator;
        let own = [
            Best::new(originator, m.bid_price, m.bid_size)?,
            Best::new(originator, m.ask_price, m.ask_size)?,
        ];
        let quoted = Quoted {
            own,
            conditions: [
                m.condition,
                m.retail_interest,
                m.luld,
                Char::SPACE,
                Char::SPACE,
                m.sip_generated,
            ],
            firm: may_be_best(m.condition.0),
            national: national(nbbo, own)?,
            national_luld: m.national_luld,
        };
        self.sip.tell_quote(context, id, time_of(m.header), &quoted, sink);
        Ok(())
    }

    /// A quote that changes the national best.
    #[inline(never)]
    fn quote_change<S: EventSink, T: WireInt, const D: u8, Q: Into<u64> + Copy>(
        &mut self,
        context: Context,
        id: InstrumentId,
        indicator: Char,
        rest: &[u8],
        m: &QuoteFields<'_, T, D, Q>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        self.quote(context, id, uqdf::nbbo(indicator, rest)?, m, sink)
    }

    #[inline(never)]
    fn tell_rare<S: EventSink>(
        &mut self,
        event: &MarketEvent,
        body: Body<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        match body {
            Body::PriceBand(m) => {
                let band = [
                    Best::new(m.header.originator, m.limit_down, 0_u32)?,
                    Best::new(m.header.originator, m.limit_up, 0_u32)?,
                ];
                self.sip.tell_band(event, band, m.indicator, sink);
            }
            Body::TradingAction(m) => {
                let trading = trading_status(m.action)?;
                let mut code = [0; 8];
                let reason = m.reason.trimmed();
                code[..reason.len()].copy_from_slice(reason);
                sink.on_event(&status(event, trading, code));
            }
            Body::IssueDirectory(m) => {
                let is_test = m.authenticity.0 == b'T';
                self.sip
                    .define(event.instrument, m.round_lot_size.get().into(), is_test);
                sink.on_event(&MarketEvent {
                    kind: EventKind::Definition,
                    ..*event
                });
            }
            Body::MwcbStatus(m) => {
                let code = [b'M', b'W', b'C', m.level.0, 0, 0, 0, 0];
                sink.on_event(&status(event, TradingStatus::Halted, code));
            }
            Body::Control(ControlType::QuoteWipeOut, m) => {
                self.sip.wipe_out(event, m.header.originator.0, sink)
            }
            Body::Control(control, _) => {
                let trading = match control {
                    ControlType::StartOfDay => TradingStatus::PreOpen,
                    ControlType::SessionOpen => TradingStatus::Trading,
                    ControlType::EndOfDay | ControlType::EndOfTransmissions => TradingStatus::Closed,
                    ControlType::SessionClose | ControlType::QuoteWipeOut => return Ok(()),
                };
                sink.on_event(&status(event, trading, [control as u8, 0, 0, 0, 0, 0, 0, 0]));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Prefiltered for UqdfDecoder {}

impl Decoder for UqdfDecoder {
    const BUSY_TYPES: Range<usize> = QUOTES;

    fn filter(&self) -> &Filter {
        &self.sip.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.sip.filter
    }

    #[inline]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (category, kind) = match message {
            [_, category, kind, ..] => (*category, *kind),
            _ => (0, 0),
        };
        self.sip.count(category, kind);
        let (id, told);
        if let Some((m, rest)) = uqdf::quote_long(message) {
            let Some(wanted) = self
                .sip
                .wanted((category, kind), PaddedSymbol::long(&m.symbol.0), counters)
            else {
                return;
            };
            sink.on_message(MessageType::of_letters(category, kind));
            id = wanted;
            told = match m.nbbo.0 {
                b'0' => self.quote(context, id, Nbbo::Unchanged, &fields!(m), sink),
                _ => self.quote_change(context, id, m.nbbo, rest, &fields!(m), sink),
            };
        } else if let Some((m, rest)) = uqdf::quote_short(message) {
            let Some(wanted) = self
                .sip
                .wanted((category, kind), PaddedSymbol::short(&m.symbol.0), counters)
            else {
                return;
            };
            sink.on_message(MessageType::of_letters(category, kind));
            id = wanted;
            told = match m.nbbo.0 {
                b'0' => self.quote(context, id, Nbbo::Unchanged, &fields!(m), sink),
                _ => self.quote_change(context, id, m.nbbo, rest, &fields!(m), sink),
            };
        } else {
            return self.decode_rare(context, (category, kind), message, counters, sink);
        }
        if let Err(malformed) = told {
            self.sip.refuse(context, id, malformed, counters, sink);
        }
    }

    #[inline]
    fn early(&mut self, message: &[u8]) -> Early {
        match (uqdf::symbol(message), message) {
            (Some(symbol), &[_, category, kind, ..]) => self.sip.early((category, kind), symbol),
            _ => Early::Kept,
        }
    }

    #[inline]
    fn preview<S: EventSink>(&self, message: &[u8], _: &mut S) -> bool {
        if let Some((m, _)) = uqdf::quote_long(message) {
            return self.sip.may_want(PaddedSymbol::long(&m.symbol.0));
        }
        let wanted = || uqdf::symbol(message).is_some_and(|symbol| self.sip.may_want(symbol));
        match message.first_chunk() {
            Some([_, b'Q', b'E' | b'F' | b'C' | b'D'] | [_, b'A', b'P' | b'H' | b'B' | b'R']) => wanted(),
            Some([_, b'Q', b'A']) => message.get(35) != Some(&b'0') && wanted(),
            Some([_, b'Q', b'B']) => message.get(49) != Some(&b'0') && wanted(),
            Some([_, b'A', b'D'] | [_, b'C', b'I' | b'O' | b'J' | b'Z' | b'P']) => true,
            _ => false,
        }
    }

    fn on_stream(&mut self, event: StreamEvent) {
        self.sip.on_stream(event);
    }

    fn select(&mut self, rule: Rule, changed: &mut dyn FnMut(InstrumentId)) -> Result<(), SubscriptionsFull> {
        self.sip.select(rule, changed)
    }

    fn join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        self.sip.join(id, next);
        true
    }

    fn fetch(&self, id: InstrumentId) {
        self.sip.fetch(id);
    }

    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.sip.seen_of_instrument(id)
    }
}

/// The participant's time, or the SIP's where it made the message itself.
#[inline(always)]
fn time_of(header: &MessageHeader) -> Nanos {
    match header.timestamp1.get() {
        0 => Nanos(header.sip_time.get()),
        time => Nanos(time),
    }
}

/// What the four layouts of a quote have in common.
struct QuoteFields<'a, T, const D: u8, Q> {
    header: &'a MessageHeader,
    bid_price: Scaled<T, D>,
    bid_size: Q,
    ask_price: Scaled<T, D>,
    ask_size: Q,
    condition: Char,
    sip_generated: Char,
    luld: Char,
    retail_interest: Char,
    national_luld: Char,
}

#[inline(always)]
fn national(said: Nbbo<'_>, own: [Best; 2]) -> Result<[Option<Best>; 2], Malformed> {
    let both = |[bid, ask]: [Best; 2]| [Some(bid), Some(ask)];
    match said {
        Nbbo::Unchanged => Ok([None, None]),
        Nbbo::Gone => Ok(both([Best::default(); 2])),
        Nbbo::Quote => Ok(both(own)),
        Nbbo::Short(m) => Ok(both([
            Best::new(m.bid_market_center, m.bid_price, m.bid_size)?,
            Best::new(m.ask_market_center, m.ask_price, m.ask_size)?,
        ])),
        Nbbo::Long(m) => Ok(both([
            Best::new(m.bid_market_center, m.bid_price, m.bid_size)?,
            Best::new(m.ask_market_center, m.ask_price, m.ask_size)?,
        ])),
    }
}

#[inline(always)]
fn odd_lots(said: Bolo<'_>) -> Result<Option<[Best; 2]>, Malformed> {
    let long = match said {
        Bolo::Unchanged => return Ok(None),
        Bolo::Gone => return Ok(Some([Best::default(); 2])),
        Bolo::Short(m) => {
            return Ok(Some([
                Best::new(m.bid_market_center, m.bid_price, m.bid_size)?,
                Best::new(m.ask_market_center, m.ask_price, m.ask_size)?,
            ]));
        }
        Bolo::Long(m) => m,
        Bolo::Mpid(m) => &m.best,
    };
    Ok(Some([
        Best::new(long.bid_market_center, long.bid_price, long.bid_size)?,
        Best::new(long.ask_market_center, long.ask_price, long.ask_size)?,
    ]))
}

fn trading_status(action: Char) -> Result<TradingStatus, Malformed> {
    match Action::from_wire(action.0) {
        Some(Action::Halted) => Ok(TradingStatus::Halted),
        Some(Action::QuotationOnly) => Ok(TradingStatus::QuoteOnly),
        Some(Action::Trading) => Ok(TradingStatus::Trading),
        Some(Action::Paused) => Ok(TradingStatus::Paused),
        None => Err(Malformed::BadValue {
            offset: 40,
            value: action.0,
        }),
    }
}

fn status(event: &MarketEvent, status: TradingStatus, code: [u8; 8]) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Status,
        status,
        code,
        ..*event
    }
}
