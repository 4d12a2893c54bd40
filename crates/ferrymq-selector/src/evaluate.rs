//! What a condition comes to: SQL's logic of three values.

use core::cmp::Ordering;

use crate::condition::{Arithmetic, Comparison, Condition, Operand, Sign};
use crate::value::{Fields, Value};

/// What a condition comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The message is chosen.
    True,
    /// It is not.
    False,
    /// A property that is not there, or is no boolean where one must be, decides: neither the condition nor its opposite
    /// chooses the message.
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl Truth {
    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl Condition {
    /// Recursion follows the nesting of the text, which is bounded.
    pub(crate) fn evaluate(&self, fields: &impl Fields) -> Truth {
        match self {
            Self::Constant(value) => Truth::from(*value),
            Self::Property(name) => match fields.get(name) {
                None => Truth::Unknown,
                Some(Value::Boolean(value)) => Truth::from(value),
                // Neither it nor its opposite chooses the message.
                Some(Value::Integer(_) | Value::Float(_) | Value::String(_) | Value::Bytes(_)) => {
                    Truth::Unknown
                }
            },
            Self::Not(inner) => inner.evaluate(fields).not(),
            Self::And(all) => first_or_unknown(all, fields, Truth::False, Truth::True),
            Self::Or(any) => first_or_unknown(any, fields, Truth::True, Truth::False),
            Self::Compare {
                left,
                operator,
                right,
            } => compare(left.evaluate(fields), *operator, right.evaluate(fields)),
            Self::Between {
                value,
                low,
                high,
                negated,
            } => {
                let value = value.evaluate(fields);
                let (low, high) = (low.evaluate(fields), high.evaluate(fields));
                between(value, low, high, *negated)
            }
            Self::In {
                name,
                strings,
                negated,
            } => of_string(fields.get(name), *negated, |string| {
                strings.contains(string)
            }),
            Self::Like {
                name,
                pattern,
                negated,
            } => of_string(fields.get(name), *negated, |string| pattern.matches(string)),
            Self::IsNull { name, negated } => Truth::from(fields.get(name).is_none() != *negated),
        }
    }
}

/// `decisive` if one of them is, else unknown if one of them is, else `otherwise`.
fn first_or_unknown(
    conditions: &[Condition],
    fields: &impl Fields,
    decisive: Truth,
    otherwise: Truth,
) -> Truth {
    let mut result = otherwise;
    for condition in conditions {
        match condition.evaluate(fields) {
            truth if truth == decisive => return decisive,
            Truth::Unknown => result = Truth::Unknown,
            Truth::True | Truth::False => {}
        }
    }
    result
}

/// IN and LIKE. A value that is no string is of an unlike type: FALSE, with NOT as without.
fn of_string(value: Option<Value<'_>>, negated: bool, test: impl Fn(&str) -> bool) -> Truth {
    match value {
        None => Truth::Unknown,
        Some(Value::String(string)) => Truth::from(test(&string) != negated),
        Some(Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::Bytes(_)) => {
            Truth::False
        }
    }
}

/// `value >= low AND value <= high`, or with NOT `value < low OR value > high`.
fn between(
    value: Option<Value<'_>>,
    low: Option<Value<'_>>,
    high: Option<Value<'_>>,
    negated: bool,
) -> Truth {
    let (below, above, decisive) = if negated {
        (Comparison::Less, Comparison::Greater, Truth::True)
    } else {
        (
            Comparison::GreaterOrEqual,
            Comparison::LessOrEqual,
            Truth::False,
        )
    };
    let first = compare(value.as_ref().map(Value::borrow), below, low);
    if first == decisive {
        return decisive;
    }
    let second = compare(value, above, high);
    if second == decisive || first != Truth::Unknown {
        second
    } else {
        Truth::Unknown
    }
}

/// Numbers compare with numbers, an exact one made approximate beside an approximate one (Java's numeric promotion); the
/// others with their own type, for equality only. Values of unlike types compare FALSE, with `<>` too.
///
/// Source: IBM MQ, "Message selector syntax".
fn compare(left: Option<Value<'_>>, operator: Comparison, right: Option<Value<'_>>) -> Truth {
    let (Some(left), Some(right)) = (left, right) else {
        return Truth::Unknown;
    };
    let same = match (&left, &right) {
        (Value::Integer(left), Value::Integer(right)) => {
            return Truth::from(holds(operator, Some(left.cmp(right))));
        }
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => {
            let ordering = match (approximate(&left), approximate(&right)) {
                (Some(left), Some(right)) => left.partial_cmp(&right),
                (None, _) | (_, None) => None,
            };
            return Truth::from(holds(operator, ordering));
        }
        (Value::Boolean(left), Value::Boolean(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (
            Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::String(_)
            | Value::Bytes(_),
            _,
        ) => return Truth::False,
    };
    match operator {
        Comparison::Equal => Truth::from(same),
        Comparison::NotEqual => Truth::from(!same),
        Comparison::Less
        | Comparison::LessOrEqual
        | Comparison::Greater
        | Comparison::GreaterOrEqual => Truth::False,
    }
}

/// `None` is the order of what is not a number: only `<>` holds.
fn holds(operator: Comparison, ordering: Option<Ordering>) -> bool {
    match operator {
        Comparison::Equal => ordering == Some(Ordering::Equal),
        Comparison::NotEqual => ordering != Some(Ordering::Equal),
        Comparison::Less => ordering == Some(Ordering::Less),
        Comparison::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        Comparison::Greater => ordering == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "numeric promotion rounds to the nearest double"
)]
fn approximate(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Boolean(_) | Value::String(_) | Value::Bytes(_) => None,
    }
}

impl Operand {
    /// `None` is SQL's NULL: a property that is not there, arithmetic over one or over what is no number, and exact
    /// arithmetic without a result (beyond 64 bits, division by zero).
    fn evaluate<'a>(&'a self, fields: &'a impl Fields) -> Option<Value<'a>> {
        match self {
            Self::Literal(value) => Some(value.borrow()),
            Self::Property(name) => fields.get(name),
            Self::Sign(sign, inner) => match (sign, inner.evaluate(fields)?) {
                (Sign::Plus, number @ (Value::Integer(_) | Value::Float(_))) => Some(number),
                (Sign::Minus, Value::Integer(number)) => number.checked_neg().map(Value::Integer),
                (Sign::Minus, Value::Float(number)) => Some(Value::Float(-number)),
                (
                    Sign::Plus | Sign::Minus,
                    Value::Boolean(_) | Value::String(_) | Value::Bytes(_),
                ) => None,
            },
            Self::Chain { first, steps } => {
                let mut result = first.evaluate(fields)?;
                for (operator, operand) in steps {
                    result = calculate(&result, *operator, &operand.evaluate(fields)?)?;
                }
                Some(result)
            }
        }
    }
}

/// Exact between exact numbers, where division drops the remainder; else approximate, as IEEE 754 has it.
fn calculate(left: &Value<'_>, operator: Arithmetic, right: &Value<'_>) -> Option<Value<'static>> {
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        let result = match operator {
            Arithmetic::Add => left.checked_add(*right),
            Arithmetic::Subtract => left.checked_sub(*right),
            Arithmetic::Multiply => left.checked_mul(*right),
            Arithmetic::Divide => left.checked_div(*right),
        };
        return result.map(Value::Integer);
    }
    let (left, right) = (approximate(left)?, approximate(right)?);
    Some(Value::Float(match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
    }))
}
