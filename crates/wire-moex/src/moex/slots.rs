//! Where the fields that are read stand in the templates of a file.

use alloc::vec::Vec;

use crate::fast::{Plan, SequenceRef, Slot, TemplateRef};

use super::{MessageKind, MissingField, tag};

/// Slots of one level (a message or the entries of a sequence), by tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub(super) seq: Slot,
    pub(super) sending_time: Slot,
    pub(super) symbol: Slot,
    pub(super) board: Slot,
    pub(super) session: Slot,
    pub(super) rpt_seq: Slot,
    pub(super) action: Slot,
    pub(super) kind: Slot,
    pub(super) id: Slot,
    pub(super) price: Slot,
    pub(super) size: Slot,
    pub(super) date: Slot,
    pub(super) time: Slot,
    pub(super) orig_time: Slot,
    pub(super) order_status: Slot,
    pub(super) order_side: Slot,
    pub(super) ref_order: Slot,
    pub(super) trade_value: Slot,
    pub(super) last_seq_processed: Slot,
    pub(super) last_fragment: Slot,
    pub(super) route_first: Slot,
    pub(super) session_status: Slot,
    pub(super) security_status: Slot,
    pub(super) trading_status: Slot,
    pub(super) auction: Slot,
    pub(super) text: Slot,
    pub(super) total_reports: Slot,
    pub(super) description: Slot,
    pub(super) currency: Slot,
    pub(super) min_price_increment: Slot,
    pub(super) face_value: Slot,
    pub(super) round_lot: Slot,
    pub(super) target: Slot,
    pub(super) heartbeat_interval: Slot,
    pub(super) version: Slot,
}

impl Slots {
    fn resolve(slot: impl Fn(u32) -> Slot) -> Slots {
        Slots {
            seq: slot(tag::SEQ),
            sending_time: slot(tag::SENDING_TIME),
            symbol: slot(tag::SYMBOL),
            board: slot(tag::BOARD),
            session: slot(tag::SESSION),
            rpt_seq: slot(tag::RPT_SEQ),
            action: slot(tag::ACTION),
            kind: slot(tag::ENTRY_TYPE),
            id: slot(tag::ENTRY_ID),
            price: slot(tag::ENTRY_PX),
            size: slot(tag::ENTRY_SIZE),
            date: slot(tag::ENTRY_DATE),
            time: slot(tag::ENTRY_TIME),
            orig_time: slot(tag::ORIG_TIME),
            order_status: slot(tag::ORDER_STATUS),
            order_side: slot(tag::ORDER_SIDE),
            ref_order: slot(tag::REF_ORDER),
            trade_value: slot(tag::TRADE_VALUE),
            last_seq_processed: slot(tag::LAST_SEQ_PROCESSED),
            last_fragment: slot(tag::LAST_FRAGMENT),
            route_first: slot(tag::ROUTE_FIRST),
            session_status: slot(tag::SESSION_STATUS),
            security_status: slot(tag::SECURITY_STATUS),
            trading_status: slot(tag::TRADING_STATUS),
            auction: slot(tag::AUCTION),
            text: slot(tag::TEXT),
            total_reports: slot(tag::TOTAL_REPORTS),
            description: slot(tag::DESCRIPTION),
            currency: slot(tag::CURRENCY),
            min_price_increment: slot(tag::MIN_PRICE_INCREMENT),
            face_value: slot(tag::FACE_VALUE),
            round_lot: slot(tag::ROUND_LOT),
            target: slot(tag::TARGET),
            heartbeat_interval: slot(tag::HEARTBEAT_INTERVAL),
            version: slot(tag::VERSION),
        }
    }
}

/// Where the fields of one template are.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) kind: MessageKind,
    pub(super) template: u32,
    pub(super) head: Slots,
    /// Market data entries, or the market segments of a definition.
    pub(super) entries: Option<(SequenceRef, Slots)>,
    /// The boards of a market segment.
    pub(super) boards: Option<(SequenceRef, Slots)>,
}

impl View {
    fn resolve(plan: &Plan, template: TemplateRef<'_>) -> Result<View, MissingField> {
        let kind = MessageKind::of(&template);
        let head = Slots::resolve(|tag| template.slot(tag));
        let of = |sequence: SequenceRef| (sequence, Slots::resolve(|tag| plan.entry_slot(&sequence, tag)));
        let groups = if kind == MessageKind::SecurityDefinition {
            tag::SEGMENTS
        } else {
            tag::ENTRIES
        };
        let sequence = template.sequence(groups);
        let nested = sequence.and_then(|s| plan.nested_sequence(&s, tag::SESSION_RULES));
        let missing = |tag| MissingField {
            template: template.id(),
            tag,
        };
        let (in_head, in_entries) = kind.needs();
        if let Some(&tag) = in_head.iter().find(|&&tag| !template.slot(tag).exists()) {
            return Err(missing(tag));
        }
        if !in_entries.is_empty() {
            let sequence = sequence.ok_or(missing(groups))?;
            if let Some(&tag) = in_entries
                .iter()
                .find(|&&tag| !plan.entry_slot(&sequence, tag).exists())
            {
                return Err(missing(tag));
            }
        }
        Ok(View {
            kind,
            template: template.id(),
            head,
            entries: sequence.map(of),
            boards: nested.map(of),
        })
    }
}

pub(super) fn views(plan: &Plan) -> Result<Vec<View>, MissingField> {
    plan.templates().map(|t| View::resolve(plan, t)).collect()
}
