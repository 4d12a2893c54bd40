//! S1: after power loss at any instant everything acknowledged is there; so a store always opens again.

use ferrymq_store::StoreError;

use crate::invariants::{Check, violated};

pub(crate) fn refused(qmgr: &str, error: &StoreError) -> Check {
    violated(
        "inv_s1_store_opens",
        format!("the store of {qmgr} does not open after a crash: {error}"),
    )
}
