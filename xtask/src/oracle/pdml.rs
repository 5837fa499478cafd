//! What tshark says: PDML, one element a line, read into packets, messages and leaves.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use super::table::Protocol;

/// How long tshark may take over one capture: a dissector that is given the wrong protocol can loop.
const LIMIT: Duration = Duration::from_secs(120);

/// A field without parts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Leaf {
    /// The last part of its name: `orderid`.
    pub(crate) name: String,
    /// The dissector's value, as text.
    pub(crate) show: String,
    /// The line a reader sees: title and value.
    pub(crate) showname: String,
    /// Its bytes.
    pub(crate) raw: Vec<u8>,
}

/// One message: leaves in wire order.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Message {
    /// The dissector's name for it.
    pub(crate) name: String,
    pub(crate) leaves: Vec<Leaf>,
}

/// One frame.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Packet {
    /// Leaves outside messages: headers, trailers.
    pub(crate) header: Vec<Leaf>,
    pub(crate) messages: Vec<Message>,
    /// Address and port of the destination.
    pub(crate) destination: String,
    /// Capture time, in seconds with nine decimals.
    pub(crate) time: String,
    /// What tshark itself complains about.
    pub(crate) faults: Vec<String>,
    /// Whether the dissector took the packet.
    pub(crate) dissected: bool,
}

/// Runs tshark with one script over one capture.
pub(crate) fn run(
    script: &Path,
    capture: &Path,
    options: &[String],
    scratch: &Path,
) -> Result<String, String> {
    let output = fs::File::create(scratch).map_err(|e| format!("cannot write {}: {e}", scratch.display()))?;
    let mut child = Command::new("tshark")
        .args(["-n", "-T", "pdml", "-X"])
        .arg(format!("lua_script:{}", script.display()))
        .args(preferences(script))
        .args(options)
        .arg("-r")
        .arg(capture)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot run tshark: {e}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < LIMIT => thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(format!("tshark took more than {} s", LIMIT.as_secs()));
            }
            Err(e) => return Err(format!("cannot wait for tshark: {e}")),
        }
    };
    if !status.success() {
        return Err(format!("tshark ended with {status}"));
    }
    fs::read(scratch)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|e: io::Error| format!("cannot read {}: {e}", scratch.display()))
}

/// Scripts that carry values from packet to packet fail with tshark before 4.2 unless told not to.
fn preferences(script: &Path) -> Vec<String> {
    let text = fs::read_to_string(script).unwrap_or_default();
    let name = text
        .split("Proto(\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    match name {
        Some(name) if text.contains(".prefs.resolve_records") => {
            vec![
                "-o".to_owned(),
                format!("{}.resolve_records:FALSE", name.to_lowercase()),
            ]
        }
        _ => Vec::new(),
    }
}

/// One element with its parts.
#[derive(Default)]
struct Element {
    tag: String,
    name: String,
    show: String,
    showname: String,
    value: String,
    size: usize,
    hidden: bool,
    /// Whether it is some bits of the bytes it lies in.
    is_masked: bool,
    parts: Vec<Element>,
}

/// Reads a whole PDML document.
pub(crate) fn parse(text: &str, protocol: &Protocol) -> Vec<Packet> {
    let mut open: Vec<Element> = vec![Element::default()];
    for chunk in text.split('<').skip(1) {
        let Some((tag, _)) = chunk.rsplit_once('>') else {
            continue;
        };
        if tag.starts_with(['?', '!']) {
            continue;
        }
        if tag.starts_with('/') {
            close(&mut open);
            continue;
        }
        open.push(element(tag));
        if tag.ends_with('/') {
            close(&mut open);
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let root = open.pop().unwrap_or_default();
    let mut packets = Vec::new();
    collect(&root, protocol, &mut packets);
    packets
}

fn close(open: &mut Vec<Element>) {
    if open.len() > 1
        && let (Some(done), Some(parent)) = (open.pop(), open.last_mut())
    {
        parent.parts.push(done);
    }
}

fn element(tag: &str) -> Element {
    let (kind, mut rest) = tag.split_once([' ', '/']).unwrap_or((tag, ""));
    let mut element = Element {
        tag: kind.to_owned(),
        ..Element::default()
    };
    while let Some((key, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').unwrap_or((after, ""));
        rest = after;
        match key.trim() {
            "name" => element.name = value.to_owned(),
            "show" => element.show = unescape(value),
            "showname" => element.showname = unescape(value),
            "value" => element.value = value.to_owned(),
            "size" => element.size = value.parse().unwrap_or(0),
            "unmaskedvalue" => element.is_masked = true,
            "hide" => element.hidden = value == "yes",
            _ => {}
        }
    }
    element
}

fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'")];
    let text = named
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

fn collect(element: &Element, protocol: &Protocol, packets: &mut Vec<Packet>) {
    if element.tag != "packet" {
        for part in &element.parts {
            collect(part, protocol, packets);
        }
        return;
    }
    let mut packet = Packet::default();
    let (mut address, mut port) = ("", "");
    for proto in &element.parts {
        complaints(proto, &mut packet.faults);
        let field = |name: &str| {
            let found = proto.parts.iter().find(|f| f.name == name);
            found.map_or("", |f| f.show.as_str())
        };
        match proto.name.as_str() {
            "geninfo" => {
                let time = proto.parts.iter().find(|f| f.name == "timestamp");
                packet.time = time.map(|f| f.value.clone()).unwrap_or_default();
            }
            "ip" => address = field("ip.dst"),
            "udp" => port = field("udp.dstport"),
            "tcp" => port = field("tcp.dstport"),
            name if name.starts_with("omi.") => {
                packet.dissected = true;
                for part in &proto.parts {
                    walk(part, protocol, &mut packet, None);
                }
            }
            _ => {}
        }
    }
    packet.destination = format!("{address}:{port}");
    packets.push(packet);
}

/// What tshark says about packets it could not read, and about scripts that failed.
fn complaints(element: &Element, faults: &mut Vec<String>) {
    let is_fault = element.name.starts_with("_ws.malformed")
        || element.showname.contains("Lua Error")
        || element.show.contains("Lua Error");
    if is_fault {
        faults.push(format!("{} {}", element.showname, element.show).trim().to_owned());
    }
    for part in &element.parts {
        complaints(part, faults);
    }
}

fn walk(element: &Element, protocol: &Protocol, packet: &mut Packet, message: Option<usize>) {
    let name = element.name.rsplit('.').next().unwrap_or("").to_owned();
    if element.hidden || element.size == 0 {
        return;
    }
    let is_flags = element.parts.iter().any(|part| part.is_masked);
    if (element.parts.is_empty() || is_flags) && !element.value.is_empty() {
        let leaf = Leaf {
            show: element.show.clone(),
            showname: element.showname.clone(),
            raw: unhex(&element.value),
            name,
        };
        match message {
            Some(at) => packet.messages[at].leaves.push(leaf),
            None => packet.header.push(leaf),
        }
        return;
    }
    let starts = message.is_none() && protocol.is_message(&name);
    let message = if starts {
        packet.messages.push(Message {
            name: if name == "message" || protocol.names_within {
                String::new()
            } else {
                name.clone()
            },
            leaves: Vec::new(),
        });
        Some(packet.messages.len() - 1)
    } else {
        message
    };
    if let Some(at) = message {
        // The message's own name is that of the innermost element that ends so, or else of the first within.
        let known = &mut packet.messages[at].name;
        let is_body = !starts && !name.ends_with("header");
        if is_body && (known.is_empty() || name.ends_with("message")) {
            known.clone_from(&name);
        }
    }
    for part in &element.parts {
        walk(part, protocol, packet, message);
    }
    if let Some(at) = message
        && starts
        && packet.messages[at].name.is_empty()
    {
        packet.messages[at].name = name;
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, b| byte << 4 | digit(*b)))
        .collect()
}
