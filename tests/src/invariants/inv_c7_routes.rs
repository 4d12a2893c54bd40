//! C7: a message arrives only where its definitions route it.

use crate::invariants::{Check, Dump, violated};
use crate::oracle::{Oracle, Put, Sight};
use crate::sim::{BACKOUT_QUEUE, DEAD_LETTER_QUEUE, XMITQ};

const ID: &str = "inv_c7_routes";

pub(crate) fn got(put: &Put, sight: &Sight<'_>) -> Check {
    if put.target == (sight.node, put.target.1) && put.target.1 == sight.queue {
        return Ok(());
    }
    violated(ID, format!("{} was got from {}", put.name(), sight.queue))
}

pub(crate) fn at_rest(oracle: &Oracle, dump: &Dump) -> Check {
    for item in &dump.items {
        let put = oracle.put(item.uid);
        let queue = item.queue.as_str();
        let fine = if item.node == put.target.0 {
            [put.target.1, DEAD_LETTER_QUEUE, BACKOUT_QUEUE].contains(&queue)
        } else {
            item.node == put.node && [XMITQ, DEAD_LETTER_QUEUE].contains(&queue)
        };
        if !fine {
            return violated(ID, format!("{} is on {queue}", put.name()));
        }
    }
    Ok(())
}
