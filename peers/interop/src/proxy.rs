//! A wire between two engines that can be cut: what one side sends is lost first, then the connection, so
//! that the other finds a gap in the numbers when it is back.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What goes which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the initiator to the acceptor.
    Up,
    /// From the acceptor to the initiator.
    Down,
}

#[derive(Default)]
struct Shared {
    /// Bytes that way are lost.
    loses: [AtomicBool; 2],
    /// How many were.
    lost: [AtomicU64; 2],
    streams: Mutex<Vec<TcpStream>>,
}

/// A listening socket in front of another.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

fn copy(mut from: TcpStream, mut to: TcpStream, shared: &Shared, way: Way) {
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if shared.loses[way as usize].load(Ordering::Acquire) {
            shared.lost[way as usize].fetch_add(count as u64, Ordering::Relaxed);
        } else if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either side is gone: so is the other.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

impl Proxy {
    /// Listens on a free port of loopback, for connections to `to`.
    pub fn start(to: u16) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], to))) else {
                    continue;
                };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let clones = (
                    near.try_clone(),
                    far.try_clone(),
                    near.try_clone(),
                    far.try_clone(),
                );
                let (Ok(near_2), Ok(far_2), Ok(near_3), Ok(far_3)) = clones else {
                    continue;
                };
                of_thread
                    .streams
                    .lock()
                    .expect("no thread panics with it")
                    .extend([near_3, far_3]);
                let (up, down) = (of_thread.clone(), of_thread.clone());
                std::thread::spawn(move || copy(near, far, &up, Way::Up));
                std::thread::spawn(move || copy(far_2, near_2, &down, Way::Down));
            }
        });
        Ok(Proxy { port, shared })
    }

    /// From now on what goes that way is lost.
    pub fn lose(&self, way: Way) {
        self.shared.loses[way as usize].store(true, Ordering::Release);
    }

    /// Bytes that were lost that way.
    pub fn lost(&self, way: Way) -> u64 {
        self.shared.lost[way as usize].load(Ordering::Relaxed)
    }

    /// Ends the connections; those that come after lose nothing.
    pub fn cut(&self) {
        for stream in self
            .shared
            .streams
            .lock()
            .expect("no thread panics with it")
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for loses in &self.shared.loses {
            loses.store(false, Ordering::Release);
        }
    }
}
