//! Fast messages: outside batches, without numbers, lost rather than waited for, and every loss counted.

use core::time::Duration;

use ferrymq_objects::UseDlq;
use ferrymq_types::{Persistence, ReasonCode};

use super::pair::Pair;
use super::{
    EXCEPTION, EXCEPTION_WITH_FULL_DATA, Kind, NON_PERSISTENT, PERSISTENT, message, reason,
    receiver_config, sender_config,
};
use crate::undelivered::MessageKind;
use crate::{
    ChannelState, DeadLetterSetting, FastMessage, ReceiverInput, SenderFrame, UndeliveredAction,
};

#[test]
fn fast_messages_are_in_no_batch_and_have_no_number() {
    let mut pair = Pair::running();
    pair.from.put("p1", "Q", PERSISTENT);
    pair.from.put("n1", "Q", NON_PERSISTENT);
    pair.from.put("p2", "Q", PERSISTENT);
    pair.from.put("n2", "Q", NON_PERSISTENT);
    pair.settle();
    let sent = pair.lines(&["S send Message", "S send Fast", "S send BatchEnd"]);
    assert_eq!(
        sent,
        [
            "S send Message 1 p1",
            "S send Fast n1",
            "S send Message 2 p2",
            "S send Fast n2",
            "S send BatchEnd 1..2"
        ]
    );
    let puts = pair.lines(&["R ask Put"]);
    assert!(puts.contains(&"R ask Put Q@QM2 n1"), "{puts:?}");
    assert!(puts.contains(&"R ask Put Q@QM2 in batch p1"));
    assert_eq!(pair.to.commits, [(1, 2)]);
}

#[test]
fn fast_messages_alone_need_no_confirmation() {
    let mut pair = Pair::running();
    pair.from.put("n1", "Q", NON_PERSISTENT);
    pair.from.put("n2", "Q", NON_PERSISTENT);
    pair.settle();
    assert_eq!(pair.sent(), ["S send Fast n1", "S send Fast n2"]);
    assert!(pair.lines(&["R ask Commit", "R ask Begin"]).is_empty());
    assert_eq!(pair.to.bodies("Q"), ["n1", "n2"]);
    assert_eq!(pair.sender.status().counters.fast_messages, 2);
}

#[test]
fn fast_messages_do_not_count_for_the_batch_size() {
    let mut pair = Pair::running();
    for n in ["1", "2", "3", "4"] {
        pair.from.put(&format!("n{n}"), "Q", NON_PERSISTENT);
        pair.from.put(&format!("p{n}"), "Q", PERSISTENT);
    }
    pair.settle();
    assert_eq!(pair.to.commits, [(1, 3), (4, 4)]);
}

#[test]
fn fast_non_persistent_is_discarded_when_usedlq_no() {
    let mut receiver = receiver_config();
    receiver.channel.use_dead_letter_queue = UseDlq::No;
    let mut pair = Pair::running_with(sender_config(), receiver);
    pair.from.put("n", "MISSING", NON_PERSISTENT);
    pair.from.put("after", "Q", NON_PERSISTENT);
    pair.to
        .full
        .insert("MISSING".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.settle();
    assert!(pair.has("R ask Account MISSING"));
    assert!(pair.has("R report FMQ9801"));
    assert_eq!(pair.to.bodies("Q"), ["after"]);
    assert_eq!(pair.sender.state(), ChannelState::Running);
    let counters = pair.receiver.as_ref().unwrap().status().counters;
    let key = (UndeliveredAction::Discarded, reason(2085));
    assert_eq!(counters.undelivered.get(&key), Some(&1));
}

#[test]
fn inv_d6_fast_is_discarded_with_its_report_when_the_dead_letter_queue_is_full() {
    let mut pair = Pair::running();
    let kind = Kind {
        report: EXCEPTION_WITH_FULL_DATA,
        ..NON_PERSISTENT
    };
    pair.from.put("n", "MISSING", kind);
    pair.to
        .full
        .insert("MISSING".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.to.full.insert("DLQ".into(), ReasonCode::Q_FULL);
    pair.settle();
    let expected = [
        "R ask Put MISSING@QM2 n",
        "R ask Put DLQ n",
        "R ask Put REPLY@QM1 n",
        "R ask Account MISSING",
    ];
    assert_eq!(pair.lines(&["R ask"]), expected);
    assert_eq!(pair.sender.state(), ChannelState::Running);
}

#[test]
fn fast_is_dead_lettered_outside_syncpoint() {
    let mut pair = Pair::running();
    let kind = Kind {
        report: EXCEPTION,
        ..NON_PERSISTENT
    };
    pair.from.put("n", "MISSING", kind);
    pair.to
        .full
        .insert("MISSING".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.settle();
    let expected = [
        "R ask Put MISSING@QM2 n",
        "R ask Put DLQ n",
        "R ask Put REPLY@QM1 ",
    ];
    assert_eq!(pair.lines(&["R ask"]), expected);
    assert!(pair.has("R report AMQ9544"));
}

#[test]
fn inv_n2_a_fast_message_on_a_broken_link_is_lost_once_and_never_sent_again() {
    let mut pair = Pair::running();
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.sender_turn();
    pair.cut();
    pair.pass(Duration::from_secs(60));
    assert!(pair.to.delivered.is_empty());
    assert_eq!(pair.lines(&["S send Fast"]), ["S send Fast n"]);
}

#[test]
fn inv_n2_fast_messages_that_come_too_late_to_be_sent_are_counted() {
    let mut pair = Pair::running();
    pair.hold_answers = true;
    pair.from.put("n", "Q", NON_PERSISTENT);
    // The queue manager has answered, and the link breaks before the answer is here.
    let (ask, result) = pair.from.waiting_answer(pair.now).unwrap();
    pair.cut();
    pair.sender_input(crate::SenderInput::Answered { ask, result });
    assert!(pair.has("S report FMQ9805"));
    assert_eq!(pair.sender.status().counters.fast_lost, 1);
}

#[test]
fn what_a_receiver_has_of_fast_messages_is_put_when_the_link_breaks() {
    let mut pair = Pair::running();
    pair.from.put("n1", "Q", NON_PERSISTENT);
    pair.from.put("n2", "Q", NON_PERSISTENT);
    pair.sender_turn();
    for _ in 0..2 {
        let frame = pair.up.pop_front().unwrap();
        pair.receiver_input(ReceiverInput::FrameReceived(frame));
    }
    pair.cut();
    assert_eq!(pair.to.bodies("Q"), ["n1", "n2"]);
}

#[test]
fn regression_fast_messages_behind_a_batch_message_are_put_when_the_link_breaks() {
    let mut pair = Pair::running();
    let frame = |body: &str, number| {
        SenderFrame::Message(Box::new(crate::BatchMessage {
            batch: ferrymq_types::UnitOfWorkId::new([9; 16]),
            number,
            remote_queue: "Q".into(),
            remote_queue_manager: "QM2".into(),
            message: message(body, PERSISTENT),
        }))
    };
    let fast = SenderFrame::Fast(Box::new(FastMessage {
        remote_queue: "Q".into(),
        remote_queue_manager: "QM2".into(),
        message: message("n", NON_PERSISTENT),
    }));
    // The queue manager has not answered the begin of the batch when the link breaks.
    for frame in [frame("p", 1), fast] {
        pair.receiver_input(ReceiverInput::FrameReceived(frame));
    }
    pair.cut();
    assert_eq!(pair.to.bodies("Q"), ["n"]);
    assert!(pair.has("R disconnect"), "{:?}", pair.log);
}

#[test]
fn a_persistent_message_never_comes_as_a_fast_one() {
    let mut pair = Pair::running();
    let frame = SenderFrame::Fast(Box::new(FastMessage {
        remote_queue: "Q".into(),
        remote_queue_manager: "QM2".into(),
        message: message("p", PERSISTENT),
    }));
    pair.receiver_input(ReceiverInput::FrameReceived(frame));
    assert!(pair.has("R send Close ProtocolError"));
    assert!(pair.to.delivered.is_empty());
}

#[test]
fn inv_n4_what_is_not_persistent_on_the_transmission_queue_does_not_become_so() {
    let mut pair = Pair::running();
    // An application put a header that says persistent on a message that is not.
    let inside = super::transmission("n", "Q", PERSISTENT);
    let mut message = ferrymq_types::Message::clone(&inside);
    message.descriptor.persistence = Persistence::NonPersistent;
    pair.from.put_message(std::sync::Arc::new(message));
    pair.settle();
    assert_eq!(pair.sent(), ["S send Fast n"]);
    assert_eq!(
        pair.to.puts[0].persistence,
        Some(Persistence::NonPersistent)
    );
}

#[test]
fn a_fast_message_that_is_too_long_goes_to_the_dead_letter_queue_or_is_discarded() {
    let long = "x".repeat(1001);
    let mut pair = Pair::running();
    pair.from.put(&long, "Q", NON_PERSISTENT);
    pair.settle();
    assert_eq!(pair.from.dead, [(long.clone(), reason(2218))]);
    assert!(pair.has("S report AMQ9527"));

    let mut sender = sender_config();
    sender.dead_letter = DeadLetterSetting::Blank;
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put(&long, "Q", NON_PERSISTENT);
    pair.from.put("after", "Q", NON_PERSISTENT);
    pair.settle();
    assert_eq!(pair.from.discarded, [(long, reason(2218))]);
    assert_eq!(pair.to.bodies("Q"), ["after"]);
    assert_eq!(pair.sender.state(), ChannelState::Running);
}

#[test]
fn kinds_follow_persistence() {
    let kind = MessageKind::in_batch;
    assert_eq!(kind(Persistence::Persistent), MessageKind::Persistent);
    assert_eq!(
        kind(Persistence::NonPersistent),
        MessageKind::NonPersistentNormal
    );
}
