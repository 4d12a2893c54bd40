//! Shows the oracle what can be seen at the seams: write sets, answers as they are made, answers as they leave.

use std::collections::BTreeSet;

use ferrymq_engine::Reply;
use ferrymq_types::{
    Change, Message, ObjectId, QueueName, ReasonCode, Sequence, UnitOfWorkOutcome, WriteSet,
};

use crate::invariants::{
    Check, Violation, inv_h2_delete_after_confirm, inv_h3_batch_atomic, violated,
};
use crate::oracle::{Sight, Uid, short};
use crate::sim::definitions::THRESHOLD;
use crate::sim::node::{Answer, Asker, What};
use crate::sim::reports::is_report;
use crate::sim::world::World;
use crate::sim::{QMGRS, XMITQ};

impl World {
    /// A write set was made.
    pub(crate) fn written(&mut self, node: usize, set: &WriteSet) -> Check {
        for change in &set.changes {
            if let Change::SetMessage {
                queue,
                sequence,
                row,
            } = change
                && !is_report(&row.descriptor)
                && let Some(uid) = Uid::read(&row.descriptor.correlation_id)
            {
                self.nodes[node].places.insert((*queue, *sequence), uid);
            }
        }
        if node == 0 {
            self.settled(set)
        } else {
            self.received(set)
        }
    }

    fn accounted(&self, set: &WriteSet) -> BTreeSet<Uid> {
        let entries = set.changes.iter().filter_map(|c| match c {
            Change::SetAccount(entry) => self.oracle.by_message_id.get(&entry.message_id).copied(),
            _ => None,
        });
        entries.collect()
    }

    /// What leaves the transmission queue in one write set with the sender's record was settled.
    fn settled(&mut self, set: &WriteSet) -> Check {
        let is_settlement = set
            .changes
            .iter()
            .any(|c| matches!(c, Change::SetSender(_)));
        if !is_settlement {
            return Ok(());
        }
        let accounted = self.accounted(set);
        let name = QueueName::new(XMITQ).expect("a constant that is a name");
        let transmission_queue = self.nodes[0]
            .running
            .as_ref()
            .and_then(|r| r.engine.queue_id(&name));
        let settled: Vec<Uid> = set
            .changes
            .iter()
            .filter_map(|c| match c {
                Change::DeleteMessage { queue, sequence } if Some(*queue) == transmission_queue => {
                    self.nodes[0].places.get(&(*queue, *sequence)).copied()
                }
                _ => None,
            })
            .filter(|uid| !accounted.contains(uid))
            .collect();
        inv_h2_delete_after_confirm::settled(
            &self.oracle,
            &settled,
            &self.nodes[1].received_durable,
        )
    }

    /// The first write set of a commit holds the batch.
    fn received(&mut self, set: &WriteSet) -> Check {
        let Some(running) = self.nodes[1].running.as_mut() else {
            return Ok(());
        };
        let first = running.committing_batch.take();
        let row = set.changes.iter().find_map(|c| match c {
            Change::SetReceiver(row) => Some(row),
            _ => None,
        });
        if let Some(row) = row {
            self.nodes[1].numbers.written(row, first)?;
        }
        if first.is_none() {
            return Ok(());
        }
        self.statistics.batches += 1;
        let mut written = self.accounted(set);
        written.extend(set.changes.iter().filter_map(|c| match c {
            Change::SetMessage { row, .. } => Uid::read(&row.descriptor.correlation_id),
            _ => None,
        }));
        let all = written.iter().copied().collect();
        self.nodes[1].received.push((set.position, all));
        let Some(row) = row else { return Ok(()) };
        let sent = self.sent.persistent(row.last_batch);
        let sent: BTreeSet<Uid> = sent.collect();
        // A non-persistent message that was discarded leaves an entry all the same.
        written.retain(|uid| self.oracle.put(*uid).is_persistent());
        inv_h3_batch_atomic::committed(&short(row.last_batch), &sent, &written)
    }

    /// A message is locked for somebody who waits for its body: its turn has come.
    pub(crate) fn fetching(&mut self, node: usize, queue: ObjectId, sequence: Sequence) -> Check {
        let Some(uid) = self.nodes[node].places.get(&(queue, sequence)).copied() else {
            return Ok(());
        };
        let put = self.oracle.put(uid);
        // One that has expired may be read for its report.
        if put.expires_at.is_some_and(|at| at <= self.now) {
            return Ok(());
        }
        let (target, name) = put.target;
        let name = QueueName::new(name).expect("a constant that is a name");
        let id = self.nodes[node]
            .running
            .as_ref()
            .and_then(|r| r.engine.queue_id(&name));
        if target == node && id == Some(queue) {
            self.oracle.delivered(uid)?;
        }
        Ok(())
    }

    /// The engine answered; nobody has heard of it.
    pub(crate) fn answered(
        &mut self,
        node: usize,
        asker: &Asker,
        answer: &Answer,
    ) -> Result<Option<(Uid, usize)>, Violation> {
        if let Err(failure) = answer
            && failure.reason == ReasonCode::UNEXPECTED_ERROR
        {
            return violated(
                "inv_l1_drains",
                format!("{} answers 2195: {failure:?}", QMGRS[node]),
            );
        }
        let Asker::Client { client, life, what } = asker else {
            return Ok(None);
        };
        if self.has_groups(*client, *life) {
            self.group_answered(*client, *what, answer)?;
        }
        self.dynamic_answered(*what, answer)?;
        match (*what, answer) {
            (What::Put(uid), Ok(Reply::Put(done))) => {
                self.oracle.put_taken(uid, done.message_id, self.now)?;
                if !done.group_id.is_none() {
                    let member = (done.group_id, done.message_sequence_number);
                    self.oracle.put_in_group(uid, member);
                }
            }
            (What::Get { node, queue, unit }, Ok(Reply::Got(got))) => {
                self.statistics.gets += 1;
                let sight = self.sight(node, queue, &got.message, got.backout_count);
                let threshold = (queue == "POISON.Q").then_some(THRESHOLD);
                return self.oracle.got(&sight, unit, threshold).map(Some);
            }
            (What::Browse { node, queue }, Ok(Reply::Browsed(browsed))) => {
                let sight = self.sight(node, queue, &browsed.message, browsed.backout_count);
                self.oracle.seen(&sight)?;
            }
            (What::Commit(unit), Ok(_)) => self.oracle.unit_committing(unit),
            (What::BackOut(unit), Ok(_)) => self.oracle.unit_backed_out(unit),
            (_, Ok(_) | Err(_)) => {}
        }
        Ok(None)
    }

    pub(crate) fn sight<'a>(
        &self,
        node: usize,
        queue: &'a str,
        message: &'a Message,
        backout_count: u32,
    ) -> Sight<'a> {
        Sight {
            node,
            queue,
            message,
            backout_count,
            now: self.now,
        }
    }

    /// An answer leaves the node.
    pub(crate) fn left(
        &mut self,
        asker: &Asker,
        answer: &Answer,
        got: Option<(Uid, usize)>,
    ) -> Check {
        let Asker::Client { what, .. } = asker else {
            return Ok(());
        };
        if let Some((uid, which)) = got {
            self.oracle.get_answered(uid, which);
        }
        self.dynamic_left(*what, answer);
        match (*what, answer) {
            (What::Put(uid), answer) => self.oracle.put_answered(uid, answer.is_ok()),
            (What::Commit(unit), answer) => {
                self.statistics.commits += u64::from(answer.is_ok());
                self.oracle.unit_known(unit, answer.is_ok());
            }
            (What::BackOut(unit), Ok(_)) => {
                if let Some(unit) = self.oracle.units.get_mut(&unit) {
                    unit.backout_answered = !unit.committing;
                }
            }
            (What::Outcome(unit), Ok(Reply::UnitOfWork(row))) => {
                let committed = row
                    .as_ref()
                    .is_some_and(|r| r.outcome == UnitOfWorkOutcome::Committed);
                self.oracle.unit_known(unit, committed);
            }
            (_, Ok(_) | Err(_)) => {}
        }
        Ok(())
    }
}
