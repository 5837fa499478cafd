//! Order entry: FIX of every version and OUCH 5.0 on one engine, and the journal that brings all of it back.
//! Every world here writes a journal; at its end the journal is played to a new market, whose state must be
//! the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwire_exchange::{
    Applied, AuctionTimes, BreakReason, ClientEvent, DayPhase, Exchange, ExchangeConfig, Firm, FixPort,
    FlowConfig, Input, JournalReader, JournalWriter, Market, OrderEntryConfig, OuchPort, Outcome, PaceConfig,
    Protection, Reject, SelfTrade, TradingAction, listings,
};
use tickwire_fix::dict::{Dictionary, Validation};
use tickwire_fix::{
    Again, CompId, DisconnectReason, Encoder, Event, ExecType, ExecutionReport, Id, MemoryStore,
    NewOrderSingle, QuoteLine, Role, Rules, Session, SessionConfig, Status, Store, Version,
    put_cancel_quotes, put_mass_quote,
};
use tickwire_market::{
    Counter, InstrumentId, Nanos, OrderType, Price, Qty, Side, Symbol, TimeInForce, TradingStatus, Venue,
};
use tickwire_persist::{Persist, StateReader};
use tickwire_testdata as testdata;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::ouch50::{
    AccountQuery, Appendage, CancelOrder, DisableOrderEntry, EnableOrderEntry, EnterOrder, MassCancel,
    ModifyOrder, OptionTag, Outbound, ReplaceOrder, encode, parse_outbound, price_field,
};
use tickwire_wire::soupbintcp::{LoginRequest, Packet, split};
use tickwire_wire::zerocopy::IntoBytes;

/// 2026-01-05 14:30 UTC.
const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);
const AAPL: InstrumentId = InstrumentId(1);
const FIX_CONNECTIONS: u16 = 10;

fn comp(name: &str) -> CompId {
    CompId::new(name.as_bytes()).unwrap()
}

/// The CompID of the session of a version.
fn client_of(version: Version) -> CompId {
    comp(&version.name().replace('.', ""))
}

/// A market maker that is known to the market, of a version.
fn quoter_of(version: Version) -> CompId {
    comp(&format!("Q{}", version.name().replace('.', "")))
}

/// The first firm of quoters.
const QUOTERS: u32 = 30;

fn market() -> Market {
    market_with(AuctionTimes::default())
}

/// The opening auction of [`auction_market`].
const OPENING: Nanos = Nanos(START.0 + 120 * Nanos::SECOND);

/// With an opening auction, whose orders stay for the last ten seconds.
fn auction_market() -> Market {
    market_with(AuctionTimes {
        opening: Some(OPENING.0 % Nanos::DAY),
        no_cancel_ns: 10 * Nanos::SECOND,
        ..AuctionTimes::default()
    })
}

fn market_with(auctions: AuctionTimes) -> Market {
    market_but(|config| config.auctions = auctions)
}

/// Whose own flow halts and resumes an instrument in every tenth step.
fn halting_market() -> Market {
    market_but(|config| {
        config.flow.kinds.halts_ppm = 100_000;
        config.pace.rate = 1_000;
    })
}

fn market_but(change: impl FnOnce(&mut ExchangeConfig)) -> Market {
    let port = |(version, firm)| FixPort {
        comp_id: client_of(version),
        version,
        firm: Firm(firm),
        reset_on_logon: false,
        cancel_on_disconnect: false,
        cancel_on_missed_heartbeats: false,
        heartbeat_s_max: None,
        cancels_firm: false,
        self_trade: SelfTrade::Allow,
    };
    let quoter = |(version, firm)| FixPort {
        comp_id: quoter_of(version),
        cancel_on_disconnect: true,
        ..port((version, firm))
    };
    let sessions = Version::ALL.into_iter().zip(1..).map(port);
    let sessions = sessions.chain(Version::ALL.into_iter().zip(QUOTERS..).map(quoter));
    let limits = Protection {
        window_ns: 60 * Nanos::SECOND,
        contracts: 150,
        ..Protection::default()
    };
    let user = |name: &[u8], firm, self_trade| OuchPort {
        username: Alpha::new(name).unwrap(),
        password: Alpha::new(b"secret").unwrap(),
        firm_name: Alpha::new(b"FIRM").unwrap(),
        firm: Firm(firm),
        cancel_on_disconnect: false,
        self_trade,
    };
    let mut config = ExchangeConfig {
        listings: listings(5),
        max_orders: 20_000,
        max_levels: 512,
        flow: FlowConfig {
            seed: 7,
            max_live: 10_000,
            ..FlowConfig::default()
        },
        // The market is quiet: what happens is what clients do.
        pace: PaceConfig {
            rate: 1,
            burst_percent: 0,
            ..PaceConfig::default()
        },
        order_entry: OrderEntryConfig {
            connections: FIX_CONNECTIONS.into(),
            max_orders: 10_000,
            sessions: sessions.collect(),
            ouch: vec![
                user(b"alice", 20, SelfTrade::Decrement),
                user(b"bob", 21, SelfTrade::Allow),
            ],
            ouch_connections: 2,
            ..OrderEntryConfig::default()
        },
        protections: (0..8).map(|nth| (Firm(QUOTERS + nth), 0, limits)).collect(),
        ..ExchangeConfig::default()
    };
    change(&mut config);
    Market::new(vec![(Venue::Nasdaq, Exchange::new(config, Vec::new()))])
}

struct World {
    /// To make it again.
    make: fn() -> Market,
    now: Nanos,
    market: Market,
    journal: JournalWriter,
    file: Vec<u8>,
    out: Vec<u8>,
}

impl World {
    /// A market that is open.
    fn new() -> World {
        World::of(market)
    }

    /// The same of another one.
    fn of(make: fn() -> Market) -> World {
        let mut world = World {
            make,
            now: START,
            market: make(),
            journal: JournalWriter::new("a test's"),
            file: Vec::new(),
            out: vec![0; 1 << 16],
        };
        world.input(&Input::Open);
        for _ in 0..200_000 {
            if world.market.phase() == DayPhase::Open {
                return world;
            }
            world.pass(Nanos::SECOND);
        }
        panic!("the market never opens");
    }

    fn input(&mut self, input: &Input<'_>) -> Applied {
        self.journal.put(self.now, input);
        self.file.extend_from_slice(self.journal.pending());
        self.journal.written();
        input.apply(self.now, &mut self.market, &mut self.out)
    }

    fn pass(&mut self, ns: u64) {
        self.now = self.now.after(ns);
        self.input(&Input::Time);
    }

    /// What an operator asks for.
    fn ask(&mut self, input: &Input<'_>) -> Result<(), Reject> {
        match self.input(input) {
            Applied::Answered(done) => done,
            other => panic!("{other:?}"),
        }
    }

    fn break_trade(&mut self, match_number: u64, reason: BreakReason) -> Result<(), Reject> {
        self.ask(&Input::Break(0, match_number, reason))
    }

    fn act(&mut self, instrument: InstrumentId, action: TradingAction) -> Result<(), Reject> {
        self.ask(&Input::Action(0, instrument, action))
    }

    fn trading_status(&self, instrument: InstrumentId) -> Option<TradingStatus> {
        self.market.exchange(0).engine().trading_status(instrument)
    }

    fn connect(&mut self, id: u16) {
        assert_eq!(self.input(&Input::Connect(id)), Applied::Admitted(true));
    }

    /// Everything the exchange has for a connection.
    fn drain(&mut self, id: u16) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match self.input(&Input::Transmit(id, 4096)) {
                Applied::Sent(0) => return all,
                Applied::Sent(n) => all.extend_from_slice(&self.out[..n]),
                other => panic!("{other:?}"),
            }
        }
    }

    fn best(&self, side: Side) -> (Price, u32) {
        let exchange = self.market.exchange(0);
        let level = exchange
            .levels(AAPL, side)
            .next()
            .expect("the book has both sides");
        (level.price, level.qty.0 as u32)
    }

    /// A price where nobody else is.
    fn far(&self, side: Side) -> Price {
        let (best, _) = self.best(side);
        let ticks = 30 * 10_000_000;
        match side {
            Side::Bid => Price::from_raw(best.raw() - ticks),
            Side::Ask => Price::from_raw(best.raw() + ticks),
        }
    }

    /// The journal makes the same market; and so do a state saved somewhere within it and the journal behind
    /// it, whatever was under way. From there on every byte that is sent is the same, and in the end all of
    /// the state.
    fn finish(self) -> Vec<u8> {
        let mut again = (self.make)();
        let mut reader = JournalReader::new(&self.file).unwrap();
        let mut out = vec![0; 1 << 16];
        let count = reader.clone().count();
        let mut rng = testdata::Rng::new(self.file.len() as u64);
        let cuts: Vec<usize> = (0..3).map(|_| rng.below(count as u64) as usize).collect();
        let mut restored: Vec<Market> = Vec::new();
        let mut their_out = vec![0; 1 << 16];
        for (at, (now, input)) in reader.by_ref().enumerate() {
            for _ in cuts.iter().filter(|cut| **cut == at) {
                let mut market = (self.make)();
                let bytes = state_of(&again);
                let mut from = StateReader::new(&bytes);
                market.load(&mut from).expect("what was just saved");
                assert!(from.is_empty() && state_of(&market) == bytes);
                restored.push(market);
            }
            let applied = input.apply(now, &mut again, &mut out);
            for market in &mut restored {
                assert_eq!(input.apply(now, market, &mut their_out), applied, "{input:?}");
                if let Applied::Sent(length) = applied {
                    assert!(their_out[..length] == out[..length], "{input:?}");
                }
            }
        }
        assert_eq!(restored.len(), 3);
        let expected = state_of(&again);
        for market in restored {
            assert!(state_of(&market) == expected, "restored at {cuts:?} of {count}");
        }
        assert_eq!(reader.torn(), 0);
        assert_eq!(again.state_hash(), self.market.state_hash());
        assert_eq!(
            again.exchange(0).engine().state_hash(),
            self.market.exchange(0).engine().state_hash()
        );
        assert_eq!(again.exchange(0).ledger(), self.market.exchange(0).ledger());
        self.file
    }
}

fn state_of(market: &Market) -> Vec<u8> {
    let mut bytes = Vec::new();
    market.save(&mut bytes);
    bytes
}

/// A FIX client that checks every message it gets against its version's dictionary.
struct FixClient {
    id: u16,
    session: Session<MemoryStore>,
    /// What came, as `tag=value` without what differs from run to run.
    said: Vec<String>,
    /// All of it.
    whole: Vec<String>,
    /// As the product reads them; none of those it cannot.
    reports: Vec<Option<ExecutionReport>>,
}

/// Header, trailer, and numbers that count up.
const VOLATILE: [u32; 15] = [8, 9, 10, 34, 49, 52, 56, 17, 37, 60, 1128, 369, 533, 1369, 6];

impl FixClient {
    fn new(id: u16, version: Version) -> FixClient {
        FixClient::named(id, version, client_of(version))
    }

    fn named(id: u16, version: Version, name: CompId) -> FixClient {
        let dictionary = |name: &str| Arc::new(Dictionary::standard(name).unwrap());
        let application = dictionary(version.name());
        let rules = Rules {
            session: match version.is_fixt() {
                true => dictionary("FIXT.1.1"),
                false => application.clone(),
            },
            application,
            // CME's tags of market maker protection are not in the standard's dictionaries.
            validation: Validation {
                user_defined_fields: false,
                ..Validation::default()
            },
        };
        let config = SessionConfig {
            receive_bytes: 64 << 10,
            fields_max: 4096,
            ..SessionConfig::new(Role::Initiator, name, comp("EXCHANGE")).of_version(version)
        };
        FixClient {
            id,
            session: Session::with_rules(config, MemoryStore::new(1024, 1 << 20), Some(rules)),
            said: Vec::new(),
            whole: Vec::new(),
            reports: Vec::new(),
        }
    }

    fn log_on(&mut self, world: &mut World) {
        world.connect(self.id);
        self.session.handle_connected(world.now);
        self.exchange(world);
        assert_eq!(self.session.status(), Status::Active);
    }

    fn log_off_without_a_word(&mut self, world: &mut World) {
        world.input(&Input::Disconnect(self.id));
        self.session.handle_disconnected(world.now);
    }

    /// Moves bytes both ways until nobody has any.
    fn exchange(&mut self, world: &mut World) {
        let mut buffer = [0; 4096];
        loop {
            let mut moved = false;
            while let Some(bytes) = self.session.poll_transmit(&mut buffer) {
                let given = bytes.len();
                let text = bytes.escape_ascii().to_string().replace("\\x01", "|");
                assert!(
                    !text.contains("|35=3|"),
                    "what the exchange said is wrong: {text}"
                );
                assert_eq!(world.input(&Input::Bytes(self.id, bytes)), Applied::Taken(given));
                moved = true;
            }
            let bytes = world.drain(self.id);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let taken = self.session.handle_bytes(world.now, rest);
                rest = &rest[taken..];
                moved = true;
                while let Some(event) = self.session.poll_event() {
                    match event {
                        Event::Message { .. } => self.note(),
                        Event::Rejected {
                            ref_tag,
                            reason,
                            text,
                            ..
                        } => {
                            self.said.push(format!(
                                "35=3|371={ref_tag}|373={}|58={text}",
                                reason.unwrap_or(999)
                            ));
                        }
                        _ => {}
                    }
                }
            }
            if !moved {
                let rejects = self.session.counters().get(Counter::FixRejects);
                assert_eq!(
                    rejects,
                    0,
                    "{}: {:?}",
                    self.session.config().version.name(),
                    self.said
                );
                return;
            }
        }
    }

    fn note(&mut self) {
        let message = self.session.message().unwrap();
        let text = |shows: &dyn Fn(u32) -> bool| {
            let shown = message.fields().iter().filter(|f| shows(f.tag));
            let texts = shown.map(|f| format!("{}={}", f.tag, message.value(*f).escape_ascii()));
            texts.collect::<Vec<_>>().join("|")
        };
        self.said.push(text(&|tag| !VOLATILE.contains(&tag)));
        self.whole.push(text(&|_| true));
        if message.msg_type() == b"8" {
            self.reports.push(ExecutionReport::decode(&message).ok());
        }
    }

    fn send(&mut self, world: &mut World, kind: &[u8], fields: impl FnOnce(&mut Encoder<'_>)) -> Vec<String> {
        self.session
            .send(world.now, kind, Again::Resend, |e, _| fields(e))
            .unwrap();
        self.exchange(world);
        std::mem::take(&mut self.said)
    }

    /// A limit order for the day, with further fields.
    fn order(
        &mut self,
        world: &mut World,
        id: &str,
        side: Side,
        price: Price,
        qty: u32,
        more: impl FnOnce(&mut Encoder<'_>),
    ) -> Vec<String> {
        self.send(world, b"D", |e| {
            e.text(11, id.as_bytes());
            limit_order(e, side, price, qty);
            more(e);
        })
    }

    /// Another price and total quantity of an order to buy, with further fields.
    fn replace(
        &mut self,
        world: &mut World,
        (id, orig): (&str, &str),
        price: Price,
        qty: u32,
        more: impl FnOnce(&mut Encoder<'_>),
    ) -> Vec<String> {
        self.send(world, b"G", |e| {
            e.text(11, id.as_bytes());
            e.text(41, orig.as_bytes());
            limit_order(e, Side::Bid, price, qty);
            more(e);
        })
    }

    fn cancel(&mut self, world: &mut World, id: &str, orig: &str) -> Vec<String> {
        self.send(world, b"F", |e| {
            e.text(11, id.as_bytes());
            e.text(41, orig.as_bytes());
            e.text(55, b"AAPL");
            e.char(54, b'1');
            e.text(60, b"20260105-14:30:00");
        })
    }
}

fn limit_order(e: &mut Encoder<'_>, side: Side, price: Price, qty: u32) {
    e.char(21, b'1');
    e.text(55, b"AAPL");
    e.char(54, b'1' + side as u8);
    e.text(60, b"20260105-14:30:00");
    e.unsigned(38, qty.into());
    e.char(40, b'2');
    e.price(44, price);
}

/// The values of some tags, in the order asked for.
fn pick(said: &str, tags: &[u32]) -> String {
    let fields: BTreeMap<u32, &str> = said
        .split('|')
        .filter_map(|field| field.split_once('='))
        .map(|(tag, value)| (tag.parse().unwrap(), value))
        .collect();
    let value = |tag: &u32| fields.get(tag).map(|v| format!("{tag}={v}"));
    tags.iter().filter_map(value).collect::<Vec<_>>().join(" ")
}

/// What happened to an order.
const STATE: [u32; 9] = [35, 11, 41, 20, 150, 39, 38, 14, 151];

#[test]
fn every_version_of_fix_enters_replaces_fills_and_cancels_in_its_own_words() {
    let mut world = World::new();
    for (id, version) in (0..).zip(Version::ALL) {
        let mut client = FixClient::new(id, version);
        client.log_on(&mut world);
        let is_old = version <= Version::Fix42;
        let far = world.far(Side::Bid);
        let states = |said: &[String]| -> Vec<String> { said.iter().map(|s| pick(s, &STATE)).collect() };
        // What a version has no field for is not there.
        let about = |id: &str, orig: &str| match version {
            Version::Fix40 => format!("11={id}"),
            _ => format!("11={id} 41={orig}"),
        };
        let line = |kind: &str, exec: &str, status: &str, rest: &str, leaves: &str| {
            let mut line = format!("35=8 {kind}");
            if is_old {
                line += " 20=0";
            }
            if version >= Version::Fix41 {
                line += &format!(" 150={exec}");
            }
            line += &format!(" 39={status} {rest}");
            if version >= Version::Fix41 {
                line += &format!(" 151={leaves}");
            }
            line
        };

        let said = client.order(&mut world, "a", Side::Bid, far, 300, |_| {});
        assert_eq!(
            states(&said),
            [line("11=a", "0", "0", "38=300 14=0", "300")],
            "{version:?}"
        );
        let said = client.replace(&mut world, ("b", "a"), far, 200, |_| {});
        let replaced = if is_old { "5" } else { "0" };
        assert_eq!(
            states(&said),
            [line(&about("b", "a"), "5", replaced, "38=200 14=0", "200")],
            "{version:?}"
        );
        let said = client.cancel(&mut world, "c", "b");
        assert_eq!(
            states(&said),
            [line(&about("c", "b"), "4", "4", "38=200 14=0", "0")],
            "{version:?}"
        );
        let said = client.cancel(&mut world, "d", "b");
        assert_eq!(pick(&said[0], &[35, 11, 102]), "35=9 11=d 102=0");
        assert_eq!(pick(&said[0], &[434]).is_empty(), version < Version::Fix42);

        // Takes half of the best offer, the rest of an order that does not rest is cancelled.
        let (ask, shown) = world.best(Side::Ask);
        let said = client.order(&mut world, "e", Side::Bid, ask, shown + 10, |e| e.char(59, b'3'));
        let (first, last) = (pick(&said[0], &STATE), said.last().unwrap());
        let all = shown + 10;
        assert_eq!(
            first,
            line("11=e", "0", "0", &format!("38={all} 14=0"), &all.to_string())
        );
        let filled: u32 = said
            .iter()
            .filter_map(|s| {
                pick(s, &[32])
                    .strip_prefix("32=")
                    .map(|n| n.parse::<u32>().unwrap())
            })
            .sum();
        assert!(filled >= shown, "hidden orders trade too");
        let end = if filled == all { "2" } else { "4" };
        assert_eq!(pick(last, &[39]), format!("39={end}"), "{version:?}");
        let fill = pick(&said[1], &[150, 31]);
        if version >= Version::Fix43 {
            assert!(fill.starts_with("150=F 31="), "{fill}");
        } else if version >= Version::Fix41 {
            assert!(
                fill.starts_with("150=1 31=") || fill.starts_with("150=2 31="),
                "{fill}"
            );
        }

        // Instructions: iceberg, post only that would take, stop that waits, duplicate.
        let said = client.order(&mut world, "f", Side::Bid, far, 500, |e| e.unsigned(111, 100));
        // Before 4.2 a report cannot say how much is shown.
        let shown = match version {
            Version::Fix40 | Version::Fix41 => "39=0",
            Version::Fix42 | Version::Fix43 | Version::Fix44 => "39=0 111=100",
            _ => "39=0 1138=100",
        };
        assert_eq!(pick(&said[0], &[39, 111, 1138]), shown, "{version:?}");
        let (ask, _) = world.best(Side::Ask);
        let said = client.order(&mut world, "g", Side::Bid, ask, 1, |e| e.text(18, b"1 6"));
        assert_eq!(
            pick(&said[0], &[39, 103, 58]),
            "39=8 103=0 58=post-only order would trade"
        );
        let said = client.send(&mut world, b"D", |e| {
            e.text(11, b"h");
            e.char(21, b'1');
            e.text(55, b"AAPL");
            e.char(54, b'1');
            e.text(60, b"20260105-14:30:00");
            e.unsigned(38, 10);
            e.char(40, b'3');
            e.price(99, Price::from_raw(ask.raw() + 50 * 10_000_000));
        });
        assert_eq!(pick(&said[0], &[39, 40]), "39=0 40=3", "{version:?} {said:?}");
        let said = client.order(&mut world, "a", Side::Bid, far, 1, |_| {});
        assert_eq!(pick(&said[0], &[39, 58]), "39=8 58=duplicate ClOrdID");

        // Status of one, then all are cancelled.
        let status = |world: &mut World, client: &mut FixClient, id: &str| {
            client.send(world, b"H", |e| {
                e.text(11, id.as_bytes());
                e.text(55, b"AAPL");
                e.char(54, b'1');
            })
        };
        let said = status(&mut world, &mut client, "f");
        let asked = if is_old { "20=3 39=0" } else { "39=0" };
        assert_eq!(pick(&said[0], &[20, 39]), asked);
        let said = status(&mut world, &mut client, "nobody");
        assert_eq!(pick(&said[0], &[39, 58]), "39=8 58=unknown order");
        let sweep = |e: &mut Encoder<'_>| {
            e.text(11, b"q");
            e.char(530, b'7');
            e.text(60, b"20260105-14:30:00");
        };
        if version >= Version::Fix43 {
            let mut said = client.send(&mut world, b"q", sweep);
            assert_eq!(
                pick(&said.pop().unwrap(), &[35, 11, 530, 531]),
                "35=r 11=q 530=7 531=7"
            );
            said.sort();
            let gone: Vec<_> = said.iter().map(|s| pick(s, &[11, 39])).collect();
            assert_eq!(gone, ["11=f 39=4", "11=h 39=4"]);
            let said = client.send(&mut world, b"g", |e| {
                e.text(335, b"t");
                e.char(263, b'0');
            });
            assert_eq!(pick(&said[0], &[35, 335, 340]), "35=h 335=t 340=2");
        } else {
            let said = client.send(&mut world, b"q", sweep);
            assert_eq!(said.len(), 1, "no mass cancel before 4.3: {said:?}");
            for orig in ["f", "h"] {
                client.cancel(&mut world, &format!("x{orig}"), orig);
            }
        }
        assert_eq!(world.market.exchange(0).reports_lost(), 0);
    }
    world.finish();
}

#[test]
fn what_a_message_lacks_is_said_by_reject_and_what_does_not_go_together_by_business_reject() {
    let mut world = World::new();
    let mut client = FixClient::new(0, Version::Fix44);
    client.log_on(&mut world);
    let said = client.send(&mut world, b"D", |e| {
        e.text(11, b"a");
        e.char(54, b'1');
        e.unsigned(38, 1);
        e.char(40, b'1');
    });
    assert!(said[0].starts_with("35=3|371=55|373=1"), "{said:?}");
    let said = client.send(&mut world, b"D", |e| {
        e.text(11, b"a");
        e.text(55, b"AAPL");
        e.char(54, b'1');
        e.unsigned(38, 1);
        e.char(40, b'2');
    });
    assert_eq!(pick(&said[0], &[35, 372, 380]), "35=j 372=D 380=5");
    let said = client.send(&mut world, b"D", |e| {
        e.text(11, b"a");
        e.text(55, b"AAPL");
        e.char(54, b'9');
        e.unsigned(38, 1);
        e.char(40, b'1');
    });
    assert!(said[0].starts_with("35=3|371=54|373=5"), "{said:?}");
    let said = client.send(&mut world, b"B", |e| e.text(148, b"news"));
    assert_eq!(pick(&said[0], &[35, 372, 380]), "35=j 372=B 380=3");
    assert!(world.market.exchange(0).ledger().is_empty());
    world.finish();
}

#[test]
fn a_stop_order_is_replaced_where_it_waits_and_not_once_it_was_triggered() {
    let mut world = World::new();
    let mut client = FixClient::new(0, Version::Fix44);
    client.log_on(&mut world);
    let (ask, shown) = world.best(Side::Ask);
    let above = |ticks: i64| Price::from_raw(ask.raw() + ticks * 10_000_000);
    let stop_limit = |e: &mut Encoder<'_>, trigger: Price, qty: u32| {
        e.text(55, b"AAPL");
        e.char(54, b'1');
        e.text(60, b"20260105-14:30:00");
        e.unsigned(38, qty.into());
        e.char(40, b'4');
        e.price(44, above(90));
        e.price(99, trigger);
    };
    let said = client.send(&mut world, b"D", |e| {
        e.text(11, b"a");
        stop_limit(e, above(50), 10);
    });
    assert_eq!(pick(&said[0], &[39, 99]), format!("39=0 99={}", above(50)));
    let replace = |world: &mut World, client: &mut FixClient, ids: (&str, &str), trigger, qty| {
        let said = client.send(world, b"G", |e| {
            e.text(11, ids.0.as_bytes());
            e.text(41, ids.1.as_bytes());
            stop_limit(e, trigger, qty);
        });
        pick(said.last().unwrap(), &[35, 150, 38, 99, 58])
    };
    // Another trigger; then less, at the same one.
    let said = replace(&mut world, &mut client, ("b", "a"), above(40), 10);
    assert_eq!(said, format!("35=8 150=5 38=10 99={}", above(40)));
    let said = replace(&mut world, &mut client, ("c", "b"), above(40), 7);
    assert_eq!(said, format!("35=8 150=5 38=7 99={}", above(40)));
    let venue_id = world.market.exchange(0).ledger()[0].order_id;
    let engine = world.market.exchange(0).engine();
    assert_eq!(engine.stop_price(venue_id), Some(above(40)));
    // Down to the best offer, which somebody takes: it is triggered, and its trigger is past.
    let said = replace(&mut world, &mut client, ("d", "c"), ask, 7_000);
    assert_eq!(said, format!("35=8 150=5 38=7000 99={ask}"));
    client.order(&mut world, "t", Side::Bid, ask, shown.min(1), |e| {
        e.char(59, b'3')
    });
    let open = world.market.exchange(0).ledger()[0];
    if open.outcome == Outcome::Open {
        let said = replace(&mut world, &mut client, ("e", "d"), above(30), 7_000);
        assert_eq!(said, "35=9 58=the order was triggered already");
    }
    assert!(open.filled.0 > 0, "it was triggered");
    let far = world.far(Side::Bid);
    client.order(&mut world, "l", Side::Bid, far, 1, |_| {});
    let said = client.replace(&mut world, ("m", "l"), above(-90), 1, |e| e.price(99, above(1)));
    assert_eq!(
        pick(&said[0], &[35, 58]),
        "35=9 58=StopPx (99) is for stop orders"
    );
    world.finish();
}

/// Before its first fill the client hears, and our own reader of reports understands, that a stop order was
/// triggered; and so does who asks for its status later.
#[test]
fn a_stop_order_that_was_triggered_is_told_and_shown_as_such_in_every_version() {
    for version in Version::ALL {
        let mut world = World::new();
        let mut client = FixClient::new(0, version);
        client.log_on(&mut world);
        let (ask, _) = world.best(Side::Ask);
        let stop_limit = |e: &mut Encoder<'_>| {
            e.text(55, b"AAPL");
            e.char(54, b'1');
            e.text(60, b"20260105-14:30:00");
            // More than is offered there: the rest stays.
            e.unsigned(38, 1_000_000);
            e.char(40, b'4');
            e.price(44, ask);
            e.price(99, ask);
        };
        let said = client.send(&mut world, b"D", |e| {
            e.text(11, b"s");
            e.char(21, b'1');
            stop_limit(e);
        });
        assert_eq!(pick(&said[0], &[39, 40, 636]), "39=0 40=4", "{version:?}");
        let ask_for_it = |world: &mut World, client: &mut FixClient| {
            let said = client.send(world, b"H", |e| {
                e.text(11, b"s");
                e.text(55, b"AAPL");
                e.char(54, b'1');
            });
            let said = said.last().expect("an answer").clone();
            (said, client.reports.last().copied().flatten())
        };
        let (waits, read) = ask_for_it(&mut world, &mut client);
        assert_eq!(pick(&waits, &[39, 40, 636]), "39=0 40=4", "{version:?}");
        assert!(read.is_none_or(|report| !report.is_working), "{version:?}");
        client.reports.clear();
        let said = client.order(&mut world, "t", Side::Bid, ask, 1, |e| e.char(59, b'3'));
        let of_stop: Vec<&String> = said.iter().filter(|said| pick(said, &[11]) == "11=s").collect();
        let shown = pick(of_stop[0], &[20, 150, 39, 378, 40, 99, 636, 58]);
        let expected = match version {
            Version::Fix40 => format!("20=3 39=0 40=2 99={ask}"),
            Version::Fix41 => format!("20=3 150=0 39=0 40=2 99={ask}"),
            Version::Fix42 => format!("20=0 150=D 39=0 378=4 40=2 99={ask}"),
            Version::Fix43 | Version::Fix44 => format!("150=D 39=0 378=8 40=4 99={ask} 636=Y"),
            _ => format!("150=L 39=0 40=4 99={ask} 636=Y"),
        };
        assert_eq!(shown, format!("{expected} 58=triggered"), "{version:?}");
        let fills = of_stop.iter().skip(1).map(|said| pick(said, &[39, 40]));
        let fills: Vec<String> = fills.collect();
        assert!(
            !fills.is_empty() && fills.iter().all(|fill| fill == "39=1 40=4"),
            "{fills:?}"
        );
        // Reports of 4.0 have no ExecType (150): the product reads none.
        let own = Id::new(b"s").expect("an identifier");
        let read = client
            .reports
            .iter()
            .flatten()
            .find(|report| report.cl_ord_id == own);
        assert_eq!(read.is_some(), version != Version::Fix40, "{version:?}");
        assert!(
            read.is_none_or(|report| report.is_working),
            "{version:?}: {read:?}"
        );
        let (works, read) = ask_for_it(&mut world, &mut client);
        let expected = match version <= Version::Fix42 {
            true => "39=1 40=2",
            false => "39=1 40=4 636=Y",
        };
        assert_eq!(pick(&works, &[39, 40, 636]), expected, "{version:?}");
        assert!(read.is_none_or(|report| report.is_working), "{version:?}");
        world.finish();
    }
}

/// What a strategy's host writes is understood here, and what is said here is understood there.
#[test]
fn stop_orders_and_mass_quotes_of_a_strategys_host_are_taken_and_answered() {
    for version in [Version::Fix42, Version::Fix44, Version::Fix50Sp2] {
        let mut world = World::new();
        let mut client = FixClient::named(0, version, quoter_of(version));
        client.log_on(&mut world);
        let (ask, _) = world.best(Side::Ask);
        let stop = NewOrderSingle {
            cl_ord_id: Id::from_number(1),
            symbol: Symbol::new(b"AAPL").unwrap(),
            side: Side::Bid,
            transact_time: world.now,
            qty: Qty(5),
            order_type: OrderType::Market,
            price: None,
            stop: Some(ask),
            time_in_force: TimeInForce::Day,
            cause: None,
        };
        client
            .session
            .send(world.now, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                stop.encode(e, stamp)
            })
            .unwrap();
        client.exchange(&mut world);
        client.order(&mut world, "2", Side::Bid, ask, 1, |e| e.char(59, b'3'));
        let told: Vec<_> = client
            .reports
            .iter()
            .flatten()
            .filter(|report| report.cl_ord_id == Id::from_number(1))
            .map(|report| (report.exec_type, report.order_type, report.stop))
            .collect();
        let market = |exec_type| (exec_type, OrderType::Market, Some(ask));
        // Earlier versions have no word for the trigger.
        let trigger = match version {
            Version::Fix50Sp2 => ExecType::Triggered,
            _ => ExecType::Restated,
        };
        let expected = [ExecType::New, trigger, ExecType::Trade].map(market);
        assert!(told.starts_with(&expected), "{version:?}: {told:?}");

        let (bid, offer) = (world.far(Side::Bid), world.far(Side::Ask));
        let line = |name: u64, symbol: &[u8]| QuoteLine {
            name,
            symbol: Symbol::new(symbol).unwrap(),
            sides: [(bid, Qty(100)), (offer, Qty(100))],
        };
        let lines = [line(900_000_000_000, b"MSFT"), line(900_000_000_001, b"NOSUCH")];
        let said = client.send(&mut world, b"i", |e| put_mass_quote(e, 77, None, false, &lines));
        let pieces = [
            "35=b|117=77|297=0|301=2|",
            "|299=900000000000|",
            "|299=900000000001|",
        ];
        assert!(
            pieces.iter().all(|piece| said[0].contains(piece)),
            "{version:?}: {said:?}"
        );
        assert!(said[0].ends_with("|368=1"), "{version:?}: {said:?}");
        let said = client.send(&mut world, b"Z", |e| put_cancel_quotes(e, 78, &lines[..1]));
        let expected = match version {
            Version::Fix42 => "35=b|117=78|297=1",
            _ => "35=AI|117=78|55=MSFT|297=1",
        };
        assert!(said[0].starts_with(expected), "{version:?}: {said:?}");
        world.finish();
    }
}

#[test]
fn reports_wait_for_a_client_that_is_gone_and_what_was_lost_on_the_way_is_sent_again() {
    let mut world = World::new();
    let mut maker = FixClient::new(0, Version::Fix42);
    let mut taker = FixClient::new(1, Version::Fix50Sp2);
    maker.log_on(&mut world);
    taker.log_on(&mut world);
    // Inside the spread or at the best: the maker's order is the best bid.
    let (bid, _) = world.best(Side::Bid);
    let (ask, _) = world.best(Side::Ask);
    let price = Price::from_raw((bid.raw() + 10_000_000).min(ask.raw() - 10_000_000));
    maker.order(&mut world, "m", Side::Bid, price, 100, |_| {});
    maker.log_off_without_a_word(&mut world);
    let first = taker.order(&mut world, "t", Side::Ask, price, 30, |_| {});
    assert!(first.iter().any(|s| pick(s, &[32]) == "32=30"), "{first:?}");
    world.pass(Nanos::SECOND);
    maker.log_on(&mut world);
    let fills: Vec<_> = maker
        .said
        .drain(..)
        .map(|s| pick(&s, &[11, 150, 32, 151]))
        .collect();
    assert_eq!(fills, ["11=m 150=1 32=30 151=70"]);

    // Sent, but lost with the connection: the client asks for it by its number.
    taker
        .session
        .send(world.now, b"D", Again::Resend, |e, _| {
            e.text(11, b"u");
            e.char(21, b'1');
            e.text(55, b"AAPL");
            e.char(54, b'2');
            e.text(60, b"20260105-14:30:00");
            e.unsigned(38, 70);
            e.char(40, b'2');
            e.price(44, price);
        })
        .unwrap();
    taker.exchange(&mut world);
    let lost = world.drain(0);
    assert!(!lost.is_empty());
    maker.log_off_without_a_word(&mut world);
    maker.log_on(&mut world);
    let fills: Vec<_> = maker
        .said
        .drain(..)
        .map(|s| pick(&s, &[11, 150, 32, 151]))
        .collect();
    assert_eq!(fills, ["11=m 150=2 32=70 151=0"]);
    world.finish();
}

/// One entry of a mass quote: set, entry, symbol, bid, offer; no quantity is no side.
type QuoteEntry<'a> = (&'a str, &'a str, &'a str, (Price, u32), (Price, u32));

fn mass_quote(e: &mut Encoder<'_>, id: &str, level: u8, resets: bool, entries: &[QuoteEntry<'_>]) {
    e.text(117, id.as_bytes());
    e.char(301, level);
    if resets {
        e.char(9773, b'Y');
    }
    let sets = || entries.chunk_by(|a, b| a.0 == b.0);
    e.unsigned(296, sets().count() as u64);
    for set in sets() {
        e.text(302, set[0].0.as_bytes());
        e.unsigned(304, set.len() as u64);
        e.unsigned(295, set.len() as u64);
        for (_, entry, symbol, bid, offer) in set {
            e.text(299, entry.as_bytes());
            e.text(55, symbol.as_bytes());
            e.price(132, bid.0);
            e.price(133, offer.0);
            e.unsigned(134, bid.1.into());
            e.unsigned(135, offer.1.into());
        }
    }
}

/// One that nobody had the time to trade in would have nothing to show.
#[test]
fn the_close_waits_for_the_first_order_or_quote_and_not_for_ever() {
    fn hasty() -> Market {
        market_but(|config| {
            config.duration_ns = Nanos::SECOND;
            config.orders_min = 1;
            config.overtime_max_ns = 60 * Nanos::SECOND;
        })
    }
    for enters in ["nothing", "an order", "a quote"] {
        let mut world = World::of(hasty);
        let mut client = FixClient::named(0, Version::Fix44, quoter_of(Version::Fix44));
        client.log_on(&mut world);
        world.pass(2 * Nanos::SECOND);
        assert_eq!(world.market.phase(), DayPhase::Open, "{enters}");
        let (bid, offer) = (world.far(Side::Bid), world.far(Side::Ask));
        match enters {
            "an order" => {
                client.order(&mut world, "o1", Side::Bid, bid, 100, |_| {});
            }
            "a quote" => {
                let entries = [("s", "1", "AAPL", (bid, 100), (offer, 100))];
                client.send(&mut world, b"i", |e| mass_quote(e, "q1", b'0', false, &entries));
            }
            _ => {
                world.pass(50 * Nanos::SECOND);
                assert_eq!(world.market.phase(), DayPhase::Open, "52 s of 61");
                world.pass(10 * Nanos::SECOND);
            }
        }
        world.pass(Nanos::MILLI);
        assert_ne!(world.market.phase(), DayPhase::Open, "{enters}");
    }
}

#[test]
fn a_market_maker_quotes_is_filled_protected_and_quotes_again_in_every_version_that_has_mass_quotes() {
    let mut world = World::new();
    for (id, version) in (0..).zip(Version::ALL) {
        let mut quoter = FixClient::named(0, version, quoter_of(version));
        quoter.log_on(&mut world);
        let (bid, offer) = (world.far(Side::Bid), world.far(Side::Ask));
        if version < Version::Fix42 {
            let said = quoter.send(&mut world, b"i", |e| mass_quote(e, "q", b'2', false, &[]));
            assert!(said[0].starts_with("35=3|"), "{version:?}: {said:?}");
            quoter.log_off_without_a_word(&mut world);
            continue;
        }
        // Two sets; one entry of an unknown instrument, one crossed.
        let entries = [
            ("s", "1", "AAPL", (bid, 100), (offer, 100)),
            ("s", "2", "NOSUCH", (bid, 1), (offer, 1)),
            ("t", "3", "MSFT", (bid, 50), (offer, 0)),
            ("t", "4", "NVDA", (offer, 1), (bid, 1)),
        ];
        let said = quoter.send(&mut world, b"i", |e| mass_quote(e, "q1", b'2', false, &entries));
        let groups = match version {
            _ if version < Version::Fix50Sp2 => {
                "296=2|302=s|304=2|295=2|299=1|299=2|368=1|302=t|304=2|295=2|299=3|299=4|368=7"
            }
            _ => {
                "296=2|302=s|304=2|295=2|299=1|1167=0|299=2|1167=5|368=1|\
                 302=t|304=2|295=2|299=3|1167=0|299=4|1167=5|368=7"
            }
        };
        assert_eq!(said, [format!("35=b|117=q1|297=0|301=2|{groups}")], "{version:?}");

        // About what is refused only; nothing about anything.
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q2", b'1', false, &entries[1..3]);
        });
        assert!(
            said[0].contains("299=2|") && !said[0].contains("299=3|"),
            "{said:?}"
        );
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q3", b'0', false, &entries[..1]);
        });
        assert_eq!(said, [""; 0], "{version:?}");
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q4", b'0', false, &entries[1..2]);
        });
        assert_eq!(pick(&said[0], &[35, 117, 297]), "35=b 117=q4 297=5");

        // What stands is told on request.
        let status = |world: &mut World, quoter: &mut FixClient, symbol: &str| {
            quoter.send(world, b"a", |e| {
                if version > Version::Fix42 {
                    e.text(649, b"r");
                }
                e.text(55, symbol.as_bytes());
            })
        };
        let is_old = version == Version::Fix42;
        let active = if version >= Version::Fix50Sp1 { 16 } else { 0 };
        let said = status(&mut world, &mut quoter, "AAPL");
        match is_old {
            true => assert_eq!(said, ["35=b|117=q3|297=0"]),
            false => assert_eq!(
                said,
                [format!(
                    "35=AI|649=r|117=q3|55=AAPL|132={bid}|134=100|133={offer}|135=100|297={active}"
                )]
            ),
        }
        let said = status(&mut world, &mut quoter, "TSLA");
        let unknown = if is_old { "35=b 297=5" } else { "35=AI 297=9" };
        assert_eq!(pick(&said[0], &[35, 297]), unknown);

        // Better than all others, and somebody sells everything down to it.
        let mut taker = FixClient::new(id + 1, version);
        taker.log_on(&mut world);
        let mut filled =
            |world: &mut World, quoter: &mut FixClient, quote: &str, order: &str, cause: &[u64]| {
                let high = Price::from_raw(world.best(Side::Ask).0.raw() - 10_000_000);
                let said = quoter.send(world, b"i", |e| {
                    for (tag, value) in (20001..).zip(cause) {
                        e.unsigned(tag, *value);
                    }
                    mass_quote(
                        e,
                        quote,
                        b'1',
                        false,
                        &[("s", "1", "AAPL", (high, 100), (offer, 100))],
                    );
                });
                assert_eq!(said, [""; 0], "{version:?}");
                taker.order(world, order, Side::Ask, high, 50_000, |e| e.char(59, b'3'));
                quoter.exchange(world);
                std::mem::take(&mut quoter.said)
            };
        let said = filled(&mut world, &mut quoter, "q5", "a", &[1, 4711, 99]);
        let exec_type = if is_old { "2" } else { "F" };
        assert_eq!(
            said.iter().map(|s| pick(s, &STATE)).collect::<Vec<_>>(),
            [format!(
                "35=8 11=1{} 150={exec_type} 39=2 38=100 14=100 151=0",
                if is_old { " 20=0" } else { "" }
            )],
            "{version:?}"
        );
        // With what caused the quote; nothing is told of half a cause, or of an earlier quote's.
        let cause = [20001, 20002, 20003];
        assert_eq!(
            pick(&said[0], &cause),
            "20001=1 20002=4711 20003=99",
            "{version:?}"
        );
        // Again within the window: more than it allows. All quotes of the group go, and new ones are refused.
        let said = filled(&mut world, &mut quoter, "q6", "b", &[1, 4712]);
        assert_eq!(pick(&said[0], &cause), "", "{version:?}");
        assert_eq!(pick(&said[0], &[35, 39, 14]), "35=8 39=2 14=100");
        let status_6 = if is_old { 4 } else { 6 };
        assert_eq!(
            pick(&said[1], &[35, 117, 297, 9775]),
            format!("35=b 117=q6 297={status_6} 9775=F")
        );
        assert!(
            said[1].contains("|299=1") && said[1].contains("|299=3"),
            "{said:?}"
        );
        assert_eq!(said.len(), 2, "{said:?}");
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q7", b'1', false, &entries[2..3]);
        });
        let protected = if is_old { "297=5 368=9" } else { "297=5 368=98" };
        assert_eq!(pick(&said[0], &[297, 368]), protected, "{version:?}");
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q8", b'0', true, &entries[..1]);
        });
        assert_eq!(pick(&said[0], &[297, 9773]), "297=0 9773=Y");

        // Withdrawn: of one instrument, of all.
        let said = quoter.send(&mut world, b"Z", |e| {
            e.text(117, b"z1");
            e.char(298, b'1');
            e.char(301, b'1');
            e.char(295, b'1');
            e.text(55, b"AAPL");
        });
        match is_old {
            true => assert_eq!(said, ["35=b|117=z1|297=1"]),
            false => assert_eq!(said, ["35=AI|117=z1|55=AAPL|297=1"]),
        }
        let said = status(&mut world, &mut quoter, "AAPL");
        let gone = if is_old { "297=5" } else { "297=6" };
        assert_eq!(pick(&said[0], &[297, 132]), gone);
        quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q9", b'0', false, &entries[..3])
        });
        let said = quoter.send(&mut world, b"Z", |e| {
            e.text(117, b"z2");
            e.char(298, b'4');
            e.char(301, b'1');
        });
        assert_eq!(
            pick(&said[0], &[117, 55, 297]).replace(" 55=[N/A]", ""),
            "117=z2 297=4"
        );

        // The connection is lost, and the quotes with it.
        let said = quoter.send(&mut world, b"i", |e| {
            mass_quote(e, "q10", b'0', false, &entries[..1])
        });
        assert_eq!(said, [""; 0]);
        let bids = |world: &World| -> u64 {
            let levels = world.market.exchange(0).levels(AAPL, Side::Bid);
            levels
                .filter(|level| level.price == bid)
                .map(|level| level.qty.0)
                .sum()
        };
        let with_quote = bids(&world);
        quoter.log_off_without_a_word(&mut world);
        assert_eq!(bids(&world), with_quote - 100, "{version:?}");
        quoter.log_on(&mut world);
        let said: Vec<_> = quoter.said.drain(..).collect();
        assert_eq!(
            pick(&said[0], &[35, 117, 9775]),
            "35=b 117=q10 9775=A",
            "{version:?}"
        );
        quoter.log_off_without_a_word(&mut world);
        world.pass(61 * Nanos::SECOND);
    }
    world.finish();
}

#[test]
fn a_mass_quote_that_cannot_be_read_is_rejected_whole_and_an_order_of_its_own_firm_takes_no_quote() {
    let mut world = World::new();
    let version = Version::Fix44;
    let mut quoter = FixClient::named(0, version, quoter_of(version));
    quoter.log_on(&mut world);
    let (bid, offer) = (world.far(Side::Bid), world.far(Side::Ask));
    let entry = ("s", "1", "AAPL", (bid, 100), (offer, 100));
    // No quote set, a set without entries, more entries than counted, a count that is no number.
    let cut = |e: &mut Encoder<'_>, count: &[u8]| {
        e.text(117, b"q");
        e.text(296, b"1");
        e.text(302, b"s");
        e.text(304, b"1");
        if !count.is_empty() {
            e.text(295, count);
            for id in [b"1", b"2"] {
                e.text(299, id);
                e.text(55, b"AAPL");
            }
        }
    };
    let said = quoter.send(&mut world, b"i", |e| e.text(117, b"q"));
    assert!(said[0].starts_with("35=3|371=296|373=1"), "{said:?}");
    for (count, answer) in [
        (&b""[..], "35=3|371=295|373=1"),
        (b"1", "35=3|371=295|373=16"),
        (b"x", "35=3|371=295|373=6"),
        (b"600", "35=3|371=295|373=16"),
    ] {
        let said = quoter.send(&mut world, b"i", |e| cut(e, count));
        assert!(said[0].starts_with(answer), "{count:?}: {said:?}");
    }
    let many: Vec<String> = (0..513).map(|n| n.to_string()).collect();
    let many: Vec<QuoteEntry<'_>> = many
        .iter()
        .map(|id| ("s", id.as_str(), "AAPL", entry.3, entry.4))
        .collect();
    let said = quoter.send(&mut world, b"i", |e| mass_quote(e, "q", b'2', false, &many));
    assert_eq!(pick(&said[0], &[35, 372, 380]), "35=j 372=i 380=0");
    let said = quoter.send(&mut world, b"i", |e| {
        mass_quote(e, "q", b'1', false, &many[..512])
    });
    assert_eq!(said, [""; 0], "each replaces the one before");

    // A quote never trades with its own firm: the one that is there goes, and its owner is told what is left
    // of it.
    let high = Price::from_raw(world.best(Side::Ask).0.raw() - 10_000_000);
    quoter.send(&mut world, b"i", |e| {
        mass_quote(
            e,
            "q2",
            b'0',
            false,
            &[("s", "1", "AAPL", (high, 100), (offer, 100))],
        );
    });
    let said = quoter.order(&mut world, "o", Side::Ask, high, 1_000, |e| {
        e.char(59, b'3');
        e.char(2964, b'2');
    });
    let about = said.iter().find(|s| s.starts_with("35=AI")).unwrap();
    assert_eq!(
        *about,
        format!("35=AI|117=q2|55=AAPL|133={offer}|135=100|297=0|58=self-trade prevention")
    );
    assert!(said.iter().all(|s| !s.starts_with("35=8|11=1|")), "{said:?}");
    world.finish();
}

/// A user of OUCH, message by message.
struct User {
    id: u16,
    name: &'static [u8],
    /// The next message expected.
    next: u64,
    stream: Vec<u8>,
    /// Match numbers of executions, and of those that were broken.
    matches: [Vec<u64>; 2],
    /// Times of cancellations.
    cancelled_at: Vec<u64>,
}

impl User {
    fn new(id: u16, name: &'static [u8]) -> User {
        User {
            id: FIX_CONNECTIONS + id,
            name,
            next: 1,
            stream: Vec::new(),
            matches: Default::default(),
            cancelled_at: Vec::new(),
        }
    }

    fn log_in(&mut self, world: &mut World) -> Vec<String> {
        world.connect(self.id);
        self.stream.clear();
        let login = LoginRequest::new(self.name, b"secret", b"", self.next).unwrap();
        world.input(&Input::Bytes(self.id, login.as_bytes()));
        self.heard(world)
    }

    fn send(&mut self, world: &mut World, layout: &[u8], options: Option<&Appendage>) -> Vec<String> {
        let (mut message, mut packet) = ([0; 256], [0; 300]);
        let length = encode(layout, options, &mut message).unwrap();
        let length = Packet::Unsequenced(&message[..length])
            .encode(&mut packet)
            .unwrap();
        world.input(&Input::Bytes(self.id, &packet[..length]));
        self.heard(world)
    }

    /// Name and some fields of every message.
    fn heard(&mut self, world: &mut World) -> Vec<String> {
        self.stream.extend(world.drain(self.id));
        let mut said = Vec::new();
        while let Some((packet, length)) = split(&self.stream).unwrap() {
            match packet {
                Packet::Sequenced(message) => {
                    self.next += 1;
                    let (message, options) = parse_outbound(message).unwrap();
                    match &message {
                        Outbound::OrderExecuted(m) => self.matches[0].push(m.match_number.get()),
                        Outbound::BrokenTrade(m) => self.matches[1].push(m.match_number.get()),
                        Outbound::OrderCanceled(m) => self.cancelled_at.push(m.timestamp.get()),
                        _ => {}
                    }
                    let mut line = message.name().to_string();
                    let mut add = |name: &'static str, value: tickwire_wire::layout::FieldValue<'_>| {
                        let wanted = [
                            "OrderReferenceNumber",
                            "UserRefNum",
                            "OrigUserRefNum",
                            "Quantity",
                            "Reason",
                            "EventCode",
                            "NextUserRefNum",
                            "DecrementShares",
                            "DisplayQuantity",
                            "Side",
                            "LiquidityFlag",
                            "MaxFloor",
                        ];
                        // Of most messages they would only be in the way.
                        let is_number = matches!(name, "Price" | "OrderReferenceNumber");
                        if (wanted.contains(&name) || name == "Price")
                            && (!is_number || message.name() == "OrderPriorityUpdate")
                        {
                            line += &format!(" {name}={value}");
                        }
                    };
                    message.visit(&mut add);
                    options.visit(&mut add);
                    said.push(line);
                }
                Packet::LoginAccepted(a) => said.push(format!("in at {}", a.sequence.get().unwrap())),
                Packet::LoginRejected(r) => said.push(format!("refused {}", r.reason.0 as char)),
                Packet::EndOfSession => said.push("end".to_string()),
                Packet::ServerHeartbeat => {}
                other => panic!("{other:?}"),
            }
            self.stream.drain(..length);
        }
        said
    }
}

fn enter(number: u32, side: u8, price: Price, quantity: u32) -> EnterOrder {
    EnterOrder {
        user_ref_num: number.into(),
        side: Char(side),
        quantity: quantity.into(),
        symbol: Alpha::new(b"AAPL").unwrap(),
        price: price_field(price).unwrap(),
        time_in_force: Char(b'0'),
        display: Char(b'Y'),
        capacity: Char(b'P'),
        iso_eligible: Char(b'N'),
        cross_type: Char(b'N'),
        cl_ord_id: Alpha::new(b"mine").unwrap(),
        ..EnterOrder::NEW
    }
}

#[test]
fn a_day_of_an_ouch_user_goes_by_the_rules_of_the_specification() {
    let none = Some(&Appendage::EMPTY);
    let mut world = World::new();
    let mut alice = User::new(0, b"alice");
    assert_eq!(alice.log_in(&mut world), ["in at 1", "SystemEvent EventCode=S"]);
    let far = world.far(Side::Bid);

    let say = |world: &mut World, alice: &mut User, m: EnterOrder| alice.send(world, m.as_bytes(), none);
    assert_eq!(
        say(&mut world, &mut alice, enter(5, b'B', far, 300)),
        ["OrderAccepted UserRefNum=5 Side=B Quantity=300"]
    );
    // A number that is not above the last is ignored.
    assert!(say(&mut world, &mut alice, enter(5, b'B', far, 300)).is_empty());
    assert!(say(&mut world, &mut alice, enter(4, b'B', far, 300)).is_empty());
    // A rejected order's number is used up.
    assert_eq!(
        say(&mut world, &mut alice, enter(6, b'B', far, 1_000_000)),
        ["OrderRejected UserRefNum=6 Reason=19"]
    );
    let other = EnterOrder {
        symbol: Alpha::new(b"NOSUCH").unwrap(),
        ..enter(7, b'B', far, 1)
    };
    assert_eq!(
        say(&mut world, &mut alice, other),
        ["OrderRejected UserRefNum=7 Reason=23"]
    );
    let bad_side = enter(8, b'X', far, 1);
    assert_eq!(
        say(&mut world, &mut alice, bad_side),
        ["OrderRejected UserRefNum=8 Reason=9"]
    );
    assert_eq!(
        alice.send(&mut world, AccountQuery::NEW.as_bytes(), None),
        ["AccountQueryResponse NextUserRefNum=9"]
    );

    // A cancel says how much is to remain; what is superfluous is ignored.
    let cancel = |number: u32, quantity: u32| CancelOrder {
        user_ref_num: number.into(),
        quantity: quantity.into(),
        ..CancelOrder::NEW
    };
    assert_eq!(
        alice.send(&mut world, cancel(5, 200).as_bytes(), None),
        ["OrderCanceled UserRefNum=5 Quantity=100 Reason=U"]
    );
    assert!(alice.send(&mut world, cancel(5, 200).as_bytes(), None).is_empty());
    assert!(alice.send(&mut world, cancel(99, 0).as_bytes(), None).is_empty());

    // A replacement takes another number; invalid details cancel the old order and use up none.
    let replace = |orig: u32, number: u32, quantity: u32, price: Price| ReplaceOrder {
        orig_user_ref_num: orig.into(),
        user_ref_num: number.into(),
        quantity: quantity.into(),
        price: price_field(price).unwrap(),
        time_in_force: Char(b'0'),
        display: Char(b'Y'),
        iso_eligible: Char(b'N'),
        ..ReplaceOrder::NEW
    };
    let lower = Price::from_raw(far.raw() - 10_000_000);
    assert_eq!(
        alice.send(&mut world, replace(5, 9, 250, lower).as_bytes(), none),
        ["OrderReplaced OrigUserRefNum=5 UserRefNum=9 Side=B Quantity=250"]
    );
    assert!(
        alice.send(&mut world, cancel(5, 0).as_bytes(), None).is_empty(),
        "5 is no more"
    );
    assert!(
        alice
            .send(&mut world, replace(9, 9, 250, far).as_bytes(), none)
            .is_empty()
    );
    assert_eq!(
        alice.send(&mut world, replace(9, 10, 0, far).as_bytes(), none),
        ["OrderCanceled UserRefNum=9 Quantity=250 Reason=U"]
    );

    // Takes: executed, the rest of an order that does not rest is cancelled.
    let (ask, shown) = world.best(Side::Ask);
    let taking = EnterOrder {
        time_in_force: Char(b'3'),
        ..enter(10, b'B', ask, shown)
    };
    let said = say(&mut world, &mut alice, taking);
    assert_eq!(
        said[0],
        format!("OrderAccepted UserRefNum=10 Side=B Quantity={shown}")
    );
    assert!(
        said[1..]
            .iter()
            .all(|s| s.starts_with("OrderExecuted UserRefNum=10") && s.ends_with("LiquidityFlag=R"))
    );

    // More shares cost the place: the order has another number in the book.
    let more = ModifyOrder {
        user_ref_num: 11.into(),
        side: Char(b'S'),
        quantity: 130.into(),
        ..ModifyOrder::NEW
    };
    let numbers = |world: &World| {
        let last = world.market.exchange(0).ledger().last().copied();
        last.map(|order| (order.venue_id, order.order_id)).unwrap()
    };
    // Selling, then selling short, with less; an iceberg; a sweep.
    let high = world.far(Side::Ask);
    say(&mut world, &mut alice, enter(11, b'S', high, 100));
    assert_eq!(
        alice.send(&mut world, more.as_bytes(), None),
        [
            "OrderModified UserRefNum=11 Side=S Quantity=130".to_string(),
            format!(
                "OrderPriorityUpdate UserRefNum=11 Price={high}00 OrderReferenceNumber={}",
                numbers(&world).1.0
            )
        ]
    );
    let (first, now) = numbers(&world);
    assert!(
        now > first
            && world
                .market
                .exchange(0)
                .engine()
                .order(now)
                .is_some_and(|o| o.qty.0 == 130)
    );
    assert!(world.market.exchange(0).engine().order(first).is_none());
    let modify = ModifyOrder {
        user_ref_num: 11.into(),
        side: Char(b'T'),
        quantity: 60.into(),
        ..ModifyOrder::NEW
    };
    assert_eq!(
        alice.send(&mut world, modify.as_bytes(), None),
        ["OrderModified UserRefNum=11 Side=T Quantity=60"]
    );
    let floor = Appendage::EMPTY.with_u32(OptionTag::MaxFloor, 10);
    assert_eq!(
        alice.send(&mut world, enter(12, b'B', far, 50).as_bytes(), Some(&floor)),
        ["OrderAccepted UserRefNum=12 Side=B Quantity=50 MaxFloor=10"]
    );
    // Beyond its reserve, what is shown is cut too.
    assert_eq!(
        alice.send(&mut world, cancel(12, 5).as_bytes(), None),
        ["OrderCanceled UserRefNum=12 Quantity=45 Reason=U"]
    );
    let sweep = MassCancel {
        user_ref_num: 13.into(),
        firm: Alpha::new(b"FIRM").unwrap(),
        ..MassCancel::NEW
    };
    assert_eq!(
        alice.send(&mut world, sweep.as_bytes(), none),
        [
            "MassCancelResponse UserRefNum=13",
            "OrderCanceled UserRefNum=11 Quantity=60 Reason=U",
            "OrderCanceled UserRefNum=12 Quantity=5 Reason=U"
        ]
    );

    // Order entry switched off and on.
    let off = DisableOrderEntry {
        user_ref_num: 14.into(),
        firm: Alpha::new(b"FIRM").unwrap(),
        ..DisableOrderEntry::NEW
    };
    let on = EnableOrderEntry {
        user_ref_num: 16.into(),
        firm: Alpha::new(b"FIRM").unwrap(),
        ..EnableOrderEntry::NEW
    };
    assert_eq!(
        alice.send(&mut world, off.as_bytes(), none),
        ["DisableOrderEntryResponse UserRefNum=14"]
    );
    assert_eq!(
        say(&mut world, &mut alice, enter(15, b'B', far, 1)),
        ["OrderRejected UserRefNum=15 Reason=32"]
    );
    assert_eq!(
        alice.send(&mut world, on.as_bytes(), none),
        ["EnableOrderEntryResponse UserRefNum=16"]
    );

    // Meets its own: nothing trades, both lose the same.
    say(&mut world, &mut alice, enter(17, b'B', far, 40));
    // Nobody else is between: the sale reaches down to it only through the book, so it is offered where it
    // stands alone.
    let (bid, _) = world.best(Side::Bid);
    let above = Price::from_raw(bid.raw() + 10_000_000);
    if above < world.best(Side::Ask).0 {
        say(&mut world, &mut alice, enter(18, b'B', above, 40));
        let said = say(&mut world, &mut alice, enter(19, b'S', above, 10));
        let prevented: Vec<_> = said.iter().filter(|s| s.starts_with("AIQCanceled")).collect();
        assert_eq!(prevented.len(), 2, "{said:?}");
        assert!(
            prevented
                .iter()
                .all(|s| s.contains("DecrementShares=10 Reason=Q"))
        );
    }

    // The connection is lost; what happens meanwhile comes with the next login.
    let seen = alice.next;
    world.input(&Input::Disconnect(alice.id));
    let mut bob = User::new(1, b"bob");
    bob.log_in(&mut world);
    world.input(&Input::Disconnect(bob.id));
    alice.next = seen - 2;
    let again = alice.log_in(&mut world);
    assert_eq!(again.len(), 3);
    assert_eq!(again[0], format!("in at {}", seen - 2));

    // The day ends.
    world.input(&Input::Stop);
    while world.market.phase() != DayPhase::Over {
        world.pass(Nanos::SECOND);
    }
    let said = alice.heard(&mut world);
    assert_eq!(said.last().unwrap(), "end");
    assert_eq!(said[said.len() - 2], "SystemEvent EventCode=E");
    assert!(said.iter().any(|s| s.starts_with("OrderCanceled UserRefNum=17")));
    world.finish();
}

#[test]
fn before_an_auction_its_orders_stay_and_cancels_of_others_wait_for_its_end() {
    let none = Some(&Appendage::EMPTY);
    let mut world = World::of(auction_market);
    while world.now < Nanos(OPENING.0 - 20 * Nanos::SECOND) {
        world.pass(Nanos::SECOND);
    }
    let mut alice = User::new(0, b"alice");
    alice.log_in(&mut world);
    let mut fix = FixClient::new(0, Version::Fix44);
    fix.log_on(&mut world);
    let far = world.far(Side::Bid);
    let at_the_opening = |number: u32| EnterOrder {
        cross_type: Char(b'O'),
        ..enter(number, b'B', far, 300)
    };
    for order in [
        enter(1, b'B', far, 300),
        at_the_opening(2),
        enter(3, b'B', far, 40),
    ] {
        alice.send(&mut world, order.as_bytes(), none);
    }
    fix.order(&mut world, "day", Side::Bid, far, 100, |_| {});
    fix.order(&mut world, "loo", Side::Bid, far, 100, |e| e.char(59, b'2'));
    let cancel = |number: u32, quantity: u32| CancelOrder {
        user_ref_num: number.into(),
        quantity: quantity.into(),
        ..CancelOrder::NEW
    };
    // Before the period everything can be cancelled.
    assert_eq!(
        alice.send(&mut world, cancel(2, 200).as_bytes(), None),
        ["OrderCanceled UserRefNum=2 Quantity=100 Reason=U"]
    );
    while world.now < Nanos(OPENING.0 - 9 * Nanos::SECOND) {
        world.pass(Nanos::SECOND);
    }
    // In it, what is for the auction stays as it is.
    let stays = ["CancelReject UserRefNum=2"];
    assert_eq!(alice.send(&mut world, cancel(2, 0).as_bytes(), None), stays);
    assert_eq!(alice.send(&mut world, cancel(2, 100).as_bytes(), None), stays);
    assert!(alice.send(&mut world, cancel(2, 200).as_bytes(), None).is_empty());
    let modify = ModifyOrder {
        user_ref_num: 2.into(),
        side: Char(b'B'),
        quantity: 100.into(),
        ..ModifyOrder::NEW
    };
    assert_eq!(alice.send(&mut world, modify.as_bytes(), None), stays);
    let replace = ReplaceOrder {
        orig_user_ref_num: 2.into(),
        user_ref_num: 4.into(),
        quantity: 250.into(),
        price: price_field(far).unwrap(),
        time_in_force: Char(b'0'),
        display: Char(b'Y'),
        iso_eligible: Char(b'N'),
        ..ReplaceOrder::NEW
    };
    assert_eq!(
        alice.send(&mut world, replace.as_bytes(), none),
        ["OrderRejected UserRefNum=4 Reason=21"]
    );
    // Of what else is in it, a cancel waits.
    for _ in 0..2 {
        let said = alice.send(&mut world, cancel(1, 0).as_bytes(), None);
        assert_eq!(said, ["CancelPending UserRefNum=1"]);
    }
    assert_eq!(
        alice.send(&mut world, cancel(1, 10).as_bytes(), None),
        ["CancelReject UserRefNum=1"]
    );
    let sweep = MassCancel {
        user_ref_num: 5.into(),
        firm: Alpha::new(b"FIRM").unwrap(),
        ..MassCancel::NEW
    };
    assert_eq!(
        alice.send(&mut world, sweep.as_bytes(), none),
        [
            "MassCancelResponse UserRefNum=5",
            "CancelPending UserRefNum=1",
            "CancelPending UserRefNum=3"
        ]
    );
    let states = |said: &[String]| -> Vec<String> { said.iter().map(|s| pick(s, &STATE)).collect() };
    let said = fix.cancel(&mut world, "x", "day");
    assert_eq!(
        states(&said),
        ["35=8 11=x 41=day 150=6 39=6 38=100 14=0 151=100"],
        "{said:?}"
    );
    let said = fix.cancel(&mut world, "y", "loo");
    assert_eq!(
        pick(&said[0], &[35, 11, 41, 39, 102, 58]),
        "35=9 11=y 41=loo 39=0 102=0 58=its auction is about to take place"
    );
    // The auction takes place; nothing of these trades.
    let is_trading = |world: &World| {
        world.market.exchange(0).engine().trading_status(AAPL) == Some(TradingStatus::Trading)
    };
    for _ in 0..14 {
        assert!(world.market.exchange(0).ledger().iter().all(|o| o.filled.0 == 0));
        world.pass(Nanos::SECOND);
    }
    assert!(is_trading(&world));
    for _ in 0..10 {
        world.pass(Nanos::SECOND);
    }
    // So long without a heartbeat she is hung up on: it is kept for her.
    let next = alice.next;
    world.input(&Input::Disconnect(alice.id));
    assert_eq!(
        alice.log_in(&mut world),
        [
            &format!("in at {next}"),
            "OrderCanceled UserRefNum=2 Quantity=200 Reason=E",
            "OrderCanceled UserRefNum=1 Quantity=300 Reason=U",
            "OrderCanceled UserRefNum=3 Quantity=40 Reason=U"
        ]
    );
    // When it happened, though she had not said a word since.
    let opened = OPENING.0 % Nanos::DAY;
    let cancelled_at = &alice.cancelled_at[1..];
    assert!(cancelled_at.len() == 3 && cancelled_at.iter().all(|at| *at >= opened));
    fix.exchange(&mut world);
    assert_eq!(
        states(&std::mem::take(&mut fix.said)),
        [
            "35=8 11=loo 150=4 39=4 38=100 14=0 151=0",
            "35=8 11=x 41=day 150=4 39=4 38=100 14=0 151=0"
        ]
    );
    world.finish();
}

#[test]
fn a_cancel_that_waited_for_the_auction_in_which_its_order_trades_came_too_late() {
    let mut world = World::of(auction_market);
    while world.now < Nanos(OPENING.0 - 20 * Nanos::SECOND) {
        world.pass(Nanos::SECOND);
    }
    let mut fix = FixClient::new(0, Version::Fix44);
    fix.log_on(&mut world);
    let (ask, _) = world.best(Side::Ask);
    let said = fix.order(&mut world, "day", Side::Bid, ask, 10, |_| {});
    assert_eq!(pick(&said[0], &[39]), "39=0", "{said:?}");
    while world.now < Nanos(OPENING.0 - 9 * Nanos::SECOND) {
        world.pass(Nanos::SECOND);
    }
    let said = fix.cancel(&mut world, "x", "day");
    assert_eq!(pick(&said[0], &[35, 11, 41, 150]), "35=8 11=x 41=day 150=6");
    let said = fix.cancel(&mut world, "y", "day");
    assert_eq!(pick(&said[0], &[35, 11, 41, 102]), "35=9 11=y 41=day 102=3");
    for _ in 0..20 {
        world.pass(Nanos::SECOND);
    }
    fix.exchange(&mut world);
    let said = std::mem::take(&mut fix.said);
    let said: Vec<String> = said
        .iter()
        .map(|said| pick(said, &[35, 11, 41, 150, 39, 102]))
        .collect();
    assert_eq!(said, ["35=8 11=day 150=F 39=2", "35=9 11=x 41=day 39=2 102=0"]);
    world.finish();
}

#[test]
fn a_logon_that_asks_whether_the_venue_cancels_is_told_and_others_are_not() {
    for version in Version::ALL {
        for (name, cancels) in [(client_of(version), false), (quoter_of(version), true)] {
            for tag in [9001, 0] {
                let mut world = World::new();
                let mut fix = FixClient::named(0, version, name);
                fix.session.set_cancels_tag(tag);
                fix.log_on(&mut world);
                let expected = (tag > 0).then_some(cancels);
                assert_eq!(fix.session.peer_cancels(), expected, "{version:?} {name}");
            }
        }
    }
}

#[test]
fn logins_need_the_password_the_session_and_a_place() {
    let mut world = World::new();
    let mut alice = User::new(0, b"ALICE");
    assert_eq!(alice.log_in(&mut world)[0], "in at 1");
    let mut twin = User::new(1, b"alice");
    assert_eq!(twin.log_in(&mut world), ["refused S"], "one connection at a time");
    world.input(&Input::Disconnect(twin.id));
    for (name, password, session, reason) in [
        (&b"alice"[..], &b"wrong"[..], &b""[..], 'A'),
        (b"carol", b"secret", b"", 'A'),
        (b"bob", b"secret", b"YESTERDAY", 'S'),
    ] {
        world.connect(twin.id);
        twin.stream.clear();
        let login = LoginRequest::new(name, password, session, 1).unwrap();
        world.input(&Input::Bytes(twin.id, login.as_bytes()));
        assert_eq!(twin.heard(&mut world), [format!("refused {reason}")]);
        assert!(world.market.exchange(0).wants_close(twin.id.into()));
        world.input(&Input::Disconnect(twin.id));
    }
    world.finish();
}

#[test]
fn a_market_goes_on_from_its_journal_wherever_it_was_cut() {
    let mut world = World::new();
    let mut rng = testdata::Rng::new(11);
    let mut fix = FixClient::new(0, Version::Fix44);
    let mut alice = User::new(0, b"alice");
    fix.log_on(&mut world);
    alice.log_in(&mut world);
    let far = [world.far(Side::Bid), world.far(Side::Ask)];
    for number in 1..150_u32 {
        let side = if rng.below(2) == 0 { Side::Bid } else { Side::Ask };
        let (best, _) = world.best(!side);
        let price = if rng.below(3) == 0 {
            best
        } else {
            far[side as usize]
        };
        let qty = 1 + rng.below(50) as u32;
        match rng.below(4) {
            0 => drop(fix.order(&mut world, &number.to_string(), side, price, qty, |_| {})),
            1 => drop(fix.cancel(&mut world, &format!("c{number}"), &(number / 2).to_string())),
            2 => {
                let side = if side == Side::Bid { b'B' } else { b'S' };
                alice.send(
                    &mut world,
                    enter(number, side, price, qty).as_bytes(),
                    Some(&Appendage::EMPTY),
                );
            }
            _ => world.pass(Nanos::SECOND),
        }
    }
    assert!(
        world
            .market
            .exchange(0)
            .ledger()
            .iter()
            .any(|o| o.outcome == Outcome::Open)
    );
    let hash = world.market.state_hash();
    let file = world.finish();

    // A process that died in the middle of a record: what is whole is done again, then the rest of the day
    // happens.
    let inputs: Vec<_> = JournalReader::new(&file).unwrap().collect();
    let mut out = vec![0; 1 << 16];
    for cut in [file.len() / 3, file.len() / 2 + 5, file.len() - 1] {
        let mut reader = JournalReader::new(&file[..cut]).unwrap();
        let mut again = market();
        let done = reader
            .by_ref()
            .map(|(now, input)| input.apply(now, &mut again, &mut out))
            .count();
        assert!(done < inputs.len() && reader.torn() > 0);
        for (now, input) in &inputs[done..] {
            input.apply(*now, &mut again, &mut out);
        }
        assert_eq!(again.state_hash(), hash);
    }

    // A new process: connections are gone, orders and numbers are not.
    let mut again = market();
    for (now, input) in inputs {
        input.apply(now, &mut again, &mut out);
    }
    let open = |market: &Market| {
        let ledger = market.exchange(0).ledger();
        ledger.iter().filter(|o| o.outcome == Outcome::Open).count()
    };
    let before = open(&again);
    Input::Resume.apply(START.after(Nanos::SECOND * 3_600), &mut again, &mut out);
    assert_eq!(open(&again), before);
    assert_eq!(
        Input::Connect(0).apply(START, &mut again, &mut out),
        Applied::Admitted(true)
    );
    let login = LoginRequest::new(b"alice", b"secret", b"", alice.next).unwrap();
    Input::Connect(FIX_CONNECTIONS).apply(START, &mut again, &mut out);
    Input::Bytes(FIX_CONNECTIONS, login.as_bytes()).apply(START, &mut again, &mut out);
    let Applied::Sent(n) = Input::Transmit(FIX_CONNECTIONS, 4096).apply(START, &mut again, &mut out) else {
        panic!()
    };
    let Ok(Some((Packet::LoginAccepted(accepted), _))) = split(&out[..n]) else {
        panic!()
    };
    assert_eq!(accepted.sequence.get(), Some(alice.next));
    assert!(fix.session.store().next_in() > 1);
}

/// A price as FIX has it.
fn number(said: &str, tag: u32) -> Price {
    let text = pick(said, &[tag]);
    let value = text.split_once('=').map(|(_, value)| value).unwrap_or_default();
    Price::parse(value.as_bytes()).unwrap_or_else(|_| panic!("{tag} in {said}"))
}

/// What a break says of an order.
const BREAK: [u32; 12] = [35, 11, 20, 150, 39, 38, 32, 31, 151, 14, 6, 58];

#[test]
fn a_broken_trade_is_told_to_both_sides_in_every_version_and_returns_nothing() {
    let none = Some(&Appendage::EMPTY);
    let mut world = World::new();
    let mut alice = User::new(0, b"alice");
    alice.log_in(&mut world);
    for (id, version) in (0..).zip(Version::ALL) {
        let mut fix = FixClient::new(id, version);
        fix.log_on(&mut world);
        let is_old = version <= Version::Fix42;
        let line = |exec: &str, status: &str, rest: &str, leaves: u32, last: &str| {
            let mut line = "35=8 11=".to_string();
            line += rest.split_once(' ').unwrap().0;
            line += match (is_old, version >= Version::Fix41) {
                (true, false) => format!(" 20=1 39={status}"),
                (true, true) => format!(" 20=1 150={status} 39={status}"),
                (false, _) => format!(" 150={exec} 39={status}"),
            }
            .as_str();
            line += &format!(" {}", rest.split_once(' ').unwrap().1);
            if version >= Version::Fix41 {
                line += &format!(" 151={leaves}");
            }
            format!("{line} {last}")
        };

        // Alice offers 37 last in the best level; all of that is bought, and 500 more are bid for.
        let (ask, shown) = world.best(Side::Ask);
        let first = u32::from(id) * 10 + 1;
        alice.send(&mut world, enter(first, b'S', ask, 37).as_bytes(), none);
        let want = shown + 37 + 500;
        let said = fix.order(&mut world, "a", Side::Bid, ask, want, |_| {});
        let fills: Vec<_> = said
            .iter()
            .filter(|s| !pick(s, &[31]).is_empty() && !s.contains("|32=0|"))
            .collect();
        let told = fix.whole.iter().find(|s| s.contains("|32=37|")).cloned().unwrap();
        let last = fills.last().unwrap();
        let (cum, leaves) = (
            number(last, 14),
            want - (number(last, 14).raw() / Price::ONE_RAW) as u32,
        );
        assert!(leaves > 0 && leaves <= 500, "{last}");
        let average = |left_out: u32| {
            let of = |s: &&&String| (number(s, 32).raw() / Price::ONE_RAW) as u32 != left_out;
            let (mut qty, mut cost) = (0, 0);
            for fill in fills.iter().filter(of) {
                qty += i128::from(number(fill, 32).raw() / Price::ONE_RAW);
                cost +=
                    i128::from(number(fill, 32).raw() / Price::ONE_RAW) * i128::from(number(fill, 31).raw());
            }
            (cost.checked_div(qty).unwrap_or(0), qty)
        };
        assert_eq!(
            alice.heard(&mut world),
            [format!(
                "OrderExecuted UserRefNum={first} Quantity=37 LiquidityFlag=A"
            )]
        );
        let match_number = *alice.matches[0].last().unwrap();

        let exchange = world.market.exchange(0);
        let (books, resting) = (exchange.books_digest(), exchange.engine().live_orders());
        fix.whole.clear();
        assert_eq!(world.break_trade(match_number, BreakReason::Erroneous), Ok(()));
        fix.exchange(&mut world);
        let said = fix.whole.pop().unwrap();
        assert!(fix.whole.is_empty());
        let (average, left) = average(37);
        assert_eq!(left, i128::from(cum.raw() / Price::ONE_RAW) - 37);
        let status = if left == 0 { "0" } else { "1" };
        let average = Price::from_raw(average as i64);
        let expected = line(
            "H",
            status,
            &format!("a 38={want} 32=37 31={ask}"),
            leaves,
            &format!("14={left} 6={average} 58=clearly erroneous"),
        );
        assert_eq!(pick(&said, &BREAK), expected, "{version:?}");
        // The product's own reading: 4.0 has no ExecType and cannot be.
        let read = |at: usize| fix.reports[at].map(|report| (report.exec_type, report.last_qty.0));
        let (last, filled) = (fix.reports.len() - 1, fix.reports.len() - 2);
        if version >= Version::Fix41 {
            assert_eq!(
                read(last),
                Some((ExecType::TradeCancel, 37)),
                "{version:?} {said}"
            );
            assert_eq!(read(filled).unwrap().0, ExecType::Trade, "{version:?}");
        } else {
            assert_eq!(read(last), None);
        }
        assert_eq!(
            pick(&said, &[19]).replace("19=", "17="),
            pick(&told, &[17]),
            "{said} breaks {told}"
        );
        assert_ne!(pick(&said, &[17]), pick(&told, &[17]));
        assert_eq!(
            alice.heard(&mut world),
            [format!("BrokenTrade UserRefNum={first} Reason=E")]
        );
        assert_eq!(alice.matches[1].last(), Some(&match_number));
        let exchange = world.market.exchange(0);
        assert_eq!(
            (exchange.books_digest(), exchange.engine().live_orders()),
            (books, resting)
        );
        let hers = exchange.ledger().iter().rfind(|o| o.qty.0 == 37).unwrap();
        assert_eq!(
            (hers.outcome, hers.filled.0, hers.broken.0, hers.cost),
            (Outcome::Cancelled, 0, 37, 0)
        );

        // Once is enough, and what never was cannot be.
        for (number, refused) in [
            (match_number, Reject::BrokenTrade),
            (0, Reject::UnknownTrade),
            (1 << 40, Reject::UnknownTrade),
        ] {
            assert_eq!(world.break_trade(number, BreakReason::Consent), Err(refused));
        }
        assert!(fix.said.len() == 1 && alice.heard(&mut world).is_empty());
        fix.said.clear();

        // Its OrderQty counts what was executed, broken or not.
        let said = fix.replace(&mut world, ("b", "a"), ask, want - leaves + 7, |_| {});
        let mut expected = format!("38={} 14={left}", want - leaves + 7);
        if version >= Version::Fix41 {
            expected += " 151=7";
        }
        assert_eq!(pick(&said[0], &[38, 14, 151]), expected, "{version:?}");
        let said = fix.cancel(&mut world, "c", "b");
        assert_eq!(pick(&said[0], &[39, 14]), format!("39=4 14={left}"));

        // An order that was filled, while its client is gone: told when it is back.
        let (bid, shown) = world.best(Side::Bid);
        fix.order(&mut world, "d", Side::Bid, bid, 41, |_| {});
        fix.whole.clear();
        alice.send(
            &mut world,
            enter(first + 1, b'S', bid, shown + 41).as_bytes(),
            none,
        );
        fix.exchange(&mut world);
        assert!(fix.whole.iter().any(|s| s.contains("|39=2|")), "{:?}", fix.whole);
        let engine = world.market.exchange(0).engine();
        let (made, until) = (alice.matches[0].clone(), engine.last_match_number());
        fix.log_off_without_a_word(&mut world);
        fix.whole.clear();
        let broken = made.iter().rev().take_while(|n| **n + 50 > until);
        for number in broken {
            let _ = world.break_trade(*number, BreakReason::Supervisory);
        }
        fix.said.clear();
        fix.log_on(&mut world);
        let said = fix.whole.iter().find(|s| s.contains("|11=d|")).unwrap();
        let expected = line(
            "H",
            "4",
            &format!("d 38=41 32=41 31={bid}"),
            0,
            "14=0 6=0.00 58=broken by a supervisor",
        );
        assert_eq!(pick(said, &BREAK), expected, "{version:?}");
        fix.log_off_without_a_word(&mut world);
        alice.heard(&mut world);
    }
    assert_eq!(world.market.exchange(0).reports_lost(), 0);
    let last = *alice.matches[1].last().unwrap();
    let (kept, hash) = (alice.matches.concat(), world.market.state_hash());
    let file = world.finish();

    // A new process knows what is broken.
    let mut again = market();
    let mut out = vec![0; 1 << 16];
    let mut breaks = 0;
    for (now, input) in JournalReader::new(&file).unwrap() {
        breaks += u32::from(matches!(input, Input::Break(..)));
        input.apply(now, &mut again, &mut out);
    }
    assert!(breaks >= 5 * Version::ALL.len() as u32);
    let at = START.after(Nanos::SECOND * 3_600);
    Input::Resume.apply(at, &mut again, &mut out);
    let mut ask =
        |venue, number| Input::Break(venue, number, BreakReason::Consent).apply(at, &mut again, &mut out);
    assert_eq!(ask(0, last), Applied::Answered(Err(Reject::BrokenTrade)));
    assert_eq!(ask(1, last), Applied::Answered(Err(Reject::UnknownTrade)));
    let stands = (1..*kept.iter().max().unwrap())
        .find(|n| !alice.matches[1].contains(n))
        .unwrap();
    assert_eq!(ask(0, stands), Applied::Answered(Ok(())));
    assert_ne!(again.state_hash(), hash);
}

#[test]
fn an_operator_halts_and_what_is_collected_then_trades_in_the_auction_that_resumes() {
    use TradingAction::{Call, Halt, Resume};
    let mut world = World::new();
    let mut fix = FixClient::new(0, Version::Fix44);
    fix.log_on(&mut world);
    let (far, (ask, shown)) = (world.far(Side::Bid), world.best(Side::Ask));
    fix.order(&mut world, "a", Side::Bid, far, 10, |_| {});
    // What trades is neither called nor resumed.
    for action in [Call, Resume] {
        assert_eq!(world.act(AAPL, action), Err(Reject::NotTrading));
    }

    assert_eq!(world.act(AAPL, Halt), Ok(()));
    assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Halted));
    assert_eq!(
        world.trading_status(InstrumentId(2)),
        Some(TradingStatus::Trading)
    );
    assert_eq!(world.act(AAPL, Halt), Err(Reject::NotTrading), "once is enough");
    let said = fix.order(&mut world, "b", Side::Bid, ask, shown, |_| {});
    assert_eq!(pick(&said[0], &[39]), "39=8", "{said:?}");
    let said = fix.cancel(&mut world, "c", "a");
    assert_eq!(pick(&said[0], &[39]), "39=4", "{said:?}");

    assert_eq!(world.act(AAPL, Call), Ok(()));
    assert_eq!(world.act(AAPL, Call), Err(Reject::NotTrading));
    let said = fix.order(&mut world, "d", Side::Bid, ask, shown, |_| {});
    assert_eq!(
        (pick(&said[0], &[39]), said.len()),
        ("39=0".into(), 1),
        "{said:?}"
    );
    assert_eq!(world.best(Side::Bid).0, ask, "shown, and the book is crossed");
    fix.whole.clear();
    assert_eq!(world.act(AAPL, Resume), Ok(()));
    fix.exchange(&mut world);
    let fill = fix.whole.iter().find(|said| said.contains("|11=d|"));
    assert_eq!(
        pick(fill.expect("a report"), &[39, 31, 14]),
        format!("39=2 31={ask} 14={shown}")
    );
    assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Trading));

    // Without a call phase.
    assert_eq!((world.act(AAPL, Halt), world.act(AAPL, Resume)), (Ok(()), Ok(())));
    assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Trading));
    // Nobody, nowhere, too late.
    let nobody = Err(Reject::UnknownInstrument);
    assert_eq!(world.act(InstrumentId(99), Halt), nobody);
    assert_eq!(world.ask(&Input::Action(1, AAPL, Halt)), nobody);
    world.input(&Input::Stop);
    assert_eq!(world.act(AAPL, Halt), Err(Reject::NotTrading));
    world.finish();
}

#[test]
fn who_is_halted_before_the_opening_auction_has_none_until_resumed_and_the_flow_ends_no_operators_halt() {
    use TradingAction::{Call, Halt, Resume};
    let mut world = World::of(auction_market);
    for action in [Call, Resume] {
        assert_eq!(world.act(AAPL, action), Err(Reject::NotTrading), "it is called");
    }
    assert_eq!(world.act(AAPL, Halt), Ok(()));
    let mut rounds = 0;
    while world.act(AAPL, Resume).is_err() {
        assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Halted));
        world.pass(Nanos::SECOND);
        rounds += 1;
        assert!(rounds < 100_000, "the opening never ends");
    }
    assert!(world.now >= OPENING);
    for instrument in 1..=5 {
        assert_eq!(
            world.trading_status(InstrumentId(instrument)),
            Some(TradingStatus::Trading)
        );
    }
    world.finish();

    let mut world = World::of(halting_market);
    assert_eq!(world.act(AAPL, Halt), Ok(()));
    let before = world.market.exchange(0).engine().last_match_number();
    for _ in 0..2_000 {
        world.pass(5 * Nanos::MILLI);
        assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Halted));
    }
    let engine = world.market.exchange(0).engine();
    assert!(engine.last_match_number() > before + 100, "the others trade");
    assert_eq!(world.act(AAPL, Resume), Ok(()));
    world.finish();
}

/// When [`closing_market`] begins to collect for its close; the auction is a minute later.
const CALL: Nanos = Nanos(START.0 + 3_600 * Nanos::SECOND);

fn closing_market() -> Market {
    let call = CALL.0 % Nanos::DAY;
    market_with(AuctionTimes {
        closing: Some((call, call + 60 * Nanos::SECOND)),
        ..AuctionTimes::default()
    })
}

/// Halted before the call phase, and in it.
#[test]
fn who_is_halted_when_the_day_ends_has_no_closing_auction() {
    use TradingAction::{Call, Halt, Resume};
    for in_call in [false, true] {
        let mut world = World::of(closing_market);
        let mut fix = FixClient::new(0, Version::Fix44);
        fix.log_on(&mut world);
        let ((bid, _), (ask, _)) = (world.best(Side::Bid), world.best(Side::Ask));
        // They would trade with each other.
        for (id, side, price) in [("b", Side::Bid, ask), ("s", Side::Ask, bid)] {
            let said = fix.order(&mut world, id, side, price, 10, |e| e.char(59, b'7'));
            assert_eq!(pick(&said[0], &[39]), "39=0", "{said:?}");
        }
        let run_until = |world: &mut World, until: Nanos| {
            while world.now < until {
                world.pass(Nanos::SECOND);
            }
        };
        if in_call {
            run_until(&mut world, CALL.after(30 * Nanos::SECOND));
            assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Auction));
        }
        assert_eq!(world.act(AAPL, Halt), Ok(()));
        run_until(&mut world, CALL.after(45 * Nanos::SECOND));
        assert_eq!(world.trading_status(AAPL), Some(TradingStatus::Halted));
        assert_eq!(
            world.trading_status(InstrumentId(2)),
            Some(TradingStatus::Auction)
        );
        for action in [Call, Resume] {
            assert_eq!(world.act(AAPL, action), Err(Reject::NotTrading), "too late");
        }
        run_until(&mut world, CALL.after(600 * Nanos::SECOND));
        for instrument in 1..=5 {
            assert_eq!(
                world.trading_status(InstrumentId(instrument)),
                Some(TradingStatus::Closed)
            );
        }
        let ledger = world.market.exchange(0).ledger().iter();
        let came_to: Vec<_> = ledger.map(|o| (o.side, o.filled.0, o.outcome)).collect();
        let cancelled = Side::BOTH.map(|side| (side, 0, Outcome::Cancelled));
        assert_eq!(came_to, cancelled);
        world.finish();
    }
}

#[test]
fn a_broken_trade_of_a_quote_is_told_and_an_auction_is_not_broken() {
    let mut world = World::new();
    let mut quoter = FixClient::named(0, Version::Fix44, quoter_of(Version::Fix44));
    quoter.log_on(&mut world);
    let mut fix = FixClient::new(1, Version::Fix44);
    fix.log_on(&mut world);
    let (bid, _) = world.best(Side::Bid);
    let offer = world.far(Side::Ask);
    let entries = [("s", "1", "AAPL", (bid, 90), (offer, 90))];
    quoter.send(&mut world, b"i", |e| mass_quote(e, "q", b'0', false, &entries));
    let (_, shown) = world.best(Side::Bid);
    let hit = |world: &mut World, fix: &mut FixClient, id: &str, qty: u32| {
        fix.order(world, id, Side::Ask, bid, qty, |e| e.char(59, b'3'));
        world.market.exchange(0).engine().last_match_number()
    };
    // Everybody before it, then 30 and 25 of it.
    hit(&mut world, &mut fix, "a", shown - 90);
    let first = hit(&mut world, &mut fix, "b", 30);
    let second = hit(&mut world, &mut fix, "c", 25);
    quoter.exchange(&mut world);
    let quote = |world: &World| world.market.exchange(0).quotes().next().unwrap();
    let before = quote(&world);
    assert_eq!((before.traded, before.open[0].0), ([55, 0], 35));
    quoter.whole.clear();
    assert_eq!(world.break_trade(first, BreakReason::Consent), Ok(()));
    quoter.exchange(&mut world);
    let told = quoter.whole.pop().unwrap();
    assert_eq!(
        pick(&told, &BREAK),
        format!("35=8 11=1 150=H 39=1 38=90 32=30 31={bid} 151=35 14=25 6={bid} 58=broken by consent")
    );
    let after = quote(&world);
    assert_eq!((after.traded, after.open[0].0), ([25, 0], 35));
    assert_eq!(after.cost[0], bid.notional(25));

    // Another quote has taken its place since: what was broken is all there is to say.
    quoter.send(&mut world, b"i", |e| {
        mass_quote(
            e,
            "r",
            b'0',
            false,
            &[("s", "9", "AAPL", (world_low(bid), 10), (offer, 90))],
        );
    });
    assert_eq!(world.break_trade(second, BreakReason::Consent), Ok(()));
    quoter.exchange(&mut world);
    let told = quoter.whole.pop().unwrap();
    assert_eq!(
        pick(&told, &[11, 150, 39, 38, 32, 151, 14]),
        "11=9 150=H 39=4 38=25 32=25 151=0 14=0"
    );
    assert_eq!((quote(&world).traded, quote(&world).open[0].0), ([0, 0], 10));
    world.finish();

    let mut world = World::of(auction_market);
    while world.now < OPENING.after(5 * Nanos::SECOND) {
        world.pass(Nanos::SECOND);
    }
    for number in 1..=5 {
        assert_eq!(
            world.break_trade(number, BreakReason::Consent),
            Err(Reject::AuctionTrade)
        );
    }
    world.finish();
}

/// A price where nobody trades.
fn world_low(price: Price) -> Price {
    Price::from_raw(price.raw() - 30 * 10_000_000)
}

type MakeMarket = fn() -> Market;

/// A market maker's session of its own kind.
fn heartbeat_market(disconnect: bool, missed: bool) -> Market {
    market_but(|config| {
        config.order_entry.sessions = vec![FixPort {
            comp_id: comp("MAKER"),
            version: Version::Fix44,
            firm: Firm(7),
            reset_on_logon: true,
            cancel_on_disconnect: disconnect,
            cancel_on_missed_heartbeats: missed,
            heartbeat_s_max: Some(5),
            cancels_firm: false,
            self_trade: SelfTrade::Allow,
        }];
    })
}

/// Its client, which says nothing more once it is not moved any more.
struct Maker(Session<MemoryStore>);

impl Maker {
    fn asking_for(heartbeat_s: u32) -> Maker {
        let config = SessionConfig {
            reset_on_logon: true,
            heartbeat_s,
            ..SessionConfig::new(Role::Initiator, comp("MAKER"), comp("EXCHANGE"))
        };
        Maker(Session::with_store(config, MemoryStore::new(64, 1 << 16)))
    }

    /// Moves bytes both ways; what the exchange said, without its bytes between fields.
    fn turn(&mut self, world: &mut World) -> String {
        let mut buffer = [0; 4096];
        let mut said = String::new();
        loop {
            let mut moved = false;
            while let Some(bytes) = self.0.poll_transmit(&mut buffer) {
                world.input(&Input::Bytes(0, bytes));
                moved = true;
            }
            let bytes = world.drain(0);
            said += &bytes.escape_ascii().to_string().replace("\\x01", "|");
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let taken = self.0.handle_bytes(world.now, rest);
                rest = &rest[taken..];
                while self.0.poll_event().is_some() {}
                moved = true;
            }
            if !moved {
                return said;
            }
        }
    }

    /// Logs on and leaves a quote and an order in the book.
    fn quote(&mut self, world: &mut World) {
        world.connect(0);
        self.0.handle_connected(world.now);
        self.turn(world);
        assert_eq!(self.0.status(), Status::Active);
        let (bid, offer) = (world.far(Side::Bid), world.far(Side::Ask));
        let entries = [("s", "1", "AAPL", (bid, 100), (offer, 100))];
        let sent = self.0.send(world.now, b"i", Again::Resend, |e, _| {
            mass_quote(e, "q1", b'0', false, &entries)
        });
        sent.unwrap();
        let sent = self.0.send(world.now, b"D", Again::Resend, |e, _| {
            e.text(11, b"o1");
            limit_order(e, Side::Bid, bid, 10);
        });
        sent.unwrap();
        self.turn(world);
    }
}

/// Open orders and quoted sides of it.
fn live(world: &World) -> (u32, u32) {
    let clients = world.market.exchange(0).clients();
    (clients[0].orders, clients[0].quoted_sides)
}

fn notices(world: &mut World) -> Vec<ClientEvent> {
    let exchange = world.market.exchange_mut(0);
    std::iter::from_fn(|| exchange.poll_client_notice())
        .map(|notice| notice.event)
        .collect()
}

#[test]
fn what_a_client_leaves_is_cancelled_when_its_heartbeats_stop_if_its_session_says_so() {
    let kinds: [(MakeMarket, bool, bool); 4] = [
        (|| heartbeat_market(false, false), false, false),
        (|| heartbeat_market(false, true), false, true),
        (|| heartbeat_market(true, false), true, false),
        (|| heartbeat_market(true, true), true, true),
    ];
    for (make, disconnect, missed) in kinds {
        let mut world = World::of(make);
        let mut maker = Maker::asking_for(5);
        maker.quote(&mut world);
        assert_eq!(live(&world), (1, 2));
        assert_eq!(notices(&mut world), [ClientEvent::LoggedOn { heartbeat_s: 5 }]);
        // While it answers, it may say nothing of its own for as long as it likes.
        for _ in 0..100 {
            world.pass(Nanos::SECOND);
            maker.0.handle_timeout(world.now);
            maker.turn(&mut world);
        }
        assert_eq!(live(&world), (1, 2), "{disconnect} {missed}");
        // It is stopped: asked after 1.2 intervals, given up after 2.4, and not a step before.
        let begun = world.now;
        let mut asked = None;
        while world.now.since(begun) < 12 * Nanos::SECOND - 20 * Nanos::MILLI {
            assert_eq!(live(&world), (1, 2), "after {} ns", world.now.since(begun));
            world.pass(10 * Nanos::MILLI);
            let bytes = world.drain(0);
            if bytes.escape_ascii().to_string().contains("35=1") {
                asked.get_or_insert(world.now.since(begun));
            }
        }
        let asked = asked.unwrap();
        assert!((5 * Nanos::SECOND..=6 * Nanos::SECOND + 10 * Nanos::MILLI).contains(&asked));
        for _ in 0..3 {
            world.pass(10 * Nanos::MILLI);
        }
        let goes = disconnect || missed;
        assert_eq!(live(&world), if goes { (0, 0) } else { (1, 2) });
        assert!(world.market.exchange(0).wants_close(0));
        let said = notices(&mut world);
        assert!(
            matches!(
                said[0],
                ClientEvent::Ended {
                    reason: DisconnectReason::HeartbeatTimeout,
                    ..
                }
            ),
            "{said:?}"
        );
        match said[1] {
            ClientEvent::Cancelled {
                orders: 1,
                quotes: 1,
                silent_ns: Some(silent),
            } if goes => assert!(
                (12 * Nanos::SECOND..13 * Nanos::SECOND).contains(&silent),
                "{silent}"
            ),
            ClientEvent::Left { orders: 1, quotes: 1 } if !goes => {}
            _ => panic!("{said:?}"),
        }
        // The connection goes after it; what has gone does not go twice.
        world.input(&Input::Disconnect(0));
        let said = notices(&mut world);
        assert_eq!(said[0], ClientEvent::Disconnected);
        assert_eq!(said.len(), if goes { 1 } else { 2 }, "{said:?}");
        world.finish();
    }
}

#[test]
fn a_connection_that_is_lost_takes_what_is_open_with_it_only_if_its_session_says_so() {
    let kinds: [(MakeMarket, bool); 2] = [
        (|| heartbeat_market(false, true), false),
        (|| heartbeat_market(true, false), true),
    ];
    for (make, goes) in kinds {
        let mut world = World::of(make);
        Maker::asking_for(1).quote(&mut world);
        world.input(&Input::Disconnect(0));
        assert_eq!(live(&world), if goes { (0, 0) } else { (1, 2) });
        let said = notices(&mut world);
        let left = ClientEvent::Left { orders: 1, quotes: 1 };
        let gone = ClientEvent::Cancelled {
            orders: 1,
            quotes: 1,
            silent_ns: None,
        };
        assert_eq!(
            said[1..],
            [ClientEvent::Disconnected, if goes { gone } else { left }]
        );
    }
}

#[test]
fn a_session_with_short_heartbeats_takes_no_longer_ones_and_none_without() {
    for (asked, is_taken) in [(1, true), (5, true), (6, false), (30, false), (0, false)] {
        let mut world = World::of(|| heartbeat_market(true, true));
        let mut maker = Maker::asking_for(asked);
        world.connect(0);
        maker.0.handle_connected(world.now);
        let said = maker.turn(&mut world);
        assert_eq!(maker.0.status() == Status::Active, is_taken, "{asked}: {said}");
        assert!(
            is_taken || said.contains("58=HeartBtInt is not within the limits of this session"),
            "{said}"
        );
    }
}
