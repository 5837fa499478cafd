//! FIX: the decoder against the naive one, and a session that lives through anything a peer may say.

use crate::Choices;
use tickwire_fix::{
    Again, CancelOn, CompId, Event, Excess, Frame, Hours, Id, Index, NewOrderSingle, Period, Role, Session,
    SessionConfig, Status, Throttle, Version, frame, naive,
};
use tickwire_market::{Nanos, OrderType, Price, Qty, Side, Symbol, TimeInForce};

const MESSAGE_MAX: usize = 4096;

/// Framing gets on, and a framed message has the fields that the naive decoder finds, or both refuse it.
pub fn fix_decode(bytes: &[u8]) {
    let mut index = Index::new(MESSAGE_MAX);
    let mut rest = bytes;
    loop {
        match frame(rest, MESSAGE_MAX) {
            Frame::Partial => return,
            Frame::Garbled { skip, .. } => {
                assert!((1..=rest.len()).contains(&skip));
                rest = &rest[skip..];
            }
            Frame::Whole(len) => {
                compare(&mut index, &rest[..len]);
                rest = &rest[len..];
            }
        }
    }
}

fn compare(index: &mut Index, message: &[u8]) {
    let expected = naive::decode(message);
    let Ok(decoded) = index.decode(message) else {
        assert!(expected.is_none(), "refused, but the naive decoder reads it");
        return;
    };
    let fields = decoded
        .fields()
        .iter()
        .map(|&field| (field.tag, decoded.value(field).to_vec()));
    match expected {
        Some(expected) => {
            assert!(decoded.malformed().is_none(), "{:?}", decoded.malformed());
            assert_eq!(fields.collect::<Vec<_>>(), expected);
        }
        None => assert!(
            decoded.malformed().is_some(),
            "read, but the naive decoder refuses it"
        ),
    }
}

/// One of the operations below a byte or more each, over and over. Small buffers, so that they run full.
pub fn fix_session(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (Some(setup), Some(more)) = (choices.byte(), choices.byte()) else {
        return;
    };
    let mut peer = Peer::new(setup, more);
    while let Some(what) = choices.byte() {
        if peer.step(what, &mut choices).is_none() {
            return;
        }
        peer.drain();
    }
}

/// A session and the other side of its connection, which says what the input says.
struct Peer {
    session: Session,
    now: Nanos,
    /// The number of the next message we say; the session's expectation as far as we know.
    seq: u64,
    is_acceptor: bool,
    /// The last application message that came out.
    delivered: u64,
    sent: Vec<u8>,
}

impl Peer {
    fn new(setup: u8, more: u8) -> Peer {
        let is_acceptor = setup & 1 == 0;
        let (role, own, other) = if is_acceptor {
            (Role::Acceptor, "E", "T")
        } else {
            (Role::Initiator, "T", "E")
        };
        let comp = |text: &str| CompId::new(text.as_bytes()).expect("one letter");
        let rate = |bit: u8| {
            let excess = [Excess::Delay, Excess::Reject, Excess::Disconnect][usize::from(more) % 3];
            (more & bit != 0).then_some(Throttle {
                per_second: 4,
                burst: 2,
                excess,
            })
        };
        let config = SessionConfig {
            version: if setup & 32 == 0 {
                Version::Fix44
            } else {
                Version::Fix50Sp2
            },
            asks_about_logons: more & 1 != 0,
            tells_session_messages: more & 1 != 0,
            asks_about_resends: more & 16 != 0,
            next_expected: more & 2 != 0,
            last_processed: more & 4 != 0,
            resend_chunk: u64::from(more >> 3 & 1) * 2,
            reset_on_logout: more & 16 != 0,
            throttle_out: rate(32),
            throttle_in: rate(64),
            cancel_on: if more & 128 != 0 {
                CancelOn::AnyEnd
            } else {
                CancelOn::Never
            },
            cancel_after_ns: Nanos::SECOND,
            heartbeat_s: u32::from(setup >> 1 & 3) * 10,
            reset_on_logon: setup & 8 != 0,
            latency_max_ns: if setup & 16 == 0 { 0 } else { Nanos::SECOND },
            receive_bytes: 1_024,
            transmit_bytes: 4_096,
            early_bytes: 1_024,
            events: 8,
            fields_max: 32,
            store_messages: 16,
            store_bytes: 2_048,
            ..SessionConfig::new(role, comp(own), comp(other))
        };
        // 2026-11-20, 14:30 UTC.
        let now = Nanos(1_795_185_000 * Nanos::SECOND);
        Peer {
            session: Session::new(config),
            now,
            seq: 1,
            is_acceptor,
            delivered: 0,
            sent: Vec::new(),
        }
    }

    fn step(&mut self, what: u8, choices: &mut Choices<'_>) -> Option<()> {
        match what % 12 {
            0 => self.hears_raw(choices),
            1..=3 => self.hears(choices)?,
            4 => {
                self.now = self.now.after(u64::from(choices.byte()?) * Nanos::SECOND / 4);
                self.session.handle_timeout(self.now);
            }
            5 => {
                let order = order();
                let _ = self
                    .session
                    .send(self.now, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                        order.encode(e, stamp)
                    });
            }
            6 => self.session.handle_disconnected(self.now),
            8 => self.session.logout(self.now, "enough"),
            9 => {
                let asks = self.session.logon_request().is_some();
                self.session.accept_logon(self.now);
                assert!(!asks || self.session.logon_request().is_none());
            }
            10 => self.session.refuse_logon(self.now, "no"),
            11 => {
                let start = u64::from(choices.byte()?) * Nanos::SECOND;
                let begin = Nanos(self.now.0 - 100 * Nanos::SECOND).after(start);
                let period = Period::new(begin, begin.after(100 * Nanos::SECOND));
                let next = Period::new(period.end, period.end.after(Nanos::SECOND * 10));
                let hours = match period.contains(self.now) {
                    true => Hours {
                        current: Some(period),
                        next: Some(next),
                    },
                    false => Hours {
                        current: None,
                        next: Some(period),
                    },
                };
                self.session.set_hours(self.now, hours);
            }
            _ => {
                if self.session.status() == Status::Disconnected {
                    self.sent.clear();
                    self.session.handle_connected(self.now);
                }
            }
        }
        Some(())
    }

    fn hears_raw(&mut self, choices: &mut Choices<'_>) {
        let len = usize::from(choices.byte().unwrap_or(0));
        self.hand_over(choices.bytes(len));
    }

    /// A well-formed message, right or wrong in its place.
    fn hears(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (kind, odd) = (choices.byte()?, choices.byte()?);
        let seq = match odd % 16 {
            12 => self.seq.saturating_sub(1),
            13 => self.seq + 3,
            14 => u64::from(choices.byte()?),
            15 => u64::MAX,
            _ => self.seq,
        };
        let message = self.message(kind, odd, seq, choices)?;
        self.seq = if seq == self.seq { seq + 1 } else { self.seq };
        let cut = usize::from(odd).min(message.len());
        self.hand_over(&message[..cut]);
        self.hand_over(&message[cut..]);
        Some(())
    }

    fn message(&mut self, kind: u8, odd: u8, seq: u64, choices: &mut Choices<'_>) -> Option<Vec<u8>> {
        let time = b"20261120-14:30:00.000".to_vec();
        let (from, to) = if self.is_acceptor {
            (b"T", b"E")
        } else {
            (b"E", b"T")
        };
        let text = |n: u64| n.to_string().into_bytes();
        let kinds: [&[u8]; 9] = [b"A", b"0", b"1", b"2", b"4", b"5", b"D", b"8", b"3"];
        let which = usize::from(kind) % kinds.len();
        let mut fields = vec![
            (35, kinds[which].to_vec()),
            (34, text(seq)),
            (49, from.to_vec()),
            (56, to.to_vec()),
            (52, time.clone()),
        ];
        if odd & 16 != 0 {
            fields.extend([(43, b"Y".to_vec()), (122, time.clone())]);
        }
        match which {
            0 => {
                fields.extend([(98, b"0".to_vec()), (108, text(u64::from(kind) % 40))]);
                if odd & 64 != 0 {
                    fields.push((789, text(u64::from(kind) / 9)));
                }
                if odd & 32 != 0 {
                    fields.push((141, b"Y".to_vec()));
                    self.seq = 1;
                }
            }
            1 | 2 => fields.push((112, b"x".to_vec())),
            3 => fields.extend([
                (7, text(u64::from(choices.byte()?))),
                (16, text(u64::from(choices.byte()?) % 32)),
            ]),
            4 => {
                let next = seq.saturating_add(u64::from(choices.byte()?) % 8);
                fields.push((36, text(next)));
                if odd & 32 != 0 {
                    fields.push((123, b"Y".to_vec()));
                }
            }
            6 => fields.extend([
                (11, text(seq)),
                (55, b"IVOO".to_vec()),
                (54, b"1".to_vec()),
                (60, time),
                (38, b"100".to_vec()),
                (40, b"2".to_vec()),
                (44, b"1".to_vec()),
            ]),
            8 => fields.extend([(45, text(1)), (371, text(55)), (373, text(1))]),
            _ => {}
        }
        if odd & 128 != 0 {
            let (tag, len) = (u32::from(choices.byte()?), usize::from(choices.byte()?) % 16);
            fields.push((tag, choices.bytes(len).to_vec()));
        }
        let begin_string = self.session.config().version.begin_string();
        let begin_string = core::str::from_utf8(begin_string).expect("ASCII");
        Some(naive::encode_as(begin_string, &fields))
    }

    /// Hands bytes over as the contract says: what is not taken comes again after draining, and then some is
    /// taken.
    fn hand_over(&mut self, mut bytes: &[u8]) {
        let mut idle = 0;
        while !bytes.is_empty() && self.session.status() != Status::Disconnected {
            let taken = self.session.handle_bytes(self.now, bytes);
            assert!(taken <= bytes.len());
            bytes = &bytes[taken..];
            let drained = self.drain();
            if taken == 0 && drained == 0 && !self.session.is_reading() {
                // As the transport does: the rest waits, here for ever.
                let due = self
                    .session
                    .poll_timeout()
                    .expect("it is told when to look again");
                assert!(due > self.now, "to be looked at again at once");
                return;
            }
            idle = if taken > 0 || drained > 0 { 0 } else { idle + 1 };
            assert!(
                idle < 3,
                "{} bytes are never taken in {:?}",
                bytes.len(),
                self.session.status()
            );
        }
    }

    /// Transmissions, then events, until neither is left. How many there were.
    fn drain(&mut self) -> usize {
        let mut count = 0;
        let mut buffer = [0; 100];
        loop {
            let before = count;
            while let Some(bytes) = self.session.poll_transmit(&mut buffer) {
                self.sent.extend_from_slice(bytes);
                count += 1;
            }
            if let Some((seq, message)) = self.session.resend_asked() {
                let may = message.len() % 2 == 0;
                self.session.decide_resend(seq, may);
                count += 1;
            }
            while let Some(event) = self.session.poll_event() {
                self.check(event);
                count += 1;
            }
            assert!(count < 1 << 16, "draining does not end");
            if count == before {
                break;
            }
        }
        self.check_sent();
        let _ = self.session.poll_timeout();
        count
    }

    fn check(&mut self, event: Event) {
        match event {
            Event::LoggedOn { reset: true, .. } => self.delivered = 0,
            Event::Message { seq, .. } => {
                assert!(seq.0 > self.delivered, "message {seq} after {}", self.delivered);
                self.delivered = seq.0;
                self.take();
            }
            _ => {}
        }
    }

    /// Takes an order; what is none is refused, what is wrong rejected.
    fn take(&mut self) {
        let message = self.session.message().expect("the event is about it");
        match message.msg_type() {
            NewOrderSingle::MSG_TYPE => match NewOrderSingle::decode(&message) {
                Ok(_) => {}
                Err(fault) => self.session.reject(self.now, fault),
            },
            _ => self.session.refuse(self.now),
        }
    }

    /// Everything sent so far on this connection is messages, the last one perhaps not whole.
    fn check_sent(&mut self) {
        while let Frame::Whole(len) = frame(&self.sent, 1 << 16) {
            assert!(
                naive::decode(&self.sent[..len]).is_some(),
                "sent {:?}",
                String::from_utf8_lossy(&self.sent[..len])
            );
            self.sent.drain(..len);
        }
        assert!(
            matches!(frame(&self.sent, 1 << 16), Frame::Partial),
            "sent {:?}",
            String::from_utf8_lossy(&self.sent)
        );
    }
}

fn order() -> NewOrderSingle {
    NewOrderSingle {
        cl_ord_id: Id::from_number(7),
        symbol: Symbol::new(b"IVOO").expect("four letters"),
        side: Side::Bid,
        transact_time: Nanos(1_795_185_000 * Nanos::SECOND),
        qty: Qty(100),
        order_type: OrderType::Limit,
        price: Some(Price::from_4dp(873_900)),
        stop: None,
        time_in_force: TimeInForce::Day,
        cause: None,
    }
}
