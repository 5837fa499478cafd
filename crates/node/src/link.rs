//! The connection to the venue: made, lost, and made again with waits that grow.
//!
//! A lost connection is no end: market data goes on, and the session is taken up where it was. Connecting
//! waits for the peer, so a thread of its own does that. After as many attempts that failed as are configured
//! the run ends. Trader, strategies and quoter have this one link.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use tickwire_kernelpath::delegate::{Counts, Delegate, DelegateError, Way};
use tickwire_kernelpath::{KillSwitch, NotArmed, Shooting, Trigger, Waits};
use tickwire_market::Nanos;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_runtime::wait::{Waiter, Watch};

use crate::departures::{Departure, Departures};
use crate::hot::OrderOut;
use crate::settings::SendWay;
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

/// Where orders and quotes leave; nowhere while there is no connection. Sessions do not know whether the
/// kernel sends their bytes or they leave past it.
#[derive(Default)]
pub struct Entry {
    stream: Option<TcpStream>,
    /// With a connection only.
    delegate: Option<Box<Delegate>>,
    /// Where it is asked for.
    departures: Option<Box<Departures>>,
}

impl OrderOut for Entry {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match (&mut self.stream, &mut self.delegate) {
            (Some(stream), None) => {
                stream.send(bytes)?;
                self.count(bytes);
                Ok(())
            }
            (Some(stream), Some(delegate)) => {
                delegate.send(stream, bytes)?;
                count_frames(&mut self.departures, delegate);
                Ok(())
            }
            (None, _) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    #[inline]
    fn launch(&mut self, bytes: &[u8]) -> io::Result<()> {
        match (&mut self.stream, &mut self.delegate) {
            (Some(_), None) => self.send(bytes),
            (Some(stream), Some(delegate)) => {
                delegate.launch(stream, bytes)?;
                count_frames(&mut self.departures, delegate);
                Ok(())
            }
            (None, _) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    #[inline]
    fn rehearse(&mut self, bytes: &[u8]) {
        if let (Some(stream), Some(delegate)) = (&self.stream, &mut self.delegate) {
            delegate.rehearse(stream, bytes);
        }
    }

    fn may_arm(&mut self) -> Result<(), NotArmed> {
        match (&self.stream, &mut self.delegate) {
            (Some(stream), Some(delegate)) => delegate.may_arm(stream),
            _ => Err(NotArmed::ByKernel),
        }
    }

    fn arm(&mut self, waits: &Waits, bytes: &[u8]) -> Result<(), NotArmed> {
        match (&self.stream, &mut self.delegate) {
            (Some(stream), Some(delegate)) => delegate.arm(stream, waits, bytes),
            _ => Err(NotArmed::ByKernel),
        }
    }

    fn disarm(&mut self) -> io::Result<Option<Shooting>> {
        match (&mut self.stream, &mut self.delegate) {
            (Some(stream), Some(delegate)) => delegate.disarm(stream),
            _ => Ok(None),
        }
    }

    #[inline]
    fn shooting(&mut self) -> io::Result<Option<Shooting>> {
        match (&mut self.stream, &mut self.delegate) {
            (Some(stream), Some(delegate)) => delegate.shooting(stream),
            _ => Ok(None),
        }
    }

    #[inline]
    fn note(&mut self, sample: usize) {
        if let Some(departures) = &mut self.departures {
            departures.note(sample);
        }
    }

    #[inline]
    fn departure(&mut self, clock: &Clock, now: Nanos) -> Option<Departure> {
        self.departures.as_mut()?.poll(clock, now)
    }

    #[inline]
    fn settle(&mut self) -> io::Result<()> {
        match (&mut self.stream, &mut self.delegate) {
            (Some(stream), Some(delegate)) => delegate.settle(stream),
            _ => Ok(()),
        }
    }
}

/// Frames that have left past the kernel.
#[inline]
fn count_frames(departures: &mut Option<Box<Departures>>, delegate: &Delegate) {
    let Some(stamps) = departures else { return };
    match delegate.stamped() {
        Some(frames) => stamps.sent_until(frames),
        // A stamp would be another order's.
        None => *departures = None,
    }
}

impl Entry {
    /// Bytes that the kernel sends, or has taken to send.
    #[inline]
    fn count(&mut self, bytes: &[u8]) {
        if let Some(departures) = &mut self.departures {
            departures.sent(bytes.len());
        }
    }

    /// Lets a program send orders of this connection, if its bytes leave past the kernel.
    pub fn use_trigger(&mut self, trigger: Trigger) {
        if let Some(delegate) = &mut self.delegate {
            delegate.use_trigger(trigger);
        }
    }

    /// A connection, whose bytes the kernel sends. [`Link::entry`] makes those that leave past it.
    pub fn by_kernel(stream: TcpStream) -> Entry {
        Entry {
            stream: Some(stream),
            delegate: None,
            departures: None,
        }
    }

    /// A connection whose bytes leave past the kernel; who lets it go without a [`Link`] has them booked by
    /// [`Entry::recv`], which is to be called often.
    pub fn past_kernel(stream: TcpStream, delegate: Delegate) -> Entry {
        Entry {
            stream: Some(stream),
            delegate: Some(Box::new(delegate)),
            departures: None,
        }
    }

    /// The kill switch of orders that a program may send.
    pub fn kill_switch(&self) -> Option<KillSwitch> {
        self.delegate.as_ref()?.kill_switch()
    }

    /// What has come; nothing while there is no connection. When nothing has, what could not be sent at once
    /// is sent.
    ///
    /// # Errors
    /// As [`TcpStream::recv`] and [`TcpStream::flush`].
    #[inline]
    pub fn recv<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Received<'b>> {
        let Some(stream) = &mut self.stream else {
            return Ok(Received::Nothing);
        };
        let received = stream.recv(buffer)?;
        if matches!(received, Received::Nothing) {
            if stream.has_unsent() {
                stream.flush()?;
            }
            if let Some(delegate) = &mut self.delegate {
                delegate.tend(stream)?;
            }
        }
        Ok(received)
    }

    /// Says to the peer that nothing more will be sent.
    pub fn finish(&mut self) {
        if let Some(stream) = &mut self.stream {
            if let Some(delegate) = &mut self.delegate {
                // A failure is the connection's, which ends anyway.
                let _ = delegate.release(stream);
            }
            stream.finish();
        }
    }

    /// What has left past the kernel, and what has not and why; `None` if the kernel sends everything.
    pub fn counts(&self) -> Option<Counts> {
        self.delegate.as_ref().map(|delegate| delegate.counts())
    }
}

impl Drop for Entry {
    /// A session that is dropped is over, or lost; only a process that ends by force has its connections end
    /// by a reset.
    fn drop(&mut self) {
        if let (Some(stream), Some(delegate)) = (&mut self.stream, &mut self.delegate) {
            let _ = delegate.release(stream);
        }
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
    /// Where bytes leave past the kernel, while no connection has it.
    way: Option<Way>,
    /// What connections before this one have counted of that.
    counts: Counts,
    /// Whether the kernel is asked when what it sends has left.
    stamps: bool,
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
    /// Connects to the venue, waiting a little, and watches the connection. `attempts` says how often a lost
    /// one is tried again, and how long is waited before the first attempt, nanoseconds.
    ///
    /// # Errors
    /// The venue cannot be reached; with [`SendWay::Delegated`], why bytes cannot leave past the kernel, in
    /// words with the remedy.
    pub fn connect(
        address: SocketAddr,
        send: SendWay,
        meaning: &'static str,
        (attempts_max, wait_ns): (u32, u64),
        waiter: &mut Waiter,
        now: Nanos,
    ) -> Result<(Link, TcpStream), Failure> {
        let system = |error: &dyn std::fmt::Display| Failure::system(error.to_string());
        // Before the connection: a program that comes to an interface may stop it for a moment.
        let way = match send {
            SendWay::Kernel => None,
            SendWay::Delegated => Some(Way::towards(address).map_err(|why| not_delegated(&why))?),
        };
        let stream = TcpStream::connect(address, PATIENCE).map_err(|error| system(&error))?;
        let link = Link {
            address,
            meaning,
            attempts_max,
            wait_ns,
            watch: Some(waiter.watch(&stream)),
            attempts: 0,
            up_since: now,
            down: None,
            way,
            counts: Counts::default(),
            stamps: false,
            is_leaving: false,
        };
        Ok((link, stream))
    }

    /// Has the kernel asked when what is sent over connections to come has left: [`Link::entry`] says who
    /// stamps it. What leaves by AF_XDP is not stamped.
    pub fn stamp_what_is_sent(&mut self) {
        self.stamps = true;
    }

    /// A connection of this link as a session uses it, of which bytes leave as configured.
    ///
    /// # Errors
    /// Why they cannot leave past the kernel.
    pub fn entry(&mut self, stream: TcpStream) -> Result<Entry, Failure> {
        let (entry, why_not) = self.delegated(stream);
        if self.stamps {
            let stamped = match &entry.departures {
                Some(departures) => departures.in_use(self.address),
                None => "by nobody".to_owned(),
            };
            tickwire_console::note(format_args!(
                "what is sent to {} is stamped {stamped}",
                self.address
            ));
        }
        match why_not {
            Some(why) => Err(not_delegated(&why)),
            None => Ok(entry),
        }
    }

    /// The same for a connection that was made again: better by the kernel than not at all.
    pub fn entry_again(&mut self, stream: TcpStream) -> Entry {
        let (entry, why_not) = self.delegated(stream);
        if let Some(why) = why_not {
            self.say(format!("this connection's bytes are sent by the kernel: {why}"));
        }
        entry
    }

    fn delegated(&mut self, stream: TcpStream) -> (Entry, Option<DelegateError>) {
        let (delegate, why_not) = match self.way.take().map(|way| Delegate::new(way, &stream)) {
            None => (None, None),
            Some(Ok(delegate)) => {
                if self.counts == Counts::default() {
                    let (address, way) = (self.address, delegate.in_use());
                    tickwire_console::note(format_args!(
                        "what is sent to {address} leaves {way} and is booked afterwards"
                    ));
                }
                (Some(Box::new(delegate)), None)
            }
            Some(Err(refused)) => {
                self.way = Some(refused.way);
                (None, Some(refused.why))
            }
        };
        let mut delegate = delegate;
        let departures = match self.stamps {
            true => self.stamped(&stream, delegate.as_deref_mut()),
            false => None,
        };
        let entry = Entry {
            stream: Some(stream),
            delegate,
            departures,
        };
        (entry, why_not)
    }

    fn stamped(&self, stream: &TcpStream, delegate: Option<&mut Delegate>) -> Option<Box<Departures>> {
        let departures = match delegate {
            None => Departures::of_stream(stream, self.address).map(Some),
            Some(delegate) => delegate
                .stamps()
                .map(|stamps| Some(Departures::new(stamps?, self.address))),
        };
        match departures {
            Ok(departures) => departures.map(Box::new),
            Err(error) => {
                self.say(format!(
                    "the kernel does not stamp what is sent to {}: {error}",
                    self.address
                ));
                None
            }
        }
    }

    /// Closes a connection that is lost.
    pub fn close(&mut self, entry: &mut Entry) {
        self.counts = self.counts(entry);
        if let Some(delegate) = entry.delegate.take() {
            self.way = Some(delegate.into_way());
        }
        *entry = Entry::default();
    }

    /// What has left past the kernel over all connections of this link.
    pub fn counts(&self, entry: &Entry) -> Counts {
        let mut counts = self.counts;
        counts.merge(&entry.counts().unwrap_or_default());
        counts
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

fn not_delegated(why: &DelegateError) -> Failure {
    Failure::system(format!("send = \"delegated\": {why}"))
}

fn dial(address: SocketAddr) -> Result<Receiver<Result<TcpStream, String>>, Failure> {
    let (done, dialing) = channel();
    tickwire_runtime::affinity::beside("connect", move || {
        done.send(TcpStream::connect(address, PATIENCE).map_err(|e| e.to_string()))
    })
    .map_err(|e| Failure::system(format!("cannot start a thread that connects: {e}")))?;
    Ok(dialing)
}
