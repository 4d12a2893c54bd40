//! Three nodes with one set of definitions.

use std::time::{Duration, Instant};

use ferrymq_client::{Client, wire};
use ferrymq_tests::cluster::{Nodes, PATIENCE};

async fn three() -> Nodes {
    let mut nodes = Nodes::prepare(3, true).await;
    for node in 1..=3 {
        nodes.start(node);
    }
    for node in 1..=3 {
        nodes.wait_up(node).await;
    }
    nodes
}

async fn leader(nodes: &Nodes, ask: usize) -> Option<usize> {
    let client = Client::connect(&nodes.administrator(ask)).await.ok()?;
    let members = client.admin().members().await.ok()?;
    let leader = members.members.into_iter().find(|m| m.role == "leader")?;
    usize::try_from(leader.id).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_r1_a_definition_survives_the_loss_of_the_leader() {
    let mut nodes = three().await;
    // Said to a node that does not host the queue manager, and perhaps does not lead.
    let report = nodes
        .mqsc(3, 1, "DEFINE QLOCAL(A) MAXDEPTH(7)")
        .await
        .expect("defined");
    assert!(report.contains("AMQ8006I"), "{report}");
    let leading = leader(&nodes, 1).await.expect("somebody leads");
    nodes.kill(leading);
    let rest: Vec<usize> = (1..=3).filter(|n| *n != leading).collect();
    // The rest elects a leader and takes definitions; the first answer may take an election.
    let host = rest[0];
    let start = Instant::now();
    while let Err(report) = nodes.mqsc(host, host, "DEFINE QLOCAL(B) REPLACE").await {
        assert!(start.elapsed() < PATIENCE, "{report}");
    }
    nodes.start(leading);
    nodes.wait_up(leading).await;
    for number in 1..=3 {
        let shown = nodes
            .mqsc(number, 1, "DISPLAY QLOCAL(A) MAXDEPTH")
            .await
            .expect("displayed");
        assert!(shown.contains("MAXDEPTH(7)"), "node {number}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_r3_without_a_majority_definitions_are_refused_and_messages_flow() {
    let mut nodes = three().await;
    nodes.define(1, "DEFINE QLOCAL(A)").await;
    nodes.define(1, "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) SSLPEER('OU=Applications,O=FerryMQ')").await;
    nodes.kill(2);
    nodes.kill(3);
    let refused = nodes
        .mqsc(1, 1, "DEFINE QLOCAL(B)")
        .await
        .expect_err("no majority");
    assert!(
        refused.contains("9001") || refused.contains("9002"),
        "{refused}"
    );
    let client = Client::connect(&nodes.application(1))
        .await
        .expect("connect");
    let message = wire::Message {
        data: "x".into(),
        ..wire::Message::default()
    };
    let put = wire::PutRequest {
        queue: "A".into(),
        message: Some(message),
        ..wire::PutRequest::default()
    };
    client.put(put).await.expect("put without a majority");
    let get = wire::GetRequest {
        queue: "A".into(),
        wait_ms: 1000,
        ..wire::GetRequest::default()
    };
    let got = client.get(get).await.expect("get").expect("the message");
    assert_eq!(&got.data[..], b"x");
    // Once a majority has settled the log, the node surely refuses at once or takes the change again.
    nodes.start(2);
    nodes.wait_up(2).await;
    let start = Instant::now();
    while let Err(report) = nodes.mqsc(1, 1, "DEFINE QLOCAL(C) REPLACE").await {
        assert!(start.elapsed() < PATIENCE, "{report}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
