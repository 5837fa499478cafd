//! An execution report as reports usually are: no field that matters twice, every value right. Its fields are
//! asked of the message's table, each once and in the order in which they are put down. Of everything else
//! [`ExecutionReport::decode`] looks at one field after the other, which knows what is wrong first.

use super::{
    CauseFields, ExecType, ExecutionReport, OrdStatus, exec_type, order_type, side, small, symbol,
    time_in_force,
};
use crate::decode::Message;
use crate::reject::Fault;
use crate::tag;
use crate::text::Reason;
use tickwire_market::Price;

/// The fields that are read, of tags below 640, a bit each; besides them there are those of a cause.
const READ: [u64; 10] = {
    const TAGS: [u32; 23] = [
        tag::ORDER_ID,
        tag::EXEC_ID,
        tag::EXEC_TYPE,
        tag::ORD_STATUS,
        tag::SYMBOL,
        tag::SIDE,
        tag::LEAVES_QTY,
        tag::CUM_QTY,
        tag::AVG_PX,
        tag::CL_ORD_ID,
        tag::ORIG_CL_ORD_ID,
        tag::ORD_REJ_REASON,
        tag::ORDER_QTY,
        tag::ORD_TYPE,
        tag::PRICE,
        tag::TIME_IN_FORCE,
        tag::LAST_QTY,
        tag::LAST_PX,
        tag::TRANSACT_TIME,
        tag::TEXT,
        tag::EXEC_TRANS_TYPE,
        tag::STOP_PX,
        tag::WORKING_INDICATOR,
    ];
    let mut bits = [0; 10];
    let mut i = 0;
    while i < TAGS.len() {
        bits[TAGS[i] as usize / 64] |= 1 << (TAGS[i] % 64);
        i += 1;
    }
    bits
};

fn is_read(tag: u32) -> bool {
    match READ.get(tag as usize / 64) {
        Some(bits) => bits >> (tag % 64) & 1 != 0,
        None => matches!(tag, tag::CAUSE_VENUE | tag::CAUSE_SEQ | tag::CAUSE_RECV_TS),
    }
}

/// Puts down what the report says, in place of one that says nothing.
// By reference and not inlined: a report that is returned goes piece by piece through every branch.
#[inline(never)]
pub(super) fn read(m: &Message<'_>, out: &mut Result<ExecutionReport, Fault>) {
    let is_read = out
        .as_mut()
        .is_ok_and(|out| m.lists_all(is_read) && read_listed(m, out).is_some());
    if !is_read {
        *out = ExecutionReport::of_any_fields(m);
    }
}

#[inline(always)]
fn read_listed(m: &Message<'_>, out: &mut ExecutionReport) -> Option<()> {
    let at = |tag| m.listed(tag);
    // Fields that must be there.
    m.text_to(at(tag::ORDER_ID)?, &mut out.order_id)?;
    m.text_to(at(tag::EXEC_ID)?, &mut out.exec_id)?;
    out.exec_type = exec_type(m.char(at(tag::EXEC_TYPE)?).ok()?)?;
    out.ord_status = OrdStatus::from_char(m.char(at(tag::ORD_STATUS)?).ok()?)?;
    out.symbol = symbol(m, at(tag::SYMBOL)?).ok()?;
    out.side = side(m, at(tag::SIDE)?).ok()?;
    out.leaves_qty = m.qty(at(tag::LEAVES_QTY)?).ok()?;
    out.cum_qty = m.qty(at(tag::CUM_QTY)?).ok()?;
    out.avg_px = m.price(at(tag::AVG_PX)?).ok()?;
    // And others.
    if let Some(f) = at(tag::CL_ORD_ID) {
        m.text_to(f, &mut out.cl_ord_id)?;
    }
    if let Some(f) = at(tag::ORIG_CL_ORD_ID) {
        m.text_to(f, &mut out.orig_cl_ord_id)?;
    }
    if let Some(f) = at(tag::ORD_REJ_REASON) {
        out.ord_rej_reason = Some(small(m, f).ok()?);
    }
    if let Some(f) = at(tag::ORDER_QTY) {
        out.qty = m.qty(f).ok()?;
    }
    let mut is_stop = None;
    if let Some(f) = at(tag::ORD_TYPE) {
        let (order_type, has_trigger) = order_type(m, f).ok()?;
        (out.order_type, is_stop) = (order_type, Some(has_trigger));
    }
    if let Some(f) = at(tag::PRICE) {
        out.price = Some(m.price(f).ok()?);
    }
    if let Some(f) = at(tag::TIME_IN_FORCE) {
        out.time_in_force = time_in_force(m, f).ok()?;
    }
    if let Some(f) = at(tag::LAST_QTY) {
        out.last_qty = m.qty(f).ok()?;
    }
    if let Some(f) = at(tag::LAST_PX) {
        out.last_px = Some(m.price(f).ok()?);
    }
    if let Some(f) = at(tag::TRANSACT_TIME) {
        out.transact_time = m.timestamp(f).ok()?;
    }
    if let Some(f) = at(tag::TEXT) {
        out.text = Reason::lossy(m.value(f));
    }
    if let Some(f) = at(tag::EXEC_TRANS_TYPE) {
        out.exec_type = transacted(out.exec_type, Some(m.char(f).ok()?))?;
    }
    if let Some(f) = at(tag::STOP_PX) {
        out.stop = Some(m.price(f).ok()?);
    }
    if let Some(f) = at(tag::WORKING_INDICATOR) {
        out.is_working = m.boolean(f).ok()?;
    }
    (out.stop, out.is_working) = triggered(out.stop, is_stop, out.is_working);
    let mut cause = CauseFields::default();
    for tag in [tag::CAUSE_VENUE, tag::CAUSE_SEQ, tag::CAUSE_RECV_TS] {
        if let Some(f) = at(tag) {
            cause.read(m, f).ok()?;
        }
    }
    out.cause = cause.cause();
    Some(())
}

/// ExecType by ExecTransType (20), which is "new" unless it says else; `None` if the report corrects another.
pub(super) fn transacted(exec_type: ExecType, transaction: Option<u8>) -> Option<ExecType> {
    match transaction {
        None | Some(b'0') => Some(exec_type),
        Some(b'1') => Some(ExecType::TradeCancel),
        Some(b'3') => Some(ExecType::OrderStatus),
        Some(_) => None,
    }
}

/// The trigger of an order, and whether it was triggered: a venue may leave out what it was told, or send a
/// trigger of 0 with every order.
pub(super) fn triggered(
    stop: Option<Price>,
    is_stop: Option<bool>,
    is_working: bool,
) -> (Option<Price>, bool) {
    let stop = stop.filter(|stop| match is_stop {
        None => false,
        Some(true) => true,
        Some(false) => *stop > Price::ZERO,
    });
    (stop, stop.is_some() && (is_working || is_stop == Some(false)))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{Index, naive};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Every field that is read, right.
    const FIELDS: [(u32, &str); 26] = [
        (37, "5000000001"),
        (17, "E-7"),
        (150, "F"),
        (39, "1"),
        (55, "WIRE"),
        (54, "2"),
        (151, "60"),
        (14, "40"),
        (6, "187.2501"),
        (11, "0000000000000042"),
        (41, "an id of 23 characters,"),
        (103, "99"),
        (38, "100"),
        (40, "4"),
        (44, "187.25"),
        (59, "1"),
        (32, "40"),
        (31, "187.2"),
        (60, "20261121-01:55:41.123"),
        (58, "a text"),
        (20, "0"),
        (99, "190"),
        (636, "Y"),
        (20_001, "1"),
        (20_002, "12345678901"),
        (20_003, "1795226141123456789"),
    ];
    /// Others: one that is not read, and ones that share a slot with one that is.
    const OTHERS: [(u32, &str); 4] = [(1, "ACCOUNT"), (1_061, "x"), (1_079, "y"), (545, "z")];

    /// Values that are wrong for most.
    const WRONG: [&str; 10] = [
        "0",
        "3",
        "N",
        "Z",
        "x",
        "1.5",
        "-1",
        ".",
        "99999999999",
        "a longer text, of more than 23",
    ];

    fn message(fields: &[(u32, &str)]) -> Vec<u8> {
        let header = [
            (35, "8"),
            (34, "7"),
            (49, "V"),
            (52, "20261121-01:55:41"),
            (56, "T"),
        ];
        let all = header.iter().chain(fields);
        naive::encode(&all.map(|&(tag, value)| (tag, value.into())).collect::<Vec<_>>())
    }

    /// Both ways read the same, and the quick one what has nothing particular.
    fn agrees(fields: &[(u32, &str)], is_usual: bool) {
        let (bytes, mut index) = (message(fields), Index::new(64));
        let message = index.decode(&bytes).expect("whole");
        let plain = ExecutionReport::of_any_fields(&message);
        assert_eq!(
            ExecutionReport::decode(&message),
            plain,
            "{}",
            bytes.escape_ascii()
        );
        let mut report = ExecutionReport::EMPTY;
        let is_read = message.lists_all(is_read) && read_listed(&message, &mut report).is_some();
        assert!(is_read || !is_usual, "{}", bytes.escape_ascii());
        assert!(!is_read || plain == Ok(report), "{}", bytes.escape_ascii());
    }

    #[test]
    fn a_report_is_read_at_once_whatever_it_leaves_out_and_repeats_of_others() {
        agrees(&FIELDS, true);
        for left_out in 9..FIELDS.len() {
            let some: Vec<_> = FIELDS
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != left_out)
                .map(|(_, f)| *f)
                .collect();
            agrees(&some, true);
        }
        let mut parties = Vec::from(FIELDS);
        parties.extend([(453, "2"), (448, "A"), (452, "1"), (448, "B"), (452, "3")]);
        agrees(&parties, true);
    }

    proptest! {
        #[test]
        fn both_ways_to_read_agree(
            order in Just((0..FIELDS.len() + OTHERS.len()).collect::<Vec<_>>()).prop_shuffle(),
            left_out in prop::collection::vec(0..FIELDS.len(), 0..4),
            twice in prop::collection::vec(0..FIELDS.len() + OTHERS.len(), 0..3),
            at in prop::option::of(0..FIELDS.len()),
            value in prop::sample::select(WRONG.as_slice()),
        ) {
            let all: Vec<_> = FIELDS.into_iter().chain(OTHERS).collect();
            let fields: Vec<_> = order
                .into_iter()
                .filter(|i| !left_out.contains(i))
                .chain(twice)
                .map(|i| match at {
                    Some(at) if at == i => (all[i].0, value),
                    _ => all[i],
                })
                .collect();
            agrees(&fields, false);
        }
    }
}
