//! C2: a put in doubt ends in at most one place; a refused or backed-out put ends nowhere and was never seen.

use std::collections::BTreeMap;

use crate::invariants::{Check, Tally, violated};
use crate::oracle::{Fate, Oracle, Put, Sight, Uid};

const ID: &str = "inv_c2_in_doubt_at_most_once";

pub(crate) fn seen(oracle: &Oracle, put: &Put, sight: &Sight<'_>) -> Check {
    if oracle.put_fate(put) == Fate::Refused {
        return violated(
            ID,
            format!(
                "{} was seen on {} and had been refused",
                put.name(),
                sight.queue
            ),
        );
    }
    Ok(())
}

pub(crate) fn at_rest(oracle: &Oracle, tally: &BTreeMap<Uid, Tally>) -> Check {
    for put in oracle.puts.values() {
        let t = &tally[&put.uid];
        let most = match oracle.put_fate(put) {
            Fate::Refused => 0,
            Fate::Unknown | Fate::Asked => 1,
            Fate::Done => continue,
        };
        if t.total() > most {
            return violated(
                ID,
                format!("{} is in too many places: {}", put.name(), t.places()),
            );
        }
    }
    Ok(())
}
