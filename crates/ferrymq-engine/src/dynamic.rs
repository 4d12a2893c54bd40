//! Dynamic queues: made by the open of a model queue, and known to this queue manager alone. No command made them, so that
//! they need no quorum; their definitions are here and, of permanent ones, in the rows of the queues.
//!
//! A definition that comes later under the name of a dynamic queue takes the name: the dynamic queue is kept and not served
//! until that definition is gone, and handles that are open on it fail with 2052.
//!
//! Source: IBM MQ, "Dynamic and model queues", "MQCLOSE".

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::sync::Arc;

use ferrymq_objects::{Attributes, DefinitionType, LocalQueue, ModelQueue, Queue, QueueManager};
use ferrymq_types::{
    AccountReason, AttributeValue, Change, ObjectId, Position, QueueName, ReasonCode, Sequence,
    Timestamp,
};

use crate::engine::{Answer, Step};
use crate::limits::CHANGES_PER_WRITE_SET;
use crate::queue::State;
use crate::trigger::Cause;
use crate::{CloseOption, ConnectionId, Engine, Failure, HandleId, Reply};

/// Ids of dynamic queues have this bit; those of definitions, which are counted from 1, never do.
const ID_BIT: u64 = 1 << 63;

/// Most characters in front of the `*` of a name, so that there is room for the characters that are generated.
///
/// Source: IBM MQ, "DynamicQName".
const PREFIX_LENGTH_MAX: usize = 32;

/// The name of a dynamic queue for which no other was asked.
///
/// Source: IBM MQ, `MQOD_DEFAULT`.
const DEFAULT_NAME: &str = "AMQ.*";

/// A dynamic queue.
#[derive(Debug)]
pub(crate) struct Dynamic {
    definition: LocalQueue,
    /// The handle that made it, with which a temporary one ends.
    creator: Option<(ConnectionId, HandleId)>,
}

impl Engine {
    /// The definitions of commands, and those of dynamic queues whose names they leave.
    pub(crate) fn all_definitions(&self, defined: &Arc<QueueManager>) -> Arc<QueueManager> {
        let mut all = Arc::clone(defined);
        for dynamic in self.dynamic.values() {
            let name = &dynamic.definition.base.name;
            if !defined.queues.contains_key(name) {
                let queue = Queue::Local(dynamic.definition.clone());
                Arc::make_mut(&mut all).queues.insert(name.clone(), queue);
            }
        }
        all
    }

    /// The model queue that an open is of, if it is.
    pub(crate) fn model(&self, name: &crate::ObjectName) -> Option<ModelQueue> {
        let me = &self.qmgr.attributes.name;
        if name.queue_manager.as_ref().is_some_and(|qmgr| qmgr != me) {
            return None;
        }
        match self.qmgr.queues.get(&name.queue) {
            Some(Queue::Model(model)) => Some(model.clone()),
            Some(Queue::Local(_) | Queue::Remote(_) | Queue::Alias(_)) | None => None,
        }
    }

    /// Makes a queue from a model for a handle, and says what it is called. 2011 for what cannot be a name, 2100 for one that
    /// is taken, 2102 where there are too many, 2192 where a permanent one cannot be stored.
    pub(crate) fn create_dynamic(
        &mut self,
        step: &mut Step<'_>,
        model: &ModelQueue,
        asked: &str,
        creator: (ConnectionId, HandleId),
    ) -> Result<QueueName, Failure> {
        let is_temporary = match model.template.definition_type {
            DefinitionType::TemporaryDynamic => true,
            DefinitionType::PermanentDynamic | DefinitionType::Predefined => false,
        };
        if self.dynamic.len() >= self.limits.dynamic_queues_max {
            return Err(ReasonCode::RESOURCE_PROBLEM.into());
        }
        if !is_temporary && !self.puts_allowed {
            return Err(ReasonCode::STORAGE_MEDIUM_FULL.into());
        }
        let (name, number) = self.dynamic_name(asked)?;
        let id = ObjectId::new(ID_BIT | number.get());
        let definition = model.queue(id, name.clone(), step.now);
        let queue = Queue::Local(definition.clone());
        Arc::make_mut(&mut self.qmgr)
            .queues
            .insert(name.clone(), queue);
        if self.adopt(&definition, step.now) {
            self.check_trigger(id, Cause::Changed);
        }
        self.note_initiation(&definition);
        let creator = is_temporary.then_some(creator);
        self.dynamic.insert(
            id,
            Dynamic {
                definition,
                creator,
            },
        );
        let position = if !is_temporary {
            self.write_queue_row(step, id)
        } else if self.counters.is_beyond_reserved() {
            // Its number is never used again, also after a crash: a late reply finds nobody else's queue.
            self.write(step, Vec::new())
        } else {
            Position::ZERO
        };
        if let Some(q) = self.queue(id) {
            q.changed(position);
        }
        Ok(name)
    }

    /// The name of a new dynamic queue, and a number that no other has.
    fn dynamic_name(&mut self, asked: &str) -> Result<(QueueName, Sequence), Failure> {
        let asked = if asked.is_empty() {
            DEFAULT_NAME
        } else {
            asked
        };
        let error = || Failure::from(ReasonCode::DYNAMIC_Q_NAME_ERROR);
        let Some(prefix) = asked.strip_suffix('*') else {
            let name = QueueName::new(asked).map_err(|_| error())?;
            if self.qmgr.queues.contains_key(&name) || self.is_dynamic_name(&name) {
                return Err(Failure::of(ReasonCode::OBJECT_ALREADY_EXISTS, &name));
            }
            return Ok((name, self.next_sequence()));
        };
        if prefix.len() > PREFIX_LENGTH_MAX {
            return Err(error());
        }
        loop {
            let number = self.next_sequence();
            let name = format!("{prefix}{:016X}", number.get());
            let name = QueueName::new(&name).map_err(|_| error())?;
            if !self.qmgr.queues.contains_key(&name) {
                return Ok((name, number));
            }
        }
    }

    /// Whether a dynamic queue has the name, be it served or not.
    fn is_dynamic_name(&self, name: &QueueName) -> bool {
        self.dynamic
            .values()
            .any(|dynamic| dynamic.definition.base.name == *name)
    }

    /// A permanent dynamic queue that the store has. What cannot be read is kept as a queue that no definition knows.
    pub(crate) fn recover_dynamic(
        &mut self,
        id: ObjectId,
        definition: Vec<(String, AttributeValue)>,
        now: Timestamp,
    ) {
        let attributes: Attributes = definition.into_iter().collect();
        let Ok(Queue::Local(mut definition)) = Queue::from_attributes(&attributes) else {
            return;
        };
        definition.base.id = id;
        definition.definition_type = DefinitionType::PermanentDynamic;
        let name = definition.base.name.clone();
        if !self.qmgr.queues.contains_key(&name) {
            let queue = Queue::Local(definition.clone());
            Arc::make_mut(&mut self.qmgr).queues.insert(name, queue);
            self.adopt(&definition, now);
            self.note_initiation(&definition);
        }
        self.dynamic.insert(
            id,
            Dynamic {
                definition,
                creator: None,
            },
        );
    }

    /// What the closing of a handle is to do with its queue: `true` deletes it. 2045 where the option does not go with the
    /// queue, 2055 where a permanent queue has messages that the option keeps, or that somebody has in hand.
    pub(crate) fn closing_deletes(
        &self,
        handle: (ConnectionId, HandleId),
        queue: Option<ObjectId>,
        option: CloseOption,
    ) -> Result<bool, Failure> {
        let is_kept = match option {
            CloseOption::None => true,
            CloseOption::Delete | CloseOption::DeletePurge => false,
        };
        let not_valid = || Failure::from(ReasonCode::OPTION_NOT_VALID_FOR_TYPE);
        let Some(id) = queue.filter(|id| id.get() & ID_BIT != 0) else {
            return if is_kept { Ok(false) } else { Err(not_valid()) };
        };
        // Somebody has deleted it: there is no more to do.
        let Some(dynamic) = self.dynamic.get(&id) else {
            return Ok(false);
        };
        if dynamic.creator == Some(handle) {
            return Ok(true);
        }
        let purges = match option {
            CloseOption::None => return Ok(false),
            CloseOption::Delete => false,
            CloseOption::DeletePurge => true,
        };
        if dynamic.creator.is_some() {
            return Err(not_valid());
        }
        let in_the_way = self
            .queues
            .get(&id)
            .is_some_and(|q| q.is_held() || (!purges && q.depth() > 0));
        if in_the_way {
            let name = &dynamic.definition.base.name;
            return Err(Failure::of(ReasonCode::Q_NOT_EMPTY, name));
        }
        Ok(true)
    }

    /// Deletes a dynamic queue: its name is free at once, and its messages go. Those that a unit of work has in hand go when it
    /// ends: the queue of a temporary one is gone for everybody else before that. Nothing, if it is none.
    pub(crate) fn delete_dynamic(
        &mut self,
        step: &mut Step<'_>,
        id: ObjectId,
        who: &str,
    ) -> Position {
        let Some(dynamic) = self.dynamic.remove(&id) else {
            return Position::ZERO;
        };
        let name = dynamic.definition.base.name;
        let is_served = matches!(
            self.qmgr.queues.get(&name),
            Some(Queue::Local(local)) if local.base.id == id
        );
        if is_served {
            Arc::make_mut(&mut self.qmgr).queues.remove(&name);
        }
        if let Some(initiation) = &dynamic.definition.initiation_queue
            && let Some(queues) = self.initiated.get_mut(initiation)
        {
            queues.retain(|queue| *queue != id);
        }
        if let Some(q) = self.queue(id) {
            q.closed = true;
            q.definition = None;
            q.trigger = None;
            q.performance = None;
        }
        self.end_gets_of(step, id);
        self.purge(step, id, who);
        self.retiring.insert(id);
        self.retire(step)
    }

    /// Takes the messages away that nobody has in hand, a bounded write set at a time.
    fn purge(&mut self, step: &mut Step<'_>, id: ObjectId, who: &str) {
        loop {
            let Some(q) = self.queues.get(&id) else {
                return;
            };
            let some: Vec<(ObjectId, Sequence)> = q
                .entries(Unbounded)
                .filter(|(_, entry)| !entry.state.is_held())
                .take(CHANGES_PER_WRITE_SET)
                .map(|(sequence, _)| (id, sequence))
                .collect();
            if some.is_empty() {
                return;
            }
            let reason = AccountReason::Cleared;
            self.take_away(step, &some, &reason, who, Vec::new(), Vec::new());
        }
    }

    /// Queues that were deleted while somebody had messages of theirs in hand: what came back goes, and with the last one the
    /// queue.
    pub(crate) fn retire(&mut self, step: &mut Step<'_>) -> Position {
        let mut last = Position::ZERO;
        let retiring: Vec<ObjectId> = self.retiring.iter().copied().collect();
        for id in retiring {
            let who = format!("queue manager {}", self.qmgr.attributes.name);
            self.purge(step, id, &who);
            let Some(q) = self.queues.get(&id).filter(|q| q.depth() > 0) else {
                self.retiring.remove(&id);
                let gone = self.queues.remove(&id);
                if gone.is_some_and(|q| q.row_written) {
                    last = self.write(step, vec![Change::DeleteQueue { queue: id }]);
                }
                continue;
            };
            last = last.max(q.last_change);
        }
        last
    }

    /// Changes the definition of a dynamic queue as `ALTER` does. The answer waits until a permanent one has it durably.
    pub(crate) fn alter_dynamic(
        &mut self,
        step: &mut Step<'_>,
        id: ObjectId,
        attributes: &Attributes,
    ) -> Answer {
        let Some(dynamic) = self.dynamic.get_mut(&id) else {
            return Err(ReasonCode::UNKNOWN_OBJECT_NAME.into());
        };
        let name = dynamic.definition.base.name.clone();
        let altered = Queue::Local(dynamic.definition.clone()).altered(attributes, step.now);
        let Ok(Queue::Local(altered)) = altered else {
            return Err(Failure::of(ReasonCode::SELECTOR_ERROR, &name));
        };
        dynamic.definition = altered.clone();
        let defined = Arc::make_mut(&mut self.qmgr);
        let served = matches!(
            defined.queues.get(&name),
            Some(Queue::Local(local)) if local.base.id == id
        );
        if !served {
            return Err(Failure::of(ReasonCode::OBJECT_CHANGED, &name));
        }
        defined.queues.insert(name, Queue::Local(altered.clone()));
        let could_trigger = self.adopt(&altered, step.now);
        self.initiated = crate::trigger::initiated(&self.qmgr);
        self.end_inhibited_gets(step);
        if could_trigger {
            self.check_trigger(id, Cause::Changed);
        }
        let position = match altered.definition_type {
            DefinitionType::PermanentDynamic => self.write_queue_row(step, id),
            DefinitionType::TemporaryDynamic | DefinitionType::Predefined => Position::ZERO,
        };
        Ok((position, Reply::Done))
    }

    /// `ALTER QLOCAL` of a dynamic queue. 2085 if the name is none's.
    pub(crate) fn alter_queue(
        &mut self,
        step: &mut Step<'_>,
        queue: &QueueName,
        attributes: &Attributes,
    ) -> Answer {
        let id = self
            .local(queue)
            .map_err(|reason| Failure::of(reason, queue))?;
        self.alter_dynamic(step, id, attributes)
            .map_err(|failure| Failure::of(failure.reason, queue))
    }

    /// Every dynamic queue that is served, by name.
    pub(crate) fn dynamic_queues(&self) -> (Position, Reply) {
        let mut position = Position::ZERO;
        let mut queues = BTreeMap::new();
        for (id, dynamic) in &self.dynamic {
            if let Some(q) = self.queues.get(id).filter(|q| q.definition.is_some()) {
                position = position.max(q.last_change);
                let name = dynamic.definition.base.name.clone();
                queues.insert(name, dynamic.definition.clone());
            }
        }
        (position, Reply::DynamicQueues(queues))
    }

    /// Whether a queue is a dynamic one.
    pub(crate) fn is_dynamic(&self, id: ObjectId) -> bool {
        self.dynamic.contains_key(&id)
    }

    /// The definition that a dynamic queue's row carries; none for others.
    pub(crate) fn stored_definition(
        definition: &LocalQueue,
    ) -> Option<Vec<(String, AttributeValue)>> {
        match definition.definition_type {
            DefinitionType::Predefined | DefinitionType::TemporaryDynamic => None,
            DefinitionType::PermanentDynamic => {
                let attributes = Queue::Local(definition.clone()).to_attributes();
                let pairs = attributes.iter();
                Some(pairs.map(|(k, v)| (k.to_owned(), v.clone())).collect())
            }
        }
    }

    /// Writes the row of a queue; of a temporary one there is none.
    pub(crate) fn write_queue_row(&mut self, step: &mut Step<'_>, id: ObjectId) -> Position {
        let Some(q) = self.queues.get_mut(&id) else {
            return Position::ZERO;
        };
        let is_temporary = q
            .definition
            .as_ref()
            .is_some_and(|d| d.definition_type == DefinitionType::TemporaryDynamic);
        if is_temporary {
            return q.last_change;
        }
        q.row_written = true;
        let row = q.row();
        let position = self.write(step, vec![Change::SetQueue { queue: id, row }]);
        if let Some(q) = self.queue(id) {
            q.changed(position);
        }
        position
    }
}

impl State {
    /// Whether a unit of work, a request, a channel or a browse has the message in hand.
    pub(crate) const fn is_held(self) -> bool {
        match self {
            Self::Uncommitted | Self::Locked | Self::Fetching | Self::Channel | Self::Browsed => {
                true
            }
            Self::Available | Self::Damaged | Self::Poison => false,
        }
    }
}
