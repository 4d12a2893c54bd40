//! A selector as text, in one normal form with the parentheses that are needed and no others.

use core::fmt;

use crate::Selector;
use crate::condition::{Arithmetic, Comparison, Condition, Level, Operand, Sign};
use crate::value::Value;

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(true) => f.write_str("TRUE"),
            Self::Constant(false) => f.write_str("FALSE"),
            Self::Property(name) => f.write_str(name),
            Self::Not(inner) => {
                f.write_str("NOT ")?;
                inner.fmt_within(f, Binding::Not)
            }
            Self::And(all) => join(f, all, " AND ", Binding::And),
            Self::Or(any) => join(f, any, " OR ", Binding::Or),
            Self::Compare {
                left,
                operator,
                right,
            } => write!(f, "{left} {operator} {right}"),
            Self::Between {
                value,
                low,
                high,
                negated,
            } => write!(f, "{value} {}BETWEEN {low} AND {high}", not(*negated)),
            Self::In {
                name,
                strings,
                negated,
            } => {
                write!(f, "{name} {}IN (", not(*negated))?;
                for (index, string) in strings.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    quote(f, string)?;
                }
                f.write_str(")")
            }
            Self::Like {
                name,
                pattern,
                negated,
            } => write!(f, "{name} {}LIKE {pattern}", not(*negated)),
            Self::IsNull { name, negated } => write!(f, "{name} IS {}NULL", not(*negated)),
        }
    }
}

/// What binds the conditions beside it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
}

impl Condition {
    /// In parentheses if it would fall apart beside an operator that binds like `outer`.
    fn fmt_within(&self, f: &mut fmt::Formatter<'_>, outer: Binding) -> fmt::Result {
        let own = match self {
            Self::Or(_) => Some(Binding::Or),
            Self::And(_) => Some(Binding::And),
            Self::Constant(_)
            | Self::Property(_)
            | Self::Not(_)
            | Self::Compare { .. }
            | Self::Between { .. }
            | Self::In { .. }
            | Self::Like { .. }
            | Self::IsNull { .. } => None,
        };
        if own.is_some_and(|own| own <= outer) {
            write!(f, "({self})")
        } else {
            write!(f, "{self}")
        }
    }
}

fn join(
    f: &mut fmt::Formatter<'_>,
    conditions: &[Condition],
    operator: &str,
    binding: Binding,
) -> fmt::Result {
    for (index, condition) in conditions.iter().enumerate() {
        if index > 0 {
            f.write_str(operator)?;
        }
        condition.fmt_within(f, binding)?;
    }
    Ok(())
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => literal(f, value),
            Self::Property(name) => f.write_str(name),
            Self::Sign(sign, inner) => {
                f.write_str(match sign {
                    Sign::Plus => "+",
                    Sign::Minus => "-",
                })?;
                inner.fmt_within(f, Level::Multiplicative)
            }
            Self::Chain { first, steps } => {
                let level = self.level().unwrap_or(Level::Additive);
                first.fmt_within(f, level)?;
                for (operator, operand) in steps {
                    write!(f, " {operator} ")?;
                    operand.fmt_within(f, level)?;
                }
                Ok(())
            }
        }
    }
}

impl Operand {
    fn fmt_within(&self, f: &mut fmt::Formatter<'_>, outer: Level) -> fmt::Result {
        if self.level().is_some_and(|own| own <= outer) {
            write!(f, "({self})")
        } else {
            write!(f, "{self}")
        }
    }
}

fn literal(f: &mut fmt::Formatter<'_>, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Boolean(true) => f.write_str("TRUE"),
        Value::Boolean(false) => f.write_str("FALSE"),
        Value::Integer(number) => write!(f, "{number}"),
        // With a point or an exponent always, so that it stays approximate.
        Value::Float(number) => write!(f, "{number:?}"),
        Value::String(string) => quote(f, string),
        Value::Bytes(bytes) => {
            f.write_str("\"0x")?;
            for byte in bytes.iter() {
                write!(f, "{byte:02X}")?;
            }
            f.write_str("\"")
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, string: &str) -> fmt::Result {
    write!(f, "'{}'", string.replace('\'', "''"))
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        })
    }
}
