//! The configuration that follows from a recording: `[[feed]]` and `[[feed.channel]]` as `replay`, `feed` and
//! a strategy's program read them.
//!
//! What packets say is in it: protocol, unit, session where it tells two apart, the groups of every port,
//! lines A and B. What they do not say is left to the reader and named in a comment: the venue, where several
//! speak one protocol (the first is taken unless told), servers of recovery, the network interface. What a
//! configuration has no word for is left out, with a sentence.

use std::collections::HashSet;
use std::fmt::Write;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;

use tickwire_feed::Line;
use tickwire_market::{Port, Venue};
use tickwire_replay::replay::Survey;
use tickwire_replay::replay::survey::Found;
use tickwire_venues::channels::{BUILT_IN, ChannelConfig, FeedConfig, FeedFile, Lines};
use tickwire_venues::protocol::Protocol;

/// A configuration.
#[derive(Debug)]
pub struct Written {
    /// The text of the file. It reads back as [`Written::feeds`].
    pub text: String,
    /// What is in it.
    pub feeds: Vec<FeedConfig>,
    /// Sentences about what is not, and why.
    pub left_out: Vec<String>,
}

/// The configuration of what a survey found. `venues`: whose packets they are, where a protocol is spoken by
/// several. `templates`: FAST template files of MOEX.
pub fn of(survey: &Survey, venues: &[Venue], templates: &[PathBuf]) -> Written {
    let mut feeds: Vec<FeedConfig> = Vec::new();
    let mut left_out = Vec::new();
    let mut used: HashSet<SocketAddrV4> = HashSet::new();
    for found in &survey.channels {
        match channel_of(found, &mut used, &mut left_out) {
            Ok(channel) => enter(&mut feeds, found, channel, venues, templates),
            Err(why) => left_out.push(why),
        }
    }
    // By what the reading side checks too: nothing is written that it would refuse.
    if let Err(fault) = FeedFile::new(feeds.clone()) {
        left_out.push(fault.to_string());
        feeds.clear();
    }
    Written {
        text: text_of(&feeds, &left_out),
        feeds,
        left_out,
    }
}

/// Puts a channel into the feed of its protocol that does not have its name yet, or into one more.
fn enter(
    feeds: &mut Vec<FeedConfig>,
    found: &Found,
    mut channel: ChannelConfig,
    venues: &[Venue],
    templates: &[PathBuf],
) {
    let session = found
        .session
        .and_then(|session| String::from_utf8(session.to_vec()).ok());
    let place = feeds.iter().position(|feed| {
        let is_taken = |name: &str| feed.channels.iter().any(|c| c.name == name);
        feed.protocol() == found.protocol
            && feed.session.is_none()
            && session.is_none()
            && (found.unit.is_none() || !is_taken(&channel.name))
    });
    if let Some(place) = place {
        if found.unit.is_none() {
            channel.name = (feeds[place].channels.len() + 1).to_string();
        }
        return feeds[place].channels.push(channel);
    }
    let mut feed = FeedConfig::on_loopback(found.protocol);
    if let Some(venue) = venues
        .iter()
        .find(|venue| Protocol::of_venue(**venue).contains(&found.protocol))
    {
        feed.venue = *venue;
        feed.protocol = (Protocol::of_venue(*venue).len() > 1).then_some(found.protocol);
    }
    let before = feeds.iter().filter(|other| other.venue == feed.venue).count();
    feed.name = (before > 0).then(|| format!("{}-{}", feed.venue.name(), before + 1));
    if found.protocol == Protocol::Moex && !templates.is_empty() {
        let whole = |path: &PathBuf| match path.as_os_str() == BUILT_IN {
            true => path.clone(),
            false => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
        };
        feed.templates = templates.iter().map(whole).collect();
    }
    feed.session = session;
    feed.channels = vec![channel];
    feeds.push(feed);
}

/// A channel with its groups. What cannot be said is an error if nothing is left, otherwise one more
/// sentence.
fn channel_of(
    found: &Found,
    used: &mut HashSet<SocketAddrV4>,
    left_out: &mut Vec<String>,
) -> Result<ChannelConfig, String> {
    let what = format!(
        "{} on {}",
        found.protocol,
        found.on.first().map_or(String::new(), |on| on.0.to_string())
    );
    let lines = |port: Port, left_out: &mut Vec<String>| -> Result<Option<Lines>, String> {
        let mut groups: [Option<SocketAddrV4>; 2] = [None, None];
        for (address, _, line) in found.on.iter().filter(|on| on.1 == port) {
            let at = match (line, groups) {
                // What is sent again has lines in a configuration too, in the order of their addresses.
                (Line::Retransmit, _) if port == Port::Live => None,
                (Line::A, [None, _]) | (Line::Retransmit, [None, _]) => Some(0),
                (_, [_, None]) => Some(1),
                _ => None,
            };
            let group = match address {
                SocketAddr::V4(group) if group.ip().is_multicast() => *group,
                _ => {
                    return Err(format!(
                        "{what}: {address} is no group of IPv4 multicast, which configurations name"
                    ));
                }
            };
            match at {
                Some(at) => groups[at] = Some(group),
                None => left_out.push(format!(
                    "{what}: {address} ({}, a third line or one that repeats) has no name in a configuration",
                    port.name()
                )),
            }
        }
        // A line B alone is all there is.
        let [a, b] = match groups {
            [None, b] => [b, None],
            both => both,
        };
        Ok(a.map(|a| Lines::new(a, b)))
    };
    let live = lines(Port::Live, left_out)?.ok_or_else(|| {
        format!("{what}: the recording has none of its live messages, and a channel needs their group")
    })?;
    if [Some(live.a), live.b]
        .into_iter()
        .flatten()
        .any(|group| used.contains(&group))
    {
        return Err(format!(
            "{what}: another session has the same group; a configuration names one (feed.session)"
        ));
    }
    used.extend([Some(live.a), live.b].into_iter().flatten());
    let mut channel = FeedConfig::on_loopback(found.protocol).channels.remove(0);
    channel.name = found.unit.unwrap_or(1).to_string();
    channel.live = live;
    channel.retransmission = lines(Port::Retransmission, left_out)?;
    channel.snapshot = lines(Port::Snapshot, left_out)?;
    channel.snapshot_by_order = lines(Port::SnapshotByOrder, left_out)?;
    channel.definitions = lines(Port::Definitions, left_out)?;
    (channel.requests, channel.replay, channel.snapshot_server) = (None, None, None);
    Ok(channel)
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => all.extend(['\\', c]),
            c if c.is_control() => _ = write!(all, "\\u{:04X}", u32::from(c)),
            c => all.push(c),
        }
    }
    all + "\""
}

fn text_of(feeds: &[FeedConfig], left_out: &[String]) -> String {
    let mut text = String::from(
        "# Feeds by group and port, found out of a recording by `tickwire inspect`. Put in what packets do not say before it is used\n\
         # live: the network interface, and the venue's servers of recovery (requests, replay, snapshot_server; see examples/).\n",
    );
    for why in left_out {
        _ = writeln!(text, "# Left out: {}", why.replace(char::is_control, " "));
    }
    for feed in feeds {
        let protocol = feed.protocol();
        let sisters = Venue::ALL
            .into_iter()
            .filter(|v| Protocol::of_venue(*v).contains(&protocol));
        let sisters: Vec<_> = sisters.map(Venue::name).collect();
        text += "\n[[feed]]\n";
        if let Some(name) = &feed.name {
            _ = writeln!(text, "name = {}", quoted(name));
        }
        _ = write!(text, "venue = {}", quoted(feed.venue.name()));
        text += &match sisters.len() {
            0 | 1 => "\n".to_string(),
            _ => format!("  # {protocol} is spoken by {}\n", sisters.join(", ")),
        };
        if let Some(protocol) = feed.protocol {
            _ = writeln!(text, "protocol = {}", quoted(protocol.name()));
        }
        _ = writeln!(text, "interface = \"127.0.0.1\"");
        if !feed.templates.is_empty() {
            let names: Vec<_> = feed
                .templates
                .iter()
                .map(|t| quoted(&t.to_string_lossy()))
                .collect();
            _ = writeln!(text, "templates = [{}]", names.join(", "));
        }
        if let Some(session) = &feed.session {
            _ = writeln!(text, "session = {}", quoted(session));
        }
        for channel in &feed.channels {
            _ = writeln!(text, "\n[[feed.channel]]\nname = {}", quoted(&channel.name));
            for port in Port::ALL {
                let Some(lines) = channel.lines(port) else {
                    continue;
                };
                let b = lines.b.map_or(String::new(), |b| format!(", b = \"{b}\""));
                _ = writeln!(text, "{} = {{ a = \"{}\"{b} }}", port.name(), lines.a);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(protocol: Protocol, unit: Option<u8>, on: &[(&str, Port, Line)]) -> Found {
        Found {
            protocol,
            unit,
            session: None,
            on: on
                .iter()
                .map(|(address, port, line)| (address.parse().expect("an address"), *port, *line))
                .collect(),
            load: Default::default(),
        }
    }

    #[test]
    fn units_are_channels_of_one_feed_and_a_second_unit_of_a_number_is_another_venue() {
        let unit =
            |number, group: &str| found(Protocol::Pitch, Some(number), &[(group, Port::Live, Line::A)]);
        let survey = Survey {
            channels: vec![
                unit(1, "239.1.1.1:30001"),
                unit(2, "239.1.1.2:30002"),
                unit(1, "239.2.1.1:31001"),
            ],
            ..Survey::default()
        };
        let written = of(&survey, &[Venue::Edgx], &[]);
        let names = |feed: &FeedConfig| feed.channels.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&written.feeds[0]), ["1", "2"], "{}", written.text);
        assert_eq!(names(&written.feeds[1]), ["1"]);
        assert_eq!(written.feeds[0].venue, Venue::Edgx);
        let read = FeedFile::parse(&written.text).expect("it reads back");
        assert_eq!(read.feeds, written.feeds);
    }

    #[test]
    fn what_a_configuration_has_no_word_for_is_said() {
        let survey = Survey {
            channels: vec![
                found(Protocol::Itch50, None, &[("10.0.0.1:30001", Port::Live, Line::A)]),
                found(Protocol::Mdp3, None, &[("239.1.1.9:5", Port::Snapshot, Line::A)]),
                found(
                    Protocol::Mdp3,
                    None,
                    &[
                        ("239.1.1.1:1", Port::Live, Line::A),
                        ("239.1.1.2:1", Port::Live, Line::B),
                        ("239.1.1.3:1", Port::Live, Line::Retransmit),
                        ("239.1.1.4:1", Port::Snapshot, Line::B),
                    ],
                ),
            ],
            ..Survey::default()
        };
        let written = of(&survey, &[], &[]);
        assert_eq!(written.feeds.len(), 1, "{}", written.text);
        assert_eq!(written.left_out.len(), 3, "{:?}", written.left_out);
        assert!(written.text.contains("# Left out: ") && written.text.contains("239.1.1.3:1"));
        assert!(
            written.text.contains("snapshot = { a = \"239.1.1.4:1\" }"),
            "{}",
            written.text
        );
        let read = FeedFile::parse(&written.text).expect("it reads back");
        assert_eq!(read.feeds, written.feeds);
    }
}
