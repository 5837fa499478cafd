//! The versions of FIX and what differs between them at the session layer.

use crate::time::Precision;

/// A version of FIX. From 5.0 on the session layer is FIXT 1.1, whatever the application version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Version {
    /// FIX 4.0.
    Fix40,
    /// FIX 4.1.
    Fix41,
    /// FIX 4.2.
    Fix42,
    /// FIX 4.3.
    Fix43,
    /// FIX 4.4.
    #[default]
    Fix44,
    /// FIX 5.0 over FIXT 1.1.
    Fix50,
    /// FIX 5.0 SP1 over FIXT 1.1.
    Fix50Sp1,
    /// FIX 5.0 SP2 over FIXT 1.1.
    Fix50Sp2,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 8] = [
        Version::Fix40,
        Version::Fix41,
        Version::Fix42,
        Version::Fix43,
        Version::Fix44,
        Version::Fix50,
        Version::Fix50Sp1,
        Version::Fix50Sp2,
    ];

    /// BeginString (8).
    pub const fn begin_string(self) -> &'static [u8] {
        match self {
            Version::Fix40 => b"FIX.4.0",
            Version::Fix41 => b"FIX.4.1",
            Version::Fix42 => b"FIX.4.2",
            Version::Fix43 => b"FIX.4.3",
            Version::Fix44 => b"FIX.4.4",
            Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2 => b"FIXT.1.1",
        }
    }

    /// ApplVerID (1128) and DefaultApplVerID (1137) of a version over FIXT.
    pub const fn appl_ver_id(self) -> Option<u8> {
        match self {
            Version::Fix50 => Some(b'7'),
            Version::Fix50Sp1 => Some(b'8'),
            Version::Fix50Sp2 => Some(b'9'),
            _ => None,
        }
    }

    /// The name of its data dictionary, and in configurations: `FIX.4.2`, `FIX.5.0SP2`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Fix40 => "FIX.4.0",
            Version::Fix41 => "FIX.4.1",
            Version::Fix42 => "FIX.4.2",
            Version::Fix43 => "FIX.4.3",
            Version::Fix44 => "FIX.4.4",
            Version::Fix50 => "FIX.5.0",
            Version::Fix50Sp1 => "FIX.5.0SP1",
            Version::Fix50Sp2 => "FIX.5.0SP2",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|v| v.name() == name)
    }

    /// Whether the session layer is FIXT 1.1.
    pub const fn is_fixt(self) -> bool {
        self.appl_ver_id().is_some()
    }

    /// Digits of SendingTime when nothing else is configured: milliseconds came with FIX 4.2.
    pub const fn precision(self) -> Precision {
        match self {
            Version::Fix40 | Version::Fix41 => Precision::Seconds,
            _ => Precision::Millis,
        }
    }

    /// EndSeqNo (16) that asks for everything that follows.
    pub(crate) const fn resend_to_end(self) -> u64 {
        match self {
            Version::Fix40 | Version::Fix41 => 999_999,
            _ => 0,
        }
    }

    /// Whether a Reject names tag, type and reason in fields of their own, which came with FIX 4.2.
    pub(crate) const fn rejects_in_fields(self) -> bool {
        !matches!(self, Version::Fix40 | Version::Fix41)
    }

    /// The highest SessionRejectReason (373) that the version knows.
    pub(crate) const fn highest_reject_reason(self) -> u8 {
        match self {
            Version::Fix42 => 11,
            Version::Fix43 => 17,
            _ => u8::MAX,
        }
    }

    /// Whether there are location ids (142 to 145) and ResetSeqNumFlag (141), which came with FIX 4.1.
    pub(crate) const fn is_since_41(self) -> bool {
        !matches!(self, Version::Fix40)
    }
}
