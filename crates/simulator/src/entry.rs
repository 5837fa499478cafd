//! What `[order_entry]` and `[[exchange.instrument]]` say: sessions, users and instruments, checked, and as
//! the exchange takes them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_exchange::{
    AuctionTimes, BreaksConfig, Credentials, Firm, FixPort, HaltedOrders, Listing, OnBreach,
    OrderEntryConfig, OuchPort, PROTECTIONS_MAX, PostOnly, PriceBands, Protection, Rules, SelfTrade,
    TickTable,
};
use tickwire_fix::CompId as FixId;
use tickwire_market::{Contract, InstrumentId, Nanos, Price, PutCall, Qty};

use tickwire_venues::order_entry::{
    FixSession, OrderEntrySection, OuchUser, ProtectionSection, SelfTradeRule,
};
use tickwire_venues::texts::{
    DateText, DisplayFactor, Lots, PriceText, Seconds, SoupSessionName, Tick, TimeOfDay, shown,
};
use tickwire_venues::values::{CompId, Probability, SymbolName};

/// OUCH connections at once.
pub const OUCH_CONNECTIONS: usize = 4;

/// The journal of an exchange.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JournalSection {
    /// The file; made if it is not there, gone on with if it is.
    pub file: PathBuf,
    /// `process`: what was acknowledged outlives the process; `disk`: it outlives the machine too (a sync
    /// before every acknowledgement).
    #[serde(default)]
    pub durability: Durability,
    /// The most bytes of each channel's file of the day's messages, beside the journal: what memory has no
    /// room for is sent again from there; the oldest give way. 0: no such file.
    #[serde(default = "history_bytes")]
    pub history_bytes: u64,
    /// How often the state is written beside the journal, seconds, so that a restart replays only what came
    /// after it. 0: never.
    #[serde(default = "snapshot_s")]
    pub snapshot_s: u32,
}

fn snapshot_s() -> u32 {
    JournalSection::SNAPSHOT_S
}

impl JournalSection {
    /// The default of `history_bytes`.
    pub const HISTORY_BYTES: u64 = 16 << 30;
    /// The default of `snapshot_s`.
    pub const SNAPSHOT_S: u32 = 300;
}

fn history_bytes() -> u64 {
    JournalSection::HISTORY_BYTES
}

/// What an acknowledged order outlives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The process: it is in the file, but the machine may not have put it on the disk yet.
    #[default]
    Process,
    /// The machine too: it is synced to the disk before it is acknowledged.
    Disk,
}

fn self_trade(rule: SelfTradeRule) -> SelfTrade {
    match rule {
        SelfTradeRule::Allow => SelfTrade::Allow,
        SelfTradeRule::CancelNewest => SelfTrade::CancelNewest,
        SelfTradeRule::CancelOldest => SelfTrade::CancelOldest,
        SelfTradeRule::CancelBoth => SelfTrade::CancelBoth,
        SelfTradeRule::Decrement => SelfTrade::Decrement,
    }
}

/// When auctions take place, by the venue's clock: UTC. Times that have passed when the exchange starts are
/// passed over.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuctionsSection {
    /// The opening auction: orders are collected from the start until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<TimeOfDay>,
    /// When the closing's call phase begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing_call: Option<TimeOfDay>,
    /// The closing auction, with which the day ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<TimeOfDay>,
    /// Time between two indications of an instrument in a call phase, seconds.
    #[serde(default)]
    pub indicate_s: Seconds,
    /// How long before an auction its orders cannot be cancelled or changed, seconds; 0: they always can.
    #[serde(default)]
    pub no_cancel_s: u32,
}

/// When auctions take place as the exchange takes it.
pub fn auctions(section: Option<&AuctionsSection>) -> AuctionTimes {
    let Some(section) = section else {
        return AuctionTimes::default();
    };
    let call = section.closing_call.or(section.closing);
    AuctionTimes {
        opening: section.opening.map(|at| at.0),
        closing: call.zip(section.closing).map(|(call, at)| (call.0, at.0)),
        indicate_ns: u64::from(section.indicate_s.0) * Nanos::SECOND,
        no_cancel_ns: u64::from(section.no_cancel_s) * Nanos::SECOND,
    }
}

fn check_auctions(section: &AuctionsSection) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("exchange.auctions: {what}"));
    match (section.closing_call, section.closing) {
        (Some(_), None) => return wrong("closing_call without closing: when does the call phase end?"),
        (Some(call), Some(at)) if call.0 >= at.0 => return wrong("closing_call is not before closing"),
        _ => {}
    }
    let first = section.closing_call.or(section.closing);
    match section.opening.zip(first) {
        Some((opening, closing)) if opening.0 >= closing.0 => wrong("opening is not before the closing"),
        _ => Ok(()),
    }
}

/// Trades that the venue breaks by itself, drawn with the exchange's seed: clients are told, and feeds that
/// have a word for it say so. What was executed does not return to the orders.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BreaksSection {
    /// Share of trades, those among the simulated market's own orders included. Auctions are not broken.
    pub share: Probability,
    /// How long after the trade, milliseconds.
    #[serde(default = "BreaksSection::after_ms")]
    pub after_ms: u32,
}

impl BreaksSection {
    fn after_ms() -> u32 {
        500
    }
}

/// Which trades are broken as the exchange takes it.
pub fn breaks(section: Option<&BreaksSection>) -> BreaksConfig {
    section.map_or(BreaksConfig::default(), |section| BreaksConfig {
        share_ppm: (section.share.0 * 1e6) as u32,
        after_ns: u64::from(section.after_ms) * Nanos::MILLI,
    })
}

/// What an instrument is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A share.
    #[default]
    Equity,
    /// A future.
    Future,
    /// An option to buy.
    Call,
    /// An option to sell.
    Put,
    /// A currency pair.
    Currency,
}

/// One instrument. Which of the optional keys are needed depends on its kind.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentSection {
    /// Up to eight characters; of a currency pair the six letters of both.
    pub symbol: SymbolName,
    /// What it is.
    #[serde(default)]
    pub kind: Kind,
    /// Where its price starts, in text: "187.25".
    pub price: PriceText,
    /// The smallest price step.
    #[serde(default)]
    pub tick: Tick,
    /// Other steps from a price on, ascending: `[{ from = "3", tick = "0.10" }]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<TickStep>,
    /// Quantities are multiples of this.
    #[serde(default)]
    pub lot: Lots,
    /// Last trading day of futures and options: "2026-03-20".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<DateText>,
    /// Units of one contract of futures and options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<u32>,
    /// Of options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strike: Option<PriceText>,
    /// Of options: the symbol of an instrument that is listed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underlying: Option<SymbolName>,
    /// What people multiply its prices with to read them, as MDP 3.0 says it: prices of this file, of orders
    /// and of market data are what they are before.
    #[serde(default)]
    pub display_factor: DisplayFactor,
    /// Of options: how far the simulator lets its price follow its underlying's, -1 to 1; 0: it goes its own
    /// way.
    #[serde(default)]
    pub delta: Delta,
    /// Instruments that are protected and cancelled together.
    #[serde(default)]
    pub group: u32,
    /// How far prices may go from the static reference, in millionths; 0 is no limit.
    #[serde(default)]
    pub static_band_ppm: u32,
    /// And from the last trade.
    #[serde(default)]
    pub dynamic_band_ppm: u32,
    /// What happens there: `reject` or `pause`.
    #[serde(default)]
    pub on_breach: BreachRule,
    /// A post-only order that would take: `reject` or `reprice`.
    #[serde(default)]
    pub post_only: PostOnlyRule,
    /// New orders while halted: `reject` or `collect`.
    #[serde(default)]
    pub halted: HaltedRule,
}

/// A tick from a price on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TickStep {
    /// The lowest price it holds for, in text.
    pub from: PriceText,
    /// The price step, in text.
    pub tick: PriceText,
}

/// See [`OnBreach`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BreachRule {
    /// An order that would go beyond the band is refused; see [`OnBreach::Reject`].
    #[default]
    Reject,
    /// It trades up to the edge, and the instrument pauses; see [`OnBreach::Pause`].
    Pause,
}

/// See [`PostOnly`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PostOnlyRule {
    /// It is refused; see [`PostOnly::Reject`].
    #[default]
    Reject,
    /// It is entered one tick behind the best opposite price; see [`PostOnly::Reprice`].
    Reprice,
}

/// See [`HaltedOrders`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HaltedRule {
    /// They are refused; see [`HaltedOrders::Reject`].
    #[default]
    Reject,
    /// Limit orders are collected as in a call phase; see [`HaltedOrders::Collect`].
    Collect,
}

/// How far an option's price follows its underlying's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Delta(pub f64);

impl TryFrom<f64> for Delta {
    type Error = String;
    fn try_from(raw: f64) -> Result<Self, String> {
        match (-1.0..=1.0).contains(&raw) {
            true => Ok(Delta(raw)),
            false => Err(format!("delta {raw} is outside -1..=1")),
        }
    }
}

impl From<Delta> for f64 {
    fn from(v: Delta) -> f64 {
        v.0
    }
}

fn fix_id(id: CompId) -> FixId {
    FixId::new(id.0.as_bytes()).expect("a symbol fits a CompID")
}

/// Order entry as the exchange takes it.
pub fn gateway(section: &OrderEntrySection, connections: usize) -> OrderEntryConfig {
    let session = |s: &FixSession| FixPort {
        comp_id: fix_id(s.comp_id),
        version: s.version.0,
        firm: Firm(s.firm.0),
        reset_on_logon: s.reset_on_logon,
        cancel_on_disconnect: s.cancel_on_disconnect,
        cancel_on_missed_heartbeats: s.cancel_on_missed_heartbeats,
        heartbeat_s_max: s.heartbeat_s.map(|s| s.0),
        cancels_firm: s.cancels_firm,
        self_trade: self_trade(s.self_trade),
    };
    let user = |u: &OuchUser| OuchPort {
        username: u.username.0,
        password: u.password.0,
        firm_name: u.firm_name.0,
        firm: Firm(u.firm.0),
        cancel_on_disconnect: u.cancel_on_disconnect,
        self_trade: self_trade(u.self_trade),
    };
    let ouch = section.ouch.as_ref();
    OrderEntryConfig {
        comp_id: fix_id(section.exchange_comp_id),
        connections,
        sessions: section.session.iter().map(session).collect(),
        anyone: section.anyone,
        ouch: ouch.map_or(Vec::new(), |o| o.user.iter().map(user).collect()),
        ouch_connections: ouch.map_or(0, |_| OUCH_CONNECTIONS),
        ouch_session: ouch.map_or(SoupSessionName::default(), |o| o.session).0.0,
        ..OrderEntryConfig::default()
    }
}

/// Who may log in by OUCH, and with what.
pub fn ouch_credentials(section: &OrderEntrySection) -> Vec<Credentials> {
    let users = section.ouch.iter().flat_map(|ouch| &ouch.user);
    users.map(|user| (user.username.0, user.password.0)).collect()
}

/// The limits of market makers' quotes as the exchange takes them.
pub fn protections(section: &OrderEntrySection) -> Vec<(Firm, u32, Protection)> {
    let limits = |p: &ProtectionSection| Protection {
        window_ns: u64::from(p.window_ms.0) * Nanos::MILLI,
        contracts: p.contracts,
        trades: p.trades,
        percent: p.percent,
        both_sides: p.both_sides,
    };
    let all = section.protection.iter();
    all.map(|p| (Firm(p.firm.0), p.group, limits(p))).collect()
}

/// Checks what concerns more than one value.
pub fn check(
    section: &OrderEntrySection,
    instruments: &[InstrumentSection],
    auctions: Option<&AuctionsSection>,
    price_max: Price,
) -> Result<(), String> {
    auctions.map_or(Ok(()), check_auctions)?;
    let mut seen = BTreeSet::new();
    for session in &section.session {
        if !seen.insert((session.comp_id.0, session.version.0)) {
            return Err(format!(
                "order_entry.session: {} with {} is there twice",
                session.comp_id.0,
                session.version.0.name()
            ));
        }
    }
    let mut seen = BTreeSet::new();
    for p in &section.protection {
        let wrong = |what: &str| {
            format!(
                "order_entry.protection of firm {} in group {}: {what}",
                p.firm.0, p.group
            )
        };
        if !seen.insert((p.firm.0, p.group)) {
            return Err(wrong("is there twice"));
        }
        if (p.contracts, p.trades, p.percent, p.both_sides) == (0, 0, 0, 0) {
            return Err(wrong(
                "has no limit: set contracts, trades, percent or both_sides",
            ));
        }
    }
    if seen.len() > PROTECTIONS_MAX {
        return Err(format!(
            "order_entry.protection: {} of them, at most {PROTECTIONS_MAX}",
            seen.len()
        ));
    }
    if let Some(ouch) = &section.ouch {
        let mut seen = BTreeSet::new();
        for user in &ouch.user {
            if !seen.insert(shown(user.username.0).to_lowercase()) {
                return Err(format!(
                    "order_entry.ouch.user: {} is there twice (case does not matter)",
                    shown(user.username.0)
                ));
            }
        }
        if ouch.user.is_empty() {
            return Err("order_entry.ouch has no user: nobody could log in".to_string());
        }
        if ouch.address == section.address && ouch.address.port() != 0 {
            return Err(format!(
                "order_entry.ouch.address {} is that of FIX: give it another port",
                ouch.address
            ));
        }
    }
    listed(instruments, price_max).map(|_| ())
}

/// The instruments of a configuration, whose feeds carry prices up to `price_max`; an error names the one
/// that is wrong.
pub fn listed(sections: &[InstrumentSection], price_max: Price) -> Result<Vec<Listing>, String> {
    let mut all: Vec<Listing> = Vec::new();
    for section in sections {
        let symbol = section.symbol.0;
        let wrong = |what: &str| format!("exchange.instrument {symbol}: {what}");
        if all.iter().any(|l| l.symbol == symbol) {
            return Err(wrong("is there twice"));
        }
        let missing = |key: &str| wrong(&format!("{key} is missing, which its kind needs"));
        let expiry = || section.expiry.map(|d| d.0).ok_or_else(|| missing("expiry"));
        let multiplier = section.multiplier.unwrap_or(1).max(1);
        let contract = match section.kind {
            Kind::Equity => Contract::Equity,
            Kind::Future => Contract::Future {
                expiry: expiry()?,
                multiplier,
            },
            Kind::Call | Kind::Put => {
                let name = section.underlying.ok_or_else(|| missing("underlying"))?;
                let underlying = all.iter().find(|l| l.symbol == name.0);
                Contract::Option {
                    expiry: expiry()?,
                    multiplier,
                    strike: section.strike.ok_or_else(|| missing("strike"))?.0,
                    right: match section.kind {
                        Kind::Call => PutCall::Call,
                        _ => PutCall::Put,
                    },
                    underlying: underlying
                        .ok_or_else(|| wrong(&format!("its underlying {} is not listed before it", name.0)))?
                        .id,
                }
            }
            Kind::Currency => match symbol.as_bytes() {
                [a, b, c, d, e, f] => Contract::Currency {
                    base: [*a, *b, *c],
                    quote: [*d, *e, *f],
                },
                _ => return Err(wrong("a currency pair has six letters, like EURUSD")),
            },
        };
        let steps: Vec<(Price, Price)> = section.ticks.iter().map(|s| (s.from.0, s.tick.0)).collect();
        let ticks = TickTable::stepped(section.tick.0, &steps).ok_or_else(|| {
            wrong("ticks must ascend, at most seven, each price a multiple of the ticks below and above it")
        })?;
        if !ticks.has(section.price.0) {
            return Err(wrong(&format!(
                "its price {} is not a multiple of its tick",
                section.price.0
            )));
        }
        if section.price.0 > price_max {
            return Err(wrong(&format!(
                "its price {} is above {price_max}, the largest that its feeds carry",
                section.price.0
            )));
        }
        all.push(Listing {
            id: InstrumentId(all.len() as u32 + 1),
            symbol,
            contract,
            rules: Rules {
                ticks,
                price_max,
                lot: Qty(section.lot.0),
                post_only: match section.post_only {
                    PostOnlyRule::Reject => PostOnly::Reject,
                    PostOnlyRule::Reprice => PostOnly::Reprice,
                },
                halted: match section.halted {
                    HaltedRule::Reject => HaltedOrders::Reject,
                    HaltedRule::Collect => HaltedOrders::Collect,
                },
                bands: PriceBands {
                    static_ppm: section.static_band_ppm,
                    dynamic_ppm: section.dynamic_band_ppm,
                    on_breach: match section.on_breach {
                        BreachRule::Reject => OnBreach::Reject,
                        BreachRule::Pause => OnBreach::Pause,
                    },
                },
                group: section.group,
            },
            start: section.price.0,
            display_factor: section.display_factor.0,
            delta_milli: (section.delta.0 * 1000.0) as i16,
        });
    }
    Ok(all)
}
