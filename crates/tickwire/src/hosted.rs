//! The simulated exchange within a program: for tests of who trades with it.
//!
//! ```
//! use tickwire::hosted::HostedExchange;
//! use tickwire_venues::protocol::Protocol;
//!
//! let mut config = HostedExchange::on_free_ports(Protocol::Itch50)?;
//! config.exchange.symbols = 4.0.try_into()?;
//! let exchange = HostedExchange::start(config)?;
//! // Its day begins with the directory and the first orders; orders of clients are taken from then on.
//! exchange.wait_until_open(std::time::Duration::from_secs(30))?;
//! let at = exchange.config().order_entry.address;
//! assert!(at.ip().is_loopback() && at.port() != 0);
//! std::net::TcpStream::connect(at)?;
//! let results = exchange.stop()?;
//! assert!(results.orders.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwire_console::failure::Failure;
use tickwire_control::results::ExchangeResults;
use tickwire_market::Port;
use tickwire_runtime::signal::StopFlag;
use tickwire_simulator::venue::{self, DayPhase, HostNotice, Listening};
use tickwire_venues::protocol::Protocol;

use crate::config::Config;
use crate::demo::free_udp_port;

/// How long an exchange may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How often whoever waits for its market looks whether it is there at all.
const LOOK: Duration = Duration::from_millis(50);

/// An exchange in a thread of this process. It ends with its session, when it is stopped, and when it is
/// dropped.
#[derive(Debug)]
pub struct HostedExchange {
    config: Config,
    listening: Listening,
    stop: StopFlag,
    day: Arc<Day>,
    thread: Option<JoinHandle<Result<ExchangeResults, Failure>>>,
}

/// How far its day has come.
#[derive(Debug)]
struct Day {
    phase: Mutex<DayPhase>,
    changed: Condvar,
}

impl HostedExchange {
    /// The configuration of an exchange with one feed on loopback, its groups on UDP ports that nobody has
    /// now, its servers and order entry on TCP ports that the kernel chooses. Clients that nobody named are
    /// let in, and their orders are cancelled when they go.
    ///
    /// # Errors
    /// No port is free.
    pub fn on_free_ports(protocol: Protocol) -> Result<Config, Failure> {
        tickwire_venues::wiring::check_published(protocol)?;
        let mut config = Config::of_protocols(&[protocol]);
        config.order_entry.address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        config.order_entry.anyone = true;
        for feed in &mut config.feed {
            for channel in &mut feed.channels {
                let lines = [
                    Some(&mut channel.live),
                    channel.retransmission.as_mut(),
                    channel.snapshot.as_mut(),
                    channel.snapshot_by_order.as_mut(),
                    channel.definitions.as_mut(),
                ];
                for lines in lines.into_iter().flatten() {
                    lines.a.set_port(free_udp_port()?);
                    if let Some(b) = &mut lines.b {
                        b.set_port(free_udp_port()?);
                    }
                }
                for port in Port::ALL {
                    if let Some(server) = channel.server_mut(port) {
                        server.set_port(0);
                    }
                }
            }
        }
        Ok(config)
    }

    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// The configuration contradicts itself, or an address is taken.
    pub fn start(mut config: Config) -> Result<HostedExchange, Failure> {
        config.check().map_err(Failure::config)?;
        let (sender, receiver) = channel();
        let stop = StopFlag::new();
        let (own, market) = (stop.clone(), config.market());
        let day = Arc::new(Day {
            phase: Mutex::new(DayPhase::Waiting),
            changed: Condvar::new(),
        });
        let told = day.clone();
        let thread = tickwire_runtime::affinity::beside("tickwire-exchange", move || {
            venue::host(&market, &own, &mut |notice| match notice {
                HostNotice::Listening(listening) => {
                    // Who waits for it may be gone.
                    let _ = sender.send(listening);
                }
                HostNotice::Phase(phase) => {
                    *told.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
                    told.changed.notify_all();
                }
            })
        })
        .map_err(|e| Failure::system(format!("cannot start a thread: {e}")))?;
        let listening = match receiver.recv_timeout(START_PATIENCE) {
            Ok(listening) => listening,
            Err(RecvTimeoutError::Timeout) => {
                stop.stop();
                return Err(Failure::system("the exchange did not start within 30 s"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(match joined(thread) {
                    Err(failure) => failure,
                    Ok(_) => Failure::system("the exchange ended before it listened"),
                });
            }
        };
        config.order_entry.address.set_port(listening.order_entry);
        if let [feed] = &mut config.feed[..]
            && let [channel] = &mut feed.channels[..]
        {
            for (name, number) in &listening.servers {
                for port in Port::ALL.into_iter().filter(|port| port.name() == name) {
                    if let Some(server) = channel.server_mut(port) {
                        server.set_port(*number);
                    }
                }
            }
        }
        Ok(HostedExchange {
            config,
            listening,
            stop,
            day,
            thread: Some(thread),
        })
    }

    /// Its configuration with the ports that it listens on: what `tickwire trade`, `feed` and a strategy's
    /// program need, too.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where it listens.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Waits until its market is open: orders that come before are rejected.
    ///
    /// # Errors
    /// It does not open within so long, has ended, or opens at the first logon only
    /// (`exchange.start_on_logon`).
    pub fn wait_until_open(&self, patience: Duration) -> Result<(), Failure> {
        if self.config.exchange.start_on_logon {
            return Err(Failure::config(
                "exchange.start_on_logon: its market opens when somebody logs on, and is not waited for",
            ));
        }
        let deadline = Instant::now() + patience;
        let mut phase = self.day.phase.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *phase {
                DayPhase::Waiting | DayPhase::Opening if self.is_running() => {}
                DayPhase::Open => return Ok(()),
                _ => {
                    return Err(Failure::system(
                        "the exchange ended while its opening was waited for",
                    ));
                }
            }
            if Instant::now() >= deadline {
                return Err(Failure::system(format!(
                    "the exchange's market did not open within {:.0} s",
                    patience.as_secs_f64()
                )));
            }
            let waited = self.day.changed.wait_timeout(phase, LOOK);
            phase = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether its session goes on.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it: what came of it.
    ///
    /// # Errors
    /// Why it had ended by itself, if that was a failure.
    pub fn stop(mut self) -> Result<ExchangeResults, Failure> {
        self.stop.stop();
        match self.thread.take() {
            Some(thread) => joined(thread),
            None => Err(Failure::system("the exchange has ended")),
        }
    }
}

fn joined(thread: JoinHandle<Result<ExchangeResults, Failure>>) -> Result<ExchangeResults, Failure> {
    match thread.join() {
        Ok(ended) => ended,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Drop for HostedExchange {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
