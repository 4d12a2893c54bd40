//! N1: a non-persistent message is delivered at most once, always.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, violated};
use crate::oracle::{Oracle, Uid};

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    for put in oracle.puts.values().filter(|p| !p.is_persistent()) {
        let t = &tally[&put.uid];
        if t.total() > 1 {
            return violated(
                "inv_n1_at_most_once",
                format!("{} is there more than once: {}", put.name(), t.places()),
            );
        }
    }
    Ok(())
}
