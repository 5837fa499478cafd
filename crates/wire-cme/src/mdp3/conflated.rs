//! Conflated MDP over TCP: the framing, and the messages by which a client subscribes.
//!
//! ```text
//!  0 magic u16 = 0xCAFE   2 packet number u32   6 sending time u64   14 messages, as over UDP
//! ```
//! Data are messages of schema 1 ([`super::parse`]). The requests are of schema 2, whose definition is not
//! public: their layouts are read off recorded sessions of 2021, and so are the names of their fields.

use super::block::{
    Block, Entries, GroupSize, MessageBuilder, NoFields, SIZE, layouts, precedes, version_of, visit_entries,
    visit_root,
};
use super::{MessageHeader, Messages, Packet, Template, Text, Visit};
use crate::layout::{le, prefix};
use crate::sbe::table::messages;
use crate::{Malformed, wire_struct};

/// The schema version encoders write.
const NEWEST_VERSION: u16 = 0;

/// What every packet begins with.
pub const MAGIC: u16 = 0xCAFE;

wire_struct! {
    /// Before the messages of every packet. CME MDP 3.0 schema 1 version 12 over TCP, "Conflated TCP" (no
    /// public layout: read from recorded sessions).
    pub struct Header = "ConflatedPacket", 14 {
        /// [`MAGIC`].
        0 => magic: le::U16, "EncodingType";
        2 => seq: le::U32, "MsgSeqNum";
        /// Nanoseconds since the Unix epoch, UTC.
        6 => sending_time: le::U64, "SendingTime";
    }
}

wire_struct! {
    /// Root block of `RequestAck206`. CME MDP 3.0 schema 1 version 12 over TCP, "Conflated TCP" (no public
    /// layout: read from recorded sessions).
    pub struct RequestAckRoot = "RequestAck", 6 {
        /// The request's.
        0 => request_id: le::U32, "MDReqID";
        4 => status: u8, "MDReqIDStatus";
        5 => request_type: u8, "SubscriptionReqType";
    }
}

wire_struct! {
    /// Root block of `SecurityListRequest208` and `SecurityStatusRequest209`. CME MDP 3.0 schema 1 version 12
    /// over TCP, "Conflated TCP" (no public layout: read from recorded sessions).
    pub struct RequestRoot = "SecurityListRequest", 5 {
        0 => request_id: le::U32, "MDReqID";
        4 => request_type: u8, "SubscriptionReqType";
    }
}

wire_struct! {
    /// A security group. CME MDP 3.0 schema 1 version 12 over TCP, "Conflated TCP" (no public layout: read
    /// from recorded sessions).
    pub struct GroupEntry = "NoSecurityGroups", 6 {
        0 => security_group: Text<6>, "SecurityGroup";
    }
}

wire_struct! {
    /// An instrument. CME MDP 3.0 schema 1 version 12 over TCP, "Conflated TCP" (no public layout: read from
    /// recorded sessions).
    pub struct SecurityEntry = "NoRelatedSym", 4 {
        0 => security_id: le::I32, "SecurityID";
    }
}

layouts! {
    RequestAckRoot;
    RequestRoot;
    GroupEntry;
    SecurityEntry;
}

messages! {
    enum Request of schema 2 behind SIZE;
    206 RequestAck = "RequestAck206", RequestAckRoot, 6, decimals 9 {
        groups: GroupEntry, 6, GroupSize, since 0, "NoSecurityGroups";
        securities: SecurityEntry, 4, GroupSize, since 0, "NoRelatedSym";
    }
    208 SecurityListRequest = "SecurityListRequest208", RequestRoot, 5, decimals 9 {
        groups: GroupEntry, 6, GroupSize, since 0, "NoSecurityGroups";
        securities: SecurityEntry, 4, GroupSize, since 0, "NoRelatedSym";
    }
    209 SecurityStatusRequest = "SecurityStatusRequest209", RequestRoot, 5, decimals 9 {
        groups: GroupEntry, 6, GroupSize, since 0, "NoSecurityGroups";
        securities: SecurityEntry, 4, GroupSize, since 0, "NoRelatedSym";
    }
    210 SubscriberHeartbeat = "SubscriberHeartbeat210", NoFields, 0, decimals 9 {}
}

/// Reads a packet whose end is known (the caller has gathered whole messages).
pub fn parse_packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = prefix::<Header>(bytes)?;
    if header.magic.get() != MAGIC {
        return Err(Malformed::BadValue {
            offset: 0,
            value: bytes[0],
        });
    }
    let messages = Messages::check(rest)?;
    Ok(Packet {
        seq: header.seq.get(),
        sending_time: header.sending_time.get(),
        messages,
    })
}

/// Reads a message of schema 2, from its header on: header and what it says. Bytes after its last group are
/// ignored.
pub fn parse(bytes: &[u8]) -> Result<(&MessageHeader, Request<'_>), Malformed> {
    let (header, body) = prefix::<MessageHeader>(bytes)?;
    if header.schema_id.get() != Request::SCHEMA {
        return Err(Malformed::BadValue {
            offset: 4,
            value: header.schema_id.get() as u8,
        });
    }
    Request::split(body, header).map(|(request, _)| (header, request))
}

impl Request<'_> {
    /// As [`super::Message::encode`].
    pub fn encode(&self, buffer: &mut [u8], header: &MessageHeader) -> Option<usize> {
        self.encode_again(buffer, *header)
    }
}
