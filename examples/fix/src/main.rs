//! Sends an order and a mass quote of a venue's own dictionary, and reads them on the other side: two
//! sessions in one process, joined by memory instead of TCP. `cargo run -p tickwire-example-fix`.
//!
//! `venue.xml` is the dictionary, `build.rs` writes the module `venue` from it; `docs/fix-dictionaries.md`
//! tells more.
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/venue.rs"));

use std::sync::Arc;
use tickwire_fix::dict::Dictionary;
use tickwire_fix::typed::{FieldError, Nanos, Price, Qty};
use tickwire_fix::{
    Again, CompId, Event, MemoryStore, Message, Precision, Role, Rules, Session, SessionConfig, Stamp,
};
use venue::values::{CauseVenue, OrdType, QuoteType, Side};
use venue::{AnyMessage, MassQuote, NewOrderSingle};

const NOW: Nanos = Nanos(1_795_341_600_000_000_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dictionary = Arc::new(Dictionary::parse(include_str!("../venue.xml"))?);
    let (mut member, mut market) = (
        session(Role::Initiator, b"MEMBER", b"MARKET", &dictionary)?,
        session(Role::Acceptor, b"MARKET", b"MEMBER", &dictionary)?,
    );
    member.handle_connected(NOW);
    market.handle_connected(NOW);
    pump(&mut member, &mut market)?;

    let mut stamp = Stamp::new(Precision::Nanos);
    send_order(&mut member, &mut stamp)?;
    send_quotes(&mut member, &mut stamp)?;
    pump(&mut member, &mut market)
}

fn send_order(session: &mut Session, stamp: &mut Stamp) -> Result<(), Box<dyn std::error::Error>> {
    let mut written = Ok(());
    let sent = session.send(NOW, NewOrderSingle::MSG_TYPE, Again::Resend, |encoder, _| {
        written = NewOrderSingle::write(encoder, stamp, |order| {
            order.cl_ord_id(b"C-1");
            order.parties().party_ids([b"DESK7"], |party, id| {
                party.party_id(id).party_role(12);
            });
            order.instrument().symbol(b"WIRE");
            order.side(Side::Buy).transact_time(NOW).order_qty(Qty(100));
            order.ord_type(OrdType::Limit).price(Price::from_4dp(873_900));
            order
                .cause()
                .cause_venue(CauseVenue::Nasdaq)
                .cause_seq_num(4711)
                .cause_receive_time(NOW.0 as i64);
        });
    });
    written?; // names the field
    sent.map_err(|e| format!("not sent: {e:?}"))?;
    Ok(())
}

fn send_quotes(session: &mut Session, stamp: &mut Stamp) -> Result<(), Box<dyn std::error::Error>> {
    let quotes = [(b"WIRE", 873_900, 874_100), (b"TICK", 120_000, 120_500)];
    let mut written = Ok(());
    let sent = session.send(NOW, MassQuote::MSG_TYPE, Again::Resend, |encoder, _| {
        written = MassQuote::write(encoder, stamp, |quote| {
            quote.quote_id(b"Q-1").quote_type(QuoteType::Tradeable);
            quote.quote_sets([quotes], |set, quotes| {
                set.quote_set_id(b"1").tot_no_quote_entries(quotes.len() as i64);
                set.quote_entries(quotes, |entry, (symbol, bid, offer)| {
                    entry.quote_entry_id(symbol);
                    entry.instrument().symbol(symbol);
                    entry
                        .bid_px(Price::from_4dp(bid))
                        .offer_px(Price::from_4dp(offer));
                    entry.bid_size(Qty(500)).offer_size(Qty(500));
                });
            });
        });
    });
    written?;
    sent.map_err(|e| format!("not sent: {e:?}"))?;
    Ok(())
}

fn show(message: &Message<'_>) -> Result<(), FieldError> {
    match AnyMessage::read(message) {
        Some(AnyMessage::NewOrderSingle(order)) => {
            println!(
                "order {}: {:?} {} {} at {:?}",
                text(order.cl_ord_id()?),
                order.side()?,
                order.order_qty()?,
                text(order.instrument().symbol()?),
                order.price()?
            );
            for party in order.parties().party_ids()? {
                println!(
                    "  party {} in role {:?}",
                    text(party.party_id()?),
                    party.party_role()?
                );
            }
            // The component is optional: it is there if the first field that it requires is.
            if let Some(cause) = order.cause() {
                println!(
                    "  caused by message {} of {:?}",
                    cause.cause_seq_num()?,
                    cause.cause_venue()?
                );
            }
        }
        Some(AnyMessage::MassQuote(quote)) => {
            println!("mass quote {}", text(quote.quote_id()?));
            for set in quote.quote_sets()? {
                for entry in set.quote_entries()? {
                    let symbol = entry.instrument().map(|i| i.symbol()).transpose()?;
                    println!(
                        "  {} {:?} to {:?}",
                        symbol.map(text).unwrap_or_default(),
                        entry.bid_px()?,
                        entry.offer_px()?
                    );
                }
            }
        }
        _ => println!("something else"),
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn session(
    role: Role,
    sender: &[u8],
    target: &[u8],
    dictionary: &Arc<Dictionary>,
) -> Result<Session, &'static str> {
    let comp = |text| CompId::new(text).ok_or("comp ids are printable and short");
    let config = SessionConfig {
        ..SessionConfig::new(role, comp(sender)?, comp(target)?)
    };
    let store = MemoryStore::new(config.store_messages, config.store_bytes);
    Ok(Session::with_rules(
        config,
        store,
        Some(Rules::of(Arc::clone(dictionary))),
    ))
}

/// Carries bytes both ways until there are none; shows what the market receives.
fn pump(member: &mut Session, market: &mut Session) -> Result<(), Box<dyn std::error::Error>> {
    let mut buffer = [0; 4096];
    loop {
        let mut is_idle = true;
        while let Some(bytes) = member.poll_transmit(&mut buffer) {
            is_idle = false;
            let mut rest = bytes;
            while !rest.is_empty() {
                rest = &rest[market.handle_bytes(NOW, rest)..];
                while let Some(event) = market.poll_event() {
                    match event {
                        Event::Message { .. } => show(&market.message().ok_or("it was told of")?)?,
                        Event::Disconnect { .. } => return Err(format!("{event:?}").into()),
                        _ => {}
                    }
                }
            }
        }
        while let Some(bytes) = market.poll_transmit(&mut buffer) {
            is_idle = false;
            let mut rest = bytes;
            while !rest.is_empty() {
                rest = &rest[member.handle_bytes(NOW, rest)..];
            }
            while let Some(event) = member.poll_event() {
                if let Event::Rejected { text, .. } = event {
                    return Err(format!("rejected: {text}").into());
                }
            }
        }
        if is_idle {
            return Ok(());
        }
    }
}
