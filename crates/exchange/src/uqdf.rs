//! A channel of UQDF (UTP Data Feed Services 3.0c) in MoldUDP64: quotes with national best and odd lots,
//! limit prices, the recap of the close, retransmission requests by datagram.

use tickwire_market::{InstrumentId, Nanos, Price, SeqNo, Side, Symbol, TradingStatus, Venue};
use tickwire_persist::persist;
use tickwire_wire::layout::{Alpha, Char, Scaled};
use tickwire_wire::moldudp64;
use tickwire_wire::uqdf::{
    Action, BandIndicator, BoloIndicator, BoloLong, BoloShort, CloseRecap, CombinedLong, CombinedShort,
    Control, ControlType, IssueDirectory, MarketCenterClose, MwcbDeclineLevels, NbboIndicator, NbboLong,
    NbboShort, OddLotLong, OddLotQuoteLong, OddLotQuoteShort, OddLotShort, OddLotType, PriceBand, PriceLong,
    PriceShort, QuoteLong, QuoteShort, TradingAction,
};
use tickwire_wire::zerocopy::IntoBytes;

use crate::mold::MessageStore;
use crate::mold::{ChannelConfig, MoldChannel};
use crate::sip::{
    Best, Consolidation, Interest, ODD_LOTS_MAX, PARTICIPANTS_MAX, Plan, SipModel, SipPublisher, Update,
    luld_code, national_luld_code, sides_code,
};
use crate::tape::{Datagram, Listing, MessageSink, Milestone};

/// The letters of the UTP plan: Nasdaq, Arca, BZX, EDGX, NYSE, BYX, IEX, MEMX, NYSE Texas, National, BX, PSX.
const LETTERS: [u8; PARTICIPANTS_MAX] = *b"QPZKNYVUMCBXJ";
/// The SIP itself.
const SIP: u8 = b'E';
/// The longest message made here: a recap of the close of all participants.
const MESSAGE_MAX: usize = CloseRecap::SIZE + PARTICIPANTS_MAX * MarketCenterClose::SIZE;

/// Everything about a [`UqdfPublisher`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UqdfPublisherConfig {
    /// The market behind it.
    pub model: SipModel,
    /// The downstream channel.
    pub channel: ChannelConfig,
    /// Short quotes and appendages where they suffice. Default: yes.
    pub short_forms: bool,
    /// Quotes of the odd-lot release (`QC QD QA QB`), with each participant's odd lots and the best of all.
    /// Default: yes; otherwise `QE QF`.
    pub odd_lots: bool,
}

impl Default for UqdfPublisherConfig {
    fn default() -> UqdfPublisherConfig {
        UqdfPublisherConfig {
            model: SipModel::default(),
            channel: ChannelConfig {
                store_bytes: 64 << 20,
                store_messages: 1 << 20,
                ..ChannelConfig::default()
            },
            short_forms: true,
            odd_lots: true,
        }
    }
}

/// A channel of UQDF. See the module's description.
pub type UqdfPublisher = SipPublisher<Uqdf>;

impl UqdfPublisher {
    /// A channel of these instruments. Everything is allocated here.
    pub fn new(config: UqdfPublisherConfig, listings: &[Listing]) -> UqdfPublisher {
        let plan = Uqdf {
            channel: MoldChannel::new(config.channel),
            short_forms: config.short_forms,
            odd_lots: config.odd_lots,
            round_lot: config.model.round_lot,
            actions: 0,
            total: 0,
        };
        SipPublisher::with_plan(plan, config.model, listings)
    }
}

/// The plan.
pub struct Uqdf {
    channel: MoldChannel,
    short_forms: bool,
    odd_lots: bool,
    round_lot: u32,
    /// Trading actions so far.
    actions: u32,
    total: u64,
}

/// A message in the making.
struct Draft {
    bytes: [u8; MESSAGE_MAX],
    length: usize,
}

impl Draft {
    fn new(fixed: &[u8]) -> Draft {
        let mut draft = Draft {
            bytes: [0; MESSAGE_MAX],
            length: 0,
        };
        draft.append(fixed);
        draft
    }

    fn append(&mut self, part: &[u8]) {
        self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
        self.length += part.len();
    }
}

impl Uqdf {
    fn send(&mut self, message: &[u8]) {
        self.total += 1;
        self.channel.message(message);
    }

    fn finish(&mut self, draft: &Draft) {
        self.send(&draft.bytes[..draft.length]);
    }

    fn control(&mut self, control: ControlType, originator: u8, at: u64) {
        self.send(Control::new(control, originator, at).as_bytes());
    }

    /// The national best behind a quote: what says it, and the form of the appendage.
    fn nbbo(&self, update: &Update) -> NbboIndicator {
        let best = update.national.best;
        let own = update.quote.best.map(|interest| Best {
            interest,
            participant: update.participant,
        });
        let fits = self.short_forms && best.iter().all(|best| short_side(best.interest).is_some());
        match best {
            _ if best == update.national_before.best => NbboIndicator::Unchanged,
            [bid, ask] if (bid.interest.qty, ask.interest.qty) == (0, 0) => NbboIndicator::Gone,
            _ if best == own => NbboIndicator::Quote,
            _ if fits => NbboIndicator::Short,
            _ => NbboIndicator::Long,
        }
    }

    fn bolo(&self, update: &Update) -> BoloIndicator {
        let best = update.national.odd_lots;
        let fits = self.short_forms && best.iter().all(|best| short_side(best.interest).is_some());
        match best {
            _ if best == update.national_before.odd_lots => BoloIndicator::Unchanged,
            [bid, ask] if (bid.interest.qty, ask.interest.qty) == (0, 0) => BoloIndicator::Gone,
            _ if fits => BoloIndicator::Short,
            _ => BoloIndicator::Long,
        }
    }

    /// The odd-lot levels of every side where they changed.
    fn levels(&self, update: &Update) -> (OddLotType, Levels) {
        let mut levels = Levels::default();
        for side in Side::BOTH {
            let (now, before) = (
                update.quote.odd_lots[side as usize],
                update.before.odd_lots[side as usize],
            );
            if now == before {
                continue;
            }
            for (nth, level) in now.into_iter().enumerate() {
                if level.qty > 0 || nth == 0 {
                    levels.rows[levels.count] = (side, level);
                    levels.count += 1;
                }
            }
        }
        let rows = levels.rows[..levels.count].iter();
        let fits = self.short_forms && rows.clone().all(|(_, level)| short_side(*level).is_some());
        let kind = match (levels.count, fits) {
            (0, _) => OddLotType::None,
            (_, true) => OddLotType::Short,
            (_, false) => OddLotType::Long,
        };
        (kind, levels)
    }

    fn append_nbbo(draft: &mut Draft, form: NbboIndicator, [bid, ask]: [Best; 2]) {
        let condition = match bid.interest.qty > 0 && ask.interest.qty > 0 {
            true => Char(b'R'),
            false => Char(b'Y'),
        };
        match (form, short_side(bid.interest), short_side(ask.interest)) {
            (NbboIndicator::Short, Some((bid_price, bid_size)), Some((ask_price, ask_size))) => {
                let best = NbboShort {
                    condition,
                    bid_market_center: letter(bid),
                    bid_price,
                    bid_size: bid_size.into(),
                    ask_market_center: letter(ask),
                    ask_price,
                    ask_size: ask_size.into(),
                };
                draft.append(best.as_bytes());
            }
            (NbboIndicator::Long, ..) => {
                let best = NbboLong {
                    condition,
                    bid_market_center: letter(bid),
                    bid_price: price(bid.interest.price),
                    bid_size: bid.interest.qty.into(),
                    ask_market_center: letter(ask),
                    ask_price: price(ask.interest.price),
                    ask_size: ask.interest.qty.into(),
                };
                draft.append(best.as_bytes());
            }
            _ => {}
        }
    }

    fn append_bolo(draft: &mut Draft, form: BoloIndicator, [bid, ask]: [Best; 2]) {
        match (form, short_side(bid.interest), short_side(ask.interest)) {
            (BoloIndicator::Short, Some((bid_price, bid_size)), Some((ask_price, ask_size))) => {
                let best = BoloShort {
                    bid_market_center: letter(bid),
                    bid_price,
                    bid_size: bid_size.into(),
                    ask_market_center: letter(ask),
                    ask_price,
                    ask_size: ask_size.into(),
                };
                draft.append(best.as_bytes());
            }
            (BoloIndicator::Long, ..) => {
                let best = BoloLong {
                    bid_market_center: letter(bid),
                    bid_price: price(bid.interest.price),
                    bid_size: (bid.interest.qty as u16).into(), // below a round lot
                    ask_market_center: letter(ask),
                    ask_price: price(ask.interest.price),
                    ask_size: (ask.interest.qty as u16).into(),
                };
                draft.append(best.as_bytes());
            }
            _ => {}
        }
    }

    fn append_levels(draft: &mut Draft, form: OddLotType, levels: &Levels, participant: usize) {
        let market_center = Char(LETTERS[participant]);
        for (side, level) in &levels.rows[..levels.count] {
            let side = Char(match side {
                Side::Bid => b'B',
                Side::Ask => b'A',
            });
            match (form, short_side(*level)) {
                (OddLotType::Short, Some((price, size))) => {
                    let level = OddLotShort {
                        market_center,
                        side,
                        price,
                        size: size.into(),
                    };
                    draft.append(level.as_bytes());
                }
                _ => {
                    let level = OddLotLong {
                        market_center,
                        side,
                        price: price(level.price),
                        size: (level.qty as u16).into(), // below a round lot
                    };
                    draft.append(level.as_bytes());
                }
            }
        }
    }

    /// Odd lots alone changed.
    fn odd_lot_quote(&mut self, symbol: &Symbol, update: &Update, at: u64) {
        let originator = LETTERS[update.participant];
        let ((kind, levels), bolo) = (self.levels(update), self.bolo(update));
        let (kind_char, count) = (Char::from(kind), (levels.count as u16).into());
        let mut draft = match Alpha::from_symbol(symbol).filter(|_| self.short_forms) {
            Some(symbol) => {
                let mut m = OddLotQuoteShort {
                    symbol,
                    bolo: bolo.into(),
                    odd_lot_type: kind_char,
                    odd_lot_count: count,
                    ..OddLotQuoteShort::at(originator, at)
                };
                m.header.timestamp1 = at.into();
                Draft::new(m.as_bytes())
            }
            None => {
                let mut m = OddLotQuoteLong {
                    symbol: alpha(symbol),
                    bolo: bolo.into(),
                    odd_lot_type: kind_char,
                    odd_lot_count: count,
                    ..OddLotQuoteLong::at(originator, at)
                };
                m.header.timestamp1 = at.into();
                Draft::new(m.as_bytes())
            }
        };
        Uqdf::append_bolo(&mut draft, bolo, update.national.odd_lots);
        Uqdf::append_levels(&mut draft, kind, &levels, update.participant);
        self.finish(&draft);
    }

    /// The fixed part of a quote: its form by what fits and by the release.
    fn quote_draft(
        &self,
        symbol: &Symbol,
        update: &Update,
        nbbo: NbboIndicator,
        odd_lots: Option<(BoloIndicator, OddLotType, u16)>,
        at: u64,
    ) -> Draft {
        let originator = LETTERS[update.participant];
        let [bid, ask] = update.quote.best;
        let (luld, retail) = (
            Char(luld_code(&update.quote)),
            Char(sides_code(update.quote.retail)),
        );
        let national_luld = Char(national_luld_code(&update.national, update.band));
        let (condition, nbbo) = (Char(b'R'), nbbo.into());
        let short = (
            Alpha::from_symbol(symbol).filter(|_| self.short_forms),
            short_side(bid),
            short_side(ask),
        );
        macro_rules! draft {
            ($layout:ident, $($field:ident = $value:expr),*) => {{
                let mut m = $layout {
                    $($field: $value,)*
                    condition,
                    luld,
                    retail_interest: retail,
                    nbbo,
                    national_luld,
                    ..$layout::at(originator, at)
                };
                m.header.timestamp1 = at.into();
                Draft::new(m.as_bytes())
            }};
        }
        match (short, odd_lots) {
            ((Some(name), Some(bid), Some(ask)), None) => draft!(
                QuoteShort,
                symbol = name,
                bid_price = bid.0,
                bid_size = bid.1.into(),
                ask_price = ask.0,
                ask_size = ask.1.into()
            ),
            ((Some(name), Some(bid), Some(ask)), Some((bolo, kind, count))) => draft!(
                CombinedShort,
                symbol = name,
                bid_price = bid.0,
                bid_size = bid.1.into(),
                ask_price = ask.0,
                ask_size = ask.1.into(),
                bolo = bolo.into(),
                odd_lot_type = kind.into(),
                odd_lot_count = count.into()
            ),
            (_, None) => draft!(
                QuoteLong,
                symbol = alpha(symbol),
                bid_price = price(bid.price),
                bid_size = bid.qty.into(),
                ask_price = price(ask.price),
                ask_size = ask.qty.into()
            ),
            (_, Some((bolo, kind, count))) => draft!(
                CombinedLong,
                symbol = alpha(symbol),
                bid_price = price(bid.price),
                bid_size = bid.qty.into(),
                ask_price = price(ask.price),
                ask_size = ask.qty.into(),
                bolo = bolo.into(),
                odd_lot_type = kind.into(),
                odd_lot_count = count.into()
            ),
        }
    }
}

impl Plan for Uqdf {
    fn venue(&self) -> Venue {
        Venue::Uqdf
    }

    fn letters(&self) -> &'static [u8; PARTICIPANTS_MAX] {
        &LETTERS
    }

    fn nasdaq(&self) -> u8 {
        b'Q'
    }

    fn milestone(&mut self, milestone: Milestone, at: u64, sip: &Consolidation) {
        match milestone {
            Milestone::StartOfMessages => self.control(ControlType::StartOfDay, SIP, at),
            Milestone::StartOfSystemHours => {
                // 7, 13 and 20 % below a close of 6,000 points.
                let level = |points: i64| price(Price::from_raw(points * Price::ONE_RAW));
                let levels = MwcbDeclineLevels {
                    level1: level(5_580),
                    level2: level(5_220),
                    level3: level(4_800),
                    ..MwcbDeclineLevels::at(SIP, at)
                };
                self.send(levels.as_bytes());
            }
            Milestone::StartOfMarketHours => self.control(ControlType::SessionOpen, SIP, at),
            Milestone::EndOfMarketHours => {
                for letter in &LETTERS[..sip.participants()] {
                    self.control(ControlType::SessionClose, *letter, at);
                }
            }
            Milestone::EndOfSystemHours => self.control(ControlType::EndOfDay, SIP, at),
            Milestone::EndOfMessages => self.control(ControlType::EndOfTransmissions, SIP, at),
        }
    }

    fn define(&mut self, listing: &Listing, at: u64) {
        let directory = IssueDirectory {
            symbol: alpha(&listing.symbol),
            issue_type: Char(b'C'),
            market_tier: Char(b'Q'),
            authenticity: Char(b'P'),
            short_sale_threshold: Char(b'N'),
            round_lot_size: (self.round_lot as u16).into(),
            financial_status: Char(b'N'),
            ..IssueDirectory::at(SIP, at)
        };
        self.send(directory.as_bytes());
    }

    fn quote(&mut self, symbol: &Symbol, update: &Update, at: u64) {
        let nbbo = self.nbbo(update);
        let is_quote =
            update.quote.protected() != update.before.protected() || nbbo != NbboIndicator::Unchanged;
        if !is_quote {
            if self.odd_lots {
                self.odd_lot_quote(symbol, update, at);
            }
            return;
        }
        if !self.odd_lots {
            let mut draft = self.quote_draft(symbol, update, nbbo, None, at);
            Uqdf::append_nbbo(&mut draft, nbbo, update.national.best);
            return self.finish(&draft);
        }
        let ((kind, levels), bolo) = (self.levels(update), self.bolo(update));
        let odd_lots = Some((bolo, kind, levels.count as u16));
        let mut draft = self.quote_draft(symbol, update, nbbo, odd_lots, at);
        Uqdf::append_nbbo(&mut draft, nbbo, update.national.best);
        Uqdf::append_bolo(&mut draft, bolo, update.national.odd_lots);
        Uqdf::append_levels(&mut draft, kind, &levels, update.participant);
        self.finish(&draft);
    }

    fn band(&mut self, symbol: &Symbol, [lower, upper]: [Price; 2], is_first: bool, at: u64) {
        let indicator = match is_first {
            true => BandIndicator::Opening,
            false => BandIndicator::Intraday,
        };
        let band = PriceBand {
            symbol: alpha(symbol),
            indicator: indicator.into(),
            effective_time: at.into(),
            limit_down: price(lower),
            limit_up: price(upper),
            ..PriceBand::at(SIP, at)
        };
        self.send(band.as_bytes());
    }

    fn status(&mut self, symbol: &Symbol, status: TradingStatus, at: u64) {
        let action = match status {
            TradingStatus::Trading => Action::Trading,
            TradingStatus::Paused => Action::Paused,
            TradingStatus::QuoteOnly | TradingStatus::PreOpen | TradingStatus::Auction => {
                Action::QuotationOnly
            }
            TradingStatus::Halted | TradingStatus::Closed | TradingStatus::Unknown => Action::Halted,
        };
        self.actions += 1;
        let action = TradingAction {
            symbol: alpha(symbol),
            action: action.into(),
            action_seq: self.actions.into(),
            action_time: at.into(),
            ..TradingAction::at(SIP, at)
        };
        self.send(action.as_bytes());
    }

    fn closed(&mut self, symbol: &Symbol, instrument: InstrumentId, sip: &Consolidation, at: u64) {
        let [bid, ask] = sip.national(instrument).best;
        let recap = CloseRecap {
            symbol: alpha(symbol),
            bid_market_center: letter(bid),
            bid_price: price(bid.interest.price),
            bid_size: u64::from(bid.interest.qty).into(),
            ask_market_center: letter(ask),
            ask_price: price(ask.interest.price),
            ask_size: u64::from(ask.interest.qty).into(),
            attachments: (sip.quotes(instrument).count() as u16).into(),
            ..CloseRecap::at(SIP, at)
        };
        let mut draft = Draft::new(recap.as_bytes());
        for (participant, quote) in sip.quotes(instrument) {
            let [bid, ask] = quote.best;
            let close = MarketCenterClose {
                market_center: Char(LETTERS[participant]),
                bid_price: price(bid.price),
                bid_size: u64::from(bid.qty).into(),
                ask_price: price(ask.price),
                ask_size: u64::from(ask.qty).into(),
            };
            draft.append(close.as_bytes());
        }
        self.finish(&draft);
    }

    fn wipes_out(&mut self, participant: usize, at: u64) -> bool {
        self.control(ControlType::QuoteWipeOut, LETTERS[participant], at);
        true
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.channel.poll_timeout()
    }

    fn poll_datagram(&mut self, now: Nanos) -> Option<Datagram<'_>> {
        self.channel.poll_datagram(now)
    }

    fn span(&self, datagram: &[u8]) -> Option<(SeqNo, SeqNo)> {
        let packet = moldudp64::parse(datagram).ok()?;
        (packet.next_seq() > packet.seq).then(|| (packet.seq, packet.next_seq()))
    }

    fn handle_request(&mut self, bytes: &[u8], reply: &mut [u8]) -> Option<usize> {
        self.channel.handle_request(bytes, reply)
    }

    fn end(&mut self, now: Nanos, linger_ns: u64) {
        self.channel.end(now, linger_ns);
    }

    fn is_over(&self) -> bool {
        self.channel.is_over()
    }

    fn next_seq(&self) -> SeqNo {
        self.channel.store().next()
    }

    fn store_mut(&mut self) -> &mut MessageStore {
        self.channel.store_mut()
    }
}

/// Odd-lot levels of a message: both sides, or one with nothing to say that there is none.
struct Levels {
    rows: [(Side, Interest); 2 * ODD_LOTS_MAX],
    count: usize,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels {
            rows: [(Side::Bid, Interest::default()); 2 * ODD_LOTS_MAX],
            count: 0,
        }
    }
}

fn alpha<const N: usize>(symbol: &Symbol) -> Alpha<N> {
    Alpha::from_symbol(symbol).unwrap_or(Alpha([b' '; N]))
}

/// Exact: prices of the engine are multiples of 0.0001.
fn price(price: Price) -> PriceLong {
    PriceLong::from_price(price).unwrap_or(Scaled(0.into()))
}

/// Price and size of a short form, if they fit. UTP 3.0c: sizes below 65,535.
fn short_side(interest: Interest) -> Option<(PriceShort, u16)> {
    let size = u16::try_from(interest.qty).ok().filter(|size| *size < u16::MAX)?;
    Some((PriceShort::from_price(interest.price)?, size))
}

fn letter(best: Best) -> Char {
    match best.interest.qty {
        0 => Char::SPACE,
        _ => Char(LETTERS[best.participant]),
    }
}

persist!(struct Uqdf { channel, actions, total } not { short_forms, odd_lots, round_lot });
