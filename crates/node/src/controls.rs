//! `[controls]`: limits that every program which sends orders shares, and what watches over them beside the
//! hot path: the kill file and the accuracy of the clock. `docs/controls.md` has the table.

pub mod beat;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickwire_market::{Nanos, Price, Qty};
use tickwire_runtime::timekeeping::Timekeeping;
use tickwire_trading::{ControlsConfig, RiskReject};

use tickwire_console::failure::Failure;
use tickwire_console::warn;

/// How often the kill file is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// How many looks pass between two at the clock: ten seconds.
const LOOKS_PER_CLOCK: u32 = 1_000;

/// Controls before a trade that trader, quoter and eye share. 0 is no limit.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlsSection {
    /// Most that one order, or a side of a quote, may be worth, in units of the instrument's currency.
    pub order_value_max: u64,
    /// How far a price may lie from the mid price of `drift_s` to twice as many seconds ago, basis points,
    pub drift_bp: u32,
    /// that time, seconds.
    pub drift_s: u32,
    /// Messages about one instrument within a second.
    pub instrument_messages_per_s: u32,
    /// Executions of one strategy within `executions_s`: one more stops it until a person resumes it
    /// (`--tell resume`).
    pub executions_max: u32,
    /// That time, seconds.
    pub executions_s: u32,
    /// Contracts or shares that one strategy may hold, long and short of all instruments added.
    pub strategy_position_max: u64,
    /// The same for all strategies of a program.
    pub position_max: u64,
    /// Loss of one strategy at mid prices, in units of the currency, that stops it until a person resumes it.
    pub strategy_loss_max: u64,
    /// The same for all strategies of a program.
    pub loss_max: u64,
    /// Contracts of a side of a quote, or of an order of the eye.
    pub quote_size_max: u32,
    /// How far the price of a quote, or of an order of the eye, may lie from its instrument's mid price,
    /// basis points; the trader has `trader.risk.price_band_bp`.
    pub quote_band_bp: u32,
    /// So many of the options' finest ticks it may lie from it, now or a while ago, whatever those shares
    /// come to.
    pub quote_band_ticks: u32,
    /// A file that kills when it appears: nothing is sent any more, everything open is cancelled, and nothing
    /// starts while it is there. From where this file lies; "" is none.
    pub kill_file: PathBuf,
    /// Where this file lies.
    #[serde(skip)]
    pub folder: PathBuf,
    /// How often the venue is asked what it has of our open orders, seconds; 0: never. What differs is said
    /// at once.
    pub reconcile_s: u32,
    /// Shared memory that says that the trading thread turns, from where this file lies: for
    /// `tickwire watchdog`. None without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beat: Option<PathBuf>,
    /// The largest error of the machine's clock that it may vouch for, microseconds (Regulation (EU)
    /// 2017/574: 100 where a gateway answers within a millisecond, else 1000).
    pub clock_error_max_us: u32,
    /// What is done about a worse one, or about one that nobody keeps: `warn`, `refuse` to start, `ignore`.
    pub clock: Policy,
    /// What is done about a venue whose Logon does not confirm that it cancels what is open when the
    /// connection is lost (`order_entry.cancel_on_disconnect_tag`): `warn`, `refuse` to trade, `ignore`.
    pub venue_cancels: Policy,
}

/// What is done about something that is not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It is said, and the program goes on.
    #[default]
    Warn,
    /// The program does not start.
    Refuse,
    /// Nothing, and nothing is checked.
    Ignore,
}

impl Default for ControlsSection {
    fn default() -> ControlsSection {
        let limits = ControlsConfig::default();
        ControlsSection {
            order_value_max: limits.value_max,
            drift_bp: limits.drift_bp,
            drift_s: (limits.drift_ns / Nanos::SECOND) as u32,
            instrument_messages_per_s: limits.instrument_messages,
            executions_max: limits.executions_max,
            executions_s: (limits.executions_ns / Nanos::SECOND) as u32,
            strategy_position_max: 10_000_000,
            position_max: 20_000_000,
            strategy_loss_max: limits.strategy_loss_max,
            loss_max: limits.loss_max,
            quote_size_max: 1_000,
            quote_band_bp: 5_000,
            quote_band_ticks: 200,
            kill_file: PathBuf::from("tickwire.kill"),
            folder: PathBuf::new(),
            reconcile_s: 2,
            beat: None,
            clock_error_max_us: 1_000,
            clock: Policy::Warn,
            venue_cancels: Policy::Warn,
        }
    }
}

/// Whether a venue may be traded at by what its Logon `said` in the field `tag`: see
/// `controls.venue_cancels`.
///
/// # Errors
/// It has not confirmed that it cancels when the connection is lost, and is not to be traded at then.
pub fn check_venue_cancels(policy: Policy, tag: u32, said: Option<bool>) -> Result<(), Failure> {
    let fault = match (tag, said) {
        _ if policy == Policy::Ignore => return Ok(()),
        (1.., Some(true)) => return Ok(()),
        (0, _) => {
            "the venue is not asked whether it cancels what is open when the connection is lost (order_entry.cancel_on_disconnect_tag = 0)"
                .to_string()
        }
        (_, None) => format!(
            "the venue's Logon does not say whether it cancels what is open when the connection is lost: it has no field {tag} \
             (order_entry.cancel_on_disconnect_tag)"
        ),
        (_, Some(false)) => format!(
            "the venue's Logon says that it does not cancel what is open when the connection is lost ({tag}=N; an exchange of ours does with \
             `cancel_on_disconnect = true` of the session)"
        ),
    };
    match policy {
        Policy::Refuse => Err(Failure::config(format!(
            "{fault}: nothing is sent; controls.venue_cancels = \"refuse\""
        ))),
        _ => {
            warn(format_args!(
                "{fault}: orders and quotes may stay there when this program is gone; `tickwire watchdog` can cancel them; \
                 controls.venue_cancels = \"refuse\" or \"ignore\" settles it"
            ));
            Ok(())
        }
    }
}

impl ControlsSection {
    /// For those who trade with a simulator as fast as they can: what counts executions and money is off, the
    /// rest stays.
    pub fn for_a_demo(&mut self) {
        (self.executions_max, self.strategy_loss_max, self.loss_max) = (0, 0, 0);
    }

    /// As the trader's checks have them; size and price band are its own.
    pub fn of_trader(&self) -> ControlsConfig {
        ControlsConfig {
            value_max: self.order_value_max,
            drift_bp: self.drift_bp,
            drift_ns: u64::from(self.drift_s) * Nanos::SECOND,
            instrument_messages: self.instrument_messages_per_s,
            messages_ns: Nanos::SECOND,
            executions_max: self.executions_max,
            executions_ns: u64::from(self.executions_s) * Nanos::SECOND,
            strategy_position_max: self.strategy_position_max,
            position_max: self.position_max,
            strategy_loss_max: self.strategy_loss_max,
            loss_max: self.loss_max,
            needs_reference: true,
            ..ControlsConfig::NONE
        }
    }

    /// For so many options with a finest tick, and their underlying behind them. Whether a quote needs a
    /// market is `quoter.market`'s to say.
    pub fn of_quotes(&self, tick: Price) -> ControlsConfig {
        let most = |limit: u32| if limit == 0 { u32::MAX } else { limit };
        ControlsConfig {
            qty_max: Qty(most(self.quote_size_max)),
            band_bp: (self.quote_band_bp > 0).then_some(self.quote_band_bp),
            band_min: Price::from_raw(tick.raw().saturating_mul(self.quote_band_ticks.into())),
            needs_reference: false,
            ..self.of_trader()
        }
    }

    /// The file whose appearance kills, if there is to be one.
    pub fn kill_file(&self) -> Option<PathBuf> {
        (!self.kill_file.as_os_str().is_empty()).then(|| self.folder.join(&self.kill_file))
    }

    /// Whether a person may let anything go on.
    pub fn may_resume(&self) -> Result<(), String> {
        match self.is_killed_by_file() {
            None => Ok(()),
            Some(file) => Err(format!("remove the kill file {} first", file.display())),
        }
    }

    /// Whether the kill file is there now.
    pub fn is_killed_by_file(&self) -> Option<PathBuf> {
        self.kill_file().filter(|file| file.exists())
    }
}

/// A control in words, for operators.
pub fn named(control: RiskReject) -> &'static str {
    match control {
        RiskReject::KillSwitch => "the kill switch",
        RiskReject::NoSession => "that no session is logged on",
        RiskReject::Silence => "that market data is silent",
        RiskReject::OrderSize => "the largest quantity",
        RiskReject::NoReference => "that no mid price is known",
        RiskReject::PriceBand => "the price band around the mid price",
        RiskReject::OpenOrders => "the number of open orders",
        RiskReject::Position => "the largest position",
        RiskReject::OrderRate => "the rate of orders",
        RiskReject::OrderValue => "order_value_max",
        RiskReject::PriceDrift => "drift_bp, the distance from earlier mid prices",
        RiskReject::InstrumentRate => "instrument_messages_per_s",
        RiskReject::Duplicate => "the check for duplicates",
        RiskReject::SelfTrade => "self-trade prevention",
        RiskReject::Executions => "executions_max",
        RiskReject::TotalPosition => "strategy_position_max or position_max",
        RiskReject::Loss => "strategy_loss_max or loss_max",
    }
}

/// What is wrong with the machine's clock, if anything is.
fn clock_fault(kept: std::io::Result<Timekeeping>, error_max_us: u32) -> Option<String> {
    let most = u64::from(error_max_us);
    let kept = match kept {
        Ok(kept) => kept,
        Err(e) => return Some(format!("how well the clock is kept is not known: {e}")),
    };
    match kept.distance_ns().map(|ns| ns.div_ceil(1_000)) {
        None => Some(
            "nobody keeps the machine's clock (adjtimex says it is not synchronized); start chrony, ntpd or ptp4l, or set controls.clock = \"ignore\"".into(),
        ),
        Some(us) if us > most => Some(format!(
            "the machine's clock may be wrong by {us} us, more than controls.clock_error_max_us = {most}"
        )),
        Some(_) => None,
    }
}

/// Looks, on a thread of its own, for the kill file and at the clock.
pub struct Guards {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Guards {
    /// # Errors
    /// The kill file is there; the clock is worse than it may be and that is refused.
    pub fn start(
        section: &ControlsSection,
        is_child: bool,
        on_kill: impl Fn() + Send + 'static,
    ) -> Result<Guards, Failure> {
        if let Some(file) = section.is_killed_by_file() {
            return Err(Failure::config(format!(
                "the kill file {} is there: nothing starts before a person has removed it",
                file.display()
            )));
        }
        let fault = || clock_fault(Timekeeping::now(), section.clock_error_max_us);
        let mut said = None;
        match (section.clock, fault()) {
            (Policy::Refuse, Some(fault)) => {
                return Err(Failure::system(format!("{fault}; controls.clock = \"refuse\"")));
            }
            (Policy::Warn, Some(fault)) if !is_child => {
                eprintln!("warning: {fault}");
                said = Some(fault);
            }
            _ => {}
        }
        let ends = Arc::new(AtomicBool::new(false));
        let (over, section) = (ends.clone(), section.clone());
        let body = move || {
            let (mut looks, mut is_killed) = (0_u32, false);
            let file = section.kill_file();
            while !over.load(Ordering::Relaxed) {
                let is_there = file.as_ref().is_some_and(|file| file.exists());
                // What was killed stays so until a person resumes it; a file that appears again kills again.
                if is_there && !std::mem::replace(&mut is_killed, is_there) {
                    warn(format_args!(
                        "the kill file {} has appeared: everything is cancelled and nothing is sent; remove it and resume",
                        file.as_deref()
                            .unwrap_or_else(|| std::path::Path::new(""))
                            .display()
                    ));
                    on_kill();
                }
                is_killed = is_there;
                looks += 1;
                if looks.is_multiple_of(LOOKS_PER_CLOCK) && section.clock != Policy::Ignore && !is_child {
                    let fault = clock_fault(Timekeeping::now(), section.clock_error_max_us);
                    match (&fault, &said) {
                        (Some(fault), None) => warn(format_args!("{fault}")),
                        (None, Some(_)) => warn(format_args!("the machine's clock is kept well again")),
                        _ => {}
                    }
                    said = fault;
                }
                std::thread::sleep(LOOK);
            }
        };
        let thread = tickwire_runtime::affinity::beside("guards", body).map_err(|e| {
            Failure::system(format!(
                "cannot start the thread that looks for the kill file: {e}"
            ))
        })?;
        Ok(Guards {
            ends,
            thread: Some(thread),
        })
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn kept(offset_ns: i64, error_max_ns: u64, is_synchronized: bool) -> std::io::Result<Timekeeping> {
        Ok(Timekeeping {
            offset_ns,
            error_max_ns,
            is_synchronized,
        })
    }

    #[test]
    fn a_clock_that_is_wrong_or_that_nobody_keeps_is_a_fault() {
        assert_eq!(clock_fault(kept(-40_000, 60_000, true), 100), None);
        let wrong = clock_fault(kept(40_001, 60_000, true), 100).unwrap();
        assert!(wrong.contains("by 101 us"), "{wrong}");
        let nobody = clock_fault(kept(0, 0, false), 100).unwrap();
        assert!(nobody.contains("not synchronized"), "{nobody}");
        let forbidden = clock_fault(Err(std::io::ErrorKind::PermissionDenied.into()), 100);
        assert!(forbidden.is_some());
    }

    #[test]
    fn the_kill_file_kills_when_it_appears_and_nothing_starts_while_it_is_there() {
        let folder = std::env::temp_dir().join(format!("tickwire-kill-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let section = ControlsSection {
            kill_file: folder.join("kill"),
            clock: Policy::Ignore,
            ..ControlsSection::default()
        };
        let (told, hears) = channel();
        let guards = Guards::start(&section, false, move || told.send(()).unwrap()).unwrap();
        std::fs::write(&section.kill_file, "").unwrap();
        hears
            .recv_timeout(Duration::from_secs(60))
            .expect("it is noticed");
        drop(guards);
        let refused = Guards::start(&section, false, || {}).err().unwrap();
        assert!(refused.message.contains("is there"), "{}", refused.message);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Guards::start(&section, false, || {}).is_ok());
    }

    #[test]
    fn no_kill_file_is_looked_for_where_none_is_named() {
        let section = ControlsSection {
            kill_file: PathBuf::new(),
            ..ControlsSection::default()
        };
        assert_eq!(section.kill_file(), None);
        assert_eq!(section.is_killed_by_file(), None);
    }
}
