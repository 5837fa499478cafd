//! Software's part of a core in hardware: whose TCP connection the orders go by, who hands the core its
//! numbers, hears what it sent, and takes everything back.
//!
//! ```text
//!                       arm: prepared order, numbers, limits
//!   session ── CoreHost ─────────────────────────────────────► core ─── order ──► wire ──► venue
//!      ▲          │ ◄──────────────── mirror: every frame ──────┘                            │
//!      │          └─► kernel's TCP: booked as sent                                           │
//!      └───────────── kernel's TCP: everything the venue says ◄──────────────────────────────┘
//! ```
//! The connection is the kernel's. The core sends segments of it, each is mirrored to software and booked
//! into it ([`tickwire_kernelpath::delegate`]): the kernel acknowledges what the venue says, sends again what
//! is lost on the way, and ends the connection. What the venue acknowledges before the booking is held back
//! meanwhile.
//!
//! **One sends at a time.** While the core is armed, software does not send: it disarms first
//! ([`CoreHost::disarm`]), which gives the numbers that come next, sends what it has to ([`CoreHost::send`]),
//! and arms again.
//!
//! **The session hears of every order** ([`CoreHost::turn`], [`CoreHost::disarm`]) as the bytes that left: of
//! OUCH it counts the request among those that wait for an answer, of FIX it stores the message under its
//! number, so that a resend request is answered.
//!
//! **It goes away by itself.** The core is disarmed, with the reason ([`Disarmed`]), when the connection is
//! lost or mends a loss, when feed or book is not right, when software has not called [`CoreHost::turn`] for
//! the watchdog's clocks, and when a day begins whose date is not in the prepared order. If what the core
//! says it sent and what the mirror shows do not agree, the connection is of no further use ([`HostError`]):
//! dropping it resets it.
//!
//! A core writes no TCP options: the connection must be without timestamps (`net.ipv4.tcp_timestamps = 0`
//! before it is opened, in the namespace that it is opened in).
//!
//! ```no_run
//! use std::time::Duration;
//! use tickwire_corehost::{Core, CoreHost, Next, Turn};
//! use tickwire_kernelpath::delegate::{Delegate, Way};
//! use tickwire_market::Symbol;
//! use tickwire_rtl::frame::{OrderText, OuchText};
//! use tickwire_rtl::setup::Limits;
//! use tickwire_runtime::clock::wall;
//! use tickwire_runtime::tcp::TcpStream;
//!
//! # fn trade(card: impl Core) -> Result<(), Box<dyn std::error::Error>> {
//! let venue = "198.18.0.1:26405".parse()?;
//! let mut stream = TcpStream::connect(venue, Duration::from_secs(5))?;
//! // The session logs in here, over the same stream.
//! let delegate = Delegate::new(Way::towards(venue)?, &stream).map_err(|refused| refused.why)?;
//! let text = OrderText::Ouch(OuchText {
//!     symbol: Symbol::new(b"AAPL").ok_or("it is too long")?,
//!     capacity: b'O',
//!     client_order_id: *b"TICKWIRE      ",
//! });
//! let limits = Limits {
//!     collar: (1_000_000, 3_000_000),
//!     size: 100,
//!     position: 1_000,
//!     held: 0,
//!     tokens: 10,
//!     token_clocks: 15_625_000,
//!     orders: 500,
//!     watchdog: 15_625_000,
//! };
//! let mut host = CoreHost::new(card, delegate, text, limits)?;
//! host.arm(&mut stream, Next { user_ref: 1, message: 0 }, wall())?;
//! loop {
//!     let turn = host.turn(&mut stream, wall(), |order| println!("{} bytes left", order.len()))?;
//!     if let Turn::Disarmed { why, .. } = turn {
//!         println!("disarmed: {why}");
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

use std::io;

use tickwire_kernel::segment::{Ends, Tcp, tcp};
use tickwire_kernelpath::delegate::{Delegate, Loan, Reason};
use tickwire_market::Nanos;
use tickwire_rtl::frame::{FRAME_SIZE_MAX, Link, OrderText, PAYLOAD_AT, prepared};
use tickwire_rtl::registers::{FAULTS, address, control};
use tickwire_rtl::setup::{Limits, Numbers, clock_writes, from_digits, order_writes};
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::tcp::TcpStream;

/// A core, as the card's driver has it. `tickwire_cosim::Live` is one that is simulated.
pub trait Core {
    /// Writes a register, behind everything written before.
    ///
    /// # Errors
    /// The card is gone.
    fn write(&mut self, address: u8, value: u32) -> io::Result<()>;

    /// Reads a register, behind everything written before.
    ///
    /// # Errors
    /// The card is gone.
    fn read(&mut self, address: u8) -> io::Result<u32>;

    /// The next frame that the core has sent, in the order in which they left, without FCS: its length, the
    /// bytes in `frame`, which has room for [`FRAME_SIZE_MAX`] of them. `None` if there is none yet.
    ///
    /// # Errors
    /// The card is gone.
    fn mirror(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>>;
}

/// Registers that are read, by the place in [`tickwire_rtl::registers::READ`].
mod read {
    pub(super) const STATUS: u8 = 0;
    pub(super) const FAULTS: u8 = 1;
    pub(super) const LEFT: u8 = 6;
    pub(super) const HELD: u8 = 7;
    pub(super) const SEQUENCE: u8 = 9;
    pub(super) const USER_REF: u8 = 10;
    pub(super) const MESSAGE: u8 = 12;
}

const ARMED: u32 = 1;
const EXPIRED: u32 = 8;
/// The prepared order acknowledges what had come when it was prepared; after so many bytes more it is
/// prepared anew: a peer may drop what acknowledges too little (RFC 5961, section 5.2).
const REFRESH_BYTES: u64 = 16 << 10;
/// What has left and is not in the mirror after this time is lost there.
const MIRROR_PATIENCE_NS: u64 = 1_000_000_000;
/// The largest number of FIX, whose numbers have eight digits.
const NUMBER_MAX: u32 = 99_999_999;
const DAY: u64 = 86_400 * Nanos::SECOND;

/// The numbers of the next order, for the session that goes on where the core has stopped and the other way
/// round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next {
    /// OUCH's UserRefNum; of FIX the number in ClOrdID.
    pub user_ref: u32,
    /// FIX: MsgSeqNum.
    pub message: u32,
}

/// Why the core may not send any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disarmed {
    /// Feed or book is not right: the bits of the register FAULTS.
    Faults(u32),
    /// Software was silent for too long.
    Watchdog,
    /// As many orders have left as may.
    NoneLeft,
    /// The connection has no room, mends a loss, or is lost.
    Connection(Reason),
    /// What was learned meanwhile forbids to arm again.
    Refused(NotArmed),
    /// The core says no reason.
    Unsaid,
}

impl std::fmt::Display for Disarmed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Disarmed::Faults(bits) => write!(f, "feed or book is not right: {}", faults(*bits)),
            Disarmed::Watchdog => f.write_str("the watchdog heard nothing of software"),
            Disarmed::NoneLeft => f.write_str("as many orders have left as may"),
            Disarmed::Connection(reason) => write!(f, "the connection: {}", reason.name()),
            Disarmed::Refused(why) => write!(f, "it was not armed again: {why}"),
            Disarmed::Unsaid => f.write_str("the core is disarmed and says no reason"),
        }
    }
}

/// The faults by name.
fn faults(bits: u32) -> String {
    let known = FAULTS.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    let names: Vec<&str> = known.map(|(_, (name, _))| *name).collect();
    match names.is_empty() {
        true => "the stream is not whole yet".to_owned(),
        false => names.join(", "),
    }
}

/// Why the core was not armed; nothing may leave, and the connection is software's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotArmed {
    /// It is armed.
    #[error("the core is armed already")]
    Armed,
    /// The connection cannot be lent now.
    #[error("the connection: {}", .0.name())]
    Connection(Reason),
    /// The connection has what the core does not write.
    #[error(
        "the connection has TCP timestamps, which the core does not write: set net.ipv4.tcp_timestamps = 0 before it is opened"
    )]
    Stamps,
    /// The text does not make a message.
    #[error("the order's text is empty somewhere, too long, or has a separator in it")]
    Text,
    /// As many orders have left as may.
    #[error("as many orders have left as may")]
    NoneLeft,
    /// FIX: MsgSeqNum or the number in ClOrdID has no ninth digit.
    #[error(
        "numbers above 99,999,999 have no room in the order: the session has to begin anew, or ClOrdID another way"
    )]
    Numbers,
    /// The core did not arm: bits of FAULTS, 0 if the stream is not whole yet.
    #[error("the core did not arm: {}", faults(*.0))]
    Core(u32),
    /// The card does not answer.
    #[error("the card does not answer")]
    Card,
    /// What left is not known: the connection has to end.
    #[error("it is not known what left: the connection has to end")]
    Lost,
}

/// The connection, or the card, is of no further use: the core is disarmed if it can be reached, and the
/// stream is to be dropped, which resets it.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The card's driver.
    #[error("the card: {0}")]
    Card(io::Error),
    /// The connection.
    #[error("the connection: {0}")]
    Connection(io::Error),
    /// A mirrored frame is not the next segment.
    #[error(
        "the mirror shows a frame that is not the next one of the connection: number {found:?}, {expected} was expected"
    )]
    Strange {
        /// The TCP sequence number that was expected.
        expected: u32,
        /// The frame's, if it is of the connection.
        found: Option<u32>,
    },
    /// The mirror does not show what the core says it sent.
    #[error("the core has sent up to number {sent}, the mirror ends at {mirrored}")]
    Missing {
        /// The core's next TCP sequence number.
        sent: u32,
        /// The next one by the mirror.
        mirrored: u32,
    },
    /// It was said before.
    #[error("it is not known what left: the connection has to end")]
    Lost,
}

/// What a turn came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The core may send.
    Armed,
    /// It may not, and was not armed before.
    Idle,
    /// It may not any more; the connection is software's.
    Disarmed {
        /// Why.
        why: Disarmed,
        /// What comes next.
        next: Next,
    },
}

/// What a connection that has ended leaves.
#[derive(Debug)]
pub struct Renewed {
    /// Its part, whose way another one may take.
    pub last: Delegate,
    /// Everything that left by it was told, or why it is not known.
    pub heard: Result<(), HostError>,
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Orders that left.
    pub orders: u64,
    /// Times that the core was armed.
    pub armed: u64,
    /// Of them, those in which the same order was only prepared anew: for the day, for what has come.
    pub refreshed: u64,
}

/// What a core is armed with.
#[derive(Clone, Copy, Debug)]
struct Armed {
    ends: Ends,
    /// The TCP sequence number of the next order.
    sequence: u32,
    /// Of the date in it.
    day: u64,
    /// Bytes of the venue when it was prepared.
    received: u64,
}

/// A core and the connection that it sends by. One thread calls it.
#[derive(Debug)]
pub struct CoreHost<C> {
    core: C,
    delegate: Delegate,
    text: OrderText,
    limits: Limits,
    /// Orders that may leave, of [`Limits::orders`].
    orders_left: u32,
    armed: Option<Armed>,
    /// The time of day as it was last written.
    clock: [(u8, u32); 2],
    is_lost: bool,
    counts: Counts,
}

impl<C: Core> CoreHost<C> {
    /// Disarms a core and gives it its limits. The feed is told by [`CoreHost::write`].
    ///
    /// # Errors
    /// The card does not take them.
    pub fn new(core: C, delegate: Delegate, text: OrderText, limits: Limits) -> io::Result<CoreHost<C>> {
        let mut host = CoreHost {
            core,
            delegate,
            text,
            limits,
            orders_left: 0,
            armed: None,
            clock: [(0, 0); 2],
            is_lost: false,
            counts: Counts::default(),
        };
        host.core.write(address::CONTROL, control::DISARM)?;
        host.set_limits(limits)?;
        Ok(host)
    }

    /// Writes other limits, the position and the number of orders among them; the core must be disarmed.
    ///
    /// # Errors
    /// It is armed, or the card does not take them.
    pub fn set_limits(&mut self, limits: Limits) -> io::Result<()> {
        if self.armed.is_some() {
            return Err(io::Error::other("the core is armed: it has to be disarmed first"));
        }
        self.write(limits.writes())?;
        (self.limits, self.orders_left) = (limits, limits.orders);
        Ok(())
    }

    /// Writes registers: the feed ([`tickwire_rtl::setup::Feed`]), that it is whole again
    /// ([`control::RESUME`]), what an order gives back of the position ([`address::HELD_ADD`]).
    ///
    /// # Errors
    /// The card does not take them.
    pub fn write(&mut self, writes: impl IntoIterator<Item = (u8, u32)>) -> io::Result<()> {
        writes
            .into_iter()
            .try_for_each(|(address, value)| self.core.write(address, value))
    }

    /// The card.
    pub fn core_mut(&mut self) -> &mut C {
        &mut self.core
    }

    /// The connection's part.
    pub fn delegate(&self) -> &Delegate {
        &self.delegate
    }

    /// The next connection, after the last one has ended: the core is disarmed, and what left by the last one
    /// and was not heard of is told to `left`. Limits, orders that may leave and position go on.
    ///
    /// # Errors
    /// The card does not answer; nothing else has changed.
    pub fn renew(&mut self, delegate: Delegate, mut left: impl FnMut(&[u8])) -> io::Result<Renewed> {
        self.core.write(address::CONTROL, control::DISARM)?;
        let heard = self.hear_all(|_, order| {
            left(order);
            Ok(())
        });
        // What cannot be told apart is of no connection that is to come.
        let mut frame = [0; FRAME_SIZE_MAX];
        while self.core.mirror(&mut frame)?.is_some() {}
        (self.armed, self.is_lost) = (None, false);
        Ok(Renewed {
            last: std::mem::replace(&mut self.delegate, delegate),
            heard,
        })
    }

    /// Whether the core may send, as far as is known here.
    pub fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The position as the core counts it: every order that left is taken for traded.
    ///
    /// # Errors
    /// The card does not answer.
    pub fn held(&mut self) -> io::Result<i32> {
        self.core.read(read::HELD).map(u32::cast_signed)
    }

    /// Lends the connection to the core, with the numbers of its next order, and arms it. `now` is UTC. What
    /// has left by the time this returns is told by the next turn, if the core is disarmed again, too.
    ///
    /// # Errors
    /// Why not; nothing has left. After [`NotArmed::Card`] that is not known, and the connection has to end.
    pub fn arm(&mut self, stream: &mut TcpStream, next: Next, now: Nanos) -> Result<(), NotArmed> {
        if self.is_lost {
            return Err(NotArmed::Lost);
        }
        if self.armed.is_some() {
            return Err(NotArmed::Armed);
        }
        if self.orders_left == 0 {
            return Err(NotArmed::NoneLeft);
        }
        let loan = self.delegate.lend(stream).map_err(NotArmed::Connection)?;
        let armed = self.hand_over(&loan, next, now);
        match armed {
            Ok(sequence) => {
                self.counts.armed += 1;
                self.armed = Some(Armed {
                    ends: loan.ends,
                    sequence,
                    day: now.0 / DAY,
                    received: stream.received(),
                });
                Ok(())
            }
            Err(why) => {
                let _ = self.core.write(address::CONTROL, control::DISARM);
                let taken = self.delegate.take_back(stream);
                self.is_lost |= taken.is_err() || why == NotArmed::Card;
                Err(why)
            }
        }
    }

    /// Writes what an order needs, and arms; the number of its first byte.
    fn hand_over(&mut self, loan: &Loan, next: Next, now: Nanos) -> Result<u32, NotArmed> {
        if loan.has_stamps {
            return Err(NotArmed::Stamps);
        }
        let Ends {
            hardware,
            addresses,
            ports,
        } = loan.ends;
        let link = Link {
            destination_mac: hardware[1],
            source_mac: hardware[0],
            source: addresses[0],
            destination: addresses[1],
            source_port: ports[0],
            destination_port: ports[1],
            acknowledged: loan.numbers.ack,
            window: loan.numbers.window,
        };
        let order = prepared(&link, &self.text, now).ok_or(NotArmed::Text)?;
        let payload = order.bytes.len() - PAYLOAD_AT;
        if payload > loan.segment_bytes {
            return Err(NotArmed::Connection(Reason::Long));
        }
        let is_decimal = matches!(self.text, OrderText::Fix(_));
        let numbers_left = match is_decimal {
            true => (NUMBER_MAX + 1).saturating_sub(next.user_ref.max(next.message)),
            false => u32::MAX - next.user_ref,
        };
        if numbers_left == 0 {
            return Err(NotArmed::Numbers);
        }
        let room = loan.segments.min(loan.bytes / payload);
        let orders = self.orders_left.min(u32::try_from(room).unwrap_or(u32::MAX));
        let orders = orders.min(numbers_left);
        if orders == 0 {
            return Err(NotArmed::Connection(Reason::PeerWindow));
        }
        let numbers = Numbers {
            sequence: loan.numbers.seq,
            user_ref: next.user_ref,
            message: next.message,
            is_decimal,
        };
        let card = |_| NotArmed::Card;
        self.write(order_writes(&order)).map_err(card)?;
        self.write(numbers.writes()).map_err(card)?;
        self.set_clock(now).map_err(card)?;
        let last = [
            (address::LEFT, orders),
            (address::ALIVE, 0),
            (address::CONTROL, control::ARM),
        ];
        self.write(last).map_err(card)?;
        let is_armed = self.core.read(read::STATUS).map_err(card)? & ARMED != 0;
        // It may have sent and be disarmed already: the next turn hears of both.
        let has_sent = self.core.read(read::SEQUENCE).map_err(card)? != loan.numbers.seq;
        match is_armed || has_sent {
            true => Ok(loan.numbers.seq),
            false => Err(NotArmed::Core(self.core.read(read::FAULTS).map_err(card)?)),
        }
    }

    fn set_clock(&mut self, now: Nanos) -> io::Result<()> {
        let writes = clock_writes(now);
        if self.clock != writes {
            self.write(writes)?;
            self.clock = writes;
        }
        Ok(())
    }

    /// To be called always, and more often than the watchdog bites: says that software lives, hears what has
    /// left and tells `left` the bytes of each order, books them, and disarms the core where it may not go
    /// on. `now` is UTC.
    ///
    /// # Errors
    /// The connection or the card is of no further use.
    pub fn turn(
        &mut self,
        stream: &mut TcpStream,
        now: Nanos,
        mut left: impl FnMut(&[u8]),
    ) -> Result<Turn, HostError> {
        let done = self.try_turn(stream, now, &mut left);
        self.unless_lost(done)
    }

    fn try_turn(
        &mut self,
        stream: &mut TcpStream,
        now: Nanos,
        left: &mut dyn FnMut(&[u8]),
    ) -> Result<Turn, HostError> {
        self.core.write(address::ALIVE, 0).map_err(HostError::Card)?;
        self.set_clock(now).map_err(HostError::Card)?;
        self.hear(stream, left)?;
        self.delegate.tend(stream).map_err(HostError::Connection)?;
        let Some(armed) = self.armed else {
            return Ok(Turn::Idle);
        };
        let why = self.trouble(stream).map_err(HostError::Card)?;
        let is_stale = armed.day != now.0 / DAY || stream.received() - armed.received >= REFRESH_BYTES;
        // The connection's room is used up, and more orders may leave.
        let is_used_up = why == Some(Disarmed::NoneLeft) && self.orders_left > 0;
        if why.is_none() && !is_stale {
            return Ok(Turn::Armed);
        }
        let next = self.try_disarm(stream, left)?;
        let why = match why.filter(|_| !is_used_up) {
            Some(why) => why,
            None => match self.arm(stream, next, now) {
                Ok(()) => {
                    self.counts.refreshed += 1;
                    return Ok(Turn::Armed);
                }
                Err(why) => Disarmed::Refused(why),
            },
        };
        Ok(Turn::Disarmed { why, next })
    }

    /// Why the core may not go on.
    fn trouble(&mut self, stream: &TcpStream) -> io::Result<Option<Disarmed>> {
        let status = self.core.read(read::STATUS)?;
        if status & ARMED == 0 {
            let faults = self.core.read(read::FAULTS)?;
            return Ok(Some(if status & EXPIRED != 0 {
                Disarmed::Watchdog
            } else if faults != 0 {
                Disarmed::Faults(faults)
            } else if self.core.read(read::LEFT)? == 0 {
                Disarmed::NoneLeft
            } else {
                Disarmed::Unsaid
            }));
        }
        let reason = self.delegate.trouble_of_loan(stream);
        Ok(reason.map(Disarmed::Connection))
    }

    /// Takes the connection back: the core sends no more, what left is told to `left` and booked, and
    /// software may send. The numbers that come next.
    ///
    /// # Errors
    /// The connection or the card is of no further use.
    pub fn disarm(&mut self, stream: &mut TcpStream, mut left: impl FnMut(&[u8])) -> Result<Next, HostError> {
        let done = self.try_disarm(stream, &mut left);
        self.unless_lost(done)
    }

    fn try_disarm(&mut self, stream: &mut TcpStream, left: &mut dyn FnMut(&[u8])) -> Result<Next, HostError> {
        if self.is_lost {
            return Err(HostError::Lost);
        }
        self.core
            .write(address::CONTROL, control::DISARM)
            .map_err(HostError::Card)?;
        self.hear_all(|host, order| host.book(stream, left, order))?;
        self.armed = None;
        self.delegate.take_back(stream).map_err(HostError::Connection)?;
        let mut number = |at| self.core.read(at).map_err(HostError::Card);
        let (user_ref, message) = (number(read::USER_REF)?, number(read::MESSAGE)?);
        Ok(match self.text {
            OrderText::Ouch(_) => Next { user_ref, message: 0 },
            OrderText::Fix(_) => Next {
                user_ref: from_digits(user_ref),
                message: from_digits(message),
            },
        })
    }

    /// Sends a message of the session; the core must be disarmed.
    ///
    /// # Errors
    /// It is armed, or as [`Delegate::send`].
    pub fn send(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.delegate.send(stream, bytes)
    }

    /// Books what the mirror shows.
    fn hear(&mut self, stream: &mut TcpStream, left: &mut dyn FnMut(&[u8])) -> Result<(), HostError> {
        if self.is_lost {
            return Err(HostError::Lost);
        }
        let mut frame = [0; FRAME_SIZE_MAX];
        while let Some(order) = self.mirrored(&mut frame)? {
            self.book(stream, left, order)?;
        }
        self.delegate.settle(stream).map_err(HostError::Connection)
    }

    /// What has passed the gate of a core that was disarmed is on its way, and in the mirror a little later:
    /// waits for all of it.
    fn hear_all(
        &mut self,
        mut each: impl FnMut(&mut Self, &[u8]) -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        let began = monotonic().0;
        let mut frame = [0; FRAME_SIZE_MAX];
        while self.armed.is_some() {
            let sent = self.core.read(read::SEQUENCE).map_err(HostError::Card)?;
            // The clock is read before the mirror: a thread that stood still between them asks the mirror
            // once more before it calls anything lost.
            let now = monotonic().0;
            while let Some(order) = self.mirrored(&mut frame)? {
                each(self, order)?;
            }
            match self.armed {
                Some(armed) if armed.sequence != sent => {
                    if now - began > MIRROR_PATIENCE_NS {
                        let mirrored = armed.sequence;
                        return Err(HostError::Missing { sent, mirrored });
                    }
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn book(
        &mut self,
        stream: &mut TcpStream,
        left: &mut dyn FnMut(&[u8]),
        order: &[u8],
    ) -> Result<(), HostError> {
        left(order);
        self.delegate
            .lent_has_sent(stream, order)
            .map_err(HostError::Connection)
    }

    /// The bytes of the next order that the mirror shows.
    fn mirrored<'f>(&mut self, frame: &'f mut [u8]) -> Result<Option<&'f [u8]>, HostError> {
        let Some(length) = self.core.mirror(frame).map_err(HostError::Card)? else {
            return Ok(None);
        };
        let segment = frame.get(..length).and_then(tcp);
        match (segment, &mut self.armed) {
            (Some(segment), Some(armed)) if is_next(&segment, armed) => {
                armed.sequence = armed.sequence.wrapping_add(segment.payload.len() as u32);
                self.orders_left = self.orders_left.saturating_sub(1);
                self.counts.orders += 1;
                Ok(Some(segment.payload))
            }
            (segment, armed) => Err(HostError::Strange {
                expected: armed.map_or(0, |armed| armed.sequence),
                found: segment.map(|segment| segment.seq),
            }),
        }
    }

    /// After an error nothing leaves any more, if the card can be reached.
    fn unless_lost<T>(&mut self, done: Result<T, HostError>) -> Result<T, HostError> {
        if done.is_err() {
            self.is_lost = true;
            let _ = self.core.write(address::CONTROL, control::DISARM);
        }
        done
    }
}

fn is_next(segment: &Tcp<'_>, armed: &Armed) -> bool {
    segment.addresses == armed.ends.addresses
        && segment.ports == armed.ends.ports
        && segment.seq == armed.sequence
        && !segment.payload.is_empty()
}
