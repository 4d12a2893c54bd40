//! Why a command failed: what is printed, and the exit code.

use std::io;
use std::time::Duration;

use ferrymq_client::ClientError;
use ferrymq_types::ReasonCode;
use serde::Serialize;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done.
    Done,
    /// 1: refused by the queue manager.
    Refused,
    /// 2: usage or configuration error.
    Usage,
    /// 3: partly done.
    Partly,
    /// 4: no message.
    NoMessage,
    /// 5: not authorised.
    NotAuthorized,
    /// 6: the queue manager cannot be reached.
    Unreachable,
    /// 7: timed out.
    TimedOut,
    /// 10: some commands of an MQSC script failed.
    SomeCommandsFailed,
    /// 20: an MQSC script could not be run at all.
    ScriptNotRun,
    /// 130: interrupted.
    Interrupted,
}

impl Exit {
    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Partly => 3,
            Self::NoMessage => 4,
            Self::NotAuthorized => 5,
            Self::Unreachable => 6,
            Self::TimedOut => 7,
            Self::SomeCommandsFailed => 10,
            Self::ScriptNotRun => 20,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Words, options, files or configuration that cannot be used.
    Usage(String),
    /// The queue manager said no, or could not be asked.
    Call(ClientError),
    /// There was no message, or none that matched (2033).
    NoMessage,
    /// There is nothing of what was asked for: why, in words.
    NothingThere(String),
    /// Some of it was done before `cause` stopped it.
    Partly {
        /// What was done, such as `2 messages put`.
        done: String,
        /// Why no more.
        cause: Option<Box<Failure>>,
    },
    /// The time for the command is over.
    TimedOut(Duration),
    /// Interrupted by the user.
    Interrupted,
    /// An MQSC script of which some commands failed; the report says which.
    SomeCommandsFailed,
    /// An MQSC script could not be run at all.
    ScriptNotRun(Box<Failure>),
    /// The answer could not be written out.
    Output(io::Error),
    /// The operating system refused something else.
    System(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Call(error)
    }
}

/// An error as JSON.
#[derive(Debug, Serialize)]
struct ErrorDocument {
    error: ErrorBody,
}

#[derive(Debug, Serialize)]
struct ErrorBody {
    mqcc: Option<u32>,
    mqrc: Option<u32>,
    reason: Option<String>,
    object: Option<String>,
    qmgr: Option<String>,
    message: String,
    hint: Option<String>,
    exit: u8,
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Call(error) => exit_of(error),
            Self::NoMessage | Self::NothingThere(_) => Exit::NoMessage,
            Self::Partly { .. } | Self::Output(_) => Exit::Partly,
            Self::TimedOut(_) => Exit::TimedOut,
            Self::Interrupted => Exit::Interrupted,
            Self::SomeCommandsFailed => Exit::SomeCommandsFailed,
            Self::ScriptNotRun(_) => Exit::ScriptNotRun,
            Self::System(_) => Exit::Refused,
        }
    }

    /// Whether nothing is to be said: the reader of the answer has gone, or the report has said it.
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            Self::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::SomeCommandsFailed => true,
            Self::Usage(_)
            | Self::Call(_)
            | Self::NoMessage
            | Self::NothingThere(_)
            | Self::Partly { .. }
            | Self::TimedOut(_)
            | Self::Interrupted
            | Self::ScriptNotRun(_)
            | Self::System(_) => false,
        }
    }

    /// The reason code, where there is one.
    pub(crate) fn reason(&self) -> Option<ReasonCode> {
        match self {
            Self::Call(error) => Some(error.reason()),
            Self::NoMessage => Some(ReasonCode::NO_MSG_AVAILABLE),
            Self::Partly {
                cause: Some(cause), ..
            }
            | Self::ScriptNotRun(cause) => cause.reason(),
            Self::Usage(_)
            | Self::NothingThere(_)
            | Self::Partly { cause: None, .. }
            | Self::TimedOut(_)
            | Self::Interrupted
            | Self::SomeCommandsFailed
            | Self::Output(_)
            | Self::System(_) => None,
        }
    }

    fn call(&self) -> Option<&ClientError> {
        match self {
            Self::Call(error) => Some(error),
            Self::Partly {
                cause: Some(cause), ..
            }
            | Self::ScriptNotRun(cause) => cause.call(),
            Self::Usage(_)
            | Self::NoMessage
            | Self::NothingThere(_)
            | Self::Partly { cause: None, .. }
            | Self::TimedOut(_)
            | Self::Interrupted
            | Self::SomeCommandsFailed
            | Self::Output(_)
            | Self::System(_) => None,
        }
    }

    /// One sentence, without the reason code.
    fn sentence(&self) -> String {
        match self {
            Self::Usage(text) | Self::System(text) | Self::NothingThere(text) => text.clone(),
            Self::Call(error) => error.with_causes(),
            Self::NoMessage => ReasonCode::NO_MSG_AVAILABLE
                .meaning()
                .unwrap_or("no message")
                .to_owned(),
            Self::Partly {
                done,
                cause: Some(cause),
            } => {
                format!("{} ({done} before)", cause.sentence())
            }
            Self::Partly { done, cause: None } => format!("only {done}"),
            Self::TimedOut(after) => format!("not finished within {after:?}"),
            Self::Interrupted => "interrupted".to_owned(),
            Self::SomeCommandsFailed => "some commands failed".to_owned(),
            Self::ScriptNotRun(cause) => cause.sentence(),
            Self::Output(error) => format!("write the answer: {error}"),
        }
    }

    /// What to do, where that is known.
    fn hint(&self) -> Option<String> {
        let error = self.call();
        if matches!(error, Some(ClientError::NoAuthorities)) {
            return Some("name the file with --ca, FERRYMQ_CA or in the context".to_owned());
        }
        if error.is_some_and(ClientError::is_connection_refused) {
            return Some(
                "is the queue manager running? `ferrymq dev` starts one to try".to_owned(),
            );
        }
        let reason = self
            .reason()
            .filter(|reason| *reason != ReasonCode::NO_MSG_AVAILABLE)?;
        reason
            .page()
            .map(|_| format!("`ferrymq rc {}` says what to do", reason.get()))
    }

    /// What goes to stderr as text: `ferrymq: put A: MQRC_Q_FULL (2053): the queue is full`, and a hint.
    pub(crate) fn text(&self, action: &str) -> String {
        let reason = self
            .reason()
            .map_or_else(String::new, |reason| format!("{reason}: "));
        let mut text = format!("ferrymq: {action}: {reason}{}", one_line(&self.sentence()));
        if let Some(hint) = self.hint() {
            text.push_str("\nferrymq: hint: ");
            text.push_str(&hint);
        }
        text
    }

    /// What goes to stderr as JSON.
    pub(crate) fn json(&self) -> String {
        let reason = self.reason();
        let call = self.call();
        let queue_manager = match call {
            Some(ClientError::Refused(refused)) => refused.queue_manager.clone(),
            Some(_) | None => None,
        };
        let document = ErrorDocument {
            error: ErrorBody {
                mqcc: reason.map(|_| ferrymq_types::CompletionCode::Failed.get()),
                mqrc: reason.map(ReasonCode::get),
                reason: reason.and_then(ReasonCode::name).map(str::to_owned),
                object: call.and_then(ClientError::object).map(str::to_owned),
                qmgr: queue_manager,
                message: one_line(&self.sentence()),
                hint: self.hint(),
                exit: self.exit().code(),
            },
        };
        serde_json::to_string(&document).unwrap_or_else(|error| error.to_string())
    }
}

/// Text from elsewhere on one line, without control characters that a terminal would obey.
fn one_line(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn exit_of(error: &ClientError) -> Exit {
    match error {
        ClientError::NoAuthorities | ClientError::TlsFiles(_) => Exit::Usage,
        ClientError::Connect(_) | ClientError::Broken(_) => Exit::Unreachable,
        ClientError::TimedOut(_) => Exit::TimedOut,
        ClientError::UnexpectedAnswer => Exit::Refused,
        ClientError::Refused(refused) => match refused.reason {
            ReasonCode::NOT_AUTHORIZED => Exit::NotAuthorized,
            ReasonCode::NO_MSG_AVAILABLE => Exit::NoMessage,
            ReasonCode::Q_MGR_NOT_AVAILABLE
            | ReasonCode::HOST_NOT_AVAILABLE
            | ReasonCode::CONNECTION_BROKEN => Exit::Unreachable,
            _ => Exit::Refused,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a queue manager says.
    pub(crate) fn refused(reason: ReasonCode) -> Failure {
        let error = ferrymq_client::CallError::new(reason, Some("A".into()), Some("QM1".into()));
        Failure::Call(ClientError::Refused(error))
    }

    #[test]
    fn exit_codes_are_those_of_the_table() {
        let check = |failure: Failure, code| assert_eq!(failure.exit().code(), code, "{failure:?}");
        check(refused(ReasonCode::Q_FULL), 1);
        check(refused(ReasonCode::UNKNOWN_OBJECT_NAME), 1);
        check(Failure::System("x".into()), 1);
        check(Failure::Usage("x".into()), 2);
        check(Failure::Call(ClientError::NoAuthorities), 2);
        check(
            Failure::Partly {
                done: "1 put".into(),
                cause: None,
            },
            3,
        );
        check(Failure::NoMessage, 4);
        check(refused(ReasonCode::NO_MSG_AVAILABLE), 4);
        check(refused(ReasonCode::NOT_AUTHORIZED), 5);
        check(refused(ReasonCode::Q_MGR_NOT_AVAILABLE), 6);
        check(refused(ReasonCode::HOST_NOT_AVAILABLE), 6);
        check(Failure::Call(ClientError::Broken("x".into())), 6);
        check(
            Failure::Call(ClientError::TimedOut(Duration::from_secs(1))),
            7,
        );
        check(Failure::TimedOut(Duration::from_secs(1)), 7);
        check(Failure::SomeCommandsFailed, 10);
        check(Failure::ScriptNotRun(Box::new(Failure::NoMessage)), 20);
        check(Failure::Interrupted, 130);
        assert_eq!(Exit::Done.code(), 0);
    }

    #[test]
    fn a_refusal_is_one_line_and_a_hint() {
        let text = refused(ReasonCode::Q_FULL).text("put A");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("ferrymq: put A: MQRC_Q_FULL (2053): "),
            "{text}"
        );
        assert_eq!(
            lines[1..],
            ["ferrymq: hint: `ferrymq rc 2053` says what to do"]
        );
    }

    #[test]
    fn what_was_done_before_is_told_with_the_reason() {
        let cause = Some(Box::new(refused(ReasonCode::Q_FULL)));
        let failure = Failure::Partly {
            done: "2 messages put".into(),
            cause,
        };
        let text = failure.text("put A");
        assert!(
            text.starts_with("ferrymq: put A: MQRC_Q_FULL (2053): "),
            "{text}"
        );
        assert!(text.contains("(2 messages put before)"), "{text}");
    }

    #[test]
    fn an_error_in_json_has_the_keys_of_its_schema() {
        let value: serde_json::Value =
            serde_json::from_str(&refused(ReasonCode::Q_FULL).json()).unwrap();
        let error = &value["error"];
        assert_eq!(error["mqcc"], 2);
        assert_eq!(error["mqrc"], 2053);
        assert_eq!(error["reason"], "MQRC_Q_FULL");
        assert_eq!(error["object"], "A");
        assert_eq!(error["qmgr"], "QM1");
        assert_eq!(error["exit"], 1);
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../docs/schema/error.schema.json")).unwrap();
        crate::message::tests::check_keys(&schema["properties"]["error"], error);
    }

    #[test]
    fn control_characters_from_elsewhere_do_not_reach_the_terminal() {
        let text = Failure::System("a\u{1b}[31m\nb".into()).text("x");
        assert_eq!(text, "ferrymq: x: a [31m b");
    }
}
