//! What a venue lets a receiver ask for, and how patient it is: a feed's `[feed.recovery]`. What is left out
//! is the venue's own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tickwire_feed::{ArbiterConfig, CqsChannel, Mdp3Channel, MoexChannelConfig, PitchUnit, RecoveryLimits};
use tickwire_market::Nanos;

use crate::protocol::Protocol;

/// See the module's description. A number of requests or snapshots of 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoverySection {
    /// The most messages of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_messages: Option<u16>,
    /// Requests that wait for their answers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_under_way: Option<u16>,
    /// Requests in any second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
    /// Requests in any minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Requests in a day of the venue, from 07:00 UTC on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_day: Option<u32>,
    /// With a snapshot at hand, more missing messages than this are not requested, whatever is sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_gap_max: Option<u64>,
    /// Snapshots begun in any minute: logins, or requests of a refresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots_per_minute: Option<u32>,
    /// Snapshots begun in a day of the venue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots_per_day: Option<u32>,
    /// How long a snapshot is taken to need before one was measured, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_ms: Option<u32>,
    /// How long a snapshot waits after the one before, milliseconds; twice as long each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u32>,
    /// The longest such wait, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_max_ms: Option<u32>,
    /// Without progress for so long the feed goes on, marked, milliseconds; 0: it waits for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u32>,
    /// How long it goes on marked before recovery is tried again, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u32>,
    /// A number further ahead, beside what the rate makes of a silence, is believed when the other line or
    /// time confirms it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump_max: Option<u64>,
    /// Of how many messages, the latest, lines A and B are compared by content; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare_messages: Option<u32>,
}

/// What a protocol's venues allow.
pub fn limits_of(protocol: Protocol) -> ArbiterConfig {
    let with = |recovery, request_messages| ArbiterConfig {
        recovery,
        request_messages,
        ..ArbiterConfig::default()
    };
    let venue = match protocol {
        Protocol::Itch50 | Protocol::Uqdf => ArbiterConfig::default(),
        Protocol::Pitch | Protocol::PitchOptions | Protocol::PitchComplex | Protocol::PitchFutures => {
            PitchUnit::arbiter_config(1)
        }
        Protocol::Xdp => with(RecoveryLimits::XDP, RecoveryLimits::NYSE_MESSAGES),
        Protocol::Openbook => with(RecoveryLimits::OPENBOOK, RecoveryLimits::NYSE_MESSAGES),
        Protocol::Cqs => CqsChannel::arbiter_config(),
        Protocol::Mdp3 => Mdp3Channel::arbiter_config(),
        Protocol::Moex => MoexChannelConfig::arbiter(),
    };
    ArbiterConfig {
        compare_seed: compare_seed(),
        ..venue
    }
}

/// What the hashes of packets begin with: another number in every process, as whoever sends must not know it.
fn compare_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

fn ms(ns: u64) -> Option<u32> {
    u32::try_from(ns / Nanos::MILLI).ok()
}

impl RecoverySection {
    /// What a configuration says.
    pub fn of(config: &ArbiterConfig) -> RecoverySection {
        let limits = &config.recovery;
        RecoverySection {
            request_messages: Some(config.request_messages),
            requests_under_way: Some(limits.requests_under_way),
            requests_per_second: Some(limits.requests_per_second),
            requests_per_minute: Some(limits.requests_per_minute),
            requests_per_day: Some(limits.requests_per_day),
            request_gap_max: Some(config.request_gap_max),
            snapshots_per_minute: Some(limits.snapshots_per_minute),
            snapshots_per_day: Some(limits.snapshots_per_day),
            snapshot_ms: ms(limits.snapshot_ns),
            backoff_ms: ms(limits.backoff_ns),
            backoff_max_ms: ms(limits.backoff_max_ns),
            deadline_ms: ms(limits.deadline_ns),
            retry_ms: ms(limits.retry_ns),
            jump_max: Some(config.jump_max),
            compare_messages: Some(config.compare_messages),
        }
    }

    /// A configuration with what the section says in its place.
    pub fn over(&self, base: ArbiterConfig) -> ArbiterConfig {
        let limits = base.recovery;
        let ns =
            |said: Option<u32>, otherwise: u64| said.map_or(otherwise, |ms| u64::from(ms) * Nanos::MILLI);
        ArbiterConfig {
            request_messages: self.request_messages.unwrap_or(base.request_messages),
            request_gap_max: self.request_gap_max.unwrap_or(base.request_gap_max),
            jump_max: self.jump_max.unwrap_or(base.jump_max),
            compare_messages: self.compare_messages.unwrap_or(base.compare_messages),
            recovery: RecoveryLimits {
                requests_under_way: self.requests_under_way.unwrap_or(limits.requests_under_way),
                requests_per_second: self.requests_per_second.unwrap_or(limits.requests_per_second),
                requests_per_minute: self.requests_per_minute.unwrap_or(limits.requests_per_minute),
                requests_per_day: self.requests_per_day.unwrap_or(limits.requests_per_day),
                snapshots_per_minute: self.snapshots_per_minute.unwrap_or(limits.snapshots_per_minute),
                snapshots_per_day: self.snapshots_per_day.unwrap_or(limits.snapshots_per_day),
                snapshot_ns: ns(self.snapshot_ms, limits.snapshot_ns),
                backoff_ns: ns(self.backoff_ms, limits.backoff_ns),
                backoff_max_ns: ns(self.backoff_max_ms, limits.backoff_max_ns),
                deadline_ns: ns(self.deadline_ms, limits.deadline_ns),
                retry_ns: ns(self.retry_ms, limits.retry_ns),
                ..limits
            },
            ..base
        }
    }

    /// With the venue's own in the place of what is left out.
    pub fn whole(section: Option<RecoverySection>, protocol: Protocol) -> RecoverySection {
        RecoverySection::of(&section.unwrap_or_default().over(limits_of(protocol)))
    }

    /// What is wrong with it, for a feed of that protocol.
    pub fn check(&self, protocol: Protocol) -> Result<(), String> {
        let venue = limits_of(protocol);
        if let Some(messages) = self.request_messages
            && !(1..=venue.request_messages).contains(&messages)
        {
            return Err(format!(
                "recovery.request_messages = {messages} is outside 1..={}, the most that {protocol} gives for one request",
                venue.request_messages
            ));
        }
        let under_way_max = match protocol {
            // One request a connection, one connection at a time.
            Protocol::Mdp3 | Protocol::Moex => 1,
            _ => 256,
        };
        match self.requests_under_way {
            Some(requests) if !(1..=under_way_max).contains(&requests) => Err(format!(
                "recovery.requests_under_way = {requests} is outside 1..={under_way_max} for {protocol}"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiring::PUBLISHED;

    #[test]
    fn every_key_changes_what_the_planner_is_made_with() {
        for protocol in PUBLISHED {
            let whole = RecoverySection::whole(None, protocol);
            let before = format!("{:?}", whole.over(limits_of(protocol)));
            assert_eq!(
                before,
                format!("{:?}", limits_of(protocol)),
                "{protocol}: its own limits"
            );
            let toml::Value::Table(table) = toml::Value::try_from(whole).unwrap() else {
                panic!("a table");
            };
            assert_eq!(table.len(), 15, "{protocol}: every key is printed");
            for key in table.keys() {
                let mut other = table.clone();
                let value = table[key].as_integer().unwrap();
                other.insert(key.clone(), toml::Value::Integer(value + 1));
                let section: RecoverySection = toml::Value::Table(other).try_into().unwrap();
                assert_ne!(
                    before,
                    format!("{:?}", section.over(limits_of(protocol))),
                    "{protocol}: {key}"
                );
            }
        }
    }

    #[test]
    fn more_than_a_venue_gives_is_refused() {
        let section = RecoverySection {
            request_messages: Some(101),
            ..RecoverySection::default()
        };
        assert!(section.check(Protocol::Pitch).unwrap_err().contains("1..=100"));
        assert!(section.check(Protocol::Xdp).is_ok());
        let section = RecoverySection {
            requests_under_way: Some(2),
            ..RecoverySection::default()
        };
        assert!(section.check(Protocol::Mdp3).is_err() && section.check(Protocol::Itch50).is_ok());
    }
}
