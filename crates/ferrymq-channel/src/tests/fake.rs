//! Two small queue managers: what a channel can see of the real one, and failures on request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ferrymq_engine::{
    Failure, Put, PutDone, ReceiverState, Reply, Request, SenderState, Transmission,
};
use ferrymq_types::{
    BatchInDoubt, Message, MessageId, ObjectId, Persistence, ReasonCode, ReceiverRow, SenderRow,
    Sequence, Timestamp, UnitOfWorkId,
};

use super::{Kind, channel_name, object_name, qmgr, reason, transmission};
use crate::{Answer, AskId};

fn failed(reason: ReasonCode) -> Answer {
    Err(Failure {
        reason,
        object: None,
    })
}

fn put_done() -> Reply {
    Reply::Put(PutDone {
        message_id: MessageId::NONE,
        correlation_id: Default::default(),
        group_id: Default::default(),
        message_sequence_number: 1,
        warning: ReasonCode::NONE,
        resolved_queue: String::new(),
        resolved_queue_manager: String::new(),
    })
}

/// The queue manager at the sending end.
#[derive(Debug)]
pub(super) struct SenderQueueManager {
    pub(super) row: SenderRow,
    /// Messages that nobody holds, by sequence.
    pub(super) available: BTreeMap<Sequence, Arc<Message>>,
    held: BTreeMap<UnitOfWorkId, BTreeMap<Sequence, Arc<Message>>>,
    next_sequence: u64,
    waiting: Option<(AskId, Request, Timestamp)>,
    /// Bodies on the dead-letter queue, with their reasons.
    pub(super) dead: Vec<(String, ReasonCode)>,
    pub(super) discarded: Vec<(String, ReasonCode)>,
    /// Puts: reports.
    pub(super) puts: Vec<Put>,
    pub(super) stopped: bool,
    /// Failures by the first word of a request's line, taken in order.
    pub(super) failures: BTreeMap<&'static str, VecDeque<ReasonCode>>,
    fast: BTreeMap<Sequence, Arc<Message>>,
}

impl SenderQueueManager {
    pub(super) fn new() -> Self {
        Self {
            row: SenderRow {
                channel: channel_name(),
                transmission_queue: ObjectId::new(9),
                generation: 1,
                last_confirmed: 0,
                last_batch: UnitOfWorkId::NONE,
                in_doubt: Vec::new(),
                partner: None,
                start: 0,
                reset_to: None,
            },
            available: BTreeMap::new(),
            held: BTreeMap::new(),
            next_sequence: 1,
            waiting: None,
            dead: Vec::new(),
            discarded: Vec::new(),
            puts: Vec::new(),
            stopped: false,
            failures: BTreeMap::new(),
            fast: BTreeMap::new(),
        }
    }

    pub(super) fn put(&mut self, body: &str, to: &str, kind: Kind) {
        self.put_message(transmission(body, to, kind));
    }

    pub(super) fn put_message(&mut self, message: Arc<Message>) {
        let sequence = Sequence::new(self.next_sequence);
        self.next_sequence += 1;
        self.available.insert(sequence, message);
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.available
            .values()
            .chain(self.held.values().flat_map(BTreeMap::values))
            .map(|m| String::from_utf8_lossy(&m.body).into_owned())
            .collect()
    }

    fn state(&self) -> Reply {
        Reply::Sender(SenderState {
            row: self.row.clone(),
            last_sent: self
                .row
                .in_doubt
                .last()
                .map_or(self.row.last_confirmed, |b| b.last_number),
        })
    }

    /// The answer to a waiting get, if it has one now.
    pub(super) fn waiting_answer(&mut self, now: Timestamp) -> Option<(AskId, Answer)> {
        let (ask, request, until) = self.waiting.take()?;
        match self.get(&request) {
            Some(reply) => Some((ask, Ok(reply))),
            None if now >= until => Some((ask, failed(ReasonCode::NO_MSG_AVAILABLE))),
            None => {
                self.waiting = Some((ask, request, until));
                None
            }
        }
    }

    pub(super) fn wait_deadline(&self) -> Option<Timestamp> {
        self.waiting.as_ref().map(|(_, _, until)| *until)
    }

    pub(super) fn cancel(&mut self, ask: AskId) {
        self.waiting.take_if(|(waiting, ..)| *waiting == ask);
    }

    /// A crash: what is not durable is gone, what is in doubt stays so.
    pub(super) fn crash(&mut self) {
        self.waiting = None;
        self.release_unprepared();
    }

    fn release_unprepared(&mut self) {
        let prepared: Vec<UnitOfWorkId> = self.row.in_doubt.iter().map(|b| b.id).collect();
        let open: Vec<UnitOfWorkId> = self
            .held
            .keys()
            .filter(|id| !prepared.contains(id))
            .copied()
            .collect();
        for id in open {
            self.available.append(&mut self.held.remove(&id).unwrap());
        }
    }

    fn get(&mut self, request: &Request) -> Option<Reply> {
        let Request::SenderGet {
            batch,
            messages_max,
            fast,
            ..
        } = request
        else {
            unreachable!()
        };
        let mut list = Vec::new();
        while list.len() < *messages_max as usize
            && let Some((sequence, message)) = self.available.pop_first()
        {
            let fast = *fast && message.descriptor.persistence == Persistence::NonPersistent;
            if fast {
                self.fast.insert(sequence, Arc::clone(&message));
            } else {
                let held = self.held.entry(*batch).or_default();
                held.insert(sequence, Arc::clone(&message));
            }
            list.push(Transmission {
                sequence,
                message,
                fast,
            });
        }
        (!list.is_empty()).then_some(Reply::Transmissions(list))
    }

    pub(super) fn answer(
        &mut self,
        now: Timestamp,
        ask: AskId,
        request: Request,
    ) -> Option<Answer> {
        let line = super::effects::request(&request);
        let word = line.split(' ').next().unwrap();
        if let Some(reason) = self.failures.get_mut(word).and_then(VecDeque::pop_front) {
            return Some(failed(reason));
        }
        Some(match request {
            Request::OpenSender { .. } => {
                self.release_unprepared();
                Ok(self.state())
            }
            Request::SenderGet { wait_until, .. } => match (self.get(&request), wait_until) {
                (Some(reply), _) => Ok(reply),
                (None, Some(until)) if until > now => {
                    self.waiting = Some((ask, request, until));
                    return None;
                }
                (None, _) => failed(ReasonCode::NO_MSG_AVAILABLE),
            },
            Request::PrepareBatch {
                batch,
                first_number,
                last_number,
                ..
            } => {
                let held = self.held.get(&batch).map_or(0, BTreeMap::len) as u64;
                assert!(
                    last_number - first_number + 1 >= held,
                    "every message has a number"
                );
                self.row.in_doubt.push(BatchInDoubt {
                    id: batch,
                    first_number,
                    last_number,
                    messages: Vec::new(),
                });
                Ok(Reply::Done)
            }
            Request::SettleSender {
                last_committed,
                last_batch,
                partner,
                release,
                ..
            } => self.settle(last_committed, last_batch, partner, release),
            Request::SenderDeadLetter {
                sequence, reason, ..
            } => match self.take(sequence) {
                Some(body) => {
                    self.dead.push((body, reason));
                    Ok(Reply::Done)
                }
                None => failed(ReasonCode::NO_MSG_AVAILABLE),
            },
            Request::SenderDiscard {
                sequence, reason, ..
            } => match self.take(sequence) {
                Some(body) => {
                    self.discarded.push((body, reason));
                    Ok(Reply::Done)
                }
                None => failed(ReasonCode::NO_MSG_AVAILABLE),
            },
            Request::CloseSender { .. } => {
                self.release_unprepared();
                Ok(Reply::Done)
            }
            Request::SetChannelStopped { stopped, .. } => {
                self.stopped = stopped;
                Ok(Reply::Done)
            }
            Request::Put(put) => {
                self.puts.push(*put);
                Ok(put_done())
            }
            other => panic!("a sender asks for {other:?}"),
        })
    }

    fn take(&mut self, sequence: Sequence) -> Option<String> {
        let message = self.fast.remove(&sequence).or_else(|| {
            self.held
                .values_mut()
                .find_map(|batch| batch.remove(&sequence))
        })?;
        Some(String::from_utf8_lossy(&message.body).into_owned())
    }

    fn settle(
        &mut self,
        last_committed: u64,
        last_batch: UnitOfWorkId,
        partner: (
            ferrymq_types::QueueManagerName,
            ferrymq_types::QueueManagerId,
        ),
        release: bool,
    ) -> Answer {
        let settles = last_committed == self.row.last_confirmed
            || self
                .row
                .in_doubt
                .iter()
                .any(|b| b.last_number == last_committed && b.id == last_batch);
        if !settles {
            return failed(ReasonCode::CHANNEL_SEQUENCE_ERROR);
        }
        let (done, left): (Vec<_>, Vec<_>) = core::mem::take(&mut self.row.in_doubt)
            .into_iter()
            .partition(|b| b.last_number <= last_committed);
        for batch in done {
            self.held.remove(&batch.id);
        }
        self.row.in_doubt = left;
        self.row.last_confirmed = last_committed;
        self.row.last_batch = last_batch;
        self.row.partner = Some(partner);
        if release {
            self.row.in_doubt.clear();
            self.release_unprepared();
        }
        Ok(self.state())
    }
}

/// The queue manager at the receiving end.
#[derive(Debug)]
pub(super) struct ReceiverQueueManager {
    pub(super) row: ReceiverRow,
    open: BTreeMap<UnitOfWorkId, Vec<(String, String)>>,
    finished: Vec<UnitOfWorkId>,
    /// Queue and body of what is delivered, in order.
    pub(super) delivered: Vec<(String, String)>,
    /// Every put that was asked for, in order.
    pub(super) puts: Vec<Put>,
    pub(super) accounts: Vec<String>,
    /// First and last numbers of the batches that were committed (invariant H1).
    pub(super) commits: Vec<(u64, u64)>,
    /// What puts on a queue fail with: for ever, or as often as the list is long.
    pub(super) full: BTreeMap<String, ReasonCode>,
    pub(super) failures: BTreeMap<&'static str, VecDeque<ReasonCode>>,
}

impl ReceiverQueueManager {
    pub(super) fn new() -> Self {
        Self {
            row: ReceiverRow {
                channel: channel_name(),
                sender: Default::default(),
                sender_name: qmgr("QM1"),
                generation: 1,
                last_committed: 0,
                last_batch: UnitOfWorkId::NONE,
                reset_to: None,
            },
            open: BTreeMap::new(),
            finished: Vec::new(),
            delivered: Vec::new(),
            puts: Vec::new(),
            accounts: Vec::new(),
            commits: Vec::new(),
            full: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// The connection of the conversation is gone.
    pub(super) fn disconnect(&mut self) {
        self.finished.extend(self.open.keys());
        self.open.clear();
    }

    pub(super) fn bodies(&self, queue: &str) -> Vec<&str> {
        self.delivered
            .iter()
            .filter(|(q, _)| q == queue)
            .map(|(_, body)| body.as_str())
            .collect()
    }

    pub(super) fn answer(&mut self, request: Request) -> Answer {
        let line = super::effects::request(&request);
        let word = line.split(' ').next().unwrap();
        if let Some(reason) = self.failures.get_mut(word).and_then(VecDeque::pop_front) {
            return failed(reason);
        }
        match request {
            Request::OpenReceiver { generation, .. } => {
                if generation < self.row.generation {
                    return failed(ReasonCode::CHANNEL_SEQUENCE_ERROR);
                }
                if generation > self.row.generation {
                    self.row.generation = generation;
                    self.row.last_committed = 0;
                    self.row.last_batch = UnitOfWorkId::NONE;
                }
                self.disconnect();
                Ok(Reply::Receiver(ReceiverState {
                    row: self.row.clone(),
                }))
            }
            Request::Begin { id } => {
                if self.finished.contains(&id) || self.open.insert(id, Vec::new()).is_some() {
                    return failed(reason(2255));
                }
                Ok(Reply::Done)
            }
            Request::BackOut { id } => {
                self.open.remove(&id);
                self.finished.push(id);
                Ok(Reply::Done)
            }
            Request::Put(put) => self.put(*put),
            Request::ReceiverDiscard { queue, reason, .. } => {
                self.accounts.push(format!("{queue} {reason:?}"));
                Ok(Reply::Done)
            }
            Request::CommitReceived {
                batch,
                first_number,
                last_number,
                ..
            } => {
                let messages = self.open.remove(&batch);
                self.finished.push(batch);
                if first_number != self.row.last_committed + 1 {
                    return failed(ReasonCode::CHANNEL_SEQUENCE_ERROR);
                }
                self.delivered.extend(messages.expect("the batch is open"));
                self.row.last_committed = last_number;
                self.row.last_batch = batch;
                self.commits.push((first_number, last_number));
                Ok(Reply::Done)
            }
            other => panic!("a receiver asks for {other:?}"),
        }
    }

    fn put(&mut self, put: Put) -> Answer {
        let name = object_name(&put).queue.to_string();
        if let Some(reason) = self.full.get(&name) {
            return failed(*reason);
        }
        let entry = (name, String::from_utf8_lossy(&put.body).into_owned());
        let to = match put.syncpoint {
            None => &mut self.delivered,
            Some(id) => match self.open.get_mut(&id) {
                Some(unit) => unit,
                None => return failed(reason(2255)),
            },
        };
        to.push(entry);
        self.puts.push(put);
        Ok(put_done())
    }
}
