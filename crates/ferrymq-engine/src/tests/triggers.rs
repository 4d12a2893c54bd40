//! Triggers: each condition and each cause, alone (mq-semantics 5.10, rules 26 and 27 of section 17).

use std::time::Duration;

use ferrymq_objects::{Enabled, LocalQueue, Process, Queue, TriggerType, Usage};
use ferrymq_types::{Priority, ProcessName, ReasonCode, Timestamp};

use super::harness::{C1, C2, World, definitions, get, local, put, queue_name, unit};
use crate::{
    CloseOption, ConnectionId, Get, HandleId, Input, InputUse, Limits, ObjectName, OpenOptions,
    Put, Reply, Request,
};

/// The trigger monitor.
const MONITOR: ConnectionId = ConnectionId(90);
/// The application that is started.
const SERVER: ConnectionId = ConnectionId(91);

fn process() -> Process {
    Process {
        application_id: "/usr/bin/orders".into(),
        application_type: 65_540,
        environment_data: "E=1".into(),
        user_data: "-v".into(),
        ..Process::with_defaults(ProcessName::new("P").unwrap())
    }
}

/// `T` with a trigger of this type for process `P`, and initiation queue `IQ`.
pub(super) fn world(trigger_type: TriggerType) -> World {
    let mut qmgr = definitions();
    let mut t = local(60, "T");
    t.trigger = true;
    t.trigger_type = trigger_type;
    t.trigger_data = "data".into();
    t.initiation_queue = Some(queue_name("IQ"));
    t.process_name = ProcessName::new("P").ok();
    qmgr.queues.insert(queue_name("T"), Queue::Local(t));
    let mut iq = local(61, "IQ");
    iq.base.default_priority = Priority::new(4).unwrap();
    qmgr.queues.insert(queue_name("IQ"), Queue::Local(iq));
    qmgr.processes.insert(process().name.clone(), process());
    World::with(qmgr, Limits::default())
}

fn open(w: &mut World, connection: ConnectionId, queue: &str) -> HandleId {
    let request = Request::Open {
        selector: None,
        name: ObjectName::local(queue_name(queue)),
        options: OpenOptions {
            input: Some(InputUse::Shared),
            ..OpenOptions::default()
        },
        dynamic_name: None,
    };
    match w.answer(connection, request).1 {
        Ok(Reply::Opened(opened)) => opened.handle,
        other => panic!("{other:?}"),
    }
}

fn close(w: &mut World, connection: ConnectionId, handle: HandleId) {
    w.done(
        connection,
        Request::Close {
            handle,
            option: CloseOption::None,
        },
    );
}

/// As [`world`], with the monitor there.
pub(super) fn monitored(trigger_type: TriggerType) -> World {
    let mut w = world(trigger_type);
    open(&mut w, MONITOR, "IQ");
    w
}

fn at(priority: u8, put: Put) -> Put {
    Put {
        priority: Priority::new(priority),
        ..put
    }
}

pub(super) fn under(n: u8, put: Put) -> Put {
    Put {
        syncpoint: Some(unit(n)),
        ..put
    }
}

/// How many trigger messages there are, and takes them away.
pub(super) fn fired(w: &mut World) -> usize {
    let mut n = 0;
    while let (_, Ok(Reply::Got(_))) = w.answer(C2, Request::Get(get("IQ"))) {
        n += 1;
    }
    n
}

/// Changes `T`, as a command at another time does.
pub(super) fn alter_t(w: &mut World, change: impl FnOnce(&mut LocalQueue)) {
    w.alter_local("T", |q| {
        q.base.altered = Timestamp::from_millis(q.base.altered.as_millis() + 1);
        change(q);
    });
}

#[test]
fn rule_26_the_number_of_messages_before_decides_by_type() {
    // With TRIGDPTH(3): how many trigger messages there are after each of five puts.
    for (trigger_type, expected) in [
        (TriggerType::First, [1, 0, 0, 0, 0]),
        (TriggerType::Every, [1, 1, 1, 1, 1]),
        (TriggerType::Depth, [0, 0, 1, 0, 0]),
        (TriggerType::None, [0, 0, 0, 0, 0]),
    ] {
        let mut w = monitored(trigger_type);
        alter_t(&mut w, |q| q.trigger_depth = 3);
        let after_each = [(); 5].map(|()| {
            w.put(put("T", "x"));
            fired(&mut w)
        });
        assert_eq!(after_each, expected, "{trigger_type:?}");
    }
}

/// A condition that does not hold.
type Without = fn(&mut World);

#[test]
fn each_condition_alone_keeps_the_trigger_from_firing() {
    let cases: [(&str, Without, [usize; 3]); 15] = [
        ("all hold", |_| (), [1, 1, 1]),
        (
            "4: somebody reads the queue",
            |w| {
                open(w, SERVER, "T");
            },
            [0, 1, 0],
        ),
        (
            "4: somebody waits on the queue for another message",
            |w| {
                let wait_until = w.until(Duration::from_secs(9));
                let matching = crate::MatchIds {
                    message_id: Some(super::harness::message_id(7)),
                    ..crate::MatchIds::default()
                };
                w.ask(
                    SERVER,
                    Request::Get(Get {
                        wait_until,
                        matching,
                        ..get("T")
                    }),
                );
            },
            [0, 1, 0],
        ),
        (
            "5: NOTRIGGER",
            |w| alter_t(w, |q| q.trigger = false),
            [0; 3],
        ),
        (
            "5: TRIGTYPE(NONE)",
            |w| alter_t(w, |q| q.trigger_type = TriggerType::None),
            [0; 3],
        ),
        (
            "5: GET(DISABLED)",
            |w| alter_t(w, |q| q.get = Enabled::No),
            [0; 3],
        ),
        (
            "6: no INITQ",
            |w| alter_t(w, |q| q.initiation_queue = None),
            [0; 3],
        ),
        (
            "6: INITQ is not there",
            |w| alter_t(w, |q| q.initiation_queue = Some(queue_name("NONE"))),
            [0; 3],
        ),
        (
            "6: INITQ is not local",
            |w| alter_t(w, |q| q.initiation_queue = Some(queue_name("AL"))),
            [0; 3],
        ),
        (
            "6: INITQ is inhibited for put",
            |w| w.alter_local("IQ", |q| q.base.put = Enabled::No),
            [0; 3],
        ),
        (
            "6: INITQ is inhibited for get",
            |w| w.alter_local("IQ", |q| q.get = Enabled::No),
            [0; 3],
        ),
        (
            "6: nobody has INITQ open",
            |w| w.disconnect(MONITOR),
            [0; 3],
        ),
        (
            "7: no PROCESS",
            |w| alter_t(w, |q| q.process_name = None),
            [0; 3],
        ),
        (
            "7: PROCESS is not defined",
            |w| w.alter(|qmgr| qmgr.processes.clear()),
            [0; 3],
        ),
        (
            "7: a transmission queue needs no PROCESS",
            |w| {
                alter_t(w, |q| {
                    q.process_name = None;
                    q.usage = Usage::Transmission;
                })
            },
            [1, 1, 1],
        ),
    ];
    for (name, without, expected) in cases {
        for (trigger_type, expected) in [TriggerType::First, TriggerType::Every, TriggerType::Depth]
            .into_iter()
            .zip(expected)
        {
            let mut w = monitored(trigger_type);
            without(&mut w);
            w.put(put("T", "x"));
            w.alter_local("IQ", |q| q.get = Enabled::Yes);
            assert_eq!(fired(&mut w), expected, "{name}, {trigger_type:?}");
        }
    }
}

#[test]
fn messages_below_trigmpri_neither_trigger_nor_count() {
    for (trigger_type, expected) in [
        (TriggerType::First, [0, 1, 0, 0]),
        (TriggerType::Every, [0, 1, 0, 1]),
        (TriggerType::Depth, [0, 0, 0, 1]),
    ] {
        let mut w = monitored(trigger_type);
        alter_t(&mut w, |q| {
            q.trigger_message_priority = Priority::new(5).unwrap();
            q.trigger_depth = 2;
        });
        let after_each = [4, 5, 0, 9].map(|priority| {
            w.put(at(priority, put("T", "x")));
            fired(&mut w)
        });
        assert_eq!(after_each, expected, "{trigger_type:?}");
    }
}

#[test]
fn messages_that_were_there_are_counted_by_priority_when_trigmpri_changes() {
    let mut w = monitored(TriggerType::Depth);
    alter_t(&mut w, |q| q.trigger_depth = 9);
    for priority in [1, 5, 5, 7] {
        w.put(at(priority, put("T", "x")));
    }
    alter_t(&mut w, |q| {
        q.trigger_message_priority = Priority::new(5).unwrap();
        q.trigger_depth = 4;
    });
    assert_eq!(fired(&mut w), 0);
    w.put(at(5, put("T", "x")));
    assert_eq!(fired(&mut w), 1);
}

#[test]
fn rule_26_uncommitted_messages_count_and_the_trigger_is_seen_when_their_unit_ends() {
    for (trigger_type, committed, expected) in [
        (TriggerType::First, true, 1),
        (TriggerType::First, false, 1),
        (TriggerType::Depth, true, 1),
        (TriggerType::Depth, false, 1),
        (TriggerType::Every, true, 2),
        (TriggerType::Every, false, 0),
    ] {
        let mut w = monitored(trigger_type);
        alter_t(&mut w, |q| q.trigger_depth = 2);
        w.begin(C1, unit(1));
        w.put(under(1, put("T", "x")));
        w.put(under(1, put("T", "x")));
        assert_eq!(fired(&mut w), 0, "inside the unit of work");
        let position = if committed {
            w.commit(C1, unit(1))
        } else {
            w.back_out(C1, unit(1))
        };
        if expected > 0 {
            let (after, _) = w.get(get("IQ"));
            assert!(
                after >= position,
                "u7: it is seen when its cause is durable"
            );
            assert_eq!(fired(&mut w), expected - 1, "{trigger_type:?} {committed}");
        } else {
            assert_eq!(fired(&mut w), 0, "{trigger_type:?} {committed}");
        }
        assert_eq!(w.engine.unit_of_work_bytes(), 0);
    }
}

#[test]
fn rule_26_a_put_beside_an_uncommitted_one_is_not_the_first() {
    let mut w = monitored(TriggerType::First);
    w.begin(C1, unit(1));
    w.put(under(1, put("T", "uncommitted")));
    w.put(put("T", "second"));
    assert_eq!(fired(&mut w), 0);
    // Always made available, so that the second does not wait for ever.
    w.back_out(C1, unit(1));
    assert_eq!(fired(&mut w), 1);
}

#[test]
fn trigger_messages_count_in_their_unit_of_work() {
    let mut w = monitored(TriggerType::Every);
    w.alter(|qmgr| qmgr.attributes.max_uncommitted_messages = 3);
    w.begin(C1, unit(1));
    w.put(under(1, put("T", "x")));
    w.put(under(1, put("T", "x")));
    assert_eq!(
        w.put_refused(under(1, put("T", "x"))),
        ReasonCode::SYNCPOINT_LIMIT_REACHED
    );
    w.disconnect(C1);
    assert_eq!((fired(&mut w), w.depth("T")), (0, 0));
}

#[test]
fn rule_27_a_depth_trigger_switches_itself_off_over_a_restart_until_the_queue_is_altered() {
    let mut w = monitored(TriggerType::Depth);
    alter_t(&mut w, |q| q.trigger_depth = 2);
    let used = |w: &mut World| match w.answer(C2, Request::QueueStatistics).1 {
        Ok(Reply::Queues(queues)) => queues[&queue_name("T")].trigger_used,
        other => panic!("{other:?}"),
    };
    w.put(put("T", "x"));
    assert!(!used(&mut w));
    w.put(put("T", "x"));
    assert!(used(&mut w));
    assert_eq!(fired(&mut w), 1);
    w.put(put("T", "x"));
    w.crash();
    open(&mut w, MONITOR, "IQ");
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 0);
    assert!(used(&mut w), "it is off after a restart");
    alter_t(&mut w, |q| q.trigger_depth = 9);
    assert!(!used(&mut w));
    assert_eq!(fired(&mut w), 0);
    alter_t(&mut w, |q| q.trigger_depth = 2);
    assert_eq!(fired(&mut w), 1, "switched on with messages there");
    assert!(used(&mut w));
}

#[test]
fn a_depth_trigger_that_is_lost_in_a_crash_fires_again() {
    let mut w = monitored(TriggerType::Depth);
    let (position, _) = w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 1);
    // The message is durable, that the trigger is off is not.
    w.crash_at(position);
    open(&mut w, MONITOR, "IQ");
    assert_eq!(fired(&mut w), 1);
}

#[test]
fn the_last_that_closes_a_queue_with_messages_triggers() {
    for (trigger_type, expected) in [
        (TriggerType::First, 1),
        (TriggerType::Every, 0),
        (TriggerType::Depth, 1),
    ] {
        let mut w = monitored(trigger_type);
        let (one, other) = (open(&mut w, SERVER, "T"), open(&mut w, SERVER, "T"));
        w.put(put("T", "x"));
        fired(&mut w);
        close(&mut w, SERVER, one);
        assert_eq!(fired(&mut w), 0, "one is left");
        close(&mut w, SERVER, other);
        assert_eq!(fired(&mut w), expected, "{trigger_type:?}");
    }
    let mut w = monitored(TriggerType::First);
    let handle = open(&mut w, SERVER, "T");
    close(&mut w, SERVER, handle);
    assert_eq!(fired(&mut w), 0, "there is nothing to read");
}

#[test]
fn a_reader_that_dies_with_a_message_triggers() {
    let mut w = monitored(TriggerType::First);
    open(&mut w, SERVER, "T");
    w.begin(SERVER, unit(1));
    w.put(put("T", "x"));
    let request = Request::Get(Get {
        syncpoint: Some(unit(1)),
        ..get("T")
    });
    assert!(w.answer(SERVER, request).1.is_ok());
    w.disconnect(SERVER);
    assert_eq!(fired(&mut w), 1);
    assert_eq!(w.depth("T"), 1);
}

#[test]
fn a_message_that_is_given_back_triggers_when_nobody_reads() {
    let mut w = monitored(TriggerType::First);
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 1);
    w.begin(C1, unit(1));
    w.get_in("T", unit(1));
    assert_eq!(fired(&mut w), 0);
    w.back_out(C1, unit(1));
    assert_eq!(fired(&mut w), 1);
}

#[test]
fn a_wait_that_ends_with_messages_left_triggers_as_a_close() {
    let mut w = monitored(TriggerType::First);
    let wait_until = w.until(Duration::from_secs(9));
    w.ask(
        SERVER,
        Request::Get(Get {
            wait_until,
            ..get("T")
        }),
    );
    w.begin(C1, unit(1));
    for _ in 0..2 {
        w.put(under(1, put("T", "x")));
    }
    assert_eq!(fired(&mut w), 0, "somebody waits");
    w.commit(C1, unit(1));
    assert_eq!((w.depth("T"), fired(&mut w)), (1, 1));
    // One that takes the last message leaves nothing.
    w.get(get("T"));
    w.ask(
        SERVER,
        Request::Get(Get {
            wait_until,
            ..get("T")
        }),
    );
    w.put(put("T", "x"));
    assert_eq!((w.depth("T"), fired(&mut w)), (0, 0));
}

#[test]
fn what_makes_the_conditions_hold_with_messages_there_triggers() {
    type Change = fn(&mut LocalQueue);
    let cases: [(&str, Change, Change); 4] = [
        ("TRIGGER", |q| q.trigger = false, |q| q.trigger = true),
        ("GET", |q| q.get = Enabled::No, |q| q.get = Enabled::Yes),
        (
            "TRIGTYPE",
            |q| q.trigger_type = TriggerType::None,
            |q| q.trigger_type = TriggerType::First,
        ),
        (
            "TRIGMPRI",
            |q| q.trigger_message_priority = Priority::MAX,
            |q| q.trigger_message_priority = Priority::default(),
        ),
    ];
    for (name, before, after) in cases {
        let mut w = monitored(TriggerType::First);
        alter_t(&mut w, before);
        w.put(put("T", "x"));
        assert_eq!(fired(&mut w), 0, "{name}");
        alter_t(&mut w, after);
        assert_eq!(fired(&mut w), 1, "{name}");
        alter_t(&mut w, |q| q.base.description = "d".into());
        assert_eq!(fired(&mut w), 0, "{name}: nothing that counts changed");
    }
}

#[test]
fn an_initiation_queue_that_is_opened_gets_a_trigger_for_each_queue_with_messages() {
    for (trigger_type, expected) in [
        (TriggerType::First, 1),
        (TriggerType::Every, 1),
        (TriggerType::Depth, 0),
    ] {
        let mut w = world(trigger_type);
        alter_t(&mut w, |q| q.trigger_depth = 3);
        w.put(put("T", "x"));
        w.put(put("T", "x"));
        assert_eq!(w.depth("IQ"), 0);
        open(&mut w, MONITOR, "IQ");
        assert_eq!(fired(&mut w), expected, "{trigger_type:?}");
        open(&mut w, MONITOR, "IQ");
        assert_eq!(fired(&mut w), 0, "it was open");
        // After a restart too: nobody remembers whether it was triggered.
        w.crash();
        assert_eq!(w.depth("IQ"), 0);
        open(&mut w, MONITOR, "IQ");
        assert_eq!(fired(&mut w), expected, "{trigger_type:?}");
    }
}

#[test]
fn a_monitor_that_waits_without_a_handle_gets_what_it_missed_once() {
    let mut w = world(TriggerType::First);
    let wait_until = w.until(Duration::from_secs(9));
    let wait = |w: &mut World| {
        w.ask(
            MONITOR,
            Request::Get(Get {
                wait_until,
                ..get("IQ")
            }),
        )
    };
    w.put(put("T", "x"));
    let first = wait(&mut w);
    assert!(w.got(first).is_some(), "missed, since nobody had it open");
    let second = wait(&mut w);
    assert!(w.got(second).is_none(), "it was told already");
    w.get(get("T"));
    w.put(put("T", "x"));
    assert!(w.got(second).is_some());
}

#[test]
fn two_causes_in_one_step_trigger_once() {
    let mut w = world(TriggerType::First);
    let reader = open(&mut w, SERVER, "T");
    w.put(put("T", "x"));
    // The same frame closes the queue and opens the initiation queue.
    let opens = Request::Open {
        selector: None,
        name: ObjectName::local(queue_name("IQ")),
        options: OpenOptions {
            input: Some(InputUse::Shared),
            ..OpenOptions::default()
        },
        dynamic_name: None,
    };
    let requests = vec![
        (
            crate::RequestId(w.next_request + 1),
            Request::Close {
                handle: reader,
                option: CloseOption::None,
            },
        ),
        (crate::RequestId(w.next_request + 2), opens),
    ];
    w.next_request += 3;
    w.input(Input::Requests {
        connection: SERVER,
        requests,
    });
    assert_eq!(fired(&mut w), 1);
}

#[test]
fn another_message_triggers_again_after_trigint() {
    let mut w = monitored(TriggerType::First);
    w.alter(|qmgr| qmgr.attributes.trigger_interval = Duration::from_secs(5));
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 1);
    w.pass(Duration::from_millis(4_999));
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 0);
    w.pass(Duration::from_millis(1));
    assert_eq!(fired(&mut w), 0, "time alone triggers nothing");
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 1);
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 0, "the interval begins anew");
    open(&mut w, SERVER, "T");
    w.pass(Duration::from_secs(60));
    w.put(put("T", "x"));
    assert_eq!(fired(&mut w), 0, "somebody reads the queue");
}

#[test]
fn trigint_zero_makes_first_as_every() {
    let mut w = monitored(TriggerType::First);
    w.alter(|qmgr| qmgr.attributes.trigger_interval = Duration::ZERO);
    for _ in 0..3 {
        w.put(put("T", "x"));
        assert_eq!(fired(&mut w), 1);
    }
}

#[test]
fn a_message_that_is_moved_to_a_queue_triggers_as_one_that_is_put() {
    let mut w = monitored(TriggerType::First);
    w.alter_local("BO", |q| {
        q.trigger = true;
        q.initiation_queue = Some(queue_name("IQ"));
        q.process_name = ProcessName::new("P").ok();
    });
    w.put(put("B", "poison"));
    for n in 1..=2 {
        w.begin(C1, unit(n));
        w.get_in("B", unit(n));
        w.back_out(C1, unit(n));
    }
    assert_eq!((w.depth("BO"), fired(&mut w)), (1, 1));
}

#[test]
fn a_frame_of_calls_triggers_by_what_was_open_at_each() {
    let mut w = monitored(TriggerType::First);
    let opens = Request::Open {
        selector: None,
        name: ObjectName::local(queue_name("T")),
        options: OpenOptions {
            input: Some(InputUse::Shared),
            ..OpenOptions::default()
        },
        dynamic_name: None,
    };
    let requests = [
        Request::Put(Box::new(put("T", "before anybody reads"))),
        opens,
        Request::Put(Box::new(put("T", "after"))),
    ];
    let requests = requests
        .into_iter()
        .map(|request| {
            w.next_request += 1;
            (crate::RequestId(w.next_request), request)
        })
        .collect();
    w.next_request += 1;
    w.input(Input::Requests {
        connection: C1,
        requests,
    });
    assert_eq!(fired(&mut w), 1);
}
