//! Bind: negotiation, the numbers of both ends, and what was in doubt.

use ferrymq_types::{QueueManagerId, UnitOfWorkId};

use super::pair::Pair;
use super::{NON_PERSISTENT, PERSISTENT, batch_id, qmgr, receiver_config, sender_config};
use crate::{
    Bind, BindAccepted, ChannelState, CloseReason, PROTOCOL_VERSION, ReceiverFrame, ReceiverInput,
    ReceiverMca, SenderFrame, SenderInput,
};

pub(super) fn bind() -> Bind {
    Bind {
        version: PROTOCOL_VERSION,
        channel: super::channel_name(),
        queue_manager: qmgr("QM1"),
        queue_manager_id: QueueManagerId::new([1; 16]),
        partner: None,
        generation: 1,
        last_confirmed: 0,
        last_sent: 0,
        start: 0,
        last_batch: UnitOfWorkId::NONE,
        batch_size: 3,
        message_length_max: 1000,
        sequence_wrap: 999_999_999,
        heartbeat_interval: 0,
        fast: true,
    }
}

/// How a receiver that has committed up to `committed` answers a bind.
fn answer(bind: Bind, committed: u64) -> Vec<String> {
    let mut pair = Pair::new();
    pair.to.row.last_committed = committed;
    pair.receiver = Some(ReceiverMca::new(receiver_config()));
    pair.receiver_input(ReceiverInput::FrameReceived(SenderFrame::Bind(bind)));
    pair.hold_down = true;
    pair.settle();
    pair.log
}

fn is_refused(bind: Bind, reason: CloseReason) {
    let log = answer(bind, 0);
    let expected = [
        "R state BINDING",
        "R report AMQ9503",
        &format!("R send Close {reason:?}"),
        "R disconnect",
        "R state INACTIVE",
    ];
    assert_eq!(log, expected);
}

#[test]
fn a_start_opens_connects_binds_settles_and_gets() {
    let mut pair = Pair::new();
    pair.start();
    let expected = [
        "S report AMQ9002",
        "S state STARTING",
        "S ask OpenSender",
        "S state BINDING",
        "S connect qm2(1414)",
        "S timer Establish 60000",
        "S send Bind 1 0..0",
        "R state BINDING",
        "R ask OpenReceiver 1",
        "R report AMQ9002",
        "R send BindAccepted 0",
        "R state RUNNING",
        "S no timer Establish",
        "S ask Settle 0 release",
        "S state RUNNING",
        "S ask Get 3",
    ];
    assert_eq!(pair.log, expected);
}

#[test]
fn the_ends_take_the_lower_batch_size_and_length_and_the_higher_heartbeat() {
    let mut sender = sender_config();
    let mut receiver = receiver_config();
    sender.channel.batch_size = 40;
    sender.channel.base.heartbeat_interval = 10;
    receiver.channel.batch_size = 30;
    receiver.channel.base.heartbeat_interval = 300;
    receiver.channel.base.max_message_length = 500;
    let mut pair = Pair::with(sender, receiver);
    pair.start();
    let status = [
        pair.sender.status(),
        pair.receiver.as_ref().unwrap().status(),
    ];
    for s in status {
        assert_eq!(
            (
                s.batch_size,
                s.message_length_max,
                s.heartbeat_interval,
                s.fast
            ),
            (30, 500, 300, true)
        );
    }
}

#[test]
fn a_batch_is_no_longer_than_maxumsgs() {
    let mut receiver = receiver_config();
    receiver.max_uncommitted_messages = 2;
    let pair = Pair::running_with(sender_config(), receiver);
    assert_eq!(pair.sender.status().batch_size, 2);
}

#[test]
fn fast_needs_both_ends() {
    for (at_sender, at_receiver) in [(true, false), (false, true), (false, false)] {
        let speed = |fast| {
            if fast {
                ferrymq_objects::MessageSpeed::Fast
            } else {
                ferrymq_objects::MessageSpeed::Normal
            }
        };
        let mut sender = sender_config();
        let mut receiver = receiver_config();
        sender.channel.non_persistent_message_speed = speed(at_sender);
        receiver.channel.non_persistent_message_speed = speed(at_receiver);
        let mut pair = Pair::running_with(sender, receiver);
        pair.from.put("n", "Q", NON_PERSISTENT);
        pair.settle();
        assert_eq!(pair.sent(), ["S send Message 1 n", "S send BatchEnd 1..1"]);
    }
}

#[test]
fn a_bind_that_does_not_fit_is_refused() {
    let with = |change: fn(&mut Bind)| {
        let mut bind = bind();
        change(&mut bind);
        bind
    };
    is_refused(with(|b| b.version = 2), CloseReason::ProtocolError);
    is_refused(with(|b| b.sequence_wrap = 100), CloseReason::SequenceWrap);
    is_refused(
        with(|b| b.partner = Some(qmgr("QM3"))),
        CloseReason::WrongQueueManager,
    );
    is_refused(
        with(|b| b.channel = ferrymq_types::ChannelName::new("OTHER").unwrap()),
        CloseReason::ChannelUnknown,
    );
    is_refused(with(|b| b.generation = 0), CloseReason::ProtocolError);
    is_refused(with(|b| b.batch_size = 0), CloseReason::ProtocolError);
    is_refused(
        with(|b| b.message_length_max = 0),
        CloseReason::ProtocolError,
    );
    is_refused(with(|b| b.last_confirmed = 1), CloseReason::ProtocolError);
}

#[test]
fn u6_a_receiver_behind_what_was_confirmed_says_so_and_the_sender_stops() {
    let mut behind = bind();
    (behind.last_confirmed, behind.last_sent) = (5, 6);
    let log = answer(behind, 4);
    assert!(log.contains(&"R report AMQ9526".to_owned()), "{log:?}");
    assert!(log.contains(&"R send Close SequenceError".to_owned()));

    let mut pair = Pair::new();
    pair.from.row.last_confirmed = 5;
    pair.to.row.last_committed = 4;
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    assert!(pair.has("S report AMQ9526"), "{:#?}", pair.log);
    assert!(pair.from.stopped);
    assert!(pair.lines(&["S ask Settle", "S send Message"]).is_empty());
}

#[test]
fn u6_a_receiver_ahead_of_what_was_sent_says_so_and_the_sender_stops() {
    let log = answer(bind(), 1);
    assert!(log.contains(&"R report AMQ9526".to_owned()), "{log:?}");
    assert!(log.contains(&"R send Close SequenceError".to_owned()));

    let mut pair = Pair::new();
    pair.to.row.last_committed = 7;
    pair.from.put("a", "Q", PERSISTENT);
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    assert!(pair.has("S report AMQ9526"));
    assert_eq!(pair.from.bodies(), ["a"]);
}

#[test]
fn inv_h4_the_sender_compares_too_if_the_receiver_does_not() {
    for (confirmed, committed) in [(5, 4), (5, 6)] {
        let mut pair = Pair::new();
        pair.from.row.last_confirmed = confirmed;
        pair.hold_down = true;
        pair.start();
        pair.down.clear();
        pair.hold_down = false;
        pair.sender_input(SenderInput::FrameReceived(ReceiverFrame::BindAccepted(
            BindAccepted {
                queue_manager: qmgr("QM2"),
                queue_manager_id: QueueManagerId::new([2; 16]),
                last_committed: committed,
                last_batch: batch_id(9),
                batch_size: 3,
                message_length_max: 1000,
                heartbeat_interval: 0,
                fast: true,
            },
        )));
        pair.settle();
        assert_eq!(pair.sender.state(), ChannelState::Stopped, "{committed}");
        assert!(pair.lines(&["S ask Settle"]).is_empty());
    }
}

#[test]
fn u6_an_older_generation_is_refused() {
    let mut pair = Pair::new();
    pair.to.row.generation = 2;
    pair.start();
    assert!(pair.has("R send Close SequenceError"));
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
}

#[test]
fn u6_a_new_generation_counts_from_one() {
    let mut pair = Pair::new();
    pair.to.row.last_committed = 5000;
    pair.from.row.generation = 2;
    pair.from.put("a", "Q", PERSISTENT);
    pair.start();
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn inv_h4_a_batch_that_the_receiver_has_is_settled_at_the_next_bind() {
    let mut pair = Pair::running();
    pair.hold_down = true;
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    assert_eq!(pair.to.commits, [(1, 1)]);
    pair.cut();
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert!(pair.sender.status().in_doubt);
    pair.pass(core::time::Duration::from_secs(60));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert!(pair.from.bodies().is_empty());
    assert!(!pair.sender.status().in_doubt);
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn inv_h4_a_batch_that_the_receiver_does_not_have_is_sent_again_under_its_numbers() {
    let mut pair = Pair::running();
    pair.from.put("a", "Q", PERSISTENT);
    // The batch's end never arrives.
    while !pair.has("S send BatchEnd 1..1") {
        pair.up.clear();
        pair.sender_turn();
    }
    pair.crash_sender();
    pair.start();
    let sent = pair.sent();
    let again = [
        "S send Bind 1 0..1",
        "S send Message 1 a",
        "S send BatchEnd 1..1",
    ];
    assert_eq!(sent[sent.len() - 3..], again, "{sent:?}");
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert_eq!(pair.to.bodies("Q"), ["a"]);
}

#[test]
fn a_partner_that_agrees_to_what_was_not_proposed_is_left() {
    let good = BindAccepted {
        queue_manager: qmgr("QM2"),
        queue_manager_id: QueueManagerId::new([2; 16]),
        last_committed: 0,
        last_batch: batch_id(0),
        batch_size: 3,
        message_length_max: 1000,
        heartbeat_interval: 0,
        fast: true,
    };
    let bad: [fn(&mut BindAccepted); 4] = [
        |a| a.batch_size = 4,
        |a| a.batch_size = 0,
        |a| a.message_length_max = 1001,
        |a| a.message_length_max = 0,
    ];
    for change in bad {
        let mut pair = Pair::new();
        pair.hold_down = true;
        pair.start();
        let mut accepted = good.clone();
        change(&mut accepted);
        pair.sender_input(SenderInput::FrameReceived(ReceiverFrame::BindAccepted(
            accepted,
        )));
        assert!(pair.has("S send Close ProtocolError"), "{:#?}", pair.log);
        assert_eq!(pair.sender.state(), ChannelState::Retrying);
    }
}

#[test]
fn the_wrong_queue_manager_is_left_and_the_next_address_tried() {
    let mut sender = sender_config();
    sender.partner = Some(qmgr("QM9"));
    sender.addresses = super::addresses("a,b");
    let mut pair = Pair::with(sender, receiver_config());
    pair.start();
    assert_eq!(
        pair.lines(&["S connect"]),
        ["S connect a(1414)", "S connect b(1414)"]
    );
    assert!(pair.has("S report AMQ9524"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn what_is_not_authorised_is_retried_and_says_no_more() {
    let mut pair = Pair::new();
    pair.hold_down = true;
    pair.start();
    pair.down.clear();
    pair.sender_input(SenderInput::FrameReceived(ReceiverFrame::Close(
        crate::Close::new(CloseReason::NotAuthorized, ""),
    )));
    assert!(pair.has("S report AMQ9557"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn rule_13_a_reset_of_the_receiver_that_does_not_fit_ends_the_bind_with_a_sequence_error() {
    for (last_sent, text) in [
        (50, "does not go on with the number"),
        (60, "must be resolved first"),
    ] {
        let mut pair = Pair::new();
        pair.to.row.reset_to = Some(7);
        pair.receiver = Some(ReceiverMca::new(receiver_config()));
        let bind = Bind {
            last_confirmed: 50,
            last_sent,
            ..bind()
        };
        pair.receiver_input(ReceiverInput::FrameReceived(SenderFrame::Bind(bind)));
        pair.hold_down = true;
        pair.settle();
        let log = pair.log.join("\n");
        assert!(log.contains("SequenceError"), "{log}");
        assert!(log.contains("AMQ9526"), "{log}");
        let receiver = pair.receiver.expect("the receiver").status();
        assert!(receiver.last_error.contains(text), "{log}");
    }
}

#[test]
fn a_bind_whose_generation_starts_behind_what_was_confirmed_is_no_bind() {
    let log = answer(Bind { start: 9, ..bind() }, 0).join("\n");
    assert!(log.contains("ProtocolError"), "{log}");
}
