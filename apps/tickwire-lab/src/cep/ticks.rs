//! Packets whose messages have fields at fixed places (ITCH 5.0 over MoldUDP64), for orders that a program
//! can send by itself; and the trader that arms them.
//!
//! The rule is one that an order can be prepared for: whenever somebody offers [`SYMBOL`] at [`LIMIT`] or
//! less, buy at [`LIMIT`]. Each packet holds one message, so that its number in the stream is the packet's.
//! Such an offer leaves the book with the next packet, and the following one comes some packets later.

use tickwire::config::Config;
use tickwire::prelude::{
    ArmEnd, ArmedEvent, Awaited, BookChange, Context, Price, Side, Strategy, Subscription, Ticket,
};
use tickwire_console::failure::Failure;
use tickwire_console::random::Random;
use tickwire_market::{SeqNo, Symbol};
use tickwire_node::live::{Hosting, Live};
use tickwire_node::trader::run_rule;
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::itch50::{AddOrder, OrderDelete, StockDirectory, StockTradingAction, SystemEvent};
use tickwire_wire::layout::{Alpha, Char, Price4};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::zerocopy::IntoBytes;

use super::Log;
use crate::cli::TicksArgs;

/// The instrument traded.
pub(crate) const SYMBOL: &str = "TICK";

/// What is bought at or below.
pub(super) const LIMIT: Price = Price::from_4dp(1_000_000);

/// Instruments of the stream: the first is the one traded.
const LISTED: [&[u8; 8]; 4] = [b"TICK    ", b"TOCK    ", b"TACK    ", b"TUCK    "];
const SESSION: [u8; 10] = *b"TICKS     ";
/// Nine in the morning, nanoseconds since midnight; a packet every microsecond from there.
const BEGIN_NS: u64 = 9 * 3_600 * 1_000_000_000;
/// Orders that stand in the book at once, of each instrument about a quarter.
const STANDING: usize = 64;
/// Orders of the trader in all.
const MAX_ORDERS: u32 = 1 << 20;
/// Shares of every order.
const SHARES: u32 = 100;

/// The stream under way.
struct Writer {
    log: Log,
    next: u64,
}

impl Writer {
    /// A packet of one message, and the offers at the limit after it, where it is about them.
    fn put(&mut self, message: &[u8], offer: Option<Option<Price>>) {
        let mut buffer = [0; 128];
        let mut packet = PacketBuilder::new(&mut buffer, SESSION, SeqNo(self.next));
        assert!(packet.push(message), "a message fits a packet");
        let len = packet.finish();
        self.log.add(1, offer.into_iter(), &buffer[..len]);
        self.next += 1;
    }

    fn at(&self) -> u64 {
        BEGIN_NS + self.next * 1_000
    }

    fn add(&mut self, locate: u16, (order, side, price): (u64, u8, u32), offer: Option<Option<Price>>) {
        let message = AddOrder {
            order_ref: order.into(),
            side: Char(side),
            shares: SHARES.into(),
            stock: Alpha(*LISTED[usize::from(locate) - 1]),
            price: price4(price),
            ..AddOrder::at(locate, self.at())
        };
        self.put(message.as_bytes(), offer);
    }

    fn delete(&mut self, locate: u16, order: u64, offer: Option<Option<Price>>) {
        let message = OrderDelete {
            order_ref: order.into(),
            ..OrderDelete::at(locate, self.at())
        };
        self.put(message.as_bytes(), offer);
    }

    /// Directory, trading state, the day's begin.
    fn begin(&mut self) {
        for (locate, name) in (1..).zip(LISTED) {
            let directory = StockDirectory::common_stock(locate, self.at(), Alpha(*name));
            self.put(directory.as_bytes(), None);
            let action = StockTradingAction {
                stock: Alpha(*name),
                trading_state: Char(b'T'),
                reason: Alpha(*b"    "),
                ..StockTradingAction::at(locate, self.at())
            };
            self.put(action.as_bytes(), None);
        }
        let opens = SystemEvent {
            event: Char(b'Q'),
            ..SystemEvent::at(0, self.at())
        };
        self.put(opens.as_bytes(), None);
    }
}

fn price4(four_decimals: u32) -> Price4 {
    Price4::from_price(Price::from_4dp(four_decimals)).expect("four decimals")
}

/// One seed, one stream. About one packet in seven leads to an order.
pub(crate) fn generate(seed: u64, packets: u64) -> Log {
    let symbol = Symbol::new(SYMBOL.as_bytes()).expect("a valid symbol");
    let mut w = Writer {
        log: Log::of(symbol),
        next: 1,
    };
    let mut random = Random(seed);
    let mut standing: Vec<(u16, u64)> = Vec::with_capacity(STANDING);
    let limit = u32::try_from(LIMIT.raw() / Price::from_4dp(1).raw()).expect("the limit fits ITCH");
    w.begin();
    let mut order = 0;
    while (w.log.len() as u64) < packets {
        // The others between two that lead to an order: at least three, so that one can be armed meanwhile.
        for _ in 0..3 + random.below(4) {
            order += 1;
            if standing.len() == STANDING || (!standing.is_empty() && random.below(3) == 0) {
                let (locate, gone) = standing.swap_remove(random.below(standing.len() as u64) as usize);
                w.delete(locate, gone, None);
                continue;
            }
            let locate = 1 + random.below(LISTED.len() as u64) as u16;
            let away = 100 * (1 + random.below(50) as u32);
            // Of another instrument, what is offered at the limit is nobody's.
            let (side, price) = match (random.below(2), locate) {
                (0, _) => (b'B', limit - away - 5_000),
                (_, 1) => (b'S', limit + away),
                (_, _) => (b'S', limit + away - 2_500),
            };
            w.add(locate, (order, side, price), None);
            standing.push((locate, order));
        }
        order += 1;
        let price = limit - 100 * random.below(10) as u32;
        w.add(1, (order, b'S', price), Some(Some(LIMIT)));
        w.delete(1, order, Some(None));
    }
    w.log.cut(packets as usize);
    w.log
}

/// The trader's rule, by a strategy: with `arms`, by an order that lies at the hook, wherever one does.
struct Taker {
    arms: bool,
    /// An order has left by itself, and its packet has not come here yet.
    is_ahead: bool,
}

impl Taker {
    fn ticket(change: &BookChange<'_>) -> Ticket {
        Ticket::limit(Side::Bid, change.instrument, SHARES, LIMIT).immediate_or_cancel()
    }
}

impl Strategy for Taker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol(SYMBOL)]
    }

    fn pre_arms(&self) -> bool {
        self.arms
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange<'_>) {
        if !change.is_live() {
            return;
        }
        let offered = |best: Option<(Price, _)>| best.is_some_and(|best| best.0 <= LIMIT);
        let is_offered = offered(change.after.best(Side::Ask));
        if is_offered && !offered(change.before.best(Side::Ask)) {
            let is_ahead = std::mem::take(&mut self.is_ahead);
            let armed = ctx.armed().map(|(id, _)| id);
            let has_left =
                is_ahead || armed.is_some_and(|id| ctx.disarm(id).is_ok_and(|end| end == ArmEnd::Fired));
            if !has_left {
                // What stops it is counted by name; the order that does not come fails the run.
                let _ = ctx.submit(Self::ticket(change));
            }
        } else if self.arms && !is_offered && ctx.armed().is_none() {
            let awaited = Awaited::added(change.instrument, Side::Ask).between(Price::ZERO, LIMIT);
            // Likewise; until it is armed, the order leaves from here.
            let _ = ctx.arm(Self::ticket(change), awaited);
        }
    }

    fn on_armed(&mut self, _: &mut Context<'_>, event: &ArmedEvent) {
        self.is_ahead |= event.end == ArmEnd::Fired;
    }
}

/// The whole command `ticks`.
pub(crate) fn run(args: &TicksArgs, stop: &StopFlag) -> Result<(), Failure> {
    if let Some(parent) = args.child_of {
        tickwire_control::process::tie_to(parent)?;
    }
    let config = Config::load(&args.config)?;
    let node = config.node();
    let hosting = Hosting {
        name: "ticks".to_string(),
        strategy: Taker {
            arms: args.armed,
            is_ahead: false,
        },
        feeds: None,
        sessions: None,
        on_every_event: false,
        ends_with_session: false,
        max_orders: MAX_ORDERS,
        risk: node.risk_of(&config.trader.risk),
    };
    let rule = Live::hosting(vec![hosting]);
    run_rule(&node, None, args.child_of.is_some(), stop, rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_wire::moldudp64;

    #[test]
    fn one_seed_one_stream_of_one_message_a_packet_and_one_in_seven_asks_for_an_order() {
        let (log, again) = (generate(7, 2_000), generate(7, 2_000));
        assert_eq!(log.len(), 2_000);
        let mut orders = 0;
        for at in 0..log.len() {
            assert_eq!(log.payload(at), again.payload(at));
            let packet = moldudp64::parse(log.payload(at)).expect("a packet");
            assert_eq!((packet.seq, packet.count()), (SeqNo(at as u64 + 1), 1));
            orders += usize::from(log.offers(at) == [Some(LIMIT)]);
        }
        assert!((200..400).contains(&orders), "{orders} orders");
    }
}
