//! What a file does, in sentences.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use tickwire_market::{Price, Side, TimeInForce};

use crate::ir::{Code, Event, HostCall, Op, Program};
use crate::types::{REPORTS, SIDES, STATUSES, Type};

/// A word as the file would write it.
pub fn show_value(program: &Program, ty: Type, value: i64) -> String {
    let named = |values: &[&str]| {
        let at = usize::try_from(value).ok();
        at.and_then(|at| values.get(at))
            .map_or(value.to_string(), |v| v.to_string())
    };
    match ty {
        Type::Price | Type::Money => Price::from_raw(value).to_string(),
        Type::Duration => duration(value),
        Type::Ticks => format!("{value} ticks"),
        Type::Bool => named(&["false", "true"]),
        Type::Side => named(&SIDES),
        Type::Status => named(&STATUSES),
        Type::Report => named(&REPORTS),
        Type::Enum(n) => {
            let values = program.enums.get(usize::from(n)).map(|(_, values)| values);
            let at = usize::try_from(value).ok();
            let found = values.and_then(|values| values.get(at?));
            found.cloned().unwrap_or_else(|| value.to_string())
        }
        Type::Symbol => {
            let at = usize::try_from(value).ok();
            let found = at.and_then(|at| program.symbols.get(at));
            found.map_or_else(|| value.to_string(), |text| format!("\"{text}\""))
        }
        _ => value.to_string(),
    }
}

fn duration(ns: i64) -> String {
    let units = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    match units.into_iter().find(|(_, unit)| ns != 0 && ns % unit == 0) {
        Some((name, unit)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

/// What the file says to `check`: sizes, and for each handler how much it does in the worst case.
pub fn counts(program: &Program) -> String {
    let mut out = String::new();
    let words = program.memory.len();
    let _ = writeln!(
        out,
        "strategy {}: {} instruments, {} parameters, {} words of memory, {} tests",
        program.name,
        program.instruments.len(),
        program.params.len(),
        words,
        program.tests.len()
    );
    let width = program
        .handlers
        .iter()
        .map(|code| code.name.len())
        .max()
        .unwrap_or(0);
    for code in program
        .handlers
        .iter()
        .filter(|code| !matches!(code.event, Event::Check(_)))
    {
        let _ = writeln!(
            out,
            "  {:width$}  at most {:>6} operations, {} order requests",
            code.name, code.cost, code.orders
        );
    }
    out
}

/// What the file does: what it trades, by what it can be set, what each handler reads, keeps and sends.
pub fn explain(program: &Program) -> String {
    let mut out = format!("The strategy {} trades and watches:\n", program.name);
    for used in &program.instruments {
        let venue = used
            .venue
            .map_or("any venue that has it".to_string(), |v| v.name().to_string());
        let _ = writeln!(out, "  {} is {} on {venue}", used.name, used.symbol);
    }
    if !program.params.is_empty() {
        out.push_str("It is set by:\n");
        for param in &program.params {
            let _ = write!(
                out,
                "  {}: {}, {} unless said otherwise",
                param.name,
                type_name(program, param.ty),
                show_value(program, param.ty, param.value)
            );
            if let Some((low, high)) = param.range {
                let _ = write!(
                    out,
                    ", from {} to {}",
                    show_value(program, param.ty, low),
                    show_value(program, param.ty, high)
                );
            }
            out.push('\n');
        }
    }
    for code in program
        .handlers
        .iter()
        .filter(|code| !matches!(code.event, Event::Check(_)))
    {
        let _ = writeln!(
            out,
            "{} (line {}, at most {} operations):",
            code.name,
            program.line(code.span),
            code.cost
        );
        let (reads, writes) = touched(program, code);
        for (what, names) in [("reads", reads), ("writes", writes)] {
            if !names.is_empty() {
                let _ = writeln!(out, "  {what} {}", names.join(", "));
            }
        }
        for (op, span) in code.ops.iter().zip(&code.spans) {
            if let Op::Host(site) = op
                && let Some(said) = does(program, &program.sites[*site as usize].call)
            {
                let _ = writeln!(out, "  may {said} (line {})", program.line(*span));
            }
        }
    }
    out.push_str("Every order passes the checks of the host first; a book that is not live is not traded on unless the order says so.\n");
    out
}

fn type_name(program: &Program, ty: Type) -> String {
    match ty {
        Type::Enum(n) => match program.enums.get(usize::from(n)) {
            Some((name, values)) => format!("{name} ({})", values.join(", ")),
            None => "enum".to_string(),
        },
        ty => ty.to_string(),
    }
}

fn touched(program: &Program, code: &Code) -> (Vec<String>, Vec<String>) {
    let (mut reads, mut writes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let name_of = |at: u32| {
        let named = program.states.iter().chain(&program.counters);
        let params = program.params.iter().map(|p| (p.at, &p.name));
        let mut all = named.map(|n| (n.at, &n.name)).chain(params);
        all.find(|(place, _)| *place == at).map(|(_, name)| name.clone())
    };
    let add = |to: &mut Vec<String>, at: u32| {
        if let Some(name) = name_of(at)
            && !to.contains(&name)
        {
            to.push(name);
        }
    };
    for op in &code.ops {
        match op {
            Op::Load(_, at) | Op::LoadAt(_, at, ..) => add(&mut reads, *at),
            Op::Store(at, _) | Op::StoreAt(at, ..) => add(&mut writes, *at),
            _ => {}
        }
    }
    (reads, writes)
}

fn does(program: &Program, call: &HostCall) -> Option<String> {
    Some(match call {
        HostCall::Submit {
            instrument,
            side,
            lasting,
            is_market,
            on_stale,
        } => format!(
            "{} {}{}{}{}",
            if *side == Side::Bid { "buy" } else { "sell" },
            program.instruments[usize::from(*instrument)].name,
            if *is_market {
                " at any price"
            } else {
                " at a limit"
            },
            match lasting {
                TimeInForce::Day => ", for the day",
                TimeInForce::GoodTillCancel => ", until it is cancelled",
                TimeInForce::AtTheOpening => ", in the opening auction",
                TimeInForce::ImmediateOrCancel => ", what can be had at once",
                TimeInForce::FillOrKill => ", all at once or nothing",
                TimeInForce::AtTheClose => ", in the closing auction",
            },
            if *on_stale { ", even on a stale book" } else { "" }
        ),
        HostCall::Replace => "replace an order".to_string(),
        HostCall::Cancel => "cancel an order".to_string(),
        HostCall::CancelAll => "cancel everything that is open".to_string(),
        HostCall::SetTimer(n) => format!("set the timer {}", program.timers[usize::from(*n)]),
        HostCall::StopTimer(n) => format!("stop the timer {}", program.timers[usize::from(*n)]),
        HostCall::Note(n) => format!("note \"{}\"", program.notes[usize::from(*n)]),
        HostCall::Push(n) => format!(
            "put a value into the window {}",
            program.windows[usize::from(*n)].name
        ),
        _ => return None,
    })
}
