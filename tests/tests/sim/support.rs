//! Runs many seeds, and tells of one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ferrymq_tests::sim::{Fault, Outcome, Settings, Statistics, run};

/// Lines of the trace that are printed with a violation.
const LINES: usize = 60;

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs seeds on all cores, until all are done or one fails; the failure with the lowest seed of those found is returned.
pub(crate) fn run_seeds(
    first: u64,
    count: u64,
    fault: Option<Fault>,
) -> (Statistics, Option<Outcome>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(first);
    let end = first.saturating_add(count);
    let found: Mutex<(Statistics, Option<Outcome>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = run(Settings {
                        seed,
                        fault,
                        trace: false,
                    });
                    let mut found = found.lock().expect("no thread panics with it");
                    found.0 += outcome.statistics;
                    let earlier = found.1.as_ref().is_none_or(|f| f.seed > outcome.seed);
                    if outcome.violation.is_some() && earlier {
                        next.store(end, Ordering::Relaxed);
                        found.1 = Some(outcome);
                    }
                }
            });
        }
    });
    found.into_inner().expect("no thread panics with it")
}

/// Fails with everything that is needed to find out why.
pub(crate) fn fail(outcome: &Outcome, whole: bool) -> ! {
    let seed = outcome.seed;
    let traced = run(Settings {
        seed,
        fault: None,
        trace: true,
    });
    let skipped = if whole {
        0
    } else {
        traced.trace.len().saturating_sub(LINES)
    };
    for line in traced.trace.iter().skip(skipped) {
        println!("{line}");
    }
    let what = outcome
        .violation
        .as_ref()
        .map_or_else(String::new, ToString::to_string);
    panic!(
        "seed {seed} violates {what}\n\
         repeat with: FERRYMQ_SEED={seed} cargo test -p ferrymq-tests --test sim"
    );
}
