//! Edits as lines of text: the same in a file's log, on the command line and through a quoter's control
//! socket.

use tickwire_options::surface::{Edit, Roll};

/// The longest line, in bytes.
const LINE_MAX: usize = 1_000;

/// What a line asks for. Expiries are places in the surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Line {
    Edit(Edit),
    /// Moves the straddle of one expiry without those linked to it.
    StraddleAlone {
        expiry: usize,
        points: f64,
    },
    /// Fits the curve to the quotes; the volatility at the money moves so far at most.
    Fit {
        expiry: usize,
        move_max: Option<f64>,
    },
    Undo,
    /// Reads the file again.
    Reload,
    /// The file as it is now.
    File,
    /// The number of the last edit.
    Version,
}

/// Every line there is: its words, an example, what it does.
pub(super) const GRAMMAR: [(&str, &str, &str); 17] = [
    (
        "atm EXPIRY ±VOL",
        "atm 2026-03-20 +0.005",
        "every volatility of the expiry",
    ),
    (
        "straddle EXPIRY ±POINTS [linked]",
        "straddle 2026-03-20 +1.5 linked",
        "the straddle at the money; linked expiries by the same variance per unit of business time",
    ),
    (
        "slope EXPIRY ±VOL",
        "slope 2026-03-20 -0.001",
        "volatility per deviation",
    ),
    (
        "put-wing EXPIRY ±VOL",
        "put-wing 2026-03-20 +0.0005",
        "volatility per squared deviation below the pivot",
    ),
    (
        "call-wing EXPIRY ±VOL",
        "call-wing 2026-03-20 +0.0005",
        "volatility per squared deviation above it",
    ),
    (
        "pivot EXPIRY ±LOG-STRIKE",
        "pivot 2026-03-20 -0.01",
        "where slope and wings begin",
    ),
    (
        "float EXPIRY SHARE",
        "float 2026-03-20 0.5",
        "0: strikes keep their volatilities when the forward moves; 1: multiples of it do; up to 2",
    ),
    (
        "nudge EXPIRY STRIKE ±VOL",
        "nudge 2026-03-20 680000 +0.002",
        "one strike",
    ),
    (
        "clear-nudges EXPIRY",
        "clear-nudges 2026-03-20",
        "no strike has one any more",
    ),
    (
        "roll EXPIRY points POINTS",
        "roll 2026-03-20 points 12.5",
        "the forward is the front future plus so many points",
    ),
    (
        "roll EXPIRY carry RATE YEARS",
        "roll 2026-03-20 carry 0.03 0.25",
        "or grown by a rate for so many years",
    ),
    (
        "years EXPIRY YEARS",
        "years 2026-03-20 0.25",
        "time left, of an expiry whose file says years",
    ),
    (
        "fit EXPIRY [max-move VOL]",
        "fit 2026-03-20 max-move 0.01",
        "the curve to the quoted volatilities; refused when it is too far off or moves too far",
    ),
    ("undo", "undo", "takes the last edit back"),
    (
        "reload",
        "reload",
        "of a running quoter: the file as others have left it, read again whole",
    ),
    ("file", "file", "the surface as a file, as it is now"),
    ("version", "version", "the number of the last edit"),
];

/// Reads a line; `place` finds an expiry by its name.
///
/// # Errors
/// What was wrong and what was expected.
pub(super) fn parse(line: &str, place: impl Fn(&str) -> Option<usize>) -> Result<Line, String> {
    if line.len() > LINE_MAX {
        return Err(format!("an edit has at most {LINE_MAX} bytes"));
    }
    if line.chars().any(char::is_control) {
        return Err("an edit is one line of text".into());
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((&name, rest)) = words.split_first() else {
        return Err(format!("nothing was said; expected one of {}", names()));
    };
    let forms: Vec<_> = GRAMMAR
        .iter()
        .filter(|(form, ..)| form.split(' ').next() == Some(name))
        .collect();
    let Some((_, example, _)) = forms.first() else {
        return Err(format!("there is no edit {name:?}; expected one of {}", names()));
    };
    let forms: Vec<&str> = forms.iter().map(|(form, ..)| *form).collect();
    let expected = format!("expected {}, for example `{example}`", forms.join(" or "));
    let wrong = |says: String| format!("{says}; {expected}");
    let expiry = |at: usize| {
        let name = rest.get(at).ok_or_else(|| wrong("no expiry".into()))?;
        place(name).ok_or_else(|| {
            wrong(format!(
                "the surface has no expiry {name:?}, or several that begin so"
            ))
        })
    };
    let number = |at: usize| {
        let word = rest.get(at).ok_or_else(|| wrong("a number is missing".into()))?;
        let value = word
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite() && is_plain(word));
        value.ok_or_else(|| wrong(format!("{word:?} is not a number")))
    };
    let amount = |at: usize| match rest.get(at) {
        Some(word) if !word.starts_with(['+', '-']) => {
            Err(wrong(format!("{word:?} has no sign: it is added")))
        }
        _ => number(at),
    };
    let last = |count: usize| match rest.get(count) {
        Some(word) => Err(wrong(format!("{word:?} is too much"))),
        None => Ok(()),
    };
    let edit = match name {
        "atm" | "slope" | "put-wing" | "call-wing" | "pivot" => {
            let (expiry, by) = (expiry(0)?, amount(1)?);
            last(2)?;
            match name {
                "atm" => Edit::Atm { expiry, by },
                "slope" => Edit::Slope { expiry, by },
                "put-wing" => Edit::PutWing { expiry, by },
                "call-wing" => Edit::CallWing { expiry, by },
                _ => Edit::Pivot { expiry, by },
            }
        }
        "straddle" => {
            let (expiry, points) = (expiry(0)?, amount(1)?);
            if rest.get(2) != Some(&"linked") {
                last(2)?;
                return Ok(Line::StraddleAlone { expiry, points });
            }
            last(3)?;
            Edit::Straddle { expiry, points }
        }
        "float" => {
            let (expiry, to) = (expiry(0)?, number(1)?);
            last(2)?;
            Edit::Float { expiry, to }
        }
        "nudge" => {
            let (expiry, strike, by) = (expiry(0)?, number(1)?, amount(2)?);
            last(3)?;
            Edit::Nudge { expiry, strike, by }
        }
        "clear-nudges" => {
            let expiry = expiry(0)?;
            last(1)?;
            Edit::ClearNudges { expiry }
        }
        "roll" => {
            let expiry = expiry(0)?;
            let roll = match rest.get(1) {
                Some(&"points") => {
                    last(3)?;
                    Roll::Points(number(2)?)
                }
                Some(&"carry") => {
                    last(4)?;
                    Roll::Carry {
                        rate: number(2)?,
                        years: number(3)?,
                    }
                }
                _ => return Err(wrong("how does it roll?".into())),
            };
            Edit::Roll { expiry, roll }
        }
        "years" => {
            let (expiry, to) = (expiry(0)?, number(1)?);
            last(2)?;
            Edit::Years { expiry, to }
        }
        "fit" => {
            let expiry = expiry(0)?;
            let move_max = match rest.get(1) {
                None => None,
                Some(&"max-move") => {
                    last(3)?;
                    Some(number(2)?)
                }
                Some(word) => return Err(wrong(format!("{word:?} is too much"))),
            };
            return Ok(Line::Fit { expiry, move_max });
        }
        _ => {
            last(0)?;
            return Ok(match name {
                "undo" => Line::Undo,
                "reload" => Line::Reload,
                "file" => Line::File,
                _ => Line::Version,
            });
        }
    };
    Ok(Line::Edit(edit))
}

/// Digits, a point, an exponent, a sign: not `inf`, not `nan`.
fn is_plain(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E'))
}

fn names() -> String {
    let mut names: Vec<&str> = GRAMMAR
        .iter()
        .filter_map(|(form, ..)| form.split(' ').next())
        .collect();
    names.dedup();
    names.join(", ")
}

/// The grammar for people.
pub(super) fn help() -> String {
    /// What an edit does stands below it, further in, in lines that fit the narrowest usual terminal.
    const COLUMNS: usize = 80;
    const INDENT: &str = "      ";
    let mut help = String::new();
    for (form, _, does) in GRAMMAR {
        help += &format!("  {form}\n{INDENT}");
        let mut column = INDENT.len();
        for (at, word) in does.split(' ').enumerate() {
            let length = word.chars().count();
            if at > 0 && column + 1 + length > COLUMNS {
                help += &format!("\n{INDENT}{word}");
                column = INDENT.len() + length;
            } else {
                help += if at > 0 { " " } else { "" };
                help += word;
                column += length + usize::from(at > 0);
            }
        }
        help.push('\n');
    }
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Option<usize> {
        ["2026-03-20", "2026-06-19"].iter().position(|n| *n == name)
    }

    #[test]
    fn every_example_of_the_grammar_is_a_line() {
        for (form, example, _) in GRAMMAR {
            let parsed = parse(example, place);
            assert!(parsed.is_ok(), "{form}: {parsed:?}");
        }
        let nudge = Edit::Nudge {
            expiry: 1,
            strike: 5100.0,
            by: -0.002,
        };
        assert_eq!(
            parse("  nudge 2026-06-19   5100 -2e-3 ", place),
            Ok(Line::Edit(nudge))
        );
    }

    #[test]
    fn what_is_no_edit_is_told_what_was_expected() {
        for (line, says) in [
            ("", "nothing was said; expected one of atm, straddle"),
            ("   ", "nothing was said"),
            ("shift 2026-03-20 +1", "no edit \"shift\"; expected one of atm"),
            (
                "atm",
                "no expiry; expected atm EXPIRY ±VOL, for example `atm 2026-03-20 +0.005`",
            ),
            ("atm 2027-01-01 +0.1", "no expiry \"2027-01-01\""),
            ("atm 2026-03-20", "a number is missing"),
            ("atm 2026-03-20 0.1", "has no sign: it is added"),
            ("atm 2026-03-20 +nan", "\"+nan\" is not a number"),
            ("atm 2026-03-20 +inf", "is not a number"),
            ("atm 2026-03-20 +1e999", "is not a number"),
            ("atm 2026-03-20 +0.1 +0.1", "\"+0.1\" is too much"),
            ("straddle 2026-03-20 +1 all", "\"all\" is too much"),
            ("roll 2026-03-20 5", "how does it roll?"),
            (
                "roll 2026-03-20 carry 0.03",
                "a number is missing; expected roll EXPIRY points POINTS or roll EXPIRY carry",
            ),
            ("fit 2026-03-20 0.1", "is too much; expected fit"),
            ("undo 3", "\"3\" is too much"),
            ("atm 2026-03-20\n+0.1", "one line of text"),
        ] {
            let error = parse(line, place).unwrap_err();
            assert!(error.contains(says), "{line:?}: {error}");
        }
        assert!(
            parse(&"x".repeat(1_001), place)
                .unwrap_err()
                .contains("1000 bytes")
        );
        let said = help();
        // What each does stands further in.
        let forms = said.lines().filter(|line| !line.starts_with("   "));
        assert_eq!(forms.count(), GRAMMAR.len());
    }
}
