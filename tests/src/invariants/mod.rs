//! The invariants, a file each. Cheap ones look at every step; the others at dumps of both nodes, in the middle of a run and at
//! its end.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use ferrymq_types::{AccountEntry, QueueName};

use crate::oracle::{Fate, Oracle, Uid};

pub(crate) mod inv_a1_invisible;
pub(crate) mod inv_a2_all_or_nothing;
pub(crate) mod inv_a3_get_with_put;
pub(crate) mod inv_a4_held;
pub(crate) mod inv_b1_backout_count;
pub(crate) mod inv_c1_no_loss;
pub(crate) mod inv_c2_in_doubt_at_most_once;
pub(crate) mod inv_c3_no_invention;
pub(crate) mod inv_c4_no_return;
pub(crate) mod inv_c5_one_place;
pub(crate) mod inv_c6_bytes_intact;
pub(crate) mod inv_c7_routes;
pub(crate) mod inv_c8_depth;
pub(crate) mod inv_d7_expiry;
pub(crate) mod inv_g1_groups;
pub(crate) mod inv_h1_channel_sequence;
pub(crate) mod inv_h2_delete_after_confirm;
pub(crate) mod inv_h3_batch_atomic;
pub(crate) mod inv_h4_no_disagreement;
pub(crate) mod inv_i1_token;
pub(crate) mod inv_l1_drains;
pub(crate) mod inv_n1_at_most_once;
pub(crate) mod inv_n2_loss_accounted;
pub(crate) mod inv_o1_order;
pub(crate) mod inv_q1_dynamic_queues;
pub(crate) mod inv_s1_store_opens;
pub(crate) mod inv_t1_reports;
pub(crate) mod inv_t2_triggers;

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one, such as `inv_c1_no_loss`.
    pub id: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

pub(crate) type Check = Result<(), Violation>;

pub(crate) fn violated<T>(id: &'static str, what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation {
        id,
        what: what.into(),
    })
}

/// A message in a dump.
#[derive(Debug, Clone)]
pub(crate) struct Dumped {
    pub(crate) node: usize,
    pub(crate) queue: QueueName,
    pub(crate) held: bool,
    pub(crate) uid: Uid,
}

/// What both nodes hold at one moment.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    pub(crate) items: Vec<Dumped>,
    /// How many reports there are of each message, by their feedback.
    pub(crate) reports: BTreeMap<(Uid, u32), usize>,
    /// How many there are on each queue of a node.
    pub(crate) reports_on: BTreeMap<(usize, QueueName), u64>,
    pub(crate) accounts: Vec<(usize, AccountEntry)>,
    /// By node and queue: depth by the engine's counter, uncommitted puts and gets among it, and items that the dump had.
    pub(crate) depths: BTreeMap<(usize, QueueName), (u64, u64, u64)>,
    /// Whether a restart came before it: non-persistent messages are gone.
    pub(crate) restarted: bool,
}

/// Where a message ended.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) got: usize,
    /// Gets whose end nobody knows.
    pub(crate) maybe_got: usize,
    pub(crate) dumped: Vec<String>,
    pub(crate) accounted: usize,
}

impl Tally {
    pub(crate) fn total(&self) -> usize {
        self.got + self.dumped.len() + self.accounted
    }

    pub(crate) fn places(&self) -> String {
        format!(
            "{} committed gets, {} that nobody knows, on queues {:?}, {} account entries",
            self.got, self.maybe_got, self.dumped, self.accounted
        )
    }
}

/// Whether an account entry tells of a report that no queue took, not of the message that it is about.
pub(crate) fn is_of_report(entry: &AccountEntry) -> bool {
    entry.from.as_str() == crate::sim::REPORT_QUEUE
}

/// Where every message ended.
pub(crate) fn tally(oracle: &Oracle, dump: &Dump) -> BTreeMap<Uid, Tally> {
    let mut all: BTreeMap<Uid, Tally> = oracle
        .puts
        .values()
        .map(|put| {
            let fates: Vec<Fate> = put.shown.iter().map(|s| oracle.get_fate(s)).collect();
            let count = |fate: Fate| fates.iter().filter(|f| **f == fate).count();
            let tally = Tally {
                got: count(Fate::Done),
                maybe_got: count(Fate::Unknown) + count(Fate::Asked),
                ..Tally::default()
            };
            (put.uid, tally)
        })
        .collect();
    for item in &dump.items {
        if let Some(tally) = all.get_mut(&item.uid) {
            let node = crate::sim::QMGRS[item.node];
            tally.dumped.push(format!("{}@{node}", item.queue));
        }
    }
    let mut gone: BTreeSet<(usize, u64)> = BTreeSet::new();
    let gone_entries = dump
        .accounts
        .iter()
        .filter(|(_, e)| e.to.is_none() && !is_of_report(e));
    for (node, entry) in gone_entries {
        let uid = oracle.by_message_id.get(&entry.message_id);
        if let Some(tally) = uid.and_then(|uid| all.get_mut(uid))
            && gone.insert((*node, entry.number))
        {
            tally.accounted += 1;
        }
    }
    all
}

/// Everything that holds at any time, of a dump.
pub(crate) fn at_any_time(oracle: &Oracle, dump: &Dump) -> Check {
    inv_c8_depth::at_any_time(dump)?;
    inv_c5_one_place::at_any_time(oracle, dump)?;
    inv_c4_no_return::at_any_time(oracle, dump)
}

/// Everything that holds when all is at rest.
pub(crate) fn at_rest(oracle: &Oracle, dump: &Dump) -> Check {
    at_any_time(oracle, dump)?;
    inv_l1_drains::at_rest(oracle)?;
    let tally = tally(oracle, dump);
    inv_c7_routes::at_rest(oracle, dump)?;
    inv_c2_in_doubt_at_most_once::at_rest(oracle, &tally)?;
    inv_n1_at_most_once::at_rest(oracle, &tally)?;
    inv_c1_no_loss::at_rest(oracle, &tally)?;
    inv_a3_get_with_put::at_rest(oracle, &tally)?;
    inv_a2_all_or_nothing::at_rest(oracle, &tally)?;
    inv_t1_reports::at_rest(oracle, dump, &tally)?;
    if dump.restarted {
        return Ok(());
    }
    inv_n2_loss_accounted::at_rest(oracle, &tally)
}
