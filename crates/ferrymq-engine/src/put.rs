//! Putting: resolve, check, number, and either wait for the unit of work or be journaled at once.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{DefinitionType, Enabled, LocalQueue, QueueManager, Target};
use ferrymq_types::{
    Change, CorrelationId, Message, MessageDescriptor, MessageType, ObjectId, Persistence,
    Position, QueueManagerName, QueueName, ReasonCode, RequestedReport, Sequence,
    TransmissionHeader, UnitOfWorkId, UnitOfWorkOutcome, UnitOfWorkRow,
};

use crate::engine::{Answer, Step};
use crate::memory::memory_bytes;
use crate::messages::{ROW_BYTES, entry_of, row_of};
use crate::queue::{Entry, State};
use crate::report::Report;
use crate::resting::usual_body;
use crate::unit_of_work::CommitRecord;
use crate::{ConnectionId, Engine, Failure, Object, ObjectName, Put, PutDone, Reply};

/// A put that passed all checks.
pub(crate) struct Checked {
    pub(crate) queue: ObjectId,
    pub(crate) message: Message,
    done: PutDone,
}

/// Where a put leads.
pub(crate) struct Route<'a> {
    queue: &'a LocalQueue,
    /// `RemoteQName` and `RemoteQMgrName`, if it goes elsewhere.
    remote: Option<(QueueName, QueueManagerName)>,
    default_priority: ferrymq_types::Priority,
    default_persistence: Persistence,
}

impl Engine {
    pub(crate) fn put(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        mut put: Put,
    ) -> Answer {
        // Fast messages of an older conversation must not come after those of a newer one (invariant O4).
        if self.superseded.contains(&connection) {
            return Err(ReasonCode::CHANNEL_SUPERSEDED.into());
        }
        let name = match &put.object {
            Object::Handle(handle) => Cow::Owned(self.handle_for_output(connection, *handle)?),
            Object::Named(name) => Cow::Borrowed(name),
        };
        if let Some(token) = put.token {
            if put.syncpoint.is_some() {
                return Err(ReasonCode::OPTIONS_ERROR.into());
            }
            if let Some(answer) = self.answer_again(token, &put, &name) {
                return answer;
            }
        }
        if let Some(unit) = put.syncpoint {
            self.own_unit(connection, unit)?;
        }
        // A put that may be repeated cannot be told another time which id it was given.
        if put.token.is_some() && put.options.new_correlation_id {
            return Err(ReasonCode::OPTIONS_ERROR.into());
        }
        self.check_quiescing(put.options.fail_if_quiescing)?;
        let (syncpoint, token) = (put.syncpoint, put.token);
        let qmgr = Arc::clone(&self.qmgr);
        let route = Self::route(&qmgr, &name)?;
        drop(name);
        self.set_context(step, connection, &mut put)?;
        let persistence = put.persistence.unwrap_or(route.default_persistence);
        let moves = self.group_of_put(connection, &mut put, persistence)?;
        let mut checked = self.check_put(step, put, &route)?;
        let bytes = memory_bytes(&checked.message);
        let write_bytes = match checked.message.descriptor.persistence {
            Persistence::Persistent => {
                (checked.message.stored_length() as u64).saturating_add(ROW_BYTES)
            }
            Persistence::NonPersistent => 0,
        };
        self.check_memory(checked.message.descriptor.persistence, bytes)?;
        let arrival = checked.message.descriptor.report.confirm_on_arrival();
        let report = if arrival != RequestedReport::No && self.is_destination(checked.queue) {
            let feedback = MessageDescriptor::FEEDBACK_COA;
            self.make_report(step, &checked.message, arrival, feedback, write_bytes)
        } else {
            None
        };
        let with_report = report.as_ref().map_or(0, Report::write_bytes);
        match syncpoint {
            Some(unit) => self.check_unit_room(
                unit,
                bytes.saturating_add(with_report),
                write_bytes.saturating_add(with_report),
            )?,
            None if write_bytes > self.limits.write_set_bytes_max => {
                return Err(ReasonCode::MSG_TOO_BIG_FOR_Q_MGR.into());
            }
            None => {}
        }
        let position = match (syncpoint, report) {
            (Some(unit), report) => {
                self.put_in_unit(unit, checked.queue, checked.message, bytes, write_bytes);
                if let Some(report) = report {
                    self.report_in_unit(unit, report);
                }
                Position::ZERO
            }
            (None, None) => self.put_now(step, checked.queue, checked.message, token),
            (None, Some(report)) => {
                // Both or neither.
                let record = match token {
                    Some(id) => CommitRecord::Token(UnitOfWorkRow {
                        id,
                        outcome: UnitOfWorkOutcome::Committed,
                        time: step.now,
                        message_id: Some(checked.done.message_id),
                    }),
                    None => CommitRecord::Nothing,
                };
                let unit = self.begin_own(connection);
                self.put_in_unit(unit, checked.queue, checked.message, bytes, write_bytes);
                self.report_in_unit(unit, report);
                self.commit_unit(step, unit, record)
            }
        };
        if let Some(to) = moves {
            let warning = self.moved_by_put(connection, &to);
            if warning != ReasonCode::NONE {
                checked.done.warning = warning;
            }
        }
        Ok((position, Reply::Put(checked.done)))
    }

    /// A report that becomes visible with the unit of work.
    fn report_in_unit(&mut self, unit: UnitOfWorkId, report: Report) {
        match report {
            Report::To { queue, message } => {
                let bytes = memory_bytes(&message);
                let write_bytes = (message.stored_length() as u64).saturating_add(ROW_BYTES);
                self.put_in_unit(unit, queue, *message, bytes, write_bytes);
            }
            Report::Nowhere(note) => {
                if let Some(unit) = self.unit(unit) {
                    unit.note(note);
                }
            }
        }
    }

    /// The answer to a put whose token was used before (invariant I1).
    fn answer_again(&self, token: UnitOfWorkId, put: &Put, name: &ObjectName) -> Option<Answer> {
        let refused = || Some(Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &token)));
        if self.units.contains_key(&token) {
            return refused();
        }
        let outcome = self.outcomes.get(token)?;
        let (UnitOfWorkOutcome::Committed, Some(message_id)) =
            (outcome.row.outcome, outcome.row.message_id)
        else {
            return refused();
        };
        let me = self.qmgr.attributes.name.to_string();
        let resolution = self
            .qmgr
            .resolve_for_output(&name.queue, name.queue_manager.as_ref());
        let (resolved_queue, resolved_queue_manager) = match resolution.map(|r| r.target) {
            Ok(Target::Local(local)) => (local.base.name.to_string(), me),
            Ok(Target::Remote {
                remote_queue,
                remote_queue_manager,
                ..
            }) => (remote_queue.to_string(), remote_queue_manager.to_string()),
            // The definitions changed since: it was put all the same.
            Err(_) => (name.queue.to_string(), me),
        };
        Some(Ok((
            outcome.position,
            Reply::Put(PutDone {
                message_id,
                correlation_id: put.descriptor.correlation_id,
                group_id: put.descriptor.group_id,
                message_sequence_number: put.descriptor.message_sequence_number,
                warning: ReasonCode::NONE,
                resolved_queue,
                resolved_queue_manager,
            }),
        )))
    }

    pub(crate) fn route<'a>(
        qmgr: &'a QueueManager,
        name: &ObjectName,
    ) -> Result<Route<'a>, Failure> {
        let resolution = qmgr
            .resolve_for_output(&name.queue, name.queue_manager.as_ref())
            .map_err(|reason| Failure::of(reason, &name.queue))?;
        if let Some(inhibited) = resolution.path.iter().find(|q| q.base().put == Enabled::No) {
            return Err(Failure::of(
                ReasonCode::PUT_INHIBITED,
                &inhibited.base().name,
            ));
        }
        let (queue, remote) = match resolution.target {
            Target::Local(local) => (local, None),
            Target::Remote {
                transmission_queue,
                remote_queue,
                remote_queue_manager,
            } => (
                transmission_queue,
                Some((remote_queue, remote_queue_manager)),
            ),
        };
        let first = resolution.path.first().map_or(&queue.base, |q| q.base());
        Ok(Route {
            default_priority: first.default_priority,
            default_persistence: first.default_persistence,
            queue,
            remote,
        })
    }

    pub(crate) fn check_put(
        &mut self,
        step: &mut Step<'_>,
        put: Put,
        route: &Route<'_>,
    ) -> Result<Checked, Failure> {
        let queue = route.queue;
        let mut descriptor = put.descriptor;
        check_descriptor(&descriptor)?;
        descriptor.priority = put.priority.unwrap_or(route.default_priority);
        descriptor.persistence = put.persistence.unwrap_or(route.default_persistence);
        match descriptor.persistence {
            Persistence::Persistent
                if queue.definition_type == DefinitionType::TemporaryDynamic =>
            {
                let reason = ReasonCode::PERSISTENT_NOT_ALLOWED;
                return Err(Failure::of(reason, &queue.base.name));
            }
            Persistence::Persistent if !self.puts_allowed => {
                return Err(ReasonCode::STORAGE_MEDIUM_FULL.into());
            }
            Persistence::Persistent | Persistence::NonPersistent => {}
        }
        self.set_reply_to(&mut descriptor);
        if let Some(max) = self.qmgr.attributes.max_properties_length
            && descriptor.properties.length() > max as usize
        {
            return Err(ReasonCode::PROPERTIES_TOO_BIG.into());
        }
        let length = (put.header.len() as u64)
            .saturating_add(put.body.len() as u64)
            .saturating_add(descriptor.properties.length() as u64);
        if route.remote.is_none() && length > u64::from(queue.max_message_length) {
            return Err(Failure::of(ReasonCode::MSG_TOO_BIG_FOR_Q, &queue.base.name));
        }
        if length > u64::from(self.qmgr.attributes.max_message_length) {
            return Err(ReasonCode::MSG_TOO_BIG_FOR_Q_MGR.into());
        }
        if descriptor.message_id.is_none() {
            descriptor.message_id = self.next_message_id();
        }
        if put.options.new_correlation_id {
            descriptor.correlation_id = CorrelationId::new(*self.next_message_id().as_bytes());
        }
        let mut done = PutDone {
            message_id: descriptor.message_id,
            correlation_id: descriptor.correlation_id,
            group_id: descriptor.group_id,
            message_sequence_number: descriptor.message_sequence_number,
            warning: if put.options.priority_exceeds_maximum {
                ReasonCode::PRIORITY_EXCEEDS_MAXIMUM
            } else {
                ReasonCode::NONE
            },
            resolved_queue: queue.base.name.to_string(),
            resolved_queue_manager: self.qmgr.attributes.name.to_string(),
        };
        let message = match &route.remote {
            None => Message {
                descriptor,
                header: put.header,
                body: put.body,
            },
            Some((remote_queue, remote_queue_manager)) => {
                done.resolved_queue = remote_queue.to_string();
                done.resolved_queue_manager = remote_queue_manager.to_string();
                with_transmission_header(
                    descriptor,
                    &put.header,
                    put.body,
                    (remote_queue, remote_queue_manager),
                    step,
                )
            }
        };
        if let Err(reason) = self.check_room(queue, message.data_length() as u64) {
            if reason == ReasonCode::Q_FULL {
                self.report_full(step, queue.base.id);
            }
            return Err(Failure::of(reason, &queue.base.name));
        }
        Ok(Checked {
            queue: queue.base.id,
            message,
            done,
        })
    }

    /// A reply-to queue without queue manager is one that this queue manager knows: its names are put in.
    ///
    /// Source: IBM MQ, "How to create queue manager and reply-to aliases".
    fn set_reply_to(&self, descriptor: &mut MessageDescriptor) {
        if descriptor.reply_to_queue.is_empty() || !descriptor.reply_to_queue_manager.is_empty() {
            return;
        }
        match QueueName::new(&descriptor.reply_to_queue) {
            Ok(name) => {
                let (queue, queue_manager) = self.qmgr.resolve_reply_to(&name, None);
                descriptor.reply_to_queue = queue.to_string();
                descriptor.reply_to_queue_manager = queue_manager.to_string();
            }
            // No name of a queue; IBM MQ leaves the check to whoever replies.
            Err(_) => {
                descriptor.reply_to_queue_manager = self.qmgr.attributes.name.to_string();
            }
        }
    }

    fn put_in_unit(
        &mut self,
        unit: UnitOfWorkId,
        queue: ObjectId,
        message: Message,
        bytes: u64,
        write_bytes: u64,
    ) {
        let sequence = self.next_sequence();
        let entry = new_entry(&message, sequence, State::Uncommitted);
        self.insert(queue, sequence, entry, Some(Arc::new(message)));
        self.add_put(unit, queue, sequence, bytes, write_bytes);
    }

    /// Puts a message that is visible as soon as it is durable.
    fn put_now(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        message: Message,
        token: Option<UnitOfWorkId>,
    ) -> Position {
        let sequence = self.next_sequence();
        let entry = new_entry(&message, sequence, State::Available);
        let outcome = token.map(|id| UnitOfWorkRow {
            id,
            outcome: UnitOfWorkOutcome::Committed,
            time: step.now,
            message_id: Some(entry.message_id),
        });
        let mut changes = Vec::new();
        if entry.is_persistent() {
            let row = row_of(&message, entry.body);
            let body = Some(message.body.clone());
            self.changes_of_put(queue, sequence, row, body, &mut changes);
            if let Some(row) = &outcome {
                changes.push(Change::SetUnitOfWork(row.clone()));
            }
        }
        let position = self.write_any(step, changes);
        if let Some(row) = outcome {
            self.remember_outcome(row, position, position > Position::ZERO);
        }
        if let Some(q) = self.queue(queue) {
            q.last_put = Some(step.now);
        }
        self.insert_shown(queue, sequence, entry, Arc::new(message), position);
        position
    }

    /// Puts a message that the queue manager itself made, outside any unit of work, which shows what `after` made; the caller has
    /// checked that it fits.
    pub(crate) fn put_made(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        message: Message,
        after: Position,
    ) -> Position {
        let sequence = self.next_sequence();
        let entry = new_entry(&message, sequence, State::Available);
        let mut changes = Vec::new();
        if entry.is_persistent() {
            let row = row_of(&message, entry.body);
            let body = Some(message.body.clone());
            self.changes_of_put(queue, sequence, row, body, &mut changes);
        }
        let position = self.write_any(step, changes).max(after);
        if let Some(q) = self.queue(queue) {
            q.last_put = Some(step.now);
        }
        self.insert_shown(queue, sequence, entry, Arc::new(message), position);
        position
    }
}

pub(crate) fn new_entry(message: &Message, sequence: Sequence, state: State) -> Entry {
    let body = usual_body(sequence, message.descriptor.persistence);
    let length = u32::try_from(message.data_length()).unwrap_or(u32::MAX);
    entry_of(&message.descriptor, body, length, state)
}

fn with_transmission_header(
    descriptor: MessageDescriptor,
    header: &Bytes,
    body: Bytes,
    (queue, queue_manager): (&QueueName, &QueueManagerName),
    step: &Step<'_>,
) -> Message {
    let mut outer = descriptor.clone();
    // Its group is that of the message in it, on the queue where it goes.
    outer.leave_group();
    outer.message_flags = 0;
    let transmission = TransmissionHeader {
        remote_queue: queue.to_string(),
        remote_queue_manager: queue_manager.to_string(),
        descriptor,
    }
    .to_bytes(step.now);
    MessageDescriptor::FORMAT_TRANSMISSION_HEADER.clone_into(&mut outer.format);
    outer.encoding = MessageDescriptor::ENCODING_LITTLE_ENDIAN;
    outer.coded_character_set_id = MessageDescriptor::CCSID_UTF8;
    let header = if header.is_empty() {
        transmission
    } else {
        [&transmission[..], &header[..]].concat().into()
    };
    Message {
        descriptor: outer,
        header,
        body,
    }
}

/// What a descriptor must be, whatever the queue.
fn check_descriptor(d: &MessageDescriptor) -> Result<(), Failure> {
    let too_long = d.reply_to_queue.len() > QueueName::LENGTH_MAX
        || d.reply_to_queue_manager.len() > QueueManagerName::LENGTH_MAX
        || d.user_identifier.len() > 12
        || d.application_identity_data.len() > 32
        || d.put_application_name.len() > 28
        || d.application_origin_data.len() > 4;
    if too_long {
        return Err(ReasonCode::MD_ERROR.into());
    }
    d.check_segmentation()?;
    if d.format.len() > 8 {
        return Err(ReasonCode::FORMAT_ERROR.into());
    }
    if MessageType::new(d.message_type.get()).is_none() {
        return Err(ReasonCode::MSG_TYPE_ERROR.into());
    }
    let wants_answer = d.message_type == MessageType::REQUEST
        || [
            d.report.exception(),
            d.report.expiration(),
            d.report.confirm_on_arrival(),
            d.report.confirm_on_delivery(),
        ] != [RequestedReport::No; 4];
    if !d.report.is_consistent() {
        return Err(ReasonCode::REPORT_OPTIONS_ERROR.into());
    }
    if wants_answer && d.reply_to_queue.is_empty() {
        return Err(ReasonCode::MISSING_REPLY_TO_Q.into());
    }
    Ok(())
}
