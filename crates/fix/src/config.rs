//! How a session is set up.

use crate::text::{CompId, Text};
use crate::throttle::Throttle;
use crate::time::Precision;
use crate::version::Version;
use core::fmt;
use tickwire_market::Nanos;
use tickwire_persist::persist;

/// Who opens the connection and sends the first Logon.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// We connect and log on.
    Initiator,
    /// We are connected to and wait for the Logon.
    Acceptor,
}

/// A text that nobody must read in a log: it prints as asterisks. Up to 63 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Secret(Text<8>);

impl Secret {
    /// A secret; `None` if it is longer than 63 bytes or has a byte that is not printable ASCII.
    pub const fn new(text: &[u8]) -> Option<Secret> {
        match Text::new(text) {
            Some(text) => Some(Secret(text)),
            None => None,
        }
    }

    /// What is not to be shown.
    pub fn expose(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "***" })
    }
}

/// Who an initiator says it is in its Logon; what is empty is not sent. In the standard since 4.3 (925: FIXT
/// 1.1), sent in any version when set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    /// Username (553).
    pub username: Text<8>,
    /// Password (554).
    pub password: Secret,
    /// NewPassword (925): the peer is to change it.
    pub new_password: Secret,
}

/// The parts of a counterparty beside its comp ids. Empty ones are neither sent nor checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubIds {
    /// SenderSubID (50) of what we send, TargetSubID (57) of what we receive.
    pub sender_sub: CompId,
    /// SenderLocationID (142) of what we send, TargetLocationID (143) of what we receive.
    pub sender_location: CompId,
    /// TargetSubID (57) of what we send, SenderSubID (50) of what we receive.
    pub target_sub: CompId,
    /// TargetLocationID (143) of what we send, SenderLocationID (142) of what we receive.
    pub target_location: CompId,
}

impl SubIds {
    /// Whether there are none.
    #[inline]
    pub(crate) const fn are_empty(&self) -> bool {
        self.sender_sub.is_empty()
            && self.sender_location.is_empty()
            && self.target_sub.is_empty()
            && self.target_location.is_empty()
    }
}

/// When the owner is told to cancel what is open ([`crate::Event::CancelOrders`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CancelOn {
    /// Never.
    #[default]
    Never,
    /// When a connection that was logged on is lost without a logout.
    ConnectionLost,
    /// After a logout as well.
    AnyEnd,
}

/// Everything a session needs to know; sizes are allocated once, by [`crate::Session::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionConfig {
    /// Initiator or acceptor.
    pub role: Role,
    /// The version spoken. Default 4.4.
    pub version: Version,
    /// SenderCompID (49) of what we send.
    pub sender: CompId,
    /// TargetCompID (56) of what we send. Empty on an acceptor: whoever logs on first becomes the peer.
    pub target: CompId,
    /// Sub and location ids. Default none.
    pub subs: SubIds,
    /// Tells sessions with the same ids from each other; not sent. An acceptor gives a connection to the
    /// first of them that has none. Default empty.
    pub qualifier: CompId,
    /// Username and passwords of an initiator. Default none.
    pub credentials: Credentials,
    /// An acceptor asks its owner about every logon: [`crate::Event::LogonRequested`]. Default `false`: who
    /// has the right ids is logged on.
    pub asks_about_logons: bool,
    /// Session messages that were taken are told of, too: [`crate::Event::Admin`]. Default `false`.
    pub tells_session_messages: bool,
    /// The owner is asked before a kept message is sent again: [`crate::Session::resend_asked`]. Default
    /// `false`.
    pub asks_about_resends: bool,
    /// TestMessageIndicator (464) of our Logon; a peer whose Logon says otherwise (none is N) is refused.
    /// Default `None`: neither sent nor checked.
    pub is_test: Option<bool>,
    /// The field of a Logon, by its tag, in which a venue says whether it cancels what is open when the
    /// connection is lost: a venue's own, as the standard has none (Deribit's CancelOnDisconnect is 9001). An
    /// initiator's Logon says `Y` there, and [`crate::Session::peer_cancels`] is what the answer says; an
    /// acceptor answers one that has it by [`SessionConfig::cancels_orders`]. Default 0: none.
    pub cancels_tag: u32,
    /// What an acceptor answers there. Default `false`.
    pub cancels_orders: bool,
    /// HeartBtInt (108) in seconds that an initiator asks for, 0 to 3600; 0 is none. Default 30. An acceptor
    /// takes what it is asked for, within the next two; an initiator takes what the answer says, likewise.
    pub heartbeat_s: u32,
    /// The least HeartBtInt that a peer may say, in seconds. Default 0.
    pub heartbeat_s_min: u32,
    /// The most. Default 3600.
    pub heartbeat_s_max: u32,
    /// Logons carry NextExpectedMsgSeqNum (789), and that of the peer is obeyed: what it misses is sent
    /// without being asked for. In the standard since 4.4. Default `false`: 789 is ignored.
    pub next_expected: bool,
    /// Every message carries LastMsgSeqNumProcessed (369). In the standard since 4.2. Orders then have no
    /// template. Default `false`.
    pub last_processed: bool,
    /// Logons carry MaxMessageSize (383): the receive buffer. In the standard since 4.2. Default `false`.
    /// That of the peer is obeyed in any case.
    pub says_message_max: bool,
    /// Both sequence numbers start at 1 with every logon: an initiator asks for it (141=Y), an acceptor does
    /// so whether asked or not. Default `false`: an acceptor then resets only when asked.
    pub reset_on_logon: bool,
    /// Both sequence numbers start at 1 again after a logout, whoever began it. Default `false`.
    pub reset_on_logout: bool,
    /// Both sequence numbers start at 1 again after any disconnect. Default `false`.
    pub reset_on_disconnect: bool,
    /// Digits of SendingTime and TransactTime. Default milliseconds.
    pub precision: Precision,
    /// How far SendingTime may be from our clock, either way; 0 switches the check off. Default 120 s.
    pub latency_max_ns: u64,
    /// A TestRequest is sent after so many thousandths of the heartbeat interval in silence; 0 is never.
    /// Default 1200.
    pub test_after_permille: u32,
    /// The session ends after so many; 0 is never. Default 2400.
    pub silence_max_permille: u32,
    /// SenderCompID and TargetCompID of the peer are checked after the logon, too (an initiator's: at all).
    /// Default `true`.
    pub checks_comp_ids: bool,
    /// A possible duplicate (43=Y) must say when it was sent first (122). Default `true`.
    pub wants_orig_sending_time: bool,
    /// Application messages are kept for resends; otherwise gap fills stand for them. Default `true`.
    pub keeps_messages: bool,
    /// How long to wait for the Logon. Default 10 s.
    pub logon_timeout_ns: u64,
    /// How long to wait for the answer to our Logout. Default 2 s.
    pub logout_timeout_ns: u64,
    /// A ResendRequest without any progress for this long is repeated, twice at most; then the session ends.
    /// Default 10 s.
    pub resend_timeout_ns: u64,
    /// Messages asked for by one ResendRequest, the next ones when these have come; 0 for all at once.
    /// Default 0.
    pub resend_chunk: u64,
    /// How often a peer may ask for messages from the same number on within a connection; then the session
    /// ends. At least
    /// 1. Default 10.
    pub resend_repeats_max: u32,
    /// Bound on the application messages we send. Default none.
    pub throttle_out: Option<Throttle>,
    /// Bound on the application messages we receive. Default none.
    pub throttle_in: Option<Throttle>,
    /// When the owner is told to cancel what is open. Default never.
    pub cancel_on: CancelOn,
    /// How long to wait for the peer to log on again before that. Default 0.
    pub cancel_after_ns: u64,
    /// Receive buffer, and so the longest message admitted, in bytes. Default 16 KiB.
    pub receive_bytes: usize,
    /// Bytes waiting for [`crate::Session::poll_transmit`]; at least 4 KiB. When full,
    /// [`crate::Session::send`] refuses, and a session message that must be sent ends the session. Default
    /// 256 KiB.
    pub transmit_bytes: usize,
    /// Messages received ahead of a gap and kept until it is filled, in bytes; what does not fit is requested
    /// again. Default 64 KiB.
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
            sender,
            target,
            subs: SubIds::default(),
            qualifier: CompId::EMPTY,
            credentials: Credentials::default(),
            asks_about_logons: false,
            tells_session_messages: false,
            cancels_tag: 0,
            cancels_orders: false,
            asks_about_resends: false,
            is_test: None,
            heartbeat_s: 30,
            heartbeat_s_min: 0,
            heartbeat_s_max: 3_600,
            next_expected: false,
            last_processed: false,
            says_message_max: false,
            reset_on_logon: false,
            reset_on_logout: false,
            reset_on_disconnect: false,
            precision: Precision::Millis,
            latency_max_ns: 120 * Nanos::SECOND,
            test_after_permille: 1_200,
            silence_max_permille: 2_400,
            checks_comp_ids: true,
            wants_orig_sending_time: true,
            keeps_messages: true,
            logon_timeout_ns: 10 * Nanos::SECOND,
            logout_timeout_ns: 2 * Nanos::SECOND,
            resend_timeout_ns: 10 * Nanos::SECOND,
            resend_chunk: 0,
            resend_repeats_max: 10,
            throttle_out: None,
            throttle_in: None,
            cancel_on: CancelOn::Never,
            cancel_after_ns: 0,
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

persist!(value struct SubIds { sender_sub, sender_location, target_sub, target_location });
