//! H4: two ends that keep the rules never disagree about numbers, and never find that the other broke the protocol.

use ferrymq_channel::Event;

use crate::invariants::{Check, violated};

pub(crate) fn reported(qmgr: &str, event: &Event) -> Check {
    // AMQ9207, AMQ9503, AMQ9526.
    if let Event::InvalidData { .. }
    | Event::NegotiationFailed { .. }
    | Event::SequenceError { .. }
    | Event::WrongRemoteType
    | Event::WrongQueueManager { .. }
    | Event::NotDefinedRemotely = event
    {
        return violated(
            "inv_h4_no_disagreement",
            format!("{qmgr} says {}: {event}", event.id()),
        );
    }
    Ok(())
}
