//! The request servers of NYSE feeds: what is asked for, in whose bytes, and what is made of the answers.

use tickwire_feed::{
    MissingRange, NyseRequests, OpenBook, REQUEST_SIZE_MAX, RequestConfig, RequestEvent, RequestProtocol,
    SessionId, Xdp,
};
use tickwire_market::{Nanos, SeqNo};
use tickwire_testdata::{Rng, hex, unhex};

const NOW: Nanos = Nanos(1);

fn client<P: RequestProtocol>() -> NyseRequests<P> {
    let mut client = NyseRequests::new(RequestConfig {
        source_id: b"ME".into(),
        product: 12,
        channel: 3,
        queue: 2,
        ..RequestConfig::default()
    });
    client.handle_connected(NOW);
    client
}

fn range(first: u64, count: u16) -> MissingRange {
    MissingRange {
        session: SessionId::NONE,
        first: SeqNo(first),
        count,
    }
}

fn sent<P: RequestProtocol>(client: &mut NyseRequests<P>) -> Option<String> {
    let mut buffer = [0; REQUEST_SIZE_MAX];
    client.poll_transmit(&mut buffer).map(hex)
}

#[test]
fn xdp_requests_carry_their_own_numbers_and_the_last_message_wanted() {
    let mut client = client::<Xdp>();
    assert!(client.ask(range(10, 5)) && client.ask_refresh(0) && !client.ask(range(1, 1)));
    assert_eq!(
        sent(&mut client).unwrap(),
        "28000B0101000000000000000000000018000A000A0000000E0000004D4500000000000000000C03"
    );
    assert_eq!(
        sent(&mut client).unwrap(),
        "24000B0102000000000000000000000014000F00000000004D4500000000000000000C03"
    );
    assert_eq!(sent(&mut client), None);
    assert!(!client.ask(range(u64::from(u32::MAX), 2)), "beyond the field");
}

#[test]
fn openbook_requests_are_its_own_bytes() {
    let mut client = client::<OpenBook>();
    assert!(client.ask(range(10, 5)) && client.ask_refresh(7));
    let id = "4D45000000000000000000000000000000000000";
    assert_eq!(
        sent(&mut client).unwrap(),
        format!("002A001400000001000000000C0101000000000A0000000E{id}")
    );
    assert_eq!(
        sent(&mut client).unwrap(),
        format!("0028001B00000002000000000C010100{id}000000070000")
    );
}

const XDP_HEARTBEAT: &str = "10000101 01000000 00000000 00000000";
const XDP_ACCEPTED: &str =
    "2D000B01 02000000 00000000 00000000 1D000B00 01000000 0A000000 0E000000 4D450000000000000000 0C 03 30";
const XDP_REFUSED: &str =
    "2D000B01 03000000 00000000 00000000 1D000B00 02000000 0A000000 0E000000 4D450000000000000000 0C 03 36";

#[test]
fn answers_are_told_and_heartbeats_answered_wherever_the_bytes_are_cut() {
    let heartbeat = XDP_HEARTBEAT.replace("0101 ", "0100 ");
    let stream = unhex(&format!("{XDP_ACCEPTED}{heartbeat}{heartbeat}{XDP_REFUSED}"));
    for cut in 0..stream.len() {
        let mut client = client::<Xdp>();
        client.handle_bytes(NOW, &stream[..cut]);
        client.handle_bytes(NOW, &stream[cut..]);
        assert_eq!(client.poll_event(), Some(RequestEvent::Accepted), "cut at {cut}");
        assert_eq!(client.poll_event(), Some(RequestEvent::Refused(b'6')));
        assert_eq!(client.poll_event(), None);
        assert!(
            client.ask(range(1, 1)),
            "an answer does not take a request's place"
        );
        assert_eq!(
            sent(&mut client).unwrap(),
            "1E000B010100000000000000000000000E000C004D450000000000000000"
        );
        assert!(sent(&mut client).unwrap().contains("18000A00"));
    }
}

#[test]
fn openbook_answers_are_told() {
    let mut client = client::<OpenBook>();
    let id = "4D45000000000000000000000000000000000000";
    let answer = |status| format!("002A000A0000000100000000 0C010100 00000001{id}{status}0000");
    let stream = unhex(&format!(
        "{}{}000E0002000000010000000 0 0C010000",
        answer("4130"),
        answer("5233")
    ));
    client.handle_bytes(NOW, &stream);
    assert_eq!(client.poll_event(), Some(RequestEvent::Accepted));
    assert_eq!(client.poll_event(), Some(RequestEvent::Refused(b'3')));
    assert_eq!(
        sent(&mut client).unwrap(),
        format!("0022001800000001000000000C010100{id}")
    );
}

#[test]
fn a_silent_or_senseless_server_breaks_the_connection() {
    let mut silent = client::<Xdp>();
    let due = silent.poll_timeout().unwrap();
    silent.handle_timeout(Nanos(due.0 - 1));
    assert_eq!(silent.poll_event(), None);
    silent.handle_timeout(due);
    assert_eq!(silent.poll_event(), Some(RequestEvent::Broken));
    assert_eq!((silent.poll_timeout(), silent.ask(range(1, 1))), (None, false));
    for bytes in [vec![1, 0, 0], vec![0xFF; 3000]] {
        let mut client = client::<Xdp>();
        client.handle_bytes(NOW, &bytes);
        assert_eq!(client.poll_event(), Some(RequestEvent::Broken));
        assert!(!client.ask(range(1, 1)));
    }
}

#[test]
fn any_bytes_leave_the_client_in_one_piece() {
    let mut rng = Rng::new(8);
    for _ in 0..2000 {
        let mut bytes = vec![0; rng.below(120) as usize];
        rng.fill(&mut bytes);
        if let Some(size) = bytes.get_mut(..2) {
            size.copy_from_slice(&[(16 + rng.below(40)) as u8, 0]);
        }
        let (mut little, mut big) = (client::<Xdp>(), client::<OpenBook>());
        little.handle_bytes(NOW, &bytes);
        big.handle_bytes(NOW, &bytes);
        while little.poll_event().is_some() || big.poll_event().is_some() {}
    }
}
