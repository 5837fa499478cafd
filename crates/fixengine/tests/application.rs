//! Applications of the library's public face against each other over loopback: callbacks, typed messages,
//! refusals, TLS, restarts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tickwire_fix::typed::{Price, Qty};
use tickwire_fix::{CompId, DisconnectReason, Message, Role, SessionConfig, SessionId, tag};
use tickwire_fixengine::settings::{self, Setup, Wanted};
use tickwire_fixengine::{
    Application, Context, Error, Level, NotSent, Observer, Refusal, RejectLogon, Running, Silent, ToAdmin,
    start, store,
};
use tickwire_fixmsg::fix44::values::{ExecType, OrdStatus, OrdType, Side};
use tickwire_fixmsg::fix44::{ExecutionReport, NewOrderSingle, QuoteCancel, values::QuoteCancelType};

/// What has been called, in order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, call: impl Into<String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until one of them begins so.
    fn wait_for(&self, call: &str) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let all = self.all();
            if all.iter().any(|one| one.starts_with(call)) {
                return all;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "no {call} among {all:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Notes every callback; a venue fills orders.
#[derive(Default)]
struct Party {
    calls: Calls,
    fills: bool,
    refuses_logons: bool,
    refuses_resends: bool,
    executions: u64,
}

impl Party {
    fn venue() -> Party {
        Party {
            fills: true,
            ..Party::default()
        }
    }
}

fn kind(message: &Message<'_>) -> String {
    let text = message.find(tag::TEXT).map(|f| message.value(f));
    let text = text.map(|t| format!(" {}", String::from_utf8_lossy(t)));
    format!(
        "{}{}",
        String::from_utf8_lossy(message.msg_type()),
        text.unwrap_or_default()
    )
}

impl Application for Party {
    fn on_create(&mut self, ctx: &mut Context<'_>) {
        let config = ctx.config(ctx.session());
        self.calls
            .note(format!("create {} -> {}", config.sender, config.target));
    }

    fn on_logon(&mut self, ctx: &mut Context<'_>) {
        assert!(ctx.is_logged_on(ctx.session()));
        self.calls.note("logon");
    }

    fn on_logout(&mut self, ctx: &mut Context<'_>, why: Option<DisconnectReason>) {
        assert!(!ctx.is_logged_on(ctx.session()));
        self.calls.note(format!("logout {why:?}"));
    }

    fn to_admin(&mut self, _: &mut Context<'_>, message: &mut ToAdmin<'_>) {
        let kind = message.message().map_or("A".into(), kind);
        self.calls.note(format!("to_admin {kind}"));
        let is_logon = message.msg_type() == b"A";
        assert_eq!(message.put(553, b"somebody"), is_logon);
    }

    fn from_admin(&mut self, _: &mut Context<'_>, message: &Message<'_>) -> Result<(), RejectLogon> {
        let user = message
            .find(553)
            .map(|f| String::from_utf8_lossy(message.value(f)).into_owned());
        self.calls.note(format!(
            "from_admin {}{}",
            kind(message),
            user.map(|u| format!(" of {u}")).unwrap_or_default()
        ));
        match self.refuses_logons && message.msg_type() == b"A" {
            true => Err(RejectLogon("not today")),
            false => Ok(()),
        }
    }

    fn to_app(&mut self, _: &mut Context<'_>, message: &Message<'_>, is_again: bool) {
        self.calls.note(format!(
            "to_app {}{}",
            kind(message),
            if is_again { " again" } else { "" }
        ));
    }

    fn may_resend(&mut self, _: SessionId, message: &Message<'_>) -> bool {
        self.calls.note(format!("may_resend {}", kind(message)));
        !self.refuses_resends
    }

    fn from_app(&mut self, ctx: &mut Context<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.calls.note(format!("from_app {}", kind(message)));
        if !self.fills {
            return Ok(());
        }
        let order = NewOrderSingle::read(message).ok_or(Refusal::UnsupportedMessageType)?;
        let (id, side) = (order.cl_ord_id()?, order.side()?);
        let qty = order.order_qty_data().order_qty()?.unwrap_or_default();
        if qty > Qty(1_000) {
            return Err(Refusal::Business {
                reason: 0,
                text: "too much",
            });
        }
        self.executions += 1;
        let number = self.executions.to_string();
        ctx.send(ExecutionReport::MSG_TYPE, |encoder, stamp| {
            ExecutionReport::write(encoder, stamp, |report| {
                report.order_id(number.as_bytes()).cl_ord_id(id);
                report.exec_id(number.as_bytes());
                report.exec_type(ExecType::Trade).ord_status(OrdStatus::Filled);
                report.instrument().symbol(b"WIRE");
                report.side(side).leaves_qty(Qty(0)).cum_qty(qty);
                report.avg_px(Price::from_4dp(10_000));
            })
        })?;
        Ok(())
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>) {
        self.calls.note("timer");
        ctx.end();
    }
}

fn comp(text: &str) -> CompId {
    CompId::new(text.as_bytes()).expect("short")
}

fn silent() -> Arc<dyn Observer> {
    Arc::new(Silent)
}

fn acceptor() -> Setup {
    let config = SessionConfig::new(Role::Acceptor, comp("VENUE"), comp("TRADER"));
    Setup::listening(config, "127.0.0.1:0".parse().expect("an address"))
}

fn initiator(port: u16) -> Setup {
    let config = SessionConfig::new(Role::Initiator, comp("TRADER"), comp("VENUE"));
    Setup::connecting(config, "127.0.0.1", port)
}

fn buy(ctx: &mut Context<'_>, qty: u64) -> Result<(), NotSent> {
    let now = ctx.now();
    ctx.send(NewOrderSingle::MSG_TYPE, |encoder, stamp| {
        NewOrderSingle::write(encoder, stamp, |order| {
            order.cl_ord_id(b"1").instrument().symbol(b"WIRE");
            order.side(Side::Buy).transact_time(now);
            order.order_qty_data().order_qty(Qty(qty as u32));
            order.ord_type(OrdType::Market);
        })
    })
    .map(drop)
}

/// A venue and a trader that is logged on.
fn pair(
    venue: Party,
    accepts: Setup,
    connects: impl FnOnce(u16) -> Setup,
) -> (Running<Party>, Running<Party>, Calls, Calls) {
    let trader = Party::default();
    let (of_venue, of_trader) = (venue.calls.clone(), trader.calls.clone());
    let venue = start(vec![accepts], venue, silent()).expect("it listens");
    let port = venue.addresses()[0].port();
    let trader = start(vec![connects(port)], trader, silent()).expect("it begins");
    of_trader.wait_for("logon");
    of_venue.wait_for("logon");
    (venue, trader, of_venue, of_trader)
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tickwire-fixengine-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn an_order_and_its_report_pass_every_callback_in_quickfixs_order() {
    let (venue, trader, of_venue, of_trader) = pair(Party::venue(), acceptor(), initiator);
    trader
        .caller()
        .call(|_, ctx| buy(ctx, 100).expect("it is logged on"));
    of_trader.wait_for("from_app 8");
    let trader = trader.stop().expect("in good order");
    of_venue.wait_for("logout");
    let venue = venue.stop().expect("in good order");
    assert_eq!(venue.executions, 1);
    drop(trader);
    assert_eq!(
        of_trader.all(),
        [
            "create TRADER -> VENUE",
            "to_admin A",
            "logon",
            "from_admin A of somebody",
            "to_app D",
            "from_app 8",
            "to_admin 5 shutting down",
            "from_admin 5",
            "logout Some(LogoutComplete)",
        ]
    );
    assert_eq!(
        of_venue.all(),
        [
            "create VENUE -> TRADER",
            "from_admin A of somebody",
            "to_admin A",
            "logon",
            "from_app D",
            "to_app 8",
            "from_admin 5 shutting down",
            "to_admin 5",
            "logout Some(PeerLogout)",
        ]
    );
}

#[test]
fn an_application_refuses_a_logon() {
    let venue = Party {
        refuses_logons: true,
        ..Party::default()
    };
    let (of_venue, trader) = (venue.calls.clone(), Party::default());
    let of_trader = trader.calls.clone();
    let lines = Calls::default();
    let heard = lines.clone();
    let observer = move |level: Level, text: std::fmt::Arguments<'_>| heard.note(format!("{level:?} {text}"));
    let venue = start(vec![acceptor()], venue, silent()).expect("it listens");
    let port = venue.addresses()[0].port();
    let trader = start(vec![initiator(port)], trader, Arc::new(observer)).expect("it begins");
    of_venue.wait_for("from_admin A of somebody");
    lines.wait_for("Info FIX.4.4 TRADER -> VENUE with");
    assert!(
        lines.all().iter().any(|line| line.contains("not today")),
        "{:?}",
        lines.all()
    );
    drop((venue, trader));
    for calls in [of_venue, of_trader] {
        assert!(
            !calls.all().iter().any(|call| call == "logon"),
            "{:?}",
            calls.all()
        );
    }
}

#[test]
fn what_an_application_refuses_is_answered_by_the_right_reject() {
    let (venue, trader, of_venue, of_trader) = pair(Party::venue(), acceptor(), initiator);
    let caller = trader.caller();
    caller.call(|_, ctx| buy(ctx, 2_000).expect("it is logged on"));
    of_trader.wait_for("from_app j too much");
    caller.call(|_, ctx| {
        let sent = ctx.send(QuoteCancel::MSG_TYPE, |encoder, stamp| {
            QuoteCancel::write(encoder, stamp, |quote| {
                quote
                    .quote_id(b"1")
                    .quote_cancel_type(QuoteCancelType::CancelAllQuotes);
            })
        });
        sent.expect("it is logged on");
    });
    of_trader.wait_for("from_app j Unsupported");
    // No Side (54): the typed reader finds it missing.
    caller.call(|_, ctx| {
        let sent = ctx.send(NewOrderSingle::MSG_TYPE, |encoder, _| {
            encoder.text(11, b"1");
            Ok(())
        });
        sent.expect("it is logged on");
    });
    of_trader.wait_for("from_admin 3 ");
    // And one that is wrong does not leave.
    let calls = of_trader.clone();
    caller.call(move |_, ctx| {
        let sent = ctx.send(NewOrderSingle::MSG_TYPE, |encoder, stamp| {
            NewOrderSingle::write(encoder, stamp, |order| {
                order.cl_ord_id(b"1");
            })
        });
        calls.note(format!("not sent: {}", sent.expect_err("no Side")));
    });
    let all = of_trader.wait_for("not sent: ");
    assert!(
        all.last().is_some_and(|call| call.contains("is required")),
        "{all:?}"
    );
    trader.stop().expect("in good order");
    drop((venue, of_venue));
}

#[test]
fn numbers_last_over_a_restart_and_what_was_missed_is_sent_again_if_the_application_allows() {
    for refuses in [false, true] {
        let dir = folder(&format!("restart-{refuses}"));
        let venue = Party {
            refuses_resends: refuses,
            ..Party::venue()
        };
        let own = dir.clone();
        let connects = move |port| initiator(port).kept_in(&own);
        let (venue, trader, of_venue, of_trader) = pair(venue, acceptor().kept_in(&dir), connects);
        let port = venue.addresses()[0].port();
        trader
            .caller()
            .call(|_, ctx| buy(ctx, 100).expect("it is logged on"));
        of_trader.wait_for("from_app 8");
        trader.stop().expect("in good order");
        of_venue.wait_for("logout");
        // As if the trader had lost the report: Logon and report are asked for again.
        let setup = initiator(port).kept_in(&dir);
        store::set_numbers(&setup, None, Some(2), &silent()).expect("nobody uses it");
        let again = Party::default();
        let calls = again.calls.clone();
        let trader = start(vec![setup], again, silent()).expect("it begins");
        of_venue.wait_for("may_resend 8");
        if !refuses {
            calls.wait_for("from_app 8");
            of_venue.wait_for("to_app 8 again");
        }
        // The order of before has its number: the next one goes on.
        trader
            .caller()
            .call(|_, ctx| buy(ctx, 100).expect("it is logged on"));
        let reports = |calls: &Calls| calls.all().iter().filter(|c| c.starts_with("from_app 8")).count();
        let begin = Instant::now();
        while reports(&calls) < 2 - usize::from(refuses) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", calls.all());
            std::thread::sleep(Duration::from_millis(5));
        }
        trader.stop().expect("in good order");
        assert_eq!(reports(&calls), 2 - usize::from(refuses));
        assert_eq!(venue.stop().expect("in good order").executions, 2);
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}

/// A certificate of localhost and 127.0.0.1 that signs itself, in one file.
fn certificate(folder: &Path) -> PathBuf {
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_string(), "127.0.0.1".to_string()];
    let own = rcgen::CertificateParams::new(names)
        .and_then(|params| params.self_signed(&key))
        .expect("a certificate");
    let path = folder.join("own.pem");
    std::fs::write(&path, own.pem() + &key.serialize_pem()).expect("a file");
    path
}

#[test]
fn sessions_of_files_speak_over_tls() {
    let dir = folder("tls");
    certificate(&dir);
    let load = |name: &str, text: &str, role| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file");
        let mut setups = settings::load(&path, Wanted::Only(role), &Silent).expect("it is right");
        setups.remove(0)
    };
    let accepts = load(
        "venue.cfg",
        "[SESSION]\nConnectionType=acceptor\nBeginString=FIX.4.4\nSenderCompID=VENUE\nTargetCompID=TRADER\nSocketAcceptPort=0\n\
         SSLEnable=Y\nServerCertificateFile=own.pem\n",
        Role::Acceptor,
    );
    let connects = |port| {
        let text = format!(
            "[SESSION]\nConnectionType=initiator\nBeginString=FIX.4.4\nSenderCompID=TRADER\nTargetCompID=VENUE\nHeartBtInt=30\n\
             SocketConnectHost=localhost\nSocketConnectPort={port}\nSSLEnable=Y\nCertificationAuthoritiesFile=own.pem\n"
        );
        load("trader.cfg", &text, Role::Initiator)
    };
    let (venue, trader, _, of_trader) = pair(Party::venue(), accepts, connects);
    trader
        .caller()
        .call(|_, ctx| buy(ctx, 100).expect("it is logged on"));
    of_trader.wait_for("from_app 8");
    trader.stop().expect("in good order");
    venue.stop().expect("in good order");
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn a_timer_comes_once_and_an_application_ends_its_engine() {
    let venue = Party::default();
    let calls = venue.calls.clone();
    let venue = start(vec![acceptor()], venue, silent()).expect("it listens");
    venue
        .caller()
        .call(|_, ctx| ctx.set_timer(Duration::from_millis(20)));
    venue.wait().expect("in good order");
    assert_eq!(calls.all(), ["create VENUE -> TRADER", "timer"]);
}

#[test]
fn an_engine_without_its_store_has_not_said_that_it_listens() {
    let dir = folder("no-store");
    let setup = acceptor().kept_in(&dir);
    let file = setup.store.as_ref().expect("kept in a file").path.clone();
    std::fs::create_dir_all(file).expect("in the file's place");
    let calls = Calls::default();
    let heard = calls.clone();
    let observer = move |_: Level, text: std::fmt::Arguments<'_>| heard.note(text.to_string());
    let begun = start(vec![setup], Party::default(), Arc::new(observer));
    assert!(begun.is_err(), "a folder is no store");
    let said = calls.all();
    assert!(said.iter().all(|line| !line.starts_with("listening")), "{said:?}");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn what_cannot_begin_and_what_panics_is_an_error() {
    let first = start(vec![acceptor()], Party::default(), silent()).expect("it listens");
    let mut second = acceptor();
    second.transport = settings::TransportSetup::Listen(first.addresses()[0]);
    let taken = start(vec![second], Party::default(), silent());
    assert!(matches!(taken, Err(Error::System(_))), "the address is taken");
    first.caller().call(|_, _| panic!("on purpose"));
    let error = first.wait().map(drop).expect_err("it has panicked");
    assert!(error.to_string().contains("panicked"), "{error}");
}
