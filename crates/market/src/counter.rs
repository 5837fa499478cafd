//! The one table of counters: every view (terminal, report, exporter, log) reads it from here.

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// UDP datagrams or captured frames.
    Packets,
    /// Venue messages.
    Messages,
    /// Requests, gaps, orders and other occurrences.
    Events,
    /// Bytes.
    Bytes,
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterSpec {
    /// Stable identifier: lower case, underscores, no unit suffix.
    pub id: &'static str,
    /// What a table heading says.
    pub label: &'static str,
    /// What is counted.
    pub unit: Unit,
    /// One sentence for an operator.
    pub sentence: &'static str,
}

macro_rules! counters {
    ($($variant:ident $id:literal $label:literal $unit:ident $sentence:literal)*) => {
        /// Every counter of the system. [`Counter::spec`] gives its row of the table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Counter { $(#[doc = $sentence] $variant),* }

        impl Counter {
            /// Every counter, in table order.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),*];

            /// Its row of the table.
            pub const fn spec(self) -> CounterSpec {
                match self {
                    $(Counter::$variant => CounterSpec { id: $id, label: $label, unit: Unit::$unit, sentence: $sentence }),*
                }
            }
        }
    };
}

counters! {
    PacketsA "packets_line_a" "packets A" Packets "Datagrams received on line A."
    PacketsB "packets_line_b" "packets B" Packets "Datagrams received on line B."
    PacketsRetransmit "packets_retransmit" "packets rtx" Packets "Datagrams received from the retransmission server."
    PacketsDuplicate "packets_duplicate" "dup packets" Packets "Datagrams that held no message not seen before (normal on two lines: one of each pair)."
    PacketsIgnored "packets_ignored" "ignored" Packets "Packets of a session that is not this feed's, or with a sequence number that cannot be right."
    AnswersUnasked "answers_unasked" "unasked" Packets "Datagrams on the socket of recovery requests from an address or port that was not asked; dropped."
    Heartbeats "heartbeats" "heartbeats" Packets "Packets without messages that tell the next sequence number."
    Messages "messages" "messages" Messages "Venue messages delivered in sequence, once."
    MessagesDuplicate "messages_duplicate" "dup messages" Messages "Messages received again after they had been delivered or buffered."
    MessagesFiltered "messages_filtered" "filtered" Messages "Messages dropped before decoding because nobody subscribed to their instrument."
    MessagesUnknown "messages_unknown" "unknown" Messages "Messages of a type this version does not know; skipped by length."
    Gaps "gaps" "gaps" Events "Times a sequence number was missing when a later one arrived."
    NumbersRefuted "numbers_refuted" "refuted" Events "Numbers ahead that the venue's own packets showed to be none: nothing was missing."
    LinesDiverged "lines_diverged" "diverged" Packets "Packets whose content was not that of an earlier copy with the same number; books are marked and recovered."
    BooksDistrusted "books_distrusted" "distrusted" Events "Books that are marked and recovered because a message about them could not be read, or did not fit them."
    MessagesMissed "messages_missed" "missed" Messages "Messages that were missing when a gap was found."
    MessagesRecovered "messages_recovered" "recovered" Messages "Missing messages that arrived after all: by the other line, late, or by retransmission."
    MessagesLost "messages_lost" "lost" Messages "Missing messages given up; a snapshot is needed and books stay stale until it is loaded."
    RetransmitRequests "retransmit_requests" "requests" Events "Retransmission requests sent."
    RetransmitTimeouts "retransmit_timeouts" "timeouts" Events "Retransmission requests that were not answered in time."
    RequestsHeld "requests_held" "requests held" Events "Times requests had to wait because a quota of the venue was used up."
    ServerChanges "server_changes" "server changes" Events "Times recovery turned to the other server: silence, a refusal, or an answer that cannot be right."
    RecoveriesFailed "recoveries_failed" "not recovered" Events "Times neither requests nor snapshots made the feed whole by the deadline; it goes on, marked stale, and tries again slowly."
    Snapshots "snapshots" "snapshots" Events "Snapshots loaded to completion."
    JoinsBegun "joins_begun" "joins" Events "Instruments that were subscribed to in mid-session and whose books had to be made right."
    JoinsDone "joins_done" "joined" Events "Instruments whose books were made right after a subscription in mid-session."
    JoinsFailed "joins_failed" "joins failed" Events "Times it had to be tried again: refused, cut off, too old, or more held back than there is room for."
    SessionChanges "session_changes" "sessions" Events "Times the feed's session identifier changed; books start anew."
    BufferOverflows "buffer_overflows" "overflows" Events "Packets dropped because the reorder buffer was full; they are requested again."
    Malformed "malformed" "malformed" Packets "Packets or messages dropped because they were truncated, inconsistent or had an impossible field."
    MalformedTruncated "malformed_truncated" "truncated" Packets "Of the malformed: ended too early."
    MalformedLength "malformed_length" "bad length" Packets "Of the malformed: a length or count that contradicts the layout, or bytes left over."
    MalformedType "malformed_type" "bad type" Packets "Of the malformed: a packet, block or template of an unknown type."
    MalformedValue "malformed_value" "bad value" Packets "Of the malformed: a field with a value that it does not allow, or of no known instrument."
    MalformedRange "malformed_range" "out of range" Packets "Of the malformed: a number too large for its meaning."
    MalformedChecksum "malformed_checksum" "bad checksum" Packets "Of the malformed: a checksum that is not the sum of the bytes."
    TrailingBytes "trailing_bytes" "trailing" Packets "Packets with bytes after the last message; the messages were used."
    EndOfSession "end_of_session" "end" Packets "End-of-session packets."
    BookRejects "book_rejects" "book rejects" Messages "Events a book could not apply: unknown order, duplicate order, more taken than was there; the book is stale."
    BookFull "book_full" "book full" Messages "Events not applied because a configured capacity was exhausted; the book is stale."
    KernelDrops "kernel_drops" "kernel drops" Packets "Datagrams the kernel dropped because the socket buffer, or the AF_XDP ring, was full."
    HookFiltered "hook_filtered" "hook filtered" Packets "Packets that the filter at the driver's hook dropped: nothing wanted was in them."
    HookDuplicates "hook_duplicates" "hook dup" Packets "Packets that the filter at the driver's hook dropped: the other line had brought them."
    HookDoubts "hook_doubts" "hook doubts" Packets "Packets that the armed filter at the driver's hook delivered in doubt: behind a gap, late, of another session, not understood. The reasons follow one by one."
    HookPackets "hook_packets" "hook packets" Packets "Packets of filtered channels that came to the driver's hook, on both lines; dropped or delivered for one of the reasons that follow."
    HookWanted "hook_wanted" "hook wanted" Packets "Packets that the filter at the driver's hook delivered because something wanted, or always wanted, was in them."
    HookAhead "hook_ahead" "hook ahead" Packets "Packets that the filter at the driver's hook delivered because others are missing before them."
    HookBehind "hook_behind" "hook behind" Packets "Packets that the filter at the driver's hook delivered because they came after packets behind them."
    HookRaces "hook_races" "hook races" Packets "Packets that the filter at the driver's hook delivered because another processor moved the channel on at that moment."
    HookUnread "hook_unread" "hook unread" Packets "Packets that the filter at the driver's hook delivered because it did not understand them."
    HookDisarmed "hook_disarmed" "hook open" Packets "Packets that the filter at the driver's hook delivered because it was open: something was missing, an instrument joined, nobody had armed it."
    HookPlain "hook_plain" "hook plain" Packets "Packets that the filter at the driver's hook delivered because they have no messages, or are of a kind that is never dropped."
    HookSession "hook_session" "hook session" Packets "Packets that the filter at the driver's hook delivered because they are of another session."
    HookMessages "hook_messages" "hook messages" Messages "Messages of packets that the filter at the driver's hook dropped because nobody wants them; with receiver.filter_statistics."
    HookOrderMessages "hook_order_messages" "hook by order" Messages "Messages that name no instrument, and that the filter at the driver's hook delivered because it follows their order; with receiver.filter_statistics."
    NetErrors "net_errors" "net errors" Events "Errors of socket calls on receiving, recovery, publishing and session paths; each is tried again with waits that grow."
    NetErrorsNetwork "net_errors_network" "network" Events "Of the errors of socket calls: the network between us and the peer, such as no route, an interface that is down, a firewall."
    NetErrorsPeer "net_errors_peer" "peer" Events "Of the errors of socket calls: the peer refused, reset, closed or did not answer."
    NetErrorsResources "net_errors_resource" "resources" Events "Of the errors of socket calls: the kernel had no memory, buffers or descriptors."
    NetErrorsConfig "net_errors_config" "configuration" Events "Of the errors of socket calls: address, family, option or permission are wrong for the socket; several in a row end it."
    ClockSteps "clock_steps" "clock steps" Events "Times the system's clock was set: UTC jumped by more than the configured amount. Timers go on; stamps follow."
    AnswersWithheld "answers_withheld" "withheld" Packets "Answers by datagram that were not sent: the address had its share of the second, or is one of many."
    HandOverWaits "hand_over_waits" "waits" Events "Times a feed thread waited because the ring to the thread of consolidated books was full; packets wait in the socket meanwhile."
    OrdersSent "orders_sent" "orders" Events "Orders sent."
    OrdersAcked "orders_acked" "acked" Events "Orders acknowledged as new by the venue."
    OrdersRejected "orders_rejected" "rejected" Events "Orders rejected by the venue."
    OrdersCancelled "orders_cancelled" "cancelled" Events "Orders cancelled, by request or by their time in force."
    Fills "fills" "fills" Events "Executions received."
    TradesBroken "trades_broken" "broken" Events "Trades of ours that the venue took back."
    RiskRejects "risk_rejects" "risk rejects" Events "Orders stopped by a pre-trade check."
    RiskKillSwitch "risk_kill_switch" "killed" Events "Orders stopped because the kill switch is on."
    RiskNoSession "risk_no_session" "no session" Events "Orders stopped because no order entry session is logged on."
    RiskSilence "risk_silence" "silence" Events "Orders stopped because market data was silent, or what was cancelled for it not confirmed to be gone."
    RiskOrderSize "risk_order_size" "size" Events "Orders stopped because they were empty or larger than allowed."
    RiskNoReference "risk_no_reference" "no reference" Events "Orders stopped because no mid price was known to judge their price by."
    RiskPriceBand "risk_price_band" "price band" Events "Orders stopped because their price was too far from the last good mid price."
    RiskOpenOrders "risk_open_orders" "open orders" Events "Orders stopped because too many were open already."
    RiskPosition "risk_position" "position" Events "Orders stopped because filling all open ones too could exceed the largest position."
    RiskOrderRate "risk_order_rate" "order rate" Events "Orders stopped because too many had been sent within the window."
    RiskOrderValue "risk_order_value" "value" Events "Orders and quotes stopped because they were worth more than one may be."
    RiskPriceDrift "risk_price_drift" "drift" Events "Orders and quotes stopped because their price was too far from the mid price of a while ago."
    RiskInstrumentRate "risk_instr_rate" "instrument rate" Events "Orders and quotes stopped because too many messages about their instrument had been sent."
    RiskDuplicate "risk_duplicate" "duplicates" Events "Orders stopped because the same one had been sent for the same message."
    RiskSelfTrade "risk_self_trade" "self trades" Events "Orders and quotes stopped because they could have traded with one of ours."
    RiskExecutions "risk_executions" "executions" Events "Orders and quotes stopped because their strategy executed too often; a person has to resume it."
    RiskTotalPosition "risk_total_position" "total position" Events "Orders and quotes stopped because their strategy, or all of them, would have held too much."
    RiskLoss "risk_loss" "loss" Events "Orders and quotes stopped because their strategy, or all of them, lost too much; a person has to resume it."
    ReportsUnmatched "reports_unmatched" "unmatched" Events "Execution reports that fit no order: unknown, already seen, more than ordered, after its end."
    FixMalformed "fix_malformed" "FIX malformed" Messages "FIX messages ignored as garbled: bad framing, body length or checksum."
    FixRejects "fix_rejects" "FIX rejects" Messages "FIX messages answered with a session-level Reject."
    FixResends "fix_resends" "FIX resends" Events "FIX resend requests answered or sent."
    FixResendRepeats "fix_resend_repeats" "FIX repeats" Events "FIX resend requests from the same sequence number on as the one before; too many end the session."
    FixLogonsRefused "fix_logons_refused" "FIX refused" Events "FIX connections and logons refused: no Logon in time, an unknown or busy session, wrong credentials, outside its hours."
    FixSilent "fix_silent" "FIX silent" Events "FIX connections closed because no whole message came in time before the Logon, or that were closed by the peer before it."
    FixGarbage "fix_garbage" "FIX garbage" Events "FIX connections closed because what came first was no FIX message."
    FixUnknownPeers "fix_unknown_peers" "FIX unknown" Events "FIX connections closed because no session has the CompIDs of their first message."
    FixWrongVersions "fix_wrong_versions" "FIX versions" Events "FIX connections closed because the session of their CompIDs speaks another version."
    FixSecondConnections "fix_second_conns" "FIX second" Events "FIX connections closed because their session had a connection already."
    FixNoRoom "fix_no_room" "FIX no room" Events "FIX connections closed because every place was taken, or every session of a template."
    FixAddressesRefused "fix_addr_refused" "FIX addresses" Events "FIX connections closed because their address is not one of those that may connect."
    FixLogonTimeouts "fix_logon_timeouts" "FIX late logons" Events "FIX connections closed because the Logon, or the answer to ours, did not come in time."
    FixConnectionsLost "fix_conns_lost" "FIX lost" Events "Times a logged-on FIX session lost its connection without a logout: closed, reset or silent."
    FixThrottled "fix_throttled" "FIX throttled" Messages "FIX application messages beyond the configured rate: delayed, rejected, or the end of their session."
    FixLogons "fix_logons" "FIX logons" Events "Times a FIX session was logged on."
    FixMessagesIn "fix_messages_in" "FIX in" Messages "FIX application messages received in sequence, once."
    FixMessagesOut "fix_messages_out" "FIX out" Messages "FIX application messages sent, resends not counted."
    FixBytesIn "fix_bytes_in" "FIX bytes in" Bytes "Bytes that FIX sessions took."
    FixBytesOut "fix_bytes_out" "FIX bytes out" Bytes "Bytes that FIX sessions gave to be transmitted."
    FixLogDropped "fix_log_dropped" "FIX unlogged" Events "Pieces of FIX messages and events that were not logged because the log's ring was full: the disk is too slow."
    MassQuotesSent "mass_quotes_sent" "mass quotes" Messages "Mass quotes given to the session."
    QuoteEntriesSent "quotes_sent" "quotes" Events "Entries of mass quotes sent: a quote of one instrument, both sides."
    QuoteEntriesRejected "quotes_rejected" "quotes refused" Events "Entries of mass quotes that the venue rejected; the instrument is no longer quoted."
    QuotesThrottled "quotes_throttled" "quotes held" Events "Improvements of quotes put off by a message rate or because too many messages wait for an answer."
    QuotesCapped "quotes_capped" "quotes capped" Events "Sides of quotes left out because a limit on contracts would be passed."
    QuotesCrossing "quotes_crossing" "quotes crossing" Events "Options pulled because their quote would have crossed or locked the market."
    QuotesTooGood "quotes_too_good" "quotes too good" Events "Options pulled because a side of their quote was better than the market's by more than it may."
    QuotesOffMid "quotes_off_mid" "quotes off mid" Events "Options pulled because the middle of their quote was too far from the market's."
    QuotesNoMarket "quotes_no_market" "no market" Events "Options pulled because their market lacks a side that it must have, or is not known."
    QuotePulls "quote_pulls" "pulls" Events "Times every quote was cancelled at once: a market not to be trusted, a protection, an operator."
    QuoteAnswersUnmatched "quotes_unmatched" "answers unmatched" Events "Answers and fills that fit no quote: unknown, already seen, more than was quoted."
    EyeSeen "eye_seen" "eye" Events "Times the market of an option was seen to cross its value by the eye's edge."
    EyeOwn "eye_own" "eye own" Events "Of these, not taken because a quote of our own could have traded, or a change of it was under way."
    EyeCooling "eye_cooling" "eye cooling" Events "Of these, not taken because the option had been traded just before."
    EyeUnlikely "eye_unlikely" "eye unlikely" Events "Of these, not taken because they crossed by more than is believed."
    EyeOffMarket "eye_off_market" "eye off market" Events "Of these, not taken because our value was too far from the middle of the market, or there was none."
    EyeCapped "eye_capped" "eye capped" Events "Of these, not taken because a limit on contracts or premium left no room."
    EyeThrottled "eye_throttled" "eye held" Events "Of these, not taken because of the order rate, or because the session had no room."
    EyeStops "eye_stops" "eye stops" Events "Times the eye turned itself off: no heartbeat of the operator, a late answer, a fill that fits nothing."
}

/// A value for every counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Counter::ALL.len()])
    }
}

impl Counters {
    /// Adds one.
    #[inline]
    pub fn bump(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&mut self, counter: Counter, n: u64) {
        self.0[counter as usize] = self.0[counter as usize].wrapping_add(n);
    }

    /// Takes one back that was counted too early.
    #[inline]
    pub fn take_back(&mut self, counter: Counter) {
        self.add(counter, 1_u64.wrapping_neg());
    }

    /// The value.
    #[inline]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Adds every value of `other` (several feeds, several threads).
    pub fn merge(&mut self, other: &Counters) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.wrapping_add(theirs);
        }
    }

    /// Every counter with its value, in table order.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.iter().map(|&c| (c, self.get(c)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_every_counter_has_its_sentence() {
        for (i, a) in Counter::ALL.iter().enumerate() {
            assert!(a.spec().sentence.ends_with('.'), "{:?}", a.spec());
            assert!(
                Counter::ALL[..i].iter().all(|b| b.spec().id != a.spec().id),
                "{:?}",
                a.spec()
            );
        }
    }
}
