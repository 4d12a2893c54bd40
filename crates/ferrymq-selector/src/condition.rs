//! A parsed selector. What SQL-92 keeps apart, conditions and the values that they compare, is two types.

use std::collections::BTreeSet;

use crate::like::LikePattern;
use crate::value::Value;

/// What is TRUE, FALSE or unknown.
///
/// AND and OR are lists, as chains of arithmetic are, so that depth comes from parentheses, signs and NOT alone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    Constant(bool),
    /// A boolean property.
    Property(String),
    Not(Box<Condition>),
    /// At least two.
    And(Vec<Condition>),
    /// At least two.
    Or(Vec<Condition>),
    Compare {
        left: Operand,
        operator: Comparison,
        right: Operand,
    },
    Between {
        value: Operand,
        low: Operand,
        high: Operand,
        negated: bool,
    },
    In {
        name: String,
        strings: BTreeSet<String>,
        negated: bool,
    },
    Like {
        name: String,
        pattern: LikePattern,
        negated: bool,
    },
    IsNull {
        name: String,
        negated: bool,
    },
}

/// What has a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Literal(Value<'static>),
    Property(String),
    /// Never around a number literal, which holds its own sign.
    Sign(Sign, Box<Operand>),
    /// Operators of one level, from left to right; `first` is no chain of that level, and at least one step follows it.
    Chain {
        first: Box<Operand>,
        steps: Vec<(Arithmetic, Operand)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it asks for an order, which only numbers have.
    pub(crate) fn is_ordering(self) -> bool {
        match self {
            Self::Equal | Self::NotEqual => false,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// The two levels of binary arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Additive,
    Multiplicative,
}

impl Arithmetic {
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Add | Self::Subtract => Level::Additive,
            Self::Multiply | Self::Divide => Level::Multiplicative,
        }
    }
}

impl Operand {
    /// The level of a chain.
    pub(crate) fn level(&self) -> Option<Level> {
        match self {
            Self::Chain { steps, .. } => steps.first().map(|(operator, _)| operator.level()),
            Self::Literal(_) | Self::Property(_) | Self::Sign(..) => None,
        }
    }
}
