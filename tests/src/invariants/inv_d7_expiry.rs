//! D7: a message is not delivered after its expiry and not expired before it. One that has travelled counts on what is left of
//! its time when it arrives, so only the second half is checked for it.

use ferrymq_types::{AccountEntry, AccountReason};

use crate::invariants::{Check, violated};
use crate::oracle::{Put, Sight};

const ID: &str = "inv_d7_expiry";

pub(crate) fn got(put: &Put, sight: &Sight<'_>) -> Check {
    match put.expires_at {
        Some(at) if !put.is_remote() && at <= sight.now => violated(
            ID,
            format!("{} was got {:?} late", put.name(), sight.now.since(at)),
        ),
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn accounted(put: &Put, entry: &AccountEntry) -> Check {
    let early = put.expires_at.is_none_or(|at| entry.time < at);
    if entry.reason == AccountReason::Expired && early {
        return violated(
            ID,
            format!("{} was expired too early: {entry:?}", put.name()),
        );
    }
    Ok(())
}
