//! Typed FIX messages: whatever a message holds, the generated views find the entries that a naive walk
//! finds, or say why not.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use tickwire_fix::dict::{Dictionary, Layout, MemberKind};
use tickwire_fix::{Fault, Index, SessionRejectReason, naive};
use tickwire_fixmsg::fix44::{AnyMessage, MarketDataIncrementalRefresh, MassQuote, fields};

const MESSAGE_MAX: usize = 4096;

type Plain = [(u32, Vec<u8>)];

/// What may be in an entry, by the dictionary and not by generated code.
struct Groups {
    sets: BTreeSet<u32>,
    entries: BTreeSet<u32>,
    known: BTreeSet<u32>,
}

impl Groups {
    fn get() -> &'static Groups {
        static GROUPS: OnceLock<Groups> = OnceLock::new();
        GROUPS.get_or_init(|| {
            let dictionary = Dictionary::parse(include_str!("../../../fixmsg/dictionaries/FIX44.xml"));
            let dictionary = dictionary.expect("the build read it");
            let (mut sets, mut entries) = (BTreeSet::new(), BTreeSet::new());
            let message = dictionary.message(b"i").expect("it has mass quotes");
            for member in dictionary.layout(message).members() {
                if let MemberKind::Group(_, inner) = member.kind {
                    all_tags(inner, &mut sets);
                    let quotes = inner.members().find_map(|m| match m.kind {
                        MemberKind::Group(_, quotes) => Some(quotes),
                        _ => None,
                    });
                    all_tags(quotes.expect("sets have entries"), &mut entries);
                }
            }
            let known = dictionary.fields().iter().map(|f| f.tag).collect();
            Groups { sets, entries, known }
        })
    }
}

fn all_tags(layout: Layout<'_>, tags: &mut BTreeSet<u32>) {
    tags.extend(layout.fields().iter().map(|f| f.tag));
    for member in layout.members() {
        match member.kind {
            MemberKind::Field(_) => {}
            MemberKind::Group(_, inner) | MemberKind::Component(_, inner) => all_tags(inner, tags),
        }
    }
}

/// The input is what stands between BodyLength and CheckSum. Entries, groups within them and values of a
/// MassQuote and a MarketDataIncrementalRefresh, against lists of fields.
pub fn fix_typed(body: &[u8]) {
    let bytes = framed(body);
    let mut index = Index::new(MESSAGE_MAX);
    let Ok(message) = index.decode(&bytes) else {
        return;
    };
    let Some(plain) = naive::decode(&bytes) else {
        return;
    };
    match AnyMessage::read(&message) {
        Some(AnyMessage::MassQuote(quote)) => mass_quote(&quote, &plain),
        Some(AnyMessage::MarketDataIncrementalRefresh(update)) => market_data(&update, &plain),
        Some(AnyMessage::QuoteCancel(cancel)) => {
            for entry in cancel.quote_entries().into_iter().flatten() {
                let _ = entry.instrument().strike_price();
            }
        }
        _ => {}
    }
}

/// With the length and the sum that it needs: mutations of a whole message would nearly all fail there.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("8=FIX.4.4\x019={}\x01", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    let sum = bytes.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

fn mass_quote(quote: &MassQuote<'_>, plain: &Plain) {
    let expected = split(plain, 296, 302, &Groups::get().sets);
    let sets = match quote.quote_sets() {
        Ok(sets) => sets,
        Err(error) => {
            assert_eq!(expected.map(|_| ()), Err(error.into()));
            return;
        }
    };
    let expected = expected.expect("the view found entries");
    assert_eq!(sets.len(), expected.len());
    for (set, plain) in sets.zip(expected) {
        assert_eq!(set.quote_set_id(), Ok(plain[0].1.as_slice()));
        let inner = match plain.iter().any(|f| f.0 == 295) {
            true => split(plain, 295, 299, &Groups::get().entries),
            false => Err(Fault::missing(295)),
        };
        match (set.quote_entries(), inner) {
            (Ok(entries), Ok(expected)) => {
                assert_eq!(entries.len(), expected.len());
                for (entry, plain) in entries.zip(expected) {
                    let symbol = plain.iter().find(|f| f.0 == 55).map(|f| f.1.as_slice());
                    assert_eq!(entry.instrument().symbol(), Ok(symbol));
                    let _ = (
                        entry.bid_px(),
                        entry.offer_size(),
                        entry.transact_time(),
                        entry.ord_type(),
                    );
                }
            }
            (got, expected) => assert_eq!(
                got.map(|_| ()).map_err(Fault::from),
                expected.map(|_| ()),
                "the same answer"
            ),
        }
    }
}

fn market_data(update: &MarketDataIncrementalRefresh<'_>, plain: &Plain) {
    if !plain.iter().any(|f| f.0 == 268) {
        assert_eq!(
            update.md_entries().map(|_| ()).map_err(Fault::from),
            Err(Fault::missing(268))
        );
        return;
    }
    let Ok(entries) = update.md_entries() else { return };
    let said: usize = plain
        .iter()
        .find(|f| f.0 == 268)
        .and_then(|f| std::str::from_utf8(&f.1).ok()?.parse().ok())
        .expect("a count");
    assert_eq!(entries.len(), said);
    assert_eq!(entries.count(), said);
    for entry in entries {
        let _ = (
            entry.md_update_action(),
            entry.md_entry_px(),
            entry.md_entry_size(),
            entry.expire_time(),
        );
        assert_eq!(entry.fields().fields()[0].tag, fields::MD_UPDATE_ACTION.tag);
    }
}

/// The entries of a group as one would take them apart on paper.
fn split<'p>(
    plain: &'p Plain,
    count: u32,
    first: u32,
    members: &BTreeSet<u32>,
) -> Result<Vec<&'p Plain>, Fault> {
    let Some(at) = plain.iter().position(|f| f.0 == count) else {
        return Err(Fault::missing(count));
    };
    let said: u64 = match std::str::from_utf8(&plain[at].1) {
        Ok(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().map_err(|_| Fault::format(count))?
        }
        _ => return Err(Fault::format(count)),
    };
    let rest = &plain[at + 1..];
    let may_hold = |tag: u32| members.contains(&tag) || !Groups::get().known.contains(&tag);
    let wrong = Fault::new(SessionRejectReason::IncorrectNumInGroup, count);
    let Some(begin) = rest.first().map(|f| f.0) else {
        return if said == 0 { Ok(Vec::new()) } else { Err(wrong) };
    };
    if said == 0 {
        return if begin == first {
            Err(wrong)
        } else {
            Ok(Vec::new())
        };
    }
    if begin != first {
        return match may_hold(begin) {
            true => Err(Fault::new(SessionRejectReason::GroupOutOfOrder, first)),
            false => Err(wrong),
        };
    }
    let (mut entries, mut from) = (Vec::new(), 0);
    while from < rest.len() && rest[from].0 == first {
        let ends = |f: &(u32, Vec<u8>)| f.0 == first || !may_hold(f.0);
        let len = 1 + rest[from + 1..]
            .iter()
            .position(ends)
            .unwrap_or(rest.len() - from - 1);
        entries.push(&rest[from..from + len]);
        from += len;
    }
    match entries.len() as u64 == said {
        true => Ok(entries),
        false => Err(wrong),
    }
}
