//! The standard header. FIX 4.4 with errata 20030618, volume 1, "Standard Message Header".

use crate::decode::{Frame, Index};
use crate::decode::{Message, frame};
use crate::reject::Fault;
use crate::tag;
use crate::text::{CompId, Text};
use tickwire_market::Nanos;

/// What the session layer reads of every message.
#[derive(Clone, Copy, Debug)]
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
    #[inline]
    pub(crate) fn decode(m: &Message<'a>) -> Header<'a> {
        let mut h = Header {
            seq: None,
            sender: b"",
            target: b"",
            sending_time: Nanos::ZERO,
            orig_sending_time: None,
            poss_dup: false,
            poss_resend: false,
            fault: None,
        };
        let mut has_time = false;
        for &f in m.fields().iter().skip(3) {
            let read = match f.tag {
                tag::MSG_SEQ_NUM => m.unsigned(f).map(|n| h.seq = Some(n)),
                tag::SENDER_COMP_ID => {
                    h.sender = m.value(f);
                    Ok(())
                }
                tag::TARGET_COMP_ID => {
                    h.target = m.value(f);
                    Ok(())
                }
                tag::SENDING_TIME => {
                    has_time = true;
                    m.timestamp(f).map(|t| h.sending_time = t)
                }
                tag::ORIG_SENDING_TIME => m.timestamp(f).map(|t| h.orig_sending_time = Some(t)),
                tag::POSS_DUP_FLAG => m.boolean(f).map(|b| h.poss_dup = b),
                tag::POSS_RESEND => m.boolean(f).map(|b| h.poss_resend = b),
                tag if is_header(tag) => Ok(()),
                _ => break,
            };
            h.fault = h.fault.or(read.err());
        }
        if !has_time {
            h.fault = h.fault.or(Some(Fault::missing(tag::SENDING_TIME)));
        }
        // Numbers of messages that could not be followed by another are no numbers.
        h.seq = h.seq.filter(|&n| n < u64::MAX / 2);
        h
    }
}

/// Whether a tag belongs to the standard header.
#[inline]
pub(crate) const fn is_header(tag: u32) -> bool {
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
            | 627..=630
    )
}

/// Who a message is from and to, and in which version of the session layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// BeginString (8).
    pub begin_string: Text<8>,
    /// SenderCompID (49).
    pub sender: CompId,
    /// TargetCompID (56).
    pub target: CompId,
}

/// What the beginning of a connection tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Its first message is not whole yet.
    Partial,
    /// Who it is from.
    From(Identity),
    /// No message, or one that names nobody.
    Garbled,
}

/// Looks at the first message of `bytes`, of at most `max` bytes: lets an acceptor find the session of a new connection
/// before handing it the bytes.
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
        Some(Identity {
            begin_string: Text::new(message.value(message.fields()[0]))?,
            sender: CompId::new(header.sender)?,
            target: CompId::new(header.target)?,
        })
    };
    match index.decode(&bytes[..len]) {
        Ok(message) => identity(&message).map_or(Opening::Garbled, Opening::From),
        Err(_) => Opening::Garbled,
    }
}
