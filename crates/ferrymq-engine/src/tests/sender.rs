//! The sending end of a channel.

use std::time::Duration;

use ferrymq_objects::{Channel, Enabled};
use ferrymq_types::{
    AccountReason, DeadLetterHeader, Position, QueueManagerId, ReasonCode, Sequence, UnitOfWorkId,
};

use super::harness::{
    C1, C2, World, channel_name, get, put, put_np, qmgr_name, queue_name, sender_channel, unit,
};
use crate::{
    ConnectionId, Context, Event, Input, Put, Reply, Request, RequestId, SenderState, Transmission,
};

const MCA: ConnectionId = ConnectionId(11);
const NEWER: ConnectionId = ConnectionId(12);

fn open(w: &mut World, connection: ConnectionId) -> SenderState {
    let request = Request::OpenSender {
        channel: channel_name("QM1.TO.QM2"),
        transmission_queue: queue_name("XQ"),
    };
    match w.answer(connection, request).1 {
        Ok(Reply::Sender(state)) => state,
        other => panic!("{other:?}"),
    }
}

fn sender_get(w: &World, batch: u8, messages_max: u32, seconds: u64) -> Request {
    Request::SenderGet {
        channel: channel_name("QM1.TO.QM2"),
        batch: unit(batch),
        messages_max,
        bytes_max: 1_000_000,
        fast: true,
        wait_until: w.until(Duration::from_secs(seconds)),
    }
}

fn take(w: &mut World, batch: u8, messages_max: u32) -> Vec<Transmission> {
    let request = sender_get(w, batch, messages_max, 0);
    match w.answer(MCA, request).1 {
        Ok(Reply::Transmissions(all)) => all,
        other => panic!("{other:?}"),
    }
}

fn transmitted(w: &World, id: RequestId) -> Option<Vec<Transmission>> {
    match w.replies.get(&id) {
        Some((_, Ok(Reply::Transmissions(all)))) => Some(all.clone()),
        _ => None,
    }
}

fn texts(all: &[Transmission]) -> Vec<String> {
    all.iter()
        .map(|t| String::from_utf8(t.message.body.to_vec()).unwrap())
        .collect()
}

fn prepare(batch: u8, first_number: u64, last_number: u64) -> Request {
    Request::PrepareBatch {
        channel: channel_name("QM1.TO.QM2"),
        batch: unit(batch),
        first_number,
        last_number,
    }
}

fn settle(generation: u64, last_committed: u64, last_batch: u8, release: bool) -> Request {
    Request::SettleSender {
        channel: channel_name("QM1.TO.QM2"),
        generation,
        last_committed,
        last_batch: if last_batch == 0 {
            UnitOfWorkId::NONE
        } else {
            unit(last_batch)
        },
        partner: (qmgr_name("QM2"), QueueManagerId::new([2; 16])),
        release,
    }
}

fn settled(w: &mut World, request: Request) -> SenderState {
    match w.answer(MCA, request).1 {
        Ok(Reply::Sender(state)) => state,
        other => panic!("{other:?}"),
    }
}

/// Five persistent messages, batches 1 (numbers 1, 2) and 2 (number 3) prepared.
fn two_batches() -> World {
    let mut w = World::new();
    for n in 1..=5 {
        w.put(put("R", &n.to_string()));
    }
    open(&mut w, MCA);
    take(&mut w, 1, 2);
    w.done(MCA, prepare(1, 1, 2));
    take(&mut w, 2, 1);
    w.done(MCA, prepare(2, 3, 3));
    w
}

#[test]
fn inv_o4_messages_are_taken_in_order_and_fast_ones_are_in_no_batch() {
    let mut w = World::new();
    w.put(put("R", "1"));
    w.put(put_np("R", "fast"));
    w.put(put("R", "2"));
    w.put(put("R", "3"));
    open(&mut w, MCA);
    let all = take(&mut w, 1, 3);
    assert_eq!(texts(&all), ["1", "fast", "2"]);
    assert_eq!(
        all.iter().map(|t| t.fast).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(w.depth("XQ"), 3);
    assert_eq!(texts(&take(&mut w, 1, 9)), ["3"]);
    w.disconnect(MCA);
    assert_eq!(w.browse_texts("XQ"), ["1", "2", "3"]);
    assert!(w.browse("XQ").iter().all(|b| b.backout_count == 0));
}

#[test]
fn bytes_end_an_answer_behind_the_message_that_crosses_them() {
    let mut w = World::new();
    for _ in 0..5 {
        w.put(put("R", &"x".repeat(1_000)));
    }
    open(&mut w, MCA);
    let request = Request::SenderGet {
        channel: channel_name("QM1.TO.QM2"),
        batch: unit(1),
        messages_max: 50,
        bytes_max: 2_000,
        fast: true,
        wait_until: None,
    };
    let id = w.ask(MCA, request);
    assert_eq!(transmitted(&w, id).unwrap().len(), 2);
}

#[test]
fn u7_transmissions_wait_for_the_commits_that_they_show() {
    let mut w = World::new();
    w.begin(C1, unit(9));
    for p in [put("R", "p"), put_np("R", "fast")] {
        w.put(Put {
            syncpoint: Some(unit(9)),
            ..p
        });
    }
    let position = w.commit(C1, unit(9));
    open(&mut w, MCA);
    let request = sender_get(&w, 1, 9, 0);
    let (after, reply) = w.answer(MCA, request);
    assert_eq!(after, position);
    assert!(matches!(reply, Ok(Reply::Transmissions(all)) if all.len() == 2));
}

#[test]
fn a_sender_waits_for_the_first_message_and_no_trigger_is_due_while_it_does() {
    let mut w = World::new();
    open(&mut w, MCA);
    let request = sender_get(&w, 1, 9, 10);
    let waiting = w.ask(MCA, request);
    w.put(put("R", "x"));
    assert_eq!(texts(&transmitted(&w, waiting).unwrap()), ["x"]);
    assert!(w.events.is_empty());
    let request = sender_get(&w, 1, 9, 10);
    let waiting = w.ask(MCA, request);
    w.pass(Duration::from_secs(10));
    let (_, reply) = &w.replies[&waiting];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::NO_MSG_AVAILABLE
    );
    let request = sender_get(&w, 1, 9, 10);
    let waiting = w.ask(MCA, request);
    w.alter_local("XQ", |q| q.get = Enabled::No);
    let (_, reply) = &w.replies[&waiting];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::GET_INHIBITED
    );
    let request = sender_get(&w, 1, 9, 0);
    assert_eq!(w.refusal(MCA, request), ReasonCode::GET_INHIBITED);
}

#[test]
fn stored_messages_are_read_before_they_are_sent_and_given_back_if_nobody_waits() {
    let mut w = World::without_cache();
    for n in 1..=3 {
        w.put(put("R", &n.to_string()));
    }
    let bad = *w.rows.messages.keys().nth(1).unwrap();
    w.damaged.insert(bad);
    open(&mut w, MCA);
    w.reads = false;
    let request = sender_get(&w, 1, 9, 10);
    let cancelled = w.ask(MCA, request);
    assert_eq!(w.fetches.len(), 3);
    w.input(Input::Cancelled { id: cancelled });
    w.fetches.clear();
    w.reads = true;
    assert_eq!(texts(&take(&mut w, 1, 9)), ["1", "3"]);
    assert!(w.has_event(|e| matches!(e, Event::Damaged { sequence, .. } if *sequence == bad.1)));
    assert_eq!(w.depth("XQ"), 3);
}

#[test]
fn u4_a_prepared_batch_is_locked_over_restarts_against_get_expiry_and_purge() {
    let mut w = World::new();
    let mut p = put("R", "1");
    p.descriptor.expires_at = w.until(Duration::from_secs(1));
    w.put(p);
    w.put(put("R", "2"));
    open(&mut w, MCA);
    take(&mut w, 1, 1);
    let after = w.done(MCA, prepare(1, 1, 1));
    assert_eq!(after, w.rows.position);
    w.crash();
    w.pass(Duration::from_secs(100));
    assert_eq!(w.get_text("XQ"), "2");
    assert!(w.is_empty("XQ"));
    assert_eq!(w.depth("XQ"), 1);
    let clear = Request::Clear {
        queue: queue_name("XQ"),
        who: "operator".into(),
    };
    assert_eq!(w.refusal(C1, clear), ReasonCode::OBJECT_IN_USE);
    let state = open(&mut w, MCA);
    assert_eq!(state.last_sent, 1);
    assert_eq!(state.row.in_doubt.len(), 1);
    // The partner has it.
    let state = settled(&mut w, settle(1, 1, 1, true));
    assert_eq!((state.row.last_confirmed, state.last_sent), (1, 1));
    assert_eq!(w.depth("XQ"), 0);
    w.crash();
    assert_eq!(w.depth("XQ"), 0);
    assert!(w.rows.account.is_empty());
}

#[test]
fn u4_what_the_partner_does_not_have_is_released_at_a_bind_and_sent_again_in_order() {
    let mut w = two_batches();
    w.crash();
    open(&mut w, MCA);
    let state = settled(&mut w, settle(1, 2, 1, true));
    assert_eq!((state.row.last_confirmed, state.last_sent), (2, 2));
    assert!(state.row.in_doubt.is_empty());
    assert_eq!(w.browse_texts("XQ"), ["3", "4", "5"]);
    assert_eq!(texts(&take(&mut w, 3, 9)), ["3", "4", "5"]);
    w.done(MCA, prepare(3, 3, 5));
    settled(&mut w, settle(1, 5, 3, false));
    assert_eq!(w.depth("XQ"), 0);
}

#[test]
fn u5_a_confirmation_settles_every_batch_up_to_it_in_one_write_set() {
    let mut w = two_batches();
    let before = w.rows.position;
    let state = settled(&mut w, settle(1, 3, 2, false));
    assert_eq!(w.rows.position, before.next());
    assert_eq!(
        (state.row.last_confirmed, state.row.last_batch),
        (3, unit(2))
    );
    assert_eq!(w.browse_texts("XQ"), ["4", "5"]);
    w.crash_at(before);
    assert_eq!(
        w.depth("XQ"),
        5,
        "inv_h2: nothing leaves before that is durable"
    );
}

#[test]
fn u6_numbers_that_do_not_fit_are_refused_and_change_nothing() {
    for (request, why) in [
        (settle(2, 2, 1, true), "another generation"),
        (settle(1, 1, 1, true), "inside a batch"),
        (settle(1, 4, 2, true), "ahead of what was sent"),
        (settle(1, 2, 2, true), "another batch's id"),
    ] {
        let mut w = two_batches();
        let before = w.rows.clone();
        assert_eq!(
            w.refusal(MCA, request),
            ReasonCode::CHANNEL_SEQUENCE_ERROR,
            "{why}"
        );
        assert_eq!(w.rows, before);
    }
    let mut w = two_batches();
    settled(&mut w, settle(1, 3, 2, false));
    let before = w.rows.clone();
    for request in [
        settle(1, 2, 1, true),
        settle(1, 0, 0, true),
        settle(1, 3, 9, true),
    ] {
        assert_eq!(
            w.refusal(MCA, request),
            ReasonCode::CHANNEL_SEQUENCE_ERROR,
            "inv_h4: behind what was confirmed"
        );
    }
    let stranger = Request::SettleSender {
        channel: channel_name("QM1.TO.QM2"),
        generation: 1,
        last_committed: 3,
        last_batch: unit(2),
        partner: (qmgr_name("QM2"), QueueManagerId::new([3; 16])),
        release: true,
    };
    assert_eq!(w.refusal(MCA, stranger), ReasonCode::CHANNEL_SEQUENCE_ERROR);
    assert_eq!(w.rows, before);
    settled(&mut w, settle(1, 3, 2, true));
    assert_eq!(w.rows, before, "what is known already is not written again");
}

fn reset(number: u32) -> Request {
    Request::ResetSender {
        channel: channel_name("QM1.TO.QM2"),
        number,
    }
}

fn resolve(commit: bool) -> Request {
    Request::ResolveSender {
        channel: channel_name("QM1.TO.QM2"),
        commit,
    }
}

const IN_DOUBT: ReasonCode = ReasonCode::new(4025);
const IN_USE: ReasonCode = ReasonCode::new(4031);

fn close(w: &mut World) {
    let channel = channel_name("QM1.TO.QM2");
    w.done(MCA, Request::CloseSender { channel });
}

#[test]
fn u6_a_reset_starts_a_generation_and_is_refused_in_doubt() {
    let mut w = two_batches();
    close(&mut w);
    let before = w.rows.clone();
    assert_eq!(w.refusal(C1, reset(1)), IN_DOUBT);
    assert_eq!(w.rows, before);
    open(&mut w, MCA);
    settled(&mut w, settle(1, 3, 2, true));
    close(&mut w);
    w.done(C1, reset(1));
    w.crash();
    let state = open(&mut w, MCA);
    assert_eq!((state.row.generation, state.row.last_confirmed), (2, 0));
    assert_eq!(
        w.refusal(MCA, settle(1, 3, 2, true)),
        ReasonCode::CHANNEL_SEQUENCE_ERROR
    );
    take(&mut w, 4, 1);
    w.done(MCA, prepare(4, 1, 1));
    settled(&mut w, settle(2, 1, 4, false));
    let unknown = Request::ResetSender {
        channel: channel_name("NONE"),
        number: 1,
    };
    assert_eq!(w.refusal(C1, unknown), ReasonCode::UNKNOWN_OBJECT_NAME);
}

#[test]
fn a_reset_with_a_number_begins_with_it() {
    let mut w = two_batches();
    settled(&mut w, settle(1, 3, 2, true));
    close(&mut w);
    w.done(C1, reset(500));
    w.crash();
    let state = open(&mut w, MCA);
    assert_eq!((state.row.generation, state.row.start), (2, 499));
    assert_eq!((state.row.last_confirmed, state.last_sent), (499, 499));
    take(&mut w, 4, 1);
    assert_eq!(
        w.refusal(MCA, prepare(4, 1, 1)),
        ReasonCode::CHANNEL_SEQUENCE_ERROR
    );
    w.done(MCA, prepare(4, 500, 500));
    // Nothing is confirmed in this generation: the partner may be a new one.
    let mut answer = settle(2, 500, 4, false);
    if let Request::SettleSender { partner, .. } = &mut answer {
        partner.1 = QueueManagerId::new([3; 16]);
    }
    settled(&mut w, answer);
}

#[test]
fn a_reset_of_a_channel_that_runs_waits_until_it_starts_with_nothing_in_doubt() {
    let mut w = two_batches();
    w.done(C1, reset(7));
    w.crash();
    // In doubt still: the numbers of the batches count on.
    let state = open(&mut w, MCA);
    assert_eq!((state.row.generation, state.row.reset_to), (1, Some(7)));
    settled(&mut w, settle(1, 3, 2, true));
    close(&mut w);
    let state = open(&mut w, MCA);
    assert_eq!((state.row.generation, state.row.last_confirmed), (2, 6));
    assert_eq!(state.row.reset_to, None);
    w.crash();
    let state = open(&mut w, MCA);
    assert_eq!((state.row.generation, state.row.last_confirmed), (2, 6));
}

#[test]
fn rule_12_resolve_commit_deletes_all_batches_in_doubt() {
    let mut w = two_batches();
    assert_eq!(w.refusal(C1, resolve(true)), IN_USE);
    close(&mut w);
    w.done(C1, resolve(true));
    w.done(C1, resolve(false)); // Nothing is left to resolve.
    w.crash();
    let state = open(&mut w, MCA);
    assert_eq!((state.row.last_confirmed, state.last_sent), (3, 3));
    assert_eq!(state.row.last_batch, unit(2));
    assert!(state.row.in_doubt.is_empty());
    assert_eq!(take(&mut w, 4, 10).len(), 2, "what was not in a batch");
    // It was the wrong choice: the partner has the first batch only.
    assert_eq!(
        w.refusal(MCA, settle(1, 2, 1, true)),
        ReasonCode::CHANNEL_SEQUENCE_ERROR
    );
}

#[test]
fn rule_12_resolve_backout_sends_all_batches_in_doubt_again() {
    let mut w = two_batches();
    close(&mut w);
    w.done(C1, resolve(false));
    w.crash();
    let state = open(&mut w, MCA);
    assert_eq!((state.row.last_confirmed, state.last_sent), (0, 0));
    assert!(state.row.in_doubt.is_empty());
    // It was the wrong choice: the partner has them all.
    assert_eq!(
        w.refusal(MCA, settle(1, 3, 2, true)),
        ReasonCode::CHANNEL_SEQUENCE_ERROR
    );
    settled(&mut w, settle(1, 0, 0, true));
    assert_eq!(take(&mut w, 4, 10).len(), 5);
    let unknown = Request::ResolveSender {
        channel: channel_name("NONE"),
        commit: false,
    };
    assert_eq!(w.refusal(C1, unknown), ReasonCode::UNKNOWN_OBJECT_NAME);
}

#[test]
fn batches_are_prepared_with_the_numbers_that_follow() {
    let mut w = World::new();
    for n in 1..=3 {
        w.put(put("R", &n.to_string()));
    }
    open(&mut w, MCA);
    take(&mut w, 1, 2);
    for bad in [
        prepare(1, 2, 3),
        prepare(1, 0, 1),
        prepare(1, 1, 1),
        prepare(1, 1, 0),
    ] {
        assert_eq!(w.refusal(MCA, bad), ReasonCode::CHANNEL_SEQUENCE_ERROR);
    }
    assert_eq!(
        w.refusal(MCA, prepare(7, 1, 2)),
        ReasonCode::UOW_NOT_AVAILABLE
    );
    w.done(MCA, prepare(1, 1, 2));
    let request = sender_get(&w, 1, 9, 0);
    assert_eq!(w.refusal(MCA, request), ReasonCode::UOW_NOT_AVAILABLE);
}

#[test]
fn inv_h5_a_newer_instance_takes_the_channel_over() {
    let mut w = World::new();
    open(&mut w, MCA);
    let request = sender_get(&w, 1, 9, 10);
    let waiting = w.ask(MCA, request);
    open(&mut w, NEWER);
    let (_, reply) = &w.replies[&waiting];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::CHANNEL_SUPERSEDED
    );
    w.put(put("R", "x"));
    let request = sender_get(&w, 1, 9, 0);
    assert_eq!(w.refusal(MCA, request), ReasonCode::CHANNEL_SUPERSEDED);
    let request = sender_get(&w, 2, 9, 0);
    let id = w.ask(NEWER, request);
    assert!(transmitted(&w, id).is_some());
    // What the older one prepares or settles is refused, and its end changes nothing.
    assert_eq!(
        w.refusal(MCA, prepare(2, 1, 1)),
        ReasonCode::CHANNEL_SUPERSEDED
    );
    w.disconnect(MCA);
    w.done(NEWER, prepare(2, 1, 1));
    let close = Request::CloseSender {
        channel: channel_name("QM1.TO.QM2"),
    };
    assert_eq!(
        w.refusal(MCA, close.clone()),
        ReasonCode::CHANNEL_SUPERSEDED
    );
    w.done(NEWER, close.clone());
    assert_eq!(w.refusal(NEWER, close), ReasonCode::HOBJ_ERROR);
    assert!(w.is_empty("XQ"), "u4: prepared stays locked");
}

#[test]
fn inv_h6_a_channel_that_ends_leaves_its_queue_as_it_was_and_what_remains_triggers() {
    let mut w = World::new();
    for n in 1..=3 {
        w.put(put("R", &n.to_string()));
    }
    open(&mut w, MCA);
    take(&mut w, 1, 2);
    w.events.clear();
    let close = Request::CloseSender {
        channel: channel_name("QM1.TO.QM2"),
    };
    w.done(MCA, close);
    assert_eq!(w.browse_texts("XQ"), ["1", "2", "3"]);
    // Source: IBM MQ, "Conditions for a trigger event": the last input handle closes and messages remain.
    let triggers =
        |(_, e): &(Position, Event)| matches!(e, Event::TransmissionQueueTriggered { .. });
    assert!(
        matches!(w.events.as_slice(), [event] if triggers(event)),
        "{:?}",
        w.events
    );
}

#[test]
fn a_transmission_queue_is_one_channels_and_must_be_one() {
    let mut w = World::new();
    open(&mut w, MCA);
    let other = |queue: &str| Request::OpenSender {
        channel: channel_name("OTHER"),
        transmission_queue: queue_name(queue),
    };
    assert_eq!(w.refusal(C2, other("XQ")), ReasonCode::OBJECT_IN_USE);
    assert_eq!(w.refusal(C2, other("A")), ReasonCode::XMIT_Q_USAGE_ERROR);
    assert_eq!(w.refusal(C2, other("AL")), ReasonCode::XMIT_Q_TYPE_ERROR);
    assert_eq!(w.refusal(C2, other("NO")), ReasonCode::UNKNOWN_XMIT_Q);
}

fn dead_letter(sequence: Sequence) -> Request {
    Request::SenderDeadLetter {
        channel: channel_name("QM1.TO.QM2"),
        sequence,
        reason: ReasonCode::MSG_TOO_BIG_FOR_CHANNEL,
    }
}

fn check_dead(w: &mut World, body: &[u8]) {
    let dead = w.browse("DLQ");
    let message = &dead.last().unwrap().message;
    let header = DeadLetterHeader::read(&message.data()).unwrap();
    assert_eq!(header.reason, ReasonCode::MSG_TOO_BIG_FOR_CHANNEL);
    assert_eq!(header.destination_queue, "THERE");
    assert_eq!(header.destination_queue_manager, "QM2");
    assert_eq!(header.format, "MQSTR");
    assert_eq!(&message.data()[DeadLetterHeader::LENGTH..], body);
}

#[test]
fn a_message_that_cannot_be_sent_is_dead_lettered_and_its_batch_goes_on_without_it() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        for n in 1..=3 {
            let mut p = put("R", &n.to_string());
            p.descriptor.format = "MQSTR".into();
            w.put(p);
        }
        open(&mut w, MCA);
        let all = take(&mut w, 1, 3);
        w.done(MCA, dead_letter(all[0].sequence));
        check_dead(&mut w, b"1");
        w.done(MCA, prepare(1, 1, 3));
        // In doubt too.
        let after = w.done(MCA, dead_letter(all[1].sequence));
        assert_eq!(after, w.rows.position);
        check_dead(&mut w, b"2");
        let row = w.rows.senders.values().next().unwrap();
        assert_eq!(row.in_doubt[0].messages, [all[2].sequence]);
        assert_eq!(
            w.refusal(MCA, dead_letter(all[0].sequence)),
            ReasonCode::NO_MSG_AVAILABLE
        );
        w.crash();
        open(&mut w, MCA);
        settled(&mut w, settle(1, 3, 1, true));
        assert_eq!((w.depth("XQ"), w.depth("DLQ")), (0, 2));
        let reasons: Vec<_> = w.rows.account.values().map(|e| e.reason).collect();
        assert_eq!(
            reasons,
            [AccountReason::DeadLettered(ReasonCode::MSG_TOO_BIG_FOR_CHANNEL); 2]
        );
    }
}

#[test]
fn a_message_that_was_put_with_its_header_as_data_is_dead_lettered_without_it() {
    let mut w = World::new();
    let mut p = put("R", "body");
    p.descriptor.format = "MQSTR".into();
    w.put(p);
    let (_, got) = w.get(get("XQ"));
    for body in [got.message.data(), b"no header at all".to_vec().into()] {
        w.put(Put {
            descriptor: got.message.descriptor.clone(),
            body,
            context: Context::SetAll,
            ..put("XQ", "")
        });
    }
    open(&mut w, MCA);
    let all = take(&mut w, 1, 9);
    w.done(MCA, dead_letter(all[0].sequence));
    check_dead(&mut w, b"body");
    w.done(MCA, dead_letter(all[1].sequence));
    let dead = w.browse("DLQ");
    let data = dead[1].message.data();
    assert_eq!(&data[DeadLetterHeader::LENGTH..], b"no header at all");
    let header = DeadLetterHeader::read(&data).unwrap();
    assert_eq!(header.format, "MQXMIT");
    w.crash();
    assert_eq!(w.depth("DLQ"), 2);
}

#[test]
fn inv_d6_where_the_dead_letter_queue_cannot_take_it_the_message_stays() {
    let mut w = World::new();
    w.put(put("R", "x"));
    open(&mut w, MCA);
    let all = take(&mut w, 1, 1);
    w.alter_local("DLQ", |q| q.max_depth = 0);
    assert_eq!(
        w.refusal(MCA, dead_letter(all[0].sequence)),
        ReasonCode::Q_FULL
    );
    w.alter(|qmgr| qmgr.attributes.dead_letter_queue_name = None);
    assert_eq!(
        w.refusal(MCA, dead_letter(all[0].sequence)),
        ReasonCode::UNKNOWN_OBJECT_NAME
    );
    w.disconnect(MCA);
    assert_eq!(w.browse_texts("XQ"), ["x"]);
}

#[test]
fn inv_n2_a_fast_message_that_cannot_be_sent_is_dead_lettered_or_accounted_for() {
    let mut w = World::new();
    for n in 1..=2 {
        let mut p = put_np("R", &n.to_string());
        p.descriptor.format = "MQSTR".into();
        w.put(p);
    }
    open(&mut w, MCA);
    let all = take(&mut w, 1, 9);
    assert_eq!(w.depth("XQ"), 0);
    w.done(MCA, dead_letter(all[0].sequence));
    check_dead(&mut w, b"1");
    let discard = |sequence| Request::SenderDiscard {
        channel: channel_name("QM1.TO.QM2"),
        sequence,
        reason: ReasonCode::MSG_TOO_BIG_FOR_CHANNEL,
    };
    w.done(MCA, discard(all[1].sequence));
    let accounted = w
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::Accounted(_)))
        .count();
    assert_eq!(accounted, 2);
    assert_eq!(
        w.refusal(MCA, discard(all[1].sequence)),
        ReasonCode::NO_MSG_AVAILABLE
    );
    assert!(w.journal.is_empty());
}

#[test]
fn a_persistent_message_is_discarded_with_a_durable_account_entry() {
    let mut w = two_batches();
    let first = w.rows.senders.values().next().unwrap().in_doubt[0].messages[0];
    let discard = Request::SenderDiscard {
        channel: channel_name("QM1.TO.QM2"),
        sequence: first,
        reason: ReasonCode::MSG_TOO_BIG_FOR_CHANNEL,
    };
    w.done(MCA, discard);
    w.crash();
    assert_eq!(w.depth("XQ"), 4);
    assert_eq!(w.rows.account.len(), 1);
    let row = w.rows.senders.values().next().unwrap();
    assert_eq!(row.in_doubt[0].messages.len(), 1);
}

#[test]
fn a_channel_that_is_defined_anew_starts_anew_but_never_while_in_doubt() {
    let mut w = two_batches();
    let anew = |w: &mut World, id| {
        w.alter(|qmgr| {
            let channel = Channel::Sender(sender_channel(id));
            qmgr.channels.insert(channel_name("QM1.TO.QM2"), channel);
        });
    };
    anew(&mut w, 200);
    assert_eq!(w.rows.senders.len(), 1, "in doubt: kept");
    settled(&mut w, settle(1, 3, 2, true));
    anew(&mut w, 201);
    assert!(w.rows.senders.is_empty());
    assert_eq!(open(&mut w, MCA).row.generation, 1);
    let (after, _) = w.answer(C1, Request::ChannelRows);
    assert_eq!(after, Position::ZERO);
}

#[test]
fn normal_speed_messages_travel_in_the_batch_and_are_gone_after_a_restart() {
    let mut w = World::new();
    w.put(put("R", "p"));
    w.put(put_np("R", "np"));
    open(&mut w, MCA);
    let request = Request::SenderGet {
        channel: channel_name("QM1.TO.QM2"),
        batch: unit(1),
        messages_max: 9,
        bytes_max: 1_000_000,
        fast: false,
        wait_until: None,
    };
    let id = w.ask(MCA, request);
    assert_eq!(transmitted(&w, id).unwrap().len(), 2);
    w.done(MCA, prepare(1, 1, 2));
    assert_eq!(w.depth("XQ"), 2);
    w.crash();
    assert_eq!(w.depth("XQ"), 1);
    let state = open(&mut w, MCA);
    assert_eq!(state.last_sent, 2);
    // What comes now has none of the numbers that the batch names.
    w.put(put("R", "later"));
    settled(&mut w, settle(1, 2, 1, true));
    assert_eq!(w.browse_texts("XQ"), ["later"]);
}
