//! C8: depth counters equal the number of messages in the dump. A dump leaves out what nobody has committed.

use crate::invariants::{Check, Dump, violated};

pub(crate) fn at_any_time(dump: &Dump) -> Check {
    for ((node, queue), (depth, uncommitted, items)) in &dump.depths {
        if depth < items || *depth > items + uncommitted {
            return violated(
                "inv_c8_depth",
                format!(
                    "{queue} of {} has depth {depth}, {uncommitted} of it uncommitted, and {items} messages in its dump",
                    crate::sim::QMGRS[*node]
                ),
            );
        }
    }
    Ok(())
}
