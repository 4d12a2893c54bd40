//! L1: when everything is healed everything is delivered and answered within the stated time.

use crate::invariants::{Check, violated};
use crate::oracle::Oracle;

const ID: &str = "inv_l1_drains";

pub(crate) fn at_rest(oracle: &Oracle) -> Check {
    match oracle.unanswered().first() {
        Some(uid) => violated(
            ID,
            format!("{} was never answered", oracle.put(*uid).name()),
        ),
        None => Ok(()),
    }
}

pub(crate) fn too_late(what: &str) -> Check {
    violated(ID, what)
}
