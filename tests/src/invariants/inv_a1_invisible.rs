//! A1: puts in a unit of work are invisible until it commits.

use crate::invariants::{Check, violated};
use crate::oracle::{Oracle, Put, Sight, UnitState};

pub(crate) fn seen(oracle: &Oracle, put: &Put, sight: &Sight<'_>) -> Check {
    let Some(unit) = put.unit.and_then(|u| oracle.units.get(&u)) else {
        return Ok(());
    };
    if unit.state == UnitState::Open && !unit.committing {
        return violated(
            "inv_a1_invisible",
            format!(
                "{} was seen on {} before its commit",
                put.name(),
                sight.queue
            ),
        );
    }
    Ok(())
}
