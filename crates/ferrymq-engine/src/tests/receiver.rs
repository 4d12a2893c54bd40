//! The receiving end of a channel.

use ferrymq_types::{QueueManagerId, ReasonCode};

use super::harness::{World, channel_name, put, put_np, qmgr_name, unit};
use crate::{ConnectionId, Put, ReceiverState, Reply, Request, SenderClaim};

const OLD: ConnectionId = ConnectionId(21);
const NEW: ConnectionId = ConnectionId(22);

fn bind(generation: u64) -> Request {
    Request::OpenReceiver {
        channel: channel_name("QM0.TO.QM1"),
        sender: QueueManagerId::new([9; 16]),
        sender_name: qmgr_name("QM0"),
        generation,
        claim: SenderClaim::default(),
    }
}

fn open(w: &mut World, connection: ConnectionId, generation: u64) -> ReceiverState {
    match w.answer(connection, bind(generation)).1 {
        Ok(Reply::Receiver(state)) => state,
        other => panic!("{other:?}"),
    }
}

/// Begins a batch and puts a message in it.
fn batch(w: &mut World, connection: ConnectionId, n: u8, text: &str) {
    w.begin(connection, unit(n));
    let put = Put {
        syncpoint: Some(unit(n)),
        ..put("A", text)
    };
    assert!(w.answer(connection, Request::Put(Box::new(put))).1.is_ok());
}

fn commit(n: u8, first_number: u64, last_number: u64) -> Request {
    Request::CommitReceived {
        channel: channel_name("QM0.TO.QM1"),
        sender: QueueManagerId::new([9; 16]),
        batch: unit(n),
        first_number,
        last_number,
    }
}

#[test]
fn inv_h3_a_batch_and_its_number_are_one_write_set() {
    let mut w = World::new();
    assert_eq!(open(&mut w, OLD, 1).row.last_committed, 0);
    batch(&mut w, OLD, 1, "one");
    let before = w.rows.position;
    let after = w.done(OLD, commit(1, 1, 1));
    assert_eq!(after, before.next());
    let journal = w.journal.clone();
    w.crash_at(before);
    assert_eq!(
        (w.depth("A"), open(&mut w, NEW, 1).row.last_committed),
        (0, 0)
    );
    w.journal = journal;
    w.crash_at(after);
    let state = open(&mut w, NEW, 1);
    assert_eq!((w.depth("A"), state.row.last_committed), (1, 1));
    assert_eq!(state.row.last_batch, unit(1));
}

#[test]
fn u5_a_batch_commits_only_behind_the_last_one() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "one");
    batch(&mut w, OLD, 2, "two");
    // Batch 1 is refused for whatever reason, batch 2 is on the wire.
    assert_eq!(
        w.refusal(OLD, commit(2, 2, 2)),
        ReasonCode::CHANNEL_SEQUENCE_ERROR
    );
    w.done(OLD, commit(1, 1, 1));
    assert_eq!(w.browse_texts("A"), ["one"]);
    for (first, last) in [(1, 1), (3, 3), (2, 1)] {
        batch(
            &mut w,
            OLD,
            10 + u8::try_from(first * 3 + last).unwrap(),
            "x",
        );
        let n = 10 + u8::try_from(first * 3 + last).unwrap();
        assert_eq!(
            w.refusal(OLD, commit(n, first, last)),
            ReasonCode::CHANNEL_SEQUENCE_ERROR
        );
    }
    assert_eq!(w.depth("A"), 1, "refused batches are backed out");
    assert_eq!(w.engine.open_units_of_work(), 0);
}

#[test]
fn u5_only_the_newest_bind_commits_and_what_the_older_put_is_backed_out() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "old");
    open(&mut w, NEW, 1);
    assert_eq!(w.depth("A"), 0);
    assert_eq!(
        w.refusal(OLD, commit(1, 1, 1)),
        ReasonCode::CHANNEL_SUPERSEDED
    );
    w.begin(OLD, unit(2));
    let fast = put("A", "still old");
    let in_batch = Put {
        syncpoint: Some(unit(2)),
        ..fast.clone()
    };
    for late in [in_batch, fast] {
        assert_eq!(
            w.refusal(OLD, Request::Put(Box::new(late))),
            ReasonCode::CHANNEL_SUPERSEDED,
            "inv_o4: what an older conversation still has would come after the newer one's"
        );
    }
    assert_eq!(
        w.refusal(OLD, commit(2, 1, 1)),
        ReasonCode::CHANNEL_SUPERSEDED
    );
    batch(&mut w, NEW, 3, "new");
    w.done(NEW, commit(3, 1, 1));
    assert_eq!(w.browse_texts("A"), ["new"]);
    // A bind that is gone is nobody's.
    w.disconnect(NEW);
    batch(&mut w, NEW, 4, "late");
    assert_eq!(
        w.refusal(NEW, commit(4, 2, 2)),
        ReasonCode::CHANNEL_SUPERSEDED
    );
}

#[test]
fn u5_a_second_bind_on_one_connection_drops_what_the_first_put() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "first");
    open(&mut w, OLD, 1);
    assert_eq!(w.engine.open_units_of_work(), 0);
    assert_eq!(
        w.refusal(OLD, commit(1, 1, 1)),
        ReasonCode::UOW_NOT_AVAILABLE
    );
}

#[test]
fn inv_i3_a_repeated_batch_is_acknowledged_and_not_applied_again() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "one");
    let position = w.done(OLD, commit(1, 1, 1));
    assert_eq!(w.done(OLD, commit(1, 1, 1)), position);
    w.crash();
    open(&mut w, NEW, 1);
    batch(&mut w, NEW, 1, "one");
    w.done(NEW, commit(1, 1, 1));
    assert_eq!(w.depth("A"), 1);
    assert_eq!(w.engine.open_units_of_work(), 0);
}

#[test]
fn u6_a_generation_starts_at_0_and_an_older_one_is_refused_for_ever() {
    let mut w = World::new();
    open(&mut w, OLD, 3);
    batch(&mut w, OLD, 1, "one");
    w.done(OLD, commit(1, 1, 1));
    assert_eq!(w.refusal(NEW, bind(2)), ReasonCode::CHANNEL_SEQUENCE_ERROR);
    let (after, reply) = w.answer(NEW, bind(4));
    assert!(matches!(reply, Ok(Reply::Receiver(s)) if s.row.last_committed == 0));
    assert_eq!(after, w.rows.position, "u7: the bind shows what is durable");
    w.crash();
    assert_eq!(w.refusal(NEW, bind(3)), ReasonCode::CHANNEL_SEQUENCE_ERROR);
}

#[test]
fn senders_of_different_queue_managers_do_not_share_numbers() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "one");
    w.done(OLD, commit(1, 1, 1));
    let other = Request::OpenReceiver {
        channel: channel_name("QM0.TO.QM1"),
        sender: QueueManagerId::new([8; 16]),
        sender_name: qmgr_name("QM0"),
        generation: 1,
        claim: SenderClaim::default(),
    };
    assert!(matches!(
        w.answer(NEW, other).1,
        Ok(Reply::Receiver(s)) if s.row.last_committed == 0
    ));
    batch(&mut w, OLD, 2, "two");
    w.done(OLD, commit(2, 2, 2));
}

#[test]
fn u7_normal_speed_messages_of_a_batch_wait_for_its_commit() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    w.begin(OLD, unit(1));
    let np = Put {
        syncpoint: Some(unit(1)),
        ..put_np("A", "np")
    };
    assert!(w.answer(OLD, Request::Put(Box::new(np))).1.is_ok());
    let position = w.done(OLD, commit(1, 1, 1));
    assert!(position.get() > 0);
    let (after, _) = w.get(super::harness::get("A"));
    assert_eq!(after, position);
}

fn bind_claiming(generation: u64, claim: SenderClaim) -> Request {
    let mut request = bind(generation);
    if let Request::OpenReceiver { claim: said, .. } = &mut request {
        *said = claim;
    }
    request
}

fn reset(number: u32) -> Request {
    Request::ResetReceiver {
        channel: channel_name("QM0.TO.QM1"),
        number,
    }
}

#[test]
fn rule_13_reset_of_the_sender_resets_both_ends() {
    let mut w = World::new();
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "one");
    w.done(OLD, commit(1, 1, 1));
    w.done(OLD, reset(9)); // A newer generation counts more.
    let claim = SenderClaim {
        start: 499,
        last_confirmed: 499,
        last_sent: 499,
        last_batch: unit(0),
        next_shown: 500,
    };
    let answer = w.answer(NEW, bind_claiming(2, claim)).1;
    let Ok(Reply::Receiver(state)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!((state.row.last_committed, state.row.reset_to), (499, None));
    batch(&mut w, NEW, 2, "two");
    w.done(NEW, commit(2, 500, 500));
}

#[test]
fn rule_13_reset_of_the_receiver_counts_for_this_end_at_the_next_bind() {
    let mut w = World::new();
    assert_eq!(w.refusal(OLD, reset(2)), ReasonCode::new(3065));
    w.done(OLD, reset(1)); // With which every sender begins.
    open(&mut w, OLD, 1);
    batch(&mut w, OLD, 1, "one");
    w.done(OLD, reset(51));
    w.done(OLD, commit(1, 1, 1)); // The conversation goes on.
    w.crash();
    let claim = SenderClaim {
        start: 0,
        last_confirmed: 50,
        last_sent: 50,
        last_batch: unit(7),
        next_shown: 51,
    };
    for (why, wrong) in [
        (
            "another number",
            SenderClaim {
                next_shown: 52,
                ..claim
            },
        ),
        (
            "in doubt",
            SenderClaim {
                last_sent: 60,
                ..claim
            },
        ),
    ] {
        let before = w.rows.clone();
        let answer = w.answer(NEW, bind_claiming(1, wrong)).1;
        let Ok(Reply::Receiver(state)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(state.row.reset_to, Some(51), "{why}");
        assert_eq!(w.rows, before, "{why}");
    }
    let answer = w.answer(NEW, bind_claiming(1, claim)).1;
    let Ok(Reply::Receiver(state)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (state.row.last_committed, state.row.last_batch),
        (50, unit(7))
    );
    assert_eq!(state.row.reset_to, None);
    batch(&mut w, NEW, 8, "two");
    w.done(NEW, commit(8, 51, 51));
    w.crash();
    assert_eq!(open(&mut w, NEW, 1).row.last_committed, 51);
}
