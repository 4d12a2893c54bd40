//! What a run was and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::checker::Violation;
use super::history::{History, Outcome};
use super::is_fast;
use super::relay::Counts;

/// How often a kind of fault was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Injected {
    /// It took hold.
    pub done: u32,
    /// It did not: it counts as not run.
    pub not_run: u32,
}

impl Injected {
    pub(super) const fn count(&mut self, took_hold: bool) {
        if took_hold {
            self.done += 1;
        } else {
            self.not_run += 1;
        }
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Report {
    /// What was not kept.
    pub violations: Vec<Violation>,
    /// What was seen.
    pub history: History,
    /// Faults by kind.
    pub injected: BTreeMap<&'static str, Injected>,
    /// Longest time from healing until messages of every flow arrived again.
    pub longest_recovery: Duration,
    /// What the network did.
    pub packets: Counts,
    /// The seed.
    pub seed: u64,
    /// How long it took.
    pub time: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chaos with seed {}: {:.0?}", self.seed, self.time)?;
        let done = self.history.gets.iter();
        let done = done.filter(|g| g.outcome == Outcome::Done);
        let seen: BTreeSet<_> = done.map(|g| g.name).collect();
        for (label, persistent, fast) in [
            ("persistent", true, None),
            ("non-persistent, normal", false, Some(false)),
            ("non-persistent, fast", false, Some(true)),
        ] {
            let of = |flow: &super::history::Flow| {
                flow.persistent == persistent
                    && fast.is_none_or(|fast| is_fast(flow.from, flow.to) == fast)
            };
            let puts = |outcome: Outcome| {
                let all = self.history.puts.iter();
                all.filter(|p| p.outcome == outcome && of(&p.name.flow))
                    .count()
            };
            let got = seen.iter().filter(|name| of(&name.flow)).count();
            writeln!(
                f,
                "  {label}: {} put, {} in doubt, {} backed out; {got} consumed",
                puts(Outcome::Done),
                puts(Outcome::Unknown),
                puts(Outcome::NotDone)
            )?;
        }
        writeln!(f, "  left on queues: {}", self.history.remaining.len())?;
        for (kind, injected) in &self.injected {
            write!(f, "  {kind}: {}", injected.done)?;
            if injected.not_run > 0 {
                write!(f, " ({} more did not take hold)", injected.not_run)?;
            }
            writeln!(f)?;
        }
        let p = &self.packets;
        writeln!(
            f,
            "  packets: {} passed, {} lost, {} doubled, {} corrupted, {} late, {} turned into resets",
            p.passed, p.lost, p.duplicated, p.corrupted, p.delayed, p.reset
        )?;
        writeln!(
            f,
            "  longest time to recover after everything was healed: {:.1?}",
            self.longest_recovery
        )?;
        writeln!(f, "  violations: {}", self.violations.len())?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "    {violation}")?;
        }
        Ok(())
    }
}
