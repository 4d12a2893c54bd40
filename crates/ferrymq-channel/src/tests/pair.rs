//! A sender and a receiver with their queue managers and the link between them.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use ferrymq_types::Timestamp;

use super::effects::{receiver_line, sender_line};
use super::fake::{ReceiverQueueManager, SenderQueueManager};
use super::{SEED, START, receiver_config, sender_config};
use crate::{
    Answer, AskId, ChannelState, ReceiverConfig, ReceiverEffect, ReceiverFrame, ReceiverInput,
    ReceiverMca, ReceiverTimer, SenderConfig, SenderEffect, SenderFrame, SenderInput, SenderMca,
    SenderTimer, StopMode, StopStatus,
};

#[derive(Debug)]
pub(super) struct Pair {
    pub(super) now: Timestamp,
    pub(super) sender: SenderMca,
    pub(super) receiver: Option<ReceiverMca>,
    pub(super) from: SenderQueueManager,
    pub(super) to: ReceiverQueueManager,
    pub(super) receiver_config: ReceiverConfig,
    /// Every effect of both ends, in order: `S ...` and `R ...`.
    pub(super) log: Vec<String>,
    /// Whether the partner's host answers.
    pub(super) reachable: bool,
    /// Frames that are on their way.
    pub(super) up: VecDeque<SenderFrame>,
    pub(super) down: VecDeque<ReceiverFrame>,
    /// Nothing moves towards the sender.
    pub(super) hold_down: bool,
    /// Answers of the sender's queue manager are held back.
    pub(super) hold_answers: bool,
    sender_answers: VecDeque<(AskId, Answer)>,
    receiver_answers: VecDeque<(AskId, Answer)>,
    connecting: bool,
    linked: bool,
    sender_timers: BTreeMap<SenderTimer, Timestamp>,
    receiver_timers: BTreeMap<ReceiverTimer, Timestamp>,
}

impl Pair {
    pub(super) fn new() -> Self {
        Self::with(sender_config(), receiver_config())
    }

    pub(super) fn with(sender: SenderConfig, receiver_config: ReceiverConfig) -> Self {
        Self {
            now: START,
            sender: SenderMca::new(sender, SEED),
            receiver: None,
            from: SenderQueueManager::new(),
            to: ReceiverQueueManager::new(),
            receiver_config,
            log: Vec::new(),
            reachable: true,
            up: VecDeque::new(),
            down: VecDeque::new(),
            hold_down: false,
            hold_answers: false,
            sender_answers: VecDeque::new(),
            receiver_answers: VecDeque::new(),
            connecting: false,
            linked: false,
            sender_timers: BTreeMap::new(),
            receiver_timers: BTreeMap::new(),
        }
    }

    /// A pair that runs and waits for work.
    pub(super) fn running() -> Self {
        Self::running_with(sender_config(), receiver_config())
    }

    pub(super) fn running_with(sender: SenderConfig, receiver: ReceiverConfig) -> Self {
        let mut pair = Self::with(sender, receiver);
        pair.start();
        assert_eq!(pair.sender.state(), ChannelState::Running);
        pair.log.clear();
        pair
    }

    pub(super) fn start(&mut self) {
        self.sender_input(SenderInput::StartRequested);
        self.settle();
    }

    pub(super) fn stop(&mut self, mode: StopMode, status: StopStatus) {
        self.sender_input(SenderInput::StopRequested { mode, status });
        self.settle();
    }

    pub(super) fn sender_input(&mut self, input: SenderInput) {
        let mut effects = Vec::new();
        self.sender.handle(self.now, input, &mut effects);
        for effect in effects {
            self.log
                .push(format!("S {}", sender_line(self.now, &effect)));
            match effect {
                SenderEffect::Connect { .. } => self.connecting = true,
                SenderEffect::Send(frame) => self.up.push_back(frame),
                SenderEffect::Disconnect => {
                    self.connecting = false;
                    self.linked = false;
                    self.down.clear();
                    self.receiver_gone_after_frames();
                }
                SenderEffect::Ask { ask, request } => {
                    if let Some(answer) = self.from.answer(self.now, ask, request) {
                        self.sender_answers.push_back((ask, answer));
                    }
                }
                SenderEffect::Cancel { ask } => self.from.cancel(ask),
                SenderEffect::SetTimer { timer, at } => {
                    self.sender_timers.insert(timer, at);
                }
                SenderEffect::CancelTimer { timer } => {
                    self.sender_timers.remove(&timer);
                }
                SenderEffect::StateChanged(_) | SenderEffect::Report(_) => {}
            }
        }
    }

    /// The sender ended the connection: the receiver sees what was sent before, then the end.
    fn receiver_gone_after_frames(&mut self) {
        while let Some(frame) = self.up.pop_front() {
            self.receiver_input(ReceiverInput::FrameReceived(frame));
            self.receiver_answers_now();
        }
        let text = "closed".into();
        self.receiver_input(ReceiverInput::Disconnected { text });
        self.receiver_answers_now();
    }

    pub(super) fn receiver_input(&mut self, input: ReceiverInput) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let mut effects = Vec::new();
        receiver.handle(self.now, input, &mut effects);
        for effect in effects {
            self.log
                .push(format!("R {}", receiver_line(self.now, &effect)));
            match effect {
                ReceiverEffect::Send(frame) => self.down.push_back(frame),
                ReceiverEffect::Disconnect => {
                    self.to.disconnect();
                    self.receiver_timers.clear();
                }
                ReceiverEffect::Ask { ask, request } => {
                    let answer = self.to.answer(request);
                    self.receiver_answers.push_back((ask, answer));
                }
                ReceiverEffect::SetTimer { timer, at } => {
                    self.receiver_timers.insert(timer, at);
                }
                ReceiverEffect::CancelTimer { timer } => {
                    self.receiver_timers.remove(&timer);
                }
                ReceiverEffect::StateChanged(_) | ReceiverEffect::Report(_) => {}
            }
        }
    }

    fn receiver_answers_now(&mut self) {
        while let Some((ask, result)) = self.receiver_answers.pop_front() {
            self.receiver_input(ReceiverInput::Answered { ask, result });
        }
    }

    /// One thing that is due happens; whether there was one.
    fn turn(&mut self) -> bool {
        if let Some((ask, result)) = self.receiver_answers.pop_front() {
            self.receiver_input(ReceiverInput::Answered { ask, result });
            return true;
        }
        if !self.hold_answers {
            if let Some((ask, result)) = self.sender_answers.pop_front() {
                self.sender_input(SenderInput::Answered { ask, result });
                return true;
            }
            if let Some((ask, result)) = self.from.waiting_answer(self.now) {
                self.sender_input(SenderInput::Answered { ask, result });
                return true;
            }
        }
        if self.connecting {
            self.connecting = false;
            if self.reachable {
                self.receiver = Some(ReceiverMca::new(self.receiver_config.clone()));
                self.receiver_timers.clear();
                self.linked = true;
                let peer = "CN=QM2".into();
                self.sender_input(SenderInput::Connected { peer });
            } else {
                self.sender_input(SenderInput::ConnectFailed {
                    text: "connection refused".into(),
                    refused: false,
                });
            }
            return true;
        }
        let wants = self
            .receiver
            .as_ref()
            .is_some_and(ReceiverMca::wants_frames);
        if wants && let Some(frame) = self.up.pop_front() {
            self.receiver_input(ReceiverInput::FrameReceived(frame));
            return true;
        }
        if !self.hold_down {
            if let Some(frame) = self.down.pop_front() {
                self.sender_input(SenderInput::FrameReceived(frame));
                return true;
            }
            let closed = self.receiver.as_ref().is_some_and(ReceiverMca::is_closed);
            if closed && self.linked {
                self.receiver = None;
                self.linked = false;
                let text = "closed by the partner".into();
                self.sender_input(SenderInput::Disconnected { text });
                return true;
            }
        }
        false
    }

    /// One answer reaches the sender, and nothing else happens.
    pub(super) fn sender_turn(&mut self) {
        let answer = self
            .sender_answers
            .pop_front()
            .or_else(|| self.from.waiting_answer(self.now));
        let (ask, result) = answer.expect("the sender waits for an answer");
        self.sender_input(SenderInput::Answered { ask, result });
    }

    /// One thing that is due happens.
    pub(super) fn step(&mut self) {
        self.turn();
    }

    /// Everything that is due happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() {
                return;
            }
        }
        panic!(
            "the pair does not come to rest: {:?}",
            self.log.iter().rev().take(20).collect::<Vec<_>>()
        );
    }

    /// Moves the clock, stopping at every timer on the way.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        loop {
            self.settle();
            let sender = self.sender_timers.iter().min_by_key(|(_, at)| **at);
            let sender = sender.map(|(timer, at)| (*timer, *at));
            let receiver = self.receiver_timers.iter().min_by_key(|(_, at)| **at);
            let receiver = receiver.map(|(timer, at)| (*timer, *at));
            let due = [
                sender.map(|(_, at)| at),
                receiver.map(|(_, at)| at),
                self.from.wait_deadline(),
            ]
            .into_iter()
            .flatten()
            .min();
            let Some(at) = due.filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if let Some((timer, _)) = sender.filter(|(_, t)| *t <= at) {
                self.sender_timers.remove(&timer);
                self.sender_input(SenderInput::TimerFired(timer));
            } else if let Some((timer, _)) = receiver.filter(|(_, t)| *t <= at) {
                self.receiver_timers.remove(&timer);
                self.receiver_input(ReceiverInput::TimerFired(timer));
            }
        }
        self.now = end;
        self.settle();
    }

    /// The link breaks: what is on it is lost, both ends learn of it.
    pub(super) fn cut(&mut self) {
        self.up.clear();
        self.down.clear();
        self.hold_down = false;
        let text = || "connection reset".to_owned();
        self.receiver_input(ReceiverInput::Disconnected { text: text() });
        self.receiver_answers_now();
        self.receiver = None;
        self.linked = false;
        self.sender_input(SenderInput::Disconnected { text: text() });
        self.settle();
    }

    /// The sender's node crashes and starts again with what was durable.
    pub(super) fn crash_sender(&mut self) {
        self.up.clear();
        self.down.clear();
        self.sender_answers.clear();
        self.sender_timers.clear();
        self.hold_answers = false;
        self.hold_down = false;
        self.connecting = false;
        self.receiver_input(ReceiverInput::Disconnected {
            text: "connection reset".into(),
        });
        self.receiver_answers_now();
        self.receiver = None;
        self.linked = false;
        self.from.crash();
        let config = self.sender.config().clone();
        self.sender = SenderMca::new(config, SEED + u128::from(self.now.as_millis()));
    }

    /// The lines of the log that begin with one of `starts`.
    pub(super) fn lines(&self, starts: &[&str]) -> Vec<&str> {
        self.log
            .iter()
            .map(String::as_str)
            .filter(|line| starts.iter().any(|start| line.starts_with(start)))
            .collect()
    }

    pub(super) fn sent(&self) -> Vec<&str> {
        self.lines(&["S send"])
    }

    /// Where a line is in the log.
    pub(super) fn position(&self, line: &str) -> usize {
        self.log
            .iter()
            .position(|l| l == line)
            .unwrap_or_else(|| panic!("{line:?} is not in {:#?}", self.log))
    }

    pub(super) fn has(&self, line: &str) -> bool {
        self.log.iter().any(|l| l == line)
    }
}
