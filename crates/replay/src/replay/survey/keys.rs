//! The instruments of packets, and what messages of feeds with loops are for.

use std::collections::HashMap;

use tickwire_market::Port;
use tickwire_venues::json::JsonLine;
use tickwire_venues::protocol::{Header, Kind, Message, Place, Sink};
use tickwire_wire::mdp3;

use crate::replay::lines::hash;

/// Members of messages that say which instrument, and what for.
const NAMED: [&str; 4] = ["SecurityID", "Symbol", "SymbolIndex", "MessageType"];

/// The instruments of a packet and what it is for, taken from the fields that `decode` would print.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) keys: Vec<u64>,
    pub(super) port: Option<Port>,
    line: Vec<u8>,
    /// Its instruments are wanted, not only what it is for.
    pub(super) is_looked_into: bool,
    /// What messages of a feed with loops are for, by template.
    by_template: HashMap<u32, Option<Port>>,
}

impl Keys {
    /// What a message of a feed with loops is for, by its name (MDP 3.0) or its FIX type (MOEX).
    fn port_of(&self, name: &str) -> Option<Port> {
        match name {
            _ if name.starts_with("SnapshotFullRefreshOrderBook") => Some(Port::SnapshotByOrder),
            _ if name.starts_with("SnapshotFullRefresh") => Some(Port::Snapshot),
            _ if name.starts_with("MDInstrumentDefinition") => Some(Port::Definitions),
            _ if name.starts_with("MDIncrementalRefresh") || name.starts_with("SecurityStatus") => {
                Some(Port::Live)
            }
            _ => match value(&self.line, b"\"MessageType\":") {
                Some(b"\"W\"") => Some(Port::Snapshot),
                Some(b"\"X\"") => Some(Port::Live),
                Some(b"\"d\"" | b"\"f\"") => Some(Port::Definitions),
                _ => None,
            },
        }
    }

    /// A live message outweighs others, the orders of a snapshot its header.
    fn note(&mut self, port: Option<Port>) {
        self.port = match (self.port, port) {
            (Some(Port::Live), _) | (Some(Port::SnapshotByOrder), Some(Port::Snapshot)) => self.port,
            (before, now) => now.or(before),
        };
    }

    pub(super) fn note_templates(&mut self, packet: &[u8]) {
        if mdp3::parse_packet(packet).is_err() {
            return;
        }
        for message in mdp3::Messages::of_checked(packet) {
            let template = mdp3::template(message).unwrap_or_default().into();
            let port = *self.by_template.entry(template).or_insert_with(|| {
                let name = mdp3::Body::TEMPLATES
                    .iter()
                    .find(|t| u32::from(t.id) == template)
                    .map(|t| t.name);
                Keys::default().port_of(name.unwrap_or_default())
            });
            self.note(port);
        }
    }
}

/// The value of the first member of a name, as it is written.
fn value<'l>(line: &'l [u8], member: &[u8]) -> Option<&'l [u8]> {
    let at = line.windows(member.len()).position(|w| w == member)?;
    Some(up_to_its_end(&line[at + member.len()..]))
}

fn up_to_its_end(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|b| matches!(b, b',' | b'}' | b']'));
    &rest[..end.unwrap_or(rest.len())]
}

impl Sink for Keys {
    type Stop = std::convert::Infallible;

    fn header(&mut self, _: Header<'_>) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn idle(&mut self, _: Place<'_>, _: &str) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn message(&mut self, _: Place<'_>, message: Message<'_>) -> Result<(), Self::Stop> {
        let template = match message.kind {
            Kind::Number(template) => template,
            _ => 0,
        };
        let known = self.by_template.get(&template).copied();
        if let (Some(port), false) = (known, self.is_looked_into) {
            self.note(port);
            return Ok(());
        }
        self.line.clear();
        let mut line = JsonLine::only(&mut self.line, &NAMED);
        (message.fields)(&mut line);
        line.end();
        for (at, _) in self.line.iter().enumerate().filter(|(_, b)| **b == b'"') {
            let rest = &self.line[at..];
            let named = [&b"\"SecurityID\":"[..], b"\"Symbol\":", b"\"SymbolIndex\":"];
            if let Some(value) = named.into_iter().find_map(|name| rest.strip_prefix(name)) {
                self.keys.push(hash(up_to_its_end(value)));
            }
        }
        let port = known.unwrap_or_else(|| self.port_of(message.name));
        self.by_template.insert(template, port);
        self.note(port);
        Ok(())
    }

    fn malformed(&mut self, _: Place<'_>, _: &dyn std::fmt::Display, _: &[u8]) -> Result<(), Self::Stop> {
        Ok(())
    }
}
