//! What is done to consolidated books beside events, said as events: so that it can travel in a ring among
//! them.

use tickwire_market::{EventKind, InstrumentId, MarketEvent, OrderId, Symbol, Volume};

/// `code` of a [`EventKind::Definition`] that [`SuperBooks::apply`](super::SuperBooks::apply) takes as
/// [`SuperBooks::define`](super::SuperBooks::define).
pub(super) const DEFINE: [u8; 8] = *b"define\0\0";
/// `code` of a [`EventKind::Definition`] that [`SuperBooks::apply`](super::SuperBooks::apply) takes as
/// [`SuperBooks::undefine`](super::SuperBooks::undefine).
pub(super) const UNDEFINE: [u8; 8] = *b"undefine";
/// `code` of a [`EventKind::Gap`] that [`SuperBooks::apply`](super::SuperBooks::apply) takes as the end of
/// the source.
pub(super) const ENDED: [u8; 8] = *b"ended\0\0\0";

/// [`SuperBooks::define`](super::SuperBooks::define) as an event, which can travel in a ring among the
/// others. The symbol is in `order_id`, `ref_id` and `ask_qty`.
pub fn define_event(instrument: InstrumentId, symbol: &Symbol) -> MarketEvent {
    let bytes: [u8; 24] = symbol.padded().unwrap_or([b' '; 24]);
    let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
    MarketEvent {
        kind: EventKind::Definition,
        instrument,
        code: DEFINE,
        order_id: OrderId(word(0)),
        ref_id: word(8),
        ask_qty: Volume(word(16)),
        ..MarketEvent::default()
    }
}

/// [`SuperBooks::undefine`](super::SuperBooks::undefine) as an event.
pub fn undefine_event(instrument: InstrumentId) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Definition,
        instrument,
        code: UNDEFINE,
        ..MarketEvent::default()
    }
}

/// The end of a source as an event: what it carries is [`Presence::Ended`](super::Presence::Ended) until it
/// is `Recovered`.
pub fn end_event() -> MarketEvent {
    MarketEvent {
        kind: EventKind::Gap,
        code: ENDED,
        ..MarketEvent::default()
    }
}

/// The symbol of a [`define_event`].
pub(super) fn symbol_in(event: &MarketEvent) -> Option<Symbol> {
    let mut bytes = [0; 24];
    for (bytes, word) in bytes
        .chunks_exact_mut(8)
        .zip([event.order_id.0, event.ref_id, event.ask_qty.0])
    {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Symbol::new(&bytes).filter(|symbol| !symbol.is_empty())
}
