//! Asking for the attributes of what is open, and setting them: `MQINQ`, `MQSET`.
//!
//! Source: IBM MQ, "MQINQ", "MQSET".

use ferrymq_objects::{Attributes, Queue};
use ferrymq_types::{Position, ReasonCode};

use crate::engine::{Answer, Step};
use crate::{ConnectionId, Engine, Failure, HandleId, Inquired, Reply};

/// What `MQSET` changes: everything else is for `ALTER`.
pub const SETTABLE: [&str; 7] = [
    "GET", "PUT", "TRIGDATA", "TRIGDPTH", "TRIGGER", "TRIGMPRI", "TRIGTYPE",
];

impl Engine {
    /// The attributes of what a handle has open, and what is on it now. With no handle, those of the queue manager.
    pub(crate) fn inquire(&self, connection: ConnectionId, handle: Option<HandleId>) -> Answer {
        let Some(handle) = handle else {
            let attributes = Box::new(self.qmgr.attributes.clone());
            return Ok((Position::ZERO, Reply::InquiredQueueManager(attributes)));
        };
        let open = self.handle_for_inquire(connection, handle)?;
        let name = open.name();
        let queue = self
            .qmgr
            .queues
            .get(&name.queue)
            .ok_or_else(|| Failure::of(ReasonCode::Q_DELETED, &name.queue))?;
        let state = match queue {
            Queue::Local(local) => self.queues.get(&local.base.id),
            Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_) => None,
        };
        let inquired = Inquired {
            queue: Box::new(queue.clone()),
            depth: state.map(|q| q.depth()),
            inputs: state.map_or(0, |q| q.inputs()),
            outputs: state.map_or(0, |q| q.outputs()),
        };
        let after = state.map_or(Position::ZERO, |q| q.last_change);
        Ok((after, Reply::Inquired(inquired)))
    }

    /// Sets attributes of what a handle has open. Those of a dynamic queue change here; those of a queue that a command defined
    /// are checked, and are to be changed by a command.
    pub(crate) fn set(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        handle: HandleId,
        attributes: &Attributes,
    ) -> Answer {
        let open = self.handle_for_set(connection, handle)?;
        let name = open.name().queue.clone();
        let queue = self
            .qmgr
            .queues
            .get(&name)
            .ok_or_else(|| Failure::of(ReasonCode::Q_DELETED, &name))?;
        for (keyword, value) in attributes.iter() {
            if !SETTABLE.contains(&keyword) {
                return Err(Failure::of(ReasonCode::SELECTOR_ERROR, &name));
            }
            if queue.kind().attribute(keyword).is_err() {
                return Err(Failure::of(ReasonCode::SELECTOR_NOT_FOR_TYPE, &name));
            }
            let one: Attributes = [(keyword, value.clone())].into_iter().collect();
            if queue.altered(&one, step.now).is_err() {
                return Err(Failure::of(value_error(keyword), &name));
            }
        }
        let id = queue.base().id;
        if self.is_dynamic(id) {
            return self.alter_dynamic(step, id, attributes);
        }
        let (kind, attributes) = (queue.kind(), attributes.clone());
        let alter = Reply::Alter {
            kind,
            name,
            attributes,
        };
        Ok((Position::ZERO, alter))
    }
}

/// What is wrong when one of [`SETTABLE`] does not take a value.
fn value_error(keyword: &str) -> ReasonCode {
    match keyword {
        "GET" | "PUT" => ReasonCode::INHIBIT_VALUE_ERROR,
        "TRIGDPTH" => ReasonCode::TRIGGER_DEPTH_ERROR,
        "TRIGGER" => ReasonCode::TRIGGER_CONTROL_ERROR,
        "TRIGMPRI" => ReasonCode::TRIGGER_MSG_PRIORITY_ERR,
        "TRIGTYPE" => ReasonCode::TRIGGER_TYPE_ERROR,
        _ => ReasonCode::CHAR_ATTR_LENGTH_ERROR,
    }
}
