//! What an interface can do of the kernel path, by trying.

use super::{Program, XdpError, XdpMode, XdpSocket, XdpSocketConfig};
use crate::interface::Interface;

/// `r0 = XDP_PASS; exit`: every packet goes on as if there were no program.
const PASSES: [u64; 2] = [0x0000_0002_0000_00B7, 0x95];

/// One way to receive by AF_XDP.
#[derive(Debug)]
pub struct Way {
    /// Where the program stands.
    pub mode: XdpMode,
    /// Whether frames come without a copy.
    pub zero_copy: bool,
    /// Why it is not possible, if it is not.
    pub outcome: Result<(), XdpError>,
}

/// Tries the ways of an interface, best first, on its first queue: attaches a program that lets everything
/// pass, and binds a socket that nothing is sent to, each for a moment. Packets go on meanwhile; a driver
/// that sets its queue up anew for a socket without a copy may lose some.
///
/// # Errors
/// What every way would meet: missing capabilities, another program, another socket.
pub fn probe(interface: &Interface) -> Result<Vec<Way>, XdpError> {
    let program = Program::load("tw_probe", &PASSES)?;
    let at = (interface.name(), interface.index());
    let mut ways = Vec::new();
    for (mode, zero_copy) in [
        (XdpMode::Native, true),
        (XdpMode::Native, false),
        (XdpMode::Generic, false),
    ] {
        let config = XdpSocketConfig {
            frames: 64,
            zero_copy: Some(zero_copy),
        };
        let outcome = program.attach(at, mode).and_then(|attached| {
            let socket = XdpSocket::open(at, 0, config, None);
            drop(attached);
            socket.map(drop)
        });
        match outcome {
            Err(error @ (XdpError::Busy { .. } | XdpError::NotPermitted { .. })) => return Err(error),
            outcome => ways.push(Way {
                mode,
                zero_copy,
                outcome,
            }),
        }
    }
    Ok(ways)
}
