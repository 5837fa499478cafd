//! Publishers of consolidated feeds: one model of a SIP ([`SipModel`]) behind the two plans,
//! [`CqsPublisher`](crate::CqsPublisher) and [`UqdfPublisher`](crate::UqdfPublisher).

mod consolidation;

pub use consolidation::{Outage, SipModel};

use alloc::vec::Vec;

pub(crate) use consolidation::{Best, Consolidation, Interest, National, ODD_LOTS_MAX, Quote, Update};
use tickwire_market::{
    InstrumentId, Level, Nanos, Port, Price, Qty, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_persist::{Persist, persist};

use crate::engine::Engine;
use crate::mold::MessageStore;
use crate::order::{Cross, CrossFill, Execution, Listener, Order};
use crate::rules::AuctionKind;
use crate::tape::{Datagram, Listing, Milestone, ParticipantQuote, Publisher, Tape, VenueTime};

/// How many participants have letters in both plans.
pub(crate) const PARTICIPANTS_MAX: usize = 13;

/// How often the reference of the limit prices is looked at. LULD plan: every 30 s.
const REFERENCE_NS: u64 = 30 * Nanos::SECOND;

/// What a plan adds to the model: messages and their delivery. Times are nanoseconds since the epoch.
pub(crate) trait Plan: Persist {
    /// Whose feed it is.
    fn venue(&self) -> Venue;
    /// The letters of the participants.
    fn letters(&self) -> &'static [u8; PARTICIPANTS_MAX];
    /// The letter of a venue: the two plans differ in Nasdaq's alone.
    fn letter_of(&self, venue: Venue) -> Option<u8> {
        Some(match venue {
            Venue::Nasdaq => self.nasdaq(),
            Venue::NasdaqTexas => b'B',
            Venue::Psx => b'X',
            Venue::Bzx => b'Z',
            Venue::Byx => b'Y',
            Venue::Edga => b'J',
            Venue::Edgx => b'K',
            Venue::Nyse => b'N',
            Venue::Arca => b'P',
            Venue::National => b'C',
            Venue::NyseTexas => b'M',
            Venue::American | Venue::Cqs | Venue::Uqdf | Venue::Cme | Venue::Moex => return None,
        })
    }
    /// The letter of Nasdaq.
    fn nasdaq(&self) -> u8;

    /// A point of the day.
    fn milestone(&mut self, milestone: Milestone, at: u64, sip: &Consolidation);
    /// An instrument of the day.
    fn define(&mut self, listing: &Listing, at: u64);
    /// A participant's quote, or what is best, changed.
    fn quote(&mut self, symbol: &Symbol, update: &Update, at: u64);
    /// New limit prices, lower first.
    fn band(&mut self, symbol: &Symbol, band: [Price; 2], is_first: bool, at: u64);
    /// Trading halts or goes on.
    fn status(&mut self, symbol: &Symbol, status: TradingStatus, at: u64);
    /// An instrument's day is over.
    fn closed(&mut self, symbol: &Symbol, instrument: InstrumentId, sip: &Consolidation, at: u64);
    /// A participant fails. Whether one message voids all its quotes, which is written; otherwise each is
    /// told empty.
    fn wipes_out(&mut self, participant: usize, at: u64) -> bool;
    /// Messages so far.
    fn total(&self) -> u64;

    // Delivery, as of a publisher.
    fn handle_timeout(&mut self, now: Nanos, listings: &[Listing], sip: &Consolidation) {
        let _ = (now, listings, sip);
    }
    fn poll_timeout(&self) -> Option<Nanos>;
    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>>;
    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)>;
    fn handle_request(&mut self, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        let _ = (bytes, reply);
        None
    }
    fn end(&mut self, now: Nanos, linger_ns: u64);
    fn is_over(&self) -> bool;
    fn next_seq(&self) -> SeqNo;
    fn store_mut(&mut self) -> &mut MessageStore;
}

/// A feed of a plan. See the module's description.
pub struct SipPublisher<P> {
    pub(crate) plan: P,
    sip: Consolidation,
    listings: Vec<Listing>,
    midnight: Nanos,
    now: VenueTime,
    /// When the market opened.
    opened: Option<VenueTime>,
    /// When each instrument's limit prices were looked at.
    referenced: Vec<VenueTime>,
    outage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Coming,
    Down,
    Past,
}

#[expect(private_bounds, reason = "which plans there are is for this crate to say")]
impl<P: Plan> SipPublisher<P> {
    pub(crate) fn with_plan(plan: P, model: SipModel, listings: &[Listing]) -> SipPublisher<P> {
        let first = listings.first().map_or(InstrumentId(1), |listing| listing.id);
        SipPublisher {
            plan,
            sip: Consolidation::new(model, first, listings.len()),
            listings: listings.to_vec(),
            midnight: Nanos::ZERO,
            now: 0,
            opened: None,
            referenced: alloc::vec![0; listings.len()],
            outage: Stage::Coming,
        }
    }

    fn at(&self) -> u64 {
        self.midnight.after(self.now).0
    }

    fn place(&self, instrument: InstrumentId) -> Option<usize> {
        let first = self.listings.first()?.id.0;
        let at = instrument.0.checked_sub(first)? as usize;
        (at < self.listings.len()).then_some(at)
    }

    fn publish(&mut self, update: Option<Update>) {
        let at = self.at();
        if let Some(update) = update
            && let Some(place) = self.place(update.instrument)
        {
            self.plan.quote(&self.listings[place].symbol, &update, at);
        }
    }

    /// Publishes what is different of a participant, of one instrument or all.
    fn refresh(&mut self, instrument: Option<InstrumentId>, participant: usize) {
        for id in self.sip.instruments() {
            if instrument.is_none_or(|wanted| wanted == id) {
                let update = self.sip.refresh(id, participant);
                self.publish(update);
            }
        }
    }

    /// The limit prices follow the last sale.
    fn follow(&mut self, instrument: InstrumentId, price: Price) {
        let Some(place) = self.place(instrument) else {
            return;
        };
        let is_due = self.opened.is_some() && self.now >= self.referenced[place] + REFERENCE_NS;
        if is_due {
            self.referenced[place] = self.now;
            self.set_band(place, price, false);
        }
    }

    fn set_band(&mut self, place: usize, reference: Price, is_first: bool) {
        let (listing, at) = (self.listings[place], self.at());
        if let Some(band) = self.sip.set_reference(listing.id, reference) {
            self.plan.band(&listing.symbol, band, is_first, at);
            for participant in 0..self.sip.participants() {
                self.refresh(Some(listing.id), participant);
            }
        }
    }

    /// A participant fails and comes back, as configured.
    fn suffer(&mut self) {
        let (Some(outage), Some(opened)) = (self.sip.model().outage, self.opened) else {
            return;
        };
        let begins = opened.saturating_add(outage.after_ns);
        let at = self.at();
        match self.outage {
            Stage::Coming if self.now >= begins && outage.participant < self.sip.participants() => {
                self.outage = Stage::Down;
                if self.plan.wipes_out(outage.participant, at) {
                    self.sip.wipe_out(outage.participant);
                } else {
                    self.sip.set_down(outage.participant, true);
                    self.refresh(None, outage.participant);
                }
            }
            Stage::Down if self.now >= begins.saturating_add(outage.lasts_ns) => {
                self.outage = Stage::Past;
                self.sip.set_down(outage.participant, false);
                self.refresh(None, outage.participant);
            }
            _ => {}
        }
    }
}

impl<P: Plan> Tape for SipPublisher<P> {
    fn set_time(&mut self, at: VenueTime) {
        self.now = self.now.max(at);
        self.suffer();
    }

    fn milestone(&mut self, milestone: Milestone) {
        let at = self.at();
        self.plan.milestone(milestone, at, &self.sip);
        if milestone == Milestone::StartOfMarketHours {
            self.opened = Some(self.now);
            for place in 0..self.listings.len() {
                self.referenced[place] = self.now;
                self.set_band(place, self.listings[place].start, true);
            }
        }
    }

    fn define(&mut self, listing: &Listing) {
        let at = self.at();
        self.plan.define(listing, at);
    }

    fn total(&self) -> u64 {
        self.plan.total()
    }
}

impl<P: Plan> Listener for SipPublisher<P> {
    fn rested(&mut self, order: &Order) {
        if self.sip.model().is_told {
            return;
        }
        let update = self.sip.rested(order);
        self.publish(update);
    }

    fn executed(&mut self, execution: &Execution) {
        if !self.sip.model().is_told {
            let update = self.sip.executed(execution);
            self.publish(update);
        }
        self.follow(execution.maker.instrument, execution.price);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        if self.sip.model().is_told || fill.from_book.is_zero() {
            return;
        }
        let update = self.sip.cross_filled(fill);
        self.publish(update);
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        if self.sip.model().is_told {
            return;
        }
        let update = self.sip.reduced(order, by);
        self.publish(update);
    }

    fn deleted(&mut self, order: &Order) {
        if self.sip.model().is_told {
            return;
        }
        let update = self.sip.deleted(order);
        self.publish(update);
    }

    fn expired(&mut self, _: &Order) {}

    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.deleted(old);
        if rests {
            self.rested(new);
        }
    }

    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let Some(place) = self.place(instrument) else {
            return;
        };
        let halted = matches!(status, TradingStatus::Halted | TradingStatus::Paused);
        let at = self.at();
        let changes = self.sip.set_halted(instrument, halted);
        self.plan.status(&self.listings[place].symbol, status, at);
        if changes {
            (0..self.sip.participants()).for_each(|participant| self.refresh(Some(instrument), participant));
        }
    }

    fn crossed(&mut self, cross: &Cross) {
        let at = self.at();
        let closes = cross.kind == AuctionKind::Closing;
        if let Some(place) = self.place(cross.instrument).filter(|_| closes) {
            let symbol = &self.listings[place].symbol;
            self.plan.closed(symbol, cross.instrument, &self.sip, at);
        }
    }
}

impl<P: Plan> Publisher for SipPublisher<P> {
    fn venue(&self) -> Venue {
        self.plan.venue()
    }

    fn open(&mut self, midnight: Nanos) {
        self.midnight = midnight;
    }

    fn handle_timeout(&mut self, now: Nanos, _: &Engine) {
        self.plan.handle_timeout(now, &self.listings, &self.sip);
    }

    fn quoted(&mut self, venue: Venue, instrument: InstrumentId, engine: &Engine) {
        let letters = self.plan.letters();
        let letter = self.plan.letter_of(venue);
        let Some(participant) = letters.iter().position(|l| Some(*l) == letter) else {
            return;
        };
        let update = self.sip.look(instrument, participant, engine);
        self.publish(update);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.plan.poll_timeout()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.plan.poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        self.plan.span(datagram)
    }

    fn handle_request(&mut self, _: Nanos, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        self.plan.handle_request(bytes, reply)
    }

    fn connect(&mut self, _: Port, _: usize, _: Nanos) -> bool {
        false
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.plan.end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.plan.is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.plan.next_seq()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.plan.store_mut()
    }

    /// The national best.
    fn levels(&self, _: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        self.sip.level(instrument, side).into_iter().collect()
    }

    fn participant_quotes(&self, instrument: InstrumentId) -> Vec<ParticipantQuote> {
        let letters = self.plan.letters();
        let level = |interest: Interest| Level {
            price: interest.price,
            qty: Volume(interest.qty.into()),
            orders: 0,
        };
        let quotes = self.sip.quotes(instrument);
        quotes
            .map(|(participant, quote)| ParticipantQuote {
                participant: letters[participant],
                sides: quote.best.map(level),
            })
            .collect()
    }
}

/// Space, `A` bid, `B` offer, `C` both: of sides that are marked. Both plans use it for retail interest and
/// limit prices.
pub(crate) const fn sides_code([bid, ask]: [bool; 2]) -> u8 {
    match (bid, ask) {
        (false, false) => b' ',
        (true, false) => b'A',
        (false, true) => b'B',
        (true, true) => b'C',
    }
}

/// LULD state of a quote.
pub(crate) fn luld_code(quote: &Quote) -> u8 {
    sides_code(quote.executable.map(|executable| !executable))
}

/// LULD state of the national best, the same in both plans; space without limit prices.
pub(crate) fn national_luld_code(national: &National, band: Option<[Price; 2]>) -> u8 {
    let Some([lower, upper]) = band else { return b' ' };
    let [bid, ask] = national.best.map(|best| best.interest);
    let bid_at_limit = bid.qty > 0 && bid.price == upper;
    let ask_at_limit = ask.qty > 0 && ask.price == lower;
    let bid_outside = bid.qty > 0 && bid.price < lower;
    let ask_outside = ask.qty > 0 && ask.price > upper;
    match (bid_at_limit, ask_at_limit, bid_outside, ask_outside) {
        (true, true, ..) => b'I',
        (true, _, _, true) => b'G',
        (_, true, true, _) => b'H',
        (true, ..) => b'E',
        (_, true, ..) => b'F',
        (_, _, true, true) => b'D',
        (_, _, true, _) => b'B',
        (_, _, _, true) => b'C',
        _ => b'A',
    }
}

persist!(value enum Stage { 0 => Coming, 1 => Down, 2 => Past });
persist!(struct SipPublisher<P: Persist> { plan, sip, midnight, now, opened, referenced, outage } not { listings });
