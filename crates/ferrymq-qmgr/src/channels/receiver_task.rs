//! Runs one incoming conversation: performs the effects of its machine, in their order, and adds nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrymq_channel::{Answer, AskId, ReceiverEffect, ReceiverInput, ReceiverMca, ReceiverTimer};
use ferrymq_proto::channel_v1 as pb;
use ferrymq_types::Timestamp;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::channels::wire::{self, Assembler};
use crate::channels::{StatusCell, report};
use crate::handle::{Asked, Connection};

/// How long a frame may wait for the sender to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// A conversation, from its bind on.
pub(crate) struct Conversation {
    pub(crate) machine: ReceiverMca,
    pub(crate) connection: Connection,
    pub(crate) frames: Streaming<pb::RunRequest>,
    pub(crate) assembler: Assembler,
    pub(crate) responses: mpsc::Sender<Result<pb::RunResponse, Status>>,
    /// Stop requests.
    pub(crate) inputs: mpsc::UnboundedReceiver<ReceiverInput>,
    pub(crate) status: StatusCell,
}

type Answering = BoxFuture<'static, (AskId, Option<Answer>)>;

struct Running {
    conversation: Conversation,
    timers: BTreeMap<ReceiverTimer, Timestamp>,
    answers: FuturesUnordered<Answering>,
    asked: BTreeMap<AskId, Asked>,
    connected: bool,
}

/// Runs a conversation to its end. `first` is the bind.
pub(crate) async fn run(conversation: Conversation, first: ReceiverInput) {
    let mut running = Running {
        conversation,
        timers: BTreeMap::new(),
        answers: FuturesUnordered::new(),
        asked: BTreeMap::new(),
        connected: true,
    };
    let mut input = first;
    loop {
        let mut effects = Vec::new();
        let now = running
            .conversation
            .connection
            .queue_manager()
            .clock()
            .now();
        running
            .conversation
            .machine
            .handle(now, input, &mut effects);
        for effect in effects {
            running.perform(effect).await;
        }
        running
            .conversation
            .status
            .set(running.conversation.machine.status());
        if running.conversation.machine.is_closed() {
            // Dropping the connection backs out what was not committed.
            return;
        }
        input = running.next().await;
    }
}

impl Running {
    async fn next(&mut self) -> ReceiverInput {
        loop {
            let clock = self.conversation.connection.queue_manager().clock();
            let timer = self
                .timers
                .iter()
                .min_by_key(|(_, at)| **at)
                .map(|(t, at)| (*t, *at));
            let at = timer.map(|(_, at)| clock.instant(at));
            let wakeup = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let reading = self.connected && self.conversation.machine.wants_frames();
            tokio::select! {
                Some(input) = self.conversation.inputs.recv() => return input,
                Some((ask, answer)) = self.answers.next(), if !self.answers.is_empty() => {
                    if let Some(asked) = self.asked.remove(&ask) {
                        asked.answered();
                    }
                    if let Some(result) = answer {
                        return ReceiverInput::Answered { ask, result };
                    }
                }
                frame = self.conversation.frames.next(), if reading => {
                    if let Some(input) = self.frame(frame, clock.now()) {
                        return input;
                    }
                }
                () = wakeup => {
                    if let Some((timer, _)) = timer {
                        self.timers.remove(&timer);
                        return ReceiverInput::TimerFired(timer);
                    }
                }
            }
        }
    }

    fn frame(
        &mut self,
        frame: Option<Result<pb::RunRequest, Status>>,
        now: Timestamp,
    ) -> Option<ReceiverInput> {
        let text = match frame {
            Some(Ok(frame)) => match self.conversation.assembler.take(frame, now) {
                Ok(frame) => return frame.map(ReceiverInput::FrameReceived),
                Err(error) => error.to_string(),
            },
            Some(Err(status)) => wire::explain(&status),
            None => "the partner closed the connection".to_owned(),
        };
        self.connected = false;
        Some(ReceiverInput::Disconnected { text })
    }

    async fn perform(&mut self, effect: ReceiverEffect) {
        match effect {
            ReceiverEffect::Send(frame) => {
                ferrymq_store::crash_point("channel.before_confirm");
                let frame = Ok(wire::receiver_to_wire(frame));
                let responses = &self.conversation.responses;
                // A failure shows as the end of the frames that come in.
                drop(tokio::time::timeout(SEND_TIMEOUT, responses.send(frame)).await);
                ferrymq_store::crash_point("channel.after_confirm");
            }
            ReceiverEffect::Disconnect => self.connected = false,
            ReceiverEffect::Ask { ask, request } => {
                match self.conversation.connection.start(request).await {
                    Ok((asked, answer)) => {
                        self.asked.insert(ask, asked);
                        self.answers
                            .push(async move { (ask, answer.await.ok()) }.boxed());
                    }
                    Err(failure) => {
                        self.answers
                            .push(async move { (ask, Some(Err(failure))) }.boxed());
                    }
                }
            }
            ReceiverEffect::SetTimer { timer, at } => {
                self.timers.insert(timer, at);
            }
            ReceiverEffect::CancelTimer { timer } => {
                self.timers.remove(&timer);
            }
            ReceiverEffect::StateChanged(_) => {
                self.conversation
                    .status
                    .set(self.conversation.machine.status());
            }
            ReceiverEffect::Report(event) => {
                let status = self.conversation.machine.status();
                report(
                    self.conversation.connection.queue_manager().name(),
                    &status.channel,
                    &status.connection_name,
                    &event,
                );
            }
        }
    }
}
