//! A2: a commit makes all puts visible and all gets final, or none; also one whose answer was lost.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, violated};
use crate::oracle::{Fate, Oracle, Uid, Unit, UnitState, short};

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    units(oracle, tally, "inv_a2_all_or_nothing", &|_| true)
}

/// Compares what is left of each unit of work with "all" and with "none".
pub(crate) fn units(
    oracle: &Oracle,
    tally: &BTreeMap<Uid, Tally>,
    id: &'static str,
    concerns: &dyn Fn(&Unit) -> bool,
) -> Check {
    for (unit_id, unit) in &oracle.units {
        if unit.state != UnitState::Unknown || !concerns(unit) {
            continue;
        }
        let mut signs: Vec<(bool, String)> = Vec::new();
        for put in unit.puts.iter().map(|uid| oracle.put(*uid)) {
            // A put that was refused is no part of it; a non-persistent one may be lost on its own.
            if put.fate == Fate::Done && put.is_persistent() && put.expires_at.is_none() {
                let t = &tally[&put.uid];
                if t.maybe_got == 0 || t.total() > 0 {
                    signs.push((t.total() > 0, put.name()));
                }
            }
        }
        for put in unit.gets.iter().map(|uid| oracle.put(*uid)) {
            let in_doubt = put
                .shown
                .iter()
                .filter(|s| oracle.get_fate(s) == Fate::Unknown)
                .count();
            let certain = oracle.put_fate(put) == Fate::Done && put.is_persistent();
            if certain && in_doubt == 1 && put.expires_at.is_none() {
                signs.push((tally[&put.uid].total() == 0, put.name()));
            }
        }
        let done = signs.iter().find(|(done, _)| *done);
        let undone = signs.iter().find(|(done, _)| !*done);
        if let (Some((_, done)), Some((_, undone))) = (done, undone) {
            return violated(
                id,
                format!(
                    "unit of work {} is half done: done for {done}, not for {undone}",
                    short(*unit_id)
                ),
            );
        }
    }
    Ok(())
}
