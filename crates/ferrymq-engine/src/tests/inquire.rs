//! `MQINQ`, `MQSET` and `DEFSOPT`.

use ferrymq_objects::{Attributes, DefaultInputUse, ObjectKind, Queue};
use ferrymq_types::{AttributeValue, ReasonCode};

use super::dynamic::with_models;
use super::harness::{C1, C2, World, put, put_np, queue_name};
use crate::{HandleId, InputUse, Inquired, Limits, ObjectName, OpenOptions, Reply, Request};

const INQUIRE: OpenOptions = OpenOptions {
    input: None,
    browse: false,
    output: false,
    inquire: true,
    context: crate::ContextUse {
        save_all: false,
        pass_identity: false,
        pass_all: false,
        set_identity: false,
        set_all: false,
    },
    fail_if_quiescing: false,
    set: false,
};

const SET: OpenOptions = OpenOptions {
    inquire: false,
    set: true,
    ..INQUIRE
};

fn open(queue: &str, options: OpenOptions) -> Request {
    Request::Open {
        selector: None,
        name: ObjectName::local(queue_name(queue)),
        options,
        dynamic_name: Some(String::new()),
    }
}

fn opened(w: &mut World, queue: &str, options: OpenOptions) -> HandleId {
    match w.answer(C1, open(queue, options)).1 {
        Ok(Reply::Opened(opened)) => opened.handle,
        other => panic!("{other:?}"),
    }
}

fn world() -> World {
    World::with(with_models(), Limits::default())
}

fn inquired(w: &mut World, handle: HandleId) -> Inquired {
    let request = Request::Inquire {
        handle: Some(handle),
    };
    match w.answer(C1, request).1 {
        Ok(Reply::Inquired(inquired)) => inquired,
        other => panic!("{other:?}"),
    }
}

fn set(handle: HandleId, keyword: &str, value: AttributeValue) -> Request {
    Request::Set {
        handle,
        attributes: [(keyword, value)].into_iter().collect(),
    }
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::Number(n)
}

fn word(text: &str) -> AttributeValue {
    AttributeValue::Word(text.to_owned())
}

#[test]
fn an_open_for_inquire_or_set_is_of_what_can_be_asked_or_set() {
    let check = |queue: &str, options, expected: Option<ReasonCode>| {
        let reason = match world().answer(C1, open(queue, options)).1 {
            Ok(_) => None,
            Err(failure) => Some(failure.reason),
        };
        assert_eq!(reason, expected, "{queue} {options:?}");
    };
    for options in [INQUIRE, SET] {
        check("A", options, None);
        check("AL", options, None);
        check("TEMP", options, None);
        check("NONE", options, Some(ReasonCode::UNKNOWN_OBJECT_NAME));
    }
    // A remote definition can be asked; set, as browse and input, ends at a local queue.
    check("R", INQUIRE, None);
    check("R", SET, Some(ReasonCode::OPTION_NOT_VALID_FOR_TYPE));
    let both = OpenOptions {
        output: true,
        ..INQUIRE
    };
    check("R", both, None);
}

#[test]
fn an_inquiry_answers_for_the_object_that_was_opened() {
    let mut w = world();
    let all = OpenOptions {
        input: Some(InputUse::Shared),
        output: true,
        ..INQUIRE
    };
    let handle = opened(&mut w, "A", all);
    w.put(put("A", "x"));
    w.put(put_np("A", "y"));
    let a = inquired(&mut w, handle);
    assert_eq!((a.depth, a.inputs, a.outputs), (Some(2), 1, 1));
    assert_eq!(a.queue.kind(), ObjectKind::LocalQueue);
    let alias = opened(&mut w, "AL", INQUIRE);
    let alias = inquired(&mut w, alias);
    assert_eq!(
        (alias.queue.kind(), alias.depth),
        (ObjectKind::AliasQueue, None)
    );
    let remote = opened(&mut w, "R", INQUIRE);
    assert_eq!(
        inquired(&mut w, remote).queue.kind(),
        ObjectKind::RemoteQueue
    );
    let reply = w.answer(C1, Request::Inquire { handle: None }).1;
    match reply {
        Ok(Reply::InquiredQueueManager(attributes)) => assert_eq!(attributes.name.as_str(), "QM1"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn inquire_and_set_need_a_handle_that_is_open_for_it() {
    let mut w = world();
    let (inquires, sets) = (opened(&mut w, "A", INQUIRE), opened(&mut w, "A", SET));
    let inquire = |handle| Request::Inquire {
        handle: Some(handle),
    };
    let put_off = |handle| set(handle, "PUT", word("DISABLED"));
    let not_inquire = ReasonCode::NOT_OPEN_FOR_INQUIRE;
    assert_eq!(w.refusal(C1, inquire(sets)), not_inquire);
    assert_eq!(
        w.refusal(C1, put_off(inquires)),
        ReasonCode::NOT_OPEN_FOR_SET
    );
    // Another connection's.
    assert_eq!(w.refusal(C2, inquire(inquires)), ReasonCode::HOBJ_ERROR);
    assert_eq!(w.refusal(C2, put_off(sets)), ReasonCode::HOBJ_ERROR);
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name("A"));
    });
    assert_eq!(w.refusal(C1, inquire(inquires)), ReasonCode::Q_DELETED);
    assert_eq!(w.refusal(C1, put_off(sets)), ReasonCode::Q_DELETED);
}

#[test]
fn each_attribute_is_set_or_refused_with_its_reason() {
    let text = |t: &str| AttributeValue::Text(t.to_owned());
    let long = "x".repeat(65);
    let table = [
        ("A", "GET", word("DISABLED"), None),
        (
            "A",
            "GET",
            word("MAYBE"),
            Some(ReasonCode::INHIBIT_VALUE_ERROR),
        ),
        ("A", "PUT", word("DISABLED"), None),
        ("A", "PUT", number(1), Some(ReasonCode::INHIBIT_VALUE_ERROR)),
        ("A", "TRIGGER", AttributeValue::Flag(true), None),
        (
            "A",
            "TRIGGER",
            number(9),
            Some(ReasonCode::TRIGGER_CONTROL_ERROR),
        ),
        ("A", "TRIGTYPE", word("DEPTH"), None),
        (
            "A",
            "TRIGTYPE",
            word("NEVER"),
            Some(ReasonCode::TRIGGER_TYPE_ERROR),
        ),
        ("A", "TRIGDPTH", number(5), None),
        (
            "A",
            "TRIGDPTH",
            number(0),
            Some(ReasonCode::TRIGGER_DEPTH_ERROR),
        ),
        ("A", "TRIGMPRI", number(9), None),
        (
            "A",
            "TRIGMPRI",
            number(10),
            Some(ReasonCode::TRIGGER_MSG_PRIORITY_ERR),
        ),
        ("A", "TRIGDATA", text("x"), None),
        (
            "A",
            "TRIGDATA",
            text(&long),
            Some(ReasonCode::CHAR_ATTR_LENGTH_ERROR),
        ),
        ("A", "MAXDEPTH", number(5), Some(ReasonCode::SELECTOR_ERROR)),
        (
            "A",
            "DEFTYPE",
            word("PERMDYN"),
            Some(ReasonCode::SELECTOR_ERROR),
        ),
        ("A", "NONSENSE", number(5), Some(ReasonCode::SELECTOR_ERROR)),
        ("AL", "GET", word("DISABLED"), None),
        ("AL", "PUT", word("DISABLED"), None),
        (
            "AL",
            "TRIGDPTH",
            number(5),
            Some(ReasonCode::SELECTOR_NOT_FOR_TYPE),
        ),
    ];
    for (queue, keyword, value, expected) in table {
        let mut w = world();
        let handle = opened(&mut w, queue, SET);
        let request = set(handle, keyword, value.clone());
        let attributes: Attributes = [(keyword, value)].into_iter().collect();
        match (w.answer(C1, request).1, expected) {
            // A command made it: it is for a command to change.
            (
                Ok(Reply::Alter {
                    name,
                    attributes: given,
                    ..
                }),
                None,
            ) => {
                assert_eq!((name.as_str(), given), (queue, attributes));
            }
            (Err(failure), Some(reason)) => assert_eq!(failure.reason, reason, "{keyword}"),
            (answer, _) => panic!("{queue} {keyword}: {answer:?}"),
        }
    }
}

#[test]
fn a_dynamic_queue_is_set_here_and_at_once() {
    for model in ["TEMP", "PERM"] {
        let mut w = world();
        let options = OpenOptions {
            input: Some(InputUse::AsQueueDefined),
            output: true,
            inquire: true,
            set: true,
            ..INQUIRE
        };
        let handle = opened(&mut w, model, options);
        let Queue::Local(queue) = *inquired(&mut w, handle).queue else {
            panic!("a dynamic queue is local");
        };
        let name = queue.base.name.to_string();
        let waiting = w.ask(
            C1,
            Request::Get(crate::Get {
                source: crate::Source::Handle(handle),
                wait_until: w.until(std::time::Duration::from_secs(9)),
                ..super::harness::get("ANY")
            }),
        );
        w.done(C1, set(handle, "GET", word("DISABLED")));
        let (_, ended) = w.replies.get(&waiting).unwrap();
        assert_eq!(ended.clone().unwrap_err().reason, ReasonCode::GET_INHIBITED);
        w.done(C1, set(handle, "PUT", word("DISABLED")));
        assert_eq!(w.put_refused(put_np(&name, "x")), ReasonCode::PUT_INHIBITED);
        if model == "PERM" {
            w.crash();
            assert_eq!(w.put_refused(put_np(&name, "x")), ReasonCode::PUT_INHIBITED);
        }
    }
}

#[test]
fn input_as_the_queue_defines_is_what_defsopt_says() {
    let check = |share: bool, default, first, second, expected: Option<ReasonCode>| {
        let mut w = world();
        w.alter_local("A", |a| {
            a.share = share;
            a.default_input_use = default;
        });
        let input = |input| OpenOptions {
            input: Some(input),
            inquire: false,
            ..INQUIRE
        };
        opened(&mut w, "A", input(first));
        let reason = match w.answer(C2, open("A", input(second))).1 {
            Ok(_) => None,
            Err(failure) => Some(failure.reason),
        };
        assert_eq!(reason, expected, "{share} {default:?} {first:?} {second:?}");
    };
    use DefaultInputUse::{Exclusive as Excl, Shared};
    let in_use = Some(ReasonCode::OBJECT_IN_USE);
    let default = InputUse::AsQueueDefined;
    check(true, Shared, default, default, None);
    check(true, Excl, default, default, in_use);
    check(true, Excl, InputUse::Shared, InputUse::Shared, None);
    check(true, Excl, InputUse::Shared, default, in_use);
    check(true, Excl, default, InputUse::Shared, in_use);
    check(false, Shared, default, default, in_use);
    check(false, Shared, InputUse::Shared, InputUse::Shared, in_use);
    check(true, Shared, InputUse::Exclusive, default, in_use);
}
