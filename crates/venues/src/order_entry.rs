//! The `[order_entry]` section: where orders are taken, and the sessions and users that are known there.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickwire_fix::Version;
use tickwire_market::Symbol;
use tickwire_wire::layout::Alpha;

use crate::texts::{FirmName, FirmNumber, FixVersion, SoupSessionName, Username, WindowMs};
use crate::values::{CompId, HeartbeatS};

/// Order entry: the demo's FIX 4.4 session, sessions by name, and OUCH.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrderEntrySection {
    /// Where FIX sessions connect, TCP.
    pub address: SocketAddrV4,
    /// CompID of the exchange.
    pub exchange_comp_id: CompId,
    /// CompID of the trader.
    pub trader_comp_id: CompId,
    /// HeartBtInt that our clients ask for, trader and quoter, seconds; a session may say its own. The venue
    /// gives up who was not heard for 2.4 times as long.
    pub heartbeat_s: u32,
    /// The tag of the field in which our clients' Logon asks the venue to cancel what is open when the
    /// connection is lost, and its answer says that it will: a venue's own (here, and at Deribit, 9001). 0:
    /// the venue is not asked. See `controls.venue_cancels`.
    pub cancel_on_disconnect_tag: u32,
    /// Whether clients that are not in `session` are let in as well: with FIX 4.4, numbers from 1 with every
    /// logon, and their orders go with the connection.
    pub anyone: bool,
    /// FIX sessions by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<FixSession>,
    /// Market maker protection, by firm and group of instruments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protection: Vec<ProtectionSection>,
    /// OUCH 5.0 over SoupBinTCP; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ouch: Option<OuchSection>,
}

impl Default for OrderEntrySection {
    fn default() -> Self {
        let id = |s: &str| CompId(Symbol::new(s.as_bytes()).expect("a valid default"));
        OrderEntrySection {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26404),
            exchange_comp_id: id("EXCHANGE"),
            trader_comp_id: id("TRADER"),
            heartbeat_s: 5,
            cancel_on_disconnect_tag: 9001,
            anyone: true,
            session: Vec::new(),
            protection: Vec::new(),
            ouch: None,
        }
    }
}

impl OrderEntrySection {
    /// What is said of the session of a client.
    pub fn session_of(&self, comp_id: CompId) -> Option<&FixSession> {
        self.session.iter().find(|session| session.comp_id == comp_id)
    }

    /// The version of FIX that a client speaks: that of its session, or 4.4.
    pub fn version_of(&self, comp_id: CompId) -> Version {
        self.session_of(comp_id)
            .map_or(Version::Fix44, |session| session.version.0)
    }

    /// Puts what stands for a password in the place of every one.
    pub fn hide_passwords(&mut self) {
        let users = self.ouch.iter_mut().flat_map(|ouch| &mut ouch.user);
        users.for_each(|user| user.password = user.password.hidden());
    }

    /// Whether something secret is in it.
    pub fn has_passwords(&self) -> bool {
        let mut users = self.ouch.iter().flat_map(|ouch| &ouch.user);
        users.any(|user| user.password.is_asked_for())
    }

    /// HeartBtInt that a client asks for, seconds.
    pub fn heartbeat_s_of(&self, comp_id: CompId) -> u32 {
        let own = self.session_of(comp_id).and_then(|session| session.heartbeat_s);
        own.map_or(self.heartbeat_s, |own| own.0)
    }
}

/// A FIX session that is known before it logs on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FixSession {
    /// The client's CompID.
    pub comp_id: CompId,
    /// `FIX.4.0` to `FIX.4.4`, `FIX.5.0`, `FIX.5.0SP1`, `FIX.5.0SP2`.
    #[serde(default)]
    pub version: FixVersion,
    /// Whose risk its orders are, 1 to 65,535.
    pub firm: FirmNumber,
    /// Both sequence numbers start at 1 with every logon.
    #[serde(default)]
    pub reset_on_logon: bool,
    /// Its open orders and quotes are cancelled when its connection is lost or closed, whatever the reason.
    #[serde(default)]
    pub cancel_on_disconnect: bool,
    /// They are cancelled when its heartbeats stop: nothing came for 2.4 intervals, and a TestRequest was not
    /// answered. A session that is cancelled on disconnect is cancelled then too.
    #[serde(default)]
    pub cancel_on_missed_heartbeats: bool,
    /// HeartBtInt of this session, 1 to 3600 seconds: our own client asks for it, and the exchange refuses a
    /// logon that asks for a longer one or for none. Short for sessions that quote. Without it, clients ask
    /// for `order_entry.heartbeat_s`, and the exchange takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_s: Option<HeartbeatS>,
    /// Its OrderMassCancelRequest (q) of everything takes the orders and quotes of all sessions of its firm:
    /// for `tickwire watchdog`.
    #[serde(default)]
    pub cancels_firm: bool,
    /// What its orders do when they meet one of their firm: `allow`, `cancel-newest`, `cancel-oldest`,
    /// `cancel-both`, `decrement`.
    #[serde(default)]
    pub self_trade: SelfTradeRule,
}

/// A user of OUCH.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OuchUser {
    /// 1 to 6 characters.
    pub username: Username,
    /// Up to 10 characters; empty: none is asked for.
    #[serde(default)]
    pub password: Password,
    /// The firm's name in messages, up to 4 characters.
    pub firm_name: FirmName,
    /// Whose risk its orders are, 1 to 65,535.
    pub firm: FirmNumber,
    /// Its open orders are cancelled when its connection is lost.
    #[serde(default)]
    pub cancel_on_disconnect: bool,
    /// See [`FixSession::self_trade`].
    #[serde(default)]
    pub self_trade: SelfTradeRule,
}

/// Limits on what may trade against a firm's quotes of a group of instruments within a time window; 0 is no
/// limit. When one is reached, the firm's quotes of the group are cancelled and new ones refused until it
/// says otherwise (9773=Y).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectionSection {
    /// Whose quotes, 1 to 65,535.
    pub firm: FirmNumber,
    /// Of which instruments: the key `group` of an `[[instrument]]`.
    #[serde(default)]
    pub group: u32,
    /// How long a window is, milliseconds; it begins with the first trade after the last one ended.
    pub window_ms: WindowMs,
    /// Contracts traded.
    #[serde(default)]
    pub contracts: u64,
    /// Trades.
    #[serde(default)]
    pub trades: u32,
    /// Sum over trades of the traded part of what the quote had, percent.
    #[serde(default)]
    pub percent: u64,
    /// Contracts bought and as many sold.
    #[serde(default)]
    pub both_sides: u64,
}

/// Where OUCH is spoken, and with whom.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OuchSection {
    /// TCP address.
    pub address: SocketAddrV4,
    /// The SoupBinTCP session, 1 to 10 characters.
    #[serde(default)]
    pub session: SoupSessionName,
    /// The users that may log in, by name and password.
    pub user: Vec<OuchUser>,
}

/// What orders of one firm do when they meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTradeRule {
    /// They trade; the default.
    #[default]
    Allow,
    /// The incoming order's rest is cancelled.
    CancelNewest,
    /// The resting order is cancelled, its reserve too.
    CancelOldest,
    /// Both are cancelled.
    CancelBoth,
    /// Both lose the smaller quantity without a trade.
    Decrement,
}

/// Who is let in without a password, in a sentence each.
pub fn unguarded(section: &OrderEntrySection) -> Vec<String> {
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

/// A password. `tickwire config` and journals have [`HIDDEN`] in its place.
#[derive(Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Password(pub Alpha<10>);

/// What stands in the place of a password where it is shown or kept; the simulated exchange knows it as such.
pub const HIDDEN: Alpha<10> = Alpha(*b"*hidden*  ");

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
    pub fn is_asked_for(&self) -> bool {
        !self.0.trimmed().is_empty()
    }

    /// What stands in its place where it is shown or kept; none where none is asked for.
    pub fn hidden(self) -> Password {
        match self.is_asked_for() {
            true => Password(HIDDEN),
            false => self,
        }
    }
}

impl From<Password> for String {
    fn from(v: Password) -> String {
        String::from_utf8_lossy(v.0.trimmed()).into_owned()
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
