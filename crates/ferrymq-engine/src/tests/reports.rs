//! Report messages: who gets one, when, with what in it.

use std::time::Duration;

use ferrymq_types::{
    AccountReason, CorrelationId, DeadLetterHeader, Message, MessageDescriptor, MessageType,
    Persistence, Priority, ReasonCode, ReportOptions,
};

use super::harness::{C1, C2, World, get, named, put, put_np, unit};
use crate::{Event, Get, Put, Request, Settlement};

const COA: u32 = 0x100;
const COD: u32 = 0x800;
const EXPIRATION: u32 = 0x0020_0000;
const WITH_DATA: u32 = 3;
const WITH_FULL_DATA: u32 = 7;
const PASS_CORREL_ID: u32 = 0x40;
const PASS_MSG_ID: u32 = 0x80;
const PASS_DISCARD_AND_EXPIRY: u32 = 0x4000;
const DISCARD_MSG: u32 = 0x0800_0000;

/// A put to A that asks for reports on B.
fn asking(report: u32, body: &str) -> Put {
    let mut p = put("A", body);
    p.descriptor.report = ReportOptions::from_bits(report);
    p.descriptor.reply_to_queue = "B".into();
    p.descriptor.format = "MQSTR".into();
    p
}

fn report(w: &mut World) -> Message {
    let (_, got) = w.get(get("B"));
    (*got.message).clone()
}

#[test]
fn report_coa_comes_with_the_put_in_one_write_set() {
    let mut w = World::new();
    let before = w.rows.position;
    let (after, done) = w.put(asking(COA, "x"));
    assert_eq!(after, before.next());
    assert_eq!((w.depth("A"), w.depth("B")), (1, 1));
    let r = report(&mut w);
    assert_eq!(r.descriptor.message_type, MessageType::REPORT);
    assert_eq!(r.descriptor.feedback, MessageDescriptor::FEEDBACK_COA);
    assert_eq!(
        r.descriptor.correlation_id,
        CorrelationId::new(*done.message_id.as_bytes())
    );
    assert_ne!(r.descriptor.message_id, done.message_id);
    assert_eq!(r.descriptor.persistence, Persistence::Persistent);
    assert_eq!(r.descriptor.report, ReportOptions::NONE);
    assert!(r.body.is_empty() && r.descriptor.expires_at.is_none());
}

#[test]
fn report_coa_of_a_put_in_a_unit_of_work_comes_with_its_commit_or_never() {
    let mut w = World::new();
    for commits in [true, false] {
        w.begin(C1, unit(1 + u8::from(commits)));
        w.put(Put {
            syncpoint: Some(unit(1 + u8::from(commits))),
            ..asking(COA, "x")
        });
        assert!(w.is_empty("B"));
        if commits {
            w.commit(C1, unit(2));
            report(&mut w);
        } else {
            w.back_out(C1, unit(1));
        }
        assert!(w.is_empty("B"));
    }
}

#[test]
fn report_cod_comes_with_the_get_and_shares_its_fate() {
    let mut w = World::new();
    w.put(asking(COD, "x"));
    // Looking is no delivery.
    assert_eq!(w.browse_texts("A"), ["x"]);
    assert!(w.is_empty("B"));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    assert!(w.is_empty("B"));
    w.back_out(C1, unit(1));
    assert_eq!((w.depth("A"), w.depth("B")), (1, 0));
    w.begin(C1, unit(2));
    w.get_in("A", unit(2));
    let before = w.rows.position;
    assert_eq!(w.commit(C1, unit(2)), before.next(), "one write set");
    assert_eq!(
        report(&mut w).descriptor.feedback,
        MessageDescriptor::FEEDBACK_COD
    );
    // Outside a unit of work too.
    w.put(asking(COD, "y"));
    let before = w.rows.position;
    let (after, _) = w.get(get("A"));
    assert_eq!(after, before.next());
    report(&mut w);
    assert_eq!(w.engine.unit_of_work_bytes(), 0);
    assert_eq!(w.engine.open_units_of_work(), 0);
}

#[test]
fn report_cod_goes_with_a_message_that_is_settled() {
    let mut w = World::new();
    let settle = |w: &mut World, settlement| {
        let sequence = w.get_in("A", unit(1)).1.sequence;
        w.done(
            C1,
            Request::Settle {
                of: unit(1),
                messages: vec![sequence],
                settlement,
            },
        );
    };
    w.put(asking(COD, "x"));
    w.begin(C1, unit(1));
    settle(&mut w, Settlement::BackOut(None));
    assert!(w.is_empty("B"));
    settle(&mut w, Settlement::Commit(None));
    report(&mut w);
    assert!(w.is_empty("B"));
    w.back_out(C1, unit(1));
    assert_eq!(w.engine.unit_of_work_bytes(), 0);
}

#[test]
fn report_expiration_comes_when_a_message_expires_in_memory_or_on_disk() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        let mut p = asking(EXPIRATION * WITH_FULL_DATA, "x");
        p.descriptor.expires_at = w.until(Duration::from_secs(1));
        w.put(p);
        w.pass(Duration::from_secs(100));
        assert!(w.is_empty("A"));
        let r = report(&mut w);
        assert_eq!(
            r.descriptor.feedback,
            MessageDescriptor::FEEDBACK_EXPIRATION
        );
        assert_eq!(
            (&r.body[..], r.descriptor.format.as_str()),
            (&b"x"[..], "MQSTR")
        );
        assert_eq!(w.depth("A"), 0);
        assert!(w.has_event(
            |e| matches!(e, Event::Accounted(entry) if entry.reason == AccountReason::Expired)
        ));
    }
}

#[test]
fn report_data_is_none_a_hundred_bytes_or_all() {
    let long = "0123456789".repeat(20);
    for (factor, length) in [(1, 0), (WITH_DATA, 100), (WITH_FULL_DATA, 200)] {
        for kind in [COA, COD] {
            let mut w = World::new();
            w.put(asking(kind * factor, &long));
            w.get(get("A"));
            let r = report(&mut w);
            assert_eq!(r.body, long.as_bytes()[..length], "{kind:x} {factor}");
            assert_eq!(r.descriptor.format.is_empty(), length == 0);
        }
    }
}

#[test]
fn report_ids_expiry_and_disposition_are_passed_if_asked() {
    let mut w = World::new();
    let mut p = asking(
        COA | PASS_CORREL_ID | PASS_MSG_ID | PASS_DISCARD_AND_EXPIRY | DISCARD_MSG,
        "x",
    );
    p.descriptor.correlation_id = super::harness::correlation(7);
    p.descriptor.expires_at = w.until(Duration::from_secs(9));
    p.priority = Priority::new(6);
    let expires_at = p.descriptor.expires_at;
    let (_, done) = w.put(p);
    let r = report(&mut w);
    assert_eq!(r.descriptor.message_id, done.message_id);
    assert_eq!(r.descriptor.correlation_id, super::harness::correlation(7));
    assert_eq!(r.descriptor.expires_at, expires_at);
    assert_eq!(r.descriptor.report.bits(), DISCARD_MSG);
    assert_eq!(r.descriptor.priority.get(), 6);
}

#[test]
fn report_options_that_contradict_are_2061_and_without_a_reply_to_queue_2027() {
    let mut w = World::new();
    for kind in [COA, COD, EXPIRATION, 0x0100_0000] {
        for wrong in [2, 4, 5, 6] {
            assert_eq!(
                w.put_refused(asking(kind * wrong, "x")),
                ReasonCode::REPORT_OPTIONS_ERROR,
                "{kind:x} {wrong}"
            );
        }
        let mut nowhere = asking(kind, "x");
        nowhere.descriptor.reply_to_queue.clear();
        assert_eq!(w.put_refused(nowhere), ReasonCode::MISSING_REPLY_TO_Q);
    }
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn a_report_that_cannot_be_put_is_dead_lettered_or_accounted_for() {
    let mut w = World::new();
    let mut p = asking(COA, "x");
    p.descriptor.reply_to_queue = "NONE".into();
    w.put(p.clone());
    let (_, got) = w.get(get("DLQ"));
    let header = DeadLetterHeader::read(&got.message.header).unwrap();
    assert_eq!(header.reason, ReasonCode::UNKNOWN_OBJECT_NAME);
    assert_eq!(
        got.message.descriptor.feedback,
        MessageDescriptor::FEEDBACK_COA
    );
    w.alter(|qmgr| qmgr.attributes.dead_letter_queue_name = None);
    w.put(p);
    assert!(w.has_event(|e| matches!(
        e,
        Event::Accounted(entry)
            if entry.reason == AccountReason::Discarded(ReasonCode::UNKNOWN_OBJECT_NAME)
                && entry.from.as_str() == "NONE"
    )));
    assert_eq!(w.depth("A"), 2, "the message itself is put");
}

#[test]
fn nothing_arrives_on_a_transmission_queue_nor_on_the_dead_letter_queue() {
    let mut w = World::new();
    let mut remote = asking(COA | COD, "x");
    remote.object = named("R");
    w.put(remote);
    let mut dead = asking(COA | COD, "x");
    dead.object = named("DLQ");
    w.put(dead);
    w.get(get("DLQ"));
    assert!(w.is_empty("B"));
}

#[test]
fn reports_of_non_persistent_messages_are_and_stay_so() {
    let mut w = World::new();
    let p = Put {
        persistence: put_np("A", "").persistence,
        ..asking(COA | COD, "x")
    };
    w.put(p);
    w.get(get("A"));
    assert_eq!(w.depth("B"), 2);
    assert!(w.journal.is_empty());
    for _ in 0..2 {
        assert_eq!(
            report(&mut w).descriptor.persistence,
            Persistence::NonPersistent
        );
    }
}

#[test]
fn u2_reports_survive_a_crash_with_what_they_report() {
    let mut w = World::new();
    w.put(asking(COA | COD, "x"));
    w.begin(C2, unit(1));
    w.answer(
        C2,
        Request::Get(Get {
            syncpoint: Some(unit(1)),
            ..get("A")
        }),
    )
    .1
    .unwrap();
    w.crash();
    // The get was not committed: neither is its report.
    assert_eq!((w.depth("A"), w.depth("B")), (1, 1));
    w.get(get("A"));
    w.crash();
    assert_eq!((w.depth("A"), w.depth("B")), (0, 2));
}

#[test]
fn u20_a_report_that_does_not_fit_beside_its_message_has_no_data() {
    let mut w = World::with(
        super::harness::definitions(),
        crate::Limits {
            write_set_bytes_max: 100_000,
            ..crate::Limits::default()
        },
    );
    w.put(asking((COA | COD) * WITH_FULL_DATA, &"x".repeat(60_000)));
    assert!(report(&mut w).body.is_empty(), "both are in one write set");
    w.get(get("A"));
    assert_eq!(report(&mut w).body.len(), 60_000, "it is alone");
}

#[test]
fn u20_reports_count_in_the_size_of_a_unit_of_work_also_when_they_join_one() {
    let mut w = World::with(
        super::harness::definitions(),
        crate::Limits {
            write_set_bytes_max: 100_000,
            ..crate::Limits::default()
        },
    );
    for _ in 0..4 {
        w.put(asking(COD * WITH_FULL_DATA, &"x".repeat(30_000)));
    }
    let mut locked = Vec::new();
    for n in [1, 2] {
        w.begin(C1, unit(n));
        for _ in 0..2 {
            locked.push(w.get_in("A", unit(n)).1.sequence);
        }
    }
    let join = Request::Settle {
        of: unit(1),
        messages: locked[..2].to_vec(),
        settlement: Settlement::Join(unit(2)),
    };
    assert_eq!(w.refusal(C1, join), ReasonCode::SYNCPOINT_LIMIT_REACHED);
    w.commit(C1, unit(1));
    w.commit(C1, unit(2));
    assert_eq!(w.depth("B"), 4);
}

#[test]
fn report_expiration_of_a_message_on_its_way_has_the_applications_data() {
    let mut w = World::new();
    let mut p = asking(EXPIRATION * WITH_FULL_DATA, "x");
    p.object = named("R");
    p.descriptor.expires_at = w.until(Duration::from_secs(1));
    w.put(p);
    w.pass(Duration::from_secs(100));
    let r = report(&mut w);
    assert_eq!((&r.body[..], r.header.len()), (&b"x"[..], 0));
    assert_eq!(r.descriptor.format, "MQSTR");
}
