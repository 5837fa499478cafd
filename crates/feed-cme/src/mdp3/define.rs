//! Instrument definitions: the directory.

use super::event::{Moment, Tail, about};
use super::{Mdp3Decoder, Mdp3Terms};
use crate::decoder::Context;
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, Nanos, Price, Qty, Symbol,
    Venue,
};
use tickwire_wire_cme::mdp3::{Body, indicator};

/// What the decoder needs of a definition, whatever its kind.
struct Definition {
    security_id: i32,
    symbol: Option<Symbol>,
    security_group: [u8; 6],
    asset: [u8; 6],
    tick: Option<Price>,
    is_deleted: bool,
    total: Option<u32>,
    time: u64,
    status: Option<u8>,
    /// Depth of the real and of the implied book, if said.
    depth: [Option<u8>; 2],
}

/// The six kinds of definition share the names of these fields.
macro_rules! definition {
    ($message:expr) => {{
        let (message, root) = ($message, $message.root.get());
        let mut depth = [None; 2];
        for feed in message.feed_types {
            // A book that is not listed beside another one is not kept.
            let depths = u8::try_from(feed.market_depth).ok();
            match feed.feed_type.trimmed() {
                b"GBX" => depth = [depths, depth[1].or(Some(0))],
                b"GBI" => depth = [depth[0], depths],
                _ => {}
            }
        }
        Definition {
            security_id: root.security_id.get(),
            symbol: Symbol::new(root.symbol.trimmed()),
            security_group: root.security_group.0,
            asset: root.asset.0,
            tick: Option::from(root.min_price_increment.price()),
            is_deleted: root.security_update_action.0 == b'D',
            total: root.total_reports.get().map(|n| n.get()),
            time: root.last_update_time.get(),
            status: root.trading_status.get(),
            depth,
        }
    }};
}

impl Mdp3Decoder {
    /// The position of a security number, a new one if need be.
    #[cold]
    pub(super) fn enter(&mut self, security_id: i32, counters: &mut Counters) -> Option<usize> {
        let position = self.securities.enter(security_id);
        if position.is_none() {
            counters.bump(Counter::BookFull);
        }
        position.map(|position| position as usize)
    }

    /// Enters what a message defines into the directory, and tells of it if it is wanted and news: loops
    /// repeat it.
    pub(super) fn define<S: EventSink>(
        &mut self,
        context: Context,
        body: &Body<'_>,
        counters: &mut Counters,
        out: &mut Tail<'_, S>,
    ) -> u8 {
        let d = match body {
            Body::Future(m) => definition!(m),
            Body::OptionDefinition(m) => definition!(m),
            Body::Spread(m) => definition!(m),
            Body::FixedIncome(m) => definition!(m),
            Body::Repo(m) => definition!(m),
            Body::Fx(m) => definition!(m),
            _ => return 0,
        };
        let Some(index) = self.enter(d.security_id, counters) else {
            return 0;
        };
        let Some(symbol) = d.symbol else {
            crate::decoder::count_bad_value(counters);
            return 0;
        };
        let at = &Moment {
            context,
            time: Nanos(d.time),
        };
        let id = InstrumentId(index as u32);
        self.definition_loop.definitions_total = d.total.or(self.definition_loop.definitions_total);
        let terms = Mdp3Terms::of(body);
        let rule = terms.tick_rule;
        let instrument = Instrument {
            id,
            venue: Venue::Cme,
            symbol: if d.is_deleted { Symbol::EMPTY } else { symbol },
            // Of a rule, the step around zero: the finest.
            tick: d.tick.or(rule.map(|rule| rule.inside)).unwrap_or_default(),
            lot: Qty(1),
            is_test: false,
        };
        self.terms[index] = terms;
        let known = &mut self.known[index];
        let is_joining = self.filter.is_joining(id);
        let was_wanted = is_joining || self.filter.has(id);
        let Some(before) = self.filter.enter(instrument) else {
            return 0;
        };
        let is_news = (before, known.defined_at) != (instrument, d.time);
        (known.security_group, known.asset, known.defined_at) = (d.security_group, d.asset, d.time);
        if !is_news {
            return indicator::END_OF_EVENT;
        }
        match (before.symbol.is_empty(), d.is_deleted) {
            (true, false) => self.definition_loop.definitions += 1,
            (false, true) => self.definition_loop.definitions -= 1,
            _ => {}
        }
        self.latest = None;
        if let Some(rows) = self.rows.get_mut(index) {
            for (is_implied, depth) in [false, true].into_iter().zip(d.depth) {
                if let Some(depth) = depth {
                    rows.set_depth(is_implied, depth);
                }
            }
        }
        let is_wanted = self.filter.subscriptions().wants(&symbol);
        if is_joining && !is_wanted {
            self.leave(index);
        } else if !is_joining {
            self.filter.set_open(id, is_wanted);
        }
        if is_wanted {
            let kind = if d.is_deleted {
                EventKind::Clear
            } else {
                EventKind::Definition
            };
            out.push(about(at, kind, index));
        }
        // The loop names what has been trading already.
        if is_wanted && !was_wanted && self.last_packet > 0 && context.flags.has(EventFlags::SNAPSHOT) {
            self.begin_join(index, self.last_packet + 1);
            out.push(about(at, EventKind::Gap, index));
        }
        if d.is_deleted {
            self.note_status(index, 0, 0);
        } else if let Some(code) = d.status.filter(|_| self.known[index].status == 0) {
            self.status_of(at, index, code, [0; 8], out);
        }
        indicator::END_OF_EVENT
    }
}
