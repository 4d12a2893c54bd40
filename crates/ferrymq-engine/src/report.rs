//! Report messages: confirmation of arrival and of delivery, and of expiry, each in the unit of work of what it reports.
//!
//! Source: IBM MQ, "Report options and message flags", "Report (MQLONG)", "Feedback (MQLONG)".

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use ferrymq_objects::Usage;
use ferrymq_types::{
    AccountReason, ApplicationType, CorrelationId, DeadLetterHeader, Message, MessageDescriptor,
    MessageId, MessageType, ObjectId, QueueName, ReasonCode, ReportOptions, RequestedReport,
    Sequence, Timestamp, TransmissionHeader,
};

use crate::account::Note;
use crate::engine::Step;
use crate::memory::memory_bytes;
use crate::messages::ROW_BYTES;
use crate::put::{Checked, new_entry};
use crate::queue::State;
use crate::{Engine, ObjectName, Put};

/// Bytes of application data in a report `WITH_DATA`.
pub const REPORT_DATA_LENGTH: usize = 100;

/// The report about a message, without where it goes. `None` if none is asked for.
///
/// The message id is new and the correlation id is the message's id, unless the putter asked to pass them. Priority, persistence
/// and user are the message's. It never expires and asks for nothing, unless `MQRO_PASS_DISCARD_AND_EXPIRY` passes those two
/// on.
///
/// Source: IBM MQ, "Report options and message flags", "Report (MQLONG)".
#[must_use]
pub fn report_about(
    original: &Message,
    requested: RequestedReport,
    feedback: u32,
    made_by: &str,
    now: Timestamp,
) -> Option<Message> {
    let from = &original.descriptor;
    // On its way to another queue manager a message has a header in front that is not the application's.
    let (above, described) = application_part(original, now);
    let (header, body) = match requested {
        RequestedReport::No => return None,
        RequestedReport::WithoutData => (Bytes::new(), Bytes::new()),
        RequestedReport::WithData => (Bytes::new(), first_bytes(&above, &original.body)),
        RequestedReport::WithFullData => (above, original.body.clone()),
    };
    let passes = from.report.pass_discard_and_expiry();
    let mut descriptor = MessageDescriptor {
        report: if passes {
            from.report.discard_alone()
        } else {
            ReportOptions::NONE
        },
        message_type: MessageType::REPORT,
        expires_at: if passes { from.expires_at } else { None },
        feedback,
        priority: from.priority,
        persistence: from.persistence,
        message_id: if from.report.pass_message_id() {
            from.message_id
        } else {
            MessageId::NONE
        },
        correlation_id: if from.report.pass_correlation_id() {
            from.correlation_id
        } else {
            CorrelationId::new(*from.message_id.as_bytes())
        },
        // The identity is that of whoever put the original; the queue manager is the origin.
        user_identifier: from.user_identifier.clone(),
        accounting_token: from.accounting_token,
        application_identity_data: from.application_identity_data.clone(),
        put_application_type: ApplicationType::QUEUE_MANAGER,
        put_application_name: made_by.chars().take(28).collect(),
        put_time: now,
        // IBM MQ copies those with MQCOPY_REPORT, which MQCOPY_DEFAULT contains.
        properties: from.properties.clone(),
        ..MessageDescriptor::default()
    };
    if !header.is_empty() || !body.is_empty() {
        descriptor.format.clone_from(&described.format);
        descriptor.encoding = described.encoding;
        descriptor.coded_character_set_id = described.coded_character_set_id;
    }
    Some(Message {
        descriptor,
        header,
        body,
    })
}

/// The headers that are the application's, and the descriptor that describes them or the body.
fn application_part(message: &Message, now: Timestamp) -> (Bytes, MessageDescriptor) {
    if message.descriptor.format == MessageDescriptor::FORMAT_TRANSMISSION_HEADER
        && let Ok((transmission, length)) = TransmissionHeader::read(&message.header, now)
    {
        let above = message.header.slice(length.min(message.header.len())..);
        return (above, transmission.descriptor);
    }
    (message.header.clone(), message.descriptor.clone())
}

fn first_bytes(header: &Bytes, body: &Bytes) -> Bytes {
    let head = header.len().min(REPORT_DATA_LENGTH);
    let rest = REPORT_DATA_LENGTH.saturating_sub(head).min(body.len());
    if head == 0 {
        return body.slice(..rest);
    }
    let mut data = BytesMut::with_capacity(REPORT_DATA_LENGTH);
    data.extend_from_slice(&header.slice(..head));
    data.extend_from_slice(&body.slice(..rest));
    data.freeze()
}

/// A queue name for an account entry, from text that nobody checked: what no name may have becomes `_`.
#[must_use]
pub fn account_name(queue: &str) -> QueueName {
    let clean: String = queue
        .trim_end_matches(' ')
        .chars()
        .map(|c| {
            let fine = c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '%');
            if fine { c } else { '_' }
        })
        .take(QueueName::LENGTH_MAX)
        .collect();
    let text = if clean.is_empty() { "_" } else { &clean };
    QueueName::new(text).expect("1 to 48 characters, all allowed")
}

/// What headers that a queue manager puts in front add to a report, in bytes; rounded up.
const HEADERS_BYTES: u64 = 1024;

/// The most that a report adds to a write set, in bytes.
pub(crate) fn report_bytes_max(requested: RequestedReport, length: u64) -> u64 {
    let data = match requested {
        RequestedReport::No => return 0,
        RequestedReport::WithoutData => 0,
        RequestedReport::WithData => REPORT_DATA_LENGTH as u64,
        RequestedReport::WithFullData => length,
    };
    data.saturating_add(ROW_BYTES).saturating_add(HEADERS_BYTES)
}

/// A report that is ready, or why there is none.
#[derive(Debug)]
pub(crate) enum Report {
    /// It goes there.
    To {
        queue: ObjectId,
        message: Box<Message>,
    },
    /// Neither the reply-to queue nor the dead-letter queue takes it: an account entry says so.
    Nowhere(Note),
}

impl Report {
    /// Bytes that it adds to a write set.
    pub(crate) fn write_bytes(&self) -> u64 {
        match self {
            Self::To { message, .. } => (message.stored_length() as u64).saturating_add(ROW_BYTES),
            Self::Nowhere(_) => ROW_BYTES,
        }
    }
}

/// A report that waits for the end of a unit of work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingReport {
    pub(crate) queue: ObjectId,
    pub(crate) sequence: Sequence,
    /// Bytes in memory, and in the write set.
    pub(crate) bytes: u64,
    pub(crate) write_bytes: u64,
}

impl Engine {
    /// Whether arrivals and deliveries on a queue are reported: not on a transmission queue, where messages only pass, and not
    /// on the dead-letter queue, where they did not arrive.
    pub(crate) fn is_destination(&self, queue: ObjectId) -> bool {
        let Some(q) = self.queues.get(&queue) else {
            return false;
        };
        let normal = q.definition.as_ref().is_some_and(|d| match d.usage {
            Usage::Normal => true,
            Usage::Transmission => false,
        });
        normal && self.qmgr.attributes.dead_letter_queue_name.as_ref() != Some(&q.name)
    }

    /// Makes the report about a message, if one is asked for, and finds where it goes: to the reply-to queue, else to the
    /// dead-letter queue. `beside` is what its cause takes in the same write set: where both do not fit in one, the report is
    /// made without data (rule U20).
    pub(crate) fn make_report(
        &mut self,
        step: &mut Step<'_>,
        original: &Message,
        requested: RequestedReport,
        feedback: u32,
        beside: u64,
    ) -> Option<Report> {
        if requested == RequestedReport::No {
            return None;
        }
        let length = original.data_length() as u64;
        let properties = original.descriptor.properties.length() as u64;
        let both = report_bytes_max(requested, length)
            .saturating_add(properties)
            .saturating_add(beside);
        let requested = if both > self.limits.write_set_bytes_max {
            RequestedReport::WithoutData
        } else {
            requested
        };
        let made_by = self.qmgr.attributes.name.to_string();
        let message = report_about(original, requested, feedback, &made_by, step.now)?;
        let (queue, queue_manager) = (
            original.descriptor.reply_to_queue.as_str(),
            original.descriptor.reply_to_queue_manager.as_str(),
        );
        let refusal = match self.report_to(step, &message, queue, queue_manager) {
            Ok(checked) => return Some(checked),
            Err(reason) => reason,
        };
        let mut descriptor = message.descriptor;
        let header = DeadLetterHeader::wrap(
            &mut descriptor,
            &message.header,
            refusal,
            queue,
            queue_manager,
            &made_by,
            step.now,
        );
        let dead = Message {
            descriptor,
            header,
            body: message.body,
        };
        let durable = match dead.descriptor.persistence {
            ferrymq_types::Persistence::Persistent => true,
            ferrymq_types::Persistence::NonPersistent => false,
        };
        let length = dead.data_length() as u64;
        let target = self.dead_letter_target(ObjectId::ZERO, length);
        let fits = if durable && !self.puts_allowed {
            Err(ReasonCode::STORAGE_MEDIUM_FULL)
        } else {
            self.check_memory(dead.descriptor.persistence, memory_bytes(&dead))
        };
        match target.and_then(|target| fits.map(|()| target)) {
            Ok(target) => {
                let mut message = Box::new(dead);
                if message.descriptor.message_id.is_none() {
                    message.descriptor.message_id = self.next_message_id();
                }
                Some(Report::To {
                    queue: target.base.id,
                    message,
                })
            }
            Err(_) => Some(Report::Nowhere(Note {
                message_id: original.descriptor.message_id,
                from: account_name(queue),
                to: None,
                reason: AccountReason::Discarded(refusal),
                who: format!("report of queue manager {made_by}"),
                durable,
            })),
        }
    }

    fn report_to(
        &mut self,
        step: &mut Step<'_>,
        message: &Message,
        queue: &str,
        queue_manager: &str,
    ) -> Result<Report, ReasonCode> {
        let name = ObjectName::parse(queue, queue_manager)?;
        let qmgr = Arc::clone(&self.qmgr);
        let checked = Self::route(&qmgr, &name).and_then(|route| {
            let put = Put::passing_on(message, name);
            self.check_put(step, put, &route)
        });
        let Checked { queue, message, .. } = checked.map_err(|failure| failure.reason)?;
        self.check_memory(message.descriptor.persistence, memory_bytes(&message))?;
        Ok(Report::To {
            queue,
            message: Box::new(message),
        })
    }

    /// Adds a report that nobody sees before the unit of work of what it reports ends.
    pub(crate) fn add_pending_report(
        &mut self,
        queue: ObjectId,
        message: Message,
    ) -> PendingReport {
        let bytes = memory_bytes(&message);
        let write_bytes = (message.stored_length() as u64).saturating_add(ROW_BYTES);
        let sequence = self.next_sequence();
        let entry = new_entry(&message, sequence, State::Uncommitted);
        self.insert(queue, sequence, entry, Some(Arc::new(message)));
        PendingReport {
            queue,
            sequence,
            bytes,
            write_bytes,
        }
    }
}
