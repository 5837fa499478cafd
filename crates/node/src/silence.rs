//! For how long market data may be silent before what rests by it is withdrawn.

use serde::{Deserialize, Serialize};
use tickwire_market::Nanos;
use tickwire_trading::SilenceConfig;
use tickwire_venues::protocol::Protocol;

/// The longest silence of market data that is believed by itself: what a venue has that sends a heartbeat
/// every two seconds. Those of CME come after thirty, which is too long to quote by nothing.
const SILENCE_MAX_NS: u64 = 5 * Nanos::SECOND;

/// For how long market data may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceMs {
    /// As the channel and the venue have it.
    Auto,
    /// Milliseconds; 0 is for any time.
    Fixed(u32),
}

impl SilenceMs {
    /// As the quoter takes it, on a feed of this protocol.
    pub fn limits(self, protocol: Protocol) -> SilenceConfig {
        let longest = u64::from(protocol.heartbeat_s()) * 5 * Nanos::SECOND / 2;
        match self {
            SilenceMs::Auto => SilenceConfig {
                least_ns: 250 * Nanos::MILLI,
                most_ns: longest.min(SILENCE_MAX_NS),
            },
            SilenceMs::Fixed(ms) => SilenceConfig {
                least_ns: u64::from(ms) * Nanos::MILLI,
                most_ns: u64::from(ms) * Nanos::MILLI,
            },
        }
    }
}

impl Serialize for SilenceMs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SilenceMs::Auto => serializer.serialize_str("auto"),
            SilenceMs::Fixed(ms) => serializer.serialize_u32(*ms),
        }
    }
}

impl<'de> Deserialize<'de> for SilenceMs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<SilenceMs, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = SilenceMs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("milliseconds, 0 to 4294967295, or \"auto\"")
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<SilenceMs, E> {
                u32::try_from(value)
                    .map(SilenceMs::Fixed)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<SilenceMs, E> {
                match value {
                    "auto" => Ok(SilenceMs::Auto),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(value), &self)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
