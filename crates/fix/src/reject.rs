//! Why a message is rejected: SessionRejectReason (373) and BusinessRejectReason (380). FIX 4.4 with errata 20030618,
//! volume 2, "Reject", and volume 6.

/// SessionRejectReason (373).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum SessionRejectReason {
    /// A tag that is not a number.
    InvalidTagNumber = 0,
    /// A required field is not there.
    RequiredTagMissing = 1,
    /// `tag=` and nothing after it.
    TagWithoutValue = 4,
    /// A value outside the range or list of the field.
    IncorrectValue = 5,
    /// A value that is not of the field's type.
    IncorrectFormat = 6,
    /// SenderCompID or TargetCompID is not the session's.
    CompIdProblem = 9,
    /// SendingTime too far from our clock, or before OrigSendingTime.
    SendingTimeAccuracy = 10,
    /// A MsgType that does not exist.
    InvalidMsgType = 11,
    /// A field twice.
    TagTwice = 13,
    /// Anything else.
    Other = 99,
}

impl SessionRejectReason {
    /// The text sent along, as QuickFIX words it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::IncorrectValue => "Value is incorrect (out of range) for this tag",
            Self::IncorrectFormat => "Incorrect data format for value",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::TagTwice => "Tag appears more than once",
            Self::Other => "Too many fields",
        }
    }
}

/// What is wrong with a message that is otherwise whole: answered with a Reject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// The reason.
    pub reason: SessionRejectReason,
    /// The field it is about, 0 when none.
    pub tag: u32,
}

impl Fault {
    /// A required field is missing.
    pub const fn missing(tag: u32) -> Fault {
        Fault {
            reason: SessionRejectReason::RequiredTagMissing,
            tag,
        }
    }

    /// A value is not of its type.
    pub const fn format(tag: u32) -> Fault {
        Fault {
            reason: SessionRejectReason::IncorrectFormat,
            tag,
        }
    }

    /// A value is out of range.
    pub const fn value(tag: u32) -> Fault {
        Fault {
            reason: SessionRejectReason::IncorrectValue,
            tag,
        }
    }
}
