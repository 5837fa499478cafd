//! A turn of the venue after a time in which its thread stood still.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::*;

/// GLIMPSE hangs up on a client that says nothing for 15 s. Here the login of a client comes in time, and is
/// read 20 s later, because the venue's thread did not run.
#[test]
fn a_snapshot_client_is_read_before_it_is_called_silent() {
    let config = MarketConfig::parse(
        "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"lo\"\n[[feed.channel]]\nname = \"1\"\n\
         live = { a = \"239.192.91.9:26919\", b = \"239.192.91.10:26920\" }\nsnapshot_server = \"127.0.0.1:0\"\n\
         [order_entry]\naddress = \"127.0.0.1:0\"\n[receiver]\nmax_instruments = 64\nmax_orders = 4096\nmax_levels = 4096\n\
         [exchange]\nsymbols = 4\nrate = 100000\nduration_s = 1.0\n",
    )
    .expect("a configuration");
    let clock = Clock::calibrate_for(Duration::from_millis(1));
    let mut venue = Venue::start(&config, clock).expect("it starts");
    let (_, port) = venue.listening().servers[0];
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    client.set_nonblocking(true).expect("a socket");
    let mut buffer = vec![0; 1 << 16];
    let mut turned = venue.clock.now();
    let mut turn = |venue: &mut Venue<'_>| {
        (turned, _) = venue.begin_turn(turned, &mut buffer).expect("it goes on");
        venue.serve_channels(&mut buffer);
    };
    let is_connected = |venue: &Venue<'_>| venue.published_channels[0].1.is_busy(Nanos(u64::MAX), 0);
    for _ in 0..1_000_000 {
        turn(&mut venue);
        if is_connected(&venue) {
            break;
        }
    }
    assert!(is_connected(&venue), "it is accepted");
    // A SoupBinTCP login request: length, type, user, password, session, number.
    let login = [&[0, 47, b'L'][..], &[b' '; 46]].concat();
    client.write_all(&login).expect("written");
    let later = venue.clock.now().after(20 * Nanos::SECOND);
    venue.clock.not_before(later);
    let mut answer = [0; 3];
    let mut read = 0;
    for _ in 0..1_000_000 {
        turn(&mut venue);
        match client.read(&mut answer) {
            Ok(bytes) => {
                read = bytes;
                break;
            }
            Err(_) => continue,
        }
    }
    assert_eq!(read, answer.len(), "it is hung up on");
    assert!(
        matches!(answer[2], b'A' | b'J'),
        "accepted or rejected: {answer:?}"
    );
}
