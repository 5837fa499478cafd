//! Why a message is rejected: SessionRejectReason (373) and BusinessRejectReason (380). FIX 4.4 with errata
//! 20030618, volume 2, "Reject", and volume 6.

/// SessionRejectReason (373).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum SessionRejectReason {
    /// A tag that is not a number.
    InvalidTagNumber = 0,
    /// A required field is not there.
    RequiredTagMissing = 1,
    /// A field that is not of this message.
    TagNotDefined = 2,
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
    /// A header field in the body, or the like.
    TagOutOfOrder = 14,
    /// A field of a group's entry before the one that stands before it.
    GroupOutOfOrder = 15,
    /// Another number of entries than the count says.
    IncorrectNumInGroup = 16,
    /// A separator within a value that is no data.
    EmbeddedSoh = 17,
    /// Anything else.
    Other = 99,
}

impl SessionRejectReason {
    /// The text sent along, as QuickFIX words it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::InvalidTagNumber => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefined => "Tag not defined for this message type",
            Self::TagWithoutValue => "Tag specified without a value",
            Self::IncorrectValue => "Value is incorrect (out of range) for this tag",
            Self::IncorrectFormat => "Incorrect data format for value",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::TagTwice => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Out of order repeating group members",
            Self::IncorrectNumInGroup => "Incorrect NumInGroup count for repeating group",
            Self::EmbeddedSoh => "Embedded SOH",
            Self::Other => "Too many fields",
        }
    }
}

/// What is wrong with a message that is otherwise whole: answered with a Reject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// The reason.
    pub reason: SessionRejectReason,
    /// The field it is about, as the message has it (it may be no tag at all, such as -1); `None` for none.
    pub tag: Option<i32>,
}

impl Fault {
    /// About a field.
    pub const fn new(reason: SessionRejectReason, tag: u32) -> Fault {
        Fault {
            reason,
            tag: Some(tag as i32),
        }
    }

    /// About the message as a whole.
    pub const fn no_tag(reason: SessionRejectReason) -> Fault {
        Fault { reason, tag: None }
    }

    /// A required field is missing.
    pub const fn missing(tag: u32) -> Fault {
        Fault::new(SessionRejectReason::RequiredTagMissing, tag)
    }

    /// A value is not of its type.
    pub const fn format(tag: u32) -> Fault {
        Fault::new(SessionRejectReason::IncorrectFormat, tag)
    }

    /// A value is out of range.
    pub const fn value(tag: u32) -> Fault {
        Fault::new(SessionRejectReason::IncorrectValue, tag)
    }
}
