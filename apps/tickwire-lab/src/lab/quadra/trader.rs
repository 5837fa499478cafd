//! The trader: an order for each feed message, at once. And the floor beside it: the least program that
//! answers bytes with bytes through the same system calls, written apart from everything of the product.

use std::io::{self, Read, Write};
use std::net::{TcpStream as StdStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use tickwire_market::Nanos;
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::inbox::{Backend, Inbox, Input};
use tickwire_runtime::sent::SendStamps;
use tickwire_runtime::tcp::{Received, TcpStream};

use tickwire_node::hot::OrderOut;
use tickwire_node::link::Entry;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;

use super::Fault;
use super::link::FeedIn;
use super::message::{FeedReader, MESSAGE_MAX, OrderWriter, Transport, lengths};
use crate::lab::inlet::Inlet;
use tickwire_console::failure::Failure;

/// How long a wait lasts before the end of the run is looked for.
const LOOK_NS: u64 = 20_000_000;
/// How often the kernel is asked for stamps that are missing at the end, every 5 ms.
const STAMP_LOOKS: u32 = 100;

/// What the trader saw beside what it sent.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What a reader must know of its socket.
    pub(super) remark: Option<String>,
    /// Messages that were not what they should be.
    pub(super) malformed: u64,
    /// Its part of each round trip, where the kernel's times were asked for.
    pub(super) legs: Vec<TraderLeg>,
}

/// The trader's part of a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraderLeg {
    /// Message number, from 0.
    pub(super) number: u64,
    /// When the kernel had the message, nanoseconds of the real-time clock, 0 if it did not say.
    pub(super) kernel_ns: u64,
    /// When the receive call returned, and when the send call began: the counter.
    pub(super) received: u64,
    pub(super) send: u64,
    /// When the driver had the order, nanoseconds of the real-time clock, 0 if the kernel did not say.
    pub(super) driver_ns: u64,
}

/// How the trader does it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) transport: Transport,
    pub(super) backend: Backend,
    /// Keep the kernel's times of so many messages.
    pub(super) stamped: Option<u64>,
    pub(super) fault: Fault,
}

/// What is answered to messages of the feed.
struct Answers {
    reader: FeedReader,
    writer: OrderWriter,
    fault: Fault,
    malformed: u64,
}

impl Answers {
    fn new(transport: Transport, fault: Fault) -> Answers {
        Answers {
            reader: FeedReader::new(transport),
            writer: OrderWriter::new(),
            fault,
            malformed: 0,
        }
    }

    /// Has an order sent for each whole message of these bytes, which came at a time; how many of them were
    /// read. `send` is told the message's number.
    #[inline(always)]
    fn all(
        &mut self,
        bytes: &[u8],
        at: Nanos,
        mut send: impl FnMut(u64, &[u8]) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        let mut done = 0;
        while done < bytes.len() {
            let ((seq, price), len) = match self.reader.read(&bytes[done..]) {
                Ok(Some(tick)) => tick,
                Ok(None) => break,
                Err(_) => {
                    self.malformed += 1;
                    return Ok(bytes.len());
                }
            };
            done += len;
            let is_faulty = seq.is_multiple_of(100);
            let answer = match self.fault {
                Fault::LoseOrder if is_faulty => continue,
                Fault::WrongOrder if is_faulty => seq + 1_000_000,
                _ => seq,
            };
            send(seq, self.writer.write(answer, price, at))?;
        }
        Ok(done)
    }
}

/// Answers until the feed ends or `over` is set.
pub(super) fn run(
    feed: &FeedIn,
    orders: &mut TcpStream,
    manner: &Manner,
    clock: &Clock,
    over: &AtomicBool,
) -> Result<Outcome, Failure> {
    let &Manner {
        transport,
        backend,
        stamped,
        fault,
    } = manner;
    let failed = |e: io::Error| Failure::system(format!("the trader: {e}"));
    let open = |backend, stamped| match feed {
        FeedIn::Tcp(stream) => Inbox::open(stream, backend, stamped),
        FeedIn::Multicast(receiver) => Inbox::open(receiver, backend, stamped),
    };
    let mut inbox = open(backend, stamped.is_some()).map_err(failed)?;
    let mut stamps = match stamped {
        Some(_) => Some(SendStamps::enable(orders).map_err(failed)?),
        None => None,
    };
    let mut outcome = Outcome {
        remark: inbox.remark().map(str::to_owned),
        legs: Vec::with_capacity(stamped.unwrap_or(0) as usize),
        ..Outcome::default()
    };
    let mut answers = Answers::new(transport, fault);
    let mut rest: Vec<u8> = Vec::with_capacity(1 << 16);
    // Where each order ends in the stream of orders.
    let (mut bytes_sent, mut ends) = (0u32, Vec::with_capacity(stamped.unwrap_or(0) as usize));
    while !over.load(Ordering::Relaxed) {
        let (bytes, received, kernel_ns) = match inbox.recv(LOOK_NS).map_err(failed)? {
            Input::Bytes {
                bytes,
                tsc,
                kernel_ns,
            } => (bytes, tsc, kernel_ns.map_or(0, |ns| ns.get())),
            // A group never ends; the connection of orders does.
            Input::Nothing if matches!(orders.recv(&mut [0; 64]), Ok(Received::Closed)) => break,
            Input::Nothing => continue,
            Input::Closed => break,
        };
        // A stream's messages may come in parts; nearly always they do not, and are read where they are.
        let mut from = bytes;
        if !rest.is_empty() {
            rest.extend_from_slice(bytes);
            from = &rest;
        }
        let at = clock.nanos_at(received);
        let done = answers.all(from, at, |seq, order| {
            let send = tsc();
            orders.send(order).map_err(failed)?;
            if let Some(stamps) = &mut stamps {
                outcome.legs.push(TraderLeg {
                    number: seq - 1,
                    kernel_ns,
                    received,
                    send,
                    driver_ns: 0,
                });
                bytes_sent += order.len() as u32;
                ends.push(bytes_sent);
                // Behind the order, where it delays nothing.
                read_stamps(stamps, &mut outcome.legs, &ends);
            }
            Ok(())
        })?;
        if done < from.len() {
            let left = from[done..].to_vec();
            rest.clear();
            rest.extend_from_slice(&left);
        } else {
            rest.clear();
        }
    }
    if let Some(stamps) = &mut stamps {
        // The last ones come from the kernel's own time, which a busy machine may not have at once.
        for _ in 0..STAMP_LOOKS {
            std::thread::sleep(Duration::from_millis(5));
            read_stamps(stamps, &mut outcome.legs, &ends);
            if outcome.legs.iter().all(|leg| leg.driver_ns > 0) {
                break;
            }
        }
    }
    outcome.malformed = answers.malformed;
    Ok(outcome)
}

/// The same past the sockets: the feed from the driver's hook, spinning, until `over` is set or the exchange
/// closes.
pub(super) fn past(
    mut inlet: Inlet,
    mut orders: Entry,
    fault: Fault,
    clock: &Clock,
    over: &AtomicBool,
) -> Result<Outcome, Failure> {
    let failed = |e: io::Error| Failure::system(format!("the trader: {e}"));
    let mut answers = Answers::new(Transport::Multicast, fault);
    let (mut buffer, mut answer) = (vec![0; DATAGRAM_BYTES_MAX], [0; 64]);
    while !over.load(Ordering::Relaxed) {
        let Some((received, bytes)) = inlet.recv(&mut buffer).map_err(failed)? else {
            if matches!(orders.recv(&mut answer).map_err(failed)?, Received::Closed) {
                break;
            }
            std::hint::spin_loop();
            continue;
        };
        answers.all(bytes, clock.nanos_at(received), |_, order| {
            OrderOut::send(&mut orders, order).map_err(failed)
        })?;
    }
    Ok(Outcome {
        malformed: answers.malformed,
        ..Outcome::default()
    })
}

/// Notes when the driver had each order: by the place of its last byte in the stream, which counts modulo
/// 2^32; a run sends less.
fn read_stamps(stamps: &mut SendStamps, legs: &mut [TraderLeg], ends: &[u32]) {
    while let Some(stamp) = stamps.poll() {
        if let (Some(ns), Ok(i)) = (stamp.driver_ns, ends.binary_search(&(stamp.id + 1))) {
            legs[i].driver_ns = ns.get();
        }
    }
}

/// The floor: bytes in, bytes out, until the feed ends or `over` is set.
pub(super) fn bare(
    feed: &FeedIn,
    transport: Transport,
    orders: &TcpStream,
    backend: Backend,
    over: &AtomicBool,
) -> io::Result<()> {
    let (feed_len, order_len) = lengths(transport);
    let mut orders = StdStream::from(orders.as_fd().try_clone_to_owned()?);
    let socket: OwnedFd = match feed {
        FeedIn::Tcp(stream) => stream.as_fd().try_clone_to_owned()?,
        FeedIn::Multicast(receiver) => receiver.as_fd().try_clone_to_owned()?,
    };
    let order = vec![0; order_len];
    let mut answer = Answer {
        feed_len,
        order,
        rest: Vec::with_capacity(feed_len),
    };
    if matches!(backend, Backend::IoUring | Backend::IoUringSpin) {
        // The one way that needs more than a call: through the same ring as the product's.
        let mut inbox = Inbox::open(&socket, backend, false)?;
        while !over.load(Ordering::Relaxed) {
            match inbox.recv(LOOK_NS)? {
                Input::Bytes { bytes, .. } => answer.to(bytes, &mut orders)?,
                Input::Nothing => {}
                Input::Closed => break,
            }
        }
        return Ok(());
    }
    let blocks = matches!(backend, Backend::Block | Backend::BusyPoll);
    // Only sets the socket's options.
    let _options = blocks.then(|| Inbox::open(&socket, backend, false)).transpose()?;
    let watch = (backend == Backend::Epoll)
        .then(|| watched(&socket))
        .transpose()?;
    let waiting = socket.try_clone()?;
    let mut source = match transport {
        Transport::Tcp => Source::Tcp(StdStream::from(socket)),
        Transport::Multicast => Source::Udp(UdpSocket::from(socket)),
    };
    source.set_nonblocking(!blocks)?;
    let span = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_NS as i64,
    };
    let mut buffer = [0; MESSAGE_MAX];
    let mut events = Vec::with_capacity(1);
    while !over.load(Ordering::Relaxed) {
        match (backend, &watch) {
            (Backend::Poll, _) => {
                let mut fds = [PollFd::new(&waiting, PollFlags::IN)];
                if poll(&mut fds, Some(&span))? == 0 {
                    continue;
                }
            }
            (_, Some(watch)) => {
                events.clear();
                if epoll::wait(watch, rustix::buffer::spare_capacity(&mut events), Some(&span))? == 0 {
                    continue;
                }
            }
            _ => {}
        }
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => answer.to(&buffer[..len], &mut orders)?,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn watched(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &watch,
        socket,
        epoll::EventData::new_u64(0),
        epoll::EventFlags::IN,
    )?;
    Ok(watch)
}

enum Source {
    Tcp(StdStream),
    Udp(UdpSocket),
}

impl Source {
    fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
        match self {
            Source::Tcp(stream) => stream.set_nonblocking(yes),
            Source::Udp(socket) => socket.set_nonblocking(yes),
        }
    }

    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::Tcp(stream) => stream.read(buffer),
            Source::Udp(socket) => socket.recv(buffer),
        }
    }
}

/// Sends all of it: a connection that takes no more at the moment does a moment later.
fn send_whole(orders: &mut StdStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match orders.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                std::hint::spin_loop();
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Sends back the number of each message.
struct Answer {
    feed_len: usize,
    order: Vec<u8>,
    /// The beginning of a message of a stream whose end has not come yet.
    rest: Vec<u8>,
}

impl Answer {
    #[inline]
    fn to(&mut self, mut bytes: &[u8], orders: &mut StdStream) -> io::Result<()> {
        if !self.rest.is_empty() {
            let (end, others) = bytes.split_at(bytes.len().min(self.feed_len - self.rest.len()));
            self.rest.extend_from_slice(end);
            bytes = others;
            if self.rest.len() < self.feed_len {
                return Ok(());
            }
            self.order[8..16].copy_from_slice(&self.rest[8..16]);
            self.rest.clear();
            send_whole(orders, &self.order)?;
        }
        let messages = bytes.chunks_exact(self.feed_len);
        self.rest.extend_from_slice(messages.remainder());
        for message in messages {
            self.order[8..16].copy_from_slice(&message[8..16]);
            send_whole(orders, &self.order)?;
        }
        Ok(())
    }
}
