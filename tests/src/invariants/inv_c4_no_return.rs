//! C4: a message that was got and committed never returns.

use crate::invariants::{Check, Dump, violated};
use crate::oracle::{Fate, Oracle, Put};

const ID: &str = "inv_c4_no_return";

/// Whether a get is final. One that was not answered is, as long as its node lives.
fn taken(oracle: &Oracle, put: &Put) -> bool {
    put.shown.iter().any(|s| match oracle.get_fate(s) {
        Fate::Done => true,
        Fate::Asked => s.unit.is_none(),
        Fate::Refused | Fate::Unknown => false,
    })
}

pub(crate) fn got(oracle: &Oracle, put: &Put) -> Check {
    if taken(oracle, put) {
        return violated(ID, format!("{} is shown again", put.name()));
    }
    Ok(())
}

pub(crate) fn at_any_time(oracle: &Oracle, dump: &Dump) -> Check {
    for item in &dump.items {
        let put = oracle.put(item.uid);
        // The sender keeps its copy, out of everybody's reach, until the receiver's is confirmed.
        let in_doubt = item.held && item.node == 0 && item.queue.as_str() == crate::sim::XMITQ;
        if !in_doubt && taken(oracle, put) {
            return violated(ID, format!("{} is on {} again", put.name(), item.queue));
        }
    }
    Ok(())
}
