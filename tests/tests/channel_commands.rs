//! RESET, RESOLVE and PING CHANNEL with real processes.

use std::time::{Duration, Instant};

use ferrymq_client::Client;
use ferrymq_tests::cluster::{Nodes, PATIENCE, crash_points_binary};
use ferrymq_tests::traffic;

const CURRENT: &str = "DISPLAY CHSTATUS(QM1.TO.QM2) ALL";
const SAVED: &str = "DISPLAY CHSTATUS(QM1.TO.QM2) SAVED ALL";

async fn two() -> Nodes {
    let mut nodes = Nodes::prepare(2, false).await;
    for number in [1, 2] {
        nodes.start(number);
        nodes.wait_up(number).await;
    }
    nodes.link(1, 2).await;
    nodes
}

/// Waits until a channel's attribute has the value.
async fn wait_for(nodes: &Nodes, number: usize, keyword: &str, wanted: &str) {
    let start = Instant::now();
    let display = if keyword == "STATUS" { CURRENT } else { SAVED };
    loop {
        let found = nodes.attribute(number, display, keyword).await;
        if found.as_deref() == Some(wanted) {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{keyword} is {found:?}, {wanted} is wanted: {:?}",
            nodes.mqsc(number, number, display).await
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a node has written a message with this id to its log.
async fn wait_logged(nodes: &Nodes, number: usize, id: &str) {
    let start = Instant::now();
    loop {
        let log = std::fs::read_to_string(nodes.log(number)).expect("the log");
        if log.contains(id) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{id} is not in the log");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn send(nodes: &Nodes, text: &str) {
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connect");
    let session = client.session().await.expect("a session");
    let put = traffic::put_to("OUT.2", text.to_owned());
    session.put(put, None).await.expect("put");
}

async fn received(nodes: &Nodes, count: usize) -> Vec<String> {
    traffic::consume(nodes.application(2), "IN".into(), count).await
}

async fn depth(nodes: &Nodes, number: usize, queue: &str) -> String {
    let display = format!("DISPLAY QLOCAL({queue}) CURDEPTH");
    let depth = nodes.attribute(number, &display, "CURDEPTH").await;
    depth.expect("a queue with a depth")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ping_channel_says_whether_the_partner_would_take_it() {
    let mut nodes = two().await;
    let ping = "PING CHANNEL(QM1.TO.QM2)";
    let refused = |answer: Result<String, String>| answer.expect_err("refused");
    let done = nodes.define(1, ping).await;
    assert!(done.contains("AMQ8020I"), "{done}");
    let long = nodes.define(1, &format!("{ping} DATALEN(32768)")).await;
    assert!(long.contains("AMQ8020I"), "{long}");
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    wait_for(&nodes, 1, "STATUS", "RUNNING").await;
    let running = refused(nodes.mqsc(1, 1, ping).await);
    assert!(running.contains("AMQ9514E"), "{running}");
    nodes.define(1, "STOP CHANNEL(QM1.TO.QM2)").await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    nodes.define(1, ping).await;
    let receiver = refused(nodes.mqsc(2, 2, ping).await);
    assert!(receiver.contains("FMQ8001E"), "{receiver}");
    let unknown = refused(nodes.mqsc(1, 1, "PING CHANNEL(NONE)").await);
    assert!(unknown.contains("AMQ8227E"), "{unknown}");
    nodes.define(2, "STOP CHANNEL(QM1.TO.QM2)").await;
    let stopped = refused(nodes.mqsc(1, 1, ping).await);
    assert!(stopped.contains("AMQ9558E"), "{stopped}");
    nodes.define(2, "DELETE CHANNEL(QM1.TO.QM2)").await;
    let missing = refused(nodes.mqsc(1, 1, ping).await);
    assert!(missing.contains("AMQ9520E"), "{missing}");
    nodes.kill(2);
    let gone = refused(nodes.mqsc(1, 1, ping).await);
    assert!(gone.contains("AMQ9202E"), "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_13_reset_channel_begins_anew_with_the_number_that_is_given() {
    let nodes = two().await;
    send(&nodes, "one").await;
    wait_for(&nodes, 1, "LSTSEQNO", "1").await;
    nodes.define(1, "STOP CHANNEL(QM1.TO.QM2)").await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    let done = nodes
        .define(1, "RESET CHANNEL(QM1.TO.QM2) SEQNUM(500)")
        .await;
    assert!(done.contains("AMQ8023I"), "{done}");
    wait_for(&nodes, 1, "LSTSEQNO", "499").await;
    send(&nodes, "two").await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    wait_for(&nodes, 1, "LSTSEQNO", "500").await;
    // The partner follows.
    wait_for(&nodes, 2, "LSTSEQNO", "500").await;
    // This end alone: the sender goes on with 501, and another number is an error.
    nodes.define(1, "STOP CHANNEL(QM1.TO.QM2)").await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    nodes.define(2, "RESET CHANNEL(QM1.TO.QM2) SEQNUM(7)").await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    wait_logged(&nodes, 2, "AMQ9526E").await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    nodes
        .define(2, "RESET CHANNEL(QM1.TO.QM2) SEQNUM(501)")
        .await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    send(&nodes, "three").await;
    wait_for(&nodes, 2, "LSTSEQNO", "501").await;
    assert_eq!(received(&nodes, 3).await, ["one", "two", "three"]);
}

/// A sender that was killed after it asked for the confirmation of a batch: whether the partner has it is not known here.
async fn in_doubt() -> Option<Nodes> {
    let binary = crash_points_binary()?;
    let mut nodes = two().await;
    nodes.define(1, "STOP CHANNEL(QM1.TO.QM2)").await;
    send(&nodes, "one").await;
    tokio::task::block_in_place(|| nodes.terminate(1));
    // Bind, message, end of the batch: the node dies in front of the last.
    let crash = ("FERRYMQ_CRASH_AT", "channel.before_send:3");
    nodes.start_with(1, &binary, &[crash]);
    nodes.wait_up(1).await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    let status = tokio::task::block_in_place(|| nodes.wait_ended(1));
    assert!(!status.success(), "the node ends by an abort");
    // The partner is away, so that the channel stays in doubt.
    tokio::task::block_in_place(|| nodes.terminate(2));
    nodes.start(1);
    nodes.wait_up(1).await;
    wait_for(&nodes, 1, "INDOUBT", "YES").await;
    let refused = |answer: Result<String, String>| answer.expect_err("refused");
    nodes
        .define(1, "STOP CHANNEL(QM1.TO.QM2) MODE(FORCE)")
        .await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    wait_for(&nodes, 1, "INDOUBT", "YES").await;
    wait_for(&nodes, 1, "CURSEQNO", "1").await;
    wait_for(&nodes, 1, "LSTSEQNO", "0").await;
    for command in ["RESET CHANNEL(QM1.TO.QM2)", "DELETE CHANNEL(QM1.TO.QM2)"] {
        let answer = refused(nodes.mqsc(1, 1, command).await);
        assert!(answer.contains("AMQ9507E"), "{command}: {answer}");
    }
    Some(nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_resolve_backout_sends_the_batch_in_doubt_again() {
    let Some(mut nodes) = in_doubt().await else {
        return;
    };
    let done = nodes
        .define(1, "RESOLVE CHANNEL(QM1.TO.QM2) ACTION(BACKOUT)")
        .await;
    assert!(done.contains("AMQ8025I"), "{done}");
    wait_for(&nodes, 1, "INDOUBT", "NO").await;
    assert_eq!(depth(&nodes, 1, "QM2").await, "1");
    nodes.start(2);
    nodes.wait_up(2).await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    assert_eq!(received(&nodes, 1).await, ["one"]);
    wait_for(&nodes, 1, "LSTSEQNO", "1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_resolve_commit_deletes_the_batch_in_doubt_and_a_wrong_choice_is_found() {
    let Some(mut nodes) = in_doubt().await else {
        return;
    };
    let done = nodes
        .define(1, "RESOLVE CHANNEL(QM1.TO.QM2) ACTION(COMMIT)")
        .await;
    assert!(done.contains("AMQ8025I"), "{done}");
    wait_for(&nodes, 1, "INDOUBT", "NO").await;
    wait_for(&nodes, 1, "LSTSEQNO", "1").await;
    assert_eq!(depth(&nodes, 1, "QM2").await, "0");
    // The partner never had it: the numbers do not fit, and the channel stops instead of going on as if nothing was lost.
    nodes.start(2);
    nodes.wait_up(2).await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    wait_logged(&nodes, 1, "AMQ9526E").await;
    wait_for(&nodes, 1, "STATUS", "STOPPED").await;
    nodes.define(1, "RESET CHANNEL(QM1.TO.QM2)").await;
    nodes.define(1, "START CHANNEL(QM1.TO.QM2)").await;
    send(&nodes, "two").await;
    assert_eq!(received(&nodes, 1).await, ["two"]);
}
