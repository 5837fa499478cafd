//! Layouts of session messages.
//!
//! iLink 3 SBE schema 8, version 9 (2025-11-04); `cargo xtask oracle` compares every row with an independent
//! dissector.

use crate::layout::le;
use crate::sbe::{Optional, Text, layouts};
use crate::wire_struct;

wire_struct! {
    /// Root block of `Negotiate500`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct NegotiateRoot = "Negotiate", 76 {
        /// HMAC-SHA256 of the canonical text.
        0 => hmac_signature: [u8; 32], "HMACSignature";
        32 => access_key_id: Text<20>, "AccessKeyID";
        /// Of the session: rises from week to week.
        52 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        60 => request_timestamp: le::U64, "RequestTimestamp";
        68 => session: Text<3>, "Session";
        71 => firm: Text<5>, "Firm";
    }
}

wire_struct! {
    /// Root block of `NegotiationResponse501`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct NegotiationResponseRoot = "NegotiationResponse", 33 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        8 => request_timestamp: le::U64, "RequestTimestamp";
        16 => secret_key_secure_id_expiration: Optional<le::U16>, "SecretKeySecureIDExpiration";
        /// 1 primary, 0 backup.
        18 => fault_tolerance_indicator: Optional<u8>, "FaultToleranceIndicator";
        /// 0 split, 1 out of order, 2 behind one of these.
        19 => split_msg: Optional<u8>, "SplitMsg";
        20 => previous_seq_no: le::U32, "PreviousSeqNo";
        24 => previous_uuid: le::U64, "PreviousUUID";
        32 => environment_indicator: Optional<u8>, "EnvironmentIndicator";
    }
}

wire_struct! {
    /// Root block of `NegotiationReject502`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct NegotiationRejectRoot = "NegotiationReject", 69 {
        0 => reason: Text<48>, "Reason";
        /// Of the session: rises from week to week.
        48 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        56 => request_timestamp: le::U64, "RequestTimestamp";
        64 => error_codes: le::U16, "ErrorCodes";
        /// 1 primary, 0 backup.
        66 => fault_tolerance_indicator: Optional<u8>, "FaultToleranceIndicator";
        /// 0 split, 1 out of order, 2 behind one of these.
        67 => split_msg: Optional<u8>, "SplitMsg";
        68 => environment_indicator: Optional<u8>, "EnvironmentIndicator";
    }
}

wire_struct! {
    /// Root block of `Establish503`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct EstablishRoot = "Establish", 132 {
        /// HMAC-SHA256 of the canonical text.
        0 => hmac_signature: [u8; 32], "HMACSignature";
        32 => access_key_id: Text<20>, "AccessKeyID";
        52 => trading_system_name: Text<30>, "TradingSystemName";
        82 => trading_system_version: Text<10>, "TradingSystemVersion";
        92 => trading_system_vendor: Text<10>, "TradingSystemVendor";
        /// Of the session: rises from week to week.
        102 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        110 => request_timestamp: le::U64, "RequestTimestamp";
        118 => next_seq_no: le::U32, "NextSeqNo";
        122 => session: Text<3>, "Session";
        125 => firm: Text<5>, "Firm";
        /// Milliseconds.
        130 => keep_alive_interval: le::U16, "KeepAliveInterval";
    }
}

wire_struct! {
    /// Root block of `EstablishmentAck504`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct EstablishmentAckRoot = "EstablishmentAck", 39 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        8 => request_timestamp: le::U64, "RequestTimestamp";
        16 => next_seq_no: le::U32, "NextSeqNo";
        20 => previous_seq_no: le::U32, "PreviousSeqNo";
        24 => previous_uuid: le::U64, "PreviousUUID";
        /// Milliseconds.
        32 => keep_alive_interval: le::U16, "KeepAliveInterval";
        34 => secret_key_secure_id_expiration: Optional<le::U16>, "SecretKeySecureIDExpiration";
        /// 1 primary, 0 backup.
        36 => fault_tolerance_indicator: Optional<u8>, "FaultToleranceIndicator";
        /// 0 split, 1 out of order, 2 behind one of these.
        37 => split_msg: Optional<u8>, "SplitMsg";
        38 => environment_indicator: Optional<u8>, "EnvironmentIndicator";
    }
}

wire_struct! {
    /// Root block of `EstablishmentReject505`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct EstablishmentRejectRoot = "EstablishmentReject", 73 {
        0 => reason: Text<48>, "Reason";
        /// Of the session: rises from week to week.
        48 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        56 => request_timestamp: le::U64, "RequestTimestamp";
        64 => next_seq_no: le::U32, "NextSeqNo";
        68 => error_codes: le::U16, "ErrorCodes";
        /// 1 primary, 0 backup.
        70 => fault_tolerance_indicator: Optional<u8>, "FaultToleranceIndicator";
        /// 0 split, 1 out of order, 2 behind one of these.
        71 => split_msg: Optional<u8>, "SplitMsg";
        72 => environment_indicator: Optional<u8>, "EnvironmentIndicator";
    }
}

wire_struct! {
    /// Root block of `Sequence506`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct SequenceRoot = "Sequence", 14 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        8 => next_seq_no: le::U32, "NextSeqNo";
        /// 1 primary, 0 backup.
        12 => fault_tolerance_indicator: Optional<u8>, "FaultToleranceIndicator";
        /// 1: nothing came for an interval.
        13 => keep_alive_interval_lapsed: u8, "KeepAliveIntervalLapsed";
    }
}

wire_struct! {
    /// Root block of `Terminate507`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct TerminateRoot = "Terminate", 67 {
        0 => reason: Text<48>, "Reason";
        /// Of the session: rises from week to week.
        48 => uuid: le::U64, "UUID";
        /// Nanoseconds since the Unix epoch, UTC.
        56 => request_timestamp: le::U64, "RequestTimestamp";
        64 => error_codes: le::U16, "ErrorCodes";
        /// 0 split, 1 out of order, 2 behind one of these.
        66 => split_msg: Optional<u8>, "SplitMsg";
    }
}

wire_struct! {
    /// Root block of `RetransmitRequest508`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct RetransmitRequestRoot = "RetransmitRequest", 30 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        8 => last_uuid: Optional<le::U64>, "LastUUID";
        /// Nanoseconds since the Unix epoch, UTC.
        16 => request_timestamp: le::U64, "RequestTimestamp";
        24 => from_seq_no: le::U32, "FromSeqNo";
        28 => msg_count: le::U16, "MsgCount";
    }
}

wire_struct! {
    /// Root block of `Retransmission509`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct RetransmissionRoot = "Retransmission", 31 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        8 => last_uuid: Optional<le::U64>, "LastUUID";
        /// Nanoseconds since the Unix epoch, UTC.
        16 => request_timestamp: le::U64, "RequestTimestamp";
        24 => from_seq_no: le::U32, "FromSeqNo";
        28 => msg_count: le::U16, "MsgCount";
        /// 0 split, 1 out of order, 2 behind one of these.
        30 => split_msg: Optional<u8>, "SplitMsg";
    }
}

wire_struct! {
    /// Root block of `RetransmitReject510`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct RetransmitRejectRoot = "RetransmitReject", 75 {
        0 => reason: Text<48>, "Reason";
        /// Of the session: rises from week to week.
        48 => uuid: le::U64, "UUID";
        56 => last_uuid: Optional<le::U64>, "LastUUID";
        /// Nanoseconds since the Unix epoch, UTC.
        64 => request_timestamp: le::U64, "RequestTimestamp";
        72 => error_codes: le::U16, "ErrorCodes";
        /// 0 split, 1 out of order, 2 behind one of these.
        74 => split_msg: Optional<u8>, "SplitMsg";
    }
}

wire_struct! {
    /// Root block of `NotApplied513`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct NotAppliedRoot = "NotApplied", 17 {
        /// Of the session: rises from week to week.
        0 => uuid: le::U64, "UUID";
        8 => from_seq_no: le::U32, "FromSeqNo";
        12 => msg_count: le::U32, "MsgCount";
        /// 0 split, 1 out of order, 2 behind one of these.
        16 => split_msg: Optional<u8>, "SplitMsg";
    }
}

layouts! {
    NegotiateRoot;
    NegotiationResponseRoot [9 => 32];
    NegotiationRejectRoot [9 => 68];
    EstablishRoot;
    EstablishmentAckRoot [9 => 38];
    EstablishmentRejectRoot [9 => 72];
    SequenceRoot;
    TerminateRoot;
    RetransmitRequestRoot;
    RetransmissionRoot;
    RetransmitRejectRoot;
    NotAppliedRoot;
}
