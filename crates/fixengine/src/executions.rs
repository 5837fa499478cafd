//! Executions in FIX messages: ExecutionReport (8) of a trade, and what takes one back.

use std::path::Path;

use tickwire_fix::tag;
use tickwire_market::{Price, Side};

use crate::error::Error;
use crate::message::{self, Framer, TagValue};
use crate::messagefile;

const EXEC_REF_ID: u32 = 19;
const EXEC_TRANS_TYPE: u32 = 20;
const EXEC_TYPE: u32 = 150;
const LAST_PX: u32 = 31;
const LAST_QTY: u32 = 32;
const SIDE: u32 = 54;
const EXEC_ID: u32 = 17;
const SYMBOL: u32 = 55;

/// What a message says was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// A trade of ours: who gets the report bought or sold.
    Trade {
        /// ExecID (17).
        id: String,
        /// Symbol (55).
        symbol: String,
        /// Side (54): bought or sold.
        side: Side,
        /// LastQty (32).
        qty: u64,
        /// LastPx (31).
        price: Price,
    },
    /// The venue takes an execution back: its ExecID, here ExecRefID (19).
    TakenBack {
        /// The ExecID of what is taken back.
        of: String,
    },
}

/// Those in a message log, a store, or any file with a message a line. `session`: a CompID that one end must
/// have.
///
/// # Errors
/// The file cannot be read.
pub fn of_file(path: &Path, session: Option<&str>, mut each: impl FnMut(Report)) -> Result<(), Error> {
    messagefile::messages(path, &mut |bytes| {
        if let Some(report) = report(&message::fields(bytes), session) {
            each(report);
        }
    })
}

/// Those in streams of bytes, one of each connection.
pub fn of_streams(streams: &[Vec<u8>], session: Option<&str>, mut each: impl FnMut(Report)) {
    for stream in streams {
        Framer::default().take(stream, |bytes| {
            if let Some(report) = report(&message::fields(bytes), session) {
                each(report);
            }
        });
    }
}

/// FIX 4.0 to 4.2 say by ExecTransType (20) whether it is new (0), and by ExecType (150) or LastShares (32)
/// whether it is a fill; later versions by ExecType: F a trade, H one taken back.
fn report(fields: &[TagValue], session: Option<&str>) -> Option<Report> {
    let text = |wanted: u32| {
        let found = fields.iter().find(|(tag, _)| *tag == wanted);
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    };
    if text(tag::MSG_TYPE)? != "8" {
        return None;
    }
    let is_of = |id: &str| {
        [tag::SENDER_COMP_ID, tag::TARGET_COMP_ID]
            .iter()
            .any(|end| text(*end) == Some(id))
    };
    if session.is_some_and(|id| !is_of(id)) {
        return None;
    }
    if text(EXEC_TYPE) == Some("H") || text(EXEC_TRANS_TYPE) == Some("1") {
        return Some(Report::TakenBack {
            of: text(EXEC_REF_ID)?.into(),
        });
    }
    let is_trade = match text(EXEC_TYPE) {
        Some("F" | "1" | "2") => true,
        None => text(EXEC_TRANS_TYPE) == Some("0"),
        _ => false,
    };
    let qty = text(LAST_QTY)
        .and_then(|qty| qty.split('.').next()?.parse().ok())
        .filter(|qty| *qty > 0)?;
    let side = match text(SIDE)? {
        "1" | "3" => Side::Bid,
        "2" | "4" | "5" | "6" => Side::Ask,
        _ => return None,
    };
    is_trade.then_some(Report::Trade {
        id: text(EXEC_ID)?.into(),
        symbol: text(SYMBOL)?.into(),
        side,
        qty,
        price: Price::parse(text(LAST_PX)?.as_bytes()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Report> {
        report(&message::parse(text).expect("tag=value"), Some("QUOTER"))
    }

    #[test]
    fn trades_of_every_version_are_found_and_nothing_else() {
        let head = "35=8|49=EXCHANGE|56=QUOTER|17=E1|55=ES|54=5|32=3|31=12.5|";
        let sold = Report::Trade {
            id: "E1".into(),
            symbol: "ES".into(),
            side: Side::Ask,
            qty: 3,
            price: Price::parse(b"12.5").expect("a price"),
        };
        for rest in ["150=F", "150=1|20=0", "20=0"] {
            assert_eq!(of(&format!("{head}{rest}")), Some(sold.clone()), "{rest}");
        }
        for rest in ["150=0", "150=4", "150=I", "20=3"] {
            assert_eq!(of(&format!("{head}{rest}")), None, "{rest}");
        }
        let back = Some(Report::TakenBack { of: "E0".into() });
        assert_eq!(of(&format!("{head}19=E0|150=H")), back);
        assert_eq!(of(&format!("{head}19=E0|20=1|150=2")), back);
        let other = head.replace("QUOTER", "RIVAL");
        assert_eq!(of(&format!("{other}150=F")), None);
    }
}
