//! What the venue has of our quotes, asked while we trade: one QuoteStatusRequest (a) after the other, each
//! quoted instrument in its turn.
//!
//! An answer is compared where nothing about quotes left between the question and it: the venue answers in
//! the order of our messages, and what it said before the answer has been heard. One that differs, or does
//! not come, is said (`ALERT`), counted, and pulls every quote: what is live is then asked by the cancel's
//! confirmation. Of sessions of 4.4 and later, whose requests have an identifier (649); quotes that are
//! orders are known one by one from their reports.

use tickwire_market::{Nanos, Symbol};

/// An answer that takes longer is not coming.
const ANSWER_MAX_NS: u64 = 4 * Nanos::SECOND;
/// The least time between two questions.
const GAP_MIN_NS: u64 = 20 * Nanos::MILLI;

/// A question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// QuoteStatusReqID (649).
    pub number: u64,
    /// Which quote.
    pub quote: u16,
    /// Its instrument.
    pub symbol: Symbol,
    /// Messages about quotes and orders that had left before it.
    pub sent: [u64; 2],
    /// When it was asked.
    pub at: Nanos,
}

/// See the module's description. Without [`Reconciliation::start`] nothing is asked.
#[derive(Debug, Default)]
pub struct Reconciliation {
    gap_ns: u64,
    next_at: Nanos,
    place: usize,
    numbers: u64,
    asked: Option<Question>,
    /// Answers that were compared.
    pub compared: u64,
    /// Answers that differed, or did not come.
    pub differences: u64,
}

impl Reconciliation {
    /// Asks about each of so many quotes every `every_s` seconds, or as often as 50 questions a second allow;
    /// 0 never does.
    pub fn start(&mut self, now: Nanos, every_s: u32, quotes: usize) {
        let round_ns = u64::from(every_s) * Nanos::SECOND;
        self.gap_ns = match every_s {
            0 => 0,
            _ => (round_ns / quotes.max(1) as u64).max(GAP_MIN_NS),
        };
        self.next_at = now.after(self.gap_ns);
    }

    /// When something is to be done.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.asked {
            Some(asked) => Some(asked.at.after(ANSWER_MAX_NS)),
            None => (self.gap_ns > 0).then_some(self.next_at),
        }
    }

    /// The question that was not answered in time.
    pub fn overdue(&mut self, now: Nanos) -> Option<Question> {
        let late = self.asked.take_if(|asked| now >= asked.at.after(ANSWER_MAX_NS))?;
        self.differences += 1;
        Some(late)
    }

    /// The place to ask about next, if one is due.
    pub fn due(&mut self, now: Nanos, places: usize) -> Option<usize> {
        if self.gap_ns == 0 || self.asked.is_some() || now < self.next_at || places == 0 {
            return None;
        }
        self.next_at = now.after(self.gap_ns);
        self.place = (self.place + 1) % places;
        Some(self.place)
    }

    /// The number of a question that leaves now.
    pub fn ask(&mut self, now: Nanos, quote: u16, symbol: Symbol, sent: [u64; 2]) -> u64 {
        self.numbers += 1;
        self.asked = Some(Question {
            number: self.numbers,
            quote,
            symbol,
            sent,
            at: now,
        });
        self.numbers
    }

    /// The question that an answer with this number is to.
    pub fn answered(&mut self, number: u64) -> Option<Question> {
        self.asked.take_if(|asked| asked.number == number)
    }

    /// The connection is gone, and questions with it.
    pub fn forget(&mut self) {
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quote_is_asked_about_in_its_turn_one_at_a_time_and_who_does_not_answer_differs() {
        let mut asking = Reconciliation::default();
        let now = Nanos(Nanos::SECOND);
        assert_eq!((asking.poll_timeout(), asking.due(now, 3)), (None, None));
        asking.start(now, 3, 3);
        let mut at = now;
        for round in 0..6 {
            assert_eq!(asking.due(at, 3), None);
            at = asking.poll_timeout().expect("one is due");
            assert_eq!(at, now.after((round + 1) * Nanos::SECOND));
            let place = asking.due(at, 3).expect("one is due");
            assert_eq!(place as u64, (round + 1) % 3);
            let number = asking.ask(at, place as u16, Symbol::EMPTY, [round, 0]);
            assert_eq!(asking.due(at.after(Nanos::SECOND), 3), None, "one at a time");
            assert_eq!(asking.answered(number + 1), None);
            assert_eq!(asking.answered(number).expect("it").quote, place as u16);
            assert_eq!(asking.answered(number), None);
        }
        let number = asking.ask(at, 0, Symbol::EMPTY, [0, 0]);
        let late = asking.poll_timeout().expect("its end");
        assert!(late.since(at) <= 5 * Nanos::SECOND);
        assert_eq!(asking.overdue(Nanos(late.0 - 1)), None);
        assert_eq!(asking.overdue(late).expect("late").number, number);
        assert_eq!((asking.differences, asking.answered(number)), (1, None));
        // Many quotes: no more than 50 questions a second.
        asking.start(now, 2, 10_000);
        assert_eq!(asking.poll_timeout(), Some(now.after(GAP_MIN_NS)));
    }
}
