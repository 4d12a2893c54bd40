//! O1: messages of one putter to one queue with the same priority and persistence, put one after another or in one unit of work,
//! are first delivered in put order; those of groups within their group.

use crate::invariants::{Check, violated};
use crate::oracle::{Oracle, Path, Put, Uid};

/// What keeps its order among itself.
pub(crate) fn path(put: &Put) -> Path {
    (
        put.putter,
        put.target,
        put.priority,
        put.is_persistent(),
        put.unit,
        put.group.map(|place| place.member.0),
    )
}

pub(crate) fn delivered(oracle: &mut Oracle, uid: Uid) -> Check {
    let put = oracle.put(uid);
    if put.delivered {
        return Ok(());
    }
    let path = path(put);
    // Identities rise in the order of the puts.
    if let Some(last) = oracle.order.get(&path)
        && *last > uid
    {
        return violated(
            "inv_o1_order",
            format!("{} comes after {}", put.name(), oracle.put(*last).name()),
        );
    }
    oracle.order.insert(path, uid);
    Ok(())
}
