//! The shape of a condition after reading.
//!
//! Chains of operators, of `||` and of `.` are lists, not trees leaning to one side: only what is nested in the text is
//! nested here, so that nothing that walks a condition recurses deeper than its text is nested.

use super::function::Function;
use super::value::Kind;

/// An expression and where it stands.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) at: usize,
    pub(super) node: Node,
}

#[derive(Debug)]
pub(super) enum Node {
    Literal(Literal),
    Variable(Variable),
    /// The variable of a macro, counted from the outermost.
    Local(usize),
    Type(Kind),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Unary(Unary, Box<Expr>),
    /// `||`
    Any(Vec<Expr>),
    /// `&&`
    All(Vec<Expr>),
    /// Operators of one rank, from left to right.
    Chain(Box<Expr>, Vec<Link>),
    Choice(Box<[Expr; 3]>),
    Path(Box<Expr>, Vec<Step>),
    Has(Box<Expr>, String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// What a condition can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    Event,
    Data,
    Session,
    Cwd,
    Env,
    Source,
}

impl Variable {
    pub(super) const NAMES: &[(&str, Variable)] = &[
        ("event", Variable::Event),
        ("data", Variable::Data),
        ("session", Variable::Session),
        ("cwd", Variable::Cwd),
        ("env", Variable::Env),
        ("source", Variable::Source),
    ];
}

/// A sign before an expression; written twice it only demands the type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unary {
    Not { twice: bool },
    Minus { twice: bool },
}

/// One more operand of a chain.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) at: usize,
    pub(super) operator: Operator,
    pub(super) right: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// What follows a value: `.name`, `[index]`, `.call(…)`. A call `f(a, b)` is kept as `a.f(b)`.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: usize,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Field(String),
    Index(Expr),
    Call(Function, Vec<Expr>),
    /// `matches` with a literal, which is one of the condition's patterns.
    Matches(usize),
    Each(Macro, Body),
}

/// The macros that look at each element of a list, or each key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

impl Macro {
    pub(super) const NAMES: &[(&str, Macro)] = &[
        ("all", Macro::All),
        ("exists", Macro::Exists),
        ("exists_one", Macro::ExistsOne),
        ("existsOne", Macro::ExistsOne),
        ("map", Macro::Map),
        ("filter", Macro::Filter),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Exists => "exists",
            Self::ExistsOne => "exists_one",
            Self::Map => "map",
            Self::Filter => "filter",
        }
    }
}

/// What a macro does with each element: keep it, change it, or both.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) test: Option<Box<Expr>>,
    pub(super) result: Option<Box<Expr>>,
}
