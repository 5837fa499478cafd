//! The state of the whole daemon as text: `tickwire top` again and again, `tickwire stats` once.

use tickwire_lab::{Table, format_count, format_ns};
use tickwire_market::{Counter, Counters};

use super::ladder::{age, state_mark};
use super::model::{Condition, Distribution, Interval, Kind, Reading, Source, State};
use super::text::{Column, Grid, Line, Page, Tone, bytes, rate, span, time_of_day};

/// What the daemon says about subscriptions, or why that is not known.
pub(crate) type Subscriptions = Result<Vec<String>, String>;

/// The page of `top`.
pub(crate) fn page(
    reading: &Reading,
    interval: Option<&Interval>,
    subscriptions: &Subscriptions,
    width: usize,
) -> Page {
    let mut page = head(reading);
    page.line(subscription_line(subscriptions));
    page.blank();
    page.lines(sources(reading, interval).lines(width));
    page
}

/// The text of `stats`.
pub(crate) fn stats(
    reading: &Reading,
    interval: Option<&Interval>,
    subscriptions: &Subscriptions,
    width: usize,
) -> Page {
    let mut page = page(reading, interval, subscriptions, width);
    page.blank();
    page.lines(counters(reading).to_text(width).lines().map(Line::plain));
    page.blank();
    page.lines(kinds(reading).lines(width));
    page
}

fn head(reading: &Reading) -> Page {
    let daemon = &reading.daemon;
    let (tone, condition) = match daemon.condition {
        Condition::Ready => (Tone::Good, "ready".to_string()),
        Condition::Starting => (Tone::Warning, "STARTING: opens its feeds".to_string()),
        Condition::Ended => (
            Tone::Loud,
            " ENDED: what stands here is its last word ".to_string(),
        ),
        Condition::Dead => (Tone::Loud, " DEAD: its process is gone ".to_string()),
        Condition::Silent => {
            let heard = span(daemon.heartbeat_age_ns);
            (Tone::Loud, format!(" SILENT: no heartbeat for {heard} "))
        }
    };
    let mut page = Page::new();
    let up = span(reading.now_ns.saturating_sub(daemon.generation));
    let clock = time_of_day(reading.now_ns);
    let clock = clock.split('.').next().unwrap_or("");
    page.line(
        Line::toned(Tone::Strong, "tickwire feed  ")
            .then(tone, condition)
            .then(
                Tone::Plain,
                format!("  {}  pid {}  up {up}  ", daemon.folder, daemon.pid),
            )
            .then(Tone::Faint, clock),
    );
    let room =
        |name: &str, used: u64, of: u64| format!("{name} {} of {}", format_count(used), format_count(of));
    let rings: u64 = daemon.rings.iter().map(|ring| ring.used).sum();
    let room_left = |used: u64, of: u64| of == 0 || used < of;
    let tight = !room_left(daemon.books.used, daemon.books.of)
        || !room_left(daemon.super_books.used, daemon.super_books.of);
    page.line(Line::toned(
        if tight { Tone::Loud } else { Tone::Plain },
        format!(
            "{}  {}  ring records {}  memory {}  heartbeat {} ago",
            room("books", daemon.books.used, daemon.books.of),
            room(
                "consolidated books",
                daemon.super_books.used,
                daemon.super_books.of
            ),
            format_count(rings),
            bytes(daemon.memory_bytes),
            span(daemon.heartbeat_age_ns),
        ),
    ));
    let count = |state: State| reading.sources.iter().filter(|s| s.state == state).count();
    let mut line = Line::plain(format!(
        "{} feeds, {} sources:",
        reading.feeds().len(),
        reading.sources.len()
    ));
    for state in [State::Live, State::Building, State::Stale, State::Ended] {
        if count(state) > 0 {
            let (tone, name) = state_mark(state);
            line = line
                .then(Tone::Plain, " ")
                .then(tone, format!("{} {name}", count(state)));
        }
    }
    if reading.is_recorded() {
        line = line.then(
            Tone::Warning,
            "; packets are recorded ones: ages are from the newest of them",
        );
    }
    page.line(line);
    page
}

fn subscription_line(subscriptions: &Subscriptions) -> Line {
    match subscriptions {
        Ok(patterns) if patterns.is_empty() => Line::plain("subscribed to nothing"),
        Ok(patterns) => Line::plain(format!("subscribed to {}", patterns.join(", "))),
        Err(why) => Line::toned(Tone::Faint, format!("subscriptions not known: {why}")),
    }
}

/// Packets of both lines.
fn packets(counters: &Counters) -> u64 {
    counters.get(Counter::PacketsA) + counters.get(Counter::PacketsB)
}

/// A line per source and one for all. Rates and latencies are those of the interval; without one, latencies
/// are since the start.
fn sources(reading: &Reading, interval: Option<&Interval>) -> Grid {
    let arrivals = measured(reading);
    let mut columns = vec![
        Column::words("source", 9),
        Column::words("state", 9),
        Column::number("packets/s", 5),
        Column::number("messages/s", 7),
        Column::number("updates/s", 4),
        Column::number("p50", 5),
        Column::number("p99", 6),
        Column::number("most", 3),
        Column::number("gaps", 8),
        Column::number("lost", 7),
        Column::number("filtered", 3),
        Column::number("kernel drops", 2),
        Column::number("last packet", 4),
        Column::number("next", 1),
    ];
    columns.extend(arrivals.iter().map(|(_, name)| Column::number(name, 2)));
    let mut grid = Grid::new(&columns);
    for source in &reading.sources {
        let done = interval.and_then(|interval| interval.of(&source.name));
        let latency = done.as_ref().map_or(&source.latency, |done| &done.latency);
        let rates = match (interval, &done) {
            (Some(interval), Some(done)) => rates(interval, &done.counters, done.updates),
            _ => Default::default(),
        };
        let (tone, state) = state_mark(source.state);
        let mut row = vec![(Tone::Plain, source.name.clone()), (tone, state.to_string())];
        row.extend(figures(rates, latency, &source.counters));
        row.push((Tone::Plain, age(reading.stamp_now_ns(), source.last_packet_ns)));
        row.push((Tone::Faint, source.next_seq.to_string()));
        row.extend(arrivals.iter().map(|(at, _)| median(&source.arrivals[*at])));
        grid.row(row);
    }
    if reading.sources.len() > 1 {
        let mut row = all(reading, interval);
        row.extend(arrivals.iter().map(|(at, _)| {
            let mut sum = Distribution::default();
            reading
                .sources
                .iter()
                .for_each(|source| sum.add(&source.arrivals[*at]));
            median(&sum)
        }));
        grid.row(row);
    }
    grid
}

/// The parts of the way to memory that were measured of some source, by their place and with the title of
/// their column.
fn measured(reading: &Reading) -> Vec<(usize, &'static str)> {
    let titles = ["wire→hook", "hook→user", "kernel→user"];
    let parts = titles.into_iter().enumerate();
    let is_measured = |at: usize| {
        reading
            .sources
            .iter()
            .any(|source| !source.arrivals[at].is_empty())
    };
    parts.filter(|(at, _)| is_measured(*at)).collect()
}

/// The median since the start; nothing where nothing was measured.
fn median(latency: &Distribution) -> (Tone, String) {
    let text = match latency.is_empty() {
        true => String::new(),
        false => format_ns(latency.at_quantile(0.5)),
    };
    (Tone::Plain, text)
}

fn all(reading: &Reading, interval: Option<&Interval>) -> Vec<(Tone, String)> {
    let mut counters = Counters::default();
    let mut latency = Distribution::default();
    for source in &reading.sources {
        counters.merge(&source.counters);
        latency.add(&source.latency);
    }
    let done = interval.map(|interval| interval.of_all(reading.sources.iter()));
    let rates = match (interval, &done) {
        (Some(interval), Some(done)) => rates(interval, &done.counters, done.updates),
        _ => Default::default(),
    };
    let latency = done.as_ref().map_or(&latency, |done| &done.latency);
    let last = reading
        .sources
        .iter()
        .map(|s| s.last_packet_ns)
        .max()
        .unwrap_or(0);
    let mut row = vec![(Tone::Strong, "all".to_string()), (Tone::Plain, String::new())];
    row.extend(figures(rates, latency, &counters));
    row.push((Tone::Plain, age(reading.stamp_now_ns(), last)));
    row.push((Tone::Plain, String::new()));
    row
}

/// Packets, messages and updates per second.
fn rates(interval: &Interval, counters: &Counters, updates: u64) -> [String; 3] {
    [packets(counters), counters.get(Counter::Messages), updates]
        .map(|count| rate(interval.per_second(count)))
}

/// The columns from `packets/s` to `kernel drops`.
fn figures(rates: [String; 3], latency: &Distribution, counters: &Counters) -> Vec<(Tone, String)> {
    let time = |ns: u64| {
        if latency.is_empty() {
            String::new()
        } else {
            format_ns(ns)
        }
    };
    let bad = |counter: Counter| match counters.get(counter) {
        0 => (Tone::Plain, "0".to_string()),
        n => (Tone::Warning, format_count(n)),
    };
    let mut cells: Vec<(Tone, String)> = rates.into_iter().map(|text| (Tone::Plain, text)).collect();
    cells.extend([
        (Tone::Plain, time(latency.at_quantile(0.5))),
        (Tone::Plain, time(latency.at_quantile(0.99))),
        (Tone::Plain, time(latency.max_ns)),
        bad(Counter::Gaps),
        bad(Counter::MessagesLost),
        (Tone::Plain, format_count(counters.get(Counter::MessagesFiltered))),
        bad(Counter::KernelDrops),
    ]);
    cells
}

/// Every counter that is not 0 everywhere, a column per feed.
fn counters(reading: &Reading) -> Table {
    let feeds = reading.feeds();
    let sums: Vec<Counters> = feeds.iter().map(|feed| summed(reading.of_feed(feed))).collect();
    let sets: Vec<(&str, &Counters)> = feeds.iter().copied().zip(&sums).collect();
    Table::counters("counters since the start", &sets)
}

/// The counters of several sources.
pub(crate) fn summed<'a>(sources: impl Iterator<Item = &'a Source>) -> Counters {
    sources.fold(Counters::default(), |mut sum, source| {
        sum.merge(&source.counters);
        sum
    })
}

/// The message types of a feed, its sources taken together, most seen first.
pub(crate) fn kinds_of<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in sources.flat_map(|source| &source.kinds) {
        let at = kinds.iter().position(|known| known.name == kind.name);
        let at = at.unwrap_or_else(|| {
            kinds.push(Kind {
                name: kind.name.clone(),
                ..Kind::default()
            });
            kinds.len() - 1
        });
        kinds[at].seen += kind.seen;
        kinds[at].filtered += kind.filtered;
        kinds[at].latency.add(&kind.latency);
    }
    kinds.sort_by(|a, b| b.seen.cmp(&a.seen).then_with(|| a.name.cmp(&b.name)));
    kinds
}

/// What was seen, filtered and passed, by feed and message type, with its latency.
fn kinds(reading: &Reading) -> Grid {
    let mut grid = Grid::new(&[
        Column::words("feed", 9),
        Column::words("type", 9),
        Column::number("seen", 8),
        Column::number("filtered", 6),
        Column::number("passed", 7),
        Column::number("p50", 4),
        Column::number("p99", 5),
        Column::number("most", 3),
    ]);
    for feed in reading.feeds() {
        for kind in kinds_of(reading.of_feed(feed)) {
            let time = |ns: u64| {
                if kind.latency.is_empty() {
                    String::new()
                } else {
                    format_ns(ns)
                }
            };
            grid.row(
                [
                    feed.to_string(),
                    kind.name.clone(),
                    format_count(kind.seen),
                    format_count(kind.filtered),
                    format_count(kind.seen.saturating_sub(kind.filtered)),
                    time(kind.latency.at_quantile(0.5)),
                    time(kind.latency.at_quantile(0.99)),
                    time(kind.latency.max_ns),
                ]
                .map(|text| (Tone::Plain, text))
                .to_vec(),
            );
        }
    }
    grid
}

/// The same for programs.
pub(crate) fn json(
    reading: &Reading,
    interval: Option<&Interval>,
    subscriptions: &Subscriptions,
) -> serde_json::Value {
    let daemon = &reading.daemon;
    let sources: Vec<_> = reading
        .sources
        .iter()
        .map(|source| source_json(source, interval))
        .collect();
    let (patterns, unknown) = match subscriptions {
        Ok(patterns) => (Some(patterns), None),
        Err(why) => (None, Some(why)),
    };
    serde_json::json!({
        "now": reading.now_ns,
        "daemon": {
            "folder": daemon.folder, "pid": daemon.pid, "started": daemon.generation, "state": daemon.condition.name(),
            "heartbeat_age_ns": daemon.heartbeat_age_ns, "memory_bytes": daemon.memory_bytes,
            "books": { "used": daemon.books.used, "of": daemon.books.of },
            "super_books": { "used": daemon.super_books.used, "of": daemon.super_books.of },
            "rings": daemon.rings.iter().map(|r| serde_json::json!({ "written": r.used, "kept": r.of })).collect::<Vec<_>>(),
        },
        "interval_s": interval.map(Interval::seconds),
        "subscriptions": patterns, "subscriptions_unknown": unknown,
        "sources": sources,
    })
}

fn source_json(source: &Source, interval: Option<&Interval>) -> serde_json::Value {
    let counters: serde_json::Map<String, serde_json::Value> = source
        .counters
        .iter()
        .map(|(counter, value)| (counter.spec().id.to_string(), value.into()))
        .collect();
    let kinds: Vec<_> = source
        .kinds
        .iter()
        .map(|kind| {
            serde_json::json!({
                "type": kind.name, "seen": kind.seen, "filtered": kind.filtered, "passed": kind.seen.saturating_sub(kind.filtered),
                "latency_ns": distribution_json(&kind.latency),
            })
        })
        .collect();
    let per_second = interval.and_then(|interval| {
        let done = interval.of(&source.name)?;
        Some(serde_json::json!({
            "packets": interval.per_second(packets(&done.counters)),
            "messages": interval.per_second(done.counters.get(Counter::Messages)),
            "updates": interval.per_second(done.updates),
        }))
    });
    let [wire, hook, kernel] = [0, 1, 2].map(|at| distribution_json(&source.arrivals[at]));
    serde_json::json!({
        "source": source.name, "feed": source.feed, "venue": source.venue, "protocol": source.protocol,
        "state": source.state.name(), "next_seq": source.next_seq, "last_packet": source.last_packet_ns, "updates": source.updates,
        "books_refused": source.refused,
        "per_second": per_second, "latency_ns": distribution_json(&source.latency),
        "super_latency_ns": distribution_json(&source.super_latency),
        "wire_latency_ns": wire, "hook_latency_ns": hook, "kernel_latency_ns": kernel,
        "counters": counters, "types": kinds,
    })
}

/// The usual figures of a distribution; `null` for none.
pub(crate) fn distribution_json(d: &Distribution) -> serde_json::Value {
    if d.is_empty() {
        return serde_json::Value::Null;
    }
    serde_json::json!({
        "count": d.count(), "mean": d.mean_ns(), "min": d.min_ns, "p50": d.at_quantile(0.5), "p90": d.at_quantile(0.9),
        "p99": d.at_quantile(0.99), "p99_9": d.at_quantile(0.999), "max": d.max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{examples, golden};
    use super::*;

    #[test]
    fn top_shows_rates_of_the_interval() {
        let (before, after) = examples::two_readings();
        let interval = Interval::between(&before, &after);
        let subscriptions = Ok(vec!["AAPL".to_string(), "Z* (bzx)".to_string()]);
        let page = page(&after, interval.as_ref(), &subscriptions, usize::MAX);
        golden::compare("top.txt", &page.to_plain());
    }

    #[test]
    fn stats_shows_counters_and_message_types_too() {
        let (before, after) = examples::two_readings();
        let interval = Interval::between(&before, &after);
        let unknown = Err("no socket".to_string());
        golden::compare(
            "stats.txt",
            &stats(&after, interval.as_ref(), &unknown, usize::MAX).to_plain(),
        );
        golden::compare(
            "stats_no_rates.txt",
            &stats(&after, None, &unknown, usize::MAX).to_plain(),
        );
        let mut json = json(&after, interval.as_ref(), &unknown);
        for source in json["sources"].as_array_mut().unwrap() {
            let counters = source["counters"].as_object_mut().unwrap();
            assert_eq!(counters.len(), Counter::ALL.len());
            // A new counter in the table is no change of the form.
            counters.retain(|id, _| ["messages", "gaps"].contains(&id.as_str()));
        }
        golden::compare("stats.json", &format!("{json:#}\n"));
    }

    #[test]
    fn a_part_of_the_way_that_was_not_measured_is_blank_and_left_out_where_nobody_has_it() {
        let (_, mut reading) = examples::two_readings();
        let titles = |reading: &Reading| {
            let text = page(reading, None, &Ok(vec![]), usize::MAX).to_plain();
            ["wire→hook", "hook→user", "kernel→user"].map(|title| text.contains(title))
        };
        assert_eq!(titles(&reading), [false; 3]);
        let mut hook = Distribution::default();
        hook.record(777);
        reading.sources[1].arrivals[1] = hook;
        assert_eq!(titles(&reading), [false, true, false]);
        let text = page(&reading, None, &Ok(vec![]), usize::MAX).to_plain();
        // Of the source and of all together; of the others nothing.
        assert_eq!(text.matches("777 ns").count(), 2, "{text}");
        let json = json(&reading, None, &Ok(vec![]));
        assert!(
            json["sources"][0]["hook_latency_ns"].is_null()
                && json["sources"][1]["wire_latency_ns"].is_null()
        );
        assert_eq!(json["sources"][1]["hook_latency_ns"]["count"], 1);
    }

    #[test]
    fn ages_of_recorded_packets_are_in_their_own_time() {
        let (_, mut reading) = examples::two_readings();
        for source in &mut reading.sources {
            source.last_packet_ns -= 320 * 86_400 * 1_000_000_000;
        }
        reading.sources[1].last_packet_ns -= 3_000_000_000;
        let text = page(&reading, None, &Ok(vec![]), usize::MAX).to_plain();
        assert!(
            text.contains("recorded ones") && text.contains("3 s") && !text.contains("320 d"),
            "{text}"
        );
    }

    #[test]
    fn trouble_is_said_in_words() {
        let (_, mut reading) = examples::two_readings();
        reading.daemon.condition = Condition::Dead;
        reading.daemon.books = super::super::model::Room { used: 64, of: 64 };
        reading.sources[0].state = State::Building;
        reading.sources[1].state = State::Stale;
        reading.sources[1].counters.add(Counter::Gaps, 2);
        reading.sources[2].state = State::Ended;
        reading.sources[2].last_packet_ns = 0;
        golden::compare(
            "top_trouble.txt",
            &page(&reading, None, &Ok(vec![]), usize::MAX).to_plain(),
        );
    }

    #[test]
    fn a_narrow_terminal_keeps_source_state_and_gaps() {
        let (before, after) = examples::two_readings();
        let interval = Interval::between(&before, &after);
        let page = page(&after, interval.as_ref(), &Ok(vec![]), 40);
        golden::compare("top_narrow.txt", &page.coloured(40, 24).replace('\x1b', "^["));
    }

    #[test]
    fn a_restarted_daemon_gives_no_rates() {
        let (before, mut after) = examples::two_readings();
        after.daemon.generation += 1;
        assert!(Interval::between(&before, &after).is_none());
        assert!(Interval::between(&before, &before).is_none());
    }
}
