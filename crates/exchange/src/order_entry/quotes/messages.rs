//! Quoting over FIX: requests read, answers worded.

use alloc::vec::Vec;

use tickwire_fix::{
    Encoder, Fault, Field, Fields, Id, Message, QuoteEntries, QuoteSets, Version, business_reject_reason, tag,
};
use tickwire_market::{Price, Qty, Symbol};
use tickwire_persist::persist;

use crate::order::Reject;
use crate::order_entry::fix::{Refused, cause, id_of, optional, required, symbol};

use super::{
    Asking, Cancels, ENTRIES_MAX, EntryOutcome, MassQuoting, NO_ID, Names, PROTECTED, QuoteCanceling,
    REFUSED, StatusAsking, own,
};

/// What is said about quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::order_entry) enum QuoteOut {
    /// MassQuoteAcknowledgement of a MassQuote.
    Ack {
        quote_id: Id,
        level: u64,
        /// How many entries were taken and refused.
        counts: [u32; 2],
        is_reset: bool,
        entries: Vec<EntryOutcome>,
        text: &'static str,
    },
    /// MassQuoteAcknowledgement that nobody asked for: the entries are gone.
    Removed {
        quote_id: Id,
        /// UnsolicitedCancelType.
        why: u8,
        entries: Vec<EntryOutcome>,
    },
    /// QuoteStatusReport; up to 4.2 a MassQuoteAcknowledgement.
    Status {
        request: Option<Id>,
        quote_id: Id,
        symbol: Symbol,
        status: u8,
        /// Price and quantity of bid and offer, as far as there is any.
        sides: [Option<(Price, Qty)>; 2],
        text: &'static str,
    },
}

pub(in crate::order_entry) fn read_mass_quote(m: &Message<'_>) -> Result<MassQuoting, Refused> {
    let size = |tag| optional(m, tag, |m, f| m.qty(f));
    let (bid_size, offer_size) = (size(own::DEF_BID_SIZE)?, size(own::DEF_OFFER_SIZE)?);
    let quote_id = match m.find(tag::QUOTE_ID) {
        Some(_) => id_of(m, tag::QUOTE_ID)?,
        None => return Err(Fault::missing(tag::QUOTE_ID).into()),
    };
    let mut entries = Vec::new();
    let sets = m.group::<QuoteSets>().ok_or(Fault::missing(tag::NO_QUOTE_SETS))?;
    sets.clone().check()?;
    for set in sets {
        let set_id = text(&set, tag::QUOTE_SET_ID)?;
        let group = set.group::<QuoteEntries>();
        let group = group.ok_or(Fault::missing(tag::NO_QUOTE_ENTRIES))?;
        group.clone().check()?;
        if entries.len() as u64 + group.claimed() > ENTRIES_MAX as u64 {
            let reason = business_reject_reason::OTHER;
            return Err(Refused::Business(reason, "more than 512 entries in one message"));
        }
        for entry in group {
            let side = |price: u32, size: u32, otherwise: Option<Qty>| -> Result<(Price, Qty), Fault> {
                let price = entry.find(price).map(|f| entry.price(f)).transpose()?;
                let size = entry.find(size).map(|f| entry.qty(f)).transpose()?;
                let price = price.unwrap_or(Price::ZERO);
                let qty = size.or(otherwise).unwrap_or(Qty::ZERO);
                Ok((price, if price == Price::ZERO { Qty::ZERO } else { qty }))
            };
            entries.push(Asking {
                names: Names {
                    quote_id,
                    set_id,
                    entry_id: text(&entry, tag::QUOTE_ENTRY_ID)?,
                },
                symbol: symbol_of(&entry, tag::SYMBOL)?,
                bid: side(tag::BID_PX, tag::BID_SIZE, bid_size)?,
                ask: side(tag::OFFER_PX, tag::OFFER_SIZE, offer_size)?,
            });
        }
    }
    Ok(MassQuoting {
        quote_id,
        cause: cause(m),
        level: optional(m, tag::QUOTE_RESPONSE_LEVEL, |m, f| m.unsigned(f))?.unwrap_or(0),
        resets: optional(m, tag::MM_PROTECTION_RESET, |m, f| m.boolean(f))?.unwrap_or(false),
        entries,
    })
}

pub(super) fn text(fields: &Fields<'_>, tag: u32) -> Result<Id, Fault> {
    fields.text(fields.find(tag).ok_or(Fault::missing(tag))?)
}

fn symbol_of(fields: &Fields<'_>, tag: u32) -> Result<Symbol, Fault> {
    let name: Field = fields.find(tag).ok_or(Fault::missing(tag))?;
    Symbol::new(fields.value(name)).ok_or(Fault::value(tag))
}

pub(in crate::order_entry) fn read_cancel(m: &Message<'_>) -> Result<QuoteCanceling, Refused> {
    // The field of each entry, and of the message itself.
    let named = |tag: u32| -> Result<Vec<Symbol>, Fault> {
        let Some(group) = m.group::<QuoteEntries>() else {
            let one = m.find(tag).ok_or(Fault::missing(tag::NO_QUOTE_ENTRIES))?;
            return Ok(alloc::vec![symbol(m, one)?]);
        };
        group.clone().check()?;
        let entries = group.take(ENTRIES_MAX);
        entries.map(|entry| symbol_of(&entry, tag)).collect()
    };
    let which = match required(m, tag::QUOTE_CANCEL_TYPE, |m, f| m.unsigned(f))? {
        1 => Cancels::Instruments(named(tag::SYMBOL)?),
        2 => Cancels::Type(id_of(m, own::SECURITY_TYPE)?),
        3 => {
            let has_own = m.find(own::UNDERLYING_SYMBOL).is_some();
            let tag = if has_own {
                own::UNDERLYING_SYMBOL
            } else {
                tag::SYMBOL
            };
            Cancels::Underlyings(named(tag)?)
        }
        4 => Cancels::All,
        5 => Cancels::Single,
        _ => Cancels::Unknown,
    };
    Ok(QuoteCanceling {
        quote_id: optional(m, tag::QUOTE_ID, |m, f| m.text(f))?.unwrap_or(NO_ID),
        level: optional(m, tag::QUOTE_RESPONSE_LEVEL, |m, f| m.unsigned(f))?.unwrap_or(0),
        which,
    })
}

pub(in crate::order_entry) fn read_status(m: &Message<'_>) -> Result<StatusAsking, Refused> {
    Ok(StatusAsking {
        request: optional(m, own::QUOTE_STATUS_REQ_ID, |m, f| m.text(f))?,
        symbol: required(m, tag::SYMBOL, symbol)?,
    })
}

/// QuoteEntryRejectReason (368): 1 unknown symbol, 2 closed, 3 exceeds limit, 7 bid and offer, 8 price, 9 not
/// authorised, 10 price band (since 5.0), 98 market maker protection (CME), 99 other; up to 4.2, 9 for those
/// beyond.
fn entry_reason(version: Version, reject: Reject) -> u64 {
    let reason = match reject {
        Reject::UnknownInstrument => 1,
        Reject::NotTrading => 2,
        Reject::Quantity | Reject::Lot | Reject::Full => 3,
        Reject::Quote => 7,
        Reject::PriceBand if version.is_fixt() => 10,
        Reject::Tick | Reject::PriceRange | Reject::PriceBand => 8,
        Reject::NoFirm => 9,
        Reject::Protected => 98,
        _ => 99,
    };
    if version <= Version::Fix42 {
        reason.min(9)
    } else {
        reason
    }
}

impl QuoteOut {
    pub(in crate::order_entry) fn msg_type(&self, version: Version) -> &'static [u8] {
        match self {
            QuoteOut::Status { .. } if version > Version::Fix42 => b"AI",
            _ => b"b",
        }
    }

    pub(in crate::order_entry) fn encode(&self, e: &mut Encoder<'_>, version: Version) {
        match self {
            QuoteOut::Ack {
                quote_id,
                level,
                counts,
                is_reset,
                entries,
                text,
            } => {
                let is_refused = counts[0] == 0 && counts[1] > 0;
                e.text(tag::QUOTE_ID, quote_id.as_bytes());
                e.unsigned(tag::QUOTE_STATUS, if is_refused { REFUSED.into() } else { 0 });
                if is_refused {
                    e.unsigned(own::QUOTE_REJECT_REASON, other(version));
                }
                e.unsigned(tag::QUOTE_RESPONSE_LEVEL, *level);
                e.text_if(tag::TEXT, text.as_bytes());
                if *is_reset {
                    e.char(tag::MM_PROTECTION_RESET, b'Y');
                }
                put_entries(e, version, entries);
            }
            QuoteOut::Removed {
                quote_id,
                why,
                entries,
            } => {
                e.text(tag::QUOTE_ID, quote_id.as_bytes());
                e.unsigned(tag::QUOTE_STATUS, if version > Version::Fix42 { 6 } else { 4 });
                if *why == b'F' {
                    e.text(tag::TEXT, PROTECTED.as_bytes());
                }
                e.char(tag::UNSOLICITED_CANCEL_TYPE, *why);
                put_entries(e, version, entries);
            }
            QuoteOut::Status {
                request,
                quote_id,
                symbol,
                status,
                sides,
                text,
            } => {
                if version <= Version::Fix42 {
                    return put_old_status(e, quote_id, *status, text);
                }
                if let Some(request) = request {
                    e.text(own::QUOTE_STATUS_REQ_ID, request.as_bytes());
                }
                e.text(tag::QUOTE_ID, quote_id.as_bytes());
                e.text(tag::SYMBOL, symbol.as_bytes());
                let tags = [(tag::BID_PX, tag::BID_SIZE), (tag::OFFER_PX, tag::OFFER_SIZE)];
                for (side, (price, size)) in sides.iter().zip(tags) {
                    if let Some((at, qty)) = side {
                        e.price(price, *at);
                        e.unsigned(size, qty.0.into());
                    }
                }
                let status = match status {
                    0 if version >= Version::Fix50Sp1 => 16,
                    status => *status,
                };
                e.unsigned(tag::QUOTE_STATUS, status.into());
                // 4.3 has no word for it.
                if version >= Version::Fix44 {
                    e.text_if(tag::TEXT, text.as_bytes());
                }
            }
        }
    }
}

/// QuoteRejectReason (300) of what has none of its own.
fn other(version: Version) -> u64 {
    if version >= Version::Fix44 { 99 } else { 9 }
}

/// Up to 4.2 a MassQuoteAcknowledgement answers, and knows QuoteStatus 0 to 5 only; QuoteRejectReason 5 is an
/// unknown quote.
fn put_old_status(e: &mut Encoder<'_>, quote_id: &Id, status: u8, text: &'static str) {
    e.text(tag::QUOTE_ID, quote_id.as_bytes());
    e.unsigned(tag::QUOTE_STATUS, status.min(REFUSED).into());
    if status >= REFUSED {
        e.unsigned(own::QUOTE_REJECT_REASON, 5);
    }
    e.text_if(tag::TEXT, text.as_bytes());
}

/// Entries in their sets, which are as they came: those of one set follow each other.
fn put_entries(e: &mut Encoder<'_>, version: Version, entries: &[EntryOutcome]) {
    let sets = || entries.chunk_by(|a, b| a.names.set_id == b.names.set_id);
    if entries.is_empty() {
        return;
    }
    e.unsigned(tag::NO_QUOTE_SETS, sets().count() as u64);
    for set in sets() {
        e.text(tag::QUOTE_SET_ID, set[0].names.set_id.as_bytes());
        e.unsigned(tag::TOT_NO_QUOTE_ENTRIES, set.len() as u64);
        e.unsigned(tag::NO_QUOTE_ENTRIES, set.len() as u64);
        for entry in set {
            e.text(tag::QUOTE_ENTRY_ID, entry.names.entry_id.as_bytes());
            if version >= Version::Fix50Sp2 {
                let is_refused = entry.reject.is_some();
                e.unsigned(
                    tag::QUOTE_ENTRY_STATUS,
                    if is_refused { REFUSED.into() } else { 0 },
                );
            }
            if let Some(reject) = entry.reject {
                e.unsigned(tag::QUOTE_ENTRY_REJECT_REASON, entry_reason(version, reject));
            }
        }
    }
}

persist!(value enum QuoteOut {
    0 => Ack { quote_id, level, counts, is_reset, entries, text },
    1 => Removed { quote_id, why, entries },
    2 => Status { request, quote_id, symbol, status, sides, text },
});
