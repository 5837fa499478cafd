//! CME iLink 3: every template with two entries in every group, with values and with nulls; and mass quotes
//! from a prepared template, with random entries.

use crate::Packets;
use crate::pattern::{Shown, Variant, fill, one};
use tickwire_market::{MassQuoteEntry, Nanos, Price, Qty};
use tickwire_testdata::Rng;
use tickwire_wire::ilink3::{
    self, Body, Identity, MassQuoteHead, MassQuoteTemplate, NEWEST_VERSION, QuotedSecurity,
};
use tickwire_wire::sbe::{Template, Text, Visit};

/// Bytes of frame and message header.
const HEAD: usize = 12;
/// Templates that end with data.
const WITH_DATA: [u16; 3] = [
    ilink3::Negotiate::TEMPLATE,
    ilink3::NegotiationResponse::TEMPLATE,
    ilink3::Establish::TEMPLATE,
];

/// Every template, one a segment: a decoder that is wrong about the length of one would misread those behind
/// it.
pub(crate) fn every() -> Packets {
    let variants = [Variant::Values(0), Variant::Values(1), Variant::Nulls];
    let each = |template| variants.map(|variant| message(template, variant));
    Body::TEMPLATES.iter().flat_map(each).collect()
}

fn message(template: &Template, variant: Variant) -> Vec<u8> {
    let mut message = vec![0, 0, 0xFE, 0xCA];
    for field in [template.block_length, template.id, Body::SCHEMA, NEWEST_VERSION] {
        message.extend(field.to_le_bytes());
    }
    message.resize(HEAD + usize::from(template.block_length), 0);
    let mut kept: Vec<usize> = (0..HEAD).collect();
    for (_, length, _) in template.groups {
        let start = message.len();
        message.extend(length.to_le_bytes());
        message.push(2);
        kept.extend(start..message.len());
        message.resize(message.len() + 2 * usize::from(*length), 0);
    }
    if WITH_DATA.contains(&template.id) {
        let start = message.len();
        message.extend([10, 0]);
        kept.extend(start..message.len());
        message.resize(message.len() + 10, 0);
    }
    let size = message.len() as u16;
    message[..2].copy_from_slice(&size.to_le_bytes());
    assert_eq!(
        ilink3::parse(&message[4..]).unwrap().rest,
        [],
        "{}",
        template.name
    );
    fill(&mut message, variant, |at| kept.contains(&at), read);
    message
}

fn read(message: &[u8]) -> Shown {
    let mut shown = Shown::new();
    ilink3::parse(&message[4..]).unwrap().visit(&mut |step| {
        if let Visit::Field(_, value) = step {
            shown.push(one(value));
        }
    });
    shown
}

/// Two thousand mass quotes on 400 options, of 1 to 12 entries, some sides of them taken away.
pub(crate) fn quotes() -> Packets {
    let mut rng = Rng::new(517);
    let identity = Identity {
        party_details_list_req_id: 1,
        sender_id: Text::new(b"QUOTER1").unwrap(),
        location: Text::new(b"US,IL").unwrap(),
    };
    let securities: Vec<QuotedSecurity> = (0..400)
        .map(|n| QuotedSecurity {
            security_id: 5_000_000 + 37 * n,
            underlying_security_id: (n % 3 > 0).then_some(532_259),
            quote_set_id: 1 + n as u16 / 50,
        })
        .collect();
    let tick = Price::from_raw(Price::ONE_RAW / 20);
    let mut template = MassQuoteTemplate::new(&identity, &securities, tick, 12).unwrap();
    let mut message = |number: u32| {
        let entries: Vec<MassQuoteEntry> = (0..1 + rng.below(12))
            .map(|_| {
                let mut qty = || Qty([0, 1 + rng.below(5_000) as u32][usize::from(rng.below(5) > 0)]);
                let (bid_qty, ask_qty) = (qty(), qty());
                MassQuoteEntry {
                    quote: rng.below(400) as u16,
                    bid_ticks: rng.below(1 << 16) as u16,
                    ask_ticks: rng.below(1 << 16) as u16,
                    bid_qty,
                    ask_qty,
                }
            })
            .collect();
        let head = MassQuoteHead {
            seq: number,
            sending_time: Nanos(1_700_000_000_000_000_000 + rng.below(1 << 40)),
            id: rng.next_u64() as u32,
            reset: rng.chance(1, 10),
        };
        template.write(&head, &entries).unwrap().to_vec()
    };
    (1..=2_000).map(&mut message).collect()
}
