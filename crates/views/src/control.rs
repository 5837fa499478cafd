//! The answers of a feed handler's control socket, for people.

use serde_json::Value;

use super::text::{Column, Grid, Page, Tone};

/// The answer for people: what the daemon says, then a line per feed.
pub(crate) fn page(answer: &Value, width: usize) -> Page {
    let mut page = Page::new();
    if let Some(says) = answer["says"].as_str() {
        page.line(super::text::Line::plain(says));
    }
    let Some(feeds) = answer["subscriptions"].as_array() else {
        return page;
    };
    let mut grid = Grid::new(&[
        Column::words("feed", 9),
        Column::words("patterns", 9),
        Column::words("but not", 8),
        Column::number("instruments", 7),
        Column::number("seen", 6),
        Column::number("filtered", 6),
        Column::number("passed", 6),
    ]);
    for feed in feeds {
        let number = |name: &str| {
            feed[name]
                .as_u64()
                .map_or(String::new(), tickwire_lab::format_count)
        };
        let patterns = list(feed, "patterns");
        let patterns = if patterns.is_empty() {
            "(nothing)".into()
        } else {
            patterns.join(" ")
        };
        grid.row(
            [
                feed["feed"].as_str().unwrap_or("").to_string(),
                patterns,
                list(feed, "except").join(" "),
                number("instruments"),
                number("seen"),
                number("filtered"),
                number("passed"),
            ]
            .map(|text| (Tone::Plain, text))
            .to_vec(),
        );
    }
    page.lines(grid.lines(width));
    if feeds.iter().any(|feed| !feed["statistics"].is_null()) {
        for (name, list) in [("subscription", "by_subscription"), ("symbol", "by_symbol")] {
            page.blank();
            page.lines(statistics(feeds, name, list).lines(width));
        }
    }
    page
}

/// What became of messages, by subscription or by symbol. What was not counted is blank.
fn statistics(feeds: &[Value], name: &'static str, list: &str) -> Grid {
    let mut grid = Grid::new(&[
        Column::words("feed", 9),
        Column::words(name, 9),
        Column::words("wanted", 8),
        Column::number("seen", 7),
        Column::number("filtered", 6),
        Column::number("passed", 7),
        Column::number("dropped at the hook", 7),
    ]);
    for feed in feeds {
        for row in feed["statistics"][list].as_array().map_or(&[][..], Vec::as_slice) {
            let number = |name: &str| {
                row[name]
                    .as_u64()
                    .map_or(String::new(), tickwire_lab::format_count)
            };
            let wanted = if row["wanted"].as_bool() == Some(true) {
                "yes"
            } else {
                "no"
            };
            grid.row(
                [
                    feed["feed"].as_str().unwrap_or("").to_string(),
                    row[name].as_str().unwrap_or("(no subscription)").to_string(),
                    wanted.to_string(),
                    number("seen"),
                    number("filtered"),
                    number("passed"),
                    number("at_hook"),
                ]
                .map(|text| (Tone::Plain, text))
                .to_vec(),
            );
        }
    }
    grid
}

fn list(feed: &Value, name: &str) -> Vec<String> {
    let items = feed[name].as_array().map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .filter_map(|item| item.as_str().map(String::from))
        .collect()
}

/// The patterns of an answer in one list: those that every feed has once, the others with their feed.
pub(crate) fn summary(answer: &Value) -> Vec<String> {
    let feeds = answer["subscriptions"].as_array().map_or(&[][..], Vec::as_slice);
    let rules = |feed: &Value| -> Vec<String> {
        let except = list(feed, "except")
            .into_iter()
            .map(|pattern| format!("not {pattern}"));
        list(feed, "patterns").into_iter().chain(except).collect()
    };
    let lists: Vec<(&str, Vec<String>)> = feeds
        .iter()
        .map(|feed| (feed["feed"].as_str().unwrap_or(""), rules(feed)))
        .collect();
    let mut summary: Vec<String> = Vec::new();
    for (feed, rules) in &lists {
        for rule in rules {
            let everywhere = lists.iter().all(|(_, other)| other.contains(rule));
            let text = if everywhere {
                rule.clone()
            } else {
                format!("{rule} ({feed})")
            };
            if !summary.contains(&text) {
                summary.push(text);
            }
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_stand_by_subscription_and_by_symbol() {
        let answer: Value = serde_json::json!({ "subscriptions": [
            { "feed": "nasdaq", "patterns": ["IBM", "Z*"], "instruments": 3, "seen": 21, "filtered": 7, "passed": 14, "statistics": {
                "by_subscription": [
                    { "subscription": "IBM", "wanted": true, "instruments": 1, "seen": 11, "filtered": 2, "passed": 9, "at_hook": 5 },
                    { "subscription": null, "wanted": false, "instruments": 1, "seen": 3, "filtered": 3, "passed": 0, "at_hook": null },
                ],
                "by_symbol": [{ "symbol": "IBM", "wanted": true, "seen": 11, "filtered": 2, "passed": 9, "at_hook": 5_000 }],
            } },
            { "feed": "bzx", "patterns": [], "instruments": 0 },
        ] });
        let text = page(&answer, usize::MAX).to_plain();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        for row in [
            ["nasdaq", "IBM", "yes", "11", "2", "9", "5"].as_slice(),
            // What is not counted is blank.
            &["nasdaq", "(no", "subscription)", "no", "3", "3", "0"],
            &["nasdaq", "IBM", "yes", "11", "2", "9", "5", "000"],
        ] {
            assert!(rows.iter().any(|have| have == row), "{row:?}\n{text}");
        }
    }

    #[test]
    fn an_answer_becomes_a_table_and_a_list() {
        let answer: Value = serde_json::from_str(
            "{\"ok\":true,\"says\":\"2 patterns more.\",\"subscriptions\":[{\"feed\":\"bzx\",\"patterns\":[\"AAPL\",\"Z*\"],\"except\":[\"ZZZ\"],\"instruments\":12,\"seen\":1200,\"filtered\":1000,\"passed\":200},\
             {\"feed\":\"nasdaq\",\"patterns\":[\"AAPL\"],\"instruments\":1}]}",
        )
        .unwrap();
        super::super::golden::compare("subscriptions.txt", &page(&answer, usize::MAX).to_plain());
        assert_eq!(summary(&answer), ["AAPL", "Z* (bzx)", "not ZZZ (bzx)"]);
    }
}
