//! A forger on line A: datagrams made from the venue's own, sent just before them.

use tickwire_market::Counter;

use crate::{Outcome, RigConfig};

/// Where a venue's datagrams have the number of their first message, and where their messages begin.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// The number's first byte and how many it has.
    pub at: (usize, usize),
    /// Its most significant byte is the first one.
    pub is_big_endian: bool,
    /// Where the messages begin.
    pub body: usize,
}

impl Numbers {
    /// MoldUDP64.
    pub const MOLDUDP64: Numbers = Numbers {
        at: (10, 8),
        is_big_endian: true,
        body: 20,
    };
    /// Cboe's sequenced units.
    pub const PITCH: Numbers = Numbers {
        at: (4, 4),
        is_big_endian: false,
        body: 8,
    };
    /// NYSE Pillar.
    pub const XDP: Numbers = Numbers {
        at: (4, 4),
        is_big_endian: false,
        body: 16,
    };
    /// NYSE OpenBook Ultra.
    pub const OPENBOOK: Numbers = Numbers {
        at: (4, 4),
        is_big_endian: true,
        body: 16,
    };
    /// CME MDP 3.0.
    pub const MDP3: Numbers = Numbers {
        at: (0, 4),
        is_big_endian: false,
        body: 12,
    };
    /// Moscow Exchange.
    pub const MOEX: Numbers = Numbers {
        at: (0, 4),
        is_big_endian: false,
        body: 4,
    };

    fn add(self, datagram: &mut [u8], by: u64) {
        let (at, len) = self.at;
        let Some(field) = datagram.get_mut(at..at + len) else {
            return;
        };
        let mut carry = by;
        let mut place = |byte: &mut u8| {
            carry += u64::from(*byte);
            *byte = carry as u8;
            carry >>= 8;
        };
        match self.is_big_endian {
            true => field.iter_mut().rev().for_each(&mut place),
            false => field.iter_mut().for_each(&mut place),
        }
    }
}

/// What is forged.
#[derive(Clone, Copy, Debug)]
pub enum Forgery {
    /// The same with a number so much further on.
    Ahead(u64),
    /// The same with another last byte.
    Content,
    /// The same with another first byte of the session's name (MoldUDP64).
    Session,
}

impl Forgery {
    /// A day with a forger, compared every millisecond: whatever is shown as live is right, all the time, and
    /// in the end too.
    #[must_use]
    pub fn day(self, numbers: Numbers) -> RigConfig {
        RigConfig {
            compare_every_ms: 1,
            forger: Some(Forger {
                numbers,
                forgery: self,
                // Each content in doubt costs a snapshot, and marks the channel until it is there.
                every: if let Forgery::Content = self { 997 } else { 97 },
            }),
            ..RigConfig::default()
        }
    }

    /// That such a day was what it is meant to be: the forger was heard, noticed, and did no harm that was
    /// not said.
    ///
    /// # Panics
    /// It was not.
    pub fn was_noticed<C>(self, outcome: &Outcome<C>) {
        let count = |counter| outcome.counters.get(counter);
        assert!(outcome.compared > 5, "{self:?}: {}", outcome.compared);
        match self {
            Forgery::Ahead(50_000_000) | Forgery::Session => {
                assert!(count(Counter::PacketsIgnored) > 5, "{self:?}");
                let untouched = [
                    Counter::Gaps,
                    Counter::MessagesLost,
                    Counter::Snapshots,
                    Counter::SessionChanges,
                ];
                assert_eq!(untouched.map(count), [0; 4], "{self:?}");
            }
            Forgery::Ahead(_) => assert!(count(Counter::NumbersRefuted) > 5, "{self:?}"),
            Forgery::Content => assert!(count(Counter::LinesDiverged) > 0, "{self:?}"),
        }
    }
}

/// A forger.
#[derive(Clone, Copy, Debug)]
pub struct Forger {
    /// The venue's form.
    pub numbers: Numbers,
    /// What he does.
    pub forgery: Forgery,
    /// To every so many datagrams of the live lines.
    pub every: u64,
}

impl Forger {
    /// What he sends before a live datagram, the `nth`.
    pub(crate) fn forge(&self, nth: u64, datagram: &[u8]) -> Option<Vec<u8>> {
        // Heartbeats have no content.
        if !nth.is_multiple_of(self.every) || datagram.len() <= self.numbers.body + 4 {
            return None;
        }
        let mut forged = datagram.to_vec();
        match self.forgery {
            Forgery::Ahead(by) => self.numbers.add(&mut forged, by),
            Forgery::Content => *forged.last_mut()? ^= 1,
            Forgery::Session => forged[0] ^= 1,
        }
        Some(forged)
    }
}
