//! The operator's side of a running exchange: through its control socket instruments are halted and resumed,
//! trades broken, packets lost, clients cut off and the day ended, to see what those do who trade on it.
//!
//! The exchange's own thread serves it, between packets. What changes the market is an input like any other:
//! it is in the journal before anything follows from it. What happens to the network is not.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwire_exchange::{
    Applied, BreakReason, ClientEvent, DayPhase, Input, Listing, Market, Reject, TradingAction,
};
use tickwire_market::{InstrumentId, Nanos, TradingStatus};
use tickwire_runtime::users::Peer;

use crate::channel_sockets::ChannelSockets;
use crate::journal::Journal;
use tickwire_console::failure::Failure;
use tickwire_control::client;
use tickwire_control::socket::Answer;

/// What can be said, for people.
const WORDS: &str = "say one of: status, halt SYMBOL, call SYMBOL, resume SYMBOL, break NUMBER [erroneous|consent|supervisory], \
                     lose PACKETS [a|b], disconnect, close";

/// What an exchange may be asked for.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Nothing of this instrument trades any more, at any venue of the market.
    Halt {
        /// The instrument, as market data names it.
        symbol: String,
    },
    /// The call phase of the auction that resumes it.
    Call {
        /// The instrument, as market data names it.
        symbol: String,
    },
    /// That auction, then continuous trading.
    Resume {
        /// The instrument, as market data names it.
        symbol: String,
    },
    /// Breaks a trade of the first venue by its match number.
    Break {
        /// The trade's match number, as market data and execution reports have it.
        trade: u64,
        /// Why; a trade is erroneous unless somebody says otherwise.
        #[serde(default)]
        reason: Reason,
    },
    /// The next packets of every channel are lost, on both lines or one.
    Lose {
        /// How many packets of every channel.
        packets: u32,
        /// On which line; on both without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<LineName>,
    },
    /// Closes every order entry connection, without a logout.
    Disconnect {},
    /// Ends the day as its configured end would.
    Close {},
    /// How it is.
    Status {},
}

/// Why a trade is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// It was clearly erroneous.
    #[default]
    Erroneous,
    /// Both sides agreed.
    Consent,
    /// A supervisor decided so.
    Supervisory,
}

/// One of the two lines of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineName {
    /// Line A.
    A,
    /// Line B.
    B,
}

/// Says something to a running exchange and prints the answer.
pub fn tell(socket: &Path, words: &[String]) -> Result<(), Failure> {
    let request = parse(words).map_err(Failure::config)?;
    let request = serde_json::to_value(request).expect("it has text and numbers only");
    client::print_answer(&client::ask_exchange(socket, &request)?);
    Ok(())
}

/// What was typed, as one argument or several. A symbol may have spaces ("ESH7 C690000"), with quotation
/// marks around it or without.
fn parse(words: &[String]) -> Result<Request, String> {
    let text = words.join(" ");
    let text = text.trim();
    let unknown = || format!("{text:?} says nothing to an exchange; {WORDS}");
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let symbol = || {
        let mut bare = rest;
        for mark in ['"', '\''] {
            let inner = bare.strip_prefix(mark).and_then(|inner| inner.strip_suffix(mark));
            bare = inner.unwrap_or(bare);
        }
        match bare.is_empty() {
            true => Err(unknown()),
            false => Ok(bare.to_string()),
        }
    };
    let words: Vec<&str> = rest.split_whitespace().collect();
    Ok(match (verb, &words[..]) {
        ("status", []) => Request::Status {},
        ("halt", _) => Request::Halt { symbol: symbol()? },
        ("call", _) => Request::Call { symbol: symbol()? },
        ("resume", _) => Request::Resume { symbol: symbol()? },
        ("break", [trade, reason @ ..]) => Request::Break {
            trade: trade.parse().map_err(|_| unknown())?,
            reason: match *reason {
                [] | ["erroneous"] => Reason::Erroneous,
                ["consent"] => Reason::Consent,
                ["supervisory"] => Reason::Supervisory,
                _ => return Err(unknown()),
            },
        },
        ("lose", [packets, line @ ..]) => Request::Lose {
            packets: packets.parse().map_err(|_| unknown())?,
            line: match *line {
                [] => None,
                ["a"] => Some(LineName::A),
                ["b"] => Some(LineName::B),
                _ => return Err(unknown()),
            },
        },
        ("disconnect", []) => Request::Disconnect {},
        ("close", []) => Request::Close {},
        _ => return Err(unknown()),
    })
}

/// Answers while the exchange waits for it.
pub struct Operator<'a> {
    /// The venue's time of this request.
    pub now: Nanos,
    /// The market that is asked.
    pub market: &'a mut Market,
    /// Where what changes the market is noted first; `None` where none is kept.
    pub journal: Option<&'a mut Journal>,
    /// The sockets of every channel, with the number of its venue.
    pub published_channels: &'a mut [(usize, ChannelSockets)],
    /// Order entry connections.
    pub connections: usize,
    /// Whether they are to be closed.
    pub disconnects: bool,
    /// Why the exchange has to end.
    pub failed: Option<Failure>,
    /// Who asks: what is done is in the journal behind it.
    pub by: Option<(u32, u32)>,
}

impl Operator<'_> {
    fn input(&mut self, input: &Input<'_>) -> Result<Applied, String> {
        if let Some(journal) = &mut self.journal {
            if let Some((user, process)) = self.by.take() {
                journal.put(self.now, &Input::AskedBy(user, process));
            }
            journal.put(self.now, input);
            if let Err(failure) = journal.flush() {
                let says = failure.message.clone();
                self.failed = Some(failure);
                return Err(says);
            }
        }
        Ok(input.apply(self.now, self.market, &mut []))
    }

    /// The same at every venue that carries it out.
    fn act(&mut self, symbol: &str, action: TradingAction) -> Result<Value, String> {
        let listings = self.market.exchange(0).listings();
        let listing = listings.iter().find(|listing| listing.symbol.as_str() == symbol);
        let id = listing
            .ok_or_else(|| {
                format!(
                    "no instrument is called {symbol:?}; the first ones are {}",
                    first(listings)
                )
            })?
            .id;
        let deed = match action {
            TradingAction::Halt => "halted",
            TradingAction::Call => "called to an auction",
            TradingAction::Resume => "resumed",
        };
        let names: Vec<&str> = self.market.venues().map(|(venue, _)| venue.name()).collect();
        let (mut done, mut not_done) = (Vec::new(), Vec::new());
        for (at, name) in (0_u16..).zip(&names) {
            match self.input(&Input::Action(at, id, action))? {
                Applied::Answered(Err(_)) => {
                    not_done.push(format!("{name} ({})", self.standing(at.into(), id, action)))
                }
                _ => done.push(*name),
            }
        }
        if done.is_empty() {
            return Err(format!("{symbol} cannot be {deed} at {}", not_done.join(", ")));
        }
        Ok(json!({ "says": format!("{symbol} is {deed} at {}", done.join(", ")) }))
    }

    /// Why an instrument may not be halted or resumed.
    fn standing(&self, venue: usize, id: InstrumentId, action: TradingAction) -> String {
        use TradingStatus::{Halted, Paused};
        let exchange = self.market.exchange(venue);
        match (exchange.phase(), exchange.engine().trading_status(id)) {
            (DayPhase::Open, Some(Halted | Paused)) if action != TradingAction::Halt => {
                "the auction of the whole venue is under way".into()
            }
            (DayPhase::Open, Some(TradingStatus::Auction)) => {
                "in an auction of the whole venue, or called already".into()
            }
            (DayPhase::Open, Some(status)) => word(&status),
            (phase, _) => format!("the day is {}", word(&phase)),
        }
    }

    fn break_trade(&mut self, trade: u64, reason: Reason) -> Result<Value, String> {
        let reason = match reason {
            Reason::Erroneous => BreakReason::Erroneous,
            Reason::Consent => BreakReason::Consent,
            Reason::Supervisory => BreakReason::Supervisory,
        };
        let Applied::Answered(Err(reject)) = self.input(&Input::Break(0, trade, reason))? else {
            return Ok(json!({ "says": format!("trade {trade} is broken") }));
        };
        let why = match reject {
            Reject::BrokenTrade => "it is broken already",
            Reject::AuctionTrade => "it is an auction's, and those stand",
            Reject::UnknownTrade => "there is none, or it is not kept any more",
            _ => "the day is over",
        };
        Err(format!("trade {trade} cannot be broken: {why}"))
    }

    fn lose(&mut self, packets: u32, line: Option<LineName>) -> Result<Value, String> {
        let line = line.map(|line| line as usize);
        let lines: usize = self
            .published_channels
            .iter_mut()
            .map(|(_, published_channel)| published_channel.lose(line, packets))
            .sum();
        match lines {
            0 => Err("no channel has such a line".into()),
            _ => {
                let plural = if lines == 1 { "" } else { "s" };
                Ok(json!({ "says": format!("the next {packets} packets on {lines} line{plural} are lost") }))
            }
        }
    }

    fn close(&mut self) -> Result<Value, String> {
        match self.market.phase() {
            DayPhase::Opening | DayPhase::Open => {
                self.input(&Input::Stop)?;
                Ok(json!({ "says": "the market closes" }))
            }
            phase => Err(format!(
                "the market cannot be closed: the day is {}",
                word(&phase)
            )),
        }
    }

    fn status(&mut self) -> Value {
        let history_lost: u64 = self.market.histories_mut().map(|history| history.lost()).sum();
        let first = self.market.exchange(0);
        let mut halted = Vec::new();
        for (venue, exchange) in self.market.venues() {
            for listing in exchange.listings() {
                let status = exchange.engine().trading_status(listing.id);
                if let Some(status @ (TradingStatus::Halted | TradingStatus::Paused)) = status {
                    halted.push(json!({
                        "symbol": listing.symbol.as_str(), "venue": venue.name(), "status": word(&status),
                    }));
                }
            }
        }
        json!({
            "day": word(&first.phase()),
            "messages": self.market.total(),
            "orders": first.ledger().len(),
            "connections": self.connections,
            "clients": first
                .clients()
                .iter()
                .map(|client| json!({
                    "name": first.client_name(client.route),
                    "firm": client.firm.0,
                    "logged_on": client.is_logged_on,
                    "orders": client.orders,
                    "quoted_sides": client.quoted_sides,
                    "traded": client.traded,
                }))
                .collect::<Vec<_>>(),
            "last_trade": first.engine().last_match_number(),
            "halted": halted,
            "history_lost": history_lost,
        })
    }
}

impl Answer for Operator<'_> {
    type Request = Request;
    const WHO: &'static str = "an exchange";

    fn answer(&mut self, request: Request, by: &Peer) -> Result<Value, String> {
        self.by = Some((by.uid, by.pid));
        match request {
            Request::Halt { symbol } => self.act(&symbol, TradingAction::Halt),
            Request::Call { symbol } => self.act(&symbol, TradingAction::Call),
            Request::Resume { symbol } => self.act(&symbol, TradingAction::Resume),
            Request::Break { trade, reason } => self.break_trade(trade, reason),
            Request::Lose { packets, line } => self.lose(packets, line),
            Request::Disconnect {} => {
                self.disconnects = true;
                Ok(json!({ "says": format!("{} order entry connections are cut", self.connections) }))
            }
            Request::Close {} => self.close(),
            Request::Status {} => Ok(self.status()),
        }
    }
}

/// What the first instruments are called.
fn first(listings: &[Listing]) -> String {
    let names: Vec<String> = listings
        .iter()
        .take(5)
        .map(|l| format!("{:?}", l.symbol.as_str()))
        .collect();
    names.join(", ")
}

/// A line about what happened to a client's session.
pub fn client_line(name: &str, event: &ClientEvent) -> String {
    let what = |orders: u32, quotes: u32| format!("{orders} open orders and {quotes} quoted instruments");
    match event {
        ClientEvent::LoggedOn { heartbeat_s: 0 } => format!("client {name} logged on, without heartbeats"),
        ClientEvent::LoggedOn { heartbeat_s } => {
            format!("client {name} logged on, heartbeats every {heartbeat_s} s")
        }
        ClientEvent::Ended { reason, text } => {
            let text = text.as_str();
            let colon = if text.is_empty() { "" } else { ": " };
            format!("client {name}: the session ended: {reason}{colon}{text}")
        }
        ClientEvent::NotKept { first, last, count } => format!(
            "client {name} asked for messages that are not kept any more: {count} numbers, {first} to {last}, were sent as gap fills; it does not know what they said, and has to ask for the state of its orders"
        ),
        ClientEvent::Disconnected => format!("client {name}: the connection is closed"),
        ClientEvent::Cancelled {
            orders,
            quotes,
            silent_ns: Some(ns),
        } => format!(
            "client {name}: heartbeats missed, nothing heard for {:.2} s and a test request not answered: {} cancelled",
            *ns as f64 / 1e9,
            what(*orders, *quotes)
        ),
        ClientEvent::Cancelled {
            orders,
            quotes,
            silent_ns: None,
        } => {
            format!(
                "client {name}: {} cancelled with the connection",
                what(*orders, *quotes)
            )
        }
        ClientEvent::Left { orders, quotes } => format!(
            "client {name}: {} stay without a session: neither cancel_on_disconnect nor cancel_on_missed_heartbeats says otherwise",
            what(*orders, *quotes)
        ),
    }
}

/// A variant's name in lower case.
fn word(what: &impl std::fmt::Debug) -> String {
    format!("{what:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MarketConfig;
    use crate::venue::{VIRTUAL_START, datagrams, market_of};

    fn said(text: &str) -> Result<Request, String> {
        let words: Vec<String> = text.split('/').map(String::from).collect();
        parse(&words)
    }

    #[test]
    fn what_is_typed_is_what_is_asked_for_in_one_argument_or_several() {
        for (text, request, line) in [
            (
                "halt/AAPL",
                Request::Halt {
                    symbol: "AAPL".into(),
                },
                r#"{"do":"halt","symbol":"AAPL"}"#,
            ),
            (
                "break 17 consent",
                Request::Break {
                    trade: 17,
                    reason: Reason::Consent,
                },
                r#"{"do":"break","trade":17,"reason":"consent"}"#,
            ),
            (
                "lose/100",
                Request::Lose {
                    packets: 100,
                    line: None,
                },
                r#"{"do":"lose","packets":100}"#,
            ),
            (
                "lose 3/b",
                Request::Lose {
                    packets: 3,
                    line: Some(LineName::B),
                },
                r#"{"do":"lose","packets":3,"line":"b"}"#,
            ),
            ("status", Request::Status {}, r#"{"do":"status"}"#),
            (
                "halt/ESH7 C690000",
                Request::Halt {
                    symbol: "ESH7 C690000".into(),
                },
                r#"{"do":"halt","symbol":"ESH7 C690000"}"#,
            ),
            (
                "call ESH7 C690000",
                Request::Call {
                    symbol: "ESH7 C690000".into(),
                },
                r#"{"do":"call","symbol":"ESH7 C690000"}"#,
            ),
            (
                "resume \"ESH7 C690000\"",
                Request::Resume {
                    symbol: "ESH7 C690000".into(),
                },
                r#"{"do":"resume","symbol":"ESH7 C690000"}"#,
            ),
            (
                "resume/ESH7/C690000",
                Request::Resume {
                    symbol: "ESH7 C690000".into(),
                },
                r#"{"do":"resume","symbol":"ESH7 C690000"}"#,
            ),
        ] {
            assert_eq!(said(text), Ok(request.clone()));
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
            assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
        }
        for text in [
            "",
            "halt",
            "halt \"\"",
            "status x",
            "break",
            "break x",
            "break 1 why",
            "lose 1 c",
            "lose -1",
            "stop",
        ] {
            let refused = said(text).unwrap_err();
            assert!(refused.contains("resume SYMBOL"), "{text}: {refused}");
        }
    }

    /// What an operator is told before, in and after the call phase of the opening, which is the schedule's.
    #[test]
    fn what_is_not_the_operators_to_do_is_refused_with_its_reason() {
        let minute = 60 * Nanos::SECOND;
        let mut config = MarketConfig::default();
        config.exchange.duration_s = 3_600.0.try_into().unwrap();
        config.exchange.auctions = tickwire_console::settings::read("opening = \"14:31:00\"").unwrap();
        assert_eq!(VIRTUAL_START.0 % Nanos::DAY, (14 * 60 + 30) * minute);
        let (mut market, _) = market_of(&config, None).unwrap();
        let symbol = market.exchange(0).listings()[0].symbol.to_string();
        let venue = market.venues().next().unwrap().0.name();
        let ask = |market: &mut Market, now: Nanos, request: Request| {
            let mut operator = Operator {
                now,
                market,
                journal: None,
                published_channels: &mut [],
                connections: 0,
                disconnects: false,
                failed: None,
                by: None,
            };
            operator.answer(request, &Peer::ourselves())
        };
        let refused = |said: Result<Value, String>, why: &str| {
            let said = said.unwrap_err();
            assert!(said.ends_with(&format!("at {venue} ({why})")), "{said}");
        };
        let (halt, call, resume) = (
            || Request::Halt {
                symbol: symbol.clone(),
            },
            || Request::Call {
                symbol: symbol.clone(),
            },
            || Request::Resume {
                symbol: symbol.clone(),
            },
        );
        let mut now = VIRTUAL_START;
        refused(ask(&mut market, now, halt()), "the day is waiting");
        market.open(now);
        while market.phase() != DayPhase::Open {
            assert!(now < VIRTUAL_START.after(minute / 2), "it never opens");
            now = now.after(Nanos::MILLI);
            datagrams(&mut market, now, |_, _| {});
        }
        let in_auction = "in an auction of the whole venue, or called already";
        refused(ask(&mut market, now, call()), in_auction);
        refused(ask(&mut market, now, resume()), in_auction);
        ask(&mut market, now, halt()).unwrap();
        refused(ask(&mut market, now, halt()), "halted");
        let under_way = "the auction of the whole venue is under way";
        refused(ask(&mut market, now, call()), under_way);
        refused(ask(&mut market, now, resume()), under_way);
        while now < VIRTUAL_START.after(2 * minute) {
            now = now.after(Nanos::SECOND);
            datagrams(&mut market, now, |_, _| {});
        }
        ask(&mut market, now, call()).unwrap();
        refused(ask(&mut market, now, call()), in_auction);
        ask(&mut market, now, resume()).unwrap();
        refused(ask(&mut market, now, resume()), "trading");
    }
}
