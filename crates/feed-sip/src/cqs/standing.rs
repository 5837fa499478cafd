//! What messages of the snapshot stream say: what stands, rather than what changed.

use super::{CqsDecoder, tell_status};
use crate::decoder::Context;
use crate::sip::{Best, Quoted};
use tickwire_market::{Counters, EventFlags, EventSink, InstrumentId, MessageType, Nanos, SeqNo};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::Char;
use tickwire_wire_sip::cqs::{
    self, ConsolidatedSnapshot, FinraSnapshot, ParticipantSnapshot, SnapshotMessage, may_be_best,
};

/// The kind of limit prices that were told before, as the live lines have it.
const REPUBLISHED: Char = Char(b'9');

/// A participant's quote.
fn participant_quote(m: &ParticipantSnapshot) -> Result<Quoted, Malformed> {
    Ok(Quoted {
        own: [
            Best::new(m.header.participant, m.bid_price, m.bid_size)?,
            Best::new(m.header.participant, m.offer_price, m.offer_size)?,
        ],
        conditions: [
            m.condition,
            m.retail_interest,
            m.luld,
            m.market_condition,
            Char::SPACE,
            Char::SPACE,
        ],
        firm: may_be_best(m.condition.0) != (false, false),
        ..Quoted::default()
    })
}

/// The best of FINRA's market makers.
fn finra_quote(m: &FinraSnapshot) -> Result<Quoted, Malformed> {
    Ok(Quoted {
        own: [
            Best::new(m.header.participant, m.bid_price, m.bid_size)?,
            Best::new(m.header.participant, m.offer_price, m.offer_size)?,
        ],
        conditions: [
            m.bid_condition,
            Char::SPACE,
            m.luld,
            Char::SPACE,
            Char::SPACE,
            Char::SPACE,
        ],
        firm: may_be_best(m.bid_condition.0).0 || may_be_best(m.offer_condition.0).1,
        ..Quoted::default()
    })
}

impl CqsDecoder {
    /// A message of the snapshot stream that goes up to `last`, while the line goes on: for an instrument
    /// that joins, what it says that has not been said since.
    pub(super) fn tell_joining<S: EventSink>(
        &mut self,
        now: Nanos,
        last: u64,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let Some(id) = cqs::snapshot_symbol(message).and_then(|symbol| self.sip.joining(symbol, last)) else {
            return;
        };
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT,
        };
        let kind = message.get(2..4).and_then(|kind| kind.first_chunk::<2>());
        if let Some(&[category, kind]) = kind {
            sink.on_message(MessageType::of_letters(category, kind));
        }
        let told = SnapshotMessage::parse(message).and_then(|m| match m {
            SnapshotMessage::Participant(m) => {
                let quoted = participant_quote(m)?;
                self.sip.tell_missing_quote(context, id, &quoted, sink);
                Ok(())
            }
            SnapshotMessage::Finra(m) => {
                let quoted = finra_quote(m)?;
                self.sip.tell_missing_quote(context, id, &quoted, sink);
                Ok(())
            }
            SnapshotMessage::Consolidated(m) => self.tell_consolidated(context, id, m, true, sink),
            m => self.tell_standing(context, id, m, sink),
        });
        if let Err(malformed) = told {
            crate::decoder::count_malformed(counters, &malformed);
        }
    }

    /// A whole turn was heard that began when the stream held everything up to `first`.
    pub(super) fn end_turn<S: EventSink>(&mut self, now: Nanos, first: u64, sink: &mut S) {
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT.with(EventFlags::LAST),
        };
        self.sip.end_turn(first, context, sink);
    }

    /// Whether snapshots of instruments are waited for.
    pub(super) fn has_joins(&self) -> bool {
        self.sip.has_joins()
    }

    pub(super) fn tell_standing<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        message: SnapshotMessage<'_>,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        match message {
            SnapshotMessage::SymbolReferenceData(m) => {
                let event = self.sip.event(context, id, Nanos::ZERO);
                self.define(&event, m.round_lot_size, m.test, sink);
            }
            SnapshotMessage::Participant(m) => {
                let quoted = participant_quote(m)?;
                self.sip.tell_quote(context, id, Nanos::ZERO, &quoted, sink);
            }
            SnapshotMessage::Finra(m) => {
                let quoted = finra_quote(m)?;
                self.sip.tell_quote(context, id, Nanos::ZERO, &quoted, sink);
            }
            SnapshotMessage::Consolidated(m) => self.tell_consolidated(context, id, m, false, sink)?,
            SnapshotMessage::MwcbDeclineLevels(_) | SnapshotMessage::LineIntegrity(_) => {}
        }
        Ok(())
    }

    fn tell_consolidated<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        m: &ConsolidatedSnapshot,
        joins: bool,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        let event = self.sip.event(context, id, Nanos::ZERO);
        let band = [
            Best::new(m.header.participant, m.lower_limit, 0_u32)?,
            Best::new(m.header.participant, m.upper_limit, 0_u32)?,
        ];
        let best = [
            side(Best::new(
                m.best_bid_participant,
                m.best_bid_price,
                m.best_bid_size,
            )?),
            side(Best::new(
                m.best_offer_participant,
                m.best_offer_price,
                m.best_offer_size,
            )?),
        ];
        if !joins || self.sip.stands_now(id) {
            // Reasons of a halt are the codes that a quote's status has.
            tell_status(&event, m.primary_listing, m.halt_reason, sink);
            if band.iter().any(|limit| limit.price.raw() > 0) {
                self.sip.tell_band(&event, band, REPUBLISHED, sink);
            }
        }
        match joins {
            true => self.sip.tell_missing(&event, best, m.national_luld, sink),
            false => self.sip.tell_national(&event, best, m.national_luld, sink),
        }
        Ok(())
    }
}

/// A side of the national best; none where nobody has it.
fn side(best: Best) -> Best {
    match best.participant {
        b' ' | 0 => Best::default(),
        _ => best,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SipConfig;
    use alloc::vec::Vec;
    use tickwire_feed_core::Decoder;
    use tickwire_market::{
        Counter, Counters, EventFlags, EventKind, MarketEvent, Price, SeqNo, TradingStatus,
    };
    use tickwire_wire_core::layout::Alpha;
    use tickwire_wire_core::layout::Pod;
    use tickwire_wire_sip::cqs::{FinraSnapshot, ParticipantSnapshot, PriceLong, SnapshotReferenceData};

    fn told(messages: &[&[u8]]) -> (Vec<MarketEvent>, Counters) {
        let mut decoder = CqsDecoder::new(&SipConfig::default());
        let (mut events, mut counters) = (Vec::new(), Counters::default());
        for message in messages {
            let context = Context {
                seq: SeqNo(0),
                received: Nanos(7),
                flags: EventFlags::SNAPSHOT,
            };
            let mut hear = |event: &MarketEvent| events.push(*event);
            decoder.decode(context, message, &mut counters, &mut hear);
        }
        (events, counters)
    }

    fn price(dollars: u32) -> PriceLong {
        PriceLong::from_price(dollars_of(dollars)).unwrap()
    }

    fn dollars_of(dollars: u32) -> Price {
        Price::from_4dp(dollars * 10_000)
    }

    #[test]
    fn an_instrument_stands_as_its_messages_say() {
        let symbol = Alpha::new(b"WIRE").unwrap();
        let reference = SnapshotReferenceData {
            symbol,
            round_lot_size: 40.into(),
            ..SnapshotReferenceData::at(b'S')
        };
        let consolidated = ConsolidatedSnapshot {
            symbol,
            lower_limit: price(28),
            upper_limit: price(31),
            best_bid_participant: Char(b'P'),
            best_bid_price: price(29),
            best_bid_size: 300.into(),
            national_luld: Char(b'A'),
            primary_listing: Char(b'N'),
            halt_reason: Char(b'M'),
            ..ConsolidatedSnapshot::at(b'S')
        };
        let own = ParticipantSnapshot {
            symbol,
            condition: Char(b'R'),
            bid_price: price(29),
            bid_size: 300.into(),
            luld: Char(b'B'),
            ..ParticipantSnapshot::at(b'P')
        };
        let finra = FinraSnapshot {
            symbol,
            bid_condition: Char(b'C'),
            offer_condition: Char(b'C'),
            offer_price: price(30),
            offer_size: 100.into(),
            ..FinraSnapshot::at(b'D')
        };
        let (events, _) = told(&[
            reference.as_bytes(),
            consolidated.as_bytes(),
            own.as_bytes(),
            finra.as_bytes(),
        ]);
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        let quote = EventKind::Quote;
        assert_eq!(
            kinds,
            [
                EventKind::Definition,
                EventKind::Status,
                quote,
                quote,
                quote,
                quote
            ]
        );
        let [_, halt, band, national, own, finra] = events[..] else {
            unreachable!("six events");
        };
        assert_eq!(
            (halt.status, &halt.code[..2]),
            (TradingStatus::Halted, &b"MN"[..])
        );
        assert_eq!(&band.code[..2], b"l9");
        assert_eq!((band.price, band.ask_price), (dollars_of(28), dollars_of(31)));
        assert_eq!(national.code, *b"\0P\0A\0\0\0\0");
        assert_eq!(
            (national.price, national.qty.0, national.ask_qty.0),
            (dollars_of(29), 300, 0)
        );
        assert_eq!((&own.code[..4], own.qty.0), (&b"PR\0B"[..], 300));
        assert!(!own.flags.has(EventFlags::NOT_FIRM));
        assert_eq!((finra.code[0], finra.ask_price), (b'D', dollars_of(30)));
        assert!(finra.flags.has(EventFlags::NOT_FIRM));
    }

    #[test]
    fn a_message_that_is_cut_makes_the_instrument_stale() {
        let own = ParticipantSnapshot {
            symbol: Alpha::new(b"WIRE").unwrap(),
            ..ParticipantSnapshot::at(b'P')
        };
        let (events, counters) = told(&[&own.as_bytes()[..40], b"\0\x05RXS"]);
        assert_eq!(
            events.iter().map(|event| event.kind).collect::<Vec<_>>(),
            [EventKind::Gap]
        );
        assert_eq!(counters.get(Counter::Malformed), 1);
        assert_eq!(counters.get(Counter::MessagesUnknown), 1);
    }
}
