//! Codecs: any bytes are refused or read, and what was read is written back as it was.

use tickwire_wire::moldudp64::{PacketBuilder, Payload, Request};
use tickwire_wire::{cqs, ilink3, itch50, mdp3, moldudp64, openbook, ouch50, pitch, soupbintcp, uqdf, xdp};

/// A message is a prefix of the bytes it was read from, reads the same from that prefix, and shows every
/// field.
pub fn itch50(bytes: &[u8]) {
    let _ = (itch50::stock_locate(bytes), itch50::order_reference(bytes));
    let Ok(message) = itch50::parse(bytes) else { return };
    let own = message.as_bytes();
    assert_eq!(own, &bytes[..own.len()]);
    assert_eq!(itch50::parse(own), Ok(message));
    assert_eq!(message.kind(), bytes[0]);
    let mut fields = 0;
    message.visit(&mut |name, value| {
        assert!(!name.is_empty());
        let _ = format!("{value:?}");
        fields += 1;
    });
    assert!(fields >= 2, "{} shows {fields} fields", message.name());
}

/// Layout and options together are the message, and written from them it is the same; every field and option
/// is shown.
pub fn ouch50(bytes: &[u8]) {
    let read = [
        ouch50::parse_inbound(bytes).map(|(m, options)| (m.as_bytes(), m.always_has_appendage(), options)),
        ouch50::parse_outbound(bytes).map(|(m, options)| (m.as_bytes(), m.always_has_appendage(), options)),
    ];
    for (layout, has_tail, options) in read.into_iter().flatten() {
        let mut own = layout.to_vec();
        if has_tail || bytes.len() > layout.len() {
            own.extend_from_slice(&(options.as_bytes().len() as u16).to_be_bytes());
            own.extend_from_slice(options.as_bytes());
        }
        assert_eq!(own, bytes);
        let mut shown = 0;
        options.visit(&mut |name, value| {
            let _ = format!("{name} {value}");
            shown += 1;
        });
        assert_eq!(shown, options.iter().count());
    }
    if let Ok((message, _)) = ouch50::parse_inbound(bytes) {
        message.visit(&mut |name, value| assert!(!name.is_empty() && format!("{value}").len() < 200));
    }
}

/// Blocks are as many as counted and lie within the packet; a packet built of them is the packet.
pub fn moldudp64(bytes: &[u8]) {
    if let Ok(request) = Request::parse(bytes) {
        assert_eq!(Request::parse(&request.encode()), Ok(request));
    }
    let Ok(packet) = moldudp64::parse(bytes) else {
        return;
    };
    assert_eq!(packet.next_seq(), packet.seq.advance(packet.count().into()));
    let Payload::Messages(blocks) = &packet.payload else {
        return;
    };
    assert_eq!(blocks.clone().count(), usize::from(packet.count()));
    let own = bytes.len() - usize::from(packet.trailing);
    let mut buffer = vec![0; own];
    let mut builder = PacketBuilder::new(&mut buffer, packet.session, packet.seq);
    for block in blocks.clone() {
        assert!(
            builder.push(block),
            "the packet's own messages fit its own length"
        );
    }
    assert_eq!(builder.finish(), own);
    assert_eq!(buffer, bytes[..own]);
}

/// Messages fill a checked packet; each shows its fields and, written from them, shows the same again.
pub fn mdp3(bytes: &[u8]) {
    let _ = mdp3::tcp::split(bytes);
    if let Ok(packet) = mdp3::conflated::parse_packet(bytes) {
        packet.messages.for_each(|message| {
            let _ = mdp3::conflated::parse(message);
        });
    }
    let Ok(packet) = mdp3::parse_packet(bytes) else {
        return;
    };
    let filled: usize = packet.messages.clone().map(|message| 2 + message.len()).sum();
    assert_eq!(mdp3::PacketHeader::SIZE + filled, bytes.len());
    for own in packet.messages {
        let Ok(message) = mdp3::parse(own) else { continue };
        let shown = |message: &mdp3::Message<'_>| {
            let mut text = String::new();
            message.visit(&mut |step| text.push_str(&format!("{step:?}\n")));
            text
        };
        let mut again = vec![0; own.len() + 2];
        let length = message
            .encode(&mut again)
            .expect("a message fits where it came from");
        assert_eq!(length + message.rest.len(), own.len() + 2);
        let reread = mdp3::parse(&again[2..length]).expect("what was written can be read");
        assert_eq!(shown(&reread), shown(&message));
    }
}

/// A stream is cut into messages that take what they say; each shows its fields and, written from them, shows
/// the same again.
pub fn ilink3(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((own, taken))) = ilink3::split(rest) {
        assert_eq!(own.len() + ilink3::Frame::SIZE, taken);
        rest = &rest[taken..];
        let Ok(message) = ilink3::parse(own) else { continue };
        let shown = |message: &ilink3::Message<'_>| {
            let mut text = String::new();
            message.visit(&mut |step| text.push_str(&format!("{step:?}\n")));
            text
        };
        let mut again = vec![0; taken];
        let length = message
            .encode(&mut again)
            .expect("a message fits where it came from");
        assert_eq!(length + message.rest.len(), taken);
        let (reread, whole) = ilink3::split(&again[..length])
            .ok()
            .flatten()
            .expect("what was written is a message");
        assert_eq!(whole, length);
        let reread = ilink3::parse(reread).expect("what was written can be read");
        assert_eq!(shown(&reread), shown(&message));
    }
}

/// A block is built again from its messages; a message is a prefix of its bytes and shows every field.
pub fn pitch(bytes: &[u8]) {
    pitch_message(bytes);
    let Ok(packet) = pitch::packet(bytes) else { return };
    let own = bytes.len() - usize::from(packet.trailing);
    let mut buffer = vec![0; own];
    let mut builder = pitch::PacketBuilder::new(&mut buffer, packet.unit, packet.sequence);
    for message in packet.messages.clone() {
        pitch_message(message);
        assert!(
            builder.push(message),
            "the block's own messages fit its own length"
        );
    }
    assert_eq!(builder.finish(), own);
    assert_eq!(buffer, bytes[..own]);
    let again = pitch::split(bytes).map(|found| found.map(|(_, length)| length));
    assert_eq!(again, Ok(Some(own)));
}

fn pitch_message(bytes: &[u8]) {
    let _ = (pitch::order_id(bytes), pitch::symbol_key(bytes));
    let _ = (
        pitch::options::parse(bytes),
        pitch::complex::parse(bytes),
        pitch::futures::parse(bytes),
    );
    let Ok(message) = pitch::parse(bytes) else { return };
    assert!(bytes.starts_with(message.as_bytes()));
    assert!(usize::from(bytes[0]) >= message.as_bytes().len());
    assert_eq!(message.kind(), bytes[1]);
    let mut fields = 0;
    message.visit(&mut |name, value| {
        assert!(!name.is_empty());
        let _ = format!("{value:?}");
        fields += 1;
    });
    assert!(fields >= 3, "{} shows {fields} fields", message.name());
}

/// A stream is cut into packets that take what they say; each encodes to a packet that reads the same.
pub fn soupbintcp(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((packet, taken))) = soupbintcp::split(rest) {
        assert!((soupbintcp::HEADER_SIZE..=rest.len()).contains(&taken));
        packet.visit(&mut |_, _| ());
        let mut buffer = vec![0; taken];
        let len = packet
            .encode(&mut buffer)
            .expect("a packet fits the bytes it was read from");
        // A packet longer than its layout is read and encodes to the layout, its length field as it was.
        if len == taken {
            assert_eq!(soupbintcp::split(&buffer), Ok(Some((packet, taken))));
        }
        rest = &rest[taken..];
    }
}

/// A block with the checksum that it should have is filled by its messages; a message is made of its parts.
pub fn cqs(bytes: &[u8]) {
    let mut block = bytes.to_vec();
    let size = bytes
        .get(1..3)
        .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
    let end = size.min(block.len());
    for header in [cqs::BlockHeader::SIZE, cqs::SnapshotHeader::SIZE] {
        if end < header {
            continue;
        }
        block[header - 2..header].fill(0);
        let sum = block[..end]
            .iter()
            .fold(0_u16, |sum, b| sum.wrapping_add((*b).into()));
        block[header - 2..header].copy_from_slice(&sum.to_be_bytes());
        let parsed = match header {
            cqs::BlockHeader::SIZE => cqs::parse_block(&block).map(|block| block.messages),
            _ => cqs::parse_snapshot_block(&block).map(|block| block.messages),
        };
        let Ok(messages) = parsed else { continue };
        let filled: usize = messages.clone().map(<[u8]>::len).sum();
        assert_eq!((header + filled).next_multiple_of(2), size);
        messages.for_each(cqs_message);
    }
    cqs_message(bytes);
}

fn cqs_message(bytes: &[u8]) {
    let _ = (cqs::symbol(bytes), cqs::snapshot_symbol(bytes));
    if let Ok(message) = cqs::SnapshotMessage::parse(bytes) {
        assert!(bytes.starts_with(message.as_bytes()));
        message.visit(&mut |_, _| ());
    }
    let Ok(message) = cqs::parse(bytes) else { return };
    assert!(bytes.starts_with(&message.parts().concat()));
    let mut fields = 0;
    message.visit(&mut |_, value| fields += usize::from(!format!("{value:?}").is_empty()));
    assert!(fields >= 8, "{} shows {fields} fields", message.name());
}

/// A message is made of its parts and reads the same from them.
pub fn uqdf(bytes: &[u8]) {
    let _ = uqdf::symbol(bytes);
    let Ok(message) = uqdf::parse(bytes) else { return };
    let mut buffer = vec![0; bytes.len()];
    let size = message
        .encode(&mut buffer)
        .expect("a message fits where it came from");
    assert_eq!(buffer[..size], bytes[..size]);
    assert_eq!(uqdf::parse(&buffer[..size]), Ok(message));
    let mut fields = 0;
    message.visit(&mut |_, value| fields += usize::from(!format!("{value:?}").is_empty()));
    assert!(fields >= 8, "{} shows {fields} fields", message.name());
}

/// Messages and trailing bytes make up the datagram; each is a prefix of its bytes and shows its fields.
pub fn xdp(bytes: &[u8]) {
    let _ = (
        xdp::symbol_index(bytes),
        xdp::order_id(bytes),
        xdp::split(bytes).is_ok(),
    );
    if let Ok(message) = xdp::parse(bytes) {
        assert!(bytes.starts_with(message.as_bytes()));
    }
    let Ok(packet) = xdp::parse_packet(bytes) else {
        return;
    };
    let filled: usize = packet.messages.clone().map(<[u8]>::len).sum();
    assert_eq!(
        xdp::PacketHeader::SIZE + filled + usize::from(packet.trailing),
        bytes.len()
    );
    for own in packet.messages {
        let Ok(message) = xdp::parse(own) else { continue };
        assert!(own.starts_with(message.as_bytes()));
        message.visit(&mut |name, value| drop(format!("{name} {value:?}")));
    }
}

/// Messages and trailing bytes make up the datagram; each shows its fields and encodes to its bytes.
pub fn openbook(bytes: &[u8]) {
    let _ = openbook::split(bytes).is_ok();
    let Ok(packet) = openbook::parse_packet(bytes) else {
        return;
    };
    let filled: usize = packet.messages.clone().map(<[u8]>::len).sum();
    assert_eq!(
        openbook::PacketHeader::SIZE + filled + usize::from(packet.trailing),
        bytes.len()
    );
    let kind = packet.kind();
    for own in packet.messages {
        let Ok(message) = openbook::parse(kind, own) else {
            continue;
        };
        message.visit(&mut |_, name, value| drop(format!("{name} {value:?}")));
        let mut again = vec![0; own.len()];
        assert_eq!(message.encode(&mut again), Some(own.len()));
        assert_eq!(again, own);
    }
}
