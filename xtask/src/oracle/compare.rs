//! Message by message, field by field: names, order and values.

use super::ours::{Field, Line, Value};
use super::pdml::{Leaf, Message, Packet};
use super::table::{Exception, Names, Numbers, Protocol, plain};

/// Members of our lines that tell about the packet as a whole, not of a field of it.
const OURS_ALONE: [&str; 4] = ["File", "Packet", "Protocol", "Bytes"];
/// How members end that tell how many bytes we left unread: where the dissector reads them, they are
/// differences by themselves.
const UNREAD: [&str; 2] = ["UnreadBytes", "TrailingBytes"];

/// What was compared, of one capture or of all.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub(crate) packets: usize,
    pub(crate) messages: usize,
    pub(crate) fields: usize,
    /// Differences that are known faults of the dissector: the rows of the table, each as often as it was
    /// used.
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
        // What has no port is no packet of a feed: routers and switches among themselves.
        if !packet.dissected && lines.is_empty() && packet.destination.ends_with(':') {
            return;
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
        for field in ours
            .iter()
            .filter(|field| !UNREAD.iter().any(|end| field.name.ends_with(end)))
        {
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

    /// How many leaves, from the first one on, are this field of ours; and whether only their bytes can be
    /// compared.
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
                && (known.field.has("*") || known.field.has(field))
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
        (Value::Number(text), [mantissa, exponent]) if exponent.raw.len() == 1 => {
            equal_decimal(text, mantissa, exponent, big_endian)
        }
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
        (Value::Null, [leaf, ..]) => leaf.showname.contains("No Value"),
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

/// Digits, and the power of ten they are multiplied by.
fn equal_decimal(ours: &str, mantissa: &Leaf, exponent: &Leaf, big_endian: bool) -> bool {
    let decimals = ours.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let exponent = i32::from(exponent.raw[0] as i8);
    let zeros = "0".repeat(exponent.clamp(0, 38) as usize);
    let Some(digits) = ours.strip_suffix(&zeros) else {
        return false;
    };
    decimals as i32 == -exponent.min(0) && equal_number(digits, mantissa, big_endian, Numbers::Raw)
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

#[cfg(test)]
mod tests {
    use super::super::{ours, pdml, table::Table};
    use super::*;

    /// One packet of one order as tshark tells it.
    const PDML: &str = r#"<?xml version="1.0"?>
<pdml>
<packet>
  <proto name="geninfo" pos="0" size="70">
    <field name="timestamp" pos="0" show="text" value="1700000000.000000007" size="70"/>
  </proto>
  <proto name="ip"><field name="ip.dst" size="4" pos="30" show="239.1.1.1" value="ef010101"/></proto>
  <proto name="udp"><field name="udp.dstport" size="2" pos="36" show="30001" value="7531"/></proto>
  <proto name="omi.cboe.pitch" size="34" pos="42">
    <field name="p.packetheader" size="8" pos="42" show="" value="2200010709000000">
      <field name="p.length" size="2" pos="42" show="34" value="2200"/>
      <field name="p.count" size="1" pos="44" show="1" value="01"/>
      <field name="p.unit" size="1" pos="45" show="7" value="07"/>
      <field name="p.sequence" size="4" pos="46" show="9" value="09000000"/>
    </field>
    <field name="p.message" size="27" pos="50" show="" value="00">
      <field name="p.messageindex" size="0" pos="50" show="1"/>
      <field name="p.messageheader" size="2" pos="50" show="" value="1b27">
        <field name="p.messagelength" size="1" pos="50" show="27" value="1b"/>
        <field name="p.messagetype" size="1" pos="51" show="39" value="27"/>
      </field>
      <field name="p.eqmodifyorderlongmessage" size="25" pos="52" show="" value="00">
        <field name="p.timeoffset" size="4" pos="52" show="1" value="01000000"/>
        <field name="p.orderid" size="8" pos="56" show="2" value="0200000000000000"/>
        <field name="p.quantitybinary4" size="4" pos="64" show="300" value="2c010000"/>
        <field name="p.pricebinarylongprice8" size="8" pos="68" show="87.39" value="ac550d0000000000"/>
        <field name="p.modifyflags" size="1" pos="76" show="Display" value="01">
          <field name="p.display" size="1" pos="76" show="1" value="1" unmaskedvalue="01"/>
        </field>
      </field>
    </field>
  </proto>
</packet>
</pdml>"#;

    const LINES: &str = r#"
{"File":"x","Packet":1,"CaptureTime":1700000000000000007,"Destination":"239.1.1.1:30001","Protocol":"pitch","Header":"SequencedUnitHeader","HdrLength":34,"HdrCount":1,"HdrUnit":7,"HdrSequence":9}
{"File":"x","Packet":1,"CaptureTime":1700000000000000007,"Destination":"239.1.1.1:30001","Protocol":"pitch","Unit":7,"SequenceNumber":9,"Message":"ModifyLong","Length":27,"Type":39,"TimeOffset":1,"OrderId":2,"Qty":300,"Price":87.3900,"ModifyFlags":1}"#;

    fn compared(pdml: &str, lines: &str) -> Vec<String> {
        let table = Table::read();
        let protocol = &table.protocol["pitch"];
        let packets = pdml::parse(pdml, protocol);
        let lines: Vec<Line> = lines
            .trim()
            .lines()
            .map(|line| ours::parse(line).unwrap())
            .collect();
        let comparison = Comparison::new("x", "pitch", protocol, Numbers::Right, &table.exception);
        comparison.run(&packets, &lines).differences
    }

    #[test]
    fn the_same_message_told_twice_has_no_difference() {
        assert_eq!(compared(PDML, LINES), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_told_with_both_values() {
        let changes = [
            (
                r#""Qty":300"#,
                r#""Qty":301"#,
                "Qty: tickwire 301, tshark 300 (2C010000)",
            ),
            (
                r#""Price":87.3900"#,
                r#""Price":873.900"#,
                "Price: tickwire 873.900, tshark 87.39",
            ),
            (
                r#""OrderId":2"#,
                r#""TradeId":2"#,
                "TradeId: tickwire 2, tshark nothing of that name",
            ),
            (
                r#","OrderId":2"#,
                "",
                "orderid: tickwire nothing of that name, tshark 2",
            ),
            (
                r#""ModifyLong""#,
                r#""DeleteOrder""#,
                "Message: tickwire DeleteOrder, tshark eqmodifyorder",
            ),
            (
                r#""SequenceNumber":9"#,
                r#""SequenceNumber":8"#,
                "SequenceNumber: tickwire 8, tshark 9",
            ),
            (
                r#""HdrUnit":7"#,
                r#""HdrUnit":6"#,
                "HdrUnit: tickwire 6, tshark 7",
            ),
            (
                r#"0007,"Dest"#,
                r#"0008,"Dest"#,
                "CaptureTime: tickwire 1700000000000000008",
            ),
            (":30001", ":30002", "Destination: tickwire 239.1.1.1:30002"),
            (r#""Price":87.3900"#, r#""Price":null"#, "Price: tickwire null"),
        ];
        for (from, to, told) in changes {
            let differences = compared(PDML, &LINES.replace(from, to)).join("\n");
            assert!(differences.contains(told), "{to}: {differences}");
        }
    }

    #[test]
    fn missing_and_broken_packets_are_differences() {
        let only_header = LINES.trim().lines().next().unwrap();
        assert!(compared(PDML, only_header)[0].contains("messages: tickwire 0, tshark 1"));
        let undissected = PDML.replace("omi.cboe.pitch", "data");
        let without_port = undissected.replace("name=\"udp.dstport\"", "name=\"pim.type\"");
        assert_ne!(without_port, undissected);
        assert_eq!(compared(&without_port, ""), Vec::<String>::new());
        assert!(compared(&undissected, LINES)[0].contains("not dissected"));
        let failed = PDML.replace(r#"show="Display""#, r#"show="Lua Error: nil""#);
        assert!(compared(&failed, LINES)[0].contains("Lua Error: nil"));
        let unread = LINES.replace(r#""Message":"ModifyLong""#, r#""Error":"cut""#);
        assert!(compared(PDML, &unread)[0].contains("packet: tickwire cut"));
    }

    #[test]
    fn a_number_must_have_its_sign_and_its_scale() {
        let leaf = |show: &str, raw: &[u8]| Leaf {
            name: String::new(),
            show: show.to_owned(),
            showname: String::new(),
            raw: raw.to_vec(),
        };
        let agree = |ours: &str, leaf: &Leaf, numbers| equal_number(ours, leaf, true, numbers);
        let signed = leaf("-2", &[0xFF, 0xFE]);
        assert!(agree("-2", &signed, Numbers::Right) && !agree("65534", &signed, Numbers::Right));
        assert!(agree("65534", &signed, Numbers::Signed));
        let scaled = leaf("1.5", &[0, 15]);
        assert!(agree("1.5", &scaled, Numbers::Right) && !agree("15", &scaled, Numbers::Right));
        assert!(agree("15", &scaled, Numbers::Raw) && !agree("16", &scaled, Numbers::Raw));
        // Beyond the 53 bits of floating point the bytes decide.
        let long = leaf("9.00719925474099e+15", &[0x20, 0, 0, 0, 0, 0, 1]);
        assert!(agree("9007199254740993", &long, Numbers::Right));
        assert!(!agree("9007199254740992", &long, Numbers::Right));
    }
}
