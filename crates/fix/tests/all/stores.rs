//! A session and its store: what is no longer kept is told, what cannot be kept is not sent.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use tickwire_fix::{
    Again, CompId, DisconnectReason, Event, LastingStore, MemoryStore, NotKept, Role, SendError, Session,
    SessionConfig, Status, Store, StoreFailed, Words, tag,
};
use tickwire_market::{Nanos, SeqNo};

const NOW: Nanos = Nanos(1_795_226_141 * Nanos::SECOND);

fn config(role: Role) -> SessionConfig {
    let id = |name: &[u8]| CompId::new(name).unwrap();
    let (ours, theirs) = match role {
        Role::Acceptor => (b"SERVER", b"CLIENT"),
        Role::Initiator => (b"CLIENT", b"SERVER"),
    };
    SessionConfig {
        ..SessionConfig::new(role, id(ours), id(theirs))
    }
}

/// Carries bytes both ways until nobody has any; what both sides told.
fn talk<A: Store, B: Store>(a: &mut Session<A>, b: &mut Session<B>) -> [Vec<Event>; 2] {
    let (mut told, mut buffer) = ([Vec::new(), Vec::new()], [0; 4096]);
    loop {
        let mut is_over = true;
        while let Some(bytes) = a.poll_transmit(&mut buffer) {
            is_over = false;
            assert_eq!(b.handle_bytes(NOW, bytes), bytes.len());
            told[1].extend(std::iter::from_fn(|| b.poll_event()));
        }
        while let Some(bytes) = b.poll_transmit(&mut buffer) {
            is_over = false;
            assert_eq!(a.handle_bytes(NOW, bytes), bytes.len());
            told[0].extend(std::iter::from_fn(|| a.poll_event()));
        }
        if is_over {
            told[0].extend(std::iter::from_fn(|| a.poll_event()));
            told[1].extend(std::iter::from_fn(|| b.poll_event()));
            return told;
        }
    }
}

fn connect<A: Store, B: Store>(a: &mut Session<A>, b: &mut Session<B>) -> [Vec<Event>; 2] {
    a.handle_connected(NOW);
    b.handle_connected(NOW);
    talk(a, b)
}

fn send<S: Store>(session: &mut Session<S>, id: u64) -> Result<SeqNo, SendError> {
    session.send(NOW, b"D", Again::Resend, |e, _| e.unsigned(tag::CL_ORD_ID, id))
}

fn lasting(words: usize) -> LastingStore<Box<[AtomicU64]>> {
    LastingStore::begin((0..words).map(|_| AtomicU64::new(0)).collect(), b"S").unwrap()
}

/// 200 messages are lost on the wire, and the store has only the newest of them.
fn numbers_that_are_gone_are_told(store: impl Store) {
    let mut server = Session::with_store(config(Role::Acceptor), store);
    let mut client = Session::new(config(Role::Initiator));
    connect(&mut server, &mut client);
    assert_eq!(client.status(), Status::Active);
    for id in 1..=200 {
        send(&mut server, id).unwrap();
        // Swallowed by the wire.
        while server.poll_transmit(&mut [0; 4096]).is_some() {}
    }
    server.handle_disconnected(NOW);
    client.handle_disconnected(NOW);
    while server.poll_event().is_some() || client.poll_event().is_some() {}
    let [of_server, of_client] = connect(&mut server, &mut client);
    let delivered = of_client
        .iter()
        .filter(|event| matches!(event, Event::Message { .. }))
        .count() as u64;
    let gone: Vec<NotKept> = of_server
        .iter()
        .filter_map(|event| match event {
            Event::NotKept { first, last, count } => Some(NotKept {
                first: first.0,
                last: last.0,
                count: *count,
            }),
            _ => None,
        })
        .collect();
    assert!((5..150).contains(&delivered), "{delivered}");
    // Number 1 was the Logon, which the client has: it asks from 2 on.
    let expected = NotKept {
        first: 2,
        last: 201 - delivered,
        count: 200 - delivered,
    };
    assert_eq!(gone, [expected]);
}

#[test]
fn numbers_that_are_gone_from_a_store_in_memory_are_told() {
    numbers_that_are_gone_are_told(MemoryStore::new(16, 1 << 16));
    numbers_that_are_gone_are_told(MemoryStore::new(1 << 10, 1 << 12));
}

#[test]
fn numbers_that_are_gone_from_a_store_that_lasts_are_told() {
    numbers_that_are_gone_are_told(lasting(1024 + 1024));
}

/// Memory that can be told to fail, and counts how often it was brought to the disk.
#[derive(Clone, Default)]
struct Disk {
    failure: Rc<Cell<Option<StoreFailed>>>,
    settles: Rc<Cell<u32>>,
    words: Rc<Vec<AtomicU64>>,
}

impl Words for Disk {
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    fn failure(&self) -> Option<StoreFailed> {
        self.failure.get()
    }

    fn settle(&self) -> Result<(), StoreFailed> {
        self.settles.set(self.settles.get() + 1);
        Ok(())
    }
}

fn disk() -> Disk {
    Disk {
        words: Rc::new((0..2048).map(|_| AtomicU64::new(0)).collect()),
        ..Disk::default()
    }
}

/// "On disk before it is sent": once for all messages that go out together, never for what is only received.
#[test]
fn a_store_is_settled_once_before_messages_go_out() {
    let disk = disk();
    let store = LastingStore::begin(disk.clone(), b"S").unwrap();
    let mut server = Session::with_store(config(Role::Acceptor), store);
    let mut client = Session::new(config(Role::Initiator));
    connect(&mut server, &mut client);
    let before = disk.settles.get();
    for id in 1..=9 {
        send(&mut server, id).unwrap();
        assert_eq!(disk.settles.get(), before);
    }
    assert!(server.poll_transmit(&mut [0; 4096]).is_some());
    assert_eq!(disk.settles.get(), before + 1);
    assert!(server.poll_transmit(&mut [0; 4096]).is_none());
    send(&mut client, 1).unwrap();
    talk(&mut server, &mut client);
    assert_eq!(disk.settles.get(), before + 1);
}

/// The file is gone in the middle of a session: nothing more is sent, the session ends and says why.
#[test]
fn a_store_that_is_lost_ends_the_session_with_a_reason() {
    for is_sending in [true, false] {
        let disk = disk();
        let store = LastingStore::begin(disk.clone(), b"S").unwrap();
        let mut server = Session::with_store(config(Role::Acceptor), store);
        let mut client = Session::new(config(Role::Initiator));
        connect(&mut server, &mut client);
        disk.failure.set(Some(StoreFailed::Lost));
        if is_sending {
            assert_eq!(send(&mut server, 1), Err(SendError::StoreFailed));
        } else {
            // A heartbeat is due.
            server.handle_timeout(NOW.after(31 * Nanos::SECOND));
        }
        assert!(server.poll_transmit(&mut [0; 4096]).is_none());
        let told: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
        match told[..] {
            [
                Event::Disconnect {
                    reason: DisconnectReason::StoreFailed,
                    text,
                },
            ] => {
                assert_eq!(text.as_str(), StoreFailed::Lost.text());
            }
            _ => panic!("{told:?}"),
        }
    }
}

/// A message that is too long is refused alone.
#[test]
fn a_message_that_the_store_does_not_take_is_refused_alone() {
    let mut server = Session::with_store(config(Role::Acceptor), lasting(1024 + 512));
    let mut client = Session::new(config(Role::Initiator));
    connect(&mut server, &mut client);
    let long = [b'x'; 4200];
    let sent = server.send(NOW, b"B", Again::Resend, |e, _| e.text(tag::TEXT, &long));
    assert!(
        matches!(sent, Err(SendError::StoreFailed | SendError::NotEncodable)),
        "{sent:?}"
    );
    assert_eq!(server.status(), Status::Active);
    send(&mut server, 1).unwrap();
}

/// Takes 3 to 5 again, which it had taken once.
struct TakesAgain {
    store: MemoryStore,
    reached: u64,
}

impl Store for TakesAgain {
    fn next_out(&self) -> u64 {
        self.store.next_out()
    }

    fn next_in(&self) -> u64 {
        self.store.next_in()
    }

    fn reached(&self) -> u64 {
        self.reached.max(self.next_in())
    }

    fn set_next_out(&mut self, seq: u64) {
        self.store.set_next_out(seq);
    }

    fn set_next_in(&mut self, seq: u64) {
        self.store.set_next_in(seq);
    }

    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        self.store.append(seq, message)
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        self.store.get(seq)
    }

    fn reset(&mut self) {
        (self.reached, _) = (1, self.store.reset());
    }

    fn period(&self) -> Nanos {
        self.store.period()
    }

    fn set_period(&mut self, start: Nanos) {
        self.store.set_period(start);
    }
}

fn taking_again(next_in: u64, resets: bool) -> Session<TakesAgain> {
    let mut store = MemoryStore::new(16, 1 << 12);
    store.set_next_out(9);
    store.set_next_in(next_in);
    let config = SessionConfig {
        reset_on_logon: resets,
        ..config(Role::Initiator)
    };
    Session::with_store(config, TakesAgain { store, reached: 6 })
}

#[test]
fn who_asks_again_for_what_was_taken_hears_it_and_knows_numbers_that_began_anew() {
    // The peer has kept its numbers.
    let mut store = MemoryStore::new(16, 1 << 12);
    store.set_next_out(6);
    store.set_next_in(9);
    let mut server = Session::with_store(config(Role::Acceptor), store);
    let mut client = taking_again(3, false);
    let [_, told] = connect(&mut server, &mut client);
    assert!(
        told.iter().any(
            |event| matches!(event, Event::Gap { expected, received } if expected.0 == 3 && received.0 == 6)
        ),
        "{told:?}"
    );
    assert_eq!((client.status(), client.store().next_in()), (Status::Active, 7));
    // It has not, and its Logon has a number that is waited for, or one above it.
    for next_in in [1, 3] {
        for next_out in next_in..6 {
            let mut store = MemoryStore::new(16, 1 << 12);
            store.set_next_out(next_out);
            let mut server = Session::with_store(config(Role::Acceptor), store);
            let mut client = taking_again(next_in, false);
            let [_, told] = connect(&mut server, &mut client);
            let expected = format!("MsgSeqNum too low, expecting 6 but received {next_out}");
            let is_told = told.iter().any(|event| {
                matches!(event, Event::Disconnect { reason: DisconnectReason::SequenceTooLow, text } if text.as_str() == expected)
            });
            assert!(is_told, "{told:?}");
            assert_eq!(client.store().next_in(), next_in);
            // Both begin anew.
            let mut client = taking_again(next_in, true);
            server.handle_disconnected(NOW);
            while server.poll_event().is_some() {}
            connect(&mut server, &mut client);
            assert_eq!((client.status(), client.store().next_in()), (Status::Active, 2));
        }
    }
}
