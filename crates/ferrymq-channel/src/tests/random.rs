//! Frames, answers and ends in any order: no panic, no commit out of order, nothing after the end.

use ferrymq_engine::{Failure, PutDone, ReceiverState, Reply, Request};
use ferrymq_types::{
    CorrelationId, MessageId, QueueManagerId, ReceiverRow, Timestamp, UnitOfWorkId,
};
use proptest::prelude::*;

use super::bind::bind;
use super::{
    DISCARD, EXCEPTION, Kind, NON_PERSISTENT, PERSISTENT, START, batch_id, channel_name, message,
    qmgr, reason, receiver_config, sender_config,
};
use crate::{
    AskId, BatchConfirmed, BatchEnd, BatchMessage, BindAccepted, Close, CloseReason, FastMessage,
    MessageRefused, ReceiverEffect, ReceiverFrame, ReceiverInput, ReceiverMca, ReceiverTimer,
    SenderEffect, SenderFrame, SenderInput, SenderMca, SenderTimer, StopMode, StopStatus, Withdraw,
};

#[derive(Debug, Clone)]
enum Step {
    Frame(SenderFrame),
    /// The oldest request is answered; with this reason if there is one.
    Answer(Option<u32>),
    Timer(ReceiverTimer),
    Stop(StopMode),
    Disconnected,
}

fn kind() -> impl Strategy<Value = Kind> {
    (
        any::<bool>(),
        prop::sample::select(vec![0, EXCEPTION, DISCARD, DISCARD | EXCEPTION]),
    )
        .prop_map(|(persistent, report)| Kind {
            report,
            ..if persistent {
                PERSISTENT
            } else {
                NON_PERSISTENT
            }
        })
}

fn frame() -> impl Strategy<Value = SenderFrame> {
    let name = prop::sample::select(vec!["Q", "", "not a name"]);
    prop_oneof![
        1 => Just(SenderFrame::Bind(bind())),
        8 => (0_u8..3, 0_u64..8, name.clone(), kind()).prop_map(|(batch, number, queue, kind)| {
            SenderFrame::Message(Box::new(BatchMessage {
                batch: batch_id(batch),
                number,
                remote_queue: queue.into(),
                remote_queue_manager: "QM2".into(),
                message: message("m", kind),
            }))
        }),
        2 => (name, kind()).prop_map(|(queue, kind)| SenderFrame::Fast(Box::new(FastMessage {
            remote_queue: queue.into(),
            remote_queue_manager: String::new(),
            message: message("f", kind),
        }))),
        4 => (0_u8..3, 0_u64..8, 0_u64..8).prop_map(|(batch, first_number, last_number)| {
            SenderFrame::BatchEnd(BatchEnd { batch: batch_id(batch), first_number, last_number })
        }),
        2 => (0_u64..8).prop_map(|number| SenderFrame::Withdraw(Withdraw { number })),
        1 => any::<bool>().prop_map(|answer| SenderFrame::Heartbeat { answer }),
    ]
}

fn code() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        6 => Just(None),
        1 => prop::sample::select(vec![2051, 2053, 2085, 2192, 2162, 9005, 9006, 9007]).prop_map(Some),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => frame().prop_map(Step::Frame),
        10 => code().prop_map(Step::Answer),
        1 => prop::sample::select(vec![
            ReceiverTimer::MessageRetry,
            ReceiverTimer::Heartbeat,
            ReceiverTimer::Silence,
            ReceiverTimer::Drain,
        ]).prop_map(Step::Timer),
        1 => prop::sample::select(vec![StopMode::Quiesce, StopMode::Force]).prop_map(Step::Stop),
        1 => Just(Step::Disconnected),
    ]
}

/// Frames that a good sender might send, with some that it would not.
fn conversation() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        (
            prop::collection::vec(kind(), 1..4),
            prop::collection::vec(step(), 0..3),
        ),
        0..6,
    )
    .prop_map(|batches| {
        let mut steps = vec![Step::Frame(SenderFrame::Bind(bind())), Step::Answer(None)];
        let mut number = 0;
        for (index, (kinds, noise)) in batches.into_iter().enumerate() {
            let batch = batch_id(u8::try_from(index).unwrap() + 10);
            let first_number = number + 1;
            for kind in kinds {
                number += 1;
                steps.push(Step::Frame(SenderFrame::Message(Box::new(BatchMessage {
                    batch,
                    number,
                    remote_queue: "Q".into(),
                    remote_queue_manager: "QM2".into(),
                    message: message("m", kind),
                }))));
                steps.push(Step::Answer(None));
                steps.push(Step::Answer(None));
            }
            steps.extend(noise);
            steps.push(Step::Frame(SenderFrame::BatchEnd(BatchEnd {
                batch,
                first_number,
                last_number: number,
            })));
            steps.extend([Step::Answer(None), Step::Answer(None), Step::Answer(None)]);
        }
        steps
    })
}

/// Answers as a queue manager would.
fn answer(request: &Request, fails: Option<u32>) -> Result<Reply, Failure> {
    if let Some(code) = fails {
        return Err(Failure {
            reason: reason(code),
            object: None,
        });
    }
    Ok(match request {
        Request::OpenReceiver { .. } => Reply::Receiver(ReceiverState {
            row: ReceiverRow {
                channel: channel_name(),
                sender: QueueManagerId::default(),
                sender_name: qmgr("QM1"),
                generation: 1,
                last_committed: 0,
                last_batch: UnitOfWorkId::NONE,
                reset_to: None,
            },
        }),
        Request::Put(_) => Reply::Put(PutDone {
            message_id: MessageId::NONE,
            correlation_id: CorrelationId::NONE,
            group_id: CorrelationId::NONE,
            message_sequence_number: 1,
            warning: ferrymq_types::ReasonCode::NONE,
            resolved_queue: String::new(),
            resolved_queue_manager: String::new(),
        }),
        _ => Reply::Done,
    })
}

/// Runs the steps and checks what must always hold; how many batches were committed.
fn run_receiver(steps: Vec<Step>) -> usize {
    let mut mca = ReceiverMca::new(receiver_config());
    let mut asked: std::collections::VecDeque<(AskId, Request)> = Default::default();
    let mut effects = Vec::new();
    let mut now = START;
    let mut committed = 0;
    let mut batches = 0;
    let mut confirmed = 0;
    let mut in_commit = None;
    for step in steps {
        now = super::after(now, 1000);
        let was_closed = mca.is_closed();
        let input = match step {
            Step::Frame(frame) if mca.wants_frames() => ReceiverInput::FrameReceived(frame),
            Step::Frame(_) => continue,
            Step::Answer(fails) => match asked.pop_front() {
                None => continue,
                Some((ask, request)) => {
                    let result = answer(&request, fails);
                    if let (Request::CommitReceived { last_number, .. }, Ok(_)) =
                        (&request, &result)
                    {
                        committed = *last_number;
                        batches += 1;
                    }
                    if matches!(request, Request::CommitReceived { .. }) {
                        in_commit = None;
                    }
                    ReceiverInput::Answered { ask, result }
                }
            },
            Step::Timer(timer) => ReceiverInput::TimerFired(timer),
            Step::Stop(mode) => ReceiverInput::StopRequested {
                mode,
                status: StopStatus::Inactive,
            },
            Step::Disconnected => ReceiverInput::Disconnected {
                text: String::new(),
            },
        };
        mca.handle(now, input, &mut effects);
        if was_closed {
            assert!(effects.is_empty(), "u5: nothing happens after the end");
        }
        for effect in effects.drain(..) {
            match effect {
                ReceiverEffect::Ask { ask, request } => {
                    if let Request::CommitReceived {
                        first_number,
                        last_number,
                        ..
                    } = &request
                    {
                        assert_eq!(in_commit, None, "one commit at a time");
                        assert_eq!(*first_number, committed + 1, "inv_h1: the next batch");
                        assert!(last_number >= first_number);
                        in_commit = Some(*last_number);
                    }
                    asked.push_back((ask, request));
                }
                ReceiverEffect::Send(ReceiverFrame::BatchConfirmed(c)) => {
                    assert_eq!(c.last_number, committed, "u7: only what is durable");
                    assert!(c.last_number > confirmed);
                    confirmed = c.last_number;
                }
                _ => {}
            }
        }
        let status = mca.status();
        assert!(status.current_messages <= 3, "never more than the batch");
    }
    batches
}

#[derive(Debug, Clone)]
enum SenderStep {
    /// The partner confirms what was asked for last.
    Confirm,
    Frame(ReceiverFrame),
    Answer(Option<u32>),
    Connected,
    ConnectFailed,
    Disconnected,
    Start,
    Stop(StopMode, StopStatus),
    Triggered,
    Timer(SenderTimer),
}

fn accepted(last_committed: u64) -> ReceiverFrame {
    ReceiverFrame::BindAccepted(BindAccepted {
        queue_manager: qmgr("QM2"),
        queue_manager_id: QueueManagerId::new([2; 16]),
        last_committed,
        last_batch: batch_id(1),
        batch_size: 2,
        message_length_max: 1000,
        heartbeat_interval: 10,
        fast: true,
    })
}

fn sender_step() -> impl Strategy<Value = SenderStep> {
    let reasons = vec![
        CloseReason::Normal,
        CloseReason::SequenceError,
        CloseReason::BatchRefused,
        CloseReason::NotAuthorized,
    ];
    prop_oneof![
        4 => Just(SenderStep::Connected),
        1 => Just(SenderStep::ConnectFailed),
        1 => Just(SenderStep::Disconnected),
        2 => Just(SenderStep::Start),
        1 => Just(SenderStep::Triggered),
        1 => (
            prop::sample::select(vec![StopMode::Quiesce, StopMode::Force]),
            prop::sample::select(vec![StopStatus::Stopped, StopStatus::Inactive]),
        ).prop_map(|(mode, status)| SenderStep::Stop(mode, status)),
        14 => code().prop_map(SenderStep::Answer),
        2 => prop::sample::select(vec![
            SenderTimer::Retry,
            SenderTimer::Establish,
            SenderTimer::Heartbeat,
            SenderTimer::Silence,
        ]).prop_map(SenderStep::Timer),
        4 => (0_u64..2).prop_map(|n| SenderStep::Frame(accepted(n))),
        1 => prop::sample::select(reasons)
            .prop_map(|r| SenderStep::Frame(ReceiverFrame::Close(Close::new(r, "")))),
        1 => (1_u64..4).prop_map(|number| SenderStep::Frame(ReceiverFrame::MessageRefused(
            MessageRefused { number, reason: reason(2085) },
        ))),
        1 => any::<bool>().prop_map(|answer| SenderStep::Frame(ReceiverFrame::Heartbeat { answer })),
        4 => Just(SenderStep::Confirm),
    ]
}

/// Runs the steps against a queue manager that answers in order.
fn run_sender(steps: Vec<SenderStep>) {
    let mut mca = SenderMca::new(sender_config(), 7);
    let mut from = super::fake::SenderQueueManager::new();
    for index in 0..20 {
        let kind = if index % 3 == 0 {
            NON_PERSISTENT
        } else {
            PERSISTENT
        };
        from.put(&format!("m{index}"), "Q", kind);
    }
    let mut asked: std::collections::VecDeque<(AskId, Request)> = Default::default();
    let mut effects = Vec::new();
    let mut now: Timestamp = START;
    let mut asked_for = None;
    let mut prepared = Vec::new();
    for step in steps {
        now = super::after(now, 1000);
        let input = match step {
            SenderStep::Confirm => match asked_for.take() {
                None => continue,
                Some(end) => {
                    SenderInput::FrameReceived(ReceiverFrame::BatchConfirmed(confirm(end)))
                }
            },
            SenderStep::Frame(frame) => SenderInput::FrameReceived(frame),
            SenderStep::Answer(fails) => match asked.pop_front() {
                None => match from.waiting_answer(now) {
                    None => continue,
                    Some((ask, result)) => SenderInput::Answered { ask, result },
                },
                Some((ask, request)) => {
                    let prepare = match &request {
                        Request::PrepareBatch { batch, .. } => Some(*batch),
                        _ => None,
                    };
                    let result = match fails {
                        Some(code) => Some(Err(Failure {
                            reason: reason(code),
                            object: None,
                        })),
                        None => from.answer(now, ask, request),
                    };
                    let Some(result) = result else { continue };
                    if let (Some(batch), Ok(_)) = (prepare, &result) {
                        prepared.push(batch);
                    }
                    SenderInput::Answered { ask, result }
                }
            },
            SenderStep::Connected => SenderInput::Connected {
                peer: String::new(),
            },
            SenderStep::ConnectFailed => SenderInput::ConnectFailed {
                text: String::new(),
                refused: false,
            },
            SenderStep::Disconnected => SenderInput::Disconnected {
                text: String::new(),
            },
            SenderStep::Start => SenderInput::StartRequested,
            SenderStep::Stop(mode, status) => SenderInput::StopRequested { mode, status },
            SenderStep::Triggered => SenderInput::Triggered,
            SenderStep::Timer(timer) => SenderInput::TimerFired(timer),
        };
        mca.handle(now, input, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                SenderEffect::Ask { ask, request } => asked.push_back((ask, request)),
                SenderEffect::Cancel { ask } => from.cancel(ask),
                SenderEffect::Send(SenderFrame::BatchEnd(end)) => {
                    assert!(
                        prepared.contains(&end.batch),
                        "u4: durable before it leaves"
                    );
                    asked_for = Some(end);
                }
                _ => {}
            }
        }
        // Reading it must not panic either.
        assert_eq!(mca.status().state, mca.state());
    }
}

fn confirm(end: BatchEnd) -> BatchConfirmed {
    BatchConfirmed {
        batch: end.batch,
        last_number: end.last_number,
        dead_lettered: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_receiver_takes_any_frames_and_commits_in_order_only(steps in prop::collection::vec(step(), 0..60)) {
        run_receiver(steps);
    }

    #[test]
    fn a_receiver_takes_a_conversation_with_noise(steps in conversation()) {
        run_receiver(steps);
    }

    #[test]
    fn a_sender_takes_any_inputs_and_never_asks_for_what_is_not_durable(
        steps in prop::collection::vec(sender_step(), 0..120),
    ) {
        run_sender(steps);
    }
}

#[test]
fn the_random_conversations_get_as_far_as_commits() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut batches = 0;
    for _ in 0..100 {
        let steps = conversation().new_tree(&mut runner).unwrap().current();
        batches += run_receiver(steps);
    }
    assert!(batches > 50, "{batches}");
}
