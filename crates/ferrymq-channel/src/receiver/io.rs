//! What goes into a receiver and what comes out.

use ferrymq_engine::Request;
use ferrymq_types::Timestamp;

use crate::{Answer, AskId, ChannelState, Event, ReceiverFrame, SenderFrame, StopMode, StopStatus};

/// What happened.
#[derive(Debug)]
pub enum ReceiverInput {
    /// A frame came in; the first one is the bind. Read frames only while [`crate::ReceiverMca::wants_frames`].
    FrameReceived(SenderFrame),
    /// The queue manager answered.
    Answered {
        /// Which request.
        ask: AskId,
        /// The answer.
        result: Answer,
    },
    /// The time that a timer was set to has come.
    TimerFired(ReceiverTimer),
    /// The connection is gone.
    Disconnected {
        /// Why, for the operator.
        text: String,
    },
    /// An operator, or the end of the queue manager, wants it to end. That the channel stays stopped is the caller's to
    /// remember ([`ferrymq_engine::Request::SetChannelStopped`]), since there may be no conversation to tell.
    StopRequested {
        /// How.
        mode: StopMode,
        /// What the channel is afterwards.
        status: StopStatus,
    },
}

/// What a receiver waits for. Setting one again moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReceiverTimer {
    /// `MRTMR`: the next try to put a message.
    MessageRetry,
    /// While it is busy, the partner is told that it lives.
    Heartbeat,
    /// The partner is dead if it is silent until then.
    Silence,
    /// The partner must have ended a conversation that is being stopped by then.
    Drain,
}

/// What is to be done, in order.
#[derive(Debug)]
pub enum ReceiverEffect {
    /// Send this frame.
    Send(ReceiverFrame),
    /// End the connection after what was sent: the conversation is over, and the machine with it. Its connection to the queue
    /// manager ends too ([`ferrymq_engine::Input::Disconnected`]).
    Disconnect,
    /// Ask the queue manager, in the name of a connection of this conversation's own, and come back with `Answered`.
    Ask {
        /// The number of the request.
        ask: AskId,
        /// The request.
        request: Request,
    },
    /// Come back with `TimerFired` at this time, or at once if it has passed.
    SetTimer {
        /// The timer.
        timer: ReceiverTimer,
        /// When.
        at: Timestamp,
    },
    /// A timer is no longer wanted.
    CancelTimer {
        /// The timer.
        timer: ReceiverTimer,
    },
    /// The conversation is in another state. The last one is `INACTIVE`, or `STOPPED` after a stop that asked for it.
    StateChanged(ChannelState),
    /// Tell operators.
    Report(Event),
}
