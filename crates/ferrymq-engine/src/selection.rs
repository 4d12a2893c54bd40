//! Selecting: a get or a browse with a selector walks its queue in the order of delivery, past what does not match.
//!
//! A walk judges rows, never bodies. It takes a bounded number of messages a step and goes on at the next tick; rows that are
//! not in memory are read in batches, and nothing is locked meanwhile. What becomes available behind a walk that is under way
//! is noted and judged before the walk goes on, so that a get has the first message that matches. A get that waits has walked
//! to the end: from then on it judges arrivals alone. A consumer asks again and again through its handle: its walk goes on.
//!
//! Source: IBM MQ, "Selection behavior".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferrymq_selector::{MessageFields, Selector};
use ferrymq_types::{
    MessageDescriptor, MessageRow, ObjectId, Position, QueueName, ReasonCode, Sequence, Timestamp,
};

use crate::engine::{Step, Woken};
use crate::get::PendingGet;
use crate::limits::{
    SELECTION_BEHIND_MAX, SELECTION_REPORTED, SELECTION_ROWS_MAX, SELECTION_STEP_MAX,
    SELECTIONS_MAX,
};
use crate::pending::Pending;
use crate::queue::{Entry, Key, Wanted};
use crate::{
    ConnectionId, Effect, Engine, Event, Failure, FetchId, Get, HandleId, RequestId, Source,
};

/// Where a get or a browse with a selector is.
#[derive(Debug)]
pub(crate) struct Walk {
    selector: Arc<Selector>,
    /// All up to here is judged.
    after: Option<Key>,
    /// What became available up to there meanwhile.
    behind: BTreeSet<Key>,
    /// Judgements on rows that are not in memory.
    verdicts: BTreeMap<Sequence, bool>,
    /// Rows that are being read.
    reading: Option<(FetchId, Vec<Sequence>)>,
    /// Messages that were judged, and whether operators were told that they are many.
    examined: u64,
    reported: bool,
}

/// The walk of a consumer between two requests: it goes on where it was, so that a deep queue is walked once, not once for each
/// batch of messages.
#[derive(Debug)]
pub(crate) struct Parked {
    walk: Box<Walk>,
    /// What it looks for: a request for something else begins anew.
    wanted: Wanted,
}

/// What a walk came to in this step.
pub(crate) enum Walked {
    /// The next message that matches; or one that has expired.
    Found(Key),
    /// There is none.
    End,
    /// Rows of these are needed.
    Rows(Vec<Sequence>),
    /// It has gone far enough for this step.
    Pause,
}

impl Walk {
    pub(crate) fn new(selector: Arc<Selector>, after: Option<Key>) -> Self {
        Self {
            selector,
            after,
            behind: BTreeSet::new(),
            verdicts: BTreeMap::new(),
            reading: None,
            examined: 0,
            reported: false,
        }
    }

    pub(crate) const fn examined(&self) -> u64 {
        self.examined
    }

    fn judge(&mut self, descriptor: &MessageDescriptor, entry: &Entry, now: Timestamp) -> bool {
        self.examined = self.examined.saturating_add(1);
        self.selector.matches(&MessageFields {
            descriptor,
            backout_count: entry.backout_count,
            now,
        })
    }

    /// Whether a message that was read matches. One that does not is passed over from now on.
    pub(crate) fn confirm(
        &mut self,
        sequence: Sequence,
        descriptor: &MessageDescriptor,
        entry: &Entry,
        now: Timestamp,
    ) -> bool {
        let matches = self.selector.matches(&MessageFields {
            descriptor,
            backout_count: entry.backout_count,
            now,
        });
        if matches {
            self.verdicts.remove(&sequence);
        } else {
            self.verdicts.insert(sequence, false);
        }
        matches
    }

    pub(crate) fn pass(&mut self, key: Key) {
        if !self.behind.remove(&key) {
            self.after = Some(key);
        }
        self.verdicts.remove(&key.sequence);
    }

    /// A message became available. One that completes a group makes others available with it.
    pub(crate) fn note(&mut self, key: Key, wanted: &Wanted) {
        // What was judged before may have another backout count now.
        self.verdicts.remove(&key.sequence);
        if wanted.complete {
            self.restart();
        } else if self.after.is_some_and(|after| key <= after) {
            self.behind.insert(key);
            if self.behind.len() > SELECTION_BEHIND_MAX {
                self.restart();
            }
        }
    }

    /// For another request: what is counted is counted anew.
    const fn begin_request(&mut self) {
        self.examined = 0;
        self.reported = false;
    }

    /// From the first message again.
    fn restart(&mut self) {
        self.after = None;
        self.behind.clear();
    }
}

impl Engine {
    /// Goes on with a walk.
    pub(crate) fn walk_on(
        &self,
        now: Timestamp,
        queue: ObjectId,
        wanted: &Wanted,
        rejected: &BTreeSet<Sequence>,
        walk: &mut Walk,
    ) -> Walked {
        let Some(q) = self.queues.get(&queue) else {
            return Walked::End;
        };
        for _ in 0..SELECTION_STEP_MAX {
            let noted = walk.behind.first().copied();
            let Some(key) = noted.or_else(|| q.find(wanted, walk.after, rejected)) else {
                walk.after = Some(Key::LAST);
                return Walked::End;
            };
            let entry = q.available(key).filter(|entry| {
                wanted.may_be(entry)
                    && q.is_in_order(wanted, entry)
                    && !rejected.contains(&key.sequence)
            });
            let Some(entry) = entry else {
                walk.pass(key);
                continue;
            };
            if entry.is_expired(now) && !q.keeps_expired {
                return Walked::Found(key);
            }
            let verdict = match walk.verdicts.get(&key.sequence) {
                Some(verdict) => *verdict,
                None => match self.memory.get(key.sequence) {
                    Some(message) => walk.judge(&message.descriptor, &entry, now),
                    None => return Walked::Rows(self.rows_to_read(queue, wanted, rejected, walk)),
                },
            };
            if verdict {
                return Walked::Found(key);
            }
            walk.pass(key);
        }
        Walked::Pause
    }

    /// The next messages of a walk that are not in memory.
    fn rows_to_read(
        &self,
        queue: ObjectId,
        wanted: &Wanted,
        rejected: &BTreeSet<Sequence>,
        walk: &Walk,
    ) -> Vec<Sequence> {
        let mut rows = Vec::new();
        let Some(q) = self.queues.get(&queue) else {
            return rows;
        };
        let is_read = |key: &Key| self.memory.get(key.sequence).is_none();
        let behind = walk.behind.iter().copied().filter(is_read);
        rows.extend(behind.take(SELECTION_ROWS_MAX).map(|key| key.sequence));
        let mut after = walk.after;
        for _ in 0..SELECTION_STEP_MAX {
            if rows.len() >= SELECTION_ROWS_MAX {
                break;
            }
            after = q.find(wanted, after, rejected);
            match after {
                Some(key) if is_read(&key) => rows.push(key.sequence),
                Some(_) => {}
                None => break,
            }
        }
        rows
    }

    /// The walk of a get: where the one before of its consumer was, or at the first message.
    pub(crate) fn walk_of_get(
        &mut self,
        (queue, connection): (ObjectId, ConnectionId),
        get: &Get,
        wanted: &Wanted,
        selector: Arc<Selector>,
    ) -> Box<Walk> {
        if let (Source::Handle(handle), Some(_)) = (&get.source, get.many)
            && let Some(mut parked) = self.parked.remove(&(queue, connection, *handle))
            && parked.wanted == *wanted
        {
            parked.walk.begin_request();
            return parked.walk;
        }
        Box::new(Walk::new(selector, None))
    }

    /// A consumer has been given messages: its walk stays where it is until it asks for more.
    pub(crate) fn park_walk(&mut self, p: &mut PendingGet) {
        if let (Source::Handle(handle), Some(walk)) = (&p.get.source, p.walk.take()) {
            let parked = Parked {
                walk,
                wanted: p.wanted,
            };
            self.parked.insert((p.queue, p.connection, *handle), parked);
        }
    }

    /// The walks of consumers of a queue that have not asked again.
    fn parked_walks(&mut self, queue: ObjectId) -> impl Iterator<Item = &mut Parked> {
        let first = (queue, ConnectionId(0), HandleId(0));
        let last = (queue, ConnectionId(u64::MAX), HandleId(u64::MAX));
        self.parked
            .range_mut(first..=last)
            .map(|(_, parked)| parked)
    }

    /// Whether one more walk may be under way: else 9004.
    pub(crate) fn check_walks(&self, name: &QueueName) -> Result<(), Failure> {
        if self.walks.len() >= SELECTIONS_MAX {
            return Err(Failure::of(ReasonCode::LIMIT_EXCEEDED, name));
        }
        Ok(())
    }

    /// A walk rests until rows are read, or until the next tick.
    pub(crate) fn rest_walk(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut pending: Pending,
        rows: Option<Vec<Sequence>>,
    ) {
        let queue = pending.queue();
        match rows {
            Some(sequences) => {
                let fetch = self.next_fetch();
                if let Some(walk) = pending.walk() {
                    walk.verdicts.clear();
                    walk.reading = Some((fetch, sequences.clone()));
                }
                self.row_reads.insert(fetch, id);
                step.effects.push(Effect::ReadRows {
                    fetch,
                    queue,
                    sequences,
                });
            }
            None => {
                self.paused.insert(id);
            }
        }
        self.walks.insert((queue, id));
        self.wait(id, pending);
    }

    /// A request is taken up again: its walk rests no more.
    pub(crate) fn wake_walk(&mut self, id: RequestId, pending: &mut Pending) {
        let queue = pending.queue();
        let Some(walk) = pending.walk() else {
            return;
        };
        if let Some((fetch, _)) = walk.reading.take() {
            self.row_reads.remove(&fetch);
        }
        self.paused.remove(&id);
        self.walks.remove(&(queue, id));
    }

    /// Rows were read: what is missing is looked at by itself, where damage is reported.
    pub(crate) fn rows_read(
        &mut self,
        step: &mut Step<'_>,
        fetch: FetchId,
        rows: Vec<(Sequence, Box<MessageRow>)>,
    ) {
        // Nobody waits for them any more if it is not known.
        let Some(id) = self.row_reads.remove(&fetch) else {
            return;
        };
        let asked = match self.pending.get_mut(&id).and_then(Pending::walk) {
            Some(walk) => walk.reading.take().map_or(Vec::new(), |(_, asked)| asked),
            None => return,
        };
        let Some(mut pending) = self.resume(id) else {
            return;
        };
        let queue = pending.queue();
        if let Some(walk) = pending.walk() {
            walk.verdicts.extend(asked.into_iter().map(|s| (s, true)));
            for (sequence, row) in rows {
                if let Some(entry) = self.entry(queue, sequence)
                    && let Some(verdict) = walk.verdicts.get(&sequence)
                    && *verdict
                {
                    let verdict = walk.judge(&row.descriptor, &entry, step.now);
                    walk.verdicts.insert(sequence, verdict);
                }
            }
        }
        self.go_on(step, id, pending);
    }

    /// Goes on with the walks that paused.
    pub(crate) fn go_on_walking(&mut self, step: &mut Step<'_>) {
        for id in std::mem::take(&mut self.paused) {
            if let Some(pending) = self.resume(id) {
                self.go_on(step, id, pending);
            }
        }
    }

    fn go_on(&mut self, step: &mut Step<'_>, id: RequestId, pending: Pending) {
        match pending {
            Pending::Get(p) => self.run_get(step, id, *p),
            Pending::Browse(p) => self.run_browse(step, id, p),
            // These do not walk.
            other @ (Pending::SenderGet(_) | Pending::DeadLetter(_)) => self.wait(id, other),
        }
    }

    /// A message became available: walks that have passed its place come back to it. A browse never goes back.
    pub(crate) fn note_walks(&mut self, woken: Woken) {
        let ids = (woken.queue, RequestId(0))..=(woken.queue, RequestId(u64::MAX));
        for (_, id) in self.walks.range(ids) {
            if let Some(Pending::Get(p)) = self.pending.get_mut(id)
                && let Some(walk) = &mut p.walk
            {
                walk.note(woken.key, &p.wanted);
            }
        }
        for parked in self.parked_walks(woken.queue) {
            parked.walk.note(woken.key, &parked.wanted);
        }
    }

    /// The order of a queue changed: its walks begin anew.
    pub(crate) fn restart_walks(&mut self, queue: ObjectId) {
        for pending in self.pending.values_mut() {
            if let Pending::Get(p) = pending
                && p.queue == queue
                && p.waiting.is_none()
                && let Some(walk) = &mut p.walk
            {
                walk.restart();
            }
        }
        for parked in self.parked_walks(queue) {
            parked.walk.restart();
        }
    }

    /// A walk came to its end: operators hear of a long one, once.
    pub(crate) fn report_walk(&self, step: &mut Step<'_>, queue: ObjectId, walk: &mut Walk) {
        if walk.examined >= SELECTION_REPORTED
            && !walk.reported
            && let Some(q) = self.queues.get(&queue)
        {
            walk.reported = true;
            let (queue, examined) = (q.name.clone(), walk.examined);
            step.report(Position::ZERO, Event::LongSelection { queue, examined });
        }
    }
}
