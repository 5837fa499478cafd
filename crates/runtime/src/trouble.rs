//! What an error of a socket call means, and how a socket that has errors is treated: one classification, one
//! rule.
//!
//! The network is weather: a route goes and comes back, a peer restarts, memory is short for a moment. Such
//! errors are counted, said once, and tried again with waits that grow ([`Health`]); they never end a
//! process. Only what no waiting heals ends the one socket that has it. At start-up it is otherwise: what
//! cannot be opened or bound then is a wrong configuration, which [`crate::NetError`] says in a sentence.

use std::fmt;
use std::io;

use tickwire_market::{Counter, Counters, Nanos};

use crate::clock::monotonic;
use crate::tcp::{TcpListener, TcpStream};

/// What an error of a socket call means for what comes next. [`Trouble::of`] is the only place that decides
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Nothing was done because there was nothing to do, or a signal came: no error. Call again later.
    WouldBlock,
    /// The network between us and the peer: no route, an interface that is down, a firewall. It heals by
    /// itself, and anything that is not known stands here, too.
    Transient,
    /// The peer: refused, reset, closed, not answering. On a connection this is its end, and a new one is
    /// made; of datagrams the peer may come back.
    PeerGone,
    /// The kernel has no memory, buffers or descriptors left at the moment.
    Resource,
    /// The call cannot succeed on this socket as it is: an address that is not of this machine, a family or
    /// option that the kernel does not know, a permission that we lack, a descriptor that is none.
    Configuration,
}

impl Trouble {
    /// Those that are counted: all but [`Trouble::WouldBlock`].
    pub const COUNTED: [Trouble; 4] = [
        Trouble::Transient,
        Trouble::PeerGone,
        Trouble::Resource,
        Trouble::Configuration,
    ];

    /// The class of an error, from its number; of an error without one, from its kind. Numbers and meanings:
    /// errno(3), and the sections "Errors" of ip(7), udp(7), tcp(7), send(2), recv(2), accept(2), connect(2).
    pub fn of(error: &io::Error) -> Trouble {
        match error.raw_os_error() {
            Some(number) => Trouble::of_number(number),
            None => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Trouble::WouldBlock,
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::NotConnected
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::TimedOut => Trouble::PeerGone,
                io::ErrorKind::OutOfMemory => Trouble::Resource,
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => Trouble::Configuration,
                _ => Trouble::Transient,
            },
        }
    }

    /// The class of an `errno`.
    pub const fn of_number(number: i32) -> Trouble {
        match number {
            libc::EAGAIN | libc::EINTR | libc::EINPROGRESS | libc::EALREADY => Trouble::WouldBlock,
            libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::ECONNABORTED
            | libc::ENOTCONN
            | libc::ESHUTDOWN
            | libc::EPIPE
            | libc::ETIMEDOUT => Trouble::PeerGone,
            libc::ENOBUFS | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::ENOSR => Trouble::Resource,
            libc::EACCES
            | libc::EINVAL
            | libc::EAFNOSUPPORT
            | libc::EPFNOSUPPORT
            | libc::EPROTONOSUPPORT
            | libc::ESOCKTNOSUPPORT
            | libc::EPROTOTYPE
            | libc::EOPNOTSUPP
            | libc::EDESTADDRREQ
            | libc::EADDRINUSE
            | libc::EADDRNOTAVAIL
            | libc::EISCONN
            | libc::EBADF
            | libc::ENOTSOCK
            | libc::EFAULT
            | libc::ENOSYS => Trouble::Configuration,
            // ENETDOWN, ENETUNREACH, ENETRESET, EHOSTDOWN, EHOSTUNREACH, ENONET, ENODEV (the interface went),
            // EPROTO, EMSGSIZE (a path that carries less at the moment), EPERM (a firewall's answer to a
            // send), EIO, and what no manual names.
            _ => Trouble::Transient,
        }
    }

    /// What to look at, for the line that says it.
    pub const fn advice(self) -> &'static str {
        match self {
            Trouble::WouldBlock => "",
            Trouble::Transient => "look at the interface (`ip link`), routes (`ip route get`) and firewalls",
            Trouble::PeerGone => "look whether the other side runs and listens there",
            Trouble::Resource => {
                "the kernel is short of memory, buffers or descriptors: look at `ss -m` and `ulimit -n`"
            }
            Trouble::Configuration => {
                "address, port or permission are wrong for this socket: compare with the configuration"
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trouble::WouldBlock => "nothing to do",
            Trouble::Transient => "network",
            Trouble::PeerGone => "peer",
            Trouble::Resource => "resources",
            Trouble::Configuration => "configuration",
        })
    }
}

/// A socket is well again when no error came for so long after a call that worked.
const WELL_NS: u64 = Nanos::SECOND;
/// So many errors of configuration in a row, with nothing that worked in between, are never going to heal.
const HOPELESS: u32 = 6;

/// How long to wait between two attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackOff {
    /// After the first error, nanoseconds; twice as long after each further one in a row.
    pub first_ns: u64,
    /// At most, nanoseconds.
    pub most_ns: u64,
    /// Whether errors of configuration in a row end the socket.
    pub gives_up: bool,
}

impl BackOff {
    /// For receiving: packets wait in the socket's buffer meanwhile, so not for long.
    pub const RECEIVE: BackOff = BackOff {
        first_ns: Nanos::MILLI,
        most_ns: 100 * Nanos::MILLI,
        gives_up: true,
    };
    /// For sending and accepting.
    pub const SEND: BackOff = BackOff {
        first_ns: 10 * Nanos::MILLI,
        most_ns: Nanos::SECOND,
        gives_up: true,
    };
    /// For connections: each attempt is a new socket, so that none is the last.
    pub const CONNECT: BackOff = BackOff {
        first_ns: 200 * Nanos::MILLI,
        most_ns: 5 * Nanos::SECOND,
        gives_up: false,
    };

    /// The wait after so many errors in a row.
    pub fn after(self, in_a_row: u32) -> u64 {
        let doubled = self
            .first_ns
            .checked_shl(in_a_row.saturating_sub(1).min(32))
            .unwrap_or(u64::MAX);
        doubled.min(self.most_ns)
    }
}

/// What is to be said about a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The first error of this class since the socket was last well: say it.
    Failing(Trouble),
    /// One of a class that has been said.
    StillFailing(Trouble),
    /// Nothing but errors of configuration came: this socket is not used any more. Say it.
    Ended,
}

/// How a socket's calls went: errors are counted by class, said once a class until it is well again, and
/// followed by waits that grow.
///
/// Two compares on the way of a call that works. Times are of any clock that does not step.
#[derive(Clone, Debug)]
pub struct Health {
    back_off: BackOff,
    counts: [u64; Trouble::COUNTED.len()],
    /// Classes said since it was last well, a bit each.
    said: u8,
    /// Errors since it was last well.
    spell: u64,
    /// Errors since a call last worked.
    in_a_row: u32,
    /// Of these, from the newest on, how many are of configuration.
    hopeless: u32,
    last_error: Nanos,
    retry: Nanos,
    is_ended: bool,
}

impl Health {
    /// Of a socket that has had no error yet.
    pub const fn new(back_off: BackOff) -> Health {
        Health {
            back_off,
            counts: [0; Trouble::COUNTED.len()],
            said: 0,
            spell: 0,
            in_a_row: 0,
            hopeless: 0,
            last_error: Nanos::ZERO,
            retry: Nanos::ZERO,
            is_ended: false,
        }
    }

    /// A call failed with an error that is none of [`Trouble::WouldBlock`]; one that is counts as transient,
    /// since the caller could not go on by it.
    #[cold]
    pub fn failed(&mut self, now: Nanos, trouble: Trouble) -> Verdict {
        let trouble = match trouble {
            Trouble::WouldBlock => Trouble::Transient,
            other => other,
        };
        let class = Trouble::COUNTED.iter().position(|t| *t == trouble).unwrap_or(0);
        self.counts[class] += 1;
        self.spell += 1;
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.hopeless = match trouble {
            Trouble::Configuration => self.hopeless.saturating_add(1),
            _ => 0,
        };
        self.last_error = now;
        self.retry = now.after(self.back_off.after(self.in_a_row));
        if self.hopeless >= HOPELESS && self.back_off.gives_up && !self.is_ended {
            self.is_ended = true;
            return Verdict::Ended;
        }
        let is_new = self.said & (1 << class) == 0;
        self.said |= 1 << class;
        match is_new {
            true => Verdict::Failing(trouble),
            false => Verdict::StillFailing(trouble),
        }
    }

    /// A call worked, or had nothing to do.
    #[inline]
    pub fn worked(&mut self) {
        if self.in_a_row != 0 {
            (self.in_a_row, self.hopeless, self.retry) = (0, 0, Nanos::ZERO);
        }
    }

    /// Whether anything was wrong since it was last well. While it is not, [`Health::may_try`] and
    /// [`Health::healed`] need not be asked.
    #[inline]
    pub fn is_ill(&self) -> bool {
        self.spell != 0
    }

    /// Whether the wait after the last error is over. Never again once it has ended.
    #[inline]
    pub fn may_try(&self, now: Nanos) -> bool {
        !self.is_ended && now >= self.retry
    }

    /// When a call worked and no error came since for a second: how many there had been, once. Ask from time
    /// to time.
    pub fn healed(&mut self, now: Nanos) -> Option<u64> {
        if self.spell == 0 || self.in_a_row != 0 || now.since(self.last_error) < WELL_NS {
            return None;
        }
        self.said = 0;
        Some(std::mem::take(&mut self.spell))
    }

    /// Whether it is not used any more.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Errors so far, in the order of [`Trouble::COUNTED`].
    pub fn counts(&self) -> [u64; Trouble::COUNTED.len()] {
        self.counts
    }
}

/// The counter of each class, in the order of [`Trouble::COUNTED`].
const COUNTERS: [Counter; Trouble::COUNTED.len()] = [
    Counter::NetErrorsNetwork,
    Counter::NetErrorsPeer,
    Counter::NetErrorsResources,
    Counter::NetErrorsConfig,
];

/// [`Health`] with a name, counters, and the sentences that are said of it; `say` of each call is who says
/// them, which must not wait.
#[derive(Debug)]
pub struct NamedHealth {
    /// What is done on which address: `receiving line A of 239.1.1.1:5000`.
    deed: String,
    health: Health,
}

impl NamedHealth {
    /// For calls of one kind on one socket; `deed` is what they do and where.
    pub fn new(back_off: BackOff, deed: impl Into<String>) -> NamedHealth {
        NamedHealth {
            deed: deed.into(),
            health: Health::new(back_off),
        }
    }

    /// A call failed. Counts it, and says it if its class is new.
    #[cold]
    pub fn failed(
        &mut self,
        trouble: Trouble,
        error: &dyn fmt::Display,
        say: impl FnOnce(fmt::Arguments<'_>),
    ) {
        let deed = &self.deed;
        match self.health.failed(monotonic(), trouble) {
            Verdict::Failing(trouble) => say(format_args!(
                "{deed} failed: {error}; it is tried again until it works: {}",
                trouble.advice()
            )),
            Verdict::Ended => say(format_args!(
                "{deed} failed again and again: {error}; it is not tried any more. {}; then start again",
                trouble.advice()
            )),
            Verdict::StillFailing(_) => {}
        }
    }

    /// A call worked, or had nothing to do.
    #[inline]
    pub fn worked(&mut self) {
        self.health.worked();
    }

    /// Whether a call is to be made now: always while all is well.
    #[inline]
    pub fn may_try(&self) -> bool {
        !self.health.is_ill() || self.may_try_again()
    }

    #[cold]
    fn may_try_again(&self) -> bool {
        self.health.may_try(monotonic())
    }

    /// The next connection, if there is one and none of the last attempts failed too recently.
    pub fn accept(
        &mut self,
        listener: &mut TcpListener,
        say: impl FnOnce(fmt::Arguments<'_>),
    ) -> Option<TcpStream> {
        if !self.may_try() {
            return None;
        }
        match listener.accept() {
            Ok(accepted) => {
                self.worked();
                accepted
            }
            Err(e) => {
                self.failed(Trouble::of(&e), &e, say);
                None
            }
        }
    }

    /// Says that it works again once it has done so for a second. For the slow part of a loop.
    pub fn settle(&mut self, say: impl FnOnce(fmt::Arguments<'_>)) {
        if self.health.is_ill()
            && let Some(errors) = self.health.healed(monotonic())
        {
            let plural = if errors == 1 { "" } else { "s" };
            say(format_args!(
                "{} works again after {errors} error{plural}",
                self.deed
            ));
        }
    }

    /// Whether it is not tried any more.
    pub fn is_ended(&self) -> bool {
        self.health.is_ended()
    }

    /// Adds what it counted.
    pub fn count(&self, counters: &mut Counters) {
        for (counter, count) in COUNTERS.into_iter().zip(self.health.counts()) {
            counters.add(counter, count);
            counters.add(Counter::NetErrors, count);
        }
    }
}

/// Adds errors of waiting for sockets: the kernel's resources are short then.
pub fn count_waits(counters: &mut Counters, errors: u64) {
    counters.add(Counter::NetErrorsResources, errors);
    counters.add(Counter::NetErrors, errors);
}

/// What is said when the system's clock was set by so many nanoseconds.
#[cold]
pub fn say_clock_step(step: i64, say: impl FnOnce(fmt::Arguments<'_>)) {
    let direction = if step < 0 { "back" } else { "forward" };
    say(format_args!(
        "the system's clock was set {direction} by {:.3} s; timers go on as if it had not been, stamps and session hours follow it",
        step.unsigned_abs() as f64 / 1e9
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_class_and_those_of_the_weather_are_transient() {
        for number in 1..=133 {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Trouble::of(&error), Trouble::of_number(number), "{error}");
        }
        let weather = [
            libc::ENETUNREACH,
            libc::ENETDOWN,
            libc::EHOSTUNREACH,
            libc::EHOSTDOWN,
            libc::EPERM,
            libc::ENODEV,
            9_999,
        ];
        for number in weather {
            assert_eq!(Trouble::of_number(number), Trouble::Transient, "{number}");
        }
        assert_eq!(Trouble::of_number(libc::EWOULDBLOCK), Trouble::WouldBlock);
        assert_eq!(
            Trouble::of(&io::ErrorKind::WouldBlock.into()),
            Trouble::WouldBlock
        );
        assert_eq!(Trouble::of(&io::Error::other("of no system")), Trouble::Transient);
    }

    #[test]
    fn an_error_is_said_once_a_class_until_the_socket_is_well_again() {
        let mut health = Health::new(BackOff::SEND);
        let at = |ms: u64| Nanos(ms * Nanos::MILLI);
        assert_eq!(
            health.failed(at(0), Trouble::Transient),
            Verdict::Failing(Trouble::Transient)
        );
        assert!(!health.may_try(at(9)) && health.may_try(at(10)));
        assert_eq!(
            health.failed(at(10), Trouble::Transient),
            Verdict::StillFailing(Trouble::Transient)
        );
        assert!(!health.may_try(at(29)) && health.may_try(at(30)));
        assert_eq!(
            health.failed(at(30), Trouble::Resource),
            Verdict::Failing(Trouble::Resource)
        );
        health.worked();
        assert!(health.may_try(at(30)), "the waits begin anew");
        assert_eq!(health.healed(at(1_029)), None, "not yet: an error may come back");
        assert_eq!(health.healed(at(1_030)), Some(3));
        assert_eq!(health.healed(at(1_031)), None, "once");
        assert!(!health.is_ill());
        assert_eq!(
            health.failed(at(2_000), Trouble::Transient),
            Verdict::Failing(Trouble::Transient)
        );
        assert_eq!(health.counts(), [3, 0, 1, 0]);
    }

    #[test]
    fn only_errors_of_configuration_in_a_row_end_a_socket() {
        let mut health = Health::new(BackOff::RECEIVE);
        for n in 0..1_000 {
            let trouble = Trouble::COUNTED[n % 4];
            assert_ne!(health.failed(Nanos(n as u64), trouble), Verdict::Ended);
        }
        health.worked();
        let verdicts: Vec<Verdict> = (0..HOPELESS)
            .map(|_| health.failed(Nanos::ZERO, Trouble::Configuration))
            .collect();
        assert_eq!(verdicts.last(), Some(&Verdict::Ended), "{verdicts:?}");
        assert!(health.is_ended() && !health.may_try(Nanos(u64::MAX)));
        let mut connecting = Health::new(BackOff::CONNECT);
        for _ in 0..100 {
            connecting.failed(Nanos::ZERO, Trouble::Configuration);
        }
        assert!(!connecting.is_ended() && connecting.may_try(Nanos(5 * Nanos::SECOND)));
    }

    #[test]
    fn waits_grow_to_their_bound() {
        let waits: Vec<u64> = (1..=9).map(|n| BackOff::SEND.after(n) / Nanos::MILLI).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(BackOff::SEND.after(u32::MAX), Nanos::SECOND);
    }
}
