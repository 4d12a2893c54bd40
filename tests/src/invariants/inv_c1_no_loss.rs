//! C1: every acknowledged persistent message ends in exactly one place.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, violated};
use crate::oracle::{Fate, Oracle, Uid};

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    for put in oracle.puts.values().filter(|p| p.is_persistent()) {
        if oracle.put_fate(put) != Fate::Done {
            continue;
        }
        let t = &tally[&put.uid];
        let what = match t.total() {
            0 if t.maybe_got > 0 => continue,
            0 => "lost",
            1 => continue,
            _ => "duplicated",
        };
        return violated(
            "inv_c1_no_loss",
            format!("{} is {what}: {}", put.name(), t.places()),
        );
    }
    Ok(())
}
