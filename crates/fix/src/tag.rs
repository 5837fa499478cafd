//! Tags and message types. FIX 4.4 specification with errata 20030618, volume 6 (field definitions).

macro_rules! tags {
    ($($name:ident = $tag:literal $doc:literal;)*) => { $(#[doc = $doc] pub const $name: u32 = $tag;)* };
}

tags! {
    AVG_PX = 6 "AvgPx: average price of all fills.";
    BEGIN_SEQ_NO = 7 "BeginSeqNo of a ResendRequest.";
    BEGIN_STRING = 8 "BeginString, always first.";
    BODY_LENGTH = 9 "BodyLength, always second: bytes after its separator up to the CheckSum field.";
    CHECK_SUM = 10 "CheckSum, always last: sum of all bytes before it modulo 256, three digits.";
    CL_ORD_ID = 11 "ClOrdID: the client's identifier of an order or request.";
    CUM_QTY = 14 "CumQty: filled so far.";
    END_SEQ_NO = 16 "EndSeqNo of a ResendRequest, 0 for all that follow.";
    EXEC_ID = 17 "ExecID.";
    EXEC_TRANS_TYPE = 20 "ExecTransType: whether a report says something new; up to FIX 4.2.";
    LAST_PX = 31 "LastPx: price of this fill.";
    LAST_QTY = 32 "LastQty: quantity of this fill.";
    MSG_SEQ_NUM = 34 "MsgSeqNum.";
    MSG_TYPE = 35 "MsgType, always third.";
    NEW_SEQ_NO = 36 "NewSeqNo of a SequenceReset.";
    ORDER_ID = 37 "OrderID: the venue's identifier.";
    ORDER_QTY = 38 "OrderQty.";
    ORD_STATUS = 39 "OrdStatus.";
    ORD_TYPE = 40 "OrdType.";
    ORIG_CL_ORD_ID = 41 "OrigClOrdID: the order a request is about.";
    POSS_DUP_FLAG = 43 "PossDupFlag: sent before under this sequence number.";
    PRICE = 44 "Price.";
    REF_SEQ_NUM = 45 "RefSeqNum: the message a reject is about.";
    SENDER_COMP_ID = 49 "SenderCompID.";
    SENDING_TIME = 52 "SendingTime, UTC.";
    SENDER_SUB_ID = 50 "SenderSubID.";
    SIDE = 54 "Side: 1 buy, 2 sell.";
    SYMBOL = 55 "Symbol.";
    TARGET_COMP_ID = 56 "TargetCompID.";
    TARGET_SUB_ID = 57 "TargetSubID.";
    TEXT = 58 "Text.";
    TIME_IN_FORCE = 59 "TimeInForce.";
    TRANSACT_TIME = 60 "TransactTime, UTC.";
    POSS_RESEND = 97 "PossResend: may have been sent under another sequence number.";
    ENCRYPT_METHOD = 98 "EncryptMethod, 0 none.";
    STOP_PX = 99 "StopPx: the price that triggers a stop order.";
    CXL_REJ_REASON = 102 "CxlRejReason.";
    ORD_REJ_REASON = 103 "OrdRejReason.";
    HEART_BT_INT = 108 "HeartBtInt in seconds.";
    TEST_REQ_ID = 112 "TestReqID.";
    ORIG_SENDING_TIME = 122 "OrigSendingTime of a message sent again.";
    GAP_FILL_FLAG = 123 "GapFillFlag of a SequenceReset.";
    DEFAULT_APPL_VER_ID = 1137 "DefaultApplVerID: the application version of a session over FIXT.";
    RESET_SEQ_NUM_FLAG = 141 "ResetSeqNumFlag: both sides start at 1.";
    SENDER_LOCATION_ID = 142 "SenderLocationID.";
    TARGET_LOCATION_ID = 143 "TargetLocationID.";
    EXEC_TYPE = 150 "ExecType.";
    LEAVES_QTY = 151 "LeavesQty: still open.";
    BID_PX = 132 "BidPx.";
    OFFER_PX = 133 "OfferPx.";
    BID_SIZE = 134 "BidSize.";
    OFFER_SIZE = 135 "OfferSize.";
    LAST_MSG_SEQ_NUM_PROCESSED = 369 "LastMsgSeqNumProcessed: the last message of the other side that was taken in.";
    REF_TAG_ID = 371 "RefTagID: the field a reject is about.";
    REF_MSG_TYPE = 372 "RefMsgType: the type of the message a reject is about.";
    SESSION_REJECT_REASON = 373 "SessionRejectReason.";
    BUSINESS_REJECT_REF_ID = 379 "BusinessRejectRefID: identifier of the rejected message.";
    BUSINESS_REJECT_REASON = 380 "BusinessRejectReason.";
    MAX_MESSAGE_SIZE = 383 "MaxMessageSize: the longest message the sender of a Logon takes, in bytes.";
    QUOTE_ID = 117 "QuoteID: the sender's identifier of a quote message.";
    NO_QUOTE_ENTRIES = 295 "NoQuoteEntries: instruments of a quote set.";
    NO_QUOTE_SETS = 296 "NoQuoteSets.";
    QUOTE_ENTRY_ID = 299 "QuoteEntryID: which quote of its set.";
    QUOTE_RESPONSE_LEVEL = 301 "QuoteResponseLevel: 2 every message is acknowledged.";
    QUOTE_SET_ID = 302 "QuoteSetID.";
    TOT_NO_QUOTE_ENTRIES = 304 "TotNoQuoteEntries: of the set over all messages.";
    QUOTE_TYPE = 537 "QuoteType: 1 tradeable.";
    QUOTE_STATUS = 297 "QuoteStatus: 0 accepted, 1 to 4 cancelled, 5 rejected, 6 removed.";
    QUOTE_CANCEL_TYPE = 298 "QuoteCancelType: 4 all quotes.";
    QUOTE_STATUS_REQ_ID = 649 "QuoteStatusReqID.";
    QUOTE_ENTRY_REJECT_REASON = 368 "QuoteEntryRejectReason.";
    LAST_FRAGMENT = 893 "LastFragment: of a set in several messages.";
    QUOTE_ENTRY_STATUS = 1167 "QuoteEntryStatus: 0 accepted, 5 rejected.";
    MASS_CANCEL_REQUEST_TYPE = 530 "MassCancelRequestType: 7 all orders.";
    MASS_CANCEL_RESPONSE = 531 "MassCancelResponse: 0 refused, else what was cancelled.";
    UNSOLICITED_CANCEL_TYPE = 9775 "UnsolicitedCancelType, CME's: A connection lost, C end of day, F market-maker protection.";
    MM_PROTECTION_RESET = 9773 "MMProtectionReset, CME's: Y ends a market-maker protection.";
    CXL_REJ_RESPONSE_TO = 434 "CxlRejResponseTo: 1 cancel, 2 replace.";
    TEST_MESSAGE_INDICATOR = 464 "TestMessageIndicator: Y for a session that is for tests.";
    USERNAME = 553 "Username.";
    PASSWORD = 554 "Password.";
    WORKING_INDICATOR = 636 "WorkingIndicator: Y when a stop order has become one that works in the book.";
    NEXT_EXPECTED_MSG_SEQ_NUM = 789 "NextExpectedMsgSeqNum of a Logon.";
    NEW_PASSWORD = 925 "NewPassword.";
    CAUSE_VENUE = 20001 "User-defined: number of the venue whose message caused the order.";
    CAUSE_SEQ = 20002 "User-defined: sequence number of that message.";
    CAUSE_RECV_TS = 20003 "User-defined: when it was received, nanoseconds since the Unix epoch.";
}

/// Whether the value is the byte count of the data field that follows: data may hold separators, so it is
/// skipped by count. The fields of type `Length` before one of type `data` or `XMLData` in FIX 4.0 to 5.0
/// SP2, volume 6.
#[inline]
pub(crate) const fn is_data_length(tag: u32) -> bool {
    const BITS: [u64; 10] = {
        const TAGS: [usize; 16] = [
            90, 93, 95, 212, 348, 350, 352, 354, 356, 358, 360, 362, 364, 445, 618, 621,
        ];
        let mut bits = [0u64; 10];
        let mut i = 0;
        while i < TAGS.len() {
            bits[TAGS[i] / 64] |= 1 << (TAGS[i] % 64);
            i += 1;
        }
        bits
    };
    if tag < 90 {
        return false;
    }
    match tag {
        0..640 => BITS[tag as usize / 64] >> (tag % 64) & 1 == 1,
        1184..=2815 | 40004..=43111 => is_later_data_length(tag),
        _ => false,
    }
}

/// The data field that a length field counts: the next tag, with few exceptions. For tags of
/// [`is_data_length`].
pub(crate) const fn data_of(length: u32) -> u32 {
    match length {
        93 => 89,
        1525 => 1527,
        1678 => 1697,
        2372 | 2494 | 2522 | 2802 | 2809 | 2815 => length - 1,
        43_109 => 42_684,
        43_110 => 42_486,
        43_111 => 42_982,
        _ => length + 1,
    }
}

/// Those that came with FIX 5.0 and its extension packs.
#[inline(never)]
const fn is_later_data_length(tag: u32) -> bool {
    #[rustfmt::skip]
    let is = matches!(tag,
        1184 | 1277 | 1280 | 1282 | 1397 | 1401 | 1403 | 1468 | 1525 | 1578 | 1620 | 1664
        | 1678 | 1733 | 1871 | 1874 | 2072 | 2074 | 2111 | 2179 | 2287 | 2351 | 2372 | 2481
        | 2494 | 2522 | 2637 | 2651 | 2665 | 2715 | 2718 | 2721 | 2797 | 2802 | 2809 | 2815
        | 40004 | 40008 | 40978 | 40980 | 40982 | 40984 | 40986 | 40988 | 41083 | 41101 | 41107 | 41256
        | 41320 | 41324 | 41458 | 41476 | 41482 | 41653 | 41710 | 41806 | 41811 | 41873 | 41969 | 42025
        | 42171 | 42451 | 42652 | 42947 | 43109 | 43110 | 43111
    );
    is
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{data_of, is_data_length};
    use roxmltree::{Document, Node};
    use std::collections::{BTreeMap, BTreeSet};

    /// The field in front of every field of type data, wherever the dictionaries have one.
    fn lengths_of(text: &str) -> BTreeSet<u32> {
        let document = Document::parse(text).expect("XML");
        let definitions = document.descendants().filter(|n| n.has_attribute("number"));
        let fields: BTreeMap<&str, (u32, &str)> = definitions
            .map(|n| {
                let number = n.attribute("number").and_then(|t| t.parse().ok());
                let of = |name| n.attribute(name).expect("every field has it");
                (of("name"), (number.expect("a number"), of("type")))
            })
            .collect();
        let field = |n: Node<'_, '_>| fields.get(n.attribute("name")?).copied();
        let used = document
            .descendants()
            .filter(|n| n.has_tag_name("field") && n.has_attribute("required"));
        let data = used.filter(|&n| field(n).is_some_and(|f| matches!(f.1, "DATA" | "XMLDATA")));
        data.map(|n| {
            field(n.prev_sibling_element().expect("a length"))
                .expect("a field")
                .0
        })
        .collect()
    }

    #[tickwire_testdata::recorded_data("fix/dictionaries")]
    #[test]
    fn the_lengths_of_data_are_those_of_the_dictionaries() {
        let mut lengths = BTreeSet::new();
        for file in tickwire_testdata::files(&tickwire_testdata::fix("dictionaries"), "xml") {
            lengths.extend(lengths_of(&std::fs::read_to_string(&file).expect("a dictionary")));
        }
        let known: BTreeSet<u32> = (0..50_000).filter(|&tag| is_data_length(tag)).collect();
        assert_eq!(known, lengths);
    }

    /// By their names: `EncodedTextLen` counts `EncodedText`, `SignatureLength` counts `Signature`. From the
    /// built-in dictionaries.
    #[test]
    fn every_length_is_paired_with_its_data() {
        use crate::dict::{Dictionary, standard_names};
        let mut paired = BTreeSet::new();
        for version in standard_names() {
            let dictionary = Dictionary::standard(version).expect("it is built in");
            let data = dictionary
                .fields()
                .iter()
                .filter(|f| matches!(&*f.type_name, "DATA" | "XMLDATA"));
            for field in data {
                let named = ["Len", "Length"].map(|end| std::format!("{}{end}", field.name));
                // One name in 5.0 SP2 is not as the rule says.
                let length = named.iter().find_map(|name| dictionary.field_named(name));
                let length = length.map_or(41_873, |f| f.tag);
                assert!(is_data_length(length), "{version}: {}", field.name);
                assert_eq!(data_of(length), field.tag, "{version}: {}", field.name);
                paired.insert(length);
            }
        }
        let known: BTreeSet<u32> = (0..50_000).filter(|&tag| is_data_length(tag)).collect();
        assert_eq!(known, paired);
    }
}
