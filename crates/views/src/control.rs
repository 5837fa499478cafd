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
    page
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
