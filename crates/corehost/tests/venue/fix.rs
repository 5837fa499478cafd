//! The order log of the Moscow Exchange in, FIX 4.4 out: both ends have a session, the venue's over the
//! kernel's TCP. Numbers belong to who sends: what the venue says is read by the session while the core is
//! disarmed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwire_corehost::{CoreHost, Next, NotArmed, Turn};
use tickwire_cosim::{Cosim, Day, Packet};
use tickwire_fix::{Again, CompId, Event, MemoryStore, Role, Session, SessionConfig, Status, tag};
use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
use tickwire_rtl::frame::OrderText;
use tickwire_rtl::{Moex, Target, Venue as Kind};
use tickwire_runtime::clock::wall;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_wire_moex::fast::Limits;
use tickwire_wire_moex::moex::{Action, Encoder, OrderEntry, OrderKind};

use crate::PATIENCE;
use crate::card::{Card, LIMITS, connected, cosim, hosts, turn};
use crate::harness::Skip;
use crate::network::Line;

const SYMBOL: &[u8] = b"USD000UTSTOM";
/// The first of the ladder's steps, in 1e-4.
const BASE: u32 = 561_000 - 2_048 * 25;
/// Packets before the first order.
const QUIET: usize = 2;
const PAUSE: Duration = Duration::from_micros(100);

fn moex() -> Moex {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/moex-templates.xml");
    let text = std::fs::read_to_string(file).expect("the example is there");
    Moex::new(&text, "X-OLR-DEMO").expect("the template file is right")
}

/// A day in which every packet from the third on moves the best offer by two ticks, and back.
fn day(moex: &Moex) -> Day {
    let encoder = Encoder::new(Arc::clone(&moex.templates), Limits::default());
    let mut encoder = encoder.expect("the templates will do");
    let template = encoder.template(&moex.template).expect("the template is there");
    let entry = |rpt_seq: u32, action, id: u64, side, units: u32| OrderEntry {
        action,
        kind: OrderKind::Order(side),
        order_id: OrderId(172_500_000 + id),
        symbol: SYMBOL,
        board: b"CETS",
        rpt_seq,
        price: Some(Price::from_4dp(units)),
        qty: Some(Volume(200)),
        date: Some(20_170_502),
        time: Some(Nanos(36_000 * Nanos::SECOND)),
        order_status: b"",
        session: b"",
    };
    let mut entries = vec![
        entry(1, Action::New, 1, Side::Bid, 560_800),
        entry(2, Action::New, 2, Side::Ask, 561_000),
    ];
    for id in 3..400 {
        let number = entries.len() as u32;
        entries.push(entry(number + 1, Action::New, id, Side::Ask, 560_950));
        entries.push(entry(number + 2, Action::Delete, id, Side::Ask, 560_950));
    }
    let mut day = Day::default();
    let mut buffer = vec![0; 2_000];
    for (seq, entry) in (1_000..).zip(entries) {
        let sent = Nanos(1_493_719_200 * Nanos::SECOND);
        let length = encoder.order_log(template, seq as u32, sent, &[entry], &mut buffer);
        day.packets.push(Packet {
            seq,
            messages: 1,
            bytes: buffer[..length.expect("it fits")].to_vec(),
        });
    }
    day
}

/// What the venue's application has seen: a message's number, its ClOrdID, whether it was sent before.
type Seen = (u64, String, bool);

struct Venue {
    seen: Receiver<Seen>,
    session: Arc<Mutex<Session<MemoryStore>>>,
    /// So many messages are lost before the session has them.
    loses: Arc<AtomicU32>,
    /// Gaps that the session has seen.
    gaps: Arc<AtomicU32>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn session(role: Role, own: &[u8], peer: &[u8]) -> Session<MemoryStore> {
    let id = |text: &[u8]| CompId::new(text).expect("1 to 31 characters");
    Session::new(SessionConfig::new(role, id(own), id(peer)))
}

impl Venue {
    fn start(line: &Line, moex: &Moex) -> Venue {
        let mut listener = line.far(|| TcpListener::bind(line.peer()).expect("bound"));
        let (told, seen) = channel();
        let acceptor = session(Role::Acceptor, moex.target.as_bytes(), moex.sender.as_bytes());
        let venue = Arc::new(Mutex::new(acceptor));
        let (loses, gaps) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let ends = Arc::new(AtomicBool::new(false));
        let own = (Arc::clone(&venue), Arc::clone(&ends));
        let counts = (Arc::clone(&loses), Arc::clone(&gaps));
        let thread = std::thread::spawn(move || {
            while !own.1.load(Ordering::SeqCst) {
                match listener.accept().expect("it accepts") {
                    Some(stream) => serve(stream, &own.0, (&counts.0, &counts.1), &own.1, &told),
                    None => std::thread::sleep(PAUSE),
                }
            }
        });
        Venue {
            seen,
            session: venue,
            loses,
            gaps,
            ends,
            thread: Some(thread),
        }
    }

    /// The next message that the application sees; meanwhile the trader goes on.
    #[track_caller]
    fn next(&self, trader: &mut Trader) -> Seen {
        let mut seen = None;
        trader.until("the venue reads a message", |_| {
            seen = self.seen.try_recv().ok();
            seen.is_some()
        });
        seen.expect("it was there")
    }

    /// Everything that was sent has been read, or asked for again.
    #[track_caller]
    fn until_caught_up(&self, trader: &mut Trader) {
        trader.until("the venue has everything", |_| {
            self.session.lock().expect("it goes on").is_caught_up()
        });
    }
}

impl Drop for Venue {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection, until it ends.
fn serve(
    mut stream: TcpStream,
    session: &Mutex<Session<MemoryStore>>,
    (loses, gaps): (&AtomicU32, &AtomicU32),
    ends: &AtomicBool,
    told: &Sender<Seen>,
) {
    let mut buffer = [0; 4096];
    session.lock().expect("it goes on").handle_connected(wall());
    while !ends.load(Ordering::SeqCst) {
        let read = stream.recv(&mut buffer);
        let mut session = session.lock().expect("it goes on");
        let mut is_idle = false;
        match read {
            Ok(Received::Bytes(_)) if loses.load(Ordering::SeqCst) > 0 => {
                loses.fetch_sub(1, Ordering::SeqCst);
            }
            Ok(Received::Bytes(bytes)) => {
                assert_eq!(session.handle_bytes(wall(), bytes), bytes.len());
            }
            Ok(Received::Nothing) => is_idle = true,
            Ok(Received::Closed) | Err(_) => {
                session.handle_disconnected(wall());
                while session.poll_event().is_some() {}
                return;
            }
        }
        while let Some(event) = session.poll_event() {
            gaps.fetch_add(matches!(event, Event::Gap { .. }).into(), Ordering::SeqCst);
            if let Event::Message { seq, poss_dup, .. } = event {
                let message = session.message().expect("the event is about it");
                let order = message.find(tag::CL_ORD_ID).expect("an order");
                let order = message.value(order);
                let order = String::from_utf8_lossy(order).into_owned();
                // Who is late does not mind.
                let _ = told.send((seq.0, order, poss_dup));
            }
        }
        let mut out = [0; 4096];
        while let Some(bytes) = session.poll_transmit(&mut out) {
            if stream.send(bytes).is_err() {
                return;
            }
        }
        drop(session);
        if is_idle {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Software: the session, and the core by its host's part.
struct Trader {
    stream: TcpStream,
    host: CoreHost<Card>,
    session: Session<MemoryStore>,
    user_ref: u32,
    /// What becomes of an order that the venue asks for again.
    again: Again,
    /// It is to be armed whenever it can be.
    trades: bool,
    gaps: u32,
    buffer: Vec<u8>,
}

impl Trader {
    fn new(line: &Line, cosim: &Cosim, moex: &Moex) -> Trader {
        let (stream, delegate) = connected(line.peer());
        let mut card = Card::new(cosim, line, &day(moex), BASE);
        card.market(QUIET);
        let symbol = cosim.program().instruments[0].symbol;
        let text = OrderText::Fix(moex.text(&symbol).expect("a symbol"));
        let mut trader = Trader {
            stream,
            host: CoreHost::new(card, delegate, text, LIMITS).expect("the core takes it"),
            session: session(Role::Initiator, moex.sender.as_bytes(), moex.target.as_bytes()),
            user_ref: 1,
            again: Again::GapFill,
            trades: false,
            gaps: 0,
            buffer: vec![0; 1 << 16],
        };
        trader.session.handle_connected(wall());
        trader.log_on();
        trader
    }

    fn log_on(&mut self) {
        self.until("the logon", |trader| trader.session.status() == Status::Active);
    }

    fn disarm(&mut self) {
        if self.host.is_armed() {
            let (session, again) = (&mut self.session, self.again);
            let next = self
                .host
                .disarm(&mut self.stream, |order| keep(session, order, again));
            let next = next.unwrap_or_else(|why| panic!("{why}"));
            self.user_ref = next.user_ref;
            assert_eq!(u64::from(next.message), session.next_to_send(wall()).0.0);
        }
    }

    fn arm(&mut self) {
        let next = Next {
            user_ref: self.user_ref,
            message: self.session.next_to_send(wall()).0.0 as u32,
        };
        match self.host.arm(&mut self.stream, next, wall()) {
            Ok(()) | Err(NotArmed::Connection(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }

    fn turn(&mut self) {
        let (session, again) = (&mut self.session, self.again);
        let turn = self
            .host
            .turn(&mut self.stream, wall(), |order| keep(session, order, again));
        match turn.unwrap_or_else(|why| panic!("{why}")) {
            Turn::Disarmed { next, .. } => self.user_ref = next.user_ref,
            Turn::Armed | Turn::Idle => {}
        }
        let length = match self.stream.recv(&mut self.buffer) {
            Ok(Received::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        if length > 0 {
            self.disarm();
            let taken = self.session.handle_bytes(wall(), &self.buffer[..length]);
            assert_eq!(taken, length);
        }
        while let Some(event) = self.session.poll_event() {
            self.gaps += u32::from(matches!(event, Event::Gap { .. }));
        }
        let (mut bytes, mut out) = (Vec::new(), [0; 4096]);
        while let Some(part) = self.session.poll_transmit(&mut out) {
            bytes.extend_from_slice(part);
        }
        if !bytes.is_empty() {
            self.host.send(&mut self.stream, &bytes).expect("sent");
        }
        if self.trades && !self.host.is_armed() {
            self.arm();
        }
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut done: impl FnMut(&Trader) -> bool) {
        let began = Instant::now();
        while !done(self) {
            self.turn();
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.session.status());
        }
    }

    /// The core is armed, and the next packet of the feed causes an order.
    fn order(&mut self) {
        self.trades = true;
        self.until("it is armed", |trader| trader.host.is_armed());
        self.host.core_mut().market(1);
        self.turn();
    }
}

/// An order of the core is the session's message with this number.
fn keep(session: &mut Session<MemoryStore>, order: &[u8], again: Again) {
    let reserved = session.reserve(wall()).expect("the number is free");
    let number = format!("\u{1}34={:08}\u{1}", reserved.seq().0);
    let text = String::from_utf8_lossy(order);
    assert!(text.contains(&number), "{text} has no {number}");
    reserved.commit(order, again).expect("it is kept");
}

fn between(what: impl FnOnce(&mut Trader, &Venue, &Line) + Send) -> Result<(), Skip> {
    let _turn = turn();
    let moex = moex();
    let target = Target {
        venue: Kind::Moex(moex.clone()),
        tick: Price::from_4dp(25),
        ..Target::default()
    };
    let cosim = cosim("core_moex", &target);
    let line = hosts(false)?;
    let venue = Venue::start(&line, &moex);
    let (line, moex) = (&line, &moex);
    line.near(move || what(&mut Trader::new(line, &cosim, moex), &venue, line));
    Ok(())
}

fn entered(number: u64, order: u32, poss_dup: bool) -> Seen {
    (number, format!("TW{order:08}"), poss_dup)
}

/// The session's heartbeats and the core's orders share one row of numbers, without a hole.
pub(crate) fn orders() -> Result<(), Skip> {
    between(|trader, venue, _| {
        for order in 1..=30 {
            if order % 5 == 0 {
                // The venue asks whether somebody is there; the session answers, before the next order or
                // behind it.
                let mut session = venue.session.lock().expect("it goes on");
                let asked = session.send(wall(), b"1", Again::GapFill, |test, _| {
                    test.text(tag::TEST_REQ_ID, b"there?");
                });
                asked.expect("it is logged on");
            }
            trader.order();
            assert_eq!(venue.next(trader).1, entered(0, order, false).1);
        }
        // A Logon, thirty orders, six answers.
        trader.until("every answer", |trader| {
            trader.session.next_to_send(wall()).0.0 == 38
        });
        venue.until_caught_up(trader);
        assert_eq!((trader.gaps, venue.gaps.load(Ordering::SeqCst)), (0, 0));
        let counts = trader.host.delegate().counts();
        assert_eq!(counts.written_twice, 0, "{counts}");
    })
}

pub(crate) fn resend_request() -> Result<(), Skip> {
    between(|trader, venue, _| {
        trader.order();
        assert_eq!(venue.next(trader), entered(2, 1, false));
        // Whoever sends orders that live for a moment does not send them again: the gap fill is for the lost
        // one, and for the one that showed the gap, up to which the venue asks.
        venue.loses.store(1, Ordering::SeqCst);
        trader.order();
        trader.until("it is lost", |_| venue.loses.load(Ordering::SeqCst) == 0);
        trader.order();
        trader.until("the gap", |_| venue.gaps.load(Ordering::SeqCst) == 1);
        venue.until_caught_up(trader);
        trader.order();
        assert_eq!(venue.next(trader), entered(5, 4, false));
        // And whoever does sends the very message.
        trader.again = Again::Resend;
        venue.loses.store(1, Ordering::SeqCst);
        trader.order();
        trader.until("it is lost", |_| venue.loses.load(Ordering::SeqCst) == 0);
        trader.order();
        assert_eq!(venue.next(trader), entered(6, 5, true));
        let (number, order, _) = venue.next(trader);
        assert_eq!((number, order), (7, entered(7, 6, false).1));
        venue.until_caught_up(trader);
        trader.order();
        assert_eq!(venue.next(trader), entered(8, 7, false));
        assert_eq!(trader.gaps, 0);
    })
}

pub(crate) fn sequence_reset() -> Result<(), Skip> {
    between(|trader, venue, line| {
        trader.order();
        trader.order();
        assert_eq!((venue.next(trader).0, venue.next(trader).0), (2, 3));
        // The venue leaves numbers out: the session asks for them, under a number of its own, and is told to
        // go on behind them (SequenceReset).
        {
            let mut session = venue.session.lock().expect("it goes on");
            session.skip_numbers(5);
            session
                .send(wall(), b"8", Again::GapFill, |report, _| {
                    report.text(tag::CL_ORD_ID, b"TW00000001")
                })
                .expect("it is logged on");
        }
        trader.order();
        assert_eq!(venue.next(trader), entered(4, 3, false));
        trader.until("the gap", |trader| trader.gaps == 1);
        trader.until("the venue's numbers", |trader| trader.session.is_caught_up());
        trader.order();
        assert_eq!(venue.next(trader), entered(6, 4, false));
        // Both begin anew with the next connection.
        trader.trades = false;
        trader.disarm();
        trader.session.logout(wall(), "");
        trader.until("the logout", |trader| trader.session.status() == Status::Closing);
        trader.session.handle_disconnected(wall());
        trader.session.set_reset_on_logon(true);
        let (stream, delegate) = connected(line.peer());
        let renewed = trader.host.renew(delegate, |_| panic!("nothing left"));
        renewed.expect("it answers").heard.expect("it is known what left");
        trader.stream = stream;
        trader.session.handle_connected(wall());
        trader.log_on();
        trader.order();
        assert_eq!(venue.next(trader), entered(2, 5, false));
        venue.until_caught_up(trader);
        // Eight digits are all there are.
        trader.trades = false;
        trader.disarm();
        let last = Next {
            user_ref: 100_000_000,
            message: 3,
        };
        let refused = trader.host.arm(&mut trader.stream, last, wall());
        assert_eq!(refused, Err(NotArmed::Numbers));
    })
}
