//! Quotes as orders over FIX (`quoter.entry = "orders"`): NewOrderSingle (D), OrderCancelReplaceRequest (G),
//! OrderCancelRequest (F), and OrderMassCancelRequest (q) to take everything away. None is kept for resends:
//! an order of the past must not come to life.

use tickwire_fix::{
    Again, Encoder, ExecType, ExecutionReport, NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest,
    Stamp,
};
use tickwire_market::{ClientOrderId, Nanos, OrderType, Price, Qty, Symbol, TimeInForce};
use tickwire_trading::{QuoteOrders, SideReport, SideReportKind, SideRequest, SideRequestKind, SideSink};

use super::gather::Gathered;
use super::path::QuoteSession;
use tickwire_node::hot::OrderOut;

/// The numbers of quotes' orders as ClOrdIDs (11): odd, from the first one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    first: u64,
}

impl Names {
    fn name(self, id: u64) -> u64 {
        self.first + 2 * id + 1
    }

    fn id(self, name: u64) -> Option<u64> {
        Some(name.checked_sub(self.first + 1)? / 2).filter(|id| self.name(*id) == name)
    }
}

/// A mass cancel under way.
#[derive(Clone, Copy, Debug)]
struct Cancel {
    name: u64,
    /// What the quoter calls it; 0 is the one that begins a session.
    id: u64,
    since: Nanos,
}

/// What has to be known of them.
pub(crate) struct AsOrders {
    pub orders: QuoteOrders,
    pub names: Names,
    /// Of the options, in the order of the quotes, whose prices are in these ticks.
    pub symbols: Box<[Symbol]>,
    pub tick: Price,
    cancel: Option<Cancel>,
    /// Since the logon, the venue has confirmed that nothing of us rests.
    is_clean: bool,
}

impl AsOrders {
    /// No order, of instruments with these symbols. `first_order` is even.
    pub(crate) fn new(symbols: &[Symbol], tick: Price, first_order: u64) -> AsOrders {
        AsOrders {
            orders: QuoteOrders::new(u16::try_from(symbols.len()).unwrap_or(u16::MAX)),
            names: Names { first: first_order },
            symbols: symbols.into(),
            tick,
            cancel: None,
            is_clean: false,
        }
    }

    /// The connection is gone, and the orders with it, or not: that is asked when there is another.
    pub(crate) fn forget(&mut self) {
        self.orders.clear();
        (self.cancel, self.is_clean) = (None, false);
    }

    /// Whether orders may go out.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_clean
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancel.is_some()
    }

    /// The name of a mass cancel that the quoter calls `id`.
    pub(crate) fn begin_cancel(&mut self, now: Nanos, id: u64) -> u64 {
        let name = self.names.name(self.orders.number());
        self.cancel = Some(Cancel { name, id, since: now });
        name
    }

    /// It could not be sent.
    pub(crate) fn drop_cancel(&mut self) {
        self.cancel = None;
    }

    /// Since when the venue owes the answer without which a session does not begin.
    pub(crate) fn waits_since(&self) -> Option<Nanos> {
        let cancel = self.cancel.filter(|cancel| cancel.id == 0)?;
        (!self.is_clean).then_some(cancel.since)
    }

    /// A mass cancel was answered; what the quoter calls it, `None` if it is none of ours.
    pub(crate) fn end_cancel(&mut self, name: u64, is_done: bool) -> Option<u64> {
        let Cancel { id, .. } = self.cancel.take_if(|asked| asked.name == name)?;
        if is_done {
            self.orders.clear();
            self.is_clean = true;
        }
        Some(id)
    }

    /// What a report says; `None` if it changes nothing.
    pub(crate) fn report(&self, quote: u16, name: u64, report: &ExecutionReport) -> Option<SideReport> {
        let kind = match report.exec_type {
            ExecType::New => SideReportKind::Accepted,
            ExecType::Replaced => SideReportKind::Replaced,
            ExecType::Rejected => SideReportKind::Rejected,
            ExecType::Canceled | ExecType::Expired | ExecType::DoneForDay => SideReportKind::Cancelled,
            ExecType::Restated => SideReportKind::Reduced,
            ExecType::Trade => SideReportKind::Filled,
            _ => return None,
        };
        Some(SideReport {
            quote,
            side: report.side,
            id: self.names.id(name)?,
            kind,
            leaves: report.leaves_qty.0,
            filled: report.cum_qty.0,
        })
    }

    /// That a replacement or a cancel of this name was refused; `None` if there is none.
    pub(crate) fn refusal(&self, name: u64) -> Option<SideReport> {
        let id = self.names.id(name)?;
        let (quote, side) = self.orders.find(id)?;
        Some(SideReport {
            quote,
            side,
            id,
            kind: SideReportKind::Refused,
            leaves: 0,
            filled: 0,
        })
    }
}

/// Where requests leave.
pub(crate) struct SideWire<'w, O> {
    pub session: &'w mut QuoteSession,
    pub out: &'w mut Gathered<O>,
    /// Messages and bytes.
    pub sent: &'w mut [u64; 2],
    pub names: Names,
    pub symbols: &'w [Symbol],
    pub tick: Price,
    pub now: Nanos,
}

impl<O: OrderOut> SideSink for SideWire<'_, O> {
    fn request(&mut self, request: &SideRequest) -> bool {
        let Some(symbol) = self.symbols.get(usize::from(request.quote)) else {
            return false;
        };
        let name = |id: u64| ClientOrderId(self.names.name(id)).into();
        let (cl_ord_id, symbol, side) = (name(request.id), *symbol, request.side);
        let price = Price::from_raw(self.tick.raw() * i64::from(request.ticks));
        let (qty, cause) = (Qty(request.qty), Some(request.cause));
        let (transact_time, order_id) = (self.now, tickwire_fix::Id::EMPTY);
        let (order_type, price, stop) = (OrderType::Limit, Some(price), None);
        let time_in_force = TimeInForce::Day;
        let sent = match request.kind {
            SideRequestKind::New => {
                let order = NewOrderSingle {
                    cl_ord_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    order_type,
                    price,
                    stop,
                    time_in_force,
                    cause,
                };
                self.send(NewOrderSingle::MSG_TYPE, |e, stamp| order.encode(e, stamp))
            }
            SideRequestKind::Replace(orig) => {
                let replacement = OrderCancelReplaceRequest {
                    cl_ord_id,
                    orig_cl_ord_id: name(orig),
                    order_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    order_type,
                    price,
                    stop,
                    time_in_force,
                    cause,
                };
                let msg_type = OrderCancelReplaceRequest::MSG_TYPE;
                self.send(msg_type, |e, stamp| replacement.encode(e, stamp))
            }
            SideRequestKind::Cancel(orig) => {
                let cancel = OrderCancelRequest {
                    cl_ord_id,
                    orig_cl_ord_id: name(orig),
                    order_id,
                    symbol,
                    side,
                    transact_time,
                    qty,
                    cause,
                };
                self.send(OrderCancelRequest::MSG_TYPE, |e, stamp| cancel.encode(e, stamp))
            }
        };
        if !sent {
            return false;
        }
        let mut chunk = [0; 1024];
        while let Some(bytes) = self.session.poll_transmit(&mut chunk) {
            self.sent[1] += bytes.len() as u64;
            self.out.gather(bytes);
        }
        self.sent[0] += 1;
        true
    }
}

impl<O: OrderOut> SideWire<'_, O> {
    fn send(&mut self, msg_type: &[u8], fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp)) -> bool {
        self.session
            .send(self.now, msg_type, Again::GapFill, fields)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_odd_and_lead_back_to_their_numbers() {
        let names = Names {
            first: 1_795_000_000_000_000,
        };
        for id in [1, 2, 77, 1 << 40] {
            let name = names.name(id);
            assert_eq!((name % 2, names.id(name)), (1, Some(id)));
            assert_eq!(names.id(name + 1), None, "the eye's");
        }
        assert_eq!((names.id(0), names.id(names.first)), (None, None));
    }

    #[test]
    fn a_mass_cancel_is_known_by_its_name_and_once() {
        let symbols = [Symbol::new(b"A").unwrap()];
        let mut orders = AsOrders::new(&symbols, Price::from_raw(1), 1 << 20);
        let first = orders.begin_cancel(Nanos(7), 0);
        assert!(orders.is_cancelling() && !orders.is_clean());
        assert_eq!(orders.waits_since(), Some(Nanos(7)));
        assert_eq!(orders.end_cancel(first + 2, true), None);
        assert_eq!(orders.end_cancel(first, false), Some(0));
        assert!(!orders.is_clean() && !orders.is_cancelling());
        let second = orders.begin_cancel(Nanos(8), 9);
        assert_ne!(first, second);
        assert_eq!(orders.waits_since(), None, "the quoter waits for it itself");
        assert_eq!(orders.end_cancel(second, true), Some(9));
        assert_eq!(orders.end_cancel(second, true), None);
        assert!(orders.is_clean());
        orders.forget();
        assert!(!orders.is_clean());
        orders.begin_cancel(Nanos(9), 0);
        orders.drop_cancel();
        assert!(!orders.is_cancelling() && orders.waits_since().is_none());
    }
}
