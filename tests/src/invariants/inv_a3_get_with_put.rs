//! A3: a get from one queue and a put to another in one unit of work: never the one without the other.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, inv_a2_all_or_nothing};
use crate::oracle::{Oracle, Uid};

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    inv_a2_all_or_nothing::units(oracle, tally, "inv_a3_get_with_put", &|unit| {
        !unit.puts.is_empty() && !unit.gets.is_empty()
    })
}
