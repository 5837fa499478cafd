//! What `[order_entry]` and `[[exchange.instrument]]` say: sessions, users and instruments, checked, and as the exchange takes
//! them.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_exchange::{
    AuctionTimes, BreaksConfig, Credentials, DeskConfig, Firm, FixPort, HIDDEN, HaltedOrders, Listing,
    OnBreach, OuchPort, PROTECTIONS_MAX, PostOnly, PriceBands, Protection, Rules, SelfTrade, TickTable,
};
use tickwire_fix::{CompId as FixId, Version};
use tickwire_market::{Contract, Date, InstrumentId, Nanos, Price, PutCall, Qty};
use tickwire_wire::layout::Alpha;

use crate::config::{CompId, HeartbeatS, OrderEntrySection, Probability, SymbolName};

/// OUCH connections at once.
pub(crate) const OUCH_CONNECTIONS: usize = 4;

/// A FIX session that is known before it logs on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FixSession {
    /// The client's CompID.
    pub(crate) comp_id: CompId,
    /// `FIX.4.0` to `FIX.4.4`, `FIX.5.0`, `FIX.5.0SP1`, `FIX.5.0SP2`.
    #[serde(default)]
    pub(crate) version: FixVersion,
    /// Whose risk its orders are, 1 to 65,535.
    pub(crate) firm: FirmNumber,
    /// Both sequence numbers start at 1 with every logon.
    #[serde(default)]
    pub(crate) reset_on_logon: bool,
    /// Its open orders and quotes are cancelled when its connection is lost or closed, whatever the reason.
    #[serde(default)]
    pub(crate) cancel_on_disconnect: bool,
    /// They are cancelled when its heartbeats stop: nothing came for 2.4 intervals, and a TestRequest was not answered. A session that is cancelled
    /// on disconnect is cancelled then too.
    #[serde(default)]
    pub(crate) cancel_on_missed_heartbeats: bool,
    /// HeartBtInt of this session, 1 to 3600 seconds: our own client asks for it, and the exchange refuses a logon that asks for a longer one
    /// or for none. Short for sessions that quote. Without it, clients ask for `order_entry.heartbeat_s`, and the exchange takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) heartbeat_s: Option<HeartbeatS>,
    /// Its OrderMassCancelRequest (q) of everything takes the orders and quotes of all sessions of its firm: for `tickwire watchdog`.
    #[serde(default)]
    pub(crate) cancels_firm: bool,
    /// What its orders do when they meet one of their firm: `allow`, `cancel-newest`, `cancel-oldest`, `cancel-both`,
    /// `decrement`.
    #[serde(default)]
    pub(crate) self_trade: SelfTradeRule,
}

/// A user of OUCH.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OuchUser {
    /// 1 to 6 characters.
    pub(crate) username: Username,
    /// Up to 10 characters; empty: none is asked for.
    #[serde(default)]
    pub(crate) password: Password,
    /// The firm's name in messages, up to 4 characters.
    pub(crate) firm_name: FirmName,
    /// Whose risk its orders are, 1 to 65,535.
    pub(crate) firm: FirmNumber,
    /// Its open orders are cancelled when its connection is lost.
    #[serde(default)]
    pub(crate) cancel_on_disconnect: bool,
    /// See [`FixSession::self_trade`].
    #[serde(default)]
    pub(crate) self_trade: SelfTradeRule,
}

/// Limits on what may trade against a firm's quotes of a group of instruments within a time window; 0 is no limit. When one is
/// reached, the firm's quotes of the group are cancelled and new ones refused until it says otherwise (9773=Y).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProtectionSection {
    /// Whose quotes, 1 to 65,535.
    pub(crate) firm: FirmNumber,
    /// Of which instruments, see [`InstrumentSection::group`].
    #[serde(default)]
    pub(crate) group: u32,
    /// How long a window is, milliseconds; it begins with the first trade after the last one ended.
    pub(crate) window_ms: WindowMs,
    /// Contracts traded.
    #[serde(default)]
    pub(crate) contracts: u64,
    /// Trades.
    #[serde(default)]
    pub(crate) trades: u32,
    /// Sum over trades of the traded part of what the quote had, percent.
    #[serde(default)]
    pub(crate) percent: u64,
    /// Contracts bought and as many sold.
    #[serde(default)]
    pub(crate) both_sides: u64,
}

/// Where OUCH is spoken, and with whom.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OuchSection {
    /// TCP address.
    pub(crate) address: SocketAddrV4,
    /// The SoupBinTCP session, 1 to 10 characters.
    #[serde(default)]
    pub(crate) session: SoupSessionName,
    pub(crate) user: Vec<OuchUser>,
}

/// The journal of an exchange.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalSection {
    /// The file; made if it is not there, gone on with if it is.
    pub(crate) file: PathBuf,
    /// `process`: what was acknowledged outlives the process; `disk`: it outlives the machine too (a sync before every
    /// acknowledgement).
    #[serde(default)]
    pub(crate) durability: Durability,
}

/// What an acknowledged order outlives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    #[default]
    Process,
    Disk,
}

/// What orders of one firm do when they meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SelfTradeRule {
    #[default]
    Allow,
    CancelNewest,
    CancelOldest,
    CancelBoth,
    Decrement,
}

impl From<SelfTradeRule> for SelfTrade {
    fn from(rule: SelfTradeRule) -> SelfTrade {
        match rule {
            SelfTradeRule::Allow => SelfTrade::Allow,
            SelfTradeRule::CancelNewest => SelfTrade::CancelNewest,
            SelfTradeRule::CancelOldest => SelfTrade::CancelOldest,
            SelfTradeRule::CancelBoth => SelfTrade::CancelBoth,
            SelfTradeRule::Decrement => SelfTrade::Decrement,
        }
    }
}

/// When auctions take place, by the venue's clock: UTC. Times that have passed when the exchange starts are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuctionsSection {
    /// The opening auction: orders are collected from the start until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opening: Option<TimeOfDay>,
    /// When the closing's call phase begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closing_call: Option<TimeOfDay>,
    /// The closing auction, with which the day ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closing: Option<TimeOfDay>,
    /// Time between two indications of an instrument in a call phase, seconds.
    #[serde(default)]
    pub(crate) indicate_s: Seconds,
    /// How long before an auction its orders cannot be cancelled or changed, seconds; 0: they always can.
    #[serde(default)]
    pub(crate) no_cancel_s: u32,
}

/// When auctions take place as the exchange takes it.
pub(crate) fn auctions(section: Option<&AuctionsSection>) -> AuctionTimes {
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

/// Trades that the venue breaks by itself, drawn with the exchange's seed: clients are told, and feeds that have a word for it
/// say so. What was executed does not return to the orders.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BreaksSection {
    /// Share of trades, those among the simulated market's own orders included. Auctions are not broken.
    pub(crate) share: Probability,
    /// How long after the trade, milliseconds.
    #[serde(default = "BreaksSection::after_ms")]
    pub(crate) after_ms: u32,
}

impl BreaksSection {
    fn after_ms() -> u32 {
        500
    }
}

/// Which trades are broken as the exchange takes it.
pub(crate) fn breaks(section: Option<&BreaksSection>) -> BreaksConfig {
    section.map_or(BreaksConfig::default(), |section| BreaksConfig {
        share_ppm: (section.share.0 * 1e6) as u32,
        after_ns: u64::from(section.after_ms) * Nanos::MILLI,
    })
}

/// What an instrument is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Equity,
    Future,
    Call,
    Put,
    Currency,
}

/// One instrument. Which of the optional keys are needed depends on its kind.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstrumentSection {
    /// Up to eight characters; of a currency pair the six letters of both.
    pub(crate) symbol: SymbolName,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Where its price starts, in text: "187.25".
    pub(crate) price: PriceText,
    /// The smallest price step.
    #[serde(default)]
    pub(crate) tick: Tick,
    /// Other steps from a price on, ascending: `[{ from = "3", tick = "0.10" }]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ticks: Vec<TickStep>,
    /// Quantities are multiples of this.
    #[serde(default)]
    pub(crate) lot: Lots,
    /// Last trading day of futures and options: "2026-03-20".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expiry: Option<DateText>,
    /// Units of one contract of futures and options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) multiplier: Option<u32>,
    /// Of options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strike: Option<PriceText>,
    /// Of options: the symbol of an instrument that is listed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) underlying: Option<SymbolName>,
    /// What people multiply its prices with to read them, as MDP 3.0 says it: prices of this file, of orders and of market data
    /// are what they are before.
    #[serde(default)]
    pub(crate) display_factor: DisplayFactor,
    /// Of options: how far the simulator lets its price follow its underlying's, -1 to 1; 0: it goes its own way.
    #[serde(default)]
    pub(crate) delta: Delta,
    /// Instruments that are protected and cancelled together.
    #[serde(default)]
    pub(crate) group: u32,
    /// How far prices may go from the static reference, in millionths; 0 is no limit.
    #[serde(default)]
    pub(crate) static_band_ppm: u32,
    /// And from the last trade.
    #[serde(default)]
    pub(crate) dynamic_band_ppm: u32,
    /// What happens there: `reject` or `pause`.
    #[serde(default)]
    pub(crate) on_breach: BreachRule,
    /// A post-only order that would take: `reject` or `reprice`.
    #[serde(default)]
    pub(crate) post_only: PostOnlyRule,
    /// New orders while halted: `reject` or `collect`.
    #[serde(default)]
    pub(crate) halted: HaltedRule,
}

/// A tick from a price on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TickStep {
    pub(crate) from: PriceText,
    pub(crate) tick: PriceText,
}

/// See [`OnBreach`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BreachRule {
    #[default]
    Reject,
    Pause,
}

/// See [`PostOnly`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PostOnlyRule {
    #[default]
    Reject,
    Reprice,
}

/// See [`HaltedOrders`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HaltedRule {
    #[default]
    Reject,
    Collect,
}

/// Declares a value that is written as text and checked while it is read.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $read:expr, $show:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub(crate) struct $name(pub(crate) $inner);
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(raw: String) -> Result<Self, String> {
                let read: fn(&str) -> Result<$inner, String> = $read;
                read(&raw).map($name)
            }
        }
        impl From<$name> for String {
            fn from(v: $name) -> String {
                let show: fn($inner) -> String = $show;
                show(v.0)
            }
        }
    )*};
}

fn alpha<const N: usize>(text: &str, least: usize, what: &str) -> Result<Alpha<N>, String> {
    let is_printable = text.bytes().all(|b| b.is_ascii_graphic());
    match Alpha::new(text.as_bytes()) {
        Some(alpha) if is_printable && text.len() >= least => Ok(alpha),
        _ => Err(format!(
            "{what} must be {least} to {N} printable ASCII characters without spaces, not {} characters of {text:?}",
            text.len()
        )),
    }
}

fn shown<const N: usize>(alpha: Alpha<N>) -> String {
    String::from_utf8_lossy(alpha.trimmed()).into_owned()
}

texts! {
    /// A version of FIX by its name.
    FixVersion(Version) |s| Version::from_name(s).ok_or_else(|| {
        let names: Vec<&str> = Version::ALL.iter().map(|v| v.name()).collect();
        format!("version {s:?} is none of {}", names.join(", "))
    }), |v| v.name().to_string();
    /// A user of OUCH.
    Username(Alpha<6>) |s| alpha(s, 1, "a username"), shown;
    /// The name of a firm.
    FirmName(Alpha<4>) |s| alpha(s, 1, "a firm's name"), shown;
    /// A SoupBinTCP session.
    SoupSessionName(Alpha<10>) |s| alpha(s, 1, "a session"), shown;
    /// A price, exact.
    PriceText(Price) |s| match s.parse::<Price>() {
        Ok(price) if price > Price::ZERO => Ok(price),
        _ => Err(format!("price {s:?} must be a decimal above 0 with at most nine decimals, as text")),
    }, |p| p.to_string();
    /// A price step.
    Tick(Price) |s| match s.parse::<Price>() {
        Ok(tick) if tick > Price::ZERO && tick.raw() % 100_000 == 0 => Ok(tick),
        _ => Err(format!("tick {s:?} must be a multiple of 0.0001 above 0, as text")),
    }, |p| p.to_string();
    /// A time of day in nanoseconds: `15:30:00` or `15:30:00.250`.
    TimeOfDay(u64) |s| {
        let wrong = || format!("time of day {s:?} must be like 15:30:00 or 15:30:00.250");
        let (clock, fraction) = s.split_once('.').unwrap_or((s, "0"));
        let parts: Vec<u64> = clock.split(':').filter_map(|part| part.parse().ok()).collect();
        let millis = format!("{fraction:0<3}").parse::<u64>().map_err(|_| wrong())?;
        match parts[..] {
            [hours @ 0..=23, minutes @ 0..=59, seconds @ 0..=59] if clock.len() == 8 && millis < 1000 => {
                Ok(((hours * 60 + minutes) * 60 + seconds) * Nanos::SECOND + millis * Nanos::MILLI)
            }
            _ => Err(wrong()),
        }
    }, |at| {
        let (seconds, millis) = (at / Nanos::SECOND, at % Nanos::SECOND / Nanos::MILLI);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
    };
    /// A factor of prices.
    DisplayFactor(Price) |s| match s.parse::<Price>() {
        Ok(factor) if factor > Price::ZERO => Ok(factor),
        _ => Err(format!("display_factor {s:?} must be a decimal above 0, as text")),
    }, |p| p.to_string();
    /// A day.
    DateText(Date) |s| {
        let parts: Vec<u16> = s.split('-').filter_map(|part| part.parse().ok()).collect();
        match parts[..] {
            [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] if s.len() == 10 => Ok(Date {
                year,
                month: month as u8,
                day: day as u8,
            }),
            _ => Err(format!("date {s:?} must be like 2026-03-20")),
        }
    }, |d| d.to_string();
}

/// A password. `tickwire config` and journals have [`HIDDEN`] in its place.
#[derive(Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Password(Alpha<10>);

impl TryFrom<String> for Password {
    type Error = String;
    fn try_from(raw: String) -> Result<Self, String> {
        match Alpha::new(raw.as_bytes()) {
            Some(password) if raw.bytes().all(|b| b.is_ascii_graphic()) => Ok(Password(password)),
            _ => Err("a password must be up to 10 printable ASCII characters without spaces".to_string()),
        }
    }
}

impl Password {
    /// Whether one is asked for.
    pub(crate) fn is_asked_for(&self) -> bool {
        !self.0.trimmed().is_empty()
    }

    /// What stands in its place where it is shown or kept; none where none is asked for.
    pub(crate) fn hidden(self) -> Password {
        match self.is_asked_for() {
            true => Password(HIDDEN),
            false => self,
        }
    }
}

impl From<Password> for String {
    fn from(v: Password) -> String {
        shown(v.0)
    }
}

impl Default for Password {
    fn default() -> Password {
        Password(Alpha([b' '; 10]))
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// How far an option's price follows its underlying's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub(crate) struct Delta(pub(crate) f64);

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

/// A number above 0 with a bound.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident $max:literal, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(try_from = "u32", into = "u32")]
        pub(crate) struct $name(pub(crate) u32);
        impl TryFrom<u32> for $name {
            type Error = String;
            fn try_from(raw: u32) -> Result<Self, String> {
                match raw {
                    1..=$max => Ok($name(raw)),
                    _ => Err(format!(concat!($what, " {} is outside 1..=", $max), raw)),
                }
            }
        }
        impl From<$name> for u32 {
            fn from(v: $name) -> u32 {
                v.0
            }
        }
    )*};
}

counts! {
    /// A firm.
    FirmNumber 65_535, "firm";
    /// A lot.
    Lots 1_000_000, "lot";
    /// Some seconds.
    Seconds 3_600, "seconds";
    /// A window of market maker protection, milliseconds.
    WindowMs 86_400_000, "window_ms";
}

impl Default for Lots {
    fn default() -> Lots {
        Lots(1)
    }
}

impl Default for FixVersion {
    fn default() -> FixVersion {
        FixVersion(Version::Fix44)
    }
}

impl Default for SoupSessionName {
    fn default() -> SoupSessionName {
        SoupSessionName(Alpha(*b"TICKWIRE01"))
    }
}

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(5)
    }
}

impl Default for DisplayFactor {
    fn default() -> DisplayFactor {
        DisplayFactor(Price::from_raw(Price::ONE_RAW))
    }
}

impl Default for Tick {
    fn default() -> Tick {
        Tick(Price::from_4dp(100))
    }
}

fn fix_id(id: CompId) -> FixId {
    FixId::new(id.0.as_bytes()).expect("a symbol fits a CompID")
}

/// Order entry as the exchange takes it.
pub(crate) fn desk(section: &OrderEntrySection, connections: usize) -> DeskConfig {
    let session = |s: &FixSession| FixPort {
        comp_id: fix_id(s.comp_id),
        version: s.version.0,
        firm: Firm(s.firm.0),
        reset_on_logon: s.reset_on_logon,
        cancel_on_disconnect: s.cancel_on_disconnect,
        cancel_on_missed_heartbeats: s.cancel_on_missed_heartbeats,
        heartbeat_s_max: s.heartbeat_s.map(|s| s.0),
        cancels_firm: s.cancels_firm,
        self_trade: s.self_trade.into(),
    };
    let user = |u: &OuchUser| OuchPort {
        username: u.username.0,
        password: u.password.0,
        firm_name: u.firm_name.0,
        firm: Firm(u.firm.0),
        cancel_on_disconnect: u.cancel_on_disconnect,
        self_trade: u.self_trade.into(),
    };
    let ouch = section.ouch.as_ref();
    DeskConfig {
        comp_id: fix_id(section.exchange_comp_id),
        connections,
        sessions: section.session.iter().map(session).collect(),
        anyone: section.anyone,
        ouch: ouch.map_or(Vec::new(), |o| o.user.iter().map(user).collect()),
        ouch_connections: ouch.map_or(0, |_| OUCH_CONNECTIONS),
        ouch_session: ouch.map_or(SoupSessionName::default(), |o| o.session).0.0,
        ..DeskConfig::default()
    }
}

/// Who is let in without a password, in a sentence each.
pub(crate) fn unguarded(section: &OrderEntrySection) -> Vec<String> {
    let mut all = Vec::new();
    if section.anyone {
        all.push(format!(
            "order_entry.anyone = true: whoever reaches {} may trade by FIX, under any CompID that no session has",
            section.address
        ));
    }
    if let Some(ouch) = &section.ouch {
        let open = ouch.user.iter().filter(|user| !user.password.is_asked_for());
        let names: Vec<String> = open.map(|user| String::from(user.username)).collect();
        if !names.is_empty() {
            all.push(format!(
                "no password is asked of OUCH user {}: whoever reaches {} may trade by that name",
                names.join(", "),
                ouch.address
            ));
        }
    }
    all
}

/// Who may log in by OUCH, and with what.
pub(crate) fn ouch_credentials(section: &OrderEntrySection) -> Vec<Credentials> {
    let users = section.ouch.iter().flat_map(|ouch| &ouch.user);
    users.map(|user| (user.username.0, user.password.0)).collect()
}

/// The limits of market makers' quotes as the exchange takes them.
pub(crate) fn protections(section: &OrderEntrySection) -> Vec<(Firm, u32, Protection)> {
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
pub(crate) fn check(
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

/// The instruments of a configuration, whose feeds carry prices up to `price_max`; an error names the one that is wrong.
pub(crate) fn listed(sections: &[InstrumentSection], price_max: Price) -> Result<Vec<Listing>, String> {
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
