//! How a session is set up.

use crate::text::CompId;
use crate::time::Precision;
use crate::version::Version;
use tickwire_market::Nanos;

/// Who opens the connection and sends the first Logon.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// We connect and log on.
    Initiator,
    /// We are connected to and wait for the Logon.
    Acceptor,
}

/// Everything a session needs to know; sizes are allocated once, by [`crate::Session::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionConfig {
    /// Initiator or acceptor.
    pub role: Role,
    /// The version spoken. Default 4.4.
    pub version: Version,
    /// Application messages come as [`crate::Event::Message`], whatever they are, instead of the typed ones of
    /// [`crate::AppMessage`]. Default `false`.
    pub any_message: bool,
    /// SenderCompID (49) of what we send.
    pub sender: CompId,
    /// TargetCompID (56) of what we send. Empty on an acceptor: whoever logs on first becomes the peer.
    pub target: CompId,
    /// HeartBtInt (108) in seconds that an initiator asks for, 0 to 3600; 0 is none. Default 30. An acceptor takes what
    /// it is asked for.
    pub heartbeat_s: u32,
    /// Both sequence numbers start at 1 with every logon: an initiator asks for it (141=Y), an acceptor does so
    /// whether asked or not. Default `false`: an acceptor then resets only when asked.
    pub reset_on_logon: bool,
    /// Digits of SendingTime and TransactTime. Default milliseconds.
    pub precision: Precision,
    /// How far SendingTime may be from our clock, either way; 0 switches the check off. Default 120 s.
    pub latency_max_ns: u64,
    /// How long to wait for the Logon. Default 10 s.
    pub logon_timeout_ns: u64,
    /// How long to wait for the answer to our Logout. Default 2 s.
    pub logout_timeout_ns: u64,
    /// A ResendRequest without any progress for this long is repeated, twice at most; then the session ends.
    /// Default 10 s.
    pub resend_timeout_ns: u64,
    /// Receive buffer, and so the longest message admitted, in bytes. Default 16 KiB.
    pub receive_bytes: usize,
    /// Bytes waiting for [`crate::Session::poll_transmit`]; at least 4 KiB. When full, [`crate::Session::send`] refuses, and a session
    /// message that must be sent ends the session. Default 256 KiB.
    pub transmit_bytes: usize,
    /// Messages received ahead of a gap and kept until it is filled, in bytes; what does not fit is requested again.
    /// Default 64 KiB.
    pub early_bytes: usize,
    /// Events waiting for [`crate::Session::poll_event`]; at least 8. When full, received bytes wait. Default 256.
    pub events: usize,
    /// Fields of the longest message admitted. Default 256.
    pub fields_max: usize,
    /// Sent messages kept for resends by the memory store. Default 4096.
    pub store_messages: usize,
    /// Their bytes together. Default 1 MiB.
    pub store_bytes: usize,
}

impl SessionConfig {
    /// The defaults for this role and these identities.
    pub fn new(role: Role, sender: CompId, target: CompId) -> SessionConfig {
        SessionConfig {
            role,
            version: Version::default(),
            any_message: false,
            sender,
            target,
            heartbeat_s: 30,
            reset_on_logon: false,
            precision: Precision::Millis,
            latency_max_ns: 120 * Nanos::SECOND,
            logon_timeout_ns: 10 * Nanos::SECOND,
            logout_timeout_ns: 2 * Nanos::SECOND,
            resend_timeout_ns: 10 * Nanos::SECOND,
            receive_bytes: 16 << 10,
            transmit_bytes: 256 << 10,
            early_bytes: 64 << 10,
            events: 256,
            fields_max: 256,
            store_messages: 4096,
            store_bytes: 1 << 20,
        }
    }

    /// The same for another version, with its digits of SendingTime.
    pub fn of_version(self, version: Version) -> SessionConfig {
        SessionConfig {
            version,
            precision: version.precision(),
            ..self
        }
    }
}
