//! The one place where a reason code becomes a gRPC status, and a status a reason code again.

use std::collections::HashMap;
use std::time::Duration;

use ferrymq_types::ReasonCode;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The domain of our error details.
pub const DOMAIN: &str = "ferrymq.dev";

/// Why a call failed: what an application sees.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}: {text}", object.as_ref().map(|o| format!(" for {o}")).unwrap_or_default())]
pub struct CallError {
    /// The reason code. `MQCC` is 2.
    pub reason: ReasonCode,
    /// The object concerned, if any.
    pub object: Option<String>,
    /// The queue manager, if one answered.
    pub queue_manager: Option<String>,
    /// One sentence.
    pub text: String,
}

impl CallError {
    /// With the table's sentence for `reason`.
    #[must_use]
    pub fn new(reason: ReasonCode, object: Option<String>, queue_manager: Option<String>) -> Self {
        let text = reason
            .meaning()
            .unwrap_or("no meaning is known for this code")
            .to_owned();
        Self {
            reason,
            object,
            queue_manager,
            text,
        }
    }

    /// The status to send.
    #[must_use]
    pub fn to_status(&self) -> Status {
        let reason = self.reason;
        let mut metadata = HashMap::from([
            ("mqcc".to_owned(), "2".to_owned()),
            ("mqrc".to_owned(), reason.get().to_string()),
        ]);
        for (key, value) in [("object", &self.object), ("qmgr", &self.queue_manager)] {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
        let name = reason
            .name()
            .map_or_else(|| reason.get().to_string(), str::to_owned);
        let mut details = ErrorDetails::with_error_info(name, DOMAIN, metadata);
        if matches!(
            code(reason),
            Code::Unavailable | Code::Aborted | Code::ResourceExhausted
        ) {
            details.set_retry_info(Some(Duration::from_secs(1)));
        }
        Status::with_error_details(code(reason), self.text.clone(), details)
    }

    /// What a status says; a status that is not ours becomes the reason that is nearest.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        if let Some(info) = status.get_details_error_info()
            && info.domain == DOMAIN
            && let Some(reason) = info.metadata.get("mqrc").and_then(|n| n.parse().ok())
        {
            return Self {
                reason: ReasonCode::new(reason),
                object: info.metadata.get("object").cloned(),
                queue_manager: info.metadata.get("qmgr").cloned(),
                text: status.message().to_owned(),
            };
        }
        let reason = match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => ReasonCode::NOT_AUTHORIZED,
            Code::InvalidArgument => ReasonCode::OPTIONS_ERROR,
            Code::OutOfRange | Code::ResourceExhausted => ReasonCode::MSG_TOO_BIG_FOR_Q_MGR,
            Code::Unavailable => ReasonCode::Q_MGR_NOT_AVAILABLE,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::DataLoss => ReasonCode::CONNECTION_BROKEN,
            Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Internal => ReasonCode::UNEXPECTED_ERROR,
        };
        Self {
            reason,
            object: None,
            queue_manager: None,
            text: status.message().to_owned(),
        }
    }
}

/// The gRPC code of a reason.
#[must_use]
pub fn code(reason: ReasonCode) -> Code {
    match reason.get() {
        2058 | 2085 => Code::NotFound,
        2035 => Code::PermissionDenied,
        2024 | 2025 | 2053 | 2056 | 2071 | 2102 | 2192 | 9004 => Code::ResourceExhausted,
        2016
        | 2033
        | 2034
        | 2037
        | 2039
        | 2042
        | 2051
        | 2052
        | 2055
        | 2082
        | 2087
        | 2091
        | 2092
        | 2184
        | 2196..=2199
        | 9001 => Code::FailedPrecondition,
        2013 | 2026 | 2027 | 2029 | 2030 | 2031 | 2046 | 2047 | 2049 | 2050 | 2061 | 2090
        | 2110 | 2255 | 2334 | 2335 | 2442 | 2459 | 2473 | 2478 | 2504 | 2516 | 2519 => {
            Code::InvalidArgument
        }
        2080 => Code::OutOfRange,
        2003 => Code::Aborted,
        2009 | 2059 | 2161 | 2162 | 2538 | 9007 => Code::Unavailable,
        2101 | 9003 => Code::DataLoss,
        9002 => Code::Unknown,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_the_wire() {
        let error = CallError::new(ReasonCode::Q_FULL, Some("A".into()), Some("QM1".into()));
        let status = error.to_status();
        assert_eq!(status.code(), Code::ResourceExhausted);
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, "MQRC_Q_FULL");
        assert_eq!(CallError::from_status(&status), error);
    }

    #[test]
    fn a_status_of_the_transport_becomes_the_nearest_reason() {
        let reason = |status: Status| CallError::from_status(&status).reason;
        assert_eq!(
            reason(Status::unavailable("x")),
            ReasonCode::Q_MGR_NOT_AVAILABLE
        );
        assert_eq!(
            reason(Status::unknown("transport error")),
            ReasonCode::CONNECTION_BROKEN
        );
    }
}
