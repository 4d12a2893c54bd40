//! Answers and reports in the shape of `runmqsc`.

use ferrymq_objects::{Applied, CommandError, ObjectClass, OperatorMessage};
use ferrymq_types::ReasonCode;

use crate::SyntaxError;
use crate::display::{DisplayedObject, clean};
use crate::script::ScriptError;
use crate::statement::{Display, DisplayNoun};

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What is printed.
    pub lines: Vec<String>,
    /// `MQRC` or `MQRCCF`; [`ReasonCode::NONE`] if the command was done.
    pub reason: ReasonCode,
    /// Whether the command could not be read.
    pub syntax_error: bool,
    /// What DISPLAY found.
    pub objects: Vec<DisplayedObject>,
}

const CHANNEL_STATUS_NOT_FOUND: ReasonCode = ReasonCode::new(3065);
const CHANNEL_RULE_NOT_FOUND: ReasonCode = ReasonCode::new(3338);
const COMMAND_FAILED: ReasonCode = ReasonCode::new(3008);
const CHANNEL_IN_DOUBT: ReasonCode = ReasonCode::new(4025);
const CHANNEL_TYPE_ERROR: ReasonCode = ReasonCode::new(4034);
const CHANNEL_IN_USE: ReasonCode = ReasonCode::new(4031);
const CHANNEL_NOT_FOUND: ReasonCode = ReasonCode::new(4032);
const CHANNEL_NOT_ACTIVE: ReasonCode = ReasonCode::new(4064);

impl Answer {
    /// A command that was done, or not, with a line.
    #[must_use]
    pub fn message(message: &OperatorMessage, reason: ReasonCode) -> Self {
        Self {
            lines: vec![clean(&message.to_string())],
            reason,
            syntax_error: false,
            objects: Vec::new(),
        }
    }

    fn done(id: &'static str, text: &str) -> Self {
        let text = text.to_owned();
        Self::message(&OperatorMessage { id, text }, ReasonCode::NONE)
    }

    /// A definition changed.
    #[must_use]
    pub fn applied(applied: &Applied) -> Self {
        let of = |kind: &ferrymq_objects::ObjectKind, queue, channel, process| match kind.class() {
            ObjectClass::Queue => queue,
            ObjectClass::Channel => channel,
            ObjectClass::Process => process,
        };
        let (id, text) = match applied {
            Applied::QueueManagerCreated { .. } => ("AMQ8003I", "FerryMQ queue manager created."),
            Applied::QueueManagerAltered => ("AMQ8005I", "FerryMQ queue manager changed."),
            Applied::ChannelRulesSet { .. } => {
                ("AMQ8877I", "FerryMQ channel authentication record set.")
            }
            Applied::Created { kind, .. } | Applied::Replaced { kind, .. } => of(
                kind,
                ("AMQ8006I", "FerryMQ queue created."),
                ("AMQ8014I", "FerryMQ channel created."),
                ("AMQ8010I", "FerryMQ process created."),
            ),
            Applied::Altered { kind, .. } => of(
                kind,
                ("AMQ8008I", "FerryMQ queue changed."),
                ("AMQ8016I", "FerryMQ channel changed."),
                ("AMQ8012I", "FerryMQ process changed."),
            ),
            Applied::Deleted { kind, .. } => of(
                kind,
                ("AMQ8007I", "FerryMQ queue deleted."),
                ("AMQ8015I", "FerryMQ channel deleted."),
                ("AMQ8011I", "FerryMQ process deleted."),
            ),
        };
        Self::done(id, text)
    }

    /// A change of the definitions was refused.
    #[must_use]
    pub fn refused(error: &CommandError) -> Self {
        Self::message(&error.message(), error.reason())
    }

    /// `DELETE ... IGNSTATE(YES)` of what is not there.
    #[must_use]
    pub fn nothing_to_delete(class: ObjectClass) -> Self {
        match class {
            ObjectClass::Queue => Self::done("AMQ8007I", "FerryMQ queue deleted."),
            ObjectClass::Channel => Self::done("AMQ8015I", "FerryMQ channel deleted."),
            ObjectClass::Process => Self::done("AMQ8011I", "FerryMQ process deleted."),
        }
    }

    /// `START CHANNEL`.
    #[must_use]
    pub fn channel_start_accepted() -> Self {
        Self::done("AMQ8018I", "Start FerryMQ channel accepted.")
    }

    /// `STOP CHANNEL`.
    #[must_use]
    pub fn channel_stop_accepted() -> Self {
        Self::done("AMQ8019I", "Stop FerryMQ channel accepted.")
    }

    /// `RESET CHANNEL`.
    #[must_use]
    pub fn channel_reset() -> Self {
        Self::done("AMQ8023I", "FerryMQ channel reset.")
    }

    /// `RESOLVE CHANNEL`.
    #[must_use]
    pub fn channel_resolved() -> Self {
        Self::done("AMQ8025I", "FerryMQ channel resolved.")
    }

    /// `PING CHANNEL`.
    #[must_use]
    pub fn channel_pinged() -> Self {
        Self::done("AMQ8020I", "Ping FerryMQ channel complete.")
    }

    /// `CLEAR QLOCAL`.
    #[must_use]
    pub fn queue_cleared() -> Self {
        Self::done("AMQ8022I", "FerryMQ queue cleared.")
    }

    /// `REFRESH SECURITY`.
    #[must_use]
    pub fn security_refreshed() -> Self {
        Self::done("AMQ8560I", "FerryMQ security cache refreshed.")
    }

    /// The record that would decide of a partner, and what would become of it.
    #[must_use]
    pub fn channel_checked(message: &OperatorMessage, rule: Option<DisplayedObject>) -> Self {
        let objects: Vec<DisplayedObject> = rule.into_iter().collect();
        let mut lines: Vec<String> = objects.iter().flat_map(DisplayedObject::lines).collect();
        lines.push(clean(&message.to_string()));
        Self {
            lines,
            reason: ReasonCode::NONE,
            syntax_error: false,
            objects,
        }
    }

    /// `PING QMGR`.
    #[must_use]
    pub fn queue_manager_pinged() -> Self {
        Self::done("AMQ8415I", "Ping FerryMQ Queue Manager command complete.")
    }

    /// Something failed for a reason that the definitions do not know. `object` is what the command was about.
    #[must_use]
    pub fn failed(reason: ReasonCode, object: &str) -> Self {
        let (id, text) = match reason {
            ReasonCode::NOT_AUTHORIZED => ("AMQ8135E", "Not authorized.".to_owned()),
            ReasonCode::Q_NOT_EMPTY => ("AMQ8143E", format!("FerryMQ queue {object} not empty.")),
            ReasonCode::Q_MGR_NAME_ERROR | ReasonCode::Q_MGR_NOT_AVAILABLE => (
                "AMQ8146E",
                "FerryMQ queue manager not available.".to_owned(),
            ),
            ReasonCode::UNKNOWN_OBJECT_NAME => {
                ("AMQ8147E", format!("FerryMQ object {object} not found."))
            }
            ReasonCode::OBJECT_IN_USE => ("AMQ8148E", format!("FerryMQ object {object} in use.")),
            ReasonCode::OBJECT_DAMAGED => ("AMQ8149S", format!("FerryMQ object {object} damaged.")),
            CHANNEL_IN_DOUBT => (
                "AMQ9507E",
                format!("Channel '{object}' is currently in doubt."),
            ),
            CHANNEL_TYPE_ERROR => (
                "FMQ8001E",
                format!("Channel '{object}' is of a type that the command is not for."),
            ),
            CHANNEL_NOT_FOUND => ("AMQ8227E", format!("Channel {object} not found.")),
            CHANNEL_STATUS_NOT_FOUND => ("AMQ8420I", "Channel Status not found.".to_owned()),
            CHANNEL_RULE_NOT_FOUND => (
                "AMQ8884E",
                "FerryMQ channel authentication record not found.".to_owned(),
            ),
            CHANNEL_IN_USE => ("AMQ9514E", format!("Channel '{object}' is in use.")),
            CHANNEL_NOT_ACTIVE => (
                "AMQ9533W",
                format!("Channel '{object}' is not currently active."),
            ),
            other => {
                let why = other.meaning().unwrap_or("the reason is not known");
                ("AMQ8101S", format!("Unexpected error {other}: {why}."))
            }
        };
        Self::message(&OperatorMessage { id, text }, reason)
    }

    /// A command of IBM MQ that we do not have. The number is our own.
    #[must_use]
    pub fn not_supported(what: &str) -> Self {
        let text = format!("{what} is not supported by this version of FerryMQ.");
        let message = OperatorMessage {
            id: "AMQ8999E",
            text,
        };
        Self::message(&message, COMMAND_FAILED)
    }

    /// A command that could not be read: the message, the command up to the error, what is wrong with it, and a blank line.
    /// The line that says what is wrong is our own addition.
    #[must_use]
    pub fn syntax(command: &str, error: &SyntaxError) -> Self {
        Self::unreadable(vec![
            SYNTAX_ERROR.to_owned(),
            clean(error.segment(command)),
            clean(&full_stop(&error.to_string())),
            String::new(),
        ])
    }

    /// A command that could not be put together from its lines.
    #[must_use]
    pub fn script(error: ScriptError) -> Self {
        Self::unreadable(vec![
            SYNTAX_ERROR.to_owned(),
            format!("{error}."),
            String::new(),
        ])
    }

    fn unreadable(lines: Vec<String>) -> Self {
        Self {
            lines,
            reason: COMMAND_FAILED,
            syntax_error: true,
            objects: Vec::new(),
        }
    }

    /// What DISPLAY found; that nothing was found if `objects` is empty.
    #[must_use]
    pub fn displayed(display: &Display, objects: Vec<DisplayedObject>) -> Self {
        if objects.is_empty() {
            let reason = match display.noun {
                DisplayNoun::ChannelStatus { .. } => CHANNEL_STATUS_NOT_FOUND,
                DisplayNoun::ChannelRule { .. } => CHANNEL_RULE_NOT_FOUND,
                DisplayNoun::Queue { .. }
                | DisplayNoun::Channel { .. }
                | DisplayNoun::Process
                | DisplayNoun::QueueManager
                | DisplayNoun::QueueStatus => ReasonCode::UNKNOWN_OBJECT_NAME,
            };
            return Self::failed(reason, &display.name.to_string());
        }
        Self {
            lines: objects.iter().flat_map(DisplayedObject::lines).collect(),
            reason: ReasonCode::NONE,
            syntax_error: false,
            objects,
        }
    }

    /// Whether the command was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.reason == ReasonCode::NONE
    }
}

/// A sentence, unless it is a question already.
fn full_stop(text: &str) -> String {
    if text.ends_with('?') {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

const SYNTAX_ERROR: &str =
    "AMQ8405I: Syntax error detected at or near end of command segment below:-";

/// Puts together what `runmqsc` prints for a script.
#[derive(Debug, Clone, Default)]
pub struct Report {
    lines: Vec<String>,
    read: u64,
    syntax_errors: u64,
    failed: u64,
}

impl Report {
    /// The beginning: our product line, and the queue manager.
    #[must_use]
    pub fn new(queue_manager: &str) -> Self {
        Self {
            lines: vec![
                format!("FerryMQ {}.", env!("CARGO_PKG_VERSION")),
                format!("Starting MQSC for queue manager {}.", clean(queue_manager)),
                String::new(),
                String::new(),
            ],
            ..Self::default()
        }
    }

    /// A line of the script as it was typed; `number` if a command starts on it.
    pub fn echo(&mut self, number: Option<u64>, line: &str) {
        let number = number.map_or_else(String::new, |n| n.to_string());
        self.lines.push(format!("{number:>6} : {}", clean(line)));
    }

    /// The answer to a command, which counts now. `END` has none.
    pub fn answer(&mut self, answer: &Answer) {
        self.lines(&answer.lines, answer.syntax_error, !answer.is_done());
    }

    /// As [`Report::answer`], for an answer that came over the wire.
    pub fn lines(&mut self, lines: &[String], syntax_error: bool, failed: bool) {
        self.lines.extend(lines.iter().map(|l| clean(l)));
        self.read = self.read.saturating_add(1);
        if syntax_error {
            self.syntax_errors = self.syntax_errors.saturating_add(1);
        } else if failed {
            self.failed = self.failed.saturating_add(1);
        }
    }

    /// The end: how many commands were read, could not be read, could not be done.
    pub fn closing(&mut self) {
        self.lines.push(match self.read {
            0 => "No MQSC commands read.".to_owned(),
            1 => "One MQSC command read.".to_owned(),
            n => format!("{n} MQSC commands read."),
        });
        self.lines.push(match self.syntax_errors {
            0 => "No commands have a syntax error.".to_owned(),
            1 => "One command has a syntax error.".to_owned(),
            n => format!("{n} commands have a syntax error."),
        });
        self.lines.push(match self.failed {
            0 => "All valid MQSC commands were processed.".to_owned(),
            1 => "One valid MQSC command could not be processed.".to_owned(),
            n => format!("{n} valid MQSC commands could not be processed."),
        });
    }

    /// Takes what is to be printed since the last time.
    pub fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.lines)
    }

    /// The return code of `runmqsc`: 0 all done, 10 some not. 20, could not run at all, is the caller's to give.
    #[must_use]
    pub const fn return_code(&self) -> u8 {
        if self.syntax_errors == 0 && self.failed == 0 {
            0
        } else {
            10
        }
    }
}
