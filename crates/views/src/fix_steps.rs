//! How a FIX session's row in shared memory is read.

/// What the row says its protocol is.
pub const PROTOCOL: &str = "fix";

/// The steps between two stamps; the last is the whole way.
pub const STEPS: [&str; 5] = [
    "bytes in -> decoded",
    "decoded -> handed over",
    "handed over -> answered",
    "answered -> bytes out",
    "bytes in -> bytes out",
];

/// What a step is called where views name types of message; numbered from 1.
pub fn step_name(kind: u16) -> Option<&'static str> {
    STEPS.get(usize::from(kind).checked_sub(1)?).copied()
}
