//! What a property holds, and where a selector finds it.

use std::borrow::Cow;

/// The value of a property or a literal.
///
/// Narrower integers and floats of message properties are widened before they get here.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// TRUE or FALSE.
    Boolean(bool),
    /// An exact number.
    Integer(i64),
    /// An approximate number.
    Float(f64),
    /// Characters; compared exactly.
    String(Cow<'a, str>),
    /// A byte string, such as a message identifier; compared exactly, without padding.
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// The same value, borrowed.
    pub(crate) fn borrow(&self) -> Value<'_> {
        match self {
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Integer(value) => Value::Integer(*value),
            Self::Float(value) => Value::Float(*value),
            Self::String(value) => Value::String(Cow::Borrowed(value)),
            Self::Bytes(value) => Value::Bytes(Cow::Borrowed(value)),
        }
    }
}

/// The properties of one message.
pub trait Fields {
    /// The value of the property with this name, which is case-significant: `colour`, or `Root.MQMD.Priority` for a field
    /// of the descriptor. `None` if the message has no such property or its value is null.
    fn get(&self, name: &str) -> Option<Value<'_>>;
}
