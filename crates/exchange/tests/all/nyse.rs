//! Channels of NYSE feeds and their request servers: what is answered, and what is sent on which group.

use tickwire_exchange::{
    Engine, EngineConfig, Listener, Listing, Milestone, NewOrder, NysePublisherConfig, OpenBookPublisher,
    Publisher, RequestLimits, XdpPublisher, listings,
};
use tickwire_market::{InstrumentId, Nanos, Port, Price, Qty, Side, TradingStatus};
use tickwire_testdata::Rng;
use tickwire_wire::openbook::{self, PacketHeader, RetransFlag};
use tickwire_wire::xdp::{self, DeliveryFlag, PacketBuilder, nul_padded};
use tickwire_wire::zerocopy::IntoBytes;

const MIDNIGHT: Nanos = Nanos(1_767_571_200 * Nanos::SECOND);
const NOW: Nanos = Nanos(MIDNIGHT.0 + 34_200 * Nanos::SECOND);

struct Venue<P> {
    publisher: P,
    engine: Engine,
    listings: Vec<Listing>,
    now: Nanos,
}

fn config() -> NysePublisherConfig {
    NysePublisherConfig {
        channel: 3,
        store_bytes: 0,
        store_units: 1 << 10,
        spacing_ns: 0,
        ..NysePublisherConfig::default()
    }
}

impl<P: Publisher + Listener> Venue<P> {
    /// Three instruments, defined and trading.
    fn new(make: impl FnOnce(&[Listing]) -> P) -> Venue<P> {
        let listings = listings(3);
        let mut venue = Venue {
            publisher: make(&listings),
            engine: Engine::new(EngineConfig {
                instruments: 3,
                max_orders: 8192,
                max_levels: 8192,
            }),
            listings,
            now: NOW,
        };
        venue.publisher.open(MIDNIGHT);
        venue.publisher.set_time(NOW.since(MIDNIGHT));
        venue.publisher.milestone(Milestone::StartOfMessages);
        for listing in &venue.listings {
            venue.engine.set_rules(listing.id, listing.rules);
            venue.publisher.define(listing);
            let status = TradingStatus::Trading;
            venue
                .engine
                .set_status(listing.id, status, &mut venue.publisher)
                .unwrap();
        }
        venue
    }

    /// Bids of instrument 1, a cent apart.
    fn rest(&mut self, orders: u32) {
        let listing = self.listings[0];
        for i in 1..=orders {
            let price = Price::from_raw(listing.start.raw() - i64::from(i) * listing.tick().raw());
            let order = NewOrder::limit(InstrumentId(1), Side::Bid, price, Qty(100));
            self.engine.submit(&order, &mut self.publisher).unwrap();
        }
    }

    /// Every datagram that is due: where it goes and its bytes.
    fn sent(&mut self) -> Vec<(Port, Vec<u8>)> {
        self.publisher.handle_timeout(self.now, &self.engine);
        let mut all = Vec::new();
        while let Some(datagram) = self.publisher.poll_datagram(self.now) {
            all.push((datagram.port, datagram.bytes.to_vec()));
        }
        all
    }

    fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.publisher
            .handle_bytes(Port::Replay, 0, self.now, bytes, &self.engine);
        self.answer()
    }

    fn answer(&mut self) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), [0; 11]);
        while let Some(bytes) = self
            .publisher
            .poll_transmit(Port::Replay, 0, self.now, &mut buffer)
        {
            all.extend_from_slice(bytes);
        }
        all
    }

    fn connect(&mut self) {
        assert!(self.publisher.connect(Port::Replay, 0, self.now));
    }

    fn is_closing(&self) -> bool {
        self.publisher.wants_close(Port::Replay, 0)
    }
}

fn xdp_venue(limits: RequestLimits) -> Venue<XdpPublisher> {
    let config = NysePublisherConfig { limits, ..config() };
    let mut venue = Venue::new(|listings| XdpPublisher::new(config, listings));
    venue.connect();
    venue
}

fn packet(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let mut packet = PacketBuilder::new(&mut bytes, DeliveryFlag::Original, 9, Nanos::ZERO);
    assert!(packet.push(message));
    let length = packet.finish();
    bytes.truncate(length);
    bytes
}

fn again(first: u32, last: u32) -> xdp::RetransmissionRequest {
    xdp::RetransmissionRequest {
        begin_seq_num: first.into(),
        end_seq_num: last.into(),
        source_id: nul_padded(b"ME").unwrap(),
        product_id: 11,
        channel_id: 3,
        ..xdp::RetransmissionRequest::NEW
    }
}

fn refresh(index: u32) -> xdp::RefreshRequest {
    xdp::RefreshRequest {
        symbol_index: index.into(),
        source_id: nul_padded(b"ME").unwrap(),
        product_id: 11,
        channel_id: 3,
        ..xdp::RefreshRequest::NEW
    }
}

/// The status of the one response in these bytes.
fn status(bytes: &[u8]) -> char {
    let (packet, used) = xdp::split(bytes).unwrap().expect("a whole packet");
    assert_eq!(used, bytes.len(), "one packet");
    match xdp::parse(packet.messages.clone().next().unwrap()).unwrap() {
        xdp::Message::RequestResponse(m) => {
            assert_eq!(m.request_seq_num.get(), 9);
            m.status.0 as char
        }
        other => panic!("{}", other.name()),
    }
}

/// Flag, number and message types of each packet of a group.
fn group(sent: &[(Port, Vec<u8>)], port: Port) -> Vec<(u8, u32, Vec<u16>)> {
    let of_group = sent.iter().filter(|(to, _)| *to == port);
    of_group
        .map(|(_, bytes)| {
            let packet = xdp::parse_packet(bytes).unwrap();
            let types = packet.messages.map(|m| xdp::message_type(m).unwrap()).collect();
            (packet.header.delivery_flag, packet.header.seq_num.get(), types)
        })
        .collect()
}

#[test]
fn a_channel_begins_with_a_reset_alone_in_its_packet_and_heartbeats_tell_the_next_number() {
    let mut venue = xdp_venue(RequestLimits::default());
    let sent = group(&venue.sent(), Port::Live);
    let one = [3, 32, 2, 34, 34];
    let other = [3, 32, 34, 34];
    let rest = [&one[..], &other, &other].concat();
    assert_eq!(sent, [(12, 1, vec![1]), (11, 2, rest)]);
    venue.now = NOW.after(Nanos::SECOND);
    let sent = venue.sent();
    assert_eq!(group(&sent, Port::Live), [(1, 15, vec![])]);
    assert_eq!(group(&sent, Port::Retransmission), [(1, 1, vec![])]);
    assert_eq!(group(&sent, Port::Snapshot), [(1, 1, vec![])]);
    assert_eq!(venue.publisher.published(34), 6);
}

#[test]
fn what_is_asked_for_again_goes_to_the_retransmission_group() {
    let mut venue = xdp_venue(RequestLimits::default());
    venue.rest(100);
    venue.sent();
    let request = packet(again(2, 4).as_bytes());
    for cut in 1..request.len() {
        assert_eq!(venue.ask(&request[..cut]), []);
        assert_eq!(status(&venue.ask(&request[cut..])), '0');
        let sent = group(&venue.sent(), Port::Retransmission);
        assert_eq!(sent, [(13, 2, vec![3, 32, 2])], "cut at {cut}");
    }
    // 35 orders fill a packet.
    assert_eq!(status(&venue.ask(&packet(again(20, 100).as_bytes()))), '0');
    let sent = group(&venue.sent(), Port::Retransmission);
    let numbers: Vec<(u8, u32, usize)> = sent.iter().map(|(f, n, m)| (*f, *n, m.len())).collect();
    assert_eq!(numbers, [(15, 20, 35), (15, 55, 35), (13, 90, 11)]);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_reason() {
    let mut venue = xdp_venue(RequestLimits::default());
    venue.sent();
    let bad = |change: &dyn Fn(&mut xdp::RetransmissionRequest)| {
        let mut request = again(1, 2);
        change(&mut request);
        packet(request.as_bytes())
    };
    for (request, expected) in [
        (bad(&|r| r.product_id = 12), '8'),
        (bad(&|r| r.channel_id = 4), '7'),
        (bad(&|r| r.begin_seq_num = 0.into()), '3'),
        (bad(&|r| r.begin_seq_num = 3.into()), '3'),
        (bad(&|r| r.end_seq_num = 15.into()), '3'),
        (bad(&|r| r.end_seq_num = u32::MAX.into()), '3'),
        (packet(refresh(4).as_bytes()), '9'),
        (packet(refresh(u32::MAX).as_bytes()), '9'),
        (packet(xdp::DeleteOrder::NEW.as_bytes()), '9'),
        (packet(&[4, 0, 99, 0]), '9'),
        (packet(&[6, 0, 10, 0, 1, 2]), '9'),
    ] {
        assert_eq!(status(&venue.ask(&request)), expected);
    }
    assert_eq!(group(&venue.sent(), Port::Retransmission), []);
    venue.rest(4000);
    assert_eq!(
        status(&venue.ask(&packet(again(3000, 4000).as_bytes()))),
        '3',
        "1,001"
    );
    assert_eq!(status(&venue.ask(&packet(again(5, 6).as_bytes()))), '6');
    assert!(!venue.is_closing());
}

#[test]
fn what_is_partly_forgotten_is_told_and_the_rest_sent() {
    let mut venue = xdp_venue(RequestLimits::default());
    venue.rest(4000);
    venue.sent();
    let first = venue.publisher.next_seq().0 as u32 - 1024;
    assert_eq!(
        status(&venue.ask(&packet(again(first - 2, first + 1).as_bytes()))),
        '0'
    );
    let sent = group(&venue.sent(), Port::Retransmission);
    assert_eq!(sent, [(21, first - 2, vec![31]), (13, first, vec![100, 100])]);
}

#[test]
fn a_day_has_so_many_requests() {
    let mut venue = xdp_venue(RequestLimits {
        retransmissions_max: 2,
        refreshes_max: 1,
        ..RequestLimits::default()
    });
    let mut ask = |message: &[u8]| status(&venue.ask(&packet(message)));
    let answers: Vec<char> = (0..3).map(|_| ask(again(1, 2).as_bytes())).collect();
    assert_eq!(answers, ['0', '0', '4']);
    assert_eq!(
        [ask(refresh(1).as_bytes()), ask(refresh(1).as_bytes())],
        ['0', '5']
    );
}

#[test]
fn a_refresh_goes_instrument_by_instrument_and_says_how_far() {
    let mut venue = xdp_venue(RequestLimits::default());
    venue.rest(40);
    venue.sent();
    assert_eq!(status(&venue.ask(&packet(refresh(0).as_bytes()))), '0');
    let sent = venue.sent();
    let head = |begin: &[u16], orders: usize| [begin, &vec![106; orders]].concat();
    assert_eq!(
        group(&sent, Port::Snapshot),
        [
            (18, 1, head(&[35, 3, 34], 29)),
            (19, 33, head(&[35], 11)),
            (19, 45, head(&[35, 3, 34], 0)),
            (20, 48, head(&[35, 3, 34], 0)),
        ]
    );
    let headers: Vec<(u16, u16, Option<u32>)> = sent
        .iter()
        .map(|(_, bytes)| {
            let first = xdp::parse_packet(bytes).unwrap().messages.next().unwrap();
            match xdp::parse(first).unwrap() {
                xdp::Message::RefreshHeader(m) => {
                    let (at, of) = (m.current_refresh_pkt.get(), m.total_refresh_pkts.get());
                    (at, of, Some(m.last_seq_num.get()))
                }
                xdp::Message::RefreshContinuation(m) => {
                    (m.current_refresh_pkt.get(), m.total_refresh_pkts.get(), None)
                }
                other => panic!("{}", other.name()),
            }
        })
        .collect();
    let last = Some(venue.publisher.next_seq().0 as u32 - 1);
    assert_eq!(headers, [(1, 2, last), (2, 2, None), (1, 1, last), (1, 1, last)]);
    assert_eq!(status(&venue.ask(&packet(refresh(2).as_bytes()))), '0');
    assert_eq!(group(&venue.sent(), Port::Snapshot), [(17, 51, vec![35, 3, 34])]);
    let mapping = xdp::SymbolIndexMappingRequest {
        product_id: 11,
        channel_id: 3,
        ..xdp::SymbolIndexMappingRequest::NEW
    };
    assert_eq!(status(&venue.ask(&packet(mapping.as_bytes()))), '0');
    assert_eq!(group(&venue.sent(), Port::Snapshot), [(17, 54, vec![3, 3, 3])]);
}

#[test]
fn a_client_that_does_not_answer_a_heartbeat_or_speaks_nonsense_is_hung_up_on() {
    let mut venue = xdp_venue(RequestLimits::default());
    let alive = xdp::HeartbeatResponse {
        source_id: nul_padded(b"ME").unwrap(),
        ..xdp::HeartbeatResponse::NEW
    };
    for answers in [true, false] {
        venue.now = venue.now.after(60 * Nanos::SECOND);
        venue.sent();
        let (heartbeat, used) = (venue.answer(), 16);
        let (asked, _) = xdp::split(&heartbeat).unwrap().unwrap();
        assert_eq!(
            (asked.flag(), heartbeat.len()),
            (Some(DeliveryFlag::Heartbeat), used)
        );
        if answers {
            assert_eq!(venue.ask(&packet(alive.as_bytes())), []);
        }
        venue.now = venue.now.after(5 * Nanos::SECOND);
        venue.sent();
        assert_eq!(venue.is_closing(), !answers);
    }
    assert_eq!(venue.ask(&packet(again(1, 1).as_bytes())), [], "too late");
    venue.connect();
    assert!(!venue.is_closing());
    assert_eq!(venue.ask(&[1, 0, 0]), []);
    assert!(venue.is_closing(), "a packet of one byte");
    venue.connect();
    venue.ask(&[0xFF; 600]);
    assert!(venue.is_closing(), "no request is that long");
    assert!(!venue.publisher.connect(Port::Replay, 4, NOW));
    assert!(!venue.publisher.connect(Port::SnapshotServer, 0, NOW));
}

#[test]
fn any_bytes_leave_the_servers_in_one_piece() {
    let mut rng = Rng::new(5);
    let mut xdp = xdp_venue(RequestLimits::default());
    let mut openbook = openbook_venue();
    for _ in 0..2000 {
        let mut bytes = packet(again(rng.below(20) as u32, rng.below(20) as u32).as_bytes());
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = rng.below(256) as u8;
        xdp.connect();
        openbook.connect();
        xdp.ask(&bytes);
        openbook.ask(&bytes);
        xdp.sent();
        openbook.sent();
    }
}

fn openbook_venue() -> Venue<OpenBookPublisher> {
    let mut venue = Venue::new(|listings| OpenBookPublisher::new(config(), listings));
    venue.connect();
    venue
}

fn openbook_packet(kind: u16, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let header = PacketHeader {
        msg_type: kind.into(),
        seq_num: 9.into(),
        product_id: 12,
        retrans_flag: RetransFlag::Original as u8,
        ..PacketHeader::BLANK
    };
    let mut packet = openbook::PacketBuilder::new(&mut bytes, header);
    assert!(packet.push(message));
    let length = packet.finish();
    bytes.truncate(length);
    bytes
}

fn rejection(bytes: &[u8]) -> char {
    let (packet, used) = openbook::split(bytes).unwrap().expect("a whole packet");
    assert_eq!(used, bytes.len());
    let kind = packet.kind();
    match openbook::parse(kind, packet.messages.clone().next().unwrap()).unwrap() {
        openbook::Message::RequestResponse(m) => {
            assert_eq!(m.status.0 == b'A', m.reject_reason.0 == b'0');
            m.reject_reason.0 as char
        }
        other => panic!("{}", other.name()),
    }
}

/// Type, number, flag, link and how many messages.
type Head = (u16, u32, u8, u8, u8);

fn heads(sent: &[(Port, Vec<u8>)], port: Port) -> Vec<Head> {
    let of_group = sent.iter().filter(|(to, _)| *to == port);
    of_group
        .map(|(_, bytes)| {
            let packet = openbook::parse_packet(bytes).unwrap();
            let header = packet.header;
            assert_eq!(header.send_time.get(), 34_200_000);
            (
                packet.kind(),
                header.seq_num.get(),
                header.retrans_flag,
                header.link_flag,
                header.num_msgs,
            )
        })
        .collect()
}

#[test]
fn openbook_numbers_packets_and_sends_them_again_as_they_were() {
    let mut venue = openbook_venue();
    venue.rest(30);
    let sent = heads(&venue.sent(), Port::Live);
    // Each instrument: its book, then an update without a price point that says it is open.
    assert_eq!(
        sent,
        [
            (1, 1, 1, 0, 1),
            (230, 2, 1, 0, 1),
            (231, 3, 1, 0, 1),
            (230, 4, 1, 0, 1),
            (231, 5, 1, 0, 1),
            (230, 6, 1, 0, 1),
            (231, 7, 1, 0, 29),
            (231, 8, 1, 0, 2)
        ]
    );
    let again = |first: u32, last: u32| openbook::RetransmissionRequest {
        begin_seq_num: first.into(),
        end_seq_num: last.into(),
        ..openbook::RetransmissionRequest::BLANK
    };
    let mut ask = |first, last| {
        let request = openbook_packet(20, again(first, last).as_bytes());
        (
            rejection(&venue.ask(&request)),
            heads(&venue.sent(), Port::Retransmission),
        )
    };
    assert_eq!(ask(6, 7), ('0', vec![(230, 6, 2, 0, 1), (231, 7, 2, 0, 29)]));
    assert_eq!(ask(8, 9), ('2', vec![]));
    assert_eq!(ask(3, 2), ('2', vec![]));
}

#[test]
fn an_openbook_refresh_counts_its_packets_and_flags_the_last() {
    let mut venue = openbook_venue();
    venue.rest(300);
    venue.sent();
    let mut ask = |kind, message: &[u8]| {
        let answer = rejection(&venue.ask(&openbook_packet(kind, message)));
        (answer, heads(&venue.sent(), Port::Snapshot))
    };
    let whole = openbook::ExtendedRefreshRequest::BLANK;
    let expected = vec![(230, 1, 5, 1, 1), (230, 2, 5, 2, 1), (230, 3, 6, 3, 3)];
    assert_eq!(ask(27, whole.as_bytes()), ('0', expected));
    let by_name = |name: &[u8]| openbook::BookRefreshRequest {
        symbol: nul_padded(name).unwrap(),
        ..openbook::BookRefreshRequest::BLANK
    };
    assert_eq!(
        ask(22, by_name(b"NVDA").as_bytes()),
        ('0', vec![(230, 4, 6, 1, 1)])
    );
    assert_eq!(ask(22, by_name(b"NOSUCH").as_bytes()), ('2', vec![]));
    let mappings = openbook::SymbolIndexMappingRequest::BLANK;
    assert_eq!(ask(34, mappings.as_bytes()), ('0', vec![(35, 5, 6, 1, 3)]));
    let other = openbook::ExtendedRefreshRequest {
        symbol_index: 4.into(),
        ..whole
    };
    assert_eq!(ask(27, other.as_bytes()), ('2', vec![]));
}
