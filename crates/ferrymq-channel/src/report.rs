//! Exception reports and dead letters as puts: pure, the MCA asks for them.

use bytes::{Bytes, BytesMut};
use ferrymq_engine::{Context, Put};
use ferrymq_types::{
    ChannelName, CorrelationId, DeadLetterHeader, ExceptionReport, Message, MessageDescriptor,
    MessageId, MessageType, QueueManagerName, QueueName, ReasonCode, ReportOptions, Timestamp,
    UnitOfWorkId,
};

/// Bytes of application data in a report `WITH_DATA`.
pub const REPORT_DATA_LENGTH: usize = 100;

/// `MQRO_PASS_DISCARD_AND_EXPIRY`.
const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;
/// `MQRO_DISCARD_MSG`.
const DISCARD_MSG: u32 = 0x0800_0000;

/// The exception report about a message, without where it goes. `None` if none is asked for.
///
/// Feedback is the reason code. The message id is new and the correlation id is the message's id, unless the putter asked to
/// pass them. Priority, persistence and user are the message's. It never expires and asks for nothing, unless
/// `MQRO_PASS_DISCARD_AND_EXPIRY` passes those two on.
///
/// Source: IBM MQ, "Report options and message flags", "Report (MQLONG)".
#[must_use]
pub fn exception_report(
    original: &Message,
    reason: ReasonCode,
    channel: &ChannelName,
    now: Timestamp,
) -> Option<Message> {
    let from = &original.descriptor;
    let (header, body) = match from.report.exception() {
        ExceptionReport::No => return None,
        ExceptionReport::WithoutData => (Bytes::new(), Bytes::new()),
        ExceptionReport::WithData => (Bytes::new(), first_bytes(original)),
        ExceptionReport::WithFullData => (original.header.clone(), original.body.clone()),
    };
    let passes = from.report.bits() & PASS_DISCARD_AND_EXPIRY != 0;
    let mut descriptor = MessageDescriptor {
        report: if passes {
            ReportOptions::from_bits(from.report.bits() & DISCARD_MSG)
        } else {
            ReportOptions::NONE
        },
        message_type: MessageType::REPORT,
        expires_at: if passes { from.expires_at } else { None },
        feedback: reason.get(),
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
        user_identifier: from.user_identifier.clone(),
        put_application_name: channel.as_str().to_owned(),
        put_time: now,
        ..MessageDescriptor::default()
    };
    if !header.is_empty() || !body.is_empty() {
        descriptor.format.clone_from(&from.format);
        descriptor.encoding = from.encoding;
        descriptor.coded_character_set_id = from.coded_character_set_id;
    }
    Some(Message {
        descriptor,
        header,
        body,
    })
}

fn first_bytes(message: &Message) -> Bytes {
    let head = message.header.len().min(REPORT_DATA_LENGTH);
    let rest = REPORT_DATA_LENGTH
        .saturating_sub(head)
        .min(message.body.len());
    if head == 0 {
        return message.body.slice(..rest);
    }
    let mut data = BytesMut::with_capacity(REPORT_DATA_LENGTH);
    data.extend_from_slice(&message.header.slice(..head));
    data.extend_from_slice(&message.body.slice(..rest));
    data.freeze()
}

/// The put that passes a message on as it is, in a unit of work if given.
#[must_use]
pub fn pass_on(
    message: &Message,
    queue: QueueName,
    object_queue_manager: Option<QueueManagerName>,
    syncpoint: Option<UnitOfWorkId>,
) -> Put {
    Put {
        handle: None,
        queue,
        object_queue_manager,
        descriptor: message.descriptor.clone(),
        priority: Some(message.descriptor.priority),
        persistence: Some(message.descriptor.persistence),
        header: message.header.clone(),
        body: message.body.clone(),
        context: Context::SetAll,
        syncpoint,
        token: None,
    }
}

/// The put of a message on the dead-letter queue of this queue manager, with the header that says why and where it was going.
#[must_use]
#[allow(
    clippy::too_many_arguments,
    reason = "what a dead-letter header says, and where it goes"
)]
pub fn dead_letter(
    message: &Message,
    dead_letter_queue: &QueueName,
    reason: ReasonCode,
    destination_queue: &str,
    destination_queue_manager: &str,
    channel: &ChannelName,
    now: Timestamp,
    syncpoint: Option<UnitOfWorkId>,
) -> Put {
    let mut put = pass_on(message, dead_letter_queue.clone(), None, syncpoint);
    put.header = DeadLetterHeader::wrap(
        &mut put.descriptor,
        &message.header,
        reason,
        destination_queue,
        destination_queue_manager,
        channel.as_str(),
        now,
    );
    put
}

/// Where a message is going, from text that nobody checked.
///
/// # Errors
/// 2085 if the queue's name is none, 2087 if the queue manager's is none.
pub fn destination(
    queue: &str,
    queue_manager: &str,
) -> Result<(QueueName, Option<QueueManagerName>), ReasonCode> {
    let name = QueueName::new(queue).map_err(|_| ReasonCode::UNKNOWN_OBJECT_NAME)?;
    let manager = match queue_manager.trim_end_matches(' ') {
        "" => None,
        text => Some(QueueManagerName::new(text).map_err(|_| ReasonCode::UNKNOWN_REMOTE_Q_MGR)?),
    };
    Ok((name, manager))
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
