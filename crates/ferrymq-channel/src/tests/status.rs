//! What displays show.

use core::time::Duration;

use super::pair::Pair;
use super::{
    NON_PERSISTENT, PERSISTENT, SEED, after, channel_name, qmgr, queue, receiver_config,
    sender_config,
};
use crate::{ChannelState, SenderMca, silence_limit};

#[test]
fn a_channel_that_never_ran_shows_its_definition() {
    let status = SenderMca::new(sender_config(), SEED).status();
    assert_eq!(status.state, ChannelState::Inactive);
    assert_eq!(status.channel, channel_name());
    assert_eq!(status.connection_name, "qm2");
    assert_eq!(status.transmission_queue, Some(queue("QM2")));
    assert_eq!((status.batch_size, status.message_length_max), (3, 1000));
    assert_eq!(
        (status.short_retries_left, status.long_retries_left),
        (2, 1)
    );
    assert!(status.partner.is_none() && !status.in_doubt && status.started.is_none());
}

#[test]
fn both_ends_show_the_batch_in_work_and_the_last_one() {
    let mut sender = sender_config();
    sender.channel.batch_interval = Duration::from_secs(5);
    let mut pair = Pair::running_with(sender, receiver_config());
    pair.from.put("abc", "Q", PERSISTENT);
    pair.from.put("d", "Q", PERSISTENT);
    pair.settle();
    let sender = pair.sender.status();
    let receiver = pair.receiver.as_ref().unwrap().status();
    for status in [&sender, &receiver] {
        assert_eq!(status.state, ChannelState::Running);
        assert_eq!((status.current_messages, status.current_number), (2, 2));
        assert_eq!(status.last_number, 0);
        assert_eq!(status.generation, 1);
        assert_eq!(status.started, Some(super::START));
        assert!(!status.in_doubt);
    }
    assert_eq!(sender.current_batch, receiver.current_batch);
    assert_eq!(
        (sender.partner, receiver.partner),
        (Some(qmgr("QM2")), Some(qmgr("QM1")))
    );
    assert_eq!(
        (sender.peer.as_str(), receiver.peer.as_str()),
        ("CN=QM2", "CN=QM1")
    );
    assert_eq!((sender.substate, receiver.substate), ("MQGET", "RECEIVE"));

    pair.pass(Duration::from_secs(5));
    pair.from.put("n", "Q", NON_PERSISTENT);
    pair.settle();
    let sender = pair.sender.status();
    let receiver = pair.receiver.as_ref().unwrap().status();
    for status in [&sender, &receiver] {
        assert_eq!((status.current_messages, status.current_number), (0, 2));
        assert_eq!(status.last_number, 2);
        assert_eq!(status.last_message, Some(after(super::START, 5000)));
        let c = &status.counters;
        assert_eq!((c.messages, c.fast_messages, c.batches), (3, 1, 1));
    }
    assert_eq!(sender.last_batch, receiver.last_batch);
    assert_eq!(sender.counters.bytes_sent, 5);
    assert_eq!(receiver.counters.bytes_received, 5);
}

#[test]
fn in_doubt_is_from_the_request_to_the_confirmation() {
    let mut pair = Pair::running();
    pair.hold_down = true;
    pair.from.put("a", "Q", PERSISTENT);
    pair.settle();
    let status = pair.sender.status();
    assert!(status.in_doubt);
    assert_eq!((status.current_messages, status.current_number), (1, 1));
    assert_eq!(status.substate, "END_OF_BATCH");
    pair.hold_down = false;
    pair.settle();
    assert!(!pair.sender.status().in_doubt);
}

#[test]
fn the_last_error_is_shown_until_the_next_start() {
    let mut pair = Pair::new();
    pair.reachable = false;
    pair.start();
    let error = pair.sender.status().last_error;
    assert!(error.starts_with("AMQ9202: "), "{error}");
    pair.reachable = true;
    pair.start();
    assert_eq!(pair.sender.status().last_error, "");
}

#[test]
fn the_grace_of_a_silent_partner_is_ibms() {
    assert_eq!(silence_limit(0), None);
    for (interval, limit) in [(1, 3), (59, 177), (60, 120), (300, 360)] {
        assert_eq!(silence_limit(interval), Some(Duration::from_secs(limit)));
    }
}
