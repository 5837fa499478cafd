//! A handler as a graph of values: what it stores and sends, each as an expression of what it is told. Jumps
//! have become choices between values, loops are laid out.

use std::collections::HashMap;

use tickwire_language::Span;
use tickwire_language::ir::Binary;

/// A value, by its place in [`Graph::nodes`].
pub(crate) type Value = usize;

/// What the core is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Input {
    Live,
    /// Price, quantity, whether there is any.
    BidPrice,
    BidQty,
    AskPrice,
    AskQty,
    HasBid,
    HasAsk,
    LastPrice,
    LastQty,
    HasLast,
}

impl Input {
    pub(crate) fn port(self) -> &'static str {
        match self {
            Input::Live => "live",
            Input::BidPrice => "bid_price",
            Input::BidQty => "bid_qty",
            Input::AskPrice => "ask_price",
            Input::AskQty => "ask_qty",
            Input::HasBid => "bid_valid",
            Input::HasAsk => "ask_valid",
            Input::LastPrice => "last_price",
            Input::LastQty => "last_qty",
            Input::HasLast => "has_last",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// A number, and the parameter that it is of.
    Const(i64, Option<u16>),
    Input(Input),
    /// A word of state, as it was before the handler.
    State(u32),
    Binary(Binary, Value, Value),
    Not(Value),
    Neg(Value),
    Select(Value, Value, Value),
    /// What a core does not have: refused where something that it does depends on it.
    Missing(u32),
}

/// An order that a handler may send.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) when: Value,
    pub(crate) is_sell: bool,
    pub(crate) qty: Value,
    pub(crate) price: Value,
    pub(crate) span: Span,
}

/// The values of a handler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// Where each was first asked for.
    pub(crate) spans: Vec<Span>,
    known: HashMap<Node, Value>,
    /// Why each [`Node::Missing`] is.
    pub(crate) missing: Vec<(Span, String)>,
}

impl Graph {
    pub(crate) fn number(&self, value: Value) -> Option<i64> {
        match self.nodes[value] {
            Node::Const(n, _) => Some(n),
            _ => None,
        }
    }

    pub(crate) fn constant(&mut self, n: i64) -> Value {
        self.node(Span::default(), Node::Const(n, None))
    }

    pub(crate) fn missing(&mut self, span: Span, why: impl Into<String>) -> Value {
        let why = why.into();
        let found = self.missing.iter().position(|(at, _)| *at == span);
        let n = found.unwrap_or_else(|| {
            self.missing.push((span, why));
            self.missing.len() - 1
        });
        self.node(span, Node::Missing(n as u32))
    }

    /// The node itself, or a simpler one that has the same value.
    pub(crate) fn node(&mut self, span: Span, node: Node) -> Value {
        let node = match self.simpler(span, &node) {
            Ok(same) => return same,
            Err(()) => node,
        };
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        self.nodes.push(node.clone());
        self.spans.push(span);
        self.known.insert(node, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn simpler(&mut self, span: Span, node: &Node) -> Result<Value, ()> {
        match *node {
            Node::Binary(op, a, b) => self.simpler_binary(span, op, a, b),
            Node::Not(a) => match (self.number(a), &self.nodes[a]) {
                (Some(n), _) => Ok(self.constant(n ^ 1)),
                (_, Node::Not(inner)) => Ok(*inner),
                _ => Err(()),
            },
            Node::Neg(a) => match self.number(a) {
                Some(n) => Ok(self.constant(n.saturating_neg())),
                None => Err(()),
            },
            Node::Select(c, a, b) => match self.number(c) {
                _ if a == b => Ok(a),
                Some(0) => Ok(b),
                Some(_) => Ok(a),
                None => Err(()),
            },
            _ => Err(()),
        }
    }

    fn simpler_binary(&mut self, span: Span, op: Binary, a: Value, b: Value) -> Result<Value, ()> {
        if let (Some(x), Some(y)) = (self.number(a), self.number(b))
            && let Some(n) = computed(op, x, y)
        {
            return Ok(self.constant(n));
        }
        let is_not_of = |x: Value, y: Value| matches!(self.nodes[x], Node::Not(inner) if inner == y);
        match (op, self.number(a), self.number(b)) {
            (Binary::And, Some(0), _) | (Binary::Or, _, Some(0)) | (Binary::And, _, Some(1)) => Ok(a),
            (Binary::And, _, Some(0)) | (Binary::Or, Some(0), _) | (Binary::And, Some(1), _) => Ok(b),
            (Binary::Or, Some(1), _) | (Binary::Or, _, Some(1)) => Ok(self.constant(1)),
            (Binary::And | Binary::Or | Binary::Min | Binary::Max, ..) if a == b => Ok(a),
            (Binary::And, ..) if is_not_of(a, b) || is_not_of(b, a) => Ok(self.constant(0)),
            (Binary::Or, ..) if is_not_of(a, b) || is_not_of(b, a) => Ok(self.constant(1)),
            (Binary::Eq | Binary::Le, ..) if a == b => Ok(self.constant(1)),
            (Binary::Ne | Binary::Lt, ..) if a == b => Ok(self.constant(0)),
            (Binary::Add | Binary::Sub, _, Some(0)) | (Binary::Mul | Binary::Div, _, Some(1)) => Ok(a),
            (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => Ok(b),
            (Binary::Or, ..) => self.simpler_or(span, a, b),
            (Binary::Le, ..) => self.simpler_le(span, a, b),
            (Binary::Lt, ..) => self.simpler_lt(span, a, b),
            _ => Err(()),
        }
    }

    /// `p and c, or p and not c` is `p`: two ways that meet again.
    fn simpler_or(&mut self, span: Span, a: Value, b: Value) -> Result<Value, ()> {
        let _ = span;
        let (Node::Binary(Binary::And, p, c), Node::Binary(Binary::And, q, d)) =
            (&self.nodes[a], &self.nodes[b])
        else {
            return Err(());
        };
        let opposite = |x: Value, y: Value| {
            matches!(self.nodes[x], Node::Not(inner) if inner == y)
                || matches!(self.nodes[y], Node::Not(inner) if inner == x)
        };
        match p == q && opposite(*c, *d) {
            true => Ok(*p),
            false => Err(()),
        }
    }

    /// Steps between two prices, a part counting as one, compared with a number: no division is needed, as
    /// `ceil(x / t) <= k` where `x <= k * t`.
    fn simpler_le(&mut self, span: Span, a: Value, b: Value) -> Result<Value, ()> {
        if let Some((x, t)) = self.steps_up(a) {
            let step = self.constant(t);
            let reach = self.node(span, Node::Binary(Binary::Mul, b, step));
            return Ok(self.node(span, Node::Binary(Binary::Le, x, reach)));
        }
        // A quotient without its fraction, compared with a number that is not negative.
        if let (Some((x, t)), Some(k)) = (self.quotient(a), self.number(b).filter(|k| *k >= 0)) {
            let reach = self.constant(k.saturating_add(1).saturating_mul(t));
            return Ok(self.node(span, Node::Binary(Binary::Lt, x, reach)));
        }
        if let (Some(k), Some((x, t))) = (self.number(a).filter(|k| *k > 0), self.quotient(b)) {
            let reach = self.constant(k.saturating_mul(t));
            return Ok(self.node(span, Node::Binary(Binary::Le, reach, x)));
        }
        // Within a distance: two comparisons beside each other.
        if let (Some(x), Some(k)) = (self.absolute(a), self.number(b).filter(|k| *k < i64::MAX)) {
            let far = self.constant(k.saturating_neg());
            let above = self.node(span, Node::Binary(Binary::Le, far, x));
            let below = self.node(span, Node::Binary(Binary::Le, x, b));
            return Ok(self.node(span, Node::Binary(Binary::And, above, below)));
        }
        Err(())
    }

    fn simpler_lt(&mut self, span: Span, a: Value, b: Value) -> Result<Value, ()> {
        if let Some((x, t)) = self.steps_up(b) {
            let step = self.constant(t);
            let reach = self.node(span, Node::Binary(Binary::Mul, a, step));
            return Ok(self.node(span, Node::Binary(Binary::Lt, reach, x)));
        }
        if let (Some((x, t)), Some(k)) = (self.quotient(a), self.number(b).filter(|k| *k > 0)) {
            let reach = self.constant(k.saturating_mul(t));
            return Ok(self.node(span, Node::Binary(Binary::Lt, x, reach)));
        }
        if let (Some(k), Some((x, t))) = (self.number(a).filter(|k| *k >= 0), self.quotient(b)) {
            let reach = self.constant(k.saturating_add(1).saturating_mul(t));
            return Ok(self.node(span, Node::Binary(Binary::Le, reach, x)));
        }
        if let (Some(x), Some(k)) = (self.absolute(b), self.number(a).filter(|k| *k < i64::MAX)) {
            let far = self.constant(k.saturating_neg());
            let above = self.node(span, Node::Binary(Binary::Lt, a, x));
            let below = self.node(span, Node::Binary(Binary::Lt, x, far));
            return Ok(self.node(span, Node::Binary(Binary::Or, above, below)));
        }
        Err(())
    }

    /// `x / t`, one more where something is left, of an `x` that is not negative and a number `t`: both.
    fn steps_up(&self, value: Value) -> Option<(Value, i64)> {
        let Node::Binary(Binary::Add, whole, part) = self.nodes[value] else {
            return None;
        };
        let Node::Binary(Binary::Div, x, t) = self.nodes[whole] else {
            return None;
        };
        let Node::Binary(Binary::Lt, zero, rest) = self.nodes[part] else {
            return None;
        };
        let step = self.number(t).filter(|t| *t > 0)?;
        let is_rest = self.nodes[rest] == Node::Binary(Binary::Rem, x, t) && self.number(zero) == Some(0);
        (is_rest && self.absolute(x).is_some()).then_some((x, step))
    }

    /// `x / t` of a number `t` above 0, small enough that a multiple of it is not stopped at an end.
    fn quotient(&self, value: Value) -> Option<(Value, i64)> {
        let Node::Binary(Binary::Div, x, t) = self.nodes[value] else {
            return None;
        };
        self.number(t).filter(|t| *t > 0).map(|t| (x, t))
    }

    /// What a value is the amount of.
    fn absolute(&self, value: Value) -> Option<Value> {
        match self.nodes[value] {
            Node::Binary(Binary::Max, a, b) if self.nodes[b] == Node::Neg(a) => Some(a),
            Node::Binary(Binary::Max, a, b) if self.nodes[a] == Node::Neg(b) => Some(b),
            _ => None,
        }
    }
}

/// As the interpreter has it; `None` where it would trap.
pub(crate) fn computed(op: Binary, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        Binary::Add => a.saturating_add(b),
        Binary::Sub => a.saturating_sub(b),
        Binary::Mul => a.saturating_mul(b),
        Binary::Div | Binary::Rem if b == 0 => return None,
        Binary::Div => a.saturating_div(b),
        Binary::Rem => a.wrapping_rem(b),
        Binary::Eq => i64::from(a == b),
        Binary::Ne => i64::from(a != b),
        Binary::Lt => i64::from(a < b),
        Binary::Le => i64::from(a <= b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Min => a.min(b),
        Binary::Max => a.max(b),
    })
}
