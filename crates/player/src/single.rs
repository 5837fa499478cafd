//! One at a time: a packet goes out, the order that it causes is waited for, then the next. Strictly closed
//! loop: what a system takes for one packet when it has nothing else to do.
//!
//! ```text
//! before ── send() ── sent        ... the system under test ...        recv() ── the order's first bytes
//!   └───────────────────────────── N-1 ─────────────────────────────────┘
//! ```
//! Times are the time stamp counter of this process. N-1, from the last byte of the packet sent to the first
//! byte of the order received, begins *before* the call that sends: a local receiver may run before the call
//! returns, and an upper bound is the honest one. What the call took is kept beside it. 1-1, from first byte
//! to first byte, is computed by the formula of the published measurement: `N-1 + 6.4 * int((N + 7) / 8)`
//! nanoseconds, what a frame of N bytes takes on Ethernet of 10 Gbit/s.
//!
//! WIRE ends before the receiving side's TCP does anything: when the frame of the order entered this side's
//! stack, as the kernel stamped it. It is there where stamps were asked for ([`OrderPort::stamp`]).

use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV4};
use std::num::NonZeroU64;

use tickwire_fix::{
    Again, CompId, Event, ExecType, ExecutionReport, Id, NewOrderSingle, OrdStatus, Role, Session,
    SessionConfig,
};
use tickwire_market::{Nanos, Qty, Symbol};
use tickwire_runtime::clock::{Clock, tsc, wall};
use tickwire_runtime::inbox::{Backend, Inbox, Input};
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};

use crate::FRAME_HEADERS;
use tickwire_console::failure::Failure;

/// What counts as an order on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum OrdersAre {
    /// FIX 4.4 NewOrderSingle of a session that logs on here; each is answered as expired once it is measured
    Fix,
    /// Any bytes
    Bytes,
}

/// An order that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// After the call that gave its first bytes.
    pub ticks: u64,
    /// What it says; `None` where any bytes are an order.
    pub order: Option<NewOrderSingle>,
    /// How many bytes came in that call: the order's own length, where it came alone.
    pub bytes: u32,
    /// When the frame entered this side's stack (the last of those that came in that call), nanoseconds of
    /// `CLOCK_REALTIME`; `None` unless it was asked for and the kernel said it.
    pub kernel_ns: Option<NonZeroU64>,
}

/// Where the system under test connects and sends its orders.
pub struct OrderPort {
    listener: TcpListener,
    stream: Option<TcpStream>,
    /// The same connection, read with the kernel's receive times.
    inbox: Option<Inbox>,
    is_stamped: bool,
    session: Option<Session>,
    is_logged_on: bool,
    /// When the first bytes came that no order has been made of yet.
    begun: Option<(u64, Option<NonZeroU64>)>,
    /// Orders that were not taken yet; bounded by what one receive buffer holds.
    arrivals: std::collections::VecDeque<Arrival>,
    /// Orders to answer, in the quiet after a sample.
    unanswered: Vec<NewOrderSingle>,
    exec_id: u64,
    buffer: Vec<u8>,
}

/// Why no order came.
#[derive(Clone, Debug)]
pub enum PortError {
    /// The connection is gone.
    Closed,
    /// Receiving failed; the system's own sentence.
    Io(String),
    /// The session ended, or said something that a client does not say.
    Session(String),
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Failure {
        match error {
            PortError::Closed => {
                Failure::peer_lost("the system under test closed its order connection before the end")
            }
            PortError::Io(text) => Failure::system(format!("receiving orders failed: {text}")),
            PortError::Session(text) => Failure::peer_lost(text),
        }
    }
}

impl OrderPort {
    /// Listens; `ids` are our CompID and the client's.
    pub fn listen(
        address: SocketAddrV4,
        orders_are: OrdersAre,
        ids: [Symbol; 2],
    ) -> Result<OrderPort, Failure> {
        let listener =
            TcpListener::bind(SocketAddr::V4(address)).map_err(|e| Failure::system(e.to_string()))?;
        let session = (orders_are == OrdersAre::Fix).then(|| {
            let [ours, theirs] = ids.map(|id| CompId::new(id.as_bytes()).expect("a symbol fits a CompID"));
            let mut config = SessionConfig::new(Role::Acceptor, ours, theirs);
            config.reset_on_logon = true;
            Session::new(config)
        });
        Ok(OrderPort {
            listener,
            stream: None,
            inbox: None,
            is_stamped: false,
            session,
            is_logged_on: false,
            begun: None,
            arrivals: std::collections::VecDeque::with_capacity(1024),
            unanswered: Vec::with_capacity(1024),
            exec_id: 0,
            buffer: vec![0; 1 << 16],
        })
    }

    /// Asks for the kernel's receive times, from the connection on: see [`Arrival::kernel_ns`]. To be called
    /// before it is there. They begin some time after the first socket has asked
    /// ([`tickwire_runtime::inbox::await_receive_stamps`]).
    #[must_use]
    pub fn stamp(mut self) -> OrderPort {
        self.is_stamped = true;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.listener
            .local_addr()
            .map_err(|e| Failure::system(e.to_string()))
    }

    /// Whether a system is connected and, over FIX, logged on. Call again and again until it is.
    pub fn is_ready(&mut self, clock: &Clock) -> Result<bool, PortError> {
        if self.stream.is_none() {
            let accepted = self.listener.accept();
            let Some(stream) = accepted.map_err(|e| PortError::Io(e.to_string()))? else {
                return Ok(false);
            };
            if self.is_stamped {
                let inbox = Inbox::open(&stream, Backend::Spin, true);
                self.inbox = Some(inbox.map_err(|e| PortError::Io(e.to_string()))?);
            }
            self.stream = Some(stream);
            if let Some(session) = &mut self.session {
                session.handle_connected(clock.now());
            }
        }
        if self.session.is_some() && !self.is_logged_on {
            self.receive(clock)?;
            return Ok(self.is_logged_on);
        }
        Ok(true)
    }

    /// The next order, if it has come. Never waits.
    #[inline]
    pub fn poll(&mut self, clock: &Clock) -> Result<Option<Arrival>, PortError> {
        if self.arrivals.is_empty() {
            self.receive(clock)?;
        }
        Ok(self.arrivals.pop_front())
    }

    #[inline]
    fn receive(&mut self, clock: &Clock) -> Result<(), PortError> {
        let Some((len, ticks, kernel_ns)) = self.take()? else {
            return Ok(());
        };
        let begun = *self.begun.get_or_insert((ticks, kernel_ns));
        if self.session.is_none() {
            self.begun = None;
            self.arrivals.push_back(Arrival {
                ticks: begun.0,
                order: None,
                bytes: len as u32,
                kernel_ns: begun.1,
            });
            return Ok(());
        };
        let now = clock.nanos_at(ticks);
        let (mut from, mut is_idle) = (0, false);
        while from < len {
            let Some(session) = &mut self.session else { break };
            let taken = session.handle_bytes(now, &self.buffer[from..len]);
            from += taken;
            let heard = self.hear(now, begun, len as u32)?;
            // What the session has to say must be out before it takes more. Twice nothing: a logon of
            // somebody else's.
            self.transmit()?;
            if taken == 0 && !heard && std::mem::replace(&mut is_idle, true) {
                return Err(PortError::Session(
                    "the system under test sends what its session does not take".into(),
                ));
            }
        }
        self.hear(now, begun, len as u32)?;
        if ends_message(&self.buffer[..len]) {
            self.begun = None;
        }
        self.transmit()
    }

    /// Bytes of the connection, into the buffer: how many, when the call had returned, when the kernel had
    /// them; `None` if there are none.
    #[inline]
    fn take(&mut self) -> Result<Option<(usize, u64, Option<NonZeroU64>)>, PortError> {
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let failed = |e: io::Error| PortError::Io(e.to_string());
        let Some(inbox) = &mut self.inbox else {
            return match stream.recv(&mut self.buffer).map_err(failed)? {
                Received::Nothing => Ok(None),
                Received::Bytes(bytes) => Ok(Some((bytes.len(), tsc(), None))),
                Received::Closed => Err(PortError::Closed),
            };
        };
        match inbox.recv(0).map_err(failed)? {
            Input::Nothing => Ok(None),
            Input::Closed => Err(PortError::Closed),
            Input::Bytes {
                bytes,
                tsc,
                kernel_ns,
            } => {
                let len = bytes.len();
                self.buffer[..len].copy_from_slice(bytes);
                Ok(Some((len, tsc, kernel_ns)))
            }
        }
    }

    /// Takes what the session has to tell; whether there was anything.
    fn hear(&mut self, now: Nanos, begun: (u64, Option<NonZeroU64>), bytes: u32) -> Result<bool, PortError> {
        let Some(session) = &mut self.session else {
            return Ok(false);
        };
        let mut heard = false;
        while let Some(event) = session.poll_event() {
            heard = true;
            match event {
                Event::LoggedOn { .. } => self.is_logged_on = true,
                Event::Message { .. } => {
                    let Some(message) = session.message() else {
                        continue;
                    };
                    let order = match message.msg_type() {
                        NewOrderSingle::MSG_TYPE => NewOrderSingle::decode(&message),
                        _ => {
                            session.refuse(now);
                            continue;
                        }
                    };
                    let order = match order {
                        Ok(order) => order,
                        Err(fault) => {
                            session.reject(now, fault);
                            continue;
                        }
                    };
                    self.arrivals.push_back(Arrival {
                        ticks: begun.0,
                        order: Some(order),
                        bytes,
                        kernel_ns: begun.1,
                    });
                    self.unanswered.push(order);
                }
                Event::Rejected { text, .. } => {
                    return Err(PortError::Session(format!(
                        "the system under test rejected a report: {}",
                        text.as_str()
                    )));
                }
                Event::Disconnect { reason, text } => {
                    return Err(PortError::Session(format!(
                        "the order session ended: {reason} {}",
                        text.as_str()
                    )));
                }
                _ => {}
            }
        }
        Ok(heard)
    }

    /// Sends what the session has to say.
    fn transmit(&mut self) -> Result<(), PortError> {
        let (Some(session), Some(stream)) = (&mut self.session, &mut self.stream) else {
            return Ok(());
        };
        let mut chunk = [0; 4096];
        while let Some(bytes) = session.poll_transmit(&mut chunk) {
            stream.send(bytes).map_err(|e| PortError::Io(e.to_string()))?;
        }
        Ok(())
    }

    /// Answers the orders that came: expired, as immediate-or-cancel orders that found nobody. Keeps the
    /// session alive.
    pub fn settle(&mut self, clock: &Clock) -> Result<(), PortError> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let now = clock.now();
        if session.poll_timeout().is_some_and(|due| due <= now) {
            session.handle_timeout(now);
        }
        for order in self.unanswered.drain(..) {
            self.exec_id += 1;
            let report = expired(&order, self.exec_id, now);
            session
                .send(now, ExecutionReport::MSG_TYPE, Again::Resend, |e, stamp| {
                    report.encode(e, stamp)
                })
                .map_err(|e| PortError::Session(format!("a report could not be sent: {e:?}")))?;
        }
        self.transmit()
    }
}

/// Whether the last byte is the end of a FIX message: `<SOH>10=nnn<SOH>`. If not, the next bytes belong to
/// one that has begun.
fn ends_message(bytes: &[u8]) -> bool {
    matches!(bytes, [.., 1, b'1', b'0', b'=', _, _, _, 1])
}

fn expired(order: &NewOrderSingle, number: u64, now: Nanos) -> ExecutionReport {
    ExecutionReport {
        order_id: Id::from_number(number),
        exec_id: Id::from_number(number),
        exec_type: ExecType::Canceled,
        ord_status: OrdStatus::Canceled,
        stop: None,
        leaves_qty: Qty::ZERO,
        transact_time: now,
        ..ExecutionReport::of(order)
    }
}

/// What one packet led to.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The real-time clock, right before [`Exchange::before`]; zero where nothing is stamped.
    pub wall: Nanos,
    /// Before the call that sent it.
    pub before: u64,
    /// After it.
    pub sent: u64,
    /// The first order, if one came in time.
    pub arrival: Option<Arrival>,
}

/// Sends a packet and waits for the order that it causes, at most `patience` ticks.
#[inline]
pub fn exchange(
    port: &mut OrderPort,
    clock: &Clock,
    patience: u64,
    send: impl FnOnce() -> io::Result<()>,
) -> Result<Exchange, Failure> {
    let wall = match port.is_stamped {
        true => wall(),
        false => Nanos::ZERO,
    };
    let before = tsc();
    send().map_err(|e| Failure::system(format!("sending a packet failed: {e}")))?;
    let sent = tsc();
    loop {
        if let Some(arrival) = port.poll(clock)? {
            return Ok(Exchange {
                wall,
                before,
                sent,
                arrival: Some(arrival),
            });
        }
        if tsc().saturating_sub(sent) >= patience {
            return Ok(Exchange {
                wall,
                before,
                sent,
                arrival: None,
            });
        }
    }
}

/// What is kept of every packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Number of the packet, from 1.
    pub packet: u64,
    /// Bytes of its UDP payload.
    pub payload_len: u32,
    /// Its Ethernet frame, without the check sequence.
    pub frame_len: u32,
    /// Messages in it, where they were counted.
    pub entries: Option<u32>,
    /// Last byte sent to first byte received; `None`: no order came in time.
    pub n1_ns: Option<u64>,
    /// To the order's frame in this side's stack, where it was stamped.
    pub wire_ns: Option<u64>,
    /// What the call that sent took.
    pub call_ns: u64,
    /// Orders that came until the next packet was sent.
    pub orders: u32,
}

impl Exchange {
    /// From the call that sent the packet to the frame of its first order in this side's stack.
    pub fn wire_ns(&self) -> Option<u64> {
        let stamp = self.arrival?.kernel_ns?.get();
        // Two readings of one clock: one that is set in between leaves nothing to say.
        stamp
            .checked_sub(self.wall.0)
            .filter(|_| self.wall != Nanos::ZERO)
    }

    /// What is kept of it: the packet's number from 1, the bytes of its payload, messages in it where they
    /// were counted, and how many orders came until the next one was sent.
    pub fn sample(
        &self,
        clock: &Clock,
        (packet, payload_len): (u64, usize),
        entries: Option<u32>,
        orders: u32,
    ) -> Sample {
        let span = |to: u64| clock.span_ns(to.saturating_sub(self.before));
        Sample {
            packet,
            payload_len: payload_len as u32,
            frame_len: payload_len as u32 + FRAME_HEADERS,
            entries,
            n1_ns: self.arrival.map(|arrival| span(arrival.ticks)),
            wire_ns: self.wire_ns(),
            call_ns: span(self.sent),
            orders,
        }
    }
}

impl Sample {
    /// First byte to first byte, by the formula: see the module's description. In tenths of a nanosecond.
    pub fn one_one_tenths(&self) -> Option<u64> {
        self.n1_ns.map(|n1| n1 * 10 + wire_tenths(self.frame_len))
    }
}

/// What a frame takes on Ethernet of 10 Gbit/s, in tenths of a nanosecond: `6.4 * int((N + 7) / 8)`.
fn wire_tenths(frame_len: u32) -> u64 {
    64 * u64::from(frame_len).div_ceil(8)
}

/// Writes samples as comma-separated values, with a line of names.
pub fn write_csv(out: &mut impl Write, samples: &[Sample]) -> io::Result<()> {
    writeln!(
        out,
        "packet,payload_bytes,frame_bytes,entries,n1_ns,one_one_computed_ns,send_call_ns,orders"
    )?;
    for s in samples {
        write!(out, "{},{},{},", s.packet, s.payload_len, s.frame_len)?;
        if let Some(entries) = s.entries {
            write!(out, "{entries}")?;
        }
        write!(out, ",")?;
        if let (Some(n1), Some(tenths)) = (s.n1_ns, s.one_one_tenths()) {
            write!(out, "{n1},{}.{}", tenths / 10, tenths % 10)?;
        } else {
            write!(out, ",")?;
        }
        writeln!(out, ",{},{}", s.call_ns, s.orders)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_to_first_byte_adds_the_frame_in_steps_of_eight_bytes() {
        // 6.4 ns are 8 bytes at 10 Gbit/s.
        for (frame, tenths) in [(0, 0), (1, 64), (8, 64), (9, 128), (100, 832), (1_514, 12_160)] {
            assert_eq!(wire_tenths(frame), tenths, "{frame} bytes");
        }
    }

    #[test]
    fn samples_are_lines_with_empty_places_where_nothing_came() {
        let sample = Sample {
            packet: 1,
            payload_len: 58,
            frame_len: 100,
            entries: Some(3),
            n1_ns: Some(1_411),
            wire_ns: None,
            call_ns: 900,
            orders: 1,
        };
        let silent = Sample {
            packet: 2,
            entries: None,
            n1_ns: None,
            orders: 0,
            ..sample
        };
        let mut out = Vec::new();
        write_csv(&mut out, &[sample, silent]).unwrap();
        assert_eq!(
            String::from_utf8(out)
                .unwrap()
                .lines()
                .skip(1)
                .collect::<Vec<_>>(),
            ["1,58,100,3,1411,1494.2,900,1", "2,58,100,,,,900,0"]
        );
    }
}
