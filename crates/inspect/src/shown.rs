//! An inspection as text and as JSON.

use std::fmt;

use tickwire_console::terminal;
use tickwire_feed::Line;
use tickwire_lab::Table;
use tickwire_market::{Counter, Date, Nanos};
use tickwire_replay::replay::FedChannel;
use tickwire_venues::protocol::Protocol;

use crate::written::Written;
use crate::{Inspection, Peak, Rates};

/// Destinations of no channel that are named in text.
const LEFT_OUT_MAX: usize = 16;
/// What is said of every channel's messages, if it is not zero.
const DAMAGE: [Counter; 14] = [
    Counter::Gaps,
    Counter::MessagesMissed,
    Counter::MessagesRecovered,
    Counter::MessagesLost,
    Counter::PacketsDuplicate,
    Counter::MessagesDuplicate,
    Counter::LinesDiverged,
    Counter::Malformed,
    Counter::MalformedTruncated,
    Counter::MalformedLength,
    Counter::TrailingBytes,
    Counter::MessagesUnknown,
    Counter::BookRejects,
    Counter::PacketsIgnored,
];

/// A time: of the Unix epoch with its date, in UTC; within two days of zero as a time of day, which is what
/// files without a date have.
struct Moment(Nanos);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, of_day) = (self.0.0 / Nanos::DAY, self.0.0 % Nanos::DAY);
        let seconds = of_day / Nanos::SECOND;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let is_dated = days >= 2;
        if is_dated {
            write!(f, "{}T", Date::of_days(days as u32))?;
        }
        write!(
            f,
            "{hours:02}:{minutes:02}:{seconds:02}.{:09}",
            of_day % Nanos::SECOND
        )?;
        f.write_str(if is_dated { "Z" } else { "" })
    }
}

fn line_of((address, port, line): &(std::net::SocketAddr, tickwire_market::Port, Line)) -> String {
    let line = match line {
        Line::A => " a",
        Line::B => " b",
        Line::Retransmit => "",
    };
    format!("{}{line} {address}", port.name())
}

fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / Nanos::SECOND, ns % Nanos::SECOND / Nanos::MILLI)
}

fn peak_text(what: &str, peak: Peak) -> String {
    match peak.messages {
        0 => String::new(),
        messages => format!("busiest {what}: {messages} messages, from {}\n", Moment(peak.at)),
    }
}

fn peak_json(peak: Peak) -> serde_json::Value {
    serde_json::json!({ "messages": peak.messages, "at_ns": peak.at.0 })
}

fn rates_json(rates: &Rates) -> serde_json::Value {
    serde_json::json!({
        "messages": rates.messages,
        "packets": rates.packets,
        "bytes": rates.bytes,
        "first_ns": rates.span.map(|s| s[0].0),
        "last_ns": rates.span.map(|s| s[1].0),
        "messages_per_second": rates.mean(),
        "peak_second": peak_json(rates.peak_second()),
        "peak_millisecond": peak_json(rates.peak_millisecond()),
    })
}

fn channel_json(channel: &FedChannel, rates: &Rates, instruments: usize) -> serde_json::Value {
    serde_json::json!({
        "name": channel.name,
        "protocol": channel.protocol,
        "state": format!("{:?}", channel.state),
        "destinations": channel.on.iter().map(|(address, port, line)| serde_json::json!({
            "address": address.to_string(),
            "port": port.name(),
            "line": match line { Line::A => Some("a"), Line::B => Some("b"), Line::Retransmit => None },
        })).collect::<Vec<_>>(),
        "instruments": instruments,
        "books_without_beginning": channel.partial,
        "counters": tickwire_control::results::counters_by_id(&channel.counters),
        "rates": rates_json(rates),
    })
}

impl Inspection {
    /// Everything as JSON, in the words of `replay --json` where it says the same.
    pub fn to_json(&self, config: &Written) -> serde_json::Value {
        let channels = self.channels.iter().zip(&self.by_channel);
        let left_out = self.survey.left_out.iter().map(|(address, packets, protocol)| {
            serde_json::json!({
                "destination": address.to_string(),
                "packets": packets,
                "protocol": protocol.map(Protocol::name),
            })
        });
        serde_json::json!({
            "files": self.files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>(),
            "channels": channels.map(|(c, seen)| channel_json(c, &seen.rates, seen.instruments)).collect::<Vec<_>>(),
            "symbols": self.symbols.iter().map(|s| serde_json::json!({
                "symbol": s.symbol, "channel": s.channel, "events": s.events,
            })).collect::<Vec<_>>(),
            "rates": rates_json(&self.rates),
            "frames": self.frames.frames,
            "frames_without_udp": self.frames.total(),
            "frames_lost": self.frames.lost(),
            "frames_not_read": self.frames.not_read(),
            "frames_mended": self.frames.mended(),
            "left_out": left_out.collect::<Vec<_>>(),
            "destinations_with_heartbeats_only": self.survey.idle,
            "configuration": config.text,
            "not_in_configuration": config.left_out,
            "fault": self.fault,
        })
    }

    /// Everything as text. `symbols`: as many are listed, 0 is all.
    pub fn to_text(&self, symbols: usize, config: &Written) -> String {
        let columns = terminal::width();
        let mut text = String::new();
        if let Some([first, last]) = self.rates.span {
            text += &format!(
                "from {} to {}, {} s\n",
                Moment(first),
                Moment(last),
                seconds(last.since(first))
            );
        }
        let mean = self
            .rates
            .mean()
            .map_or(String::new(), |mean| format!(", {mean:.1} a second"));
        text += &format!("{} messages{mean}\n", self.rates.messages);
        text += &peak_text("second", self.rates.peak_second());
        text += &peak_text("millisecond", self.rates.peak_millisecond());
        let mut table = Table::new(
            "channels",
            &[
                "",
                "protocol",
                "state",
                "packets",
                "messages",
                "a second",
                "in a second",
                "in a ms",
                "symbols",
            ],
        );
        for (channel, seen) in self.channels.iter().zip(&self.by_channel) {
            let rates = &seen.rates;
            table = table.row([
                channel.name.clone(),
                channel.protocol.to_string(),
                format!("{:?}", channel.state),
                channel.packets.to_string(),
                rates.messages.to_string(),
                rates.mean().map_or("-".into(), |mean| format!("{mean:.1}")),
                rates.peak_second().messages.to_string(),
                rates.peak_millisecond().messages.to_string(),
                seen.instruments.to_string(),
            ]);
        }
        text += &format!("\n{}", table.to_text(columns));
        if self.channels.iter().any(|c| !c.on.is_empty()) {
            text += "\nlines and ports, found out by their content\n";
            for channel in self.channels.iter().filter(|c| !c.on.is_empty()) {
                let on: Vec<_> = channel.on.iter().map(line_of).collect();
                text += &format!("{}: {}\n", channel.name, on.join(", "));
            }
        }
        text += &self.damage_text(columns);
        text += &self.symbols_text(symbols, columns);
        if !config.feeds.is_empty() {
            let (feeds, channels) = (
                config.feeds.len(),
                config.feeds.iter().map(|f| f.channels.len()).sum::<usize>(),
            );
            text += &format!("\nconfiguration (--write-config): {feeds} feeds with {channels} channels\n");
        }
        for why in &config.left_out {
            text += &format!("not in the configuration: {why}\n");
        }
        text
    }

    fn symbols_text(&self, most: usize, columns: usize) -> String {
        let most = if most == 0 { self.symbols.len() } else { most };
        let all: u64 = self.symbols.iter().map(|s| s.events).sum();
        let mut table = Table::new(
            "symbols, by events told of each",
            &["", "events", "share, %", "channel"],
        );
        for one in self.symbols.iter().take(most) {
            table = table.row([
                one.symbol.clone(),
                one.events.to_string(),
                format!("{:.2}", one.events as f64 * 100.0 / all.max(1) as f64),
                self.channels[one.channel].name.clone(),
            ]);
        }
        let mut text = match self.symbols.len() {
            0 => String::new(),
            _ => format!("\n{}", table.to_text(columns)),
        };
        if self.symbols.len() > most {
            text += &format!("and {} more: --symbols 0 lists all\n", self.symbols.len() - most);
        }
        text
    }

    fn damage_text(&self, columns: usize) -> String {
        let mut table = Table::new("gaps, duplicates, damage", &["", "all"]);
        let all = self.counters();
        for counter in DAMAGE.into_iter().filter(|c| all.get(*c) > 0) {
            table = table.row([counter.spec().label.to_string(), all.get(counter).to_string()]);
        }
        let mut text = match table.rows().len() {
            0 => "\nno gap, no duplicate, no damage\n".to_string(),
            _ => format!("\n{}", table.to_text(columns)),
        };
        if self.frames.total() > 0 || !self.frames.mended().is_empty() {
            text += &format!("{}\n", self.frames);
        }
        for channel in &self.channels {
            let (lost, partial) = (channel.counters.get(Counter::MessagesLost), channel.partial);
            if lost > 0 {
                text += &format!("{}: {lost} messages are missing on every line\n", channel.name);
            }
            if partial > 0 {
                text += &format!(
                    "{}: begins in mid-session, {partial} books are partial\n",
                    channel.name
                );
            }
        }
        for (address, packets, protocol) in self.survey.left_out.iter().take(LEFT_OUT_MAX) {
            let what = match protocol {
                Some(protocol) => {
                    format!("are {protocol}, of which no books are kept here: see `tickwire decode`")
                }
                None => "are of no protocol known here".to_string(),
            };
            text += &format!("{packets} packets to {address} {what}\n");
        }
        if self.survey.left_out.len() > LEFT_OUT_MAX {
            text += &format!(
                "and {} more destinations\n",
                self.survey.left_out.len() - LEFT_OUT_MAX
            );
        }
        if self.survey.idle > 0 {
            text += &format!("destinations with heartbeats only: {}\n", self.survey.idle);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_date_only_where_its_clock_has_one() {
        let nine = Nanos(34_200 * Nanos::SECOND + 1);
        assert_eq!(Moment(nine).to_string(), "09:30:00.000000001");
        let dated = Nanos(1_763_683_200 * Nanos::SECOND + 500 * Nanos::MILLI);
        assert_eq!(Moment(dated).to_string(), "2025-11-21T00:00:00.500000000Z");
    }
}
