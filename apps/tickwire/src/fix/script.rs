//! The language of `--script` and of the interactive prompt: one step a line, `#` begins a comment.

use tickwire_fixengine::message::{self, TagValue};

/// The steps, as `--help` and the prompt show them.
pub(super) const HELP: &str = include_str!("steps.txt");

/// A field that is wanted, or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Want {
    /// This value; may hold `$11` and `<TIME>`.
    Value(u32, Vec<u8>),
    /// Any value.
    Any(u32),
    /// No such field.
    None(u32),
}

impl Want {
    pub(super) fn tag(&self) -> u32 {
        match self {
            Want::Value(tag, _) | Want::Any(tag) | Want::None(tag) => *tag,
        }
    }
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Session(String),
    Timeout(u64),
    WaitLogon,
    WaitDisconnect,
    Wait(u64),
    Send(Vec<TagValue>),
    Order {
        is_buy: bool,
        qty: String,
        symbol: String,
        price: String,
        id: Option<String>,
    },
    Expect(Vec<Want>),
    Receive,
    Gap(u64),
    Logout,
    Disconnect,
    Connect,
    Help,
    Quit,
}

/// The steps of a file with the numbers of their lines.
pub(super) fn parse(text: &str) -> Result<Vec<(usize, Step)>, String> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let steps = lines.filter_map(|(at, line)| {
        let step = parse_line(line).transpose()?;
        Some(step.map(|s| (at, s)).map_err(|why| format!("line {at}: {why}")))
    });
    steps.collect()
}

/// The step of a line, `None` if it has none.
pub(super) fn parse_line(line: &str) -> Result<Option<Step>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let seconds = |text: &str| {
        let seconds = text.parse::<f64>().ok().filter(|s| (0.0..=86_400.0).contains(s));
        let ns = seconds.map(|s| (s * 1e9) as u64);
        ns.ok_or_else(|| format!("{text:?} is not a number of seconds from 0 to 86400"))
    };
    let step = match (word, rest) {
        ("session", id) if !id.is_empty() => Step::Session(id.into()),
        ("timeout", rest) => Step::Timeout(seconds(rest)?),
        ("wait", "logon") => Step::WaitLogon,
        ("wait", "disconnect") => Step::WaitDisconnect,
        ("wait", rest) => Step::Wait(seconds(rest)?),
        ("send", rest) => Step::Send(to_send(rest)?),
        ("order", rest) => order(rest)?,
        ("expect", rest) => Step::Expect(wants(rest)?),
        ("receive", "") => Step::Receive,
        ("gap", n) => Step::Gap(
            n.parse()
                .ok()
                .filter(|n| (1..=1_000_000).contains(n))
                .ok_or("gap needs a number from 1 to 1000000")?,
        ),
        ("logout", "") => Step::Logout,
        ("disconnect", "") => Step::Disconnect,
        ("connect", "") => Step::Connect,
        ("help", _) => Step::Help,
        ("quit" | "exit", "") => Step::Quit,
        // A message as it is.
        (word, _) if word.starts_with("35=") || word.starts_with("8=") => Step::Send(to_send(line)?),
        _ => return Err(format!("{line:?} is no step; the steps are\n{HELP}")),
    };
    Ok(Some(step))
}

fn to_send(text: &str) -> Result<Vec<TagValue>, String> {
    let fields = message::parse(text)?;
    message::to_send(fields.clone()).map(|_| fields)
}

fn order(text: &str) -> Result<Step, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (side, qty, symbol, price, id) = match words[..] {
        [side, qty, symbol, price] => (side, qty, symbol, price, None),
        [side, qty, symbol, price, id] => (side, qty, symbol, price, Some(id.to_string())),
        _ => return Err("an order is: order buy|sell QUANTITY SYMBOL PRICE [ID]".into()),
    };
    let is_buy = match side {
        "buy" => true,
        "sell" => false,
        _ => return Err(format!("{side:?} is neither buy nor sell")),
    };
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(|n| n > 0.0 && n.is_finite());
    if let Some(wrong) = [qty, price].into_iter().find(|text| !is_number(text)) {
        return Err(format!("{wrong:?} is not a number above 0"));
    }
    Ok(Step::Order {
        is_buy,
        qty: qty.into(),
        symbol: symbol.into(),
        price: price.into(),
        id,
    })
}

fn wants(text: &str) -> Result<Vec<Want>, String> {
    let (mut wants, mut fields) = (Vec::new(), Vec::new());
    for piece in text.split('|') {
        match piece.trim().strip_prefix('!') {
            Some(tag) => wants.push(Want::None(
                tag.parse().map_err(|_| format!("{piece:?}: ! needs a tag"))?,
            )),
            None => fields.push(piece),
        }
    }
    for (tag, value) in message::parse(&fields.join("|"))? {
        wants.push(match &value[..] {
            b"*" => Want::Any(tag),
            _ => Want::Value(tag, value),
        });
    }
    match wants.is_empty() {
        true => Err("expect needs at least one tag=value".into()),
        false => Ok(wants),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_read() {
        let text = "# a comment\n\nsession TW\ntimeout 2.5\nwait logon\nwait 0.1\nwait disconnect\nsend 35=D|11=1\n35=D|11=2\n\
                    order sell 5 AAPL 1.5 x\nexpect 35=8|58=*|!103\nreceive\ngap 3\nlogout\ndisconnect\nconnect\nhelp\nquit\n";
        let steps = parse(text).unwrap();
        assert_eq!(steps.len(), 16);
        assert_eq!(steps[0], (3, Step::Session("TW".into())));
        assert_eq!(steps[1].1, Step::Timeout(2_500_000_000));
        assert_eq!(
            steps[8].1,
            Step::Expect(vec![
                Want::None(103),
                Want::Value(35, b"8".to_vec()),
                Want::Any(58)
            ])
        );
    }

    #[test]
    fn mistakes_name_line_and_reason() {
        for (text, line, what) in [
            ("receive\nsnd 35=D", "line 2", "no step"),
            ("send 11=1", "line 1", "MsgType"),
            ("order buy 0 A 1", "line 1", "above 0"),
            ("order hold 1 A 1", "line 1", "neither buy nor sell"),
            ("wait long", "line 1", "seconds"),
            ("expect", "line 1", "at least one"),
            ("gap none", "line 1", "number"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(line) && error.contains(what), "{text}: {error}");
        }
    }
}
