//! Whoever reaches a server's port may be anybody: what one address is answered is bounded, and a connection
//! that says nothing keeps nobody out.

use std::net::{IpAddr, Ipv4Addr};

use tickwire_market::Nanos;

/// A connection that has said nothing for so long gives its place to the next one when there is no other.
/// Every client here speaks first, so that it is longer than a network takes.
pub const SILENT_NS: u64 = 50 * Nanos::MILLI;

/// Where the next connection goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seat {
    /// This place is free.
    Free(usize),
    /// Who has this place has said nothing for the longest time: it is closed first.
    Silent(usize),
    /// There is none: it is closed at once.
    None,
}

/// Finds a place among these: who has it came when, and whether it has said anything; `None`: nobody has it.
pub fn seat(places: impl Iterator<Item = (usize, Option<(Nanos, bool)>)>, now: Nanos) -> Seat {
    let mut silent: Option<(Nanos, usize)> = None;
    for (at, place) in places {
        match place {
            None => return Seat::Free(at),
            Some((_, true)) => {}
            Some((came, false)) if now.since(came) < SILENT_NS => {}
            Some((came, false)) if silent.is_some_and(|(first, _)| first <= came) => {}
            Some((came, false)) => silent = Some((came, at)),
        }
    }
    silent.map_or(Seat::None, |(_, at)| Seat::Silent(at))
}

/// Addresses that are remembered; beyond them the one that was quiet longest is forgotten.
const ADDRESSES_MAX: usize = 1024;
/// Who is over the limit is said again after this time.
const SAID_NS: u64 = 60 * Nanos::SECOND;

/// What one address may still be sent.
#[derive(Clone, Copy, Debug)]
struct Account {
    address: IpAddr,
    /// Bytes left, as of `at`.
    left: u64,
    at: Nanos,
    said: Option<Nanos>,
}

/// Bytes of answers by datagram a second and address: a request of 20 bytes asks for an answer of 1,400, and
/// the address that it gives as its own may be somebody else's.
#[derive(Debug)]
pub struct AnswerLimit {
    /// Bytes a second and at once; 0: no limit.
    per_s: u64,
    accounts: Vec<Account>,
    withheld: u64,
}

/// Whether an answer may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowed {
    /// It may be sent.
    Yes,
    /// It is over the limit, and that is to be said.
    NoAndSay,
    /// It is over the limit, and that was said already.
    No,
}

impl AnswerLimit {
    /// Nobody has been answered yet. `bytes_per_s`: bytes a second, and at once, of each address; 0: no
    /// limit.
    pub fn new(bytes_per_s: u64) -> AnswerLimit {
        AnswerLimit {
            per_s: bytes_per_s,
            accounts: Vec::new(),
            withheld: 0,
        }
    }

    /// What it was made with; 0: no limit.
    pub fn bytes_per_s(&self) -> u64 {
        self.per_s
    }

    /// Answers that were not sent.
    pub fn withheld(&self) -> u64 {
        self.withheld
    }

    /// Whether this address may be sent so many bytes now. Nobody is at an address of many, and no answer
    /// goes there.
    pub fn take(&mut self, now: Nanos, to: IpAddr, bytes: usize) -> Allowed {
        if is_of_many(to) {
            self.withheld += 1;
            return Allowed::No;
        }
        if self.per_s == 0 {
            return Allowed::Yes;
        }
        let at = self.account(now, to);
        let account = &mut self.accounts[at];
        let gained = u128::from(now.since(account.at)) * u128::from(self.per_s) / u128::from(Nanos::SECOND);
        let left = u128::from(account.left) + gained;
        account.left = u64::try_from(left).unwrap_or(u64::MAX).min(self.per_s);
        account.at = account.at.max(now);
        if let Some(left) = account.left.checked_sub(bytes as u64) {
            account.left = left;
            return Allowed::Yes;
        }
        self.withheld += 1;
        if account.said.is_some_and(|said| now.since(said) < SAID_NS) {
            return Allowed::No;
        }
        account.said = Some(now);
        Allowed::NoAndSay
    }

    fn account(&mut self, now: Nanos, address: IpAddr) -> usize {
        if let Some(at) = self.accounts.iter().position(|a| a.address == address) {
            return at;
        }
        let new = Account {
            address,
            left: self.per_s,
            at: now,
            said: None,
        };
        if self.accounts.len() < ADDRESSES_MAX {
            self.accounts.push(new);
            return self.accounts.len() - 1;
        }
        let oldest = (0..self.accounts.len())
            .min_by_key(|at| self.accounts[*at].at)
            .unwrap_or(0);
        self.accounts[oldest] = new;
        oldest
    }
}

/// Multicast, broadcast, or no address at all.
fn is_of_many(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_multicast() || v4 == Ipv4Addr::BROADCAST || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

    #[test]
    fn who_says_nothing_longest_gives_way_and_who_spoke_never() {
        let at = |ms: u64| START.after(ms * Nanos::MILLI);
        let find = |places: &[Option<(Nanos, bool)>], now| seat(places.iter().copied().enumerate(), now);
        assert_eq!(find(&[Some((at(0), true)), None], at(1)), Seat::Free(1));
        let silent = [Some((at(0), true)), Some((at(9), false)), Some((at(5), false))];
        assert_eq!(find(&silent, at(40)), Seat::None, "a network takes as long");
        assert_eq!(find(&silent, at(60)), Seat::Silent(2));
        assert_eq!(find(&[Some((at(0), true)); 4], at(1_000_000)), Seat::None);
    }

    #[test]
    fn an_address_is_answered_at_the_rate_and_others_as_if_it_were_not_there() {
        let (flood, honest) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut limit = AnswerLimit::new(100_000);
        let (mut sent, mut said) = (0, 0);
        // Ten seconds of ten thousand requests a second.
        for n in 0..100_000_u64 {
            let now = START.after(n * 100 * Nanos::MICRO);
            match limit.take(now, flood, 1_400) {
                Allowed::Yes => sent += 1_400,
                Allowed::NoAndSay => said += 1,
                Allowed::No => {}
            }
            if n % 1_000 == 0 {
                assert_eq!(limit.take(now, honest, 1_400), Allowed::Yes);
            }
        }
        assert!((1_000_000..=1_100_000).contains(&sent), "{sent}");
        assert_eq!(said, 1);
        assert_eq!(limit.withheld(), 100_000 - sent / 1_400);
    }

    #[test]
    fn addresses_of_many_and_floods_of_addresses_cost_nothing() {
        let mut limit = AnswerLimit::new(0);
        for many in [[224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
            assert_eq!(limit.take(START, many.into(), 1), Allowed::No);
        }
        let mut limit = AnswerLimit::new(1_000);
        for n in 0..100_000_u32 {
            let address = IpAddr::from((0x0A00_0000 + n).to_be_bytes());
            assert_eq!(limit.take(START.after(n.into()), address, 900), Allowed::Yes);
        }
        assert_eq!(limit.accounts.len(), ADDRESSES_MAX);
    }
}
