//! Work that was offered and is not answered yet: each answer finds its offer once, what never comes back is
//! counted.

/// When a piece of work was intended and when it was sent, in whatever the caller counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The time its latency counts from ([`crate::Schedule::take`]).
    pub from: u64,
    /// When it was sent.
    pub sent: u64,
}

/// Why an answer is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unexpected {
    /// To a piece of work that was never offered.
    Unknown,
    /// To one that was answered before.
    Again,
    /// To one that had been given up: it came too late.
    Late,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Answered,
    GivenUp,
}

/// Offers by number, from 0. Allocates nothing after construction; holds as many as were announced, for all
/// of a repetition.
#[derive(Clone, Debug)]
pub struct Ledger {
    offers: Vec<(Offer, State)>,
    /// Everything below was answered or given up.
    settled: usize,
    open: usize,
    given_up: u64,
}

impl Ledger {
    /// Room for so many offers, touched now.
    pub fn new(capacity: usize) -> Ledger {
        let none = Offer { from: 1, sent: 1 };
        let mut offers = vec![(none, State::Open); capacity];
        offers.clear();
        Ledger {
            offers,
            settled: 0,
            open: 0,
            given_up: 0,
        }
    }

    /// Notes an offer; its number.
    ///
    /// # Panics
    /// Beyond the number of offers announced.
    #[inline]
    pub fn offer(&mut self, offer: Offer) -> u64 {
        assert!(
            self.offers.len() < self.offers.capacity(),
            "more offers than announced"
        );
        self.offers.push((offer, State::Open));
        self.open += 1;
        self.offers.len() as u64 - 1
    }

    /// Finds what an answer is to.
    ///
    /// # Errors
    /// [`Unexpected`] when there is no such offer, or not any more.
    #[inline]
    pub fn answer(&mut self, number: u64) -> Result<Offer, Unexpected> {
        let found = usize::try_from(number).ok().and_then(|i| self.offers.get_mut(i));
        let (offer, state) = found.ok_or(Unexpected::Unknown)?;
        match state {
            State::Open => {}
            State::Answered => return Err(Unexpected::Again),
            State::GivenUp => return Err(Unexpected::Late),
        }
        *state = State::Answered;
        let offer = *offer;
        self.open -= 1;
        self.settle();
        Ok(offer)
    }

    /// Gives up everything that was sent before `time`; how many.
    pub fn give_up_before(&mut self, time: u64) -> u64 {
        let mut many = 0;
        for (offer, state) in &mut self.offers[self.settled..] {
            if offer.sent >= time {
                break;
            }
            if *state == State::Open {
                *state = State::GivenUp;
                many += 1;
            }
        }
        self.open -= many as usize;
        self.given_up += many;
        self.settle();
        many
    }

    fn settle(&mut self) {
        while self
            .offers
            .get(self.settled)
            .is_some_and(|(_, state)| *state != State::Open)
        {
            self.settled += 1;
        }
    }

    /// How many were offered.
    pub fn offered(&self) -> u64 {
        self.offers.len() as u64
    }

    /// How many wait for their answers.
    #[inline]
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> Offer {
        Offer {
            from: time,
            sent: time + 1,
        }
    }

    #[test]
    fn an_answer_finds_its_offer_once() {
        let mut ledger = Ledger::new(3);
        assert_eq!(
            [ledger.offer(at(10)), ledger.offer(at(20)), ledger.offer(at(30))],
            [0, 1, 2]
        );
        assert_eq!(ledger.answer(1), Ok(at(20)));
        assert_eq!(ledger.answer(1), Err(Unexpected::Again));
        assert_eq!(ledger.answer(3), Err(Unexpected::Unknown));
        assert_eq!(ledger.answer(u64::MAX), Err(Unexpected::Unknown));
        assert_eq!((ledger.open(), ledger.offered()), (2, 3));
    }

    #[test]
    fn what_is_given_up_is_counted_and_its_answer_is_late() {
        let mut ledger = Ledger::new(3);
        for i in 1..=3 {
            ledger.offer(at(10 * i));
        }
        ledger.answer(1).expect("open");
        assert_eq!(ledger.give_up_before(31), 1);
        assert_eq!(ledger.answer(0), Err(Unexpected::Late));
        assert_eq!(ledger.give_up_before(31), 0);
        assert_eq!((ledger.open(), ledger.given_up()), (1, 1));
        assert_eq!(ledger.answer(2), Ok(at(30)));
    }
}
