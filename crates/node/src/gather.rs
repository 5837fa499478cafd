//! Mass quotes of one packet, on their way out together: a `send` of its own for each costs as much as
//! encoding ten of them.
//!
//! The first of a packet are the most exposed ones: they leave once they fill [`FIRST_BYTES`], so that they
//! do not wait for all the rest to be encoded; those behind them once they fill the buffer. What is left goes
//! at the end of a packet and of every other call that may quote ([`OrderSession::let_go`]), so that nothing
//! waits for what may not come. What can be done after that ([`OrderOut::settle`], by which segments that
//! left past the kernel are booked) is done then, once for all of a packet.

use std::io;

use crate::hot::{OrderOut, OrderSession};

/// About three mass quotes of 15 entries.
const FIRST_BYTES: usize = 4 << 10;
/// About 25 of them: more than half of what 1,024 options need.
const HELD_BYTES_MAX: usize = 32 << 10;

/// What is held before a connection.
pub(crate) struct Gathered {
    bytes: Box<[u8]>,
    held: usize,
    /// So many bytes leave at once.
    enough: usize,
    /// Something has left, and what can be done afterwards is to be done.
    is_unsettled: bool,
    /// Messages that were gathered, and their bytes.
    in_all: [u64; 2],
}

impl Gathered {
    pub(crate) fn new() -> Gathered {
        Gathered {
            bytes: vec![0; HELD_BYTES_MAX].into_boxed_slice(),
            held: 0,
            enough: FIRST_BYTES,
            is_unsettled: false,
            in_all: [0; 2],
        }
    }

    /// Where the next message goes; `None` if it does not fit behind what is held.
    #[inline(always)]
    fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.held..self.held + bytes)
    }
}

impl<O: OrderOut> OrderSession<O> {
    /// Sends a message with those of the same packet. One that is larger than the buffer leaves alone.
    #[inline]
    pub fn gather(&mut self, message: &[u8]) {
        let gathered = &mut self.gathered;
        gathered.in_all[0] += 1;
        gathered.in_all[1] += message.len() as u64;
        if gathered.held + message.len() > gathered.bytes.len() {
            self.send_held();
        }
        let Some(room) = self.gathered.room(message.len()) else {
            return self.put(message);
        };
        room.copy_from_slice(message);
        let gathered = &mut self.gathered;
        gathered.held += message.len();
        if gathered.held >= gathered.enough {
            self.send_held();
        }
    }

    /// Does with a message that is rehearsed what [`OrderSession::gather`] does with one, but that it counts
    /// for nothing: it lies where the next one will.
    pub(crate) fn rehearse_gathering(&mut self, message: &[u8]) {
        if let Some(room) = self.gathered.room(message.len()) {
            room.copy_from_slice(message);
        }
        self.out.rehearse(message);
    }

    /// Sends a message now, behind what is held.
    #[inline(always)]
    pub fn send(&mut self, message: &[u8]) {
        if self.gathered.held > 0 {
            self.send_held();
        }
        self.put(message);
    }

    /// Sends what is held, and settles everything that has left; what comes next is of another packet.
    #[inline]
    pub fn let_go(&mut self) {
        self.launch_held();
        if self.gathered.is_unsettled {
            self.settle_held();
        }
    }

    /// Sends what is held, for who sends more at once and settles behind it; what comes next is of another
    /// packet.
    #[inline]
    pub(crate) fn launch_held(&mut self) {
        if self.gathered.held > 0 {
            self.send_held();
        }
        self.gathered.enough = FIRST_BYTES;
    }

    /// Another connection, which has not failed; what is held was for the one before.
    pub fn replace(&mut self, out: O) {
        self.out = out;
        self.drop_held();
    }

    /// The connection is gone: what is held was for it, and its failure is known.
    pub fn drop_held(&mut self) {
        self.failure = None;
        (self.gathered.held, self.gathered.enough) = (0, FIRST_BYTES);
        self.gathered.is_unsettled = false;
    }

    /// Messages that were sent by [`OrderSession::gather`], and their bytes.
    #[inline]
    pub fn gathered_in_all(&self) -> [u64; 2] {
        self.gathered.in_all
    }

    /// Whether everything was handed to the connection.
    pub fn holds_nothing(&self) -> bool {
        self.gathered.held == 0
    }

    #[inline(never)]
    fn send_held(&mut self) {
        let held = std::mem::take(&mut self.gathered.held);
        self.gathered.enough = HELD_BYTES_MAX;
        if held == 0 {
            return;
        }
        self.gathered.is_unsettled = true;
        if let Err(error) = self.out.launch(&self.gathered.bytes[..held]) {
            self.failed(error);
        }
    }

    #[inline(never)]
    fn settle_held(&mut self) {
        if let Err(error) = self.settle() {
            self.failed(error);
        }
    }

    /// Does what is left of everything that was launched.
    #[inline]
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.gathered.is_unsettled = false;
        self.out.settle()
    }

    /// Sends a message, which settles what has left before, too.
    #[inline(always)]
    fn put(&mut self, message: &[u8]) {
        self.gathered.is_unsettled = false;
        if let Err(error) = self.out.send(message) {
            self.failed(error);
        }
    }

    #[cold]
    fn failed(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::session_in_memory;
    use tickwire_fix::{CompId, Role, SessionConfig};

    /// What was sent at once, and how often that was settled; what left since.
    #[derive(Default)]
    struct Sends(Vec<Vec<u8>>, u32, u32);

    impl OrderOut for Sends {
        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.launch(bytes)?;
            self.settle()
        }

        fn launch(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.push(bytes.to_vec());
            self.2 += 1;
            Ok(())
        }

        fn settle(&mut self) -> io::Result<()> {
            self.1 += 1;
            self.2 = 0;
            Ok(())
        }
    }

    fn session() -> OrderSession<Sends> {
        let config = SessionConfig::new(Role::Initiator, CompId::EMPTY, CompId::EMPTY);
        OrderSession::new(session_in_memory(config), Sends::default())
    }

    fn sizes(gathered: &mut OrderSession<Sends>) -> Vec<usize> {
        std::mem::take(&mut gathered.out.0).iter().map(Vec::len).collect()
    }

    #[test]
    fn the_first_messages_of_a_packet_leave_early_and_the_rest_together() {
        let mut gathered = session();
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

    /// Of what is rehearsed nothing is sent, whatever is held before it and comes behind it.
    #[test]
    fn a_message_that_is_rehearsed_stays_where_it_is() {
        let mut gathered = session();
        gathered.rehearse_gathering(&[9; 1_400]);
        gathered.rehearse_gathering(&[9; HELD_BYTES_MAX + 1]);
        gathered.let_go();
        gathered.gather(&[1; 100]);
        gathered.rehearse_gathering(&[9; 1_400]);
        gathered.gather(&[2; 100]);
        gathered.rehearse_gathering(&[9; HELD_BYTES_MAX]);
        gathered.let_go();
        assert_eq!(gathered.out.0, [[[1; 100], [2; 100]].concat()]);
        assert_eq!((gathered.gathered_in_all(), gathered.out.1), ([2, 200], 1));
    }

    #[test]
    fn a_burst_is_settled_once_when_all_of_it_has_left() {
        let mut gathered = session();
        (0..60).for_each(|n| gathered.gather(&[n; 1_400]));
        assert_eq!((gathered.out.0.len(), gathered.out.1), (3, 0), "three have left");
        gathered.let_go();
        assert_eq!((gathered.out.0.len(), gathered.out.1, gathered.out.2), (4, 1, 0));
        gathered.let_go();
        assert_eq!(gathered.out.1, 1, "nothing has left since");
        // A message that is sent now settles what left before it.
        (0..8).for_each(|n| gathered.gather(&[n; 1_400]));
        gathered.send(b"cancel");
        assert_eq!((gathered.out.1, gathered.out.2), (2, 0));
        gathered.let_go();
        assert_eq!(gathered.out.1, 2);
    }

    #[test]
    fn what_is_sent_now_stays_behind_what_was_held() {
        let mut gathered = session();
        gathered.gather(b"quote");
        gathered.send(b"cancel");
        gathered.let_go();
        assert_eq!(gathered.out.0, [b"quote".to_vec(), b"cancel".to_vec()]);
    }

    #[test]
    fn what_is_sent_now_begins_no_other_packet() {
        let mut gathered = session();
        (0..3).for_each(|n| gathered.gather(&[n; 1_400]));
        gathered.send(b"cancel");
        (0..4).for_each(|n| gathered.gather(&[n; 1_400]));
        assert_eq!(sizes(&mut gathered), [3 * 1_400, 6], "the rest leaves together");
        gathered.let_go();
        assert_eq!(sizes(&mut gathered), [4 * 1_400]);
    }

    #[test]
    fn a_message_that_does_not_fit_is_sent_alone_and_in_order() {
        let mut gathered = session();
        (0..16).for_each(|n| gathered.gather(&[n; 1_400]));
        gathered.gather(&[9; HELD_BYTES_MAX - 1_000]);
        gathered.gather(&[8; HELD_BYTES_MAX + 1]);
        assert_eq!(
            sizes(&mut gathered),
            [3 * 1_400, 13 * 1_400, HELD_BYTES_MAX - 1_000, HELD_BYTES_MAX + 1]
        );
        gathered.let_go();
        assert!(gathered.holds_nothing());
    }

    #[test]
    fn another_connection_does_not_get_what_was_held_for_the_one_before() {
        let mut gathered = session();
        gathered.gather(b"quote");
        gathered.replace(Sends::default());
        gathered.let_go();
        assert!(gathered.out.0.is_empty());
    }
}
