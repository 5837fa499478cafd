//! Frames of the kernel path.

use super::{moldudp64, xdp};

/// Answers to an order, early and not, with timestamps and without, one with a tag, one cut.
pub(crate) fn order_segment() -> Vec<Vec<u8>> {
    use crate::targets::kernel::ENDS;
    use tickwire_kernel::segment::{Ends, Numbers, Template};
    let peer = Ends {
        hardware: [ENDS.hardware[1], ENDS.hardware[0]],
        addresses: [ENDS.addresses[1], ENDS.addresses[0]],
        ports: [ENDS.ports[1], ENDS.ports[0]],
    };
    let mut all = Vec::new();
    for (has_stamps, ack) in [(true, 5), (false, 5), (true, 0xFFFF_FF00), (false, 0xFFFF_FE00)] {
        let numbers = Numbers {
            seq: 1,
            ack,
            window: 500,
            stamps: (7, 8),
        };
        let mut frame = vec![0; 200];
        let length = Template::new(&peer, has_stamps).write(&mut frame, &numbers, b"35=8|39=0|");
        frame.truncate(length.unwrap_or(0));
        let tagged = [&frame[..12], &[0x81, 0, 0, 100], &frame[12..]].concat();
        all.extend([frame[..frame.len() - 3].to_vec(), frame, tagged]);
    }
    all
}

/// Conditions of several kinds before the packets of both framings.
pub(crate) fn armed_order() -> Vec<Vec<u8>> {
    let heads = [
        [0_u8, 0, 0, 1, 0, 0, 255, 40],
        [0, 1, 0, 1, 0, 0, 255, 40],
        [0, 2, 0, 7, 1, 0, 255, 24],
    ];
    let packets = moldudp64().into_iter().map(|packet| (0, packet));
    let packets = packets.chain(xdp().into_iter().map(|packet| (1, packet)));
    let all = packets.flat_map(|(framing, packet)| {
        heads.map(|mut head| {
            head[0] = framing;
            [&head[..], &packet].concat()
        })
    });
    all.collect()
}
