//! H2: the sender deletes from the transmission queue only what the receiver has durably.

use std::collections::BTreeSet;

use crate::invariants::{Check, violated};
use crate::oracle::{Oracle, Uid};

/// `settled` leave the transmission queue because the receiver is said to have them; `durable` are those that it has.
pub(crate) fn settled(oracle: &Oracle, settled: &[Uid], durable: &BTreeSet<Uid>) -> Check {
    match settled.iter().find(|uid| !durable.contains(uid)) {
        Some(uid) => violated(
            "inv_h2_delete_after_confirm",
            format!(
                "{} is deleted at the sender, and the receiver does not have it durably",
                oracle.put(*uid).name()
            ),
        ),
        None => Ok(()),
    }
}
