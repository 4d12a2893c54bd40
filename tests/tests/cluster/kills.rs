//! Two queue managers and a channel; both nodes are killed at random moments while messages flow.

use std::time::Duration;

use ferrymq_tests::cluster::Nodes;
use ferrymq_tests::traffic;
use rand::{RngExt as _, SeedableRng as _};

/// How often a node is killed; `FERRYMQ_KILLS` says otherwise.
const KILLS: u32 = 10;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_c1_kills_at_random_moments_lose_and_repeat_nothing() {
    let kills = u32::try_from(number("FERRYMQ_KILLS", u64::from(KILLS))).expect("a small number");
    let seed = number("FERRYMQ_SEED", 1);
    println!(
        "repeat with FERRYMQ_KILLS={kills} FERRYMQ_SEED={seed} cargo test -p ferrymq-tests --test cluster"
    );
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut nodes = Nodes::prepare(2, false).await;
    for node in [1, 2] {
        nodes.start(node);
        nodes.wait_up(node).await;
    }
    nodes.link(1, 2).await;

    // Enough messages that some are on their way at every kill.
    let count = u64::from(kills) * 300;
    let producer = tokio::spawn(traffic::produce(
        nodes.application(1),
        "OUT.2".into(),
        count,
    ));
    let consumer = tokio::spawn(traffic::consume(
        nodes.application(2),
        "IN".into(),
        usize::try_from(count).expect("a small number"),
    ));
    for kill in 0..kills {
        // The random moment of the kill.
        tokio::time::sleep(Duration::from_millis(random.random_range(20..400))).await;
        let node = if random.random_bool(0.5) { 1 } else { 2 };
        nodes.kill(node);
        nodes.start(node);
        nodes.wait_up(node).await;
        if (kill + 1) % 10 == 0 {
            println!(
                "{} kills, producer done: {}",
                kill + 1,
                producer.is_finished()
            );
        }
    }
    producer.await.expect("the producer");
    let got = tokio::time::timeout(Duration::from_secs(120), consumer)
        .await
        .expect("every message arrives in time")
        .expect("the consumer");
    let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    let first = got
        .iter()
        .zip(&expected)
        .position(|(got, expected)| got != expected);
    assert_eq!(
        (got.len(), first),
        (expected.len(), None),
        "each acknowledged message once, in order; around the difference: {:?}",
        first.map(|i| &got[i.saturating_sub(3)..(i + 5).min(got.len())])
    );
    for (queue, node) in [("IN", 2), ("DLQ", 2), ("QM2", 1)] {
        let display = format!("DISPLAY QLOCAL({queue}) CURDEPTH");
        let depth = nodes.attribute(node, &display, "CURDEPTH").await;
        assert_eq!(
            depth.as_deref(),
            Some("0"),
            "{queue} of QM{node} at the end"
        );
    }
}
