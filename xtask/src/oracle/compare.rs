//! Message by message, field by field: names, order and values.

use super::ours::{Field, Line, Value};
use super::pdml::{Leaf, Message, Packet};
use super::table::{Exception, Names, Numbers, Protocol, plain};

/// Members of our lines that tell about the packet as a whole, not of a field of it.
const OURS_ALONE: [&str; 4] = ["File", "Packet", "Protocol", "Bytes"];
/// Members that tell how many bytes we left unread: where the dissector reads them, they are differences by themselves.
const UNREAD: [&str; 2] = ["UnreadBytes", "TrailingBytes"];

/// What was compared, of one capture or of all.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub(crate) packets: usize,
    pub(crate) messages: usize,
    pub(crate) fields: usize,
    /// Differences that are known faults of the dissector: the rows of the table, each as often as it was used.
    pub(crate) exceptions: Vec<usize>,
    pub(crate) differences: Vec<String>,
}

/// One capture, both ways.
pub(crate) struct Comparison<'a> {
    /// As it is shown in differences.
    pub(crate) file: &'a str,
    pub(crate) protocol_name: &'a str,
    pub(crate) protocol: &'a Protocol,
    pub(crate) numbers: Numbers,
    pub(crate) exceptions: &'a [Exception],
    pub(crate) tally: Tally,
    /// Where we are: packet and message from 1, our name of the message.
    place: (usize, usize, String),
    /// Our fields of the message.
    own: Vec<Field>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(
        file: &'a str,
        protocol_name: &'a str,
        protocol: &'a Protocol,
        numbers: Numbers,
        exceptions: &'a [Exception],
    ) -> Comparison<'a> {
        Comparison {
            file,
            protocol_name,
            protocol,
            numbers,
            exceptions,
            tally: Tally::default(),
            place: (0, 0, String::new()),
            own: Vec::new(),
        }
    }

    /// Compares all packets with all lines.
    pub(crate) fn run(mut self, packets: &[Packet], lines: &[Line]) -> Tally {
        let past = lines
            .iter()
            .filter(|line| line.packet() == 0 || line.packet() > packets.len());
        for line in past {
            self.place = (line.packet(), 0, line.message.clone());
            self.difference("packet", "decoded", "not in the capture");
        }
        for (index, packet) in packets.iter().enumerate() {
            let of_packet: Vec<&Line> = lines.iter().filter(|line| line.packet() == index + 1).collect();
            self.place = (index + 1, 0, String::new());
            self.packet(packet, &of_packet);
        }
        self.tally
    }

    fn packet(&mut self, packet: &Packet, lines: &[&Line]) {
        self.tally.packets += 1;
        let told = lines.iter().find(|line| !line.message.is_empty());
        self.place.2 = told.map(|line| line.message.clone()).unwrap_or_default();
        for fault in &packet.faults {
            self.difference("packet", "read", fault);
        }
        for line in lines {
            if let Some(why) = &line.error {
                self.difference("packet", why, "read");
            }
        }
        if !packet.dissected {
            self.difference("packet", &format!("{} messages", lines.len()), "not dissected");
            return;
        }
        let read = || lines.iter().filter(|line| line.error.is_none());
        for header in read().filter(|line| line.is_header) {
            self.place = (self.place.0, 0, String::new());
            self.fields(&header.fields, &packet.header);
        }
        let told: Vec<&&Line> = read().filter(|line| !line.is_header).collect();
        for (index, line) in told.iter().enumerate() {
            self.place = (self.place.0, index + 1, line.message.clone());
            self.origin(packet, line, index);
        }
        // A packet without messages is a line of its own.
        let is_idle = |line: &&&Line| packet.messages.is_empty() && line.fields.is_empty();
        let messages: Vec<&&Line> = told.into_iter().filter(|line| !is_idle(line)).collect();
        if messages.len() != packet.messages.len() {
            let names: Vec<&str> = packet.messages.iter().map(|m| m.name.as_str()).collect();
            self.difference(
                "messages",
                &messages.len().to_string(),
                &format!("{} {names:?}", packet.messages.len()),
            );
        }
        for (index, (line, message)) in messages.iter().zip(&packet.messages).enumerate() {
            self.place = (self.place.0, index + 1, line.message.clone());
            self.message(line, message);
        }
    }

    /// What stands outside the message: time, destination, session, sequence number.
    fn origin(&mut self, packet: &Packet, line: &Line, index: usize) {
        for field in &line.origin {
            match (field.name.as_str(), &field.value) {
                (name, _) if OURS_ALONE.contains(&name) => {}
                ("CaptureTime", Value::Number(nanos)) => {
                    let theirs = packet.time.replace('.', "");
                    self.same(
                        "CaptureTime",
                        nanos.trim_start_matches('0'),
                        theirs.trim_start_matches('0'),
                    );
                }
                ("Destination", Value::Text(text)) => {
                    self.same("Destination", &String::from_utf8_lossy(text), &packet.destination);
                }
                (name, value) => {
                    let own = Names::One(plain(name));
                    let names = self.protocol.header.get(name).unwrap_or(&own);
                    let found = names.iter().find_map(|theirs| {
                        let wanted = theirs.trim_end_matches('#');
                        let leaf = packet.header.iter().find(|leaf| leaf.name == wanted)?;
                        Some((leaf, theirs.ends_with('#')))
                    });
                    let Some((leaf, counts)) = found else {
                        self.difference(name, &shown(value), "has no such header");
                        continue;
                    };
                    let first = Field {
                        name: name.to_owned(),
                        value: if counts { less(value, index) } else { value.clone() },
                    };
                    self.value(&first, std::slice::from_ref(leaf), false);
                }
            }
        }
    }

    fn same(&mut self, field: &str, ours: &str, theirs: &str) {
        self.tally.fields += 1;
        if ours != theirs {
            self.difference(field, ours, theirs);
        }
    }

    fn message(&mut self, line: &Line, message: &Message) {
        self.tally.messages += 1;
        if !self.protocol.same_message(&line.message, &message.name) {
            self.difference("Message", &line.message, &message.name);
        }
        let alone = &self.protocol.ours_alone;
        let own = line.fields.iter().filter(|field| !alone.contains(&field.name));
        let own: Vec<Field> = own.cloned().collect();
        self.own.clone_from(&own);
        self.fields(&own, &message.leaves);
        self.own.clear();
    }

    /// Fields in order: each of ours is the next of theirs but for what we do not show.
    fn fields(&mut self, ours: &[Field], theirs: &[Leaf]) {
        let mut rest = theirs;
        for field in ours.iter().filter(|field| !UNREAD.contains(&field.name.as_str())) {
            let found = (0..rest.len()).find_map(|ahead| {
                self.matches(&field.name, &rest[ahead..])
                    .map(|(count, raw)| (ahead, count, raw))
            });
            let Some((ahead, count, raw)) = found else {
                // What the sender's version lacks is null or empty in ours.
                if matches!(&field.value, Value::Null)
                    || matches!(&field.value, Value::Text(text) if text.is_empty())
                {
                    continue;
                }
                let next = rest.first().map_or("the end", |leaf| leaf.name.as_str());
                self.difference(
                    &field.name,
                    &shown(&field.value),
                    &format!("nothing of that name, next {next}"),
                );
                continue;
            };
            let (passed, after) = rest.split_at(ahead);
            let (leaves, after) = after.split_at(count);
            self.passed(passed);
            self.value(field, leaves, raw);
            rest = after;
        }
        self.passed(rest);
    }

    /// Leaves that we do not show.
    fn passed(&mut self, leaves: &[Leaf]) {
        for leaf in leaves {
            if !self.protocol.skip.contains(&leaf.name) {
                self.difference(
                    &leaf.name,
                    "nothing of that name",
                    &format!("{} ({})", leaf.show, hex(&leaf.raw)),
                );
            }
        }
    }

    /// How many leaves, from the first one on, are this field of ours; and whether only their bytes can be compared.
    fn matches(&self, ours: &str, leaves: &[Leaf]) -> Option<(usize, bool)> {
        let Some(names) = self.protocol.fields.get(ours) else {
            return (leaves.first()?.name == plain(ours)).then_some((1, false));
        };
        names.iter().find_map(|name| {
            let (name, raw) = match name.strip_suffix('~') {
                Some(name) => (name, true),
                None => (name, false),
            };
            let parts: Vec<&str> = name.split('+').collect();
            let fit = leaves.len() >= parts.len()
                && parts.iter().zip(leaves).all(|(part, leaf)| *part == leaf.name);
            fit.then_some((parts.len(), raw))
        })
    }

    fn value(&mut self, field: &Field, leaves: &[Leaf], raw: bool) {
        self.tally.fields += 1;
        let numbers = if raw { Numbers::Raw } else { self.numbers };
        if let Err(theirs) = equal(&field.value, leaves, self.protocol.big_endian, numbers) {
            self.difference(&field.name, &shown(&field.value), &theirs);
        }
    }

    fn has(&self, name: &str, values: &[String]) -> bool {
        let mut found = self.own.iter().filter(|field| field.name == name);
        found.any(|field| values.iter().any(|value| *value == bare(&field.value)))
    }

    fn difference(&mut self, field: &str, ours: &str, theirs: &str) {
        let (packet, number, message) = &self.place;
        let known = self.exceptions.iter().position(|known| {
            known.protocol == self.protocol_name
                && self.file.ends_with(&known.capture)
                && (known.message.is_empty() || known.message == *message)
                && (known.field == "*" || known.field == field)
                && known.when.iter().all(|(name, values)| self.has(name, values))
        });
        match known {
            Some(row) => self.tally.exceptions.push(row),
            None => self.tally.differences.push(format!(
                "{}: packet {packet}, message {number} {message}, {field}: tickwire {ours}, tshark {theirs}",
                self.file
            )),
        }
    }
}

/// A value without quotes.
fn bare(value: &Value) -> String {
    shown(value).trim_matches('"').to_owned()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(text) => text.clone(),
        Value::Text(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Null => "null".to_owned(),
    }
}

/// A number of the packet's first message, told by one further on.
fn less(value: &Value, index: usize) -> Value {
    match value {
        Value::Number(text) => match text.parse::<u64>() {
            Ok(number) => Value::Number(number.wrapping_sub(index as u64).to_string()),
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Whether the values agree; otherwise theirs, to be shown.
fn equal(ours: &Value, leaves: &[Leaf], big_endian: bool, numbers: Numbers) -> Result<(), String> {
    let agree = match (ours, leaves) {
        (Value::Number(text), [leaf]) => equal_number(text, leaf, big_endian, numbers),
        (Value::Number(text), [seconds, nanos]) => {
            let time = unsigned(&seconds.raw, big_endian) * 1_000_000_000 + unsigned(&nanos.raw, big_endian);
            text.parse() == Ok(time)
        }
        (Value::Text(bytes), leaves) => {
            let raw: Vec<u8> = leaves.iter().flat_map(|leaf| leaf.raw.iter().copied()).collect();
            trim(&raw) == trim(bytes)
                || raw.escape_ascii().to_string().as_bytes() == bytes.as_slice()
                || hex(&raw).as_bytes() == bytes.as_slice()
        }
        (Value::Null, [leaf]) => leaf.showname.contains("No Value"),
        _ => false,
    };
    if agree {
        return Ok(());
    }
    let leaves: Vec<String> = leaves
        .iter()
        .map(|leaf| format!("{} ({})", leaf.show, hex(&leaf.raw)))
        .collect();
    Err(leaves.join(" + "))
}

/// The bytes say our number, decimals left out of account; and the dissector shows it, decimals included.
fn equal_number(ours: &str, leaf: &Leaf, big_endian: bool, numbers: Numbers) -> bool {
    let digits: String = ours.chars().filter(|c| *c != '.').collect();
    let Ok(mantissa) = digits.parse::<i128>() else {
        return false;
    };
    let number = unsigned(&leaf.raw, big_endian) as i128;
    let negative = if is_negative(&leaf.raw, big_endian) {
        number - (1 << (8 * leaf.raw.len()))
    } else {
        number
    };
    let bytes_agree = mantissa == number || mantissa == negative;
    bytes_agree
        && match numbers {
            Numbers::Right => shows(&leaf.show, ours),
            Numbers::Signed => shows(&leaf.show, ours) || shows(&leaf.show, &negative.to_string()),
            Numbers::Raw => true,
        }
}

/// Whether a number as the dissector shows it is ours: it may be computed in floating point, with 53 bits.
fn shows(theirs: &str, ours: &str) -> bool {
    if theirs == ours {
        return true;
    }
    let (Ok(theirs), Ok(ours)) = (number(theirs), ours.parse::<f64>()) else {
        return true; // words, not a number
    };
    (theirs - ours).abs() <= 1e-9 * ours.abs()
}

fn number(text: &str) -> Result<f64, ()> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(|n| n as f64).map_err(drop),
        None => text.parse().map_err(drop),
    }
}

fn unsigned(bytes: &[u8], big_endian: bool) -> u128 {
    let append = |n: u128, b: &u8| n << 8 | u128::from(*b);
    let bytes = &bytes[..bytes.len().min(15)];
    if big_endian {
        bytes.iter().fold(0, append)
    } else {
        bytes.iter().rev().fold(0, append)
    }
}

fn is_negative(bytes: &[u8], big_endian: bool) -> bool {
    let highest = if big_endian { bytes.first() } else { bytes.last() };
    highest.is_some_and(|b| b & 0x80 != 0)
}

fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| !matches!(b, b' ' | 0));
    &bytes[..end.map_or(0, |last| last + 1)]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}
