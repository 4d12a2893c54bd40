//! Gets of many, and settling what they locked.

use std::time::Duration;

use ferrymq_types::{Position, ReasonCode, Sequence, UnitOfWorkId, UnitOfWorkOutcome};

use super::harness::{C1, C2, World, get, put, put_np, unit};
use crate::{Got, Many, Put, Reply, Request, Settlement};

fn many(queue: &str, messages_max: u32, of: Option<UnitOfWorkId>) -> Request {
    Request::Get(crate::Get {
        syncpoint: of,
        many: Some(Many {
            messages_max,
            bytes_max: 1000,
        }),
        ..get(queue)
    })
}

fn texts(reply: Reply) -> Vec<String> {
    got_many(reply)
        .into_iter()
        .map(|got| String::from_utf8_lossy(&got.message.body).into_owned())
        .collect()
}

fn got_many(reply: Reply) -> Vec<Got> {
    let Reply::GotMany(got) = reply else {
        panic!("{reply:?}")
    };
    got
}

fn settle(of: u8, messages: &[Sequence], settlement: Settlement) -> Request {
    Request::Settle {
        of: unit(of),
        messages: messages.to_vec(),
        settlement,
    }
}

/// A world in which unit of work 1 has locked the messages a, b, c of queue A.
fn three_locked() -> (World, Vec<Sequence>) {
    let mut w = World::new();
    for text in ["a", "b", "c"] {
        w.put(put("A", text));
    }
    w.begin(C1, unit(1));
    let (_, reply) = w.answer(C1, many("A", 10, Some(unit(1))));
    let sequences = got_many(reply.unwrap())
        .iter()
        .map(|g| g.sequence)
        .collect();
    (w, sequences)
}

#[test]
fn a_get_of_many_takes_what_is_there_up_to_its_limits() {
    let mut w = World::new();
    for text in ["a", "b", "c"] {
        w.put(put("A", text));
    }
    w.put(put("A", &"d".repeat(1000)));
    w.put(put("A", "e"));
    let mut next = |n| w.answer(C1, many("A", n, None)).1.map(texts);
    assert_eq!(next(2).unwrap(), ["a", "b"]);
    // The one that crosses the bytes is the last.
    assert_eq!(next(10).unwrap(), ["c".to_owned(), "d".repeat(1000)]);
    assert_eq!(next(10).unwrap(), ["e"]);
    assert_eq!(next(10).unwrap_err().reason, ReasonCode::NO_MSG_AVAILABLE);
}

#[test]
fn a_get_of_many_waits_for_the_first_only() {
    let mut w = World::new();
    let Request::Get(wanted) = many("A", 2, None) else {
        unreachable!("it is a get")
    };
    let id = w.ask(
        C1,
        Request::Get(crate::Get {
            wait_until: w.until(Duration::from_secs(1)),
            ..wanted
        }),
    );
    w.put(put("A", "a"));
    w.put(put("A", "b"));
    assert_eq!(
        w.replies.remove(&id).map(|(_, r)| texts(r.unwrap())),
        Some(vec!["a".to_owned()])
    );
    assert_eq!(w.get_text("A"), "b");
}

#[test]
fn what_is_put_together_reaches_a_getter_of_many_together() {
    let mut w = World::new();
    let Request::Get(wanted) = many("A", 10, None) else {
        unreachable!("it is a get")
    };
    let getting = w.ask(
        C1,
        Request::Get(crate::Get {
            wait_until: w.until(Duration::from_secs(1)),
            ..wanted
        }),
    );
    let puts = ["a", "b", "c"].map(|text| {
        w.next_request += 1;
        (
            crate::RequestId(w.next_request),
            Request::Put(Box::new(put("A", text))),
        )
    });
    w.input(crate::Input::Requests {
        connection: C2,
        requests: puts.into(),
    });
    let (_, got) = w.replies.remove(&getting).unwrap();
    assert_eq!(texts(got.unwrap()), ["a", "b", "c"]);
}

#[test]
fn u7_a_get_of_many_waits_for_the_latest_of_what_it_shows() {
    let mut w = World::new();
    w.put(put_np("A", "np"));
    let (durable, _) = w.put(put("A", "p"));
    w.begin(C1, unit(1));
    let (after, _) = w.answer(C1, many("A", 2, Some(unit(1))));
    assert_eq!(after, durable);
    assert_ne!(durable, Position::ZERO);
}

#[test]
fn each_message_is_settled_by_itself() {
    let (mut w, messages) = three_locked();
    let before = w.rows.position;
    let after = w.done(C1, settle(1, &messages[1..2], Settlement::Commit(None)));
    assert_eq!(after, before.next());
    assert_eq!(w.depth("A"), 2);
    w.done(C1, settle(1, &messages[..1], Settlement::BackOut(None)));
    let (_, got) = w.get(get("A"));
    assert_eq!((&got.message.body[..], got.backout_count), (&b"a"[..], 1));
    // The third is backed out with the connection.
    w.disconnect(C1);
    assert_eq!(w.get_text("A"), "c");
    assert_eq!(w.engine.open_units_of_work(), 0);
}

#[test]
fn a_settlement_is_all_or_nothing() {
    let (mut w, messages) = three_locked();
    let commit = |m: &[Sequence]| settle(1, m, Settlement::Commit(None));
    w.done(C1, commit(&messages[..1]));
    assert_eq!(
        w.refusal(C1, commit(&messages)),
        ReasonCode::NO_MSG_UNDER_CURSOR
    );
    assert_eq!(w.depth("A"), 2);
    assert_eq!(
        w.refusal(C2, commit(&messages[1..])),
        ReasonCode::UOW_NOT_AVAILABLE
    );
    w.done(C1, commit(&messages[1..]));
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn inv_i1_a_settlement_with_an_id_can_be_asked_for_and_repeated() {
    let (mut w, messages) = three_locked();
    let commit = settle(1, &messages[..2], Settlement::Commit(Some(unit(2))));
    let after = w.done(C1, commit.clone());
    assert_eq!(w.done(C1, commit), after);
    assert_eq!(w.depth("A"), 1);
    w.crash();
    let asked = w.answer(C2, Request::GetUnitOfWork { id: unit(2) }).1;
    assert!(
        matches!(asked, Ok(Reply::UnitOfWork(Some(row))) if row.outcome == UnitOfWorkOutcome::Committed)
    );
}

#[test]
fn a2_messages_join_a_unit_of_work_and_end_with_it() {
    let (mut w, messages) = three_locked();
    w.begin(C1, unit(2));
    w.put(Put {
        syncpoint: Some(unit(2)),
        ..put("B", "made of a")
    });
    w.done(C1, settle(1, &messages[..1], Settlement::Join(unit(2))));
    let before = w.rows.position;
    assert_eq!(w.commit(C1, unit(2)), before.next());
    assert_eq!((w.depth("A"), w.depth("B")), (2, 1));
    w.back_out(C1, unit(1));
    assert_eq!((w.get_text("A"), w.get_text("A")), ("b".into(), "c".into()));
    let again = settle(1, &messages[1..], Settlement::Join(unit(2)));
    assert_eq!(w.refusal(C1, again), ReasonCode::UOW_NOT_AVAILABLE);
}
