//! What a replay found, as text and as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use tickwire_book::BookRef;
use tickwire_console::failure::Failure;
use tickwire_lab::Table;
use tickwire_market::{BookState, Counter, Counters, InstrumentId, Side};
use tickwire_venues::protocol::Protocol;

use super::{About, LEFT_OUT_MAX, Replay, Routes, line_name};
use crate::played::{Play, Times, of_books};

impl Replay<'_> {
    pub(super) fn print(&mut self) -> Result<(), Failure> {
        let text = if self.args.json {
            format!("{:#}\n", self.to_json())
        } else {
            self.to_text()
        };
        match std::io::stdout().write_all(text.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::system(format!("cannot write the output: {e}")))
            }
            _ => Ok(()),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let played = self.played.iter().zip(&self.about);
        let feeds: Vec<serde_json::Value> = played.map(|(p, about)| self.channel_json(&**p, about)).collect();
        let counts = self.tape.skipped();
        let mut all = serde_json::json!({
            "frames": counts.frames,
            "frames_without_udp": counts.total(),
            "frames_lost": counts.lost(),
            "frames_not_read": counts.not_read(),
            "packets_of_other_feeds": self.other_feeds,
            "interrupted": self.stop.is_set(),
        });
        if let Routes::Recognised(survey) = &self.routes {
            let left_out = survey.left_out.iter().map(|(address, packets, protocol)| {
                serde_json::json!({
                    "destination": address.to_string(),
                    "packets": packets,
                    "protocol": protocol.map(Protocol::name),
                })
            });
            all["left_out"] = left_out.collect();
            all["destinations_with_heartbeats_only"] = survey.idle.into();
            all["first_reading"] = serde_json::json!({
                "streams": survey.streams,
                "packets_read_field_by_field": survey.looked_into,
            });
        }
        // One channel's members stand at the top as well: scripts need not look for the only one.
        if let ([only], Some(all)) = (&feeds[..], all.as_object_mut()) {
            all.extend(only.as_object().cloned().unwrap_or_default());
        }
        all["feeds"] = feeds.into();
        all
    }

    fn channel_json(&self, played: &dyn Play, about: &About) -> serde_json::Value {
        let (counters, cost) = (played.counters(), played.cost());
        let messages = counters.get(Counter::Messages);
        // Of packets that were not timed: null.
        let per_message = cost.times.as_ref().map(|times| match messages {
            0 => 0.0,
            messages => times.busy_ns() as f64 / messages as f64,
        });
        let per_packet = cost
            .times
            .as_ref()
            .map(|times| tickwire_control::summary::summary_json(&times.per_packet));
        serde_json::json!({
            "name": cost.name,
            "protocol": about.protocol,
            "destinations": about.on.iter().map(|(address, port, line)| serde_json::json!({
                "address": address.to_string(),
                "port": port.name(),
                "line": line_name(*line),
            })).collect::<Vec<_>>(),
            "room": {
                "instruments": about.room.instruments,
                "orders": about.room.orders,
                "levels": about.room.levels,
            },
            "state": format!("{:?}", played.state()),
            "packets": cost.packets,
            "bytes": cost.bytes,
            "next_sequence_number": played.next_seq().0,
            "counters": tickwire_control::results::counters_by_id(&counters),
            "state_hash": format!("{:016x}", of_books(played, |books| books.state_hash()).unwrap_or_default()),
            "ns_per_message": per_message,
            "ns_per_packet": per_packet,
            "partial": about.end.partial.as_ref().map(|p| serde_json::json!({
                "books": p.books,
                "complete": p.whole,
                "levels": p.levels,
                "levels_of_complete_books": p.levels_whole,
                "events": p.events,
                "events_on_orders_before_the_recording": p.unknown,
                "sure": p.sure(),
            })),
            "events_of_orders_before_the_recording": played.unseen(),
            "check": played.checked().map(|c| serde_json::json!({
                "rows": c.rows,
                "equal": c.equal,
                "levels_that_follow_from_events": c.levels,
                "levels_taken_from_rows": c.taken,
                "first_difference": c.first,
            })),
            "books": self.books_json(played),
        })
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut all = Counters::default();
        let (mut busy_ns, mut incomplete) = (self.clock.span_ns(self.block_ticks), Vec::new());
        for (played, about) in self.played.iter().zip(&self.about) {
            text += &self.books_text(&**played, about.end.partial.is_some());
            all.merge(&played.counters());
            busy_ns += played.cost().times.as_ref().map_or(0, |times| times.busy_ns());
            let lost = played.counters().get(Counter::MessagesLost);
            let name = &played.cost().name;
            if let Some(partial) = &about.end.partial {
                incomplete.push(format!("{name}: {partial}"));
            } else if lost > 0 {
                incomplete.push(format!(
                    "{name}: {lost} messages are missing on every line; its books are stale"
                ));
            }
        }
        for missing in self.missing_books() {
            text += &format!("{missing}: no such symbol in the recording's directory\n");
        }
        let mut feeds = Table::new(
            "feeds",
            &[
                "",
                "state",
                "next",
                "packets",
                "messages",
                "gaps",
                "ns per message",
            ],
        );
        for played in &self.played {
            let (counters, cost) = (played.counters(), played.cost());
            let messages = counters.get(Counter::Messages);
            let of_one = |times: &Times| format!("{:.1}", times.busy_ns() as f64 / messages.max(1) as f64);
            feeds = feeds.row([
                cost.name.clone(),
                format!("{:?}", played.state()),
                played.next_seq().to_string(),
                cost.packets.to_string(),
                messages.to_string(),
                counters.get(Counter::Gaps).to_string(),
                cost.times.as_deref().map(of_one).unwrap_or_default(),
            ]);
        }
        text += &format!("\n{}", feeds.to_text(tickwire_console::terminal::width()));
        text += &self.found_text();
        text += &tickwire_control::summary::counter_table(&all);
        text += &self.frames_text();
        let timed = self.played.iter().map(|p| p.cost());
        let rows: Vec<_> = timed
            .filter_map(|cost| Some((cost.name.as_str(), &cost.times.as_ref()?.per_packet)))
            .collect();
        text += &match rows.is_empty() {
            true => "\nthe packets of an archive are not timed one by one\n".to_string(),
            false => {
                let table = tickwire_control::summary::percentile_table(&rows);
                format!("\nhandler and books, per packet (per message for files), ns\n{table}")
            }
        };
        let messages = all.get(Counter::Messages);
        if messages > 0 && busy_ns > 0 {
            text += &format!(
                "{:.1} ns per message, {:.2} million messages per second on one core (reading the file not included)\n",
                busy_ns as f64 / messages as f64,
                messages as f64 * 1e3 / busy_ns as f64
            );
        }
        for checked in self.played.iter().filter_map(|p| p.checked()) {
            text += &format!(
                "{} of {} rows of the vendor's own book equal ours",
                checked.equal, checked.rows
            );
            text += &match checked.taken {
                0 => "\n".to_string(),
                taken => format!(
                    "; {} levels follow from the events, {taken} are of orders entered before the file begins and were taken from the rows\n",
                    checked.levels
                ),
            };
        }
        if let Some(reason) = self.stop.reason() {
            text += &format!("{reason}: the above is of the part of the recording that was read\n");
        }
        for incomplete in incomplete {
            text += &format!("{incomplete}\n");
        }
        text
    }

    /// What became of the frames that gave no datagram, or not as they stand in the file; nothing where all
    /// are plain UDP.
    fn frames_text(&self) -> String {
        let counts = self.tape.skipped();
        let mut text = String::new();
        if counts.total() > 0 || !counts.mended().is_empty() {
            text += &format!("{counts}\n");
        }
        if counts.tcp > 0 {
            text += "streams of TCP are not replayed: see `tickwire decode`\n";
        }
        if self.other_feeds > 0 {
            text += &format!("packets of other feeds: {}\n", self.other_feeds);
        }
        text
    }

    /// What the first reading found out: the lines of every channel, and what is of none.
    fn found_text(&self) -> String {
        let Routes::Recognised(survey) = &self.routes else {
            return String::new();
        };
        let mut text = String::new();
        if self.about.iter().any(|about| about.on.len() > 1) {
            text += "\nlines, found out by their content\n";
            for (played, about) in self.played.iter().zip(&self.about) {
                let on = about
                    .on
                    .iter()
                    .map(|(address, port, line)| match line_name(*line) {
                        Some(line) => format!("{} {line} {address}", port.name()),
                        None => format!("{} {address}", port.name()),
                    });
                let on: Vec<_> = on.collect();
                text += &format!("{}: {}\n", played.cost().name, on.join(", "));
            }
            text += "\n";
        }
        for (address, packets, protocol) in survey.left_out.iter().take(LEFT_OUT_MAX) {
            text += &match protocol {
                Some(protocol) => {
                    format!(
                        "{packets} packets to {address} are {protocol}, of which no books are kept here: see `tickwire decode`\n"
                    )
                }
                None => format!("{packets} packets to {address} are of no protocol known here\n"),
            };
        }
        if survey.left_out.len() > LEFT_OUT_MAX {
            text += &format!("and {} more destinations\n", survey.left_out.len() - LEFT_OUT_MAX);
        }
        text
    }

    /// Symbols asked for that no channel knows.
    fn missing_books(&self) -> impl Iterator<Item = &String> {
        self.args.book.iter().filter(|b| {
            let known = |p: &dyn Play| self.wanted_books(p).contains_key(*b);
            *b != "all" && !self.played.iter().any(|p| known(&**p))
        })
    }

    /// The instruments asked for with `--book`, in order of symbol.
    fn wanted_books(&self, played: &dyn Play) -> BTreeMap<String, InstrumentId> {
        let all = self.args.book.iter().any(|b| b == "all");
        let wanted = |s: &str| all || self.args.book.iter().any(|b| b == s);
        if self.args.book.is_empty() {
            return BTreeMap::new();
        }
        let directory = played.directory();
        let known = directory.iter().filter(|(symbol, _)| wanted(symbol.as_str()));
        let mut books: BTreeMap<_, _> = known.map(|(symbol, id)| (symbol.to_string(), *id)).collect();
        // A recording that starts in mid-session has no directory: books are then named by number.
        if books.is_empty() {
            played.look(&mut |all| {
                let numbered = all.iter().filter(|b| !b.is_empty());
                books.extend(numbered.map(|b| b.instrument()).filter_map(|id| {
                    let name = format!("#{}", id.0);
                    wanted(&name).then_some((name, id))
                }));
            });
        }
        books
    }

    fn books_text(&self, played: &dyn Play, is_partial: bool) -> String {
        let mut text = String::new();
        let wanted = self.wanted_books(played);
        played.look(&mut |books| {
            for (symbol, id) in &wanted {
                if let Some(book) = books.book(*id) {
                    self.book_text(&mut text, played, (symbol, book), is_partial);
                }
            }
        });
        text
    }

    fn book_text(
        &self,
        text: &mut String,
        played: &dyn Play,
        (symbol, book): (&str, BookRef<'_>),
        is_partial: bool,
    ) {
        *text += &format!(
            "{symbol}  {}  {:?}{}\n{:>10} {:>14}   {:<14} {:<10}\n",
            played.cost().name,
            book.state(),
            if is_partial && book.state() != BookState::Live {
                ", partial"
            } else {
                ""
            },
            "qty",
            "bid",
            "ask",
            "qty"
        );
        let bids: Vec<_> = book.levels(Side::Bid).take(self.args.levels).collect();
        let asks: Vec<_> = book.levels(Side::Ask).take(self.args.levels).collect();
        for i in 0..bids.len().max(asks.len()) {
            let bid = bids.get(i).map_or((String::new(), String::new()), |l| {
                (l.qty.to_string(), l.price.to_string())
            });
            let ask = asks.get(i).map_or((String::new(), String::new()), |l| {
                (l.price.to_string(), l.qty.to_string())
            });
            *text += &format!("{:>10} {:>14}   {:<14} {:<10}\n", bid.0, bid.1, ask.0, ask.1);
        }
    }

    fn books_json(&self, played: &dyn Play) -> serde_json::Value {
        let side = |id, side| -> Vec<serde_json::Value> {
            let mut levels = Vec::new();
            played.look(&mut |books| {
                let Some(book) = books.book(id) else { return };
                let shown = book.levels(side).take(self.args.levels);
                levels.extend(shown.map(|l| {
                    serde_json::json!({ "price": l.price.to_string(), "qty": l.qty.0, "orders": l.orders })
                }));
            });
            levels
        };
        self.wanted_books(played)
            .into_iter()
            .map(|(symbol, id)| {
                (
                    symbol,
                    serde_json::json!({ "bids": side(id, Side::Bid), "asks": side(id, Side::Ask) }),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}
