//! A forger on line A: datagrams made from the venue's own, sent just before them.

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
