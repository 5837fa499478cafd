//! How much room a channel gets: no more than what the first reading counted can need.

use super::survey::{Files, Load};
use super::{INSTRUMENTS_MAX, ROOM_MAX, ReplayArgs};
use tickwire_venues::protocol::Protocol;

/// How much a channel gets room for.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) instruments: u32,
    pub(super) orders: u32,
    pub(super) levels: u32,
}

impl Room {
    /// No more than `load` can need: every message adds an order and a level at most, every entry of a
    /// message that has several a level.
    pub(super) fn of(protocol: Protocol, load: Load, args: &ReplayArgs) -> Room {
        let entries = match protocol {
            Protocol::Itch50
            | Protocol::Pitch
            | Protocol::PitchOptions
            | Protocol::PitchComplex
            | Protocol::PitchFutures
            | Protocol::Xdp => load.messages,
            // The least bytes of an entry: 12 of a price point, 8 of a compressed one.
            Protocol::Openbook | Protocol::Cqs | Protocol::Uqdf | Protocol::Mdp3 | Protocol::Moex => {
                load.bytes / 8
            }
        } + 64;
        let clamp = |n: u64, most: u64| n.min(most) as u32;
        let most = |said: Option<u32>| said.map_or(clamp(entries, ROOM_MAX), |said| said);
        // Numbers of these are the venue's own, and not without holes.
        let numbered = matches!(protocol, Protocol::Itch50 | Protocol::Xdp | Protocol::Openbook);
        let instruments = match numbered {
            true => load.highest.map_or(INSTRUMENTS_MAX, |highest| {
                highest
                    .saturating_add(1)
                    .next_multiple_of(256)
                    .min(INSTRUMENTS_MAX)
            }),
            false => clamp(entries, INSTRUMENTS_MAX.into()),
        };
        Room {
            instruments: args.max_instruments.unwrap_or(instruments),
            orders: most(args.max_orders),
            // Each side of a book begins with a block of eight, and leaves blocks behind while it grows.
            levels: args.max_levels.unwrap_or(clamp(entries * 20, ROOM_MAX)),
        }
    }

    /// Of files of records, which are not counted before: what their size and their symbols let them need.
    pub(super) fn of_records(files: Files, is_lobster: bool, args: &ReplayArgs) -> Room {
        let (count, symbols) = match is_lobster {
            true => (files.lines, 1),
            // Files without a list of symbols are of few, or of a whole market.
            false => (
                files.records,
                if files.symbols == 0 { 512 } else { files.symbols },
            ),
        };
        // CME's fullest book has some 9,000 orders, the fullest day of a stock exchange 1.7 million in 8,000
        // books.
        let orders = (symbols * 2_048).clamp(1 << 18, ROOM_MAX);
        let orders = orders.min(count.saturating_add(64)) as u32;
        let levels = orders.max((64 * symbols).min(ROOM_MAX) as u32);
        let instruments = (symbols + 4_096).min(count + 64);
        let most = u64::from(INSTRUMENTS_MAX);
        Room {
            instruments: args.max_instruments.unwrap_or(instruments.min(most) as u32),
            orders: args.max_orders.unwrap_or(orders),
            levels: args.max_levels.unwrap_or(levels),
        }
    }
}
