//! H3: the receiver has the whole batch or nothing of it: its write set holds every persistent message of the batch.

use std::collections::BTreeSet;

use crate::invariants::{Check, violated};
use crate::oracle::Uid;

pub(crate) fn committed(batch: &str, sent: &BTreeSet<Uid>, written: &BTreeSet<Uid>) -> Check {
    if sent == written {
        return Ok(());
    }
    violated(
        "inv_h3_batch_atomic",
        format!("batch {batch} was sent with {sent:?} and committed with {written:?}"),
    )
}
