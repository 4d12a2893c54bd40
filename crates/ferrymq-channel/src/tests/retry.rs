//! When a channel tries again, how often, and when it gives up.

use core::time::Duration;

use super::pair::Pair;
use super::{NON_PERSISTENT, PERSISTENT, addresses, reason, receiver_config, sender_config};
use crate::{ChannelState, SenderInput, StopMode, StopStatus};

fn unreachable() -> Pair {
    let mut pair = Pair::new();
    pair.reachable = false;
    pair.start();
    pair
}

fn left(pair: &Pair) -> (u32, u32) {
    let status = pair.sender.status();
    (status.short_retries_left, status.long_retries_left)
}

#[test]
fn a_failed_try_is_retried_short_then_long_then_stopped() {
    let mut pair = unreachable();
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert_eq!(left(&pair), (1, 1));
    assert!(pair.has("S report AMQ9202"));
    assert!(pair.has("S timer Retry 60000"));
    pair.pass(Duration::from_secs(60));
    assert_eq!(left(&pair), (0, 1));
    pair.pass(Duration::from_secs(60));
    assert_eq!(left(&pair), (0, 0));
    assert!(pair.has("S timer Retry 1200000"));
    pair.pass(Duration::from_secs(1199));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    assert!(pair.has("S report FMQ9806"));
    assert!(pair.from.stopped);
    assert_eq!(pair.lines(&["S connect"]).len(), 4);
    assert_eq!(pair.sender.status().counters.retries, 3);
}

#[test]
fn without_retries_the_first_failure_stops() {
    let mut sender = sender_config();
    sender.channel.short_retry_count = 0;
    sender.channel.long_retry_count = 0;
    let mut pair = Pair::with(sender, receiver_config());
    pair.reachable = false;
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
}

#[test]
fn every_address_is_tried_once_in_order() {
    let mut sender = sender_config();
    sender.addresses = addresses("a(1),b,c(3)");
    let mut pair = Pair::with(sender, receiver_config());
    pair.reachable = false;
    pair.start();
    let tried = ["S connect a(1)", "S connect b(1414)", "S connect c(3)"];
    assert_eq!(pair.lines(&["S connect"]), tried);
    assert_eq!(left(&pair), (1, 1));
    let error = pair.sender.status().last_error;
    for address in ["a(1)", "b(1414)", "c(3)"] {
        assert!(error.contains(address), "{error}");
    }
}

#[test]
fn an_address_that_does_not_answer_the_bind_is_left_for_the_next() {
    let mut sender = sender_config();
    sender.addresses = addresses("a,b");
    let mut pair = Pair::with(sender, receiver_config());
    pair.hold_down = true;
    pair.start();
    pair.pass(Duration::from_secs(59));
    assert_eq!(pair.lines(&["S connect"]), ["S connect a(1414)"]);
    pair.hold_down = false;
    pair.down.clear();
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert_eq!(pair.lines(&["S connect"]).len(), 2);
}

#[test]
fn a_confirmed_batch_makes_retries_count_anew() {
    let mut pair = unreachable();
    pair.pass(Duration::from_secs(60));
    pair.reachable = true;
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert_eq!(left(&pair), (0, 1));
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    assert_eq!(left(&pair), (2, 1));
}

#[test]
fn a_fast_message_that_the_partner_has_read_makes_retries_count_anew() {
    let mut receiver = receiver_config();
    receiver.channel.base.heartbeat_interval = 10;
    let mut pair = Pair::with(sender_config(), receiver);
    pair.reachable = false;
    pair.start();
    pair.reachable = true;
    pair.pass(Duration::from_secs(60));
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.settle();
    assert_eq!(left(&pair), (1, 1));
    pair.pass(Duration::from_secs(20));
    assert_eq!(left(&pair), (2, 1));
}

#[test]
fn a_start_while_retrying_tries_at_once_and_counts_anew() {
    let mut pair = unreachable();
    pair.reachable = true;
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert_eq!(left(&pair), (2, 1));
    assert!(pair.has("S no timer Retry"));
}

#[test]
fn a_stop_ends_retrying() {
    let mut pair = unreachable();
    pair.stop(StopMode::Quiesce, StopStatus::Stopped);
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
    pair.reachable = true;
    pair.pass(Duration::from_secs(3600));
    assert_eq!(pair.sender.state(), ChannelState::Stopped);
}

#[test]
fn a_trigger_starts_an_inactive_channel_and_no_other() {
    let mut pair = unreachable();
    pair.log.clear();
    pair.sender_input(SenderInput::Triggered);
    assert!(pair.log.is_empty());
    pair.stop(StopMode::Quiesce, StopStatus::Stopped);
    pair.log.clear();
    pair.sender_input(SenderInput::Triggered);
    assert!(pair.log.is_empty());
    let mut pair = Pair::new();
    pair.sender_input(SenderInput::Triggered);
    pair.settle();
    assert_eq!(pair.sender.state(), ChannelState::Running);
    pair.log.clear();
    pair.sender_input(SenderInput::Triggered);
    assert!(pair.log.is_empty());
}

#[test]
fn a_start_of_a_running_channel_says_that_it_is_in_use() {
    let mut pair = Pair::running();
    pair.start();
    assert_eq!(pair.log, ["S report AMQ9514"]);
}

#[test]
fn a_changed_definition_is_used_by_the_next_try() {
    let mut pair = unreachable();
    let mut changed = sender_config();
    changed.addresses = addresses("elsewhere");
    pair.sender_input(SenderInput::DefinitionChanged(Box::new(changed)));
    assert_eq!(pair.lines(&["S connect"]), ["S connect qm2(1414)"]);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.lines(&["S connect"])[1], "S connect elsewhere(1414)");
}

#[test]
fn a_transmission_queue_that_cannot_be_opened_or_read_is_retried() {
    let mut pair = Pair::new();
    pair.from
        .failures
        .insert("OpenSender", [reason(2196)].into());
    pair.start();
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
    assert!(pair.lines(&["S connect", "S ask Close"]).is_empty());

    let mut pair = Pair::new();
    pair.from.failures.insert("Get", [reason(2016)].into());
    pair.start();
    assert!(pair.has("S report AMQ9549"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn a_silent_partner_is_given_up_after_heartbeat_and_grace() {
    let mut sender = sender_config();
    sender.channel.base.heartbeat_interval = 10;
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.pass(Duration::from_secs(100));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert!(pair.has("R send heartbeat answer"));
    pair.hold_down = true;
    pair.pass(Duration::from_secs(29));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    pair.pass(Duration::from_secs(11));
    assert!(pair.has("S report AMQ9208"));
    assert_eq!(pair.sender.state(), ChannelState::Retrying);
}

#[test]
fn a_receiver_gives_a_silent_sender_up_and_backs_its_batch_out() {
    let mut sender = sender_config();
    sender.channel.base.heartbeat_interval = 10;
    sender.channel.batch_interval = Duration::from_secs(500);
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    let mut receiver = pair.receiver.take().unwrap();
    let mut effects = Vec::new();
    let later = super::after(pair.now, 30_000);
    let timer = crate::ReceiverTimer::Silence;
    receiver.handle(later, crate::ReceiverInput::TimerFired(timer), &mut effects);
    let lines: Vec<String> = effects
        .iter()
        .map(|e| super::effects::receiver_line(later, e))
        .collect();
    let expected = [
        "report AMQ9208",
        "ask BackOut",
        "no timer Heartbeat",
        "disconnect",
        "state INACTIVE",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_paused_receiver_tells_that_it_lives() {
    let mut sender = sender_config();
    sender.channel.base.heartbeat_interval = 10;
    let mut receiver = receiver_config();
    receiver.channel.message_retry_count = 100;
    let mut pair = Pair::running_with(sender, receiver);
    pair.to.full.insert("FULL".into(), reason(2053));
    pair.from.put("a", "FULL", PERSISTENT);
    pair.pass(Duration::from_secs(90));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert_eq!(
        pair.receiver.as_ref().unwrap().state(),
        ChannelState::Paused
    );
}

#[test]
fn the_disconnect_interval_ends_an_idle_channel_in_good_order() {
    let mut pair = Pair::running();
    pair.from.put("a", "Q", PERSISTENT);
    pair.pass(Duration::from_secs(5999));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    pair.log.clear();
    pair.pass(Duration::from_secs(1));
    let expected = [
        "S report AMQ9545",
        "S state STOPPING",
        "S ask CloseSender",
        "S send Close Normal",
        "S disconnect",
        "R report AMQ9001",
        "R disconnect",
        "R state INACTIVE",
        "S report AMQ9001",
        "S state INACTIVE",
    ];
    assert_eq!(pair.log, expected);
    pair.from.put("b", "Q", PERSISTENT);
    pair.sender_input(SenderInput::Triggered);
    pair.settle();
    assert_eq!(pair.to.bodies("Q"), ["a", "b"]);
}

#[test]
fn a_disconnect_interval_of_zero_never_ends() {
    let mut sender = sender_config();
    sender.channel.disconnect_interval = Duration::ZERO;
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.pass(Duration::from_secs(1_000_000));
    assert_eq!(pair.sender.state(), ChannelState::Running);
    assert!(pair.log.is_empty());
}
