//! T1: a report is put with what it reports or not at all: one confirmation of arrival for a put that took effect, one of
//! delivery for a get that did, one of expiry for a message that expired; none for what did not happen.

use std::collections::BTreeMap;

use ferrymq_types::{AccountReason, MessageDescriptor};

use crate::invariants::{Check, Dump, Tally, is_of_report, violated};
use crate::oracle::{Fate, Oracle, Uid};

const ID: &str = "inv_t1_reports";

pub(crate) fn at_rest(oracle: &Oracle, dump: &Dump, tally: &BTreeMap<Uid, Tally>) -> Check {
    for ((uid, feedback), count) in &dump.reports {
        if *count > 1 {
            let name = oracle.put(*uid).name();
            return violated(ID, format!("{name} is reported {count} times: {feedback}"));
        }
    }
    for put in oracle.puts.values().filter(|put| put.is_persistent()) {
        let there = |feedback| dump.reports.contains_key(&(put.uid, feedback));
        let t = &tally[&put.uid];
        let of_it = |entry: &ferrymq_types::AccountEntry| {
            oracle.by_message_id.get(&entry.message_id) == Some(&put.uid)
        };
        // Nothing took the report: the account says so.
        let dropped = dump
            .accounts
            .iter()
            .any(|(_, entry)| is_of_report(entry) && of_it(entry));
        let expired = dump
            .accounts
            .iter()
            .any(|(_, entry)| entry.reason == AccountReason::Expired && of_it(entry));
        let arrived = match oracle.put_fate(put) {
            Fate::Done => Some(true),
            Fate::Refused => Some(false),
            Fate::Asked | Fate::Unknown if t.total() > 0 => Some(true),
            Fate::Asked | Fate::Unknown if t.maybe_got == 0 => Some(false),
            Fate::Asked | Fate::Unknown => None,
        };
        let delivered = match (arrived, t.maybe_got) {
            // One of them took it if it is nowhere.
            (Some(true), 1..) if t.got == 0 => Some(t.total() == 0),
            (Some(_), _) => Some(t.got > 0),
            (None, _) => None,
        };
        for (asked, feedback, expected) in [
            (
                put.reports.arrival,
                MessageDescriptor::FEEDBACK_COA,
                arrived,
            ),
            (
                put.reports.delivery,
                MessageDescriptor::FEEDBACK_COD,
                delivered,
            ),
            (
                put.reports.expiration,
                MessageDescriptor::FEEDBACK_EXPIRATION,
                Some(expired),
            ),
        ] {
            let Some(expected) = expected else { continue };
            let is = there(feedback);
            if is && !(asked && expected) || !is && asked && expected && !dropped {
                return violated(
                    ID,
                    format!(
                        "{} has report {feedback}: {is}, and asked for it: {asked}, and it is due: {expected}; {}",
                        put.name(),
                        t.places()
                    ),
                );
            }
        }
    }
    Ok(())
}
