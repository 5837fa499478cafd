//! AF_XDP sockets: frames straight from an interface's receive queue, and straight to it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::sys::{self, Rings};
use super::{SocketMap, XdpError};

/// How an AF_XDP socket is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpSocketConfig {
    /// Frames for receiving, and as many for sending, 2 KiB each: a power of two. Default 16,384, 64 MiB
    /// together. When all are waiting to be read: the kernel drops what comes, and counts it.
    pub frames: u32,
    /// Whether frames are to be taken without a copy: `None` tries and goes on without.
    pub zero_copy: Option<bool>,
}

impl Default for XdpSocketConfig {
    fn default() -> XdpSocketConfig {
        XdpSocketConfig {
            frames: 1 << 14,
            zero_copy: None,
        }
    }
}

/// What was lost at a socket since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct XdpDrops {
    /// Frames for which there was no room for other reasons: too long, the interface going.
    pub other: u64,
    /// Frames that found the receive ring full: they were not read in time.
    pub ring_full: u64,
    /// How often the kernel found no frame to receive into.
    pub no_frame: u64,
}

impl XdpDrops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.other + self.ring_full + self.no_frame
    }
}

/// A socket bound to one receive queue of an interface.
#[derive(Debug)]
pub struct XdpSocket {
    rings: Rings,
    queue: u32,
    zero_copy: bool,
}

impl XdpSocket {
    /// Opens a socket at a queue. Programs reach it once it stands in their [`SocketMap`]; to send no program
    /// is needed.
    ///
    /// # Errors
    /// [`XdpError::NotPermitted`], [`XdpError::Socket`] with the reason.
    pub fn open(
        interface: (&str, u32),
        queue: u32,
        config: XdpSocketConfig,
        map: Option<&SocketMap>,
    ) -> Result<XdpSocket, XdpError> {
        XdpSocket::open_in(interface, queue, config, map, BUSY_TRIES)
    }

    /// The same to send only, with one try: a queue that has a socket already is busy at once.
    ///
    /// # Errors
    /// As [`XdpSocket::open`].
    pub fn open_to_send(interface: (&str, u32), queue: u32, frames: u32) -> Result<XdpSocket, XdpError> {
        let config = XdpSocketConfig {
            frames,
            ..XdpSocketConfig::default()
        };
        XdpSocket::open_in(interface, queue, config, None, 1)
    }

    fn open_in(
        interface: (&str, u32),
        queue: u32,
        config: XdpSocketConfig,
        map: Option<&SocketMap>,
        tries: u32,
    ) -> Result<XdpSocket, XdpError> {
        let (name, index) = interface;
        if !config.frames.is_power_of_two() || config.frames < 64 {
            return Err(XdpError::Frames {
                frames: config.frames,
            });
        }
        let wrong = |action| move |source| XdpError::socket(action, name, queue, source);
        let copies = match config.zero_copy {
            Some(true) => [Some(libc::XDP_ZEROCOPY), None],
            Some(false) => [Some(libc::XDP_COPY), None],
            None => [Some(libc::XDP_ZEROCOPY), Some(libc::XDP_COPY)],
        };
        let mut refused = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        for copy in copies.into_iter().flatten() {
            // A socket whose binding failed cannot be bound again.
            let rings = Rings::new(config.frames).map_err(wrong("make an AF_XDP socket"))?;
            match bind(&rings, index, queue, copy | libc::XDP_USE_NEED_WAKEUP, tries) {
                Ok(()) => {
                    let zero_copy = sys::is_zero_copy(rings.socket()).unwrap_or(false);
                    if let Some(map) = map {
                        map.put(queue, rings.socket().as_raw_fd())
                            .map_err(wrong("enter an AF_XDP socket into its map"))?;
                    }
                    return Ok(XdpSocket {
                        rings,
                        queue,
                        zero_copy,
                    });
                }
                Err(source) => refused = source,
            }
        }
        Err(wrong("bind an AF_XDP socket")(refused))
    }

    /// The next frame, `None` if there is none at the moment, and the `META` bytes in front of it: a
    /// program's metadata, or zeros. Never waits, and makes no system call unless the kernel asked for one.
    /// The frame goes back to the kernel with the next call.
    #[inline]
    pub fn recv<const META: usize>(&mut self) -> Option<([u8; META], &[u8])> {
        self.wake_if_asked();
        self.rings.receive()
    }

    /// The `META` bytes in front of the frame that [`XdpSocket::recv`] would give, which waits on; `None` if
    /// there is none at the moment.
    #[inline]
    pub fn look<const META: usize>(&mut self) -> Option<[u8; META]> {
        self.rings.look()
    }

    /// The frame behind the one that [`XdpSocket::recv`] would give, with the `META` bytes in front of it,
    /// for who wants its lines to be in the cache by then. `None` if none is known to be there: the kernel is
    /// not asked.
    #[inline]
    pub fn behind<const META: usize>(&self) -> Option<&[u8]> {
        self.rings.behind::<META>()
    }

    /// Does what the driver has asked for, without taking a frame.
    #[inline]
    pub fn wake_if_asked(&mut self) {
        if self.rings.needs_wake() {
            self.rings.wake();
        }
    }

    /// Whether a frame waits to be taken.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.rings.has_frame()
    }

    /// Puts a whole frame on the way; `false` if all frames for sending are on their way still, or if it is
    /// longer than 2 KiB. Nothing moves before [`XdpSocket::flush`].
    pub fn send(&mut self, frame: &[u8]) -> bool {
        self.rings.send(frame)
    }

    /// Starts what was put on the way. One system call, on cards without a copy only where the driver asks
    /// for it.
    ///
    /// # Errors
    /// What the kernel says; `EAGAIN` and `EBUSY`: call again.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.zero_copy && !self.rings.needs_kick() {
            return Ok(());
        }
        self.rings.kick()
    }

    /// The queue it is bound to.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// Whether frames are taken without a copy.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Whether its frames lie in huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.rings.has_huge_pages()
    }

    /// What was lost so far. A system call; not for the hot path.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn drops(&self) -> io::Result<XdpDrops> {
        let [other, _, _, ring_full, no_frame, _] = sys::statistics(self.rings.socket())?;
        Ok(XdpDrops {
            other,
            ring_full,
            no_frame,
        })
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rings.socket().as_fd()
    }
}

/// How often binding is tried, every 10 ms.
const BUSY_TRIES: u32 = 50;

/// Binds; a queue whose last socket has just gone is busy for a moment.
fn bind(rings: &Rings, interface: u32, queue: u32, flags: u16, tries: u32) -> io::Result<()> {
    for left in (0..tries).rev() {
        match rings.bind(interface, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && left > 0 => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            result => return result,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}
