//! SoupBinTCP 3.00 (2017-02-22): packets in a TCP stream; numbered messages from the server, unnumbered from
//! the client.
//!
//! ```text
//!  0 packet length u16 (of what follows)   2 packet type c   3 payload
//! ```
//! Big-endian; numbers in login packets are ASCII. Stream bytes enter through [`split`] as they come, packets
//! leave as [`Packet`]; [`Packet::encode`] is the way back. The number of a sequenced packet is not on the
//! wire: both sides count.

use crate::layout::Pod;
use crate::layout::{Alpha, Char, Digits, FieldValue, Fields, U16, prefix, trim};
use crate::{Malformed, wire_enum, wire_struct};

/// Bytes before a packet's payload.
pub const HEADER_SIZE: usize = 3;
/// The largest payload the length field can tell.
pub const PAYLOAD_SIZE_MAX: usize = u16::MAX as usize - 1;

wire_struct! {
    /// The client's first packet. SoupBinTCP 3.00, "Login Request Packet".
    pub struct LoginRequest = "LoginRequest", 49 {
        0 => length: U16, "PacketLength";
        2 => kind: Char, "PacketType";
        /// Case does not matter.
        3 => username: Alpha<6>, "Username";
        /// Case does not matter.
        9 => password: Alpha<10>, "Password";
        /// Spaces: the current session.
        19 => session: Alpha<10>, "RequestedSession";
        /// The next number wanted; 1: all of the session; 0: only what comes from now on.
        29 => sequence: Digits<20>, "RequestedSequenceNumber";
    }
}

wire_struct! {
    /// The server lets the client in. SoupBinTCP 3.00, "Login Accepted Packet".
    pub struct LoginAccepted = "LoginAccepted", 33 {
        0 => length: U16, "PacketLength";
        2 => kind: Char, "PacketType";
        /// Padded on the left: see [`LoginAccepted::session_id`].
        3 => session: Alpha<10>, "Session";
        /// The number of the next sequenced packet.
        13 => sequence: Digits<20>, "SequenceNumber";
    }
}

wire_struct! {
    /// The server refuses, and closes. SoupBinTCP 3.00, "Login Rejected Packet".
    pub struct LoginRejected = "LoginRejected", 4 {
        0 => length: U16, "PacketLength";
        2 => kind: Char, "PacketType";
        /// See [`RejectReason`].
        3 => reason: Char, "RejectReasonCode";
    }
}

wire_enum! {
    /// `RejectReasonCode` of [`LoginRejected`].
    pub enum RejectReason {
        /// User name and password do not fit.
        b'A' => NotAuthorized;
        /// The session does not exist.
        b'S' => SessionNotAvailable;
    }
}

impl LoginRequest {
    /// A request for `session` (empty: the current one) from number `sequence` on. `None` if a text is too
    /// long.
    pub fn new(username: &[u8], password: &[u8], session: &[u8], sequence: u64) -> Option<LoginRequest> {
        Some(LoginRequest {
            length: payload_length::<LoginRequest>(),
            kind: Char(b'L'),
            username: Alpha::new(username)?,
            password: Alpha::new(password)?,
            session: Alpha::new(session)?,
            sequence: Digits::new(sequence)?,
        })
    }
}

impl LoginAccepted {
    /// The session the client is in, and the number of the next sequenced packet. `None` if the session is
    /// too long.
    pub fn new(session: &[u8], sequence: u64) -> Option<LoginAccepted> {
        let mut padded = [b' '; 10];
        padded[10_usize.checked_sub(session.len())?..].copy_from_slice(session);
        Some(LoginAccepted {
            length: payload_length::<LoginAccepted>(),
            kind: Char(b'A'),
            session: Alpha(padded),
            sequence: Digits::new(sequence)?,
        })
    }

    /// The session without padding on either side.
    pub fn session_id(&self) -> &[u8] {
        let mut text = trim(&self.session.0);
        while let [b' ', rest @ ..] = text {
            text = rest;
        }
        text
    }
}

impl LoginRejected {
    /// A refusal.
    pub fn new(reason: RejectReason) -> LoginRejected {
        LoginRejected {
            length: payload_length::<LoginRejected>(),
            kind: Char(b'J'),
            reason: reason.into(),
        }
    }
}

/// The `PacketLength` of a packet of fixed size: all but the length field itself.
const fn payload_length<T>() -> U16 {
    U16::new(size_of::<T>() as u16 - 2)
}

/// One packet, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// Free text, to be ignored.
    Debug(&'a [u8]),
    /// Client: lets me in.
    LoginRequest(&'a LoginRequest),
    /// Server: you are in.
    LoginAccepted(&'a LoginAccepted),
    /// Server: you are not.
    LoginRejected(&'a LoginRejected),
    /// Server: the next numbered message.
    Sequenced(&'a [u8]),
    /// An unnumbered message, from the client as a rule.
    Unsequenced(&'a [u8]),
    /// Server: alive.
    ServerHeartbeat,
    /// Client: alive.
    ClientHeartbeat,
    /// Server: no more messages in this session.
    EndOfSession,
    /// Client: goodbye.
    LogoutRequest,
    /// A type this version does not have; skip it.
    Unknown(u8),
}

/// Reads the first packet of a stream: the packet and how many bytes it takes, `None` if it is not complete
/// yet. After an error the stream cannot be followed any more. Bytes beyond a layout are ignored, packets may
/// grow.
#[inline]
pub fn split(stream: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Malformed> {
    let Some(length) = stream.first_chunk::<2>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 {
        return Err(Malformed::length(0, 1, 0));
    }
    let Some(packet) = stream.get(..2 + length) else {
        return Ok(None);
    };
    let (kind, payload) = (packet[2], &packet[HEADER_SIZE..]);
    let packet = match kind {
        b'+' => Packet::Debug(payload),
        b'L' => Packet::LoginRequest(fixed(packet)?),
        b'A' => Packet::LoginAccepted(fixed(packet)?),
        b'J' => Packet::LoginRejected(fixed(packet)?),
        b'S' => Packet::Sequenced(payload),
        b'U' => Packet::Unsequenced(payload),
        b'H' => Packet::ServerHeartbeat,
        b'R' => Packet::ClientHeartbeat,
        b'Z' => Packet::EndOfSession,
        b'O' => Packet::LogoutRequest,
        unknown => Packet::Unknown(unknown),
    };
    Ok(Some((packet, 2 + length)))
}

fn fixed<T>(packet: &[u8]) -> Result<&T, Malformed>
where
    T: Pod,
{
    match prefix::<T>(packet) {
        Ok((layout, _)) => Ok(layout),
        // the packet is complete: its own length field is what contradicts the layout
        Err(_) => Err(Malformed::length(packet[2], size_of::<T>(), packet.len())),
    }
}

impl Packet<'_> {
    /// The packet type byte.
    pub fn kind(&self) -> u8 {
        match *self {
            Packet::Debug(_) => b'+',
            Packet::LoginRequest(_) => b'L',
            Packet::LoginAccepted(_) => b'A',
            Packet::LoginRejected(_) => b'J',
            Packet::Sequenced(_) => b'S',
            Packet::Unsequenced(_) => b'U',
            Packet::ServerHeartbeat => b'H',
            Packet::ClientHeartbeat => b'R',
            Packet::EndOfSession => b'Z',
            Packet::LogoutRequest => b'O',
            Packet::Unknown(kind) => kind,
        }
    }

    /// Its name in the specification.
    pub fn name(&self) -> &'static str {
        match self {
            Packet::Debug(_) => "Debug",
            Packet::LoginRequest(_) => LoginRequest::NAME,
            Packet::LoginAccepted(_) => LoginAccepted::NAME,
            Packet::LoginRejected(_) => LoginRejected::NAME,
            Packet::Sequenced(_) => "SequencedData",
            Packet::Unsequenced(_) => "UnsequencedData",
            Packet::ServerHeartbeat => "ServerHeartbeat",
            Packet::ClientHeartbeat => "ClientHeartbeat",
            Packet::EndOfSession => "EndOfSession",
            Packet::LogoutRequest => "LogoutRequest",
            Packet::Unknown(_) => "Unknown",
        }
    }

    /// Its fields in wire order, named as in the specification.
    pub fn visit(&self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        match self {
            Packet::LoginRequest(packet) => packet.visit(f),
            Packet::LoginAccepted(packet) => packet.visit(f),
            Packet::LoginRejected(packet) => packet.visit(f),
            Packet::Debug(text) => {
                f("PacketType", FieldValue::Char(self.kind()));
                f("Text", FieldValue::Text(text));
            }
            Packet::Sequenced(message) | Packet::Unsequenced(message) => {
                f("PacketType", FieldValue::Char(self.kind()));
                f("Message", FieldValue::Bytes(message));
            }
            _ => f("PacketType", FieldValue::Char(self.kind())),
        }
    }

    /// Writes the packet, length field first, at the start of `buffer`; gives its length. `None` if it does
    /// not fit, or if its payload is larger than [`PAYLOAD_SIZE_MAX`].
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        match self {
            Packet::LoginRequest(packet) => copy(buffer, packet.as_bytes()),
            Packet::LoginAccepted(packet) => copy(buffer, packet.as_bytes()),
            Packet::LoginRejected(packet) => copy(buffer, packet.as_bytes()),
            Packet::Debug(payload) | Packet::Sequenced(payload) | Packet::Unsequenced(payload) => {
                frame(buffer, self.kind(), payload)
            }
            Packet::ServerHeartbeat
            | Packet::ClientHeartbeat
            | Packet::EndOfSession
            | Packet::LogoutRequest
            | Packet::Unknown(_) => frame(buffer, self.kind(), &[]),
        }
    }
}

fn copy(buffer: &mut [u8], packet: &[u8]) -> Option<usize> {
    buffer.get_mut(..packet.len())?.copy_from_slice(packet);
    Some(packet.len())
}

fn frame(buffer: &mut [u8], kind: u8, payload: &[u8]) -> Option<usize> {
    let length = u16::try_from(payload.len() + 1).ok()?;
    let packet = buffer.get_mut(..HEADER_SIZE + payload.len())?;
    packet[..2].copy_from_slice(&length.to_be_bytes());
    packet[2] = kind;
    packet[HEADER_SIZE..].copy_from_slice(payload);
    Some(packet.len())
}
