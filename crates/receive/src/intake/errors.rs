//! Every error of every call on the sockets of a received channel, in one process.

use tickwire_book::Depth;
use tickwire_runtime::faults::{self, Call, ERRNO_MAX};
use tickwire_runtime::trouble::Trouble;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::wiring::{Reception, WithChannel, with_channel};

use super::tests::OPTIONS;
use super::*;

fn feed(live: [&str; 2], more: &str) -> FeedConfig {
    let [a, b] = live;
    let text = format!(
        "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"lo\"\n[[feed.channel]]\nname = \"1\"\n\
         live = {{ a = \"{a}\", b = \"{b}\" }}\n{more}\n"
    );
    FeedFile::parse(&text).expect("a feed").feeds.remove(0)
}

/// What errors came to: how many were injected, and how many of them are errors.
fn counted(counters: &Counters) -> [u64; 2] {
    let classes = [
        Counter::NetErrorsNetwork,
        Counter::NetErrorsPeer,
        Counter::NetErrorsResources,
        Counter::NetErrorsConfig,
    ];
    let sum = classes.into_iter().map(|class| counters.get(class)).sum();
    [counters.get(Counter::NetErrors), sum]
}

/// Errors that are none: there was nothing to do.
fn is_error(errno: &i32) -> bool {
    Trouble::of_number(*errno) != Trouble::WouldBlock
}

fn errors() -> u64 {
    (1..=ERRNO_MAX).filter(is_error).count() as u64
}

struct Receive<'a>(&'a FeedConfig);

impl WithChannel for Receive<'_> {
    type Output = ();

    fn run<C: Channel + 'static>(self, mut channel: C, _: Depth) {
        let feed = self.0;
        let ports = feed.channels[0].ports(&feed.interface);
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let mut intake = Intake::join(&ports, Protocol::Itch50, OPTIONS, &mut waiter).expect("joined");
        let mut buffer = vec![0; 1 << 16];
        let now = Nanos(1_767_623_400 * Nanos::SECOND);
        let mut sink = |_: &tickwire_market::MarketEvent| {};
        for errno in 1..=ERRNO_MAX {
            faults::inject(Call::Receive, errno, 2);
            assert!(intake.receive(0, &mut buffer).is_none());
            assert!(intake.receive(1, &mut buffer).is_none());
            assert_eq!(faults::clear(), 0);
            faults::inject(Call::Receive, errno, 1);
            intake.recover(now, &mut buffer, &mut channel, &mut sink);
            assert_eq!(faults::clear(), 0);
            faults::inject(Call::Send, errno, 1);
            let requests = intake.requests.as_mut().expect("a server");
            let server = requests.servers[0];
            requests.ask(b"request", server);
            assert_eq!(faults::clear(), 0);
            faults::inject(Call::Poll, errno, 1);
            waiter.wait(0);
            assert_eq!(faults::clear(), 0);
            intake.live_health.iter_mut().for_each(SocketHealth::worked);
            let requests = intake.requests.as_mut().expect("a server");
            requests.asking.worked();
            requests.hearing.worked();
        }
        let mut counters = Counters::default();
        intake.count_into(&mut counters);
        assert_eq!(counted(&counters), [4 * errors(); 2]);
        assert_eq!(waiter.errors(), errors());
    }
}

#[test]
fn no_error_of_any_call_ends_what_a_channel_receives() {
    let [a, b] = ["239.192.91.3:26913", "239.192.91.4:26914"];
    let feed = feed([a, b], "requests = \"127.0.0.1:9\"");
    let receiver = ReceiverSection {
        max_instruments: 64,
        max_orders: 4096,
        max_levels: 4096,
        ..ReceiverSection::default()
    };
    with_channel(&feed, 0, &Reception::new(&receiver), Receive(&feed)).expect("a channel");
}

/// A line with nothing but errors of configuration is left alone; the other goes on.
#[test]
fn only_what_never_heals_ends_a_line() {
    let [a, b] = ["239.192.91.5:26915", "239.192.91.6:26916"];
    let feed = feed([a, b], "");
    let ports = feed.channels[0].ports(&feed.interface);
    let mut waiter = Waiter::new(WaitStrategy::Poll);
    let mut intake = Intake::join(&ports, Protocol::Itch50, OPTIONS, &mut waiter).expect("joined");
    let mut buffer = vec![0; 1 << 16];
    let bad_descriptor = 9;
    faults::inject(Call::Receive, bad_descriptor, 1_000);
    let begun = std::time::Instant::now();
    while !intake.live_health[0].is_ended() {
        assert!(intake.receive(0, &mut buffer).is_none());
        assert!(begun.elapsed() < Duration::from_secs(30), "it goes on for ever");
    }
    let tried = 1_000 - faults::clear();
    assert!(tried < 20, "{tried} attempts without a wait between them");
    faults::inject(Call::Receive, bad_descriptor, 1);
    assert!(intake.receive(0, &mut buffer).is_none());
    assert_eq!(faults::clear(), 1, "an ended line is not received any more");
    assert!(!intake.live_health[1].is_ended());
}
