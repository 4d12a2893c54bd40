//! C3: no get, browse or dump shows a message that nobody put.

use ferrymq_types::{AccountEntry, Message, MessageId};

use crate::invariants::{Violation, violated};
use crate::oracle::{Oracle, Put, Sight, Uid};

const ID: &str = "inv_c3_no_invention";

pub(crate) fn known<'a>(oracle: &'a Oracle, sight: &Sight<'_>) -> Result<&'a Put, Violation> {
    let correlation = &sight.message.descriptor.correlation_id;
    match Uid::read(correlation).and_then(|uid| oracle.puts.get(&uid)) {
        Some(put) => Ok(put),
        None => violated(
            ID,
            format!("nobody put {correlation} that is on {}", sight.queue),
        ),
    }
}

pub(crate) fn accounted(oracle: &Oracle, entry: &AccountEntry) -> Result<Uid, Violation> {
    match oracle.by_message_id.get(&entry.message_id) {
        Some(uid) => Ok(*uid),
        None => violated(ID, format!("nobody put the message of {entry:?}")),
    }
}

/// Which message a report is about.
pub(crate) fn reported(oracle: &Oracle, report: &Message) -> Result<Uid, Violation> {
    let correlation = report.descriptor.correlation_id;
    let id = MessageId::new(*correlation.as_bytes());
    match oracle.by_message_id.get(&id) {
        Some(uid) => Ok(*uid),
        None => violated(ID, format!("nobody put {id} that is reported")),
    }
}
