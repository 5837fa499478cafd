//! An OUCH order that the program sends: prepared by the client that numbers requests, taken by a venue that
//! reads SoupBinTCP and OUCH and knows nothing of it, answered, and believed by the client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use tickwire_feed::{OuchClient, OuchConfig, OuchEvent};
use tickwire_kernel::filter::Framing;
use tickwire_kernelpath::{NotArmed, Shooting};
use tickwire_market::{Nanos, Price};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::tcp::Received;
use tickwire_runtime::xdp::XdpMode;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::ouch50::{
    self, AccountQueryResponse, Appendage, EnterOrder, Inbound, OrderAccepted, Price4Wide,
};
use tickwire_wire::soupbintcp::{LoginAccepted, Packet, split};
use tickwire_wire::zerocopy::IntoBytes;

use crate::client::PATIENCE;
use crate::harness::{Skip, namespaces};
use crate::network::{PORT, inside};
use crate::{Feed, HIT, MISS, Trader, waits};

/// The client's time stands still: no heartbeat is due.
const NOW: Nanos = Nanos(1_000_000_000);
const ORDERS: u32 = 60;

/// What the venue has read of an order.
type Entered = (u32, u32, [u8; 14]);

/// A venue of OUCH: one connection, every order accepted. Gives what it has read.
fn venue(pair: &VethPair) -> (SocketAddr, Receiver<Entered>) {
    let listener = inside(pair, 1, || {
        TcpListener::bind((pair.address(1), PORT)).expect("bound")
    });
    let (told, read) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody");
        stream.set_nodelay(true).expect("an option");
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let length = match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(length) => length,
            };
            bytes.extend_from_slice(&buffer[..length]);
            let mut answer = [0; 256];
            while let Some((packet, taken)) = split(&bytes).expect("packets of SoupBinTCP") {
                let answers = match packet {
                    Packet::LoginRequest(_) => {
                        let accepted = LoginAccepted::new(b"OUCH000001", 1).expect("a session");
                        Packet::LoginAccepted(&accepted).encode(&mut answer)
                    }
                    Packet::Unsequenced(request) => answered(request, &mut answer, &told),
                    _ => None,
                };
                if let Some(length) = answers {
                    stream.write_all(&answer[..length]).expect("the client reads");
                }
                bytes.drain(..taken);
            }
        }
    });
    ((pair.address(1), PORT).into(), read)
}

/// The answer to a request.
fn answered(request: &[u8], answer: &mut [u8], told: &std::sync::mpsc::Sender<Entered>) -> Option<usize> {
    let mut message = [0; 200];
    let length = match ouch50::parse_inbound(request).expect("a request of OUCH").0 {
        Inbound::EnterOrder(order) => {
            let read = (order.user_ref_num.get(), order.quantity.get(), order.cl_ord_id.0);
            told.send(read).expect("the test goes on");
            let accepted = OrderAccepted {
                user_ref_num: order.user_ref_num,
                side: order.side,
                quantity: order.quantity,
                symbol: order.symbol,
                price: order.price,
                ..OrderAccepted::NEW
            };
            ouch50::encode(accepted.as_bytes(), Some(&Appendage::default()), &mut message)
        }
        Inbound::AccountQuery(_) => {
            let response = AccountQueryResponse {
                next_user_ref_num: 1.into(),
                ..AccountQueryResponse::NEW
            };
            ouch50::encode(response.as_bytes(), None, &mut message)
        }
        other => panic!("{}", other.name()),
    };
    Packet::Sequenced(&message[..length.expect("room")]).encode(answer)
}

/// The client over a delegated connection.
struct Session {
    trader: Trader,
    client: OuchClient,
    accepted: Vec<u32>,
    buffer: Vec<u8>,
}

impl Session {
    /// What the client has to say, all of it.
    fn said(&mut self) -> Vec<u8> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        while let Some(part) = self.client.poll_transmit(&mut buffer) {
            bytes.extend_from_slice(part);
        }
        bytes
    }

    fn turn(&mut self) {
        let own = &mut self.trader.client;
        while let Received::Bytes(bytes) = own.stream.recv(&mut self.buffer).expect("the connection holds") {
            self.client.handle_bytes(NOW, bytes);
        }
        own.delegate.tend(&mut own.stream).expect("the connection holds");
        while let Some(event) = self.client.poll_event(NOW) {
            if let OuchEvent::Message { .. } = event {
                let message = ouch50::parse_outbound(self.client.message()).expect("a message of OUCH");
                if let ouch50::Outbound::OrderAccepted(accepted) = message.0 {
                    self.accepted.push(accepted.user_ref_num.get());
                }
            }
        }
        let bytes = self.said();
        if !bytes.is_empty() {
            let own = &mut self.trader.client;
            own.delegate.launch(&mut own.stream, &bytes).expect("sent");
            own.delegate.settle(&mut own.stream).expect("booked");
        }
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&Session) -> bool) {
        let began = Instant::now();
        while !done(self) {
            self.turn();
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.accepted);
        }
    }
}

fn order(n: u32) -> EnterOrder {
    let mut text = *b"armed         ";
    for (to, digit) in text[6..].iter_mut().zip(n.to_string().bytes()) {
        *to = digit;
    }
    EnterOrder {
        side: Char(b'B'),
        quantity: (100 + n).into(),
        symbol: Alpha(*b"AAPL    "),
        price: Price4Wide::from_price(Price::from_4dp(250_000)).expect("it fits"),
        time_in_force: Char(b'3'),
        cl_ord_id: Alpha(text),
        ..EnterOrder::NEW
    }
}

/// Of five orders four leave from the program, and one is taken back and sent otherwise: the venue reads each
/// once, whole and in order, and the client sees each accepted.
pub(crate) fn ouch() -> Result<(), Skip> {
    for framing in [Framing::Itch, Framing::Nyse] {
        let pair = namespaces()?;
        let (address, read) = venue(&pair);
        let mut feed = Feed::new(&pair, framing);
        let read = inside(&pair, 0, move || {
            let mut session = Session {
                trader: Trader::new(framing, address, XdpMode::Generic),
                client: OuchClient::new(OuchConfig::default()),
                accepted: Vec::new(),
                buffer: vec![0; 1 << 16],
            };
            session.client.handle_connected(NOW);
            session.until("the login", |session| session.client.is_ready());
            let mut expected = Vec::new();
            for n in 1..=ORDERS {
                let number = session.client.enter(NOW, &order(n), &Appendage::default());
                assert_eq!(number, Some(n));
                let bytes = session.said();
                let began = Instant::now();
                loop {
                    let waits = waits(framing, feed.next);
                    let own = &mut session.trader.client;
                    match own.delegate.arm(&own.stream, &waits, &bytes) {
                        Ok(()) => break,
                        // What was sent before is on its way.
                        Err(NotArmed::Connection(_) | NotArmed::Unread) => {
                            session.trader.market();
                            session.turn();
                        }
                        Err(why) => panic!("{why}"),
                    }
                    assert!(began.elapsed() < PATIENCE);
                }
                feed.send(0, &[MISS]);
                if n % 5 == 0 {
                    let own = &mut session.trader.client;
                    let told = own.delegate.disarm(&mut own.stream);
                    assert_eq!(told.expect("the connection holds"), Some(Shooting::Back));
                    own.delegate.launch(&mut own.stream, &bytes).expect("sent");
                    own.delegate.settle(&mut own.stream).expect("booked");
                } else {
                    feed.send(1, &[HIT]);
                    let told = session.trader.shot();
                    assert!(matches!(told, Shooting::Fired { .. }), "{told:?}");
                }
                expected.push(n);
                session.until("the acceptance", |session| session.accepted.len() == n as usize);
                session.trader.market();
                let told = read.recv_timeout(PATIENCE).expect("the venue has read it");
                assert_eq!(told, (n, 100 + n, order(n).cl_ord_id.0));
            }
            assert_eq!(session.accepted, expected);
            assert_eq!(session.client.unanswered(), 0);
            let counts = session.trader.client.delegate.counts();
            let armed = counts.pre_armed;
            assert_eq!(
                (armed.armed, armed.fired, armed.taken_back),
                (
                    u64::from(ORDERS),
                    u64::from(ORDERS / 5 * 4),
                    u64::from(ORDERS / 5)
                ),
                "{counts}"
            );
            read
        });
        assert!(read.try_recv().is_err(), "every order once");
    }
    Ok(())
}
