//! Tests.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm,
    reason = "tests"
)]

mod channel_rules;
mod displaying;
mod exporting;
mod parsing;
mod reporting;
mod round_trip;
mod scripts;

use ferrymq_objects::{Command, Definitions, QueueManager};
use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp};

use crate::{Answer, RuntimeStatus, ScriptReader, Statement, display, parse};

/// A queue manager that runs scripts, as far as definitions go.
struct Bench {
    definitions: Definitions,
    status: RuntimeStatus,
    index: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            definitions: Definitions::new(),
            status: RuntimeStatus::default(),
            index: 0,
        };
        let id = QueueManagerId::new([1; 16]);
        bench
            .apply(ferrymq_objects::Action::CreateQueueManager { id, node: 1 })
            .unwrap();
        bench
    }

    fn apply(
        &mut self,
        action: ferrymq_objects::Action,
    ) -> Result<ferrymq_objects::Applied, ferrymq_objects::CommandError> {
        self.index += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.index.to_be_bytes());
        let command = Command {
            version: Command::VERSION,
            queue_manager: QueueManagerName::new("QM1").unwrap(),
            time: Timestamp::from_millis(951_782_399_999),
            request,
            action,
        };
        self.definitions.apply(self.index, &command)
    }

    fn qm1(&self) -> &QueueManager {
        &self.definitions.queue_managers[&QueueManagerName::new("QM1").unwrap()]
    }

    /// The answer to one command.
    fn run(&mut self, command: &str) -> Answer {
        let statement = match parse(command) {
            Ok(statement) => statement,
            Err(error) => return Answer::syntax(command, &error),
        };
        if let Some(action) = statement.action() {
            return match self.apply(action) {
                Ok(applied) => Answer::applied(&applied),
                Err(error) => Answer::refused(&error),
            };
        }
        match statement {
            Statement::Display(d) => {
                let objects = display(&d, self.qm1(), &self.status);
                Answer::displayed(&d, objects)
            }
            Statement::PingQueueManager => Answer::queue_manager_pinged(),
            Statement::StartChannel { .. } => Answer::channel_start_accepted(),
            Statement::StopChannel { .. } => Answer::channel_stop_accepted(),
            Statement::ResetChannel { .. } => Answer::channel_reset(),
            Statement::ResolveChannel { .. } => Answer::channel_resolved(),
            Statement::PingChannel { .. } => Answer::channel_pinged(),
            Statement::ClearQueue { .. } => Answer::queue_cleared(),
            Statement::NotSupported { what } => Answer::not_supported(&what),
            other => panic!("{other:?} is not run here"),
        }
    }

    /// Runs a command that must be done.
    fn must(&mut self, command: &str) -> Answer {
        let answer = self.run(command);
        assert!(answer.is_done(), "{command}: {:?}", answer.lines);
        answer
    }
}

/// The commands of a script.
fn commands(script: &str) -> Vec<String> {
    let mut reader = ScriptReader::new();
    let mut found = Vec::new();
    for line in script.split('\n') {
        for command in reader.feed(line).commands {
            found.push(command.unwrap_or_else(|e| format!("!{e}")));
        }
    }
    if let Err(e) = reader.finish() {
        found.push(format!("!{e}"));
    }
    found
}
