//! The strategy's own module: a handler is a pipeline of as many clocks as its values need, state a register.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tickwire_language::ir::Binary;
use tickwire_language::{Program, Span};

use crate::graph::{Graph, Input, Node, Value};
use crate::lower::Handler;
use crate::stages::{operands, stages, used};
use crate::widths::{LEAST, MOST, PRICE_UNIT, Width, exact, widths};
use crate::{HandlerReport, Refusal};

/// The module down to its ports.
const HEAD: &str = include_str!("rule_head.sv");

/// A handler that is ready to be written.
pub(crate) struct Pipeline<'a> {
    pub(crate) name: &'static str,
    pub(crate) title: &'a str,
    pub(crate) handler: Handler,
}

/// What was written.
pub(crate) struct Written {
    pub(crate) module: String,
    pub(crate) handlers: Vec<HandlerReport>,
}

/// A handler as it is written.
struct Plan<'a> {
    name: &'static str,
    graph: &'a Graph,
    is_used: Vec<bool>,
    stage: Vec<u32>,
    all: Vec<Width>,
    /// All values are made.
    clocks: u32,
    /// What the first order needs is there, and what every other does in its turn.
    first: u32,
    /// All orders are out too, and the state is written: what it comes of, and the orders, read it as it was.
    last: u32,
}

impl<'a> Plan<'a> {
    fn new(pipeline: &'a Pipeline<'_>, state: &BTreeMap<u32, Width>) -> Plan<'a> {
        let graph = &pipeline.handler.graph;
        let is_used = used(graph, &live_outputs(&pipeline.handler, state));
        let stage = stages(graph, &is_used);
        let clocks = (0..graph.nodes.len())
            .filter(|n| is_used[*n])
            .map(|n| stage[n])
            .max();
        let orders = pipeline.handler.orders.iter().zip(0..);
        let first = orders.map(|(order, nth): (_, u32)| {
            let ready = [order.when, order.qty, order.price]
                .iter()
                .map(|n| stage[*n])
                .max();
            ready.unwrap_or(0).saturating_sub(nth)
        });
        let first = first.max().unwrap_or(1).max(1);
        let clocks = clocks.unwrap_or(0).max(1);
        let orders = (pipeline.handler.orders.len() as u32).max(1);
        Plan {
            first,
            last: clocks.max(first + orders - 1),
            name: pipeline.name,
            clocks,
            all: widths(graph, state),
            graph,
            is_used,
            stage,
        }
    }
}

fn graph_zero(own: &Plan<'_>, n: Value) -> bool {
    own.graph.number(n) == Some(0)
}

/// How a value is declared.
fn kind_of(width: Width) -> String {
    match width.is_truth() {
        true => String::new(),
        false => format!("signed [{}:0] ", width.bits() - 1),
    }
}

struct Writer<'a> {
    program: &'a Program,
    source: &'a [&'a str],
    state: BTreeMap<u32, Width>,
    names: BTreeMap<u32, String>,
    /// Values of which an order takes the lower 32 bits.
    cut: BTreeSet<String>,
    out: String,
}

/// Writes the module.
pub(crate) fn write(
    program: &Program,
    source: &str,
    pipelines: &[Pipeline<'_>],
) -> Result<Written, Vec<Refusal>> {
    let lines: Vec<&str> = source.lines().collect();
    refuse_missing(program, pipelines)?;
    let state = state_widths(program, pipelines);
    refuse_prices(program, pipelines, &state)?;
    let names = state.keys().map(|at| (*at, state_name(program, *at))).collect();
    let mut writer = Writer {
        program,
        source: &lines,
        state,
        names,
        cut: BTreeSet::new(),
        out: String::new(),
    };
    let handlers = writer.module(pipelines)?;
    Ok(Written {
        module: writer.out,
        handlers,
    })
}

/// Only the state that something comes of is kept: a word that is written and never read is none.
fn live_outputs(handler: &Handler, state: &BTreeMap<u32, Width>) -> Vec<Value> {
    let orders = handler
        .orders
        .iter()
        .flat_map(|order| [order.when, order.qty, order.price]);
    let kept = handler.stores.iter().filter(|(at, _)| state.contains_key(at));
    orders.chain(kept.map(|(_, value)| *value)).collect()
}

fn refuse_missing(program: &Program, pipelines: &[Pipeline<'_>]) -> Result<(), Vec<Refusal>> {
    let mut refusals = Vec::new();
    let read = read_state(pipelines);
    for pipeline in pipelines {
        let graph = &pipeline.handler.graph;
        let kept = pipeline
            .handler
            .stores
            .iter()
            .filter(|(at, _)| read.contains_key(*at));
        let orders = pipeline
            .handler
            .orders
            .iter()
            .flat_map(|order| [order.when, order.qty, order.price]);
        let is_used = used(
            graph,
            &orders.chain(kept.map(|(_, value)| *value)).collect::<Vec<_>>(),
        );
        for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| is_used[*n]) {
            match node {
                Node::Missing(why) => {
                    let (span, why) = &graph.missing[*why as usize];
                    refusals.push(Refusal::new(program, *span, why));
                }
                Node::Binary(Binary::Div | Binary::Rem, _, _) => {
                    let why = "a division: the core has none. A number of ticks compared with a parameter needs none";
                    refusals.push(Refusal::new(program, graph.spans[n], why));
                }
                _ => {}
            }
        }
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(refusals),
    }
}

/// A price between two prices of the wire cannot be sent.
fn refuse_prices(
    program: &Program,
    pipelines: &[Pipeline<'_>],
    state: &BTreeMap<u32, Width>,
) -> Result<(), Vec<Refusal>> {
    let mut refusals = Vec::new();
    for pipeline in pipelines {
        let all = widths(&pipeline.handler.graph, state);
        for order in &pipeline.handler.orders {
            let price = all[order.price];
            if !price.is_zero() && price.unit % PRICE_UNIT != 0 {
                let why =
                    "a price that may lie between two prices of the wire, which are multiples of 0.0001";
                refusals.push(Refusal::new(program, order.span, why));
            }
        }
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(refusals),
    }
}

/// The words of state that an order or another word comes of.
fn read_state(pipelines: &[Pipeline<'_>]) -> BTreeMap<u32, ()> {
    let mut read = BTreeMap::new();
    loop {
        let before = read.len();
        for pipeline in pipelines {
            let handler = &pipeline.handler;
            let orders = handler
                .orders
                .iter()
                .flat_map(|order| [order.when, order.qty, order.price]);
            let kept = handler.stores.iter().filter(|(at, _)| read.contains_key(*at));
            let outputs: Vec<Value> = orders.chain(kept.map(|(_, value)| *value)).collect();
            let is_used = used(&handler.graph, &outputs);
            for (n, node) in handler.graph.nodes.iter().enumerate() {
                if let (true, Node::State(at)) = (is_used[n], node) {
                    read.insert(*at, ());
                }
            }
        }
        if read.len() == before {
            return read;
        }
    }
}

/// What each word of state can hold: what it begins with and all that is stored, until nothing is added.
fn state_widths(program: &Program, pipelines: &[Pipeline<'_>]) -> BTreeMap<u32, Width> {
    let initial = |at: u32| Width::of(program.memory[at as usize]);
    let mut state: BTreeMap<u32, Width> = read_state(pipelines)
        .into_keys()
        .map(|at| (at, initial(at)))
        .collect();
    for turn in 0.. {
        let mut next = state.clone();
        for pipeline in pipelines {
            let all = widths(&pipeline.handler.graph, &state);
            for (at, value) in &pipeline.handler.stores {
                if let Some(width) = next.get_mut(at) {
                    *width = width.or(all[*value]);
                }
            }
        }
        if next == state {
            break;
        }
        if turn >= 4 {
            // It grows with every turn: it may become anything.
            for (at, width) in &mut next {
                if *width != state[at] {
                    *width = Width::ANY;
                }
            }
        }
        state = next;
    }
    state
}

/// `last`; of a word behind the first (whether an optional value is there, an element) with its distance.
fn state_name(program: &Program, at: u32) -> String {
    match program.places.iter().rfind(|place| place.at <= at) {
        Some(place) if place.at == at => format!("state_{}", place.name),
        Some(place) => format!("state_{}_{}", place.name, at - place.at),
        None => format!("state_word_{at}"),
    }
}

fn in_units(width: Width) -> String {
    match width.unit {
        1 => String::new(),
        unit => format!(", in units of {unit}"),
    }
}

fn literal(n: i128, bits: u32) -> String {
    match n < 0 {
        true => format!("-{bits}'sd{}", n.unsigned_abs()),
        false => format!("{bits}'sd{n}"),
    }
}

impl Writer<'_> {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    fn module(&mut self, pipelines: &[Pipeline<'_>]) -> Result<Vec<HandlerReport>, Vec<Refusal>> {
        let program = self.program;
        self.line(HEAD.replace("NAME", &program.name));
        let plans: Vec<Plan<'_>> = pipelines
            .iter()
            .map(|pipeline| Plan::new(pipeline, &self.state))
            .collect();
        self.parameters(&plans);
        self.declare_state();
        let mut reports = Vec::new();
        for (pipeline, plan) in pipelines.iter().zip(&plans) {
            reports.push(self.pipeline(pipeline, plan));
        }
        self.ends(pipelines, &plans);
        self.unused(&plans);
        self.line("endmodule\n\n`default_nettype wire");
        Ok(reports)
    }

    /// The file's parameters under their names.
    fn parameters(&mut self, plans: &[Plan<'_>]) {
        let mut named = BTreeMap::new();
        for plan in plans {
            let used = plan
                .graph
                .nodes
                .iter()
                .zip(&plan.is_used)
                .filter(|(_, is_used)| **is_used);
            for (node, _) in used {
                if let Node::Const(value, Some(param)) = node {
                    named.insert(*param, *value);
                }
            }
        }
        for (param, value) in named {
            let param = &self.program.params[usize::from(param)];
            let width = Width::of(value);
            let text = format!(
                "  localparam logic signed [{}:0] {} = {};  // param {}: {}{}",
                width.bits() - 1,
                param.name.to_uppercase(),
                literal(width.low, width.bits()),
                param.name,
                tickwire_language::show_value(self.program, param.ty, value),
                in_units(width),
            );
            self.line(text);
        }
    }

    fn declare_state(&mut self) {
        let state: Vec<(u32, Width)> = self.state.iter().map(|(at, width)| (*at, *width)).collect();
        for (at, width) in state {
            let text = format!(
                "  logic {}{}_reg;{}",
                kind_of(width),
                self.names[&at],
                in_units(width).replace(", in", "  // in")
            );
            self.line(text);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'_>, own: &Plan<'_>) -> HandlerReport {
        let (name, clocks, graph) = (own.name, own.clocks, own.graph);
        let orders = pipeline.handler.orders.len() as u32;
        let last = own.last;
        self.line(format!(
            "\n  // ---------------------------------------------------------------- {}",
            pipeline.title
        ));
        self.line(format!(
            "  // {} clocks from the start to its first order, {orders} orders at most.",
            own.first
        ));
        match last {
            1 => self.line(format!("  wire logic [1:1] {name}_at = start_{name};")),
            _ => {
                self.line(format!("  logic [{last}:2] {name}_run_reg;"));
                self.line(format!("  wire logic [{last}:1] {name}_at = {{{name}_run_reg, start_{name}}};  // bit n: clock n of a run"));
                self.line("  always_ff @(posedge clk) begin");
                self.line(format!("    {name}_run_reg <= {name}_at[{}:1];", last - 1));
                self.line(format!("    if (rst) {name}_run_reg <= '0;\n  end"));
            }
        }
        let turns = pipeline.handler.orders.iter().zip(own.first..);
        let mut read: Vec<(Value, u32)> = turns
            .flat_map(|(order, clock)| [order.when, order.qty, order.price].map(|n| (n, clock)))
            .collect();
        let kept = pipeline
            .handler
            .stores
            .iter()
            .filter(|(at, _)| self.state.contains_key(at));
        read.extend(kept.map(|(_, n)| (*n, last)));
        let mut shown = usize::MAX;
        for clock in 1..=clocks {
            self.line(format!("  // clock {clock}"));
            for n in (0..graph.nodes.len()).filter(|n| own.is_used[*n] && own.stage[*n] == clock) {
                let at = self.program.line(graph.spans[n]);
                if at != shown && graph.spans[n] != Span::default() {
                    shown = at;
                    let text = self.quoted(at);
                    self.line(format!("  // line {at}: {text}"));
                }
                self.value(own, n);
                let is_kept = (0..graph.nodes.len()).any(|m| {
                    own.is_used[m] && own.stage[m] > clock && operands(&graph.nodes[m]).contains(&n)
                });
                if is_kept || read.iter().any(|(m, at)| *m == n && *at > clock) {
                    let kind = kind_of(own.all[n]);
                    self.line(format!("  logic {kind}{name}_{n}_reg;\n  always_ff @(posedge clk) {name}_{n}_reg <= {name}_{n};"));
                }
            }
        }
        HandlerReport {
            name: pipeline.title.to_string(),
            clocks: own.first,
            orders,
            operations: (0..graph.nodes.len())
                .filter(|n| own.is_used[*n] && own.stage[*n] > 0)
                .count() as u32,
        }
    }

    /// A line of the file.
    fn quoted(&self, line: usize) -> String {
        let text = self.source.get(line - 1).map_or("", |line| line.trim());
        text.chars().take(90).collect()
    }

    /// The name of a value as it is read in a clock.
    fn name(&self, own: &Plan<'_>, n: Value, clock: u32) -> String {
        match own.graph.nodes[n] {
            Node::Input(input) => input.port().to_string(),
            Node::State(at) => format!("{}_reg", self.names[&at]),
            Node::Const(_, Some(param)) => self.program.params[usize::from(param)].name.to_uppercase(),
            _ if own.stage[n] < clock => format!("{}_{n}_reg", own.name),
            _ => format!("{}_{n}", own.name),
        }
    }

    /// The same as a number.
    fn number(&self, own: &Plan<'_>, n: Value, clock: u32) -> String {
        match own.graph.nodes[n] {
            Node::Const(_, None) => literal(own.all[n].low, own.all[n].bits()),
            Node::Input(_) => format!("$signed({{1'b0, {}}})", self.name(own, n, clock)),
            Node::Const(..) => self.name(own, n, clock),
            _ if own.all[n].is_truth() => format!("$signed({{1'b0, {}}})", self.name(own, n, clock)),
            _ => self.name(own, n, clock),
        }
    }

    /// The same as yes or no.
    fn truth(&self, own: &Plan<'_>, n: Value, clock: u32) -> String {
        match own.graph.nodes[n] {
            Node::Const(value, _) => format!("1'b{}", u8::from(value != 0)),
            _ if own.all[n].is_truth() => self.name(own, n, clock),
            _ => format!("({} != '0)", self.name(own, n, clock)),
        }
    }

    /// A value in another unit, so many bits wide.
    fn scaled(&self, own: &Plan<'_>, n: Value, clock: u32, unit: i128, bits: u32) -> String {
        let width = own.all[n];
        let times = if width.is_zero() { 1 } else { width.unit / unit };
        if let Node::Const(_, None) = own.graph.nodes[n] {
            return literal(width.low * times, bits);
        }
        let text = self.number(own, n, clock);
        let is_as_wide =
            width.bits() == bits && !width.is_truth() && !matches!(own.graph.nodes[n], Node::Input(_));
        match times {
            1 if is_as_wide => text,
            1 => format!("{bits}'({text})"),
            _ => format!("({bits}'({text}) * {})", literal(times, bits)),
        }
    }

    fn value(&mut self, own: &Plan<'_>, n: Value) {
        let (name, clock, width) = (own.name, own.stage[n], own.all[n]);
        let bits = width.bits();
        let text = match own.graph.nodes[n] {
            Node::Not(a) => format!("!{}", self.truth(own, a, clock)),
            Node::Neg(a) => {
                let a = self.scaled(own, a, clock, width.unit, bits + 1);
                return self.stopped(own, n, &format!("-{a}"), bits + 1);
            }
            Node::Select(c, a, b) if width.is_truth() => {
                let (a, b) = (self.truth(own, a, clock), self.truth(own, b, clock));
                format!("{} ? {a} : {b}", self.truth(own, c, clock))
            }
            Node::Select(c, a, b) => {
                let a = self.scaled(own, a, clock, width.unit, bits);
                let b = self.scaled(own, b, clock, width.unit, bits);
                format!("{} ? {a} : {b}", self.truth(own, c, clock))
            }
            Node::Binary(op @ (Binary::And | Binary::Or), a, b) => {
                let sign = if op == Binary::And { "&&" } else { "||" };
                format!(
                    "{} {sign} {}",
                    self.truth(own, a, clock),
                    self.truth(own, b, clock)
                )
            }
            Node::Binary(op @ (Binary::Eq | Binary::Ne), a, b)
                if own.all[a].is_truth() && own.all[b].is_truth() =>
            {
                let sign = if op == Binary::Eq { "==" } else { "!=" };
                format!(
                    "{} {sign} {}",
                    self.truth(own, a, clock),
                    self.truth(own, b, clock)
                )
            }
            Node::Binary(op @ (Binary::Eq | Binary::Ne), a, b) if graph_zero(own, b) => {
                let sign = if op == Binary::Eq { "==" } else { "!=" };
                format!("{} {sign} '0", self.name(own, a, clock))
            }
            Node::Binary(
                op @ (Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Min | Binary::Max),
                a,
                b,
            ) => {
                let unit = own.all[a].common(own.all[b]);
                let wide = own.all[a]
                    .in_unit(unit)
                    .bits()
                    .max(own.all[b].in_unit(unit).bits());
                let a = self.scaled(own, a, clock, unit, wide);
                let b = self.scaled(own, b, clock, unit, wide);
                match op {
                    Binary::Eq => format!("{a} == {b}"),
                    Binary::Ne => format!("{a} != {b}"),
                    Binary::Lt => format!("{a} < {b}"),
                    Binary::Le => format!("{a} <= {b}"),
                    _ if width.is_truth() => {
                        let less = if op == Binary::Min {
                            format!("({a} < {b}) ? {a} : {b}")
                        } else {
                            format!("({a} < {b}) ? {b} : {a}")
                        };
                        format!("({less}) != '0")
                    }
                    Binary::Min => format!("{bits}'(({a} < {b}) ? {a} : {b})"),
                    _ => format!("{bits}'(({a} < {b}) ? {b} : {a})"),
                }
            }
            Node::Binary(op, a, b) => {
                let whole = exact(op, own.all[a], own.all[b]);
                // Where it may stop at an end, it is made in the language's own unit.
                let whole = if whole.fits() { whole } else { whole.in_unit(1) };
                let sign = match op {
                    Binary::Add => "+",
                    Binary::Sub => "-",
                    _ => "*",
                };
                let (unit_a, unit_b) = match op {
                    Binary::Mul if whole.unit == 1 => (1, 1),
                    Binary::Mul => (own.all[a].unit, own.all[b].unit),
                    _ => (whole.unit, whole.unit),
                };
                // An operand may be wider than what comes out.
                let wide = whole
                    .bits()
                    .max(own.all[a].in_unit(unit_a).bits())
                    .max(own.all[b].in_unit(unit_b).bits());
                let a = self.scaled(own, a, clock, unit_a, wide);
                let b = self.scaled(own, b, clock, unit_b, wide);
                return self.stopped(own, n, &format!("{a} {sign} {b}"), wide);
            }
            Node::Const(..) | Node::Input(_) | Node::State(_) | Node::Missing(_) => return,
        };
        let kind = kind_of(width);
        let _ = writeln!(self.out, "  wire logic {kind}{name}_{n} = {text};");
    }

    /// An exact value, stopped at the ends of the language's numbers where it can pass them.
    fn stopped(&mut self, own: &Plan<'_>, n: Value, exact: &str, wide: u32) {
        let (name, width) = (own.name, own.all[n]);
        let (bits, kind) = (width.bits(), kind_of(width));
        if width.unit != 1 || wide <= 64 {
            let text = if width.is_truth() {
                format!("({exact}) != '0")
            } else {
                format!("{bits}'({exact})")
            };
            let _ = writeln!(self.out, "  wire logic {kind}{name}_{n} = {text};");
            return;
        }
        let (least, most) = (literal(LEAST, wide), literal(MOST, wide));
        let _ = writeln!(
            self.out,
            "  wire logic signed [{}:0] {name}_{n}_exact = {exact};",
            wide - 1
        );
        let _ = writeln!(
            self.out,
            "  wire logic {kind}{name}_{n} = ({name}_{n}_exact > {most}) ? {bits}'({most})\n      \
             : ({name}_{n}_exact < {least}) ? {bits}'({least}) : {bits}'({name}_{n}_exact);"
        );
    }

    /// State after a run, and orders out.
    fn ends(&mut self, pipelines: &[Pipeline<'_>], plans: &[Plan<'_>]) {
        self.line("\n  // ---------------------------------------------------------------- orders and state");
        let running = pipelines.iter().zip(plans).filter(|(_, plan)| plan.last > 1);
        let busy: String = running
            .map(|(pipeline, _)| format!(" || (|{}_run_reg)", pipeline.name))
            .collect();
        self.line(format!("  assign busy = order_valid{busy};"));
        let is_cut = pipelines.iter().zip(plans).any(|(pipeline, own)| {
            let values = pipeline
                .handler
                .orders
                .iter()
                .flat_map(|order| [(order.qty, 1), (order.price, PRICE_UNIT)]);
            values
                .into_iter()
                .any(|(n, unit)| self.nearest(own, n, own.first, unit).starts_with("nearest32"))
        });
        if is_cut {
            self.line(
                "  // As in software: a quantity or price that an order cannot have becomes the nearest one that it can.\n  \
                 function automatic logic [31:0] nearest32(input logic signed [127:0] n);\n    \
                 return (n < 0) ? 32'd0 : (n > 128'sd4294967295) ? 32'hffffffff : n[31:0];\n  endfunction",
            );
        }
        self.line("  always_ff @(posedge clk) begin\n    order_valid <= 1'b0;");
        for (pipeline, own) in pipelines.iter().zip(plans) {
            let (name, handler) = (own.name, &pipeline.handler);
            for (n, order) in handler.orders.iter().enumerate() {
                let clock = own.first + n as u32;
                let line = self.program.line(order.span);
                let text = self.quoted(line);
                self.line(format!("    // line {line}: {text}"));
                let when = self.truth(own, order.when, clock);
                self.line(format!(
                    "    if ({name}_at[{clock}] && {when}) begin\n      order_valid <= 1'b1;"
                ));
                self.line(format!("      order_ask   <= 1'b{};", u8::from(order.is_sell)));
                let qty = self.nearest(own, order.qty, clock, 1);
                let price = self.nearest(own, order.price, clock, PRICE_UNIT);
                for text in [&qty, &price] {
                    let inner = text.strip_prefix("32'(").and_then(|text| text.strip_suffix(')'));
                    let is_name = |text: &&str| {
                        text.bytes()
                            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
                    };
                    self.cut.extend(inner.filter(is_name).map(str::to_string));
                }
                self.line(format!(
                    "      order_qty   <= {qty};\n      order_price <= {price};\n    end"
                ));
            }
            let kept: Vec<(u32, Value)> = handler.stores.iter().map(|(at, value)| (*at, *value)).collect();
            let kept: Vec<(u32, Value)> = kept
                .into_iter()
                .filter(|(at, _)| self.state.contains_key(at))
                .collect();
            if !kept.is_empty() {
                self.line(format!("    if ({name}_at[{}]) begin", own.last));
                for (at, value) in kept {
                    let width = self.state[&at];
                    let text = match width.is_truth() {
                        true => self.truth(own, value, own.last),
                        false => self.scaled(own, value, own.last, width.unit, width.bits()),
                    };
                    self.line(format!("      {}_reg <= {text};", self.names[&at]));
                }
                self.line("    end");
            }
        }
        self.line("    if (rst) begin\n      order_valid <= 1'b0;");
        let state: Vec<(u32, Width)> = self.state.iter().map(|(at, width)| (*at, *width)).collect();
        for (at, width) in state {
            let initial = i128::from(self.program.memory[at as usize]) / width.unit;
            let text = match width.is_truth() {
                true => format!("1'b{initial}"),
                false => literal(initial, width.bits()),
            };
            self.line(format!("      {}_reg <= {text};", self.names[&at]));
        }
        self.line("    end\n  end");
    }

    /// A value as 32 bits without a sign, or the nearest number of that.
    fn nearest(&self, own: &Plan<'_>, n: Value, clock: u32, unit: i128) -> String {
        let width = own.all[n].in_unit(unit);
        if let Node::Input(Input::BidPrice | Input::AskPrice | Input::LastPrice | Input::LastQty) =
            own.graph.nodes[n]
        {
            return self.name(own, n, clock);
        }
        if width.low >= 0 && width.high <= i128::from(u32::MAX) {
            return format!("32'({})", self.scaled(own, n, clock, unit, 33));
        }
        format!("nearest32({})", self.scaled(own, n, clock, unit, 128))
    }

    /// What the rule does not look at.
    fn unused(&mut self, plans: &[Plan<'_>]) {
        let mut ports = vec![
            Input::Live,
            Input::HasBid,
            Input::BidPrice,
            Input::BidQty,
            Input::HasAsk,
            Input::AskPrice,
            Input::AskQty,
            Input::HasLast,
            Input::LastPrice,
            Input::LastQty,
        ];
        for plan in plans {
            for (node, is_used) in plan.graph.nodes.iter().zip(&plan.is_used) {
                if let (true, Node::Input(input)) = (is_used, node) {
                    ports.retain(|port| port != input);
                }
            }
        }
        let mut names: Vec<&str> = ports.iter().map(|port| port.port()).collect();
        for name in ["book", "trade"] {
            if !plans.iter().any(|plan| plan.name == name) {
                names.push(if name == "book" {
                    "start_book"
                } else {
                    "start_trade"
                });
            }
        }
        let runs: Vec<String> = plans.iter().map(|plan| format!("{}_at", plan.name)).collect();
        names.extend(runs.iter().map(String::as_str));
        // Of these an order takes all but the sign.
        let cut = std::mem::take(&mut self.cut);
        names.extend(cut.iter().map(String::as_str));
        self.line(format!(
            "\n  // Not looked at by this rule.\n  wire logic unused = &{{1'b0, {}, unused}};",
            names.join(", ")
        ));
        self.line("");
    }
}
