//! Handles: what a connection has open. A handle says what may be done with a queue, keeps others out where it is exclusive, and
//! has one browse cursor.
//!
//! Source: IBM MQ, "MQOPEN", "MQCLOSE", "Options (MQLONG)" of MQOO and MQGMO.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrymq_objects::{DefaultInputUse, Target};
use ferrymq_selector::Selector;
use ferrymq_types::{ObjectId, Position, QueueName, ReasonCode, Sequence};

use crate::context::{MessageContext, check_open};
use crate::engine::{Answer, Step};
use crate::logical::Grouping;
use crate::queue::State;
use crate::trigger::Cause;
use crate::{
    CloseOption, ConnectionId, Cursor, Engine, Failure, HandleId, InputUse, ObjectName,
    OpenOptions, Opened, Reply,
};

/// What is open, by handle.
pub(crate) type Handles = BTreeMap<(ConnectionId, HandleId), Handle>;

/// An open queue.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) name: ObjectName,
    pub(crate) options: OpenOptions,
    /// The local queue that is read, or that was found for puts; one that is defined anew under the name is another.
    queue: Option<ObjectId>,
    /// Where the browse is.
    cursor: Option<Cursor>,
    /// The message under the cursor that is locked by it.
    locked: Option<Sequence>,
    /// Where it is in groups, once it met one.
    pub(crate) grouping: Option<Box<Grouping>>,
    /// The context of the message that was got last, if the handle keeps it.
    pub(crate) saved_context: Option<Box<MessageContext>>,
    /// Which messages it sees.
    selector: Option<Arc<Selector>>,
}

impl Handle {
    /// What it was opened by; for a dynamic queue, its own name.
    pub(crate) const fn name(&self) -> &ObjectName {
        &self.name
    }
}

impl Engine {
    /// Opens a queue. The answer waits until a permanent dynamic queue that this made is durable.
    pub(crate) fn open(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        mut name: ObjectName,
        options: OpenOptions,
        dynamic_name: Option<&str>,
        selector: Option<Arc<Selector>>,
    ) -> Answer {
        let reads = options.input.is_some() || options.browse;
        if !reads && !options.output && !options.inquire && !options.set {
            return Err(Failure::of(ReasonCode::OPTIONS_ERROR, &name.queue));
        }
        check_open(&options, &name.queue)?;
        self.check_quiescing(options.fail_if_quiescing)?;
        if selector.is_some() && !reads {
            return Err(Failure::of(
                ReasonCode::SELECTOR_INVALID_FOR_TYPE,
                &name.queue,
            ));
        }
        let (first, last) = ((connection, HandleId(0)), (connection, HandleId(u64::MAX)));
        let open = self.handles.range(first..=last).count();
        if open as u64 >= u64::from(self.qmgr.attributes.max_handles) {
            return Err(ReasonCode::HANDLE_NOT_AVAILABLE.into());
        }
        // A number that a refusal uses up is missed by nobody.
        self.counters.handle = self.counters.handle.saturating_add(1);
        let handle = HandleId(self.counters.handle);
        if let (Some(asked), Some(model)) = (dynamic_name, self.model(&name)) {
            let creator = (connection, handle);
            name = ObjectName::local(self.create_dynamic(step, &model, asked, creator)?);
        }
        let mut opened = Opened {
            handle,
            resolved_queue: name.queue.to_string(),
            resolved_queue_manager: self.qmgr.attributes.name.to_string(),
        };
        let queue = self.resolve_open(&name, options, &mut opened)?;
        let input = options.input.map(|of| self.actual_use(queue, of));
        let mut after = Position::ZERO;
        if let Some(id) = queue
            && let Some(q) = self.queues.get_mut(&id)
        {
            let is_first = q.inputs() == 0;
            q.opened(input, options.output);
            // A permanent dynamic queue may not be durable yet.
            after = q.last_change;
            if is_first && input.is_some() {
                self.opened_for_input(id, Cause::Changed);
            }
        }
        let open = Handle {
            name,
            options: OpenOptions { input, ..options },
            queue,
            cursor: None,
            locked: None,
            grouping: None,
            saved_context: None,
            selector,
        };
        self.handles.insert((connection, handle), open);
        if queue.is_none_or(|id| !self.is_dynamic(id)) {
            after = Position::ZERO;
        }
        Ok((after, Reply::Opened(opened)))
    }

    /// The local queue that an open comes to, if it comes to one.
    fn resolve_open(
        &self,
        name: &ObjectName,
        options: OpenOptions,
        opened: &mut Opened,
    ) -> Result<Option<ObjectId>, Failure> {
        let reads = options.input.is_some() || options.browse || options.set;
        let mut queue = None;
        if options.output || !reads {
            queue = self.resolve_output(name, opened)?;
        }
        if reads {
            let id = self.resolve_input(name)?;
            queue = Some(id);
            self.check_sharing(id, options.input)?;
            if let Some(q) = self.queues.get(&id) {
                opened.resolved_queue = q.name.to_string();
            }
        }
        Ok(queue)
    }

    fn resolve_output(
        &self,
        name: &ObjectName,
        opened: &mut Opened,
    ) -> Result<Option<ObjectId>, Failure> {
        let resolution = self
            .qmgr
            .resolve_for_output(&name.queue, name.queue_manager.as_ref())
            .map_err(|reason| Failure::of(reason, &name.queue))?;
        match resolution.target {
            Target::Local(local) => {
                opened.resolved_queue = local.base.name.to_string();
                Ok(Some(local.base.id))
            }
            Target::Remote {
                remote_queue,
                remote_queue_manager,
                ..
            } => {
                opened.resolved_queue = remote_queue.to_string();
                opened.resolved_queue_manager = remote_queue_manager.to_string();
                Ok(None)
            }
        }
    }

    /// Only local queues can be read, whatever they are called. An inhibited one can be opened; each get says 2016.
    fn resolve_input(&self, name: &ObjectName) -> Result<ObjectId, Failure> {
        let (name, queue_manager) = (&name.queue, name.queue_manager.as_ref());
        if queue_manager.is_some_and(|qmgr| *qmgr != self.qmgr.attributes.name) {
            return Err(Failure::of(ReasonCode::OPTION_NOT_VALID_FOR_TYPE, name));
        }
        let (local, _) = self
            .qmgr
            .resolve_for_input(name)
            .map_err(|reason| Failure::of(reason, name))?;
        if self.queues.get(&local.base.id).is_none_or(|q| q.closed) {
            return Err(Failure::of(ReasonCode::Q_DELETED, &local.base.name));
        }
        Ok(local.base.id)
    }

    /// `NOSHARE` and exclusive use: one input handle at a time, and nobody who waits without one.
    fn check_sharing(&self, queue: ObjectId, input: Option<InputUse>) -> Result<(), Failure> {
        let (Some(input), Some(q)) = (input, self.queues.get(&queue)) else {
            return Ok(());
        };
        let taken = match self.actual_use(Some(queue), input) {
            InputUse::Exclusive => q.inputs() > 0 || !q.waiters.is_empty() || q.sender.is_some(),
            InputUse::Shared | InputUse::AsQueueDefined => q.exclusive(),
        };
        if taken {
            return Err(Failure::of(ReasonCode::OBJECT_IN_USE, &q.name));
        }
        Ok(())
    }

    /// A queue with `NOSHARE` is used by one at a time, whatever was asked for; `DEFSOPT` says what the default is.
    fn actual_use(&self, queue: Option<ObjectId>, input: InputUse) -> InputUse {
        let definition = queue
            .and_then(|id| self.queues.get(&id))
            .and_then(|q| q.definition.as_ref());
        let shared = definition.is_none_or(|d| d.share);
        let default = definition.map_or(DefaultInputUse::Shared, |d| d.default_input_use);
        match (input, default) {
            (InputUse::Exclusive, _) | (InputUse::AsQueueDefined, DefaultInputUse::Exclusive) => {
                InputUse::Exclusive
            }
            (InputUse::Shared, _) | (InputUse::AsQueueDefined, DefaultInputUse::Shared) => {
                if shared {
                    InputUse::Shared
                } else {
                    InputUse::Exclusive
                }
            }
        }
    }

    /// Closes a handle; the dynamic queue that it made, or that the option is about, is deleted.
    pub(crate) fn close(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        handle: HandleId,
        option: CloseOption,
    ) -> Answer {
        let queue = self.handle(connection, handle)?.queue;
        self.unlock_cursor(connection, handle);
        let deletes = self.closing_deletes((connection, handle), queue, option)?;
        let Some(closed) = self.handles.remove(&(connection, handle)) else {
            return Err(ReasonCode::HOBJ_ERROR.into());
        };
        if let Some(queue) = queue {
            self.parked.remove(&(queue, connection, handle));
        }
        if closed.options.input.is_some() {
            self.end_gets(step, |p| {
                let through = p.connection == connection && p.get.source.is_through(handle);
                through.then(|| ReasonCode::HOBJ_ERROR.into())
            });
        }
        if let Some(q) = closed.queue.and_then(|id| self.queues.get_mut(&id)) {
            q.closed_by(closed.options.input, closed.options.output);
        }
        let mut after = Position::ZERO;
        if let Some(queue) = queue.filter(|_| deletes) {
            let who = format!("queue manager {}", self.qmgr.attributes.name);
            after = self.delete_dynamic(step, queue, &who);
        }
        if let (Some(_), Some(queue)) = (closed.options.input, closed.queue)
            && self.queues.get(&queue).is_some_and(|q| q.inputs() == 0)
        {
            // What waits now has nobody who reads it.
            self.trigger_channel(step, queue, true, None);
            self.check_trigger(queue, Cause::Closed);
        }
        // What it left incomplete stays as it is.
        let warning = match closed.grouping {
            Some(grouping) if grouping.is_incomplete() => ReasonCode::INCOMPLETE_GROUP,
            Some(_) | None => ReasonCode::NONE,
        };
        Ok((after, Reply::Closed { warning }))
    }

    /// The connection is gone: everything that it had open is closed.
    pub(crate) fn close_all(&mut self, step: &mut Step<'_>, connection: ConnectionId) {
        let (first, last) = ((connection, HandleId(0)), (connection, HandleId(u64::MAX)));
        let open: Vec<HandleId> = self
            .handles
            .range(first..=last)
            .map(|((_, handle), _)| *handle)
            .collect();
        for handle in open {
            // It is there.
            drop(self.close(step, connection, handle, CloseOption::None));
        }
    }

    /// What a handle keeps of groups.
    pub(crate) fn grouping(&self, connection: ConnectionId, handle: HandleId) -> Option<&Grouping> {
        self.handles.get(&(connection, handle))?.grouping.as_deref()
    }

    /// As [`Engine::grouping`], from now on; `None` if the handle is closed.
    pub(crate) fn grouping_or_new(
        &mut self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Option<&mut Grouping> {
        let open = self.handles.get_mut(&(connection, handle))?;
        Some(open.grouping.get_or_insert_default())
    }

    /// The selector of a get or a browse: its own, or that of its handle.
    pub(crate) fn selector(
        &self,
        connection: ConnectionId,
        handle: Option<HandleId>,
        own: Option<&Arc<Selector>>,
    ) -> Result<Option<Arc<Selector>>, ReasonCode> {
        let Some(handle) = handle else {
            return Ok(own.cloned());
        };
        if own.is_some() {
            return Err(ReasonCode::OPTIONS_ERROR);
        }
        let open = self.handles.get(&(connection, handle));
        Ok(open.and_then(|open| open.selector.clone()))
    }

    pub(crate) fn handle(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<&Handle, Failure> {
        self.handles
            .get(&(connection, handle))
            .ok_or_else(|| ReasonCode::HOBJ_ERROR.into())
    }

    /// What a put through a handle goes to.
    pub(crate) fn handle_for_output(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<ObjectName, Failure> {
        let open = self.handle(connection, handle)?;
        if !open.options.output {
            let reason = ReasonCode::NOT_OPEN_FOR_OUTPUT;
            return Err(Failure::of(reason, &open.name.queue));
        }
        self.check_same(open)?;
        Ok(open.name.clone())
    }

    /// What is asked for its attributes through a handle.
    pub(crate) fn handle_for_inquire(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<&Handle, Failure> {
        let open = self.handle(connection, handle)?;
        if !open.options.inquire {
            let reason = ReasonCode::NOT_OPEN_FOR_INQUIRE;
            return Err(Failure::of(reason, &open.name.queue));
        }
        self.check_same(open)?;
        Ok(open)
    }

    /// What attributes are set of through a handle.
    pub(crate) fn handle_for_set(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<&Handle, Failure> {
        let open = self.handle(connection, handle)?;
        if !open.options.set {
            return Err(Failure::of(ReasonCode::NOT_OPEN_FOR_SET, &open.name.queue));
        }
        self.check_same(open)?;
        Ok(open)
    }

    /// The queue that a get through a handle reads.
    pub(crate) fn handle_for_input(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<QueueName, Failure> {
        let open = self.handle(connection, handle)?;
        if open.options.input.is_none() {
            return Err(Failure::of(
                ReasonCode::NOT_OPEN_FOR_INPUT,
                &open.name.queue,
            ));
        }
        self.check_same(open)?;
        Ok(open.name.queue.clone())
    }

    /// The queue that a browse through a handle reads, and where its cursor is.
    pub(crate) fn handle_for_browse(
        &self,
        connection: ConnectionId,
        handle: HandleId,
    ) -> Result<(QueueName, Option<Cursor>), Failure> {
        let open = self.handle(connection, handle)?;
        if !open.options.browse {
            return Err(Failure::of(
                ReasonCode::NOT_OPEN_FOR_BROWSE,
                &open.name.queue,
            ));
        }
        self.check_same(open)?;
        Ok((open.name.queue.clone(), open.cursor))
    }

    /// A handle reads the queue that it was opened on: 2041 if its name leads to another one now.
    pub(crate) fn check_reads(
        &self,
        connection: ConnectionId,
        handle: HandleId,
        queue: ObjectId,
    ) -> Result<(), Failure> {
        let open = self.handle(connection, handle)?;
        if open.queue == Some(queue) {
            Ok(())
        } else {
            Err(Failure::of(ReasonCode::OBJECT_CHANGED, &open.name.queue))
        }
    }

    /// A queue that was deleted, and perhaps defined anew under its name, is not the one that was opened.
    fn check_same(&self, open: &Handle) -> Result<(), Failure> {
        match open.queue {
            Some(id) if self.queues.get(&id).is_none_or(|q| q.definition.is_none()) => {
                Err(Failure::of(ReasonCode::Q_DELETED, &open.name.queue))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Lets the message under the cursor go that a browse has locked.
    pub(crate) fn unlock_cursor(&mut self, connection: ConnectionId, handle: HandleId) {
        let Some(open) = self.handles.get_mut(&(connection, handle)) else {
            return;
        };
        if let (Some(sequence), Some(queue)) = (open.locked.take(), open.queue)
            && self
                .entry(queue, sequence)
                .is_some_and(|e| e.state == State::Browsed)
        {
            self.show(queue, sequence, Position::ZERO);
        }
    }

    /// The cursor stands on a message now; with `lock` nobody else has it until the cursor moves.
    pub(crate) fn set_cursor(
        &mut self,
        connection: ConnectionId,
        handle: HandleId,
        cursor: Cursor,
        lock: bool,
    ) {
        // Two browses of one handle may have been under way together.
        self.unlock_cursor(connection, handle);
        let Some(open) = self.handles.get_mut(&(connection, handle)) else {
            return;
        };
        open.cursor = Some(cursor);
        if let (true, Some(queue)) = (lock, open.queue) {
            open.locked = Some(cursor.sequence);
            self.hide(queue, cursor.sequence, State::Browsed);
        }
    }

    /// Unlock, without moving: `MQGMO_UNLOCK`. 2209 if nothing is locked.
    pub(crate) fn unlock_browsed(&mut self, connection: ConnectionId, handle: HandleId) -> Answer {
        let open = self.handle(connection, handle)?;
        if open.locked.is_none() {
            return Err(Failure::of(ReasonCode::NO_MSG_LOCKED, &open.name.queue));
        }
        self.unlock_cursor(connection, handle);
        Ok((Position::ZERO, Reply::Done))
    }
}
