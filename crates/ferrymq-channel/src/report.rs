//! Exception reports and dead letters as puts: pure, the MCA asks for them.

use ferrymq_engine::{ObjectName, Put, report_about};
use ferrymq_types::{
    ChannelName, DeadLetterHeader, Message, QueueName, ReasonCode, Timestamp, UnitOfWorkId,
};

/// The exception report about a message, without where it goes. `None` if none is asked for.
///
/// Feedback is the reason code; all else is as in [`report_about`].
#[must_use]
pub fn exception_report(
    original: &Message,
    reason: ReasonCode,
    channel: &ChannelName,
    now: Timestamp,
) -> Option<Message> {
    let requested = original.descriptor.report.exception();
    report_about(original, requested, reason.get(), channel.as_str(), now)
}

/// The put that passes a message on as it is, in a unit of work if given.
#[must_use]
pub fn pass_on(message: &Message, name: ObjectName, syncpoint: Option<UnitOfWorkId>) -> Put {
    Put {
        syncpoint,
        ..Put::passing_on(message, name)
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
    let mut put = pass_on(
        message,
        ObjectName::local(dead_letter_queue.clone()),
        syncpoint,
    );
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

/// Where a message is going, from the text of its headers: the queue manager's name may be padded with blanks.
///
/// # Errors
/// As [`ObjectName::parse`].
pub fn destination(queue: &str, queue_manager: &str) -> Result<ObjectName, ReasonCode> {
    ObjectName::parse(queue, queue_manager.trim_end_matches(' '))
}
