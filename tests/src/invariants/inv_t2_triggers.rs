//! T2: no trigger is lost. A queue with a trigger and messages, which nobody reads, has told the monitor, over restarts too.

use crate::invariants::{Check, violated};

pub(crate) fn at_rest(depth: u64) -> Check {
    if depth == 0 {
        return Ok(());
    }
    let what = format!("{depth} messages wait on a queue with a trigger, and no trigger came");
    violated("inv_t2_triggers", what)
}
