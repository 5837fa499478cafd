//! ITCH in, OUCH out: the venue is SoupBinTCP and OUCH over the kernel's TCP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwire_corehost::{CoreHost, Disarmed, HostError, Next as Numbers, NotArmed, Turn};
use tickwire_cosim::{Cosim, Day};
use tickwire_feed_nasdaq::{OuchClient, OuchConfig, OuchEvent};
use tickwire_kernelpath::delegate::Reason;
use tickwire_market::{Nanos, Price, Symbol};
use tickwire_rtl::Target;
use tickwire_rtl::frame::{OrderText, OuchText};
use tickwire_rtl::registers::{address, control};
use tickwire_rtl::setup::Limits;
use tickwire_runtime::clock::wall;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_wire_nasdaq::itch50::{AddOrder, OrderDelete, StockDirectory, SystemEvent, Trade};
use tickwire_wire_nasdaq::layout::{Alpha, Char, Pod, Scaled};
use tickwire_wire_nasdaq::ouch50::{
    self, AccountQueryResponse, Appendage, EnterOrder, Inbound, OrderAccepted, Outbound, Price4Wide,
};
use tickwire_wire_nasdaq::soupbintcp::{LoginAccepted, LoginRejected, Packet, RejectReason, split};

use crate::PATIENCE;
use crate::card::{Card, LIMITS, Next, connected, cosim, hosts, turn};
use crate::harness::Skip;
use crate::network::Line;

/// The client's time stands still: no heartbeat is due.
const NOW: Nanos = Nanos(1_000_000_000);
/// The first of the ladder's steps, in 1e-4.
const BASE: u32 = 500_000 - 2_048 * 100;

/// An order as the venue has read it: UserRefNum, quantity, price in 1e-4.
type Entered = (u32, u32, u64);

/// A day in which every message from the sixth on moves the best offer by a tick, and back.
fn day() -> Day {
    let stock = || Alpha::new(b"SYM1").expect("it fits");
    let mut messages = Vec::new();
    let named = StockDirectory {
        stock: stock(),
        round_lot_size: 100.into(),
        authenticity: Char(b'P'),
        ..StockDirectory::at(7, 1)
    };
    messages.push(named.as_bytes().to_vec());
    let opens = SystemEvent {
        event: Char(b'Q'),
        ..SystemEvent::at(0, 2)
    };
    messages.push(opens.as_bytes().to_vec());
    let add = |id: u64, side, price: u32| AddOrder {
        order_ref: id.into(),
        side: Char(side),
        shares: 500.into(),
        stock: stock(),
        price: Scaled(price.into()),
        ..AddOrder::at(7, 10 + id)
    };
    messages.push(add(1, b'B', 499_900).as_bytes().to_vec());
    messages.push(add(2, b'S', 500_500).as_bytes().to_vec());
    let trade = Trade {
        shares: 10.into(),
        stock: stock(),
        price: Scaled(500_000_u32.into()),
        ..Trade::at(7, 20)
    };
    messages.push(trade.as_bytes().to_vec());
    for id in 3..2_000_u64 {
        messages.push(add(id, b'S', 500_400).as_bytes().to_vec());
        let gone = OrderDelete {
            order_ref: id.into(),
            ..OrderDelete::at(7, 100 + id)
        };
        messages.push(gone.as_bytes().to_vec());
    }
    Day::of(&messages, || 1)
}

/// Messages before the first order.
const QUIET: usize = 5;

/// The venue's part.
struct Venue {
    read: Receiver<Entered>,
    resets: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Venue {
    fn start(line: &Line, is_rejecting: bool) -> Venue {
        let mut listener = line.far(|| TcpListener::bind(line.peer()).expect("bound"));
        let (told, read) = channel();
        let (resets, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (own_resets, own_ends) = (Arc::clone(&resets), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut next = 1;
            while !own_ends.load(Ordering::SeqCst) {
                match listener.accept().expect("it accepts") {
                    Some(stream) => serve(stream, &told, [&own_resets, &own_ends], is_rejecting, &mut next),
                    None => std::thread::sleep(PAUSE),
                }
            }
        });
        Venue {
            read,
            resets,
            ends,
            thread: Some(thread),
        }
    }

    fn next(&self) -> Entered {
        self.read
            .recv_timeout(PATIENCE)
            .expect("the venue reads an order")
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

const PAUSE: Duration = Duration::from_micros(100);

/// One connection, until it ends.
fn serve(
    mut stream: TcpStream,
    told: &Sender<Entered>,
    [resets, ends]: [&AtomicBool; 2],
    is_rejecting: bool,
    next: &mut u32,
) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    while !ends.load(Ordering::SeqCst) {
        if resets.swap(false, Ordering::SeqCst) {
            stream.set_reset_on_close(true).expect("an option");
            return;
        }
        match stream.recv(&mut buffer) {
            Ok(Received::Bytes(read)) => bytes.extend_from_slice(read),
            Ok(Received::Nothing) => std::thread::sleep(PAUSE),
            Ok(Received::Closed) | Err(_) => return,
        }
        let mut answer = [0; 256];
        while let Some((packet, taken)) = split(&bytes).expect("packets of SoupBinTCP") {
            let answers = match packet {
                Packet::LoginRequest(_) if is_rejecting => {
                    Packet::LoginRejected(&LoginRejected::new(RejectReason::NotAuthorized))
                        .encode(&mut answer)
                }
                Packet::LoginRequest(_) => {
                    let accepted = LoginAccepted::new(b"OUCH000001", 1).expect("a session");
                    Packet::LoginAccepted(&accepted).encode(&mut answer)
                }
                Packet::Unsequenced(request) => answered(request, &mut answer, told, next),
                _ => None,
            };
            if let Some(length) = answers
                && stream.send(&answer[..length]).is_err()
            {
                return;
            }
            bytes.drain(..taken);
        }
    }
}

fn answered(request: &[u8], answer: &mut [u8], told: &Sender<Entered>, next: &mut u32) -> Option<usize> {
    let mut message = [0; 200];
    let length = match ouch50::parse_inbound(request).expect("a request of OUCH").0 {
        Inbound::EnterOrder(order) => {
            // Who is late does not mind.
            let _ = told.send((
                order.user_ref_num.get(),
                order.quantity.get(),
                order.price.0.get(),
            ));
            *next = order.user_ref_num.get() + 1;
            let accepted = OrderAccepted {
                user_ref_num: order.user_ref_num,
                side: order.side,
                quantity: order.quantity,
                symbol: order.symbol,
                price: order.price,
                ..OrderAccepted::NEW
            };
            ouch50::encode(accepted.as_bytes(), Some(&Appendage::EMPTY), &mut message)
        }
        Inbound::AccountQuery(_) => {
            let response = AccountQueryResponse {
                next_user_ref_num: (*next).into(),
                ..AccountQueryResponse::NEW
            };
            ouch50::encode(response.as_bytes(), None, &mut message)
        }
        other => panic!("{}", other.name()),
    };
    Packet::Sequenced(&message[..length?]).encode(answer)
}

/// Software: the session, and the core by its host's part.
struct Trader {
    stream: TcpStream,
    host: CoreHost<Card>,
    client: OuchClient,
    accepted: Vec<u32>,
    is_refused: bool,
    last: Turn,
    buffer: Vec<u8>,
}

impl Trader {
    /// Connected and logged in; the feed has come as far as the first order.
    fn new(line: &Line, cosim: &Cosim, limits: Limits) -> Trader {
        let (stream, delegate) = connected(line.peer());
        let mut card = Card::new(cosim, line, &day(), BASE);
        card.market(QUIET);
        let text = OrderText::Ouch(OuchText {
            symbol: Symbol::new(b"SYM1").expect("a symbol"),
            capacity: b'O',
            client_order_id: *b"TICKWIRE      ",
        });
        let mut trader = Trader {
            stream,
            host: CoreHost::new(card, delegate, text, limits).expect("the core takes it"),
            client: OuchClient::new(OuchConfig::default()),
            accepted: Vec::new(),
            is_refused: false,
            last: Turn::Idle,
            buffer: vec![0; 1 << 16],
        };
        trader.client.handle_connected(NOW);
        trader
    }

    fn log_in(&mut self) {
        self.until("the login", |trader| trader.client.is_ready());
    }

    fn arm(&mut self) {
        let next = Numbers {
            user_ref: self.client.next_user_ref_num(),
            message: 0,
        };
        let began = Instant::now();
        loop {
            match self.host.arm(&mut self.stream, next, wall()) {
                Ok(()) => return,
                // What was sent before is on its way.
                Err(NotArmed::Connection(_)) if began.elapsed() < PATIENCE => self.turn(),
                Err(why) => panic!("{why}"),
            }
        }
    }

    /// What the client has to say is sent while the core is disarmed.
    fn say(&mut self) {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        while let Some(part) = self.client.poll_transmit(&mut buffer) {
            bytes.extend_from_slice(part);
        }
        if !bytes.is_empty() {
            assert!(!self.host.is_armed());
            self.host.send(&mut self.stream, &bytes).expect("sent");
        }
    }

    fn try_turn(&mut self) -> Result<(), HostError> {
        let client = &mut self.client;
        let turn = self.host.turn(&mut self.stream, wall(), |order| {
            assert!(client.took(order), "the next request");
        })?;
        if turn != Turn::Idle {
            self.last = turn;
        }
        while let Ok(Received::Bytes(bytes)) = self.stream.recv(&mut self.buffer) {
            self.client.handle_bytes(NOW, bytes);
        }
        while let Some(event) = self.client.poll_event(NOW) {
            self.is_refused |= matches!(event, OuchEvent::Failed(_));
            if let OuchEvent::Message { .. } = event {
                let message = ouch50::parse_outbound(self.client.message()).expect("a message of OUCH");
                if let Outbound::OrderAccepted(accepted) = message.0 {
                    self.accepted.push(accepted.user_ref_num.get());
                }
            }
        }
        self.say();
        Ok(())
    }

    fn turn(&mut self) {
        self.try_turn().unwrap_or_else(|why| panic!("{why}"));
    }

    #[track_caller]
    fn until(&mut self, what: &str, mut done: impl FnMut(&Trader) -> bool) {
        let began = Instant::now();
        while !done(self) {
            self.turn();
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.last);
        }
    }

    fn market(&mut self, count: usize) {
        self.host.core_mut().market(count);
    }

    fn disarm(&mut self) -> Numbers {
        let client = &mut self.client;
        let next = self
            .host
            .disarm(&mut self.stream, |order| assert!(client.took(order)));
        next.unwrap_or_else(|why| panic!("{why}"))
    }

    /// An order of software's own.
    fn enter(&mut self) -> u32 {
        let order = EnterOrder {
            side: Char(b'B'),
            quantity: 7.into(),
            symbol: Alpha(*b"SYM1    "),
            price: Price4Wide::from_price(Price::from_4dp(490_000)).expect("it fits"),
            time_in_force: Char(b'3'),
            ..EnterOrder::NEW
        };
        let number = self
            .client
            .enter(NOW, &order, &Appendage::EMPTY)
            .expect("entered");
        self.say();
        number
    }

    #[track_caller]
    fn disarmed(&mut self) -> Disarmed {
        self.until("the core to be disarmed", |trader| {
            matches!(trader.last, Turn::Disarmed { .. })
        });
        match self.last {
            Turn::Disarmed { why, .. } => why,
            _ => unreachable!(),
        }
    }
}

/// A test between two hosts.
fn between(
    has_stamps: bool,
    limits: Limits,
    is_rejecting: bool,
    what: impl FnOnce(&mut Trader, &Venue, &Line) + Send,
) -> Result<(), Skip> {
    let _turn = turn();
    let cosim = cosim("core_taker", &Target::default());
    let line = hosts(has_stamps)?;
    let venue = Venue::start(&line, is_rejecting);
    let (line, venue) = (&line, venue);
    line.near(move || what(&mut Trader::new(line, &cosim, limits), &venue, line));
    Ok(())
}

/// Price of the nth order of the day.
fn price(n: u32) -> u64 {
    if n.is_multiple_of(2) { 500_400 } else { 500_500 }
}

pub(crate) fn orders() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        let (mut number, mut of_core) = (0, 0);
        for round in 0..12 {
            trader.arm();
            for _ in 0..5 {
                trader.market(1);
                number += 1;
                assert_eq!(venue.next(), (number, 100, price(of_core)), "round {round}");
                of_core += 1;
                if round % 3 > 0 {
                    trader.turn();
                }
            }
            let next = trader.disarm();
            assert_eq!(next.user_ref, number + 1);
            number += 1;
            assert_eq!(trader.enter(), number);
            assert_eq!(venue.next(), (number, 7, 490_000));
            trader.until("every acceptance", |trader| {
                trader.accepted.len() == number as usize
            });
            // Nothing leaves while it is disarmed.
            trader.market(2);
            trader.turn();
        }
        assert_eq!(trader.accepted, (1..=number).collect::<Vec<_>>());
        assert_eq!(trader.client.unanswered(), 0);
        assert_eq!(trader.host.held().expect("it answers"), 100 * of_core as i32);
        assert!(venue.read.try_recv().is_err(), "every order once");
        let counts = trader.host.delegate().counts();
        assert_eq!(counts.written_twice, 0, "{counts}");
    })
}

pub(crate) fn lost_segment() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 1);
        trader.turn();
        trader.host.core_mut().next = Next::Lost;
        trader.market(1);
        // The next one is there before; TCP puts it behind.
        trader.market(1);
        trader.until("both", |trader| trader.accepted.len() == 3);
        assert_eq!((venue.next().0, venue.next().0), (2, 3));
        let counts = trader.host.delegate().counts();
        assert!(counts.retransmissions > 0, "{counts}");
        if trader.host.is_armed() {
            trader.disarm();
        }
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 4);
        trader.until("the last one", |trader| trader.accepted.len() == 4);
    })
}

pub(crate) fn reset() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, line| {
        trader.log_in();
        trader.arm();
        trader.market(3);
        assert_eq!([venue.next().0, venue.next().0, venue.next().0], [1, 2, 3]);
        trader.until("the answers", |trader| trader.accepted.len() == 3);
        venue.resets.store(true, Ordering::SeqCst);
        let why = trader.disarmed();
        assert_eq!(why, Disarmed::Connection(Reason::State));
        trader.market(2);
        let next = Numbers {
            user_ref: 4,
            message: 0,
        };
        let refused = trader.host.arm(&mut trader.stream, next, wall());
        assert_eq!(refused, Err(NotArmed::Connection(Reason::State)));
        // A new connection: the venue says which number comes next.
        trader.client.handle_closed();
        let (stream, delegate) = connected(line.peer());
        let client = &mut trader.client;
        let renewed = trader.host.renew(delegate, |order| assert!(client.took(order)));
        renewed.expect("it answers").heard.expect("it is known what left");
        (trader.stream, trader.last) = (stream, Turn::Idle);
        trader.accepted.clear();
        trader.client.handle_connected(NOW);
        trader.log_in();
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 4);
        trader.until("the answer", |trader| trader.accepted == [4]);
        assert!(
            venue.read.try_recv().is_err(),
            "what came meanwhile has caused nothing"
        );
    })
}

pub(crate) fn rejected() -> Result<(), Skip> {
    between(false, LIMITS, true, |trader, venue, _| {
        trader.until("the refusal", |trader| trader.is_refused);
        assert!(!trader.client.is_ready());
        // The session never armed the core: orders end at the gate.
        trader.market(4);
        trader.turn();
        assert!(venue.read.try_recv().is_err());
        assert_eq!(trader.host.counts().orders, 0);
    })
}

pub(crate) fn gap() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.market(2);
        let missing = trader.host.core_mut().skip();
        trader.market(1);
        // Longer than a packet ahead waits.
        trader.host.core_mut().run(6_000);
        let why = trader.disarmed();
        assert!(matches!(why, Disarmed::Faults(bits) if bits & 1 == 1), "{why}");
        assert_eq!(why.to_string(), "feed or book is not right: gap");
        assert_eq!((venue.next().0, venue.next().0), (1, 2));
        let next = Numbers {
            user_ref: 3,
            message: 0,
        };
        let refused = trader.host.arm(&mut trader.stream, next, wall());
        assert!(
            matches!(refused, Err(NotArmed::Core(bits)) if bits & 1 == 1),
            "{refused:?}"
        );
        trader.host.core_mut().late(&missing);
        let whole = control::RESUME | control::FORGET;
        trader
            .host
            .write([(address::CONTROL, whole)])
            .expect("the core takes it");
        trader.host.core_mut().run(3_000);
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 3);
        trader.until("the answers", |trader| trader.accepted == [1, 2, 3]);
    })
}

pub(crate) fn silent() -> Result<(), Skip> {
    let limits = Limits {
        watchdog: 50_000,
        ..LIMITS
    };
    between(false, limits, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 1);
        trader.turn();
        trader.host.core_mut().run(60_000);
        trader.market(2);
        assert_eq!(trader.disarmed(), Disarmed::Watchdog);
        assert!(
            venue.read.try_recv().is_err(),
            "nothing leaves of who is not watched"
        );
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 2);
    })
}

pub(crate) fn none_left() -> Result<(), Skip> {
    let limits = Limits { orders: 3, ..LIMITS };
    between(false, limits, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.market(6);
        assert_eq!(trader.disarmed(), Disarmed::NoneLeft);
        let next = Numbers {
            user_ref: 4,
            message: 0,
        };
        let refused = trader.host.arm(&mut trader.stream, next, wall());
        assert_eq!(refused, Err(NotArmed::NoneLeft));
        assert_eq!([venue.next().0, venue.next().0, venue.next().0], [1, 2, 3]);
        trader.until("the answers", |trader| trader.accepted == [1, 2, 3]);
        assert!(venue.read.try_recv().is_err(), "the fourth is not sent");
    })
}

/// The only order leaves, and the core is disarmed by it, before anybody could see that it was armed.
pub(crate) fn at_once() -> Result<(), Skip> {
    let limits = Limits { orders: 1, ..LIMITS };
    between(false, limits, false, |trader, venue, _| {
        trader.log_in();
        trader.host.core_mut().is_quick = true;
        trader.arm();
        assert_eq!(venue.next().0, 1);
        assert_eq!(trader.disarmed(), Disarmed::NoneLeft);
        assert_eq!(trader.enter(), 2);
        assert_eq!(venue.next(), (2, 7, 490_000));
        trader.until("the answers", |trader| trader.accepted == [1, 2]);
    })
}

/// The peer's window and congestion control allow a few segments: the core has no more orders than that,
/// and gets new ones with each turn.
pub(crate) fn room() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        // Without a turn only what there was room for leaves.
        trader.market(200);
        let mut count = 0_u32;
        while venue.read.recv_timeout(Duration::from_millis(300)).is_ok() {
            count += 1;
        }
        assert!((1..200).contains(&count), "{count} orders");
        trader.until("the answers", |trader| trader.accepted.len() == count as usize);
        assert!(trader.host.is_armed(), "{:?}", trader.last);
        for n in 0..60 {
            trader.market(1);
            trader.until("the next one", |trader| trader.accepted.len() as u32 > count + n);
        }
        assert!(trader.host.counts().refreshed > 0, "{:?}", trader.host.counts());
        assert_eq!(trader.client.unanswered(), 0);
    })
}

pub(crate) fn hidden() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.host.core_mut().next = Next::Hidden;
        trader.market(1);
        assert_eq!(venue.next().0, 1);
        let lost = trader.host.disarm(&mut trader.stream, |_| {});
        assert!(
            matches!(lost, Err(HostError::Missing { sent, mirrored }) if sent != mirrored),
            "{lost:?}"
        );
        trader.market(2);
        let next = Numbers {
            user_ref: 2,
            message: 0,
        };
        let refused = trader.host.arm(&mut trader.stream, next, wall());
        assert_eq!(refused, Err(NotArmed::Lost));
        assert!(matches!(trader.try_turn(), Err(HostError::Lost)));
        assert!(venue.read.try_recv().is_err());
    })
}

/// The frame is there when software is back.
pub(crate) fn late() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        trader.host.core_mut().next = Next::Late;
        trader.market(1);
        assert_eq!(venue.next().0, 1);
        let mut left = 0;
        let next = trader.host.disarm(&mut trader.stream, |_| left += 1);
        assert_eq!((next.map(|next| next.user_ref).ok(), left), (Some(2), 1));
    })
}

/// The next connection begins with nothing of it.
pub(crate) fn strange() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, line| {
        trader.log_in();
        trader.arm();
        trader.host.core_mut().next = Next::Garbled;
        trader.market(2);
        assert_eq!((venue.next().0, venue.next().0), (1, 2));
        let strange = trader.try_turn();
        assert!(
            matches!(strange, Err(HostError::Strange { expected, found: Some(found) }) if found == expected ^ 1),
            "{strange:?}"
        );
        trader.market(2);
        assert!(venue.read.try_recv().is_err(), "the core is disarmed");
        trader.client.handle_closed();
        let (stream, delegate) = connected(line.peer());
        let renewed = trader
            .host
            .renew(delegate, |_| panic!("nothing can be told apart"));
        let heard = renewed.expect("it answers").heard;
        assert!(matches!(heard, Err(HostError::Strange { .. })), "{heard:?}");
        // Dropped, the last connection is reset.
        (trader.stream, trader.last) = (stream, Turn::Idle);
        trader.client.handle_connected(NOW);
        trader.log_in();
        // The venue says which number comes next.
        assert_eq!(trader.client.next_user_ref_num(), 3);
        trader.arm();
        trader.market(1);
        assert_eq!(venue.next().0, 3);
        trader.until("the answer", |trader| trader.accepted == [3]);
    })
}

pub(crate) fn stamps() -> Result<(), Skip> {
    between(true, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        let next = Numbers {
            user_ref: 1,
            message: 0,
        };
        let refused = trader.host.arm(&mut trader.stream, next, wall());
        assert_eq!(refused, Err(NotArmed::Stamps));
        trader.market(2);
        assert_eq!(trader.enter(), 1);
        assert_eq!(venue.next(), (1, 7, 490_000));
    })
}

pub(crate) fn lent() -> Result<(), Skip> {
    between(false, LIMITS, false, |trader, venue, _| {
        trader.log_in();
        trader.arm();
        let refused = trader
            .host
            .send(&mut trader.stream, b"+++")
            .expect_err("it is lent");
        assert!(refused.to_string().contains("lent"), "{refused}");
        trader.host.set_limits(LIMITS).expect_err("it is armed");
        let next = trader.disarm();
        assert_eq!(next.user_ref, 1);
        assert_eq!(trader.enter(), 1);
        assert_eq!(venue.next(), (1, 7, 490_000));
    })
}
