//! Random messages with groups within groups: written by the generated code, read by it, by the naive codec
//! and by the validator; and what happens when a count lies, a required field is left out, or a setter is
//! called out of turn.

use proptest::prelude::*;
use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::typed::{FieldError, Nanos, Price, Qty, WriteError, WriteFault};
use tickwire_fix::{Encoder, Fault, Index, Precision, SessionRejectReason, Stamp, Version, naive};
use tickwire_fixmsg::fix44::values::{
    MDEntryType, MDUpdateAction, PartyIDSource, QuoteCancelType, QuoteType, Side,
};
use tickwire_fixmsg::fix44::{self, MarketDataIncrementalRefresh, MassQuote, QuoteCancel};
use tickwire_testdata::{fix, workspace};

type Field = (u32, Vec<u8>);

const TIME: &[u8] = b"20261122-10:00:00.000";

fn ours() -> Dictionary {
    dictionary(workspace().join("crates/fixmsg/dictionaries/FIX44.xml"))
}

fn dictionary(path: std::path::PathBuf) -> Dictionary {
    let xml = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Dictionary::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A message with this body, or why the body could not be written.
fn message(
    msg_type: &[u8],
    body: impl FnOnce(&mut Encoder<'_>, &mut Stamp) -> Result<(), WriteError>,
) -> Result<Vec<u8>, WriteError> {
    let mut buffer = vec![0; 1 << 16];
    let (mut e, mut stamp) = (
        Encoder::new(&mut buffer, Version::Fix44),
        Stamp::new(Precision::Nanos),
    );
    e.text(35, msg_type);
    e.unsigned(34, 2);
    e.text(49, b"MM");
    e.text(52, TIME);
    e.text(56, b"XCH");
    let written = body(&mut e, &mut stamp);
    let whole = e.finish().map(<[u8]>::to_vec);
    assert_eq!(
        written.is_err(),
        whole.is_err(),
        "what was not written does not leave"
    );
    written.map(|()| whole.expect("checked above"))
}

/// The same message, made of fields.
fn plain(msg_type: &[u8], body: &[Field]) -> Vec<Field> {
    let head = [(35, msg_type), (34, b"2"), (49, b"MM"), (52, TIME), (56, b"XCH")];
    let head = head.map(|(tag, value)| (tag, value.to_vec()));
    head.into_iter().chain(body.iter().cloned()).collect()
}

#[derive(Clone, Debug)]
struct Party {
    id: String,
    source: Option<PartyIDSource>,
    subs: Vec<(String, i64)>,
}

#[derive(Clone, Debug)]
struct QuoteEntry {
    id: String,
    symbol: Option<String>,
    bid: Option<i64>,
    offer: Option<i64>,
    bid_size: Option<u32>,
    time: Option<u64>,
}

#[derive(Clone, Debug)]
struct QuoteSet {
    id: String,
    underlying: Option<String>,
    is_last: Option<bool>,
    entries: Vec<QuoteEntry>,
}

#[derive(Clone, Debug)]
struct Quotes {
    id: String,
    kind: Option<QuoteType>,
    parties: Vec<Party>,
    sets: Vec<QuoteSet>,
}

fn text() -> impl Strategy<Value = String> {
    "[ -~]{1,12}"
}

fn party() -> impl Strategy<Value = Party> {
    let source = prop::option::of(prop::sample::select(PartyIDSource::ALL));
    (
        text(),
        source,
        prop::collection::vec((text(), any::<i64>()), 0..3),
    )
        .prop_map(|(id, source, subs)| Party { id, source, subs })
}

fn quote_entry() -> impl Strategy<Value = QuoteEntry> {
    let price = || prop::option::of(any::<i64>());
    // Years from 1970 to 2262.
    let time = prop::option::of(0..i64::MAX as u64);
    (
        text(),
        prop::option::of(text()),
        price(),
        price(),
        any::<Option<u32>>(),
        time,
    )
        .prop_map(|(id, symbol, bid, offer, bid_size, time)| QuoteEntry {
            id,
            symbol,
            bid,
            offer,
            bid_size,
            time,
        })
}

fn quotes() -> impl Strategy<Value = Quotes> {
    let set = (
        text(),
        prop::option::of(text()),
        any::<Option<bool>>(),
        prop::collection::vec(quote_entry(), 1..5),
    )
        .prop_map(|(id, underlying, is_last, entries)| QuoteSet {
            id,
            underlying,
            is_last,
            entries,
        });
    let kind = prop::option::of(prop::sample::select(QuoteType::ALL));
    (
        text(),
        kind,
        prop::collection::vec(party(), 0..4),
        prop::collection::vec(set, 1..4),
    )
        .prop_map(|(id, kind, parties, sets)| Quotes {
            id,
            kind,
            parties,
            sets,
        })
}

fn write(quotes: &Quotes) -> Result<Vec<u8>, WriteError> {
    message(MassQuote::MSG_TYPE, |e, stamp| {
        MassQuote::write(e, stamp, |m| {
            m.quote_id(quotes.id.as_bytes());
            if let Some(kind) = quotes.kind {
                m.quote_type(kind);
            }
            m.parties().party_ids(&quotes.parties, |p, party| {
                p.party_id(party.id.as_bytes());
                if let Some(source) = party.source {
                    p.party_id_source(source);
                }
                p.party_sub_ids(&party.subs, |s, (id, kind)| {
                    s.party_sub_id(id.as_bytes()).party_sub_id_type(*kind);
                });
            });
            m.quote_sets(&quotes.sets, |s, set| {
                s.quote_set_id(set.id.as_bytes());
                if let Some(underlying) = &set.underlying {
                    s.underlying_instrument().underlying_symbol(underlying.as_bytes());
                }
                s.tot_no_quote_entries(set.entries.len() as i64);
                if let Some(is_last) = set.is_last {
                    s.last_fragment(is_last);
                }
                s.quote_entries(&set.entries, |q, entry| {
                    q.quote_entry_id(entry.id.as_bytes());
                    if let Some(symbol) = &entry.symbol {
                        q.instrument().symbol(symbol.as_bytes());
                    }
                    if let Some(bid) = entry.bid {
                        q.bid_px(Price::from_raw(bid));
                    }
                    if let Some(offer) = entry.offer {
                        q.offer_px(Price::from_raw(offer));
                    }
                    if let Some(size) = entry.bid_size {
                        q.bid_size(Qty(size));
                    }
                    if let Some(time) = entry.time {
                        q.transact_time(Nanos(time));
                    }
                });
            });
        })
    })
}

/// What the writer must have written, field by field.
fn expected(quotes: &Quotes) -> Vec<Field> {
    let mut f: Vec<Field> = vec![(117, quotes.id.clone().into_bytes())];
    f.extend(quotes.kind.map(|kind| (537, kind.as_bytes().to_vec())));
    if !quotes.parties.is_empty() {
        f.push(number(453, quotes.parties.len()));
    }
    for party in &quotes.parties {
        f.push((448, party.id.clone().into_bytes()));
        f.extend(party.source.map(|source| (447, source.as_bytes().to_vec())));
        if !party.subs.is_empty() {
            f.push(number(802, party.subs.len()));
        }
        for (id, kind) in &party.subs {
            f.push((523, id.clone().into_bytes()));
            f.push(number(803, *kind));
        }
    }
    f.push(number(296, quotes.sets.len()));
    for set in &quotes.sets {
        f.push((302, set.id.clone().into_bytes()));
        f.extend(set.underlying.clone().map(|text| (311, text.into_bytes())));
        f.push(number(304, set.entries.len()));
        f.extend(
            set.is_last
                .map(|is| (893, if is { b"Y".to_vec() } else { b"N".to_vec() })),
        );
        f.push(number(295, set.entries.len()));
        for entry in &set.entries {
            f.push((299, entry.id.clone().into_bytes()));
            f.extend(entry.symbol.clone().map(|text| (55, text.into_bytes())));
            f.extend(entry.bid.map(|raw| (132, decimal(raw))));
            f.extend(entry.offer.map(|raw| (133, decimal(raw))));
            f.extend(entry.bid_size.map(|size| number(134, size)));
            let time = |ns| (60, Stamp::new(Precision::Nanos).format(Nanos(ns)).to_vec());
            f.extend(entry.time.map(time));
        }
    }
    f
}

fn number(tag: u32, value: impl ToString) -> Field {
    (tag, value.to_string().into_bytes())
}

/// Units of 1e-9 with at least two decimals.
fn decimal(raw: i64) -> Vec<u8> {
    let sign = if raw < 0 { "-" } else { "" };
    let (whole, fraction) = (
        raw.unsigned_abs() / 1_000_000_000,
        raw.unsigned_abs() % 1_000_000_000,
    );
    let mut text = format!("{sign}{whole}.{fraction:09}");
    while text.ends_with('0') && text.len() > text.find('.').unwrap() + 3 {
        text.pop();
    }
    text.into_bytes()
}

fn read(m: &MassQuote<'_>) -> Result<Quotes, FieldError> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut parties = Vec::new();
    for party in m.parties().party_ids()? {
        let mut subs = Vec::new();
        for sub in party.party_sub_ids()? {
            subs.push((
                text(sub.party_sub_id()?.unwrap()),
                sub.party_sub_id_type()?.unwrap(),
            ));
        }
        parties.push(Party {
            id: text(party.party_id()?.unwrap()),
            source: party.party_id_source()?,
            subs,
        });
    }
    let mut sets = Vec::new();
    for set in m.quote_sets()? {
        let mut entries = Vec::new();
        for entry in set.quote_entries()? {
            entries.push(QuoteEntry {
                id: text(entry.quote_entry_id()?),
                symbol: entry.instrument().symbol()?.map(text),
                bid: entry.bid_px()?.map(Price::raw),
                offer: entry.offer_px()?.map(Price::raw),
                bid_size: entry.bid_size()?.map(|qty| qty.0),
                time: entry.transact_time()?.map(|time| time.0),
            });
        }
        assert_eq!(set.tot_no_quote_entries()?, entries.len() as i64);
        sets.push(QuoteSet {
            id: text(set.quote_set_id()?),
            underlying: set.underlying_instrument().underlying_symbol()?.map(text),
            is_last: set.last_fragment()?,
            entries,
        });
    }
    Ok(Quotes {
        id: text(m.quote_id()?),
        kind: m.quote_type()?,
        parties,
        sets,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mass_quotes_come_back_as_they_were_and_others_read_the_same(quotes in quotes()) {
        let bytes = write(&quotes).unwrap();
        let fields = plain(MassQuote::MSG_TYPE, &expected(&quotes));
        prop_assert_eq!(&bytes, &naive::encode(&fields));
        prop_assert_eq!(&naive::decode(&bytes).unwrap()[2..], &fields[..]);
        let mut index = Index::new(1024);
        let m = index.decode(&bytes).unwrap();
        let d = ours();
        prop_assert_eq!(Validator::new(&d, &d).check(&d, &d, &m, Validation::default()), Ok(()));
        let read = read(&MassQuote::read(&m).unwrap()).unwrap();
        prop_assert_eq!(format!("{read:?}"), format!("{quotes:?}"));
    }

    #[test]
    fn a_count_that_lies_is_an_error_of_that_count(quotes in quotes(), which in any::<prop::sample::Index>(), by in 1..5_u64, more: bool) {
        let mut fields = plain(MassQuote::MSG_TYPE, &expected(&quotes));
        let counts: Vec<usize> = (0..fields.len()).filter(|&i| matches!(fields[i].0, 453 | 802 | 296 | 295)).collect();
        let at = counts[which.index(counts.len())];
        let said: u64 = std::str::from_utf8(&fields[at].1).unwrap().parse().unwrap();
        let lie = if more { said + by } else { said.saturating_sub(by) };
        fields[at].1 = lie.to_string().into_bytes();
        let bytes = naive::encode(&fields);
        let mut index = Index::new(1024);
        let m = index.decode(&bytes).unwrap();
        let error = read(&MassQuote::read(&m).unwrap()).unwrap_err();
        prop_assert_eq!(Fault::from(error), Fault::new(SessionRejectReason::IncorrectNumInGroup, fields[at].0));
        let d = ours();
        prop_assert!(Validator::new(&d, &d).check(&d, &d, &m, Validation::default()).is_err());
    }
}

#[test]
fn market_data_comes_back_and_a_venues_own_field_does_not_end_an_entry() {
    let levels = [
        (MDUpdateAction::New, MDEntryType::Bid, 101_250_000_000, 500),
        (MDUpdateAction::Change, MDEntryType::Offer, 101_500_000_000, 20),
        (MDUpdateAction::Delete, MDEntryType::Bid, -1, u32::MAX),
    ];
    let bytes = message(MarketDataIncrementalRefresh::MSG_TYPE, |e, stamp| {
        MarketDataIncrementalRefresh::write(e, stamp, |m| {
            m.md_req_id(b"R1")
                .md_entries(levels, |entry, (action, kind, price, size)| {
                    entry.md_update_action(action).md_entry_type(kind);
                    entry.instrument().symbol(b"WIRE").security_exchange(b"XCH");
                    entry.md_entry_px(Price::from_raw(price)).md_entry_size(Qty(size));
                });
            m.appl_queue_depth(3);
        })
    })
    .unwrap();
    let mut fields = naive::decode(&bytes).unwrap().split_off(2);
    // 5797 is in no dictionary of ours; 83 and 346 are, but not in this one's group.
    let second = fields.iter().rposition(|f| f.0 == 279).unwrap();
    fields.insert(second - 1, (5797, b"2".to_vec()));
    let bytes = naive::encode(&fields);
    let mut index = Index::new(64);
    let m = index.decode(&bytes).unwrap();
    let m = MarketDataIncrementalRefresh::read(&m).unwrap();
    let entries = m.md_entries().unwrap();
    assert_eq!(entries.len(), 3);
    for (entry, (action, kind, price, size)) in entries.zip(levels) {
        assert_eq!(entry.md_update_action(), Ok(action));
        assert_eq!(entry.md_entry_type(), Ok(Some(kind)));
        assert_eq!(entry.instrument().symbol(), Ok(Some(&b"WIRE"[..])));
        assert_eq!(entry.md_entry_px(), Ok(Some(Price::from_raw(price))));
        assert_eq!(entry.md_entry_size(), Ok(Some(Qty(size))));
    }
    assert_eq!(m.appl_queue_depth(), Ok(Some(3)));
}

#[test]
fn errors_name_tag_and_field() {
    let cases: [(&str, &[Field]); 4] = [
        (
            "NoQuoteEntries (295): Incorrect NumInGroup count for repeating group",
            &[
                (117, b"Q".to_vec()),
                (298, b"1".to_vec()),
                (295, b"2".to_vec()),
                (55, b"A".to_vec()),
            ],
        ),
        (
            "Symbol (55): Out of order repeating group members",
            &[
                (117, b"Q".to_vec()),
                (298, b"1".to_vec()),
                (295, b"1".to_vec()),
                (48, b"A".to_vec()),
            ],
        ),
        (
            "QuoteCancelType (298): Value is incorrect (out of range) for this tag",
            &[(117, b"Q".to_vec()), (298, b"7".to_vec())],
        ),
        ("QuoteID (117): Required tag missing", &[(298, b"1".to_vec())]),
    ];
    for (text, body) in cases {
        let bytes = naive::encode(&plain(b"Z", body));
        let mut index = Index::new(64);
        let m = index.decode(&bytes).unwrap();
        let m = QuoteCancel::read(&m).unwrap();
        let read = || {
            m.quote_id()?;
            m.quote_cancel_type()?;
            m.quote_entries().map(|_| ())
        };
        assert_eq!(read().unwrap_err().to_string(), text);
    }
}

#[test]
fn what_is_written_wrongly_is_named_and_does_not_leave() {
    type Fill = fn(&mut fix44::QuoteCancelWriter<'_, '_, '_>);
    let cases: [(&str, Fill); 9] = [
        ("QuoteCancelType (298) is required", |m| {
            m.quote_id(b"Q");
        }),
        ("QuoteID (117) was written twice, or after", |m| {
            m.quote_cancel_type(QuoteCancelType::CancelAllQuotes)
                .quote_id(b"Q");
        }),
        ("QuoteID (117) was written twice", |m| {
            m.quote_id(b"Q").quote_id(b"Q");
        }),
        ("QuoteID (117) must not be empty", |m| {
            m.quote_id(b"");
        }),
        ("Account (1) must not hold a separator", |m| {
            m.quote_id(b"Q")
                .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            m.account(b"A\x01B");
        }),
        ("Symbol (55) must be the first field", |m| {
            m.quote_id(b"Q")
                .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            m.quote_entries([0], |entry, _| {
                entry.instrument().security_id(b"A");
            });
        }),
        ("Symbol (55) must be the first field", |m| {
            m.quote_id(b"Q")
                .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            m.quote_entries([0, 1], |_, _| {});
        }),
        ("PartyID (448) was written twice", |m| {
            m.quote_id(b"Q")
                .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            m.parties().party_ids([0], |party, _| {
                party.party_id(b"A").party_id(b"B");
            });
        }),
        ("Account (1) did not fit the buffer", |m| {
            m.quote_id(b"Q")
                .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            m.account(&[b'x'; 70_000]);
        }),
    ];
    for (text, fill) in cases {
        let error = message(b"Z", |e, stamp| QuoteCancel::write(e, stamp, fill)).unwrap_err();
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let error = message(b"i", |e, stamp| {
        MassQuote::write(e, stamp, |m| {
            m.quote_id(b"Q").quote_sets(Claims(2), |set, _| {
                set.quote_set_id(b"1").tot_no_quote_entries(1);
                set.quote_entries([0], |entry, _| {
                    entry.quote_entry_id(b"1");
                });
            });
        })
    });
    assert_eq!(error.unwrap_err().fault, WriteFault::EntryCount);
}

/// An iterator of one item that says it has another number.
struct Claims(usize);

impl Iterator for Claims {
    type Item = ();

    fn next(&mut self) -> Option<()> {
        (std::mem::take(&mut self.0) > 0).then_some(())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0, Some(self.0))
    }
}

impl ExactSizeIterator for Claims {}

#[test]
fn data_goes_with_its_length_and_may_hold_separators() {
    let bytes = message(b"q", |e, stamp| {
        fix44::OrderMassCancelRequest::write(e, stamp, |m| {
            m.cl_ord_id(b"C1")
                .mass_cancel_request_type(fix44::values::MassCancelRequestType::AllOrders);
            m.side(Side::Buy).transact_time(Nanos(1_000_000_000)).text(b"all");
            m.encoded_text(b"a\x01b=\x01");
        })
    })
    .unwrap();
    let mut index = Index::new(64);
    let m = index.decode(&bytes).unwrap();
    let m = fix44::OrderMassCancelRequest::read(&m).unwrap();
    assert_eq!(m.encoded_text_len(), Ok(Some(5)));
    assert_eq!(m.encoded_text(), Ok(Some(&b"a\x01b=\x01"[..])));
    assert_eq!(m.header().sender_comp_id(), Ok(&b"MM"[..]));
    assert_eq!(m.side(), Ok(Some(Side::Buy)));
}

#[test]
fn any_message_is_read_by_its_type() {
    let bytes = naive::encode(&plain(b"j", &[(372, b"i".to_vec()), (380, b"3".to_vec())]));
    let mut index = Index::new(64);
    let m = index.decode(&bytes).unwrap();
    let Some(fix44::AnyMessage::BusinessMessageReject(reject)) = fix44::AnyMessage::read(&m) else {
        panic!("a business reject");
    };
    assert_eq!(
        reject.business_reject_reason(),
        Ok(fix44::values::BusinessRejectReason::UnsupportedMessageType)
    );
    let bytes = naive::encode(&plain(b"ZZ", &[]));
    assert!(fix44::AnyMessage::read(&index.decode(&bytes).unwrap()).is_none());
}

/// What our dictionaries say, the standard's say too: same tag, type and place, and nothing that they require
/// is left out.
#[tickwire_testdata::recorded_data("fix/dictionaries")]
#[test]
fn our_dictionaries_are_parts_of_the_standards() {
    for name in ["FIX44", "FIX50SP2"] {
        let ours = dictionary(workspace().join(format!("crates/fixmsg/dictionaries/{name}.xml")));
        let standard = dictionary(fix(&format!("dictionaries/{name}.xml")));
        assert_eq!(ours.begin_string(), standard.begin_string());
        for field in ours.fields() {
            let of = standard.field_named(&field.name);
            // Header fields of FIXT are of another file.
            let of = of.unwrap_or_else(|| panic!("{name} has no {}", field.name));
            assert_eq!(
                (field.tag, &field.type_name),
                (of.tag, &of.type_name),
                "{}",
                field.name
            );
            for (value, _) in &field.values {
                assert!(of.admits(value), "{name} {}={}", field.name, value.escape_ascii());
            }
        }
        for message in ours.messages() {
            let of = standard.message(&message.msg_type).unwrap();
            assert_eq!(message.name, of.name);
            let names = |d: &Dictionary, m| {
                d.layout(m)
                    .fields()
                    .iter()
                    .map(|f| f.name.clone())
                    .collect::<Vec<_>>()
            };
            let (subset, all) = (names(&ours, message), names(&standard, of));
            let mut rest = all.iter();
            for field in &subset {
                assert!(
                    rest.any(|f| f == field),
                    "{name} {}: {field} is not where it belongs",
                    message.name
                );
            }
        }
    }
}
