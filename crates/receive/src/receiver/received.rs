//! A channel of one protocol with its sockets.

use tickwire_feed::{Channel, FeedState, Line};
use tickwire_kernel::filter::Framing;
use tickwire_market::{Counters, InstrumentId, Nanos, Port, Price, SeqNo, Symbol};
use tickwire_runtime::clock::tsc;
use tickwire_runtime::wait::Waiter;

use tickwire_console::failure::Failure;
use tickwire_venues::ports::Ports;
use tickwire_venues::protocol::Protocol;

use super::rehearsing::Rehearsed;
use super::{Consumer, Held, Look, PACKETS_PER_LOOK, Source, Taken};
use crate::filtering::{FilterName, Filtering, Gate};
use crate::hook::{Hooked, LiveLines};
use crate::intake::{Intake, SocketOptions};

/// After so many looks in a row, each of which reads up to 256 KiB, nothing waits for the end of what a
/// connection holds. The kernel keeps less than that: the server sends faster than this thread reads.
const LINK_LOOKS_MAX: u32 = 64;

/// A datagram into its channel, and the events to who consumes them.
#[inline(always)]
fn pass<C: Channel, H: Consumer>(
    channel: &mut C,
    now: Nanos,
    (port, line): (Port, Line),
    bytes: &[u8],
    hot: &mut H,
) {
    match H::IS_HOT {
        true => channel.on_datagram(now, port, line, bytes, hot),
        false => channel.on_datagram_dyn(now, port, line, bytes, hot),
    }
}

/// A channel of one protocol with its sockets: what a [`Receiver`](super::Receiver) holds, for who has one in
/// memory.
pub struct Received<C> {
    number: usize,
    channel: C,
    intake: Option<Intake>,
    /// Live lines come by AF_XDP.
    is_hooked: bool,
    /// The owner's part of the filter in front of them.
    filtering: Option<Filtering>,
    rehearsed: Rehearsed<C>,
    /// Recovery groups or the request server sent more than was taken.
    recovery_waits: bool,
    /// Looks in a row after which its connections held more than was read.
    links_behind: u32,
}

impl<C: Channel> Received<C> {
    /// A channel without sockets: [`Source::join`] opens them. The consumer knows it by `number`.
    pub fn new(number: usize, channel: C) -> Received<C> {
        Received {
            number,
            channel,
            intake: None,
            is_hooked: false,
            filtering: None,
            rehearsed: Rehearsed::nothing(),
            recovery_waits: false,
            links_behind: 0,
        }
    }

    /// Whether what is due waits until connections are read to their ends. What they hold may have come in
    /// time.
    #[inline]
    fn waits_for_links(&self) -> bool {
        (1..=LINK_LOOKS_MAX).contains(&self.links_behind)
    }

    /// What recovery groups and the request server sent, in a thorough look and while they have more than was
    /// taken; whether it was everything. They are read whatever the kernel said when something is due: an
    /// answer may have come since the kernel was asked.
    #[inline]
    fn recover<H: Consumer>(&mut self, hot: &mut H, look: &mut Look<'_>) -> bool {
        let Some(intake) = &mut self.intake else {
            return true;
        };
        if look.is_thorough || self.recovery_waits {
            let due = || self.channel.poll_timeout();
            let has_come = intake.may_recover(look.waiter) || due().is_some_and(|due| due <= look.now);
            self.recovery_waits = has_come && {
                let now = hot.now();
                hot.begins_aside(now);
                let is_all = intake.recover(now, look.buffer, &mut self.channel, hot);
                hot.ends_aside(&self.channel);
                !is_all
            };
        }
        !self.recovery_waits
    }

    /// One datagram of a line, so that neither is read far ahead of the other; whether there was any.
    #[inline]
    fn receive_line<H: Consumer>(
        &mut self,
        index: usize,
        line: Line,
        hot: &mut H,
        look: &mut Look<'_>,
    ) -> bool {
        let Some(intake) = &mut self.intake else {
            return false;
        };
        if look.asks_kernel && !intake.has_input(index, look.waiter) {
            return false;
        }
        let Some(datagram) = intake.receive(index, look.buffer) else {
            return false;
        };
        let mut stamp = datagram.stamp;
        let received = hot.begins(&stamp);
        let from = (Port::Live, line);
        pass(&mut self.channel, received, from, datagram.bytes, hot);
        hot.ends(&self.channel, Port::Live, || {
            stamp.kernel_ns = stamp.kernel_ns.or_else(|| intake.live[index].last_kernel_ns());
            Some(stamp)
        });
        true
    }
}

impl<C: Channel + 'static, H: Consumer> Source<H> for Received<C> {
    fn succeed(self: Box<Self>) -> Box<dyn Source<H::Successor>> {
        self
    }

    fn join(
        &mut self,
        ports: &Ports,
        protocol: Protocol,
        options: SocketOptions,
        waiter: &mut Waiter,
    ) -> Result<(), Failure> {
        let intake = Intake::join(ports, protocol, options, waiter)?;
        intake.introduce(&mut self.channel);
        self.intake = Some(intake);
        Ok(())
    }

    #[inline]
    fn receive(&mut self, hot: &mut H, look: &mut Look<'_>) -> Taken {
        hot.turn_to(self.number);
        if !self.waits_for_links() {
            self.channel.read_up_to(look.read);
        }
        let has_two = self.intake.as_ref().is_some_and(|intake| intake.live.len() > 1);
        // Of a hooked line only what the program leaves to the kernel is here, see `Source::hold`.
        let rounds = if self.is_hooked { 0 } else { PACKETS_PER_LOOK };
        let mut taken = if self.is_hooked {
            Taken::Nothing
        } else {
            Taken::Part
        };
        for round in 0..rounds {
            let a = self.receive_line(0, Line::A, hot, look);
            let b = has_two && self.receive_line(1, Line::B, hot, look);
            if !(a || b) {
                taken = if round == 0 { Taken::Nothing } else { Taken::All };
                break;
            }
        }
        let Some(intake) = &mut self.intake else {
            return taken;
        };
        if taken != Taken::Nothing {
            // A gap that they showed.
            intake.request(&mut self.channel);
        }
        match self.recover(hot, look) {
            true => taken,
            false => Taken::Part,
        }
    }

    fn hold(&mut self, waiter: &Waiter, buffer: &mut [u8], into: &mut [u8]) -> Option<Held> {
        let intake = self.intake.as_mut().filter(|_| self.is_hooked)?;
        let lines = [Line::A, Line::B].into_iter().zip(0..intake.live.len());
        for (line, index) in lines {
            if intake.has_input(index, waiter)
                && let Some(datagram) = intake.receive(index, buffer)
            {
                let length = datagram.bytes.len().min(into.len());
                into[..length].copy_from_slice(&datagram.bytes[..length]);
                let stamp = datagram.stamp;
                return Some(Held { line, stamp, length });
            }
        }
        None
    }

    fn take_held(&mut self, held: &Held, bytes: &[u8], hot: &mut H) {
        hot.turn_to(self.number);
        let mut stamp = held.stamp;
        // Behind what the rings held.
        stamp.tsc = tsc();
        let received = hot.begins(&stamp);
        pass(&mut self.channel, received, (Port::Live, held.line), bytes, hot);
        let Some(intake) = &mut self.intake else { return };
        hot.ends(&self.channel, Port::Live, || {
            let socket = &intake.live[held.line as usize];
            stamp.kernel_ns = stamp.kernel_ns.or_else(|| socket.last_kernel_ns());
            Some(stamp)
        });
        intake.request(&mut self.channel);
    }

    fn live_lines(&self) -> Option<&LiveLines> {
        self.intake.as_ref().map(Intake::lines)
    }

    fn leave_sockets(&mut self) {
        self.is_hooked = true;
    }

    fn filter(&mut self, framing: Framing) {
        let filtering = Filtering::new(framing);
        filtering.prepare(&mut self.channel);
        self.filtering = Some(filtering);
    }

    #[inline]
    fn guard(&mut self, gate: &mut dyn Gate) {
        if let Some(filtering) = &self.filtering {
            filtering.guard(&self.channel, gate);
        }
    }

    fn position(&self) -> Option<([u64; 2], u64)> {
        self.filtering.as_ref()?.position(&self.channel)
    }

    fn fetch(&self) {
        self.rehearsed.fetch(&self.channel);
    }

    #[inline]
    fn rehearse(&mut self, now: Nanos, hot: &mut H) -> bool {
        self.rehearsed.play(now, hot)
    }

    fn price_unit(&self, instrument: InstrumentId) -> Option<Price> {
        self.channel.price_unit(instrument)
    }

    fn is_to_open(&mut self, gate: &mut dyn Gate) -> bool {
        let channel = &self.channel;
        let filtering = self.filtering.as_mut();
        filtering.is_some_and(|filtering| filtering.is_to_open(channel, gate))
    }

    fn settle(&mut self, gate: &mut dyn Gate) {
        if let Some(filtering) = &mut self.filtering {
            filtering.settle(&mut self.channel, gate);
        }
    }

    fn seen(&mut self, now: Nanos, up_to: Option<u64>) {
        self.channel.alive(now);
        let claim = |filtering: &Filtering| filtering.claim(up_to);
        if let Some(next) = self.filtering.as_ref().map_or(up_to, claim) {
            self.channel.seen_up_to(now, SeqNo(next));
        }
    }

    fn note_filter(&mut self, counts: Counters) {
        if let Some(intake) = &mut self.intake {
            intake.hook = counts;
        }
    }

    #[inline]
    fn take(&mut self, datagram: &Hooked<'_>, hot: &mut H) {
        hot.turn_to(self.number);
        let received = hot.begins(&datagram.stamp);
        let claim = |filtering: &Filtering| filtering.claim(datagram.seen_up_to);
        if let Some(next) = self.filtering.as_ref().and_then(claim) {
            self.channel.seen_up_to(received, SeqNo(next));
        }
        let before = self.channel.next_seq();
        let noted = match &self.filtering {
            Some(filtering) => filtering.noted(&mut self.channel),
            None => 0,
        };
        let from = (Port::Live, datagram.line);
        pass(&mut self.channel, received, from, datagram.bytes, hot);
        if let Some(filtering) = &mut self.filtering {
            let about = (noted, datagram.knows_orders);
            filtering.note(&mut self.channel, datagram.bytes, before, about);
        }
        hot.ends(&self.channel, Port::Live, || Some(datagram.stamp));
        if let Some(intake) = &mut self.intake {
            intake.lost += u64::from(datagram.lost);
            intake.request(&mut self.channel);
        }
    }

    #[inline]
    fn deliver(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], hot: &mut H) {
        hot.turn_to(self.number);
        hot.begins_at(now);
        if self.channel.poll_timeout().is_some_and(|due| due <= now) {
            self.channel.handle_timeout(now, hot);
        }
        pass(&mut self.channel, now, (port, line), bytes, hot);
        hot.ends(&self.channel, port, || None);
    }

    fn timers(&mut self, read: Nanos, hot: &mut H) -> Option<Nanos> {
        let due = self.channel.poll_timeout();
        if due.is_none_or(|due| due > read) {
            return due;
        }
        hot.turn_to(self.number);
        hot.begins_aside(read);
        self.channel.handle_timeout(read, hot);
        hot.ends_aside(&self.channel);
        if let Some(intake) = &mut self.intake {
            intake.request(&mut self.channel);
        }
        self.channel.poll_timeout()
    }

    fn pass_time(&mut self, hot: &mut H, look: &mut Look<'_>) -> Option<Nanos> {
        let due = self.channel.poll_timeout();
        if due.is_none_or(|due| due > look.read) {
            return due;
        }
        // An answer that is waited for may lie in a connection.
        self.links(hot, look);
        if self.waits_for_links() {
            return due;
        }
        self.timers(look.read, hot)
    }

    fn links(&mut self, hot: &mut H, look: &mut Look<'_>) {
        if let Some(intake) = &mut self.intake
            && (intake.is_linked() || look.is_thorough && intake.has_links())
        {
            hot.turn_to(self.number);
            hot.begins_aside(look.now);
            let is_all = intake.links(look.now, look.buffer, &mut self.channel, hot);
            hot.ends_aside(&self.channel);
            intake.request(&mut self.channel);
            self.links_behind = match is_all {
                true => 0,
                false => self.links_behind.saturating_add(1),
            };
        }
    }

    fn look(&mut self, hot: &mut H) {
        hot.turn_to(self.number);
        if let Some(intake) = &mut self.intake {
            intake.settle();
        }
        hot.looks(&self.channel, |counters| {
            if let Some(intake) = &self.intake {
                intake.count_into(counters);
            }
        });
        self.rehearsed.look(&self.channel, hot);
    }

    fn count(&self, hot: &mut H, dropped: &dyn Fn(FilterName) -> Option<u64>) {
        hot.turn_to(self.number);
        hot.counts(&self.channel, &|instrument| {
            dropped(self.filtering.as_ref()?.name_of(&self.channel, instrument)?)
        });
    }

    fn visit(&mut self, now: Nanos, hot: &mut H) {
        hot.turn_to(self.number);
        hot.visits(now, &mut self.channel);
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.channel.poll_timeout()
    }

    fn state(&self) -> FeedState {
        self.channel.state()
    }

    fn is_done(&self) -> bool {
        self.channel.is_done()
    }

    fn last_packet(&self) -> Nanos {
        self.channel.last_packet()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        if let Some(intake) = &self.intake {
            intake.count_into(&mut all);
        }
        all
    }

    fn groups(&self) -> String {
        self.intake.as_ref().map(Intake::groups).unwrap_or_default()
    }

    fn warning(&self) -> Option<String> {
        self.intake.as_ref()?.warning()
    }

    fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.channel.find(symbol)
    }

    fn directory(&self) -> Vec<(Symbol, InstrumentId)> {
        let mut known = Vec::new();
        self.channel.instruments(&mut |i| known.push((i.symbol, i.id)));
        known
    }
}
