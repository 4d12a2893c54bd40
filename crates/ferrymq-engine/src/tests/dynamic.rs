//! Dynamic queues: their names, how they end, and what survives.

use std::collections::BTreeSet;
use std::time::Duration;

use ferrymq_objects::{
    Attributes, DefinitionType, DeliverySequence, ModelQueue, Queue, QueueManager,
};
use ferrymq_types::{AccountReason, AttributeValue, ObjectId, Position, ReasonCode};

use super::harness::{C1, C2, World, definitions, get, local, put, put_np, queue_name, unit};
use crate::{
    CloseOption, ConnectionId, Event, Get, HandleId, InputUse, Limits, ObjectName, OpenOptions,
    Opened, Put, Reply, Request, Source,
};

const BOTH: OpenOptions = OpenOptions {
    input: Some(InputUse::AsQueueDefined),
    browse: false,
    output: true,
    inquire: false,
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

const OUTPUT: OpenOptions = OpenOptions {
    input: None,
    ..BOTH
};

fn add(qmgr: &mut QueueManager, queue: Queue) {
    qmgr.queues.insert(queue.base().name.clone(), queue);
}

/// Beside the usual ones: models `TEMP` and `PERM`, whose queues are shared, and `PERM.FIFO`.
pub(super) fn with_models() -> QueueManager {
    let mut qmgr = definitions();
    for (id, name, definition_type) in [
        (20, "TEMP", DefinitionType::TemporaryDynamic),
        (21, "PERM", DefinitionType::PermanentDynamic),
        (22, "PERM.FIFO", DefinitionType::PermanentDynamic),
    ] {
        let mut model = ModelQueue::with_defaults(queue_name(name));
        model.template.base.id = ObjectId::new(id);
        model.template.definition_type = definition_type;
        model.template.share = true;
        model.template.default_input_use = ferrymq_objects::DefaultInputUse::Shared;
        if name == "PERM.FIFO" {
            model.template.delivery_sequence = DeliverySequence::Fifo;
        }
        add(&mut qmgr, Queue::Model(model));
    }
    qmgr
}

fn world() -> World {
    World::with(with_models(), Limits::default())
}

fn open(model: &str, name: &str, options: OpenOptions) -> Request {
    Request::Open {
        selector: None,
        name: ObjectName::local(queue_name(model)),
        options,
        dynamic_name: Some(name.to_owned()),
    }
}

fn opened(w: &mut World, connection: ConnectionId, request: Request) -> (Position, Opened) {
    match w.answer(connection, request) {
        (after, Ok(Reply::Opened(opened))) => (after, opened),
        (_, other) => panic!("{other:?}"),
    }
}

/// Opens and has the handle and the name.
fn made(w: &mut World, connection: ConnectionId, model: &str, name: &str) -> (HandleId, String) {
    let (_, opened) = opened(w, connection, open(model, name, BOTH));
    (opened.handle, opened.resolved_queue)
}

fn close(handle: HandleId, option: CloseOption) -> Request {
    Request::Close { handle, option }
}

fn put_through(handle: HandleId, put: Put) -> Request {
    Request::Put(Box::new(Put {
        object: crate::Object::Handle(handle),
        ..put
    }))
}

fn get_through(handle: HandleId) -> Get {
    Get {
        source: Source::Handle(handle),
        ..get("ANY")
    }
}

fn is_known(w: &World, name: &str) -> bool {
    w.engine.queue_id(&queue_name(name)).is_some()
}

#[test]
fn a_dynamic_queue_is_called_as_asked() {
    let long = "A".repeat(32);
    let check = |asked: &str, expected: Result<&str, ReasonCode>| {
        let mut w = world();
        let answer = w.answer(C1, open("TEMP", asked, BOTH)).1;
        match (answer, expected) {
            (Ok(Reply::Opened(opened)), Ok(prefix)) => {
                let name = opened.resolved_queue;
                let rest = name.strip_prefix(prefix).unwrap();
                assert!([0, 16].contains(&rest.len()), "{asked}: {name}");
                assert_eq!(rest.is_empty(), !asked.is_empty() && !asked.ends_with('*'));
                assert!(is_known(&w, &name));
            }
            (Err(failure), Err(reason)) => assert_eq!(failure.reason, reason, "{asked}"),
            (answer, _) => panic!("{asked}: {answer:?}"),
        }
    };
    let bad = Err(ReasonCode::DYNAMIC_Q_NAME_ERROR);
    let taken = Err(ReasonCode::OBJECT_ALREADY_EXISTS);
    check("", Ok("AMQ."));
    check("AMQ.*", Ok("AMQ."));
    check("*", Ok(""));
    check("REPLIES", Ok("REPLIES"));
    check("my/replies.*", Ok("my/replies."));
    check(&format!("{long}*"), Ok(&long));
    check(&format!("{long}A*"), bad);
    check("A*B", bad);
    check("*A", bad);
    check("A**", bad);
    check("A B", bad);
    check(" ", bad);
    check("A\u{e9}*", bad);
    check(&"A".repeat(49), bad);
    check("A", taken);
    check("AL", taken);
    check("R", taken);
    check("TEMP", taken);
}

#[test]
fn generated_names_differ_also_after_a_crash() {
    let mut w = world();
    let mut names = BTreeSet::new();
    for _ in 0..3 {
        for _ in 0..10 {
            let (_, name) = made(&mut w, C1, "TEMP", "");
            assert!(names.insert(name), "a name comes once");
        }
        w.crash();
    }
}

#[test]
fn ids_of_dynamic_queues_are_none_that_commands_give_and_come_once() {
    let mut w = world();
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        for model in ["TEMP", "PERM"] {
            let (handle, name) = made(&mut w, C1, model, "");
            let id = w.engine.queue_id(&queue_name(&name)).unwrap();
            assert!(id.get() > u64::MAX / 2);
            assert!(ids.insert(id));
            w.done(C1, close(handle, CloseOption::None));
        }
        w.crash();
    }
}

/// What there is before a close.
#[derive(Debug, Clone, Copy, PartialEq)]
enum On {
    Nothing,
    Message,
    UncommittedPut,
    UncommittedGet,
}

#[test]
fn a_close_deletes_what_its_option_says() {
    use CloseOption::{Delete, DeletePurge, None as Keep};
    use On::{Message, Nothing, UncommittedGet, UncommittedPut};

    // Model, whether the handle made the queue, what is on it, option; the reason, or whether the queue is there afterwards.
    let stays = Ok(true);
    let goes = Ok(false);
    let not_empty = Err(ReasonCode::Q_NOT_EMPTY);
    let not_valid = Err(ReasonCode::OPTION_NOT_VALID_FOR_TYPE);
    let table = [
        ("A", false, Nothing, Keep, stays),
        ("A", false, Nothing, Delete, not_valid),
        ("A", false, Nothing, DeletePurge, not_valid),
        ("TEMP", true, Nothing, Keep, goes),
        ("TEMP", true, Nothing, Delete, goes),
        ("TEMP", true, Nothing, DeletePurge, goes),
        ("TEMP", true, Message, Keep, goes),
        ("TEMP", true, Message, Delete, goes),
        ("TEMP", true, UncommittedPut, Keep, goes),
        ("TEMP", true, UncommittedGet, Keep, goes),
        ("TEMP", false, Nothing, Keep, stays),
        ("TEMP", false, Message, Keep, stays),
        ("TEMP", false, Nothing, Delete, not_valid),
        ("TEMP", false, Nothing, DeletePurge, not_valid),
        ("PERM", true, Nothing, Keep, stays),
        ("PERM", true, Message, Keep, stays),
        ("PERM", true, UncommittedPut, Keep, stays),
        ("PERM", true, Nothing, Delete, goes),
        ("PERM", true, Message, Delete, not_empty),
        ("PERM", true, UncommittedPut, Delete, not_empty),
        ("PERM", true, UncommittedGet, Delete, not_empty),
        ("PERM", true, Nothing, DeletePurge, goes),
        ("PERM", true, Message, DeletePurge, goes),
        ("PERM", true, UncommittedPut, DeletePurge, not_empty),
        ("PERM", true, UncommittedGet, DeletePurge, not_empty),
        ("PERM", false, Nothing, Delete, goes),
        ("PERM", false, Message, Delete, not_empty),
        ("PERM", false, Message, DeletePurge, goes),
    ];
    for (model, own, on, option, expected) in table {
        let case = format!("{model} own={own} {on:?} {option:?}");
        let mut w = world();
        let (creator, name) = made(&mut w, C1, model, "");
        let handle = if own || model == "A" {
            creator
        } else {
            opened(&mut w, C1, open(&name, "", BOTH)).1.handle
        };
        let message = put_np(&name, "x");
        match on {
            Nothing => {}
            Message => drop(w.put(message.clone())),
            UncommittedPut | UncommittedGet => w.begin(C2, unit(1)),
        }
        if on == UncommittedPut {
            let put = Put {
                syncpoint: Some(unit(1)),
                ..message
            };
            w.done_put(C2, Request::Put(Box::new(put)));
        } else if on == UncommittedGet {
            w.put(message);
            let get = Get {
                syncpoint: Some(unit(1)),
                ..get(&name)
            };
            let reply = w.answer(C2, Request::Get(get)).1;
            assert!(matches!(reply, Ok(Reply::Got(_))), "{case}");
        }
        match (w.answer(C1, close(handle, option)).1, expected) {
            (Ok(Reply::Closed { .. }), Ok(there)) => {
                assert_eq!(is_known(&w, &name), there, "{case}");
                let again = w.refusal(C1, close(handle, option));
                assert_eq!(again, ReasonCode::HOBJ_ERROR, "{case}");
            }
            (Err(failure), Err(reason)) => {
                assert_eq!(failure.reason, reason, "{case}");
                // Nothing happened: the handle is open.
                w.done_put(C1, put_through(handle, put_np(&name, "still open")));
                assert!(is_known(&w, &name), "{case}");
            }
            (answer, _) => panic!("{case}: {answer:?}"),
        }
    }
}

#[test]
fn a_temporary_queue_ends_with_its_connection() {
    let mut w = world();
    let (_, name) = made(&mut w, C1, "TEMP", "");
    let (_, other) = made(&mut w, C2, "TEMP", "");
    w.put(put_np(&name, "x"));
    w.disconnect(C1);
    assert!(!is_known(&w, &name));
    assert!(is_known(&w, &other));
    assert_eq!(
        w.put_refused(put_np(&name, "y")),
        ReasonCode::UNKNOWN_OBJECT_NAME
    );
    assert_eq!(w.engine.non_persistent_bytes(), 0);
}

#[test]
fn inv_v2_messages_that_a_deleted_queue_had_are_accounted_for() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "TEMP", "");
    let (_, done) = w.put(put_np(&name, "x"));
    w.done(C1, close(handle, CloseOption::None));
    let fits = |event: &Event| {
        matches!(event, Event::Accounted(entry) if entry.message_id == done.message_id
            && entry.from == queue_name(&name) && entry.reason == AccountReason::Cleared)
    };
    assert!(w.has_event(fits));
}

#[test]
fn a_temporary_queue_takes_no_persistent_message() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "TEMP", "");
    let refused = ReasonCode::PERSISTENT_NOT_ALLOWED;
    assert_eq!(w.put_refused(put(&name, "x")), refused);
    assert_eq!(w.refusal(C1, put_through(handle, put(&name, "x"))), refused);
    let (_, perm) = made(&mut w, C1, "PERM", "");
    w.put(put(&perm, "x"));
}

#[test]
fn other_handles_of_a_deleted_queue_fail_with_2052_and_can_be_closed() {
    let mut w = world();
    let (creator, name) = made(&mut w, C1, "TEMP", "");
    let (_, Opened { handle, .. }) = opened(&mut w, C2, open(&name, "", BOTH));
    let waiting = w.ask(
        C2,
        Request::Get(Get {
            wait_until: w.until(Duration::from_secs(9)),
            ..get_through(handle)
        }),
    );
    w.done(C1, close(creator, CloseOption::None));
    let (_, ended) = w.replies.get(&waiting).unwrap();
    assert_eq!(ended.clone().unwrap_err().reason, ReasonCode::Q_DELETED);
    let put = put_through(handle, put_np(&name, "x"));
    assert_eq!(w.refusal(C2, put), ReasonCode::Q_DELETED);
    let get = Request::Get(get_through(handle));
    assert_eq!(w.refusal(C2, get), ReasonCode::Q_DELETED);
    w.done(C2, close(handle, CloseOption::None));
}

#[test]
fn a_queue_that_is_made_again_under_the_name_is_another() {
    let mut w = world();
    let (creator, name) = made(&mut w, C1, "TEMP", "NAME");
    let (_, Opened { handle, .. }) = opened(&mut w, C2, open(&name, "", BOTH));
    w.done(C1, close(creator, CloseOption::None));
    made(&mut w, C1, "TEMP", "NAME");
    let put = put_through(handle, put_np(&name, "x"));
    assert_eq!(w.refusal(C2, put), ReasonCode::Q_DELETED);
    w.done(C2, close(handle, CloseOption::None));
    assert!(is_known(&w, &name));
}

#[test]
fn a_unit_of_work_over_a_queue_that_was_deleted_meanwhile_ends_well() {
    for commits in [true, false] {
        let mut w = world();
        let (creator, name) = made(&mut w, C1, "TEMP", "");
        w.put(put_np(&name, "got"));
        w.begin(C2, unit(1));
        let get = Get {
            syncpoint: Some(unit(1)),
            ..get(&name)
        };
        let reply = w.answer(C2, Request::Get(get)).1;
        assert!(matches!(reply, Ok(Reply::Got(_))));
        for queue in [name.as_str(), "A"] {
            let put = Put {
                syncpoint: Some(unit(1)),
                ..put_np(queue, "put")
            };
            w.done_put(C2, Request::Put(Box::new(put)));
        }
        w.done(C1, close(creator, CloseOption::None));
        assert!(!is_known(&w, &name));
        if commits {
            w.commit(C2, unit(1));
        } else {
            w.back_out(C2, unit(1));
        }
        // What it did to other queues counts, and nothing is left of the deleted one.
        assert_eq!(w.depth("A"), u64::from(commits));
        let left = w.engine.queues.keys().filter(|id| id.get() > u64::MAX / 2);
        assert_eq!(left.count(), 0);
        assert!(w.engine.retiring.is_empty());
    }
}

#[test]
fn a_permanent_queue_survives_a_crash_with_its_attributes_and_messages() {
    let mut w = world();
    let (
        after,
        Opened {
            resolved_queue: name,
            ..
        },
    ) = opened(&mut w, C1, open("PERM.FIFO", "KEPT.*", BOTH));
    assert_eq!(after, w.rows.position, "u7: the answer waits for the queue");
    for (priority, body) in [(1, "first"), (9, "second")] {
        w.put(Put {
            priority: ferrymq_types::Priority::new(priority),
            ..put(&name, body)
        });
    }
    let (_, temporary) = made(&mut w, C1, "TEMP", "");
    w.crash();
    assert!(!is_known(&w, &temporary));
    let id = w.engine.queue_id(&queue_name(&name)).unwrap();
    let definition = w.engine.queues[&id].definition.clone().unwrap();
    assert_eq!(definition.definition_type, DefinitionType::PermanentDynamic);
    assert_eq!(definition.delivery_sequence, DeliverySequence::Fifo);
    // It no longer depends on its model.
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name("PERM.FIFO"));
    });
    assert_eq!(w.get_text(&name), "first");
    assert_eq!(w.get_text(&name), "second");
    let (_, Opened { handle, .. }) = opened(&mut w, C1, open(&name, "", BOTH));
    w.done(C1, close(handle, CloseOption::Delete));
    w.crash();
    assert!(!is_known(&w, &name));
    assert!(w.rows.queues.keys().all(|id| id.get() < u64::MAX / 2));
}

#[test]
fn a_crash_before_the_answer_leaves_the_queue_or_nothing() {
    let mut w = world();
    let before = w.rows.position;
    let (
        after,
        Opened {
            resolved_queue: name,
            ..
        },
    ) = opened(&mut w, C1, open("PERM", "", BOTH));
    assert!(after > before);
    w.crash_at(before);
    assert!(!is_known(&w, &name));
    let (
        after,
        Opened {
            resolved_queue: name,
            ..
        },
    ) = opened(&mut w, C1, open("PERM", "", BOTH));
    w.crash_at(after);
    assert!(is_known(&w, &name));
}

#[test]
fn u13_the_row_of_a_permanent_queue_can_be_applied_twice() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "PERM", "");
    w.put(put(&name, "x"));
    w.done(C1, close(handle, CloseOption::None));
    let journal = w.journal.clone();
    w.rows.replay(&journal);
    w.crash();
    assert_eq!(w.get_text(&name), "x");
}

#[test]
fn a_definition_that_comes_under_the_name_takes_it_and_the_dynamic_queue_comes_back_later() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "PERM", "NAME");
    w.put(put(&name, "dynamic"));
    w.alter(|qmgr| add(qmgr, Queue::Local(local(50, "NAME"))));
    assert_eq!(
        w.engine.queue_id(&queue_name("NAME")),
        Some(ObjectId::new(50))
    );
    let through = put_through(handle, put_np(&name, "x"));
    assert_eq!(w.refusal(C1, through), ReasonCode::Q_DELETED);
    w.is_empty("NAME");
    w.crash();
    w.is_empty("NAME");
    assert!(w.has_event(|e| matches!(e, Event::UnknownQueue { messages: 1, .. })));
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name("NAME"));
    });
    assert_eq!(w.get_text("NAME"), "dynamic");
}

#[test]
fn a_temporary_queue_whose_name_was_taken_still_ends_with_its_handle() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "TEMP", "NAME");
    w.put(put_np(&name, "dynamic"));
    w.alter(|qmgr| add(qmgr, Queue::Local(local(50, "NAME"))));
    w.done(C1, close(handle, CloseOption::None));
    assert_eq!(w.engine.non_persistent_bytes(), 0);
    w.put(put("NAME", "defined"));
    assert_eq!(w.get_text("NAME"), "defined");
}

#[test]
fn a_row_whose_definition_cannot_be_read_is_kept_and_reported() {
    let mut w = world();
    let (_, name) = made(&mut w, C1, "PERM", "");
    w.put(put(&name, "x"));
    for set in &mut w.journal {
        for change in &mut set.changes {
            if let ferrymq_types::Change::SetQueue { row, .. } = change
                && let Some(definition) = &mut row.definition
            {
                definition.push(("FROM.THE.FUTURE".to_owned(), AttributeValue::Flag(true)));
            }
        }
    }
    w.crash();
    assert!(!is_known(&w, &name));
    assert!(w.has_event(|e| matches!(e, Event::UnknownQueue { messages: 1, .. })));
    assert_eq!(w.rows.messages.len(), 1);
}

#[test]
fn the_number_of_dynamic_queues_is_bounded() {
    let limits = Limits {
        dynamic_queues_max: 2,
        ..Limits::default()
    };
    let mut w = World::with(with_models(), limits);
    let (handle, _) = made(&mut w, C1, "TEMP", "");
    made(&mut w, C1, "PERM", "");
    let refused = ReasonCode::RESOURCE_PROBLEM;
    assert_eq!(w.refusal(C1, open("TEMP", "", BOTH)), refused);
    w.done(C1, close(handle, CloseOption::None));
    made(&mut w, C1, "TEMP", "");
}

#[test]
fn what_models_cannot_be_used_for_is_refused() {
    let mut w = world();
    let not_valid = ReasonCode::OPTION_NOT_VALID_FOR_TYPE;
    assert_eq!(w.put_refused(put_np("TEMP", "x")), not_valid);
    assert_eq!(w.get_refused(get("TEMP")).1, not_valid);
    w.alter(|qmgr| {
        let mut alias = super::harness::alias(60, "OF.MODEL", "TEMP");
        alias.base.id = ObjectId::new(60);
        add(qmgr, Queue::Alias(alias));
    });
    let open = open("OF.MODEL", "", OUTPUT);
    assert_eq!(w.refusal(C1, open), ReasonCode::ALIAS_BASE_Q_TYPE_ERROR);
}

#[test]
fn no_space_for_puts_is_no_space_for_permanent_queues() {
    let mut w = world();
    w.input(crate::Input::SpaceChanged {
        puts_allowed: false,
    });
    let refused = ReasonCode::STORAGE_MEDIUM_FULL;
    assert_eq!(w.refusal(C1, open("PERM", "", BOTH)), refused);
    made(&mut w, C1, "TEMP", "");
}

#[test]
fn a_dynamic_queue_is_deleted_by_command_when_nobody_uses_it() {
    let mut w = world();
    let (handle, name) = made(&mut w, C1, "PERM", "");
    let delete = |purge| Request::CloseQueue {
        queue: queue_name(&name),
        purge,
        who: "admin".to_owned(),
    };
    w.put(put(&name, "x"));
    assert_eq!(w.refusal(C2, delete(true)), ReasonCode::OBJECT_IN_USE);
    w.done(C1, close(handle, CloseOption::None));
    assert_eq!(w.refusal(C2, delete(false)), ReasonCode::Q_NOT_EMPTY);
    w.done(C2, delete(true));
    assert!(!is_known(&w, &name));
    w.crash();
    assert!(!is_known(&w, &name));
}

#[test]
fn an_altered_permanent_queue_is_as_altered_after_a_crash() {
    let mut w = world();
    let (_, name) = made(&mut w, C1, "PERM", "");
    let attributes: Attributes = [("MAXDEPTH", AttributeValue::Number(1))]
        .into_iter()
        .collect();
    let alter = Request::AlterQueue {
        queue: queue_name(&name),
        attributes: attributes.clone(),
    };
    let after = w.done(C2, alter);
    assert_eq!(after, w.rows.position);
    w.crash();
    w.put(put(&name, "x"));
    assert_eq!(w.put_refused(put(&name, "y")), ReasonCode::Q_FULL);
    let alter = Request::AlterQueue {
        queue: queue_name("A"),
        attributes,
    };
    assert_eq!(w.refusal(C2, alter), ReasonCode::UNKNOWN_OBJECT_NAME);
}

#[test]
fn dead_letters_do_not_go_to_a_queue_that_ends_with_a_handle() {
    let mut w = world();
    made(&mut w, C1, "TEMP", "TEMPORARY");
    w.alter(|qmgr| qmgr.attributes.dead_letter_queue_name = Some(queue_name("TEMPORARY")));
    let target = w.engine.dead_letter_target(ObjectId::ZERO, 1);
    assert_eq!(target.unwrap_err(), ReasonCode::PERSISTENT_NOT_ALLOWED);
}

#[test]
fn a_permanent_queue_that_models_backout_queue_keeps_what_expired() {
    let mut w = world();
    w.alter(|qmgr| {
        if let Some(Queue::Model(model)) = qmgr.queues.get_mut(&queue_name("PERM")) {
            model.template.backout_requeue_name = Some(queue_name("A"));
        }
    });
    let id = w.engine.queue_id(&queue_name("A")).unwrap();
    assert!(w.engine.queues[&id].keeps_expired);
}
