//! One channel of a feed with all its ways of recovery, for whoever owns the sockets.
//!
//! ```text
//!   multicast Live A B ─┐                                   ┌─► events
//!   Retransmission ─────┤ on_datagram                       │
//!   Snapshot loops ─────┤                ┌─────────────┐    │
//!   Requests (UDP) ─────┘ ◄─ poll_request│   Channel   │────┘
//!   Replay (TCP) ────────── on_bytes ───►│             │
//!   SnapshotServer (TCP) ─ ◄poll_transmit└─────────────┘
//! ```
//! After every call the owner drains [`Channel::poll_request`] and, for each open connection,
//! [`Channel::poll_transmit`]; opens a connection where [`Channel::wants_connection`] says so, closes one
//! where it no longer does; and calls [`Channel::handle_timeout`] when [`Channel::poll_timeout`] is due. What
//! the recovery of a venue is made of stays behind this trait: the owner knows addresses, not protocols.

use crate::{DayUse, FeedState, Line, Pattern, Prefiltered, Rule, Seen, SubscriptionsFull, Twin};
use tickwire_market::{
    Contract, Counters, Currency, EventSink, Instrument, InstrumentId, MessageType, Nanos, PointValue, Port,
    Price, PriceSteps, SeqNo, Symbol, Venue,
};

/// See the module's description.
pub trait Channel {
    /// The venue whose messages these are.
    fn venue(&self) -> Venue;

    /// Takes a datagram: of a multicast port (`line` says which line) or an answer of [`Port::Requests`] (the
    /// line means nothing then). A corrupt one is counted and treated as lost.
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S)
    where
        Self: Sized;

    /// [`Channel::on_datagram`] into any sink, called through its table: some nanoseconds an event more, and
    /// compiled once for everybody who is not on the hot path. `through_tables!` writes these three.
    fn on_datagram_dyn(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut dyn EventSink);

    /// [`Channel::on_message`] into any sink.
    fn on_message_dyn(&mut self, now: Nanos, message: &[u8], sink: &mut dyn EventSink);

    /// [`Channel::preview`] for any sink.
    fn preview_dyn(&mut self, now: Nanos, message: &[u8], sink: &mut dyn EventSink);

    /// A filter in front of this channel has seen every live message before `next` in sequence, and nobody
    /// wants those that it kept back: they are no gap. Called before the datagram with which that was said.
    /// Ignored while something is missing.
    fn seen_up_to(&mut self, now: Nanos, next: SeqNo);

    /// Packets come that a filter in front of this channel keeps back: the line is not silent.
    fn alive(&mut self, now: Nanos);

    /// Every line of the channel has been read up to this time. From now on a packet makes due what was due
    /// by then, and not what was due when the packet was read: a thread may have stood still, and what a gap
    /// waits for lies in a socket behind the packet. Who never says so has read everything before.
    fn read_up_to(&mut self, read: Nanos) {
        let _ = read;
    }

    /// Takes the next message of a source that cannot lose any: a file of messages without packets, where a
    /// venue has such files (Nasdaq). Other venues' channels ignore it.
    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S)
    where
        Self: Sized,
    {
        let _ = (now, message, sink);
    }

    /// Looks at a message that [`Channel::on_message`] is to take at `now`, some messages later, and tells
    /// the sink which order it is about. Each is shown once and in order, and no message that was not shown
    /// comes between two that were. Ignoring it is always correct.
    fn preview<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S)
    where
        Self: Sized,
    {
        let _ = (now, message, sink);
    }

    /// Time has passed. Call it when [`Channel::poll_timeout`] says so.
    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink);

    /// When to call [`Channel::handle_timeout`], if nothing comes before.
    fn poll_timeout(&self) -> Option<Nanos>;

    /// The next datagram for [`Port::Requests`], written into `buffer`.
    fn poll_request<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let _ = buffer;
        None
    }

    /// Whether a connection to this stream port should be open now. To open it, and to close it when the
    /// answer changes, is the owner's part; after a failure it waits before it tries again.
    fn wants_connection(&self, port: Port) -> bool {
        let _ = port;
        false
    }

    /// The connection is there; the channel logs in next.
    fn connected(&mut self, now: Nanos, port: Port) {
        let _ = (now, port);
    }

    /// Bytes of a connection, cut anywhere.
    fn on_bytes(&mut self, now: Nanos, port: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        let _ = (now, port, bytes, sink);
    }

    /// Bytes to send on a connection, as many as fit.
    fn poll_transmit<'b>(&mut self, port: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let _ = (port, buffer);
        None
    }

    /// The connection is gone, whoever closed it; or it could not be opened.
    fn disconnected(&mut self, now: Nanos, port: Port, sink: &mut dyn EventSink) {
        let _ = (now, port, sink);
    }

    /// Which of a port's servers is to be asked, from 0: another one after silence, a refusal or a lie, where
    /// there is another. A connection to a server that is not the one to be asked is to be closed.
    fn server(&self, port: Port) -> usize;

    /// How many servers a port has; one unless told otherwise.
    fn set_servers(&mut self, port: Port, count: u8);

    /// What was used of the day's quotas: to be kept over a restart, as the venue counts on.
    fn day_use(&self) -> DayUse;

    /// What an earlier run used of the day's quotas.
    fn restore_day_use(&mut self, used: DayUse);

    /// Whether recovery did not succeed in time: the feed goes on, marked, and tries again later.
    fn is_given_up(&self) -> bool;

    /// How far the feed can be trusted.
    fn state(&self) -> FeedState;

    /// Whether the session has ended and nothing of it is missing.
    fn is_done(&self) -> bool {
        self.state() == FeedState::Ended
    }

    /// The next message to deliver.
    fn next_seq(&self) -> SeqNo;

    /// When the last live packet came; [`Nanos::ZERO`] before the first.
    fn last_packet(&self) -> Nanos;

    /// Everything counted here, as of now.
    fn counters(&self) -> Counters;

    /// What is known about an instrument.
    fn instrument(&self, id: InstrumentId) -> Option<&Instrument>;

    /// What an instrument is a contract on, as far as the venue's definitions say it; the underlying of an
    /// option is [`InstrumentId::WHOLE_FEED`] where the channel does not have it.
    fn contract(&self, id: InstrumentId) -> Option<Contract> {
        let _ = id;
        None
    }

    /// What a unit of an instrument's price is worth in money, for one unit of its quantity, as far as the
    /// venue says it. Shares of the US venues are priced in dollars; venues with contracts or lots say it in
    /// their definitions.
    fn point_value(&self, id: InstrumentId) -> Option<PointValue> {
        match self.instrument(id)?.venue {
            Venue::Cme | Venue::Moex => None,
            _ => Some(PointValue::unit(Currency::USD)),
        }
    }

    /// The price steps of an instrument.
    fn price_steps(&self, id: InstrumentId) -> Option<PriceSteps> {
        self.instrument(id).map(|instrument| PriceSteps {
            tick: instrument.tick,
            beyond: None,
        })
    }

    /// What 1 in the price fields of an instrument's messages stands for, where every instrument has a scale
    /// of its own (NYSE) and it is known.
    fn price_unit(&self, id: InstrumentId) -> Option<Price> {
        let _ = id;
        None
    }

    /// Another number than before wherever who is known, or who of them is wanted, may be another: for who
    /// would look through all of them again.
    fn changes(&self) -> u64;

    /// What a filter in front of the channel has to know beside.
    fn prefiltered(&self) -> &dyn Prefiltered;

    /// The same, to have orders noted.
    fn prefiltered_mut(&mut self) -> &mut dyn Prefiltered;

    /// Reads what the next packet will need of the channel, and the next message of an instrument, so that it
    /// is in the caches: for a thread that waits. Default: nothing.
    fn fetch(&self, id: InstrumentId) {
        let _ = id;
    }

    /// A channel like this one for rehearsals, of which this instrument is traded, an offer at this price.
    /// Not for the hot path: it takes memory for every number up to the instrument's, and milliseconds where
    /// that is high. Default: none, as nobody has written this venue's offers.
    fn twin(&self, instrument: InstrumentId, price: Price) -> Option<Twin<Self>>
    where
        Self: Sized,
    {
        let _ = (instrument, price);
        None
    }

    /// The number of a symbol, once the venue has said it.
    fn find(&self, symbol: &Symbol) -> Option<InstrumentId>;

    /// Every instrument known, in order of number. Not for the hot path.
    fn instruments(&self, each: &mut dyn FnMut(&Instrument));

    /// Wants from now on the instruments that a pattern names, those defined later and next day too; how many
    /// of those known now were not wanted before. Each of them has missed the past: `Gap` is told of it at
    /// once, and `Recovered` when its book is right. The books of others are left alone. Not for the hot
    /// path: it may allocate.
    fn subscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull>;

    /// No longer wants the instruments that a pattern names, those defined later and next day too; how many
    /// of those known now were wanted before. No message of them is decoded from now on. Of each `Clear` and
    /// then `Gap` is told: its book is empty and nobody takes it for a live one.
    fn unsubscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull>;

    /// The book of an instrument is not right: a message about it could not be read or did not fit
    /// ([`Gap`](tickwire_market::EventKind::Gap) of the instrument, or what the books refuse). `Gap` is told
    /// of it, and where the venue has a snapshot it is emptied and made right by that, while all others go
    /// on; `Recovered` is told then. A sink that knows of such books is asked for them after every packet
    /// ([`EventSink::next_distrusted`]); this is for whoever knows otherwise. Default: nothing.
    fn distrust<S: EventSink>(&mut self, now: Nanos, instrument: InstrumentId, sink: &mut S)
    where
        Self: Sized,
    {
        let _ = (now, instrument, sink);
    }

    /// What was subscribed and unsubscribed and still counts, in order: of all that match an instrument the
    /// last one decides.
    fn subscriptions(&self, each: &mut dyn FnMut(&Rule));

    /// Whether messages of an instrument are wanted by now, or it joins: what a filter in front of the
    /// channel must let pass. Of a number without a name, `true`.
    fn wants(&self, id: InstrumentId) -> bool {
        let _ = id;
        true
    }

    /// Whether any instrument joins: until none does, a filter in front of the channel must let everything
    /// pass.
    fn has_joins(&self) -> bool {
        true
    }

    /// How many messages of each type were seen, and how many of them dropped undecoded; types never seen are
    /// left out.
    fn kinds(&self, each: &mut dyn FnMut(MessageType, Seen));

    /// The same for an instrument. Messages dropped before their instrument was looked up are missing here:
    /// of orders that nobody wants (PITCH), of symbols that nobody wants (CQS, UQDF), of security numbers
    /// that nobody wants (MDP 3.0).
    fn seen_of_instrument(&self, id: InstrumentId) -> Seen;
}

/// The methods of [`Channel`] that take any sink, from those that are compiled for each.
#[doc(hidden)]
#[macro_export]
macro_rules! through_tables {
    () => {
        fn on_datagram_dyn(
            &mut self,
            now: tickwire_market::Nanos,
            port: tickwire_market::Port,
            line: $crate::Line,
            bytes: &[u8],
            sink: &mut dyn tickwire_market::EventSink,
        ) {
            self.on_datagram(now, port, line, bytes, &mut tickwire_market::DynSink(sink));
        }

        fn on_message_dyn(
            &mut self,
            now: tickwire_market::Nanos,
            message: &[u8],
            sink: &mut dyn tickwire_market::EventSink,
        ) {
            self.on_message(now, message, &mut tickwire_market::DynSink(sink));
        }

        fn preview_dyn(
            &mut self,
            now: tickwire_market::Nanos,
            message: &[u8],
            sink: &mut dyn tickwire_market::EventSink,
        ) {
            self.preview(now, message, &mut tickwire_market::DynSink(sink));
        }
    };
}

/// The part of [`Channel`] that every channel answers from its `feed`.
#[doc(hidden)]
#[macro_export]
macro_rules! answers_from_feed {
    () => {
        $crate::through_tables!();

        fn venue(&self) -> tickwire_market::Venue {
            self.feed.filter().venue()
        }

        #[inline]
        fn seen_up_to(&mut self, now: tickwire_market::Nanos, next: tickwire_market::SeqNo) {
            self.feed.seen_up_to(now, next);
        }

        #[inline]
        fn alive(&mut self, now: tickwire_market::Nanos) {
            self.feed.alive(now);
        }

        #[inline]
        fn read_up_to(&mut self, read: tickwire_market::Nanos) {
            self.feed.read_up_to(read);
        }

        fn server(&self, port: tickwire_market::Port) -> usize {
            self.feed.arbiter().planner().server(port)
        }

        fn set_servers(&mut self, port: tickwire_market::Port, count: u8) {
            self.feed.planner_mut().set_servers(port, count);
        }

        fn day_use(&self) -> $crate::DayUse {
            self.feed.arbiter().planner().day_use()
        }

        fn restore_day_use(&mut self, used: $crate::DayUse) {
            self.feed.planner_mut().restore(used);
        }

        fn is_given_up(&self) -> bool {
            self.feed.arbiter().is_given_up()
        }

        #[inline]
        fn state(&self) -> $crate::FeedState {
            self.feed.state()
        }

        fn next_seq(&self) -> tickwire_market::SeqNo {
            self.feed.next_seq()
        }

        fn last_packet(&self) -> tickwire_market::Nanos {
            self.feed.arbiter().last_packet()
        }

        fn counters(&self) -> tickwire_market::Counters {
            self.feed.counters()
        }

        fn instrument(&self, id: tickwire_market::InstrumentId) -> Option<&tickwire_market::Instrument> {
            self.feed.filter().instrument(id)
        }

        fn find(&self, symbol: &tickwire_market::Symbol) -> Option<tickwire_market::InstrumentId> {
            self.feed.filter().find(symbol)
        }

        fn instruments(&self, each: &mut dyn FnMut(&tickwire_market::Instrument)) {
            self.feed.filter().instruments().for_each(each);
        }

        fn subscribe(
            &mut self,
            now: tickwire_market::Nanos,
            pattern: &$crate::Pattern,
            sink: &mut dyn tickwire_market::EventSink,
        ) -> Result<u32, $crate::SubscriptionsFull> {
            self.feed.subscribe(now, pattern, sink)
        }

        fn unsubscribe(
            &mut self,
            now: tickwire_market::Nanos,
            pattern: &$crate::Pattern,
            sink: &mut dyn tickwire_market::EventSink,
        ) -> Result<u32, $crate::SubscriptionsFull> {
            self.feed.unsubscribe(now, pattern, sink)
        }

        fn distrust<S: tickwire_market::EventSink>(
            &mut self,
            now: tickwire_market::Nanos,
            instrument: tickwire_market::InstrumentId,
            sink: &mut S,
        ) {
            self.feed.distrust(now, instrument, sink);
        }

        fn subscriptions(&self, each: &mut dyn FnMut(&$crate::Rule)) {
            self.feed.filter().rules(each);
        }

        fn wants(&self, id: tickwire_market::InstrumentId) -> bool {
            let filter = self.feed.filter();
            filter.instrument(id).is_none() || filter.has(id) || filter.is_joining(id)
        }

        fn has_joins(&self) -> bool {
            self.feed.filter().has_joins()
        }

        fn changes(&self) -> u64 {
            self.feed.filter().changes()
        }

        fn prefiltered(&self) -> &dyn $crate::Prefiltered {
            self.feed.decoder()
        }

        fn prefiltered_mut(&mut self) -> &mut dyn $crate::Prefiltered {
            self.feed.decoder_mut()
        }

        fn kinds(&self, each: &mut dyn FnMut(tickwire_market::MessageType, $crate::Seen)) {
            self.feed.filter().kinds(each);
        }

        fn price_unit(&self, id: tickwire_market::InstrumentId) -> Option<tickwire_market::Price> {
            $crate::Decoder::price_unit(self.feed.decoder(), id)
        }

        fn fetch(&self, id: tickwire_market::InstrumentId) {
            self.feed.fetch(id);
        }

        fn seen_of_instrument(&self, id: tickwire_market::InstrumentId) -> $crate::Seen {
            $crate::Decoder::seen_of_instrument(self.feed.decoder(), id)
        }
    };
}
