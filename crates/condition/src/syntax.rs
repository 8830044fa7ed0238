//! The syntax tree of a condition.
//!
//! Chains of operators, of `||` and of `.` are lists, not nested trees. So the tree is no deeper than the text is
//! nested, and a walk over it recurses no deeper either.

use crate::function::Function;
use crate::value::CelKind;

/// An expression and its position.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) at: usize,
    pub(crate) node: Node,
}

#[derive(Debug)]
pub(crate) enum Node {
    Literal(Literal),
    Variable(Variable),
    /// The variable of a macro, counted from the outermost.
    Local(usize),
    Type(CelKind),
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
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The variables of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    Event,
    Data,
    Session,
    Cwd,
    Env,
    Source,
}

impl Variable {
    pub(crate) const NAMES: &[(&str, Variable)] = &[
        ("event", Variable::Event),
        ("data", Variable::Data),
        ("session", Variable::Session),
        ("cwd", Variable::Cwd),
        ("env", Variable::Env),
        ("source", Variable::Source),
    ];
}

/// A sign before an expression; two equal signs cancel out, but still require the type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Not { twice: bool },
    Minus { twice: bool },
}

/// One more operand of a chain.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) at: usize,
    pub(crate) operator: Operator,
    pub(crate) right: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
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
    pub(crate) fn sign(self) -> &'static str {
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

/// A step after a value: `.name`, `[index]`, `.call(…)`. A call `f(a, b)` is stored as `a.f(b)`.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) at: usize,
    pub(crate) kind: StepKind,
}

#[derive(Debug)]
pub(crate) enum StepKind {
    Field(String),
    Index(Expr),
    Call(Function, Vec<Expr>),
    /// `matches` with a literal: the index of its pattern in the condition.
    Matches(usize),
    Each(Macro, Body),
}

/// The macros that visit each element of a list, or each key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

impl Macro {
    pub(crate) const NAMES: &[(&str, Macro)] = &[
        ("all", Macro::All),
        ("exists", Macro::Exists),
        ("exists_one", Macro::ExistsOne),
        ("existsOne", Macro::ExistsOne),
        ("map", Macro::Map),
        ("filter", Macro::Filter),
    ];

    pub(crate) fn name(self) -> &'static str {
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
pub(crate) struct Body {
    pub(crate) test: Option<Box<Expr>>,
    pub(crate) result: Option<Box<Expr>>,
}
