//! Mass quotes of one packet, on their way out together: a `send` of its own for each costs as much as
//! encoding ten of them.
//!
//! The first of a packet are the most exposed ones: they leave once they fill [`FIRST_BYTES`], so that they
//! do not wait for all the rest to be encoded; those behind them once they fill the buffer.
//! [`super::path::QuotePath`] lets go of what is left at the end of a packet and of every other call, so that
//! nothing waits for what may not come.

use std::io;

use tickwire_node::hot::OrderOut;

/// About three mass quotes of 15 entries.
const FIRST_BYTES: usize = 4 << 10;
/// About 25 of them: more than half of what 1,024 options need.
const HELD_BYTES_MAX: usize = 32 << 10;

/// A connection, and what is held before it.
pub struct Gathered<O> {
    pub to: O,
    /// The first failure of the connection; the loop ends on it. Whether what was sent arrived is not known
    /// then: the session is over, and with it every quote.
    pub failure: Option<io::Error>,
    bytes: Box<[u8]>,
    held: usize,
    /// So many bytes leave at once.
    enough: usize,
}

impl<O: OrderOut> Gathered<O> {
    pub fn new(to: O) -> Gathered<O> {
        Gathered {
            to,
            failure: None,
            bytes: vec![0; HELD_BYTES_MAX].into_boxed_slice(),
            held: 0,
            enough: FIRST_BYTES,
        }
    }

    /// Another connection, which has not failed; what is held was for the one before.
    pub fn replace(&mut self, to: O) {
        (self.to, self.failure, self.held, self.enough) = (to, None, 0, FIRST_BYTES);
    }

    /// Sends a message with those of the same packet. One that is larger than the buffer leaves alone.
    #[inline]
    pub fn gather(&mut self, message: &[u8]) {
        if self.held + message.len() > self.bytes.len() {
            self.send_held();
        }
        let Some(room) = self.bytes.get_mut(self.held..self.held + message.len()) else {
            return self.put(message);
        };
        room.copy_from_slice(message);
        self.held += message.len();
        if self.held >= self.enough {
            self.send_held();
        }
    }

    /// Sends a message now, behind what is held.
    #[inline]
    pub fn send(&mut self, message: &[u8]) {
        self.send_held();
        self.put(message);
    }

    /// Sends what is held; what comes next is of another packet.
    #[inline]
    pub fn let_go(&mut self) {
        self.send_held();
        self.enough = FIRST_BYTES;
    }

    #[inline]
    fn send_held(&mut self) {
        if self.held == 0 {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.enough = HELD_BYTES_MAX;
        if let Err(error) = self.to.send(&self.bytes[..held]) {
            self.failure.get_or_insert(error);
        }
    }

    #[inline]
    fn put(&mut self, message: &[u8]) {
        if let Err(error) = self.to.send(message) {
            self.failure.get_or_insert(error);
        }
    }

    /// Whether everything was sent.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was sent at once.
    #[derive(Default)]
    struct Sends(Vec<Vec<u8>>);

    impl OrderOut for Sends {
        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.push(bytes.to_vec());
            Ok(())
        }
    }

    fn sizes(gathered: &mut Gathered<Sends>) -> Vec<usize> {
        std::mem::take(&mut gathered.to.0).iter().map(Vec::len).collect()
    }

    #[test]
    fn the_first_messages_of_a_packet_leave_early_and_the_rest_together() {
        let mut gathered = Gathered::new(Sends::default());
        for _ in 0..2 {
            (0..16).for_each(|n| gathered.gather(&[n; 1_400]));
            assert_eq!(sizes(&mut gathered), [3 * 1_400]);
            gathered.let_go();
            assert_eq!(sizes(&mut gathered), [13 * 1_400]);
        }
        gathered.let_go();
        assert!(sizes(&mut gathered).is_empty(), "nothing is sent twice");
        gathered.gather(&[1; 100]);
        gathered.let_go();
        assert_eq!(sizes(&mut gathered), [100]);
    }

    #[test]
    fn what_is_sent_now_stays_behind_what_was_held() {
        let mut gathered = Gathered::new(Sends::default());
        gathered.gather(b"quote");
        gathered.send(b"cancel");
        gathered.let_go();
        assert_eq!(gathered.to.0, [b"quote".to_vec(), b"cancel".to_vec()]);
    }

    #[test]
    fn a_message_that_does_not_fit_is_sent_alone_and_in_order() {
        let mut gathered = Gathered::new(Sends::default());
        (0..16).for_each(|n| gathered.gather(&[n; 1_400]));
        gathered.gather(&[9; HELD_BYTES_MAX - 1_000]);
        gathered.gather(&[8; HELD_BYTES_MAX + 1]);
        assert_eq!(
            sizes(&mut gathered),
            [3 * 1_400, 13 * 1_400, HELD_BYTES_MAX - 1_000, HELD_BYTES_MAX + 1]
        );
        gathered.let_go();
        assert!(gathered.is_empty());
    }

    #[test]
    fn another_connection_does_not_get_what_was_held_for_the_one_before() {
        let mut gathered = Gathered::new(Sends::default());
        gathered.gather(b"quote");
        gathered.replace(Sends::default());
        gathered.let_go();
        assert!(gathered.to.0.is_empty());
    }
}
