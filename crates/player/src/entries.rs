//! How many messages a packet holds, counted as everywhere: with MOEX, where a packet is one message, its
//! entries.

use std::fmt;
use std::path::PathBuf;

use tickwire_wire::fast::Limits;
use tickwire_wire::moex;

use tickwire_console::failure::Failure;
use tickwire_venues::protocol::{self, Header, Message, Place, Protocol, Reader, Sink};

/// Counts entries of one protocol's packets.
pub(crate) enum Entries {
    Reader(Reader),
    Moex(Vec<moex::Decoder>),
}

impl Entries {
    pub(crate) fn new(protocol: Protocol, templates: &[PathBuf]) -> Result<Entries, Failure> {
        if protocol != Protocol::Moex {
            return Reader::new(protocol, &[])
                .map(Entries::Reader)
                .map_err(Failure::config);
        }
        if templates.is_empty() {
            return Err(Failure::config(
                "entries of MOEX packets are counted with the exchange's template file: name it with --templates",
            ));
        }
        let decoder = |path: &PathBuf| {
            let plan = protocol::templates(path)?;
            moex::Decoder::new(plan, Limits::default()).map_err(|e| format!("{}: {e}", path.display()))
        };
        let decoders: Result<_, String> = templates.iter().map(decoder).collect();
        decoders.map(Entries::Moex).map_err(Failure::config)
    }

    /// Of one packet; 0 for heartbeats, `None` for what cannot be read.
    pub(crate) fn count(&mut self, payload: &[u8]) -> Option<u32> {
        match self {
            Entries::Reader(reader) => {
                let mut tally = Tally::default();
                let Ok(()) = reader.packet(payload, &mut tally);
                (!tally.is_damaged).then_some(tally.messages)
            }
            Entries::Moex(decoders) => decoders.iter_mut().find_map(|decoder| {
                let message = decoder.packet(payload).ok()?;
                let entries = match message.kind() {
                    moex::MessageKind::OrderLog | moex::MessageKind::OrderSnapshot => {
                        message.orders().count()
                    }
                    moex::MessageKind::Trades => message.trades().count(),
                    moex::MessageKind::Statistics => message.statistics().count(),
                    moex::MessageKind::Heartbeat => 0,
                    _ => 1,
                };
                u32::try_from(entries).ok()
            }),
        }
    }
}

#[derive(Default)]
struct Tally {
    messages: u32,
    is_damaged: bool,
}

impl Sink for Tally {
    type Stop = std::convert::Infallible;

    fn header(&mut self, _: Header<'_>) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn idle(&mut self, _: Place<'_>, _: &str) -> Result<(), Self::Stop> {
        Ok(())
    }

    fn message(&mut self, _: Place<'_>, _: Message<'_>) -> Result<(), Self::Stop> {
        self.messages += 1;
        Ok(())
    }

    fn malformed(&mut self, _: Place<'_>, _: &dyn fmt::Display, _: &[u8]) -> Result<(), Self::Stop> {
        self.is_damaged = true;
        Ok(())
    }
}
