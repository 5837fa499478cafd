//! Orders that leave without this process: prepared, checked and laid in front of the market data, to be sent
//! by what sees a message first. Live only, where the host has such a place; everywhere else the answer says
//! why not.

use core::fmt;

use tickwire_market::{ClientOrderId, Counter, InstrumentId, Nanos, OrderIntent, Price, Qty, Side};

use super::context::{NotSent, OrderPort, Ticket};
use super::{Conductor, Context, Markets, Strategy};

/// What happens that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AwaitedEvent {
    /// Somebody enters an order of this side.
    Added(Side),
    /// An order of the book is executed.
    Executed,
}

/// A message of the feed that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// About which instrument.
    pub instrument: InstrumentId,
    /// What happens.
    pub event: AwaitedEvent,
    /// At which prices, both bounds included; `None`: at any.
    pub prices: Option<[Price; 2]>,
    /// Of how much at least.
    pub qty_min: Qty,
}

impl Awaited {
    /// Somebody enters an order of this side, at any price, of any quantity.
    pub fn added(instrument: InstrumentId, side: Side) -> Awaited {
        Awaited {
            instrument,
            event: AwaitedEvent::Added(side),
            prices: None,
            qty_min: Qty(0),
        }
    }

    /// An order of the book is executed, of any quantity.
    pub fn executed(instrument: InstrumentId) -> Awaited {
        Awaited {
            event: AwaitedEvent::Executed,
            ..Awaited::added(instrument, Side::Bid)
        }
    }

    /// At a price from `low` to `high`.
    pub fn between(self, low: Price, high: Price) -> Awaited {
        Awaited {
            prices: Some([low, high]),
            ..self
        }
    }

    /// Of so much at least.
    pub fn of_at_least(self, qty: u32) -> Awaited {
        Awaited {
            qty_min: Qty(qty),
            ..self
        }
    }
}

/// Why an order cannot be armed. Nothing has left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArmRefusal {
    /// Nothing sees market data before this process: they come by sockets, the rights for more are missing,
    /// or it is a backtest.
    NoProgram,
    /// The strategy does not say that it arms orders ([`Strategy::pre_arms`]).
    NotSaid,
    /// Orders of the session are sent by the kernel.
    ByKernel,
    /// There are several strategies, order sessions, or interfaces with market data.
    Several,
    /// An order is armed, and there is one.
    Taken,
    /// The feed has no such message, or no such number in it at a fixed place.
    Feed,
    /// The feed's prices cannot be compared so.
    Price,
    /// The order has values that no prepared message can say.
    Order,
    /// It is too long for one segment.
    Long,
    /// The connection does not let it leave so.
    Connection,
    /// The order session is not up.
    NoSession,
    /// A kill switch is on.
    Killed,
}

impl fmt::Display for ArmRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArmRefusal::NoProgram => "no program sees the market data before this process",
            ArmRefusal::NotSaid => "the strategy does not say that it arms orders (pre_arms)",
            ArmRefusal::ByKernel => "the session's orders are sent by the kernel (send = \"kernel\")",
            ArmRefusal::Several => "there are several strategies, order sessions or interfaces",
            ArmRefusal::Taken => "an order is armed already",
            ArmRefusal::Feed => "the feed has no such message with its numbers at fixed places",
            ArmRefusal::Price => "the feed's prices cannot be compared so",
            ArmRefusal::Order => "no prepared message can say this order",
            ArmRefusal::Long => "the order is too long for one segment",
            ArmRefusal::Connection => "the connection does not let it leave past the kernel",
            ArmRefusal::NoSession => "the order session is not up",
            ArmRefusal::Killed => "a kill switch is on",
        })
    }
}

/// What became of an armed order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArmEnd {
    /// It has left: from now on it is an order like any other, and reports of it come.
    Fired,
    /// It has not left, and will not: it was taken back, by the strategy, by the host, or because something
    /// else had to be sent.
    TakenBack,
    /// It has not left, and will not: packets of the feed are missing.
    Gap,
    /// It has not left, and will not: there was no room for it where the message came.
    NoRoom,
    /// It could not be put in its place.
    Refused(ArmRefusal),
}

/// An armed order has come to its end ([`Strategy::on_armed`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArmedEvent {
    /// Which one. If it has not left, its number is no order's any more.
    pub id: ClientOrderId,
    /// What became of it.
    pub end: ArmEnd,
}

/// An order that is armed, or to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArmedOrder {
    /// Its number.
    pub id: ClientOrderId,
    /// The order.
    pub request: OrderIntent,
    /// What it waits for.
    pub awaited: Awaited,
    /// The host has it in its place.
    pub is_placed: bool,
}

impl Context<'_> {
    /// Arms a limit order: it leaves by itself when what it waits for is said, once. Every check is made now,
    /// and it counts against every limit until its end, as if it had left. It is in its place once everything
    /// that was received has been looked at ([`Context::armed`]); its end is told by [`Strategy::on_armed`].
    ///
    /// Anything else that is sent over the session takes it back first, and so do reports that come, a gap, a
    /// stop, and a thread that stands still for a second. What the market does meanwhile is the strategy's to
    /// watch.
    ///
    /// # Errors
    /// What stopped it, or [`NotSent::NotArmed`]: why it cannot be armed.
    pub fn arm(&mut self, ticket: Ticket, awaited: Awaited) -> Result<ClientOrderId, NotSent> {
        if ticket.price.is_none() || ticket.stop.is_some() {
            return Err(NotSent::WrongType);
        }
        if self.state.armed.is_some() {
            return Err(NotSent::NotArmed(ArmRefusal::Taken));
        }
        self.port.arms().map_err(NotSent::NotArmed)?;
        let armed = Ticket {
            awaited: Some(awaited),
            ..ticket
        };
        let done = self.enter(armed, None);
        self.counted(done)
    }

    /// Takes an armed order back, and says what became of it: [`ArmEnd::Fired`] if it has left before, and is
    /// an order now. [`Strategy::on_armed`] is not called for it.
    ///
    /// # Errors
    /// [`NotSent::NotOpen`]: no such order is armed.
    pub fn disarm(&mut self, id: ClientOrderId) -> Result<ArmEnd, NotSent> {
        let armed = self.state.armed.filter(|armed| armed.id == id);
        let armed = armed.ok_or(NotSent::NotOpen)?;
        let end = match armed.is_placed {
            true => self.port.disarm(self.now),
            false => ArmEnd::TakenBack,
        };
        self.state.end_armed(id, end);
        Ok(end)
    }

    /// The order that is armed, and whether it is in its place already.
    pub fn armed(&self) -> Option<(ClientOrderId, bool)> {
        self.state.armed.map(|armed| (armed.id, armed.is_placed))
    }
}

impl super::context::State {
    /// Nothing is armed any more.
    fn end_armed(&mut self, id: ClientOrderId, end: ArmEnd) {
        self.armed = None;
        match end {
            ArmEnd::Fired => self.counters.bump(Counter::OrdersSent),
            _ => {
                self.take_back(id);
            }
        }
    }
}

impl<S: Strategy> Conductor<S> {
    /// The order that is armed, or to be put in its place: for a host that has one.
    pub fn armed(&self) -> Option<&ArmedOrder> {
        self.state.armed.as_ref()
    }

    /// The host has put it in its place.
    pub fn note_armed(&mut self) {
        if let Some(armed) = &mut self.state.armed {
            armed.is_placed = true;
        }
    }

    /// The host says what became of the armed order, and the strategy hears it.
    pub fn end_armed(&mut self, now: Nanos, end: ArmEnd, markets: Markets<'_>, port: &mut dyn OrderPort) {
        let Some(armed) = self.state.armed else { return };
        self.state.end_armed(armed.id, end);
        let event = ArmedEvent { id: armed.id, end };
        self.call("on_armed", now, armed.request.cause(), markets, port, |s, ctx| {
            s.on_armed(ctx, &event)
        });
    }
}
