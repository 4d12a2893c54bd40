//! DEFINE, ALTER, DELETE: what they change, what they refuse, and that nothing else changes.

use std::sync::Arc;

use ferrymq_types::{
    ChannelName, ObjectId, ProcessName, QueueManagerId, QueueManagerName, QueueName,
};

use super::{Bench, attributes, define, number, text, word};
use crate::ObjectKind::{
    AliasQueue, LocalQueue, Process, ReceiverChannel, RemoteQueue, SenderChannel,
    ServerConnectionChannel,
};
use crate::{
    Action, Applied, AttributeError, AttributeProblem, AttributeValue, Command, CommandError,
    DeleteKind, ObjectClass, ObjectKind, Queue, REQUESTS_REMEMBERED_MAX, Remembered,
};

fn queue<'a>(b: &'a Bench, name: &str) -> &'a Queue {
    &b.qm1().queues[&QueueName::new(name).unwrap()]
}

fn shown(queue: &Queue, keyword: &str) -> AttributeValue {
    let found = queue.displayed().into_iter().find(|(k, _)| *k == keyword);
    found.unwrap_or_else(|| panic!("no {keyword}")).1
}

fn like(kind: ObjectKind, name: &str, like: &str) -> Action {
    Action::Define {
        kind,
        name: name.into(),
        attributes: attributes(&[("DESCR", text("own"))]),
        like: Some(like.into()),
        replace: false,
    }
}

fn replace(kind: ObjectKind, name: &str, pairs: &[(&str, AttributeValue)]) -> Action {
    Action::Define {
        kind,
        name: name.into(),
        attributes: attributes(pairs),
        like: None,
        replace: true,
    }
}

fn alter(kind: ObjectKind, name: &str, pairs: &[(&str, AttributeValue)]) -> Action {
    Action::Alter {
        kind,
        name: name.into(),
        attributes: attributes(pairs),
    }
}

fn delete(kind: ObjectKind, name: &str) -> Action {
    Action::Delete {
        kind: DeleteKind::Kind(kind),
        name: name.into(),
    }
}

#[test]
fn a_new_queue_manager_has_its_system_objects() {
    let b = Bench::new();
    let names: Vec<&str> = b.qm1().queues.keys().map(QueueName::as_str).collect();
    assert_eq!(
        names,
        [
            "SYSTEM.ADMIN.CHANNEL.EVENT",
            "SYSTEM.ADMIN.PERFM.EVENT",
            "SYSTEM.ADMIN.QMGR.EVENT",
            "SYSTEM.CHANNEL.INITQ",
            "SYSTEM.DEAD.LETTER.QUEUE",
            "SYSTEM.DEFAULT.ALIAS.QUEUE",
            "SYSTEM.DEFAULT.INITIATION.QUEUE",
            "SYSTEM.DEFAULT.LOCAL.QUEUE",
            "SYSTEM.DEFAULT.MODEL.QUEUE",
            "SYSTEM.DEFAULT.REMOTE.QUEUE"
        ]
    );
    let names: Vec<&str> = b.qm1().channels.keys().map(ChannelName::as_str).collect();
    assert_eq!(
        names,
        [
            "SYSTEM.DEF.RECEIVER",
            "SYSTEM.DEF.SENDER",
            "SYSTEM.DEF.SVRCONN"
        ]
    );
    assert_eq!(b.qm1().attributes.dead_letter_queue_name, None);
    assert_eq!(b.qm1().node, 3);
    let ids: std::collections::BTreeSet<ObjectId> = b
        .qm1()
        .queues
        .values()
        .map(|q| q.base().id)
        .chain(b.qm1().channels.values().map(|c| c.base().id))
        .chain(b.qm1().processes.values().map(|p| p.id))
        .collect();
    assert_eq!(ids.len(), 14);
    assert!(!ids.contains(&ObjectId::ZERO));
    assert_eq!(b.definitions.next_object_id, ObjectId::new(15));
}

#[test]
fn a_define_takes_what_is_not_given_from_the_default_object_as_it_is_now() {
    let mut b = Bench::new();
    b.define(LocalQueue, "BEFORE", &[]);
    b.must(alter(
        LocalQueue,
        "SYSTEM.DEFAULT.LOCAL.QUEUE",
        &[("MAXDEPTH", number(77))],
    ));
    b.define(LocalQueue, "AFTER", &[("BOTHRESH", number(3))]);
    b.must(like(LocalQueue, "LIKE", "AFTER"));
    assert_eq!(shown(queue(&b, "BEFORE"), "MAXDEPTH"), number(5000));
    assert_eq!(shown(queue(&b, "AFTER"), "MAXDEPTH"), number(77));
    assert_eq!(shown(queue(&b, "LIKE"), "BOTHRESH"), number(3));
    assert_eq!(shown(queue(&b, "LIKE"), "DESCR"), text("own"));
    assert_ne!(queue(&b, "LIKE").base().id, queue(&b, "AFTER").base().id);
    // Without its default object, a kind falls back on what the object was at first.
    b.must(delete(LocalQueue, "SYSTEM.DEFAULT.LOCAL.QUEUE"));
    b.define(LocalQueue, "LAST", &[]);
    assert_eq!(shown(queue(&b, "LAST"), "MAXDEPTH"), number(5000));
}

#[test]
fn replace_keeps_id_and_creation_and_sets_every_attribute() {
    let mut b = Bench::new();
    b.define(
        LocalQueue,
        "Q",
        &[("MAXDEPTH", number(1)), ("BOTHRESH", number(3))],
    );
    let before = queue(&b, "Q").clone();
    let applied = b.must(replace(LocalQueue, "Q", &[("BOTHRESH", number(4))]));
    assert_eq!(
        applied,
        Applied::Replaced {
            kind: LocalQueue,
            name: "Q".into(),
            id: before.base().id
        }
    );
    let after = queue(&b, "Q");
    assert_eq!(after.base().id, before.base().id);
    assert_eq!(shown(after, "BOTHRESH"), number(4));
    assert_eq!(shown(after, "MAXDEPTH"), number(5000));
    assert!(after.base().altered > before.base().altered);
    let (Queue::Local(before), Queue::Local(after)) = (&before, after) else {
        panic!("not local");
    };
    assert_eq!(before.created, after.created);
    // On nothing, it is a plain definition.
    assert!(matches!(
        b.must(replace(LocalQueue, "NEW", &[])),
        Applied::Created { .. }
    ));
}

#[test]
fn an_object_that_is_defined_anew_has_a_new_id() {
    let mut b = Bench::new();
    b.define(LocalQueue, "Q", &[]);
    let first = queue(&b, "Q").base().id;
    b.must(delete(LocalQueue, "Q"));
    b.define(LocalQueue, "Q", &[]);
    assert!(queue(&b, "Q").base().id > first);
}

#[test]
fn alter_changes_what_is_named_and_nothing_else() {
    let mut b = Bench::new();
    b.define(
        LocalQueue,
        "Q",
        &[("MAXDEPTH", number(9)), ("BOQNAME", text("B"))],
    );
    b.must(alter(
        LocalQueue,
        "Q",
        &[
            ("BOQNAME", text("")),
            ("PUT", word("DISABLED")),
            ("SHARE", AttributeValue::Flag(false)),
        ],
    ));
    let q = queue(&b, "Q");
    assert_eq!(shown(q, "MAXDEPTH"), number(9));
    assert_eq!(shown(q, "BOQNAME"), text(""));
    assert_eq!(shown(q, "PUT"), word("DISABLED"));
    assert_eq!(shown(q, "SHARE"), AttributeValue::Flag(false));
    b.must(Action::AlterQueueManager {
        attributes: attributes(&[("DEADQ", text("SYSTEM.DEAD.LETTER.QUEUE"))]),
    });
    assert_eq!(
        b.qm1().attributes.dead_letter_queue_name,
        QueueName::new("SYSTEM.DEAD.LETTER.QUEUE").ok()
    );
}

#[test]
fn a_new_channel_is_of_its_type_and_senders_say_where_to() {
    let mut b = Bench::new();
    let whole = [("CONNAME", text("h(1414)")), ("XMITQ", text("QM2"))];
    b.define(SenderChannel, "QM1.TO.QM2", &whole);
    b.define(ReceiverChannel, "QM2.TO.QM1", &[("MRRTY", number(0))]);
    b.define(ServerConnectionChannel, "APP", &[("MCAUSER", text("app"))]);
    for (missing, pairs) in [("XMITQ", &whole[..1]), ("CONNAME", &whole[1..])] {
        let error = b.apply(define(SenderChannel, "S", pairs)).unwrap_err();
        assert_eq!(
            error,
            CommandError::Attribute(AttributeError {
                keyword: missing.into(),
                problem: AttributeProblem::Required
            })
        );
    }
    let error = b.apply(alter(SenderChannel, "QM1.TO.QM2", &[("CONNAME", text(""))]));
    assert_eq!(error.unwrap_err().message().id, "AMQ8214E");
    // The default sender has neither, and can be changed all the same.
    b.must(alter(
        SenderChannel,
        "SYSTEM.DEF.SENDER",
        &[("HBINT", number(5))],
    ));
    let mut anywhere = like(SenderChannel, "S", "QM1.TO.QM2");
    b.must(anywhere.clone());
    if let Action::Define { name, .. } = &mut anywhere {
        "A.NAME.OF.21.LETTERS.".clone_into(name);
    }
    assert_eq!(b.apply(anywhere).unwrap_err().message().id, "AMQ8424E");
    b.must(Action::Delete {
        kind: DeleteKind::Channel,
        name: "S".into(),
    });
}

#[test]
fn a_refusal_has_its_message_and_changes_nothing() {
    let mut b = Bench::new();
    b.define(LocalQueue, "Q", &[]);
    b.define(ReceiverChannel, "C", &[]);
    let channel = Action::Delete {
        kind: DeleteKind::Channel,
        name: "NONE".into(),
    };
    let wrong = [("MAXDEPTH", number(1_000_000_000))];
    for (action, reason, line) in [
        (
            define(LocalQueue, "Q", &[]),
            4001,
            "AMQ8150E: FerryMQ object Q already exists.",
        ),
        (
            define(AliasQueue, "Q", &[]),
            4001,
            "AMQ8150E: FerryMQ object Q already exists.",
        ),
        (
            define(ReceiverChannel, "C", &[]),
            4042,
            "AMQ8226E: FerryMQ channel C already exists.",
        ),
        (
            replace(RemoteQueue, "Q", &[]),
            4002,
            "AMQ8151E: FerryMQ object Q has a different type: QLOCAL.",
        ),
        (
            replace(ServerConnectionChannel, "C", &[]),
            4041,
            "AMQ8151E: FerryMQ object C has a different type: CHANNEL CHLTYPE(RCVR).",
        ),
        (
            alter(LocalQueue, "NONE", &[]),
            2085,
            "AMQ8147E: FerryMQ object NONE not found.",
        ),
        (
            alter(AliasQueue, "Q", &[]),
            4002,
            "AMQ8151E: FerryMQ object Q has a different type: QLOCAL.",
        ),
        (
            delete(LocalQueue, "NONE"),
            2085,
            "AMQ8147E: FerryMQ object NONE not found.",
        ),
        (
            delete(RemoteQueue, "Q"),
            4002,
            "AMQ8151E: FerryMQ object Q has a different type: QLOCAL.",
        ),
        (channel, 4032, "AMQ8227E: Channel NONE not found."),
        (
            like(LocalQueue, "L", "NONE"),
            2085,
            "AMQ8147E: FerryMQ object NONE not found.",
        ),
        (
            like(AliasQueue, "L", "Q"),
            4002,
            "AMQ8152E: Source FerryMQ object Q has a different type: QLOCAL.",
        ),
        (
            define(LocalQueue, "A B", &[]),
            2152,
            "AMQ8424E: Error detected in a name keyword: 'A B': character ' ' at position 2 is not allowed in a name (A-Z a-z \
             0-9 . / _ %).",
        ),
        (
            alter(LocalQueue, "Q", &wrong),
            4005,
            "AMQ8405E: Attribute MAXDEPTH does not take the value '1000000000': allowed is a number from 0 to 999999999.",
        ),
        (
            alter(
                LocalQueue,
                "Q",
                &[("PUT", word("DISABLED")), ("ZZZ", number(1))],
            ),
            4005,
            "AMQ8405E: Attribute ZZZ is not known.",
        ),
        (
            alter(LocalQueue, "Q", &[("CLUSTER", text("C"))]),
            4005,
            "AMQ8405E: Attribute CLUSTER is not supported yet.",
        ),
        (
            alter(LocalQueue, "Q", &[("XMITQ", text("C"))]),
            4005,
            "AMQ8405E: Attribute XMITQ does not apply to this type of object.",
        ),
        (
            alter(LocalQueue, "Q", &[("CRDATE", text("C"))]),
            4005,
            "AMQ8405E: Attribute CRDATE cannot be set.",
        ),
        (
            Action::CreateQueueManager {
                id: QueueManagerId::NONE,
                node: 1,
            },
            4001,
            "AMQ8110E: FerryMQ queue manager QM1 already exists.",
        ),
    ] {
        let next = b.definitions.next_object_id;
        let error = b.apply(action).unwrap_err();
        assert_eq!(error.message().to_string(), line);
        assert_eq!(error.reason().get(), reason, "{line}");
        assert_eq!(b.definitions.next_object_id, next);
    }
}

#[test]
fn a_command_for_an_unknown_queue_manager_is_refused() {
    let mut b = Bench::new();
    let mut command = b.command(define(LocalQueue, "Q", &[]));
    command.queue_manager = QueueManagerName::new("QM2").unwrap();
    command.request = [9; 16];
    let error = b.definitions.apply(99, &command).unwrap_err();
    assert_eq!(
        error.message().to_string(),
        "AMQ8118E: FerryMQ queue manager QM2 does not exist."
    );
    assert_eq!(error.reason().get(), 4006);
    assert_eq!(b.definitions.applied_index, 99);
}

#[test]
fn a_repeated_request_has_the_same_answer_and_no_second_effect() {
    let mut b = Bench::new();
    b.define(LocalQueue, "Q", &[]);
    let mut good = b.command(define(LocalQueue, "G", &[]));
    good.request = [1; 16];
    let mut bad = b.command(define(LocalQueue, "Q", &[]));
    bad.request = [2; 16];
    let first = (
        b.definitions.apply(10, &good),
        b.definitions.apply(11, &bad),
    );
    assert!(first.0.is_ok() && first.1.is_err());
    b.must(delete(LocalQueue, "G"));
    b.must(delete(LocalQueue, "Q"));
    let again = (
        b.definitions.apply(12, &good),
        b.definitions.apply(13, &bad),
    );
    assert_eq!(first, again);
    assert!(!b.qm1().queues.contains_key(&QueueName::new("G").unwrap()));
    // The memory is bounded.
    for _ in 0..REQUESTS_REMEMBERED_MAX {
        b.must(replace(LocalQueue, "R", &[]));
    }
    assert_eq!(b.definitions.remembered.len(), REQUESTS_REMEMBERED_MAX);
    assert!(b.definitions.apply(5000, &bad).is_ok());
}

#[test]
fn a_newer_command_stops_the_machine_and_leaves_no_trace() {
    let mut b = Bench::new();
    let before = b.definitions.clone();
    let mut command = b.command(define(LocalQueue, "Q", &[]));
    command.version = Command::VERSION + 1;
    command.request = [3; 16];
    assert_eq!(
        b.definitions.apply(50, &command),
        Err(CommandError::Version { version: 2 })
    );
    assert_eq!(before, b.definitions);
}

#[test]
fn who_holds_a_queue_manager_sees_it_as_it_was() {
    let mut b = Bench::new();
    let held = Arc::clone(&b.definitions.queue_managers[&QueueManagerName::new("QM1").unwrap()]);
    b.define(LocalQueue, "Q", &[]);
    let name = QueueName::new("Q").unwrap();
    assert!(!held.queues.contains_key(&name));
    assert!(b.qm1().queues.contains_key(&name));
}

#[test]
fn the_same_commands_give_the_same_definitions() {
    let run = || {
        let mut b = Bench::new();
        b.define(LocalQueue, "Q", &[("DESCR", text("x"))]);
        assert!(b.apply(define(LocalQueue, "Q", &[])).is_err());
        b.must(alter(LocalQueue, "Q", &[("GET", word("DISABLED"))]));
        b.definitions
    };
    assert_eq!(run(), run());
}

#[test]
fn every_remembered_answer_comes_back_from_its_words() {
    let object = |f: fn(ObjectKind, String, ObjectId) -> Applied| {
        ObjectKind::ALL.map(|k| f(k, "A.NAME".into(), ObjectId::new(u64::MAX)))
    };
    let attribute = |problem| {
        CommandError::Attribute(AttributeError {
            keyword: "KEY".into(),
            problem,
        })
    };
    let name = || "N".to_owned();
    let good = [
        Applied::QueueManagerAltered,
        Applied::QueueManagerCreated {
            id: QueueManagerId::new([0xab; 16]),
        },
    ]
    .into_iter()
    .chain(object(|kind, name, id| Applied::Created { kind, name, id }))
    .chain(object(|kind, name, id| Applied::Replaced {
        kind,
        name,
        id,
    }))
    .chain(object(|kind, name, id| Applied::Altered { kind, name, id }))
    .chain(object(|kind, name, id| Applied::Deleted { kind, name, id }))
    .map(Ok);
    let bad = [
        CommandError::Version { version: 3 },
        CommandError::QueueManagerExists { name: name() },
        CommandError::QueueManagerNotFound { name: name() },
        CommandError::Exists {
            kind: LocalQueue,
            name: name(),
        },
        CommandError::NotFound {
            class: ObjectClass::Queue,
            name: name(),
        },
        CommandError::NotFound {
            class: ObjectClass::Channel,
            name: name(),
        },
        CommandError::WrongType {
            name: name(),
            found: SenderChannel,
        },
        CommandError::LikeWrongType {
            name: name(),
            found: AliasQueue,
        },
        CommandError::Name {
            name: name(),
            why: "w".into(),
        },
        attribute(AttributeProblem::Unknown),
        attribute(AttributeProblem::NotSupported),
        attribute(AttributeProblem::NotApplicable),
        attribute(AttributeProblem::ReadOnly),
        attribute(AttributeProblem::Required),
        attribute(AttributeProblem::Repeated),
        attribute(AttributeProblem::Value {
            given: "".into(),
            allowed: "a, b".into(),
        }),
    ]
    .into_iter()
    .map(Err);
    for outcome in good.chain(bad) {
        let remembered = Remembered {
            request: [5; 16],
            outcome,
        };
        let words = remembered.outcome_words();
        assert_eq!(Remembered::from_words([5; 16], &words), Some(remembered));
    }
    assert_eq!(Remembered::from_words([5; 16], &["NEWER".to_owned()]), None);
    assert_eq!(Remembered::from_words([5; 16], &[]), None);
}

#[test]
fn a_process_is_defined_altered_and_deleted_beside_a_queue_of_its_name() {
    let mut b = Bench::new();
    b.define(LocalQueue, "ORDERS", &[("PROCESS", text("ORDERS"))]);
    b.define(
        Process,
        "ORDERS",
        &[
            ("APPLICID", text("/usr/bin/orders")),
            ("APPLTYPE", word("DEF")),
        ],
    );
    b.must(alter(Process, "ORDERS", &[("USERDATA", text("-v"))]));
    let name = ProcessName::new("ORDERS").unwrap();
    let process = b.qm1().processes[&name].clone();
    assert_eq!(process.application_id, "/usr/bin/orders");
    assert_eq!(
        (process.application_type, process.user_data.as_str()),
        (6, "-v")
    );
    b.must(delete(Process, "ORDERS"));
    assert!(!b.qm1().processes.contains_key(&name));
    assert_eq!(shown(queue(&b, "ORDERS"), "PROCESS"), text("ORDERS"));
    let missing = b.apply(delete(Process, "ORDERS")).unwrap_err();
    assert_eq!(missing.reason().get(), 2085);
    let remembered = Remembered {
        request: [1; 16],
        outcome: Err(missing),
    };
    let words = remembered.outcome_words();
    assert_eq!(Remembered::from_words([1; 16], &words), Some(remembered));
}

#[test]
fn the_low_limit_of_depth_events_is_not_above_the_high_one() {
    let mut b = Bench::new();
    b.define(LocalQueue, "Q", &[("QDEPTHLO", number(80))]);
    for pairs in [[("QDEPTHLO", number(81))], [("QDEPTHHI", number(79))]] {
        let refused = b.apply(alter(LocalQueue, "Q", &pairs)).unwrap_err();
        assert!(refused.to_string().contains("QDEPTHLO"), "{refused}");
    }
    assert_eq!(shown(queue(&b, "Q"), "QDEPTHHI"), number(80));
}
