//! A venue that fills every order at its limit.
//! `cargo run -p tickwire-example-fix-application --bin venue -- examples/fix-application/venue.cfg`, then
//! `trader` in another terminal.

use std::fmt::Arguments;
use std::sync::Arc;

use tickwire_fix::typed::{Price, Qty};
use tickwire_fix::{Message, Role};
use tickwire_fixengine::{Application, Context, Level, Refusal, run, settings};
use tickwire_fixmsg::fix44::values::{ExecType, OrdStatus};
use tickwire_fixmsg::fix44::{ExecutionReport, NewOrderSingle};
use tickwire_runtime::signal::StopFlag;

/// So many orders have been filled.
struct Venue(u64);

impl Application for Venue {
    fn from_app(&mut self, ctx: &mut Context<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        let order = NewOrderSingle::read(message).ok_or(Refusal::UnsupportedMessageType)?;
        let (id, side, symbol) = (order.cl_ord_id()?, order.side()?, order.instrument().symbol()?);
        let qty = order.order_qty_data().order_qty()?.unwrap_or_default();
        let price = order.price()?.unwrap_or(Price::ZERO);
        self.0 += 1;
        let number = self.0.to_string();
        ctx.send(ExecutionReport::MSG_TYPE, |encoder, stamp| {
            ExecutionReport::write(encoder, stamp, |report| {
                report.order_id(number.as_bytes()).cl_ord_id(id);
                report.exec_id(number.as_bytes());
                report.exec_type(ExecType::Trade).ord_status(OrdStatus::Filled);
                report.instrument().symbol(symbol.unwrap_or(b"?"));
                report.side(side).last_qty(qty).last_px(price);
                report.leaves_qty(Qty(0)).cum_qty(qty).avg_px(price);
            })
        })?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: venue FILE.cfg")?;
    let observer = |level: Level, text: Arguments<'_>| println!("{level:?}: {text}");
    let sessions = settings::load(file.as_ref(), settings::Wanted::Only(Role::Acceptor), &observer)?;
    let venue = run(sessions, Venue(0), Arc::new(observer), &StopFlag::install()?)?;
    println!("{} orders filled", venue.0);
    Ok(())
}
