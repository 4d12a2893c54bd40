//! Events as messages: which call or change reports which, and what arms them (mq-semantics 16, 2.1, 2.2; rule 26 of section 17).

use std::time::Duration;

use ferrymq_objects::{Enabled, LocalQueue, Queue, QueueManagerEvents, ServiceIntervalEvent};
use ferrymq_types::{
    MessageDescriptor, PcfMessage, PcfParameter, PcfValue, Persistence, Position, Priority,
};

use super::harness::{
    C1, C2, World, alias, definitions, get, local, named, put, put_np, queue_name, unit,
};
use crate::{
    Event, Get, Input, InputUse, Limits, Object, ObjectName, OpenOptions, Put, Reply, Request,
};

const PERFORMANCE: &str = "SYSTEM.ADMIN.PERFM.EVENT";
const QUEUE_MANAGER: &str = "SYSTEM.ADMIN.QMGR.EVENT";

/// With the event queues, and these switches of the queue manager.
fn world(switches: impl FnOnce(&mut QueueManagerEvents)) -> World {
    let mut qmgr = definitions();
    for (id, name) in [(70, PERFORMANCE), (71, QUEUE_MANAGER)] {
        let queue = Queue::Local(local(id, name));
        qmgr.queues.insert(queue_name(name), queue);
    }
    switches(&mut qmgr.attributes.events);
    World::with(qmgr, Limits::default())
}

/// `A` of ten messages with these events, on a queue manager with `PERFMEV(ENABLED)`.
fn watched(change: impl FnOnce(&mut LocalQueue)) -> World {
    let mut w = world(|events| events.performance = Enabled::Yes);
    w.alter_local("A", |q| {
        q.max_depth = 10;
        q.events.queue_full = Enabled::No;
        change(q);
    });
    w
}

/// The events that wait on a queue, which takes them away.
fn reported(w: &mut World, queue: &str) -> Vec<PcfMessage> {
    let mut all = Vec::new();
    while let (_, Ok(Reply::Got(got))) = w.answer(C2, Request::Get(get(queue))) {
        let descriptor = &got.message.descriptor;
        assert_eq!(descriptor.format, MessageDescriptor::FORMAT_EVENT);
        all.push(PcfMessage::read(&got.message.data(), descriptor.encoding).unwrap());
    }
    all
}

fn reasons(w: &mut World) -> Vec<u32> {
    let all = reported(w, PERFORMANCE);
    all.iter().map(|event| event.reason.get()).collect()
}

fn text(event: &PcfMessage, parameter: PcfParameter) -> String {
    match event.get(parameter) {
        Some(PcfValue::Text(text)) => text.clone(),
        other => panic!("{parameter}: {other:?}"),
    }
}

fn number(event: &PcfMessage, parameter: PcfParameter) -> i32 {
    match event.get(parameter) {
        Some(PcfValue::Integer(number)) => *number,
        other => panic!("{parameter}: {other:?}"),
    }
}

fn puts(w: &mut World, count: usize) {
    for _ in 0..count {
        w.put(put("A", "x"));
    }
}

fn gets(w: &mut World, count: usize) {
    for _ in 0..count {
        w.get(get("A"));
    }
}

#[test]
fn a_depth_high_event_says_what_happened_since_the_last_one() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    w.alter_local(PERFORMANCE, |q| q.base.default_priority = Priority::MAX);
    puts(&mut w, 4);
    gets(&mut w, 1);
    w.pass(Duration::from_secs(7));
    puts(&mut w, 5);
    let (_, got) = w.get(get(PERFORMANCE));
    let d = &got.message.descriptor;
    assert_eq!(
        (d.priority, d.persistence),
        (Priority::MAX, Persistence::NonPersistent)
    );
    assert_eq!(
        (
            d.put_application_name.as_str(),
            d.reply_to_queue_manager.as_str()
        ),
        ("QM1", "QM1")
    );
    assert_eq!(d.put_application_type.get(), 7);
    let event = PcfMessage::read(&got.message.data(), d.encoding).unwrap();
    assert_eq!(
        (
            event.message_type,
            event.command,
            event.completion,
            event.reason.get()
        ),
        (7, 45, 1, 2224)
    );
    let shown: Vec<String> = event
        .parameters
        .iter()
        .map(|(parameter, value)| format!("{parameter} {value:?}"))
        .collect();
    assert_eq!(
        shown,
        [
            "MQCA_Q_MGR_NAME Text(\"QM1\")",
            "MQCA_BASE_OBJECT_NAME Text(\"A\")",
            "MQIA_TIME_SINCE_RESET Integer(7)",
            "MQIA_HIGH_Q_DEPTH Integer(8)",
            "MQIA_MSG_ENQ_COUNT Integer(9)",
            "MQIA_MSG_DEQ_COUNT Integer(1)",
        ]
    );
    gets(&mut w, 6);
    let event = reported(&mut w, PERFORMANCE).pop().expect("depth low");
    let numbers = [
        PcfParameter::TIME_SINCE_RESET,
        PcfParameter::HIGH_QUEUE_DEPTH,
        PcfParameter::ENQUEUE_COUNT,
        PcfParameter::DEQUEUE_COUNT,
    ];
    assert_eq!(
        numbers.map(|n| number(&event, n)),
        [0, 8, 0, 6],
        "they began anew"
    );
}

/// What is done to a queue of ten messages, and what that reports.
enum Do {
    Put(usize),
    Get(usize),
    Full,
}

#[test]
fn each_depth_event_disarms_itself_and_arms_its_counterparts() {
    use Do::{Full, Get, Put};
    let (on, off) = (Enabled::Yes, Enabled::No);
    // QDPHIEV, QDPLOEV, QDPMAXEV; then steps with their events.
    type Steps = &'static [(Do, &'static [u32])];
    let cases: [((Enabled, Enabled, Enabled), Steps); 5] = [
        (
            (on, off, off),
            &[
                (Put(7), &[]),
                (Put(1), &[2224]),
                (Get(1), &[]),
                (Put(1), &[]),
                (Put(2), &[]),
                (Full, &[2053]),
                (Full, &[]),
                (Get(7), &[]),
                (Get(1), &[2225]),
                (Put(5), &[]),
                (Put(1), &[2224]),
                (Put(2), &[]),
                (Full, &[2053]),
            ],
        ),
        (
            (off, on, off),
            &[
                (Put(9), &[]),
                (Get(6), &[]),
                (Get(1), &[2225]),
                (Get(1), &[]),
                (Put(7), &[2224]),
            ],
        ),
        (
            (off, off, on),
            &[(Put(10), &[]), (Full, &[2053]), (Get(8), &[2225])],
        ),
        (
            (off, off, off),
            &[(Put(10), &[]), (Full, &[]), (Get(10), &[])],
        ),
        (
            (on, on, on),
            &[
                (Put(1), &[]),
                (Get(1), &[2225]),
                (Put(10), &[2224]),
                (Full, &[2053]),
            ],
        ),
    ];
    for ((high, low, full), steps) in cases {
        let mut w = watched(|q| {
            q.events.depth_high = high;
            q.events.depth_low = low;
            q.events.queue_full = full;
        });
        for (n, (what, expected)) in steps.iter().enumerate() {
            match what {
                Put(count) => puts(&mut w, *count),
                Get(count) => gets(&mut w, *count),
                Full => {
                    w.put_refused(put("A", "x"));
                }
            }
            assert_eq!(
                reasons(&mut w),
                *expected,
                "{high:?} {low:?} {full:?} step {n}"
            );
        }
    }
}

#[test]
fn rule_26_uncommitted_messages_count_for_depth_events() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    w.begin(C1, unit(1));
    for _ in 0..8 {
        w.put(Put {
            syncpoint: Some(unit(1)),
            ..put("A", "x")
        });
    }
    assert_eq!(reasons(&mut w), [2224]);
    w.commit(C1, unit(1));
    assert_eq!(reasons(&mut w), [0; 0]);
    // What is got under syncpoint has left when that is committed.
    w.begin(C1, unit(2));
    for _ in 0..8 {
        w.get_in("A", unit(2));
    }
    assert_eq!(reasons(&mut w), [0; 0]);
    w.commit(C1, unit(2));
    assert_eq!(reasons(&mut w), [2225]);
}

#[test]
fn without_perfmev_nothing_is_watched() {
    let mut w = watched(|q| {
        q.events.depth_high = Enabled::Yes;
        q.events.queue_full = Enabled::Yes;
        q.events.service_interval_event = ServiceIntervalEvent::High;
    });
    w.alter(|qmgr| qmgr.attributes.events.performance = Enabled::No);
    let id = w.engine.queue_id(&queue_name("A")).unwrap();
    assert!(w.engine.queues[&id].performance.is_none());
    puts(&mut w, 10);
    w.put_refused(put("A", "x"));
    assert_eq!(w.depth(PERFORMANCE), 0);
    // Switched on, it begins with what is there.
    w.alter(|qmgr| qmgr.attributes.events.performance = Enabled::Yes);
    w.put_refused(put("A", "x"));
    assert_eq!(reasons(&mut w), [2053]);
}

#[test]
fn an_alteration_of_something_else_arms_nothing_anew() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    puts(&mut w, 8);
    assert_eq!(reasons(&mut w), [2224]);
    w.alter_local("A", |q| q.base.description = "d".into());
    puts(&mut w, 1);
    assert_eq!(reasons(&mut w), [0; 0]);
    w.alter_local("A", |q| q.events.depth_high_percent = 90);
    puts(&mut w, 1);
    assert_eq!(reasons(&mut w), [2224]);
}

#[test]
fn service_interval_events_follow_how_long_a_queue_waited_for_a_get() {
    use Do::{Get, Put};
    use ServiceIntervalEvent::{High, None, Ok};
    // QSVCIEV, with QSVCINT(1000); then seconds that pass before each step, and its events.
    type Steps = &'static [(u64, Do, &'static [u32])];
    let cases: [(ServiceIntervalEvent, Steps); 6] = [
        // High by a get, then ok by one in time, then high again.
        (
            High,
            &[
                (0, Put(3), &[]),
                (2, Get(1), &[2226]),
                (2, Get(1), &[]),
                (1, Get(1), &[2227]),
                (9, Put(2), &[]),
                (2, Get(1), &[2226]),
            ],
        ),
        // High by a put on a queue that waits.
        (
            High,
            &[(0, Put(1), &[]), (2, Put(1), &[2226]), (9, Put(1), &[])],
        ),
        // An empty queue waits for nothing.
        (
            High,
            &[
                (0, Put(1), &[]),
                (0, Get(1), &[]),
                (9, Put(1), &[]),
                (1, Get(1), &[]),
            ],
        ),
        (
            Ok,
            &[(0, Put(2), &[]), (1, Get(1), &[2227]), (1, Get(1), &[])],
        ),
        (Ok, &[(0, Put(2), &[]), (2, Get(1), &[]), (2, Put(1), &[])]),
        (
            None,
            &[(0, Put(2), &[]), (9, Put(1), &[]), (9, Get(1), &[])],
        ),
    ];
    for (first, steps) in cases {
        let mut w = watched(|q| {
            q.events.service_interval_event = first;
            q.events.service_interval = Duration::from_secs(1);
        });
        for (n, (seconds, what, expected)) in steps.iter().enumerate() {
            w.pass(Duration::from_secs(*seconds));
            match what {
                Put(count) => puts(&mut w, *count),
                Get(count) => gets(&mut w, *count),
                Do::Full => unreachable!("no step fills the queue"),
            }
            assert_eq!(reasons(&mut w), *expected, "{first:?} step {n}");
        }
    }
}

#[test]
fn after_a_restart_a_queue_with_messages_waits_from_then_on() {
    let mut w = watched(|q| {
        q.events.service_interval_event = ServiceIntervalEvent::High;
        q.events.service_interval = Duration::from_secs(1);
    });
    puts(&mut w, 1);
    w.pass(Duration::from_secs(60));
    w.crash();
    w.pass(Duration::from_secs(1));
    puts(&mut w, 1);
    assert_eq!(reasons(&mut w), [0; 0]);
    w.pass(Duration::from_secs(1));
    gets(&mut w, 1);
    assert_eq!(reasons(&mut w), [2226]);
}

#[test]
fn u7_an_event_waits_for_what_it_shows() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    puts(&mut w, 7);
    let (position, _) = w.put(put("A", "x"));
    let (after, _) = w.get(get(PERFORMANCE));
    assert!(position > Position::ZERO && after >= position);
}

#[test]
fn an_event_queue_that_is_watched_itself_comes_to_an_end() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    w.alter_local(PERFORMANCE, |q| {
        q.max_depth = 1;
        q.events.depth_high = Enabled::Yes;
        q.events.service_interval_event = ServiceIntervalEvent::High;
        q.events.service_interval = Duration::ZERO;
    });
    puts(&mut w, 10);
    assert_eq!(w.depth(PERFORMANCE), 1);
    assert!(w.has_event(|e| matches!(
        e,
        Event::EventDropped {
            queue: PERFORMANCE,
            ..
        }
    )));
}

#[test]
fn events_that_the_queue_does_not_take_are_dropped_counted_and_said_once() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    let high_and_low = |w: &mut World| {
        puts(w, 8);
        gets(w, 8);
    };
    let said = |w: &World| {
        let dropped = |(_, e): &&(Position, Event)| matches!(e, Event::EventDropped { .. });
        w.events.iter().filter(dropped).count()
    };
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name(PERFORMANCE));
    });
    high_and_low(&mut w);
    assert_eq!(said(&w), 1);
    w.alter(|qmgr| {
        let queue = Queue::Local(local(72, PERFORMANCE));
        qmgr.queues.insert(queue_name(PERFORMANCE), queue);
    });
    w.alter_local(PERFORMANCE, |q| q.base.put = Enabled::No);
    high_and_low(&mut w);
    assert_eq!(said(&w), 1);
    w.alter_local(PERFORMANCE, |q| q.base.put = Enabled::Yes);
    high_and_low(&mut w);
    assert_eq!(reasons(&mut w), [2224, 2225]);
    let told = |e: &Event| {
        matches!(
            e,
            Event::EventsDropped {
                queue: PERFORMANCE,
                dropped: 4
            }
        )
    };
    assert!(w.has_event(told));
    w.alter_local(PERFORMANCE, |q| q.max_depth = 0);
    high_and_low(&mut w);
    assert_eq!(said(&w), 2);
}

#[test]
fn event_messages_have_the_persistence_of_their_queue_and_go_where_its_name_leads() {
    let mut w = watched(|q| q.events.depth_high = Enabled::Yes);
    w.alter(|qmgr| {
        let elsewhere = Queue::Alias(alias(73, PERFORMANCE, "FIFO"));
        qmgr.queues.insert(queue_name(PERFORMANCE), elsewhere);
    });
    w.alter(|qmgr| match qmgr.queues.get_mut(&queue_name(PERFORMANCE)) {
        Some(Queue::Alias(alias)) => alias.base.default_persistence = Persistence::Persistent,
        other => panic!("{other:?}"),
    });
    puts(&mut w, 8);
    w.crash();
    let events = reported(&mut w, "FIFO");
    assert_eq!(events.len(), 1);
}

fn opening(queue: &str, queue_manager: Option<&str>, input: bool) -> Request {
    Request::Open {
        selector: None,
        name: ObjectName::parse(queue, queue_manager.unwrap_or_default()).unwrap(),
        options: OpenOptions {
            input: input.then_some(InputUse::Shared),
            output: !input,
            ..OpenOptions::default()
        },
        dynamic_name: None,
    }
}

type Switch = fn(&mut QueueManagerEvents) -> &mut Enabled;

const INHIBIT: Switch = |events| &mut events.inhibit;
const LOCAL: Switch = |events| &mut events.local;
const REMOTE: Switch = |events| &mut events.remote;

#[test]
fn each_failed_call_is_reported_under_its_switch_alone() {
    use PcfParameter as P;
    let put_to = |name: &str| Request::Put(Box::new(put_np(name, "x")));
    let get_from = |name: &str| Request::Get(get(name));
    // What is asked, its reason, its switch, and what the event names beside the queue.
    type Beside = Option<(PcfParameter, &'static str)>;
    let cases: Vec<(Request, u32, Switch, &str, Beside)> = vec![
        (put_to("OFF"), 2051, INHIBIT, "OFF", None),
        (get_from("OFF"), 2016, INHIBIT, "OFF", None),
        (put_to("NONE"), 2085, LOCAL, "NONE", None),
        (get_from("NONE"), 2085, LOCAL, "NONE", None),
        (opening("NONE", None, true), 2085, LOCAL, "NONE", None),
        (opening("NONE", None, false), 2085, LOCAL, "NONE", None),
        (
            opening("TO.ALIAS", None, false),
            2001,
            LOCAL,
            "TO.ALIAS",
            Some((P::BASE_OBJECT_NAME, "AL")),
        ),
        (
            opening("TO.NONE", None, true),
            2082,
            LOCAL,
            "TO.NONE",
            Some((P::BASE_OBJECT_NAME, "NONE")),
        ),
        (opening("Q", Some("QM9"), false), 2087, REMOTE, "Q", None),
        (
            opening("Q", Some("A"), false),
            2092,
            REMOTE,
            "Q",
            Some((P::TRANSMISSION_QUEUE_NAME, "A")),
        ),
        (
            opening("FAR.NO.XQ", None, false),
            2196,
            REMOTE,
            "FAR.NO.XQ",
            Some((P::TRANSMISSION_QUEUE_NAME, "NONE")),
        ),
        (
            opening("FAR.ALIAS.XQ", None, false),
            2091,
            REMOTE,
            "FAR.ALIAS.XQ",
            Some((P::TRANSMISSION_QUEUE_NAME, "AL")),
        ),
        (
            opening("FAR.NO.NAME", None, false),
            2184,
            REMOTE,
            "FAR.NO.NAME",
            None,
        ),
    ];
    for (request, reason, switch, queue, beside) in cases {
        for on in [INHIBIT, LOCAL, REMOTE] {
            let mut w = world(|events| *on(events) = Enabled::Yes);
            w.alter(more_queues);
            w.input(Input::Connected {
                connection: C1,
                application: "orders".into(),
            });
            assert_eq!(w.refusal(C1, request.clone()).get(), reason, "{request:?}");
            let events = reported(&mut w, QUEUE_MANAGER);
            if std::ptr::fn_addr_eq(on, switch) {
                assert_eq!(events.len(), 1, "{request:?}");
                let event = &events[0];
                assert_eq!((event.command, event.reason.get()), (44, reason));
                assert_eq!(text(event, P::QUEUE_MANAGER_NAME), "QM1");
                assert_eq!(text(event, P::QUEUE_NAME), queue);
                assert_eq!(number(event, P::APPLICATION_TYPE), 6);
                assert_eq!(text(event, P::APPLICATION_NAME), "orders");
                if let Some((parameter, name)) = beside {
                    assert_eq!(text(event, parameter), name, "{request:?}");
                }
            } else {
                assert_eq!(events, [], "{request:?}");
            }
        }
    }
}

fn more_queues(qmgr: &mut ferrymq_objects::QueueManager) {
    let mut off = local(80, "OFF");
    off.get = Enabled::No;
    off.base.put = Enabled::No;
    let far = |id, name: &str, remote: Option<&str>, xmitq: Option<&str>| {
        let Queue::Remote(mut queue) = qmgr.queues[&queue_name("R")].clone() else {
            panic!("R is a remote definition");
        };
        queue.base.id = ferrymq_types::ObjectId::new(id);
        queue.base.name = queue_name(name);
        queue.remote_name = remote.map(queue_name);
        queue.transmission_queue = xmitq.map(queue_name);
        Queue::Remote(queue)
    };
    let more = [
        Queue::Local(off),
        Queue::Alias(alias(81, "TO.ALIAS", "AL")),
        Queue::Alias(alias(82, "TO.NONE", "NONE")),
        far(83, "FAR.NO.XQ", Some("Q"), Some("NONE")),
        far(84, "FAR.ALIAS.XQ", Some("Q"), Some("AL")),
        far(85, "FAR.NO.NAME", None, Some("XQ")),
    ];
    for queue in more {
        qmgr.queues.insert(queue.base().name.clone(), queue);
    }
}

#[test]
fn a_call_through_a_handle_is_reported_when_it_is_inhibited() {
    let mut w = world(|events| {
        events.inhibit = Enabled::Yes;
        events.local = Enabled::Yes;
    });
    let handle = match w.answer(C1, opening("A", None, false)).1 {
        Ok(Reply::Opened(opened)) => opened.handle,
        other => panic!("{other:?}"),
    };
    let again = || Put {
        object: Object::Handle(handle),
        ..put("A", "x")
    };
    w.alter_local("A", |q| q.base.put = Enabled::No);
    w.put_refused(again());
    let events = reported(&mut w, QUEUE_MANAGER);
    assert_eq!(events.len(), 1);
    assert_eq!(text(&events[0], PcfParameter::QUEUE_NAME), "A");
    // Nobody said who it is: the queue manager's own.
    assert_eq!(number(&events[0], PcfParameter::APPLICATION_TYPE), 7);
    assert_eq!(text(&events[0], PcfParameter::APPLICATION_NAME), "QM1");
}

#[test]
fn a_failed_call_of_another_reason_is_not_reported() {
    let mut w = world(|events| {
        events.inhibit = Enabled::Yes;
        events.local = Enabled::Yes;
        events.remote = Enabled::Yes;
    });
    w.alter_local("A", |q| q.max_depth = 0);
    w.put_refused(put("A", "full"));
    w.get_refused(get("A"));
    w.put_refused(Put {
        object: named("A"),
        syncpoint: Some(unit(9)),
        ..put("A", "x")
    });
    assert_eq!(reported(&mut w, QUEUE_MANAGER), []);
}

#[test]
fn a_wait_that_is_inhibited_is_reported() {
    let mut w = world(|events| events.inhibit = Enabled::Yes);
    let wait_until = w.until(Duration::from_secs(9));
    w.ask(
        C1,
        Request::Get(Get {
            wait_until,
            ..get("A")
        }),
    );
    w.alter_local("A", |q| q.get = Enabled::No);
    let events = reported(&mut w, QUEUE_MANAGER);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].reason.get(), 2016);
}

#[test]
fn start_and_stop_are_reported_and_a_persistent_event_queue_keeps_them() {
    let mut w = world(|events| events.start_stop = Enabled::Yes);
    w.alter_local(QUEUE_MANAGER, |q| {
        q.base.default_persistence = Persistence::Persistent;
    });
    let started = reported(&mut w, QUEUE_MANAGER);
    assert_eq!(
        started.iter().map(|e| e.reason.get()).collect::<Vec<_>>(),
        [2222]
    );
    w.input(Input::Stopping);
    w.crash();
    let events = reported(&mut w, QUEUE_MANAGER);
    let reasons: Vec<u32> = events.iter().map(|e| e.reason.get()).collect();
    assert_eq!(reasons, [2223, 2222]);
    assert_eq!(number(&events[0], PcfParameter::REASON_QUALIFIER), 5);
    w.alter(|qmgr| qmgr.attributes.events.start_stop = Enabled::No);
    w.input(Input::Stopping);
    w.crash();
    assert_eq!(reported(&mut w, QUEUE_MANAGER), []);
}
