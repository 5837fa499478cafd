//! Writing messages of ASTS: what a simulated venue sends.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tickwire_market::{Nanos, Price, Side, Volume};

use crate::fast;
use crate::fast::{Decimal, Limits, Plan, Position, Record, Slot, Value};

use super::{
    Board, Definition, MessageKind, MissingField, MoexError, OrderEntry, OrderKind, PREAMBLE_LEN, Slots,
    SnapshotHeader, Status, TradeEntry, View, nanos_to_sending_time, replay, tag, views,
};

/// A template to encode with, had from [`Encoder::template`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Template {
    pub(super) id: u32,
    pub(super) view: u16,
}

/// Writes datagrams with the templates of a file: the simulator's side. Nothing is allocated after
/// [`Encoder::new`]. Fields of the typed values that a template does not have are left out; fields of a
/// template that the typed values do not have stay absent.
#[derive(Clone, Debug)]
pub struct Encoder {
    pub(super) fast: fast::Encoder,
    pub(super) record: Record,
    pub(super) views: Vec<View>,
}

impl Encoder {
    /// An encoder for a template file.
    pub fn new(plan: Arc<Plan>, limits: Limits) -> Result<Encoder, MissingField> {
        let views = views(&plan)?;
        let record = Record::new(&plan, &limits);
        Ok(Encoder {
            fast: fast::Encoder::new(plan, limits),
            record,
            views,
        })
    }

    /// The template of this name (`X-OLR-FOND`).
    pub fn template(&self, name: &str) -> Option<Template> {
        let view = self.fast.plan().templates().position(|t| t.name() == name)?;
        Some(Template {
            id: self.views.get(view)?.template,
            view: u16::try_from(view).ok()?,
        })
    }

    /// The first template of this kind whose name ends in `market` (`FOND`, `CURR`), else the first of this
    /// kind.
    pub fn find(&self, kind: MessageKind, market: &str) -> Option<Template> {
        let of_kind = || {
            let templates = self.fast.plan().templates().zip(&self.views);
            templates.enumerate().filter(|(_, (_, view))| view.kind == kind)
        };
        let named = of_kind().find(|(_, (template, _))| template.name().ends_with(market));
        let (at, (_, view)) = named.or_else(|| of_kind().next())?;
        Some(Template {
            id: view.template,
            view: u16::try_from(at).ok()?,
        })
    }

    /// An order log datagram.
    pub fn order_log(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        entries: &[OrderEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, _) = self.begin(template, MessageKind::OrderLog, seq, sent)?;
        self.entries(&view, entries, |slots, entry, put| put_order(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A fragment of an order snapshot.
    pub fn order_snapshot(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        header: &SnapshotHeader<'_>,
        entries: &[OrderEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::OrderSnapshot, seq, sent)?;
        self.put(at, |put| put_header(&view.head, header, put))?;
        self.entries(&view, entries, |slots, entry, put| put_order(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A trade log datagram.
    pub fn trades(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        entries: &[TradeEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, _) = self.begin(template, MessageKind::Trades, seq, sent)?;
        self.entries(&view, entries, |slots, entry, put| put_trade(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// A fragment of a trade snapshot.
    pub fn trade_snapshot(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        header: &SnapshotHeader<'_>,
        entries: &[TradeEntry<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::TradeSnapshot, seq, sent)?;
        self.put(at, |put| put_header(&view.head, header, put))?;
        self.entries(&view, entries, |slots, entry, put| put_trade(slots, entry, put))?;
        self.finish(seq, out)
    }

    /// An instrument's definition with its boards, each as a market segment of its own.
    pub fn definition(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        definition: &Definition<'_>,
        boards: &[Board<'_>],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let (view, at) = self.begin(template, MessageKind::SecurityDefinition, seq, sent)?;
        self.put(at, |put| put_definition(&view.head, definition, put))?;
        if let Some((segments, slots)) = view.entries {
            let mut segment = self
                .record
                .sequence(at, &segments, boards.len())
                .ok_or(MoexError::NoRoom)?;
            for board in boards {
                let lot = board
                    .round_lot
                    .map_or(Value::Absent, |lot| Value::Decimal(quantity(u64::from(lot))));
                self.put(segment, |put| put(slots.round_lot, lot))?;
                if let Some((rules, rule_slots)) = view.boards {
                    let rule = self
                        .record
                        .sequence(segment, &rules, 1)
                        .ok_or(MoexError::NoRoom)?;
                    self.put(rule, |put| put_board(&rule_slots, board, put))?;
                }
                segment = segment.next();
            }
        }
        self.finish(seq, out)
    }

    /// A status of an instrument or a board, by the kind of the template.
    pub fn status(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        status: &Status<'_>,
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let kind = self.views.get(usize::from(template.view)).map(|v| v.kind);
        let kind = kind.filter(|k| matches!(k, MessageKind::SecurityStatus | MessageKind::SessionStatus));
        let (view, at) = self.begin(template, kind.ok_or(MoexError::WrongTemplate)?, seq, sent)?;
        let slots = &view.head;
        self.put(at, |put| {
            put(slots.symbol, text(status.symbol))
                && put(slots.board, text(status.board))
                && put(slots.session, text(status.session))
                && put(slots.trading_status, signed(status.trading_status))
                && put(slots.session_status, signed(status.session_status))
                && put(slots.auction, unsigned(status.auction))
                && put(slots.text, text(status.text))
        })?;
        self.finish(seq, out)
    }

    /// The first message of a replay session (`A`) or its last (`5`, with a reason), by the kind of the
    /// template, behind its length instead of a preamble.
    pub fn session(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        client: &[u8],
        reason: &[u8],
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        let kind = self.views.get(usize::from(template.view)).map(|v| v.kind);
        let kind = kind.filter(|k| matches!(k, MessageKind::Logon | MessageKind::Logout));
        let (view, at) = self.begin(template, kind.ok_or(MoexError::WrongTemplate)?, seq, sent)?;
        self.put(at, |put| {
            put(view.head.target, Value::Ascii(client))
                && put(view.head.text, text(reason))
                && put(view.head.heartbeat_interval, Value::Signed(30))
                && put(view.head.version, Value::Ascii(b"9"))
        })?;
        let len = self.finish(seq, out)?;
        replay::put_length(&mut out[..len]);
        Ok(len)
    }

    /// A heartbeat.
    pub fn heartbeat(
        &mut self,
        template: Template,
        seq: u32,
        sent: Nanos,
        out: &mut [u8],
    ) -> Result<usize, MoexError> {
        self.begin(template, MessageKind::Heartbeat, seq, sent)?;
        self.finish(seq, out)
    }

    fn begin(
        &mut self,
        template: Template,
        kind: MessageKind,
        seq: u32,
        sent: Nanos,
    ) -> Result<(View, Position), MoexError> {
        let view = *self
            .views
            .get(usize::from(template.view))
            .ok_or(MoexError::WrongTemplate)?;
        if view.kind != kind || view.template != template.id {
            return Err(MoexError::WrongTemplate);
        }
        let at = self
            .record
            .begin(self.fast.plan(), template.id)
            .ok_or(MoexError::NoRoom)?;
        let sent = nanos_to_sending_time(sent).ok_or(MoexError::OutOfRange {
            tag: tag::SENDING_TIME,
        })?;
        self.record
            .set(at, view.head.seq, Value::Unsigned(u64::from(seq)));
        self.record.set(at, view.head.sending_time, Value::Unsigned(sent));
        Ok((view, at))
    }

    fn put(
        &mut self,
        at: Position,
        fill: impl FnOnce(&mut dyn FnMut(Slot, Value<'_>) -> bool) -> bool,
    ) -> Result<(), MoexError> {
        let record = &mut self.record;
        if fill(&mut |slot, value| record.set(at, slot, value)) {
            Ok(())
        } else {
            Err(MoexError::NoRoom)
        }
    }

    fn entries<T>(
        &mut self,
        view: &View,
        entries: &[T],
        fill: fn(&Slots, &T, &mut Put<'_>) -> bool,
    ) -> Result<(), MoexError> {
        let Some((sequence, slots)) = &view.entries else {
            return Err(MoexError::WrongTemplate);
        };
        // The message was begun just now, so that its fields start the record.
        let root = self.record.start();
        let mut at = self
            .record
            .sequence(root, sequence, entries.len())
            .ok_or(MoexError::NoRoom)?;
        for entry in entries {
            self.put(at, |put| fill(slots, entry, put))?;
            at = at.next();
        }
        Ok(())
    }

    fn finish(&mut self, seq: u32, out: &mut [u8]) -> Result<usize, MoexError> {
        let (preamble, body) = out
            .split_first_chunk_mut::<PREAMBLE_LEN>()
            .ok_or(MoexError::NoRoom)?;
        *preamble = seq.to_le_bytes();
        self.fast.reset();
        Ok(PREAMBLE_LEN + self.fast.encode(&self.record, body)?)
    }
}

type Put<'p> = dyn FnMut(Slot, Value<'_>) -> bool + 'p;

fn put_order(slots: &Slots, entry: &OrderEntry<'_>, put: &mut Put<'_>) -> bool {
    let mut digits = Digits::default();
    let id = match entry.kind {
        OrderKind::EmptyBook if entry.order_id.0 == 0 => Value::Absent,
        _ => digits.text(entry.order_id.0),
    };
    put(slots.action, Value::Unsigned(entry.action as u64))
        && put(slots.kind, Value::Ascii(entry.kind.wire()))
        && put(slots.id, id)
        && put(slots.symbol, text(entry.symbol))
        && put(slots.board, text(entry.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(entry.rpt_seq)))
        && put(slots.order_status, text(entry.order_status))
        && put(slots.session, text(entry.session))
        && put_price_and_time(slots, (entry.price, entry.qty, entry.date, entry.time), put)
}

fn put_trade(slots: &Slots, entry: &TradeEntry<'_>, put: &mut Put<'_>) -> bool {
    let (mut id, mut order) = (Digits::default(), Digits::default());
    let side = match entry.aggressor {
        Some(Side::Bid) => Value::Ascii(b"B"),
        Some(Side::Ask) => Value::Ascii(b"S"),
        None => Value::Absent,
    };
    put(slots.action, Value::Unsigned(0))
        && put(slots.kind, Value::Ascii(b"z"))
        && put(slots.id, id.text(entry.trade_id))
        && put(slots.symbol, text(entry.symbol))
        && put(slots.board, text(entry.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(entry.rpt_seq)))
        && put(slots.order_side, side)
        && put(
            slots.trade_value,
            entry.value.map_or(Value::Absent, Value::Decimal),
        )
        && put(
            slots.ref_order,
            entry.resting_order.map_or(Value::Absent, |o| order.text(o.0)),
        )
        && put(slots.session, text(entry.session))
        && put_price_and_time(slots, (entry.price, entry.qty, entry.date, entry.time), put)
}

fn put_price_and_time(
    slots: &Slots,
    (price, qty, date, time): (Option<Price>, Option<Volume>, Option<u32>, Option<Nanos>),
    put: &mut Put<'_>,
) -> bool {
    let seconds = |t: Nanos| t.0 / Nanos::SECOND;
    let hms = |s: u64| s / 3600 * 10_000 + s / 60 % 60 * 100 + s % 60;
    let micros = |t: Nanos| t.0 % Nanos::SECOND / 1_000;
    put(
        slots.price,
        price.map_or(Value::Absent, |p| Value::Decimal(Decimal::from_price(p))),
    ) && put(
        slots.size,
        qty.map_or(Value::Absent, |q| Value::Decimal(quantity(q.0))),
    ) && put(slots.date, unsigned(date))
        && put(
            slots.time,
            time.map_or(Value::Absent, |t| Value::Unsigned(hms(seconds(t)) * 1_000)),
        )
        && put(
            slots.orig_time,
            time.map_or(Value::Absent, |t| Value::Unsigned(micros(t))),
        )
}

fn put_header(slots: &Slots, header: &SnapshotHeader<'_>, put: &mut Put<'_>) -> bool {
    put(slots.symbol, text(header.symbol))
        && put(slots.board, text(header.board))
        && put(slots.rpt_seq, Value::Unsigned(u64::from(header.rpt_seq)))
        && put(slots.last_seq_processed, unsigned(header.last_seq_processed))
        && put(
            slots.route_first,
            Value::Unsigned(u64::from(header.first_fragment)),
        )
        && put(
            slots.last_fragment,
            Value::Unsigned(u64::from(header.last_fragment)),
        )
        && put(slots.session_status, signed(header.session_status))
        && put(slots.security_status, signed(header.trading_status))
        && put(slots.auction, unsigned(header.auction))
}

fn put_definition(slots: &Slots, definition: &Definition<'_>, put: &mut Put<'_>) -> bool {
    let price = |p: Option<Price>| p.map_or(Value::Absent, |p| Value::Decimal(Decimal::from_price(p)));
    put(slots.symbol, text(definition.symbol))
        && put(slots.description, text(definition.description))
        && put(slots.currency, text(definition.currency))
        && put(slots.total_reports, unsigned(definition.total_reports))
        && put(slots.min_price_increment, price(definition.min_price_increment))
        && put(slots.face_value, price(definition.face_value))
}

fn put_board(slots: &Slots, board: &Board<'_>, put: &mut Put<'_>) -> bool {
    put(slots.board, text(board.board))
        && put(slots.session, text(board.session))
        && put(slots.trading_status, signed(board.trading_status))
}

pub(super) fn text(bytes: &[u8]) -> Value<'_> {
    if bytes.is_empty() {
        Value::Absent
    } else {
        Value::Bytes(bytes)
    }
}

pub(super) fn unsigned(value: Option<u32>) -> Value<'static> {
    value.map_or(Value::Absent, |v| Value::Unsigned(u64::from(v)))
}

pub(super) fn signed(value: Option<i32>) -> Value<'static> {
    value.map_or(Value::Absent, |v| Value::Signed(i64::from(v)))
}

/// A quantity in the form in which the exchange sends it: no trailing zeros, `388e1`.
fn quantity(value: u64) -> Decimal {
    Decimal::new(i64::try_from(value).unwrap_or(i64::MAX), 0).normalised()
}

/// A number as decimal text.
#[derive(Default)]
struct Digits([u8; 20]);

impl Digits {
    fn text(&mut self, mut value: u64) -> Value<'_> {
        let mut at = self.0.len();
        loop {
            at -= 1;
            self.0[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                return Value::Ascii(&self.0[at..]);
            }
        }
    }
}
