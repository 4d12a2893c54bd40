//! Real nodes on hosts of their own, in a network that fails.
#![allow(clippy::print_stdout, reason = "what a run is and how to repeat it")]

use std::path::PathBuf;
use std::time::Duration;

use ferrymq_tests::chaos::{Plan, run};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn inv_c1_c4_a2_o1_hold_through_faults_of_processes_and_of_the_network() {
    let plan = Plan {
        seed: number("FERRYMQ_SEED", 1),
        time: Duration::from_secs(number("FERRYMQ_CHAOS_SECONDS", 20)),
        crash_points: std::env::var_os("FERRYMQ_CRASH_POINTS_BIN").map(PathBuf::from),
    };
    println!(
        "faults are chosen by the seed; run longer with cargo xtask chaos --minutes N --seed {}",
        plan.seed
    );
    match run(&plan) {
        Ok(report) => {
            println!("{report}");
            assert!(report.violations.is_empty(), "{report}");
        }
        Err(why) => println!("SKIPPED: no network namespaces here: {why}"),
    }
}
