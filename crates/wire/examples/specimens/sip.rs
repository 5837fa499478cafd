//! The securities information processors: CQS and CTS, UQDF and UTDF.

use crate::Packets;
use crate::pattern::{Shown, VARIANTS, fill, shown};
use crate::venues::mold;
use tickwire_wire::cqs::{self, Best, BestLong, BestShort, ControlType, Effect, UnixTime};
use tickwire_wire::uqdf;
use tickwire_wire::zerocopy::IntoBytes;

/// All that CQS sends but short quotes, and quotes that change the best offer alone.
pub(crate) fn cqs() -> Packets {
    let messages = quotes(
        |kind| kind[0] != b'T' && kind != cqs::ShortQuote::KIND,
        |of| !is_offer_alone(of),
    );
    blocks(cqs::Feed::Quotes, &messages, 1, ControlType::ALL)
}

/// Quotes that change the best offer alone and append it.
pub(crate) fn cqs_offer() -> Packets {
    let long = [cqs::LongQuote::KIND, cqs::SpecialLongQuote::KIND];
    let messages = quotes(|kind| long.contains(&kind), is_offer_alone);
    blocks(cqs::Feed::Quotes, &messages, 1, &[])
}

/// Short quotes that append both sides of the national best, or none.
pub(crate) fn cqs_short() -> Packets {
    let messages = quotes(|kind| kind == cqs::ShortQuote::KIND, |of| !is_one_side(of));
    blocks(cqs::Feed::Quotes, &messages, 1, &[])
}

/// Short quotes that append one side of the national best.
pub(crate) fn cqs_short_side() -> Packets {
    let messages = quotes(|kind| kind == cqs::ShortQuote::KIND, is_one_side);
    blocks(cqs::Feed::Quotes, &messages, 1, &[])
}

/// All that the snapshot stream sends: each message in a block of its own, under each delivery flag.
pub(crate) fn cqs_snapshot() -> Packets {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for (kind, _, size) in cqs::SNAPSHOT_TYPES {
        messages.extend(VARIANTS.map(|variant| {
            let mut message = headed(*kind, *size);
            fill(
                &mut message,
                variant,
                |at| at < 4,
                |bytes| shown(|f| cqs::SnapshotMessage::parse(bytes).unwrap().visit(f)),
            );
            message
        }));
    }
    let flags = cqs::Delivery::ALL.iter().cycle();
    let block = |((seq, message), delivery): ((u32, &Vec<u8>), &cqs::Delivery)| {
        let time = UnixTime::from_nanos(1_700_000_000_123_456_789);
        let header = cqs::SnapshotHeader::at(seq, *delivery, 2_345_678_901, 3, time);
        let mut packet = vec![0; cqs::BLOCK_SIZE_MAX];
        let mut block = cqs::BlockBuilder::new(&mut packet, header);
        assert!(block.push(&[message]), "a block holds any message");
        let size = block.finish();
        packet.truncate(size);
        packet
    };
    (1..).zip(&messages).zip(flags).map(block).collect()
}

/// A message of this size, blank but for length, category and type.
fn headed(kind: [u8; 2], size: usize) -> Vec<u8> {
    let mut message = vec![0; size];
    message[..2].copy_from_slice(&(size as u16).to_be_bytes());
    message[2..4].copy_from_slice(&kind);
    message
}

/// Bid unchanged, offer appended.
fn is_offer_alone(indicator: u8) -> bool {
    cqs::effects(indicator).is_some_and(|(bid, offer)| bid == Effect::Unchanged && appended(offer) > 0)
}

fn is_one_side(indicator: u8) -> bool {
    cqs::effects(indicator).is_some_and(|(bid, offer)| (appended(bid) > 0) != (appended(offer) > 0))
}

/// Of these types, with these effects on the national best.
fn quotes(wanted: impl Fn([u8; 2]) -> bool, effect: impl Fn(u8) -> bool) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for (kind, _, size) in cqs::TYPES.iter().filter(|(kind, ..)| wanted(*kind)) {
        let at = match *kind {
            cqs::LongQuote::KIND | cqs::ShortQuote::KIND | cqs::SpecialLongQuote::KIND => size - 1,
            _ => {
                messages.extend(VARIANTS.map(|variant| cta(*kind, *size, 0, None, variant)));
                continue;
            }
        };
        let indicators = (b'A'..=b'W').chain([b' ']).filter(|of| effect(*of));
        for (number, indicator) in indicators.enumerate() {
            let (bid, offer) = cqs::effects(indicator).expect("A to W and space have a meaning");
            let more = appended(bid) + appended(offer);
            let variant = VARIANTS[number % VARIANTS.len()];
            messages.push(cta(*kind, *size, more, Some((at, indicator)), variant));
        }
    }
    messages
}

/// The trade messages.
pub(crate) fn cts() -> Packets {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for (kind, _, size) in cqs::TYPES.iter().filter(|([category, _], ..)| *category == b'T') {
        messages.extend(VARIANTS.map(|variant| cta(*kind, *size, 0, None, variant)));
    }
    // Opening and closing of FINRA's quotes mean nothing here.
    let of_quotes = [ControlType::FinraOpen, ControlType::FinraClose];
    let controls = ControlType::ALL
        .iter()
        .copied()
        .filter(|control| !of_quotes.contains(control));
    blocks(
        cqs::Feed::Trades,
        &messages,
        usize::MAX,
        &controls.collect::<Vec<_>>(),
    )
}

fn appended(effect: Effect) -> usize {
    match effect {
        Effect::Unchanged | Effect::Quote | Effect::Gone => Best::Unchanged.as_bytes().len(),
        Effect::Short => BestShort::SIZE,
        Effect::Long => BestLong::SIZE,
    }
}

fn cta(
    kind: [u8; 2],
    size: usize,
    more: usize,
    set: Option<(usize, u8)>,
    variant: crate::pattern::Variant,
) -> Vec<u8> {
    let mut message = headed(kind, size + more);
    if let Some((at, indicator)) = set {
        message[at] = indicator;
    }
    let kept = |at: usize| at < 4 || set.is_some_and(|(indicator, _)| indicator == at);
    fill(&mut message, variant, kept, |bytes| {
        shown(|f| cqs::parse(bytes).unwrap().visit(f))
    });
    message
}

/// Blocks of these messages, at most so many in each, then one for every control message.
fn blocks(feed: cqs::Feed, messages: &[Vec<u8>], each: usize, controls: &[ControlType]) -> Packets {
    let time = UnixTime::from_nanos(1_700_000_000_123_456_789);
    let mut next = 1;
    let mut packets = Packets::new();
    let mut rest = messages;
    while !rest.is_empty() {
        let mut packet = vec![0; cqs::BLOCK_SIZE_MAX];
        let mut block = cqs::BlockBuilder::new(&mut packet, cqs::BlockHeader::at(feed, next, time));
        while let [message, after @ ..] = rest
            && usize::from(block.count()) < each
            && block.push(&[message])
        {
            rest = after;
            next += 1;
        }
        let length = block.finish();
        packet.truncate(length);
        packets.push(packet);
    }
    for control in controls {
        let mut packet = vec![0; cqs::BLOCK_SIZE_MAX];
        let mut block = cqs::BlockBuilder::new(&mut packet, cqs::BlockHeader::at(feed, next, time));
        assert!(block.push(&[cqs::Control::new(*control, time).as_bytes()]));
        let length = block.finish();
        packet.truncate(length);
        packets.push(packet);
        next += 1;
    }
    packets
}

/// What a message says about what follows it: offsets with their bytes, and how many bytes follow.
type Tail = (&'static [(usize, u8)], usize);

/// Every combination that has a layout of its own, none first.
fn tails(kind: [u8; 2]) -> &'static [Tail] {
    use uqdf::{AdfMpids, BoloLong, BoloMpid, BoloShort, MarketCenterClose, NbboLong, NbboShort};
    use uqdf::{OddLotLong, OddLotMpid, OddLotShort};
    match kind {
        uqdf::QuoteShort::KIND => &[
            (&[(46, b'0')], 0),
            (&[(46, b'1')], 0),
            (&[(46, b'2')], NbboShort::SIZE),
            (&[(46, b'3')], NbboLong::SIZE),
            (&[(46, b'4')], 0),
        ],
        uqdf::QuoteLong::KIND => &[
            (&[(76, b'0'), (78, b' ')], 0),
            (&[(76, b'2'), (78, b'0')], NbboShort::SIZE),
            (&[(76, b'3'), (78, b'1')], NbboLong::SIZE),
            (&[(76, b'3'), (78, b'2')], NbboLong::SIZE + AdfMpids::SIZE),
            (&[(76, b'4'), (78, b'2')], AdfMpids::SIZE),
        ],
        uqdf::CombinedShort::KIND => &[
            (&[(46, b'0'), (48, b'0'), (49, b'0'), (50, 0), (51, 0)], 0),
            (
                &[(46, b'2'), (48, b'2'), (49, b'2'), (50, 0), (51, 2)],
                NbboShort::SIZE + BoloShort::SIZE + 2 * OddLotShort::SIZE,
            ),
            (
                &[(46, b'3'), (48, b'3'), (49, b'3'), (50, 0), (51, 2)],
                NbboLong::SIZE + BoloLong::SIZE + 2 * OddLotLong::SIZE,
            ),
        ],
        uqdf::CombinedLong::KIND => &[
            (
                &[(76, b'0'), (78, b' '), (79, b'0'), (80, b'0'), (81, 0), (82, 0)],
                0,
            ),
            (
                &[(76, b'2'), (78, b'2'), (79, b'3'), (80, b'3'), (81, 0), (82, 2)],
                NbboShort::SIZE + AdfMpids::SIZE + BoloLong::SIZE + 2 * OddLotLong::SIZE,
            ),
            (
                &[(76, b'3'), (78, b'2'), (79, b'5'), (80, b'5'), (81, 0), (82, 2)],
                NbboLong::SIZE + AdfMpids::SIZE + BoloMpid::SIZE + 2 * OddLotMpid::SIZE,
            ),
        ],
        uqdf::OddLotQuoteShort::KIND => &[
            (&[(35, b'0'), (36, b'0'), (37, 0), (38, 0)], 0),
            (
                &[(35, b'2'), (36, b'2'), (37, 0), (38, 2)],
                BoloShort::SIZE + 2 * OddLotShort::SIZE,
            ),
        ],
        uqdf::OddLotQuoteLong::KIND => &[
            (&[(49, b'1'), (50, b'0'), (51, 0), (52, 0)], 0),
            (
                &[(49, b'3'), (50, b'3'), (51, 0), (52, 2)],
                BoloLong::SIZE + 2 * OddLotLong::SIZE,
            ),
            (
                &[(49, b'5'), (50, b'5'), (51, 0), (52, 2)],
                BoloMpid::SIZE + 2 * OddLotMpid::SIZE,
            ),
        ],
        uqdf::GeneralAdministrative::KIND => &[(&[(29, 0), (30, 20)], 20)],
        uqdf::CloseRecap::KIND => &[
            (&[(75, 0), (76, 0)], 0),
            (&[(75, 0), (76, 2)], 2 * MarketCenterClose::SIZE),
        ],
        _ => &[(&[], 0)],
    }
}

/// Everything that UQDF sends.
pub(crate) fn uqdf() -> Packets {
    utp(|category| category != b'T', uqdf::ControlType::ALL)
}

/// The trade messages.
pub(crate) fn utdf() -> Packets {
    // There are no quotes to wipe out.
    let controls = uqdf::ControlType::ALL.iter().copied();
    let controls: Vec<_> = controls
        .filter(|control| *control != uqdf::ControlType::QuoteWipeOut)
        .collect();
    utp(|category| category == b'T', &controls)
}

fn utp(wanted: impl Fn(u8) -> bool, controls: &[uqdf::ControlType]) -> Packets {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for (kind, _, size) in uqdf::TYPES.iter().filter(|([category, _], ..)| wanted(*category)) {
        for (set, more) in tails(*kind) {
            for variant in VARIANTS {
                let mut message = vec![0; size + more];
                message[0] = uqdf::VERSION;
                message[1..3].copy_from_slice(kind);
                for (at, byte) in *set {
                    message[*at] = *byte;
                }
                let kept = |at: usize| at < 3 || set.iter().any(|(set, _)| *set == at);
                let read = |bytes: &[u8]| -> Shown { shown(|f| uqdf::parse(bytes).unwrap().visit(f)) };
                fill(&mut message, variant, kept, read);
                messages.push(message);
            }
        }
    }
    for control in controls {
        let control = uqdf::Control::new(*control, b'Q', 1_700_000_000_123_456_789);
        messages.push(control.as_bytes().to_vec());
    }
    // A decoder that does not know what is appended to one message would misread those behind it.
    mold(&messages, 1)
}
