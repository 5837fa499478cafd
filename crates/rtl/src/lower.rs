//! A handler's code into its graph: every way through it at once. Where two ways meet, each register and each
//! word of memory becomes a choice between its values; a way back (a loop) is gone as often as its bounds
//! say.

use std::collections::BTreeMap;

use tickwire_language::Program;
use tickwire_language::Span;
use tickwire_language::ir::{Binary, Code, Event, HostCall, Op, word};
use tickwire_market::{Side, TimeInForce};

use crate::graph::{Graph, Input, Node, Order, Value};
use crate::{Refusal, Target};

/// Operations of a handler with its loops laid out, at most.
const OPERATIONS_MAX: usize = 20_000;

/// What a handler does.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    pub(crate) graph: Graph,
    pub(crate) orders: Vec<Order>,
    /// Words of state with the values that they have afterwards.
    pub(crate) stores: BTreeMap<u32, Value>,
}

/// One way through the code, at one place of it.
#[derive(Clone, Debug)]
struct Way {
    when: Value,
    registers: Vec<Option<Value>>,
    memory: BTreeMap<u32, Value>,
}

struct Lowering<'a> {
    program: &'a Program,
    target: &'a Target,
    is_book: bool,
    graph: Graph,
    orders: Vec<Order>,
    /// Ways that jump to a place further on.
    waiting: BTreeMap<usize, Vec<Way>>,
    /// Words that some handler writes.
    written: &'a [bool],
}

/// The graph of a handler.
pub(crate) fn lower(
    program: &Program,
    code: &Code,
    target: &Target,
    written: &[bool],
) -> Result<Handler, Refusal> {
    let mut lowering = Lowering {
        program,
        target,
        is_book: matches!(code.event, Event::Book(_)),
        graph: Graph::default(),
        orders: Vec::new(),
        waiting: BTreeMap::new(),
        written,
    };
    let end = lowering.run(code)?;
    let stores = end.memory.into_iter();
    Ok(Handler {
        stores: stores
            .filter(|(at, value)| lowering.graph.nodes[*value] != Node::State(*at))
            .collect(),
        graph: lowering.graph,
        orders: lowering.orders,
    })
}

impl Lowering<'_> {
    fn run(&mut self, code: &Code) -> Result<Way, Refusal> {
        let always = self.graph.constant(1);
        let mut way = Some(Way {
            when: always,
            registers: vec![None; code.registers as usize + 1],
            memory: BTreeMap::new(),
        });
        let mut ended: Option<Way> = None;
        let (mut at, mut done) = (0, 0);
        while at < code.ops.len() {
            let (op, span) = (code.ops[at], code.spans[at]);
            for other in self.waiting.remove(&at).unwrap_or_default() {
                way = Some(match way {
                    Some(here) => self.meet(span, here, other),
                    None => other,
                });
            }
            done += 1;
            if done > OPERATIONS_MAX {
                let message = format!(
                    "{} comes to more than {OPERATIONS_MAX} operations with its loops laid out",
                    code.name
                );
                return Err(Refusal::new(self.program, span, message));
            }
            at += 1;
            let Some(mut here) = way.take() else { continue };
            match op {
                Op::Jump(to) => self.leave(to, here),
                Op::JumpIfNot(c, to) => {
                    let holds = self.register(&here, c, span);
                    let fails = self.graph.node(span, Node::Not(holds));
                    let mut there = here.clone();
                    there.when = self.and(span, here.when, fails);
                    here.when = self.and(span, here.when, holds);
                    if self.graph.number(there.when) != Some(0) {
                        self.leave(to, there);
                    }
                    if self.graph.number(here.when) != Some(0) {
                        way = Some(here);
                    }
                }
                Op::Loop(a, b, to) => {
                    let (a, b) = (self.register(&here, a, span), self.register(&here, b, span));
                    let again = self.graph.node(span, Node::Binary(Binary::Lt, a, b));
                    match self.graph.number(again) {
                        Some(0) => {}
                        Some(_) => at = to as usize,
                        None => {
                            let message = "a loop whose end is not a number of the file";
                            return Err(Refusal::new(self.program, span, message));
                        }
                    }
                    way = Some(here);
                }
                Op::Return => {
                    ended = Some(match ended {
                        Some(other) => self.meet(span, other, here),
                        None => here,
                    });
                }
                op => {
                    self.step(op, span, &mut here)?;
                    way = Some(here);
                }
            }
        }
        ended.ok_or_else(|| Refusal::new(self.program, code.span, "a handler without an end"))
    }

    fn leave(&mut self, to: u32, way: Way) {
        self.waiting.entry(to as usize).or_default().push(way);
    }

    fn and(&mut self, span: Span, a: Value, b: Value) -> Value {
        self.graph.node(span, Node::Binary(Binary::And, a, b))
    }

    /// Two ways that exclude each other go on as one.
    fn meet(&mut self, span: Span, a: Way, b: Way) -> Way {
        let mut registers = Vec::with_capacity(a.registers.len());
        for (x, y) in a.registers.iter().zip(&b.registers) {
            registers.push(match (*x, *y) {
                (Some(x), Some(y)) => Some(self.graph.node(span, Node::Select(a.when, x, y))),
                (x, y) => x.or(y),
            });
        }
        let mut memory = BTreeMap::new();
        let places: Vec<u32> = a.memory.keys().chain(b.memory.keys()).copied().collect();
        for at in places {
            let unchanged = |graph: &mut Graph| graph.node(Span::default(), Node::State(at));
            let x = a
                .memory
                .get(&at)
                .copied()
                .unwrap_or_else(|| unchanged(&mut self.graph));
            let y = b
                .memory
                .get(&at)
                .copied()
                .unwrap_or_else(|| unchanged(&mut self.graph));
            memory.insert(at, self.graph.node(span, Node::Select(a.when, x, y)));
        }
        Way {
            when: self.graph.node(span, Node::Binary(Binary::Or, a.when, b.when)),
            registers,
            memory,
        }
    }

    fn register(&mut self, way: &Way, n: u16, span: Span) -> Value {
        match way.registers[usize::from(n)] {
            Some(value) => value,
            None => self.graph.missing(span, "a value that no way to here has made"),
        }
    }

    fn step(&mut self, op: Op, span: Span, way: &mut Way) -> Result<(), Refusal> {
        let (to, value) = match op {
            Op::Const(d, n) => (d, self.graph.node(span, Node::Const(n, None))),
            Op::Move(d, a) => (d, self.register(way, a, span)),
            Op::Load(d, at) => (d, self.load(way, at, span)),
            Op::Store(at, a) => {
                let value = self.register(way, a, span);
                if self.program.counters.iter().any(|counter| counter.at == at) {
                    return Err(Refusal::new(
                        self.program,
                        span,
                        "counters: the core has no place that shows them",
                    ));
                }
                way.memory.insert(at, value);
                return Ok(());
            }
            Op::LoadAt(d, base, index, len) => {
                let index = self.register(way, index, span);
                (
                    d,
                    match self.place(base, index, len) {
                        Some(at) => self.load(way, at, span),
                        None => self
                            .graph
                            .missing(span, "an element whose place is known only while it runs"),
                    },
                )
            }
            Op::StoreAt(base, index, len, a) => {
                let (index, value) = (self.register(way, index, span), self.register(way, a, span));
                let Some(at) = self.place(base, index, len) else {
                    let message = "an element is written whose place is known only while it runs";
                    return Err(Refusal::new(self.program, span, message));
                };
                way.memory.insert(at, value);
                return Ok(());
            }
            Op::Binary(op, d, a, b) => {
                let (a, b) = (self.register(way, a, span), self.register(way, b, span));
                (d, self.graph.node(span, Node::Binary(op, a, b)))
            }
            Op::Not(d, a) => {
                let a = self.register(way, a, span);
                (d, self.graph.node(span, Node::Not(a)))
            }
            Op::Neg(d, a) => {
                let a = self.register(way, a, span);
                (d, self.graph.node(span, Node::Neg(a)))
            }
            Op::Select(d, c, a, b) => {
                let c = self.register(way, c, span);
                let (a, b) = (self.register(way, a, span), self.register(way, b, span));
                (d, self.graph.node(span, Node::Select(c, a, b)))
            }
            Op::Host(site) => return self.host(site, span, way),
            Op::Jump(_) | Op::JumpIfNot(..) | Op::Loop(..) | Op::Return => return Ok(()),
        };
        way.registers[usize::from(to)] = Some(value);
        Ok(())
    }

    fn place(&self, base: u32, index: Value, len: u32) -> Option<u32> {
        let index = u32::try_from(self.graph.number(index)?).ok()?;
        (index < len).then_some(base + index)
    }

    fn load(&mut self, way: &Way, at: u32, span: Span) -> Value {
        if let Some(value) = way.memory.get(&at) {
            return *value;
        }
        let program = self.program;
        if let Some(n) = program.params.iter().position(|param| param.at == at) {
            return self
                .graph
                .node(span, Node::Const(program.params[n].value, Some(n as u16)));
        }
        if at < word::INSTRUMENTS {
            return self.told(at, span);
        }
        let used = program.instruments.first().map_or(u32::MAX, |used| used.at);
        if (used..used.saturating_add(word::INSTRUMENT_LEN)).contains(&at) {
            return self.instrument(at - used, span);
        }
        match self.written[at as usize] {
            true => self.graph.node(span, Node::State(at)),
            false => self.graph.constant(program.memory[at as usize]),
        }
    }

    /// A word that says what has happened.
    fn told(&mut self, at: u32, span: Span) -> Value {
        let input = match at {
            word::NOW => {
                return self
                    .graph
                    .missing(span, "the time: the core has no clock of the host");
            }
            _ if self.is_book => {
                return self
                    .graph
                    .missing(span, "what the event says of this is not in the core");
            }
            at if at == word::EVENT => Input::LastPrice,
            at if at == word::EVENT + 1 => Input::LastQty,
            _ => {
                return self
                    .graph
                    .missing(span, "the side of a trade: the core does not keep it");
            }
        };
        self.graph.node(span, Node::Input(input))
    }

    fn instrument(&mut self, at: u32, span: Span) -> Value {
        let has_trades = matches!(self.target.venue, crate::Venue::Nasdaq);
        let input = match at {
            word::LAST | word::HAS_LAST | word::LAST_QTY if !has_trades => {
                return self.graph.missing(
                    span,
                    "the last trade: the core reads the order log, which has no trades",
                );
            }
            word::IS_LIVE => Input::Live,
            word::BID => Input::BidPrice,
            word::BID_QTY => Input::BidQty,
            word::ASK => Input::AskPrice,
            word::ASK_QTY => Input::AskQty,
            word::LAST => Input::LastPrice,
            word::HAS_LAST => Input::HasLast,
            word::LAST_QTY => Input::LastQty,
            word::TICK => return self.graph.constant(self.target.tick.raw()),
            word::IS_KNOWN => return self.graph.constant(1),
            _ => {
                return self.graph.missing(
                    span,
                    "when the book was told, and the lot: the core does not keep them",
                );
            }
        };
        self.graph.node(span, Node::Input(input))
    }

    fn host(&mut self, site: u32, span: Span, way: &mut Way) -> Result<(), Refusal> {
        let program = self.program;
        let asked = &program.sites[site as usize];
        let refuse = |what: &str| Err(Refusal::new(program, span, what));
        let arguments: Vec<Value> = asked
            .arguments
            .iter()
            .map(|r| self.register(way, *r, span))
            .collect();
        let results: Vec<Value> = match &asked.call {
            HostCall::Submit {
                side,
                lasting,
                is_market,
                on_stale,
                ..
            } => {
                if *lasting != TimeInForce::ImmediateOrCancel || *is_market {
                    return refuse(
                        "orders that may rest, and orders at any price: the core hears nothing of an order that \
                                   left, so it sends limit orders `ioc` only",
                    );
                }
                if *on_stale {
                    return refuse("orders on a stale book: the core stops itself there");
                }
                let quantity = arguments[0];
                self.orders.push(Order {
                    when: way.when,
                    is_sell: *side == Side::Ask,
                    qty: quantity,
                    price: arguments[1],
                    span,
                });
                let what = "what became of an order: the core hears nothing of an order that left";
                vec![self.graph.missing(span, what); asked.results.len()]
            }
            HostCall::Level(_, side) if self.is_book && self.graph.number(arguments[0]) == Some(0) => {
                let inputs = match side {
                    Side::Bid => [Input::BidPrice, Input::HasBid, Input::BidQty],
                    Side::Ask => [Input::AskPrice, Input::HasAsk, Input::AskQty],
                };
                let mut levels: Vec<Value> = inputs
                    .map(|input| self.graph.node(span, Node::Input(input)))
                    .to_vec();
                levels.push(self.graph.missing(span, "how many orders a level has"));
                levels
            }
            HostCall::Level(..) => {
                let level = arguments.first().and_then(|level| self.graph.number(*level));
                let which = level.map_or("one known only while it runs".to_string(), |n| n.to_string());
                return refuse(&format!(
                    "a level of the book behind the best: level {which}, and the core shows level 0"
                ));
            }
            HostCall::Position(_) => {
                return refuse("position and open orders: software hears of executions, the core does not");
            }
            HostCall::Trading(_) => {
                return refuse("whether the instrument trades: the gate stops orders where it does not");
            }
            HostCall::Order | HostCall::OpenOrders(_) => {
                return refuse("our orders: the core hears nothing of an order that left");
            }
            HostCall::Replace | HostCall::Cancel | HostCall::CancelAll => {
                return refuse("replacing and cancelling: software does it");
            }
            HostCall::SetTimer(_) | HostCall::StopTimer(_) => return refuse("timers"),
            HostCall::Note(_) => return refuse("notes: the core has no log"),
            HostCall::Push(_) | HostCall::Window(_) => {
                let words: u32 = program.windows.iter().map(|window| 2 * window.capacity).sum();
                return refuse(&format!("windows: these have {words} words, the core has none"));
            }
            HostCall::Table(n, _) => {
                let rows = program.tables[usize::from(*n)].rows.len();
                return refuse(&format!("tables: this one has {rows} rows, the core has none"));
            }
            HostCall::Fair(_) | HostCall::Weighted(_) => {
                return refuse("fair value: it divides by a number known only while it runs");
            }
        };
        for (to, value) in asked.results.iter().zip(results) {
            way.registers[usize::from(*to)] = Some(value);
        }
        Ok(())
    }
}
