//! Packets of CQS, UQDF, OpenBook and MOEX from a seed, and those that nobody wants.

use super::{SESSION, instrument, symbol};
use tickwire_kernel::filter::Framing;
use tickwire_market::SeqNo;
use tickwire_testdata::Rng;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::zerocopy::IntoBytes;
use tickwire_wire::{cqs, moldudp64, openbook, uqdf};

const TIME: cqs::UnixTime = cqs::UnixTime::from_nanos(1_775_535_399_000_000_001);

/// A symbol of the long forms; some are so long that they have no key, and are always delivered.
fn long(which: u32, is_far: bool) -> Alpha<11> {
    let mut text = [b' '; 11];
    text[..8].copy_from_slice(&symbol(which));
    if is_far {
        text[10] = b'W';
    }
    Alpha(text)
}

fn short(which: u32) -> Alpha<5> {
    let [a, b, c, d, e, ..] = symbol(which);
    Alpha([a, b, c, d, e])
}

/// One packet with `messages` messages, as far as they fit: its length, whether somebody wants it, and how
/// many numbers it uses.
pub(super) fn packet(
    framing: Framing,
    buffer: &mut [u8],
    (seq, messages): (u64, u64),
    rng: &mut Rng,
    rare: u64,
) -> (usize, bool, u64) {
    let (mut wanted, mut count) = (false, messages);
    let length = match framing {
        Framing::Cqs => {
            let mut p = block(buffer, seq);
            count = 0;
            for _ in 0..messages {
                let (which, is) = instrument(rng, rare);
                let is_far = rng.below(rare * 20) == 0;
                let (pushed, is) = match rng.below(60) {
                    0 => (
                        p.push(&[cqs::SymbolReferenceData::at(b'S', TIME).as_bytes()]),
                        true,
                    ),
                    1 => (p.push(&[cqs::MwcbStatus::at(b'S', TIME).as_bytes()]), true),
                    2..12 => {
                        let quote = cqs::ShortQuote {
                            symbol: short(which),
                            ..cqs::ShortQuote::at(b'N', TIME)
                        };
                        // What follows a quote is part of its message.
                        (p.push(&[quote.as_bytes(), &[7; 5][..rng.below(6) as usize]]), is)
                    }
                    12..16 => {
                        let status = cqs::AuctionStatus {
                            symbol: long(which, is_far),
                            ..cqs::AuctionStatus::at(b'N', TIME)
                        };
                        (p.push(&[status.as_bytes()]), is || is_far)
                    }
                    _ => {
                        let quote = cqs::LongQuote {
                            symbol: long(which, is_far),
                            ..cqs::LongQuote::at(b'N', TIME)
                        };
                        (p.push(&[quote.as_bytes()]), is || is_far)
                    }
                };
                if !pushed {
                    break;
                }
                count += 1;
                wanted |= is;
            }
            p.finish()
        }
        Framing::Uqdf => {
            let mut p = moldudp64::PacketBuilder::new(buffer, SESSION, SeqNo(seq));
            for _ in 0..messages {
                let (which, is) = instrument(rng, rare);
                let is_far = rng.below(rare * 20) == 0;
                let (pushed, is) = match rng.below(60) {
                    0 => (
                        p.push(
                            uqdf::TradingAction {
                                symbol: long(which, false),
                                ..uqdf::TradingAction::at(b'E', 1)
                            }
                            .as_bytes(),
                        ),
                        true,
                    ),
                    1 => (p.push(uqdf::MwcbStatus::at(b'E', 1).as_bytes()), true),
                    2..30 => (
                        p.push(
                            uqdf::CombinedShort {
                                symbol: short(which),
                                ..uqdf::CombinedShort::at(b'Q', 1)
                            }
                            .as_bytes(),
                        ),
                        is,
                    ),
                    30..40 => (
                        p.push(
                            uqdf::OddLotQuoteLong {
                                symbol: long(which, is_far),
                                ..uqdf::OddLotQuoteLong::at(b'Q', 1)
                            }
                            .as_bytes(),
                        ),
                        is || is_far,
                    ),
                    _ => (
                        p.push(
                            uqdf::QuoteLong {
                                symbol: long(which, is_far),
                                ..uqdf::QuoteLong::at(b'Q', 1)
                            }
                            .as_bytes(),
                        ),
                        is || is_far,
                    ),
                };
                assert!(pushed);
                wanted |= is;
            }
            p.finish()
        }
        Framing::OpenBook => {
            count = 1;
            let is_full = rng.below(6) == 0;
            let kind = if is_full {
                openbook::FullHead::KIND
            } else {
                openbook::DeltaHead::KIND
            };
            let mapping = rng.below(rare * 8) == 0;
            let kind = if mapping {
                openbook::SymbolIndexMapping::KIND
            } else {
                kind
            };
            let mut p = openbook::PacketBuilder::new(buffer, open_head(kind, seq));
            for _ in 0..messages {
                let (which, is) = instrument(rng, rare);
                let closes = rng.below(rare * 8) == 0;
                let trading_status = Char(if closes { b'X' } else { b'O' });
                let mut bytes = [0; 256];
                let length = match (mapping, is_full) {
                    (true, _) => openbook::SymbolIndexMapping::SIZE,
                    (false, true) => {
                        let head = openbook::FullHead {
                            symbol_index: which.into(),
                            trading_status,
                            ..openbook::FullHead::BLANK
                        };
                        let points = [openbook::FullPoint::BLANK; 3];
                        openbook::encode_full(&mut bytes, &head, &points[..rng.below(4) as usize])
                            .expect("room")
                    }
                    (false, false) => {
                        let head = openbook::DeltaHead {
                            symbol_index: which.into(),
                            trading_status,
                            ..openbook::DeltaHead::BLANK
                        };
                        let points = [openbook::DeltaPoint::BLANK; 3];
                        openbook::encode_delta(&mut bytes, &head, &points[..rng.below(4) as usize])
                            .expect("room")
                    }
                };
                assert!(p.push(&bytes[..length]));
                wanted |= is || closes || mapping;
            }
            p.finish()
        }
        Framing::Moex => {
            count = 1;
            let (template, is) = instrument(rng, rare);
            // Of a presence map of two bytes, a template's number of two, and one that is that of the message
            // before, which only the decoder knows.
            let same = rng.below(rare * 8) == 0;
            let map: &[u8] = match (same, rng.below(3)) {
                (true, _) => &[0x80],
                (false, 0) => &[0x40, 0x80],
                (false, _) => &[0xC0],
            };
            let longer = rng.below(2) as usize;
            let number = [0, 0x80 | template as u8];
            let mut length = 0;
            for part in [
                &(seq as u32).to_le_bytes()[..],
                map,
                &number[1 - longer..],
                &[0x81; 9],
            ] {
                buffer[length..length + part.len()].copy_from_slice(part);
                length += part.len();
            }
            wanted = is || same;
            length
        }
        other => panic!("{other:?} has its stream elsewhere"),
    };
    (length, wanted, count)
}

fn block(buffer: &mut [u8], seq: u64) -> cqs::BlockBuilder<'_> {
    cqs::BlockBuilder::new(buffer, cqs::BlockHeader::at(cqs::Feed::Quotes, seq as u32, TIME))
}

fn open_head(kind: u16, seq: u64) -> openbook::PacketHeader {
    openbook::PacketHeader {
        msg_type: kind.into(),
        seq_num: (seq as u32).into(),
        product_id: 12,
        retrans_flag: openbook::RetransFlag::Original as u8,
        ..openbook::PacketHeader::BLANK
    }
}

/// A packet of quotes, or of updates, of one instrument, as many as fit.
pub(crate) fn repeated(framing: Framing, buffer: &mut [u8], which: u32, messages: usize) -> usize {
    match framing {
        Framing::Cqs => {
            let mut p = block(buffer, 1);
            let quote = cqs::ShortQuote {
                symbol: short(which),
                ..cqs::ShortQuote::at(b'N', TIME)
            };
            (0..messages).for_each(|_| _ = p.push(&[quote.as_bytes()]));
            p.finish()
        }
        Framing::Uqdf => {
            let mut p = moldudp64::PacketBuilder::new(buffer, SESSION, SeqNo(1));
            let quote = uqdf::CombinedShort {
                symbol: short(which),
                ..uqdf::CombinedShort::at(b'Q', 1)
            };
            (0..messages).for_each(|_| _ = p.push(quote.as_bytes()));
            p.finish()
        }
        Framing::Moex => {
            let message = [1, 0, 0, 0, 0xC0, 0x80 | which as u8, 0x80, 0x80];
            buffer[..8].copy_from_slice(&message);
            8
        }
        _ => {
            let mut p = openbook::PacketBuilder::new(buffer, open_head(openbook::DeltaHead::KIND, 1));
            let head = openbook::DeltaHead {
                symbol_index: which.into(),
                ..openbook::DeltaHead::BLANK
            };
            let mut bytes = [0; 64];
            let length = openbook::encode_delta(&mut bytes, &head, &[]).expect("room");
            (0..messages).for_each(|_| assert!(p.push(&bytes[..length])));
            p.finish()
        }
    }
}

/// A packet that says that numbers begin anew.
pub(crate) fn reset(framing: Framing, buffer: &mut [u8], seq: u64) -> usize {
    match framing {
        Framing::Cqs => {
            let mut p = block(buffer, seq);
            let control = cqs::Control::new(cqs::ControlType::ResetSequence, TIME);
            assert!(p.push(&[control.as_bytes()]));
            p.finish()
        }
        Framing::OpenBook => {
            let head = open_head(openbook::SequenceNumberReset::KIND, seq);
            let mut p = openbook::PacketBuilder::new(buffer, head);
            assert!(p.push(openbook::SequenceNumberReset::BLANK.as_bytes()));
            p.finish()
        }
        _ => {
            let flag = tickwire_wire::xdp::DeliveryFlag::SequenceReset;
            let time = tickwire_market::Nanos(1);
            let mut p = tickwire_wire::xdp::PacketBuilder::new(buffer, flag, seq as u32, time);
            assert!(p.push(tickwire_wire::xdp::SequenceNumberReset::NEW.as_bytes()));
            p.finish()
        }
    }
}
