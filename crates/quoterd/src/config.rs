//! What `[quoter]` says: what is quoted, how, and within which limits.

mod eye;
mod terms;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickwire_desk::risk::LossMark;
use tickwire_market::{Date, InstrumentId, Nanos, PointValue, Price, Qty};
use tickwire_node::settings::SendWay;
use tickwire_node::silence::SilenceMs;
use tickwire_options::Kind;
use tickwire_trading::{ENTRIES_MAX, MarketGuard, MarketNeed, Protection, QuoterConfig};

use tickwire_venues::protocol::Protocol;
use tickwire_venues::texts::PriceText;
use tickwire_venues::values::{CompId, SymbolName};
use tickwire_venues::wait::Wait;

pub(crate) use eye::EyeSection;
pub(crate) use terms::{OptionTerms, TermsSection};

/// The options quoter. It receives on the first channel of the first feed, and quotes over FIX at
/// `order_entry.address`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct QuoterSection {
    /// Our CompID there: one of `order_entry.session`, whose version is spoken.
    pub comp_id: CompId,
    /// The future whose options are quoted: all that the venue has defined, of expiries that `surface` has.
    pub underlying: SymbolName,
    /// File of volatilities, from where this file lies (docs/vol.md). Without one, `volatility` is that of
    /// every option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<PathBuf>,
    /// Per year, 0.15 is 15 %.
    #[serde(default = "default_volatility")]
    pub volatility: f64,
    /// Per year, continuously compounded.
    #[serde(default)]
    pub rate: f64,
    /// `european`, or `american`: exercised early where that is worth more.
    #[serde(default)]
    pub exercise: Exercise,
    /// Core of the thread that quotes; -1 leaves it to the scheduler.
    #[serde(default = "no_core")]
    pub core: i32,
    /// Core of the thread that prices.
    #[serde(default = "no_core")]
    pub pricing_core: i32,
    /// How the thread that quotes waits: `spin`, `poll`, or `auto`.
    #[serde(default = "auto")]
    pub wait: Wait,
    /// How quotes leave: `kernel`, or `delegated`, as `trader.send`.
    #[serde(default)]
    pub send: SendWay,
    /// While it spins, that thread goes through what the next tick might cause this often, microseconds, and
    /// sends nothing of it, so that a tick after a silence finds code and data in the caches; 0 is never.
    #[serde(default = "default_rehearse")]
    pub rehearse_us: u32,
    /// Half ticks of the underlying to either side of its price for which quotes are worked out beforehand.
    #[serde(default = "default_reach")]
    pub reach_half_ticks: u16,
    /// Volatilities age, and quotes follow, this often, milliseconds.
    #[serde(default = "default_reprice")]
    pub reprice_ms: u32,
    /// Contracts on each side of a quote.
    #[serde(default = "default_size")]
    pub size: u32,
    /// Entries of one mass quote; CME takes 15.
    #[serde(default = "default_entries")]
    pub entries_max: u8,
    /// How quotes are entered: `mass-quotes`, or `orders`, a bid and an offer for each option, where a venue
    /// takes no mass quotes.
    #[serde(default)]
    pub entry: QuoteEntry,
    /// Folder of the control socket, from where this file lies; none without it. For `tickwire vol`,
    /// `tickwire risk` and `tickwire quote --tell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
    /// Folder of what outlives the process, from where this file lies: the session's numbers
    /// (`session.store`) and everything traded (`fills`). Without it, both begin anew with the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// When a change of the underlying pulls quotes.
    #[serde(default)]
    pub trigger: TriggerSection,
    /// How far quotes and volatilities may be from the market.
    #[serde(default)]
    pub market: MarketSection,
    /// Limits on what is held, sent and lost.
    #[serde(default)]
    pub limits: LimitsSection,
    /// Our own market maker protection.
    #[serde(default)]
    pub protection: OwnProtectionSection,
    /// The electronic eye: takes what others quote too well (docs/eye.md). Without the section there is none;
    /// with it, it is off until the operator turns it on (`tickwire quote --tell eye-on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eye: Option<EyeSection>,
    /// What the account reckons with (`tickwire risk --socket FOLDER`).
    #[serde(default)]
    pub risk: RiskSection,
    /// How quotes lie around their theoretical values. All that match an option apply, the last one that sets
    /// a value decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermsSection>,
}

/// When options are exercised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Exercise {
    #[default]
    European,
    American,
}

/// How quotes are entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum QuoteEntry {
    /// MassQuote (35=i), many options in each
    #[default]
    MassQuotes,
    /// An order for each side of each option
    Orders,
}

/// When a quote is worth a message, and when all are pulled.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TriggerSection {
    /// An improvement of fewer ticks than this is not worth a message.
    pub ticks: u16,
    /// A quote is not improved before it has lived so long, microseconds.
    pub life_min_us: u32,
    /// A filled side stays so many ticks away from its fill,
    pub fade_ticks: u16,
    /// for so long, milliseconds.
    pub fade_ms: u32,
    /// A quote that the venue rejected is tried again after so long, milliseconds; 0: not before the option's
    /// status changes.
    pub retry_ms: u32,
    /// Half ticks of the underlying from one look to the next that are a jump: all quotes are pulled.
    pub jump_half_ticks: u32,
    /// Ticks between its bid and ask that are too many: all quotes are pulled.
    pub spread_max_ticks: u32,
    /// How long the underlying must have been good before quoting goes on after that, milliseconds.
    pub calm_ms: u32,
}

/// How far our quotes, the eye's values and our volatilities may be from the market of others. An option
/// whose quote is not within this is not quoted, until it has been for `calm_ms`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketSection {
    /// Whether anything compares them. Without it, a wrong volatility is quoted to whoever sees it first.
    pub check: bool,
    /// Finest ticks of the options by which a side may be better than the market's best of that side. A quote
    /// that would cross or lock the market is never sent.
    pub better_max: u16,
    /// Finest ticks by which the middle of a quote, and the value that the eye trades by, may be away from
    /// the middle of the market,
    pub mid_ticks: u16,
    /// or this share of the market's middle, 0.05 is 5 %: whichever is more.
    pub mid_share: f64,
    /// What happens where the market of an option has no bid or no offer, ours left out.
    pub without_market: WithoutMarket,
    /// A quote must have been within all of this for so long before an option that was pulled is quoted
    /// again, milliseconds.
    pub calm_ms: u32,
    /// How far volatilities may be from those that the market of an expiry's options near the money implies,
    /// when quoting begins and when a file is read again; 0.03 is three percent (points). More is refused
    /// without `--force`.
    pub vol_distance_max: f64,
    /// Where there is no such market, volatilities at the money are refused below and
    pub vol_min: f64,
    /// above these.
    pub vol_max: f64,
}

/// What happens where the market of an option has no price. Whatever is there is held to; a book with a gap
/// is never quoted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutMarket {
    /// It is not quoted, and the eye does not trade it, unless there is a bid and an offer
    #[default]
    Pull,
    /// A bid or an offer is enough
    OneSide,
    /// It is quoted, and traded, by our value alone
    Quote,
}

impl MarketSection {
    fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.mid_share) {
            return Err("mid_share must be a share, 0 to 1 (0.05 is 5 %)".into());
        }
        let within = |vol: f64| (0.001..=5.0).contains(&vol);
        if !(within(self.vol_min) && within(self.vol_max) && self.vol_min < self.vol_max) {
            return Err(
                "vol_min and vol_max must be 0.001 to 5 (0.15 is 15 %), the first below the second".into(),
            );
        }
        if !(0.0..=5.0).contains(&self.vol_distance_max) {
            return Err("vol_distance_max must be 0 to 5 (0.03 is three percent)".into());
        }
        Ok(())
    }

    /// As quoter and eye have it.
    pub fn guard(&self) -> Option<MarketGuard> {
        self.check.then(|| MarketGuard {
            better_max: self.better_max,
            mid_ticks: self.mid_ticks,
            mid_bp: (self.mid_share * 10_000.0).round() as u16,
            needs: match self.without_market {
                WithoutMarket::Pull => MarketNeed::BothSides,
                WithoutMarket::OneSide => MarketNeed::OneSide,
                WithoutMarket::Quote => MarketNeed::Nothing,
            },
            calm_ns: u64::from(self.calm_ms) * Nanos::MILLI,
        })
    }
}

/// Pre-trade limits.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Most contracts held, if every bid traded.
    pub long_max: u64,
    /// Most contracts short, if every offer traded.
    pub short_max: u64,
    /// Most contracts on both sides of all quotes.
    pub quoted_max: u64,
    /// Most premium paid less received, if every bid traded, in units of the options' currency; 0 is no
    /// limit.
    pub premium_paid_max: u64,
    /// Most premium received less paid, if every offer traded.
    pub premium_received_max: u64,
    /// Contracts of any one order and any side of a quote, at most: a configuration that says more is
    /// refused; 0 is no limit.
    pub size_max: u32,
    /// Price of an option, in points, above which nothing is quoted and the eye trades nothing; 0 is no
    /// limit.
    pub price_max: u64,
    /// Messages a second: mass quotes, and orders of the eye; when a quote that must move has no room in it,
    /// all are pulled.
    pub messages_per_s: u32,
    /// Of these, mass quotes that only improve.
    pub improvements_per_s: u32,
    /// An answer that takes longer ends trust in the session, milliseconds.
    pub answer_max_ms: u32,
    /// The operator must be heard this often (`tickwire quote --tell heartbeat`), milliseconds; 0 is no such
    /// need.
    pub heartbeat_ms: u32,
    /// The quoting thread pulls everything when it finds that it did not run for so long (stopped, swapped
    /// out, its core taken), before it does anything else, milliseconds; 0: it does not look.
    pub stall_ms: u32,
    /// Everything is pulled when no packet of the underlying's channel came for so long, milliseconds, and
    /// quoted again when they come; 0: however long. "auto" follows the channel: three times its longest
    /// pause of the last seconds, at least 250, at most 2.5 heartbeats of the venue or 5000.
    pub silence_ms: SilenceMs,
    /// The same when the underlying's own book did not change for so long, whatever else its channel sends;
    /// 0: however long.
    pub underlying_silence_ms: u32,
    /// Attempts to take a lost session up again before the run ends with exit code 4; 0: none.
    pub reconnects_max: u32,
    /// The wait before the first of them, milliseconds, 1 to 60000; each one doubles it, up to 5 s.
    pub reconnect_ms: u32,
    /// A loss of so much, in units of the options' currency, pulls all quotes; 0 is no limit.
    pub loss_max: u64,
    /// What is held is marked, for that, at theoretical values or at the market's mid prices: `worse` is
    /// whichever shows the larger loss.
    pub loss_by: LossMark,
}

/// Our own market maker protection, to be set tighter than the venue's; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OwnProtectionSection {
    /// How long fills count together, from the first of them, milliseconds.
    pub window_ms: u32,
    /// Fills.
    pub fills: u32,
    /// Contracts.
    pub contracts: u64,
    /// Contracts weighted by delta, either way.
    pub delta: f64,
}

/// What the account of the quoter reckons with.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RiskSection {
    /// Gains by theoretical value and by market mid that differ by more, in units of the options' currency,
    /// are a warning; 0 is none.
    pub mark_difference_max: u64,
    /// What a contract of an option costs to trade, in units of the options' currency. Without it, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_fee: Option<PriceText>,
    /// The same of the underlying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future_fee: Option<PriceText>,
    /// What was promised for every option; measured while the program quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obligations: Option<PromisedSection>,
}

/// What a market maker promised.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PromisedSection {
    /// The widest quote, in points.
    pub width_max: PriceText,
    /// Least contracts on each side.
    pub size_min: u32,
    /// Share of the options that are quoted so at once, 0 to 1,
    pub series_min: f64,
    /// for this share of the time, 0 to 1.
    pub time_min: f64,
}

fn default_volatility() -> f64 {
    0.15
}

fn no_core() -> i32 {
    -1
}

fn auto() -> Wait {
    Wait::Auto
}

fn default_reach() -> u16 {
    64
}

fn default_rehearse() -> u32 {
    10
}

fn default_reprice() -> u32 {
    1_000
}

fn default_size() -> u32 {
    10
}

fn default_entries() -> u8 {
    15
}

impl Default for TriggerSection {
    fn default() -> TriggerSection {
        TriggerSection {
            ticks: 1,
            life_min_us: 0,
            fade_ticks: 0,
            fade_ms: 0,
            retry_ms: 1_000,
            jump_half_ticks: 40,
            spread_max_ticks: 10,
            calm_ms: 100,
        }
    }
}

impl Default for MarketSection {
    fn default() -> MarketSection {
        let guard = MarketGuard::default();
        MarketSection {
            check: true,
            better_max: guard.better_max,
            mid_ticks: guard.mid_ticks,
            mid_share: f64::from(guard.mid_bp) / 10_000.0,
            without_market: WithoutMarket::Pull,
            calm_ms: (guard.calm_ns / Nanos::MILLI) as u32,
            vol_distance_max: 0.03,
            vol_min: 0.03,
            vol_max: 2.0,
        }
    }
}

impl Default for LimitsSection {
    fn default() -> LimitsSection {
        LimitsSection {
            long_max: 10_000,
            short_max: 10_000,
            quoted_max: 1_000_000,
            premium_paid_max: 0,
            premium_received_max: 0,
            size_max: 0,
            price_max: 0,
            messages_per_s: 500,
            improvements_per_s: 400,
            answer_max_ms: 1_000,
            heartbeat_ms: 0,
            stall_ms: 250,
            silence_ms: SilenceMs::Auto,
            underlying_silence_ms: 0,
            reconnects_max: 10,
            reconnect_ms: 200,
            loss_max: 0,
            loss_by: LossMark::Worse,
        }
    }
}

impl Default for RiskSection {
    fn default() -> RiskSection {
        RiskSection {
            mark_difference_max: 50_000,
            option_fee: None,
            future_fee: None,
            obligations: None,
        }
    }
}

/// A limit on premium, in units of money, as ticks times contracts; 0 is none.
fn in_ticks(money: u64, tick: Price, value: PointValue) -> u64 {
    let of_tick = value.money(tick.raw().into()).max(1);
    match money {
        0 => u64::MAX,
        money => u64::try_from(i128::from(money) * i128::from(Price::ONE_RAW) / of_tick).unwrap_or(u64::MAX),
    }
}

impl QuoterSection {
    /// Checks what concerns more than one value.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("quoter.{what}"));
        if !(1..=ENTRIES_MAX).contains(&usize::from(self.entries_max)) {
            return Err(format!("quoter.entries_max must be 1 to {ENTRIES_MAX}"));
        }
        if !(0.001..=5.0).contains(&self.volatility) {
            return wrong("volatility must be 0.001 to 5 (0.15 is 15 %)");
        }
        if !(-0.5..=1.0).contains(&self.rate) {
            return wrong("rate must be -0.5 to 1 (0.04 is 4 %)");
        }
        if self.size == 0 || self.size > 999_999 {
            return wrong("size must be 1 to 999999 contracts");
        }
        self.check_sizes()?;
        self.market.check().map_err(|e| format!("quoter.market: {e}"))?;
        if self.reach_half_ticks < 8 || self.reach_half_ticks > 4_096 {
            return wrong("reach_half_ticks must be 8 to 4096");
        }
        if self.limits.improvements_per_s > self.limits.messages_per_s {
            return wrong("limits.improvements_per_s is above limits.messages_per_s, which counts them too");
        }
        if !(1..=60_000).contains(&self.limits.reconnect_ms) {
            return wrong("limits.reconnect_ms must be 1 to 60000 milliseconds");
        }
        if !(0.0..=1e9).contains(&self.protection.delta) {
            return wrong("protection.delta must not be negative");
        }
        let has_limit =
            self.protection.fills > 0 || self.protection.contracts > 0 || self.protection.delta > 0.0;
        if has_limit && self.protection.window_ms == 0 {
            return wrong("protection has limits and no window_ms: over how long?");
        }
        for (nth, terms) in self.terms.iter().enumerate() {
            terms
                .check()
                .map_err(|e| format!("quoter.terms, number {}: {e}", nth + 1))?;
        }
        if let Some(promised) = &self.risk.obligations
            && [promised.series_min, promised.time_min]
                .iter()
                .any(|share| !(0.0..=1.0).contains(share))
        {
            return wrong("risk.obligations: series_min and time_min are shares, 0 to 1");
        }
        let eye = self.eye.as_ref().map(|eye| eye.check(self.reprice_ms));
        eye.unwrap_or(Ok(())).map_err(|e| format!("quoter.eye: {e}"))?;
        Ok(())
    }

    /// Whether every size is within `limits.size_max`.
    fn check_sizes(&self) -> Result<(), String> {
        let most = self.limits.size_max;
        let of_terms = |terms: &[TermsSection], of: &str| -> Vec<(String, u32)> {
            let each = terms.iter().enumerate();
            each.filter_map(|(nth, terms)| {
                Some((format!("{of}.terms, number {}: size", nth + 1), terms.size?))
            })
            .collect()
        };
        let mut sizes = vec![("quoter.size".to_string(), self.size)];
        sizes.extend(of_terms(&self.terms, "quoter"));
        if let Some(eye) = &self.eye {
            sizes.push(("quoter.eye.size".to_string(), eye.size));
            sizes.extend(of_terms(&eye.terms, "quoter.eye"));
            sizes.extend(
                eye.hedge
                    .map(|hedge| ("quoter.eye.hedge.size".to_string(), hedge.size)),
            );
        }
        match sizes.into_iter().find(|(_, size)| most > 0 && *size > most) {
            Some((what, size)) => Err(format!(
                "{what} {size} is above quoter.limits.size_max, which is {most}"
            )),
            None => Ok(()),
        }
    }

    /// What the quoter is made with, for so many options.
    pub fn quoter(
        &self,
        underlying: InstrumentId,
        (ticks, value): ([Price; 2], PointValue),
        quotes: u16,
        protocol: Protocol,
    ) -> QuoterConfig {
        let (t, l, p) = (&self.trigger, &self.limits, &self.protection);
        let millis = |ms: u32| u64::from(ms) * Nanos::MILLI;
        let by_orders = self.entry == QuoteEntry::Orders;
        let in_flight_max = QuoterConfig::default().in_flight_max;
        QuoterConfig {
            // Each option's change is answered by itself.
            in_flight_max: if by_orders {
                in_flight_max.max(quotes)
            } else {
                in_flight_max
            },
            underlying,
            underlying_tick: ticks[0],
            option_tick: ticks[1],
            quotes,
            size: Qty(self.size),
            entries_max: if by_orders { 1 } else { self.entries_max },
            trigger_ticks: t.ticks,
            life_min_ns: u64::from(t.life_min_us) * Nanos::MICRO,
            messages_max: l.messages_per_s,
            improvements_max: l.improvements_per_s,
            window_ns: Nanos::SECOND,
            market: self.market.guard(),
            fade_ticks: t.fade_ticks,
            fade_ns: millis(t.fade_ms),
            retry_ns: millis(t.retry_ms),
            jump_half_ticks: t.jump_half_ticks,
            spread_max_ticks: t.spread_max_ticks,
            calm_ns: millis(t.calm_ms),
            answer_max_ns: millis(l.answer_max_ms),
            heartbeat_ns: millis(l.heartbeat_ms),
            stall_ns: millis(l.stall_ms),
            silence: l.silence_ms.limits(protocol),
            underlying_silence_ns: millis(l.underlying_silence_ms),
            long_max: l.long_max,
            short_max: l.short_max,
            quoted_max: l.quoted_max,
            premium_max: [l.premium_paid_max, l.premium_received_max]
                .map(|most| in_ticks(most, ticks[1], value)),
            protection: Protection {
                window_ns: millis(p.window_ms),
                fills: p.fills,
                contracts: p.contracts,
                delta_milli: (p.delta * 1000.0) as u64,
            },
        }
    }

    /// The terms of an option of this delta, without sign.
    pub fn terms_of(&self, expiry: Date, strike: Price, kind: Kind, delta: f64) -> OptionTerms {
        let terms = OptionTerms {
            size: self.size,
            ..OptionTerms::default()
        };
        terms.with(&self.terms, (expiry, strike, kind, delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Config;

    const HEAD: &str = "[quoter]\ncomp_id = \"QUOTER\"\nunderlying = \"ESH6\"\n";

    fn parse(rest: &str) -> Result<QuoterSection, String> {
        Config::parse(&format!("{HEAD}{rest}")).map(|c| c.quoter.unwrap())
    }

    #[test]
    fn the_last_terms_that_match_decide_value_by_value() {
        let section = parse(
            "[[quoter.terms]]\nedge = 20.0\nsize = 5\n\
             [[quoter.terms]]\ndelta = [0.0, 0.25]\nedge_vol = 0.002\nask = false\n\
             [[quoter.terms]]\nexpiry = \"2026-03-20\"\nstrike = \"680000\"\nright = \"put\"\nedge = 7.5\n",
        )
        .unwrap();
        let expiry = Date {
            year: 2026,
            month: 3,
            day: 20,
        };
        let strike = Price::from_raw(680_000 * Price::ONE_RAW);
        let call = section.terms_of(expiry, strike, Kind::Call, 0.6);
        assert_eq!(
            (call.edge, call.edge_vol, call.size, call.sides),
            (20.0, 0.0, 5, [true; 2])
        );
        let put = section.terms_of(expiry, strike, Kind::Put, 0.2);
        assert_eq!(
            (put.edge, put.edge_vol, put.size, put.sides),
            (7.5, 0.002, 5, [true, false])
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (text, says) in [
            ("entries_max = 0\n", "entries_max"),
            ("volatility = 15.0\n", "15 %"),
            (
                "[quoter.limits]\nimprovements_per_s = 501\n",
                "improvements_per_s",
            ),
            ("[quoter.protection]\nfills = 3\n", "window_ms"),
            ("[[quoter.terms]]\nedge = -1.0\n", "number 1: edge"),
            (
                "[[quoter.terms]]\nwidth_min = 2.0\nwidth_max = 1.0\n",
                "width_min",
            ),
            ("[[quoter.terms]]\ndelta = [0.5, 0.2]\n", "delta"),
            ("[quoter.eye]\nsize = 0\n", "quoter.eye: size"),
            ("[quoter.market]\nmid_share = 5.0\n", "0.05 is 5 %"),
            ("[quoter.market]\nvol_max = 0.01\n", "the first below the second"),
            ("[quoter.market]\nwithout_market = \"guess\"\n", "one-side"),
            ("[quoter.trigger]\nbetter_max = 3\n", "better_max"),
            (
                "size = 12\n[quoter.limits]\nsize_max = 10\n",
                "quoter.size 12 is above quoter.limits.size_max, which is 10",
            ),
            (
                "[quoter.limits]\nsize_max = 10\n[[quoter.terms]]\nedge = 1.0\n[[quoter.terms]]\nsize = 11\n",
                "quoter.terms, number 2: size 11 is above",
            ),
            (
                "size = 5\n[quoter.limits]\nsize_max = 5\n[quoter.eye]\nsize = 6\n",
                "quoter.eye.size 6 is above",
            ),
            (
                "[quoter.risk.obligations]\nwidth_max = \"5\"\nsize_min = 1\nseries_min = 90.0\ntime_min = 0.8\n",
                "shares",
            ),
            ("[quoter.eye]\nladder_age_max_ms = 900\n", "ladder_age_max_ms"),
            (
                "[[quoter.eye.terms]]\nedge = -2.0\n",
                "quoter.eye: terms, number 1: edge",
            ),
            ("edgy = 1\n", "line 4"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
