//! Messages to select from, and what each element of the language does with them.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "tests calculate with small numbers"
)]

mod evaluating;
mod random;
mod syntax;

use std::collections::BTreeMap;

use crate::{Fields, Value};

/// Properties by name.
#[derive(Debug, Default, Clone)]
pub(super) struct Properties(pub(super) BTreeMap<String, Value<'static>>);

impl Fields for Properties {
    fn get(&self, name: &str) -> Option<Value<'_>> {
        self.0.get(name).map(Value::borrow)
    }
}

/// `i` 5, `f` 2.5, `s` "red", `t` and `n` TRUE and FALSE, `b` the bytes 2F 1C, `Root.MQMD.Priority` 7; `x` and `y` are not
/// there.
pub(super) fn properties() -> Properties {
    let values = [
        ("i", Value::Integer(5)),
        ("f", Value::Float(2.5)),
        ("s", Value::String("red".into())),
        ("pct", Value::String("50%_\\".into())),
        ("t", Value::Boolean(true)),
        ("n", Value::Boolean(false)),
        ("b", Value::Bytes(vec![0x2f, 0x1c].into())),
        ("Root.MQMD.Priority", Value::Integer(7)),
    ];
    Properties(values.into_iter().map(|(n, v)| (n.to_owned(), v)).collect())
}
