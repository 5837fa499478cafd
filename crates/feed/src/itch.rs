//! Nasdaq TotalView-ITCH 5.0 (revision 2026-02-19) to [`MarketEvent`]s; Nasdaq, Nasdaq Texas and PSX.
//!
//! A message enters as bytes. Its type and stock locate, the first three bytes, decide whether anyone wants it; only
//! then is it read further. What comes out:
//!
//! | message | event |
//! |---|---|
//! | `A` `F` `E` `C` `X` `D` `U` | `Add` `Add` `Execute` `Execute` `Reduce` `Delete` `Replace` |
//! | `P` `Q` `B` | `Trade` `Trade` `TradeBreak` |
//! | `I` | `Imbalance` |
//! | `R` | `Definition`, and the instrument directory |
//! | `H`, `h` of this market | `Status` of the instrument |
//! | `S` | `Status` of the whole feed, `code[0]` = event code |
//! | any of the first row that is malformed | `Gap` of the instrument: its book may be wrong |
//! | `Y` `L` `V` `W` `K` `J` `N` `O` | none: they change neither a book nor whether it trades (a breach of the market-wide circuit breaker halts by `H`) |

use crate::decoder::{Context, Decoder, Seen, Subscriptions};
use alloc::{boxed::Box, vec, vec::Vec};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos,
    OrderId, Price, Qty, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_wire::Malformed;
use tickwire_wire::itch50::{self, ImbalanceDirection, Message, side};
use tickwire_wire::layout::Char;

/// What an [`ItchDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct ItchConfig {
    /// Nasdaq, Nasdaq Texas or PSX.
    pub venue: Venue,
    /// Midnight in New York of the session's day, since the Unix epoch; 0 if the day is not known, and venue times
    /// then count from midnight.
    pub midnight: Nanos,
    /// The highest stock locate plus 1, at most 65 536 (the default). A message beyond it is malformed.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for ItchConfig {
    fn default() -> ItchConfig {
        ItchConfig {
            venue: Venue::Nasdaq,
            midnight: Nanos::ZERO,
            instruments_max: 1 << 16,
            symbols: None,
        }
    }
}

/// The decoder. All memory is taken at construction: a directory entry and a counter per instrument.
pub struct ItchDecoder {
    venue: Venue,
    midnight: Nanos,
    subscriptions: Subscriptions,
    by_type: Box<[Seen; 256]>,
    by_instrument: Box<[Seen]>,
    directory: Box<[Instrument]>,
}

impl ItchDecoder {
    /// A decoder with an empty directory.
    pub fn new(config: ItchConfig) -> ItchDecoder {
        let instruments = config.instruments_max.clamp(1, 1 << 16) as usize;
        ItchDecoder {
            venue: config.venue,
            midnight: config.midnight,
            subscriptions: Subscriptions::new(instruments, config.symbols.as_deref()),
            by_type: Box::new([Seen::default(); 256]),
            by_instrument: vec![Seen::default(); instruments].into(),
            directory: vec![Instrument::default(); instruments].into(),
        }
    }

    /// The instruments of the directory so far, by number.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.directory.iter().filter(|i| !i.symbol.is_empty())
    }

    /// The number of a symbol, if the directory has it. A search: not for the way of a packet.
    pub fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.instruments().find(|i| i.symbol == *symbol).map(|i| i.id)
    }

    /// Lets a symbol through from now on. Its number, if it is known already; its book then lacks the past.
    pub fn subscribe(&mut self, symbol: Symbol) -> Option<InstrumentId> {
        let id = self.find(&symbol);
        self.subscriptions.subscribe(symbol, id);
        id
    }

    /// Stops letting a symbol through. Its number, if it is known.
    pub fn unsubscribe(&mut self, symbol: &Symbol) -> Option<InstrumentId> {
        let id = self.find(symbol);
        self.subscriptions.unsubscribe(symbol, id);
        id
    }

    /// Which instruments are let through.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Messages of a type, by its byte.
    pub fn seen_of_type(&self, kind: u8) -> Seen {
        self.by_type[kind as usize]
    }

    /// Messages of an instrument.
    pub fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.by_instrument.get(id.index()).copied().unwrap_or_default()
    }

    /// What a message says, `None` if it is not for a book or its readers.
    #[inline(always)]
    fn event(&mut self, context: Context, bytes: &[u8]) -> Result<Option<MarketEvent>, Malformed> {
        let message = itch50::parse(bytes)?;
        let event = match message {
            Message::AddOrder(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                side: side_at(19, m.side)?,
                qty: shares(m.shares.get()),
                price: m.price.price(),
                ..self.about(context, EventKind::Add, m.locate.get(), m.timestamp.get())
            },
            Message::AddOrderMpid(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                side: side_at(19, m.side)?,
                qty: shares(m.shares.get()),
                price: m.price.price(),
                code: code(m.attribution.trimmed()),
                ..self.about(context, EventKind::Add, m.locate.get(), m.timestamp.get())
            },
            Message::OrderExecuted(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                qty: shares(m.executed_shares.get()),
                ref_id: m.match_number.get(),
                ..self.about(context, EventKind::Execute, m.locate.get(), m.timestamp.get())
            },
            Message::OrderExecutedWithPrice(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                qty: shares(m.executed_shares.get()),
                ref_id: m.match_number.get(),
                price: m.execution_price.price(),
                flags: context
                    .flags
                    .with(printable(m.printable)?)
                    .with(EventFlags::AT_OTHER_PRICE),
                ..self.about(context, EventKind::Execute, m.locate.get(), m.timestamp.get())
            },
            Message::OrderCancel(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                qty: shares(m.cancelled_shares.get()),
                ..self.about(context, EventKind::Reduce, m.locate.get(), m.timestamp.get())
            },
            Message::OrderDelete(m) => MarketEvent {
                order_id: OrderId(m.order_ref.get()),
                ..self.about(context, EventKind::Delete, m.locate.get(), m.timestamp.get())
            },
            Message::OrderReplace(m) => MarketEvent {
                order_id: OrderId(m.original_order_ref.get()),
                ref_id: m.new_order_ref.get(),
                qty: shares(m.shares.get()),
                price: m.price.price(),
                ..self.about(context, EventKind::Replace, m.locate.get(), m.timestamp.get())
            },
            Message::Trade(m) => MarketEvent {
                qty: shares(m.shares.get()),
                price: m.price.price(),
                ref_id: m.match_number.get(),
                flags: context.flags.with(EventFlags::NO_SIDE),
                ..self.about(context, EventKind::Trade, m.locate.get(), m.timestamp.get())
            },
            Message::CrossTrade(m) => MarketEvent {
                qty: Volume(m.shares.get()),
                price: m.cross_price.price(),
                ref_id: m.match_number.get(),
                code: code(&[m.cross_type.0]),
                flags: context.flags.with(EventFlags::NO_SIDE),
                ..self.about(context, EventKind::Trade, m.locate.get(), m.timestamp.get())
            },
            Message::BrokenTrade(m) => MarketEvent {
                ref_id: m.match_number.get(),
                ..self.about(context, EventKind::TradeBreak, m.locate.get(), m.timestamp.get())
            },
            Message::NetOrderImbalance(m) => self.imbalance(context, m)?,
            Message::StockDirectory(m) => return self.define(context, m),
            Message::StockTradingAction(m) => MarketEvent {
                status: trading_status(m.trading_state)?,
                code: code(m.reason.trimmed()),
                ..self.about(context, EventKind::Status, m.locate.get(), m.timestamp.get())
            },
            Message::OperationalHalt(m) if own_market(self.venue) == m.market_code.0 => MarketEvent {
                status: operational_status(m.action)?,
                code: code(&[m.market_code.0]),
                ..self.about(context, EventKind::Status, m.locate.get(), m.timestamp.get())
            },
            Message::SystemEvent(m) => MarketEvent {
                instrument: InstrumentId::WHOLE_FEED,
                status: system_status(m.event)?,
                code: code(&[m.event.0]),
                ..self.about(context, EventKind::Status, 0, m.timestamp.get())
            },
            Message::OperationalHalt(_)
            | Message::RegShoRestriction(_)
            | Message::MarketParticipantPosition(_)
            | Message::MwcbDeclineLevel(_)
            | Message::MwcbStatus(_)
            | Message::IpoQuotingPeriodUpdate(_)
            | Message::LuldAuctionCollar(_)
            | Message::RetailInterest(_)
            | Message::DirectListing(_)
            | Message::EndOfSnapshot(_) => return Ok(None),
        };
        Ok(Some(event))
    }

    #[inline(always)]
    fn about(&self, context: Context, kind: EventKind, locate: u16, timestamp: u64) -> MarketEvent {
        MarketEvent {
            seq: context.seq,
            venue_ts: self.midnight.after(timestamp),
            recv_ts: context.received,
            instrument: InstrumentId(locate.into()),
            venue: self.venue,
            kind,
            flags: context.flags,
            ..MarketEvent::default()
        }
    }

    #[inline(never)]
    fn imbalance(&self, context: Context, m: &itch50::NetOrderImbalance) -> Result<MarketEvent, Malformed> {
        let direction = ImbalanceDirection::from_wire(m.direction.0).ok_or_else(|| bad(27, m.direction))?;
        let (side, no_side) = match direction {
            ImbalanceDirection::Buy => (Side::Bid, EventFlags::NONE),
            ImbalanceDirection::Sell => (Side::Ask, EventFlags::NONE),
            _ => (Side::Bid, EventFlags::NO_SIDE),
        };
        Ok(MarketEvent {
            side,
            qty: Volume(m.paired_shares.get()),
            imbalance_qty: Volume(m.imbalance_shares.get()),
            price: m.reference_price.price(),
            near_price: m.near_price.price(),
            far_price: m.far_price.price(),
            code: code(&[m.cross_type.0, m.price_variation.0]),
            flags: context.flags.with(no_side),
            ..self.about(context, EventKind::Imbalance, m.locate.get(), m.timestamp.get())
        })
    }

    /// An order message that cannot be read is a message missing for its book: it is stale from here on.
    #[cold]
    fn distrust<S: EventSink>(&self, context: Context, id: InstrumentId, message: &[u8], sink: &mut S) {
        if matches!(
            message.first(),
            Some(b'A' | b'F' | b'E' | b'C' | b'X' | b'D' | b'U')
        ) {
            sink.on_event(&MarketEvent {
                instrument: id,
                ref_id: context.seq.next().0,
                ..self.about(context, EventKind::Gap, 0, 0)
            });
        }
    }

    /// Enters an instrument into the directory, and tells of it if it is wanted.
    #[inline(never)]
    fn define(
        &mut self,
        context: Context,
        m: &itch50::StockDirectory,
    ) -> Result<Option<MarketEvent>, Malformed> {
        let id = InstrumentId(m.locate.get().into());
        let symbol = m.stock.symbol().ok_or(Malformed::OutOfRange { offset: 11 })?;
        let entry = self
            .directory
            .get_mut(id.index())
            .ok_or(Malformed::OutOfRange { offset: 1 })?;
        *entry = Instrument {
            id,
            venue: self.venue,
            symbol,
            tick: Price::default(),
            lot: Qty(m.round_lot_size.get()),
            is_test: m.authenticity.0 == b'T',
        };
        self.subscriptions.learn(id, &symbol);
        let wanted = self.subscriptions.has(id);
        Ok(wanted.then(|| self.about(context, EventKind::Definition, m.locate.get(), m.timestamp.get())))
    }
}

impl Decoder for ItchDecoder {
    fn venue(&self) -> Venue {
        self.venue
    }

    #[inline(always)]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (Some(locate), Some(&kind)) = (itch50::stock_locate(message), message.first()) else {
            // An empty block uses a number and says nothing; one or two bytes are a cut message.
            counters.add(Counter::Malformed, u64::from(!message.is_empty()));
            return;
        };
        let id = InstrumentId(locate.into());
        let (by_type, by_instrument) = (
            &mut self.by_type[kind as usize],
            self.by_instrument.get_mut(id.index()),
        );
        let Some(by_instrument) = by_instrument else {
            counters.bump(Counter::Malformed);
            return;
        };
        by_type.seen += 1;
        by_instrument.seen += 1;
        if !self.subscriptions.has(id) && kind != itch50::StockDirectory::KIND {
            by_type.filtered += 1;
            by_instrument.filtered += 1;
            counters.bump(Counter::MessagesFiltered);
            return;
        }
        match self.event(context, message) {
            Ok(Some(event)) => sink.on_event(&event),
            Ok(None) => {}
            Err(Malformed::UnknownType(_)) => counters.bump(Counter::MessagesUnknown),
            Err(_) => {
                counters.bump(Counter::Malformed);
                self.distrust(context, id, message, sink);
            }
        }
    }

    #[inline(always)]
    fn preview<S: EventSink>(&self, message: &[u8], sink: &mut S) -> bool {
        let Some(locate) = itch50::stock_locate(message) else {
            return false;
        };
        let id = InstrumentId(locate.into());
        if !self.subscriptions.has(id) {
            return false;
        }
        match itch50::order_reference(message) {
            Some(order) => sink.upcoming(id, OrderId(order)),
            None => {
                return matches!(
                    message.first(),
                    Some(b'P' | b'Q' | b'B' | b'I' | b'R' | b'H' | b'h' | b'S')
                );
            }
        }
        true
    }

    fn restarted(&mut self) {
        self.directory.fill(Instrument::default());
        self.subscriptions.forget_numbers();
    }

    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.directory.get(id.index()).filter(|i| !i.symbol.is_empty())
    }
}

#[inline(always)]
fn shares(n: u32) -> Volume {
    Volume(n.into())
}

/// A venue code padded with NULs; at most eight bytes.
#[inline(always)]
fn code(text: &[u8]) -> [u8; 8] {
    let mut code = [0; 8];
    for (to, from) in code.iter_mut().zip(text) {
        *to = *from;
    }
    code
}

#[cold]
fn bad(offset: u16, value: Char) -> Malformed {
    Malformed::BadValue {
        offset,
        value: value.0,
    }
}

#[inline(always)]
fn side_at(offset: u16, indicator: Char) -> Result<Side, Malformed> {
    side(indicator).ok_or_else(|| bad(offset, indicator))
}

#[inline(always)]
fn printable(flag: Char) -> Result<EventFlags, Malformed> {
    match flag.0 {
        b'Y' => Ok(EventFlags::NONE),
        b'N' => Ok(EventFlags::NOT_PRINTABLE),
        _ => Err(bad(31, flag)),
    }
}

fn trading_status(state: Char) -> Result<TradingStatus, Malformed> {
    match state.0 {
        b'H' => Ok(TradingStatus::Halted),
        b'P' => Ok(TradingStatus::Paused),
        b'Q' => Ok(TradingStatus::QuoteOnly),
        b'T' => Ok(TradingStatus::Trading),
        _ => Err(bad(19, state)),
    }
}

fn operational_status(action: Char) -> Result<TradingStatus, Malformed> {
    match action.0 {
        b'H' => Ok(TradingStatus::Halted),
        b'T' => Ok(TradingStatus::Trading),
        _ => Err(bad(20, action)),
    }
}

fn system_status(event: Char) -> Result<TradingStatus, Malformed> {
    match event.0 {
        b'O' => Ok(TradingStatus::Unknown),
        b'S' => Ok(TradingStatus::PreOpen),
        b'Q' => Ok(TradingStatus::Trading),
        b'M' | b'E' | b'C' => Ok(TradingStatus::Closed),
        _ => Err(bad(11, event)),
    }
}

/// The `MarketCode` of operational halts that concern this venue.
const fn own_market(venue: Venue) -> u8 {
    match venue {
        Venue::NasdaqTexas => b'B',
        Venue::Psx => b'X',
        _ => b'Q',
    }
}
