//! What a session tells its owner.

#[cfg(doc)]
use super::Session;
#[cfg(doc)]
use crate::config::SessionConfig;
use crate::text::CompId;
use crate::text::Reason;
use core::fmt;
use tickwire_market::Nanos;
use tickwire_market::SeqNo;

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// No transport connection.
    Disconnected,
    /// Initiator: our Logon is out.
    LogonSent,
    /// Acceptor: connected, waiting for a Logon.
    LogonAwaited,
    /// Logged on.
    Active,
    /// Our Logout is out.
    LogoutSent,
    /// Over: the transport is to be closed.
    Closing,
}

/// Why a session wants its transport closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DisconnectReason {
    /// Our Logout was answered.
    LogoutComplete,
    /// The peer logged out; it has been answered.
    PeerLogout,
    /// The Logon did not come in time.
    LogonTimeout,
    /// The Logon was refused: not a Logon, wrong identity, wrong time.
    LogonRefused,
    /// Our Logout was not answered in time.
    LogoutTimeout,
    /// Nothing received for too many heartbeat intervals ([`SessionConfig::silence_max_permille`]).
    HeartbeatTimeout,
    /// A sequence number below the expected one, without PossDupFlag.
    SequenceTooLow,
    /// Missing messages were requested three times in vain.
    ResendTimeout,
    /// The peer asked for the same messages again and again.
    ResendLoop,
    /// The peer sent more messages than allowed.
    Throttled,
    /// BeginString, identity, SendingTime or MsgSeqNum made the message unusable.
    ProtocolViolation,
    /// The peer does not read: the transmit buffer is full.
    PeerTooSlow,
    /// The store failed.
    StoreFailed,
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DisconnectReason::LogoutComplete => "our Logout was answered",
            DisconnectReason::PeerLogout => "the peer logged out",
            DisconnectReason::LogonTimeout => "no Logon came in time",
            DisconnectReason::LogonRefused => "the Logon was refused",
            DisconnectReason::LogoutTimeout => "our Logout was not answered in time",
            DisconnectReason::HeartbeatTimeout => {
                "nothing came for too long, measured in heartbeat intervals (2.4 unless configured)"
            }
            DisconnectReason::SequenceTooLow => {
                "a MsgSeqNum (34) was too low: one side has begun its numbers anew, the other has not"
            }
            DisconnectReason::ResendTimeout => "missing messages were asked for three times in vain",
            DisconnectReason::ResendLoop => "the peer asked for the same messages again and again",
            DisconnectReason::Throttled => "the peer sent more messages than allowed",
            DisconnectReason::ProtocolViolation => {
                "BeginString, CompIDs, SendingTime or MsgSeqNum of a message made it unusable"
            }
            DisconnectReason::PeerTooSlow => "the peer does not read what it is sent",
            DisconnectReason::StoreFailed => "the store of sent messages failed",
        })
    }
}

/// What a session tells its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A Logon that is right in form, where [`SessionConfig::asks_about_logons`]: [`Session::logon_request`]
    /// has it. Answer by [`Session::accept_logon`] or [`Session::refuse_logon`] within the logon time-out,
    /// now or later; what else the peer sends waits meanwhile.
    LogonRequested {
        /// The peer's SenderCompID.
        peer: CompId,
    },
    /// Logged on.
    LoggedOn {
        /// The peer's SenderCompID.
        peer: CompId,
        /// HeartBtInt in force, seconds.
        heartbeat_s: u32,
        /// Both sequence numbers were reset, for whatever reason, since the last logon.
        reset: bool,
    },
    /// An application message, in sequence, once: [`Session::message`] has it until the next call of
    /// [`Session::poll_event`]. One that the application does not know it answers by [`Session::refuse`].
    Message {
        /// Its sequence number.
        seq: SeqNo,
        /// Sent before under this number (43=Y).
        poss_dup: bool,
        /// May have been sent under another number (97=Y).
        poss_resend: bool,
        /// SendingTime (52).
        sending_time: Nanos,
    },
    /// A session message that was taken, where [`SessionConfig::tells_session_messages`]:
    /// [`Session::message`] has it until the next call of [`Session::poll_event`]. What it led to has been
    /// told before, but for the end of the session.
    Admin {
        /// Its sequence number.
        seq: SeqNo,
    },
    /// Messages `[expected, received)` are missing and have been requested.
    Gap {
        /// The first that is missing.
        expected: SeqNo,
        /// The one that showed it.
        received: SeqNo,
    },
    /// The peer rejected a message of ours (35=3).
    Rejected {
        /// Which (RefSeqNum).
        ref_seq: SeqNo,
        /// The field, 0 when not said (RefTagID).
        ref_tag: u32,
        /// Why (SessionRejectReason, any number), `None` when not said.
        reason: Option<u16>,
        /// Text (58).
        text: Reason,
    },
    /// The peer asked for messages that the store no longer has: their numbers went out as gap fills.
    /// Messages of the session itself, which are never kept, may be among them.
    NotKept {
        /// The lowest of the numbers.
        first: SeqNo,
        /// The highest.
        last: SeqNo,
        /// How many.
        count: u64,
    },
    /// Cancel what is open at or from this peer ([`SessionConfig::cancel_on`]): its connection was lost, and
    /// it did not log on again in time.
    CancelOrders {
        /// The peer.
        peer: CompId,
    },
    /// Transmit what is left, close the transport, call [`Session::handle_disconnected`].
    Disconnect {
        /// Why.
        reason: DisconnectReason,
        /// The text of the Logout sent or received.
        text: Reason,
    },
}

/// Why a message was not sent. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Not logged on.
    NotLoggedOn,
    /// The transmit buffer has no room, or (for [`Session::reserve`]) is not empty: drain
    /// [`Session::poll_transmit`] first.
    Backlog,
    /// A required text is empty, or the message is longer than the receive buffer's size.
    NotEncodable,
    /// The message is longer than the peer takes (MaxMessageSize of its Logon).
    TooLong,
    /// The configured rate is used up ([`SessionConfig::throttle_out`]).
    Throttled {
        /// When the next message is within it.
        until: Nanos,
    },
    /// The store refused it.
    StoreFailed,
}
