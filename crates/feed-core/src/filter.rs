//! What is wanted of a feed, for every venue in one place: instruments by number, rules and a bit for each
//! number, instruments that join in mid-session, and how much was seen and dropped.
//!
//! A decoder has one ([`Decoder::filter`](crate::Decoder::filter)) and asks it a single question a message,
//! [`Filter::has`]:
//!
//! ```text
//!  message ─► has(instrument)? ─ yes ────────────────────────────► count, decode, tell
//!                  └─ no ─► does it join? ─ yes ─► hold until a snapshot has come
//!                                └─ no ─► count as filtered, drop
//! ```
//! Everything that is said about subscriptions beside the way of a message is answered here and not by
//! venues.

use crate::decoder::Context;
use crate::join_round::JoinRound;
use crate::joins::{JoinTally, Joins};
use crate::subscriptions::{Kinds, Rule, Seen, Subscriptions, SubscriptionsFull};
use alloc::{boxed::Box, vec, vec::Vec};
use core::hint::black_box;
use core::ops::Range;
use tickwire_market::{Instrument, InstrumentId, MessageType, SeqNo, Symbol, Venue};

/// How an instrument that is subscribed to in mid-session comes to a right book.
#[derive(Clone, Copy)]
enum JoinWay {
    /// There is no way: its book stays marked until the feed begins anew.
    None,
    /// By a snapshot of the whole session, see [`crate::join_round`]. What a message is about is told by its
    /// first bytes.
    Round(fn(&[u8]) -> (MessageType, InstrumentId)),
    /// By a snapshot of its own, see [`crate::joins`]: until then it does not pass.
    Single,
    /// By what is said of it from then on: it passes at once.
    Passing,
}

/// How many messages were seen and dropped.
struct Counts {
    /// The number of the first instrument.
    first: u32,
    by_type: Kinds,
    /// From the first instrument on; empty where the decoder counts beside what it keeps of an instrument
    /// anyway.
    by_instrument: Box<[Seen]>,
}

impl Counts {
    /// Counts a message that was held back and is not needed: as seen and dropped.
    fn dropped(&mut self, (kind, id): (MessageType, InstrumentId)) {
        let at = match id {
            InstrumentId::WHOLE_FEED => None,
            id => id.0.checked_sub(self.first),
        };
        let of_instrument = at.and_then(|at| self.by_instrument.get_mut(at as usize));
        let of_type = self.by_type.at(kind.0.into());
        for seen in of_instrument.into_iter().chain([of_type]) {
            seen.drop_one();
        }
    }
}

/// See the module's description. All memory is taken at construction, but for rules that are added later.
pub struct Filter {
    venue: Venue,
    instruments_max: usize,
    subscriptions: Subscriptions,
    /// Some instrument is, or was, not wanted.
    drops: bool,
    way: JoinWay,
    /// Instruments that join by snapshots of their own, or by what is said of them.
    pub joins: Joins,
    /// Instruments that join by a snapshot of the whole session.
    pub round: JoinRound,
    counts: Counts,
    /// From the first instrument on, up to the last one named so far.
    instruments: Vec<Instrument>,
    /// How many have a name.
    known: u32,
    /// How often somebody was named, or another rule was made.
    changes: u64,
    /// A bit for every one that has closed.
    closed: Box<[u64]>,
    closed_count: u32,
}

impl Filter {
    /// For instruments with these numbers, of which some are wanted (`None`: all). They do not join; nothing
    /// is counted by instrument.
    pub fn new(venue: Venue, numbers: Range<u32>, symbols: Option<&[Symbol]>) -> Filter {
        let end = numbers.end.max(numbers.start + 1) as usize;
        let instruments_max = end - numbers.start as usize;
        Filter {
            venue,
            instruments_max,
            subscriptions: Subscriptions::new(end, symbols),
            drops: symbols.is_some(),
            way: JoinWay::None,
            joins: Joins::without_room(0, 0),
            round: JoinRound::new(0),
            counts: Counts {
                first: numbers.start,
                by_type: Kinds::new(),
                by_instrument: Box::default(),
            },
            instruments: Vec::with_capacity(instruments_max),
            known: 0,
            changes: 0,
            closed: vec![0; end.div_ceil(64)].into(),
            closed_count: 0,
        }
    }

    /// An instrument joins by a snapshot of the whole session; `about` is the type of a message and its
    /// instrument, as far as its first bytes say it (0 otherwise).
    pub fn joining_by_round(mut self, about: fn(&[u8]) -> (MessageType, InstrumentId)) -> Filter {
        self.way = JoinWay::Round(about);
        self.round = JoinRound::new(self.numbers_end());
        self
    }

    /// An instrument joins by a snapshot of its own, and does not pass before.
    pub fn joining_singly(mut self) -> Filter {
        self.way = JoinWay::Single;
        self.joins = Joins::new(self.numbers_end());
        self
    }

    /// An instrument passes at once; its book is right when enough has been said of it. Snapshots are for
    /// those below `snapshots_max`.
    pub fn joining_at_once(mut self, snapshots_max: usize) -> Filter {
        self.way = JoinWay::Passing;
        self.joins = Joins::without_room(self.numbers_end(), snapshots_max);
        self
    }

    /// Counts by instrument, too.
    pub fn counting_instruments(mut self) -> Filter {
        self.counts.by_instrument = vec![Seen::default(); self.instruments_max].into();
        self
    }

    /// Types of messages that are not the numbers of their places.
    pub fn naming_types(mut self, named: fn(usize) -> MessageType) -> Filter {
        self.counts.by_type.name_all(named);
        self
    }

    /// The venue whose instruments these are.
    #[inline(always)]
    pub fn venue(&self) -> Venue {
        self.venue
    }

    /// Numbers are below this.
    pub fn numbers_end(&self) -> usize {
        self.counts.first as usize + self.instruments_max
    }

    // ---- what is wanted ---------------------------------------------------------------------------------------------

    /// Whether messages of this instrument pass. Number 0, the feed as a whole, always does.
    #[inline(always)]
    pub fn has(&self, id: InstrumentId) -> bool {
        self.subscriptions.has(id)
    }

    /// Whether some instrument is, or was, not wanted.
    #[inline(always)]
    pub fn drops_any(&self) -> bool {
        self.drops
    }

    /// The rules, and the bits that they amount to.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Lets an instrument's messages pass, or no more.
    pub fn set_open(&mut self, id: InstrumentId, is_open: bool) {
        self.subscriptions.set(id, is_open);
    }

    /// Adds a rule of what is wanted, and names the instruments known so far of which it changes that.
    pub fn select(
        &mut self,
        rule: Rule,
        changed: &mut dyn FnMut(&Instrument),
    ) -> Result<(), SubscriptionsFull> {
        self.subscriptions.add(rule)?;
        self.changes += 1;
        self.drops |= !rule.wanted;
        let known = self.instruments.iter().filter(|i| !i.symbol.is_empty());
        for instrument in known.filter(|i| rule.pattern.matches(&i.symbol)) {
            let id = instrument.id;
            let is_wanted = self.subscriptions.has(id) || self.joins.has(id) || self.round.has(id);
            if is_wanted == rule.wanted {
                continue;
            }
            self.joins.leave(id);
            if !self.round.remove(id) {
                self.subscriptions.set(id, rule.wanted);
            }
            self.round.set_left(id, !rule.wanted);
            changed(instrument);
        }
        self.subscriptions.set_unnamed(rule);
        if rule.is_about_all() && !rule.wanted {
            // Numbers without a name can join, too.
            self.joins.leave_all();
            self.round.remove_all();
        }
        self.settle();
        self.shut_joining();
        Ok(())
    }

    /// The rules that hold, see [`Subscriptions::rules`].
    pub fn rules(&self, each: &mut dyn FnMut(&Rule)) {
        self.subscriptions.rules(each);
    }

    // ---- instruments ------------------------------------------------------------------------------------------------

    /// What is known about an instrument.
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        let at = id.0.checked_sub(self.counts.first)?;
        let instrument = self.instruments.get(at as usize);
        instrument.filter(|i| !i.symbol.is_empty())
    }

    /// The instruments so far, by number.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments.iter().filter(|i| !i.symbol.is_empty())
    }

    /// The wanted ones of them that do not join.
    pub fn wanted(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments().filter(|i| self.has(i.id))
    }

    /// The number of a symbol, if it is known. A search: not for the hot path.
    pub fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.instruments().find(|i| i.symbol == *symbol).map(|i| i.id)
    }

    /// The number behind the last one named, `None` where that was the last one there can be: for venues
    /// without numbers.
    pub fn next_number(&self) -> Option<InstrumentId> {
        let next = self.instruments.len();
        (next < self.instruments_max).then_some(InstrumentId(self.counts.first + next as u32))
    }

    /// The venue says who a number is: whether it passes is what the rules say of its symbol, if it has one,
    /// unless it joins. What was known of it before; `None`, and nothing changes, for a number out of range.
    pub fn enter(&mut self, instrument: Instrument) -> Option<Instrument> {
        let at = instrument.id.0.checked_sub(self.counts.first)? as usize;
        if at >= self.instruments_max {
            return None;
        }
        if at >= self.instruments.len() {
            self.instruments.resize(at + 1, Instrument::default());
        }
        self.changes += 1;
        let before = core::mem::replace(&mut self.instruments[at], instrument);
        self.known += u32::from(before.symbol.is_empty() && !instrument.symbol.is_empty());
        self.known -= u32::from(!before.symbol.is_empty() && instrument.symbol.is_empty());
        let is_open = !self.is_joining(instrument.id) || self.passes_joining();
        if is_open && !instrument.symbol.is_empty() {
            self.subscriptions.learn(instrument.id, &instrument.symbol);
        }
        Some(before)
    }

    /// What is known about an instrument, to add to it: not its number or symbol.
    pub fn instrument_mut(&mut self, id: InstrumentId) -> Option<&mut Instrument> {
        let at = id.0.checked_sub(self.counts.first)?;
        self.instruments.get_mut(at as usize)
    }

    /// Numbers mean other instruments from now on: nothing is known of them, and nothing joins.
    pub fn forget(&mut self) {
        self.open_all();
        self.round.forget_left();
        self.instruments.clear();
        self.subscriptions.forget_numbers();
        self.closed.fill(0);
        (self.known, self.closed_count) = (0, 0);
        self.changes += 1;
    }

    /// Another number than before wherever an instrument may have been named, renamed or forgotten, or what
    /// the rules say has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The venue says whether an instrument has closed for the day. Of a number out of range nothing is kept.
    pub fn set_closed(&mut self, id: InstrumentId, is_closed: bool) {
        let bit = 1 << (id.index() % 64);
        let Some(word) = self.closed.get_mut(id.index() / 64) else {
            return;
        };
        match (*word & bit != 0, is_closed) {
            (false, true) => (*word, self.closed_count) = (*word | bit, self.closed_count + 1),
            (true, false) => (*word, self.closed_count) = (*word & !bit, self.closed_count - 1),
            _ => {}
        }
    }

    /// Whether every instrument known, wanted or not, has closed.
    pub fn is_closed(&self) -> bool {
        self.known > 0 && self.closed_count >= self.known
    }

    // ---- joins ------------------------------------------------------------------------------------------------------

    /// Whether an instrument joins, now or next.
    #[inline]
    pub fn is_joining(&self, id: InstrumentId) -> bool {
        self.joins.has(id) || self.round.has(id)
    }

    /// Whether any instrument joins, now or next. A search while some do, for the hot path while none does.
    #[inline]
    pub fn has_joins(&self) -> bool {
        if self.joins.is_empty() && !self.round.holds_any() {
            return false;
        }
        let mut any = false;
        self.joins.each(|_| any = true);
        self.round.each(|_| any = true);
        any
    }

    /// Whether an instrument's messages are wanted and its book is kept right by them, and there is a
    /// snapshot of it to make it right when it is not.
    pub fn is_followed(&self, id: InstrumentId) -> bool {
        let has_way = !matches!(self.way, JoinWay::Passing | JoinWay::None);
        has_way && self.has(id) && !self.is_joining(id)
    }

    /// See [`Decoder::join`](crate::Decoder::join): it does not pass until its snapshot has come.
    pub fn join(&mut self, id: InstrumentId, next: SeqNo) {
        match self.way {
            JoinWay::None => return,
            JoinWay::Passing => return self.joins.begin(id, next.0),
            JoinWay::Round(_) if !self.round.begin(id, next) => return,
            JoinWay::Round(_) => {}
            JoinWay::Single => self.joins.begin(id, next.0),
        }
        self.subscriptions.set(id, false);
    }

    /// An instrument's own snapshot has come, or nothing is to be known of it: it joins no more and passes.
    pub fn open(&mut self, id: InstrumentId) {
        self.joins.finish(id);
        self.subscriptions.set(id, true);
    }

    /// What joins needs no snapshot of its own, because all books begin anew: all pass.
    pub fn open_all(&mut self) {
        let passes = self.passes_joining();
        let subscriptions = &mut self.subscriptions;
        self.joins.end_all(|id| {
            if !passes {
                subscriptions.set(id, true);
            }
        });
        if let JoinWay::Round(about) = self.way {
            let counts = &mut self.counts;
            self.round.absorb(
                |id| _ = subscriptions.set(id, true),
                |bytes| counts.dropped(about(bytes)),
            );
        }
    }

    /// The joining instruments of the round pass from now on.
    pub fn admit_joining(&mut self) {
        let subscriptions = &mut self.subscriptions;
        self.round.each_joining(|id| _ = subscriptions.set(id, true));
    }

    /// The live stream goes on at `next`, behind a snapshot of the whole feed.
    pub fn go_on_at(&mut self, next: SeqNo) {
        self.joins.go_on_at(|_| next.0);
        self.round.rebase(next);
    }

    /// Holds back a live message of an instrument that joins in the round, or that may be of one.
    #[cold]
    #[inline(never)]
    pub fn hold(&mut self, context: Context, clock: u64, message: &[u8]) {
        if let JoinWay::Round(about) = self.way {
            let counts = &mut self.counts;
            self.round
                .hold(context, clock, message, |bytes| counts.dropped(about(bytes)));
        }
    }

    /// Counts a held message that the snapshot has already.
    pub fn drop_held(&mut self, message: &[u8]) {
        self.round.dropped += 1;
        if let JoinWay::Round(about) = self.way {
            self.counts.dropped(about(message));
        }
    }

    /// The round, where instruments join by one.
    pub fn round(&self) -> Option<&JoinRound> {
        matches!(self.way, JoinWay::Round(_)).then_some(&self.round)
    }

    /// The same, to change it.
    pub fn round_mut(&mut self) -> Option<&mut JoinRound> {
        matches!(self.way, JoinWay::Round(_)).then_some(&mut self.round)
    }

    /// What came of the joins so far.
    pub fn tally(&self) -> JoinTally {
        match self.way {
            JoinWay::Round(_) => self.round.tally,
            _ => self.joins.tally,
        }
    }

    /// Whether what joins passes at once.
    fn passes_joining(&self) -> bool {
        matches!(self.way, JoinWay::Passing)
    }

    /// Ends the round if nobody joins any more.
    fn settle(&mut self) {
        if let JoinWay::Round(about) = self.way {
            let counts = &mut self.counts;
            self.round.settle(|bytes| counts.dropped(about(bytes)));
        }
    }

    /// A rule has set bits that are not to be: what joins does not pass.
    fn shut_joining(&mut self) {
        let subscriptions = &mut self.subscriptions;
        self.round.each(|id| _ = subscriptions.set(id, false));
        if !matches!(self.way, JoinWay::Passing) {
            self.joins.each(|id| _ = subscriptions.set(id, false));
        }
    }

    // ---- counts -----------------------------------------------------------------------------------------------------

    /// What was seen of a type, by its place.
    #[inline(always)]
    pub fn of_type(&mut self, place: usize) -> &mut Seen {
        self.counts.by_type.at(place)
    }

    /// Reads what tells whether an instrument is wanted, and what was seen of these types, so that it is in
    /// the caches: for a thread that waits.
    pub fn fetch(&self, types: Range<usize>) {
        self.subscriptions.fetch();
        types.for_each(|place| {
            black_box(self.counts.by_type.both(place));
        });
    }

    /// The type whose messages are counted at a place, where only a message says it.
    #[inline(always)]
    pub fn name_type(&mut self, place: usize, kind: MessageType) {
        self.counts.by_type.name(place, kind);
    }

    /// What was seen of a type, and of an instrument by its place from the first one on; `None` for one out
    /// of range.
    #[inline(always)]
    pub fn of_both(&mut self, place: usize, instrument: usize) -> Option<(&mut Seen, &mut Seen)> {
        Some((
            self.counts.by_type.at(place),
            self.counts.by_instrument.get_mut(instrument)?,
        ))
    }

    /// What was seen of an instrument that there can be.
    #[inline(always)]
    pub fn of_instrument(&mut self, id: InstrumentId) -> &mut Seen {
        &mut self.counts.by_instrument[id.0.wrapping_sub(self.counts.first) as usize]
    }

    /// What was seen of a type.
    pub fn seen_of_type(&self, place: usize) -> Seen {
        self.counts.by_type.get(place)
    }

    /// What was seen of an instrument, where that is counted here.
    pub fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        let at = id.0.checked_sub(self.counts.first);
        let seen = at.and_then(|at| self.counts.by_instrument.get(at as usize));
        seen.copied().unwrap_or_default()
    }

    /// How many messages of each type were seen and dropped, types never seen left out. A message about
    /// several instruments is dropped if none of them is wanted.
    pub fn kinds(&self, each: &mut dyn FnMut(MessageType, Seen)) {
        self.counts.by_type.each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoder, Pattern, Prefiltered};
    use tickwire_market::{Counter, Counters, EventKind, EventSink, MarketEvent, Qty};

    const IDS: [InstrumentId; 3] = [InstrumentId(1), InstrumentId(2), InstrumentId(3)];

    fn rule(text: &str) -> Rule {
        Rule {
            pattern: text[1..].parse().unwrap(),
            wanted: text.starts_with('+'),
        }
    }

    fn select(filter: &mut Filter, text: &str) -> Vec<u32> {
        let mut changed = Vec::new();
        let add = &mut |instrument: &Instrument| changed.push(instrument.id.0);
        filter.select(rule(text), add).unwrap();
        changed
    }

    /// Of instruments A, B and C (1 to 3), with nothing wanted.
    fn named(filter: Filter) -> Filter {
        let mut filter = filter;
        for (id, name) in IDS.into_iter().zip([b"A", b"B", b"C"]) {
            let entered = filter.enter(Instrument {
                id,
                symbol: Symbol::new(name).unwrap(),
                ..Instrument::default()
            });
            assert_eq!(entered, Some(Instrument::default()));
        }
        filter
    }

    fn nothing() -> Filter {
        Filter::new(Venue::Nasdaq, 1..8, Some(&[]))
    }

    fn about(message: &[u8]) -> (MessageType, InstrumentId) {
        (
            MessageType(message[0].into()),
            InstrumentId(u32::from(message[1])),
        )
    }

    #[test]
    fn what_joins_does_not_pass_whatever_rule_is_added_and_leaves_when_nobody_wants_it() {
        for by_round in [false, true] {
            let mut filter = named(match by_round {
                true => nothing().joining_by_round(about),
                false => nothing().joining_singly(),
            });
            filter.round.prepare(Some(SeqNo(5)), 100);
            assert_eq!(select(&mut filter, "+A"), [1]);
            filter.join(IDS[0], SeqNo(5));
            let shut = |filter: &Filter| filter.is_joining(IDS[0]) && !filter.has(IDS[0]);
            assert!(shut(&filter) && !filter.is_followed(IDS[0]));
            assert_eq!(select(&mut filter, "+*"), [2, 3], "A is wanted already");
            assert!(shut(&filter) && filter.has(IDS[1]) && filter.has(InstrumentId(7)));
            // A number that nobody has named joins, too.
            filter.join(InstrumentId(7), SeqNo(6));
            assert_eq!(select(&mut filter, "-*"), [1, 2, 3]);
            for id in IDS.into_iter().chain([InstrumentId(7)]) {
                assert!(!filter.is_joining(id) && !filter.has(id), "{id:?} {by_round}");
            }
            assert!(filter.joins.is_empty() && !filter.round.holds_any());
        }
    }

    #[test]
    fn whoever_is_named_and_whatever_is_wanted_is_a_change() {
        let mut filter = nothing();
        let mut before = filter.changes();
        let mut has_changed =
            |filter: &Filter| core::mem::replace(&mut before, filter.changes()) != filter.changes();
        let one = Instrument {
            id: IDS[0],
            symbol: Symbol::new(b"ONE").unwrap(),
            ..Instrument::default()
        };
        filter.enter(one);
        assert!(has_changed(&filter));
        filter.enter(Instrument {
            symbol: Symbol::new(b"TWO").unwrap(),
            ..one
        });
        assert!(has_changed(&filter), "it has another name");
        select(&mut filter, "+TWO");
        assert!(has_changed(&filter));
        filter.forget();
        assert!(has_changed(&filter));
        filter.seen_of_instrument(IDS[0]);
        assert!(!has_changed(&filter));
    }

    #[test]
    fn a_held_message_that_is_not_needed_counts_as_dropped() {
        let mut filter = named(nothing().joining_by_round(about).counting_instruments());
        filter.round.prepare(Some(SeqNo(5)), 1000);
        select(&mut filter, "+A");
        filter.join(IDS[0], SeqNo(5));
        let context = Context {
            seq: SeqNo(5),
            received: tickwire_market::Nanos(1),
            flags: tickwire_market::EventFlags::NONE,
        };
        filter.hold(context, 0, b"T\x01");
        filter.open_all();
        assert!(filter.has(IDS[0]), "its book begins anew like all others");
        let seen = filter.seen_of_instrument(IDS[0]);
        assert_eq!((seen.seen, seen.filtered, filter.round.dropped), (1, 1, 1));
        assert_eq!(filter.seen_of_type(b'T'.into()), seen);
    }

    /// A ninth venue: number, type and quantity in three bytes, and all that it has to say about
    /// subscriptions.
    struct Ninth(Filter);

    impl Prefiltered for Ninth {}

    impl Decoder for Ninth {
        fn filter(&self) -> &Filter {
            &self.0
        }

        fn filter_mut(&mut self) -> &mut Filter {
            &mut self.0
        }

        fn decode<S: EventSink>(
            &mut self,
            context: Context,
            message: &[u8],
            counters: &mut Counters,
            sink: &mut S,
        ) {
            let &[kind, number, qty] = message else {
                return crate::decoder::count_bad_value(counters);
            };
            let id = InstrumentId(number.into());
            let passes = self.0.has(id);
            let Some((of_type, of_instrument)) = self.0.of_both(kind.into(), id.index()) else {
                return crate::decoder::count_bad_value(counters);
            };
            of_type.seen += 1;
            of_instrument.seen += 1;
            if !passes {
                of_type.filtered += 1;
                of_instrument.filtered += 1;
                return counters.bump(Counter::MessagesFiltered);
            }
            sink.on_event(&MarketEvent {
                seq: context.seq,
                instrument: id,
                kind: EventKind::Trade,
                qty: Qty(qty.into()).into(),
                ..MarketEvent::default()
            });
        }
    }

    #[test]
    fn a_further_venue_writes_three_methods() {
        let filter = Filter::new(Venue::Nasdaq, 0..8, Some(&[])).counting_instruments();
        let mut decoder = Ninth(named(filter));
        let mut changed = Vec::new();
        let pattern: Pattern = "B".parse().unwrap();
        let rule = Rule {
            pattern,
            wanted: true,
        };
        decoder.select(rule, &mut |id| changed.push(id)).unwrap();
        assert_eq!(changed, [IDS[1]]);
        let context = Context {
            seq: SeqNo(1),
            received: tickwire_market::Nanos(1),
            flags: tickwire_market::EventFlags::NONE,
        };
        let (mut counters, mut told) = (Counters::default(), Vec::new());
        for message in [b"T\x01\x05", b"T\x02\x06", b"T\x09\x07"] {
            let mut sink = |event: &MarketEvent| told.push(event.instrument);
            decoder.decode(context, message, &mut counters, &mut sink);
        }
        assert_eq!(told, [IDS[1]]);
        assert_eq!(counters.get(Counter::MessagesFiltered), 1);
        assert_eq!(counters.get(Counter::Malformed), 1, "there is no number 9");
        let mut kinds = Vec::new();
        decoder
            .filter()
            .kinds(&mut |kind, seen| kinds.push((kind, seen.seen, seen.filtered)));
        assert_eq!(kinds, [(MessageType(b'T'.into()), 2, 1)]);
        assert!(!decoder.is_followed(IDS[1]), "there is no snapshot of it");
    }
}
