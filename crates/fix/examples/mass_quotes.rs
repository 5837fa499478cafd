//! Writes mass quotes and quote cancels as a quoter sends them, and beside them what they say, for others to
//! read: `cargo run -p tickwire-fix --example mass_quotes -- FIX.4.4 10000 quotes.fix quotes.txt`.
//! `cargo xtask interop --quotes` gives them to QuickFIX. A line of the text is a message: its number, its
//! QuoteID, and `|entry,symbol,bid,size,offer,size` for each entry.

use std::fmt::Write as _;
use std::io::Error;

use tickwire_fix::{
    Again, CompId, MassQuoteHead, MassQuoteTemplate, QuoteDecimals, QuotePrices, Role, Session,
    SessionConfig, Status, Version, put_cancel_all_quotes,
};
use tickwire_market::{Cause, MassQuoteEntry, Nanos, Price, Qty, SeqNo, Symbol};

/// Instruments that can be quoted.
const INSTRUMENTS: u16 = 500;
/// The most entries of a message.
const ENTRIES_MAX: u8 = 99;

/// Lets both ends of a session log on.
fn log_on(ours: &mut Session, venue: &mut Session, now: Nanos) {
    venue.handle_connected(now);
    ours.handle_connected(now);
    let mut buffer = [0; 4096];
    while ours.status() != Status::Active {
        while let Some(bytes) = ours.poll_transmit(&mut buffer) {
            let taken = venue.handle_bytes(now, bytes);
            assert_eq!(taken, bytes.len(), "events were drained");
            while venue.poll_event().is_some() {}
        }
        while let Some(bytes) = venue.poll_transmit(&mut buffer) {
            let taken = ours.handle_bytes(now, bytes);
            assert_eq!(taken, bytes.len(), "events were drained");
            while ours.poll_event().is_some() {}
        }
    }
}

/// SplitMix64: Steele, Lea and Flood, 2014.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

fn main() -> Result<(), Error> {
    let usage = || Error::other("usage: mass_quotes FIX.4.4|FIX.5.0SP2 MESSAGES FILE TEXT");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [version, messages, file, text] = &args[..] else {
        return Err(usage());
    };
    let version = match version.as_str() {
        "FIX.4.4" => Version::Fix44,
        "FIX.5.0SP2" => Version::Fix50Sp2,
        _ => return Err(usage()),
    };
    let messages: u64 = messages.parse().map_err(|_| usage())?;
    let id = |text: &[u8]| CompId::new(text).unwrap_or(CompId::EMPTY);
    let config = |role, own, peer| SessionConfig {
        ..SessionConfig::new(role, id(own), id(peer)).of_version(version)
    };
    let mut ours = Session::new(config(Role::Initiator, b"QUOTER", b"EXCHANGE"));
    let mut venue = Session::new(config(Role::Acceptor, b"EXCHANGE", b"QUOTER"));
    let mut now = Nanos(1_790_000_000 * Nanos::SECOND);
    log_on(&mut ours, &mut venue, now);

    let names = (0..INSTRUMENTS).map(|n| format!("E{n:05}C"));
    let symbols: Vec<Symbol> = names
        .clone()
        .filter_map(|name| Symbol::new(name.as_bytes()))
        .collect();
    let names: Vec<String> = names.collect();
    // A quarter, as options on the E-mini S&P 500 have it.
    let tick = Price::from_raw(Price::ONE_RAW / 4);
    let prices = QuotePrices {
        tick,
        decimals: QuoteDecimals::Two,
    };
    let template = MassQuoteTemplate::new(&ours, &symbols, prices, ENTRIES_MAX);
    let mut template = template.ok_or_else(|| Error::other("the prices do not fit"))?;
    let (mut out, mut says, mut random) = (Vec::new(), String::new(), Random(1));
    let mut buffer = [0; 1 << 16];
    for quote_id in 1..=messages {
        now = now.after(1 + random.below(Nanos::SECOND));
        // The logon was the first.
        let _ = write!(says, "{} {quote_id}", quote_id + 1);
        if quote_id % 50 == 0 {
            let sent = ours.send(now, b"Z", Again::Resend, |e, _| {
                put_cancel_all_quotes(e, quote_id)
            });
            sent.map_err(|e| Error::other(format!("{e:?}")))?;
            while let Some(bytes) = ours.poll_transmit(&mut buffer) {
                out.extend_from_slice(bytes);
            }
            says.push_str(" cancel\n");
            continue;
        }
        let first = random.below(u64::from(INSTRUMENTS - u16::from(ENTRIES_MAX))) as u16;
        let entries: Vec<MassQuoteEntry> = (first..=first + random.below(u64::from(ENTRIES_MAX)) as u16)
            .map(|quote| {
                let bid = 1 + random.below(40_000) as u16;
                let size = |random: &mut Random| {
                    Qty(random.below(4).min(1) as u32 * (1 + random.below(999_999) as u32))
                };
                MassQuoteEntry {
                    quote,
                    bid_ticks: bid,
                    ask_ticks: bid + 1 + random.below(400) as u16,
                    bid_qty: size(&mut random),
                    ask_qty: size(&mut random),
                }
            })
            .collect();
        let head = MassQuoteHead {
            id: quote_id,
            cause: Cause {
                seq: SeqNo(random.below(1 << 40)),
                recv_ts: now,
                ..Cause::default()
            },
            reset: random.below(20) == 0,
        };
        let bytes = template.send(&mut ours, now, &head, &entries);
        out.extend_from_slice(bytes.map_err(|e| Error::other(format!("{e:?}")))?);
        for entry in &entries {
            let side = |ticks: u16, qty: Qty| match qty.0 {
                0 => "-,0".to_string(),
                qty => format!("{:.2},{qty}", f64::from(ticks) / 4.0),
            };
            let (bid, ask) = (
                side(entry.bid_ticks, entry.bid_qty),
                side(entry.ask_ticks, entry.ask_qty),
            );
            let _ = write!(
                says,
                "|{},{},{bid},{ask}",
                entry.quote,
                names[usize::from(entry.quote)]
            );
        }
        says.push('\n');
    }
    std::fs::write(file, out)?;
    std::fs::write(text, says)
}
