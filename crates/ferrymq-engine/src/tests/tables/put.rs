//! MQPUT and MQPUT1.

use super::super::dynamic::with_models;
use super::*;

/// A put of five bytes, persistent.
fn five(object: &Object) -> Put {
    Put {
        object: object.clone(),
        ..put("A", "12345")
    }
}

type MakePut = fn(&Object) -> Put;

fn non_persistent(object: &Object) -> Put {
    Put {
        object: object.clone(),
        ..put_np("A", "12345")
    }
}

fn if_not_quiescing(object: &Object) -> Put {
    let options = PutOptions {
        fail_if_quiescing: true,
        ..PutOptions::default()
    };
    Put {
        options,
        ..five(object)
    }
}

fn in_unit(object: &Object) -> Put {
    Put {
        syncpoint: Some(unit(1)),
        ..five(object)
    }
}

fn priority_too_high(object: &Object) -> Put {
    let options = PutOptions {
        priority_exceeds_maximum: true,
        ..PutOptions::default()
    };
    Put {
        options,
        ..five(object)
    }
}

fn token_and_unit(object: &Object) -> Put {
    Put {
        token: Some(unit(5)),
        ..in_unit(object)
    }
}

fn already_expired(object: &Object) -> Put {
    let mut put = five(object);
    put.descriptor.expires_at = Some(ferrymq_types::Timestamp::ZERO);
    put
}

fn report_without_reply_queue(object: &Object) -> Put {
    let mut put = five(object);
    put.descriptor.report = ReportOptions::from_bits(0x100);
    put
}

fn context_of_no_handle(object: &Object) -> Put {
    Put {
        context: Context::PassAll(HandleId(999)),
        ..five(object)
    }
}

fn segment(object: &Object) -> Put {
    let mut put = five(object);
    put.descriptor.message_flags = 2;
    put
}

/// MQPUT and MQPUT1: the same, but that the name of an open queue was looked at when it was opened.
#[test]
fn mqput_and_mqput1_options_by_states() {
    let table: &[(&str, MakePut, &str, State, Outcome)] = &[
        ("plain", five, "idle", nothing, Done),
        ("plain", five, "PUT(DISABLED)", put_inhibited, Failed(2051)),
        ("plain", five, "MAXDEPTH reached", full, Failed(2053)),
        (
            "plain",
            five,
            "MAXDEPTH reached by uncommitted messages",
            full_of_uncommitted,
            Failed(2053),
        ),
        (
            "plain",
            five,
            "longer than MAXMSGL of the queue",
            short_queue,
            Failed(2030),
        ),
        (
            "plain",
            five,
            "longer than MAXMSGL of the queue manager",
            short_queue_manager,
            Failed(2031),
        ),
        (
            "plain",
            five,
            "no room in the journal",
            no_space,
            Failed(2192),
        ),
        ("plain", five, "quiescing", quiescing, Done),
        ("non-persistent", non_persistent, "idle", nothing, Done),
        (
            "non-persistent",
            non_persistent,
            "PUT(DISABLED)",
            put_inhibited,
            Failed(2051),
        ),
        (
            "non-persistent",
            non_persistent,
            "MAXDEPTH reached",
            full,
            Failed(2053),
        ),
        ("FAIL_IF_QUIESCING", if_not_quiescing, "idle", nothing, Done),
        (
            "FAIL_IF_QUIESCING",
            if_not_quiescing,
            "quiescing",
            quiescing,
            Failed(2161),
        ),
        ("SYNCPOINT", in_unit, "unit open", own_unit, Done),
        ("SYNCPOINT", in_unit, "no unit", nothing, Failed(2255)),
        (
            "SYNCPOINT",
            in_unit,
            "another's unit",
            others_unit,
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            in_unit,
            "unit committed",
            committed_unit,
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            in_unit,
            "unit backed out",
            backed_out_unit,
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            in_unit,
            "MAXUMSGS reached",
            full_unit,
            Failed(2024),
        ),
        (
            "priority above MAXPRTY",
            priority_too_high,
            "idle",
            nothing,
            Warning(2049),
        ),
        (
            "priority above MAXPRTY",
            priority_too_high,
            "MAXDEPTH reached",
            full,
            Failed(2053),
        ),
        (
            "token and SYNCPOINT",
            token_and_unit,
            "unit open",
            own_unit,
            Failed(2046),
        ),
        (
            "expired before it is put",
            already_expired,
            "idle",
            nothing,
            Done,
        ),
        (
            "report without ReplyToQ",
            report_without_reply_queue,
            "idle",
            nothing,
            Failed(2027),
        ),
        (
            "PASS_ALL_CONTEXT of no handle",
            context_of_no_handle,
            "idle",
            nothing,
            Failed(2097),
        ),
        ("segment", segment, "idle", nothing, Failed(2443)),
    ];
    let mut different = Vec::new();
    for (option, make, state_name, state, expected) in table {
        for through_handle in [false, true] {
            let mut w = World::new();
            let object = if through_handle {
                let handle = opened(
                    &mut w,
                    C1,
                    "A",
                    OpenOptions {
                        output: true,
                        context: ContextUse {
                            pass_all: true,
                            ..ContextUse::default()
                        },
                        ..OpenOptions::default()
                    },
                );
                Object::Handle(handle)
            } else {
                named("A")
            };
            state(&mut w);
            let before = w.depth("A");
            let found = outcome(&mut w, Request::Put(Box::new(make(&object))));
            if found != *expected {
                let call = if through_handle { "MQPUT" } else { "MQPUT1" };
                different.push(format!(
                    "{call} {option}, {state_name}: {found:?} for {expected:?}"
                ));
            }
            let added = u64::from(matches!(found, Done | Warning(_)));
            assert_eq!(
                w.depth("A"),
                before + added,
                "{option}, {state_name}: wholly or not at all"
            );
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// MQPUT1: what the name leads to (mq-semantics section 3).
#[test]
fn mqput1_names_by_definitions() {
    let at = |queue: &str, queue_manager: &str| {
        Object::Named(ObjectName {
            queue: queue_name(queue),
            queue_manager: (!queue_manager.is_empty()).then(|| qmgr_name(queue_manager)),
        })
    };
    let table: Vec<(&str, Object, State, Outcome)> = vec![
        ("local", at("A", ""), nothing, Done),
        ("local by its queue manager", at("A", "QM1"), nothing, Done),
        ("alias", at("AL", ""), nothing, Done),
        (
            "alias inhibited",
            at("AL", ""),
            |w| w.alter(|q| alias_mut(q).base.put = Enabled::No),
            Failed(2051),
        ),
        (
            "target of an alias inhibited",
            at("AL", ""),
            put_inhibited,
            Failed(2051),
        ),
        (
            "alias without its target",
            at("AL", ""),
            |w| {
                w.alter(|q| alias_mut(q).target = Some(queue_name("GONE")));
            },
            Failed(2082),
        ),
        (
            "alias of an alias",
            at("AL", ""),
            |w| {
                w.alter(|q| alias_mut(q).target = Some(queue_name("AL")));
            },
            Failed(2001),
        ),
        ("remote", at("R", ""), nothing, Done),
        (
            "remote without its transmission queue",
            at("R", ""),
            |w| {
                w.alter(|q| {
                    q.queues.remove(&queue_name("XQ"));
                });
            },
            Failed(2196),
        ),
        (
            "remote whose transmission queue is none",
            at("R", ""),
            |w| {
                w.alter_local("XQ", |q| q.usage = ferrymq_objects::Usage::Normal);
            },
            Failed(2092),
        ),
        (
            "remote whose transmission queue is inhibited",
            at("R", ""),
            |w| {
                w.alter_local("XQ", |q| q.base.put = Enabled::No);
            },
            Failed(2051),
        ),
        ("unknown queue", at("NONE", ""), nothing, Failed(2085)),
        (
            "queue of an unknown queue manager",
            at("A", "QM9"),
            nothing,
            Failed(2087),
        ),
        (
            "queue manager named as a transmission queue",
            at("A", "XQ"),
            nothing,
            Done,
        ),
    ];
    let mut different = Vec::new();
    for (name, object, state, expected) in table {
        let mut w = World::new();
        state(&mut w);
        let found = outcome(&mut w, Request::Put(Box::new(five(&object))));
        if found != expected {
            different.push(format!("{name}: {found:?} for {expected:?}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

fn alias_mut(qmgr: &mut ferrymq_objects::QueueManager) -> &mut ferrymq_objects::AliasQueue {
    match qmgr.queues.get_mut(&queue_name("AL")) {
        Some(ferrymq_objects::Queue::Alias(alias)) => alias,
        other => panic!("{other:?}"),
    }
}

/// Persistent to a temporary dynamic queue (rule 25), whoever says that it is persistent.
#[test]
fn rule_25_persistent_to_a_temporary_dynamic_queue_is_2048() {
    for (persistence, expected) in [
        (Some(ferrymq_types::Persistence::Persistent), Failed(2048)),
        (Some(ferrymq_types::Persistence::NonPersistent), Done),
        (None, Done),
    ] {
        let mut w = World::with(with_models(), Limits::default());
        let request = Request::Open {
            selector: None,
            name: ObjectName::local(queue_name("TEMP")),
            options: ALL,
            dynamic_name: Some(String::new()),
        };
        let Ok(Reply::Opened(open)) = w.answer(C1, request).1 else {
            panic!("not opened");
        };
        let put = Put {
            persistence,
            ..five(&Object::Handle(open.handle))
        };
        assert_eq!(outcome(&mut w, Request::Put(Box::new(put))), expected);
    }
}
