//! A trader that sends one order when it is logged on, and ends when it is filled.
//! `cargo run -p tickwire-example-fix-application --bin trader -- examples/fix-application/trader.cfg`

use std::fmt::Arguments;
use std::sync::Arc;

use tickwire_fix::typed::{Price, Qty};
use tickwire_fix::{Message, Role};
use tickwire_fixengine::{Application, Context, Level, Refusal, run, settings};
use tickwire_fixmsg::fix44::values::{OrdStatus, OrdType, Side};
use tickwire_fixmsg::fix44::{ExecutionReport, NewOrderSingle};
use tickwire_runtime::signal::StopFlag;

struct Trader;

impl Application for Trader {
    fn on_logon(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now();
        let sent = ctx.send(NewOrderSingle::MSG_TYPE, |encoder, stamp| {
            NewOrderSingle::write(encoder, stamp, |order| {
                order.cl_ord_id(b"1").instrument().symbol(b"WIRE");
                order.side(Side::Buy).transact_time(now);
                order.order_qty_data().order_qty(Qty(100));
                order.ord_type(OrdType::Limit).price(Price::from_4dp(873_900));
            })
        });
        if let Err(why) = sent {
            println!("not sent: {why}");
        }
    }

    fn from_app(&mut self, ctx: &mut Context<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        let report = ExecutionReport::read(message).ok_or(Refusal::UnsupportedMessageType)?;
        let (qty, price) = (report.cum_qty()?, report.avg_px()?);
        println!("bought {qty} at {price}");
        if report.ord_status()? == OrdStatus::Filled {
            ctx.end();
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: trader FILE.cfg")?;
    let observer = |level: Level, text: Arguments<'_>| println!("{level:?}: {text}");
    let sessions = settings::load(file.as_ref(), settings::Wanted::Only(Role::Initiator), &observer)?;
    run(sessions, Trader, Arc::new(observer), &StopFlag::install()?)?;
    Ok(())
}
