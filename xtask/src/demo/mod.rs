//! The demo: three queue managers on this machine, and what they promise, shown one promise after another.

#![allow(clippy::print_stdout, reason = "what the demo shows is its output")]

mod cluster;
mod points;

use std::path::Path;
use std::process::ExitCode;

use cluster::Cluster;

/// How a point of the demo ended.
type Shown = Result<String, String>;

/// Runs the demo with `binary`, the `ferrymq` executable; `keep` leaves the cluster running.
pub(crate) fn run(binary: &Path, keep: bool) -> ExitCode {
    let mut cluster = match Cluster::start(binary) {
        Ok(cluster) => cluster,
        Err(error) => {
            println!("\nThe cluster did not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut table = Vec::new();
    for (number, (title, show)) in points::POINTS.iter().enumerate() {
        println!("\n=== {}. {title}\n", number.saturating_add(1));
        let shown = show(&mut cluster);
        match &shown {
            Ok(what) => println!("--> {what}"),
            Err(why) => println!("--> FAILED: {why}"),
        }
        table.push((title, shown));
    }
    println!("\n=== What was shown\n");
    for (number, (title, shown)) in table.iter().enumerate() {
        let (word, text) = match shown {
            Ok(text) => ("ok    ", text),
            Err(text) => ("FAILED", text),
        };
        println!(
            "{}  {word}  {title}\n           {text}",
            number.saturating_add(1)
        );
    }
    let failed = table.iter().any(|(_, shown)| shown.is_err());
    if keep {
        cluster.keep();
    } else {
        match cluster.stop(failed) {
            Ok(()) => {}
            Err(error) => println!("\nThe nodes did not stop as they should: {error}"),
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
