//! The client's side of an OUCH 5.0 port: numbers requests, hands out what the host says in order and once,
//! and after a lost connection sends again what the host has not processed.
//!
//! Recovery follows OUCH 5.0, "Fault redundancy": log in with the next number expected, so that what was
//! missed comes again; ask for the next UserRefNum; send every request from that one on again, with the same
//! numbers, which makes it harmless. Cancels and modifications have no number of their own and are not sent
//! again: the owner sees in the replayed messages what became of the order.
//!
//! Order of calls: `handle_*` or a request, then drain [`OuchClient::poll_transmit`],
//! [`OuchClient::poll_event`], [`OuchClient::poll_timeout`].

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tickwire_market::{Nanos, SeqNo};
use tickwire_wire_core::layout::Alpha;
use tickwire_wire_core::layout::Pod;
use tickwire_wire_nasdaq::ouch50::{
    AccountQuery, Appendage, CancelOrder, EnterOrder, Inbound, MESSAGE_SIZE_MAX, MassCancel, ModifyOrder,
    Outbound, ReplaceOrder, encode, parse_inbound, parse_outbound,
};
use tickwire_wire_nasdaq::soupbintcp::{Packet, split};

use crate::SoupFailure;
use crate::soup::{SoupClient, SoupConfig, SoupEvent};

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct OuchConfig {
    /// Its login.
    pub soup: SoupConfig,
    /// Numbered requests that may wait for an answer; more are refused.
    pub unanswered_max: usize,
}

impl Default for OuchConfig {
    fn default() -> OuchConfig {
        OuchConfig {
            soup: SoupConfig::default(),
            unanswered_max: 4096,
        }
    }
}

/// What a client tells its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OuchEvent {
    /// Logged in and in step with the host: the next UserRefNum, and how many requests were sent again.
    Ready {
        /// The next number.
        next_user_ref_num: u32,
        /// How many requests.
        resent: usize,
    },
    /// A message of the host: [`OuchClient::message`] has it until the next call of
    /// [`OuchClient::poll_event`].
    Message {
        /// Its number in the session.
        seq: SeqNo,
    },
    /// No more messages today.
    EndOfSession,
    /// The connection is of no further use; connect again with [`OuchClient::handle_connected`].
    Failed(SoupFailure),
}

/// See the module's description.
pub struct OuchClient {
    soup: SoupClient,
    /// The session it is in, spaces before the first login.
    session: Alpha<10>,
    /// The next message expected.
    next_seq: u64,
    /// The next number to use.
    next_ref: u32,
    /// In step with the host: requests go out.
    is_ready: bool,
    /// Numbered requests without an answer, oldest first.
    unanswered: VecDeque<(u32, Vec<u8>)>,
    unanswered_max: usize,
    message: Vec<u8>,
}

impl OuchClient {
    /// Not connected.
    pub fn new(config: OuchConfig) -> OuchClient {
        OuchClient {
            session: config.soup.session,
            next_seq: config.soup.sequence,
            soup: SoupClient::new(config.soup),
            next_ref: 1,
            is_ready: false,
            unanswered: VecDeque::new(),
            unanswered_max: config.unanswered_max,
            message: Vec::new(),
        }
    }

    /// A connection is there: logs in, from where it was.
    pub fn handle_connected(&mut self, now: Nanos) {
        self.is_ready = false;
        self.soup.ask_for(self.session, self.next_seq);
        self.soup.handle_connected(now);
    }

    /// Bytes of the connection, at most [`crate::STREAM_CHUNK_MAX`]; drain events before the next ones.
    pub fn handle_bytes(&mut self, now: Nanos, bytes: &[u8]) {
        self.soup.handle_bytes(now, bytes);
    }

    /// The connection is gone.
    pub fn handle_closed(&mut self) {
        self.is_ready = false;
        self.soup.handle_closed();
    }

    /// Heartbeats, and patience running out.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.soup.handle_timeout(now);
    }

    /// When to call [`OuchClient::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.soup.poll_timeout()
    }

    /// Bytes to send. `buffer` must hold a login request (49 bytes).
    pub fn poll_transmit<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.soup.poll_transmit(buffer)
    }

    /// Says goodbye; the host closes.
    pub fn log_out(&mut self) {
        self.is_ready = false;
        self.soup.log_out();
    }

    /// Whether requests go out.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Numbered requests that wait for an answer.
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// The number that the next request will have.
    pub fn next_user_ref_num(&self) -> u32 {
        self.next_ref
    }

    /// An order that somebody else has put on this connection under the next number, a core in hardware: its
    /// packet of SoupBinTCP. It waits for its answer like one entered here. `false` if it is none, or has
    /// another number; nothing has changed then.
    pub fn took(&mut self, packet: &[u8]) -> bool {
        let Ok(Some((Packet::Unsequenced(request), taken))) = split(packet) else {
            return false;
        };
        let Ok((Inbound::EnterOrder(order), _)) = parse_inbound(request) else {
            return false;
        };
        if !self.is_ready || order.user_ref_num.get() != self.next_ref || taken != packet.len() {
            return false;
        }
        self.unanswered.push_back((self.next_ref, request.to_vec()));
        self.next_ref = self.next_ref.saturating_add(1);
        true
    }

    /// Enters an order under the next number, which it gives; `None` when not ready, or too much waits.
    pub fn enter(&mut self, now: Nanos, order: &EnterOrder, options: &Appendage) -> Option<u32> {
        self.numbered(now, |number, buffer| {
            let order = EnterOrder {
                user_ref_num: number.into(),
                ..*order
            };
            encode(order.as_bytes(), Some(options), buffer)
        })
    }

    /// Replaces an order; the replacement's number.
    pub fn replace(&mut self, now: Nanos, order: &ReplaceOrder, options: &Appendage) -> Option<u32> {
        self.numbered(now, |number, buffer| {
            let order = ReplaceOrder {
                user_ref_num: number.into(),
                ..*order
            };
            encode(order.as_bytes(), Some(options), buffer)
        })
    }

    /// Cancels all orders of a firm, of one instrument or all; the request's number.
    pub fn mass_cancel(&mut self, now: Nanos, request: &MassCancel) -> Option<u32> {
        self.numbered(now, |number, buffer| {
            let request = MassCancel {
                user_ref_num: number.into(),
                ..*request
            };
            encode(request.as_bytes(), Some(&Appendage::EMPTY), buffer)
        })
    }

    /// Leaves `quantity` of an order in all, what was executed included; whether it went out.
    pub fn cancel(&mut self, now: Nanos, user_ref_num: u32, quantity: u32) -> bool {
        let request = CancelOrder {
            user_ref_num: user_ref_num.into(),
            quantity: quantity.into(),
            ..CancelOrder::NEW
        };
        self.is_ready && self.soup.send(now, request.as_bytes())
    }

    /// Modifies an order; whether it went out.
    pub fn modify(&mut self, now: Nanos, request: &ModifyOrder) -> bool {
        self.is_ready && self.soup.send(now, request.as_bytes())
    }

    fn numbered(&mut self, now: Nanos, write: impl FnOnce(u32, &mut [u8]) -> Option<usize>) -> Option<u32> {
        if !self.is_ready || self.unanswered.len() >= self.unanswered_max {
            return None;
        }
        let number = self.next_ref;
        let mut buffer = [0; MESSAGE_SIZE_MAX];
        let length = write(number, &mut buffer)?;
        if !self.soup.send(now, &buffer[..length]) {
            return None;
        }
        self.next_ref = number.saturating_add(1);
        self.unanswered.push_back((number, buffer[..length].to_vec()));
        Some(number)
    }

    /// The message of the last [`OuchEvent::Message`].
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// What happened.
    pub fn poll_event(&mut self, now: Nanos) -> Option<OuchEvent> {
        loop {
            match self.soup.poll_event()? {
                SoupEvent::LoggedIn { session, next } => {
                    self.session = Alpha(session);
                    self.next_seq = next.0;
                    // What was missed comes before the answer to this.
                    self.soup.send(now, AccountQuery::NEW.as_bytes());
                }
                SoupEvent::Message { seq, bytes } => {
                    self.next_seq = seq.0 + 1;
                    self.message.clear();
                    self.message.extend_from_slice(bytes);
                    if let Some(event) = self.on_message(now) {
                        return Some(event);
                    }
                    return Some(OuchEvent::Message { seq });
                }
                SoupEvent::Unsequenced(_) => {}
                SoupEvent::EndOfSession => {
                    self.is_ready = false;
                    return Some(OuchEvent::EndOfSession);
                }
                SoupEvent::Failed(failure) => {
                    self.is_ready = false;
                    return Some(OuchEvent::Failed(failure));
                }
            }
        }
    }

    /// Strikes out what is answered; an account query's answer puts the client in step.
    fn on_message(&mut self, now: Nanos) -> Option<OuchEvent> {
        let answered = match parse_outbound(&self.message) {
            Ok((Outbound::OrderAccepted(m), _)) => m.user_ref_num.get(),
            Ok((Outbound::OrderReplaced(m), _)) => m.user_ref_num.get(),
            Ok((Outbound::OrderRejected(m), _)) => m.user_ref_num.get(),
            Ok((Outbound::MassCancelResponse(m), _)) => m.user_ref_num.get(),
            Ok((Outbound::AccountQueryResponse(m), _)) if !self.is_ready => {
                let next = m.next_user_ref_num.get();
                self.is_ready = true;
                // Below it everything was processed, or ignored.
                self.unanswered.retain(|(number, _)| *number >= next);
                self.next_ref = self.next_ref.max(next);
                let mut resent = 0;
                for (_, request) in &self.unanswered {
                    resent += usize::from(self.soup.send(now, request));
                }
                return Some(OuchEvent::Ready {
                    next_user_ref_num: self.next_ref,
                    resent,
                });
            }
            _ => return None,
        };
        self.unanswered.retain(|(number, _)| *number != answered);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire_nasdaq::ouch50::{AccountQueryResponse, OrderRejected};
    use tickwire_wire_nasdaq::soupbintcp::LoginAccepted;

    fn sent(client: &mut OuchClient) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 64]);
        while let Some(bytes) = client.poll_transmit(&mut buffer) {
            all.extend_from_slice(bytes);
        }
        all
    }

    fn sequenced(message: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 100];
        let length = Packet::Sequenced(message).encode(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    fn query_answer(next: u32) -> Vec<u8> {
        let answer = AccountQueryResponse {
            next_user_ref_num: next.into(),
            ..AccountQueryResponse::NEW
        };
        sequenced(answer.as_bytes())
    }

    /// Connects, is let in at `seq` and told `next`.
    fn log_in(client: &mut OuchClient, seq: u64, next: u32) -> (Vec<u8>, OuchEvent) {
        client.handle_connected(Nanos(1));
        let login = sent(client);
        client.handle_bytes(Nanos(2), LoginAccepted::new(b"DAY", seq).unwrap().as_bytes());
        assert_eq!(client.poll_event(Nanos(2)), None);
        assert_eq!(sent(client), b"\0\x02UQ");
        client.handle_bytes(Nanos(3), &query_answer(next));
        (login, client.poll_event(Nanos(3)).unwrap())
    }

    #[test]
    fn an_order_that_somebody_else_has_sent_waits_for_its_answer_under_the_next_number() {
        let packet = |number: u32| {
            let order = EnterOrder {
                user_ref_num: number.into(),
                ..EnterOrder::NEW
            };
            let (mut message, mut packet) = ([0; MESSAGE_SIZE_MAX], [0; MESSAGE_SIZE_MAX]);
            let length = encode(order.as_bytes(), Some(&Appendage::EMPTY), &mut message).unwrap();
            let length = Packet::Unsequenced(&message[..length])
                .encode(&mut packet)
                .unwrap();
            packet[..length].to_vec()
        };
        let mut client = OuchClient::new(OuchConfig::default());
        assert!(!client.took(&packet(1)), "not logged in");
        log_in(&mut client, 1, 1);
        assert_eq!(
            client.enter(Nanos(4), &EnterOrder::NEW, &Appendage::EMPTY),
            Some(1)
        );
        sent(&mut client);
        assert!(
            !client.took(&packet(1)) && !client.took(&packet(3)),
            "not the next one"
        );
        assert!(
            !client.took(&packet(2)[..9]) && !client.took(&query_answer(1)),
            "no order"
        );
        assert!(client.took(&packet(2)));
        assert_eq!((client.unanswered(), client.next_user_ref_num()), (2, 3));
        assert!(sent(&mut client).is_empty(), "it has left");
        // It was lost with the connection: it is sent again as the client's own.
        client.handle_closed();
        while client.poll_event(Nanos(6)).is_some() {}
        let (_, event) = log_in(&mut client, 2, 2);
        assert_eq!(
            event,
            OuchEvent::Ready {
                next_user_ref_num: 3,
                resent: 1
            }
        );
        assert_eq!(sent(&mut client), packet(2));
    }

    #[test]
    fn requests_without_an_answer_are_sent_again_with_their_numbers_after_a_lost_connection() {
        let mut client = OuchClient::new(OuchConfig::default());
        assert_eq!(client.enter(Nanos(0), &EnterOrder::NEW, &Appendage::EMPTY), None);
        let (_, event) = log_in(&mut client, 1, 1);
        assert_eq!(
            event,
            OuchEvent::Ready {
                next_user_ref_num: 1,
                resent: 0
            }
        );
        for number in 1..=3 {
            let given = client.enter(Nanos(4), &EnterOrder::NEW, &Appendage::EMPTY);
            assert_eq!(given, Some(number));
        }
        sent(&mut client);
        let rejected = OrderRejected {
            user_ref_num: 1.into(),
            ..OrderRejected::NEW
        };
        client.handle_bytes(Nanos(5), &sequenced(rejected.as_bytes()));
        assert_eq!(
            client.poll_event(Nanos(5)),
            Some(OuchEvent::Message { seq: SeqNo(2) })
        );
        assert_eq!(client.unanswered(), 2);
        client.handle_closed();
        assert_eq!(
            client.poll_event(Nanos(6)),
            Some(OuchEvent::Failed(SoupFailure::Closed))
        );
        assert!(!client.cancel(Nanos(6), 2, 0));
        // The host has processed number 2, whose answer is on its way; 3 was lost.
        let (login, event) = log_in(&mut client, 3, 3);
        let Ok(Some((Packet::LoginRequest(login), _))) = split(&login) else {
            panic!("{login:?}")
        };
        assert_eq!(
            (login.session.trimmed(), login.sequence.get()),
            (&b"       DAY"[..], Some(3))
        );
        assert_eq!(
            event,
            OuchEvent::Ready {
                next_user_ref_num: 4,
                resent: 1
            }
        );
        let again = sent(&mut client);
        let Ok(Some((Packet::Unsequenced(message), length))) = split(&again) else {
            panic!("{again:?}")
        };
        assert_eq!(length, again.len());
        assert!(
            matches!(parse_inbound(message), Ok((Inbound::EnterOrder(m), _)) if m.user_ref_num.get() == 3)
        );
    }
}
