//! What clients of the control socket are answered.

use std::time::Duration;

use serde_json::{Value, json};
use tickwire_control::socket::{Answer, Request};
use tickwire_feed::Pattern;
use tickwire_runtime::shared::monotonic;
use tickwire_runtime::users::Peer;

use crate::command::{ChannelAnswer, Command, CommandLine, Deed};
use crate::daemon::Daemon;
use crate::statistics;

/// How long a feed thread may take for a command.
const COMMAND_PATIENCE: Duration = Duration::from_secs(5);

/// Answers the clients of the control socket.
pub(crate) struct ControlAnswers<'a, 'd, 'r> {
    pub(crate) daemon: &'a Daemon<'d, 'r>,
    pub(crate) lines: &'a [CommandLine],
    /// Somebody asked for the end.
    pub(crate) stop: bool,
}

impl<'d, 'r: 'd> Answer for ControlAnswers<'_, 'd, 'r> {
    type Request = Request;
    const WHO: &'static str = "a feed handler";

    fn answer(&mut self, request: Request, _: &Peer) -> Result<Value, String> {
        match request {
            Request::Subscribe { patterns, feed } => self.ask(Deed::Subscribe, &patterns, feed.as_deref()),
            Request::Unsubscribe { patterns, feed } => {
                self.ask(Deed::Unsubscribe, &patterns, feed.as_deref())
            }
            Request::Subscriptions { feed, statistics } => {
                let deed = if statistics { Deed::Statistics } else { Deed::List };
                self.ask(deed, &[], feed.as_deref())
            }
            Request::Status {} => Ok(self.status()),
            Request::Stop {} => {
                self.stop = true;
                Ok(json!({ "says": "ending" }))
            }
        }
    }
}

impl<'d, 'r: 'd> ControlAnswers<'_, 'd, 'r> {
    fn status(&self) -> Value {
        let counts = self.daemon.state_counts();
        json!({
            "pid": std::process::id(),
            "channels": { "building": counts[0], "live": counts[1], "stale": counts[2], "ended": counts[3] },
            "says": self.daemon.status_line(),
        })
    }

    /// Has every feed thread do a command.
    fn ask(&self, deed: Deed, patterns: &[String], feed: Option<&str>) -> Result<Value, String> {
        let feeds = &self.daemon.config.feed;
        let feed = match feed {
            None => None,
            Some(name) => match feeds.iter().position(|f| f.name() == name) {
                Some(number) => Some(number as u8),
                None => {
                    let names: Vec<&str> = feeds.iter().map(|f| f.name()).collect();
                    return Err(format!(
                        "no feed has the name {name:?}; there are {}",
                        names.join(", ")
                    ));
                }
            },
        };
        if patterns.is_empty() && !deed.is_question() {
            return Err("no pattern; name symbols, or * for all".into());
        }
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|text| text.parse().map_err(|e| format!("{text:?}: {e}")))
            .collect::<Result<_, String>>()?;
        let command = Command {
            deed,
            patterns,
            feed,
            answers: Vec::new(),
        };
        let mut answers = Vec::new();
        for line in self.lines {
            let beat = || self.daemon.region.heartbeat(monotonic());
            answers.extend(line.ask(command.clone(), COMMAND_PATIENCE, beat)?.answers);
        }
        self.state_after(deed, &answers)
    }

    /// What is subscribed to after a command, feed by feed, and what the command did.
    fn state_after(&self, deed: Deed, answers: &[ChannelAnswer]) -> Result<Value, String> {
        let mut list = Vec::new();
        let (mut matched, mut changed, mut refused) = (0, 0, None);
        for (number, feed) in self.daemon.config.feed.iter().enumerate() {
            let own: Vec<&ChannelAnswer> = answers.iter().filter(|a| usize::from(a.feed) == number).collect();
            let Some(first) = own.first() else { continue };
            let sum = |of: fn(&ChannelAnswer) -> u64| own.iter().map(|a| of(a)).sum::<u64>();
            let of_kind = |wanted: bool| -> Vec<String> {
                let rules = first.rules.iter().filter(|rule| rule.wanted == wanted);
                rules.map(|rule| rule.pattern.to_string()).collect()
            };
            let rules: Vec<String> = first
                .rules
                .iter()
                .map(|rule| format!("{}{}", if rule.wanted { '+' } else { '-' }, rule.pattern))
                .collect();
            let (seen, filtered) = (sum(|a| a.seen.seen), sum(|a| a.seen.filtered));
            let mut entry = json!({
                "feed": feed.name(),
                "patterns": of_kind(true),
                "except": of_kind(false),
                "rules": rules,
                "instruments": sum(|a| a.instruments.into()),
                "seen": seen,
                "filtered": filtered,
                "passed": seen - filtered,
            });
            if deed == Deed::Statistics {
                entry["statistics"] = statistics::of(&first.rules, own.iter().flat_map(|a| &a.counts));
            }
            if !deed.is_question() {
                let (named, joined) = (sum(|a| a.matched.into()), sum(|a| a.changed.into()));
                entry["matched"] = named.into();
                entry["changed"] = joined.into();
                entry["unchanged"] = named.saturating_sub(joined).into();
                matched += named;
                changed += joined;
            }
            refused = refused.or_else(|| {
                own.iter()
                    .find_map(|a| a.refused.as_ref().map(|e| format!("feed {}: {e}", feed.name())))
            });
            list.push(entry);
        }
        if let Some(e) = refused {
            return Err(e);
        }
        let mut answer = json!({ "subscriptions": list });
        if !deed.is_question() {
            let verb = if deed == Deed::Subscribe {
                "joining"
            } else {
                "leaving"
            };
            answer["says"] = format!(
                "{matched} known instruments match, {changed} {verb}, {} as before",
                matched.saturating_sub(changed)
            )
            .into();
        }
        Ok(answer)
    }
}
