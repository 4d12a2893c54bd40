//! What a trigger message says and where it goes, and channels that are started by triggers (mq-semantics 5.9, 5.10).

use std::time::Duration;

use ferrymq_objects::{Enabled, LocalQueue, TriggerType};
use ferrymq_types::{
    DeadLetterHeader, MessageDescriptor, Persistence, Position, Priority, ProcessName, ReasonCode,
    TriggerMessage,
};

use super::harness::{C1, World, get, put, put_np, queue_name, unit};
use super::triggers::{fired, monitored, under};
use crate::Event;

#[test]
fn the_trigger_message_says_what_the_queue_and_the_process_say() {
    let mut w = monitored(TriggerType::First);
    w.put(put("T", "x"));
    let (_, got) = w.get(get("IQ"));
    let descriptor = &got.message.descriptor;
    assert_eq!(got.message.data().len(), 684);
    assert_eq!(
        TriggerMessage::read(&got.message.data()),
        Ok(TriggerMessage {
            queue: "T".into(),
            process: "P".into(),
            trigger_data: "data".into(),
            application_type: 65_540,
            application_id: "/usr/bin/orders".into(),
            environment_data: "E=1".into(),
            user_data: "-v".into(),
        })
    );
    assert_eq!(descriptor.format, MessageDescriptor::FORMAT_TRIGGER);
    assert_eq!(descriptor.persistence, Persistence::NonPersistent);
    assert_eq!(descriptor.priority, Priority::new(4).unwrap());
    assert_eq!(descriptor.reply_to_queue_manager, "QM1");
    assert_eq!(descriptor.put_application_type.get(), 7);
    assert!(!descriptor.message_id.is_none());
}

#[test]
fn a_trigger_message_that_the_initiation_queue_does_not_take_is_dead_lettered() {
    type Change = fn(&mut LocalQueue);
    let cases: [(Change, ReasonCode); 2] = [
        (|q| q.max_depth = 0, ReasonCode::Q_FULL),
        (
            |q| q.max_message_length = 683,
            ReasonCode::MSG_TOO_BIG_FOR_Q,
        ),
    ];
    for (change, reason) in cases {
        for in_unit in [false, true] {
            let mut w = monitored(TriggerType::First);
            w.alter_local("IQ", change);
            if in_unit {
                w.begin(C1, unit(1));
                w.put(under(1, put_np("T", "x")));
                assert!(w.is_empty("DLQ"));
                w.commit(C1, unit(1));
            } else {
                w.put(put_np("T", "x"));
            }
            assert_eq!(w.depth("IQ"), 0);
            let (_, got) = w.get(get("DLQ"));
            let header = DeadLetterHeader::read(&got.message.header).unwrap();
            assert_eq!(
                (header.reason, header.destination_queue.as_str()),
                (reason, "IQ")
            );
            assert_eq!(header.format, MessageDescriptor::FORMAT_TRIGGER);
            let body = TriggerMessage::read(&got.message.body).unwrap();
            assert_eq!(body.queue, "T");
            let told = |e: &Event| {
                matches!(e, Event::TriggerNotDelivered { queue, reason: why, dead_lettered: true, .. }
                    if queue.as_str() == "T" && *why == reason)
            };
            assert!(w.has_event(told));
        }
    }
}

#[test]
fn a_trigger_message_that_fits_nowhere_is_reported() {
    let mut w = monitored(TriggerType::First);
    w.alter_local("IQ", |q| q.max_depth = 0);
    w.alter_local("DLQ", |q| q.base.put = Enabled::No);
    w.put(put("T", "x"));
    let told = |e: &Event| {
        matches!(
            e,
            Event::TriggerNotDelivered {
                dead_lettered: false,
                ..
            }
        )
    };
    assert!(w.has_event(told));
    assert_eq!((w.depth("IQ"), w.depth("DLQ"), w.depth("T")), (0, 0, 1));
}

#[test]
fn a_trigger_message_triggers_nothing() {
    let mut w = monitored(TriggerType::Every);
    w.alter_local("IQ", |q| {
        q.trigger = true;
        q.trigger_type = TriggerType::Every;
        q.initiation_queue = Some(queue_name("IQ"));
        q.process_name = ProcessName::new("P").ok();
    });
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 1);
    w.put(put("IQ", "by an application"));
    assert_eq!(fired(&mut w), 2, "it and the trigger message about it");
}

#[test]
fn a_channel_is_triggered_under_the_same_conditions() {
    let started = |w: &World| {
        let is =
            |(_, e): &&(Position, Event)| matches!(e, Event::TransmissionQueueTriggered { .. });
        w.events.iter().filter(is).count()
    };
    type Change = fn(&mut World);
    let cases: [(&str, Change, usize); 8] = [
        ("all hold", |_| (), 1),
        (
            "no INITQ",
            |w| w.alter_local("XQ", |q| q.initiation_queue = None),
            0,
        ),
        (
            "the initiation queue is gone",
            |w| {
                w.alter(|qmgr| {
                    qmgr.queues.remove(&queue_name("SYSTEM.CHANNEL.INITQ"));
                });
            },
            0,
        ),
        (
            "the initiation queue is inhibited",
            |w| w.alter_local("SYSTEM.CHANNEL.INITQ", |q| q.get = Enabled::No),
            0,
        ),
        (
            "TRIGTYPE(NONE)",
            |w| w.alter_local("XQ", |q| q.trigger_type = TriggerType::None),
            0,
        ),
        (
            "TRIGMPRI above the message",
            |w| w.alter_local("XQ", |q| q.trigger_message_priority = Priority::MAX),
            0,
        ),
        (
            "TRIGTYPE(DEPTH), reached",
            |w| w.alter_local("XQ", |q| q.trigger_type = TriggerType::Depth),
            1,
        ),
        (
            "TRIGTYPE(DEPTH), not reached",
            |w| {
                w.alter_local("XQ", |q| {
                    q.trigger_type = TriggerType::Depth;
                    q.trigger_depth = 3;
                });
            },
            0,
        ),
    ];
    for (name, change, expected) in cases {
        let mut w = World::new();
        change(&mut w);
        w.put(put("R", "x"));
        assert_eq!(started(&w), expected, "{name}");
        w.put(put("R", "x"));
        assert_eq!(started(&w), expected, "{name}, second message");
    }
    let mut w = World::new();
    w.alter(|qmgr| qmgr.attributes.trigger_interval = Duration::from_secs(5));
    w.put(put("R", "x"));
    w.pass(Duration::from_secs(5));
    w.put(put("R", "x"));
    assert_eq!(started(&w), 2, "TRIGINT");
}

#[test]
fn a_transmission_queue_with_another_initiation_queue_has_trigger_messages() {
    let mut w = monitored(TriggerType::First);
    w.alter_local("XQ", |q| q.initiation_queue = Some(queue_name("IQ")));
    w.put(put("R", "x"));
    let (_, got) = w.get(get("IQ"));
    let said = TriggerMessage::read(&got.message.data()).unwrap();
    assert_eq!(
        (
            said.queue.as_str(),
            said.process.as_str(),
            said.trigger_data.as_str()
        ),
        ("XQ", "", "QM1.TO.QM2")
    );
    assert!(!w.has_event(|e| matches!(e, Event::TransmissionQueueTriggered { .. })));
}
