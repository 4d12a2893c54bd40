//! B1: the backout count is the number of times that a message was got in a unit of work and backed out; it never falls.
//! B2: with `BOTHRESH` n a message is delivered at most n times.

use crate::invariants::{Check, violated};
use crate::oracle::{Oracle, Put, Sight, UnitState};

pub(crate) fn got(oracle: &Oracle, put: &Put, sight: &Sight<'_>, threshold: Option<u32>) -> Check {
    let units = |s: &crate::oracle::Shown| s.unit.and_then(|u| oracle.units.get(&u));
    let under_syncpoint = put.shown.iter().filter(|s| s.unit.is_some()).count();
    let count = sight.backout_count as usize;
    if count > under_syncpoint {
        return violated(
            "inv_b1_backout_count",
            format!(
                "{} has backout count {count} after {under_syncpoint} gets",
                put.name()
            ),
        );
    }
    // On a queue with a threshold the count is durable before the message is shown (rule U14); else when the backout is answered.
    let counted = |s: &&crate::oracle::Shown| {
        units(s).is_some_and(|unit| {
            unit.backout_answered
                || (threshold.is_some() && s.left && unit.state == UnitState::BackedOut)
        })
    };
    let least = put.shown.iter().filter(counted).count();
    if put.is_persistent() && count < least {
        return violated(
            "inv_b1_backout_count",
            format!(
                "{} has backout count {count} after {least} backouts",
                put.name()
            ),
        );
    }
    if let Some(threshold) = threshold {
        let delivered = put.shown.iter().filter(|s| s.left).count();
        if delivered >= threshold as usize {
            return violated(
                "inv_b2_threshold",
                format!("{} is delivered again after {delivered} times", put.name()),
            );
        }
    }
    Ok(())
}
