//! Both ends with real queue managers: what a channel asks for is what an engine gives.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ferrymq_engine::{
    ConnectionId, Effect, Engine, EngineBuilder, Event as EngineEvent, Input, ObjectName, Put,
    Request, RequestId,
};
use ferrymq_objects::{
    CHANNEL_INITIATION_QUEUE, DeliverySequence, Enabled, LocalQueue, Queue, QueueBase,
    QueueManager, QueueManagerAttributes, QueueManagerEvents, Usage,
};
use ferrymq_types::{Epoch, ObjectId, Persistence, Position, Priority, QueueManagerId, Timestamp};

use super::{
    Kind, NON_PERSISTENT, PERSISTENT, START, channel_name, qmgr, queue, receiver_config,
    sender_config, transmission,
};
use crate::{
    Answer, AskId, ChannelState, DeadLetterSetting, ReceiverConfig, ReceiverEffect, ReceiverFrame,
    ReceiverInput, ReceiverMca, SenderConfig, SenderEffect, SenderFrame, SenderInput, SenderMca,
    StopMode, StopStatus,
};

fn local_queue(id: u64, name: &str, usage: Usage) -> (ferrymq_types::QueueName, Queue) {
    let definition = LocalQueue {
        base: QueueBase {
            id: ObjectId::new(id),
            name: queue(name),
            description: String::new(),
            put: Enabled::Yes,
            default_priority: Priority::default(),
            default_persistence: Persistence::NonPersistent,
            altered: START,
        },
        delivery_sequence: DeliverySequence::Fifo,
        usage,
        trigger: usage == Usage::Transmission,
        trigger_data: channel_name().to_string(),
        initiation_queue: Some(queue(CHANNEL_INITIATION_QUEUE)),
        created: START,
        ..LocalQueue::with_defaults(queue(name))
    };
    (queue(name), Queue::Local(definition))
}

fn definitions(name: &str, id: u8, dead_letter: bool) -> Arc<QueueManager> {
    Arc::new(QueueManager {
        attributes: QueueManagerAttributes {
            dead_letter_queue_name: dead_letter.then(|| queue("DLQ")),
            events: QueueManagerEvents {
                start_stop: Enabled::No,
                ..QueueManagerEvents::DEFAULT
            },
            ..QueueManagerAttributes::with_defaults(
                qmgr(name),
                QueueManagerId::new([id; 16]),
                START,
            )
        },
        queues: BTreeMap::from([
            local_queue(1, "Q", Usage::Normal),
            local_queue(2, "DLQ", Usage::Normal),
            local_queue(3, "QM2", Usage::Transmission),
            local_queue(4, CHANNEL_INITIATION_QUEUE, Usage::Normal),
        ]),
        channels: BTreeMap::new(),
        processes: BTreeMap::new(),
        channel_rules: BTreeMap::new(),
        node: 1,
    })
}

/// An engine whose write sets are durable at once.
struct Host {
    engine: Engine,
    connection: ConnectionId,
    next_request: u64,
    asked: BTreeMap<RequestId, AskId>,
    answers: VecDeque<(AskId, Answer)>,
    triggers: u32,
}

impl Host {
    fn new(definitions: Arc<QueueManager>) -> Self {
        let builder = EngineBuilder::new(definitions, Epoch::new(1), Position::ZERO, START);
        Self {
            engine: builder.finish(&mut Vec::new()),
            connection: ConnectionId(1),
            next_request: 1,
            asked: BTreeMap::new(),
            answers: VecDeque::new(),
            triggers: 0,
        }
    }

    fn step(&mut self, now: Timestamp, input: Input) {
        let mut effects = Vec::new();
        self.engine.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Reply { id, reply, .. } => {
                    if let Some(ask) = self.asked.remove(&id) {
                        self.answers.push_back((ask, reply));
                    } else {
                        reply.expect("what a test asks for is done");
                    }
                }
                Effect::Report {
                    event: EngineEvent::TransmissionQueueTriggered { .. },
                    ..
                } => self.triggers += 1,
                Effect::Write(_) | Effect::Report { .. } => {}
                Effect::Fetch { .. }
                | Effect::ReadRows { .. }
                | Effect::ReadAhead { .. }
                | Effect::Spill { .. }
                | Effect::Forget { .. } => {
                    panic!("every body is in memory")
                }
            }
        }
    }

    fn ask(&mut self, now: Timestamp, ask: Option<AskId>, request: Request) {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        if let Some(ask) = ask {
            self.asked.insert(id, ask);
        }
        let connection = self.connection;
        let input = Input::Requests {
            connection,
            requests: vec![(id, request)],
        };
        self.step(now, input);
    }

    fn cancel(&mut self, now: Timestamp, ask: AskId) {
        if let Some((id, _)) = self.asked.iter().find(|(_, a)| **a == ask) {
            let id = *id;
            self.asked.remove(&id);
            self.step(now, Input::Cancelled { id });
        }
    }

    /// The conversation's connection is gone; the next one has another.
    fn disconnect(&mut self, now: Timestamp) {
        let connection = self.connection;
        self.step(now, Input::Disconnected { connection });
        self.connection = ConnectionId(connection.0 + 1);
        self.asked.clear();
        self.answers.clear();
    }

    fn depth(&self, name: &str) -> u64 {
        self.engine.depth(&queue(name)).unwrap_or(0)
    }
}

struct World {
    now: Timestamp,
    from: Host,
    to: Host,
    sender: SenderMca,
    receiver: Option<ReceiverMca>,
    receiver_config: ReceiverConfig,
    up: VecDeque<SenderFrame>,
    down: VecDeque<ReceiverFrame>,
    hold_down: bool,
    connecting: bool,
}

impl World {
    fn new(sender: SenderConfig, receiver_config: ReceiverConfig) -> Self {
        let has_dlq = |setting: &DeadLetterSetting| setting.queue().is_some();
        let mut world = Self {
            now: START,
            from: Host::new(definitions("QM1", 1, has_dlq(&sender.dead_letter))),
            to: Host::new(definitions("QM2", 2, has_dlq(&receiver_config.dead_letter))),
            sender: SenderMca::new(sender, 11),
            receiver: None,
            receiver_config,
            up: VecDeque::new(),
            down: VecDeque::new(),
            hold_down: false,
            connecting: false,
        };
        world.start();
        assert_eq!(world.sender.state(), ChannelState::Running);
        world
    }

    fn start(&mut self) {
        self.sender_input(SenderInput::StartRequested);
        self.settle();
    }

    fn put(&mut self, body: &str, to: &str, kind: Kind) {
        let message = transmission(body, to, kind);
        let put = Put::passing_on(&message, ObjectName::local(queue("QM2")));
        self.from.ask(self.now, None, Request::Put(Box::new(put)));
    }

    fn sender_input(&mut self, input: SenderInput) {
        let mut effects = Vec::new();
        self.sender.handle(self.now, input, &mut effects);
        for effect in effects {
            match effect {
                SenderEffect::Connect { .. } => self.connecting = true,
                SenderEffect::Send(frame) => self.up.push_back(frame),
                SenderEffect::Disconnect => {
                    self.connecting = false;
                    while let Some(frame) = self.up.pop_front() {
                        self.receiver_input(ReceiverInput::FrameReceived(frame));
                    }
                    self.down.clear();
                    let text = String::new();
                    self.receiver_input(ReceiverInput::Disconnected { text });
                    self.receiver = None;
                }
                SenderEffect::Ask { ask, request } => self.from.ask(self.now, Some(ask), request),
                SenderEffect::Cancel { ask } => self.from.cancel(self.now, ask),
                SenderEffect::SetTimer { .. }
                | SenderEffect::CancelTimer { .. }
                | SenderEffect::StateChanged(_)
                | SenderEffect::Report(_) => {}
            }
        }
    }

    fn receiver_input(&mut self, input: ReceiverInput) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let mut effects = Vec::new();
        receiver.handle(self.now, input, &mut effects);
        for effect in effects {
            match effect {
                ReceiverEffect::Send(frame) => self.down.push_back(frame),
                ReceiverEffect::Disconnect => self.to.disconnect(self.now),
                ReceiverEffect::Ask { ask, request } => self.to.ask(self.now, Some(ask), request),
                ReceiverEffect::SetTimer { .. }
                | ReceiverEffect::CancelTimer { .. }
                | ReceiverEffect::StateChanged(_)
                | ReceiverEffect::Report(_) => {}
            }
        }
    }

    fn turn(&mut self) -> bool {
        if let Some((ask, result)) = self.to.answers.pop_front() {
            self.receiver_input(ReceiverInput::Answered { ask, result });
        } else if let Some((ask, result)) = self.from.answers.pop_front() {
            self.sender_input(SenderInput::Answered { ask, result });
        } else if core::mem::take(&mut self.connecting) {
            self.receiver = Some(ReceiverMca::new(self.receiver_config.clone()));
            let peer = String::new();
            self.sender_input(SenderInput::Connected { peer });
        } else if let Some(frame) = self.up.pop_front() {
            self.receiver_input(ReceiverInput::FrameReceived(frame));
        } else if self.hold_down {
            return false;
        } else if let Some(frame) = self.down.pop_front() {
            self.sender_input(SenderInput::FrameReceived(frame));
        } else {
            return false;
        }
        true
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.turn() {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    fn cut(&mut self) {
        self.up.clear();
        self.down.clear();
        self.hold_down = false;
        let text = String::new();
        self.receiver_input(ReceiverInput::Disconnected { text });
        self.receiver = None;
        let text = String::new();
        self.sender_input(SenderInput::Disconnected { text });
        self.settle();
    }
}

#[test]
fn persistent_and_fast_messages_arrive_and_leave_nothing_behind() {
    let mut world = World::new(sender_config(), receiver_config());
    for n in 0..10 {
        world.put(&format!("p{n}"), "Q", PERSISTENT);
        world.put(&format!("n{n}"), "Q", NON_PERSISTENT);
    }
    world.settle();
    assert_eq!(world.to.depth("Q"), 20);
    assert_eq!(world.from.depth("QM2"), 0);
    let status = world.sender.status();
    assert_eq!((status.last_number, status.counters.messages), (10, 20));
    assert!(!status.in_doubt);
}

#[test]
fn inv_h4_a_lost_confirmation_neither_loses_nor_repeats() {
    let mut world = World::new(sender_config(), receiver_config());
    world.hold_down = true;
    world.put("a", "Q", PERSISTENT);
    world.settle();
    assert_eq!((world.from.depth("QM2"), world.to.depth("Q")), (1, 1));
    world.cut();
    assert_eq!(world.sender.state(), ChannelState::Retrying);
    world.start();
    assert_eq!(world.sender.state(), ChannelState::Running);
    assert_eq!((world.from.depth("QM2"), world.to.depth("Q")), (0, 1));
    world.put("b", "Q", PERSISTENT);
    world.settle();
    assert_eq!((world.from.depth("QM2"), world.to.depth("Q")), (0, 2));
}

#[test]
fn inv_h4_a_link_that_breaks_at_any_step_neither_loses_nor_repeats() {
    for cut_at in 0..60 {
        let mut world = World::new(sender_config(), receiver_config());
        for body in ["a", "b", "c", "d", "e"] {
            world.put(body, "Q", PERSISTENT);
        }
        for _ in 0..cut_at {
            world.turn();
        }
        world.cut();
        world.start();
        assert_eq!(world.sender.state(), ChannelState::Running, "{cut_at}");
        assert_eq!(world.from.depth("QM2"), 0, "{cut_at}");
        assert_eq!(world.to.depth("Q"), 5, "{cut_at}");
        assert_eq!(world.sender.status().last_number, 5, "{cut_at}");
    }
}

#[test]
fn undeliverable_messages_go_to_the_receivers_dead_letter_queue() {
    let mut world = World::new(sender_config(), receiver_config());
    world.put("a", "MISSING", PERSISTENT);
    world.put("b", "MISSING", NON_PERSISTENT);
    world.put("c", "Q", PERSISTENT);
    world.settle();
    assert_eq!((world.to.depth("DLQ"), world.to.depth("Q")), (2, 1));
    assert_eq!(world.from.depth("QM2"), 0);
}

#[test]
fn refused_messages_go_to_the_senders_dead_letter_queue_even_a_whole_batch_of_them() {
    let mut receiver = receiver_config();
    receiver.dead_letter = DeadLetterSetting::Blank;
    let mut world = World::new(sender_config(), receiver);
    for body in ["a", "b", "c"] {
        world.put(body, "MISSING", PERSISTENT);
    }
    world.put("d", "Q", PERSISTENT);
    world.settle();
    assert_eq!((world.from.depth("DLQ"), world.from.depth("QM2")), (3, 0));
    assert_eq!(world.to.depth("Q"), 1);
    assert_eq!(world.sender.status().last_number, 4);
    assert_eq!(world.sender.state(), ChannelState::Running);
}

#[test]
fn inv_d3_without_any_dead_letter_queue_everything_stays() {
    let mut sender = sender_config();
    sender.dead_letter = DeadLetterSetting::Blank;
    let mut receiver = receiver_config();
    receiver.dead_letter = DeadLetterSetting::Blank;
    let mut world = World::new(sender, receiver);
    world.put("a", "Q", PERSISTENT);
    world.put("b", "MISSING", PERSISTENT);
    world.put("n", "MISSING", NON_PERSISTENT);
    world.settle();
    assert_eq!(world.sender.state(), ChannelState::Retrying);
    assert_eq!((world.from.depth("QM2"), world.to.depth("Q")), (2, 0));
}

#[test]
fn what_cannot_be_sent_goes_to_the_senders_dead_letter_queue_fast_or_not() {
    let mut world = World::new(sender_config(), receiver_config());
    let long = "x".repeat(1001);
    world.put(&long, "Q", PERSISTENT);
    world.put(&long, "Q", NON_PERSISTENT);
    world.put("a", "Q", PERSISTENT);
    world.settle();
    assert_eq!((world.from.depth("DLQ"), world.to.depth("Q")), (2, 1));
    assert_eq!(world.from.depth("QM2"), 0);
}

#[test]
fn a_stop_in_good_order_releases_the_transmission_queue() {
    let mut world = World::new(sender_config(), receiver_config());
    world.sender_input(SenderInput::StopRequested {
        mode: StopMode::Quiesce,
        status: StopStatus::Stopped,
    });
    world.settle();
    assert_eq!(world.sender.state(), ChannelState::Stopped);
    assert_eq!(world.from.engine.waiting_requests(), 0);
    world.put("a", "Q", PERSISTENT);
    assert_eq!(world.from.triggers, 1);
    world.start();
    assert_eq!(world.to.depth("Q"), 1);
}

#[test]
fn the_disconnect_interval_ends_by_the_wait_of_the_get() {
    let mut world = World::new(sender_config(), receiver_config());
    world.now = world.now.saturating_add(Duration::from_secs(6000));
    world.from.step(world.now, Input::Ticked);
    world.settle();
    assert_eq!(world.sender.state(), ChannelState::Inactive);
    world.put("a", "Q", PERSISTENT);
    assert_eq!(world.from.triggers, 1);
    world.sender_input(SenderInput::Triggered);
    world.settle();
    assert_eq!(world.to.depth("Q"), 1);
}

#[test]
fn a_message_that_arrives_while_the_channel_ends_triggers_it() {
    let mut world = World::new(sender_config(), receiver_config());
    world.now = world.now.saturating_add(Duration::from_secs(6000));
    world.from.step(world.now, Input::Ticked);
    // The get has ended and the channel has not closed its queue yet.
    world.put("a", "Q", PERSISTENT);
    world.settle();
    if world.from.triggers > 0 {
        world.sender_input(SenderInput::Triggered);
        world.settle();
    }
    assert_eq!(world.to.depth("Q"), 1);
}
