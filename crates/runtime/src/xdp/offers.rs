//! What a driver offers of timestamps: to programs and AF_XDP by the kernel's own list, generic netlink,
//! family `netdev` (Linux 6.3), `Documentation/netlink/specs/netdev.yaml`; to sockets by `ethtool`
//! (`Documentation/networking/timestamping.rst`, 3).

use std::fs::File;
use std::io::{self, Read, Write};

use super::delegate::ask_into;
use super::sys;

/// Generic netlink's controller, which knows the number of a family by its name.
const CONTROLLER: u16 = 16;
/// `CTRL_CMD_GETFAMILY`; `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `NETDEV_CMD_DEV_GET`; `NETDEV_A_DEV_IFINDEX`, `_XDP_RX_METADATA_FEATURES`, `_XSK_FEATURES`.
const DEV_GET: u8 = 1;
const IFINDEX: u16 = 1;
const RX_METADATA: u16 = 5;
const XSK: u16 = 6;

/// `struct nlmsghdr` and `struct genlmsghdr`.
const HEADERS: usize = 20;
const ERROR: u16 = 2;

/// What a driver offers of timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Offers {
    /// A program in the driver may ask when the card received a packet.
    pub rx_time: bool,
    /// An AF_XDP socket may ask when the card sent a frame.
    pub tx_time: bool,
}

/// What the driver of an interface, by index, offers. Drivers may offer what a card then does not do.
///
/// # Errors
/// What the system says: kernels before 6.3 have no such list.
pub fn offers(interface: u32) -> io::Result<Offers> {
    let mut socket = File::from(sys::generic_netlink()?);
    let mut name = b"netdev\0".to_vec();
    name.resize(8, 0);
    let reply = ask(
        &mut socket,
        CONTROLLER,
        GET_FAMILY,
        &attribute(FAMILY_NAME, 7, &name),
    )?;
    let family = find(&reply, FAMILY_ID).and_then(|value| value.first_chunk::<2>().copied());
    let family = u16::from_ne_bytes(family.ok_or_else(unreadable)?);
    let index = attribute(IFINDEX, 4, &interface.to_ne_bytes());
    let reply = ask(&mut socket, family, DEV_GET, &index)?;
    let bits = |kind| {
        let value = find(&reply, kind).and_then(|value| value.first_chunk::<8>());
        value.map_or(0, |value| u64::from_ne_bytes(*value))
    };
    Ok(Offers {
        rx_time: bits(RX_METADATA) & 1 != 0,
        tx_time: bits(XSK) & 1 != 0,
    })
}

/// What a driver offers of timestamps of what sockets send ([`crate::sent::SendStamps`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SocketOffers {
    /// The driver stamps what it gives to the card.
    pub by_driver: bool,
    /// The card can stamp what it has sent.
    pub by_card: bool,
    /// Whether the card does so now: somebody has to turn it on (`hwstamp_ctl -i NAME -t 1` of linuxptp, or
    /// its `ptp4l`). `None` where the driver does not say.
    pub card_is_on: Option<bool>,
}

/// `struct ethtool_ts_info` of linux/ethtool.h.
#[derive(Default)]
#[repr(C)]
struct TimestampInfo {
    command: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// SIOCETHTOOL of linux/sockios.h.
const ETHTOOL: libc::Ioctl = 0x8946;

/// `struct hwtstamp_config` of linux/net_tstamp.h.
#[derive(Default)]
#[repr(C)]
struct CardConfig {
    flags: i32,
    tx_type: i32,
    rx_filter: i32,
}

/// What the driver of an interface of the calling thread's network namespace offers to sockets.
///
/// # Errors
/// `ENODEV`: there is no such interface.
pub fn socket_offers(interface: &str) -> io::Result<SocketOffers> {
    // SOF_TIMESTAMPING_TX_HARDWARE and _TX_SOFTWARE, HWTSTAMP_TX_OFF and _TX_ON.
    const TX_HARDWARE: u32 = 1;
    const TX_SOFTWARE: u32 = 1 << 1;
    const OFF: i32 = 0;
    const ON: u32 = 1 << 1;
    // SIOCGHWTSTAMP of linux/sockios.h.
    const GET_CARD_CONFIG: libc::Ioctl = 0x89B1;
    let info = timestamp_info(interface)?;
    let by_card = info.so_timestamping & TX_HARDWARE != 0 && info.tx_types & ON != 0;
    let mut config = CardConfig::default();
    // SAFETY: the request writes a `struct hwtstamp_config`.
    let asked = unsafe { ask_into(interface, GET_CARD_CONFIG, &mut config) };
    Ok(SocketOffers {
        by_driver: info.so_timestamping & TX_SOFTWARE != 0,
        by_card,
        card_is_on: asked.ok().map(|()| config.tx_type != OFF),
    })
}

/// The number of the clock of an interface's card, as in `/dev/ptp0`, in the calling thread's network
/// namespace; `None` if it has none.
///
/// # Errors
/// `ENODEV`: there is no such interface; `EOPNOTSUPP`: its driver does not say.
pub fn card_clock(interface: &str) -> io::Result<Option<u32>> {
    Ok(u32::try_from(timestamp_info(interface)?.phc_index).ok())
}

fn timestamp_info(interface: &str) -> io::Result<TimestampInfo> {
    // ETHTOOL_GET_TS_INFO.
    const GET_TS_INFO: u32 = 0x41;
    let mut info = TimestampInfo {
        command: GET_TS_INFO,
        ..TimestampInfo::default()
    };
    // SAFETY: this command reads its first word and writes a `struct ethtool_ts_info`.
    unsafe { ask_into(interface, ETHTOOL, &mut info) }?;
    Ok(info)
}

/// `struct ethtool_channels` of linux/ethtool.h.
#[derive(Default)]
#[repr(C)]
struct Channels {
    command: u32,
    /// Of receiving, of sending, of something else, of both: the most, and so many now.
    most: [u32; 4],
    now: [u32; 4],
}

/// How many receive queues an interface of the calling thread's network namespace has.
///
/// # Errors
/// `ENODEV`: there is no such interface; `EOPNOTSUPP`: its driver does not say.
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    const GET_CHANNELS: u32 = 0x3C;
    let mut channels = Channels {
        command: GET_CHANNELS,
        ..Channels::default()
    };
    // SAFETY: this command reads its first word and writes a `struct ethtool_channels`.
    unsafe { ask_into(interface, ETHTOOL, &mut channels) }?;
    let [receiving, _, _, both] = channels.now;
    Ok(receiving.saturating_add(both))
}

/// `struct ethtool_drvinfo` of linux/ethtool.h.
#[repr(C)]
struct DriverInfo {
    command: u32,
    /// Ends with a zero.
    name: [u8; 32],
    others: [u8; 160],
}

/// The name of the driver of an interface of the calling thread's network namespace, such as `ixgbe` or
/// `veth`.
///
/// # Errors
/// As [`receive_queues`].
pub fn driver(interface: &str) -> io::Result<String> {
    const GET_DRIVER: u32 = 3;
    let mut info = DriverInfo {
        command: GET_DRIVER,
        name: [0; 32],
        others: [0; 160],
    };
    // SAFETY: this command reads its first word and writes a `struct ethtool_drvinfo`.
    unsafe { ask_into(interface, ETHTOOL, &mut info) }?;
    let name = info.name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

fn unreadable() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's answer is not understood",
    )
}

/// An attribute of `length` bytes, padded to whole words by the caller.
fn attribute(kind: u16, length: u16, padded: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + length).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(padded);
    bytes
}

/// Asks, and gives the attributes of the answer.
fn ask(socket: &mut File, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let mut request = Vec::with_capacity(HEADERS + attributes.len());
    request.extend(((HEADERS + attributes.len()) as u32).to_ne_bytes());
    request.extend(family.to_ne_bytes());
    // NLM_F_REQUEST.
    request.extend(1_u16.to_ne_bytes());
    // Number and port: one question at a time on a socket of its own.
    request.extend([0; 8]);
    request.extend([command, 1, 0, 0]);
    request.extend(attributes);
    socket.write_all(&request)?;
    let mut answer = vec![0; 1 << 14];
    let length = socket.read(&mut answer)?;
    answer.truncate(length);
    of_answer(&answer)
}

/// The attributes of an answer, or the error that it tells.
fn of_answer(answer: &[u8]) -> io::Result<Vec<u8>> {
    let header = answer.first_chunk::<16>().ok_or_else(unreadable)?;
    let [a, b, c, d, kind, kind_high, ..] = *header;
    let length = u32::from_ne_bytes([a, b, c, d]) as usize;
    if u16::from_ne_bytes([kind, kind_high]) == ERROR {
        let number = answer.get(16..).and_then(|rest| rest.first_chunk::<4>());
        let number = i32::from_ne_bytes(*number.ok_or_else(unreadable)?);
        return Err(io::Error::from_raw_os_error(number.saturating_neg()));
    }
    let attributes = answer.get(HEADERS..length.min(answer.len()));
    attributes.map(<[u8]>::to_vec).ok_or_else(unreadable)
}

/// The value of the first attribute of a kind.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some((header, _)) = attributes.split_first_chunk::<4>() {
        let [l0, l1, k0, k1] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = attributes.get(4..length)?;
        // The upper bits say that it is nested, or in which order its bytes are.
        if u16::from_ne_bytes([k0, k1]) & 0x3FFF == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_among_others_and_damage_is_no_panic() {
        let mut bytes = attribute(IFINDEX, 4, &7_u32.to_ne_bytes());
        bytes.extend(attribute(2, 1, &[9, 0, 0, 0]));
        bytes.extend(attribute(RX_METADATA, 8, &3_u64.to_ne_bytes()));
        assert_eq!(find(&bytes, RX_METADATA), Some(&3_u64.to_ne_bytes()[..]));
        assert_eq!((find(&bytes, 2), find(&bytes, XSK)), (Some(&[9][..]), None));
        for at in 0..bytes.len() {
            for value in [0, 1, 3, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = find(&changed, XSK);
                let _ = find(&changed[..at], XSK);
            }
        }
    }

    #[test]
    fn an_error_of_the_kernel_is_an_error() {
        let mut answer = 36_u32.to_ne_bytes().to_vec();
        answer.extend(ERROR.to_ne_bytes());
        answer.extend([0; 10]);
        answer.extend((-libc::ENODEV).to_ne_bytes());
        let error = of_answer(&answer).expect_err("told");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        for length in 0..16 {
            assert!(of_answer(&answer[..length]).is_err());
        }
    }

    /// Every kernel since 6.3 answers, to anybody; an older one says that it knows no such family.
    #[test]
    fn the_kernel_is_asked_about_loopback() {
        let index = crate::interface::Interface::loopback()
            .expect("there is one")
            .index();
        match offers(index) {
            // Nothing there has a card.
            Ok(offers) => assert_eq!(offers, Offers::default()),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
        assert!(offers(u32::MAX).is_err());
        // What sockets send is stamped in software, and there is no card.
        let of_sockets = socket_offers("lo").expect("loopback is asked");
        assert!(of_sockets.by_driver && !of_sockets.by_card, "{of_sockets:?}");
        let error = socket_offers("nosuch0").expect_err("there is none");
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
