//! The connection to the venue: made, lost, and made again with waits that grow.
//!
//! A lost connection is no end: market data goes on, and the session is taken up where it was. Connecting
//! waits for the peer, so a thread of its own does that. After as many attempts that failed as are configured
//! the run ends. Trader, strategies and quoter have this one link.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tickwire_market::Nanos;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::wait::{Waiter, Watch};

use crate::hot::OrderOut;
use tickwire_console::failure::Failure;

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait between two.
const WAIT_MAX_NS: u64 = 5 * Nanos::SECOND;
/// A connection that lasted so long was one: attempts are counted anew.
const LASTING_NS: u64 = 5 * Nanos::SECOND;

impl OrderOut for TcpStream {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        TcpStream::send(self, bytes)
    }
}

/// Where orders and quotes leave; nowhere while there is no connection.
pub struct Entry(pub Option<TcpStream>);

impl OrderOut for Entry {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Some(stream) => stream.send(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Entry {
    /// What has come; nothing while there is no connection. When nothing has, what could not be sent at once
    /// is sent.
    ///
    /// # Errors
    /// As [`TcpStream::recv`] and [`TcpStream::flush`].
    #[inline]
    pub fn recv<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Received<'b>> {
        let Some(stream) = &mut self.0 else {
            return Ok(Received::Nothing);
        };
        let received = stream.recv(buffer)?;
        if matches!(received, Received::Nothing) && stream.has_unsent() {
            stream.flush()?;
        }
        Ok(received)
    }
}

/// See the module's description.
pub struct Link {
    address: SocketAddr,
    /// Said behind the reason of a loss: what it means for what is live at the venue.
    meaning: &'static str,
    attempts_max: u32,
    wait_ns: u64,
    watch: Option<Watch>,
    /// Since the connection last lasted.
    attempts: u32,
    up_since: Nanos,
    down: Option<Down>,
    /// We have logged out: its end is no loss.
    is_leaving: bool,
}

/// There is no connection.
struct Down {
    why: String,
    due: Nanos,
    dialing: Option<Receiver<Result<TcpStream, String>>>,
}

impl Link {
    /// With a connection, which is watched.
    pub fn new(
        address: SocketAddr,
        meaning: &'static str,
        attempts_max: u32,
        wait_ns: u64,
        watch: Watch,
        now: Nanos,
    ) -> Link {
        Link {
            address,
            meaning,
            attempts_max,
            wait_ns,
            watch: Some(watch),
            attempts: 0,
            up_since: now,
            down: None,
            is_leaving: false,
        }
    }

    /// Tells the terminal.
    pub fn say(&self, line: String) {
        tickwire_console::warn(format_args!("{line}"));
    }

    /// We have logged out: the venue closes the connection, as it should.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether there is a connection.
    pub fn is_up(&self) -> bool {
        self.down.is_none()
    }

    /// Where the venue listens.
    pub fn peer(&self) -> SocketAddr {
        self.address
    }

    /// It is lost. [`Link::mend`] is to be called from time to time.
    pub fn lost(&mut self, now: Nanos, why: String, waiter: &mut Waiter) {
        if let Some(watch) = self.watch.take() {
            waiter.forget(watch);
        }
        if now.since(self.up_since) > LASTING_NS {
            self.attempts = 0;
        }
        if !self.is_leaving {
            self.say(format!("{why}; {}", self.meaning));
        }
        self.fail(now, why);
    }

    fn fail(&mut self, now: Nanos, why: String) {
        let wait = self.wait_ns << self.attempts.min(16);
        self.down = Some(Down {
            why,
            due: now.after(wait.min(WAIT_MAX_NS)),
            dialing: None,
        });
    }

    /// Tries to make a connection when that is due; the connection once there is one.
    ///
    /// # Errors
    /// It was tried as often as it may be.
    pub fn mend(&mut self, now: Nanos, waiter: &mut Waiter) -> Result<Option<TcpStream>, Failure> {
        let Some(down) = &mut self.down else {
            return Ok(None);
        };
        let Some(dialing) = &down.dialing else {
            if now >= down.due {
                if self.attempts >= self.attempts_max {
                    let tried = match self.attempts_max {
                        0 => String::new(),
                        _ => format!("; {} attempts to take the session up again failed", self.attempts),
                    };
                    return Err(Failure::peer_lost(format!(
                        "{}{tried}; {}",
                        down.why, self.meaning
                    )));
                }
                self.attempts += 1;
                down.dialing = Some(dial(self.address)?);
            }
            return Ok(None);
        };
        let why = match dialing.try_recv() {
            Ok(Ok(stream)) => {
                self.say(format!("connected again, attempt {}", self.attempts));
                self.watch = Some(waiter.watch(&stream));
                (self.down, self.up_since) = (None, now);
                return Ok(Some(stream));
            }
            Ok(Err(why)) => why,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => "the thread that connects ended".to_string(),
        };
        self.fail(now, why);
        Ok(None)
    }
}

fn dial(address: SocketAddr) -> Result<Receiver<Result<TcpStream, String>>, Failure> {
    let (done, dialing) = channel();
    std::thread::Builder::new()
        .name("connect".into())
        .spawn(move || done.send(TcpStream::connect(address, PATIENCE).map_err(|e| e.to_string())))
        .map_err(|e| Failure::system(format!("cannot start a thread that connects: {e}")))?;
    Ok(dialing)
}
