//! Executions that a strategy hears of beside those of its orders and quotes: of a process or a session
//! before this one.

use tickwire_market::{Cause, InstrumentId, Nanos, Price, Qty, SeqNo, Side, Symbol};

use super::{Conductor, Markets, OrderPort, Strategy};

/// The venue's name of an execution (ExecID, 17): up to 23 bytes of printable ASCII.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExecutionId(Symbol);

impl ExecutionId {
    /// None was said.
    pub const NONE: ExecutionId = ExecutionId(Symbol::EMPTY);

    /// The venue's name of an execution; `None` of what is none.
    pub fn new(name: &[u8]) -> Option<ExecutionId> {
        Symbol::new(name).map(ExecutionId)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether none was said.
    pub fn is_none(&self) -> bool {
        *self == ExecutionId::NONE
    }
}

/// The report of an execution, as the venue sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Execution {
    /// MsgSeqNum (34) of the report.
    pub seq: SeqNo,
    /// The venue's name of it.
    pub id: ExecutionId,
}

/// An execution of no order or quote that this process knows: of a process or a session before this one, most
/// often sent again by the venue after a logon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateExecution {
    /// Of what, as the venue names it.
    pub symbol: Symbol,
    /// The same as it is numbered here, where it was subscribed to and is known.
    pub instrument: Option<InstrumentId>,
    /// The number of the order or the name of the quote (ClOrdID, 11), where it is one.
    pub number: Option<u64>,
    /// Our side: of one that is taken back, that of the trade.
    pub side: Side,
    /// How much.
    pub qty: Qty,
    /// At what price.
    pub price: Price,
    /// The venue takes the trade back.
    pub is_broken: bool,
    /// The venue says that it may have sent it before (PossDupFlag). What is not known without that is of an
    /// order that should not be there.
    pub is_again: bool,
}

impl LateExecution {
    /// Contracts or shares that are held more because of it, below 0 fewer.
    pub fn signed(&self) -> i64 {
        let qty = i64::from(self.qty.0);
        let bought = (self.side == Side::Bid) != self.is_broken;
        if bought { qty } else { -qty }
    }
}

/// The last executions whose names are remembered.
const RECENT: usize = 64;

/// Tells executions that were booked from those that were not: each is booked once, whatever is sent again
/// after a connection was lost or a process was started again.
#[derive(Clone, Debug)]
pub struct Once {
    /// MsgSeqNum of the last report that was booked.
    booked: SeqNo,
    recent: [ExecutionId; RECENT],
    next: usize,
    repeated: u64,
}

impl Default for Once {
    fn default() -> Once {
        Once {
            booked: SeqNo(0),
            recent: [ExecutionId::NONE; RECENT],
            next: 0,
            repeated: 0,
        }
    }
}

impl Once {
    /// Whether an execution is new, which is booked then. `is_late`: the venue says that it may have sent it
    /// before.
    pub fn is_new(&mut self, execution: &Execution, is_late: bool) -> bool {
        let is_named = !execution.id.is_none() && self.recent.contains(&execution.id);
        if is_named || (is_late && execution.seq <= self.booked) {
            self.repeated += 1;
            return false;
        }
        self.booked = execution.seq;
        self.remember(execution.id);
        true
    }

    /// An execution that a process before this one has booked.
    pub fn remember(&mut self, id: ExecutionId) {
        self.recent[self.next % RECENT] = id;
        self.next += 1;
    }

    /// The last report that a process before this one has booked.
    pub fn set_booked(&mut self, seq: SeqNo) {
        self.booked = seq;
    }

    /// The venue's numbers begin anew: what comes next has not been here, whatever its number or its name,
    /// which is one of a day.
    pub fn begin_anew(&mut self) {
        self.booked = SeqNo(0);
        self.recent = [ExecutionId::NONE; RECENT];
    }

    /// Executions that had been booked before, left out.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }
}

impl<S: Strategy> Conductor<S> {
    /// The report that is handed to this conductor next: [`super::Context::execution`] within the callbacks
    /// that it causes. `None` again once they are over.
    pub fn set_execution(&mut self, execution: Option<Execution>) {
        self.state.execution = execution;
    }

    /// Executions that the venue sends again, of a process before this one, are held although the strategy
    /// says nothing of them: their owner knows whose they are ([`Conductor::on_late_execution`]).
    pub fn hold_what_is_sent_again(&mut self) {
        self.state.reconciling.holds_again = true;
    }

    /// An execution that fits no order and no quote. Unless the strategy books it, or it is one of
    /// [`Conductor::hold_what_is_sent_again`], the position is not known, and the kill switch goes on.
    pub fn on_late_execution(
        &mut self,
        now: Nanos,
        late: &LateExecution,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) -> bool {
        let mut is_booked = false;
        self.call(
            "on_late_execution",
            now,
            Cause::default(),
            markets,
            port,
            |s, ctx| {
                is_booked = s.on_late_execution(ctx, late);
            },
        );
        is_booked |= self.state.reconciling.holds_again && late.is_again;
        match is_booked {
            true => self.hold(late),
            false => self.state.risk.kill(),
        }
        is_booked
    }

    /// What was traded before this process, or beside it: it is held, and counts against the limits.
    pub fn hold(&mut self, late: &LateExecution) {
        let Some(instrument) = late.instrument.filter(|id| self.state.positions.covers(*id)) else {
            return;
        };
        let by_quotes = late.number.is_some_and(super::is_name_of_quote);
        let side = if late.is_broken { !late.side } else { late.side };
        self.state
            .positions
            .on_late_fill(instrument, side, late.qty, late.price);
        self.state
            .risk
            .hold(instrument, by_quotes, (side, late.qty, late.price));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(seq: u64, id: &str) -> Execution {
        Execution {
            seq: SeqNo(seq),
            id: ExecutionId::new(id.as_bytes()).unwrap_or(ExecutionId::NONE),
        }
    }

    #[test]
    fn each_execution_is_booked_once_by_its_name_and_by_its_number() {
        let mut once = Once::default();
        assert!(once.is_new(&execution(5, "A"), false));
        assert!(!once.is_new(&execution(9, "A"), false), "said twice");
        assert!(!once.is_new(&execution(5, ""), true), "sent again");
        assert!(once.is_new(&execution(6, ""), true), "it had not come");
        assert!(
            once.is_new(&execution(6, ""), false),
            "without a name and not sent again"
        );
        assert_eq!(once.repeated(), 2);
        // Started again: what was booked before is known by both.
        let mut again = Once::default();
        again.set_booked(SeqNo(6));
        again.remember(execution(0, "B").id);
        assert!(!again.is_new(&execution(6, "C"), true));
        assert!(!again.is_new(&execution(7, "B"), true));
        assert!(again.is_new(&execution(7, "C"), true));
        again.begin_anew();
        assert!(again.is_new(&execution(1, "D"), true));
    }

    #[test]
    fn names_are_forgotten_after_many_others() {
        let mut once = Once::default();
        let name = |n: usize| alloc::format!("E{n}");
        for n in 0..=RECENT {
            assert!(once.is_new(&execution(n as u64 + 1, &name(n)), false));
        }
        assert!(!once.is_new(&execution(100, &name(1)), false));
        assert!(once.is_new(&execution(101, &name(0)), false));
    }
}
