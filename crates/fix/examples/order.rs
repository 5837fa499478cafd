//! Logs on, sends an order, shows what comes back, logs out:
//! `cargo run -p tickwire-fix --example order -- 127.0.0.1:9878`, against
//! `tickwire fix acceptor -c examples/fix/acceptor.cfg`.

use std::io::{Error, Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use tickwire_fix::{Again, CompId, Event, Role, Session, SessionConfig, tag};
use tickwire_market::Nanos;

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Nanos(since.map_or(0, |d| d.as_nanos() as u64))
}

/// The whole session; the text of every message that came back.
pub(crate) fn trade(address: &str) -> Result<Vec<String>, Error> {
    let id = |text: &[u8]| CompId::new(text).ok_or(Error::other("a comp id has 1 to 31 characters"));
    let mut config = SessionConfig::new(Role::Initiator, id(b"TRADER")?, id(b"VENUE")?);
    config.reset_on_logon = true;
    let mut session = Session::new(config);
    let (mut stream, mut buffer, mut seen) = (TcpStream::connect(address)?, [0; 4096], Vec::new());
    session.handle_connected(now());
    loop {
        while let Some(event) = session.poll_event() {
            match event {
                Event::LoggedOn { .. } => {
                    let sent = session.send(now(), b"D", Again::Resend, |order, _| {
                        order.text(tag::CL_ORD_ID, b"example");
                        order.unsigned(tag::ORDER_QTY, 100);
                        order.text(tag::SYMBOL, b"AAPL");
                        order.char(tag::SIDE, b'1');
                    });
                    println!("sent: {sent:?}");
                }
                Event::Message { .. } => {
                    let bytes = session.message().map_or(&[][..], |m| m.bytes());
                    seen.push(String::from_utf8_lossy(bytes).replace('\x01', "|"));
                    session.logout(now(), "");
                }
                Event::Disconnect { .. } => return Ok(seen),
                _ => {}
            }
        }
        while let Some(bytes) = session.poll_transmit(&mut buffer) {
            stream.write_all(bytes)?;
        }
        let len = stream.read(&mut buffer)?;
        let taken = session.handle_bytes(now(), &buffer[..len]);
        assert_eq!(taken, len, "events were drained, so all of it was taken");
        session.handle_timeout(now());
        if len == 0 {
            session.handle_disconnected(now());
            return Ok(seen);
        }
    }
}

#[allow(dead_code, reason = "a test uses the function alone")]
fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9878".into());
    trade(&address)?.iter().for_each(|message| println!("{message}"));
    Ok(())
}
