//! Definitions that change.

use std::sync::Arc;
use std::time::Duration;

use ferrymq_objects::{DeliverySequence, Enabled, Queue};
use ferrymq_types::{ObjectId, Priority, ReasonCode};

use super::harness::{C1, C2, World, get, local, put, queue_name, unit};
use crate::{Event, Get, Input, Put, Request};

#[test]
fn u15_rows_of_an_unknown_queue_are_kept_reported_and_served_again_when_it_is_known() {
    let mut w = World::new();
    w.put(put("A", "1"));
    w.put(put("A", "2"));
    // This node restarts with an older applied index than its journal used.
    let newer = Arc::clone(&w.qmgr);
    let mut older = (*newer).clone();
    older.queues.remove(&queue_name("A"));
    w.qmgr = Arc::new(older);
    w.crash();
    let unknown = |e: &Event| {
        matches!(e, Event::UnknownQueue { queue, name, messages: 2 }
            if *queue == ObjectId::new(1) && name.as_str() == "A")
    };
    assert!(w.has_event(unknown));
    assert_eq!(w.get_refused(get("A")).1, ReasonCode::UNKNOWN_OBJECT_NAME);
    let dump = Request::Dump {
        after: None,
        limit: 10,
    };
    assert!(matches!(w.answer(C2, dump).1, Ok(crate::Reply::Dump(items)) if items.len() == 2));
    w.qmgr = Arc::clone(&newer);
    w.input(Input::DefinitionsChanged(newer));
    assert_eq!(w.get_text("A"), "1");
    assert_eq!(w.get_text("A"), "2");
}

#[test]
fn u15_a_queue_made_anew_under_an_old_name_inherits_nothing() {
    let mut w = World::new();
    w.put(put("A", "old"));
    w.alter(|qmgr| {
        qmgr.queues
            .insert(queue_name("A"), Queue::Local(local(51, "A")));
    });
    assert!(w.has_event(|e| matches!(e, Event::UnknownQueue { messages: 1, .. })));
    assert!(w.is_empty("A"));
    w.put(put("A", "new"));
    assert_eq!(w.get_text("A"), "new");
    assert_eq!(w.rows.messages.len(), 1, "the old one is kept");
    w.crash();
    assert!(w.is_empty("A"));
}

#[test]
fn u15_a_closed_queue_goes_with_its_definition() {
    let mut w = World::new();
    w.put(put("A", "x"));
    let close = Request::CloseQueue {
        queue: queue_name("A"),
        purge: true,
        who: "operator".into(),
    };
    w.done(C1, close);
    let remove = |w: &mut World| {
        w.alter(|qmgr| {
            qmgr.queues.remove(&queue_name("A"));
        });
    };
    remove(&mut w);
    assert!(!w.rows.queues.contains_key(&ObjectId::new(1)));
    assert!(!w.has_event(|e| matches!(e, Event::UnknownQueue { .. })));
    // The same if the node was down when the deletion was applied.
    let mut w = World::new();
    w.put(put("A", "x"));
    let close = Request::CloseQueue {
        queue: queue_name("A"),
        purge: true,
        who: "operator".into(),
    };
    w.done(C1, close);
    let mut qmgr = (*w.qmgr).clone();
    qmgr.queues.remove(&queue_name("A"));
    w.qmgr = Arc::new(qmgr);
    w.crash();
    assert!(!w.rows.queues.contains_key(&ObjectId::new(1)));
}

#[test]
fn a_unit_of_work_outlives_the_definition_of_its_queue() {
    let mut w = World::new();
    w.put(put("A", "x"));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("A", "y")
    });
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name("A"));
    });
    w.commit(C1, unit(1));
    assert_eq!(w.rows.messages.len(), 1);
}

#[test]
fn waits_on_a_queue_that_is_deleted_end_with_2052() {
    let mut w = World::new();
    let wait = Get {
        wait_until: w.until(Duration::from_secs(10)),
        ..get("A")
    };
    let waiting = w.ask(C1, Request::Get(wait));
    w.alter(|qmgr| {
        qmgr.queues.remove(&queue_name("A"));
    });
    let (_, reply) = &w.replies[&waiting];
    assert_eq!(reply.as_ref().unwrap_err().reason, ReasonCode::Q_DELETED);
}

#[test]
fn a_changed_delivery_sequence_counts_for_the_messages_that_are_there() {
    let mut w = World::new();
    for (text, priority) in [("low", 1), ("high", 9), ("locked", 5)] {
        w.put(Put {
            priority: Priority::new(priority),
            ..put("A", text)
        });
    }
    w.begin(C1, unit(1));
    let high = w.get_in("A", unit(1)).1;
    assert_eq!(&high.message.body[..], b"high");
    w.alter_local("A", |q| q.delivery_sequence = DeliverySequence::Fifo);
    assert_eq!(w.browse_texts("A"), ["low", "locked"]);
    w.back_out(C1, unit(1));
    assert_eq!(w.browse_texts("A"), ["low", "high", "locked"]);
    w.alter_local("A", |q| q.delivery_sequence = DeliverySequence::Priority);
    assert_eq!(w.browse_texts("A"), ["high", "locked", "low"]);
}

fn triggers(w: &World) -> usize {
    w.events
        .iter()
        .filter(|(_, e)| {
            matches!(e, Event::TransmissionQueueTriggered { queue, channel }
                if queue.as_str() == "XQ"
                && channel.as_ref().is_some_and(|c| c.as_str() == "QM1.TO.QM2"))
        })
        .count()
}

#[test]
fn a_trigger_is_due_for_the_first_message_for_every_one_or_when_it_can_be_got() {
    let mut w = World::new();
    w.put(put("R", "x"));
    assert_eq!(triggers(&w), 1);
    let mut w = World::new();
    w.begin(C1, unit(1));
    for _ in 0..3 {
        w.put(Put {
            syncpoint: Some(unit(1)),
            ..put("R", "x")
        });
    }
    assert_eq!(triggers(&w), 0);
    let position = w.commit(C1, unit(1));
    assert_eq!(triggers(&w), 1);
    assert_eq!(w.events[0].0, position, "u7: it waits for the commit");
    w.put(put("R", "x"));
    assert_eq!(triggers(&w), 1);
    w.alter_local("XQ", |q| {
        q.trigger_type = ferrymq_objects::TriggerType::Every
    });
    assert_eq!(triggers(&w), 2, "the criteria changed with messages there");
    w.put(put("R", "x"));
    assert_eq!(triggers(&w), 3);
    w.alter_local("XQ", |q| q.get = Enabled::No);
    w.put(put("R", "x"));
    assert_eq!(triggers(&w), 3);
    w.alter_local("XQ", |q| q.get = Enabled::Yes);
    assert_eq!(triggers(&w), 4);
    w.crash();
    assert_eq!(triggers(&w), 1);
}
