//! Values of configurations that are written as text, and counts with a bound.

use serde::{Deserialize, Serialize};
use tickwire_fix::Version;
use tickwire_market::{Date, Nanos, Price};
use tickwire_wire::layout::Alpha;

/// Declares a value that is written as text and checked while it is read.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $read:expr, $show:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub $inner);
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(raw: String) -> Result<Self, String> {
                let read: fn(&str) -> Result<$inner, String> = $read;
                read(&raw).map($name)
            }
        }
        impl From<$name> for String {
            fn from(v: $name) -> String {
                let show: fn($inner) -> String = $show;
                show(v.0)
            }
        }
    )*};
}

fn alpha<const N: usize>(text: &str, least: usize, what: &str) -> Result<Alpha<N>, String> {
    let is_printable = text.bytes().all(|b| b.is_ascii_graphic());
    match Alpha::new(text.as_bytes()) {
        Some(alpha) if is_printable && text.len() >= least => Ok(alpha),
        _ => Err(format!(
            "{what} must be {least} to {N} printable ASCII characters without spaces, not {} characters of {text:?}",
            text.len()
        )),
    }
}

/// The characters without the blanks that fill the field; bytes that are no UTF-8 are shown as U+FFFD.
pub fn shown<const N: usize>(alpha: Alpha<N>) -> String {
    String::from_utf8_lossy(alpha.trimmed()).into_owned()
}

texts! {
    /// A version of FIX by its name.
    FixVersion(Version) |s| Version::from_name(s).ok_or_else(|| {
        let names: Vec<&str> = Version::ALL.iter().map(|v| v.name()).collect();
        format!("version {s:?} is none of {}", names.join(", "))
    }), |v| v.name().to_string();
    /// A user of OUCH.
    Username(Alpha<6>) |s| alpha(s, 1, "a username"), shown;
    /// The name of a firm.
    FirmName(Alpha<4>) |s| alpha(s, 1, "a firm's name"), shown;
    /// A SoupBinTCP session.
    SoupSessionName(Alpha<10>) |s| alpha(s, 1, "a session"), shown;
    /// A price, exact.
    PriceText(Price) |s| match s.parse::<Price>() {
        Ok(price) if price > Price::ZERO => Ok(price),
        _ => Err(format!("price {s:?} must be a decimal above 0 with at most nine decimals, as text")),
    }, |p| p.to_string();
    /// A price step.
    Tick(Price) |s| match s.parse::<Price>() {
        Ok(tick) if tick > Price::ZERO && tick.raw() % 100_000 == 0 => Ok(tick),
        _ => Err(format!("tick {s:?} must be a multiple of 0.0001 above 0, as text")),
    }, |p| p.to_string();
    /// A time of day in nanoseconds: `15:30:00` or `15:30:00.250`.
    TimeOfDay(u64) |s| {
        let wrong = || format!("time of day {s:?} must be like 15:30:00 or 15:30:00.250");
        let (clock, fraction) = s.split_once('.').unwrap_or((s, "0"));
        let parts: Vec<u64> = clock.split(':').filter_map(|part| part.parse().ok()).collect();
        let millis = format!("{fraction:0<3}").parse::<u64>().map_err(|_| wrong())?;
        match parts[..] {
            [hours @ 0..=23, minutes @ 0..=59, seconds @ 0..=59] if clock.len() == 8 && millis < 1000 => {
                Ok(((hours * 60 + minutes) * 60 + seconds) * Nanos::SECOND + millis * Nanos::MILLI)
            }
            _ => Err(wrong()),
        }
    }, |at| {
        let (seconds, millis) = (at / Nanos::SECOND, at % Nanos::SECOND / Nanos::MILLI);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
    };
    /// A factor of prices.
    DisplayFactor(Price) |s| match s.parse::<Price>() {
        Ok(factor) if factor > Price::ZERO => Ok(factor),
        _ => Err(format!("display_factor {s:?} must be a decimal above 0, as text")),
    }, |p| p.to_string();
    /// A day.
    DateText(Date) |s| {
        let parts: Vec<u16> = s.split('-').filter_map(|part| part.parse().ok()).collect();
        match parts[..] {
            [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] if s.len() == 10 => Ok(Date {
                year,
                month: month as u8,
                day: day as u8,
            }),
            _ => Err(format!("date {s:?} must be like 2026-03-20")),
        }
    }, |d| d.to_string();
}

/// A number above 0 with a bound.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident $max:literal, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(try_from = "u32", into = "u32")]
        pub struct $name(pub u32);
        impl TryFrom<u32> for $name {
            type Error = String;
            fn try_from(raw: u32) -> Result<Self, String> {
                match raw {
                    1..=$max => Ok($name(raw)),
                    _ => Err(format!(concat!($what, " {} is outside 1..=", $max), raw)),
                }
            }
        }
        impl From<$name> for u32 {
            fn from(v: $name) -> u32 {
                v.0
            }
        }
    )*};
}

counts! {
    /// A firm.
    FirmNumber 65_535, "firm";
    /// A lot.
    Lots 1_000_000, "lot";
    /// Some seconds.
    Seconds 3_600, "seconds";
    /// A window of market maker protection, milliseconds.
    WindowMs 86_400_000, "window_ms";
}

impl Default for Lots {
    fn default() -> Lots {
        Lots(1)
    }
}

impl Default for FixVersion {
    fn default() -> FixVersion {
        FixVersion(Version::Fix44)
    }
}

impl Default for SoupSessionName {
    fn default() -> SoupSessionName {
        SoupSessionName(Alpha(*b"TICKWIRE01"))
    }
}

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(5)
    }
}

impl Default for DisplayFactor {
    fn default() -> DisplayFactor {
        DisplayFactor(Price::from_raw(Price::ONE_RAW))
    }
}

impl Default for Tick {
    fn default() -> Tick {
        Tick(Price::from_4dp(100))
    }
}
