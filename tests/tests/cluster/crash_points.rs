//! Two queue managers and a channel; one node aborts at a named point, restarts, and nothing is lost or repeated.

use ferrymq_tests::cluster::{Nodes, crash_points_binary};
use ferrymq_tests::traffic;

/// Messages of one run.
const COUNT: u64 = 60;

/// Which node aborts, and where: the point and which time it is reached.
const POINTS: [(usize, &str); 10] = [
    (1, "store.before_append:40"),
    (1, "engine.before_sync:40"),
    (1, "engine.before_reply:40"),
    (1, "engine.after_reply:40"),
    (1, "channel.before_send:30"),
    (1, "channel.after_send:31"),
    (2, "store.after_append:4"),
    (2, "engine.before_reply:5"),
    (2, "channel.before_confirm:3"),
    (2, "channel.after_confirm:3"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_p2_an_abort_at_a_named_point_loses_and_repeats_nothing() {
    let Some(binary) = crash_points_binary() else {
        return;
    };
    for (node, point) in POINTS {
        println!("{point} on node {node}");
        let mut nodes = Nodes::prepare(2, false).await;
        for number in [1, 2] {
            nodes.start(number);
            nodes.wait_up(number).await;
        }
        nodes.link(1, 2).await;
        // The definitions are there: from now on the node counts how often it comes to the point.
        nodes.kill(node);
        nodes.start_with(node, &binary, &[("FERRYMQ_CRASH_AT", point)]);
        let producer = tokio::spawn(traffic::produce(
            nodes.application(1),
            "OUT.2".into(),
            COUNT,
        ));
        let count = usize::try_from(COUNT).expect("a small number");
        let consumer = tokio::spawn(traffic::consume(nodes.application(2), "IN".into(), count));
        let status = tokio::task::block_in_place(|| nodes.wait_ended(node));
        assert!(!status.success(), "{point}: the node ends by an abort");
        nodes.start(node);
        nodes.wait_up(node).await;
        producer.await.expect("the producer");
        let got = consumer.await.expect("the consumer");
        let expected: Vec<String> = (0..COUNT).map(|n| n.to_string()).collect();
        assert_eq!(
            got, expected,
            "{point}: each acknowledged message once, in order"
        );
    }
}
