//! What the trading thread asks of what it runs: strategies ([`crate::live::Live`]), or what a test puts in
//! their place.

use crate::settings::SendWay;
use tickwire_feed::Channel;
use tickwire_fix::{ExecutionReport, QuoteAnswer};
use tickwire_kernelpath::Shooting;
use tickwire_market::{Cause, ClientOrderId, Counters, InstrumentId, Nanos, OrderIntent, Price, Symbol};
use tickwire_receive::hook::ArmingPoint;
use tickwire_receive::receiver::SourceFacts;
use tickwire_trading::strategy::{ArmRefusal, Execution};
use tickwire_trading::{Change, Order, OrderReport, ReportError, RiskReject};

use crate::fills::Fill;
use crate::hot::{HotPath, OrderOut};
use crate::record::Origin;
use crate::session::TakenUp;
use tickwire_console::failure::Failure;

/// See the module. What concerns books or sessions gets the whole path. Sessions are named by their place.
pub trait Rule: Sized {
    /// Whether every channel of every feed is received, or the first one alone.
    fn wants_all_feeds(&self) -> bool;

    /// How many rules there are, each with limits of its own.
    fn count(&self) -> usize {
        1
    }
    /// What one of them is called in messages.
    fn name(&self, which: usize) -> &str;
    /// By what name the positions of one of them are kept.
    fn own_name(&self, which: usize) -> &str;
    /// Which control has stopped one of them.
    fn stopped(&self, which: usize) -> Option<RiskReject>;
    /// Whether the kill switch is on.
    fn is_killed(&self) -> bool;
    /// What all of them gained at mid prices, in whole units of money.
    fn gain(&self) -> i64;
    /// What they counted.
    fn counters(&self) -> Counters;
    /// How many orders and quotes are open, over one session or over all.
    fn open(&self, session: Option<usize>) -> u32;
    /// An order of a session by its number.
    fn order(&self, session: usize, id: ClientOrderId) -> Option<&Order>;
    /// Every order of a session that is open.
    fn each_open(&self, session: usize, each: &mut dyn FnMut(&Order));
    /// Every order of a session whose place was not used again.
    fn each_order(&self, session: usize, each: &mut dyn FnMut(&Order));
    /// Says whether an order entry session is logged on. While it is not, no order may go out over it, and
    /// what was open then is not known.
    fn set_session(&mut self, session: usize, is_up: bool);
    /// Says whether market data of a feed is silent, or not confirmed yet what was cancelled for it. While it
    /// is, nothing is sent, by whatever timer or other feed it is decided on; what is open stays open until
    /// it is cancelled.
    fn set_silent(&mut self, is_silent: bool);
    /// Stops every further order. What is open stays open until it is cancelled.
    fn kill(&mut self);
    /// A person lets everything go on.
    fn revive(&mut self);
    /// The next request to cancel an open order of a session not asked for yet.
    fn cancel_next(&mut self, session: usize, cause: Cause) -> Option<OrderIntent>;
    /// The same of one of them: `None` if it is not open, or was asked for.
    fn cancel_one(&mut self, session: usize, id: ClientOrderId) -> Option<OrderIntent>;
    /// A request to cancel an order of a session came to nothing: [`Rule::cancel_next`] gives it again.
    fn forget_cancel(&mut self, session: usize, id: ClientOrderId);
    /// The symbol of an instrument; of the only one that is traded where it is not said.
    fn symbol_of(&self, instrument: InstrumentId) -> Option<Symbol>;
    /// What is held: of `instrument`, or of everything.
    fn position(&self, instrument: Option<InstrumentId>) -> i64;
    /// What runs, or ran last, for who asks after a panic.
    fn callback(&self) -> String;
    /// When [`Rule::on_time`] is wanted next.
    fn next_timer(&self) -> Option<Nanos>;

    /// Before the first packet: which channels there are, and over which session each is traded unless
    /// something else is said; how many instruments their books have, and when the process was started, by
    /// the wall clock, from which the numbers of orders begin.
    ///
    /// # Errors
    /// What does not fit them.
    fn prepare(
        &mut self,
        sources: &[SourceFacts],
        routes: &Routes,
        instruments: u32,
        started: Nanos,
    ) -> Result<Wants, Failure>;
    /// What rules of processes before this one have traded over a session: it is held as soon as its
    /// instruments are known, and so is what the venue sends again of theirs.
    ///
    /// # Errors
    /// A rule holds something that is not among these.
    fn restore(&mut self, session: usize, fills: &[Fill<Origin>]) -> Result<(), Failure>;
    /// The run begins.
    fn start<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos);
    /// Time has passed.
    fn on_time<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos);
    /// A datagram was taken.
    fn after_packet<O: OrderOut, C: Channel, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        channel: &C,
        now: Nanos,
    );
    /// Ten times a second: instruments that the directory names may be watched, once every session is on.
    fn watch<O: OrderOut, C: Channel, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, channel: &C);
    /// The venue of a session has said something of an order.
    ///
    /// # Errors
    /// It fits no order.
    fn on_report<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        report: &OrderReport,
    ) -> Result<Change, ReportError>;
    /// The venue of a session has said something of quotes; `names` are the numbers of those that it names,
    /// `asked` that of the question that it answers.
    fn on_quotes<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        answer: &QuoteAnswer,
        (asked, names): (Option<u64>, &[u64]),
    ) {
        let _ = (hot, session, now, answer, asked, names);
    }
    /// The venue of a session does not know requests about quotes.
    fn on_quotes_unknown<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) {
        let _ = (hot, session, now);
    }
    /// A report names a quote, or an order that is a side of one, instead of an order; whether it does.
    fn on_quote_report<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        report: &ExecutionReport,
    ) -> bool {
        let _ = (hot, session, now, report);
        false
    }
    /// A request about an order was refused that is a side of a quote; whether it is one.
    fn on_quote_reject<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        name: u64,
    ) -> bool {
        let _ = (hot, session, now, name);
        false
    }
    /// A trade of no order and no quote that is known: whether a rule has booked it.
    fn on_late<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        report: &ExecutionReport,
        is_again: bool,
    ) -> bool {
        let _ = (hot, session, now, report, is_again);
        false
    }
    /// The execution that reports are about from now on.
    fn set_execution(&mut self, execution: Option<Execution>) {
        let _ = execution;
    }
    /// Whether what is open over a session ends with it: the venue cancels it, and nothing of it is known
    /// when the session is lost.
    fn ends_with_session(&self, session: usize) -> bool {
        let _ = session;
        false
    }
    /// A session is traded over from now on, or no more; whoever trades over it is told.
    fn on_session<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        is_up: bool,
        now: Nanos,
    ) {
        let _ = now;
        hot.rule.set_session(session, is_up);
    }
    /// A session is lost.
    fn lose<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) {
        Self::on_session(hot, session, false, now);
    }
    /// A session of rules whose orders end with it is logged on: see [`HotPath::take_up`].
    fn take_up<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) -> TakenUp {
        let _ = (hot, session, now);
        TakenUp::Waits
    }
    /// The venue has refused a message, or has said something that cannot be read: whether every rule that
    /// trades over the session has seen to it.
    fn on_distrust<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
    ) -> bool {
        let _ = (hot, session, now);
        false
    }
    /// An operator's words, as typed.
    fn on_command<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        words: &str,
        now: Nanos,
    ) {
        let _ = (hot, words, now);
    }
    /// Has the venues asked about each quote every so many nanoseconds; 0 for never.
    fn reconcile_quotes(&mut self, now: Nanos, every_ns: u64) {
        let _ = (now, every_ns);
    }
    /// The loop has time to spare.
    fn on_idle<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        let _ = (hot, now);
    }
    /// Of which instrument of the source in hand packets are rehearsed, an offer at which price.
    fn rehearsed<O: OrderOut, const STAMPED: bool>(
        hot: &HotPath<O, STAMPED, Self>,
    ) -> Option<(InstrumentId, Price)> {
        let _ = hot;
        None
    }
    /// The loop has time to spare, and may rehearse a packet of this source: until
    /// [`Rule::end_rehearsal`], which has to follow, no book of the channels is changed and nobody is told.
    fn begin_rehearsal<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
    ) -> Option<usize> {
        let _ = hot;
        None
    }
    /// In a rehearsal: the events of a packet, where there is none to be played.
    fn rehearse_events<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        let _ = (hot, now);
    }
    /// What [`Rule::begin_rehearsal`] began is over.
    fn end_rehearsal<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>) {
        let _ = hot;
    }
    /// The loop begins another turn.
    fn on_turn<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        let _ = (hot, now);
    }
    /// Nothing follows of the packet, or the message, in hand: what was held leaves.
    fn settle<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos) {
        let _ = now;
        hot.let_go();
    }
    /// Cancels every quote that is open over a session; `again`, those too that it was done for before and
    /// nobody has answered.
    fn cancel_quotes<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        session: usize,
        now: Nanos,
        again: bool,
    ) {
        let _ = (hot, session, now, again);
    }
    /// Whether it arms orders.
    fn pre_arms(&self) -> bool {
        false
    }
    /// Whether orders can be armed, and why not.
    fn set_arming(&mut self, arms: Result<(), ArmRefusal>) {
        let _ = arms;
    }
    /// What the order waits for that is to be armed and is not in its place: the channel, and the instrument
    /// by the channel's own number.
    fn to_arm(&self) -> Option<(usize, InstrumentId)> {
        None
    }
    /// Puts it in its place, from where its channel stands.
    fn arm<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        now: Nanos,
        point: &ArmingPoint,
    ) {
        let _ = (hot, now, point);
    }
    /// It has left, or will not.
    fn end_armed<O: OrderOut, const STAMPED: bool>(
        hot: &mut HotPath<O, STAMPED, Self>,
        now: Nanos,
        told: Shooting,
    ) {
        let _ = (hot, now, told);
    }
    /// The run is over.
    fn finish<O: OrderOut, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Self>, now: Nanos);
}

/// Which session an instrument is traded over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes {
    /// The sessions' names, by place; the first is `[order_entry]`.
    pub sessions: Vec<String>,
    /// How the bytes of each leave.
    pub send: Vec<SendWay>,
    /// By channel: the sessions that its instruments may be traded over, the one that is taken unless
    /// something else is said first.
    pub of_source: Vec<Vec<usize>>,
}

/// What a rule wants of the thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    /// The symbols of which it wants books over all feeds, and the bits of an instrument's number.
    pub consolidated: Option<(u32, u32)>,
}
