//! In which clock each value is made. A clock at 156.25 MHz carries two additions or comparisons behind each
//! other, or one multiplication; what is made in an earlier clock stands in a register.

use tickwire_language::ir::Binary;

use crate::graph::{Graph, Node, Value};

/// What fits into a clock, in the units of [`cost`].
const BUDGET: u32 = 6;

fn cost(node: &Node) -> u32 {
    match node {
        Node::Const(..) | Node::Input(_) | Node::State(_) | Node::Missing(_) => 0,
        Node::Not(_) => 0,
        Node::Select(..) => 1,
        Node::Neg(_) => 2,
        Node::Binary(op, ..) => match op {
            Binary::And | Binary::Or => 1,
            Binary::Min | Binary::Max => 4,
            Binary::Mul | Binary::Div | Binary::Rem => BUDGET,
            _ => 3,
        },
    }
}

/// The operands of a node.
pub(crate) fn operands(node: &Node) -> Vec<Value> {
    match *node {
        Node::Const(..) | Node::Input(_) | Node::State(_) | Node::Missing(_) => Vec::new(),
        Node::Not(a) | Node::Neg(a) => vec![a],
        Node::Binary(_, a, b) => vec![a, b],
        Node::Select(c, a, b) => vec![c, a, b],
    }
}

/// The clock of each value, from 1; 0 of what stands there from the start.
pub(crate) fn stages(graph: &Graph, is_used: &[bool]) -> Vec<u32> {
    let mut stage = vec![0_u32; graph.nodes.len()];
    let mut depth = vec![0_u32; graph.nodes.len()];
    for (n, node) in graph.nodes.iter().enumerate() {
        let own = operands(node);
        if own.is_empty() || !is_used[n] {
            continue;
        }
        let at = own.iter().map(|value| stage[*value]).max().unwrap_or(0).max(1);
        let before = own
            .iter()
            .filter(|value| stage[**value] == at)
            .map(|value| depth[*value])
            .max();
        let before = before.unwrap_or(0);
        let own_cost = cost(node);
        (stage[n], depth[n]) = match before + own_cost <= BUDGET {
            true => (at, before + own_cost),
            false => (at + 1, own_cost),
        };
    }
    stage
}

/// What the outputs need.
pub(crate) fn used(graph: &Graph, outputs: &[Value]) -> Vec<bool> {
    let mut is_used = vec![false; graph.nodes.len()];
    let mut waiting = outputs.to_vec();
    while let Some(value) = waiting.pop() {
        if !std::mem::replace(&mut is_used[value], true) {
            waiting.extend(operands(&graph.nodes[value]));
        }
    }
    is_used
}
