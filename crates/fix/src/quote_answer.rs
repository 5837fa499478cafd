//! What a venue says about quotes: MassQuoteAcknowledgement (b), QuoteStatusReport (AI) and, where quotes are
//! orders, OrderMassCancelReport (r), read without a copy. Fills of quotes are ExecutionReports
//! ([`crate::ExecutionReport`]) whose ClOrdID is the entry's name. FIX 4.4, volume 3, "Quotation /
//! Negotiation"; 5.0 SP2, volume 3; CME, iLink 2, "Mass Quote" for UnsolicitedCancelType (9775).

use crate::decode::Message;
use crate::encode::Encoder;
use crate::fields::Fields;
use crate::group::RepeatingGroup;
use crate::message::put_cause;
use crate::reject::Fault;
use crate::tag;
use crate::text::Id;
use crate::time::{Precision, Stamp};
use alloc::vec::Vec;
use tickwire_market::{Cause, Nanos, Price, Qty, Side, Symbol};

/// QuoteSets of a MassQuote or its acknowledgement: reaches to the end of the message. What stands behind it
/// there is found by its tag all the same.
#[derive(Clone, Debug)]
pub struct QuoteSets;

impl RepeatingGroup for QuoteSets {
    const COUNT: u32 = tag::NO_QUOTE_SETS;
    fn has(tag: u32) -> bool {
        tag != tag::NO_QUOTE_SETS
    }
}

/// Entries of a set: up to the next set.
#[derive(Clone, Debug)]
pub struct QuoteEntries;

impl RepeatingGroup for QuoteEntries {
    const COUNT: u32 = tag::NO_QUOTE_ENTRIES;
    fn has(tag: u32) -> bool {
        !matches!(
            tag,
            tag::NO_QUOTE_SETS
                | tag::QUOTE_SET_ID
                | tag::TOT_NO_QUOTE_ENTRIES
                | tag::NO_QUOTE_ENTRIES
                | tag::LAST_FRAGMENT
        )
    }
}

/// What a message says about our quotes. Entries are named by their place, as [`crate::MassQuoteTemplate`]
/// names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteAnswer {
    /// The MassQuote of this QuoteID was taken, but for the entries given beside; or, with `is_rejected`,
    /// none of it.
    Answered {
        /// QuoteID (117).
        id: u64,
        /// QuoteStatus (297) is 5.
        is_rejected: bool,
    },
    /// Quotes are gone without having been asked for: the entries given beside.
    Removed {
        /// UnsolicitedCancelType (9775): `A` the connection was lost, `C` the day is over, `F` market maker
        /// protection; 0 when not said.
        why: u8,
    },
    /// The QuoteCancel of this QuoteID, or the OrderMassCancelRequest of this ClOrdID, was done, or refused.
    Cancelled {
        /// QuoteID (117), or ClOrdID (11).
        id: u64,
        /// QuoteStatus (297) is 1 to 4, or 17; MassCancelResponse (531) is not 0.
        is_done: bool,
    },
    /// A quote is not what it was: what is left of it. Of a venue's prevention of trades with oneself, for
    /// instance.
    Left {
        /// Its instrument (55).
        symbol: Symbol,
        /// Contracts of its bid (134) and of its offer (135).
        open: [u32; 2],
    },
}

/// Reads a message of type b, AI or r; `Ok(None)` when it is of another. `entries` is emptied, and filled
/// with the numbers of the entries it names: those refused of a MassQuote, those gone of a removal. Entries
/// beyond its capacity are an error, so that nothing is allocated here.
///
/// # Errors
/// What is missing or no value, by tag: a QuoteID or a QuoteEntryID (299) that we did not give, too.
pub fn read_quote_answer<N: TryFrom<u64>>(
    m: &Message<'_>,
    entries: &mut Vec<N>,
) -> Result<Option<QuoteAnswer>, Fault> {
    entries.clear();
    let kind = m.find(tag::MSG_TYPE).ok_or(Fault::missing(tag::MSG_TYPE))?;
    let is_acknowledgement = match m.value(kind) {
        b"b" => true,
        b"AI" => false,
        b"r" => return mass_cancelled(m).map(Some),
        _ => return Ok(None),
    };
    let status = m
        .find(tag::QUOTE_STATUS)
        .ok_or(Fault::missing(tag::QUOTE_STATUS))?;
    let status = m.unsigned(status)?;
    let id =
        || -> Result<u64, Fault> { m.unsigned(m.find(tag::QUOTE_ID).ok_or(Fault::missing(tag::QUOTE_ID))?) };
    if !is_acknowledgement {
        return match status {
            1..=4 | 17 => Ok(Some(QuoteAnswer::Cancelled {
                id: id()?,
                is_done: true,
            })),
            5 => Ok(Some(QuoteAnswer::Cancelled {
                id: id()?,
                is_done: false,
            })),
            _ => {
                let symbol = m.find(tag::SYMBOL).ok_or(Fault::missing(tag::SYMBOL))?;
                let left = |size: u32| -> Result<u32, Fault> {
                    let size = m.find(size).map(|f| m.qty(f)).transpose()?;
                    Ok(size.map_or(0, |qty| qty.0))
                };
                Ok(Some(QuoteAnswer::Left {
                    symbol: Symbol::new(m.value(symbol)).ok_or(Fault::value(tag::SYMBOL))?,
                    open: [left(tag::BID_SIZE)?, left(tag::OFFER_SIZE)?],
                }))
            }
        };
    }
    let why = m
        .find(tag::UNSOLICITED_CANCEL_TYPE)
        .map(|f| m.char(f))
        .transpose()?;
    let is_removal = why.is_some() || status == 6;
    if let Some(sets) = m.group::<QuoteSets>() {
        sets.clone().check()?;
        for set in sets {
            let Some(group) = set.group::<QuoteEntries>() else {
                continue;
            };
            group.clone().check()?;
            for entry in group {
                if is_removal || is_refused(&entry)? {
                    push(entries, place(&entry)?)?;
                }
            }
        }
    }
    Ok(Some(match is_removal {
        true => QuoteAnswer::Removed {
            why: why.unwrap_or(0),
        },
        false => QuoteAnswer::Answered {
            id: id()?,
            is_rejected: status == 5,
        },
    }))
}

fn mass_cancelled(m: &Message<'_>) -> Result<QuoteAnswer, Fault> {
    let field = |tag: u32| m.find(tag).ok_or(Fault::missing(tag));
    let name: Id = m.text(field(tag::CL_ORD_ID)?)?;
    Ok(QuoteAnswer::Cancelled {
        id: name.to_number().ok_or(Fault::value(tag::CL_ORD_ID))?,
        is_done: m.char(field(tag::MASS_CANCEL_RESPONSE)?)? != b'0',
    })
}

/// Whether an entry was refused: it has a QuoteEntryRejectReason (368), or QuoteEntryStatus (1167) 5.
fn is_refused(entry: &Fields<'_>) -> Result<bool, Fault> {
    let status = entry
        .find(tag::QUOTE_ENTRY_STATUS)
        .map(|f| entry.unsigned(f))
        .transpose()?;
    Ok(entry.find(tag::QUOTE_ENTRY_REJECT_REASON).is_some() || status == Some(5))
}

fn place<N: TryFrom<u64>>(entry: &Fields<'_>) -> Result<N, Fault> {
    let name = entry
        .find(tag::QUOTE_ENTRY_ID)
        .ok_or(Fault::missing(tag::QUOTE_ENTRY_ID))?;
    N::try_from(entry.unsigned(name)?).map_err(|_| Fault::value(tag::QUOTE_ENTRY_ID))
}

fn push<N>(entries: &mut Vec<N>, place: N) -> Result<(), Fault> {
    if entries.len() == entries.capacity() {
        return Err(Fault::value(tag::NO_QUOTE_ENTRIES));
    }
    entries.push(place);
    Ok(())
}

/// A quote of an instrument within a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuoteLine {
    /// QuoteEntryID (299).
    pub name: u64,
    /// Symbol (55).
    pub symbol: Symbol,
    /// BidPx and BidSize (132, 134), OfferPx and OfferSize (133, 135); a size of 0 takes the side away.
    pub sides: [(Price, Qty); 2],
}

/// Writes the body of a MassQuote (i) of one set, to be answered entry by entry, with prices of any size and
/// tick; what sends the same instruments again and again has [`crate::MassQuoteTemplate`]. `id` is its
/// QuoteID.
pub fn put_mass_quote(e: &mut Encoder<'_>, id: u64, cause: Option<Cause>, resets: bool, lines: &[QuoteLine]) {
    e.unsigned(tag::QUOTE_ID, id);
    // Tradeable, and an answer to each.
    e.unsigned(tag::QUOTE_TYPE, 1);
    e.unsigned(tag::QUOTE_RESPONSE_LEVEL, 2);
    put_cause(e, &cause);
    if resets {
        e.char(tag::MM_PROTECTION_RESET, b'Y');
    }
    e.unsigned(tag::NO_QUOTE_SETS, 1);
    e.unsigned(tag::QUOTE_SET_ID, 1);
    e.unsigned(tag::TOT_NO_QUOTE_ENTRIES, lines.len() as u64);
    e.unsigned(tag::NO_QUOTE_ENTRIES, lines.len() as u64);
    for line in lines {
        e.unsigned(tag::QUOTE_ENTRY_ID, line.name);
        e.text(tag::SYMBOL, line.symbol.as_bytes());
        let of = |side: Side| Some(line.sides[side as usize]).filter(|(_, qty)| !qty.is_zero());
        for (side, price) in [(Side::Bid, tag::BID_PX), (Side::Ask, tag::OFFER_PX)] {
            if let Some((at, _)) = of(side) {
                e.price(price, at);
            }
        }
        for (side, size) in [(Side::Bid, tag::BID_SIZE), (Side::Ask, tag::OFFER_SIZE)] {
            e.unsigned(size, of(side).map_or(0, |(_, qty)| u64::from(qty.0)));
        }
    }
}

/// Writes the body of a QuoteCancel (Z) of the quotes of these instruments, to be answered: `id` is its
/// QuoteID.
pub fn put_cancel_quotes(e: &mut Encoder<'_>, id: u64, lines: &[QuoteLine]) {
    e.unsigned(tag::QUOTE_ID, id);
    e.unsigned(tag::QUOTE_CANCEL_TYPE, 1);
    e.unsigned(tag::QUOTE_RESPONSE_LEVEL, 2);
    e.unsigned(tag::NO_QUOTE_ENTRIES, lines.len() as u64);
    for line in lines {
        e.text(tag::SYMBOL, line.symbol.as_bytes());
    }
}

/// Writes the body of a QuoteCancel (Z) of every quote of the session, to be answered: `id` is its QuoteID.
pub fn put_cancel_all_quotes(e: &mut Encoder<'_>, id: u64) {
    e.unsigned(tag::QUOTE_ID, id);
    e.unsigned(tag::QUOTE_CANCEL_TYPE, 4);
    e.unsigned(tag::QUOTE_RESPONSE_LEVEL, 2);
}

/// Writes the body of a QuoteStatusRequest (a) about the quote of an instrument: `id` is its
/// QuoteStatusReqID, in the standard since 4.4.
pub fn put_quote_status_request(e: &mut Encoder<'_>, id: u64, symbol: &Symbol) {
    e.unsigned(tag::QUOTE_STATUS_REQ_ID, id);
    e.text(tag::SYMBOL, symbol.as_bytes());
}

/// The QuoteStatusReqID that a QuoteStatusReport answers; `None` where it answers none of ours.
pub fn quote_status_answers(m: &Message<'_>) -> Option<u64> {
    m.unsigned(m.find(tag::QUOTE_STATUS_REQ_ID)?).ok()
}

/// Writes the body of an OrderMassCancelRequest (q) of every order of the session: `id` is its ClOrdID.
pub fn put_cancel_all_orders(e: &mut Encoder<'_>, id: u64, now: Nanos) {
    e.unsigned(tag::CL_ORD_ID, id);
    e.char(tag::MASS_CANCEL_REQUEST_TYPE, b'7');
    e.timestamp(tag::TRANSACT_TIME, &mut Stamp::new(Precision::Millis), now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Index;
    use crate::version::Version;
    use proptest::prelude::*;

    fn read(entries: &mut Vec<u16>, body: &str) -> Result<Option<QuoteAnswer>, Fault> {
        let mut buffer = [0; 4096];
        let mut e = Encoder::new(&mut buffer, Version::Fix44);
        for field in body.split('|') {
            let (tag, value) = field.split_once('=').unwrap();
            e.text(tag.parse().unwrap(), value.as_bytes());
        }
        let bytes = e.finish().unwrap();
        let mut index = Index::new(256);
        read_quote_answer(&index.decode(bytes).unwrap(), entries)
    }

    #[test]
    fn answers_are_what_the_venue_says() {
        let mut entries = Vec::with_capacity(8);
        let said = read(
            &mut entries,
            "35=b|117=77|297=0|301=2|296=2|302=1|304=2|295=2|299=4|299=9|368=8|302=2|304=1|295=1|299=7|1167=5",
        );
        let taken = QuoteAnswer::Answered {
            id: 77,
            is_rejected: false,
        };
        assert_eq!((said, &entries[..]), (Ok(Some(taken)), &[9, 7][..]));
        let said = read(&mut entries, "35=b|117=0000000000000078|297=5|300=99");
        let refused = QuoteAnswer::Answered {
            id: 78,
            is_rejected: true,
        };
        assert_eq!((said, &entries[..]), (Ok(Some(refused)), &[][..]));
        let said = read(
            &mut entries,
            "35=b|117=5|297=6|9775=F|296=1|302=1|304=2|295=2|299=1|299=65535",
        );
        let gone = QuoteAnswer::Removed { why: b'F' };
        assert_eq!((said, &entries[..]), (Ok(Some(gone)), &[1, 65_535][..]));
        for (status, is_done) in [(4, true), (17, true), (5, false)] {
            let said = read(&mut entries, &alloc::format!("35=AI|117=9|55=[N/A]|297={status}"));
            assert_eq!(said, Ok(Some(QuoteAnswer::Cancelled { id: 9, is_done })));
        }
        let said = read(&mut entries, "35=AI|117=9|55=ES|133=5|135=2|297=0");
        let left = QuoteAnswer::Left {
            symbol: Symbol::new(b"ES").unwrap(),
            open: [0, 2],
        };
        assert_eq!(said, Ok(Some(left)));
        for (response, is_done) in [(7, true), (1, true), (0, false)] {
            let said = read(
                &mut entries,
                &alloc::format!("35=r|11=12|37=1|530=7|531={response}"),
            );
            assert_eq!(said, Ok(Some(QuoteAnswer::Cancelled { id: 12, is_done })));
        }
        assert_eq!(read(&mut entries, "35=8|117=9|297=0"), Ok(None));
    }

    #[test]
    fn what_is_missing_or_not_ours_is_refused_by_tag() {
        let mut entries = Vec::with_capacity(2);
        let head = "35=b|117=1|297=6|296=1|302=1|304=1|295=1";
        for (body, tag) in [
            ("35=b|117=1".into(), 297),
            ("35=b|297=0".into(), 117),
            ("35=b|117=Q1|297=0".into(), 117),
            ("35=AI|117=1|297=0".into(), 55),
            ("35=r|11=1|530=7".into(), 531),
            ("35=r|11=A|531=7".into(), 11),
            (alloc::format!("{head}|299=x"), 299),
            (alloc::format!("{head}|299=65536"), 299),
            ("35=b|117=1|297=6|296=1|302=1|304=1|295=2|299=1".into(), 295),
            (
                "35=b|117=1|297=6|296=1|302=1|304=3|295=3|299=1|299=2|299=3".into(),
                295,
            ),
        ] {
            let body: alloc::string::String = body;
            assert_eq!(read(&mut entries, &body).unwrap_err().tag, Some(tag), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_message_is_read_as_more_than_it_says(
            fields in proptest::collection::vec((0_usize..12, 0_u32..70_000), 1..40), kind: bool,
        ) {
            const TAGS: [u32; 12] = [117, 297, 296, 302, 295, 299, 368, 1167, 9775, 55, 134, 304];
            let mut body = alloc::format!("35={}", if kind { "b" } else { "AI" });
            for (at, value) in fields {
                body.push_str(&alloc::format!("|{}={}", TAGS[at], value % 8));
            }
            let mut entries = Vec::with_capacity(16);
            let _ = read(&mut entries, &body);
            prop_assert!(entries.capacity() == 16);
        }
    }
}
