//! C5: a message is never on two queues at once. Between the nodes it is on the transmission queue, held for a batch, until the
//! receiver's commit is confirmed.

use std::collections::BTreeMap;

use crate::invariants::{Check, Dump, Dumped, violated};
use crate::oracle::{Oracle, Uid};

pub(crate) fn at_any_time(oracle: &Oracle, dump: &Dump) -> Check {
    let mut seen: BTreeMap<Uid, Vec<&Dumped>> = BTreeMap::new();
    for item in &dump.items {
        seen.entry(item.uid).or_default().push(item);
    }
    for (uid, items) in seen {
        let fine = match items[..] {
            [] | [_] => true,
            [a, b] => {
                let sending = |i: &Dumped| i.node == 0 && i.queue.as_str() == crate::sim::XMITQ;
                a.node != b.node && (sending(a) || sending(b)) && (a.held || b.held)
            }
            _ => false,
        };
        if !fine {
            return violated(
                "inv_c5_one_place",
                format!("{} is in several places: {items:?}", oracle.put(uid).name()),
            );
        }
    }
    Ok(())
}
