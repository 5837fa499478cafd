//! When what was sent over a socket has left: stamps of the network driver and of the card, asked for once
//! and read back behind the path.
//!
//! The kernel keeps them in the socket's error queue until they are read, and a socket with something in it
//! counts as ready for whoever waits for it: who asks for stamps has to read them.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;
use crate::udp::{each_control, timespec_ns};

/// The stamps of one socket.
#[derive(Debug)]
pub struct SendStamps {
    socket: OwnedFd,
}

/// A stamp of something sent: of the driver, or of the card. Where both stamp, each comes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendStamp {
    /// Of a stream: the place of the last byte sent with it, from 0 and modulo 2^32; of datagrams: its
    /// number, from 0.
    pub id: u32,
    /// When the driver gave it to the card, nanoseconds of `CLOCK_REALTIME`.
    pub driver_ns: Option<NonZeroU64>,
    /// When the card had sent it, nanoseconds of the card's own clock ([`crate::card::CardClock`]).
    pub card_ns: Option<NonZeroU64>,
}

impl SendStamps {
    /// Stamps everything sent on a socket from now on: by the driver, and by the card where it was told to
    /// stamp what it sends ([`crate::xdp::socket_offers`]). Datagrams are numbered from 0 anew, and stamps of
    /// before are forgotten.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(socket: &impl AsFd) -> io::Result<SendStamps> {
        // linux/net_tstamp.h: TX_HARDWARE, TX_SOFTWARE, SOFTWARE, RAW_HARDWARE, OPT_ID, OPT_TSONLY,
        // OPT_TX_SWHW.
        const FLAGS: i32 = 1 | 1 << 1 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 11 | 1 << 14;
        let socket = socket.as_fd().try_clone_to_owned()?;
        // Numbers begin anew where they had not been asked for.
        for flags in [0, FLAGS] {
            sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags)?;
        }
        let mut stamps = SendStamps { socket };
        while stamps.poll().is_some() {}
        Ok(stamps)
    }

    /// The next stamp, if the kernel has one: a system call. Never waits. What else stands in the error queue
    /// is passed over.
    pub fn poll(&mut self) -> Option<SendStamp> {
        let mut control = sys::ControlBuffer([0; 128]);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        loop {
            let header = sys::receive_message(self.socket.as_fd(), &mut [], &mut control, flags).ok()?;
            let stamp = send_stamp(&control.0[..header.control_len]);
            if stamp.is_some() {
                return stamp;
            }
        }
    }
}

/// Reads the control messages of the error queue: `SCM_TIMESTAMPING` with three times, the first that of
/// software, the third that of hardware, and the extended error that carries the id
/// (Documentation/networking/timestamping.rst, 1.3.3 and 2.1).
fn send_stamp(control: &[u8]) -> Option<SendStamp> {
    const TIMES: usize = 16;
    // `sock_extended_err`: errno 4, origin 1, type 1, code 1, pad 1, info 4, data 4.
    const DATA: usize = 12;
    let (mut times, mut id) = (None, None);
    each_control(control, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
            let card = data.get(2 * TIMES..).and_then(timespec_ns);
            times = Some((timespec_ns(data), card));
        }
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => {
            let bytes = data.get(DATA..DATA + 4).and_then(|b| b.first_chunk::<4>());
            id = bytes.map(|b| u32::from_ne_bytes(*b));
        }
        _ => {}
    });
    let (driver_ns, card_ns) = times?;
    // An empty stamp says nothing.
    driver_ns.or(card_ns)?;
    Some(SendStamp {
        id: id?,
        driver_ns,
        card_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::{Backend, Inbox, Input};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn kernel_stamps_of_both_directions_lie_between_sending_and_receiving() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let mut near = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let far = listener.accept().expect("accepted").0;
        let mut stamps = SendStamps::enable(&near).expect("enabled");
        let mut inbox = Inbox::open(&far, Backend::Poll, true).expect("opened");
        // The kernel turns receive stamps on from a worker thread: on a busy machine the first messages come
        // without.
        for message in 0..2_000u32 {
            let before = sys::clock_ns(libc::CLOCK_REALTIME);
            near.write_all(b"0123456789").expect("written");
            let Input::Bytes { kernel_ns, .. } = inbox.recv(10 * SECOND).expect("receives") else {
                panic!("nothing came");
            };
            let after = sys::clock_ns(libc::CLOCK_REALTIME);
            let sent = stamps.poll().expect("the kernel stamped it");
            assert_eq!(sent.id, 10 * message + 9, "the place of the last byte");
            assert_eq!(sent.card_ns, None, "loopback has no card");
            let Some(received) = kernel_ns else {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            };
            let (left, received) = (sent.driver_ns.expect("stamped").get(), received.get());
            assert!(
                before <= left && left <= received && received <= after,
                "{before} {sent:?} {received} {after}"
            );
            assert_eq!(stamps.poll(), None);
            return;
        }
        panic!("no message was stamped");
    }

    #[test]
    fn a_socket_that_is_asked_again_numbers_its_datagrams_anew() {
        let to = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let from = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let to = to.local_addr().expect("an address");
        for sent in [3, 2] {
            let mut stamps = SendStamps::enable(&from).expect("enabled");
            assert_eq!(stamps.poll(), None, "stamps of before are forgotten");
            for _ in 0..=sent {
                from.send_to(&[1; 8], to).expect("sent");
            }
            let ids: Vec<_> = (0..sent).map(|_| stamps.poll().expect("stamped").id).collect();
            assert_eq!(ids, (0..sent).collect::<Vec<u32>>());
        }
    }

    /// A control message as the kernel lays it.
    fn control(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn times(driver: (u64, u64), card: (u64, u64)) -> Vec<u8> {
        let words = [driver.0, driver.1, 0, 0, card.0, card.1];
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        control(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &data)
    }

    fn extended(id: u32) -> Vec<u8> {
        let mut data = vec![0; 12];
        data.extend(id.to_ne_bytes());
        control(libc::IPPROTO_IP, libc::IP_RECVERR, &data)
    }

    #[test]
    fn what_a_card_says_is_told_apart_from_what_the_driver_says() {
        let [driver, card] = [times((7, 9), (0, 0)), times((0, 0), (3, 4))].map(|mut bytes| {
            bytes.extend(extended(41));
            send_stamp(&bytes)
        });
        let stamp = |driver, card| {
            Some(SendStamp {
                id: 41,
                driver_ns: NonZeroU64::new(driver),
                card_ns: NonZeroU64::new(card),
            })
        };
        assert_eq!(
            (driver, card),
            (stamp(7 * SECOND + 9, 0), stamp(0, 3 * SECOND + 4))
        );
    }

    #[test]
    fn control_messages_that_are_cut_short_give_no_stamp() {
        assert_eq!(send_stamp(&[]), None);
        assert_eq!(send_stamp(&[0xff; 40]), None);
        // Neither does a stamp without a time, or one of nothing that was sent.
        let mut empty = times((0, 0), (0, 0));
        empty.extend(extended(1));
        assert_eq!(
            (send_stamp(&empty), send_stamp(&times((1, 1), (0, 0)))),
            (None, None)
        );
        let mut whole = times((7, 9), (0, 0));
        whole.extend(extended(41));
        for cut in 0..whole.len() {
            assert_eq!(send_stamp(&whole[..cut]), None, "{cut}");
        }
    }
}
