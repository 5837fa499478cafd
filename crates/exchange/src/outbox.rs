//! Bytes that wait to be sent to a client, in order.

use alloc::vec::Vec;

use tickwire_persist::persist;

/// What was sent makes room when it is this much; at the latest when nothing waits.
const SENT_MAX: usize = 64 << 10;

/// See the module's description.
#[derive(Default, Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    pub(crate) fn with_capacity(capacity: usize) -> Outbox {
        Outbox {
            bytes: Vec::with_capacity(capacity),
            sent: 0,
        }
    }

    /// Forgets everything: another client.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// Bytes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Bytes that memory is held for: those that wait, and those before them that were sent.
    pub(crate) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Where to append.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        if self.sent > SENT_MAX {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.bytes
    }

    /// Takes as many bytes as fit in `buffer`; `None` if nothing waits.
    pub(crate) fn transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let length = self.waiting().min(buffer.len());
        if length == 0 {
            return None;
        }
        let bytes = &mut buffer[..length];
        bytes.copy_from_slice(&self.bytes[self.sent..self.sent + length]);
        self.sent += length;
        if self.is_empty() {
            self.clear();
        }
        Some(bytes)
    }
}

persist!(struct Outbox { bytes, sent });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_whatever_the_pieces_and_little_that_was_sent_is_held() {
        let mut outbox = Outbox::with_capacity(8);
        assert!(outbox.is_empty() && outbox.transmit(&mut [0; 4]).is_none());
        let (mut put, mut got) = (0_u32, Vec::new());
        for round in 0..3_000_usize {
            for _ in 0..round % 40 {
                outbox.tail().extend_from_slice(&put.to_le_bytes());
                put += 1;
            }
            let mut buffer = [0; 97];
            got.extend_from_slice(outbox.transmit(&mut buffer[..1 + round % 97]).unwrap_or_default());
            assert_eq!(got.len() + outbox.waiting(), put as usize * 4);
            assert!(outbox.held() <= outbox.waiting() + SENT_MAX + 97);
        }
        let mut buffer = [0; 1000];
        while let Some(bytes) = outbox.transmit(&mut buffer) {
            got.extend_from_slice(bytes);
        }
        assert!(outbox.is_empty() && outbox.held() == 0);
        assert!(
            (0..put).eq(got
                .chunks_exact(4)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap())))
        );
    }
}
