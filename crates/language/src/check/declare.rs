//! Declarations, handlers and tests.

mod steps;

use super::*;
use crate::ast::{Handler, TableFrom};
use crate::ir::{Event, InstrumentUse, Named, Param, TableUse, WindowUse};
use steps::csv;
pub(crate) use steps::{number, with_session};
use tickwire_market::{Symbol, Venue};
use tickwire_trading::strategy::TIMERS;

/// The most values that a window may hold.
const WINDOW_MAX: i64 = 4_096;
/// The most rows of a table.
const ROWS_MAX: usize = 65_536;
/// The longest array.
const ARRAY_MAX: i64 = 4_096;

impl Checker<'_> {
    pub(super) fn file(&mut self, file: &crate::ast::File) {
        match &file.name {
            Some(name) => self.program.name = name.text.clone(),
            None => self.say(
                Diagnostic::new(
                    Span::default(),
                    "the file names no strategy",
                    "expected `strategy NAME`",
                )
                .help("a file begins with `strategy` and a name"),
            ),
        }
        self.program.memory = vec![0; word::INSTRUMENTS as usize];
        for item in &file.items {
            if let Some(name) = named(item) {
                self.check_name(name);
            }
        }
        // In the order in which they can name each other, whatever the order of the text.
        let passes: [fn(&Item) -> bool; 4] = [
            |i| matches!(i, Item::Enum { .. }),
            |i| matches!(i, Item::Const { .. }),
            |i| matches!(i, Item::Param { .. }),
            |i| matches!(i, Item::Instrument { .. }),
        ];
        for pass in passes {
            for item in file.items.iter().filter(|item| pass(item)) {
                self.declare(item);
            }
        }
        for item in &file.items {
            if !passes.iter().any(|pass| pass(item)) {
                self.declare(item);
            }
        }
        if self.program.instruments.is_empty() && self.wrong.is_empty() {
            self.say(
                Diagnostic::new(
                    Span::default(),
                    "the file names no instrument",
                    "nothing to trade",
                )
                .help("write `instrument usd = \"USD000UTSTOM\" session \"CETS\"`"),
            );
        }
        // Functions that nobody calls are checked too.
        for n in 0..self.functions.len() {
            self.begin();
            let sites = self.program.sites.len();
            self.try_function(n);
            self.scopes.clear();
            self.program.sites.truncate(sites);
            self.code.code_ops = 0;
        }
        let mut seen: BTreeMap<Event, Span> = BTreeMap::new();
        for item in &file.items {
            if let Item::Handler(handler) = item {
                self.handler(handler, &mut seen);
            }
        }
        for item in &file.items {
            if let Item::Test(test) = item {
                self.test(test);
            }
        }
        self.program.handlers.sort_by_key(|code| code.event);
        // Every test has its own values of parameters; the checks of tests are found by their number.
    }

    fn check_name(&mut self, name: &Name) {
        if expression::BUILTINS.contains(&name.text.as_str()) {
            let message = format!("`{}` is a function of the language", name.text);
            self.wrong(name.span, message, "expected another name");
        }
    }

    fn global(&mut self, name: &Name, global: Global) {
        if let Some((other, at)) = self.globals.get(&name.text) {
            let (what, at) = (other.what(), *at);
            let found = Diagnostic::new(
                name.span,
                format!("`{}` is declared twice", name.text),
                format!("it is {what} already"),
            );
            self.say(found.also(at, "declared here"));
            return;
        }
        self.globals.insert(name.text.clone(), (global, name.span));
    }

    fn declare(&mut self, item: &Item) {
        match item {
            Item::Enum { name, values } => {
                if values.is_empty() {
                    self.wrong(name.span, "an enum without values", "expected at least one value");
                }
                for (n, value) in values.iter().enumerate() {
                    if let Some(first) = values[..n].iter().find(|v| v.text == value.text) {
                        let found =
                            Diagnostic::new(value.span, format!("`{}` is named twice", value.text), "again");
                        self.say(found.also(first.span, "first here"));
                    }
                }
                let n = self.program.enums.len() as u16;
                let values = values.iter().map(|v| v.text.clone()).collect();
                self.program.enums.push((name.text.clone(), values));
                self.global(name, Global::Enum(n));
            }
            Item::Const { name, ty, value } => self.declare_const(name, ty, value),
            Item::Param {
                name,
                ty,
                value,
                range,
            } => self.declare_param(name, ty, value, range.as_ref()),
            Item::Instrument {
                name,
                symbol,
                session,
                venue,
            } => self.declare_instrument(name, symbol, session.as_ref(), venue.as_ref()),
            Item::State { name, ty, value } => self.declare_state(name, ty, value),
            Item::Window {
                name,
                ty,
                over,
                capacity,
            } => {
                let element = self.type_of(ty);
                if ty.is_optional || ty.len.is_some() || !(element.is_number() || element == Type::Wrong) {
                    self.wrong(
                        ty.span,
                        "a window holds plain numbers",
                        "expected int, price, ticks, qty, money or duration",
                    );
                }
                let over = match over {
                    Some(e) => self.fold(e, Type::Duration).unwrap_or(1),
                    None => 0,
                };
                let capacity = self.fold(capacity, Type::Int).unwrap_or(1);
                if !(1..=WINDOW_MAX).contains(&capacity) {
                    self.wrong(
                        name.span,
                        format!("a window of {capacity} values"),
                        format!("expected 1 to {WINDOW_MAX}"),
                    );
                }
                let capacity = capacity.clamp(1, WINDOW_MAX) as u32;
                let words = 5 + u64::from(capacity) * if over > 0 { 2 } else { 1 };
                let at = self.allocate(name.span, words);
                let n = self.program.windows.len() as u16;
                self.program.windows.push(WindowUse {
                    name: name.text.clone(),
                    ty: element,
                    over,
                    capacity,
                    at,
                });
                self.global(name, Global::Window(n));
            }
            Item::Table {
                name,
                key,
                value,
                from,
            } => self.declare_table(name, key, value, from),
            Item::Timer { name } => {
                let n = self.program.timers.len();
                if n >= TIMERS {
                    self.wrong(
                        name.span,
                        format!("more than {TIMERS} timers"),
                        "no place for this one",
                    );
                    return;
                }
                self.program.timers.push(name.text.clone());
                self.global(name, Global::Timer(n as u8));
            }
            Item::Counter { name } => {
                let at = self.allocate(name.span, 1);
                let n = self.program.counters.len() as u16;
                self.program.counters.push(Named {
                    name: name.text.clone(),
                    ty: Type::Int,
                    at,
                });
                self.global(name, Global::Counter(n));
            }
            Item::Function {
                name,
                params,
                result,
                body,
            } => {
                let n = self.functions.len();
                self.functions.push(Function {
                    params: params.clone(),
                    result: result.clone(),
                    body: body.clone(),
                    name: name.clone(),
                });
                self.global(name, Global::Function(n));
            }
            Item::Handler(_) | Item::Test(_) => {}
        }
    }

    fn array_len(&mut self, ty: &TypeName) -> Option<u32> {
        let len = ty.len.as_ref()?;
        let n = self.fold(len, Type::Int).unwrap_or(1);
        if !(1..=ARRAY_MAX).contains(&n) {
            self.wrong(
                len.span,
                format!("an array of {n} values"),
                format!("expected 1 to {ARRAY_MAX}"),
            );
        }
        Some(n.clamp(1, ARRAY_MAX) as u32)
    }

    fn declare_const(&mut self, name: &Name, ty: &TypeName, value: &Expr) {
        let element = self.type_of(ty);
        if ty.is_optional {
            self.wrong(
                ty.span,
                "a constant is always there",
                "expected a type without `?`",
            );
        }
        let global = match self.array_len(ty) {
            None => {
                let value = self.fold(value, element).unwrap_or(0);
                Global::Const {
                    ty: element,
                    values: vec![value],
                    at: None,
                }
            }
            Some(len) => {
                let values = self.list(value, element, len);
                let at = self.allocate(name.span, u64::from(len));
                for (n, value) in values.iter().enumerate() {
                    self.write(at + n as u32, *value);
                }
                Global::Const {
                    ty: element,
                    values,
                    at: Some(at),
                }
            }
        };
        self.global(name, global);
    }

    /// The values of an array: one each, or one for all.
    fn list(&mut self, value: &Expr, element: Type, len: u32) -> Vec<i64> {
        let ExprKind::List(values) = &value.kind else {
            let value = self.fold(value, element).unwrap_or(0);
            return vec![value; len as usize];
        };
        if values.len() != len as usize {
            self.wrong(
                value.span,
                format!("{} values for an array of {len}", values.len()),
                format!("expected {len} values"),
            );
        }
        let mut folded: Vec<i64> = Vec::new();
        for value in values.iter().take(len as usize) {
            let value = self.fold(value, element).unwrap_or(0);
            folded.push(value);
        }
        folded.resize(len as usize, 0);
        folded
    }

    fn declare_param(&mut self, name: &Name, ty: &TypeName, value: &Expr, range: Option<&(Expr, Expr)>) {
        let element = self.type_of(ty);
        let is_plain = !ty.is_optional && ty.len.is_none();
        if !is_plain || matches!(element, Type::Order | Type::Time) {
            self.wrong(
                ty.span,
                "a parameter is one plain value",
                "expected a type that can be written in a configuration",
            );
        }
        let value_at = value.span;
        let value = self.fold(value, element).unwrap_or(0);
        let range = range.map(|(low, high)| {
            let span = low.span.to(high.span);
            (
                self.fold(low, element).unwrap_or(i64::MIN),
                self.fold(high, element).unwrap_or(i64::MAX),
                span,
            )
        });
        if let Some((low, high, span)) = range {
            if !(element.is_ordered() || element == Type::Wrong) {
                self.wrong(
                    span,
                    format!("{} has no range", self.show(element)),
                    "only numbers have a range",
                );
            } else if low > high {
                self.wrong(
                    span,
                    "no value lies in this range",
                    "expected the lower end first",
                );
            } else if !(low..=high).contains(&value) {
                let found = Diagnostic::new(value_at, "the value lies outside its range", "outside");
                self.say(found.also(span, "the range"));
            }
        }
        let at = self.allocate(name.span, 1);
        self.write(at, value);
        let n = self.program.params.len() as u16;
        self.program.params.push(Param {
            name: name.text.clone(),
            ty: element,
            value,
            range: range.map(|(low, high, _)| (low, high)),
            at,
            span: name.span,
        });
        self.global(name, Global::Param(n));
    }

    fn declare_instrument(
        &mut self,
        name: &Name,
        symbol: &Expr,
        session: Option<&(String, Span)>,
        venue: Option<&(String, Span)>,
    ) {
        let (text, param) = match &symbol.kind {
            ExprKind::Text(text) => (text.clone(), None),
            ExprKind::Name(param) => match self.globals.get(param) {
                Some((Global::Param(n), _)) if self.program.params[usize::from(*n)].ty == Type::Symbol => {
                    let value = self.program.params[usize::from(*n)].value;
                    let text = self
                        .program
                        .symbols
                        .get(value as usize)
                        .cloned()
                        .unwrap_or_default();
                    (text, Some(*n))
                }
                _ => {
                    self.wrong(
                        symbol.span,
                        "an instrument is named by a text or a parameter",
                        "expected a text, or a parameter of type symbol",
                    );
                    (String::from("?"), None)
                }
            },
            _ => {
                self.wrong(
                    symbol.span,
                    "an instrument is named by a text or a parameter",
                    "expected a text, or a parameter of type symbol",
                );
                (String::from("?"), None)
            }
        };
        let whole = with_session(&text, session.map(|(s, _)| s.as_str()));
        let symbol = match whole {
            Some(symbol) => symbol,
            None => {
                self.wrong(
                    symbol.span,
                    "this cannot be a symbol",
                    "with its session, a symbol is 1 to 23 printable ASCII characters",
                );
                Symbol::EMPTY
            }
        };
        let venue = venue.and_then(|(venue, span)| {
            let found = Venue::from_name(venue);
            if found.is_none() {
                let names = Venue::ALL.map(Venue::name);
                let help = match nearest(venue, names.into_iter()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("venues are {}", names.join(", ")),
                };
                self.say(
                    Diagnostic::new(
                        *span,
                        format!("there is no venue \"{venue}\""),
                        "expected a venue",
                    )
                    .help(help),
                );
            }
            found
        });
        let same = |other: &&InstrumentUse| {
            other.symbol == symbol && (other.venue == venue || other.venue.is_none())
        };
        if let Some(other) = self.program.instruments.iter().find(same)
            && !symbol.is_empty()
        {
            let message = format!("`{}` and `{}` are the same instrument", other.name, name.text);
            let found = Diagnostic::new(name.span, message, "the same again");
            self.say(found.help("say `venue \"…\"` for each where they are of several feeds"));
        }
        if self.program.instruments.len() >= self.limits.instruments {
            let max = self.limits.instruments;
            self.wrong(
                name.span,
                format!("more than {max} instruments"),
                "no place for this one",
            );
            return;
        }
        let at = self.allocate(name.span, u64::from(word::INSTRUMENT_LEN));
        self.write(at + word::TICK, 1);
        let n = self.program.instruments.len() as u16;
        self.program.instruments.push(InstrumentUse {
            name: name.text.clone(),
            symbol,
            param,
            session: session.map(|(s, _)| s.clone()),
            venue,
            at,
        });
        self.global(name, Global::Instrument(n));
    }

    fn declare_state(&mut self, name: &Name, ty: &TypeName, value: &Expr) {
        let element = self.type_of(ty);
        let len = self.array_len(ty);
        let is_none = matches!(value.kind, ExprKind::None);
        if len.is_some() && ty.is_optional {
            self.wrong(
                ty.span,
                "elements of an array are always there",
                "expected a type without `?`",
            );
        }
        if element == Type::Order && !is_none {
            self.wrong(value.span, "no order is known at the start", "expected `none`");
        }
        if is_none && !ty.is_optional {
            let found = Diagnostic::new(
                value.span,
                format!("`{}` is always there", name.text),
                "expected a value",
            );
            self.say(found.help(format!("write `{}?` where it may be absent", ty.name.text)));
        }
        let words = match (len, ty.is_optional) {
            (Some(len), _) => u64::from(len),
            (None, true) => 2,
            (None, false) => 1,
        };
        let at = self.allocate(name.span, words);
        match len {
            Some(len) => {
                for (n, value) in self.list(value, element, len).into_iter().enumerate() {
                    self.write(at + n as u32, value);
                }
            }
            None if is_none => {}
            None if element == Type::Time => {
                self.wrong(
                    value.span,
                    "no time is known at the start",
                    "expected `none`, of the type `time?`",
                );
            }
            None => {
                let value = self.fold(value, element).unwrap_or(0);
                self.write(at, value);
                if ty.is_optional {
                    self.write(at + 1, 1);
                }
            }
        }
        self.program.places.push(Named {
            name: name.text.clone(),
            ty: element,
            at,
        });
        if len.is_none() && !ty.is_optional {
            self.program.states.push(Named {
                name: name.text.clone(),
                ty: element,
                at,
            });
        }
        let place = Storage {
            ty: element,
            is_optional: ty.is_optional && len.is_none(),
            len,
            at,
        };
        self.global(name, Global::State(place));
    }

    fn declare_table(&mut self, name: &Name, key: &TypeName, value: &TypeName, from: &TableFrom) {
        let (k, v) = (self.type_of(key), self.type_of(value));
        for (ty, written) in [(k, key), (v, value)] {
            if written.is_optional || written.len.is_some() || !(ty.is_ordered() || ty == Type::Wrong) {
                self.wrong(
                    written.span,
                    "a table has plain numbers",
                    "expected int, price, ticks, qty, money or duration",
                );
            }
        }
        let (mut rows, span) = match from {
            TableFrom::Rows(written) => {
                let mut rows = Vec::new();
                for (key, value) in written {
                    if let (Some(key), Some(value)) = (self.fold(key, k), self.fold(value, v)) {
                        rows.push((key, value));
                    }
                }
                (rows, name.span)
            }
            TableFrom::File(file, span) => {
                let text = (self.load)(file);
                match text.and_then(|text| csv(&text, k, v)) {
                    Ok(rows) => (rows, *span),
                    Err(why) => {
                        self.wrong(*span, format!("the table {file}: {why}"), "read from here");
                        (vec![(0, 0)], *span)
                    }
                }
            }
        };
        if rows.is_empty() || rows.len() > ROWS_MAX {
            self.wrong(
                span,
                format!("a table of {} rows", rows.len()),
                format!("expected 1 to {ROWS_MAX}"),
            );
        }
        if rows.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            self.wrong(span, "the keys of a table ascend, each once", "they do not");
            rows.sort_unstable();
        }
        let at = self.program.tables.len() as u16;
        self.program.tables.push(TableUse {
            name: name.text.clone(),
            rows,
        });
        self.global(name, Global::Table { at, key: k, value: v });
    }

    fn handler(&mut self, handler: &Handler, seen: &mut BTreeMap<Event, Span>) {
        const EVENTS: [&str; 12] = [
            "book",
            "trade",
            "quote",
            "imbalance",
            "status",
            "stale",
            "live",
            "order",
            "timer",
            "command",
            "start",
            "stop",
        ];
        let event = handler.event.text.as_str();
        if !EVENTS.contains(&event) {
            let help = match nearest(event, EVENTS.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("events are {}", EVENTS.join(", ")),
            };
            let found = Diagnostic::new(
                handler.event.span,
                format!("there is no event `{event}`"),
                "expected an event",
            );
            self.say(found.help(help));
            return;
        }
        let mut events: Vec<(Event, HandlerArgument, Option<u16>, String)> = Vec::new();
        match event {
            "start" => events.push((
                Event::Start,
                HandlerArgument::Nothing,
                None,
                "on start".to_string(),
            )),
            "stop" => events.push((Event::Stop, HandlerArgument::Nothing, None, "on stop".to_string())),
            "command" => {
                let word = handler.word.as_ref().map(|(w, _)| w.clone()).unwrap_or_default();
                let known = self.program.commands.iter().position(|w| *w == word);
                let n = known.unwrap_or_else(|| {
                    self.program.commands.push(word.clone());
                    self.program.commands.len() - 1
                });
                let name = format!("on command \"{word}\"");
                events.push((Event::Command(n as u16), HandlerArgument::Nothing, None, name));
            }
            "timer" => {
                for name in &handler.of {
                    match self.globals.get(&name.text) {
                        Some((Global::Timer(n), _)) => {
                            let event = Event::Timer(*n);
                            events.push((
                                event,
                                HandlerArgument::Nothing,
                                None,
                                format!("on timer {}", name.text),
                            ));
                        }
                        _ => self.unknown(&name.text, name.span, "timer"),
                    }
                }
                if handler.of.is_empty() {
                    self.wrong(
                        handler.event.span,
                        "which timer?",
                        "expected a timer's name behind it",
                    );
                }
            }
            _ => {
                let mut of: Vec<u16> = Vec::new();
                for name in &handler.of {
                    of.extend(self.instrument(name));
                }
                if handler.of.is_empty() {
                    of = (0..self.program.instruments.len() as u16).collect();
                }
                for n in of {
                    let name = format!("on {event} {}", self.program.instruments[usize::from(n)].name);
                    let (event, told) = match event {
                        "book" => (Event::Book(n), HandlerArgument::Nothing),
                        "trade" => (Event::Trade(n), HandlerArgument::Trade(n)),
                        "quote" => (Event::Quote(n), HandlerArgument::Quote(n)),
                        "imbalance" => (Event::Imbalance(n), HandlerArgument::Imbalance(n)),
                        "status" => (Event::Status(n), HandlerArgument::Status),
                        "stale" => (Event::Stale(n), HandlerArgument::Nothing),
                        "live" => (Event::Live(n), HandlerArgument::Nothing),
                        _ => (Event::Order(n), HandlerArgument::Order(n)),
                    };
                    events.push((event, told, Some(n), name));
                }
            }
        }
        if let Some(alias) = &handler.alias {
            self.check_name(alias);
            if let Some((_, at)) = self.globals.get(&alias.text) {
                let at = *at;
                let found = Diagnostic::new(
                    alias.span,
                    format!("`{}` is declared already", alias.text),
                    "expected another name",
                );
                self.say(found.also(at, "declared here"));
            }
        }
        for (event, told, instrument, name) in events {
            if let Some(first) = seen.get(&event) {
                let found = Diagnostic::new(handler.span, format!("`{name}` is written twice"), "again");
                let found = found.also(*first, "first here");
                self.say(found);
                continue;
            }
            seen.insert(event, handler.span);
            self.alias = match (&handler.alias, instrument) {
                (Some(alias), Some(n)) => Some((alias.text.clone(), n)),
                _ => None,
            };
            self.told = told;
            self.begin();
            self.returning.push(Returning::default());
            if let Some(when) = &handler.when {
                let condition = self.need(when, Type::Bool);
                let jump = self.jump_if_not(when.span, condition.reg);
                if let Some(returning) = self.returning.last_mut() {
                    returning.jumps.push(jump);
                }
                self.facts.extend(condition.if_true);
            }
            self.block(&handler.body);
            for jump in self.returning.pop().map(|r| r.jumps).unwrap_or_default() {
                self.lands(jump);
            }
            self.end(event, name, handler.span);
            self.told = HandlerArgument::Nothing;
            self.alias = None;
        }
    }
}
