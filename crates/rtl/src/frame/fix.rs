//! NewOrderSingle of FIX 4.4 with every number of a fixed width: leading zeros are allowed (FIX 4.4, volume
//! 1, "FIX Field Data Types"), and where each digit lies then does not change from order to order.

use tickwire_fix::{Encoder, Index, Precision, Stamp, Version, tag};
use tickwire_market::{Nanos, Qty, Side, Symbol};

use super::{Filled, PAYLOAD_AT};

/// The largest quantity that nine digits have room for.
pub const QTY_MOST: u32 = 999_999_999;
/// The highest price that five digits before and four behind the point have room for, in 1e-4.
pub const PRICE_MOST: u32 = 999_999_999;
/// The largest number of eight digits.
const NUMBER_MOST: u32 = 99_999_999;

/// What stands in every NewOrderSingle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixText {
    /// SenderCompID (49).
    pub sender: String,
    /// TargetCompID (56).
    pub target: String,
    /// Account (1).
    pub account: String,
    /// What ClOrdID (11) begins with, before its eight digits.
    pub prefix: String,
    /// Symbol (55).
    pub symbol: Symbol,
    /// TradingSessionID (336): the board.
    pub board: String,
}

/// Where in the frame of an order what is filled in: the place of the first digit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixPlaces {
    /// Bytes of the frame without FCS.
    pub frame_size: usize,
    /// MsgSeqNum: 8 digits.
    pub message: usize,
    /// SendingTime's `HH:MM:SS.mmm`.
    pub sending: usize,
    /// ClOrdID's 8 digits.
    pub order: usize,
    /// Side: one.
    pub side: usize,
    /// TransactTime's `HH:MM:SS.mmm`.
    pub transact: usize,
    /// OrderQty: 9 digits.
    pub quantity: usize,
    /// Price: 5 digits, a point, 4 digits.
    pub price: usize,
    /// CheckSum: 3 digits.
    pub check_sum: usize,
}

const ACCOUNT: u32 = 1;
const TRADING_SESSION_ID: u32 = 336;
const NO_TRADING_SESSIONS: u32 = 386;

impl FixText {
    /// The message; `None` if a text is empty or has a separator, or a number has more digits than there are
    /// places.
    pub(super) fn message(&self, order: &Filled) -> Option<Vec<u8>> {
        let fits = order.user_ref <= NUMBER_MOST
            && order.message <= NUMBER_MOST
            && order.qty.0 <= QTY_MOST
            && order.price <= PRICE_MOST;
        if !fits {
            return None;
        }
        let mut buffer = vec![0; 1_024];
        let mut stamp = Stamp::new(Precision::Millis);
        let mut e = Encoder::new(&mut buffer, Version::Fix44);
        e.text(tag::MSG_TYPE, b"D");
        e.text(tag::SENDER_COMP_ID, self.sender.as_bytes());
        e.text(tag::TARGET_COMP_ID, self.target.as_bytes());
        e.text(tag::MSG_SEQ_NUM, format!("{:08}", order.message).as_bytes());
        e.timestamp(tag::SENDING_TIME, &mut stamp, order.time);
        e.text(
            tag::CL_ORD_ID,
            format!("{}{:08}", self.prefix, order.user_ref).as_bytes(),
        );
        e.text(ACCOUNT, self.account.as_bytes());
        e.char(NO_TRADING_SESSIONS, b'1');
        e.text(TRADING_SESSION_ID, self.board.as_bytes());
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        let side = match order.side {
            Side::Bid => b'1',
            Side::Ask => b'2',
        };
        e.char(tag::SIDE, side);
        e.timestamp(tag::TRANSACT_TIME, &mut stamp, order.time);
        e.text(tag::ORDER_QTY, format!("{:09}", order.qty.0).as_bytes());
        e.char(tag::ORD_TYPE, b'2');
        let (whole, fraction) = (order.price / 10_000, order.price % 10_000);
        e.text(tag::PRICE, format!("{whole:05}.{fraction:04}").as_bytes());
        // Immediate or cancel.
        e.char(tag::TIME_IN_FORCE, b'3');
        e.finish().ok().map(<[u8]>::to_vec)
    }

    /// Where in the frame what is filled in; `None` if a text is empty or has a separator.
    pub fn places(&self) -> Option<FixPlaces> {
        let blank = Filled {
            sequence: 0,
            user_ref: 0,
            message: 0,
            time: Nanos::ZERO,
            side: Side::Bid,
            qty: Qty(0),
            price: 0,
        };
        let message = self.message(&blank)?;
        let mut index = Index::new(32);
        let read = index.decode(&message).ok()?;
        let value = |tag: u32| read.find(tag).map(|field| PAYLOAD_AT + field.offset());
        const DATE: usize = "YYYYMMDD-".len();
        Some(FixPlaces {
            frame_size: PAYLOAD_AT + message.len(),
            message: value(tag::MSG_SEQ_NUM)?,
            sending: value(tag::SENDING_TIME)? + DATE,
            order: value(tag::CL_ORD_ID)? + self.prefix.len(),
            side: value(tag::SIDE)?,
            transact: value(tag::TRANSACT_TIME)? + DATE,
            quantity: value(tag::ORDER_QTY)?,
            price: value(tag::PRICE)?,
            // The last field, and its separator behind it.
            check_sum: PAYLOAD_AT + message.len() - "nnn|".len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Link, OrderText, decimal_digits, prepared, written};
    use super::*;
    use tickwire_fix::{Frame, NewOrderSingle, frame};

    const LINK: Link = Link {
        destination_mac: [2, 0, 0, 0, 0, 2],
        source_mac: [2, 0, 0, 0, 0, 1],
        source: [10, 1, 0, 2],
        destination: [10, 1, 0, 1],
        source_port: 40_000,
        destination_port: 9_878,
        acknowledged: 7,
        window: 65_535,
    };

    fn text() -> FixText {
        FixText {
            sender: "TICKWIRE".to_string(),
            target: "MFIXTRADECURR".to_string(),
            // What looks like a field is none.
            account: "S34=1 44=2".to_string(),
            prefix: "TW".to_string(),
            symbol: Symbol::new(b"USD000UTSTOM").expect("it fits"),
            board: "CETS".to_string(),
        }
    }

    fn order() -> Filled {
        Filled {
            sequence: 0xffff_fff0,
            user_ref: 815,
            message: 4_711,
            // 2017-05-02 10:15:30.123.
            time: Nanos(1_493_720_130 * Nanos::SECOND + 123_000_000),
            side: Side::Ask,
            qty: Qty(30_007),
            price: 560_975,
        }
    }

    #[test]
    fn a_counterparty_reads_what_was_meant() {
        let written = written(&LINK, &OrderText::Fix(text()), &order()).expect("it fits");
        let message = &written[PAYLOAD_AT..];
        assert_eq!(
            frame(message, 1_024),
            Frame::Whole(message.len()),
            "its length and its checksum are right"
        );
        let mut index = Index::new(32);
        let message = index.decode(message).expect("it is a message");
        let read = NewOrderSingle::decode(&message).expect("it is an order");
        assert_eq!(read.cl_ord_id.as_bytes(), b"TW00000815");
        assert_eq!(read.symbol, Symbol::new(b"USD000UTSTOM").expect("it fits"));
        assert_eq!((read.side, read.qty), (Side::Ask, Qty(30_007)));
        assert_eq!(
            read.price.map(|price| price.to_string()),
            Some("56.0975".to_string())
        );
        assert_eq!(read.transact_time, order().time);
        assert_eq!(
            read.time_in_force,
            tickwire_market::TimeInForce::ImmediateOrCancel
        );
    }

    #[test]
    fn what_is_filled_in_lies_where_the_places_say() {
        let (text, order) = (text(), order());
        let frame = written(&LINK, &OrderText::Fix(text.clone()), &order).expect("it fits");
        let places = text.places().expect("no text is empty");
        let at =
            |place: usize, length: usize| String::from_utf8_lossy(&frame[place..place + length]).into_owned();
        assert_eq!(frame.len(), places.frame_size);
        assert_eq!(at(places.message, 8), "00004711");
        assert_eq!(at(places.order, 8), "00000815");
        assert_eq!(at(places.sending, 12), "10:15:30.123");
        assert_eq!(at(places.transact, 12), "10:15:30.123");
        assert_eq!(
            (at(places.side, 1), at(places.quantity, 9)),
            ("2".to_string(), "000030007".to_string())
        );
        assert_eq!(at(places.price, 10), "00056.0975");
        assert_eq!(decimal_digits(order.message), 0x4711);
        // And nothing else differs from what is prepared, but for numbers of TCP.
        let prepared = prepared(&LINK, &OrderText::Fix(text), order.time).expect("it fits");
        let filled = [
            (38, 4),
            (50, 2),
            (places.message, 8),
            (places.order, 8),
            (places.sending, 12),
            (places.transact, 12),
            (places.side, 1),
            (places.quantity, 9),
            (places.price, 10),
            (places.check_sum, 3),
        ];
        for (n, (is, was)) in frame.iter().zip(&prepared.bytes).enumerate() {
            let is_filled = filled.iter().any(|(at, length)| (*at..at + length).contains(&n));
            assert!(is == was || is_filled, "byte {n}: {was} is {is}");
        }
    }

    #[test]
    fn what_has_no_room_is_no_order() {
        let text = OrderText::Fix(text());
        let most = Filled {
            qty: Qty(QTY_MOST),
            price: PRICE_MOST,
            message: NUMBER_MOST,
            user_ref: NUMBER_MOST,
            ..order()
        };
        let length = written(&LINK, &text, &order()).map(|frame| frame.len());
        assert_eq!(written(&LINK, &text, &most).map(|frame| frame.len()), length);
        for wrong in [
            Filled {
                qty: Qty(QTY_MOST + 1),
                ..most
            },
            Filled {
                price: PRICE_MOST + 1,
                ..most
            },
            Filled {
                message: NUMBER_MOST + 1,
                ..most
            },
            Filled {
                user_ref: NUMBER_MOST + 1,
                ..most
            },
        ] {
            assert_eq!(written(&LINK, &text, &wrong), None, "{wrong:?}");
        }
    }
}
