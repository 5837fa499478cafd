//! A reader of Prometheus's query language, as much of it as a dashboard needs: selectors, ranges, functions,
//! aggregations, binary operators with their matching, numbers, and the three types between which Prometheus
//! tells apart. It is stricter than the real one where it knows less: a function that is not in [`FUNCTIONS`]
//! is refused. (The parsers in the registry bring forty crates.)

/// What an expression is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Instant,
    Range,
}

/// Functions with what they take.
const FUNCTIONS: &[(&str, &[Kind])] = &[
    ("rate", &[Kind::Range]),
    ("increase", &[Kind::Range]),
    ("histogram_quantile", &[Kind::Number, Kind::Instant]),
    ("vector", &[Kind::Number]),
    ("time", &[]),
];

/// Aggregations, and whether a number comes first.
const AGGREGATIONS: &[(&str, bool)] = &[
    ("sum", false),
    ("count", false),
    ("max", false),
    ("min", false),
    ("avg", false),
    ("topk", true),
];

/// Binary operators by rising strength (Prometheus documentation, "Binary operator precedence").
const OPERATORS: &[&[&str]] = &[
    &["or"],
    &["and", "unless"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

/// Whether it is a query.
pub(super) fn check(query: &str) -> Result<(), String> {
    let mut reader = Reader {
        tokens: tokens(query)?,
        at: 0,
    };
    let kind = reader.binary(0)?;
    match (reader.peek(), kind) {
        (Some(more), _) => Err(format!("{more:?} after the end")),
        (None, Kind::Range) => Err("a range cannot be drawn".into()),
        _ => Ok(()),
    }
}

fn tokens(query: &str) -> Result<Vec<&str>, String> {
    let mut rest = query.trim_start();
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || "_:.".contains(c);
        let length = match first {
            '"' => rest[1..].find('"').ok_or("a quote without its end")? + 2,
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if ["==", "!=", "<=", ">=", "=~", "!~"]
                .iter()
                .any(|two| rest.starts_with(two)) =>
            {
                2
            }
            c if "(){}[],=<>+-*/%".contains(c) => 1,
            c => return Err(format!("{c:?} has no meaning")),
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<&'a str, String> {
        let token = self.peek().ok_or("it ends too early")?;
        self.at += 1;
        Ok(token)
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_it = self.peek() == Some(token);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.next()? {
            found if found == token => Ok(()),
            found => Err(format!("{found:?} where {token:?} belongs")),
        }
    }

    /// `(label, label)`.
    fn labels(&mut self) -> Result<(), String> {
        self.expect("(")?;
        while !self.takes(")") {
            let label = self.next()?;
            if !is_name(label) {
                return Err(format!("{label:?} is no label"));
            }
            if !self.takes(",") && self.peek() != Some(")") {
                return Err("labels without a comma".into());
            }
        }
        Ok(())
    }

    fn binary(&mut self, strength: usize) -> Result<Kind, String> {
        let Some(operators) = OPERATORS.get(strength) else {
            return self.operand();
        };
        let mut left = self.binary(strength + 1)?;
        while let Some(operator) = self.peek().filter(|token| operators.contains(token)) {
            self.at += 1;
            let mut is_matched = false;
            if self.takes("on") || self.takes("ignoring") {
                is_matched = true;
                self.labels()?;
                if self.takes("group_left") || self.takes("group_right") {
                    self.labels()?;
                }
            }
            let right = self.binary(strength + 1)?;
            let vectors = left == Kind::Instant && right == Kind::Instant;
            if [left, right].contains(&Kind::Range) {
                return Err(format!("{operator} takes no range"));
            }
            if (is_matched || strength < 2) && !vectors {
                return Err(format!("{operator} with matching is between vectors only"));
            }
            if left == Kind::Number {
                left = right;
            }
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Kind, String> {
        let token = self.next()?;
        if token == "(" {
            let kind = self.binary(0)?;
            self.expect(")")?;
            return Ok(kind);
        }
        if token.parse::<f64>().is_ok() {
            return Ok(Kind::Number);
        }
        if !is_name(token) {
            return Err(format!("{token:?} where a value belongs"));
        }
        if let Some((_, takes_number)) = AGGREGATIONS.iter().find(|(name, _)| *name == token) {
            return self.aggregation(*takes_number);
        }
        if self.peek() == Some("(") {
            let (_, takes) = FUNCTIONS
                .iter()
                .find(|(name, _)| *name == token)
                .ok_or_else(|| format!("{token} is no function known here"))?;
            self.arguments(takes)?;
            return Ok(if token == "time" {
                Kind::Number
            } else {
                Kind::Instant
            });
        }
        self.selector()
    }

    fn aggregation(&mut self, takes_number: bool) -> Result<Kind, String> {
        let mut is_grouped = false;
        if self.takes("by") || self.takes("without") {
            is_grouped = true;
            self.labels()?;
        }
        match takes_number {
            true => self.arguments(&[Kind::Number, Kind::Instant])?,
            false => self.arguments(&[Kind::Instant])?,
        }
        if !is_grouped && (self.takes("by") || self.takes("without")) {
            self.labels()?;
        }
        Ok(Kind::Instant)
    }

    fn arguments(&mut self, kinds: &[Kind]) -> Result<(), String> {
        self.expect("(")?;
        for (nth, kind) in kinds.iter().enumerate() {
            if nth > 0 {
                self.expect(",")?;
            }
            let found = self.binary(0)?;
            if found != *kind {
                return Err(format!("argument {} is {found:?}, not {kind:?}", nth + 1));
            }
        }
        self.expect(")")
    }

    /// What follows a metric's name: matchers, and a range.
    fn selector(&mut self) -> Result<Kind, String> {
        if self.takes("{") {
            while !self.takes("}") {
                let (label, how, value) = (self.next()?, self.next()?, self.next()?);
                let is_matcher = is_name(label) && ["=", "!=", "=~", "!~"].contains(&how);
                if !is_matcher || !value.starts_with('"') {
                    return Err(format!("{label}{how}{value} is no matcher"));
                }
                if !self.takes(",") && self.peek() != Some("}") {
                    return Err("matchers without a comma".into());
                }
            }
        }
        if !self.takes("[") {
            return Ok(Kind::Instant);
        }
        let length = self.next()?;
        let is_duration = length
            .strip_suffix(['s', 'm', 'h', 'd'])
            .is_some_and(|n| n.parse::<u32>().is_ok());
        if !is_duration {
            return Err(format!("{length:?} is no duration"));
        }
        self.expect("]")?;
        Ok(Kind::Range)
    }
}
