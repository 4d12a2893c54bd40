//! What the engine reports: log lines, and triggers for the channel initiator.

use ferrymq_engine::Event;
use ferrymq_types::{AccountReason, ChannelName, QueueManagerName, QueueName};
use tokio::sync::mpsc;
use tracing::{debug, error, info, warn};

/// A transmission queue has a message and no channel has it open.
#[derive(Debug)]
pub(crate) struct Triggered {
    pub(crate) queue: QueueName,
    /// `TRIGDATA`.
    pub(crate) channel: Option<ChannelName>,
}

/// Writes events to the log and passes triggers on, until the engine has stopped.
pub(crate) async fn run(
    name: QueueManagerName,
    mut events: mpsc::UnboundedReceiver<Event>,
    triggers: mpsc::UnboundedSender<Triggered>,
) {
    while let Some(event) = events.recv().await {
        match event {
            Event::TransmissionQueueTriggered { queue, channel } => {
                // A failure means that the channel initiator has stopped.
                drop(triggers.send(Triggered { queue, channel }));
            }
            Event::Accounted(entry) => {
                let to = entry.to.as_deref().unwrap_or("nowhere");
                let (level_is_warn, reason) = match entry.reason {
                    AccountReason::Expired | AccountReason::Cleared => (false, None),
                    AccountReason::BackedOut => (true, None),
                    AccountReason::DeadLettered(reason) | AccountReason::Discarded(reason) => {
                        (true, Some(reason))
                    }
                };
                let reason = reason.map(|r| r.to_string()).unwrap_or_default();
                if level_is_warn {
                    info!(
                        id = "FMQ9020W", qmgr = %name, message_id = %entry.message_id,
                        from = %entry.from, to, cause = %entry.reason, reason, who = %entry.who,
                        "a message left its queue"
                    );
                } else {
                    debug!(
                        id = "FMQ9020I", qmgr = %name, message_id = %entry.message_id,
                        from = %entry.from, to, cause = %entry.reason, who = %entry.who,
                        "a message left its queue"
                    );
                }
            }
            Event::Damaged {
                queue,
                sequence,
                what,
            } => error!(
                id = "AMQ8149E", qmgr = %name, queue = %queue, position = %sequence,
                "a message is damaged and stays where it is: {what}"
            ),
            Event::LongSelection { queue, examined } => {
                info!(
                    id = "FMQ9025I", qmgr = %name, queue = %queue, examined,
                    "a selector has passed over many messages"
                );
            }
            Event::QueueFull { queue } => {
                warn!(id = "FMQ9021W", qmgr = %name, queue = %queue, "the queue is full");
            }
            Event::EventDropped { queue, reason } => warn!(
                id = "FMQ9025W", qmgr = %name, queue, reason = %reason,
                "the event queue does not take an event message: it and those that follow are dropped"
            ),
            Event::EventsDropped { queue, dropped } => warn!(
                id = "FMQ9026W", qmgr = %name, queue, dropped,
                "the event queue takes event messages again"
            ),
            Event::TriggerNotDelivered {
                queue,
                initiation_queue,
                reason,
                dead_lettered,
            } => {
                let to = if dead_lettered {
                    "the dead-letter queue"
                } else {
                    "nowhere"
                };
                warn!(
                    id = "FMQ9024W", qmgr = %name, queue = %queue,
                    initiation_queue = %initiation_queue, reason = %reason, to,
                    "the initiation queue does not take a trigger message"
                );
            }
            Event::PoisonHeld {
                queue,
                sequence,
                message_id,
                reason,
            } => error!(
                id = "FMQ9023E", qmgr = %name, queue = %queue, position = %sequence,
                message_id = %message_id, reason = %reason,
                "a message reached BOTHRESH and neither the backout queue nor the dead-letter queue takes it: it stays and gets pass it over"
            ),
            Event::UnknownQueue {
                queue,
                name: queue_name,
                messages,
            } => warn!(
                id = "FMQ9022W", qmgr = %name, queue = %queue_name, object = %queue, messages,
                "messages are stored for a queue that no definition knows; they are kept and not served"
            ),
        }
    }
}
