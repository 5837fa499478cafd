//! Clients of order entry: their connections, and the bytes both ways.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use tickwire_console::failure::Failure;
use tickwire_console::health::{SocketHealth, follow_if_set};
use tickwire_exchange::{Applied, DayPhase, Input, Mask};
use tickwire_market::Nanos;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::trouble::BackOff;
use tickwire_runtime::wait::{Waiter, Watch};

use crate::channel_sockets::CONNECTIONS;
use crate::journal::TRANSMIT_MAX;
use crate::strangers::{Seat, seat};
use crate::{entry, operator};

use super::{Audience, CLIENTS, Venue};

/// A connected client.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) watch: Watch,
    pub(super) mask: Option<Mask>,
    pub(super) came: Nanos,
    /// It has said something.
    pub(super) is_heard: bool,
}

/// Where connections of order entry come in.
pub(super) struct Entrance {
    pub(super) listener: TcpListener,
    pub(super) health: SocketHealth,
}

impl Entrance {
    pub(super) fn open(address: SocketAddr, waiter: &mut Waiter) -> Result<Entrance, Failure> {
        let listener = TcpListener::bind(address).map_err(|e| Failure::system(e.to_string()))?;
        waiter.watch(&listener);
        let health = SocketHealth::new(
            BackOff::SEND,
            format!("accepting orders' connections at {address}"),
        );
        Ok(Entrance { listener, health })
    }

    fn accept(&mut self) -> Option<TcpStream> {
        tickwire_console::health::accept(&mut self.listener, &mut self.health)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl<'a> Venue<'a> {
    pub(super) fn accept(&mut self, now: Nanos) {
        while let Some(stream) = self.orders.accept() {
            self.admit(now, stream, 0..CONNECTIONS);
        }
        while let Some(ouch) = &mut self.ouch
            && let Some(stream) = ouch.accept()
        {
            self.admit(now, stream, CONNECTIONS..CLIENTS);
        }
        for entry in [Some(&mut self.orders), self.ouch.as_mut()].into_iter().flatten() {
            entry.health.settle();
        }
        self.published_channels
            .iter_mut()
            .for_each(|(_, published_channel)| published_channel.settle());
    }

    /// Tells the terminal who came and went, why, and what was cancelled with it.
    pub(super) fn tell_of_clients(&mut self, to: Audience) {
        let exchange = self.market.exchange_mut(0);
        while let Some(notice) = exchange.poll_client_notice() {
            if to == Audience::Operator {
                let name = exchange.client_name(notice.route);
                let line = operator::client_line(name, &notice.event);
                tickwire_console::warn(format_args!("{line}"));
            }
        }
    }

    /// Gives a connection the first free number of its kind, or that of one that says nothing; without one it
    /// is closed.
    fn admit(&mut self, now: Nanos, stream: TcpStream, ids: Range<usize>) {
        let places = ids.map(|id| (id, self.clients[id].as_ref().map(|c| (c.came, c.is_heard))));
        let id = match seat(places, now) {
            Seat::None => return,
            Seat::Free(id) => id,
            Seat::Silent(id) => {
                self.drop_client(id, now);
                id
            }
        };
        if self.input(now, &Input::Connect(id as u16)) == Applied::Admitted(true) {
            let watch = self.waiter.watch(&stream);
            let mask = self.is_masked.then(|| match id < CONNECTIONS {
                true => Mask::fix(),
                false => Mask::ouch(entry::ouch_credentials(&self.config.order_entry)),
            });
            self.clients[id] = Some(Client {
                stream,
                watch,
                mask,
                came: now,
                is_heard: false,
            });
        }
    }

    pub(super) fn serve_orders(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for id in 0..CLIENTS {
            let Some(client) = &mut self.clients[id] else {
                continue;
            };
            let received = client.stream.recv(buffer);
            let now = self.clock.nanos_at(tsc());
            let is_over = match received {
                Ok(Received::Bytes(bytes)) => {
                    client.is_heard = true;
                    self.take_orders(id, now, bytes)?
                }
                Ok(Received::Nothing) => self.transmit(id, now)?.is_none(),
                Ok(Received::Closed) | Err(_) => true,
            };
            if is_over || self.market.exchange(0).wants_close(id) {
                self.close_client(id, now)?;
            }
        }
        Ok(())
    }

    /// Hands over what a client sent, without passwords where they could be kept; `true` when the connection
    /// is over.
    fn take_orders(&mut self, id: usize, now: Nanos, bytes: &[u8]) -> Result<bool, Failure> {
        let Some(mask) = self.clients[id].as_mut().and_then(|client| client.mask.as_mut()) else {
            return self.take_bytes(id, now, bytes);
        };
        let mut masked = std::mem::take(&mut self.masked);
        masked.clear();
        mask.feed(bytes, &mut masked);
        let taken = self.take_bytes(id, now, &masked);
        self.masked = masked;
        taken
    }

    fn take_bytes(&mut self, id: usize, now: Nanos, mut bytes: &[u8]) -> Result<bool, Failure> {
        if follow_if_set(&mut self.clock, &mut self.clock_steps) {
            self.input(now, &Input::ClockSet(self.clock.wall_offset_ns()));
        }
        while !bytes.is_empty() {
            let Applied::Taken(taken) = self.input(now, &Input::Bytes(id as u16, bytes)) else {
                return Ok(true);
            };
            bytes = &bytes[taken..];
            match self.transmit(id, now)? {
                // Neither taken nor sent: the client does not read what it is sent.
                Some(false) if taken == 0 => return Ok(true),
                Some(_) => {}
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Sends what is waiting for a client; whether there was anything, `None` when the connection is lost.
    fn transmit(&mut self, id: usize, now: Nanos) -> Result<Option<bool>, Failure> {
        if self.clients[id].is_none() {
            return Ok(Some(false));
        }
        let mut any = false;
        loop {
            let input = Input::Transmit(id as u16, TRANSMIT_MAX as u32);
            let Applied::Sent(length @ 1..) = input.apply(now, &mut self.market, &mut self.out) else {
                break;
            };
            // One that gave nothing has changed nothing.
            if let Some(journal) = &mut self.kept.journal {
                journal.put(now, &input);
            }
            any = true;
            self.keep()?;
            if let Some(client) = &mut self.clients[id]
                && client.stream.send(&self.out[..length]).is_err()
            {
                return Ok(None);
            }
        }
        if let Some(client) = &mut self.clients[id]
            && client.stream.has_unsent()
            && client.stream.flush().is_err()
        {
            return Ok(None);
        }
        if any && self.opened.is_none() {
            let now = self.clock.now();
            self.open(now);
        }
        Ok(Some(any))
    }

    pub(super) fn close_client(&mut self, id: usize, now: Nanos) -> Result<(), Failure> {
        let is_ended = self.market.exchange(0).wants_close(id);
        self.transmit(id, now)?;
        if !self.drop_client(id, now) {
            return Ok(());
        }
        let early = matches!(
            self.market.exchange(0).phase(),
            DayPhase::Waiting | DayPhase::Opening | DayPhase::Open
        );
        if early && self.config.exchange.stop_on_client_loss {
            return Err(Failure::peer_lost(match is_ended {
                true => "the trader's session ended before the close",
                false => "the trader's connection was lost before the close; was it stopped or killed?",
            }));
        }
        Ok(())
    }

    /// Closes a connection; whether there was one.
    fn drop_client(&mut self, id: usize, now: Nanos) -> bool {
        let Some(mut client) = self.clients[id].take() else {
            return false;
        };
        self.waiter.forget(client.watch);
        client.stream.finish();
        self.input(now, &Input::Disconnect(id as u16));
        true
    }
}

/// Whether clients have been served for long enough after the end.
pub(super) fn has_lingered(now: Nanos, over_since: Nanos, linger_s: u32) -> bool {
    now.since(over_since) >= u64::from(linger_s) * Nanos::SECOND
}
