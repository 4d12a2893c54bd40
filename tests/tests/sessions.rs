//! Sessions against a real node: consuming by push, settling, large messages in chunks, and clients that misbehave.

use std::time::{Duration, Instant};

use ferrymq_client::{Client, ClientError, ConsumeMode, Consumer, Session, wire};
use ferrymq_tests::cluster::{Nodes, PATIENCE};
use ferrymq_tests::traffic::{get_from, put_to};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

const MIB: usize = 1024 * 1024;

/// A node with queue A, and a client.
async fn node() -> (Nodes, Client) {
    let mut nodes = Nodes::prepare(1, false).await;
    nodes.start(1);
    nodes.wait_up(1).await;
    nodes.define(1, "DEFINE QLOCAL(A)").await;
    nodes.define(1, "DEFINE QLOCAL(B)").await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connected");
    (nodes, client)
}

/// Puts the texts of 0 to `count`, many under way at once.
async fn put_numbers(session: &Session, count: u32) {
    let mut answers = Vec::new();
    for n in 0..count {
        let put = put_to("A", n.to_string());
        answers.push(session.send_put_brief(put, None).await.expect("sent"));
    }
    let mut ids = std::collections::BTreeSet::new();
    for answer in answers {
        ids.insert(answer.wait().await.expect("put"));
    }
    assert_eq!(ids.len(), count as usize, "each has an id of its own");
}

async fn text(consumer: &mut Consumer) -> (u64, String, u32) {
    let next = tokio::time::timeout(PATIENCE, consumer.next()).await;
    let delivered = next.expect("in time").expect("delivered");
    let backouts = delivered
        .message
        .descriptor
        .as_ref()
        .map(|d| d.backout_count);
    let data = String::from_utf8_lossy(&delivered.message.data).into_owned();
    (delivered.delivery, data, backouts.unwrap_or_default())
}

async fn wait_for_depth(nodes: &Nodes, queue: &str, depth: &str) {
    let start = Instant::now();
    let display = format!("DISPLAY QLOCAL({queue}) CURDEPTH");
    while nodes.attribute(1, &display, "CURDEPTH").await.as_deref() != Some(depth) {
        assert!(
            start.elapsed() < PATIENCE,
            "{queue} does not come to {depth}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_messages_come_in_order_within_credit_and_are_settled_one_by_one_or_together() {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 1000).await;
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::Settle, 100)
        .await
        .expect("consuming");
    let mut held = Vec::new();
    for n in 0..100 {
        let (delivery, data, _) = text(&mut consumer).await;
        assert_eq!(data, n.to_string());
        held.push(delivery);
    }
    // All credit is used: no more comes, whatever else is answered.
    session.put(put_to("B", "x"), None).await.expect("put");
    assert!(consumer.try_next().expect("going on").is_none());
    let commit = consumer.send_commit(held.split_off(50), None).await;
    commit.expect("sent").wait().await.expect("committed");
    for delivery in held.split_off(1) {
        let commit = consumer.send_commit(vec![delivery], None).await;
        commit.expect("sent").wait().await.expect("committed");
    }
    // The first one comes again, before those that are behind it.
    let back = consumer.send_back_out(held, None).await.expect("sent");
    back.wait().await.expect("backed out");
    let mut seen = Vec::new();
    while seen.len() < 901 {
        let (delivery, data, backouts) = text(&mut consumer).await;
        assert_eq!(backouts, u32::from(data == "0"));
        seen.push(data.parse::<u32>().expect("a number"));
        let commit = consumer.send_commit(vec![delivery], None).await;
        commit.expect("sent").wait().await.expect("committed");
    }
    seen.sort_unstable();
    assert_eq!(
        seen,
        std::iter::once(0).chain(100..1000).collect::<Vec<_>>()
    );
    wait_for_depth(&nodes, "A", "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l3_a_consumer_with_a_full_window_goes_on_when_it_settles() {
    let (nodes, client) = node().await;
    nodes.define(1, "ALTER QMGR MAXUMSGS(20)").await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 200).await;
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::Settle, 1000)
        .await
        .expect("consuming");
    // What is settled makes room for as many before the next are locked, else the unit of work would hold too many: 2024.
    for _ in 0..10 {
        let mut window = Vec::new();
        for _ in 0..20 {
            window.push(text(&mut consumer).await.0);
        }
        let commit = consumer.send_commit(window, None).await.expect("sent");
        commit.wait().await.expect("committed");
    }
    wait_for_depth(&nodes, "A", "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l3_a_consumer_ends_whatever_is_on_its_way_when_it_is_stopped() {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 500).await;
    // The cancellation and an answer with messages meet on their ways now and then.
    for round in 0..100 {
        let consuming = session.consume(get_from("A"), ConsumeMode::Settle, 20);
        let mut consumer = consuming.await.expect("consuming");
        let mut window = Vec::new();
        for _ in 0..round % 50 {
            window.push(text(&mut consumer).await.0);
            if window.len() == 10 {
                let back = consumer.send_back_out(std::mem::take(&mut window), None);
                let back = back.await.expect("sent");
                back.wait().await.expect("backed out");
            }
        }
        let stopped = tokio::time::timeout(PATIENCE, consumer.stop()).await;
        stopped.expect("it ends").expect("in good order");
    }
    wait_for_depth(&nodes, "A", "500").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pushed_message_joins_the_unit_of_work_of_what_is_made_of_it() {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 2).await;
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::Settle, 10)
        .await
        .expect("consuming");
    let (first, ..) = text(&mut consumer).await;
    let (second, ..) = text(&mut consumer).await;
    let unit = UnitOfWorkId::new([7; 16]);
    // Nothing is waited for before the commit.
    let begun = session.send_begin(unit).await.expect("sent");
    let put = session
        .send_put(put_to("B", "made of 0"), Some(unit))
        .await
        .expect("sent");
    let joined = consumer.send_join(vec![first], unit).await.expect("sent");
    session.commit(unit).await.expect("committed");
    begun.wait().await.expect("begun");
    put.wait().await.expect("put");
    joined.wait().await.expect("joined");
    wait_for_depth(&nodes, "A", "1").await;
    wait_for_depth(&nodes, "B", "1").await;
    // One that was settled cannot be settled again.
    let again = consumer
        .send_commit(vec![first, second], None)
        .await
        .expect("sent");
    let error = again.wait().await.expect_err("refused");
    assert_eq!(error.reason(), ReasonCode::NO_MSG_UNDER_CURSOR);
    let outcome = UnitOfWorkId::new([8; 16]);
    let commit = consumer.send_commit(vec![second], Some(outcome)).await;
    commit.expect("sent").wait().await.expect("committed");
    let asked = wire::GetUnitOfWorkRequest {
        unit_of_work_id: bytes::Bytes::copy_from_slice(outcome.as_bytes()),
        ..wire::GetUnitOfWorkRequest::default()
    };
    let answer = client.get_unit_of_work(asked).await.expect("answered");
    assert_eq!(answer.state(), wire::UnitOfWorkState::Committed);
    wait_for_depth(&nodes, "A", "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_a5_what_a_lost_session_was_pushed_and_did_not_settle_comes_again() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 3).await;
    let lost = client.session().await.expect("a session");
    let mut consumer = lost
        .consume(get_from("A"), ConsumeMode::Settle, 10)
        .await
        .expect("consuming");
    for _ in 0..3 {
        text(&mut consumer).await;
    }
    drop((consumer, lost));
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::NoSyncpoint, 1)
        .await
        .expect("consuming");
    for n in 0..3 {
        let (_, data, backouts) = text(&mut consumer).await;
        assert_eq!((data, backouts), (n.to_string(), 1));
    }
    assert!(consumer.stop().await.expect("stopped").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_ends_with_the_reason_and_without_credit_there_is_none() {
    let (nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    let reason = async |queue: &str, credit| {
        let consumer = session
            .consume(get_from(queue), ConsumeMode::Settle, credit)
            .await;
        let error = consumer.expect("sent").next().await.expect_err("refused");
        error.reason()
    };
    assert_eq!(reason("A", 0).await, ReasonCode::OPTIONS_ERROR);
    assert_eq!(reason("NONE", 1).await, ReasonCode::UNKNOWN_OBJECT_NAME);
    put_numbers(&session, 1).await;
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::Settle, 2)
        .await
        .expect("consuming");
    let (delivery, ..) = text(&mut consumer).await;
    nodes.define(1, "ALTER QLOCAL(A) GET(DISABLED)").await;
    let error = consumer.next().await.expect_err("ended");
    assert_eq!(error.reason(), ReasonCode::GET_INHIBITED);
    // What it holds is still its own.
    let commit = consumer.send_commit(vec![delivery], None).await;
    commit.expect("sent").wait().await.expect("committed");
    wait_for_depth(&nodes, "A", "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_c6_large_messages_pass_in_chunks_and_hold_up_nothing() {
    let (nodes, client) = node().await;
    nodes.define(1, "ALTER QMGR MAXMSGL(104857600)").await;
    nodes.define(1, "ALTER QLOCAL(A) MAXMSGL(6291456)").await;
    let session = client.session().await.expect("a session");
    let data: bytes::Bytes = (0..251).cycle().take(5 * MIB).collect::<Vec<u8>>().into();
    let large = session
        .send_put(put_to("A", data.clone()), None)
        .await
        .expect("sent");
    // Sent behind it, and answered before its data has gone over.
    let small = session.put(put_to("B", "small"), None).await.expect("put");
    assert_eq!(small.message_id.len(), 24);
    large.wait().await.expect("put");
    let too_large = session.put(put_to("A", vec![0; 7 * MIB]), None).await;
    assert_eq!(
        too_large.expect_err("refused").reason(),
        ReasonCode::MSG_TOO_BIG_FOR_Q
    );
    let far_too_large = session.put(put_to("A", vec![0; 100 * MIB + 1]), None).await;
    let error = far_too_large.expect_err("refused");
    assert_eq!(error.reason(), ReasonCode::MSG_TOO_BIG_FOR_Q_MGR);
    let got = session.get(get_from("A"), None).await.expect("got");
    assert!(got.expect("a message").data == data, "byte for byte");
    // In a unit of work, and pushed.
    let unit = UnitOfWorkId::new([1; 16]);
    let begun = session.send_begin(unit).await.expect("sent");
    let put = session
        .send_put(put_to("A", data.clone()), Some(unit))
        .await
        .expect("sent");
    session.commit(unit).await.expect("committed");
    begun.wait().await.expect("begun");
    put.wait().await.expect("put");
    let mut consumer = session
        .consume(get_from("A"), ConsumeMode::Settle, 1)
        .await
        .expect("consuming");
    let delivered = consumer.next().await.expect("delivered");
    assert!(delivered.message.data == data, "byte for byte");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_l3_a_client_that_stops_reading_holds_up_only_itself() {
    let (nodes, client) = node().await;
    nodes.define(1, "ALTER QLOCAL(A) MAXDEPTH(100000)").await;
    let session = client.session().await.expect("a session");
    let idle = Client::connect(&nodes.application(1))
        .await
        .expect("connected");
    let idle = idle.session().await.expect("a session");
    let consumer = idle
        .consume(get_from("A"), ConsumeMode::NoSyncpoint, 1_000_000)
        .await
        .expect("consuming");
    let before = Instant::now();
    for _ in 0..20 {
        put_numbers(&session, 1000).await;
    }
    assert!(before.elapsed() < PATIENCE);
    // Its credit is capped: half of the messages stay.
    wait_for_depth(&nodes, "A", "10000").await;
    drop(consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_get_that_waits_ends_with_its_session() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    let get = wire::GetRequest {
        wait_ms: 3_600_000,
        ..get_from("A")
    };
    let waiting = session.send_get(get, None).await.expect("sent");
    let other = client.session().await.expect("a session");
    let closing = tokio::time::timeout(PATIENCE, session.close()).await;
    closing.expect("in time").expect("closed");
    assert!(matches!(
        waiting.wait().await,
        Ok(None) | Err(ClientError::Broken(_))
    ));
    // It takes nothing that comes later.
    other.put(put_to("A", "x"), None).await.expect("put");
    assert!(other.get(get_from("A"), None).await.expect("got").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_is_opened_browsed_with_locks_got_under_the_cursor_and_closed() {
    let (_nodes, client) = node().await;
    let session = client.session().await.expect("a session");
    put_numbers(&session, 3).await;
    let open = |input: wire::InputUse, browse| wire::OpenCall {
        queue: "A".into(),
        input: input.into(),
        browse,
        output: true,
        ..wire::OpenCall::default()
    };
    let queue = session
        .open(open(wire::InputUse::Exclusive, true))
        .await
        .expect("open");
    assert_eq!(
        (
            queue.resolved_queue.as_str(),
            queue.resolved_queue_manager.as_str()
        ),
        ("A", "QM1")
    );
    let other = client.session().await.expect("a session");
    let refused = other
        .open(open(wire::InputUse::Shared, false))
        .await
        .expect_err("refused");
    assert_eq!(refused.reason(), ReasonCode::OBJECT_IN_USE);
    let message = wire::Message {
        data: "longer than three".into(),
        ..put_to("A", "").message.expect("a message")
    };
    queue.put(message, None).await.expect("put");
    let first = queue
        .browse(wire::BrowseStep::First, true)
        .await
        .expect("browsed");
    assert_eq!(first.expect("a message").data, "0");
    let got = queue.get(wire::GetCall::default()).await.expect("got");
    assert_eq!(
        got.expect("a message").message.data,
        "1",
        "the first is locked"
    );
    let under = wire::GetCall {
        under_cursor: true,
        ..wire::GetCall::default()
    };
    let got = queue.get(under.clone()).await.expect("got");
    assert_eq!(got.expect("a message").message.data, "0");
    let gone = queue.get(under).await.expect_err("gone");
    assert_eq!(gone.reason(), ReasonCode::NO_MSG_UNDER_CURSOR);
    queue
        .browse(wire::BrowseStep::Next, true)
        .await
        .expect("browsed")
        .expect("a message");
    queue.unlock().await.expect("unlocked");
    let error = queue.unlock().await.expect_err("nothing is locked");
    assert_eq!(error.reason(), ReasonCode::NO_MSG_LOCKED);
    queue
        .get(wire::GetCall::default())
        .await
        .expect("got")
        .expect("a message");
    let cut = wire::GetCall {
        get: Some(wire::GetRequest {
            length_max: 3,
            ..wire::GetRequest::default()
        }),
        accept_truncated: true,
        ..wire::GetCall::default()
    };
    let cut = queue.get(cut).await.expect("got").expect("a message");
    assert_eq!(
        (cut.message.data, cut.warning),
        ("lon".into(), ReasonCode::TRUNCATED_MSG_ACCEPTED)
    );
    queue.close().await.expect("closed");
    other
        .open(open(wire::InputUse::Shared, false))
        .await
        .expect("open");
}
