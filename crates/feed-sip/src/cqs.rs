//! CTA Plan quotes (CQS Pillar Multicast Output Binary 2.10a) to [`MarketEvent`]s.
//!
//! A line of a network is a channel of its own; two of them, A and B, are arbitrated. What comes out (who a
//! quote's `code` names: see [`SipConfig`]):
//!
//! | message | event |
//! |---|---|
//! | `QL` `QQ` | `Quote` of the participant, then of the national best if it changed |
//! | `QS` | the same for FINRA's best |
//! | `QL` with a band as status | `Quote` with `code[0]` = `l`: limit down and limit up |
//! | `QL` `QS` with a regulatory halt, a range indication, a resumption | `Status` too, `code` = status, participant |
//! | `AS` | `Definition`, and the instrument directory |
//! | `ML` | `Status` of the whole feed, `code` = `MWC`, level |
//! | `CZ` | `Status` of the whole feed: closed |
//! | any about an instrument that is malformed | `Gap` of the instrument: a quote may be missing |
//! | `QA` `MK`, other controls, messages of the trade feed | none |
//! | `RS` `RP` `RF` of a snapshot | as `AS`, `QL`, `QS`, but for the national best; their events have no time |
//! | `RC` of a snapshot | `Quote` of the limit prices, `Quote` of the national best, `Status` if the instrument is halted |
//!
//! `CA` begins the numbers anew, and so does `CL`: see [`Cqs`]. [`CqsChannel`] adds the snapshot stream.

mod channel;
mod snapshot;
mod standing;

pub use channel::CqsChannel;
pub use snapshot::CqsSnapshot;

use crate::decoder::{Context, Decoder, Early, Prefiltered, StreamEvent};
use crate::framing::{Content, Frame, Framing, Restart};
use crate::sip::{Best, QUOTES, Quoted, Sip};
use crate::{FeedHandler, Filter, MissingRange, Rule, Seen, SessionId, SipConfig, SubscriptionsFull};
use core::ops::Range;
use tickwire_market::{
    Counters, DynSink, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, MessageType, Nanos,
    SeqNo, TradingStatus, Venue,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::{Char, U16};
use tickwire_wire_sip::PaddedSymbol;
use tickwire_wire_sip::cqs::{
    self, BlockBuilder, BlockHeader, Body, ControlType, Message, SecurityStatus, SnapshotMessage,
    Transmission, UnixTime, may_be_best,
};

/// A line of CQS.
pub type CqsFeed = FeedHandler<Cqs, CqsDecoder>;

/// The framing: blocks of SIAC, numbered by message without a session.
///
/// Start of day (number 0) and line integrity (the last number again) use no number: they tell the next one.
/// A start of day begins the numbers anew, and so does a reset, from its own number on; blocks that the SIP
/// sent before, on the slower line, are known by their time. Where both start of day and its line integrity
/// were lost, 32 blocks in a row say the same.
#[derive(Clone, Copy, Debug)]
pub enum Cqs {}

impl Framing for Cqs {
    type Messages<'a> = cqs::Messages<'a>;

    const HEADER: usize = cqs::BlockHeader::SIZE;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<cqs::Messages<'_>>, Malformed> {
        let block = cqs::parse_block(datagram)?;
        let seq = SeqNo(block.header.seq.get().into());
        let uses_none = seq.0 == 0 || block.messages.len() == 0 || is_line_integrity(&block.messages);
        let (first, content) = match uses_none {
            true if block.messages.len() == 0 => (seq, Content::Heartbeat),
            true => (seq.next(), Content::Heartbeat),
            false => {
                let (count, messages) = (block.messages.len() as u32, block.messages);
                (seq, Content::Messages { count, messages })
            }
        };
        Ok(Frame {
            session: SessionId::NONE,
            first,
            content,
            trailing: block.trailing,
        })
    }

    /// The form of a request is not public: [`FeedHandler::poll_missing`] says what to ask for. Retransmitted
    /// blocks come on a group of their own.
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn restart(datagram: &[u8], last: Option<Restart>) -> Option<Restart> {
        let (control, header) = control(datagram)?;
        let begins = matches!(control, ControlType::StartOfDay | ControlType::ResetSequence);
        // Both lines carry the same block: its time tells it from the next one.
        let sent = header.time.as_nanos();
        let original = header.transmission.0 == Transmission::Original as u8;
        (begins && original && last.map(|restart| restart.id) != Some(sent))
            .then_some(Restart { id: sent, sent })
    }

    fn precedes(datagram: &[u8], restart: Restart) -> bool {
        cqs::parse_block(datagram).is_ok_and(|block| block.header.time.as_nanos() < restart.sent)
    }

    fn wrap(_: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < BlockHeader::SIZE {
            return None;
        }
        let seq = u32::try_from(seq.0).ok()?;
        let header = BlockHeader::at(cqs::Feed::Quotes, seq, UnixTime::from_nanos(0));
        let mut block = BlockBuilder::new(buffer, header);
        block.push(&[message]).then(|| block.finish())
    }
}

/// Where the category of a block's first message stands.
const CATEGORY_AT: usize = BlockHeader::SIZE + 2;

/// The control message of a block that holds one, which is alone in it.
#[inline(always)]
fn control(datagram: &[u8]) -> Option<(ControlType, &BlockHeader)> {
    match datagram.get(CATEGORY_AT) {
        Some(b'C') => control_alone(datagram),
        _ => None,
    }
}

// Apart, so that little of this stands where every block comes by.
#[cold]
fn control_alone(datagram: &[u8]) -> Option<(ControlType, &BlockHeader)> {
    let control = ControlType::from_wire(*datagram.get(CATEGORY_AT + 1)?)?;
    let block = cqs::parse_block(datagram).ok()?;
    (block.messages.len() == 1).then_some((control, block.header))
}

/// Control messages are alone in their block.
#[inline(always)]
fn is_line_integrity(messages: &cqs::Messages<'_>) -> bool {
    messages.clone().next().and_then(|m| m.get(2..4)) == Some(&[b'C', ControlType::LineIntegrity as u8])
}

/// The decoder. All memory is taken at construction.
pub struct CqsDecoder {
    sip: Sip,
}

impl CqsDecoder {
    /// A decoder that has seen nothing.
    pub fn new(config: &SipConfig) -> CqsDecoder {
        CqsDecoder {
            sip: Sip::new(Venue::Cqs, config, false),
        }
    }

    /// [`Decoder::early`] of messages that are no long quotes.
    #[inline(never)]
    fn early_of_others(&mut self, message: &[u8]) -> Early {
        match (cqs::symbol(message), message) {
            (Some(symbol), &[_, _, category, kind, ..]) => self.sip.early((category, kind), symbol),
            _ => Early::Kept,
        }
    }

    /// Of a [`Twin`](crate::Twin), whose one instrument has this number.
    fn of_twin(instrument: InstrumentId) -> CqsDecoder {
        CqsDecoder {
            sip: Sip::of_twin(Venue::Cqs, instrument, false),
        }
    }

    /// A long quote that changes no national best, as most.
    #[inline(always)]
    fn tell_long<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        m: &cqs::LongQuote,
        best: [cqs::Best<'_>; 2],
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let quoted = long_quote(m, best)?;
        let time = Nanos(m.header.timestamp.as_nanos());
        self.sip.tell_quote(context, id, time, &quoted, sink);
        Ok(())
    }

    /// A long quote that does.
    #[inline(never)]
    fn tell_change<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        m: &cqs::LongQuote,
        rest: &[u8],
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let best = m.national_best(rest)?;
        self.tell_long(context, id, m, best, sink)
    }

    /// Everything but a long quote without a status.
    #[inline(never)]
    fn decode_rare(
        &mut self,
        context: Context,
        (category, kind): (u8, u8),
        message: &[u8],
        counters: &mut Counters,
        sink: &mut DynSink<'_>,
    ) {
        let is_standing = context.flags.has(EventFlags::SNAPSHOT);
        let symbol = match is_standing {
            true => cqs::snapshot_symbol(message),
            false => cqs::symbol(message),
        };
        let id = match symbol {
            None => InstrumentId::WHOLE_FEED,
            Some(symbol) => match self.sip.wanted((category, kind), symbol, counters) {
                Some(id) => id,
                None => return,
            },
        };
        sink.on_message(MessageType::of_letters(category, kind));
        let told = match is_standing {
            true => SnapshotMessage::parse(message).and_then(|m| self.tell_standing(context, id, m, sink)),
            // Read where it was written: moved in whole vectors, it would wait until all of it is in the
            // cache.
            false => match &cqs::parse(message) {
                Ok(message) => self.tell(context, id, message, sink),
                Err(malformed) => Err(*malformed),
            },
        };
        if let Err(malformed) = told {
            self.sip.refuse(context, id, malformed, counters, sink);
        }
    }

    fn define<S: EventSink>(&mut self, event: &MarketEvent, round_lot: U16, test: Char, sink: &mut S) {
        let is_test = !matches!(test.0, b' ' | b'N' | b'0');
        self.sip.define(event.instrument, round_lot.get().into(), is_test);
        sink.on_event(&MarketEvent {
            kind: EventKind::Definition,
            ..*event
        });
    }

    fn tell<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        message: &Message<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let time = Nanos(message.body.header().timestamp.as_nanos());
        let event = self.sip.event(context, id, time);
        let best = [message.best_bid, message.best_offer];
        match message.body {
            Body::LongQuote(m)
                if SecurityStatus::from_wire(m.security_status.0) == Some(SecurityStatus::PriceBand) =>
            {
                let band = [
                    Best::new(m.header.participant, m.bid_price, 0_u32)?,
                    Best::new(m.header.participant, m.offer_price, 0_u32)?,
                ];
                self.sip.tell_band(&event, band, m.security_status, sink);
            }
            Body::LongQuote(m) => {
                let quoted = long_quote(m, best)?;
                tell_status(&event, m.header.participant, m.security_status, sink);
                self.sip.tell_quote(context, id, time, &quoted, sink);
            }
            Body::ShortQuote(m) => {
                let quoted = short_quote(m, best)?;
                self.sip.tell_quote(context, id, time, &quoted, sink);
            }
            Body::SpecialLongQuote(m) => {
                let quoted = finra_quote(m, best)?;
                tell_status(&event, m.header.participant, m.security_status, sink);
                self.sip.tell_quote(context, id, time, &quoted, sink);
            }
            Body::SymbolReferenceData(m) => self.define(&event, m.round_lot_size, m.test, sink),
            Body::MwcbStatus(m) => {
                let code = [b'M', b'W', b'C', m.level.0, 0, 0, 0, 0];
                sink.on_event(&status(&event, TradingStatus::Halted, code));
            }
            Body::Control(ControlType::EndOfDay, _) => {
                sink.on_event(&status(
                    &event,
                    TradingStatus::Closed,
                    [b'Z', 0, 0, 0, 0, 0, 0, 0],
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A status that holds for all markets comes before the quote that carries it.
fn tell_status<S: EventSink>(event: &MarketEvent, participant: Char, code: Char, sink: &mut S) {
    let trading = match SecurityStatus::from_wire(code.0) {
        Some(SecurityStatus::RegulatoryHalt) => TradingStatus::Halted,
        Some(SecurityStatus::RangeIndication) => TradingStatus::QuoteOnly,
        Some(SecurityStatus::Resume) => TradingStatus::Trading,
        _ => return,
    };
    let mut said = status(event, trading, [code.0, participant.0, 0, 0, 0, 0, 0, 0]);
    said.flags = EventFlags(said.flags.0 & !EventFlags::LAST.0);
    sink.on_event(&said);
}

impl Prefiltered for CqsDecoder {}

impl Decoder for CqsDecoder {
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
        let &[category, kind] = message.get(2..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; 2]);
        self.sip.count(category, kind);
        let quote = cqs::long_quote(message).filter(|(m, _)| m.security_status == Char::SPACE);
        let Some((m, rest)) = quote else {
            return self.decode_rare(context, (category, kind), message, counters, &mut DynSink(sink));
        };
        let Some(id) = self
            .sip
            .wanted((category, kind), PaddedSymbol::long(&m.symbol.0), counters)
        else {
            return;
        };
        sink.on_message(MessageType::of_letters(category, kind));
        let told = match m.national_bbo.0 {
            b' ' | b'A' => self.tell_long(context, id, m, [cqs::Best::Unchanged; 2], sink),
            _ => self.tell_change(context, id, m, rest, sink),
        };
        if let Err(malformed) = told {
            self.sip.refuse(context, id, malformed, counters, sink);
        }
    }

    #[inline]
    fn early(&mut self, message: &[u8]) -> Early {
        match cqs::long_quote_symbol(message) {
            Some(symbol) => self.sip.early((b'Q', b'L'), symbol),
            None => self.early_of_others(message),
        }
    }

    #[inline]
    fn preview<S: EventSink>(&self, message: &[u8], _: &mut S) -> bool {
        if let Some((m, _)) = cqs::long_quote(message) {
            return self.sip.may_want(PaddedSymbol::long(&m.symbol.0));
        }
        match message.get(2..4) {
            Some(b"QL" | b"QQ" | b"QS" | b"AS") => cqs::symbol(message).is_some_and(|s| self.sip.may_want(s)),
            Some(b"ML" | b"CZ") => true,
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

#[inline(always)]
fn long_quote(m: &cqs::LongQuote, best: [cqs::Best<'_>; 2]) -> Result<Quoted, Malformed> {
    let own = [
        Best::new(m.header.participant, m.bid_price, m.bid_size)?,
        Best::new(m.header.participant, m.offer_price, m.offer_size)?,
    ];
    Ok(Quoted {
        own,
        conditions: [
            if m.condition == Char::SPACE {
                m.security_status
            } else {
                m.condition
            },
            m.retail_interest,
            m.luld,
            m.market_condition,
            m.short_sale_restriction,
            m.sip_generated,
        ],
        firm: may_be_best(m.condition.0) != (false, false),
        national: national(best, own)?,
        national_luld: m.national_luld,
    })
}

/// A short quote has no condition: it is a regular one.
fn short_quote(m: &cqs::ShortQuote, best: [cqs::Best<'_>; 2]) -> Result<Quoted, Malformed> {
    let own = [
        Best::new(m.header.participant, m.bid_price, m.bid_size)?,
        Best::new(m.header.participant, m.offer_price, m.offer_size)?,
    ];
    Ok(Quoted {
        own,
        conditions: [Char::SPACE; 6],
        firm: true,
        national: national(best, own)?,
        national_luld: Char::SPACE,
    })
}

/// One market maker's quote changed FINRA's best, which is what stands for FINRA among the participants.
fn finra_quote(m: &cqs::SpecialLongQuote, best: [cqs::Best<'_>; 2]) -> Result<Quoted, Malformed> {
    let own = [
        Best::new(m.header.participant, m.finra_bid_price, m.finra_bid_size)?,
        Best::new(m.header.participant, m.finra_offer_price, m.finra_offer_size)?,
    ];
    Ok(Quoted {
        own,
        conditions: [
            m.finra_bid_condition,
            m.retail_interest,
            m.luld,
            m.market_condition,
            m.short_sale_restriction,
            m.sip_generated,
        ],
        firm: may_be_best(m.finra_bid_condition.0).0 || may_be_best(m.finra_offer_condition.0).1,
        national: national(best, own)?,
        national_luld: m.national_luld,
    })
}

#[inline(always)]
fn national([bid, offer]: [cqs::Best<'_>; 2], own: [Best; 2]) -> Result<[Option<Best>; 2], Malformed> {
    Ok([national_side(bid, own[0])?, national_side(offer, own[1])?])
}

#[inline(always)]
fn national_side(said: cqs::Best<'_>, own: Best) -> Result<Option<Best>, Malformed> {
    match said {
        cqs::Best::Unchanged => Ok(None),
        cqs::Best::Quote => Ok(Some(own)),
        cqs::Best::Gone => Ok(Some(Best::default())),
        cqs::Best::Short(best) => Best::new(best.participant, best.price, best.size).map(Some),
        cqs::Best::Long(best) => Best::new(best.participant, best.price, best.size).map(Some),
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
