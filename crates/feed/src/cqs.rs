//! CTA Plan quotes (CQS Pillar Multicast Output Binary 2.10a) to [`MarketEvent`]s.
//!
//! A line of a network is a channel of its own; two of them, A and B, are arbitrated. What comes out (who a quote's `code`
//! names: see [`SipConfig`]):
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

use crate::decoder::{Context, Decoder};
use crate::framing::{Content, Frame, Framing};
use crate::sip::{Best, Quoted, Sip};
use crate::{FeedHandler, MissingRange, SessionId, SipConfig};
use tickwire_market::{
    Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, SeqNo,
    TradingStatus, Venue,
};
use tickwire_wire::Malformed;
use tickwire_wire::cqs::{
    self, BlockBuilder, BlockHeader, Body, ControlType, Message, SecurityStatus, UnixTime, may_be_best,
};
use tickwire_wire::layout::Char;

/// A line of CQS.
pub type CqsFeed = FeedHandler<Cqs, CqsDecoder>;

/// The framing: blocks of SIAC, numbered by message without a session.
///
/// Start of day (number 0) and line integrity (the last number again) use no number: they tell the next one. When the
/// numbers of a new day begin at 1, line integrity messages confirm it to the arbiter before the first data comes.
#[derive(Clone, Copy, Debug)]
pub enum Cqs {}

impl Framing for Cqs {
    type Messages<'a> = cqs::Messages<'a>;

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

    /// The form of a request is not public: [`FeedHandler::poll_missing`] says what to ask for. Retransmitted blocks come
    /// on a group of their own.
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
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

/// Control messages are alone in their block.
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
            sip: Sip::new(Venue::Cqs, config),
        }
    }

    /// The instruments seen or wanted so far, by number.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.sip.instruments()
    }

    #[inline(always)]
    fn tell<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        message: &Message<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        match message.body {
            Body::LongQuote(m)
                if SecurityStatus::from_wire(m.security_status.0) == Some(SecurityStatus::PriceBand) =>
            {
                let band = [
                    Best::new(m.header.participant, m.bid_price, 0_u32)?,
                    Best::new(m.header.participant, m.offer_price, 0_u32)?,
                ];
                self.sip.tell_band(event, band, m.security_status, sink);
            }
            Body::LongQuote(m) => {
                let quoted = long_quote(message, m)?;
                self.tell_with_status(event, &quoted, m.security_status, sink);
            }
            Body::ShortQuote(m) => {
                let quoted = short_quote(message, m)?;
                self.sip.tell_quote(event, &quoted, sink);
            }
            Body::SpecialLongQuote(m) => {
                let quoted = finra_quote(message, m)?;
                self.tell_with_status(event, &quoted, m.security_status, sink);
            }
            Body::SymbolReferenceData(m) => {
                let is_test = !matches!(m.test.0, b' ' | b'N' | b'0');
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
            Body::Control(ControlType::EndOfDay, _) => {
                sink.on_event(&status(event, TradingStatus::Closed, [b'Z', 0, 0, 0, 0, 0, 0, 0]));
            }
            _ => {}
        }
        Ok(())
    }

    /// A status that holds for all markets comes before the quote that carries it.
    #[inline(always)]
    fn tell_with_status<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        quoted: &Quoted,
        code: Char,
        sink: &mut S,
    ) {
        if code != Char::SPACE {
            let trading = match SecurityStatus::from_wire(code.0) {
                Some(SecurityStatus::RegulatoryHalt) => Some(TradingStatus::Halted),
                Some(SecurityStatus::RangeIndication) => Some(TradingStatus::QuoteOnly),
                Some(SecurityStatus::Resume) => Some(TradingStatus::Trading),
                _ => None,
            };
            if let Some(trading) = trading {
                let code = [code.0, quoted.own[0].participant, 0, 0, 0, 0, 0, 0];
                let mut said = status(event, trading, code);
                said.flags = EventFlags(said.flags.0 & !EventFlags::LAST.0);
                sink.on_event(&said);
            }
        }
        self.sip.tell_quote(event, quoted, sink);
    }
}

impl Decoder for CqsDecoder {
    fn venue(&self) -> Venue {
        self.sip.venue()
    }

    #[inline]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let id = match cqs::symbol(message) {
            None => InstrumentId::WHOLE_FEED,
            Some(symbol) => match self.sip.wanted(&symbol, counters) {
                Some(id) => id,
                None => return,
            },
        };
        let told = cqs::parse(message).and_then(|message| {
            let time = message.body.header().timestamp.as_nanos();
            let mut event = self.sip.event(context, id, Nanos(time));
            self.tell(&mut event, &message, sink)
        });
        if let Err(malformed) = told {
            self.sip.refuse(context, id, malformed, counters, sink);
        }
    }

    #[inline]
    fn preview<S: EventSink>(&self, message: &[u8], _: &mut S) -> bool {
        match message.get(2..4) {
            Some(b"QL" | b"QQ" | b"QS" | b"AS") => {
                cqs::symbol(message).is_some_and(|s| self.sip.may_want(&s))
            }
            Some(b"ML" | b"CZ") => true,
            _ => false,
        }
    }

    fn restarted(&mut self) {
        self.sip.forget_quotes();
    }

    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.sip.instrument(id)
    }
}

#[inline(always)]
fn long_quote(message: &Message<'_>, m: &cqs::LongQuote) -> Result<Quoted, Malformed> {
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
        national: national(message, own)?,
        national_luld: m.national_luld,
    })
}

/// A short quote has no condition: it is a regular one.
#[inline(always)]
fn short_quote(message: &Message<'_>, m: &cqs::ShortQuote) -> Result<Quoted, Malformed> {
    let own = [
        Best::new(m.header.participant, m.bid_price, m.bid_size)?,
        Best::new(m.header.participant, m.offer_price, m.offer_size)?,
    ];
    Ok(Quoted {
        own,
        conditions: [Char::SPACE; 6],
        firm: true,
        national: national(message, own)?,
        national_luld: Char::SPACE,
    })
}

/// One market maker's quote changed FINRA's best, which is what stands for FINRA among the participants.
fn finra_quote(message: &Message<'_>, m: &cqs::SpecialLongQuote) -> Result<Quoted, Malformed> {
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
        national: national(message, own)?,
        national_luld: m.national_luld,
    })
}

#[inline(always)]
fn national(message: &Message<'_>, own: [Best; 2]) -> Result<[Option<Best>; 2], Malformed> {
    Ok([
        national_side(message.best_bid, own[0])?,
        national_side(message.best_offer, own[1])?,
    ])
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
