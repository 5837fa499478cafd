//! CME MDP 3.0: every template with two entries in every group, with values and with nulls.

use crate::Packets;
use crate::pattern::{Shown, Variant, fill, one};
use tickwire_wire::mdp3::{self, Body, NEWEST_VERSION, PacketBuilder, Template, block::Visit};

/// Bytes of size and message header.
const HEAD: usize = 10;

/// The templates of today; the definition of an FX instrument without lot types.
pub(crate) fn newest() -> Packets {
    let entries = |id, group: &str| {
        if id == mdp3::Fx::TEMPLATE && group == "NoLotTypeRules" {
            0
        } else {
            2
        }
    };
    of(NEWEST_VERSION, |id| !OLD.contains(&id), entries)
}

/// The definition of an FX instrument with lot types.
pub(crate) fn fx() -> Packets {
    of(NEWEST_VERSION, |id| id == mdp3::Fx::TEMPLATE, |_, _| 2)
}

/// Templates that were replaced since schema version 8.
pub(crate) fn v8() -> Packets {
    of(8, |id| OLD.contains(&id), |_, _| 2)
}

const OLD: [u16; 12] = [27, 29, 32, 33, 34, 35, 36, 38, 41, 42, 43, 44];

fn of(version: u16, wanted: impl Fn(u16) -> bool, entries: impl Fn(u16, &str) -> u8) -> Packets {
    let mut packets = Packets::new();
    for template in Body::TEMPLATES.iter().filter(|template| wanted(template.id)) {
        // One a packet: a decoder that is wrong about the length of one would misread those behind it.
        for variant in [Variant::Values(0), Variant::Values(1), Variant::Nulls] {
            let message = message(template, version, variant, &entries);
            let mut packet = vec![0; mdp3::PacketHeader::SIZE + message.len()];
            let number = packets.len() as u32 + 1;
            let mut builder = PacketBuilder::new(&mut packet, number, 1_700_000_000_123_456_789);
            let pushed = builder.push(|buffer| {
                buffer.copy_from_slice(&message);
                Some(message.len())
            });
            assert!(pushed);
            builder.finish();
            packets.push(packet);
        }
    }
    packets
}

fn message(
    template: &Template,
    version: u16,
    variant: Variant,
    entries: impl Fn(u16, &str) -> u8,
) -> Vec<u8> {
    let mut message = vec![0; 2];
    for field in [template.block_length, template.id, Body::SCHEMA, version] {
        message.extend(field.to_le_bytes());
    }
    message.resize(HEAD + usize::from(template.block_length), 0);
    let mut kept: Vec<usize> = (0..HEAD).collect();
    for (name, length, since) in template.groups {
        if *since > version {
            continue;
        }
        let start = message.len();
        message.extend(length.to_le_bytes());
        // Groups of orders have the longer head, except in the workup message.
        if *name == "NoOrderIDEntries" && template.id != mdp3::Workup::TEMPLATE {
            message.extend([0; 5]);
        }
        let entries = entries(template.id, name);
        message.push(entries);
        kept.extend(start..message.len());
        message.resize(message.len() + usize::from(entries) * usize::from(*length), 0);
    }
    let size = message.len() as u16;
    message[..2].copy_from_slice(&size.to_le_bytes());
    assert_eq!(mdp3::parse(&message[2..]).unwrap().rest, [], "{}", template.name);
    fill(&mut message, variant, |at| kept.contains(&at), read);
    message
}

fn read(message: &[u8]) -> Shown {
    let mut shown = Shown::new();
    mdp3::parse(&message[2..]).unwrap().visit(&mut |step| {
        if let Visit::Field(_, value) = step {
            shown.push(one(value));
        }
    });
    shown
}
