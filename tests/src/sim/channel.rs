//! The channel between the nodes: its two machines, and connections that are cut, deliver late and overlap.
//!
//! Inside one connection nothing is reordered. A cut may leave either end in the belief that it still stands.

mod cuts;

use std::collections::{BTreeMap, VecDeque};

use ferrymq_channel::{
    AskId, ChannelState, Close, CloseReason, Event as ChannelEvent, ReceiverConfig, ReceiverEffect,
    ReceiverFrame, ReceiverInput, ReceiverMca, ReceiverTimer, SenderConfig, SenderEffect,
    SenderFrame, SenderInput, SenderMca, SenderTimer, StopMode, StopStatus,
};
use ferrymq_engine::{Input, ReceiverState, Reply, Request};
use ferrymq_objects::Channel;
use ferrymq_types::{ChannelName, Persistence, Timestamp, UnitOfWorkId};

use crate::invariants::{Check, inv_h4_no_disagreement};
use crate::oracle::Uid;
use crate::sim::definitions::CHANNEL;
use crate::sim::node::{Answer, Asker, ReceiverEnd, SenderEnd};
use crate::sim::world::{Event, Phase, World, after};
use crate::sim::{Fault, QMGRS, words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// When a connection is cut: after this many frames, or after a frame that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Frames(u64),
    BatchEnd,
    Confirmation,
}

#[derive(Debug)]
enum Item<F> {
    Frame(F),
    End(&'static str),
}

/// One way of a connection: what is under way, with its time of arrival, in order.
#[derive(Debug)]
struct Way<F> {
    items: VecDeque<(Timestamp, Item<F>)>,
    /// Nothing more goes in.
    dead: bool,
}

impl<F> Way<F> {
    const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            dead: false,
        }
    }

    fn push(&mut self, at: Timestamp, item: Item<F>) -> Option<Timestamp> {
        if self.dead {
            return None;
        }
        let at = self.items.back().map_or(at, |(last, _)| at.max(*last));
        self.dead = matches!(item, Item::End(_));
        self.items.push_back((at, item));
        Some(at)
    }

    fn pop(&mut self, now: Timestamp) -> Option<Item<F>> {
        let due = self.items.front().is_some_and(|(at, _)| *at <= now);
        due.then(|| self.items.pop_front()).flatten().map(|i| i.1)
    }

    /// Keeps the first `kept` items, which arrive at `at` now, and then perhaps the end.
    fn cut(&mut self, kept: usize, at: Timestamp, end: Option<Timestamp>) -> Vec<Timestamp> {
        self.items.truncate(kept);
        let mut times = Vec::new();
        for (time, _) in &mut self.items {
            *time = at.max(*time);
            times.push(*time);
        }
        self.dead = false;
        if let Some(end) = end {
            times.extend(self.push(end, Item::End("the connection was cut")));
        }
        self.dead = true;
        times
    }
}

/// A connection from a run of QM1 to a run of QM2.
#[derive(Debug)]
pub(crate) struct Link {
    runs: [u64; 2],
    forward: Way<SenderFrame>,
    backward: Way<ReceiverFrame>,
    /// It was cut already.
    cut: bool,
    /// What is under way forward arrives when the next conversation has begun, at the worst of all times.
    lurks: bool,
}

impl Link {
    /// Whether something is on its way to the receiver and will arrive.
    pub(crate) fn carries(&self) -> bool {
        !self.cut && !self.forward.items.is_empty()
    }
}

/// What was sent in which batch.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    batches: BTreeMap<UnitOfWorkId, BTreeMap<u64, Option<Uid>>>,
    last: UnitOfWorkId,
}

impl Sent {
    fn frame(&mut self, frame: &SenderFrame) {
        match frame {
            SenderFrame::Message(m) => {
                let d = &m.message.descriptor;
                let uid = Uid::read(&d.correlation_id);
                let numbers = self.batches.entry(m.batch).or_default();
                // A batch that is sent again starts over.
                numbers.split_off(&m.number);
                let persistent = d.persistence == Persistence::Persistent;
                numbers.insert(m.number, uid.filter(|_| persistent));
                self.last = m.batch;
            }
            SenderFrame::Withdraw(w) => {
                if let Some(numbers) = self.batches.get_mut(&self.last) {
                    numbers.remove(&w.number);
                }
            }
            SenderFrame::Bind(_)
            | SenderFrame::BatchEnd(_)
            | SenderFrame::Fast(_)
            | SenderFrame::Heartbeat { .. }
            | SenderFrame::Close(_) => {}
        }
    }

    /// The persistent messages of a batch.
    pub(crate) fn persistent(&self, batch: UnitOfWorkId) -> impl Iterator<Item = Uid> + '_ {
        let numbers = self.batches.get(&batch);
        numbers
            .into_iter()
            .flat_map(|n| n.values().copied().flatten())
    }
}

fn channel_name() -> ChannelName {
    ChannelName::new(CHANNEL).expect("a constant that is a name")
}

impl World {
    /// Makes the sending machine; a batch in doubt starts it.
    pub(crate) fn start_channel_initiator(&mut self, node: usize, run: u64) -> Check {
        let qmgr = self.metadata.of(node);
        let Some(Channel::Sender(definition)) = qmgr.channels.get(&channel_name()) else {
            return Ok(());
        };
        let config = SenderConfig::new(definition.clone(), &qmgr)
            .expect("CONNAME of the simulator can be read");
        let seed = self.dice.seed();
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let machine = if running.stopped {
            SenderMca::new_stopped(config, seed.into())
        } else {
            SenderMca::new(config, seed.into())
        };
        let connection = running.connect();
        running.sender = Some(SenderEnd {
            machine,
            connection,
            timers: BTreeMap::new(),
            link: None,
            dialing: None,
            asked: BTreeMap::new(),
        });
        let connection = running.connect();
        self.ask(node, run, connection, Request::ChannelRows, Asker::Operator);
        Ok(())
    }

    pub(crate) fn triggered(&mut self, node: usize, run: u64) -> Check {
        match self.running(node, run) {
            Some(running) if !running.stopped => self.sender_input(run, SenderInput::Triggered),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn sender_input(&mut self, run: u64, input: SenderInput) -> Check {
        if self.boundary(0) {
            return Ok(());
        }
        let now = self.now;
        let what = self.trace.words(|| words::sender_input(&input));
        let Some(end) = self.sender_end(run) else {
            return Ok(());
        };
        let mut effects = Vec::new();
        end.machine.handle(now, input, &mut effects);
        self.trace.add(now, || format!("sender <- {what}"));
        for effect in effects {
            if self.boundary(0) || self.running(0, run).is_none() {
                return Ok(());
            }
            self.perform_sender(run, effect)?;
        }
        Ok(())
    }

    fn sender_end(&mut self, run: u64) -> Option<&mut SenderEnd> {
        self.running(0, run)?.sender.as_mut()
    }

    fn perform_sender(&mut self, run: u64, effect: SenderEffect) -> Check {
        let what = self.trace.words(|| words::sender_effect(&effect));
        self.trace.add(self.now, || format!("sender -> {what}"));
        match effect {
            SenderEffect::Connect { .. } => {
                self.close_sender_link(run);
                self.next_link += 1;
                let dial = self.next_link;
                if let Some(end) = self.sender_end(run) {
                    end.dialing = Some(dial);
                }
                let latency = self.profile.latency;
                self.soon(1 + 2 * latency, Event::Dialed(run, dial));
            }
            SenderEffect::Send(frame) => {
                self.sent.frame(&frame);
                let link = self.sender_end(run).and_then(|end| end.link);
                let ends_batch = matches!(frame, SenderFrame::BatchEnd(_));
                self.send_forward(link, Item::Frame(frame));
                self.cut_after(link, ends_batch.then_some(Moment::BatchEnd));
            }
            SenderEffect::Disconnect => self.close_sender_link(run),
            SenderEffect::Ask { ask, request } => {
                let Some(connection) = self.sender_end(run).map(|end| end.connection) else {
                    return Ok(());
                };
                let id = self.ask(0, run, connection, request, Asker::Sender(ask));
                if let (Some(id), Some(end)) = (id, self.sender_end(run)) {
                    end.asked.insert(ask, id);
                }
            }
            SenderEffect::Cancel { ask } => {
                if let Some(id) = self.sender_end(run).and_then(|end| end.asked.remove(&ask)) {
                    self.hand_in(0, run, Input::Cancelled { id });
                }
            }
            SenderEffect::SetTimer { timer, at } => {
                if let Some(end) = self.sender_end(run) {
                    end.timers.insert(timer, at);
                }
                self.at(at, Event::SenderTimer(run, timer, at));
            }
            SenderEffect::CancelTimer { timer } => {
                if let Some(end) = self.sender_end(run) {
                    end.timers.remove(&timer);
                }
            }
            SenderEffect::StateChanged(_) => {}
            SenderEffect::Report(event) => self.channel_report(0, &event)?,
        }
        Ok(())
    }

    fn channel_report(&mut self, node: usize, event: &ChannelEvent) -> Check {
        if matches!(
            event,
            ChannelEvent::DeadLettered { .. }
                | ChannelEvent::NotConsumed { .. }
                | ChannelEvent::Discarded { .. }
        ) {
            self.statistics.undelivered += 1;
        }
        inv_h4_no_disagreement::reported(QMGRS[node], event)
    }

    fn close_sender_link(&mut self, run: u64) {
        let Some(end) = self.sender_end(run) else {
            return;
        };
        end.dialing = None;
        let link = end.link.take();
        self.send_forward(link, Item::End("the partner closed the connection"));
        if let Some(link) = link {
            self.conversation_ends();
            if let Some(link) = self.links.get_mut(&link) {
                link.backward.items.clear();
                link.backward.dead = true;
            }
        }
    }

    fn conversation_ends(&mut self) {
        self.oracle.conversations_ended.push(self.now);
    }

    fn send_forward(&mut self, link: Option<u64>, item: Item<SenderFrame>) {
        if link.is_some_and(|l| self.links.get(&l).is_none_or(|l| l.cut)) {
            // A sender that has not noticed goes on: what it sends now may be lost as well.
            self.conversation_ends();
        }
        let at = after(self.now, self.dice.below(self.profile.latency + 1));
        if let Some(number) = link
            && let Some(link) = self.links.get_mut(&number)
            && let Some(at) = link.forward.push(at, item)
        {
            self.at(at, Event::Deliver(number, Direction::Forward));
        }
    }

    fn send_backward(&mut self, number: u64, item: Item<ReceiverFrame>) {
        let at = after(self.now, self.dice.below(self.profile.latency + 1));
        if let Some(link) = self.links.get_mut(&number)
            && let Some(at) = link.backward.push(at, item)
        {
            self.at(at, Event::Deliver(number, Direction::Backward));
        }
    }

    pub(crate) fn dialed(&mut self, run: u64, dial: u64) -> Check {
        let refused = self.phase == Phase::Working && self.now < self.refused_until;
        let partner = self.nodes[1].running.as_ref().map(|r| r.number);
        let Some(end) = self.sender_end(run).filter(|end| end.dialing == Some(dial)) else {
            return Ok(());
        };
        end.dialing = None;
        let input = match partner {
            Some(partner) if !refused => {
                end.link = Some(dial);
                let link = Link {
                    runs: [run, partner],
                    forward: Way::new(),
                    backward: Way::new(),
                    cut: false,
                    lurks: false,
                };
                self.links.insert(dial, link);
                let peer = String::new();
                SenderInput::Connected { peer }
            }
            Some(_) | None => SenderInput::ConnectFailed {
                text: "connection refused".to_owned(),
                refused: false,
            },
        };
        self.sender_input(run, input)
    }

    /// The next thing of a connection arrives.
    pub(crate) fn deliver(&mut self, number: u64, direction: Direction) -> Check {
        let now = self.now;
        let Some(link) = self.links.get_mut(&number) else {
            return Ok(());
        };
        let runs = link.runs;
        match direction {
            Direction::Forward => match link.forward.pop(now) {
                Some(item) => self.arrives(runs[1], number, item),
                None => Ok(()),
            },
            Direction::Backward => {
                let Some(item) = link.backward.pop(now) else {
                    return Ok(());
                };
                let Some(end) = self.sender_end(runs[0]).filter(|e| e.link == Some(number)) else {
                    return Ok(());
                };
                let input = match item {
                    Item::Frame(frame) => SenderInput::FrameReceived(frame),
                    Item::End(text) => {
                        end.link = None;
                        self.conversation_ends();
                        let text = text.to_owned();
                        SenderInput::Disconnected { text }
                    }
                };
                self.sender_input(runs[0], input)
            }
        }
    }

    fn arrives(&mut self, run: u64, conversation: u64, item: Item<SenderFrame>) -> Check {
        let Some(running) = self.running(1, run) else {
            return Ok(());
        };
        match item {
            Item::Frame(frame @ SenderFrame::Bind(_))
                if !running.receivers.contains_key(&conversation) =>
            {
                if running.stopped {
                    let close = Close::new(CloseReason::ChannelStopped, "the channel is stopped");
                    self.send_backward(conversation, Item::Frame(ReceiverFrame::Close(close)));
                    self.send_backward(conversation, Item::End("refused"));
                    return Ok(());
                }
                self.accept(run, conversation);
                self.receiver_input(run, conversation, ReceiverInput::FrameReceived(frame))
            }
            Item::Frame(frame) => {
                let Some(end) = running.receivers.get_mut(&conversation) else {
                    return Ok(());
                };
                end.unread.push_back(frame);
                self.read(run, conversation)
            }
            Item::End(text) => {
                let text = text.to_owned();
                let input = ReceiverInput::Disconnected { text };
                self.receiver_input(run, conversation, input)
            }
        }
    }

    fn accept(&mut self, run: u64, conversation: u64) {
        let qmgr = self.metadata.of(1);
        let Some(Channel::Receiver(definition)) = qmgr.channels.get(&channel_name()) else {
            return;
        };
        let config =
            ReceiverConfig::new(definition.clone(), &qmgr, "qm1".to_owned(), String::new());
        let shared = self.fault == Some(Fault::OldStreamAccepted);
        let Some(running) = self.running(1, run) else {
            return;
        };
        let older = running.receivers.values().next().filter(|_| shared);
        let older = older.map(|end| end.connection);
        let connection = older.unwrap_or_else(|| running.connect());
        let end = ReceiverEnd {
            machine: ReceiverMca::new(config),
            connection,
            timers: BTreeMap::new(),
            begun: None,
            shares_connection: older.is_some(),
            unread: VecDeque::new(),
        };
        running.receivers.insert(conversation, end);
    }

    /// Hands the machine what it wants to read.
    fn read(&mut self, run: u64, conversation: u64) -> Check {
        loop {
            let Some(end) = self.receiver_end(run, conversation) else {
                return Ok(());
            };
            if !end.machine.wants_frames() {
                return Ok(());
            }
            let Some(frame) = end.unread.pop_front() else {
                return Ok(());
            };
            self.handle_receiver(run, conversation, ReceiverInput::FrameReceived(frame))?;
        }
    }

    fn receiver_end(&mut self, run: u64, conversation: u64) -> Option<&mut ReceiverEnd> {
        self.running(1, run)?.receivers.get_mut(&conversation)
    }

    fn receiver_input(&mut self, run: u64, conversation: u64, input: ReceiverInput) -> Check {
        self.handle_receiver(run, conversation, input)?;
        self.read(run, conversation)
    }

    fn handle_receiver(&mut self, run: u64, conversation: u64, input: ReceiverInput) -> Check {
        if self.boundary(1) {
            return Ok(());
        }
        let now = self.now;
        let what = self.trace.words(|| words::receiver_input(&input));
        let Some(end) = self.receiver_end(run, conversation) else {
            return Ok(());
        };
        let mut effects = Vec::new();
        end.machine.handle(now, input, &mut effects);
        let closed = end.machine.is_closed();
        self.trace
            .add(now, || format!("receiver {conversation} <- {what}"));
        for effect in effects {
            if self.boundary(1) || self.running(1, run).is_none() {
                return Ok(());
            }
            self.perform_receiver(run, conversation, effect)?;
        }
        if closed {
            self.conversation_over(run, conversation);
        }
        Ok(())
    }

    fn conversation_over(&mut self, run: u64, conversation: u64) {
        let Some(running) = self.running(1, run) else {
            return;
        };
        let Some(ended) = running.receivers.remove(&conversation) else {
            return;
        };
        let connection = ended.connection;
        if !running
            .receivers
            .values()
            .any(|r| r.connection == connection)
        {
            return self.hand_in(1, run, Input::Disconnected { connection });
        }
        // By a planted fault others use the connection too: only what this one had open ends.
        if let Some(id) = ended.begun {
            self.ask(1, run, connection, Request::BackOut { id }, Asker::Operator);
        }
    }

    fn perform_receiver(&mut self, run: u64, conversation: u64, effect: ReceiverEffect) -> Check {
        let what = self.trace.words(|| words::receiver_effect(&effect));
        self.trace
            .add(self.now, || format!("receiver {conversation} -> {what}"));
        match effect {
            ReceiverEffect::Send(frame) => {
                let told = match &frame {
                    ReceiverFrame::BatchConfirmed(c) => c.last_number,
                    ReceiverFrame::BindAccepted(a) => a.last_committed,
                    ReceiverFrame::MessageRefused(_)
                    | ReceiverFrame::Heartbeat { .. }
                    | ReceiverFrame::Close(_) => 0,
                };
                let numbers = &mut self.nodes[1].numbers;
                numbers.told = numbers.told.max(told);
                let confirms = matches!(frame, ReceiverFrame::BatchConfirmed(_));
                if matches!(frame, ReceiverFrame::BindAccepted(_)) {
                    self.bind_answered();
                }
                self.send_backward(conversation, Item::Frame(frame));
                self.cut_after(Some(conversation), confirms.then_some(Moment::Confirmation));
            }
            ReceiverEffect::Disconnect => {
                self.send_backward(conversation, Item::End("the partner closed the connection"));
            }
            ReceiverEffect::Ask { ask, request } => {
                let Some(end) = self.receiver_end(run, conversation) else {
                    return Ok(());
                };
                if let Request::Begin { id } = &request {
                    end.begun = Some(*id);
                }
                let connection = end.connection;
                // A planted fault: the engine is not told of the new bind, only asked for the record.
                let request = match request {
                    Request::OpenReceiver { .. } if end.shares_connection => Request::ChannelRows,
                    other => other,
                };
                self.ask(
                    1,
                    run,
                    connection,
                    request,
                    Asker::Receiver(conversation, ask),
                );
            }
            ReceiverEffect::SetTimer { timer, at } => {
                if let Some(end) = self.receiver_end(run, conversation) {
                    end.timers.insert(timer, at);
                }
                self.at(at, Event::ReceiverTimer(run, conversation, timer, at));
            }
            ReceiverEffect::CancelTimer { timer } => {
                if let Some(end) = self.receiver_end(run, conversation) {
                    end.timers.remove(&timer);
                }
            }
            ReceiverEffect::StateChanged(_) => {}
            ReceiverEffect::Report(event) => {
                // A bind that comes so late that its sender has long gone on cannot be told from one of a sender that forgot.
                let sender = self.nodes[0]
                    .running
                    .as_ref()
                    .and_then(|r| r.sender.as_ref());
                let late = sender.is_none_or(|end| end.link != Some(conversation));
                if !(late && matches!(event, ChannelEvent::SequenceError { .. })) {
                    self.channel_report(1, &event)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn sender_timer(&mut self, run: u64, timer: SenderTimer, at: Timestamp) -> Check {
        match self.sender_end(run) {
            Some(end) if end.timers.get(&timer) == Some(&at) => {
                end.timers.remove(&timer);
                self.sender_input(run, SenderInput::TimerFired(timer))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn receiver_timer(
        &mut self,
        run: u64,
        conversation: u64,
        timer: ReceiverTimer,
        at: Timestamp,
    ) -> Check {
        match self.receiver_end(run, conversation) {
            Some(end) if end.timers.get(&timer) == Some(&at) => {
                end.timers.remove(&timer);
                self.receiver_input(run, conversation, ReceiverInput::TimerFired(timer))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An answer reaches who asked.
    pub(crate) fn answer(&mut self, node: usize, run: u64, asker: Asker, answer: Answer) -> Check {
        match asker {
            Asker::Client { client, life, what } => {
                self.client_answered(client, life, what, answer);
                Ok(())
            }
            Asker::Sender(ask) => self.sender_answered(run, ask, answer),
            Asker::Receiver(conversation, ask) => {
                let result = match answer {
                    Ok(Reply::Channels { mut receivers, .. }) if !receivers.is_empty() => {
                        let row = receivers.remove(0);
                        Ok(Reply::Receiver(ReceiverState { row }))
                    }
                    other => other,
                };
                self.receiver_input(run, conversation, ReceiverInput::Answered { ask, result })
            }
            Asker::Operator => self.operator_answered(node, run, answer),
        }
    }

    fn sender_answered(&mut self, run: u64, ask: AskId, result: Answer) -> Check {
        if let Some(end) = self.sender_end(run) {
            end.asked.remove(&ask);
        }
        self.sender_input(run, SenderInput::Answered { ask, result })
    }

    /// The channel initiator starts what has batches in doubt.
    fn operator_answered(&mut self, node: usize, run: u64, answer: Answer) -> Check {
        if let Ok(Reply::Channels { senders, .. }) = answer
            && senders.iter().any(|row| !row.in_doubt.is_empty())
        {
            return self.triggered(node, run);
        }
        Ok(())
    }

    /// Starts the channel at one end, as an operator does.
    pub(crate) fn start_channel(&mut self, node: usize) -> Check {
        self.mark_stopped(node, false);
        match self.nodes[node].running.as_ref().map(|r| r.number) {
            Some(run) if node == 0 => self.sender_input(run, SenderInput::StartRequested),
            Some(_) | None => Ok(()),
        }
    }

    /// A start that came while the channel was stopping was refused: the operator tries it again.
    pub(crate) fn start_again(&mut self) -> Check {
        let next = after(self.now, 2_000);
        self.at(next, Event::StartAgain);
        let sender = self.nodes[0]
            .running
            .as_ref()
            .and_then(|r| r.sender.as_ref());
        let wanted = match sender.map(|end| end.machine.state()) {
            Some(ChannelState::Stopped) => true,
            // What an operator ended, and left messages for, no trigger starts before the queue was empty once.
            Some(ChannelState::Inactive) => std::mem::take(&mut self.ended_by_operator),
            Some(_) | None => false,
        };
        if wanted {
            self.start_channel(0)
        } else {
            Ok(())
        }
    }

    fn mark_stopped(&mut self, node: usize, stopped: bool) {
        self.trace.add(self.now, || {
            format!("{}: channel stopped {stopped}", QMGRS[node])
        });
        let Some(running) = self.nodes[node].running.as_mut() else {
            return;
        };
        running.stopped = stopped;
        let (run, connection) = (running.number, running.connect());
        let request = Request::SetChannelStopped {
            channel: channel_name(),
            stopped,
        };
        self.ask(node, run, connection, request, Asker::Operator);
    }

    pub(crate) fn stop_channel(
        &mut self,
        node: usize,
        mode: StopMode,
        status: StopStatus,
    ) -> Check {
        if status == StopStatus::Stopped {
            self.mark_stopped(node, true);
        }
        let Some(running) = &self.nodes[node].running else {
            return Ok(());
        };
        let run = running.number;
        self.ended_by_operator |= status == StopStatus::Inactive;
        if node == 0 {
            return self.sender_input(run, SenderInput::StopRequested { mode, status });
        }
        let all: Vec<u64> = running.receivers.keys().copied().collect();
        for conversation in all {
            let input = ReceiverInput::StopRequested { mode, status };
            self.receiver_input(run, conversation, input)?;
        }
        Ok(())
    }
}
