//! Message channels: tasks that run the machines of `ferrymq-channel`, and the channel initiator that starts them.

mod initiator;
mod ping;
mod receiver_task;
mod sender_task;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};

use ferrymq_channel::{ChannelStatus, Event, Severity};
use ferrymq_types::{ChannelName, QueueManagerName};
use tracing::{error, info, warn};

pub(crate) use initiator::{ChannelCommandError, ChannelInitiator};
pub(crate) use ping::PING_BYTES_MAX;
pub(crate) use receiver_task::{Conversation, run as run_receiver};
pub(crate) use sender_task::Dialer;
pub(crate) use wire::{Assembler, FRAME_BYTES_MAX, close_to_wire, receiver_to_wire, with_causes};

/// The last status that a machine showed, readable by displays.
#[derive(Debug, Clone)]
pub(crate) struct StatusCell(Arc<Mutex<ChannelStatus>>);

impl StatusCell {
    fn new(status: ChannelStatus) -> Self {
        Self(Arc::new(Mutex::new(status)))
    }

    fn set(&self, status: ChannelStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// The status.
    pub(crate) fn get(&self) -> ChannelStatus {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Writes an event of a channel to the log.
fn report(qmgr: &QueueManagerName, channel: &ChannelName, partner: &str, event: &Event) {
    let id = event.id();
    match event.severity() {
        Severity::Information => {
            info!(id = format!("{id}I"), qmgr = %qmgr, channel = %channel, partner, "{event}");
        }
        Severity::Warning => {
            warn!(id = format!("{id}W"), qmgr = %qmgr, channel = %channel, partner, "{event}");
        }
        Severity::Error => {
            error!(id = format!("{id}E"), qmgr = %qmgr, channel = %channel, partner, "{event}");
        }
    }
}
