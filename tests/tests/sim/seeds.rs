//! Seeds hold every invariant.

use ferrymq_tests::sim::{Settings, run};

use crate::sim::support::{fail, number, run_seeds};

/// How many seeds run if nothing else is asked for.
const SEEDS: u64 = 50;

#[test]
fn simulated_seeds_hold() {
    if let Some(seed) = number("FERRYMQ_SEED") {
        let outcome = run(Settings {
            seed,
            fault: None,
            trace: true,
        });
        if outcome.violation.is_some() {
            fail(&outcome, true);
        }
        for line in &outcome.trace {
            println!("{line}");
        }
        return;
    }
    let first = number("FERRYMQ_SIM_FIRST").unwrap_or(1);
    let count = number("FERRYMQ_SIM_SEEDS").unwrap_or(SEEDS);
    let (statistics, failed) = run_seeds(first, count, None);
    println!("{count} seeds from {first}: {statistics:?}");
    if let Some(outcome) = failed {
        fail(&outcome, false);
    }
    if count >= SEEDS {
        // Seeds in which nothing happened would hold anything.
        let s = statistics;
        for (what, happened) in [
            ("gets", s.gets),
            ("commits", s.commits),
            ("batches", s.batches),
            ("crashes", s.crashes),
            ("cuts", s.cuts),
            ("checkpoints", s.checkpoints),
            ("fetches", s.fetches),
            ("triggers", s.triggers),
            ("dynamic queues", s.dynamic_queues),
            ("undelivered messages", s.undelivered),
            ("lost answers", s.unknown),
        ] {
            assert!(
                happened > count / 5,
                "only {happened} {what} in {count} seeds"
            );
        }
    }
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    let traced = |seed| {
        run(Settings {
            seed,
            fault: None,
            trace: true,
        })
    };
    let (first, second) = (traced(7), traced(7));
    assert_eq!(first.trace, second.trace);
    assert_ne!(first.trace, traced(8).trace);
    let silent = run(Settings {
        seed: 7,
        ..Settings::default()
    });
    assert_eq!(
        silent.statistics, first.statistics,
        "a trace changes nothing"
    );
}
