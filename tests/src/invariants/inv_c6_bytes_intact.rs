//! C6: payload, descriptor, ids and put time come out as they were put, on every path.

use ferrymq_types::MessageDescriptor;

use crate::invariants::{Check, violated};
use crate::oracle::{Put, Sight};

/// What every put of the simulator has as its format.
pub(crate) const FORMAT: &str = "SIM";

pub(crate) fn seen(put: &Put, sight: &Sight<'_>) -> Check {
    let (m, d) = (sight.message, &sight.message.descriptor);
    let wrapped = [
        MessageDescriptor::FORMAT_DEAD_LETTER_HEADER,
        MessageDescriptor::FORMAT_TRANSMISSION_HEADER,
    ]
    .contains(&d.format.as_str());
    // Put times travel in hundredths of a second.
    let hundredths = |t: ferrymq_types::Timestamp| t.as_millis() / 10;
    let what = if m.body != put.body {
        format!("{} bytes that are others", m.body.len())
    } else if wrapped == m.header.is_empty() {
        format!(
            "format {:?} and {} bytes of header",
            d.format,
            m.header.len()
        )
    } else if !wrapped && d.format != FORMAT {
        format!("format {:?}", d.format)
    } else if d.persistence != put.persistence || d.priority != put.priority {
        format!("{:?} and priority {}", d.persistence, d.priority)
    } else if !put.message_id.is_none() && d.message_id != put.message_id {
        format!("message id {}", d.message_id)
    } else if put
        .put_time
        .is_some_and(|t| hundredths(t) != hundredths(d.put_time))
    {
        format!("put time {} instead of {:?}", d.put_time, put.put_time)
    } else {
        return Ok(());
    };
    violated(
        "inv_c6_bytes_intact",
        format!("{} has {what} on {}", put.name(), sight.queue),
    )
}
