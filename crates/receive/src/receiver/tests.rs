//! A thread that stands still while a server answers on a recovery connection, by a clock that is set by
//! hand.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tickwire_feed::{ArbiterConfig, ItchConfig, ItchDecoder, ItchFeed};
use tickwire_market::MarketEvent;
use tickwire_runtime::udp::Stamping;
use tickwire_venues::channels::FeedFile;

use super::*;

const GENEROUS: Duration = Duration::from_secs(20);
/// How long a connection may take.
const PATIENCE_NS: u64 = Nanos::SECOND;
/// Longer than that.
const LONG: u64 = 60 * Nanos::SECOND;

/// Goes by a clock that is set by hand.
struct ByHand(Nanos);

impl EventSink for ByHand {
    fn on_event(&mut self, _: &MarketEvent) {}
}

impl Consumer for ByHand {
    type Successor = ByHand;

    fn now(&self) -> Nanos {
        self.0
    }

    fn turn_to(&mut self, _: usize) {}

    fn begins(&mut self, _: &RxStamp) -> Nanos {
        self.0
    }
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Wanted,
    Connected,
    Answered,
    /// Its time was over.
    Failed,
}

/// A channel that asks over a connection, once, and waits until a certain time for so many bytes.
struct Asking {
    feed: ItchFeed,
    asked: Rc<Cell<Asked>>,
    missing: usize,
    has_to_ask: bool,
    deadline: Option<Nanos>,
}

impl Channel for Asking {
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, _: Port, line: Line, bytes: &[u8], sink: &mut S) {
        self.feed.on_packet(now, line, bytes, sink);
    }

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.feed.on_message(now, message, sink);
    }

    fn preview<S: EventSink>(&mut self, _: Nanos, message: &[u8], sink: &mut S) {
        self.feed.preview(message, sink);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.deadline
    }

    fn handle_timeout(&mut self, now: Nanos, _: &mut dyn EventSink) {
        if self.deadline.take_if(|deadline| *deadline <= now).is_some() {
            self.asked.set(Asked::Failed);
        }
    }

    fn poll_request<'b>(&mut self, _: &'b mut [u8]) -> Option<&'b [u8]> {
        None
    }

    fn wants_connection(&self, _: Port) -> bool {
        matches!(self.asked.get(), Asked::Wanted | Asked::Connected)
    }

    fn connected(&mut self, now: Nanos, _: Port) {
        self.asked.set(Asked::Connected);
        (self.has_to_ask, self.deadline) = (true, Some(now.after(PATIENCE_NS)));
    }

    fn poll_transmit<'b>(&mut self, _: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let asks = std::mem::take(&mut self.has_to_ask);
        buffer[0] = b'?';
        asks.then(|| &buffer[..1])
    }

    fn on_bytes(&mut self, _: Nanos, _: Port, bytes: &[u8], _: &mut dyn EventSink) {
        self.missing = self.missing.saturating_sub(bytes.len());
        if self.missing == 0 && self.asked.get() == Asked::Connected {
            self.asked.set(Asked::Answered);
            self.deadline = None;
        }
    }

    tickwire_feed_core::answers_from_feed!();
}

struct Played {
    receiver: Receiver<ByHand>,
    hot: ByHand,
    asked: Rc<Cell<Asked>>,
    server: TcpListener,
}

impl Played {
    /// An answer has so many bytes.
    fn new(port: u16, wait: WaitStrategy, missing: usize) -> Played {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let text = format!(
            "[[feed]]\nvenue = \"nasdaq\"\n[[feed.channel]]\nname = \"1\"\n\
             live = {{ a = \"239.192.9.43:{port}\" }}\nsnapshot_server = \"{}\"\n",
            server.local_addr().expect("bound")
        );
        let file = FeedFile::parse(&text).expect("a feed");
        let ports = file.feeds[0].channels[0].ports(&file.feeds[0].interface);
        let asked = Rc::new(Cell::new(Asked::Wanted));
        let channel = Asking {
            feed: ItchFeed::new(
                ArbiterConfig::default(),
                ItchDecoder::new(ItchConfig {
                    instruments_max: 8,
                    ..ItchConfig::default()
                }),
            ),
            asked: asked.clone(),
            missing,
            has_to_ask: false,
            deadline: None,
        };
        let mut source: Box<dyn Source<ByHand>> = Box::new(Received::new(0, channel));
        let mut receiver = Receiver::empty(wait, 2);
        let options = SocketOptions {
            receive_buffer: 1 << 16,
            stamping: Stamping::OnDemand,
            batch: 1,
        };
        let joined = source.join(&ports, Protocol::Itch50, options, &mut receiver.waiter);
        joined.expect("joined");
        receiver.sources.push(source);
        let hot = ByHand(Nanos(Nanos::SECOND));
        Played {
            receiver,
            hot,
            asked,
            server,
        }
    }

    fn turn(&mut self) {
        self.receiver.wait(self.hot.0, Some(self.hot.0));
        self.receiver.receive(&mut self.hot);
        self.receiver.timers(self.hot.0, &mut self.hot);
        self.receiver.links(self.hot.0, &mut self.hot);
    }

    /// Turns until the connection is there; what the server has of it.
    fn connect(&mut self) -> TcpStream {
        let began = Instant::now();
        while self.asked.get() == Asked::Wanted {
            self.hot.0 = self.hot.0.after(Nanos::MICRO);
            self.turn();
            assert!(began.elapsed() < GENEROUS);
        }
        let (stream, _) = self.server.accept().expect("it has connected");
        stream.set_read_timeout(Some(GENEROUS)).expect("a socket");
        stream
    }

    /// The thread goes on after a long time.
    fn stand_still(&mut self) {
        // Loopback has delivered everything when the call that writes returns; a busy machine may need a
        // moment.
        std::thread::sleep(Duration::from_millis(20));
        self.hot.0 = self.hot.0.after(LONG);
    }
}

#[test]
fn a_login_leaves_with_its_connection_and_the_answer_is_read_before_time_is_over() {
    for (nth, wait) in (0..).zip([WaitStrategy::Spin, WaitStrategy::Poll]) {
        let mut played = Played::new(26_971 + nth, wait, 6);
        let mut server = played.connect();
        let mut login = [0];
        server.read_exact(&mut login).expect("no turn has to follow");
        server.write_all(b"answer").expect("the receiver is there");
        played.stand_still();
        played.turn();
        assert_eq!(played.asked.get(), Asked::Answered, "{wait:?}");
    }
}

#[test]
fn a_server_that_says_nothing_is_waited_for_no_longer_than_its_time() {
    let mut played = Played::new(26_973, WaitStrategy::Spin, 6);
    let _server = played.connect();
    played.hot.0 = played.hot.0.after(PATIENCE_NS - 1);
    played.turn();
    assert_eq!(played.asked.get(), Asked::Connected);
    played.hot.0 = played.hot.0.after(1);
    played.turn();
    assert_eq!(played.asked.get(), Asked::Failed);
}

/// Small, so that an answer is longer than what one look reads.
const BUFFER: usize = 64;

#[test]
fn an_answer_that_is_longer_than_a_look_is_read_before_time_is_over() {
    for (nth, wait) in (0..).zip([WaitStrategy::Spin, WaitStrategy::Poll]) {
        let answer = [b'!'; 40 * BUFFER];
        let mut played = Played::new(26_981 + nth, wait, answer.len());
        played.receiver.buffer = vec![0; BUFFER];
        let mut server = played.connect();
        server.write_all(&answer).expect("the receiver is there");
        played.stand_still();
        let mut turns = 0;
        while played.asked.get() == Asked::Connected {
            played.turn();
            turns += 1;
        }
        assert_eq!(played.asked.get(), Asked::Answered, "{wait:?}");
        assert!(turns > 1);
    }
}

#[test]
fn a_server_that_never_stops_is_waited_for_so_many_looks() {
    let mut played = Played::new(26_983, WaitStrategy::Spin, usize::MAX);
    played.receiver.buffer = vec![0; BUFFER];
    let mut server = played.connect();
    // More than is read until then, and less than the kernel keeps.
    server
        .write_all(&[b'!'; 600 * BUFFER])
        .expect("the receiver is there");
    played.stand_still();
    let mut turns = 0;
    while played.asked.get() == Asked::Connected {
        played.turn();
        turns += 1;
    }
    // Each reads twice: before timers and behind them.
    assert_eq!((played.asked.get(), turns), (Asked::Failed, 33));
}
