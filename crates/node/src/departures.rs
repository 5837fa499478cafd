//! When orders left: the stamps of driver and card ([`SendStamps`]), read behind the path.
//!
//! The kernel tells of a stream by the place of the last byte that was sent together, of frames by their
//! numbers, so each order is known by where it ends. An order that left together with later bytes has no
//! stamp, and none is made up for it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;

use tickwire_market::Nanos;
use tickwire_runtime::card::CardClock;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::interface::Interface;
use tickwire_runtime::sent::SendStamps;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::xdp::{SocketOffers, socket_offers};

/// Orders whose stamps are waited for; of more, the oldest are not told of.
const WAITING_MAX: usize = 64;
/// Between two looks for stamps that do not come with the send: the card's, those of what waited for room,
/// and those of what was sent again, which nobody asked for.
const LOOK_NS: u64 = Nanos::MILLI;

/// An order has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// Which one: [`Probes::commit`](tickwire_lab::Probes::commit) numbered it.
    pub sample: usize,
    /// When the driver gave it to the card.
    pub driver: Option<Nanos>,
    /// When the card had sent it.
    pub card: Option<Nanos>,
}

/// The stamps of one connection.
#[derive(Debug)]
pub(crate) struct Departures {
    stamps: SendStamps,
    /// What was sent, in bytes of the stream or in frames, modulo 2^32.
    sent: u32,
    /// What of it the driver has had.
    left: u32,
    /// What was sent last is among what is stamped.
    is_stamped: bool,
    /// Where orders end, and their samples; the oldest is overwritten.
    waiting: [Option<(u32, usize)>; WAITING_MAX],
    next: usize,
    /// When stamps are looked for that did not come with the send.
    look_at: Nanos,
    card: Option<CardClock>,
}

impl Departures {
    /// Of a connection that nothing was sent over yet.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn of_stream(stream: &TcpStream, peer: SocketAddr) -> io::Result<Departures> {
        Ok(Departures::new(SendStamps::enable(stream)?, peer))
    }

    /// Of what is stamped already.
    pub(crate) fn new(stamps: SendStamps, peer: SocketAddr) -> Departures {
        Departures {
            stamps,
            sent: 0,
            left: 0,
            is_stamped: false,
            waiting: [None; WAITING_MAX],
            next: 0,
            look_at: Nanos::ZERO,
            card: towards(peer).and_then(|interface| CardClock::of_interface(interface.name())),
        }
    }

    /// Bytes were given to the connection.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent_until(self.sent.wrapping_add(bytes as u32));
    }

    /// Something was sent, and so much of what is stamped in all: no more than before if it left otherwise.
    #[inline]
    pub(crate) fn sent_until(&mut self, all: u32) {
        (self.is_stamped, self.sent) = (all != self.sent, all);
    }

    /// What was sent last is an order.
    #[inline]
    pub(crate) fn note(&mut self, sample: usize) {
        if !self.is_stamped {
            return;
        }
        self.waiting[self.next] = Some((self.sent, sample));
        self.next = (self.next + 1) % WAITING_MAX;
    }

    /// The next order that is known to have left. A system call, unless nothing is expected and nothing is
    /// due.
    #[inline]
    pub(crate) fn poll(&mut self, clock: &Clock, now: Nanos) -> Option<Departure> {
        match self.left == self.sent && now < self.look_at {
            true => None,
            false => self.look(clock, now),
        }
    }

    #[cold]
    fn look(&mut self, clock: &Clock, now: Nanos) -> Option<Departure> {
        if now >= self.look_at {
            self.look_at = now.after(LOOK_NS);
            self.follow_card();
        }
        while let Some(stamp) = self.stamps.poll() {
            let end = stamp.id.wrapping_add(1);
            let card = stamp.card_ns.and_then(|ns| self.of_card(clock, ns));
            if stamp.driver_ns.is_some() {
                self.left = end;
            }
            let known = self.waiting.iter().flatten().find(|(at, _)| *at == end);
            if let Some(&(_, sample)) = known {
                return Some(Departure {
                    sample,
                    driver: stamp.driver_ns.map(|ns| clock.at_wall(Nanos(ns.get()))),
                    card,
                });
            }
        }
        // What was not stamped by now waits for room, or left together with what is sent next.
        self.left = self.sent;
        None
    }

    fn of_card(&self, clock: &Clock, ns: NonZeroU64) -> Option<Nanos> {
        let at = self.card.as_ref()?.comparison().monotonic(ns)?;
        Some(clock.at_monotonic(Nanos(at.get())))
    }

    fn follow_card(&mut self) {
        // A card that is gone is not read again.
        if let Some(card) = &mut self.card
            && card.follow_when_due().is_err()
        {
            self.card = None;
        }
    }

    /// Who stamps, for a line in a log: `by the driver of eth0; its card stamps nothing`.
    pub(crate) fn in_use(&self, peer: SocketAddr) -> String {
        let Some(interface) = towards(peer) else {
            return "by the driver".to_owned();
        };
        let offers = socket_offers(interface.name());
        let clock = self.card.as_ref().map(CardClock::name);
        words(interface.name(), &offers, clock)
    }
}

fn towards(peer: SocketAddr) -> Option<Interface> {
    match peer.ip() {
        IpAddr::V4(to) => Interface::towards(to),
        IpAddr::V6(_) => None,
    }
}

fn words(name: &str, offers: &io::Result<SocketOffers>, clock: Option<&str>) -> String {
    let offers = match offers {
        Ok(offers) => offers,
        Err(error) => return format!("by the driver of {name}, if it can: it cannot be asked: {error}"),
    };
    let driver = match offers.by_driver {
        true => format!("by the driver of {name}"),
        false => format!("not by the driver of {name}, which does not do it"),
    };
    let card = match (offers, clock) {
        (SocketOffers { by_card: false, .. }, _) => "; its card stamps nothing".to_owned(),
        (
            SocketOffers {
                card_is_on: Some(false),
                ..
            },
            _,
        ) => {
            format!("; its card could, and is off: hwstamp_ctl -i {name} -t 1")
        }
        (_, Some(clock)) => format!(", and by its card, whose clock is {clock}"),
        (_, None) => "; its card's clock cannot be read by this process".to_owned(),
    };
    driver + &card
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    #[test]
    fn each_order_has_the_stamp_of_its_own_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let peer = listener.local_addr().expect("an address");
        let mut stream = TcpStream::connect(peer, Duration::from_secs(5)).expect("connected");
        let mut far = listener.accept().expect("accepted").0;
        let clock = Clock::calibrate();
        let mut departures = Departures::of_stream(&stream, peer).expect("stamped");
        for order in 0..3 * WAITING_MAX {
            // What is no order is stamped, too, and not told of.
            for (bytes, is_order) in [(&b"a heartbeat"[..], false), (b"an order", true)] {
                let before = clock.now();
                stream.send(bytes).expect("sent");
                departures.sent(bytes.len());
                let mut heard = vec![0; bytes.len()];
                std::io::Read::read_exact(&mut far, &mut heard).expect("received");
                let after = clock.now();
                if !is_order {
                    continue;
                }
                departures.note(order);
                let until = Instant::now() + Duration::from_secs(60);
                let departure = loop {
                    if let Some(departure) = departures.poll(&clock, clock.now()) {
                        break departure;
                    }
                    assert!(Instant::now() < until, "no stamp of order {order}");
                };
                assert_eq!((departure.sample, departure.card), (order, None));
                let driver = departure.driver.expect("stamped");
                // Two clocks, compared once.
                let error = 1_000_000;
                assert!(before.0 < driver.0 + error && driver.0 < after.0 + error);
            }
        }
        assert_eq!(departures.poll(&clock, clock.now().after(2 * LOOK_NS)), None);
    }

    #[test]
    fn orders_that_left_together_are_told_of_by_the_last_one_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let peer = listener.local_addr().expect("an address");
        let mut stream = TcpStream::connect(peer, Duration::from_secs(5)).expect("connected");
        let clock = Clock::calibrate();
        let mut departures = Departures::of_stream(&stream, peer).expect("stamped");
        for sample in [7, 8] {
            departures.sent(4);
            departures.note(sample);
        }
        stream.send(b"two four").expect("sent");
        let until = Instant::now() + Duration::from_secs(60);
        let mut told = Vec::new();
        while told.is_empty() && Instant::now() < until {
            told.extend(departures.poll(&clock, clock.now()));
        }
        told.extend(departures.poll(&clock, clock.now().after(2 * LOOK_NS)));
        assert_eq!(told.iter().map(|told| told.sample).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn an_order_that_left_otherwise_does_not_get_the_stamp_of_what_left_before_it() {
        let to = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let from = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        let peer = to.local_addr().expect("an address");
        let clock = Clock::calibrate();
        let stamps = SendStamps::enable(&from).expect("stamped");
        let mut departures = Departures::new(stamps, peer);
        let mut told = Vec::new();
        // A heartbeat in a frame of its own, an order in a train or by the kernel, and an order in a frame.
        for (frames, sample) in [(1, None), (1, Some(7)), (2, Some(8))] {
            if frames != departures.sent {
                from.send_to(b"a frame", peer).expect("sent");
            }
            departures.sent_until(frames);
            sample.into_iter().for_each(|sample| departures.note(sample));
        }
        let until = Instant::now() + Duration::from_secs(60);
        while told.is_empty() && Instant::now() < until {
            told.extend(departures.poll(&clock, clock.now()));
        }
        told.extend(departures.poll(&clock, clock.now().after(2 * LOOK_NS)));
        assert_eq!(told.iter().map(|told| told.sample).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn the_line_says_who_stamps_and_what_to_do_for_more() {
        let offers = |by_driver, by_card, card_is_on| {
            Ok(SocketOffers {
                by_driver,
                by_card,
                card_is_on,
            })
        };
        for (offers, clock, line) in [
            (
                offers(true, false, None),
                None,
                "by the driver of eth0; its card stamps nothing",
            ),
            (
                offers(true, true, Some(false)),
                Some("ptp0"),
                "by the driver of eth0; its card could, and is off: hwstamp_ctl -i eth0 -t 1",
            ),
            (
                offers(true, true, Some(true)),
                Some("ptp0"),
                "by the driver of eth0, and by its card, whose clock is ptp0",
            ),
            (
                offers(false, true, None),
                None,
                "not by the driver of eth0, which does not do it; its card's clock cannot be read by this process",
            ),
        ] {
            assert_eq!(words("eth0", &offers, clock), line);
        }
        let error = Err(io::Error::from_raw_os_error(1));
        assert!(words("eth0", &error, None).starts_with("by the driver of eth0, if it can"));
    }
}
