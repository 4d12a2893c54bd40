//! Stopping: in good order, at once, at either end.

use core::time::Duration;

use super::pair::Pair;
use super::{NON_PERSISTENT, PERSISTENT, SEED, reason, receiver_config, sender_config};
use crate::{ChannelState, ReceiverInput, SenderInput, SenderMca, StopMode, StopStatus};

const QUIESCE: StopMode = StopMode::Quiesce;

fn stop_receiver(pair: &mut Pair, mode: StopMode, status: StopStatus) {
    pair.receiver_input(ReceiverInput::StopRequested { mode, status });
    pair.settle();
}

#[test]
fn quiesce_of_an_idle_sender_closes_its_queue_and_then_the_conversation() {
    let mut pair = Pair::running();
    pair.stop(QUIESCE, StopStatus::Stopped);
    let expected = [
        "S report AMQ9528",
        "S ask SetStopped true",
        "S state STOPPING",
        "S cancel",
        "S ask CloseSender",
        "S send Close Normal",
        "S disconnect",
        "R report AMQ9001",
        "R disconnect",
        "R state INACTIVE",
        "S report AMQ9001",
        "S state STOPPED",
    ];
    assert_eq!(pair.log, expected);
    assert!(pair.from.stopped);
}

#[test]
fn quiesce_finishes_the_batch_and_its_confirmation() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(3600);
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    pair.stop(QUIESCE, StopStatus::Inactive);
    assert_eq!(pair.sender.state(), ChannelState::Stopping);
    assert!(pair.sender.status().stop_requested);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.sender.state(), ChannelState::Inactive);
    assert_eq!(pair.to.bodies("Q"), ["a"]);
    assert!(!pair.from.stopped);
}

#[test]
fn what_an_idle_get_took_before_it_was_cancelled_is_sent_if_fast_and_released_if_not() {
    let mut pair = Pair::running();
    pair.from.put("p", "Q", PERSISTENT);
    pair.from.put("n", "Q", NON_PERSISTENT);
    // Answered, but the answer is not here yet.
    let (ask, result) = pair.from.waiting_answer(pair.now).unwrap();
    pair.hold_answers = true;
    pair.stop(QUIESCE, StopStatus::Stopped);
    pair.sender_input(SenderInput::Answered { ask, result });
    pair.hold_answers = false;
    pair.settle();
    assert_eq!(pair.sent(), ["S send Fast n", "S send Close Normal"]);
    assert_eq!(pair.from.bodies(), ["p"]);
    assert_eq!(pair.to.bodies("Q"), ["n"]);
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
}

#[test]
fn force_ends_at_once_and_a_batch_may_stay_in_doubt() {
    let mut pair = Pair::running();
    pair.hold_down = true;
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    pair.stop(StopMode::Force, StopStatus::Stopped);
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    assert!(pair.sender.status().in_doubt);
    assert_eq!(pair.from.bodies(), ["a"]);
    pair.hold_down = false;
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert_eq!(pair.to.bodies("Q"), ["a"]);
    assert!(pair.from.bodies().is_empty());
}

#[test]
fn inv_h6_force_inside_a_batch_leaves_the_transmission_queue_as_it_was() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(3600);
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("a", "Q", PERSISTENT);
    pair.from.put("b", "Q", PERSISTENT);
    pair.settle();
    pair.stop(StopMode::Terminate, StopStatus::Inactive);
    assert_eq!(pair.sender.state(), ChannelState::Inactive);
    assert_eq!(pair.from.bodies(), ["a", "b"]);
    assert!(pair.to.delivered.is_empty());
}

#[test]
fn a_stop_while_it_connects_or_binds_ends_it_at_once() {
    for steps in 0..4 {
        let mut pair = Pair::new();
        pair.sender_input(SenderInput::StartRequested);
        for _ in 0..steps {
            pair.step();
        }
        pair.stop(QUIESCE, StopStatus::Stopped);
        assert_eq!(pair.sender.state(), ChannelState::Stopped, "{steps}");
        pair.settle();
        assert_eq!(pair.sender.state(), ChannelState::Stopped, "{steps}");
    }
}

#[test]
fn a_stopped_channel_is_started_by_hand_only() {
    let mut pair = Pair::new();
    pair.sender = SenderMca::new_stopped(sender_config(), SEED);
    pair.sender_input(SenderInput::Triggered);
    assert!(pair.log.is_empty());
    pair.stop(QUIESCE, StopStatus::Inactive);
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    pair.start();
    assert_eq!(pair.log[0], "S ask SetStopped false");
    assert_eq!(pair.sender.state(), ChannelState::Running);
}

#[test]
fn an_inactive_channel_can_be_stopped() {
    let mut pair = Pair::new();
    pair.stop(QUIESCE, StopStatus::Stopped);
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    assert!(pair.from.stopped);
}

#[test]
fn a_stopped_receiver_sends_the_sender_into_retry() {
    let mut pair = Pair::running();
    stop_receiver(&mut pair, QUIESCE, StopStatus::Stopped);
    let receiver = pair.lines(&["R send", "R state"]);
    let expected = [
        "R state STOPPING",
        "R send Close ChannelStopped",
        "R state STOPPED",
    ];
    assert_eq!(receiver, expected);
    assert!(pair.has("S report AMQ9558"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn a_receiver_that_quiesces_takes_the_batch_to_its_end() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(5);
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    stop_receiver(&mut pair, QUIESCE, StopStatus::Inactive);
    assert_eq!(pair.sender.state(), ChannelState::Running);
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.to.commits, [(1, 1)]);
    assert!(pair.from.bodies().is_empty());
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn fast_messages_under_way_are_finished_when_a_receiver_quiesces() {
    let mut pair = Pair::running();
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.sender_turn();
    let frame = pair.up.pop_front().unwrap();
    let stop = ReceiverInput::StopRequested {
        mode: QUIESCE,
        status: StopStatus::Stopped,
    };
    pair.receiver_input(stop);
    pair.receiver_input(ReceiverInput::FrameReceived(frame));
    pair.settle();
    assert_eq!(pair.to.bodies("Q"), ["n"]);
}

#[test]
fn a_partner_that_does_not_end_a_conversation_is_left_after_a_while() {
    let mut pair = Pair::running();
    pair.hold_down = true;
    stop_receiver(&mut pair, QUIESCE, StopStatus::Stopped);
    assert!(pair.has("R timer Drain 10000"));
    assert!(!pair.has("R disconnect"));
    pair.pass(Duration::from_secs(10));
    assert!(pair.has("R disconnect"));
}

#[test]
fn a_stop_interrupts_message_retry_and_the_batch_is_backed_out() {
    let mut pair = Pair::running();
    pair.to.full.insert("FULL".into(), reason(2053));
    pair.from.put("a", "FULL", PERSISTENT);
    pair.settle();
    stop_receiver(&mut pair, QUIESCE, StopStatus::Stopped);
    assert!(pair.has("R no timer MessageRetry"));
    assert!(pair.has("R ask BackOut"));
    assert!(pair.has("R state STOPPED"));
    assert_eq!(pair.from.bodies(), ["a"]);
    assert!(pair.from.dead.is_empty());
}

#[test]
fn a_stop_interrupts_message_retry_of_a_fast_message_which_is_dead_lettered() {
    let mut pair = Pair::running();
    pair.to.full.insert("FULL".into(), reason(2053));
    pair.from.put("n", "FULL", NON_PERSISTENT);
    pair.settle();
    stop_receiver(&mut pair, QUIESCE, StopStatus::Stopped);
    assert_eq!(pair.to.bodies("DLQ"), ["n"]);
    assert!(pair.has("R state STOPPED"));
}

#[test]
fn force_at_the_receiver_backs_out_and_counts_what_is_lost() {
    let mut pair = Pair::running();
    pair.to.full.insert("FULL".into(), reason(2053));
    pair.from.put("n", "FULL", NON_PERSISTENT);
    pair.settle();
    stop_receiver(&mut pair, StopMode::Force, StopStatus::Inactive);
    assert!(pair.has("R report FMQ9805"));
    assert_eq!(pair.log.iter().filter(|l| *l == "R disconnect").count(), 1);
}
