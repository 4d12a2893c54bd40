//! Why a call of the client failed.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Code, Status};

use ferrymq_proto::status::CallError;
use ferrymq_tls::TlsError;
use ferrymq_transport::ConnectError;
use ferrymq_types::{CompletionCode, ReasonCode};

/// Why a call failed. [`reason`](Self::reason) is the code that an application of IBM MQ would get.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The queue manager said no.
    #[error(transparent)]
    Refused(#[from] CallError),
    /// No address answered, or none that is trusted.
    #[error(transparent)]
    Connect(Arc<ConnectError>),
    /// An `https://` address, and no file of authorities to trust.
    #[error("an https:// address needs the file of the certificate authorities that are trusted")]
    NoAuthorities,
    /// A file for TLS cannot be used.
    #[error("set up TLS")]
    TlsFiles(#[source] Arc<TlsError>),
    /// The connection is lost. What was under way may have taken effect; open units of work are backed out.
    #[error("the connection to the queue manager is lost: {0}")]
    Broken(String),
    /// The time for the call is over. What was under way may have taken effect.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The queue manager answered something else than what was asked.
    #[error("the queue manager's answer does not belong to the request")]
    UnexpectedAnswer,
}

impl From<ConnectError> for ClientError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Arc::new(error))
    }
}

impl From<TlsError> for ClientError {
    fn from(error: TlsError) -> Self {
        Self::TlsFiles(Arc::new(error))
    }
}

impl ClientError {
    /// The reason code.
    ///
    /// 2538 if nobody answers at the address, 2381, 2393 and 2398 for TLS, 2009 for a lost connection or an answer that did
    /// not come in time, 2195 for an answer that is none; else what the queue manager said.
    #[must_use]
    pub fn reason(&self) -> ReasonCode {
        match self {
            Self::Refused(error) => error.reason,
            Self::Connect(error) => error.reason(),
            Self::NoAuthorities => ReasonCode::new(KEY_REPOSITORY_ERROR),
            Self::TlsFiles(error) => error.reason(),
            Self::Broken(_) | Self::TimedOut(_) => ReasonCode::CONNECTION_BROKEN,
            Self::UnexpectedAnswer => ReasonCode::UNEXPECTED_ERROR,
        }
    }

    /// The completion code: always `MQCC_FAILED`, since a warning is part of an answer.
    #[must_use]
    pub fn completion_code(&self) -> CompletionCode {
        CompletionCode::Failed
    }

    /// The object concerned, if the queue manager named one.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.object.as_deref(),
            Self::Connect(_)
            | Self::NoAuthorities
            | Self::TlsFiles(_)
            | Self::Broken(_)
            | Self::TimedOut(_)
            | Self::UnexpectedAnswer => None,
        }
    }

    /// Whether the port is closed: the queue manager is not up, or not yet.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Connect(error)
            if matches!(&**error, ConnectError::Unreachable { source, .. }
                if source.kind() == io::ErrorKind::ConnectionRefused))
    }

    /// The cause and its causes, joined by colons, for a person to read.
    #[must_use]
    pub fn with_causes(&self) -> String {
        let mut text = match self {
            Self::Refused(error) => return error.text.clone(),
            other => other.to_string(),
        };
        let mut cause = self.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Libraries often repeat their cause in their own text.
            if !text.ends_with(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = error.source();
        }
        text
    }

    /// What a failed call says, when it had `timeout` to answer.
    pub(crate) fn from_status(status: &Status, timeout: Option<Duration>) -> Self {
        let error = CallError::from_status(status);
        // Ours always name the object's queue manager or carry a typed reason; a bare status is the transport's.
        if status.details().is_empty() {
            match status.code() {
                Code::DeadlineExceeded => return Self::TimedOut(timeout.unwrap_or_default()),
                Code::Cancelled | Code::Unknown | Code::Unavailable => {
                    return Self::Broken(innermost_cause(status));
                }
                Code::Ok
                | Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::PermissionDenied
                | Code::ResourceExhausted
                | Code::FailedPrecondition
                | Code::Aborted
                | Code::OutOfRange
                | Code::Unimplemented
                | Code::Internal
                | Code::DataLoss
                | Code::Unauthenticated => {}
            }
        }
        Self::Refused(error)
    }
}

/// `MQRC_KEY_REPOSITORY_ERROR`.
const KEY_REPOSITORY_ERROR: u32 = 2381;

fn innermost_cause(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(kind: io::ErrorKind) -> ClientError {
        ConnectError::Unreachable {
            target: "h:1".into(),
            source: kind.into(),
        }
        .into()
    }

    #[test]
    fn a_refused_connection_is_told_from_an_unreachable_host() {
        assert!(unreachable(io::ErrorKind::ConnectionRefused).is_connection_refused());
        let other = unreachable(io::ErrorKind::HostUnreachable);
        assert!(!other.is_connection_refused());
        assert_eq!(other.reason(), ReasonCode::HOST_NOT_AVAILABLE);
    }

    #[test]
    fn causes_are_told_once() {
        let error = unreachable(io::ErrorKind::ConnectionRefused);
        assert_eq!(error.with_causes(), "connect to h:1: connection refused");
    }

    #[test]
    fn a_typed_status_keeps_its_reason_whatever_its_code() {
        let stopping = CallError::new(ReasonCode::Q_MGR_STOPPING, None, Some("QM1".into()));
        let error = ClientError::from_status(&stopping.to_status(), None);
        assert_eq!(error.reason(), ReasonCode::Q_MGR_STOPPING);
        assert_eq!(error.with_causes(), stopping.text);
    }

    #[test]
    fn a_status_of_the_transport_is_a_lost_connection_and_a_deadline_is_a_timeout() {
        let lost = ClientError::from_status(&Status::unknown("transport error"), None);
        assert!(matches!(lost, ClientError::Broken(_)), "{lost:?}");
        let second = Some(Duration::from_secs(1));
        let late = ClientError::from_status(&Status::deadline_exceeded("x"), second);
        assert!(
            matches!(late, ClientError::TimedOut(t) if Some(t) == second),
            "{late:?}"
        );
        let other = ClientError::from_status(&Status::permission_denied("no"), None);
        assert_eq!(other.reason(), ReasonCode::NOT_AUTHORIZED);
    }
}
