//! Venue and strategy on two threads, joined by sockets of this machine: market data as MoldUDP64 datagrams,
//! orders over a TCP connection, in whatever the session on it speaks.
//!
//! The venue waits after everything that it sends until the strategy's thread has taken it, and is told how
//! many requests that led to: so both sides are at the same place each time, whatever the sockets' timing.
//! Only that is told beside the sockets.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel as queue};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_feed::{Channel, Line};
use tickwire_market::{MarketEvent, Nanos, Port, SeqNo};
use tickwire_wire::moldudp64::PacketBuilder;

use super::{Host, InMemory, Said};

pub(super) const SESSION: [u8; 10] = *b"EQUALITY  ";
/// Nothing takes as long unless something is lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the venue waits for beside the sockets.
enum Step {
    Datagram,
    Report,
    Over,
}

/// What the strategy's thread does over its session.
pub(super) trait Trading<C> {
    /// The strategy.
    fn host(&mut self) -> &mut InMemory<C>;
    /// The strategy, when all is over.
    fn end(self) -> InMemory<C>;
    /// The session's clock.
    fn now(&self) -> Nanos;
    /// Takes what came over the session, waiting for it; how many reports it was.
    fn receive(&mut self) -> usize;
    /// Sends what the strategy wants; how many requests.
    fn send(&mut self) -> usize;
}

/// The venue's end.
pub(super) struct Lockstep {
    udp: UdpSocket,
    to: SocketAddr,
    next: SeqNo,
    steps: Sender<Step>,
    /// How many requests the strategy's thread has sent after each step.
    taken: Receiver<usize>,
    sent: usize,
    strategy: JoinHandle<Vec<Said>>,
}

impl Lockstep {
    /// Starts the strategy's thread, where `host` makes the strategy and `log_in` takes the connection up to
    /// where requests may be sent; gives the venue's end of the connection. The venue answers the login and
    /// then calls [`Lockstep::begun`].
    pub(super) fn start<C: Channel, T: Trading<C>>(
        host: impl FnOnce() -> InMemory<C> + Send + 'static,
        log_in: impl FnOnce(InMemory<C>, TcpStream) -> T + Send + 'static,
    ) -> (Lockstep, TcpStream) {
        let local = (Ipv4Addr::LOCALHOST, 0);
        let listener = TcpListener::bind(local).expect("a port");
        let here = UdpSocket::bind(local).expect("a port");
        here.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let to = here.local_addr().expect("its address");
        let server = listener.local_addr().expect("its address");
        let (steps, to_do) = queue();
        let (taken, is_taken) = queue();
        let strategy = std::thread::spawn(move || {
            let tcp = patient(TcpStream::connect(server).expect("the venue listens"));
            let trading = log_in(host(), tcp);
            taken.send(0).expect("the venue waits");
            follow(trading, &here, &to_do, &taken)
        });
        let (tcp, _) = listener.accept().expect("the strategy connects");
        let venue = Lockstep {
            udp: UdpSocket::bind(local).expect("a port"),
            to,
            next: SeqNo(1),
            steps,
            taken: is_taken,
            sent: 0,
            strategy,
        };
        (venue, patient(tcp))
    }

    /// The strategy has logged in.
    pub(super) fn begun(&mut self) {
        self.sent = self.wait();
    }

    /// Publishes a message.
    pub(super) fn message(&mut self, message: &[u8]) {
        let mut buffer = [0; 1472];
        let mut packet = PacketBuilder::new(&mut buffer, SESSION, self.next);
        assert!(packet.push(message));
        let len = packet.finish();
        self.next = self.next.next();
        self.udp.send_to(&buffer[..len], self.to).expect("it is sent");
        self.step(Step::Datagram);
    }

    /// A report has been sent over the session.
    pub(super) fn reported(&mut self) {
        self.step(Step::Report);
    }

    /// How many requests came that were not asked for yet.
    pub(super) fn take_sent(&mut self) -> usize {
        std::mem::take(&mut self.sent)
    }

    /// What the strategy's thread said in all.
    pub(super) fn finish(self) -> Vec<Said> {
        self.steps.send(Step::Over).expect("the strategy's thread lives");
        self.strategy.join().expect("the strategy's thread ends")
    }

    fn wait(&self) -> usize {
        let sent = self.taken.recv_timeout(PATIENCE);
        sent.expect("the strategy's thread lives")
    }

    fn step(&mut self, step: Step) {
        self.steps.send(step).expect("the strategy's thread lives");
        self.sent += self.wait();
    }
}

/// A connection that loses nothing without a word.
fn patient(tcp: TcpStream) -> TcpStream {
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tcp.set_nodelay(true).expect("no delay");
    tcp
}

/// The strategy's thread, from its login to the end.
fn follow<C: Channel>(
    mut trading: impl Trading<C>,
    udp: &UdpSocket,
    steps: &Receiver<Step>,
    taken: &Sender<usize>,
) -> Vec<Said> {
    let mut buffer = [0; 2048];
    loop {
        match steps.recv_timeout(PATIENCE).expect("the venue goes on") {
            Step::Over => return trading.end().finish(),
            Step::Datagram => {
                let len = udp.recv(&mut buffer).expect("a datagram");
                let (now, mut events) = (trading.now(), Vec::new());
                let host = trading.host();
                host.channel.on_datagram(
                    now,
                    Port::Live,
                    Line::A,
                    &buffer[..len],
                    &mut |event: &MarketEvent| events.push(*event),
                );
                events.iter().for_each(|event| host.event(event));
            }
            Step::Report => while trading.receive() == 0 {},
        }
        taken.send(trading.send()).expect("the venue waits");
    }
}
