//! Definitions and statuses of instruments.

use tickwire_market::{
    Counters, Currency, EventKind, EventSink, InstrumentId, MarketEvent, PointValue, Price, Qty,
    TradingStatus, Venue,
};
use tickwire_wire_moex::moex::{Message, MessageKind};

use crate::decoder::Context;

use super::{Instruments, instruments::board_word};

/// What a unit of the price is worth for a lot, which quantities are counted in. Boards of bonds (`TQOB`,
/// `TQCB` and the like) have prices in percent of the face value, and accrued interest beside them: of those
/// nothing is said.
pub(super) fn lot_value(currency: &[u8], board: &[u8], lot: Qty) -> Option<PointValue> {
    const BONDS: [&[u8]; 9] = [
        b"TQOB", b"TQCB", b"TQOD", b"TQOE", b"TQOY", b"TQIR", b"TQRD", b"EQOB", b"PSOB",
    ];
    if BONDS.contains(&board) {
        return None;
    }
    // The exchange still writes the rouble of before 1998.
    let currency = match currency {
        b"SUR" | b"RUR" => Currency::RUB,
        code => Currency::new(code.try_into().ok()?)?,
    };
    let units = Price::from_raw(i64::from(lot.0).checked_mul(Price::ONE_RAW)?);
    PointValue::of_contract(units, Price::from_raw(Price::ONE_RAW), currency)
}

impl Instruments {
    /// An instrument and its boards.
    pub(super) fn define<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let definition = message.definition();
        if self.definitions_total != definition.total_reports {
            self.definitions_total = definition.total_reports;
            self.definitions.clear();
        }
        for board in message.boards() {
            let before = self.held.pushed;
            let Some(index) = self.enter(context, (definition.symbol, board.board), counters, sink) else {
                continue;
            };
            let Some(known) = self.filter.instrument_mut(InstrumentId(index as u32)) else {
                continue;
            };
            let entered = *known;
            known.tick = definition.min_price_increment.unwrap_or_default();
            known.lot = Qty(board.round_lot.unwrap_or(1));
            self.values[index] = lot_value(definition.currency, board.board, known.lot);
            let is_changed = entered != *known;
            let is_new = !core::mem::replace(&mut self.followed[index].is_defined, true);
            let is_told = self.held.pushed > before;
            if (is_new || is_changed) && !is_told && self.filter.has(entered.id) {
                self.held.push(about(context, EventKind::Definition, index), sink);
            }
            self.say_status(
                context,
                index,
                message.sending_stamp(),
                board.trading_status,
                sink,
            );
        }
        self.definitions.add(message.seq());
        self.held.finish(true, sink);
    }

    /// Whether every packet of the definition loop has come.
    pub(super) fn is_defined(&self) -> bool {
        let total = self.definitions_total.filter(|&total| total > 0);
        total.is_some_and(|total| self.definitions.len() >= total)
    }

    /// The status of an instrument, or of a board where there is no symbol.
    pub(super) fn status<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (status, stamp) = (message.status(), message.sending_stamp());
        if message.kind() == MessageKind::SecurityStatus {
            if let Some(index) = self.enter(context, (status.symbol, status.board), counters, sink) {
                self.say_status(context, index, stamp, status.trading_status, sink);
            }
        } else if let Some(code) = status.session_status.and_then(board_status) {
            let board = board_word(status.board);
            for index in 1..=self.keys.len() as usize {
                if self.followed[index].board == board {
                    self.say_status(context, index, stamp, Some(code), sink);
                }
            }
        }
        self.held.finish(true, sink);
    }

    /// A clear of the whole feed has made void what was told of statuses: those that stand are told again.
    pub(super) fn say_statuses<S: EventSink>(&mut self, context: Context, sink: &mut S) {
        for index in 1..=self.keys.len() as usize {
            let (id, status) = (InstrumentId(index as u32), self.followed[index].status);
            let is_told = status != TradingStatus::Unknown;
            if is_told && (self.filter.has(id) || self.filter.joins.has(id)) {
                let event = MarketEvent {
                    status,
                    ..about(context, EventKind::Status, index)
                };
                self.held.push(event, sink);
            }
        }
        self.held.finish(true, sink);
    }

    /// A `SecurityTradingStatus` that was sent at `stamp`: told if it is a new one.
    pub(super) fn say_status<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        stamp: u64,
        code: Option<i32>,
        sink: &mut S,
    ) {
        let followed = &mut self.followed[index];
        let Some(code) = code.filter(|_| stamp >= followed.status_stamp) else {
            return;
        };
        followed.status_stamp = stamp;
        let status = trading_status(code);
        let before = core::mem::replace(&mut followed.status, status);
        if status == before {
            return;
        }
        if before == TradingStatus::Closed {
            self.closed -= 1;
        } else if status == TradingStatus::Closed {
            self.closed += 1;
            self.closed_stamp = self.closed_stamp.max(stamp);
        }
        let id = InstrumentId(index as u32);
        if self.filter.has(id) || self.filter.joins.has(id) {
            let event = MarketEvent {
                status,
                code: digits(code),
                ..about(context, EventKind::Status, index)
            };
            self.held.push(event, sink);
        }
    }
}

#[inline(always)]
pub(super) fn about(context: Context, kind: EventKind, index: usize) -> MarketEvent {
    MarketEvent {
        seq: context.seq,
        recv_ts: context.received,
        instrument: InstrumentId(index as u32),
        venue: Venue::Moex,
        kind,
        flags: context.flags,
        ..MarketEvent::default()
    }
}

/// `SecurityTradingStatus` (326) with the meaning that FIX 5.0 SP2 gives it; the exchange's own codes are
/// unknown here.
pub(super) fn trading_status(code: i32) -> TradingStatus {
    match code {
        3 | 17 | 23 => TradingStatus::Trading,
        1 | 2 | 4 => TradingStatus::Halted,
        5 | 22 | 24 | 25 => TradingStatus::Auction,
        21 => TradingStatus::PreOpen,
        18 | 19 | 26 => TradingStatus::Closed,
        _ => TradingStatus::Unknown,
    }
}

/// The `SecurityTradingStatus` that a board's `TradSesStatus` (340) implies for its instruments: of FIX's
/// values, halted and closed. 100, which the exchange sends while all is well, changes nothing.
fn board_status(code: i32) -> Option<i32> {
    match code {
        1 => Some(2),
        3 => Some(18),
        _ => None,
    }
}

/// A venue code in decimal.
fn digits(code: i32) -> [u8; 8] {
    let (mut text, mut rest) = ([0; 8], code.unsigned_abs().min(9_999_999));
    let mut length = 1;
    let mut power = 10;
    while rest >= power {
        length += 1;
        power *= 10;
    }
    for place in text[..length].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_is_worth_its_units_in_its_currency() {
        let money = |currency: &[u8], board: &[u8], lot: u32, price: &str, lots: i128| {
            let price: Price = price.parse().expect("a price");
            let value = lot_value(currency, board, Qty(lot))?;
            Some((value.money(lots * i128::from(price.raw())), value.currency()))
        };
        // Three lots of ten Sberbank shares at 285.31 roubles; two of a thousand dollars at 91.2275.
        assert_eq!(
            money(b"SUR", b"TQBR", 10, "285.31", 3),
            Some((8_559_300_000_000, Currency::RUB))
        );
        assert_eq!(
            money(b"RUB", b"CETS", 1_000, "91.2275", 2),
            Some((182_455_000_000_000, Currency::RUB))
        );
        let usd = money(b"USD", b"TQTD", 1, "12.5", 4);
        assert_eq!(usd, Some((50_000_000_000, Currency::USD)));
        // In percent of a face value, and without a currency: nothing is said.
        assert_eq!(money(b"SUR", b"TQOB", 1, "98.7", 1), None);
        assert_eq!(money(b"", b"TQBR", 10, "1", 1), None);
    }
}
