//! What goes into a sender and what comes out.

use ferrymq_engine::Request;
use ferrymq_types::Timestamp;

use crate::{
    Address, Answer, AskId, ChannelState, Event, ReceiverFrame, SenderConfig, SenderFrame,
    StopMode, StopStatus,
};

/// What happened.
#[derive(Debug)]
pub enum SenderInput {
    /// An operator, or the start of the queue manager, wants it to run.
    StartRequested,
    /// An operator, or the end of the queue manager, wants it to stop.
    StopRequested {
        /// How.
        mode: StopMode,
        /// What it is afterwards.
        status: StopStatus,
    },
    /// A message waits on its transmission queue and no channel has the queue open.
    Triggered,
    /// The definition changed; the next start, or the next try, uses this one. `DEADQ` counts at once.
    DefinitionChanged(Box<SenderConfig>),
    /// The connection that [`SenderEffect::Connect`] asked for is there, and its server is who it must be (`SSLPEER`).
    Connected {
        /// The subject of the partner's certificate; empty without TLS.
        peer: String,
    },
    /// The connection that [`SenderEffect::Connect`] asked for could not be made.
    ConnectFailed {
        /// Why, for the operator.
        text: String,
        /// Whether it is the partner's refusal (TLS, names) rather than a host that cannot be reached.
        refused: bool,
    },
    /// A frame came in.
    FrameReceived(ReceiverFrame),
    /// The connection is gone. Never after [`SenderEffect::Disconnect`].
    Disconnected {
        /// Why, for the operator.
        text: String,
    },
    /// The queue manager answered.
    Answered {
        /// Which request.
        ask: AskId,
        /// The answer.
        result: Answer,
    },
    /// The time that a timer was set to has come.
    TimerFired(SenderTimer),
}

/// What a sender waits for. Setting one again moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SenderTimer {
    /// The next try to connect.
    Retry,
    /// The partner must have accepted the conversation by then.
    Establish,
    /// `HBINT`.
    Heartbeat,
    /// The partner is dead if it is silent until then.
    Silence,
}

/// What is to be done, in order.
#[derive(Debug)]
pub enum SenderEffect {
    /// Connect to this address, and come back with `Connected` or `ConnectFailed`. What was connected before is gone.
    Connect {
        /// The address.
        address: Address,
    },
    /// Send this frame.
    Send(SenderFrame),
    /// End the connection, or the try to make one, after what was sent. Nothing of it comes in afterwards.
    Disconnect,
    /// Ask the queue manager, in the name of one connection for the whole life of this machine, and come back with `Answered`.
    Ask {
        /// The number of the request.
        ask: AskId,
        /// The request.
        request: Request,
    },
    /// Nobody waits for the answer to a get any more: hand [`ferrymq_engine::Input::Cancelled`] to the queue manager. If the
    /// answer is under way already it still comes in.
    Cancel {
        /// The number of the request.
        ask: AskId,
    },
    /// Come back with `TimerFired` at this time, or at once if it has passed.
    SetTimer {
        /// The timer.
        timer: SenderTimer,
        /// When.
        at: Timestamp,
    },
    /// A timer is no longer wanted.
    CancelTimer {
        /// The timer.
        timer: SenderTimer,
    },
    /// The channel is in another state.
    StateChanged(ChannelState),
    /// Tell operators.
    Report(Event),
}
