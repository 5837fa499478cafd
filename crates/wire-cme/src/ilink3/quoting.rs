//! MassQuote (517) from prepared bytes: the head stands in the buffer, an entry is a copy of what never
//! changes of it, with prices and sizes beside.

use super::{ENCODING, Frame, MassQuote, MassQuoteRoot, NEWEST_VERSION, QuoteEntry};
use crate::layout::Scaled;
use crate::layout::{Pod, split_mut};
use crate::sbe::{GroupSize, MessageHeader, Optional, Price9, Text};
use crate::{layout::le, wire_struct};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{MassQuoteEntry, Nanos, Price};

/// Who sends: the same in every message of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// PartyDetailsListReqID (1505): what was registered with the venue; 0 where each message tells its
    /// parties.
    pub party_details_list_req_id: u64,
    /// SenderID (5392): the operator.
    pub sender_id: Text<20>,
    /// Location (9537): country, or country and state.
    pub location: Text<5>,
}

/// What an entry says of its instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedSecurity {
    /// SecurityID (48), of the instrument's definition.
    pub security_id: i32,
    /// UnderlyingSecurityID (309).
    pub underlying_security_id: Option<i32>,
    /// QuoteSetID (302): with SecurityID it names the quote.
    pub quote_set_id: u16,
}

/// What a mass quote says besides its entries. It has no place for what caused it: whoever sends keeps that
/// by `id`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassQuoteHead {
    /// SeqNum (9726).
    pub seq: u32,
    /// SendingTimeEpoch (5297).
    pub sending_time: Nanos,
    /// QuoteID (117).
    pub id: u32,
    /// MMProtectionReset (9773): quoting goes on after the venue's protection.
    pub reset: bool,
}

wire_struct! {
    /// A mass quote up to its first entry. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct MassQuotePrefix = "MassQuote", 138 {
        0 => frame: Frame, "Frame";
        4 => header: MessageHeader, "Header";
        12 => root: MassQuoteRoot, "Root";
        135 => entries: GroupSize, "NoQuoteEntries";
    }
}

/// A prepared MassQuote of a session. All memory is taken by [`MassQuoteTemplate::new`].
#[derive(Clone, Debug)]
pub struct MassQuoteTemplate {
    /// [`MassQuotePrefix`], then room for the entries.
    buffer: Box<[u8]>,
    /// By quote: entries without sides.
    entries: Box<[QuoteEntry]>,
    /// What a tick of an entry is, in billionths.
    tick: i64,
    entries_max: usize,
}

impl MassQuoteTemplate {
    /// `securities` in the order of the quoter's list; prices are whole numbers of `tick`. `None` without
    /// securities, with more than 65 536 of them, without entries, or if 65 535 ticks are no price.
    pub fn new(
        identity: &Identity,
        securities: &[QuotedSecurity],
        tick: Price,
        entries_max: u8,
    ) -> Option<MassQuoteTemplate> {
        let is_good = (1..=1 << 16).contains(&securities.len()) && entries_max > 0 && tick.raw() > 0;
        // The largest number is null.
        tick.raw().checked_mul(u16::MAX.into())?.checked_add(1)?;
        if !is_good {
            return None;
        }
        let entries: Vec<QuoteEntry> = (0_u32..)
            .zip(securities)
            .map(|(quote, security)| QuoteEntry {
                quote_entry_id: quote.into(),
                security_id: security.security_id.into(),
                underlying_security_id: security.underlying_security_id.map(le::I32::new).into(),
                quote_set_id: security.quote_set_id.into(),
                ..QuoteEntry::BLANK
            })
            .collect();
        let head = MassQuotePrefix {
            frame: Frame {
                encoding_type: ENCODING.into(),
                ..Frame::BLANK
            },
            header: MessageHeader {
                block_length: (MassQuoteRoot::SIZE as u16).into(),
                template_id: MassQuote::TEMPLATE.into(),
                schema_id: super::Body::SCHEMA.into(),
                version: NEWEST_VERSION.into(),
            },
            root: MassQuoteRoot {
                party_details_list_req_id: identity.party_details_list_req_id.into(),
                sender_id: identity.sender_id,
                location: identity.location,
                ..MassQuoteRoot::BLANK
            },
            entries: GroupSize {
                block_length: (QuoteEntry::SIZE as u16).into(),
                count: 0,
            },
        };
        let entries_max = usize::from(entries_max);
        let mut buffer = vec![0; MassQuotePrefix::SIZE + entries_max * QuoteEntry::SIZE].into_boxed_slice();
        buffer[..MassQuotePrefix::SIZE].copy_from_slice(head.as_bytes());
        Some(MassQuoteTemplate {
            buffer,
            entries: entries.into_boxed_slice(),
            tick: tick.raw(),
            entries_max,
        })
    }

    /// Writes the message, frame first. A side without quantity is null in price and size: the venue takes it
    /// away. `None` if there are no entries or too many, one of an unknown instrument, or a quantity of 2^32 -
    /// 1, which means null; the next message is whole again.
    #[inline]
    pub fn write(&mut self, message: &MassQuoteHead, entries: &[MassQuoteEntry]) -> Option<&[u8]> {
        if !(1..=self.entries_max).contains(&entries.len()) {
            return None;
        }
        let length = MassQuotePrefix::SIZE + entries.len() * QuoteEntry::SIZE;
        let bytes = self.buffer.get_mut(..length)?;
        let (head, slots) = split_mut::<MassQuotePrefix>(bytes)?;
        head.frame.message_length.set(length as u16); // 255 entries are less than 64 KiB
        let root = &mut head.root;
        root.sending_time.set(message.sending_time.0);
        root.seq_num.set(message.seq);
        root.quote_id.set(message.id);
        root.tot_no_quote_entries = entries.len() as u8;
        root.protection_reset = message.reset.into();
        head.entries.count = entries.len() as u8;
        for (slot, entry) in slots.chunks_exact_mut(QuoteEntry::SIZE).zip(entries) {
            let mut filled = *self.entries.get(usize::from(entry.quote))?;
            (filled.bid_price, filled.bid_size) = side(entry.bid_ticks, entry.bid_qty.0, self.tick)?;
            (filled.offer_price, filled.offer_size) = side(entry.ask_ticks, entry.ask_qty.0, self.tick)?;
            slot.copy_from_slice(filled.as_bytes());
        }
        Some(bytes)
    }
}

/// Price and size of one side.
#[inline(always)]
fn side(ticks: u16, qty: u32, tick: i64) -> Option<(Optional<Price9>, Optional<le::U32>)> {
    match qty {
        0 => Some((Optional::NULL, Optional::NULL)),
        u32::MAX => None,
        _ => Some((
            Optional(Scaled(le::I64::new(i64::from(ticks) * tick))),
            Optional(le::U32::new(qty)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ilink3::{Body, parse, split};
    use proptest::prelude::*;
    use tickwire_market::Qty;

    const CENT: i64 = 10_000_000;

    fn identity() -> Identity {
        Identity {
            party_details_list_req_id: 7,
            sender_id: Text::new(b"TS").unwrap(),
            location: Text::new(b"US,IL").unwrap(),
        }
    }

    fn securities() -> Vec<QuotedSecurity> {
        let security = |n: i32| QuotedSecurity {
            security_id: 532_259 + n,
            underlying_security_id: (n % 2 == 0).then_some(-n),
            quote_set_id: n as u16 / 100,
        };
        (0..300).map(security).collect()
    }

    fn template(tick: i64, entries_max: u8) -> MassQuoteTemplate {
        MassQuoteTemplate::new(&identity(), &securities(), Price::from_raw(tick), entries_max).unwrap()
    }

    const HEAD: MassQuoteHead = MassQuoteHead {
        seq: 1,
        sending_time: Nanos(1),
        id: 1,
        reset: false,
    };

    fn entry(quote: u16, ticks: [u16; 2], qty: [u32; 2]) -> MassQuoteEntry {
        MassQuoteEntry {
            quote,
            bid_ticks: ticks[0],
            ask_ticks: ticks[1],
            bid_qty: Qty(qty[0]),
            ask_qty: Qty(qty[1]),
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_the_next_message_is_whole() {
        let mut template = template(CENT, 2);
        let good = entry(1, [100, 105], [10, 10]);
        for entries in [
            &[][..],
            &[good; 3],
            &[entry(300, [1, 2], [1, 1])],
            &[good, entry(1, [1, 2], [u32::MAX, 1])],
        ] {
            assert_eq!(template.write(&HEAD, entries), None, "{entries:?}");
        }
        let message = template.write(&HEAD, &[good]).unwrap();
        let (message, taken) = split(message).unwrap().unwrap();
        assert_eq!(taken, MassQuotePrefix::SIZE + QuoteEntry::SIZE);
        assert!(parse(message).is_ok());
        let (all, tick) = (securities(), Price::from_raw(CENT));
        let made = |securities: &[QuotedSecurity], tick, entries| {
            MassQuoteTemplate::new(&identity(), securities, tick, entries).is_some()
        };
        assert!(made(&all, tick, 255) && !made(&[], tick, 1) && !made(&all, tick, 0));
        assert!(!made(&all, Price::from_raw(0), 1) && !made(&all, Price::from_raw(i64::MAX / 65_535 + 1), 1));
        assert!(made(&all, Price::from_raw(i64::MAX / 65_536), 1));
    }

    proptest! {
        #[test]
        fn every_message_decodes_to_its_values_and_is_what_the_plain_encoder_writes(
            seq: u32, id: u32, time: u64, reset: bool, tick in 1..1_000_000_000_i64,
            values in proptest::collection::vec((0_u16..300, any::<[u16; 2]>(), any::<[u32; 2]>(), 0_u8..4), 1..40),
        ) {
            let mut template = template(tick, 40);
            let entries: Vec<MassQuoteEntry> = values
                .iter()
                .map(|&(quote, ticks, qty, sides)| {
                    let qty = [0, 1].map(|side| if sides >> side & 1 == 0 { 0 } else { qty[side].min(u32::MAX - 1) });
                    entry(quote, ticks, qty)
                })
                .collect();
            // Twice: what the first one left behind must not show.
            for entries in [&entries[..], &entries[..1], &entries[..]] {
                let head = MassQuoteHead { seq, sending_time: Nanos(time), id, reset };
                let bytes = template.write(&head, entries).unwrap();
                let (message, taken) = split(bytes).unwrap().unwrap();
                prop_assert_eq!(taken, bytes.len());
                let read = parse(message).unwrap();
                prop_assert!(read.rest.is_empty());
                let Body::MassQuote(quote) = read.body else { panic!("{}", read.name()) };
                let root = quote.root.get();
                prop_assert_eq!((root.seq_num.get(), root.quote_id.get()), (seq, id));
                prop_assert_eq!((root.sending_time.get(), root.protection_reset), (time, u8::from(reset)));
                prop_assert_eq!(usize::from(root.tot_no_quote_entries), entries.len());
                prop_assert_eq!((root.sender_id, root.location), (identity().sender_id, identity().location));
                prop_assert_eq!(quote.entries.len(), entries.len());
                for (wanted, have) in entries.iter().zip(quote.entries) {
                    let of = |ticks: u16, qty: u32| {
                        let price = Price::from_raw(i64::from(ticks) * tick);
                        if qty == 0 { (None, None) } else { (Some(price), Some(le::U32::new(qty))) }
                    };
                    prop_assert_eq!(
                        (have.bid_price.price(), have.bid_size.get()),
                        of(wanted.bid_ticks, wanted.bid_qty.0)
                    );
                    prop_assert_eq!(
                        (have.offer_price.price(), have.offer_size.get()),
                        of(wanted.ask_ticks, wanted.ask_qty.0)
                    );
                    let security = securities()[usize::from(wanted.quote)];
                    prop_assert_eq!(have.quote_entry_id.get(), u32::from(wanted.quote));
                    prop_assert_eq!(have.security_id.get(), security.security_id);
                    prop_assert_eq!(
                        have.underlying_security_id.get().map(le::I32::get),
                        security.underlying_security_id
                    );
                    prop_assert_eq!(have.quote_set_id.get(), security.quote_set_id);
                }
                let mut again = vec![0; bytes.len()];
                let length = MassQuote::encode(&mut again, &root, quote.entries).unwrap();
                prop_assert_eq!(&again[..length], bytes);
            }
        }
    }
}
