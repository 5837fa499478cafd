//! Moscow Exchange datagrams for tests: recorded ones, and a little venue that writes its own.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its part")]

use std::path::PathBuf;
use std::sync::Arc;

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
use tickwire_testdata::{captures, specs, unhex, workspace};
use tickwire_wire::fast::{Limits, Plan};
use tickwire_wire::moex::{
    Action, Board, Definition, Encoder, MessageKind, OrderEntry, OrderKind, SnapshotHeader, Status,
    TradeEntry,
};

fn plan(path: PathBuf) -> Arc<Plan> {
    let xml = std::fs::read_to_string(&path).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

pub fn exchange(set: &str) -> Arc<Plan> {
    plan(specs(&format!("moex/templates-{set}.xml")))
}

pub fn ours() -> Arc<Plan> {
    plan(workspace().join("examples/moex-templates.xml"))
}

pub fn packets(file: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(captures(&format!("moex-asts/{file}"))).unwrap();
    text.lines().filter(|l| !l.is_empty()).map(unhex).collect()
}

/// 2026-01-05 in Moscow, ten in the morning.
pub fn day() -> Nanos {
    Nanos(1_767_596_400 * Nanos::SECOND)
}

/// Writes datagrams of one market.
pub struct Venue {
    encoder: Encoder,
    market: &'static str,
    pub sent: Nanos,
}

impl Venue {
    pub fn new(plan: Arc<Plan>, market: &'static str) -> Venue {
        Venue {
            encoder: Encoder::new(plan, Limits::default()).unwrap(),
            market,
            sent: day(),
        }
    }

    fn write(
        &mut self,
        kind: MessageKind,
        write: impl FnOnce(&mut Encoder, tickwire_wire::moex::Template, Nanos, &mut [u8]) -> usize,
    ) -> Vec<u8> {
        let template = self.encoder.find(kind, self.market).unwrap();
        self.sent = self.sent.after(1_000_000);
        let mut out = vec![0; 4096];
        let length = write(&mut self.encoder, template, self.sent, &mut out);
        out.truncate(length);
        out
    }

    pub fn orders(&mut self, seq: u32, entries: &[OrderEntry<'_>]) -> Vec<u8> {
        self.write(MessageKind::OrderLog, |e, t, at, out| {
            e.order_log(t, seq, at, entries, out).unwrap()
        })
    }

    pub fn snapshot(&mut self, seq: u32, header: &SnapshotHeader<'_>, entries: &[OrderEntry<'_>]) -> Vec<u8> {
        self.write(MessageKind::OrderSnapshot, |e, t, at, out| {
            e.order_snapshot(t, seq, at, header, entries, out).unwrap()
        })
    }

    pub fn trades(&mut self, seq: u32, entries: &[TradeEntry<'_>]) -> Vec<u8> {
        self.write(MessageKind::Trades, |e, t, at, out| {
            e.trades(t, seq, at, entries, out).unwrap()
        })
    }

    pub fn definition(&mut self, seq: u32, definition: &Definition<'_>, boards: &[Board<'_>]) -> Vec<u8> {
        self.write(MessageKind::SecurityDefinition, |e, t, at, out| {
            e.definition(t, seq, at, definition, boards, out).unwrap()
        })
    }

    pub fn status(&mut self, kind: MessageKind, seq: u32, status: &Status<'_>) -> Vec<u8> {
        self.write(kind, |e, t, at, out| e.status(t, seq, at, status, out).unwrap())
    }

    pub fn heartbeat(&mut self, seq: u32) -> Vec<u8> {
        self.write(MessageKind::Heartbeat, |e, t, at, out| {
            e.heartbeat(t, seq, at, out).unwrap()
        })
    }

    /// A replay server's first or last message, behind its length.
    pub fn session(&mut self, kind: MessageKind, seq: u32, reason: &str) -> Vec<u8> {
        self.write(kind, |e, t, at, out| {
            e.session(t, seq, at, b"ME", reason.as_bytes(), out).unwrap()
        })
    }
}

/// An entry of the order log; times and prices that differ from order to order.
pub fn order<'a>(
    action: Action,
    symbol: &'a str,
    rpt_seq: u32,
    id: u64,
    side: Side,
    price: &str,
    qty: u64,
) -> OrderEntry<'a> {
    OrderEntry {
        action,
        kind: OrderKind::Order(side),
        order_id: OrderId(id),
        symbol: symbol.as_bytes(),
        board: b"TQBR",
        rpt_seq,
        price: Some(price.parse::<Price>().unwrap()),
        qty: (action != Action::Delete).then_some(Volume(qty)),
        date: None,
        time: Some(Nanos(36_000 * Nanos::SECOND + id * 1_000)),
        order_status: if action == Action::Delete { b"" } else { b"O" },
        session: b"N",
    }
}
