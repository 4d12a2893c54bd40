//! N2: a non-persistent message is lost only by a restart of its holder, or by a channel failure at fast speed; anything else is
//! in the account.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, violated};
use crate::oracle::{Fate, Oracle, Put, Uid};

/// Whether something happened since the put that may cost the message.
fn excused(oracle: &Oracle, put: &Put) -> bool {
    let since = |times: &[ferrymq_types::Timestamp]| times.iter().any(|t| *t >= put.asked_at);
    let failed = since(&oracle.conversations_ended);
    since(&oracle.crashes[put.node])
        || since(&oracle.crashes[put.target.0])
        || (put.is_remote() && oracle.fast && failed)
}

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    for put in oracle.puts.values().filter(|p| !p.is_persistent()) {
        let t = &tally[&put.uid];
        let accounted = oracle
            .accounted
            .get(&put.uid)
            .is_some_and(|all| all.iter().any(|a| a.gone));
        let there = t.total() > 0 || t.maybe_got > 0 || accounted;
        if oracle.put_fate(put) == Fate::Done && !there && !excused(oracle, put) {
            return violated(
                "inv_n2_loss_accounted",
                format!("{} is lost without an account entry", put.name()),
            );
        }
    }
    Ok(())
}
