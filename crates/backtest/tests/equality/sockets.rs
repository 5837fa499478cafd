//! The strategy on a thread of its own ([`super::lockstep`]), with orders as OUCH 5.0 in SoupBinTCP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use tickwire_exchange::listings;
use tickwire_feed::{Channel, OuchClient, OuchConfig, OuchEvent};
use tickwire_market::{
    Cause, ClientOrderId, InstrumentId, Nanos, OrderIntent, OrderType, Price, Qty, Side, TimeInForce,
};
use tickwire_trading::{OrderReport, ReportKind};
use tickwire_wire::layout::{Alpha, Char, Pod};
use tickwire_wire::ouch50::{
    AccountQueryResponse, Appendage, CancelReject, EnterOrder, Inbound, OrderAccepted, OrderCanceled,
    OrderExecuted, OrderRejected, OrderReplaced, Outbound, Price4Wide, ReplaceOrder, encode, parse_inbound,
    parse_outbound,
};
use tickwire_wire::soupbintcp::{LoginAccepted, Packet, split};

use super::lockstep::{Lockstep, SESSION, Trading};
use super::{Host, InMemory, Request, SYMBOLS, Said, Which, in_memory};

/// The venue's end.
pub(crate) struct OverSockets {
    lockstep: Lockstep,
    tcp: TcpStream,
    stream: Vec<u8>,
}

/// Starts the strategy's thread and lets it log in.
pub(crate) fn over_sockets(which: Which) -> OverSockets {
    let (lockstep, tcp) = Lockstep::start(move || in_memory(which), log_in);
    let mut venue = OverSockets {
        lockstep,
        tcp,
        stream: Vec::new(),
    };
    // The login, then what the next number of a request is.
    let login = venue.packet();
    assert_eq!(login.first(), Some(&b'L'), "a login");
    let accepted = LoginAccepted::new(&SESSION, 1).expect("a session");
    venue.say(&Packet::LoginAccepted(&accepted));
    let query = venue.packet();
    assert_eq!(query.first(), Some(&b'U'), "a query");
    let answer = AccountQueryResponse {
        next_user_ref_num: 1.into(),
        ..AccountQueryResponse::NEW
    };
    venue.say(&Packet::Sequenced(&with_options(&answer)));
    venue.lockstep.begun();
    venue
}

impl OverSockets {
    fn say(&mut self, packet: &Packet<'_>) {
        let mut buffer = [0; 256];
        let len = packet.encode(&mut buffer).expect("it is short");
        self.tcp.write_all(&buffer[..len]).expect("it is connected");
    }

    /// The next packet of the strategy: its type and what it carries.
    fn packet(&mut self) -> Vec<u8> {
        loop {
            let found = split(&self.stream).expect("a packet").map(|(packet, len)| {
                let payload = match packet {
                    Packet::Unsequenced(bytes) => bytes.to_vec(),
                    _ => Vec::new(),
                };
                ([vec![packet.kind()], payload].concat(), len)
            });
            if let Some((packet, len)) = found {
                self.stream.drain(..len);
                if packet[0] != b'R' {
                    return packet;
                }
                continue;
            }
            let mut buffer = [0; 4096];
            let len = self.tcp.read(&mut buffer).expect("it is connected");
            assert!(len > 0, "the strategy has hung up");
            self.stream.extend_from_slice(&buffer[..len]);
        }
    }
}

impl Host for OverSockets {
    fn message(&mut self, _: Nanos, message: &[u8]) {
        self.lockstep.message(message);
    }

    fn report(&mut self, _: Nanos, report: &OrderReport) {
        let of = |number: ClientOrderId| (number.0 as u32).into();
        let user_ref_num = of(report.id);
        let message = match report.kind {
            ReportKind::Accepted => with_options(&OrderAccepted {
                user_ref_num,
                ..OrderAccepted::NEW
            }),
            ReportKind::Filled { qty, price, .. } => with_options(&OrderExecuted {
                user_ref_num,
                quantity: qty.0.into(),
                price: price_4(price),
                ..OrderExecuted::NEW
            }),
            ReportKind::Cancelled => with_options(&OrderCanceled {
                user_ref_num,
                ..OrderCanceled::NEW
            }),
            ReportKind::CancelRejected => with_options(&CancelReject {
                user_ref_num,
                ..CancelReject::NEW
            }),
            ReportKind::Replaced { by, .. } => with_options(&OrderReplaced {
                orig_user_ref_num: user_ref_num,
                user_ref_num: of(by),
                ..OrderReplaced::NEW
            }),
            ReportKind::ReplaceRejected { by } => with_options(&OrderRejected {
                user_ref_num: of(by),
                ..OrderRejected::NEW
            }),
            ReportKind::Rejected | ReportKind::Triggered | ReportKind::Broken { .. } => {
                panic!("{report:?}: the venue does not")
            }
        };
        self.say(&Packet::Sequenced(&message));
        self.lockstep.reported();
    }

    fn requests(&mut self) -> Vec<Request> {
        let count = self.lockstep.take_sent();
        (0..count)
            .map(|_| Request::Order(intent(&self.packet()[1..])))
            .collect()
    }

    fn finish(self) -> Vec<Said> {
        self.lockstep.finish()
    }
}

/// A message and no options.
fn with_options(layout: &impl Pod) -> Vec<u8> {
    let mut buffer = [0; 128];
    let len = encode(layout.as_bytes(), Some(&Appendage::default()), &mut buffer);
    buffer[..len.expect("it is short")].to_vec()
}

/// OUCH's prices are in 0.0001.
fn price_4(price: Price) -> Price4Wide {
    Price4Wide::from_price(price).expect("a price of this venue")
}

fn price_of(price: Price4Wide) -> Price {
    price.checked_price().expect("a price of this venue")
}

/// A request as the matching engine takes it; orders have their UserRefNum here.
fn intent(message: &[u8]) -> OrderIntent {
    let id = |number: u32| ClientOrderId(number.into());
    match parse_inbound(message).expect("a request").0 {
        Inbound::EnterOrder(m) => OrderIntent::New {
            id: id(m.user_ref_num.get()),
            instrument: {
                let all = listings(SYMBOLS);
                let place = all.iter().position(|l| l.symbol.as_bytes() == m.symbol.trimmed());
                InstrumentId(1 + place.expect("it is listed") as u32)
            },
            side: if m.side.0 == b'B' { Side::Bid } else { Side::Ask },
            order_type: OrderType::Limit,
            price: price_of(m.price),
            stop: None,
            qty: Qty(m.quantity.get()),
            time_in_force: match m.time_in_force.0 {
                b'3' => TimeInForce::ImmediateOrCancel,
                _ => TimeInForce::Day,
            },
            cause: Cause::default(),
        },
        Inbound::ReplaceOrder(m) => OrderIntent::Replace {
            id: id(m.user_ref_num.get()),
            target: id(m.orig_user_ref_num.get()),
            venue_id: None,
            instrument: InstrumentId::default(),
            side: Side::Bid,
            order_type: OrderType::Limit,
            price: price_of(m.price),
            stop: None,
            qty: Qty(m.quantity.get()),
            time_in_force: TimeInForce::Day,
            cause: Cause::default(),
        },
        Inbound::CancelOrder(m) => OrderIntent::Cancel {
            id: ClientOrderId(0),
            target: id(m.user_ref_num.get()),
            venue_id: None,
            instrument: InstrumentId::default(),
            side: Side::Bid,
            qty: Qty::ZERO,
            cause: Cause::default(),
        },
        other => panic!("{other:?}: the strategy does not"),
    }
}

/// The strategy's end.
struct OverOuch<C> {
    host: InMemory<C>,
    client: OuchClient,
    tcp: TcpStream,
    begun: Instant,
    /// Numbers of orders by those of the session, and the other way round; and what was filled.
    ours: BTreeMap<u32, ClientOrderId>,
    theirs: BTreeMap<ClientOrderId, u32>,
    filled: BTreeMap<ClientOrderId, u32>,
    /// By the number of a replacement that waits: the order that it replaces.
    replacing: BTreeMap<u32, ClientOrderId>,
}

/// Logs in and learns the next number of a request.
fn log_in<C: Channel>(host: InMemory<C>, tcp: TcpStream) -> OverOuch<C> {
    let mut trading = OverOuch {
        host,
        client: OuchClient::new(OuchConfig::default()),
        tcp,
        begun: Instant::now(),
        ours: BTreeMap::new(),
        theirs: BTreeMap::new(),
        filled: BTreeMap::new(),
        replacing: BTreeMap::new(),
    };
    trading.client.handle_connected(trading.now());
    while !trading.client.is_ready() {
        trading.transmit();
        trading.receive();
    }
    trading
}

impl<C: Channel> Trading<C> for OverOuch<C> {
    fn host(&mut self) -> &mut InMemory<C> {
        &mut self.host
    }

    fn end(self) -> InMemory<C> {
        self.host
    }

    fn now(&self) -> Nanos {
        Nanos(1 + self.begun.elapsed().as_nanos() as u64)
    }

    fn receive(&mut self) -> usize {
        let mut buffer = [0; 2048];
        let len = self.tcp.read(&mut buffer).expect("it is connected");
        assert!(len > 0, "the venue has hung up");
        let now = self.now();
        self.client.handle_bytes(now, &buffer[..len]);
        let mut reports = Vec::new();
        while let Some(event) = self.client.poll_event(now) {
            if let OuchEvent::Message { .. } = event {
                reports.extend(self.report_of());
            }
        }
        for report in &reports {
            self.host.report(now, report);
        }
        reports.len()
    }

    fn send(&mut self) -> usize {
        let (now, requests) = (self.now(), self.host.requests());
        for request in &requests {
            let Request::Order(request) = request else {
                panic!("{request:?}: OUCH 5.0 has no quotes");
            };
            match *request {
                OrderIntent::New {
                    id,
                    instrument,
                    side,
                    price,
                    qty,
                    time_in_force,
                    ..
                } => {
                    let symbol = listings(SYMBOLS)[instrument.index() - 1].symbol;
                    let order = EnterOrder {
                        side: Char(if side == Side::Bid { b'B' } else { b'S' }),
                        quantity: qty.0.into(),
                        symbol: Alpha::new(symbol.as_bytes()).expect("a symbol"),
                        price: price_4(price),
                        time_in_force: Char(match time_in_force {
                            TimeInForce::ImmediateOrCancel => b'3',
                            _ => b'0',
                        }),
                        ..EnterOrder::NEW
                    };
                    let number = self.client.enter(now, &order, &Appendage::default());
                    self.known(number.expect("it is sent"), id);
                }
                OrderIntent::Replace {
                    id,
                    target,
                    price,
                    qty,
                    ..
                } => {
                    let replacement = ReplaceOrder {
                        orig_user_ref_num: self.theirs[&target].into(),
                        quantity: qty.0.into(),
                        price: price_4(price),
                        ..ReplaceOrder::NEW
                    };
                    let number = self.client.replace(now, &replacement, &Appendage::default());
                    let number = number.expect("it is sent");
                    self.replacing.insert(number, target);
                    self.known(number, id);
                }
                OrderIntent::Cancel { target, .. } => {
                    assert!(self.client.cancel(now, self.theirs[&target], 0), "it is sent");
                }
            }
        }
        self.transmit();
        requests.len()
    }
}

impl<C: Channel> OverOuch<C> {
    fn transmit(&mut self) {
        let mut buffer = [0; 2048];
        while let Some(bytes) = self.client.poll_transmit(&mut buffer) {
            self.tcp.write_all(bytes).expect("it is connected");
        }
    }

    /// The session's last message as a report.
    fn report_of(&mut self) -> Option<OrderReport> {
        let of = |number: u32| self.ours.get(&number).copied().expect("one of ours");
        let (message, _) = parse_outbound(self.client.message()).expect("a message");
        let (id, kind) = match message {
            Outbound::OrderAccepted(m) => (of(m.user_ref_num.get()), ReportKind::Accepted),
            Outbound::OrderCanceled(m) => (of(m.user_ref_num.get()), ReportKind::Cancelled),
            Outbound::CancelReject(m) => (of(m.user_ref_num.get()), ReportKind::CancelRejected),
            Outbound::OrderExecuted(m) => {
                let id = of(m.user_ref_num.get());
                let filled = self.filled.entry(id).or_default();
                *filled += m.quantity.get();
                let kind = ReportKind::Filled {
                    qty: Qty(m.quantity.get()),
                    price: price_of(m.price),
                    cumulative: Qty(*filled),
                };
                (id, kind)
            }
            Outbound::OrderReplaced(m) => {
                let (id, by) = (of(m.orig_user_ref_num.get()), of(m.user_ref_num.get()));
                let filled = self.filled.get(&id).copied().unwrap_or_default();
                self.filled.insert(by, filled);
                (id, ReportKind::Replaced { by, venue_id: None })
            }
            Outbound::OrderRejected(m) => {
                let by = of(m.user_ref_num.get());
                let id = self.replacing[&m.user_ref_num.get()];
                (id, ReportKind::ReplaceRejected { by })
            }
            _ => return None,
        };
        Some(OrderReport {
            id,
            venue_id: None,
            kind,
        })
    }

    fn known(&mut self, number: u32, id: ClientOrderId) {
        self.ours.insert(number, id);
        self.theirs.insert(id, number);
    }
}
