//! What a file says, as it is written.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::diag::Span;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) name: Option<Name>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// `param NAME: TYPE = VALUE in LOW..HIGH`
    Param {
        name: Name,
        ty: TypeName,
        value: Expr,
        range: Option<(Expr, Expr)>,
    },
    /// `const NAME: TYPE = VALUE`; an array's value is `[…]`.
    Const {
        name: Name,
        ty: TypeName,
        value: Expr,
    },
    /// `enum NAME { a, b }`
    Enum {
        name: Name,
        values: Vec<Name>,
    },
    /// `instrument NAME = "SYMBOL" session "S" venue "V"`
    Instrument {
        name: Name,
        symbol: Expr,
        session: Option<(String, Span)>,
        venue: Option<(String, Span)>,
    },
    /// `state NAME: TYPE = VALUE`
    State {
        name: Name,
        ty: TypeName,
        value: Expr,
    },
    /// `window NAME: TYPE last N` or `window NAME: TYPE over D max N`
    Window {
        name: Name,
        ty: TypeName,
        over: Option<Expr>,
        capacity: Expr,
    },
    /// `table NAME: KEY -> VALUE from "FILE"` or `{ k: v, … }`
    Table {
        name: Name,
        key: TypeName,
        value: TypeName,
        from: TableFrom,
    },
    Timer {
        name: Name,
    },
    Counter {
        name: Name,
    },
    /// `fn NAME(a: TYPE) -> TYPE { … }`
    Function {
        name: Name,
        params: Vec<(Name, TypeName)>,
        result: Option<TypeName>,
        body: Block,
    },
    Handler(Handler),
    Test(Test),
}

#[derive(Clone, Debug)]
pub(crate) enum TableFrom {
    File(String, Span),
    Rows(Vec<(Expr, Expr)>),
}

#[derive(Clone, Debug)]
pub(crate) struct TypeName {
    pub(crate) name: Name,
    pub(crate) is_optional: bool,
    pub(crate) len: Option<Box<Expr>>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Handler {
    pub(crate) event: Name,
    /// Instruments, or the timer.
    pub(crate) of: Vec<Name>,
    pub(crate) word: Option<(String, Span)>,
    pub(crate) alias: Option<Name>,
    pub(crate) when: Option<Expr>,
    pub(crate) body: Block,
    pub(crate) span: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    Let {
        name: Name,
        ty: Option<TypeName>,
        value: Expr,
    },
    /// `=` is no operator, `+=` is `+`.
    Assign {
        place: Expr,
        op: Option<BinaryOp>,
        value: Expr,
    },
    If {
        condition: Condition,
        then: Block,
        otherwise: Option<Block>,
    },
    For {
        name: Name,
        from: Expr,
        to: Expr,
        body: Block,
    },
    Return(Option<Expr>),
    Do(Expr),
    Cancel(Option<Expr>),
    Set {
        timer: Name,
        is_in: bool,
        value: Expr,
    },
    Stop(Name),
    Note {
        text: String,
        value: Option<Expr>,
    },
    Count {
        counter: Name,
        by: Option<Expr>,
    },
    Push {
        window: Name,
        value: Expr,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Is(Expr),
    /// `if let NAME = VALUE`
    Let(Name, Expr),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Else,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Whole(i64),
    Decimal(i64),
    Lasting(i64),
    /// A number with `ticks` behind it.
    Ticks(i64),
    Text(String),
    Bool(bool),
    None,
    Name(String),
    Field(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Order(Box<OrderExpr>),
    Replace {
        order: Box<Expr>,
        qty: Box<Expr>,
        price: Box<Expr>,
    },
}

/// `buy INSTRUMENT QTY @ PRICE TIF`
#[derive(Clone, Debug)]
pub(crate) struct OrderExpr {
    pub(crate) is_buy: bool,
    pub(crate) instrument: Name,
    pub(crate) qty: Expr,
    /// None of a market order.
    pub(crate) price: Option<Expr>,
    pub(crate) lasting: Option<Name>,
    pub(crate) on_stale: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) with: Vec<(Name, Expr)>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// `book usd bid 100 @ 1.00, 50 @ 0.99 ask none`
    Book {
        instrument: Name,
        bid: Option<Vec<(Expr, Expr)>>,
        ask: Option<Vec<(Expr, Expr)>>,
    },
    Trade {
        instrument: Name,
        qty: Expr,
        price: Expr,
        side: Option<Name>,
    },
    Quote {
        instrument: Name,
        bid: (Expr, Expr),
        ask: (Expr, Expr),
    },
    Imbalance {
        instrument: Name,
        fields: Vec<(Name, Option<Expr>)>,
    },
    Status {
        instrument: Name,
        status: Name,
    },
    Stale(Name),
    Live(Name),
    At(Expr),
    Accept(Option<Expr>),
    Reject(Option<Expr>),
    Cancelled(Option<Expr>),
    Fill {
        order: Option<Expr>,
        qty: Option<Expr>,
        price: Option<Expr>,
    },
    Command(String),
    ExpectOrder(OrderExpr),
    ExpectReplace {
        qty: Expr,
        price: Expr,
    },
    ExpectCancel,
    ExpectNothing,
    ExpectTrap,
    Check(Expr),
}
