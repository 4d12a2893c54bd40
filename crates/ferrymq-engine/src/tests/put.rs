//! Putting.

use std::time::Duration;

use bytes::Bytes;
use ferrymq_objects::{Enabled, Queue};
use ferrymq_types::{
    MessageType, Persistence, Position, Priority, QueueName, ReasonCode, ReportOptions, Timestamp,
    TransmissionHeader,
};

use super::harness::{
    C1, C2, World, correlation, definitions, get, local, message_id, put, put_np, qmgr_name,
    queue_name, unit,
};
use crate::{Context, Event, Input, Limits, Object, ObjectName, Put, Request};

#[test]
fn a_put_answers_with_its_names_and_waits_for_its_write_set() {
    let mut w = World::new();
    let (after, done) = w.put(put("AL", "one"));
    assert_eq!(after, Position::new(1));
    assert_eq!(done.resolved_queue, "A");
    assert_eq!(done.resolved_queue_manager, "QM1");
    assert_eq!(&done.message_id.as_bytes()[..7], b"AMQ QM1");
    let (_, other) = w.put(put("A", "two"));
    assert_ne!(other.message_id, done.message_id);
}

#[test]
fn u7_non_persistent_traffic_waits_for_nothing_and_writes_nothing() {
    let mut w = World::new();
    let (after, _) = w.put(put_np("A", "np"));
    assert_eq!(after, Position::ZERO);
    let (after, got) = w.get(get("A"));
    assert_eq!((after, &got.message.body[..]), (Position::ZERO, &b"np"[..]));
    assert_eq!(
        w.get_refused(get("A")),
        (Position::ZERO, ReasonCode::NO_MSG_AVAILABLE)
    );
    assert!(w.journal.is_empty());
}

#[test]
fn put_inhibited_anywhere_on_the_path_is_2051() {
    for name in ["A", "AL"] {
        let mut w = World::new();
        w.alter(|qmgr| match qmgr.queues.get_mut(&queue_name(name)) {
            Some(Queue::Local(q)) => q.base.put = Enabled::No,
            Some(Queue::Alias(q)) => q.base.put = Enabled::No,
            other => panic!("{other:?}"),
        });
        assert_eq!(w.put_refused(put("AL", "x")), ReasonCode::PUT_INHIBITED);
    }
    let mut w = World::new();
    w.alter_local("XQ", |q| q.base.put = Enabled::No);
    assert_eq!(w.put_refused(put("R", "x")), ReasonCode::PUT_INHIBITED);
}

#[test]
fn names_that_lead_nowhere_are_refused_with_the_reason_of_resolution() {
    let mut w = World::new();
    assert_eq!(
        w.put_refused(put("NONE", "x")),
        ReasonCode::UNKNOWN_OBJECT_NAME
    );
    let elsewhere = Put {
        object: Object::Named(ObjectName {
            queue: queue_name("A"),
            queue_manager: Some(qmgr_name("QM9")),
        }),
        ..put("A", "x")
    };
    assert_eq!(w.put_refused(elsewhere), ReasonCode::UNKNOWN_REMOTE_Q_MGR);
}

#[test]
fn rule_9_lengths_beyond_the_queue_are_2030_and_beyond_the_queue_manager_2031() {
    let mut w = World::new();
    w.alter_local("A", |q| q.max_message_length = 4);
    w.alter(|qmgr| qmgr.attributes.max_message_length = 6);
    assert_eq!(
        w.put_refused(put("A", "12345")),
        ReasonCode::MSG_TOO_BIG_FOR_Q
    );
    assert_eq!(
        w.put_refused(put("FIFO", "1234567")),
        ReasonCode::MSG_TOO_BIG_FOR_Q_MGR
    );
    w.put(put("A", "1234"));
    let with_header = Put {
        header: Bytes::from_static(b"h"),
        ..put("A", "1234")
    };
    assert_eq!(w.put_refused(with_header), ReasonCode::MSG_TOO_BIG_FOR_Q);
    // On a transmission queue the header counts for the queue.
    w.alter_local("XQ", |q| q.max_message_length = 430);
    w.put(put("R", "12"));
    assert_eq!(
        w.put_refused(put("R", "123")),
        ReasonCode::MSG_TOO_BIG_FOR_Q
    );
}

#[test]
fn a_full_queue_is_2053_with_uncommitted_messages_and_reported_once_until_it_drains() {
    let mut w = World::new();
    w.alter_local("A", |q| q.max_depth = 5);
    w.begin(C1, unit(1));
    for n in 0..5 {
        let syncpoint = (n == 0).then_some(unit(1));
        w.put(Put {
            syncpoint,
            ..put("A", "x")
        });
    }
    let full = |e: &Event| matches!(e, Event::QueueFull { queue } if queue.as_str() == "A");
    for _ in 0..3 {
        assert_eq!(w.put_refused(put("A", "x")), ReasonCode::Q_FULL);
    }
    assert_eq!(w.events.iter().filter(|(_, e)| full(e)).count(), 1);
    w.get_text("A");
    w.put(put("A", "x"));
    assert_eq!(w.put_refused(put_np("A", "x")), ReasonCode::Q_FULL);
    assert_eq!(w.events.iter().filter(|(_, e)| full(e)).count(), 2);
    w.alter_local("A", |q| q.max_depth = 6);
    w.put(put("A", "x"));
}

#[test]
fn u20_units_of_work_have_limits_in_messages_and_bytes() {
    let limits = Limits {
        write_set_bytes_max: 4_000,
        unit_of_work_bytes_max: 8_000,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    w.alter(|qmgr| qmgr.attributes.max_uncommitted_messages = 2);
    w.begin(C1, unit(1));
    let inside = |body: &str| Put {
        syncpoint: Some(unit(1)),
        ..put("A", body)
    };
    w.put(inside("1"));
    w.put(inside("2"));
    assert_eq!(
        w.put_refused(inside("3")),
        ReasonCode::SYNCPOINT_LIMIT_REACHED
    );
    w.alter(|qmgr| qmgr.attributes.max_uncommitted_messages = 100);
    assert_eq!(
        w.put_refused(inside(&"x".repeat(3_000))),
        ReasonCode::SYNCPOINT_LIMIT_REACHED
    );
    // A non-persistent message takes no room in the write set, but in memory.
    let np = Put {
        syncpoint: Some(unit(1)),
        ..put_np("A", &"x".repeat(6_000))
    };
    w.put(np.clone());
    assert_eq!(w.put_refused(np), ReasonCode::SYNCPOINT_LIMIT_REACHED);
    assert_eq!(
        w.put_refused(put("A", &"x".repeat(4_000))),
        ReasonCode::MSG_TOO_BIG_FOR_Q_MGR
    );
    // The unit of work itself goes on (a put that fails changes nothing).
    w.commit(C1, unit(1));
    assert_eq!(w.depth("A"), 3);
    assert_eq!(w.engine.unit_of_work_bytes(), 0);
}

#[test]
fn non_persistent_messages_have_a_byte_limit() {
    let limits = Limits {
        non_persistent_bytes_max: 2_000,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    w.put(put_np("A", &"x".repeat(1_000)));
    assert_eq!(
        w.put_refused(put_np("A", &"x".repeat(1_000))),
        ReasonCode::STORAGE_NOT_AVAILABLE
    );
    w.get(get("A"));
    w.put(put_np("A", &"x".repeat(1_000)));
}

#[test]
fn puts_are_refused_with_2192_while_the_journal_is_full_and_gets_go_on() {
    let mut w = World::new();
    w.put(put("A", "old"));
    w.input(Input::SpaceChanged {
        puts_allowed: false,
    });
    assert_eq!(
        w.put_refused(put("A", "x")),
        ReasonCode::STORAGE_MEDIUM_FULL
    );
    assert_eq!(w.get_text("A"), "old");
    w.input(Input::SpaceChanged { puts_allowed: true });
    w.put(put("A", "x"));
}

#[test]
fn malformed_descriptors_are_refused() {
    let mut w = World::new();
    let mut check = |change: &dyn Fn(&mut Put), expected: ReasonCode| {
        let mut bad = put("A", "x");
        change(&mut bad);
        assert_eq!(w.put_refused(bad), expected);
    };
    check(
        &|p| p.descriptor.message_type = MessageType::default(),
        ReasonCode::MSG_TYPE_ERROR,
    );
    check(
        &|p| p.descriptor.message_type = MessageType::REQUEST,
        ReasonCode::MISSING_REPLY_TO_Q,
    );
    check(
        &|p| p.descriptor.report = ReportOptions::from_bits(0x0100_0000),
        ReasonCode::MISSING_REPLY_TO_Q,
    );
    check(
        &|p| p.descriptor.format = "TOO LONG!".into(),
        ReasonCode::FORMAT_ERROR,
    );
    check(
        &|p| p.descriptor.user_identifier = "x".repeat(13),
        ReasonCode::MD_ERROR,
    );
    check(
        &|p| {
            p.descriptor.message_flags = ferrymq_types::MessageDescriptor::FLAG_MSG_IN_GROUP;
            p.descriptor.message_sequence_number = 0;
        },
        ReasonCode::MSG_SEQ_NUMBER_ERROR,
    );
    check(
        &|p| {
            p.token = Some(unit(1));
            p.syncpoint = Some(unit(2));
        },
        ReasonCode::OPTIONS_ERROR,
    );
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn rule_24_defaults_come_from_the_first_definition_on_the_path() {
    let mut w = World::new();
    w.alter(|qmgr| match qmgr.queues.get_mut(&queue_name("AL")) {
        Some(Queue::Alias(q)) => {
            q.base.default_priority = Priority::new(7).unwrap();
            q.base.default_persistence = Persistence::Persistent;
        }
        other => panic!("{other:?}"),
    });
    let as_defined = |queue| Put {
        persistence: None,
        ..put(queue, "x")
    };
    w.put(as_defined("AL"));
    w.put(as_defined("A"));
    let (_, first) = w.get(get("A"));
    let d = &first.message.descriptor;
    assert_eq!(
        (d.priority.get(), d.persistence),
        (7, Persistence::Persistent)
    );
    let (_, second) = w.get(get("A"));
    let d = &second.message.descriptor;
    assert_eq!(
        (d.priority.get(), d.persistence),
        (0, Persistence::NonPersistent)
    );
}

#[test]
fn context_and_ids_are_set_only_where_the_putter_may_not() {
    let mut w = World::new();
    let mut own = put("A", "x");
    own.descriptor.message_id = message_id(9);
    own.descriptor.correlation_id = correlation(8);
    own.descriptor.put_time = Timestamp::from_millis(5);
    let (_, done) = w.put(own.clone());
    assert_eq!(
        (done.message_id, done.correlation_id),
        (message_id(9), correlation(8))
    );
    let (_, got) = w.get(get("A"));
    assert_eq!(got.message.descriptor.put_time, w.now);
    own.context = Context::SetAll;
    w.put(own);
    let (_, got) = w.get(get("A"));
    assert_eq!(got.message.descriptor.put_time, Timestamp::from_millis(5));
}

#[test]
fn reply_to_names_are_filled_in() {
    let mut w = World::new();
    let mut check = |queue: &str, qmgr: &str, expected: (&str, &str)| {
        let mut p = put("A", "x");
        p.descriptor.reply_to_queue = queue.into();
        p.descriptor.reply_to_queue_manager = qmgr.into();
        w.put(p);
        let (_, got) = w.get(get("A"));
        let d = &got.message.descriptor;
        assert_eq!(
            (d.reply_to_queue.as_str(), d.reply_to_queue_manager.as_str()),
            expected
        );
    };
    check("A", "", ("A", "QM1"));
    check("A", "QM7", ("A", "QM7"));
    check("R", "", ("THERE", "QM2"));
    check("", "", ("", ""));
}

#[test]
fn a_remote_put_waits_on_the_transmission_queue_with_its_header() {
    let mut w = World::new();
    let mut p = put("R", "body");
    p.priority = Priority::new(4);
    p.descriptor.format = "MQSTR".into();
    p.descriptor.expires_at = w.until(Duration::from_secs(60));
    let (_, done) = w.put(p);
    assert_eq!(
        (
            done.resolved_queue.as_str(),
            done.resolved_queue_manager.as_str()
        ),
        ("THERE", "QM2")
    );
    let (_, got) = w.get(get("XQ"));
    let outer = &got.message.descriptor;
    assert_eq!(outer.format, "MQXMIT");
    assert_eq!(outer.priority.get(), 4);
    assert_eq!(outer.persistence, Persistence::Persistent);
    assert_eq!(outer.expires_at, w.until(Duration::from_secs(60)));
    let (header, length) = TransmissionHeader::read(&got.message.data(), w.now).unwrap();
    assert_eq!(header.remote_queue, "THERE");
    assert_eq!(header.remote_queue_manager, "QM2");
    assert_eq!(header.descriptor.format, "MQSTR");
    assert_eq!(header.descriptor.message_id, done.message_id);
    assert_eq!(&got.message.data()[length..], b"body");
}

#[test]
fn inv_i1_a_repeated_token_puts_once_and_answers_alike_also_after_a_crash() {
    let mut w = World::new();
    let with_token = || Put {
        token: Some(unit(7)),
        ..put("AL", "x")
    };
    let first = w.put(with_token());
    assert_eq!(w.put(with_token()), first);
    assert_eq!(w.depth("A"), 1);
    w.crash();
    let (after, done) = w.put(with_token());
    assert_eq!((after, done), (Position::ZERO, first.1));
    assert_eq!(w.depth("A"), 1);
    // Had the first one not become durable, the second would be the first.
    let mut w = World::new();
    w.put(with_token());
    w.crash_at(Position::ZERO);
    w.put(with_token());
    assert_eq!(w.depth("A"), 1);
}

#[test]
fn tokens_and_units_of_work_do_not_share_ids() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    let with_token = |n| Put {
        token: Some(unit(n)),
        ..put("A", "x")
    };
    assert_eq!(w.put_refused(with_token(1)), ReasonCode::UOW_NOT_AVAILABLE);
    w.put(with_token(2));
    let begin = Request::Begin { id: unit(2) };
    assert_eq!(w.refusal(C2, begin), ReasonCode::UOW_NOT_AVAILABLE);
    let commit = Request::Commit { id: unit(2) };
    assert_eq!(w.refusal(C2, commit), ReasonCode::UOW_NOT_AVAILABLE);
    w.commit(C1, unit(1));
    assert_eq!(w.put_refused(with_token(1)), ReasonCode::UOW_NOT_AVAILABLE);
}

#[test]
fn counters_are_reserved_in_blocks_and_never_used_again() {
    let mut w = World::new();
    w.put(put("A", "x"));
    let blocks = |w: &World| {
        w.journal
            .iter()
            .flat_map(|set| &set.changes)
            .filter(|c| matches!(c, ferrymq_types::Change::SetCounters { .. }))
            .count()
    };
    for _ in 0..100 {
        w.put(put("A", "x"));
    }
    assert_eq!(blocks(&w), 1);
    let (_, before) = w.get(get("A"));
    w.crash();
    w.put(put("FIFO", "y"));
    let (_, after) = w.get(get("FIFO"));
    assert!(after.sequence > before.sequence);
    assert_eq!(blocks(&w), 2);
}

#[test]
fn a_new_queue_has_its_row_before_its_first_message() {
    // The rows check the order at each write set; here a queue that came by a definition.
    let mut w = World::new();
    w.alter(|qmgr| {
        qmgr.queues
            .insert(queue_name("NEW"), Queue::Local(local(50, "NEW")));
    });
    w.put(put_np("NEW", "np"));
    assert!(w.rows.queues.is_empty());
    w.put(put("NEW", "p"));
    let name = &w.rows.queues[&ferrymq_types::ObjectId::new(50)].name;
    assert_eq!(*name, QueueName::new("NEW").unwrap());
}
