//! The standard header. FIX 4.4 with errata 20030618, volume 1, "Standard Message Header".

use crate::decode::{Frame, Index};
use crate::decode::{Message, frame};
use crate::fields::Field;
use crate::reject::Fault;
use crate::tag;
use crate::text::{CompId, Text};
use tickwire_market::Nanos;
use tickwire_persist::persist;

/// What the session layer reads of every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header<'a> {
    /// MsgSeqNum, `None` if missing or not a number.
    pub(crate) seq: Option<u64>,
    pub(crate) sender: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) sending_time: Nanos,
    pub(crate) orig_sending_time: Option<Nanos>,
    pub(crate) poss_dup: bool,
    pub(crate) poss_resend: bool,
    /// The first field of the header that is missing or not of its type.
    pub(crate) fault: Option<Fault>,
}

impl<'a> Header<'a> {
    const EMPTY: Header<'static> = Header {
        seq: None,
        sender: b"",
        target: b"",
        sending_time: Nanos::ZERO,
        orig_sending_time: None,
        poss_dup: false,
        poss_resend: false,
        fault: None,
    };

    #[inline]
    pub(crate) fn decode(m: &Message<'a>) -> Header<'a> {
        match Header::usual(m) {
            Some(header) => header,
            None => Header::of_any_fields(m),
        }
    }

    /// A header as nearly all are: behind MsgType four fields in any order, which are right, and no other.
    #[inline(always)]
    fn usual(m: &Message<'a>) -> Option<Header<'a>> {
        if m.fields().get(7).is_some_and(|f| is_header(f.tag)) {
            return None;
        }
        let at = |tag| m.listed_within(tag, 3..7);
        let header = Header {
            seq: Some(m.unsigned(at(tag::MSG_SEQ_NUM)?).ok()?).filter(is_seq),
            sender: m.value(at(tag::SENDER_COMP_ID)?),
            target: m.value(at(tag::TARGET_COMP_ID)?),
            sending_time: m.timestamp(at(tag::SENDING_TIME)?).ok()?,
            ..Header::EMPTY
        };
        Some(header).filter(|h| !h.sender.is_empty() && !h.target.is_empty())
    }

    /// Any header, by one field after the other.
    #[inline(never)]
    fn of_any_fields(m: &Message<'a>) -> Header<'a> {
        let mut h = Header::EMPTY;
        let mut has_time = false;
        for &f in m.fields().iter().skip(3).take_while(|f| is_header(f.tag)) {
            has_time |= h.read(m, f);
        }
        if h.seq.is_none() || h.sender.is_empty() || h.target.is_empty() {
            // Perhaps they stand in their wrong place, which is for the rules to judge.
            for &f in m.fields().iter().skip(3).skip_while(|f| is_header(f.tag)) {
                has_time |= h.read(m, f);
            }
        }
        if !has_time {
            h.fault = h.fault.or(Some(Fault::missing(tag::SENDING_TIME)));
        }
        h.seq = h.seq.filter(is_seq);
        h
    }

    /// Takes in one field; whether it is SendingTime.
    #[inline(always)]
    fn read(&mut self, m: &Message<'a>, f: Field) -> bool {
        let read = match f.tag {
            tag::MSG_SEQ_NUM => m.unsigned(f).map(|n| self.seq = Some(n)),
            tag::SENDER_COMP_ID => {
                self.sender = m.value(f);
                Ok(())
            }
            tag::TARGET_COMP_ID => {
                self.target = m.value(f);
                Ok(())
            }
            tag::SENDING_TIME => m.timestamp(f).map(|t| self.sending_time = t),
            tag::ORIG_SENDING_TIME => m.timestamp(f).map(|t| self.orig_sending_time = Some(t)),
            tag::POSS_DUP_FLAG => m.boolean(f).map(|b| self.poss_dup = b),
            tag::POSS_RESEND => m.boolean(f).map(|b| self.poss_resend = b),
            _ => Ok(()),
        };
        self.fault = self.fault.or(read.err());
        f.tag == tag::SENDING_TIME
    }
}

/// Numbers of messages that could not be followed by another are no numbers.
#[inline]
fn is_seq(n: &u64) -> bool {
    *n < u64::MAX / 2
}

/// Whether a tag belongs to the standard header of any version.
#[inline]
pub const fn is_header(tag: u32) -> bool {
    matches!(
        tag,
        8 | 9
            | 34
            | 35
            | 43
            | 49
            | 50
            | 52
            | 56
            | 57
            | 90
            | 91
            | 97
            | 115
            | 116
            | 122
            | 128
            | 129
            | 142
            | 143
            | 144
            | 145
            | 212
            | 213
            | 347
            | 369
            | 370
            | 627..=630 | 1128 | 1129 | 1156
    )
}

/// Who a message is from and to, and in which version of the session layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// BeginString (8).
    pub begin_string: Text<2>,
    /// SenderCompID (49).
    pub sender: CompId,
    /// TargetCompID (56).
    pub target: CompId,
    /// SenderSubID (50), empty if there is none.
    pub sender_sub: CompId,
    /// SenderLocationID (142), empty if there is none.
    pub sender_location: CompId,
    /// TargetSubID (57), empty if there is none.
    pub target_sub: CompId,
    /// TargetLocationID (143), empty if there is none.
    pub target_location: CompId,
    /// DefaultApplVerID (1137), empty if there is none.
    pub appl_ver_id: Text<2>,
}

/// What the beginning of a connection tells.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, on the stack; a box would allocate for every connection"
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Its first message is not whole yet.
    Partial,
    /// Who it is from.
    From(Identity),
    /// No message, or one that names nobody.
    Garbled,
}

/// What BeginString (8) and DefaultApplVerID (1137) may have, bytes.
const VERSION_MAX: usize = 8;

/// Looks at the first message of `bytes`, of at most `max` bytes: lets an acceptor find the session of a new
/// connection before handing it the bytes.
pub fn identify(bytes: &[u8], max: usize) -> Opening {
    let len = match frame(bytes, max) {
        Frame::Whole(len) => len,
        Frame::Partial => return Opening::Partial,
        Frame::Garbled { .. } => return Opening::Garbled,
    };
    // The header has fewer fields than this; what follows is for the session to judge.
    let mut index = Index::new(64);
    let identity = |message: &Message<'_>| {
        let header = Header::decode(message);
        // A version that has more bytes is none.
        let version = |text: &[u8]| Text::new(text).filter(|_| text.len() <= VERSION_MAX);
        let part = |tag| {
            let found = message.find(tag);
            CompId::new(found.map_or(b"", |f| message.value(f)))
        };
        Some(Identity {
            begin_string: version(message.value(message.fields()[0]))?,
            sender: CompId::new(header.sender)?,
            target: CompId::new(header.target)?,
            sender_sub: part(tag::SENDER_SUB_ID)?,
            sender_location: part(tag::SENDER_LOCATION_ID)?,
            target_sub: part(tag::TARGET_SUB_ID)?,
            target_location: part(tag::TARGET_LOCATION_ID)?,
            appl_ver_id: version(part(tag::DEFAULT_APPL_VER_ID)?.as_bytes())?,
        })
    };
    match index.decode(&bytes[..len]) {
        Ok(message) => identity(&message).map_or(Opening::Garbled, Opening::From),
        Err(_) => Opening::Garbled,
    }
}

persist!(value struct Identity {
    begin_string, sender, target, sender_sub, sender_location, target_sub, target_location, appl_ver_id,
});

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::naive;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Those of a usual header first.
    const FIELDS: [(u32, &str); 8] = [
        (34, "7"),
        (49, "V"),
        (52, "20261121-01:55:41"),
        (56, "T"),
        (43, "N"),
        (11, "1"),
        (34, "8"),
        (122, "20261121-01:55:40"),
    ];

    #[test]
    fn a_version_of_more_than_eight_bytes_names_nobody() {
        for (begin_string, applied, is_known) in [
            ("FIXT.1.1", "9", true),
            ("FIXT.1.1", "12345678", true),
            ("FIXT.1.12", "9", false),
            ("FIXT.1.1", "123456789", false),
        ] {
            let fields = [(35, "A"), (34, "1"), (49, "V"), (56, "T"), (1137, applied)];
            let fields = fields.map(|(tag, value)| (tag, Vec::from(value)));
            let bytes = naive::encode_as(begin_string, &fields);
            let opening = identify(&bytes, bytes.len());
            assert_eq!(matches!(opening, Opening::From(_)), is_known, "{opening:?}");
        }
    }

    /// Both ways read the same, and the quick one what has nothing particular.
    fn agrees(order: &[usize], changed: Option<(usize, &str)>) {
        let mut fields: Vec<(u32, Vec<u8>)> = std::vec![(35, b"8".to_vec())];
        fields.extend(order.iter().map(|&i| match changed {
            Some((at, value)) if at == i => (FIELDS[i].0, value.into()),
            _ => (FIELDS[i].0, FIELDS[i].1.into()),
        }));
        let (bytes, mut index) = (naive::encode(&fields), Index::new(64));
        let message = index.decode(&bytes).expect("whole");
        let usual = Header::usual(&message);
        let is_same = usual.is_none_or(|header| header == Header::of_any_fields(&message));
        assert!(is_same, "{}", bytes.escape_ascii());
        let is_usual =
            order.len() >= 4 && order[..4].iter().all(|&i| i < 4) && matches!(order.get(4), None | Some(5));
        assert!(
            usual.is_some() || changed.is_some() || !is_usual,
            "{}",
            bytes.escape_ascii()
        );
    }

    proptest! {
        #[test]
        fn a_header_reads_as_it_does_by_one_field_after_the_other(
            order in Just([0, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
            count in 2..=8_usize,
            value in prop::sample::select(["", "Y", "0", "9999999999999999999"].as_slice()),
            at in prop::option::of(0..8_usize),
        ) {
            let changed = at.map(|at| (at, value));
            agrees(&order[..count], changed);
            // Usual ones are seldom first by chance.
            let [a, b, c, d] = [0, 1, 2, 3].map(|n| (order[0] + n) % 4);
            agrees(&[a, b, c, d, 5, order[1], order[2], order[3]][..count], changed);
        }
    }
}
