//! Recorded order-log packets as a [`Log`]: numbered anew, so that a trader that starts with them has missed
//! nothing, and played over and over.
//!
//! Everything but the two numbers is what was recorded: entries, values, templates. A packet's own number
//! counts from 1, an instrument's (RptSeq) too. The recording begins in mid-session: before each time,
//! entries of type `J` say that its instruments have no orders, and then those are entered that it changes or
//! deletes without having entered them, so that every entry fits its book.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tickwire_feed::MoexConfig;
use tickwire_market::{Nanos, OrderId, Price, Qty, Side, Symbol, Volume};
use tickwire_runtime::capture::{CaptureError, CaptureReader, Carried, Frames};
use tickwire_wire::fast::Limits;
use tickwire_wire::moex::{Action, Decoder, Encoder, Message, MessageKind, OrderEntry, OrderKind};

use super::log::{Log, NaiveBook};
use tickwire_console::failure::Failure;
use tickwire_venues::protocol;

/// What is played.
#[derive(Clone, Debug)]
pub(crate) struct RecordedConfig<'a> {
    /// A capture (pcap, pcapng), or datagrams in hexadecimal digits, one a line.
    pub(crate) capture: &'a Path,
    /// FAST template file of the day.
    pub(crate) templates: &'a Path,
    /// The instrument traded, as the feed handler calls it.
    pub(crate) symbol: Symbol,
    /// Packets in all: the recording is played as often as it takes, each time whole.
    pub(crate) packets: u64,
}

/// What became of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Taken {
    /// Its datagrams.
    pub(crate) recorded: usize,
    /// Those of its order log, which are played.
    pub(crate) played: usize,
    /// How often.
    pub(crate) times: usize,
}

/// An entry that owns its texts.
struct Entry {
    action: Action,
    kind: OrderKind,
    order_id: OrderId,
    /// As the feed handler calls the instrument.
    name: Option<Symbol>,
    symbol: Vec<u8>,
    board: Vec<u8>,
    price: Option<Price>,
    qty: Option<Volume>,
    date: Option<u32>,
    time: Option<Nanos>,
    order_status: Vec<u8>,
    session: Vec<u8>,
}

impl Entry {
    fn of(entry: &OrderEntry<'_>, names: &MoexConfig) -> Entry {
        Entry {
            name: names.symbol_of(entry.symbol, entry.board),
            action: entry.action,
            kind: entry.kind,
            order_id: entry.order_id,
            symbol: entry.symbol.into(),
            board: entry.board.into(),
            price: entry.price,
            qty: entry.qty,
            date: entry.date,
            time: entry.time,
            order_status: entry.order_status.into(),
            session: entry.session.into(),
        }
    }

    /// The same instrument has no orders.
    fn emptied(&self) -> Entry {
        Entry {
            action: Action::New,
            kind: OrderKind::EmptyBook,
            order_id: OrderId(0),
            name: self.name,
            symbol: self.symbol.clone(),
            board: self.board.clone(),
            price: None,
            qty: None,
            date: None,
            time: None,
            order_status: Vec::new(),
            session: Vec::new(),
        }
    }

    /// The order of an entry that changes or deletes it, as it may have been entered: at the entry's price.
    /// The exchange says no price with a deletion; such an order stands where it trades with nobody and is
    /// nobody's best offer.
    fn entered(&self) -> Entry {
        let aside = match self.kind {
            OrderKind::Order(Side::Ask) => Price::from_raw(1_000_000 * Price::ONE_RAW),
            _ => Price::from_raw(Price::ONE_RAW / 10_000),
        };
        Entry {
            action: Action::New,
            price: Some(self.price.unwrap_or(aside)),
            qty: Some(self.qty.filter(|qty| !qty.is_zero()).unwrap_or(Volume(1))),
            kind: self.kind,
            order_id: self.order_id,
            ..self.emptied()
        }
    }

    fn is_of(&self, symbol: &Symbol) -> bool {
        self.name.as_ref() == Some(symbol)
    }

    fn borrowed(&self, rpt_seq: u32) -> OrderEntry<'_> {
        OrderEntry {
            action: self.action,
            kind: self.kind,
            order_id: self.order_id,
            symbol: &self.symbol,
            board: &self.board,
            rpt_seq,
            price: self.price,
            qty: self.qty,
            date: self.date,
            time: self.time,
            order_status: &self.order_status,
            session: &self.session,
        }
    }
}

/// Symbol and board.
type Name<'a> = (&'a [u8], &'a [u8]);

/// A packet of the order log.
struct Recorded {
    sent: Nanos,
    entries: Vec<Entry>,
}

impl Log {
    /// A recording, numbered anew.
    pub(crate) fn recorded(config: &RecordedConfig<'_>) -> Result<(Log, Taken), Failure> {
        let named = |e: String| Failure::config(format!("{}: {e}", config.capture.display()));
        let plan = protocol::templates(config.templates).map_err(Failure::config)?;
        let datagrams = read(config.capture)?;
        let mut decoder =
            Decoder::new(plan.clone(), Limits::default()).map_err(|e| Failure::config(e.to_string()))?;
        let names = MoexConfig::new(plan.clone());
        let mut by_template: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
        for datagram in &datagrams {
            // Other messages of the market, and those of other templates, are passed over.
            let Ok(message) = decoder.packet(datagram) else {
                continue;
            };
            if message.kind() == MessageKind::OrderLog
                && let Some(packet) = taken(&message, &names)
            {
                let name = message.raw().name().to_owned();
                by_template.entry(name).or_default().push(packet);
            }
        }
        let most = by_template.into_iter().max_by_key(|(_, packets)| packets.len());
        let (name, packets) = most.ok_or_else(|| named(NO_LOG.into()))?;
        let mut instruments: BTreeMap<Name<'_>, (&Entry, u32)> = BTreeMap::new();
        for entry in packets.iter().flat_map(|packet| &packet.entries) {
            instruments
                .entry((&entry.symbol, &entry.board))
                .or_insert((entry, 0));
        }
        if !instruments.values().any(|(entry, _)| entry.is_of(&config.symbol)) {
            let known = instruments
                .values()
                .filter_map(|(entry, _)| Some(entry.name?.to_string()));
            return Err(named(format!(
                "settings.symbol {} is not in it; there are {}",
                config.symbol,
                known.collect::<Vec<_>>().join(", ")
            )));
        }
        let mut encoder =
            Encoder::new(plan, Limits::default()).map_err(|e| Failure::config(e.to_string()))?;
        let template = encoder.template(&name).ok_or_else(|| named(NO_LOG.into()))?;
        let emptied = instruments.values().map(|(entry, _)| entry.emptied());
        let mut before: Vec<Entry> = emptied.chain(standing(&packets)).collect();
        let mut interludes = Vec::new();
        while !before.is_empty() {
            let rest = before.split_off(before.len().min(ENTRIES_MAX));
            interludes.push(Recorded {
                sent: packets[0].sent,
                entries: std::mem::replace(&mut before, rest),
            });
        }
        let times = (config.packets as usize).div_ceil(packets.len()).max(1);
        let mut log = Log::of(config.symbol);
        let mut book = NaiveBook::default();
        let (mut out, mut numbered) = (vec![0; DATAGRAM_MAX], Vec::new());
        for _ in 0..times {
            for (packet, is_interlude) in (interludes.iter().map(|packet| (packet, true)))
                .chain(packets.iter().map(|packet| (packet, false)))
            {
                numbered.clear();
                for entry in &packet.entries {
                    let known = instruments.get_mut(&(&entry.symbol[..], &entry.board[..]));
                    let rpt_seq = known.map_or(0, |(_, last)| {
                        *last += 1;
                        *last
                    });
                    numbered.push(entry.borrowed(rpt_seq));
                }
                let number = log.len() as u32 + 1;
                let length = encoder
                    .order_log(template, number, packet.sent, &numbered, &mut out)
                    .map_err(|e| named(e.to_string()))?;
                let offers = packet
                    .entries
                    .iter()
                    .filter(|e| e.is_of(&config.symbol))
                    .map(|entry| {
                        apply(&mut book, entry);
                        book.best_offer()
                    });
                log.add(packet.entries.len(), offers, &out[..length]);
                if is_interlude {
                    log.note_interlude();
                }
            }
        }
        let taken = Taken {
            recorded: datagrams.len(),
            played: packets.len(),
            times,
        };
        Ok((log, taken))
    }
}

const NO_LOG: &str = "no order-log packet that the templates can read; are these the templates of its day (settings.templates)?";

/// The longest datagram written.
const DATAGRAM_MAX: usize = 8_972;

/// Entries of a packet before the recording: what the longest packet has room for.
const ENTRIES_MAX: usize = 100;

/// The orders that are changed or deleted without having been entered, in the order in which they are named.
fn standing(packets: &[Recorded]) -> impl Iterator<Item = Entry> {
    let mut known = BTreeSet::new();
    packets
        .iter()
        .flat_map(|packet| &packet.entries)
        .filter_map(move |entry| {
            let is_new = known.insert((&entry.symbol, &entry.board, entry.order_id));
            let is_order = matches!(entry.kind, OrderKind::Order(_));
            (is_new && is_order && entry.action != Action::New).then(|| entry.entered())
        })
}

/// `None` when an entry cannot be read.
fn taken(message: &Message<'_>, names: &MoexConfig) -> Option<Recorded> {
    let entries = message
        .orders()
        .map(|entry| entry.map(|e| Entry::of(&e, names)).ok());
    Some(Recorded {
        sent: message.sending_time()?,
        entries: entries.collect::<Option<_>>()?,
    })
}

/// What the naive book makes of an entry. An order that it does not know was entered before the recording
/// began.
fn apply(book: &mut NaiveBook, entry: &Entry) {
    let OrderKind::Order(side) = entry.kind else {
        return book.clear();
    };
    if side != Side::Ask {
        return;
    }
    let rest = match entry.action {
        Action::Delete => Some(Qty::ZERO),
        Action::Change if !book.has(entry.order_id) => None,
        _ => entry.qty.map(|qty| Qty(qty.0.min(u64::from(u32::MAX)) as u32)),
    };
    match (rest, entry.price) {
        (Some(Qty::ZERO), _) => book.remove(entry.order_id),
        (Some(_), Some(price)) => book.put(entry.order_id, price),
        _ => {}
    }
}

/// The datagrams of a file.
fn read(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let mut reader = match CaptureReader::open(path) {
        Ok(reader) => reader,
        Err(e @ CaptureError::Open { .. }) => return Err(Failure::system(e.to_string())),
        // None of ours: text, perhaps.
        Err(_) => return digits(path),
    };
    let mut datagrams = Vec::new();
    let mut frames = Frames::default();
    while let Some(frame) = reader
        .next_frame(&mut frames)
        .map_err(|e| Failure::system(e.to_string()))?
    {
        if let Ok(Carried::Udp(udp)) = frame.carried {
            datagrams.push(udp.payload.to_vec());
        }
    }
    Ok(datagrams)
}

fn digits(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let datagrams = lines.map(|(number, line)| {
        let digits = line.trim().as_bytes();
        let bytes = digits.chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        bytes.collect::<Option<Vec<u8>>>().ok_or_else(|| {
            Failure::config(format!(
                "{}:{number}: neither a capture nor datagrams in hexadecimal digits, one a line",
                path.display()
            ))
        })
    });
    datagrams.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cep::memory;
    use tickwire_runtime::clock::Clock;
    use tickwire_testdata::{captures, specs};

    fn config<'a>(capture: &'a Path, templates: &'a Path, symbol: &str, packets: u64) -> RecordedConfig<'a> {
        RecordedConfig {
            capture,
            templates,
            symbol: Symbol::new(symbol.as_bytes()).unwrap(),
            packets,
        }
    }

    #[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
    #[test]
    fn recorded_packets_are_as_recorded_but_for_their_numbers_and_lead_to_the_naive_rules_orders() {
        let (capture, templates) = (
            captures("moex-asts/packets-2017.hex"),
            specs("moex/templates-2017-03.xml"),
        );
        let clock = Clock::calibrate();
        let usd = "USD000UTSTOM@CETS";
        let (log, taken) = Log::recorded(&config(&capture, &templates, usd, 1_000)).unwrap();
        let played = Taken {
            recorded: 330,
            played: 313,
            times: 4,
        };
        let interludes: Vec<usize> = (0..log.len()).filter(|&at| log.is_interlude(at)).collect();
        let before = interludes.len() / 4;
        assert_eq!((taken, log.len()), (played, 4 * (313 + before)));
        let plan = protocol::templates(&templates).unwrap();
        let mut decoders = [(); 2].map(|()| Decoder::new(plan.clone(), Limits::default()).unwrap());
        let mut at = before;
        for datagram in read(&capture).unwrap() {
            let [recorded, numbered] = &mut decoders;
            let Ok(before) = recorded.packet(&datagram) else {
                continue;
            };
            if before.raw().name() != "X-OLR-CURR" {
                continue;
            }
            let after = numbered.packet(log.payload(at)).unwrap();
            assert_eq!(after.seq() as usize, at + 1);
            assert_eq!(after.sending_stamp(), before.sending_stamp());
            let entries = after.orders().zip(before.orders());
            for (after, before) in entries {
                let (after, before) = (after.unwrap(), before.unwrap());
                let renumbered = OrderEntry {
                    rpt_seq: after.rpt_seq,
                    ..before
                };
                assert_eq!(after, renumbered, "packet {at}");
            }
            assert_eq!(after.orders().count(), before.orders().count());
            at += 1;
        }
        assert_eq!(at, before + 313);
        let each = (0..4).flat_map(|time| (0..before).map(move |at| time * (313 + before) + at));
        assert!(
            before > 0 && interludes.iter().copied().eq(each),
            "{interludes:?}"
        );
        let pass = memory::pass(&log, &templates, 10, &clock).unwrap();
        assert_eq!(pass.problems.count, 0, "{:?}", pass.problems.first);
        assert!(pass.orders > 6, "{} orders", pass.orders);
        // From the first order on, every packet is timed.
        assert!(pass.timed.len() + pass.silent.len() > log.len() / 2);

        let failed = |config: &RecordedConfig<'_>| Log::recorded(config).err().unwrap().message;
        let other = failed(&config(&capture, &templates, "SBER", 1));
        assert!(
            other.contains("SBER is not in it") && other.contains(usd),
            "{other}"
        );
        let later = specs("moex/templates-2020-11.xml");
        let later = failed(&config(&capture, &later, usd, 1));
        assert!(later.contains("settings.templates"), "{later}");
        let none = failed(&config(&templates, &templates, usd, 1));
        assert!(none.contains(".xml:1: neither a capture nor"), "{none}");
    }
}
