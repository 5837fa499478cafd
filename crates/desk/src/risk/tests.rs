//! The command on its examples, and on files that are wrong.

use super::day::Day;
use super::file::RiskFile;
use super::input::{self, Kind};
use super::snapshot::Snapshot;
use super::{report, tables};
use tickwire_trading::portfolio::MarkBy;

fn example(name: &str) -> String {
    let path = tickwire_testdata::workspace().join("examples/risk").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn snapshot() -> Snapshot {
    let file = RiskFile::parse(&example("portfolio.toml")).unwrap();
    let mut day = Day::new(&file).unwrap();
    for (kind, name) in [
        (Kind::Fills, "fills.csv"),
        (Kind::Marks, "marks.csv"),
        (Kind::Quotes, "quotes.csv"),
    ] {
        day.add(input::read(kind, &example(name), &day.symbols).unwrap());
    }
    day.run(&file).unwrap()
}

#[test]
fn the_example_adds_up_and_shows_everything() {
    let snapshot = snapshot();
    let theo = snapshot.gains[MarkBy::Theo as usize];
    assert_eq!(theo.unmarked, 0);
    assert_eq!(snapshot.explained.total(), theo.net(), "to the last digit");
    assert_eq!(snapshot.history.last().map(|(_, e)| e.total()), Some(theo.net()));
    let fills = example("fills.csv").lines().count() - 1;
    assert_eq!(snapshot.fills.len(), fills);
    // The larger part of it is explained.
    let rest = snapshot.explained.rest.abs();
    let size: i128 = snapshot.explained.parts().iter().map(|part| part.abs()).sum();
    assert!(rest * 4 < size, "{:?}", snapshot.explained);
    for smile in &snapshot.smiles {
        let both = smile
            .strikes
            .iter()
            .filter(|point| point.bid.is_some() && point.ask.is_some());
        assert!(both.count() > 8, "{}", smile.expiry);
        let is_around = |point: &&super::snapshot::SmilePoint| {
            point.bid.is_none_or(|bid| bid < point.vol + 0.02)
                && point.ask.is_none_or(|ask| ask > point.vol - 0.02)
        };
        assert!(smile.strikes.iter().all(|point| is_around(&point)), "{smile:?}");
    }
    let text = report::text(&snapshot);
    for part in [
        "P&L of the day",
        "total by theoretical value",
        "vega √t",
        "Limits in use",
        "Mark-outs",
        "60 s",
        "Quoting obligations",
        "EW4X6 P4900",
        "*",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let page = report::html(&snapshot);
    for foreign in [
        "http:", "https:", "src=", "href=", "<script", "@import", "url(", "NaN", "inf",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // Gain, scenarios, two of strikes, two smiles.
    assert_eq!(page.matches("<svg").count(), 6);
}

#[test]
fn csv_files_are_rectangular_and_their_money_adds_up() {
    let snapshot = snapshot();
    for (name, text) in tables::all(&snapshot) {
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(widths.len() > 1, "{name} is empty");
        assert!(widths.iter().all(|width| *width == widths[0]), "{name}");
        assert!(!text.contains("NaN"), "{name}");
    }
    let (_, explained) = tables::all(&snapshot)
        .into_iter()
        .find(|(name, _)| *name == "explained.csv")
        .unwrap();
    let nano = |text: &str| text.parse::<tickwire_market::Price>().unwrap().raw();
    for line in explained.lines().skip(1) {
        let cells: Vec<i64> = line.split(',').skip(1).map(nano).collect();
        let (total, parts) = cells.split_last().unwrap();
        assert_eq!(parts.iter().sum::<i64>(), *total, "{line}");
    }
}

#[test]
fn wrong_lines_name_line_column_and_what_is_wrong() {
    let file = RiskFile::parse(&example("portfolio.toml")).unwrap();
    let symbols = Day::new(&file).unwrap().symbols;
    let head = "time,symbol,side,quantity,price\n";
    let good = "2026-11-20T15:00:00Z,ESZ6 C5000,buy,1,40.25";
    for (line, expected) in [
        (
            good.replace("T15", "X15"),
            "line 2, time: \"2026-11-20X15:00:00Z\" is no instant",
        ),
        (
            good.replace("C5000", "C5001"),
            "line 2, symbol: \"ESZ6 C5001\" is not in the portfolio file",
        ),
        (
            good.replace("buy", "bought"),
            "line 2, side: \"bought\" is neither buy nor sell",
        ),
        (
            good.replace(",1,", ",0,"),
            "line 2, quantity: at least one contract",
        ),
        (
            good.replace(",1,", ",-3,"),
            "line 2, quantity: \"-3\" is no number of contracts",
        ),
        (
            good.replace("40.25", "40.2x"),
            "line 2, price: \"40.2x\" is no price",
        ),
        (good.replace("40.25", ""), "line 2, price: it has to be there"),
        (format!("{good},5"), "line 2: 6 values for 5 columns"),
    ] {
        let error = input::read(Kind::Fills, &format!("{head}{line}\n"), &symbols).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    for (head, expected) in [
        ("", "line 1: no header"),
        ("time,symbol,side,price", "line 1: the column quantity is missing"),
        ("time,time", "line 1: the column time is there twice"),
        (
            "time,symbols",
            "line 1: no column \"symbols\" is known; these are: time,symbol,side",
        ),
    ] {
        let error = input::read(Kind::Fills, head, &symbols).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let text =
        "\u{feff}price,quantity,symbol,side,time\r\n40.25,1,ESZ6 C5000,buy,2026-11-20T15:00:00Z\r\n\r\n";
    assert_eq!(
        input::read(Kind::Fills, text, &symbols),
        input::read(Kind::Fills, &format!("{head}{good}\n"), &symbols)
    );
}

#[test]
fn wrong_portfolio_files_say_what_and_where() {
    let good = example("portfolio.toml");
    let day = |text: &str| {
        let file = RiskFile::parse(text)?;
        Day::new(&file)?.run(&file).map(|_| ())
    };
    assert_eq!(day(&good), Ok(()));
    for (from, to, expected) in [
        ("rate = 0.041", "rates = 0.041", "unknown field"),
        ("front = \"5004.25\"", "front = 5004.25", "expected a string"),
        ("front = \"5004.25\"", "front = \"5004,25\"", "is no price"),
        ("2026-11-20T15:30:00Z", "2026-11-20 15:30", "is no instant"),
        (
            "2026-11-20T15:30:00Z",
            "2026-11-20T13:30:00Z",
            "must be later than the one before",
        ),
        (
            "2026-11-20T21:00:00Z",
            "2026-11-28T21:00:00Z",
            "EW4X6 has expired",
        ),
        (
            "symbol = \"ESZ6 P4900\"",
            "symbol = \"ESZ6 P4901\"",
            "position ESZ6 P4901",
        ),
        ("step = \"25\"", "step = \"0\"", "strikes must go up"),
        ("series_min = 0.05", "series_min = 5", "outside 0..=1"),
        ("vol = 0.141", "vol = -0.141", "a parameter is out of its range"),
        (
            "[market.curve.ESZ6]\nforward = 5000.0",
            "[market.curve.ESZ9]\nforward = 5000.0",
            "there is no expiry ESZ9",
        ),
        (
            "wing = { vol = 0.144",
            "vol = 0.1\nwing = { vol = 0.144",
            "one of vol, wing and svi",
        ),
        (
            "multiplier = 50\nfee = \"1.18\"",
            "multiplier = 50\nfee = \"1.18\"\n[[future]]\nsymbol = \"ESZ6\"",
            "ESZ6 is listed twice",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let error = day(&good.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}
