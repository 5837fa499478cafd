//! Files: what a capture says about itself is not believed.

use std::io::Cursor;
use tickwire_runtime::capture::{CaptureReader, udp};

/// Reading ends, and every datagram lies within its frame.
pub fn capture(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::from_reader("fuzz", Cursor::new(bytes.to_vec())) else {
        return;
    };
    let mut packets = 0;
    while let Ok(Some(packet)) = reader.next_packet() {
        packets += 1;
        assert!(packets <= 1 << 20, "the reader does not get on");
        if let Ok(datagram) = udp(packet.link, packet.bytes) {
            assert!(datagram.payload.len() <= packet.bytes.len());
        }
    }
}
