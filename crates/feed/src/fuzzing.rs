//! Operation sequences for the fuzz targets and for seeded tests: bytes become operations, invariants are
//! asserted.

use crate::{
    Answers, Arbiter, ArbiterConfig, FeedHandler, FeedState, Glimpse, ItchConfig, ItchDecoder, ItchFeed,
    Line, RecoveryLimits, SessionId, Situation, SoupClient, SoupConfig, Start, Verdict,
};
use alloc::vec::Vec;
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, SeqNo};

/// Small limits, so that every one of them is met.
fn config(choice: u8) -> ArbiterConfig {
    ArbiterConfig {
        start: [Start::Beginning, Start::Snapshot, Start::Here][usize::from(choice % 3)],
        snapshot: choice & 4 != 0,
        buffer_packets: 4,
        packet_bytes: 64,
        gaps: 4,
        line_wait_ns: 10,
        request_messages: 3,
        request_timeout_ns: 50,
        request_attempts: choice >> 3 & 3,
        request_interval_ns: u64::from(choice >> 5 & 1) * 20,
        request_gap_max: 30,
        jump_max: 200,
        confirm_packets: 3,
        confirm_ns: 100,
        session_quiet_ns: 200,
        recovery: RecoveryLimits {
            answers: [Answers::OneDatagram, Answers::Everything][usize::from(choice >> 6 & 1)],
            requests_under_way: 1 + u16::from(choice >> 7),
            requests_per_second: 20 * u32::from(choice >> 5 & 1),
            spans_gaps: choice & 0x40 != 0,
            deadline_ns: 400,
            retry_ns: 300,
            timeout_min_ns: 5,
            ..RecoveryLimits::MOLDUDP64
        },
        ..ArbiterConfig::default()
    }
}

/// Drives an [`Arbiter`] alone. Five bytes an operation: what, line and session, first, count, time. Asserts:
/// packets that are delivered follow each other without overlap, backwards only after a restart or a
/// snapshot; a live feed misses and holds nothing; limits are kept; there is something to wait for while
/// something is missing.
pub fn arbiter_operations(data: &[u8]) {
    let Some((&choice, operations)) = data.split_first() else {
        return;
    };
    let limits = config(choice);
    let mut arbiter = Arbiter::new(limits.clone());
    let mut model = Model { floor: 0 };
    let mut now = Nanos(1);
    for operation in operations.chunks_exact(5) {
        let &[what, from, low, count, time] = operation else {
            return;
        };
        now = now.after(u64::from(time));
        let line = [Line::A, Line::B, Line::Retransmit][usize::from(from % 3)];
        let session = SessionId([from >> 6; 10]);
        let mut first = u64::from(low);
        if what & 0x40 != 0 {
            first = arbiter.next_seq().0.saturating_add(first % 8).saturating_sub(2);
        }
        if what == 0x3F {
            first = u64::MAX - first;
        }
        let count = u32::from(count % 6) + 1;
        match what % 8 {
            0..=3 => {
                let end = first.saturating_add(count.into());
                if arbiter.in_sequence(now, line, session, SeqNo(first), count) {
                    model.delivers(first, end);
                } else if arbiter.repeats(now, line, session, SeqNo(first), count) {
                    assert!(end <= arbiter.next_seq().0);
                } else if let Verdict::Deliver { skip } =
                    arbiter.on_packet(now, line, session, SeqNo(first), count, &[0; 8])
                {
                    model.hears(&mut arbiter);
                    assert!(skip < count);
                    model.delivers(first + u64::from(skip), end);
                }
            }
            4 => arbiter.on_heartbeat(now, line, session, SeqNo(first), what & 0x80 != 0),
            5 => arbiter.handle_timeout(now),
            6 if what & 0x20 != 0 => arbiter.await_snapshot(now),
            6 => {
                arbiter.resume_at(now, SeqNo(first));
                model.floor = 0;
            }
            _ => {
                while arbiter
                    .poll_request()
                    .is_some_and(|r| r.count >= 1 && r.count <= 3)
                {}
            }
        }
        model.hears(&mut arbiter);
        while let Some(held) = arbiter.next_buffered() {
            assert_eq!(held.packet, [0; 8]);
            model.delivers(held.first.0 + u64::from(held.skip), 0);
            let next = arbiter.next_seq().0;
            model.floor = next;
        }
        model.hears(&mut arbiter);
        assert!(arbiter.held() <= usize::from(limits.buffer_packets));
        if matches!(arbiter.state(), FeedState::Live | FeedState::Ended) {
            assert_eq!((arbiter.missing(), arbiter.held()), (0, 0));
        }
        if arbiter.missing() > 0 && !arbiter.awaits_snapshot() {
            assert!(
                arbiter.poll_timeout().is_some(),
                "missing messages and nothing to wait for"
            );
        }
    }
}

struct Model {
    floor: u64,
}

impl Model {
    fn delivers(&mut self, first: u64, end: u64) {
        assert!(first >= self.floor, "message {first} again, after {}", self.floor);
        self.floor = end.max(first);
    }

    fn hears(&mut self, arbiter: &mut Arbiter) {
        while let Some(situation) = arbiter.poll_situation() {
            match situation {
                Situation::Restarted => self.floor = 0,
                Situation::Gap { first, end } => assert!(first <= end),
                Situation::Recovered { next } => assert!(next.0 >= self.floor),
            }
        }
    }
}

/// Drives a whole ITCH feed with datagrams, timeouts and a snapshot's stream made of the input: a length
/// byte, a kind byte, then the bytes themselves. Never panics; live events have ascending numbers until a
/// clear.
pub fn feed_operations(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else {
        return;
    };
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: 16,
        ..ItchConfig::default()
    });
    let mut feed: ItchFeed = FeedHandler::new(config(choice), decoder);
    let mut glimpse = Glimpse::new(SoupConfig::default());
    let mut floor = 0;
    let mut sink = |event: &MarketEvent| match event.kind {
        EventKind::Clear => floor = 0,
        EventKind::Gap | EventKind::Recovered => {}
        _ if event.flags.has(EventFlags::SNAPSHOT) => {}
        _ => {
            assert!(event.seq.0 > floor, "message {} after {floor}", event.seq);
            floor = event.seq.0;
        }
    };
    let mut now = Nanos(1);
    let mut buffer = [0; 64];
    while let [len, kind, tail @ ..] = rest {
        let (bytes, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        now = now.after(u64::from(*kind));
        match kind % 8 {
            0..=1 => feed.on_packet(now, Line::A, bytes, &mut sink),
            2..=3 => feed.on_packet(now, Line::B, bytes, &mut sink),
            4 => feed.on_packet(now, Line::Retransmit, bytes, &mut sink),
            5 => feed.handle_timeout(now, &mut sink),
            6 => glimpse.handle_bytes(now, bytes, &mut feed, &mut sink),
            _ if kind & 8 != 0 => glimpse.handle_connected(now),
            _ => glimpse.handle_timeout(now),
        }
        while feed.poll_transmit(&mut buffer).is_some() {}
        while glimpse.poll_transmit(&mut buffer).is_some() {}
        assert!(feed.poll_timeout().is_none_or(|t| t.0 < u64::MAX));
    }
}

/// Feeds a stream to a [`SoupClient`] whole and byte by byte: both must say the same.
pub fn soup_stream(data: &[u8]) {
    let told = |chunk: usize| {
        let mut soup = SoupClient::new(SoupConfig::default());
        let mut said = Vec::new();
        soup.handle_connected(Nanos(1));
        for bytes in data.chunks(chunk.max(1)) {
            soup.handle_bytes(Nanos(1), bytes);
            while let Some(event) = soup.poll_event() {
                said.push(alloc::format!("{event:?}"));
            }
        }
        said
    };
    assert_eq!(told(1), told(data.len().min(crate::STREAM_CHUNK_MAX)));
}
