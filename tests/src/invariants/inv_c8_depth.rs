//! C8: depth counters equal the number of messages in the dump.

use crate::invariants::{Check, Dump, violated};

pub(crate) fn at_any_time(dump: &Dump) -> Check {
    for ((node, queue), (depth, items)) in &dump.depths {
        if depth != items {
            return violated(
                "inv_c8_depth",
                format!(
                    "{queue} of {} has depth {depth} and {items} messages in its dump",
                    crate::sim::QMGRS[*node]
                ),
            );
        }
    }
    Ok(())
}
