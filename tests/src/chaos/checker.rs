//! Whether what was seen keeps the invariants (the letters are those of the list of invariants).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::history::{Flow, History, Name, Outcome};

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// Judges a run whose queues were drained.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let seen = Seen::of(history);
    let mut violations = Vec::new();
    seen.once(&mut violations);
    seen.nothing_lost(&mut violations);
    seen.nothing_invented(&mut violations);
    in_order(history, &seen.puts, &mut violations);
    for what in &history.complaints {
        violations.push(Violation {
            invariant: "L1",
            what: what.clone(),
        });
    }
    violations
}

/// Where each message was seen.
struct Seen {
    puts: BTreeMap<Name, Outcome>,
    consumed: BTreeMap<Name, u32>,
    /// Perhaps consumed.
    maybe: BTreeSet<Name>,
    /// Given to a consumer, whatever became of it.
    shown: BTreeSet<Name>,
    remaining: BTreeMap<Name, Vec<String>>,
}

impl Seen {
    fn of(history: &History) -> Self {
        let mut seen = Self {
            puts: history.puts.iter().map(|p| (p.name, p.outcome)).collect(),
            consumed: BTreeMap::new(),
            maybe: BTreeSet::new(),
            shown: BTreeSet::new(),
            remaining: BTreeMap::new(),
        };
        for got in &history.gets {
            seen.shown.insert(got.name);
            match got.outcome {
                Outcome::Done => *seen.consumed.entry(got.name).or_default() += 1,
                Outcome::Unknown => {
                    seen.maybe.insert(got.name);
                }
                Outcome::NotDone => {}
            }
        }
        for left in &history.remaining {
            let place = format!("{} of QM{}", left.queue, left.queue_manager);
            seen.remaining.entry(left.name).or_default().push(place);
        }
        seen
    }

    /// C4, C5, N1: consumed once, and then nowhere any more.
    fn once(&self, violations: &mut Vec<Violation>) {
        for (name, times) in &self.consumed {
            let left = self.remaining.get(name).map_or(&[][..], Vec::as_slice);
            if *times > 1 || !left.is_empty() {
                violations.push(Violation {
                    invariant: if name.flow.persistent { "C4" } else { "N1" },
                    what: format!("{name} was consumed {times} times and is on {left:?}"),
                });
            }
        }
        for (name, places) in &self.remaining {
            if places.len() > 1 {
                violations.push(Violation {
                    invariant: "C5",
                    what: format!("{name} is on {places:?}"),
                });
            }
        }
    }

    /// C1: what was acknowledged was consumed or is there. Only non-persistent messages may be lost.
    fn nothing_lost(&self, violations: &mut Vec<Violation>) {
        for (name, outcome) in &self.puts {
            let somewhere = self.consumed.contains_key(name)
                || self.maybe.contains(name)
                || self.remaining.contains_key(name);
            if *outcome == Outcome::Done && name.flow.persistent && !somewhere {
                violations.push(Violation {
                    invariant: "C1",
                    what: format!("{name} was acknowledged and is nowhere"),
                });
            }
        }
    }

    /// C3, A2: what was seen was put, and not backed out.
    fn nothing_invented(&self, violations: &mut Vec<Violation>) {
        for name in self.shown.iter().chain(self.remaining.keys()) {
            match self.puts.get(name) {
                Some(Outcome::Done | Outcome::Unknown) => {}
                Some(Outcome::NotDone) => violations.push(Violation {
                    invariant: "A2",
                    what: format!("{name} was backed out and was seen"),
                }),
                None => violations.push(Violation {
                    invariant: "C3",
                    what: format!("{name} was seen and never put"),
                }),
            }
        }
    }
}

/// O1: persistent messages of one producer reach a connection in their order. Those that somebody else had before may come
/// later, and those whose unit of work may have been committed late.
fn in_order(history: &History, puts: &BTreeMap<Name, Outcome>, violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<(u32, Flow), u64> = BTreeMap::new();
    for got in &history.gets {
        let counts =
            got.name.flow.persistent && !got.again && puts.get(&got.name) == Some(&Outcome::Done);
        if !counts {
            continue;
        }
        let last = last.entry((got.session, got.name.flow)).or_default();
        if got.name.number < *last {
            violations.push(Violation {
                invariant: "O1",
                what: format!("{} came after {last}", got.name),
            });
        }
        *last = got.name.number.max(*last);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::history::{Got, Put, Remaining};
    use super::*;

    const FLOW: Flow = Flow {
        from: 1,
        to: 2,
        persistent: true,
    };

    fn name(number: u64) -> Name {
        Name { flow: FLOW, number }
    }

    fn got(number: u64, outcome: Outcome) -> Got {
        Got {
            name: name(number),
            session: 1,
            again: false,
            outcome,
            at: Duration::ZERO,
        }
    }

    /// Three messages, put and consumed.
    fn good() -> History {
        History {
            puts: (1..=3)
                .map(|n| Put {
                    name: name(n),
                    outcome: Outcome::Done,
                })
                .collect(),
            gets: (1..=3).map(|n| got(n, Outcome::Done)).collect(),
            ..History::default()
        }
    }

    fn invariants(history: &History) -> Vec<&'static str> {
        check(history).iter().map(|v| v.invariant).collect()
    }

    fn on_a_queue(number: u64) -> Remaining {
        Remaining {
            queue_manager: 2,
            queue: "DLQ".into(),
            name: name(number),
        }
    }

    #[test]
    fn a_good_run_is_good() {
        assert_eq!(check(&good()), []);
    }

    #[test]
    fn a_message_that_is_on_a_queue_or_whose_commit_is_in_doubt_is_not_lost() {
        let mut run = good();
        run.gets.pop();
        run.remaining.push(on_a_queue(3));
        assert_eq!(invariants(&run), [""; 0]);
        run.remaining.clear();
        run.gets.push(got(3, Outcome::Unknown));
        assert_eq!(invariants(&run), [""; 0]);
    }

    #[test]
    fn every_fault_is_found_by_its_invariant() {
        type Plant = fn(&mut History);
        let faults: [(&str, Plant); 9] = [
            ("C1", |run| run.gets.truncate(2)),
            ("C1", |run| run.gets[2].outcome = Outcome::NotDone),
            ("C4", |run| run.gets.push(got(3, Outcome::Done))),
            ("C4", |run| run.remaining.push(on_a_queue(3))),
            ("C5", |run| {
                run.gets.pop();
                run.remaining = vec![on_a_queue(3), on_a_queue(3)];
            }),
            ("A2", |run| run.puts[1].outcome = Outcome::NotDone),
            ("C3", |run| run.puts.truncate(2)),
            ("O1", |run| run.gets.swap(0, 1)),
            ("L1", |run| run.complaints.push("a node ended".into())),
        ];
        for (invariant, plant) in faults {
            let mut run = good();
            plant(&mut run);
            assert_eq!(invariants(&run), [invariant]);
        }
    }

    #[test]
    fn a_non_persistent_message_may_be_lost_and_not_come_twice() {
        let mut run = good();
        for put in &mut run.puts {
            put.name.flow.persistent = false;
        }
        for got in &mut run.gets {
            got.name.flow.persistent = false;
        }
        let twice = run.gets[0];
        run.gets.pop();
        assert_eq!(invariants(&run), [""; 0]);
        run.gets.push(twice);
        assert_eq!(invariants(&run), ["N1"]);
    }

    #[test]
    fn c6_data_names_its_message_and_changed_data_names_none() {
        let data = name(7).data(1000);
        assert_eq!(Name::of(&data), Some(name(7)));
        for at in [0, 8, 500, data.len() - 1] {
            let mut changed = data.clone();
            changed[at] ^= 1;
            assert_ne!(Name::of(&changed), Some(name(7)), "byte {at}");
        }
        assert_eq!(Name::of(&data[..data.len() - 1]), None);
        assert_eq!(Name::of(b""), None);
    }
}
