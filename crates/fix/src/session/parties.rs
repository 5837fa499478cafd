//! Who sends and to whom, as every message says it: written once, and copied from then on.

use crate::config::SubIds;
use crate::encode::{Encoder, Prepared};
use crate::tag;
use crate::text::CompId;
use crate::time::Stamp;
use tickwire_market::Nanos;
use tickwire_persist::{Bytes, Damaged, Persist, StateReader};

/// The parties of a session.
#[derive(Debug)]
pub(super) struct Parties {
    sender: CompId,
    peer: CompId,
    subs: SubIds,
    /// The fields before SendingTime and those behind it; `None` where they are too long, or nobody is known
    /// yet.
    fields: Option<[Prepared; 2]>,
}

impl Parties {
    /// As the configuration says; an empty peer is not known yet.
    pub(super) fn new(sender: CompId, peer: CompId, subs: SubIds) -> Parties {
        let mut parties = Parties {
            sender,
            peer,
            subs,
            fields: None,
        };
        parties.prepare();
        parties
    }

    /// The peer; empty while nobody is known.
    pub(super) fn peer(&self) -> CompId {
        self.peer
    }

    /// It is this one from now on.
    pub(super) fn set_peer(&mut self, peer: CompId) {
        self.peer = peer;
        self.prepare();
    }

    fn prepare(&mut self) {
        let ours = Prepared::of(|e| self.put_ours(e));
        let theirs = Prepared::of(|e| self.put_theirs(e));
        self.fields = ours.zip(theirs).map(|(ours, theirs)| [ours, theirs]);
    }

    /// The header's fields behind MsgSeqNum.
    #[inline(always)]
    pub(super) fn put(&self, e: &mut Encoder<'_>, stamp: &mut Stamp, now: Nanos) {
        match &self.fields {
            Some([ours, theirs]) => {
                e.prepared(ours);
                e.timestamp(tag::SENDING_TIME, stamp, now);
                e.prepared(theirs);
            }
            None => self.put_each(e, stamp, now),
        }
    }

    #[cold]
    fn put_each(&self, e: &mut Encoder<'_>, stamp: &mut Stamp, now: Nanos) {
        self.put_ours(e);
        e.timestamp(tag::SENDING_TIME, stamp, now);
        self.put_theirs(e);
    }

    /// The fields before SendingTime.
    pub(super) fn put_ours(&self, e: &mut Encoder<'_>) {
        e.text(tag::SENDER_COMP_ID, self.sender.as_bytes());
        e.text_if(tag::SENDER_SUB_ID, self.subs.sender_sub.as_bytes());
    }

    /// The fields behind SendingTime.
    pub(super) fn put_theirs(&self, e: &mut Encoder<'_>) {
        e.text(tag::TARGET_COMP_ID, self.peer.as_bytes());
        e.text_if(tag::TARGET_SUB_ID, self.subs.target_sub.as_bytes());
        e.text_if(tag::SENDER_LOCATION_ID, self.subs.sender_location.as_bytes());
        e.text_if(tag::TARGET_LOCATION_ID, self.subs.target_location.as_bytes());
    }
}

// The prepared fields are made again.
impl Persist for Parties {
    fn save(&self, out: &mut Bytes) {
        self.sender.save(out);
        self.peer.save(out);
        self.subs.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.sender.load(from)?;
        self.peer.load(from)?;
        self.subs.load(from)?;
        self.prepare();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Version;
    use alloc::vec::Vec;

    fn id(length: usize) -> CompId {
        CompId::new(&b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ"[..length]).unwrap_or_default()
    }

    fn message(put: impl FnOnce(&mut Encoder<'_>, &mut Stamp)) -> Option<Vec<u8>> {
        let (mut buffer, mut stamp) = ([0; 512], Stamp::new(Default::default()));
        let mut e = Encoder::new(&mut buffer, Version::Fix44);
        e.text(tag::MSG_TYPE, b"D");
        put(&mut e, &mut stamp);
        e.finish().ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn what_is_copied_is_what_each_field_says_whoever_the_parties_are() {
        let now = Nanos(1_700_000_000_123_000_000);
        for (sender, peer, sub, location) in [
            (1, 1, 0, 0),
            (6, 8, 0, 0),
            (20, 20, 5, 7),
            (31, 31, 31, 31),
            (6, 0, 0, 0),
        ] {
            let subs = SubIds {
                sender_sub: id(sub),
                target_sub: id(sub),
                sender_location: id(location),
                target_location: id(location),
            };
            let mut parties = Parties::new(id(sender), id(peer), subs);
            let copied = |parties: &Parties| message(|e, stamp| parties.put(e, stamp, now));
            let each = |parties: &Parties| message(|e, stamp| parties.put_each(e, stamp, now));
            assert_eq!(copied(&parties), each(&parties), "{sender} {peer} {sub}");
            assert_eq!(
                copied(&parties).is_some(),
                peer > 0,
                "nobody is addressed by name"
            );
            let before = each(&parties);
            parties.set_peer(id(9));
            assert!(copied(&parties).is_some() && copied(&parties) == each(&parties));
            assert_ne!(copied(&parties), before);
            // As a snapshot has them.
            let mut saved = Vec::new();
            parties.save(&mut saved);
            let mut again = Parties::new(id(sender), id(peer), subs);
            assert_eq!(again.load(&mut StateReader::new(&saved)), Ok(()));
            assert_eq!(copied(&again), copied(&parties));
        }
    }
}
