//! Order entry: a byte stream that never waits, acknowledges as soon as there is no answer to do it with, and
//! is never delayed by Nagle's algorithm.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::trouble::Trouble;
use crate::{NetError, sys};

/// What a receive gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'b> {
    /// Some bytes, at least one.
    Bytes(&'b [u8]),
    /// Nothing at the moment.
    Nothing,
    /// The other side closed or reset the connection; nothing will come any more.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub struct TcpStream {
    stream: StdStream,
    peer: SocketAddr,
    /// What the kernel did not take yet, from `unsent_from` on. Bounded by `UNSENT_BYTES_MAX`.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// Bytes have come and nothing was sent since.
    owes_acknowledgement: bool,
    /// The other side ended it by a reset.
    was_reset: bool,
    /// Bytes that the kernel has taken, and given, since the connection was made.
    taken: u64,
    received: u64,
}

/// How many bytes may wait in a [`TcpStream`] after the kernel's own buffer is full. Beyond that,
/// [`TcpStream::send`] fails: the other side has stopped reading.
pub const UNSENT_BYTES_MAX: usize = 1 << 20;

impl TcpStream {
    /// Connects, waiting up to `timeout`.
    ///
    /// # Errors
    /// One sentence each for: refused, no answer, no route.
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<TcpStream, NetError> {
        let failed = |source| NetError::connect(address, timeout.as_millis() as u64, source);
        let stream = sys::connect_tcp(address, timeout).map_err(failed)?;
        TcpStream::new(stream, address).map_err(failed)
    }

    fn new(stream: StdStream, peer: SocketAddr) -> io::Result<TcpStream> {
        sys::prepare_tcp(&stream)?;
        let stream = TcpStream {
            stream,
            peer,
            unsent: Vec::with_capacity(UNSENT_BYTES_MAX),
            unsent_from: 0,
            owes_acknowledgement: false,
            was_reset: false,
            taken: 0,
            received: 0,
        };
        Ok(stream)
    }

    /// Acknowledges what was received, unless an answer has done so. An acknowledgement is a packet of its
    /// own, which an answer must not wait for; a peer with Nagle's algorithm (RFC 896) waits for it before it
    /// sends its next small message, and Linux would delay it by up to 40 ms. [`TcpStream::recv`] does it
    /// when there is nothing more; call it before a sleep without such a receive.
    #[inline]
    pub fn acknowledge(&mut self) {
        if std::mem::take(&mut self.owes_acknowledgement) {
            // A refusal costs latency, not correctness.
            let _ = sys::set_option(self.stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        }
    }

    /// The next bytes, if any. Never waits.
    ///
    /// # Errors
    /// What the kernel says, except an orderly or abrupt end, which is [`Received::Closed`].
    #[inline]
    pub fn recv<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Received<'b>> {
        match sys::read(&mut self.stream, buf) {
            Ok(0) => Ok(Received::Closed),
            Ok(len) => {
                self.owes_acknowledgement = true;
                self.received += len as u64;
                Ok(Received::Bytes(&buf[..len]))
            }
            Err(error) => match (Trouble::of(&error), error.kind()) {
                // Without memory the bytes stay where they are, and so does the connection.
                (Trouble::WouldBlock | Trouble::Resource, _) => {
                    self.acknowledge();
                    Ok(Received::Nothing)
                }
                (_, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                    self.was_reset = true;
                    Ok(Received::Closed)
                }
                _ => Err(error),
            },
        }
    }

    /// Sends all of `bytes`: at once as far as the kernel takes them, the rest is kept and sent first by the
    /// next call or by [`TcpStream::flush`]. Never waits.
    ///
    /// # Errors
    /// `WouldBlock` when more than [`UNSENT_BYTES_MAX`] would be kept (nothing of `bytes` is sent then), or
    /// what the kernel says.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.has_unsent() {
            let sent = write_some(&self.stream, bytes)?;
            self.taken += sent as u64;
            self.owes_acknowledgement &= sent == 0;
            return if sent == bytes.len() {
                Ok(())
            } else {
                self.keep(&bytes[sent..])
            };
        }
        self.keep(bytes)?;
        self.flush().map(drop)
    }

    #[cold]
    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.drain(..self.unsent_from);
        self.unsent_from = 0;
        if self.unsent.len() + bytes.len() > UNSENT_BYTES_MAX {
            let reason = format!(
                "{} has stopped reading: {} bytes wait to be sent",
                self.peer,
                self.unsent.len()
            );
            return Err(io::Error::new(io::ErrorKind::WouldBlock, reason));
        }
        self.unsent.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends what was kept; `true` when nothing is left.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.has_unsent() {
            match write_some(&self.stream, &self.unsent[self.unsent_from..])? {
                0 => return Ok(false),
                sent => {
                    self.unsent_from += sent;
                    self.taken += sent as u64;
                }
            }
        }
        Ok(true)
    }

    /// Whether bytes wait to be sent.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent_from < self.unsent.len()
    }

    /// Gives the kernel bytes as [`TcpStream::send`] does, but keeps nothing that it does not take, and says
    /// so.
    pub(crate) fn hand_over(&self, bytes: &[u8]) -> io::Result<usize> {
        sys::write(&self.stream, bytes)
    }

    /// So many bytes were handed over.
    pub(crate) fn note_taken(&mut self, bytes: usize) {
        self.taken += bytes as u64;
    }

    /// Bytes that the kernel has taken since the connection was made.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes that were received since then.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Our own end.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// The other side.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the end of the connection was abrupt: a reset, not a close.
    pub fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Whether closing ends the connection by a reset, at once and with whatever waits to be sent, and so
    /// does the end of the process. Default: in good order.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_reset_on_close(&self, resets: bool) -> io::Result<()> {
        let linger = sys::Linger {
            is_on: resets.into(),
            seconds: 0,
        };
        sys::set_option(self.stream.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, linger)
    }

    /// Says that nothing more will be sent; what the other side still sends can be received.
    pub fn finish(&mut self) {
        // Fails only when the connection is gone, which is what was wanted.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

/// Writes what the kernel takes now, perhaps nothing.
#[inline]
fn write_some(stream: &StdStream, bytes: &[u8]) -> io::Result<usize> {
    match sys::write(stream, bytes) {
        Ok(sent) => Ok(sent),
        Err(error) => match Trouble::of(&error) {
            // What the kernel has no memory for now is kept and sent later, like what it has no room for.
            Trouble::WouldBlock | Trouble::Resource => Ok(0),
            _ => Err(error),
        },
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Where connections come in.
#[derive(Debug)]
pub struct TcpListener {
    listener: StdListener,
}

impl TcpListener {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// One sentence each for: port in use, address not of this machine, not permitted.
    pub fn bind(address: SocketAddr) -> Result<TcpListener, NetError> {
        let bind = |source| NetError::bind("TCP", address, source);
        let listener = sys::tcp_listener(address).map_err(bind)?;
        Ok(TcpListener { listener })
    }

    /// The next connection, `None` if there is none at the moment. Never waits.
    ///
    /// # Errors
    /// What the kernel says, about one connection or about all: to be counted and tried again, see
    /// [`crate::trouble`].
    pub fn accept(&mut self) -> io::Result<Option<TcpStream>> {
        match sys::accept(&self.listener) {
            Ok((stream, peer)) => TcpStream::new(stream, peer).map(Some),
            Err(error) => match Trouble::of(&error) {
                // The peer went while it waited.
                Trouble::WouldBlock | Trouble::PeerGone => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// The address and port bound.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
