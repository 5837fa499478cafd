//! How many bits each value needs. A value is `unit * n`, with `n` between two bounds: prices are multiples
//! of 1e-4 of currency, so that 32 bits carry what is 49 in the language's 1e-9.

use std::collections::BTreeMap;

use tickwire_language::ir::Binary;

use crate::graph::{Graph, Input, Node, Value};

/// `unit * n`, `low <= n <= high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    pub(crate) unit: i128,
    pub(crate) low: i128,
    pub(crate) high: i128,
}

/// The language's smallest and largest number.
pub(crate) const LEAST: i128 = i64::MIN as i128;
pub(crate) const MOST: i128 = i64::MAX as i128;
/// One step of a price on the wire, in the language's 1e-9.
pub(crate) const PRICE_UNIT: i128 = 100_000;

fn divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Width {
    pub(crate) const ANY: Width = Width {
        unit: 1,
        low: LEAST,
        high: MOST,
    };
    pub(crate) const TRUTH: Width = Width {
        unit: 1,
        low: 0,
        high: 1,
    };

    /// A number of the file: in prices where it is a multiple of one, so that it is compared with them as it
    /// is.
    pub(crate) fn of(n: i64) -> Width {
        let n = i128::from(n);
        let unit = if n != 0 && n % PRICE_UNIT == 0 {
            PRICE_UNIT
        } else {
            1
        };
        Width {
            unit,
            low: n / unit,
            high: n / unit,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.low == 0 && self.high == 0
    }

    /// The same in another unit, which divides this one.
    pub(crate) fn in_unit(self, unit: i128) -> Width {
        if self.is_zero() {
            return Width {
                unit,
                low: 0,
                high: 0,
            };
        }
        let times = self.unit / unit;
        Width {
            unit,
            low: self.low * times,
            high: self.high * times,
        }
    }

    /// The largest unit that both are multiples of.
    pub(crate) fn common(self, other: Width) -> i128 {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => 1,
            (true, false) => other.unit,
            (false, true) => self.unit,
            _ => divisor(self.unit, other.unit),
        }
    }

    /// What is either of both.
    pub(crate) fn or(self, other: Width) -> Width {
        let unit = self.common(other);
        let (a, b) = (self.in_unit(unit), other.in_unit(unit));
        Width {
            unit,
            low: a.low.min(b.low),
            high: a.high.max(b.high),
        }
    }

    /// Within what the language can hold, without stopping at its ends.
    pub(crate) fn fits(self) -> bool {
        self.unit * self.low >= LEAST && self.unit * self.high <= MOST
    }

    fn stopped(self) -> Width {
        match self.fits() {
            true => self,
            // Where a value stops at an end it is no multiple of anything.
            false => {
                let plain = self.in_unit(1);
                Width {
                    unit: 1,
                    low: plain.low.clamp(LEAST, MOST),
                    high: plain.high.clamp(LEAST, MOST),
                }
            }
        }
    }

    /// Yes or no.
    pub(crate) fn is_truth(self) -> bool {
        self.unit == 1 && self.low >= 0 && self.high <= 1
    }

    /// Bits of `n` with its sign.
    pub(crate) fn bits(self) -> u32 {
        let of = |n: i128| match n {
            0.. => 128 - n.leading_zeros() + 1,
            _ => 128 - (!n).leading_zeros() + 1,
        };
        of(self.low).max(of(self.high))
    }
}

/// What an operation comes to before it is stopped at the ends of the language's numbers.
pub(crate) fn exact(op: Binary, a: Width, b: Width) -> Width {
    match op {
        Binary::Mul => {
            let (unit, a, b) = match (a.is_zero(), b.is_zero()) {
                (false, false) => (a.unit * b.unit, a, b),
                _ => (1, Width::of(0), Width::of(0)),
            };
            let all = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
            Width {
                unit,
                low: *all.iter().min().unwrap_or(&0),
                high: *all.iter().max().unwrap_or(&0),
            }
        }
        _ => {
            let unit = a.common(b);
            let (a, b) = (a.in_unit(unit), b.in_unit(unit));
            let (low, high) = match op {
                Binary::Add => (a.low + b.low, a.high + b.high),
                Binary::Sub => (a.low - b.high, a.high - b.low),
                Binary::Min => (a.low.min(b.low), a.high.min(b.high)),
                Binary::Max => (a.low.max(b.low), a.high.max(b.high)),
                _ => (0, 1),
            };
            Width { unit, low, high }
        }
    }
}

/// The widths of all values of a graph, given those of its state.
pub(crate) fn widths(graph: &Graph, state: &BTreeMap<u32, Width>) -> Vec<Width> {
    let mut all: Vec<Width> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let at = |value: Value| all[value];
        all.push(match *node {
            Node::Const(n, _) => Width::of(n),
            Node::Input(input) => of_input(input),
            Node::State(word) => state.get(&word).copied().unwrap_or(Width::ANY),
            Node::Binary(op, a, b) => match op {
                Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::And | Binary::Or => Width::TRUTH,
                Binary::Div | Binary::Rem => Width::ANY,
                Binary::Min | Binary::Max => absolute(graph, &all, a, b).unwrap_or(exact(op, at(a), at(b))),
                op => exact(op, at(a), at(b)).stopped(),
            },
            Node::Not(_) => Width::TRUTH,
            Node::Neg(a) => {
                let a = at(a);
                Width {
                    unit: a.unit,
                    low: -a.high,
                    high: -a.low,
                }
                .stopped()
            }
            Node::Select(_, a, b) => at(a).or(at(b)),
            Node::Missing(_) => Width::ANY,
        });
    }
    all
}

/// `max(x, -x)` is not below 0.
fn absolute(graph: &Graph, all: &[Width], a: Value, b: Value) -> Option<Width> {
    let of = match (&graph.nodes[a], &graph.nodes[b]) {
        (_, Node::Neg(x)) if *x == a => a,
        (Node::Neg(x), _) if *x == b => b,
        _ => return None,
    };
    let x = all[of];
    let is_max = x.low > LEAST;
    is_max.then(|| Width {
        unit: x.unit,
        low: 0,
        high: x.high.max(-x.low),
    })
}

fn of_input(input: Input) -> Width {
    match input {
        Input::BidPrice | Input::AskPrice | Input::LastPrice => Width {
            unit: PRICE_UNIT,
            low: 0,
            high: (1 << 32) - 1,
        },
        Input::BidQty | Input::AskQty => Width {
            unit: 1,
            low: 0,
            high: (1 << 40) - 1,
        },
        Input::LastQty => Width {
            unit: 1,
            low: 0,
            high: (1 << 32) - 1,
        },
        Input::Live | Input::HasBid | Input::HasAsk | Input::HasLast => Width::TRUTH,
    }
}
