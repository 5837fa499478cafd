//! A symbol's books as text: the consolidated book with every venue's share, and each venue's own ladder.
//!
//! Prices are printed exactly, all of a page with the same number of decimals, and so stand with their points
//! in line.

use tickwire_lab::format_count;
use tickwire_market::{Level, Price, Side, TradingStatus};

use super::model::{Auction, Book, Crossing, Reading, Share, State, SuperBook, SymbolView, Trade};
use super::text::{Column, Grid, Line, Page, Tone, span, time_of_day};

/// Which of a symbol's books to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The consolidated book and a line per venue; without a consolidated book, every venue's ladder.
    All,
    /// The ladders of these feeds.
    Feeds(Vec<String>),
}

/// The page of one symbol: `levels` price levels a side, for a screen of `width` characters.
pub(crate) fn page(
    view: &SymbolView,
    reading: &Reading,
    choice: &Choice,
    levels: usize,
    width: usize,
) -> Page {
    let mut page = Page::new();
    let decimals = decimals(view, levels);
    match (choice, &view.merged) {
        (Choice::All, Some(merged)) => {
            merged_head(&mut page, merged, view, reading, decimals, width);
            page.blank();
            merged_ladder(&mut page, merged, levels, decimals, width);
            page.blank();
            page.lines(venues(view, reading, decimals).lines(width));
        }
        (Choice::All, None) => ladders(&mut page, view.books.iter(), reading, levels, decimals, width),
        (Choice::Feeds(feeds), _) => {
            let chosen = view.books.iter().filter(|book| feeds.contains(&book.feed));
            ladders(&mut page, chosen, reading, levels, decimals, width);
        }
    }
    page
}

/// Decimals that every price shown needs, at least two.
fn decimals(view: &SymbolView, levels: usize) -> usize {
    let of_books = view.books.iter().flat_map(|book| {
        let shown = book.levels.iter().flat_map(move |side| side.iter().take(levels));
        shown
            .map(|level| level.price)
            .chain(book.last.map(|trade| trade.price))
    });
    let of_shares = view
        .merged
        .iter()
        .flat_map(|merged| merged.shares.iter().flatten().map(|share| share.price));
    of_books.chain(of_shares).map(needed).max().unwrap_or(2)
}

fn needed(price: Price) -> usize {
    (2..9)
        .find(|&d| price.to_decimal(d).is_some())
        .unwrap_or(9)
        .into()
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Bid => "bid",
        Side::Ask => "ask",
    }
}

fn tone_of(side: Side) -> Tone {
    match side {
        Side::Bid => Tone::Bid,
        Side::Ask => Tone::Ask,
    }
}

pub(crate) fn status_name(status: TradingStatus) -> &'static str {
    match status {
        TradingStatus::Unknown => "status unknown",
        TradingStatus::PreOpen => "pre-open",
        TradingStatus::Auction => "auction",
        TradingStatus::Trading => "trading",
        TradingStatus::QuoteOnly => "quotes only",
        TradingStatus::Paused => "PAUSED",
        TradingStatus::Halted => "HALTED",
        TradingStatus::Closed => "closed",
    }
}

fn status_tone(status: TradingStatus) -> Tone {
    match status {
        TradingStatus::Trading => Tone::Good,
        TradingStatus::Paused | TradingStatus::Halted => Tone::Loud,
        TradingStatus::Unknown | TradingStatus::Closed => Tone::Faint,
        TradingStatus::PreOpen | TradingStatus::Auction | TradingStatus::QuoteOnly => Tone::Warning,
    }
}

/// The state as a word that cannot be overlooked where it matters.
pub(crate) fn state_mark(state: State) -> (Tone, &'static str) {
    match state {
        State::Live => (Tone::Good, "live"),
        State::Building => (Tone::Warning, "BUILDING"),
        State::Stale => (Tone::Loud, "STALE"),
        State::Ended => (Tone::Faint, "ended"),
    }
}

fn merged_head(
    page: &mut Page,
    merged: &SuperBook,
    view: &SymbolView,
    reading: &Reading,
    decimals: usize,
    width: usize,
) {
    let names = if merged.contributing.is_empty() {
        "no feed".to_string()
    } else {
        merged.contributing.join(", ")
    };
    page.line(
        Line::toned(Tone::Strong, merged.symbol.clone())
            .then(Tone::Plain, format!("  consolidated book of {names}")),
    );
    if !merged.stale.is_empty() {
        let left_out = format!(" STALE: {} ", merged.stale.join(", "));
        page.line(
            Line::toned(Tone::Loud, left_out).then(Tone::Plain, " left out of the book until whole again"),
        );
    }
    let stopped = view
        .books
        .iter()
        .filter(|book| matches!(book.status, TradingStatus::Halted | TradingStatus::Paused));
    let stopped: Vec<String> = stopped
        .map(|book| format!("{} at {}", status_name(book.status), book.source))
        .collect();
    if !stopped.is_empty() {
        page.line(Line::toned(Tone::Loud, format!(" {} ", stopped.join(", "))));
    }
    page.lines(best_grid(merged, decimals).lines(width));
    if let Some(line) = crossing_line(merged) {
        page.line(line);
    }
    if let Some(line) = difference_line(merged, reading.stamp_now_ns(), decimals) {
        page.line(line);
    }
    page.line(trade_line(merged.last, merged.volume, merged.trades, decimals));
    for book in &view.books {
        if let Some(auction) = &book.auction {
            page.line(auction_line(auction, Some(&book.source), decimals));
        }
    }
}

/// The consolidated best and, beside it, the SIP's national best.
fn best_grid(merged: &SuperBook, decimals: usize) -> Grid {
    let mut grid = Grid::new(&[
        Column::words("", 9),
        Column::number("qty", 8),
        Column::number("bid", 9),
        Column::number("ask", 9),
        Column::number("qty", 8),
        Column::words("at the bid", 4),
        Column::words("at the ask", 4),
        Column::words("venue time", 2),
    ]);
    let price = |price: Option<Price>| price.map_or("-".to_string(), |p| format!("{p:.decimals$}"));
    let qty = |qty: Option<u64>| qty.map_or(String::new(), format_count);
    let ours = |side: Side| merged.best[side as usize].as_ref();
    let at = |side: Side| ours(side).map_or(String::new(), |best| best.feeds.join(" "));
    grid.row(vec![
        (Tone::Plain, "best".into()),
        (Tone::Plain, qty(ours(Side::Bid).map(|best| best.qty))),
        (Tone::Bid, price(ours(Side::Bid).map(|best| best.price))),
        (Tone::Ask, price(ours(Side::Ask).map(|best| best.price))),
        (Tone::Plain, qty(ours(Side::Ask).map(|best| best.qty))),
        (Tone::Plain, at(Side::Bid)),
        (Tone::Plain, at(Side::Ask)),
        (Tone::Plain, String::new()),
    ]);
    if let Some(national) = &merged.national {
        let theirs = |side: Side| national.best[side as usize];
        let at = |side: Side| {
            theirs(side).map_or(String::new(), |best| {
                format!("participant {}", best.participant.escape_ascii())
            })
        };
        grid.row(vec![
            (Tone::Plain, "SIP national".into()),
            (Tone::Plain, qty(theirs(Side::Bid).map(|best| best.qty))),
            (Tone::Bid, price(theirs(Side::Bid).map(|best| best.price))),
            (Tone::Ask, price(theirs(Side::Ask).map(|best| best.price))),
            (Tone::Plain, qty(theirs(Side::Ask).map(|best| best.qty))),
            (Tone::Plain, at(Side::Bid)),
            (Tone::Plain, at(Side::Ask)),
            (Tone::Faint, time_of_day(national.venue_ts)),
        ]);
    }
    grid
}

fn crossing_line(merged: &SuperBook) -> Option<Line> {
    match merged.crossing {
        Crossing::Apart => None,
        Crossing::Locked => Some(Line::toned(
            Tone::Warning,
            "LOCKED: best bid and best ask are equal",
        )),
        Crossing::Crossed => Some(Line::toned(
            Tone::Loud,
            " CROSSED: the best bid is above the best ask ",
        )),
    }
}

/// Ours against the SIP's: in price, and for how long.
fn difference_line(merged: &SuperBook, now_ns: u64, decimals: usize) -> Option<Line> {
    let national = merged.national.as_ref()?;
    let side = |side: Side| {
        let name = side_name(side);
        let difference = match national.difference[side as usize] {
            None => return format!("{name} only one has it"),
            Some(difference) if difference == Price::ZERO => return format!("{name} equal"),
            Some(difference) if difference > Price::ZERO => format!("+{difference:.decimals$}"),
            Some(difference) => format!("{difference:.decimals$}"),
        };
        let since = match national.differs_since[side as usize] {
            0 => String::new(),
            since => format!(" for {}", span(now_ns.saturating_sub(since))),
        };
        format!("{name} {difference}{since}")
    };
    let text = format!("ours less SIP: {}, {}", side(Side::Bid), side(Side::Ask));
    let agree = national
        .difference
        .iter()
        .all(|d| d.is_none_or(|d| d == Price::ZERO));
    Some(Line::toned(if agree { Tone::Plain } else { Tone::Warning }, text))
}

fn trade_line(last: Option<Trade>, volume: u64, trades: u64, decimals: usize) -> Line {
    let last = last.map_or("no trade yet".to_string(), |trade| {
        format!(
            "last trade {:.decimals$} x {} at {}",
            trade.price,
            format_count(trade.qty),
            time_of_day(trade.venue_ts)
        )
    });
    let (volume, trades) = (format_count(volume), format_count(trades));
    Line::plain(format!("{last}; volume {volume} in {trades} trades"))
}

fn auction_line(auction: &Auction, source: Option<&str>, decimals: usize) -> Line {
    let mut text = String::from("auction");
    if auction.kind != 0 {
        text += &format!(" {}", auction.kind.escape_ascii());
    }
    if let Some(source) = source {
        text += &format!(" at {source}");
    }
    for (name, price) in [
        ("reference", auction.reference),
        ("near", auction.near),
        ("far", auction.far),
    ] {
        if price != Price::ZERO {
            text += &format!(", {name} {price:.decimals$}");
        }
    }
    text += &format!(", paired {}", format_count(auction.paired));
    text += &match (auction.imbalance, auction.side) {
        (0, _) => ", no imbalance".to_string(),
        (qty, Some(Side::Bid)) => format!(", imbalance {} to buy", format_count(qty)),
        (qty, Some(Side::Ask)) => format!(", imbalance {} to sell", format_count(qty)),
        (qty, None) => format!(", imbalance {}", format_count(qty)),
    };
    Line::toned(Tone::Warning, text)
}

/// A merged level: its price and its shares.
fn merged_levels(shares: &[Share]) -> impl Iterator<Item = &[Share]> {
    shares.chunk_by(|a, b| a.price == b.price)
}

/// Asks above, the best at the bottom; bids below, the best on top.
fn merged_ladder(page: &mut Page, merged: &SuperBook, levels: usize, decimals: usize, width: usize) {
    let mut grid = Grid::new(&[
        Column::words("", 9),
        Column::number("price", 9),
        Column::number("qty", 9),
        Column::number("orders", 3),
        Column::words("shares of", 8),
    ]);
    let row = |side: Side, level: &[Share]| {
        let qty: u64 = level.iter().map(|share| share.qty).sum();
        let orders: u64 = level.iter().map(|share| u64::from(share.orders)).sum();
        let shares: Vec<String> = level
            .iter()
            .map(|share| format!("{} {}", share.feed, format_count(share.qty)))
            .collect();
        let orders = if orders == 0 {
            String::new()
        } else {
            format_count(orders)
        };
        vec![
            (tone_of(side), side_name(side).to_string()),
            (tone_of(side), format!("{:.decimals$}", level[0].price)),
            (Tone::Plain, format_count(qty)),
            (Tone::Faint, orders),
            (Tone::Plain, shares.join(", ")),
        ]
    };
    let of = |side: Side| -> Vec<&[Share]> {
        merged_levels(&merged.shares[side as usize])
            .take(levels)
            .collect()
    };
    let (bids, asks) = (of(Side::Bid), of(Side::Ask));
    if bids.is_empty() && asks.is_empty() {
        page.line(Line::toned(Tone::Faint, "(no levels)"));
        return;
    }
    asks.iter()
        .rev()
        .for_each(|level| grid.row(row(Side::Ask, level)));
    bids.iter().for_each(|level| grid.row(row(Side::Bid, level)));
    // The shares are the last column: better cut than missing, as the page does with any line.
    page.lines(grid.lines(width.max(72)));
}

/// A line per book.
fn venues(view: &SymbolView, reading: &Reading, decimals: usize) -> Grid {
    let mut grid = Grid::new(&[
        Column::words("source", 9),
        Column::words("state", 9),
        Column::words("status", 5),
        Column::number("qty", 7),
        Column::number("bid", 8),
        Column::number("ask", 8),
        Column::number("qty", 7),
        Column::number("last", 3),
        Column::number("volume", 4),
        Column::number("age", 6),
    ]);
    for book in &view.books {
        let (tone, state) = state_mark(book.state);
        let best = |side: Side| book.levels[side as usize].first();
        let price =
            |side: Side| best(side).map_or("-".to_string(), |level| format!("{:.decimals$}", level.price));
        let qty = |side: Side| best(side).map_or(String::new(), |level| format_count(level.qty.0));
        grid.row(vec![
            (Tone::Plain, book.source.clone()),
            (tone, state.into()),
            (status_tone(book.status), status_name(book.status).into()),
            (Tone::Plain, qty(Side::Bid)),
            (Tone::Bid, price(Side::Bid)),
            (Tone::Ask, price(Side::Ask)),
            (Tone::Plain, qty(Side::Ask)),
            (
                Tone::Plain,
                book.last
                    .map_or(String::new(), |trade| format!("{:.decimals$}", trade.price)),
            ),
            (Tone::Plain, format_count(book.volume)),
            (Tone::Faint, age(reading.stamp_now_ns(), book.recv_ts)),
        ]);
    }
    grid
}

/// How long ago; nothing for what never was.
pub(crate) fn age(now_ns: u64, then_ns: u64) -> String {
    match then_ns {
        0 => String::new(),
        then => span(now_ns.saturating_sub(then)),
    }
}

fn ladders<'a>(
    page: &mut Page,
    books: impl Iterator<Item = &'a Book>,
    reading: &Reading,
    levels: usize,
    decimals: usize,
    width: usize,
) {
    for (at, book) in books.enumerate() {
        if at > 0 {
            page.blank();
        }
        ladder(page, book, reading, levels, decimals, width);
    }
}

/// One source's own book, bids to the left.
fn ladder(page: &mut Page, book: &Book, reading: &Reading, levels: usize, decimals: usize, width: usize) {
    let (tone, state) = state_mark(book.state);
    let loud = |tone: Tone, text: &str| match tone {
        Tone::Loud => format!(" {text} "),
        _ => text.to_string(),
    };
    page.line(
        Line::toned(Tone::Strong, book.symbol.clone())
            .then(Tone::Plain, format!("  {} ({})  ", book.source, book.venue))
            .then(tone, loud(tone, state))
            .then(Tone::Plain, "  ")
            .then(
                status_tone(book.status),
                loud(status_tone(book.status), status_name(book.status)),
            ),
    );
    if book.state == State::Stale || book.state == State::Building {
        let why = match book.state {
            State::Stale => "Messages are missing before it: what stands here may be wrong.",
            _ => "Not complete yet: it waits for its snapshot or the start of the session.",
        };
        page.line(Line::toned(Tone::Warning, why));
    }
    let mut grid = Grid::new(&[
        Column::number("orders", 2),
        Column::number("qty", 9),
        Column::number("bid", 9),
        Column::number("ask", 9),
        Column::number("qty", 9),
        Column::number("orders", 2),
    ]);
    let [bids, asks] = &book.levels;
    for at in 0..bids.len().max(asks.len()).min(levels) {
        let cells = |level: Option<&Level>, tone: Tone| match level {
            Some(level) => {
                let orders = if level.orders == 0 {
                    String::new()
                } else {
                    format_count(level.orders.into())
                };
                [
                    (Tone::Faint, orders),
                    (Tone::Plain, format_count(level.qty.0)),
                    (tone, format!("{:.decimals$}", level.price)),
                ]
            }
            None => [(); 3].map(|()| (Tone::Plain, String::new())),
        };
        let mut row = cells(bids.get(at), Tone::Bid).to_vec();
        row.extend(cells(asks.get(at), Tone::Ask).into_iter().rev());
        grid.row(row);
    }
    match grid.is_empty() {
        true => page.line(Line::toned(Tone::Faint, "(no levels)")),
        false => page.lines(grid.lines(width)),
    }
    let total = |side: Side| {
        let total = book.totals[side as usize];
        format!(
            "{} on {} levels",
            format_count(total.qty),
            format_count(total.levels)
        )
    };
    page.line(Line::plain(format!(
        "in all: bid {}, ask {}",
        total(Side::Bid),
        total(Side::Ask)
    )));
    page.line(trade_line(book.last, book.volume, book.trades, decimals));
    if let Some(auction) = &book.auction {
        page.line(auction_line(auction, None, decimals));
    }
    let last = match book.recv_ts {
        0 => "no message yet".to_string(),
        then => format!(
            "last message {} ago",
            span(reading.stamp_now_ns().saturating_sub(then))
        ),
    };
    page.line(Line::toned(
        Tone::Faint,
        format!(
            "{last}, number {}, venue time {}",
            book.seq,
            time_of_day(book.venue_ts)
        ),
    ));
}

/// The same for programs. Prices are texts, which keep them exact.
pub(crate) fn json(view: &SymbolView, choice: &Choice) -> serde_json::Value {
    let chosen = |book: &&Book| match choice {
        Choice::All => true,
        Choice::Feeds(feeds) => feeds.contains(&book.feed),
    };
    let books: Vec<_> = view.books.iter().filter(chosen).map(book_json).collect();
    let merged = view.merged.as_ref().filter(|_| *choice == Choice::All);
    serde_json::json!({ "super": merged.map(merged_json), "books": books })
}

fn trade_json(trade: Trade) -> serde_json::Value {
    serde_json::json!({ "price": trade.price.to_string(), "qty": trade.qty, "venue_ts": trade.venue_ts })
}

fn book_json(book: &Book) -> serde_json::Value {
    let levels = |side: Side| -> Vec<_> {
        let level = |l: &Level| serde_json::json!({ "price": l.price.to_string(), "qty": l.qty.0, "orders": l.orders });
        book.levels[side as usize].iter().map(level).collect()
    };
    let total = |side: Side| {
        let t = book.totals[side as usize];
        serde_json::json!({ "levels": t.levels, "qty": t.qty, "orders": t.orders })
    };
    let auction = book.auction.map(|a| {
        serde_json::json!({
            "type": char::from(a.kind).to_string().trim_matches('\0'), "reference": a.reference.to_string(), "near": a.near.to_string(),
            "far": a.far.to_string(), "paired": a.paired, "imbalance": a.imbalance, "side": a.side.map(side_name),
        })
    });
    serde_json::json!({
        "symbol": book.symbol, "source": book.source, "feed": book.feed, "venue": book.venue,
        "state": book.state.name(), "status": status_name(book.status).to_lowercase(),
        "seq": book.seq, "venue_ts": book.venue_ts, "recv_ts": book.recv_ts,
        "bids": levels(Side::Bid), "asks": levels(Side::Ask),
        "total": { "bid": total(Side::Bid), "ask": total(Side::Ask) },
        "last": book.last.map(trade_json), "volume": book.volume, "trades": book.trades, "auction": auction,
    })
}

fn merged_json(merged: &SuperBook) -> serde_json::Value {
    let best = |side: Side| {
        merged.best[side as usize]
            .as_ref()
            .map(|b| serde_json::json!({ "price": b.price.to_string(), "qty": b.qty, "feeds": b.feeds }))
    };
    let levels = |side: Side| -> Vec<_> {
        let level = |level: &[Share]| {
            let shares: Vec<_> = level
                .iter()
                .map(|s| serde_json::json!({ "feed": s.feed, "qty": s.qty, "orders": s.orders }))
                .collect();
            let qty: u64 = level.iter().map(|s| s.qty).sum();
            serde_json::json!({ "price": level[0].price.to_string(), "qty": qty, "shares": shares })
        };
        merged_levels(&merged.shares[side as usize]).map(level).collect()
    };
    let national = merged.national.as_ref().map(|n| {
        let best = |side: Side| {
            n.best[side as usize].map(|b| {
                serde_json::json!({
                    "price": b.price.to_string(), "qty": b.qty, "participant": char::from(b.participant).to_string(),
                })
            })
        };
        let difference = |side: Side| n.difference[side as usize].map(|d| d.to_string());
        serde_json::json!({
            "bid": best(Side::Bid), "ask": best(Side::Ask), "venue_ts": n.venue_ts, "recv_ts": n.recv_ts,
            "difference": { "bid": difference(Side::Bid), "ask": difference(Side::Ask), "since": n.differs_since },
        })
    });
    let crossing = match merged.crossing {
        Crossing::Apart => "apart",
        Crossing::Locked => "locked",
        Crossing::Crossed => "crossed",
    };
    serde_json::json!({
        "symbol": merged.symbol, "feeds": merged.contributing, "stale": merged.stale, "state": crossing,
        "best": { "bid": best(Side::Bid), "ask": best(Side::Ask) }, "national": national,
        "last": merged.last.map(trade_json), "volume": merged.volume, "trades": merged.trades,
        "bids": levels(Side::Bid), "asks": levels(Side::Ask),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{examples, golden};
    use super::*;

    fn text(view: &SymbolView, choice: &Choice, levels: usize, width: usize) -> String {
        let (_, reading) = examples::two_readings();
        page(view, &reading, choice, levels, width).to_plain()
    }

    #[test]
    fn the_super_book_shows_every_venues_share_and_the_sip_beside_it() {
        golden::compare(
            "book_super.txt",
            &text(&examples::symbol(), &Choice::All, 10, usize::MAX),
        );
    }

    #[test]
    fn a_stale_venue_a_halt_and_a_crossed_book_cannot_be_overlooked() {
        golden::compare(
            "book_troubled.txt",
            &text(&examples::troubled_symbol(), &Choice::All, 10, usize::MAX),
        );
    }

    #[test]
    fn a_feeds_own_ladder_has_bids_to_the_left() {
        let one = Choice::Feeds(vec!["bzx".into()]);
        golden::compare("book_bzx.txt", &text(&examples::symbol(), &one, 10, usize::MAX));
        golden::compare(
            "book_bzx_stale.txt",
            &text(&examples::troubled_symbol(), &one, 10, usize::MAX),
        );
    }

    #[test]
    fn without_super_books_every_venues_ladder_is_shown() {
        let mut view = examples::symbol();
        view.merged = None;
        golden::compare("book_venues.txt", &text(&view, &Choice::All, 2, usize::MAX));
    }

    #[test]
    fn an_empty_book_and_one_sided_bests_read_well() {
        let mut view = examples::symbol();
        let merged = view.merged.as_mut().unwrap();
        merged.shares = [vec![], vec![]];
        merged.best[1] = None;
        merged.national.as_mut().unwrap().difference[1] = None;
        view.books.truncate(1);
        view.books[0].levels = [vec![], vec![]];
        golden::compare("book_empty.txt", &text(&view, &Choice::All, 10, usize::MAX));
    }

    #[test]
    fn a_narrow_terminal_keeps_prices_and_quantities() {
        golden::compare("book_narrow.txt", &{
            let (_, reading) = examples::two_readings();
            let page = page(&examples::symbol(), &reading, &Choice::All, 2, 40);
            page.coloured(40, 24).replace('\x1b', "^[")
        });
    }

    #[test]
    fn prices_share_their_decimals_and_are_exact() {
        let text = text(&examples::symbol(), &Choice::All, 10, usize::MAX);
        assert!(
            text.contains("187.3001") && text.contains("187.2400") && text.contains("187.2550"),
            "{text}"
        );
        assert_eq!(needed(examples::price("0.000000001")), 9);
        assert_eq!(needed(examples::price("100")), 2);
    }

    #[test]
    fn json_says_the_same() {
        let all = serde_json::to_string_pretty(&json(&examples::symbol(), &Choice::All)).unwrap();
        golden::compare("book.json", &(all + "\n"));
    }
}
