//! What a [`MessageStore`](crate::MessageStore) forgets, kept by somebody who has more room: a file.

use alloc::vec::Vec;

use tickwire_market::SeqNo;
use tickwire_persist::Persist;

/// Keeps every message of a channel beyond what its store has room for. The store hands it each message as it
/// is numbered, and asks it only for those that it has forgotten itself: messages of live packets never come
/// from here.
///
/// What it cannot keep (a full disk) it counts and goes on without; such messages are then answered for as
/// the venue answers for those that it has no more.
///
/// Its state is where it stands, not the messages: loaded, it goes on behind those that it had then.
pub trait History: Persist + Send {
    /// Takes a message. Numbers ascend, without holes. It must not wait: bytes are brought to where they stay
    /// by [`History::write`].
    fn keep(&mut self, seq: SeqNo, message: &[u8]);

    /// The first message from `seq` on that it has; `None` if there is none.
    fn kept_from(&self, seq: SeqNo) -> Option<SeqNo>;

    /// A message, `None` if it has not got it.
    fn get(&self, seq: SeqNo) -> Option<Vec<u8>>;

    /// Messages that it could not keep.
    fn lost(&self) -> u64;

    /// Forgets everything: the day begins again.
    fn clear(&mut self);

    /// Brings what has come together to where it stays. Called between two turns, when everything that was
    /// due has been sent.
    fn write(&mut self);
}
