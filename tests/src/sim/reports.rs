//! Which messages are reports.

use ferrymq_types::{BodyId, Change, MessageDescriptor, MessageType};

/// Whether the queue manager made a message, to report of another one.
pub(crate) fn is_report(descriptor: &MessageDescriptor) -> bool {
    descriptor.message_type == MessageType::REPORT
}

/// The body of a report that a change puts.
pub(crate) fn body_of_report(change: &Change) -> Option<BodyId> {
    match change {
        Change::SetMessage { row, .. } if is_report(&row.descriptor) => Some(row.body),
        _ => None,
    }
}
