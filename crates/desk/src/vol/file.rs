//! A file of volatilities: TOML that people write and edits change in place, so that comments and order stay.
//!
//! An edit changes the values that it is about and nothing else: what was written instead of what is known as
//! one [`Patch`], which undone gives the bytes before.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tickwire_market::{Date, Nanos};
use tickwire_options::surface::svi::{self, Guard, Quoted};
use tickwire_options::surface::{Controls, Curve, Edit, Roll, Smile, Surface, SurfaceConfig, Svi, Wing};
use tickwire_options::time::{BusinessClock, BusinessConfig, DayCount, TimedEvent};
use toml::Spanned;

use super::log::{Log, Patch};
use super::step::Steps;
use tickwire_console::failure::Failure;

/// A file of volatilities as it was read, and what edits need of it.
pub struct VolFile {
    /// Where it is written back to; none for text that came another way.
    path: Option<PathBuf>,
    text: String,
    sections: Sections,
    expiries: Vec<Expiry>,
    clock: Option<BusinessClock>,
    pub(super) log: Log,
    /// What this process has done and not undone, newest last.
    pub(super) done: Vec<(u64, Patch)>,
    /// Numbers of authors in the surface's own log.
    authors: Vec<String>,
}

/// An expiry, in the order of the surface.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// As it is written, for example `2026-03-20`.
    pub name: String,
    /// Its last day.
    pub date: Date,
    /// Discounts: per year of the calendar, continuously compounded.
    pub rate: f64,
    /// Strikes to be shown, in points.
    pub strikes: Vec<f64>,
    /// Quoted volatilities, by strike: strike, volatility, weight.
    pub quotes: Vec<(f64, f64, f64)>,
    /// When it ends.
    end: Nanos,
    /// Instead of the clock.
    years: Option<f64>,
}

impl Expiry {
    /// Years left by the calendar, Actual/365; of an expiry without a date, those of the file.
    fn calendar(&self, now: Nanos) -> f64 {
        self.years
            .unwrap_or_else(|| DayCount::Actual365.years(now, self.end))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    /// Price of the front future, in points.
    front: Spanned<f64>,
    /// Discounts, where an expiry has no rate of its own.
    #[serde(default)]
    rate: f64,
    /// Whether edits that give something away are refused.
    #[serde(default = "yes")]
    refuse_arbitrage: bool,
    clock: Option<Spanned<ClockSection>>,
    /// How far one edit may go.
    edits: Option<Spanned<Steps>>,
    expiry: Vec<ExpirySection>,
}

fn yes() -> bool {
    true
}

/// Business time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClockSection {
    utc_offset_s: i32,
    session_s: [u32; 2],
    session_share: f64,
    weekend_days: f64,
    holiday_days: f64,
    holidays: Vec<String>,
    days_per_year: f64,
    event: Vec<EventSection>,
}

impl Default for ClockSection {
    fn default() -> ClockSection {
        let d = BusinessConfig::default();
        ClockSection {
            utc_offset_s: d.utc_offset_s,
            session_s: [d.session_s.0, d.session_s.1],
            session_share: d.session_share,
            weekend_days: d.weekend_days,
            holiday_days: d.holiday_days,
            holidays: Vec::new(),
            days_per_year: d.days_per_year,
            event: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventSection {
    at: String,
    days: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpirySection {
    name: Spanned<String>,
    /// When it expires; without it at the end of its day, UTC.
    at: Option<Spanned<String>>,
    /// Time left, instead of the clock.
    years: Option<Spanned<f64>>,
    /// Expiries of the same link move together in straddle shifts; 0 is none.
    #[serde(default)]
    link: u16,
    rate: Option<f64>,
    roll: Option<Spanned<RollSection>>,
    /// Price of the forward that the curve was made at; the forward's without it.
    reference: Option<Spanned<f64>>,
    svi: Option<Spanned<SviSection>>,
    wing: Option<Spanned<WingSection>>,
    controls: Option<Spanned<ControlsSection>>,
    nudges: Option<Spanned<Vec<(f64, f64)>>>,
    /// Strike, volatility, and weight, 1 without it.
    quotes: Option<Spanned<Vec<Vec<f64>>>>,
    #[serde(default)]
    strikes: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum RollSection {
    Points { points: f64 },
    Carry { rate: f64, years: f64 },
}

/// Of total variance, made for so many years; for fewer there is less of it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SviSection {
    a: f64,
    b: f64,
    rho: f64,
    m: f64,
    sigma: f64,
    years: f64,
}

/// See [`Wing`]; what is left out is as in [`Wing::flat`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WingSection {
    vol: f64,
    slope: f64,
    put: f64,
    call: f64,
    down: f64,
    up: f64,
    down_smoothing: f64,
    up_smoothing: f64,
    vcr: f64,
    scr: f64,
}

impl Default for WingSection {
    fn default() -> WingSection {
        let Wing {
            slope,
            put,
            call,
            down,
            up,
            down_smoothing,
            up_smoothing,
            vcr,
            scr,
            ..
        } = Wing::flat(1.0);
        WingSection {
            // Must be said: no volatility is 0.
            vol: 0.0,
            slope,
            put,
            call,
            down,
            up,
            down_smoothing,
            up_smoothing,
            vcr,
            scr,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ControlsSection {
    atm: f64,
    slope: f64,
    put_wing: f64,
    call_wing: f64,
    pivot: f64,
    float: f64,
}

impl ControlsSection {
    fn controls(self) -> Controls {
        Controls {
            atm: self.atm,
            slope: self.slope,
            put_wing: self.put_wing,
            call_wing: self.call_wing,
            pivot: self.pivot,
            float: self.float,
        }
    }
}

impl Sections {
    fn read(text: &str) -> Result<Sections, String> {
        tickwire_console::settings::read(text)
    }
}

/// A message about a place in the text.
fn at(text: &str, span: Range<usize>, says: impl std::fmt::Display) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    format!("line {}: {says}", 1 + before.matches('\n').count())
}

/// A day as `2026-03-20`.
fn day(text: &str) -> Option<Date> {
    let day: jiff::civil::Date = text.parse().ok()?;
    let date = Date {
        year: day.year().try_into().ok()?,
        month: day.month() as u8,
        day: day.day() as u8,
    };
    // As it would be written again, of a century that the protocols have.
    (text.len() == 10 && (1970..2100).contains(&date.year)).then_some(date)
}

/// An instant as `2026-03-20T20:00:00Z`.
fn instant(text: &str) -> Option<Nanos> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok().map(Nanos)
}

/// Reads a file of volatilities and makes the surface that it says, for now.
///
/// # Errors
/// What is wrong with it, by line.
pub fn load(path: &Path) -> Result<(VolFile, Surface), Failure> {
    load_at(path, super::now())
}

pub(super) fn load_at(path: &Path, now: Nanos) -> Result<(VolFile, Surface), Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::config(format!(
            "cannot read {shown}: {e}; give a file of volatilities, such as examples/quoter/two-expiries.toml"
        ))
    })?;
    let (mut file, surface) =
        VolFile::parse(text, now).map_err(|e| Failure::config(format!("{shown}: {e}")))?;
    file.log = Log::open(path)?;
    file.path = Some(path.to_path_buf());
    Ok((file, surface))
}

impl VolFile {
    /// Reads a text and makes the surface that it says, for `now`.
    ///
    /// # Errors
    /// What is wrong with it, by line.
    pub fn parse(text: String, now: Nanos) -> Result<(VolFile, Surface), String> {
        let sections = Sections::read(&text)?;
        let clock = match &sections.clock {
            None => None,
            Some(section) => Some(business(section.get_ref()).map_err(|e| at(&text, section.span(), e))?),
        };
        if let Some(edits) = &sections.edits {
            edits
                .get_ref()
                .check()
                .map_err(|e| at(&text, edits.span(), format!("edits: {e}")))?;
        }
        let expiries = sections
            .expiry
            .iter()
            .map(|section| section.expiry(&text, sections.rate))
            .collect::<Result<Vec<Expiry>, String>>()?;
        if let Some(pair) = expiries
            .windows(2)
            .position(|pair| pair[1].date <= pair[0].date || pair[1].end <= pair[0].end)
        {
            let name = &sections.expiry[pair + 1].name;
            return Err(at(&text, name.span(), "expiries must be in order, each once"));
        }
        let file = VolFile {
            path: None,
            expiries,
            clock,
            log: Log::default(),
            done: Vec::new(),
            authors: Vec::new(),
            sections,
            text,
        };
        let surface = file.surface(now)?;
        Ok((file, surface))
    }

    /// Where it was read from.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// How far one edit may go.
    pub(super) fn steps(&self) -> Steps {
        let said = self.sections.edits.as_ref();
        said.map_or_else(Steps::default, |edits| *edits.get_ref())
    }

    /// The expiries, in the order of the surface.
    pub fn expiries(&self) -> &[Expiry] {
        &self.expiries
    }

    /// Years left to the expiry at a place: as its smile counts them (business time where the file has a
    /// clock), and by the calendar.
    pub fn years(&self, place: usize, now: Nanos) -> Option<[f64; 2]> {
        let expiry = self.expiries.get(place)?;
        let calendar = expiry.calendar(now);
        let smile = match (&self.clock, expiry.years) {
            (Some(clock), None) => clock.years(now, expiry.end),
            _ => calendar,
        };
        Some([smile, calendar])
    }

    /// The place of an expiry by its name, or by a part of it that no other begins with.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let exact = self.expiries.iter().position(|e| e.name == name);
        let mut begins = (0..self.expiries.len()).filter(|&e| self.expiries[e].name.starts_with(name));
        let only = begins
            .next()
            .filter(|_| begins.next().is_none() && !name.is_empty());
        exact.or(only)
    }

    /// Quoted volatilities to fit to from now on: strike, volatility, weight.
    #[allow(dead_code, reason = "for a quoter that sees the market of its options")]
    pub fn set_quotes(&mut self, place: usize, quotes: Vec<(f64, f64, f64)>) {
        if let Some(expiry) = self.expiries.get_mut(place) {
            expiry.quotes = quotes;
        }
    }

    /// Whether an expiry's time is what its file says, not the clock's.
    pub(super) fn has_years(&self, place: usize) -> bool {
        self.expiries.get(place).is_some_and(|e| e.years.is_some())
    }

    /// The text, as edits have left it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the surface is now as a text, at its price of the front future.
    ///
    /// # Errors
    /// As [`VolFile::rewritten`].
    pub(super) fn text_now(&self, surface: &Surface) -> Result<String, String> {
        // Before everything that may have changed.
        let front = self.sections.front.span();
        let mut text = self.rewritten(surface, None)?;
        text.replace_range(front, &format!("{:?}", surface.front()));
        Ok(text)
    }

    /// The number of an author in the surface's own log.
    pub(super) fn author(&mut self, who: &str) -> u32 {
        let known = self.authors.iter().position(|author| author == who);
        let at = known.unwrap_or_else(|| {
            self.authors.push(who.to_string());
            self.authors.len() - 1
        });
        at as u32
    }

    fn surface(&self, now: Nanos) -> Result<Surface, String> {
        let (text, sections) = (&self.text, &self.sections);
        let front = *sections.front.get_ref();
        if !(front.is_finite() && front > 0.0) {
            return Err(at(text, sections.front.span(), "front must be a number above 0"));
        }
        let smiles = (0..sections.expiry.len())
            .map(|place| self.smile(place, front, now))
            .collect::<Result<Vec<_>, String>>()?;
        let config = SurfaceConfig {
            refuses_arbitrage: sections.refuse_arbitrage,
            ..SurfaceConfig::default()
        };
        Surface::new(config, front, smiles).map_err(|e| format!("the volatilities: {e}"))
    }

    fn smile(&self, place: usize, front: f64, now: Nanos) -> Result<(Smile, Roll, u16), String> {
        let (text, section) = (&self.text, &self.sections.expiry[place]);
        let of =
            |span: Range<usize>, says: String| at(text, span, format!("{}: {says}", section.name.get_ref()));
        let here = section.name.span();
        let [years, _] = self.years(place, now).unwrap_or_default();
        if !(years.is_finite() && years > 0.0) {
            let says = "has expired: take it out, or give it years".to_string();
            return Err(of(here, says));
        }
        let roll = match &section.roll {
            None => Roll::Points(0.0),
            Some(roll) => match *roll.get_ref() {
                RollSection::Points { points } => Roll::Points(points),
                RollSection::Carry { rate, years } => Roll::Carry { rate, years },
            },
        };
        let forward = roll.forward(front);
        let reference = section.reference.as_ref().map_or(forward, |r| *r.get_ref());
        let (curve, span) = match (&section.svi, &section.wing) {
            (Some(svi), None) => {
                let (s, span) = (svi.get_ref(), svi.span());
                if !(s.years.is_finite() && s.years > 0.0) {
                    return Err(of(span, "years of svi must be above 0".to_string()));
                }
                let share = years / s.years;
                let svi = Svi {
                    a: s.a * share,
                    b: s.b * share,
                    rho: s.rho,
                    m: s.m,
                    sigma: s.sigma,
                };
                (Curve::Svi(svi), span)
            }
            (None, Some(wing)) => (Curve::Wing(wing.get_ref().wing()), wing.span()),
            (None, None) => match &section.quotes {
                Some(quotes) => {
                    let fitted = fit(&self.expiries[place].quotes, forward, years, None)
                        .map_err(|e| of(quotes.span(), e))?;
                    (Curve::Svi(fitted), quotes.span())
                }
                None => {
                    let says = "needs a curve: svi, wing, or quotes to fit one to".to_string();
                    return Err(of(here, says));
                }
            },
            (Some(_), Some(wing)) => {
                let says = "has svi and wing: one of them is its curve".to_string();
                return Err(of(wing.span(), says));
            }
        };
        let smile = Smile::new(curve, reference, years).ok_or_else(|| {
            let says = "the curve's parameters, or its reference, are out of their ranges";
            of(span, says.to_string())
        })?;
        let controls = section.controls.as_ref().map(|c| c.get_ref().controls());
        let nudges = section.nudges.as_ref().map(|n| n.get_ref().clone());
        let span = section.nudges.as_ref().map_or_else(
            || section.controls.as_ref().map_or(here, Spanned::span),
            Spanned::span,
        );
        let smile = smile
            .with(controls.unwrap_or_default(), nudges.unwrap_or_default())
            .ok_or_else(|| {
                let says = "a control is out of its range, or nudges are not of rising strikes";
                of(span, says.to_string())
            })?;
        Ok((smile, roll, section.link))
    }

    /// What the surface makes of the text: `edit` says which curve, roll or time is another one.
    ///
    /// # Errors
    /// The text cannot be changed by single values.
    pub(super) fn rewritten(&self, surface: &Surface, edit: Option<&Edit>) -> Result<String, String> {
        let mut changes: Vec<(Range<usize>, String)> = Vec::new();
        for (place, section) in self.sections.expiry.iter().enumerate() {
            let Some(smile) = surface.smile(place) else {
                continue;
            };
            let mut set = |key: &str, span: Option<Range<usize>>, value: String| {
                let change = match span {
                    Some(span) => (span, value),
                    None => {
                        let line = self.text[section.name.span().end..].find('\n');
                        match line {
                            Some(end) => {
                                let next = section.name.span().end + end + 1;
                                (next..next, format!("{key} = {value}\n"))
                            }
                            None => (self.text.len()..self.text.len(), format!("\n{key} = {value}")),
                        }
                    }
                };
                changes.push(change);
            };
            let before = section.controls.as_ref().map(|c| c.get_ref().controls());
            if before.unwrap_or_default() != *smile.controls() {
                let span = section.controls.as_ref().map(Spanned::span);
                set("controls", span, controls_text(smile.controls()));
            }
            let before = section.nudges.as_ref().map(|n| &n.get_ref()[..]);
            if before.unwrap_or_default() != smile.nudges() {
                let span = section.nudges.as_ref().map(Spanned::span);
                set("nudges", span, nudges_text(smile.nudges()));
            }
            let is_curve = matches!(edit, Some(Edit::Curve { expiry, .. }) if *expiry == place);
            let old = section
                .svi
                .as_ref()
                .map(Spanned::span)
                .or(section.wing.as_ref().map(Spanned::span));
            // A curve that was fitted, and where it was made, are said from now on: they must not follow the
            // front or the roll.
            if is_curve || old.is_none() {
                let (key, value) = curve_text(smile);
                match old {
                    // With its key, which may be another one.
                    Some(span) => {
                        let line = self.text[..span.start].rfind('\n').map_or(0, |end| end + 1);
                        set(key, Some(line..span.end), format!("{key} = {value}"));
                    }
                    None => set(key, None, value),
                }
            }
            if is_curve || section.reference.is_none() {
                let reference = section.reference.as_ref().map(Spanned::span);
                set("reference", reference, format!("{:?}", smile.reference()));
            }
            match edit {
                Some(Edit::Roll { expiry, roll }) if *expiry == place => {
                    set("roll", section.roll.as_ref().map(Spanned::span), roll_text(roll));
                }
                Some(Edit::Years { expiry, to }) if *expiry == place => {
                    set(
                        "years",
                        section.years.as_ref().map(Spanned::span),
                        format!("{to:?}"),
                    );
                }
                _ => {}
            }
        }
        // From the end, so that the places before stay what they are; what is put in at one place keeps its
        // order, and comes before what is written anew there.
        changes.reverse();
        changes.sort_by_key(|(span, _)| (std::cmp::Reverse(span.start), span.is_empty()));
        let mut text = self.text.clone();
        for (span, value) in changes {
            text.replace_range(span, &value);
        }
        Ok(text)
    }

    /// Another text in the place of this one, on disk too; how it differs.
    ///
    /// # Errors
    /// It is no file of volatilities, the file on disk is not the one that was read, or it cannot be written:
    /// nothing is changed.
    pub(super) fn replace(&mut self, text: String) -> Result<Patch, String> {
        let sections = Sections::read(&text)?;
        if let Some(path) = &self.path {
            let on_disk =
                std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            if on_disk != self.text {
                return Err(format!(
                    "{} was changed by somebody else since it was read; nothing is written",
                    path.display()
                ));
            }
            // In the place of the file at once, with its mode.
            tickwire_runtime::files::replace(path, &text, true)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        let patch = Patch::between(&self.text, &text);
        for (expiry, section) in self.expiries.iter_mut().zip(&sections.expiry) {
            expiry.years = section.years.as_ref().map(|y| *y.get_ref());
        }
        (self.text, self.sections) = (text, sections);
        Ok(patch)
    }
}

impl ExpirySection {
    fn expiry(&self, text: &str, rate: f64) -> Result<Expiry, String> {
        let name = self.name.get_ref();
        let date = day(name).ok_or_else(|| {
            let says = format!("name {name:?} must be the last day, such as \"2026-03-20\"");
            at(text, self.name.span(), says)
        })?;
        let end = match &self.at {
            None => Nanos((u64::from(date.days()) + 1) * Nanos::DAY),
            Some(end) => instant(end.get_ref()).ok_or_else(|| {
                let says = format!("{name}: at {:?} must be as \"{name}T20:00:00Z\"", end.get_ref());
                at(text, end.span(), says)
            })?,
        };
        // Edits change these in place.
        let inline = [
            ("controls", self.controls.as_ref().map(Spanned::span), '{'),
            ("svi", self.svi.as_ref().map(Spanned::span), '{'),
            ("wing", self.wing.as_ref().map(Spanned::span), '{'),
            ("roll", self.roll.as_ref().map(Spanned::span), '{'),
            ("nudges", self.nudges.as_ref().map(Spanned::span), '['),
        ];
        for (key, span, begins) in inline {
            let Some(span) = span else { continue };
            let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
            let is_key = text[line..span.start].trim_start().starts_with(key);
            if !(text[span.clone()].starts_with(begins) && is_key) {
                let says = format!("{name}: write {key} on a line of its own, as {key} = {begins} ...");
                return Err(at(text, span, says));
            }
        }
        let mut quotes = Vec::new();
        if let Some(given) = &self.quotes {
            for row in given.get_ref() {
                match row[..] {
                    [strike, vol] => quotes.push((strike, vol, 1.0)),
                    [strike, vol, weight] => quotes.push((strike, vol, weight)),
                    _ => {
                        let says = format!(
                            "{name}: a quote is [strike, volatility] or [strike, volatility, weight]"
                        );
                        return Err(at(text, given.span(), says));
                    }
                }
            }
        }
        Ok(Expiry {
            name: name.clone(),
            date,
            rate: self.rate.unwrap_or(rate),
            strikes: self.strikes.clone(),
            quotes,
            end,
            years: self.years.as_ref().map(|y| *y.get_ref()),
        })
    }
}

impl WingSection {
    /// The curve it says.
    pub fn wing(self) -> Wing {
        Wing {
            vol: self.vol,
            slope: self.slope,
            put: self.put,
            call: self.call,
            down: self.down,
            up: self.up,
            down_smoothing: self.down_smoothing,
            up_smoothing: self.up_smoothing,
            vcr: self.vcr,
            scr: self.scr,
        }
    }
}

fn business(section: &ClockSection) -> Result<BusinessClock, String> {
    let holidays = section
        .holidays
        .iter()
        .map(|text| {
            let date = day(text).ok_or(format!("holiday {text:?} must be as \"2026-12-25\""))?;
            Ok(date.days() as i32)
        })
        .collect::<Result<Vec<i32>, String>>()?;
    let events = section
        .event
        .iter()
        .map(|event| {
            let at = instant(&event.at).ok_or(format!(
                "event at {:?} must be as \"2026-12-10T19:00:00Z\"",
                event.at
            ))?;
            Ok(TimedEvent { at, days: event.days })
        })
        .collect::<Result<Vec<TimedEvent>, String>>()?;
    let [open, close] = section.session_s;
    BusinessClock::new(BusinessConfig {
        utc_offset_s: section.utc_offset_s,
        session_s: (open, close),
        session_share: section.session_share,
        weekend_days: section.weekend_days,
        holiday_days: section.holiday_days,
        holidays,
        events,
        days_per_year: section.days_per_year,
    })
    .map_err(|e| e.to_string())
}

/// A smile through quoted volatilities; `guard` is the volatility at the money before and how far it may
/// move.
pub(super) fn fit(
    quotes: &[(f64, f64, f64)],
    forward: f64,
    years: f64,
    guard: Option<(f64, f64)>,
) -> Result<Svi, String> {
    let quoted: Vec<Quoted> = quotes
        .iter()
        .map(|&(strike, vol, weight)| Quoted {
            k: (strike / forward).ln(),
            vol,
            weight,
        })
        .collect();
    let guard = Guard {
        atm: guard,
        ..Guard::default()
    };
    svi::fit(&quoted, years, &guard)
        .map(|fitted| fitted.svi)
        .map_err(|e| format!("no fit: {e}"))
}

fn controls_text(c: &Controls) -> String {
    format!(
        "{{ atm = {:?}, slope = {:?}, put_wing = {:?}, call_wing = {:?}, pivot = {:?}, float = {:?} }}",
        c.atm, c.slope, c.put_wing, c.call_wing, c.pivot, c.float
    )
}

fn nudges_text(nudges: &[(f64, f64)]) -> String {
    let each: Vec<String> = nudges
        .iter()
        .map(|(strike, by)| format!("[{strike:?}, {by:?}]"))
        .collect();
    format!("[{}]", each.join(", "))
}

/// Key and value.
fn curve_text(smile: &Smile) -> (&'static str, String) {
    match smile.curve() {
        Curve::Svi(s) => (
            "svi",
            format!(
                "{{ a = {:?}, b = {:?}, rho = {:?}, m = {:?}, sigma = {:?}, years = {:?} }}",
                s.a,
                s.b,
                s.rho,
                s.m,
                s.sigma,
                smile.years()
            ),
        ),
        Curve::Wing(w) => (
            "wing",
            format!(
                "{{ vol = {:?}, slope = {:?}, put = {:?}, call = {:?}, down = {:?}, up = {:?}, \
                 down_smoothing = {:?}, up_smoothing = {:?}, vcr = {:?}, scr = {:?} }}",
                w.vol, w.slope, w.put, w.call, w.down, w.up, w.down_smoothing, w.up_smoothing, w.vcr, w.scr
            ),
        ),
    }
}

fn roll_text(roll: &Roll) -> String {
    match roll {
        Roll::Points(points) => format!("{{ points = {points:?} }}"),
        Roll::Carry { rate, years } => format!("{{ rate = {rate:?}, years = {years:?} }}"),
    }
}
