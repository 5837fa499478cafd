//! Edits by file, their refusals, what undo leaves, hostile text.

use super::*;
use std::path::PathBuf;

const NOW: Nanos = Nanos(1_771_511_400 * Nanos::SECOND); // 2026-02-19
const EXAMPLE: &str = include_str!("../../../../examples/quoter/two-expiries.toml");

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tickwire-vol-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.0.join("vol.toml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn parsed(text: &str) -> (VolFile, Surface) {
    VolFile::parse(text.to_string(), NOW).unwrap_or_else(|e| panic!("{e}"))
}

/// Volatilities all over a surface, as bits.
fn all(surface: &Surface) -> Vec<u64> {
    (0..surface.len())
        .flat_map(|place| (58..=80).map(move |k| (place, f64::from(k) * 10_000.0)))
        .map(|(place, strike)| surface.vol(place, strike).unwrap().to_bits())
        .collect()
}

#[test]
fn the_example_is_a_surface() {
    let (file, surface) = parsed(EXAMPLE);
    let names: Vec<&str> = file.expiries().iter().map(|e| &e.name[..]).collect();
    assert_eq!(names, ["2026-03-20", "2026-06-19"]);
    assert_eq!(file.expiries()[0].date.days(), 20_532);
    assert!((surface.vol(0, 690_000.0).unwrap() - 0.165).abs() < 1e-12);
    // The fit goes through what it was fitted to.
    for (strike, vol, _) in &file.expiries()[1].quotes {
        assert!((surface.vol(1, *strike).unwrap() - vol).abs() < 0.002, "{strike}");
    }
    assert_eq!((surface.link(0), surface.forward(1)), (Some(1), Some(695_200.0)));
    assert_eq!(file.years(0, NOW), Some([0.08, 0.08]));
    assert_eq!(
        (file.place("2026-06"), file.place("2026"), file.place("")),
        (Some(1), None, None)
    );
}

#[test]
fn time_goes_by_the_clock_where_the_file_says_no_years() {
    let text = EXAMPLE.replace("years = 0.08", "at = \"2026-03-20T20:00:00Z\"");
    let (file, surface) = parsed(&text);
    let [business, calendar] = file.years(0, NOW).unwrap();
    assert!((calendar - 29.23 / 365.0).abs() < 1e-4 && (business - calendar).abs() > 1e-4);
    assert_eq!(surface.smile(0).unwrap().years(), business);
    // Without a business clock both are the calendar's, to the end of the day.
    let plain = format!(
        "{}{}",
        &text[..text.find("[clock]").unwrap()],
        &text[text.find("[[expiry]]").unwrap()..]
    );
    let (file, _) = parsed(&plain.replace("at = \"2026-03-20T20:00:00Z\"", ""));
    let [years, calendar] = file.years(0, NOW).unwrap();
    assert!(years == calendar && (calendar - 29.40 / 365.0).abs() < 1e-4);
    // The wing stays, total variance of an SVI curve shrinks with time.
    let svi = "svi = { a = 0.002, b = 0.02, rho = -0.4, m = 0.0, sigma = 0.1, years = 0.5 }";
    let text = text.replace(
        "wing = { vol = 0.165, slope = -0.35, put = 1.2, call = 0.8, down = -0.2, up = 0.12 }",
        svi,
    );
    let later = Nanos(NOW.0 + 10 * Nanos::DAY);
    let vol = |now| {
        VolFile::parse(text.clone(), now)
            .unwrap()
            .1
            .vol(0, 690_000.0)
            .unwrap()
    };
    assert!((vol(NOW) - (0.004_f64 / 0.5).sqrt()).abs() < 1e-9);
    assert!((vol(NOW) - vol(later)).abs() < 1e-12);
}

#[test]
fn every_edit_of_a_file_reads_back_as_it_was_made_and_undo_restores_the_bytes() {
    let folder = Folder::new("edits");
    let path = folder.file(EXAMPLE);
    for line in [
        "atm 2026-03-20 +0.005",
        "straddle 2026-03-20 +150 linked",
        "straddle 2026-03-20 -120",
        "slope 2026-06 -0.0005",
        "put-wing 2026-06-19 +0.0004",
        "call-wing 2026-06-19 +0.0003",
        "pivot 2026-06-19 -0.01",
        "float 2026-03-20 0.5",
        "nudge 2026-03-20 680000 +0.0002",
        "nudge 2026-06-19 700000 -0.0001",
        "clear-nudges 2026-03-20",
        "roll 2026-06-19 points 5300",
        "roll 2026-06-19 carry 0.03 0.25",
        "years 2026-03-20 0.0801",
        "fit 2026-06-19 max-move 0.02",
    ] {
        let before = std::fs::read_to_string(&path).unwrap();
        let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
        let version = file.log.version;
        let said =
            command(&mut file, &mut surface, line, "me", NOW).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(
            said.starts_with(&format!("version {}: 2026-", version + 1)),
            "{line}: {said}"
        );
        let after = std::fs::read_to_string(&path).unwrap();
        assert_eq!(after, file.text(), "{line}");
        // What is in the file is what was in memory.
        let (_, again) = file::load_at(&path, NOW).unwrap();
        assert_eq!(all(&again), all(&surface), "{line}");
        // Comments and everything else stay.
        for part in [
            "# docs/vol.md says",
            "# the last day of its options",
            "strikes = [650000.0",
        ] {
            assert!(after.contains(part), "{line}");
        }
        let said = undo_in_file(&path, "you", NOW).unwrap();
        assert!(
            said.starts_with(&format!("version {}: 2026-", version + 2)),
            "{line}: {said}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{line}");
        // Done again, so that the next one finds a file that was edited.
        let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
        command(&mut file, &mut surface, line, "me", NOW).unwrap();
    }
    let records = log::read(&path).unwrap();
    assert_eq!((records.len(), records[44].version), (45, 45));
    assert_eq!((records[1].undoes, records[1].who.as_str()), (Some(1), "you"));
    assert_eq!(log::standing(&records).len(), 15);
    assert_eq!(
        records[0].atm.as_ref().map(|(name, ..)| &name[..]),
        Some("2026-03-20")
    );
    let table = log_table(&path, Some(2)).unwrap();
    assert_eq!(table.rows().len(), 2);
    // All the way back.
    for _ in 0..15 {
        undo_in_file(&path, "me", NOW).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), EXAMPLE);
    let none = undo_in_file(&path, "me", NOW).unwrap_err();
    assert!(none.message.contains("nothing to undo"), "{none}");
}

#[test]
fn a_live_surface_and_its_file_are_one_thing() {
    let folder = Folder::new("live");
    let path = folder.file(EXAMPLE);
    let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
    let first = all(&surface);
    surface.set_front(691_000.0);
    let moved = all(&surface);
    for line in [
        "atm 2026-03-20 +0.005",
        "nudge 2026-03-20 680000 +0.0002",
        "straddle 2026-06-19 +100 linked",
    ] {
        command(&mut file, &mut surface, line, "me", NOW).unwrap();
    }
    assert_eq!(
        command(&mut file, &mut surface, "version", "me", NOW).unwrap(),
        "3"
    );
    // Somebody who asks for the file gets the market's price in it, and the same volatilities.
    let shown = command(&mut file, &mut surface, "file", "me", NOW).unwrap();
    assert!(shown.contains("front = 691000.0 "), "{shown}");
    let (_, theirs) = parsed(&shown);
    assert_eq!(all(&theirs), all(&surface));
    for version in 4..=6 {
        let said = command(&mut file, &mut surface, "undo", "me", NOW).unwrap();
        assert!(said.starts_with(&format!("version {version}: ")), "{said}");
    }
    assert_eq!(all(&surface), moved);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), EXAMPLE);
    surface.set_front(690_000.0);
    assert_eq!(all(&surface), first);
    let none = command(&mut file, &mut surface, "undo", "me", NOW).unwrap_err();
    assert!(none.contains("no edit since"), "{none}");
    // The file has another owner now: nothing is written, and the surface stays too.
    std::fs::write(&path, EXAMPLE.replace("rate = 0.04", "rate = 0.05")).unwrap();
    let refused = command(&mut file, &mut surface, "atm 2026-03-20 +0.005", "me", NOW).unwrap_err();
    assert!(refused.contains("changed by somebody else"), "{refused}");
    assert_eq!((all(&surface), file.log.version), (first, 6));
}

#[test]
fn an_edit_that_gives_something_away_is_refused_and_nothing_is_written() {
    let folder = Folder::new("refused");
    let path = folder.file(EXAMPLE);
    for (line, says) in [
        ("atm 2026-03-20 +0.3", "less variance"),
        ("put-wing 2026-03-20 +0.2", "refused: "),
        ("float 2026-03-20 3", "out of the control's range"),
        (
            "straddle 2026-03-20 -1000000 linked",
            "no volatility of 2026-03-20 gives that straddle",
        ),
        ("fit 2026-03-20", "2026-03-20 has no quotes to fit to"),
        ("fit 2026-06-19 max-move 0", "no fit: the fit would move"),
        ("nudge 2026-03-20 -5 +0.1", "out of the control's range"),
        ("sell everything", "there is no edit \"sell\""),
    ] {
        let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
        if line.starts_with("fit 2026-06") {
            command(&mut file, &mut surface, "atm 2026-06-19 +0.001", "me", NOW).unwrap();
        }
        let before = all(&surface);
        let refused = command(&mut file, &mut surface, line, "me", NOW).unwrap_err();
        assert!(refused.contains(says), "{line}: {refused}");
        assert_eq!(all(&surface), before, "{line}");
        if line.starts_with("fit 2026-06") {
            command(&mut file, &mut surface, "undo", "me", NOW).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), EXAMPLE);
    }
    let by_the_clock = EXAMPLE.replace("years = 0.08 ", "");
    let (mut file, mut surface) = parsed(&by_the_clock);
    let refused = command(&mut file, &mut surface, "years 2026-03-20 0.1", "me", NOW).unwrap_err();
    assert!(refused.contains("goes by the clock"), "{refused}");
    // A file that says so is not asked.
    let (mut file, mut surface) =
        parsed(&EXAMPLE.replace("refuse_arbitrage = true", "refuse_arbitrage = false"));
    let mine = By {
        who: "me".into(),
        is_forced: true,
    };
    command(&mut file, &mut surface, "atm 2026-03-20 +0.3", mine, NOW).unwrap();
}

#[test]
fn an_edit_that_goes_too_far_is_refused_with_what_it_would_have_done_until_it_is_forced() {
    let folder = Folder::new("steps");
    let path = folder.file(&EXAMPLE.replace("refuse_arbitrage = true", "refuse_arbitrage = false"));
    let text = std::fs::read_to_string(&path).unwrap();
    for (line, says) in [
        // A digit too many, and a percentage for a share.
        (
            "nudge 2026-03-20 690000 +0.2",
            "would move the volatility of 2026-03-20 at strike 690000 from 16.50 % to 36.50 %, by 20.00 points: one edit may move 2.00",
        ),
        ("nudge 2026-03-20 123456 +0.2", "at strike 123456"),
        ("atm 2026-03-20 +0.5", "by 50.00 points"),
        ("slope 2026-03-20 -0.01", "one edit may move 2.00"),
        ("put-wing 2026-03-20 +0.01", "one edit may move 2.00"),
        ("straddle 2026-03-20 +15000", "one edit may move 2.00"),
        // Cut to the least volatility there is.
        ("atm 2026-03-20 -0.5", "lead out of the range of volatilities at"),
        ("atm 2026-03-20 -0.5", "which would be cut to 0.01 %"),
        (
            "roll 2026-06-19 points 52000",
            "would move the forward of 2026-06-19 from 695200.00 to 742000.00, by 6.73 %",
        ),
        (
            "years 2026-03-20 0.8",
            "the time to 2026-03-20 from 0.08 to 0.8 years",
        ),
    ] {
        let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
        let before = all(&surface);
        let refused = command(&mut file, &mut surface, line, "me", NOW).unwrap_err();
        assert!(
            refused.contains(says) && refused.contains("--force"),
            "{line}: {refused}"
        );
        assert_eq!(all(&surface), before, "{line}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{line}");
        let mine = By {
            who: "me".into(),
            is_forced: true,
        };
        command(&mut file, &mut surface, line, mine, NOW).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_ne!(std::fs::read_to_string(&path).unwrap(), text, "{line}");
        // Back to what was there before is no step.
        undo_in_file(&path, "me", NOW).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{line}");
    }
    // The file says how far.
    let wider = text.replacen("vol_step_max = 0.02", "vol_step_max = 0.25", 1);
    let (mut file, mut surface) = parsed(&wider);
    command(&mut file, &mut surface, "nudge 2026-03-20 690000 +0.2", "me", NOW).unwrap();
    let none = text.replacen("vol_step_max = 0.02", "vol_step_max = 0.0", 1);
    let error = VolFile::parse(none, NOW).err().unwrap();
    assert!(error.contains("line 11: edits: vol_step_max"), "{error}");
    // What others have written into a file is an edit too.
    let (mut file, mut surface) = file::load_at(&path, NOW).unwrap();
    let before = all(&surface);
    std::fs::write(&path, text.replace("vol = 0.165", "vol = 0.65")).unwrap();
    let refused = command(&mut file, &mut surface, "reload", "me", NOW).unwrap_err();
    assert!(refused.contains("one edit may move 2.00"), "{refused}");
    assert_eq!((all(&surface), file.text()), (before, &text[..]));
    // By the command line, whichever way round.
    std::fs::write(&path, &text).unwrap();
    let edit = |words: &[&str]| {
        let place = VolatilitySource {
            file: Some(path.clone()),
            socket: None,
        };
        run(&VolArgs {
            command: VolCommand::Edit {
                place,
                force: false,
                who: Some("me".into()),
                words: words.iter().map(|word| (*word).to_string()).collect(),
            },
        })
    };
    let refused = edit(&["atm", "2026-03-20", "-0.5"]).unwrap_err();
    assert_eq!(refused.code, Code::CheckFailed);
    edit(&["atm", "2026-03-20", "-0.1", "--force"]).unwrap();
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let with = |from: &str, to: &str| EXAMPLE.replacen(from, to, 1);
    for (text, line, says) in [
        (
            with("front = 690000.0", "front = -1.0"),
            7,
            "front must be a number above 0",
        ),
        (with("front = 690000.0", "front = \"x\""), 7, "invalid type"),
        (with("rate = 0.04", "rat = 0.04"), 8, "unknown field"),
        (
            with("session_share = 0.8", "session_share = 8.0"),
            16,
            "session_share is out of its range",
        ),
        (with("\"2026-05-25\"", "\"May 25\""), 16, "holiday \"May 25\""),
        (with("2026-03-18T18:00:00Z", "noon"), 16, "event at \"noon\""),
        (with("\"2026-03-20\"", "\"March\""), 27, "must be the last day"),
        (
            with("\"2026-03-20\" ", "\"2027-03-20\" "),
            37,
            "in order, each once",
        ),
        (
            with("years = 0.08", "at = \"tomorrow\""),
            28,
            "at \"tomorrow\" must be as",
        ),
        (with("years = 0.08", "years = 0.0"), 27, "has expired"),
        (with("wing = {", "wung = {"), 32, "unknown field"),
        (with("vol = 0.165, ", ""), 32, "out of their ranges"),
        (
            with("float = 0.0 }", "float = 7.0 }"),
            33,
            "a control is out of its range",
        ),
        (
            with("strikes = [", "nudges = [[5.0, 0.1], [4.0, 0.1]]\nstrikes = ["),
            34,
            "rising strikes",
        ),
        (
            with(
                "strikes = [",
                "svi = { a = 1, b = 1, rho = 0, m = 0, sigma = 1, years = 1 }\nstrikes = [",
            ),
            32,
            "has svi and wing",
        ),
        (with("roll = { points = 0.0 }", "roll = { pints = 0.0 }"), 30, ""),
        (
            with("[600000.0, 0.244]", "[600000.0]"),
            42,
            "a quote is [strike, volatility]",
        ),
        (with("[600000.0, 0.244]", "[600000.0, 0.9]"), 42, "no fit: "),
    ] {
        let error = match VolFile::parse(text, NOW) {
            Err(error) => error,
            Ok(_) => panic!("{says} was not seen"),
        };
        assert!(
            error.contains(&format!("line {line}")) && error.contains(says),
            "{line} {says}: {error}"
        );
    }
    let table = with(
        "controls = { atm = 0.0, slope = 0.0, put_wing = 0.0, call_wing = 0.0, pivot = 0.0, float = 0.0 }\n",
        "",
    )
    .replacen(
        "[[expiry]]\nname = \"2026-06-19\"",
        "[expiry.controls]\natm = 0.01\n\n[[expiry]]\nname = \"2026-06-19\"",
        1,
    );
    let error = VolFile::parse(table, NOW).err().unwrap();
    assert!(error.contains("write controls on a line of its own"), "{error}");
    let nowhere = file::load_at(Path::new("/nowhere/vol.toml"), NOW).err().unwrap();
    assert!(
        nowhere.message.contains("examples/quoter/two-expiries.toml"),
        "{nowhere}"
    );
}

#[test]
fn hostile_text_is_refused_without_harm() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut file, mut surface) = parsed(EXAMPLE);
    let words = [
        "atm",
        "2026-03-20",
        "2026-06-19",
        "+1e308",
        "-0.1",
        "nudge",
        "fit",
        "roll",
        "carry",
        "ü",
        "+",
        "linked",
        "0",
    ];
    for _ in 0..2_000 {
        let line: Vec<&str> = (0..random(6)).map(|_| words[random(words.len())]).collect();
        let _ = command(&mut file, &mut surface, &line.join(" "), "me", NOW);
        assert!(
            all(&surface).iter().all(|bits| f64::from_bits(*bits).is_finite()),
            "{line:?}"
        );
    }
    for _ in 0..2_000 {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len());
            bytes[at] = b" 0.-[]{}=\"\nx#"[random(13)];
        }
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok((mut file, mut surface)) = VolFile::parse(text, NOW)
        {
            let _ = command(&mut file, &mut surface, "atm 2026-03-20 +0.0001", "me", NOW);
        }
    }
}

#[test]
fn a_surface_is_shown_as_tables_and_as_one_page() {
    let (mut file, mut surface) = parsed(EXAMPLE);
    command(
        &mut file,
        &mut surface,
        "nudge 2026-03-20 680000 +0.0002",
        "me",
        NOW,
    )
    .unwrap();
    let report = show::report(&file, &surface, None, 11, NOW);
    let text = report.to_text(tickwire_lab::WHOLE);
    for part in [
        "2026-03-20",
        "2026-06-19",
        "695200.00",
        "Strikes of 2026-03-20",
        "680000",
        "+0.020 %",
        "wing",
        "svi",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = report.to_html();
    assert!(page.contains("<polyline") && page.contains("<circle") && !page.contains("NaN"));
    for foreign in ["http:", "https:", "src=", "<script"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let one = show::report(&file, &surface, Some(1), 21, NOW).to_text(tickwire_lab::WHOLE);
    assert!(!one.contains("2026-03-20") && one.lines().count() > 25, "{one}");
}

#[test]
fn a_running_quoter_is_told_the_same_lines() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    let folder = Folder::new("socket");
    let listener = UnixListener::bind(folder.0.join("control")).unwrap();
    let quoter = std::thread::spawn(move || {
        let (mut file, mut surface) = parsed(EXAMPLE);
        surface.set_front(691_000.0);
        let mut asked = Vec::new();
        for _ in 0..4 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            let request: serde_json::Value = serde_json::from_str(&request).unwrap();
            assert_eq!(request["do"], "vol");
            let (line, who) = (
                request["line"].as_str().unwrap(),
                request["who"].as_str().unwrap(),
            );
            let answer = match command(&mut file, &mut surface, line, who, NOW) {
                Ok(says) => json!({ "ok": true, "says": says }),
                Err(says) => json!({ "ok": false, "error": says }),
            };
            stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
            asked.push(line.to_string());
        }
        asked
    });
    let place = VolatilitySource {
        file: None,
        socket: Some(folder.0.clone()),
    };
    let said = tell(&place, "atm 2026-03-20 +0.005", &"me".into()).unwrap();
    assert!(
        said.starts_with("version 1: 2026-03-20 at the money 16.4"),
        "{said}"
    );
    let refused = tell(&place, "atm 2026-03-20 0.005", &"me".into()).unwrap_err();
    assert!(
        refused.code == Code::CheckFailed && refused.message.contains("has no sign"),
        "{refused}"
    );
    show_all(&place, Some("2026-03"), 5, Format::Markdown).unwrap();
    assert_eq!(
        quoter.join().unwrap(),
        ["atm 2026-03-20 +0.005", "atm 2026-03-20 0.005", "file", "version"]
    );
    let nobody = VolatilitySource {
        file: None,
        socket: Some(folder.0.join("nobody")),
    };
    let none = tell(&nobody, "undo", &"me".into()).unwrap_err();
    assert!(
        none.code == Code::PeerLost && none.message.contains("tickwire quote -c FILE"),
        "{none}"
    );
}
