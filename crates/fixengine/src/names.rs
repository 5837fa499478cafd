//! Names of tags, messages and the values that everybody meets, for when no dictionary is given. FIX 4.4 with
//! errata 20030618, volume 6; FIXT 1.1.

/// By tag, rising.
#[rustfmt::skip]
const TAGS: &[(u32, &str)] = &[
    (1, "Account"), (6, "AvgPx"), (7, "BeginSeqNo"), (8, "BeginString"), (9, "BodyLength"), (10, "CheckSum"), (11, "ClOrdID"),
    (12, "Commission"), (13, "CommType"), (14, "CumQty"), (15, "Currency"), (16, "EndSeqNo"), (17, "ExecID"), (18, "ExecInst"),
    (19, "ExecRefID"), (21, "HandlInst"), (22, "SecurityIDSource"), (23, "IOIID"), (29, "LastCapacity"), (30, "LastMkt"),
    (31, "LastPx"), (32, "LastQty"), (34, "MsgSeqNum"), (35, "MsgType"), (36, "NewSeqNo"), (37, "OrderID"), (38, "OrderQty"),
    (39, "OrdStatus"), (40, "OrdType"), (41, "OrigClOrdID"), (43, "PossDupFlag"), (44, "Price"), (45, "RefSeqNum"),
    (48, "SecurityID"), (49, "SenderCompID"), (50, "SenderSubID"), (52, "SendingTime"), (54, "Side"), (55, "Symbol"),
    (56, "TargetCompID"), (57, "TargetSubID"), (58, "Text"), (59, "TimeInForce"), (60, "TransactTime"), (62, "ValidUntilTime"),
    (63, "SettlType"), (64, "SettlDate"), (65, "SymbolSfx"), (66, "ListID"), (70, "AllocID"), (75, "TradeDate"),
    (77, "PositionEffect"), (78, "NoAllocs"), (79, "AllocAccount"), (80, "AllocQty"), (81, "ProcessCode"), (89, "Signature"),
    (90, "SecureDataLen"), (91, "SecureData"), (93, "SignatureLength"), (95, "RawDataLength"), (96, "RawData"),
    (97, "PossResend"), (98, "EncryptMethod"), (99, "StopPx"), (100, "ExDestination"), (102, "CxlRejReason"),
    (103, "OrdRejReason"), (106, "Issuer"), (107, "SecurityDesc"), (108, "HeartBtInt"), (110, "MinQty"), (111, "MaxFloor"),
    (112, "TestReqID"), (113, "ReportToExch"), (114, "LocateReqd"), (115, "OnBehalfOfCompID"), (116, "OnBehalfOfSubID"),
    (117, "QuoteID"), (118, "NetMoney"), (119, "SettlCurrAmt"), (120, "SettlCurrency"), (121, "ForexReq"),
    (122, "OrigSendingTime"), (123, "GapFillFlag"), (126, "ExpireTime"), (128, "DeliverToCompID"), (129, "DeliverToSubID"),
    (131, "QuoteReqID"), (132, "BidPx"), (133, "OfferPx"), (134, "BidSize"), (135, "OfferSize"), (136, "NoMiscFees"),
    (137, "MiscFeeAmt"), (138, "MiscFeeCurr"), (139, "MiscFeeType"), (140, "PrevClosePx"), (141, "ResetSeqNumFlag"),
    (142, "SenderLocationID"), (143, "TargetLocationID"), (144, "OnBehalfOfLocationID"), (145, "DeliverToLocationID"),
    (146, "NoRelatedSym"), (150, "ExecType"), (151, "LeavesQty"), (152, "CashOrderQty"), (155, "SettlCurrFxRate"),
    (156, "SettlCurrFxRateCalc"), (157, "NumDaysInterest"), (158, "AccruedInterestRate"), (159, "AccruedInterestAmt"),
    (167, "SecurityType"), (168, "EffectiveTime"), (188, "BidSpotRate"), (189, "BidForwardPoints"), (190, "OfferSpotRate"),
    (191, "OfferForwardPoints"), (192, "OrderQty2"), (193, "SettlDate2"), (194, "LastSpotRate"), (195, "LastForwardPoints"),
    (198, "SecondaryOrderID"), (200, "MaturityMonthYear"), (201, "PutOrCall"), (202, "StrikePrice"),
    (203, "CoveredOrUncovered"), (206, "OptAttribute"), (207, "SecurityExchange"), (210, "MaxShow"), (211, "PegOffsetValue"),
    (212, "XmlDataLen"), (213, "XmlData"), (223, "CouponRate"), (224, "CouponPaymentDate"), (225, "IssueDate"),
    (226, "RepurchaseTerm"), (227, "RepurchaseRate"), (228, "Factor"), (229, "TradeOriginationDate"), (230, "ExDate"),
    (231, "ContractMultiplier"), (235, "YieldType"), (236, "Yield"), (237, "TotalTakedown"), (238, "Concession"),
    (239, "RepoCollateralSecurityType"), (240, "RedemptionDate"), (255, "CreditRating"), (258, "TradedFlatSwitch"),
    (259, "BasisFeatureDate"), (260, "BasisFeaturePrice"), (262, "MDReqID"), (263, "SubscriptionRequestType"),
    (264, "MarketDepth"), (265, "MDUpdateType"), (266, "AggregatedBook"), (267, "NoMDEntryTypes"), (268, "NoMDEntries"),
    (269, "MDEntryType"), (270, "MDEntryPx"), (271, "MDEntrySize"), (272, "MDEntryDate"), (273, "MDEntryTime"),
    (274, "TickDirection"), (275, "MDMkt"), (276, "QuoteCondition"), (277, "TradeCondition"), (278, "MDEntryID"),
    (279, "MDUpdateAction"), (280, "MDEntryRefID"), (281, "MDReqRejReason"), (282, "MDEntryOriginator"), (283, "LocationID"),
    (284, "DeskID"), (285, "DeleteReason"), (286, "OpenCloseSettlFlag"), (287, "SellerDays"), (288, "MDEntryBuyer"),
    (289, "MDEntrySeller"), (290, "MDEntryPositionNo"), (291, "FinancialStatus"), (292, "CorporateAction"), (293, "DefBidSize"),
    (294, "DefOfferSize"), (295, "NoQuoteEntries"), (296, "NoQuoteSets"), (297, "QuoteStatus"), (298, "QuoteCancelType"),
    (299, "QuoteEntryID"), (300, "QuoteRejectReason"), (301, "QuoteResponseLevel"), (302, "QuoteSetID"),
    (303, "QuoteRequestType"), (304, "TotNoQuoteEntries"), (320, "SecurityReqID"), (321, "SecurityRequestType"),
    (322, "SecurityResponseID"), (323, "SecurityResponseType"), (324, "SecurityStatusReqID"), (325, "UnsolicitedIndicator"),
    (326, "SecurityTradingStatus"), (327, "HaltReasonChar"), (328, "InViewOfCommon"), (329, "DueToRelated"), (330, "BuyVolume"),
    (331, "SellVolume"), (332, "HighPx"), (333, "LowPx"), (334, "Adjustment"), (335, "TradSesReqID"), (336, "TradingSessionID"),
    (337, "ContraTrader"), (338, "TradSesMethod"), (339, "TradSesMode"), (340, "TradSesStatus"), (341, "TradSesStartTime"),
    (342, "TradSesOpenTime"), (343, "TradSesPreCloseTime"), (344, "TradSesCloseTime"), (345, "TradSesEndTime"),
    (346, "NumberOfOrders"), (347, "MessageEncoding"), (348, "EncodedIssuerLen"), (349, "EncodedIssuer"),
    (350, "EncodedSecurityDescLen"), (351, "EncodedSecurityDesc"), (354, "EncodedTextLen"), (355, "EncodedText"),
    (367, "QuoteSetValidUntilTime"), (368, "QuoteEntryRejectReason"), (369, "LastMsgSeqNumProcessed"), (371, "RefTagID"),
    (372, "RefMsgType"), (373, "SessionRejectReason"), (375, "ContraBroker"), (376, "ComplianceID"), (377, "SolicitedFlag"),
    (378, "ExecRestatementReason"), (379, "BusinessRejectRefID"), (380, "BusinessRejectReason"), (381, "GrossTradeAmt"),
    (382, "NoContraBrokers"), (383, "MaxMessageSize"), (384, "NoMsgTypes"), (385, "MsgDirection"), (386, "NoTradingSessions"),
    (387, "TotalVolumeTraded"), (388, "DiscretionInst"), (389, "DiscretionOffsetValue"), (393, "TotNoRelatedSym"),
    (423, "PriceType"), (424, "DayOrderQty"), (425, "DayCumQty"), (426, "DayAvgPx"), (427, "GTBookingInst"),
    (432, "ExpireDate"), (434, "CxlRejResponseTo"), (437, "ContraTradeQty"), (438, "ContraTradeTime"),
    (442, "MultiLegReportingType"), (447, "PartyIDSource"), (448, "PartyID"), (451, "NetChgPrevDay"), (452, "PartyRole"),
    (453, "NoPartyIDs"), (454, "NoSecurityAltID"), (455, "SecurityAltID"), (456, "SecurityAltIDSource"), (460, "Product"),
    (461, "CFICode"), (464, "TestMessageIndicator"), (467, "IndividualAllocID"), (468, "RoundingDirection"),
    (469, "RoundingModulus"), (470, "CountryOfIssue"), (471, "StateOrProvinceOfIssue"), (472, "LocaleOfIssue"),
    (480, "CancellationRights"), (481, "MoneyLaunderingStatus"), (483, "TransBkdTime"), (484, "ExecPriceType"),
    (485, "ExecPriceAdjustment"), (487, "TradeReportTransType"), (494, "Designation"), (513, "RegistID"),
    (515, "ExecValuationPoint"), (516, "OrderPercent"), (518, "NoContAmts"), (519, "ContAmtType"), (520, "ContAmtValue"),
    (521, "ContAmtCurr"), (523, "PartySubID"), (526, "SecondaryClOrdID"), (527, "SecondaryExecID"), (528, "OrderCapacity"),
    (529, "OrderRestrictions"), (530, "MassCancelRequestType"), (531, "MassCancelResponse"), (532, "MassCancelRejectReason"),
    (533, "TotalAffectedOrders"), (534, "NoAffectedOrders"), (535, "AffectedOrderID"), (536, "AffectedSecondaryOrderID"),
    (537, "QuoteType"), (541, "MaturityDate"), (543, "InstrRegistry"), (544, "CashMargin"), (546, "Scope"),
    (547, "MDImplicitDelete"), (548, "CrossID"), (549, "CrossType"), (550, "CrossPrioritization"), (551, "OrigCrossID"),
    (552, "NoSides"), (553, "Username"), (554, "Password"), (555, "NoLegs"), (559, "SecurityListRequestType"),
    (560, "SecurityRequestResult"), (561, "RoundLot"), (562, "MinTradeVol"), (564, "LegPositionEffect"),
    (565, "LegCoveredOrUncovered"), (566, "LegPrice"), (567, "TradSesStatusRejReason"), (568, "TradeRequestID"),
    (570, "PreviouslyReported"), (571, "TradeReportID"), (572, "TradeReportRefID"), (573, "MatchStatus"), (574, "MatchType"),
    (575, "OddLot"), (576, "NoClearingInstructions"), (577, "ClearingInstruction"), (578, "TradeInputSource"),
    (579, "TradeInputDevice"), (581, "AccountType"), (582, "CustOrderCapacity"), (583, "ClOrdLinkID"), (584, "MassStatusReqID"),
    (586, "OrigOrdModTime"), (587, "LegSettlType"), (588, "LegSettlDate"), (589, "DayBookingInst"), (590, "BookingUnit"),
    (591, "PreallocMethod"), (625, "TradingSessionSubID"), (627, "NoHops"), (628, "HopCompID"), (629, "HopSendingTime"),
    (630, "HopRefID"), (631, "MidPx"), (632, "BidYield"), (633, "MidYield"), (634, "OfferYield"), (635, "ClearingFeeIndicator"),
    (636, "WorkingIndicator"), (637, "LegLastPx"), (638, "PriorityIndicator"), (639, "PriceImprovement"), (640, "Price2"),
    (641, "LastForwardPoints2"), (642, "BidForwardPoints2"), (643, "OfferForwardPoints2"), (644, "RFQReqID"), (645, "MktBidPx"),
    (646, "MktOfferPx"), (647, "MinBidSize"), (648, "MinOfferSize"), (649, "QuoteStatusReqID"), (651, "UnderlyingLastPx"),
    (652, "UnderlyingLastQty"), (654, "LegRefID"), (655, "ContraLegRefID"), (656, "SettlCurrBidFxRate"),
    (657, "SettlCurrOfferFxRate"), (659, "SideComplianceID"), (660, "AcctIDSource"), (661, "AllocAcctIDSource"),
    (667, "ContractSettlMonth"), (668, "DeliveryForm"), (669, "LastParPx"), (681, "LegBidPx"), (684, "LegOfferPx"),
    (686, "LegPriceType"), (687, "LegQty"), (690, "LegSwapType"), (691, "Pool"), (692, "QuotePriceType"), (693, "QuoteRespID"),
    (695, "QuoteQualifier"), (696, "YieldRedemptionDate"), (697, "YieldRedemptionPrice"), (698, "YieldRedemptionPriceType"),
    (701, "YieldCalcDate"), (707, "PosAmtType"), (708, "PosAmt"), (711, "NoUnderlyings"), (715, "ClearingBusinessDate"),
    (735, "NoQuoteQualifiers"), (736, "AllocSettlCurrency"), (738, "InterestAtMaturity"), (748, "TotNumTradeReports"),
    (752, "SideMultiLegReportingType"), (753, "NoPosAmt"), (762, "SecuritySubType"), (768, "NoTrdRegTimestamps"),
    (769, "TrdRegTimestamp"), (770, "TrdRegTimestampType"), (771, "TrdRegTimestampOrigin"), (775, "BookingType"),
    (788, "TerminationType"), (789, "NextExpectedMsgSeqNum"), (790, "OrdStatusReqID"), (797, "CopyMsgIndicator"),
    (802, "NoPartySubIDs"), (803, "PartySubIDType"), (811, "PriceDelta"), (812, "ApplQueueMax"), (813, "ApplQueueDepth"),
    (814, "ApplQueueResolution"), (815, "ApplQueueAction"), (816, "NoAltMDSource"), (817, "AltMDSourceID"),
    (818, "SecondaryTradeReportID"), (819, "AvgPxIndicator"), (820, "TradeLinkID"), (821, "OrderInputDevice"),
    (822, "UnderlyingTradingSessionID"), (823, "UnderlyingTradingSessionSubID"), (824, "TradeLegRefID"), (825, "ExchangeRule"),
    (826, "TradeAllocIndicator"), (827, "ExpirationCycle"), (828, "TrdType"), (829, "TrdSubType"), (830, "TransferReason"),
    (835, "PegMoveType"), (836, "PegOffsetType"), (837, "PegLimitType"), (838, "PegRoundDirection"), (839, "PeggedPrice"),
    (840, "PegScope"), (841, "DiscretionMoveType"), (842, "DiscretionOffsetType"), (843, "DiscretionLimitType"),
    (844, "DiscretionRoundDirection"), (845, "DiscretionPrice"), (846, "DiscretionScope"), (847, "TargetStrategy"),
    (848, "TargetStrategyParameters"), (849, "ParticipationRate"), (850, "TargetStrategyPerformance"),
    (851, "LastLiquidityInd"), (852, "PublishTrdIndicator"), (853, "ShortSaleReason"), (854, "QtyType"),
    (855, "SecondaryTrdType"), (856, "TradeReportType"), (864, "NoEvents"), (865, "EventType"), (866, "EventDate"),
    (867, "EventPx"), (868, "EventText"), (869, "PctAtRisk"), (870, "NoInstrAttrib"), (871, "InstrAttribType"),
    (872, "InstrAttribValue"), (873, "DatedDate"), (874, "InterestAccrualDate"), (875, "CPProgram"), (876, "CPRegType"),
    (880, "TrdMatchID"), (881, "SecondaryTradeReportRefID"), (891, "MiscFeeBasis"), (893, "LastFragment"), (898, "MarginRatio"),
    (911, "TotNumReports"), (912, "LastRptRequested"), (913, "AgreementDesc"), (914, "AgreementID"), (915, "AgreementDate"),
    (916, "StartDate"), (917, "EndDate"), (918, "AgreementCurrency"), (919, "DeliveryType"), (920, "EndAccruedInterestAmt"),
    (921, "StartCash"), (922, "EndCash"), (925, "NewPassword"), (943, "TimeBracket"), (947, "StrikeCurrency"),
    (1128, "ApplVerID"), (1129, "CstmApplVerID"), (1137, "DefaultApplVerID"), (1156, "ApplExtID"), (1400, "EncryptedPassword"),
    (1401, "EncryptedPasswordLen"), (1402, "EncryptedPassword"), (1403, "EncryptedNewPasswordLen"),
    (1404, "EncryptedNewPassword"), (1407, "DefaultApplExtID"), (1408, "DefaultCstmApplVerID"), (1409, "SessionStatus"),
    (20001, "CauseVenue"), (20002, "CauseSeq"), (20003, "CauseRecvTs"),
];

/// By MsgType.
#[rustfmt::skip]
const MESSAGES: &[(&str, &str)] = &[
    ("0", "Heartbeat"), ("1", "TestRequest"), ("2", "ResendRequest"), ("3", "Reject"), ("4", "SequenceReset"), ("5", "Logout"),
    ("6", "IOI"), ("7", "Advertisement"), ("8", "ExecutionReport"), ("9", "OrderCancelReject"), ("A", "Logon"),
    ("AA", "DerivativeSecurityList"), ("AB", "NewOrderMultileg"), ("AC", "MultilegOrderCancelReplace"),
    ("AD", "TradeCaptureReportRequest"), ("AE", "TradeCaptureReport"), ("AF", "OrderMassStatusRequest"),
    ("AG", "QuoteRequestReject"), ("AH", "RFQRequest"), ("AI", "QuoteStatusReport"), ("AJ", "QuoteResponse"),
    ("AK", "Confirmation"), ("AL", "PositionMaintenanceRequest"), ("AM", "PositionMaintenanceReport"),
    ("AN", "RequestForPositions"), ("AO", "RequestForPositionsAck"), ("AP", "PositionReport"),
    ("AQ", "TradeCaptureReportRequestAck"), ("AR", "TradeCaptureReportAck"), ("AS", "AllocationReport"),
    ("AT", "AllocationReportAck"), ("AU", "ConfirmationAck"), ("AV", "SettlementInstructionRequest"),
    ("AW", "AssignmentReport"), ("AX", "CollateralRequest"), ("AY", "CollateralAssignment"), ("AZ", "CollateralResponse"),
    ("B", "News"), ("BA", "CollateralReport"), ("BB", "CollateralInquiry"), ("BC", "NetworkCounterpartySystemStatusRequest"),
    ("BD", "NetworkCounterpartySystemStatusResponse"), ("BE", "UserRequest"), ("BF", "UserResponse"),
    ("BG", "CollateralInquiryAck"), ("BH", "ConfirmationRequest"), ("C", "Email"), ("D", "NewOrderSingle"),
    ("E", "NewOrderList"), ("F", "OrderCancelRequest"), ("G", "OrderCancelReplaceRequest"), ("H", "OrderStatusRequest"),
    ("J", "AllocationInstruction"), ("K", "ListCancelRequest"), ("L", "ListExecute"), ("M", "ListStatusRequest"),
    ("N", "ListStatus"), ("P", "AllocationInstructionAck"), ("Q", "DontKnowTrade"), ("R", "QuoteRequest"), ("S", "Quote"),
    ("T", "SettlementInstructions"), ("V", "MarketDataRequest"), ("W", "MarketDataSnapshotFullRefresh"),
    ("X", "MarketDataIncrementalRefresh"), ("Y", "MarketDataRequestReject"), ("Z", "QuoteCancel"), ("a", "QuoteStatusRequest"),
    ("b", "MassQuoteAcknowledgement"), ("c", "SecurityDefinitionRequest"), ("d", "SecurityDefinition"),
    ("e", "SecurityStatusRequest"), ("f", "SecurityStatus"), ("g", "TradingSessionStatusRequest"),
    ("h", "TradingSessionStatus"), ("i", "MassQuote"), ("j", "BusinessMessageReject"), ("k", "BidRequest"),
    ("l", "BidResponse"), ("m", "ListStrikePrice"), ("n", "XMLnonFIX"), ("o", "RegistrationInstructions"),
    ("p", "RegistrationInstructionsResponse"), ("q", "OrderMassCancelRequest"), ("r", "OrderMassCancelReport"),
    ("s", "NewOrderCross"), ("t", "CrossOrderCancelReplaceRequest"), ("u", "CrossOrderCancelRequest"),
    ("v", "SecurityTypeRequest"), ("w", "SecurityTypes"), ("x", "SecurityListRequest"), ("y", "SecurityList"),
    ("z", "DerivativeSecurityListRequest"),
];

/// By tag and value.
#[rustfmt::skip]
const VALUES: &[(u32, &str, &str)] = &[
    (54, "1", "buy"), (54, "2", "sell"), (54, "5", "sell short"),
    (40, "1", "market"), (40, "2", "limit"), (40, "3", "stop"), (40, "4", "stop limit"),
    (59, "0", "day"), (59, "1", "good till cancel"), (59, "3", "immediate or cancel"), (59, "4", "fill or kill"),
    (39, "0", "new"), (39, "1", "partially filled"), (39, "2", "filled"), (39, "4", "cancelled"), (39, "5", "replaced"),
    (39, "6", "pending cancel"), (39, "8", "rejected"), (39, "A", "pending new"), (39, "C", "expired"), (39, "E", "pending replace"),
    (150, "0", "new"), (150, "4", "cancelled"), (150, "5", "replaced"), (150, "6", "pending cancel"), (150, "8", "rejected"),
    (150, "A", "pending new"), (150, "C", "expired"), (150, "D", "restated"), (150, "E", "pending replace"), (150, "F", "trade"),
    (269, "0", "bid"), (269, "1", "offer"), (269, "2", "trade"),
    (279, "0", "new"), (279, "1", "change"), (279, "2", "delete"),
    (434, "1", "cancel request"), (434, "2", "cancel/replace request"),
    (373, "0", "invalid tag number"), (373, "1", "required tag missing"), (373, "2", "tag not defined for this message type"),
    (373, "4", "tag without a value"), (373, "5", "value out of range"), (373, "6", "incorrect data format"),
    (373, "9", "comp id problem"), (373, "10", "sending time accuracy"), (373, "11", "invalid message type"),
];

/// What a tag is called.
pub fn tag(tag: u32) -> Option<&'static str> {
    let at = TAGS.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
    Some(TAGS[at].1)
}

/// Every tag with its name.
pub fn all() -> impl Iterator<Item = (u32, &'static str)> {
    TAGS.iter().copied()
}

/// Every message type with its name.
pub fn messages() -> impl Iterator<Item = (&'static str, &'static str)> {
    MESSAGES.iter().copied()
}

/// What a message type is called.
pub fn message(msg_type: &[u8]) -> Option<&'static str> {
    let found = MESSAGES.iter().find(|(t, _)| t.as_bytes() == msg_type);
    found.map(|(_, name)| *name)
}

/// What a value means.
pub fn value(tag: u32, value: &[u8]) -> Option<&'static str> {
    let found = VALUES.iter().find(|(t, v, _)| *t == tag && v.as_bytes() == value);
    found.map(|(.., meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_sorted() {
        assert!(TAGS.is_sorted_by_key(|(tag, _)| *tag));
        assert_eq!(
            (tag(35), tag(55), tag(7)),
            (Some("MsgType"), Some("Symbol"), Some("BeginSeqNo"))
        );
        assert_eq!(
            (message(b"AE"), message(b"?")),
            (Some("TradeCaptureReport"), None)
        );
        assert_eq!(value(54, b"1"), Some("buy"));
    }
}
