//! Tests of the machine as a whole.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

mod attributes;
mod commands;
mod resolution;

use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp};

use crate::{
    Action, Applied, AttributeValue, Attributes, Command, CommandError, Definitions, ObjectKind,
    QueueManager,
};

/// Definitions with the queue manager `QM1`, and a counter that makes each request new.
struct Bench {
    definitions: Definitions,
    index: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            definitions: Definitions::new(),
            index: 0,
        };
        bench.must(Action::CreateQueueManager {
            id: QueueManagerId::new([7; 16]),
            node: 3,
        });
        bench
    }

    fn command(&self, action: Action) -> Command {
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.index.to_be_bytes());
        Command {
            version: Command::VERSION,
            queue_manager: QueueManagerName::new("QM1").unwrap(),
            time: Timestamp::from_millis(1_000_000 + self.index),
            request,
            action,
        }
    }

    fn apply(&mut self, action: Action) -> Result<Applied, CommandError> {
        self.index += 1;
        let command = self.command(action);
        let before = self.definitions.queue_managers.clone();
        let result = self.definitions.apply(self.index, &command);
        if result.is_err() {
            assert_eq!(
                before, self.definitions.queue_managers,
                "refused, yet changed"
            );
        }
        result
    }

    fn must(&mut self, action: Action) -> Applied {
        self.apply(action).unwrap()
    }

    fn define(&mut self, kind: ObjectKind, name: &str, pairs: &[(&str, AttributeValue)]) {
        self.must(define(kind, name, pairs));
    }

    fn qm1(&self) -> &QueueManager {
        &self.definitions.queue_managers[&QueueManagerName::new("QM1").unwrap()]
    }
}

fn define(kind: ObjectKind, name: &str, pairs: &[(&str, AttributeValue)]) -> Action {
    Action::Define {
        kind,
        name: name.into(),
        attributes: attributes(pairs),
        like: None,
        replace: false,
    }
}

fn attributes(pairs: &[(&str, AttributeValue)]) -> Attributes {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), v.clone()))
        .collect()
}

fn text(t: &str) -> AttributeValue {
    AttributeValue::Text(t.into())
}

fn word(t: &str) -> AttributeValue {
    AttributeValue::Word(t.into())
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::Number(n)
}
