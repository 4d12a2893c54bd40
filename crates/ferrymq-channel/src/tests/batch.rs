//! Batches: numbers, limits, what is durable before what leaves, and what happens when an end or the link goes.

use core::time::Duration;

use ferrymq_types::{Message, MessageDescriptor, Persistence, UnitOfWorkId};

use super::bind::bind;
use super::pair::Pair;
use super::{PERSISTENT, START, batch_id, message, reason, receiver_config, sender_config};
use crate::{
    BatchEnd, BatchMessage, ChannelState, CloseReason, ReceiverFrame, ReceiverInput, ReceiverMca,
    SenderFrame, SenderInput,
};

fn put(pair: &mut Pair, bodies: &[&str]) {
    for body in bodies {
        pair.from.put(body, "Q", PERSISTENT);
    }
}

#[test]
fn u4_the_end_of_a_batch_leaves_after_it_is_durable() {
    let mut pair = Pair::running();
    put(&mut pair, &["a", "b"]);
    pair.sender_turn(); // the messages
    pair.sender_turn(); // there are no more
    let expected = [
        "S send Message 1 a",
        "S send Message 2 b",
        "S ask Get 1",
        "S ask Prepare 1..2",
    ];
    assert_eq!(pair.log, expected);
    pair.settle();
    let prepared = pair.position("S ask Prepare 1..2");
    assert_eq!(
        pair.log
            .iter()
            .filter(|l| *l == "S send BatchEnd 1..2")
            .count(),
        1
    );
    assert!(pair.position("S send BatchEnd 1..2") > prepared);
}

#[test]
fn u4_a_batch_that_cannot_be_made_durable_is_never_asked_for() {
    let mut pair = Pair::running();
    pair.from.failures.insert("Prepare", [reason(9007)].into());
    put(&mut pair, &["a"]);
    pair.settle();
    assert!(pair.lines(&["S send BatchEnd"]).is_empty());
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(pair.from.bodies(), ["a"]);
    assert!(pair.to.delivered.is_empty());
}

#[test]
fn a_batch_goes_through_put_commit_confirm_and_settle_in_this_order() {
    let mut pair = Pair::running();
    put(&mut pair, &["a", "b"]);
    pair.settle();
    let expected = [
        "S send Message 1 a",
        "S send Message 2 b",
        "S ask Get 1",
        "S ask Prepare 1..2",
        "S send BatchEnd 1..2",
        "R ask Begin",
        "R ask Put Q@QM2 in batch a",
        "R ask Put Q@QM2 in batch b",
        "R ask Commit 1..2",
        "R send Confirmed 2",
        "S ask Settle 2",
        "S ask Get 3",
    ];
    let order = |log: &[String], start: &str| -> Vec<String> {
        log.iter()
            .filter(|l| l.starts_with(start))
            .cloned()
            .collect()
    };
    let wanted: Vec<String> = expected.iter().map(|l| (*l).to_owned()).collect();
    assert_eq!(order(&pair.log, "S"), order(&wanted, "S"));
    assert_eq!(order(&pair.log, "R"), order(&wanted, "R"));
    for (before, after) in [
        ("S send BatchEnd 1..2", "R ask Commit 1..2"),
        ("R ask Commit 1..2", "R send Confirmed 2"),
        ("R send Confirmed 2", "S ask Settle 2"),
    ] {
        assert!(pair.position(before) < pair.position(after));
    }
    assert!(pair.from.bodies().is_empty());
    assert_eq!(pair.to.bodies("Q"), ["a", "b"]);
}

#[test]
fn u7_a_batch_is_confirmed_after_its_commit_is_durable() {
    let mut pair = Pair::new();
    pair.receiver = Some(ReceiverMca::new(receiver_config()));
    pair.receiver_input(ReceiverInput::FrameReceived(SenderFrame::Bind(bind())));
    pair.settle();
    feed(&mut pair, &[batch_message(1, "a"), end(1, 1)]);
    pair.hold_down = true;
    pair.settle();
    let commit = pair.position("R ask Commit 1..1");
    assert!(pair.position("R send Confirmed 1") > commit);
    let between = &pair.log[commit..];
    assert_eq!(between, ["R ask Commit 1..1", "R send Confirmed 1"]);
}

#[test]
fn inv_h1_numbers_rise_by_one_over_batches_and_conversations() {
    let mut pair = Pair::running();
    put(&mut pair, &["a", "b", "c", "d"]);
    pair.settle();
    pair.cut();
    put(&mut pair, &["e"]);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.to.commits, [(1, 3), (4, 4), (5, 5)]);
    assert_eq!(pair.to.bodies("Q"), ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_batch_ends_at_its_size() {
    let mut pair = Pair::running();
    put(&mut pair, &["a", "b", "c", "d"]);
    pair.settle();
    let ends = pair.lines(&["S send BatchEnd"]);
    assert_eq!(ends, ["S send BatchEnd 1..3", "S send BatchEnd 4..4"]);
}

#[test]
fn a_batch_ends_after_the_message_that_crosses_batchlim() {
    let mut sender = sender_config();
    sender.channel.batch_data_limit = 1;
    sender.channel.batch_size = 50;
    let mut pair = Pair::running_with(sender, receiver_config());
    let long = "x".repeat(600);
    put(&mut pair, &[&long, &long]);
    pair.settle();
    put(&mut pair, &["a"]);
    pair.settle();
    let ends = pair.lines(&["S send BatchEnd"]);
    assert_eq!(ends, ["S send BatchEnd 1..2", "S send BatchEnd 3..3"]);
}

#[test]
fn a_batch_stays_open_for_batchint() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_millis(2500);
    let mut pair = Pair::running_with(sender, receiver_config());
    put(&mut pair, &["a"]);
    pair.pass(Duration::from_millis(2400));
    assert!(pair.lines(&["S send BatchEnd"]).is_empty());
    put(&mut pair, &["b"]);
    pair.pass(Duration::from_millis(99));
    assert!(pair.lines(&["S send BatchEnd"]).is_empty());
    pair.pass(Duration::from_millis(1));
    assert_eq!(pair.lines(&["S send BatchEnd"]), ["S send BatchEnd 1..2"]);
}

#[test]
fn inv_h3_a_receiver_that_goes_mid_batch_leaves_nothing_of_it() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(5);
    let mut pair = Pair::running_with(sender, receiver_config());
    put(&mut pair, &["a", "b"]);
    pair.settle();
    pair.cut();
    assert!(pair.has("R ask BackOut"));
    assert!(pair.to.delivered.is_empty());
    assert_eq!(pair.from.bodies(), ["a", "b"]);
    pair.pass(Duration::from_secs(65));
    assert_eq!(pair.to.bodies("Q"), ["a", "b"]);
}

#[test]
fn inv_h2_only_what_was_confirmed_leaves_the_transmission_queue() {
    let mut pair = Pair::running();
    pair.hold_down = true;
    put(&mut pair, &["a"]);
    pair.settle();
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert_eq!(pair.from.bodies(), ["a"]);
    assert!(pair.sender.status().in_doubt);
    pair.hold_down = false;
    pair.settle();
    assert!(pair.from.bodies().is_empty());
}

#[test]
fn inv_h2_a_confirmation_of_another_batch_settles_nothing() {
    for (batch, last_number) in [(batch_id(9), 1), (UnitOfWorkId::NONE, 2)] {
        let mut pair = Pair::running();
        pair.hold_down = true;
        put(&mut pair, &["a"]);
        pair.settle();
        pair.down.clear();
        pair.hold_down = false;
        let confirmed = crate::BatchConfirmed {
            batch,
            last_number,
            dead_lettered: 0,
        };
        pair.sender_input(SenderInput::FrameReceived(ReceiverFrame::BatchConfirmed(
            confirmed,
        )));
        pair.settle();
        assert!(pair.has("S report AMQ9207"));
        assert!(pair.lines(&["S ask Settle"]).is_empty());
        assert_eq!(pair.from.bodies(), ["a"]);
    }
}

#[test]
fn inv_h4_a_sender_that_crashes_at_any_answer_neither_loses_nor_repeats() {
    for crash_at in 1..=12 {
        let mut pair = Pair::new();
        put(&mut pair, &["a", "b", "c", "d"]);
        pair.sender_input(SenderInput::StartRequested);
        for _ in 0..crash_at {
            pair.step();
        }
        pair.crash_sender();
        pair.start();
        assert_eq!(pair.to.bodies("Q"), ["a", "b", "c", "d"], "{crash_at}");
        assert!(pair.from.bodies().is_empty(), "{crash_at}");
        let numbers: Vec<(u64, u64)> = pair.to.commits.clone();
        let mut next = 1;
        for (first, last) in numbers {
            assert_eq!(first, next);
            next = last + 1;
        }
    }
}

#[test]
fn inv_h3_a_link_that_breaks_at_any_step_neither_loses_nor_repeats() {
    for cut_at in 1..=40 {
        let mut pair = Pair::new();
        put(&mut pair, &["a", "b", "c", "d"]);
        pair.sender_input(SenderInput::StartRequested);
        for _ in 0..cut_at {
            pair.step();
        }
        if pair.sender.state() == ChannelState::Running {
            pair.cut();
        }
        pair.pass(Duration::from_secs(120));
        assert_eq!(pair.to.bodies("Q"), ["a", "b", "c", "d"], "{cut_at}");
        assert!(pair.from.bodies().is_empty(), "{cut_at}");
    }
}

/// A receiver that has bound, alone.
fn bound() -> Pair {
    let mut pair = Pair::new();
    pair.receiver = Some(ReceiverMca::new(receiver_config()));
    pair.receiver_input(ReceiverInput::FrameReceived(SenderFrame::Bind(bind())));
    pair.hold_down = true;
    pair.settle();
    pair.down.clear();
    pair.log.clear();
    pair
}

fn feed(pair: &mut Pair, frames: &[SenderFrame]) {
    pair.up.extend(frames.iter().cloned());
}

fn batch_message_of(batch: u8, number: u64, body: &str) -> SenderFrame {
    SenderFrame::Message(Box::new(BatchMessage {
        batch: batch_id(batch),
        number,
        remote_queue: "Q".into(),
        remote_queue_manager: "QM2".into(),
        message: message(body, PERSISTENT),
    }))
}

fn batch_message(number: u64, body: &str) -> SenderFrame {
    batch_message_of(1, number, body)
}

fn end(first_number: u64, last_number: u64) -> SenderFrame {
    SenderFrame::BatchEnd(BatchEnd {
        batch: batch_id(1),
        first_number,
        last_number,
    })
}

#[test]
fn what_does_not_fit_the_protocol_ends_the_conversation_and_backs_the_batch_out() {
    let long = "x".repeat(1001);
    let mut cases: Vec<(&str, Vec<SenderFrame>)> = vec![
        ("gap", vec![batch_message(1, "a"), batch_message(3, "b")]),
        ("repeat", vec![batch_message(1, "a"), batch_message(1, "a")]),
        ("late start", vec![batch_message(2, "a")]),
        ("number 0", vec![batch_message(0, "a")]),
        ("too long", vec![batch_message(1, &long)]),
        ("no id", vec![batch_message_of(0, 1, "a")]),
        (
            "two batches",
            vec![batch_message(1, "a"), batch_message_of(2, 2, "b")],
        ),
        ("too many", (1..=4).map(|n| batch_message(n, "a")).collect()),
        ("empty batch", vec![end(1, 1)]),
        ("wrong first", vec![batch_message(1, "a"), end(0, 1)]),
        ("wrong last", vec![batch_message(1, "a"), end(1, 2)]),
        (
            "second end",
            vec![batch_message(1, "a"), end(1, 1), end(1, 1)],
        ),
        ("second bind", vec![SenderFrame::Bind(bind())]),
        (
            "withdrawn for nothing",
            vec![
                batch_message(1, "a"),
                SenderFrame::Withdraw(crate::Withdraw { number: 1 }),
            ],
        ),
    ];
    let other_end = BatchEnd {
        batch: batch_id(2),
        first_number: 1,
        last_number: 1,
    };
    cases.push((
        "other end",
        vec![batch_message(1, "a"), SenderFrame::BatchEnd(other_end)],
    ));
    for (name, frames) in cases {
        let mut pair = bound();
        // All of it lies in the link before the queue manager answers anything.
        for frame in frames {
            pair.receiver_input(ReceiverInput::FrameReceived(frame));
        }
        assert!(
            pair.has("R send Close ProtocolError"),
            "{name}: {:#?}",
            pair.log
        );
        assert!(pair.has("R report AMQ9207"), "{name}");
        assert_eq!(pair.log.last().unwrap(), "R state INACTIVE", "{name}");
        pair.settle();
        assert!(pair.to.delivered.is_empty(), "{name}");
        assert!(pair.lines(&["R ask Commit"]).is_empty(), "{name}");
    }
}

#[test]
fn u5_after_a_refused_commit_everything_is_dropped() {
    for (code, close) in [
        (9005, CloseReason::SequenceError),
        (9006, CloseReason::Superseded),
        (9007, CloseReason::QueueManagerStopping),
        (2192, CloseReason::BatchRefused),
    ] {
        let mut pair = bound();
        pair.to.failures.insert("Commit", [reason(code)].into());
        feed(&mut pair, &[batch_message(1, "a"), end(1, 1)]);
        pair.settle();
        assert!(
            pair.has(&format!("R send Close {close:?}")),
            "{:#?}",
            pair.log
        );
        assert!(pair.lines(&["R send Confirmed"]).is_empty());
        let before = pair.log.len();
        for frame in [
            batch_message_of(2, 2, "b"),
            end(2, 2),
            SenderFrame::Bind(bind()),
        ] {
            pair.receiver_input(ReceiverInput::FrameReceived(frame));
        }
        assert_eq!(pair.log.len(), before, "{code}");
    }
}

#[test]
fn amq9506_a_refused_batch_is_retried_and_nothing_is_lost() {
    let mut pair = Pair::running();
    pair.to.failures.insert("Commit", [reason(2192)].into());
    put(&mut pair, &["a"]);
    pair.settle();
    assert!(pair.has("S report AMQ9506"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(pair.from.bodies(), ["a"]);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn a_sequence_error_while_running_is_retried() {
    let mut pair = Pair::running();
    pair.to.failures.insert("Commit", [reason(9005)].into());
    put(&mut pair, &["a"]);
    pair.settle();
    assert!(pair.has("R report AMQ9526"));
    assert!(pair.has("S report AMQ9526"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn inv_h5_an_older_conversation_commits_nothing_after_a_newer_bind() {
    let mut old = bound();
    feed(&mut old, &[batch_message(1, "a"), end(1, 1)]);
    old.to.failures.insert("Commit", [reason(9006)].into());
    old.settle();
    assert!(old.has("R send Close Superseded"));
    assert!(old.to.delivered.is_empty());
}

#[test]
fn the_message_is_what_was_put_without_its_transmission_header() {
    let mut pair = Pair::running();
    put(&mut pair, &["a"]);
    pair.settle();
    let put = &pair.to.puts[0];
    let arrived = Message {
        descriptor: put.descriptor.clone(),
        header: put.header.clone(),
        body: put.body.clone(),
    };
    assert_eq!(arrived, message("a", PERSISTENT));
    assert_eq!(put.context, ferrymq_engine::Context::SetAll);
    assert_eq!(put.persistence, Some(Persistence::Persistent));
}

#[test]
fn a_transmission_header_in_the_body_is_taken_off_too() {
    let mut pair = Pair::running();
    let by_queue_manager = super::transmission("a", "Q", PERSISTENT);
    let by_application = Message {
        descriptor: by_queue_manager.descriptor.clone(),
        header: bytes::Bytes::new(),
        body: by_queue_manager.data(),
    };
    pair.from.put_message(std::sync::Arc::new(by_application));
    pair.settle();
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn the_expiry_is_that_of_the_message_on_the_transmission_queue() {
    let mut pair = Pair::running();
    let mut message = Message::clone(&super::transmission("a", "Q", PERSISTENT));
    let due = START.saturating_add(Duration::from_secs(3600));
    message.descriptor = MessageDescriptor {
        expires_at: Some(due),
        ..message.descriptor
    };
    pair.from.put_message(std::sync::Arc::new(message));
    pair.settle();
    assert_eq!(pair.to.puts[0].descriptor.expires_at, Some(due));
}
