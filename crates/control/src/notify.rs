//! Telling a service manager that the daemon is ready, in the way of `sd_notify(3)`: a datagram to the socket
//! that the environment names. Without one, nothing is told.
//!
//! The crate `sd-notify` does the same in a few more lines, with watchdog and descriptor passing that nobody
//! needs here.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable that names the socket: a path, or an abstract name behind `@`.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Says how far the daemon is.
pub struct Notifier(Option<(UnixDatagram, SocketAddr)>);

impl Notifier {
    /// To whoever the environment names.
    pub fn from_environment() -> Notifier {
        Notifier::new(std::env::var_os(SOCKET_VARIABLE))
    }

    fn new(name: Option<OsString>) -> Notifier {
        let name = name.filter(|name| !name.is_empty());
        Notifier(name.and_then(|name| match socket(&name) {
            Ok(socket) => Some(socket),
            Err(e) => {
                eprintln!(
                    "warning: {SOCKET_VARIABLE} = {} cannot be used: {e}",
                    name.display()
                );
                None
            }
        }))
    }

    /// Sends lines such as `READY=1`. A manager that does not listen is its own loss.
    pub fn say(&self, lines: &str) {
        if let Some((socket, manager)) = &self.0 {
            let _ = socket.send_to_addr(lines.as_bytes(), manager);
        }
    }
}

fn socket(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(hidden) => SocketAddr::from_abstract_name(hidden)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_on_an_abstract_socket_hears_what_is_said() {
        let name = format!("tickwire-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        Notifier::new(Some(format!("@{name}").into())).say("READY=1\n");
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1\n");
    }

    #[test]
    fn without_a_manager_nothing_is_said() {
        Notifier::new(None).say("READY=1\n");
        Notifier::new(Some("".into())).say("READY=1\n");
        Notifier::new(Some("/nowhere/notify".into())).say("READY=1\n");
    }
}
