//! `tickwire fix trader`: subscribes to market data by FIX and buys whenever the price of the best offer has
//! changed, at that price.
//!
//! What every trader of the measurement does, whoever's engine it is linked to:
//! 1. logs on to both sessions of its configuration, sends a MarketDataRequest to the one whose TargetCompID
//!    is `MARKET`;
//! 2. takes the best offer from the snapshot (35=W), then from the entries of every incremental refresh
//!    (35=X) that are offers (269=1) at the best level (290=1);
//! 3. for a message that changes its price, sends a NewOrderSingle to the other session: 100 at the new
//!    price, its ClOrdID the MsgSeqNum of the message;
//! 4. notes the counter at the moments of [`Stamps`], for one order in so many; writes them to a file after
//!    the venue's Logout.

use std::collections::VecDeque;

use tickwire_fix::{Again, Event, Id, Message, Precision, Role, SessionId, Stamp, tag};
use tickwire_fixmsg::fix44::values::MDEntryType;
use tickwire_fixmsg::fix44::{MarketDataIncrementalRefresh, MarketDataSnapshotFullRefresh};
use tickwire_market::{Nanos, Price};
use tickwire_runtime::clock::tsc;
use tickwire_runtime::signal::StopFlag;

use super::super::{ended, load, quiet};
use super::stamps::{self, Stamps};
use super::{MARKET, SYMBOL};
use crate::cli::FixTraderArgs;
use tickwire_console::failure::Failure;
use tickwire_fixengine::settings::Wanted;
use tickwire_fixengine::{Engine, Error, Flow, Handler, Table, Way};

/// Account and HandlInst of a NewOrderSingle.
const ACCOUNT: u32 = 1;
const HANDL_INST: u32 = 21;
/// Orders whose report has not come: of more, the oldest go without their last stamps.
const OPEN_MAX: usize = 1 << 16;

/// The whole command.
pub(crate) fn run(args: &FixTraderArgs, stop: &StopFlag) -> Result<(), Failure> {
    if let Some(parent) = args.child_of {
        tickwire_control::process::tie_to(parent)?;
    }
    let setups = load(&args.config, Wanted::Only(Role::Initiator))?;
    let market = setups.iter().position(|s| s.config.target.as_str() == MARKET);
    let (Some(market), 2) = (market, setups.len()) else {
        return Err(Failure::config(format!(
            "{}: a trader has two sessions, one of them with TargetCompID={MARKET}",
            args.config.display()
        )));
    };
    let mut engine = quiet(setups)?;
    let mut trader = Trader::new(SessionId(market), SessionId(1 - market), args);
    let outcome = ended(engine.run(&mut trader, stop));
    if let Some(path) = &args.stamps {
        stamps::write(path, &trader.kept)?;
    }
    outcome?;
    match trader.faults {
        0 => Ok(()),
        n => Err(Failure::check(format!(
            "{n} messages of the market or the venue could not be read, or an order not be sent"
        ))),
    }
}

struct Trader {
    market: SessionId,
    venue: SessionId,
    /// Price of the best offer, once known.
    offer: Option<Price>,
    is_subscribed: bool,
    is_over: bool,
    /// When bytes came last, of the market and of the venue.
    market_in: u64,
    venue_in: u64,
    orders: u64,
    keep_every: u64,
    kept: Vec<Stamps>,
    /// Of `kept`, those that have not been sent yet begin here.
    unsent: usize,
    /// Of `kept`, those whose report has not come.
    open: VecDeque<usize>,
    faults: u64,
    stamp: Stamp,
}

impl Trader {
    fn new(market: SessionId, venue: SessionId, args: &FixTraderArgs) -> Trader {
        let room = match args.stamps {
            Some(_) => args.keep_at_most,
            None => 0,
        };
        // Touched now, so that no page fault happens later.
        let mut kept = vec![
            Stamps {
                seq: 1,
                ..Stamps::default()
            };
            room
        ];
        kept.clear();
        Trader {
            market,
            venue,
            offer: None,
            is_subscribed: false,
            is_over: false,
            market_in: 0,
            venue_in: 0,
            orders: 0,
            keep_every: args.keep_every,
            kept,
            unsent: 0,
            open: VecDeque::with_capacity(OPEN_MAX),
            faults: 0,
            stamp: Stamp::new(Precision::Millis),
        }
    }

    /// The price of the best offer if this message changes it. `None` within for a message that cannot be
    /// read.
    #[inline]
    fn decide(&mut self, message: &Message<'_>) -> Option<Option<Price>> {
        if let Some(refresh) = MarketDataIncrementalRefresh::read(message) {
            let mut best = None;
            for entry in refresh.md_entries().ok()? {
                let is_offer = entry.md_entry_type().ok()? == Some(MDEntryType::Offer);
                if is_offer && entry.md_entry_position_no().ok()? == Some(1) {
                    best = entry.md_entry_px().ok()?;
                }
            }
            let changed = best.filter(|price| self.offer.is_some_and(|known| known != *price));
            self.offer = changed.or(self.offer);
            return Some(changed);
        }
        let snapshot = MarketDataSnapshotFullRefresh::read(message)?;
        for entry in snapshot.md_entries().ok()? {
            if entry.md_entry_type().ok()? == MDEntryType::Offer {
                self.offer = entry.md_entry_px().ok()?;
            }
        }
        Some(None)
    }

    #[inline]
    fn on_market(&mut self, now: Nanos, table: &mut Table) {
        let handed = tsc();
        let Some(message) = table.session(self.market).message() else {
            return;
        };
        let seq = message
            .find(tag::MSG_SEQ_NUM)
            .and_then(|f| message.unsigned(f).ok());
        let (Some(seq), Some(decision)) = (seq, self.decide(&message)) else {
            self.faults += 1;
            return;
        };
        let Some(price) = decision else { return };
        let decided = tsc();
        let stamp = &mut self.stamp;
        let sent = table
            .session_mut(self.venue)
            .send(now, b"D", Again::Resend, |e, _| {
                e.text(tag::CL_ORD_ID, Id::from_number(seq).as_bytes());
                e.text(ACCOUNT, b"ACCOUNT-0042");
                e.char(HANDL_INST, b'1');
                e.text(tag::SYMBOL, SYMBOL.as_bytes());
                e.char(tag::SIDE, b'1');
                e.timestamp(tag::TRANSACT_TIME, stamp, now);
                e.unsigned(tag::ORDER_QTY, 100);
                e.char(tag::ORD_TYPE, b'2');
                e.price(tag::PRICE, price);
                e.char(tag::TIME_IN_FORCE, b'0');
            });
        self.faults += u64::from(sent.is_err());
        let order = self.orders;
        self.orders += 1;
        if order.is_multiple_of(self.keep_every) && self.kept.len() < self.kept.capacity() {
            if self.open.len() == OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back(self.kept.len());
            self.kept.push(Stamps {
                seq,
                bytes_in: self.market_in,
                handed,
                decided,
                ..Stamps::default()
            });
        }
    }

    #[inline]
    fn on_report(&mut self, table: &mut Table) {
        let handed = tsc();
        let Some(message) = table.session(self.venue).message() else {
            return;
        };
        let answers = message
            .find(tag::CL_ORD_ID)
            .and_then(|f| message.unsigned(f).ok());
        let Some(seq) = answers else {
            self.faults += 1;
            return;
        };
        while let Some(&at) = self.open.front().filter(|&&at| self.kept[at].seq <= seq) {
            self.open.pop_front();
            let stamps = &mut self.kept[at];
            if stamps.seq == seq {
                (stamps.report_in, stamps.report_handed) = (self.venue_in, handed);
            }
        }
    }

    fn subscribe(&mut self, now: Nanos, table: &mut Table) {
        let sent = table
            .session_mut(self.market)
            .send(now, b"V", Again::Resend, |e, _| {
                e.text(262, b"1");
                e.char(263, b'1');
                e.unsigned(264, 5);
                e.char(265, b'1');
                e.unsigned(267, 2);
                e.char(269, b'0');
                e.char(269, b'1');
                e.unsigned(146, 1);
                e.text(tag::SYMBOL, SYMBOL.as_bytes());
            });
        self.is_subscribed = sent.is_ok();
    }
}

impl Handler for Trader {
    #[inline]
    fn on_event(&mut self, now: Nanos, id: SessionId, event: &Event, table: &mut Table) {
        match event {
            Event::Message { .. } if id == self.market => self.on_market(now, table),
            Event::Message { .. } => self.on_report(table),
            // Every report came before it, on the same connection.
            Event::Disconnect { .. } if id == self.venue => self.is_over = self.is_subscribed,
            _ => {}
        }
    }

    #[inline]
    fn on_wire(&mut self, _: Nanos, id: SessionId, way: Way, _: &[u8]) {
        match way {
            Way::In if id == self.market => self.market_in = tsc(),
            Way::In => self.venue_in = tsc(),
            Way::Out if id == self.venue && self.unsent < self.kept.len() => {
                let now = tsc();
                self.kept[self.unsent..]
                    .iter_mut()
                    .for_each(|stamps| stamps.sent = now);
                self.unsent = self.kept.len();
            }
            Way::Out => {}
        }
    }

    fn turn(&mut self, now: Nanos, engine: &mut Engine) -> Result<Flow, Error> {
        if !self.is_subscribed {
            // Reports must have where to come from before the first order.
            let is_on = |id| engine.table.session(id).status() == tickwire_fix::Status::Active;
            if is_on(self.market) && is_on(self.venue) {
                self.subscribe(now, &mut engine.table);
            }
        }
        Ok(if self.is_over { Flow::End } else { Flow::Go })
    }
}
