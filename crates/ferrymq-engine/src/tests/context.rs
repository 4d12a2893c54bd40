//! Contexts of messages: option × how the handles were opened → reason code, and what a message then carries. And what a queue
//! manager that quiesces answers.

use std::time::Duration;

use ferrymq_types::{
    AccountingToken, ApplicationType, MessageDescriptor, ReasonCode, Timestamp, UnitOfWorkId,
};

use super::harness::{C1, C2, World, get, put, queue_name};
use crate::{
    Browse, BrowseStep, Context, ContextUse, Failure, Get, HandleId, Input, InputUse, Object,
    ObjectName, OpenOptions, Put, PutOptions, Reply, Request, RequestId, Source,
};

fn ask(w: &mut World, request: Request) -> Result<Reply, Failure> {
    w.answer(C1, request).1
}

/// Why a request that waited ended.
fn told(w: &World, id: RequestId) -> Option<ReasonCode> {
    let failure = w.replies.get(&id)?.1.as_ref().err()?;
    Some(failure.reason)
}

fn open(w: &mut World, queue: &str, input: bool, context: ContextUse) -> HandleId {
    let options = OpenOptions {
        input: input.then_some(InputUse::Shared),
        output: !input,
        context,
        ..OpenOptions::default()
    };
    let name = ObjectName::local(queue_name(queue));
    let reply = ask(
        w,
        Request::Open {
            name,
            options,
            selector: None,
            dynamic_name: None,
        },
    )
    .unwrap();
    let Reply::Opened(opened) = reply else {
        panic!("{reply:?}");
    };
    opened.handle
}

const fn nothing() -> ContextUse {
    ContextUse {
        save_all: false,
        pass_identity: false,
        pass_all: false,
        set_identity: false,
        set_all: false,
    }
}

/// What the listener, or an application that sets it, writes.
fn with_context(d: &mut MessageDescriptor, who: &str) {
    d.user_identifier = who.into();
    d.accounting_token = AccountingToken::new([u8::try_from(who.len()).unwrap(); 32]);
    d.application_identity_data = format!("{who} data");
    d.put_application_type = ApplicationType::UNIX;
    d.put_application_name = format!("{who} appl");
    d.application_origin_data = "orig".into();
    d.put_time = Timestamp::from_millis(17);
}

fn through(handle: HandleId, context: Context, who: &str) -> Put {
    let mut p = put("A", "x");
    p.object = Object::Handle(handle);
    p.context = context;
    with_context(&mut p.descriptor, who);
    p
}

/// `(identity, origin)` of the message on a queue.
fn context_of(w: &mut World, queue: &str) -> (String, String) {
    let (_, got) = w.get(get(queue));
    let d = &got.message.descriptor;
    let token = d.accounting_token.as_bytes()[0];
    (
        format!(
            "{}/{token}/{}",
            d.user_identifier, d.application_identity_data
        ),
        format!(
            "{}/{}/{}",
            d.put_application_type.get(),
            d.put_application_name,
            d.application_origin_data
        ),
    )
}

fn refused(w: &mut World, p: Put) -> ReasonCode {
    w.refusal(C1, Request::Put(Box::new(p)))
}

#[test]
fn a_context_option_needs_its_open_option_or_a_wider_one() {
    let mut w = World::new();
    let reader = open(
        &mut w,
        "B",
        true,
        ContextUse {
            save_all: true,
            ..nothing()
        },
    );
    w.put(put("B", "read"));
    let from = Get::of(Source::Handle(reader));
    ask(&mut w, Request::Get(from)).unwrap();
    let opened = [
        nothing(),
        ContextUse {
            pass_identity: true,
            ..nothing()
        },
        ContextUse {
            pass_all: true,
            ..nothing()
        },
        ContextUse {
            set_identity: true,
            ..nothing()
        },
        ContextUse {
            set_all: true,
            ..nothing()
        },
    ]
    .map(|context| open(&mut w, "A", false, context));
    // For each of the five: 0 or the reason.
    let table = [
        (Context::Default, [0, 0, 0, 0, 0]),
        (Context::None, [0, 0, 0, 0, 0]),
        (Context::PassIdentity(reader), [2094, 0, 0, 0, 0]),
        (Context::PassAll(reader), [2093, 2093, 0, 2093, 0]),
        (Context::SetIdentity, [2096, 2096, 2096, 0, 0]),
        (Context::SetAll, [2095, 2095, 2095, 2095, 0]),
    ];
    for (context, reasons) in table {
        for (handle, reason) in opened.into_iter().zip(reasons) {
            let answer = ask(
                &mut w,
                Request::Put(Box::new(through(handle, context, "me"))),
            );
            let told = answer.err().map_or(0, |failure| failure.reason.get());
            assert_eq!(told, reason, "{context:?} through {handle:?}");
        }
    }
}

#[test]
fn a_context_is_left_set_or_passed_on_as_asked() {
    let mut w = World::new();
    let mut first = put("B", "read");
    with_context(&mut first.descriptor, "first");
    first.context = Context::SetAll;
    w.put(first);
    let save = ContextUse {
        save_all: true,
        ..nothing()
    };
    let reader = open(&mut w, "B", true, save);
    ask(&mut w, Request::Get(Get::of(Source::Handle(reader)))).unwrap();
    let all = ContextUse {
        set_all: true,
        ..nothing()
    };
    let writer = open(&mut w, "A", false, all);
    let (mine, my_origin) = ("me/2/me data", "6/me appl/orig");
    let (its, its_origin) = ("first/5/first data", "6/first appl/orig");
    let table = [
        (Context::Default, mine, my_origin),
        (Context::None, "/0/", "0//"),
        (Context::PassIdentity(reader), its, my_origin),
        (Context::PassAll(reader), its, its_origin),
        (Context::SetIdentity, mine, my_origin),
        (Context::SetAll, mine, my_origin),
    ];
    for (context, identity, origin) in table {
        let p = through(writer, context, "me");
        ask(&mut w, Request::Put(Box::new(p))).unwrap();
        let (is, comes_from) = context_of(&mut w, "A");
        assert_eq!(
            (is.as_str(), comes_from.as_str()),
            (identity, origin),
            "{context:?}"
        );
    }
}

#[test]
fn a_context_is_passed_on_only_from_a_handle_that_keeps_one() {
    let mut w = World::new();
    let writer = open(
        &mut w,
        "A",
        false,
        ContextUse {
            pass_all: true,
            ..nothing()
        },
    );
    let keeps_none = open(&mut w, "B", true, nothing());
    let keeps = open(
        &mut w,
        "B",
        true,
        ContextUse {
            save_all: true,
            ..nothing()
        },
    );
    w.put(put("B", "1"));
    w.put(put("B", "2"));
    for (from, reason) in [
        (HandleId(999), ReasonCode::CONTEXT_HANDLE_ERROR),
        (keeps_none, ReasonCode::CONTEXT_HANDLE_ERROR),
        (writer, ReasonCode::CONTEXT_HANDLE_ERROR),
        (keeps, ReasonCode::CONTEXT_NOT_AVAILABLE),
    ] {
        let p = through(writer, Context::PassAll(from), "me");
        assert_eq!(refused(&mut w, p), reason, "{from:?}");
    }
    // MQPUT1 is its own open, and its handle must keep a context all the same.
    let mut by_name = put("A", "x");
    by_name.context = Context::PassIdentity(keeps);
    assert_eq!(
        refused(&mut w, by_name.clone()),
        ReasonCode::CONTEXT_NOT_AVAILABLE
    );
    ask(&mut w, Request::Get(Get::of(Source::Handle(keeps)))).unwrap();
    ask(&mut w, Request::Put(Box::new(by_name))).unwrap();
}

#[test]
fn context_options_that_do_not_fit_the_use_of_a_queue_are_refused() {
    let mut w = World::new();
    let pass = ContextUse {
        pass_identity: true,
        ..nothing()
    };
    let save = ContextUse {
        save_all: true,
        ..nothing()
    };
    for (input, context) in [(None, save), (Some(InputUse::Shared), pass)] {
        let options = OpenOptions {
            input,
            output: input.is_none(),
            context,
            ..OpenOptions::default()
        };
        let name = ObjectName::local(queue_name("A"));
        let refusal = w.refusal(
            C1,
            Request::Open {
                name,
                options,
                selector: None,
                dynamic_name: None,
            },
        );
        assert_eq!(refusal, ReasonCode::OPTIONS_ERROR);
    }
}

#[test]
fn a_correlation_id_is_generated_when_asked_for() {
    let mut w = World::new();
    let mut p = put("A", "x");
    p.options.new_correlation_id = true;
    let (_, one) = w.put(p.clone());
    let (_, two) = w.put(p.clone());
    assert!(!one.correlation_id.is_none());
    assert_ne!(one.correlation_id, two.correlation_id);
    assert_ne!(one.correlation_id.as_bytes(), one.message_id.as_bytes());
    let (_, got) = w.get(get("A"));
    assert_eq!(got.message.descriptor.correlation_id, one.correlation_id);
    // A repeated put could not be told the same one again.
    p.token = Some(UnitOfWorkId::new([9; 16]));
    assert_eq!(w.put_refused(p), ReasonCode::OPTIONS_ERROR);
}

#[test]
fn segments_and_flags_that_are_not_known_are_refused() {
    let mut w = World::new();
    let table = [
        (0, 0),
        // MQMF_SEGMENTATION_ALLOWED allows what never happens.
        (1, 0),
        (2, 2443),
        (4, 2443),
        (0x20, 2249),
        (0x800, 2249),
        // These may be ignored.
        (0x1000, 0),
        (0x10_0000, 0),
    ];
    for (flags, reason) in table {
        let mut p = put("A", "x");
        p.descriptor.message_flags = flags;
        let answer = ask(&mut w, Request::Put(Box::new(p)));
        let told = answer.err().map_or(0, |failure| failure.reason.get());
        assert_eq!(told, reason, "{flags:x}");
    }
}

#[test]
fn a_priority_above_the_highest_is_answered_with_a_warning() {
    let mut w = World::new();
    let mut p = put("A", "x");
    p.options.priority_exceeds_maximum = true;
    assert_eq!(w.put(p).1.warning, ReasonCode::PRIORITY_EXCEEDS_MAXIMUM);
    assert_eq!(w.put(put("A", "y")).1.warning, ReasonCode::NONE);
}

#[test]
fn a_queue_manager_that_quiesces_refuses_who_asked_for_it_and_serves_the_others() {
    let mut w = World::new();
    w.put(put("A", "1"));
    w.put(put("A", "2"));
    let waits = |fail_if_quiescing| {
        Request::Get(Get {
            wait_until: Some(Timestamp::from_millis(u64::MAX)),
            fail_if_quiescing,
            ..get("B")
        })
    };
    let asked = w.ask(C1, waits(true));
    let goes_on = w.ask(C2, waits(false));
    w.input(Input::Quiesced);
    assert_eq!(told(&w, asked), Some(ReasonCode::Q_MGR_QUIESCING));
    assert_eq!(told(&w, goes_on), None);
    let calls = |fail_if_quiescing| {
        let options = OpenOptions {
            browse: true,
            fail_if_quiescing,
            ..OpenOptions::default()
        };
        let name = ObjectName::local(queue_name("A"));
        let p = Put {
            options: PutOptions {
                fail_if_quiescing,
                ..PutOptions::default()
            },
            ..put("A", "x")
        };
        let first = BrowseStep::First(queue_name("A"));
        [
            Request::Put(Box::new(p)),
            Request::Get(Get {
                fail_if_quiescing,
                ..get("A")
            }),
            Request::Browse(Browse {
                fail_if_quiescing,
                ..Browse::of(first)
            }),
            Request::Open {
                name,
                options,
                selector: None,
                dynamic_name: None,
            },
        ]
    };
    for request in calls(true) {
        assert_eq!(w.refusal(C1, request), ReasonCode::Q_MGR_QUIESCING);
    }
    for request in calls(false) {
        ask(&mut w, request).unwrap();
    }
    // What was begun can end, and who waits without the option is served.
    w.begin(C1, UnitOfWorkId::new([5; 16]));
    w.commit(C1, UnitOfWorkId::new([5; 16]));
    w.put(put("B", "late"));
    assert!(w.got(goes_on).is_some());
    w.pass(Duration::from_millis(1));
}
