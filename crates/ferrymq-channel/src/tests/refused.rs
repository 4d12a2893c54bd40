//! Messages that cannot be put at the receiver, or cannot be sent: both ends together.

use core::time::Duration;

use ferrymq_objects::{MessageSpeed, UseDlq};
use ferrymq_types::{ReasonCode, ReceiverRow, Timestamp, UnitOfWorkId};

use super::pair::Pair;
use super::{
    DISCARD, EXCEPTION, EXCEPTION_WITH_FULL_DATA, Kind, NON_PERSISTENT, PERSISTENT, message,
    reason, receiver_config, sender_config, transmission,
};
use crate::{
    AskId, BatchMessage, Bind, ChannelState, DeadLetterSetting, ReceiverEffect, ReceiverFrame,
    ReceiverInput, ReceiverMca, ReceiverTimer, SenderFrame, UndeliveredAction, silence_limit,
};

/// A pair whose receiver has no use of a dead-letter queue, and cannot put on `BAD`.
fn without_receiver_dlq(sender_dlq: DeadLetterSetting) -> Pair {
    let mut sender = sender_config();
    sender.dead_letter = sender_dlq;
    let mut receiver = receiver_config();
    receiver.dead_letter = DeadLetterSetting::Blank;
    let mut pair = Pair::running_with(sender, receiver);
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair
}

fn dlq() -> DeadLetterSetting {
    DeadLetterSetting::Queue(super::queue("DLQ"))
}

#[test]
fn a_message_for_a_missing_queue_is_dead_lettered_in_its_batch() {
    let mut pair = Pair::running();
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    for (body, to) in [("a", "Q"), ("b", "BAD"), ("c", "Q")] {
        pair.from.put(body, to, PERSISTENT);
    }
    pair.settle();
    let expected = [
        "R ask Begin",
        "R ask Put Q@QM2 in batch a",
        "R ask Put BAD@QM2 in batch b",
        "R ask Put DLQ in batch b",
        "R ask Put Q@QM2 in batch c",
        "R ask Commit 1..3",
    ];
    assert_eq!(pair.lines(&["R ask"]), expected);
    assert_eq!(pair.to.bodies("DLQ"), ["b"]);
    // Location 1 at the end that has the queue, 2 at the other.
    assert!(pair.has("R report AMQ9544"));
    assert!(pair.has("S report AMQ9544"));
}

#[test]
fn a_report_is_put_in_the_unit_of_work_of_the_dead_letter() {
    let mut pair = Pair::running();
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    let kind = Kind {
        report: EXCEPTION,
        ..PERSISTENT
    };
    pair.from.put("b", "BAD", kind);
    pair.settle();
    let expected = [
        "R ask Begin",
        "R ask Put BAD@QM2 in batch b",
        "R ask Put DLQ in batch b",
        "R ask Put REPLY@QM1 in batch ",
        "R ask Commit 1..1",
    ];
    assert_eq!(pair.lines(&["R ask"]), expected);
    let report = pair.to.puts.last().unwrap();
    assert_eq!(report.descriptor.feedback, 2085);
}

#[test]
fn discard_with_full_data_returns_the_message_to_its_sender() {
    let mut pair = Pair::running();
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    let kind = Kind {
        report: DISCARD | EXCEPTION_WITH_FULL_DATA,
        ..PERSISTENT
    };
    pair.from.put("b", "BAD", kind);
    pair.settle();
    let expected = [
        "R ask Begin",
        "R ask Put BAD@QM2 in batch b",
        "R ask Put REPLY@QM1 in batch b",
        "R ask Account BAD in batch",
        "R ask Commit 1..1",
    ];
    assert_eq!(pair.lines(&["R ask"]), expected);
    assert!(pair.from.bodies().is_empty());
}

#[test]
fn a_persistent_report_that_fits_nowhere_backs_the_batch_out() {
    let mut pair = Pair::running();
    for queue in ["BAD", "REPLY", "DLQ"] {
        pair.to
            .full
            .insert(queue.into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    }
    let kind = Kind {
        report: DISCARD | EXCEPTION,
        ..PERSISTENT
    };
    pair.from.put("b", "BAD", kind);
    pair.settle();
    assert!(pair.has("R ask BackOut"));
    assert!(pair.has("R send Close BatchRefused"));
    assert!(pair.has("S report AMQ9506"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(pair.from.bodies(), ["b"]);
}

#[test]
fn a_non_persistent_report_that_fits_nowhere_is_dropped_and_says_so() {
    let mut receiver = receiver_config();
    receiver.channel.non_persistent_message_speed = MessageSpeed::Normal;
    let mut pair = Pair::running_with(sender_config(), receiver);
    for queue in ["BAD", "REPLY", "DLQ"] {
        pair.to
            .full
            .insert(queue.into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    }
    let kind = Kind {
        report: DISCARD | EXCEPTION,
        ..NON_PERSISTENT
    };
    pair.from.put("n", "BAD", kind);
    pair.settle();
    assert!(pair.has("R report FMQ9804"));
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert!(pair.from.bodies().is_empty());
}

#[test]
fn a_refused_message_is_dead_lettered_by_the_sender_and_its_batch_goes_on() {
    let mut pair = without_receiver_dlq(dlq());
    for (body, to) in [("a", "Q"), ("b", "BAD"), ("c", "Q")] {
        pair.from.put(body, to, PERSISTENT);
    }
    pair.settle();
    assert!(pair.has("R send Refused 2 2085"));
    assert_eq!(pair.from.dead, [("b".into(), reason(2085))]);
    assert!(pair.has("S send Withdraw 2"));
    assert_eq!(pair.to.bodies("Q"), ["a", "c"]);
    // The number of the withdrawn message is committed with the others.
    assert_eq!(pair.to.commits, [(1, 3)]);
    assert!(pair.from.bodies().is_empty());
    assert_eq!(pair.sender.state(), ChannelState::Running);
    pair.from.put("d", "Q", PERSISTENT);
    pair.settle();
    assert_eq!(pair.to.commits, [(1, 3), (4, 4)]);
}

#[test]
fn nothing_later_of_a_batch_is_put_before_the_refused_message_is_withdrawn() {
    let mut pair = without_receiver_dlq(dlq());
    pair.hold_down = true;
    for (body, to) in [("a", "BAD"), ("b", "Q")] {
        pair.from.put(body, to, PERSISTENT);
    }
    pair.settle();
    let puts = pair.lines(&["R ask Put", "R ask Commit"]);
    assert_eq!(puts, ["R ask Put BAD@QM2 in batch a"]);
    pair.hold_down = false;
    pair.settle();
    assert_eq!(pair.to.bodies("Q"), ["b"]);
}

#[test]
fn fast_messages_pass_a_refused_one() {
    let mut pair = without_receiver_dlq(dlq());
    pair.hold_down = true;
    pair.from.put("a", "BAD", PERSISTENT);
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.settle();
    assert_eq!(pair.to.bodies("Q"), ["n"]);
}

#[test]
fn a_refusal_before_the_batch_is_prepared_is_settled_before_its_end() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(5);
    let mut receiver = receiver_config();
    receiver.dead_letter = DeadLetterSetting::Blank;
    let mut pair = Pair::running_with(sender, receiver);
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.from.put("a", "BAD", PERSISTENT);
    pair.settle();
    let sent = ["S send Message 1 a", "S send Withdraw 1"];
    assert_eq!(pair.sent(), sent);
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert_eq!(pair.from.dead, [("a".into(), reason(2085))]);
}

#[test]
fn a_refusal_after_the_batch_was_asked_for_is_withdrawn_behind_its_end() {
    let mut pair = without_receiver_dlq(dlq());
    pair.from.put("a", "BAD", PERSISTENT);
    pair.settle();
    let sent = [
        "S send Message 1 a",
        "S send BatchEnd 1..1",
        "S send Withdraw 1",
    ];
    assert_eq!(pair.sent(), sent);
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert!(pair.has("S ask Settle 1"));
}

#[test]
fn two_refused_messages_are_withdrawn_one_after_the_other() {
    let mut pair = without_receiver_dlq(dlq());
    for body in ["a", "b"] {
        pair.from.put(body, "BAD", PERSISTENT);
    }
    pair.settle();
    let answers = pair.lines(&["R send Refused", "S send Withdraw"]);
    assert_eq!(
        answers,
        [
            "R send Refused 1 2085",
            "S send Withdraw 1",
            "R send Refused 2 2085",
            "S send Withdraw 2"
        ]
    );
    assert_eq!(pair.to.commits, [(1, 2)]);
}

#[test]
fn inv_d3_without_a_dead_letter_queue_at_either_end_the_message_stays_and_blocks() {
    for setting in [DeadLetterSetting::Blank, dlq()] {
        let mut pair = without_receiver_dlq(setting.clone());
        if setting != DeadLetterSetting::Blank {
            pair.from
                .failures
                .insert("DeadLetter", [reason(2053); 9].into());
        }
        for (body, to) in [("a", "Q"), ("b", "BAD"), ("c", "Q")] {
            pair.from.put(body, to, PERSISTENT);
        }
        pair.settle();
        assert!(pair.has("S report FMQ9803"));
        assert!(pair.has("R ask BackOut"));
        assert_eq!(pair.sender.state(), ChannelState::Retrying);
        assert_eq!(pair.from.bodies(), ["a", "b", "c"]);
        assert!(pair.to.delivered.is_empty());
        let key = (UndeliveredAction::Stopped, reason(2085));
        let counters = pair.sender.status().counters;
        assert_eq!(counters.undelivered.get(&key), Some(&1));
        // The same message is the first again; when the retries are used up the channel stops.
        pair.pass(Duration::from_secs(60 + 60 + 1200));
        assert_eq!(pair.sender.state(), ChannelState::Stopped);
        assert_eq!(pair.from.bodies(), ["a", "b", "c"]);
    }
}

#[test]
fn inv_d3_usedlq_no_at_both_ends_keeps_normal_messages_as_persistent_ones() {
    let mut sender = sender_config();
    sender.channel.use_dead_letter_queue = UseDlq::No;
    let mut receiver = receiver_config();
    receiver.channel.use_dead_letter_queue = UseDlq::No;
    receiver.channel.non_persistent_message_speed = MessageSpeed::Normal;
    let mut pair = Pair::running_with(sender, receiver);
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.from.put("n", "BAD", NON_PERSISTENT);
    pair.settle();
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(pair.from.bodies(), ["n"]);
}

#[test]
fn inv_d6_a_full_dead_letter_queue_at_the_receiver_leaves_it_to_the_sender() {
    let mut pair = Pair::running();
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.to.full.insert("DLQ".into(), ReasonCode::Q_FULL);
    pair.from.put("a", "BAD", PERSISTENT);
    pair.settle();
    let asked = pair.lines(&["R ask Put", "R send"]);
    let expected = [
        "R ask Put BAD@QM2 in batch a",
        "R ask Put DLQ in batch a",
        "R send Refused 1 2085",
        "R send Confirmed 1",
    ];
    assert_eq!(asked, expected);
    assert_eq!(pair.from.dead, [("a".into(), reason(2085))]);
}

#[test]
fn a_dead_letter_queue_that_is_not_local_is_not_used() {
    let mut receiver = receiver_config();
    receiver.dead_letter = DeadLetterSetting::NotLocal(super::queue("DLQ"));
    let mut pair = Pair::running_with(sender_config(), receiver);
    pair.to
        .full
        .insert("BAD".into(), ReasonCode::UNKNOWN_OBJECT_NAME);
    pair.from.put("a", "BAD", PERSISTENT);
    pair.settle();
    assert!(pair.has("R send Refused 1 2085"));
}

#[test]
fn message_retry_waits_mrtmr_and_holds_up_everything_behind() {
    let mut pair = Pair::running();
    pair.to.full.insert("FULL".into(), ReasonCode::Q_FULL);
    pair.from.put("a", "FULL", PERSISTENT);
    pair.from.put("b", "Q", PERSISTENT);
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.settle();
    let receiver = pair.receiver.as_ref().unwrap();
    assert_eq!(receiver.state(), ChannelState::Paused);
    assert!(pair.has("R timer MessageRetry 1000"));
    assert!(pair.to.bodies("Q").is_empty());
    pair.to.full.clear();
    pair.pass(Duration::from_millis(999));
    assert!(pair.to.delivered.is_empty());
    pair.pass(Duration::from_millis(1));
    assert_eq!(pair.to.bodies("FULL"), ["a"]);
    assert_eq!(pair.to.commits, [(1, 2)]);
    let states = pair.lines(&["R state"]);
    assert_eq!(states, ["R state PAUSED", "R state RUNNING"]);
}

#[test]
fn message_retry_makes_mrrty_more_tries_and_then_goes_on() {
    for code in [2051, 2053, 2192] {
        let mut pair = Pair::running();
        pair.to.full.insert("FULL".into(), reason(code));
        pair.from.put("a", "FULL", PERSISTENT);
        pair.pass(Duration::from_secs(10));
        let puts = pair.lines(&["R ask Put"]);
        let again = "R ask Put FULL@QM2 in batch a";
        assert_eq!(puts, [again, again, again, "R ask Put DLQ in batch a"]);
        assert_eq!(pair.to.bodies("DLQ"), ["a"]);
    }
}

#[test]
fn other_reasons_are_not_retried() {
    for code in [2085, 2035, 2030, 2031, 2087, 2052, 2082, 2101] {
        let mut pair = Pair::running();
        pair.to.full.insert("BAD".into(), reason(code));
        pair.from.put("a", "BAD", PERSISTENT);
        pair.settle();
        assert_eq!(pair.to.bodies("DLQ"), ["a"], "{code}");
        assert!(pair.lines(&["R timer MessageRetry"]).is_empty());
    }
}

#[test]
fn a_receiver_out_of_space_waits_and_dead_letters_nothing() {
    let mut pair = Pair::running();
    for queue in ["Q", "DLQ"] {
        pair.to.full.insert(queue.into(), reason(2192));
    }
    pair.from.put("a", "Q", PERSISTENT);
    pair.pass(Duration::from_secs(10));
    assert!(pair.has("R send Close BatchRefused"));
    assert!(pair.from.dead.is_empty());
    assert_eq!(pair.from.bodies(), ["a"]);
    pair.to.full.clear();
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn a_queue_manager_that_stops_refuses_no_message() {
    let mut pair = Pair::running();
    pair.to.full.insert("Q".into(), ReasonCode::Q_MGR_STOPPING);
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    assert!(pair.has("R send Close QueueManagerStopping"));
    assert!(pair.has("S report AMQ9558"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert!(pair.from.dead.is_empty());
}

#[test]
fn a_message_longer_than_the_channel_takes_is_dead_lettered_at_the_sender() {
    let long = "x".repeat(1001);
    let mut pair = Pair::running();
    pair.from.put("a", "Q", PERSISTENT);
    pair.from.put(&long, "Q", PERSISTENT);
    pair.from.put("b", "Q", PERSISTENT);
    pair.settle();
    assert!(pair.has("S report AMQ9527"));
    assert_eq!(pair.from.dead, [(long, reason(2218))]);
    // It never had a number.
    assert_eq!(pair.to.commits, [(1, 2)]);
    assert_eq!(pair.to.bodies("Q"), ["a", "b"]);
}

#[test]
fn a_message_without_a_valid_transmission_header_is_dead_lettered_with_271() {
    let mut pair = Pair::running();
    let mut message = ferrymq_types::Message::clone(&transmission("a", "Q", PERSISTENT));
    message.header = bytes::Bytes::from_static(b"XQH but not quite");
    pair.from.put_message(std::sync::Arc::new(message));
    let mut plain = ferrymq_types::Message::clone(&transmission("b", "Q", PERSISTENT));
    plain.descriptor.format = "MQSTR".into();
    pair.from.put_message(std::sync::Arc::new(plain));
    pair.settle();
    let expected = [("a".into(), reason(271)), ("b".into(), reason(271))];
    assert_eq!(pair.from.dead, expected);
    assert!(pair.lines(&["S send"]).is_empty());
}

#[test]
fn sending_side_without_a_dead_letter_queue_backs_out_and_retries() {
    let long = "x".repeat(1001);
    let mut sender = sender_config();
    sender.dead_letter = DeadLetterSetting::Blank;
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("a", "Q", PERSISTENT);
    pair.from.put(&long, "Q", PERSISTENT);
    pair.settle();
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(pair.from.bodies(), ["a".to_owned(), long]);
    assert!(pair.to.delivered.is_empty());
}

#[test]
fn sending_side_reports_before_it_discards_and_after_it_dead_letters() {
    let long = "x".repeat(1001);
    let mut pair = Pair::running();
    let kind = |report| Kind {
        report,
        ..PERSISTENT
    };
    pair.from.put(&long, "Q", kind(EXCEPTION | DISCARD));
    pair.settle();
    let asked = pair.lines(&["S ask Put", "S ask Discard", "S ask DeadLetter"]);
    assert_eq!(asked, ["S ask Put REPLY@QM1 ", "S ask Discard #1 2218"]);
    pair.from.put(&long, "Q", kind(EXCEPTION));
    pair.settle();
    let asked = pair.lines(&["S ask Put", "S ask Discard", "S ask DeadLetter"]);
    assert_eq!(
        asked[2..],
        ["S ask DeadLetter #2 2218", "S ask Put REPLY@QM1 "]
    );
    // A crash between the two cannot make two reports of one.
    let tokens: Vec<_> = pair.from.puts.iter().map(|p| p.token.unwrap()).collect();
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_refusal_of_what_was_not_sent_is_a_protocol_error() {
    let mut pair = Pair::running();
    let refused = crate::MessageRefused {
        number: 1,
        reason: reason(2085),
    };
    pair.sender_input(crate::SenderInput::FrameReceived(
        ReceiverFrame::MessageRefused(refused),
    ));
    assert!(pair.has("S send Close ProtocolError"));
}

#[test]
fn a_confirmation_before_the_withdrawal_is_a_protocol_error() {
    let mut pair = without_receiver_dlq(dlq());
    pair.hold_down = true;
    pair.from.put("a", "BAD", PERSISTENT);
    pair.settle();
    let refused = pair.down.pop_front().unwrap();
    pair.hold_answers = true;
    pair.sender_input(crate::SenderInput::FrameReceived(refused));
    let confirmed = crate::BatchConfirmed {
        batch: pair.sender.status().current_batch,
        last_number: 1,
        dead_lettered: 0,
    };
    pair.sender_input(crate::SenderInput::FrameReceived(
        ReceiverFrame::BatchConfirmed(confirmed),
    ));
    assert!(pair.has("S send Close ProtocolError"));
    assert!(pair.lines(&["S ask Settle"]).is_empty());
}

#[test]
fn regression_a_partner_that_falls_silent_before_it_withdraws_a_message_is_given_up() {
    let mut config = receiver_config();
    config.dead_letter = DeadLetterSetting::Blank;
    let mut receiver = ReceiverMca::new(config);
    let mut now = Timestamp::from_millis(1_000);
    let mut effects = Vec::new();
    let bind = Bind {
        heartbeat_interval: 5,
        ..super::bind::bind()
    };
    let frame = |body: &str, number| {
        SenderFrame::Message(Box::new(BatchMessage {
            batch: UnitOfWorkId::new([9; 16]),
            number,
            remote_queue: "BAD".into(),
            remote_queue_manager: "QM2".into(),
            message: message(body, PERSISTENT),
        }))
    };
    let row = ReceiverRow {
        channel: bind.channel.clone(),
        sender: bind.queue_manager_id,
        sender_name: bind.queue_manager.clone(),
        generation: 1,
        last_committed: 0,
        last_batch: UnitOfWorkId::NONE,
        reset_to: None,
    };
    let answered = |ask, result| ReceiverInput::Answered {
        ask: AskId(ask),
        result,
    };
    let unknown = ferrymq_engine::Failure {
        reason: ReasonCode::UNKNOWN_OBJECT_NAME,
        object: None,
    };
    let state = ferrymq_engine::ReceiverState { row };
    for input in [
        ReceiverInput::FrameReceived(SenderFrame::Bind(bind)),
        answered(1, Ok(ferrymq_engine::Reply::Receiver(state))),
        ReceiverInput::FrameReceived(frame("m1", 1)),
        ReceiverInput::FrameReceived(frame("m2", 2)),
        answered(2, Ok(ferrymq_engine::Reply::Done)),
        answered(3, Err(unknown)),
    ] {
        receiver.handle(now, input, &mut effects);
    }
    let refused = |e: &ReceiverEffect| matches!(e, ReceiverEffect::Send(ReceiverFrame::MessageRefused(r)) if r.number == 1);
    assert!(effects.iter().any(refused), "{effects:?}");
    // Half of the link is dead: nothing comes any more, and nothing says so.
    now = now.saturating_add(silence_limit(5).unwrap());
    let silence = ReceiverInput::TimerFired(ReceiverTimer::Silence);
    receiver.handle(now, silence, &mut effects);
    assert!(receiver.is_closed());
}
